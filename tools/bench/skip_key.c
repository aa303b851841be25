// SPDX-License-Identifier: GPL-2.0
/*
 * A library to preload: it makes an unused completion queue of 1 MiB first.
 *
 * Unmodified siw fails to create the queue whose pages start at offset 0x90000
 * of the device, which is a program's 72nd QP (see patches/6.1: "Never give a
 * queue the mmap key that means none"). The unused queue covers this offset, so
 * that programs such as cmtime can be measured with more connections.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>

#include <infiniband/verbs.h>

typedef struct ibv_cq *create_cq(struct ibv_context *, int, void *,
				 struct ibv_comp_channel *, int);

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe,
			     void *cq_context, struct ibv_comp_channel *channel,
			     int comp_vector)
{
	static create_cq *real;

	if (!real) {
		real = (create_cq *)dlvsym(RTLD_NEXT, "ibv_create_cq",
					   "IBVERBS_1.1");
		if (!real)
			abort();
		if (!real(context, 32768, NULL, NULL, 0))
			abort();
	}
	return real(context, cqe, cq_context, channel, comp_vector);
}
