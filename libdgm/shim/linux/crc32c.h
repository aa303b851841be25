/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#ifndef DG_SHIM_CRC32C_H
#define DG_SHIM_CRC32C_H

#include <linux/types.h>

/* src/crc32c.cpp */
uint32_t dgm_crc32c(uint32_t crc, const void *data, size_t length);
#define crc32c dgm_crc32c

#endif
