// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#include "engine.h"
#include "cm_event.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>
#include <system_error>

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

namespace libexs {
namespace {

constexpr uint64_t wake_token = 0, channel_token = 1;

int add_descriptor(int epoll, int fd, uint32_t events, uint64_t token)
{
	epoll_event event{};
	event.events = events;
	event.data.u64 = token;
	return ::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
}

// Signals are the program's
std::thread start_thread(const std::function<void()> &function)
{
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	std::thread thread;
	try {
		thread = std::thread(function);
	} catch (...) {
		pthread_sigmask(SIG_SETMASK, &before, nullptr);
		throw;
	}
	pthread_sigmask(SIG_SETMASK, &before, nullptr);
	return thread;
}

} // namespace

int poll_for(std::span<pollfd> fds, int timeout, const sigset_t *mask)
{
	const timespec time{.tv_sec = timeout / 1000, .tv_nsec = timeout % 1000 * 1000000L};
	const int ready = ::ppoll(fds.data(), fds.size(), timeout < 0 ? nullptr : &time, mask);
	// While descriptors are ready, it handles no signal
	const timespec none{};
	return ready > 0 && mask && ::ppoll(nullptr, 0, &none, mask) < 0 ? -1 : ready;
}

Engine::Engine()
    : epoll_(::epoll_create1(EPOLL_CLOEXEC)), wake_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
      channel_(nullptr, rdma_destroy_event_channel)
{
	if (epoll_.get() < 0 || wake_.get() < 0 || add_descriptor(epoll_.get(), wake_.get(), EPOLLIN, wake_token) != 0)
		throw std::system_error(errno, std::generic_category(), "epoll");
	thread_ = start_thread([this] { loop(); });
}

Engine::~Engine()
{
	stop();
}

void Engine::stop()
{
	{
		const std::lock_guard lock(mutex_);
		stop_ = true;
	}
	changed_.notify_one();
	wake();
	if (thread_.joinable())
		thread_.join();
}

void Engine::wake()
{
	::eventfd_write(wake_.get(), 1);
}

uint64_t Engine::watch(int fd, uint32_t events, std::shared_ptr<Actor> actor)
{
	const std::lock_guard lock(mutex_);
	const uint64_t token = token_++;
	actors_.emplace(token, std::move(actor));
	if (add_descriptor(epoll_.get(), fd, events, token) == 0)
		return token;
	actors_.erase(token);
	return 0;
}

void Engine::rewatch(uint64_t token, int fd, uint32_t events)
{
	epoll_event event{};
	event.events = events;
	event.data.u64 = token;
	::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event);
}

void Engine::unwatch(uint64_t token, int fd)
{
	::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
	forget(token);
}

uint64_t Engine::start_timer(Clock::time_point when, const std::shared_ptr<Actor> &actor)
{
	const std::lock_guard lock(mutex_);
	const uint64_t token = token_++;
	const bool first = timers_.empty() || when < timers_.begin()->first;
	timers_.emplace(when, Timer{token, actor});
	timer_times_.emplace(token, when);
	if (first)
		wake();
	return token;
}

void Engine::stop_timer(uint64_t token)
{
	const std::lock_guard lock(mutex_);
	const auto when = timer_times_.extract(token);
	if (!when)
		return;
	const auto [begin, end] = timers_.equal_range(when.mapped());
	timers_.erase(std::find_if(begin, end, [token](const auto &timer) { return timer.second.token == token; }));
}

void Engine::run(Tasks &&tasks) noexcept
{
	{
		const std::lock_guard lock(mutex_);
		tasks_.splice(tasks_.end(), tasks);
	}
	wake();
}

void Engine::run(std::function<void()> task)
{
	Tasks one;
	one.push_back(std::move(task));
	run(std::move(one));
}

// nullptr with errno
rdma_event_channel *Engine::channel()
{
	const std::lock_guard lock(mutex_);
	if (channel_)
		return channel_.get();
	if (!no_channel_) {
		channel_.reset(rdma_create_event_channel());
		if (channel_ && (::fcntl(channel_->fd, F_SETFL, O_NONBLOCK) != 0 || ::fcntl(channel_->fd, F_SETFD, FD_CLOEXEC) != 0 ||
				 add_descriptor(epoll_.get(), channel_->fd, EPOLLIN, channel_token) != 0)) {
			const int error = errno;
			channel_.reset();
			errno = error;
		}
		no_channel_ = !channel_ && errno != EMFILE && errno != ENFILE && errno != ENOMEM;
	}
	if (no_channel_)
		errno = ENODEV;
	return channel_.get();
}

// librdmacm asks the kernel about the id of an event by its number. Another thread may have destroyed it meanwhile: if the kernel gave
// this number to a new id, librdmacm would take the id without a device for resolved, and use its device.
rdma_cm_id *Engine::make_id(uint64_t token)
{
	rdma_event_channel *const ids = channel();
	if (ids == nullptr)
		return nullptr;
	rdma_cm_id *id = nullptr;
	const std::lock_guard lock(ids_mutex_);
	return rdma_create_id(ids, &id, reinterpret_cast<void *>(static_cast<uintptr_t>(token)), RDMA_PS_TCP) == 0 ? id : nullptr;
}

// To an event that says that the connection has ended, librdmacm changes the state of the id's queue pair
void Engine::destroy_queue_pair(rdma_cm_id *id)
{
	const std::lock_guard lock(ids_mutex_);
	rdma_destroy_qp(id);
}

uint64_t Engine::adopt(std::shared_ptr<Actor> actor)
{
	const std::lock_guard lock(mutex_);
	actors_.emplace(token_, std::move(actor));
	return token_++;
}

void Engine::forget(uint64_t token)
{
	std::shared_ptr<Actor> actor; // not freed with the lock held
	const std::lock_guard lock(mutex_);
	if (const auto found = actors_.extract(token))
		actor = found.mapped();
}

std::vector<std::shared_ptr<Actor>> Engine::actors()
{
	const std::lock_guard lock(mutex_);
	std::vector<std::shared_ptr<Actor>> all;
	for (const auto &[token, actor] : actors_)
		all.push_back(actor);
	return all;
}

std::shared_ptr<Actor> Engine::find(uint64_t token)
{
	const std::lock_guard lock(mutex_);
	const auto found = actors_.find(token);
	return found != actors_.end() ? found->second : nullptr;
}

// ---- the thread

// What one connection has not enough memory for must not end the program
void Engine::call(const std::shared_ptr<Actor> &actor, const std::function<void(Actor &)> &function)
{
	try {
		function(*actor);
	} catch (const std::exception &) {
		actor->on_failure();
	}
}

void Engine::on_wake()
{
	eventfd_t count = 0;
	::eventfd_read(wake_.get(), &count);
	Tasks tasks;
	{
		const std::lock_guard lock(mutex_);
		tasks.swap(tasks_);
	}
	for (const auto &task : tasks) {
		try {
			task();
		} catch (const std::exception &) {
			// likewise: of what it had begun, destructors give up the rest
		}
	}
}

// It is acknowledged before anything is done about it: the id can be destroyed then
std::optional<CmEvent> Engine::next_event()
{
	const std::lock_guard lock(ids_mutex_);
	rdma_cm_event *raw = nullptr;
	if (rdma_get_cm_event(channel_.get(), &raw) != 0)
		return std::nullopt;
	const CmEvent event(*raw);
	rdma_ack_cm_event(raw);
	return event;
}

// Not all at once: connections that are under way go on between requests for others
void Engine::drain_channel()
{
	constexpr int at_a_time = 16;
	for (int i = 0; i < at_a_time; i++) {
		const auto event = next_event();
		if (!event)
			return;
		if (const auto actor = find(event->token))
			call(actor, [&](Actor &found) { found.on_cm(event->token, *event); });
		else if (event->is_request())
			rdma_destroy_id(event->id); // its listener is gone
	}
}

void Engine::expire()
{
	for (;;) {
		Timer timer{};
		{
			const std::lock_guard lock(mutex_);
			if (timers_.empty() || timers_.begin()->first > Clock::now())
				return;
			timer = timers_.begin()->second;
			timers_.erase(timers_.begin());
			timer_times_.erase(timer.token);
		}
		if (const auto actor = timer.actor.lock())
			call(actor, [&](Actor &found) { found.on_timer(timer.token); });
	}
}

int Engine::wait_time()
{
	const std::lock_guard lock(mutex_);
	if (stop_)
		return -2;
	if (timers_.empty())
		return -1;
	const auto left = std::chrono::ceil<std::chrono::milliseconds>(timers_.begin()->first - Clock::now()).count();
	return static_cast<int>(std::clamp<int64_t>(left, 0, 1000000));
}

// Calls the actors whose descriptors are ready or whose timers are due
void Engine::step(int timeout)
{
	std::array<epoll_event, 64> events{};
	const int count = ::epoll_wait(epoll_.get(), events.data(), events.size(), timeout);
	for (int i = 0; i < count; i++) {
		const epoll_event &event = events[static_cast<size_t>(i)];
		if (event.data.u64 == wake_token)
			on_wake();
		else if (event.data.u64 == channel_token)
			drain_channel();
		else if (const auto actor = find(event.data.u64))
			call(actor, [&](Actor &found) { found.on_ready(event.data.u64, event.events); });
	}
	expire();
}

std::optional<int> Engine::drive(int fd, int timeout, const sigset_t *mask, const std::function<void()> &waited)
{
	if (driver_.exchange(true))
		return std::nullopt;
	// also if a task throws
	const std::unique_ptr<Engine, void (*)(Engine *)> end(this, [](Engine *engine) {
		{
			const std::lock_guard lock(engine->mutex_);
			engine->driven_++;
			engine->driver_ = false;
		}
		engine->changed_.notify_one();
	});
	std::unique_lock lock(drive_mutex_, std::try_to_lock);
	if (!lock) {
		wake(); // the progress thread
		lock.lock();
	}
	if (const int due = wait_time(); due >= 0 && (timeout < 0 || due < timeout))
		timeout = due;
	std::array<pollfd, 2> both{{{.fd = fd, .events = POLLIN, .revents = 0}, {.fd = epoll_.get(), .events = POLLIN, .revents = 0}}};
	const int ready = poll_for(both, timeout, mask);
	const int error = errno;
	waited();
	if (ready >= 0)
		step(0);
	errno = error;
	return ready;
}

// Returns when no other thread has done the work of the progress thread for a while. Calls follow each other, as a rule: only
// the end of a long one wakes this thread.
void Engine::leave_to_drivers()
{
	constexpr auto patience = std::chrono::milliseconds(10);
	std::unique_lock lock(mutex_);
	for (uint64_t before = ~driven_; !stop_ && (driver_ || driven_ != before);) {
		if (driver_ && driven_ == before)
			changed_.wait(lock, [this, before] { return stop_ || driven_ != before; });
		before = driven_;
		lock.unlock();
		std::this_thread::sleep_for(patience);
		lock.lock();
	}
}

void Engine::loop()
{
	for (uint64_t before = 0;;) {
		if (driver_ || driven_ != before) {
			leave_to_drivers();
			before = driven_;
		}
		const std::lock_guard lock(drive_mutex_);
		const int timeout = wait_time();
		if (timeout == -2)
			return;
		step(timeout);
	}
}

// ---- of queues

Engine &Engines::take()
{
	const std::lock_guard lock(mutex_);
	if (free_.empty()) {
		free_.reserve(all_.size() + 1); // so that nothing can fail when it is put back
		all_.push_back(std::make_unique<Engine>());
		return *all_.back();
	}
	Engine *const engine = free_.back();
	free_.pop_back();
	return *engine;
}

void Engines::put_back(Engine &engine)
{
	const std::lock_guard lock(mutex_);
	free_.push_back(&engine);
}

std::vector<Engine *> Engines::all()
{
	const std::lock_guard lock(mutex_);
	std::vector<Engine *> engines;
	for (const auto &engine : all_)
		engines.push_back(engine.get());
	return engines;
}

} // namespace libexs
