// SPDX-License-Identifier: GPL-2.0
/*
 * RPC-over-RDMA version two on the server's side. A connection has no
 * version: each reply and each error uses the version of its call (section 5.3
 * of draft-cel-nfsv4-rpcrdma-version-two-01), and callbacks use version two
 * after the first call of version two.
 */
#include <kunit/visibility.h>
#include <linux/sunrpc/svc_rdma.h>

#include "xprt_rdma.h"
#include "rpcrdma2.h"
#include <trace/events/rpcrdma.h>

unsigned int svcrdma_max_version = RPCRDMA_VERSION;

/**
 * svc_rdma_v2_fail_callback - end a callback that the client cannot process
 * @xprt: the reverse direction of a connection
 * @xid: the xid of the ERROR that answers it
 *
 * The callback need not wait for its timeout.
 */
void svc_rdma_v2_fail_callback(struct rpc_xprt *xprt, __be32 xid)
{
	struct rpc_rqst *rqst;

	spin_lock(&xprt->queue_lock);
	rqst = xprt_lookup_rqst(xprt, xid);
	if (rqst) {
		rqst->rq_task->tk_status = -EIO;
		xprt_complete_rqst(rqst->rq_task, 0);
	}
	spin_unlock(&xprt->queue_lock);
}
EXPORT_SYMBOL_IF_KUNIT(svc_rdma_v2_fail_callback);

static int drop(const struct svc_rdma_recv_ctxt *rctxt)
{
	trace_svcrdma_decode_drop_err(rctxt, rctxt->rc_recv_buf);
	return 0;
}

static int refuse(const struct svc_rdma_recv_ctxt *rctxt)
{
	trace_svcrdma_decode_parse_err(rctxt, rctxt->rc_recv_buf);
	return -EINVAL;
}

/* Callbacks have no chunks: memory of the client must not be read or written
 * for a reply
 */
static int check_reply(const struct svcxprt_rdma *rdma,
		       struct svc_rdma_recv_ctxt *rctxt)
{
	__be32 xid = *(__be32 *)rctxt->rc_recv_buf;

	if (rctxt->rc_msgtype != rdma_msg)
		return drop(rctxt);
	if (rpcrdma2_is_plain(&rctxt->rc_stream, xid, RPCRDMA2_CALL))
		return refuse(rctxt);
	if (!rpcrdma2_is_plain(&rctxt->rc_stream, xid, RPCRDMA2_REPLY) ||
	    !rdma->sc_xprt.xpt_bc_xprt)
		return drop(rctxt);
	return 1;
}

static int svc_rdma_v2_decode(struct svcxprt_rdma *rdma,
			      struct svc_rdma_recv_ctxt *rctxt)
{
	struct rpc_xprt *bc_xprt = rdma->sc_xprt.xpt_bc_xprt;
	__be32 *argp = rctxt->rc_recv_buf;

	switch (rpcrdma2_decode(&rctxt->rc_stream, rctxt->rc_msgtype)) {
	case RPCRDMA2_IS_CALL:
		return 1;
	case RPCRDMA2_IS_REPLY:
		return check_reply(rdma, rctxt);
	case RPCRDMA2_IS_ERROR:
		if (bc_xprt)
			svc_rdma_v2_fail_callback(bc_xprt, *argp);
		return drop(rctxt);
	case RPCRDMA2_IS_OPTION:
		trace_svcrdma_decode_option_err(rctxt, argp);
		return -EOPNOTSUPP;
	case RPCRDMA2_IS_BAD:
		return refuse(rctxt);
	case RPCRDMA2_IS_DROPPED:
		break;
	}
	return drop(rctxt);
}

/* A NOMSG conveys the whole RPC message by a chunk (RFC 8166, section 4.1) */
static bool svc_rdma_v2_is_call(const struct svc_rqst *rqstp,
				const struct svc_rdma_recv_ctxt *rctxt)
{
	const struct kvec *head = &rqstp->rq_arg.head[0];
	struct svcxprt_rdma *rdma =
		container_of(rqstp->rq_xprt, struct svcxprt_rdma, sc_xprt);

	if ((rctxt->rc_msgtype == rdma_nomsg &&
	     pcl_is_empty(&rctxt->rc_call_pcl)) ||
	    !rpcrdma2_begins_message(head->iov_base, head->iov_len,
				     *(__be32 *)rctxt->rc_recv_buf,
				     RPCRDMA2_CALL)) {
		trace_svcrdma_decode_parse_err(rctxt, rctxt->rc_recv_buf);
		return false;
	}
	WRITE_ONCE(rdma->sc_bc_vers, &rpcrdma_vers_two);
	return true;
}

const struct svc_rdma_vers_ops svc_rdma_vers_one = {
	.vers		= &rpcrdma_vers_one,
};

const struct svc_rdma_vers_ops svc_rdma_vers_two = {
	.vers		= &rpcrdma_vers_two,
	.decode		= svc_rdma_v2_decode,
	.is_call	= svc_rdma_v2_is_call,
};
