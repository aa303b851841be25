// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
// dgm-recv: opens a zone for a dgm-send, and reports what has become valid, see dgm-recv(1)
#include "common.h"

#include <endian.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <iostream>
#include <memory>
#include <optional>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace {

using Clock = std::chrono::steady_clock;

constexpr int first_wait = 60; // seconds until the first datagram

struct Options {
	std::string bind = "127.0.0.1", output, map;
	std::vector<std::string> from;
	uint16_t port = 0;
	uint64_t size = 64 << 20;
	double idle = 10;
	bool any = false, whole = false, errors = false, json = false, progress = false;
};

// The zone's memory: a file that has room for all of it, or memory of the process
class Memory {
public:
	Memory(const std::string &file, size_t size) : size_(size)
	{
		const bool named = !file.empty() && file != "-";
		if (named) {
			fd_ = ::open(file.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
			if (fd_ < 0 || ::ftruncate(fd_, static_cast<off_t>(size)) != 0)
				tools::fail(file);
		}
		memory_ = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, named ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS, fd_, 0);
		if (memory_ == MAP_FAILED)
			tools::fail("mmap");
	}
	~Memory()
	{
		::munmap(memory_, size_);
		if (fd_ >= 0)
			::close(fd_);
	}
	Memory(const Memory &) = delete;
	Memory &operator=(const Memory &) = delete;
	[[nodiscard]] char *data() const { return static_cast<char *>(memory_); }
	void cut(uint64_t size) const
	{
		if (fd_ >= 0 && ::ftruncate(fd_, static_cast<off_t>(size)) != 0)
			tools::fail("ftruncate");
	}

private:
	size_t size_;
	int fd_ = -1;
	void *memory_;
};

struct Result {
	dgm_map *map = dgm_map_new();
	std::optional<tools::Notice> notice;
	uint64_t records = 0, messages = 0, holes = 0;
	double seconds = 0;
};

void allow(dgm_zone *zone, const Options &options)
{
	if (options.any)
		dgm_allow_any(zone);
	for (const std::string &text : options.from) {
		const size_t slash = text.find('/');
		const dgm_address source = tools::parse_address(text.substr(0, slash), 0);
		const unsigned whole = source.any.sa_family == AF_INET ? 32 : 128;
		const unsigned prefix = slash == std::string::npos ? whole : static_cast<unsigned>(std::stoul(text.substr(slash + 1)));
		if (dgm_allow(zone, &source.any, tools::length_of(source), prefix) != 0)
			tools::fail(text);
	}
}

void handle(const dgm_event &event, const tools::Notice &received, Result &result)
{
	if (event.type == DGM_RECORD) {
		dgm_map_add(result.map, event.offset, event.length);
		result.records++;
		result.messages += (event.flags & DGM_END) != 0;
		result.holes += (event.flags & DGM_END) != 0 && (event.flags & DGM_HOLES) != 0;
	} else if (event.type == DGM_RECEIVE && event.error == 0 && event.length == sizeof(received) &&
		   be32toh(received.kind) == tools::Notice::magic) {
		result.notice = received;
	}
}

Result receive(dgm_endpoint *endpoint, const Options &options, uint32_t deadline_ms)
{
	Result result;
	tools::Notice notice{};
	std::optional<Clock::time_point> first;
	Clock::time_point last{}, shown = Clock::now();
	std::vector<dgm_event> events(1024);
	dgm_recv(endpoint, &notice, sizeof(notice), nullptr);
	// Behind the notice a message whose last datagram is lost still ends at its deadline
	std::optional<Clock::time_point> end;
	while (!end || (Clock::now() < *end && dgm_map_bytes(result.map) < be64toh(result.notice->bytes))) {
		double patience = first ? options.idle : std::max<double>(first_wait, options.idle);
		if (end)
			patience = std::max(0.0, std::chrono::duration<double>(*end - Clock::now()).count());
		const int count = dgm_poll(endpoint, events.data(), static_cast<int>(events.size()), static_cast<int>(patience * 1000));
		if (count < 0 && errno != EINTR)
			tools::fail("dgm_poll");
		if (count == 0)
			break;
		for (int i = 0; i < count; i++) {
			handle(events[static_cast<size_t>(i)], notice, result);
			// A Send that is no notice must not take the place of one
			if (events[static_cast<size_t>(i)].type == DGM_RECEIVE && !result.notice)
				dgm_recv(endpoint, &notice, sizeof(notice), nullptr);
			else if (events[static_cast<size_t>(i)].type == DGM_RECORD)
				last = Clock::now();
		}
		first = first.value_or(Clock::now());
		if (result.notice && !end)
			end = Clock::now() + std::chrono::milliseconds(deadline_ms + 200);
		if (options.progress && Clock::now() - shown > std::chrono::seconds(1)) {
			shown = Clock::now();
			std::cerr << fmt::format("\r{} MiB ", dgm_map_bytes(result.map) >> 20) << std::flush;
		}
	}
	if (first && last > *first)
		result.seconds = std::chrono::duration<double>(last - *first).count();
	return result;
}

void write_map(const std::string &file, const dgm_map *map)
{
	std::ofstream out(file);
	for (uint64_t offset = 0, length = 0; dgm_map_next(map, &offset, &length) != 0; offset += length)
		out << offset << ' ' << length << '\n';
	if (!out.flush())
		throw std::runtime_error("cannot write " + file);
}

void write_output(const Memory &memory, const dgm_map *map)
{
	for (uint64_t offset = 0, length = 0; dgm_map_next(map, &offset, &length) != 0; offset += length)
		std::cout.write(memory.data() + offset, static_cast<std::streamsize>(length));
	std::cout.flush();
}

void print(const Options &options, const Result &result, dgm_endpoint *endpoint, std::ostream &out)
{
	const uint64_t came = dgm_map_bytes(result.map);
	const uint64_t sent = result.notice ? be64toh(result.notice->bytes) : 0;
	timespec cpu{};
	::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
	if (options.json) {
		out << nlohmann::json{{"bytes", came}, {"sent", sent}, {"notice", result.notice.has_value()}, {"records", result.records},
				      {"messages", result.messages}, {"with_holes", result.holes}, {"seconds", result.seconds},
				      {"cpu_seconds", static_cast<double>(cpu.tv_sec) + static_cast<double>(cpu.tv_nsec) / 1e9},
				      {"counters", tools::counters(endpoint)}}
			       .dump()
		    << '\n';
		return;
	}
	out << fmt::format("{} octets valid, {} records of {} messages, {} of them with holes", came, result.records, result.messages, result.holes);
	if (result.notice && sent > 0)
		out << fmt::format("; {} sent, {:.3f} % lost", sent, 100 * (1 - static_cast<double>(came) / static_cast<double>(sent)));
	else
		out << "; no notice of the end came";
	out << '\n';
}

int run(const Options &options)
{
	const dgm_address local = tools::parse_address(options.bind, options.port);
	dgm_options chosen;
	dgm_defaults(&chosen);
	chosen.records = 1 << 16;
	chosen.flags = options.errors ? DGM_SEND_ERRORS : 0;
	const Memory memory(options.output, options.size);
	const std::unique_ptr<dgm_endpoint, void (*)(dgm_endpoint *)> endpoint(dgm_open(&local.any, tools::length_of(local), &chosen), dgm_close);
	if (!endpoint)
		tools::fail("dgm_open");
	const dgm_zone_options zone_options{.number = 0, .qkey = 0, .flags = options.whole ? 0u : DGM_PARTIAL, .block = 0};
	dgm_zone *const zone = dgm_zone_open(endpoint.get(), memory.data(), options.size, &zone_options);
	if (zone == nullptr)
		tools::fail("dgm_zone_open");
	allow(zone, options);
	tools::Target target;
	dgm_local(endpoint.get(), &target.address);
	target.zone = dgm_zone_number(zone), target.qkey = dgm_zone_qkey(zone), target.size = options.size;
	target.send_key = dgm_qkey(endpoint.get());
	std::ostream &out = options.output == "-" ? std::cerr : std::cout;
	out << target.text() << std::endl;
	const Result result = receive(endpoint.get(), options, chosen.deadline_ms);
	dgm_zone_close(zone);
	if (result.notice)
		memory.cut(std::min<uint64_t>(be64toh(result.notice->bytes), options.size));
	if (options.output == "-")
		write_output(memory, result.map);
	if (!options.map.empty())
		write_map(options.map, result.map);
	print(options, result, endpoint.get(), out);
	const bool nothing = dgm_map_bytes(result.map) == 0 && !(result.notice && result.notice->bytes == 0);
	dgm_map_free(result.map);
	return nothing ? 1 : 0;
}

} // namespace

int main(int argc, char **argv)
{
	Options options;
	CLI::App app("Open memory for dgm-send and report what has become valid");
	app.add_option("--bind", options.bind, "local address");
	app.add_option("--port", options.port, "local port");
	app.add_option("--size", options.size, "length of the zone")->transform(CLI::AsSizeValue(false))->check(CLI::Range(uint64_t{1}, uint64_t{1} << 40));
	app.add_option("--from", options.from, "source, ADDRESS[/PREFIX]");
	app.add_flag("--any", options.any, "everybody who has the target may write");
	app.add_flag("--errors", options.errors, "send error messages about refused datagrams to the sources of --from");
	app.add_flag("--whole", options.whole, "record only whole messages");
	app.add_option("--output", options.output, "file that is the zone; - for the standard output");
	app.add_option("--map", options.map, "file for the parts that are valid");
	app.add_option("--idle", options.idle, "end when nothing comes for this many seconds")->check(CLI::Range(0.1, 86400.0));
	app.add_flag("--json", options.json, "results as JSON");
	app.add_flag("--progress", options.progress, "show progress on the standard error");
	CLI11_PARSE(app, argc, argv);
	if (!options.any && options.from.empty()) {
		std::cerr << "dgm-recv: no source is allowed to write: --from or --any is required\n";
		return 2;
	}
	try {
		return run(options);
	} catch (const std::exception &error) {
		std::cerr << "dgm-recv: " << error.what() << '\n';
		return 1;
	}
}
