// SPDX-License-Identifier: GPL-2.0
#include "expected_frame.hpp"

#include <algorithm>
#include <cstring>

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

bool is_reject(iw_mpa_kind kind, const mpapeer::MpaFrame &frame)
{
    return kind == IW_MPA_REPLY && frame.has(mpapeer::flag_reject);
}

/// mpapeer names everything that a receiver may close for. Of two of these frame.c lets its
/// caller decide: Rev 0 (AMB-07), and a reject without its block (AMB-03).
iw_mpa_parse header_result(iw_mpa_kind kind, const mpapeer::MpaFrame &frame)
{
    for (mpapeer::FrameProblem problem : problems(frame)) {
        switch (problem) {
        case mpapeer::FrameProblem::unknown_key:
            return IW_MPA_FRAME_BAD_KEY;
        case mpapeer::FrameProblem::unknown_revision:
            if (frame.rev != 0)
                return IW_MPA_FRAME_BAD_REV;
            break;
        case mpapeer::FrameProblem::private_data_too_long:
            return IW_MPA_FRAME_PDATA_TOO_LONG;
        case mpapeer::FrameProblem::enhanced_word_missing:
            if (!is_reject(kind, frame))
                return IW_MPA_FRAME_BLOCK_MISSING;
            break;
        }
    }
    return IW_MPA_FRAME_COMPLETE;
}

} // namespace

ExpectedFrame expect_frame(iw_mpa_kind kind, mpapeer::ByteView bytes)
{
    ExpectedFrame expected;
    const std::size_t key_bytes = std::min<std::size_t>(bytes.size(), IW_MPA_KEY_LEN);

    if (!std::equal(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(key_bytes),
                    key_of(kind).begin())) {
        expected.result = IW_MPA_FRAME_BAD_KEY;
        return expected;
    }
    auto parse = mpapeer::parse_frame(bytes);
    if (!parse.frame)
        return expected;
    if (const auto result = header_result(kind, *parse.frame); result != IW_MPA_FRAME_COMPLETE) {
        expected.result = result;
        return expected;
    }
    expected.need = IW_MPA_HDR_LEN + parse.frame->pd_length;
    if (parse.status != mpapeer::FrameParse::Status::complete)
        return expected;

    expected.result = bytes.size() > parse.consumed ? IW_MPA_FRAME_TRAILING : IW_MPA_FRAME_COMPLETE;
    expected.enhanced = parse.frame->enhanced_word().has_value();
    expected.block_missing = !expected.enhanced && parse.frame->rev == 2 &&
                             parse.frame->has(mpapeer::flag_enhanced);
    expected.ulp_offset += expected.enhanced ? mpapeer::enhanced_word_size : 0;
    expected.ulp_length = expected.block_missing ? 0 : parse.frame->ulp_data().size();
    expected.frame = std::move(parse.frame);
    return expected;
}

iw_mpa_enh expect_enh(std::uint32_t wire, iw_mpa_dialect dialect)
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

std::uint32_t expect_word(const iw_mpa_enh &enh, iw_mpa_dialect dialect)
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

bool operator==(const iw_mpa_enh &a, const iw_mpa_enh &b)
{
    return a.ird == b.ird && a.ord == b.ord && a.rtr == b.rtr && a.p2p == b.p2p;
}
