// SPDX-License-Identifier: GPL-2.0
#include "side.hpp"

#include <array>
#include <bit>
#include <cstring>
#include <iterator>

namespace {

constexpr std::array<std::uint32_t, 16> corners = {
    0,      1,      2,      3,      0x7f,   0x80,   0x81,   0x1fff,
    0x2000, 0x2001, 0x3ffd, 0x3ffe, 0x3fff, 0x4000, 0x8000, 0xffff,
};

constexpr u8 kind_orders[][3] = {
    {2, 4, 1}, {1, 2, 4}, {1, 4, 2}, {2, 1, 4}, {4, 1, 2}, {4, 2, 1},
};

enum SideFlag : unsigned {
    side_pow2 = 0x01,
    side_tx_markers = 0x02,
    side_rx_markers = 0x04,
    side_ird_ulp = 0x08,
    side_ord_ulp = 0x10,
    side_short_ird = 0x20,
    side_plain = 0x40,
    side_rev1 = 0x80,
};

/// The top bit selects a corner case; without it the bits are the depth.
u16 read_cap(Input &input)
{
    const unsigned raw = input.u16();
    return static_cast<u16>(raw & 0x8000 ? corners[raw % corners.size()] : raw);
}

/// RFC 6581 needs at least one option, which random bytes nearly never have.
void repair(Side &side)
{
    iw_mpa_policy &policy = side.policy;

    if (policy.enhanced && !side.accepted())
        policy.rtr_accept = IW_MPA_RTR_ALL;
    if (policy.enhanced && !side.offered())
        policy.model = RDMA_MPA_MODEL_CLIENT_SERVER;
    if (!policy.enhanced && policy.model == RDMA_MPA_MODEL_PEER_TO_PEER_REQUIRED)
        policy.model = RDMA_MPA_MODEL_PEER_TO_PEER;
    if (side.caps.no_crc && policy.crc == RDMA_MPA_CRC_REQUIRED)
        policy.crc = RDMA_MPA_CRC_IF_ASKED;
}

} // namespace

std::uint32_t Side::installed_ird(std::uint32_t depth) const
{
    return caps.pow2_depths && depth ? std::bit_ceil(depth) : depth;
}

std::uint32_t Side::installed_ord(std::uint32_t depth) const
{
    return caps.pow2_depths && depth ? std::bit_ceil(depth) : depth;
}

std::uint32_t read_ulp_depth(Input &input, std::uint32_t cap)
{
    const std::uint32_t raw = input.u16();

    switch (raw >> 14) {
    case 0: return raw;
    case 1: return raw % (cap + 1);
    case 2: return corners[raw % corners.size()];
    default: return raw & 1 ? cap + 1 + (raw >> 1 & 3) : 0x10000 | (raw & 0x3fff);
    }
}

Side read_side(Input &input, rdma_mpa_dialect dialect)
{
    Side side;
    std::memset(&side, 0, sizeof(side));
    const unsigned flags = input.u8();
    const unsigned kinds = input.u8();
    const unsigned wanted = input.u8();
    const unsigned style = input.u8();

    side.caps.pow2_depths = flags & side_pow2;
    side.caps.tx_markers = flags & side_tx_markers;
    side.caps.rx_markers = flags & side_rx_markers;
    side.caps.rtr_recv_one = style / 54 % 2;
    side.caps.rtr_send = kinds & IW_MPA_RTR_ALL;
    side.caps.rtr_recv = kinds >> 4 & IW_MPA_RTR_ALL;
    if (!side.caps.rtr_recv)
        side.caps.rtr_recv = IW_MPA_RTR_ALL;

    side.policy = iw_mpa_default_policy;
    side.policy.rev = flags & side_rev1 ? 1 : 2;
    side.policy.enhanced = !(flags & (side_rev1 | side_plain));
    side.policy.ird_ulp = flags & side_ird_ulp;
    side.policy.ord_ulp = flags & side_ord_ulp;
    side.policy.short_ird = (flags & side_short_ird) != 0;
    side.policy.rtr_offer = wanted & IW_MPA_RTR_ALL;
    side.policy.rtr_accept = wanted >> 4 & IW_MPA_RTR_ALL;
    std::memcpy(side.policy.rtr_order, kind_orders[style % std::size(kind_orders)], 3);
    side.policy.model = static_cast<u8>(style / 6 % 3);
    side.policy.crc = static_cast<u8>(style / 18 % 3);
    side.policy.markers = side.caps.rx_markers;
    side.policy.dialect = static_cast<u8>(dialect);
    side.policy.fallback = style & 0x80;
    side.policy.fastopen = kinds & 0x08;
    side.caps.fastopen = wanted & 0x08;
    side.caps.large = side.caps.fastopen;
    side.caps.streams = wanted & 0x80;
    side.caps.no_connect_ms = kinds & 0x80;
    side.caps.no_crc = wanted & 0x80;
    // Both flags together stand for an adapter that also handles the RTR itself
    side.caps.rtr_offload = side.caps.no_connect_ms && side.caps.no_crc;

    side.caps.max_ird = read_cap(input);
    side.caps.max_ord = read_cap(input);
    repair(side);
    side.ird = read_ulp_depth(input, side.caps.max_ird);
    side.ord = read_ulp_depth(input, side.caps.max_ord);
    return side;
}

iw_mpa_policy read_wild_policy(Input &input)
{
    iw_mpa_policy policy = iw_mpa_default_policy;
    const auto wild = [&input] {
        const unsigned value = input.u8();
        return static_cast<u8>(value & 0x80 ? value : value % 8);
    };
    const auto deadline = [&input] {
        const unsigned value = input.u8();
        return value & 0x80 ? input.u32() : RDMA_MPA_DEADLINE_MAX - 2 + value % 5;
    };
    const auto order = [&input] {
        const unsigned value = input.u8();
        return static_cast<u8>(value & 0x80 ? value : 1u << value % 3);
    };
    const unsigned flags = input.u8();

    policy.rev = flags & 0x80 ? input.u8() : static_cast<u8>(1 + (flags & 1));
    policy.enhanced = flags & 0x02;
    policy.model = wild();
    policy.crc = wild();
    policy.dialect = wild();
    policy.rtr_offer = flags & 0x04 ? input.u8() : IW_MPA_RTR_ALL;
    policy.rtr_accept = flags & 0x08 ? input.u8() : IW_MPA_RTR_ALL;
    for (u8 &kind : policy.rtr_order)
        kind = order();
    if (flags & 0x10) {
        policy.request_ms = deadline();
        policy.decide_ms = deadline();
        policy.rtr_ms = deadline();
        policy.reply_ms = deadline();
    }
    if (flags & 0x20)
        policy.connect_ms = deadline();
    policy.large = flags & 0x40;
    policy.streams = flags & 0x40 ? input.u8() : 1;
    policy.idle = flags & 0x40 ? input.u8() : 1;
    return policy;
}
