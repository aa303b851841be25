/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Datagram iWARP on the wire: bytes <-> struct. See NOTICE.
 *
 * A datagram is one DDP segment of exactly one of these forms, big-endian, and
 * a CRC32c of all of it with the least significant byte first:
 *
 *     Send           DDP untagged: control 2, Q_Key 4, QN 0 4, MSN 4, MO 0 4,
 *                  data
 *     Write-Record   DDP tagged: control 2, STag 4, TO 8, MSN 4, MO 4, ML 4,
 *                  Q_Key 4, data
 *     error message  DDP untagged, QN 2: control 2, 0 4, QN 4, MSN 4, MO 0 4,
 *                  Terminate control and length 6, DDP header
 */
#ifndef _DG_WIRE_H
#define _DG_WIRE_H

#include <linux/types.h>

#define DG_SEND_HDR	18
#define DG_WRITE_HDR	30
#define DG_ERROR_HDR	24
#define DG_CRC_LEN	4
/* Bytes of a datagram that dg_parse() may read */
#define DG_PARSE_MAX	(DG_ERROR_HDR + DG_WRITE_HDR)

enum dg_form {
	DG_SEND,
	DG_WRITE_RECORD,
	DG_ERROR_MESSAGE,
};

/**
 * enum dg_result - result of dg_parse()
 * @DG_OK: a good header
 * @DG_BAD_LENGTH: shorter than header and CRC, or not the length that the
 *                 header requires
 * @DG_BAD_DDP: DDP version or a reserved bit
 * @DG_BAD_RDMAP: RDMAP version or a reserved bit
 * @DG_BAD_OPCODE: opcode not defined for this tag bit
 * @DG_NO_MSN: a tagged segment without MSN: an RDMA Write of iWARP
 * @DG_BAD_QN: untagged for another queue
 * @DG_BAD_LAST: Last set before the end of the message, or clear at it
 * @DG_BAD_MO: MO not 0, not a multiple of the segment's length, or beyond the
 *             message
 * @DG_BAD_TO: TO less than MO, or the message wraps around
 * @DG_BAD_CAUSE: an error message with an invalid control field or cause
 * @DG_RESULTS: number of results
 */
enum dg_result {
	DG_OK,
	DG_BAD_LENGTH,
	DG_BAD_DDP,
	DG_BAD_RDMAP,
	DG_BAD_OPCODE,
	DG_NO_MSN,
	DG_BAD_QN,
	DG_BAD_LAST,
	DG_BAD_MO,
	DG_BAD_TO,
	DG_BAD_CAUSE,
	DG_RESULTS,
};

/**
 * struct dg_segment - a header
 * @form: enum dg_form
 * @solicited: Send: with Solicited Event
 * @last: last segment of its message
 * @qkey: Q_Key, 0 in an error message
 * @stag: Write-Record: number of the zone
 * @msn: number of the message, of the error message
 * @mo: Write-Record: offset of this segment in its message
 * @ml: Write-Record: length of the message
 * @to: Write-Record: offset of this segment in the zone
 * @hdr_len: length of the header in bytes; data follow
 * @len: length of the data in bytes; 0 in an error message
 */
struct dg_segment {
	u8 form;
	bool solicited;
	bool last;
	u32 qkey;
	u32 stag;
	u32 msn;
	u32 mo;
	u32 ml;
	u64 to;
	u32 hdr_len;
	u32 len;
};

/**
 * struct dg_error - contents of an error message
 * @layer: 0 RDMAP, 1 DDP, 2 LLP
 * @type: error type of the layer, 4 bits
 * @code: error code
 * @length: length of the bad datagram without its CRC
 * @cause: DDP header of the bad datagram
 * @cause_len: %DG_SEND_HDR or %DG_WRITE_HDR
 */
struct dg_error {
	u8 layer;
	u8 type;
	u8 code;
	u16 length;
	const u8 *cause;
	u32 cause_len;
};

enum dg_result dg_parse(const void *buf, size_t len, struct dg_segment *seg);
void dg_parse_error(const void *buf, struct dg_error *error);
bool dg_parse_cause(const struct dg_error *error, struct dg_segment *seg);
bool dg_within(const struct dg_segment *seg, u64 size);
int dg_build(const struct dg_segment *seg, void *buf, size_t size);
int dg_build_error(u32 msn, const struct dg_error *error, void *buf,
		   size_t size);
u32 dg_crc_add(u32 crc, const void *buf, size_t len);
void dg_crc_put(u32 crc, void *buf);
bool dg_crc_good(const void *buf, size_t len);
const char *dg_result_str(enum dg_result result);

/* The first value of dg_crc_add() */
#define DG_CRC_START	(~0U)

#endif
