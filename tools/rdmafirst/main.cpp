// SPDX-License-Identifier: GPL-2.0
// rdmafirst: a connection on which the responder speaks first, and what the rdma_cm tells of it.
//
// The server posts a Send right behind its accept; the client posts receives before it connects,
// and then only waits. Every event is printed as it comes.
#include "endpoint.h"
#include "foreign.h"

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
		   what + ": this number of bytes, byte i is i")
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

void add_ms(CLI::App &app, const std::string &name, const std::string &what, std::chrono::milliseconds &out)
{
	app.add_option_function<unsigned>(
		name, [&out](unsigned ms) { out = std::chrono::milliseconds(ms); }, what);
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
	add_mpa(app, "--mpa-late", "MPA option that must be rejected after rdma_listen() or rdma_connect(), NAME=VALUE", options.mpa_late);
	add_pdata(app, "pdata", "private data of the connect or accept",
		  [&options](std::vector<uint8_t> bytes) { options.pdata = std::move(bytes); });
	auto *qp_of = app.add_option("--qp-of", options.qp_of,
				     "connect or accept with a queue pair of this device that another process has created: nobody:DEVICE, "
				     "by the user nobody; parent:DEVICE, by the parent process; sender:DEVICE, by a process that has sent its "
				     "file descriptor and exited");
	app.add_flag("--disconnect-again", options.disconnect_again, "call rdma_disconnect() after DISCONNECTED as well");
	app.add_option("--qpn", options.qpn, "connect or accept with the queue pair of this number")->excludes(qp_of);
	app.add_option_function<double>(
		"--timeout",
		[&options](double s) { options.timeout = std::chrono::milliseconds(static_cast<long>(s * 1000)); },
		"time limit in seconds: server: between events; client: in total (default: 30)");
}

void add_server(CLI::App &app, rdmafirst::Options &options)
{
	add_common(app, options);
	add_pdata(app, "reject", "reject with this private data",
		  [&options](std::vector<uint8_t> bytes) { options.reject = std::move(bytes); });
	app.add_option("--send", options.send, "text to send right after accept (default: first)")
		->expected(1)->take_all();
	app.add_flag("--silent")->description("send nothing");
	app.add_option("--count", options.count, "exit after this number of connections; 0: never")->capture_default_str();
	app.add_option("--backlog", options.backlog)->capture_default_str();
	app.add_option("--listeners", options.listeners, "number of ports to listen on, starting at PORT")
		->check(CLI::Range(1U, 65535U))
		->capture_default_str();
	add_mpa(app, "--mpa-accept", "MPA option set before accept, NAME=VALUE", options.mpa_accept);
	add_ms(app, "--delay", "milliseconds between a request and its answer", options.delay);
	app.add_option("--again", options.again, "answer a second time after accept (an invalid call)")
		->check(CLI::IsMember({"accept", "reject"}));
	app.add_flag("--read", options.read, "post an RDMA Read (of address 0) instead of a Send");
	app.add_flag("--spoil", options.spoil, "accept with a queue pair that is in the error state");
	app.add_flag("--forget", options.forget, "deregister the memory of messages soon after the connection is established");
	app.add_flag("--expose", options.expose, "send address and rkey of memory that the peer may write and read");
	app.add_option("--pages", options.pages, "size of the exposed memory, in pages")->check(CLI::Range(1, 16384))->capture_default_str();
	app.add_option("--take-back", options.take_back, "deregister the exposed memory when this file appears");
	app.add_flag("--other-pd", options.other_pd, "expose memory of another protection domain than the queue pair's");
	app.add_flag("--deny", options.deny, "remove all remote access rights from the queue pair");
	app.add_option("--tries", options.tries, "number of attempts to listen")->capture_default_str();
	app.add_flag("--restless", options.restless, "keep modifying the queue pair to its current state");
	app.add_flag("--disconnect-first", options.disconnect_first, "call rdma_disconnect() when a message is received");
	app.add_flag("--talk", options.talk,
		     "send each message back; after \"write ADDRESS RKEY\", also as private data, RDMA Writes instead, one after the other");
	app.add_option("--ignore", options.ignore, "leave requests with this private data unanswered");
}

void add_client(CLI::App &app, rdmafirst::Options &options)
{
	add_common(app, options);
	add_mpa(app, "--mpa-early", "MPA option set before the id has a device, NAME=VALUE", options.mpa_early);
	add_mpa(app, "--mpa-bad", "MPA option that must be rejected, NAME=VALUE", options.mpa_bad);
	app.add_option("--send", options.send, "text to send when the connection is established")->expected(1)->take_all();
	app.add_flag("--spoil", options.spoil, "connect with a queue pair that is in the error state");
	app.add_option("--modify", options.modify, "modify the queue pair to this state before connecting")
		->check(CLI::IsMember({"sqd", "sqe", "reset"}));
	app.add_flag("--too-early", options.too_early, "post an invalid request before connecting");
	app.add_flag("--read", options.read, "post an RDMA Read when the connection is established");
	auto *source = app.add_option("--source", options.source, "source address");
	app.add_option("--source-port", options.source_port)->needs(source);
	add_ms(app, "--linger", "milliseconds to wait for more events after a failure", options.linger);
	app.add_option("--expect", options.expect, "fail unless this text is received");
	app.add_flag("--hold", options.hold, "stay connected until the server closes or the device is removed");
	app.add_option("--odd", options.odd, "misuse to perform on the established connection; prints its completions")
		->check(CLI::IsMember(rdmafirst::odd_things()));
	app.add_option("--side-by-side", options.side_by_side,
		       "number of connections to start at once and hold until each has ended");
	app.add_flag("--flooded", options.flooded, "ask a server with --talk for RDMA Writes");
	app.add_option("--beside", options.beside,
		       "of servers with --talk: --side-by-side connections to this port as well; print the answers of either port");
	app.add_option_function<unsigned>(
		"--measured", [&options](unsigned s) { options.measured = std::chrono::seconds(s); },
		"seconds for which --beside counts answers (default: 30)");
	app.add_flag("--leave-qp", rdmafirst::IdDeleter::leave_qp, "destroy the id before its queue pair");
	app.add_option("--times", options.times, "number of successive connections")->capture_default_str();
	app.add_option("--port-step", options.port_step, "difference between the ports of successive connections")->capture_default_str();
	app.add_flag("--disconnect-early", options.disconnect_early, "call rdma_disconnect() during rdma_connect()");
	app.add_flag("--cut", options.cut, "disconnect during rdma_connect()");
	app.add_flag("--torn", options.torn, "disconnect while another thread destroys the queue pair");
	app.add_flag("--no-receive{false}", options.receive, "do not wait for a message");
}

Exit run(int argc, char **argv)
{
	rdmafirst::Options options;
	CLI::App app{"Makes a connection on which the responder sends first.\n\n"
		     "Exit status: 0 success, 1 the connection failed, 2 usage or system error,\n"
		     "3 the deadline passed, 4 the server rejected, 5 ended by SIGTERM with\n"
		     "all objects destroyed in order."};
	app.require_subcommand(1);
	app.set_version_flag("--version", "rdmafirst " RDMAFIRST_VERSION);
	auto *server = app.add_subcommand("server", "accept, and send at once");
	add_server(*server, options);
	add_client(*app.add_subcommand("client", "connect, and wait for a message"), options);
	auto *stuck = app.add_subcommand("stuck", "read events into memory that is never populated (userfaultfd)");
	add_common(*stuck, options);
	auto *resolver = app.add_subcommand("resolver", "resolve the server's address, without a connection");
	add_common(*resolver, options);
	resolver->add_option("--times", options.times, "number of ids that are resolved")->capture_default_str();
	auto *holder = app.add_subcommand("holder", "hold a device with one object of each kind, until SIGTERM");
	holder->add_option("DEVICE", options.device)->required();
	holder->add_flag("--busy", options.busy, "poll the completion queue continuously");
	try {
		app.parse(argc, argv);
	} catch (const CLI::ParseError &error) {
		return app.exit(error) == 0 ? Exit::ok : Exit::usage;
	}
	if (stuck->parsed())
		return rdmafirst::run_stuck(options);
	if (resolver->parsed())
		return rdmafirst::run_resolver(options);
	if (holder->parsed())
		return rdmafirst::run_holder(options);
	const rdmafirst::OthersQp other(options.qp_of);
	if (other.number() != 0)
		options.qpn = other.number();
	if (!server->parsed())
		return rdmafirst::run_client(options);
	if (options.send.empty() && server->count("--silent") == 0)
		options.send = {"first"};
	return rdmafirst::run_server(options);
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
