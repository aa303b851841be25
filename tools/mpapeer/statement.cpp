// SPDX-License-Identifier: GPL-2.0
#include "statement.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <map>

namespace mpapeer {
namespace {

using Words = std::span<const std::string>;
using Action = decltype(Statement::action);

void no_more(Words words, std::size_t used)
{
    if (words.size() > used)
        throw TextError(fmt::format("unexpected word '{}'", words[used]));
}

const std::string &word_at(Words words, std::size_t index, std::string_view what)
{
    if (index >= words.size())
        throw TextError(fmt::format("{} needs {}", words[0], what));
    return words[index];
}

Duration only_duration(Words words)
{
    no_more(words, 2);
    return parse_duration(word_at(words, 1, "a duration"));
}

template <class T>
Action simple(Words words)
{
    no_more(words, 1);
    return T{};
}

Action parse_split(Words words)
{
    const std::string &how = word_at(words, 1, "'at N,M', 'every N', 'urgent' or 'off'");
    statement::Split split;
    if (how == "off" || how == "urgent") {
        no_more(words, 2);
        split.urgent = how == "urgent";
        return split;
    }
    const std::string &value = word_at(words, 2, "a number");
    no_more(words, 3);
    if (how == "every") {
        split.every = parse_number(value);
        if (split.every == 0)
            throw TextError("split every: expected a number above 0");
    } else if (how == "at") {
        for (const std::string &offset : split_list(value))
            split.at.push_back(parse_number(offset));
        if (!std::ranges::is_sorted(split.at))
            throw TextError("split at: each offset must exceed the one before it");
    } else {
        throw TextError(fmt::format("split {}: expected 'at', 'every', 'urgent' or 'off'", how));
    }
    return split;
}

Duration parse_for(Words words)
{
    if (words.size() < 4 || words[2] != "for")
        throw TextError(fmt::format("expected: expect {} for DURATION", words[1]));
    no_more(words, 4);
    return parse_duration(words[3]);
}

Action parse_wait(Words words)
{
    if (word_at(words, 1, "a duration, or 'for FILE'") != "for")
        return statement::Wait{only_duration(words)};
    statement::WaitFor wait{word_at(words, 2, "a file"), std::nullopt};
    if (words.size() > 3) {
        if (words[3] != "within" || words.size() < 5)
            throw TextError("expected: wait for FILE within DURATION");
        wait.within = parse_duration(words[4]);
    }
    no_more(words, 5);
    return wait;
}

std::optional<std::uint32_t> parse_adaptation(Words words, std::size_t index)
{
    const std::string &value = word_at(words, index, "a number or none");
    if (value == "none")
        return std::nullopt;
    return static_cast<std::uint32_t>(parse_number(value, std::numeric_limits<std::uint32_t>::max()));
}

/// "association adaptation=N|none window=BYTES"
Action parse_association(Words words)
{
    statement::Association association;
    for (const std::string &word : words.subspan(1)) {
        const std::size_t at = word.find('=');
        const std::string name = word.substr(0, at);
        const std::vector<std::string> value = {at == std::string::npos ? "" : word.substr(at + 1)};
        if (name == "adaptation")
            association.adaptation = parse_adaptation(value, 0);
        else if (name == "window")
            association.window = parse_number(value[0], std::numeric_limits<int>::max());
        else
            throw TextError(fmt::format("'{}' is not a setting of an association", word));
    }
    return association;
}

Action parse_reading(Words words)
{
    const std::string &how = word_at(words, 1, "on or off");
    no_more(words, 2);
    if (how != "on" && how != "off")
        throw TextError("expected: reading on or off");
    return statement::Reading{how == "on"};
}

Action parse_expect(Words words)
{
    const std::string &what = word_at(words, 1, "an item to expect");
    if (what == "nothing")
        return statement::ExpectNothing{parse_for(words), false};
    if (what == "no-data")
        return statement::ExpectNothing{parse_for(words), true};
    if (what == "no-connection")
        return statement::ExpectNoConnection{parse_for(words)};

    statement::Expect expect;
    Words rest = words.subspan(1);
    if (what == "adaptation") {
        no_more(rest, 2);
        return statement::ExpectAdaptation{parse_adaptation(rest, 1)};
    }
    if (rest.size() >= 2 && rest[rest.size() - 2] == "within") {
        expect.within = parse_duration(rest.back());
        rest = rest.first(rest.size() - 2);
    }
    for (;;) {
        const auto end = std::ranges::find(rest, "or");
        const auto size = static_cast<std::size_t>(end - rest.begin());
        expect.alternatives.push_back(parse_pattern(rest.first(size)));
        if (end == rest.end())
            return expect;
        rest = rest.subspan(size + 1);
    }
}

Action parse_crc(Words words)
{
    const std::map<std::string_view, FpduToSend::Crc> modes = {
        {"on", FpduToSend::Crc::on},
        {"off", FpduToSend::Crc::off},
        {"agreed", FpduToSend::Crc::agreed},
    };
    const auto mode = modes.find(word_at(words, 1, "on, off or agreed"));
    if (mode == modes.end())
        throw TextError(fmt::format("crc {}: expected on, off or agreed", words[1]));
    no_more(words, 2);
    return statement::CrcMode{mode->second};
}

Action parse_new_connection(Words words)
{
    statement::NewConnection connection{.accept = words[0] == "accept"};
    if (words.size() > 1) {
        if (words[1] != "keep")
            throw TextError(fmt::format("{} {}: only 'keep' is allowed here", words[0], words[1]));
        connection.keep = true;
    }
    no_more(words, 2);
    return connection;
}

Action parse_auto(Words words)
{
    if (word_at(words, 1, "'read-response'") != "read-response")
        throw TextError("auto supports only read-response");
    statement::AutoReadResponse action;
    if (words.size() > 2) {
        if (words[2] != "on" && words[2] != "off")
            throw TextError("expected: auto read-response on or off");
        action.on = words[2] == "on";
    }
    no_more(words, 3);
    return action;
}

Action parse_note(Words words)
{
    return statement::Note{fmt::format("{}", fmt::join(words.subspan(1), " "))};
}

template <class T>
bool is(const Statement &statement)
{
    return std::holds_alternative<T>(statement.action);
}

} // namespace

Llp llp_of(const Statement &statement)
{
    if (const auto *send = std::get_if<statement::Send>(&statement.action))
        return send->llp;
    if (is<statement::Split>(statement) || is<statement::Glue>(statement) ||
        is<statement::CrcMode>(statement))
        return Llp::tcp;
    if (is<statement::Association>(statement) || is<statement::ExpectAdaptation>(statement) ||
        is<statement::Reading>(statement) || is<statement::Vanish>(statement))
        return Llp::sctp;
    return Llp::any;
}

Action parse_statement(Words words)
{
    using Parser = Action (*)(Words);
    static const std::map<std::string_view, Parser> parsers = {
        {"send", [](Words w) -> Action { return parse_send(w.subspan(1)); }},
        {"split", parse_split},
        {"gap", [](Words w) -> Action { return statement::Gap{only_duration(w)}; }},
        {"glue", simple<statement::Glue>},
        {"flush", simple<statement::Flush>},
        {"wait", parse_wait},
        {"expect", parse_expect},
        {"shutdown", simple<statement::Shutdown>},
        {"reset", simple<statement::Reset>},
        {"abort", simple<statement::Reset>},
        {"vanish", simple<statement::Vanish>},
        {"reading", parse_reading},
        {"association", parse_association},
        {"close", simple<statement::Close>},
        {"within", [](Words w) -> Action { return statement::Within{only_duration(w)}; }},
        {"crc", parse_crc},
        {"connect", parse_new_connection},
        {"accept", parse_new_connection},
        {"auto", parse_auto},
        {"note", parse_note},
    };
    const auto parser = parsers.find(words[0]);
    if (parser == parsers.end())
        throw TextError(fmt::format("'{}' is not a statement", words[0]));
    return parser->second(words);
}

} // namespace mpapeer
