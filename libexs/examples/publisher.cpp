// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//
// Usage: exs-publisher ADDRESS PORT [KEY]
//
// Without a key: publishes the lines "KEY VALUE" of standard input in a table, which clients read without taking any
// time of this program's. With one: prints the value that is published there.
#include <exs.hpp>

#include <atomic>
#include <cstring>
#include <exception>
#include <iostream>
#include <thread>

namespace {

// A copy begins with begin. A slot that is being written has its number in end already: take another copy then.
struct Slot {
	uint64_t begin;
	char key[48], value[192];
	uint64_t end;
};
constexpr size_t slots = 256;

uint64_t place_of(const std::string &key)
{
	return std::hash<std::string>()(key) % slots * sizeof(Slot);
}

void write(std::byte *at, const std::string &key, const std::string &value)
{
	auto *slot = reinterpret_cast<Slot *>(at);
	const std::atomic_ref begin(slot->begin), end(slot->end);
	const uint64_t version = begin + 1;
	end = version;
	std::atomic_thread_fence(std::memory_order_seq_cst);
	std::strncpy(slot->key, key.c_str(), sizeof(slot->key) - 1);
	std::strncpy(slot->value, value.c_str(), sizeof(slot->value) - 1);
	begin = version;
}

exs::task<> serve(exs::socket peer, const exs::memory &table)
{
	const exs::memory nothing(1);
	const auto published = peer.publish(table);
	static_cast<void>(co_await peer.recv(nothing)); // until the client has gone
}

exs::task<> listen(exs::loop &loop, exs::endpoint at, const exs::memory &table)
{
	exs::socket listener(loop, at.family(), SOCK_SEQPACKET);
	listener.set(EXS_SHARED, 1); // registers the table once, not for each client; clients must trust each other
	listener.bind(at);
	listener.listen(16);
	std::cout << "listening" << std::endl;
	for (;;)
		loop.spawn(serve((co_await listener.accept()).value(), table));
}

exs::task<> look_up(exs::loop &loop, exs::endpoint to, std::string key)
{
	exs::socket peer(loop, to.family(), SOCK_SEQPACKET);
	(co_await peer.connect(to)).value();
	const exs::memory copy(sizeof(Slot));
	const auto &slot = *reinterpret_cast<const Slot *>(copy.text());
	do {
		(co_await peer.recv_at(copy, place_of(key))).value();
	} while (slot.begin != slot.end);
	std::cout << (key == slot.key ? slot.value : "(nothing)") << std::endl;
	static_cast<void>(co_await peer.close());
}

} // namespace

int main(int argc, char **argv)
try {
	if (argc != 3 && argc != 4) {
		std::cerr << "usage: exs-publisher ADDRESS PORT [KEY]\n";
		return 2;
	}
	const exs::endpoint address(argv[1], static_cast<uint16_t>(std::stoi(argv[2])));
	const exs::library library;
	exs::loop loop;
	const exs::memory table(slots * sizeof(Slot));
	if (argc == 4) {
		loop.run(look_up(loop, address, argv[3]));
		return 0;
	}
	std::thread([&table] {
		for (std::string key, value; std::cin >> key && std::getline(std::cin >> std::ws, value);)
			write(table.bytes().data() + place_of(key), key, value);
	}).detach();
	loop.spawn(listen(loop, address, table));
	loop.run();
} catch (const std::exception &error) {
	std::cerr << error.what() << '\n';
	return 1;
}
