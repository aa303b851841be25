// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#include "map.h"

#include <algorithm>
#include <iterator>

namespace libdgm {

void Intervals::add(uint64_t begin, uint64_t end)
{
	if (begin >= end)
		return;
	auto first = ends_.upper_bound(begin);
	if (first != ends_.begin() && std::prev(first)->second >= begin)
		--first;
	auto behind = first;
	for (; behind != ends_.end() && behind->first <= end; ++behind) {
		begin = std::min(begin, behind->first);
		end = std::max(end, behind->second);
		bytes_ -= behind->second - behind->first;
	}
	ends_.erase(first, behind);
	ends_.emplace(begin, end);
	bytes_ += end - begin;
}

bool Intervals::has(uint64_t begin, uint64_t end) const
{
	if (begin >= end)
		return true;
	const auto behind = ends_.upper_bound(begin);
	return behind != ends_.begin() && std::prev(behind)->second >= end;
}

std::optional<std::pair<uint64_t, uint64_t>> Intervals::next(uint64_t offset) const
{
	auto found = ends_.upper_bound(offset);
	if (found != ends_.begin() && std::prev(found)->second > offset)
		--found;
	if (found == ends_.end())
		return {};
	return *found;
}

} // namespace libdgm
