// SPDX-License-Identifier: GPL-2.0
// Netlink messages: attributes in and out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string_view>
#include <vector>

#include <linux/netlink.h>

namespace mpanl {

using Bytes = std::vector<uint8_t>;

// A message under construction
class Message {
public:
	Message(uint16_t type, uint16_t flags);

	void put(uint16_t attr, std::span<const uint8_t> data);
	void put_u8(uint16_t attr, uint8_t value);
	void put_u16(uint16_t attr, uint16_t value);
	void put_u32(uint16_t attr, uint32_t value);
	void put_byte(uint8_t byte); // not an attribute: whatever it may mean
	void nest(uint16_t attr, const Bytes &attributes);

	// With the length and this sequence number filled in
	const Bytes &finished(uint32_t seq);

private:
	Bytes bytes_;
};

// Appends one attribute
void append(Bytes &bytes, uint16_t attr, std::span<const uint8_t> data);

// The attributes of a message or nest by their type; of several of one type the last
using Attributes = std::map<uint16_t, std::span<const uint8_t>>;
Attributes parse(std::span<const uint8_t> bytes);

// All attributes in their order
std::vector<std::pair<uint16_t, std::span<const uint8_t>>> parse_list(std::span<const uint8_t> bytes);

uint64_t number(std::span<const uint8_t> data);
std::string_view text(std::span<const uint8_t> data);

} // namespace mpanl
