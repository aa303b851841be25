/* SPDX-License-Identifier: GPL-2.0 */
#ifndef SHIM_ASM_BYTEORDER_H
#define SHIM_ASM_BYTEORDER_H

#include_next <asm/byteorder.h>

#define be32_to_cpu __be32_to_cpu
#define cpu_to_be32 __cpu_to_be32

#endif
