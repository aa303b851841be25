// SPDX-License-Identifier: GPL-2.0
// A generic netlink socket, and the family rdma-mpa.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>

#include "attributes.hpp"

namespace nlfuzz {

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

	// Takes the bytes after the header of generic netlink
	using Handler = std::function<void(const nlmsghdr &, std::span<const uint8_t> attributes)>;

	// Sends a request and passes its answers on until the acknowledgment or the end of the dump. Throws
	// Refused. Returns false if the list changed during a dump (NLM_F_DUMP_INTR).
	bool request(uint16_t family, uint8_t command, uint16_t flags, std::span<const uint8_t> attributes,
		     const Handler &handler);
	// The two halves of request(); the second returns the number of datagrams received
	uint32_t send_request(uint16_t family, uint8_t command, uint16_t flags, std::span<const uint8_t> attributes);
	unsigned take_answers(uint32_t seq, const Handler &handler, bool &whole);

	void join(unsigned group);

	// Sends the bytes without change
	void send_raw(std::span<const uint8_t> bytes);
	// Receives all that has come, with a buffer of this size; returns the number of bytes
	size_t drain(size_t buffer);

private:
	Bytes receive(std::chrono::milliseconds timeout);

	int fd_;
	uint32_t seq_ = 1;
};

struct Family {
	uint16_t id = 0;
	std::map<std::string, uint32_t, std::less<>> groups; // number by name
};

// The first call loads the module
Family find_family(Socket &socket, std::string_view name);

} // namespace nlfuzz
