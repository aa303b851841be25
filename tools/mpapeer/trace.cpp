// SPDX-License-Identifier: GPL-2.0
#include "trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

namespace mpapeer {
namespace {

/// "MPA ID Re": the common beginning of both keys.
constexpr std::size_t common_key_size = 9;

bool begins_like_mpa(ByteView bytes)
{
    const std::size_t size = std::min(bytes.size(), common_key_size);
    return size > 0 && std::ranges::equal(bytes.first(size), ByteView(request_key).first(size));
}

/// One direction while it is being read.
struct Direction {
    TcpStream stream;
    StreamDecoder decoder;
    std::uint64_t decoded = 0; ///< bytes that went into events
    std::int64_t last_time_ns = 0;
    bool fin_seen = false;
    bool rst_seen = false;
    bool has_markers = false;
    bool markers_reported = false;
    std::optional<FrameKind> first_kind;
    Bytes head; ///< enough of the first bytes to recognize a key
};

/// One TCP connection while it is being read.
class ConnectionReader {
public:
    ConnectionReader(const IpEndpoint &a, const IpEndpoint &b) { trace_.endpoint = {a, b}; }

    void push(const TcpSegment &segment, std::int64_t time_ns);
    bool starts_anew(const TcpSegment &segment) const;
    Trace finish();

private:
    std::size_t side_of(const TcpSegment &segment) const
    {
        return segment.from == trace_.endpoint[0] ? 0 : 1;
    }
    void decode(std::size_t side, std::int64_t time_ns);
    void note_frame(std::size_t side, const MpaFrame &frame);
    void end_direction(std::size_t side);
    void find_roles();

    Trace trace_;
    std::array<Direction, 2> directions_;
    std::optional<std::size_t> syn_side_;
};

/// A SYN with another sequence number than before begins a new connection of the same two ports.
bool ConnectionReader::starts_anew(const TcpSegment &segment) const
{
    const Direction &direction = directions_[side_of(segment)];
    if (!segment.syn || segment.ack)
        return false;
    const auto known = direction.stream.syn_seq();
    return known ? *known != segment.seq
                 : direction.fin_seen || direction.rst_seen || direction.decoded > 0;
}

void ConnectionReader::push(const TcpSegment &segment, std::int64_t time_ns)
{
    const std::size_t side = side_of(segment);
    Direction &direction = directions_[side];
    if (segment.syn && !syn_side_)
        syn_side_ = segment.ack ? 1 - side : side;

    // A RST may carry any sequence number in the window, so its place in the stream is unknown.
    if (!segment.rst) {
        const Bytes fresh = direction.stream.push(segment);
        if (!fresh.empty()) {
            direction.last_time_ns = time_ns;
            if (direction.head.size() < common_key_size)
                append(direction.head, fresh);
            direction.decoder.feed(fresh);
            decode(side, time_ns);
        }
    }
    if (direction.stream.finished() && !direction.fin_seen) {
        direction.fin_seen = true;
        trace_.events.push_back({time_ns, side, direction.stream.offset(), FinEvent{}});
    }
    if (segment.rst && !direction.rst_seen) {
        direction.rst_seen = true;
        trace_.events.push_back({time_ns, side, direction.stream.offset(), RstEvent{}});
    }
}

void ConnectionReader::decode(std::size_t side, std::int64_t time_ns)
{
    Direction &direction = directions_[side];
    for (;;) {
        if (direction.has_markers && !direction.decoder.in_startup()) {
            if (!direction.markers_reported && !direction.decoder.pending().empty())
                trace_.events.push_back({time_ns, side, direction.decoded, MarkersEvent{}});
            direction.markers_reported = !direction.decoder.pending().empty();
            return;
        }
        auto item = direction.decoder.next();
        if (!item)
            return;
        if (item->frame())
            note_frame(side, *item->frame());
        const std::uint64_t offset = direction.decoded;
        direction.decoded += item->raw.size();
        trace_.events.push_back({time_ns, side, offset, std::move(*item)});
    }
}

/// M asks for markers in the other direction (RFC 5044 section 7.1.1).
void ConnectionReader::note_frame(std::size_t side, const MpaFrame &frame)
{
    directions_[side].first_kind = frame.kind();
    if (frame.has(flag_crc))
        trace_.crc_use = CrcUse::on;
    if (frame.has(flag_markers))
        directions_[1 - side].has_markers = true;
}

void ConnectionReader::end_direction(std::size_t side)
{
    Direction &direction = directions_[side];
    const auto add = [&](auto what, std::uint64_t offset) {
        // Before the FIN or RST of this direction, if there is one.
        const auto end = std::ranges::find_if(trace_.events, [&](const TraceEvent &event) {
            return event.side == side && (std::holds_alternative<FinEvent>(event.what) ||
                                          std::holds_alternative<RstEvent>(event.what));
        });
        trace_.events.insert(end, {direction.last_time_ns, side, offset, std::move(what)});
    };
    const ByteView rest = direction.decoder.pending();
    if (!rest.empty() && !direction.markers_reported)
        add(PartialEvent{direction.decoder.partial_frame(), Bytes(rest.begin(), rest.end())},
            direction.decoded);
    if (direction.stream.has_gap())
        add(GapEvent{direction.stream.gap_size()}, direction.stream.offset());
}

/// The one that opened the TCP connection; without its SYN, the one that sent the request.
void ConnectionReader::find_roles()
{
    for (std::size_t side : {1U, 0U}) {
        if (directions_[side].first_kind == FrameKind::request)
            trace_.initiator = side;
        else if (directions_[side].first_kind == FrameKind::reply)
            trace_.initiator = 1 - side;
    }
    trace_.initiator = syn_side_.value_or(trace_.initiator);
}

Trace ConnectionReader::finish()
{
    for (std::size_t side : {0U, 1U}) {
        trace_.is_mpa = trace_.is_mpa || begins_like_mpa(directions_[side].head);
        end_direction(side);
    }
    std::ranges::stable_sort(trace_.events, {}, &TraceEvent::time_ns);
    find_roles();
    return std::move(trace_);
}

using ConnectionKey = std::pair<IpEndpoint, IpEndpoint>;

/// All connections of a capture.
class ConnectionTable {
public:
    void push(const TcpSegment &segment, std::int64_t time_ns)
    {
        const ConnectionKey key = std::minmax(segment.from, segment.to);
        const auto current = current_.find(key);
        if (current == current_.end() || readers_[current->second].starts_anew(segment)) {
            current_[key] = readers_.size();
            readers_.emplace_back(segment.from, segment.to);
        }
        readers_[current_[key]].push(segment, time_ns);
    }

    std::vector<Trace> finish()
    {
        std::vector<Trace> traces;
        for (ConnectionReader &reader : readers_)
            traces.push_back(reader.finish());
        return traces;
    }

private:
    std::vector<ConnectionReader> readers_;
    std::map<ConnectionKey, std::size_t> current_;
};

} // namespace

CaptureTrace trace_capture(PcapReader reader, std::optional<std::uint16_t> port)
{
    if (!is_known_link_type(reader.link_type()))
        throw PcapError(fmt::format("the capture has the unsupported link type {}", reader.link_type()));

    CaptureTrace capture;
    ConnectionTable table;
    bool first = true;
    try {
        while (const auto packet = reader.next()) {
            if (std::exchange(first, false))
                capture.start_ns = packet->time_ns;
            const auto segment = parse_packet(reader.link_type(), packet->data);
            if (segment && (!port || segment->from.port == *port || segment->to.port == *port))
                table.push(*segment, packet->time_ns);
        }
    } catch (const PcapError &error) {
        capture.damage = error.what();
    }
    capture.connections = table.finish();
    return capture;
}

} // namespace mpapeer
