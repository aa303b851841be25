// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <chrono>
#include <cstdint>

namespace mpanl {

// Sends random and mutated messages for so long, then checks that the kernel still answers. Returns
// an exit status.
int fuzz(std::chrono::seconds time, uint64_t seed);

} // namespace mpanl
