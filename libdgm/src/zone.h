// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#pragma once

#include "address.h"

#include <atomic>
#include <memory>

namespace libdgm {

class Endpoint;

// The validity map: a bit for each block that one datagram has written whole
class ValidityMap {
public:
	ValidityMap(size_t length, size_t block);
	// The octets are in place
	void mark(uint64_t begin, uint64_t end);
	[[nodiscard]] bool has(size_t index) const;
	void clear(size_t first, size_t count);

private:
	size_t length_, block_, blocks_;
	std::unique_ptr<std::atomic<uint64_t>[]> words_;
};

// Memory that named sources may write to. The endpoint's lock protects all but the map.
struct Zone {
	Endpoint *endpoint;
	uint8_t *memory;
	uint64_t length;
	uint32_t number, qkey;
	bool partial, record;
	std::unique_ptr<ValidityMap> map;
	SourceSet sources;
};

} // namespace libdgm
