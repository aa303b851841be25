// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Datagram iWARP on the wire: bytes <-> struct. See NOTICE.
 *
 * The functions are pure: no allocation, no locks, no clock; any context.
 * libdgm and the fuzzers compile this file in user space with shim headers.
 */
#include <linux/crc32c.h>
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <linux/unaligned.h>

#include "dg_wire.h"

/* First octet: DDP control, RFC 5041 section 4.1 */
enum ddp_control {
	DDP_TAGGED	= 0x80,
	DDP_LAST	= 0x40,
	DDP_MSN		= 0x20, /* ours: MSN, MO, ML and Q_Key follow TO */
	DDP_RESERVED	= 0x1c,
	DDP_VERSION	= 0x03,
};

/* Second octet: RDMAP control, RFC 5040 section 4.1 */
enum rdmap_control {
	RDMAP_VERSION	= 0xc0,
	RDMAP_RESERVED	= 0x30,
	RDMAP_OPCODE	= 0x0f,
};

#define DDP_VERSION_1	0x01
#define RDMAP_VERSION_1	0x40

enum opcode {
	OP_WRITE	= 0,
	OP_SEND		= 3,
	OP_SEND_SE	= 5,
	OP_TERMINATE	= 7,
};

#define QN_SEND		0
#define QN_ERROR	2

enum offset {
	OFF_RDMAP	= 1,
	OFF_ULP		= 2, /* untagged: Q_Key, or 0 */
	OFF_QN		= 6,
	OFF_U_MSN	= 10,
	OFF_U_MO	= 14,
	OFF_TERM	= 18,
	OFF_TERM_FLAGS	= 20,
	OFF_TERM_LENGTH	= 22,
	OFF_CAUSE	= 24,
	OFF_STAG	= 2, /* tagged */
	OFF_TO		= 6,
	OFF_MSN		= 14,
	OFF_MO		= 18,
	OFF_ML		= 22,
	OFF_QKEY	= 26,
};

/* M and D set, R clear, the rest reserved; RFC 5040 section 4.8 */
#define TERM_FLAGS	0xc000
#define TERM_LAYER_MAX	2

static u32 cause_len(u8 ddp)
{
	return ddp & DDP_TAGGED ? DG_WRITE_HDR : DG_SEND_HDR;
}

static enum dg_result parse_send(const u8 *p, size_t len,
				 struct dg_segment *seg)
{
	seg->form = DG_SEND;
	seg->solicited = (p[OFF_RDMAP] & RDMAP_OPCODE) == OP_SEND_SE;
	seg->qkey = get_unaligned_be32(p + OFF_ULP);
	seg->hdr_len = DG_SEND_HDR;
	seg->len = len - DG_SEND_HDR - DG_CRC_LEN;
	return get_unaligned_be32(p + OFF_QN) == QN_SEND ? DG_OK : DG_BAD_QN;
}

static enum dg_result parse_error(const u8 *p, size_t len,
				  struct dg_segment *seg)
{
	seg->form = DG_ERROR_MESSAGE;
	seg->hdr_len = len - DG_CRC_LEN;
	seg->len = 0;
	if (get_unaligned_be32(p + OFF_QN) != QN_ERROR)
		return DG_BAD_QN;
	if (len < DG_ERROR_HDR + DG_SEND_HDR + DG_CRC_LEN ||
	    len != DG_ERROR_HDR + cause_len(p[OFF_CAUSE]) + DG_CRC_LEN)
		return DG_BAD_LENGTH;
	if (get_unaligned_be32(p + OFF_ULP) || p[OFF_TERM] >> 4 > TERM_LAYER_MAX ||
	    get_unaligned_be16(p + OFF_TERM_FLAGS) != TERM_FLAGS ||
	    get_unaligned_be16(p + OFF_TERM_LENGTH) < cause_len(p[OFF_CAUSE]))
		return DG_BAD_CAUSE;
	return DG_OK;
}

static enum dg_result parse_untagged(const u8 *p, size_t len,
				     struct dg_segment *seg)
{
	u8 opcode = p[OFF_RDMAP] & RDMAP_OPCODE;
	enum dg_result result;

	if (p[0] & DDP_MSN)
		return DG_BAD_DDP;
	if (opcode != OP_SEND && opcode != OP_SEND_SE && opcode != OP_TERMINATE)
		return DG_BAD_OPCODE;
	if (len < DG_SEND_HDR + DG_CRC_LEN)
		return DG_BAD_LENGTH;
	seg->msn = get_unaligned_be32(p + OFF_U_MSN);
	if (opcode == OP_TERMINATE)
		result = parse_error(p, len, seg);
	else
		result = parse_send(p, len, seg);
	if (result != DG_OK)
		return result;
	if (!seg->last)
		return DG_BAD_LAST;
	return get_unaligned_be32(p + OFF_U_MO) ? DG_BAD_MO : DG_OK;
}

/* Checks the rules for messages; see the top of dg_track.h */
static enum dg_result check_place(const struct dg_segment *seg)
{
	u64 end = (u64)seg->mo + seg->len;
	bool at_end = end == seg->ml;

	if (end > seg->ml)
		return DG_BAD_MO;
	if (seg->last != at_end)
		return DG_BAD_LAST;
	/* An empty message has one segment, and no other segment is empty */
	if (!seg->len && seg->ml)
		return DG_BAD_MO;
	if (!seg->last && seg->mo % seg->len)
		return DG_BAD_MO;
	if (seg->to < seg->mo || seg->to - seg->mo > U64_MAX - seg->ml)
		return DG_BAD_TO;
	return DG_OK;
}

static void read_write_header(const u8 *p, struct dg_segment *seg)
{
	seg->form = DG_WRITE_RECORD;
	seg->stag = get_unaligned_be32(p + OFF_STAG);
	seg->to = get_unaligned_be64(p + OFF_TO);
	seg->msn = get_unaligned_be32(p + OFF_MSN);
	seg->mo = get_unaligned_be32(p + OFF_MO);
	seg->ml = get_unaligned_be32(p + OFF_ML);
	seg->qkey = get_unaligned_be32(p + OFF_QKEY);
}

static enum dg_result parse_tagged(const u8 *p, size_t len,
				   struct dg_segment *seg)
{
	if ((p[OFF_RDMAP] & RDMAP_OPCODE) != OP_WRITE)
		return DG_BAD_OPCODE;
	if (!(p[0] & DDP_MSN))
		return DG_NO_MSN;
	if (len < DG_WRITE_HDR + DG_CRC_LEN)
		return DG_BAD_LENGTH;
	read_write_header(p, seg);
	seg->hdr_len = DG_WRITE_HDR;
	seg->len = len - DG_WRITE_HDR - DG_CRC_LEN;
	return check_place(seg);
}

/**
 * dg_parse - read a datagram's header
 * @buf: the first bytes of the datagram, %DG_PARSE_MAX of them or all
 * @len: length of the whole datagram in bytes, CRC included; 65,535 at most
 * @seg: filled if the result is %DG_OK
 *
 * The CRC is not checked here: a receiver can first check whether it wants the
 * datagram. Any context.
 *
 * Return: see enum dg_result
 */
enum dg_result dg_parse(const void *buf, size_t len, struct dg_segment *seg)
{
	const u8 *p = buf;

	memset(seg, 0, sizeof(*seg));
	if (len < OFF_ULP + DG_CRC_LEN)
		return DG_BAD_LENGTH;
	if ((p[0] & DDP_VERSION) != DDP_VERSION_1 || p[0] & DDP_RESERVED)
		return DG_BAD_DDP;
	if ((p[OFF_RDMAP] & RDMAP_VERSION) != RDMAP_VERSION_1 ||
	    p[OFF_RDMAP] & RDMAP_RESERVED)
		return DG_BAD_RDMAP;
	seg->last = p[0] & DDP_LAST;
	return p[0] & DDP_TAGGED ? parse_tagged(p, len, seg) :
				   parse_untagged(p, len, seg);
}

/**
 * dg_parse_error - read the report of an error message
 * @buf: a datagram that dg_parse() has found to be a %DG_ERROR_MESSAGE
 * @error: filled; points into @buf
 *
 * Any context.
 */
void dg_parse_error(const void *buf, struct dg_error *error)
{
	const u8 *p = buf;

	error->layer = p[OFF_TERM] >> 4;
	error->type = p[OFF_TERM] & 0xf;
	error->code = p[OFF_TERM + 1];
	error->length = get_unaligned_be16(p + OFF_TERM_LENGTH);
	error->cause = p + OFF_CAUSE;
	error->cause_len = cause_len(p[OFF_CAUSE]);
}

/**
 * dg_parse_cause - read the header of a Write-Record that an error message has
 * @error: from dg_parse_error()
 * @seg: filled, but for @hdr_len. Its fields are what the peer claims: they need
 *       not fit each other
 *
 * Any context.
 *
 * Return: false if it is about another datagram
 */
bool dg_parse_cause(const struct dg_error *error, struct dg_segment *seg)
{
	const u8 *p = error->cause;

	memset(seg, 0, sizeof(*seg));
	if (error->cause_len != DG_WRITE_HDR)
		return false;
	read_write_header(p, seg);
	seg->last = p[0] & DDP_LAST;
	seg->len = error->length - DG_WRITE_HDR;
	return true;
}

/**
 * dg_within - is the message within a zone?
 * @seg: a Write-Record that dg_parse() has accepted
 * @size: length of the zone in bytes
 *
 * If the message is within the zone, so is each of its segments. Any context.
 *
 * Return: true if so
 */
bool dg_within(const struct dg_segment *seg, u64 size)
{
	return seg->ml <= size && seg->to - seg->mo <= size - seg->ml;
}

static void build_untagged(u8 *p, u8 opcode, u32 ulp, u32 qn, u32 msn)
{
	p[0] = DDP_LAST | DDP_VERSION_1;
	p[OFF_RDMAP] = RDMAP_VERSION_1 | opcode;
	put_unaligned_be32(ulp, p + OFF_ULP);
	put_unaligned_be32(qn, p + OFF_QN);
	put_unaligned_be32(msn, p + OFF_U_MSN);
	put_unaligned_be32(0, p + OFF_U_MO);
}

/**
 * dg_build - make the header of a Send or Write-Record
 * @seg: contents; @hdr_len is ignored, and @last of a Send
 * @buf: destination
 * @size: bytes at @buf
 *
 * The caller adds data and CRC. Any context.
 *
 * Return: length of the header in bytes, -EINVAL if @seg is not valid,
 * -EMSGSIZE if the header is longer than @size.
 */
int dg_build(const struct dg_segment *seg, void *buf, size_t size)
{
	u8 *p = buf;

	switch (seg->form) {
	case DG_SEND:
		if (size < DG_SEND_HDR)
			return -EMSGSIZE;
		build_untagged(p, seg->solicited ? OP_SEND_SE : OP_SEND,
			       seg->qkey, QN_SEND, seg->msn);
		return DG_SEND_HDR;
	case DG_WRITE_RECORD:
		if (check_place(seg) != DG_OK)
			return -EINVAL;
		if (size < DG_WRITE_HDR)
			return -EMSGSIZE;
		p[0] = DDP_TAGGED | (seg->last ? DDP_LAST : 0) | DDP_MSN |
		       DDP_VERSION_1;
		p[OFF_RDMAP] = RDMAP_VERSION_1 | OP_WRITE;
		put_unaligned_be32(seg->stag, p + OFF_STAG);
		put_unaligned_be64(seg->to, p + OFF_TO);
		put_unaligned_be32(seg->msn, p + OFF_MSN);
		put_unaligned_be32(seg->mo, p + OFF_MO);
		put_unaligned_be32(seg->ml, p + OFF_ML);
		put_unaligned_be32(seg->qkey, p + OFF_QKEY);
		return DG_WRITE_HDR;
	}
	return -EINVAL;
}

/**
 * dg_build_error - make an error message, without its CRC
 * @msn: its number
 * @error: contents
 * @buf: destination
 * @size: bytes at @buf
 *
 * The caller sends no error message that is longer than its cause. Any context.
 *
 * Return: length in bytes, -EINVAL if @error is not valid, -EMSGSIZE if the
 * message is longer than @size.
 */
int dg_build_error(u32 msn, const struct dg_error *error, void *buf,
		   size_t size)
{
	u8 *p = buf;

	if (error->layer > TERM_LAYER_MAX || error->type > 0xf ||
	    (error->cause_len != DG_SEND_HDR && error->cause_len != DG_WRITE_HDR) ||
	    error->cause_len != cause_len(error->cause[0]) ||
	    error->length < error->cause_len)
		return -EINVAL;
	if (size < DG_ERROR_HDR + error->cause_len)
		return -EMSGSIZE;

	build_untagged(p, OP_TERMINATE, 0, QN_ERROR, msn);
	p[OFF_TERM] = error->layer << 4 | error->type;
	p[OFF_TERM + 1] = error->code;
	put_unaligned_be16(TERM_FLAGS, p + OFF_TERM_FLAGS);
	put_unaligned_be16(error->length, p + OFF_TERM_LENGTH);
	memcpy(p + OFF_CAUSE, error->cause, error->cause_len);
	return DG_ERROR_HDR + error->cause_len;
}

/**
 * dg_crc_add - continue a CRC
 * @crc: %DG_CRC_START, or the result for the bytes before these
 * @buf: bytes
 * @len: their number
 *
 * Any context.
 *
 * Return: the CRC so far, for dg_crc_add() and dg_crc_put()
 */
u32 dg_crc_add(u32 crc, const void *buf, size_t len)
{
	return crc32c(crc, buf, len);
}

/**
 * dg_crc_put - write a CRC in wire format
 * @crc: result of dg_crc_add() for the whole datagram before its CRC
 * @buf: destination, %DG_CRC_LEN bytes
 *
 * Any context.
 */
void dg_crc_put(u32 crc, void *buf)
{
	put_unaligned_le32(~crc, buf);
}

/**
 * dg_crc_good - check the CRC of a whole datagram
 * @buf: the datagram
 * @len: its length in bytes, CRC included; at least %DG_CRC_LEN
 *
 * Any context.
 *
 * Return: true if the CRC is correct
 */
bool dg_crc_good(const void *buf, size_t len)
{
	const u8 *p = buf;
	size_t covered = len - DG_CRC_LEN;

	return get_unaligned_le32(p + covered) ==
	       (u32)~dg_crc_add(DG_CRC_START, p, covered);
}

/**
 * dg_result_str - name a parse result
 * @result: the result
 *
 * Return: a static string, never NULL
 */
const char *dg_result_str(enum dg_result result)
{
	static const char * const name[DG_RESULTS] = {
		[DG_OK]		= "ok",
		[DG_BAD_LENGTH]	= "bad length",
		[DG_BAD_DDP]	= "bad DDP control",
		[DG_BAD_RDMAP]	= "bad RDMAP control",
		[DG_BAD_OPCODE]	= "bad opcode",
		[DG_NO_MSN]	= "no MSN",
		[DG_BAD_QN]	= "bad QN",
		[DG_BAD_LAST]	= "bad Last",
		[DG_BAD_MO]	= "bad MO",
		[DG_BAD_TO]	= "bad TO",
		[DG_BAD_CAUSE]	= "bad error message",
	};

	return result < DG_RESULTS ? name[result] : "unknown";
}
