// SPDX-License-Identifier: GPL-2.0
// One end of a connection from a fuzzer's input: a device, a policy, parameters of a ULP.
#pragma once

#include "input.hpp"
#include "kernel.hpp"

struct Side {
    iw_mpa_caps caps;
    iw_mpa_policy policy;
    std::uint32_t ird;
    std::uint32_t ord;

    iw_mpa_local local() const { return {&caps, &policy, ird, ord}; }

    /// A depth as the wire carries it.
    static std::uint32_t wire(std::uint32_t depth)
    {
        return depth < IW_MPA_DEPTH_MAX ? depth : std::uint32_t{IW_MPA_DEPTH_MAX};
    }

    bool within_caps() const { return ird <= caps.max_ird && ord <= caps.max_ord; }
    bool sends_enhanced() const { return policy.rev == 2 && policy.enhanced; }
    /// The kinds of RTR it can send; a Read takes a slot of the ORD.
    u8 sendable() const
    {
        return static_cast<u8>(caps.rtr_send & ~(caps.max_ord ? 0 : RDMA_MPA_RTR_READ));
    }
    u8 offered() const { return policy.rtr_offer & sendable(); }
    u8 accepted() const { return policy.rtr_accept & caps.rtr_recv; }

    /// A depth as the device installs it, never above its limit.
    std::uint32_t installed_ird(std::uint32_t depth) const;
    std::uint32_t installed_ord(std::uint32_t depth) const;
};

/// A side that iw_mpa_policy_check() has no reason to refuse. 12 bytes: flags; kinds the device
/// sends and receives; kinds offered and accepted; order, model and use of CRCs; four depths of
/// two bytes each: the device's IRD and ORD, the ULP's IRD and ORD.
Side read_side(Input &input, rdma_mpa_dialect dialect);

/// A depth of a ULP, two bytes, often close to `cap`.
std::uint32_t read_ulp_depth(Input &input, std::uint32_t cap);

/// A policy with arbitrary values, also those of enumerations.
iw_mpa_policy read_wild_policy(Input &input);
