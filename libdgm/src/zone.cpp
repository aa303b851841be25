// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#include "zone.h"

#include <algorithm>

namespace libdgm {

ValidityMap::ValidityMap(size_t length, size_t block)
	: length_(length), block_(block), blocks_(length / block + (length % block != 0)),
	  words_(std::make_unique<std::atomic<uint64_t>[]>(blocks_ / 64 + 1))
{
}

void ValidityMap::mark(uint64_t begin, uint64_t end)
{
	const uint64_t first = begin / block_ + (begin % block_ != 0);
	// The last block of the zone may be short
	const uint64_t behind = end == length_ ? blocks_ : end / block_;
	for (uint64_t index = first; index < behind; index++)
		words_[index / 64].fetch_or(uint64_t{1} << index % 64, std::memory_order_release);
}

bool ValidityMap::has(size_t index) const
{
	return index < blocks_ && (words_[index / 64].load(std::memory_order_acquire) >> index % 64 & 1) != 0;
}

void ValidityMap::clear(size_t first, size_t count)
{
	const size_t behind = std::min(blocks_, count > blocks_ - std::min(first, blocks_) ? blocks_ : first + count);
	for (size_t index = first; index < behind; index++)
		words_[index / 64].fetch_and(~(uint64_t{1} << index % 64), std::memory_order_acq_rel);
}

} // namespace libdgm
