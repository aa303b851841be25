// SPDX-License-Identifier: GPL-2.0
// Every worked vector of the specification, read and written. The expected values were taken from
// the specification's decoded column, not from this program.
#include "fpdu.hpp"
#include "mpa_frame.hpp"
#include "statement.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <optional>
#include <ostream>
#include <string>
#include <variant>
#include <vector>

namespace mpapeer {
namespace {

Bytes bytes(std::string_view hex)
{
    return from_hex(hex).value();
}

Bytes text(std::string_view content)
{
    return Bytes(content.begin(), content.end());
}

Bytes concat(Bytes front, ByteView back)
{
    append(front, back);
    return front;
}

struct FrameVector {
    std::string name;
    FrameKind kind;
    std::string tail;     ///< the bytes after the key
    std::size_t counting; ///< counting bytes that follow the tail
    std::uint8_t flags;
    std::uint8_t rev;
    std::uint16_t pd_length;
    std::optional<EnhancedWord> word;
    Bytes ulp_data;

    Bytes wire() const
    {
        Bytes wire = kind == FrameKind::request ? bytes("4d504120494420526571204672616d65")
                                                : bytes("4d504120494420526570204672616d65");
        append(wire, ByteView(bytes(tail)));
        append(wire, ByteView(counting_bytes(counting)));
        return wire;
    }
};

std::ostream &operator<<(std::ostream &out, const FrameVector &vector)
{
    return out << vector.name;
}

const FrameVector frame_vectors[] = {
    {"V01", FrameKind::request, "40010000", 0, 0x40, 1, 0,
     std::nullopt, {}},
    {"V02", FrameKind::request, "00010000", 0, 0x00, 1, 0,
     std::nullopt, {}},
    {"V03", FrameKind::request, "c001000568656c6c6f", 0, 0xc0, 1, 5,
     std::nullopt, text("hello")},
    {"V04", FrameKind::request, "40020003686921", 0, 0x40, 2, 3,
     std::nullopt, text("hi!")},
    {"V05", FrameKind::request, "5002000400080004", 0, 0x50, 2, 4,
     EnhancedWord{false, false, false, false, 8, 4}, {}},
    {"V07", FrameKind::request, "50020004c0080008", 0, 0x50, 2, 4,
     EnhancedWord{true, true, false, false, 8, 8}, {}},
    {"V08", FrameKind::request, "5002000480088008", 0, 0x50, 2, 4,
     EnhancedWord{true, false, true, false, 8, 8}, {}},
    {"V09", FrameKind::request, "5002000480084008", 0, 0x50, 2, 4,
     EnhancedWord{true, false, false, true, 8, 8}, {}},
    {"V10", FrameKind::request, "50020004c0088008", 0, 0x50, 2, 4,
     EnhancedWord{true, true, true, false, 8, 8}, {}},
    {"V11", FrameKind::request, "50020004c0084008", 0, 0x50, 2, 4,
     EnhancedWord{true, true, false, true, 8, 8}, {}},
    {"V12", FrameKind::request, "500200048008c008", 0, 0x50, 2, 4,
     EnhancedWord{true, false, true, true, 8, 8}, {}},
    {"V13", FrameKind::request, "50020008c008c00870696e67", 0, 0x50, 2, 8,
     EnhancedWord{true, true, true, true, 8, 8}, text("ping")},
    {"V14", FrameKind::request, "5002000480080008", 0, 0x50, 2, 4,
     EnhancedWord{true, false, false, false, 8, 8}, {}},
    {"V15", FrameKind::request, "500200043fff3fff", 0, 0x50, 2, 4,
     EnhancedWord{false, false, false, false, 0x3fff, 0x3fff}, {}},
    {"V16", FrameKind::request, "500200043fff0004", 0, 0x50, 2, 4,
     EnhancedWord{false, false, false, false, 0x3fff, 4}, {}},
    {"V17", FrameKind::request, "500200048004bfff", 0, 0x50, 2, 4,
     EnhancedWord{true, false, true, false, 4, 0x3fff}, {}},
    {"V18", FrameKind::request, "50020004fffefffe", 0, 0x50, 2, 4,
     EnhancedWord{true, true, true, true, 16382, 16382}, {}},
    {"V19", FrameKind::request, "5002000480004000", 0, 0x50, 2, 4,
     EnhancedWord{true, false, false, true, 0, 0}, {}},
    {"V20", FrameKind::request, "500202008020c020", 508, 0x50, 2, 512,
     EnhancedWord{true, false, true, true, 32, 32}, counting_bytes(508)},
    {"V21", FrameKind::request, "40010200", 512, 0x40, 1, 512,
     std::nullopt, counting_bytes(512)},
    {"V22", FrameKind::request, "500200044008c008", 0, 0x50, 2, 4,
     EnhancedWord{false, true, true, true, 8, 8}, {}},
    {"V23", FrameKind::request, "5001000464617461", 0, 0x50, 1, 4,
     std::nullopt, text("data")},
    {"V24", FrameKind::request, "500200028008", 0, 0x50, 2, 2,
     std::nullopt, bytes("8008")},
    {"V25", FrameKind::request, "5002020100080004", 0, 0x50, 2, 513,
     EnhancedWord{false, false, false, false, 8, 4}, {}},
    {"V26", FrameKind::request, "5003000400080004", 0, 0x50, 3, 4,
     EnhancedWord{false, false, false, false, 8, 4}, {}},
    {"V27", FrameKind::request, "5f02000400080004", 0, 0x5f, 2, 4,
     EnhancedWord{false, false, false, false, 8, 4}, {}},
    {"V30", FrameKind::reply, "40010000", 0, 0x40, 1, 0,
     std::nullopt, {}},
    {"V31", FrameKind::reply, "600100026e6f", 0, 0x60, 1, 2,
     std::nullopt, text("no")},
    {"V32", FrameKind::reply, "40020000", 0, 0x40, 2, 0,
     std::nullopt, {}},
    {"V33", FrameKind::reply, "5002000400040008", 0, 0x50, 2, 4,
     EnhancedWord{false, false, false, false, 4, 8}, {}},
    {"V34", FrameKind::reply, "50020004c0080008", 0, 0x50, 2, 4,
     EnhancedWord{true, true, false, false, 8, 8}, {}},
    {"V35", FrameKind::reply, "5002000480088008", 0, 0x50, 2, 4,
     EnhancedWord{true, false, true, false, 8, 8}, {}},
    {"V36", FrameKind::reply, "5002000480014000", 0, 0x50, 2, 4,
     EnhancedWord{true, false, false, true, 1, 0}, {}},
    {"V37", FrameKind::reply, "500200048008c008", 0, 0x50, 2, 4,
     EnhancedWord{true, false, true, true, 8, 8}, {}},
    {"V38", FrameKind::reply, "50020008c008c008706f6e67", 0, 0x50, 2, 8,
     EnhancedWord{true, true, true, true, 8, 8}, text("pong")},
    {"V39", FrameKind::reply, "500200043fff3fff", 0, 0x50, 2, 4,
     EnhancedWord{false, false, false, false, 0x3fff, 0x3fff}, {}},
    {"V40", FrameKind::reply, "5002000400043fff", 0, 0x50, 2, 4,
     EnhancedWord{false, false, false, false, 4, 0x3fff}, {}},
    {"V41", FrameKind::reply, "50020004bfff8004", 0, 0x50, 2, 4,
     EnhancedWord{true, false, true, false, 0x3fff, 4}, {}},
    {"V42", FrameKind::reply, "7002000400040020", 0, 0x70, 2, 4,
     EnhancedWord{false, false, false, false, 4, 32}, {}},
    {"V43", FrameKind::reply, "700200088008c00862757379", 0, 0x70, 2, 8,
     EnhancedWord{true, false, true, true, 8, 8}, text("busy")},
    {"V44", FrameKind::reply, "5002000400040040", 0, 0x50, 2, 4,
     EnhancedWord{false, false, false, false, 4, 64}, {}},
    {"V45", FrameKind::reply, "5002000480084008", 0, 0x50, 2, 4,
     EnhancedWord{true, false, false, true, 8, 8}, {}},
    {"V46", FrameKind::reply, "5002020080208020", 508, 0x50, 2, 512,
     EnhancedWord{true, false, true, false, 32, 32}, counting_bytes(508)},
    {"V47", FrameKind::reply, "5002000400080008", 0, 0x50, 2, 4,
     EnhancedWord{false, false, false, false, 8, 8}, {}},
    {"V48", FrameKind::reply, "4001000400080004", 0, 0x40, 1, 4,
     std::nullopt, bytes("00080004")},
    {"V49", FrameKind::reply, "70020000", 0, 0x70, 2, 0,
     std::nullopt, {}},
    {"V50", FrameKind::reply, "5002000480080008", 0, 0x50, 2, 4,
     EnhancedWord{true, false, false, false, 8, 8}, {}},
};

std::string rtr_list(const EnhancedWord &word)
{
    std::vector<std::string> names = {"none"};
    if (word.send_rtr)
        names.emplace_back("send");
    if (word.write_rtr)
        names.emplace_back("write");
    if (word.read_rtr)
        names.emplace_back("read");
    return fmt::format("{}", fmt::join(names, ","));
}

/// The statement of a scenario that sends this vector.
std::string send_statement(const FrameVector &vector)
{
    std::string words = fmt::format(
        "send {} markers={} crc={} reject={} enhanced={} res={} rev={} pd-length={} pdata={}",
        vector.kind == FrameKind::request ? "request" : "reply", vector.flags >> 7 & 1,
        vector.flags >> 6 & 1, vector.flags >> 5 & 1, vector.flags >> 4 & 1, vector.flags & 0xf,
        vector.rev, vector.pd_length, to_hex(vector.ulp_data));
    if (vector.word)
        words += fmt::format(" p2p={} rtr={} ird={} ord={}", vector.word->p2p ? 1 : 0,
                             rtr_list(*vector.word), vector.word->ird, vector.word->ord);
    else
        words += " no-word";
    return words;
}

Bytes bytes_sent_by(const std::string &line)
{
    const auto action = parse_statement(split_words(line));
    return std::get<Bytes>(std::get<statement::Send>(action).what);
}

class Frames : public testing::TestWithParam<FrameVector> {};

TEST_P(Frames, AreParsed)
{
    const FrameVector &vector = GetParam();
    const Bytes wire = vector.wire();
    const FrameParse parse = parse_frame(wire);
    ASSERT_TRUE(parse.frame);
    const MpaFrame &frame = *parse.frame;

    EXPECT_EQ(frame.kind(), vector.kind);
    EXPECT_EQ(frame.flags, vector.flags);
    EXPECT_EQ(frame.rev, vector.rev);
    EXPECT_EQ(frame.pd_length, vector.pd_length);
    EXPECT_EQ(frame.enhanced_word(), vector.word);
    const ByteView data = frame.ulp_data();
    EXPECT_EQ(Bytes(data.begin(), data.end()), vector.ulp_data);

    const bool complete = wire.size() >= mpa_header_size + std::size_t{vector.pd_length};
    EXPECT_EQ(parse.status, complete ? FrameParse::Status::complete
                                     : FrameParse::Status::need_private_data);
    EXPECT_EQ(parse.consumed, complete ? wire.size() : 0);
}

TEST_P(Frames, AreBuilt)
{
    const FrameVector &vector = GetParam();
    MpaFrame frame;
    frame.key = vector.kind == FrameKind::request ? request_key : reply_key;
    frame.flags = vector.flags;
    frame.rev = vector.rev;
    frame.pd_length = vector.pd_length;
    if (vector.word)
        append(frame.private_data, vector.word->to_wire());
    append(frame.private_data, ByteView(vector.ulp_data));
    EXPECT_EQ(to_hex(build_frame(frame)), to_hex(vector.wire()));
}

TEST_P(Frames, CanBeSentByAScenario)
{
    EXPECT_EQ(to_hex(bytes_sent_by(send_statement(GetParam()))), to_hex(GetParam().wire()));
}

TEST_P(Frames, AreIncompleteIfTruncated)
{
    const Bytes wire = GetParam().wire();
    for (std::size_t size = 0; size < wire.size(); size++) {
        const FrameParse parse = parse_frame(ByteView(wire).first(size));
        EXPECT_EQ(parse.status, size < mpa_header_size ? FrameParse::Status::need_header
                                                       : FrameParse::Status::need_private_data);
        EXPECT_EQ(parse.frame.has_value(), size >= mpa_header_size);
    }
}

std::string frame_name(const testing::TestParamInfo<FrameVector> &info)
{
    return info.param.name;
}

INSTANTIATE_TEST_SUITE_P(Vectors, Frames, testing::ValuesIn(frame_vectors), frame_name);

std::vector<FrameProblem> problems_of(std::string_view name)
{
    for (const FrameVector &vector : frame_vectors) {
        if (vector.name == name)
            return problems(*parse_frame(vector.wire()).frame);
    }
    ADD_FAILURE() << "no vector " << name;
    return {};
}

TEST(FrameProblems, AreReportedForInvalidFramesOnly)
{
    using List = std::vector<FrameProblem>;
    EXPECT_EQ(problems_of("V24"), List{FrameProblem::enhanced_word_missing});
    EXPECT_EQ(problems_of("V25"), List{FrameProblem::private_data_too_long});
    EXPECT_EQ(problems_of("V26"), List{FrameProblem::unknown_revision});
    EXPECT_EQ(problems_of("V49"), List{FrameProblem::enhanced_word_missing});
    for (const FrameVector &vector : frame_vectors) {
        const bool sound = vector.name != "V24" && vector.name != "V25" && vector.name != "V26" &&
                           vector.name != "V49";
        EXPECT_EQ(problems_of(vector.name).empty(), sound) << vector.name;
    }
}

/// The older dialect is read by the rules of RFC 6581.
struct OldVector {
    std::string_view name;
    std::string_view tail;
    EnhancedWord word;
};

TEST(OldDialect, IsParsedAsRfc6581)
{
    const OldVector vectors[] = {
        {"O1", "5002000440080008", {false, true, false, false, 8, 8}},
        {"O2", "50020004c0088008", {true, true, true, false, 8, 8}},
        {"O3", "5002000400088008", {false, false, true, false, 8, 8}},
        {"O4", "5002000480080008", {true, false, false, false, 8, 8}},
        {"O5", "5002000400080008", {false, false, false, false, 8, 8}},
    };
    for (const OldVector &vector : vectors) {
        const Bytes wire = concat(Bytes(request_key.begin(), request_key.end()),
                                  bytes(vector.tail));
        EXPECT_EQ(parse_frame(wire).frame->enhanced_word(), vector.word) << vector.name;
    }
}

/// Over SCTP the same word stands behind a function code (RFC 6581 section 7).
TEST(SctpControl, CarriesTheEnhancedWord)
{
    const EnhancedWord s1{true, false, true, true, 8, 8};
    const EnhancedWord s2{true, false, true, false, 8, 8};
    const EnhancedWord s3{true, false, true, false, 4, 32};
    const auto payload = [](std::uint16_t code, std::optional<EnhancedWord> word,
                            std::string_view data) {
        Bytes out;
        append(out, code);
        if (word)
            append(out, word->to_wire());
        append(out, ByteView(text(data)));
        return to_hex(out);
    };
    EXPECT_EQ(payload(5, s1, "ping"), "00058008c00870696e67");
    EXPECT_EQ(payload(6, s2, ""), "000680088008");
    EXPECT_EQ(payload(7, s3, "no"), "0007800480206e6f");
    EXPECT_EQ(payload(4, std::nullopt, ""), "0004");
    EXPECT_EQ(payload(1, std::nullopt, "ping"), "000170696e67");
    EXPECT_EQ(EnhancedWord::from_wire(0x8008c008), s1);
    EXPECT_EQ(EnhancedWord::from_wire(0x80088008), s2);
    EXPECT_EQ(EnhancedWord::from_wire(0x80048020), s3);
}

struct FpduVector {
    std::string name;
    std::string hex;
    std::string statement; ///< of a scenario, on a fresh connection with CRCs
    UlpduKind kind;
    std::uint16_t ulpdu_length;
    bool rtr;
};

std::ostream &operator<<(std::ostream &out, const FpduVector &vector)
{
    return out << vector.name;
}

const FpduVector fpdu_vectors[] = {
    {"F1", "000ec140000000000000000000000000a30572ab", "send rtr write", UlpduKind::write, 14,
     true},
    {"F2",
     "002e41410000000000000001000000010000000000000000000000000000000000000000000000000000000000"
     "000000f2c6dd3d",
     "send rtr read", UlpduKind::read_request, 46, true},
    {"F3", "0012414300000000000000000000000100000000587be8c4", "send rtr send", UlpduKind::send,
     18, true},
    {"F4", "00000000c74b6748", "send rtr null", UlpduKind::null, 0, true},
    {"F5", "000ec1420000000000000000000000006975d6ca", "send read-response",
     UlpduKind::read_response, 14, false},
    {"F6", "0016414700000000000000020000000100000000200500001680d5f1", "send term 2/0/5",
     UlpduKind::term, 22, false},
    {"F7", "0016414700000000000000020000000100000000200600006540fb1b", "send term 2/0/6",
     UlpduKind::term, 22, false},
    {"F8", "0016414700000000000000020000000100000000200700001bd2babe", "send term 2/0/7",
     UlpduKind::term, 22, false},
    {"F9", "0016414700000000000000020000000100000000230600005cc9d979", "send term 2/3/6",
     UlpduKind::term, 22, false},
};

class Fpdus : public testing::TestWithParam<FpduVector> {};

TEST_P(Fpdus, AreParsed)
{
    const FpduVector &vector = GetParam();
    const Bytes wire = bytes(vector.hex);
    const auto parse = parse_fpdu(wire);
    ASSERT_TRUE(parse);
    EXPECT_EQ(parse->consumed, wire.size());
    EXPECT_EQ(parse->fpdu.ulpdu.kind, vector.kind);
    EXPECT_EQ(parse->fpdu.ulpdu_length, vector.ulpdu_length);
    EXPECT_EQ(is_rtr(parse->fpdu.ulpdu), vector.rtr);
    EXPECT_TRUE(parse->fpdu.crc_matches);
    EXPECT_TRUE(parse->fpdu.ulpdu.payload.empty());
}

TEST_P(Fpdus, AreBuilt)
{
    const FpduVector &vector = GetParam();
    const auto action = parse_statement(split_words(vector.statement));
    const auto &fpdu = std::get<FpduToSend>(std::get<statement::Send>(action).what);
    EXPECT_EQ(to_hex(build_fpdu(encode_ulpdu(fpdu.ulpdu), fpdu.options)), vector.hex);
    EXPECT_EQ(decode_ulpdu(encode_ulpdu(fpdu.ulpdu)), fpdu.ulpdu);
}

TEST_P(Fpdus, AreIncompleteIfTruncated)
{
    const Bytes wire = bytes(GetParam().hex);
    for (std::size_t size = 0; size < wire.size(); size++)
        EXPECT_FALSE(parse_fpdu(ByteView(wire).first(size))) << size;
}

TEST_P(Fpdus, DetectEveryFlippedBit)
{
    constexpr std::size_t length_field_bits = 16;
    const Bytes wire = bytes(GetParam().hex);
    for (std::size_t bit = length_field_bits; bit < wire.size() * 8; bit++) {
        Bytes spoilt = wire;
        spoilt[bit / 8] ^= static_cast<std::uint8_t>(0x80U >> bit % 8);
        const auto parse = parse_fpdu(spoilt);
        ASSERT_TRUE(parse);
        EXPECT_FALSE(parse->fpdu.crc_matches) << "bit " << bit;
    }
}

std::string fpdu_name(const testing::TestParamInfo<FpduVector> &info)
{
    return info.param.name;
}

INSTANTIATE_TEST_SUITE_P(Vectors, Fpdus, testing::ValuesIn(fpdu_vectors), fpdu_name);

TEST(FpduFields, DecodeAReadRtr)
{
    const auto parse = parse_fpdu(bytes(fpdu_vectors[1].hex));
    EXPECT_EQ(parse->fpdu.ulpdu.untagged, (UntaggedHeader{0, 1, 1, 0}));
    EXPECT_EQ(parse->fpdu.ulpdu.read, ReadRequest{});
}

/// RFC 5040 section 4.8 puts M, D and R at bits 16 to 18 of the Terminate header.
TEST(FpduFields, DecodeATermWithHeaderControlBits)
{
    Ulpdu term = make_ulpdu(UlpduKind::term);
    term.term = {.layer = 2, .etype = 0, .code = 7, .hdrct = 5, .reserved = 1};
    const Bytes ulpdu = encode_ulpdu(term);
    EXPECT_EQ(to_hex(ByteView(ulpdu).last(4)), "2007a001");
    EXPECT_EQ(decode_ulpdu(ulpdu), term);
}

TEST(FpduFields, DecodeATerm)
{
    const auto parse = parse_fpdu(bytes(fpdu_vectors[8].hex));
    EXPECT_EQ(parse->fpdu.ulpdu.untagged, (UntaggedHeader{0, 2, 1, 0}));
    EXPECT_EQ(parse->fpdu.ulpdu.term, (Terminate{2, 3, 6, 0, 0}));
}

} // namespace
} // namespace mpapeer
