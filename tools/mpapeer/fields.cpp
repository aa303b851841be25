// SPDX-License-Identifier: GPL-2.0
#include "fields.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <iterator>

namespace mpapeer {
namespace {

constexpr std::size_t shown_bytes = 32;

template <class... Cases>
struct Overloaded : Cases... {
    using Cases::operator()...;
};
template <class... Cases>
Overloaded(Cases...) -> Overloaded<Cases...>;

NameList rtr_names(const EnhancedWord &word)
{
    NameList names;
    if (word.send_rtr)
        names.emplace_back("send");
    if (word.write_rtr)
        names.emplace_back("write");
    if (word.read_rtr)
        names.emplace_back("read");
    return names;
}

std::uint64_t number(std::uint64_t value)
{
    return value;
}

std::string bytes_text(ByteView bytes, bool cut)
{
    const bool too_long = cut && bytes.size() > shown_bytes;
    std::string text = to_hex(too_long ? bytes.first(shown_bytes) : bytes);
    if (too_long)
        text += "...";
    else if (!bytes.empty() && std::ranges::all_of(bytes, [](int c) { return std::isprint(c); }))
        text += fmt::format(" \"{}\"", std::string(bytes.begin(), bytes.end()));
    return text;
}

std::string fields_text(std::string_view kind, const Fields &fields)
{
    std::string text(kind);
    for (const Field &field : fields) {
        if (field.style != FieldStyle::quiet)
            fmt::format_to(std::back_inserter(text), " {}={}", field.name, value_text(field, true));
    }
    return text;
}

template <class Content>
void add_problems(std::string &text, const Content &content)
{
    for (const auto problem : problems(content))
        fmt::format_to(std::back_inserter(text), " !{}", to_string(problem));
}

std::string frame_text(const MpaFrame &frame)
{
    std::string text = fields_text(to_string(frame.kind()), frame_fields(frame));
    add_problems(text, frame);
    return text;
}

/// Shows a field, such as a version or the Last bit, only if its value is unusual.
FieldStyle quiet_if(bool usual)
{
    return usual ? FieldStyle::quiet : FieldStyle::plain;
}

void add_private_data_fields(Fields &fields, const std::optional<EnhancedWord> &word, ByteView data)
{
    if (word) {
        fields.push_back({"p2p", word->p2p});
        fields.push_back({"rtr", rtr_names(*word)});
        fields.push_back({"ird", number(word->ird)});
        fields.push_back({"ord", number(word->ord)});
        fields.push_back({"word", number(word->to_wire()), FieldStyle::quiet});
    }
    fields.push_back({"pdata-len", number(data.size())});
    fields.push_back({"pdata", Bytes(data.begin(), data.end()), quiet_if(data.empty())});
}

void add_control_fields(Fields &fields, const Ulpdu &ulpdu)
{
    const unsigned ddp_version = ulpdu.ddp_control & 3U;
    const unsigned rdmap_version = ulpdu.rdmap_control >> 6;
    fields.push_back({"last", ulpdu.is_last(), quiet_if(ulpdu.is_last())});
    fields.push_back({"ddp-version", number(ddp_version), quiet_if(ddp_version == 1)});
    fields.push_back({"rdmap-version", number(rdmap_version), quiet_if(rdmap_version == 1)});
}

void add_tagged_fields(Fields &fields, const TaggedHeader &header)
{
    fields.push_back({"stag", number(header.stag), FieldStyle::hex});
    fields.push_back({"to", header.to, FieldStyle::hex});
}

void add_untagged_fields(Fields &fields, const UntaggedHeader &header)
{
    fields.push_back({"qn", number(header.qn)});
    fields.push_back({"msn", number(header.msn)});
    fields.push_back({"mo", number(header.mo)});
    fields.push_back({"inv-stag", number(header.inv_stag),
                      header.inv_stag == 0 ? FieldStyle::quiet : FieldStyle::hex});
}

void add_read_fields(Fields &fields, const ReadRequest &read)
{
    fields.push_back({"size", number(read.size)});
    fields.push_back({"sink-stag", number(read.sink_stag), FieldStyle::hex});
    fields.push_back({"sink-to", read.sink_to, FieldStyle::hex});
    fields.push_back({"src-stag", number(read.src_stag), FieldStyle::hex});
    fields.push_back({"src-to", read.src_to, FieldStyle::hex});
}

void add_term_fields(Fields &fields, const Terminate &term)
{
    fields.push_back({"layer", number(term.layer)});
    fields.push_back({"etype", number(term.etype)});
    fields.push_back({"code", number(term.code)});
    fields.push_back({"hdrct", number(term.hdrct), quiet_if(term.hdrct == 0)});
    fields.push_back({"reserved", number(term.reserved), quiet_if(term.reserved == 0)});
}

} // namespace

Fields frame_fields(const MpaFrame &frame)
{
    Fields fields = {
        {"rev", number(frame.rev)},
        {"markers", frame.has(flag_markers)},
        {"crc", frame.has(flag_crc)},
        {"reject", frame.has(flag_reject)},
        {"enhanced", frame.has(flag_enhanced)},
        {"res", number(frame.flags & flag_reserved), quiet_if((frame.flags & flag_reserved) == 0)},
        {"pd-length", number(frame.pd_length)},
        {"flags", number(frame.flags), FieldStyle::quiet},
        {"key", Bytes(frame.key.begin(), frame.key.end()),
         quiet_if(frame.kind() != FrameKind::unknown)},
    };
    add_private_data_fields(fields, frame.enhanced_word(), frame.ulp_data());
    return fields;
}

Fields message_fields(const SessionMessage &message)
{
    Fields fields = {
        {"code", number(message.code)},
        {"enhanced", message.is_enhanced()},
    };
    add_private_data_fields(fields, message.enhanced_word(), message.ulp_data());
    return fields;
}

Fields chunk_fields(const ChunkInfo &chunk)
{
    return {
        {"ssn", number(chunk.ssn)},
        {"ppid", number(chunk.ppid), quiet_if(chunk.ppid == ppid_segment || chunk.ppid == ppid_control)},
        {"stream", number(chunk.stream), quiet_if(chunk.stream == 0)},
        {"ordered", chunk.ordered, quiet_if(!chunk.ordered)},
    };
}

Fields ulpdu_fields(const Ulpdu &ulpdu)
{
    Fields fields;
    switch (ulpdu.kind) {
    case UlpduKind::null:
    case UlpduKind::unknown: break;
    case UlpduKind::write:
    case UlpduKind::read_response: add_tagged_fields(fields, ulpdu.tagged); break;
    case UlpduKind::read_request:
        add_untagged_fields(fields, ulpdu.untagged);
        add_read_fields(fields, ulpdu.read);
        break;
    case UlpduKind::term:
        add_untagged_fields(fields, ulpdu.untagged);
        add_term_fields(fields, ulpdu.term);
        break;
    case UlpduKind::send:
    case UlpduKind::send_inv:
    case UlpduKind::send_se:
    case UlpduKind::send_se_inv: add_untagged_fields(fields, ulpdu.untagged); break;
    }
    if (ulpdu.kind != UlpduKind::null && ulpdu.kind != UlpduKind::unknown)
        add_control_fields(fields, ulpdu);
    fields.push_back({"len", number(ulpdu.payload.size())});
    fields.push_back({"pdata", ulpdu.payload, quiet_if(ulpdu.payload.empty())});
    return fields;
}

Fields fpdu_fields(const Fpdu &fpdu, CrcUse crc_use)
{
    const std::string unmatched = crc_use == CrcUse::on ? "bad" : "unused";
    Fields fields = ulpdu_fields(fpdu.ulpdu);
    fields.push_back({"ulpdu-length", number(fpdu.ulpdu_length), FieldStyle::quiet});
    fields.push_back({"pad", fpdu.pad_is_zero ? std::string("zero") : std::string("bad"),
                      quiet_if(fpdu.pad_is_zero)});
    fields.push_back({"crc", fpdu.crc_matches ? std::string("ok") : unmatched});
    fields.push_back({"crc-value", number(fpdu.crc), FieldStyle::quiet});
    return fields;
}

namespace {

Fields content_fields(const StreamItem &item, CrcUse crc_use)
{
    if (item.frame())
        return frame_fields(*item.frame());
    if (!item.chunk)
        return fpdu_fields(*item.fpdu(), crc_use);
    Fields fields = chunk_fields(*item.chunk);
    const Fields content =
        item.message() ? message_fields(*item.message()) : ulpdu_fields(item.fpdu()->ulpdu);
    fields.insert(fields.end(), content.begin(), content.end());
    return fields;
}

} // namespace

Fields item_fields(const StreamItem &item, CrcUse crc_use)
{
    Fields fields = content_fields(item, crc_use);
    fields.push_back({"bytes", number(item.raw.size()), FieldStyle::quiet});
    return fields;
}

std::string_view item_kind(const StreamItem &item)
{
    if (item.message())
        return item.message()->kind();
    return item.frame() ? to_string(item.frame()->kind()) : to_string(item.fpdu()->ulpdu.kind);
}

const Field *find_field(const Fields &fields, std::string_view name)
{
    const auto found = std::ranges::find(fields, name, &Field::name);
    return found == fields.end() ? nullptr : &*found;
}

std::string value_text(const Field &field, bool cut)
{
    return std::visit(
        Overloaded{
            [](bool value) { return std::string(value ? "1" : "0"); },
            [&](std::uint64_t value) {
                return field.style == FieldStyle::hex ? fmt::format("{:#x}", value)
                                                      : fmt::format("{}", value);
            },
            [](const std::string &value) { return value; },
            [](const NameList &value) {
                return value.empty() ? "none" : fmt::format("{}", fmt::join(value, ","));
            },
            [&](const Bytes &value) { return bytes_text(value, cut); },
        },
        field.value);
}

std::string describe(const StreamItem &item, CrcUse crc_use)
{
    if (item.frame())
        return frame_text(*item.frame());
    const std::string_view front = item.message() ? "" : item.chunk ? "segment " : "fpdu ";
    std::string text = fields_text(fmt::format("{}{}", front, item_kind(item)),
                                   content_fields(item, crc_use));
    if (item.message())
        add_problems(text, *item.message());
    return text;
}

std::string describe_partial(const MpaFrame &frame)
{
    return "part of " + frame_text(frame);
}

} // namespace mpapeer
