// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#include "wire.h"

#include <concepts>

namespace libexs::wire {
namespace {

template <std::unsigned_integral T> void put(std::span<uint8_t> out, size_t at, T value)
{
	for (size_t i = sizeof(T); i-- > 0; value = static_cast<T>(sizeof(T) > 1 ? value >> 8 : 0))
		out[at + i] = static_cast<uint8_t>(value);
}

template <std::unsigned_integral T> T get(std::span<const uint8_t> in, size_t at)
{
	uint64_t value = 0;
	for (size_t i = 0; i < sizeof(T); i++)
		value = value << 8 | in[at + i];
	return static_cast<T>(value);
}

bool all_zero(std::span<const uint8_t> bytes)
{
	for (const uint8_t byte : bytes)
		if (byte != 0)
			return false;
	return true;
}

// Which fields a message of a type has; the others are zero
struct Fields {
	uint8_t flags = 0; // that are known
	bool id = false, length = false, memory = false, count = false, status = false;
};

std::optional<Fields> fields_of(Type type)
{
	switch (type) {
	case Type::ready:
	case Type::fin:
		return Fields{};
	case Type::adv:
		return Fields{.flags = flag_persistent | flag_notify, .id = true, .length = true, .memory = true};
	case Type::adv_imm:
		return Fields{.id = true, .length = true};
	case Type::radv:
		return Fields{.id = true, .length = true, .memory = true};
	case Type::ack:
		return Fields{.id = true, .length = true, .count = true, .status = true};
	case Type::note:
		return Fields{.id = true, .count = true};
	case Type::note_ack:
	case Type::revoke:
	case Type::revoked:
		return Fields{.id = true};
	case Type::close:
		return Fields{.flags = flag_reply};
	}
	return std::nullopt;
}

// An address that wraps would pass any later check of bounds
bool memory_is_sane(const Message &message)
{
	return message.length != 0 && message.address + message.length >= message.address;
}

bool is_sane(const Message &message, const Fields &fields)
{
	if ((message.flags & ~fields.flags) != 0 || (message.flags & (flag_persistent | flag_notify)) == flag_notify)
		return false;
	if (fields.id != (message.id != 0) || (!fields.length && message.length != 0))
		return false;
	if (fields.memory ? !memory_is_sane(message) : message.address != 0 || message.key != 0)
		return false;
	if (message.type == Type::adv_imm && message.length > max_immediate)
		return false;
	if (!fields.count && message.count != 0)
		return false;
	if (message.type == Type::note && message.count == 0)
		return false;
	return message.status <= Status::unsupported && (fields.status || message.status == Status::ok);
}

} // namespace

std::array<uint8_t, hello_size> encode(const Hello &hello)
{
	std::array<uint8_t, hello_size> out{};
	put(out, 0, magic);
	put(out, 4, hello.version);
	put(out, 5, static_cast<uint8_t>(hello.kind));
	put(out, 6, static_cast<uint8_t>(hello.reason));
	put(out, 8, hello.credits);
	put(out, 10, hello.ird);
	put(out, 12, hello.ord);
	put(out, 14, hello.port);
	put(out, 16, hello.immediate);
	return out;
}

std::optional<Hello> decode_hello(std::span<const uint8_t> bytes)
{
	if (bytes.size() < hello_size || get<uint32_t>(bytes, 0) != magic)
		return std::nullopt;
	Hello hello{.version = bytes[4],
		    .kind = static_cast<Kind>(bytes[5]),
		    .reason = static_cast<Reason>(bytes[6]),
		    .credits = get<uint16_t>(bytes, 8),
		    .ird = get<uint16_t>(bytes, 10),
		    .ord = get<uint16_t>(bytes, 12),
		    .port = get<uint16_t>(bytes, 14),
		    .immediate = get<uint32_t>(bytes, 16)};
	if (hello.version != version)
		return Hello{.version = hello.version, .kind = Kind::refused, .reason = Reason::other_version};
	if (bytes[7] != 0 || !all_zero(bytes.subspan(20, 12)))
		return std::nullopt;
	if (hello.kind > Kind::stream || hello.reason > Reason::busy)
		return std::nullopt;
	if (hello.kind == Kind::refused)
		return hello.reason == Reason::none ? std::nullopt : std::optional(hello);
	if (hello.reason != Reason::none || hello.credits == 0 || hello.credits > max_credits)
		return std::nullopt;
	if (hello.ird > max_depth || hello.ord > max_depth || hello.immediate > max_immediate)
		return std::nullopt;
	return hello;
}

std::array<uint8_t, message_size> encode(const Message &message)
{
	std::array<uint8_t, message_size> out{};
	put(out, 0, static_cast<uint8_t>(message.type));
	put(out, 1, message.flags);
	put(out, 2, static_cast<uint16_t>(message.status));
	put(out, 4, message.id);
	put(out, 8, message.length);
	put(out, 16, message.address);
	put(out, 24, message.key);
	put(out, 28, message.count);
	return out;
}

std::optional<Message> decode_message(std::span<const uint8_t> bytes)
{
	if (bytes.size() < message_size)
		return std::nullopt;
	const Message message{.type = static_cast<Type>(bytes[0]),
			      .flags = bytes[1],
			      .status = static_cast<Status>(get<uint16_t>(bytes, 2)),
			      .id = get<uint32_t>(bytes, 4),
			      .length = get<uint64_t>(bytes, 8),
			      .address = get<uint64_t>(bytes, 16),
			      .key = get<uint32_t>(bytes, 24),
			      .count = get<uint32_t>(bytes, 28)};
	const auto fields = fields_of(message.type);
	if (!fields || !is_sane(message, *fields))
		return std::nullopt;
	return message;
}

} // namespace libexs::wire
