/* SPDX-License-Identifier: GPL-2.0 */
#ifndef SHIM_LINUX_KERNEL_H
#define SHIM_LINUX_KERNEL_H

#include <stdint.h>
#include <stdio.h>

#define U32_MAX UINT32_MAX

/* iw_mpa uses only the text, never the returned length */
#define scnprintf(...) ((void)snprintf(__VA_ARGS__))
#define U32_MAX UINT32_MAX
#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))
#define DIV_ROUND_UP(n, d) (((n) + (d) - 1) / (d))

#endif
