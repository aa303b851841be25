// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>

namespace libdgm {

// A set of intervals; neighbours are joined
class Intervals {
public:
	void add(uint64_t begin, uint64_t end);
	[[nodiscard]] bool has(uint64_t begin, uint64_t end) const;
	[[nodiscard]] uint64_t bytes() const { return bytes_; }
	// The first one that ends behind this offset: begin and end
	[[nodiscard]] std::optional<std::pair<uint64_t, uint64_t>> next(uint64_t offset) const;

private:
	std::map<uint64_t, uint64_t> ends_; // by begin
	uint64_t bytes_ = 0;
};

} // namespace libdgm
