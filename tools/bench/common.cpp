// SPDX-License-Identifier: GPL-2.0
#include "common.h"

#include <cerrno>
#include <cstring>

#include <arpa/inet.h>
#include <fcntl.h>
#include <sched.h>

#include <fmt/format.h>

namespace bench {

SystemError::SystemError(std::string_view what)
	: std::runtime_error(fmt::format("{}: {}", what, std::strerror(errno)))
{
}

Place parse_place(const std::string &text)
{
	const size_t equals = text.find('=');
	if (equals == std::string::npos)
		return {.netns = "", .address = text};
	return {.netns = text.substr(0, equals), .address = text.substr(equals + 1)};
}

void enter_netns(const std::string &name)
{
	if (name.empty())
		return;
	const Descriptor netns(::open(("/run/netns/" + name).c_str(), O_RDONLY | O_CLOEXEC));
	if (netns.get() < 0 || ::setns(netns.get(), CLONE_NEWNET) != 0)
		throw SystemError("network namespace " + name);
}

sockaddr_in socket_address(const std::string &address, uint16_t port)
{
	sockaddr_in result{};
	result.sin_family = AF_INET;
	result.sin_port = htons(port);
	if (::inet_pton(AF_INET, address.c_str(), &result.sin_addr) != 1)
		throw std::runtime_error("not an IPv4 address: " + address);
	return result;
}

} // namespace bench
