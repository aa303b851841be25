// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#include "common.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>

#include <fmt/format.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <unistd.h>

namespace tool {
namespace {

const std::map<std::string, Mode> mode_names{{"normal", Mode::normal},
					     {"immediate", Mode::immediate},
					     {"persistent", Mode::persistent},
					     {"persistent-recv", Mode::persistent_recv}};
const std::map<std::string, int> protocol_names{
	{"any", EXS_PROTO_ANY}, {"rdma", EXS_PROTO_RDMA}, {"tcp", EXS_PROTO_TCP}};

constexpr uint64_t most_memory = 4ULL << 30;

double seconds_of(const timeval &time)
{
	return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

} // namespace

std::string name_of(Mode mode)
{
	for (const auto &[name, value] : mode_names)
		if (value == mode)
			return name;
	return "?";
}

void add_options(CLI::App &app, Options &options)
{
	app.set_version_flag("--version", "libexs " EXS_PACKAGE_VERSION);
	app.add_option("address", options.address, "the server's IP address")->required();
	app.add_flag("-l,--listen", options.server, "run as server on this address");
	app.add_flag("--once", options.once, "server: exit after one client");
	app.add_option("-p,--port", options.port, "the server's port (7471)");
	app.add_option("--protocol", options.protocol, "any, rdma or tcp (any)")->transform(CLI::CheckedTransformer(protocol_names));
	app.add_option("-m,--mode", options.mode, "normal, immediate, persistent or persistent-recv (normal)")
		->transform(CLI::CheckedTransformer(mode_names));
	app.add_option("-s,--size", options.size, "octets of each message (64)");
	app.add_option("-n,--count", options.count, "number of messages (1000)")->check(CLI::Range(uint64_t{1}, uint64_t{1} << 40));
	app.add_option("--credits", options.credits, "maximum number of outstanding advertisements, in each direction (64)")->check(CLI::Range(1, 4096));
	app.add_option("--small-max", options.small_max, "largest message of mode immediate (65536)")
		->check(CLI::Range(0, 1048576));
	app.add_option("--keepalive-ms", options.keepalive_ms, "probe a peer from which nothing has come for as long, 0: never (0)")
		->check(CLI::Range(0, 3600000));
	app.add_option("--spin-us", options.spin_us, "the thread that waits handles connections itself, and does not sleep for this time")
		->check(CLI::Range(0, 1000000));
	app.add_flag("--batch", options.batch, "messages over TCP that are started between two waits leave together");
	app.add_option("--ird", options.ird, "maximum number of Reads in flight from the peer (16)")->check(CLI::Range(0, 255));
	app.add_option("--ord", options.ord, "maximum number of own Reads in flight (16)")->check(CLI::Range(0, 255));
	app.add_flag("--json", options.json, "print one line of JSON");
	app.add_flag("--progress", options.progress, "print the progress each second");
	app.footer("Manual: exs-tools(1)");
}

std::string plan_of(const Options &options, std::string_view tool)
{
	return Json{{"tool", tool},
		    {"mode", name_of(options.mode)},
		    {"size", options.size},
		    {"in_flight", options.in_flight},
		    {"count", options.count},
		    {"places", options.places}}
		.dump();
}

Options take_plan(const Options &own, std::string_view tool, std::string_view text)
{
	Options options = own;
	const Json plan = Json::parse(text);
	if (plan.at("tool").get<std::string>() != tool)
		throw std::runtime_error("the client does not run exs-" + std::string(tool));
	options.mode = mode_names.at(plan.at("mode").get<std::string>());
	options.size = plan.at("size").get<uint64_t>();
	options.in_flight = plan.at("in_flight").get<uint64_t>();
	options.count = plan.at("count").get<uint64_t>();
	options.places = plan.at("places").get<uint64_t>();
	if (options.in_flight == 0 || options.in_flight > 4096)
		throw std::runtime_error(fmt::format("the client requests {} messages in flight, not 1 to 4096", options.in_flight));
	if (options.places == 0 || options.places > most_memory)
		throw std::runtime_error(fmt::format("the client requests {} places, not 1 to {}", options.places, most_memory));
	if (options.size > most_memory / options.in_flight || options.size > most_memory / options.places)
		throw std::runtime_error(fmt::format("the client requests messages of {} octets, with {} in flight and {} places, "
						     "which exceeds the limit of {} octets",
						     options.size, options.in_flight, options.places, most_memory));
	return options;
}

exs::socket make_socket(exs::loop &loop, const Options &options)
{
	const exs::endpoint at(options.address, options.port);
	if (options.spin_us && (exs_qset(loop.queue(), EXS_QUEUE_PROGRESS, 1) != 0 ||
				exs_qset(loop.queue(), EXS_QUEUE_SPIN_US, *options.spin_us) != 0))
		throw std::system_error(errno, std::generic_category(), "exs_qset");
	if (options.batch && exs_qset(loop.queue(), EXS_QUEUE_BATCH, 1) != 0)
		throw std::system_error(errno, std::generic_category(), "exs_qset");
	exs::socket socket(loop, at.family(), options.type, options.protocol);
	socket.set(EXS_SEND_CREDITS, options.credits);
	socket.set(EXS_RECV_CREDITS, options.credits);
	// a server does not know yet what its clients want
	socket.set(EXS_SMALL_MAX, options.server || options.mode == Mode::immediate ? options.small_max : 0);
	socket.set(EXS_IRD, options.ird);
	socket.set(EXS_KEEPALIVE_MS, options.keepalive_ms);
	socket.set(EXS_ORD, options.ord);
	return socket;
}

Json in_force(const exs::socket &peer)
{
	return {{"protocol", peer.get(EXS_PROTOCOL) == EXS_PROTO_RDMA ? "rdma" : "tcp"},
		{"send_credits", peer.get(EXS_SEND_CREDITS)},
		{"small_max", peer.get(EXS_SMALL_MAX)},
		{"ird", peer.get(EXS_IRD)},
		{"ord", peer.get(EXS_ORD)}};
}

namespace {

std::string filled(std::string text)
{
	if (text.size() >= text_size)
		throw std::runtime_error("a control message exceeds " + std::to_string(text_size - 1) + " octets");
	text.resize(text_size);
	return text;
}

} // namespace

exs::task<> send_text(exs::socket &peer, std::string text)
{
	const exs::memory memory(text_size);
	std::ranges::copy(filled(std::move(text)), memory.text());
	(co_await peer.send(memory)).value();
}

exs::task<std::string> recv_text(exs::socket &peer, int type)
{
	const exs::memory memory(text_size + 1);
	const auto got = (co_await peer.recv(memory.slice(0, text_size), type == SOCK_STREAM ? EXS_WAITALL : 0)).value();
	if (got.length != text_size || got.truncated)
		throw std::runtime_error("the peer has closed the connection, or uses another protocol");
	co_return std::string(memory.text());
}

// ---- plain sockets

PlainSocket::~PlainSocket()
{
	if (fd_ >= 0)
		::close(fd_);
}

namespace {

[[noreturn]] void throw_errno(const char *what)
{
	throw std::system_error(errno, std::generic_category(), what);
}

int make_plain(const exs::endpoint &at, const Options &options)
{
	const int fd = ::socket(at.family(), SOCK_STREAM, 0);
	if (fd < 0)
		throw_errno("socket");
	const int on = 1;
	::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (!options.nagle)
		::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	return fd;
}

} // namespace

PlainSocket PlainSocket::connect(const Options &options)
{
	const exs::endpoint to(options.address, options.port);
	PlainSocket socket(make_plain(to, options));
	if (::connect(socket.fd_, to.raw(), to.size()) != 0)
		throw_errno("connect");
	return socket;
}

PlainSocket PlainSocket::listen(const Options &options)
{
	const exs::endpoint at(options.address, options.port);
	PlainSocket socket(make_plain(at, options));
	if (::bind(socket.fd_, at.raw(), at.size()) != 0 || ::listen(socket.fd_, 16) != 0)
		throw_errno("listen");
	fmt::print("listening on {} port {}\n", options.address, options.port);
	std::fflush(stdout);
	return socket;
}

PlainSocket PlainSocket::accept(const Options &options)
{
	PlainSocket peer(::accept(fd_, nullptr, nullptr));
	if (peer.fd_ < 0)
		throw_errno("accept");
	const int on = options.nagle ? 0 : 1;
	::setsockopt(peer.fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	return peer;
}

void PlainSocket::send(std::span<const std::byte> bytes)
{
	while (!bytes.empty()) {
		const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
		if (sent < 0)
			throw_errno("send");
		bytes = bytes.subspan(static_cast<size_t>(sent));
	}
}

void PlainSocket::recv(std::span<std::byte> bytes)
{
	while (!bytes.empty()) {
		const ssize_t got = ::recv(fd_, bytes.data(), bytes.size(), 0);
		if (got < 0)
			throw_errno("recv");
		if (got == 0)
			throw std::runtime_error("the peer has closed the connection");
		bytes = bytes.subspan(static_cast<size_t>(got));
	}
}

void PlainSocket::send_text(std::string text)
{
	text = filled(std::move(text));
	send(std::as_bytes(std::span(text)));
}

std::string PlainSocket::recv_text()
{
	std::string text(text_size, '\0');
	recv(std::as_writable_bytes(std::span(text)));
	return text.c_str();
}

// ---- measuring

Usage Usage::now()
{
	rusage usage{};
	::getrusage(RUSAGE_SELF, &usage);
	return {seconds_of(usage.ru_utime), seconds_of(usage.ru_stime)};
}

Json Measurement::result(uint64_t bytes) const
{
	const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
	const Usage used = Usage::now() - before;
	return {{"seconds", seconds},
		{"bytes", bytes},
		{"mbit_s", seconds > 0 ? static_cast<double>(bytes) * 8e-6 / seconds : 0},
		{"cpu_user", used.user},
		{"cpu_system", used.system}};
}

void Progress::at(uint64_t done)
{
	if (!wanted_ || Clock::now() < next_)
		return;
	next_ += std::chrono::seconds(1);
	fmt::print(stderr, "{} of {}\n", done, total_);
}

void run_server(const Options &options, const Serve &serve)
{
	const exs::library library;
	exs::loop loop;
	exs::socket listener = make_socket(loop, options);
	listener.bind(exs::endpoint(options.address, options.port));
	listener.listen(16);
	fmt::print("listening on {} port {}\n", options.address, options.port);
	std::fflush(stdout);
	const auto serve_one = [&]() -> exs::task<int> {
		exs::socket peer = (co_await listener.accept()).value();
		co_await serve(peer, loop);
		static_cast<void>(co_await peer.close());
		co_return 0;
	};
	for (;;) {
		try {
			loop.run(serve_one());
		} catch (const std::exception &error) {
			// one client is not all
			fmt::print(stderr, "client: {}\n", error.what());
			if (options.once)
				throw;
		}
		if (options.once)
			return;
	}
}

int guarded(const std::function<int()> &body)
{
	try {
		return body();
	} catch (const std::exception &error) {
		fmt::print(stderr, "{}\n", error.what());
		return 1;
	}
}

void print(const Options &options, const Json &result, const std::string &text)
{
	fmt::print("{}\n", options.json ? result.dump() : text);
	std::fflush(stdout);
}

} // namespace tool
