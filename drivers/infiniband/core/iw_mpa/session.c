// SPDX-License-Identifier: GPL-2.0
/*
 * One connection's setup: the state machine between driver, peer and ULP.
 *
 * Locking and context: the session takes no lock, does not sleep and does not
 * allocate. The driver calls the entry points of one session one at a time (siw:
 * the endpoint is in use; cxgb4: ep->com.mutex) in a context in which its own
 * ops may run. Sessions share nothing.
 *
 * Each state that waits has a deadline, which the driver keeps. Each session
 * that the ULP knows ends in exactly one event:
 *
 *   initiator   IW_MPA_EVENT_REPLY, after iw_mpa_connect() returned 0
 *   responder   IW_MPA_EVENT_ESTABLISHED, after iw_mpa_accept() returned 0
 *
 * What happens to an established connection is the driver's to tell.
 */
#include <linux/errno.h>
#include <linux/export.h>
#include <linux/kernel.h>
#include <linux/minmax.h>
#include <linux/module.h>
#include <linux/string.h>

#include <rdma/iw_mpa.h>

#include "observe.h"
#include "rev1_peers.h"

/**
 * iw_mpa_state_str - name a state
 * @state: the state
 *
 * Return: a static string, never NULL.
 */
const char *iw_mpa_state_str(enum iw_mpa_state state)
{
	static const char * const name[IW_MPA_STATES] = {
		[IW_MPA_IDLE]		= "IDLE",
		[IW_MPA_CONNECTING]	= "CONNECTING",
		[IW_MPA_REQ_SENT]	= "REQ_SENT",
		[IW_MPA_REP_RCVD]	= "REP_RCVD",
		[IW_MPA_REQ_WAIT]	= "REQ_WAIT",
		[IW_MPA_REQ_RCVD]	= "REQ_RCVD",
		[IW_MPA_REP_SENT]	= "REP_SENT",
		[IW_MPA_RTR_WAIT]	= "RTR_WAIT",
		[IW_MPA_RDMA]		= "RDMA",
		[IW_MPA_CLOSED]		= "CLOSED",
	};

	return state < IW_MPA_STATES ? name[state] : "unknown";
}
EXPORT_SYMBOL_GPL(iw_mpa_state_str);

/* The one place where the state changes; the deadline goes with the state */
static void enter_state(struct iw_mpa_session *s, enum iw_mpa_state state)
{
	enum iw_mpa_state was = s->state;
	unsigned int ms = 0;

	switch (state) {
	case IW_MPA_CONNECTING:
		ms = s->policy.connect_ms;
		break;
	case IW_MPA_REQ_SENT:
		ms = s->policy.reply_ms;
		break;
	case IW_MPA_REQ_WAIT:
		ms = s->policy.request_ms;
		break;
	case IW_MPA_REQ_RCVD:
		ms = s->policy.decide_ms;
		break;
	case IW_MPA_RTR_WAIT:
		ms = s->policy.rtr_ms;
		break;
	case IW_MPA_IDLE:
	case IW_MPA_REP_RCVD:
	case IW_MPA_REP_SENT:
	case IW_MPA_RDMA:
	case IW_MPA_CLOSED:
	case IW_MPA_STATES:
		break;
	}
	s->state = state;
	s->ops->deadline(s, ms);
	if (state != was)
		iw_mpa_saw_state(s, was);
}

/* Below a ceiling that the ULP does not know; beyond the device stays so */
static u32 within(u32 depth, u16 ceiling, u16 device)
{
	return depth > device ? depth : min_t(u32, depth, ceiling);
}

static struct iw_mpa_local local_side(const struct iw_mpa_session *s)
{
	return (struct iw_mpa_local) {
		.caps = &s->caps,
		.policy = &s->policy,
		.ird = within(s->ulp_ird, s->caps.max_ird, s->device_ird),
		.ord = within(s->ulp_ord, s->caps.max_ord, s->device_ord),
	};
}

static struct iw_mpa_msg peer_msg(const struct iw_mpa_session *s)
{
	return (struct iw_mpa_msg) {
		.enhanced = s->peer.enhanced,
		.reject = s->peer.reject,
		.enh = s->peer.enh,
	};
}

static int tell_ulp(struct iw_mpa_session *s, enum iw_mpa_event_type type,
		    int status, enum iw_mpa_ecode ecode)
{
	const struct iw_mpa_decision *d = &s->outcome;
	struct iw_mpa_event ev = {
		.type = type,
		.status = status,
		.ecode = ecode,
		.ird = d->ird,
		.ord = d->ord,
		.rtr = d->rtr,
		.peer_known = d->peer_known,
		.peer_ird = d->peer_ird,
		.peer_ord = d->peer_ord,
	};

	/* An acceptor has had the Request's private data already */
	if (type != IW_MPA_EVENT_ESTABLISHED) {
		ev.pdata = s->peer.pdata;
		ev.pdata_len = s->peer.pdata_len;
	}
	return s->ops->event(s, &ev);
}

/* Ends the session, with the terminal event if the ULP waits for one */
static enum iw_mpa_next end(struct iw_mpa_session *s, int status,
			    enum iw_mpa_ecode ecode)
{
	enum iw_mpa_state was = s->state;

	enter_state(s, IW_MPA_CLOSED);
	iw_mpa_saw_end(s, was, status, ecode);
	switch (was) {
	case IW_MPA_CONNECTING:
	case IW_MPA_REQ_SENT:
	case IW_MPA_REP_RCVD:
		tell_ulp(s, IW_MPA_EVENT_REPLY, status, ecode);
		break;
	case IW_MPA_RTR_WAIT:
		tell_ulp(s, IW_MPA_EVENT_ESTABLISHED, status, ecode);
		break;
	case IW_MPA_IDLE:
	case IW_MPA_REQ_WAIT:
	case IW_MPA_REQ_RCVD:
	case IW_MPA_REP_SENT:
	case IW_MPA_RDMA:
	case IW_MPA_CLOSED:
	case IW_MPA_STATES:
		break;
	}
	return IW_MPA_NEXT_CLOSE;
}

static enum iw_mpa_next terminate(struct iw_mpa_session *s,
				  const struct iw_mpa_rdma *rdma, int status,
				  enum iw_mpa_ecode ecode)
{
	if (!s->ops->terminate(s, rdma, ecode))
		iw_mpa_saw_term(s, ecode);
	return end(s, status, ecode);
}

/* CRCs are used both ways if either side asks (RFC 5044 section 7.1.1) */
static struct iw_mpa_rdma rdma_mode(const struct iw_mpa_session *s,
				    bool responder)
{
	return (struct iw_mpa_rdma) {
		.ird = s->outcome.ird,
		.ord = s->outcome.read_slots,
		.ulp_ord = s->outcome.ord,
		.rtr = s->outcome.rtr,
		.crc = s->sent_crc || s->peer.crc,
		.tx_markers = s->peer.markers,
		.rx_markers = s->policy.markers,
		.responder = responder,
	};
}

/* What MPA itself demands and we cannot do (IOP-17, RFC 5044 section 7.1.1) */
static bool llp_acceptable(const struct iw_mpa_session *s)
{
	bool no_crc = s->policy.crc == IW_MPA_CRC_OFF || s->caps.no_crc;

	return !(s->peer.markers && !s->caps.tx_markers) &&
	       !(s->peer.crc && no_crc);
}

static int build_frame(const struct iw_mpa_session *s,
		       struct iw_mpa_frame *frame, const struct iw_mpa_msg *msg,
		       const void *pdata, size_t pdata_len, void *buf,
		       size_t size)
{
	frame->markers = s->policy.markers && !msg->reject;
	frame->reject = msg->reject;
	frame->enhanced = msg->enhanced;
	frame->enh = msg->enh;
	frame->pdata = pdata;
	frame->pdata_len = pdata_len;
	return iw_mpa_frame_build(frame, s->policy.dialect, buf, size);
}

static int send_frame(struct iw_mpa_session *s, struct iw_mpa_frame *frame,
		      const struct iw_mpa_msg *msg, const void *pdata,
		      size_t pdata_len)
{
	u8 buf[IW_MPA_FRAME_MAX];
	int len;

	len = build_frame(s, frame, msg, pdata, pdata_len, buf, sizeof(buf));
	if (len < 0)
		return len;

	s->sent = *msg;
	s->sent_crc = frame->crc;
	iw_mpa_saw_tx(s, frame);
	/* Of a Request, what TCP was not given to connect with */
	if (s->early_len >= len)
		return 0;
	return s->ops->send(s, buf + s->early_len, len - s->early_len);
}

static int send_reply(struct iw_mpa_session *s, const struct iw_mpa_msg *msg,
		      const void *pdata, size_t pdata_len)
{
	struct iw_mpa_frame frame = {
		.kind = IW_MPA_REPLY,
		/* As the Request had it (AMB-05, IOP-10) */
		.rev = s->peer.rev,
		.crc = s->peer.crc || s->policy.crc == IW_MPA_CRC_REQUIRED,
	};

	return send_frame(s, &frame, msg, pdata, pdata_len);
}

static void send_reject(struct iw_mpa_session *s, const void *pdata,
			size_t pdata_len)
{
	struct iw_mpa_local local = local_side(s);
	struct iw_mpa_msg request = peer_msg(s);
	struct iw_mpa_msg reply;

	iw_mpa_make_reject(&local, &request, &reply);
	send_reply(s, &reply, pdata, pdata_len);
}

static void established(struct iw_mpa_session *s, enum iw_mpa_event_type type)
{
	enum iw_mpa_state was = s->state;

	enter_state(s, IW_MPA_RDMA);
	iw_mpa_saw_end(s, was, 0, IW_MPA_ECODE_NONE);
	tell_ulp(s, type, 0, IW_MPA_ECODE_NONE);
}

static bool pdata_fits(size_t len, bool enhanced)
{
	return len <= IW_MPA_PDATA_MAX - (enhanced ? IW_MPA_ENH_LEN : 0);
}

/* Doing without RFC 6581 is worse than no connection for some */
static bool may_fall_back(const struct iw_mpa_session *s)
{
	return s->policy.fallback && s->policy.rev > 1 &&
	       s->policy.model != IW_MPA_PEER_TO_PEER_REQUIRED;
}

static void fall_back(struct iw_mpa_session *s)
{
	s->policy.rev = 1;
	s->policy.enhanced = false;
	/* Another connection; nothing has been sent on it */
	s->early_len = 0;
	s->fast_opened = false;
}

/* Is this how a peer looks that does not know Rev 2? (AMB-23) */
static bool closed_on_request(const struct iw_mpa_session *s, int err)
{
	return s->state == IW_MPA_REQ_SENT && !s->rx_len &&
	       (!err || err == -ECONNRESET || err == -EPIPE);
}

/**
 * iw_mpa_session_init - prepare a session
 * @s: the session
 * @ops: the driver
 * @caps: the device; copied
 * @policy: the policy in force; copied, later changes do not matter
 *
 * Any context.
 *
 * Return: 0, or -EINVAL if the device cannot do what the policy says.
 */
int iw_mpa_session_init(struct iw_mpa_session *s, const struct iw_mpa_ops *ops,
			const struct iw_mpa_caps *caps,
			const struct iw_mpa_policy *policy)
{
	memset(s, 0, sizeof(*s));
	s->ops = ops;
	s->caps = *caps;
	s->device_ird = caps->max_ird;
	s->device_ord = caps->max_ord;
	s->policy = *policy;
	iw_mpa_policy_limit(policy, &s->caps);
	return iw_mpa_policy_check(policy, &s->caps);
}
EXPORT_SYMBOL_GPL(iw_mpa_session_init);

/**
 * iw_mpa_session_inherit - prepare a responder's session
 * @s: the session
 * @listener: a prepared session that stands for the listener: its policy holds,
 *	whatever has been set meanwhile
 *
 * Any context.
 */
void iw_mpa_session_inherit(struct iw_mpa_session *s,
			    const struct iw_mpa_session *listener)
{
	memset(s, 0, sizeof(*s));
	s->ops = listener->ops;
	s->caps = listener->caps;
	s->device_ird = listener->device_ird;
	s->device_ord = listener->device_ord;
	s->policy = listener->policy;
	s->port = listener->port;
}
EXPORT_SYMBOL_GPL(iw_mpa_session_inherit);

/**
 * iw_mpa_session_options - what the ULP wants for this connection alone
 * @s: the session, before iw_mpa_connect() or iw_mpa_accept()
 * @options: its options
 *
 * Return: 0, or -EINVAL if the device cannot do it; then nothing has changed.
 */
int iw_mpa_session_options(struct iw_mpa_session *s,
			   const struct iw_mpa_layer *options)
{
	struct iw_mpa_policy policy = s->policy;
	struct iw_mpa_caps caps = s->caps;
	int rv;

	iw_mpa_layer_apply(options, &policy);
	iw_mpa_policy_limit(&policy, &caps);
	rv = iw_mpa_policy_check(&policy, &caps);
	if (rv)
		return rv;
	s->policy = policy;
	s->caps = caps;
	return 0;
}
EXPORT_SYMBOL_GPL(iw_mpa_session_options);

/**
 * iw_mpa_ulp_check - would iw_mpa_connect() take this?
 * @s: a fresh session
 * @ulp: what the ULP asks for
 *
 * For drivers that want to know before they set up TCP. Any context.
 *
 * Return: 0, or -EINVAL if the private data is longer than 508 bytes
 * (enhanced) or 512, or a depth is beyond the device.
 */
int iw_mpa_ulp_check(const struct iw_mpa_session *s,
		     const struct iw_mpa_ulp *ulp)
{
	struct iw_mpa_local local = {
		.caps = &s->caps,
		.policy = &s->policy,
		.ird = within(ulp->ird, s->caps.max_ird, s->device_ird),
		.ord = within(ulp->ord, s->caps.max_ord, s->device_ord),
	};
	struct iw_mpa_msg request;
	int rv;

	rv = iw_mpa_make_request(&local, &request);
	if (!rv && !pdata_fits(ulp->pdata_len, request.enhanced))
		rv = -EINVAL;
	return rv;
}
EXPORT_SYMBOL_GPL(iw_mpa_ulp_check);

/**
 * iw_mpa_connect - TCP is about to connect
 * @s: a fresh session
 * @ulp: what the ULP asks for; copied
 *
 * RFC 5044 section 7.1.2, RFC 6581 section 9.3. iw_mpa_connected() follows, or
 * iw_mpa_peer_gone() if TCP cannot connect.
 *
 * Return: 0, then one %IW_MPA_EVENT_REPLY will come. -EINVAL as from
 * iw_mpa_ulp_check(); then there will be no event, and the driver closes.
 */
int iw_mpa_connect(struct iw_mpa_session *s, const struct iw_mpa_ulp *ulp)
{
	int rv;

	if (s->state != IW_MPA_IDLE)
		return -EINVAL;

	if (may_fall_back(s) && iw_mpa_peer_is_rev1(&s->peer_addr))
		fall_back(s);
	rv = iw_mpa_ulp_check(s, ulp);
	if (rv) {
		enter_state(s, IW_MPA_CLOSED);
		return rv;
	}
	s->ulp_ird = ulp->ird;
	s->ulp_ord = ulp->ord;
	s->pdata_len = ulp->pdata_len;
	if (ulp->pdata_len)
		memcpy(s->rx, ulp->pdata, ulp->pdata_len);
	enter_state(s, IW_MPA_CONNECTING);
	return 0;
}
EXPORT_SYMBOL_GPL(iw_mpa_connect);

static struct iw_mpa_frame request_frame(const struct iw_mpa_session *s)
{
	return (struct iw_mpa_frame) {
		.kind = IW_MPA_REQUEST,
		.rev = s->policy.rev,
		.crc = s->policy.crc == IW_MPA_CRC_REQUIRED,
	};
}

/**
 * iw_mpa_may_fast_open - may the Request be in TCP's SYN? (RFC 7413)
 * @s: a fresh session; a listener's stands for its connections
 *
 * The policy asks for it and the device can. Any context.
 *
 * Return: true if so
 */
bool iw_mpa_may_fast_open(const struct iw_mpa_session *s)
{
	return s->policy.fastopen && s->caps.fastopen;
}
EXPORT_SYMBOL_GPL(iw_mpa_may_fast_open);

/**
 * iw_mpa_early_request - the Request, for TCP to connect with
 * @s: the session, after iw_mpa_connect() or %IW_MPA_NEXT_RECONNECT
 * @buf: where to put it
 * @size: size of @buf in bytes, at least %IW_MPA_FRAME_MAX
 *
 * Changes nothing: who passes any of it to TCP says so with
 * iw_mpa_early_sent(). A peer that did not like the first attempt gets none
 * with the SYN of the second.
 *
 * Return: its length in bytes, 0 if it is not to be in the SYN
 */
size_t iw_mpa_early_request(const struct iw_mpa_session *s, void *buf,
			    size_t size)
{
	struct iw_mpa_frame frame = request_frame(s);
	struct iw_mpa_local local = local_side(s);
	struct iw_mpa_msg request;
	int rv;

	if (!iw_mpa_may_fast_open(s) || s->state != IW_MPA_CONNECTING ||
	    s->fell_back)
		return 0;

	rv = iw_mpa_make_request(&local, &request);
	if (!rv)
		rv = build_frame(s, &frame, &request, s->rx, s->pdata_len, buf,
				 size);
	return max(rv, 0);
}
EXPORT_SYMBOL_GPL(iw_mpa_early_request);

/**
 * iw_mpa_early_sent - TCP has taken of the Request, before it is up
 * @s: the session, after iw_mpa_early_request()
 * @len: how many bytes, 0 for none
 *
 * They are TCP's to deliver, with the SYN or behind it. iw_mpa_connected() sends
 * the others.
 */
void iw_mpa_early_sent(struct iw_mpa_session *s, size_t len)
{
	s->early_len = len;
}
EXPORT_SYMBOL_GPL(iw_mpa_early_sent);

/**
 * iw_mpa_fast_opened - the Request was in TCP's SYN
 * @s: the session; initiator: before iw_mpa_connected(), the peer's SYN has
 *	acknowledged it; responder: after iw_mpa_respond()
 *
 * To be counted and told; it does not matter to the exchange.
 */
void iw_mpa_fast_opened(struct iw_mpa_session *s)
{
	s->fast_opened = true;
	iw_mpa_saw_fast_open(s);
}
EXPORT_SYMBOL_GPL(iw_mpa_fast_opened);

/**
 * iw_mpa_connected - TCP is up: send the Request
 * @s: the session, after iw_mpa_connect() or %IW_MPA_NEXT_RECONNECT
 *
 * Or what is left of it, after iw_mpa_early_sent(). Then it may come late: the
 * peer may have answered, or gone, by now.
 *
 * Return: what to do next.
 */
enum iw_mpa_next iw_mpa_connected(struct iw_mpa_session *s)
{
	struct iw_mpa_frame frame = request_frame(s);
	struct iw_mpa_local local = local_side(s);
	struct iw_mpa_msg request;
	int rv;

	if (s->state != IW_MPA_CONNECTING)
		return s->state == IW_MPA_CLOSED ? IW_MPA_NEXT_CLOSE :
						   IW_MPA_NEXT_WAIT;

	rv = iw_mpa_make_request(&local, &request);
	if (!rv)
		rv = send_frame(s, &frame, &request, s->rx, s->pdata_len);
	if (rv)
		return end(s, rv, IW_MPA_ECODE_LOCAL);
	enter_state(s, IW_MPA_REQ_SENT);
	return IW_MPA_NEXT_WAIT;
}
EXPORT_SYMBOL_GPL(iw_mpa_connected);

/**
 * iw_mpa_respond - TCP is up: wait for the Request
 * @s: a fresh session
 */
void iw_mpa_respond(struct iw_mpa_session *s)
{
	s->responder = true;
	enter_state(s, IW_MPA_REQ_WAIT);
}
EXPORT_SYMBOL_GPL(iw_mpa_respond);

static enum iw_mpa_kind awaited_kind(const struct iw_mpa_session *s)
{
	return s->state == IW_MPA_REQ_SENT ? IW_MPA_REPLY : IW_MPA_REQUEST;
}

/**
 * iw_mpa_rx_want - how many bytes the awaited frame still lacks
 * @s: the session
 *
 * Return: bytes, as far as is known by now; 0 if no frame is awaited.
 */
size_t iw_mpa_rx_want(const struct iw_mpa_session *s)
{
	struct iw_mpa_frame frame;
	size_t need;

	if (s->state != IW_MPA_REQ_SENT && s->state != IW_MPA_REQ_WAIT)
		return 0;

	/* What is held is a valid prefix, or the session were over */
	iw_mpa_frame_parse(awaited_kind(s), s->policy.dialect, s->rx, s->rx_len,
			   &frame, &need);
	return need - s->rx_len;
}
EXPORT_SYMBOL_GPL(iw_mpa_rx_want);

static enum iw_mpa_next got_request(struct iw_mpa_session *s)
{
	struct iw_mpa_local local;
	struct iw_mpa_msg request = peer_msg(s);
	struct iw_mpa_msg proposal;

	/*
	 * Rev 0 is another protocol (AMB-07). What is enhanced is malformed to
	 * those who have only RFC 5044 (IOP-03).
	 */
	if (!s->peer.rev || (s->peer.enhanced && !s->policy.enhanced))
		return end(s, -EPROTO, IW_MPA_ECODE_BAD_FRAME);
	if (!llp_acceptable(s)) {
		send_reject(s, NULL, 0);
		return end(s, -EPROTO, IW_MPA_ECODE_BAD_FRAME);
	}

	/*
	 * The ULP is told the peer's wishes, within what the device can do.
	 * Who says nothing of depths may use what there is.
	 */
	local = local_side(s);
	iw_mpa_make_reject(&local, &request, &proposal);
	s->outcome.peer_known = request.enhanced;
	s->outcome.peer_ird = request.enh.ird;
	s->outcome.peer_ord = request.enh.ord;
	s->outcome.ird = min(proposal.enh.ird, s->caps.max_ird);
	s->outcome.ord = min(proposal.enh.ord, s->caps.max_ord);
	if (!request.enhanced) {
		s->outcome.ird = s->caps.max_ird;
		s->outcome.ord = s->caps.max_ord;
	}
	enter_state(s, IW_MPA_REQ_RCVD);
	if (tell_ulp(s, IW_MPA_EVENT_REQUEST, 0, IW_MPA_ECODE_NONE)) {
		send_reject(s, NULL, 0);
		return end(s, -ENOMEM, IW_MPA_ECODE_LOCAL);
	}
	return IW_MPA_NEXT_WAIT;
}

static enum iw_mpa_next got_reply(struct iw_mpa_session *s, bool trailing)
{
	struct iw_mpa_local local = local_side(s);
	struct iw_mpa_msg reply = peer_msg(s);
	struct iw_mpa_decision *d = &s->outcome;
	struct iw_mpa_rdma rdma;
	int rv;

	/* Rev 0 is another protocol (AMB-07) */
	if (!s->peer.rev)
		return end(s, -EPROTO, IW_MPA_ECODE_BAD_FRAME);

	/* It answers Rev 1, after it did not answer Rev 2 */
	if (s->fell_back)
		iw_mpa_peer_set_rev1(&s->peer_addr);

	iw_mpa_negotiate_initiator(&local, &s->sent, &reply, d);
	iw_mpa_saw_decision(s);
	if (d->verdict == IW_MPA_REJECTED)
		return end(s, d->status, d->ecode);
	/* Nothing may follow an accept before our first FPDU (SEC-06) */
	if (trailing)
		iw_mpa_saw_bad_rx(s, IW_MPA_FRAME_TRAILING);
	if (trailing || !llp_acceptable(s))
		return end(s, -EPROTO, IW_MPA_ECODE_BAD_FRAME);
	if (d->verdict == IW_MPA_DROP)
		return end(s, d->status, d->ecode);

	rdma = rdma_mode(s, false);
	if (d->verdict == IW_MPA_TERMINATE)
		return terminate(s, &rdma, d->status, d->ecode);

	rv = s->ops->enter_rdma(s, &rdma);
	if (rv)
		return terminate(s, &rdma, rv, IW_MPA_ECODE_LOCAL);

	if (d->rtr)
		iw_mpa_saw_rtr(s, d->rtr);
	established(s, IW_MPA_EVENT_REPLY);
	return IW_MPA_NEXT_DONE;
}

/**
 * iw_mpa_rx - the peer sent bytes
 * @s: the session
 * @buf: the bytes
 * @len: how many, at least one
 * @used: how many of them are done with; the rest is not ours
 *
 * Bytes may come in any portions; no more than iw_mpa_rx_want() are used.
 *
 * Return: %IW_MPA_NEXT_FRAME when the frame is complete, else what to do next.
 */
enum iw_mpa_next iw_mpa_rx(struct iw_mpa_session *s, const void *buf,
			   size_t len, size_t *used)
{
	enum iw_mpa_parse result;
	size_t need;

	*used = 0;
	if (s->state == IW_MPA_RDMA || s->state == IW_MPA_RTR_WAIT)
		return IW_MPA_NEXT_DONE;
	/* Nothing may arrive while it is our turn to speak (SEC-06) */
	if (!iw_mpa_rx_want(s)) {
		iw_mpa_saw_bad_rx(s, IW_MPA_FRAME_TRAILING);
		return end(s, -EPROTO, IW_MPA_ECODE_BAD_FRAME);
	}

	do {
		size_t part = min(len - *used, iw_mpa_rx_want(s));

		memcpy(s->rx + s->rx_len, buf + *used, part);
		s->rx_len += part;
		*used += part;
		result = iw_mpa_frame_parse(awaited_kind(s), s->policy.dialect,
					    s->rx, s->rx_len, &s->peer, &need);
	} while (result == IW_MPA_FRAME_NEED_MORE && *used < len);

	switch (result) {
	case IW_MPA_FRAME_COMPLETE:
		iw_mpa_saw_rx(s);
		return IW_MPA_NEXT_FRAME;
	case IW_MPA_FRAME_NEED_MORE:
		return IW_MPA_NEXT_WAIT;
	default:
		iw_mpa_saw_bad_rx(s, result);
		return end(s, -EPROTO, IW_MPA_ECODE_BAD_FRAME);
	}
}
EXPORT_SYMBOL_GPL(iw_mpa_rx);

/**
 * iw_mpa_process - act on a complete frame
 * @s: the session
 * @more: there are bytes behind the frame already, which only a reject's
 *	sender may do (SEC-06)
 *
 * Apart from iw_mpa_rx() because the QP may start to read the stream in here.
 *
 * Return: what to do next.
 */
enum iw_mpa_next iw_mpa_process(struct iw_mpa_session *s, bool more)
{
	if (!s->rx_len || iw_mpa_rx_want(s))
		return IW_MPA_NEXT_WAIT;

	if (s->state == IW_MPA_REQ_SENT) {
		enter_state(s, IW_MPA_REP_RCVD);
		return got_reply(s, more);
	}
	if (s->state != IW_MPA_REQ_WAIT)
		return IW_MPA_NEXT_WAIT;
	if (more) {
		iw_mpa_saw_bad_rx(s, IW_MPA_FRAME_TRAILING);
		return end(s, -EPROTO, IW_MPA_ECODE_BAD_FRAME);
	}
	return got_request(s);
}
EXPORT_SYMBOL_GPL(iw_mpa_process);

static int accept_fails(struct iw_mpa_session *s, int rv)
{
	send_reject(s, NULL, 0);
	end(s, rv, IW_MPA_ECODE_LOCAL);
	return rv;
}

/**
 * iw_mpa_accept - the ULP accepts
 * @s: the session
 * @ulp: what it passed
 *
 * The QP is in RDMA mode, fenced, before the Reply leaves, for a fast peer's
 * first FPDU must find it ready (RFC 5044 section 7.1.2).
 *
 * Return: 0, then one %IW_MPA_EVENT_ESTABLISHED comes or has come already.
 * Else there will be no event and the driver closes; the peer has been sent a
 * reject if the Request was still unanswered. -ECONNRESET the connection is
 * gone, -EINVAL private data too long or depths beyond the device, -EPROTO or
 * -ENOMEM no common ground, or what an op returned.
 */
int iw_mpa_accept(struct iw_mpa_session *s, const struct iw_mpa_ulp *ulp)
{
	struct iw_mpa_msg request = peer_msg(s);
	struct iw_mpa_local local;
	struct iw_mpa_rdma rdma;
	int rv;

	if (s->state != IW_MPA_REQ_RCVD)
		return -ECONNRESET;
	if (!pdata_fits(ulp->pdata_len, request.enhanced))
		return accept_fails(s, -EINVAL);

	s->ulp_ird = ulp->ird;
	s->ulp_ord = ulp->ord;
	local = local_side(s);
	iw_mpa_negotiate_responder(&local, &request, &s->outcome);
	iw_mpa_saw_decision(s);
	if (s->outcome.verdict != IW_MPA_GO) {
		send_reply(s, &s->outcome.reply, NULL, 0);
		end(s, s->outcome.status, s->outcome.ecode);
		return s->outcome.status;
	}
	/* Known before it is sent: what we ask for counts, too */
	s->sent_crc = s->policy.crc == IW_MPA_CRC_REQUIRED;
	rdma = rdma_mode(s, true);
	rv = s->ops->enter_rdma(s, &rdma);
	if (rv)
		return accept_fails(s, rv);

	enter_state(s, IW_MPA_REP_SENT);
	rv = send_reply(s, &s->outcome.reply, ulp->pdata, ulp->pdata_len);
	if (rv) {
		end(s, rv, IW_MPA_ECODE_LOCAL);
		return rv;
	}
	if (s->outcome.rtr && !s->caps.rtr_offload) {
		enter_state(s, IW_MPA_RTR_WAIT);
		return 0;
	}
	established(s, IW_MPA_EVENT_ESTABLISHED);
	return 0;
}
EXPORT_SYMBOL_GPL(iw_mpa_accept);

/**
 * iw_mpa_reject - the ULP rejects
 * @s: the session
 * @pdata: its private data
 * @pdata_len: length of @pdata in bytes
 *
 * Whatever is returned, the session is over and the driver closes.
 *
 * Return: 0, -ECONNRESET if the connection is gone, -EINVAL if the private
 * data is too long (the peer gets a reject without it), or what the send op
 * returned.
 */
int iw_mpa_reject(struct iw_mpa_session *s, const void *pdata, size_t pdata_len)
{
	struct iw_mpa_local local = local_side(s);
	struct iw_mpa_msg request = peer_msg(s);
	struct iw_mpa_msg reply;
	int rv;

	if (s->state != IW_MPA_REQ_RCVD)
		return -ECONNRESET;
	if (!pdata_fits(pdata_len, request.enhanced))
		return accept_fails(s, -EINVAL);

	iw_mpa_make_reject(&local, &request, &reply);
	rv = send_reply(s, &reply, pdata, pdata_len);
	end(s, -ECONNREFUSED, IW_MPA_ECODE_NONE);
	return rv;
}
EXPORT_SYMBOL_GPL(iw_mpa_reject);

/**
 * iw_mpa_event_reads_out - how many RDMA Reads of the ULP's the peer takes
 * @ev: the event
 *
 * For struct iw_cm_event, whose ird it is, of 8 bits: what does not fit
 * saturates. Any context.
 *
 * Return: the depth in force or, if there is no connection, what the peer has
 * said (IRD-06), 0 if it has not
 */
u8 iw_mpa_event_reads_out(const struct iw_mpa_event *ev)
{
	return min_t(u16, ev->status ? ev->peer_ird : ev->ord, 0xff);
}
EXPORT_SYMBOL_GPL(iw_mpa_event_reads_out);

/**
 * iw_mpa_event_reads_in - how many RDMA Reads of the peer's the ULP takes
 * @ev: the event
 *
 * For struct iw_cm_event, whose ord it is, of 8 bits: what does not fit
 * saturates. Any context.
 *
 * Return: the depth in force or, if there is no connection, what the peer has
 * asked for (IRD-06), 0 if it has not
 */
u8 iw_mpa_event_reads_in(const struct iw_mpa_event *ev)
{
	return min_t(u16, ev->status ? ev->peer_ord : ev->ird, 0xff);
}
EXPORT_SYMBOL_GPL(iw_mpa_event_reads_in);

/**
 * iw_mpa_first_fpdu - responder: the peer's first whole and valid FPDU is in
 * @s: the session
 * @rtr: its kind, one of enum iw_mpa_rtr, 0 if it is no RTR
 *
 * The RTR, or, as good, any other (AMB-17). Does nothing in other states, for
 * a client-server connection is established by its Reply.
 *
 * Return: what to do next.
 */
enum iw_mpa_next iw_mpa_first_fpdu(struct iw_mpa_session *s, u8 rtr)
{
	if (s->state != IW_MPA_RTR_WAIT)
		return s->state == IW_MPA_CLOSED ? IW_MPA_NEXT_CLOSE :
						   IW_MPA_NEXT_DONE;
	s->rtr_seen = rtr;
	iw_mpa_saw_rtr(s, rtr);
	established(s, IW_MPA_EVENT_ESTABLISHED);
	return IW_MPA_NEXT_DONE;
}
EXPORT_SYMBOL_GPL(iw_mpa_first_fpdu);

/**
 * iw_mpa_peer_gone - FIN or RST
 * @s: the session
 * @err: negative errno, 0 for FIN
 *
 * In RDMA mode only the state changes; the driver tells the ULP.
 *
 * Return: %IW_MPA_NEXT_CLOSE, or %IW_MPA_NEXT_RECONNECT to try Rev 1.
 */
enum iw_mpa_next iw_mpa_peer_gone(struct iw_mpa_session *s, int err)
{
	if (may_fall_back(s) && closed_on_request(s, err)) {
		fall_back(s);
		s->fell_back = true;
		iw_mpa_saw_fallback(s);
		enter_state(s, IW_MPA_CONNECTING);
		return IW_MPA_NEXT_RECONNECT;
	}
	return end(s, err ?: -ECONNRESET, IW_MPA_ECODE_CLOSED);
}
EXPORT_SYMBOL_GPL(iw_mpa_peer_gone);

/**
 * iw_mpa_timeout - the deadline has passed
 * @s: the session
 *
 * Return: %IW_MPA_NEXT_CLOSE, or %IW_MPA_NEXT_DONE if nothing is awaited.
 */
enum iw_mpa_next iw_mpa_timeout(struct iw_mpa_session *s)
{
	if (s->state == IW_MPA_RDMA)
		return IW_MPA_NEXT_DONE;
	iw_mpa_saw_timeout(s);
	return end(s, -ETIMEDOUT, IW_MPA_ECODE_CLOSED);
}
EXPORT_SYMBOL_GPL(iw_mpa_timeout);

/**
 * iw_mpa_abort - the local side gives up
 * @s: the session
 * @err: negative errno, the reason
 *
 * For everything that is neither peer nor deadline: the QP was destroyed, the
 * first FPDU was bad, the device goes away. In RDMA mode only the state
 * changes; the driver tells the ULP.
 *
 * Return: %IW_MPA_NEXT_CLOSE.
 */
enum iw_mpa_next iw_mpa_abort(struct iw_mpa_session *s, int err)
{
	return end(s, err, IW_MPA_ECODE_LOCAL);
}
EXPORT_SYMBOL_GPL(iw_mpa_abort);

MODULE_DESCRIPTION("MPA connection setup for iWARP (RFC 5044, RFC 6581)");
MODULE_LICENSE("GPL");
