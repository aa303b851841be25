// SPDX-License-Identifier: GPL-2.0
#include "crc32c.hpp"

#include <array>

namespace mpapeer {
namespace {

constexpr std::uint32_t reflected_polynomial = 0x82f63b78;

constexpr std::array<std::uint32_t, 256> make_table()
{
    std::array<std::uint32_t, 256> table{};
    for (std::uint32_t i = 0; i < table.size(); i++) {
        std::uint32_t crc = i;
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? reflected_polynomial : 0);
        table[i] = crc;
    }
    return table;
}

constexpr auto table = make_table();

} // namespace

std::uint32_t crc32c(ByteView bytes)
{
    std::uint32_t crc = ~std::uint32_t{0};
    for (std::uint8_t byte : bytes)
        crc = crc >> 8 ^ table[(crc ^ byte) & 0xff];
    return ~crc;
}

} // namespace mpapeer
