// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//
// The library listens on the loopback interface and has operations under way; the input is what a peer sends. Whatever
// it is, the operations end, and nothing behind the memory that is registered is touched.
#include "../include/exs.h"
#include "../src/wire.h"

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace {

constexpr size_t size_of_memory = 3000;
constexpr int patience = 20000; // ms

void require(bool holds, int line = __builtin_LINE())
{
	if (holds)
		return;
	std::fprintf(stderr, "ERROR: check in line %d failed: %s\n", line, std::strerror(errno));
	std::abort();
}

struct Target {
	Target()
	{
		require(exs_init(EXS_VERSION) == 0);
		queue = exs_qcreate();
		// of its own: what is behind it is not ours
		memory.reset(new uint8_t[size_of_memory]);
		handle = exs_mregister(memory.get(), size_of_memory, EXS_MEM_SEND | EXS_MEM_RECV);
		for (const int type : {SOCK_SEQPACKET, SOCK_STREAM}) {
			const exs_fd_t fd = exs_socket(AF_INET, type, EXS_PROTO_TCP);
			sockaddr_in &address = addresses[type == SOCK_STREAM];
			address.sin_family = AF_INET;
			address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
			socklen_t length = sizeof(address);
			exs_fcntl(fd, EXS_SET, EXS_CLOSE_MS, 1);
			exs_fcntl(fd, EXS_SET, EXS_RECV_CREDITS, 3);
			require(exs_bind(fd, reinterpret_cast<sockaddr *>(&address), length) == 0 && exs_listen(fd, 100) == 0);
			require(exs_getsockname(fd, reinterpret_cast<sockaddr *>(&address), &length) == 0);
			listeners[type == SOCK_STREAM] = fd;
		}
	}
	exs_event wait(exs_op_t op, int line = __builtin_LINE())
	{
		exs_event event{};
		do {
			int count = -1;
			do
				count = exs_qdequeue(queue, &event, 1, patience);
			while (count < 0 && errno == EINTR); // by libFuzzer's alarm
			require(count == 1, line);
		} while (event.op != op || event.type == EXS_EVENT_NOTE);
		return event;
	}

	exs_qh_t queue;
	std::unique_ptr<uint8_t[]> memory;
	exs_mh_t handle;
	std::array<exs_fd_t, 2> listeners{};
	std::array<sockaddr_in, 2> addresses{};
};

Target &target()
{
	static auto *const instance = new Target;
	return *instance;
}

// A message in its frame
std::array<uint8_t, 24 + libexs::wire::message_size> framed(const libexs::wire::Message &message)
{
	std::array<uint8_t, 24 + libexs::wire::message_size> frame{1, 0, 0, 0, 0, 0, 0, libexs::wire::message_size};
	const auto bytes = libexs::wire::encode(message);
	std::memcpy(&frame[24], bytes.data(), bytes.size());
	return frame;
}

void write_all(int fd, const void *data, size_t size)
{
	static_cast<void>(!::send(fd, data, size, MSG_NOSIGNAL));
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	Target &all = target();
	const size_t stream = data[0] & 1;
	const int peer = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	const linger reset{.l_onoff = 1, .l_linger = 0}; // no TIME_WAIT
	::setsockopt(peer, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	require(::connect(peer, reinterpret_cast<sockaddr *>(&all.addresses[stream]), sizeof(sockaddr_in)) == 0);
	if ((data[0] & 2) != 0) {
		// as it comes
		write_all(peer, data + 1, size - 1);
		pollfd ready{.fd = peer, .events = POLLIN, .revents = 0};
		::poll(&ready, 1, 1);
		::close(peer);
		return 0;
	}
	const auto hello = libexs::wire::encode(libexs::wire::Hello{
		.kind = stream != 0 ? libexs::wire::Kind::stream : libexs::wire::Kind::seqpacket, .credits = 4, .ird = 4, .ord = 4, .immediate = 2000});
	write_all(peer, hello.data(), hello.size());
	const auto ready = framed({.type = libexs::wire::Type::ready});
	write_all(peer, ready.data(), ready.size());
	const exs_fd_t fd = all.wait(exs_accept(all.listeners[stream], all.queue, nullptr)).accepted;
	for (int i = 0; i < 3; i++) {
		exs_recv(fd, all.handle, all.memory.get(), size_of_memory, (data[0] & 4) != 0 ? EXS_PERSISTENT : 0, all.queue, nullptr);
		exs_send(fd, all.handle, all.memory.get(), i == 0 ? 100 : size_of_memory,
			 (data[0] & 8) != 0 ? EXS_PERSISTENT | EXS_NOTIFY : 0, all.queue, nullptr);
	}
	write_all(peer, data + 1, size - 1);
	if ((data[0] & 16) != 0)
		::shutdown(peer, SHUT_WR);
	if ((data[0] & 32) != 0)
		::close(peer);
	all.wait(exs_close(fd, all.queue, nullptr));
	if ((data[0] & 32) == 0)
		::close(peer);
	return 0;
}
