/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#ifndef DG_SHIM_UNALIGNED_H
#define DG_SHIM_UNALIGNED_H

#include <endian.h>
#include <string.h>

#include <linux/types.h>

#define DG_SHIM_UNALIGNED(name, bits, end)				\
	static inline uint##bits##_t get_unaligned_##name(const void *p)	\
	{								\
		uint##bits##_t value;					\
									\
		memcpy(&value, p, sizeof(value));			\
		return end##bits##toh(value);				\
	}								\
	static inline void put_unaligned_##name(uint##bits##_t value, void *p) \
	{								\
		value = hto##end##bits(value);				\
		memcpy(p, &value, sizeof(value));			\
	}

DG_SHIM_UNALIGNED(be16, 16, be)
DG_SHIM_UNALIGNED(be32, 32, be)
DG_SHIM_UNALIGNED(be64, 64, be)
DG_SHIM_UNALIGNED(le32, 32, le)

#endif
