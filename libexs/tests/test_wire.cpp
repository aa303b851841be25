// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#include "../src/wire.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace {

using namespace libexs::wire;

std::vector<uint8_t> bytes_of(std::string_view hex)
{
	std::vector<uint8_t> out;
	unsigned digits = 0, value = 0;
	for (const char c : hex) {
		if (c == ' ')
			continue;
		value = value * 16 + static_cast<unsigned>(c <= '9' ? c - '0' : c - 'a' + 10);
		if (++digits % 2 == 0) {
			out.push_back(static_cast<uint8_t>(value));
			value = 0;
		}
	}
	return out;
}

template <typename Array> std::vector<uint8_t> vector_of(const Array &array)
{
	return {array.begin(), array.end()};
}

TEST(Wire, HelloHasTheDocumentedFormat)
{
	const Hello hello{.kind = Kind::stream, .credits = 0x0102, .ird = 3, .ord = 4, .port = 0x0506, .immediate = 0x00010203};
	const auto bytes = bytes_of("4c455853 01 02 00 00 0102 0003 0004 0506 00010203 000000000000000000000000");
	ASSERT_EQ(bytes.size(), hello_size);
	EXPECT_EQ(vector_of(encode(hello)), bytes);
	EXPECT_EQ(decode_hello(bytes), hello);
}

// rdma_cm pads private data
TEST(Wire, DecodeHelloIgnoresPadding)
{
	auto bytes = vector_of(encode(Hello{}));
	bytes.resize(56);
	EXPECT_EQ(decode_hello(bytes), Hello{});
}

TEST(Wire, DecodeHelloRejectsATruncatedHello)
{
	const auto bytes = encode(Hello{});
	for (size_t size = 0; size < hello_size; size++)
		EXPECT_FALSE(decode_hello(std::span(bytes).first(size))) << size;
}

TEST(Wire, HelloOfVersion2IsDecodedAsRefusedForItsVersionWhateverItsContent)
{
	auto bytes = encode(Hello{});
	std::ranges::fill(bytes, 0xff);
	std::ranges::copy(bytes_of("4c455853 02"), bytes.begin());
	const auto hello = decode_hello(bytes);
	ASSERT_TRUE(hello);
	EXPECT_EQ(hello->version, 2);
	EXPECT_EQ(hello->kind, Kind::refused);
	EXPECT_EQ(hello->reason, Reason::other_version);
}

struct BadHello {
	const char *what;
	const char *hex;
};

TEST(Wire, DecodeHelloRejectsInvalidHellos)
{
	const BadHello cases[] = {
		{"other magic", "4c455854 01 01 00 00 0001 0000 0000 0000 00000000 000000000000000000000000"},
		{"MPA Request", "4d504120494420526571204672616d65 00000000000000000000000000000000"},
		{"no kind 3", "4c455853 01 03 00 00 0001 0000 0000 0000 00000000 000000000000000000000000"},
		{"no reason 4", "4c455853 01 00 04 00 0000 0000 0000 0000 00000000 000000000000000000000000"},
		{"refused for no reason", "4c455853 01 00 00 00 0000 0000 0000 0000 00000000 000000000000000000000000"},
		{"a reason, not refused", "4c455853 01 01 01 00 0001 0000 0000 0000 00000000 000000000000000000000000"},
		{"no credit", "4c455853 01 01 00 00 0000 0000 0000 0000 00000000 000000000000000000000000"},
		{"4097 credits", "4c455853 01 01 00 00 1001 0000 0000 0000 00000000 000000000000000000000000"},
		{"IRD 256", "4c455853 01 01 00 00 0001 0100 0000 0000 00000000 000000000000000000000000"},
		{"ORD 256", "4c455853 01 01 00 00 0001 0000 0100 0000 00000000 000000000000000000000000"},
		{"immediate 1 MiB + 1", "4c455853 01 01 00 00 0001 0000 0000 0000 00100001 000000000000000000000000"},
		{"reserved octet 7", "4c455853 01 01 00 01 0001 0000 0000 0000 00000000 000000000000000000000000"},
		{"reserved octet 20", "4c455853 01 01 00 00 0001 0000 0000 0000 00000000 010000000000000000000000"},
		{"reserved octet 31", "4c455853 01 01 00 00 0001 0000 0000 0000 00000000 000000000000000000000001"},
	};
	for (const auto &[what, hex] : cases) {
		const auto bytes = bytes_of(hex);
		ASSERT_EQ(bytes.size(), hello_size) << what;
		EXPECT_FALSE(decode_hello(bytes)) << what;
	}
}

TEST(Wire, MessagesHaveTheDocumentedFormat)
{
	const std::pair<Message, const char *> cases[] = {
		{{.type = Type::ready}, "01 00 0000 00000000 0000000000000000 0000000000000000 00000000 00000000"},
		{{.type = Type::adv,
		  .flags = flag_persistent | flag_notify,
		  .id = 7,
		  .length = 0x10000,
		  .address = 0x00007f1122334455,
		  .key = 0x89abcdef},
		 "02 03 0000 00000007 0000000000010000 00007f1122334455 89abcdef 00000000"},
		{{.type = Type::adv_imm, .id = 0x01020304, .length = 100},
		 "03 00 0000 01020304 0000000000000064 0000000000000000 00000000 00000000"},
		{{.type = Type::radv, .id = 9, .length = 4096, .address = 0x1000, .key = 1},
		 "04 00 0000 00000009 0000000000001000 0000000000001000 00000001 00000000"},
		{{.type = Type::ack, .status = Status::canceled, .id = 7, .length = 5, .count = 2},
		 "05 00 0001 00000007 0000000000000005 0000000000000000 00000000 00000002"},
		{{.type = Type::note, .id = 7, .count = 3},
		 "06 00 0000 00000007 0000000000000000 0000000000000000 00000000 00000003"},
		{{.type = Type::note_ack, .id = 7},
		 "07 00 0000 00000007 0000000000000000 0000000000000000 00000000 00000000"},
		{{.type = Type::revoke, .id = 7},
		 "08 00 0000 00000007 0000000000000000 0000000000000000 00000000 00000000"},
		{{.type = Type::revoked, .id = 7},
		 "09 00 0000 00000007 0000000000000000 0000000000000000 00000000 00000000"},
		{{.type = Type::fin}, "0a 00 0000 00000000 0000000000000000 0000000000000000 00000000 00000000"},
		{{.type = Type::close, .flags = flag_reply},
		 "0b 04 0000 00000000 0000000000000000 0000000000000000 00000000 00000000"},
	};
	for (const auto &[message, hex] : cases) {
		EXPECT_EQ(vector_of(encode(message)), bytes_of(hex)) << hex;
		EXPECT_EQ(decode_message(bytes_of(hex)), message) << hex;
	}
}

TEST(Wire, DecodeMessageRejectsInvalidMessages)
{
	const std::pair<const char *, const char *> cases[] = {
		{"no type 0", "00 00 0000 00000000 0000000000000000 0000000000000000 00000000 00000000"},
		{"no type 12", "0c 00 0000 00000000 0000000000000000 0000000000000000 00000000 00000000"},
		{"READY with an id", "01 00 0000 00000001 0000000000000000 0000000000000000 00000000 00000000"},
		{"READY with a flag", "01 04 0000 00000000 0000000000000000 0000000000000000 00000000 00000000"},
		{"ADV without an id", "02 00 0000 00000000 0000000000000001 0000000000001000 00000001 00000000"},
		{"ADV of nothing", "02 00 0000 00000001 0000000000000000 0000000000001000 00000001 00000000"},
		{"ADV that wraps", "02 00 0000 00000001 0000000000002000 fffffffffffff000 00000001 00000000"},
		{"ADV to the last octet and over", "02 00 0000 00000001 ffffffffffffffff 0000000000000002 00000001 00000000"},
		{"ADV with notify alone", "02 02 0000 00000001 0000000000000001 0000000000001000 00000001 00000000"},
		{"ADV with a flag of CLOSE", "02 04 0000 00000001 0000000000000001 0000000000001000 00000001 00000000"},
		{"ADV with a status", "02 00 0001 00000001 0000000000000001 0000000000001000 00000001 00000000"},
		{"ADV with a count", "02 00 0000 00000001 0000000000000001 0000000000001000 00000001 00000001"},
		{"ADV_IMM with an address", "03 00 0000 00000001 0000000000000001 0000000000001000 00000000 00000000"},
		{"ADV_IMM with a key", "03 00 0000 00000001 0000000000000001 0000000000000000 00000001 00000000"},
		{"ADV_IMM over 1 MiB", "03 00 0000 00000001 0000000000100001 0000000000000000 00000000 00000000"},
		{"ADV_IMM, persistent", "03 01 0000 00000001 0000000000000001 0000000000000000 00000000 00000000"},
		{"RADV of nothing", "04 00 0000 00000001 0000000000000000 0000000000001000 00000001 00000000"},
		{"RADV, persistent", "04 01 0000 00000001 0000000000000001 0000000000001000 00000001 00000000"},
		{"ACK without an id", "05 00 0000 00000000 0000000000000000 0000000000000000 00000000 00000000"},
		{"ACK with status 5", "05 00 0005 00000001 0000000000000000 0000000000000000 00000000 00000000"},
		{"NOTE of nothing", "06 00 0000 00000001 0000000000000000 0000000000000000 00000000 00000000"},
		{"NOTE_ACK with a count", "07 00 0000 00000001 0000000000000000 0000000000000000 00000000 00000001"},
		{"REVOKE without an id", "08 00 0000 00000000 0000000000000000 0000000000000000 00000000 00000000"},
		{"REVOKED with a length", "09 00 0000 00000001 0000000000000001 0000000000000000 00000000 00000000"},
		{"FIN with an id", "0a 00 0000 00000001 0000000000000000 0000000000000000 00000000 00000000"},
		{"CLOSE with flag 1", "0b 01 0000 00000000 0000000000000000 0000000000000000 00000000 00000000"},
	};
	for (const auto &[what, hex] : cases) {
		ASSERT_EQ(bytes_of(hex).size(), message_size) << what;
		EXPECT_FALSE(decode_message(bytes_of(hex))) << what;
	}
	EXPECT_TRUE(decode_message(bytes_of("02 00 0000 00000001 0000000000000fff fffffffffffff000 00000001 00000000")))
		<< "ADV up to the last octet but one of all addresses";
}

TEST(Wire, DecodeMessageRejectsATruncatedMessage)
{
	const auto bytes = encode(Message{.type = Type::ready});
	for (size_t size = 0; size < message_size; size++)
		EXPECT_FALSE(decode_message(std::span(bytes).first(size))) << size;
}

} // namespace
