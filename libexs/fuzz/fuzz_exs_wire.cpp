// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//
// A message that decodes encodes to the same octets, but for the padding behind a hello.
#include "../src/wire.h"

#include <algorithm>
#include <cstdlib>

using namespace libexs::wire;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const std::span bytes(data, size);
	if (const auto message = decode_message(bytes)) {
		const auto again = encode(*message);
		if (!std::ranges::equal(again, bytes.first(message_size)) || decode_message(again) != message)
			std::abort();
		if (message->address + message->length < message->address)
			std::abort();
	}
	if (const auto hello = decode_hello(bytes)) {
		const auto again = encode(*hello);
		// of other versions the version is all that is known
		if (hello->version == version && !std::ranges::equal(again, bytes.first(hello_size)))
			std::abort();
		if (hello->kind != Kind::refused && (hello->credits == 0 || hello->credits > max_credits ||
						     hello->immediate > max_immediate || hello->ird > max_depth))
			std::abort();
	}
	return 0;
}
