// SPDX-License-Identifier: GPL-2.0
/*
 * The negotiation of both sides. Every rule of RFC 6581 section 9 and every
 * tie break is in this file.
 *
 * The functions are pure: no allocation, no locks, no kernel services; any
 * context. They do not depend on MPA framing, so that SCTP (RFC 6581 section 7)
 * can use them.
 */
#include <linux/errno.h>
#include <linux/export.h>
#include <linux/kernel.h>
#include <linux/log2.h>
#include <linux/minmax.h>
#include <linux/string.h>

#include <kunit/visibility.h>

#include "negotiate.h"

static u16 wire_depth(u32 depth, bool ulp_managed)
{
	if (ulp_managed)
		return IW_MPA_DEPTH_ULP;
	return min_t(u32, depth, IW_MPA_DEPTH_MAX);
}

/* Largest outbound depth that the device does not round to more than @depth */
static u16 fit_ord(const struct iw_mpa_caps *caps, u16 depth)
{
	return caps->pow2_depths && depth ? rounddown_pow_of_two(depth) : depth;
}

/* Inbound depth that the device installs if @depth is requested */
static u16 fit_ird(const struct iw_mpa_caps *caps, u16 depth)
{
	if (caps->pow2_depths && depth)
		depth = wire_depth(min_t(u32, roundup_pow_of_two(depth),
					 caps->max_ird), false);
	return depth;
}

static bool depths_within_caps(const struct iw_mpa_local *local)
{
	return local->ird <= local->caps->max_ird &&
	       local->ord <= local->caps->max_ord;
}

/**
 * iw_mpa_make_request - make the contents of a Request
 * @local: the initiator
 * @request: filled
 *
 * RFC 6581 sections 9.1, 9.2 and 10. Any context.
 *
 * Return: 0, or -EINVAL if a depth exceeds the device's limit.
 */
int iw_mpa_make_request(const struct iw_mpa_local *local,
			struct iw_mpa_msg *request)
{
	const struct iw_mpa_policy *policy = local->policy;

	memset(request, 0, sizeof(*request));
	if (!depths_within_caps(local))
		return -EINVAL;
	if (policy->rev < 2 || !policy->enhanced)
		return 0;

	request->enhanced = true;
	request->enh.ird = wire_depth(local->ird, policy->ird_ulp);
	request->enh.ord = wire_depth(local->ord, policy->ord_ulp);
	if (policy->model != RDMA_MPA_MODEL_CLIENT_SERVER) {
		request->enh.p2p = true;
		request->enh.rtr = iw_mpa_kinds_offered(policy, local->caps);
	}
	return 0;
}
EXPORT_SYMBOL_IF_KUNIT(iw_mpa_make_request);

static void note_peer_depths(const struct iw_mpa_msg *msg, struct iw_mpa_decision *d)
{
	if (!msg->enhanced)
		return;
	d->peer_known = true;
	d->peer_ird = msg->enh.ird;
	d->peer_ord = msg->enh.ord;
}

static void start_decision(const struct iw_mpa_local *local,
			   const struct iw_mpa_msg *msg,
			   struct iw_mpa_decision *d)
{
	memset(d, 0, sizeof(*d));
	d->ird = wire_depth(min_t(u32, local->ird, local->caps->max_ird), false);
	d->ord = wire_depth(min_t(u32, local->ord, local->caps->max_ord), false);
	d->read_slots = d->ord;
	note_peer_depths(msg, d);
}

static void fail_decision(struct iw_mpa_decision *d,
			  enum iw_mpa_verdict verdict, int status,
			  enum rdma_mpa_ecode ecode)
{
	d->verdict = verdict;
	d->status = status;
	d->ecode = ecode;
}

/* RFC 6581 section 9.1; IW_MPA_DEPTH_ULP of either side keeps our own depth */
static bool settle_initiator_depths(const struct iw_mpa_local *local,
				    const struct iw_mpa_enh *asked,
				    const struct iw_mpa_enh *got,
				    struct iw_mpa_decision *d)
{
	if (asked->ird != IW_MPA_DEPTH_ULP && got->ord != IW_MPA_DEPTH_ULP) {
		if (got->ord > local->caps->max_ird)
			return false;
		d->ird = fit_ird(local->caps, max(d->ird, got->ord));
	}
	if (asked->ord != IW_MPA_DEPTH_ULP && got->ird != IW_MPA_DEPTH_ULP)
		d->ord = fit_ord(local->caps, min(d->ord, got->ird));

	d->read_slots = d->ord;
	return true;
}

/* The kind of @kinds that the policy prefers, 0 if @kinds is empty */
static u8 preferred_kind(const struct iw_mpa_policy *policy, u8 kinds)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(policy->rtr_order); i++)
		if (kinds & policy->rtr_order[i])
			return policy->rtr_order[i];
	return 0;
}

/* The kind of RTR to send, 0 if both sides have none in common */
static u8 pick_rtr(const struct iw_mpa_local *local,
		   const struct iw_mpa_enh *got)
{
	/* Includes kinds that we can send but did not offer */
	u8 able = got->rtr & iw_mpa_kinds_able(local->caps);

	/* A Read against an IRD of 0 would overrun the peer */
	if (!got->ird)
		able &= ~RDMA_MPA_RTR_READ;

	return preferred_kind(local->policy, able);
}

/**
 * iw_mpa_negotiate_initiator - act on a Reply
 * @local: the initiator
 * @request: its Request
 * @reply: the peer's Reply
 * @decision: filled
 *
 * RFC 6581 sections 9.1, 9.2, 9.3 and 10. Any context.
 */
void iw_mpa_negotiate_initiator(const struct iw_mpa_local *local,
				const struct iw_mpa_msg *request,
				const struct iw_mpa_msg *reply,
				struct iw_mpa_decision *decision)
{
	struct iw_mpa_decision *d = decision;

	start_decision(local, reply, d);
	if (reply->reject) {
		fail_decision(d, IW_MPA_REJECTED, -ECONNREFUSED, RDMA_MPA_ECODE_NONE);
		return;
	}
	if (reply->enhanced != request->enhanced) {
		fail_decision(d, IW_MPA_DROP, -EPROTO, RDMA_MPA_ECODE_BAD_FRAME);
		return;
	}
	if (!reply->enhanced)
		return;

	/* Depths are settled before the RTR */
	if (!settle_initiator_depths(local, &request->enh, &reply->enh, d)) {
		fail_decision(d, IW_MPA_TERMINATE, -ENOMEM, RDMA_MPA_ECODE_IRD);
		return;
	}
	if (!reply->enh.p2p && !request->enh.p2p)
		return;
	/* At least one side wants peer-to-peer (A bit): it needs an RTR */
	d->rtr = reply->enh.p2p ? pick_rtr(local, &reply->enh) : 0;
	if (!d->rtr) {
		fail_decision(d, IW_MPA_TERMINATE, -EPROTO, RDMA_MPA_ECODE_RTR);
		return;
	}
	/* This slot is for the RTR alone; the ULP's ORD stays 0 */
	if (d->rtr == RDMA_MPA_RTR_READ && !d->read_slots)
		d->read_slots = 1;
}
EXPORT_SYMBOL_IF_KUNIT(iw_mpa_negotiate_initiator);

/**
 * iw_mpa_make_reject - make the contents of a reject
 * @local: the responder; its @ird and @ord are ignored
 * @request: the peer's Request
 * @reply: filled with a reject that lists the limits of the device
 *
 * RFC 6581 sections 9.1, 9.2 and 10. Any context.
 */
void iw_mpa_make_reject(const struct iw_mpa_local *local,
			const struct iw_mpa_msg *request,
			struct iw_mpa_msg *reply)
{
	const struct iw_mpa_enh *req = &request->enh;

	memset(reply, 0, sizeof(*reply));
	reply->reject = true;
	reply->enhanced = request->enhanced;
	if (!reply->enhanced)
		return;

	reply->enh.ird = req->ord == IW_MPA_DEPTH_ULP ? IW_MPA_DEPTH_ULP :
			 wire_depth(min(req->ord, local->caps->max_ird), false);
	reply->enh.ord = req->ird == IW_MPA_DEPTH_ULP ? IW_MPA_DEPTH_ULP :
			 wire_depth(min(req->ird, local->caps->max_ord), false);
	if (req->p2p) {
		reply->enh.p2p = true;
		reply->enh.rtr = iw_mpa_kinds_accepted(local->policy, local->caps);
	}
}
EXPORT_SYMBOL_IF_KUNIT(iw_mpa_make_reject);

static void refuse_request(const struct iw_mpa_local *local,
			   const struct iw_mpa_msg *request,
			   struct iw_mpa_decision *d, int status,
			   enum rdma_mpa_ecode ecode)
{
	fail_decision(d, IW_MPA_REJECTED, status, ecode);
	d->rtr = 0;
	iw_mpa_make_reject(local, request, &d->reply);
}

/*
 * Returns the kinds that the peer offers and we accept, or if none match, all
 * kinds that we accept: the peer then decides (RFC 6581 section 9.2). Returns
 * only one kind if the device can expect only one (section 9.2: MAY leave out
 * options).
 */
static u8 answer_rtr(const struct iw_mpa_local *local,
		     const struct iw_mpa_enh *req, bool ird_is_ours,
		     u16 ird_if_not)
{
	u8 own = iw_mpa_kinds_accepted(local->policy, local->caps);

	/* An IRD that stays 0 does not allow a Read */
	if (!local->caps->max_ird || (!ird_is_ours && !ird_if_not))
		own &= ~RDMA_MPA_RTR_READ;

	own = req->rtr & own ?: own;
	return local->caps->rtr_recv_one ?
	       preferred_kind(local->policy, own) : own;
}

/* RFC 6581 section 9.1. Returns false if the peer's IRD is too small. */
static bool settle_responder_depths(const struct iw_mpa_local *local,
				    const struct iw_mpa_enh *req,
				    bool ird_is_ours, struct iw_mpa_decision *d)
{
	const struct iw_mpa_caps *caps = local->caps;
	struct iw_mpa_enh *rep = &d->reply.enh;
	u16 want = req->ord;

	/* An RTR by Read uses an entry of the IRD */
	if (rep->rtr & RDMA_MPA_RTR_READ)
		want = max_t(u16, want, 1);
	if (ird_is_ours)
		d->ird = fit_ird(caps, min(max(d->ird, want), caps->max_ird));
	rep->ird = wire_depth(d->ird, req->ord == IW_MPA_DEPTH_ULP);

	rep->ord = IW_MPA_DEPTH_ULP;
	if (req->ird == IW_MPA_DEPTH_ULP)
		return true;
	if (local->policy->short_ird == RDMA_MPA_SHORT_IRD_REJECT &&
	    local->ord > req->ird)
		return false;
	d->ord = fit_ord(caps, min(d->ord, req->ird));
	rep->ord = wire_depth(d->ord, false);
	return true;
}

/**
 * iw_mpa_negotiate_responder - answer a Request that the ULP accepts
 * @local: the responder, with the depths its ULP passed to accept
 * @request: the peer's Request
 * @decision: filled; the responder always sends its reply
 *
 * The depths in the reply are exactly those to install. RFC 6581 sections
 * 9.1, 9.2, 9.3 and 10. Any context.
 */
void iw_mpa_negotiate_responder(const struct iw_mpa_local *local,
				const struct iw_mpa_msg *request,
				struct iw_mpa_decision *decision)
{
	const struct iw_mpa_enh *req = &request->enh;
	struct iw_mpa_decision *d = decision;
	bool ird_is_ours;

	start_decision(local, request, d);
	if (!depths_within_caps(local)) {
		refuse_request(local, request, d, -EINVAL, RDMA_MPA_ECODE_LOCAL);
		return;
	}
	if (local->policy->model == RDMA_MPA_MODEL_PEER_TO_PEER_REQUIRED &&
	    !(request->enhanced && req->p2p)) {
		refuse_request(local, request, d, -EPROTO, RDMA_MPA_ECODE_RTR);
		return;
	}
	if (!request->enhanced)
		return;

	ird_is_ours = req->ord != IW_MPA_DEPTH_ULP && !local->policy->ird_ulp;
	d->reply.enhanced = true;
	if (req->p2p) {
		d->rtr = answer_rtr(local, req, ird_is_ours, d->ird);
		if (!d->rtr) {
			refuse_request(local, request, d, -EPROTO, RDMA_MPA_ECODE_RTR);
			return;
		}
		d->reply.enh.p2p = true;
		d->reply.enh.rtr = d->rtr;
	}
	if (!settle_responder_depths(local, req, ird_is_ours, d)) {
		refuse_request(local, request, d, -ENOMEM, RDMA_MPA_ECODE_IRD);
		d->reply.enh.ord = wire_depth(local->ord, false);
		return;
	}
	d->read_slots = d->ord;
}
EXPORT_SYMBOL_IF_KUNIT(iw_mpa_negotiate_responder);
