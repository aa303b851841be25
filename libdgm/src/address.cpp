// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#include "address.h"

#include <algorithm>
#include <cstring>
#include <tuple>

namespace libdgm {

namespace {

constexpr uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

int compare(const dg_source &a, const dg_source &b)
{
	if (const int order = std::memcmp(a.addr, b.addr, sizeof(a.addr)); order != 0)
		return order;
	const auto x = std::tuple(a.scope, a.port), y = std::tuple(b.scope, b.port);
	return x < y ? -1 : x > y;
}

bool before(const dg_source &a, const dg_source &b)
{
	return compare(a, b) < 0;
}

dg_source reduce(dg_source source, unsigned prefix, bool port, bool scope)
{
	for (unsigned octet = 0; octet < sizeof(source.addr); octet++) {
		const unsigned bits = prefix > 8 * octet ? std::min(prefix - 8 * octet, 8u) : 0;
		source.addr[octet] &= static_cast<uint8_t>(0xff00 >> bits);
	}
	source.port = port ? source.port : uint16_t{0};
	source.scope = scope ? source.scope : 0;
	return source;
}

} // namespace

std::optional<dg_source> to_source(const sockaddr *address, socklen_t length)
{
	dg_source source{};
	if (address == nullptr || length < sizeof(sa_family_t))
		return {};
	if (address->sa_family == AF_INET && length >= sizeof(sockaddr_in)) {
		sockaddr_in v4;
		std::memcpy(&v4, address, sizeof(v4));
		std::memcpy(source.addr, mapped, sizeof(mapped));
		std::memcpy(source.addr + sizeof(mapped), &v4.sin_addr, sizeof(v4.sin_addr));
		source.port = ntohs(v4.sin_port);
		return source;
	}
	if (address->sa_family == AF_INET6 && length >= sizeof(sockaddr_in6)) {
		sockaddr_in6 v6;
		std::memcpy(&v6, address, sizeof(v6));
		std::memcpy(source.addr, &v6.sin6_addr, sizeof(v6.sin6_addr));
		source.port = ntohs(v6.sin6_port);
		source.scope = IN6_IS_ADDR_LINKLOCAL(&v6.sin6_addr) || IN6_IS_ADDR_MC_LINKLOCAL(&v6.sin6_addr)
				       ? v6.sin6_scope_id
				       : 0;
		return source;
	}
	return {};
}

bool is_v4(const dg_source &source)
{
	return std::memcmp(source.addr, mapped, sizeof(mapped)) == 0;
}

bool is_multicast(const dg_source &source)
{
	return is_v4(source) ? (source.addr[12] & 0xf0) == 0xe0 : source.addr[0] == 0xff;
}

socklen_t to_sockaddr(const dg_source &source, int family, dgm_address &address)
{
	address = {};
	if (family == AF_INET) {
		address.v4.sin_family = AF_INET;
		address.v4.sin_port = htons(source.port);
		std::memcpy(&address.v4.sin_addr, source.addr + sizeof(mapped), sizeof(address.v4.sin_addr));
		return sizeof(address.v4);
	}
	address.v6.sin6_family = AF_INET6;
	address.v6.sin6_port = htons(source.port);
	std::memcpy(&address.v6.sin6_addr, source.addr, sizeof(source.addr));
	address.v6.sin6_scope_id = source.scope;
	return sizeof(address.v6);
}

dgm_address to_address(const dg_source &source)
{
	dgm_address address;
	to_sockaddr(source, is_v4(source) ? AF_INET : AF_INET6, address);
	return address;
}

bool SourceSet::add(const dg_source &source, unsigned prefix)
{
	const bool v4 = is_v4(source), port = source.port != 0, scope = source.scope != 0;
	auto group = std::ranges::find_if(groups_, [&](const Group &g) {
		return g.prefix == prefix && g.v4 == v4 && g.port == port && g.scope == scope;
	});
	if (group == groups_.end())
		group = groups_.insert(groups_.end(), Group{prefix, v4, port, scope, {}});
	const dg_source reduced = reduce(source, prefix, port, scope);
	const auto place = std::ranges::lower_bound(group->sources, reduced, before);
	if (place != group->sources.end() && compare(*place, reduced) == 0)
		return true;
	if (size_ == limit)
		return false;
	group->sources.insert(place, reduced);
	size_++;
	return true;
}

bool SourceSet::names(const dg_source &source) const
{
	// ::/1 has no IPv4 address, although the mapped ones begin with its bits
	return std::ranges::any_of(groups_, [&, v4 = is_v4(source)](const Group &g) {
		return g.v4 == v4 && std::ranges::binary_search(g.sources, reduce(source, g.prefix, g.port, g.scope), before);
	});
}

} // namespace libdgm
