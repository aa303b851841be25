// SPDX-License-Identifier: GPL-2.0
// rdmafirst: a connection on which the responder speaks first, and what the rdma_cm tells of it.
//
// The server posts a Send right behind its accept; the client posts receives before it connects,
// and then only waits. Every event is printed as it comes.
#include "endpoint.h"

#include <cstdio>
#include <functional>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace {

using rdmafirst::Exit;

// rdma_cm's lengths of private data are 8 bit: more cannot be asked of it
constexpr unsigned pdata_max = 255;

std::vector<uint8_t> bytes_of(const std::string &text)
{
	return {text.begin(), text.end()};
}

std::vector<uint8_t> pattern(unsigned length)
{
	std::vector<uint8_t> bytes(length);
	for (unsigned i = 0; i < length; i++)
		bytes[i] = static_cast<uint8_t>(i);
	return bytes;
}

// Adds --NAME TEXT and --NAME-len N (byte i is i), which exclude each other.
void add_pdata(CLI::App &app, const std::string &name, const std::string &what,
	       const std::function<void(std::vector<uint8_t>)> &set)
{
	auto *text = app.add_option_function<std::string>(
		"--" + name, [set](const std::string &value) { set(bytes_of(value)); }, what);
	text->check([](const std::string &value) {
		return value.size() > pdata_max ? fmt::format("longer than {} bytes", pdata_max) : std::string();
	});
	app.add_option_function<unsigned>(
		   "--" + name + "-len", [set](unsigned length) { set(pattern(length)); },
		   what + ", so many bytes, byte i is i")
		->check(CLI::Range(0U, pdata_max))
		->excludes(text);
}

void add_mpa(CLI::App &app, const std::string &name, const std::string &what, std::vector<rdmafirst::MpaOption> &out)
{
	app.add_option_function<std::vector<std::string>>(
		name,
		[&out](const std::vector<std::string> &texts) {
			for (const std::string &text : texts)
				out.push_back(rdmafirst::mpa_option(text));
		},
		what);
}

void add_common(CLI::App &app, rdmafirst::Options &options)
{
	app.add_option("ADDR", options.address, "IPv4 or IPv6 address of the server")->required();
	app.add_option("PORT", options.port, "TCP port of the server")->required();
	app.add_option("--ird", options.responder_resources, "responder_resources")
		->check(CLI::Range(0U, 255U))
		->capture_default_str();
	app.add_option("--ord", options.initiator_depth, "initiator_depth")
		->check(CLI::Range(0U, 255U))
		->capture_default_str();
	add_mpa(app, "--mpa", "MPA option set before connect or listen, NAME=VALUE", options.mpa);
}

Exit run(int argc, char **argv)
{
	rdmafirst::Options options;
	double timeout = 30;
	CLI::App app{"A connection on which the responder speaks first.\n\n"
		     "Exit status: 0 as it should be, 1 the connection failed, 2 usage or system error,\n"
		     "3 nothing happened until the deadline, 4 the server rejected, 5 SIGTERM came and\n"
		     "everything has been destroyed in order."};
	app.require_subcommand(1);

	auto *server = app.add_subcommand("server", "accept, and send at once");
	add_common(*server, options);
	add_pdata(*server, "pdata", "private data of the accept",
		  [&](std::vector<uint8_t> bytes) { options.pdata = std::move(bytes); });
	add_pdata(*server, "reject", "reject with this private data",
		  [&](std::vector<uint8_t> bytes) { options.reject = std::move(bytes); });
	server->add_option("--send", options.send, "what is sent right after accept (default: first)")
		->expected(1)->take_all();
	bool silent = false;
	server->add_flag("--silent", silent, "send nothing");
	server->add_option("--count", options.count, "end after so many connections; 0: never")
		->capture_default_str();
	server->add_option("--backlog", options.backlog)->capture_default_str();
	add_mpa(*server, "--mpa-accept", "the same, set before accept", options.mpa_accept);
	unsigned delay_ms = 0;
	server->add_option("--delay", delay_ms, "milliseconds between a request and its answer");
	server->add_option("--again", options.again, "answer a second time after accept, which is wrong")
		->check(CLI::IsMember({"accept", "reject"}));
	server->add_flag("--read", options.read, "post an RDMA Read (of address 0) instead of a Send");
	server->add_flag("--spoil", options.spoil, "accept with a queue pair that is in the error state");
	server->add_flag("--forget", options.forget, "deregister the memory of messages soon after there is a connection");
	server->add_flag("--expose", options.expose,
			 "send address and rkey of memory that the peer may write and read");
	server->add_option("--pages", options.pages, "so much of it")->check(CLI::Range(1, 16384))->capture_default_str();
	server->add_option("--take-back", options.take_back, "deregister it as soon as there is a file of this name");
	server->add_flag("--restless", options.restless, "modify the queue pair all the time, to what it is");
	server->add_option("--ignore", options.ignore, "leave requests with this private data unanswered");
	server->add_option("--timeout", timeout, "seconds without anything happening")->capture_default_str();

	auto *client = app.add_subcommand("client", "connect, and wait for a message");
	add_common(*client, options);
	add_mpa(*client, "--mpa-bad", "MPA option that has to be refused", options.mpa_bad);
	add_pdata(*client, "pdata", "private data of the connect",
		  [&](std::vector<uint8_t> bytes) { options.pdata = std::move(bytes); });
	client->add_option("--send", options.send, "send this once established")->expected(1)->take_all();
	client->add_flag("--spoil", options.spoil, "connect with a queue pair that is in the error state");
	client->add_flag("--too-early", options.too_early, "post a request that is no good before connecting");
	client->add_flag("--read", options.read, "post an RDMA Read once established");
	unsigned linger_ms = 0;
	client->add_option("--linger", linger_ms, "milliseconds to look for more events after a failure");
	client->add_option("--expect", options.expect, "fail unless this is what is received");
	bool no_receive = false;
	client->add_flag("--hold", options.hold, "stay connected until the server or the device goes");
	client->add_option("--odd", options.odd, "do this once there is a connection, and tell what completes")
		->check(CLI::IsMember(rdmafirst::odd_things()));
	client->add_option("--side-by-side", options.side_by_side,
			   "start so many connections and hold them until each has ended, one way or another");
	client->add_flag("--leave-qp", rdmafirst::IdDeleter::leave_qp, "destroy the id before its queue pair");
	client->add_option("--times", options.times, "connect so often, one after the other")->capture_default_str();
	client->add_flag("--cut", options.cut, "disconnect while it connects");
	client->add_flag("--torn", options.torn, "disconnect while another thread destroys the queue pair");
	client->add_flag("--no-receive", no_receive, "do not wait for a message");
	client->add_option("--timeout", timeout, "seconds for everything")->capture_default_str();

	try {
		app.parse(argc, argv);
	} catch (const CLI::ParseError &error) {
		return app.exit(error) == 0 ? Exit::ok : Exit::usage;
	}
	options.timeout = std::chrono::milliseconds(static_cast<long>(timeout * 1000));
	options.delay = std::chrono::milliseconds(delay_ms);
	options.linger = std::chrono::milliseconds(linger_ms);
	options.receive = !no_receive;
	if (server->parsed() && options.send.empty() && !silent)
		options.send = {"first"};
	return server->parsed() ? rdmafirst::run_server(options) : rdmafirst::run_client(options);
}

} // namespace

int main(int argc, char **argv)
{
	Exit result = Exit::usage;
	try {
		rdmafirst::catch_sigterm();
		result = run(argc, argv);
	} catch (const rdmafirst::Stopped &) {
		result = Exit::stopped;
	} catch (const rdmafirst::DeadlinePassed &error) {
		result = Exit::deadline;
		fmt::print(stderr, "rdmafirst: {}\n", error.what());
	} catch (const std::exception &error) {
		fmt::print(stderr, "rdmafirst: {}\n", error.what());
	}
	// Everything has been released: whatever is pinned still has been leaked.
	fmt::print("pinned at the end: {}\n", rdmafirst::pinned_memory());
	return static_cast<int>(result);
}
