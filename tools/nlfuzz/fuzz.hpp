// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <chrono>
#include <cstdint>

namespace nlfuzz {

// Sends random and mutated messages for this time, from this number of threads, then checks that the
// kernel still answers. Returns an exit status.
int fuzz(std::chrono::seconds time, uint64_t seed, unsigned threads);

} // namespace nlfuzz
