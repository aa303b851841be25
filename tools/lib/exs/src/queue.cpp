// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#include "queue.h"

#include <cerrno>
#include <chrono>
#include <limits>
#include <system_error>

#include <poll.h>
#include <sys/eventfd.h>

namespace libexs {

Queue::Queue() : event_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC))
{
	if (event_.get() < 0)
		throw std::system_error(errno, std::generic_category(), "eventfd");
}

void Queue::add(const exs_event &event)
{
	events_.push_back(event);
	if (events_.size() == 1)
		::eventfd_write(event_.get(), 1);
}

bool Queue::push(const exs_event &event)
{
	const std::lock_guard lock(mutex_);
	if (!closed_)
		add(event);
	return !closed_;
}

void Queue::push_note(const exs_event &event)
{
	const std::lock_guard lock(mutex_);
	if (closed_)
		return;
	const auto found = notes_.find(event.op);
	if (found != notes_.end()) {
		const uint32_t room = std::numeric_limits<uint32_t>::max() - found->second->count;
		found->second->count += std::min(room, event.count);
		return;
	}
	add(event);
	notes_.emplace(event.op, &events_.back());
}

// Nobody reads the descriptor any more, so that all who wait are woken
std::vector<exs_fd_t> Queue::close()
{
	const std::lock_guard lock(mutex_);
	closed_ = true;
	::eventfd_write(event_.get(), 1);
	std::vector<exs_fd_t> accepted;
	for (const exs_event &event : events_)
		if (event.type == EXS_EVENT_ACCEPT && event.error == 0)
			accepted.push_back(event.accepted);
	events_.clear();
	notes_.clear();
	return accepted;
}

int Queue::take_now(exs_event *events, int max)
{
	const std::lock_guard lock(mutex_);
	if (closed_) {
		errno = EBADF;
		return -1;
	}
	int taken = 0;
	while (taken < max && !events_.empty()) {
		const exs_event &event = events_.front();
		if (event.type == EXS_EVENT_NOTE)
			notes_.erase(event.op);
		events[taken++] = event;
		events_.pop_front();
	}
	if (taken != 0 && events_.empty()) {
		eventfd_t count = 0;
		::eventfd_read(event_.get(), &count);
	}
	return taken;
}

int Queue::take(exs_event *events, int max, int timeout)
{
	using Clock = std::chrono::steady_clock;
	const auto end = Clock::now() + std::chrono::milliseconds(timeout);
	for (;;) {
		if (const int taken = take_now(events, max); taken != 0 || timeout == 0)
			return taken;
		int left = -1;
		if (timeout > 0) {
			const auto rest = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now()).count();
			if (rest <= 0)
				return 0;
			left = static_cast<int>(rest);
		}
		pollfd wait{.fd = event_.get(), .events = POLLIN, .revents = 0};
		if (::poll(&wait, 1, left) < 0)
			return -1;
	}
}

} // namespace libexs
