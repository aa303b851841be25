/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Transport header of RPC-over-RDMA version two
 * (draft-cel-nfsv4-rpcrdma-version-two-01, section 4.2).
 *
 * A later draft uses the number 2 for another header. This file implements the
 * draft named above.
 */
#ifndef _RPCRDMA2_XDR_H
#define _RPCRDMA2_XDR_H

#include <linux/sunrpc/xdr.h>
#include <linux/types.h>

/* The value of rdma_vers */
#define RPCRDMA2_VERSION	2
#define rpcrdma2_version	cpu_to_be32(RPCRDMA2_VERSION)

/* Sizes in octets */
enum rpcrdma2_sizes {
	RPCRDMA2_PREFIX_LEN	= 16,	/* xid, version, credits, proc */
	RPCRDMA2_ERROR_LEN	= 20,	/* an ERROR without a range */
	RPCRDMA2_OPTIONAL_MIN	= 28,	/* an OPTIONAL without data */
	RPCRDMA2_HDRLEN_MIN	= 32,	/* a MSG or NOMSG without chunks */
	RPCRDMA2_PROBE_MAX	= 1024,	/* the first message of a connection */
	RPCRDMA2_DEF_INLINE	= 4096,	/* every later one (section 2.3) */
};

/* MSG, NOMSG and ERROR have the numbers of version one */
enum rpcrdma2_proc {
	RDMA2_OPTIONAL	= 5,
};

enum rpcrdma2_errcode {
	RDMA2_ERR_VERS			= 1,
	RDMA2_ERR_BAD_HEADER		= 2,
	RDMA2_ERR_INVALID_OPTION	= 3,
};

/* The same values as an RPC message's msg_type */
enum rpcrdma2_direction {
	RPCRDMA2_CALL	= 0,
	RPCRDMA2_REPLY	= 1,
};

/**
 * struct rpcrdma_vers - the header of a MSG or NOMSG in one version
 * @number: rdma_vers
 * @fixed_len: octets before the chunk lists
 * @min_len: octets if there are no chunks
 * @has_direction: the direction precedes the chunk lists
 */
struct rpcrdma_vers {
	__be32 number;
	unsigned int fixed_len;
	unsigned int min_len;
	bool has_direction;
};

extern const struct rpcrdma_vers rpcrdma_vers_one, rpcrdma_vers_two;

/**
 * rpcrdma_encode_direction - complete the fixed part of a MSG or NOMSG
 * @vers: its version
 * @p: the word after its procedure
 * @direction: of the RPC message
 *
 * Return: where the chunk lists begin
 */
static inline __be32 *rpcrdma_encode_direction(const struct rpcrdma_vers *vers,
					       __be32 *p,
					       enum rpcrdma2_direction direction)
{
	if (vers->has_direction)
		*p++ = cpu_to_be32(direction);
	return p;
}

/**
 * enum rpcrdma2_kind - result of rpcrdma2_decode()
 * @RPCRDMA2_IS_CALL: a MSG or NOMSG of a call; the chunk lists follow
 * @RPCRDMA2_IS_REPLY: a MSG or NOMSG of a reply; the chunk lists follow
 * @RPCRDMA2_IS_ERROR: a valid ERROR; its code follows
 * @RPCRDMA2_IS_OPTION: a valid OPTIONAL; as no options are supported, it is
 *	answered with an ERROR INVALID_OPTION
 * @RPCRDMA2_IS_BAD: not valid; it is answered with an ERROR BAD_HEADER
 * @RPCRDMA2_IS_DROPPED: not valid; it is not answered
 */
enum rpcrdma2_kind {
	RPCRDMA2_IS_CALL,
	RPCRDMA2_IS_REPLY,
	RPCRDMA2_IS_ERROR,
	RPCRDMA2_IS_OPTION,
	RPCRDMA2_IS_BAD,
	RPCRDMA2_IS_DROPPED,
};

enum rpcrdma2_kind rpcrdma2_decode(struct xdr_stream *xdr, __be32 proc);
bool rpcrdma2_begins_message(const __be32 *p, size_t len, __be32 xid,
			     enum rpcrdma2_direction direction);
bool rpcrdma2_is_plain(struct xdr_stream *xdr, __be32 xid,
		       enum rpcrdma2_direction direction);
__be32 *rpcrdma_encode_plain(const struct rpcrdma_vers *vers, __be32 *p,
			     __be32 xid, u32 credits,
			     enum rpcrdma2_direction direction);
__be32 *rpcrdma2_encode_error(__be32 *p, __be32 xid, u32 credits,
			      enum rpcrdma2_errcode code);

#endif /* _RPCRDMA2_XDR_H */
