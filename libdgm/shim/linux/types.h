/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* User-space replacements for the kernel's headers of these names, for dg_wire.c, dg_track.c and dg_error.c alone. */
#ifndef DG_SHIM_TYPES_H
#define DG_SHIM_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include_next <linux/types.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t s32;
typedef int64_t s64;

#endif
