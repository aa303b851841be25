/* SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR BSD-3-Clause */
/*
 * Between module siw_dg and its provider in rdma-core. See NOTICE.
 *
 * Each queue is a ring in memory that both map: struct siw_dg_ring, then a
 * power of two of entries. Indices count up and wrap at 2^32; an entry is at
 * its index modulo the size. The producer writes an entry, then its index with
 * release semantics; the consumer reads that index with acquire semantics. A
 * queue may be larger than the program asked for, and is mapped as a whole.
 *
 * The doorbell is IB_USER_VERBS_CMD_POST_SEND without requests. In state RTS the
 * module then sends what is in the SQ, and in state ERR it flushes SQ and RQ; it
 * fails with EINVAL in states before RTS. A modification to RESET discards what
 * is in both queues: the module moves its indices to the program's.
 */
#ifndef _SIW_DG_ABI_H
#define _SIW_DG_ABI_H

#include <linux/types.h>
#include <rdma/ib_user_ioctl_cmds.h>

/* Differs from siw's, whose provider must not take the device */
#define SIW_DG_ABI_VERSION	2
/* Begin of the node description, by which the provider finds the device */
#define SIW_DG_NODE_DESC	"Datagram iWARP"

/* UCX needs six */
#define SIW_DG_MAX_SGE		8
#define SIW_DG_MAX_INLINE	128
/* A received message begins with a GRH in IPv6's form, whose next header is this */
#define SIW_DG_GRH_LEN		40
#define SIW_DG_GRH_NEXTHDR	0x1b
/* Zones of a QP, and sources that a zone names */
#define SIW_DG_MAX_ZONES	1024
#define SIW_DG_MAX_SOURCES	256
/* Bits of a zone's validity map */
#define SIW_DG_MAX_BLOCKS	0x4000000

/**
 * struct siw_dg_ring - head of a queue
 * @producer: index of the next entry that the producer will write: the program
 *            for SQ and RQ, the module for a CQ
 * @reserved1: 0
 * @consumer: index of the next entry that the consumer will read. An entry of
 *            SQ or RQ may be written anew as soon as it is behind this
 * @armed: CQ: SIW_DG_ARM_*, bits that the program sets. The module clears all when
 *         it raises an event. After it is set, a program polls once more
 * @reserved2: 0
 */
struct siw_dg_ring {
	__u32 producer;
	__u32 reserved1[15];
	__u32 consumer;
	__u32 armed;
	__u32 reserved2[14];
};

#define SIW_DG_ARM_SOLICITED	1
#define SIW_DG_ARM_NEXT		2

struct siw_dg_sge {
	__aligned_u64 addr;
	__u32 length;
	__u32 lkey;
};

/* Flags of a send request */
#define SIW_DG_SIGNALED		1
#define SIW_DG_SOLICITED	2
#define SIW_DG_INLINE		4

/* Opcodes of a send request */
#define SIW_DG_OP_SEND		0
#define SIW_DG_OP_WRITE_RECORD	1

/**
 * struct siw_dg_sqe - a send request
 * @wr_id: of the program
 * @flags: SIW_DG_SIGNALED and so on
 * @num_sge: number of entries of @sge; 0 if the data is inline
 * @opcode: SIW_DG_OP_*
 * @ah: struct siw_dg_create_ah_resp.ah
 * @remote_qpn: UDP port of the target
 * @remote_qkey: Send: Q_Key of the target; the QP's own if the highest bit is
 *               set. Write-Record: Q_Key of the zone
 * @inline_len: length of @data, 0 to SIW_DG_MAX_INLINE
 * @remote_zone: Write-Record: number of the zone; Send: must be 0
 * @remote_offset: Write-Record: offset in the zone; Send: must be 0
 * @reserved: must be 0
 * @sge: data by reference
 * @data: data inline
 */
struct siw_dg_sqe {
	__aligned_u64 wr_id;
	__u16 flags;
	__u8 num_sge;
	__u8 opcode;
	__u32 ah;
	__u32 remote_qpn;
	__u32 remote_qkey;
	__u32 inline_len;
	__u32 remote_zone;
	__aligned_u64 remote_offset;
	__u32 reserved[6];
	union {
		struct siw_dg_sge sge[SIW_DG_MAX_SGE];
		__u8 data[SIW_DG_MAX_INLINE];
	};
};

/**
 * struct siw_dg_rqe - a receive request
 * @wr_id: of the program
 * @num_sge: number of entries of @sge
 * @reserved: must be 0
 * @sge: where GRH and message go
 */
struct siw_dg_rqe {
	__aligned_u64 wr_id;
	__u32 num_sge;
	__u32 reserved[13];
	struct siw_dg_sge sge[SIW_DG_MAX_SGE];
};

/* Opcodes of a completion */
#define SIW_DG_WC_SEND		0
#define SIW_DG_WC_RECV		1
#define SIW_DG_WC_WRITE_RECORD	2
/* A peer has written to a zone; of no request. No more of the message follows. */
#define SIW_DG_WC_RECORD	3
/* The same; another part of the message follows. From partial zones alone. */
#define SIW_DG_WC_PIECE		4
/* A peer has refused a datagram of the QP; of no request. For SIW_DG_RECEIVE_ERRORS. */
#define SIW_DG_WC_ERROR		5

/**
 * struct siw_dg_cqe - a completion
 * @wr_id: of the request; record, error: offset in the zone
 * @status: enum ib_wc_status, whose values are those of ibv_wc_status
 * @opcode: SIW_DG_WC_*
 * @byte_len: receive: length of the message and its GRH; record: of the data; error:
 *            of the data of the refused datagram
 * @qp_num: of the QP
 * @src_qp: receive, record, error: UDP port of the source
 * @zone: record, error: number of the zone
 * @msn: record, error: number of the message, which its source counts
 * @source: record, error: address of the source, an IPv4 address mapped
 * @mo: record, error: offset of this part in its message
 * @ml: record, error: length of the message
 * @bytes: record: octets of the message that came; piece: 0; error: layer (4 bits),
 *         type (4 bits) and code (8 bits) of RFC 5040
 */
struct siw_dg_cqe {
	__aligned_u64 wr_id;
	__u32 status;
	__u32 opcode;
	__u32 byte_len;
	__u32 qp_num;
	__u32 src_qp;
	__u32 zone;
	__u32 msn;
	__u8 source[16];
	__u32 mo;
	__u32 ml;
	__u32 bytes;
};

/**
 * struct siw_dg_create_cq_resp - response to the creation of a CQ
 * @key: offset for mmap()
 * @size: number of entries
 * @reserved: 0
 */
struct siw_dg_create_cq_resp {
	__aligned_u64 key;
	__u32 size;
	__u32 reserved;
};

/* Members of struct siw_dg_create_qp_req that are valid */
#define SIW_DG_QP_SLOTS		1
#define SIW_DG_QP_DEADLINE	2
#define SIW_DG_QP_GAP		4
#define SIW_DG_QP_SEGMENT	8
#define SIW_DG_QP_FLAGS		16

/* Flags of a QP: a datagram longer than the path's MTU is sent as IP fragments */
#define SIW_DG_FRAGMENT		1
/* A named source whose Write-Record is refused may get an error message */
#define SIW_DG_SEND_ERRORS	2
/* One that comes about a Write-Record of the QP has a completion in the receive CQ */
#define SIW_DG_RECEIVE_ERRORS	4

/**
 * struct siw_dg_create_qp_req - request to create a QP
 * @sockfd: a bound UDP socket, which the QP is to use; -1: the module makes one
 * @comp_mask: SIW_DG_QP_*. A member without its bit must be 0, and has its
 *             default
 * @slots: messages of several datagrams in progress, 1 to 4096 (64)
 * @deadline_ms: from a message's first datagram to its end, 1 to 3600000 (1000)
 * @gap_ms: from the last datagram until a message with holes ends, 0 to 3600000
 *          (2)
 * @segment: data octets in a datagram of a Write-Record, 1 to 65473 (as many as
 *           the path's MTU takes)
 * @flags: SIW_DG_FRAGMENT and so on (0)
 * @reserved: must be 0
 *
 * The request may end behind @comp_mask.
 */
struct siw_dg_create_qp_req {
	__s32 sockfd;
	__u32 comp_mask;
	__u32 slots;
	__u32 deadline_ms;
	__u32 gap_ms;
	__u32 segment;
	__u32 flags;
	__u32 reserved;
};

/**
 * struct siw_dg_create_qp_resp - response to the creation of a QP
 * @sq_key: offset of the SQ for mmap()
 * @rq_key: offset of the RQ for mmap(); 0 if the QP receives nothing
 * @sq_size: number of entries of the SQ
 * @rq_size: number of entries of the RQ; 0 if the QP receives nothing
 */
struct siw_dg_create_qp_resp {
	__aligned_u64 sq_key;
	__aligned_u64 rq_key;
	__u32 sq_size;
	__u32 rq_size;
};

/**
 * struct siw_dg_create_ah_resp - response to the creation of an address handle
 * @ah: its number, for struct siw_dg_sqe
 * @reserved: 0
 */
struct siw_dg_create_ah_resp {
	__u32 ah;
	__u32 reserved;
};

/*
 * Zones, by ioctls. A zone is a part of a memory region that datagrams to one QP
 * may write. The QP and the region cannot be destroyed before it.
 */
enum siw_dg_objects {
	SIW_DG_OBJECT_ZONE = (1U << UVERBS_ID_NS_SHIFT),
};

enum siw_dg_zone_methods {
	SIW_DG_METHOD_ZONE_OPEN = (1U << UVERBS_ID_NS_SHIFT),
	SIW_DG_METHOD_ZONE_CLOSE,
	SIW_DG_METHOD_ZONE_ALLOW,
};

enum siw_dg_zone_open_attrs {
	SIW_DG_ATTR_ZONE_OPEN_HANDLE = (1U << UVERBS_ID_NS_SHIFT),
	SIW_DG_ATTR_ZONE_OPEN_QP,
	SIW_DG_ATTR_ZONE_OPEN_MR,
	SIW_DG_ATTR_ZONE_OPEN_REQ,
	SIW_DG_ATTR_ZONE_OPEN_RESP,
};

enum siw_dg_zone_close_attrs {
	SIW_DG_ATTR_ZONE_CLOSE_HANDLE = (1U << UVERBS_ID_NS_SHIFT),
};

enum siw_dg_zone_allow_attrs {
	SIW_DG_ATTR_ZONE_ALLOW_HANDLE = (1U << UVERBS_ID_NS_SHIFT),
	SIW_DG_ATTR_ZONE_ALLOW_SOURCE,
};

/* Flags of a zone: what is written there is not recorded */
#define SIW_DG_ZONE_NO_RECORD	1
/* The parts of an incomplete message are recorded */
#define SIW_DG_ZONE_PARTIAL	2

/**
 * struct siw_dg_zone_open_req - request to open a zone
 * @offset: of the zone in the region
 * @length: of the zone in octets, not 0
 * @number: its number on the wire; 0: a random one
 * @qkey: its Q_Key; 0: a random one
 * @flags: SIW_DG_ZONE_*
 * @block: octets for each bit of its validity map; 0: no map
 */
struct siw_dg_zone_open_req {
	__aligned_u64 offset;
	__aligned_u64 length;
	__u32 number;
	__u32 qkey;
	__u32 flags;
	__u32 block;
};

/**
 * struct siw_dg_zone_open_resp - response to the opening of a zone
 * @number: its number
 * @qkey: its Q_Key
 * @map_key: offset of its validity map for mmap(), or 0
 * @map_words: number of words of the map
 * @reserved: 0
 *
 * The map is in memory that both map: struct siw_dg_ring, all of it 0, then words
 * of 32 bits in the order of the host. Block n of the zone has bit n % 32 of word
 * n / 32. The module sets it after one datagram has written the whole block; the
 * program clears it. Each changes the word atomically.
 */
struct siw_dg_zone_open_resp {
	__u32 number;
	__u32 qkey;
	__aligned_u64 map_key;
	__u32 map_words;
	__u32 reserved;
};

/**
 * struct siw_dg_zone_source - sources that may write to a zone
 * @address: an address, IPv4 mapped. Sources of the other family do not match
 * @prefix: the first bits of @address that count, to 128; of a mapped address
 *          from 97. 0: all addresses of both families
 * @port: UDP port; 0: any
 * @reserved: must be 0
 */
struct siw_dg_zone_source {
	__u8 address[16];
	__u32 prefix;
	__u16 port;
	__u16 reserved;
};

#endif
