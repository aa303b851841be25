// SPDX-License-Identifier: GPL-2.0
/*
 * The outcome of a session, for `rdma resource show qp|cm_id -dd`.
 */
#include <linux/errno.h>
#include <linux/export.h>

#include <rdma/restrack.h>

#include "device.h"
#include "name.h"
#include "session.h"

static const char *rtr_str(u8 rtr)
{
	switch (rtr) {
	case RDMA_MPA_RTR_SEND:
		return "send";
	case RDMA_MPA_RTR_WRITE:
		return "write";
	case RDMA_MPA_RTR_READ:
		return "read";
	default:
		return "none";
	}
}

/* A responder shows the RTR it received, if its device reports the kind */
static u8 rtr_used(const struct iw_mpa_device *dev,
		   const struct iw_mpa_session *s)
{
	bool seen = s->responder && !dev->driver.caps.rtr_offload;

	return seen ? s->outcome.rtr_seen : s->outcome.rtr;
}

/* 0x3fff is not a depth: the ULP manages it (RFC 6581 section 9.1) */
static int put_depth(struct sk_buff *msg, const char *name, u16 depth)
{
	if (depth == IW_MPA_DEPTH_ULP)
		return rdma_nl_put_driver_string(msg, name, "ulp");
	return rdma_nl_put_driver_u32(msg, name, depth);
}

static int put_outcome(struct sk_buff *msg, const struct iw_mpa_device *dev,
		       const struct iw_mpa_session *s)
{
	const struct iw_mpa_outcome *o = &s->outcome;
	/* SCTP has no revisions and its own checksum */
	bool mpa = dev->driver.caps.llp == RDMA_MPA_LLP_TCP;
	int rv = 0;

	if (mpa)
		rv = rdma_nl_put_driver_u32(msg, "mpa-rev", o->peer_rev);
	rv = rv ?:
	     rdma_nl_put_driver_string(msg, "model", o->rtr ?
				       "peer-to-peer" : "client-server") ?:
	     rdma_nl_put_driver_string(msg, "rtr", rtr_str(rtr_used(dev, s))) ?:
	     rdma_nl_put_driver_u32(msg, "ird", o->ird) ?:
	     rdma_nl_put_driver_u32(msg, "ord", o->ord);
	if (!rv && o->peer_known)
		rv = put_depth(msg, "peer-ird", o->peer_ird) ?:
		     put_depth(msg, "peer-ord", o->peer_ord);
	if (rv || !mpa)
		return rv;
	return rdma_nl_put_driver_string(msg, "crc", o->crc ? "on" : "off") ?:
	       rdma_nl_put_driver_string(msg, "segment",
					 o->large ? "large" : "mss");
}

/**
 * iw_mpa_fill_res - put a session's outcome into a resource tracking message
 * @msg: the message, inside a driver attribute nest
 * @dev: the device
 * @s: the session, which does not change meanwhile; zeroes for a listener
 *
 * For a driver's fill_res_qp_entry and fill_res_cm_id_entry.
 *
 * Return: 0 or -EMSGSIZE.
 */
int iw_mpa_fill_res(struct sk_buff *msg, const struct iw_mpa_device *dev,
		    const struct iw_mpa_session *s)
{
	int rv;

	rv = rdma_nl_put_driver_string(msg, "llp", iw_mpa_llp_str(dev));
	if (rv || s->state == IW_MPA_IDLE)
		return rv;
	rv = rdma_nl_put_driver_string(msg, "mpa-state",
				       iw_mpa_state_str(s->state)) ?:
	     rdma_nl_put_driver_string(msg, "mpa-role", s->responder ?
				       "responder" : "initiator");
	if (rv || (s->state != IW_MPA_RDMA && s->state != IW_MPA_RTR_WAIT))
		return rv;
	return put_outcome(msg, dev, s);
}
EXPORT_SYMBOL_GPL(iw_mpa_fill_res);
