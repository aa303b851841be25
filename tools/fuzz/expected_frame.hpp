// SPDX-License-Identifier: GPL-2.0
// Expected results of reading a prefix of a frame, from the specification. Only check_codec()
// allocates memory.
#pragma once

#include "kernel.hpp"
#include "mpa_frame.hpp"

#include <array>
#include <optional>

/// A whole header, and values that follow from it.
struct ExpectedFrame {
    iw_mpa_parse result = IW_MPA_FRAME_NEED_MORE;
    std::size_t need = IW_MPA_HDR_LEN;
    // Fields of a complete frame, with or without bytes behind it
    u8 flags = 0;
    u8 rev = 0;
    std::optional<mpapeer::EnhancedWord> word; ///< if the frame is enhanced
    bool block_missing = false;
    std::size_t ulp_offset = IW_MPA_HDR_LEN; ///< of the ULP's private data
    std::size_t ulp_length = 0;

    bool complete() const
    {
        return result == IW_MPA_FRAME_COMPLETE || result == IW_MPA_FRAME_TRAILING;
    }
    bool has(mpapeer::MpaFlag flag) const { return (flags & flag) != 0; }
    bool enhanced() const { return word.has_value(); }
};

ExpectedFrame expect_frame(iw_mpa_kind kind, mpapeer::ByteView bytes);

/// Checks that mpapeer's codec agrees. It was written independently from the specification.
void check_codec(iw_mpa_kind kind, mpapeer::ByteView bytes, const ExpectedFrame &expected);

/// The meaning of the enhanced word's wire form.
iw_mpa_enh expect_enh(std::uint32_t word, rdma_mpa_dialect dialect);

/// The wire form itself.
std::uint32_t expect_word(const iw_mpa_enh &enh, rdma_mpa_dialect dialect);

/// A frame as it has to be on the wire.
class WireFrame {
public:
    WireFrame(iw_mpa_kind kind, u8 flags, u8 rev, std::optional<std::uint32_t> word,
              mpapeer::ByteView ulp);
    mpapeer::ByteView bytes() const { return {bytes_.data(), length_}; }

private:
    void append(mpapeer::ByteView bytes);
    void append(std::uint32_t value, unsigned octets);

    std::array<u8, IW_MPA_FRAME_MAX> bytes_;
    std::size_t length_ = 0;
};

bool operator==(const iw_mpa_enh &a, const iw_mpa_enh &b);
