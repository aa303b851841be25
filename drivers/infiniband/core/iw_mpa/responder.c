// SPDX-License-Identifier: GPL-2.0
/*
 * The responder's side of a session (RFC 5044 section 7.1.2, RFC 6581 section
 * 9.3): it waits for the Request, asks its ULP, replies, waits for the RTR.
 */
#include <linux/errno.h>
#include <linux/export.h>
#include <linux/minmax.h>

#include "session.h"

/**
 * iw_mpa_respond - TCP is connected: wait for the Request
 * @s: a fresh session
 */
void iw_mpa_respond(struct iw_mpa_session *s)
{
	s->responder = true;
	iw_mpa_enter_state(s, IW_MPA_REQ_WAIT);
	iw_mpa_leave(s, IW_MPA_NEXT_WAIT);
}
EXPORT_SYMBOL_GPL(iw_mpa_respond);

/* ---- the Reply */

static int send_reply(struct iw_mpa_session *s, const struct iw_mpa_msg *msg,
		      const void *pdata, size_t pdata_len)
{
	const struct iw_mpa_setup *setup = s->setup;
	struct iw_mpa_frame frame = {
		.kind = IW_MPA_REPLY,
		/* As in the Request (RFC 6581 section 6) */
		.rev = setup->peer.rev,
		.crc = setup->peer.crc ||
		       setup->config.policy.crc == RDMA_MPA_CRC_REQUIRED,
	};

	return iw_mpa_send_frame(s, &frame, msg, pdata, pdata_len);
}

static int send_reject(struct iw_mpa_session *s, const void *pdata,
		       size_t pdata_len)
{
	struct iw_mpa_local local = iw_mpa_local_side(s->setup);
	struct iw_mpa_msg request = iw_mpa_frame_msg(&s->setup->peer);
	struct iw_mpa_msg reply;

	iw_mpa_make_reject(&local, &request, &reply);
	return send_reply(s, &reply, pdata, pdata_len);
}

/*
 * Refuses a Request without a decision of the ULP. Over SCTP only a ULP may
 * reject (RFC 5043 section 6.3), so the end of the session sends a Terminate.
 */
static void refuse(struct iw_mpa_session *s)
{
	if (s->setup->config.caps.llp == RDMA_MPA_LLP_TCP)
		send_reject(s, NULL, 0);
}

/*
 * Also over SCTP, a reject lists the acceptable RTR kinds and depths (RFC 6581
 * sections 7 and 9.1). Other failures end with a Terminate.
 */
static void send_refusal(struct iw_mpa_session *s)
{
	const struct iw_mpa_decision *d = &s->setup->decision;
	bool listed = d->reply.enhanced && d->ecode != RDMA_MPA_ECODE_LOCAL;

	if (listed || s->setup->config.caps.llp == RDMA_MPA_LLP_TCP)
		send_reply(s, &d->reply, NULL, 0);
}

/* ---- the Request */

/* A responder limited to RFC 5044 treats enhanced data as malformed */
static bool request_understood(const struct iw_mpa_setup *setup)
{
	/* Rev 0 is another protocol */
	return setup->peer.rev &&
	       !(setup->peer.enhanced && !setup->config.policy.enhanced);
}

/*
 * Depths for the event to the ULP: the peer's depths, lowered to the device's
 * limits, or the limits if the peer sent no depths.
 */
static void propose_depths(struct iw_mpa_setup *setup)
{
	struct iw_mpa_local local = iw_mpa_local_side(setup);
	struct iw_mpa_msg request = iw_mpa_frame_msg(&setup->peer);
	const struct iw_mpa_caps *caps = &setup->config.caps;
	struct iw_mpa_decision *d = &setup->decision;
	struct iw_mpa_msg proposal;

	d->peer_known = request.enhanced;
	d->peer_ird = request.enh.ird;
	d->peer_ord = request.enh.ord;
	d->ird = caps->max_ird;
	d->ord = caps->max_ord;
	if (!request.enhanced)
		return;
	iw_mpa_make_reject(&local, &request, &proposal);
	d->ird = min(proposal.enh.ird, caps->max_ird);
	d->ord = min(proposal.enh.ord, caps->max_ord);
}

/**
 * iw_mpa_act_on_request - act on a complete Request
 * @s: the session
 *
 * Return: next step of the driver
 */
enum iw_mpa_next iw_mpa_act_on_request(struct iw_mpa_session *s)
{
	struct iw_mpa_setup *setup = s->setup;

	if (!request_understood(setup))
		return iw_mpa_end(s, -EPROTO, RDMA_MPA_ECODE_BAD_FRAME);
	if (!iw_mpa_llp_acceptable(setup)) {
		refuse(s);
		return iw_mpa_end(s, -EPROTO, RDMA_MPA_ECODE_BAD_FRAME);
	}

	propose_depths(setup);
	iw_mpa_enter_state(s, IW_MPA_REQ_RCVD);
	if (iw_mpa_tell_ulp(s, IW_MPA_EVENT_REQUEST, 0, RDMA_MPA_ECODE_NONE)) {
		refuse(s);
		return iw_mpa_end(s, -ENOMEM, RDMA_MPA_ECODE_LOCAL);
	}
	iw_mpa_free_rx(setup);
	return IW_MPA_NEXT_WAIT;
}

/* ---- the ULP's answer */

/* Returns an errno for the ULP; the peer receives a reject or Terminate */
static int fail_accept(struct iw_mpa_session *s, int err)
{
	refuse(s);
	iw_mpa_end(s, err, RDMA_MPA_ECODE_LOCAL);
	return err;
}

static int enter_rdma_mode(struct iw_mpa_session *s)
{
	struct iw_mpa_setup *setup = s->setup;
	struct iw_mpa_rdma rdma;

	/* The Reply is sent later, but RDMA mode depends on its C bit now */
	setup->sent.crc = setup->config.policy.crc == RDMA_MPA_CRC_REQUIRED;
	rdma = iw_mpa_rdma_mode(s);
	return setup->config.ops->enter_rdma(s, &rdma);
}

static int accept_request(struct iw_mpa_session *s, const struct iw_mpa_ulp *ulp)
{
	struct iw_mpa_setup *setup = s->setup;
	struct iw_mpa_msg request = iw_mpa_frame_msg(&setup->peer);
	struct iw_mpa_decision *d = &setup->decision;
	struct iw_mpa_local local;
	int rv;

	if (!iw_mpa_pdata_fits(ulp->pdata_len, request.enhanced))
		return fail_accept(s, -EINVAL);

	setup->ulp_ird = ulp->ird;
	setup->ulp_ord = ulp->ord;
	local = iw_mpa_local_side(setup);
	iw_mpa_negotiate_responder(&local, &request, d);
	setup->record.decided = true;
	if (d->verdict != IW_MPA_GO) {
		send_refusal(s);
		iw_mpa_end(s, d->status, d->ecode);
		return d->status;
	}
	rv = enter_rdma_mode(s);
	if (rv)
		return fail_accept(s, rv);

	iw_mpa_enter_state(s, IW_MPA_REP_SENT);
	rv = send_reply(s, &d->reply, ulp->pdata, ulp->pdata_len);
	if (rv) {
		iw_mpa_end(s, rv, RDMA_MPA_ECODE_LOCAL);
		return rv;
	}
	if (d->rtr && iw_mpa_is_gated(setup)) {
		iw_mpa_set_outcome(s);
		iw_mpa_enter_state(s, IW_MPA_RTR_WAIT);
	} else {
		iw_mpa_establish(s, IW_MPA_EVENT_ESTABLISHED);
	}
	return 0;
}

/* An option that selects RFC 5044 makes an enhanced Request malformed */
static int apply_options(struct iw_mpa_session *s,
			 const struct iw_mpa_layer *options)
{
	struct iw_mpa_setup *setup = s->setup;
	int rv = iw_mpa_config_apply(&setup->config, options);

	if (rv)
		return fail_accept(s, rv);
	if (request_understood(setup))
		return 0;
	iw_mpa_end(s, -EPROTO, RDMA_MPA_ECODE_BAD_FRAME);
	return -EPROTO;
}

/**
 * iw_mpa_accept - the ULP accepts
 * @s: the session
 * @options: options of the ULP for this connection; may be NULL
 * @ulp: parameters of the ULP
 *
 * The QP enters RDMA mode, fenced, before the Reply is sent: the QP must be
 * ready for the first FPDU of a fast peer (RFC 5044 section 7.1.2).
 *
 * Return: 0, and exactly one %IW_MPA_EVENT_ESTABLISHED follows or has been
 * sent. After an error no event follows, and the driver closes. A Request that
 * was still unanswered has been answered with a reject (SCTP: or a Terminate),
 * except an enhanced Request over TCP if @options select RFC 5044: it is
 * dropped. The errors are -ECONNRESET if the connection is gone, -EINVAL if
 * private data is too long or depths or options exceed the device's limits,
 * -EPROTO or -ENOMEM if negotiation fails, or the result of an op.
 */
int iw_mpa_accept(struct iw_mpa_session *s, const struct iw_mpa_layer *options,
		  const struct iw_mpa_ulp *ulp)
{
	int rv;

	if (s->state != IW_MPA_REQ_RCVD)
		return -ECONNRESET;
	rv = apply_options(s, options) ?: accept_request(s, ulp);
	iw_mpa_leave(s, IW_MPA_NEXT_WAIT);
	return rv;
}
EXPORT_SYMBOL_GPL(iw_mpa_accept);

/**
 * iw_mpa_reject - the ULP rejects
 * @s: the session
 * @pdata: its private data
 * @pdata_len: length of @pdata in bytes
 *
 * The session ends and the driver closes, also after an error.
 *
 * Return: 0, -ECONNRESET if the connection is gone, -EINVAL if the private
 * data is too long (the reject is then sent without it), or the result of the
 * send op.
 */
int iw_mpa_reject(struct iw_mpa_session *s, const void *pdata, size_t pdata_len)
{
	int rv;

	if (s->state != IW_MPA_REQ_RCVD)
		return -ECONNRESET;
	if (iw_mpa_pdata_fits(pdata_len, s->setup->peer.enhanced)) {
		rv = send_reject(s, pdata, pdata_len);
		iw_mpa_end(s, -ECONNREFUSED, RDMA_MPA_ECODE_NONE);
	} else {
		send_reject(s, NULL, 0);
		iw_mpa_end(s, -EINVAL, RDMA_MPA_ECODE_LOCAL);
		rv = -EINVAL;
	}
	iw_mpa_leave(s, IW_MPA_NEXT_CLOSE);
	return rv;
}
EXPORT_SYMBOL_GPL(iw_mpa_reject);

/**
 * iw_mpa_first_fpdu - the peer's first whole and valid FPDU has arrived
 * @s: the session
 * @rtr: its kind, one of enum rdma_mpa_rtr, 0 if it is no RTR
 *
 * Any FPDU shows, like an RTR, that the peer is in RDMA mode. If no RTR is
 * awaited, the call has no effect: the Reply alone has established a
 * client-server connection.
 *
 * Return: next step of the driver.
 */
enum iw_mpa_next iw_mpa_first_fpdu(struct iw_mpa_session *s, u8 rtr)
{
	struct iw_mpa_setup *setup = s->setup;

	if (s->state != IW_MPA_RTR_WAIT)
		return s->state == IW_MPA_CLOSED ? IW_MPA_NEXT_CLOSE :
						   IW_MPA_NEXT_DONE;
	setup->rtr_seen = rtr;
	setup->record.rtr_moved = true;
	setup->record.rtr = rtr;
	iw_mpa_establish(s, IW_MPA_EVENT_ESTABLISHED);
	return iw_mpa_leave(s, IW_MPA_NEXT_DONE);
}
EXPORT_SYMBOL_GPL(iw_mpa_first_fpdu);
