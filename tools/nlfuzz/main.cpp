// SPDX-License-Identifier: GPL-2.0
// nlfuzz: sends malformed requests to the generic netlink family rdma-mpa. The kernel's YNL
// client and `rdma mpa` send valid ones.
#include <cstdio>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <rdma/rdma_mpa.h>

#include "fuzz.hpp"
#include "socket.hpp"

namespace {

using namespace nlfuzz;

constexpr int exit_refused = 1;

Bytes bytes_of(const std::string &hex)
{
	Bytes bytes;

	for (size_t i = 0; i + 1 < hex.size(); i += 2)
		bytes.push_back(static_cast<uint8_t>(std::stoul(hex.substr(i, 2), nullptr, 16)));
	return bytes;
}

// Sends a request with any command and any attributes
void raw(uint8_t command, bool is_dump, const Bytes &attributes)
{
	Socket socket;
	const uint16_t family = find_family(socket, RDMA_MPA_FAMILY_NAME).id;
	unsigned records = 0;

	socket.request(family, command, static_cast<uint16_t>(NLM_F_REQUEST | (is_dump ? NLM_F_DUMP : NLM_F_ACK)), attributes,
		       [&](const nlmsghdr &, std::span<const uint8_t>) { records++; });
	fmt::print("taken, {} records\n", records);
}

// Reads a list of several datagrams, with or without a change between two of them
void interrupt(bool is_changed, uint8_t command, const Bytes &attributes)
{
	Socket socket, other;
	// the kernel makes its first datagram as long as those that the socket has taken before
	const uint16_t family = find_family(other, RDMA_MPA_FAMILY_NAME).id;
	unsigned records = 0;
	bool whole;

	const uint32_t seq = socket.send_request(family, RDMA_MPA_CMD_POLICY_GET, NLM_F_REQUEST | NLM_F_DUMP, {});
	if (is_changed)
		other.request(family, command, NLM_F_REQUEST | NLM_F_ACK, attributes,
			      [](const nlmsghdr &, std::span<const uint8_t>) {});
	const unsigned datagrams =
		socket.take_answers(seq, [&](const nlmsghdr &, std::span<const uint8_t>) { records++; }, whole);
	fmt::print("{} records, {} datagrams, {}\n", records, datagrams, whole ? "whole" : "interrupted");
}

} // namespace

int main(int argc, char **argv)
{
	CLI::App app("Sends malformed requests to the generic netlink family rdma-mpa");
	unsigned seconds = 60, threads = 2, command = 0;
	std::string hex;
	bool is_dump = false;
	uint64_t seed = 1;

	app.require_subcommand(1);
	auto *fuzz_app = app.add_subcommand("fuzz", "send random and mutated messages");
	fuzz_app->add_option("--seconds", seconds, "duration in seconds")->capture_default_str();
	fuzz_app->add_option("--seed", seed, "seed of the random numbers")->capture_default_str();
	fuzz_app->add_option("--threads", threads, "number of threads")->check(CLI::Range(1, 64))->capture_default_str();
	auto *raw_app = app.add_subcommand("raw", "send one request");
	raw_app->add_option("COMMAND", command, "number of the command")->required()->check(CLI::Range(0, 255));
	raw_app->add_option("ATTRIBUTES", hex, "attributes in hexadecimal");
	raw_app->add_flag("--dump", is_dump, "request a dump");
	auto *interrupt_app = app.add_subcommand("interrupt", "dump the policies, interrupted by another request");
	auto *amidst = interrupt_app->add_option("COMMAND", command, "number of the interrupting command (default: none)")->check(CLI::Range(0, 255));
	interrupt_app->add_option("ATTRIBUTES", hex, "attributes in hexadecimal");
	CLI11_PARSE(app, argc, argv);

	try {
		if (*raw_app)
			raw(static_cast<uint8_t>(command), is_dump, bytes_of(hex));
		else if (*interrupt_app)
			interrupt(amidst->count() > 0, static_cast<uint8_t>(command), bytes_of(hex));
		else
			return fuzz(std::chrono::seconds(seconds), seed, threads);
	} catch (const Refused &refused) {
		fmt::print(stderr, "refused: errno {}: {}\n", refused.error, refused.what());
		return exit_refused;
	} catch (const std::exception &error) {
		fmt::print(stderr, "nlfuzz: {}\n", error.what());
		return 2;
	}
	return 0;
}
