// SPDX-License-Identifier: GPL-2.0
#include "packet.hpp"

#include <fmt/format.h>

#include <algorithm>

#include <arpa/inet.h>

namespace mpapeer {
namespace {

// https://www.tcpdump.org/linktypes.html
enum LinkType : std::uint32_t {
    link_ethernet = 1,
    link_raw_bsd = 12,
    link_raw = 101,
    link_linux_sll = 113,
    link_ipv4 = 228,
    link_ipv6 = 229,
    link_linux_sll2 = 276,
};

constexpr std::uint16_t ethertype_ipv4 = 0x0800;
constexpr std::uint16_t ethertype_ipv6 = 0x86dd;
constexpr std::uint16_t ethertype_vlan = 0x8100;
constexpr std::uint16_t ethertype_qinq = 0x88a8;

constexpr std::uint8_t protocol_tcp = 6;
constexpr std::uint8_t ipv6_hop_by_hop = 0;
constexpr std::uint8_t ipv6_routing = 43;
constexpr std::uint8_t ipv6_destination = 60;

constexpr std::size_t ipv4_min_header = 20;
constexpr std::size_t ipv6_header = 40;
constexpr std::size_t tcp_min_header = 20;

/// A layer's information about the one above it.
struct Inner {
    unsigned protocol;
    ByteView data;
};

std::uint16_t u16_at(ByteView bytes, std::size_t offset)
{
    return Reader(bytes.subspan(offset)).read<std::uint16_t>();
}

/// Ethernet: the type is behind the addresses, or behind VLAN tags.
std::optional<Inner> parse_ethernet(ByteView packet)
{
    constexpr std::size_t type_offset = 12;
    constexpr std::size_t tag_size = 4;
    std::size_t offset = type_offset;
    while (packet.size() >= offset + 2) {
        const std::uint16_t type = u16_at(packet, offset);
        if (type != ethertype_vlan && type != ethertype_qinq)
            return Inner{type, packet.subspan(offset + 2)};
        offset += tag_size;
    }
    return std::nullopt;
}

std::optional<Inner> parse_cooked(ByteView packet, std::size_t type_offset, std::size_t size)
{
    if (packet.size() < size)
        return std::nullopt;
    return Inner{u16_at(packet, type_offset), packet.subspan(size)};
}

std::optional<Inner> parse_raw(ByteView packet)
{
    if (packet.empty())
        return std::nullopt;
    const unsigned version = packet[0] >> 4;
    return Inner{version == 6 ? ethertype_ipv6 : ethertype_ipv4, packet};
}

std::optional<Inner> parse_link(std::uint32_t link_type, ByteView packet)
{
    switch (link_type) {
    case link_ethernet: return parse_ethernet(packet);
    case link_linux_sll: return parse_cooked(packet, 14, 16);
    case link_linux_sll2: return parse_cooked(packet, 0, 20);
    case link_raw:
    case link_raw_bsd:
    case link_ipv4:
    case link_ipv6: return parse_raw(packet);
    default: return std::nullopt;
    }
}

/// Cuts off bytes behind the IP packet. Offloaded packets have a total length of 0.
ByteView trimmed(ByteView packet, std::size_t length)
{
    return length == 0 ? packet : packet.first(std::min(length, packet.size()));
}

/// Fills in the addresses; fragments are not reassembled.
std::optional<Inner> parse_ipv4(ByteView packet, TcpSegment &segment)
{
    if (packet.size() < ipv4_min_header || packet[0] >> 4 != 4)
        return std::nullopt;
    const std::size_t header = std::size_t{packet[0]} % 16 * 4;
    const bool is_fragment = (u16_at(packet, 6) & 0x3fff) != 0;
    packet = trimmed(packet, u16_at(packet, 2));
    if (header < ipv4_min_header || packet.size() < header || is_fragment)
        return std::nullopt;
    std::ranges::copy(packet.subspan(12, 4), segment.from.address.begin());
    std::ranges::copy(packet.subspan(16, 4), segment.to.address.begin());
    return Inner{packet[9], packet.subspan(header)};
}

std::optional<Inner> parse_ipv6(ByteView packet, TcpSegment &segment)
{
    if (packet.size() < ipv6_header || packet[0] >> 4 != 6)
        return std::nullopt;
    const std::size_t length = u16_at(packet, 4);
    packet = trimmed(packet, length == 0 ? 0 : length + ipv6_header);
    segment.from.v6 = segment.to.v6 = true;
    std::ranges::copy(packet.subspan(8, 16), segment.from.address.begin());
    std::ranges::copy(packet.subspan(24, 16), segment.to.address.begin());

    std::uint8_t next = packet[6];
    ByteView rest = packet.subspan(ipv6_header);
    while (next == ipv6_hop_by_hop || next == ipv6_routing || next == ipv6_destination) {
        if (rest.size() < 8)
            return std::nullopt;
        const std::size_t size = (rest[1] + std::size_t{1}) * 8;
        next = rest[0];
        if (rest.size() < size)
            return std::nullopt;
        rest = rest.subspan(size);
    }
    return Inner{next, rest};
}

bool parse_tcp(ByteView bytes, TcpSegment &segment)
{
    if (bytes.size() < tcp_min_header)
        return false;
    Reader reader(bytes);
    segment.from.port = reader.read<std::uint16_t>();
    segment.to.port = reader.read<std::uint16_t>();
    segment.seq = reader.read<std::uint32_t>();
    const std::size_t header = std::size_t{bytes[12]} / 16 * 4;
    const std::uint8_t flags = bytes[13];
    segment.fin = (flags & 0x01) != 0;
    segment.syn = (flags & 0x02) != 0;
    segment.rst = (flags & 0x04) != 0;
    segment.ack = (flags & 0x10) != 0;
    if (header < tcp_min_header || header > bytes.size())
        return false;
    segment.payload = bytes.subspan(header);
    return true;
}

} // namespace

std::string IpEndpoint::text() const
{
    std::array<char, INET6_ADDRSTRLEN> buffer{};
    ::inet_ntop(v6 ? AF_INET6 : AF_INET, address.data(), buffer.data(), buffer.size());
    if (v6)
        return fmt::format("[{}]:{}", buffer.data(), port);
    return fmt::format("{}:{}", buffer.data(), port);
}

bool is_known_link_type(std::uint32_t link_type)
{
    constexpr std::array known = {link_ethernet, link_raw_bsd, link_raw,       link_linux_sll,
                                  link_ipv4,     link_ipv6,    link_linux_sll2};
    return std::ranges::find(known, link_type) != known.end();
}

std::optional<TcpSegment> parse_packet(std::uint32_t link_type, ByteView packet)
{
    const std::optional<Inner> link = parse_link(link_type, packet);
    if (!link)
        return std::nullopt;
    TcpSegment segment;
    std::optional<Inner> ip;
    if (link->protocol == ethertype_ipv4)
        ip = parse_ipv4(link->data, segment);
    else if (link->protocol == ethertype_ipv6)
        ip = parse_ipv6(link->data, segment);
    if (!ip || ip->protocol != protocol_tcp || !parse_tcp(ip->data, segment))
        return std::nullopt;
    return segment;
}

} // namespace mpapeer
