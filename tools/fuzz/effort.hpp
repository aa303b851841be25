// SPDX-License-Identifier: GPL-2.0
// The effort of a harness for each input. A harness is built twice, see CMakeLists.txt. With
// sanitizers it makes all checks for each input; without them it makes the costly checks for one input
// of 64. The input itself decides this, so that a failure can be repeated.
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

/// A number that depends on all bytes of an input.
inline std::uint32_t digest(std::span<const std::uint8_t> input)
{
    const auto sum = std::accumulate(input.begin(), input.end(), std::uint32_t{0});
    return (sum + static_cast<std::uint32_t>(input.size())) * 0x9e3779b1u >> 8;
}

inline bool is_thorough(std::uint32_t digest)
{
    return sanitized || digest % sample == 0;
}
