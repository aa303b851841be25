// SPDX-License-Identifier: GPL-2.0
// Parts of the codec that the specification's vectors do not cover: CRC, odd FPDUs, cut streams.
#include "crc32c.hpp"
#include "fields.hpp"
#include "stream_decoder.hpp"

#include <gtest/gtest.h>

#include <random>

namespace mpapeer {
namespace {

Bytes bytes(std::string_view hex)
{
    return from_hex(hex).value();
}

Bytes ascii(std::string_view text)
{
    return Bytes(text.begin(), text.end());
}

TEST(Hex, IsParsedStrictly)
{
    EXPECT_EQ(from_hex("00fFa5"), (Bytes{0x00, 0xff, 0xa5}));
    EXPECT_EQ(from_hex(""), Bytes{});
    EXPECT_FALSE(from_hex("0"));
    EXPECT_FALSE(from_hex("0g"));
    EXPECT_FALSE(from_hex("00 11"));
}

/// RFC 3720 appendix B.4.
TEST(Crc32c, MatchesTheIscsiExamples)
{
    EXPECT_EQ(crc32c(Bytes(32, 0x00)), 0x8a9136aaU);
    EXPECT_EQ(crc32c(Bytes(32, 0xff)), 0x62a8ab43U);
    EXPECT_EQ(crc32c(counting_bytes(32)), 0x46dd794eU);
    EXPECT_EQ(crc32c(ascii("123456789")), 0xe3069283U);
}

/// RFC 5044 figure 5: an FPDU behind a marker, which its CRC covers; stored as 52 23 99 83.
TEST(Crc32c, MatchesTheFpduOfRfc5044)
{
    Bytes fpdu = bytes("00000000002a41430000000000000000000000010000000000");
    fpdu.resize(48);
    EXPECT_EQ(crc32c(fpdu), 0x83992352U);
}

TEST(Frame, WithAWrongKeyIsStillParsed)
{
    const Bytes wire = bytes("4d504120494420526571204672616d6640010002abcd");
    const FrameParse parse = parse_frame(wire);
    ASSERT_EQ(parse.status, FrameParse::Status::complete);
    EXPECT_EQ(parse.frame->kind(), FrameKind::unknown);
    EXPECT_EQ(parse.frame->private_data, bytes("abcd"));
    EXPECT_EQ(problems(*parse.frame), std::vector{FrameProblem::unknown_key});
    EXPECT_EQ(build_frame(*parse.frame), wire);
}

TEST(EnhancedWord, TruncatesDepthsToFourteenBits)
{
    EXPECT_EQ((EnhancedWord{.ird = 0xffff, .ord = 0xffff}.to_wire()), 0x3fff3fffU);
    for (const std::uint32_t word : {0x00000000U, 0xffffffffU, 0x80000000U, 0x40000000U,
                                     0x00008000U, 0x00004000U, 0x12343abcU})
        EXPECT_EQ(EnhancedWord::from_wire(word).to_wire(), word);
}

TEST(Fpdu, IsPaddedToFourBytes)
{
    for (std::size_t size = 0; size < 9; size++) {
        const Bytes fpdu = build_fpdu(counting_bytes(size));
        EXPECT_EQ(fpdu.size() % 4, 0U);
        EXPECT_LT(fpdu.size(), 2 + size + 4 + 4);
        ASSERT_TRUE(parse_fpdu(fpdu));
        EXPECT_TRUE(parse_fpdu(fpdu)->fpdu.crc_matches);
        EXPECT_EQ(parse_fpdu(fpdu)->consumed, fpdu.size());
    }
}

TEST(Fpdu, WithTheLargestLengthIsParsed)
{
    const Bytes fpdu = build_fpdu(Bytes(65535));
    ASSERT_TRUE(parse_fpdu(fpdu));
    EXPECT_EQ(parse_fpdu(fpdu)->fpdu.ulpdu_length, 65535);
    EXPECT_FALSE(parse_fpdu(ByteView(fpdu).first(fpdu.size() - 1)));
}

TEST(Fpdu, CanBeBuiltWithInvalidFields)
{
    Ulpdu write = make_ulpdu(UlpduKind::write);
    const Bytes good = build_fpdu(encode_ulpdu(write));
    EXPECT_EQ(to_hex(build_fpdu(encode_ulpdu(write), {.use_crc = false})),
              to_hex(good).substr(0, 32) + "00000000");
    EXPECT_FALSE(
        parse_fpdu(build_fpdu(encode_ulpdu(write), {.spoil_crc = true}))->fpdu.crc_matches);
    EXPECT_EQ(parse_fpdu(build_fpdu(encode_ulpdu(write), {.crc = 0x01020304}))->fpdu.crc,
              0x01020304U);
    EXPECT_FALSE(parse_fpdu(build_fpdu(encode_ulpdu(write), {.ulpdu_length = 0xffff})));
}

TEST(Ulpdu, TooShortOrOfAnUnknownOpcodeIsNotParsed)
{
    for (const std::string_view hex : {"c1", "c140", "4143000000000000000000000001000000",
                                       "4141000000000000000100000001000000000000", "c143",
                                       "414f000000000000000000000001000000000000"}) {
        const Ulpdu ulpdu = decode_ulpdu(bytes(hex));
        EXPECT_EQ(ulpdu.kind, UlpduKind::unknown) << hex;
        EXPECT_EQ(encode_ulpdu(ulpdu), bytes(hex));
    }
}

TEST(Ulpdu, RandomBytesSurviveARoundTrip)
{
    std::mt19937 random(6581);
    for (int i = 0; i < 20000; i++) {
        Bytes content(random() % 80);
        for (std::uint8_t &byte : content)
            byte = static_cast<std::uint8_t>(random());
        EXPECT_EQ(encode_ulpdu(decode_ulpdu(content)), content);
        if (const auto parse = parse_fpdu(content)) {
            EXPECT_LE(parse->consumed, content.size());
        }
        if (const FrameParse parse = parse_frame(content); parse.frame) {
            EXPECT_LE(parse.consumed, content.size());
            EXPECT_LE(build_frame(*parse.frame).size(), content.size());
        }
    }
}

/// Request with private data, Write RTR, Send with data, one byte more.
Bytes example_stream()
{
    Bytes stream = bytes("4d504120494420526571204672616d6550020008c008c00870696e67");
    append(stream, ByteView(build_fpdu(encode_ulpdu(make_ulpdu(UlpduKind::write)))));
    Ulpdu send = make_ulpdu(UlpduKind::send);
    send.payload = ascii("hello");
    append(stream, ByteView(build_fpdu(encode_ulpdu(send))));
    stream.push_back(0xee);
    return stream;
}

std::vector<std::string> decode_in_pieces(ByteView stream, std::size_t size)
{
    StreamDecoder decoder;
    std::vector<std::string> lines;
    while (!stream.empty()) {
        const std::size_t piece = std::min(size, stream.size());
        decoder.feed(stream.first(piece));
        stream = stream.subspan(piece);
        while (const auto item = decoder.next())
            lines.push_back(describe(*item, CrcUse::on) + " " + to_hex(item->raw));
    }
    EXPECT_EQ(to_hex(decoder.pending()), "ee");
    return lines;
}

TEST(StreamDecoder, GivesEqualResultsForEverySplitOfTheStream)
{
    const Bytes stream = example_stream();
    const std::vector<std::string> whole = decode_in_pieces(stream, stream.size());
    ASSERT_EQ(whole.size(), 3U);
    EXPECT_TRUE(whole[0].starts_with("request rev=2 markers=0 crc=1 reject=0 enhanced=1 "
                                     "pd-length=8 p2p=1 rtr=send,write,read ird=8 ord=8 "
                                     "pdata-len=4 pdata=70696e67 \"ping\""))
        << whole[0];
    EXPECT_TRUE(whole[1].starts_with("fpdu write stag=0x0 to=0x0 len=0 crc=ok")) << whole[1];
    EXPECT_TRUE(whole[2].starts_with("fpdu send qn=0 msn=1 mo=0 len=5 pdata=68656c6c6f \"hello\" "
                                     "crc=ok"))
        << whole[2];
    for (std::size_t size = 1; size < stream.size(); size++)
        EXPECT_EQ(decode_in_pieces(stream, size), whole) << size;
}

TEST(StreamDecoder, ShowsAnIncompleteFrame)
{
    StreamDecoder decoder;
    decoder.feed(bytes("4d504120494420526571204672616d6550020201"));
    EXPECT_FALSE(decoder.next());
    ASSERT_TRUE(decoder.partial_frame());
    EXPECT_EQ(describe_partial(*decoder.partial_frame()),
              "part of request rev=2 markers=0 crc=1 reject=0 enhanced=1 pd-length=513 "
              "pdata-len=0 !private data too long");
}

TEST(Fields, DistinguishBadFromUnusedCrcs)
{
    const Bytes spoilt = build_fpdu({}, {.spoil_crc = true});
    const Fpdu fpdu = parse_fpdu(spoilt)->fpdu;
    const Fields checked = fpdu_fields(fpdu, CrcUse::on);
    const Fields unchecked = fpdu_fields(fpdu, CrcUse::off);
    EXPECT_EQ(std::get<std::string>(find_field(checked, "crc")->value), "bad");
    EXPECT_EQ(std::get<std::string>(find_field(unchecked, "crc")->value), "unused");
}

} // namespace
} // namespace mpapeer
