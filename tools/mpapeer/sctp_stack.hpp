// SPDX-License-Identifier: GPL-2.0
// The SCTP stacks that mpapeer can use: the kernel's, and libusrsctp.
#pragma once

#include "session_message.hpp"
#include "socket.hpp"

#include <memory>
#include <optional>
#include <string>

namespace mpapeer {

/// A user message: one DATA chunk, unless it is fragmented.
struct SctpMessage {
    Bytes bytes = {};
    std::uint32_t ppid = 0;
    std::uint16_t stream = 0;
    bool ordered = false;
    bool fragmented = false; ///< to send: chunks of at most fragment_size bytes
};

/// Linux takes no smaller one than 464.
inline constexpr std::uint32_t fragment_size = 480;

/// Options of every association of a stack.
struct SctpOptions {
    std::optional<std::uint32_t> adaptation = ddp_adaptation; ///< our indication
    std::size_t window = 0; ///< of the receive buffer, 0 for the default
    std::uint16_t streams = 1; ///< offered each way (RFC 5043 section 8)
};

class SctpAssociation {
public:
    enum class Received { message, adaptation, shutdown, abort, nothing };
    enum class Sent { all, broken, timed_out };

    virtual ~SctpAssociation() = default;

    /// Waits for a message, the peer's adaptation indication, or the end.
    virtual Received receive(SctpMessage &message, Deadline deadline) = 0;

    /// Lets time pass without taking data from SCTP.
    virtual void idle(Deadline deadline) = 0;

    virtual Sent send(const SctpMessage &message, Deadline deadline) = 0;

    virtual void shutdown() = 0;
    virtual void abort() = 0;
    virtual void close() = 0;

    /// No packet is sent or received any more. Throws std::runtime_error if the stack cannot do it.
    virtual void vanish() = 0;

    virtual bool is_open() const = 0;

    /// The peer's indication, as far as it has come.
    std::optional<std::uint32_t> adaptation() const { return adaptation_; }

    const std::string &local() const { return local_; }
    const std::string &remote() const { return remote_; }

protected:
    std::optional<std::uint32_t> adaptation_;
    std::string local_;
    std::string remote_;
};

class SctpStack {
public:
    virtual ~SctpStack() = default;

    /// Connects from `from`, whose parts may be empty. Throws std::system_error.
    virtual std::unique_ptr<SctpAssociation> connect(const HostPort &to, const HostPort &from,
                                                     Deadline deadline) = 0;

    /// Throws std::system_error. The result is the address, with the port taken if `at` has port 0.
    virtual std::string listen(const HostPort &at) = 0;

    /// The next association; nothing if none comes.
    virtual std::unique_ptr<SctpAssociation> accept(Deadline deadline) = 0;

    virtual bool has_association(Deadline deadline) = 0;
};

std::unique_ptr<SctpStack> make_kernel_stack(const SctpOptions &options);

/// Throws std::runtime_error if mpapeer was built without libusrsctp.
std::unique_ptr<SctpStack> make_usrsctp_stack(const SctpOptions &options);

} // namespace mpapeer
