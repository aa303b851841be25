// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//
// The library, by its C interface; the names carry the requirements. Over TCP on the loopback interface, or over RDMA
// from EXS_TEST_ADDRESS to itself (tests/exs.sh).
#include "library.h"

#include <exs.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <deque>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <set>
#include <thread>
#include <type_traits>
#include <vector>

#include <arpa/inet.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/userfaultfd.h>
#include <malloc.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using namespace exs_test;

std::atomic<bool> refuses_watches = false;

// Of one address
std::atomic<const void *> counted = nullptr;
std::atomic<int> registered = 0, deregistered = 0;
std::set<void *> registrations; // that there are
std::mutex registrations_mutex;

template <typename Function, typename... Arguments>
void *register_memory(const char *name, void *address, Arguments... arguments)
{
	static_assert(std::is_pointer_v<Function>);
	void *const mr = reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name))(arguments...);
	const std::lock_guard lock(registrations_mutex);
	if (mr != nullptr && address == counted) {
		registered++;
		registrations.insert(mr);
	}
	return mr;
}

} // namespace

// In place of libibverbs's, also for the library
extern "C" {
__attribute__((visibility("default"))) void *ibv_reg_mr(void *pd, void *address, size_t length, int access)
{
	return register_memory<void *(*)(void *, void *, size_t, int)>("ibv_reg_mr", address, pd, address, length, access);
}

__attribute__((visibility("default"))) void *ibv_reg_mr_iova2(void *pd, void *address, size_t length, uint64_t iova, unsigned access)
{
	return register_memory<void *(*)(void *, void *, size_t, uint64_t, unsigned)>("ibv_reg_mr_iova2", address, pd, address, length,
										      iova, access);
}

__attribute__((visibility("default"))) int ibv_dereg_mr(void *mr)
{
	{
		const std::lock_guard lock(registrations_mutex);
		if (registrations.erase(mr) != 0)
			deregistered++;
	}
	return reinterpret_cast<int (*)(void *)>(::dlsym(RTLD_NEXT, "ibv_dereg_mr"))(mr);
}
}

namespace {

// A device that knows nothing but to bind: what rdma_bind_addr() says for a port
std::function<int(uint16_t port)> bind_answer;
int afonly = -1; // as set

struct FakeChannel {
	int fd; // as in librdmacm
} fake_channel{-1};

template <typename Function, typename... Arguments> auto real(const char *name, Arguments... arguments)
{
	return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name))(arguments...);
}

int fail(int error)
{
	errno = error;
	return error == 0 ? 0 : -1;
}

} // namespace

// In place of librdmacm's, also for the library
extern "C" {
__attribute__((visibility("default"))) void *rdma_create_event_channel()
{
	if (!bind_answer)
		return real<void *(*)()>("rdma_create_event_channel");
	fake_channel.fd = ::eventfd(0, 0);
	return &fake_channel;
}

__attribute__((visibility("default"))) void rdma_destroy_event_channel(void *channel)
{
	if (channel != &fake_channel)
		return real<void (*)(void *)>("rdma_destroy_event_channel", channel);
	::close(std::exchange(fake_channel.fd, -1));
}

__attribute__((visibility("default"))) int rdma_create_id(void *channel, void **id, void *context, int space)
{
	if (channel != &fake_channel)
		return real<int (*)(void *, void **, void *, int)>("rdma_create_id", channel, id, context, space);
	*id = &fake_channel;
	return 0;
}

__attribute__((visibility("default"))) int rdma_set_option(void *id, int level, int name, void *value, size_t length)
{
	if (id != &fake_channel)
		return real<int (*)(void *, int, int, void *, size_t)>("rdma_set_option", id, level, name, value, length);
	afonly = *static_cast<int *>(value);
	return 0;
}

__attribute__((visibility("default"))) int rdma_destroy_id(void *id)
{
	return id == &fake_channel ? 0 : real<int (*)(void *)>("rdma_destroy_id", id);
}

__attribute__((visibility("default"))) int rdma_bind_addr(void *id, sockaddr *address)
{
	if (id != &fake_channel)
		return real<int (*)(void *, sockaddr *)>("rdma_bind_addr", id, address);
	return fail(bind_answer(ntohs(reinterpret_cast<const sockaddr_in *>(address)->sin_port)));
}
}

// In place of libc's, also for the library
extern "C" __attribute__((visibility("default"))) int epoll_ctl(int epoll, int operation, int fd, epoll_event *event) noexcept
{
	if (refuses_watches && operation == EPOLL_CTL_ADD) {
		errno = ENOSPC;
		return -1;
	}
	return static_cast<int>(::syscall(SYS_epoll_ctl, epoll, operation, fd, event));
}

namespace {

bool is_child;

} // namespace

// In a child of fork(), memory of the parent's other threads has no owner
extern "C" __attribute__((visibility("default"))) int __lsan_is_turned_off();
int __lsan_is_turned_off()
{
	return is_child ? 1 : 0;
}

namespace {

// What the child returns of itself
template <typename Function> int in_child(const Function &function)
{
	const pid_t child = ::fork();
	if (child == 0) {
		is_child = true;
		::alarm(10);
		std::exit(function());
	}
	int status = 0;
	::waitpid(child, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// ---- EXS-1

TEST_F(Library, EXS1_PeerNameEqualsTheSocketNameOfThePeer)
{
	connect();
	sockaddr_in ours{}, theirs{};
	socklen_t length = sizeof(ours);
	ASSERT_EQ(exs_getsockname(a, reinterpret_cast<sockaddr *>(&ours), &length), 0);
	EXPECT_EQ(length, sizeof(ours));
	ASSERT_EQ(exs_getpeername(b, reinterpret_cast<sockaddr *>(&theirs), &length), 0);
	EXPECT_EQ(std::memcmp(&ours, &theirs, sizeof(ours)), 0);
	ASSERT_EQ(exs_getpeername(a, reinterpret_cast<sockaddr *>(&theirs), &length), 0);
	EXPECT_EQ(theirs.sin_port, address.sin_port);
	EXPECT_EQ(exs_fcntl(a, EXS_GET, EXS_PROTOCOL), expected_protocol);
}

TEST_F(Library, EXS1_InvalidHandlesFailWithEbadfAndClosedHandlesAreNotReused)
{
	connect();
	Memory memory(10);
	EXPECT_EQ(exs_send(queue, memory.handle, memory.bytes.data(), 1, 0, queue, nullptr), -1);
	EXPECT_EQ(errno, EBADF);
	EXPECT_EQ(exs_send(a, a, memory.bytes.data(), 1, 0, queue, nullptr), -1);
	EXPECT_EQ(errno, EBADF);
	EXPECT_EQ(exs_send(a, memory.handle, memory.bytes.data(), 1, 0, memory.handle, nullptr), -1);
	EXPECT_EQ(errno, EBADF);
	const auto closed = a;
	wait(exs_close(a, queue, nullptr));
	for (int i = 0; i < 300; i++) {
		const auto fd = exs_socket(AF_INET, SOCK_STREAM, 0);
		ASSERT_NE(fd, closed);
		exs_close(fd, 0, nullptr);
	}
	EXPECT_EQ(exs_close(closed, 0, nullptr), -1);
	EXPECT_EQ(errno, EBADF);
	for (const int64_t nonsense : {int64_t{0}, int64_t{-1}, INT64_MAX, INT64_MIN, int64_t{7} << 60}) {
		EXPECT_EQ(exs_shutdown(nonsense), -1);
		EXPECT_EQ(exs_qdelete(nonsense), -1);
		EXPECT_EQ(exs_mderegister(nonsense), -1);
	}
}

TEST_F(Library, EXS1_InvalidArgumentsFailWithAnErrno)
{
	const auto refused = [](int64_t result, int error) { return result == -1 && errno == error; };
	EXPECT_TRUE(refused(exs_init(EXS_VERSION + 1), EINVAL));
	EXPECT_TRUE(refused(exs_socket(AF_UNIX, SOCK_STREAM, 0), EAFNOSUPPORT));
	EXPECT_TRUE(refused(exs_socket(AF_INET, SOCK_DGRAM, 0), ESOCKTNOSUPPORT));
	EXPECT_TRUE(refused(exs_socket(AF_INET, SOCK_STREAM, 3), EPROTONOSUPPORT));
	const auto fd = exs_socket(AF_INET, SOCK_STREAM, 0);
	const auto somewhere = loopback(1);
	EXPECT_TRUE(refused(exs_bind(fd, raw(somewhere), 3), EINVAL));
	EXPECT_TRUE(refused(exs_bind(fd, nullptr, 0), EINVAL));
	sockaddr_in6 v6{};
	v6.sin6_family = AF_INET6;
	EXPECT_TRUE(refused(exs_bind(fd, reinterpret_cast<sockaddr *>(&v6), sizeof(v6)), EAFNOSUPPORT));
	EXPECT_TRUE(refused(exs_listen(fd, 1), EDESTADDRREQ));
	EXPECT_TRUE(refused(exs_accept(fd, queue, nullptr), EINVAL));
	EXPECT_TRUE(refused(exs_shutdown(fd), ENOTCONN));
	Memory memory(10);
	EXPECT_TRUE(refused(exs_send(fd, memory.handle, memory.bytes.data(), 10, 0, queue, nullptr), ENOTCONN));
	EXPECT_TRUE(refused(exs_cancel(fd, 1), ENOENT));
	EXPECT_TRUE(refused(exs_connect(fd, raw(loopback(0)), sizeof(sockaddr_in), queue, nullptr), EADDRNOTAVAIL));
	EXPECT_TRUE(refused(exs_fcntl(fd, 3, EXS_IRD), EINVAL));
	EXPECT_TRUE(refused(exs_fcntl(fd, EXS_GET, 99), EINVAL));
	exs_event event{};
	EXPECT_TRUE(refused(exs_qdequeue(queue, &event, 0, 0), EINVAL));
	EXPECT_TRUE(refused(exs_qdequeue(queue, nullptr, 1, 0), EINVAL));
}

// ---- EXS-2

TEST_F(Library, EXS2_OperationsReturnBeforeCompletionAndCompleteByAnEvent)
{
	connect();
	Memory to(1 << 20), from(1 << 20);
	from.fill(3);
	std::vector<exs_op_t> ops;
	for (int i = 0; i < 8; i++)
		ops.push_back(recv(b, to));
	EXPECT_TRUE(waits(ops[0]));
	for (int i = 0; i < 8; i++)
		ops.push_back(send(a, from));
	for (const auto op : ops) {
		const auto event = wait(op);
		EXPECT_EQ(event.error, 0);
		EXPECT_EQ(event.length, from.bytes.size());
	}
	EXPECT_EQ(to.bytes, from.bytes);
}

TEST_F(Library, EXS2_TheDescriptorOfAQueueIsReadableWhileTheQueueHasEvents)
{
	connect();
	pollfd wait_for{.fd = exs_qfd(queue), .events = POLLIN, .revents = 0};
	EXPECT_EQ(poll(&wait_for, 1, 0), 0);
	Memory to(10), from(10);
	recv(b, to);
	send(a, from);
	EXPECT_EQ(poll(&wait_for, 1, patience), 1);
	std::array<exs_event, 4> taken{};
	int count = 0;
	while (count < 2)
		count += exs_qdequeue(queue, taken.data(), 4, patience);
	EXPECT_EQ(poll(&wait_for, 1, 0), 0);
	EXPECT_EQ(exs_qdequeue(queue, taken.data(), 4, 0), 0);
}

TEST_F(Library, EXS2_DeletingAQueueEndsAWaitForItsEventsWithEbadf)
{
	const exs_qh_t other = exs_qcreate();
	int count = 0, error = 0;
	std::atomic<pid_t> thread = 0;
	std::thread waiter([&] {
		exs_event event{};
		thread = ::gettid();
		count = exs_qdequeue(other, &event, 1, patience);
		error = errno;
	});
	while (thread == 0)
		std::this_thread::yield();
	wait_asleep(thread);
	EXPECT_EQ(exs_qdelete(other), 0);
	waiter.join();
	EXPECT_EQ(count, -1);
	EXPECT_EQ(error, EBADF);
}

// Of a program that was compiled with version 0.1, and of one with a later version
TEST_F(Library, EventsHaveTheSizeThatTheProgramWasCompiledWith)
{
	struct Later {
		exs_event event;
		std::array<uint8_t, 24> more;
	};
	std::array<Later, 3> later{};
	std::memset(static_cast<void *>(later.data()), 0xff, sizeof(later));
	for (int i = 0; i < 3; i++)
		ASSERT_EQ(exs_qpost(queue, &later.at(static_cast<size_t>(i))), 0);
	EXPECT_EQ(exs_qdequeue_sized(queue, &later[0].event, sizeof(Later), 2, patience), 2);
	for (size_t i = 0; i < 2; i++) {
		EXPECT_EQ(later.at(i).event.context, &later.at(i));
		EXPECT_EQ(later.at(i).more, (std::array<uint8_t, 24>{}));
	}
	EXPECT_EQ(later[2].event.type, -1);
	std::array<uint8_t, 72> early{};
	early.fill(0xff);
	EXPECT_EQ((exs_qdequeue)(queue, reinterpret_cast<exs_event *>(early.data()), 1, patience), 1);
	EXPECT_EQ(early[0], EXS_EVENT_USER);
	EXPECT_EQ(early[55], 0);
	EXPECT_EQ(early[56], 0xff);
	EXPECT_EQ(exs_qdequeue_sized(queue, &later[0].event, 55, 1, 0), -1);
	EXPECT_EQ(errno, EINVAL);
}

// Until the function has returned
template <typename Function> int interrupted(const Function &function)
{
	struct sigaction action {
	}, before{};
	action.sa_handler = [](int) {};
	::sigaction(SIGUSR1, &action, &before);
	const pthread_t self = ::pthread_self();
	std::jthread other([self](const std::stop_token &stop) {
		while (!stop.stop_requested()) {
			usleep(20000);
			::pthread_kill(self, SIGUSR1);
		}
	});
	const int result = function();
	const int error = errno;
	other.request_stop();
	other.join();
	::sigaction(SIGUSR1, &before, nullptr);
	return result == -1 ? error : 0;
}

TEST_F(Library, ASignalInterruptsQdequeueAndPollWithEintr)
{
	listen(SOCK_SEQPACKET);
	exs_event event{};
	exs_pollfd one{.fd = listener, .events = EXS_POLLIN, .revents = 0};
	EXPECT_EQ(interrupted([&] { return exs_qdequeue(queue, &event, 1, patience); }), EINTR);
	EXPECT_EQ(interrupted([&] { return exs_poll(&one, 1, patience); }), EINTR);
	ASSERT_EQ(exs_qset(queue, EXS_QUEUE_PROGRESS, 1), 0);
	EXPECT_EQ(interrupted([&] { return exs_qdequeue(queue, &event, 1, patience); }), EINTR);
}

// Another thread calls the function once when this thread has worked for 20 ms, or after 500 ms if it sleeps, and counts the first
// kind. On a slow host this may be before this thread waits.
template <typename Function> std::jthread when_it_spins(std::atomic<int> &spins, const Function &function)
{
	clockid_t clock{};
	::pthread_getcpuclockid(::pthread_self(), &clock);
	const auto worked = [clock] {
		timespec time{};
		::clock_gettime(clock, &time);
		return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
	};
	return std::jthread([&spins, function, worked, before = worked()] {
		const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(500);
		bool spun = false;
		while (!spun && std::chrono::steady_clock::now() < end) {
			std::this_thread::yield();
			spun = worked() - before >= std::chrono::milliseconds(20);
		}
		spins += spun;
		function();
	});
}

// Counts work, not sleeps: a lock that another thread has, be it the kernel's, is a sleep as well
TEST_F(Library, WithQueueSpinUsQdequeueDoesNotSleepForThisTime)
{
	ASSERT_EQ(exs_qset(queue, EXS_QUEUE_SPIN_US, 1000000), 0);
	std::atomic<int> spins = 0;
	for (int round = 0; round < 10; round++) {
		exs_event event{};
		const auto other = when_it_spins(spins, [this] { exs_qpost(queue, nullptr); });
		ASSERT_EQ(exs_qdequeue(queue, &event, 1, patience), 1);
	}
	EXPECT_GE(spins, 3);
}

// Once, so that the wait after the spin does not notice
TEST_F(Library, ASignalInterruptsQdequeueWithEintrWhileItSpins)
{
	struct sigaction action {}, before {};
	action.sa_handler = [](int) {};
	::sigaction(SIGUSR1, &action, &before);
	const pthread_t self = ::pthread_self();
	for (const unsigned progress : {0U, 1U}) {
		ASSERT_EQ(exs_qset(queue, EXS_QUEUE_PROGRESS, progress), 0);
		ASSERT_EQ(exs_qset(queue, EXS_QUEUE_SPIN_US, 1000000), 0);
		std::atomic<int> spins = 0;
		int interruptions = 0;
		for (int round = 0; round < 10; round++) {
			exs_event event{};
			const auto other = when_it_spins(spins, [self] { ::pthread_kill(self, SIGUSR1); });
			interruptions += exs_qdequeue(queue, &event, 1, 900) == -1 && errno == EINTR;
		}
		EXPECT_GE(interruptions, 3);
	}
	::sigaction(SIGUSR1, &before, nullptr);
	sigset_t blocked;
	::pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
	EXPECT_FALSE(sigismember(&blocked, SIGUSR1));
}

// How often the progress thread has gone to sleep
int64_t progress_thread_sleeps()
{
	int64_t most = 0;
	for (const auto &task : std::filesystem::directory_iterator("/proc/self/task")) {
		if (task.path().filename() == std::to_string(::getpid()))
			continue;
		std::ifstream status(task.path() / "status");
		for (std::string line; std::getline(status, line);)
			if (line.starts_with("voluntary_ctxt_switches:"))
				most = std::max<int64_t>(most, std::stoll(line.substr(line.find(':') + 1)));
	}
	return most;
}

// On a loaded host the caller may pause for more than 10 ms, and the thread works meanwhile: so time gives it a few sleeps, not the
// number of messages
TEST_F(Library, WithQueueProgressTheCallerOfQdequeueDoesTheWorkOfTheProgressThread)
{
	for (const unsigned spin : {0U, 200U}) {
		ASSERT_EQ(exs_qset(queue, EXS_QUEUE_PROGRESS, 0), 0);
		listener = 0;
		connect();
		Memory to(5000), from(5000);
		ASSERT_EQ(exs_qset(queue, EXS_QUEUE_PROGRESS, 1), 0);
		ASSERT_EQ(exs_qset(queue, EXS_QUEUE_SPIN_US, spin), 0);
		const auto start = std::chrono::steady_clock::now();
		const int64_t before = progress_thread_sleeps();
		for (int i = 0; i < 1000; i++) {
			from.fill(static_cast<uint8_t>(i));
			const auto receiving = recv(b, to), sending = send(a, from);
			ASSERT_EQ(wait(receiving).error, 0);
			ASSERT_EQ(wait(sending).error, 0);
			ASSERT_EQ(to.bytes, from.bytes);
		}
		const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - start).count();
		EXPECT_LE(progress_thread_sleeps() - before, 200 + 3 * ms / 10) << "in " << ms << " ms, with a spin of " << spin;
	}
}

// The thread returns to its work
TEST_F(Library, WithQueueProgressConnectionsGoOnWhileNobodyCallsQdequeue)
{
	ASSERT_EQ(exs_qset(queue, EXS_QUEUE_PROGRESS, 1), 0);
	connect();
	Memory to(5000), from(5000);
	const auto other = exs_qcreate();
	exs_recv(b, to.handle, to.bytes.data(), 5000, 0, other, nullptr);
	exs_send(a, from.handle, from.bytes.data(), 5000, 0, other, nullptr);
	exs_event event{};
	EXPECT_EQ(exs_qdequeue(other, &event, 1, patience), 1);
	EXPECT_EQ(exs_qdequeue(other, &event, 1, patience), 1);
}

// A page at which threads wait until it is filled
class Trap {
public:
	explicit Trap(void *page)
	    : fd_(static_cast<int>(::syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY))),
	      range_{.start = reinterpret_cast<uintptr_t>(page), .len = static_cast<size_t>(::sysconf(_SC_PAGESIZE))}
	{
		uffdio_api api{.api = UFFD_API, .features = 0, .ioctls = 0};
		uffdio_register what{.range = range_, .mode = UFFDIO_REGISTER_MODE_MISSING, .ioctls = 0};
		is_set_ = fd_ >= 0 && ::ioctl(fd_, UFFDIO_API, &api) == 0 && ::ioctl(fd_, UFFDIO_REGISTER, &what) == 0 &&
			  ::madvise(page, range_.len, MADV_DONTNEED) == 0;
	}
	~Trap()
	{
		open();
		::close(fd_);
	}
	Trap(const Trap &) = delete;
	Trap &operator=(const Trap &) = delete;

	[[nodiscard]] bool is_set() const { return is_set_; }
	[[nodiscard]] bool wait_for_prey() const
	{
		pollfd readable{.fd = fd_, .events = POLLIN, .revents = 0};
		return ::poll(&readable, 1, patience) == 1 && readable.revents == POLLIN;
	}
	void open()
	{
		uffdio_zeropage what{.range = range_, .mode = 0, .zeropage = 0};
		if (std::exchange(is_set_, false))
			::ioctl(fd_, UFFDIO_ZEROPAGE, &what);
	}

private:
	int fd_;
	uffdio_range range_;
	bool is_set_ = false;
};

// It receives into a page that is not there
TEST_F(Library, WithQueueThreadConnectionsOfAQueueGoOnWhileAThreadOfAnotherQueueIsBlocked)
{
	struct Case {
		unsigned blocked, other; // has a thread
		unsigned progress;	 // of other
		bool late;		 // accepts when connected
	};
	const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
	for (const Case &one : {Case{0, 1, 0, false}, Case{0, 1, 0, true}, Case{1, 0, 0, false}, Case{1, 1, 0, true}, Case{1, 1, 1, false}}) {
		SCOPED_TRACE(testing::Message() << one.blocked << one.other << one.progress << one.late);
		const exs_qh_t blocked = exs_qcreate(), other = exs_qcreate();
		ASSERT_EQ(exs_qset(blocked, EXS_QUEUE_THREAD, one.blocked), 0);
		ASSERT_EQ(exs_qset(other, EXS_QUEUE_THREAD, one.other), 0);
		ASSERT_EQ(exs_qset(other, EXS_QUEUE_PROGRESS, one.progress), 0);
		queue = blocked;
		connect();
		Memory from(10), large(5000), to(5000);
		void *const at = ::mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		ASSERT_NE(at, MAP_FAILED);
		const exs_mh_t memory = exs_mregister(at, page, EXS_MEM_RECV);
		const auto receive = [&] { return exs_recv(b, memory, at, 10, 0, blocked, nullptr); };
		const auto first = receive(); // a device pins it
		send(a, from);
		ASSERT_EQ(wait(first).error, 0);
		Trap trap(at);
		if (!trap.is_set())
			GTEST_SKIP() << "no userfaultfd: " << strerror(errno);
		const auto receiving = receive();
		const exs_fd_t sender = a;

		queue = other;
		if (one.late) {
			a = exs_socket(AF_INET, SOCK_SEQPACKET, EXS_PROTO_ANY);
			ASSERT_EQ(wait(exs_connect(a, raw(address), sizeof(address), queue, nullptr)).error, 0);
			exs_pollfd ready{.fd = listener, .events = EXS_POLLIN, .revents = 0};
			ASSERT_EQ(exs_poll(&ready, 1, patience), 1);
			b = wait(exs_accept(listener, queue, nullptr)).accepted;
		} else {
			connect();
		}
		exs_send(sender, from.handle, from.bytes.data(), 10, 0, blocked, nullptr);
		ASSERT_TRUE(trap.wait_for_prey());
		for (uint8_t i = 0; i < 20 && !HasFailure(); i++) {
			large.fill(i);
			const auto receiving_other = recv(b, to), sending_other = send(a, large);
			EXPECT_EQ(wait(receiving_other).error, 0);
			EXPECT_EQ(wait(sending_other).error, 0);
			EXPECT_EQ(to.bytes, large.bytes);
		}
		trap.open();
		queue = blocked;
		EXPECT_EQ(wait(receiving).error, 0);
		wait(exs_mrevoke(memory, queue, nullptr));
		::munmap(at, page);
	}
}

size_t threads()
{
	const std::filesystem::directory_iterator tasks("/proc/self/task");
	return static_cast<size_t>(std::distance(begin(tasks), end(tasks)));
}

TEST_F(Library, TheThreadOfADeletedQueueServesItsConnectionsAndThenTheNextQueue)
{
	const size_t before = threads();
	const exs_qh_t other = exs_qcreate();
	ASSERT_EQ(exs_qset(other, EXS_QUEUE_THREAD, 1), 0);
	ASSERT_EQ(exs_qset(other, EXS_QUEUE_THREAD, 1), 0);
	EXPECT_EQ(threads(), before + 1);
	queue = other;
	connect();
	EXPECT_EQ(exs_qabandon(other), 0);
	for (int i = 0; i < 3; i++) {
		queue = exs_qcreate();
		ASSERT_EQ(exs_qset(queue, EXS_QUEUE_THREAD, 1), 0);
		Memory from(5000), to(5000);
		const auto receiving = recv(b, to), sending = send(a, from);
		EXPECT_EQ(wait(receiving).error, 0);
		EXPECT_EQ(wait(sending).error, 0);
		EXPECT_EQ(exs_qset(queue, EXS_QUEUE_THREAD, 0), 0);
		EXPECT_EQ(exs_qdelete(queue), 0);
	}
	EXPECT_EQ(threads(), before + 1);
	queue = exs_qcreate();
}

TEST_F(Library, InvalidQueueOptionsFailWithEinval)
{
	for (const auto &[option, value] : {std::pair(0, 0U), std::pair(5, 0U), std::pair(1, 2U), std::pair(2, 1000001U), std::pair(3, 2U), std::pair(4, 2U)}) {
		EXPECT_EQ(exs_qset(queue, option, value), -1) << option;
		EXPECT_EQ(errno, EINVAL);
	}
}

TEST_F(Library, QpostQueuesAnEventOfTypeUserWithItsContext)
{
	std::thread other([this] {
		wait_asleep(::getpid());
		EXPECT_EQ(exs_qpost(queue, &queue), 0);
	});
	exs_event event{};
	EXPECT_EQ(exs_qdequeue(queue, &event, 1, patience), 1);
	other.join();
	EXPECT_EQ(event.type, EXS_EVENT_USER);
	EXPECT_EQ(event.context, &queue);
	EXPECT_EQ(event.op, 0);
	EXPECT_EQ(exs_qpost(a + 1, nullptr), -1);
	EXPECT_EQ(errno, EBADF);
}

TEST_F(Library, EXS2_DeletingAQueueInUseFailsWithEbusy)
{
	connect();
	Memory to(10);
	recv(b, to);
	EXPECT_EQ(exs_qdelete(queue), -1);
	EXPECT_EQ(errno, EBUSY);
	wait(exs_close(b, queue, nullptr));
	const auto other = exs_qcreate();
	EXPECT_EQ(exs_qdelete(other), 0);
	EXPECT_EQ(exs_qfd(other), -1);
}

// ---- EXS-3

TEST_F(Library, EXS3_OperationsOutsideOfRegisteredMemoryFail)
{
	connect();
	Memory memory(100), send_only(10, EXS_MEM_SEND), recv_only(10, EXS_MEM_RECV);
	auto *start = memory.bytes.data();
	const auto fails = [&](exs_op_t op, int error) { return op == -1 && errno == error; };
	EXPECT_TRUE(fails(exs_send(a, memory.handle, start, 101, 0, queue, nullptr), EFAULT));
	EXPECT_TRUE(fails(exs_send(a, memory.handle, start - 1, 1, 0, queue, nullptr), EFAULT));
	EXPECT_TRUE(fails(exs_send(a, memory.handle, start + 100, 1, 0, queue, nullptr), EFAULT));
	EXPECT_TRUE(fails(exs_recv(a, memory.handle, start + 1, SIZE_MAX, 0, queue, nullptr), EFAULT));
	EXPECT_TRUE(fails(exs_send(a, 0, start, 1, 0, queue, nullptr), EBADF));
	EXPECT_TRUE(fails(recv(a, send_only), EACCES));
	EXPECT_TRUE(fails(send(a, recv_only), EACCES));
	EXPECT_TRUE(fails(exs_mregister(start, 0, EXS_MEM_SEND), EINVAL));
	EXPECT_TRUE(fails(exs_mregister(start, 1, 0), EINVAL));
	EXPECT_TRUE(fails(exs_mregister(start, 1, 4), EINVAL));
	EXPECT_TRUE(fails(exs_mregister(start, SIZE_MAX, EXS_MEM_SEND), EINVAL));
	void *gone = mmap(nullptr, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	munmap(static_cast<char *>(gone) + 4096, 4096);
	EXPECT_TRUE(fails(exs_mregister(gone, 4097, EXS_MEM_SEND), EFAULT));
	munmap(gone, 4096);
}

// A receive that has just begun to use the memory must not be forgotten by the revocation
TEST_F(Library, EXS3_RevocationOfMemoryCompletesEachReceiveIntoItWithEcanceled)
{
	connect();
	for (int i = 0; i < 200 && !HasFailure(); i++) {
		Memory memory(64);
		std::atomic<size_t> begun = 0;
		std::vector<exs_op_t> receives;
		int error = 0;
		std::thread receiver([&] {
			exs_op_t op = 0;
			while ((op = recv(b, memory)) > 0) {
				receives.push_back(op);
				if (++begun > 300)
					usleep(100); // wait() looks at all events, and a busy host leaves time for many
			}
			error = errno;
		});
		while (begun < 3)
			std::this_thread::yield();
		const auto revoking = exs_mrevoke(memory.handle, queue, nullptr);
		receiver.join();
		EXPECT_EQ(error, EBADF);
		EXPECT_EQ(wait(revoking).error, 0) << "in round " << i;
		for (const exs_op_t op : receives)
			EXPECT_EQ(wait(op).error, ECANCELED);
	}
}

TEST_F(Library, EXS3_DeregisteringMemoryInUseFailsWithEbusyRevocationCancelsItsOperations)
{
	connect();
	Memory memory(100000);
	const auto sending = send(a, memory), receiving = recv(a, memory);
	EXPECT_EQ(exs_mderegister(memory.handle), -1);
	EXPECT_EQ(errno, EBUSY);
	const auto revoking = exs_mrevoke(memory.handle, queue, nullptr);
	EXPECT_EQ(wait(sending).error, ECANCELED);
	EXPECT_EQ(wait(receiving).error, ECANCELED);
	const auto revoked = wait(revoking);
	EXPECT_EQ(revoked.type, EXS_EVENT_REVOKE);
	EXPECT_EQ(revoked.error, 0);
	EXPECT_EQ(send(a, memory), -1);
	EXPECT_EQ(errno, EBADF);
	Memory other(100), to(100);
	const auto next = send(a, other), taken = recv(b, to);
	EXPECT_EQ(wait(next).error, 0);
	EXPECT_EQ(wait(taken).error, 0);
}

// The second page is not there: registered as a whole the region could not be sent from
TEST_F(Library, EXS3_ASendWithExsExactRegistersOnlyTheRangeOfTheMessage)
{
	options[EXS_EXACT] = 1;
	connect();
	EXPECT_EQ(exs_fcntl(a, EXS_GET, EXS_EXACT), 1);
	const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
	void *const pages = mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(pages, MAP_FAILED);
	std::memset(pages, 7, page);
	const auto region = exs_mregister(pages, 2 * page, EXS_MEM_SEND);
	ASSERT_EQ(munmap(static_cast<uint8_t *>(pages) + page, page), 0);
	Memory to(page);
	const auto receiving = recv(b, to);
	EXPECT_EQ(wait(exs_send(a, region, pages, page, 0, queue, nullptr)).error, 0);
	EXPECT_EQ(wait(receiving).length, page);
	EXPECT_EQ(to.bytes, std::vector<uint8_t>(page, 7));
	EXPECT_EQ(exs_mderegister(region), 0);
	munmap(pages, page);
}

// Of this process, as the kernel lists them
int count_registrations(size_t length)
{
	const std::string lister = "rdma resource show mr | grep -c ' mrlen " + std::to_string(length) + " .*pid " + std::to_string(getpid()) + " '";
	const std::unique_ptr<FILE, int (*)(FILE *)> lines(popen(lister.c_str(), "r"), pclose);
	int count = -1;
	if (lines == nullptr || std::fscanf(lines.get(), "%d", &count) != 1)
		ADD_FAILURE() << lister;
	return count;
}

TEST_F(Library, EXS3_OverRdmaASendWithExsExactIsRegisteredUntilItsEvent)
{
	if (rdma_address == nullptr)
		GTEST_SKIP() << "it needs a device";
	options[EXS_EXACT] = 1;
	connect();
	constexpr size_t length = 54321;
	Memory from(100000), to(100000);
	from.fill(3);
	const auto sending = exs_send(a, from.handle, from.bytes.data() + 4097, length, 0, queue, nullptr);
	EXPECT_TRUE(waits(sending));
	EXPECT_EQ(count_registrations(length), 1);
	EXPECT_EQ(count_registrations(from.bytes.size()), 0) << "the region";
	EXPECT_EQ(wait(recv(b, to)).length, length);
	EXPECT_EQ(wait(sending).length, length);
	EXPECT_EQ(count_registrations(length), 0);
}

// ---- EXS-4 to EXS-7

TEST_F(Library, EXS4_MessagesOf1OctetTo5MiBArriveUnchanged)
{
	connect();
	for (const size_t size : {size_t{1}, size_t{1024}, size_t{1025}, size_t{65536}, (size_t{1} << 20) + 1, size_t{5} << 20}) {
		Memory from(size), to(size);
		from.fill(static_cast<uint8_t>(size));
		const auto receiving = recv(b, to), sending = send(a, from);
		EXPECT_EQ(wait(sending).length, size);
		EXPECT_EQ(wait(receiving).length, size);
		EXPECT_EQ(from.bytes, to.bytes);
	}
}

exs_part part_of(Memory &memory, size_t start, size_t length)
{
	return {memory.handle, memory.bytes.data() + start, length};
}

TEST_F(Library, SendvAndRecvvTransferTheOctetsOfAllPartsInOrder)
{
	for (const int type : {SOCK_SEQPACKET, SOCK_STREAM}) {
		listener = 0;
		connect(type);
		// below and above EXS_SMALL_MAX, and several Reads for a part
		for (const size_t size : {size_t{200}, size_t{30000}, size_t{3} << 20}) {
			Memory one(size), other(size), to(size), also_to(2 * size);
			one.fill(1);
			other.fill(101);
			std::vector<uint8_t> sent(one.bytes.begin() + 5, one.bytes.begin() + 105);
			sent.insert(sent.end(), other.bytes.begin(), other.bytes.end());
			sent.insert(sent.end(), one.bytes.begin(), one.bytes.begin() + 7);
			const std::array from{part_of(one, 5, 100), part_of(one, 0, 0), part_of(other, 0, size), part_of(one, 0, 7)};
			const std::array into{part_of(to, 3, 60), part_of(also_to, 0, 70), part_of(to, 100, 20), part_of(also_to, 100, size - 43)};
			const auto receiving = exs_recvv(b, into.data(), 4, type == SOCK_STREAM ? EXS_WAITALL : 0, queue, nullptr);
			const auto sending = exs_sendv(a, from.data(), 4, 0, queue, nullptr);
			EXPECT_EQ(wait(sending).length, size + 107);
			const auto event = wait(receiving);
			EXPECT_EQ(event.error, 0);
			EXPECT_EQ(event.length, size + 107);
			std::vector<uint8_t> got;
			for (const exs_part &part : into)
				got.insert(got.end(), static_cast<uint8_t *>(part.address), static_cast<uint8_t *>(part.address) + part.length);
			EXPECT_EQ(got, sent) << "of " << size;
			EXPECT_EQ(to.bytes[2], 0);
			EXPECT_EQ(to.bytes[63], 0);
			EXPECT_EQ(also_to.bytes[70], 0);
		}
	}
}

TEST_F(Library, RecvvTruncatesAMessageThatIsLongerThanItsParts)
{
	connect();
	Memory from(5000), to(3000);
	from.fill(3);
	const std::array into{part_of(to, 0, 1000), part_of(to, 2000, 1000)};
	const auto receiving = exs_recvv(b, into.data(), 2, 0, queue, nullptr);
	send(a, from);
	const auto event = wait(receiving);
	EXPECT_EQ(event.length, 2000U);
	EXPECT_EQ(event.flags, static_cast<uint32_t>(EXS_TRUNCATED));
	EXPECT_TRUE(std::equal(to.bytes.begin() + 2000, to.bytes.end(), from.bytes.begin() + 1000));
	EXPECT_EQ(to.bytes[1000], 0);
}

TEST_F(Library, InvalidPartsOfSendvAndRecvvFailAndNoneStaysInUse)
{
	connect();
	Memory good(100), send_only(10, EXS_MEM_SEND), recv_only(10, EXS_MEM_RECV);
	const auto fails = [&](std::vector<exs_part> parts, int error, int flags = 0) {
		const int count = static_cast<int>(parts.size());
		const bool sent = exs_sendv(a, parts.data(), count, flags, queue, nullptr) == -1 && errno == error;
		return sent && exs_recvv(a, parts.data(), count, flags, queue, nullptr) == -1 && errno == error;
	};
	EXPECT_TRUE(fails({part_of(good, 0, 10), part_of(good, 50, 51)}, EFAULT));
	EXPECT_TRUE(fails({part_of(good, 0, 10), {0, good.bytes.data(), 1}}, EBADF));
	EXPECT_TRUE(fails({part_of(good, 0, 10), {a, good.bytes.data(), 1}}, EBADF));
	EXPECT_TRUE(fails({part_of(good, 0, 10)}, EINVAL, EXS_PERSISTENT));
	EXPECT_TRUE(fails(std::vector<exs_part>(EXS_PARTS_MAX + 1, part_of(good, 0, 0)), EINVAL));
	const std::array to{part_of(good, 0, 10), part_of(send_only, 0, 10)};
	EXPECT_TRUE(exs_recvv(a, to.data(), 2, 0, queue, nullptr) == -1 && errno == EACCES);
	const std::array from{part_of(good, 0, 10), part_of(recv_only, 0, 10)};
	EXPECT_TRUE(exs_sendv(a, from.data(), 2, 0, queue, nullptr) == -1 && errno == EACCES);
	EXPECT_TRUE(exs_recvv(a, nullptr, 2, 0, queue, nullptr) == -1 && errno == EFAULT);
	EXPECT_TRUE(exs_recvv(a, to.data(), -1, 0, queue, nullptr) == -1 && errno == EINVAL);
	EXPECT_EQ(exs_mderegister(send_only.handle), 0);
	EXPECT_TRUE(exs_recvv(a, to.data(), 2, 0, queue, nullptr) == -1 && errno == EBADF);
	EXPECT_EQ(exs_mderegister(good.handle), 0);
}

TEST_F(Library, RevocationOfOnePartCancelsAReceiveIntoSeveral)
{
	connect();
	Memory one(100), other(100);
	const std::array to{part_of(one, 0, 100), part_of(other, 0, 100)};
	const auto receiving = exs_recvv(b, to.data(), 2, 0, queue, nullptr);
	EXPECT_EQ(exs_mderegister(one.handle), -1);
	EXPECT_EQ(errno, EBUSY);
	const auto revoking = exs_mrevoke(other.handle, queue, nullptr);
	EXPECT_EQ(wait(receiving).error, ECANCELED);
	EXPECT_EQ(wait(revoking).error, 0);
	EXPECT_EQ(exs_mderegister(one.handle), 0);
}

TEST_F(Library, EXS5_ASendCompletesWhenThePeerHasReceivedTheData)
{
	connect();
	Memory from(5000), to(5000);
	const auto sending = send(a, from);
	EXPECT_TRUE(waits(sending));
	recv(b, to);
	EXPECT_EQ(wait(sending).error, 0);
}

TEST_F(Library, EXS6_SendCreditsAreLimitedToThePeersRecvCredits)
{
	options = {{EXS_SEND_CREDITS, 9}, {EXS_RECV_CREDITS, 2}};
	connect();
	EXPECT_EQ(exs_fcntl(a, EXS_GET, EXS_SEND_CREDITS), 2);
	EXPECT_EQ(exs_fcntl(b, EXS_GET, EXS_SEND_CREDITS), 2);
	EXPECT_EQ(exs_fcntl(a, EXS_SET, EXS_SEND_CREDITS, 5), -1);
	EXPECT_EQ(errno, EISCONN);
	Memory from(5000), to(5000);
	std::vector<exs_op_t> ops;
	exs_pollfd out{.fd = a, .events = EXS_POLLOUT, .revents = 0};
	EXPECT_EQ(exs_poll(&out, 1, 0), 1);
	for (int i = 0; i < 5; i++)
		ops.push_back(send(a, from));
	EXPECT_EQ(exs_poll(&out, 1, 0), 0) << "no credit is left";
	for (int i = 0; i < 5; i++)
		ops.push_back(recv(b, to));
	for (const auto op : ops)
		EXPECT_EQ(wait(op).error, 0);
	EXPECT_EQ(exs_poll(&out, 1, patience), 1);
}

TEST_F(Library, EXS6_SocketOptionsOutsideOfTheirLimitsFail)
{
	const auto fd = exs_socket(AF_INET, SOCK_STREAM, 0);
	const std::array<std::array<unsigned, 3>, 14> limits{{{EXS_SEND_CREDITS, 1, 4096},
							      {EXS_RECV_CREDITS, 1, 4096},
							      {EXS_SMALL_MAX, 0, 1048576},
							      {EXS_IRD, 0, 255},
							      {EXS_ORD, 0, 255},
							      {EXS_CONNECT_MS, 1, 3600000},
							      {EXS_CLOSE_MS, 0, 3600000},
							      {EXS_TCP_PORT, 0, 65535},
							      {EXS_EXACT, 0, 1},
							      {EXS_SHARED, 0, 1},
							      {EXS_BACKLOG_WAIT, 0, 1},
							      {EXS_RESERVE, 0, 16777216},
							      {EXS_KEEPALIVE_MS, 0, 3600000},
							      {EXS_IDLE_MS, 0, 3600000}}};
	for (const auto &[option, least, most] : limits) {
		for (const unsigned good : {least, most}) {
			EXPECT_EQ(exs_fcntl(fd, EXS_SET, static_cast<int>(option), good), 0) << option;
			EXPECT_EQ(exs_fcntl(fd, EXS_GET, static_cast<int>(option)), static_cast<int>(good));
		}
		EXPECT_EQ(exs_fcntl(fd, EXS_SET, static_cast<int>(option), most + 1), -1);
		if (least != 0) {
			EXPECT_EQ(exs_fcntl(fd, EXS_SET, static_cast<int>(option), least - 1), -1);
		}
	}
	// all of it would be 8 GiB for each connection
	EXPECT_EQ(exs_fcntl(fd, EXS_SET, EXS_SMALL_MAX, 1048576), 0);
	const auto somewhere = loopback(1);
	EXPECT_EQ(exs_connect(fd, raw(somewhere), sizeof(somewhere), queue, nullptr), -1);
	EXPECT_EQ(errno, ENOBUFS);
}

TEST_F(Library, EXS7_TheSmallerSmallMaxOfBothEndsIsEffective)
{
	options = {{EXS_SMALL_MAX, 4000}};
	listen(SOCK_SEQPACKET);
	options[EXS_SMALL_MAX] = 300000;
	connect();
	EXPECT_EQ(exs_fcntl(a, EXS_GET, EXS_SMALL_MAX), 4000);
	EXPECT_EQ(exs_fcntl(b, EXS_GET, EXS_SMALL_MAX), 4000);
	for (const size_t size : {4000U, 4001U}) {
		for (const auto &[one, other] : {std::pair(a, b), std::pair(b, a)}) {
			Memory from(size), to(size);
			from.fill(9);
			const auto sending = send(one, from), receiving = recv(other, to);
			EXPECT_EQ(wait(sending).error, 0);
			EXPECT_EQ(wait(receiving).error, 0);
			EXPECT_EQ(from.bytes, to.bytes);
		}
	}
}

// ---- EXS-8 to EXS-12

TEST_F(Library, EXS8_ReceiversReadTheCurrentDataOfAPersistentSend)
{
	connect();
	Memory from(70000), to(70000);
	const auto publishing = send(a, from, EXS_PERSISTENT);
	for (uint8_t i = 1; i < 5; i++) {
		from.fill(i);
		EXPECT_EQ(wait(recv(b, to)).error, 0);
		EXPECT_EQ(to.bytes, from.bytes);
	}
	EXPECT_TRUE(waits(publishing));
	EXPECT_EQ(exs_cancel(a, publishing), 0);
	EXPECT_EQ(wait(publishing).error, ECANCELED);
	EXPECT_EQ(exs_cancel(a, publishing), -1);
	EXPECT_EQ(errno, ENOENT);
}

// How often three connections of a process register a table that all of them publish
TEST_F(Library, WithExsSharedConnectionsRegisterATableOnceUntilTheLastOneEnds)
{
	for (const unsigned shared : {0U, 1U}) {
		listener = 0;
		options[EXS_SHARED] = shared;
		Memory table(70000), to(70000);
		table.fill(static_cast<uint8_t>(shared));
		counted = table.bytes.data();
		registered = deregistered = 0;
		std::array<exs_fd_t, 3> publishers{}, readers{};
		std::array<exs_op_t, 3> sends{};
		for (size_t i = 0; i < 3; i++) {
			connect();
			publishers.at(i) = a;
			readers.at(i) = b;
			sends.at(i) = send(a, table, EXS_PERSISTENT);
			EXPECT_EQ(wait(recv(b, to)).error, 0);
			EXPECT_EQ(to.bytes, table.bytes);
		}
		EXPECT_EQ(exs_fcntl(a, EXS_GET, EXS_SHARED), rdma_address != nullptr && shared ? 1 : 0);
		if (rdma_address == nullptr)
			GTEST_SKIP() << "nothing is registered over TCP";
		EXPECT_EQ(registered, shared ? 1 : 3);
		// one is cancelled, one closed; the last one is still read, also after a child of fork() has ended
		EXPECT_EQ(exs_cancel(publishers[0], sends[0]), 0);
		EXPECT_EQ(wait(sends[0]).error, ECANCELED);
		wait(exs_close(publishers[1], queue, nullptr));
		EXPECT_EQ(wait(sends[1]).error, ECANCELED);
		EXPECT_EQ(in_child([] { return 42; }), 42);
		EXPECT_EQ(deregistered, shared ? 0 : 2);
		table.fill(77);
		EXPECT_EQ(wait(recv(readers[2], to)).error, 0);
		EXPECT_EQ(to.bytes, table.bytes);
		EXPECT_EQ(wait(exs_mrevoke(table.handle, queue, nullptr)).error, 0);
		EXPECT_EQ(wait(sends[2]).error, ECANCELED);
		EXPECT_EQ(deregistered, shared ? 1 : 3);
		EXPECT_TRUE(registrations.empty());
		counted = nullptr;
		table.handle = exs_mregister(table.bytes.data(), table.bytes.size(), EXS_MEM_SEND);
	}
}

TEST_F(Library, EXS9_PersistentSendWithNotifyGetsOneEventForEachRead)
{
	connect();
	Memory from(7000), to(7000);
	const auto publishing = send(a, from, EXS_PERSISTENT | EXS_NOTIFY);
	for (int i = 0; i < 4; i++) {
		recv(b, to);
		const auto note = wait(publishing, EXS_EVENT_NOTE);
		EXPECT_EQ(note.count, 1U);
		EXPECT_EQ(note.error, 0);
	}
	EXPECT_TRUE(waits(publishing));
	EXPECT_EQ(send(a, from, EXS_NOTIFY), -1);
	EXPECT_EQ(errno, EINVAL);
}

TEST_F(Library, EXS9_CountsOfMergedReadNotificationsAddUpToAllReads)
{
	connect();
	Memory from(2000), to(2000);
	const auto own = exs_qcreate();
	exs_send(a, from.handle, from.bytes.data(), 2000, EXS_PERSISTENT | EXS_NOTIFY, own, nullptr);
	for (int i = 0; i < 50; i++)
		EXPECT_EQ(wait(recv(b, to)).error, 0);
	uint32_t notes = 0;
	exs_event event{};
	while (notes < 50 && exs_qdequeue(own, &event, 1, patience) == 1)
		notes += event.count;
	EXPECT_EQ(notes, 50U);
}

TEST_F(Library, EXS10_SendsAreWrittenIntoThePeersPersistentRecv)
{
	connect();
	Memory from(7000), to(9000);
	const auto published = recv(b, to, EXS_PERSISTENT);
	for (uint8_t i = 1; i < 5; i++) {
		from.fill(i);
		EXPECT_EQ(wait(send(a, from)).error, 0);
	}
	// what has been written is there when a later message is
	Memory word(1), answer(1);
	send(a, from);
	const auto back = recv(a, answer);
	send(b, word);
	EXPECT_EQ(wait(back).error, 0);
	EXPECT_EQ(exs_cancel(b, published), 0);
	EXPECT_EQ(wait(published).error, ECANCELED);
	EXPECT_TRUE(std::equal(from.bytes.begin(), from.bytes.end(), to.bytes.begin()));
	EXPECT_EQ(to.bytes[7000], 0);
}

TEST_F(Library, EXS11_PersistentRecvFromAPersistentSendFailsWithEinval)
{
	connect();
	Memory from(70), to(70);
	const auto publishing = send(a, from, EXS_PERSISTENT), taking = recv(b, to, EXS_PERSISTENT);
	if (taking > 0) {
		EXPECT_EQ(wait(taking).error, EINVAL);
	} else {
		EXPECT_EQ(errno, EINVAL);
	}
	exs_cancel(a, publishing);
	const int error = wait(publishing).error;
	EXPECT_TRUE(error == EINVAL || error == ECANCELED) << error;
}

TEST_F(Library, EXS12_OffsetsSelectAPartOfAPersistentSendOrRecvOrFailWithErange)
{
	connect();
	Memory all(10000), part(2500);
	all.fill(1);
	send(a, all, EXS_PERSISTENT);
	const auto at = [&](uint64_t offset) {
		return wait(exs_recv_offset(b, part.handle, part.bytes.data(), 2500, 0, queue, nullptr, offset)).error;
	};
	EXPECT_EQ(at(7500), 0);
	EXPECT_TRUE(std::equal(part.bytes.begin(), part.bytes.end(), all.bytes.begin() + 7500));
	EXPECT_EQ(at(7501), ERANGE);
	EXPECT_EQ(at(UINT64_MAX), ERANGE);
	Memory target(10000);
	recv(a, target, EXS_PERSISTENT);
	const auto into = [&](uint64_t offset) {
		return wait(exs_send_offset(b, part.handle, part.bytes.data(), 2500, 0, queue, nullptr, offset)).error;
	};
	EXPECT_EQ(into(5000), 0);
	EXPECT_EQ(into(7501), ERANGE);
	EXPECT_EQ(into(UINT64_MAX - 1), ERANGE);
	EXPECT_EQ(at(0), 0); // behind which the write is in its place
	EXPECT_EQ(target.bytes[4999], 0);
	EXPECT_EQ(target.bytes[5000], all.bytes[7500]);
}

// ---- EXS-1, EXS-13

TEST_F(Library, EXS1_SendfileSendsAPartOfAFile)
{
	connect(SOCK_STREAM);
	char name[] = "/tmp/exs-test-XXXXXX";
	const int file = mkstemp(name);
	unlink(name);
	Memory content(300000), to(200000);
	content.fill(5);
	ASSERT_EQ(write(file, content.bytes.data(), content.bytes.size()), 300000);
	const auto sending = exs_sendfile(a, file, 12345, 200000, queue, nullptr);
	const auto receiving = recv(b, to, EXS_WAITALL);
	EXPECT_EQ(wait(receiving).length, 200000U);
	EXPECT_EQ(wait(sending).length, 200000U);
	EXPECT_TRUE(std::equal(to.bytes.begin(), to.bytes.end(), content.bytes.begin() + 12345));
	const auto fails = [&](uint64_t offset, size_t length, int error) {
		return exs_sendfile(a, file, offset, length, queue, nullptr) == -1 && errno == error;
	};
	EXPECT_TRUE(fails(0, 300001, EINVAL));
	EXPECT_TRUE(fails(300000, 1, EINVAL));
	EXPECT_TRUE(fails(UINT64_MAX, 2, EINVAL));
	EXPECT_TRUE(fails(0, 0, EINVAL));
	close(file);
	EXPECT_TRUE(fails(0, 1, EBADF));
}

TEST_F(Library, EXS1_PollReportsReadyHandles)
{
	listen(SOCK_SEQPACKET);
	exs_pollfd fds[2] = {{.fd = listener, .events = EXS_POLLIN, .revents = 0}, {.fd = 12345, .events = 0, .revents = 0}};
	EXPECT_EQ(exs_poll(fds, 1, 0), 0);
	EXPECT_EQ(exs_poll(fds, 2, patience), 1);
	EXPECT_EQ(fds[1].revents, EXS_POLLNVAL);
	a = exs_socket(AF_INET, SOCK_SEQPACKET, 0);
	EXPECT_EQ(wait(exs_connect(a, raw(address), sizeof(address), queue, nullptr)).error, 0);
	EXPECT_EQ(exs_poll(fds, 1, patience), 1);
	b = wait(exs_accept(listener, queue, nullptr)).accepted;
	fds[0] = {.fd = b, .events = EXS_POLLIN | EXS_POLLOUT, .revents = 0};
	EXPECT_EQ(exs_poll(fds, 1, patience), 1);
	EXPECT_EQ(fds[0].revents, EXS_POLLOUT);
	fds[0].events = EXS_POLLIN;
	Memory from(10);
	std::thread later([&] {
		wait_asleep(::getpid());
		send(a, from);
	});
	EXPECT_EQ(exs_poll(fds, 1, patience), 1);
	later.join();
	exs_close(a, 0, nullptr);
	fds[0].events = 0;
	EXPECT_EQ(exs_poll(fds, 1, patience), 1);
	EXPECT_EQ(fds[0].revents, EXS_POLLHUP);
}

// Each change of a socket is written into the descriptors of those who wait
TEST_F(Library, ACancelledThreadInPollLeavesNoDescriptorToWriteTo)
{
	connect();
	std::atomic<pid_t> thread = 0;
	std::thread waiter([&] {
		exs_pollfd never{.fd = b, .events = EXS_POLLIN, .revents = 0};
		thread = ::gettid();
		exs_poll(&never, 1, -1);
	});
	while (thread == 0)
		std::this_thread::yield();
	wait_asleep(thread);
	::pthread_cancel(waiter.native_handle());
	waiter.join();
	std::vector<int> others; // one of them has the number
	for (int i = 0; i < 16; i++)
		others.push_back(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
	Memory from(10), to(10);
	const auto receiving = recv(b, to);
	wait(send(a, from));
	wait(receiving);
	for (const int other : others) {
		eventfd_t written = 0;
		EXPECT_EQ(::eventfd_read(other, &written), -1) << written << " was written";
		::close(other);
	}
}

TEST_F(Library, QpollQueuesOneEventWhenASocketBecomesReady)
{
	listen(SOCK_SEQPACKET);
	const auto ready = [&](exs_op_t op) {
		const auto event = wait(op);
		EXPECT_EQ(event.type, EXS_EVENT_POLL);
		EXPECT_EQ(event.error, 0);
		return event.flags;
	};
	const auto acceptable = exs_qpoll(listener, EXS_POLLIN, queue, nullptr);
	EXPECT_TRUE(waits(acceptable));
	a = exs_socket(AF_INET, SOCK_SEQPACKET, 0);
	const auto connected = exs_qpoll(a, EXS_POLLOUT, queue, nullptr);
	EXPECT_EQ(wait(exs_connect(a, raw(address), sizeof(address), queue, nullptr)).error, 0);
	EXPECT_EQ(ready(connected), static_cast<uint32_t>(EXS_POLLOUT));
	EXPECT_EQ(ready(acceptable), static_cast<uint32_t>(EXS_POLLIN));
	b = wait(exs_accept(listener, queue, nullptr)).accepted;
	const auto readable = exs_qpoll(b, EXS_POLLIN, queue, nullptr), hung_up = exs_qpoll(b, 0, queue, nullptr);
	EXPECT_EQ(ready(exs_qpoll(b, EXS_POLLIN | EXS_POLLOUT, queue, nullptr)), static_cast<uint32_t>(EXS_POLLOUT));
	EXPECT_TRUE(waits(readable));
	Memory from(10), to(10);
	send(a, from);
	EXPECT_EQ(ready(readable), static_cast<uint32_t>(EXS_POLLIN));
	wait(recv(b, to));
	const auto cancelled = exs_qpoll(b, EXS_POLLIN, queue, nullptr), closed = exs_qpoll(a, EXS_POLLIN, queue, nullptr);
	EXPECT_EQ(exs_cancel(b, cancelled), 0);
	EXPECT_EQ(wait(cancelled).error, ECANCELED);
	EXPECT_EQ(exs_cancel(b, cancelled), -1);
	EXPECT_EQ(errno, ENOENT);
	exs_close(a, queue, nullptr);
	EXPECT_EQ(wait(closed).error, ECANCELED);
	EXPECT_EQ(ready(hung_up) & EXS_POLLHUP, static_cast<uint32_t>(EXS_POLLHUP));
	EXPECT_EQ(exs_qpoll(b, 64, queue, nullptr), -1);
	EXPECT_EQ(errno, EINVAL);
}

TEST_F(Library, TheTimeOfAMessageDoesNotGrowWithPostedReceivesAndPolls)
{
	if (rdma_address != nullptr)
		GTEST_SKIP() << "it takes long in a virtual machine";
	connect();
	Memory from(10), to(10);
	std::deque<exs_op_t> receives;
	const auto transfer = [&] {
		receives.push_back(recv(b, to));
		const auto sending = send(a, from);
		EXPECT_EQ(wait(receives.front()).error, 0);
		EXPECT_EQ(wait(sending).error, 0);
		receives.pop_front();
	};
	const auto post = [&](int count) {
		for (int i = 0; i < count; i++)
			receives.push_back(recv(b, to));
		for (int i = 0; i < count; i++)
			EXPECT_GT(exs_qpoll(b, EXS_POLLIN, queue, nullptr), 0);
	};
	expect_constant_cost(100, post, transfer);
}

TEST_F(Library, TheTimeOfARevocationDoesNotGrowWithOtherPostedReceives)
{
	if (rdma_address != nullptr)
		GTEST_SKIP() << "it takes long in a virtual machine";
	connect();
	Memory other(10);
	const auto post = [&](int count) {
		for (int i = 0; i < count; i++)
			EXPECT_GT(recv(b, other), 0);
	};
	const auto revoke = [&] {
		Memory to(10);
		const auto receiving = recv(b, to);
		const auto revoking = exs_mrevoke(to.handle, queue, nullptr);
		EXPECT_EQ(wait(receiving).error, ECANCELED);
		EXPECT_EQ(wait(revoking).error, 0);
	};
	expect_constant_cost(100, post, revoke);
}

TEST_F(Library, EXS13_StreamsDeliverAllDataThenEndOfFile)
{
	connect(SOCK_STREAM);
	Memory from(100000), to(300000);
	from.fill(1);
	for (int i = 0; i < 3; i++)
		send(a, from);
	EXPECT_EQ(exs_shutdown(a), 0);
	size_t got = 0;
	for (;;) {
		const auto event = wait(exs_recv(b, to.handle, to.bytes.data() + got, to.bytes.size() - got, 0, queue, nullptr));
		EXPECT_EQ(event.error, 0);
		got += event.length;
		if ((event.flags & EXS_EOF) != 0 || got == to.bytes.size())
			break;
	}
	EXPECT_EQ(got, 300000U);
	for (int i = 0; i < 3; i++)
		EXPECT_TRUE(std::equal(from.bytes.begin(), from.bytes.end(), to.bytes.begin() + i * 100000));
	const auto last = wait(recv(b, to));
	EXPECT_EQ(last.error, 0);
	EXPECT_EQ(last.flags, static_cast<uint32_t>(EXS_EOF));
}

TEST_F(Library, EXS13_ConnectWithASocketTypeOtherThanTheListenersFailsWithEprototype)
{
	listen(SOCK_SEQPACKET);
	a = exs_socket(AF_INET, SOCK_STREAM, 0);
	EXPECT_EQ(wait(exs_connect(a, raw(address), sizeof(address), queue, nullptr)).error, EPROTOTYPE);
	exs_pollfd failed{.fd = a, .events = 0, .revents = 0};
	EXPECT_EQ(exs_poll(&failed, 1, 0), 1);
	EXPECT_EQ(failed.revents, EXS_POLLERR | EXS_POLLHUP);
}

// ---- lifetimes

// As the kernel does beyond fs.epoll.max_user_watches
TEST_F(Library, ConnectFailsWithEnospcIfTheSocketCannotBePolled)
{
	listen(SOCK_SEQPACKET);
	refuses_watches = true;
	a = exs_socket(AF_INET, SOCK_SEQPACKET, EXS_PROTO_ANY);
	const auto connecting = exs_connect(a, raw(address), sizeof(address), queue, nullptr);
	const int error = wait(connecting).error;
	refuses_watches = false;
	EXPECT_EQ(error, ENOSPC);
	wait(exs_close(a, queue, nullptr));
	connect();
}

// In the progress thread, which has to go on
TEST_F(Library, AnAcceptedConnectionThatCannotBePolledIsDroppedAndALaterOneSucceeds)
{
	if (rdma_address != nullptr)
		GTEST_SKIP() << "the peer is one of TCP";
	listen(SOCK_SEQPACKET);
	const auto accepting = exs_accept(listener, queue, nullptr);
	refuses_watches = true;
	const auto start = std::chrono::steady_clock::now();
	{
		const RawClient client(address);
		EXPECT_TRUE(client.is_dropped());
	}
	EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5)); // not the 10 s of a set-up
	refuses_watches = false;
	const RawClient client(address);
	EXPECT_EQ(wait(accepting).error, 0);
}

TEST_F(Library, WithBacklogWaitConnectsBeyondTheBacklogSucceedWhenOthersAreAccepted)
{
	options[EXS_BACKLOG_WAIT] = 1;
	constexpr size_t backlog = 4;
	listen(SOCK_STREAM, backlog);
	std::vector<exs_op_t> connecting;
	const auto connect_one = [&] {
		const auto fd = exs_socket(AF_INET, SOCK_STREAM, EXS_PROTO_ANY);
		connecting.push_back(exs_connect(fd, raw(address), sizeof(address), queue, nullptr));
	};
	for (size_t i = 0; i < backlog; i++) {
		connect_one();
		EXPECT_EQ(wait(connecting.back()).error, 0);
	}
	// Not at once: a client may be connected before the listener has counted it. A slow host needs 200 ms for a connection.
	do
		connect_one();
	while (!waits(connecting.back(), 1000) && connecting.size() < 10 * backlog);
	EXPECT_TRUE(waits(connecting.back()));
	connect_one();
	connect_one();
	for (size_t i = 0; i < connecting.size(); i++)
		EXPECT_EQ(wait(exs_accept(listener, queue, nullptr)).error, 0);
	for (size_t i = backlog; i < connecting.size(); i++)
		EXPECT_EQ(wait(connecting[i]).error, 0);
}

TEST_F(Library, ConnectWithoutAListenerFailsWithEconnrefused)
{
	listen(SOCK_STREAM);
	wait(exs_close(listener, queue, nullptr));
	a = exs_socket(AF_INET, SOCK_STREAM, 0);
	EXPECT_EQ(wait(exs_connect(a, raw(address), sizeof(address), queue, nullptr)).error, ECONNREFUSED);
	EXPECT_EQ(exs_connect(a, raw(address), sizeof(address), queue, nullptr), -1);
}

// TCP connects a socket to itself then, by chance also without the bind
TEST_F(Library, ConnectOfASocketToItsOwnAddressFailsWithEconnrefused)
{
	listen(SOCK_STREAM);
	wait(exs_close(listener, queue, nullptr));
	a = exs_socket(AF_INET, SOCK_STREAM, EXS_PROTO_TCP);
	ASSERT_EQ(exs_bind(a, raw(address), sizeof(address)), 0);
	EXPECT_EQ(wait(exs_connect(a, raw(address), sizeof(address), queue, nullptr)).error, ECONNREFUSED);
}

TEST_F(Library, ConnectWithoutAnAnswerTimesOutOrEndsByCloseOrCancel)
{
	// a plain listener, which says nothing
	const int plain = ::socket(AF_INET, SOCK_STREAM, 0);
	auto any = loopback();
	ASSERT_EQ(::bind(plain, raw(any), sizeof(any)), 0);
	ASSERT_EQ(::listen(plain, 1), 0);
	socklen_t length = sizeof(any);
	::getsockname(plain, reinterpret_cast<sockaddr *>(&any), &length);
	a = exs_socket(AF_INET, SOCK_STREAM, 0);
	set(a, EXS_CONNECT_MS, 50);
	EXPECT_EQ(wait(exs_connect(a, raw(any), sizeof(any), queue, nullptr)).error, ETIMEDOUT);
	const auto other = exs_socket(AF_INET, SOCK_STREAM, 0);
	const auto connecting = exs_connect(other, raw(any), sizeof(any), queue, nullptr);
	const auto closing = exs_close(other, queue, nullptr);
	EXPECT_EQ(wait(connecting).error, ECANCELED);
	EXPECT_EQ(wait(closing).error, 0);
	const auto third = exs_socket(AF_INET, SOCK_STREAM, 0);
	const auto canceled = exs_connect(third, raw(any), sizeof(any), queue, nullptr);
	EXPECT_EQ(exs_cancel(third, canceled), 0);
	EXPECT_EQ(wait(canceled).error, ECANCELED);
	::close(plain);
}

// Although the peer has got all that was sent
TEST_F(Library, ThePeerOfACloseWithoutTimeGetsEconnresetAndNoEndOfFile)
{
	connect(SOCK_STREAM);
	Memory from(10), to(10);
	const auto arriving = recv(b, to);
	EXPECT_EQ(wait(send(a, from)).error, 0);
	EXPECT_EQ(wait(arriving).error, 0);
	const auto own = recv(a, to), other = recv(b, to);
	set(a, EXS_CLOSE_MS, 0);
	wait(exs_close(a, queue, nullptr));
	EXPECT_EQ(wait(own).error, ECANCELED);
	EXPECT_EQ(wait(other).error, ECONNRESET);
}

TEST_F(Library, CloseCompletesEachOperationOnceBeforeTheCloseEvent)
{
	connect();
	Memory memory(100000);
	std::map<exs_op_t, int> seen;
	for (int i = 0; i < 40; i++) {
		seen[send(a, memory)] = 0;
		seen[recv(a, memory)] = 0;
	}
	recv(b, memory);
	const auto closing = exs_close(a, queue, nullptr);
	EXPECT_EQ(exs_send(a, memory.handle, memory.bytes.data(), 1, 0, queue, nullptr), -1);
	EXPECT_EQ(errno, EBADF);
	exs_event event{};
	do {
		ASSERT_EQ(exs_qdequeue(queue, &event, 1, patience), 1);
		if (seen.contains(event.op)) {
			seen[event.op]++;
		}
	} while (event.op != closing);
	for (const auto &[op, times] : seen)
		EXPECT_EQ(times, 1) << op;
	EXPECT_TRUE(waits(closing)); // all that is still to come is in events then
	for (const exs_event &late : events)
		EXPECT_FALSE(seen.contains(late.op)) << "another event of " << late.op;
	EXPECT_EQ(wait(recv(b, memory)).error & ~ECONNRESET, 0);
	EXPECT_EQ(send(b, memory), -1);
	EXPECT_EQ(errno, EPIPE);
}

// A call that has found the socket while another thread closes it
TEST_F(Library, NoReceiveEventFollowsTheCloseEventIfAThreadReceivesDuringClose)
{
	Memory memory(64);
	for (int i = 0; i < 100 && !HasFailure(); i++) {
		connect();
		std::atomic<size_t> begun = 0;
		std::map<exs_op_t, int> seen;
		int error = 0;
		std::thread receiver([&] {
			exs_op_t op = 0;
			while ((op = recv(b, memory)) > 0) {
				seen[op] = 0;
				begun++;
			}
			error = errno;
		});
		while (begun < 3)
			std::this_thread::yield();
		exs_close(a, queue, nullptr); // so that the other one does not take long
		const auto closing = exs_close(b, queue, nullptr);
		receiver.join();
		EXPECT_EQ(error, EBADF);
		for (bool closed = false; !closed;) {
			exs_event event{};
			ASSERT_EQ(exs_qdequeue(queue, &event, 1, patience), 1);
			if (seen.contains(event.op))
				seen[event.op]++;
			closed = event.op == closing;
		}
		for (const auto &[op, times] : seen)
			EXPECT_EQ(times, 1) << "receive " << op << " in round " << i;
		events.clear();
		exs_event event{};
		while (exs_qdequeue(queue, &event, 1, 0) == 1)
			EXPECT_FALSE(seen.contains(event.op));
	}
}

TEST_F(Library, CloseOfAListenerCancelsAcceptsAndResetsUnacceptedConnections)
{
	listen(SOCK_STREAM);
	a = exs_socket(AF_INET, SOCK_STREAM, 0);
	EXPECT_EQ(wait(exs_connect(a, raw(address), sizeof(address), queue, nullptr)).error, 0);
	Memory to(10);
	const auto receiving = recv(a, to);
	const auto other = exs_socket(AF_INET, SOCK_STREAM, 0);
	ASSERT_EQ(exs_bind(other, raw(loopback()), sizeof(sockaddr_in)), 0);
	ASSERT_EQ(exs_listen(other, 1), 0);
	const auto accepting = exs_accept(other, queue, nullptr), given_up = exs_accept(other, queue, nullptr);
	EXPECT_EQ(exs_cancel(other, given_up), 0);
	EXPECT_EQ(wait(given_up).error, ECANCELED);
	wait(exs_close(other, queue, nullptr));
	EXPECT_EQ(wait(accepting).error, ECANCELED);
	wait(exs_close(listener, queue, nullptr)); // nobody has accepted a
	EXPECT_EQ(wait(receiving).error, ECONNRESET);
}

TEST_F(Library, ListenWithProtoAnyFailsWithEaddrinuseIfThePortForTcpIsTaken)
{
	const int taken = ::socket(AF_INET, SOCK_STREAM, 0);
	auto any = loopback();
	ASSERT_EQ(::bind(taken, raw(any), sizeof(any)), 0);
	ASSERT_EQ(::listen(taken, 1), 0);
	sockaddr_in name{};
	socklen_t length = sizeof(name);
	::getsockname(taken, reinterpret_cast<sockaddr *>(&name), &length);
	listener = exs_socket(AF_INET, SOCK_SEQPACKET, EXS_PROTO_ANY);
	ASSERT_EQ(exs_bind(listener, raw(any), sizeof(any)), 0);
	set(listener, EXS_TCP_PORT, ntohs(name.sin_port));
	EXPECT_EQ(exs_listen(listener, 10), -1);
	EXPECT_EQ(errno, EADDRINUSE);
	set(listener, EXS_TCP_PORT, 0); // it is as before
	EXPECT_EQ(exs_listen(listener, 10), 0) << strerror(errno);
	EXPECT_NE(exs_fcntl(listener, EXS_GET, EXS_TCP_PORT), ntohs(name.sin_port));
	::close(taken);
}

// rdma_cm has EADDRNOTAVAIL also for a port that another address has, of all that include this one
TEST_F(Library, ListenWithProtoAnyFailsIfRdmaFailsForAnotherReasonThanAMissingDevice)
{
	if (rdma_address != nullptr)
		GTEST_SKIP() << "there is a device";
	struct Case {
		int error, error_of_port_0, expected;
	};
	uint16_t port = 0;
	for (const auto &[error, error_of_port_0, expected] : {Case{ENOMEM, ENOMEM, ENOMEM}, Case{EACCES, 0, EACCES},
							      Case{EADDRINUSE, 0, EADDRINUSE}, Case{EADDRNOTAVAIL, 0, EADDRINUSE},
							      Case{EADDRNOTAVAIL, EADDRNOTAVAIL, 0}, Case{ENODEV, ENODEV, 0}}) {
		bind_answer = [error = error, error_of_port_0 = error_of_port_0](uint16_t bound) { return bound != 0 ? error : error_of_port_0; };
		sockaddr_in any = loopback(port);
		any.sin_addr.s_addr = INADDR_ANY;
		if (port == 0) { // one that is free
			const int chosen = ::socket(AF_INET, SOCK_STREAM, 0);
			ASSERT_EQ(::bind(chosen, raw(any), sizeof(any)), 0);
			socklen_t length = sizeof(any);
			::getsockname(chosen, reinterpret_cast<sockaddr *>(&any), &length);
			port = ntohs(any.sin_port);
			::close(chosen);
		}
		const auto fd = exs_socket(AF_INET, SOCK_SEQPACKET, EXS_PROTO_ANY);
		ASSERT_EQ(exs_bind(fd, raw(any), sizeof(any)), 0);
		EXPECT_EQ(exs_listen(fd, 10) == 0 ? 0 : errno, expected) << strerror(error);
		wait(exs_close(fd, queue, nullptr));
	}
	bind_answer = nullptr;
}

// As the kernel's TCP
TEST_F(Library, AListenerAtTheIpv6WildcardAcceptsIpv4ClientsUnlessExsV6onlyIsSet)
{
	if (rdma_address != nullptr)
		GTEST_SKIP() << "it has no device";
	for (const unsigned only : {0U, 1U}) {
		const auto listening = exs_socket(AF_INET6, SOCK_SEQPACKET, EXS_PROTO_TCP);
		set(listening, EXS_V6ONLY, only);
		sockaddr_in6 v6{};
		v6.sin6_family = AF_INET6;
		socklen_t length = sizeof(v6);
		ASSERT_EQ(exs_bind(listening, reinterpret_cast<const sockaddr *>(&v6), length), 0);
		ASSERT_EQ(exs_listen(listening, 10), 0) << strerror(errno);
		exs_getsockname(listening, reinterpret_cast<sockaddr *>(&v6), &length);
		v6.sin6_addr = in6addr_loopback;
		const sockaddr_in v4 = loopback(ntohs(v6.sin6_port));
		const auto client6 = exs_socket(AF_INET6, SOCK_SEQPACKET, EXS_PROTO_TCP);
		EXPECT_EQ(wait(exs_connect(client6, reinterpret_cast<const sockaddr *>(&v6), sizeof(v6), queue, nullptr)).error, 0);
		EXPECT_EQ(wait(exs_accept(listening, queue, nullptr)).error, 0);
		const auto client4 = exs_socket(AF_INET, SOCK_SEQPACKET, EXS_PROTO_TCP);
		const int error = wait(exs_connect(client4, raw(v4), sizeof(v4), queue, nullptr)).error;
		EXPECT_EQ(error, only != 0 ? ECONNREFUSED : 0) << "IPv4, EXS_V6ONLY " << only;
		if (error != 0)
			continue;
		sockaddr_in6 peer{};
		length = sizeof(peer);
		exs_getpeername(wait(exs_accept(listening, queue, nullptr)).accepted, reinterpret_cast<sockaddr *>(&peer), &length);
		EXPECT_TRUE(IN6_IS_ADDR_V4MAPPED(&peer.sin6_addr));
	}
	for (const unsigned only : {1U, 0U}) { // rdma_cm's own default is the one of the host
		bind_answer = [](uint16_t) { return ENODEV; };
		const auto listening = exs_socket(AF_INET6, SOCK_SEQPACKET, EXS_PROTO_RDMA);
		set(listening, EXS_V6ONLY, only);
		const sockaddr_in6 any{.sin6_family = AF_INET6, .sin6_port = 0, .sin6_flowinfo = 0, .sin6_addr = {}, .sin6_scope_id = 0};
		ASSERT_EQ(exs_bind(listening, reinterpret_cast<const sockaddr *>(&any), sizeof(any)), 0);
		EXPECT_EQ(exs_listen(listening, 10), -1);
		EXPECT_EQ(afonly, static_cast<int>(only));
	}
	bind_answer = nullptr;
}

TEST_F(Library, ConnectBeyondTheBacklogOfAListenerFails)
{
	listener = exs_socket(AF_INET, SOCK_STREAM, 0);
	ASSERT_EQ(exs_bind(listener, raw(loopback()), sizeof(sockaddr_in)), 0);
	ASSERT_EQ(exs_listen(listener, 2), 0);
	socklen_t length = sizeof(address);
	exs_getsockname(listener, reinterpret_cast<sockaddr *>(&address), &length);
	for (int i = 0; i < 3; i++) {
		const auto fd = exs_socket(AF_INET, SOCK_STREAM, 0);
		const int error = wait(exs_connect(fd, raw(address), sizeof(address), queue, nullptr)).error;
		// the responder is open by the next message only
		exs_pollfd ready{.fd = listener, .events = EXS_POLLIN, .revents = 0};
		exs_poll(&ready, 1, patience);
		usleep(20000);
		EXPECT_EQ(error != 0, i == 2) << error;
	}
	EXPECT_EQ(wait(exs_accept(listener, queue, nullptr)).error, 0);
	EXPECT_EQ(wait(exs_accept(listener, queue, nullptr)).error, 0);
	EXPECT_TRUE(waits(exs_accept(listener, queue, nullptr)));
}

TEST_F(Library, AnIdleConnectionEndsWithEtimedoutAfterExsIdleMs)
{
	listen(SOCK_SEQPACKET);
	const int idle = 400 * slowness; // ms
	options[EXS_IDLE_MS] = idle;
	connect();
	Memory to(10), from(10), large(5000);
	auto receiving = recv(a, large);
	for (int i = 0; i < 12; i++) { // not idle for three times as long
		EXPECT_TRUE(waits(receiving, idle / 4));
		wait(send(b, from));
		EXPECT_EQ(wait(receiving).error, 0);
		receiving = recv(a, to);
	}
	wait(send(b, from));
	EXPECT_EQ(wait(receiving).error, 0);
	const auto start = std::chrono::steady_clock::now();
	const auto last = recv(a, large);
	EXPECT_EQ(wait(last).error, ETIMEDOUT);
	EXPECT_GT(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(idle / 2));
	EXPECT_EQ(send(a, from), -1);
	EXPECT_EQ(errno, ETIMEDOUT);
}

// To a probe the kernel answers as to octets of the set-up
TEST_F(Library, WithKeepaliveASilentConnectionEndsAfterTheFirstExsIdleMs)
{
	if (rdma_address != nullptr)
		GTEST_SKIP() << "over RDMA no acknowledgement counts";
	const std::map<int, unsigned> probed{{EXS_KEEPALIVE_MS, 1000}, {EXS_IDLE_MS, 3900}};
	Memory to(10);
	std::vector<exs_op_t> receives;
	const auto start = std::chrono::steady_clock::now();
	for (const bool initiator : {false, true}) {
		options = initiator ? std::map<int, unsigned>() : probed;
		listen(SOCK_SEQPACKET);
		options = initiator ? probed : std::map<int, unsigned>();
		connect();
		receives.push_back(recv(initiator ? a : b, to));
	}
	for (const exs_op_t receiving : receives) {
		EXPECT_EQ(wait(receiving).error, ETIMEDOUT);
		EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(6500)); // the third probe is after 3 s
	}
}

// By the device or by the kernel
TEST_F(Library, ASilentConnectionWithKeepaliveStaysOpenIfThePeersHostAnswers)
{
	options[EXS_KEEPALIVE_MS] = 150;
	connect();
	EXPECT_EQ(exs_fcntl(a, EXS_GET, EXS_KEEPALIVE_MS), 150);
	Memory to(5000), from(5000);
	from.fill(7);
	const auto receiving = recv(b, to);
	usleep(1500000);
	EXPECT_TRUE(waits(receiving));
	const auto sending = send(a, from);
	EXPECT_EQ(wait(receiving).error, 0);
	EXPECT_EQ(wait(sending).error, 0);
	EXPECT_EQ(to.bytes, from.bytes);
}

TEST_F(Library, KeepaliveOverRdmaNeedsReads)
{
	if (rdma_address == nullptr)
		GTEST_SKIP() << "over TCP the kernel probes";
	options = {{EXS_KEEPALIVE_MS, 150}, {EXS_ORD, 0}};
	connect();
	EXPECT_EQ(exs_fcntl(a, EXS_GET, EXS_KEEPALIVE_MS), 0);
}

size_t resident()
{
	std::ifstream statm("/proc/self/statm");
	size_t all = 0, here = 0;
	statm >> all >> here;
	return here * static_cast<size_t>(::sysconf(_SC_PAGESIZE));
}

// A peer that only connects does not get the memory of a connection
TEST_F(Library, ConnectionsOfPeersThatSendNothingTakeNoReceiveMemory)
{
	if (rdma_address != nullptr)
		GTEST_SKIP() << "a device pins it";
	options = {{EXS_RECV_CREDITS, 700}, {EXS_SMALL_MAX, 60000}}; // 43 MB
	listen(SOCK_SEQPACKET);
	const size_t before = resident();
	std::vector<std::unique_ptr<RawClient>> clients;
	for (int i = 0; i < 10; i++) {
		const auto accepting = exs_accept(listener, queue, nullptr);
		clients.push_back(std::make_unique<RawClient>(address));
		EXPECT_EQ(wait(accepting).error, 0);
	}
	EXPECT_LT(resident(), before + 40000000);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_F(Library, ConnectionsThatHaveEndedKeepNoReceiveMemoryBeforeTheyAreClosed)
{
	if (rdma_address != nullptr)
		GTEST_SKIP() << "over RDMA none of it is the heap's";
	constexpr size_t connections = 20, octets = 65536; // of what TCP had received in advance
	options = {{EXS_RECV_CREDITS, 1}, {EXS_SEND_CREDITS, 1}, {EXS_SMALL_MAX, 0}};
	std::vector<exs_fd_t> ended;
	size_t before = 0;
	for (size_t i = 0; i <= connections; i++) {
		connect();
		Memory to(10);
		const auto receiving = recv(b, to);
		wait(exs_close(a, queue, nullptr));
		wait(receiving);
		exs_pollfd gone{.fd = b, .events = 0, .revents = 0};
		ASSERT_EQ(exs_poll(&gone, 1, patience), 1);
		ended.push_back(b);
		if (i == 0)
			before = mallinfo2().uordblks;
	}
	EXPECT_LT(mallinfo2().uordblks, before + connections * octets / 2);
}

TEST_F(Library, AConnectionIsDroppedWhileMemoryIsExhaustedAndALaterOneSucceeds)
{
	if (rdma_address != nullptr)
		GTEST_SKIP() << "what a device wants of memory cannot be told";
	options = {{EXS_RECV_CREDITS, 2000}, {EXS_SMALL_MAX, 60000}}; // 121 MB
	listen(SOCK_SEQPACKET);
	rlimit before{};
	ASSERT_EQ(::getrlimit(RLIMIT_AS, &before), 0);
	rlimit scarce = before;
	size_t pages = 0;
	std::ifstream("/proc/self/statm") >> pages;
	scarce.rlim_cur = pages * static_cast<size_t>(::sysconf(_SC_PAGESIZE)) + 60000000;
	ASSERT_EQ(::setrlimit(RLIMIT_AS, &scarce), 0);
	{
		const RawClient client(address);
		EXPECT_TRUE(client.is_dropped());
	}
	ASSERT_EQ(::setrlimit(RLIMIT_AS, &before), 0);
	const auto accepting = exs_accept(listener, queue, nullptr);
	const RawClient client(address);
	EXPECT_EQ(wait(accepting).error, 0);
}
#endif

// A peer that wants answers and does not read them must not have our memory for them
TEST_F(Library, APeerThatDoesNotReadAnswersIsDisconnected)
{
	if (rdma_address != nullptr)
		GTEST_SKIP() << "tests/exs.sh has it";
	listen(SOCK_SEQPACKET);
	const auto accepting = exs_accept(listener, queue, nullptr);
	const RawClient client(address);
	b = wait(accepting).accepted;
	Memory memory(100);
	const auto sending = send(b, memory, EXS_PERSISTENT | EXS_NOTIFY);
	constexpr uint8_t note = 6;
	constexpr uint32_t enough = 100000, at_a_time = 20; // more than TCP holds; fewer than the listener has buffers for
	uint32_t noted = 0;
	int error = 0;
	for (uint32_t said = 0; error == 0 && said < enough; said += at_a_time) {
		for (uint32_t i = 0; i < at_a_time; i++)
			client.say(note, 1, 1);
		while (error == 0 && noted < said + at_a_time) {
			exs_event event{};
			ASSERT_EQ(exs_qdequeue(queue, &event, 1, patience), 1);
			ASSERT_EQ(event.op, sending);
			noted += event.count;
			error = event.error;
		}
	}
	EXPECT_EQ(error, EPROTO) << "with " << noted << " answers";
}

TEST_F(Library, AChildOfForkGetsEbadfForTheParentsHandles)
{
	connect();
	Memory from(10000), to(10000);
	from.fill(3);
	const auto receiving = recv(b, to);
	const auto refused = [](int64_t result, int error) { return result == -1 && errno == error; };
	EXPECT_EQ(in_child([&] {
		const bool as_it_should = refused(exs_send(a, from.handle, from.bytes.data(), 10, 0, queue, nullptr), EBADF) &&
					  refused(exs_close(a, 0, nullptr), EBADF) && refused(exs_qdelete(queue), EBADF) &&
					  refused(exs_mderegister(from.handle), EBADF) &&
					  refused(exs_init(EXS_VERSION), EOPNOTSUPP) && exs_exit() == 0;
		return as_it_should ? 42 : 1;
	}), 42);
	const auto sending = send(a, from);
	EXPECT_EQ(wait(sending).error, 0);
	EXPECT_EQ(wait(receiving).error, 0);
	EXPECT_EQ(to.bytes, from.bytes);
}

// The child has copies of the descriptors, which keep a connection open and a port in use
TEST_F(Library, AConnectionAndAListenerThatAreClosedEndWhileAChildOfForkLives)
{
	if (rdma_address != nullptr)
		GTEST_SKIP() << "a child does not have the queue pair";
	options[EXS_CLOSE_MS] = 100;
	listen(SOCK_SEQPACKET);
	const auto accepting = exs_accept(listener, queue, nullptr);
	const RawClient client(address, SOCK_SEQPACKET);
	b = wait(accepting).accepted;
	const pid_t child = ::fork();
	if (child == 0) {
		::alarm(60);
		::pause();
	}
	wait(exs_close(b, queue, nullptr)); // the client does not answer: the connection is ended
	EXPECT_TRUE(client.ends());
	wait(exs_close(listener, queue, nullptr));
	const auto before = address;
	const auto again = exs_socket(AF_INET, SOCK_SEQPACKET, EXS_PROTO_ANY);
	ASSERT_EQ(exs_bind(again, raw(before), sizeof(before)), 0);
	EXPECT_EQ(exs_listen(again, 10), 0) << strerror(errno);
	::kill(child, SIGKILL);
	::waitpid(child, nullptr, 0);
}

// The child destroys static objects of exs.hpp, which are the parent's
TEST_F(Library, ExitOfAForkedChildWithStaticObjectsReturnsAndLeavesTheParentsConnectionsOpen)
{
	const auto program = [this] {
		::alarm(60);
		EXPECT_EQ(exs_exit(), 0); // that of SetUp(): the static object alone has the library
		static const exs::library started;
		static exs::loop loop;
		static const exs::memory from(10000), to(10000);
		queue = loop.queue();
		connect();
		static const exs::socket one(loop, a), other(loop, b);
		std::memset(from.text(), 'x', from.size());
		for (int i = 0; i < 2 && !HasFailure(); i++) {
			const auto receiving = exs_recv(b, to.handle(), to.text(), to.size(), 0, queue, nullptr); // is pending in the child
			EXPECT_EQ(in_child([] { return 42; }), 42) << "the child's exit() has not returned";
			const auto sending = exs_send(a, from.handle(), from.text(), from.size(), 0, queue, nullptr);
			EXPECT_EQ(wait(sending).error, 0);
			EXPECT_EQ(wait(receiving).error, 0);
			EXPECT_EQ(std::memcmp(from.text(), to.text(), to.size()), 0);
		}
		if (!HasFailure())
			connect(); // the listener is still there
		return HasFailure() ? 1 : 42;
	};
	GTEST_FLAG_SET(death_test_style, "threadsafe"); // in a process of its own, by exec()
	EXPECT_EXIT(std::exit(program()), testing::ExitedWithCode(42), "");
}

TEST_F(Library, AForkedChildCanRestartAStoppedLibrary)
{
	EXPECT_EQ(exs_exit(), 0);
	EXPECT_EQ(in_child([] {
		return exs_init(EXS_VERSION) == 0 && exs_qcreate() > 0 && exs_exit() == 0 ? 42 : 1;
	}), 42);
	ASSERT_EQ(exs_init(EXS_VERSION), 0);
}

TEST_F(Library, TheLibraryRunsUntilEachExsInitHasItsExsExit)
{
	ASSERT_EQ(exs_init(EXS_VERSION), 0);
	connect();
	EXPECT_EQ(exs_exit(), 0);
	Memory from(100), to(100);
	const auto receiving = recv(b, to), sending = send(a, from);
	EXPECT_EQ(wait(receiving).error, 0);
	EXPECT_EQ(wait(sending).error, 0);
}

int descriptors()
{
	int count = 0;
	for (int fd = 0; fd < 1024; fd++)
		count += fcntl(fd, F_GETFD) != -1;
	return count;
}

TEST_F(Library, EXS2_AnAbandonedQueueIsFreedWhenItsOperationsEnd)
{
	connect();
	Memory to(10);
	const int before = descriptors();
	for (int i = 0; i < 20; i++) {
		const auto other = exs_qcreate();
		EXPECT_GE(exs_qfd(other), 0); // it has none before
		exs_recv(b, to.handle, to.bytes.data(), 10, 0, other, nullptr);
		EXPECT_EQ(exs_qabandon(other), 0);
		EXPECT_EQ(exs_qfd(other), -1);
	}
	wait(exs_close(b, queue, nullptr));
	exs_close(a, 0, nullptr);
	EXPECT_LE(descriptors(), before);
}

TEST_F(Library, EXS2_AnAcceptWhoseQueueIsAbandonedLeavesTheConnectionToTheNextAccept)
{
	listen(SOCK_SEQPACKET);
	const auto other = exs_qcreate();
	EXPECT_GT(exs_accept(listener, other, nullptr), 0);
	EXPECT_EQ(exs_qabandon(other), 0);
	connect();
	Memory from(100), to(100);
	const auto receiving = recv(b, to), sending = send(a, from);
	EXPECT_EQ(wait(receiving).error, 0);
	EXPECT_EQ(wait(sending).error, 0);
}

TEST_F(Library, StoppingTheLibraryClosesAllItsDescriptors)
{
	EXPECT_EQ(exs_exit(), 0);
	const int before = descriptors();
	for (int i = 0; i < 3; i++) {
		ASSERT_EQ(exs_init(EXS_VERSION), 0);
		queue = exs_qcreate();
		listener = 0;
		connect();
		{
			Memory memory(100000);
			send(a, memory);
			recv(b, memory);
			recv(b, memory);
			EXPECT_EQ(exs_exit(), 0);
		}
		EXPECT_EQ(descriptors(), before);
	}
	EXPECT_EQ(exs_socket(AF_INET, SOCK_STREAM, 0), -1);
	EXPECT_EQ(errno, EBADF);
}

} // namespace
