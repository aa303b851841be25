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
#include <linux/skbuff.h>
#include <linux/socket.h>
#include <linux/spinlock.h>
#include <linux/timer.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <net/sock.h>

#include <rdma/iw_mpa.h>

#include "siw_ssn.h"

struct ib_device;
struct net;
struct sctp_association;
struct siw_cep;
struct siw_qp;

/* RFC 5043 section 5 */
#define SIW_SCTP_ADAPTATION	1
#define SIW_SCTP_PPID_SEGMENT	16
#define SIW_SCTP_PPID_CONTROL	17

#define SIW_SCTP_SSN_LEN	2
/* Memory of a session's queue, in bytes, before it is established */
#define SIW_SCTP_READY_MAX	(64 << 10)
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
 * @n_idle: number of associations that it has opened and that have no session;
 *	under siw_share.c's table lock
 */
struct siw_remote {
	struct hlist_node node;
	unsigned int refs;
	u64 net;
	struct in6_addr ip;
	struct siw_ssn_share held;
	unsigned int n_closing;
	unsigned int n_idle;
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
 * @queue: of a shared association: @ready_size is charged to it; under the
 *	queue's lock
 * @qp_busy: the endpoint looks for chunks again, as @qp was being modified
 * @stalled: the reader waits until the endpoint takes chunks; under the queue's
 *	lock
 * @resume_at: @ready_size at which it goes on; under the queue's lock
 * @progress: when the endpoint last took a chunk, or its first one was added, in
 *	jiffies; set under the queue's lock
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
 * @starved: @qp waits for send space
 * @joined: the association had another session when this one began
 * @owes_terminate: the Terminate has to be sent after close
 * @node: in the association's @sessions, until close; under its @lock
 * @pending: in a listener's @pending: the session has an Initiate but no
 *	endpoint yet; under siw_share.c's table lock
 * @bound: @stream is known; under @rx_mutex
 * @closed: the endpoint has released the session: its numbers are only watched
 *	until the streams may be used again; under @rx_mutex
 * @rx_seen: number of received chunks, modulo 2^16; under @rx_mutex
 * @rx_last: the peer's last message has been received: a Terminate or Reject;
 *	under @rx_mutex
 * @rx_last_ssn: its DDP-SSN; under @rx_mutex
 * @rx_reject: it is a Reject; under @rx_mutex
 * @tx_reject: our last message is a Reject
 * @tx_last: our last message has been sent
 * @first_tsn: the TSN of our first message, or a later one
 * @last_tsn: the TSN of our last message, or a later one
 */
struct siw_chan {
	struct siw_assoc *assoc;
	struct list_head node;
	struct list_head pending;
	bool bound;
	bool closed;
	u16 rx_seen;
	bool rx_last;
	u16 rx_last_ssn;
	bool rx_reject;
	bool tx_reject;
	bool tx_last;
	u32 first_tsn;
	u32 last_tsn;
	struct siw_cep *cep;
	struct siw_qp *qp;
	u16 stream;
	u16 tx_ssn;
	struct siw_ssn_window rx;
	struct siw_gap gap;
	struct sk_buff *partial;
	struct sk_buff_head ready;
	unsigned int ready_size;
	struct siw_ssn_window queue;
	bool stalled;
	bool qp_busy;
	unsigned int resume_at;
	unsigned long progress;
	int rx_err;
	int err;
	struct sk_buff_head early;
	bool accepted;
	bool asked;
	bool established;
	bool over;
	bool sent;
	bool starved;
	bool joined;
	bool owes_terminate;
};

/**
 * struct siw_share - what sessions of a shared association have in common
 * @hash: in siw_share.c's table of associations
 * @node: in its list of listeners
 * @listed: it is in this list
 * @local: our address
 * @remote: the peer's address and port
 * @device: of its first session; it may be gone, so it is only compared
 * @active: we have opened the association
 * @alone: further sessions wait until it is up
 * @afonly: the socket is for one address family alone; under dial_mutex
 * @dialed: the handshake has been started, or has failed
 * @used: a session has begun
 * @closed_to_new: no further session may use it, as it has ended, for example
 * @ending: the keeper ends the association; under the table lock
 * @n_live: number of sessions that are not closed; under the table lock
 * @idle_s: seconds that the association stays without a session; under the
 *	table lock
 * @idle: counted as an association without a session; under the table lock
 * @idle_end: when an association without sessions ends, in jiffies; under the
 *	table lock
 * @held: memory of the windows of its sessions; charged under @rx_mutex
 * @chan: sessions by stream, those included that are closed; of @max_streams
 *	elements; under @rx_mutex
 * @n_closed: number of sessions in @chan that are closed; written under
 *	@rx_mutex
 * @awaits_ack: send space starts the keeper: a closed session may wait for an
 *	acknowledgment, or for space for its Terminate
 * @has_gaps: a session holds chunks after a gap, or did so; under @rx_mutex
 * @lost: the association is lost; under @rx_mutex
 * @first: the session with which a listener's association is accepted
 * @spare: the session of an accepted association whose first Initiate has not
 *	arrived, or %NULL; under @rx_mutex
 * @blocked: the reader waits until the endpoint of this session takes chunks,
 *	or %NULL; under @rx_mutex
 * @blocked_since: since when, in jiffies
 * @partial: a message whose end has not been received, or %NULL; under
 *	@rx_mutex
 * @part_stream: stream of the last message that was read in parts
 * @dropping: the rest of a discarded message follows; under @rx_mutex
 * @keeper: work: ends closed sessions, then the association
 * @poll_ms: milliseconds between the keeper's attempts to send
 * @pending: of a listener: sessions that wait for an endpoint; under the table
 *	lock
 * @n_pending: their number; under the table lock
 * @takes_session: of a listener: a session is accepted before an association
 */
struct siw_share {
	struct hlist_node hash;
	struct list_head node;
	bool listed;
	struct sockaddr_storage local;
	struct sockaddr_storage remote;
	const struct ib_device *device;
	bool active;
	bool alone;
	bool afonly;
	bool dialed;
	bool used;
	bool closed_to_new;
	bool ending;
	unsigned int n_live;
	unsigned int idle_s;
	bool idle;
	unsigned long idle_end;
	struct siw_ssn_group held;
	struct siw_chan **chan;
	unsigned int n_closed;
	bool awaits_ack;
	bool has_gaps;
	bool lost;
	struct siw_chan *first;
	struct siw_chan *spare;
	struct siw_chan *blocked;
	unsigned long blocked_since;
	struct sk_buff *partial;
	u16 part_stream;
	bool dropping;
	struct delayed_work keeper;
	unsigned int poll_ms;
	struct list_head pending;
	unsigned int n_pending;
	bool takes_session;
};

/**
 * struct siw_assoc - an SCTP association
 * @chan: its only session or its listener; %NULL if @shared
 * @sessions: sessions with an endpoint, or those that get one; under @lock
 * @lock: @sessions, @cep and @qp of the channels; any context
 * @shared: it carries several sessions, or may do so once it is up; constant
 * @max_streams: streams that we offer each way, or that a listener offers
 * @n_streams: streams that both sides have each way; 0 until @up
 * @share: of a shared association, and of a listener
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
 * @end_err: of a shared association: negative errno that SCTP has reported with
 *	its end; under @rx_mutex
 * @seg_max: largest chunk without its header, in bytes
 * @local: our address
 * @remote: the peer's address
 * @peer: shared by all associations with @remote; %NULL until @up
 * @starved: a session waits for send space, or has done so
 * @space: entry in the socket's wait queue
 * @again: timer after an allocation failure, and for the end of a gap
 * @sock: the socket
 * @sk_state_change: callback of the socket before it was attached
 * @sk_data_ready: callback of the socket before it was attached
 * @net: its namespace, with a reference
 * @drain: after close: work until the peer has completed the shutdown
 * @deadline: after close: jiffies, extended if the peer acknowledges data
 * @latest: after close: jiffies, latest @deadline
 * @poll_ms: after close: milliseconds between polls
 * @unacked: after close: memory of unacknowledged data in bytes
 * @evicted: no longer counted in n_closing
 * @list: after close: in closing_assocs
 */
struct siw_assoc {
	struct siw_chan *chan;
	struct list_head sessions;
	bool shared;
	u16 max_streams;
	u16 n_streams;
	struct siw_share share;
	spinlock_t lock; /* sessions; cep and qp of the channels */
	struct mutex rx_mutex; /* to read from the socket */
	struct work_struct reader;
	bool listening;
	bool up;
	u32 peer_tag;
	bool restarted;
	int err;
	int end_err;
	unsigned int seg_max;
	struct sockaddr_storage local;
	struct sockaddr_storage remote;
	struct siw_remote *peer;

	bool starved;
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
extern struct workqueue_struct *siw_closing_wq;

/* siw_assoc.c */
void siw_remote_put(struct siw_remote *remote);
struct sctp_association *siw_assoc_sctp(const struct sock *sk);
unsigned int siw_assoc_frag_point(const struct sctp_association *peer);
void siw_assoc_learn_seg_max(struct siw_assoc *assoc,
			     const struct sctp_association *peer);
void siw_assoc_check_restart(struct siw_assoc *assoc,
			     const struct sctp_association *peer);
int siw_assoc_status(struct siw_assoc *assoc, const struct siw_chan *chan,
		     struct sock *sk);
u32 siw_assoc_tail_tsn(struct sock *sk);
bool siw_assoc_acked(struct sock *sk, u32 tsn);
bool siw_assoc_established(const struct sock *sk);
bool siw_assoc_backed_off(struct sock *sk);
void siw_assoc_again(struct siw_assoc *assoc, unsigned long when);
void siw_assoc_read(struct siw_assoc *assoc);
void siw_chan_wake(struct siw_chan *chan);

/* siw_sctp_rx.c */
enum iw_mpa_next siw_sctp_rx_setup(struct siw_cep *cep);
void siw_sctp_pump(struct siw_cep *cep);
void siw_sctp_read(struct work_struct *work);
void siw_chan_set_limit(struct siw_chan *chan, u32 limit);
void siw_chan_set_queue_limit(struct siw_chan *chan, u32 limit);
void siw_chan_end(struct siw_chan *chan, int err);
void siw_chan_free_chunks(struct siw_chan *chan);
bool siw_sctp_discard(struct socket *s);

/* siw_sctp.c */
bool siw_assoc_wake_listener(struct siw_assoc *assoc);
struct siw_chan *siw_chan_new(struct siw_assoc *assoc);
void siw_chan_unlist(struct siw_chan *chan);
bool siw_chan_owes(struct siw_chan *chan);
void siw_sctp_detach(struct siw_cep *cep);
void siw_chan_attach(struct siw_chan *chan, struct siw_cep *cep, u32 limit);
bool siw_chan_may_terminate(struct siw_chan *chan);
int siw_chan_terminate(struct siw_chan *chan);
struct siw_assoc *siw_assoc_make(struct net *net, int family,
				 unsigned int streams, bool shared);
int siw_assoc_dial(struct siw_assoc *assoc, struct sockaddr *laddr,
		   struct sockaddr *raddr, bool afonly, bool any_port);
void siw_assoc_report(struct siw_assoc *assoc, bool ends);
void siw_assoc_end(struct siw_assoc *assoc);

/* siw_share.c */
int siw_share_init_assoc(struct siw_assoc *assoc);
void siw_share_free_assoc(struct siw_assoc *assoc);
void siw_share_free_chunks(struct siw_assoc *assoc);
bool siw_share_owes(struct siw_assoc *assoc);
void siw_share_accepted(struct siw_assoc *assoc, struct ib_device *device);
int siw_share_join(struct siw_cep *cep, struct net *net, struct sockaddr *laddr,
		   struct sockaddr *raddr);
int siw_share_connect(struct siw_cep *cep, struct sockaddr *laddr,
		      struct sockaddr *raddr, bool afonly);
int siw_share_status(struct siw_cep *cep);
int siw_share_reopen(struct siw_cep *cep);
void siw_share_close(struct siw_chan *chan);
void siw_share_bind(struct siw_chan *chan, u16 stream);
void siw_share_unbind(struct siw_chan *chan);
void siw_share_offer(struct siw_chan *chan);
struct siw_chan *siw_share_take_pending(struct siw_assoc *listener);
void siw_share_listen(struct siw_assoc *listener,
		      const struct sockaddr *laddr);
void siw_share_stop_listen(struct siw_assoc *listener);
void siw_share_kick(struct siw_assoc *assoc);
int siw_share_init(void);
void siw_share_exit(void);

#endif /* _SIW_ASSOC_H */
