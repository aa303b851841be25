/* SPDX-License-Identifier: GPL-2.0 */
#ifndef SHIM_LINUX_UNALIGNED_H
#define SHIM_LINUX_UNALIGNED_H

#include <linux/types.h>

static inline u16 get_unaligned_be16(const void *p)
{
	const u8 *b = p;

	return (u16)(b[0] << 8 | b[1]);
}

static inline u32 get_unaligned_be32(const void *p)
{
	const u8 *b = p;

	return (u32)get_unaligned_be16(b) << 16 | get_unaligned_be16(b + 2);
}

static inline void put_unaligned_be16(u16 value, void *p)
{
	u8 *b = p;

	b[0] = (u8)(value >> 8);
	b[1] = (u8)value;
}

static inline void put_unaligned_be32(u32 value, void *p)
{
	put_unaligned_be16((u16)(value >> 16), p);
	put_unaligned_be16((u16)value, (u8 *)p + 2);
}

#endif
