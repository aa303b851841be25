// SPDX-License-Identifier: GPL-2.0
/*
 * Replacements for the C library's compare functions. Those use vectors that
 * reach into the inaccessible page. The processor then takes a thousand times as
 * long to find that there is no fault. Not for the sanitized build.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

int memcmp(const void *a, const void *b, size_t n)
{
	const uint8_t *x = a, *y = b;

	for (; n >= sizeof(uint64_t); n -= sizeof(uint64_t)) {
		uint64_t v, w;

		__builtin_memcpy(&v, x, sizeof(v));
		__builtin_memcpy(&w, y, sizeof(w));
		if (v != w)
			break;
		x += sizeof(v);
		y += sizeof(w);
	}
	for (; n && *x == *y; n--) {
		x++;
		y++;
	}
	return n ? *x - *y : 0;
}

int bcmp(const void *a, const void *b, size_t n)
{
	return memcmp(a, b, n);
}
