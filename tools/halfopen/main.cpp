// SPDX-License-Identifier: GPL-2.0
// halfopen: many initiators at one MPA listener that never finish connection setup: a third each sends
// nothing, half a Request, or a Request and no RTR.
//
// An initiator that is closed connects again, so that their number stays the same until the time is
// up. Received bytes are read and dropped.
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "../common/descriptor.h"

namespace {

using Clock = std::chrono::steady_clock;

struct Options {
	std::string address;
	std::string source = "0.0.0.0";
	uint16_t port = 0;
	size_t peers = 999;
	double seconds = 10;
	bool all_request = false;
};

struct Counts {
	size_t connected = 0;
	size_t closed = 0;  // by the listener's side
	size_t refused = 0; // there is no listener any more
};

[[noreturn]] void throw_errno(const char *what)
{
	throw std::runtime_error(fmt::format("{}: {}", what, std::strerror(errno)));
}

// Rev 2, peer-to-peer, RTR by Write; IRD 8, ORD 8 (RFC 6581 sections 6 and 9)
constexpr std::array<uint8_t, 24> request = {'M', 'P', 'A', ' ', 'I', 'D',  ' ', 'R', 'e',  'q',  ' ',  'F',
					     'r', 'a', 'm', 'e', 0x10, 0x02, 0,   4,   0x80, 0x08, 0x80, 0x08};

std::span<const uint8_t> part_of(size_t number, bool all_request)
{
	constexpr std::array<size_t, 3> lengths = {request.size(), 0, 10};
	return std::span(request).first(lengths[all_request ? 0 : number % lengths.size()]);
}

class Peer {
public:
	Peer(size_t number, bool all_request) : part_(part_of(number, all_request)) {}

	void connect(const sockaddr_in &address, const sockaddr_in &source);
	[[nodiscard]] pollfd wants() const
	{
		return {.fd = socket_.get(), .events = static_cast<short>(connected_ ? POLLIN : POLLOUT), .revents = 0};
	}
	// Returns false if the initiator has to connect again.
	bool handle(short revents, Counts &counts);
	void end() { socket_ = Descriptor(); }

private:
	bool finish_connect(Counts &counts);

	std::span<const uint8_t> part_;
	Descriptor socket_;
	bool connected_ = false;
};

void Peer::connect(const sockaddr_in &address, const sockaddr_in &source)
{
	const int late_port = 1;
	connected_ = false;
	socket_ = Descriptor(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
	if (socket_.get() < 0)
		throw_errno("socket");
	if (::setsockopt(socket_.get(), IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &late_port, sizeof(late_port)) != 0 ||
	    ::bind(socket_.get(), reinterpret_cast<const sockaddr *>(&source), sizeof(source)) != 0)
		throw_errno("bind");
	if (::connect(socket_.get(), reinterpret_cast<const sockaddr *>(&address), sizeof(address)) != 0 &&
	    errno != EINPROGRESS)
		throw_errno("connect");
}

bool Peer::finish_connect(Counts &counts)
{
	int error = 0;
	socklen_t size = sizeof(error);
	if (::getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0)
		throw_errno("getsockopt");
	if (error == ECONNREFUSED) {
		counts.refused++;
		end();
		return true;
	}
	if (error != 0)
		return false;
	connected_ = true;
	counts.connected++;
	return part_.empty() || ::send(socket_.get(), part_.data(), part_.size(), MSG_NOSIGNAL) ==
					static_cast<ssize_t>(part_.size());
}

bool Peer::handle(short revents, Counts &counts)
{
	if (revents == 0)
		return true;
	if (!connected_)
		return finish_connect(counts);
	std::array<uint8_t, 512> sink{};
	if (::recv(socket_.get(), sink.data(), sink.size(), 0) > 0)
		return true;
	counts.closed++;
	return false;
}

sockaddr_in socket_address(const std::string &text, uint16_t port)
{
	sockaddr_in address{};
	address.sin_family = AF_INET;
	address.sin_port = htons(port);
	if (::inet_pton(AF_INET, text.c_str(), &address.sin_addr) != 1)
		throw std::runtime_error(fmt::format("not an IPv4 address: {}", text));
	return address;
}

void allow_descriptors(size_t count)
{
	const rlimit limit{.rlim_cur = count + 32, .rlim_max = count + 32};
	if (::setrlimit(RLIMIT_NOFILE, &limit) != 0)
		throw_errno("setrlimit");
}

void run(const Options &options)
{
	const sockaddr_in address = socket_address(options.address, options.port);
	const sockaddr_in source = socket_address(options.source, 0);
	const auto end = Clock::now() + std::chrono::duration<double>(options.seconds);
	allow_descriptors(options.peers);

	Counts counts;
	std::vector<Peer> peers;
	for (size_t i = 0; i < options.peers; i++)
		peers.emplace_back(i, options.all_request).connect(address, source);

	bool told = false;
	std::vector<pollfd> set(peers.size());
	while (Clock::now() < end) {
		for (size_t i = 0; i < peers.size(); i++)
			set[i] = peers[i].wants();
		if (::poll(set.data(), set.size(), 100) < 0 && errno != EINTR)
			throw_errno("poll");
		for (size_t i = 0; i < peers.size(); i++) {
			if (!peers[i].handle(set[i].revents, counts))
				peers[i].connect(address, source);
		}
		if (!told && counts.connected >= peers.size()) {
			told = true;
			fmt::print("{} have connected\n", counts.connected);
			std::fflush(stdout);
		}
	}
	fmt::print("{} connections were made, {} were closed by the other side, {} refused\n", counts.connected,
		   counts.closed, counts.refused);
}

} // namespace

int main(int argc, char **argv)
{
	Options options;
	CLI::App app{"Many initiators at one MPA listener that never finish: a third each sends nothing,\n"
		     "half a Request, or a Request and no RTR. A closed initiator connects again.\n\n"
		     "Exit status: 0 when the time is up, 1 a system error."};
	app.add_option("ADDR", options.address, "IPv4 address of the listener")->required();
	app.add_option("PORT", options.port, "its TCP port")->required();
	app.add_option("--source", options.source, "IPv4 address to connect from")->capture_default_str();
	app.add_option("--peers", options.peers, "how many at a time")->check(CLI::Range(1, 30000))->capture_default_str();
	app.add_flag("--request", options.all_request, "all of them send a Request and no RTR");
	app.add_option("--seconds", options.seconds, "for how long")->capture_default_str();
	CLI11_PARSE(app, argc, argv);
	try {
		run(options);
	} catch (const std::exception &error) {
		fmt::print(stderr, "halfopen: {}\n", error.what());
		return 1;
	}
	return 0;
}
