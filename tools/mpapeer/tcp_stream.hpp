// SPDX-License-Identifier: GPL-2.0
// One direction of a captured TCP connection, in the order of its bytes.
#pragma once

#include "packet.hpp"

#include <cstdint>
#include <map>
#include <optional>

namespace mpapeer {

class TcpStream {
public:
    /// Takes a segment as it was captured. Returns the bytes that are now next in order: empty
    /// for a retransmission or a segment that came too early.
    Bytes push(const TcpSegment &segment);

    /// All bytes up to a FIN have been captured.
    bool finished() const { return fin_at_ && *fin_at_ == next_; }

    /// Bytes held back behind a gap that the capture never filled.
    bool has_gap() const { return !early_.empty() || (fin_at_ && *fin_at_ > next_); }

    /// Size of that gap in bytes, as far as it is known.
    std::uint64_t gap_size() const;

    /// Offset of the next byte from the first one of the stream.
    std::uint64_t offset() const { return next_ - first_offset; }

    /// The sequence number of the SYN, if it was captured.
    std::optional<std::uint32_t> syn_seq() const { return syn_seq_; }

private:
    std::uint64_t unwrap(std::uint32_t seq) const;
    void store(std::uint64_t begin, ByteView bytes);

    // Leaves room for segments before the start, such as keep-alives.
    static constexpr std::uint64_t first_offset = std::uint64_t{1} << 32;

    std::optional<std::uint32_t> syn_seq_;
    bool started_ = false;
    std::uint32_t base_seq_ = 0; ///< the sequence number at first_offset
    std::uint64_t next_ = first_offset;
    std::optional<std::uint64_t> fin_at_;
    std::map<std::uint64_t, Bytes> early_;
};

} // namespace mpapeer
