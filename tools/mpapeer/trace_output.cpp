// SPDX-License-Identifier: GPL-2.0
#include "trace_output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <type_traits>

namespace mpapeer {
namespace {

using Json = nlohmann::ordered_json;

constexpr double second_ns = 1e9;

template <class... Cases>
struct Overloaded : Cases... {
    using Cases::operator()...;
};
template <class... Cases>
Overloaded(Cases...) -> Overloaded<Cases...>;

std::string_view role(const Trace &trace, std::size_t side)
{
    return side == trace.initiator ? "initiator" : "responder";
}

double seconds(const CaptureTrace &capture, std::int64_t time_ns)
{
    return static_cast<double>(time_ns - capture.start_ns) / second_ns;
}

/// JSON names have no hyphens: jq then needs no quotes.
std::string json_name(std::string_view name)
{
    std::string result(name);
    std::ranges::replace(result, '-', '_');
    return result;
}

Json json_value(const FieldValue &value)
{
    return std::visit(
        [](const auto &content) -> Json {
            if constexpr (std::is_same_v<std::decay_t<decltype(content)>, Bytes>)
                return to_hex(content);
            else
                return content;
        },
        value);
}

void add_fields(Json &json, const Fields &fields)
{
    for (const Field &field : fields)
        json[json_name(field.name)] = json_value(field.value);
}

void add_frame(Json &json, const MpaFrame &frame)
{
    json["kind"] = to_string(frame.kind());
    add_fields(json, frame_fields(frame));
    Json list = Json::array();
    for (FrameProblem problem : problems(frame))
        list.push_back(to_string(problem));
    json["problems"] = std::move(list);
}

void add_item(Json &json, const StreamItem &item, CrcUse crc_use)
{
    if (item.frame()) {
        json["type"] = "frame";
        add_frame(json, *item.frame());
    } else {
        json["type"] = "fpdu";
        json["kind"] = item_kind(item);
        json["is_rtr"] = is_rtr(item.fpdu()->ulpdu);
        add_fields(json, fpdu_fields(*item.fpdu(), crc_use));
    }
    json["bytes"] = item.raw.size();
    json["hex"] = to_hex(item.raw);
}

void add_event(Json &json, const TraceEvent &event, CrcUse crc_use)
{
    std::visit(Overloaded{
                   [&](const StreamItem &item) { add_item(json, item, crc_use); },
                   [&](const FinEvent &) { json["type"] = "fin"; },
                   [&](const RstEvent &) { json["type"] = "rst"; },
                   [&](const PartialEvent &partial) {
                       json["type"] = "partial";
                       if (partial.frame)
                           add_frame(json, *partial.frame);
                       json["bytes"] = partial.raw.size();
                       json["hex"] = to_hex(partial.raw);
                   },
                   [&](const GapEvent &gap) {
                       json["type"] = "gap";
                       json["bytes"] = gap.missing;
                   },
                   [&](const MarkersEvent &) { json["type"] = "markers"; },
               },
               event.what);
}

std::string event_text(const TraceEvent &event, CrcUse crc_use)
{
    return std::visit(
        Overloaded{
            [&](const StreamItem &item) { return describe(item, crc_use); },
            [](const FinEvent &) { return std::string("FIN"); },
            [](const RstEvent &) { return std::string("RST"); },
            [](const PartialEvent &partial) {
                return partial.frame ? describe_partial(*partial.frame)
                                     : fmt::format("{} bytes of an incomplete item: {}",
                                                   partial.raw.size(), to_hex(partial.raw));
            },
            [](const GapEvent &gap) {
                return fmt::format("{} bytes are missing in the capture", gap.missing);
            },
            [](const MarkersEvent &) { return std::string("FPDUs with markers: not decoded"); },
        },
        event.what);
}

Json connection_json(const CaptureTrace &capture, const Trace &trace, std::size_t id)
{
    Json events = Json::array();
    for (std::size_t seq = 1; const TraceEvent &event : trace.events) {
        Json json = {
            {"seq", seq++},
            {"time", seconds(capture, event.time_ns)},
            {"epoch_ns", event.time_ns},
            {"from", role(trace, event.side)},
            {"stream_offset", event.offset},
        };
        add_event(json, event, trace.crc_use);
        events.push_back(std::move(json));
    }
    return {
        {"id", id},
        {"initiator", trace.endpoint[trace.initiator].text()},
        {"responder", trace.endpoint[1 - trace.initiator].text()},
        {"mpa", trace.is_mpa},
        {"crc_agreed", trace.crc_use == CrcUse::on},
        {"events", std::move(events)},
    };
}

struct TextLine {
    std::int64_t time_ns;
    std::string text;
};

} // namespace

nlohmann::ordered_json to_json(const CaptureTrace &capture)
{
    Json connections = Json::array();
    for (std::size_t id = 1; const Trace &trace : capture.connections)
        connections.push_back(connection_json(capture, trace, id++));
    return connections;
}

void write_text(std::ostream &out, const CaptureTrace &capture)
{
    std::vector<TextLine> lines;
    for (std::size_t id = 1; const Trace &trace : capture.connections) {
        out << fmt::format("connection {}: initiator {} responder {}{}\n", id,
                           trace.endpoint[trace.initiator].text(),
                           trace.endpoint[1 - trace.initiator].text(),
                           trace.is_mpa ? "" : " (not MPA)");
        for (std::size_t seq = 1; const TraceEvent &event : trace.events)
            lines.push_back({event.time_ns,
                             fmt::format("{:11.6f} {}#{} {} {}\n", seconds(capture, event.time_ns),
                                         id, seq++, role(trace, event.side),
                                         event_text(event, trace.crc_use))});
        id++;
    }
    std::ranges::stable_sort(lines, {}, &TextLine::time_ns);
    for (const TextLine &line : lines)
        out << line.text;
}

} // namespace mpapeer
