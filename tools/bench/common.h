/* SPDX-License-Identifier: GPL-2.0 */
// Declarations for the nodes of both transports.
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

// Moves only the calling thread
void enter_netns(const std::string &name);

sockaddr_in socket_address(const std::string &address, uint16_t port);

// The work of one node: take `incoming` connections, connect to each target `per_target` times.
struct Job {
	Place place;
	std::vector<std::string> targets;
	unsigned per_target = 1;
	unsigned incoming = 0;
	unsigned at_once = 0; // limit of connections in setup, 0 for none
	uint16_t port = 0;
	std::chrono::milliseconds timeout{60000};
};

struct Result {
	std::vector<double> latencies; // of established connections, in microseconds
	unsigned incoming = 0;	       // established
	unsigned failed = 0;
	Clock::time_point start;
	Clock::time_point end; // of the last connection, established or failed
};

// A node belongs to one thread, which is in the node's namespace. Each function handles all of the
// node's connections, and waits no longer than the job's timeout.
class Node {
public:
	virtual ~Node() = default;
	virtual void listen() = 0;
	// Does all work that comes before the first packet of a connection
	virtual void prepare() = 0;
	virtual Result connect() = 0;
	virtual void close() = 0;
};

std::unique_ptr<Node> make_rdma_node(const Job &job);
std::unique_ptr<Node> make_tcp_node(const Job &job);

// Accepts connections and keeps them, idle, until it ends
std::unique_ptr<Node> make_tcp_sink(const Job &job);

} // namespace bench
