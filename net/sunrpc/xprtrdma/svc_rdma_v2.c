// SPDX-License-Identifier: GPL-2.0
/*
 * RPC-over-RDMA version two on the server's side. A connection has no
 * version: each reply and each error has that of its call (section 5.3 of
 * draft-cel-nfsv4-rpcrdma-version-two-01), and callbacks have version two
 * after the first call that has it.
 */
#include <linux/sunrpc/svc_rdma.h>

#include "xprt_rdma.h"
#include "rpcrdma2.h"

unsigned int svcrdma_max_version = RPCRDMA_VERSION;

/**
 * svc_rdma_is_v2 - does this message have a header of version two?
 * @rctxt: a received message
 */
bool svc_rdma_is_v2(const struct svc_rdma_recv_ctxt *rctxt)
{
	const __be32 *p = rctxt->rc_recv_buf;

	return p[1] == rpcrdma2_version;
}

/**
 * svc_rdma_sends_v2 - does this message have a header of version two?
 * @sctxt: a message to send, whose header begins in its buffer
 */
bool svc_rdma_sends_v2(const struct svc_rdma_send_ctxt *sctxt)
{
	const __be32 *p = sctxt->sc_xprt_buf;

	return p[1] == rpcrdma2_version;
}

/**
 * svc_rdma_v2_receive - judge a message of version two
 * @rdma: the connection it came from
 * @rctxt: the message
 *
 * Context: a server thread; may sleep.
 *
 * Return: a positive value if the message is a MSG or NOMSG whose chunk lists
 *	come next, %0 if it needs no more attention, or
 *	%-EINVAL if the answer is an ERROR, BAD_HEADER,
 *	%-EOPNOTSUPP if the answer is an ERROR, INVALID_OPTION
 */
int svc_rdma_v2_receive(struct svcxprt_rdma *rdma,
			struct svc_rdma_recv_ctxt *rctxt)
{
	enum rpcrdma2_parse result;
	struct rpcrdma2_hdr hdr;

	result = rpcrdma2_decode(rctxt->rc_recv_buf, rctxt->rc_byte_len, &hdr);
	if (result != RPCRDMA2_GOOD)
		return rpcrdma2_judge(&hdr, result) ? -EINVAL : 0;
	switch (hdr.proc) {
	case RDMA2_ERROR:
		return 0;
	case RDMA2_OPTIONAL:
		return rpcrdma2_receive_option(&hdr, rctxt->rc_recv_buf,
					       rctxt->rc_byte_len);
	}
	/* Callbacks have no chunks: memory of the client must not be read or
	 * written for a reply
	 */
	if (hdr.direction == RPCRDMA2_REPLY &&
	    (hdr.proc == RDMA2_NOMSG || hdr.len != RPCRDMA2_HDRLEN_MIN))
		return 0;
	if (hdr.direction == RPCRDMA2_CALL)
		WRITE_ONCE(rdma->sc_vers, RPCRDMA2_VERSION);
	return 1;
}
