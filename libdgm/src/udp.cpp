// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#include "udp.h"

#include <netinet/in.h>
#include <netinet/udp.h>
#include <unistd.h>

#include <linux/errqueue.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace libdgm {

namespace {

constexpr size_t batch = 16;
constexpr size_t largest = 65536; // of a bundle
constexpr int receive_buffer = 4 << 20;
constexpr uint32_t usual_mtu = 1500;

struct alignas(cmsghdr) Control {
	char bytes[256];
};

void set(int fd, int level, int name, int value)
{
	// Not all of them exist in each family and kernel; the endpoint works without
	::setsockopt(fd, level, name, &value, sizeof(value));
}

int get(int fd, int level, int name)
{
	int value = 0;
	socklen_t length = sizeof(value);
	if (::getsockopt(fd, level, name, &value, &length) != 0)
		return -1;
	return value;
}

} // namespace

Descriptor::~Descriptor()
{
	if (fd_ >= 0)
		::close(fd_);
}

struct Udp::Batch {
	std::unique_ptr<uint8_t[]> memory = std::make_unique_for_overwrite<uint8_t[]>(batch * largest);
	std::array<iovec, batch> vectors;
	std::array<sockaddr_in6, batch> peers;
	std::array<Control, batch> controls;
	std::array<mmsghdr, batch> headers;

	void prepare()
	{
		for (size_t i = 0; i < batch; i++) {
			vectors[i] = {.iov_base = memory.get() + i * largest, .iov_len = largest};
			headers[i] = {};
			headers[i].msg_hdr.msg_name = &peers[i];
			headers[i].msg_hdr.msg_namelen = sizeof(peers[i]);
			headers[i].msg_hdr.msg_iov = &vectors[i];
			headers[i].msg_hdr.msg_iovlen = 1;
			headers[i].msg_hdr.msg_control = controls[i].bytes;
			headers[i].msg_hdr.msg_controllen = sizeof(controls[i].bytes);
		}
	}
};

Udp::Udp(const sockaddr *address, socklen_t length, const UdpOptions &options)
{
	if (!to_source(address, length))
		throw_errno(EINVAL);
	family_ = address->sa_family;
	fd_ = Descriptor(::socket(family_, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_UDP));
	if (fd_.get() < 0)
		throw_errno(errno);
	if (family_ == AF_INET6)
		set(fd_.get(), IPPROTO_IPV6, IPV6_V6ONLY, 0);
	if (::bind(fd_.get(), address, length) != 0)
		throw_errno(errno);
	configure(options);
}

Udp::Udp(int fd, const UdpOptions &options)
	: fd_(fd), owned_(false), family_(get(fd, SOL_SOCKET, SO_DOMAIN))
{
	try {
		if ((family_ != AF_INET && family_ != AF_INET6) || get(fd, SOL_SOCKET, SO_TYPE) != SOCK_DGRAM ||
		    get(fd, SOL_SOCKET, SO_PROTOCOL) != IPPROTO_UDP || local().port == 0)
			throw_errno(EINVAL);
		configure(options);
	} catch (...) {
		fd_.release();
		throw;
	}
}

Udp::~Udp()
{
	if (!owned_)
		fd_.release();
}

void Udp::configure(const UdpOptions &options)
{
	const int discover = options.fragment ? IP_PMTUDISC_DONT : IP_PMTUDISC_DO;
	batch_ = std::make_unique<Batch>();
	set(fd(), SOL_SOCKET, SO_RCVBUF, receive_buffer);
	set(fd(), SOL_SOCKET, SO_SNDBUF, receive_buffer);
	set(fd(), SOL_SOCKET, SO_RXQ_OVFL, 1);
	set(fd(), IPPROTO_IP, IP_MTU_DISCOVER, discover);
	set(fd(), IPPROTO_IP, IP_RECVERR, 1);
	if (family_ == AF_INET6) {
		set(fd(), IPPROTO_IPV6, IPV6_MTU_DISCOVER, discover);
		set(fd(), IPPROTO_IPV6, IPV6_RECVERR, 1);
		// Comes with IPv6 packets alone; the address of an IPv4 packet looks as a forged one of IPv6
		if (const int on = 1; ::setsockopt(fd(), IPPROTO_IPV6, IPV6_RECVHOPLIMIT, &on, sizeof(on)) != 0)
			throw_errno(errno);
	}
	if (options.gro)
		set(fd(), IPPROTO_UDP, UDP_GRO, 1);
	if (options.target)
		family_ == AF_INET ? set(fd(), IPPROTO_IP, IP_PKTINFO, 1) : set(fd(), IPPROTO_IPV6, IPV6_RECVPKTINFO, 1);
}

dg_source Udp::local() const
{
	dgm_address address{};
	socklen_t length = sizeof(address);
	if (::getsockname(fd(), &address.any, &length) != 0)
		throw_errno(errno);
	return to_source(&address.any, length).value_or(dg_source{});
}

// An address alone
static dg_source to_target(const in6_addr &address)
{
	dg_source target{};
	std::memcpy(target.addr, &address, sizeof(target.addr));
	return target;
}

static dg_source to_target(const in_addr &address)
{
	dg_source target{};
	target.addr[10] = target.addr[11] = 0xff;
	std::memcpy(target.addr + 12, &address, sizeof(address));
	return target;
}

template <typename T> static T data_of(const cmsghdr *c)
{
	T data;
	std::memcpy(&data, CMSG_DATA(c), sizeof(data));
	return data;
}

void Udp::look_at(const msghdr &header, Seen &seen)
{
	auto *const writable = const_cast<msghdr *>(&header); // CMSG_NXTHDR only reads
	for (cmsghdr *c = CMSG_FIRSTHDR(writable); c != nullptr; c = CMSG_NXTHDR(writable, c)) {
		if (c->cmsg_level == IPPROTO_UDP && c->cmsg_type == UDP_GRO) {
			const int size = data_of<int>(c);
			seen.segment = size > 0 ? static_cast<size_t>(size) : seen.segment;
		} else if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SO_RXQ_OVFL) {
			const auto count = data_of<uint32_t>(c);
			overflows_ += static_cast<uint32_t>(count - last_overflow_);
			last_overflow_ = count;
		} else if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_HOPLIMIT) {
			seen.v6 = true;
		} else if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO) {
			seen.target = to_target(data_of<in_pktinfo>(c).ipi_addr);
		} else if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO) {
			seen.target = to_target(data_of<in6_pktinfo>(c).ipi6_addr);
		}
	}
}

size_t Udp::receive(const std::function<void(const Arrival &, std::span<const uint8_t>)> &receive)
{
	batch_->prepare();
	const int received = ::recvmmsg(fd(), batch_->headers.data(), batch, MSG_DONTWAIT, nullptr);
	if (received <= 0)
		return 0;
	size_t datagrams = 0;
	for (size_t i = 0; i < static_cast<size_t>(received); i++) {
		const msghdr &header = batch_->headers[i].msg_hdr;
		std::span<const uint8_t> rest(batch_->memory.get() + i * largest, batch_->headers[i].msg_len);
		const auto source = to_source(reinterpret_cast<const sockaddr *>(&batch_->peers[i]), header.msg_namelen);
		Seen seen{.segment = largest, .v6 = false, .target = {}};
		look_at(header, seen);
		datagrams++;
		if (!source)
			continue;
		Arrival arrival{.source = source, .target = seen.target};
		if (seen.v6 && is_v4(*source))
			arrival.source.reset();
		do {
			const auto datagram = rest.first(std::min(rest.size(), seen.segment));
			rest = rest.subspan(datagram.size());
			receive(arrival, datagram);
		} while (!rest.empty());
	}
	return datagrams;
}

void Udp::drain_errors(const std::function<void(const NetworkError &)> &report)
{
	// An attacker must not keep us here
	for (int left = 64; left > 0; left--) {
		Control control;
		sockaddr_in6 peer{};
		uint8_t datagram[1];
		iovec vector{.iov_base = datagram, .iov_len = sizeof(datagram)};
		msghdr header{};
		header.msg_name = &peer;
		header.msg_namelen = sizeof(peer);
		header.msg_iov = &vector;
		header.msg_iovlen = 1;
		header.msg_control = control.bytes;
		header.msg_controllen = sizeof(control.bytes);
		if (::recvmsg(fd(), &header, MSG_ERRQUEUE | MSG_DONTWAIT) < 0)
			return;
		const auto source = to_source(reinterpret_cast<const sockaddr *>(&peer), header.msg_namelen);
		for (cmsghdr *c = CMSG_FIRSTHDR(&header); c != nullptr; c = CMSG_NXTHDR(&header, c)) {
			const bool v4 = c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_RECVERR;
			const bool v6 = c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_RECVERR;
			if (!(v4 || v6) || !source)
				continue;
			sock_extended_err error;
			std::memcpy(&error, CMSG_DATA(c), sizeof(error));
			report({.error = static_cast<int>(error.ee_errno), .peer = *source, .mtu = error.ee_info});
		}
	}
}

// The header has one control message
template <typename T> static void put_control(msghdr &header, Control &control, int level, int type, const T &data)
{
	header.msg_control = control.bytes;
	header.msg_controllen = CMSG_SPACE(sizeof(data));
	cmsghdr *const c = CMSG_FIRSTHDR(&header);
	c->cmsg_level = level;
	c->cmsg_type = type;
	c->cmsg_len = CMSG_LEN(sizeof(data));
	std::memcpy(CMSG_DATA(c), &data, sizeof(data));
}

int Udp::send_with(const dg_source &peer, msghdr &header) const
{
	dgm_address address;
	if (family_ == AF_INET && !is_v4(peer))
		return EAFNOSUPPORT;
	header.msg_namelen = to_sockaddr(peer, family_, address);
	header.msg_name = &address;
	return ::sendmsg(fd(), &header, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? errno : 0;
}

int Udp::send(const dg_source &peer, std::span<iovec> parts, size_t segment) const
{
	Control control{};
	msghdr header{};
	header.msg_iov = parts.data();
	header.msg_iovlen = parts.size();
	if (segment != 0)
		put_control(header, control, IPPROTO_UDP, UDP_SEGMENT, static_cast<uint16_t>(segment));
	return send_with(peer, header);
}

int Udp::answer(const dg_source &peer, const dg_source &from, std::span<uint8_t> datagram) const
{
	Control control{};
	iovec part{.iov_base = datagram.data(), .iov_len = datagram.size()};
	msghdr header{};
	header.msg_iov = &part;
	header.msg_iovlen = 1;
	if (family_ == AF_INET) {
		in_pktinfo info{};
		std::memcpy(&info.ipi_spec_dst, from.addr + 12, sizeof(info.ipi_spec_dst));
		put_control(header, control, IPPROTO_IP, IP_PKTINFO, info);
	} else {
		in6_pktinfo info{};
		std::memcpy(&info.ipi6_addr, from.addr, sizeof(info.ipi6_addr));
		put_control(header, control, IPPROTO_IPV6, IPV6_PKTINFO, info);
	}
	return send_with(peer, header);
}

int Udp::membership(const dg_source &group, unsigned interface, bool join) const
{
	if (!is_multicast(group))
		return EINVAL;
	if (is_v4(group)) {
		ip_mreqn request{};
		std::memcpy(&request.imr_multiaddr, group.addr + 12, sizeof(request.imr_multiaddr));
		request.imr_ifindex = static_cast<int>(interface);
		return ::setsockopt(fd(), IPPROTO_IP, join ? IP_ADD_MEMBERSHIP : IP_DROP_MEMBERSHIP, &request,
				    sizeof(request)) != 0 ? errno : 0;
	}
	ipv6_mreq request{};
	std::memcpy(&request.ipv6mr_multiaddr, group.addr, sizeof(request.ipv6mr_multiaddr));
	request.ipv6mr_interface = interface;
	return ::setsockopt(fd(), IPPROTO_IPV6, join ? IPV6_ADD_MEMBERSHIP : IPV6_DROP_MEMBERSHIP, &request,
			    sizeof(request)) != 0 ? errno : 0;
}

uint32_t Udp::route_mtu(const dg_source &peer) const
{
	const int family = is_v4(peer) ? AF_INET : AF_INET6;
	const Descriptor probe(::socket(family, SOCK_DGRAM | SOCK_CLOEXEC, IPPROTO_UDP));
	dgm_address address;
	const socklen_t length = to_sockaddr(peer, family, address);
	int mtu = -1;
	if (probe.get() >= 0 && ::connect(probe.get(), &address.any, length) == 0)
		mtu = family == AF_INET ? get(probe.get(), IPPROTO_IP, IP_MTU) : get(probe.get(), IPPROTO_IPV6, IPV6_MTU);
	return mtu > 0 ? static_cast<uint32_t>(mtu) : usual_mtu;
}

} // namespace libdgm
