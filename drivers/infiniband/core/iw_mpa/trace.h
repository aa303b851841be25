/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tracepoints of MPA connection setup. Each record names the device, the lower
 * layer protocol and, except for mpa_term, both ends of the connection.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM iw_mpa

#if !defined(_IW_MPA_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define _IW_MPA_TRACE_H

#include <linux/in6.h>
#include <linux/string.h>
#include <linux/tracepoint.h>

#include <rdma/ib_verbs.h>
#include "device.h"
#include "name.h"

#ifndef _IW_MPA_TRACE_HELPERS
#define _IW_MPA_TRACE_HELPERS
static inline void mpa_trace_dev(const struct iw_mpa_session *s, char *name)
{
	/* The whole field is copied to the trace buffer */
	memset(name, 0, IB_DEVICE_NAME_MAX);
	if (s->port)
		iw_mpa_device_name(s->port->dev, name);
	else
		strscpy(name, "none", IB_DEVICE_NAME_MAX);
}

#define MPA_TRACE_LLP_MAX 8

static inline void mpa_trace_llp(const struct iw_mpa_session *s, char *llp)
{
	strscpy_pad(llp, s->port ? iw_mpa_llp_str(s->port->dev) : "none",
		    MPA_TRACE_LLP_MAX);
}

/* Each address fits into a sockaddr_in6 */
static inline u32 mpa_trace_name(const struct iw_mpa_session *s, u8 *local,
				 u8 *remote)
{
	struct iw_mpa_name name;

	iw_mpa_name_session(s, &name);
	memcpy(local, &name.local, sizeof(struct sockaddr_in6));
	memcpy(remote, &name.remote, sizeof(struct sockaddr_in6));
	return name.qpn;
}
#endif

TRACE_DEFINE_ENUM(IW_MPA_IDLE);
TRACE_DEFINE_ENUM(IW_MPA_CONNECTING);
TRACE_DEFINE_ENUM(IW_MPA_REQ_SENT);
TRACE_DEFINE_ENUM(IW_MPA_REP_RCVD);
TRACE_DEFINE_ENUM(IW_MPA_REQ_WAIT);
TRACE_DEFINE_ENUM(IW_MPA_REQ_RCVD);
TRACE_DEFINE_ENUM(IW_MPA_REP_SENT);
TRACE_DEFINE_ENUM(IW_MPA_RTR_WAIT);
TRACE_DEFINE_ENUM(IW_MPA_RDMA);
TRACE_DEFINE_ENUM(IW_MPA_CLOSED);

#define mpa_show_state(state)				\
	__print_symbolic(state,				\
			 { IW_MPA_IDLE, "IDLE" },		\
			 { IW_MPA_CONNECTING, "CONNECTING" },	\
			 { IW_MPA_REQ_SENT, "REQ_SENT" },	\
			 { IW_MPA_REP_RCVD, "REP_RCVD" },	\
			 { IW_MPA_REQ_WAIT, "REQ_WAIT" },	\
			 { IW_MPA_REQ_RCVD, "REQ_RCVD" },	\
			 { IW_MPA_REP_SENT, "REP_SENT" },	\
			 { IW_MPA_RTR_WAIT, "RTR_WAIT" },	\
			 { IW_MPA_RDMA, "RDMA" },		\
			 { IW_MPA_CLOSED, "CLOSED" })

TRACE_DEFINE_ENUM(IW_MPA_GO);
TRACE_DEFINE_ENUM(IW_MPA_REJECTED);
TRACE_DEFINE_ENUM(IW_MPA_TERMINATE);
TRACE_DEFINE_ENUM(IW_MPA_DROP);

#define mpa_show_verdict(verdict)			\
	__print_symbolic(verdict,			\
			 { IW_MPA_GO, "go" },		\
			 { IW_MPA_REJECTED, "rejected" },	\
			 { IW_MPA_TERMINATE, "terminate" },	\
			 { IW_MPA_DROP, "drop" })

TRACE_DEFINE_ENUM(IW_MPA_FRAME_TRAILING);
TRACE_DEFINE_ENUM(IW_MPA_FRAME_BAD_KEY);
TRACE_DEFINE_ENUM(IW_MPA_FRAME_BAD_REV);
TRACE_DEFINE_ENUM(IW_MPA_FRAME_PDATA_TOO_LONG);
TRACE_DEFINE_ENUM(IW_MPA_FRAME_BLOCK_MISSING);
TRACE_DEFINE_ENUM(IW_MPA_FRAME_BAD_CODE);

#define mpa_show_parse(result)				\
	__print_symbolic(result,			\
			 { IW_MPA_FRAME_TRAILING, "trailing" },	\
			 { IW_MPA_FRAME_BAD_KEY, "bad-key" },	\
			 { IW_MPA_FRAME_BAD_REV, "bad-rev" },	\
			 { IW_MPA_FRAME_PDATA_TOO_LONG, "pdata-too-long" }, \
			 { IW_MPA_FRAME_BLOCK_MISSING, "block-missing" }, \
			 { IW_MPA_FRAME_BAD_CODE, "bad-code" })

#define mpa_show_rtr(rtr)				\
	__print_flags(rtr, "|", { 1, "send" }, { 2, "write" }, { 4, "read" })

#define MPA_WHO_FIELDS						\
		__dynamic_array(char, dev, IB_DEVICE_NAME_MAX)	\
		__dynamic_array(char, llp, MPA_TRACE_LLP_MAX)	\
		__field(bool, responder)			\
		__field(u32, qpn)				\
		__array(u8, local, sizeof(struct sockaddr_in6))	\
		__array(u8, remote, sizeof(struct sockaddr_in6))

#define MPA_WHO_ASSIGN						\
		mpa_trace_dev(s, __get_str(dev));		\
		mpa_trace_llp(s, __get_str(llp));		\
		__entry->responder = s->responder;		\
		__entry->qpn = mpa_trace_name(s, __entry->local, __entry->remote)

#define MPA_WHO_FMT "dev=%s llp=%s role=%s qpn=%u local=%pISpc remote=%pISpc "

#define MPA_WHO_ARGS						\
		__get_str(dev), __get_str(llp),			\
		__entry->responder ? "responder" : "initiator",	\
		__entry->qpn, __entry->local, __entry->remote

DECLARE_EVENT_CLASS(mpa_frame_class,
	TP_PROTO(const struct iw_mpa_session *s,
		 const struct iw_mpa_frame *frame),
	TP_ARGS(s, frame),
	TP_STRUCT__entry(
		MPA_WHO_FIELDS
		__field(bool, reply)
		__field(u8, rev)
		__field(bool, markers)
		__field(bool, crc)
		__field(bool, reject)
		__field(bool, enhanced)
		__field(bool, p2p)
		__field(u8, rtr)
		__field(u16, ird)
		__field(u16, ord)
		__field(u16, pdata_len)
	),
	TP_fast_assign(
		MPA_WHO_ASSIGN;
		__entry->reply = frame->kind == IW_MPA_REPLY;
		__entry->rev = frame->rev;
		__entry->markers = frame->markers;
		__entry->crc = frame->crc;
		__entry->reject = frame->reject;
		__entry->enhanced = frame->enhanced;
		__entry->p2p = frame->enh.p2p;
		__entry->rtr = frame->enh.rtr;
		__entry->ird = frame->enh.ird;
		__entry->ord = frame->enh.ord;
		__entry->pdata_len = frame->pdata_len;
	),
	TP_printk(MPA_WHO_FMT "kind=%s rev=%u m=%u c=%u r=%u s=%u p2p=%u rtr=%s ird=%u ord=%u pdata_len=%u",
		  MPA_WHO_ARGS, __entry->reply ? "reply" : "request",
		  __entry->rev, __entry->markers, __entry->crc, __entry->reject,
		  __entry->enhanced, __entry->p2p, mpa_show_rtr(__entry->rtr),
		  __entry->ird, __entry->ord, __entry->pdata_len)
);

DEFINE_EVENT(mpa_frame_class, mpa_frame_sent,
	TP_PROTO(const struct iw_mpa_session *s,
		 const struct iw_mpa_frame *frame),
	TP_ARGS(s, frame)
);

DEFINE_EVENT(mpa_frame_class, mpa_frame_received,
	TP_PROTO(const struct iw_mpa_session *s,
		 const struct iw_mpa_frame *frame),
	TP_ARGS(s, frame)
);

TRACE_EVENT(mpa_frame_bad,
	TP_PROTO(const struct iw_mpa_session *s, enum iw_mpa_parse result),
	TP_ARGS(s, result),
	TP_STRUCT__entry(
		MPA_WHO_FIELDS
		__field(u8, result)
		__field(u16, rx_len)
	),
	TP_fast_assign(
		MPA_WHO_ASSIGN;
		__entry->result = result;
		__entry->rx_len = s->setup->rx_len;
	),
	TP_printk(MPA_WHO_FMT "error=%s rx_len=%u", MPA_WHO_ARGS,
		  mpa_show_parse(__entry->result), __entry->rx_len)
);

TRACE_EVENT(mpa_state,
	TP_PROTO(const struct iw_mpa_session *s, enum iw_mpa_state was,
		 enum iw_mpa_state state),
	TP_ARGS(s, was, state),
	TP_STRUCT__entry(
		MPA_WHO_FIELDS
		__field(u8, was)
		__field(u8, state)
	),
	TP_fast_assign(
		MPA_WHO_ASSIGN;
		__entry->was = was;
		__entry->state = state;
	),
	TP_printk(MPA_WHO_FMT "from=%s to=%s", MPA_WHO_ARGS,
		  mpa_show_state(__entry->was), mpa_show_state(__entry->state))
);

TRACE_EVENT(mpa_decision,
	TP_PROTO(const struct iw_mpa_session *s,
		 const struct iw_mpa_decision *d),
	TP_ARGS(s, d),
	TP_STRUCT__entry(
		MPA_WHO_FIELDS
		__field(u8, verdict)
		__field(int, status)
		__field(u8, ecode)
		__field(u16, ird)
		__field(u16, ord)
		__field(u16, read_slots)
		__field(u8, rtr)
		__field(bool, peer_known)
		__field(u16, peer_ird)
		__field(u16, peer_ord)
	),
	TP_fast_assign(
		MPA_WHO_ASSIGN;
		__entry->verdict = d->verdict;
		__entry->status = d->status;
		__entry->ecode = d->ecode;
		__entry->ird = d->ird;
		__entry->ord = d->ord;
		__entry->read_slots = d->read_slots;
		__entry->rtr = d->rtr;
		__entry->peer_known = d->peer_known;
		__entry->peer_ird = d->peer_ird;
		__entry->peer_ord = d->peer_ord;
	),
	TP_printk(MPA_WHO_FMT "verdict=%s status=%d ecode=%u ird=%u ord=%u read_slots=%u rtr=%s peer_known=%u peer_ird=%u peer_ord=%u",
		  MPA_WHO_ARGS, mpa_show_verdict(__entry->verdict),
		  __entry->status, __entry->ecode, __entry->ird, __entry->ord,
		  __entry->read_slots, mpa_show_rtr(__entry->rtr),
		  __entry->peer_known, __entry->peer_ird, __entry->peer_ord)
);

TRACE_EVENT(mpa_rtr,
	TP_PROTO(const struct iw_mpa_session *s, u8 rtr),
	TP_ARGS(s, rtr),
	TP_STRUCT__entry(
		MPA_WHO_FIELDS
		__field(u8, rtr)
	),
	TP_fast_assign(
		MPA_WHO_ASSIGN;
		__entry->rtr = rtr;
	),
	TP_printk(MPA_WHO_FMT "dir=%s rtr=%s", MPA_WHO_ARGS,
		  __entry->responder ? "received" : "sent",
		  mpa_show_rtr(__entry->rtr))
);

TRACE_EVENT(mpa_term,
	TP_PROTO(const struct iw_mpa_session *s, bool received, u8 layer,
		 u8 etype, u8 ecode),
	TP_ARGS(s, received, layer, etype, ecode),
	TP_STRUCT__entry(
		__dynamic_array(char, dev, IB_DEVICE_NAME_MAX)
		__dynamic_array(char, llp, MPA_TRACE_LLP_MAX)
		__field(bool, responder)
		__field(bool, received)
		__field(u8, layer)
		__field(u8, etype)
		__field(u8, ecode)
	),
	TP_fast_assign(
		/* No addresses: soft interrupts cannot query the socket */
		mpa_trace_dev(s, __get_str(dev));
		mpa_trace_llp(s, __get_str(llp));
		__entry->responder = s->responder;
		__entry->received = received;
		__entry->layer = layer;
		__entry->etype = etype;
		__entry->ecode = ecode;
	),
	TP_printk("dev=%s llp=%s role=%s dir=%s term=%u/%u/%u",
		  __get_str(dev), __get_str(llp),
		  __entry->responder ? "responder" : "initiator",
		  __entry->received ? "received" : "sent",
		  __entry->layer, __entry->etype, __entry->ecode)
);

DECLARE_EVENT_CLASS(mpa_state_class,
	TP_PROTO(const struct iw_mpa_session *s, enum iw_mpa_state state),
	TP_ARGS(s, state),
	TP_STRUCT__entry(
		MPA_WHO_FIELDS
		__field(u8, state)
	),
	TP_fast_assign(
		MPA_WHO_ASSIGN;
		__entry->state = state;
	),
	TP_printk(MPA_WHO_FMT "state=%s", MPA_WHO_ARGS,
		  mpa_show_state(__entry->state))
);

DEFINE_EVENT(mpa_state_class, mpa_timeout,
	TP_PROTO(const struct iw_mpa_session *s, enum iw_mpa_state state),
	TP_ARGS(s, state)
);

DEFINE_EVENT(mpa_state_class, mpa_fallback,
	TP_PROTO(const struct iw_mpa_session *s, enum iw_mpa_state state),
	TP_ARGS(s, state)
);

DEFINE_EVENT(mpa_state_class, mpa_fastopen,
	TP_PROTO(const struct iw_mpa_session *s, enum iw_mpa_state state),
	TP_ARGS(s, state)
);

TRACE_EVENT(mpa_end,
	TP_PROTO(const struct iw_mpa_session *s, enum iw_mpa_state was,
		 int status, u8 ecode),
	TP_ARGS(s, was, status, ecode),
	TP_STRUCT__entry(
		MPA_WHO_FIELDS
		__field(u8, was)
		__field(int, status)
		__field(u8, ecode)
	),
	TP_fast_assign(
		MPA_WHO_ASSIGN;
		__entry->was = was;
		__entry->status = status;
		__entry->ecode = ecode;
	),
	TP_printk(MPA_WHO_FMT "%s in=%s status=%d ecode=%u", MPA_WHO_ARGS,
		  __entry->status ? "failed" : "established",
		  mpa_show_state(__entry->was), __entry->status, __entry->ecode)
);

#endif /* _IW_MPA_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace

#include <trace/define_trace.h>
