// SPDX-License-Identifier: GPL-2.0
#include "expected_frame.hpp"

#include "check.hpp"

#include <algorithm>
#include <cstring>

using mpapeer::ByteView;
using mpapeer::EnhancedWord;

namespace {

// The early draft (section 8): A = zero-length ULPDU, B = Write, C = Read, D reserved.
constexpr std::uint32_t early_send = 0x80000000;
constexpr std::uint32_t early_write = 0x40000000;
constexpr std::uint32_t early_read = 0x00008000;

const mpapeer::MpaKey &key_of(iw_mpa_kind kind)
{
    return kind == IW_MPA_REQUEST ? mpapeer::request_key : mpapeer::reply_key;
}

/// The first error in a header (RFC 5044 section 7.1.1, RFC 6581 section 6). The caller judges Rev 0,
/// and a reject without its block is a plain reject.
iw_mpa_parse header_result(iw_mpa_kind kind, u8 flags, u8 rev, std::size_t pd_length)
{
    const bool reject = kind == IW_MPA_REPLY && flags & mpapeer::flag_reject;
    const bool enhanced = rev == 2 && flags & mpapeer::flag_enhanced;

    if (rev > 2)
        return IW_MPA_FRAME_BAD_REV;
    if (pd_length > mpapeer::max_private_data)
        return IW_MPA_FRAME_PDATA_TOO_LONG;
    if (enhanced && pd_length < mpapeer::enhanced_word_size && !reject)
        return IW_MPA_FRAME_BLOCK_MISSING;
    return IW_MPA_FRAME_COMPLETE;
}

/// mpapeer's reason to close the connection, as a result of frame.c; NEED_MORE if there is none.
iw_mpa_parse codec_result(iw_mpa_kind kind, const mpapeer::MpaFrame &frame)
{
    for (const mpapeer::FrameProblem problem : problems(frame)) {
        switch (problem) {
        case mpapeer::FrameProblem::unknown_key: return IW_MPA_FRAME_BAD_KEY;
        case mpapeer::FrameProblem::unknown_revision:
            if (frame.rev != 0) // AMB-07
                return IW_MPA_FRAME_BAD_REV;
            break;
        case mpapeer::FrameProblem::private_data_too_long: return IW_MPA_FRAME_PDATA_TOO_LONG;
        case mpapeer::FrameProblem::enhanced_word_missing:
            if (kind == IW_MPA_REQUEST || !frame.has(mpapeer::flag_reject)) // AMB-03
                return IW_MPA_FRAME_BLOCK_MISSING;
            break;
        }
    }
    return IW_MPA_FRAME_NEED_MORE;
}

} // namespace

ExpectedFrame expect_frame(iw_mpa_kind kind, ByteView bytes)
{
    ExpectedFrame expected;
    const mpapeer::MpaKey &key = key_of(kind);

    if (!std::equal(key.begin(), key.begin() + static_cast<std::ptrdiff_t>(
                                                   std::min(bytes.size(), key.size())),
                    bytes.begin())) {
        expected.result = IW_MPA_FRAME_BAD_KEY;
        return expected;
    }
    if (bytes.size() < mpapeer::mpa_header_size)
        return expected;
    mpapeer::Reader reader(bytes.subspan(mpapeer::mpa_key_size));
    const auto flags = reader.read<std::uint8_t>();
    const auto rev = reader.read<std::uint8_t>();
    const std::size_t pd_length = reader.read<std::uint16_t>();
    if (const auto result = header_result(kind, flags, rev, pd_length);
        result != IW_MPA_FRAME_COMPLETE) {
        expected.result = result;
        return expected;
    }
    expected.need += pd_length;
    if (bytes.size() < expected.need)
        return expected;

    expected.result =
        bytes.size() > expected.need ? IW_MPA_FRAME_TRAILING : IW_MPA_FRAME_COMPLETE;
    expected.flags = flags;
    expected.rev = rev;
    expected.ulp_length = pd_length;
    if (rev != 2 || !expected.has(mpapeer::flag_enhanced))
        return expected;
    if (pd_length < mpapeer::enhanced_word_size) {
        expected.block_missing = true;
        expected.ulp_length = 0;
        return expected;
    }
    expected.word = EnhancedWord::from_wire(reader.read<std::uint32_t>());
    expected.ulp_offset += mpapeer::enhanced_word_size;
    expected.ulp_length -= mpapeer::enhanced_word_size;
    return expected;
}

void check_codec(iw_mpa_kind kind, ByteView bytes, const ExpectedFrame &expected)
{
    const auto parse = mpapeer::parse_frame(bytes);

    if (!parse.frame) {
        CHECK(expected.result == IW_MPA_FRAME_BAD_KEY ||
              expected.result == IW_MPA_FRAME_NEED_MORE);
        CHECK(expected.need == IW_MPA_HDR_LEN);
        return;
    }
    const mpapeer::MpaFrame &frame = *parse.frame;
    // The caller judges a frame of the other kind
    if (frame.kind() !=
        (kind == IW_MPA_REQUEST ? mpapeer::FrameKind::request : mpapeer::FrameKind::reply)) {
        CHECK(expected.result == IW_MPA_FRAME_BAD_KEY);
        return;
    }
    if (const auto result = codec_result(kind, frame); result != IW_MPA_FRAME_NEED_MORE) {
        CHECK(expected.result == result);
        return;
    }
    CHECK(expected.need == IW_MPA_HDR_LEN + frame.pd_length);
    CHECK(expected.complete() == (parse.status == mpapeer::FrameParse::Status::complete));
    if (!expected.complete())
        return;
    CHECK(expected.need == parse.consumed);
    CHECK((expected.result == IW_MPA_FRAME_TRAILING) == (bytes.size() > parse.consumed));
    CHECK(expected.flags == frame.flags && expected.rev == frame.rev);
    CHECK(expected.word == frame.enhanced_word());
    CHECK_IF(expected.block_missing, expected.ulp_length == 0 && !expected.enhanced());
    if (!expected.block_missing)
        CHECK(std::ranges::equal(bytes.subspan(expected.ulp_offset, expected.ulp_length),
                                 frame.ulp_data()));
}

iw_mpa_enh expect_enh(std::uint32_t wire, rdma_mpa_dialect dialect)
{
    const EnhancedWord word = EnhancedWord::from_wire(wire);
    iw_mpa_enh enh;

    std::memset(&enh, 0, sizeof(enh));
    enh.ird = word.ird;
    enh.ord = word.ord;
    if (dialect == RDMA_MPA_DIALECT_EARLY_DRAFT) {
        enh.rtr = static_cast<u8>((wire & early_send ? RDMA_MPA_RTR_SEND : 0) |
                                  (wire & early_write ? RDMA_MPA_RTR_WRITE : 0) |
                                  (wire & early_read ? RDMA_MPA_RTR_READ : 0));
        enh.p2p = enh.rtr != 0;
        return enh;
    }
    enh.p2p = word.p2p;
    if (word.p2p)
        enh.rtr = static_cast<u8>((word.send_rtr ? RDMA_MPA_RTR_SEND : 0) |
                                  (word.write_rtr ? RDMA_MPA_RTR_WRITE : 0) |
                                  (word.read_rtr ? RDMA_MPA_RTR_READ : 0));
    return enh;
}

std::uint32_t expect_word(const iw_mpa_enh &enh, rdma_mpa_dialect dialect)
{
    EnhancedWord word{.ird = enh.ird, .ord = enh.ord};

    if (dialect == RDMA_MPA_DIALECT_EARLY_DRAFT)
        return word.to_wire() | (enh.rtr & RDMA_MPA_RTR_SEND ? early_send : 0) |
               (enh.rtr & RDMA_MPA_RTR_WRITE ? early_write : 0) |
               (enh.rtr & RDMA_MPA_RTR_READ ? early_read : 0);
    word.p2p = enh.p2p;
    word.send_rtr = enh.rtr & RDMA_MPA_RTR_SEND;
    word.write_rtr = enh.rtr & RDMA_MPA_RTR_WRITE;
    word.read_rtr = enh.rtr & RDMA_MPA_RTR_READ;
    return word.to_wire();
}

void WireFrame::append(ByteView bytes)
{
    CHECK(bytes.size() <= bytes_.size() - length_);
    std::copy(bytes.begin(), bytes.end(), bytes_.begin() + static_cast<std::ptrdiff_t>(length_));
    length_ += bytes.size();
}

void WireFrame::append(std::uint32_t value, unsigned octets)
{
    while (octets-- > 0) {
        const u8 octet = static_cast<u8>(value >> (8 * octets));
        append(ByteView(&octet, 1));
    }
}

WireFrame::WireFrame(iw_mpa_kind kind, u8 flags, u8 rev, std::optional<std::uint32_t> word,
                     ByteView ulp)
{
    append(key_of(kind));
    append(flags, 1);
    append(rev, 1);
    append(static_cast<std::uint32_t>(ulp.size() + (word ? mpapeer::enhanced_word_size : 0)), 2);
    if (word)
        append(*word, 4);
    append(ulp);
}

bool operator==(const iw_mpa_enh &a, const iw_mpa_enh &b)
{
    return a.ird == b.ird && a.ord == b.ord && a.rtr == b.rtr && a.p2p == b.p2p;
}
