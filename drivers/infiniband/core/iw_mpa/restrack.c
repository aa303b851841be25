// SPDX-License-Identifier: GPL-2.0
/*
 * What was negotiated, for `rdma resource show qp -dd`.
 */
#include <linux/errno.h>
#include <linux/export.h>

#include <rdma/iw_mpa.h>
#include <rdma/restrack.h>

static const char *rtr_str(u8 rtr)
{
	switch (rtr) {
	case IW_MPA_RTR_SEND:
		return "send";
	case IW_MPA_RTR_WRITE:
		return "write";
	case IW_MPA_RTR_READ:
		return "read";
	default:
		return "none";
	}
}

/* A responder goes by what it has seen, if it can see it */
static u8 rtr_used(const struct iw_mpa_session *s)
{
	return s->responder && !s->caps.rtr_offload ? s->rtr_seen :
						      s->outcome.rtr;
}

/* 0x3fff is not a number, and must not look like one (IRD-25) */
static int put_depth(struct sk_buff *msg, const char *name, u16 depth)
{
	if (depth == IW_MPA_DEPTH_ULP)
		return rdma_nl_put_driver_string(msg, name, "ulp");
	return rdma_nl_put_driver_u32(msg, name, depth);
}

static int put_peer(struct sk_buff *msg, const struct iw_mpa_decision *d)
{
	if (!d->peer_known)
		return 0;
	return put_depth(msg, "peer-ird", d->peer_ird) ?:
	       put_depth(msg, "peer-ord", d->peer_ord);
}

/**
 * iw_mpa_fill_res - put a session's outcome into a resource tracking message
 * @msg: the message, inside a driver attribute nest
 * @s: the session
 * @llp: name of the lower layer protocol, "tcp"
 *
 * For a driver's fill_res_qp_entry and fill_res_cm_id_entry. Called like an entry point, with the
 * session not changing meanwhile.
 *
 * Return: 0 or -EMSGSIZE.
 */
int iw_mpa_fill_res(struct sk_buff *msg, const struct iw_mpa_session *s,
		    const char *llp)
{
	const struct iw_mpa_decision *d = &s->outcome;
	int rv;

	rv = rdma_nl_put_driver_string(msg, "llp", llp);
	/* A listener has nothing to tell */
	if (rv || s->state == IW_MPA_IDLE)
		return rv;

	rv = rdma_nl_put_driver_string(msg, "mpa-state",
				       iw_mpa_state_str(s->state)) ?:
	     rdma_nl_put_driver_string(msg, "mpa-role", s->responder ?
				       "responder" : "initiator");
	if (rv || (s->state != IW_MPA_RDMA && s->state != IW_MPA_RTR_WAIT))
		return rv;

	return rdma_nl_put_driver_u32(msg, "mpa-rev", s->peer.rev) ?:
	       rdma_nl_put_driver_string(msg, "model", d->rtr ?
					 "peer-to-peer" : "client-server") ?:
	       rdma_nl_put_driver_string(msg, "rtr",
					 rtr_str(rtr_used(s))) ?:
	       rdma_nl_put_driver_u32(msg, "ird", d->ird) ?:
	       rdma_nl_put_driver_u32(msg, "ord", d->ord) ?:
	       put_peer(msg, d) ?:
	       rdma_nl_put_driver_string(msg, "crc",
					 s->sent_crc || s->peer.crc ?
					 "on" : "off");
}
EXPORT_SYMBOL_GPL(iw_mpa_fill_res);
