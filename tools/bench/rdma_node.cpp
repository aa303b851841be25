// SPDX-License-Identifier: GPL-2.0
#include "common.h"

#include <array>
#include <cerrno>
#include <functional>
#include <map>

#include <fcntl.h>
#include <poll.h>

#include <fmt/format.h>
#include <rdma/rdma_cma.h>

namespace bench {
namespace {

template <auto Release> struct Releaser {
	template <typename T> void operator()(T *object) const { Release(object); }
};

using Channel = std::unique_ptr<rdma_event_channel, Releaser<rdma_destroy_event_channel>>;
using Pd = std::unique_ptr<ibv_pd, Releaser<ibv_dealloc_pd>>;
using Cq = std::unique_ptr<ibv_cq, Releaser<ibv_destroy_cq>>;

void destroy_id(rdma_cm_id *id)
{
	if (id->qp != nullptr)
		rdma_destroy_qp(id);
	rdma_destroy_id(id);
}

using Id = std::unique_ptr<rdma_cm_id, Releaser<destroy_id>>;

class RdmaNode : public Node {
public:
	explicit RdmaNode(const Job &job) : job_(job), channel_(rdma_create_event_channel())
	{
		if (!channel_)
			throw SystemError("rdma_create_event_channel");
		const int flags = ::fcntl(channel_->fd, F_GETFL);
		if (::fcntl(channel_->fd, F_SETFL, flags | O_NONBLOCK) != 0)
			throw SystemError("fcntl");
	}

	void listen() override;
	void prepare() override;
	Result connect() override;
	void close() override;

private:
	enum class State { idle, resolved, routed, connecting, established, over };

	struct Connection {
		Id id;
		std::string target;
		State state = State::idle;
		Clock::time_point start;
	};

	Id make_id();
	void create_qp(rdma_cm_id *id);
	void resolve(Connection &connection);
	void retry(Connection &connection);
	void start(Connection &connection);
	void handle(const rdma_cm_event &event);
	void handle_request(const rdma_cm_event &event);
	void handle_own(Connection &connection, const rdma_cm_event &event);
	void handle_incoming(Connection &connection, const rdma_cm_event &event);
	void established(Connection &connection);
	// Handles events until @done returns true, or the time is up
	void run_until(const std::function<bool()> &done, std::string_view what);
	static size_t count(const std::vector<std::unique_ptr<Connection>> &list, State state);

	const Job job_;
	Channel channel_;
	Pd pd_;
	Cq cq_;
	Id listener_;
	std::vector<std::unique_ptr<Connection>> own_;
	std::vector<std::unique_ptr<Connection>> incoming_;
	std::map<rdma_cm_id *, Connection *> by_id_;
	Result result_;
	unsigned resolve_failures_ = 0;
};

size_t RdmaNode::count(const std::vector<std::unique_ptr<Connection>> &list, State state)
{
	size_t n = 0;
	for (const auto &connection : list)
		n += connection->state == state;
	return n;
}

Id RdmaNode::make_id()
{
	rdma_cm_id *id = nullptr;
	if (rdma_create_id(channel_.get(), &id, nullptr, RDMA_PS_TCP) != 0)
		throw SystemError("rdma_create_id");
	return Id(id);
}

// One completion queue is enough, because no work is posted. It is large because of unmodified siw,
// see skip_key.c.
void RdmaNode::create_qp(rdma_cm_id *id)
{
	if (!pd_) {
		pd_.reset(ibv_alloc_pd(id->verbs));
		if (!pd_)
			throw SystemError("cannot allocate a protection domain: ibv_alloc_pd");
		cq_.reset(ibv_create_cq(id->verbs, 32768, nullptr, nullptr, 0));
		if (!cq_)
			throw SystemError("cannot create a completion queue: ibv_create_cq");
	}
	ibv_qp_init_attr attr{};
	attr.send_cq = cq_.get();
	attr.recv_cq = cq_.get();
	attr.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 0};
	attr.qp_type = IBV_QPT_RC;
	if (rdma_create_qp(id, pd_.get(), &attr) != 0)
		throw SystemError("rdma_create_qp");
}

void RdmaNode::listen()
{
	listener_ = make_id();
	sockaddr_in address = socket_address(job_.place.address, job_.port);
	if (rdma_bind_addr(listener_.get(), reinterpret_cast<sockaddr *>(&address)) != 0)
		throw SystemError("rdma_bind_addr");
	if (rdma_listen(listener_.get(), 1024) != 0)
		throw SystemError("rdma_listen");
}

void RdmaNode::resolve(Connection &connection)
{
	sockaddr_in source = socket_address(job_.place.address, 0);
	sockaddr_in target = socket_address(connection.target, job_.port);
	if (rdma_resolve_addr(connection.id.get(), reinterpret_cast<sockaddr *>(&source),
			      reinterpret_cast<sockaddr *>(&target), 2000) != 0)
		throw SystemError("rdma_resolve_addr");
}

// Tries again, because an ARP reply can be missed (see tests/lib.sh)
void RdmaNode::retry(Connection &connection)
{
	if (++resolve_failures_ > 100)
		throw std::runtime_error(job_.place.address + " cannot resolve " + connection.target);
	by_id_.erase(connection.id.get());
	connection.id = make_id();
	by_id_[connection.id.get()] = &connection;
	resolve(connection);
}

void RdmaNode::prepare()
{
	for (const std::string &target : job_.targets) {
		for (unsigned i = 0; i < job_.per_target; i++) {
			own_.push_back(std::make_unique<Connection>());
			Connection &connection = *own_.back();
			connection.id = make_id();
			connection.target = target;
			by_id_[connection.id.get()] = &connection;
			resolve(connection);
		}
	}
	run_until([&] { return count(own_, State::resolved) == own_.size(); }, "addresses");
	for (const auto &connection : own_) {
		if (rdma_resolve_route(connection->id.get(), 2000) != 0)
			throw SystemError("rdma_resolve_route");
	}
	run_until([&] { return count(own_, State::routed) == own_.size(); }, "routes");
	for (const auto &connection : own_)
		create_qp(connection->id.get());
}

void RdmaNode::start(Connection &connection)
{
	rdma_conn_param param{};
	param.responder_resources = 1;
	param.initiator_depth = 1;
	connection.state = State::connecting;
	connection.start = Clock::now();
	if (rdma_connect(connection.id.get(), &param) != 0)
		throw SystemError("rdma_connect");
}

Result RdmaNode::connect()
{
	const size_t at_once = job_.at_once != 0 ? job_.at_once : own_.size();
	result_.start = Clock::now();
	try {
		for (size_t i = 0; i < own_.size(); i++) {
			start(*own_[i]);
			if ((i + 1) % at_once == 0 && i + 1 < own_.size())
				run_until([&] { return count(own_, State::connecting) == 0; }, "connections");
		}
		run_until(
			[&] {
				return count(own_, State::connecting) == 0 &&
				       (result_.incoming >= job_.incoming || result_.failed != 0);
			},
			"connections");
	} catch (const SystemError &) {
		throw;
	} catch (const std::runtime_error &) { // the time is up
		result_.failed += count(own_, State::connecting);
	}
	if (result_.incoming < job_.incoming)
		result_.failed += job_.incoming - result_.incoming;
	return result_;
}

void RdmaNode::close()
{
	for (const auto &connection : own_) {
		if (connection->state == State::established)
			rdma_disconnect(connection->id.get());
	}
	try {
		run_until([&] { return count(own_, State::established) + count(incoming_, State::established) == 0; },
			  "the end of all connections");
	} catch (const std::runtime_error &error) {
		fmt::print(stderr, "rdmabench: {}\n", error.what());
	}
	own_.clear();
	incoming_.clear();
	listener_.reset();
}

void RdmaNode::established(Connection &connection)
{
	connection.state = State::established;
	result_.end = Clock::now();
}

void RdmaNode::handle_request(const rdma_cm_event &event)
{
	incoming_.push_back(std::make_unique<Connection>());
	Connection &connection = *incoming_.back();
	connection.id.reset(event.id);
	connection.state = State::connecting;
	by_id_[event.id] = &connection;
	create_qp(event.id);
	rdma_conn_param param{};
	param.responder_resources = 1;
	param.initiator_depth = 1;
	if (rdma_accept(event.id, &param) != 0)
		connection.state = State::over;
}

void RdmaNode::handle_own(Connection &connection, const rdma_cm_event &event)
{
	switch (event.event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		connection.state = State::resolved;
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		connection.state = State::routed;
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		established(connection);
		result_.latencies.push_back(Microseconds(Clock::now() - connection.start).count());
		break;
	default:
		result_.failed += connection.state == State::connecting;
		connection.state = State::over;
	}
}

void RdmaNode::handle_incoming(Connection &connection, const rdma_cm_event &event)
{
	if (event.event == RDMA_CM_EVENT_ESTABLISHED) {
		established(connection);
		result_.incoming++;
	} else {
		connection.state = State::over;
	}
}

void RdmaNode::handle(const rdma_cm_event &event)
{
	if (event.event == RDMA_CM_EVENT_CONNECT_REQUEST) {
		handle_request(event);
		return;
	}
	const auto found = by_id_.find(event.id);
	if (found == by_id_.end())
		return;
	Connection &connection = *found->second;
	if (connection.target.empty())
		handle_incoming(connection, event);
	else
		handle_own(connection, event);
}

void RdmaNode::run_until(const std::function<bool()> &done, std::string_view what)
{
	const auto deadline = Clock::now() + job_.timeout;
	rdma_cm_event *event = nullptr;
	unsigned handled = 0;

	for (;;) {
		// done() looks at all connections, which costs more than an event
		if ((handled == 0 || handled >= 16) && done())
			return;
		handled = handled >= 16 ? 1 : handled;
		if (rdma_get_cm_event(channel_.get(), &event) == 0) {
			const rdma_cm_event copy = *event;
			// an id can only be destroyed when its events are acknowledged
			rdma_ack_cm_event(event);
			if (copy.event == RDMA_CM_EVENT_ADDR_ERROR)
				retry(*by_id_.at(copy.id));
			else
				handle(copy);
			handled++;
			continue;
		}
		if (errno != EAGAIN)
			throw SystemError("rdma_get_cm_event");
		if (handled != 0) {
			handled = 0;
			continue;
		}
		const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
		if (left.count() <= 0)
			throw std::runtime_error(fmt::format("{} timed out waiting for {}", job_.place.address, what));
		pollfd wanted{.fd = channel_->fd, .events = POLLIN, .revents = 0};
		::poll(&wanted, 1, static_cast<int>(left.count()));
	}
}

} // namespace

std::unique_ptr<Node> make_rdma_node(const Job &job)
{
	return std::make_unique<RdmaNode>(job);
}

} // namespace bench
