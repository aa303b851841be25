/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The counters of a port, and resource tracking of QPs and connections.
 */
#ifndef _SIW_RESTRACK_H
#define _SIW_RESTRACK_H

#include <linux/types.h>

struct ib_device;
struct ib_qp;
struct rdma_cm_id;
struct rdma_hw_stats;
struct sk_buff;

int siw_fill_res_qp(struct sk_buff *msg, struct ib_qp *base_qp);
int siw_fill_res_cm_id(struct sk_buff *msg, struct rdma_cm_id *id);
struct rdma_hw_stats *siw_alloc_stats(struct ib_device *base_dev, u32 port);
int siw_get_stats(struct ib_device *base_dev, struct rdma_hw_stats *stats,
		  u32 port, int index);

#endif
