// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>

#define CHECK(condition)                                                                                               \
	do {                                                                                                           \
		if (!(condition)) [[unlikely]] {                                                                       \
			std::fprintf(stderr, "%s:%d: violated: %s\n", __FILE__, __LINE__, #condition);                 \
			std::abort();                                                                                  \
		}                                                                                                      \
	} while (0)

// Reads a fuzzer's input from its front; missing octets are 0
class Input {
public:
	Input(const uint8_t *data, size_t size) : rest_(data, size) {}
	[[nodiscard]] bool empty() const { return rest_.empty(); }
	[[nodiscard]] std::span<const uint8_t> rest() const { return rest_; }
	uint64_t number(unsigned octets)
	{
		uint64_t value = 0;
		while (octets-- > 0) {
			value = value << 8 | (rest_.empty() ? 0 : rest_[0]);
			rest_ = rest_.subspan(rest_.empty() ? 0 : 1);
		}
		return value;
	}

private:
	std::span<const uint8_t> rest_;
};
