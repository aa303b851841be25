// SPDX-License-Identifier: GPL-2.0
#include "endpoint.h"

#include <map>
#include <optional>
#include <sstream>
#include <thread>
#include <utility>

#include <fmt/format.h>

namespace rdmafirst {
namespace {

// Where a peer wants RDMA Writes
struct Target {
	uint64_t address = 0;
	uint32_t rkey = 0;
};

// Of "write ADDRESS RKEY", in hexadecimal
std::optional<Target> target_of(const std::string &text)
{
	Target target;
	std::string word;
	std::istringstream in(text);
	if (!(in >> word >> std::hex >> target.address >> target.rkey) || word != "write")
		return std::nullopt;
	return target;
}

struct Connection {
	Connection(unsigned number, Id id) : number(number), endpoint(std::move(id)) {}

	unsigned number;
	Endpoint endpoint;
	bool established = false;
	size_t sent = 0;
	std::optional<Target> target;
	const ibv_mr *source = nullptr; // of the writes
	unsigned writes = 0;
	bool good = false; // did what it was to do
	bool over = false;
};

class Server {
public:
	explicit Server(const Options &options) : options_(options), channel_(make_channel()) {}

	Exit run();

private:
	void listen();
	Id listen_on(uint16_t port);
	void wait();
	void on_event(const Event &event);
	void on_request(const Event &event);
	void accept(Connection &connection);
	void accept_others(Connection &connection);
	void reject(Connection &connection);
	void answer_again(Connection &connection);
	void drain(Connection &connection);
	static void talk(Connection &connection, const Completion &done);
	static void write(Connection &connection);
	void judge(Connection &connection);
	void forget_ended();
	static void tell(const Connection &connection, std::string_view what);

	const Options &options_;
	Channel channel_;
	std::vector<Id> listeners_;
	std::map<rdma_cm_id *, Connection> connections_;
	unsigned seen_ = 0;
	unsigned ended_ = 0;
	bool all_good_ = true;
	bool device_gone_ = false;
};

void Server::tell(const Connection &connection, std::string_view what)
{
	say(fmt::format("conn {} {}", connection.number, what));
}

Id Server::listen_on(uint16_t port)
{
	Options options = options_;
	options.port = port;
	sockaddr_storage address = socket_address(options);
	Id listener = make_id(channel_.get());
	if (rdma_bind_addr(listener.get(), reinterpret_cast<sockaddr *>(&address)) != 0)
		throw SystemError("rdma_bind_addr");
	set_mpa_options(listener.get(), options_.mpa);
	for (unsigned tries = 1; rdma_listen(listener.get(), options_.backlog) != 0; tries++) {
		if (tries >= options_.tries)
			throw SystemError("rdma_listen");
	}
	try_bad_mpa_options(listener.get(), options_.mpa_late);
	return listener;
}

void Server::listen()
{
	for (unsigned i = 0; i < options_.listeners; i++)
		listeners_.push_back(listen_on(static_cast<uint16_t>(options_.port + i)));
	say(fmt::format("listening {} {}", options_.address, options_.port));
}

void Server::accept(Connection &connection)
{
	rdma_conn_param param = conn_param(options_);
	connection.endpoint.create_qp();
	if (options_.talk)
		connection.endpoint.keep_receiving();
	set_mpa_options(connection.endpoint.id(), options_.mpa_accept);
	if (options_.spoil)
		connection.endpoint.spoil_qp();
	if (rdma_accept(connection.endpoint.id(), &param) != 0)
		throw SystemError("rdma_accept");
	tell(connection, "accepted");
	if (options_.deny)
		connection.endpoint.deny_access();
	if (options_.other_pd)
		connection.endpoint.use_other_pd();
	// Right now: the client's program has not sent anything, nor will it before it has this.
	if (options_.read) {
		if (!connection.endpoint.post_read())
			tell(connection, "read refused");
		return;
	}
	for (const std::string &text : options_.send) {
		connection.endpoint.post_send(options_.expose ? connection.endpoint.expose(options_.pages) : text);
		tell(connection, "posted");
	}
}

// With a queue pair of another process, which has its completions
void Server::accept_others(Connection &connection)
{
	rdma_conn_param param = conn_param(options_);
	param.qp_num = options_.qpn;
	if (rdma_accept(connection.endpoint.id(), &param) != 0)
		throw SystemError("rdma_accept");
	tell(connection, "accepted with a queue pair of another process");
}

void Server::reject(Connection &connection)
{
	if (rdma_reject(connection.endpoint.id(), options_.reject->data(),
			static_cast<uint8_t>(options_.reject->size())) != 0)
		throw SystemError("rdma_reject");
	tell(connection, "rejected");
	connection.good = true;
	connection.over = true;
}

// What a program must not do, and what the kernel must survive.
void Server::answer_again(Connection &connection)
{
	rdma_conn_param param = conn_param(options_);
	// librdmacm would modify the queue pair first, which is refused
	ibv_qp *qp = std::exchange(connection.endpoint.id()->qp, nullptr);
	param.qp_num = qp->qp_num;
	const int rv = options_.again == "accept" ? rdma_accept(connection.endpoint.id(), &param) :
						    rdma_reject(connection.endpoint.id(), nullptr, 0);
	const std::string outcome = rv == 0 ? "succeeded" : SystemError("failed").what();
	connection.endpoint.id()->qp = qp;
	tell(connection, fmt::format("second answer ({}) {}", options_.again, outcome));
}

void Server::on_request(const Event &event)
{
	Connection &connection = connections_.try_emplace(event.id, ++seen_, Id(event.id)).first->second;
	tell(connection, event.describe());
	if (const sockaddr *peer = rdma_get_peer_addr(event.id); peer->sa_family == AF_INET6)
		tell(connection, fmt::format("peer scope {}", reinterpret_cast<const sockaddr_in6 *>(peer)->sin6_scope_id));
	if (!options_.ignore.empty() && options_.ignore == std::string(event.pdata.begin(), event.pdata.end()))
		return;
	if (options_.talk)
		connection.target = target_of(std::string(event.pdata.begin(), event.pdata.end()));
	std::this_thread::sleep_for(options_.delay);
	try {
		if (options_.reject)
			return reject(connection);
		if (options_.qpn != 0)
			return accept_others(connection);
		accept(connection);
	} catch (const SystemError &error) {
		tell(connection, error.what());
		connection.over = true;
		return;
	}
	if (!options_.again.empty())
		answer_again(connection);
}

void Server::on_event(const Event &event)
{
	if (event.type == RDMA_CM_EVENT_CONNECT_REQUEST)
		return on_request(event);
	if (event.type == RDMA_CM_EVENT_DEVICE_REMOVAL)
		device_gone_ = true;
	const auto found = connections_.find(event.id);
	if (found == connections_.end()) {
		say(event.describe());
		return;
	}
	Connection &connection = found->second;
	// Bytes that came before the event are in the completion queue already.
	drain(connection);
	tell(connection, event.describe());
	if (event.type == RDMA_CM_EVENT_ESTABLISHED && event.status == 0 && options_.qpn != 0) {
		connection.established = true;
	} else if (event.type == RDMA_CM_EVENT_ESTABLISHED && event.status == 0 && connection.endpoint.has_qp()) {
		connection.established = true;
		tell(connection, connection.endpoint.describe_qp());
		if (options_.restless)
			connection.endpoint.be_restless();
		if (options_.forget)
			connection.endpoint.forget_soon();
		if (!options_.take_back.empty())
			connection.endpoint.take_back_at(options_.take_back);
		if (connection.target)
			write(connection);
	} else if (event.type != RDMA_CM_EVENT_TIMEWAIT_EXIT) {
		if (event.type == RDMA_CM_EVENT_DISCONNECTED && options_.disconnect_again)
			connection.endpoint.disconnect();
		connection.over = true;
	}
}

void Server::write(Connection &connection)
{
	constexpr size_t pages = 16;
	constexpr unsigned told = 64; // the number of writes at a time
	if (!connection.source)
		connection.source = connection.endpoint.expose_pages(pages);
	ibv_sge sge{.addr = reinterpret_cast<uintptr_t>(connection.source->addr),
		    .length = static_cast<uint32_t>(connection.source->length),
		    .lkey = connection.source->lkey};
	ibv_send_wr wr = signaled(IBV_WR_RDMA_WRITE, {&sge, 1});
	wr.wr.rdma.remote_addr = connection.target->address;
	wr.wr.rdma.rkey = connection.target->rkey;
	connection.endpoint.post(wr);
	if (++connection.writes % told == 0)
		tell(connection, fmt::format("{} writes", connection.writes));
}

void Server::talk(Connection &connection, const Completion &done)
{
	if (done.receive)
		connection.target = target_of(done.data);
	if (connection.target)
		write(connection);
	else if (done.receive)
		connection.endpoint.post_send(done.data);
}

void Server::drain(Connection &connection)
{
	for (const Completion &done : connection.endpoint.completions()) {
		const char *kind = done.receive ? "receive" : "send";
		if (done.status != IBV_WC_SUCCESS) {
			tell(connection, fmt::format("{} failed: {}", kind, ibv_wc_status_str(done.status)));
		} else if (options_.talk) {
			talk(connection, done);
		} else if (done.receive) {
			tell(connection, fmt::format("received {} {}", done.data.size(), done.data));
			if (options_.disconnect_first)
				connection.endpoint.disconnect();
		} else {
			connection.sent++;
			tell(connection, "sent");
		}
	}
	if (!options_.reject)
		connection.good = connection.established && connection.sent == options_.send.size();
}

void Server::forget_ended()
{
	for (auto at = connections_.begin(); at != connections_.end();) {
		Connection &connection = at->second;
		if (!connection.over) {
			++at;
			continue;
		}
		if (const unsigned n = connection.endpoint.has_qp() ? connection.endpoint.never_completed() : 0; n != 0)
			tell(connection, fmt::format("{} work requests never completed", n));
		tell(connection, connection.good ? "over: good" : "over: bad");
		all_good_ = all_good_ && connection.good;
		ended_++;
		at = connections_.erase(at);
	}
}

void Server::wait()
{
	std::vector<const Endpoint *> endpoints;
	for (const auto &[id, connection] : connections_)
		endpoints.push_back(&connection.endpoint);
	wait_readable(descriptors(channel_.get(), endpoints), Clock::now() + options_.timeout, "a peer");
}

Exit Server::run()
{
	listen();
	while (!device_gone_ && (options_.count == 0 || ended_ < options_.count)) {
		wait();
		while (auto event = next_event(channel_.get()))
			on_event(*event);
		for (auto &[id, connection] : connections_)
			drain(connection);
		forget_ended();
	}
	return all_good_ ? Exit::ok : Exit::failed;
}

} // namespace

Exit run_server(const Options &options)
{
	return Server(options).run();
}

} // namespace rdmafirst
