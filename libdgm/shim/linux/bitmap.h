/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#ifndef DG_SHIM_BITMAP_H
#define DG_SHIM_BITMAP_H

#include <string.h>

#include <linux/types.h>

#define DG_SHIM_LONG (8 * sizeof(unsigned long))
#define DECLARE_BITMAP(name, bits) unsigned long name[((bits) + DG_SHIM_LONG - 1) / DG_SHIM_LONG]

static inline void bitmap_zero(unsigned long *map, unsigned int bits)
{
	memset(map, 0, (bits + DG_SHIM_LONG - 1) / DG_SHIM_LONG * sizeof(*map));
}

static inline void __set_bit(unsigned long bit, unsigned long *map)
{
	map[bit / DG_SHIM_LONG] |= 1UL << bit % DG_SHIM_LONG;
}

static inline bool __test_and_set_bit(unsigned long bit, unsigned long *map)
{
	bool was = map[bit / DG_SHIM_LONG] >> bit % DG_SHIM_LONG & 1;

	__set_bit(bit, map);
	return was;
}

static inline unsigned long dg_shim_find(const unsigned long *map, unsigned long size, unsigned long from,
					 unsigned long invert)
{
	while (from < size) {
		unsigned long word = (map[from / DG_SHIM_LONG] ^ invert) >> from % DG_SHIM_LONG;

		if (word) {
			from += (unsigned long)__builtin_ctzl(word);
			return from < size ? from : size;
		}
		from += DG_SHIM_LONG - from % DG_SHIM_LONG;
	}
	return size;
}

static inline unsigned long find_next_bit(const unsigned long *map, unsigned long size, unsigned long from)
{
	return dg_shim_find(map, size, from, 0);
}

static inline unsigned long find_next_zero_bit(const unsigned long *map, unsigned long size, unsigned long from)
{
	return dg_shim_find(map, size, from, ~0UL);
}

#endif
