// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#pragma once

#include "exs.h"

#include "descriptor.h"

#include <atomic>
#include <chrono>
#include <deque>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

namespace libexs {

class Engine;
class Engines;

// A queue of events with an eventfd, which is readable while there are any
class Queue {
public:
	explicit Queue(Engine &engine, Engines &engines); // throws std::system_error

	bool push(const exs_event &event); // false: it has been deleted

	// NOTE events of one operation that nobody has taken yet become one: a peer cannot fill the queue with them
	void push_note(const exs_event &event);

	// Waits for the first one. How many, or -1 with errno.
	int take(exs_event *events, int max, int timeout);

	int set(int option, unsigned value); // an errno value; throws std::system_error

	// Of the sockets that are connected and accepted by it
	[[nodiscard]] Engine &engine() const { return *engine_; }

	// It has been deleted: take() is EBADF for all who wait. Returns the connections that nobody has taken.
	std::vector<exs_fd_t> close();

	[[nodiscard]] int fd() const { return event_.get(); }

	// Operations that report to it
	void enter() { users_++; }
	void leave() { users_--; }
	[[nodiscard]] bool in_use() const { return users_ != 0; }

private:
	using Clock = std::chrono::steady_clock;
	int take_now(exs_event *events, int max);
	int wait(std::optional<Clock::time_point> until, bool spin);
	void add(const exs_event &event);
	void own_engine(bool wanted);

	Engine &library_engine_;
	Engines &engines_;
	Descriptor event_;
	std::mutex mutex_;
	bool closed_ = false;
	std::deque<exs_event> events_;
	std::unordered_map<exs_op_t, exs_event *> notes_; // among them
	std::atomic<int> users_ = 0;
	std::atomic<bool> progress_ = false;
	std::atomic<unsigned> spin_us_ = 0;
	std::atomic<Engine *> engine_;
};

} // namespace libexs
