// SPDX-License-Identifier: GPL-2.0
#include "bytes.hpp"

#include <fmt/format.h>

#include <iterator>

namespace mpapeer {
namespace {

int digit_value(char digit)
{
    if (digit >= '0' && digit <= '9')
        return digit - '0';
    if (digit >= 'a' && digit <= 'f')
        return digit - 'a' + 10;
    if (digit >= 'A' && digit <= 'F')
        return digit - 'A' + 10;
    return -1;
}

} // namespace

std::string to_hex(ByteView bytes)
{
    std::string text;
    text.reserve(bytes.size() * 2);
    for (std::uint8_t byte : bytes)
        fmt::format_to(std::back_inserter(text), "{:02x}", byte);
    return text;
}

std::optional<Bytes> from_hex(std::string_view text)
{
    if (text.size() % 2 != 0)
        return std::nullopt;
    Bytes bytes;
    bytes.reserve(text.size() / 2);
    for (std::size_t i = 0; i < text.size(); i += 2) {
        const int high = digit_value(text[i]);
        const int low = digit_value(text[i + 1]);
        if (high < 0 || low < 0)
            return std::nullopt;
        bytes.push_back(static_cast<std::uint8_t>(high * 16 + low));
    }
    return bytes;
}

Bytes counting_bytes(std::size_t length)
{
    Bytes bytes(length);
    for (std::size_t i = 0; i < length; i++)
        bytes[i] = static_cast<std::uint8_t>(i % 256);
    return bytes;
}

void append(Bytes &out, ByteView bytes)
{
    out.insert(out.end(), bytes.begin(), bytes.end());
}

} // namespace mpapeer
