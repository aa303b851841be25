// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#include "queue.h"

#include "engine.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <csignal>
#include <limits>
#include <utility>

#include <poll.h>
#include <sys/eventfd.h>

namespace libexs {
namespace {

thread_local Wakes *wakes = nullptr; // the outermost one

// The thread's signals, once closed, are handled in ppoll() with the former mask alone. A handler that runs while the thread spins or
// works would go unnoticed otherwise. Not held back: signals of the thread's own faults.
class SignalGate {
public:
	SignalGate() = default;
	~SignalGate()
	{
		if (closed_)
			::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
	}
	SignalGate(const SignalGate &) = delete;
	SignalGate &operator=(const SignalGate &) = delete;

	void close()
	{
		if (std::exchange(closed_, true))
			return;
		sigset_t all;
		sigfillset(&all);
		for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS})
			sigdelset(&all, fault);
		::pthread_sigmask(SIG_SETMASK, &all, &before_);
	}
	[[nodiscard]] const sigset_t *mask() const { return closed_ ? &before_ : nullptr; }

private:
	bool closed_ = false;
	sigset_t before_{};
};

} // namespace

Wakes::Wakes()
{
	if (wakes == nullptr)
		wakes = this;
}

Wakes::~Wakes()
{
	if (wakes != this)
		return;
	wakes = nullptr;
	for (const auto &queue : queues_) {
		const std::lock_guard lock(queue->mutex_);
		queue->wake();
	}
}

Queue::Queue(Engine &engine, Engines &engines)
    : library_engine_(engine), engines_(engines), engine_(&engine)
{
}

// With the lock. False with errno: there is none. A queue without one is of use: memory must be revoked also by a program that has
// no descriptors left.
bool Queue::make_event()
{
	if (event_.get() < 0) {
		event_ = Descriptor(::eventfd(closed_ ? 1 : 0, EFD_NONBLOCK | EFD_CLOEXEC));
		readable_ = false;
	}
	return event_.get() >= 0;
}

// With the lock: one more of events_
void Queue::added()
{
	if (wakes == nullptr)
		wake();
	else if (events_.size() == 1)
		wake_later();
}

void Queue::wake_later()
{
	try {
		wakes->queues_.push_back(shared_from_this());
	} catch (const std::bad_alloc &) {
		wake();
	}
}

// With the lock
void Queue::wake()
{
	if (readable_ || events_.empty() || (waiters_ == 0 && !known_))
		return;
	readable_ = true;
	::eventfd_write(event_.get(), 1);
}

int Queue::fd()
{
	const std::lock_guard lock(mutex_);
	if (!make_event())
		return -1;
	known_ = true;
	wake();
	return event_.get();
}

bool Queue::send_later(const std::shared_ptr<Sender> &sender)
{
	if (!batch_)
		return false;
	const std::lock_guard lock(mutex_);
	if (closed_ || known_ || waiters_ != 0)
		return false;
	try {
		if (sender->queued_ != this && (senders_.empty() || senders_.back() != sender))
			senders_.push_back(sender);
	} catch (const std::bad_alloc &) {
		return false;
	}
	sender->queued_ = this;
	return true;
}

void Queue::send()
{
	for (;;) {
		std::vector<std::shared_ptr<Sender>> senders;
		{
			const std::lock_guard lock(mutex_);
			senders.swap(senders_);
			for (const auto &sender : senders) {
				const Queue *here = this;
				sender->queued_.compare_exchange_strong(here, nullptr); // before send_now(): what comes later is queued again
			}
		}
		if (senders.empty())
			return;
		for (const auto &sender : senders)
			sender->send_now();
	}
}

// The descriptor to wait for: -1 if none could be made, nothing if there is no need to wait
std::optional<int> Queue::begin_wait()
{
	const std::lock_guard lock(mutex_);
	if (closed_ || !events_.empty() || !senders_.empty())
		return std::nullopt;
	make_event();
	waiters_++;
	return event_.get();
}

void Queue::end_wait()
{
	const std::lock_guard lock(mutex_);
	waiters_--;
}

bool Queue::push(const exs_event &event)
{
	const std::lock_guard lock(mutex_);
	if (closed_)
		return false;
	events_.push_back(event);
	added();
	return true;
}

// An operation has a place if room_ was enough for all that users_ counted, itself included: only these take places
void Queue::enter()
{
	if (++users_ <= room_)
		return;
	try {
		const std::lock_guard lock(mutex_);
		for (; room_ < users_; room_++)
			places_.emplace_back();
	} catch (const std::bad_alloc &) {
		users_--;
		throw;
	}
}

void Queue::leave() noexcept
{
	const std::lock_guard lock(mutex_);
	places_.pop_front();
	room_--;
	users_--;
}

bool Queue::leave(const exs_event &event) noexcept
{
	const std::lock_guard lock(mutex_);
	const bool reported = !closed_;
	if (reported) {
		places_.front() = event;
		events_.splice(events_.end(), places_, places_.begin());
		added();
	} else {
		places_.pop_front();
	}
	room_--;
	users_--;
	return reported;
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
	events_.push_back(event);
	added();
	notes_.emplace(event.op, &events_.back());
}

// Nobody reads the descriptor any more, so that all who wait are woken
void Queue::close()
{
	const std::lock_guard lock(mutex_);
	closed_ = true;
	own_engine(false);
	::eventfd_write(event_.get(), 1);
	notes_.clear();
}

exs_fd_t Queue::take_accepted()
{
	const std::lock_guard lock(mutex_);
	exs_fd_t accepted = 0;
	for (; accepted == 0 && !events_.empty(); events_.pop_front())
		if (events_.front().type == EXS_EVENT_ACCEPT && events_.front().error == 0)
			accepted = events_.front().accepted;
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
		if (room_ < users_ + most_spare_places) {
			places_.splice(places_.end(), events_, events_.begin()); // for the next operation
			room_++;
		} else {
			events_.pop_front();
		}
	}
	if (readable_ && events_.empty()) {
		eventfd_t count = 0;
		readable_ = false;
		::eventfd_read(event_.get(), &count);
	}
	return taken;
}

// With the lock. Nobody waits in an engine that is put back: its thread goes on with the sockets that it has.
void Queue::own_engine(bool wanted)
{
	Engine *const before = engine_;
	if (wanted == (before != &library_engine_))
		return;
	engine_ = wanted ? &engines_.take() : &library_engine_;
	if (!wanted)
		engines_.put_back(*before);
}

int Queue::set(int option, unsigned value)
{
	if (option == EXS_QUEUE_THREAD && value <= 1) {
		const std::lock_guard lock(mutex_);
		if (closed_)
			return EBADF;
		own_engine(value != 0);
	} else if (option == EXS_QUEUE_PROGRESS && value <= 1)
		progress_ = value != 0;
	else if (option == EXS_QUEUE_BATCH && value <= 1) {
		batch_ = value != 0;
		send();
	} else if (option == EXS_QUEUE_SPIN_US && value <= 1000000)
		spin_us_ = value;
	else
		return EINVAL;
	return 0;
}

// For an event, or for less. -1 with errno.
int Queue::wait(std::optional<Clock::time_point> until, bool spin, const sigset_t *mask)
{
	int left = -1;
	if (spin)
		left = 0;
	else if (until)
		left = static_cast<int>(std::clamp<int64_t>(std::chrono::ceil<std::chrono::milliseconds>(*until - Clock::now()).count(), 0, INT_MAX));
	const auto at_most = [&left](int ms) { left = left < 0 ? ms : std::min(left, ms); };
	const auto fd = begin_wait();
	if (!fd)
		return 1;
	struct End {
		Queue &queue;
		bool waits = true;
		void operator()()
		{
			if (std::exchange(waits, false))
				queue.end_wait();
		}
		~End() { (*this)(); } // also if the thread is cancelled
	} end{*this};
	if (*fd < 0)
		at_most(1); // and look again
	if (progress_) {
		if (const auto driven = engine().drive(*fd, left, mask, std::ref(end)))
			return *driven;
		at_most(10); // another thread does, for the time being
	}
	pollfd one{.fd = *fd, .events = POLLIN, .revents = 0};
	return poll_for(std::span(&one, 1), left, mask);
}

int Queue::take(exs_event *events, int max, int timeout)
{
	const auto start = Clock::now();
	std::optional<Clock::time_point> until;
	if (timeout >= 0)
		until = start + std::chrono::milliseconds(timeout);
	const auto spin_until = start + std::chrono::microseconds(spin_us_);
	const bool works = spin_us_ != 0 || progress_;
	SignalGate signals;
	for (bool waited = false;; waited = true) {
		if (const int taken = take_now(events, max); taken != 0)
			return taken;
		send();
		if (timeout == 0 && (waited || !progress_))
			return take_now(events, max);
		const auto now = Clock::now();
		if (waited && until && now >= *until)
			return 0;
		if (works)
			signals.close();
		if (wait(until, now < spin_until, signals.mask()) < 0)
			return -1;
	}
}

} // namespace libexs
