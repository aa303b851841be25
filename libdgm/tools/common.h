// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#pragma once

#include <dgm.h>

#include <cstdint>
#include <map>
#include <string>

namespace tools {

// What dgm-recv prints and dgm-send takes: ADDRESS:PORT/ZONE/QKEY/SIZE/SENDKEY, the keys and the zone in hex
struct Target {
	dgm_address address{};
	uint32_t zone = 0, qkey = 0, send_key = 0;
	uint64_t size = 0;

	[[nodiscard]] std::string text() const;
	[[nodiscard]] socklen_t length() const;
	static Target parse(const std::string &text); // throws std::runtime_error
};

dgm_address parse_address(const std::string &host, uint16_t port);
socklen_t length_of(const dgm_address &address);
[[noreturn]] void fail(const std::string &what); // with errno
std::map<std::string, uint64_t> counters(dgm_endpoint *endpoint);

// The notice at the end of a transfer, sent several times as a Send
struct Notice {
	static constexpr uint32_t magic = 0x64676d31;
	uint32_t kind;
	uint32_t copies;
	uint64_t bytes, messages, failed;
};

} // namespace tools
