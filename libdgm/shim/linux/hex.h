/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#ifndef DG_SHIM_HEX_H
#define DG_SHIM_HEX_H

#include <linux/types.h>

static inline int hex_to_bin(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Lower case alone */
static inline int hex2bin(u8 *dst, const char *src, size_t count)
{
	for (; count > 0; count--, src += 2) {
		const int high = hex_to_bin(src[0]), low = hex_to_bin(src[1]);

		if (high < 0 || low < 0)
			return -1;
		*dst++ = high << 4 | low;
	}
	return 0;
}

#endif
