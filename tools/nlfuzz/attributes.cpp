// SPDX-License-Identifier: GPL-2.0
#include "attributes.hpp"

#include <algorithm>
#include <cstring>

namespace nlfuzz {

namespace {

template <typename Header> void append_raw(Bytes &bytes, const Header &header)
{
	const size_t at = bytes.size();

	bytes.resize(at + sizeof(header));
	std::memcpy(bytes.data() + at, &header, sizeof(header));
}

} // namespace

void append(Bytes &bytes, uint16_t attr, std::span<const uint8_t> data)
{
	append_raw(bytes, nlattr{static_cast<uint16_t>(NLA_HDRLEN + data.size()), attr});
	bytes.insert(bytes.end(), data.begin(), data.end());
	bytes.resize(NLA_ALIGN(bytes.size()));
}

void append_u32(Bytes &bytes, uint16_t attr, uint32_t value)
{
	append(bytes, attr, {reinterpret_cast<const uint8_t *>(&value), sizeof(value)});
}

Bytes make_message(uint16_t family, uint8_t command, uint16_t flags, uint32_t seq, std::span<const uint8_t> attributes)
{
	Bytes bytes;
	nlmsghdr header{};
	genlmsghdr generic{};

	header.nlmsg_len = static_cast<uint32_t>(NLMSG_HDRLEN + GENL_HDRLEN + attributes.size());
	header.nlmsg_type = family;
	header.nlmsg_flags = flags;
	header.nlmsg_seq = seq;
	generic.cmd = command;
	generic.version = 1;
	append_raw(bytes, header);
	append_raw(bytes, generic);
	bytes.insert(bytes.end(), attributes.begin(), attributes.end());
	return bytes;
}

std::vector<Attribute> parse(std::span<const uint8_t> bytes)
{
	std::vector<Attribute> list;
	nlattr header;

	while (bytes.size() >= sizeof(header)) {
		std::memcpy(&header, bytes.data(), sizeof(header));
		if (header.nla_len < sizeof(header) || header.nla_len > bytes.size())
			break;
		list.push_back({static_cast<uint16_t>(header.nla_type & NLA_TYPE_MASK),
				bytes.subspan(sizeof(header), header.nla_len - sizeof(header))});
		bytes = bytes.subspan(std::min<size_t>(NLA_ALIGN(header.nla_len), bytes.size()));
	}
	return list;
}

std::span<const uint8_t> find(std::span<const uint8_t> bytes, uint16_t type)
{
	for (const Attribute &attribute : parse(bytes))
		if (attribute.type == type)
			return attribute.data;
	return {};
}

uint32_t number(std::span<const uint8_t> data)
{
	uint32_t value = 0;

	std::memcpy(&value, data.data(), std::min(data.size(), sizeof(value)));
	return value;
}

std::string_view text(std::span<const uint8_t> data)
{
	const auto *chars = reinterpret_cast<const char *>(data.data());

	return {chars, strnlen(chars, data.size())};
}

} // namespace nlfuzz
