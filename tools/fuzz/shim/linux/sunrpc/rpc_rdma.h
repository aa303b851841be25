/* SPDX-License-Identifier: GPL-2.0 */
/* The numbers of version one (RFC 8166) that rpcrdma2_xdr.c needs */
#ifndef SHIM_LINUX_SUNRPC_RPC_RDMA_H
#define SHIM_LINUX_SUNRPC_RPC_RDMA_H

#include <linux/sunrpc/xdr.h>

#define rpcrdma_version cpu_to_be32(1)
#define RPCRDMA_HDRLEN_MIN (7 * XDR_UNIT)

enum { rpcrdma_fixed_maxsz = 4 };
enum rpcrdma_proc { RDMA_MSG = 0, RDMA_NOMSG = 1, RDMA_ERROR = 4 };

#define rdma_msg cpu_to_be32(RDMA_MSG)
#define rdma_error cpu_to_be32(RDMA_ERROR)

#endif
