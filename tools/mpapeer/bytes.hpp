// SPDX-License-Identifier: GPL-2.0
// Byte strings: hexadecimal, and big-endian fields.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mpapeer {

using Bytes = std::vector<std::uint8_t>;
using ByteView = std::span<const std::uint8_t>;

/// Lower-case hexadecimal without separators.
std::string to_hex(ByteView bytes);

/// Reads pairs of hexadecimal digits; nothing if there is any other character or half a pair.
std::optional<Bytes> from_hex(std::string_view text);

/// The byte string 00 01 02 … ff 00 …, which the tools send as private data of a given length.
Bytes counting_bytes(std::size_t length);

/// Reads big-endian fields from the front of a byte string whose length the caller has checked.
class Reader {
public:
    explicit Reader(ByteView bytes) : rest_(bytes) {}

    template <std::unsigned_integral T>
    T read()
    {
        std::uint64_t value = 0;
        for (std::uint8_t byte : rest_.first(sizeof(T)))
            value = value << 8 | byte;
        rest_ = rest_.subspan(sizeof(T));
        return static_cast<T>(value);
    }

    ByteView rest() const { return rest_; }

private:
    ByteView rest_;
};

/// Appends one field in network byte order.
template <std::unsigned_integral T>
void append(Bytes &out, T value)
{
    for (std::size_t shift = sizeof(T) * 8; shift > 0; shift -= 8)
        out.push_back(static_cast<std::uint8_t>(std::uint64_t{value} >> (shift - 8)));
}

void append(Bytes &out, ByteView bytes);

} // namespace mpapeer
