// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#pragma once

#include "descriptor.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <unordered_map>
#include <vector>

struct pollfd;
struct rdma_cm_id;
struct rdma_event_channel;

namespace libexs {

struct CmEvent;

using Clock = std::chrono::steady_clock;

// poll(), with this mask of signals if it is not nullptr
int poll_for(std::span<pollfd> fds, int timeout, const sigset_t *mask);

// The progress thread calls these, without any lock of its own
class Actor {
public:
	virtual ~Actor() = default;
	virtual void on_ready(uint64_t token, uint32_t events) = 0;
	virtual void on_cm(uint64_t token, const CmEvent &event) = 0;
	virtual void on_timer(uint64_t token) = 0;
	// One of these has thrown: there is no memory to go on
	virtual void on_failure() noexcept = 0;
};

// The progress thread: waits for descriptors, rdma_cm's events and deadlines. Its functions may be called with the lock
// of a socket. A token that is given up is not called any more, except by what is under way.
class Engine {
public:
	Engine(); // throws std::system_error
	~Engine();
	void stop(); // the thread has ended when this returns
	Engine(const Engine &) = delete;
	Engine &operator=(const Engine &) = delete;

	uint64_t watch(int fd, uint32_t events, std::shared_ptr<Actor> actor); // 0 with errno if it cannot
	void rewatch(uint64_t token, int fd, uint32_t events);
	void unwatch(uint64_t token, int fd);

	// The actor is not kept for it
	uint64_t start_timer(Clock::time_point when, const std::shared_ptr<Actor> &actor);
	void stop_timer(uint64_t token);

	// In the caller's thread, without any lock, in place of the progress thread: until fd is readable or something was done, for
	// so many ms (negative: no limit). -1 with errno; nothing if another thread does. waited(): the wait is over, the work begins.
	std::optional<int> drive(int fd, int timeout, const sigset_t *mask, const std::function<void()> &waited);

	// In the progress thread, soon. A list that was made before cannot fail for want of memory.
	using Tasks = std::list<std::function<void()>>;
	void run(Tasks &&tasks) noexcept;
	void run(std::function<void()> task);

	// nullptr with errno (ENODEV: there is no RDMA here); adopt() gives the token
	rdma_cm_id *make_id(uint64_t token);
	void destroy_queue_pair(rdma_cm_id *id);
	uint64_t adopt(std::shared_ptr<Actor> actor); // the context of an id
	void forget(uint64_t token);

	// That descriptors or ids belong to
	std::vector<std::shared_ptr<Actor>> actors();

private:
	struct Timer {
		uint64_t token;
		std::weak_ptr<Actor> actor;
	};

	rdma_event_channel *channel();
	void loop();
	void step(int timeout);
	void leave_to_drivers();
	static void call(const std::shared_ptr<Actor> &actor, const std::function<void(Actor &)> &function);
	void on_wake();
	void drain_channel();
	std::optional<CmEvent> next_event();
	void expire();
	int wait_time();
	void wake();
	std::shared_ptr<Actor> find(uint64_t token);

	Descriptor epoll_, wake_;
	std::mutex mutex_; // of all below
	uint64_t token_ = 2;
	std::unordered_map<uint64_t, std::shared_ptr<Actor>> actors_;
	std::multimap<Clock::time_point, Timer> timers_;
	std::unordered_map<uint64_t, Clock::time_point> timer_times_;
	Tasks tasks_;
	std::unique_ptr<rdma_event_channel, void (*)(rdma_event_channel *)> channel_;
	bool no_channel_ = false;
	bool stop_ = false;
	std::mutex ids_mutex_;   // librdmacm handles no event while an id is made or loses its queue pair
	std::mutex drive_mutex_; // of who does the work
	std::atomic<bool> driver_ = false; // other than the thread, or one that is about to
	std::atomic<uint64_t> driven_ = 0; // how often that was
	std::condition_variable changed_;  // driver_ or stop_
	std::thread thread_; // the last one
};

// Engines of queues that want one of their own. They stay until the end, for sockets of queues that were deleted.
class Engines {
public:
	Engine &take(); // throws std::system_error
	void put_back(Engine &engine);
	[[nodiscard]] std::vector<Engine *> all();

private:
	std::mutex mutex_; // of all below
	std::vector<std::unique_ptr<Engine>> all_;
	std::vector<Engine *> free_;
};

} // namespace libexs
