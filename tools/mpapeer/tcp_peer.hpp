// SPDX-License-Identifier: GPL-2.0
// TCP connections with a deadline on every wait.
#pragma once

#include "bytes.hpp"
#include "socket.hpp"

#include <optional>
#include <string>

namespace mpapeer {

/// One TCP connection: TCP_NODELAY is on, so that every send() is a segment of its own.
class Connection {
public:
    enum class Received { data, fin, reset, nothing };
    enum class Sent { all, broken, timed_out };

    /// Connects from `bind_address` (if not empty); throws std::system_error. With `fast_open` and
    /// the peer's cookie, the first send() connects: its bytes are in the SYN (RFC 7413).
    static Connection connect(const HostPort &to, const std::string &bind_address, bool fast_open,
                              Deadline deadline);

    /// Takes over an accepted, non-blocking socket.
    explicit Connection(FileDescriptor socket);

    /// Waits for bytes or the end of the stream; `bytes` receives the former.
    Received receive(Bytes &bytes, Deadline deadline);

    /// Waits for a RST on a connection whose peer has already sent its FIN.
    Received wait_for_reset(Deadline deadline);

    /// With `more`, the last bytes wait for the next send or for the FIN. With `urgent`, the last
    /// byte is TCP's urgent data.
    Sent send(ByteView bytes, bool more, bool urgent, Deadline deadline);

    /// Sends a FIN and goes on receiving.
    void shutdown_write();

    /// Closes with a RST (SO_LINGER with a time of 0).
    void reset();

    void close() { socket_.close(); }
    bool is_open() const { return socket_.is_open(); }

    const std::string &local() const { return local_; }
    const std::string &remote() const { return remote_; }

private:
    FileDescriptor socket_;
    bool reset_seen_ = false; ///< the kernel has reported a RST; it reports it only once
    std::string local_;
    std::string remote_;
};

/// A listening socket.
class Listener {
public:
    /// Throws std::system_error. Port 0 takes any free one: see local(). With `fast_open` it takes
    /// data in SYNs.
    Listener(const HostPort &at, bool fast_open);

    /// The next connection; nothing if none comes.
    std::optional<Connection> accept(Deadline deadline);

    /// Whether a connection is there to be accepted.
    bool has_connection(Deadline deadline);

    /// "ADDR:PORT" or "[ADDR]:PORT".
    const std::string &local() const { return local_; }

private:
    FileDescriptor socket_;
    std::string local_;
};

} // namespace mpapeer
