// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#pragma once

#include <exs.hpp>

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

// What exs-blast, exs-ping and exs-exchange have in common
namespace tool {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::json;

// How data travel
enum class Mode {
	normal,		 // advertised, read, acknowledged
	immediate,	 // with the advertisement
	persistent,	 // a persistent send, read again and again
	persistent_recv, // into a persistent receive
};

std::string name_of(Mode mode);

struct Options {
	std::string address;
	uint16_t port = 7471;
	bool server = false;
	bool once = false;  // server: one client
	bool plain = false; // sockets instead of libexs
	bool nagle = false; // with plain
	int protocol = EXS_PROTO_ANY;
	int type = SOCK_SEQPACKET;
	Mode mode = Mode::normal;
	uint64_t size = 64;
	uint64_t in_flight = 1;
	uint64_t count = 1000;
	uint64_t places = 1; // messages that persistent memory has room for
	unsigned credits = 64;
	unsigned small_max = 65536; // with Mode::immediate
	unsigned ird = 16, ord = 16;
	unsigned keepalive_ms = 0;
	std::optional<unsigned> spin_us; // then the thread that waits handles the connections itself
	bool batch = false;
	std::string input, output; // of blast
	bool json = false;
	bool progress = false;
	unsigned hold_ms = 0;	     // client: stay connected before the end
	unsigned close_after_ms = 0; // client: close whatever is under way
};

// The options that all have. Throws CLI::Error.
void add_options(CLI::App &app, Options &options);

// What a client tells a server of what it is about to do
std::string plan_of(const Options &options, std::string_view tool);

// Throws std::runtime_error if it is no such plan, or not within limits
Options take_plan(const Options &own, std::string_view tool, std::string_view text);

// A socket with the settings of the options
exs::socket make_socket(exs::loop &loop, const Options &options);

// What is in force for a connection
Json in_force(const exs::socket &peer);

// Messages of text, filled up to this size
inline constexpr size_t text_size = 1024;
exs::task<> send_text(exs::socket &peer, std::string text);
exs::task<std::string> recv_text(exs::socket &peer, int type);

// The same over a plain socket, blocking. Throw std::system_error.
class PlainSocket {
public:
	static PlainSocket connect(const Options &options);
	static PlainSocket listen(const Options &options);
	explicit PlainSocket(int fd) : fd_(fd) {}
	PlainSocket(PlainSocket &&other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
	~PlainSocket();

	PlainSocket accept(const Options &options);
	void send(std::span<const std::byte> bytes);
	void recv(std::span<std::byte> bytes); // all of it
	void send_text(std::string text);
	std::string recv_text();

private:
	int fd_;
};

// Time of processors that this process has used, in seconds, of program and of kernel
struct Usage {
	double user = 0, system = 0;
	static Usage now();
	Usage operator-(const Usage &before) const { return {user - before.user, system - before.system}; }
};

// What was measured
struct Measurement {
	Clock::time_point start = Clock::now();
	Usage before = Usage::now();

	[[nodiscard]] Json result(uint64_t bytes) const; // until now
};

// A line once a second on standard error, if it is wanted
class Progress {
public:
	Progress(bool wanted, uint64_t total) : wanted_(wanted), total_(total) {}
	void at(uint64_t done);

private:
	bool wanted_;
	uint64_t total_;
	Clock::time_point next_ = Clock::now() + std::chrono::seconds(1);
};

// Listens and serves: serve(peer, loop), one client after the other
using Serve = std::function<exs::task<>(exs::socket &, exs::loop &)>;
void run_server(const Options &options, const Serve &serve);

// Calls what may throw; the exit status
int guarded(const std::function<int()> &body);

void print(const Options &options, const Json &result, const std::string &text);

} // namespace tool
