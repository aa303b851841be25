// SPDX-License-Identifier: GPL-2.0
// Messages that a hostile program might send: valid ones with a value, a type, a length or a flag
// changed, nests in wrong places, several messages in one datagram, and dumps that are not read to the
// end while other threads change the list.
#include "fuzz.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <memory>
#include <random>
#include <system_error>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include <rdma/rdma_mpa.h>

#include "socket.hpp"

namespace nlfuzz {

namespace {

class Fuzzer {
public:
	explicit Fuzzer(uint64_t seed) : random_(seed), sockets_(4)
	{
		for (auto &socket : sockets_)
			socket = std::make_unique<Socket>();
		find();
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

	void find();
	uint32_t number();
	void add(Bytes &bytes, uint16_t attr, const Bytes &content, bool nested);
	void add_u32(Bytes &bytes, uint16_t attr, uint32_t value);
	Bytes order();
	Bytes settings();
	Bytes attributes();
	Bytes message();
	void mutate(Bytes &bytes);
	void join(Socket &socket);
	void take_answers(Socket &socket);

	std::mt19937_64 random_;
	std::vector<std::unique_ptr<Socket>> sockets_;
	Family family_;
};

// The module may be unloaded and loaded again; the family then has another number
void Fuzzer::find()
{
	Socket socket;

	family_ = find_family(socket, RDMA_MPA_FAMILY_NAME);
}

uint32_t Fuzzer::number()
{
	static constexpr uint32_t special[] = {
		0, 1, 2, 3, 4, 5, 7, 8, 0x7f, 0x80, 0xff, 0x100, 0x3ffd, 0x3ffe, 0x3fff, 0x4000, 0x7fff, 0x8000, 0xffff,
		0x10000, 3600000, 3600001, 0x7fffffff, 0x80000000, 0xffffffff,
	};

	switch (below(4)) {
	case 0:
		return static_cast<uint32_t>(random_());
	case 1:
		return special[below(std::size(special))];
	default:
		return below(4);
	}
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
		const auto len = static_cast<uint16_t>(number());

		std::memcpy(bytes.data() + at, &len, sizeof(len));
	}
}

// Adds a number, most of the time with its 4 octets
void Fuzzer::add_u32(Bytes &bytes, uint16_t attr, uint32_t value)
{
	Bytes content(one_in(16) ? below(64) : sizeof(value));

	std::memcpy(content.data(), &value, std::min(content.size(), sizeof(value)));
	add(bytes, attr, content, false);
}

Bytes Fuzzer::order()
{
	Bytes bytes;

	for (uint32_t n = below(one_in(8) ? 200 : 4); n; n--)
		add_u32(bytes, static_cast<uint16_t>(one_in(16) ? below(16) : uint32_t{RDMA_MPA_A_RTR_ORDER_KIND}),
			one_in(8) ? number() : 1U << below(3));
	return bytes;
}

Bytes Fuzzer::settings()
{
	Bytes bytes;

	for (uint32_t n = below(5); n; n--) {
		const auto attr = static_cast<uint16_t>(below(one_in(16) ? 64 : RDMA_MPA_A_POLICY_MAX + 2));

		if (one_in(64))
			add(bytes, attr, settings(), true);
		else if (attr == RDMA_MPA_A_POLICY_RTR_ORDER)
			add(bytes, attr, order(), true);
		else
			add_u32(bytes, attr, number());
	}
	return bytes;
}

Bytes Fuzzer::attributes()
{
	Bytes bytes;

	for (uint32_t n = below(5); n; n--) {
		switch (below(8)) {
		case 0:
		case 1:
			add(bytes, RDMA_MPA_A_POLICY, settings(), true);
			break;
		case 2:
			add_u32(bytes, static_cast<uint16_t>(below(one_in(8) ? 512 : RDMA_MPA_A_MAX + 2)), number());
			break;
		case 3:
			add_u32(bytes, RDMA_MPA_A_SETTING, below(RDMA_MPA_A_POLICY_MAX + 2));
			break;
		case 4:
			add_u32(bytes, RDMA_MPA_A_PORT, below(3));
			[[fallthrough]];
		default:
			add_u32(bytes, RDMA_MPA_A_DEV_INDEX, below(4));
		}
	}
	return bytes;
}

Bytes Fuzzer::message()
{
	const uint32_t command = one_in(32) ? below(256) : below(RDMA_MPA_CMD_MAX + 2);
	const auto seq = static_cast<uint32_t>(random_());
	uint16_t flags = NLM_F_REQUEST;

	if (one_in(2))
		flags |= NLM_F_ACK;
	if (one_in(3))
		flags |= NLM_F_DUMP;
	if (one_in(32))
		flags = static_cast<uint16_t>(random_());
	if (one_in(32)) {
		// asks for the kernel's tables of our attributes, like YNL
		Bytes which;
		std::array<uint8_t, 2> id{};

		std::memcpy(id.data(), &family_.id, id.size());
		append(which, CTRL_ATTR_FAMILY_ID, id);
		append_u32(which, CTRL_ATTR_OP, command);
		return make_message(GENL_ID_CTRL, CTRL_CMD_GETPOLICY, NLM_F_REQUEST | NLM_F_DUMP, seq, which);
	}
	Bytes bytes = make_message(family_.id, static_cast<uint8_t>(command), flags, seq,
				   one_in(4) && flags & NLM_F_DUMP ? Bytes{} : attributes());

	if (one_in(64)) {
		const uint32_t len = number();

		std::memcpy(bytes.data(), &len, sizeof(len));
	}
	return bytes;
}

// Length and command in the header stay in half of the cases, the family always: this program does not
// test commands of other families
void Fuzzer::mutate(Bytes &bytes)
{
	constexpr size_t header = sizeof(nlmsghdr) + GENL_HDRLEN;

	for (uint32_t n = 1 + below(4); n; n--) {
		const size_t first = one_in(8) || bytes.size() <= header ? 0 : header;
		const size_t at = first + below(static_cast<uint32_t>(bytes.size() - first));

		bytes[at] = one_in(2) ? static_cast<uint8_t>(number()) : static_cast<uint8_t>(bytes[at] ^ (1U << below(8)));
	}
	std::memcpy(bytes.data() + offsetof(nlmsghdr, nlmsg_type), &family_.id, sizeof(family_.id));
	if (one_in(16))
		bytes.resize(sizeof(nlmsghdr) + below(static_cast<uint32_t>(bytes.size() - sizeof(nlmsghdr) + 1)));
}

void Fuzzer::join(Socket &socket)
{
	try {
		const bool real = !family_.groups.empty() && !one_in(4);

		socket.join(real ? std::next(family_.groups.begin(), below(static_cast<uint32_t>(family_.groups.size())))->second :
				   number());
	} catch (const std::system_error &) {
		// no such group, or no permission to join it
	}
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
		socket = std::make_unique<Socket>(); // closes the old one in any state
	if (one_in(256))
		join(*socket);

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

// Every policy can still be read
void Fuzzer::check_alive()
{
	Socket socket;
	unsigned records = 0;
	bool whole;

	find();
	do {
		records = 0;
		whole = socket.request(family_.id, RDMA_MPA_CMD_POLICY_GET, NLM_F_REQUEST | NLM_F_DUMP, {},
				       [&](const nlmsghdr &, std::span<const uint8_t>) { records++; });
	} while (!whole && records);
	if (!records)
		throw std::runtime_error("the list of policies is empty");
}

void run(Fuzzer &fuzzer, std::chrono::steady_clock::time_point end, std::exception_ptr &failure)
try {
	for (uint64_t steps = 1; std::chrono::steady_clock::now() < end; steps++) {
		fuzzer.step();
		if (steps % 1024 == 0)
			fuzzer.check_alive();
	}
	fuzzer.check_alive();
} catch (...) {
	failure = std::current_exception();
}

} // namespace

int fuzz(std::chrono::seconds time, uint64_t seed, unsigned threads)
{
	const auto end = std::chrono::steady_clock::now() + time;
	std::vector<std::unique_ptr<Fuzzer>> fuzzers;
	std::vector<std::exception_ptr> failures(threads);
	std::vector<std::jthread> running;
	uint64_t sent = 0, answered = 0;

	for (unsigned i = 0; i < threads; i++) {
		fuzzers.push_back(std::make_unique<Fuzzer>(seed + i));
		running.emplace_back(run, std::ref(*fuzzers[i]), end, std::ref(failures[i]));
	}
	running.clear(); // waits for all
	for (const std::exception_ptr &failure : failures)
		if (failure)
			std::rethrow_exception(failure);
	for (const auto &fuzzer : fuzzers) {
		sent += fuzzer->sent;
		answered += fuzzer->answered;
	}
	fmt::print("{} datagrams sent, {} bytes of answers, {} a second\n", sent, answered,
		   sent / static_cast<uint64_t>(std::max<int64_t>(time.count(), 1)));
	// A run without any answer has tested nothing
	return sent && answered ? 0 : 1;
}

} // namespace nlfuzz
