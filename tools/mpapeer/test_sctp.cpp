// SPDX-License-Identifier: GPL-2.0
// iWARP over SCTP: the vectors S1 to S5 of the specification, the statements, and scenarios played
// against each other over the kernel's SCTP.
#include "player.hpp"
#include "session_message.hpp"

#include <gtest/gtest.h>

#include <future>
#include <ostream>
#include <sstream>
#include <string>

#include <netinet/in.h>
#include <sys/socket.h>

namespace mpapeer {
namespace {

// ---- vectors; the expected values are those of the specification's decoded column

struct MessageVector {
    std::string name;
    std::string wire;
    std::string statement;
    std::uint16_t code;
    std::string kind;
    std::optional<EnhancedWord> word;
    std::string ulp_data;
};

std::ostream &operator<<(std::ostream &out, const MessageVector &vector)
{
    return out << vector.name;
}

class SessionMessages : public testing::TestWithParam<MessageVector> {};

TEST_P(SessionMessages, AreParsed)
{
    const MessageVector &vector = GetParam();
    const auto message = parse_session_message(from_hex(vector.wire).value());
    ASSERT_TRUE(message);
    EXPECT_EQ(message->code, vector.code);
    EXPECT_EQ(message->kind(), vector.kind);
    EXPECT_EQ(message->enhanced_word(), vector.word);
    EXPECT_EQ(std::string(message->ulp_data().begin(), message->ulp_data().end()), vector.ulp_data);
    EXPECT_TRUE(problems(*message).empty());
}

TEST_P(SessionMessages, AreBuilt)
{
    const std::vector<std::string> words = split_words(GetParam().statement);
    const statement::Send send = parse_send(std::span(words).subspan(1));
    EXPECT_EQ(send.llp, Llp::sctp);
    EXPECT_EQ(to_hex(build_session_message(std::get<SessionMessage>(send.what))), GetParam().wire);
}

INSTANTIATE_TEST_SUITE_P(
    Session, SessionMessages,
    testing::Values(
        MessageVector{"S1", "00058008c00870696e67",
                      "send initiate p2p rtr=write,read ird=8 ord=8 pdata=\"ping\"", 5, "initiate",
                      EnhancedWord{true, false, true, true, 8, 8}, "ping"},
        MessageVector{"S2", "000680088008", "send accept p2p rtr=write ird=8 ord=8", 6, "accept",
                      EnhancedWord{true, false, true, false, 8, 8}, ""},
        MessageVector{"S3", "0007800480206e6f",
                      "send reject p2p rtr=write ird=4 ord=32 pdata=\"no\"", 7, "reject",
                      EnhancedWord{true, false, true, false, 4, 32}, "no"},
        MessageVector{"S4", "0004", "send terminate", 4, "terminate", std::nullopt, ""},
        MessageVector{"S5", "000170696e67", "send initiate pdata=\"ping\"", 1, "initiate",
                      std::nullopt, "ping"}));

// ---- codec

std::string problem_of(std::string_view hex)
{
    const auto found = problems(parse_session_message(from_hex(hex).value()).value());
    return found.size() == 1 ? std::string(to_string(found[0])) : std::to_string(found.size());
}

TEST(SessionMessage, ReportsInvalidFields)
{
    EXPECT_EQ(problem_of("0000"), "unknown code");
    EXPECT_EQ(problem_of("0008"), "unknown code");
    EXPECT_EQ(problem_of("000400"), "terminate with private data");
    EXPECT_EQ(problem_of("0005"), "enhanced word missing");
    EXPECT_EQ(problem_of("0006000800"), "enhanced word missing");
    EXPECT_EQ(problem_of("0007000800"), "enhanced word missing");
    EXPECT_EQ(problem_of("0007"), "0"); // AMB-20
    EXPECT_EQ(problem_of("0001" + std::string(1024, '0')), "0");
    EXPECT_EQ(problem_of("0001" + std::string(1026, '0')), "private data too long");
}

TEST(SessionMessage, WithoutAFunctionCodeIsNotParsed)
{
    EXPECT_FALSE(parse_session_message({}));
    EXPECT_FALSE(parse_session_message(Bytes{0}));
}

// ---- statements

std::string error_of(std::string_view text)
{
    try {
        check_llp(parse_scenario("s", text), Llp::sctp);
    } catch (const ScenarioError &error) {
        return error.what();
    }
    return "";
}

TEST(SctpScenario, EveryStatementOfSctpIsParsed)
{
    EXPECT_EQ(error_of("within 5s\n"
                       "association adaptation=none window=4096\n"
                       "send initiate enhanced ssn=7 ppid=16 stream=1 ordered fragmented pdata-len=600\n"
                       "send accept word=0x80088008 code=9 first=3\n"
                       "send reject enhanced no-word\n"
                       "send terminate\n"
                       "send hex 00 11 ordered ssn=0xffff\n"
                       "send segment send \"x\" last=0 ssn=2 ppid=17\n"
                       "send segment term 2/0/6\n"
                       "expect initiate enhanced ssn=0 ppid=17 ordered=0 code=5 pdata=\"x\"\n"
                       "expect accept rtr~write ird>=8 or reject or terminate or control code=9\n"
                       "expect segment send pdata=\"x\" ssn=1 stream=0 or shutdown or abort drain\n"
                       "expect adaptation 1\nexpect adaptation none\n"
                       "reading off\nreading on\nvanish\nabort\nshutdown\n"),
              "");
}

TEST(SctpScenario, RejectsStatementsThatSctpDoesNotHave)
{
    EXPECT_EQ(error_of("send request\n"), "s:1: this statement needs --llp tcp");
    EXPECT_EQ(error_of("\nsend fpdu send 00\n"), "s:2: this statement needs --llp tcp");
    EXPECT_EQ(error_of("glue\n"), "s:1: this statement needs --llp tcp");
    EXPECT_EQ(error_of("send initiate\nassociation adaptation=2\n"),
              "s:2: association must precede all statements that need a connection");
    EXPECT_EQ(error_of("association colour=2\n"), "s:1: 'colour=2' is not a setting of an association");
    EXPECT_EQ(error_of("send initiate crc\n"),
              "s:1: 'crc' is not a setting of a session control message");
    EXPECT_EQ(error_of("expect initiate crc=1\n"), "s:1: initiate has no field 'crc'");
    EXPECT_THROW(check_llp(parse_scenario("s", "send initiate\n"), Llp::tcp), ScenarioError);
}

// ---- over the kernel's SCTP

bool kernel_has_sctp()
{
    return FileDescriptor(::socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP)).is_open();
}

struct Outcome {
    bool passed = false;
    std::string transcript;
};

Outcome play(Player &player, const std::ostringstream &out)
{
    const bool passed = player.play();
    return {passed, out.str()};
}

void expect_results(std::string_view initiator_text, bool initiator_passes,
                    std::string_view responder_text, bool responder_passes)
{
    const Scenario responder_scenario = parse_scenario("responder", responder_text);
    std::ostringstream responder_out;
    Player responder(responder_scenario, {.listen = HostPort{"127.0.0.1", "0"}, .llp = Llp::sctp},
                     responder_out);
    auto future = std::async(std::launch::async, [&] { return play(responder, responder_out); });
    const Scenario initiator_scenario = parse_scenario("initiator", initiator_text);
    std::ostringstream initiator_out;
    Player initiator(initiator_scenario,
                     {.connect = parse_host_port(responder.listening_on()), .llp = Llp::sctp},
                     initiator_out);
    const Outcome first = play(initiator, initiator_out);
    const Outcome second = future.get();
    EXPECT_EQ(first.passed, initiator_passes) << first.transcript;
    EXPECT_EQ(second.passed, responder_passes) << second.transcript;
}

class KernelSctp : public testing::Test {
protected:
    void SetUp() override
    {
        if (!kernel_has_sctp())
            GTEST_SKIP() << "this kernel has no SCTP; the suite wire-sctp runs mpapeer over it";
    }
};

TEST_F(KernelSctp, PlaysBothRoles)
{
    expect_results("send initiate ird=8 ord=4 pdata=\"ping\"\n"
                   "expect accept enhanced ird=4 ord=8 ssn=0\n"
                   "expect segment send pdata=\"first\" ssn=1\n"
                   "send terminate ssn=2\n"
                   "send segment send \"hello\" ssn=1\n"
                   "expect shutdown\n",
                   true,
                   "expect adaptation 1\n"
                   "expect initiate enhanced pdata=\"ping\"\n"
                   "send accept ird=4 ord=8\n"
                   "send segment send \"first\"\n"
                   "expect segment send pdata=\"hello\"\n"
                   "expect terminate\n"
                   "shutdown\n",
                   true);
}

TEST_F(KernelSctp, ReportsOrderedChunksAndAborts)
{
    expect_results("send initiate ordered\nsend initiate\nabort\n", true,
                   "expect initiate ordered\nexpect initiate\nexpect abort\n", true);
    expect_results("send initiate ordered\nexpect abort or shutdown\n", true,
                   "expect initiate\n", false);
}

TEST_F(KernelSctp, ReportsAdaptationIndications)
{
    expect_results("association adaptation=none\nexpect initiate\n", true,
                   "send initiate\nexpect adaptation none\n", false);
    expect_results("association adaptation=7\nexpect initiate\n", true,
                   "expect adaptation 7\nsend initiate\nwait 100ms\n", true);
}

TEST_F(KernelSctp, SendsFragments)
{
    expect_results("send initiate fragmented pdata-len=510\nexpect close\n", true,
                   "expect initiate pdata-len=510\n", true);
    expect_results("send initiate fragmented\n", false, "expect close\n", true);
}

} // namespace
} // namespace mpapeer
