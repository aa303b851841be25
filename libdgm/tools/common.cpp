// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#include "common.h"

#include <arpa/inet.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <stdexcept>
#include <vector>

#include <fmt/format.h>

namespace tools {

namespace {

uint64_t number(const std::string &text, int base, uint64_t max)
{
	uint64_t value = 0;
	const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
	if (error != std::errc() || end != text.data() + text.size() || value > max)
		throw std::runtime_error(base == 16 ? fmt::format("invalid value '{}': expected a hexadecimal number up to {:x}", text, max) :
						      fmt::format("invalid value '{}': expected a decimal number up to {}", text, max));
	return value;
}

} // namespace

void fail(const std::string &what)
{
	throw std::runtime_error(what + ": " + std::strerror(errno));
}

dgm_address parse_address(const std::string &host, uint16_t port)
{
	dgm_address address{};
	if (inet_pton(AF_INET, host.c_str(), &address.v4.sin_addr) == 1) {
		address.v4.sin_family = AF_INET;
		address.v4.sin_port = htons(port);
	} else if (inet_pton(AF_INET6, host.c_str(), &address.v6.sin6_addr) == 1) {
		address.v6.sin6_family = AF_INET6;
		address.v6.sin6_port = htons(port);
	} else {
		throw std::runtime_error("not an IPv4 or IPv6 address: '" + host + "'");
	}
	return address;
}

socklen_t length_of(const dgm_address &address)
{
	return address.any.sa_family == AF_INET ? sizeof(address.v4) : sizeof(address.v6);
}

socklen_t Target::length() const
{
	return length_of(address);
}

std::string Target::text() const
{
	char host[INET6_ADDRSTRLEN];
	const bool v4 = address.any.sa_family == AF_INET;
	inet_ntop(address.any.sa_family, v4 ? static_cast<const void *>(&address.v4.sin_addr) : &address.v6.sin6_addr, host, sizeof(host));
	return fmt::format("{}:{}/{:08x}/{:08x}/{}/{:08x}", host, ntohs(v4 ? address.v4.sin_port : address.v6.sin6_port), zone, qkey,
			   size, send_key);
}

Target Target::parse(const std::string &text)
{
	std::vector<std::string> parts;
	size_t at = 0;
	for (size_t slash; (slash = text.find('/', at)) != std::string::npos; at = slash + 1)
		parts.push_back(text.substr(at, slash - at));
	parts.push_back(text.substr(at));
	const size_t colon = parts[0].rfind(':');
	if (parts.size() != 5 || colon == std::string::npos)
		throw std::runtime_error("not a target ADDRESS:PORT/ZONE/QKEY/SIZE/SENDKEY: '" + text + "'");
	Target target;
	target.address = parse_address(parts[0].substr(0, colon), static_cast<uint16_t>(number(parts[0].substr(colon + 1), 10, 65535)));
	target.zone = static_cast<uint32_t>(number(parts[1], 16, UINT32_MAX));
	target.qkey = static_cast<uint32_t>(number(parts[2], 16, UINT32_MAX));
	target.size = number(parts[3], 10, UINT64_MAX);
	target.send_key = static_cast<uint32_t>(number(parts[4], 16, UINT32_MAX));
	return target;
}

std::map<std::string, uint64_t> counters(dgm_endpoint *endpoint)
{
	std::map<std::string, uint64_t> all;
	for (unsigned i = 0; dgm_counter_name(i) != nullptr; i++)
		if (const uint64_t value = dgm_counter(endpoint, i); value != 0)
			all[dgm_counter_name(i)] = value;
	return all;
}

} // namespace tools
