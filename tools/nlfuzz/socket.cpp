// SPDX-License-Identifier: GPL-2.0
#include "socket.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace nlfuzz {

namespace {

constexpr std::chrono::seconds answer_time{30};

[[noreturn]] void fail(const char *what)
{
	throw std::system_error(errno, std::generic_category(), what);
}

// The kernel's text for an error, else that of the errno
std::string reason(const nlmsghdr &header, std::span<const uint8_t> body, int error)
{
	size_t skip = sizeof(int); // the end of a list has only the error number
	nlmsgerr err;

	if (header.nlmsg_type == NLMSG_ERROR) {
		std::memcpy(&err, body.data(), sizeof(err));
		skip = header.nlmsg_flags & NLM_F_CAPPED ? sizeof(nlmsgerr) :
							   sizeof(int) + NLMSG_ALIGN(err.msg.nlmsg_len);
	}
	if (header.nlmsg_flags & NLM_F_ACK_TLVS && skip <= body.size()) {
		const auto message = find(body.subspan(skip), NLMSGERR_ATTR_MSG);

		if (!message.empty())
			return std::string(text(message));
	}
	return std::strerror(error);
}

void for_each(std::span<const uint8_t> datagram,
	      const std::function<void(const nlmsghdr &, std::span<const uint8_t> body)> &handler)
{
	nlmsghdr header;

	while (datagram.size() >= sizeof(header)) {
		std::memcpy(&header, datagram.data(), sizeof(header));
		if (header.nlmsg_len < sizeof(header) || header.nlmsg_len > datagram.size())
			break;
		handler(header, datagram.subspan(sizeof(header), header.nlmsg_len - sizeof(header)));
		datagram = datagram.subspan(std::min<size_t>(NLMSG_ALIGN(header.nlmsg_len), datagram.size()));
	}
}

} // namespace

Refused::Refused(int error, const std::string &why) : std::runtime_error(why), error(error)
{
}

Socket::Socket() : fd_(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC))
{
	const int on = 1;
	sockaddr_nl any{};

	if (fd_ < 0)
		fail("socket");
	// Notifications go only to sockets that are bound
	any.nl_family = AF_NETLINK;
	if (bind(fd_, reinterpret_cast<sockaddr *>(&any), sizeof(any)))
		fail("bind");
	if (setsockopt(fd_, SOL_NETLINK, NETLINK_EXT_ACK, &on, sizeof(on)))
		fail("NETLINK_EXT_ACK");
}

Socket::~Socket()
{
	::close(fd_);
}

void Socket::join(unsigned group)
{
	if (setsockopt(fd_, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &group, sizeof(group)))
		fail("NETLINK_ADD_MEMBERSHIP");
}

void Socket::send_raw(std::span<const uint8_t> bytes)
{
	sockaddr_nl kernel{};

	kernel.nl_family = AF_NETLINK;
	if (sendto(fd_, bytes.data(), bytes.size(), 0, reinterpret_cast<sockaddr *>(&kernel), sizeof(kernel)) < 0)
		fail("sendto");
}

Bytes Socket::receive(std::chrono::milliseconds timeout)
{
	Bytes datagram(1 << 16);
	pollfd poll_fd{fd_, POLLIN, 0};

	if (poll(&poll_fd, 1, static_cast<int>(timeout.count())) <= 0)
		return {};
	const ssize_t len = recv(fd_, datagram.data(), datagram.size(), 0);

	if (len < 0)
		fail("recv");
	datagram.resize(static_cast<size_t>(len));
	return datagram;
}

size_t Socket::drain(size_t buffer)
{
	std::array<uint8_t, 1 << 16> bytes;
	size_t total = 0;
	ssize_t len;

	while ((len = recv(fd_, bytes.data(), std::min(buffer, bytes.size()), MSG_DONTWAIT)) > 0)
		total += static_cast<size_t>(len);
	return total;
}

uint32_t Socket::send_request(uint16_t family, uint8_t command, uint16_t flags, std::span<const uint8_t> attributes)
{
	send_raw(make_message(family, command, flags, seq_, attributes));
	return seq_++;
}

unsigned Socket::take_answers(uint32_t seq, const Handler &handler, bool &whole)
{
	unsigned datagrams = 0;
	bool done = false;

	whole = true;
	while (!done) {
		const Bytes datagram = receive(answer_time);

		if (datagram.empty())
			throw std::runtime_error("no netlink reply from the kernel");
		datagrams++;
		for_each(datagram, [&](const nlmsghdr &header, std::span<const uint8_t> body) {
			if (header.nlmsg_seq != seq || body.size() < sizeof(int))
				return;
			if (header.nlmsg_flags & NLM_F_DUMP_INTR)
				whole = false;
			if (header.nlmsg_type == NLMSG_ERROR || header.nlmsg_type == NLMSG_DONE) {
				const int error = -static_cast<int>(number(body));

				if (error)
					throw Refused(error, reason(header, body, error));
				done = true;
				return;
			}
			handler(header, body.subspan(GENL_HDRLEN));
		});
	}
	return datagrams;
}

bool Socket::request(uint16_t family, uint8_t command, uint16_t flags, std::span<const uint8_t> attributes,
		     const Handler &handler)
{
	bool whole;

	take_answers(send_request(family, command, flags, attributes), handler, whole);
	return whole;
}

Family find_family(Socket &socket, std::string_view name)
{
	Family family;
	Bytes attributes;
	Bytes zero_terminated(name.begin(), name.end());

	zero_terminated.push_back(0);
	append(attributes, CTRL_ATTR_FAMILY_NAME, zero_terminated);
	socket.request(GENL_ID_CTRL, CTRL_CMD_GETFAMILY, NLM_F_REQUEST | NLM_F_ACK, attributes,
		       [&](const nlmsghdr &, std::span<const uint8_t> body) {
			       family.id = static_cast<uint16_t>(number(find(body, CTRL_ATTR_FAMILY_ID)));
			       for (const Attribute &group : parse(find(body, CTRL_ATTR_MCAST_GROUPS)))
				       family.groups[std::string(text(find(group.data, CTRL_ATTR_MCAST_GRP_NAME)))] =
					       number(find(group.data, CTRL_ATTR_MCAST_GRP_ID));
		       });
	return family;
}

} // namespace nlfuzz
