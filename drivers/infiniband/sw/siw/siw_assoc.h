/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Associations of SCTP as siw's lower layer protocol, and the sessions that
 * they carry: siw_assoc.c reads SCTP's own state, siw_sctp_rx.c receives,
 * siw_sctp.c does the rest.
 */
#ifndef _SIW_ASSOC_H
#define _SIW_ASSOC_H

#include <linux/in6.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/refcount.h>
#include <linux/skbuff.h>
#include <linux/socket.h>
#include <linux/spinlock.h>
#include <linux/timer.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <net/sock.h>

#include <rdma/iw_mpa.h>

#include "siw_ssn.h"

struct net;
struct sctp_association;
struct siw_cep;
struct siw_qp;

/* RFC 5043 section 5 */
#define SIW_SCTP_ADAPTATION	1
#define SIW_SCTP_PPID_SEGMENT	16
#define SIW_SCTP_PPID_CONTROL	17

#define SIW_SCTP_SSN_LEN	2
/* A session control message with 512 bytes of private data always fits */
#define SIW_SCTP_SEG_MIN	(2 + SIW_SCTP_SSN_LEN + 512)

/* Delay before the next attempt to allocate memory, in jiffies */
#define SIW_SCTP_AGAIN		msecs_to_jiffies(20)

/**
 * struct siw_remote - a remote address, for all associations with it
 * @node: in remotes
 * @refs: number of associations; under remotes_lock
 * @net: cookie of their namespace
 * @ip: the address, IPv4 mapped
 * @held: memory charged to the windows of these associations
 * @n_closing: number of associations in closing_assocs; under closing_lock
 */
struct siw_remote {
	struct hlist_node node;
	unsigned int refs;
	u64 net;
	struct in6_addr ip;
	struct siw_ssn_share held;
	unsigned int n_closing;
};

/**
 * struct siw_gap - the gap in a stream
 * @open: a chunk is missing
 * @next: DDP-SSN of the missing chunk
 * @since: when the gap was detected, in jiffies
 * @explained: when SCTP last had a missing chunk, in jiffies
 */
struct siw_gap {
	bool open;
	u16 next;
	unsigned long since;
	unsigned long explained;
};

/**
 * struct siw_chan - one session: a pair of streams with the same number
 * @assoc: its association
 * @cep: endpoint of the session, with a reference; %NULL after detach; under
 *	the association's @lock
 * @qp: QP to wake when send space is freed; under the association's @lock
 * @stream: number of the streams
 * @tx_ssn: DDP-SSN of the next chunk to send
 * @rx: order of the received chunks; under @rx_mutex
 * @gap: the gap in this order; under @rx_mutex
 * @partial: a message whose end has not been received, charged to @rx; or
 *	%NULL; under @rx_mutex
 * @ready: chunks in order that the reader has read for the endpoint
 * @ready_size: their memory charged to the socket, in bytes; under the queue's
 *	lock
 * @stalled: the reader waits until the endpoint takes chunks; under the queue's
 *	lock
 * @rx_err: after the chunks in @ready none follows: negative errno, or 0; set
 *	under @rx_mutex
 * @err: negative errno if the session has ended
 * @early: segments received before the ULP has answered the Initiate; charged
 *	to @rx
 * @accepted: the peer has opened the association
 * @asked: the Initiate was reported to the ULP
 * @established: segments may be sent and received
 * @over: either side has sent its Terminate
 * @sent: something has been sent
 * @owes_terminate: the Terminate has to be sent after close
 */
struct siw_chan {
	struct siw_assoc *assoc;
	struct siw_cep *cep;
	struct siw_qp *qp;
	u16 stream;
	u16 tx_ssn;
	struct siw_ssn_window rx;
	struct siw_gap gap;
	struct sk_buff *partial;
	struct sk_buff_head ready;
	unsigned int ready_size;
	bool stalled;
	int rx_err;
	int err;
	struct sk_buff_head early;
	bool accepted;
	bool asked;
	bool established;
	bool over;
	bool sent;
	bool owes_terminate;
};

/**
 * struct siw_assoc - an SCTP association
 * @refs: number of channels in use; a listener has one
 * @chan: its sessions; currently one
 * @lock: @cep and @qp of the channels; any context
 * @rx_mutex: held to read from the socket. A holder never waits for an
 *	endpoint: so a user of an endpoint, or a holder of a QP's lock, may wait
 *	for it.
 * @reader: work that reads from the socket for the channels
 * @listening: the socket is that of a listener, which is the endpoint of the
 *	first channel
 * @up: it has been established
 * @peer_tag: the peer's initiate tag
 * @restarted: the peer has restarted the association
 * @err: negative errno if it is lost
 * @seg_max: largest chunk without its header, in bytes
 * @local: our address
 * @remote: the peer's address
 * @peer: shared by all associations with @remote; %NULL until @up
 * @space: entry in the socket's wait queue
 * @again: timer after an allocation failure, and for the end of a gap
 * @sock: the socket
 * @sk_state_change: callback of the socket before it was attached
 * @sk_data_ready: callback of the socket before it was attached
 * @net: its namespace, with a reference: on older kernels, accepted sockets
 *	hold none
 * @drain: after close: work until the peer has completed the shutdown
 * @deadline: after close: jiffies, extended if the peer acknowledges data
 * @latest: after close: jiffies, latest @deadline
 * @poll_ms: after close: milliseconds between polls
 * @unacked: after close: memory of unacknowledged data in bytes
 * @evicted: no longer counted in n_closing
 * @list: after close: in closing_assocs
 */
struct siw_assoc {
	refcount_t refs;
	struct siw_chan chan[1];
	spinlock_t lock; /* cep and qp of the channels */
	struct mutex rx_mutex; /* to read from the socket */
	struct work_struct reader;
	bool listening;
	bool up;
	u32 peer_tag;
	bool restarted;
	int err;
	unsigned int seg_max;
	struct sockaddr_storage local;
	struct sockaddr_storage remote;
	struct siw_remote *peer;

	struct wait_queue_entry space;
	struct timer_list again;

	struct socket *sock;
	void (*sk_state_change)(struct sock *sk);
	void (*sk_data_ready)(struct sock *sk);
	struct net *net;
	struct delayed_work drain;
	unsigned long deadline;
	unsigned long latest;
	unsigned int poll_ms;
	int unacked;
	bool evicted;
	struct list_head list;
};

/* NOCOPY: an association that is not accepted has no callbacks */
static inline void siw_sk_set_assoc(struct sock *sk, struct siw_assoc *assoc)
{
	sk->sk_user_data = (void *)((uintptr_t)assoc | SK_USER_DATA_NOCOPY);
}

static inline struct siw_assoc *siw_sk_to_assoc(const struct sock *sk)
{
	return (void *)((uintptr_t)sk->sk_user_data & SK_USER_DATA_PTRMASK);
}

extern struct siw_ssn_pool siw_held_pool;
extern u32 siw_held_max;
extern struct workqueue_struct *siw_sctp_reader_wq;

/* siw_assoc.c */
void siw_remote_put(struct siw_remote *remote);
struct sctp_association *siw_assoc_sctp(const struct sock *sk);
unsigned int siw_assoc_frag_point(const struct sctp_association *peer);
void siw_assoc_learn_seg_max(struct siw_assoc *assoc,
			     const struct sctp_association *peer);
void siw_assoc_check_restart(struct siw_assoc *assoc,
			     const struct sctp_association *peer);
int siw_assoc_status(struct siw_assoc *assoc, struct sock *sk);
void siw_assoc_again(struct siw_assoc *assoc, unsigned long when);
void siw_assoc_read(struct siw_assoc *assoc);
void siw_chan_wake(struct siw_chan *chan);

/* siw_sctp_rx.c */
enum iw_mpa_next siw_sctp_rx_setup(struct siw_cep *cep);
void siw_sctp_pump(struct siw_cep *cep);
void siw_sctp_read(struct work_struct *work);
void siw_chan_set_limit(struct siw_chan *chan, u32 limit);
void siw_chan_end(struct siw_chan *chan, int err);
void siw_chan_free_chunks(struct siw_chan *chan);
bool siw_sctp_discard(struct socket *s);

#endif /* _SIW_ASSOC_H */
