/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Calls for devices of type siw_dg that verbs do not have. See NOTICE.
 */
#ifndef _INFINIBAND_SIWDG_H
#define _INFINIBAND_SIWDG_H

#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include <infiniband/verbs.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * siwdg_create_qp - create a UD QP that uses a socket of the program
 * @pd: PD of a siw_dg device
 * @attr: as for ibv_create_qp()
 * @sockfd: a bound UDP socket, IPv4 or IPv6, in the network namespace of the
 *          device. Its port becomes the number of the QP. The QP keeps the
 *          socket: the program may close @sockfd, and must not receive with it.
 *          While it is corked (UDP_CORK), or a datagram that began with MSG_MORE
 *          is in it, each send request completes with IBV_WC_LOC_QP_OP_ERR
 *
 * The way to a port of one's choice, and so to multicast: a group's messages
 * go to one port.
 *
 * Return: the QP, for ibv_destroy_qp(); NULL and errno: EOPNOTSUPP not such a
 * device, EBADF or ENOTSOCK no socket, EPROTOTYPE not UDP, EINVAL not bound, or
 * connected, EADDRNOTAVAIL another namespace, EADDRINUSE a QP of the device has
 * this port, EBUSY the socket is in use by a QP or the kernel. A socket that is
 * bound to an address of another interface is none of these
 */
struct ibv_qp *siwdg_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr,
			       int sockfd);

/* Members of struct siwdg_qp_attr that are valid */
#define SIWDG_QP_SOCKET		1
#define SIWDG_QP_SLOTS		2
#define SIWDG_QP_DEADLINE	4
#define SIWDG_QP_GAP		8
#define SIWDG_QP_SEGMENT	16
#define SIWDG_QP_FLAGS		32

/* Flags of a QP */
/*
 * A datagram longer than the path's MTU is sent as IP fragments: a Send of up to
 * 65485 octets, and datagrams of a Write-Record that @segment makes so long. With a
 * fragment the datagram is lost.
 */
#define SIWDG_FRAGMENT		1
/*
 * A source whose Write-Record is refused gets an error message: if a rule of any
 * zone of the QP names it (siwdg_allow_any() names none), at most one a second and
 * address, and 64 a second in all. None is longer than the refused datagram, so
 * that needs 24 octets of data; none answers multicast.
 */
#define SIWDG_SEND_ERRORS	2
/*
 * An error message about one of the last 256 Write-Records of the QP, from where
 * it was sent to, has a completion in the receive CQ: once for each message, with
 * opcode IBV_WC_DRIVER2, see struct siwdg_wc. It is a hint: nothing else depends
 * on it. It needs an entry of the CQ as a record does. Others are only counted.
 */
#define SIWDG_RECEIVE_ERRORS	4

/**
 * struct siwdg_qp_attr - attributes of a QP that verbs do not have
 * @comp_mask: SIWDG_QP_*; a member without its bit is not read, and has its default
 * @sockfd: as of siwdg_create_qp() (a socket of the kernel's making)
 * @slots: messages of several datagrams to all zones of the QP that can be in
 *         progress, 1 to 4096 (64)
 * @deadline_ms: from the first datagram of a message until it ends, 1 to 3600000
 *               (1000)
 * @gap_ms: from its last datagram until a message with holes ends, 0 to 3600000
 *          (2); zones with SIWDG_ZONE_PARTIAL. Both times are rounded up to ticks
 *          of the kernel
 * @segment: data octets in a datagram of a Write-Record that the QP sends, 1 to
 *           65473; without SIWDG_FRAGMENT never more than the path's MTU takes (so
 *           many)
 * @flags: SIWDG_FRAGMENT and so on (0)
 */
struct siwdg_qp_attr {
	uint32_t comp_mask;
	int sockfd;
	uint32_t slots;
	uint32_t deadline_ms;
	uint32_t gap_ms;
	uint32_t segment;
	uint32_t flags;
};

/**
 * siwdg_create_qp_ex - create a UD QP with attributes of its own
 * @pd: PD of a siw_dg device
 * @attr: as for ibv_create_qp()
 * @qp_attr: see above
 *
 * Return: as siwdg_create_qp(); errno is EINVAL for a value out of its range, too,
 * or for such attributes with a kernel module that has none, and EOPNOTSUPP for an
 * unknown bit of @comp_mask
 */
struct ibv_qp *siwdg_create_qp_ex(struct ibv_pd *pd,
				  struct ibv_qp_init_attr *attr,
				  const struct siwdg_qp_attr *qp_attr);

/* ---- Write-Record: the target */

struct siwdg_zone;

/* Flags of a zone */
/* Writes to the zone are not recorded */
#define SIWDG_ZONE_NO_RECORD	1
/* The parts of an incomplete message are recorded; else only whole messages are */
#define SIWDG_ZONE_PARTIAL	2
/* It has a validity map, and @block is valid */
#define SIWDG_ZONE_MAP		4

/**
 * struct siwdg_zone_attr - a zone
 * @offset: where it begins in the region
 * @length: in octets, not 0
 * @number: its number on the wire; 0: a random one, which is stored here
 * @qkey: its Q_Key; 0: a random one, which is stored here
 * @flags: SIWDG_ZONE_*
 * @block: SIWDG_ZONE_MAP: octets for each bit of the map, not 0. The zone has at
 *         most 2^26 blocks
 */
struct siwdg_zone_attr {
	uint64_t offset;
	uint64_t length;
	uint32_t number;
	uint32_t qkey;
	uint32_t flags;
	uint32_t block;
};

/**
 * siwdg_open_zone - open a part of a memory region for writing
 * @qp: a QP of a siw_dg device, in any state
 * @mr: a region of the QP's PD with IBV_ACCESS_LOCAL_WRITE and
 *      IBV_ACCESS_REMOTE_WRITE
 * @attr: see above
 *
 * A message of several datagrams is recorded when all of it has come. If a part
 * is missing at its deadline, it is discarded, although what came is written. With
 * SIWDG_ZONE_PARTIAL it ends at its deadline, or some time after its last datagram
 * (@gap_ms of the QP), and each contiguous part that came has a record.
 *
 * A source has one message in progress in a zone. A newer one discards it; or
 * ends it, if the zone is partial and its last datagram has come. A message that
 * has ended is remembered for 200 ms, so that late copies of its datagrams are not
 * written: while it has a slot, which all sources of the QP share. When no slot is
 * free, that of the message that ended first is used, whoever sent it; when none
 * has ended, the oldest message is discarded.
 *
 * Nobody may write to it before siwdg_allow() or siwdg_allow_any(). A source
 * needs the zone's number and Q_Key, too. QP and region cannot be destroyed
 * before the zone (EBUSY).
 *
 * Return: the zone, for siwdg_close_zone(); NULL and errno: EOPNOTSUPP not such
 * a device, or a kernel module without zones, EINVAL @attr is wrong or not
 * within the region, or the region has another PD, EACCES the region lacks
 * IBV_ACCESS_REMOTE_WRITE, EEXIST the QP has a zone with this number, ENOSPC
 * the QP has 1024 zones or the device 65536, ENOBUFS the receive CQ has no more
 * entries than all send and receive queues that complete there, rounded up to
 * powers of two, E2BIG the zone has too many blocks
 *
 * A record is only added while fewer completions of any kind wait in the CQ than
 * it has entries beyond those of the queues. Queues that are created later take
 * entries from records, and may leave none.
 */
struct siwdg_zone *siwdg_open_zone(struct ibv_qp *qp, struct ibv_mr *mr,
				   struct siwdg_zone_attr *attr);

/**
 * siwdg_close_zone - close a zone
 * @zone: the zone, which nothing else may use now
 *
 * No octet of it is written any more when this returns. Records stay in the CQ
 * until they are polled.
 *
 * Return: 0 or an error number, and @zone stays: EIO the device has gone, and
 * the kernel has closed the zone
 */
int siwdg_close_zone(struct siwdg_zone *zone);

/**
 * siwdg_allow - let sources write to a zone
 * @zone: the zone
 * @source: struct sockaddr_in or sockaddr_in6; port 0: any port
 * @length: of @source
 * @prefix: the first bits of the address that count: 32 or 128, this address
 *          alone; at least 1. A mapped IPv4 address has at least 97
 *
 * A rule is for the family of its address: ::/1 admits no IPv4 address.
 *
 * Return: 0 or an error number: EINVAL, ENOSPC the zone has 256 sources
 */
int siwdg_allow(struct siwdg_zone *zone, const struct sockaddr *source,
		socklen_t length, unsigned int prefix);

/* Lets all who know number and Q_Key write. Returns 0 or an error number. */
int siwdg_allow_any(struct siwdg_zone *zone);

/**
 * siwdg_zone_valid - has this block of a zone been written?
 * @zone: a zone with SIWDG_ZONE_MAP
 * @block: number of the block
 *
 * Return: 1 if one datagram has written all of the block since it was cleared;
 * else 0, also without such a block
 */
int siwdg_zone_valid(const struct siwdg_zone *zone, uint64_t block);

/**
 * siwdg_zone_clear - clear bits of the validity map
 * @zone: a zone with SIWDG_ZONE_MAP
 * @first: the first block
 * @count: number of blocks
 */
void siwdg_zone_clear(struct siwdg_zone *zone, uint64_t first, uint64_t count);

/* Flag of a record: no other part of the message follows */
#define SIWDG_END	1

/**
 * struct siwdg_wc - a completion
 * @wc: as from ibv_poll_cq(). A part of a zone that has become valid has opcode
 *      IBV_WC_DRIVER1 and status IBV_WC_SUCCESS; these members are then valid:
 *      wr_id, the offset in the zone, byte_len, qp_num, src_qp, the source's UDP
 *      port, and invalidated_rkey, the zone's number
 * @source: of such a record: the source's address, IPv4 mapped
 * @msn: of such a record: number of the message, which the source counts
 * @flags: of such a record: SIWDG_END
 * @message: of such a record: where the message begins in the zone
 * @message_length: of such a record: length of the message
 * @bytes: of a record with SIWDG_END: octets of the message that came. Less than
 *         @message_length: the others did not come. More than those of its
 *         records: the CQ had no room for some. A part leaves one entry for the
 *         record with SIWDG_END, which is missing only if the CQ was full when the
 *         message ended, or another QP that completes there took that entry
 *
 * A datagram of this QP that its target has refused (SIWDG_RECEIVE_ERRORS) has
 * opcode IBV_WC_DRIVER2, and these members: wr_id, invalidated_rkey, @msn, @message
 * and @message_length, as it was sent; byte_len, octets of its data; src_qp and
 * @source, the target; @bytes, the reason: the layer in bits 12 to 15, the type in
 * bits 8 to 11 and the code in bits 0 to 7 of RFC 5040. 0x1100: no such zone, or a
 * wrong Q_Key; 0x1101: beyond the zone; 0: no room for the record; 0x02ff: it
 * contradicts other datagrams of its message, or these are too many.
 *
 * Later versions may append members.
 */
struct siwdg_wc {
	struct ibv_wc wc;
	struct in6_addr source;
	uint32_t msn;
	uint32_t flags;
	uint64_t message;
	uint32_t message_length;
	uint32_t bytes;
};

/**
 * siwdg_poll_sized - poll a CQ as ibv_poll_cq(), and get all of a record
 * @cq: a CQ of a siw_dg device
 * @num_entries: entries of @wc
 * @wc: filled
 * @size: sizeof(struct siwdg_wc) of the program
 *
 * A record comes behind the data that it names, in the order of arrival. It does
 * not raise a solicited event.
 *
 * Return: number of completions; -1 not a CQ of such a device, or a wrong @size
 */
int siwdg_poll_sized(struct ibv_cq *cq, int num_entries, struct siwdg_wc *wc,
		     size_t size);

#define siwdg_poll(cq, num_entries, wc) \
	siwdg_poll_sized(cq, num_entries, wc, sizeof(struct siwdg_wc))

/**
 * siwdg_fold - take the records of a zone out of its CQ, and make a map of them
 * @zone: the zone
 * @add: called for each record with @map and the part of the zone that has become
 *       valid; must not use the CQ. Returns 0, or another number to leave this
 *       record and later ones in the CQ
 * @map: of the program, for instance for dgm_map_add() of libdgm
 *
 * Completions of other zones and of requests stay for polling. A record that is
 * taken uses its entry of the CQ until all entries before it are polled.
 *
 * Records of a closed zone that had the same number in the same QP are taken, too:
 * fold or poll them before the number is used again. The CQ must exist.
 *
 * Return: number of records taken
 */
int siwdg_fold(struct siwdg_zone *zone,
	       int (*add)(void *map, uint64_t offset, uint64_t length),
	       void *map);

/* ---- Write-Record: the source */

/**
 * struct siwdg_write - a message to a zone
 * @wr_id: of its completion, whose opcode is IBV_WC_RDMA_WRITE
 * @sg_list: its data
 * @num_sge: number of entries
 * @send_flags: IBV_SEND_SIGNALED and IBV_SEND_INLINE
 * @ah: the target's address
 * @remote_qpn: the target's UDP port
 * @remote_zone: number of the zone
 * @remote_qkey: Q_Key of the zone
 * @remote_offset: where the message goes in the zone
 */
struct siwdg_write {
	uint64_t wr_id;
	struct ibv_sge *sg_list;
	int num_sge;
	unsigned int send_flags;
	struct ibv_ah *ah;
	uint32_t remote_qpn;
	uint32_t remote_zone;
	uint32_t remote_qkey;
	uint64_t remote_offset;
};

/**
 * siwdg_post_write - write to a zone of another QP or of a libdgm endpoint
 * @qp: a QP of a siw_dg device
 * @write: the message
 *
 * In order with ibv_post_send(), whose request cannot hold both an address
 * handle and a remote address. The message has as many datagrams as the path's
 * MTU makes necessary, at most 1024, and completes when the network has taken the
 * last one. One that needs more completes with IBV_WC_LOC_LEN_ERR, one that wraps
 * around with IBV_WC_LOC_QP_OP_ERR. A new QP counts its messages from 1: one with
 * the port of a QP that wrote to a zone in the last 200 ms has messages of several
 * datagrams dropped there as late copies. When the path's MTU shrinks meanwhile, the
 * message begins anew with a new number.
 *
 * Return: 0 or an error number: EOPNOTSUPP not such a device, EINVAL a wrong
 * request or state, ENOMEM the send queue is full. After any other error the
 * request is in the queue, and may be sent: do not repeat it
 */
int siwdg_post_write(struct ibv_qp *qp, const struct siwdg_write *write);

#ifdef __cplusplus
}
#endif

#endif
