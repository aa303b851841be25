/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Objects of the provider for siw_dg devices. See NOTICE.
 */
#ifndef _SIWDG_PROVIDER_H
#define _SIWDG_PROVIDER_H

#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/driver.h>
#include <infiniband/kern-abi.h>

#include "siw_dg-abi.h"

/*
 * Requests and responses: those of the RDMA core, then the module's. The module
 * finds its part by the length of the first.
 */
struct siwdg_create_cq_resp {
	struct ib_uverbs_create_cq_resp ibv_resp;
	struct siw_dg_create_cq_resp drv;
};
static_assert(offsetof(struct siwdg_create_cq_resp, drv) ==
	      sizeof(struct ib_uverbs_create_cq_resp), "padding");

struct siwdg_create_qp {
	struct ibv_create_qp ibv_cmd;
	struct siw_dg_create_qp_req drv;
};
static_assert(offsetof(struct siwdg_create_qp, drv) ==
	      sizeof(struct ibv_create_qp), "padding");

struct siwdg_create_qp_resp {
	struct ib_uverbs_create_qp_resp ibv_resp;
	struct siw_dg_create_qp_resp drv;
};
static_assert(offsetof(struct siwdg_create_qp_resp, drv) ==
	      sizeof(struct ib_uverbs_create_qp_resp), "padding");

struct siwdg_create_ah_resp {
	struct ib_uverbs_create_ah_resp ibv_resp;
	struct siw_dg_create_ah_resp drv;
};
static_assert(offsetof(struct siwdg_create_ah_resp, drv) ==
	      sizeof(struct ib_uverbs_create_ah_resp), "padding");

/**
 * struct siwdg_queue - a mapped ring
 * @ring: its head; NULL: not mapped
 * @length: of the mapping in bytes
 * @size: number of entries, a power of two
 * @next: the index that this program advances: producer of SQ and RQ, consumer
 *        of a CQ. The ring has a copy for the module
 */
struct siwdg_queue {
	struct siw_dg_ring *ring;
	size_t length;
	uint32_t size;
	uint32_t next;
};

struct siwdg_device {
	struct verbs_device base;
};

struct siwdg_context {
	struct verbs_context base;
};

struct siwdg_ah {
	struct ibv_ah base;
	uint32_t number;
};

struct siwdg_cq {
	struct ibv_cq base;
	pthread_spinlock_t lock;	/* protects @queue */
	struct siwdg_queue queue;
};

/**
 * struct siwdg_qp - a UD queue pair
 * @base: of libibverbs; @base.state is written under both locks
 * @cap: limits of a request
 * @signal_all: each send request completes with a CQE
 * @sq_lock: protects @sq; the outer lock
 * @sq: send queue
 * @rq_lock: protects @rq
 * @rq: receive queue; not mapped if the QP receives nothing
 */
struct siwdg_qp {
	struct ibv_qp base;
	struct ibv_qp_cap cap;
	bool signal_all;

	pthread_spinlock_t sq_lock;
	struct siwdg_queue sq;

	pthread_spinlock_t rq_lock;
	struct siwdg_queue rq;
};

#define to_siwdg_device(dev) container_of(dev, struct siwdg_device, base)
#define to_siwdg_context(ctx) \
	container_of(ctx, struct siwdg_context, base.context)
#define to_siwdg_ah(ah) container_of(ah, struct siwdg_ah, base)
#define to_siwdg_cq(cq) container_of(cq, struct siwdg_cq, base)
#define to_siwdg_qp(qp) container_of(qp, struct siwdg_qp, base)

/* Whether this provider has made the context */
bool siwdg_is_ours(const struct ibv_context *context);
/* As siwdg_fold(), with the numbers of the QP and of the zone */
int siwdg_fold_cq(struct ibv_cq *base, uint32_t qp_num, uint32_t zone,
		  int (*add)(void *map, uint64_t offset, uint64_t length),
		  void *map);
/* Returns 0 or an error number */
int siwdg_map(struct ibv_context *context, struct siwdg_queue *queue,
	      uint64_t key, uint32_t size, size_t entry_size);
void siwdg_unmap(struct siwdg_queue *queue);

#endif
