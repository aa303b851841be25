// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
// dgm_bench latency|throughput TRANSPORT NEAR FAR OCTETS COUNT
// dgm_bench memory TRANSPORT CLIENTS
//
// Exchanges messages between the network namespaces NEAR (10.77.0.1) and FAR (10.77.0.2), in one process, and prints a line
// of JSON. TRANSPORT is dgm (Write-Record), dgm-single (each datagram by a system call of its own), udp (datagrams of 1472
// octets) or tcp. Latency is half of a round trip, in us; throughput is of valid octets, from the first send until the last
// of them is there. The receiver's socket holds all of it, so that nothing is lost. memory counts octets of one host that
// so many clients have sent a message to, without the zone.
#include <dgm.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace {

constexpr size_t most = 1 << 20;
constexpr int patience = 20000; // ms, for what must come
using Clock = std::chrono::steady_clock;

template <typename T> T checked(T value, const char *what)
{
	if (value < 0)
		throw std::system_error(errno, std::generic_category(), what);
	return value;
}

class Descriptor {
public:
	explicit Descriptor(int fd, const char *what) : fd_(checked(fd, what)) {}
	Descriptor(Descriptor &&other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
	~Descriptor()
	{
		if (fd_ >= 0)
			::close(fd_);
	}
	operator int() const { return fd_; }
	int release() { return std::exchange(fd_, -1); }

private:
	int fd_;
};

sockaddr_in address_of(const char *host, uint16_t port)
{
	sockaddr_in address{};
	address.sin_family = AF_INET;
	address.sin_port = htons(port);
	::inet_pton(AF_INET, host, &address.sin_addr);
	return address;
}

const sockaddr *any(const sockaddr_in &address)
{
	return reinterpret_cast<const sockaddr *>(&address);
}

// Where this end lives. A socket stays in the namespace that it was made in.
struct Place {
	std::string netns, host;
};

void enter(const Place &place)
{
	if (place.netns.empty())
		return;
	const Descriptor netns(::open(("/run/netns/" + place.netns).c_str(), O_RDONLY), "netns");
	checked(::setns(netns, CLONE_NEWNET), "setns");
}

// Behind dgm_open(), which sets a length of its own
void hold_all(int socket)
{
	const int enough = 1 << 29;
	checked(::setsockopt(socket, SOL_SOCKET, SO_RCVBUFFORCE, &enough, sizeof(enough)), "SO_RCVBUFFORCE");
}

Descriptor bound_socket(const Place &place, int type, uint16_t port)
{
	enter(place);
	Descriptor fd(::socket(AF_INET, type | SOCK_CLOEXEC, 0), "socket");
	const int one = 1;
	::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	const auto address = address_of(place.host.c_str(), port);
	checked(::bind(fd, any(address), sizeof(address)), "bind");
	return fd;
}

struct End {
	virtual ~End() = default;
	[[nodiscard]] virtual std::string why_lost() const { return {}; }
	virtual void send(const char *data, size_t size) = 0;
	// Octets of the next message, or part of one, that are valid; 0 after so many ms without any
	virtual size_t receive(int timeout) = 0;
};

struct DgmEnd : End {
	static constexpr uint32_t number = 0x2077, key = 0x77;
	DgmEnd(const Place &place, uint16_t port, sockaddr_in other, uint32_t flags)
		: memory(most), peer(other)
	{
		dgm_options options;
		dgm_defaults(&options);
		options.flags = DGM_NO_THREAD | flags;
		options.socket = bound_socket(place, SOCK_DGRAM, port).release();
		endpoint.reset(dgm_open(nullptr, 0, &options));
		checked(endpoint ? 0 : -1, "dgm_open");
		dgm_zone_options zone{ number, key, DGM_PARTIAL, 0 };
		opened = dgm_zone_open(endpoint.get(), memory.data(), memory.size(), &zone);
		checked(opened ? 0 : -1, "dgm_zone_open");
		checked(dgm_allow_any(opened), "dgm_allow_any");
		hold_all(dgm_socket(endpoint.get()));
	}
	void send(const char *data, size_t size) override
	{
		checked(dgm_write(endpoint.get(), any(peer), sizeof(peer), number, key, 0, data, size, nullptr), "dgm_write");
	}
	size_t receive(int timeout) override
	{
		dgm_event event;
		if (checked(dgm_poll(endpoint.get(), &event, 1, timeout), "dgm_poll") == 0)
			return 0;
		return event.type == DGM_RECORD ? event.length : 0;
	}
	[[nodiscard]] std::string why_lost() const override
	{
		std::string all;
		for (unsigned i = 0; dgm_counter_name(i) != nullptr; i++)
			if (const uint64_t value = dgm_counter(endpoint.get(), i); value != 0)
				all += std::string(" ") + dgm_counter_name(i) + ' ' + std::to_string(value);
		return all;
	}
	struct Close {
		void operator()(dgm_endpoint *e) const { dgm_close(e); }
	};
	std::vector<char> memory;
	sockaddr_in peer;
	std::unique_ptr<dgm_endpoint, Close> endpoint;
	dgm_zone *opened = nullptr;
};

struct SocketEnd : End {
	explicit SocketEnd(Descriptor socket, size_t longest) : fd(std::move(socket)), piece(longest), memory(most) {}
	void send(const char *data, size_t size) override
	{
		for (size_t sent = 0; sent < size;)
			sent += static_cast<size_t>(checked(::send(fd, data + sent, std::min(size - sent, piece), 0), "send"));
	}
	size_t receive(int timeout) override
	{
		pollfd wait{ fd, POLLIN, 0 };
		if (checked(::poll(&wait, 1, timeout), "poll") == 0)
			return 0;
		return static_cast<size_t>(checked(::recv(fd, memory.data(), memory.size(), 0), "recv"));
	}
	Descriptor fd;
	size_t piece;
	std::vector<char> memory;
};

using Ends = std::pair<std::unique_ptr<End>, std::unique_ptr<End>>;

Ends connect_ends(const std::string &transport, const Place &near, const Place &far)
{
	constexpr uint16_t port = 7801;
	const auto here = address_of(near.host.c_str(), port), there = address_of(far.host.c_str(), port + 1);
	if (transport.starts_with("dgm")) {
		const uint32_t flags = transport == "dgm" ? 0 : DGM_NO_SEGMENT | DGM_NO_GRO;
		return { std::make_unique<DgmEnd>(near, port, there, flags), std::make_unique<DgmEnd>(far, port + 1, here, flags) };
	}
	if (transport == "udp") {
		auto a = bound_socket(near, SOCK_DGRAM, port), b = bound_socket(far, SOCK_DGRAM, port + 1);
		checked(::connect(a, any(there), sizeof(there)), "connect");
		checked(::connect(b, any(here), sizeof(here)), "connect");
		hold_all(a);
		hold_all(b);
		return { std::make_unique<SocketEnd>(std::move(a), 1472), std::make_unique<SocketEnd>(std::move(b), 1472) };
	}
	if (transport != "tcp")
		throw std::runtime_error("unknown transport: " + transport);
	const auto listener = bound_socket(far, SOCK_STREAM, port + 1);
	checked(::listen(listener, 1), "listen");
	auto a = bound_socket(near, SOCK_STREAM, port);
	checked(::connect(a, any(there), sizeof(there)), "connect");
	Descriptor b(::accept(listener, nullptr, nullptr), "accept");
	const int one = 1;
	for (const int fd : { static_cast<int>(a), static_cast<int>(b) })
		checked(::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)), "TCP_NODELAY");
	return { std::make_unique<SocketEnd>(std::move(a), most), std::make_unique<SocketEnd>(std::move(b), most) };
}

// Returns how many of so many octets came
size_t receive_all(End &end, size_t octets, int timeout)
{
	size_t come = 0;
	while (come < octets) {
		const size_t part = end.receive(timeout);
		if (part == 0)
			break;
		come += part;
	}
	return come;
}

double microseconds(Clock::duration time)
{
	return std::chrono::duration<double, std::micro>(time).count();
}

double latency(End &near, End &far, size_t octets, int count)
{
	const std::vector<char> data(octets, 'x');
	std::thread echo([&] {
		for (int i = 0; i < count && receive_all(far, octets, patience) == octets; i++)
			far.send(data.data(), octets);
	});
	std::vector<double> times;
	for (int i = 0; i < count; i++) {
		const auto begin = Clock::now();
		near.send(data.data(), octets);
		if (receive_all(near, octets, patience) != octets)
			throw std::runtime_error("the peer did not answer");
		times.push_back(microseconds(Clock::now() - begin) / 2);
	}
	echo.join();
	std::ranges::nth_element(times, times.begin() + count / 2);
	return times[static_cast<size_t>(count) / 2];
}

struct Flow {
	double mib_s, valid;
};

Flow throughput(End &near, End &far, size_t octets, int count)
{
	const std::vector<char> data(octets, 'x');
	const size_t all = octets * static_cast<size_t>(count);
	size_t come = 0;
	auto last = Clock::now();
	const auto begin = last;
	std::thread receiver([&] {
		while (come < all) {
			const size_t part = far.receive(come == 0 ? patience : 1000);
			if (part == 0)
				break;
			come += part;
			last = Clock::now();
		}
	});
	for (int i = 0; i < count; i++)
		near.send(data.data(), octets);
	receiver.join();
	return { static_cast<double>(come) / (1 << 20) / (microseconds(last - begin) / 1e6),
		 static_cast<double>(come) / static_cast<double>(all) };
}

// Memory of the process and of the kernel's objects and sockets, in octets
double used_memory()
{
	double kib = 0;
	std::string word;
	for (std::ifstream status("/proc/self/status"); status >> word;)
		if (double value; word == "VmRSS:" && status >> value)
			kib += value;
	for (std::ifstream meminfo("/proc/meminfo"); meminfo >> word;)
		if (double value; word == "Slab:" && meminfo >> value)
			kib += value;
	return kib * 1024;
}

// Clients of datagrams come and go, as the server has nothing of theirs that they need; both ends of TCP are counted
double memory(const std::string &transport, int clients)
{
	const Place here{ "", "127.0.0.1" };
	const std::vector<char> data(64, 'x');
	const auto there = address_of("127.0.0.1", 7801);
	const double before = used_memory();
	std::unique_ptr<DgmEnd> server;
	std::vector<Descriptor> connections;
	std::unique_ptr<Descriptor> listener;
	if (transport == "dgm") {
		server = std::make_unique<DgmEnd>(here, 7801, there, 0);
	} else {
		listener = std::make_unique<Descriptor>(bound_socket(here, SOCK_STREAM, 7801));
		checked(::listen(*listener, 16), "listen");
		connections.reserve(2 * static_cast<size_t>(clients));
	}
	const auto come = [&] {
		if (server) {
			DgmEnd client(here, 0, there, 0);
			client.send(data.data(), data.size());
			if (receive_all(*server, data.size(), patience) != data.size())
				throw std::runtime_error("the server did not receive all data");
			return;
		}
		Descriptor client(::socket(AF_INET, SOCK_STREAM, 0), "socket");
		checked(::connect(client, any(there), sizeof(there)), "connect");
		connections.emplace_back(::accept(*listener, nullptr, nullptr), "accept");
		checked(::send(client, data.data(), data.size(), 0), "send");
		char buffer[64];
		checked(::recv(connections.back(), buffer, sizeof(buffer), MSG_WAITALL), "recv");
		connections.push_back(std::move(client));
	};
	for (int i = 0; i < clients; i++)
		come();
	const double used = used_memory() - before;
	return server ? used - static_cast<double>(server->memory.size()) : used / 2;
}

void run(const std::vector<std::string> &arguments)
{
	const auto &what = arguments.at(0), &transport = arguments.at(1);
	if (what == "memory") {
		const int clients = std::stoi(arguments.at(2));
		std::printf("{\"what\": \"memory\", \"transport\": \"%s\", \"clients\": %d, \"octets\": %.0f}\n", transport.c_str(),
			    clients, memory(transport, clients));
		return;
	}
	const size_t octets = std::stoul(arguments.at(4));
	const int count = std::stoi(arguments.at(5));
	const auto [near, far] = connect_ends(transport, { arguments.at(2), "10.77.0.1" }, { arguments.at(3), "10.77.0.2" });
	latency(*near, *far, 64, 4); // the neighbour's address, and first touches
	if (what == "latency") {
		std::printf("{\"what\": \"latency\", \"transport\": \"%s\", \"octets\": %zu, \"us\": %.2f}\n", transport.c_str(), octets,
			    latency(*near, *far, octets, count));
		return;
	}
	const auto flow = throughput(*near, *far, octets, count);
	if (flow.valid < 1)
		std::fprintf(stderr, "# messages were lost; counters of the receiver:%s\n", far->why_lost().c_str());
	std::printf("{\"what\": \"throughput\", \"transport\": \"%s\", \"octets\": %zu, \"mib_s\": %.3f, \"valid\": %.4f}\n",
		    transport.c_str(), octets, flow.mib_s, flow.valid);
}

} // namespace

int main(int argc, char **argv)
{
	rlimit files{ 65536, 65536 };
	::setrlimit(RLIMIT_NOFILE, &files);
	try {
		run({ argv + 1, argv + argc });
	} catch (const std::exception &error) {
		std::fprintf(stderr, "dgm_bench: %s\n", error.what());
		return 1;
	}
	return 0;
}
