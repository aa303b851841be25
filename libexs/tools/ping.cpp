// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//
// One-way latency: half of what a message takes to come back. In mode persistent half of what it takes to read the
// server's memory, which is a round trip on the wire, too.
#include "common.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include <fmt/format.h>

namespace {

using namespace tool;

constexpr auto name = "ping";

using Micro = std::chrono::duration<double, std::micro>;

// One message there and back, by the C interface: the receive is there before the message is sent
class Pinger {
public:
	Pinger(exs_qh_t queue, exs_fd_t fd, uint64_t size)
	    : queue_(queue), fd_(fd), size_(size), memory_(std::max<uint64_t>(1, 2 * size))
	{
	}

	void recv() { start(recv_, exs_recv(fd_, memory_.handle(), memory_.bytes().data() + size_, size_, 0, queue_, nullptr), "exs_recv"); }
	void send() { start(send_, exs_send(fd_, memory_.handle(), memory_.bytes().data(), size_, 0, queue_, nullptr), "exs_send"); }

	// Until what was started is done
	void wait_recv() { wait(recv_); }
	void wait_send() { wait(send_); }

private:
	struct Operation {
		exs_op_t op = 0;
		bool is_done = true;
	};

	static void start(Operation &operation, exs_op_t op, const char *call)
	{
		if (op < 0)
			exs::throw_errno(call);
		operation = {op, false};
	}
	void wait(Operation &operation)
	{
		exs_event event{};
		while (!operation.is_done) {
			if (exs_qdequeue(queue_, &event, 1, -1) < 1)
				continue;
			if (event.error != 0 || (event.flags & EXS_EOF) != 0)
				throw std::system_error(event.error != 0 ? event.error : ECONNRESET, std::generic_category(),
				                        event.op == recv_.op ? "receive" : "send");
			(event.op == recv_.op ? recv_ : send_).is_done = true;
		}
	}

	exs_qh_t queue_;
	exs_fd_t fd_;
	uint64_t size_;
	exs::memory memory_;
	Operation recv_, send_;
};

exs::task<> answer(exs::socket &peer, exs::loop &loop, const Options &own)
{
	const Options options = take_plan(own, name, co_await recv_text(peer, own.type));
	const exs::memory rest(1);
	if (options.mode == Mode::persistent) {
		const exs::memory memory(std::max<uint64_t>(1, options.size));
		exs::persistent publishing = peer.publish(memory).value();
		// until the client has had enough
		static_cast<void>(co_await peer.recv(rest));
		static_cast<void>(co_await publishing.withdraw());
		co_return;
	}
	Pinger pinger(loop.queue(), peer.fd(), options.size);
	co_await send_text(peer, "go");
	pinger.recv(); // from here on the loop does not take events
	for (uint64_t i = 0; i < options.count; i++) {
		pinger.wait_recv();
		pinger.wait_send(); // the one before
		if (i + 1 < options.count)
			pinger.recv();
		pinger.send();
	}
	pinger.wait_send();
	static_cast<void>(co_await peer.recv(rest));
}

exs::task<std::vector<double>> ping(exs::socket &peer, exs::loop &loop, const Options &options)
{
	co_await send_text(peer, plan_of(options, name));
	if (options.mode != Mode::persistent)
		co_await recv_text(peer, options.type);
	std::vector<double> times;
	Progress progress(options.progress, options.count);
	Pinger pinger(loop.queue(), peer.fd(), options.size);
	for (uint64_t i = 0; i < options.count; i++) {
		const auto start = Clock::now();
		pinger.recv();
		if (options.mode != Mode::persistent)
			pinger.send();
		pinger.wait_recv();
		times.push_back(Micro(Clock::now() - start).count() / 2);
		pinger.wait_send();
		progress.at(i);
	}
	co_return times;
}

std::vector<double> ping_client(const Options &options)
{
	const exs::library library;
	exs::loop loop;
	return loop.run([](exs::loop &own, const Options &all) -> exs::task<std::vector<double>> {
		exs::socket peer = make_socket(own, all);
		(co_await peer.connect(exs::endpoint(all.address, all.port))).value();
		auto times = co_await ping(peer, own, all);
		static_cast<void>(co_await peer.close());
		co_return times;
	}(loop, options));
}

void plain_server(const Options &own)
{
	PlainSocket listener = PlainSocket::listen(own);
	do {
		PlainSocket peer = listener.accept(own);
		const Options options = take_plan(own, name, peer.recv_text());
		std::vector<std::byte> bytes(options.size);
		for (uint64_t i = 0; i < options.count; i++) {
			peer.recv(bytes);
			peer.send(bytes);
		}
	} while (!own.once);
}

std::vector<double> plain_client(const Options &options)
{
	PlainSocket peer = PlainSocket::connect(options);
	peer.send_text(plan_of(options, name));
	std::vector<std::byte> bytes(options.size);
	std::vector<double> times;
	for (uint64_t i = 0; i < options.count; i++) {
		const auto start = Clock::now();
		peer.send(bytes);
		peer.recv(bytes);
		times.push_back(Micro(Clock::now() - start).count() / 2);
	}
	return times;
}

int run(const Options &options)
{
	if (options.server) {
		if (options.plain)
			plain_server(options);
		else
			run_server(options, [&](exs::socket &peer, exs::loop &loop) { return answer(peer, loop, options); });
		return 0;
	}
	auto times = options.plain ? plain_client(options) : ping_client(options);
	std::ranges::sort(times);
	const auto at = [&](double part) { return times[static_cast<size_t>(static_cast<double>(times.size() - 1) * part)]; };
	const double mean = std::accumulate(times.begin(), times.end(), 0.0) / static_cast<double>(times.size());
	const Json result{{"tool", name},
			  {"mode", options.plain ? "plain" : name_of(options.mode)},
			  {"size", options.size},
			  {"count", options.count},
			  {"latency_us", {{"mean", mean}, {"min", at(0)}, {"p50", at(0.5)}, {"p99", at(0.99)}, {"max", at(1)}}}};
	print(options, result,
	      fmt::format("{} times {} octets, {}: one way {:.1f} us (median), {:.1f} mean, {:.1f} least, {:.1f} at 99 %, {:.1f} most",
			  options.count, options.size, result["mode"].get<std::string>(), at(0.5), mean, at(0), at(0.99), at(1)));
	return 0;
}

} // namespace

int main(int argc, char **argv)
{
	CLI::App app{"Measures the one-way latency of libexs (--listen: answers)"};
	Options options;
	add_options(app, options);
	app.add_flag("--plain", options.plain, "plain TCP sockets instead of libexs");
	CLI11_PARSE(app, argc, argv);
	if (options.mode == Mode::persistent_recv) {
		fmt::print(stderr, "exs-ping does not support mode persistent-recv, which reports no received messages\n");
		return 2;
	}
	if (options.mode == Mode::immediate)
		options.small_max = std::max(options.small_max, static_cast<unsigned>(std::min<uint64_t>(options.size, 1U << 20)));
	return guarded([&] { return run(options); });
}
