/* SPDX-License-Identifier: GPL-2.0 */
/*
 * RPC-over-RDMA version two (draft-cel-nfsv4-rpcrdma-version-two-01) on
 * connections of the NFS client and server
 */
#ifndef _RPCRDMA2_H
#define _RPCRDMA2_H

#include <linux/list.h>

#include "rpcrdma2_xdr.h"

#define rpcrdma2_version	cpu_to_be32(RPCRDMA2_VERSION)

/* ERRORs that a client's connection sends at a time: as many as the calls that
 * its server may send
 */
#define RPCRDMA2_MAX_ERRORS	16

struct rpc_rqst;
struct rpcrdma_ep;
struct rpcrdma_rep;
struct rpcrdma_xprt;
struct svc_rdma_recv_ctxt;
struct svc_rdma_send_ctxt;
struct svcxprt_rdma;

/* Client - xprtrdma/rpc_rdma_v2.c */
extern unsigned int xprt_rdma_max_version;

void rpcrdma2_start(struct rpcrdma_xprt *r_xprt, struct rpcrdma_ep *ep);
void rpcrdma2_limit_probe(struct rpcrdma_ep *ep);
bool rpcrdma2_receive(struct rpcrdma_xprt *r_xprt, struct rpcrdma_rep *rep);
bool rpcrdma2_has_limit(const struct rpcrdma_xprt *r_xprt,
			const struct rpcrdma_rep *rep);
void rpcrdma2_settle(struct rpcrdma_xprt *r_xprt, struct rpcrdma_rep *rep);
int rpcrdma2_refuse(struct rpcrdma_xprt *r_xprt, const struct rpc_rqst *rqst,
		    u32 low, u32 high);
void rpcrdma2_stop(struct rpcrdma_xprt *r_xprt);

/* Server - xprtrdma/svc_rdma_v2.c */
extern unsigned int svcrdma_max_version;

int svc_rdma_v2_receive(struct svcxprt_rdma *rdma,
			struct svc_rdma_recv_ctxt *rctxt);
bool svc_rdma_is_v2(const struct svc_rdma_recv_ctxt *rctxt);
bool svc_rdma_sends_v2(const struct svc_rdma_send_ctxt *sctxt);

/* Options - xprtrdma/rpcrdma2_option.c */

/**
 * struct rpcrdma2_option - an option that the peer may send
 * @type: rdma_opttype
 * @receive: takes a message with this option. @payload holds the @len octets
 *	behind the header. May sleep; must not register an option. The
 *	buffers are valid until it returns.
 */
struct rpcrdma2_option {
	u32 type;
	void (*receive)(const struct rpcrdma2_hdr *hdr, const void *payload,
			size_t len);
	/* private: */
	struct list_head list;
};

int rpcrdma2_register_option(struct rpcrdma2_option *option);
void rpcrdma2_unregister_option(struct rpcrdma2_option *option);
int rpcrdma2_receive_option(const struct rpcrdma2_hdr *hdr,
			    const void *message, size_t len);

#endif /* _RPCRDMA2_H */
