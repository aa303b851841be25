// SPDX-License-Identifier: GPL-2.0
// From a captured packet to the TCP segment in it.
#pragma once

#include "bytes.hpp"

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>

namespace mpapeer {

/// An IPv4 or IPv6 address and a port.
struct IpEndpoint {
    bool v6 = false;
    std::array<std::uint8_t, 16> address{}; ///< IPv4 in the first four
    std::uint16_t port = 0;

    std::string text() const;
    auto operator<=>(const IpEndpoint &) const = default;
};

struct TcpSegment {
    IpEndpoint from;
    IpEndpoint to;
    std::uint32_t seq = 0;
    bool syn = false;
    bool ack = false;
    bool fin = false;
    bool rst = false;
    ByteView payload;
};

/// Can packets of this pcap link type be decoded? Yes for Ethernet (also with VLAN tags), Linux
/// cooked v1 and v2, raw IP.
bool is_known_link_type(std::uint32_t link_type);

/// The TCP segment in a packet; nothing if the packet holds something else, or is cut off in its
/// headers. If the capture has cut off the payload, the segment has the part that is there.
std::optional<TcpSegment> parse_packet(std::uint32_t link_type, ByteView packet);

} // namespace mpapeer
