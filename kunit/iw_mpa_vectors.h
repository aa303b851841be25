/* SPDX-License-Identifier: GPL-2.0 */
/*
 * MPA frames V01 to V50 and O1 to O5 of the conformance matrix, in hex, with
 * what they mean. Never generated from, nor compared with, our own builder.
 */
#ifndef IW_MPA_VECTORS_H
#define IW_MPA_VECTORS_H

#include <linux/hex.h>
#include <linux/string.h>

#include "frame.h"

/**
 * struct iw_mpa_vector - one frame and its meaning
 * @name: number and description in the conformance matrix
 * @hex: the frame
 * @fill: so many bytes follow @hex, byte i = i mod 256
 * @kind: Request or Reply
 * @result: what parsing the whole of it gives; what follows is meaningless if
 *	this is an error
 * @rev: MPA revision
 * @markers: M
 * @crc: C
 * @reject: R of a Reply
 * @enhanced: S under Rev 2, with a block
 * @block_missing: R and S, without a block
 * @canonical: a conforming sender produces just these bytes
 * @enh: enhanced connection data
 * @ulp_len: length of the ULP's private data
 * @ulp: the ULP's private data where @fill does not tell
 */
struct iw_mpa_vector {
	const char *name;
	const char *hex;
	u16 fill;
	enum iw_mpa_kind kind;
	enum iw_mpa_parse result;
	u8 rev;
	bool markers;
	bool crc;
	bool reject;
	bool enhanced;
	bool block_missing;
	bool canonical;
	struct iw_mpa_enh enh;
	u16 ulp_len;
	const char *ulp;
};

static const struct iw_mpa_vector iw_mpa_vectors[] = {
	{
		.name = "V01: plain RFC 5044 request",
		.hex = "4d504120494420526571204672616d6540010000",
		.kind = IW_MPA_REQUEST,
		.result = IW_MPA_FRAME_COMPLETE,
		.rev = 1,
		.crc = true,
		.canonical = true,
	},
	{
		.name = "V02: CRC not asked for",
		.hex = "4d504120494420526571204672616d6500010000",
		.kind = IW_MPA_REQUEST,
		.result = IW_MPA_FRAME_COMPLETE,
		.rev = 1,
		.canonical = true,
	},
	{
		.name = "V03: markers wanted, 5 bytes of ULP data",
		.hex = "4d504120494420526571204672616d65c001000568656c6c6f",
		.kind = IW_MPA_REQUEST,
		.result = IW_MPA_FRAME_COMPLETE,
		.rev = 1,
		.markers = true,
		.crc = true,
		.ulp_len = 5,
		.ulp = "hello",
		.canonical = true,
	},
	{
		.name = "V04: Rev 2, not enhanced: no block, 3 ULP bytes (IOP-11)",
		.hex = "4d504120494420526571204672616d6540020003686921",
		.kind = IW_MPA_REQUEST,
		.result = IW_MPA_FRAME_COMPLETE,
		.rev = 2,
		.crc = true,
		.ulp_len = 3,
		.ulp = "hi!",
		.canonical = true,
	},
	{
		.name = "V05: client-server, no ULP data",
		.hex = "4d504120494420526571204672616d655002000400080004",
		.kind = IW_MPA_REQUEST,
		.result = IW_MPA_FRAME_COMPLETE,
		.rev = 2,
		.crc = true,
		.enhanced = true,
		.enh = {
			.ird = 8, .ord = 4,
		},
		.canonical = true,
	},
	{
		.name = "V07: p2p, Send only",
		.hex = "4d504120494420526571204672616d6550020004c0080008",
		.kind = IW_MPA_REQUEST,
		.result = IW_MPA_FRAME_COMPLETE,
		.rev = 2,
		.crc = true,
		.enhanced = true,
		.enh = {
			.p2p = true, .rtr = RDMA_MPA_RTR_SEND,
			.ird = 8, .ord = 8,
		},
		.canonical = true,
	},
	{
		.name = "V08: p2p, Write only",
		.hex = "4d504120494420526571204672616d655002000480088008",
		.kind = IW_MPA_REQUEST,
		.result = IW_MPA_FRAME_COMPLETE,
		.rev = 2,
		.crc = true,
		.enhanced = true,
		.enh = {
			.p2p = true, .rtr = RDMA_MPA_RTR_WRITE,
			.ird = 8, .ord = 8,
		},
		.canonical = true,
	},
	{
		.name = "V09: p2p, Read only",
		.hex = "4d504120494420526571204672616d655002000480084008",
		.kind = IW_MPA_REQUEST,
		.result = IW_MPA_FRAME_COMPLETE,
		.rev = 2,
		.crc = true,
		.enhanced = true,
		.enh = {
			.p2p = true, .rtr = RDMA_MPA_RTR_READ,
			.ird = 8, .ord = 8,
		},
		.canonical = true,
	},
	{
		.name = "V10: p2p, Send + Write",
		.hex = "4d504120494420526571204672616d6550020004c0088008",
		.kind = IW_MPA_REQUEST,
		.result = IW_MPA_FRAME_COMPLETE,
		.rev = 2,
		.crc = true,
		.enhanced = true,
		.enh = {
			.p2p = true, .rtr = RDMA_MPA_RTR_SEND | RDMA_MPA_RTR_WRITE,
			.ird = 8, .ord = 8,
		},
		.canonical = true,
	},
	{
		.name = "V11: p2p, Send + Read",
		.hex = "4d504120494420526571204672616d6550020004c0084008",
		.kind = IW_MPA_REQUEST,
		.result = IW_MPA_FRAME_COMPLETE,
		.rev = 2,
		.crc = true,
		.enhanced = true,
		.enh = {
			.p2p = true, .rtr = RDMA_MPA_RTR_SEND | RDMA_MPA_RTR_READ,
			.ird = 8, .ord = 8,
		},
		.canonical = true,
	},
	{
		.name = "V12: p2p, Write + Read",
		.hex = "4d504120494420526571204672616d65500200048008c008",
		.kind = IW_MPA_REQUEST,
		.result = IW_MPA_FRAME_COMPLETE,
		.rev = 2,
		.crc = true,
		.enhanced = true,
		.enh = {
			.p2p = true, .rtr = RDMA_MPA_RTR_WRITE | RDMA_MPA_RTR_READ,
			.ird = 8, .ord = 8,
		},
		.canonical = true,
	},
	{
		.name = "V13: p2p, all three, 4 ULP bytes",
		.hex = "4d504120494420526571204672616d6550020008c008c00870696e67",
		.kind = IW_MPA_REQUEST,
		.result = IW_MPA_FRAME_COMPLETE,
		.rev = 2,
		.crc = true,
		.enhanced = true,
		.enh = {
			.p2p = true, .rtr = IW_MPA_RTR_ALL,
			.ird = 8, .ord = 8,
		},
		.ulp_len = 4,
		.ulp = "ping",
		.canonical = true,
	},
	{
		.name = "V14: p2p with no option (AMB-02)",
		.hex = "4d504120494420526571204672616d655002000480080008",
		.kind = IW_MPA_REQUEST,
		.result = IW_MPA_FRAME_COMPLETE,
		.rev = 2,
		.crc = true,
		.enhanced = true,
		.enh = {
			.p2p = true,
			.ird = 8, .ord = 8,
		},
		.canonical = true,
	},
	{
		.name = "V15: both directions left to the ULP",
		.hex = "4d504120494420526571204672616d65500200043fff3fff",
		.kind = IW_MPA_REQUEST,
		.result = IW_MPA_FRAME_COMPLETE,
		.rev = 2,
		.crc = true,
		.enhanced = true,
		.enh = {
			.ird = IW_MPA_DEPTH_ULP, .ord = IW_MPA_DEPTH_ULP,
		},
		.canonical = true,
	},
	{
		.name = "V16: only IRD left to the ULP",
		.hex = "4d504120494420526571204672616d65500200043fff0004",
		.kind = IW_MPA_REQUEST,
		.result = IW_MPA_FRAME_COMPLETE,
		.rev = 2,
		.crc = true,
		.enhanced = true,
		.enh = {
			.ird = IW_MPA_DEPTH_ULP, .ord = 4,
		},
		.canonical = true,
	},
	{
		.name = "V17: only ORD left to the ULP, p2p Write",
		.hex = "4d504120494420526571204672616d65500200048004bfff",
		.kind = IW_MPA_REQUEST,
		.result = IW_MPA_FRAME_COMPLETE,
		.rev = 2,
		.crc = true,
		.enhanced = true,
		.enh = {
			.p2p = true, .rtr = RDMA_MPA_RTR_WRITE,
			.ird = 4, .ord = IW_MPA_DEPTH_ULP,
		},
		.canonical = true,
	},
	{
		.name = "V18: largest real counts with every flag",
		.hex = "4d504120494420526571204672616d6550020004fffefffe",
		.kind = IW_MPA_REQUEST,
		.result = IW_MPA_FRAME_COMPLETE,
		.rev = 2,
		.crc = true,
		.enhanced = true,
		.enh = {
			.p2p = true, .rtr = IW_MPA_RTR_ALL,
			.ird = 16382, .ord = 16382,
		},
		.canonical = true,
	},
	{
		.name = "V19: ORD 0 with Read RTR (IRD-08)",
		.hex = "4d504120494420526571204672616d655002000480004000",
		.kind = IW_MPA_REQUEST,
		.result = IW_MPA_FRAME_COMPLETE,
		.rev = 2,
		.crc = true,
		.enhanced = true,
		.enh = {
			.p2p = true, .rtr = RDMA_MPA_RTR_READ,
			.ird = 0, .ord = 0,
		},
		.canonical = true,
	},
	{
		.name = "V20: maximum private data, enhanced",
		.hex = "4d504120494420526571204672616d65500202008020c020",
		.fill = 508,
		.kind = IW_MPA_REQUEST,
		.result = IW_MPA_FRAME_COMPLETE,
		.rev = 2,
		.crc = true,
		.enhanced = true,
		.enh = {
			.p2p = true, .rtr = RDMA_MPA_RTR_WRITE | RDMA_MPA_RTR_READ,
			.ird = 32, .ord = 32,
		},
		.ulp_len = 508,
		.canonical = true,
	},
	{
		.name = "V21: maximum private data, Rev 1",
		.hex = "4d504120494420526571204672616d6540010200",
		.fill = 512,
		.kind = IW_MPA_REQUEST,
		.result = IW_MPA_FRAME_COMPLETE,
		.rev = 1,
		.crc = true,
		.ulp_len = 512,
		.canonical = true,
	},
	{
		.name = "V22: never sent; receiver ignores BCD (RTR-05)",
		.hex = "4d504120494420526571204672616d65500200044008c008",
		.kind = IW_MPA_REQUEST,
		.result = IW_MPA_FRAME_COMPLETE,
		.rev = 2,
		.crc = true,
		.enhanced = true,
		.enh = {
			.ird = 8, .ord = 8,
		},
	},
	{
		.name = "V23: Rev 1 with S set: a reserved bit, 4 ULP bytes (AMB-06)",
		.hex = "4d504120494420526571204672616d655001000464617461",
		.kind = IW_MPA_REQUEST,
		.result = IW_MPA_FRAME_COMPLETE,
		.rev = 1,
		.crc = true,
		.ulp_len = 4,
		.ulp = "data",
	},
	{
		.name = "V24: invalid: block truncated to 2 bytes (SEC-04)",
		.hex = "4d504120494420526571204672616d65500200028008",
		.kind = IW_MPA_REQUEST,
		.result = IW_MPA_FRAME_BLOCK_MISSING,
	},
	{
		.name = "V25: invalid: announces 513; the header alone tells (SEC-03)",
		.hex = "4d504120494420526571204672616d655002020100080004",
		.kind = IW_MPA_REQUEST,
		.result = IW_MPA_FRAME_PDATA_TOO_LONG,
	},
	{
		.name = "V26: Rev 3 (AMB-07)",
		.hex = "4d504120494420526571204672616d655003000400080004",
		.kind = IW_MPA_REQUEST,
		.result = IW_MPA_FRAME_BAD_REV,
	},
	{
		.name = "V27: as V05 with all Res bits set: same result (FRM-11)",
		.hex = "4d504120494420526571204672616d655f02000400080004",
		.kind = IW_MPA_REQUEST,
		.result = IW_MPA_FRAME_COMPLETE,
		.rev = 2,
		.crc = true,
		.enhanced = true,
		.enh = {
			.ird = 8, .ord = 4,
		},
	},
	{
		.name = "V30: plain accept of V01",
		.hex = "4d504120494420526570204672616d6540010000",
		.kind = IW_MPA_REPLY,
		.result = IW_MPA_FRAME_COMPLETE,
		.rev = 1,
		.crc = true,
		.canonical = true,
	},
	{
		.name = "V31: plain reject with ULP data",
		.hex = "4d504120494420526570204672616d65600100026e6f",
		.kind = IW_MPA_REPLY,
		.result = IW_MPA_FRAME_COMPLETE,
		.rev = 1,
		.crc = true,
		.reject = true,
		.ulp_len = 2,
		.ulp = "no",
		.canonical = true,
	},
	{
		.name = "V32: accept of V04",
		.hex = "4d504120494420526570204672616d6540020000",
		.kind = IW_MPA_REPLY,
		.result = IW_MPA_FRAME_COMPLETE,
		.rev = 2,
		.crc = true,
		.canonical = true,
	},
	{
		.name = "V33: accept of V05: IRD >= 4, ORD <= 8",
		.hex = "4d504120494420526570204672616d655002000400040008",
		.kind = IW_MPA_REPLY,
		.result = IW_MPA_FRAME_COMPLETE,
		.rev = 2,
		.crc = true,
		.enhanced = true,
		.enh = {
			.ird = 4, .ord = 8,
		},
		.canonical = true,
	},
	{
		.name = "V34: accept of V07: Send RTR follows",
		.hex = "4d504120494420526570204672616d6550020004c0080008",
		.kind = IW_MPA_REPLY,
		.result = IW_MPA_FRAME_COMPLETE,
		.rev = 2,
		.crc = true,
		.enhanced = true,
		.enh = {
			.p2p = true, .rtr = RDMA_MPA_RTR_SEND,
			.ird = 8, .ord = 8,
		},
		.canonical = true,
	},
	{
		.name = "V35: accept of V08, V10, V12 or V13: Write RTR follows",
		.hex = "4d504120494420526570204672616d655002000480088008",
		.kind = IW_MPA_REPLY,
		.result = IW_MPA_FRAME_COMPLETE,
		.rev = 2,
		.crc = true,
		.enhanced = true,
		.enh = {
			.p2p = true, .rtr = RDMA_MPA_RTR_WRITE,
			.ird = 8, .ord = 8,
		},
		.canonical = true,
	},
	{
		.name = "V36: accept of V19: IRD raised to 1, Read RTR follows",
		.hex = "4d504120494420526570204672616d655002000480014000",
		.kind = IW_MPA_REPLY,
		.result = IW_MPA_FRAME_COMPLETE,
		.rev = 2,
		.crc = true,
		.enhanced = true,
		.enh = {
			.p2p = true, .rtr = RDMA_MPA_RTR_READ,
			.ird = 1, .ord = 0,
		},
		.canonical = true,
	},
	{
		.name = "V37: accept of V12: initiator picks Write",
		.hex = "4d504120494420526570204672616d65500200048008c008",
		.kind = IW_MPA_REPLY,
		.result = IW_MPA_FRAME_COMPLETE,
		.rev = 2,
		.crc = true,
		.enhanced = true,
		.enh = {
			.p2p = true, .rtr = RDMA_MPA_RTR_WRITE | RDMA_MPA_RTR_READ,
			.ird = 8, .ord = 8,
		},
		.canonical = true,
	},
	{
		.name = "V38: accept of V13, every option",
		.hex = "4d504120494420526570204672616d6550020008c008c008706f6e67",
		.kind = IW_MPA_REPLY,
		.result = IW_MPA_FRAME_COMPLETE,
		.rev = 2,
		.crc = true,
		.enhanced = true,
		.enh = {
			.p2p = true, .rtr = IW_MPA_RTR_ALL,
			.ird = 8, .ord = 8,
		},
		.ulp_len = 4,
		.ulp = "pong",
		.canonical = true,
	},
	{
		.name = "V39: accept of V15",
		.hex = "4d504120494420526570204672616d65500200043fff3fff",
		.kind = IW_MPA_REPLY,
		.result = IW_MPA_FRAME_COMPLETE,
		.rev = 2,
		.crc = true,
		.enhanced = true,
		.enh = {
			.ird = IW_MPA_DEPTH_ULP, .ord = IW_MPA_DEPTH_ULP,
		},
		.canonical = true,
	},
	{
		.name = "V40: accept of V16",
		.hex = "4d504120494420526570204672616d655002000400043fff",
		.kind = IW_MPA_REPLY,
		.result = IW_MPA_FRAME_COMPLETE,
		.rev = 2,
		.crc = true,
		.enhanced = true,
		.enh = {
			.ird = 4, .ord = IW_MPA_DEPTH_ULP,
		},
		.canonical = true,
	},
	{
		.name = "V41: accept of V17",
		.hex = "4d504120494420526570204672616d6550020004bfff8004",
		.kind = IW_MPA_REPLY,
		.result = IW_MPA_FRAME_COMPLETE,
		.rev = 2,
		.crc = true,
		.enhanced = true,
		.enh = {
			.p2p = true, .rtr = RDMA_MPA_RTR_WRITE,
			.ird = IW_MPA_DEPTH_ULP, .ord = 4,
		},
		.canonical = true,
	},
	{
		.name = "V42: enhanced reject of V05: ULP needs ORD 32, peer offered IRD 8",
		.hex = "4d504120494420526570204672616d657002000400040020",
		.kind = IW_MPA_REPLY,
		.result = IW_MPA_FRAME_COMPLETE,
		.rev = 2,
		.crc = true,
		.reject = true,
		.enhanced = true,
		.enh = {
			.ird = 4, .ord = 32,
		},
		.canonical = true,
	},
	{
		.name = "V43: enhanced p2p reject listing the RTR types the responder has",
		.hex = "4d504120494420526570204672616d65700200088008c00862757379",
		.kind = IW_MPA_REPLY,
		.result = IW_MPA_FRAME_COMPLETE,
		.rev = 2,
		.crc = true,
		.reject = true,
		.enhanced = true,
		.enh = {
			.p2p = true, .rtr = RDMA_MPA_RTR_WRITE | RDMA_MPA_RTR_READ,
			.ird = 8, .ord = 8,
		},
		.ulp_len = 4,
		.ulp = "busy",
		.canonical = true,
	},
	{
		.name = "V44: accept of V05 asking IRD 64: raise IRD, or TERM F7 if it cannot",
		.hex = "4d504120494420526570204672616d655002000400040040",
		.kind = IW_MPA_REPLY,
		.result = IW_MPA_FRAME_COMPLETE,
		.rev = 2,
		.crc = true,
		.enhanced = true,
		.enh = {
			.ird = 4, .ord = 64,
		},
		.canonical = true,
	},
	{
		.name = "V45: accept of V09; as an answer to V08 it draws TERM F8",
		.hex = "4d504120494420526570204672616d655002000480084008",
		.kind = IW_MPA_REPLY,
		.result = IW_MPA_FRAME_COMPLETE,
		.rev = 2,
		.crc = true,
		.enhanced = true,
		.enh = {
			.p2p = true, .rtr = RDMA_MPA_RTR_READ,
			.ird = 8, .ord = 8,
		},
		.canonical = true,
	},
	{
		.name = "V46: maximum private data, enhanced accept of V20",
		.hex = "4d504120494420526570204672616d655002020080208020",
		.fill = 508,
		.kind = IW_MPA_REPLY,
		.result = IW_MPA_FRAME_COMPLETE,
		.rev = 2,
		.crc = true,
		.enhanced = true,
		.enh = {
			.p2p = true, .rtr = RDMA_MPA_RTR_WRITE,
			.ird = 32, .ord = 32,
		},
		.ulp_len = 508,
		.canonical = true,
	},
	{
		.name = "V47: A=0 answer to a p2p request: TERM F8 (RTR-12)",
		.hex = "4d504120494420526570204672616d655002000400080008",
		.kind = IW_MPA_REPLY,
		.result = IW_MPA_FRAME_COMPLETE,
		.rev = 2,
		.crc = true,
		.enhanced = true,
		.enh = {
			.ird = 8, .ord = 8,
		},
		.canonical = true,
	},
	{
		.name = "V48: not enhanced answer to V05: close (AMB-04)",
		.hex = "4d504120494420526570204672616d654001000400080004",
		.kind = IW_MPA_REPLY,
		.result = IW_MPA_FRAME_COMPLETE,
		.rev = 1,
		.crc = true,
		.ulp_len = 4,
		.ulp = "\x00\x08\x00\x04",
		.canonical = true,
	},
	{
		.name = "V49: enhanced reject with no block: plain reject (AMB-03)",
		.hex = "4d504120494420526570204672616d6570020000",
		.kind = IW_MPA_REPLY,
		.result = IW_MPA_FRAME_COMPLETE,
		.rev = 2,
		.crc = true,
		.reject = true,
		.block_missing = true,
	},
	{
		.name = "V50: p2p accept with no option: TERM F8 (RTR-11)",
		.hex = "4d504120494420526570204672616d655002000480080008",
		.kind = IW_MPA_REPLY,
		.result = IW_MPA_FRAME_COMPLETE,
		.rev = 2,
		.crc = true,
		.enhanced = true,
		.enh = {
			.p2p = true,
			.ird = 8, .ord = 8,
		},
		.canonical = true,
	},
};

/**
 * struct iw_mpa_early_vector - an enhanced word in both dialects
 * @name: number and description in the conformance matrix
 * @word: enhanced connection data, host byte order
 * @rfc: what RFC 6581 reads
 * @early: what the early draft reads
 */
struct iw_mpa_early_vector {
	const char *name;
	u32 word;
	struct iw_mpa_enh rfc;
	struct iw_mpa_enh early;
};

static const struct iw_mpa_early_vector iw_mpa_early_vectors[] = {
	{
		.name = "O1: early: Write; RFC 6581: client-server",
		.word = 0x40080008,
		.rfc = { .ird = 8, .ord = 8 },
		.early = {
			.ird = 8, .ord = 8,
			.p2p = true, .rtr = RDMA_MPA_RTR_WRITE,
		},
	},
	{
		.name = "O2: early: all three; RFC 6581: Send and Write",
		.word = 0xc0088008,
		.rfc = {
			.ird = 8, .ord = 8,
			.p2p = true, .rtr = RDMA_MPA_RTR_SEND | RDMA_MPA_RTR_WRITE,
		},
		.early = {
			.ird = 8, .ord = 8,
			.p2p = true, .rtr = IW_MPA_RTR_ALL,
		},
	},
	{
		.name = "O3: early: Read; RFC 6581: client-server",
		.word = 0x00088008,
		.rfc = { .ird = 8, .ord = 8 },
		.early = {
			.ird = 8, .ord = 8,
			.p2p = true, .rtr = RDMA_MPA_RTR_READ,
		},
	},
	{
		.name = "O4: early: Send; RFC 6581: p2p with no option",
		.word = 0x80080008,
		.rfc = { .ird = 8, .ord = 8, .p2p = true },
		.early = {
			.ird = 8, .ord = 8,
			.p2p = true, .rtr = RDMA_MPA_RTR_SEND,
		},
	},
	{
		.name = "O5: client-server in both",
		.word = 0x00080008,
		.rfc = { .ird = 8, .ord = 8 },
		.early = { .ird = 8, .ord = 8 },
	},
};

/* Bytes of @v that there are: fewer than it announces if it is V25 */
static inline size_t iw_mpa_vector_len(const struct iw_mpa_vector *v)
{
	return strlen(v->hex) / 2 + v->fill;
}

/* Write the bytes of @v to @buf, which holds iw_mpa_vector_len() */
static inline void iw_mpa_vector_bytes(const struct iw_mpa_vector *v, u8 *buf)
{
	size_t len = strlen(v->hex) / 2;
	size_t i;

	/* cannot fail: the digits are above */
	if (hex2bin(buf, v->hex, len))
		memset(buf, 0, len);
	for (i = 0; i < v->fill; i++)
		buf[len + i] = i;
}

#endif /* IW_MPA_VECTORS_H */
