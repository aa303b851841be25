/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Transport header of RPC-over-RDMA version two
 * (draft-cel-nfsv4-rpcrdma-version-two-01, section 4.2).
 *
 * A later draft gives the number 2 to another header. This is the header of
 * the draft that is named here.
 */
#ifndef _RPCRDMA2_XDR_H
#define _RPCRDMA2_XDR_H

#include <linux/types.h>

/* The value of rdma_vers, in host byte order */
#define RPCRDMA2_VERSION	2

/* Sizes in octets */
enum rpcrdma2_sizes {
	RPCRDMA2_PREFIX_LEN	= 16,	/* xid, version, credits, proc */
	RPCRDMA2_FIXED_LEN	= 20,	/* the same and the direction */
	RPCRDMA2_ERROR_MIN	= 20,	/* an ERROR without a range */
	RPCRDMA2_ERR_VERS_LEN	= 28,
	RPCRDMA2_OPTIONAL_MIN	= 28,	/* an OPTIONAL without data */
	RPCRDMA2_HDRLEN_MIN	= 32,	/* a MSG or NOMSG without chunks */
	RPCRDMA2_PROBE_MAX	= 1024,	/* the first message of a connection */
	RPCRDMA2_DEF_INLINE	= 4096,	/* every later one (section 2.3) */
};

enum rpcrdma2_proc {
	RDMA2_MSG	= 0,
	RDMA2_NOMSG	= 1,
	RDMA2_ERROR	= 4,
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
 * struct rpcrdma2_chunks - what the chunk lists of a MSG or NOMSG hold
 * @offset: octets of the header before the Read list
 * @reads: number of Read segments
 * @calls: those of them at position zero
 * @writes: number of Write chunks
 * @write_segs: number of their segments
 * @has_reply: there is a Reply chunk
 * @reply_segs: number of its segments
 */
struct rpcrdma2_chunks {
	unsigned int offset;
	unsigned int reads;
	unsigned int calls;
	unsigned int writes;
	unsigned int write_segs;
	bool has_reply;
	unsigned int reply_segs;
};

/**
 * struct rpcrdma2_error - body of an ERROR
 * @code: enum rpcrdma2_errcode
 * @low: lowest version that the sender supports, 0 unless %RDMA2_ERR_VERS
 * @high: highest such version, likewise
 */
struct rpcrdma2_error {
	u32 code;
	u32 low;
	u32 high;
};

/**
 * struct rpcrdma2_optional - body of an OPTIONAL, without its direction
 * @type: which option it is
 * @info_len: octets of @info
 * @info: the option's own data; points into the decoded buffer
 */
struct rpcrdma2_optional {
	u32 type;
	u32 info_len;
	const u8 *info;
};

/**
 * struct rpcrdma2_hdr - a transport header, in host byte order
 * @xid: of the RPC message, or of the message that an ERROR answers
 * @credit: credits that the sender asks for or grants
 * @proc: enum rpcrdma2_proc
 * @direction: enum rpcrdma2_direction; %RPCRDMA2_REPLY if @proc is an ERROR
 * @len: octets of the header; the RPC message follows
 * @chunks: if @proc is MSG or NOMSG
 * @error: if @proc is ERROR
 * @optional: if @proc is OPTIONAL
 */
struct rpcrdma2_hdr {
	u32 xid;
	u32 credit;
	u32 proc;
	u32 direction;
	unsigned int len;
	union {
		struct rpcrdma2_chunks chunks;
		struct rpcrdma2_error error;
		struct rpcrdma2_optional optional;
	};
};

/**
 * enum rpcrdma2_parse - result of rpcrdma2_decode()
 * @RPCRDMA2_GOOD: a whole and valid header
 * @RPCRDMA2_SHORT: shorter than the smallest header of its kind
 * @RPCRDMA2_BAD_VERS: another version
 * @RPCRDMA2_BAD_PROC: a procedure that version two does not have
 * @RPCRDMA2_BAD_DIRECTION: neither a call nor a reply, or not the direction
 *	of the RPC message that follows
 * @RPCRDMA2_BAD_CHUNKS: a list that does not end within the message, a value
 *	that is no boolean, a segment whose end wraps, a Read segment of length
 *	zero or at a position that is not a multiple of four
 * @RPCRDMA2_BAD_ERROR: an error code that version two does not have, or a
 *	range of versions that is cut off or has no member
 * @RPCRDMA2_BAD_OPTION: an option's data is longer than the message
 * @RPCRDMA2_BAD_PAYLOAD: there is no RPC message where there has to be one,
 *	one where there must be none, or one with another xid
 * @RPCRDMA2_RESULTS: number of results
 */
enum rpcrdma2_parse {
	RPCRDMA2_GOOD,
	RPCRDMA2_SHORT,
	RPCRDMA2_BAD_VERS,
	RPCRDMA2_BAD_PROC,
	RPCRDMA2_BAD_DIRECTION,
	RPCRDMA2_BAD_CHUNKS,
	RPCRDMA2_BAD_ERROR,
	RPCRDMA2_BAD_OPTION,
	RPCRDMA2_BAD_PAYLOAD,
	RPCRDMA2_RESULTS,
};

enum rpcrdma2_parse rpcrdma2_decode(const void *buf, size_t len,
				    struct rpcrdma2_hdr *hdr);
u32 rpcrdma2_judge(const struct rpcrdma2_hdr *hdr,
		   enum rpcrdma2_parse result);
__be32 *rpcrdma2_encode_fixed(__be32 *p, u32 xid, u32 credit,
			      enum rpcrdma2_proc proc,
			      enum rpcrdma2_direction direction);
int rpcrdma2_encode_error(const struct rpcrdma2_hdr *hdr, void *buf,
			  size_t size);
int rpcrdma2_encode_optional(const struct rpcrdma2_hdr *hdr, void *buf,
			     size_t size);

#endif /* _RPCRDMA2_XDR_H */
