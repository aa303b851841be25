// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
// dg_track.c: segments of a few sources and zones in any order, and time that passes. Input: slots, gap, then steps.
//
// The oracle has no slots, bitmaps or lists: it keeps each message as a set of intervals, and finds what is oldest or due
// by a look at all. It was written from the table of the specification.
#include "check.h"

#include <algorithm>
#include <compare>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

extern "C" {
#include "dg_track.h"
}

namespace {

constexpr uint64_t deadline = 100, late = 20;

struct Key {
	unsigned source, zone;
	auto operator<=>(const Key &) const = default;
};

struct Message {
	uint32_t msn;
	uint64_t base, ml;
	bool partial;
	uint64_t started, sequence;                       // order of beginning
	std::set<std::pair<uint64_t, uint64_t>> came;     // begin, end
	std::optional<uint64_t> stride, last, due, ended; // S; MO of Last; end of the gap; when it ended
	uint64_t end_sequence = 0, gap_sequence = 0;
};

using Runs = std::vector<std::pair<uint64_t, uint64_t>>;

Runs runs_of(const Message &m)
{
	Runs runs;
	for (const auto &[begin, end] : m.came) {
		if (!runs.empty() && runs.back().second == begin)
			runs.back().second = end;
		else
			runs.emplace_back(begin, end);
	}
	return runs;
}

class Oracle {
public:
	Oracle(size_t slots, uint64_t gap) : slots_(slots), gap_(gap) {}

	dg_verdict offer(const Key &key, const dg_segment &seg, bool partial, uint64_t now)
	{
		const uint64_t begin = seg.mo, end = begin + seg.len;
		delivered = nullptr;
		if (begin == 0 && seg.len == seg.ml)
			return DG_SINGLE;
		if (!seg.last && (uint64_t{seg.ml} + seg.len - 1) / seg.len > 1024)
			return DG_TOO_MANY;
		if (seg.last && begin > 1023 * 65535)
			return DG_TOO_MANY;
		auto found = all_.find(key);
		if (found != all_.end() && found->second.ended && now >= *found->second.ended + late) {
			all_.erase(found);
			found = all_.end();
		}
		if (found != all_.end()) {
			const uint32_t ahead = seg.msn - found->second.msn;
			if (ahead >= 0x80000000 || (ahead == 0 && found->second.ended))
				return DG_LATE;
			// its Last has come, and it is still here: only the gap keeps it
			if (ahead != 0 && !found->second.ended && found->second.due) {
				finish(found->second, now);
				delivered = &found->second;
				return DG_OLDER;
			}
			if (ahead != 0) {
				superseded += !found->second.ended;
				all_.erase(found);
				found = all_.end();
			}
		} else if (all_.size() == slots_) {
			evict();
		}
		if (found == all_.end())
			found = all_.emplace(key, Message{.msn = seg.msn,
							  .base = seg.to - seg.mo,
							  .ml = seg.ml,
							  .partial = partial,
							  .started = now,
							  .sequence = sequence_++}).first;
		return add(found->second, seg, begin, end, now);
	}

	Message *expire(uint64_t now)
	{
		while (Message *const due = find_due(now)) {
			finish(*due, now);
			if (due->partial)
				return due;
			expired++;
		}
		return nullptr;
	}

	std::optional<uint64_t> next() const
	{
		std::optional<uint64_t> when;
		for (const auto &[key, m] : all_) {
			if (m.ended)
				continue;
			const uint64_t due = std::min(m.started + deadline, m.due.value_or(~uint64_t{0}));
			when = std::min(when.value_or(~uint64_t{0}), due);
		}
		return when;
	}

	void forget(unsigned zone)
	{
		std::erase_if(all_, [&](const auto &entry) { return entry.first.zone == zone; });
	}

	const Message *delivered = nullptr;
	uint64_t superseded = 0, evicted = 0, expired = 0;

private:
	dg_verdict add(Message &m, const dg_segment &seg, uint64_t begin, uint64_t end, uint64_t now)
	{
		if (seg.ml != m.ml || seg.to - seg.mo != m.base)
			return DG_MISMATCH;
		const std::optional<uint64_t> last = seg.last ? begin : m.last;
		const std::optional<uint64_t> stride = seg.last ? m.stride : seg.len;
		if ((m.last && last != m.last) || (m.stride && stride != m.stride))
			return DG_MISMATCH;
		if (stride && last && (*last % *stride != 0 || m.ml - *last > *stride))
			return DG_MISMATCH;
		m.last = last, m.stride = stride;
		if (!m.came.insert({begin, end}).second)
			return DG_DUPLICATE;
		const Runs runs = runs_of(m);
		const bool whole = runs.size() == 1 && runs[0] == std::pair{uint64_t{0}, m.ml};
		if (whole || (seg.last && m.partial && gap_ == 0)) {
			finish(m, now);
			delivered = &m;
			return DG_DELIVER;
		}
		if (seg.last && m.partial)
			m.due = now + gap_, m.gap_sequence = sequence_++;
		return DG_PLACE;
	}

	void finish(Message &m, uint64_t now)
	{
		m.ended = now;
		m.end_sequence = sequence_++;
	}

	// First those whose gap is over, in their order, then those at their deadline
	Message *find_due(uint64_t now)
	{
		Message *found = nullptr;
		for (auto &[key, m] : all_)
			if (!m.ended && m.due && now >= *m.due && (!found || m.gap_sequence < found->gap_sequence))
				found = &m;
		if (found)
			return found;
		for (auto &[key, m] : all_)
			if (!m.ended && now >= m.started + deadline && (!found || m.sequence < found->sequence))
				found = &m;
		return found;
	}

	void evict()
	{
		const auto age = [](const auto &entry) {
			const Message &m = entry.second;
			return std::tuple(!m.ended, m.ended ? m.end_sequence : m.sequence);
		};
		const auto oldest = std::ranges::min_element(all_, {}, age);
		evicted += !oldest->second.ended;
		all_.erase(oldest);
	}

	std::map<Key, Message> all_;
	size_t slots_;
	uint64_t gap_, sequence_ = 0;
};

void check_message(const dg_slot *slot, const Message &m, const Key *key)
{
	Runs runs;
	uint32_t from = 0;
	uint64_t bytes = 0;
	bool ended = false;
	dg_run run;
	while (dg_track_run(slot, &from, &run)) {
		CHECK(!ended);
		ended = run.end;
		runs.emplace_back(run.mo, uint64_t{run.mo} + run.len);
		bytes += run.len;
	}
	CHECK(ended);
	CHECK(runs == runs_of(m));
	CHECK(bytes == slot->bytes && slot->ml == m.ml && slot->base == m.base && slot->msn == m.msn);
	if (key)
		CHECK(slot->stag == key->zone && slot->source.port == key->source);
}

// Lengths that meet each other often
dg_segment make_segment(Input &input, uint32_t zone)
{
	const uint64_t shape = input.number(1);
	const uint32_t stride = static_cast<uint32_t>(1 + shape % 4), index = static_cast<uint32_t>(input.number(1));
	const uint32_t number = static_cast<uint32_t>(2 + (shape >> 2) % 8);
	dg_segment seg{};
	seg.form = DG_WRITE_RECORD;
	seg.stag = zone;
	seg.msn = static_cast<uint32_t>(index >> 4) - 6;
	seg.ml = stride * number - (shape >> 5) % stride;
	seg.mo = stride * (index % number);
	seg.len = std::min(stride, seg.ml - seg.mo);
	if (shape == 0xff) { // anything
		seg.msn = static_cast<uint32_t>(input.number(4));
		seg.ml = static_cast<uint32_t>(input.number(4)), seg.len = static_cast<uint32_t>(input.number(2));
		seg.mo = static_cast<uint32_t>(input.number(4));
	}
	seg.last = uint64_t{seg.mo} + seg.len == seg.ml;
	seg.to = 0x1000 + (index == 7 ? 1 : 0) + uint64_t{seg.mo};
	return seg;
}

// A datagram that dg_parse() accepts
bool possible(const dg_segment &seg)
{
	const uint64_t end = uint64_t{seg.mo} + seg.len;
	return end <= seg.ml && (seg.len > 0 || seg.ml == 0) && (seg.last || seg.mo % seg.len == 0);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	Input input(data, size);
	const size_t number = 1 + input.number(1) % 5;
	const dg_track_times times{.deadline = deadline, .gap = input.number(1) % 8, .late = late};
	const auto slots = std::make_unique<dg_slot[]>(number);
	dg_track track;
	dg_track_init(&track, slots.get(), static_cast<uint32_t>(number), 1, &times);
	Oracle oracle(number, times.gap);
	uint64_t now = 1;
	for (int steps = 0; !input.empty() && steps < 1000; steps++) {
		const uint64_t step = input.number(1);
		if (step >= 0xf8) {
			dg_track_forget(&track, step & 1);
			oracle.forget(step & 1);
			continue;
		}
		now += step >> 6 == 3 ? 1 + (step & 0x1f) * 4 : step >> 6;
		while (true) {
			const dg_slot *const slot = dg_track_expire(&track, now);
			const Message *const message = oracle.expire(now);
			CHECK((slot != nullptr) == (message != nullptr));
			if (!slot)
				break;
			check_message(slot, *message, nullptr);
		}
		const Key key{static_cast<unsigned>(step >> 1 & 7), static_cast<unsigned>(step & 1)};
		const dg_segment seg = make_segment(input, key.zone);
		if (!possible(seg))
			continue;
		dg_source source{};
		source.port = static_cast<uint16_t>(key.source);
		dg_slot *message = nullptr;
		const bool partial = step >> 4 & 1;
		dg_verdict verdict = dg_track_offer(&track, &source, &seg, partial, now, &message);
		CHECK(verdict == oracle.offer(key, seg, partial, now));
		if (verdict == DG_OLDER) {
			CHECK(message);
			check_message(message, *oracle.delivered, &key);
			message = nullptr;
			verdict = dg_track_offer(&track, &source, &seg, partial, now, &message);
			CHECK(verdict != DG_OLDER && verdict == oracle.offer(key, seg, partial, now));
		}
		CHECK((verdict == DG_DELIVER) == (message != nullptr));
		if (message)
			check_message(message, *oracle.delivered, &key);
		uint64_t when = 0;
		const auto expected = oracle.next();
		CHECK(dg_track_next(&track, &when) == expected.has_value());
		CHECK(!expected || when == *expected);
		CHECK(track.superseded == oracle.superseded && track.evicted == oracle.evicted && track.expired == oracle.expired);
	}
	return 0;
}
