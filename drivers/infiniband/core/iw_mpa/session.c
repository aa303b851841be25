// SPDX-License-Identifier: GPL-2.0
/*
 * The state machine of one connection's setup: states, deadlines, the end, and
 * sending frames. The two sides are in initiator.c and responder.c, and
 * receive.c calls both. A frame is an MPA frame over TCP and a session control
 * message over SCTP.
 *
 *   initiator   IDLE -> CONNECTING -> REQ_SENT -> REP_RCVD -> RDMA
 *   responder   IDLE -> REQ_WAIT -> REQ_RCVD -> REP_SENT -> RTR_WAIT -> RDMA
 *   either      any state -> CLOSED
 *
 * Each function that a driver calls first acts and notes events in the record.
 * It returns through iw_mpa_leave(), which counts, traces and notifies from the
 * record. iw_mpa_leave() also frees the setup of an established or closed
 * session.
 */
#include <linux/errno.h>
#include <linux/export.h>
#include <linux/kernel.h>
#include <linux/minmax.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <kunit/visibility.h>

#include "observe.h"
#include "sctp.h"
#include "session.h"

static const struct iw_mpa_codec codecs[] = {
	[RDMA_MPA_LLP_TCP] = {
		.parse = iw_mpa_frame_parse,
		.build = iw_mpa_frame_build,
	},
	[RDMA_MPA_LLP_SCTP] = {
		.parse = iw_mpa_sctp_parse,
		.build = iw_mpa_sctp_build,
		.whole = true,
	},
};

const struct iw_mpa_codec *iw_mpa_codec_of(const struct iw_mpa_setup *setup)
{
	return &codecs[setup->config.caps.llp];
}

/* ---- config */

/**
 * iw_mpa_config_init - combine a device and a policy
 * @config: filled
 * @ops: operations of the driver
 * @caps: the device; copied
 * @policy: the policy in force; copied
 *
 * Any context.
 *
 * Return: 0, or -EINVAL if the device does not support the policy.
 */
int iw_mpa_config_init(struct iw_mpa_config *config,
		       const struct iw_mpa_ops *ops,
		       const struct iw_mpa_caps *caps,
		       const struct iw_mpa_policy *policy)
{
	*config = (struct iw_mpa_config) {
		.ops = ops,
		.caps = *caps,
		.device_ird = caps->max_ird,
		.device_ord = caps->max_ord,
		.policy = *policy,
	};
	iw_mpa_policy_limit(policy, &config->caps);
	return iw_mpa_policy_check(policy, &config->caps);
}
EXPORT_SYMBOL_IF_KUNIT(iw_mpa_config_init);

/**
 * iw_mpa_config_apply - apply a connection's own options
 * @config: changed
 * @options: the options; may be NULL
 *
 * Return: 0, or -EINVAL if the device does not support the result; then
 * nothing has changed.
 */
int iw_mpa_config_apply(struct iw_mpa_config *config,
			const struct iw_mpa_layer *options)
{
	struct iw_mpa_config changed = *config;
	int rv;

	if (!options)
		return 0;
	iw_mpa_layer_apply(options, ~0U, &changed.policy);
	iw_mpa_policy_limit(&changed.policy, &changed.caps);
	if (options->set)
		changed.policy_id = 0;
	rv = iw_mpa_policy_check(&changed.policy, &changed.caps);
	if (!rv)
		*config = changed;
	return rv;
}
EXPORT_SYMBOL_IF_KUNIT(iw_mpa_config_apply);

/* ---- sessions */

/**
 * iw_mpa_session_inherit - prepare a session
 * @s: the session
 * @config: device and policy, for example a listener's; copied
 *
 * May sleep.
 *
 * Return: 0, or -ENOMEM; then iw_mpa_session_close() need not be called.
 */
int iw_mpa_session_inherit(struct iw_mpa_session *s,
			   const struct iw_mpa_config *config)
{
	struct iw_mpa_setup *setup = kzalloc(sizeof(*setup), GFP_KERNEL);

	memset(s, 0, sizeof(*s));
	if (!setup)
		return -ENOMEM;
	setup->config = *config;
	setup->rx = setup->hdr;
	setup->rx_need = sizeof(setup->hdr);
	s->port = config->port;
	s->setup = setup;
	return 0;
}
EXPORT_SYMBOL_GPL(iw_mpa_session_inherit);

/**
 * iw_mpa_free_rx - free the peer's private data
 * @setup: the setup
 */
void iw_mpa_free_rx(struct iw_mpa_setup *setup)
{
	if (setup->rx != setup->hdr)
		kfree(setup->rx);
	setup->rx = setup->hdr;
	setup->peer.pdata = NULL;
	setup->peer.pdata_len = 0;
}

static void free_setup(struct iw_mpa_session *s)
{
	struct iw_mpa_setup *setup = s->setup;

	if (!setup)
		return;
	s->setup = NULL;
	iw_mpa_free_rx(setup);
	kfree(setup->pdata);
	kfree(setup);
}

/**
 * iw_mpa_session_close - free the resources of a session
 * @s: the session, or zeroes; must not be used again
 *
 * For an endpoint that is about to be freed. Any context.
 */
void iw_mpa_session_close(struct iw_mpa_session *s)
{
	free_setup(s);
}
EXPORT_SYMBOL_GPL(iw_mpa_session_close);

/**
 * iw_mpa_leave - last step of each function that a driver calls
 * @s: the session
 * @next: next step of the driver
 *
 * Return: @next
 */
enum iw_mpa_next iw_mpa_leave(struct iw_mpa_session *s, enum iw_mpa_next next)
{
	if (!s->setup)
		return next;
	iw_mpa_observe(s);
	if (s->state == IW_MPA_RDMA || s->state == IW_MPA_CLOSED)
		free_setup(s);
	return next;
}

/**
 * iw_mpa_is_connecting - is an initiator waiting for TCP?
 * @s: the session
 *
 * Return: true if so
 */
bool iw_mpa_is_connecting(const struct iw_mpa_session *s)
{
	return s->state == IW_MPA_CONNECTING;
}
EXPORT_SYMBOL_GPL(iw_mpa_is_connecting);

/**
 * iw_mpa_is_connected - is the session in RDMA mode and the ULP informed?
 * @s: the session
 *
 * Return: true if so
 */
bool iw_mpa_is_connected(const struct iw_mpa_session *s)
{
	return s->state == IW_MPA_RDMA;
}
EXPORT_SYMBOL_GPL(iw_mpa_is_connected);

/**
 * iw_mpa_prefers_peer_to_peer - does the policy prefer the peer-to-peer model?
 * @s: the session, before it is established
 *
 * Return: true if so
 */
bool iw_mpa_prefers_peer_to_peer(const struct iw_mpa_session *s)
{
	return s->setup &&
	       s->setup->config.policy.model != RDMA_MPA_MODEL_CLIENT_SERVER;
}
EXPORT_SYMBOL_GPL(iw_mpa_prefers_peer_to_peer);

/* ---- states */

static unsigned int state_deadline(const struct iw_mpa_config *config,
				   enum iw_mpa_state state)
{
	const struct iw_mpa_policy *policy = &config->policy;

	switch (state) {
	case IW_MPA_CONNECTING:
		return config->caps.no_connect_ms ? 0 : policy->connect_ms;
	case IW_MPA_REQ_SENT:
		return policy->reply_ms;
	case IW_MPA_REQ_WAIT:
		return policy->request_ms;
	case IW_MPA_REQ_RCVD:
		return policy->decide_ms;
	case IW_MPA_RTR_WAIT:
		return policy->rtr_ms;
	default:
		return 0;
	}
}

/**
 * iw_mpa_enter_state - change the state and set its deadline
 * @s: the session, with a setup
 * @state: the new state
 */
void iw_mpa_enter_state(struct iw_mpa_session *s, enum iw_mpa_state state)
{
	struct iw_mpa_setup *setup = s->setup;
	struct iw_mpa_record *r = &setup->record;

	if (s->state != state && r->num_left < ARRAY_SIZE(r->left))
		r->left[r->num_left++] = s->state;
	s->state = state;
	setup->config.ops->deadline(s, state_deadline(&setup->config, state));
}

/**
 * iw_mpa_tell_ulp - send an event to the ULP
 * @s: the session, with a setup
 * @type: the event
 * @status: 0 or a negative errno
 * @ecode: the reason in MPA's terms
 *
 * Return: the result of the driver's event op
 */
int iw_mpa_tell_ulp(struct iw_mpa_session *s, enum iw_mpa_event_type type,
		    int status, enum rdma_mpa_ecode ecode)
{
	const struct iw_mpa_setup *setup = s->setup;
	const struct iw_mpa_decision *d = &setup->decision;
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

	/* A responder's ULP got the private data with the Request */
	if (type != IW_MPA_EVENT_ESTABLISHED) {
		ev.pdata = setup->peer.pdata;
		ev.pdata_len = setup->peer.pdata_len;
	}
	return setup->config.ops->event(s, &ev);
}

static void record_end(struct iw_mpa_setup *setup, int status,
		       enum rdma_mpa_ecode ecode)
{
	setup->record.ended = true;
	setup->record.status = status;
	setup->record.ecode = ecode;
}

/**
 * iw_mpa_set_outcome - make the decision the outcome
 * @s: the session
 */
void iw_mpa_set_outcome(struct iw_mpa_session *s)
{
	const struct iw_mpa_setup *setup = s->setup;
	const struct iw_mpa_decision *d = &setup->decision;

	s->outcome = (struct iw_mpa_outcome) {
		.ird = d->ird,
		.ord = d->ord,
		.peer_ird = d->peer_ird,
		.peer_ord = d->peer_ord,
		.rtr = d->rtr,
		.rtr_seen = setup->rtr_seen,
		.peer_rev = setup->peer.rev,
		.peer_known = d->peer_known,
		.crc = setup->sent.crc || setup->peer.crc,
		.large = setup->config.policy.large,
	};
}

/**
 * iw_mpa_establish - enter the connected state and notify the ULP
 * @s: the session
 * @type: event for the ULP
 */
void iw_mpa_establish(struct iw_mpa_session *s, enum iw_mpa_event_type type)
{
	iw_mpa_set_outcome(s);
	iw_mpa_enter_state(s, IW_MPA_RDMA);
	record_end(s->setup, 0, RDMA_MPA_ECODE_NONE);
	iw_mpa_tell_ulp(s, type, 0, RDMA_MPA_ECODE_NONE);
}

/*
 * At least one side terminates a session (RFC 5043 section 6.2); a Reject ends
 * it as well. Without an Initiate there is no session.
 */
static bool owes_terminate(const struct iw_mpa_session *s)
{
	const struct iw_mpa_setup *setup = s->setup;

	if (!setup->config.ops->end || setup->peer_gone || setup->sent.reject ||
	    setup->peer.reject)
		return false;
	switch (s->state) {
	case IW_MPA_IDLE:
	case IW_MPA_CONNECTING:
	case IW_MPA_CLOSED:
		return false;
	case IW_MPA_REQ_WAIT:
		return setup->rx_len || setup->record.bad;
	default:
		return true;
	}
}

/**
 * iw_mpa_end - end the session and send the event that the ULP waits for
 * @s: the session
 * @status: a negative errno
 * @ecode: the reason in MPA's terms
 *
 * Return: %IW_MPA_NEXT_CLOSE
 */
enum iw_mpa_next iw_mpa_end(struct iw_mpa_session *s, int status,
			    enum rdma_mpa_ecode ecode)
{
	enum iw_mpa_state was = s->state;

	if (!s->setup) {
		/* The driver reports the end of an established connection */
		s->state = IW_MPA_CLOSED;
		if (was == IW_MPA_RDMA)
			iw_mpa_observe_disconnect(s);
		return IW_MPA_NEXT_CLOSE;
	}
	if (owes_terminate(s))
		s->setup->config.ops->end(s);
	iw_mpa_enter_state(s, IW_MPA_CLOSED);
	if (was != IW_MPA_IDLE)
		record_end(s->setup, status, ecode);
	switch (was) {
	case IW_MPA_CONNECTING:
	case IW_MPA_REQ_SENT:
	case IW_MPA_REP_RCVD:
		iw_mpa_tell_ulp(s, IW_MPA_EVENT_REPLY, status, ecode);
		break;
	case IW_MPA_RTR_WAIT:
		iw_mpa_tell_ulp(s, IW_MPA_EVENT_ESTABLISHED, status, ecode);
		break;
	default:
		break;
	}
	return IW_MPA_NEXT_CLOSE;
}

/* ---- both sides */

/*
 * Lowers a depth to a ceiling that is not visible to the ULP. A depth above the
 * device's limit is not lowered, so that the later check rejects it.
 */
static u32 clamp_depth(u32 depth, u16 ceiling, u16 device)
{
	return depth > device ? depth : min_t(u32, depth, ceiling);
}

/**
 * iw_mpa_local_side - our side of the negotiation
 * @setup: the setup
 *
 * Return: our side; it points into @setup
 */
struct iw_mpa_local iw_mpa_local_side(const struct iw_mpa_setup *setup)
{
	const struct iw_mpa_config *config = &setup->config;

	return (struct iw_mpa_local) {
		.caps = &config->caps,
		.policy = &config->policy,
		.ird = clamp_depth(setup->ulp_ird, config->caps.max_ird,
				   config->device_ird),
		.ord = clamp_depth(setup->ulp_ord, config->caps.max_ord,
				   config->device_ord),
	};
}

/**
 * iw_mpa_frame_msg - the part of a frame that is negotiated
 * @frame: the frame
 *
 * Return: the contents of the frame
 */
struct iw_mpa_msg iw_mpa_frame_msg(const struct iw_mpa_frame *frame)
{
	return (struct iw_mpa_msg) {
		.enhanced = frame->enhanced,
		.reject = frame->reject,
		.enh = frame->enh,
	};
}

/**
 * iw_mpa_is_gated - do we wait for the initiator's first FPDU?
 * @setup: the setup of a responder
 *
 * RFC 5044 section 7.1.2. A device with @rtr_offload waits by itself. SCTP
 * needs no gate (RFC 6581 section 7).
 *
 * Return: true if so
 */
bool iw_mpa_is_gated(const struct iw_mpa_setup *setup)
{
	return !setup->config.caps.rtr_offload &&
	       setup->config.caps.llp == RDMA_MPA_LLP_TCP;
}

/**
 * iw_mpa_rdma_mode - how to enter RDMA mode after the decision
 * @s: the session
 *
 * Return: the parameters
 */
struct iw_mpa_rdma iw_mpa_rdma_mode(const struct iw_mpa_session *s)
{
	const struct iw_mpa_setup *setup = s->setup;
	const struct iw_mpa_policy *policy = &setup->config.policy;

	return (struct iw_mpa_rdma) {
		.ird = setup->decision.ird,
		.ord = setup->decision.read_slots,
		.ulp_ord = setup->decision.ord,
		.rtr = setup->decision.rtr,
		/* Both directions if one side asks (RFC 5044 section 7.1.1) */
		.crc = setup->sent.crc || setup->peer.crc,
		.tx_markers = setup->peer.markers,
		.rx_markers = policy->markers,
		.large = policy->large,
		.responder = s->responder,
		.fenced = s->responder &&
			  setup->config.caps.llp == RDMA_MPA_LLP_TCP,
		.rtr_unasked = s->responder && setup->peer.rev == 1 &&
			       setup->config.caps.llp == RDMA_MPA_LLP_TCP &&
			       policy->model != RDMA_MPA_MODEL_CLIENT_SERVER ?
			       policy->rtr_order[0] : 0,
	};
}

/**
 * iw_mpa_llp_acceptable - can we meet the peer's demands on MPA?
 * @setup: the setup, with the peer's frame
 *
 * The peer can demand markers and CRCs (RFC 5044 section 7.1.1).
 *
 * Return: true if so
 */
bool iw_mpa_llp_acceptable(const struct iw_mpa_setup *setup)
{
	const struct iw_mpa_config *config = &setup->config;
	bool no_crc = config->policy.crc == RDMA_MPA_CRC_OFF ||
		      config->caps.no_crc;

	return !(setup->peer.markers && !config->caps.tx_markers) &&
	       !(setup->peer.crc && no_crc);
}

/**
 * iw_mpa_pdata_fits - does the ULP's private data fit into a frame?
 * @len: its length in bytes
 * @enhanced: the frame has enhanced data as well
 *
 * Return: true if so
 */
bool iw_mpa_pdata_fits(size_t len, bool enhanced)
{
	return len <= IW_MPA_PDATA_MAX - (enhanced ? IW_MPA_ENH_LEN : 0);
}

/**
 * iw_mpa_build_frame - build a frame
 * @setup: the setup
 * @frame: kind, revision and C bit are set; the rest is filled in
 * @msg: contents of the frame
 * @pdata: private data of the ULP
 * @pdata_len: length of @pdata in bytes
 * @buf: destination
 * @size: size of @buf in bytes
 *
 * Return: length of the frame in bytes, or a negative errno
 */
int iw_mpa_build_frame(const struct iw_mpa_setup *setup,
		       struct iw_mpa_frame *frame,
		       const struct iw_mpa_msg *msg, const void *pdata,
		       size_t pdata_len, void *buf, size_t size)
{
	frame->markers = setup->config.policy.markers && !msg->reject;
	frame->reject = msg->reject;
	frame->enhanced = msg->enhanced;
	frame->enh = msg->enh;
	frame->pdata = pdata;
	frame->pdata_len = pdata_len;
	return iw_mpa_codec_of(setup)->build(frame,
					     setup->config.policy.dialect, buf,
					     size);
}

/**
 * iw_mpa_send_frame - send a frame, or the part that was not sent early
 * @s: the session
 * @frame: kind, revision and C bit are set; the rest is filled in
 * @msg: contents of the frame
 * @pdata: private data of the ULP
 * @pdata_len: length of @pdata in bytes
 *
 * Return: 0 or a negative errno
 */
int iw_mpa_send_frame(struct iw_mpa_session *s, struct iw_mpa_frame *frame,
		      const struct iw_mpa_msg *msg, const void *pdata,
		      size_t pdata_len)
{
	struct iw_mpa_setup *setup = s->setup;
	u8 buf[IW_MPA_FRAME_MAX];
	int len, rv = 0;

	len = iw_mpa_build_frame(setup, frame, msg, pdata, pdata_len, buf,
				 sizeof(buf));
	if (len < 0)
		return len;

	setup->sent = *frame;
	setup->sent.pdata = NULL;
	if (setup->early_len < len)
		rv = setup->config.ops->send(s, buf + setup->early_len,
					     len - setup->early_len);
	if (!rv)
		setup->record.sent = true;
	return rv;
}

/* ---- ends */

/**
 * iw_mpa_timeout - the deadline has passed
 * @s: the session
 *
 * Return: %IW_MPA_NEXT_CLOSE, or %IW_MPA_NEXT_DONE if the connection is
 * established.
 */
enum iw_mpa_next iw_mpa_timeout(struct iw_mpa_session *s)
{
	if (s->state == IW_MPA_RDMA)
		return IW_MPA_NEXT_DONE;
	if (s->setup)
		s->setup->record.timed_out = true;
	return iw_mpa_leave(s, iw_mpa_end(s, -ETIMEDOUT,
					  RDMA_MPA_ECODE_CLOSED));
}
EXPORT_SYMBOL_GPL(iw_mpa_timeout);

/**
 * iw_mpa_abort - end the session for a local reason
 * @s: the session
 * @err: negative errno, the reason
 *
 * For every end that iw_mpa_peer_gone() and iw_mpa_timeout() do not cover: the
 * QP is destroyed, the first FPDU is bad, the device is removed. In RDMA mode
 * only the state changes; the driver notifies the ULP.
 *
 * Return: %IW_MPA_NEXT_CLOSE.
 */
enum iw_mpa_next iw_mpa_abort(struct iw_mpa_session *s, int err)
{
	return iw_mpa_leave(s, iw_mpa_end(s, err, RDMA_MPA_ECODE_LOCAL));
}
EXPORT_SYMBOL_GPL(iw_mpa_abort);

/**
 * iw_mpa_fast_opened - the Request was in TCP's SYN (RFC 7413)
 * @s: the session; initiator: before iw_mpa_connected(), if the peer's SYN has
 *	acknowledged the Request; responder: after iw_mpa_respond()
 *
 * Only counters and notifications depend on it.
 */
void iw_mpa_fast_opened(struct iw_mpa_session *s)
{
	if (!s->setup)
		return;
	s->setup->fast_opened = true;
	s->setup->record.fast_opened = true;
	iw_mpa_leave(s, IW_MPA_NEXT_WAIT);
}
EXPORT_SYMBOL_GPL(iw_mpa_fast_opened);
