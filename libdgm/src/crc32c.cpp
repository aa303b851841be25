// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
// CRC32c (RFC 3385) for dg_wire.c: by the processor's instruction, or by eight tables
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

extern "C" uint32_t dgm_crc32c(uint32_t crc, const void *data, size_t length);

namespace {

constexpr uint32_t polynomial = 0x82f63b78; // reflected

using Tables = std::array<std::array<uint32_t, 256>, 8>;

constexpr Tables make_tables()
{
	Tables tables{};
	for (uint32_t octet = 0; octet < 256; octet++) {
		uint32_t crc = octet;
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? polynomial : 0);
		tables[0][octet] = crc;
	}
	for (size_t table = 1; table < 8; table++)
		for (size_t octet = 0; octet < 256; octet++)
			tables[table][octet] = tables[table - 1][octet] >> 8 ^ tables[0][tables[table - 1][octet] & 0xff];
	return tables;
}

constexpr Tables tables = make_tables();

uint32_t by_tables(uint32_t crc, const uint8_t *p, size_t length)
{
	for (; length >= 8; length -= 8, p += 8) {
		uint32_t low = crc ^ (p[0] | uint32_t{p[1]} << 8 | uint32_t{p[2]} << 16 | uint32_t{p[3]} << 24);
		crc = tables[7][low & 0xff] ^ tables[6][low >> 8 & 0xff] ^ tables[5][low >> 16 & 0xff] ^ tables[4][low >> 24] ^
		      tables[3][p[4]] ^ tables[2][p[5]] ^ tables[1][p[6]] ^ tables[0][p[7]];
	}
	for (; length > 0; length--, p++)
		crc = crc >> 8 ^ tables[0][(crc ^ *p) & 0xff];
	return crc;
}

#ifdef __x86_64__
__attribute__((target("sse4.2"))) uint32_t by_instruction(uint32_t crc, const uint8_t *p, size_t length)
{
	uint64_t wide = crc;
	for (; length >= 8; length -= 8, p += 8) {
		uint64_t word;
		std::memcpy(&word, p, sizeof(word));
		wide = __builtin_ia32_crc32di(wide, word);
	}
	crc = static_cast<uint32_t>(wide);
	for (; length > 0; length--, p++)
		crc = __builtin_ia32_crc32qi(crc, *p);
	return crc;
}
#endif

using Function = uint32_t (*)(uint32_t, const uint8_t *, size_t);

Function choose()
{
#ifdef __x86_64__
	__builtin_cpu_init();
	if (__builtin_cpu_supports("sse4.2"))
		return by_instruction;
#endif
	return by_tables;
}

} // namespace

uint32_t dgm_crc32c(uint32_t crc, const void *data, size_t length)
{
	static const Function function = choose();
	return function(crc, static_cast<const uint8_t *>(data), length);
}
