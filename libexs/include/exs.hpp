// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//
// libexs for C++20: objects that own, results instead of errno, operations to co_await. All of it is in this header, on
// top of exs.h, which says what the functions do. exs++(3) has an example.
#pragma once

#if __cplusplus <= 201703L
#error "exs.hpp needs C++20: -std=c++20"
#endif

#include <exs.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>

namespace exs {

[[noreturn]] inline void throw_errno(const char *what)
{
	throw std::system_error(errno, std::generic_category(), what);
}

// A value, or why there is none
template <typename T> class [[nodiscard]] result {
public:
	result(T value) : content_(std::move(value)) {}
	result(std::error_code error) : content_(error) {}

	explicit operator bool() const { return content_.index() == 0; }
	[[nodiscard]] std::error_code error() const { return *this ? std::error_code() : std::get<1>(content_); }

	// Throws std::system_error if there is none
	T &value() &
	{
		require();
		return std::get<0>(content_);
	}
	T &&value() &&
	{
		require();
		return std::get<0>(std::move(content_));
	}
	T &operator*() & { return value(); }
	T &&operator*() && { return std::move(*this).value(); }
	T *operator->() { return &value(); }

private:
	void require() const
	{
		if (!*this)
			throw std::system_error(error());
	}

	std::variant<T, std::error_code> content_;
};

struct done {}; // a result without a value

inline std::error_code error_of(int error)
{
	return {error, std::generic_category()};
}

// The library, as long as this lives
class library {
public:
	library()
	{
		if (exs_init(EXS_VERSION) != 0)
			throw_errno("exs_init");
	}
	~library() { exs_exit(); }
	library(const library &) = delete;
	library &operator=(const library &) = delete;
};

// An IPv4 or IPv6 address and a port
class endpoint {
public:
	endpoint(const std::string &address, uint16_t port)
	{
		auto *const v4 = reinterpret_cast<sockaddr_in *>(&storage_);
		auto *const v6 = reinterpret_cast<sockaddr_in6 *>(&storage_);
		if (inet_pton(AF_INET, address.c_str(), &v4->sin_addr) == 1) {
			v4->sin_family = AF_INET;
			v4->sin_port = htons(port);
		} else if (inet_pton(AF_INET6, address.c_str(), &v6->sin6_addr) == 1) {
			v6->sin6_family = AF_INET6;
			v6->sin6_port = htons(port);
		} else {
			throw std::system_error(EINVAL, std::generic_category(), "not an IP address: " + address);
		}
	}
	[[nodiscard]] const sockaddr *raw() const { return reinterpret_cast<const sockaddr *>(&storage_); }
	[[nodiscard]] socklen_t size() const { return storage_.ss_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6); }
	[[nodiscard]] int family() const { return storage_.ss_family; }

private:
	sockaddr_storage storage_{};
};

// Registered memory. If operations use it when it is destroyed, they are cancelled first, which waits for their peers for as
// long as EXS_CLOSE_MS.
class memory {
public:
	// Owns its octets
	explicit memory(size_t size, int access = EXS_MEM_SEND | EXS_MEM_RECV) : own_(size), bytes_(own_) { enroll(access); }

	// Somebody else's, which live longer
	explicit memory(std::span<std::byte> bytes, int access = EXS_MEM_SEND | EXS_MEM_RECV) : bytes_(bytes) { enroll(access); }

	memory(memory &&other) noexcept
	    : own_(std::move(other.own_)), bytes_(other.bytes_), handle_(std::exchange(other.handle_, 0))
	{
	}
	memory &operator=(memory &&other) noexcept
	{
		std::swap(own_, other.own_);
		std::swap(bytes_, other.bytes_);
		std::swap(handle_, other.handle_);
		return *this;
	}
	~memory()
	{
		if (handle_ == 0 || exs_mderegister(handle_) == 0 || errno != EBUSY)
			return;
		// what operations use must not be freed: this waits until there is memory to cancel them
		const auto insist = [](auto function) {
			for (;;)
				if (const int64_t made = function(); made > 0 || errno != ENOMEM)
					return made;
				else
					std::this_thread::sleep_for(std::chrono::milliseconds(1));
		};
		const exs_qh_t queue = insist(exs_qcreate);
		exs_event event{};
		if (insist([&] { return exs_mrevoke(handle_, queue, nullptr); }) > 0)
			while (exs_qdequeue(queue, &event, 1, -1) < 0 && errno == EINTR)
				;
		exs_qdelete(queue);
	}

	[[nodiscard]] std::span<std::byte> bytes() const { return bytes_; }
	[[nodiscard]] exs_mh_t handle() const { return handle_; }
	[[nodiscard]] size_t size() const { return bytes_.size(); }
	[[nodiscard]] char *text() const { return reinterpret_cast<char *>(bytes_.data()); }

	// A part of it: first octet, how many (all that follow)
	struct part {
		exs_mh_t handle;
		std::span<std::byte> bytes;
	};
	[[nodiscard]] part slice(size_t offset, size_t length = std::dynamic_extent) const
	{
		return {handle_, bytes_.subspan(offset, length)};
	}
	operator part() const { return {handle_, bytes_}; }

private:
	void enroll(int access)
	{
		handle_ = exs_mregister(bytes_.data(), bytes_.size(), access);
		if (handle_ < 0)
			throw_errno("exs_mregister");
	}

	std::vector<std::byte> own_;
	std::span<std::byte> bytes_;
	exs_mh_t handle_ = 0;
};

// ---- coroutines

namespace detail {

template <typename T> struct promise_value {
	std::optional<T> value;
	void return_value(T given) { value = std::move(given); }
	T take() { return std::move(*value); }
};
template <> struct promise_value<void> {
	void return_void() {}
	void take() {}
};

} // namespace detail

// The result of a coroutine. The coroutine begins when the task is awaited or by start(); loop::spawn() begins it by
// itself. Destroying the task ends the coroutine where it waits.
template <typename T = void> class [[nodiscard]] task {
public:
	struct promise_type : detail::promise_value<T> {
		std::coroutine_handle<> continuation = std::noop_coroutine();
		std::exception_ptr thrown;

		task get_return_object() { return task(std::coroutine_handle<promise_type>::from_promise(*this)); }
		std::suspend_always initial_suspend() noexcept { return {}; }
		void unhandled_exception() { thrown = std::current_exception(); }

		struct final_awaiter {
			bool await_ready() noexcept { return false; }
			std::coroutine_handle<> await_suspend(std::coroutine_handle<promise_type> handle) noexcept
			{
				return handle.promise().continuation;
			}
			void await_resume() noexcept {}
		};
		final_awaiter final_suspend() noexcept { return {}; }
	};

	task(task &&other) noexcept : handle_(std::exchange(other.handle_, nullptr)), started_(other.started_) {}
	task &operator=(task &&other) noexcept
	{
		std::swap(handle_, other.handle_);
		std::swap(started_, other.started_);
		return *this;
	}
	~task()
	{
		if (handle_)
			handle_.destroy();
	}

	[[nodiscard]] bool is_done() const { return handle_.done(); }
	// Until it waits; to be awaited later, by one
	void start()
	{
		started_ = true;
		handle_.resume();
	}
	T take()
	{
		if (handle_.promise().thrown)
			std::rethrow_exception(std::exchange(handle_.promise().thrown, nullptr));
		return handle_.promise().take();
	}

	bool await_ready() const { return is_done(); }
	std::coroutine_handle<> await_suspend(std::coroutine_handle<> waiter)
	{
		handle_.promise().continuation = waiter;
		if (std::exchange(started_, true))
			return std::noop_coroutine();
		return handle_;
	}
	T await_resume() { return take(); }

private:
	explicit task(std::coroutine_handle<promise_type> handle) : handle_(handle) {}

	std::coroutine_handle<promise_type> handle_;
	bool started_ = false;
};

namespace detail {

// The context of an operation: where its events go
class sink {
public:
	virtual ~sink() = default;
	virtual void on_event(const exs_event &event) = 0;
};

} // namespace detail

// A queue and the coroutines that wait for its events; of one thread. Coroutines must not outlive it; the events of operations
// that do are dropped.
class loop {
public:
	using clock = std::chrono::steady_clock;

	loop() : queue_(exs_qcreate())
	{
		if (queue_ < 0)
			throw_errno("exs_qcreate");
	}
	~loop()
	{
		tasks_.clear();
		ended_.clear();
		if (exs_qdelete(queue_) != 0)
			exs_qabandon(queue_);
	}
	loop(const loop &) = delete;
	loop &operator=(const loop &) = delete;

	[[nodiscard]] exs_qh_t queue() const { return queue_; }
	[[nodiscard]] int fd() const { return exs_qfd(queue_); } // readable: run_once(0) has something to do

	// Of operations under way, until their last event
	void keep(const std::shared_ptr<detail::sink> &sink) { kept_.emplace(sink.get(), sink); }
	void drop(const std::shared_ptr<detail::sink> &sink) { kept_.erase(sink.get()); }

	// Runs work in the loop's thread, soon. Any thread may call it as long as the loop lives; run_once() throws what it throws.
	void post(std::function<void()> work)
	{
		const std::lock_guard lock(posted_mutex_);
		if (posted_.empty() && exs_qpost(queue_, this) != 0)
			throw_errno("exs_qpost");
		posted_.push_back(std::move(work));
	}

	// A timer, for forget(); work runs once in the loop's thread
	using timer = std::pair<clock::time_point, uint64_t>;
	timer at(clock::time_point when, std::function<void()> work)
	{
		const timer made{when, ++timer_};
		timers_.emplace(made, std::move(work));
		return made;
	}
	void forget(const timer &old) { timers_.erase(old); }

	// Milliseconds until run_once(0) has something to do even if fd() is not readable; negative: no limit
	[[nodiscard]] int wait_time() const
	{
		if (timers_.empty())
			return -1;
		const auto left = std::chrono::ceil<std::chrono::milliseconds>(timers_.begin()->first.first - clock::now()).count();
		return static_cast<int>(std::clamp<int64_t>(left, 0, 1000000));
	}

	// co_await: later
	auto sleep(clock::duration time)
	{
		struct awaiter {
			loop &owner;
			clock::time_point until;
			std::optional<timer> own{};

			awaiter(loop &sleeper, clock::time_point end) : owner(sleeper), until(end) {}
			awaiter(const awaiter &) = delete;
			awaiter &operator=(const awaiter &) = delete;
			~awaiter()
			{
				if (own)
					owner.forget(*own);
			}
			bool await_ready() const { return false; }
			void await_suspend(std::coroutine_handle<> waiter)
			{
				own = owner.at(until, [waiter] { waiter.resume(); });
			}
			void await_resume() {}
		};
		return awaiter(*this, clock::now() + time);
	}

	// Runs by itself from now on. run() throws what it throws.
	void spawn(task<> work)
	{
		const auto place = tasks_.emplace(tasks_.end());
		try {
			place->emplace(watch(std::move(work), place));
		} catch (...) {
			tasks_.erase(place);
			throw;
		}
		(*place)->start();
		reap();
	}

	// Until all that was spawned is done, or stop()
	void run()
	{
		stopped_ = false;
		reap();
		while (!tasks_.empty() && !stopped_)
			run_once(-1);
	}
	void stop() { stopped_ = true; }

	// timeout: as of exs_qdequeue(). False: there was no event, and no timer was due.
	bool run_once(int timeout)
	{
		// one at a time: a coroutine may run the loop itself, and has to find the events that are there
		exs_event event;
		const int next = wait_time();
		const bool is_sooner = next >= 0 && (timeout < 0 || next < timeout);
		const int count = exs_qdequeue(queue_, &event, 1, is_sooner ? next : timeout);
		if (count < 0 && errno != EINTR)
			throw_errno("exs_qdequeue");
		if (count > 0)
			dispatch(event);
		const bool expired = expire();
		reap();
		return count > 0 || expired;
	}

	// Runs one task to its end and returns what it returns
	template <typename T> T run(task<T> work)
	{
		work.start();
		while (!work.is_done())
			run_once(-1);
		return work.take();
	}

private:
	// Of those that are due the first one: it may do anything to the others
	bool expire()
	{
		if (timers_.empty() || timers_.begin()->first.first > clock::now())
			return false;
		const auto due = timers_.extract(timers_.begin());
		due.mapped()();
		return true;
	}

	// One, whatever it throws; another event comes for the others
	void run_posted()
	{
		std::function<void()> work;
		{
			const std::lock_guard lock(posted_mutex_);
			work = std::move(posted_.front());
			posted_.pop_front();
			if (!posted_.empty() && exs_qpost(queue_, this) != 0)
				throw_errno("exs_qpost");
		}
		work();
	}

	void dispatch(const exs_event &event)
	{
		if (event.type == EXS_EVENT_USER) {
			if (event.context == this)
				run_posted();
			return;
		}
		const auto found = kept_.find(event.context);
		if (found == kept_.end())
			return;
		const auto sink = found->second;
		if (event.type != EXS_EVENT_NOTE)
			kept_.erase(found);
		sink->on_event(event);
	}

	using tasks = std::list<std::optional<task<>>>;

	// A spawned task, with its place: so no event walks those that wait
	task<> watch(task<> work, tasks::iterator place)
	{
		std::exception_ptr thrown;
		try {
			co_await work;
		} catch (...) {
			thrown = std::current_exception();
		}
		ended_.splice(ended_.end(), tasks_, place);
		if (thrown)
			std::rethrow_exception(thrown);
	}

	void reap()
	{
		while (!ended_.empty()) {
			task<> finished = std::move(*ended_.front());
			ended_.pop_front();
			finished.take();
		}
	}

	exs_qh_t queue_;
	std::unordered_map<const void *, std::shared_ptr<detail::sink>> kept_;
	tasks tasks_, ended_; // that were spawned
	std::map<timer, std::function<void()>> timers_;
	uint64_t timer_ = 0;
	std::mutex posted_mutex_;
	std::deque<std::function<void()>> posted_;
	bool stopped_ = false;
};

namespace detail {

// An operation under way. The coroutine that awaits it may be destroyed before it is done.
struct pending : sink {
	std::coroutine_handle<> waiter;
	exs_event event{};
	bool timed_out = false;

	void on_event(const exs_event &given) override
	{
		event = given;
		if (waiter)
			waiter.resume();
		else if (event.type == EXS_EVENT_ACCEPT && event.error == 0)
			exs_close(event.accepted, 0, nullptr); // nobody wants it any more
	}
};

// Starts an operation on fd when it is awaited: start(context) returns what the C function does; make(event) the value
template <typename Start, typename Make> class awaitable {
public:
	awaitable(loop *owner, exs_fd_t fd, Start start, Make make)
	    : loop_(owner), fd_(fd), start_(std::move(start)), make_(std::move(make))
	{
	}
	// Before it is awaited
	awaitable(awaitable &&other) noexcept
	    : loop_(other.loop_), fd_(other.fd_), deadline_(other.deadline_), stop_(std::move(other.stop_)),
	      start_(std::move(other.start_)), make_(std::move(other.make_)), pending_(std::move(other.pending_))
	{
	}
	awaitable &operator=(awaitable &&) = delete;
	~awaitable()
	{
		disarm();
		if (pending_)
			pending_->waiter = nullptr;
	}

	// It is cancelled after this time, and its error is ETIMEDOUT then: co_await peer.recv(buffer).within(1s)
	awaitable within(loop::clock::duration time) &&
	{
		deadline_ = loop::clock::now() + time;
		return std::move(*this);
	}
	// It is cancelled when any thread requests the stop, and its error is ECANCELED then
	awaitable until(std::stop_token stop) &&
	{
		stop_ = std::move(stop);
		return std::move(*this);
	}

	bool await_ready() const { return false; }
	bool await_suspend(std::coroutine_handle<> waiter)
	{
		pending_->waiter = waiter;
		loop_->keep(pending_);
		const exs_op_t op = start_(static_cast<sink *>(pending_.get()));
		if (op >= 0) {
			arm(op);
			return true;
		}
		pending_->event.error = errno;
		loop_->drop(pending_);
		return false;
	}
	auto await_resume() -> result<decltype(std::declval<Make>()(std::declval<const exs_event &>()))>
	{
		disarm();
		const int error = pending_->event.error;
		if (error != 0)
			return error_of(error == ECANCELED && pending_->timed_out ? ETIMEDOUT : error);
		return make_(pending_->event);
	}

private:
	// To cancel what is done already is ENOENT: numbers of operations are not used twice
	void arm(exs_op_t op)
	{
		if (deadline_)
			timer_ = loop_->at(*deadline_, [pending = pending_, fd = fd_, op] {
				pending->timed_out = true;
				exs_cancel(fd, op);
			});
		if (stop_.stop_possible())
			on_stop_.emplace(stop_, [fd = fd_, op] { exs_cancel(fd, op); });
	}
	void disarm()
	{
		on_stop_.reset();
		if (timer_)
			loop_->forget(*std::exchange(timer_, std::nullopt));
	}

	loop *loop_;
	exs_fd_t fd_;
	std::optional<loop::clock::time_point> deadline_;
	std::stop_token stop_;
	std::optional<loop::timer> timer_;
	std::optional<std::stop_callback<std::function<void()>>> on_stop_;
	Start start_;
	Make make_;
	std::shared_ptr<pending> pending_ = std::make_shared<pending>();
};

} // namespace detail

struct received {
	size_t length = 0;
	bool eof = false;
	bool truncated = false;
};

// Persistent memory, until it is withdrawn. Destroying this withdraws it, without waiting.
class persistent {
	struct state : detail::sink {
		std::coroutine_handle<> waiter;
		uint32_t notes = 0;
		std::optional<int> error; // it is over
		uint64_t wait = 0;	  // the number of the last co_await
		int given_up = 0;	  // why it ended before

		void on_event(const exs_event &event) override
		{
			if (event.type == EXS_EVENT_NOTE)
				notes += event.count;
			else
				error = event.error;
			resume();
		}
		void give_up(uint64_t number, int why)
		{
			if (number != wait || !waiter)
				return;
			given_up = why;
			resume();
		}
		void resume()
		{
			if (const auto resumed = std::exchange(waiter, nullptr))
				resumed.resume();
		}
	};

	// Until has(state), for take(state)
	template <typename Has, typename Take> class waiting {
	public:
		waiting(loop *owner, std::shared_ptr<state> of, Has has, Take take)
		    : loop_(owner), state_(std::move(of)), has_(std::move(has)), take_(std::move(take))
		{
		}
		// Before it is awaited
		waiting(waiting &&other) noexcept
		    : loop_(other.loop_), state_(std::move(other.state_)), has_(std::move(other.has_)), take_(std::move(other.take_)),
		      deadline_(other.deadline_), stop_(std::move(other.stop_))
		{
		}
		waiting &operator=(waiting &&) = delete;
		~waiting()
		{
			disarm();
			if (waits_)
				state_->waiter = nullptr;
		}

		// The error is ETIMEDOUT after this time
		waiting within(loop::clock::duration time) &&
		{
			deadline_ = loop::clock::now() + time;
			return std::move(*this);
		}
		// The error is ECANCELED when any thread requests the stop
		waiting until(std::stop_token stop) &&
		{
			stop_ = std::move(stop);
			return std::move(*this);
		}

		bool await_ready() const { return has_(*state_); }
		void await_suspend(std::coroutine_handle<> waiter)
		{
			waits_ = true;
			state_->waiter = waiter;
			state_->given_up = 0;
			const auto give_up = [of = state_, number = ++state_->wait](int why) { of->give_up(number, why); };
			if (deadline_)
				timer_ = loop_->at(*deadline_, [give_up] { give_up(ETIMEDOUT); });
			if (stop_.stop_possible())
				on_stop_.emplace(stop_, [owner = loop_, give_up] { owner->post([give_up] { give_up(ECANCELED); }); });
		}
		auto await_resume() -> decltype(std::declval<Take>()(std::declval<state &>()))
		{
			disarm();
			waits_ = false;
			if (const int error = std::exchange(state_->given_up, 0); error != 0)
				return error_of(error);
			return take_(*state_);
		}

	private:
		void disarm()
		{
			on_stop_.reset();
			if (timer_)
				loop_->forget(*std::exchange(timer_, std::nullopt));
		}

		loop *loop_;
		std::shared_ptr<state> state_;
		Has has_;
		Take take_;
		bool waits_ = false;
		std::optional<loop::clock::time_point> deadline_;
		std::stop_token stop_;
		std::optional<loop::timer> timer_;
		std::optional<std::stop_callback<std::function<void()>>> on_stop_;
	};

public:
	persistent(persistent &&) noexcept = default;
	persistent &operator=(persistent &&other) noexcept
	{
		std::swap(loop_, other.loop_);
		std::swap(state_, other.state_);
		std::swap(fd_, other.fd_);
		std::swap(op_, other.op_);
		return *this;
	}
	~persistent()
	{
		if (!state_)
			return;
		state_->waiter = nullptr;
		if (!state_->error)
			exs_cancel(fd_, op_);
	}

	// co_await: how many times the peer has read it since the last time; one awaits at a time. within() and until() end this wait
	// alone: the peer can read on.
	auto reads()
	{
		return waiting(
			loop_, state_, [](const state &of) { return of.notes != 0 || of.error; },
			[](state &of) -> result<uint32_t> {
				if (of.notes == 0)
					return error_of(*of.error);
				return std::exchange(of.notes, 0);
			});
	}

	// co_await, likewise: it has ended by itself, of what has been subscribed to because the peer has shut down
	auto ended()
	{
		return waiting(
			loop_, state_, [](const state &of) { return of.error.has_value(); },
			[](const state &of) -> result<done> {
				if (*of.error != 0)
					return error_of(*of.error);
				return done();
			});
	}

	// co_await: the peer cannot reach it any more
	auto withdraw()
	{
		exs_cancel(fd_, op_);
		return ended();
	}

private:
	friend class socket;
	explicit persistent(loop *owner) : loop_(owner), state_(std::make_shared<state>()) {}

	loop *loop_;
	std::shared_ptr<state> state_;
	exs_fd_t fd_ = 0;
	exs_op_t op_ = 0;
};

// A socket whose events go to a loop. Operations are awaited in that loop's thread, each of one kind by one coroutine at
// a time if order matters.
class socket {
public:
	socket(loop &owner, int domain, int type, int protocol = EXS_PROTO_ANY)
	    : loop_(&owner), fd_(exs_socket(domain, type, protocol))
	{
		if (fd_ < 0)
			throw_errno("exs_socket");
	}
	socket(loop &owner, exs_fd_t fd) : loop_(&owner), fd_(fd) {}
	socket(socket &&other) noexcept : loop_(other.loop_), fd_(std::exchange(other.fd_, 0)) {}
	socket &operator=(socket &&other) noexcept
	{
		std::swap(loop_, other.loop_);
		std::swap(fd_, other.fd_);
		return *this;
	}
	~socket()
	{
		if (fd_ > 0)
			exs_close(fd_, 0, nullptr);
	}

	[[nodiscard]] exs_fd_t fd() const { return fd_; }

	void set(exs_option option, unsigned value)
	{
		if (exs_fcntl(fd_, EXS_SET, option, value) != 0)
			throw_errno("exs_fcntl");
	}
	[[nodiscard]] unsigned get(exs_option option) const
	{
		const int value = exs_fcntl(fd_, EXS_GET, option);
		if (value < 0)
			throw_errno("exs_fcntl");
		return static_cast<unsigned>(value);
	}
	void bind(const endpoint &at)
	{
		if (exs_bind(fd_, at.raw(), at.size()) != 0)
			throw_errno("exs_bind");
	}
	void listen(int backlog)
	{
		if (exs_listen(fd_, backlog) != 0)
			throw_errno("exs_listen");
	}
	void shutdown() { exs_shutdown(fd_); }

	// All of these: co_await, for a result
	auto accept()
	{
		return detail::awaitable(loop_, fd_, [this](void *context) { return exs_accept(fd_, loop_->queue(), context); },
				 [owner = loop_](const exs_event &event) { return socket(*owner, event.accepted); });
	}
	auto connect(const endpoint &to)
	{
		return detail::awaitable(
			loop_, fd_, [this, to](void *context) { return exs_connect(fd_, to.raw(), to.size(), loop_->queue(), context); },
			[](const exs_event &) { return done(); });
	}
	auto send(memory::part from, int flags = 0)
	{
		return detail::awaitable(
			loop_, fd_, [this, from, flags](void *context) {
				return exs_send(fd_, from.handle, from.bytes.data(), from.bytes.size(), flags, loop_->queue(), context);
			},
			[](const exs_event &event) { return size_t{event.length}; });
	}
	auto recv(memory::part to, int flags = 0)
	{
		return detail::awaitable(
			loop_, fd_, [this, to, flags](void *context) {
				return exs_recv(fd_, to.handle, to.bytes.data(), to.bytes.size(), flags, loop_->queue(), context);
			},
			make_received);
	}
	// As one message
	auto sendv(std::vector<memory::part> from)
	{
		return detail::awaitable(
			loop_, fd_, [this, parts = parts_of(from)](void *context) {
				return exs_sendv(fd_, parts.data(), static_cast<int>(parts.size()), 0, loop_->queue(), context);
			},
			[](const exs_event &event) { return size_t{event.length}; });
	}
	auto recvv(std::vector<memory::part> to, int flags = 0)
	{
		return detail::awaitable(
			loop_, fd_, [this, parts = parts_of(to), flags](void *context) {
				return exs_recvv(fd_, parts.data(), static_cast<int>(parts.size()), flags, loop_->queue(), context);
			},
			make_received);
	}
	auto send_at(memory::part from, uint64_t offset)
	{
		return detail::awaitable(
			loop_, fd_, [this, from, offset](void *context) {
				return exs_send_offset(fd_, from.handle, from.bytes.data(), from.bytes.size(), 0, loop_->queue(),
						       context, offset);
			},
			[](const exs_event &event) { return size_t{event.length}; });
	}
	auto recv_at(memory::part to, uint64_t offset)
	{
		return detail::awaitable(
			loop_, fd_, [this, to, offset](void *context) {
				return exs_recv_offset(fd_, to.handle, to.bytes.data(), to.bytes.size(), 0, loop_->queue(), context,
						       offset);
			},
			make_received);
	}
	auto sendfile(int file, uint64_t offset, size_t length)
	{
		return detail::awaitable(
			loop_, fd_, [this, file, offset, length](void *context) {
				return exs_sendfile(fd_, file, offset, length, loop_->queue(), context);
			},
			[](const exs_event &event) { return size_t{event.length}; });
	}
	// EXS_POLLIN and EXS_POLLOUT that it has
	auto poll(int events)
	{
		return detail::awaitable(
			loop_, fd_, [this, events](void *context) { return exs_qpoll(fd_, events, loop_->queue(), context); },
			[](const exs_event &event) { return static_cast<int>(event.flags); });
	}
	// The socket is closed with all that belongs to it, and cannot be used any more
	auto close()
	{
		return detail::awaitable(
			loop_, fd_, [this](void *context) { return exs_close(std::exchange(fd_, 0), loop_->queue(), context); },
			[](const exs_event &) { return done(); });
	}

	// The peer reads it whenever it likes. notify: persistent::reads() tells
	result<persistent> publish(memory::part from, bool notify = false)
	{
		persistent made(loop_);
		return begin(made, exs_send(fd_, from.handle, from.bytes.data(), from.bytes.size(),
					    EXS_PERSISTENT | (notify ? EXS_NOTIFY : 0), loop_->queue(),
					    static_cast<detail::sink *>(made.state_.get())));
	}
	// The peer writes it whenever it likes
	result<persistent> subscribe(memory::part to)
	{
		persistent made(loop_);
		return begin(made, exs_recv(fd_, to.handle, to.bytes.data(), to.bytes.size(), EXS_PERSISTENT, loop_->queue(),
					    static_cast<detail::sink *>(made.state_.get())));
	}

private:
	static std::vector<exs_part> parts_of(const std::vector<memory::part> &from)
	{
		std::vector<exs_part> parts;
		for (const auto &one : from)
			parts.push_back({one.handle, one.bytes.data(), one.bytes.size()});
		return parts;
	}
	static received make_received(const exs_event &event)
	{
		return {.length = event.length, .eof = (event.flags & EXS_EOF) != 0, .truncated = (event.flags & EXS_TRUNCATED) != 0};
	}
	result<persistent> begin(persistent &made, exs_op_t op)
	{
		if (op < 0) {
			made.state_->error = errno;
			return error_of(*made.state_->error);
		}
		loop_->keep(made.state_);
		made.fd_ = fd_;
		made.op_ = op;
		return std::move(made);
	}

	loop *loop_;
	exs_fd_t fd_;
};

} // namespace exs
