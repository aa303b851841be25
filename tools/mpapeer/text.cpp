// SPDX-License-Identifier: GPL-2.0
#include "text.hpp"

#include <fmt/format.h>

#include <charconv>
#include <limits>

namespace mpapeer {
namespace {

bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/// The end of the word that starts at `begin`.
std::size_t word_end(std::string_view line, std::size_t begin)
{
    bool quoted = false;
    std::size_t end = begin;
    for (; end < line.size() && (quoted || !is_blank(line[end])); end++) {
        if (line[end] == '"')
            quoted = !quoted;
    }
    if (quoted)
        throw TextError("a quoted text without a closing \"");
    return end;
}

} // namespace

std::vector<std::string> split_words(std::string_view line)
{
    std::vector<std::string> words;
    std::size_t at = 0;
    while (at < line.size()) {
        if (is_blank(line[at])) {
            at++;
            continue;
        }
        if (line[at] == '#')
            break;
        const std::size_t end = word_end(line, at);
        words.emplace_back(line.substr(at, end - at));
        at = end;
    }
    return words;
}

std::uint64_t parse_number(std::string_view text, std::uint64_t limit)
{
    const bool hex = text.starts_with("0x") || text.starts_with("0X");
    const std::string_view digits = hex ? text.substr(2) : text;
    std::uint64_t value = 0;
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), value, hex ? 16 : 10);
    if (error == std::errc::result_out_of_range)
        throw TextError(fmt::format("{} is too large", text));
    if (error != std::errc{} || end != digits.data() + digits.size())
        throw TextError(fmt::format("'{}' is not a number", text));
    if (value > limit)
        throw TextError(fmt::format("{} is more than {} ({:#x})", text, limit, limit));
    return value;
}

Duration parse_duration(std::string_view text)
{
    constexpr struct {
        std::string_view unit;
        std::int64_t microseconds;
    } units[] = {{"us", 1}, {"ms", 1000}, {"s", 1000000}};
    constexpr std::uint64_t max_count = 1000000000;
    for (const auto &[unit, microseconds] : units) {
        if (text.ends_with(unit) && text.size() > unit.size()) {
            const std::string_view count = text.substr(0, text.size() - unit.size());
            return Duration(static_cast<std::int64_t>(parse_number(count, max_count)) *
                            microseconds);
        }
    }
    throw TextError(fmt::format("'{}' is not a duration such as 300ms or 2s", text));
}

std::string duration_text(Duration duration)
{
    if (duration.count() % 1000000 == 0)
        return fmt::format("{}s", duration.count() / 1000000);
    if (duration.count() % 1000 == 0)
        return fmt::format("{}ms", duration.count() / 1000);
    return fmt::format("{}us", duration.count());
}

Bytes parse_bytes(std::string_view text)
{
    if (text.size() >= 2 && text.front() == '"' && text.back() == '"') {
        const std::string_view inner = text.substr(1, text.size() - 2);
        return Bytes(inner.begin(), inner.end());
    }
    if (auto bytes = from_hex(text))
        return *bytes;
    throw TextError(fmt::format("'{}' is neither pairs of hexadecimal digits nor a \"text\"",
                                text));
}

std::vector<std::string> split_list(std::string_view text)
{
    std::vector<std::string> parts;
    std::size_t begin = 0;
    for (;;) {
        const std::size_t comma = text.find(',', begin);
        parts.emplace_back(text.substr(begin, comma - begin));
        if (comma == std::string_view::npos)
            return parts;
        begin = comma + 1;
    }
}

HostPort parse_host_port(std::string_view text)
{
    HostPort result;
    const std::size_t colon = text.rfind(':');
    if (colon == std::string_view::npos) {
        result.port = text;
    } else {
        std::string_view host = text.substr(0, colon);
        if (host.starts_with('[') && host.ends_with(']'))
            host = host.substr(1, host.size() - 2);
        result.host = host;
        result.port = text.substr(colon + 1);
    }
    parse_number(result.port, std::numeric_limits<std::uint16_t>::max());
    return result;
}

} // namespace mpapeer
