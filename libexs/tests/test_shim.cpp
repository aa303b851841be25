// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//
// A program under exs-preload, which the tests are themselves. EXS_TEST_ADDRESS as of library.h.
#include "failing_new.h"
#include "library.h"

#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <tuple>

#include <dlfcn.h>
#include <fcntl.h>
#include <malloc.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>

extern "C" void (*exs_at_exit)(); // of at_exit.c

// Which allocation of exs-preload fails; none if it is negative
std::atomic<int> failing_allocation = -1;

static bool must_fail(const void *caller)
{
	return failing_allocation >= 0 && is_of("libexs-preload", caller) && failing_allocation-- == 0;
}

// Calls of exs-preload that fail, in place of libc's and of libexs's
std::atomic<bool> refuses_sends = false, refuses_watches = false, refuses_descriptors = false, refuses_pages = false;

// As the calls of libexs that cannot pin memory
extern "C" __attribute__((visibility("default"))) exs_op_t exs_send(exs_fd_t fd, exs_mh_t memory, const void *from, size_t size, int flags,
								    exs_qh_t queue, void *context)
{
	static const auto next = reinterpret_cast<decltype(&exs_send)>(::dlsym(RTLD_NEXT, "exs_send"));
	errno = ENOMEM;
	return refuses_pages ? -1 : next(fd, memory, from, size, flags, queue, context);
}

extern "C" __attribute__((visibility("default"))) exs_op_t exs_recv(exs_fd_t fd, exs_mh_t memory, void *to, size_t size, int flags,
								    exs_qh_t queue, void *context)
{
	static const auto next = reinterpret_cast<decltype(&exs_recv)>(::dlsym(RTLD_NEXT, "exs_recv"));
	errno = ENOMEM;
	return refuses_pages ? -1 : next(fd, memory, to, size, flags, queue, context);
}

// Of descriptors, as if the kernel had too many on their way
extern "C" __attribute__((visibility("default"))) ssize_t sendmsg(int fd, const msghdr *message, int flags)
{
	if (refuses_descriptors && is_of("libexs-preload", __builtin_return_address(0))) {
		errno = ETOOMANYREFS;
		return -1;
	}
	return ::syscall(SYS_sendmsg, fd, message, flags);
}

extern "C" __attribute__((visibility("default"))) int epoll_ctl(int epoll, int operation, int fd, epoll_event *event) noexcept
{
	if (refuses_watches && operation == EPOLL_CTL_ADD && is_of("libexs-preload", __builtin_return_address(0))) {
		errno = ENOSPC;
		return -1;
	}
	// that of exs-preload, which also its own thread calls
	thread_local bool is_within = false;
	if (is_within)
		return static_cast<int>(::syscall(SYS_epoll_ctl, epoll, operation, fd, event));
	static const auto next = reinterpret_cast<decltype(&epoll_ctl)>(::dlsym(RTLD_NEXT, "epoll_ctl"));
	is_within = true;
	const int result = next(epoll, operation, fd, event);
	is_within = false;
	return result;
}

// When exs-preload has made a socket pair
std::atomic<bool> is_hooked = false;
std::function<void()> hook;

extern "C" __attribute__((visibility("default"))) int socketpair(int domain, int type, int protocol, int *ends) noexcept
{
	const auto made = static_cast<int>(::syscall(SYS_socketpair, domain, type, protocol, ends));
	if (is_of("libexs-preload", __builtin_return_address(0)) && is_hooked.exchange(false))
		hook();
	return made;
}

extern "C" __attribute__((visibility("default"))) ssize_t send(int fd, const void *from, size_t size, int flags)
{
	if (refuses_sends && is_of("libexs-preload", __builtin_return_address(0))) {
		errno = ENOBUFS;
		return -1;
	}
	return ::syscall(SYS_sendto, fd, from, size, flags, nullptr, 0);
}

namespace {

using namespace exs_test;

class Socket {
public:
	explicit Socket(int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) : fd_(fd) { EXPECT_GE(fd, 0) << strerror(errno); }
	Socket(Socket &&other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
	Socket &operator=(Socket &&other) noexcept
	{
		std::swap(fd_, other.fd_);
		return *this;
	}
	~Socket() { close(); }
	void close()
	{
		if (fd_ >= 0)
			::close(std::exchange(fd_, -1));
	}
	[[nodiscard]] int get() const { return fd_; }

private:
	int fd_;
};

uint16_t port_of(int fd)
{
	sockaddr_in name{};
	socklen_t length = sizeof(name);
	EXPECT_EQ(::getsockname(fd, reinterpret_cast<sockaddr *>(&name), &length), 0);
	return ntohs(name.sin_port);
}

// A port of this address, which nobody listens at while the socket lives
sockaddr_in reserve(const Socket &socket)
{
	const auto any = loopback();
	EXPECT_EQ(::syscall(SYS_bind, socket.get(), raw(any), sizeof(any)), 0);
	return loopback(port_of(socket.get()));
}

int error_of(int fd)
{
	int error = -1;
	socklen_t length = sizeof(error);
	EXPECT_EQ(::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length), 0);
	return error;
}

size_t descriptors()
{
	const std::filesystem::directory_iterator all("/proc/self/fd");
	return static_cast<size_t>(std::distance(begin(all), end(all)));
}

short wait_for(int fd, short events)
{
	pollfd one{.fd = fd, .events = events, .revents = 0};
	EXPECT_EQ(::poll(&one, 1, 3 * patience), 1);
	return one.revents;
}

// A read that waits for longer fails with EAGAIN
void limit(const Socket &socket)
{
	const timeval time{.tv_sec = 1, .tv_usec = 0};
	EXPECT_EQ(::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &time, sizeof(time)), 0);
}

class Shim : public testing::Test {
protected:
	void listen(int backlog = 10)
	{
		const auto any = loopback();
		ASSERT_EQ(::bind(listener.get(), raw(any), sizeof(any)), 0);
		ASSERT_EQ(::listen(listener.get(), backlog), 0) << strerror(errno);
		address = loopback(port_of(listener.get()));
	}
	Socket accept()
	{
		wait_for(listener.get(), POLLIN);
		return Socket(::accept(listener.get(), nullptr, nullptr));
	}
	Socket connect()
	{
		Socket made;
		EXPECT_EQ(::connect(made.get(), raw(address), sizeof(address)), 0) << strerror(errno);
		return made;
	}
	// A raw one over TCP
	void meet()
	{
		listen();
		peer = std::make_unique<RawClient>(address, SOCK_STREAM);
	}
	// The program's end of a raw connection, behind octets that it has acknowledged
	Socket meet_with(const std::string &text)
	{
		meet();
		peer->say({.type = RawClient::adv_imm, .id = 1, .length = text.size()}, {text.begin(), text.end()});
		Socket one = accept();
		peer->next_message(RawClient::ack);
		return one;
	}
	void TearDown() override { peer.reset(); }

	Socket listener;
	sockaddr_in address{};
	std::unique_ptr<RawClient> peer;
};

#define NEEDS_TCP()                                             \
	if (rdma_address != nullptr)                            \
	GTEST_SKIP() << "the peer is one of TCP"

void expect_read(int fd, const std::string &text)
{
	std::string got(text.size(), '\0');
	EXPECT_EQ(::recv(fd, got.data(), got.size(), MSG_WAITALL), static_cast<ssize_t>(text.size()));
	EXPECT_EQ(got, text);
}

void expect_reset(int fd)
{
	char octet = 0;
	EXPECT_EQ(::read(fd, &octet, 1), -1);
	EXPECT_EQ(errno, ECONNRESET);
	EXPECT_EQ(::read(fd, &octet, 1), 0);
}

TEST_F(Shim, OctetsAndEndOfFileArriveInBothDirections)
{
	listen();
	Socket one = connect(), other = accept();
	EXPECT_EQ(::write(one.get(), "hello", 5), 5);
	expect_read(other.get(), "hello");
	EXPECT_EQ(::write(other.get(), "you", 3), 3);
	other.close();
	expect_read(one.get(), "you");
	char octet = 0;
	EXPECT_EQ(::read(one.get(), &octet, 1), 0);
	EXPECT_EQ(error_of(one.get()), 0);
}

// A peer whose answer to a Read is due must not stop the others, when the program closes its connection
TEST_F(Shim, ClosingAConnectionWithAnUnansweredReadDoesNotBlockASecondConnection)
{
	NEEDS_TCP();
	meet();
	peer->say({.type = RawClient::adv_imm, .id = 1, .length = 1}, {'x'});
	peer->say({.type = RawClient::adv, .id = 2, .length = 60000, .address = 4096, .key = 1});
	Socket silent = accept();
	peer->wait_read_request();
	Socket one = connect(), other = accept();
	silent.close();
	peer->next_message(RawClient::fin);
	const auto start = std::chrono::steady_clock::now();
	EXPECT_EQ(::write(one.get(), "hello", 5), 5);
	expect_read(other.get(), "hello");
	EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(2));
}

constexpr int orphan_ms = 6000;

TEST_F(Shim, AClosedConnectionEndsIfThePeerStopsAcknowledgingData)
{
	NEEDS_TCP();
	listen();
	const size_t without = descriptors();
	peer = std::make_unique<RawClient>(address, SOCK_STREAM);
	Socket one = accept();
	for (const char *octet : {"x", "y"}) {
		EXPECT_EQ(::write(one.get(), octet, 1), 1);
		peer->next_message(RawClient::adv_imm);
	}
	one.close();
	EXPECT_FALSE(peer->is_readable(orphan_ms * 2 / 3));
	peer->say({.type = RawClient::ack, .id = 1, .length = 1});
	EXPECT_FALSE(peer->is_readable(orphan_ms * 2 / 3)) << "an acknowledgement does not renew the time";
	EXPECT_TRUE(peer->is_readable(patience));
	for (int i = 0; i < patience && descriptors() > without + 1; i++)
		::usleep(1000);
	EXPECT_LE(descriptors(), without + 1); // the peer's; those of earlier tests may have been closed meanwhile
}

TEST_F(Shim, TheOldestOfManyClosedConnectionsIsDroppedBeforeItsTime)
{
	NEEDS_TCP();
	listen(300);
	std::vector<std::unique_ptr<RawClient>> peers;
	for (int i = 0; i < 257; i++) {
		peers.push_back(std::make_unique<RawClient>(address, SOCK_STREAM));
		Socket one = accept();
		EXPECT_EQ(::write(one.get(), "x", 1), 1);
		peers.back()->next_message(RawClient::adv_imm);
	}
	EXPECT_TRUE(peers.front()->is_readable(orphan_ms / 2));
}

TEST_F(Shim, ANonblockingConnectWithoutAListenerReportsEconnrefused)
{
	const Socket reserved;
	const auto nobody = reserve(reserved);
	for (int i = 0; i < 300 && !HasFailure(); i++) {
		const Socket one(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
		ASSERT_EQ(::connect(one.get(), raw(nobody), sizeof(nobody)), -1);
		ASSERT_EQ(errno, EINPROGRESS);
		EXPECT_TRUE(wait_for(one.get(), POLLOUT) & POLLOUT);
		usleep(i % 2 * 1000); // SO_ERROR is right both at once and later
		EXPECT_EQ(error_of(one.get()), ECONNREFUSED) << "connect " << i;
		EXPECT_EQ(error_of(one.get()), 0);
	}
	const Socket one;
	EXPECT_EQ(::connect(one.get(), raw(nobody), sizeof(nobody)), -1);
	EXPECT_EQ(errno, ECONNREFUSED);
}

TEST_F(Shim, AReadAfterAConnectionLossReturnsTheReceivedDataThenEconnreset)
{
	NEEDS_TCP();
	Socket one = meet_with("abc");
	peer.reset();
	wait_for(one.get(), 0); // which is for POLLHUP
	expect_read(one.get(), "abc");
	wait_for(one.get(), POLLIN);
	expect_reset(one.get());
	EXPECT_EQ(error_of(one.get()), 0);
}

TEST_F(Shim, AWriteAfterAConnectionLossIsEpipeAndLeavesEconnresetToAReader)
{
	NEEDS_TCP();
	Socket one = meet_with("abc");
	peer.reset();
	wait_for(one.get(), 0);
	EXPECT_EQ(::send(one.get(), "x", 1, MSG_NOSIGNAL), -1);
	EXPECT_EQ(errno, EPIPE);
	expect_read(one.get(), "abc");
	expect_reset(one.get());
}

// The C library's own call, which is no other library's to replace
TEST_F(Shim, AConnectionLossIsReportedByStdioAsEconnreset)
{
	NEEDS_TCP();
	Socket one = meet_with("abc");
	peer.reset();
	std::FILE *const stream = ::fdopen(::dup(one.get()), "r");
	ASSERT_NE(stream, nullptr);
	std::array<char, 100> buffer{};
	EXPECT_EQ(std::fread(buffer.data(), 1, buffer.size(), stream), 3U);
	EXPECT_EQ(errno, ECONNRESET);
	EXPECT_TRUE(std::ferror(stream) != 0 && std::feof(stream) == 0);
	std::fclose(stream);
	char octet = 0;
	EXPECT_EQ(::read(one.get(), &octet, 1), 0);
	EXPECT_EQ(error_of(one.get()), 0);
}

TEST_F(Shim, AConnectionLossIsReportedBySpliceAsEconnreset)
{
	NEEDS_TCP();
	meet();
	Socket one = accept();
	peer.reset();
	wait_for(one.get(), POLLIN);
	int ends[2];
	ASSERT_EQ(::pipe(ends), 0);
	EXPECT_EQ(::splice(one.get(), nullptr, ends[1], nullptr, 100, 0), -1);
	EXPECT_EQ(errno, ECONNRESET);
	::close(ends[0]);
	::close(ends[1]);
}

TEST_F(Shim, AConnectionLossAfterAShutdownIsReportedAsEconnreset)
{
	NEEDS_TCP();
	meet();
	Socket one = accept();
	ASSERT_EQ(::shutdown(one.get(), SHUT_WR), 0);
	peer->next_message(RawClient::fin);
	peer.reset();
	wait_for(one.get(), POLLIN);
	expect_reset(one.get());
}

// Takes all descriptors that the process may have
class NoDescriptors {
public:
	NoDescriptors()
	{
		for (int fd = 0; (fd = ::dup(0)) >= 0;)
			taken_.push_back(fd);
	}
	~NoDescriptors()
	{
		for (const int fd : taken_)
			::close(fd);
	}
	NoDescriptors(const NoDescriptors &) = delete;
	NoDescriptors &operator=(const NoDescriptors &) = delete;

private:
	std::vector<int> taken_;
};

// A raw client connects while the process may have so many more descriptors: one more each for the library and for both
// ends of the pair
void connect_without_descriptors(const Socket &listener, const sockaddr_in &address, size_t free)
{
	int begin[2], connected[2];
	ASSERT_EQ(::pipe(begin), 0);
	ASSERT_EQ(::pipe(connected), 0);
	const pid_t child = ::fork();
	char octet = 0;
	if (child == 0) {
		::alarm(60);
		EXPECT_EQ(::read(begin[0], &octet, 1), 1);
		const RawClient client(address, SOCK_STREAM);
		EXPECT_EQ(::write(connected[1], "c", 1), 1);
		client.say({.type = RawClient::adv_imm, .id = 1, .length = 1}, {'x'});
		client.next_message(RawClient::ack);
		::_exit(testing::Test::HasFailure() ? 1 : 42);
	}
	std::vector<Socket> spare(free);
	{
		const NoDescriptors none;
		spare.clear();
		EXPECT_EQ(::write(begin[1], "b", 1), 1);
		EXPECT_EQ(::read(connected[0], &octet, 1), 1);
		pollfd coming{.fd = listener.get(), .events = POLLIN, .revents = 0};
		EXPECT_EQ(::poll(&coming, 1, 300), 0);
		if (free == 0) {
			EXPECT_EQ(::accept(listener.get(), nullptr, nullptr), -1);
			EXPECT_EQ(errno, EMFILE);
		}
	}
	wait_for(listener.get(), POLLIN);
	const Socket one(::accept(listener.get(), nullptr, nullptr));
	expect_read(one.get(), "x");
	int status = 0;
	::waitpid(child, &status, 0);
	EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 42) << status;
}

// In a process of its own each: exs-preload closes descriptors later than the program, and they would be free here
TEST_F(Shim, AConnectionWithoutAFreeDescriptorWaitsUntilOneIsFree)
{
	NEEDS_TCP();
#ifdef __SANITIZE_ADDRESS__
	GTEST_SKIP() << "UndefinedBehaviorSanitizer looks at memory by descriptors of its own";
#endif
	GTEST_FLAG_SET(death_test_style, "threadsafe"); // with exec()
	listen();
	for (const size_t free : {0, 1, 2})
		EXPECT_EXIT(connect_without_descriptors(listener, address, free); ::_exit(HasFailure() ? 1 : 42), testing::ExitedWithCode(42), "")
			<< free << " descriptors were free";
}

// The child has copies of all descriptors
TEST_F(Shim, AConnectionLossIsReportedWhileAChildLives)
{
	NEEDS_TCP();
	meet();
	Socket one = accept();
	const pid_t child = ::fork();
	if (child == 0) {
		::alarm(60);
		peer.reset();
		::pause();
	}
	peer.reset();
	EXPECT_TRUE(wait_for(one.get(), POLLIN) & POLLHUP);
	expect_reset(one.get());
	::kill(child, SIGKILL);
	::waitpid(child, nullptr, 0);
}

// As send() to the program's end is ENOBUFS if the kernel has no memory
TEST_F(Shim, OctetsThatTheKernelCannotTakeAreAConnectionLossAndNoEndOfFile)
{
	listen();
	Socket one = connect(), other = accept();
	EXPECT_EQ(::write(one.get(), "abc", 3), 3);
	expect_read(other.get(), "abc");
	refuses_sends = true;
	EXPECT_EQ(::write(one.get(), "def", 3), 3);
	EXPECT_TRUE(wait_for(other.get(), POLLIN) & POLLHUP);
	refuses_sends = false;
	expect_reset(other.get());
}

// A connection that has not pinned its memory yet; a peer that is lost meanwhile is noticed all the same
TEST_F(Shim, DataWaitWhileMemoryCannotBePinned)
{
	listen();
	refuses_pages = true;
	Socket one = connect(), other = accept(), third = connect(), fourth = accept();
	for (const auto &[from, to, text] : {std::tuple(&one, &other, "hello"), std::tuple(&other, &one, "you")}) {
		refuses_pages = true;
		const auto length = static_cast<ssize_t>(std::strlen(text));
		EXPECT_EQ(::write(from->get(), text, 2), 2);
		pollfd readable{.fd = to->get(), .events = POLLIN, .revents = 0};
		EXPECT_EQ(::poll(&readable, 1, 300), 0);
		EXPECT_EQ(::write(from->get(), text + 2, static_cast<size_t>(length) - 2), length - 2);
		refuses_pages = false;
		expect_read(to->get(), text);
	}
	EXPECT_EQ(::write(third.get(), "more", 4), 4);
	third.close();
	expect_read(fourth.get(), "more");
	char octet = 0;
	EXPECT_EQ(::read(fourth.get(), &octet, 1), 0);
}

TEST_F(Shim, ThePeerOfAClosedConnectionWhoseDataAreDroppedReadsEconnresetAndNoEndOfFile)
{
	listen();
	Socket one = connect(), other = accept();
	EXPECT_EQ(::write(one.get(), "all", 3), 3);
	expect_read(other.get(), "all");
	refuses_pages = true;
	EXPECT_EQ(::write(one.get(), "lost", 4), 4);
	one.close();
	wait_for(other.get(), POLLIN); // orphan_ms
	refuses_pages = false;
	expect_reset(other.get());
}

TEST_F(Shim, AConnectionIsLostIfItsPeerIsLostWhileMemoryCannotBePinned)
{
	NEEDS_TCP();
	refuses_pages = true;
	meet();
	Socket one = accept();
	peer.reset();
	EXPECT_TRUE(wait_for(one.get(), POLLIN) & POLLHUP);
	refuses_pages = false;
	expect_reset(one.get());
}

// ETOOMANYREFS: beyond RLIMIT_NOFILE of descriptors on their way
TEST_F(Shim, AConnectionWhoseDescriptorCannotBePassedWaitsUntilItCan)
{
	listen();
	refuses_descriptors = true;
	Socket one = connect();
	pollfd coming{.fd = listener.get(), .events = POLLIN, .revents = 0};
	EXPECT_EQ(::poll(&coming, 1, 300), 0);
	refuses_descriptors = false;
	Socket other = accept();
	EXPECT_EQ(::write(one.get(), "hello", 5), 5);
	expect_read(other.get(), "hello");
}

// The parent has closed its descriptor, or has never had it
TEST_F(Shim, AChildThatServesAConnectionReadsEconnresetIfItIsLost)
{
	NEEDS_TCP();
	for (const bool child_accepts : {false, true}) {
		listener = Socket();
		meet();
		Socket one;
		if (!child_accepts)
			one = accept();
		int ready[2];
		ASSERT_EQ(::pipe(ready), 0);
		const pid_t child = ::fork();
		if (child == 0) {
			::alarm(60);
			peer.reset();
			const Socket served = child_accepts ? accept() : std::move(one);
			char octet = 0;
			EXPECT_EQ(::write(ready[1], "r", 1), 1);
			const bool is_lost = ::read(served.get(), &octet, 1) == -1 && errno == ECONNRESET;
			::_exit(is_lost && ::read(served.get(), &octet, 1) == 0 ? 42 : 1);
		}
		one.close();
		char octet = 0;
		EXPECT_EQ(::read(ready[0], &octet, 1), 1);
		::close(ready[0]);
		::close(ready[1]);
		peer.reset();
		int status = 0;
		::waitpid(child, &status, 0);
		EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 42) << status << (child_accepts ? " the child has accepted" : "");
	}
}

// The peer has not wanted what was sent last
TEST_F(Shim, AProgramThatSendsReadsAnEndOfFileIfThePeerClosesInOrder)
{
	NEEDS_TCP();
	meet();
	Socket one = accept();
	const std::string data(100000, 'x');
	EXPECT_EQ(::write(one.get(), data.data(), data.size()), static_cast<ssize_t>(data.size()));
	peer->next_message(RawClient::adv);
	peer->say({.type = RawClient::close});
	wait_for(one.get(), POLLIN);
	char octet = 0;
	EXPECT_EQ(::read(one.get(), &octet, 1), 0) << strerror(errno);
}

TEST_F(Shim, ThePeerSeesTheEndIfAProgramClosesWithoutReading)
{
	NEEDS_TCP();
	Socket one = meet_with("x");
	wait_for(one.get(), POLLIN);
	one.close();
	peer->next_message(RawClient::fin);
}

TEST_F(Shim, AConnectionLossIsReportedBySoErrorAsEconnreset)
{
	NEEDS_TCP();
	meet();
	Socket one = accept();
	peer.reset();
	EXPECT_TRUE(wait_for(one.get(), POLLIN) & POLLHUP);
	EXPECT_EQ(error_of(one.get()), ECONNRESET);
	char octet = 0;
	EXPECT_EQ(::read(one.get(), &octet, 1), 0);
}

// One octet was acknowledged; those behind it have not come
TEST_F(Shim, AReadAfterAConnectionLossReturnsAcknowledgedDataDespiteAnUnansweredRead)
{
	NEEDS_TCP();
	Socket one = meet_with("x");
	peer->say({.type = RawClient::adv, .id = 2, .length = 5000, .address = 4096, .key = 1});
	peer->wait_read_request();
	peer.reset();
	expect_read(one.get(), "x");
	expect_reset(one.get());
}

// More than the socket pair of the program holds: the relay has the rest when it learns of the loss
TEST_F(Shim, AReadLongAfterAConnectionLossReturnsAllAcknowledgedDataThenEconnreset)
{
	NEEDS_TCP();
	meet();
	Socket one = accept();
	Socket client = connect(), other = accept();
	limit(one);
	const auto all_is_there = [&one](size_t wanted) {
		const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(500);
		int there = 0;
		while (::ioctl(one.get(), FIONREAD, &there) == 0 && static_cast<size_t>(there) < wanted) {
			if (std::chrono::steady_clock::now() > deadline)
				return false;
			std::this_thread::yield();
		}
		return true;
	};
	std::string acknowledged;
	constexpr size_t fits = 100000;
	for (uint32_t id = 1; acknowledged.size() < fits || all_is_there(acknowledged.size()); id++) {
		const std::vector<uint8_t> data(4096, static_cast<uint8_t>('a' + id % 26));
		peer->say({.type = RawClient::adv_imm, .id = id, .length = data.size()}, data);
		peer->next_message(RawClient::ack);
		ASSERT_FALSE(HasFailure());
		acknowledged.append(data.begin(), data.end());
	}
	peer.reset();
	for (int i = 0; i < 3; i++) { // by the threads that learn of the loss
		EXPECT_EQ(::write(client.get(), "hello", 5), 5);
		expect_read(other.get(), "hello");
	}
	std::string got(acknowledged.size(), '\0');
	EXPECT_EQ(::recv(one.get(), got.data(), got.size(), MSG_WAITALL), static_cast<ssize_t>(got.size()));
	EXPECT_TRUE(got == acknowledged);
	expect_reset(one.get());
}

constexpr size_t last_words = 100000;

// Another program: after an answer to "ready" it writes more, after another one even more, and ends
int send_and_exit(uint16_t port)
{
	::alarm(200);
	const auto to = loopback(port);
	const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
	const std::string data(last_words, 'x');
	char octet = 0;
	if (::connect(fd, raw(to), sizeof(to)) != 0 || ::write(fd, "ready", 5) != 5)
		::_exit(2);
	for (int i = 0; i < 2; i++)
		if (::read(fd, &octet, 1) != 1 || ::write(fd, data.data(), data.size()) != static_cast<ssize_t>(data.size()))
			::_exit(1);
	::_exit(42);
}

TEST_F(Shim, AReceiverGetsEconnresetAndNoEndOfFileIfTheSenderEndsByUnderscoreExit)
{
	listen();
	const std::string port = std::to_string(ntohs(address.sin_port));
	const pid_t sender = ::fork();
	if (sender == 0) {
		::execl("/proc/self/exe", "exs_shim_tests", "--send-and-exit", port.c_str(), nullptr);
		::_exit(3);
	}
	for (int i = 0; i < 5; i++) { // a program takes long to start on a slow machine
		pollfd coming{.fd = listener.get(), .events = POLLIN, .revents = 0};
		if (::poll(&coming, 1, patience) == 1)
			break;
	}
	Socket one = accept();
	limit(one);
	expect_read(one.get(), "ready");
	EXPECT_EQ(::write(one.get(), "k", 1), 1);
	wait_for(one.get(), POLLIN);
	int there = 0; // the sender has these as acknowledged
	EXPECT_EQ(::ioctl(one.get(), FIONREAD, &there), 0);
	EXPECT_GT(there, 0);
	EXPECT_EQ(::write(one.get(), "k", 1), 1);
	int status = 0;
	::waitpid(sender, &status, 0);
	EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 42) << status;
	std::string got;
	std::array<char, 10000> buffer{};
	ssize_t length = 0;
	while ((length = ::read(one.get(), buffer.data(), buffer.size())) > 0)
		got.append(buffer.data(), static_cast<size_t>(length));
	EXPECT_EQ(length, -1) << "an end of file after " << got.size() << " octets";
	EXPECT_EQ(errno, ECONNRESET);
	EXPECT_GE(got.size(), static_cast<size_t>(there));
	EXPECT_LE(got.size(), 2 * last_words);
	EXPECT_EQ(got, std::string(got.size(), 'x'));
}

// Another program: a library is destroyed after exs-preload has ended its connections
int connect_at_exit(uint16_t port)
{
	static const auto to = loopback(port);
	::alarm(30);
	const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
	if (::connect(fd, raw(to), sizeof(to)) != 0)
		return 2;
	exs_at_exit = [] {
		const bool is_refused = ::connect(::socket(AF_INET, SOCK_STREAM, 0), raw(to), sizeof(to)) == -1 && errno == ECONNABORTED;
		::_exit(is_refused ? 42 : 3);
	};
	return 1;
}

TEST_F(Shim, AConnectDuringExitFails)
{
	listen();
	const std::string port = std::to_string(ntohs(address.sin_port));
	const pid_t child = ::fork();
	if (child == 0) {
		::execl("/proc/self/exe", "exs_shim_tests", "--connect-at-exit", port.c_str(), nullptr);
		::_exit(4);
	}
	const Socket one = accept();
	int status = 0;
	::waitpid(child, &status, 0);
	EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 42) << status;
}

TEST_F(Shim, ConnectsBeyondTheBacklogWaitAndSucceed)
{
	listen(10);
	std::vector<Socket> connecting;
	for (int i = 0; i < 40; i++) {
		connecting.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
		::connect(connecting.back().get(), raw(address), sizeof(address));
	}
	for (const Socket &one : connecting) {
		wait_for(one.get(), POLLOUT);
		EXPECT_EQ(error_of(one.get()), 0);
	}
	for (size_t i = 0; i < connecting.size() && !HasFailure(); i++)
		EXPECT_GE(accept().get(), 0);
}

// More than exs-preload's own backlog of 1024 and the 280 that its socket pair holds
TEST_F(Shim, ConnectsBeyondTheLeastBacklogWaitAndSucceed)
{
	NEEDS_TCP();
	constexpr rlim_t enough = 6000;
	rlimit before{};
	ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
	if (before.rlim_max < enough)
		GTEST_SKIP() << "it takes more descriptors";
	const rlimit many{.rlim_cur = std::max(before.rlim_cur, enough), .rlim_max = before.rlim_max};
	ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &many), 0);
	listen(10);
	std::vector<std::unique_ptr<RawClient>> clients;
	for (int i = 0; i < 1500; i++)
		clients.push_back(std::make_unique<RawClient>(address, SOCK_STREAM));
	EXPECT_FALSE(clients.back()->is_readable(300));
	for (size_t i = 0; i < clients.size() && !HasFailure(); i++)
		EXPECT_GE(accept().get(), 0);
	uint8_t kind = 1;
	for (const auto &client : clients)
		if (!HasFailure())
			client->next(kind); // the hello
	clients.clear();
	::setrlimit(RLIMIT_NOFILE, &before);
}

TEST_F(Shim, GetsocknameReportsTheBoundPortBeforeListen)
{
	const auto any = loopback();
	Socket other;
	ASSERT_EQ(::bind(listener.get(), raw(any), sizeof(any)), 0);
	ASSERT_EQ(::bind(other.get(), raw(any), sizeof(any)), 0);
	address = loopback(port_of(listener.get()));
	EXPECT_NE(ntohs(address.sin_port), 0);
	EXPECT_NE(port_of(other.get()), ntohs(address.sin_port));
	ASSERT_EQ(::listen(listener.get(), 10), 0) << strerror(errno);
	EXPECT_EQ(port_of(listener.get()), ntohs(address.sin_port));
	EXPECT_EQ(::connect(other.get(), raw(address), sizeof(address)), 0) << strerror(errno);
	EXPECT_GE(accept().get(), 0);
}

TEST_F(Shim, ASocketListensAtItsPortOrNotAtAll)
{
	listen();
	Socket other;
	ASSERT_EQ(::bind(other.get(), raw(address), sizeof(address)), 0);
	for (int i = 0; i < 2; i++) {
		ASSERT_EQ(::listen(other.get(), 10), -1);
		ASSERT_EQ(errno, EADDRINUSE);
	}
	for (int i = 0; i < 100; i++) { // without a wait
		listener.close();
		ASSERT_EQ(::listen(other.get(), 10), 0) << strerror(errno) << " in round " << i;
		listener = std::move(other);
		other = Socket();
		ASSERT_EQ(::bind(other.get(), raw(address), sizeof(address)), 0);
	}
	ASSERT_EQ(port_of(listener.get()), ntohs(address.sin_port));
	const Socket one = connect();
	EXPECT_GE(accept().get(), 0);
}

TEST_F(Shim, ASecondConnectHasTheSourceAndTheEpollsOfTheFirstOne)
{
	if (rdma_address != nullptr)
		GTEST_SKIP() << "the first id has the port until the library has destroyed it";
	listen();
	const Socket reserved, one;
	const auto nobody = reserve(reserved);
	const auto source = reserve(Socket());
	ASSERT_EQ(::bind(one.get(), raw(source), sizeof(source)), 0);
	const Socket epoll(::epoll_create1(EPOLL_CLOEXEC));
	epoll_event event{.events = EPOLLOUT, .data = {.fd = one.get()}};
	ASSERT_EQ(::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, one.get(), &event), 0);
	ASSERT_EQ(::connect(one.get(), raw(nobody), sizeof(nobody)), -1);
	ASSERT_EQ(errno, ECONNREFUSED);
	ASSERT_EQ(::connect(one.get(), raw(address), sizeof(address)), 0) << strerror(errno);
	EXPECT_EQ(port_of(one.get()), ntohs(source.sin_port));
	EXPECT_EQ(::epoll_wait(epoll.get(), &event, 1, patience), 1);
}

// Of which another thread holds a mutex at most times
TEST_F(Shim, AChildOfForkCanAskForNamesAndErrorsWhileOtherThreadsDo)
{
	listen();
	const Socket one = connect(), other = accept(), bound;
	const auto any = loopback();
	ASSERT_EQ(::bind(bound.get(), raw(any), sizeof(any)), 0);
	std::atomic<bool> ends = false;
	std::thread names([&] {
		while (!ends)
			port_of(bound.get());
	});
	std::thread errors([&] {
		while (!ends)
			error_of(one.get());
	});
	for (int i = 0; i < 100 && !HasFailure(); i++) {
		const pid_t child = ::fork();
		if (child == 0) {
			::alarm(patience / 1000);
			::_exit(port_of(bound.get()) != 0 && error_of(one.get()) == 0 ? 0 : 1);
		}
		int status = 0;
		::waitpid(child, &status, 0);
		EXPECT_EQ(status, 0) << "child " << i;
	}
	ends = true;
	names.join();
	errors.join();
}

TEST_F(Shim, AFailedAllocationEndsOneConnectionAndNotTheProgram)
{
	listen();
	int refused = 0, failed = 0;
	for (int which = 0;; which++) {
		ASSERT_LT(which, 1000);
		failing_allocation = which;
		Socket one;
		if (::connect(one.get(), raw(address), sizeof(address)) != 0) {
			EXPECT_EQ(errno, ENOMEM);
			refused++;
			continue;
		}
		// either it is accepted, or the client learns that it is not
		std::array<pollfd, 2> ends{pollfd{.fd = listener.get(), .events = POLLIN, .revents = 0},
					   pollfd{.fd = one.get(), .events = POLLIN, .revents = 0}};
		ASSERT_GE(::poll(ends.data(), ends.size(), patience), 1) << "allocation " << which;
		if (ends[0].revents != 0)
			accept();
		const bool all_succeeded = failing_allocation.exchange(-1) >= 0;
		if (all_succeeded)
			break;
		failed++;
	}
	EXPECT_GT(refused, 0);
	EXPECT_GT(failed, 0);
	const Socket one = connect();
	const Socket other = accept();
	EXPECT_EQ(::write(one.get(), "hello", 5), 5);
	expect_read(other.get(), "hello");
}

// Each of the program's calls, one after the other; it can be repeated
TEST_F(Shim, ACallWhoseAllocationFailsReturnsEnomemAndSucceedsIfRepeated)
{
	listen();
	size_t failed = 0;
	for (int which = 0; failing_allocation < 0; which++) {
		ASSERT_LT(which, 1000);
		const Socket server, client, epoll(::epoll_create1(EPOLL_CLOEXEC));
		const auto any = loopback();
		epoll_event event{.events = EPOLLOUT, .data = {.fd = client.get()}};
		failing_allocation = which;
		for (const auto &call : std::vector<std::function<int()>>{
			     [&] { return ::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, server.get(), &event); },
			     [&] { return ::bind(server.get(), raw(any), sizeof(any)); },
			     [&] { return ::listen(server.get(), 10); },
			     [&] { return ::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, client.get(), &event); },
		     }) {
			if (call() == 0)
				continue;
			EXPECT_EQ(errno, ENOMEM) << "allocation " << which;
			EXPECT_EQ(call(), 0) << strerror(errno) << " after allocation " << which;
			failed++;
		}
		if (failing_allocation >= 0)
			break;
	}
	failing_allocation = -1;
	EXPECT_GT(failed, 3U);
	Socket one = connect(), other = accept();
}

// As the kernel does beyond fs.epoll.max_user_watches
TEST_F(Shim, ListenAndConnectFailWithEnospcIfTheSocketCannotBePolled)
{
	const auto any = loopback();
	ASSERT_EQ(::bind(listener.get(), raw(any), sizeof(any)), 0);
	refuses_watches = true;
	EXPECT_EQ(::listen(listener.get(), 10), -1);
	EXPECT_EQ(errno, ENOSPC);
	refuses_watches = false;
	ASSERT_EQ(::listen(listener.get(), 10), 0) << strerror(errno);
	address = loopback(port_of(listener.get()));
	refuses_watches = true;
	const Socket refused;
	EXPECT_EQ(::connect(refused.get(), raw(address), sizeof(address)), -1);
	EXPECT_EQ(errno, ENOSPC);
	refuses_watches = false;
	const Socket one = connect(), other = accept();
	EXPECT_EQ(::write(one.get(), "hello", 5), 5);
	expect_read(other.get(), "hello");
}

// By its copies the program's close() would go unnoticed
TEST_F(Shim, AChildThatIsForkedWhileAConnectionArrivesDoesNotHoldIt)
{
	NEEDS_TCP();
	listen();
	std::atomic<pid_t> child = 0;
	const auto forked = [&child](int ms) {
		for (; child == 0 && ms > 0; ms--)
			::usleep(1000);
		return child != 0;
	};
	std::thread forking;
	hook = [&] {
		forking = std::thread([&child] {
			const pid_t pid = ::fork();
			if (pid == 0) {
				::alarm(60);
				::pause();
			}
			child = pid;
		});
		forked(200); // or it waits until the pair is known
	};
	is_hooked = true;
	peer = std::make_unique<RawClient>(address, SOCK_STREAM);
	wait_for(listener.get(), POLLIN);
	EXPECT_TRUE(forked(patience)); // before this process has the descriptor itself
	forking.join();
	accept().close();
	peer->next_message(RawClient::fin);
	::kill(child, SIGKILL);
	::waitpid(child, nullptr, 0);
}

// They have the numbers of descriptors of exs-preload, which the child has not
TEST_F(Shim, AChildOfAChildHasAllDescriptorsThatTheChildHasOpened)
{
	listen();
	const Socket one = connect(), other = accept();
	const auto status_of = [](pid_t child) {
		int status = 0;
		::waitpid(child, &status, 0);
		return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	};
	const pid_t child = ::fork();
	if (child == 0) {
		::alarm(60);
		std::vector<int> opened;
		for (int i = 0; i < 100; i++)
			opened.push_back(::open("/dev/null", O_RDONLY | O_CLOEXEC));
		const pid_t second = ::fork();
		if (second == 0)
			::_exit(std::ranges::all_of(opened, [](int fd) { return ::fcntl(fd, F_GETFD) >= 0; }) ? 42 : 1);
		::_exit(status_of(second));
	}
	EXPECT_EQ(status_of(child), 42);
}

// Its connections and listeners are the kernel's
TEST_F(Shim, AChildUsesTheAddressesThatItsParentHasBound)
{
	listen(); // so that there is a parent
	const Socket server, one, nobody;
	const auto to = reserve(server);
	ASSERT_EQ(::syscall(SYS_listen, server.get(), 10), 0);
	const auto source = reserve(Socket()), at = reserve(Socket());
	ASSERT_EQ(::bind(one.get(), raw(source), sizeof(source)), 0);
	ASSERT_EQ(::bind(nobody.get(), raw(at), sizeof(at)), 0);
	const pid_t child = ::fork();
	if (child == 0) {
		::alarm(60);
		const bool connects = ::connect(one.get(), raw(to), sizeof(to)) == 0 && port_of(one.get()) == ntohs(source.sin_port);
		const bool listens = ::listen(nobody.get(), 10) == 0 && port_of(nobody.get()) == ntohs(at.sin_port);
		::_exit((connects ? 1 : 0) + (listens ? 2 : 0));
	}
	int status = 0;
	::waitpid(child, &status, 0);
	EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 3) << status;
}

timeval get_time(int fd, int name)
{
	timeval time{};
	socklen_t length = sizeof(time);
	EXPECT_EQ(::getsockopt(fd, SOL_SOCKET, name, &time, &length), 0);
	return time;
}

// An accepted socket of TCP has those of its listener, too
TEST_F(Shim, TheTimeLimitsOfASocketHoldAfterConnectAndAccept)
{
	// also for connect() and accept(), on a busy host
	const timeval time{.tv_sec = 3, .tv_usec = 0};
	const Socket one;
	for (const int fd : {listener.get(), one.get()})
		for (const int name : {SO_RCVTIMEO, SO_SNDTIMEO})
			ASSERT_EQ(::setsockopt(fd, SOL_SOCKET, name, &time, sizeof(time)), 0);
	listen();
	ASSERT_EQ(::connect(one.get(), raw(address), sizeof(address)), 0) << strerror(errno);
	const Socket other = accept();
	for (const int fd : {one.get(), other.get()}) {
		for (const int name : {SO_RCVTIMEO, SO_SNDTIMEO})
			EXPECT_EQ(get_time(fd, name).tv_sec, time.tv_sec);
		char octet = 0;
		if (!HasFailure()) {
			EXPECT_EQ(::read(fd, &octet, 1), -1);
			EXPECT_EQ(errno, EAGAIN);
		}
	}
}

// The kernel accepts, and nobody says a word of libexs
TEST_F(Shim, ABlockingConnectEndsByItsTimeLimitOrASignalAndGoesOn)
{
	NEEDS_TCP();
	const Socket silent;
	const auto to = reserve(silent);
	ASSERT_EQ(::syscall(SYS_listen, silent.get(), 10), 0);
	const timeval time{.tv_sec = 0, .tv_usec = 100000};
	Socket limited, interrupted;
	ASSERT_EQ(::setsockopt(limited.get(), SOL_SOCKET, SO_SNDTIMEO, &time, sizeof(time)), 0);
	struct sigaction action {}, before {};
	action.sa_handler = [](int) {};
	ASSERT_EQ(::sigaction(SIGALRM, &action, &before), 0);
	const itimerval soon{.it_interval = {.tv_sec = 0, .tv_usec = 100000}, .it_value = {.tv_sec = 0, .tv_usec = 100000}}, never{};
	for (const auto &[fd, error] : {std::pair(limited.get(), EINPROGRESS), std::pair(interrupted.get(), EINTR)}) {
		if (error == EINTR)
			::setitimer(ITIMER_REAL, &soon, nullptr);
		EXPECT_EQ(::connect(fd, raw(to), sizeof(to)), -1);
		EXPECT_EQ(errno, error);
		EXPECT_EQ(::connect(fd, raw(to), sizeof(to)), -1);
		EXPECT_EQ(errno, EALREADY);
		pollfd writable{.fd = fd, .events = POLLOUT, .revents = 0};
		EXPECT_EQ(::poll(&writable, 1, 0), 0);
	}
	::setitimer(ITIMER_REAL, &never, nullptr);
	::sigaction(SIGALRM, &before, nullptr);
}

// The library's sockets are also descriptors of this program
TEST_F(Shim, SoKeepaliveBeforeConnectAndListenReachesBothEnds)
{
	NEEDS_TCP();
	constexpr int seconds = 123, on = 1;
	const auto get = [](int fd) {
		int idle = 0;
		socklen_t length = sizeof(idle);
		return ::getsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, &length) == 0 ? idle : 0;
	};
	const Socket one;
	for (const int fd : {listener.get(), one.get()}) {
		ASSERT_EQ(::setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on)), 0);
		ASSERT_EQ(::setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &seconds, sizeof(seconds)), 0);
	}
	listen();
	ASSERT_EQ(::connect(one.get(), raw(address), sizeof(address)), 0);
	const Socket other = accept();
	int found = 0;
	for (int fd = 3; fd < 1024; fd++)
		found += get(fd) == seconds;
	EXPECT_EQ(found, 2);
}

TEST_F(Shim, SocketsAddedToEpollTakeNoMemoryAfterTheirClose)
{
	const int epoll = ::epoll_create1(0);
	const auto add = [epoll] {
		const Socket one;
		epoll_event event{};
		ASSERT_EQ(::epoll_ctl(epoll, EPOLL_CTL_ADD, one.get(), &event), 0);
	};
	for (int i = 0; i < 1000; i++)
		add();
	const size_t before = mallinfo2().uordblks;
	for (int i = 0; i < 20000; i++)
		add();
	EXPECT_LT(mallinfo2().uordblks, before + 500000);
	::close(epoll);
}

} // namespace

// With exs-preload, which is beside this program
int main(int argc, char **argv)
{
	const auto shim = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "libexs-preload.so";
	if (const char *loaded = std::getenv("LD_PRELOAD"); loaded == nullptr || std::strstr(loaded, "exs-preload") == nullptr) {
		::setenv("LD_PRELOAD", shim.c_str(), 1);
		::setenv("EXS_PRELOAD_LOOPBACK", "1", 1);
#ifdef __SANITIZE_ADDRESS__ // its library is the second one then: behind exs-preload, as libc is
		const char *options = std::getenv("ASAN_OPTIONS");
		::setenv("ASAN_OPTIONS", (std::string(options != nullptr ? options : "") + ":verify_asan_link_order=0").c_str(), 1);
#endif
		::setenv("EXS_PRELOAD_ORPHAN_MS", std::to_string(orphan_ms).c_str(), 1);
		::execv("/proc/self/exe", argv);
		return 1;
	}
	if (argc == 3 && std::string(argv[1]) == "--send-and-exit")
		return send_and_exit(static_cast<uint16_t>(std::stoi(argv[2])));
	if (argc == 3 && std::string(argv[1]) == "--connect-at-exit")
		return connect_at_exit(static_cast<uint16_t>(std::stoi(argv[2])));
	testing::InitGoogleTest(&argc, argv);
	return RUN_ALL_TESTS();
}
