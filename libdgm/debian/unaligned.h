/* SPDX-License-Identifier: GPL-2.0 */
/* Linux 6.1 has this header as asm/unaligned.h */
#include <linux/version.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 12, 0)
#include <asm/unaligned.h>
#else
#include_next <linux/unaligned.h>
#endif
