/* SPDX-License-Identifier: GPL-2.0 */
#ifndef SHIM_LINUX_LOG2_H
#define SHIM_LINUX_LOG2_H

#include <linux/types.h>

static inline bool is_power_of_2(unsigned long n)
{
	return n && !(n & (n - 1));
}

/* Both undefined for 0, as in the kernel: UBSan reports the shift */
static inline unsigned long rounddown_pow_of_two(unsigned long n)
{
	return 1UL << (63 - (n ? __builtin_clzl(n) : -1));
}

static inline unsigned long roundup_pow_of_two(unsigned long n)
{
	return n == 1 ? 1 : 2 * rounddown_pow_of_two(n - 1);
}

#endif
