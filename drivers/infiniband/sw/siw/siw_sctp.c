// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * SCTP as siw's lower layer protocol (RFC 5043).
 *
 * An association carries one session on its one stream. Each DATA chunk is a
 * DDP segment or a session control message behind a DDP-SSN of 16 bits. Where an
 * FPDU of MPA begins with its length, a chunk begins with its DDP-SSN. So siw
 * makes and reads segments as FPDUs. This file exchanges the two, adds the pad
 * and CRC that the receive path takes off, and leaves them away when sending.
 *
 * Receive: callbacks only queue the endpoint's work. It reads the socket, as its
 * one reader, with the endpoint in use. Memory behind a gap is bounded.
 *
 * Send: a chunk goes as a whole or not at all. SCTP does not call
 * sk_write_space() for freed space, but wakes the socket's wait queue, so the
 * association has an entry there.
 *
 * Memory: nothing of the socket tells when there is memory again. So a timer
 * tries again to send and to receive.
 *
 * End: a socket with unread data would abort the association on close, and with
 * it our last messages. So a closed association is drained by a work item until
 * the peer has agreed to the shutdown, or takes no more of our data.
 */
#include <linux/delay.h>
#include <linux/list.h>
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
#include <net/sctp/structs.h>
#include <net/sock.h>
#include <rdma/ib_addr.h>

#include "siw.h"
#include "siw_cm.h"
#include "siw_llp.h"
#include "siw_sctp.h"
#include "siw_ssn.h"

/* RFC 5043 section 5 */
#define SIW_SCTP_ADAPTATION	1
#define SIW_SCTP_PPID_SEGMENT	16
#define SIW_SCTP_PPID_CONTROL	17

#define SIW_SCTP_SSN_LEN	2
/* A session control message with 512 bytes of private data always fits */
#define SIW_SCTP_SEG_MIN	(2 + SIW_SCTP_SSN_LEN + 512)
/* Room for control chunks in the same packet, RFC 5043 section 9 */
#define SIW_SCTP_BUNDLE_ROOM	32

/* Memory for chunks behind a gap, in bytes: in all, and while a session is set up */
#define SIW_SCTP_HELD_MAX	(4 << 20)
#define SIW_SCTP_HELD_SETUP	(64 << 10)
/* With this many bytes no more than 32767 chunks are in flight */
#define SIW_SCTP_SNDBUF_MAX	(16 << 20)
/* Associations that wait for accept(), at least: there SCTP refuses the next */
#define SIW_SCTP_BACKLOG_MIN	1024
/* Chunks to process before the endpoint is released to other users */
#define SIW_SCTP_RX_BATCH	64

/* Until the next try to get memory; in jiffies */
#define SIW_SCTP_AGAIN		msecs_to_jiffies(20)

/* Parts of messages to discard at a time, after close */
#define SIW_SCTP_DISCARD_BATCH	4096

/* Milliseconds until a shutdown that the peer does not follow is an abort */
#define SIW_SCTP_LINGER_MS	5000
/* Milliseconds until the next look: more each time while nothing comes */
#define SIW_SCTP_POLL_MIN_MS	10U
#define SIW_SCTP_POLL_MAX_MS	320U
/* Peers that answer no shutdown hold no more associations than these */
#define SIW_SCTP_CLOSING_MAX	1024

/**
 * struct siw_chan - one session: a pair of streams with the same number
 * @stream: its number
 * @tx_ssn: DDP-SSN of the next chunk to send
 * @rx: order of the received chunks
 * @established: segments may be sent and received
 * @over: either side has sent its Terminate
 * @sent: something has been sent
 */
struct siw_chan {
	u16 stream;
	u16 tx_ssn;
	struct siw_ssn_window rx;
	bool established;
	bool over;
	bool sent;
};

/**
 * struct siw_assoc - an SCTP association
 * @chan: its sessions; today there is one
 * @up: it has been established
 * @peer_tag: the peer's initiate tag
 * @restarted: the peer has started anew
 * @err: it is lost or the session has ended: negative errno
 * @seg_max: largest chunk without its header, in bytes
 * @local: our address
 * @remote: the peer's address
 * @qp: QP to wake when send space is freed
 * @space: entry in the socket's wait queue
 * @cep: until detach: the endpoint
 * @again: until detach: there was no memory to send or to receive
 * @sock: after detach: the socket
 * @net: after close: its namespace, held
 * @drain: after close: work until the peer has agreed
 * @deadline: after close: jiffies
 * @poll_ms: after close: milliseconds between two looks
 * @unacked: after close: memory of what the peer has not acknowledged, in bytes
 * @owes_terminate: after close: the Terminate has not been sent yet
 * @list: after detach: in detached_assocs; after close: in closing_assocs
 */
struct siw_assoc {
	struct siw_chan chan[1];
	bool up;
	bool restarted;
	u32 peer_tag;
	int err;
	unsigned int seg_max;
	struct sockaddr_storage local;
	struct sockaddr_storage remote;

	struct siw_qp *qp;
	struct wait_queue_entry space;
	struct siw_cep *cep;
	struct timer_list again;

	struct socket *sock;
	struct net *net;
	struct delayed_work drain;
	unsigned long deadline;
	unsigned int poll_ms;
	int unacked;
	bool owes_terminate;
	struct list_head list;
};

/* In the control block of a chunk's skb */
struct siw_chunk_cb {
	struct siw_ssn_entry entry;
	u32 ppid;
};

static struct workqueue_struct *closing_wq;
static LIST_HEAD(detached_assocs);
static LIST_HEAD(closing_assocs);
static unsigned int n_closing;
static bool exiting;
/* The lists and the number alone */
static DEFINE_SPINLOCK(closing_lock);

static struct siw_chunk_cb *chunk_cb(struct sk_buff *skb)
{
	BUILD_BUG_ON(sizeof(struct siw_chunk_cb) > sizeof(skb->cb));
	return (struct siw_chunk_cb *)skb->cb;
}

static struct sk_buff *entry_skb(struct siw_ssn_entry *entry)
{
	return container_of((void *)entry, struct sk_buff, cb);
}

static struct siw_assoc *sock_assoc(const struct socket *s)
{
	const struct siw_cep *cep = sk_to_cep(s->sk);

	return cep ? cep->assoc : NULL;
}

/* ---- SCTP's association; each function needs the socket's lock */

static struct sctp_association *sctp_assoc_of(const struct sock *sk)
{
	return list_first_entry_or_null(&sctp_sk(sk)->ep->asocs,
					struct sctp_association, asocs);
}

static void set_addr(struct sockaddr_storage *ss, const union sctp_addr *addr,
		     u16 port)
{
	memset(ss, 0, sizeof(*ss));
	memcpy(ss, addr, sizeof(*addr));
	if (ss->ss_family == AF_INET)
		((struct sockaddr_in *)ss)->sin_port = htons(port);
	else
		((struct sockaddr_in6 *)ss)->sin6_port = htons(port);
}

static void learn_seg_max(struct siw_assoc *assoc,
			  const struct sctp_association *peer)
{
	unsigned int max = peer->frag_point;

	max = max > SIW_SCTP_BUNDLE_ROOM ? max - SIW_SCTP_BUNDLE_ROOM : 0;
	WRITE_ONCE(assoc->seg_max, max_t(unsigned int, max, SIW_SCTP_SEG_MIN));
}

static void learn_up(struct siw_assoc *assoc,
		     const struct sctp_association *peer)
{
	const struct sctp_transport *path = peer->peer.primary_path;

	/* A listener's socket may have had a wildcard address */
	set_addr(&assoc->local, &path->saddr, peer->base.bind_addr.port);
	set_addr(&assoc->remote, &path->ipaddr, peer->peer.port);
	learn_seg_max(assoc, peer);
	/* Without the indication DDP must not be used, RFC 5043 section 11.1 */
	if (peer->peer.adaptation_ind != SIW_SCTP_ADAPTATION)
		assoc->err = -EPROTO;
	assoc->peer_tag = peer->peer.i.init_tag;
	assoc->up = true;
}

/*
 * A peer that starts anew from the same addresses takes the place of the first
 * one in our association (RFC 9260 section 5.2). The session is gone, and a
 * Terminate would come to another one.
 */
static void check_restart(struct siw_assoc *assoc,
			  const struct sctp_association *peer)
{
	if (peer->peer.i.init_tag == assoc->peer_tag)
		return;
	assoc->err = assoc->err ?: -ECONNRESET;
	assoc->restarted = true;
}

/* The state of the socket does not tell that an association is lost */
static int assoc_status(struct siw_assoc *assoc, struct sock *sk)
{
	const struct sctp_association *peer = sctp_assoc_of(sk);

	/* The peer may have shut it down already, before it was accepted */
	if (!assoc->up && peer && peer->state >= SCTP_STATE_ESTABLISHED)
		learn_up(assoc, peer);
	switch (peer ? peer->state : SCTP_STATE_CLOSED) {
	case SCTP_STATE_COOKIE_WAIT:
	case SCTP_STATE_COOKIE_ECHOED:
		return -EINPROGRESS;
	case SCTP_STATE_ESTABLISHED:
		check_restart(assoc, peer);
		return assoc->err;
	default:
		/* Chunks may have come before the end: read them first */
		if (assoc->up && !skb_queue_empty(&sk->sk_receive_queue))
			return assoc->err;
		return assoc->err ?: -READ_ONCE(sk->sk_err) ?: -ECONNRESET;
	}
}

static int siw_sctp_status(struct socket *s)
{
	struct siw_assoc *assoc = sock_assoc(s);
	int rv;

	lock_sock(s->sk);
	rv = assoc_status(assoc, s->sk);
	release_sock(s->sk);
	return rv;
}

/* ---- sockets */

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

static int siw_sctp_connect(struct socket *s, struct sockaddr *laddr,
			    struct sockaddr *raddr, bool afonly)
{
	int rv = siw_sock_bind(s, laddr, afonly);

	if (rv)
		return rv;
	rv = s->ops->connect(s, (struct sockaddr_unsized *)raddr,
			     rdma_addr_size(raddr), O_NONBLOCK);
	return rv == -EINPROGRESS ? 0 : rv;
}

static bool siw_sctp_early_data(const struct socket *s)
{
	return false;
}

/*
 * siw accepts at once, and limits itself what has sent no Initiate. TCP lets a
 * connection wait while too many are there, but SCTP refuses it for good.
 */
static int siw_sctp_listen(struct socket *s, struct sockaddr *laddr,
			   bool afonly, int ifindex, int backlog)
{
	return siw_sock_bind(s, laddr, afonly) ?:
	       s->ops->listen(s, max(backlog, SIW_SCTP_BACKLOG_MIN));
}

#ifdef CONFIG_DEBUG_LOCK_ALLOC
static struct lock_class_key accepted_key[2];
#endif

/*
 * A socket from accept() has the lock class of all sockets of its family. The
 * class of the spin lock stays: it may be taken already.
 */
static void classify_accepted(struct sock *sk)
{
#ifdef CONFIG_DEBUG_LOCK_ALLOC
	lockdep_init_map(&sk->sk_lock.dep_map, "sk_lock-RDMA-SIW-SCTP",
			 &accepted_key[sk->sk_family == AF_INET6], 0);
#endif
}

/* If there is nobody to accept, sctp_accept() sleeps a tick, also O_NONBLOCK */
static int siw_sctp_accept(struct socket *s, struct socket **new_s)
{
	const struct sctp_association *peer;
	int rv;

	lock_sock(s->sk);
	peer = sctp_assoc_of(s->sk);
	release_sock(s->sk);
	if (!peer)
		return -EAGAIN;
	rv = kernel_accept(s, new_s, O_NONBLOCK);
	if (!rv)
		classify_accepted((*new_s)->sk);
	return rv;
}

static void siw_sctp_addrs(const struct socket *s,
			   struct sockaddr_storage *local,
			   struct sockaddr_storage *remote)
{
	const struct siw_assoc *assoc = sock_assoc(s);

	if (assoc && assoc->up) {
		*local = assoc->local;
		*remote = assoc->remote;
	} else {
		siw_sock_addrs(s, local, remote);
	}
}

/* ---- callbacks */

/* If the peer @ends, the QP is flushed: its sends do not fail one by one */
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
	const struct sctp_association *peer = sctp_assoc_of(sk);

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

/* Not after detach, which waits for the timer */
static void arm_again(struct siw_assoc *assoc, struct sock *sk)
{
	read_lock_bh(&sk->sk_callback_lock);
	if (sk_to_cep(sk))
		mod_timer(&assoc->again, jiffies + SIW_SCTP_AGAIN);
	read_unlock_bh(&sk->sk_callback_lock);
}

/* The endpoint takes a socket over: one of its own, or an accepted one */
static int siw_sctp_adopt(struct siw_cep *cep, struct socket *s)
{
	struct siw_assoc *assoc = kzalloc_obj(*assoc);
	struct sock *sk = s->sk;

	if (!assoc)
		return -ENOMEM;
	siw_ssn_init(&assoc->chan[0].rx, SIW_SCTP_HELD_SETUP);
	init_waitqueue_func_entry(&assoc->space, siw_sctp_space);
	timer_setup(&assoc->again, try_again, 0);
	assoc->cep = cep;
	lock_sock(sk);
	sk->sk_sndbuf = min(sk->sk_sndbuf, SIW_SCTP_SNDBUF_MAX);
	assoc_status(assoc, sk);
	release_sock(sk);

	write_lock_bh(&sk->sk_callback_lock);
	cep->assoc = assoc;
	if (cep->qp)
		cep->qp->assoc = assoc;
	/*
	 * Before 7.2, accept() gives a socket callbacks of its own; siw has
	 * put those of the listener into the endpoint already, for the end.
	 */
	if (sk_to_cep(sk) != cep)
		siw_sk_set_cep(sk, cep);
	sk->sk_state_change = siw_sctp_state_change;
	sk->sk_data_ready = siw_sctp_data_ready;
	write_unlock_bh(&sk->sk_callback_lock);
	add_wait_queue(sk_sleep(sk), &assoc->space);
	return 0;
}

/*
 * The endpoint gives its socket up; siw_sctp_close() follows. The caller holds
 * the callback lock and has restored the callbacks.
 */
static void siw_sctp_detach(struct siw_cep *cep, struct socket *s)
{
	struct siw_assoc *assoc = cep->assoc;

	if (!assoc)
		return;
	remove_wait_queue(sk_sleep(s->sk), &assoc->space);
	timer_delete_sync(&assoc->again);
	/* A callback that waits for the lock must not find it in the socket */
	assoc->sock = s;
	spin_lock_bh(&closing_lock);
	list_add(&assoc->list, &detached_assocs);
	spin_unlock_bh(&closing_lock);
	cep->assoc = NULL;
}

static void siw_sctp_start_rx(struct siw_cep *cep, struct siw_qp *qp)
{
	struct sock *sk = cep->sock->sk;

	write_lock_bh(&sk->sk_callback_lock);
	qp->attrs.sk = cep->sock;
	qp->assoc = cep->assoc;
	cep->assoc->chan[0].established = true;
	cep->assoc->chan[0].rx.limit = SIW_SCTP_HELD_MAX;
	WRITE_ONCE(cep->assoc->qp, qp);
	write_unlock_bh(&sk->sk_callback_lock);
}

static void siw_sctp_kick_rx(struct socket *s)
{
	queue_news(s->sk, false, false);
}

/* ---- send */

/*
 * Sends a chunk, whose first two bytes are its DDP-SSN, or nothing. One caller
 * at a time, which the endpoint (setup), tx_mutex (segments) or the drain work
 * provides.
 */
static int send_chunk(struct socket *s, struct siw_chan *chan, u32 ppid,
		      struct kvec *iov, size_t num, size_t len)
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
	int rv;

	control.hdr.cmsg_level = IPPROTO_SCTP;
	control.hdr.cmsg_type = SCTP_SNDINFO;
	control.hdr.cmsg_len = CMSG_LEN(sizeof(*info));
	info->snd_sid = chan->stream;
	info->snd_flags = SCTP_UNORDERED;
	info->snd_ppid = (__force u32)htonl(ppid);

	put_unaligned_be16(chan->tx_ssn, iov[0].iov_base);
	rv = kernel_sendmsg(s, &msg, iov, num, len);
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

static int siw_sctp_send(struct socket *s, const void *msg, size_t len)
{
	return send_control(s, &sock_assoc(s)->chan[0], msg, len);
}

static int send_terminate(struct socket *s, struct siw_chan *chan)
{
	const __be16 code = cpu_to_be16(IW_MPA_SCTP_TERMINATE);

	return send_control(s, chan, &code, sizeof(code));
}

/* The session's Terminate while it is set up; best effort */
static void siw_sctp_end(struct siw_cep *cep)
{
	if (!cep->sock || !cep->assoc)
		return;
	send_terminate(cep->sock, &cep->assoc->chan[0]);
	cep->assoc->chan[0].over = true;
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
 * siw_sctp_segment_max() has become smaller, or another negative errno. After an
 * error nothing has been sent.
 */
int siw_sctp_send_segment(struct siw_assoc *assoc, struct socket *s,
			  struct kvec *iov, size_t num, size_t len)
{
	/* The caller may send this again and needs the length then */
	u16 length = get_unaligned_be16(iov[0].iov_base);
	int rv = send_chunk(s, &assoc->chan[0], SIW_SCTP_PPID_SEGMENT, iov, num,
			    len);

	put_unaligned_be16(length, iov[0].iov_base);
	/* If nothing is under way, no space will be freed */
	if (rv == -ENOMEM ||
	    (rv == -EAGAIN && !READ_ONCE(s->sk->sk_wmem_queued))) {
		arm_again(assoc, s->sk);
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
		peer = sctp_assoc_of(s->sk);
		if (peer)
			learn_seg_max(assoc, peer);
		release_sock(s->sk);
	}
	return READ_ONCE(assoc->seg_max);
}

/* ---- receive */

/* Length of the first message, 0 if there is none */
static size_t first_length(struct sock *sk, bool *fragmented)
{
	const struct sk_buff *skb;
	size_t len = 0;

	lock_sock(sk);
	skb = skb_peek(&sk->sk_receive_queue);
	if (skb) {
		len = skb->len;
		*fragmented = skb_has_frag_list(skb);
	}
	release_sock(sk);
	return len;
}

/* Nothing has come: why? Negative errno */
static int nothing_came(struct socket *s)
{
	struct msghdr msg = {};
	struct kvec iov;
	u8 byte;
	int rv;

	iov = (struct kvec) { .iov_base = &byte, .iov_len = sizeof(byte) };
	rv = kernel_recvmsg(s, &msg, &iov, 1, sizeof(byte),
			    MSG_DONTWAIT | MSG_PEEK);
	/* Something has come now, and the callback has said so */
	if (rv > 0)
		return -EAGAIN;
	return rv ?: -ECONNRESET;
}

/* Is this message one that RFC 5043 knows? */
static bool read_info(struct msghdr *msg, const struct siw_chan *chan,
		      struct sk_buff *skb)
{
	struct cmsghdr *cmsg = msg->msg_control;
	const struct sctp_rcvinfo *info = CMSG_DATA(cmsg);

	if (!(msg->msg_flags & MSG_EOR) ||
	    cmsg->cmsg_len < CMSG_LEN(sizeof(*info)) ||
	    cmsg->cmsg_level != IPPROTO_SCTP ||
	    cmsg->cmsg_type != SCTP_RCVINFO)
		return false;
	chunk_cb(skb)->ppid = ntohl((__force __be32)info->rcv_ppid);
	return info->rcv_flags & SCTP_UNORDERED &&
	       info->rcv_sid == chan->stream &&
	       (chunk_cb(skb)->ppid == SIW_SCTP_PPID_SEGMENT ||
		chunk_cb(skb)->ppid == SIW_SCTP_PPID_CONTROL);
}

/* Takes one chunk off the socket; ERR_PTR(-EAGAIN) if none has come */
static struct sk_buff *recv_chunk(struct socket *s, const struct siw_chan *chan)
{
	union {
		struct cmsghdr hdr;
		u8 room[CMSG_SPACE(sizeof(struct sctp_rcvinfo))];
	} control = {};
	struct msghdr msg = {
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	bool fragmented = false;
	struct sk_buff *skb;
	struct kvec iov;
	size_t len;
	int rv;

	len = first_length(s->sk, &fragmented);
	if (!len)
		return ERR_PTR(nothing_came(s));
	if (fragmented || len < SIW_SCTP_SSN_LEN ||
	    len > SIW_SCTP_SSN_LEN + U16_MAX)
		return ERR_PTR(-EPROTO);
	/* With room for the pad and the CRC of an FPDU */
	skb = alloc_skb(len + 2 * MPA_CRC_SIZE, GFP_KERNEL);
	if (!skb)
		return ERR_PTR(-ENOMEM);
	iov = (struct kvec) { .iov_base = skb_put(skb, len), .iov_len = len };
	rv = kernel_recvmsg(s, &msg, &iov, 1, len, MSG_DONTWAIT);
	/* The end of the control data has moved on */
	msg.msg_control = &control;
	if (rv != len || !read_info(&msg, chan, skb)) {
		kfree_skb(skb);
		return ERR_PTR(rv < 0 ? rv : -EPROTO);
	}
	chunk_cb(skb)->entry.ssn = get_unaligned_be16(skb->data);
	chunk_cb(skb)->entry.cost = skb->truesize;
	return skb;
}

/* Takes the next chunk in order; ERR_PTR(-EAGAIN) if it has not come */
static struct sk_buff *next_chunk(struct socket *s, struct siw_chan *chan)
{
	struct siw_ssn_entry *entry = siw_ssn_take(&chan->rx);
	struct sk_buff *skb;

	if (entry)
		return entry_skb(entry);
	for (;;) {
		skb = recv_chunk(s, chan);
		if (IS_ERR(skb))
			return skb;
		switch (siw_ssn_offer(&chan->rx, &chunk_cb(skb)->entry)) {
		case SIW_SSN_NEXT:
			return skb;
		case SIW_SSN_HELD:
			break;
		default:
			kfree_skb(skb);
			return ERR_PTR(-EPROTO);
		}
	}
}

static enum iw_mpa_next take_message(struct siw_cep *cep, struct sk_buff *skb)
{
	enum iw_mpa_next next;
	size_t used;

	if (chunk_cb(skb)->ppid != SIW_SCTP_PPID_CONTROL)
		return iw_mpa_out_of_turn(&cep->mpa);
	next = iw_mpa_rx(&cep->mpa, skb->data + SIW_SCTP_SSN_LEN,
			 skb->len - SIW_SCTP_SSN_LEN, &used);
	if (next == IW_MPA_NEXT_FRAME)
		next = iw_mpa_process(&cep->mpa, false);
	return next;
}

static enum iw_mpa_next siw_sctp_rx_setup(struct siw_cep *cep)
{
	struct siw_assoc *assoc = cep->assoc;
	enum iw_mpa_next next = IW_MPA_NEXT_WAIT;
	struct sk_buff *skb;

	if (assoc->err)
		return iw_mpa_peer_gone(&cep->mpa, assoc->err);
	while (next == IW_MPA_NEXT_WAIT) {
		skb = next_chunk(cep->sock, &assoc->chan[0]);
		if (PTR_ERR(skb) == -ENOMEM)
			arm_again(assoc, cep->sock->sk);
		if (PTR_ERR(skb) == -EAGAIN || PTR_ERR(skb) == -ENOMEM)
			return IW_MPA_NEXT_WAIT;
		if (PTR_ERR(skb) == -EPROTO)
			return iw_mpa_out_of_turn(&cep->mpa);
		if (IS_ERR(skb))
			return iw_mpa_peer_gone(&cep->mpa, PTR_ERR(skb));
		next = take_message(cep, skb);
		kfree_skb(skb);
	}
	/* Segments may have come right behind the Accept */
	if (next == IW_MPA_NEXT_DONE)
		siw_cm_queue_work(cep, SIW_CM_WORK_READ_MPAHDR);
	return next;
}

/* The session is over: the endpoint's work finds this in the status */
static void lose_session(struct siw_cep *cep, int err, bool over)
{
	cep->assoc->err = err;
	cep->assoc->chan[0].over = over;
	cep->qp->tx_ctx.tx_suspend = 1;
	siw_cm_queue_work(cep, SIW_CM_WORK_PEER_CLOSE);
}

/* Gives the segment to the QP as an FPDU. Returns false if it was cut short. */
static bool feed_qp(struct siw_qp *qp, struct sk_buff *skb)
{
	read_descriptor_t rd_desc = { .arg.data = qp, .count = 1 };
	const struct siw_rx_stream *srx = &qp->rx_stream;
	unsigned int len = skb->len;

	put_unaligned_be16(len - SIW_SCTP_SSN_LEN, skb->data);
	skb_put_zero(skb, (-len & 3) + MPA_CRC_SIZE);
	siw_tcp_rx_data(&rd_desc, skb, 0, skb->len);
	return srx->rx_suspend ||
	       (srx->state == SIW_GET_HDR && !srx->fpdu_part_rcvd);
}

/* In RDMA mode the only control message is a Terminate */
static void take_control(struct siw_cep *cep, const struct sk_buff *skb)
{
	bool terminate = skb->len == SIW_SCTP_SSN_LEN + 2 &&
			 get_unaligned_be16(skb->data + SIW_SCTP_SSN_LEN) ==
			 IW_MPA_SCTP_TERMINATE;

	lose_session(cep, terminate ? -ECONNRESET : -EPROTO, terminate);
}

/* Returns false if nothing more can be processed now */
static bool process_chunk(struct siw_cep *cep, struct siw_qp *qp)
{
	struct siw_assoc *assoc = cep->assoc;
	struct sk_buff *skb;

	if (assoc->err || qp->rx_stream.rx_suspend ||
	    qp->attrs.state != SIW_QP_STATE_RTS)
		return false;
	skb = next_chunk(cep->sock, &assoc->chan[0]);
	if (IS_ERR(skb)) {
		if (PTR_ERR(skb) == -ENOMEM)
			arm_again(assoc, cep->sock->sk);
		else if (PTR_ERR(skb) != -EAGAIN)
			lose_session(cep, PTR_ERR(skb), false);
		return false;
	}
	if (chunk_cb(skb)->ppid == SIW_SCTP_PPID_CONTROL)
		take_control(cep, skb);
	else if (!feed_qp(qp, skb))
		lose_session(cep, -EPROTO, false);
	kfree_skb(skb);
	return true;
}

/*
 * Gives received segments to the QP. A holder of the QP's lock may wait for the
 * endpoint, which is in use here, so this does not wait for the lock.
 */
static void siw_sctp_pump(struct siw_cep *cep)
{
	struct siw_qp *qp = cep->qp;
	bool more = true;
	int i;

	if (!qp || !cep->sock)
		return;
	for (i = 0; i < SIW_SCTP_RX_BATCH && more; i++) {
		/* After this there is nothing to wait for */
		if (qp->rx_stream.rx_suspend)
			return;
		if (!down_read_trylock(&qp->state_lock))
			break;
		more = process_chunk(cep, qp);
		up_read(&qp->state_lock);
	}
	if (more)
		siw_cm_queue_work(cep, SIW_CM_WORK_READ_MPAHDR);
}

/* ---- end */

static void free_assoc(struct siw_assoc *assoc)
{
	struct siw_ssn_entry *entry;

	while ((entry = siw_ssn_drop(&assoc->chan[0].rx)))
		kfree_skb(entry_skb(entry));
	kfree(assoc);
}

/*
 * Nobody reads what comes now, but unread data would make close() abort. The
 * limit is for a peer that sends as fast as this reads: the deadline counts.
 * Returns whether there was data.
 */
static bool discard_data(struct socket *s)
{
	bool fragmented;
	int i;

	for (i = 0; i < SIW_SCTP_DISCARD_BATCH; i++) {
		struct msghdr msg = {};
		struct kvec iov;
		u8 buf[256];

		if (!first_length(s->sk, &fragmented))
			break;

		iov = (struct kvec) { .iov_base = buf, .iov_len = sizeof(buf) };
		if (kernel_recvmsg(s, &msg, &iov, 1, sizeof(buf),
				   MSG_DONTWAIT) <= 0)
			break;
	}
	return i > 0;
}

/* Has it been shut down, or does the peer take no more? */
static bool is_drained(struct siw_assoc *assoc, struct sock *sk)
{
	const struct sctp_association *peer;
	int unacked = 0;
	bool gone;

	lock_sock(sk);
	peer = sctp_assoc_of(sk);
	gone = !peer || peer->state == SCTP_STATE_CLOSED;
	if (peer)
		unacked = peer->sndbuf_used;
	release_sock(sk);
	if (unacked < assoc->unacked && !READ_ONCE(exiting))
		assoc->deadline = jiffies +
				  msecs_to_jiffies(SIW_SCTP_LINGER_MS);
	assoc->unacked = unacked;
	return gone || time_after_eq(jiffies, assoc->deadline);
}

static void drain(struct work_struct *work)
{
	struct siw_assoc *assoc = container_of(to_delayed_work(work),
					       struct siw_assoc, drain);
	struct socket *s = assoc->sock;
	int rv;

	if (assoc->owes_terminate) {
		rv = send_terminate(s, &assoc->chan[0]);
		assoc->owes_terminate = rv == -EAGAIN || rv == -ENOMEM;
	}
	if (!assoc->owes_terminate)
		kernel_sock_shutdown(s, SHUT_WR);
	/* A thousand peers that answer no shutdown must not cost much time */
	assoc->poll_ms = discard_data(s) ? SIW_SCTP_POLL_MIN_MS :
			 min(2 * assoc->poll_ms, SIW_SCTP_POLL_MAX_MS);
	if (!is_drained(assoc, s->sk)) {
		queue_delayed_work(closing_wq, &assoc->drain,
				   msecs_to_jiffies(assoc->poll_ms));
		return;
	}
	siw_sock_abort(s);
	put_net(assoc->net);
	spin_lock_bh(&closing_lock);
	list_del(&assoc->list);
	WRITE_ONCE(n_closing, n_closing - 1);
	spin_unlock_bh(&closing_lock);
	free_assoc(assoc);
}

/* The association that siw_sctp_detach() has taken from the endpoint, or NULL */
static struct siw_assoc *take_assoc(const struct socket *s)
{
	struct siw_assoc *assoc, *found = NULL;

	spin_lock_bh(&closing_lock);
	list_for_each_entry(assoc, &detached_assocs, list) {
		if (assoc->sock == s) {
			list_del(&assoc->list);
			found = assoc;
			break;
		}
	}
	spin_unlock_bh(&closing_lock);
	return found;
}

static void siw_sctp_close(struct socket *s)
{
	struct siw_assoc *assoc = take_assoc(s);

	/*
	 * The socket may hold no reference on its namespace, and the endpoint
	 * goes now. In a namespace that ends, nobody waits for the peer. If
	 * nothing was sent, there is nothing to wait for.
	 */
	if (assoc && assoc->up && assoc->chan[0].sent && !assoc->restarted &&
	    READ_ONCE(n_closing) < SIW_SCTP_CLOSING_MAX)
		assoc->net = maybe_get_net(sock_net(s->sk));
	if (!assoc || !assoc->net) {
		siw_sock_abort(s);
		if (assoc)
			free_assoc(assoc);
		return;
	}
	assoc->owes_terminate = assoc->chan[0].established &&
				!assoc->chan[0].over;
	assoc->deadline = jiffies + msecs_to_jiffies(SIW_SCTP_LINGER_MS);
	assoc->poll_ms = SIW_SCTP_POLL_MIN_MS / 2;
	INIT_DELAYED_WORK(&assoc->drain, drain);
	spin_lock_bh(&closing_lock);
	list_add(&assoc->list, &closing_assocs);
	WRITE_ONCE(n_closing, n_closing + 1);
	spin_unlock_bh(&closing_lock);
	queue_delayed_work(closing_wq, &assoc->drain, 0);
}

static void siw_sctp_abort(struct socket *s)
{
	struct siw_assoc *assoc = take_assoc(s);

	siw_sock_abort(s);
	if (assoc)
		free_assoc(assoc);
}

const struct siw_llp_ops siw_llp_sctp = {
	.name		= "sctp",
	.create		= siw_sctp_create,
	.connect	= siw_sctp_connect,
	.status		= siw_sctp_status,
	.early_data	= siw_sctp_early_data,
	.listen		= siw_sctp_listen,
	.accept		= siw_sctp_accept,
	.adopt		= siw_sctp_adopt,
	.detach		= siw_sctp_detach,
	.send		= siw_sctp_send,
	.end		= siw_sctp_end,
	.start_rx	= siw_sctp_start_rx,
	.kick_rx	= siw_sctp_kick_rx,
	.rx_setup	= siw_sctp_rx_setup,
	.pump		= siw_sctp_pump,
	.addrs		= siw_sctp_addrs,
	.close		= siw_sctp_close,
	.abort		= siw_sctp_abort,
};

/**
 * siw_sctp_init - prepare for associations
 *
 * Return: 0 or -ENOMEM
 */
int siw_sctp_init(void)
{
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
	WRITE_ONCE(exiting, true);
	/* Each has its work item queued or running, which ends soon now */
	while (!list_empty(&closing_assocs)) {
		spin_lock_bh(&closing_lock);
		list_for_each_entry(assoc, &closing_assocs, list)
			assoc->deadline = jiffies;
		spin_unlock_bh(&closing_lock);
		msleep(SIW_SCTP_POLL_MIN_MS);
	}
	destroy_workqueue(closing_wq);
}
