// SPDX-License-Identifier: GPL-2.0
#include "cut.h"
#include "endpoint.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <thread>

#include <fmt/format.h>

namespace rdmafirst {
namespace {

constexpr size_t flooded_pages = 16; // as large as a write of the server

class Client {
public:
	explicit Client(const Options &options)
		: options_(options), deadline_(Clock::now() + options.timeout), channel_(make_channel()),
		  endpoint_(make_id(channel_.get()))
	{
	}

	Exit run();

	// Without waiting for the outcome, which is an event of the channel.
	Exit start();
	[[nodiscard]] const Channel &channel() const { return channel_; }
	// Starts, and waits for the outcome
	Exit establish();
	[[nodiscard]] Endpoint &endpoint() { return endpoint_; }

private:
	Event await(std::string_view what);
	Exit resolve();
	Exit connected();
	Exit exchange();
	bool good(const Completion &done);
	void last_completions();
	void linger();
	void disconnect();
	void cut();
	void tear();
	Exit connect_others();

	const Options &options_;
	Clock::time_point deadline_;
	Clock::time_point connect_time_; // of rdma_connect()
	Channel channel_;
	Endpoint endpoint_;
	size_t due_ = 0; // sends and reads that have not completed
	bool received_ = false;
	std::string message_; // the last one received
};

Event Client::await(std::string_view what)
{
	for (;;) {
		if (auto event = next_event(channel_.get())) {
			say(event->describe());
			return *event;
		}
		wait_readable(descriptors(channel_.get(), {}), deadline_, what);
	}
}

Exit Client::resolve()
{
	sockaddr_storage address = socket_address(options_);
	sockaddr_storage source{};
	if (!options_.source.empty())
		source = socket_address(options_.source, options_.source_port);
	set_mpa_options(endpoint_.id(), options_.mpa_early);
	// When the ARP reply beats the kernel's own bookkeeping (veth), ib_core looks again only when
	// this time has passed: so it must be well below our deadline.
	const int ms = static_cast<int>(std::min(options_.timeout / 4, std::chrono::milliseconds(2000)).count());
	sockaddr *const from = options_.source.empty() ? nullptr : reinterpret_cast<sockaddr *>(&source);
	if (rdma_resolve_addr(endpoint_.id(), from, reinterpret_cast<sockaddr *>(&address), ms) != 0)
		throw SystemError("rdma_resolve_addr");
	if (await("address resolution").type != RDMA_CM_EVENT_ADDR_RESOLVED)
		return Exit::failed;
	if (rdma_resolve_route(endpoint_.id(), ms) != 0)
		throw SystemError("rdma_resolve_route");
	return await("route resolution").type == RDMA_CM_EVENT_ROUTE_RESOLVED ? Exit::ok : Exit::failed;
}

// Prints a completion; false if it is not as it should be.
bool Client::good(const Completion &done)
{
	if (done.status != IBV_WC_SUCCESS) {
		const char *kind = done.receive ? "receive" : done.read ? "read" : "send";
		say(fmt::format("{} failed: {}", kind, ibv_wc_status_str(done.status)));
		return false;
	}
	if (!done.receive) {
		say(done.read ? "read" : "sent");
		due_--;
		return true;
	}
	received_ = true;
	message_ = done.data;
	say(fmt::format("received {} {}", done.data.size(), done.data));
	return !options_.expect || *options_.expect == done.data;
}

// What is flushed may complete a little after the event that tells of the end.
void Client::last_completions()
{
	const Clock::time_point until = Clock::now() + std::chrono::seconds(3);
	const std::vector<int> queues{endpoint_.id()->send_cq_channel->fd, endpoint_.id()->recv_cq_channel->fd};
	size_t due = due_;
	try {
		for (;;) {
			for (const Completion &done : endpoint_.completions()) {
				good(done);
				due -= done.receive ? 0 : 1;
			}
			if (due == 0)
				return;
			wait_readable(queues, until, "outstanding completions");
		}
	} catch (const DeadlinePassed &) {
		say(fmt::format("{} work requests never completed", due));
	}
}

// Established: sends and reads if asked to, waits for what is to be received.
Exit Client::exchange()
{
	std::vector<std::string> texts = options_.send;
	if (options_.flooded) {
		const ibv_mr *mr = endpoint_.expose_pages(flooded_pages);
		texts.push_back(fmt::format("write {:x} {:x}", reinterpret_cast<uintptr_t>(mr->addr), mr->rkey));
	}
	for (const std::string &text : texts)
		endpoint_.post_send(text);
	due_ = texts.size();
	received_ = !options_.receive;
	if (options_.read) {
		if (!endpoint_.post_read()) {
			say("read refused");
			return Exit::failed;
		}
		due_++;
	}
	for (;;) {
		for (const Completion &done : endpoint_.completions()) {
			// the event of the end may come behind the flushed receives, and they before what was sent earlier
			if (good(done) || (options_.hold && done.receive && done.status != IBV_WC_SUCCESS))
				continue;
			// this queue is looked at later, when the other one may have been flushed, too
			if (done.receive && due_ != 0)
				last_completions();
			return Exit::failed;
		}
		if (auto event = next_event(channel_.get())) {
			say(event->describe());
			last_completions();
			if (options_.disconnect_again && event->type == RDMA_CM_EVENT_DISCONNECTED)
				endpoint_.disconnect();
			return options_.hold && due_ == 0 && received_ ? Exit::ok : Exit::failed;
		}
		if (due_ == 0 && received_ && !options_.hold)
			return Exit::ok;
		const std::array endpoints{static_cast<const Endpoint *>(&endpoint_)};
		wait_readable(descriptors(channel_.get(), endpoints), deadline_,
			      due_ != 0 ? "the work to complete" : "a message");
	}
}

// One outcome is all there is to be told (of a connection that failed).
void Client::linger()
{
	const Clock::time_point until = Clock::now() + options_.linger;
	try {
		while (options_.linger.count() != 0) {
			wait_readable(descriptors(channel_.get(), {}), until, "further events");
			while (auto event = next_event(channel_.get()))
				say("further " + event->describe());
		}
	} catch (const DeadlinePassed &) {
		say("nothing further");
	}
}

void Client::disconnect()
{
	if (rdma_disconnect(endpoint_.id()) != 0)
		throw SystemError("rdma_disconnect");
	await("the end of the connection");
	if (options_.disconnect_again)
		endpoint_.disconnect();
}

Exit Client::connected()
{
	const Exit result = exchange();
	if (result == Exit::ok && !options_.odd.empty())
		return do_odd(endpoint_, options_.odd, message_);
	if (result == Exit::ok && options_.torn)
		tear();
	else if (result == Exit::ok && !options_.hold)
		disconnect();
	return result;
}

// librdmacm would end the connection first. Which number is ours is its secret; others are refused.
void Client::cut()
{
	say("disconnects");
	for (uint32_t id = 0; id < 4096; id++) {
		if (disconnect_by_number(channel_->fd, id))
			say("disconnected");
	}
}

// Disconnects while another thread destroys the queue pair
void Client::tear()
{
	const std::jthread other([this] { rdma_destroy_qp(endpoint_.id()); });
	cut();
}

// With a queue pair of another process, which has its completions
Exit Client::connect_others()
{
	rdma_conn_param param = conn_param(options_);
	param.qp_num = options_.qpn;
	if (rdma_connect(endpoint_.id(), &param) != 0)
		throw SystemError("rdma_connect");
	const Event event = await("the outcome of connect");
	return event.type == RDMA_CM_EVENT_ESTABLISHED && event.status == 0 ? Exit::ok : Exit::failed;
}

Exit Client::start()
{
	if (const Exit result = resolve(); result != Exit::ok)
		return result;
	const bool signal_all = options_.odd != "write-and-change" && options_.odd != "query-unsignaled";
	endpoint_.create_qp(send_queue_for(options_.odd), signal_all);
	if (options_.spoil)
		endpoint_.spoil_qp();
	if (!options_.modify.empty())
		endpoint_.modify(options_.modify);
	if (options_.too_early)
		endpoint_.post_too_early();
	set_mpa_options(endpoint_.id(), options_.mpa);
	try_bad_mpa_options(endpoint_.id(), options_.mpa_bad);
	rdma_conn_param param = conn_param(options_);
	connect_time_ = Clock::now();
	if (rdma_connect(endpoint_.id(), &param) != 0)
		throw SystemError("rdma_connect");
	try_bad_mpa_options(endpoint_.id(), options_.mpa_late);
	if (options_.cut)
		cut();
	if (options_.disconnect_early)
		endpoint_.disconnect();
	return Exit::ok;
}

Exit Client::establish()
{
	if (const Exit result = start(); result != Exit::ok)
		return result;
	const Event event = await("the outcome of connect");
	return event.type == RDMA_CM_EVENT_ESTABLISHED && event.status == 0 ? Exit::ok : Exit::failed;
}

Exit Client::run()
{
	const auto start_time = Clock::now();
	if (options_.qpn != 0) {
		const Exit result = resolve();
		return result == Exit::ok ? connect_others() : result;
	}
	if (const Exit result = start(); result != Exit::ok)
		return result;
	const Event event = await("the outcome of connect");
	const auto now = Clock::now();
	const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(now - start_time);
	const auto of_which = std::chrono::duration_cast<std::chrono::microseconds>(now - connect_time_);
	say(fmt::format("connect took {} ms", took.count()));
	say(fmt::format("rdma_connect to outcome: {} us", of_which.count()));
	const bool established = event.type == RDMA_CM_EVENT_ESTABLISHED && event.status == 0;
	if (!established) {
		linger();
		return event.type == RDMA_CM_EVENT_REJECTED ? Exit::rejected : Exit::failed;
	}
	say(endpoint_.describe_qp());
	return connected();
}

// Until each connection has ended, if it ever was one.
Exit hold_many(const Options &options)
{
	std::vector<std::unique_ptr<Client>> clients;
	for (unsigned i = 0; i < options.side_by_side; i++) {
		clients.push_back(std::make_unique<Client>(options));
		if (const Exit result = clients.back()->start(); result != Exit::ok)
			return result;
	}
	say("all have been started");
	const auto deadline = Clock::now() + options.timeout;
	size_t over = 0;
	while (over < clients.size()) {
		std::vector<int> fds;
		for (const auto &client : clients)
			fds.push_back(client->channel()->fd);
		wait_readable(fds, deadline, "the end of all connections");
		for (size_t i = 0; i < clients.size(); i++) {
			const auto event = next_event(clients[i]->channel().get());
			if (!event)
				continue;
			say(fmt::format("conn {} {}", i + 1, event->describe()));
			if (event->type != RDMA_CM_EVENT_ESTABLISHED && event->type != RDMA_CM_EVENT_TIMEWAIT_EXIT)
				over++;
		}
	}
	return Exit::ok;
}

// Answers to "ping" that have come, each of which is followed by the next one
std::optional<unsigned> take_answers(Endpoint &endpoint)
{
	unsigned answers = 0;
	for (const Completion &done : endpoint.completions()) {
		if (done.status != IBV_WC_SUCCESS) {
			say(fmt::format("{} failed: {}", done.receive ? "receive" : "send", ibv_wc_status_str(done.status)));
			return std::nullopt;
		}
		if (!done.receive)
			continue;
		answers++;
		endpoint.post_send("ping");
	}
	return answers;
}

// The connections to the two ports are all asked in turn: whatever slows this program down, slows down both
Exit talk_beside(const Options &options)
{
	Options other = options;
	other.port = options.beside;
	std::vector<std::unique_ptr<Client>> clients;
	std::vector<const Endpoint *> endpoints;
	for (unsigned i = 0; i < 2 * options.side_by_side; i++) {
		clients.push_back(std::make_unique<Client>(i % 2 == 0 ? options : other));
		if (const Exit result = clients.back()->establish(); result != Exit::ok)
			return result;
		clients.back()->endpoint().keep_receiving();
		endpoints.push_back(&clients.back()->endpoint());
	}
	say("all are connected");
	for (const auto &client : clients)
		client->endpoint().post_send("ping");
	const std::vector<int> fds = descriptors(clients[0]->channel().get(), endpoints);
	const auto end = Clock::now() + options.measured;
	std::array<unsigned, 2> answers{};
	while (Clock::now() < end) {
		wait_readable(fds, Clock::now() + options.timeout, "an answer");
		for (size_t i = 0; i < clients.size(); i++) {
			const auto more = take_answers(clients[i]->endpoint());
			if (!more)
				return Exit::failed;
			answers[i % 2] += *more;
		}
	}
	say(fmt::format("answers: {} of port {}, {} of port {}", answers[0], options.port, answers[1], other.port));
	return Exit::ok;
}

} // namespace

Exit run_client(const Options &options)
{
	if (options.beside != 0)
		return talk_beside(options);
	if (options.side_by_side != 0)
		return hold_many(options);
	Exit result = Exit::ok;
	Options next = options;
	for (unsigned i = 0; i < options.times; i++, next.port = static_cast<uint16_t>(next.port + next.port_step))
		if (const Exit one = Client(next).run(); one != Exit::ok)
			result = one;
	return result;
}

} // namespace rdmafirst
