/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The kernel's allocator, under the eyes of a harness. With AddressSanitizer each
 * allocation is one of malloc(); without, it ends where a page begins that must
 * not be touched, and what is freed is overwritten.
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

/* How many allocations there are */
unsigned int shim_allocations(void);
/* The size that was asked for */
size_t shim_size(const void *p);
/* The next allocation fails, if there is one */
void shim_fail_next(bool fail);
/* Has one failed since shim_fail_next()? */
bool shim_failed(void);

#ifdef __cplusplus
}
#endif

#endif
