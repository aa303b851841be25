// SPDX-License-Identifier: GPL-2.0
// rpcpeer: sends and answers messages of RPC-over-RDMA that are given word by word, so that a test can do
// one wrong thing at a time. It knows nothing of the protocol but that a message begins with its xid.
//
//   rpcpeer call ADDRESS -p PORT WORD…    sends one message, prints the answer
//   rpcpeer serve ADDRESS -p PORT --answer 'WORD…' …
//                                         prints each message; the first gets the first answer and so on,
//                                         each later one the last answer
//
// A WORD is hexadecimal; "xid" stands for that of the message which is answered. An answer "none" is
// silence, "close" ends the connection, WORDS with "close" at the end do both.
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
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

constexpr size_t buffer_size = 4096;
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
		rdma_disconnect(id_.get());
	}
	Connection(const Connection &) = delete;
	Connection &operator=(const Connection &) = delete;

	rdma_cm_id *id() { return id_.get(); }

	void send(std::span<const uint8_t> message)
	{
		uint8_t *const to = memory_.data() + receives * buffer_size;
		std::copy(message.begin(), message.end(), to);
		check(rdma_post_send(id_.get(), nullptr, to, message.size(), region_.get(), 0), "rdma_post_send");
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
	std::vector<uint8_t> memory_;
	std::unique_ptr<ibv_mr, RegionDeleter> region_;
	bool closed_ = false;
};

uint32_t word_at(std::span<const uint8_t> message, size_t number)
{
	uint32_t word = 0;
	if (message.size() >= 4 * number + 4)
		std::memcpy(&word, message.data() + 4 * number, 4);
	return ntohl(word);
}

/// At most as many words as the longest header without chunks and some more.
std::string describe(std::span<const uint8_t> message)
{
	std::string text = fmt::format("{} octets:", message.size());
	for (size_t i = 0; i < std::min<size_t>(message.size() / 4, 12); i++)
		text += fmt::format(" {:x}", word_at(message, i));
	return text;
}

std::vector<uint8_t> encode(const std::vector<std::string> &words, uint32_t xid)
{
	std::vector<uint8_t> message;
	for (const auto &text : words) {
		const uint32_t word = htonl(text == "xid" ? xid : static_cast<uint32_t>(std::stoul(text, nullptr, 16)));
		const auto *const bytes = reinterpret_cast<const uint8_t *>(&word);
		message.insert(message.end(), bytes, bytes + 4);
	}
	return message;
}

struct Options {
	std::string address;
	std::string port = "20049";
	std::vector<std::string> words;
	std::vector<std::string> answers;
	size_t octets = 0;
	double seconds = 3;
};

milliseconds patience_of(const Options &options)
{
	return milliseconds(static_cast<int64_t>(options.seconds * 1000));
}

int call(const Options &options)
{
	Connection connection(make_endpoint(options.address, options.port, false));
	rdma_conn_param param{};
	param.responder_resources = 1;
	check(rdma_connect(connection.id(), &param), "rdma_connect");
	auto message = encode(options.words, 0);
	if (options.octets)
		message.resize(options.octets);
	connection.send(message);
	const auto answer = connection.receive(patience_of(options));
	fmt::print("{}\n", answer ? describe(*answer) : connection.is_closed() ? "closed" : "no answer");
	return 0;
}

/// Returns whether the connection goes on.
bool answer(Connection &connection, const std::string &text, uint32_t xid)
{
	std::istringstream stream(text);
	std::vector<std::string> words;
	for (std::string word; stream >> word;)
		words.push_back(word);
	const bool closes = !words.empty() && words.back() == "close";
	if (closes)
		words.pop_back();
	if (!words.empty() && words.front() != "none")
		connection.send(encode(words, xid));
	if (closes)
		poll(nullptr, 0, 300); // so that the answer is read first
	return !closes;
}

int serve(const Options &options)
{
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
		if (rdma_accept(connection.id(), &param))
			continue;
		fmt::print("connection\n");
		std::fflush(stdout);
		for (bool goes_on = true; goes_on && !connection.is_closed();) {
			const auto message = connection.receive(patience_of(options));
			if (!message)
				continue;
			fmt::print("{}\n", describe(*message));
			std::fflush(stdout);
			goes_on = answer(connection, options.answers[std::min(number, options.answers.size() - 1)],
					 word_at(*message, 0));
			number++;
		}
	}
}

} // namespace

int main(int argc, char **argv)
{
	CLI::App app{"sends and answers messages of RPC-over-RDMA that are given word by word"};
	Options options;
	app.require_subcommand(1);
	auto *const caller = app.add_subcommand("call", "send one message, print the answer");
	auto *const server = app.add_subcommand("serve", "print messages, answer them");
	for (auto *const command : {caller, server}) {
		command->add_option("address", options.address, "address of the server")->required();
		command->add_option("-p,--port", options.port, "its port")->capture_default_str();
		command->add_option("--seconds", options.seconds, "how long to wait for a message")->capture_default_str();
	}
	caller->add_option("words", options.words, "hexadecimal words of the message")->required();
	caller->add_option("--octets", options.octets, "cut the message to this length, or fill it up with zeros")
		->check(CLI::Range(1, 4096));
	server->add_option("--answer", options.answers, "words, \"none\" or \"close\"")->required();
	CLI11_PARSE(app, argc, argv);
	try {
		return caller->parsed() ? call(options) : serve(options);
	} catch (const std::exception &error) {
		fmt::print(stderr, "rpcpeer: {}\n", error.what());
		return 1;
	}
}
