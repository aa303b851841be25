// SPDX-License-Identifier: GPL-2.0
/*
 * MPA Request and Reply frames: bytes <-> struct.
 *
 * The functions are pure: no allocation, no locks, no kernel services; any
 * context.
 */
#include <linux/errno.h>
#include <linux/export.h>
#include <linux/kernel.h>
#include <linux/minmax.h>
#include <linux/module.h>
#include <linux/string.h>
#include <linux/unaligned.h>

#include <kunit/visibility.h>

#include "frame.h"

/* RFC 5044 section 7.1.1 and RFC 6581 section 6 */
enum frame_offset {
	OFF_FLAGS	= 16,
	OFF_REV		= 17,
	OFF_PD_LENGTH	= 18,
	OFF_PDATA	= IW_MPA_HDR_LEN,
};

enum frame_flag {
	FLAG_M	= BIT(7),
	FLAG_C	= BIT(6),
	FLAG_R	= BIT(5),
	FLAG_S	= BIT(4),
};

#define REV_MAX		2
#define REV_ENHANCED	2

/* Enhanced word, bit 31 first: A B IRD(14) C D ORD(14); RFC 6581 section 9 */
enum enh_flag {
	ENH_A = BIT(31),
	ENH_B = BIT(30),
	ENH_C = BIT(15),
	ENH_D = BIT(14),
};

#define ENH_IRD_SHIFT	16
#define ENH_DEPTH_MASK	0x3fff

/* No terminating zero: a key has exactly 16 bytes */
static const u8 frame_key[][IW_MPA_KEY_LEN] = {
	[IW_MPA_REQUEST] = "MPA ID Req Frame",
	[IW_MPA_REPLY]	 = "MPA ID Rep Frame",
};

struct enh_bit {
	u32 flag;
	enum rdma_mpa_rtr rtr;
};

static const struct enh_bit enh_bits[][3] = {
	[RDMA_MPA_DIALECT_RFC6581] = {
		{ ENH_B, RDMA_MPA_RTR_SEND },
		{ ENH_C, RDMA_MPA_RTR_WRITE },
		{ ENH_D, RDMA_MPA_RTR_READ },
	},
	[RDMA_MPA_DIALECT_EARLY_DRAFT] = {
		{ ENH_A, RDMA_MPA_RTR_SEND },
		{ ENH_B, RDMA_MPA_RTR_WRITE },
		{ ENH_C, RDMA_MPA_RTR_READ },
	},
};

/**
 * iw_mpa_enh_pack - make the enhanced word
 * @enh: contents; depths at most 0x3fff
 * @dialect: layout of the flags
 *
 * RFC 6581 section 9. Any context.
 *
 * Return: the word in host byte order.
 */
u32 iw_mpa_enh_pack(const struct iw_mpa_enh *enh, enum rdma_mpa_dialect dialect)
{
	u32 word = (enh->ird & ENH_DEPTH_MASK) << ENH_IRD_SHIFT |
		   (enh->ord & ENH_DEPTH_MASK);
	unsigned int i;

	if (dialect == RDMA_MPA_DIALECT_RFC6581 && enh->p2p)
		word |= ENH_A;
	for (i = 0; i < ARRAY_SIZE(enh_bits[dialect]); i++)
		if (enh->rtr & enh_bits[dialect][i].rtr)
			word |= enh_bits[dialect][i].flag;

	return word;
}
EXPORT_SYMBOL_IF_KUNIT(iw_mpa_enh_pack);

/**
 * iw_mpa_enh_unpack - read the enhanced word
 * @word: the word in host byte order
 * @dialect: layout of the flags
 * @enh: filled; B, C and D are ignored where A is clear (RFC 6581 section 9.2)
 *
 * Any context.
 */
void iw_mpa_enh_unpack(u32 word, enum rdma_mpa_dialect dialect,
		       struct iw_mpa_enh *enh)
{
	unsigned int i;

	enh->ird = (word >> ENH_IRD_SHIFT) & ENH_DEPTH_MASK;
	enh->ord = word & ENH_DEPTH_MASK;
	enh->rtr = 0;
	for (i = 0; i < ARRAY_SIZE(enh_bits[dialect]); i++)
		if (word & enh_bits[dialect][i].flag)
			enh->rtr |= enh_bits[dialect][i].rtr;

	enh->p2p = dialect == RDMA_MPA_DIALECT_RFC6581 ? word & ENH_A : enh->rtr;
	if (!enh->p2p)
		enh->rtr = 0;
}
EXPORT_SYMBOL_IF_KUNIT(iw_mpa_enh_unpack);

/* These checks need only the header: a bad frame is rejected before its data */
static enum iw_mpa_parse check_header(enum iw_mpa_kind kind, const u8 *hdr)
{
	u16 pd_length = get_unaligned_be16(hdr + OFF_PD_LENGTH);
	bool reject = kind == IW_MPA_REPLY && hdr[OFF_FLAGS] & FLAG_R;

	if (hdr[OFF_REV] > REV_MAX)
		return IW_MPA_FRAME_BAD_REV;
	if (pd_length > IW_MPA_PDATA_MAX)
		return IW_MPA_FRAME_PDATA_TOO_LONG;
	/* A reject without its enhanced data is a plain reject */
	if (hdr[OFF_REV] == REV_ENHANCED && hdr[OFF_FLAGS] & FLAG_S &&
	    pd_length < IW_MPA_ENH_LEN && !reject)
		return IW_MPA_FRAME_BLOCK_MISSING;

	return IW_MPA_FRAME_COMPLETE;
}

static void decode(enum iw_mpa_kind kind, enum rdma_mpa_dialect dialect,
		   const u8 *buf, struct iw_mpa_frame *frame)
{
	u16 pd_length = get_unaligned_be16(buf + OFF_PD_LENGTH);
	u8 flags = buf[OFF_FLAGS];

	memset(frame, 0, sizeof(*frame));
	frame->kind = kind;
	frame->rev = buf[OFF_REV];
	frame->markers = flags & FLAG_M;
	frame->crc = flags & FLAG_C;
	frame->reject = kind == IW_MPA_REPLY && flags & FLAG_R;
	frame->pdata = buf + OFF_PDATA;
	frame->pdata_len = pd_length;

	/* Under Rev 0 and 1 the S position is a reserved bit */
	if (frame->rev != REV_ENHANCED || !(flags & FLAG_S))
		return;
	if (pd_length < IW_MPA_ENH_LEN) {
		frame->block_missing = true;
		frame->pdata_len = 0;
		return;
	}
	frame->enhanced = true;
	iw_mpa_enh_unpack(get_unaligned_be32(frame->pdata), dialect,
			  &frame->enh);
	frame->pdata += IW_MPA_ENH_LEN;
	frame->pdata_len -= IW_MPA_ENH_LEN;
}

/**
 * iw_mpa_frame_parse - parse a Request or Reply at the start of a stream
 * @kind: the expected kind
 * @dialect: layout of the flags in the enhanced word
 * @buf: the first bytes of the stream
 * @len: number of bytes at @buf, 0 or more
 * @frame: filled if the frame is complete; points into @buf
 * @need: filled with the length of the frame in bytes: %IW_MPA_HDR_LEN until
 *	the header is complete, then %IW_MPA_HDR_LEN plus PD_Length
 *
 * Errors are detected as early as possible: a bad key at its first wrong byte,
 * other errors with the header (RFC 5044 section 7.1.1, RFC 6581 sections 6 and
 * 9). Any context.
 *
 * Return: see enum iw_mpa_parse.
 */
enum iw_mpa_parse iw_mpa_frame_parse(enum iw_mpa_kind kind,
				     enum rdma_mpa_dialect dialect,
				     const void *buf, size_t len,
				     struct iw_mpa_frame *frame, size_t *need)
{
	enum iw_mpa_parse result;
	const u8 *hdr = buf;

	*need = IW_MPA_HDR_LEN;
	if (memcmp(hdr, frame_key[kind], min_t(size_t, len, IW_MPA_KEY_LEN)))
		return IW_MPA_FRAME_BAD_KEY;
	if (len < IW_MPA_HDR_LEN)
		return IW_MPA_FRAME_NEED_MORE;

	result = check_header(kind, hdr);
	if (result != IW_MPA_FRAME_COMPLETE)
		return result;

	*need += get_unaligned_be16(hdr + OFF_PD_LENGTH);
	if (len < *need)
		return IW_MPA_FRAME_NEED_MORE;

	decode(kind, dialect, hdr, frame);
	return len > *need ? IW_MPA_FRAME_TRAILING : IW_MPA_FRAME_COMPLETE;
}
EXPORT_SYMBOL_IF_KUNIT(iw_mpa_frame_parse);

static bool enh_valid(const struct iw_mpa_enh *enh)
{
	return enh->ird <= ENH_DEPTH_MASK && enh->ord <= ENH_DEPTH_MASK &&
	       !(enh->rtr & ~IW_MPA_RTR_ALL) && (enh->p2p || !enh->rtr);
}

/**
 * iw_mpa_frame_valid - do these contents make a valid frame?
 * @frame: contents
 *
 * Any context.
 *
 * Return: true if so
 */
bool iw_mpa_frame_valid(const struct iw_mpa_frame *frame)
{
	size_t max = IW_MPA_PDATA_MAX;

	if (frame->enhanced) {
		if (frame->rev != REV_ENHANCED || !enh_valid(&frame->enh))
			return false;
		max -= IW_MPA_ENH_LEN;
	}
	return frame->rev <= REV_MAX && frame->pdata_len <= max &&
	       (frame->pdata || !frame->pdata_len) &&
	       !(frame->reject && frame->kind != IW_MPA_REPLY);
}

/**
 * iw_mpa_frame_build - make a Request or Reply
 * @frame: contents
 * @dialect: layout of the flags in the enhanced word
 * @buf: destination; must not overlap the private data
 * @size: bytes at @buf, %IW_MPA_FRAME_MAX is always enough
 *
 * RFC 5044 section 7.1.1, RFC 6581 sections 6 and 9. Any context.
 *
 * Return: length of the frame in bytes, -EINVAL if @frame is not valid,
 * -EMSGSIZE if it is longer than @size.
 */
int iw_mpa_frame_build(const struct iw_mpa_frame *frame,
		       enum rdma_mpa_dialect dialect, void *buf, size_t size)
{
	u16 pd_length = frame->pdata_len;
	u8 *p = buf;

	if (!iw_mpa_frame_valid(frame))
		return -EINVAL;
	if (frame->enhanced)
		pd_length += IW_MPA_ENH_LEN;
	if (IW_MPA_HDR_LEN + pd_length > size)
		return -EMSGSIZE;

	memcpy(p, frame_key[frame->kind], IW_MPA_KEY_LEN);
	p[OFF_FLAGS] = (frame->markers ? FLAG_M : 0) |
		       (frame->crc ? FLAG_C : 0) |
		       (frame->reject ? FLAG_R : 0) |
		       (frame->enhanced ? FLAG_S : 0);
	p[OFF_REV] = frame->rev;
	put_unaligned_be16(pd_length, p + OFF_PD_LENGTH);
	p += OFF_PDATA;
	if (frame->enhanced) {
		put_unaligned_be32(iw_mpa_enh_pack(&frame->enh, dialect), p);
		p += IW_MPA_ENH_LEN;
	}
	if (frame->pdata_len)
		memcpy(p, frame->pdata, frame->pdata_len);

	return IW_MPA_HDR_LEN + pd_length;
}
EXPORT_SYMBOL_IF_KUNIT(iw_mpa_frame_build);

/**
 * iw_mpa_parse_str - name a parse result
 * @result: the result
 *
 * Return: a static string, never NULL.
 */
const char *iw_mpa_parse_str(enum iw_mpa_parse result)
{
	static const char * const name[IW_MPA_FRAME_RESULTS] = {
		[IW_MPA_FRAME_COMPLETE]		= "complete",
		[IW_MPA_FRAME_NEED_MORE]	= "need more",
		[IW_MPA_FRAME_TRAILING]		= "bytes after the frame",
		[IW_MPA_FRAME_BAD_KEY]		= "bad key",
		[IW_MPA_FRAME_BAD_REV]		= "bad revision",
		[IW_MPA_FRAME_PDATA_TOO_LONG]	= "private data too long",
		[IW_MPA_FRAME_BLOCK_MISSING]	= "enhanced data missing",
		[IW_MPA_FRAME_BAD_CODE]		= "bad function code",
		[IW_MPA_FRAME_TERMINATE]	= "session terminated",
	};

	return result < IW_MPA_FRAME_RESULTS ? name[result] : "unknown";
}
EXPORT_SYMBOL_IF_KUNIT(iw_mpa_parse_str);

MODULE_DESCRIPTION("MPA connection setup for iWARP (RFC 5044, RFC 6581)");
MODULE_LICENSE("GPL");
