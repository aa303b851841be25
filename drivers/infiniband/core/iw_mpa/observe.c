// SPDX-License-Identifier: GPL-2.0
/*
 * Counts, traces and notifies: one function for each thing that can be seen of
 * a session.
 *
 * Called from the session's entry points, under the driver's lock for the
 * session. Counters are per CPU. Sessions without a port (tests) are traced and
 * not counted.
 */
#include <linux/errno.h>
#include <linux/export.h>
#include <linux/in.h>
#include <linux/percpu.h>
#include <linux/string.h>
#include <net/ipv6.h>

#include <rdma/iw_mpa.h>

#include "device.h"
#include "netlink.h"
#include "observe.h"

#define CREATE_TRACE_POINTS
#include "trace.h"

/* Whom an initiator was told to connect to */
static void name_peer(const struct iw_mpa_addr *peer,
		      struct sockaddr_storage *ss)
{
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)ss;
	struct sockaddr_in *v4 = (struct sockaddr_in *)ss;

	if (ipv6_addr_v4mapped(&peer->ip)) {
		v4->sin_family = AF_INET;
		v4->sin_addr.s_addr = peer->ip.s6_addr32[3];
		v4->sin_port = peer->port;
	} else {
		v6->sin6_family = AF_INET6;
		v6->sin6_addr = peer->ip;
		v6->sin6_port = peer->port;
	}
}

/* What is known of it; a socket that has failed does not know its peer */
void iw_mpa_session_name(const struct iw_mpa_session *s,
			 struct iw_mpa_name *name)
{
	memset(name, 0, sizeof(*name));
	if (s->ops->name)
		s->ops->name(s, name);
	if (!name->remote.ss_family && s->peer_addr.net)
		name_peer(&s->peer_addr, &name->remote);
}

static void add(const struct iw_mpa_session *s, enum iw_mpa_counter counter,
		int n)
{
	if (s->port)
		this_cpu_add(s->port->counters->n[counter], n);
}

static void count(const struct iw_mpa_session *s, enum iw_mpa_counter counter)
{
	add(s, counter, 1);
}

static bool is_half_open(enum iw_mpa_state state)
{
	return state != IW_MPA_IDLE && state != IW_MPA_RDMA &&
	       state != IW_MPA_CLOSED;
}

void iw_mpa_saw_state(const struct iw_mpa_session *s, enum iw_mpa_state was)
{
	add(s, IW_MPA_HALF_OPEN, is_half_open(s->state) - is_half_open(was));
	trace_mpa_state(s, was);
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

void iw_mpa_saw_tx(const struct iw_mpa_session *s,
		   const struct iw_mpa_frame *frame)
{
	count_frame(s, frame, frame->kind == IW_MPA_REPLY ?
		    IW_MPA_REP_SENT_REV1 : IW_MPA_REQ_SENT_REV1);
	if (frame->reject)
		count(s, IW_MPA_REJECT_SENT);
	trace_mpa_frame_sent(s, frame);
}

void iw_mpa_saw_rx(const struct iw_mpa_session *s)
{
	count_frame(s, &s->peer, s->responder ? IW_MPA_REQ_RCVD_REV1 :
						IW_MPA_REP_RCVD_REV1);
	if (s->peer.reject)
		count(s, IW_MPA_REJECT_RCVD);
	trace_mpa_frame_received(s, &s->peer);
}

void iw_mpa_saw_bad_rx(const struct iw_mpa_session *s, enum iw_mpa_parse result)
{
	switch (result) {
	case IW_MPA_FRAME_TRAILING:
		count(s, IW_MPA_BAD_TRAILING);
		break;
	case IW_MPA_FRAME_BAD_KEY:
		count(s, IW_MPA_BAD_KEY);
		break;
	case IW_MPA_FRAME_BAD_REV:
		count(s, IW_MPA_BAD_REV);
		break;
	case IW_MPA_FRAME_PDATA_TOO_LONG:
		count(s, IW_MPA_BAD_PDATA_LEN);
		break;
	case IW_MPA_FRAME_BLOCK_MISSING:
		count(s, IW_MPA_BAD_BLOCK);
		break;
	case IW_MPA_FRAME_COMPLETE:
	case IW_MPA_FRAME_NEED_MORE:
	case IW_MPA_FRAME_RESULTS:
		return;
	}
	trace_mpa_frame_bad(s, result);
}

void iw_mpa_saw_decision(const struct iw_mpa_session *s)
{
	trace_mpa_decision(s, &s->outcome);
}

/* An initiator sends its RTR, a responder receives the peer's */
void iw_mpa_saw_rtr(const struct iw_mpa_session *s, u8 rtr)
{
	switch (rtr) {
	case IW_MPA_RTR_SEND:
		count(s, s->responder ? IW_MPA_RTR_RCVD_SEND :
					IW_MPA_RTR_SENT_SEND);
		break;
	case IW_MPA_RTR_WRITE:
		count(s, s->responder ? IW_MPA_RTR_RCVD_WRITE :
					IW_MPA_RTR_SENT_WRITE);
		break;
	case IW_MPA_RTR_READ:
		count(s, s->responder ? IW_MPA_RTR_RCVD_READ :
					IW_MPA_RTR_SENT_READ);
		break;
	default:
		count(s, IW_MPA_RTR_RCVD_OTHER);
	}
	trace_mpa_rtr(s, rtr);
}

static enum iw_mpa_counter term_counter(enum iw_mpa_counter local, u8 ecode)
{
	switch (ecode) {
	case IW_MPA_ECODE_IRD:
		return local + 1;
	case IW_MPA_ECODE_RTR:
		return local + 2;
	default:
		return local;
	}
}

#define TERM_LAYER_LLP 2

void iw_mpa_saw_term(const struct iw_mpa_session *s, enum iw_mpa_ecode ecode)
{
	count(s, term_counter(IW_MPA_TERM_SENT_LOCAL, ecode));
	trace_mpa_term(s, false, TERM_LAYER_LLP, 0, ecode);
}

/**
 * iw_mpa_term_received - the peer sent a TERM
 * @s: the session, in RDMA mode or waiting for the RTR
 * @layer: its layer
 * @etype: its error type
 * @ecode: its error code
 *
 * For the driver to tell, who receives it. Any context.
 */
void iw_mpa_term_received(const struct iw_mpa_session *s, u8 layer, u8 etype,
			  u8 ecode)
{
	/* Some devices fill in another type (ERR-16) */
	if (layer == TERM_LAYER_LLP && ecode >= IW_MPA_ECODE_LOCAL &&
	    ecode <= IW_MPA_ECODE_RTR)
		count(s, term_counter(IW_MPA_TERM_RCVD_LOCAL, ecode));
	else
		count(s, IW_MPA_TERM_RCVD_OTHER);
	trace_mpa_term(s, true, layer, etype, ecode);
}
EXPORT_SYMBOL_GPL(iw_mpa_term_received);

void iw_mpa_saw_timeout(const struct iw_mpa_session *s)
{
	switch (s->state) {
	case IW_MPA_CONNECTING:
		count(s, IW_MPA_TIMEOUT_CONNECT);
		break;
	case IW_MPA_REQ_WAIT:
		count(s, IW_MPA_TIMEOUT_REQUEST);
		break;
	case IW_MPA_REQ_RCVD:
		count(s, IW_MPA_TIMEOUT_DECIDE);
		break;
	case IW_MPA_RTR_WAIT:
		count(s, IW_MPA_TIMEOUT_RTR);
		break;
	case IW_MPA_REQ_SENT:
		count(s, IW_MPA_TIMEOUT_REPLY);
		break;
	default:
		return;
	}
	trace_mpa_timeout(s);
}

void iw_mpa_saw_fallback(const struct iw_mpa_session *s)
{
	count(s, IW_MPA_FALLBACKS);
	trace_mpa_fallback(s);
}

void iw_mpa_saw_fast_open(const struct iw_mpa_session *s)
{
	count(s, s->responder ? IW_MPA_REQ_RCVD_SYN : IW_MPA_REQ_SENT_SYN);
	trace_mpa_fastopen(s);
}

/* What the session came from @was to: established, or failed with a status */
void iw_mpa_saw_end(const struct iw_mpa_session *s, enum iw_mpa_state was,
		    int status, enum iw_mpa_ecode ecode)
{
	if (!is_half_open(was))
		return;
	if (status)
		count(s, s->responder ? IW_MPA_FAILED_RESPONDER :
					IW_MPA_FAILED_INITIATOR);
	else
		count(s, s->responder ? IW_MPA_ESTABLISHED_RESPONDER :
					IW_MPA_ESTABLISHED_INITIATOR);
	trace_mpa_end(s, was, status, ecode);
	iw_mpa_notify_conn(s, was, status, ecode);
}
