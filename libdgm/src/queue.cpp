// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#include "queue.h"

#include <sys/eventfd.h>

#include <cerrno>

namespace libdgm {

Queue::Queue(size_t records, bool solicited_only)
	: fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), limit_(records), solicited_only_(solicited_only)
{
	if (fd_.get() < 0)
		throw_errno(errno);
}

namespace {

bool is_error(const dgm_event &event)
{
	return event.type == DGM_ERROR || event.type == DGM_REFUSED;
}

} // namespace

bool Queue::wakes(const dgm_event &event) const
{
	return !solicited_only_ || is_error(event) || (event.flags & DGM_SOLICITED) != 0;
}

void Queue::update()
{
	const bool wanted = waking_ > 0;
	if (wanted == readable_)
		return;
	readable_ = wanted;
	if (wanted) {
		::eventfd_write(fd_.get(), 1);
	} else {
		eventfd_t value;
		::eventfd_read(fd_.get(), &value);
	}
}

bool Queue::push(const dgm_event &event)
{
	if (event.type == DGM_RECORD && !has_room())
		return false;
	if (is_error(event) && !has_room_for_error())
		return false;
	events_.push_back(event);
	records_ += event.type == DGM_RECORD;
	receives_ += event.type == DGM_RECEIVE;
	errors_ += is_error(event);
	waking_ += wakes(event);
	update();
	return true;
}

void Queue::removed(const dgm_event &event)
{
	records_ -= event.type == DGM_RECORD;
	receives_ -= event.type == DGM_RECEIVE;
	errors_ -= is_error(event);
	waking_ -= wakes(event);
}

size_t Queue::take(dgm_event *events, size_t max)
{
	size_t taken = 0;
	for (; taken < max && !events_.empty(); taken++) {
		events[taken] = events_.front();
		removed(events_.front());
		events_.pop_front();
	}
	update();
	return taken;
}

size_t Queue::take_records(uint32_t zone, const std::function<void(const dgm_event &)> &fold)
{
	const size_t taken = std::erase_if(events_, [&](const dgm_event &event) {
		if (event.type != DGM_RECORD || event.zone != zone)
			return false;
		fold(event);
		removed(event);
		return true;
	});
	update();
	return taken;
}

} // namespace libdgm
