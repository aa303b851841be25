// SPDX-License-Identifier: GPL-2.0
// The lower bound: the bytes of MPA's exchange over plain sockets, in the same order.
#include "common.h"

#include <array>
#include <cerrno>
#include <list>
#include <span>

#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <fmt/format.h>

namespace bench {
namespace {

// Request and Reply with the enhanced word (RFC 6581 section 6), an FPDU with an empty Write (RFC 5041, RFC 5044)
constexpr size_t request_len = 20 + 4;
constexpr size_t reply_len = 20 + 4;
constexpr size_t rtr_len = 2 + 14 + 4;

class TcpNode : public Node {
public:
	TcpNode(const Job &job, bool silent) : job_(job), silent_(silent), epoll_(::epoll_create1(EPOLL_CLOEXEC))
	{
		if (epoll_.get() < 0)
			throw SystemError("epoll_create1");
	}

	void listen() override;
	void prepare() override;
	Result connect() override;
	void close() override { connections_.clear(); }

private:
	struct Connection {
		Descriptor socket;
		std::string target; // empty: theirs
		Clock::time_point start;
		bool connected = false;
		bool established = false;
		size_t received = 0;
	};

	Connection &add(int fd);
	void watch(Connection &connection, uint32_t events, int how);
	void accept_all();
	void handle(Connection &connection, uint32_t events);
	void receive(Connection &connection);
	void established(Connection &connection);
	void fail(Connection &connection);
	static void send_all(Connection &connection, size_t len);

	const Job job_;
	const bool silent_;
	Descriptor epoll_;
	Descriptor listener_;
	std::list<Connection> connections_;
	unsigned own_done_ = 0;
	Result result_;
};

void TcpNode::watch(Connection &connection, uint32_t events, int how)
{
	epoll_event event{.events = events, .data = {.ptr = &connection}};
	if (::epoll_ctl(epoll_.get(), how, connection.socket.get(), &event) != 0)
		throw SystemError("epoll_ctl");
}

TcpNode::Connection &TcpNode::add(int fd)
{
	if (fd < 0)
		throw SystemError("socket");
	const int yes = 1;
	::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
	Connection &connection = connections_.emplace_back();
	connection.socket = Descriptor(fd);
	return connection;
}

void TcpNode::listen()
{
	listener_ = Descriptor(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
	const sockaddr_in address = socket_address(job_.place.address, job_.port);
	const int yes = 1;
	::setsockopt(listener_.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	if (::bind(listener_.get(), reinterpret_cast<const sockaddr *>(&address), sizeof(address)) != 0 ||
	    ::listen(listener_.get(), 1024) != 0)
		throw SystemError("listen");
	epoll_event event{.events = EPOLLIN, .data = {.ptr = nullptr}};
	if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, listener_.get(), &event) != 0)
		throw SystemError("epoll_ctl");
}

void TcpNode::prepare()
{
	for (const std::string &target : job_.targets) {
		for (unsigned i = 0; i < job_.per_target; i++) {
			Connection &connection =
				add(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
			connection.target = target;
			const sockaddr_in source = socket_address(job_.place.address, 0);
			const int yes = 1;
			::setsockopt(connection.socket.get(), IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &yes, sizeof(yes));
			if (::bind(connection.socket.get(), reinterpret_cast<const sockaddr *>(&source),
				   sizeof(source)) != 0)
				throw SystemError("bind");
		}
	}
}

void TcpNode::send_all(Connection &connection, size_t len)
{
	static constexpr std::array<char, request_len> bytes{};
	if (::send(connection.socket.get(), bytes.data(), len, MSG_NOSIGNAL) != static_cast<ssize_t>(len))
		throw SystemError("send");
}

void TcpNode::established(Connection &connection)
{
	connection.established = true;
	result_.end = Clock::now();
	if (connection.target.empty()) {
		result_.incoming++;
	} else {
		own_done_++;
		result_.latencies.push_back(Microseconds(Clock::now() - connection.start).count());
	}
}

void TcpNode::fail(Connection &connection)
{
	if (!connection.established) {
		result_.failed++;
		own_done_ += !connection.target.empty();
	}
	connection.socket = Descriptor();
}

void TcpNode::accept_all()
{
	for (;;) {
		const int fd = ::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd < 0)
			return;
		Connection &connection = add(fd);
		connection.connected = true;
		watch(connection, EPOLLIN, EPOLL_CTL_ADD);
		if (silent_)
			established(connection);
	}
}

void TcpNode::receive(Connection &connection)
{
	std::array<char, 64> buffer{};
	const ssize_t n = ::recv(connection.socket.get(), buffer.data(), buffer.size(), 0);
	if (n < 0 && errno == EAGAIN)
		return;
	if (n <= 0) {
		fail(connection);
		return;
	}
	connection.received += static_cast<size_t>(n);
	if (connection.target.empty()) {
		if (connection.received == request_len)
			send_all(connection, reply_len);
		else if (connection.received == request_len + rtr_len)
			established(connection);
	} else if (connection.received == reply_len) {
		send_all(connection, rtr_len);
		established(connection);
	}
}

void TcpNode::handle(Connection &connection, uint32_t events)
{
	if (connection.connected) {
		receive(connection);
	} else if (events & (EPOLLERR | EPOLLHUP)) {
		fail(connection);
	} else {
		connection.connected = true;
		watch(connection, EPOLLIN, EPOLL_CTL_MOD);
		if (silent_)
			established(connection);
		else
			send_all(connection, request_len);
	}
}

Result TcpNode::connect()
{
	unsigned own = 0;
	result_.start = Clock::now();
	for (Connection &connection : connections_) {
		const sockaddr_in target = socket_address(connection.target, job_.port);
		connection.start = Clock::now();
		if (::connect(connection.socket.get(), reinterpret_cast<const sockaddr *>(&target), sizeof(target)) !=
			    0 &&
		    errno != EINPROGRESS)
			throw SystemError("connect");
		watch(connection, EPOLLOUT, EPOLL_CTL_ADD);
		own++;
	}
	const auto deadline = Clock::now() + job_.timeout;
	std::array<epoll_event, 64> events{};
	while ((own_done_ < own || result_.incoming < job_.incoming) && result_.failed == 0) {
		const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
		if (left.count() <= 0) {
			result_.failed += own - own_done_ + job_.incoming - result_.incoming;
			break;
		}
		const int n = ::epoll_wait(epoll_.get(), events.data(), events.size(), static_cast<int>(left.count()));
		for (int i = 0; i < n; i++) {
			if (events[i].data.ptr == nullptr)
				accept_all();
			else
				handle(*static_cast<Connection *>(events[i].data.ptr), events[i].events);
		}
	}
	return result_;
}

} // namespace

std::unique_ptr<Node> make_tcp_node(const Job &job)
{
	return std::make_unique<TcpNode>(job, false);
}

std::unique_ptr<Node> make_tcp_sink(const Job &job)
{
	return std::make_unique<TcpNode>(job, true);
}

} // namespace bench
