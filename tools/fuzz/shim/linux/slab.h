/* SPDX-License-Identifier: GPL-2.0 */
#ifndef SHIM_LINUX_SLAB_H
#define SHIM_LINUX_SLAB_H

#include <string.h>

#include <linux/types.h>

#include "../allocator.h"

typedef unsigned int gfp_t;

#define GFP_KERNEL 0

static inline void *kmalloc(size_t size, gfp_t gfp)
{
	(void)gfp;
	return shim_allocate(size);
}

static inline void *kzalloc(size_t size, gfp_t gfp)
{
	void *p = kmalloc(size, gfp);

	return p ? memset(p, 0, size) : NULL;
}

static inline void *kmemdup(const void *src, size_t size, gfp_t gfp)
{
	void *p = kmalloc(size, gfp);

	return p ? memcpy(p, src, size) : NULL;
}

static inline void kfree(const void *p)
{
	shim_free((void *)p);
}

#endif
