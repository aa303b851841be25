// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//
// Usage: exs-echo ADDRESS PORT [TEXT]
//
// Without a text: sends back what clients send. With one: sends it there and prints what comes back.
#include <exs.hpp>

#include <algorithm>
#include <exception>
#include <iostream>

namespace {

constexpr size_t largest = 65536;

exs::task<> serve(exs::socket peer)
{
	const exs::memory buffer(largest);
	for (;;) {
		auto got = co_await peer.recv(buffer);
		// an error is the client's affair
		if (!got || got->eof || !co_await peer.send(buffer.slice(0, got->length)))
			break;
	}
	static_cast<void>(co_await peer.close());
}

exs::task<> listen(exs::loop &loop, exs::endpoint at)
{
	exs::socket listener(loop, at.family(), SOCK_SEQPACKET);
	listener.bind(at);
	listener.listen(16);
	std::cout << "listening" << std::endl;
	for (;;)
		loop.spawn(serve((co_await listener.accept()).value()));
}

exs::task<> ask(exs::loop &loop, exs::endpoint to, std::string text)
{
	exs::socket peer(loop, to.family(), SOCK_SEQPACKET);
	(co_await peer.connect(to)).value();
	const exs::memory sent(std::max<size_t>(1, text.size())), answer(largest);
	std::ranges::copy(text, sent.text());
	(co_await peer.send(sent.slice(0, text.size()))).value();
	const size_t length = (co_await peer.recv(answer)).value().length;
	std::cout << std::string_view(answer.text(), length) << std::endl;
	static_cast<void>(co_await peer.close());
}

} // namespace

int main(int argc, char **argv)
try {
	if (argc != 3 && argc != 4) {
		std::cerr << "usage: exs-echo ADDRESS PORT [TEXT]\n";
		return 2;
	}
	const exs::endpoint address(argv[1], static_cast<uint16_t>(std::stoi(argv[2])));
	const exs::library library;
	exs::loop loop;
	loop.spawn(argc == 3 ? listen(loop, address) : ask(loop, address, argv[3]));
	loop.run();
} catch (const std::exception &error) {
	std::cerr << error.what() << '\n';
	return 1;
}
