// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

// The wire format: hello and messages. Pure; nothing here trusts a byte that it reads.
namespace libexs::wire {

inline constexpr uint32_t magic = 0x4c455853; // "LEXS"
inline constexpr uint8_t version = 1;

// What both ends say in the private data of the connection set-up, or as the first bytes over TCP
inline constexpr size_t hello_size = 32;
inline constexpr uint16_t max_credits = 4096;
inline constexpr uint32_t max_immediate = 1U << 20;
inline constexpr uint16_t max_depth = 255; // of Reads, as in rdma_conn_param

enum class Kind : uint8_t {
	refused = 0, // the answer of one who does not want the connection: why is in Hello::reason
	seqpacket = 1,
	stream = 2,
};

enum class Reason : uint8_t { none = 0, other_version = 1, other_kind = 2, busy = 3 };

struct Hello {
	uint8_t version = wire::version;
	Kind kind = Kind::seqpacket;
	Reason reason = Reason::none;
	uint16_t credits = 1;	// advertisements that the sender of this can hold; at least 1
	uint16_t ird = 0;	// Reads that it serves at a time
	uint16_t ord = 0;	// Reads that it wants to have in flight
	uint16_t port = 0;	// over TCP: the port of RDMA that is meant, if it is not this one
	uint32_t immediate = 0; // octets of immediate data that it can hold for each

	bool operator==(const Hello &) const = default;
};

std::array<uint8_t, hello_size> encode(const Hello &hello);

// What may stand behind it (rdma_cm pads private data) is ignored. Of another version only that is decoded.
std::optional<Hello> decode_hello(std::span<const uint8_t> bytes);

inline constexpr size_t message_size = 32;

enum class Type : uint8_t {
	ready = 1,    // the initiator's first message: the responder may speak
	adv = 2,      // data to be read: id, length, address, key, flags
	adv_imm = 3,  // data that follow: id, length
	radv = 4,     // memory that may be written, until revoked: id, length, address, key
	ack = 5,      // the advertisement id is done with: status, length, count (of reads not yet noted)
	note = 6,     // the persistent advertisement id has been read count times
	note_ack = 7, // ready for the next NOTE
	revoke = 8,   // stop using the advertisement id
	revoked = 9,  // it is not used any more; its ACK has been sent before
	fin = 10,     // no data will be advertised or written any more
	close = 11,   // the sender has stopped reading and writing the peer's memory, and says nothing more
};

inline constexpr uint8_t flag_persistent = 1; // of ADV
inline constexpr uint8_t flag_notify = 2;     // of ADV, with flag_persistent
inline constexpr uint8_t flag_reply = 4;      // of CLOSE: the peer's CLOSE has been received

// Of an ACK
enum class Status : uint16_t {
	ok = 0,
	canceled = 1,	 // by REVOKE or by the receiver
	both_persistent = 2,
	too_long = 3,	 // for the persistent memory
	unsupported = 4, // the receiver may not have any Read in flight
};

struct Message {
	Type type = Type::ready;
	uint8_t flags = 0;
	Status status = Status::ok;
	uint32_t id = 0;
	uint64_t length = 0;
	uint64_t address = 0;
	uint32_t key = 0;
	uint32_t count = 0;

	bool operator==(const Message &) const = default;
};

std::array<uint8_t, message_size> encode(const Message &message);

// Nothing if a field has a value that its type of message does not allow; bytes is at least message_size long.
// Data that follow ADV_IMM are the caller's to count.
std::optional<Message> decode_message(std::span<const uint8_t> bytes);

} // namespace libexs::wire
