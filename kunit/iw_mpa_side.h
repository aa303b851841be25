/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The two sides of a negotiation, for tests.
 */
#ifndef IW_MPA_SIDE_H
#define IW_MPA_SIDE_H

#include <linux/string.h>

#include "negotiate.h"

#define ULP		IW_MPA_DEPTH_ULP
#define COUNT_MAX	IW_MPA_DEPTH_MAX
#define BY_SEND		RDMA_MPA_RTR_SEND
#define BY_WRITE	RDMA_MPA_RTR_WRITE
#define BY_READ		RDMA_MPA_RTR_READ
#define ALL		IW_MPA_RTR_ALL
#define UNTOUCHED	0xa5

/**
 * struct setup - the local side of a case; zero stands for the usual value
 * @cap: largest IRD and ORD of the device, 128
 * @send: kinds of RTR the device can send, all
 * @recv: kinds of RTR the responder accepts, all
 * @offer: kinds of RTR the initiator offers, all
 * @pow2: the device rounds depths up to a power of two
 * @recv_one: the device can wait for one kind of RTR only
 * @read_first: prefer Read, then Send, then Write
 * @plain: not enhanced
 * @rev1: Rev 1, not enhanced
 * @model: connection model
 * @ird_ulp: the ULP manages IRD
 * @ord_ulp: the ULP manages ORD
 * @strict: reject a peer whose IRD is too small
 * @ird: the ULP's IRD
 * @ord: the ULP's ORD
 */
struct setup {
	u32 cap;
	u8 send;
	u8 recv;
	u8 offer;
	bool pow2;
	bool recv_one;
	bool read_first;
	bool plain;
	bool rev1;
	enum rdma_mpa_model model;
	bool ird_ulp;
	bool ord_ulp;
	bool strict;
	u32 ird;
	u32 ord;
};

/* The local side in the form that the tested functions take */
struct side {
	struct iw_mpa_caps caps;
	struct iw_mpa_policy policy;
	struct iw_mpa_local local;
};

static inline struct iw_mpa_policy usual_policy(void)
{
	return (struct iw_mpa_policy) {
		.rev = 2,
		.enhanced = true,
		.model = RDMA_MPA_MODEL_PEER_TO_PEER,
		.rtr_offer = ALL,
		.rtr_accept = ALL,
		.rtr_order = { BY_WRITE, BY_READ, BY_SEND },
		.crc = RDMA_MPA_CRC_IF_ASKED,
		.dialect = RDMA_MPA_DIALECT_RFC6581,
		.streams = 1,
		.idle = 1,
		.request_ms = 1000,
		.decide_ms = 1000,
		.rtr_ms = 1000,
		.reply_ms = 1000,
		.connect_ms = 1000,
	};
}

static inline struct iw_mpa_caps usual_caps(void)
{
	return (struct iw_mpa_caps) {
		.max_ird = 128, .max_ord = 128,
		.rtr_send = ALL, .rtr_recv = ALL,
	};
}

static inline void set_up(struct side *side, const struct setup *s)
{
	static const u8 read_first[] = { BY_READ, BY_SEND, BY_WRITE };
	struct iw_mpa_policy *policy = &side->policy;
	struct iw_mpa_caps *caps = &side->caps;

	*caps = usual_caps();
	if (s->cap) {
		caps->max_ird = s->cap;
		caps->max_ord = s->cap;
	}
	if (s->send)
		caps->rtr_send = s->send;
	if (s->recv)
		caps->rtr_recv = s->recv;
	caps->pow2_depths = s->pow2;
	caps->rtr_recv_one = s->recv_one;

	*policy = usual_policy();
	policy->rev = s->rev1 ? 1 : 2;
	policy->enhanced = !s->plain && !s->rev1;
	policy->model = s->model;
	if (s->offer)
		policy->rtr_offer = s->offer;
	if (s->read_first)
		memcpy(policy->rtr_order, read_first, sizeof(read_first));
	policy->ird_ulp = s->ird_ulp;
	policy->ord_ulp = s->ord_ulp;
	policy->short_ird = s->strict;

	side->local.caps = caps;
	side->local.policy = policy;
	side->local.ird = s->ird;
	side->local.ord = s->ord;
}

#endif /* IW_MPA_SIDE_H */
