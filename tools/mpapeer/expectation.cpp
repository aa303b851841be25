// SPDX-License-Identifier: GPL-2.0
#include "expectation.hpp"

#include "text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

namespace mpapeer {
namespace {

constexpr std::array all_kinds = {
    UlpduKind::null,          UlpduKind::write,   UlpduKind::read_request,
    UlpduKind::read_response, UlpduKind::send,    UlpduKind::send_inv,
    UlpduKind::send_se,       UlpduKind::send_se_inv, UlpduKind::term,
    UlpduKind::unknown,
};

struct Operator {
    std::string_view text;
    Comparison comparison;
};

// Longer operators first: a shorter one can be the beginning of a longer one.
constexpr std::array operators = {
    Operator{"!=", Comparison::not_equal},  Operator{"<=", Comparison::less_equal},
    Operator{">=", Comparison::greater_equal}, Operator{"=", Comparison::equal},
    Operator{"<", Comparison::less},        Operator{">", Comparison::greater},
    Operator{"~", Comparison::any_of},
};

std::string_view operator_text(Comparison comparison)
{
    return std::ranges::find(operators, comparison, &Operator::comparison)->text;
}

bool is_frame_kind(std::string_view kind)
{
    return kind == "request" || kind == "reply" || kind == "frame";
}

/// "control" is a session control message of any kind.
bool is_message_kind(std::string_view kind)
{
    return kind == "initiate" || kind == "accept" || kind == "reject" || kind == "terminate" ||
           kind == "control";
}

/// The kind of FPDU behind "write-rtr" and similar words; empty for every other word.
std::string_view rtr_base(std::string_view kind)
{
    if (kind == "write-rtr")
        return "write";
    if (kind == "read-rtr")
        return "read-request";
    if (kind == "send-rtr")
        return "send";
    return {};
}

/// Fields that frames or FPDUs of this kind can have, with a value of the right type each.
/// Nothing if there is no such kind.
std::optional<Fields> known_fields(std::string_view kind)
{
    Fields fields = {{"bytes", std::uint64_t{0}}};
    const auto add = [&](const Fields &more) {
        fields.insert(fields.end(), more.begin(), more.end());
    };
    if (is_frame_kind(kind)) {
        add(frame_fields({.flags = flag_enhanced, .rev = 2, .private_data = Bytes(4)}));
        return fields;
    }
    add(chunk_fields({}));
    if (is_message_kind(kind)) {
        add(message_fields({static_cast<std::uint16_t>(SessionCode::enhanced_initiate), Bytes(4)}));
        return fields;
    }
    bool found = false;
    const std::string_view base = rtr_base(kind).empty() ? kind : rtr_base(kind);
    for (UlpduKind candidate : all_kinds) {
        if (kind == "any" || kind == "rtr" || base == to_string(candidate)) {
            Fpdu sample;
            sample.ulpdu.kind = candidate;
            add(fpdu_fields(sample, CrcUse::on));
            found = true;
        }
    }
    return found ? std::optional(fields) : std::nullopt;
}

FieldValue parse_value_like(const Field &sample, std::string_view text)
{
    if (std::holds_alternative<bool>(sample.value))
        return parse_number(text, 1) == 1;
    if (std::holds_alternative<std::uint64_t>(sample.value))
        return parse_number(text);
    if (std::holds_alternative<Bytes>(sample.value))
        return parse_bytes(text);
    if (std::holds_alternative<std::string>(sample.value)) {
        if (text != "ok" && text != "bad" && text != "unused")
            throw TextError(fmt::format("{} must be ok, bad or unused", sample.name));
        return std::string(text);
    }
    NameList names;
    for (std::string &name : split_list(text)) {
        if (name == "none")
            continue;
        if (name != "send" && name != "write" && name != "read")
            throw TextError(fmt::format("'{}' is not an RTR type (send, write, read or none)", name));
        names.push_back(std::move(name));
    }
    return names;
}

const Field &field_like(const Fields &known, std::string_view kind, std::string_view name)
{
    if (const Field *field = find_field(known, name))
        return *field;
    throw TextError(fmt::format("{} has no field '{}'", kind, name));
}

FieldTest parse_test(std::string_view kind, const Fields &known, std::string_view word)
{
    if (word == "accept")
        word = "reject=0";
    for (const Operator &op : operators) {
        const std::size_t at = word.find(op.text);
        if (at == std::string_view::npos || at != word.find_first_of("!<>=~"))
            continue;
        std::string_view name = word.substr(0, at);
        if (name == "data")
            name = "pdata";
        const Field &sample = field_like(known, kind, name);
        FieldTest test{std::string(name), op.comparison,
                       parse_value_like(sample, word.substr(at + op.text.size()))};
        const bool is_list = std::holds_alternative<NameList>(test.wanted);
        const bool is_number = std::holds_alternative<std::uint64_t>(test.wanted);
        const bool fits = op.comparison == Comparison::equal ||
                          op.comparison == Comparison::not_equal ||
                          (is_list && (op.comparison == Comparison::any_of ||
                                       op.comparison == Comparison::greater_equal)) ||
                          (is_number && op.comparison != Comparison::any_of);
        if (!fits)
            throw TextError(fmt::format("{} cannot be compared with {}", name, op.text));
        return test;
    }
    const Field &sample = field_like(known, kind, word);
    if (!std::holds_alternative<bool>(sample.value))
        throw TextError(fmt::format("{} needs a value", word));
    return {std::string(word), Comparison::equal, true};
}

/// Parses "2/0/6", where * stands for any value.
void add_triplet(std::vector<FieldTest> &tests, std::string_view text)
{
    constexpr std::array<std::string_view, 3> names = {"layer", "etype", "code"};
    std::size_t begin = 0;
    for (std::size_t i = 0; i < names.size(); i++) {
        const std::size_t end = i + 1 < names.size() ? text.find('/', begin) : text.size();
        if (end == std::string_view::npos)
            throw TextError(fmt::format("'{}' is not LAYER/TYPE/CODE", text));
        const std::string_view part = text.substr(begin, end - begin);
        if (part != "*")
            tests.push_back({std::string(names[i]), Comparison::equal, parse_number(part, 255)});
        begin = end + 1;
    }
}

bool looks_like_triplet(std::string_view word)
{
    return word.find('/') != std::string_view::npos && word.find('=') == std::string_view::npos;
}

/// "shutdown" and "abort" are SCTP's words for a FIN and a RST.
const std::map<std::string_view, ClosePattern::How> close_kinds = {
    {"close", ClosePattern::How::any},    {"fin", ClosePattern::How::fin},
    {"rst", ClosePattern::How::rst},      {"shutdown", ClosePattern::How::fin},
    {"abort", ClosePattern::How::rst},
};

ClosePattern parse_close(std::span<const std::string> words)
{
    ClosePattern pattern{.how = close_kinds.at(words[0])};
    for (const std::string &word : words.subspan(1)) {
        if (word != "drain")
            throw TextError(fmt::format("'{}' after {}: only 'drain' is allowed here", word,
                                        words[0]));
        pattern.drain = true;
    }
    return pattern;
}

bool names_equal(NameList a, NameList b)
{
    std::ranges::sort(a);
    std::ranges::sort(b);
    return a == b;
}

bool lists_compare(const NameList &got, Comparison comparison, const NameList &wanted)
{
    const auto has = [&](const std::string &name) {
        return std::ranges::find(got, name) != got.end();
    };
    switch (comparison) {
    case Comparison::equal: return names_equal(got, wanted);
    case Comparison::not_equal: return !names_equal(got, wanted);
    case Comparison::greater_equal: return std::ranges::all_of(wanted, has);
    case Comparison::any_of: return std::ranges::any_of(wanted, has);
    default: return false;
    }
}

template <class T>
bool values_compare(const T &got, Comparison comparison, const T &wanted)
{
    switch (comparison) {
    case Comparison::equal: return got == wanted;
    case Comparison::not_equal: return got != wanted;
    case Comparison::less: return got < wanted;
    case Comparison::less_equal: return got <= wanted;
    case Comparison::greater: return got > wanted;
    case Comparison::greater_equal: return got >= wanted;
    case Comparison::any_of: break;
    }
    return false;
}

bool holds(const FieldTest &test, const FieldValue &got)
{
    return std::visit(
        [&](const auto &wanted) {
            using T = std::decay_t<decltype(wanted)>;
            const T *value = std::get_if<T>(&got);
            if (!value)
                return false;
            if constexpr (std::is_same_v<T, NameList>)
                return lists_compare(*value, test.comparison, wanted);
            else
                return values_compare(*value, test.comparison, wanted);
        },
        test.wanted);
}

bool kind_fits(std::string_view kind, const StreamItem &item)
{
    if (item.frame())
        return kind == "frame" || kind == to_string(item.frame()->kind());
    if (item.message())
        return kind == "control" || kind == item.message()->kind();
    const Ulpdu &ulpdu = item.fpdu()->ulpdu;
    if (kind == "any")
        return true;
    if (kind == "rtr")
        return is_rtr(ulpdu);
    if (!rtr_base(kind).empty())
        return is_rtr(ulpdu) && rtr_base(kind) == to_string(ulpdu.kind);
    return kind == to_string(ulpdu.kind);
}

std::optional<std::string> item_mismatch(const ItemPattern &pattern, const StreamItem &item,
                                         CrcUse crc_use)
{
    if (!kind_fits(pattern.kind, item))
        return fmt::format("it is not {}", pattern.kind);
    const Fields fields = item_fields(item, crc_use);
    for (const FieldTest &test : pattern.tests) {
        const Field *field = find_field(fields, test.name);
        if (!field)
            return fmt::format("it has no {}", test.name);
        if (!holds(test, field->value)) {
            const Field wanted{field->name, test.wanted, field->style};
            return fmt::format("{} is {}, wanted {}{}", test.name, value_text(*field, false),
                               operator_text(test.comparison), value_text(wanted, false));
        }
    }
    const auto tests = [&](std::string_view name) {
        return std::ranges::find(pattern.tests, name, &FieldTest::name) != pattern.tests.end();
    };
    if (item.chunk && item.chunk->ordered && !tests("ordered"))
        return "it is ordered";
    if (item.chunk)
        return std::nullopt;
    if (item.fpdu() && crc_use == CrcUse::on && !item.fpdu()->crc_matches && !tests("crc"))
        return "its CRC is bad";
    if (item.fpdu() && !item.fpdu()->pad_is_zero && !tests("pad"))
        return "its pad is not zero";
    return std::nullopt;
}

} // namespace

Pattern parse_pattern(std::span<const std::string> words)
{
    if (!words.empty() && (words[0] == "fpdu" || words[0] == "segment"))
        words = words.subspan(1);
    if (words.empty())
        throw TextError("expect needs an item to expect");
    if (close_kinds.contains(words[0]))
        return parse_close(words);
    if (words[0] == "hex") {
        HexPattern pattern;
        for (const std::string &word : words.subspan(1))
            append(pattern.bytes, ByteView(parse_bytes(word)));
        return pattern;
    }

    const std::optional<Fields> known = known_fields(words[0]);
    if (!known)
        throw TextError(fmt::format("'{}' is not an item of expect", words[0]));
    ItemPattern pattern{.kind = words[0], .tests = {}};
    for (const std::string &word : words.subspan(1)) {
        if (pattern.kind == "term" && looks_like_triplet(word))
            add_triplet(pattern.tests, word);
        else
            pattern.tests.push_back(parse_test(pattern.kind, *known, word));
    }
    return pattern;
}

std::optional<std::string> mismatch(const Pattern &pattern, const StreamItem &item, CrcUse crc_use)
{
    if (const auto *wanted = std::get_if<ItemPattern>(&pattern))
        return item_mismatch(*wanted, item, crc_use);
    if (const auto *wanted = std::get_if<HexPattern>(&pattern)) {
        if (wanted->bytes == item.raw)
            return std::nullopt;
        return fmt::format("its bytes are {}", to_hex(item.raw));
    }
    return "it is not the end of the connection";
}

} // namespace mpapeer
