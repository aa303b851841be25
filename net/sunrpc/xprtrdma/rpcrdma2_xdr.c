// SPDX-License-Identifier: GPL-2.0
/*
 * Transport header of RPC-over-RDMA version two
 * (draft-cel-nfsv4-rpcrdma-version-two-01, section 4.2): octets to a struct
 * and back. Nothing here knows of connections, so that it can be tested with
 * arbitrary octets.
 */
#include <linux/errno.h>
#include <linux/export.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <asm/byteorder.h>

#include <kunit/visibility.h>

#include "rpcrdma2_xdr.h"

#define WORD		sizeof(__be32)
#define SEGMENT_WORDS	4	/* handle, length, offset */

/**
 * struct cursor - what is left of a message
 * @p: the next word
 * @words: whole words that are left
 */
struct cursor {
	const __be32 *p;
	size_t words;
};

static bool take_words(struct cursor *at, size_t count, const __be32 **words)
{
	if (at->words < count)
		return false;
	*words = at->p;
	at->p += count;
	at->words -= count;
	return true;
}

static bool take_u32(struct cursor *at, u32 *value)
{
	const __be32 *p;

	if (!take_words(at, 1, &p))
		return false;
	*value = be32_to_cpu(*p);
	return true;
}

/* The pointers of XDR's lists: is there an item? */
static bool take_presence(struct cursor *at, bool *present)
{
	u32 value;

	if (!take_u32(at, &value) || value > 1)
		return false;
	*present = value;
	return true;
}

/* A segment may end at the end of the address space, but not beyond it */
static bool take_segment(struct cursor *at, u32 *length)
{
	const __be32 *p;
	u64 offset;

	if (!take_words(at, SEGMENT_WORDS, &p))
		return false;
	*length = be32_to_cpu(p[1]);
	offset = (u64)be32_to_cpu(p[2]) << 32 | be32_to_cpu(p[3]);
	return !*length || offset + (*length - 1) >= offset;
}

static bool take_read_list(struct cursor *at, struct rpcrdma2_chunks *chunks)
{
	u32 position, length;
	bool present;

	for (;;) {
		if (!take_presence(at, &present))
			return false;
		if (!present)
			return true;
		/* There is nothing to read in a segment without octets */
		if (!take_u32(at, &position) || position & 3 ||
		    !take_segment(at, &length) || !length)
			return false;
		chunks->reads++;
		if (!position)
			chunks->calls++;
	}
}

static bool take_write_chunk(struct cursor *at, unsigned int *segments)
{
	u32 count, length;

	if (!take_u32(at, &count) || count > at->words / SEGMENT_WORDS)
		return false;
	*segments += count;
	while (count--)
		if (!take_segment(at, &length))
			return false;
	return true;
}

static bool take_write_list(struct cursor *at, struct rpcrdma2_chunks *chunks)
{
	bool present;

	for (;;) {
		if (!take_presence(at, &present))
			return false;
		if (!present)
			return true;
		if (!take_write_chunk(at, &chunks->write_segs))
			return false;
		chunks->writes++;
	}
}

static bool take_reply_chunk(struct cursor *at, struct rpcrdma2_chunks *chunks)
{
	if (!take_presence(at, &chunks->has_reply))
		return false;
	return !chunks->has_reply ||
	       take_write_chunk(at, &chunks->reply_segs);
}

static bool take_direction(struct cursor *at, struct rpcrdma2_hdr *hdr)
{
	return take_u32(at, &hdr->direction) &&
	       hdr->direction <= RPCRDMA2_REPLY;
}

/* RFC 5531: an RPC message begins with its xid and its type */
static enum rpcrdma2_parse check_payload(const struct cursor *at,
					 const struct rpcrdma2_hdr *hdr)
{
	if (at->words < 2 || be32_to_cpu(at->p[0]) != hdr->xid)
		return RPCRDMA2_BAD_PAYLOAD;
	if (be32_to_cpu(at->p[1]) != hdr->direction)
		return RPCRDMA2_BAD_DIRECTION;
	return RPCRDMA2_GOOD;
}

/* A NOMSG conveys the whole RPC message by a chunk (RFC 8166, section 4.1) */
static enum rpcrdma2_parse check_long_message(const struct rpcrdma2_hdr *hdr)
{
	bool conveyed = hdr->direction == RPCRDMA2_CALL ?
			hdr->chunks.calls : hdr->chunks.has_reply;

	return conveyed ? RPCRDMA2_GOOD : RPCRDMA2_BAD_PAYLOAD;
}

static enum rpcrdma2_parse decode_chunks(struct cursor *at,
					 struct rpcrdma2_hdr *hdr)
{
	struct rpcrdma2_chunks *chunks = &hdr->chunks;

	if (!take_direction(at, hdr))
		return RPCRDMA2_BAD_DIRECTION;
	chunks->offset = RPCRDMA2_FIXED_LEN;
	if (!take_read_list(at, chunks) || !take_write_list(at, chunks) ||
	    !take_reply_chunk(at, chunks))
		return RPCRDMA2_BAD_CHUNKS;
	if (hdr->proc == RDMA2_MSG)
		return check_payload(at, hdr);
	return check_long_message(hdr);
}

static enum rpcrdma2_parse decode_error(struct cursor *at,
					struct rpcrdma2_hdr *hdr)
{
	struct rpcrdma2_error *error = &hdr->error;

	/* Section 4.2.2: always from a responder. The XDR has no direction
	 * there, although section 3.2 has one: a peer of version one could
	 * not parse it.
	 */
	hdr->direction = RPCRDMA2_REPLY;
	if (!take_u32(at, &error->code))
		return RPCRDMA2_BAD_ERROR;
	switch (error->code) {
	case RDMA2_ERR_VERS:
		if (!take_u32(at, &error->low) || !take_u32(at, &error->high) ||
		    error->low > error->high)
			return RPCRDMA2_BAD_ERROR;
		break;
	case RDMA2_ERR_BAD_HEADER:
	case RDMA2_ERR_INVALID_OPTION:
		break;
	default:
		return RPCRDMA2_BAD_ERROR;
	}
	/* Section 4.2.1 */
	return at->words ? RPCRDMA2_BAD_PAYLOAD : RPCRDMA2_GOOD;
}

/* All, part or nothing of an RPC message follows, as the option says */
static enum rpcrdma2_parse decode_optional(struct cursor *at,
					   struct rpcrdma2_hdr *hdr)
{
	struct rpcrdma2_optional *optional = &hdr->optional;
	const __be32 *info;

	if (!take_direction(at, hdr))
		return RPCRDMA2_BAD_DIRECTION;
	if (!take_u32(at, &optional->type) ||
	    !take_u32(at, &optional->info_len) ||
	    optional->info_len > at->words * WORD ||
	    !take_words(at, DIV_ROUND_UP(optional->info_len, WORD), &info))
		return RPCRDMA2_BAD_OPTION;
	optional->info = (const u8 *)info;
	return RPCRDMA2_GOOD;
}

static size_t smallest_header(u32 proc)
{
	switch (proc) {
	case RDMA2_MSG:
	case RDMA2_NOMSG:
		return RPCRDMA2_HDRLEN_MIN;
	case RDMA2_ERROR:
		return RPCRDMA2_ERROR_MIN;
	case RDMA2_OPTIONAL:
		return RPCRDMA2_OPTIONAL_MIN;
	}
	return RPCRDMA2_PREFIX_LEN;
}

static enum rpcrdma2_parse decode_body(struct cursor *at,
				       struct rpcrdma2_hdr *hdr)
{
	switch (hdr->proc) {
	case RDMA2_MSG:
	case RDMA2_NOMSG:
		return decode_chunks(at, hdr);
	case RDMA2_ERROR:
		return decode_error(at, hdr);
	case RDMA2_OPTIONAL:
		return decode_optional(at, hdr);
	}
	return RPCRDMA2_BAD_PROC;
}

/**
 * rpcrdma2_decode - read a transport header
 * @buf: the message, from the first octet of its header, aligned to four
 * @len: octets received; the last ones are ignored if they are no whole word
 * @hdr: result. Unless the result is %RPCRDMA2_SHORT, @xid, @credit and @proc
 *	are valid; the rest is valid if the result is %RPCRDMA2_GOOD. @direction
 *	is 0 if the message has none
 *
 * Carries out sections 4.2, 4.2.1 and 4.2.2 of the draft. Reads nothing
 * beyond @len. May be called in any context.
 *
 * Return: enum rpcrdma2_parse
 */
enum rpcrdma2_parse rpcrdma2_decode(const void *buf, size_t len,
				    struct rpcrdma2_hdr *hdr)
{
	struct cursor at = { .p = buf, .words = len / WORD };
	enum rpcrdma2_parse result;
	const __be32 *p;

	memset(hdr, 0, sizeof(*hdr));
	if (!take_words(&at, RPCRDMA2_PREFIX_LEN / WORD, &p))
		return RPCRDMA2_SHORT;
	hdr->xid = be32_to_cpu(p[0]);
	hdr->credit = be32_to_cpu(p[2]);
	hdr->proc = be32_to_cpu(p[3]);
	if (be32_to_cpu(p[1]) != RPCRDMA2_VERSION)
		return RPCRDMA2_BAD_VERS;
	if (len < smallest_header(hdr->proc))
		return RPCRDMA2_SHORT;
	result = decode_body(&at, hdr);
	hdr->len = (at.p - (const __be32 *)buf) * WORD;
	return result;
}
EXPORT_SYMBOL_IF_KUNIT(rpcrdma2_decode);

/**
 * rpcrdma2_judge - which ERROR answers a received message?
 * @hdr: result of rpcrdma2_decode()
 * @result: likewise
 *
 * Section 4.2.3: the error handling of version one. A message that is too
 * short to be answered is discarded, and so is an error, and a bad reply, for
 * only a responder sends errors. A message is a call if its header or the RPC
 * message says so, and if it does not say which it is. Other versions are the
 * caller's business.
 *
 * Return: enum rpcrdma2_errcode, or 0 if no ERROR answers the message
 */
u32 rpcrdma2_judge(const struct rpcrdma2_hdr *hdr, enum rpcrdma2_parse result)
{
	switch (result) {
	case RPCRDMA2_GOOD:
	case RPCRDMA2_SHORT:
	case RPCRDMA2_BAD_VERS:
		return 0;
	case RPCRDMA2_BAD_DIRECTION:
		return RDMA2_ERR_BAD_HEADER;
	default:
		return hdr->direction == RPCRDMA2_REPLY ?
		       0 : RDMA2_ERR_BAD_HEADER;
	}
}
EXPORT_SYMBOL_IF_KUNIT(rpcrdma2_judge);

static __be32 *encode_prefix(__be32 *p, u32 xid, u32 credit, u32 proc)
{
	*p++ = cpu_to_be32(xid);
	*p++ = cpu_to_be32(RPCRDMA2_VERSION);
	*p++ = cpu_to_be32(credit);
	*p++ = cpu_to_be32(proc);
	return p;
}

/**
 * rpcrdma2_encode_fixed - begin the header of a MSG or NOMSG
 * @p: room for %RPCRDMA2_FIXED_LEN octets
 * @xid: of the RPC message
 * @credit: credits to ask for or to grant
 * @proc: %RDMA2_MSG or %RDMA2_NOMSG
 * @direction: the RPC message's type
 *
 * The caller appends the three chunk lists, which are those of version one.
 *
 * Return: the next word
 */
__be32 *rpcrdma2_encode_fixed(__be32 *p, u32 xid, u32 credit,
			      enum rpcrdma2_proc proc,
			      enum rpcrdma2_direction direction)
{
	p = encode_prefix(p, xid, credit, proc);
	*p++ = cpu_to_be32(direction);
	return p;
}
EXPORT_SYMBOL_IF_KUNIT(rpcrdma2_encode_fixed);

/**
 * rpcrdma2_encode_error - write an ERROR
 * @hdr: @xid, @credit and @error count
 * @buf: where to, aligned to four
 * @size: octets of @buf
 *
 * Return: octets written, or
 *	%-EINVAL if there is no such error,
 *	%-EMSGSIZE if @size is too small
 */
int rpcrdma2_encode_error(const struct rpcrdma2_hdr *hdr, void *buf,
			  size_t size)
{
	const struct rpcrdma2_error *error = &hdr->error;
	bool range = error->code == RDMA2_ERR_VERS;
	size_t len = range ? RPCRDMA2_ERR_VERS_LEN : RPCRDMA2_ERROR_MIN;
	__be32 *p;

	if (error->code < RDMA2_ERR_VERS ||
	    error->code > RDMA2_ERR_INVALID_OPTION ||
	    (range && error->low > error->high))
		return -EINVAL;
	if (size < len)
		return -EMSGSIZE;
	p = encode_prefix(buf, hdr->xid, hdr->credit, RDMA2_ERROR);
	*p++ = cpu_to_be32(error->code);
	if (range) {
		*p++ = cpu_to_be32(error->low);
		*p = cpu_to_be32(error->high);
	}
	return len;
}
EXPORT_SYMBOL_IF_KUNIT(rpcrdma2_encode_error);

/**
 * rpcrdma2_encode_optional - write an OPTIONAL
 * @hdr: @xid, @credit, @direction and @optional count
 * @buf: where to, aligned to four
 * @size: octets of @buf
 *
 * Return: octets written, a multiple of four, or
 *	%-EINVAL if the direction is none,
 *	%-EMSGSIZE if @size is too small
 */
int rpcrdma2_encode_optional(const struct rpcrdma2_hdr *hdr, void *buf,
			     size_t size)
{
	const struct rpcrdma2_optional *optional = &hdr->optional;
	size_t words;
	__be32 *p;

	if (hdr->direction > RPCRDMA2_REPLY)
		return -EINVAL;
	if (size < RPCRDMA2_OPTIONAL_MIN)
		return -EMSGSIZE;
	words = DIV_ROUND_UP((u64)optional->info_len, WORD);
	if (words > (size - RPCRDMA2_OPTIONAL_MIN) / WORD)
		return -EMSGSIZE;
	p = encode_prefix(buf, hdr->xid, hdr->credit, RDMA2_OPTIONAL);
	*p++ = cpu_to_be32(hdr->direction);
	*p++ = cpu_to_be32(optional->type);
	*p++ = cpu_to_be32(optional->info_len);
	if (words) {
		p[words - 1] = 0;	/* the pad */
		memcpy(p, optional->info, optional->info_len);
	}
	return RPCRDMA2_OPTIONAL_MIN + words * WORD;
}
EXPORT_SYMBOL_IF_KUNIT(rpcrdma2_encode_optional);
