// SPDX-License-Identifier: GPL-2.0
#include "attributes.hpp"

#include <cstring>

namespace mpanl {

void append(Bytes &bytes, uint16_t attr, std::span<const uint8_t> data)
{
	const nlattr header = {static_cast<uint16_t>(NLA_HDRLEN + data.size()), attr};
	const auto *raw = reinterpret_cast<const uint8_t *>(&header);

	bytes.insert(bytes.end(), raw, raw + sizeof(header));
	bytes.insert(bytes.end(), data.begin(), data.end());
	bytes.resize(NLA_ALIGN(bytes.size()));
}

Message::Message(uint16_t type, uint16_t flags) : bytes_(sizeof(nlmsghdr))
{
	nlmsghdr header = {};

	header.nlmsg_type = type;
	header.nlmsg_flags = flags;
	std::memcpy(bytes_.data(), &header, sizeof(header));
}

void Message::put(uint16_t attr, std::span<const uint8_t> data)
{
	append(bytes_, attr, data);
}

void Message::put_u8(uint16_t attr, uint8_t value)
{
	put(attr, {&value, sizeof(value)});
}

void Message::put_u16(uint16_t attr, uint16_t value)
{
	put(attr, {reinterpret_cast<const uint8_t *>(&value), sizeof(value)});
}

void Message::put_u32(uint16_t attr, uint32_t value)
{
	put(attr, {reinterpret_cast<const uint8_t *>(&value), sizeof(value)});
}

void Message::put_byte(uint8_t byte)
{
	bytes_.push_back(byte);
}

void Message::nest(uint16_t attr, const Bytes &attributes)
{
	put(attr | NLA_F_NESTED, attributes);
}

const Bytes &Message::finished(uint32_t seq)
{
	nlmsghdr header;

	std::memcpy(&header, bytes_.data(), sizeof(header));
	header.nlmsg_len = static_cast<uint32_t>(bytes_.size());
	header.nlmsg_seq = seq;
	std::memcpy(bytes_.data(), &header, sizeof(header));
	return bytes_;
}

std::vector<std::pair<uint16_t, std::span<const uint8_t>>> parse_list(std::span<const uint8_t> bytes)
{
	std::vector<std::pair<uint16_t, std::span<const uint8_t>>> list;
	nlattr header;

	while (bytes.size() >= sizeof(header)) {
		std::memcpy(&header, bytes.data(), sizeof(header));
		if (header.nla_len < sizeof(header) || header.nla_len > bytes.size())
			break;
		list.emplace_back(header.nla_type & NLA_TYPE_MASK,
				  bytes.subspan(sizeof(header), header.nla_len - sizeof(header)));
		bytes = bytes.subspan(std::min<size_t>(NLA_ALIGN(header.nla_len), bytes.size()));
	}
	return list;
}

Attributes parse(std::span<const uint8_t> bytes)
{
	Attributes attributes;

	for (const auto &[type, data] : parse_list(bytes))
		attributes[type] = data;
	return attributes;
}

uint64_t number(std::span<const uint8_t> data)
{
	uint64_t value = 0;

	std::memcpy(&value, data.data(), std::min(data.size(), sizeof(value)));
	return value;
}

std::string_view text(std::span<const uint8_t> data)
{
	const auto *chars = reinterpret_cast<const char *>(data.data());

	return {chars, strnlen(chars, data.size())};
}

} // namespace mpanl
