// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
// A UDP socket: bundles of datagrams in both directions, and what the network reports
#pragma once

#include "address.h"

#include <sys/uio.h>

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <system_error>
#include <utility>

namespace libdgm {

[[noreturn]] inline void throw_errno(int error, const char *what = "")
{
	throw std::system_error(error, std::generic_category(), what);
}

// Owns a file descriptor; a negative one is none
class Descriptor {
public:
	Descriptor() = default;
	explicit Descriptor(int fd) : fd_(fd) {}
	Descriptor(Descriptor &&other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
	Descriptor &operator=(Descriptor &&other) noexcept
	{
		std::swap(fd_, other.fd_);
		return *this;
	}
	~Descriptor();
	[[nodiscard]] int get() const { return fd_; }
	int release() { return std::exchange(fd_, -1); }

private:
	int fd_ = -1;
};

// An entry of the error queue
struct NetworkError {
	int error;
	dg_source peer;
	uint32_t mtu; // if error is EMSGSIZE
};

struct UdpOptions {
	bool gro = true;
	bool fragment = false;
	bool target = false; // Arrival::target is wanted
};

struct Arrival {
	std::optional<dg_source> source; // none: the source of an IPv6 packet is an IPv4 address
	std::optional<dg_source> target; // the address that it was sent to
};

class Udp {
public:
	static constexpr size_t bundle_max = 65507; // octets of datagrams in one call
	static constexpr size_t segments_max = 128; // UDP_MAX_SEGMENTS

	Udp(const sockaddr *address, socklen_t length, const UdpOptions &options);
	// Throws unless it is a bound UDP socket. It stays the program's until own()
	Udp(int fd, const UdpOptions &options);
	~Udp();

	[[nodiscard]] int fd() const { return fd_.get(); }
	[[nodiscard]] int family() const { return family_; }
	[[nodiscard]] dg_source local() const;
	void own() { owned_ = true; }

	// Calls receive(arrival, datagram) for each datagram of one system call; returns how many there were, 0: none
	size_t receive(const std::function<void(const Arrival &, std::span<const uint8_t>)> &receive);
	// Calls report(error) for all that the error queue has
	void drain_errors(const std::function<void(const NetworkError &)> &report);
	// One system call; segment != 0: the length of each datagram but the last. Returns 0 or an errno value
	int send(const dg_source &peer, std::span<iovec> parts, size_t segment) const;
	// One datagram from an own address
	int answer(const dg_source &peer, const dg_source &from, std::span<uint8_t> datagram) const;
	int membership(const dg_source &group, unsigned interface, bool join) const;
	// MTU of the path as the system knows it
	[[nodiscard]] uint32_t route_mtu(const dg_source &peer) const;

	[[nodiscard]] uint64_t overflows() const { return overflows_; }

private:
	struct Batch;
	void configure(const UdpOptions &options);
	struct Seen {
		size_t segment; // set if the kernel has joined datagrams
		bool v6;	// they came with IPv6
		std::optional<dg_source> target;
	};
	void look_at(const msghdr &header, Seen &seen);
	int send_with(const dg_source &peer, msghdr &header) const;

	Descriptor fd_;
	bool owned_ = true;
	int family_ = AF_UNSPEC;
	std::unique_ptr<Batch> batch_;
	uint32_t last_overflow_ = 0;
	uint64_t overflows_ = 0;
};

} // namespace libdgm
