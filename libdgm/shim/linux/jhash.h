/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#ifndef DG_SHIM_JHASH_H
#define DG_SHIM_JHASH_H

#include <linux/types.h>

/* Not Jenkins' hash, but as good for a table: MurmurHash3's mixing */
static inline u32 jhash2(const u32 *key, u32 length, u32 initval)
{
	u32 hash = initval, i;

	for (i = 0; i < length; i++) {
		u32 word = key[i] * 0xcc9e2d51u;

		word = (word << 15 | word >> 17) * 0x1b873593u;
		hash ^= word;
		hash = (hash << 13 | hash >> 19) * 5 + 0xe6546b64u;
	}
	hash = (hash ^ hash >> 16) * 0x85ebca6bu;
	hash = (hash ^ hash >> 13) * 0xc2b2ae35u;
	return hash ^ hash >> 16;
}

#endif
