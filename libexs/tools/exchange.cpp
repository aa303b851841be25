// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//
// Transactions by persistent memory alone, with two buffers on each side and a connection for each pair of them (the
// double buffering of UNH EXS). Each side reads the other's buffers; that one of its own has been read is an event, and
// tells it two things: that it may write this buffer again, and that the other side's previous one is ready.
//
//	client, i-th time                    server, i-th time
//	wait until request i has been read   read request i
//	write request i+2 in its place       wait until answer i-2 has been read, but the first time
//	read answer i-1                      write answer i in its place
//
// Requests 0 and 1 and an answer -1 are there at the beginning. Every buffer begins with the number of what it holds,
// which is checked.
#include "common.h"

#include <array>
#include <cstring>
#include <vector>

#include <fmt/format.h>

namespace {

using namespace tool;

constexpr auto name = "exchange";

// Two buffers, each published on a connection of its own
class Side {
public:
	Side(std::array<exs::socket, 2> &peers, uint64_t size, std::array<int64_t, 2> first)
	    : peers_(peers), own_{exs::memory(size), exs::memory(size)}, other_{exs::memory(size), exs::memory(size)}
	{
		for (size_t i = 0; i < 2; i++) {
			write(static_cast<int64_t>(i), first[i]);
			published_.push_back(peers_[i].publish(own_[i], true).value());
		}
	}

	// The buffer of this turn gets the number
	void write(int64_t turn, int64_t number) { std::memcpy(own_[slot(turn)].text(), &number, sizeof(number)); }

	exs::task<> read(int64_t turn)
	{
		(co_await peers_[slot(turn)].recv(other_[slot(turn)])).value();
		int64_t found = 0;
		std::memcpy(&found, other_[slot(turn)].text(), sizeof(found));
		if (found != turn)
			throw std::runtime_error(fmt::format("received transaction {}, expected {}", found, turn));
	}

	// Until the buffer of this turn has been read once more
	exs::task<> is_read(int64_t turn)
	{
		auto &notes = notes_[slot(turn)];
		while (notes == 0)
			notes += (co_await published_[slot(turn)].reads()).value();
		notes--;
	}

private:
	static size_t slot(int64_t turn) { return static_cast<size_t>(turn & 1); }

	std::array<exs::socket, 2> &peers_;
	std::array<exs::memory, 2> own_, other_;
	std::vector<exs::persistent> published_;
	std::array<uint32_t, 2> notes_{};
};

exs::task<> serve(exs::socket &control, exs::socket &listener, const Options &own)
{
	const Options options = take_plan(own, name, co_await recv_text(control, own.type));
	if (options.size < sizeof(int64_t))
		throw std::runtime_error("the client's message size is less than 8 octets");
	// each says which it is
	exs::socket one = (co_await listener.accept()).value();
	const bool is_second = co_await recv_text(one, own.type) == "1";
	exs::socket two = (co_await listener.accept()).value();
	co_await recv_text(two, own.type);
	if (is_second)
		std::swap(one, two);
	std::array<exs::socket, 2> peers{std::move(one), std::move(two)};
	Side side(peers, options.size, {-2, -1});
	co_await send_text(control, "go");
	const auto count = static_cast<int64_t>(options.count);
	for (int64_t i = 0; i < count; i++) {
		co_await side.read(i);
		if (i != 0)
			co_await side.is_read(i - 2);
		side.write(i, i);
	}
	co_await send_text(control, "done");
	const exs::memory rest(1);
	static_cast<void>(co_await control.recv(rest));
}

exs::task<Json> transact(exs::loop &loop, const Options &options)
{
	const exs::endpoint to(options.address, options.port);
	exs::socket control = make_socket(loop, options);
	(co_await control.connect(to)).value();
	co_await send_text(control, plan_of(options, name));
	std::array<exs::socket, 2> peers{make_socket(loop, options), make_socket(loop, options)};
	for (size_t i = 0; i < 2; i++) {
		(co_await peers[i].connect(to)).value();
		co_await send_text(peers[i], std::to_string(i));
	}
	Side side(peers, options.size, {0, 1});
	if (co_await recv_text(control, options.type) != "go")
		throw std::runtime_error("no start message (\"go\") from the server");
	const Measurement measurement;
	Progress progress(options.progress, options.count);
	const auto count = static_cast<int64_t>(options.count);
	for (int64_t i = 0; i < count; i++) {
		co_await side.is_read(i);
		side.write(i, i + 2);
		co_await side.read(i - 1);
		progress.at(static_cast<uint64_t>(i));
	}
	Json result = measurement.result(options.count * options.size);
	co_await recv_text(control, options.type);
	co_await side.read(count - 1);
	for (auto &peer : peers)
		static_cast<void>(co_await peer.close());
	static_cast<void>(co_await control.close());
	co_return result;
}

exs::task<> accept_and_serve(exs::loop &loop, const Options &options)
{
	exs::socket listener = make_socket(loop, options);
	listener.bind(exs::endpoint(options.address, options.port));
	listener.listen(16);
	fmt::print("listening on {} port {}\n", options.address, options.port);
	std::fflush(stdout);
	do {
		exs::socket control = (co_await listener.accept()).value();
		co_await serve(control, listener, options);
		static_cast<void>(co_await control.close());
	} while (!options.once);
}

int run(const Options &options)
{
	const exs::library library;
	exs::loop loop;
	if (options.server) {
		loop.spawn(accept_and_serve(loop, options));
		loop.run();
		return 0;
	}
	Json result = loop.run(transact(loop, options));
	const double each = result.at("seconds").get<double>() * 1e6 / static_cast<double>(options.count);
	result.update({{"tool", name}, {"size", options.size}, {"count", options.count}, {"transaction_us", each}});
	print(options, result,
	      fmt::format("{} transactions of {} octets each way: {:.1f} us each, {:.1f} Mbit/s each way", options.count, options.size,
			  each, result.at("mbit_s").get<double>()));
	return 0;
}

} // namespace

int main(int argc, char **argv)
{
	CLI::App app{"Exchanges transactions over persistent memory of libexs (--listen: answers them)"};
	Options options;
	add_options(app, options);
	CLI11_PARSE(app, argc, argv);
	options.mode = Mode::persistent;
	if (options.size < sizeof(int64_t)) {
		fmt::print(stderr, "the size of a transaction must be at least {} octets\n", sizeof(int64_t));
		return 2;
	}
	return guarded([&] { return run(options); });
}
