/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The kernel's allocator, watched by a harness. With AddressSanitizer it uses
 * malloc(). Without, an inaccessible page follows each allocation, and freed
 * memory is overwritten.
 */
#ifndef SHIM_ALLOCATOR_H
#define SHIM_ALLOCATOR_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

void *shim_allocate(size_t size);
void shim_free(void *p);

/* Number of current allocations */
unsigned int shim_allocations(void);
/* The requested size of an allocation */
size_t shim_size(const void *p);
/* Makes the next allocation fail */
void shim_fail_next(bool fail);
/* Has an allocation failed since shim_fail_next()? */
bool shim_failed(void);

#ifdef __cplusplus
}
#endif

#endif
