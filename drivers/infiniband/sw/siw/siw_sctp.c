// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * SCTP as siw's lower layer protocol (RFC 5043).
 *
 * An association carries one session on its one stream. Each DATA chunk is a
 * DDP segment or a session control message after a DDP-SSN of 16 bits. An FPDU
 * of MPA begins with its length, a chunk with its DDP-SSN. So siw builds and
 * parses segments as FPDUs. This layer exchanges the two fields, adds the pad
 * and CRC that the receive path removes, and omits them when sending.
 *
 * Receive: callbacks only queue the endpoint's work, which is the only reader
 * of the socket and runs with the endpoint in use (siw_sctp_rx.c).
 *
 * Send: a chunk is sent as a whole or not at all. SCTP does not call
 * sk_write_space() for freed space, but wakes the socket's wait queue, so the
 * association has an entry there.
 *
 * Memory: the socket does not report when memory becomes available. So a timer
 * retries sending and receiving.
 *
 * End: closing a socket with unread data would abort the association and lose
 * our last messages. So a work item drains a closed association until the peer
 * has completed the shutdown, or acknowledges no more of our data.
 */
#include <linux/delay.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/poll.h>
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
/* All sessions together: 1/SIW_SCTP_HELD_PART of the host's memory */
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

static struct workqueue_struct *closing_wq;
static LIST_HEAD(closing_assocs);
static unsigned int n_closing;
/* The list, the counts, and the deadlines of listed associations */
static DEFINE_SPINLOCK(closing_lock);

/* ---- sockets */

static int siw_sctp_status(struct siw_cep *cep)
{
	struct sock *sk = cep->assoc->sock->sk;
	int rv;

	lock_sock(sk);
	rv = siw_assoc_status(cep->assoc, sk);
	release_sock(sk);
	return rv;
}

static int set_option(struct socket *s, int name, void *value, unsigned int len)
{
	return s->ops->setsockopt(s, SOL_SCTP, name, KERNEL_SOCKPTR(value), len);
}

static int set_options(struct socket *s)
{
	struct sctp_setadaptation adaptation = {
		.ssb_adaptation_ind = SIW_SCTP_ADAPTATION,
	};
	struct sctp_initmsg streams = {
		.sinit_num_ostreams = 1,
		.sinit_max_instreams = 1,
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
static int siw_sctp_create(struct net *net, int family, struct socket **s)
{
	int rv = __sock_create(net, family, SOCK_STREAM, IPPROTO_SCTP, s, 0);

	if (rv)
		return rv;
	rv = set_options(*s);
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
	int rv = siw_sctp_create(net, AF_INET, &s);

	if (!rv)
		sock_release(s);
	return rv;
}

static int siw_sctp_connect(struct siw_cep *cep, struct sockaddr *laddr,
			    struct sockaddr *raddr, bool afonly)
{
	struct socket *s = cep->assoc->sock;
	int rv = siw_sock_bind_source(s, laddr, afonly);

	if (rv)
		return rv;
	rv = s->ops->connect(s, (struct sockaddr_unsized *)raddr,
			     rdma_addr_size(raddr), O_NONBLOCK);
	return rv == -EINPROGRESS ? 0 : rv;
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
	struct socket *s = cep->assoc->sock;

	return siw_sock_bind(s, laddr, afonly) ?:
	       s->ops->listen(s, max(backlog, SIW_SCTP_BACKLOG_MIN));
}

#ifdef CONFIG_DEBUG_LOCK_ALLOC
static struct lock_class_key accepted_key[2];
#endif

/*
 * A socket from accept() has the lock class of all sockets of its family. The
 * class of the spin lock is not changed: the lock may be held already.
 */
static void classify_accepted(struct sock *sk)
{
#ifdef CONFIG_DEBUG_LOCK_ALLOC
	lockdep_init_map(&sk->sk_lock.dep_map, "sk_lock-RDMA-SIW-SCTP",
			 &accepted_key[sk->sk_family == AF_INET6], 0);
#endif
}

static void siw_sctp_addrs(const struct siw_cep *cep,
			   struct sockaddr_storage *local,
			   struct sockaddr_storage *remote)
{
	const struct siw_assoc *assoc = READ_ONCE(cep->assoc);

	if (!assoc) {
		local->ss_family = 0;
		remote->ss_family = 0;
	} else if (assoc->up) {
		*local = assoc->local;
		*remote = assoc->remote;
	} else {
		siw_sock_addrs(assoc->sock, local, remote);
	}
}

/* ---- callbacks */

/* If the peer @ends, the QP's sends are flushed instead of failing singly */
static void queue_news(struct sock *sk, bool state_changed, bool ends)
{
	struct siw_cep *cep;

	read_lock_bh(&sk->sk_callback_lock);
	cep = sk_to_cep(sk);
	if (!cep)
		goto out;
	if (READ_ONCE(cep->state) == SIW_EPSTATE_LISTENING) {
		siw_cm_queue_work(cep, SIW_CM_WORK_ACCEPT);
		goto out;
	}
	if (ends && cep->qp)
		cep->qp->tx_ctx.tx_suspend = 1;
	siw_cm_queue_work(cep, SIW_CM_WORK_READ_MPAHDR);
	if (state_changed) {
		siw_cm_queue_work(cep, SIW_CM_WORK_CONNECTED);
		siw_cm_queue_work(cep, SIW_CM_WORK_PEER_CLOSE);
	}
out:
	read_unlock_bh(&sk->sk_callback_lock);
}

static void siw_sctp_data_ready(struct sock *sk)
{
	queue_news(sk, false, false);
}

/* SCTP holds the socket's lock */
static void siw_sctp_state_change(struct sock *sk)
{
	const struct sctp_association *peer = siw_assoc_sctp(sk);

	queue_news(sk, true,
		   !peer || peer->state == SCTP_STATE_CLOSED ||
		   peer->state > SCTP_STATE_ESTABLISHED);
}

/* Under the lock of the socket's wait queue */
static int siw_sctp_space(struct wait_queue_entry *entry, unsigned int mode,
			  int sync, void *key)
{
	struct siw_assoc *assoc = container_of(entry, struct siw_assoc, space);
	struct siw_qp *qp = READ_ONCE(assoc->qp);

	if (qp && (!key || key_to_poll(key) & EPOLLOUT))
		siw_sq_start(qp);
	return 0;
}

static void try_again(struct timer_list *timer)
{
	struct siw_assoc *assoc = container_of(timer, struct siw_assoc, again);
	struct siw_qp *qp = READ_ONCE(assoc->qp);

	siw_cm_queue_work(assoc->cep, SIW_CM_WORK_READ_MPAHDR);
	if (qp)
		siw_sq_start(qp);
}

/*
 * Makes the association of a socket, which the association takes over on
 * success: the endpoint's own or an accepted one. @limit: memory for chunks
 * after a gap. Returns NULL if there is no memory.
 */
static struct siw_assoc *new_assoc(struct socket *s, u32 limit)
{
	struct siw_assoc *assoc = kzalloc_obj(*assoc);
	struct sock *sk = s->sk;

	if (!assoc)
		return NULL;
	/* A session may always hold as much as its socket's receive buffer */
	siw_ssn_init(&assoc->chan[0].rx, limit, sk->sk_rcvbuf, &siw_held_pool);
	__skb_queue_head_init(&assoc->chan[0].early);
	init_waitqueue_func_entry(&assoc->space, siw_sctp_space);
	timer_setup(&assoc->again, try_again, 0);
	assoc->sock = s;
	/* The listener's socket still holds a reference */
	assoc->net = get_net(sock_net(sk));
	lock_sock(sk);
	sk->sk_sndbuf = min_t(u32, sk->sk_sndbuf,
			      siw_held_max / SIW_SCTP_SNDBUF_PART);
	siw_assoc_status(assoc, sk);
	release_sock(sk);
	return assoc;
}

/* Callbacks report to the endpoint from now on */
static void siw_sctp_adopt(struct siw_cep *cep)
{
	struct siw_assoc *assoc = cep->assoc;
	struct sock *sk = assoc->sock->sk;

	assoc->cep = cep;
	write_lock_bh(&sk->sk_callback_lock);
	/*
	 * Before 7.2, accept() sets a socket's own callbacks. siw has already
	 * saved the listener's in the endpoint, to be restored at the end.
	 */
	siw_sk_set_cep(sk, cep);
	sk->sk_state_change = siw_sctp_state_change;
	sk->sk_data_ready = siw_sctp_data_ready;
	write_unlock_bh(&sk->sk_callback_lock);
	add_wait_queue(sk_sleep(sk), &assoc->space);
}

static struct siw_assoc *make_assoc(struct net *net, int family)
{
	struct siw_assoc *assoc;
	struct socket *s;
	int rv = siw_sctp_create(net, family, &s);

	if (rv)
		return ERR_PTR(rv);
	/* Segments may directly follow an Accept, which may get lost */
	assoc = new_assoc(s, siw_held_max);
	if (assoc)
		return assoc;
	sock_release(s);
	return ERR_PTR(-ENOMEM);
}

static void attach_assoc(struct siw_cep *cep, struct siw_assoc *assoc)
{
	WRITE_ONCE(cep->assoc, assoc);
	siw_sock_attach(cep, assoc->sock);
	siw_sctp_adopt(cep);
}

static int siw_sctp_open(struct siw_cep *cep, struct net *net, int family)
{
	struct siw_assoc *assoc = make_assoc(net, family);

	if (IS_ERR(assoc))
		return PTR_ERR(assoc);
	attach_assoc(cep, assoc);
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

static int siw_sctp_accept(struct siw_cep *cep, struct siw_cep **new_cep)
{
	struct socket *listener = cep->assoc->sock, *s;
	struct siw_assoc *assoc;
	int rv;

	if (!may_accept(listener->sk))
		return -EAGAIN;
	rv = kernel_accept(listener, &s, O_NONBLOCK);
	if (rv)
		return rv;
	classify_accepted(s->sk);
	*new_cep = siw_cep_accepted(cep);
	if (!*new_cep) {
		siw_sock_abort(s);
		return 0;
	}
	assoc = new_assoc(s, SIW_SCTP_HELD_SETUP);
	if (!assoc) {
		siw_cep_put(*new_cep);
		*new_cep = NULL;
		siw_sock_abort(s);
		return 0;
	}
	siw_cep_get(*new_cep);
	(*new_cep)->assoc = assoc;
	return 0;
}

/* siw_sctp_close() follows */
static void siw_sctp_detach(struct siw_cep *cep)
{
	struct siw_assoc *assoc = cep->assoc;

	if (!assoc)
		return;
	siw_sock_detach(cep, assoc->sock);
	remove_wait_queue(sk_sleep(assoc->sock->sk), &assoc->space);
	timer_delete_sync(&assoc->again);
}

static void siw_sctp_start_tx(struct siw_cep *cep, struct siw_qp *qp)
{
	qp->attrs.sk = cep->assoc->sock;
	qp->assoc = cep->assoc;
	qp->connected = true;
}

static void siw_sctp_start_rx(struct siw_cep *cep, struct siw_qp *qp)
{
	struct siw_assoc *assoc = cep->assoc;
	struct sock *sk = assoc->sock->sk;

	write_lock_bh(&sk->sk_callback_lock);
	siw_sctp_start_tx(cep, qp);
	assoc->chan[0].established = true;
	assoc->chan[0].rx.limit = siw_held_max;
	WRITE_ONCE(assoc->qp, qp);
	write_unlock_bh(&sk->sk_callback_lock);
}

static void siw_sctp_kick_rx(struct siw_cep *cep)
{
	queue_news(cep->assoc->sock->sk, false, false);
}

/* ---- send */

static int send_message(struct socket *s, const struct siw_chan *chan,
			u32 ppid, struct kvec *iov, size_t num, size_t len)
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

	control.hdr.cmsg_level = IPPROTO_SCTP;
	control.hdr.cmsg_type = SCTP_SNDINFO;
	control.hdr.cmsg_len = CMSG_LEN(sizeof(*info));
	info->snd_sid = chan->stream;
	info->snd_flags = SCTP_UNORDERED;
	info->snd_ppid = (__force u32)htonl(ppid);

	return kernel_sendmsg(s, &msg, iov, num, len);
}

/*
 * Packets are so small that SCTP or IP must fragment: SCTP does (RFC 5043
 * section 9). Segments have the smallest size from now on.
 */
static void allow_fragments(struct socket *s, struct siw_chan *chan)
{
	struct siw_assoc *assoc = container_of(chan, struct siw_assoc, chan[0]);
	int off = 0;

	set_option(s, SCTP_DISABLE_FRAGMENTS, &off, sizeof(off));
	WRITE_ONCE(assoc->seg_max, SIW_SCTP_SEG_MIN);
}

/*
 * Sends a whole chunk, whose first two bytes are its DDP-SSN, or nothing. The
 * endpoint (setup), tx_mutex (segments) or the drain work serialises callers.
 */
static int send_chunk(struct socket *s, struct siw_chan *chan, u32 ppid,
		      struct kvec *iov, size_t num, size_t len)
{
	int rv;

	put_unaligned_be16(chan->tx_ssn, iov[0].iov_base);
	rv = send_message(s, chan, ppid, iov, num, len);
	if (rv == -EMSGSIZE && len <= SIW_SCTP_SEG_MIN) {
		allow_fragments(s, chan);
		rv = send_message(s, chan, ppid, iov, num, len);
	}
	if (rv < 0)
		return rv;
	chan->tx_ssn++;
	chan->sent = true;
	return rv == len ? 0 : -EIO;
}

static int send_control(struct socket *s, struct siw_chan *chan,
			const void *msg, size_t len)
{
	u8 buf[SIW_SCTP_SSN_LEN + IW_MPA_FRAME_MAX];
	struct kvec iov = {
		.iov_base = buf,
		.iov_len = SIW_SCTP_SSN_LEN + len,
	};

	if (iov.iov_len > sizeof(buf))
		return -EMSGSIZE;
	memcpy(buf + SIW_SCTP_SSN_LEN, msg, len);
	return send_chunk(s, chan, SIW_SCTP_PPID_CONTROL, &iov, 1, iov.iov_len);
}

static int siw_sctp_send(struct siw_cep *cep, const void *msg, size_t len)
{
	struct siw_assoc *assoc = cep->assoc;

	return send_control(assoc->sock, &assoc->chan[0], msg, len);
}

static int send_terminate(struct socket *s, struct siw_chan *chan)
{
	u8 msg[IW_MPA_SCTP_TERMINATE_LEN];

	iw_mpa_sctp_build_terminate(msg);
	return send_control(s, chan, msg, sizeof(msg));
}

/* The session ends during setup: siw_sctp_close() follows */
static void siw_sctp_end(struct siw_cep *cep)
{
	if (cep->assoc)
		cep->assoc->owes_terminate = true;
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

/**
 * siw_sctp_send_segment - send a DDP segment
 * @assoc: the association
 * @s: its socket
 * @iov: the segment as an FPDU without pad and CRC: it begins with the length
 * @num: number of elements of @iov
 * @len: bytes in @iov
 *
 * Return: 0, -EAGAIN if siw_sq_start() follows, -EMSGSIZE if
 * siw_sctp_segment_max() has become smaller, or another negative errno. After
 * an error nothing has been sent.
 */
int siw_sctp_send_segment(struct siw_assoc *assoc, struct socket *s,
			  struct kvec *iov, size_t num, size_t len)
{
	/* The caller may send this again and needs the length then */
	u16 length = get_unaligned_be16(iov[0].iov_base);
	int rv;

	if (len > SIW_SCTP_SEG_MIN && needs_fragments(s->sk, len))
		return -EMSGSIZE;
	rv = send_chunk(s, &assoc->chan[0], SIW_SCTP_PPID_SEGMENT, iov, num,
			len);
	put_unaligned_be16(length, iov[0].iov_base);
	/* If nothing is under way, no space will be freed */
	if (rv == -ENOMEM ||
	    (rv == -EAGAIN && !READ_ONCE(s->sk->sk_wmem_queued))) {
		siw_assoc_again(assoc, jiffies + SIW_SCTP_AGAIN);
		rv = -EAGAIN;
	}
	return rv;
}

/**
 * siw_sctp_segment_max - largest segment that SCTP need not fragment
 * @assoc: the association
 * @s: its socket
 * @refresh: the path may have changed
 *
 * May sleep if @refresh.
 *
 * Return: number of bytes, with the DDP-SSN
 */
unsigned int siw_sctp_segment_max(struct siw_assoc *assoc, struct socket *s,
				  bool refresh)
{
	const struct sctp_association *peer;

	if (refresh) {
		lock_sock(s->sk);
		peer = siw_assoc_sctp(s->sk);
		if (peer)
			siw_assoc_learn_seg_max(assoc, peer);
		release_sock(s->sk);
	}
	return READ_ONCE(assoc->seg_max);
}

/* ---- end */

/* To be called after the socket is released */
static void free_assoc(struct siw_assoc *assoc)
{
	put_net(assoc->net);
	siw_remote_put(assoc->peer);
	kfree(assoc);
}

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
static bool may_terminate(struct siw_assoc *assoc, struct sock *sk)
{
	const struct sctp_association *peer;
	bool may = !assoc->chan[0].sent;

	lock_sock(sk);
	peer = siw_assoc_sctp(sk);
	if (peer) {
		may = may || peer->ctsn_ack_point + 1 != peer->c.initial_tsn;
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

static void drain(struct work_struct *work)
{
	struct siw_assoc *assoc = container_of(to_delayed_work(work),
					       struct siw_assoc, drain);
	struct socket *s = assoc->sock;
	int rv;

	if (assoc->owes_terminate && may_terminate(assoc, s->sk)) {
		rv = send_terminate(s, &assoc->chan[0]);
		assoc->owes_terminate = rv == -EAGAIN || rv == -ENOMEM;
	}
	if (!assoc->owes_terminate)
		kernel_sock_shutdown(s, SHUT_WR);
	/* Limits the CPU time for a thousand peers that answer no shutdown */
	assoc->poll_ms = siw_sctp_discard(s) ? SIW_SCTP_POLL_MIN_MS :
			 min(2 * assoc->poll_ms, SIW_SCTP_POLL_MAX_MS);
	if (!is_drained(assoc, s->sk)) {
		queue_delayed_work(closing_wq, &assoc->drain,
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
	siw_assoc_status(assoc, sk);
	release_sock(sk);
	return !assoc->restarted &&
	       (assoc->chan[0].sent || assoc->owes_terminate);
}

/* Takes the detached association from the endpoint, without held chunks */
static struct siw_assoc *take_assoc(struct siw_cep *cep)
{
	struct siw_assoc *assoc = cep->assoc;

	if (assoc) {
		WRITE_ONCE(cep->assoc, NULL);
		siw_sctp_free_held(assoc);
	}
	return assoc;
}

static void abort_assoc(struct siw_assoc *assoc)
{
	siw_sock_abort(assoc->sock);
	free_assoc(assoc);
}

static void siw_sctp_close(struct siw_cep *cep)
{
	struct siw_assoc *assoc = take_assoc(cep);

	if (!assoc)
		return;
	if (assoc->chan[0].established && !assoc->chan[0].over)
		assoc->owes_terminate = true;
	if (!has_to_drain(assoc)) {
		abort_assoc(assoc);
		return;
	}
	assoc->deadline = jiffies + msecs_to_jiffies(SIW_SCTP_LINGER_MS);
	assoc->latest = jiffies + msecs_to_jiffies(SIW_SCTP_LINGER_MAX_MS);
	assoc->poll_ms = SIW_SCTP_POLL_MIN_MS / 2;
	INIT_DELAYED_WORK(&assoc->drain, drain);
	add_closing(assoc);
	queue_delayed_work(closing_wq, &assoc->drain, 0);
}

static int siw_sctp_reopen(struct siw_cep *cep, int family)
{
	struct siw_assoc *fresh = make_assoc(cep->assoc->net, family);

	if (IS_ERR(fresh))
		return PTR_ERR(fresh);
	siw_sctp_detach(cep);
	abort_assoc(take_assoc(cep));
	attach_assoc(cep, fresh);
	return 0;
}

const struct siw_llp_ops siw_llp_sctp = {
	.name		= "sctp",
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
 * Return: 0 or -ENOMEM
 */
int __init siw_sctp_init(void)
{
	siw_held_pool.max = min_t(unsigned long,
				  totalram_pages() / SIW_SCTP_HELD_PART,
				  LONG_MAX >> PAGE_SHIFT) << PAGE_SHIFT;
	siw_held_max = min_t(long, SIW_SCTP_HELD_MAX,
			     siw_ssn_share_max(&siw_held_pool));
	closing_wq = alloc_workqueue("siw_sctp_wq", WQ_UNBOUND, 0);
	return closing_wq ? 0 : -ENOMEM;
}

/**
 * siw_sctp_exit - abort the associations that are still closing
 *
 * No endpoint is left.
 */
void siw_sctp_exit(void)
{
	struct siw_assoc *assoc;

	if (!closing_wq)
		return;
	/* The work item of each is queued or running and now ends soon */
	while (!list_empty(&closing_assocs)) {
		spin_lock_bh(&closing_lock);
		list_for_each_entry(assoc, &closing_assocs, list)
			assoc->latest = jiffies;
		spin_unlock_bh(&closing_lock);
		msleep(SIW_SCTP_POLL_MIN_MS);
	}
	destroy_workqueue(closing_wq);
}
