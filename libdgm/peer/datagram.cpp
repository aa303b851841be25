// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#include "datagram.h"

#include <algorithm>
#include <stdexcept>

namespace dgmpeer {

namespace {

constexpr Field table[] = {
	{"t", Field::both, 0, 1, 0x80},
	{"last", Field::both, 0, 1, 0x40},
	{"m", Field::both, 0, 1, 0x20},
	{"ddp-reserved", Field::both, 0, 1, 0x1c},
	{"ddp-version", Field::both, 0, 1, 0x03},
	{"rdmap-version", Field::both, 1, 1, 0xc0},
	{"rdmap-reserved", Field::both, 1, 1, 0x30},
	{"opcode", Field::both, 1, 1, 0x0f},
	{"qkey", Field::untagged, 2, 4, 0},
	{"qn", Field::untagged, 6, 4, 0},
	{"msn", Field::untagged, 10, 4, 0},
	{"mo", Field::untagged, 14, 4, 0},
	{"stag", Field::tagged, 2, 4, 0},
	{"to", Field::tagged, 6, 8, 0},
	{"msn", Field::tagged, 14, 4, 0},
	{"mo", Field::tagged, 18, 4, 0},
	{"ml", Field::tagged, 22, 4, 0},
	{"qkey", Field::tagged, 26, 4, 0},
};

constexpr size_t send_header = 18, write_header = 30;

} // namespace

std::span<const Field> fields()
{
	return table;
}

uint32_t crc32c(std::span<const uint8_t> bytes)
{
	uint32_t crc = 0xffffffff;
	for (const uint8_t octet : bytes)
		for (unsigned bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ ((crc ^ octet >> bit) & 1 ? 0x82f63b78 : 0);
	return ~crc;
}

const Field *Datagram::find(std::string_view name) const
{
	const auto form = is_tagged() ? Field::tagged : Field::untagged;
	const auto found = std::ranges::find_if(table, [&](const Field &f) {
		return f.name == name && (f.form == Field::both || f.form == form);
	});
	return found != std::end(table) && found->offset + found->size <= bytes_.size() ? &*found : nullptr;
}

std::optional<uint64_t> Datagram::get(std::string_view name) const
{
	const Field *const field = find(name);
	if (field == nullptr)
		return {};
	if (field->mask != 0)
		return (bytes_[field->offset] & field->mask) / (field->mask & -field->mask);
	uint64_t value = 0;
	for (size_t i = 0; i < field->size; i++)
		value = value << 8 | bytes_[field->offset + i];
	return value;
}

Datagram &Datagram::set(std::string_view name, uint64_t value)
{
	const Field *const field = find(name);
	if (field == nullptr)
		throw std::invalid_argument("no field " + std::string(name) + " in this datagram");
	if (field->mask != 0) {
		uint8_t &octet = bytes_[field->offset];
		const auto shifted = static_cast<uint8_t>(value * (field->mask & -field->mask));
		octet = static_cast<uint8_t>((octet & ~field->mask) | (shifted & field->mask));
		return *this;
	}
	for (size_t i = field->size; i-- > 0; value >>= 8)
		bytes_[field->offset + i] = static_cast<uint8_t>(value);
	return *this;
}

Datagram Datagram::send(uint32_t qkey, uint32_t msn, std::span<const uint8_t> data)
{
	Bytes header(send_header);
	header[0] = 0x41;
	header[1] = 0x43;
	Datagram datagram(std::move(header));
	datagram.set("qkey", qkey).set("msn", msn);
	datagram.bytes_.insert(datagram.bytes_.end(), data.begin(), data.end());
	return datagram;
}

Datagram Datagram::write(uint32_t zone, uint32_t qkey, uint64_t begin, uint32_t msn, uint32_t mo, uint32_t ml,
			 std::span<const uint8_t> data)
{
	Bytes header(write_header);
	header[0] = 0xa1;
	header[1] = 0x40;
	Datagram datagram(std::move(header));
	datagram.set("stag", zone).set("to", begin + mo).set("msn", msn).set("mo", mo).set("ml", ml).set("qkey", qkey);
	datagram.set("last", mo + data.size() == ml);
	datagram.bytes_.insert(datagram.bytes_.end(), data.begin(), data.end());
	return datagram;
}

Datagram Datagram::error(uint32_t msn, unsigned layer, unsigned type, unsigned code, const Datagram &cause)
{
	const size_t header = cause.is_tagged() ? write_header : send_header;
	Datagram datagram = send(0, msn, {});
	datagram.set("opcode", 7).set("qn", 2);
	const size_t length = cause.bytes_.size();
	for (const size_t octet : {size_t{layer} << 4 | type, size_t{code}, size_t{0xc0}, size_t{0}, length >> 8, length})
		datagram.bytes_.push_back(static_cast<uint8_t>(octet));
	datagram.bytes_.insert(datagram.bytes_.end(), cause.bytes_.begin(), cause.bytes_.begin() + static_cast<long>(header));
	return datagram;
}

Bytes Datagram::sealed() const
{
	Bytes sealed = bytes_;
	const uint32_t crc = crc32c(bytes_);
	for (unsigned i = 0; i < 4; i++)
		sealed.push_back(static_cast<uint8_t>(crc >> 8 * i));
	return sealed;
}

std::vector<Hostile> hostile_datagrams(const Target &t)
{
	const Bytes data{'h', 'o', 's', 't', 'i', 'l', 'e', '!'};
	const auto size = static_cast<uint32_t>(data.size());
	const Datagram send = Datagram::send(t.qkey, 1, data);
	const Datagram whole = Datagram::write(t.zone, t.zone_qkey, 8, 0x70000001, 0, size, data);
	const Datagram first = Datagram::write(t.zone, t.zone_qkey, 8, 0x70000002, 0, 3 * size, data);
	const Datagram last = Datagram::write(t.zone, t.zone_qkey, 8, 0x70000002, 2 * size, 3 * size, data);
	std::vector<Hostile> list;
	const auto wrong = [&](std::string name, std::string counter, Datagram d, std::string_view field, uint64_t value) {
		list.push_back({std::move(name), std::move(counter), d.set(field, value).sealed()});
	};
	const auto raw = [&](std::string name, std::string counter, Bytes bytes) {
		list.push_back({std::move(name), std::move(counter), std::move(bytes)});
	};

	for (const auto &[what, d] : {std::pair{"Send", send}, {"Write-Record", whole}}) {
		const std::string name = what;
		for (const unsigned version : {0, 2, 3})
			wrong(name + ": DDP version " + std::to_string(version), "bad_ddp_control", d, "ddp-version", version);
		for (const unsigned bits : {1, 2, 4})
			wrong(name + ": DDP reserved bits " + std::to_string(bits), "bad_ddp_control", d, "ddp-reserved", bits);
		for (const unsigned version : {0, 2, 3})
			wrong(name + ": RDMAP version " + std::to_string(version), "bad_rdmap_control", d, "rdmap-version", version);
		for (const unsigned bits : {1, 2})
			wrong(name + ": RDMAP reserved bits " + std::to_string(bits), "bad_rdmap_control", d, "rdmap-reserved", bits);
		wrong(name + ": not Last", "bad_last", d, "last", 0);
		for (unsigned opcode = 0; opcode < 16; opcode++) {
			const bool known = d.is_tagged() ? opcode == 0 : opcode == 3 || opcode == 5 || opcode == 7;
			if (!known)
				wrong(name + ": opcode " + std::to_string(opcode), "bad_opcode", d, "opcode", opcode);
		}
		wrong(name + ": Q_Key", "bad_qkey", d, "qkey", *d.get("qkey") ^ 1);
		Bytes bytes = d.sealed();
		for (size_t length = 0; length < (d.is_tagged() ? write_header : send_header) + 4; length++)
			raw(name + " cut to " + std::to_string(length), "bad_length", Bytes(bytes.begin(), bytes.begin() + static_cast<long>(length)));
		bytes.back() ^= 1;
		raw(name + ": CRC", "bad_crc", bytes);
		bytes = d.sealed();
		bytes[bytes.size() - 5] ^= 0x80;
		raw(name + ": data changed", "bad_crc", bytes);
		bytes = d.bytes();
		const Bytes sealed = d.sealed();
		for (size_t i = 0; i < 4; i++)
			bytes.push_back(sealed[sealed.size() - 1 - i]);
		raw(name + ": CRC in the other byte order", "bad_crc", bytes);
	}
	wrong("Send: M", "bad_ddp_control", send, "m", 1);
	for (const unsigned qn : {1u, 2u, 3u, 0xffffffffu})
		wrong("Send: QN " + std::to_string(qn), "bad_qn", send, "qn", qn);
	wrong("Send: MO 1", "bad_mo", send, "mo", 1);

	wrong("RDMA Write of iWARP", "no_msn", whole, "m", 0);
	wrong("unknown zone", "no_zone", whole, "stag", t.zone ^ 1);
	wrong("Last before the end", "bad_last", first, "last", 1);
	wrong("end without Last", "bad_last", last, "last", 0);
	wrong("MO no multiple of the length", "bad_mo", first, "mo", 3);
	wrong("MO beyond the message", "bad_mo", last, "mo", 0xfffffff0);
	wrong("ML shorter than the data", "bad_mo", whole, "ml", size - 1);
	wrong("ML longer than the data", "bad_last", whole, "ml", size + 1);
	wrong("ML 2^32 - 1", "out_of_bounds", first, "ml", 0xffffffff);
	wrong("TO 2^64 - 1", "bad_to", whole, "to", ~uint64_t{0});
	wrong("TO before the message", "bad_to", last, "to", 2 * size - 1);
	wrong("one octet beyond the zone", "out_of_bounds", whole, "to", t.zone_length - size + 1);
	wrong("behind the zone", "out_of_bounds", whole, "to", t.zone_length);
	wrong("far behind the zone", "out_of_bounds", whole, "to", uint64_t{1} << 40);
	wrong("last segment within, message beyond the zone", "out_of_bounds",
	      Datagram::write(t.zone, t.zone_qkey, t.zone_length - 2 * size, 0x70000003, 0, 3 * size, data), "m", 1);
	raw("empty segment of a message", "bad_mo",
	    Datagram::write(t.zone, t.zone_qkey, 8, 0x70000004, size, size, {}).sealed());
	raw("message of 1025 segments", "too_many_segments",
	    Datagram::write(t.zone, t.zone_qkey, 0, 0x70000005, 0, 1025, std::span(data).first(1)).sealed());
	Bytes trailing = whole.sealed();
	trailing.push_back(0);
	raw("an octet behind the CRC", "bad_mo", trailing);
	Datagram error = Datagram::error(1, 1, 1, 0, whole);
	wrong("error message: QN 0", "bad_qn", error, "qn", 0);
	wrong("error message: not Last", "bad_last", error, "last", 0);
	wrong("error message: Q_Key", "bad_error_message", error, "qkey", 1);
	error.bytes()[20] = 0x80;
	raw("error message: D clear", "bad_error_message", error.sealed());
	return list;
}

namespace {

Datagram good_datagram(const Target &t, std::mt19937_64 &random)
{
	static constexpr std::string_view text = "mutated message!";
	const std::span data(reinterpret_cast<const uint8_t *>(text.data()), text.size());
	const auto msn = static_cast<uint32_t>(random() % 8 + 1);
	const uint64_t begin = random() % 2 ? random() % 16 : t.zone_length - 3 * data.size() - random() % 16;
	if (random() % 4 == 0)
		return Datagram::send(t.qkey, msn, data);
	const Datagram whole = Datagram::write(t.zone, t.zone_qkey, begin, msn, 0, static_cast<uint32_t>(data.size()), data);
	if (random() % 8 == 0)
		return Datagram::error(msn, 1, 1, 0, whole);
	// One of three
	if (random() % 2)
		return Datagram::write(t.zone, t.zone_qkey, begin, msn, static_cast<uint32_t>(random() % 3 * data.size()),
				       static_cast<uint32_t>(3 * data.size()), data);
	return whole;
}

} // namespace

Bytes mutated_datagram(const Target &target, std::mt19937_64 &random)
{
	Datagram datagram = good_datagram(target, random);
	Bytes &bytes = datagram.bytes();
	for (uint64_t left = random() % 4 + 1; left > 0; left--) {
		uint8_t &octet = bytes[random() % bytes.size()];
		octet = static_cast<uint8_t>(random() % 2 ? octet ^ 1U << random() % 8 : random());
	}
	return datagram.sealed();
}

} // namespace dgmpeer
