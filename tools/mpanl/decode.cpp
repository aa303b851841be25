// SPDX-License-Identifier: GPL-2.0
#include "decode.hpp"

#include <array>
#include <stdexcept>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>

#include <rdma/rdma_mpa.h>

namespace mpanl {

namespace {

enum class Form { number, kinds, order };

struct Setting {
	const char *name;
	uint16_t attr;
	size_t size;
	Form form;
};

constexpr std::array settings = {
	Setting{"revision", RDMA_MPA_POLICY_REVISION, 1, Form::number},
	Setting{"model", RDMA_MPA_POLICY_MODEL, 1, Form::number},
	Setting{"rtr-offer", RDMA_MPA_POLICY_RTR_OFFER, 1, Form::kinds},
	Setting{"rtr-accept", RDMA_MPA_POLICY_RTR_ACCEPT, 1, Form::kinds},
	Setting{"rtr-order", RDMA_MPA_POLICY_RTR_ORDER, 3, Form::order},
	Setting{"ird", RDMA_MPA_POLICY_IRD, 2, Form::number},
	Setting{"ord", RDMA_MPA_POLICY_ORD, 2, Form::number},
	Setting{"crc", RDMA_MPA_POLICY_CRC, 1, Form::number},
	Setting{"request-ms", RDMA_MPA_POLICY_REQUEST_MS, 4, Form::number},
	Setting{"reply-ms", RDMA_MPA_POLICY_REPLY_MS, 4, Form::number},
	Setting{"rtr-ms", RDMA_MPA_POLICY_RTR_MS, 4, Form::number},
	Setting{"decide-ms", RDMA_MPA_POLICY_DECIDE_MS, 4, Form::number},
	Setting{"dialect", RDMA_MPA_POLICY_DIALECT, 1, Form::number},
	Setting{"connect-ms", RDMA_MPA_POLICY_CONNECT_MS, 4, Form::number},
	Setting{"short-ird", RDMA_MPA_POLICY_SHORT_IRD, 1, Form::number},
	Setting{"fastopen", RDMA_MPA_POLICY_FASTOPEN, 1, Form::number},
};

struct Kind {
	const char *name;
	uint8_t bit;
};

constexpr std::array kinds = {
	Kind{"send", RDMA_MPA_RTR_SEND},
	Kind{"write", RDMA_MPA_RTR_WRITE},
	Kind{"read", RDMA_MPA_RTR_READ},
};

const Setting &find_setting(const std::string &name)
{
	for (const Setting &setting : settings)
		if (name == setting.name)
			return setting;
	throw std::invalid_argument("no such setting: " + name);
}

Json kinds_of(uint64_t mask)
{
	Json list = Json::array();

	for (const Kind &kind : kinds)
		if (mask & kind.bit)
			list.push_back(kind.name);
	return list;
}

Json value_of(const Setting &setting, std::span<const uint8_t> data)
{
	Json list = Json::array();

	switch (setting.form) {
	case Form::kinds:
		return kinds_of(number(data));
	case Form::order:
		for (const uint8_t kind : data)
			list.push_back(kinds_of(kind).at(0));
		return list;
	default:
		return number(data);
	}
}

Json decode_settings(std::span<const uint8_t> nest, bool plain)
{
	const Attributes attributes = parse(nest);
	Json json = Json::object();

	for (const Setting &setting : settings)
		if (const auto it = attributes.find(setting.attr); it != attributes.end())
			json[setting.name] = plain ? Json(number(it->second)) : value_of(setting, it->second);
	return json;
}

Json decode_caps(std::span<const uint8_t> nest)
{
	static constexpr std::array<const char *, __RDMA_MPA_CAP_NUM> names = {
		"unspec", "max-ird", "max-ord", "rtr-send", "rtr-recv", "crc", "tx-markers", "rx-markers", "fastopen",
	};
	Json json = Json::object();

	for (const auto &[type, data] : parse_list(nest)) {
		if (type == RDMA_MPA_CAP_RTR_SEND || type == RDMA_MPA_CAP_RTR_RECV)
			json[names.at(type)] = kinds_of(number(data));
		else
			json[names.at(type)] = number(data);
	}
	return json;
}

Json decode_stats(std::span<const uint8_t> nest)
{
	Json json = Json::object();

	for (const auto &[type, data] : parse_list(nest)) {
		const Attributes stat = parse(data);

		json[std::string(text(stat.at(RDMA_MPA_ATTR_STAT_NAME)))] = number(stat.at(RDMA_MPA_ATTR_STAT_VALUE));
	}
	return json;
}

std::string decode_addr(std::span<const uint8_t> data)
{
	char buffer[INET6_ADDRSTRLEN] = "";

	if (data.size() == sizeof(sockaddr_in)) {
		sockaddr_in addr;

		std::memcpy(&addr, data.data(), sizeof(addr));
		inet_ntop(AF_INET, &addr.sin_addr, buffer, sizeof(buffer));
		return fmt::format("{}:{}", buffer, ntohs(addr.sin_port));
	}
	if (data.size() == sizeof(sockaddr_in6)) {
		sockaddr_in6 addr;

		std::memcpy(&addr, data.data(), sizeof(addr));
		inet_ntop(AF_INET6, &addr.sin6_addr, buffer, sizeof(buffer));
		return fmt::format("[{}]:{}", buffer, ntohs(addr.sin6_port));
	}
	return "?";
}

} // namespace

Json decode(std::span<const uint8_t> bytes)
{
	static const std::map<uint16_t, const char *> numbers = {
		{RDMA_MPA_ATTR_DEV_INDEX, "dev-index"}, {RDMA_MPA_ATTR_PORT, "port"},
		{RDMA_MPA_ATTR_QPN, "qpn"},		{RDMA_MPA_ATTR_CM_ID, "cm-id"},
		{RDMA_MPA_ATTR_STATUS, "status"},	{RDMA_MPA_ATTR_ECODE, "ecode"},
		{RDMA_MPA_ATTR_FALLBACK, "fallback"},	{RDMA_MPA_ATTR_REVISION, "revision"},
		{RDMA_MPA_ATTR_ENHANCED, "enhanced"},	{RDMA_MPA_ATTR_IRD, "ird"},
		{RDMA_MPA_ATTR_ORD, "ord"},		{RDMA_MPA_ATTR_PEER_IRD, "peer-ird"},
		{RDMA_MPA_ATTR_PEER_ORD, "peer-ord"},	{RDMA_MPA_ATTR_CRC, "crc"},
		{RDMA_MPA_ATTR_FASTOPEN, "fastopen"},
	};
	static const std::map<uint16_t, const char *> strings = {
		{RDMA_MPA_ATTR_DEV_NAME, "dev"},
		{RDMA_MPA_ATTR_LLP, "llp"},
		{RDMA_MPA_ATTR_STATE, "state"},
	};
	Json json = Json::object();

	for (const auto &[type, data] : parse_list(bytes)) {
		if (const auto it = numbers.find(type); it != numbers.end())
			json[it->second] = number(data);
		else if (const auto str = strings.find(type); str != strings.end())
			json[str->second] = text(data);
		else if (type == RDMA_MPA_ATTR_ROLE)
			json["role"] = number(data) == RDMA_MPA_ROLE_RESPONDER ? "responder" : "initiator";
		else if (type == RDMA_MPA_ATTR_MODEL)
			json["model"] = number(data) == RDMA_MPA_MODEL_PEER_TO_PEER ? "peer-to-peer" : "client-server";
		else if (type == RDMA_MPA_ATTR_RTR)
			json["rtr"] = kinds_of(number(data));
		else if (type == RDMA_MPA_ATTR_RTR_SEEN)
			json["rtr-seen"] = kinds_of(number(data));
		else if (type == RDMA_MPA_ATTR_LOCAL_ADDR)
			json["local"] = decode_addr(data);
		else if (type == RDMA_MPA_ATTR_REMOTE_ADDR)
			json["remote"] = decode_addr(data);
		else if (type == RDMA_MPA_ATTR_POLICY)
			json["policy"] = decode_settings(data, false);
		else if (type == RDMA_MPA_ATTR_EFFECTIVE)
			json["effective"] = decode_settings(data, false);
		else if (type == RDMA_MPA_ATTR_ORIGIN)
			json["origin"] = decode_settings(data, true);
		else if (type == RDMA_MPA_ATTR_CAPS)
			json["caps"] = decode_caps(data);
		else if (type == RDMA_MPA_ATTR_STATS)
			json["stats"] = decode_stats(data);
		else
			json[fmt::format("attr{}", type)] = data.size();
	}
	return json;
}

uint16_t setting_of(const std::string &name)
{
	return find_setting(name).attr;
}

namespace {

// "read,write" or a number; of an order one byte each
Bytes kinds_from(const std::string &value, Form form)
{
	Bytes bytes;
	uint8_t mask = 0;
	size_t pos = 0;

	while (pos <= value.size()) {
		const size_t end = std::min(value.find(',', pos), value.size());
		const std::string word = value.substr(pos, end - pos);
		uint8_t bit = 0;

		for (const Kind &kind : kinds)
			if (word == kind.name)
				bit = kind.bit;
		if (!bit)
			bit = static_cast<uint8_t>(std::stoul(word, nullptr, 0));
		bytes.push_back(bit);
		mask |= bit;
		pos = end + 1;
	}
	return form == Form::order ? bytes : Bytes{mask};
}

} // namespace

void append_setting(Bytes &out, const std::string &assignment)
{
	const size_t equals = assignment.find('=');

	if (equals == std::string::npos)
		throw std::invalid_argument("not a setting: " + assignment);
	const Setting &setting = find_setting(assignment.substr(0, equals));
	const std::string value = assignment.substr(equals + 1);

	if (setting.form != Form::number) {
		append(out, setting.attr, kinds_from(value, setting.form));
		return;
	}
	const uint64_t number = std::stoull(value, nullptr, 0);

	append(out, setting.attr, {reinterpret_cast<const uint8_t *>(&number), setting.size});
}

} // namespace mpanl
