// SPDX-License-Identifier: GPL-2.0
#include "tcp_peer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <system_error>

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace mpapeer {
namespace {

constexpr int listen_backlog = 1024;
constexpr std::int64_t max_poll_milliseconds = 60000;
constexpr std::size_t receive_size = 65536;

[[noreturn]] void fail(int error, const std::string &what)
{
    throw std::system_error(error, std::generic_category(), what);
}

void check(int result, const char *what)
{
    if (result < 0)
        fail(errno, what);
}

void set_option(int fd, int level, int name, int value)
{
    check(::setsockopt(fd, level, name, &value, sizeof(value)), "setsockopt");
}

using AddressList = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

AddressList resolve(const std::string &host, const std::string &port, int flags)
{
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = flags;
    addrinfo *list = nullptr;
    const int error = ::getaddrinfo(host.empty() ? nullptr : host.c_str(), port.c_str(), &hints,
                                    &list);
    if (error != 0)
        throw std::system_error(std::make_error_code(std::errc::address_not_available),
                                fmt::format("{}:{}: {}", host, port, ::gai_strerror(error)));
    return {list, ::freeaddrinfo};
}

FileDescriptor make_socket(const addrinfo &address)
{
    FileDescriptor socket(::socket(address.ai_family,
                                   address.ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC,
                                   address.ai_protocol));
    check(socket.get(), "socket");
    return socket;
}

using NameFunction = int (*)(int, sockaddr *, socklen_t *);

std::string name_of(int fd, NameFunction function)
{
    sockaddr_storage storage{};
    socklen_t size = sizeof(storage);
    auto *address = reinterpret_cast<sockaddr *>(&storage);
    if (function(fd, address, &size) < 0)
        return "?";
    std::array<char, NI_MAXHOST> host{};
    std::array<char, NI_MAXSERV> port{};
    if (::getnameinfo(address, size, host.data(), host.size(), port.data(), port.size(),
                      NI_NUMERICHOST | NI_NUMERICSERV) != 0)
        return "?";
    if (storage.ss_family == AF_INET6)
        return fmt::format("[{}]:{}", host.data(), port.data());
    return fmt::format("{}:{}", host.data(), port.data());
}

/// poll() on one descriptor until something happens; 0 when the deadline has passed.
short wait_for(int fd, short events, Deadline deadline)
{
    for (;;) {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
        pollfd entry{fd, events, 0};
        const auto timeout = std::clamp<std::int64_t>(left.count(), 0, max_poll_milliseconds);
        const int ready = ::poll(&entry, 1, static_cast<int>(timeout));
        if (ready > 0)
            return entry.revents;
        if (ready < 0 && errno != EINTR)
            fail(errno, "poll");
        if (ready == 0 && Clock::now() >= deadline)
            return 0;
    }
}

bool connection_is_gone(int error)
{
    return error == ECONNRESET || error == EPIPE || error == ECONNABORTED;
}

} // namespace

void FileDescriptor::close()
{
    if (fd_ >= 0)
        ::close(std::exchange(fd_, -1));
}

Connection::Connection(FileDescriptor socket) : socket_(std::move(socket))
{
    set_option(socket_.get(), IPPROTO_TCP, TCP_NODELAY, 1);
    local_ = name_of(socket_.get(), ::getsockname);
    remote_ = name_of(socket_.get(), ::getpeername);
}

Connection Connection::connect(const HostPort &to, const std::string &bind_address, bool fast_open,
                               Deadline deadline)
{
    const std::string what = fmt::format("connect to {}:{}", to.host, to.port);
    const AddressList address = resolve(to.host, to.port, 0);
    FileDescriptor socket = make_socket(*address);
    bool reset = false;
    if (!bind_address.empty()) {
        const AddressList from = resolve(bind_address, "0", AI_NUMERICHOST);
        check(::bind(socket.get(), from->ai_addr, from->ai_addrlen), "bind");
    }
    if (fast_open)
        set_option(socket.get(), IPPROTO_TCP, TCP_FASTOPEN_CONNECT, 1);
    if (::connect(socket.get(), address->ai_addr, address->ai_addrlen) < 0) {
        if (errno != EINPROGRESS)
            fail(errno, what);
        if (wait_for(socket.get(), POLLOUT, deadline) == 0)
            fail(ETIMEDOUT, what);
        int error = 0;
        socklen_t size = sizeof(error);
        check(::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size), "getsockopt");
        // A RST right after the handshake is an event of the connection, not a failure to connect.
        reset = error == ECONNRESET;
        if (error != 0 && !reset)
            fail(error, what);
    }
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
    const linger abort{.l_onoff = 1, .l_linger = 0};
    check(::setsockopt(socket_.get(), SOL_SOCKET, SO_LINGER, &abort, sizeof(abort)), "SO_LINGER");
    socket_.close();
}

Listener::Listener(const HostPort &at, bool fast_open)
{
    const AddressList address = resolve(at.host, at.port, AI_PASSIVE);
    socket_ = make_socket(*address);
    set_option(socket_.get(), SOL_SOCKET, SO_REUSEADDR, 1);
    if (fast_open)
        set_option(socket_.get(), IPPROTO_TCP, TCP_FASTOPEN, listen_backlog);
    const std::string what = fmt::format("listen on {}:{}", at.host, at.port);
    if (::bind(socket_.get(), address->ai_addr, address->ai_addrlen) < 0 ||
        ::listen(socket_.get(), listen_backlog) < 0)
        fail(errno, what);
    local_ = name_of(socket_.get(), ::getsockname);
}

bool Listener::has_connection(Deadline deadline)
{
    return wait_for(socket_.get(), POLLIN, deadline) != 0;
}

std::optional<Connection> Listener::accept(Deadline deadline)
{
    while (has_connection(deadline)) {
        FileDescriptor socket(::accept4(socket_.get(), nullptr, nullptr,
                                        SOCK_NONBLOCK | SOCK_CLOEXEC));
        if (socket.is_open())
            return Connection(std::move(socket));
        if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
            fail(errno, "accept");
    }
    return std::nullopt;
}

} // namespace mpapeer
