// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#pragma once

#include "exs.h"

#include "descriptor.h"
#include "spare.h"

#include <atomic>
#include <chrono>
#include <csignal>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace libexs {

class Engine;
class Engines;
class Queue;

// While one exists, the events that its thread queues wake nobody: all do so when it ends. It outlives locks of sockets, as who is
// woken wants the lock, and finds all events of one descriptor instead of the first.
class Wakes {
public:
	Wakes();
	~Wakes();
	Wakes(const Wakes &) = delete;
	Wakes &operator=(const Wakes &) = delete;

private:
	friend class Queue;
	std::vector<std::shared_ptr<Queue>> queues_;
};

// Keeps what it has to send until it is called, without any lock
class Sender {
public:
	virtual ~Sender() = default;
	virtual void send_now() = 0;

private:
	friend class Queue;
	std::atomic<const Queue *> queued_ = nullptr; // in which it is to be found, the last one of several
};

// A queue of events with an eventfd, which is readable while there are any and somebody waits for that
class Queue : public std::enable_shared_from_this<Queue> {
public:
	Queue(Engine &engine, Engines &engines);

	bool push(const exs_event &event); // false: it has been deleted

	// NOTE events of one operation that nobody has taken yet become one: a peer cannot fill the queue with them
	void push_note(const exs_event &event);

	// Waits for the first one. How many, or -1 with errno.
	int take(exs_event *events, int max, int timeout);

	int set(int option, unsigned value); // an errno value; throws std::system_error

	// Of the sockets that are connected and accepted by it
	[[nodiscard]] Engine &engine() const { return *engine_; }

	// It has been deleted: take() is EBADF for all who wait
	void close();
	exs_fd_t take_accepted(); // then: a connection that nobody has taken; 0: there are no more

	int fd(); // the program waits for it from now on; -1 with errno

	// Calls the sender before somebody waits for an event. False: it does not.
	bool send_later(const std::shared_ptr<Sender> &sender);

	// Calls all of them
	void send();

	// Operations that report to it. Each has a place for its last event, so that this cannot fail for want of memory.
	void enter(); // takes the lock only to make a place
	void leave() noexcept;
	bool leave(const exs_event &event) noexcept; // as push()
	[[nodiscard]] bool in_use() const { return users_ != 0; }

private:
	using Clock = std::chrono::steady_clock;
	int take_now(exs_event *events, int max);
	friend class Wakes;
	int wait(std::optional<Clock::time_point> until, bool spin, const sigset_t *mask);
	std::optional<int> begin_wait();
	void end_wait();
	void added();
	void wake();
	void wake_later();
	void own_engine(bool wanted);
	bool make_event();

	Engine &library_engine_;
	Engines &engines_;
	std::mutex mutex_;
	Descriptor event_; // made when first needed
	bool closed_ = false;
	bool known_ = false;    // the descriptor, to the program
	bool readable_ = false; // likewise
	unsigned waiters_ = 0;
	Spare spare_; // of the containers of events
	List<exs_event> events_{spare_};
	List<exs_event> places_{spare_}; // one for each operation under way, and some more
	static constexpr size_t most_spare_places = 256;
	std::atomic<size_t> users_ = 0; // operations under way
	std::atomic<size_t> room_ = 0;	// places_.size(); less only with the lock, and before users_ is
	std::vector<std::shared_ptr<Sender>> senders_;
	HashMap<exs_op_t, exs_event *> notes_{spare_}; // among them
	std::atomic<bool> progress_ = false;
	std::atomic<bool> batch_ = false;
	std::atomic<unsigned> spin_us_ = 0;
	std::atomic<Engine *> engine_;
};

} // namespace libexs
