/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#ifndef DG_SHIM_MATH64_H
#define DG_SHIM_MATH64_H

#include <linux/types.h>

static inline u64 div64_u64(u64 dividend, u64 divisor)
{
	return dividend / divisor;
}

#endif
