// SPDX-License-Identifier: GPL-2.0
/*
 * RPC-over-RDMA version two on the client's side: which version a connection
 * uses (section 5 of draft-cel-nfsv4-rpcrdma-version-two-01).
 *
 *            rpcrdma2_start()
 *            |              |
 *            | max. 2       | max. 1, or the server does not support 2
 *            v              v
 *        probing -------> version 1
 *            |    ERR_VERS, BAD_HEADER
 *            | a reply
 *            v
 *        version 2
 *
 * While a connection is probing it has one credit, and its messages have at
 * most 1024 octets. All receives have room for 4096 octets from the start, so
 * the thresholds can rise without a new connection.
 */
#include <kunit/visibility.h>
#include <linux/slab.h>
#include <linux/sunrpc/svc_rdma.h>

#include "xprt_rdma.h"
#include "rpcrdma2.h"
#include <trace/events/rpcrdma.h>

unsigned int xprt_rdma_max_version = RPCRDMA_VERSION;
EXPORT_SYMBOL_IF_KUNIT(xprt_rdma_max_version);

static bool rpcrdma2_receive(struct rpcrdma_xprt *r_xprt,
			     struct rpcrdma_rep *rep, u32 *credits);
static bool rpcrdma2_is_reply(struct rpcrdma_rep *rep, size_t len);

static const struct rpcrdma_vers_ops version_one = {
	.vers		= &rpcrdma_vers_one,
};

static const struct rpcrdma_vers_ops version_two = {
	.vers		= &rpcrdma_vers_two,
	/* as many as the calls that the server may send */
	.max_errors	= 16,
	.receive	= rpcrdma2_receive,
	.is_reply	= rpcrdma2_is_reply,
};

/* mountstats also shows the version while there is no connection */
static void set_version(struct rpcrdma_xprt *r_xprt, struct rpcrdma_ep *ep,
			const struct rpcrdma_vers_ops *ops)
{
	ep->re_vers_ops = ops;
	r_xprt->rx_stats.vers = be32_to_cpu(ops->vers->number);
}

/**
 * rpcrdma2_start - decide whether a new connection begins with version two
 * @r_xprt: the transport; records whether its server lacks version two
 * @ep: the connection, before its receives are posted
 */
void rpcrdma2_start(struct rpcrdma_xprt *r_xprt, struct rpcrdma_ep *ep)
{
	ep->re_vers_ops = &version_one;
	r_xprt->rx_stats.vers = 0;
	if (xprt_rdma_max_version < RPCRDMA2_VERSION)
		return;
	set_version(r_xprt, ep, r_xprt->rx_no_v2 ? &version_one : &version_two);
	if (r_xprt->rx_no_v2)
		return;
	ep->re_probing = true;
	ep->re_inline_recv = max_t(unsigned int, ep->re_inline_recv,
				   RPCRDMA2_DEF_INLINE);
}
EXPORT_SYMBOL_IF_KUNIT(rpcrdma2_start);

/**
 * rpcrdma2_limit_probe - set the thresholds of a connection that is probing
 * @ep: a new connection; its thresholds are those of version one
 *
 * The sizes that both ends announce by RFC 8797 do not depend on the version,
 * so a larger threshold of version one is kept.
 */
void rpcrdma2_limit_probe(struct rpcrdma_ep *ep)
{
	if (!ep->re_probing)
		return;
	ep->re_v1_send = ep->re_inline_send;
	ep->re_v1_recv = min(ep->re_inline_recv, xprt_rdma_max_inline_read);
	ep->re_inline_send = RPCRDMA2_PROBE_MAX;
	ep->re_inline_recv = max_t(unsigned int, ep->re_inline_recv,
				   RPCRDMA2_DEF_INLINE);
}
EXPORT_SYMBOL_IF_KUNIT(rpcrdma2_limit_probe);

/**
 * struct error_send - an ERROR on its way to the server
 * @cqe: of its completion
 * @ep: its connection, which outlives all its completions
 * @sge: where the message is
 * @message: the message
 */
struct error_send {
	struct ib_cqe cqe;
	struct rpcrdma_ep *ep;
	struct ib_sge sge;
	__be32 message[RPCRDMA2_ERROR_LEN / sizeof(__be32)];
};

static void free_error(struct error_send *send)
{
	ib_dma_unmap_single(send->ep->re_id->device, send->sge.addr,
			    send->sge.length, DMA_TO_DEVICE);
	atomic_dec(&send->ep->re_errors);
	kfree(send);
}

static void wc_error(struct ib_cq *cq, struct ib_wc *wc)
{
	struct rpcrdma_xprt *r_xprt = cq->cq_context;

	rpcrdma_flush_disconnect(r_xprt, wc);
	free_error(container_of(wc->wr_cqe, struct error_send, cqe));
}

/* Returns NULL if there is no room to send one more */
static struct error_send *make_error(struct rpcrdma_xprt *r_xprt, __be32 xid,
				     enum rpcrdma2_errcode code)
{
	struct rpcrdma_ep *ep = r_xprt->rx_ep;
	struct ib_device *device = ep->re_id->device;
	struct error_send *send;

	if (!atomic_add_unless(&ep->re_errors, 1, version_two.max_errors))
		return NULL;
	send = kzalloc_node(sizeof(*send), GFP_NOWAIT, ibdev_to_node(device));
	if (!send)
		goto out_dec;
	/* A credit value of zero is not valid (RFC 8166, section 3.3.1) */
	rpcrdma2_encode_error(send->message, xid,
			      r_xprt->rx_buf.rb_bc_srv_max_requests ?: 1, code);
	send->cqe.done = wc_error;
	send->ep = ep;
	send->sge.length = sizeof(send->message);
	send->sge.lkey = ep->re_pd->local_dma_lkey;
	send->sge.addr = ib_dma_map_single(device, send->message,
					   send->sge.length, DMA_TO_DEVICE);
	if (!ib_dma_mapping_error(device, send->sge.addr))
		return send;
	kfree(send);
out_dec:
	atomic_dec(&ep->re_errors);
	return NULL;
}

/* Answers a message for which the client is the responder. A task, and with it
 * the transport's lock, is not needed: the send queue has room for this, and
 * rpcrdma_xprt_drain() waits for the receive handler, then for its sends.
 */
static void send_error(struct rpcrdma_xprt *r_xprt,
		       const struct rpcrdma_rep *rep,
		       enum rpcrdma2_errcode code)
{
	struct error_send *send = make_error(r_xprt, rep->rr_xid, code);
	struct ib_send_wr wr = {
		.opcode = IB_WR_SEND,
		.send_flags = IB_SEND_SIGNALED,
		.num_sge = 1,
	};

	if (!send)
		return;
	wr.wr_cqe = &send->cqe;
	wr.sg_list = &send->sge;
	if (ib_post_send(r_xprt->rx_ep->re_id->qp, &wr, NULL)) {
		free_error(send);
		return;
	}
	if (code == RDMA2_ERR_INVALID_OPTION)
		trace_xprtrdma_reply_option_err(rep);
	else
		trace_xprtrdma_reply_refuse_err(rep);
}

static bool is_payload(__be32 proc)
{
	return proc == rdma_msg || proc == rdma_nomsg;
}

/* Does the client have a service for the server's calls? */
static bool can_take_call(const struct rpcrdma_xprt *r_xprt)
{
#if defined(CONFIG_SUNRPC_BACKCHANNEL)
	return r_xprt->rx_xprt.bc_serv;
#else
	return false;
#endif
}

/* The client registers no memory for calls of its server */
static bool carries_call(struct rpcrdma_rep *rep)
{
	return rep->rr_proc == rdma_msg &&
	       rpcrdma2_is_plain(&rep->rr_stream, rep->rr_xid, RPCRDMA2_CALL);
}

static bool drop(const struct rpcrdma_rep *rep)
{
	trace_xprtrdma_reply_drop_err(rep);
	return false;
}

static bool refuse(struct rpcrdma_xprt *r_xprt, const struct rpcrdma_rep *rep,
		   enum rpcrdma2_errcode code)
{
	send_error(r_xprt, rep, code);
	return false;
}

static bool is_good_error(struct rpcrdma_rep *rep)
{
	return rpcrdma2_decode(&rep->rr_stream, rdma_error) ==
	       RPCRDMA2_IS_ERROR;
}

/* While a connection is probing, an error may have any version, because a
 * server without version two uses its own version. The header is the same. A
 * malformed error is dropped (sections 4.2.1 and 4.2.3), and no error grants
 * credits (section 5).
 */
static bool rpcrdma2_receive(struct rpcrdma_xprt *r_xprt,
			     struct rpcrdma_rep *rep, u32 *credits)
{
	if (rep->rr_proc == rdma_error)
		*credits = r_xprt->rx_buf.rb_credits;
	if (rep->rr_vers != rpcrdma2_version) {
		if (rep->rr_proc == rdma_error && r_xprt->rx_ep->re_probing)
			return is_good_error(rep) || drop(rep);
		trace_xprtrdma_reply_vers_err(rep);
		return false;
	}
	r_xprt->rx_v2_seen = true;
	switch (rpcrdma2_decode(&rep->rr_stream, rep->rr_proc)) {
	case RPCRDMA2_IS_CALL:
		if (!carries_call(rep))
			return refuse(r_xprt, rep, RDMA2_ERR_BAD_HEADER);
		return can_take_call(r_xprt) || drop(rep);
	case RPCRDMA2_IS_REPLY:
		if (carries_call(rep))
			return refuse(r_xprt, rep, RDMA2_ERR_BAD_HEADER);
		return true;
	case RPCRDMA2_IS_ERROR:
		return true;
	case RPCRDMA2_IS_OPTION:
		return refuse(r_xprt, rep, RDMA2_ERR_INVALID_OPTION);
	case RPCRDMA2_IS_BAD:
		return refuse(r_xprt, rep, RDMA2_ERR_BAD_HEADER);
	case RPCRDMA2_IS_DROPPED:
		break;
	}
	return drop(rep);
}

/* The octets that a Write chunk has conveyed are not part of a MSG */
static bool rpcrdma2_is_reply(struct rpcrdma_rep *rep, size_t len)
{
	const __be32 *p = rep->rr_rqst->rq_rcv_buf.head[0].iov_base;

	if (rep->rr_proc == rdma_msg) {
		p = xdr_inline_decode(&rep->rr_stream, 0);
		len = (char *)rep->rr_stream.end - (char *)p;
	}
	return rpcrdma2_begins_message(p, len, rep->rr_xid, RPCRDMA2_REPLY);
}

/**
 * rpcrdma2_settle - select version two
 * @r_xprt: a transport that is probing
 * @rep: the reply received; an error selects no version
 *
 * To be called before the credits of this reply permit more calls.
 */
void rpcrdma2_settle(struct rpcrdma_xprt *r_xprt, struct rpcrdma_rep *rep)
{
	struct rpcrdma_ep *ep = r_xprt->rx_ep;

	if (!is_payload(rep->rr_proc))
		return;
	ep->re_inline_send = max_t(unsigned int, ep->re_v1_send,
				   RPCRDMA2_DEF_INLINE);
	ep->re_probing = false;
	rpcrdma_set_max_header_sizes(ep);
	trace_xprtrdma_settle_v2(r_xprt);
}
EXPORT_SYMBOL_IF_KUNIT(rpcrdma2_settle);

static bool was_sent_in_v2(const struct rpc_rqst *rqst)
{
	const __be32 *p = rdmab_data(rpcr_to_rdmar(rqst)->rl_rdmabuf);

	return p[1] == rpcrdma2_version;
}

/* Each call is encoded again before it is sent again */
static void change_cookie(struct rpcrdma_xprt *r_xprt)
{
	spin_lock(&r_xprt->rx_xprt.transport_lock);
	r_xprt->rx_xprt.connect_cookie++;
	spin_unlock(&r_xprt->rx_xprt.transport_lock);
}

/**
 * rpcrdma2_refuse - handle an ERR_VERS, or a BAD_HEADER in its place
 * @r_xprt: the transport that received the error
 * @rqst: the call that the error answers
 * @low: lowest version that the server supports
 * @high: highest version that the server supports
 *
 * A call is encoded again only if the connection has changed since it was sent,
 * so this changes the transport's cookie.
 *
 * Return: %-EAGAIN if the call has to be sent again, with the version that is
 *	now in use,
 *	%-EPROTONOSUPPORT if both sides have no version in common,
 *	%-EIO if the error is unexpected
 */
int rpcrdma2_refuse(struct rpcrdma_xprt *r_xprt, const struct rpc_rqst *rqst,
		    u32 low, u32 high)
{
	struct rpcrdma_ep *ep = r_xprt->rx_ep;

	if (ep->re_vers_ops == &version_one)
		/* The task of the first message was killed, and this call was
		 * sent before that message was answered.
		 */
		return was_sent_in_v2(rqst) ? -EAGAIN : -EIO;
	if (low > RPCRDMA_VERSION || high < RPCRDMA_VERSION)
		return -EPROTONOSUPPORT;
	r_xprt->rx_no_v2 = true;
	if (!ep->re_probing) {
		rpcrdma_force_disconnect(ep);
		change_cookie(r_xprt);
		return -EAGAIN;
	}
	set_version(r_xprt, ep, &version_one);
	ep->re_probing = false;
	ep->re_inline_send = ep->re_v1_send;
	ep->re_inline_recv = ep->re_v1_recv;
	rpcrdma_set_max_header_sizes(ep);
	change_cookie(r_xprt);
	trace_xprtrdma_settle_v1(r_xprt);
	return -EAGAIN;
}
EXPORT_SYMBOL_IF_KUNIT(rpcrdma2_refuse);

/**
 * rpcrdma2_stop - evaluate the end of a connection
 * @r_xprt: its transport
 *
 * A server that did not answer the first message is assumed to lack version two
 * (section 5.2). If it has sent a message of version two, valid or not, since
 * the last loss, version two is tried once more.
 */
void rpcrdma2_stop(struct rpcrdma_xprt *r_xprt)
{
	const struct rpcrdma_ep *ep = r_xprt->rx_ep;

	if (!ep->re_probing || !ep->re_probe_sent)
		return;
	if (!r_xprt->rx_v2_seen) {
		r_xprt->rx_no_v2 = true;
		trace_xprtrdma_assume_v1(r_xprt);
	}
	r_xprt->rx_v2_seen = false;
}
EXPORT_SYMBOL_IF_KUNIT(rpcrdma2_stop);
