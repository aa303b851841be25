// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//
// Throughput: the client sends messages as fast as it can, so many in flight; the server receives them.
#include "common.h"

#include <cerrno>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

namespace {

using namespace tool;

constexpr auto name = "blast";

// What is sent: octets of a file, from its start again when it ends; without one, zeros
class Source {
public:
	explicit Source(const std::string &path)
	{
		if (path.empty())
			return;
		std::ifstream file(path, std::ios::binary);
		content_.assign(std::istreambuf_iterator<char>(file), {});
		if (content_.empty())
			throw std::runtime_error(path + ": cannot be read, or is empty");
	}
	// The octets of one message
	void fill(std::span<std::byte> to, uint64_t at) const
	{
		if (content_.empty())
			return;
		for (size_t done = 0; done < to.size();) {
			const size_t from = (at + done) % content_.size();
			const size_t length = std::min(to.size() - done, content_.size() - from);
			std::memcpy(to.data() + done, content_.data() + from, length);
			done += length;
		}
	}

private:
	std::vector<char> content_;
};

// What has been received, to a file or to standard output ("-")
class Sink {
public:
	explicit Sink(const std::string &path)
	{
		if (path == "-")
			fd_ = ::dup(STDOUT_FILENO);
		else if (!path.empty())
			fd_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
		if (fd_ < 0 && !path.empty())
			throw std::system_error(errno, std::generic_category(), path);
	}
	~Sink()
	{
		if (fd_ >= 0)
			::close(fd_);
	}
	Sink(const Sink &) = delete;
	Sink &operator=(const Sink &) = delete;
	[[nodiscard]] bool is_wanted() const { return fd_ >= 0; }
	void put(std::span<const std::byte> bytes) const
	{
		while (is_wanted() && !bytes.empty()) {
			const ssize_t written = ::write(fd_, bytes.data(), bytes.size());
			if (written < 0)
				throw std::system_error(errno, std::generic_category(), "cannot write the received data");
			bytes = bytes.subspan(static_cast<size_t>(written));
		}
	}

private:
	int fd_ = -1;
};

// So many coroutines that each have one message in flight at a time
class Blast {
public:
	Blast(const Options &options, exs::socket &peer)
	    : options_(options), peer_(peer), memory_(std::max<uint64_t>(1, options.size * options.in_flight)),
	      progress_(options.progress, options.count)
	{
	}

	exs::task<> send_all(const Source &source)
	{
		return workers([this, &source](uint64_t number, exs::memory::part part) { return send(source, number, part); });
	}
	exs::task<> recv_all(const Sink &sink)
	{
		return workers([this, &sink](uint64_t number, exs::memory::part part) { return recv(sink, number, part); });
	}

private:
	using Work = std::function<exs::task<>(uint64_t, exs::memory::part)>;

	[[nodiscard]] uint64_t place(uint64_t number) const { return number % options_.places * options_.size; }

	exs::task<> send(const Source &source, uint64_t number, exs::memory::part part)
	{
		source.fill(part.bytes, number * options_.size);
		if (options_.mode == Mode::persistent_recv)
			(co_await peer_.send_at(part, place(number))).value();
		else
			(co_await peer_.send(part)).value();
	}

	exs::task<> recv(const Sink &sink, uint64_t number, exs::memory::part part)
	{
		exs::received got;
		if (options_.mode == Mode::persistent)
			got = (co_await peer_.recv_at(part, place(number))).value();
		else
			got = (co_await peer_.recv(part, options_.type == SOCK_STREAM ? EXS_WAITALL : 0)).value();
		if (got.length != options_.size || got.eof || got.truncated)
			throw std::runtime_error(fmt::format("message {}: received {} octets, expected {}", number, got.length, options_.size));
		sink.put(part.bytes);
	}

	// If one fails, it ends with its error; the others end here
	exs::task<> workers(Work work)
	{
		std::vector<exs::task<>> all;
		for (uint64_t i = 0; i < options_.in_flight; i++) {
			all.push_back(worker(i, work));
			all.back().start();
		}
		for (auto &one : all)
			co_await one;
	}

	exs::task<> worker(uint64_t slot, const Work &work)
	{
		const auto part = memory_.slice(slot * options_.size, options_.size);
		while (next_ < options_.count) {
			const uint64_t number = next_++;
			progress_.at(number);
			co_await work(number, part);
		}
	}

	const Options &options_;
	exs::socket &peer_;
	exs::memory memory_;
	Progress progress_;
	uint64_t next_ = 0;
};

// ---- the server, which receives

exs::task<> receive(exs::socket &peer, const Options &own)
{
	const Options options = take_plan(own, name, co_await recv_text(peer, own.type));
	const Sink sink(own.output);
	Json result;
	if (options.mode == Mode::persistent_recv) {
		const exs::memory target(options.places * options.size);
		exs::persistent taking = peer.subscribe(target).value();
		co_await send_text(peer, "go");
		const Measurement measurement;
		(co_await taking.ended()).value();
		result = measurement.result(options.count * options.size);
		sink.put(target.bytes());
	} else {
		Blast blast(options, peer);
		co_await send_text(peer, "go");
		const Measurement measurement;
		co_await blast.recv_all(sink);
		result = measurement.result(options.count * options.size);
	}
	co_await send_text(peer, result.dump());
	if (options.mode == Mode::persistent)
		co_return; // the client waits for us: what it publishes would be received here
	const exs::memory rest(1);
	static_cast<void>(co_await peer.recv(rest));
}

// ---- the client, which sends

exs::task<Json> transmit(exs::socket &peer, const Options &options)
{
	co_await send_text(peer, plan_of(options, name));
	const Source source(options.input);
	Json result;
	if (options.mode == Mode::persistent) {
		const exs::memory published(options.places * options.size);
		source.fill(published.bytes(), 0);
		if (co_await recv_text(peer, options.type) != "go")
			throw std::runtime_error("no start message (\"go\") from the server");
		const Measurement measurement;
		exs::persistent publishing = peer.publish(published).value();
		const std::string report = co_await recv_text(peer, options.type);
		result = measurement.result(options.count * options.size);
		result["receiver"] = Json::parse(report);
		const exs::memory rest(1);
		static_cast<void>(co_await peer.recv(rest));
		static_cast<void>(co_await publishing.withdraw());
		co_return result;
	}
	Blast blast(options, peer);
	if (co_await recv_text(peer, options.type) != "go")
		throw std::runtime_error("no start message (\"go\") from the server");
	const Measurement measurement;
	co_await blast.send_all(source);
	if (options.mode == Mode::persistent_recv)
		peer.shutdown();
	result = measurement.result(options.count * options.size);
	result["receiver"] = Json::parse(co_await recv_text(peer, options.type));
	co_return result;
}

exs::task<Json> connect_and_transmit(exs::loop &loop, const Options &options)
{
	exs::socket peer = make_socket(loop, options);
	(co_await peer.connect(exs::endpoint(options.address, options.port))).value();
	// a thread, since it is to come at any time
	const exs_fd_t fd = peer.fd();
	const std::jthread closer([fd, &options](const std::stop_token &stop) {
		std::mutex mutex;
		std::unique_lock lock(mutex);
		std::condition_variable_any ended;
		if (options.close_after_ms != 0 &&
		    !ended.wait_for(lock, stop, std::chrono::milliseconds(options.close_after_ms), [] { return false; }) &&
		    !stop.stop_requested())
			exs_close(fd, 0, nullptr);
	});
	const Json facts = in_force(peer);
	Json result = co_await transmit(peer, options);
	result["in_force"] = facts;
	std::this_thread::sleep_for(std::chrono::milliseconds(options.hold_ms));
	static_cast<void>(co_await peer.close());
	co_return result;
}

Json blast_client(const Options &options)
{
	const exs::library library;
	exs::loop loop;
	return loop.run(connect_and_transmit(loop, options));
}

// ---- the same over plain sockets

void plain_server(const Options &own)
{
	PlainSocket listener = PlainSocket::listen(own);
	do {
		PlainSocket peer = listener.accept(own);
		const Options options = take_plan(own, name, peer.recv_text());
		const Sink sink(own.output);
		std::vector<std::byte> bytes(options.size);
		peer.send_text("go");
		const Measurement measurement;
		for (uint64_t i = 0; i < options.count; i++) {
			peer.recv(bytes);
			sink.put(bytes);
		}
		peer.send_text(measurement.result(options.count * options.size).dump());
	} while (!own.once);
}

Json plain_client(const Options &options)
{
	PlainSocket peer = PlainSocket::connect(options);
	peer.send_text(plan_of(options, name));
	const Source source(options.input);
	std::vector<std::byte> bytes(options.size);
	if (peer.recv_text() != "go")
		throw std::runtime_error("no start message (\"go\") from the server");
	const Measurement measurement;
	for (uint64_t i = 0; i < options.count; i++) {
		source.fill(bytes, i * options.size);
		peer.send(bytes);
	}
	Json result = measurement.result(options.count * options.size);
	result["receiver"] = Json::parse(peer.recv_text());
	result["in_force"] = {{"protocol", "plain"}};
	return result;
}

int run(const Options &options)
{
	if (options.server) {
		if (options.plain)
			plain_server(options);
		else
			run_server(options, [&](exs::socket &peer, exs::loop &) { return receive(peer, options); });
		return 0;
	}
	Json result = options.plain ? plain_client(options) : blast_client(options);
	result.update({{"tool", name},
		       {"mode", name_of(options.mode)},
		       {"size", options.size},
		       {"in_flight", options.in_flight},
		       {"count", options.count}});
	const Json &receiver = result["receiver"];
	print(options, result,
	      fmt::format("{} messages of {} octets, {} in flight, {} ({}): {:.1f} Mbit/s, processor time sender {:.3f} s, receiver {:.3f} s",
			  options.count, options.size, options.in_flight, name_of(options.mode), result["in_force"]["protocol"].get<std::string>(),
			  receiver.at("mbit_s").get<double>(), result.at("cpu_user").get<double>() + result.at("cpu_system").get<double>(),
			  receiver.at("cpu_user").get<double>() + receiver.at("cpu_system").get<double>()));
	return 0;
}

} // namespace

int main(int argc, char **argv)
{
	CLI::App app{"Sends messages over libexs at full speed (--listen: receives them)"};
	Options options;
	bool stream = false;
	add_options(app, options);
	app.add_option("-k,--in-flight", options.in_flight, "messages in flight (1)")->check(CLI::Range(1, 4096));
	app.add_flag("--stream", stream, "SOCK_STREAM instead of SOCK_SEQPACKET");
	app.add_option("--input", options.input, "client: send the content of this file repeatedly");
	app.add_option("--output", options.output, "server: write received data to this file; -: standard output");
	app.add_option("--hold-ms", options.hold_ms, "client: stay connected for this time at the end");
	app.add_option("--close-after-ms", options.close_after_ms, "client: close after this time, with transfers in flight");
	app.add_flag("--plain", options.plain, "plain TCP sockets instead of libexs");
	app.add_flag("--nagle", options.nagle, "with --plain: without TCP_NODELAY");
	CLI11_PARSE(app, argc, argv);
	options.type = stream ? SOCK_STREAM : SOCK_SEQPACKET;
	// persistent memory with an input has all of it, so that an output is the same in each mode
	options.places = options.input.empty() ? options.in_flight : options.count;
	if (options.mode == Mode::immediate)
		options.small_max = std::max(options.small_max, static_cast<unsigned>(std::min<uint64_t>(options.size, 1U << 20)));
	return guarded([&] { return run(options); });
}
