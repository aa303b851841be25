// SPDX-License-Identifier: GPL-2.0
// mpanl: speaks iw_mpa's netlink interface as rdma_mpa.h has it, for tests. People use `rdma mpa`.
#include <cstdio>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <rdma/rdma_mpa.h>
#include <rdma/rdma_netlink.h>

#include "decode.hpp"
#include "fuzz.hpp"
#include "socket.hpp"

namespace {

using namespace mpanl;

constexpr int exit_refused = 1;

struct Place {
	std::string device;
	unsigned port = 0;
};

// "siw0/1" or "siw0"
Place place_from(const std::string &text)
{
	const size_t slash = text.find('/');
	Place place;

	place.device = text.substr(0, slash);
	if (slash != std::string::npos)
		place.port = static_cast<unsigned>(std::stoul(text.substr(slash + 1)));
	return place;
}

uint16_t type_of(rdma_mpa_cmd cmd)
{
	return static_cast<uint16_t>(RDMA_NL_GET_TYPE(RDMA_NL_MPA, cmd));
}

// All records of a dump; once more if something changed meanwhile
Json dump(Socket &socket, rdma_mpa_cmd cmd)
{
	for (;;) {
		Message message(type_of(cmd), NLM_F_REQUEST | NLM_F_DUMP);
		Json list = Json::array();

		if (socket.request(message, [&](const nlmsghdr &, std::span<const uint8_t> body) {
			    list.push_back(decode(body));
		    }))
			return list;
	}
}

uint32_t index_of(Socket &socket, const std::string &device)
{
	for (const Json &record : dump(socket, RDMA_MPA_CMD_POLICY_GET))
		if (record.value("dev", "") == device)
			return record["dev-index"];
	// A number names a device that does not exist, too
	return static_cast<uint32_t>(std::stoul(device));
}

void put_place(Socket &socket, Message &message, const std::string &text)
{
	if (text.empty() || text == "default")
		return;
	const Place place = place_from(text);

	message.put_u32(RDMA_MPA_ATTR_DEV_INDEX, index_of(socket, place.device));
	if (text.find('/') != std::string::npos)
		message.put_u32(RDMA_MPA_ATTR_PORT, place.port);
}

void print(const Json &json)
{
	fmt::print("{}\n", json.dump());
	std::fflush(stdout);
}

void request(Socket &socket, Message &message)
{
	socket.request(message, [](const nlmsghdr &, std::span<const uint8_t> body) { print(decode(body)); });
}

void show(rdma_mpa_cmd cmd, const std::string &place)
{
	Socket socket;

	if (place.empty()) {
		for (const Json &record : dump(socket, cmd))
			print(record);
		return;
	}
	Message message(type_of(cmd), NLM_F_REQUEST | NLM_F_ACK);

	put_place(socket, message, place);
	request(socket, message);
}

void set(const std::string &place, const std::vector<std::string> &assignments)
{
	Socket socket;
	Message message(type_of(RDMA_MPA_CMD_POLICY_SET), NLM_F_REQUEST | NLM_F_ACK);
	Bytes settings;

	put_place(socket, message, place);
	for (const std::string &assignment : assignments)
		append_setting(settings, assignment);
	message.nest(RDMA_MPA_ATTR_POLICY, settings);
	request(socket, message);
}

void reset(const std::string &place, const std::vector<std::string> &names)
{
	Socket socket;
	Message message(type_of(RDMA_MPA_CMD_POLICY_RESET), NLM_F_REQUEST | NLM_F_ACK);
	uint32_t mask = 0;

	put_place(socket, message, place);
	for (const std::string &name : names)
		mask |= 1U << setting_of(name);
	if (mask)
		message.put_u32(RDMA_MPA_ATTR_SETTINGS, mask);
	request(socket, message);
}

void show_connection(const std::string &device, rdma_mpa_attr attr, uint32_t id)
{
	Socket socket;
	Message message(type_of(RDMA_MPA_CMD_CONN_GET), NLM_F_REQUEST | NLM_F_ACK);

	put_place(socket, message, device);
	message.put_u32(attr, id);
	request(socket, message);
}

void monitor(unsigned seconds)
{
	const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
	Socket socket;

	socket.join(RDMA_NL_GROUP_MPA);
	fmt::print("listening\n");
	std::fflush(stdout);
	for (;;) {
		const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
			end - std::chrono::steady_clock::now());

		if (left.count() <= 0)
			return;
		for_each(socket.receive(left), [](const nlmsghdr &header, std::span<const uint8_t> body) {
			Json json = {{"event", header.nlmsg_type == type_of(RDMA_MPA_CMD_POLICY_NTF) ? "policy" :
												       "connection"}};

			json.update(decode(body));
			print(json);
		});
	}
}

// A request as odd as it may be: any command, flags and attributes
void raw(unsigned command, bool is_dump, const std::string &hex)
{
	Socket socket;
	Message message(static_cast<uint16_t>(RDMA_NL_GET_TYPE(RDMA_NL_MPA, command)),
			static_cast<uint16_t>(NLM_F_REQUEST | (is_dump ? NLM_F_DUMP : NLM_F_ACK)));

	for (size_t i = 0; i + 1 < hex.size(); i += 2)
		message.put_byte(static_cast<uint8_t>(std::stoul(hex.substr(i, 2), nullptr, 16)));
	request(socket, message);
}

// The list of all counters does not fit into one datagram: what is done between two of them?
void interrupt(const std::string &place, const std::vector<std::string> &assignments)
{
	Socket socket;
	Message message(type_of(RDMA_MPA_CMD_STAT_GET), NLM_F_REQUEST | NLM_F_DUMP);
	unsigned records = 0, datagrams = 0;
	bool interrupted = false, done = false;

	socket.send_raw(message.finished(1));
	if (!place.empty())
		set(place, assignments);
	while (!done) {
		const Bytes datagram = socket.receive(std::chrono::seconds(10));

		if (datagram.empty())
			throw std::runtime_error("the list does not end");
		datagrams++;
		for_each(datagram, [&](const nlmsghdr &header, std::span<const uint8_t>) {
			interrupted |= (header.nlmsg_flags & NLM_F_DUMP_INTR) != 0;
			done |= header.nlmsg_type == NLMSG_DONE || header.nlmsg_type == NLMSG_ERROR;
			records += header.nlmsg_type == type_of(RDMA_MPA_CMD_STAT_GET);
		});
	}
	print({{"records", records}, {"datagrams", datagrams}, {"interrupted", interrupted}});
}

} // namespace

int main(int argc, char **argv)
{
	CLI::App app("speaks iw_mpa's netlink interface, for tests; records are JSON, one a line");
	std::vector<std::string> words;
	std::string place;
	unsigned seconds = 3600, qpn = 0, cm_id = 0, command = 0;
	std::string hex;
	bool is_dump = false;
	uint64_t seed = 1;

	app.require_subcommand(1);
	auto *show_app = app.add_subcommand("show", "policies");
	show_app->add_option("PLACE", place, "default, DEVICE or DEVICE/PORT; all without it");
	auto *stat_app = app.add_subcommand("stat", "counters");
	stat_app->add_option("PLACE", place, "DEVICE/PORT; all without it");
	auto *set_app = app.add_subcommand("set", "change a policy");
	set_app->add_option("PLACE", place, "default, DEVICE or DEVICE/PORT")->required();
	set_app->add_option("SETTING", words, "NAME=VALUE");
	auto *reset_app = app.add_subcommand("reset", "forget what a policy has set");
	reset_app->add_option("PLACE", place, "default, DEVICE or DEVICE/PORT")->required();
	reset_app->add_option("SETTING", words, "its name; all without it");
	auto *conn_app = app.add_subcommand("conn", "what a connection negotiated");
	conn_app->add_option("DEVICE", place)->required();
	conn_app->add_option("--qpn", qpn, "number of its QP");
	conn_app->add_option("--cm-id", cm_id, "its id in `rdma resource show cm_id`");
	auto *monitor_app = app.add_subcommand("monitor", "notifications as they come");
	monitor_app->add_option("--seconds", seconds, "how long")->capture_default_str();
	auto *fuzz_app = app.add_subcommand("fuzz", "send random and mutated messages");
	fuzz_app->add_option("--seconds", seconds, "how long")->capture_default_str();
	fuzz_app->add_option("--seed", seed, "what random numbers start from")->capture_default_str();
	auto *raw_app = app.add_subcommand("raw", "any request");
	raw_app->add_option("COMMAND", command, "number of the command")->required();
	raw_app->add_option("ATTRIBUTES", hex, "bytes in hexadecimal");
	raw_app->add_flag("--dump", is_dump, "ask for a list");
	auto *interrupt_app = app.add_subcommand("interrupt", "read the list of all counters, and change a policy meanwhile");
	interrupt_app->add_option("PLACE", place, "default, DEVICE or DEVICE/PORT; nothing is changed without it");
	interrupt_app->add_option("SETTING", words, "NAME=VALUE");
	CLI11_PARSE(app, argc, argv);

	try {
		if (*show_app)
			show(RDMA_MPA_CMD_POLICY_GET, place);
		else if (*stat_app)
			show(RDMA_MPA_CMD_STAT_GET, place);
		else if (*set_app)
			set(place, words);
		else if (*reset_app)
			reset(place, words);
		else if (*conn_app && qpn)
			show_connection(place, RDMA_MPA_ATTR_QPN, qpn);
		else if (*conn_app)
			show_connection(place, RDMA_MPA_ATTR_CM_ID, cm_id);
		else if (*monitor_app)
			monitor(seconds);
		else if (*raw_app)
			raw(command, is_dump, hex);
		else if (*interrupt_app)
			interrupt(place, words);
		else
			return fuzz(std::chrono::seconds(seconds), seed);
	} catch (const Refused &refused) {
		fmt::print(stderr, "refused: errno {}: {}\n", refused.error, refused.what());
		return exit_refused;
	} catch (const std::exception &e) {
		fmt::print(stderr, "mpanl: {}\n", e.what());
		return 2;
	}
	return 0;
}
