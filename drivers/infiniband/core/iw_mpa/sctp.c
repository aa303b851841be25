// SPDX-License-Identifier: GPL-2.0
/*
 * DDP stream session control over SCTP: bytes <-> struct.
 *
 * A message is the contents of one DATA chunk after its DDP-SSN: a function
 * code, then private data up to the end of the chunk. The owner of the stream
 * numbers the chunks.
 *
 * The functions are pure: no allocation, no locks, no kernel services; any
 * context.
 */
#include <linux/errno.h>
#include <linux/export.h>
#include <linux/string.h>
#include <linux/unaligned.h>

#include <kunit/visibility.h>

#include "sctp.h"

/* Sets the fields that depend only on the code. Returns false if it is bad. */
static bool decode_code(u16 code, struct iw_mpa_frame *frame)
{
	switch (code) {
	case IW_MPA_SCTP_INITIATE:
	case IW_MPA_SCTP_ENH_INITIATE:
		frame->kind = IW_MPA_REQUEST;
		break;
	case IW_MPA_SCTP_ACCEPT:
	case IW_MPA_SCTP_ENH_ACCEPT:
		frame->kind = IW_MPA_REPLY;
		break;
	case IW_MPA_SCTP_REJECT:
	case IW_MPA_SCTP_ENH_REJECT:
		frame->kind = IW_MPA_REPLY;
		frame->reject = true;
		break;
	default:
		return false;
	}
	frame->enhanced = code >= IW_MPA_SCTP_ENH_INITIATE;
	/* SCTP has no revisions: use the equivalent revision of MPA */
	frame->rev = frame->enhanced ? 2 : 1;
	return true;
}

/* Removes the enhanced data from the private data */
static enum iw_mpa_parse decode_block(enum rdma_mpa_dialect dialect,
				      struct iw_mpa_frame *frame)
{
	/* A reject without data is a plain reject */
	if (frame->reject && !frame->pdata_len) {
		frame->enhanced = false;
		frame->rev = 1;
		frame->block_missing = true;
		return IW_MPA_FRAME_COMPLETE;
	}
	if (frame->pdata_len < IW_MPA_ENH_LEN)
		return IW_MPA_FRAME_BLOCK_MISSING;
	iw_mpa_enh_unpack(get_unaligned_be32(frame->pdata), dialect,
			  &frame->enh);
	frame->pdata += IW_MPA_ENH_LEN;
	frame->pdata_len -= IW_MPA_ENH_LEN;
	return IW_MPA_FRAME_COMPLETE;
}

/**
 * iw_mpa_sctp_parse - read a session control message
 * @kind: the expected kind; a Terminate may arrive instead
 * @dialect: layout of the flags in the enhanced word
 * @buf: the message, from its function code on
 * @len: length of the message in bytes
 * @frame: filled if the message is a valid one of @kind; points into @buf
 * @need: filled with @len, because SCTP delivers whole messages
 *
 * RFC 5043 section 5.2.3, RFC 6581 section 7. Any context.
 *
 * Return: %IW_MPA_FRAME_COMPLETE, %IW_MPA_FRAME_TERMINATE, or the error:
 * %IW_MPA_FRAME_BAD_CODE, %IW_MPA_FRAME_PDATA_TOO_LONG or
 * %IW_MPA_FRAME_BLOCK_MISSING.
 */
enum iw_mpa_parse iw_mpa_sctp_parse(enum iw_mpa_kind kind,
				    enum rdma_mpa_dialect dialect,
				    const void *buf, size_t len,
				    struct iw_mpa_frame *frame, size_t *need)
{
	struct iw_mpa_frame read = {};
	enum iw_mpa_parse result;
	u16 code;

	*need = len;
	if (len < IW_MPA_SCTP_CODE_LEN)
		return IW_MPA_FRAME_BAD_CODE;
	code = get_unaligned_be16(buf);
	if (code == IW_MPA_SCTP_TERMINATE)
		return len > IW_MPA_SCTP_CODE_LEN ? IW_MPA_FRAME_PDATA_TOO_LONG :
						    IW_MPA_FRAME_TERMINATE;
	if (!decode_code(code, &read) || read.kind != kind)
		return IW_MPA_FRAME_BAD_CODE;
	if (len > IW_MPA_SCTP_MAX)
		return IW_MPA_FRAME_PDATA_TOO_LONG;

	read.pdata = buf + IW_MPA_SCTP_CODE_LEN;
	read.pdata_len = len - IW_MPA_SCTP_CODE_LEN;
	result = read.enhanced ? decode_block(dialect, &read) :
				 IW_MPA_FRAME_COMPLETE;
	if (result == IW_MPA_FRAME_COMPLETE)
		*frame = read;
	return result;
}
EXPORT_SYMBOL_IF_KUNIT(iw_mpa_sctp_parse);

static u16 encode_code(const struct iw_mpa_frame *frame)
{
	if (frame->kind == IW_MPA_REQUEST)
		return frame->enhanced ? IW_MPA_SCTP_ENH_INITIATE :
					 IW_MPA_SCTP_INITIATE;
	if (frame->reject)
		return frame->enhanced ? IW_MPA_SCTP_ENH_REJECT :
					 IW_MPA_SCTP_REJECT;
	return frame->enhanced ? IW_MPA_SCTP_ENH_ACCEPT : IW_MPA_SCTP_ACCEPT;
}

/**
 * iw_mpa_sctp_build - make an Initiate, Accept or Reject
 * @frame: contents; its revision has no meaning here
 * @dialect: layout of the flags in the enhanced word
 * @buf: destination; must not overlap the private data
 * @size: bytes at @buf, %IW_MPA_SCTP_MAX is always enough
 *
 * RFC 5043 section 5.2.3, RFC 6581 section 7. Any context.
 *
 * Return: length of the message in bytes, -EINVAL if @frame is not valid,
 * -EMSGSIZE if it is longer than @size.
 */
int iw_mpa_sctp_build(const struct iw_mpa_frame *frame,
		      enum rdma_mpa_dialect dialect, void *buf, size_t size)
{
	size_t head = IW_MPA_SCTP_CODE_LEN;
	u8 *p = buf;

	/* Markers and CRCs exist only in MPA */
	if (!iw_mpa_frame_valid(frame) || frame->markers || frame->crc)
		return -EINVAL;
	if (frame->enhanced)
		head += IW_MPA_ENH_LEN;
	if (head + frame->pdata_len > size)
		return -EMSGSIZE;

	put_unaligned_be16(encode_code(frame), p);
	if (frame->enhanced)
		put_unaligned_be32(iw_mpa_enh_pack(&frame->enh, dialect),
				   p + IW_MPA_SCTP_CODE_LEN);
	if (frame->pdata_len)
		memcpy(p + head, frame->pdata, frame->pdata_len);
	return head + frame->pdata_len;
}
EXPORT_SYMBOL_IF_KUNIT(iw_mpa_sctp_build);

/**
 * iw_mpa_sctp_build_terminate - make a Terminate
 * @buf: destination, %IW_MPA_SCTP_TERMINATE_LEN bytes
 *
 * RFC 5043 section 5.2.3. Any context.
 */
void iw_mpa_sctp_build_terminate(void *buf)
{
	put_unaligned_be16(IW_MPA_SCTP_TERMINATE, buf);
}
EXPORT_SYMBOL_GPL(iw_mpa_sctp_build_terminate);

/**
 * iw_mpa_sctp_is_terminate - is this message a Terminate?
 * @buf: the message, from its function code on
 * @len: length of the message in bytes
 *
 * For a driver whose session is in RDMA mode. RFC 5043 section 5.2.3. Any
 * context.
 *
 * Return: true if it is one, which has no private data
 */
bool iw_mpa_sctp_is_terminate(const void *buf, size_t len)
{
	return len == IW_MPA_SCTP_TERMINATE_LEN &&
	       get_unaligned_be16(buf) == IW_MPA_SCTP_TERMINATE;
}
EXPORT_SYMBOL_GPL(iw_mpa_sctp_is_terminate);

static bool has_code(const void *buf, size_t len, u16 plain, u16 enhanced)
{
	u16 code;

	if (len < IW_MPA_SCTP_CODE_LEN)
		return false;
	code = get_unaligned_be16(buf);
	return code == plain || code == enhanced;
}

/**
 * iw_mpa_sctp_is_initiate - is this message an Initiate, enhanced or not?
 * @buf: the message, from its function code on
 * @len: length of the message in bytes
 *
 * For a driver that has to find the session of a message. Any context.
 *
 * Return: true if its function code is that of one
 */
bool iw_mpa_sctp_is_initiate(const void *buf, size_t len)
{
	return has_code(buf, len, IW_MPA_SCTP_INITIATE,
			IW_MPA_SCTP_ENH_INITIATE);
}
EXPORT_SYMBOL_GPL(iw_mpa_sctp_is_initiate);

/**
 * iw_mpa_sctp_is_reject - is this message a Reject, enhanced or not?
 * @buf: the message, from its function code on
 * @len: length of the message in bytes
 *
 * No message follows a Reject. Any context.
 *
 * Return: true if its function code is that of one
 */
bool iw_mpa_sctp_is_reject(const void *buf, size_t len)
{
	return has_code(buf, len, IW_MPA_SCTP_REJECT, IW_MPA_SCTP_ENH_REJECT);
}
EXPORT_SYMBOL_GPL(iw_mpa_sctp_is_reject);
