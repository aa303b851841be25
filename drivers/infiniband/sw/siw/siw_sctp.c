// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * SCTP as siw's lower layer protocol (RFC 5043).
 *
 * An association has a socket and channels. Each channel is a session, on the
 * pair of streams with one number. An association has one session and ends with
 * it, or it is shared (siw_share.c). It holds the socket and its namespace. An
 * endpoint has a channel.
 *
 * Each DATA chunk is a DDP segment or a session control message after a DDP-SSN
 * of 16 bits. An FPDU of MPA begins with its length, a chunk with its DDP-SSN.
 * So siw builds and parses segments as FPDUs. This layer exchanges the two
 * fields, adds the pad and CRC that the receive path removes, and omits them
 * when sending.
 *
 * Receive: callbacks only queue the work of the channel's endpoint, or the
 * association's (siw_sctp_rx.c).
 *
 * Send: a chunk is sent as a whole or not at all. SCTP does not call
 * sk_write_space() for freed space, but wakes the socket's wait queue, so the
 * association has an entry there. In a shared association, segments leave space
 * for the control messages of other sessions.
 *
 * Memory: the socket does not report when memory becomes available. So a timer
 * retries sending and receiving.
 *
 * End: the end of the last session closes the association. Closing a socket
 * with unread data would abort the association and lose our last messages. So a
 * work item drains a closed association until the peer has completed the
 * shutdown, or acknowledges no more of our data.
 */
#include <linux/delay.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/poll.h>
#include <linux/sched/mm.h>
#include <linux/skbuff.h>
#include <linux/timer.h>
#include <linux/unaligned.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <net/net_namespace.h>
#include <net/sctp/sctp.h>
#include <net/sctp/sm.h>
#include <net/sctp/structs.h>
#include <net/sock.h>
#include <rdma/ib_addr.h>

#include "siw.h"
#include "siw_assoc.h"
#include "siw_cm.h"
#include "siw_llp.h"
#include "siw_sctp.h"

/*
 * Memory for chunks after a gap, in bytes: of a session, and before its
 * Initiate. Linux receives at most 4096 chunks after a missing chunk: they
 * always fit if the packets have up to 1700 bytes.
 */
#define SIW_SCTP_HELD_MAX	(10 << 20)
#define SIW_SCTP_HELD_SETUP	(64 << 10)
/*
 * All sessions together: 1/SIW_SCTP_HELD_PART of the host's memory, and as much
 * again for their floors
 */
#define SIW_SCTP_HELD_PART	16
/*
 * Data in flight: 1/SIW_SCTP_SNDBUF_PART of the memory that our own receiver
 * would hold, which may need 2.3 times the sender's memory for a chunk. This is
 * also less than 32767 chunks.
 */
#define SIW_SCTP_SNDBUF_PART	4
/* Smallest backlog: SCTP refuses an association beyond the backlog */
#define SIW_SCTP_BACKLOG_MIN	1024

/* Milliseconds until a shutdown without the peer's answer becomes an abort */
#define SIW_SCTP_LINGER_MS	5000
/* Milliseconds between polls: the interval grows while no data arrives */
#define SIW_SCTP_POLL_MIN_MS	10U
#define SIW_SCTP_POLL_MAX_MS	320U
/* Milliseconds until the abort if the peer acknowledges data now and then */
#define SIW_SCTP_LINGER_MAX_MS	120000
/*
 * Limits of closing associations: in total, and for each remote address. Beyond
 * a limit, the association is aborted whose peer has not acknowledged data for
 * longest.
 */
#define SIW_SCTP_CLOSING_MAX	1024
#define SIW_SCTP_CLOSING_SHARE	256

struct workqueue_struct *siw_closing_wq;
static LIST_HEAD(closing_assocs);
static unsigned int n_closing;
/* The list, the counts, and the deadlines of listed associations */
static DEFINE_SPINLOCK(closing_lock);

/* ---- sockets */

static int set_option(struct socket *s, int name, void *value, unsigned int len)
{
	return s->ops->setsockopt(s, SOL_SCTP, name, KERNEL_SOCKPTR(value), len);
}

static int set_options(struct socket *s, unsigned int num)
{
	struct sctp_setadaptation adaptation = {
		.ssb_adaptation_ind = SIW_SCTP_ADAPTATION,
	};
	struct sctp_initmsg streams = {
		.sinit_num_ostreams = num,
		.sinit_max_instreams = num,
	};
	int on = 1;

	return set_option(s, SCTP_ADAPTATION_LAYER, &adaptation,
			  sizeof(adaptation)) ?:
	       set_option(s, SCTP_INITMSG, &streams, sizeof(streams)) ?:
	       set_option(s, SCTP_NODELAY, &on, sizeof(on)) ?:
	       set_option(s, SCTP_DISABLE_FRAGMENTS, &on, sizeof(on)) ?:
	       set_option(s, SCTP_RECVRCVINFO, &on, sizeof(on));
}

/* Like a program's socket, the socket holds a reference on its namespace */
static int siw_sctp_create(struct net *net, int family, unsigned int streams,
			   struct socket **s)
{
	int rv = __sock_create(net, family, SOCK_STREAM, IPPROTO_SCTP, s, 0);

	if (rv)
		return rv;
	rv = set_options(*s, streams);
	if (rv)
		sock_release(*s);
	return rv;
}

/**
 * siw_sctp_check - can SCTP be used in a namespace?
 * @net: the namespace
 *
 * Loads the module of SCTP.
 *
 * Return: 0 or a negative errno
 */
int siw_sctp_check(struct net *net)
{
	struct socket *s;
	int rv = siw_sctp_create(net, AF_INET, 1, &s);

	if (!rv)
		sock_release(s);
	return rv;
}

/* Starts the handshake; the socket's state change reports the result */
int siw_assoc_dial(struct siw_assoc *assoc, struct sockaddr *laddr,
		   struct sockaddr *raddr, bool afonly, bool any_port)
{
	struct socket *s = assoc->sock;
	int rv = siw_sock_bind_source(s, laddr, afonly, any_port);

	if (rv)
		return rv;
	rv = s->ops->connect(s, (struct sockaddr_unsized *)raddr,
			     rdma_addr_size(raddr), O_NONBLOCK);
	return rv == -EINPROGRESS ? 0 : rv;
}

static int siw_sctp_connect(struct siw_cep *cep, struct sockaddr *laddr,
			    struct sockaddr *raddr, bool afonly)
{
	struct siw_assoc *assoc = cep->chan->assoc;

	return assoc->shared ? siw_share_connect(cep, laddr, raddr, afonly) :
			       siw_assoc_dial(assoc, laddr, raddr, afonly,
					      cep->any_port);
}

static bool siw_sctp_early_data(const struct siw_cep *cep)
{
	return false;
}

/*
 * siw accepts at once, and itself limits the sessions without an Initiate. When
 * the backlog is full, TCP makes a connection wait, but SCTP refuses it.
 */
static int siw_sctp_listen(struct siw_cep *cep, struct sockaddr *laddr,
			   bool afonly, int ifindex, int backlog)
{
	struct siw_assoc *assoc = cep->chan->assoc;
	struct socket *s = assoc->sock;
	int rv;

	assoc->listening = true;
	rv = siw_sock_bind(s, laddr, afonly) ?:
	     s->ops->listen(s, max(backlog, SIW_SCTP_BACKLOG_MIN));
	if (!rv && assoc->max_streams > 1)
		siw_share_listen(assoc, laddr);
	return rv;
}

static int siw_sctp_status(struct siw_cep *cep)
{
	struct siw_chan *chan = cep->chan;
	struct siw_assoc *assoc = chan->assoc;
	struct sock *sk = assoc->sock->sk;
	int rv;

	if (assoc->shared)
		return siw_share_status(cep);
	/* The reader may be between the socket and the channel */
	mutex_lock(&assoc->rx_mutex);
	lock_sock(sk);
	rv = siw_assoc_status(assoc, chan, sk);
	release_sock(sk);
	/* A caller that looks for a last chunk now finds none or the end */
	if (rv && rv != -EINPROGRESS && assoc->up)
		siw_chan_end(chan, rv);
	mutex_unlock(&assoc->rx_mutex);
	return rv == -EINPROGRESS ? rv : chan->err ?: rv;
}

#ifdef CONFIG_DEBUG_LOCK_ALLOC
static struct lock_class_key own_key[2], own_slock_key[2], accepted_key[2];
#endif

static void classify_own(struct sock *sk)
{
#ifdef CONFIG_DEBUG_LOCK_ALLOC
	bool v6 = sk->sk_family == AF_INET6;

	sock_lock_init_class_and_name(sk, "slock-RDMA-SIW-SCTP",
				      &own_slock_key[v6],
				      "sk_lock-RDMA-SIW-SCTP", &own_key[v6]);
#endif
}

/*
 * A socket from accept() has the lock class of all sockets of its family. The
 * class of the spin lock is not changed: the lock may be held already.
 */
static void classify_accepted(struct sock *sk)
{
#ifdef CONFIG_DEBUG_LOCK_ALLOC
	lockdep_init_map(&sk->sk_lock.dep_map, "sk_lock-RDMA-SIW-SCTP-ACCEPTED",
			 &accepted_key[sk->sk_family == AF_INET6], 0);
#endif
}

static void siw_sctp_addrs(const struct siw_cep *cep,
			   struct sockaddr_storage *local,
			   struct sockaddr_storage *remote)
{
	const struct siw_chan *chan = READ_ONCE(cep->chan);
	const struct siw_assoc *assoc = chan ? chan->assoc : NULL;

	if (!assoc) {
		local->ss_family = 0;
		remote->ss_family = 0;
	} else if (smp_load_acquire(&assoc->up)) { /* pairs with learn_up() */
		*local = assoc->local;
		*remote = assoc->remote;
	} else {
		siw_sock_addrs(assoc->sock, local, remote);
	}
}

/* ---- callbacks */

/* Returns whether the socket is a listener's */
bool siw_assoc_wake_listener(struct siw_assoc *assoc)
{
	if (!assoc->listening)
		return false;
	spin_lock_bh(&assoc->lock);
	if (assoc->chan->cep)
		siw_cm_queue_work(assoc->chan->cep, SIW_CM_WORK_ACCEPT);
	spin_unlock_bh(&assoc->lock);
	return true;
}

static void siw_sctp_data_ready(struct sock *sk)
{
	struct siw_assoc *assoc;

	read_lock_bh(&sk->sk_callback_lock);
	assoc = siw_sk_to_assoc(sk);
	if (assoc && !siw_assoc_wake_listener(assoc)) {
		if (assoc->shared)
			siw_assoc_read(assoc);
		else
			siw_chan_wake(assoc->chan);
	}
	read_unlock_bh(&sk->sk_callback_lock);
}

static void report_state(struct siw_cep *cep, bool ends)
{
	if (ends && cep->qp)
		cep->qp->tx_ctx.tx_suspend = 1;
	siw_cm_queue_work(cep, SIW_CM_WORK_READ_MPAHDR);
	siw_cm_queue_work(cep, SIW_CM_WORK_CONNECTED);
	siw_cm_queue_work(cep, SIW_CM_WORK_PEER_CLOSE);
}

/*
 * To all sessions. If the association @ends, the QPs' sends are flushed instead
 * of failing singly.
 */
void siw_assoc_report(struct siw_assoc *assoc, bool ends)
{
	struct siw_chan *chan;

	spin_lock_bh(&assoc->lock);
	list_for_each_entry(chan, &assoc->sessions, node)
		if (chan->cep)
			report_state(chan->cep, ends);
	spin_unlock_bh(&assoc->lock);
}

/* SCTP holds the socket's lock */
static void siw_sctp_state_change(struct sock *sk)
{
	const struct sctp_association *peer = siw_assoc_sctp(sk);
	struct siw_assoc *assoc;
	bool ends;

	read_lock_bh(&sk->sk_callback_lock);
	assoc = siw_sk_to_assoc(sk);
	if (assoc && !siw_assoc_wake_listener(assoc)) {
		ends = !peer || peer->state == SCTP_STATE_CLOSED ||
		       peer->state > SCTP_STATE_ESTABLISHED;
		if (ends)
			WRITE_ONCE(assoc->share.closed_to_new, true);
		siw_assoc_report(assoc, ends);
		siw_assoc_read(assoc);
	}
	read_unlock_bh(&sk->sk_callback_lock);
}

/* May a segment be sent, or would control messages find no space then? */
static bool has_space(const struct siw_assoc *assoc)
{
	const struct sock *sk = assoc->sock->sk;
	u32 reserve = siw_ssn_reserve(READ_ONCE(sk->sk_sndbuf),
				      assoc->shared ?
				      READ_ONCE(assoc->n_streams) : 1,
				      READ_ONCE(assoc->seg_max));

	return sk_stream_wspace(sk) > (int)reserve;
}

/* Each waiting session is the first one in turn, while there is space */
static void start_sending(struct siw_assoc *assoc)
{
	struct siw_chan *chan;
	unsigned long flags;

	/* Pairs with await_space() */
	smp_mb();
	if (!READ_ONCE(assoc->starved))
		return;
	spin_lock_irqsave(&assoc->lock, flags);
	WRITE_ONCE(assoc->starved, false);
	/* A session that the loop misses sets it again */
	smp_mb();
	list_rotate_left(&assoc->sessions);
	list_for_each_entry(chan, &assoc->sessions, node) {
		if (!chan->qp || !READ_ONCE(chan->starved))
			continue;
		/* As in await_space(): space that is freed now is not missed */
		smp_store_mb(assoc->starved, true);
		if (!has_space(assoc))
			break;
		siw_sq_start(chan->qp);
	}
	spin_unlock_irqrestore(&assoc->lock, flags);
}

/* Under the lock of the socket's wait queue */
static int siw_sctp_space(struct wait_queue_entry *entry, unsigned int mode,
			  int sync, void *key)
{
	struct siw_assoc *assoc = container_of(entry, struct siw_assoc, space);

	if (!key || key_to_poll(key) & EPOLLOUT) {
		start_sending(assoc);
		if (READ_ONCE(assoc->share.awaits_ack))
			siw_share_kick(assoc);
	}
	return 0;
}

/* Endpoints whose QP was being modified look for chunks again */
static void wake_waiting(struct siw_assoc *assoc)
{
	struct siw_chan *chan;
	unsigned long flags;

	spin_lock_irqsave(&assoc->lock, flags);
	list_for_each_entry(chan, &assoc->sessions, node) {
		if (!chan->cep || !READ_ONCE(chan->qp_busy))
			continue;
		WRITE_ONCE(chan->qp_busy, false);
		siw_cm_queue_work(chan->cep, SIW_CM_WORK_READ_MPAHDR);
	}
	spin_unlock_irqrestore(&assoc->lock, flags);
}

static void try_again(struct timer_list *timer)
{
	struct siw_assoc *assoc = container_of(timer, struct siw_assoc, again);

	siw_assoc_read(assoc);
	wake_waiting(assoc);
	start_sending(assoc);
}

/* ---- associations */

/* From now on callbacks report to the association */
static void attach_sock(struct siw_assoc *assoc,
			const struct siw_assoc *listener)
{
	struct sock *sk = assoc->sock->sk;

	write_lock_bh(&sk->sk_callback_lock);
	/* An accepted socket has inherited our callbacks */
	assoc->sk_state_change = listener ? listener->sk_state_change :
					    sk->sk_state_change;
	assoc->sk_data_ready = listener ? listener->sk_data_ready :
					  sk->sk_data_ready;
	siw_sk_set_assoc(sk, assoc);
	sk->sk_state_change = siw_sctp_state_change;
	sk->sk_data_ready = siw_sctp_data_ready;
	write_unlock_bh(&sk->sk_callback_lock);
	add_wait_queue(sk_sleep(sk), &assoc->space);
}

/* From now on there are no callbacks, no timer and no reader */
static void detach_sock(struct siw_assoc *assoc)
{
	struct sock *sk = assoc->sock->sk;

	write_lock_bh(&sk->sk_callback_lock);
	sk->sk_state_change = assoc->sk_state_change;
	sk->sk_data_ready = assoc->sk_data_ready;
	sk->sk_user_data = NULL;
	write_unlock_bh(&sk->sk_callback_lock);
	remove_wait_queue(sk_sleep(sk), &assoc->space);
	timer_delete_sync(&assoc->again);
	cancel_work_sync(&assoc->reader);
}

/* How many sessions may the association have at the same time? */
static unsigned int sessions_max(const struct siw_assoc *assoc)
{
	if (!assoc->shared)
		return 1;
	return READ_ONCE(assoc->n_streams) ?: assoc->max_streams;
}

/* A new session; NULL without memory */
struct siw_chan *siw_chan_new(struct siw_assoc *assoc)
{
	struct siw_chan *chan = kzalloc_obj(*chan, GFP_NOIO);
	unsigned long flags;
	u32 floor;

	if (!chan)
		return NULL;
	chan->assoc = assoc;
	INIT_LIST_HEAD(&chan->pending);
	/* Sessions may always hold as much as their socket's receive buffer */
	floor = siw_ssn_floor(assoc->sock->sk->sk_rcvbuf, sessions_max(assoc));
	siw_ssn_init(&chan->rx, SIW_SCTP_HELD_SETUP, floor, &siw_held_pool);
	siw_ssn_init(&chan->queue, SIW_SCTP_READY_MAX, floor, &siw_held_pool);
	chan->queue.half = true;
	if (assoc->shared) {
		chan->rx.group = &assoc->share.held;
		chan->queue.group = &assoc->share.held;
	}
	skb_queue_head_init(&chan->ready);
	__skb_queue_head_init(&chan->early);
	spin_lock_irqsave(&assoc->lock, flags);
	if (assoc->peer) {
		chan->rx.share = &assoc->peer->held;
		chan->queue.share = &assoc->peer->held;
	}
	list_add_tail(&chan->node, &assoc->sessions);
	spin_unlock_irqrestore(&assoc->lock, flags);
	return chan;
}

/* The session is not reported to any more, and its chunks are dropped */
void siw_chan_unlist(struct siw_chan *chan)
{
	spin_lock_irq(&chan->assoc->lock);
	list_del_init(&chan->node);
	spin_unlock_irq(&chan->assoc->lock);
	siw_chan_free_chunks(chan);
}

/* Sets up the sessions of an association. Returns 0 or -ENOMEM. */
static int init_chans(struct siw_assoc *assoc, bool accepted)
{
	struct siw_chan *chan;

	if (assoc->shared && siw_share_init_assoc(assoc))
		return -ENOMEM;
	if (assoc->shared && !accepted)
		return 0;
	chan = siw_chan_new(assoc);
	if (!chan)
		return -ENOMEM;
	chan->accepted = accepted;
	if (assoc->shared) {
		assoc->share.first = chan;
		assoc->share.spare = chan;
	} else {
		assoc->chan = chan;
	}
	return 0;
}

/* To be called after the socket is released */
static void free_assoc(struct siw_assoc *assoc)
{
	put_net(assoc->net);
	siw_remote_put(assoc->peer);
	kfree(assoc->chan);
	siw_share_free_assoc(assoc);
	kfree(assoc);
}

/* Under the socket's lock */
static void set_sndbuf(struct siw_assoc *assoc)
{
	struct sock *sk = assoc->sock->sk;

	sk->sk_sndbuf = siw_ssn_sndbuf(sk->sk_sndbuf, sessions_max(assoc),
				       siw_held_max / SIW_SCTP_SNDBUF_PART);
	/* Without memory it would be made smaller, and SCTP never enlarges it */
	sk->sk_userlocks |= SOCK_SNDBUF_LOCK;
}

/*
 * Makes the association of a socket, which the association takes over on
 * success: one that @listener has accepted, or one without a connection if it
 * is %NULL. Returns NULL if there is no memory.
 */
static struct siw_assoc *new_assoc(struct socket *s,
				   const struct siw_assoc *listener,
				   unsigned int streams, bool shared)
{
	struct siw_assoc *assoc = kzalloc_obj(*assoc);
	struct sock *sk = s->sk;

	if (!assoc)
		return NULL;
	INIT_LIST_HEAD(&assoc->sessions);
	assoc->max_streams = streams;
	spin_lock_init(&assoc->lock);
	mutex_init(&assoc->rx_mutex);
	INIT_WORK(&assoc->reader, siw_sctp_read);
	init_waitqueue_func_entry(&assoc->space, siw_sctp_space);
	timer_setup(&assoc->again, try_again, 0);
	assoc->sock = s;
	/* The listener's socket still holds a reference */
	assoc->net = get_net(sock_net(sk));
	lock_sock(sk);
	siw_assoc_status(assoc, NULL, sk);
	assoc->shared = listener ? assoc->n_streams > 1 : shared;
	set_sndbuf(assoc);
	release_sock(sk);
	if (init_chans(assoc, listener)) {
		kfree(assoc->share.spare);
		free_assoc(assoc);
		return NULL;
	}
	attach_sock(assoc, listener);
	return assoc;
}

/* An association without a connection */
struct siw_assoc *siw_assoc_make(struct net *net, int family,
				 unsigned int streams, bool shared)
{
	struct siw_assoc *assoc;
	struct socket *s;
	int rv = siw_sctp_create(net, family, streams, &s);

	if (rv)
		return ERR_PTR(rv);
	classify_own(s->sk);
	assoc = new_assoc(s, NULL, streams, shared);
	if (assoc)
		return assoc;
	sock_release(s);
	return ERR_PTR(-ENOMEM);
}

/* From now on the session reports to an endpoint */
void siw_chan_attach(struct siw_chan *chan, struct siw_cep *cep, u32 limit)
{
	siw_chan_set_limit(chan, limit);
	siw_cep_get(cep);
	spin_lock_irq(&chan->assoc->lock);
	chan->cep = cep;
	spin_unlock_irq(&chan->assoc->lock);
}

/* Segments may directly follow an Accept, which may get lost */
static void use_assoc(struct siw_cep *cep, struct siw_assoc *assoc)
{
	WRITE_ONCE(cep->chan, assoc->chan);
	siw_chan_attach(cep->chan, cep, siw_held_max);
}

static int siw_sctp_open(struct siw_cep *cep, struct net *net, int family)
{
	unsigned int streams = cep->mpa_config ?
			       iw_mpa_config_streams(cep->mpa_config) : 1;
	struct siw_assoc *assoc = siw_assoc_make(net, family, streams, false);

	if (IS_ERR(assoc))
		return PTR_ERR(assoc);
	/* The side that has opened an association is the first to end it */
	if (cep->mpa_config)
		assoc->share.idle_s = 2 * iw_mpa_config_idle(cep->mpa_config);
	use_assoc(cep, assoc);
	return 0;
}

/* Is there a connection to accept? Without one, sctp_accept() sleeps a tick */
static bool may_accept(struct sock *sk)
{
	const struct sctp_association *peer;

	lock_sock(sk);
	peer = siw_assoc_sctp(sk);
	release_sock(sk);
	return peer;
}

/* Accepts a further session of an association */
static int accept_session(struct siw_cep *cep, struct siw_cep **new_cep,
			  struct siw_chan *chan)
{
	*new_cep = siw_cep_accepted(cep);
	if (*new_cep)
		(*new_cep)->chan = chan;
	else
		siw_share_close(chan);
	return 0;
}

static int accept_assoc(struct siw_cep *cep, struct siw_cep **new_cep)
{
	struct siw_assoc *listener = cep->chan->assoc, *assoc;
	struct siw_chan *chan;
	struct socket *s;
	int rv;

	if (!may_accept(listener->sock->sk))
		return -EAGAIN;
	rv = kernel_accept(listener->sock, &s, O_NONBLOCK);
	if (rv)
		return rv;
	classify_accepted(s->sk);
	*new_cep = siw_cep_accepted(cep);
	if (!*new_cep) {
		siw_sock_abort(s);
		return 0;
	}
	assoc = new_assoc(s, listener, listener->max_streams, false);
	if (!assoc) {
		siw_cep_put(*new_cep);
		*new_cep = NULL;
		siw_sock_abort(s);
		return 0;
	}
	chan = assoc->chan ?: assoc->share.first;
	assoc->share.idle_s = listener->share.idle_s;
	if (assoc->shared)
		siw_share_accepted(assoc, &cep->sdev->base_dev);
	(*new_cep)->chan = chan;
	return 0;
}

/* Associations and further sessions in turn: neither waits for the other ones */
static int siw_sctp_accept(struct siw_cep *cep, struct siw_cep **new_cep)
{
	struct siw_assoc *listener = cep->chan->assoc;
	struct siw_chan *chan = NULL;
	int rv = -EAGAIN;

	listener->share.takes_session = !listener->share.takes_session;
	if (!listener->share.takes_session)
		rv = accept_assoc(cep, new_cep);
	if (rv)
		chan = siw_share_take_pending(listener);
	if (chan)
		return accept_session(cep, new_cep, chan);
	return listener->share.takes_session ? accept_assoc(cep, new_cep) : rv;
}

/* The endpoint reads what has arrived before */
static void siw_sctp_adopt(struct siw_cep *cep)
{
	siw_chan_attach(cep->chan, cep, SIW_SCTP_HELD_SETUP);
	if (cep->chan->assoc->shared)
		siw_assoc_read(cep->chan->assoc);
}

/* siw_sctp_close() follows */
void siw_sctp_detach(struct siw_cep *cep)
{
	struct siw_chan *chan = cep->chan;
	bool attached;

	if (!chan)
		return;
	spin_lock_irq(&chan->assoc->lock);
	attached = chan->cep;
	chan->cep = NULL;
	chan->qp = NULL;
	spin_unlock_irq(&chan->assoc->lock);
	if (attached)
		siw_cep_put(cep);
}

static void siw_sctp_start_tx(struct siw_cep *cep, struct siw_qp *qp)
{
	qp->attrs.sk = cep->chan->assoc->sock;
	qp->chan = cep->chan;
	qp->connected = true;
}

static void siw_sctp_start_rx(struct siw_cep *cep, struct siw_qp *qp)
{
	struct siw_chan *chan = cep->chan;

	siw_sctp_start_tx(cep, qp);
	WRITE_ONCE(chan->established, true);
	siw_chan_set_limit(chan, siw_held_max);
	siw_chan_set_queue_limit(chan, siw_held_max);
	spin_lock_irq(&chan->assoc->lock);
	chan->qp = qp;
	spin_unlock_irq(&chan->assoc->lock);
}

static void siw_sctp_kick_rx(struct siw_cep *cep)
{
	siw_cm_queue_work(cep, SIW_CM_WORK_READ_MPAHDR);
}

/* ---- send */

static int send_message(const struct siw_chan *chan, u32 ppid, struct kvec *iov,
			size_t num, size_t len)
{
	union {
		struct cmsghdr hdr;
		u8 room[CMSG_SPACE(sizeof(struct sctp_sndinfo))];
	} control = {};
	struct msghdr msg = {
		.msg_control = &control,
		.msg_controllen = sizeof(control),
		.msg_flags = MSG_DONTWAIT | MSG_NOSIGNAL,
	};
	struct sctp_sndinfo *info = CMSG_DATA(&control.hdr);
	unsigned int flags;
	int rv;

	control.hdr.cmsg_level = IPPROTO_SCTP;
	control.hdr.cmsg_type = SCTP_SNDINFO;
	control.hdr.cmsg_len = CMSG_LEN(sizeof(*info));
	info->snd_sid = chan->stream;
	info->snd_flags = SCTP_UNORDERED;
	info->snd_ppid = (__force u32)htonl(ppid);
	if (!chan->assoc->shared)
		return kernel_sendmsg(chan->assoc->sock, &msg, iov, num, len);
	/* Reclaim may need another session, which waits for the socket's lock */
	flags = memalloc_noio_save();
	rv = kernel_sendmsg(chan->assoc->sock, &msg, iov, num, len);
	memalloc_noio_restore(flags);
	return rv;
}

/*
 * Packets are so small that SCTP or IP must fragment: SCTP does (RFC 5043
 * section 9). Segments have the smallest size from now on.
 */
static void allow_fragments(struct siw_assoc *assoc)
{
	int off = 0;

	set_option(assoc->sock, SCTP_DISABLE_FRAGMENTS, &off, sizeof(off));
	WRITE_ONCE(assoc->share.closed_to_new, true);
	WRITE_ONCE(assoc->seg_max, SIW_SCTP_SEG_MIN);
}

/*
 * Sends a whole chunk, whose first two bytes are its DDP-SSN, or nothing. The
 * endpoint (setup), tx_mutex (segments) or the drain work serialises callers.
 */
static int send_chunk(struct siw_chan *chan, u32 ppid, struct kvec *iov,
		      size_t num, size_t len)
{
	int rv;

	put_unaligned_be16(chan->tx_ssn, iov[0].iov_base);
	rv = send_message(chan, ppid, iov, num, len);
	if (rv == -EMSGSIZE && len <= SIW_SCTP_SEG_MIN) {
		allow_fragments(chan->assoc);
		rv = send_message(chan, ppid, iov, num, len);
	}
	if (rv < 0)
		return rv;
	chan->tx_ssn++;
	if (!chan->sent && chan->assoc->shared)
		chan->first_tsn = siw_assoc_tail_tsn(chan->assoc->sock->sk);
	chan->sent = true;
	return rv == len ? 0 : -EIO;
}

static int send_control(struct siw_chan *chan, const void *msg, size_t len)
{
	u8 buf[SIW_SCTP_SSN_LEN + IW_MPA_FRAME_MAX];
	struct kvec iov = {
		.iov_base = buf,
		.iov_len = SIW_SCTP_SSN_LEN + len,
	};

	if (iov.iov_len > sizeof(buf))
		return -EMSGSIZE;
	memcpy(buf + SIW_SCTP_SSN_LEN, msg, len);
	return send_chunk(chan, SIW_SCTP_PPID_CONTROL, &iov, 1, iov.iov_len);
}

static int siw_sctp_send(struct siw_cep *cep, const void *msg, size_t len)
{
	bool reject = iw_mpa_sctp_is_reject(msg, len);
	struct siw_chan *chan = cep->chan;
	int rv;

	/* The peer's next Initiate may follow as soon as it is sent */
	if (reject)
		WRITE_ONCE(chan->tx_reject, true);
	rv = send_control(chan, msg, len);
	if (reject && rv)
		WRITE_ONCE(chan->tx_reject, false);
	/* A Reject is the first message of this direction */
	if (reject && !rv) {
		chan->tx_last = true;
		chan->last_tsn = chan->first_tsn;
	}
	return rv;
}

int siw_chan_terminate(struct siw_chan *chan)
{
	u8 msg[IW_MPA_SCTP_TERMINATE_LEN];
	int rv;

	iw_mpa_sctp_build_terminate(msg);
	rv = send_control(chan, msg, sizeof(msg));
	if (!rv && chan->assoc->shared) {
		chan->tx_last = true;
		chan->last_tsn = siw_assoc_tail_tsn(chan->assoc->sock->sk);
	}
	return rv;
}

/* The session ends during setup: siw_sctp_close() follows */
static void siw_sctp_end(struct siw_cep *cep)
{
	if (cep->chan)
		cep->chan->owes_terminate = true;
}

/*
 * Takes the lock: otherwise it would not wait while another thread owns the
 * socket to receive, which is when SCTP leaves a new path MTU pending.
 */
static bool needs_fragments(struct sock *sk, size_t len)
{
	bool slow = lock_sock_fast(sk);
	const struct sctp_association *peer = siw_assoc_sctp(sk);
	bool needs = peer && len > siw_assoc_frag_point(peer);

	unlock_sock_fast(sk, slow);
	return needs;
}

/* RDMAP's Terminate, which is not sent again, may use the reserved space */
static bool is_rdma_terminate(const struct kvec *iov)
{
	struct iwarp_ctrl ctrl;

	memcpy(&ctrl, iov[0].iov_base, sizeof(ctrl));
	return __rdmap_get_opcode(&ctrl) == RDMAP_TERMINATE;
}

/* Space that is freed from now on starts the QP: see start_sending() */
static void await_space(struct siw_chan *chan)
{
	/* start_sending() clears the latter before it looks at the former */
	smp_store_mb(chan->starved, true);
	/* Before the caller looks for space, see start_sending() */
	smp_store_mb(chan->assoc->starved, true);
}

/**
 * siw_sctp_send_segment - send a DDP segment
 * @chan: the session
 * @iov: the segment as an FPDU without pad and CRC: it begins with the length
 * @num: number of elements of @iov
 * @len: bytes in @iov
 *
 * Return: 0, -EAGAIN if siw_sq_start() follows, -EMSGSIZE if
 * siw_sctp_segment_max() has become smaller, or another negative errno. After
 * an error nothing has been sent.
 */
int siw_sctp_send_segment(struct siw_chan *chan, struct kvec *iov, size_t num,
			  size_t len)
{
	struct siw_assoc *assoc = chan->assoc;
	struct socket *s = assoc->sock;
	/* The caller may send this again and needs the length then */
	u16 length = get_unaligned_be16(iov[0].iov_base);
	int rv;

	if (!assoc->shared) {
		await_space(chan);
	} else if (!is_rdma_terminate(iov) && !has_space(assoc)) {
		await_space(chan);
		/* The reserve leaves something under way: space will be freed */
		if (!has_space(assoc))
			return -EAGAIN;
	}
	if (len > SIW_SCTP_SEG_MIN && needs_fragments(s->sk, len))
		return -EMSGSIZE;
	rv = send_chunk(chan, SIW_SCTP_PPID_SEGMENT, iov, num, len);
	put_unaligned_be16(length, iov[0].iov_base);
	if (!rv)
		WRITE_ONCE(chan->starved, false);
	/* If nothing is under way, no space will be freed */
	if (rv == -ENOMEM ||
	    (rv == -EAGAIN &&
	     (assoc->shared || !READ_ONCE(s->sk->sk_wmem_queued)))) {
		await_space(chan);
		siw_assoc_again(assoc, jiffies + SIW_SCTP_AGAIN);
		rv = -EAGAIN;
	}
	return rv;
}

/**
 * siw_sctp_segment_max - largest segment that SCTP need not fragment
 * @chan: the session
 * @refresh: the path may have changed
 *
 * May sleep if @refresh.
 *
 * Return: number of bytes, with the DDP-SSN
 */
unsigned int siw_sctp_segment_max(struct siw_chan *chan, bool refresh)
{
	struct siw_assoc *assoc = chan->assoc;
	const struct sctp_association *peer;
	struct sock *sk = assoc->sock->sk;

	if (refresh) {
		lock_sock(sk);
		peer = siw_assoc_sctp(sk);
		if (peer)
			siw_assoc_learn_seg_max(assoc, peer);
		release_sock(sk);
	}
	return READ_ONCE(assoc->seg_max);
}

/* ---- end */

/* Is the association shut down, or does the peer acknowledge no more data? */
static bool is_drained(struct siw_assoc *assoc, struct sock *sk)
{
	const struct sctp_association *peer;
	int unacked = 0;
	bool gone;

	lock_sock(sk);
	peer = siw_assoc_sctp(sk);
	gone = !peer || peer->state == SCTP_STATE_CLOSED || assoc->restarted;
	if (peer)
		unacked = peer->sndbuf_used;
	release_sock(sk);
	spin_lock_bh(&closing_lock);
	if (unacked < assoc->unacked)
		assoc->deadline = jiffies +
				  msecs_to_jiffies(SIW_SCTP_LINGER_MS);
	assoc->unacked = unacked;
	gone = gone || time_after_eq(jiffies, assoc->deadline) ||
	       time_after_eq(jiffies, assoc->latest);
	spin_unlock_bh(&closing_lock);
	return gone;
}

/*
 * A control message must not overtake the one before it (RFC 5043 section 6.6),
 * which is our first chunk: an Initiate or an Accept. This chunk is never
 * fragmented: the ULP has at most 255 bytes of private data, and SCTP uses no
 * path MTU below 512.
 */
bool siw_chan_may_terminate(struct siw_chan *chan)
{
	struct siw_assoc *assoc = chan->assoc;
	struct sock *sk = assoc->sock->sk;
	const struct sctp_association *peer;
	bool may = !chan->sent;

	lock_sock(sk);
	peer = siw_assoc_sctp(sk);
	if (peer) {
		may = may || (assoc->shared ?
			      siw_ssn_is_acked(chan->first_tsn,
					       peer->ctsn_ack_point) :
			      peer->ctsn_ack_point + 1 != peer->c.initial_tsn);
		siw_assoc_check_restart(assoc, peer);
	}
	release_sock(sk);
	return may && !assoc->restarted;
}

/* Under closing_lock, at most once for an association */
static void uncount_closing(struct siw_assoc *assoc)
{
	if (assoc->evicted)
		return;
	assoc->evicted = true;
	n_closing--;
	assoc->peer->n_closing--;
}

/*
 * Without the Terminate, a stream of a shared association would stay in use: it
 * remains due after any error while the association lasts.
 */
static bool may_retry(struct siw_assoc *assoc, int err)
{
	struct sock *sk = assoc->sock->sk;
	bool up;

	if (err == -EAGAIN || err == -ENOMEM)
		return true;
	if (!err || !assoc->shared)
		return false;
	lock_sock(sk);
	up = siw_assoc_established(sk);
	release_sock(sk);
	return up;
}

/* Sends a Terminate if it is due and possible. Returns true if it still is due. */
bool siw_chan_owes(struct siw_chan *chan)
{
	if (chan->owes_terminate && siw_chan_may_terminate(chan))
		chan->owes_terminate = may_retry(chan->assoc,
						 siw_chan_terminate(chan));
	return chan->owes_terminate;
}

static bool owe_terminates(struct siw_assoc *assoc)
{
	return assoc->shared ? siw_share_owes(assoc) :
			       siw_chan_owes(assoc->chan);
}

static void drain_some(struct siw_assoc *assoc)
{
	struct socket *s = assoc->sock;

	if (!owe_terminates(assoc))
		kernel_sock_shutdown(s, SHUT_WR);
	/* Limits the CPU time for a thousand peers that answer no shutdown */
	assoc->poll_ms = siw_sctp_discard(s) ? SIW_SCTP_POLL_MIN_MS :
			 min(2 * assoc->poll_ms, SIW_SCTP_POLL_MAX_MS);
	if (!is_drained(assoc, s->sk)) {
		queue_delayed_work(siw_closing_wq, &assoc->drain,
				   msecs_to_jiffies(assoc->poll_ms));
		return;
	}
	siw_sock_abort(s);
	spin_lock_bh(&closing_lock);
	list_del(&assoc->list);
	uncount_closing(assoc);
	spin_unlock_bh(&closing_lock);
	free_assoc(assoc);
}

/* Reclaim must not wait for storage that an association connects */
static void drain(struct work_struct *work)
{
	struct siw_assoc *assoc = container_of(to_delayed_work(work),
					       struct siw_assoc, drain);
	unsigned int flags = memalloc_noio_save();

	drain_some(assoc);
	memalloc_noio_restore(flags);
}

/*
 * Makes room for another association with @peer, or with any if @peer is %NULL.
 * The drain work of the evicted association ends it soon.
 */
static void evict_closing(const struct siw_remote *peer)
{
	struct siw_assoc *assoc, *victim = NULL;

	list_for_each_entry(assoc, &closing_assocs, list) {
		if (assoc->evicted || (peer && assoc->peer != peer))
			continue;
		if (!victim || time_before(assoc->deadline, victim->deadline))
			victim = assoc;
	}
	if (!victim)
		return;
	victim->latest = jiffies;
	uncount_closing(victim);
}

static void add_closing(struct siw_assoc *assoc)
{
	spin_lock_bh(&closing_lock);
	if (assoc->peer->n_closing == SIW_SCTP_CLOSING_SHARE)
		evict_closing(assoc->peer);
	else if (n_closing == SIW_SCTP_CLOSING_MAX)
		evict_closing(NULL);
	n_closing++;
	assoc->peer->n_closing++;
	list_add(&assoc->list, &closing_assocs);
	spin_unlock_bh(&closing_lock);
}

/* Is there anything to wait for before the association can be aborted? */
static bool has_to_drain(struct siw_assoc *assoc)
{
	struct sock *sk = assoc->sock->sk;

	if (!assoc->up || !assoc->peer)
		return false;
	/* The peer may have restarted meanwhile */
	lock_sock(sk);
	siw_assoc_status(assoc, NULL, sk);
	release_sock(sk);
	if (assoc->restarted)
		return false;
	return assoc->shared ? assoc->share.used :
	       assoc->chan->sent || assoc->chan->owes_terminate;
}

static void abort_assoc(struct siw_assoc *assoc)
{
	siw_sock_abort(assoc->sock);
	free_assoc(assoc);
}

static void free_chunks(struct siw_assoc *assoc)
{
	if (assoc->shared)
		siw_share_free_chunks(assoc);
	else
		siw_chan_free_chunks(assoc->chan);
}

/* No session is in use any more */
void siw_assoc_end(struct siw_assoc *assoc)
{
	detach_sock(assoc);
	/* It may have been queued again before that */
	if (assoc->shared)
		cancel_delayed_work(&assoc->share.keeper);
	free_chunks(assoc);
	if (!has_to_drain(assoc)) {
		abort_assoc(assoc);
		return;
	}
	assoc->deadline = jiffies + msecs_to_jiffies(SIW_SCTP_LINGER_MS);
	assoc->latest = jiffies + msecs_to_jiffies(SIW_SCTP_LINGER_MAX_MS);
	assoc->poll_ms = SIW_SCTP_POLL_MIN_MS / 2;
	INIT_DELAYED_WORK(&assoc->drain, drain);
	add_closing(assoc);
	queue_delayed_work(siw_closing_wq, &assoc->drain, 0);
}

static void siw_sctp_close(struct siw_cep *cep)
{
	struct siw_chan *chan = cep->chan;

	if (!chan)
		return;
	WRITE_ONCE(cep->chan, NULL);
	if (chan->established && !chan->over)
		chan->owes_terminate = true;
	if (chan->assoc->shared) {
		siw_share_close(chan);
		return;
	}
	if (chan->assoc->listening)
		siw_share_stop_listen(chan->assoc);
	siw_assoc_end(chan->assoc);
}

/* The old association has no other session: it is aborted */
static int siw_sctp_reopen(struct siw_cep *cep, int family)
{
	struct siw_assoc *old = cep->chan->assoc;
	struct siw_assoc *fresh;

	if (old->shared)
		return siw_share_reopen(cep);
	fresh = siw_assoc_make(old->net, family, 1, false);
	if (IS_ERR(fresh))
		return PTR_ERR(fresh);
	siw_sctp_detach(cep);
	WRITE_ONCE(cep->chan, NULL);
	detach_sock(old);
	siw_chan_free_chunks(old->chan);
	abort_assoc(old);
	use_assoc(cep, fresh);
	return 0;
}

const struct siw_llp_ops siw_llp_sctp = {
	.name		= "sctp",
	.join		= siw_share_join,
	.open		= siw_sctp_open,
	.reopen		= siw_sctp_reopen,
	.connect	= siw_sctp_connect,
	.status		= siw_sctp_status,
	.early_data	= siw_sctp_early_data,
	.listen		= siw_sctp_listen,
	.accept		= siw_sctp_accept,
	.adopt		= siw_sctp_adopt,
	.end		= siw_sctp_end,
	.send		= siw_sctp_send,
	.start_tx	= siw_sctp_start_tx,
	.start_rx	= siw_sctp_start_rx,
	.rx_setup	= siw_sctp_rx_setup,
	.pump		= siw_sctp_pump,
	.kick_rx	= siw_sctp_kick_rx,
	.addrs		= siw_sctp_addrs,
	.detach		= siw_sctp_detach,
	.close		= siw_sctp_close,
};

/**
 * siw_sctp_init - prepare for associations
 *
 * Return: 0 or a negative errno
 */
int __init siw_sctp_init(void)
{
	siw_held_pool.max = min_t(unsigned long,
				  totalram_pages() / SIW_SCTP_HELD_PART,
				  LONG_MAX >> PAGE_SHIFT) << PAGE_SHIFT;
	siw_held_max = min_t(long, SIW_SCTP_HELD_MAX,
			     siw_ssn_share_max(&siw_held_pool));
	/* Memory may be reclaimed over a connection: to storage, for example */
	siw_sctp_reader_wq = alloc_workqueue("siw_sctp_reader_wq",
					     WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	siw_closing_wq = alloc_workqueue("siw_sctp_wq",
					 WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	if (!siw_sctp_reader_wq || !siw_closing_wq)
		return -ENOMEM;
	return siw_share_init();
}

/**
 * siw_sctp_exit - abort the associations that are still closing
 *
 * No endpoint is left.
 */
void siw_sctp_exit(void)
{
	struct siw_assoc *assoc;

	if (siw_closing_wq)
		siw_share_exit();
	/* The work item of each is queued or running and now ends soon */
	while (!list_empty(&closing_assocs)) {
		spin_lock_bh(&closing_lock);
		list_for_each_entry(assoc, &closing_assocs, list)
			assoc->latest = jiffies;
		spin_unlock_bh(&closing_lock);
		msleep(SIW_SCTP_POLL_MIN_MS);
	}
	if (siw_closing_wq)
		destroy_workqueue(siw_closing_wq);
	if (siw_sctp_reader_wq)
		destroy_workqueue(siw_sctp_reader_wq);
}
