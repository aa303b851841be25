/* SPDX-License-Identifier: GPL-2.0 */
/*
 * RPC-over-RDMA version two (draft-cel-nfsv4-rpcrdma-version-two-01) on
 * connections of the NFS client and server
 */
#ifndef _RPCRDMA2_H
#define _RPCRDMA2_H

#include <linux/sunrpc/svc_rdma.h>

#include "rpcrdma2_xdr.h"

struct rpc_rqst;
struct rpc_xprt;
struct rpcrdma_ep;
struct rpcrdma_rep;
struct rpcrdma_xprt;

/* Client - xprtrdma/rpc_rdma_v2.c */

/**
 * struct rpcrdma_vers_ops - a version on the client's side
 * @vers: its header
 * @max_errors: largest number of ERRORs being sent to the server at a time; the
 *	Send Queue has room for them
 * @receive: decodes the fields between a message's procedure and its chunk
 *	lists or the code of an ERROR. If the message grants no credits, it
 *	sets @credits to the credits in use. Returns false if the message needs
 *	no further processing. NULL: there are no such fields
 * @is_reply: does a message, or the memory of its call into which it has put
 *	@len octets, contain the reply that its header announces? NULL: the
 *	header announces nothing
 */
struct rpcrdma_vers_ops {
	const struct rpcrdma_vers *vers;
	unsigned int max_errors;
	bool (*receive)(struct rpcrdma_xprt *r_xprt, struct rpcrdma_rep *rep,
			u32 *credits);
	bool (*is_reply)(struct rpcrdma_rep *rep, size_t len);
};

extern unsigned int xprt_rdma_max_version;

void rpcrdma2_start(struct rpcrdma_xprt *r_xprt, struct rpcrdma_ep *ep);
void rpcrdma2_limit_probe(struct rpcrdma_ep *ep);
void rpcrdma2_settle(struct rpcrdma_xprt *r_xprt, struct rpcrdma_rep *rep);
int rpcrdma2_refuse(struct rpcrdma_xprt *r_xprt, const struct rpc_rqst *rqst,
		    u32 low, u32 high);
void rpcrdma2_stop(struct rpcrdma_xprt *r_xprt);

/* Server - xprtrdma/svc_rdma_v2.c */

/**
 * struct svc_rdma_vers_ops - a version on the server's side
 * @vers: its header
 * @decode: decodes the fields between a message's procedure and its chunk
 *	lists. Returns a positive value if the chunk lists follow, %0 if the
 *	message needs no further processing, or a negative errno that selects
 *	the ERROR to answer with. NULL: there are no such fields
 * @is_call: is the assembled message the call that the header announces?
 *	NULL: the header announces nothing
 */
struct svc_rdma_vers_ops {
	const struct rpcrdma_vers *vers;
	int (*decode)(struct svcxprt_rdma *rdma,
		      struct svc_rdma_recv_ctxt *rctxt);
	bool (*is_call)(const struct svc_rqst *rqstp,
			const struct svc_rdma_recv_ctxt *rctxt);
};

extern unsigned int svcrdma_max_version;
extern const struct svc_rdma_vers_ops svc_rdma_vers_one, svc_rdma_vers_two;

void svc_rdma_v2_fail_callback(struct rpc_xprt *xprt, __be32 xid);

/**
 * svc_rdma_find_vers - find the operations of a version
 * @rdma: a connection
 * @number: rdma_vers of a message received on it
 *
 * Return: the version, or NULL if the connection does not support it
 */
static inline const struct svc_rdma_vers_ops *
svc_rdma_find_vers(const struct svcxprt_rdma *rdma, __be32 number)
{
	if (number == rpcrdma_version)
		return &svc_rdma_vers_one;
	if (number == rpcrdma2_version && rdma->sc_max_vers >= RPCRDMA2_VERSION)
		return &svc_rdma_vers_two;
	return NULL;
}

/**
 * svc_rdma_max_inline - get the limit of a message that is sent inline
 * @rdma: the connection
 * @number: rdma_vers of the message
 *
 * Section 2.3: a longer message ends the connection. In version one, the client
 * is responsible for the limit.
 *
 * Return: octets, with the header
 */
static inline unsigned int svc_rdma_max_inline(const struct svcxprt_rdma *rdma,
					       __be32 number)
{
	return number == rpcrdma2_version ? rdma->sc_v2_inline : UINT_MAX;
}

#endif /* _RPCRDMA2_H */
