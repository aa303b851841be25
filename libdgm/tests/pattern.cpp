// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
// For tests of large transfers: `pattern write OCTETS` writes octets of which none repeats early and no word is 0, `pattern
// check FILE MAP` compares a zone's file with them: what the map has must be right, and all else must be 0.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

namespace {

constexpr size_t block = 1 << 16;

uint8_t octet_at(uint64_t offset)
{
	const uint64_t word = (offset / 8 + 1) * 0x9e3779b97f4a7c15;
	return static_cast<uint8_t>(word >> 8 * (offset % 8));
}

int write(uint64_t size)
{
	std::vector<char> out(block);
	for (uint64_t begin = 0; begin < size; begin += block) {
		for (uint64_t i = 0; i < block; i += 8) {
			const uint64_t word = ((begin + i) / 8 + 1) * 0x9e3779b97f4a7c15;
			std::memcpy(&out[i], &word, sizeof(word));
		}
		std::cout.write(out.data(), static_cast<std::streamsize>(std::min<uint64_t>(block, size - begin)));
	}
	return std::cout.flush() ? 0 : 1;
}

// Compares up to `end`; valid: with the pattern, else with 0. Returns how many octets differ
uint64_t compare(std::istream &file, uint64_t begin, uint64_t end, bool valid)
{
	std::vector<char> in(block);
	uint64_t wrong = 0;
	while (begin < end) {
		const auto size = static_cast<std::streamsize>(std::min<uint64_t>(block, end - begin));
		if (!file.read(in.data(), size))
			return wrong + (end - begin);
		for (std::streamsize i = 0; i < size; i++, begin++)
			wrong += static_cast<uint8_t>(in[static_cast<size_t>(i)]) != (valid ? octet_at(begin) : 0);
	}
	return wrong;
}

int check(const std::string &name, const std::string &map_name, uint64_t unrecorded)
{
	std::ifstream file(name, std::ios::binary), map(map_name);
	file.seekg(0, std::ios::end);
	const auto size = static_cast<uint64_t>(file.tellg());
	file.seekg(0);
	uint64_t at = 0, valid = 0, wrong = 0, written = 0, offset, length;
	while (map >> offset >> length) {
		written += compare(file, at, offset, false);
		wrong += compare(file, offset, offset + length, true);
		valid += length;
		at = offset + length;
	}
	written += compare(file, at, size, false);
	std::cout << valid << " octets valid, " << size - valid << " missing, " << wrong << " recorded and wrong, " << written
		  << " written and not recorded\n";
	return wrong == 0 && written <= unrecorded ? 0 : 1;
}

} // namespace

int main(int argc, char **argv)
{
	if (argc == 3 && std::string(argv[1]) == "write")
		return write(std::stoull(argv[2]));
	if ((argc == 4 || argc == 5) && std::string(argv[1]) == "check")
		return check(argv[2], argv[3], argc == 5 ? std::stoull(argv[4]) : 0);
	std::cerr << "usage: pattern write OCTETS | pattern check FILE MAP [OCTETS-THAT-MAY-BE-WRITTEN-AND-NOT-RECORDED]\n";
	return 2;
}
