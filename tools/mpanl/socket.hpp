// SPDX-License-Identifier: GPL-2.0
// A NETLINK_RDMA socket.
#pragma once

#include <chrono>
#include <functional>
#include <stdexcept>
#include <string>

#include "attributes.hpp"

namespace mpanl {

// The kernel refused a request
class Refused : public std::runtime_error {
public:
	Refused(int error, const std::string &why);

	const int error;
};

class Socket {
public:
	Socket();
	~Socket();
	Socket(const Socket &) = delete;
	Socket &operator=(const Socket &) = delete;

	using Handler = std::function<void(const nlmsghdr &, std::span<const uint8_t> attributes)>;

	// Sends a request and hands over its answers until it is acknowledged or at its end. Throws
	// Refused. Returns false if a dump was not of one piece (NLM_F_DUMP_INTR).
	bool request(Message &message, const Handler &handler);

	void join(unsigned group);

	// One datagram; empty if none comes in time
	Bytes receive(std::chrono::milliseconds timeout);

	// As they are
	void send_raw(std::span<const uint8_t> bytes);
	// Takes what is there, with a buffer of that size; how much it was
	size_t drain(size_t buffer);

	int fd() const
	{
		return fd_;
	}

private:
	int fd_;
	uint32_t seq_ = 1;
};

// Calls the handler for each message of a datagram
void for_each(std::span<const uint8_t> datagram, const Socket::Handler &handler);

} // namespace mpanl
