// SPDX-License-Identifier: GPL-2.0
// What reading a prefix of a frame has to give, from mpapeer's codec and the specification.
#pragma once

#include "kernel.hpp"
#include "mpa_frame.hpp"

#include <optional>

struct ExpectedFrame {
    iw_mpa_parse result = IW_MPA_FRAME_NEED_MORE;
    std::size_t need = IW_MPA_HDR_LEN;
    std::optional<mpapeer::MpaFrame> frame; ///< if complete, whatever may follow it
    bool enhanced = false;
    bool block_missing = false;
    std::size_t ulp_offset = IW_MPA_HDR_LEN; ///< of the ULP's private data
    std::size_t ulp_length = 0;

    bool complete() const
    {
        return result == IW_MPA_FRAME_COMPLETE || result == IW_MPA_FRAME_TRAILING;
    }
};

ExpectedFrame expect_frame(iw_mpa_kind kind, mpapeer::ByteView bytes);

/// The meaning of the enhanced word's wire form.
iw_mpa_enh expect_enh(std::uint32_t word, iw_mpa_dialect dialect);

/// The wire form itself.
std::uint32_t expect_word(const iw_mpa_enh &enh, iw_mpa_dialect dialect);

bool operator==(const iw_mpa_enh &a, const iw_mpa_enh &b);
