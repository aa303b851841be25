// SPDX-License-Identifier: GPL-2.0
// Events on the MPA connections of a capture.
#pragma once

#include "fields.hpp"
#include "pcap.hpp"
#include "tcp_stream.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace mpapeer {

/// The peer has closed (FIN) or reset (RST) its direction.
struct FinEvent {};
struct RstEvent {};

/// Bytes that were left when the direction ended: not a whole frame or FPDU.
struct PartialEvent {
    std::optional<MpaFrame> frame; ///< the frame they begin, if its header is there
    Bytes raw;
};

/// Bytes that the capture does not hold; nothing behind them is decoded.
struct GapEvent {
    std::uint64_t missing = 0;
};

/// FPDUs with markers: not decoded.
struct MarkersEvent {};

struct TraceEvent {
    std::int64_t time_ns = 0; ///< of the packet that completed it, since 1970
    std::size_t side = 0;     ///< 0 or 1, an index into Trace::endpoint
    std::uint64_t offset = 0; ///< of its first byte in the stream of this direction
    std::variant<StreamItem, FinEvent, RstEvent, PartialEvent, GapEvent, MarkersEvent> what;
};

/// One TCP connection.
struct Trace {
    std::array<IpEndpoint, 2> endpoint;
    std::size_t initiator = 0; ///< which of the two is the MPA initiator
    bool is_mpa = false;       ///< a direction starts with an MPA key, or a part of one
    CrcUse crc_use = CrcUse::off;
    std::vector<TraceEvent> events; ///< in the order of the capture
};

struct CaptureTrace {
    std::vector<Trace> connections; ///< by first packet
    std::int64_t start_ns = 0;      ///< of the first packet
    std::optional<std::string> damage; ///< why reading stopped before the end
};

/// Decodes a whole capture; `port` leaves out connections without this port. Throws PcapError if the
/// link type is unknown. If a capture is damaged later on, the packets before the damage are decoded.
CaptureTrace trace_capture(PcapReader reader, std::optional<std::uint16_t> port = std::nullopt);

} // namespace mpapeer
