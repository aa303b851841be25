// SPDX-License-Identifier: GPL-2.0
/*
 * Counts, traces and notifies from the record of a session.
 *
 * iw_mpa_leave() calls this under the driver's lock for the session. Counters
 * are per CPU. Sessions without a port, which only tests have, are traced but
 * not counted.
 */
#include <linux/errno.h>
#include <linux/export.h>
#include <linux/percpu.h>
#include <linux/string.h>

#include "device.h"
#include "notify.h"
#include "observe.h"

#define CREATE_TRACE_POINTS
#include "trace.h"

/* ---- counters */

/* The code below adds to a counter's number */
static_assert(IW_MPA_STARTED_RESPONDER - IW_MPA_STARTED_INITIATOR == 1);
static_assert(IW_MPA_ESTABLISHED_RESPONDER - IW_MPA_ESTABLISHED_INITIATOR == 1);
static_assert(IW_MPA_FAILED_RESPONDER - IW_MPA_FAILED_INITIATOR == 1);

#define ASSERT_FRAME_COUNTERS(name) \
	static_assert(IW_MPA_##name##_REV2 - IW_MPA_##name##_REV1 == 1 && \
		      IW_MPA_##name##_ENHANCED - IW_MPA_##name##_REV1 == 2)

ASSERT_FRAME_COUNTERS(REQ_SENT);
ASSERT_FRAME_COUNTERS(REQ_RCVD);
ASSERT_FRAME_COUNTERS(REP_SENT);
ASSERT_FRAME_COUNTERS(REP_RCVD);

#define ASSERT_TERM_COUNTERS(name) \
	static_assert(IW_MPA_##name##_IRD - IW_MPA_##name##_LOCAL == 1 && \
		      IW_MPA_##name##_RTR - IW_MPA_##name##_LOCAL == 2)

ASSERT_TERM_COUNTERS(TERM_SENT);
ASSERT_TERM_COUNTERS(TERM_RCVD);

/* Any context: a TERM may be received in a soft interrupt */
static void count(const struct iw_mpa_session *s, enum iw_mpa_counter counter)
{
	struct iw_mpa_counters *c;
	unsigned long flags;

	if (!s->port)
		return;
	c = get_cpu_ptr(s->port->counters);
	flags = u64_stats_update_begin_irqsave(&c->syncp);
	u64_stats_inc(&c->n[counter]);
	u64_stats_update_end_irqrestore(&c->syncp, flags);
	put_cpu_ptr(s->port->counters);
}

/* The responder's counter follows the initiator's */
static void count_role(const struct iw_mpa_session *s,
		       enum iw_mpa_counter initiator)
{
	count(s, initiator + s->responder);
}

/* @rev1 is the first of three counters: Rev 1, Rev 2, enhanced */
static void count_frame(const struct iw_mpa_session *s,
			const struct iw_mpa_frame *frame,
			enum iw_mpa_counter rev1)
{
	if (frame->rev)
		count(s, frame->rev == 1 ? rev1 : rev1 + 1);
	else
		count(s, IW_MPA_BAD_REV);
	if (frame->enhanced)
		count(s, rev1 + 2);
}

static void count_rtr(const struct iw_mpa_session *s, u8 rtr)
{
	switch (rtr) {
	case RDMA_MPA_RTR_SEND:
		count(s, s->responder ? IW_MPA_RTR_RCVD_SEND :
					IW_MPA_RTR_SENT_SEND);
		break;
	case RDMA_MPA_RTR_WRITE:
		count(s, s->responder ? IW_MPA_RTR_RCVD_WRITE :
					IW_MPA_RTR_SENT_WRITE);
		break;
	case RDMA_MPA_RTR_READ:
		count(s, s->responder ? IW_MPA_RTR_RCVD_READ :
					IW_MPA_RTR_SENT_READ);
		break;
	default:
		count(s, IW_MPA_RTR_RCVD_OTHER);
	}
}

static enum iw_mpa_counter term_counter(enum iw_mpa_counter local, u8 ecode)
{
	switch (ecode) {
	case RDMA_MPA_ECODE_IRD:
		return local + 1;
	case RDMA_MPA_ECODE_RTR:
		return local + 2;
	default:
		return local;
	}
}

static void count_bad(const struct iw_mpa_session *s, enum iw_mpa_parse bad)
{
	static const u8 counter[IW_MPA_FRAME_RESULTS] = {
		[IW_MPA_FRAME_TRAILING]		= IW_MPA_BAD_TRAILING,
		[IW_MPA_FRAME_BAD_KEY]		= IW_MPA_BAD_KEY,
		[IW_MPA_FRAME_BAD_CODE]		= IW_MPA_BAD_KEY,
		[IW_MPA_FRAME_BAD_REV]		= IW_MPA_BAD_REV,
		[IW_MPA_FRAME_PDATA_TOO_LONG]	= IW_MPA_BAD_PDATA_LEN,
		[IW_MPA_FRAME_BLOCK_MISSING]	= IW_MPA_BAD_BLOCK,
	};

	count(s, counter[bad]);
}

static void count_timeout(const struct iw_mpa_session *s, u8 state)
{
	static const u8 counter[IW_MPA_STATES] = {
		[IW_MPA_CONNECTING]	= IW_MPA_TIMEOUT_CONNECT,
		[IW_MPA_REQ_WAIT]	= IW_MPA_TIMEOUT_REQUEST,
		[IW_MPA_REQ_RCVD]	= IW_MPA_TIMEOUT_DECIDE,
		[IW_MPA_RTR_WAIT]	= IW_MPA_TIMEOUT_RTR,
		[IW_MPA_REQ_SENT]	= IW_MPA_TIMEOUT_REPLY,
	};

	if (counter[state])
		count(s, counter[state]);
}

/* ---- the record */

static void observe_received(const struct iw_mpa_session *s,
			     const struct iw_mpa_setup *setup)
{
	const struct iw_mpa_record *r = &setup->record;

	if (r->received) {
		count_frame(s, &setup->peer, s->responder ? IW_MPA_REQ_RCVD_REV1 :
							IW_MPA_REP_RCVD_REV1);
		if (setup->peer.reject)
			count(s, IW_MPA_REJECT_RCVD);
		trace_mpa_frame_received(s, &setup->peer);
	}
	if (r->decided)
		trace_mpa_decision(s, &setup->decision);
	if (r->bad) {
		count_bad(s, r->bad);
		trace_mpa_frame_bad(s, r->bad);
	}
}

#define TERM_LAYER_LLP 2

static void observe_sent(const struct iw_mpa_session *s,
			 const struct iw_mpa_setup *setup)
{
	const struct iw_mpa_record *r = &setup->record;

	if (r->sent) {
		count_frame(s, &setup->sent, s->responder ? IW_MPA_REP_SENT_REV1 :
							IW_MPA_REQ_SENT_REV1);
		if (setup->sent.reject)
			count(s, IW_MPA_REJECT_SENT);
		trace_mpa_frame_sent(s, &setup->sent);
	}
	if (r->rtr_moved) {
		count_rtr(s, r->rtr);
		trace_mpa_rtr(s, r->rtr);
	}
	if (r->terminated) {
		count(s, term_counter(IW_MPA_TERM_SENT_LOCAL, r->ecode));
		trace_mpa_term(s, false, TERM_LAYER_LLP, 0, r->ecode);
	}
}

static void observe_states(const struct iw_mpa_session *s,
			   const struct iw_mpa_record *r)
{
	unsigned int i;

	if (r->timed_out && r->num_left) {
		count_timeout(s, r->left[0]);
		trace_mpa_timeout(s, r->left[0]);
	}
	if (r->fell_back) {
		count(s, IW_MPA_FALLBACKS);
		trace_mpa_fallback(s, r->left[0]);
	}
	if (r->fast_opened) {
		count(s, s->responder ? IW_MPA_REQ_RCVD_SYN :
					IW_MPA_REQ_SENT_SYN);
		trace_mpa_fastopen(s, s->state);
	}
	for (i = 0; i < r->num_left; i++) {
		u8 state = i + 1 < r->num_left ? r->left[i + 1] : s->state;

		if (r->left[i] == IW_MPA_IDLE && state != IW_MPA_CLOSED)
			count_role(s, IW_MPA_STARTED_INITIATOR);
		trace_mpa_state(s, r->left[i], state);
	}
}

static void observe_end(const struct iw_mpa_session *s,
			const struct iw_mpa_record *r)
{
	u8 was = r->num_left ? r->left[r->num_left - 1] : s->state;

	if (!r->ended)
		return;
	count_role(s, r->status ? IW_MPA_FAILED_INITIATOR :
				  IW_MPA_ESTABLISHED_INITIATOR);
	trace_mpa_end(s, was, r->status, r->ecode);
	iw_mpa_notify_conn(s, r->status ? was : s->state, r->status, r->ecode);
}

/**
 * iw_mpa_observe - count, trace and notify from the record, and clear it
 * @s: the session, with a setup
 */
void iw_mpa_observe(struct iw_mpa_session *s)
{
	struct iw_mpa_setup *setup = s->setup;

	observe_received(s, setup);
	observe_sent(s, setup);
	observe_states(s, &setup->record);
	observe_end(s, &setup->record);
	memset(&setup->record, 0, sizeof(setup->record));
}

/**
 * iw_mpa_observe_disconnect - an established connection has ended
 * @s: the session
 */
void iw_mpa_observe_disconnect(const struct iw_mpa_session *s)
{
	trace_mpa_state(s, IW_MPA_RDMA, IW_MPA_CLOSED);
}

/**
 * iw_mpa_term_received - the peer has sent a TERM
 * @s: the session, in RDMA mode or waiting for the RTR
 * @layer: layer in the TERM
 * @etype: error type in the TERM
 * @ecode: error code in the TERM
 *
 * A driver whose device reports TERMs calls this. Any context.
 */
void iw_mpa_term_received(const struct iw_mpa_session *s, u8 layer, u8 etype,
			  u8 ecode)
{
	/* Some devices send another error type, so @etype is not compared */
	if (layer == TERM_LAYER_LLP && ecode >= RDMA_MPA_ECODE_LOCAL &&
	    ecode <= RDMA_MPA_ECODE_RTR)
		count(s, term_counter(IW_MPA_TERM_RCVD_LOCAL, ecode));
	else
		count(s, IW_MPA_TERM_RCVD_OTHER);
	trace_mpa_term(s, true, layer, etype, ecode);
}
EXPORT_SYMBOL_GPL(iw_mpa_term_received);
