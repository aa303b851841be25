/* SPDX-License-Identifier: GPL-2.0 */
/*
 * MPA Request and Reply frames (RFC 5044 section 7.1.1, RFC 6581 section 6).
 */
#ifndef _IW_MPA_FRAME_H
#define _IW_MPA_FRAME_H

#include <linux/types.h>
#include <rdma/iw_mpa.h>

/* Sizes in bytes */
enum iw_mpa_sizes {
	IW_MPA_KEY_LEN		= 16,
	IW_MPA_HDR_LEN		= 20,	/* key, flags, Rev, PD_Length */
	IW_MPA_ENH_LEN		= 4,	/* enhanced connection data */
	IW_MPA_PDATA_MAX	= 512,	/* all Private Data of a frame */
};

/* Kinds of frame */
enum iw_mpa_kind {
	IW_MPA_REQUEST,
	IW_MPA_REPLY,
};

/**
 * struct iw_mpa_enh - enhanced connection data, host byte order
 * @ird: inbound RDMA Read depth, 0..0x3ffe or %IW_MPA_DEPTH_ULP
 * @ord: outbound RDMA Read depth, 0..0x3ffe or %IW_MPA_DEPTH_ULP
 * @rtr: mask of enum rdma_mpa_rtr; 0 unless @p2p (RFC 6581 section 9.2)
 * @p2p: peer-to-peer connection model
 */
struct iw_mpa_enh {
	u16 ird;
	u16 ord;
	u8 rtr;
	bool p2p;
};

/**
 * struct iw_mpa_frame - a Request or Reply, host byte order
 * @kind: enum iw_mpa_kind
 * @rev: MPA revision, 0..2; over SCTP 2 if enhanced, else 1
 * @markers: M, the sender asks the peer to send markers
 * @crc: C, the sender requests CRCs
 * @reject: R; always false in a Request
 * @enhanced: S is set, Rev is 2 (SCTP: the function code is 5, 6 or 7) and the
 *	enhanced data is complete; @enh is valid
 * @block_missing: a Reply has R and S, but its Private Data is shorter than
 *	the enhanced data (SCTP: an Enhanced Reject has no data). The Reply
 *	counts as a plain reject; @enhanced is false, @pdata_len 0.
 * @enh: enhanced connection data, all zero unless @enhanced
 * @pdata_len: length of the ULP's private data: 0..508 bytes if @enhanced,
 *	else 0..512
 * @pdata: the ULP's private data; points into the parsed buffer
 */
struct iw_mpa_frame {
	u8 kind;
	u8 rev;
	bool markers;
	bool crc;
	bool reject;
	bool enhanced;
	bool block_missing;
	struct iw_mpa_enh enh;
	u16 pdata_len;
	const u8 *pdata;
};

/**
 * enum iw_mpa_parse - result of iw_mpa_frame_parse() or iw_mpa_sctp_parse()
 * @IW_MPA_FRAME_COMPLETE: a whole valid frame and nothing else
 * @IW_MPA_FRAME_NEED_MORE: a valid prefix
 * @IW_MPA_FRAME_TRAILING: a whole valid frame followed by more bytes
 * @IW_MPA_FRAME_BAD_KEY: not the key of the expected kind
 * @IW_MPA_FRAME_BAD_REV: a revision other than 0, 1 and 2
 * @IW_MPA_FRAME_PDATA_TOO_LONG: PD_Length above 512
 * @IW_MPA_FRAME_BLOCK_MISSING: the private data is too short for the enhanced
 *	data that the frame claims to have
 * @IW_MPA_FRAME_BAD_CODE: SCTP: not a function code of the expected kind
 * @IW_MPA_FRAME_TERMINATE: SCTP: the peer ends the session; not an error
 * @IW_MPA_FRAME_RESULTS: number of results
 */
enum iw_mpa_parse {
	IW_MPA_FRAME_COMPLETE,
	IW_MPA_FRAME_NEED_MORE,
	IW_MPA_FRAME_TRAILING,
	IW_MPA_FRAME_BAD_KEY,
	IW_MPA_FRAME_BAD_REV,
	IW_MPA_FRAME_PDATA_TOO_LONG,
	IW_MPA_FRAME_BLOCK_MISSING,
	IW_MPA_FRAME_BAD_CODE,
	IW_MPA_FRAME_TERMINATE,
	IW_MPA_FRAME_RESULTS,
};

enum iw_mpa_parse iw_mpa_frame_parse(enum iw_mpa_kind kind,
				     enum rdma_mpa_dialect dialect,
				     const void *buf, size_t len,
				     struct iw_mpa_frame *frame, size_t *need);
int iw_mpa_frame_build(const struct iw_mpa_frame *frame,
		       enum rdma_mpa_dialect dialect, void *buf, size_t size);
bool iw_mpa_frame_valid(const struct iw_mpa_frame *frame);
u32 iw_mpa_enh_pack(const struct iw_mpa_enh *enh, enum rdma_mpa_dialect dialect);
void iw_mpa_enh_unpack(u32 word, enum rdma_mpa_dialect dialect,
		       struct iw_mpa_enh *enh);
const char *iw_mpa_parse_str(enum iw_mpa_parse result);

#endif /* _IW_MPA_FRAME_H */
