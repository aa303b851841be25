// SPDX-License-Identifier: GPL-2.0
// SCTP by sockets of the kernel.
#include "sctp_stack.hpp"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>

#include <arpa/inet.h>
#include <linux/sctp.h>
#include <poll.h>
#include <sys/socket.h>

namespace mpapeer {
namespace {

constexpr int backlog = 128;
constexpr std::size_t receive_size = 65536;

template <class T>
void set_sctp_option(int fd, int name, const T &value, const char *option)
{
    if (::setsockopt(fd, IPPROTO_SCTP, name, &value, sizeof(value)) < 0)
        fail(errno, fmt::format("setsockopt {}", option));
}

void set_options(int fd, const SctpOptions &options)
{
    const sctp_initmsg streams{
        .sinit_num_ostreams = options.streams,
        .sinit_max_instreams = options.streams,
        .sinit_max_attempts = 0,
        .sinit_max_init_timeo = 0,
    };
    set_sctp_option(fd, SCTP_INITMSG, streams, "SCTP_INITMSG");
    for (const int type : {SCTP_ADAPTATION_INDICATION, SCTP_ASSOC_CHANGE})
        set_sctp_option(fd, SCTP_EVENT,
                        sctp_event{.se_assoc_id = 0,
                                   .se_type = static_cast<std::uint16_t>(type),
                                   .se_on = 1},
                        "SCTP_EVENT");
    set_sctp_option(fd, SCTP_NODELAY, 1, "SCTP_NODELAY");
    set_sctp_option(fd, SCTP_RECVRCVINFO, 1, "SCTP_RECVRCVINFO");
    if (options.adaptation)
        set_sctp_option(fd, SCTP_ADAPTATION_LAYER, sctp_setadaptation{*options.adaptation},
                        "SCTP_ADAPTATION_LAYER");
    if (options.window != 0)
        set_option(fd, SOL_SOCKET, SO_RCVBUF, static_cast<int>(options.window), "SO_RCVBUF");
}

class KernelAssociation : public SctpAssociation {
public:
    KernelAssociation(FileDescriptor socket, bool is_reset)
        : socket_(std::move(socket)), is_reset_(is_reset)
    {
        local_ = local_name(socket_.get());
        remote_ = is_reset ? "?" : remote_name(socket_.get());
    }

    Received receive(SctpMessage &message, Deadline deadline) override;
    void idle(Deadline deadline) override;
    Sent send(const SctpMessage &message, Deadline deadline) override;
    void shutdown() override;
    void abort() override { close_abortively(socket_); }
    void close() override { socket_.close(); }
    void vanish() override
    {
        throw std::runtime_error("kernel SCTP cannot disappear without an ABORT; use --stack usrsctp");
    }
    bool is_open() const override { return socket_.is_open(); }

private:
    Received take(SctpMessage &message, const msghdr &header, ByteView bytes);
    Received take_notification(ByteView bytes);

    FileDescriptor socket_;
    bool is_reset_;
    Bytes partial_;
};

/// The end of a shutdown that we began is told by an event alone. So is an ABORT whose error sendmsg() has
/// returned, because the socket tells it once.
SctpAssociation::Received KernelAssociation::take_notification(ByteView bytes)
{
    sctp_notification event{};
    std::memcpy(&event, bytes.data(), std::min(bytes.size(), sizeof(event)));
    if (event.sn_header.sn_type == SCTP_ASSOC_CHANGE) {
        switch (event.sn_assoc_change.sac_state) {
        case SCTP_SHUTDOWN_COMP: return Received::shutdown;
        case SCTP_COMM_LOST: return Received::abort;
        default: return Received::nothing;
        }
    }
    if (event.sn_header.sn_type != SCTP_ADAPTATION_INDICATION)
        return Received::nothing;
    adaptation_ = event.sn_adaptation_event.sai_adaptation_ind;
    return Received::adaptation;
}

/// A result of recvmsg(): a message or its front part, or a notification.
SctpAssociation::Received KernelAssociation::take(SctpMessage &message, const msghdr &header,
                                                  ByteView bytes)
{
    if ((header.msg_flags & MSG_NOTIFICATION) != 0)
        return take_notification(bytes);
    append(partial_, bytes);
    if ((header.msg_flags & MSG_EOR) == 0)
        return Received::nothing;
    message = {.bytes = std::exchange(partial_, {})};
    for (const cmsghdr *cmsg = CMSG_FIRSTHDR(&header); cmsg;
         cmsg = CMSG_NXTHDR(const_cast<msghdr *>(&header), const_cast<cmsghdr *>(cmsg))) {
        if (cmsg->cmsg_level != IPPROTO_SCTP || cmsg->cmsg_type != SCTP_RCVINFO)
            continue;
        sctp_rcvinfo info{};
        std::memcpy(&info, CMSG_DATA(cmsg), sizeof(info));
        message.ppid = ntohl(info.rcv_ppid);
        message.stream = info.rcv_sid;
        message.ordered = (info.rcv_flags & SCTP_UNORDERED) == 0;
    }
    return Received::message;
}

SctpAssociation::Received KernelAssociation::receive(SctpMessage &message, Deadline deadline)
{
    Bytes bytes(receive_size);
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(sctp_rcvinfo))> control{};
    for (;;) {
        if (std::exchange(is_reset_, false))
            return Received::abort;
        iovec part{bytes.data(), bytes.size()};
        msghdr header{};
        header.msg_iov = &part;
        header.msg_iovlen = 1;
        header.msg_control = control.data();
        header.msg_controllen = control.size();
        const ssize_t size = ::recvmsg(socket_.get(), &header, 0);
        if (size == 0)
            return Received::shutdown;
        if (size > 0) {
            const Received what =
                take(message, header, ByteView(bytes).first(static_cast<std::size_t>(size)));
            if (what != Received::nothing)
                return what;
        } else if (errno == EAGAIN || errno == EINTR) {
            if (wait_for(socket_.get(), POLLIN, deadline) == 0)
                return Received::nothing;
        } else if (connection_is_gone(errno) || errno == ETIMEDOUT || errno == ENOTCONN) {
            return Received::abort;
        } else {
            fail(errno, "recvmsg");
        }
    }
}

void KernelAssociation::idle(Deadline deadline)
{
    while (Clock::now() < deadline)
        wait_for(-1, 0, deadline);
}

SctpAssociation::Sent KernelAssociation::send(const SctpMessage &message, Deadline deadline)
{
    set_sctp_option(socket_.get(), SCTP_MAXSEG,
                    sctp_assoc_value{0, message.fragmented ? fragment_size : 0}, "SCTP_MAXSEG");
    sctp_sndinfo info{};
    info.snd_sid = message.stream;
    info.snd_flags = message.ordered ? 0 : SCTP_UNORDERED;
    info.snd_ppid = htonl(message.ppid);

    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(info))> control{};
    iovec part{const_cast<std::uint8_t *>(message.bytes.data()), message.bytes.size()};
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = control.data();
    header.msg_controllen = control.size();
    cmsghdr *cmsg = CMSG_FIRSTHDR(&header);
    cmsg->cmsg_level = IPPROTO_SCTP;
    cmsg->cmsg_type = SCTP_SNDINFO;
    cmsg->cmsg_len = CMSG_LEN(sizeof(info));
    std::memcpy(CMSG_DATA(cmsg), &info, sizeof(info));

    while (::sendmsg(socket_.get(), &header, MSG_NOSIGNAL) < 0) {
        if (connection_is_gone(errno) || errno == ESHUTDOWN || errno == ENOTCONN ||
            errno == ETIMEDOUT)
            return Sent::broken;
        if (errno != EAGAIN && errno != EINTR)
            fail(errno, "sendmsg");
        if (wait_for(socket_.get(), POLLOUT, deadline) == 0)
            return Sent::timed_out;
    }
    return Sent::all;
}

void KernelAssociation::shutdown()
{
    if (::shutdown(socket_.get(), SHUT_WR) < 0 && errno != ENOTCONN && !connection_is_gone(errno))
        fail(errno, "shutdown");
}

class KernelStack : public SctpStack {
public:
    explicit KernelStack(const SctpOptions &options) : options_(options) {}

    std::unique_ptr<SctpAssociation> connect(const HostPort &to, const HostPort &from,
                                             Deadline deadline) override;
    std::string listen(const HostPort &at) override;
    std::unique_ptr<SctpAssociation> accept(Deadline deadline) override;
    bool has_association(Deadline deadline) override
    {
        return wait_for(listener_.get(), POLLIN, deadline) != 0;
    }

private:
    SctpOptions options_;
    FileDescriptor listener_;
};

std::unique_ptr<SctpAssociation> KernelStack::connect(const HostPort &to, const HostPort &from,
                                                      Deadline deadline)
{
    const std::string what = fmt::format("connect to {}:{}", to.host, to.port);
    const AddressList address = resolve(to, IPPROTO_SCTP, 0);
    FileDescriptor socket = make_socket(*address);
    set_options(socket.get(), options_);
    if (!from.host.empty()) {
        const AddressList own = resolve(from, IPPROTO_SCTP, AI_NUMERICHOST);
        check(::bind(socket.get(), own->ai_addr, own->ai_addrlen), "bind");
    }
    const bool is_reset = connect_socket(socket.get(), *address, what, deadline) == ECONNRESET;
    return std::make_unique<KernelAssociation>(std::move(socket), is_reset);
}

std::string KernelStack::listen(const HostPort &at)
{
    const AddressList address = resolve(at, IPPROTO_SCTP, AI_PASSIVE);
    listener_ = make_socket(*address);
    set_option(listener_.get(), SOL_SOCKET, SO_REUSEADDR, 1, "SO_REUSEADDR");
    set_options(listener_.get(), options_);
    if (::bind(listener_.get(), address->ai_addr, address->ai_addrlen) < 0 ||
        ::listen(listener_.get(), backlog) < 0)
        fail(errno, fmt::format("listen on {}:{}", at.host, at.port));
    return local_name(listener_.get());
}

std::unique_ptr<SctpAssociation> KernelStack::accept(Deadline deadline)
{
    FileDescriptor socket = accept_socket(listener_.get(), deadline);
    return socket.is_open() ? std::make_unique<KernelAssociation>(std::move(socket), false) : nullptr;
}

} // namespace

std::unique_ptr<SctpStack> make_kernel_stack(const SctpOptions &options)
{
    return std::make_unique<KernelStack>(options);
}

} // namespace mpapeer
