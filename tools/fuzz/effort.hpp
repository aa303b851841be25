// SPDX-License-Identifier: GPL-2.0
// How much a harness does for each input. It is built twice, see CMakeLists.txt: with sanitizers
// everything is done for each input; without them it is done for one of 64, which the input itself
// chooses, so that a failure can be had again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>

#if __has_feature(address_sanitizer)
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = false;
#endif

inline constexpr unsigned sample = 64;

/// A number that all bytes of an input matter to.
inline std::uint32_t digest(std::span<const std::uint8_t> input)
{
    const auto sum = std::accumulate(input.begin(), input.end(), std::uint32_t{0});
    return (sum + static_cast<std::uint32_t>(input.size())) * 0x9e3779b1u >> 8;
}

inline bool is_thorough(std::uint32_t digest)
{
    return sanitized || digest % sample == 0;
}
