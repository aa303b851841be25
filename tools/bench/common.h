/* SPDX-License-Identifier: GPL-2.0 */
// What nodes of both transports have in common.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <netinet/in.h>

#include "../common/descriptor.h"

namespace bench {

using Clock = std::chrono::steady_clock;
using Microseconds = std::chrono::duration<double, std::micro>;

class SystemError : public std::runtime_error {
public:
	explicit SystemError(std::string_view what);
};

// A network namespace (a name of ip netns, or empty for the caller's) and an IPv4 address in it
struct Place {
	std::string netns;
	std::string address;
};

// NETNS=ADDRESS or ADDRESS
Place parse_place(const std::string &text);

// The calling thread alone
void enter_netns(const std::string &name);

sockaddr_in socket_address(const std::string &address, uint16_t port);

// What one node has to do: be connected to by so many, connect to each of those so often.
struct Job {
	Place place;
	std::vector<std::string> targets;
	unsigned per_target = 1;
	unsigned incoming = 0;
	uint16_t port = 0;
	std::chrono::milliseconds timeout{60000};
};

struct Result {
	std::vector<double> latencies; // of those that were established, in microseconds
	unsigned incoming = 0;	       // established
	unsigned failed = 0;
	Clock::time_point start;
	Clock::time_point end; // of the last one, either way
};

// A node belongs to one thread, which is in its namespace. Each of the functions is for all its
// connections; none waits for more than the job's timeout.
class Node {
public:
	virtual ~Node() = default;
	virtual void listen() = 0;
	// All that comes before the first packet of a connection
	virtual void prepare() = 0;
	virtual Result connect() = 0;
	virtual void close() = 0;
};

std::unique_ptr<Node> make_rdma_node(const Job &job);
std::unique_ptr<Node> make_tcp_node(const Job &job);

// Takes connections and leaves them alone until it ends
std::unique_ptr<Node> make_tcp_sink(const Job &job);

} // namespace bench
