// SPDX-License-Identifier: GPL-2.0
#include "tcp_peer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

namespace mpapeer {
namespace {

constexpr int listen_backlog = 1024;
constexpr std::size_t receive_size = 65536;

} // namespace

Connection::Connection(FileDescriptor socket) : socket_(std::move(socket))
{
    set_option(socket_.get(), IPPROTO_TCP, TCP_NODELAY, 1, "TCP_NODELAY");
    local_ = local_name(socket_.get());
    remote_ = remote_name(socket_.get());
}

Connection Connection::connect(const HostPort &to, const std::string &bind_address, bool fast_open,
                               Deadline deadline)
{
    const std::string what = fmt::format("connect to {}:{}", to.host, to.port);
    const AddressList address = resolve(to, IPPROTO_TCP, 0);
    FileDescriptor socket = make_socket(*address);
    if (!bind_address.empty()) {
        const AddressList from = resolve({bind_address, "0"}, IPPROTO_TCP, AI_NUMERICHOST);
        check(::bind(socket.get(), from->ai_addr, from->ai_addrlen), "bind");
    }
    if (fast_open)
        set_option(socket.get(), IPPROTO_TCP, TCP_FASTOPEN_CONNECT, 1, "TCP_FASTOPEN_CONNECT");
    const bool reset = connect_socket(socket.get(), *address, what, deadline) == ECONNRESET;
    Connection connection(std::move(socket));
    connection.reset_seen_ = reset;
    return connection;
}

Connection::Received Connection::receive(Bytes &bytes, Deadline deadline)
{
    for (;;) {
        bytes.resize(receive_size);
        const ssize_t size = ::recv(socket_.get(), bytes.data(), bytes.size(), 0);
        const int error = size < 0 ? errno : 0;
        bytes.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
        if (size > 0)
            return Received::data;
        if (size == 0)
            return reset_seen_ ? Received::reset : Received::fin;
        if (error == EPIPE) { // Linux returns EPIPE for a RST that came after a FIN
            reset_seen_ = true;
            return Received::fin;
        }
        if (connection_is_gone(error))
            return Received::reset;
        if (error != EAGAIN && error != EINTR)
            fail(error, "recv");
        if (wait_for(socket_.get(), POLLIN, deadline) == 0)
            return Received::nothing;
    }
}

Connection::Received Connection::wait_for_reset(Deadline deadline)
{
    constexpr std::chrono::milliseconds step(5);
    for (;;) {
        if (reset_seen_)
            return Received::reset;
        const short events = wait_for(socket_.get(), 0, std::min(deadline, Clock::now() + step));
        if ((events & POLLERR) != 0)
            return Received::reset;
        if (Clock::now() >= deadline)
            return Received::nothing;
        if (events != 0) // POLLHUP: both FINs have been exchanged; poll() does not wait any more
            ::poll(nullptr, 0, static_cast<int>(step.count()));
    }
}

Connection::Sent Connection::send(ByteView bytes, bool more, bool urgent, Deadline deadline)
{
    const int flags = MSG_NOSIGNAL | (more ? MSG_MORE : 0) | (urgent ? MSG_OOB : 0);
    while (!bytes.empty()) {
        const ssize_t size = ::send(socket_.get(), bytes.data(), bytes.size(), flags);
        if (size >= 0) {
            bytes = bytes.subspan(static_cast<std::size_t>(size));
            continue;
        }
        if (connection_is_gone(errno))
            return Sent::broken;
        if (errno != EAGAIN && errno != EINTR)
            fail(errno, "send");
        if (wait_for(socket_.get(), POLLOUT, deadline) == 0)
            return Sent::timed_out;
    }
    return Sent::all;
}

void Connection::shutdown_write()
{
    if (::shutdown(socket_.get(), SHUT_WR) < 0 && errno != ENOTCONN)
        fail(errno, "shutdown");
}

void Connection::reset()
{
    close_abortively(socket_);
}

Listener::Listener(const HostPort &at, bool fast_open)
{
    const AddressList address = resolve(at, IPPROTO_TCP, AI_PASSIVE);
    socket_ = make_socket(*address);
    set_option(socket_.get(), SOL_SOCKET, SO_REUSEADDR, 1, "SO_REUSEADDR");
    if (fast_open)
        set_option(socket_.get(), IPPROTO_TCP, TCP_FASTOPEN, listen_backlog, "TCP_FASTOPEN");
    const std::string what = fmt::format("listen on {}:{}", at.host, at.port);
    if (::bind(socket_.get(), address->ai_addr, address->ai_addrlen) < 0 ||
        ::listen(socket_.get(), listen_backlog) < 0)
        fail(errno, what);
    local_ = local_name(socket_.get());
}

bool Listener::has_connection(Deadline deadline)
{
    return wait_for(socket_.get(), POLLIN, deadline) != 0;
}

std::optional<Connection> Listener::accept(Deadline deadline)
{
    FileDescriptor socket = accept_socket(socket_.get(), deadline);
    return socket.is_open() ? std::optional<Connection>(std::move(socket)) : std::nullopt;
}

} // namespace mpapeer
