// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
// Events that wait for the program, and a descriptor that is readable while one waits that it wants to be woken for.
// The caller has the endpoint's lock.
#pragma once

#include "udp.h"

#include <deque>

namespace libdgm {

class Queue {
public:
	Queue(size_t records, bool solicited_only);

	[[nodiscard]] int fd() const { return fd_.get(); }
	[[nodiscard]] bool has_room() const { return records_ < limit_; }
	[[nodiscard]] bool has_room_for_error() const { return errors_ < errors_max; }
	[[nodiscard]] size_t receives() const { return receives_; }
	// Returns false, and drops it, if too many of its type wait. Receives always fit: dgm_recv() counts them
	bool push(const dgm_event &event);
	size_t take(dgm_event *events, size_t max);
	// Removes the records of a zone and calls fold(event) for each
	size_t take_records(uint32_t zone, const std::function<void(const dgm_event &)> &fold);

private:
	static constexpr size_t errors_max = 64;

	void removed(const dgm_event &event);
	void update();
	[[nodiscard]] bool wakes(const dgm_event &event) const;

	Descriptor fd_;
	std::deque<dgm_event> events_;
	size_t limit_, records_ = 0, receives_ = 0, errors_ = 0;
	size_t waking_ = 0; // events for which fd is readable
	bool solicited_only_, readable_ = false;
};

} // namespace libdgm
