// SPDX-License-Identifier: GPL-2.0
#include "socket.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace mpapeer {
namespace {

constexpr std::int64_t max_poll_milliseconds = 60000;

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

} // namespace

void FileDescriptor::close()
{
    if (fd_ >= 0)
        ::close(std::exchange(fd_, -1));
}

void fail(int error, const std::string &what)
{
    throw std::system_error(error, std::generic_category(), what);
}

void check(int result, const char *what)
{
    if (result < 0)
        fail(errno, what);
}

void set_option(int fd, int level, int name, int value, const char *option)
{
    if (::setsockopt(fd, level, name, &value, sizeof(value)) < 0)
        fail(errno, fmt::format("setsockopt {}", option));
}

AddressList resolve(const HostPort &at, int protocol, int flags)
{
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_protocol = protocol;
    hints.ai_flags = flags;
    addrinfo *list = nullptr;
    const int error = ::getaddrinfo(at.host.empty() ? nullptr : at.host.c_str(), at.port.c_str(),
                                    &hints, &list);
    if (error != 0)
        throw std::system_error(std::make_error_code(std::errc::address_not_available),
                                fmt::format("{}:{}: {}", at.host, at.port, ::gai_strerror(error)));
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

std::string local_name(int fd)
{
    return name_of(fd, ::getsockname);
}

std::string remote_name(int fd)
{
    return name_of(fd, ::getpeername);
}

int connect_socket(int fd, const addrinfo &address, const std::string &what, Deadline deadline)
{
    if (::connect(fd, address.ai_addr, address.ai_addrlen) == 0)
        return 0;
    if (errno != EINPROGRESS)
        fail(errno, what);
    if (wait_for(fd, POLLOUT, deadline) == 0)
        fail(ETIMEDOUT, what);
    int error = 0;
    socklen_t size = sizeof(error);
    check(::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size), "getsockopt SO_ERROR");
    // A RST right after the handshake is an event of the connection, not a failure to connect.
    if (error != 0 && error != ECONNRESET)
        fail(error, what);
    return error;
}

FileDescriptor accept_socket(int fd, Deadline deadline)
{
    while (wait_for(fd, POLLIN, deadline) != 0) {
        FileDescriptor socket(::accept4(fd, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
        if (socket.is_open())
            return socket;
        if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
            fail(errno, "accept");
    }
    return FileDescriptor();
}

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

void close_abortively(FileDescriptor &socket)
{
    const linger abort{.l_onoff = 1, .l_linger = 0};
    check(::setsockopt(socket.get(), SOL_SOCKET, SO_LINGER, &abort, sizeof(abort)), "setsockopt SO_LINGER");
    socket.close();
}

} // namespace mpapeer
