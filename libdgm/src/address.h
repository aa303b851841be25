// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#pragma once

#include "dg.h"

#include <dgm.h>

#include <optional>
#include <span>
#include <vector>

namespace libdgm {

// An address as the tracker has it: IPv6, IPv4 mapped. Empty for other families and lengths.
std::optional<dg_source> to_source(const sockaddr *address, socklen_t length);
dgm_address to_address(const dg_source &source);
// For a socket of this family; returns its length
socklen_t to_sockaddr(const dg_source &source, int family, dgm_address &address);
bool is_v4(const dg_source &source);
bool is_multicast(const dg_source &source);

// The sources that may write to a zone
class SourceSet {
public:
	static constexpr size_t limit = 65536;

	// prefix counts the bits of a mapped address; false: full
	bool add(const dg_source &source, unsigned prefix);
	void add_any() { any_ = true; }
	[[nodiscard]] bool has(const dg_source &source) const { return any_ || names(source); }
	// Not by add_any()
	[[nodiscard]] bool names(const dg_source &source) const;

private:
	// Sources of one family with the same number of bits that count, with or without a port: sorted
	struct Group {
		unsigned prefix;
		bool v4, port, scope;
		std::vector<dg_source> sources;
	};
	std::vector<Group> groups_;
	size_t size_ = 0;
	bool any_ = false;
};

} // namespace libdgm
