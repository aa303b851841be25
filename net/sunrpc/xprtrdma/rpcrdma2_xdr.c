// SPDX-License-Identifier: GPL-2.0
/*
 * Transport header of RPC-over-RDMA version two
 * (draft-cel-nfsv4-rpcrdma-version-two-01, section 4.2). This file does not
 * depend on connections, so that it can be tested with arbitrary octets. The
 * chunk lists are those of version one, and are decoded by its functions.
 */
#include <linux/export.h>
#include <linux/sunrpc/xdr.h>
#include <linux/sunrpc/rpc_rdma.h>

#include <kunit/visibility.h>

#include "rpcrdma2_xdr.h"

const struct rpcrdma_vers rpcrdma_vers_one = {
	.number		= rpcrdma_version,
	.fixed_len	= rpcrdma_fixed_maxsz * sizeof(__be32),
	.min_len	= RPCRDMA_HDRLEN_MIN,
};
EXPORT_SYMBOL_IF_KUNIT(rpcrdma_vers_one);

const struct rpcrdma_vers rpcrdma_vers_two = {
	.number		= rpcrdma2_version,
	.fixed_len	= (rpcrdma_fixed_maxsz + 1) * sizeof(__be32),
	.min_len	= RPCRDMA2_HDRLEN_MIN,
	.has_direction	= true,
};
EXPORT_SYMBOL_IF_KUNIT(rpcrdma_vers_two);

/* xdr_stream_remaining() counts the octets of a last, incomplete word as four */
static size_t octets_left(struct xdr_stream *xdr)
{
	return (char *)xdr->end - (char *)xdr_inline_decode(xdr, 0);
}

static bool is_short(struct xdr_stream *xdr, size_t smallest)
{
	return octets_left(xdr) < smallest - RPCRDMA2_PREFIX_LEN;
}

static enum rpcrdma2_kind decode_direction(struct xdr_stream *xdr)
{
	u32 direction;

	if (xdr_stream_decode_u32(xdr, &direction) < 0)
		return RPCRDMA2_IS_BAD;
	switch (direction) {
	case RPCRDMA2_CALL:
		return RPCRDMA2_IS_CALL;
	case RPCRDMA2_REPLY:
		return RPCRDMA2_IS_REPLY;
	}
	return RPCRDMA2_IS_BAD;
}

/* Section 4.2.1: no payload. The XDR has no direction here, although section
 * 3.2 has one: a peer of version one could not parse it.
 */
static bool is_good_error(const __be32 *p, size_t words)
{
	switch (be32_to_cpup(p)) {
	case RDMA2_ERR_VERS:
		return words == 3 &&
		       be32_to_cpup(p + 1) <= be32_to_cpup(p + 2);
	case RDMA2_ERR_BAD_HEADER:
	case RDMA2_ERR_INVALID_OPTION:
		return words == 1;
	}
	return false;
}

static enum rpcrdma2_kind check_error(struct xdr_stream *xdr)
{
	if (is_short(xdr, RPCRDMA2_ERROR_LEN) ||
	    !is_good_error(xdr_inline_decode(xdr, 0),
			   octets_left(xdr) / sizeof(__be32)))
		return RPCRDMA2_IS_DROPPED;
	return RPCRDMA2_IS_ERROR;
}

/* The option determines whether all, part or none of an RPC message follows */
static enum rpcrdma2_kind decode_optional(struct xdr_stream *xdr)
{
	size_t size = octets_left(xdr);
	void *info;
	u32 type;

	if (is_short(xdr, RPCRDMA2_OPTIONAL_MIN))
		return RPCRDMA2_IS_DROPPED;
	if (decode_direction(xdr) == RPCRDMA2_IS_BAD ||
	    xdr_stream_decode_u32(xdr, &type) < 0 ||
	    xdr_stream_decode_opaque_inline(xdr, &info, size) < 0)
		return RPCRDMA2_IS_BAD;
	return RPCRDMA2_IS_OPTION;
}

/**
 * rpcrdma2_decode - decode the fields after the procedure of a message
 * @xdr: the message, from the word after its procedure on
 * @proc: the procedure
 *
 * Implements sections 4.2, 4.2.1 and 4.2.3 of the draft; the error handling is
 * that of version one (RFC 8166, section 4.5): no ERROR answers an ERROR, or a
 * message that is shorter than the smallest header of its kind. May be called
 * in any context.
 *
 * Return: the kind of the message
 */
enum rpcrdma2_kind rpcrdma2_decode(struct xdr_stream *xdr, __be32 proc)
{
	switch (be32_to_cpu(proc)) {
	case RDMA_MSG:
	case RDMA_NOMSG:
		return is_short(xdr, RPCRDMA2_HDRLEN_MIN) ?
		       RPCRDMA2_IS_DROPPED : decode_direction(xdr);
	case RDMA_ERROR:
		return check_error(xdr);
	case RDMA2_OPTIONAL:
		return decode_optional(xdr);
	}
	return RPCRDMA2_IS_BAD;
}
EXPORT_SYMBOL_IF_KUNIT(rpcrdma2_decode);

/**
 * rpcrdma2_begins_message - compare the start of an RPC message with its header
 * @p: where the message begins
 * @len: octets at @p
 * @xid: the xid in the header
 * @direction: the direction in the header
 *
 * RFC 5531: an RPC message begins with its xid and its type.
 *
 * Return: true if both match the header
 */
bool rpcrdma2_begins_message(const __be32 *p, size_t len, __be32 xid,
			     enum rpcrdma2_direction direction)
{
	return len >= 2 * sizeof(*p) && p[0] == xid &&
	       p[1] == cpu_to_be32(direction);
}
EXPORT_SYMBOL_IF_KUNIT(rpcrdma2_begins_message);

/**
 * rpcrdma2_is_plain - is this an RPC message without chunks?
 * @xdr: a MSG, from its chunk lists on; is not advanced
 * @xid: the xid in the header
 * @direction: the expected direction of the RPC message
 *
 * A server's calls and the replies to them have no chunks.
 */
bool rpcrdma2_is_plain(struct xdr_stream *xdr, __be32 xid,
		       enum rpcrdma2_direction direction)
{
	const size_t lists = 3 * sizeof(__be32);
	const __be32 *p = xdr_inline_decode(xdr, 0);
	size_t len = octets_left(xdr);

	return len >= lists && !p[0] && !p[1] && !p[2] &&
	       rpcrdma2_begins_message(p + 3, len - lists, xid, direction);
}
EXPORT_SYMBOL_IF_KUNIT(rpcrdma2_is_plain);

/**
 * rpcrdma_encode_plain - write the header of a MSG without chunks
 * @vers: its version
 * @p: room for @vers->min_len octets
 * @xid: of the RPC message
 * @credits: to ask for or to grant
 * @direction: of the RPC message
 *
 * Return: the next word
 */
__be32 *rpcrdma_encode_plain(const struct rpcrdma_vers *vers, __be32 *p,
			     __be32 xid, u32 credits,
			     enum rpcrdma2_direction direction)
{
	*p++ = xid;
	*p++ = vers->number;
	*p++ = cpu_to_be32(credits);
	*p++ = rdma_msg;
	p = rpcrdma_encode_direction(vers, p, direction);
	*p++ = xdr_zero;
	*p++ = xdr_zero;
	*p++ = xdr_zero;
	return p;
}
EXPORT_SYMBOL_IF_KUNIT(rpcrdma_encode_plain);

/**
 * rpcrdma2_encode_error - write an ERROR without a range of versions
 * @p: room for %RPCRDMA2_ERROR_LEN octets
 * @xid: of the message that it answers
 * @credits: to grant
 * @code: %RDMA2_ERR_BAD_HEADER or %RDMA2_ERR_INVALID_OPTION
 *
 * Return: the next word
 */
__be32 *rpcrdma2_encode_error(__be32 *p, __be32 xid, u32 credits,
			      enum rpcrdma2_errcode code)
{
	*p++ = xid;
	*p++ = rpcrdma2_version;
	*p++ = cpu_to_be32(credits);
	*p++ = rdma_error;
	*p++ = cpu_to_be32(code);
	return p;
}
EXPORT_SYMBOL_IF_KUNIT(rpcrdma2_encode_error);
