/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The device of datagram iWARP: UD queue pairs, each of which has a UDP socket
 * and the number of its port. See NOTICE.
 *
 * Locks, the outer one first:
 *
 *     dg_qp.sq_mutex        SQ, socket
 *     sk_callback_lock      socket -> QP
 *     dg_qp.rq_lock         RQ, zones, messages in progress; state is written
 *                           under it and sq_mutex
 *     dg_qp.zones' xa_lock  zones by number; softirqs are off
 *     dg_cq.lock            CQ
 */
#ifndef _DG_DEVICE_H
#define _DG_DEVICE_H

#include <linux/completion.h>
#include <linux/mutex.h>
#include <linux/net.h>
#include <linux/netdevice.h>
#include <linux/uio.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include <rdma/ib_umem.h>
#include <rdma/ib_verbs.h>

#include "dg_compat.h"
#include "dg_error.h"
#include "dg_track.h"
#include "dg_wire.h"
#include "siw_dg-abi.h"

#define DG_GIDS		16
#define DG_MAX_QP	16384
#define DG_MAX_CQ	16384
#define DG_MAX_MR	65536
#define DG_MAX_PD	16384
#define DG_MAX_AH	65536
#define DG_MAX_ZONE	65536
#define DG_MAX_WR	16384
#define DG_MAX_CQE	1048576
/* A Send in a datagram of IPv4, the smaller one */
#define DG_MAX_MSG	(65535 - 20 - 8 - DG_SEND_HDR - DG_CRC_LEN)
/* Octets of a packet that are no data of a Send, with IPv6 */
#define DG_OVERHEAD	(40 + 8 + DG_SEND_HDR + DG_CRC_LEN)

/**
 * enum dg_counter - counters of a port
 * @DG_SENT: datagrams that the network has taken
 * @DG_SEND_ERRORS: send requests that completed with an error
 * @DG_RECEIVED: messages received
 * @DG_WRITTEN: datagrams written to a zone
 * @DG_SUPERSEDED: messages discarded for a newer one of their source
 * @DG_EVICTED: messages discarded for lack of a slot
 * @DG_EXPIRED: messages discarded at their deadline
 * @DG_BAD_CSUM: dropped: UDP checksum
 * @DG_BAD_HEADER: dropped: not a good datagram iWARP header
 * @DG_BAD_CRC: dropped: CRC32c
 * @DG_BAD_QKEY: dropped: Q_Key of the QP
 * @DG_NO_ZONE: dropped: the QP has no zone with this number and Q_Key
 * @DG_BAD_SOURCE: dropped: the zone does not name the source, or an IPv6 packet
 *                 has an IPv4 source
 * @DG_BAD_RANGE: dropped: its message is beyond the zone
 * @DG_MSG_ENDED: dropped: its message has ended
 * @DG_REPEATED: dropped: received before
 * @DG_CONTRARY: dropped: contradicts earlier datagrams of its message
 * @DG_MSG_TOO_LONG: dropped: its message has too many datagrams
 * @DG_BAD_IFACE: dropped: neither from the device's interface nor this host
 * @DG_BAD_STATE: dropped: the QP is not ready to receive
 * @DG_NO_RQE: dropped: no receive request
 * @DG_RQE_ERRORS: receive requests that completed with an error
 * @DG_CQ_FULL: dropped for lack of room in a CQ; also records that are lost
 * @DG_ERRORS_SENT: error messages sent
 * @DG_ERRORS_RECEIVED: error messages received, whatever they are about
 * @DG_COUNTERS: number of counters
 */
enum dg_counter {
	DG_SENT,
	DG_SEND_ERRORS,
	DG_RECEIVED,
	DG_WRITTEN,
	DG_SUPERSEDED,
	DG_EVICTED,
	DG_EXPIRED,
	DG_BAD_CSUM,
	DG_BAD_HEADER,
	DG_BAD_CRC,
	DG_BAD_QKEY,
	DG_NO_ZONE,
	DG_BAD_SOURCE,
	DG_BAD_RANGE,
	DG_MSG_ENDED,
	DG_REPEATED,
	DG_CONTRARY,
	DG_MSG_TOO_LONG,
	DG_BAD_IFACE,
	DG_BAD_STATE,
	DG_NO_RQE,
	DG_RQE_ERRORS,
	DG_CQ_FULL,
	DG_ERRORS_SENT,
	DG_ERRORS_RECEIVED,
	DG_COUNTERS,
};

/**
 * struct dg_device - a device
 * @base: of the RDMA core
 * @netdev: its interface. The RDMA core does not know it: it looks a device up by
 *          the interface, and would find this one in place of a siw link
 * @tracker: of @netdev
 * @active: the last event of the port was IB_EVENT_PORT_ACTIVE
 * @goes: it is being unregistered
 * @entry: in the list of devices
 * @qps: QPs by number
 * @mrs: memory regions by key
 * @ahs: address handles by number
 * @num_qps: number of QPs
 * @num_cqs: number of CQs
 * @num_pds: number of PDs
 * @num_zones: number of zones, whose objects in the RDMA core no cgroup is charged for
 * @counters: by enum dg_counter
 */
struct dg_device {
	struct ib_device base;
	struct net_device *netdev;
	netdevice_tracker tracker;
	bool active;
	bool goes;
	struct list_head entry;
	struct xarray qps;
	struct xarray mrs;
	struct xarray ahs;
	atomic_t num_qps;
	atomic_t num_cqs;
	atomic_t num_pds;
	atomic_t num_zones;
	atomic64_t counters[DG_COUNTERS];
};

/**
 * struct dg_queue - memory that a program maps
 * @entry: of the RDMA core, which frees the queue with it
 * @ring: its head; the entries follow
 * @size: number of entries, a power of two
 */
struct dg_queue {
	struct rdma_user_mmap_entry entry;
	struct siw_dg_ring *ring;
	u32 size;
};

/*
 * Receiving and timers. Never sleeps: all users share it, and sending may wait for
 * a socket that its program keeps locked.
 */
extern struct workqueue_struct *dg_wq;
/* Sending */
extern struct workqueue_struct *dg_tx_wq;

struct dg_ucontext {
	struct ib_ucontext base;
};

struct dg_pd {
	struct ib_pd base;
};

/**
 * struct dg_cq - a CQ
 * @base: of the RDMA core
 * @queue: its entries
 * @requests: entries of the SQs and RQs that complete here
 * @lock: protects @producer, @overrun and the entries
 * @producer: index of the next entry
 * @overrun: a completion of a request has been lost
 */
struct dg_cq {
	struct ib_cq base;
	struct dg_queue *queue;
	atomic_t requests;
	spinlock_t lock;	/* see above */
	u32 producer;
	bool overrun;
};

/**
 * struct dg_mr - a memory region
 * @base: of the RDMA core
 * @umem: pinned memory
 * @pages: its pages
 * @iova: address of its first octet in requests
 * @length: in octets
 * @offset: of its first octet in the first page
 * @writable: a receive may write it
 * @remote_writable: a zone may be part of it
 * @zones: zones that are
 * @ref: users; the region itself is one
 * @unused: the last reference has been put
 * @rcu: frees it
 */
struct dg_mr {
	struct ib_mr base;
	struct ib_umem *umem;
	struct page **pages;
	u64 iova;
	u64 length;
	u32 offset;
	bool writable;
	bool remote_writable;
	atomic_t zones;
	refcount_t ref;
	struct completion unused;
	struct rcu_head rcu;
};

/**
 * struct dg_address - where a message goes
 * @source: own address, an IPv4 address mapped
 * @target: the target's, of the same family
 * @tclass: traffic class or TOS; 0: the socket's
 * @hop_limit: hop limit or TTL; 0: the socket's
 */
struct dg_address {
	struct in6_addr source;
	struct in6_addr target;
	u8 tclass;
	u8 hop_limit;
};

struct dg_ah {
	struct ib_ah base;
	u32 number;
	struct dg_address address;
};

/* Bits of dg_qp.flags */
#define DG_QP_TX_WAITS	0	/* tx_work will send */

/* Limits and defaults of a QP's messages of several datagrams */
#define DG_SLOTS_DEFAULT	64
#define DG_DEADLINE_DEFAULT	1000
#define DG_GAP_DEFAULT		2
#define DG_MS_MAX		3600000
#define DG_SEGMENT_MAX		(65535 - 20 - 8 - DG_WRITE_HDR - DG_CRC_LEN)
/* For how long a message that has ended is remembered */
#define DG_LATE_MS		200

struct dg_tx;
struct dg_reports;

/**
 * struct dg_qp - a UD queue pair
 * @base: of the RDMA core
 * @socket: its socket
 * @restore_gro: the program has handed @socket over, and did not want bundles
 * @state: enum ib_qp_state
 * @qkey: datagrams with another Q_Key are dropped
 * @signal_all: each send request completes with a CQE
 * @fragment: datagrams may be longer than the path's MTU
 * @cap: sizes
 * @flags: DG_QP_*
 * @sq_mutex: protects the members up to @tx_work
 * @sq: SQ
 * @sq_next: index of the next send request
 * @send_msn: of the last Send
 * @write_msn: of the last Write-Record. RESET keeps it: to a target that
 *             remembers messages, numbers that begin anew are old ones
 * @segment: data octets in a datagram of a Write-Record; 0: the path's MTU
 * @tx: the request in progress
 * @tx_work: goes on when the socket has room, or after much has been sent
 * @rq_lock: protects the members up to @end_work
 * @rq: RQ, NULL if the QP receives nothing
 * @rq_next: index of the next receive request
 * @zones: zones by number. Under rq_lock one that is found stays
 * @num_zones: their number; @base.usecnt counts memberships in groups, too
 * @num_slots: slots of @track
 * @times: of @track, in ns
 * @slots: of @track; NULL: the QP has had no zone yet
 * @track: messages of several datagrams that are in progress
 * @now: time of the current batch of datagrams, in ns; 0: the QP has had no zone yet
 * @reports: error messages that it sends; NULL: none
 * @writes: messages that it has sent, for error messages about them; NULL: those
 *          that come are only counted
 * @armed: when @end_work runs; 0: it is not queued
 * @end_work: ends messages whose time is over
 * @rx_work: goes on with datagrams that one softirq left
 * @data_ready: the socket's own callback
 * @write_space: the socket's own callback
 */
struct dg_qp {
	struct ib_qp base;
	struct socket *socket;
	bool restore_gro;
	u8 state;
	u32 qkey;
	bool signal_all;
	bool fragment;
	struct ib_qp_cap cap;
	unsigned long flags;

	struct mutex sq_mutex;	/* see above */
	struct dg_queue *sq;
	u32 sq_next;
	u32 send_msn;
	u32 write_msn;
	u32 segment;
	struct dg_tx *tx;
	struct work_struct tx_work;

	spinlock_t rq_lock;	/* see above */
	struct dg_queue *rq;
	u32 rq_next;
	struct xarray zones;
	atomic_t num_zones;
	u32 num_slots;
	struct dg_track_times times;
	struct dg_slot *slots;
	struct dg_track track;
	u64 now;
	struct dg_reports *reports;
	struct dg_writes *writes;
	u64 armed;
	struct delayed_work end_work;
	struct work_struct rx_work;

	void (*data_ready)(struct sock *sk);
	void (*write_space)(struct sock *sk);
};

/**
 * struct dg_zone - a part of a memory region that datagrams to a QP may write
 * @qp: the QP
 * @mr: the region
 * @addr: address of its first octet in requests
 * @length: in octets
 * @number: on the wire
 * @qkey: datagrams with another Q_Key are dropped
 * @record: each message that is written is recorded
 * @partial: so is what came of an incomplete message
 * @block: octets for each bit of @map
 * @map: validity map, or NULL
 * @sources: who may write, struct dg_source_rule; under the QP's rq_lock
 * @num_sources: their number
 */
struct dg_zone {
	struct dg_qp *qp;
	struct dg_mr *mr;
	u64 addr;
	u64 length;
	u32 number;
	u32 qkey;
	bool record;
	bool partial;
	u32 block;
	struct dg_queue *map;
	struct list_head sources;
	u32 num_sources;
};

#define to_dg_device(dev) container_of(dev, struct dg_device, base)
#define to_dg_cq(cq) container_of(cq, struct dg_cq, base)
#define to_dg_mr(mr) container_of(mr, struct dg_mr, base)
#define to_dg_ah(ah) container_of(ah, struct dg_ah, base)
#define to_dg_qp(qp) container_of(qp, struct dg_qp, base)

static inline struct dg_device *dg_device_of(const struct dg_qp *qp)
{
	return to_dg_device(qp->base.device);
}

static inline void dg_count(const struct dg_qp *qp, enum dg_counter counter)
{
	atomic64_inc(&dg_device_of(qp)->counters[counter]);
}

static inline void dg_count_many(const struct dg_qp *qp, enum dg_counter counter,
				 u32 number)
{
	atomic64_add(number, &dg_device_of(qp)->counters[counter]);
}

static inline void *dg_queue_entry(const struct dg_queue *queue, u32 index,
				   size_t size)
{
	return (void *)(queue->ring + 1) + (index & (queue->size - 1)) * size;
}

/* dg_main.c */
void dg_device_forget(struct dg_device *dev);

/* dg_mem.c */
struct dg_queue *dg_queue_create(struct ib_ucontext *context, u32 size,
				 size_t entry_size, u64 *key);
void dg_queue_destroy(struct dg_queue *queue);
int dg_mmap(struct ib_ucontext *context, struct vm_area_struct *vma);
void dg_mmap_free(struct rdma_user_mmap_entry *entry);
struct ib_mr *dg_reg_user_mr(struct ib_pd *pd, u64 start, u64 length, u64 iova,
			     int access, DG_MR_DMAH struct ib_udata *udata);
int dg_dereg_mr(struct ib_mr *mr, struct ib_udata *udata);
struct dg_mr *dg_mr_get(struct dg_device *dev, const struct ib_pd *pd,
			const struct siw_dg_sge *sge, bool write);
void dg_mr_put(struct dg_mr *mr);
struct page *dg_mr_page(const struct dg_mr *mr, u64 addr, u32 *offset);

static inline bool dg_netdev_is_active(const struct net_device *netdev)
{
	return netif_running(netdev) && netif_carrier_ok(netdev);
}

/* dg_verbs.c */
extern const struct ib_device_ops dg_device_ops;
bool dg_ah_find(struct dg_device *dev, const struct ib_pd *pd, u32 number,
		struct dg_address *address);
u32 dg_max_mtu(const struct net_device *netdev);
bool dg_cq_has_room(const struct dg_cq *cq, u32 opcode);
bool dg_cq_add(struct dg_cq *cq, const struct siw_dg_cqe *cqe, bool solicited);

/* dg_qp.c */
int dg_create_qp(struct ib_qp *qp, struct ib_qp_init_attr *attrs,
		 struct ib_udata *udata);
int dg_modify_qp(struct ib_qp *qp, struct ib_qp_attr *attr, int mask,
		 struct ib_udata *udata);
int dg_query_qp(struct ib_qp *qp, struct ib_qp_attr *attr, int mask,
		struct ib_qp_init_attr *init_attr);
int dg_destroy_qp(struct ib_qp *qp, struct ib_udata *udata);
int dg_attach_mcast(struct ib_qp *qp, union ib_gid *gid, u16 lid);
int dg_detach_mcast(struct ib_qp *qp, union ib_gid *gid, u16 lid);

/* dg_report.c */
int dg_report_create(struct dg_qp *qp, u32 flags);
void dg_report_stop(struct dg_qp *qp);
void dg_report_destroy(struct dg_qp *qp);
void dg_report_set_state(struct dg_qp *qp, enum ib_qp_state state);
bool dg_report_may(struct dg_qp *qp, const struct dg_source *source, u64 now);
void dg_report_add(struct dg_qp *qp, const struct dg_address *to, u16 port,
		   enum dg_refusal why, const void *header, u32 len);
void dg_report_expect(struct dg_qp *qp, const struct dg_address *to, u16 port,
		      struct dg_write *write);

/* dg_tx.c */
bool dg_is_corked(const struct dg_qp *qp);
int dg_sendmsg(const struct dg_qp *qp, const struct dg_address *to, u16 port,
	       u16 size, struct iov_iter *iter);
int dg_tx_create(struct dg_qp *qp);
void dg_tx_destroy(struct dg_qp *qp);
void dg_tx_forget(struct dg_qp *qp);
int dg_post_send(struct ib_qp *qp, const struct ib_send_wr *wr,
		 const struct ib_send_wr **bad_wr);
void dg_tx_work(struct work_struct *work);
void dg_flush_sq(struct dg_qp *qp);

/* dg_rx.c */
void dg_rx_receive(struct dg_qp *qp);
void dg_rx_work(struct work_struct *work);
void dg_end_work(struct work_struct *work);
void dg_flush_rq(struct dg_qp *qp);

/* dg_zone.c */
extern const struct uapi_definition dg_zone_defs[];
bool dg_zone_allows(const struct dg_zone *zone, const struct in6_addr *address,
		    u16 port);
bool dg_zones_name(struct dg_qp *qp, const struct dg_zone *first,
		   const struct in6_addr *address, u16 port);

#endif
