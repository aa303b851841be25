// SPDX-License-Identifier: GPL-2.0
// What sockets of TCP and SCTP share: descriptors, addresses, and waiting with a deadline.
#pragma once

#include "text.hpp"

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include <netdb.h>

namespace mpapeer {

using Clock = std::chrono::steady_clock;
using Deadline = Clock::time_point;

/// Owns a file descriptor.
class FileDescriptor {
public:
    explicit FileDescriptor(int fd = -1) : fd_(fd) {}
    FileDescriptor(FileDescriptor &&other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    FileDescriptor &operator=(FileDescriptor &&other) noexcept
    {
        std::swap(fd_, other.fd_);
        return *this;
    }
    ~FileDescriptor() { close(); }

    void close();
    int get() const { return fd_; }
    bool is_open() const { return fd_ >= 0; }

private:
    int fd_;
};

[[noreturn]] void fail(int error, const std::string &what);

/// Throws std::system_error if `result` is negative.
void check(int result, const char *what);

/// `option` is its name, for the exception.
void set_option(int fd, int level, int name, int value, const char *option);

using AddressList = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

/// For IPPROTO_TCP or IPPROTO_SCTP; `flags` are those of getaddrinfo(). Throws std::system_error.
AddressList resolve(const HostPort &at, int protocol, int flags);

/// A non-blocking stream socket.
FileDescriptor make_socket(const addrinfo &address);

/// "ADDR:PORT" or "[ADDR]:PORT" of a socket's own end, and of the other one.
std::string local_name(int fd);
std::string remote_name(int fd);

/// Connects a non-blocking socket. The result is ECONNRESET if the connection was reset at once, else
/// 0; throws std::system_error.
int connect_socket(int fd, const addrinfo &address, const std::string &what, Deadline deadline);

/// The next connection of a listening socket; closed if none comes.
FileDescriptor accept_socket(int fd, Deadline deadline);

/// poll() on one descriptor until something happens; 0 when the deadline has passed.
short wait_for(int fd, short events, Deadline deadline);

bool connection_is_gone(int error);

/// Closes with a RST or an ABORT (SO_LINGER with a time of 0).
void close_abortively(FileDescriptor &socket);

} // namespace mpapeer
