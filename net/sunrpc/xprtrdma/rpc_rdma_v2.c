// SPDX-License-Identifier: GPL-2.0
/*
 * RPC-over-RDMA version two on the client's side: which version a connection
 * uses (section 5 of draft-cel-nfsv4-rpcrdma-version-two-01).
 *
 *            rpcrdma2_start()
 *            |              |
 *            | max. 2       | max. 1, or the server is known to have no 2
 *            v              v
 *        probing -------> version 1
 *            |    ERR_VERS
 *            | a reply
 *            v
 *        version 2
 *
 * While a connection is probing it has one credit, and its messages have at
 * most 1024 octets. All receives have room for 4096 octets from the start, so
 * the thresholds can rise without a new connection.
 */
#include <linux/sunrpc/svc_rdma.h>

#include "xprt_rdma.h"
#include "rpcrdma2.h"
#include <trace/events/rpcrdma.h>

unsigned int xprt_rdma_max_version = RPCRDMA_VERSION;

/* No procedure: the RPC that a bad reply belongs to fails */
#define bad_proc	cpu_to_be32(~0)

/**
 * rpcrdma2_start - decide whether a new connection begins with version two
 * @r_xprt: the transport; it remembers that its server has no version two
 * @ep: the connection, before its receives are posted
 */
void rpcrdma2_start(struct rpcrdma_xprt *r_xprt, struct rpcrdma_ep *ep)
{
	ep->re_vers = RPCRDMA_VERSION;
	if (xprt_rdma_max_version < RPCRDMA2_VERSION || r_xprt->rx_no_v2)
		return;
	ep->re_vers = RPCRDMA2_VERSION;
	ep->re_probing = true;
	ep->re_inline_recv = max_t(unsigned int, ep->re_inline_recv,
				   RPCRDMA2_DEF_INLINE);
}

/**
 * rpcrdma2_limit_probe - set the thresholds of a connection that is probing
 * @ep: a new connection; its thresholds are those of version one
 */
void rpcrdma2_limit_probe(struct rpcrdma_ep *ep)
{
	if (!ep->re_probing)
		return;
	ep->re_v1_send = ep->re_inline_send;
	ep->re_v1_recv = min(ep->re_inline_recv, xprt_rdma_max_inline_read);
	ep->re_inline_send = RPCRDMA2_PROBE_MAX;
	ep->re_inline_recv = RPCRDMA2_DEF_INLINE;
}

static bool is_payload(__be32 proc)
{
	return proc == rdma_msg || proc == rdma_nomsg;
}

/* A callback without chunks, and somebody who handles it */
static bool can_take_call(const struct rpcrdma_xprt *r_xprt,
			  const struct rpcrdma2_hdr *hdr)
{
#if defined(CONFIG_SUNRPC_BACKCHANNEL)
	return hdr->proc == RDMA2_MSG && hdr->len == RPCRDMA2_HDRLEN_MIN &&
	       r_xprt->rx_xprt.bc_serv;
#else
	return false;
#endif
}

/* Handles a message of version two that is no error. False: drop it */
static bool receive_v2(struct rpcrdma_xprt *r_xprt, struct rpcrdma_rep *rep)
{
	struct rpcrdma2_hdr hdr;
	enum rpcrdma2_parse result;

	result = rpcrdma2_decode(rep->rr_hdrbuf.head[0].iov_base,
				 rep->rr_hdrbuf.len, &hdr);
	if (result == RPCRDMA2_SHORT)
		return false;
	if (result == RPCRDMA2_GOOD && hdr.proc == RDMA2_OPTIONAL) {
		rpcrdma2_receive_option(&hdr, rep->rr_hdrbuf.head[0].iov_base,
					rep->rr_hdrbuf.len);
		return false;
	}
	if (hdr.direction == RPCRDMA2_REPLY) {
		if (result != RPCRDMA2_GOOD)
			rep->rr_proc = bad_proc;
	} else if (result != RPCRDMA2_GOOD || !can_take_call(r_xprt, &hdr)) {
		return false;
	}
	/* The chunk lists come next, as in version one */
	return xdr_inline_decode(&rep->rr_stream, sizeof(__be32));
}

/**
 * rpcrdma2_receive - does a received message have the connection's version?
 * @r_xprt: the transport
 * @rep: the message, decoded up to its procedure. If the result is true, it
 *	is now decoded up to the chunk lists or to the error
 *
 * While a connection is probing, an error may have any version, because that
 * of a server without version two is its own.
 */
bool rpcrdma2_receive(struct rpcrdma_xprt *r_xprt, struct rpcrdma_rep *rep)
{
	if (r_xprt->rx_ep->re_vers == RPCRDMA_VERSION)
		return rep->rr_vers == rpcrdma_version;
	if (rep->rr_vers == rpcrdma2_version)
		r_xprt->rx_v2_seen = true;
	if (rep->rr_proc == rdma_error)
		return true;
	return rep->rr_vers == rpcrdma2_version && receive_v2(r_xprt, rep);
}

/**
 * rpcrdma2_settle - go on with version two
 * @r_xprt: a transport that is probing
 * @rep: the reply that came; an error or a bad reply settles nothing
 *
 * Comes before the credits of this reply, which let more calls be sent.
 */
void rpcrdma2_settle(struct rpcrdma_xprt *r_xprt, struct rpcrdma_rep *rep)
{
	struct rpcrdma_ep *ep = r_xprt->rx_ep;

	if (!is_payload(rep->rr_proc))
		return;
	ep->re_inline_send = RPCRDMA2_DEF_INLINE;
	ep->re_probing = false;
	rpcrdma_set_max_header_sizes(ep);
	trace_xprtrdma_settle_v2(r_xprt);
}

/**
 * rpcrdma2_refuse - handle an ERR_VERS
 * @r_xprt: the transport that it came from
 * @low: lowest version that the server has
 * @high: highest such version
 *
 * The call is encoded anew only if the connection has changed since it was
 * sent. That is why the transport's cookie changes.
 *
 * Return: %-EAGAIN if the call has to be sent again, with the version that is
 *	now in use,
 *	%-EPROTONOSUPPORT if there is no version that both sides have,
 *	%-EIO if it is a surprise
 */
int rpcrdma2_refuse(struct rpcrdma_xprt *r_xprt, u32 low, u32 high)
{
	struct rpcrdma_ep *ep = r_xprt->rx_ep;

	if (ep->re_vers == RPCRDMA_VERSION)
		return -EIO;
	if (low > RPCRDMA_VERSION || high < RPCRDMA_VERSION)
		return -EPROTONOSUPPORT;
	r_xprt->rx_no_v2 = true;
	if (!ep->re_probing) {
		rpcrdma_force_disconnect(ep);
		return -EAGAIN;
	}
	ep->re_vers = RPCRDMA_VERSION;
	ep->re_probing = false;
	ep->re_inline_send = ep->re_v1_send;
	ep->re_inline_recv = ep->re_v1_recv;
	rpcrdma_set_max_header_sizes(ep);
	r_xprt->rx_xprt.connect_cookie++;
	trace_xprtrdma_settle_v1(r_xprt);
	return -EAGAIN;
}

/**
 * rpcrdma2_stop - learn from the end of a connection
 * @r_xprt: its transport
 *
 * A server that never answered the first message is taken for one without
 * version two (section 5.2). If a message of version two has come from it, good
 * or bad, since the last loss, it gets another chance.
 */
void rpcrdma2_stop(struct rpcrdma_xprt *r_xprt)
{
	const struct rpcrdma_ep *ep = r_xprt->rx_ep;

	if (!ep->re_probing || !ep->re_probe_sent)
		return;
	if (!r_xprt->rx_v2_seen)
		r_xprt->rx_no_v2 = true;
	r_xprt->rx_v2_seen = false;
}
