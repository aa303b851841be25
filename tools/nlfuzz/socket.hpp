// SPDX-License-Identifier: GPL-2.0
// A generic netlink socket, and the family rdma_mpa.
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

	// What follows the header of generic netlink
	using Handler = std::function<void(const nlmsghdr &, std::span<const uint8_t> attributes)>;

	// Sends a request and hands over its answers until it is acknowledged or at its end. Throws
	// Refused. Returns false if a dump was not of one piece (NLM_F_DUMP_INTR).
	bool request(uint16_t family, uint8_t command, uint16_t flags, std::span<const uint8_t> attributes,
		     const Handler &handler);
	// The first half of that, and the second; how many datagrams came
	uint32_t send_request(uint16_t family, uint8_t command, uint16_t flags, std::span<const uint8_t> attributes);
	unsigned take_answers(uint32_t seq, const Handler &handler, bool &whole);

	void join(unsigned group);

	// As they are
	void send_raw(std::span<const uint8_t> bytes);
	// Takes what is there, with a buffer of that size; how much it was
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

// The first who asks loads the module
Family find_family(Socket &socket, std::string_view name);

} // namespace nlfuzz
