// SPDX-License-Identifier: GPL-2.0
// Generic netlink messages: attributes in and out.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <linux/genetlink.h>
#include <linux/netlink.h>

namespace nlfuzz {

using Bytes = std::vector<uint8_t>;

struct Attribute {
	uint16_t type; // without flags
	std::span<const uint8_t> data;
};

// Appends one attribute, padded
void append(Bytes &bytes, uint16_t attr, std::span<const uint8_t> data);
void append_u32(Bytes &bytes, uint16_t attr, uint32_t value);

// A whole message of a generic netlink family: its headers, then the attributes
Bytes make_message(uint16_t family, uint8_t command, uint16_t flags, uint32_t seq, std::span<const uint8_t> attributes);

// All whole attributes in their order
std::vector<Attribute> parse(std::span<const uint8_t> bytes);
// The first of that type; empty if there is none
std::span<const uint8_t> find(std::span<const uint8_t> bytes, uint16_t type);

// A number of up to 32 bits, in the machine's byte order
uint32_t number(std::span<const uint8_t> data);
std::string_view text(std::span<const uint8_t> data);

} // namespace nlfuzz
