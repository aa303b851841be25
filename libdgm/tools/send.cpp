// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
// dgm-send: writes a file or pipe into the zone of a dgm-recv, see dgm-send(1)
#include "common.h"

#include <endian.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <iostream>
#include <memory>
#include <thread>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace {

using Clock = std::chrono::steady_clock;
using tools::Target;

constexpr int notices = 8;

struct Options {
	std::string target, input = "-";
	uint64_t message = 65536;
	uint32_t segment = 0;
	double rate = 0;
	bool no_bundle = false, fragment = false, errors = false, json = false, progress = false;
};

struct Done {
	uint64_t bytes = 0, messages = 0, failed = 0;
	double seconds = 0;
};

// Fills the memory unless the input ends
size_t read_message(int fd, std::vector<char> &memory)
{
	size_t filled = 0;
	while (filled < memory.size()) {
		const ssize_t got = ::read(fd, memory.data() + filled, memory.size() - filled);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			tools::fail("read");
		if (got == 0)
			break;
		filled += static_cast<size_t>(got);
	}
	return filled;
}

void keep_rate(const Options &options, const Done &done, Clock::time_point begin)
{
	if (options.rate > 0)
		std::this_thread::sleep_until(begin + std::chrono::duration_cast<Clock::duration>(
			std::chrono::duration<double>(static_cast<double>(done.bytes) * 8 / (options.rate * 1e6))));
}

Done send_all(dgm_endpoint *endpoint, const Options &options, const Target &target, int input)
{
	std::vector<char> memory(options.message);
	const auto begin = Clock::now();
	auto shown = begin;
	Done done;
	while (const size_t size = read_message(input, memory)) {
		if (size > target.size - done.bytes)
			throw std::runtime_error("the input is longer than the memory zone of the target");
		done.messages++;
		if (dgm_write(endpoint, &target.address.any, target.length(), target.zone, target.qkey, done.bytes, memory.data(), size,
			      nullptr) != 0) {
			if (errno != EAGAIN && errno != ECONNREFUSED)
				tools::fail("dgm_write");
			done.failed++;
		}
		done.bytes += size;
		keep_rate(options, done, begin);
		if (options.progress && Clock::now() - shown > std::chrono::seconds(1)) {
			shown = Clock::now();
			std::cerr << fmt::format("\r{} MiB ", done.bytes >> 20) << std::flush;
		}
	}
	done.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
	return done;
}

// Prints the refusals that the target has reported, without a wait
void print_errors(dgm_endpoint *endpoint)
{
	dgm_event event;
	while (dgm_poll(endpoint, &event, 1, 0) == 1)
		if (event.type == DGM_REFUSED)
			std::cerr << fmt::format("dgm-send: the target has refused {} octets at {} (message {}): error {:04x}\n",
						 event.length, event.offset, event.msn, event.error);
}

void send_notices(dgm_endpoint *endpoint, const Target &target, const Done &done)
{
	const tools::Notice notice{.kind = htobe32(tools::Notice::magic),
				   .copies = htobe32(notices),
				   .bytes = htobe64(done.bytes),
				   .messages = htobe64(done.messages),
				   .failed = htobe64(done.failed)};
	for (int i = 0; i < notices; i++) {
		// After the last message's gap: the target then has nothing more to wait for
		std::this_thread::sleep_for(std::chrono::milliseconds(20));
		dgm_send(endpoint, &target.address.any, target.length(), target.send_key, &notice, sizeof(notice), DGM_SOLICITED);
	}
}

int run(const Options &options)
{
	const Target target = Target::parse(options.target);
	dgm_options chosen;
	dgm_defaults(&chosen);
	chosen.flags = DGM_NO_THREAD | (options.no_bundle ? DGM_NO_SEGMENT : 0) | (options.fragment ? DGM_FRAGMENT : 0) |
		       (options.errors ? DGM_RECEIVE_ERRORS : 0);
	chosen.segment = options.segment;
	chosen.send_ms = 10000;
	dgm_address local{};
	local.any.sa_family = target.address.any.sa_family;
	const std::unique_ptr<dgm_endpoint, void (*)(dgm_endpoint *)> endpoint(dgm_open(&local.any, tools::length_of(local), &chosen), dgm_close);
	if (!endpoint)
		tools::fail("dgm_open");
	const int input = options.input == "-" ? STDIN_FILENO : ::open(options.input.c_str(), O_RDONLY | O_CLOEXEC);
	if (input < 0)
		tools::fail(options.input);
	const Done done = send_all(endpoint.get(), options, target, input);
	send_notices(endpoint.get(), target, done);
	if (options.errors)
		print_errors(endpoint.get());
	timespec cpu{};
	::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
	if (options.json)
		std::cout << nlohmann::json{{"bytes", done.bytes}, {"messages", done.messages}, {"failed", done.failed},
					    {"seconds", done.seconds}, {"cpu_seconds", static_cast<double>(cpu.tv_sec) + static_cast<double>(cpu.tv_nsec) / 1e9},
					    {"counters", tools::counters(endpoint.get())}}
				     .dump()
			  << '\n';
	else
		std::cout << fmt::format("sent {} octets in {} messages, {:.1f} MiB/s; {} messages failed\n", done.bytes, done.messages,
					 done.seconds > 0 ? static_cast<double>(done.bytes) / done.seconds / (1 << 20) : 0.0, done.failed);
	return 0;
}

} // namespace

int main(int argc, char **argv)
{
	Options options;
	CLI::App app("Write a file or pipe into another host's memory by Write-Record");
	app.add_option("target", options.target, "target line printed by dgm-recv")->required();
	app.add_option("--input", options.input, "file, - is the standard input");
	app.add_option("--message", options.message, "octets in a message")->transform(CLI::AsSizeValue(false))->check(CLI::Range(uint64_t{1}, uint64_t{1} << 26));
	app.add_option("--segment", options.segment, "data octets in a datagram")->check(CLI::Range(1, 65473));
	app.add_option("--rate", options.rate, "limit in Mbit/s of data")->check(CLI::PositiveNumber);
	app.add_flag("--no-bundle", options.no_bundle, "no UDP_SEGMENT");
	app.add_flag("--fragment", options.fragment, "datagrams longer than the path's MTU go out as IP fragments");
	app.add_flag("--errors", options.errors, "print error messages about refused datagrams");
	app.add_flag("--json", options.json, "results as JSON");
	app.add_flag("--progress", options.progress, "show progress on the standard error");
	CLI11_PARSE(app, argc, argv);
	try {
		return run(options);
	} catch (const std::exception &error) {
		std::cerr << "dgm-send: " << error.what() << '\n';
		return 1;
	}
}
