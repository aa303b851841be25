// SPDX-License-Identifier: GPL-2.0
/*
 * The initiator's side of a session (RFC 5044 section 7.1.2, RFC 6581 section
 * 9.3): it connects, sends the Request, acts on the Reply. If the peer closes
 * after a Request of Rev 2, the initiator can retry once with Rev 1.
 */
#include <linux/errno.h>
#include <linux/export.h>
#include <linux/minmax.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "rev1_peers.h"
#include "session.h"

/* ---- fallback to Rev 1 */

/* A ULP that requires peer-to-peer needs RFC 6581 */
static bool may_fall_back(const struct iw_mpa_setup *setup)
{
	const struct iw_mpa_policy *policy = &setup->config.policy;

	return policy->fallback && policy->rev > 1 &&
	       policy->model != RDMA_MPA_MODEL_PEER_TO_PEER_REQUIRED;
}

static void fall_back(struct iw_mpa_setup *setup)
{
	setup->config.policy.rev = 1;
	setup->config.policy.enhanced = false;
	/* Nothing has been sent yet on the new TCP connection */
	setup->early_len = 0;
	setup->fast_opened = false;
}

/* A peer without Rev 2 support closes before it sends any byte of a Reply */
static bool closed_on_request(const struct iw_mpa_session *s, int err)
{
	return s->state == IW_MPA_REQ_SENT && !s->setup->rx_len &&
	       (!err || err == -ECONNRESET || err == -EPIPE);
}

/**
 * iw_mpa_try_fall_back - retry once with Rev 1, if the policy allows it
 * @s: the session, whose connection is lost
 * @err: negative errno, 0 for FIN
 *
 * Return: true if so; the session waits for TCP again
 */
bool iw_mpa_try_fall_back(struct iw_mpa_session *s, int err)
{
	struct iw_mpa_setup *setup = s->setup;

	if (!setup || !may_fall_back(setup) || !closed_on_request(s, err))
		return false;
	fall_back(setup);
	setup->fell_back = true;
	setup->record.fell_back = true;
	iw_mpa_enter_state(s, IW_MPA_CONNECTING);
	return true;
}

/* ---- the Request */

static struct iw_mpa_frame request_frame(const struct iw_mpa_setup *setup)
{
	return (struct iw_mpa_frame) {
		.kind = IW_MPA_REQUEST,
		.rev = setup->config.policy.rev,
		.crc = setup->config.policy.crc == RDMA_MPA_CRC_REQUIRED,
	};
}

/* -EINVAL if private data is too long or a depth exceeds the device's limit */
static int check_ulp(struct iw_mpa_setup *setup, const struct iw_mpa_ulp *ulp)
{
	struct iw_mpa_local local;
	struct iw_mpa_msg request;
	int rv;

	setup->ulp_ird = ulp->ird;
	setup->ulp_ord = ulp->ord;
	local = iw_mpa_local_side(setup);
	rv = iw_mpa_make_request(&local, &request);
	if (!rv && !iw_mpa_pdata_fits(ulp->pdata_len, request.enhanced))
		rv = -EINVAL;
	return rv;
}

static int keep_pdata(struct iw_mpa_setup *setup, const struct iw_mpa_ulp *ulp)
{
	if (!ulp->pdata_len)
		return 0;
	setup->pdata = kmemdup(ulp->pdata, ulp->pdata_len, GFP_KERNEL);
	if (!setup->pdata)
		return -ENOMEM;
	setup->pdata_len = ulp->pdata_len;
	return 0;
}

/**
 * iw_mpa_connect - start a session, before TCP connects
 * @s: a fresh session
 * @ulp: parameters of the ULP; copied
 *
 * iw_mpa_connected() follows, or iw_mpa_peer_gone() if TCP cannot connect. May
 * sleep.
 *
 * Return: 0, and exactly one %IW_MPA_EVENT_REPLY follows. -EINVAL if the
 * private data is longer than 508 bytes (enhanced) or 512, or a depth exceeds
 * the device's limit, or -ENOMEM. After an error no event follows, and the
 * driver closes.
 */
int iw_mpa_connect(struct iw_mpa_session *s, const struct iw_mpa_ulp *ulp)
{
	struct iw_mpa_setup *setup = s->setup;
	int rv;

	if (!setup || s->state != IW_MPA_IDLE)
		return -EINVAL;

	if (may_fall_back(setup) && iw_mpa_peer_is_rev1(&setup->peer_addr))
		fall_back(setup);
	rv = check_ulp(setup, ulp) ?: keep_pdata(setup, ulp);
	iw_mpa_enter_state(s, rv ? IW_MPA_CLOSED : IW_MPA_CONNECTING);
	iw_mpa_leave(s, IW_MPA_NEXT_WAIT);
	return rv;
}
EXPORT_SYMBOL_GPL(iw_mpa_connect);

/**
 * iw_mpa_early_request - get the Request for TCP Fast Open (RFC 7413)
 * @s: the session, after iw_mpa_connect() or %IW_MPA_NEXT_RECONNECT
 * @buf: destination
 * @size: size of @buf in bytes, at least %IW_MPA_FRAME_MAX
 *
 * The session does not change. The driver passes the Request to TCP, then
 * reports the accepted bytes with iw_mpa_early_sent(). The second attempt of a
 * fallback never has its Request in the SYN.
 *
 * Return: length of the Request in bytes, 0 if it must not be in the SYN
 */
size_t iw_mpa_early_request(const struct iw_mpa_session *s, void *buf,
			    size_t size)
{
	const struct iw_mpa_setup *setup = s->setup;
	struct iw_mpa_frame frame;
	struct iw_mpa_local local;
	struct iw_mpa_msg request;
	int rv;

	if (s->state != IW_MPA_CONNECTING || setup->fell_back ||
	    !setup->config.policy.fastopen || !setup->config.caps.fastopen)
		return 0;

	frame = request_frame(setup);
	local = iw_mpa_local_side(setup);
	rv = iw_mpa_make_request(&local, &request);
	if (!rv)
		rv = iw_mpa_build_frame(setup, &frame, &request, setup->pdata,
					setup->pdata_len, buf, size);
	return max(rv, 0);
}
EXPORT_SYMBOL_GPL(iw_mpa_early_request);

/**
 * iw_mpa_early_sent - report bytes of the Request that TCP accepted early
 * @s: the session, after iw_mpa_early_request()
 * @len: number of bytes, 0 for none
 *
 * TCP sends these bytes with the SYN or after it. iw_mpa_connected() sends the
 * remaining bytes.
 */
void iw_mpa_early_sent(struct iw_mpa_session *s, size_t len)
{
	if (s->setup)
		s->setup->early_len = len;
}
EXPORT_SYMBOL_GPL(iw_mpa_early_sent);

/**
 * iw_mpa_early_pending - has TCP accepted bytes of the Request early?
 * @s: the session
 *
 * Return: true if so
 */
bool iw_mpa_early_pending(const struct iw_mpa_session *s)
{
	return s->setup && s->setup->early_len;
}
EXPORT_SYMBOL_GPL(iw_mpa_early_pending);

/**
 * iw_mpa_connected - TCP is connected: send the Request
 * @s: the session, after iw_mpa_connect() or %IW_MPA_NEXT_RECONNECT
 *
 * After iw_mpa_early_sent() it sends only the rest of the Request. The driver
 * may then call it late, when the peer has already answered or closed.
 *
 * Return: next step of the driver.
 */
enum iw_mpa_next iw_mpa_connected(struct iw_mpa_session *s)
{
	struct iw_mpa_setup *setup = s->setup;
	struct iw_mpa_frame frame;
	struct iw_mpa_local local;
	struct iw_mpa_msg request;
	int rv;

	if (s->state != IW_MPA_CONNECTING)
		return s->state == IW_MPA_CLOSED ? IW_MPA_NEXT_CLOSE :
						   IW_MPA_NEXT_WAIT;

	frame = request_frame(setup);
	local = iw_mpa_local_side(setup);
	rv = iw_mpa_make_request(&local, &request);
	if (!rv)
		rv = iw_mpa_send_frame(s, &frame, &request, setup->pdata,
				       setup->pdata_len);
	if (rv)
		return iw_mpa_leave(s, iw_mpa_end(s, rv,
						  RDMA_MPA_ECODE_LOCAL));
	iw_mpa_enter_state(s, IW_MPA_REQ_SENT);
	return iw_mpa_leave(s, IW_MPA_NEXT_WAIT);
}
EXPORT_SYMBOL_GPL(iw_mpa_connected);

/* ---- the Reply */

static enum iw_mpa_next terminate(struct iw_mpa_session *s,
				  const struct iw_mpa_rdma *rdma, int status,
				  enum rdma_mpa_ecode ecode)
{
	struct iw_mpa_setup *setup = s->setup;

	if (!setup->config.ops->terminate(s, rdma, ecode))
		setup->record.terminated = true;
	return iw_mpa_end(s, status, ecode);
}

static enum iw_mpa_next enter_rdma_mode(struct iw_mpa_session *s)
{
	struct iw_mpa_rdma rdma = iw_mpa_rdma_mode(s);
	struct iw_mpa_setup *setup = s->setup;
	const struct iw_mpa_decision *d = &setup->decision;
	int rv;

	if (d->verdict == IW_MPA_TERMINATE)
		return terminate(s, &rdma, d->status, d->ecode);

	rv = setup->config.ops->enter_rdma(s, &rdma);
	if (rv)
		return terminate(s, &rdma, rv, RDMA_MPA_ECODE_LOCAL);

	if (d->rtr) {
		setup->record.rtr_moved = true;
		setup->record.rtr = d->rtr;
	}
	iw_mpa_establish(s, IW_MPA_EVENT_REPLY);
	return IW_MPA_NEXT_DONE;
}

/**
 * iw_mpa_act_on_reply - act on a complete Reply
 * @s: the session
 * @trailing: bytes follow the Reply
 *
 * Return: next step of the driver
 */
enum iw_mpa_next iw_mpa_act_on_reply(struct iw_mpa_session *s, bool trailing)
{
	struct iw_mpa_setup *setup = s->setup;
	struct iw_mpa_local local = iw_mpa_local_side(setup);
	struct iw_mpa_msg request = iw_mpa_frame_msg(&setup->sent);
	struct iw_mpa_msg reply = iw_mpa_frame_msg(&setup->peer);
	struct iw_mpa_decision *d = &setup->decision;

	iw_mpa_enter_state(s, IW_MPA_REP_RCVD);
	/* Rev 0 is another protocol */
	if (!setup->peer.rev)
		return iw_mpa_end(s, -EPROTO, RDMA_MPA_ECODE_BAD_FRAME);

	/* The peer answers Rev 1, after it did not answer Rev 2 */
	if (setup->fell_back && setup->config.caps.llp == RDMA_MPA_LLP_TCP)
		iw_mpa_peer_set_rev1(&setup->peer_addr);

	iw_mpa_negotiate_initiator(&local, &request, &reply, d);
	setup->record.decided = true;
	if (d->verdict == IW_MPA_REJECTED)
		return iw_mpa_end(s, d->status, d->ecode);
	/* A peer that accepts must send nothing before our first FPDU */
	if (trailing)
		setup->record.bad = IW_MPA_FRAME_TRAILING;
	if (trailing || !iw_mpa_llp_acceptable(setup))
		return iw_mpa_end(s, -EPROTO, RDMA_MPA_ECODE_BAD_FRAME);
	if (d->verdict == IW_MPA_DROP)
		return iw_mpa_end(s, d->status, d->ecode);
	return enter_rdma_mode(s);
}
