// SPDX-License-Identifier: GPL-2.0
// rpcpeer: sends and answers messages of RPC-over-RDMA that are given word by word, so that a test can do
// one wrong thing at a time. It knows nothing of the protocol but that a message begins with its xid.
//
//   rpcpeer call ADDRESS -p PORT WORD… [--next 'WORD…']…
//                                         sends one message, prints the answer; then sends each further message, or
//                                         nothing if it is "none", and prints the next message of the server
//   rpcpeer fuzz ADDRESS -p PORT …        sends random headers; after each bad one a call of procedure 0 has to be answered
//   rpcpeer serve ADDRESS -p PORT --answer 'WORD…' …
//                                         prints each message; the first gets the first answer and so on,
//                                         each later one the last answer
//
// A WORD is hexadecimal; "xid" stands for that of the message which is answered. An answer "none" is
// silence, "close" ends the connection, WORDS with "close" at the end do both. serve --procedure 'N WORD…' gives this
// answer to each call of procedure N of NFS instead. "write N OCTETS WORD…" first writes OCTETS times 'w' to the segment
// that begins with word N of the call.
//
// call --memory 'WORD…' --size OCTETS registers memory that the server may read and write. It holds these words and
// then zeros. The words "key", "high" and "low" are its handle and its address; "low+10" is 16 octets further.
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <arpa/inet.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

using Bytes = std::vector<uint8_t>;

constexpr size_t buffer_size = 16384;
constexpr size_t largest_message = 4096; // that a server has room for
constexpr size_t receives = 16;

[[noreturn]] void throw_errno(const char *what)
{
	throw std::runtime_error(fmt::format("{}: {}", what, std::strerror(errno)));
}

void check(int result, const char *what)
{
	if (result)
		throw_errno(what);
}

struct EndpointDeleter {
	void operator()(rdma_cm_id *id) const { rdma_destroy_ep(id); }
};
using Endpoint = std::unique_ptr<rdma_cm_id, EndpointDeleter>;

Endpoint make_endpoint(const std::string &address, const std::string &port, bool passive)
{
	rdma_addrinfo hints{}, *found = nullptr;
	hints.ai_port_space = RDMA_PS_TCP;
	hints.ai_flags = passive ? RAI_PASSIVE | RAI_NUMERICHOST : RAI_NUMERICHOST;
	check(rdma_getaddrinfo(address.c_str(), port.c_str(), &hints, &found), "rdma_getaddrinfo");
	const std::unique_ptr<rdma_addrinfo, decltype(&rdma_freeaddrinfo)> info(found, rdma_freeaddrinfo);
	ibv_qp_init_attr attr{};
	attr.cap = {.max_send_wr = 4, .max_recv_wr = receives, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 0};
	attr.sq_sig_all = 1;
	rdma_cm_id *id = nullptr;
	check(rdma_create_ep(&id, info.get(), nullptr, &attr), "rdma_create_ep");
	return Endpoint(id);
}

struct RegionDeleter {
	void operator()(ibv_mr *region) const { rdma_dereg_mr(region); }
};

/// A connection with its buffers: some to receive into, one to send from.
class Connection {
public:
	explicit Connection(Endpoint id) : id_(std::move(id)), memory_((receives + 1) * buffer_size)
	{
		region_.reset(rdma_reg_msgs(id_.get(), memory_.data(), memory_.size()));
		if (!region_)
			throw_errno("rdma_reg_msgs");
		for (size_t i = 0; i < receives; i++)
			post(i);
	}
	~Connection()
	{
		// of a connection that was not made it would wait for ever
		if (connected_)
			rdma_disconnect(id_.get());
	}
	Connection(const Connection &) = delete;
	Connection &operator=(const Connection &) = delete;

	rdma_cm_id *id() { return id_.get(); }

	void connect(rdma_conn_param &param)
	{
		check(rdma_connect(id_.get(), &param), "rdma_connect");
		connected_ = true;
	}

	bool accept(rdma_conn_param &param)
	{
		connected_ = rdma_accept(id_.get(), &param) == 0;
		return connected_;
	}

	void send(std::span<const uint8_t> message)
	{
		uint8_t *const to = memory_.data() + receives * buffer_size;
		std::copy(message.begin(), message.end(), to);
		check(rdma_post_send(id_.get(), nullptr, to, message.size(), region_.get(), 0), "rdma_post_send");
		ibv_wc wc;
		if (rdma_get_send_comp(id_.get(), &wc) < 0 || wc.status != IBV_WC_SUCCESS)
			closed_ = true;
	}

	/// An RDMA Write of octets 'w', before the next message.
	void write(uint32_t key, uint64_t address, size_t octets)
	{
		uint8_t *const from = memory_.data() + receives * buffer_size;
		octets = std::min(octets, buffer_size);
		std::fill_n(from, octets, 'w');
		check(rdma_post_write(id_.get(), nullptr, from, octets, region_.get(), 0, address, key), "rdma_post_write");
		ibv_wc wc;
		if (rdma_get_send_comp(id_.get(), &wc) < 0 || wc.status != IBV_WC_SUCCESS)
			closed_ = true;
	}

	/// The next message; nothing after the deadline, or if the connection has ended.
	std::optional<std::vector<uint8_t>> receive(milliseconds patience)
	{
		const auto end = Clock::now() + patience;
		ibv_wc wc{};
		for (;;) {
			const int found = ibv_poll_cq(id_->recv_cq, 1, &wc);
			if (found > 0)
				break;
			if (closed_ || Clock::now() >= end)
				return {};
			poll(nullptr, 0, 5);
		}
		if (wc.status != IBV_WC_SUCCESS) {
			closed_ = true;
			return {};
		}
		const uint8_t *const from = memory_.data() + wc.wr_id * buffer_size;
		std::vector<uint8_t> message(from, from + wc.byte_len);
		post(wc.wr_id);
		return message;
	}

	bool is_closed() const { return closed_; }

private:
	void post(size_t number)
	{
		check(rdma_post_recv(id_.get(), reinterpret_cast<void *>(number), memory_.data() + number * buffer_size,
				     buffer_size, region_.get()),
		      "rdma_post_recv");
	}

	Endpoint id_;
	Bytes memory_;
	std::unique_ptr<ibv_mr, RegionDeleter> region_;
	bool connected_ = false;
	bool closed_ = false;
};

uint32_t word_at(std::span<const uint8_t> message, size_t number)
{
	uint32_t word = 0;
	if (message.size() >= 4 * number + 4)
		std::memcpy(&word, message.data() + 4 * number, 4);
	return ntohl(word);
}

std::string describe(std::span<const uint8_t> message, size_t words)
{
	std::string text = fmt::format("{} octets:", message.size());
	for (size_t i = 0; i < std::min(message.size() / 4, words); i++)
		text += fmt::format(" {:x}", word_at(message, i));
	return text;
}

void append(Bytes &message, uint32_t value)
{
	for (int shift = 24; shift >= 0; shift -= 8)
		message.push_back(static_cast<uint8_t>(value >> shift));
}

/// Words that have a name, and their values
using Names = std::map<std::string, uint32_t>;

uint32_t parse_word(const std::string &text, const Names &names)
{
	const auto plus = text.find('+');
	const auto named = names.find(text.substr(0, plus));
	if (named == names.end())
		return static_cast<uint32_t>(std::stoul(text, nullptr, 16));
	return named->second + (plus == std::string::npos ? 0 : static_cast<uint32_t>(std::stoul(text.substr(plus + 1), nullptr, 16)));
}

Bytes encode(const std::vector<std::string> &words, const Names &names)
{
	Bytes message;
	for (const auto &text : words)
		append(message, parse_word(text, names));
	return message;
}

std::vector<std::string> split(const std::string &text)
{
	std::istringstream stream(text);
	return {std::istream_iterator<std::string>(stream), {}};
}

struct Options {
	std::string address;
	std::string port = "20049";
	std::vector<std::string> words;
	std::vector<std::string> next;
	std::vector<std::string> answers;
	std::vector<std::string> procedures;
	std::string memory;
	std::string private_data;
	size_t size = 0;
	size_t octets = 0;
	size_t show = 12;
	uint32_t version = 1;
	uint32_t seed = 1;
	unsigned count = 100;
	double seconds = 3;
};

milliseconds patience_of(const Options &options)
{
	return milliseconds(static_cast<int64_t>(options.seconds * 1000));
}

/// Memory that the peer may read and write.
class Exposed {
public:
	Exposed(rdma_cm_id *id, Bytes content) : memory_(std::move(content))
	{
		region_.reset(ibv_reg_mr(id->pd, memory_.data(), memory_.size(),
					 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE));
		if (!region_)
			throw_errno("ibv_reg_mr");
	}

	Names names() const
	{
		const auto address = reinterpret_cast<uint64_t>(memory_.data());
		return {{"key", region_->rkey}, {"high", static_cast<uint32_t>(address >> 32)}, {"low", static_cast<uint32_t>(address)}};
	}

private:
	Bytes memory_;
	std::unique_ptr<ibv_mr, RegionDeleter> region_;
};

/// A connection to a server
struct Client {
	Client(const Options &options, Bytes content)
		: connection(make_endpoint(options.address, options.port, false)), exposed(connection.id(), std::move(content))
	{
		const Bytes private_data = encode(split(options.private_data), {});
		rdma_conn_param param{};
		param.responder_resources = 1;
		param.private_data = private_data.data();
		param.private_data_len = static_cast<uint8_t>(private_data.size());
		connection.connect(param);
	}

	Connection connection;
	Exposed exposed;
};

/// "xid" and the words of a message that has come
Names names_of(std::span<const uint8_t> message)
{
	Names names{{"xid", word_at(message, 0)}};
	for (size_t i = 0; i < message.size() / 4; i++)
		names[fmt::format("r{}", i)] = word_at(message, i);
	return names;
}

int call(const Options &options)
{
	Bytes content = encode(split(options.memory), {});
	content.resize(std::max({content.size(), options.size, size_t{4}}));
	Client client(options, std::move(content));
	auto message = encode(options.words, client.exposed.names());
	if (options.octets)
		message.resize(options.octets);
	for (auto next = options.next.begin();; ++next) {
		if (!message.empty())
			client.connection.send(message);
		const auto answer = client.connection.receive(patience_of(options));
		fmt::print("{}\n", answer ? describe(*answer, options.show) : client.connection.is_closed() ? "closed" : "no answer");
		std::fflush(stdout);
		if (!answer || next == options.next.end())
			break;
		message = *next == "none" ? Bytes{} : encode(split(*next), names_of(*answer));
	}
	return 0;
}

// ---- random headers

using Random = std::mt19937;

uint32_t below(Random &random, uint32_t limit)
{
	return std::uniform_int_distribution<uint32_t>(0, limit - 1)(random);
}

bool happens(Random &random, uint32_t in)
{
	return below(random, in) == 0;
}

/// The exposed memory of one client: what random segments are about
struct Target {
	uint32_t key, high, low, size;
};

/// Values at which arithmetic goes wrong, and reasonable ones
uint32_t random_length(Random &random, const Target &target)
{
	switch (below(random, 8)) {
	case 0: return std::array{0u, 1u, 0x7fffffffu, 0x80000000u, 0xfffff000u, 0xffffffffu}[below(random, 6)];
	case 1: return target.size;
	case 2: return 4096 * below(random, 16) + below(random, 3) - 1;
	default: return 4 * below(random, 64);
	}
}

void append_segment(Random &random, const Target &target, Bytes &message)
{
	append(message, happens(random, 20) ? random() : target.key);
	append(message, random_length(random, target));
	append(message, happens(random, 20) ? random() : target.high);
	append(message, happens(random, 20) ? random() : target.low);
}

void append_presence(Random &random, Bytes &message, bool present)
{
	append(message, happens(random, 100) ? random() : present);
}

uint32_t random_position(Random &random)
{
	switch (below(random, 4)) {
	case 0: return 0;
	case 1: return random_length(random, {0, 0, 0, 4096});
	default: return 4 * below(random, 128);
	}
}

uint32_t random_count(Random &random)
{
	return happens(random, 6) ? below(random, 200) : below(random, 4);
}

void append_chunk(Random &random, const Target &target, Bytes &message)
{
	const uint32_t count = random_count(random);
	append(message, happens(random, 20) ? random_length(random, target) : count);
	for (uint32_t i = 0; i < count; i++)
		append_segment(random, target, message);
}

void append_lists(Random &random, const Target &target, Bytes &message)
{
	for (uint32_t count = random_count(random), position = random_position(random); count; count--) {
		append_presence(random, message, true);
		if (happens(random, 3))
			position = random_position(random);
		append(message, position);
		append_segment(random, target, message);
	}
	append_presence(random, message, false);
	for (uint32_t count = happens(random, 2) ? below(random, 3) : 0; count; count--) {
		append_presence(random, message, true);
		append_chunk(random, target, message);
	}
	append_presence(random, message, false);
	const bool reply = happens(random, 3);
	append_presence(random, message, reply);
	if (reply)
		append_chunk(random, target, message);
}

constexpr std::array<uint32_t, 10> null_call{0x7e, 0, 2, 100003, 4, 0, 0, 0, 0, 0};

Bytes null_message(uint32_t version)
{
	Bytes message;
	for (const uint32_t word : {0x7eu, version, 1u, 0u})
		append(message, word);
	for (int words = version == 2 ? 4 : 3; words; words--)
		append(message, 0);
	for (const uint32_t word : null_call)
		append(message, word);
	return message;
}

Bytes random_message(Random &random, const Target &target, uint32_t version)
{
	Bytes message;
	append(message, 0x7e);
	append(message, happens(random, 50) ? random() : version);
	append(message, random());
	append(message, happens(random, 4) ? below(random, 7) : below(random, 2));
	if (version == 2)
		append(message, happens(random, 10) ? random() : below(random, 2));
	append_lists(random, target, message);
	for (const uint32_t word : null_call)
		append(message, word);
	if (happens(random, 10))
		message.resize(1 + below(random, message.size()));
	message.resize(std::min(message.size(), largest_message));
	return message;
}

/// The server has to answer this at any time, and soon
void check_server(const Options &options, uint32_t seed)
{
	Client client(options, Bytes(4));
	client.connection.send(null_message(1));
	if (!client.connection.receive(std::chrono::seconds(20)))
		throw std::runtime_error(fmt::format("the server does not answer a valid call after random message {}", seed));
}

int fuzz(const Options &options)
{
	constexpr uint32_t size = 16 * 4096;
	unsigned answered = 0, closed = 0;
	for (uint32_t seed = options.seed; seed < options.seed + options.count; seed++) {
		Random random(seed);
		Bytes content;
		for (const uint32_t word : null_call)
			append(content, word);
		content.resize(size);
		Client client(options, std::move(content));
		const auto names = client.exposed.names();
		const Target target{names.at("key"), names.at("high"), names.at("low"), size};
		const auto version = options.version ? options.version : 1 + below(random, 2);
		client.connection.send(random_message(random, target, version));
		answered += client.connection.receive(patience_of(options)).has_value();
		closed += client.connection.is_closed();
		if (seed % 10 == 0)
			check_server(options, seed);
	}
	check_server(options, options.seed + options.count - 1);
	fmt::print("{} messages, {} answered, {} connections closed\n", options.count, answered, closed);
	return 0;
}

/// Returns whether the connection goes on.
bool answer(Connection &connection, const std::string &text, std::span<const uint8_t> message)
{
	auto words = split(text);
	if (words.size() > 2 && words.front() == "write") {
		const auto segment = parse_word(words[1], {});
		connection.write(word_at(message, segment),
				 uint64_t{word_at(message, segment + 2)} << 32 | word_at(message, segment + 3),
				 parse_word(words[2], {}));
		words.erase(words.begin(), words.begin() + 3);
	}
	const bool closes = !words.empty() && words.back() == "close";
	if (closes)
		words.pop_back();
	if (!words.empty() && words.front() != "none")
		connection.send(encode(words, {{"xid", word_at(message, 0)}}));
	if (closes)
		poll(nullptr, 0, 300); // so that the answer is read first
	return !closes;
}

/// The procedure that a message of NFS calls: RFC 5531 has it behind the program and its version.
std::optional<uint32_t> procedure_of(std::span<const uint8_t> message)
{
	constexpr uint32_t rpc_version = 2, nfs = 100003;
	for (size_t i = 0; i < message.size() / 4; i++) {
		if (word_at(message, i) == rpc_version && word_at(message, i + 1) == nfs)
			return word_at(message, i + 3);
	}
	return {};
}

/// For each procedure its answer
std::map<uint32_t, std::string> parse_procedures(const std::vector<std::string> &texts)
{
	std::map<uint32_t, std::string> answers;
	for (const auto &text : texts) {
		const auto space = text.find(' ');
		if (space == std::string::npos)
			throw std::runtime_error(fmt::format("invalid value '{}' of --procedure: expected the number of a procedure "
							     "and the words of its reply", text));
		answers[parse_word(text.substr(0, space), {})] = text.substr(space);
	}
	return answers;
}

int serve(const Options &options)
{
	const auto procedures = parse_procedures(options.procedures);
	const Endpoint listener = make_endpoint(options.address, options.port, true);
	check(rdma_listen(listener.get(), 8), "rdma_listen");
	fmt::print("listening\n");
	std::fflush(stdout);
	for (size_t number = 0;;) {
		rdma_cm_id *request = nullptr;
		check(rdma_get_request(listener.get(), &request), "rdma_get_request");
		Connection connection{Endpoint(request)};
		rdma_conn_param param{};
		param.responder_resources = 1;
		param.initiator_depth = 1;
		if (!connection.accept(param))
			continue;
		fmt::print("connection\n");
		std::fflush(stdout);
		for (bool goes_on = true; goes_on && !connection.is_closed();) {
			const auto message = connection.receive(patience_of(options));
			if (!message)
				continue;
			fmt::print("{}\n", describe(*message, options.show));
			std::fflush(stdout);
			const auto found = procedures.find(procedure_of(*message).value_or(UINT32_MAX));
			const auto &text = found != procedures.end() ? found->second
								     : options.answers[std::min(number++, options.answers.size() - 1)];
			goes_on = answer(connection, text, *message);
		}
	}
}

} // namespace

int main(int argc, char **argv)
{
	CLI::App app{"Sends and answers messages of RPC-over-RDMA, given as words"};
	Options options;
	app.require_subcommand(1);
	auto *const caller = app.add_subcommand("call", "send one message, print the answer");
	auto *const server = app.add_subcommand("serve", "print messages, answer them");
	auto *const fuzzer = app.add_subcommand("fuzz", "send random headers, check that the server still answers");
	for (auto *const command : {caller, server, fuzzer}) {
		command->add_option("address", options.address, "address of the server")->required();
		command->add_option("-p,--port", options.port, "port of the server")->capture_default_str();
		command->add_option("--seconds", options.seconds, "time limit for a message")->capture_default_str();
		command->add_option("--show", options.show, "words to print of a message")->capture_default_str();
	}
	caller->add_option("words", options.words, "hexadecimal words of the message")->required();
	caller->add_option("--next", options.next, "words of a further message, or \"none\"")->allow_extra_args(false);
	caller->add_option("--octets", options.octets, "truncate the message to this length, or pad it with zeros")
		->check(CLI::Range(1, 4096));
	caller->add_option("--memory", options.memory, "words of the memory exposed to the server");
	caller->add_option("--size", options.size, "octets of the memory exposed to the server")->check(CLI::Range(4, 1 << 24));
	caller->add_option("--private", options.private_data, "words of the private data of the connection (RFC 8797)");
	fuzzer->add_option("--rpc-version", options.version, "version of the headers; 0 for both")->check(CLI::Range(0, 2));
	fuzzer->add_option("--seed", options.seed, "seed of the first message, incremented for each further message")->capture_default_str();
	fuzzer->add_option("--count", options.count, "number of messages")->capture_default_str();
	server->add_option("--answer", options.answers, "words, \"none\" or \"close\"")->required();
	server->add_option("--procedure", options.procedures, "an NFS procedure, and the answer to each call of it");
	CLI11_PARSE(app, argc, argv);
	try {
		return caller->parsed() ? call(options) : fuzzer->parsed() ? fuzz(options) : serve(options);
	} catch (const std::exception &error) {
		fmt::print(stderr, "rpcpeer: {}\n", error.what());
		return 1;
	}
}
