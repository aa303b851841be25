// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
// Any datagram, right or wrong in one thing. Written from the specification, not from dg_wire.c, which it tests.
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dgmpeer {

using Bytes = std::vector<uint8_t>;

struct Field {
	std::string_view name;
	enum Form { both, untagged, tagged } form;
	size_t offset, size;
	uint8_t mask; // of a field within one octet; 0: whole octets
};

std::span<const Field> fields();
uint32_t crc32c(std::span<const uint8_t> bytes);

// A datagram without its CRC
class Datagram {
public:
	Datagram() = default;
	explicit Datagram(Bytes bytes) : bytes_(std::move(bytes)) {}
	static Datagram send(uint32_t qkey, uint32_t msn, std::span<const uint8_t> data);
	// One segment of a message of ml octets, which begins at `begin` in the zone
	static Datagram write(uint32_t zone, uint32_t qkey, uint64_t begin, uint32_t msn, uint32_t mo, uint32_t ml,
			      std::span<const uint8_t> data);
	// About a datagram: layer, type and code as in a Terminate message of RFC 5040
	static Datagram error(uint32_t msn, unsigned layer, unsigned type, unsigned code, const Datagram &cause);

	// Empty if the form has no such field
	[[nodiscard]] std::optional<uint64_t> get(std::string_view name) const;
	// Throws std::invalid_argument for an unknown field, or one that is not in the datagram
	Datagram &set(std::string_view name, uint64_t value);
	[[nodiscard]] bool is_tagged() const { return !bytes_.empty() && (bytes_[0] & 0x80) != 0; }
	Bytes &bytes() { return bytes_; }
	[[nodiscard]] const Bytes &bytes() const { return bytes_; }
	// With its CRC
	[[nodiscard]] Bytes sealed() const;

private:
	[[nodiscard]] const Field *find(std::string_view name) const;
	Bytes bytes_;
};

// Datagrams that an endpoint with this zone must reject, and the counter that each of them raises
struct Hostile {
	std::string name, counter;
	Bytes datagram;
};

struct Target {
	uint32_t qkey; // of Sends
	uint32_t zone, zone_qkey;
	uint64_t zone_length; // at least 64
};

std::vector<Hostile> hostile_datagrams(const Target &target);

// A good datagram, often at an end of the zone, of which 1 to 4 bits or octets are then random; its CRC is good
Bytes mutated_datagram(const Target &target, std::mt19937_64 &random);

} // namespace dgmpeer
