// SPDX-License-Identifier: GPL-2.0
// The scenario language: valid and invalid statements, and matches of expectations.
#include "player.hpp"
#include "scenario.hpp"

#include <gtest/gtest.h>

namespace mpapeer {
namespace {

std::string error_of(std::string_view text, const Variables &variables = {})
{
    try {
        parse_scenario("s", text, variables);
    } catch (const ScenarioError &error) {
        return error.what();
    }
    return "";
}

TEST(Scenario, EveryStatementOfTcpIsParsed)
{
    const std::string_view text =
        "# a comment\n"
        "\n"
        "  within 250ms   # another\n"
        "default PORT=1 2\ndefault FILE=/tmp/y\n"
        "send hex 00ff \"text # no comment\" 11\n"
        "send request rev=2 enhanced p2p rtr=write,read ird=8 ord=8 crc markers pdata=0102\n"
        "send reply reject res=15 word=0xffffffff flags=0x5f pd-length=65535 key=request\n"
        "send request key=000102030405060708090a0b0c0d0e0f enhanced no-word first=10\n"
        "send reply rev=2 enhanced=0 p2p=0 rtr=none pdata-len=508 from=20 flip=7\n"
        "send rtr write stag=1 to=0x10 crc=bad\n"
        "send rtr read sink-stag=1 sink-to=2 src-stag=3 src-to=4 size=5 msn=6 qn=7 mo=8\n"
        "send rtr send crc=zero\n"
        "send rtr null crc=0x01020304\n"
        "send fpdu send 00ff msn=2\n"
        "send fpdu send \"a=b\"\n"
        "send fpdu send-inv inv-stag=9 len=100 last=0\n"
        "send fpdu write data=00 ddp-control=0xc0 rdmap-control=0x4f ulpdu-length=3\n"
        "send fpdu read-response pdata=\"x\"\n"
        "send fpdu raw c140\n"
        "send fpdu term 0x2/0x0/0x07 hdrct=7 reserved=1\n"
        "send term 2/0/6\n"
        "send read-response stag=1\n"
        "split at 4,20\nsplit every 1\nsplit off\ngap 5ms\nglue\nflush\nwait 10us\n"
        "wait for /tmp/x\nwait for ${FILE} within 3s\n"
        "expect request rev=2 enhanced=1 p2p rtr~write,read ird>=8 ord<=8 within 3s\n"
        "expect reply accept pdata=\"pong\" pdata-len!=0 flags=0x50 res=0 word=0x80088008\n"
        "expect reply reject or close\n"
        "expect fpdu write-rtr stag!=0\n"
        "expect fpdu any or rst\n"
        "expect rtr bytes=20\n"
        "expect send pdata=00 crc=bad\n"
        "expect send len=4\n"
        "expect read-response\nexpect null\nexpect send-rtr\nexpect read-rtr\n"
        "expect term 2/0/6\nexpect term 2/*/6 hdrct=0 bytes=28\n"
        "expect hex 00 11\n"
        "expect close drain\nexpect fin\nexpect rst\n"
        "expect nothing for 500ms\nexpect no-data for 1s\n"
        "shutdown\nreset\nclose\ncrc on\ncrc off\ncrc agreed\nconnect\nconnect keep\n"
        "auto read-response\nauto read-response off\nnote ready for ${PORT}\n";
    EXPECT_EQ(error_of(text), "");
}

struct BadLine {
    std::string line;
    std::string error;
};

TEST(Scenario, RejectsInvalidStatementsAndNamesTheLine)
{
    const BadLine lines[] = {
        {"sned request", "'sned' is not a statement"},
        {"send", "send needs an item to send"},
        {"wait", "wait needs a duration, or 'for FILE'"},
        {"wait for", "wait needs a file"},
        {"wait for a within", "expected: wait for FILE within DURATION"},
        {"wait for a 3s", "expected: wait for FILE within DURATION"},
        {"wait for a within 3s b", "unexpected word 'b'"},
        {"send nonsense", "'nonsense' is not an item of send"},
        {"send hex", "send hex needs bytes"},
        {"send hex 0", "neither pairs of hexadecimal digits"},
        {"send hex \"open", "quoted text without a closing"},
        {"send request colour=red", "'colour' is not a setting of a frame"},
        {"send request rev=256", "more than 255"},
        {"send request rev=two", "'two' is not a number"},
        {"send request rev", "rev needs a value"},
        {"send request ird=16384", "more than 16383"},
        {"send request crc=2", "more than 1"},
        {"send request rtr=writ", "'writ' is not an RTR type"},
        {"send request rtr=", "not an RTR type"},
        {"send request key=00", "a key has 16 bytes, not 1"},
        {"send request pdata-len=65535 enhanced", "needs a pd-length"},
        {"send request res=16", "more than 15"},
        {"send rtr", "send rtr needs a kind"},
        {"send rtr term", "'term' is not an RTR"},
        {"send fpdu quux", "'quux' is not a kind of FPDU"},
        {"send fpdu send colour=1", "'colour' is not a setting of an FPDU"},
        {"send fpdu send len=65535", "at most 65535 bytes"},
        {"send fpdu send zz", "neither pairs of hexadecimal digits"},
        {"send term", "send term needs LAYER/TYPE/CODE"},
        {"send term 2/0", "is not LAYER/TYPE/CODE"},
        {"send term 16/0/0", "more than 15"},
        {"split", "split needs"},
        {"split at", "split needs a number"},
        {"split at 5,4", "must exceed the one before it"},
        {"split every 0", "split every: expected a number above 0"},
        {"split by 3", "'at', 'every', 'urgent' or 'off'"},
        {"split every 3 4", "unexpected word '4'"},
        {"gap 5", "'5' is not a duration"},
        {"wait", "wait needs a duration"},
        {"wait -1s", "'-1' is not a number"},
        {"wait 99999999999s", "more than"},
        {"within 1m", "is not a duration"},
        {"glue 3", "unexpected word '3'"},
        {"expect", "expect needs"},
        {"expect fpdu", "expect needs an item to expect"},
        {"expect miracle", "'miracle' is not an item of expect"},
        {"expect reply colour=1", "reply has no field 'colour'"},
        {"expect write msn=1", "write has no field 'msn'"},
        {"expect reply rev", "rev needs a value"},
        {"expect reply pdata>=00", "cannot be compared with >="},
        {"expect reply rev~1", "cannot be compared with ~"},
        {"expect send crc=maybe", "crc must be ok, bad or unused"},
        {"expect reply or", "expect needs an item to expect"},
        {"expect close soon", "only 'drain'"},
        {"expect term 2/0", "is not LAYER/TYPE/CODE"},
        {"expect nothing", "expect nothing for DURATION"},
        {"expect nothing for 1s 2s", "unexpected word '2s'"},
        {"crc maybe", "expected on, off or agreed"},
        {"connect twice", "only 'keep'"},
        {"auto pilot", "auto supports only read-response"},
        {"auto read-response maybe", "on or off"},
        {"default X", "default NAME=VALUE"},
        {"repeat", "repeat N"},
        {"end", "'end' without a 'repeat' before it"},
        {"note ${NOTHING}", "${NOTHING} is not set"},
        {"note ${NOTHING", "${ without a closing }"},
    };
    for (const BadLine &bad : lines) {
        const std::string error = error_of("within 1s\n" + bad.line + "\n");
        EXPECT_TRUE(error.starts_with("s:2: ")) << bad.line << " gives: " << error;
        EXPECT_NE(error.find(bad.error), std::string::npos) << bad.line << " gives: " << error;
    }
    EXPECT_EQ(error_of("within 1s\nrepeat 2\nflush"), "s:2: 'repeat' without an 'end' after it");
    EXPECT_NE(error_of("repeat 1000000\nrepeat 1000000\nflush\nend\nend"), "");
}

TEST(Scenario, ReplacesVariables)
{
    const Scenario scenario = parse_scenario(
        "s", "default IRD=3\ndefault ORD=4\nsend request ird=${IRD} ord=${ORD} ${MORE}",
        {{"IRD", "7"}, {"MORE", "crc p2p"}});
    ASSERT_EQ(scenario.statements.size(), 1U);
    EXPECT_EQ(scenario.statements[0].text, "send request ird=7 ord=4 crc p2p");
    EXPECT_EQ(scenario.statements[0].line, 3U);
}

TEST(Scenario, RepeatsBlocks)
{
    const Scenario scenario =
        parse_scenario("s", "repeat 2\nflush\nrepeat 3\nnote x\nend\nend\nrepeat 0\nflush\nend\n");
    EXPECT_EQ(scenario.statements.size(), 8U);
    EXPECT_EQ(scenario.statements[4].text, "flush");
}

TEST(Scenario, ForAnotherRoleIsRejected)
{
    const Scenario accept = parse_scenario("s", "accept");
    const Scenario connect = parse_scenario("s", "connect");
    const Scenario none = parse_scenario("s", "expect no-connection for 1s");
    EXPECT_NO_THROW(check_role(accept, true));
    EXPECT_THROW(check_role(accept, false), ScenarioError);
    EXPECT_NO_THROW(check_role(connect, false));
    EXPECT_THROW(check_role(connect, true), ScenarioError);
    EXPECT_NO_THROW(check_role(none, true));
    EXPECT_THROW(check_role(none, false), ScenarioError);
}

TEST(HostPort, IsSplit)
{
    EXPECT_EQ(parse_host_port("10.0.0.1:80").host, "10.0.0.1");
    EXPECT_EQ(parse_host_port("[::1]:80").host, "::1");
    EXPECT_EQ(parse_host_port("80").host, "");
    EXPECT_EQ(parse_host_port(":80").port, "80");
    EXPECT_THROW(parse_host_port("host"), TextError);
    EXPECT_THROW(parse_host_port("host:65536"), TextError);
}

StreamItem item_of(std::string_view hex, bool frame)
{
    StreamDecoder decoder;
    if (!frame) {
        decoder.feed(build_frame({}));
        decoder.next();
    }
    decoder.feed(from_hex(hex).value());
    return decoder.next().value();
}

std::string mismatch_of(std::string_view expectation, const StreamItem &item)
{
    return mismatch(parse_pattern(split_words(expectation)), item, CrcUse::on).value_or("");
}

TEST(Expectation, ComparesOnlyNamedFields)
{
    // V38
    const StreamItem reply =
        item_of("4d504120494420526570204672616d6550020008c008c008706f6e67", true);
    for (const std::string_view fits :
         {"reply", "frame", "reply accept", "reply enhanced p2p", "reply rtr=read,write,send",
          "reply rtr>=write", "reply rtr~write", "reply ird=8 ord>=8 ord<=8 ord>7 ord<9 ird!=7",
          "reply pdata=\"pong\"", "reply pdata=706f6e67 pdata-len=4 pd-length=8 bytes=28",
          "reply word=0xc008c008 flags=0x50",
          "hex 4d504120494420526570204672616d6550020008c008c008706f6e67"})
        EXPECT_EQ(mismatch_of(fits, reply), "") << fits;

    EXPECT_EQ(mismatch_of("request", reply), "it is not request");
    EXPECT_EQ(mismatch_of("write-rtr", reply), "it is not write-rtr");
    EXPECT_EQ(mismatch_of("reply reject", reply), "reject is 0, wanted =1");
    EXPECT_EQ(mismatch_of("reply ird>8", reply), "ird is 8, wanted >8");
    EXPECT_EQ(mismatch_of("reply rtr=write", reply), "rtr is send,write,read, wanted =write");
    EXPECT_EQ(mismatch_of("reply rtr!=send,write,read", reply),
              "rtr is send,write,read, wanted !=send,write,read");
    EXPECT_NE(mismatch_of("reply pdata=\"ping\"", reply), "");
    EXPECT_NE(mismatch_of("hex 00", reply), "");
    EXPECT_NE(mismatch_of("close", reply), "");

    const StreamItem plain = item_of("4d504120494420526570204672616d6540010000", true);
    EXPECT_EQ(mismatch_of("reply rtr=none", plain), "it has no rtr");
    EXPECT_EQ(mismatch_of("reply enhanced=0 pdata=", plain), "");
}

TEST(Expectation, RecognizesEachRtr)
{
    const StreamItem write = item_of("000ec140000000000000000000000000a30572ab", false);
    const StreamItem send = item_of("0012414300000000000000000000000100000000587be8c4", false);
    const StreamItem null = item_of("00000000c74b6748", false);
    EXPECT_EQ(mismatch_of("write-rtr", write), "");
    EXPECT_EQ(mismatch_of("fpdu rtr", write), "");
    EXPECT_EQ(mismatch_of("write len=0", write), "");
    EXPECT_EQ(mismatch_of("any", write), "");
    EXPECT_EQ(mismatch_of("send-rtr", write), "it is not send-rtr");
    EXPECT_EQ(mismatch_of("send-rtr", send), "");
    EXPECT_EQ(mismatch_of("null", send), "it is not null");
    EXPECT_EQ(mismatch_of("null", null), "");
    EXPECT_EQ(mismatch_of("rtr", null), "");
}

TEST(Expectation, RequiresAValidCrcByDefault)
{
    const StreamItem bad = item_of("000ec140000000000000000000000000a30572ac", false);
    EXPECT_EQ(mismatch_of("write-rtr", bad), "its CRC is bad");
    EXPECT_EQ(mismatch_of("write-rtr crc=bad", bad), "");
    EXPECT_EQ(mismatch(parse_pattern(split_words("write-rtr")), bad, CrcUse::off), std::nullopt);
}

TEST(Expectation, RequiresZeroPaddingByDefault)
{
    const std::string front = "001741430000000000000000000000010000000068656c6c6f";
    const StreamItem good = item_of(front + "000000" "00000000", false);
    const StreamItem bad = item_of(front + "000100" "00000000", false);
    const auto mismatch_without_crc = [](std::string_view pattern, const StreamItem &item) {
        return mismatch(parse_pattern(split_words(pattern)), item, CrcUse::off).value_or("");
    };
    EXPECT_EQ(mismatch_without_crc("send pdata=\"hello\"", good), "");
    EXPECT_EQ(mismatch_without_crc("send pdata=\"hello\"", bad), "its pad is not zero");
    EXPECT_EQ(mismatch_without_crc("send pad=bad", bad), "");
    EXPECT_EQ(mismatch_without_crc("send pad=bad", good), "pad is zero, wanted =bad");
}

TEST(Expectation, ParsesLayerTypeAndCodeOfATerm)
{
    const StreamItem f9 =
        item_of("0016414700000000000000020000000100000000230600005cc9d979", false);
    EXPECT_EQ(mismatch_of("term 2/3/6", f9), "");
    EXPECT_EQ(mismatch_of("term 0x2/*/0x06", f9), "");
    EXPECT_EQ(mismatch_of("term", f9), "");
    EXPECT_EQ(mismatch_of("term 2/0/6", f9), "etype is 3, wanted =0");
}

} // namespace
} // namespace mpapeer
