// SPDX-License-Identifier: GPL-2.0
// Words, numbers and durations of scenario files and options.
#pragma once

#include "bytes.hpp"

#include <chrono>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace mpapeer {

using Duration = std::chrono::microseconds;

/// A fault in a piece of text; the caller adds the place.
class TextError : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// Splits at blanks; a # at the start of a word ends the line. Quoted parts ("…") may contain
/// blanks and keep their quotes.
std::vector<std::string> split_words(std::string_view line);

/// Decimal, or hexadecimal after 0x; at most `limit`.
std::uint64_t parse_number(std::string_view text, std::uint64_t limit = UINT64_MAX);

/// "250us", "300ms", "2s".
Duration parse_duration(std::string_view text);

std::string duration_text(Duration duration);

/// Hexadecimal digits, or text in quotes.
Bytes parse_bytes(std::string_view text);

/// "a,b,c" into its parts.
std::vector<std::string> split_list(std::string_view text);

/// "HOST:PORT", "[V6]:PORT", ":PORT" or "PORT".
struct HostPort {
    std::string host; ///< empty if not given
    std::string port;
};
HostPort parse_host_port(std::string_view text);

} // namespace mpapeer
