// SPDX-License-Identifier: GPL-2.0
// Messages that a program of ill will might send: right ones with a value, a type, a length or a flag
// changed, nests in wrong places, several in one datagram, dumps that nobody reads to the end.
#include "fuzz.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <system_error>

#include <fmt/format.h>

#include <rdma/rdma_mpa.h>
#include <rdma/rdma_netlink.h>

#include "socket.hpp"

namespace mpanl {

namespace {

class Fuzzer {
public:
	explicit Fuzzer(uint64_t seed) : random_(seed), sockets_(4)
	{
		for (auto &socket : sockets_)
			socket = std::make_unique<Socket>();
	}

	void step();
	void check_alive();

	uint64_t sent = 0;
	uint64_t answered = 0;

private:
	uint32_t below(uint32_t limit)
	{
		return static_cast<uint32_t>(random_() % limit);
	}

	bool one_in(uint32_t n)
	{
		return below(n) == 0;
	}

	uint32_t number();
	Bytes data(uint16_t attr, bool in_policy);
	void add(Bytes &bytes, uint16_t attr, const Bytes &content, bool nested);
	Bytes settings();
	Bytes message();
	void mutate(Bytes &bytes);
	void take_answers(Socket &socket);

	std::mt19937_64 random_;
	std::vector<std::unique_ptr<Socket>> sockets_;
};

uint32_t Fuzzer::number()
{
	static constexpr uint32_t special[] = {
		0, 1, 2, 3, 4, 5, 7, 8, 0x7f, 0x80, 0xff, 0x100, 0x3ffe, 0x3fff, 0x4000, 0x7fff, 0x8000, 0xffff, 0x10000,
		3600000, 3600001, 0x7fffffff, 0x80000000, 0xffffffff,
	};

	return one_in(4) ? static_cast<uint32_t>(random_()) : special[below(std::size(special))];
}

// What fits the attribute, mostly
Bytes Fuzzer::data(uint16_t attr, bool in_policy)
{
	size_t size = 4;

	if (in_policy) {
		if (attr == RDMA_MPA_POLICY_IRD || attr == RDMA_MPA_POLICY_ORD)
			size = 2;
		else if (attr == RDMA_MPA_POLICY_RTR_ORDER)
			size = 1 + below(3);
		else if (attr < RDMA_MPA_POLICY_REQUEST_MS || attr == RDMA_MPA_POLICY_DIALECT ||
			 attr == RDMA_MPA_POLICY_SHORT_IRD || attr == RDMA_MPA_POLICY_FASTOPEN)
			size = 1;
	}
	if (one_in(8))
		size = below(64);

	Bytes bytes(size);
	const uint32_t value = number();

	std::memcpy(bytes.data(), &value, std::min(size, sizeof(value)));
	if (in_policy && attr == RDMA_MPA_POLICY_RTR_ORDER)
		for (uint8_t &kind : bytes)
			kind = static_cast<uint8_t>(1U << below(one_in(8) ? 8 : 3));
	return bytes;
}

void Fuzzer::add(Bytes &bytes, uint16_t attr, const Bytes &content, bool nested)
{
	const size_t at = bytes.size();

	if (one_in(16))
		nested = !nested;
	if (nested)
		attr |= NLA_F_NESTED;
	if (one_in(64))
		attr |= NLA_F_NET_BYTEORDER;
	append(bytes, attr, content);
	if (one_in(32)) {
		const uint16_t len = static_cast<uint16_t>(number());

		std::memcpy(bytes.data() + at, &len, sizeof(len));
	}
}

Bytes Fuzzer::settings()
{
	Bytes bytes;

	for (uint32_t n = below(5); n; n--) {
		const auto attr = static_cast<uint16_t>(below(one_in(16) ? 64 : __RDMA_MPA_POLICY_NUM));

		if (one_in(64))
			add(bytes, attr, settings(), true);
		else
			add(bytes, attr, data(attr, true), false);
	}
	return bytes;
}

Bytes Fuzzer::message()
{
	const uint32_t cmd = one_in(32) ? below(1024) : below(__RDMA_MPA_CMD_NUM);
	uint16_t flags = NLM_F_REQUEST;

	if (one_in(2))
		flags |= NLM_F_ACK;
	if (one_in(3))
		flags |= NLM_F_DUMP;
	if (one_in(32))
		flags = static_cast<uint16_t>(random_());

	Bytes attributes;

	for (uint32_t n = below(4); n; n--) {
		switch (below(6)) {
		case 0:
		case 1:
			add(attributes, RDMA_MPA_ATTR_POLICY, settings(), true);
			break;
		case 2:
			add(attributes, static_cast<uint16_t>(below(one_in(8) ? 512 : __RDMA_MPA_ATTR_NUM)), data(0, false), false);
			break;
		case 3:
			add(attributes, RDMA_MPA_ATTR_PORT, {static_cast<uint8_t>(below(3)), 0, 0, 0}, false);
			[[fallthrough]];
		default:
			add(attributes, RDMA_MPA_ATTR_DEV_INDEX, {static_cast<uint8_t>(below(4)), 0, 0, 0}, false);
			break;
		}
	}

	Message whole(static_cast<uint16_t>(RDMA_NL_GET_TYPE(RDMA_NL_MPA, cmd)), flags);
	Bytes bytes = whole.finished(static_cast<uint32_t>(random_()));

	bytes.insert(bytes.end(), attributes.begin(), attributes.end());
	const auto len = static_cast<uint32_t>(one_in(64) ? number() : bytes.size());

	std::memcpy(bytes.data(), &len, sizeof(len));
	return bytes;
}

// What the header says of client, length and command stays as likely as not
void Fuzzer::mutate(Bytes &bytes)
{
	for (uint32_t n = 1 + below(4); n; n--) {
		const uint32_t first = one_in(8) || bytes.size() <= sizeof(nlmsghdr) ? 0 : sizeof(nlmsghdr);
		const auto at = first + below(static_cast<uint32_t>(bytes.size()) - first);

		bytes[at] = one_in(2) ? static_cast<uint8_t>(number()) : static_cast<uint8_t>(bytes[at] ^ (1U << below(8)));
	}
	// Only ever our client: others' commands are theirs to test
	const auto type = static_cast<uint16_t>(RDMA_NL_GET_TYPE(RDMA_NL_MPA, (bytes[4] | (bytes[5] & 3) << 8)));

	std::memcpy(bytes.data() + 4, &type, sizeof(type));
	if (one_in(16))
		bytes.resize(sizeof(nlmsghdr) + below(static_cast<uint32_t>(bytes.size() - sizeof(nlmsghdr) + 1)));
}

void Fuzzer::take_answers(Socket &socket)
{
	switch (below(4)) {
	case 0: // never: the dump stays where it is, the queue fills up
		break;
	case 1: // cut short
		answered += socket.drain(1 + below(64));
		break;
	default:
		answered += socket.drain(1 << 16);
	}
}

void Fuzzer::step()
{
	auto &socket = sockets_[below(static_cast<uint32_t>(sockets_.size()))];

	if (one_in(64))
		socket = std::make_unique<Socket>(); // with whatever was going on
	if (one_in(256)) {
		try {
			socket->join(one_in(2) ? RDMA_NL_GROUP_MPA : number());
		} catch (const std::system_error &) {
			// no such group
		}
	}

	Bytes datagram = message();

	if (one_in(2))
		mutate(datagram);
	while (one_in(4)) {
		const Bytes next = message();

		datagram.resize(NLMSG_ALIGN(datagram.size()));
		datagram.insert(datagram.end(), next.begin(), next.end());
	}
	try {
		socket->send_raw(datagram);
		sent++;
	} catch (const std::system_error &) {
		// the answers have not been taken
		socket = std::make_unique<Socket>();
	}
	take_answers(*socket);
}

// Every policy can still be read and reset
void Fuzzer::check_alive()
{
	Socket socket;
	unsigned records = 0;
	bool whole;

	do {
		Message get(RDMA_NL_GET_TYPE(RDMA_NL_MPA, RDMA_MPA_CMD_POLICY_GET), NLM_F_REQUEST | NLM_F_DUMP);

		records = 0;
		whole = socket.request(get, [&](const nlmsghdr &, std::span<const uint8_t>) { records++; });
	} while (!whole);
	if (!records)
		throw std::runtime_error("the list of policies is empty");
}

} // namespace

int fuzz(std::chrono::seconds time, uint64_t seed)
{
	const auto end = std::chrono::steady_clock::now() + time;
	Fuzzer fuzzer(seed);
	uint64_t steps = 0;

	while (std::chrono::steady_clock::now() < end) {
		fuzzer.step();
		if (++steps % 1024 == 0)
			fuzzer.check_alive();
	}
	fuzzer.check_alive();
	fmt::print("{} datagrams sent, {} bytes of answers, {} a second\n", fuzzer.sent, fuzzer.answered,
		   fuzzer.sent / static_cast<uint64_t>(std::max<int64_t>(time.count(), 1)));
	// Random numbers that never hit anything would test nothing
	return fuzzer.sent && fuzzer.answered ? 0 : 1;
}

} // namespace mpanl
