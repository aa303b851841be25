// SPDX-License-Identifier: GPL-2.0
#include "tcp_stream.hpp"

#include <algorithm>

namespace mpapeer {

/// The 64-bit position nearest to the one expected next.
std::uint64_t TcpStream::unwrap(std::uint32_t seq) const
{
    const auto expected = static_cast<std::uint32_t>(base_seq_ + (next_ - first_offset));
    const auto distance = static_cast<std::int32_t>(seq - expected);
    return next_ + static_cast<std::uint64_t>(static_cast<std::int64_t>(distance));
}

void TcpStream::store(std::uint64_t begin, ByteView bytes)
{
    if (begin < next_) {
        const std::uint64_t known = std::min<std::uint64_t>(next_ - begin, bytes.size());
        bytes = bytes.subspan(known);
        begin += known;
    }
    if (bytes.empty())
        return;
    Bytes &stored = early_[begin];
    if (stored.size() < bytes.size())
        stored.assign(bytes.begin(), bytes.end());
}

Bytes TcpStream::push(const TcpSegment &segment)
{
    const std::uint32_t seq = segment.seq + (segment.syn ? 1 : 0);
    if (segment.syn)
        syn_seq_ = segment.seq;
    if (!started_) {
        started_ = true;
        base_seq_ = seq;
    }
    const std::uint64_t begin = unwrap(seq);
    store(begin, segment.payload);
    if (segment.fin && begin + segment.payload.size() >= next_)
        fin_at_ = begin + segment.payload.size();

    Bytes ready;
    while (!early_.empty() && early_.begin()->first <= next_) {
        const auto &[at, bytes] = *early_.begin();
        const std::uint64_t known = std::min<std::uint64_t>(next_ - at, bytes.size());
        const ByteView fresh = ByteView(bytes).subspan(known);
        append(ready, fresh);
        next_ += fresh.size();
        early_.erase(early_.begin());
    }
    return ready;
}

std::uint64_t TcpStream::gap_size() const
{
    if (!early_.empty())
        return early_.begin()->first - next_;
    return fin_at_ && *fin_at_ > next_ ? *fin_at_ - next_ : 0;
}

} // namespace mpapeer
