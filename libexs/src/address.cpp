// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#include "address.h"

#include "descriptor.h"

#include <cstring>

#include <arpa/inet.h>
#include <netinet/in.h>

namespace libexs {
namespace {

const sockaddr_in &v4(const sockaddr_storage &address)
{
	return reinterpret_cast<const sockaddr_in &>(address);
}

const sockaddr_in6 &v6(const sockaddr_storage &address)
{
	return reinterpret_cast<const sockaddr_in6 &>(address);
}

} // namespace

socklen_t address_length(const sockaddr_storage &address)
{
	return address.ss_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
}

std::optional<sockaddr_storage> copy_address(const sockaddr *address, socklen_t length, int family)
{
	if (address == nullptr || length < sizeof(sa_family_t) || address->sa_family != family)
		return std::nullopt;
	sockaddr_storage copy{};
	copy.ss_family = address->sa_family;
	if (length < address_length(copy))
		return std::nullopt;
	std::memcpy(&copy, address, address_length(copy));
	return copy;
}

sockaddr_storage in_family(const sockaddr_storage &address, int family)
{
	if (family != AF_INET6 || address.ss_family != AF_INET)
		return address;
	sockaddr_in6 mapped{};
	mapped.sin6_family = AF_INET6;
	mapped.sin6_port = v4(address).sin_port;
	mapped.sin6_addr.s6_addr[10] = mapped.sin6_addr.s6_addr[11] = 0xff;
	std::memcpy(&mapped.sin6_addr.s6_addr[12], &v4(address).sin_addr, sizeof(in_addr));
	sockaddr_storage made{};
	std::memcpy(&made, &mapped, sizeof(mapped));
	return made;
}

bool is_loopback(const sockaddr_storage &address)
{
	if (address.ss_family == AF_INET)
		return ntohl(v4(address).sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
	return IN6_IS_ADDR_LOOPBACK(&v6(address).sin6_addr);
}

bool is_of_this_host(const sockaddr_storage &address)
{
	const Descriptor trial(::socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_TCP));
	sockaddr_storage any_port = address;
	set_port(any_port, 0);
	return ::bind(trial.get(), reinterpret_cast<const sockaddr *>(&any_port), address_length(any_port)) == 0;
}

bool is_wildcard(const sockaddr_storage &address)
{
	if (address.ss_family == AF_INET)
		return v4(address).sin_addr.s_addr == htonl(INADDR_ANY);
	return IN6_IS_ADDR_UNSPECIFIED(&v6(address).sin6_addr);
}

uint16_t port_of(const sockaddr_storage &address)
{
	return ntohs(address.ss_family == AF_INET ? v4(address).sin_port : v6(address).sin6_port);
}

void set_port(sockaddr_storage &address, uint16_t port)
{
	if (address.ss_family == AF_INET)
		reinterpret_cast<sockaddr_in &>(address).sin_port = htons(port);
	else
		reinterpret_cast<sockaddr_in6 &>(address).sin6_port = htons(port);
}

} // namespace libexs
