// SPDX-License-Identifier: GPL-2.0
// SCTP by libusrsctp, so that no part of the kernel's SCTP is in use on this side.
//
// The kernel answers every SCTP packet to an address of its own, with an ABORT if it does not know the
// association. So this stack speaks for an IPv4 address that the kernel does not have: it reads packets
// to it from a packet socket, and sends from it by a raw one. The library itself has no sockets.
#include "sctp_stack.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <stdexcept>

#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <netinet/ip.h>
#include <poll.h>
#include <sys/socket.h>
#include <usrsctp.h>

namespace mpapeer {
namespace {

constexpr int backlog = 128;
constexpr std::size_t receive_size = 65536;
constexpr std::uint16_t first_port = 49152;
constexpr std::chrono::milliseconds timer_step(10);
constexpr std::chrono::seconds close_patience(2);
constexpr std::uint8_t chunk_data = 0;
constexpr std::uint8_t chunk_flags = 7; ///< unordered, first and last fragment
constexpr std::size_t header_size = 12;
constexpr std::size_t checksum_offset = 8;

in_addr parse_address(const HostPort &at)
{
    in_addr address{};
    if (::inet_pton(AF_INET, at.host.c_str(), &address) != 1)
        throw std::runtime_error(fmt::format("--stack usrsctp needs an IPv4 address, not '{}'", at.host));
    return address;
}

std::uint16_t parse_port(const HostPort &at)
{
    return static_cast<std::uint16_t>(parse_number(at.port, UINT16_MAX));
}

std::string name_of(in_addr address, std::uint16_t port)
{
    std::array<char, INET_ADDRSTRLEN> text{};
    ::inet_ntop(AF_INET, &address, text.data(), text.size());
    return fmt::format("{}:{}", text.data(), port);
}

/// RFC 5043 sections 9 and 10: every DATA chunk is unordered and unfragmented.
void check_chunks(ByteView packet)
{
    for (ByteView rest = packet.subspan(std::min(header_size, packet.size())); rest.size() >= 4;) {
        Reader reader(rest);
        const auto type = reader.read<std::uint8_t>();
        const auto flags = reader.read<std::uint8_t>();
        const auto length = reader.read<std::uint16_t>();
        if (type == chunk_data && (flags & chunk_flags) != chunk_flags)
            throw std::runtime_error(fmt::format("the peer sent a DATA chunk with flags {:#x}, expected at least {:#x}",
                                                 flags, chunk_flags));
        rest = rest.subspan(std::min<std::size_t>(rest.size(), std::max<std::size_t>(4, (length + 3U) & ~3U)));
    }
}

/// The host with one address on which libusrsctp runs. The library exists once in a process.
class Machine {
public:
    static Machine &get()
    {
        static Machine machine;
        return machine;
    }

    /// Takes an address, and leaves the one before. Throws std::system_error.
    void take_address(in_addr own);
    void set_remote(in_addr remote) { remote_ = remote; }

    in_addr own() const { return own_; }
    in_addr remote() const { return remote_; }

    /// Whether packets come and go. Those that have come meanwhile are lost.
    void switch_on(bool on);
    bool is_on() const { return on_; }

    /// Takes packets and lets timers run, once; false when the deadline has passed.
    bool step(Deadline deadline);

private:
    Machine();
    static int send_packet(void *machine, void *packet, std::size_t size, std::uint8_t, std::uint8_t);
    bool take_packet();
    void run_timers();

    in_addr own_{};
    in_addr remote_{};
    bool on_ = true;
    FileDescriptor sender_;
    FileDescriptor receiver_;
    Clock::time_point last_tick_ = Clock::now();
};

Machine::Machine()
{
    usrsctp_init_nothreads(0, send_packet, nullptr);
    // Linux leaves checksums to the interfaces, and a veth pair does not calculate them
    usrsctp_enable_crc32c_offload();
    // After a restart, packets of the association before draw no ABORT
    usrsctp_sysctl_set_sctp_blackhole(2);
    usrsctp_register_address(this);
}

void Machine::take_address(in_addr own)
{
    own_ = own;
    sender_ = FileDescriptor(::socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_RAW));
    check(sender_.get(), "raw socket");
    receiver_ = FileDescriptor(
        ::socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, htons(ETHERTYPE_IP)));
    check(receiver_.get(), "packet socket");
    on_ = true;
}

void Machine::switch_on(bool on)
{
    on_ = false;
    while (take_packet()) {
    }
    on_ = on;
}

int Machine::send_packet(void *context, void *packet, std::size_t size, std::uint8_t, std::uint8_t)
{
    const auto &machine = *static_cast<Machine *>(context);
    if (!machine.on_)
        return 0;
    const std::uint32_t checksum = usrsctp_crc32c(packet, size);
    std::memcpy(static_cast<std::uint8_t *>(packet) + checksum_offset, &checksum, sizeof(checksum));

    iphdr header{};
    header.version = IPVERSION;
    header.ihl = sizeof(header) / 4;
    header.tot_len = htons(static_cast<std::uint16_t>(sizeof(header) + size));
    header.frag_off = htons(IP_DF);
    header.ttl = IPDEFTTL;
    header.protocol = IPPROTO_SCTP;
    header.saddr = machine.own_.s_addr;
    header.daddr = machine.remote_.s_addr;

    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_addr = machine.remote_;
    std::array<iovec, 2> parts{iovec{&header, sizeof(header)}, iovec{packet, size}};
    msghdr message{};
    message.msg_name = &to;
    message.msg_namelen = sizeof(to);
    message.msg_iov = parts.data();
    message.msg_iovlen = parts.size();
    return ::sendmsg(machine.sender_.get(), &message, MSG_NOSIGNAL) < 0 ? errno : 0;
}

/// Gives one packet to the library, if it is for us; false if none has come.
bool Machine::take_packet()
{
    Bytes buffer(receive_size);
    sockaddr_ll from{};
    socklen_t from_size = sizeof(from);
    const ssize_t size = ::recvfrom(receiver_.get(), buffer.data(), buffer.size(), 0,
                                    reinterpret_cast<sockaddr *>(&from), &from_size);
    if (size < 0)
        return false;
    iphdr header{};
    std::memcpy(&header, buffer.data(), sizeof(header));
    const std::size_t front = header.ihl * 4U;
    const std::size_t length = std::min<std::size_t>(static_cast<std::size_t>(size), ntohs(header.tot_len));
    if (static_cast<std::size_t>(size) < sizeof(header) || header.protocol != IPPROTO_SCTP ||
        header.daddr != own_.s_addr || length < front + header_size ||
        from.sll_pkttype == PACKET_OUTGOING || !on_)
        return true;
    remote_.s_addr = header.saddr;
    const ByteView packet = ByteView(buffer).subspan(front, length - front);
    check_chunks(packet);
    usrsctp_conninput(this, packet.data(), packet.size(), 0);
    return true;
}

void Machine::run_timers()
{
    const auto passed =
        std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - last_tick_);
    if (passed < timer_step)
        return;
    last_tick_ += passed;
    usrsctp_handle_timers(static_cast<std::uint32_t>(passed.count()));
}

bool Machine::step(Deadline deadline)
{
    wait_for(receiver_.get(), POLLIN, std::min(deadline, Clock::now() + timer_step));
    take_packet();
    run_timers();
    return Clock::now() < deadline;
}


template <class T>
void set_usrsctp_option(struct socket *socket, int level, int name, const T &value, const char *option)
{
    if (usrsctp_setsockopt(socket, level, name, &value, sizeof(value)) < 0)
        fail(errno, fmt::format("usrsctp_setsockopt {}", option));
}

void set_options(struct socket *socket, const SctpOptions &options)
{
    sctp_initmsg streams{};
    streams.sinit_num_ostreams = options.streams;
    streams.sinit_max_instreams = options.streams;
    sctp_event adaptation{};
    adaptation.se_type = SCTP_ADAPTATION_INDICATION;
    adaptation.se_on = 1;
    set_usrsctp_option(socket, IPPROTO_SCTP, SCTP_INITMSG, streams, "SCTP_INITMSG");
    set_usrsctp_option(socket, IPPROTO_SCTP, SCTP_EVENT, adaptation, "SCTP_EVENT");
    set_usrsctp_option(socket, IPPROTO_SCTP, SCTP_NODELAY, 1, "SCTP_NODELAY");
    set_usrsctp_option(socket, IPPROTO_SCTP, SCTP_RECVRCVINFO, 1, "SCTP_RECVRCVINFO");
    if (options.adaptation)
        set_usrsctp_option(socket, IPPROTO_SCTP, SCTP_ADAPTATION_LAYER,
                           sctp_setadaptation{*options.adaptation}, "SCTP_ADAPTATION_LAYER");
    if (options.window != 0)
        set_usrsctp_option(socket, SOL_SOCKET, SO_RCVBUF, static_cast<int>(options.window), "SO_RCVBUF");
    check(usrsctp_set_non_blocking(socket, 1), "usrsctp_set_non_blocking");
}

struct SocketCloser {
    void operator()(struct socket *socket) const { usrsctp_close(socket); }
};
using Socket = std::unique_ptr<struct socket, SocketCloser>;

Socket make_usrsctp_socket(const SctpOptions &options, std::uint16_t port)
{
    Socket socket(usrsctp_socket(AF_CONN, SOCK_STREAM, IPPROTO_SCTP, nullptr, nullptr, 0, nullptr));
    check(socket ? 0 : -1, "usrsctp_socket");
    set_options(socket.get(), options);
    sockaddr_conn own{};
    own.sconn_family = AF_CONN;
    own.sconn_port = htons(port);
    own.sconn_addr = &Machine::get();
    check(usrsctp_bind(socket.get(), reinterpret_cast<sockaddr *>(&own), sizeof(own)),
               "usrsctp_bind");
    return socket;
}

class UsrsctpAssociation : public SctpAssociation {
public:
    UsrsctpAssociation(Socket socket, const std::string &local, const std::string &remote)
        : socket_(std::move(socket))
    {
        local_ = local;
        remote_ = remote;
    }
    ~UsrsctpAssociation() override { abort(); }

    Received receive(SctpMessage &message, Deadline deadline) override;
    void idle(Deadline deadline) override;
    Sent send(const SctpMessage &message, Deadline deadline) override;
    void shutdown() override { usrsctp_shutdown(socket_.get(), SHUT_WR); }
    void abort() override;
    void close() override;
    void vanish() override { Machine::get().switch_on(false); }
    bool is_open() const override { return socket_ != nullptr; }

private:
    Received take(SctpMessage &message, int flags, const sctp_rcvinfo &info, ByteView bytes);

    Socket socket_;
    Bytes partial_;
};

void UsrsctpAssociation::abort()
{
    if (!socket_)
        return;
    const linger abort{.l_onoff = 1, .l_linger = 0};
    usrsctp_setsockopt(socket_.get(), SOL_SOCKET, SO_LINGER, &abort, sizeof(abort));
    socket_.reset();
}

/// The library must live until the peer has agreed.
void UsrsctpAssociation::close()
{
    SctpMessage no_matter;
    const Deadline until = Clock::now() + close_patience;
    shutdown();
    for (;;) {
        switch (receive(no_matter, until)) {
        case Received::message:
        case Received::adaptation: continue;
        default: socket_.reset(); return;
        }
    }
}

void UsrsctpAssociation::idle(Deadline deadline)
{
    while (Machine::get().step(deadline)) {
    }
}

SctpAssociation::Received UsrsctpAssociation::take(SctpMessage &message, int flags,
                                                   const sctp_rcvinfo &info, ByteView bytes)
{
    if ((flags & MSG_NOTIFICATION) != 0) {
        sctp_adaptation_event event{};
        std::memcpy(&event, bytes.data(), std::min(bytes.size(), sizeof(event)));
        if (event.sai_type != SCTP_ADAPTATION_INDICATION)
            return Received::nothing;
        adaptation_ = event.sai_adaptation_ind;
        return Received::adaptation;
    }
    append(partial_, bytes);
    if ((flags & MSG_EOR) == 0)
        return Received::nothing;
    message = {.bytes = std::exchange(partial_, {}),
               .ppid = ntohl(info.rcv_ppid),
               .stream = info.rcv_sid,
               .ordered = (info.rcv_flags & SCTP_UNORDERED) == 0};
    return Received::message;
}

SctpAssociation::Received UsrsctpAssociation::receive(SctpMessage &message, Deadline deadline)
{
    Bytes bytes(receive_size);
    for (;;) {
        sctp_rcvinfo info{};
        socklen_t info_size = sizeof(info);
        sockaddr_conn from{};
        socklen_t from_size = sizeof(from);
        unsigned int info_type = 0;
        int flags = 0;
        const ssize_t size = usrsctp_recvv(socket_.get(), bytes.data(), bytes.size(),
                                           reinterpret_cast<sockaddr *>(&from), &from_size, &info,
                                           &info_size, &info_type, &flags);
        if (size == 0)
            return Received::shutdown;
        if (size > 0) {
            const Received what =
                take(message, flags, info, ByteView(bytes).first(static_cast<std::size_t>(size)));
            if (what != Received::nothing)
                return what;
        } else if (errno != EAGAIN) {
            return Received::abort;
        } else if (!Machine::get().step(deadline)) {
            return Received::nothing;
        }
    }
}

SctpAssociation::Sent UsrsctpAssociation::send(const SctpMessage &message, Deadline deadline)
{
    sctp_assoc_value largest{};
    largest.assoc_value = message.fragmented ? fragment_size : 0;
    usrsctp_setsockopt(socket_.get(), IPPROTO_SCTP, SCTP_MAXSEG, &largest, sizeof(largest));

    sctp_sndinfo info{};
    info.snd_sid = message.stream;
    info.snd_flags = message.ordered ? 0 : SCTP_UNORDERED;
    info.snd_ppid = htonl(message.ppid);
    while (usrsctp_sendv(socket_.get(), message.bytes.data(), message.bytes.size(), nullptr, 0, &info,
                         sizeof(info), SCTP_SENDV_SNDINFO, 0) < 0) {
        if (errno != EAGAIN)
            return Sent::broken;
        if (!Machine::get().step(deadline))
            return Sent::timed_out;
    }
    // Take the packets that the peer has sent meanwhile, its acknowledgements above all
    Machine::get().step(Clock::now());
    return Sent::all;
}

class UsrsctpStack : public SctpStack {
public:
    explicit UsrsctpStack(const SctpOptions &options) : options_(options) {}

    std::unique_ptr<SctpAssociation> connect(const HostPort &to, const HostPort &from,
                                             Deadline deadline) override;
    std::string listen(const HostPort &at) override;
    std::unique_ptr<SctpAssociation> accept(Deadline deadline) override;
    bool has_association(Deadline deadline) override;

private:
    std::uint16_t own_port();

    SctpOptions options_;
    Socket listener_;
    Socket accepted_;
    std::string local_;
    std::uint16_t port_ = 0; ///< the initiator's last one
};

/// After "vanish" our host starts anew, and its programs take the ports that they had.
std::uint16_t UsrsctpStack::own_port()
{
    if (port_ == 0)
        port_ = static_cast<std::uint16_t>(first_port + Clock::now().time_since_epoch().count() / 1000 %
                                                            (UINT16_MAX - first_port));
    else if (Machine::get().is_on())
        port_++;
    return port_;
}

std::unique_ptr<SctpAssociation> UsrsctpStack::connect(const HostPort &to, const HostPort &from,
                                                       Deadline deadline)
{
    Machine &machine = Machine::get();
    const std::uint16_t port = own_port();
    if (machine.is_on())
        machine.take_address(parse_address(from));
    machine.switch_on(true);
    machine.set_remote(parse_address(to));
    Socket socket = make_usrsctp_socket(options_, port);

    sockaddr_conn peer{};
    peer.sconn_family = AF_CONN;
    peer.sconn_port = htons(parse_port(to));
    peer.sconn_addr = &machine;
    const std::string what = fmt::format("connect to {}:{}", to.host, to.port);
    if (usrsctp_connect(socket.get(), reinterpret_cast<sockaddr *>(&peer), sizeof(peer)) < 0 &&
        errno != EINPROGRESS)
        fail(errno, what);
    while ((usrsctp_get_events(socket.get()) & (SCTP_EVENT_WRITE | SCTP_EVENT_ERROR)) == 0) {
        if (!machine.step(deadline))
            fail(ETIMEDOUT, what);
    }
    int error = 0;
    socklen_t size = sizeof(error);
    usrsctp_getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0)
        fail(error, what);
    return std::make_unique<UsrsctpAssociation>(std::move(socket), name_of(machine.own(), port),
                                                name_of(machine.remote(), parse_port(to)));
}

std::string UsrsctpStack::listen(const HostPort &at)
{
    Machine &machine = Machine::get();
    machine.take_address(parse_address(at));
    listener_ = make_usrsctp_socket(options_, parse_port(at));
    check(usrsctp_listen(listener_.get(), backlog), "usrsctp_listen");
    local_ = name_of(machine.own(), parse_port(at));
    return local_;
}

bool UsrsctpStack::has_association(Deadline deadline)
{
    while (!accepted_) {
        accepted_.reset(usrsctp_accept(listener_.get(), nullptr, nullptr));
        if (!accepted_ && errno != EAGAIN)
            fail(errno, "usrsctp_accept");
        if (!accepted_ && !Machine::get().step(deadline))
            return false;
    }
    return true;
}

std::unique_ptr<SctpAssociation> UsrsctpStack::accept(Deadline deadline)
{
    if (!has_association(deadline))
        return nullptr;
    check(usrsctp_set_non_blocking(accepted_.get(), 1), "usrsctp_set_non_blocking");
    return std::make_unique<UsrsctpAssociation>(std::move(accepted_), local_,
                                                name_of(Machine::get().remote(), 0));
}

} // namespace

std::unique_ptr<SctpStack> make_usrsctp_stack(const SctpOptions &options)
{
    return std::make_unique<UsrsctpStack>(options);
}

} // namespace mpapeer
