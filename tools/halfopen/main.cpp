// SPDX-License-Identifier: GPL-2.0
// halfopen: many initiators at one MPA listener that never finish connection setup: a third each sends
// nothing, half a Request, or a Request and no RTR. Over SCTP a third sends an Initiate behind a gap, and a
// third an Initiate and no segment.
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
#include <linux/sctp.h>
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
	bool sctp = false;
	uint16_t streams = 1; // of SCTP, offered each way
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

// The DDP-SSN, then an Enhanced Initiate, A=0, IRD 8, ORD 8 (RFC 5043 section 5, RFC 6581 section 7)
constexpr std::array<uint8_t, 8> initiate = {0, 0, 0, 5, 0, 8, 0, 8};
constexpr std::array<uint8_t, 8> initiate_behind_gap = {0, 1, 0, 5, 0, 8, 0, 8};

std::span<const uint8_t> part_of(size_t number, const Options &options)
{
	const size_t part = options.all_request ? 0 : number % 3;
	if (part == 1)
		return {};
	if (options.sctp)
		return part == 0 ? initiate : initiate_behind_gap;
	return std::span(request).first(part == 0 ? request.size() : 10);
}

class Peer {
public:
	Peer(size_t number, const Options &options)
		: part_(part_of(number, options)), sctp_(options.sctp), streams_(options.streams)
	{
	}

	void connect(const sockaddr_in &address, const sockaddr_in &source);
	[[nodiscard]] pollfd wants() const
	{
		return {.fd = socket_.get(), .events = static_cast<short>(connected_ ? POLLIN : POLLOUT), .revents = 0};
	}
	// Returns false if the initiator has to connect again.
	bool handle(short revents, Counts &counts);
	void end() { socket_ = Descriptor(); }

private:
	void make_socket();
	bool finish_connect(Counts &counts);
	[[nodiscard]] bool send_part() const;

	std::span<const uint8_t> part_;
	bool sctp_;
	uint16_t streams_;
	Descriptor socket_;
	bool connected_ = false;
};

template <typename T> void set_option(const Descriptor &socket, int level, int name, const T &value, const char *what)
{
	if (::setsockopt(socket.get(), level, name, &value, sizeof(value)) != 0)
		throw_errno(what);
}

void Peer::make_socket()
{
	socket_ = Descriptor(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, sctp_ ? IPPROTO_SCTP : 0));
	if (socket_.get() < 0)
		throw_errno("socket");
	if (!sctp_) {
		set_option(socket_, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1, "setsockopt IP_BIND_ADDRESS_NO_PORT");
		return;
	}
	set_option(socket_, IPPROTO_SCTP, SCTP_ADAPTATION_LAYER, sctp_setadaptation{.ssb_adaptation_ind = 1},
		   "setsockopt SCTP_ADAPTATION_LAYER");
	set_option(socket_, IPPROTO_SCTP, SCTP_INITMSG,
		   sctp_initmsg{.sinit_num_ostreams = streams_, .sinit_max_instreams = streams_,
				.sinit_max_attempts = 0, .sinit_max_init_timeo = 0},
		   "setsockopt SCTP_INITMSG");
	set_option(socket_, IPPROTO_SCTP, SCTP_NODELAY, 1, "setsockopt SCTP_NODELAY");
}

// One whole message; over SCTP a chunk of RFC 5043's session control
bool Peer::send_part() const
{
	if (part_.empty())
		return true;
	iovec data{.iov_base = const_cast<uint8_t *>(part_.data()), .iov_len = part_.size()};
	alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(sctp_sndinfo))> control{};
	msghdr message{};
	message.msg_iov = &data;
	message.msg_iovlen = 1;
	if (sctp_) {
		message.msg_control = control.data();
		message.msg_controllen = control.size();
		cmsghdr *header = CMSG_FIRSTHDR(&message);
		header->cmsg_level = IPPROTO_SCTP;
		header->cmsg_type = SCTP_SNDINFO;
		header->cmsg_len = CMSG_LEN(sizeof(sctp_sndinfo));
		sctp_sndinfo info{};
		info.snd_flags = SCTP_UNORDERED;
		info.snd_ppid = htonl(17);
		std::memcpy(CMSG_DATA(header), &info, sizeof(info));
	}
	return ::sendmsg(socket_.get(), &message, MSG_NOSIGNAL) == static_cast<ssize_t>(part_.size());
}

void Peer::connect(const sockaddr_in &address, const sockaddr_in &source)
{
	connected_ = false;
	make_socket();
	if (::bind(socket_.get(), reinterpret_cast<const sockaddr *>(&source), sizeof(source)) != 0)
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
		throw_errno("getsockopt SO_ERROR");
	if (error == ECONNREFUSED) {
		counts.refused++;
		end();
		return true;
	}
	if (error != 0)
		return false;
	connected_ = true;
	counts.connected++;
	return send_part();
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
		peers.emplace_back(i, options).connect(address, source);

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
	CLI::App app{"Connects many initiators to one MPA listener that never finish: a third each sends nothing,\n"
		     "half a Request, or a Request and no RTR; over SCTP an Initiate after a gap, or an\n"
		     "Initiate and no segment. A closed initiator connects again.\n\n"
		     "Exit status: 0 when the time is up, 1 a system error."};
	app.add_option("ADDR", options.address, "IPv4 address of the listener")->required();
	app.add_option("PORT", options.port, "port of the listener")->required();
	app.add_option("--source", options.source, "IPv4 address to connect from")->capture_default_str();
	app.add_option("--peers", options.peers, "number of initiators at a time")->check(CLI::Range(1, 30000))->capture_default_str();
	app.add_flag("--request", options.all_request, "all initiators send a Request and no RTR");
	app.add_flag("--sctp", options.sctp, "connect over SCTP");
	app.add_option("--streams", options.streams, "SCTP streams to offer each way; the first is used")
		->check(CLI::Range(1, UINT16_MAX))
		->capture_default_str();
	app.add_option("--seconds", options.seconds, "duration in seconds")->capture_default_str();
	CLI11_PARSE(app, argc, argv);
	try {
		run(options);
	} catch (const std::exception &error) {
		fmt::print(stderr, "halfopen: {}\n", error.what());
		return 1;
	}
	return 0;
}
