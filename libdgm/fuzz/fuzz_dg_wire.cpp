// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
// dg_wire.c: arbitrary datagrams in. Input: one octet that chooses whether the CRC is made right, then the datagram.
//
// The oracle reads fields from their bit positions in the specification, knows the CRC bit by bit, and decides with 128
// bits where the code has to avoid overflow.
#include "check.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

extern "C" {
#include "dg_wire.h"
}

namespace {

using Bytes = std::vector<uint8_t>;

uint64_t field(std::span<const uint8_t> bytes, size_t offset, size_t size)
{
	uint64_t value = 0;
	for (const uint8_t octet : bytes.subspan(offset, size))
		value = value << 8 | octet;
	return value;
}

uint32_t slow_crc(std::span<const uint8_t> bytes)
{
	uint32_t crc = 0xffffffff;
	for (const uint8_t octet : bytes)
		for (unsigned bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ ((crc ^ octet >> bit) & 1 ? 0x82f63b78 : 0);
	return ~crc;
}

struct Expected {
	dg_form form;
	bool solicited = false, last = true;
	uint64_t qkey = 0, stag = 0, msn = 0, mo = 0, ml = 0, to = 0;
	size_t header = 0, data = 0;
};

bool possible_place(const Expected &e)
{
	using Wide = unsigned __int128;
	const Wide begin = Wide{e.to} - e.mo; // wraps around if TO is smaller
	const Wide end = Wide{e.mo} + e.data;
	if (e.to < e.mo || begin + e.ml > ~uint64_t{0})
		return false;
	if (end > e.ml || (end == e.ml) != e.last)
		return false;
	if (e.data == 0)
		return e.ml == 0;
	return e.last || e.mo % e.data == 0;
}

std::optional<Expected> expect(std::span<const uint8_t> d)
{
	if (d.size() < 22)
		return {};
	const unsigned control = d[0], opcode = d[1] & 15;
	if ((control & 3) != 1 || (control & 0x1c) != 0 || d[1] >> 6 != 1 || (d[1] & 0x30) != 0)
		return {};
	Expected e{.last = (control & 0x40) != 0};
	if (control & 0x80) {
		if (!(control & 0x20) || opcode != 0 || d.size() < 34)
			return {};
		e.form = DG_WRITE_RECORD;
		e.stag = field(d, 2, 4), e.to = field(d, 6, 8), e.msn = field(d, 14, 4), e.mo = field(d, 18, 4);
		e.ml = field(d, 22, 4), e.qkey = field(d, 26, 4);
		e.header = 30, e.data = d.size() - 34;
		return possible_place(e) ? std::optional(e) : std::nullopt;
	}
	if ((control & 0x20) || !e.last || field(d, 14, 4) != 0)
		return {};
	e.msn = field(d, 10, 4);
	if (opcode == 3 || opcode == 5) {
		e.form = DG_SEND;
		e.solicited = opcode == 5;
		e.qkey = field(d, 2, 4);
		e.header = 18, e.data = d.size() - 22;
		return field(d, 6, 4) == 0 ? std::optional(e) : std::nullopt;
	}
	if (opcode != 7 || field(d, 6, 4) != 2 || field(d, 2, 4) != 0 || d.size() < 46)
		return {};
	const size_t cause = d[24] & 0x80 ? 30 : 18;
	if (d.size() != 24 + cause + 4 || d[18] >> 4 > 2 || field(d, 20, 2) != 0xc000 || field(d, 22, 2) < cause)
		return {};
	e.form = DG_ERROR_MESSAGE;
	e.header = 24 + cause;
	return e;
}

void check_fields(const dg_segment &seg, const Expected &e)
{
	CHECK(seg.form == e.form && seg.solicited == e.solicited && seg.last == e.last);
	CHECK(seg.qkey == e.qkey && seg.stag == e.stag && seg.msn == e.msn && seg.mo == e.mo && seg.ml == e.ml);
	CHECK(seg.to == e.to && seg.hdr_len == e.header && seg.len == e.data);
}

void check_bounds(const dg_segment &seg, uint64_t size)
{
	using Wide = unsigned __int128;
	const bool within = Wide{seg.to} - seg.mo + seg.ml <= size;
	CHECK(dg_within(&seg, size) == within);
	CHECK(!within || Wide{seg.to} + seg.len <= size);
}

void check_rebuilt(const dg_segment &seg, std::span<const uint8_t> datagram)
{
	Bytes built(seg.hdr_len);
	int length;
	if (seg.form == DG_ERROR_MESSAGE) {
		dg_error error;
		dg_parse_error(datagram.data(), &error);
		length = dg_build_error(seg.msn, &error, built.data(), built.size());
		CHECK(dg_build_error(seg.msn, &error, built.data(), built.size() - 1) == -EMSGSIZE);
	} else {
		length = dg_build(&seg, built.data(), built.size());
		CHECK(dg_build(&seg, built.data(), built.size() - 1) == -EMSGSIZE);
	}
	CHECK(length == static_cast<int>(seg.hdr_len));
	CHECK(std::memcmp(built.data(), datagram.data(), built.size()) == 0);
}

// dg_parse() must accept each datagram of dg_build()
void check_any_struct(Input input)
{
	const uint64_t flags = input.number(1);
	dg_segment seg{}, again;
	seg.form = static_cast<uint8_t>(flags & 3);
	seg.solicited = flags & 4, seg.last = flags & 8;
	seg.qkey = static_cast<uint32_t>(input.number(4)), seg.stag = static_cast<uint32_t>(input.number(4));
	seg.msn = static_cast<uint32_t>(input.number(4)), seg.mo = static_cast<uint32_t>(input.number(4));
	seg.ml = static_cast<uint32_t>(input.number(4)), seg.to = input.number(8);
	seg.len = static_cast<uint32_t>(input.number(2));
	Bytes built(30 + seg.len + 4);
	const int length = dg_build(&seg, built.data(), built.size());
	if (length < 0)
		return;
	CHECK(dg_parse(built.data(), static_cast<size_t>(length) + seg.len + 4, &again) == DG_OK);
	CHECK(again.form == seg.form && again.qkey == seg.qkey && again.msn == seg.msn && again.len == seg.len);
	if (seg.form == DG_WRITE_RECORD)
		CHECK(again.stag == seg.stag && again.mo == seg.mo && again.ml == seg.ml && again.to == seg.to && again.last == seg.last);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	Input input(data, size);
	const bool mend = input.number(1) & 1;
	Bytes datagram(input.rest().begin(), input.rest().end());
	if (datagram.size() >= 4) {
		const uint32_t crc = slow_crc(std::span(datagram).first(datagram.size() - 4));
		const auto at = datagram.end() - 4;
		for (int i = 0; mend && i < 4; i++)
			at[i] = static_cast<uint8_t>(crc >> 8 * i);
		const bool right = (at[0] | at[1] << 8 | at[2] << 16 | static_cast<uint32_t>(at[3]) << 24) == crc;
		CHECK(dg_crc_good(datagram.data(), datagram.size()) == right);
	}
	// As a receiver has it that looks at the header alone
	const size_t shown = std::min<size_t>(datagram.size(), DG_PARSE_MAX);
	const auto exact = std::make_unique<uint8_t[]>(shown);
	std::copy_n(datagram.begin(), shown, exact.get());
	dg_segment seg;
	const dg_result result = dg_parse(exact.get(), datagram.size(), &seg);
	const auto expected = expect(datagram);
	CHECK((result == DG_OK) == expected.has_value());
	CHECK(result < DG_RESULTS && std::strcmp(dg_result_str(result), "unknown") != 0);
	if (expected) {
		check_fields(seg, *expected);
		check_rebuilt(seg, datagram);
		if (seg.form == DG_WRITE_RECORD)
			for (const uint64_t zone : {uint64_t{0}, seg.to, seg.to - seg.mo + seg.ml, seg.to - seg.mo + seg.ml - 1, ~uint64_t{0}})
				check_bounds(seg, zone);
	}
	check_any_struct(input);
	return 0;
}
