// SPDX-License-Identifier: GPL-2.0
// Reads a fuzzer's input from its front, so that seeds can be written by hand. Bytes that are
// missing at the end read as 0.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

class Input {
public:
    Input(const std::uint8_t *data, std::size_t size) : rest_(data, size) {}

    bool empty() const { return rest_.empty(); }
    std::span<const std::uint8_t> rest() const { return rest_; }

    std::span<const std::uint8_t> take(std::size_t length)
    {
        const auto front = rest_.first(std::min(length, rest_.size()));
        rest_ = rest_.subspan(front.size());
        return front;
    }

    std::uint8_t u8()
    {
        const auto byte = take(1);
        return byte.empty() ? 0 : byte[0];
    }

    /// Big-endian, as on the wire.
    std::uint16_t u16()
    {
        const unsigned high = u8();
        return static_cast<std::uint16_t>(high << 8 | u8());
    }

    std::uint32_t u32()
    {
        const std::uint32_t high = u16();
        return high << 16 | u16();
    }

    unsigned below(unsigned limit) { return u8() % limit; }

private:
    std::span<const std::uint8_t> rest_;
};
