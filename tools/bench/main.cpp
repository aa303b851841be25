// SPDX-License-Identifier: GPL-2.0
// rdmabench: measures the time of connection setup, and the memory of connections.
//
// Nodes are network namespaces of this machine. Each has a thread, and all threads start at once.
// Prints one JSON object.
#include "common.h"

#include <algorithm>
#include <atomic>
#include <barrier>
#include <cstdio>
#include <exception>
#include <fstream>
#include <functional>
#include <map>
#include <mutex>
#include <sstream>
#include <thread>

#include <rdma/rdma_cma.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace {

using namespace bench;
using nlohmann::json;

struct Options {
	std::vector<std::string> places;
	std::string transport = "rdma";
	std::string pattern = "many-to-one";
	unsigned per_pair = 1;
	unsigned at_once = 0;
	uint16_t port = 7174;
	double timeout = 60;
	std::vector<int> backlogs = {16, 1024};
	unsigned rounds = 20;
};

// KiB of kernel memory for connections: objects, per-CPU areas, stacks, vmalloc areas; then the objects in use of each
// cache. Slab counts whole pages, so a cache's first objects cost more than they have.
using Memory = std::map<std::string, double>;

void add_caches(Memory &result)
{
	std::ifstream file("/proc/slabinfo");
	std::string name;
	double active = 0, all = 0, size = 0;

	for (std::string line; std::getline(file, line);) {
		std::istringstream fields(line);
		if (!(fields >> name >> active >> all >> size))
			continue;
		result["objects " + name] = active * size / 1024;
		result["objects"] += active * size / 1024;
	}
}

Memory memory()
{
	Memory result;
	std::ifstream file("/proc/meminfo");
	std::string name, unit;
	double kib = 0;

	for (std::string line; std::getline(file, line);) {
		std::istringstream fields(line);
		fields >> name >> kib;
		name.pop_back();
		if (name == "Slab" || name == "Percpu" || name == "KernelStack" || name == "VmallocUsed")
			result[name] = kib;
	}
	add_caches(result);
	return result;
}

// RCU and the workers free their memory within this time
void settle()
{
	std::this_thread::sleep_for(std::chrono::milliseconds(500));
}

json per_connection(const Memory &before, const Memory &after, size_t count)
{
	json result;
	for (const auto &[name, kib] : after) {
		const auto was = before.find(name);
		const double size = (kib - (was == before.end() ? 0 : was->second)) * 1024 / static_cast<double>(count);
		if (size != 0 || !name.starts_with("objects "))
			result[name] = size;
	}
	return result;
}

double percentile(const std::vector<double> &sorted, double p)
{
	if (sorted.empty())
		return 0;
	const auto rank = static_cast<size_t>(p * static_cast<double>(sorted.size() - 1) + 0.5);
	return sorted[rank];
}

std::vector<Job> make_jobs(const Options &options)
{
	std::vector<Job> jobs;
	for (const std::string &place : options.places) {
		Job job;
		job.place = parse_place(place);
		job.port = options.port;
		job.per_target = options.per_pair;
		job.at_once = options.at_once;
		job.timeout = std::chrono::milliseconds(static_cast<long>(options.timeout * 1000));
		jobs.push_back(job);
	}
	for (size_t i = 0; i < jobs.size(); i++) {
		for (size_t j = 0; j < jobs.size(); j++) {
			if (i == j || (options.pattern == "many-to-one" && j != 0))
				continue;
			jobs[i].targets.push_back(jobs[j].place.address);
			jobs[j].incoming += options.per_pair;
		}
	}
	return jobs;
}

// Runs the nodes' threads. All threads end one phase before any begins the next.
class Cluster {
public:
	using MakeNode = std::unique_ptr<Node> (*)(const Job &);

	Cluster(std::vector<Job> jobs, MakeNode make_first, MakeNode make)
		: jobs_(std::move(jobs)), results_(jobs_.size()), make_first_(make_first), make_(make),
		  barrier_(static_cast<std::ptrdiff_t>(jobs_.size()), [this]() noexcept { next_phase(); })
	{
	}

	json run();

private:
	void run_node(size_t i);
	void next_phase();
	template <typename Function> void phase(Function function);
	json summary() const;

	std::vector<Job> jobs_;
	std::vector<Result> results_;
	MakeNode make_first_, make_;
	int phase_ = 0;
	Memory before_, after_;
	std::barrier<std::function<void()>> barrier_;
	std::atomic<bool> broken_ = false;
	std::exception_ptr why_;
	std::mutex why_lock_;
};

// Runs between two phases, in one thread; all others wait
void Cluster::next_phase()
{
	phase_++;
	if (phase_ == 2) {
		settle();
		before_ = memory();
	} else if (phase_ == 3) {
		settle();
		after_ = memory();
	}
}

// A node that fails must not leave the others waiting
template <typename Function> void Cluster::phase(Function function)
{
	try {
		if (!broken_)
			function();
	} catch (...) {
		const std::lock_guard guard(why_lock_);
		if (!broken_.exchange(true))
			why_ = std::current_exception();
	}
	barrier_.arrive_and_wait();
}

void Cluster::run_node(size_t i)
{
	std::unique_ptr<Node> node;

	phase([&] {
		enter_netns(jobs_[i].place.netns);
		node = i == 0 ? make_first_(jobs_[i]) : make_(jobs_[i]);
		node->listen();
	});
	phase([&] { node->prepare(); });
	phase([&] { results_[i] = node->connect(); });
	phase([&] { node->close(); });
}

json Cluster::summary() const
{
	std::vector<double> latencies;
	Clock::time_point start = results_[0].start, end{};
	unsigned failed = 0;

	for (const Result &result : results_) {
		latencies.insert(latencies.end(), result.latencies.begin(), result.latencies.end());
		start = std::min(start, result.start);
		end = std::max(end, result.end);
		failed += result.failed;
	}
	std::ranges::sort(latencies);
	json result{
		{"nodes", jobs_.size()},
		{"established", latencies.size()},
		{"failed", failed},
		{"wall_us", Microseconds(end - start).count()},
		{"latency_us",
		 {{"p50", percentile(latencies, 0.5)},
		  {"p90", percentile(latencies, 0.9)},
		  {"p99", percentile(latencies, 0.99)},
		  {"max", percentile(latencies, 1)}}},
	};
	if (!latencies.empty())
		result["bytes_per_connection"] = per_connection(before_, after_, latencies.size());
	return result;
}

json Cluster::run()
{
	std::vector<std::thread> threads;
	for (size_t i = 0; i < jobs_.size(); i++)
		threads.emplace_back([this, i] { run_node(i); });
	for (std::thread &thread : threads)
		thread.join();
	if (why_)
		std::rethrow_exception(why_);
	return summary();
}

json connect(const Options &options)
{
	const auto make = options.transport == "tcp" ? make_tcp_node : make_rdma_node;
	json result = Cluster(make_jobs(options), make, make).run();
	result["transport"] = options.transport;
	result["pattern"] = options.pattern;
	return result;
}

// TCP connections that never send an MPA Request
json half_open(const Options &options)
{
	const bool tcp = options.transport == "tcp";
	std::vector<Job> jobs = make_jobs(options);
	if (!tcp)
		jobs[0].incoming = 0;
	json result = Cluster(jobs, tcp ? make_tcp_sink : make_rdma_node, make_tcp_sink).run();
	result["transport"] = options.transport;
	return result;
}

double time_listen(rdma_event_channel *channel, const sockaddr_in &address, int backlog)
{
	rdma_cm_id *id = nullptr;
	sockaddr_in copy = address;

	if (rdma_create_id(channel, &id, nullptr, RDMA_PS_TCP) != 0)
		throw SystemError("rdma_create_id");
	const std::unique_ptr<rdma_cm_id, int (*)(rdma_cm_id *)> owner(id, rdma_destroy_id);
	if (rdma_bind_addr(id, reinterpret_cast<sockaddr *>(&copy)) != 0)
		throw SystemError("rdma_bind_addr");
	const auto start = Clock::now();
	if (rdma_listen(id, backlog) != 0)
		throw SystemError("rdma_listen");
	return Microseconds(Clock::now() - start).count();
}

// By turns, so that other load affects all backlogs alike
json listen(const Options &options)
{
	const Place place = parse_place(options.places.front());
	enter_netns(place.netns);
	const sockaddr_in address = socket_address(place.address, options.port);
	const std::unique_ptr<rdma_event_channel, void (*)(rdma_event_channel *)> channel(
		rdma_create_event_channel(), rdma_destroy_event_channel);
	if (!channel)
		throw SystemError("rdma_create_event_channel");
	std::map<int, std::vector<double>> times;

	for (unsigned i = 0; i < options.rounds; i++) {
		for (const int backlog : options.backlogs)
			times[backlog].push_back(time_listen(channel.get(), address, backlog));
	}
	json result;
	for (auto &[backlog, list] : times) {
		std::ranges::sort(list);
		result["listen_us"][std::to_string(backlog)] = percentile(list, 0.5);
	}
	return result;
}

void allow_everything()
{
	const rlimit files{.rlim_cur = 65536, .rlim_max = 65536};
	if (::setrlimit(RLIMIT_NOFILE, &files) != 0)
		throw SystemError("setrlimit");
}

} // namespace

int main(int argc, char **argv)
{
	Options options;
	CLI::App app{"Times connection setup over librdmacm, or of equal bytes over plain TCP, between network\n"
		     "namespaces of this machine, and prints one JSON object.\n\n"
		     "Exit status: 0, or 1 on any failure."};
	app.require_subcommand(1);
	const auto add_places = [&](CLI::App *command, size_t least) {
		command->add_option("PLACE", options.places, "[NETNS=]ADDRESS of each node")
			->required()
			->expected(static_cast<int>(least), 256);
		command->add_option("--port", options.port, "TCP port")->capture_default_str();
	};
	const auto add_transport = [&](CLI::App *command) {
		command->add_option("--transport", options.transport, "transport of the connections")
			->check(CLI::IsMember({"rdma", "tcp"}))
			->capture_default_str();
		command->add_option("--per-pair", options.per_pair, "connections from one node to another")
			->check(CLI::PositiveNumber)
			->capture_default_str();
		command->add_option("--at-once", options.at_once, "limit of RDMA connections in setup for each node; 0: no limit")
			->capture_default_str();
		command->add_option("--timeout", options.timeout, "time limit of each step, in seconds")->capture_default_str();
	};
	CLI::App *connect_command = app.add_subcommand("connect", "connect all nodes to the first, or to each other");
	add_places(connect_command, 2);
	add_transport(connect_command);
	connect_command->add_option("--pattern", options.pattern, "pattern of connections")
		->check(CLI::IsMember({"many-to-one", "all-to-all"}))
		->capture_default_str();
	CLI::App *half_open_command = app.add_subcommand("half-open", "open TCP connections that send nothing");
	add_places(half_open_command, 2);
	add_transport(half_open_command);
	CLI::App *listen_command = app.add_subcommand("listen", "measure the time of rdma_listen()");
	add_places(listen_command, 1);
	listen_command->add_option("--backlog", options.backlogs, "backlogs to measure with")->capture_default_str();
	listen_command->add_option("--rounds", options.rounds, "repetitions, of which the median is printed")->capture_default_str();
	CLI11_PARSE(app, argc, argv);

	try {
		allow_everything();
		json result;
		if (connect_command->parsed())
			result = connect(options);
		else if (half_open_command->parsed())
			result = half_open(options);
		else
			result = listen(options);
		fmt::print("{}\n", result.dump());
		return result.value("failed", 0) == 0 ? 0 : 1;
	} catch (const std::exception &error) {
		fmt::print(stderr, "rdmabench: {}\n", error.what());
		return 1;
	}
}
