// SPDX-License-Identifier: GPL-2.0
// rdmafault: connections between two network namespaces of this machine, each with one more
// allocation that is let through before one fails, until none does any more.
//
// Wants a kernel with CONFIG_FAILSLAB, and failslab's ignore-gfp-wait off.
#include "endpoint.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>

#include <CLI/CLI.hpp>
#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

namespace {

using namespace rdmafirst;

struct FaultOptions {
	std::string stage;
	std::string client_netns = "a";
	std::string server_netns = "b";
	Options connection;
	unsigned most = 400;
	double seconds = 120;
};

// Each attempt waits for one event that rdma_ucm may lose without memory, ESTABLISHED
// of the client; a lost CONNECT_REQUEST is refused. The number of allocations before it
// varies, so several attempts may hit this one.
constexpr unsigned most_lost = 3;

// What is made from here on is made in that namespace.
void enter(const std::string &netns)
{
	const int fd = ::open(("/run/netns/" + netns).c_str(), O_RDONLY | O_CLOEXEC);
	if (fd < 0 || ::setns(fd, CLONE_NEWNET) != 0)
		throw SystemError("setns " + netns);
	::close(fd);
}

// The tasks whose allocations fail: this one, or the kernel's workers.
class Faults {
public:
	static Faults self() { return Faults({"/proc/thread-self/fail-nth"}); }
	static Faults workers();

	void arm(unsigned nth) const
	{
		for (const std::string &file : files_)
			std::ofstream(file) << nth;
	}
	// Returns whether one has failed.
	[[nodiscard]] bool disarm() const
	{
		bool hit = false;
		for (const std::string &file : files_) {
			unsigned left = 1;
			if (std::ifstream(file) >> left)
				hit = hit || left == 0;
			std::ofstream(file) << 0;
		}
		return hit;
	}

private:
	explicit Faults(std::vector<std::string> files) : files_(std::move(files)) {}

	std::vector<std::string> files_;
};

Faults Faults::workers()
{
	std::vector<std::string> files;
	for (const auto &entry : std::filesystem::directory_iterator("/proc")) {
		std::string name;
		std::ifstream comm(entry.path() / "comm");
		if (std::getline(comm, name) && (name.starts_with("kworker/") || name.starts_with("siw_tx/")))
			files.push_back(entry.path() / "fail-nth");
	}
	return Faults(std::move(files));
}

// How a connection went
struct Outcome {
	bool hit = false;
	bool connected = false;
	bool lost = false;
	std::string text;
};

class Attempt {
public:
	Attempt(const FaultOptions &options, unsigned nth) : options_(options), nth_(nth) {}

	Outcome run();

private:
	static constexpr std::chrono::seconds deadline{25};

	void listen();
	void resolve();
	void register_memory();
	void connect();
	void on_client_event(const Event &event);
	void on_server_event(const Event &event);
	void wait_for_outcome();
	Event await(rdma_event_channel *channel, std::string_view what);
	// Runs it with faults if this is the stage for them. Throws SystemError.
	void with_faults(std::string_view stage, const std::function<int()> &call);

	const FaultOptions &options_;
	unsigned nth_;
	Outcome outcome_;
	bool over_ = false;
	Channel server_channel_ = make_channel();
	Channel client_channel_ = make_channel();
	Id listener_;
	std::optional<Endpoint> accepted_;
	std::optional<Endpoint> client_;
};

void Attempt::with_faults(std::string_view stage, const std::function<int()> &call)
{
	const Faults faults = Faults::self();
	const bool here = options_.stage == stage;
	if (here)
		faults.arm(nth_);
	const int rv = call();
	const int error = errno;
	if (here)
		outcome_.hit = faults.disarm();
	if (rv != 0) {
		errno = error;
		throw SystemError(stage);
	}
}

Event Attempt::await(rdma_event_channel *channel, std::string_view what)
{
	const std::array fds{channel->fd};
	for (;;) {
		if (auto event = next_event(channel))
			return *event;
		wait_readable(fds, Clock::now() + deadline, what);
	}
}

void Attempt::listen()
{
	enter(options_.server_netns);
	sockaddr_storage address = socket_address(options_.connection);
	listener_ = make_id(server_channel_.get());
	if (rdma_bind_addr(listener_.get(), reinterpret_cast<sockaddr *>(&address)) != 0)
		throw SystemError("rdma_bind_addr");
	with_faults("listen", [this] { return rdma_listen(listener_.get(), 4); });
}

void Attempt::resolve()
{
	enter(options_.client_netns);
	sockaddr_storage address = socket_address(options_.connection);
	client_.emplace(make_id(client_channel_.get()));
	rdma_cm_id *id = client_->id();
	if (rdma_resolve_addr(id, nullptr, reinterpret_cast<sockaddr *>(&address), 2000) != 0)
		throw SystemError("rdma_resolve_addr");
	if (await(client_channel_.get(), "address").type != RDMA_CM_EVENT_ADDR_RESOLVED ||
	    rdma_resolve_route(id, 2000) != 0 ||
	    await(client_channel_.get(), "route").type != RDMA_CM_EVENT_ROUTE_RESOLVED)
		throw std::runtime_error("rdma_cm did not resolve the address of the server");
	client_->create_qp();
}

void Attempt::register_memory()
{
	static std::array<char, 10000> memory;
	Mr mr;
	with_faults("memory", [&] {
		mr.reset(ibv_reg_mr(client_->id()->pd, memory.data(), memory.size(), IBV_ACCESS_LOCAL_WRITE));
		return mr ? 0 : -1;
	});
}

void Attempt::connect()
{
	rdma_conn_param param = conn_param(options_.connection);
	with_faults("connect", [&] { return rdma_connect(client_->id(), &param); });
	wait_for_outcome();
}

void Attempt::on_client_event(const Event &event)
{
	if (over_)
		return;
	over_ = true;
	outcome_.connected = event.type == RDMA_CM_EVENT_ESTABLISHED && event.status == 0;
	outcome_.text = event.describe();
}

void Attempt::on_server_event(const Event &event)
{
	if (event.type != RDMA_CM_EVENT_CONNECT_REQUEST)
		return;
	accepted_.emplace(Id(event.id));
	accepted_->create_qp();
	rdma_conn_param param = conn_param(options_.connection);
	try {
		with_faults("accept", [&] { return rdma_accept(accepted_->id(), &param); });
	} catch (const SystemError &error) {
		outcome_.text = error.what();
		accepted_.reset();
	}
}

void Attempt::wait_for_outcome()
{
	const std::array fds{server_channel_->fd, client_channel_->fd};
	const auto end = Clock::now() + deadline;
	while (!over_) {
		wait_readable(fds, end, "the outcome");
		if (auto event = next_event(server_channel_.get()))
			on_server_event(*event);
		if (auto event = next_event(client_channel_.get()))
			on_client_event(*event);
	}
}

Outcome Attempt::run()
{
	std::optional<Faults> workers;
	try {
		listen();
		resolve();
		register_memory();
		if (options_.stage == "workers") {
			workers = Faults::workers();
			workers->arm(nth_);
		}
		connect();
	} catch (const SystemError &error) {
		outcome_.text = error.what();
	} catch (const DeadlinePassed &error) {
		// rdma_ucm loses an event for which it has no memory
		if (!workers || !workers->disarm())
			throw DeadlinePassed(fmt::format("{} {}: {}", options_.stage, nth_, error.what()));
		return {.hit = true, .lost = true, .text = "no event"};
	}
	if (workers)
		outcome_.hit = workers->disarm();
	return outcome_;
}

bool run(const FaultOptions &options)
{
	unsigned quiet = 0;
	unsigned failed = 0;
	unsigned lost = 0;
	std::map<std::string, unsigned> outcomes;
	const auto end = Clock::now() + std::chrono::duration<double>(options.seconds);
	unsigned nth = 1;
	for (; nth <= options.most && quiet < 3 && Clock::now() < end; nth++) {
		const auto start = Clock::now();
		Outcome outcome = Attempt(options, nth).run();
		// rdma_cm does not know which ports TCP still has in TIME_WAIT
		for (int again = 0; again < 3 && !outcome.hit && outcome.text.ends_with(std::strerror(EADDRINUSE)); again++)
			outcome = Attempt(options, nth).run();
		const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start).count();
		if (outcome.hit) {
			quiet = 0;
			failed++;
			lost += outcome.lost;
			outcomes[outcome.connected ? "connected despite the failure" : outcome.text]++;
		} else if (outcome.connected || options.stage == "listen") {
			quiet++;
		} else {
			say(fmt::format("{} {}: no allocation failed, but: {}", options.stage, nth, outcome.text));
			return false;
		}
		if (ms > 3000)
			say(fmt::format("{} {}: {} after {} ms", options.stage, nth, outcome.text, ms));
	}
	for (const auto &[text, count] : outcomes)
		say(fmt::format("{}: {} times: {}", options.stage, count, text));
	say(fmt::format("{}: {} allocations failed, one at a time{}", options.stage, failed,
			quiet < 3 ? "; more allocations were not tried" : ""));
	const std::string pinned = pinned_memory();
	if (pinned != "0 kB")
		say("pinned at the end: " + pinned);
	return failed != 0 && lost <= most_lost && quiet >= 3 && pinned == "0 kB";
}

} // namespace

int main(int argc, char **argv)
{
	FaultOptions options;
	CLI::App app{"Connects repeatedly with the Nth allocation failing, for N = 1, 2, … until no allocation fails.\n\n"
		     "Exit status: 0 each connection was established or failed properly, 1 not, 2 usage or system error."};
	app.add_option("STAGE", options.stage, "place of the failing allocations: registering memory, the call of this name, or the kernel's workers")
		->required()
		->check(CLI::IsMember({"memory", "listen", "connect", "accept", "workers"}));
	app.add_option("ADDR", options.connection.address, "address of the server")->required();
	app.add_option("PORT", options.connection.port, "port of the server")->required();
	app.add_option("--client", options.client_netns, "the client's network namespace")->capture_default_str();
	app.add_option("--server", options.server_netns, "the server's network namespace")->capture_default_str();
	app.add_option("--most", options.most, "maximum number of attempts")->capture_default_str();
	app.add_option("--seconds", options.seconds, "time limit in seconds")->capture_default_str();
	CLI11_PARSE(app, argc, argv);
	// iw_cm allocates a copy of it for each event that has some
	options.connection.pdata = {'d', 'a', 't', 'a'};
	try {
		catch_sigterm();
		return run(options) ? 0 : 1;
	} catch (const DeadlinePassed &error) {
		fmt::print(stderr, "rdmafault: {}\n", error.what());
		return 1;
	} catch (const std::exception &error) {
		fmt::print(stderr, "rdmafault: {}\n", error.what());
		return 2;
	}
}
