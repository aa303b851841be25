// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//
// Two machines, a user on each side who does anything at any time, and a network that delivers when it likes: what
// world.h checks has to hold in all of it. A failure prints the seed that shows it again.
#include "world.h"

#include <cerrno>
#include <chrono>
#include <random>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace {

using namespace libexs;
using namespace libexs::test;

class Scheduler {
public:
	explicit Scheduler(uint64_t seed) : random_(seed) {}

	void run();

private:
	uint64_t below(uint64_t limit) { return random_() % limit; }
	bool one_in(uint64_t n) { return below(n) == 0; }
	Machine::Config end();
	uint64_t length();
	void act(Side &side);
	void cancel_any(Side &side);
	bool step();
	void settle();

	std::mt19937_64 random_;
	std::unique_ptr<World> world_;
	bool stream_ = false;
	bool lost_ = false;
	bool shut_[2] = {};
};

// As small as it goes is where the trouble is
Machine::Config Scheduler::end()
{
	return {.stream = stream_,
		.send_credits = 1,
		.recv_credits = static_cast<uint32_t>(one_in(2) ? 1 : 1 + below(5)),
		.send_immediate = 0,
		.recv_immediate = static_cast<uint32_t>(one_in(2) ? 0 : below(64)),
		.ord = static_cast<uint32_t>(one_in(20) ? 0 : 1 + below(4)),
		.ird = static_cast<uint32_t>(one_in(20) ? 0 : 1 + below(4)),
		.largest = 1 + below(300),
		.writes = static_cast<uint32_t>(1 + below(4))};
}

uint64_t Scheduler::length()
{
	switch (below(4)) {
	case 0:
		return below(8);
	case 1:
		return below(64);
	default:
		return below(1000);
	}
}

void Scheduler::cancel_any(Side &side)
{
	std::vector<OpId> live;
	for (const auto &[number, op] : side.ops())
		if (op.live())
			live.push_back(number);
	if (live.empty())
		return;
	const OpId op = live[below(live.size())];
	require(side.cancel(op) == 0, "operation ", op, " is live, but cannot be cancelled");
}

void Scheduler::act(Side &side)
{
	const bool persistent = !stream_ && one_in(8);
	const auto offset = !stream_ && one_in(6) ? std::optional(below(200)) : std::nullopt;
	switch (below(24)) {
	case 0:
		return cancel_any(side);
	case 1:
		if (one_in(10))
			side.shutdown();
		return;
	case 2:
		if (one_in(20))
			side.close();
		return;
	case 3:
		if (one_in(100)) {
			lost_ = true;
			side.lose(ECONNRESET);
		}
		return;
	case 4:
		if (side.timer_runs() && one_in(50)) {
			lost_ = true;
			side.expire();
		}
		return;
	case 5: case 6: case 7: case 8: case 9: case 10: case 11: case 12:
		side.send(length(), persistent, persistent && one_in(2), persistent ? std::nullopt : offset);
		return;
	default:
		side.recv(length(), persistent, stream_ && one_in(3), persistent ? std::nullopt : offset);
		return;
	}
}

bool Scheduler::step()
{
	Side &side = one_in(2) ? *world_->a : *world_->b;
	switch (below(4)) {
	case 0:
		return side.transmit();
	case 1:
		return side.deliver();
	case 2:
		return side.answer();
	default:
		return side.process();
	}
}

void Scheduler::run()
{
	stream_ = one_in(3);
	Machine::Config a = end(), b = end();
	a.initiator = true;
	a.send_credits = std::min(a.recv_credits + 1, b.recv_credits);
	b.send_credits = std::min(b.recv_credits, a.recv_credits);
	a.send_immediate = b.recv_immediate;
	b.send_immediate = a.recv_immediate;
	a.ord = std::min(a.ord, b.ird);
	b.ord = std::min(b.ord, a.ird);
	// or one of them does not know
	if (one_in(4)) {
		a.ird = b.ord;
		b.ird = a.ord;
	}
	world_ = std::make_unique<World>(a, b);
	const uint64_t steps = 20 + below(2000), calm = 1 + below(30);
	for (uint64_t i = 0; i < steps; i++) {
		if (one_in(calm))
			act(one_in(2) ? *world_->a : *world_->b);
		else
			step();
		if (world_->a->is_down() != world_->b->is_down() && one_in(10))
			world_->end_of_connection();
	}
	settle();
	world_->check(lost_);
}

// In the end both close, unless the connection is lost already
void Scheduler::settle()
{
	if (one_in(2))
		world_->run();
	world_->a->close();
	if (one_in(2))
		world_->run();
	world_->b->close();
	while (step())
		;
	world_->run();
	for (const Side *side : {world_->a.get(), world_->b.get()})
		require(side->is_down(), "both ends were closed, but the connection does not end at ", side->name());
	// a responder that closes before it has heard of the initiator does not close in good order
	require(lost_ || !world_->b->opened || (world_->a->machine.error() == 0 && world_->b->machine.error() == 0),
		"both ends were closed without a loss, but the connection ends with error ", world_->a->machine.error(),
		" at a and ", world_->b->machine.error(), " at b");
}

} // namespace

int main(int argc, char **argv)
{
	CLI::App app{"Runs random schedules of libexs's connection machine"};
	unsigned seconds = 5;
	uint64_t seed = 0;
	app.add_option("--seconds", seconds, "duration in seconds (5)");
	auto *one = app.add_option("--seed", seed, "run only the schedule of this seed");
	app.add_flag_callback("--trace", trace, "print each event");
	CLI11_PARSE(app, argc, argv);
	const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
	uint64_t done = 0;
	if (!*one)
		seed = std::random_device{}();
	try {
		do {
			Scheduler(seed).run();
			seed++;
			done++;
		} while (!*one && std::chrono::steady_clock::now() < end);
	} catch (const std::exception &error) {
		fmt::print("--seed {}: {}\n", seed, error.what());
		return 1;
	}
	fmt::print("{} schedules\n", done);
	return 0;
}
