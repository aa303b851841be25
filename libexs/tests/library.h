// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//
// For tests of the library by its C interface: over TCP on the loopback interface, or over RDMA from EXS_TEST_ADDRESS to
// itself (tests/exs.sh)
#pragma once

#include "exs.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace exs_test {

inline constexpr int patience = 20000; // ms

// Times that a test measures are as many times as long on a busy host
inline const int slowness = std::getenv("EXS_TEST_SLOW") != nullptr ? std::max(1, std::atoi(std::getenv("EXS_TEST_SLOW"))) : 1;

inline const char *const rdma_address = std::getenv("EXS_TEST_ADDRESS");
inline const int expected_protocol = rdma_address != nullptr ? EXS_PROTO_RDMA : EXS_PROTO_TCP;

inline sockaddr_in loopback(uint16_t port = 0)
{
	sockaddr_in address{};
	address.sin_family = AF_INET;
	address.sin_port = htons(port);
	inet_pton(AF_INET, rdma_address != nullptr ? rdma_address : "127.0.0.1", &address.sin_addr);
	return address;
}

inline const sockaddr *raw(const sockaddr_in &address)
{
	return reinterpret_cast<const sockaddr *>(&address);
}

// Until the thread waits for something
inline void wait_asleep(pid_t thread)
{
	const std::string name = "/proc/self/task/" + std::to_string(thread) + "/stat";
	for (int i = 0; i < patience; i++, ::usleep(1000)) {
		std::string stat;
		std::getline(std::ifstream(name), stat);
		if (const size_t at = stat.rfind(") "); at != std::string::npos && stat[at + 2] == 'S')
			return;
	}
	ADD_FAILURE() << "thread " << thread << " does not sleep";
}

// Of all threads
inline double processor_us()
{
	timespec time{};
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
	return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) / 1e3;
}

// The least processor time of several times so many calls, for each
template <typename Function> double cost(int calls, const Function &function)
{
	double best = 1e9;
	for (int attempt = 0; attempt < 5; attempt++) {
		const double start = processor_us();
		for (int i = 0; i < calls; i++)
			function();
		best = std::min(best, (processor_us() - start) / calls);
	}
	return best;
}

// That a call does not walk all that is there: with 200,000 of more(count) it costs no more than eight times as much as with 10. A
// walk of 20,000 may cost less than that, and a busy host may cost nearly as much. In steps, as by a walk each further one costs more.
template <typename More, typename Function> void expect_constant_cost(int calls, const More &more, const Function &function)
{
	more(10);
	const double few = cost(calls, function);
	int there = 10;
	for (const int next : {20000, 60000, 200000}) {
		more(next - std::exchange(there, next));
		EXPECT_LT(cost(calls, function), 8 * few) << "in us, of " << next;
		if (testing::Test::HasFailure())
			return;
	}
}

struct Memory {
	explicit Memory(size_t size, int access = EXS_MEM_SEND | EXS_MEM_RECV) : bytes(size)
	{
		handle = exs_mregister(bytes.data(), size, access);
		EXPECT_GT(handle, 0) << strerror(errno);
	}
	~Memory() { exs_mderegister(handle); }
	Memory(const Memory &) = delete;
	Memory &operator=(const Memory &) = delete;
	void fill(uint8_t first) { std::iota(bytes.begin(), bytes.end(), first); }

	std::vector<uint8_t> bytes;
	exs_mh_t handle;
};

class Library : public testing::Test {
protected:
	void SetUp() override
	{
		ASSERT_EQ(exs_init(EXS_VERSION), 0);
		queue = exs_qcreate();
		ASSERT_GT(queue, 0);
	}
	void TearDown() override { EXPECT_EQ(exs_exit(), 0); }

	// The event of the operation; others are kept
	exs_event wait(exs_op_t op, int type = 0)
	{
		EXPECT_GT(op, 0) << strerror(errno);
		for (;;) {
			for (auto at = events.begin(); at != events.end(); ++at) {
				if (at->op == op && (type == 0 ? at->type != EXS_EVENT_NOTE : at->type == type)) {
					const exs_event found = *at;
					events.erase(at);
					return found;
				}
			}
			exs_event event{};
			if (exs_qdequeue(queue, &event, 1, patience) != 1) {
				ADD_FAILURE() << "no event of operation " << op;
				event.error = ETIME;
				return event;
			}
			events.push_back(event);
		}
	}

	// That nothing comes of it
	bool waits(exs_op_t op, int ms = 50)
	{
		const auto has_ended = [&] { return std::ranges::find(events, op, &exs_event::op) != events.end(); };
		exs_event event{};
		while (!has_ended() && exs_qdequeue(queue, &event, 1, ms) == 1)
			events.push_back(event);
		return op > 0 && !has_ended();
	}

	void set(exs_fd_t fd, int option, unsigned value) { EXPECT_EQ(exs_fcntl(fd, EXS_SET, option, value), 0); }

	void listen(int type, int backlog = 10)
	{
		listener = exs_socket(AF_INET, type, EXS_PROTO_ANY);
		ASSERT_GT(listener, 0);
		for (const auto &[option, value] : options)
			set(listener, option, value);
		const auto any = loopback();
		ASSERT_EQ(exs_bind(listener, raw(any), sizeof(any)), 0);
		ASSERT_EQ(exs_listen(listener, backlog), 0) << strerror(errno);
		socklen_t length = sizeof(address);
		ASSERT_EQ(exs_getsockname(listener, reinterpret_cast<sockaddr *>(&address), &length), 0);
	}

	// Two connected sockets, a the initiator
	void connect(int type = SOCK_SEQPACKET)
	{
		if (listener == 0)
			listen(type);
		const auto accepting = exs_accept(listener, queue, this);
		a = exs_socket(AF_INET, type, EXS_PROTO_ANY);
		for (const auto &[option, value] : options)
			set(a, option, value);
		const auto connecting = exs_connect(a, raw(address), sizeof(address), queue, &a);
		const auto connected = wait(connecting);
		ASSERT_EQ(connected.error, 0) << strerror(connected.error);
		EXPECT_EQ(connected.context, &a);
		EXPECT_EQ(connected.fd, a);
		const auto accepted = wait(accepting);
		ASSERT_EQ(accepted.error, 0);
		EXPECT_EQ(accepted.type, EXS_EVENT_ACCEPT);
		EXPECT_EQ(accepted.context, this);
		b = accepted.accepted;
	}

	exs_op_t send(exs_fd_t fd, Memory &memory, int flags = 0)
	{
		return exs_send(fd, memory.handle, memory.bytes.data(), memory.bytes.size(), flags, queue, nullptr);
	}
	exs_op_t recv(exs_fd_t fd, Memory &memory, int flags = 0)
	{
		return exs_recv(fd, memory.handle, memory.bytes.data(), memory.bytes.size(), flags, queue, nullptr);
	}

	exs_qh_t queue = 0;
	std::vector<exs_event> events;
	std::map<int, unsigned> options;
	exs_fd_t listener = 0, a = 0, b = 0;
	sockaddr_in address{};
};

// A client that is not of libexs, over TCP: the frames of src/tcp_link.h, the messages of src/wire.h
class RawClient {
public:
	enum Type : uint8_t { ready = 1, adv = 2, adv_imm = 3, radv = 4, ack = 5, note = 6, revoke = 8, revoked = 9, fin = 10, close = 11 };
	static constexpr uint8_t reply = 4; // flag of close

	struct Message {
		uint8_t type = 0, flags = 0;
		uint32_t id = 0;
		uint64_t length = 0, address = 0;
		uint32_t key = 0, count = 0;
		uint16_t status = 0;
	};

	// opens: the listener has to wait for READY otherwise
	explicit RawClient(const sockaddr_in &to, int type = SOCK_SEQPACKET, bool opens = true) : fd_(::socket(AF_INET, SOCK_STREAM, 0))
	{
		const int buffer = 65536; // not as large as TCP may make it
		::setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof(buffer));
		EXPECT_EQ(::syscall(SYS_connect, fd_, raw(to), sizeof(to)), 0); // past exs-preload
		// version 1, kind, 16 credits, IRD and ORD, 1024 octets of immediate data
		const uint8_t kind = type == SOCK_STREAM ? 2 : 1;
		const std::array<uint8_t, 32> hello{0x4c, 0x45, 0x58, 0x53, 1, kind, 0, 0, 0, 16, 0, 16, 0, 16, 0, 0, 0, 0, 4, 0};
		write(hello.data(), hello.size());
		if (opens)
			say(ready);
	}
	~RawClient() { ::close(fd_); }
	RawClient(const RawClient &) = delete;
	RawClient &operator=(const RawClient &) = delete;

	// Without FIN or RST. False: not permitted.
	bool vanish()
	{
		const int on = 1;
		if (::setsockopt(fd_, IPPROTO_TCP, TCP_REPAIR, &on, sizeof(on)) != 0)
			return false;
		::close(std::exchange(fd_, -1));
		return true;
	}

	// As if its host were cut off: it drops what comes
	void go_deaf() const
	{
		sock_filter drop{.code = BPF_RET | BPF_K, .jt = 0, .jf = 0, .k = 0};
		const sock_fprog program{.len = 1, .filter = &drop};
		EXPECT_EQ(::setsockopt(fd_, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)), 0);
	}

	// Waits for that
	[[nodiscard]] bool is_readable(int ms = patience) const
	{
		pollfd readable{.fd = fd_, .events = POLLIN, .revents = 0};
		return ::poll(&readable, 1, ms) == 1;
	}

	[[nodiscard]] bool is_dropped() const
	{
		char octet = 0;
		return is_readable() && ::recv(fd_, &octet, 1, 0) <= 0;
	}

	// Whatever comes before
	[[nodiscard]] bool ends() const
	{
		std::array<char, 4096> octets{};
		while (is_readable())
			if (::recv(fd_, octets.data(), octets.size(), 0) <= 0)
				return true;
		return false;
	}

	// False: the connection has ended
	bool say(uint8_t type, uint8_t id = 0, uint8_t count = 0) const
	{
		return say(Message{.type = type, .id = id, .count = count});
	}
	bool say(const Message &message, const std::vector<uint8_t> &data = {}) const
	{
		std::vector<uint8_t> bytes(32);
		bytes[0] = message.type;
		bytes[1] = message.flags;
		put(bytes, 2, 2, message.status);
		put(bytes, 4, 4, message.id);
		put(bytes, 8, 8, message.length);
		put(bytes, 16, 8, message.address);
		put(bytes, 24, 4, message.key);
		put(bytes, 28, 4, message.count);
		bytes.insert(bytes.end(), data.begin(), data.end());
		return frame(1, bytes.size(), 0, 0, bytes);
	}
	bool request_read(uint64_t address, uint32_t key, uint32_t length) const { return frame(2, length, address, key, {}); }
	bool answer_read(const std::vector<uint8_t> &data) const { return frame(3, data.size(), 0, 0, data); }

	// The next frame with its kind (0: the hello), which must come
	std::vector<uint8_t> next(uint8_t &kind) const
	{
		std::vector<uint8_t> head(24);
		kind = 0;
		EXPECT_TRUE(read(head.data(), 24));
		const bool is_hello = head[0] == 0x4c;
		std::vector<uint8_t> body(is_hello ? 8 : head[0] == 2 ? 0 : get(head, 4, 4));
		EXPECT_TRUE(read(body.data(), body.size()));
		if (!is_hello)
			kind = head[0];
		return kind == 2 ? head : body;
	}
	Message next_message(uint8_t type) const
	{
		for (uint8_t kind = 0;;) {
			const auto bytes = next(kind);
			if (testing::Test::HasFailure())
				return {};
			if (kind == 1 && bytes[0] == type)
				return {.type = type,
					.flags = bytes[1],
					.id = static_cast<uint32_t>(get(bytes, 4, 4)),
					.length = get(bytes, 8, 8),
					.address = get(bytes, 16, 8),
					.key = static_cast<uint32_t>(get(bytes, 24, 4)),
					.count = static_cast<uint32_t>(get(bytes, 28, 4))};
		}
	}
	void wait_read_request() const
	{
		for (uint8_t kind = 0; kind != 2 && !testing::Test::HasFailure();)
			next(kind);
	}

	// release() sends all that is said from now on
	void hold() { held_.emplace(); }

	// The first octets, and the others when the library has read these
	void release(size_t first)
	{
		const auto held = *std::exchange(held_, std::nullopt);
		first = std::min(first, held.size());
		EXPECT_TRUE(write(held.data(), first));
		const int library = other_end();
		const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(patience);
		int unread = 1;
		while (::ioctl(library, FIONREAD, &unread) == 0 && unread != 0 && std::chrono::steady_clock::now() < deadline)
			std::this_thread::yield();
		EXPECT_EQ(unread, 0);
		EXPECT_TRUE(write(held.data() + first, held.size() - first));
	}

private:
	static void put(std::vector<uint8_t> &bytes, size_t at, size_t size, uint64_t value)
	{
		for (size_t i = size; i-- > 0; value >>= 8)
			bytes[at + i] = static_cast<uint8_t>(value);
	}
	static uint64_t get(const std::vector<uint8_t> &bytes, size_t at, size_t size)
	{
		uint64_t value = 0;
		for (size_t i = 0; i < size; i++)
			value = value << 8 | bytes[at + i];
		return value;
	}
	bool frame(uint8_t kind, uint64_t length, uint64_t address, uint32_t key, const std::vector<uint8_t> &body) const
	{
		std::vector<uint8_t> bytes(24);
		bytes[0] = kind;
		put(bytes, 4, 4, length);
		put(bytes, 8, 8, address);
		put(bytes, 16, 4, key);
		bytes.insert(bytes.end(), body.begin(), body.end());
		return write(bytes.data(), bytes.size());
	}
	// The library's descriptor
	int other_end() const
	{
		sockaddr_in own{}, peer{};
		socklen_t size = sizeof(own);
		::getsockname(fd_, reinterpret_cast<sockaddr *>(&own), &size);
		for (int fd = 3; fd < 1024; fd++, size = sizeof(peer))
			if (::getpeername(fd, reinterpret_cast<sockaddr *>(&peer), &size) == 0 && peer.sin_port == own.sin_port)
				return fd;
		ADD_FAILURE() << "the library has no such connection";
		return -1;
	}
	bool write(const uint8_t *from, size_t size) const
	{
		if (held_) {
			held_->insert(held_->end(), from, from + size);
			return true;
		}
		return ::send(fd_, from, size, MSG_NOSIGNAL) == static_cast<ssize_t>(size);
	}
	bool read(uint8_t *to, size_t size) const
	{
		pollfd readable{.fd = fd_, .events = POLLIN, .revents = 0};
		for (ssize_t got = 0; size != 0; to += got, size -= static_cast<size_t>(got)) {
			if (::poll(&readable, 1, patience) != 1 || (got = ::recv(fd_, to, size, 0)) <= 0)
				return false;
		}
		return true;
	}

	int fd_;
	mutable std::optional<std::vector<uint8_t>> held_;
};

} // namespace exs_test
