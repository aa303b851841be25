// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * SCTP as siw's lower layer protocol (RFC 5043).
 *
 * An association carries one session on its one stream. Each DATA chunk is a
 * DDP segment or a session control message after a DDP-SSN of 16 bits. An FPDU
 * of MPA begins with its length, a chunk with its DDP-SSN. So siw builds and
 * parses segments as FPDUs. This file exchanges the two fields, adds the pad
 * and CRC that the receive path removes, and omits them when sending.
 *
 * Receive: callbacks only queue the endpoint's work, which is the only reader
 * of the socket and runs with the endpoint in use. Chunks after a gap must be
 * read: the missing chunk may arrive after them, and an unread socket closes
 * the window for it. Their memory is charged to the socket and limited for the
 * session, the remote address and the host. The duration of a gap is limited as
 * well.
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
#include <linux/hashtable.h>
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
/* An AUTH chunk with SHA-256 */
#define SIW_SCTP_AUTH_ROOM	40

/*
 * Memory for chunks after a gap, in bytes: of a session, and before its
 * Initiate. Linux receives at most 4096 chunks after a missing chunk: they
 * always fit if the packets have up to 1700 bytes.
 */
#define SIW_SCTP_HELD_MAX	(10 << 20)
#define SIW_SCTP_HELD_SETUP	(64 << 10)
/* Segments read before the ULP has answered: the rest stays in the socket */
#define SIW_SCTP_EARLY_MAX	(64 << 10)
/* All sessions together: 1/SIW_SCTP_HELD_PART of the host's memory */
#define SIW_SCTP_HELD_PART	16
/*
 * Data in flight: 1/SIW_SCTP_SNDBUF_PART of the memory that our own receiver
 * would hold, which may need 2.3 times the sender's memory for a chunk. This is
 * also less than 32767 chunks.
 */
#define SIW_SCTP_SNDBUF_PART	4
/* Milliseconds that a gap may last while SCTP has no missing chunk */
#define SIW_SCTP_GAP_MS		30000
/* Smallest backlog: SCTP refuses an association beyond the backlog */
#define SIW_SCTP_BACKLOG_MIN	1024
/* Chunks to process before the endpoint is released to other users */
#define SIW_SCTP_RX_BATCH	64

/* Delay before the next attempt to allocate memory, in jiffies */
#define SIW_SCTP_AGAIN		msecs_to_jiffies(20)

/* Parts of messages to discard at a time, after close */
#define SIW_SCTP_DISCARD_BATCH	4096

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
 * @stream: its number
 * @tx_ssn: DDP-SSN of the next chunk to send
 * @rx: order of the received chunks
 * @gap: the gap in this order
 * @early: segments received before the ULP has answered the Initiate; charged
 *	to @rx
 * @asked: the Initiate was reported to the ULP
 * @established: segments may be sent and received
 * @over: either side has sent its Terminate
 * @sent: something has been sent
 * @partial: a message whose end has not been received, charged to @rx; or %NULL
 */
struct siw_chan {
	u16 stream;
	u16 tx_ssn;
	struct siw_ssn_window rx;
	struct siw_gap gap;
	struct sk_buff_head early;
	bool asked;
	bool established;
	bool over;
	bool sent;
	struct sk_buff *partial;
};

/**
 * struct siw_assoc - an SCTP association
 * @chan: its sessions; currently one
 * @up: it has been established
 * @peer_tag: the peer's initiate tag
 * @restarted: the peer has restarted the association
 * @err: negative errno if it is lost or the session has ended
 * @seg_max: largest chunk without its header, in bytes
 * @local: our address
 * @remote: the peer's address
 * @peer: shared by all associations with @remote; %NULL until @up
 * @qp: QP to wake when send space is freed
 * @space: entry in the socket's wait queue
 * @cep: until detach: the endpoint
 * @again: until detach: timer after an allocation failure, and for the end of a
 *	gap
 * @sock: the socket
 * @net: its namespace, with a reference: on older kernels, accepted sockets
 *	hold none
 * @drain: after close: work until the peer has completed the shutdown
 * @deadline: after close: jiffies, extended if the peer acknowledges data
 * @latest: after close: jiffies, latest @deadline
 * @poll_ms: after close: milliseconds between polls
 * @unacked: after close: memory of unacknowledged data in bytes
 * @owes_terminate: the Terminate has to be sent after close
 * @evicted: no longer counted in n_closing
 * @list: after close: in closing_assocs
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
	struct siw_remote *peer;

	struct siw_qp *qp;
	struct wait_queue_entry space;
	struct siw_cep *cep;
	struct timer_list again;

	struct socket *sock;
	struct net *net;
	struct delayed_work drain;
	unsigned long deadline;
	unsigned long latest;
	unsigned int poll_ms;
	int unacked;
	bool owes_terminate;
	bool evicted;
	struct list_head list;
};

/* In the control block of a chunk's skb */
struct siw_chunk_cb {
	struct siw_ssn_entry entry;
	u32 ppid;
};

static struct workqueue_struct *closing_wq;
static LIST_HEAD(closing_assocs);
static unsigned int n_closing;
/* The list, the counts, and the deadlines of listed associations */
static DEFINE_SPINLOCK(closing_lock);

static struct siw_ssn_pool held_pool;
/* SIW_SCTP_HELD_MAX, or less on a small host */
static u32 held_max __ro_after_init;
static DEFINE_HASHTABLE(remotes, 8);
/* The table and its reference counts */
static DEFINE_SPINLOCK(remotes_lock);

static struct siw_chunk_cb *chunk_cb(struct sk_buff *skb)
{
	BUILD_BUG_ON(sizeof(struct siw_chunk_cb) > sizeof(skb->cb));
	return (struct siw_chunk_cb *)skb->cb;
}

static struct sk_buff *entry_skb(struct siw_ssn_entry *entry)
{
	return container_of((void *)entry, struct sk_buff, cb);
}

/* ---- remote addresses */

static struct siw_remote *find_remote(u64 net, const struct in6_addr *ip)
{
	struct siw_remote *remote;

	hash_for_each_possible(remotes, remote, node, ipv6_addr_hash(ip))
		if (remote->net == net && ipv6_addr_equal(&remote->ip, ip))
			return remote;
	return NULL;
}

/* Returns NULL if there is no memory */
static struct siw_remote *get_remote(const struct sock *sk,
				     const struct sockaddr_storage *ss)
{
	struct siw_remote *fresh = kzalloc_obj(*fresh, sk->sk_allocation);
	struct siw_remote *remote;

	if (!fresh)
		return NULL;
	fresh->net = sock_net(sk)->net_cookie;
	if (ss->ss_family == AF_INET)
		ipv6_addr_set_v4mapped(((struct sockaddr_in *)ss)->sin_addr.s_addr,
				       &fresh->ip);
	else
		fresh->ip = ((struct sockaddr_in6 *)ss)->sin6_addr;

	spin_lock_bh(&remotes_lock);
	remote = find_remote(fresh->net, &fresh->ip);
	if (!remote) {
		remote = fresh;
		hash_add(remotes, &remote->node, ipv6_addr_hash(&remote->ip));
	}
	remote->refs++;
	spin_unlock_bh(&remotes_lock);
	if (remote != fresh)
		kfree(fresh);
	return remote;
}

static void put_remote(struct siw_remote *remote)
{
	bool last;

	if (!remote)
		return;
	spin_lock_bh(&remotes_lock);
	last = !--remote->refs;
	if (last)
		hash_del(&remote->node);
	spin_unlock_bh(&remotes_lock);
	if (last)
		kfree(remote);
}

/* ---- SCTP's association; each function needs the socket's lock */

static struct sctp_association *sctp_assoc_of(const struct sock *sk)
{
	return list_first_entry_or_null(&sctp_sk(sk)->ep->asocs,
					struct sctp_association, asocs);
}

/* SCTP sets a scope ID in each address, but only link-local ones have one */
static void set_addr6(struct sockaddr_in6 *sin6, u16 port)
{
	sin6->sin6_port = htons(port);
	sin6->sin6_scope_id = ipv6_iface_scope_id(&sin6->sin6_addr,
						  sin6->sin6_scope_id);
}

static void set_addr(struct sockaddr_storage *ss, const union sctp_addr *addr,
		     u16 port)
{
	memset(ss, 0, sizeof(*ss));
	memcpy(ss, addr, sizeof(*addr));
	if (ss->ss_family == AF_INET)
		((struct sockaddr_in *)ss)->sin_port = htons(port);
	else
		set_addr6((struct sockaddr_in6 *)ss, port);
}

/* Does the peer demand an AUTH chunk before DATA (RFC 4895)? */
static bool wants_auth(const struct sctp_association *peer)
{
	const struct sctp_chunks_param *list = peer->peer.peer_chunks;
	size_t num;

	if (!peer->peer.auth_capable || !list)
		return false;
	num = be16_to_cpu(list->param_hdr.length) - sizeof(list->param_hdr);
	return memchr(list->chunks, SCTP_CID_DATA, num);
}

static void learn_seg_max(struct siw_assoc *assoc,
			  const struct sctp_association *peer)
{
	unsigned int room = SIW_SCTP_BUNDLE_ROOM;
	unsigned int max = peer->frag_point;

	/* SCTP does not subtract this before it has a message */
	if (wants_auth(peer))
		room += SIW_SCTP_AUTH_ROOM;
	max = max > room ? max - room : 0;
	WRITE_ONCE(assoc->seg_max, max_t(unsigned int, max, SIW_SCTP_SEG_MIN));
}

static void learn_up(struct siw_assoc *assoc, const struct sock *sk,
		     const struct sctp_association *peer)
{
	const struct sctp_transport *path = peer->peer.primary_path;

	/* A listener's socket may have had a wildcard address */
	set_addr(&assoc->local, &path->saddr, peer->base.bind_addr.port);
	set_addr(&assoc->remote, &path->ipaddr, peer->peer.port);
	learn_seg_max(assoc, peer);
	assoc->peer = get_remote(sk, &assoc->remote);
	if (assoc->peer)
		assoc->chan[0].rx.share = &assoc->peer->held;
	else
		assoc->err = -ENOMEM;
	/* Without the indication DDP must not be used, RFC 5043 section 11.1 */
	if (peer->peer.adaptation_ind != SIW_SCTP_ADAPTATION)
		assoc->err = -EPROTO;
	assoc->peer_tag = peer->peer.i.init_tag;
	assoc->up = true;
}

/*
 * A peer that restarts from the same addresses takes over our association
 * (RFC 9260 section 5.2). The session is lost, and a Terminate would reach
 * another session.
 */
static void check_restart(struct siw_assoc *assoc,
			  const struct sctp_association *peer)
{
	if (peer->peer.i.init_tag == assoc->peer_tag)
		return;
	assoc->err = assoc->err ?: -ECONNRESET;
	assoc->restarted = true;
}

/* The socket's state does not show that an association is lost */
static int assoc_status(struct siw_assoc *assoc, struct sock *sk)
{
	const struct sctp_association *peer = sctp_assoc_of(sk);

	/* The peer may have shut it down already, before it was accepted */
	if (!assoc->up && peer && peer->state >= SCTP_STATE_ESTABLISHED)
		learn_up(assoc, sk, peer);
	switch (peer ? peer->state : SCTP_STATE_CLOSED) {
	case SCTP_STATE_COOKIE_WAIT:
	case SCTP_STATE_COOKIE_ECHOED:
		return -EINPROGRESS;
	case SCTP_STATE_ESTABLISHED:
		check_restart(assoc, peer);
		return assoc->err;
	default:
		/* Chunks may have arrived before the end: read them first */
		if (assoc->up && !skb_queue_empty(&sk->sk_receive_queue))
			return assoc->err;
		return assoc->err ?: -READ_ONCE(sk->sk_err) ?: -ECONNRESET;
	}
}

static int siw_sctp_status(struct siw_cep *cep)
{
	struct sock *sk = cep->assoc->sock->sk;
	int rv;

	lock_sock(sk);
	rv = assoc_status(cep->assoc, sk);
	release_sock(sk);
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

/* Expires at @when (jiffies) or before. Not after detach, which awaits it. */
static void arm_again(struct siw_assoc *assoc, unsigned long when)
{
	struct sock *sk = assoc->sock->sk;

	read_lock_bh(&sk->sk_callback_lock);
	if (sk_to_cep(sk))
		timer_reduce(&assoc->again, when);
	read_unlock_bh(&sk->sk_callback_lock);
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
	siw_ssn_init(&assoc->chan[0].rx, limit, sk->sk_rcvbuf, &held_pool);
	__skb_queue_head_init(&assoc->chan[0].early);
	init_waitqueue_func_entry(&assoc->space, siw_sctp_space);
	timer_setup(&assoc->again, try_again, 0);
	assoc->sock = s;
	/* The listener's socket still holds a reference */
	assoc->net = get_net(sock_net(sk));
	lock_sock(sk);
	sk->sk_sndbuf = min_t(u32, sk->sk_sndbuf,
			      held_max / SIW_SCTP_SNDBUF_PART);
	assoc_status(assoc, sk);
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
	assoc = new_assoc(s, held_max);
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
	peer = sctp_assoc_of(sk);
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
	assoc->chan[0].rx.limit = held_max;
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
	int rv = send_chunk(s, &assoc->chan[0], SIW_SCTP_PPID_SEGMENT, iov, num,
			    len);

	put_unaligned_be16(length, iov[0].iov_base);
	/* If nothing is under way, no space will be freed */
	if (rv == -ENOMEM ||
	    (rv == -EAGAIN && !READ_ONCE(s->sk->sk_wmem_queued))) {
		arm_again(assoc, jiffies + SIW_SCTP_AGAIN);
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

/**
 * struct siw_first - the first message in a socket
 * @len: its length in bytes, 0 if there is none
 * @ssn: its DDP-SSN, if it has one
 */
struct siw_first {
	size_t len;
	__be16 ssn;
};

static struct siw_first peek_first(struct sock *sk)
{
	struct siw_first first = {};
	const struct sk_buff *skb;

	lock_sock(sk);
	skb = skb_peek(&sk->sk_receive_queue);
	if (skb) {
		first.len = skb->len;
		if (skb->len >= sizeof(first.ssn))
			skb_copy_bits(skb, 0, &first.ssn, sizeof(first.ssn));
	}
	release_sock(sk);
	return first;
}

/* Returns the reason for an empty socket as a negative errno */
static int nothing_came(struct socket *s)
{
	struct msghdr msg = {};
	struct kvec iov;
	u8 byte;
	int rv;

	iov = (struct kvec) { .iov_base = &byte, .iov_len = sizeof(byte) };
	rv = kernel_recvmsg(s, &msg, &iov, 1, sizeof(byte),
			    MSG_DONTWAIT | MSG_PEEK);
	/* Data has arrived meanwhile, and the callback has been called */
	if (rv > 0)
		return -EAGAIN;
	return rv ?: -ECONNRESET;
}

/* Is this a message of RFC 5043? */
static bool read_info(struct msghdr *msg, const struct siw_chan *chan,
		      struct sk_buff *skb)
{
	struct cmsghdr *cmsg = msg->msg_control;
	const struct sctp_rcvinfo *info = CMSG_DATA(cmsg);

	if (cmsg->cmsg_len < CMSG_LEN(sizeof(*info)) ||
	    cmsg->cmsg_level != IPPROTO_SCTP ||
	    cmsg->cmsg_type != SCTP_RCVINFO)
		return false;
	chunk_cb(skb)->ppid = ntohl((__force __be32)info->rcv_ppid);
	return info->rcv_flags & SCTP_UNORDERED &&
	       info->rcv_sid == chan->stream &&
	       (chunk_cb(skb)->ppid == SIW_SCTP_PPID_SEGMENT ||
		chunk_cb(skb)->ppid == SIW_SCTP_PPID_CONTROL);
}

static bool charge_sock(struct sock *sk, struct sk_buff *skb, int cost)
{
	bool charged;

	lock_sock(sk);
	charged = sk_rmem_schedule(sk, skb, cost);
	if (charged)
		sk_mem_charge(sk, cost);
	release_sock(sk);
	return charged;
}

static void uncharge_sock(struct sock *sk, int cost)
{
	lock_sock(sk);
	sk_mem_uncharge(sk, cost);
	release_sock(sk);
}

/* Charges memory of a chunk that is not after a gap. Returns 0 or -ENOBUFS. */
static int charge(struct siw_chan *chan, struct sock *sk, struct sk_buff *skb)
{
	struct siw_ssn_entry *entry = &chunk_cb(skb)->entry;

	entry->cost = skb->truesize;
	if (!charge_sock(sk, skb, entry->cost))
		return -ENOBUFS;
	if (siw_ssn_charge(&chan->rx, entry->cost))
		return 0;
	uncharge_sock(sk, entry->cost);
	return -ENOBUFS;
}

static void uncharge(struct siw_chan *chan, struct sock *sk,
		     struct sk_buff *skb)
{
	siw_ssn_uncharge(&chan->rx, chunk_cb(skb)->entry.cost);
	uncharge_sock(sk, chunk_cb(skb)->entry.cost);
}

static struct sk_buff *take_partial(struct siw_chan *chan, struct sock *sk)
{
	struct sk_buff *skb = chan->partial;

	if (skb)
		uncharge(chan, sk, skb);
	chan->partial = NULL;
	return skb;
}

/*
 * SCTP delivers the first part of a message alone if the window closes before
 * the rest has arrived; the next message in the socket is then the next part.
 * Returns 0 or -ENOBUFS.
 */
static int keep_partial(struct siw_chan *chan, struct sock *sk,
			struct sk_buff *skb)
{
	int rv = charge(chan, sk, skb);

	if (!rv)
		chan->partial = skb;
	return rv;
}

/* May these bytes be next? Called before allocation (RFC 5043 section 10) */
static bool is_possible(const struct siw_chan *chan,
			const struct siw_first *first)
{
	size_t have = chan->partial ? chan->partial->len : 0;

	if (have + first->len > SIW_SCTP_SSN_LEN + U16_MAX)
		return false;
	return have || (first->len >= SIW_SCTP_SSN_LEN &&
			siw_ssn_possible(&chan->rx, be16_to_cpu(first->ssn)));
}

/* Provides room for @len bytes, pad and CRC of an FPDU. NULL: no memory. */
static struct sk_buff *make_room(struct sk_buff *skb, unsigned int len)
{
	len += 2 * MPA_CRC_SIZE;
	if (!skb)
		return alloc_skb(len, GFP_KERNEL);
	if (skb_tailroom(skb) < len &&
	    pskb_expand_head(skb, 0, max(len, skb->len), GFP_KERNEL))
		return NULL;
	return skb;
}

/* Appends to @skb. Returns 1 if it is whole, 0 if not, or a negative errno. */
static int recv_part(struct socket *s, const struct siw_chan *chan,
		     struct sk_buff *skb, size_t len)
{
	union {
		struct cmsghdr hdr;
		u8 room[CMSG_SPACE(sizeof(struct sctp_rcvinfo))];
	} control = {};
	struct msghdr msg = {
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	struct kvec iov;
	int rv;

	iov = (struct kvec) { .iov_base = skb_put(skb, len), .iov_len = len };
	rv = kernel_recvmsg(s, &msg, &iov, 1, len, MSG_DONTWAIT);
	if (rv < 0)
		return rv;
	/* recvmsg has advanced msg_control */
	msg.msg_control = &control;
	if (rv != len || !read_info(&msg, chan, skb))
		return -EPROTO;
	return !!(msg.msg_flags & MSG_EOR);
}

/* Reads one chunk from the socket; ERR_PTR(-EAGAIN) if none has arrived */
static struct sk_buff *recv_chunk(struct socket *s, struct siw_chan *chan)
{
	for (;;) {
		struct siw_first first = peek_first(s->sk);
		struct sk_buff *skb;
		int rv;

		if (!first.len)
			return ERR_PTR(nothing_came(s));
		if (!is_possible(chan, &first))
			return ERR_PTR(-EPROTO);
		skb = make_room(chan->partial, first.len);
		if (!skb)
			return ERR_PTR(-ENOMEM);
		take_partial(chan, s->sk);
		rv = recv_part(s, chan, skb, first.len);
		if (rv > 0) {
			chunk_cb(skb)->entry.ssn =
				get_unaligned_be16(skb->data);
			chunk_cb(skb)->entry.cost = skb->truesize;
			return skb;
		}
		rv = rv ?: keep_partial(chan, s->sk, skb);
		if (rv) {
			kfree_skb(skb);
			return ERR_PTR(rv);
		}
	}
}

/* Holds a chunk after a gap. Returns 0 or a negative errno. */
static int hold_chunk(struct siw_chan *chan, struct sock *sk,
		      struct sk_buff *skb)
{
	struct siw_ssn_entry *entry = &chunk_cb(skb)->entry;
	enum siw_ssn_verdict verdict;

	if (!charge_sock(sk, skb, entry->cost))
		return -ENOBUFS;
	verdict = siw_ssn_offer(&chan->rx, entry);
	if (verdict == SIW_SSN_HELD)
		return 0;
	uncharge_sock(sk, entry->cost);
	return verdict == SIW_SSN_FULL ? -ENOBUFS : -EPROTO;
}

/*
 * Returns the time in jiffies when a gap times out. While SCTP has a missing
 * chunk, a gap may last as long as SCTP retransmits a chunk. Otherwise the
 * sender has changed the order, and SIW_SCTP_GAP_MS applies.
 */
static unsigned long gap_end(struct siw_gap *gap, struct sock *sk)
{
	const struct sctp_association *peer;
	unsigned long end, retries = 0;

	lock_sock(sk);
	peer = sctp_assoc_of(sk);
	if (peer && sctp_tsnmap_has_gap(&peer->peer.tsn_map))
		gap->explained = jiffies;
	if (peer)
		retries = min_t(u64, (u64)peer->rto_max *
				     (peer->max_retrans + 1),
				MAX_JIFFY_OFFSET / 2);
	release_sock(sk);
	end = gap->explained + msecs_to_jiffies(SIW_SCTP_GAP_MS);
	return time_before(gap->since + retries, end) ? gap->since + retries :
							end;
}

/* The socket is empty. Returns -EAGAIN, or -EPROTO if a gap has timed out. */
static int check_gap(struct siw_assoc *assoc, struct siw_chan *chan,
		     struct sock *sk)
{
	struct siw_gap *gap = &chan->gap;
	unsigned long end;

	if (!siw_ssn_holds(&chan->rx)) {
		gap->open = false;
		return -EAGAIN;
	}
	if (!gap->open || gap->next != chan->rx.next)
		*gap = (struct siw_gap) {
			.open = true,
			.next = chan->rx.next,
			.since = jiffies,
			.explained = jiffies,
		};
	end = gap_end(gap, sk);
	if (time_after(jiffies, end))
		return -EPROTO;
	arm_again(assoc, end + 1);
	return -EAGAIN;
}

/*
 * Returns the next chunk in order, or an ERR_PTR: -EAGAIN if it has not
 * arrived, -ENOMEM if allocation fails, -ENOBUFS if a limit of held memory is
 * exceeded, or another error.
 */
static struct sk_buff *next_chunk(struct siw_assoc *assoc)
{
	struct socket *s = assoc->sock;
	struct siw_chan *chan = &assoc->chan[0];
	struct siw_ssn_entry *entry = siw_ssn_take(&chan->rx);
	struct sk_buff *skb;
	int rv;

	if (entry) {
		uncharge_sock(s->sk, entry->cost);
		return entry_skb(entry);
	}
	for (;;) {
		skb = recv_chunk(s, chan);
		if (PTR_ERR(skb) == -EAGAIN)
			return ERR_PTR(check_gap(assoc, chan, s->sk));
		if (IS_ERR(skb))
			return skb;
		entry = &chunk_cb(skb)->entry;
		if (entry->ssn == chan->rx.next) {
			siw_ssn_offer(&chan->rx, entry);
			return skb;
		}
		rv = hold_chunk(chan, s->sk, skb);
		if (rv) {
			kfree_skb(skb);
			return ERR_PTR(rv);
		}
	}
}

/*
 * The active side may send segments as soon as its Initiate was acknowledged
 * (RFC 5043 section 6.6). Keeps them until the ULP's answer. Returns 0 or
 * -ENOBUFS.
 */
static int keep_early(struct siw_chan *chan, struct sock *sk,
		      struct sk_buff *skb)
{
	int rv = charge(chan, sk, skb);

	if (!rv)
		__skb_queue_tail(&chan->early, skb);
	return rv;
}

static struct sk_buff *take_early(struct siw_chan *chan, struct sock *sk)
{
	struct sk_buff *skb = __skb_dequeue(&chan->early);

	if (skb)
		uncharge(chan, sk, skb);
	return skb;
}

static enum iw_mpa_next take_message(struct siw_cep *cep, struct sk_buff *skb)
{
	struct siw_chan *chan = &cep->assoc->chan[0];
	enum iw_mpa_next next;

	if (chunk_cb(skb)->ppid != SIW_SCTP_PPID_CONTROL)
		return iw_mpa_out_of_turn(&cep->mpa);
	next = iw_mpa_rx_message(&cep->mpa, skb->data + SIW_SCTP_SSN_LEN,
				 skb->len - SIW_SCTP_SSN_LEN);
	if (next == IW_MPA_NEXT_FRAME) {
		next = iw_mpa_process(&cep->mpa, false);
		chan->asked = next == IW_MPA_NEXT_WAIT;
		if (chan->asked)
			chan->rx.limit = held_max;
	}
	return next;
}

/* Consumes @skb */
static enum iw_mpa_next take_chunk(struct siw_cep *cep, struct sk_buff *skb)
{
	struct siw_chan *chan = &cep->assoc->chan[0];
	enum iw_mpa_next next = IW_MPA_NEXT_WAIT;
	int rv;

	if (chan->asked && chunk_cb(skb)->ppid == SIW_SCTP_PPID_SEGMENT) {
		rv = keep_early(chan, cep->assoc->sock->sk, skb);
		if (!rv)
			return next;
		next = iw_mpa_abort(&cep->mpa, rv);
	} else {
		next = take_message(cep, skb);
	}
	kfree_skb(skb);
	return next;
}

/* Nothing is read until the ULP answers: checks that the association is up */
static enum iw_mpa_next wait_for_ulp(struct siw_cep *cep)
{
	const struct sctp_association *peer;
	struct sock *sk = cep->assoc->sock->sk;
	bool up;

	lock_sock(sk);
	peer = sctp_assoc_of(sk);
	up = peer && peer->state == SCTP_STATE_ESTABLISHED;
	release_sock(sk);
	return up ? IW_MPA_NEXT_WAIT :
		    iw_mpa_peer_gone(&cep->mpa, -ECONNRESET);
}

static enum iw_mpa_next no_chunk(struct siw_cep *cep, int err)
{
	const struct siw_chan *chan = &cep->assoc->chan[0];

	switch (err) {
	case -ENOMEM:
		arm_again(cep->assoc, jiffies + SIW_SCTP_AGAIN);
		fallthrough;
	case -EAGAIN:
		return IW_MPA_NEXT_WAIT;
	case -ENOBUFS:
		/* Only the Initiate may arrive first */
		if (chan->sent || chan->asked)
			return iw_mpa_abort(&cep->mpa, err);
		fallthrough;
	case -EPROTO:
		return iw_mpa_out_of_turn(&cep->mpa);
	default:
		return iw_mpa_peer_gone(&cep->mpa, err);
	}
}

static enum iw_mpa_next siw_sctp_rx_setup(struct siw_cep *cep)
{
	struct siw_assoc *assoc = cep->assoc;
	enum iw_mpa_next next = IW_MPA_NEXT_WAIT;
	struct sk_buff *skb;

	if (assoc->err)
		return iw_mpa_peer_gone(&cep->mpa, assoc->err);
	while (next == IW_MPA_NEXT_WAIT) {
		if (assoc->chan[0].asked &&
		    assoc->chan[0].rx.cost >= SIW_SCTP_EARLY_MAX)
			return wait_for_ulp(cep);
		skb = next_chunk(assoc);
		if (IS_ERR(skb))
			return no_chunk(cep, PTR_ERR(skb));
		next = take_chunk(cep, skb);
	}
	/* Segments may have arrived directly after the Accept */
	if (next == IW_MPA_NEXT_DONE)
		siw_cm_queue_work(cep, SIW_CM_WORK_READ_MPAHDR);
	return next;
}

/* The session has ended: the endpoint's work reads this from the status */
static void lose_session(struct siw_cep *cep, int err, bool over)
{
	cep->assoc->err = err;
	cep->assoc->chan[0].over = over;
	cep->qp->tx_ctx.tx_suspend = 1;
	siw_cm_queue_work(cep, SIW_CM_WORK_PEER_CLOSE);
}

/* Passes the segment to the QP as an FPDU. Returns false if it is truncated. */
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
	bool terminate;

	terminate = iw_mpa_sctp_is_terminate(skb->data + SIW_SCTP_SSN_LEN,
					     skb->len - SIW_SCTP_SSN_LEN);

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
	skb = take_early(&assoc->chan[0], cep->assoc->sock->sk) ?:
	      next_chunk(assoc);
	if (IS_ERR(skb)) {
		if (PTR_ERR(skb) == -ENOMEM)
			arm_again(assoc, jiffies + SIW_SCTP_AGAIN);
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
 * Passes received segments to the QP. A holder of the QP's lock may wait for
 * the endpoint, which is in use here, so this does not wait for the lock.
 */
static void siw_sctp_pump(struct siw_cep *cep)
{
	struct siw_qp *qp = cep->qp;
	bool more = true;
	int i;

	if (!qp)
		return;
	for (i = 0; i < SIW_SCTP_RX_BATCH && more; i++) {
		/* Receiving has ended: do not queue the work again */
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

/* The session has ended: held chunks are not processed */
static void free_held(struct siw_assoc *assoc)
{
	struct sock *sk = assoc->sock->sk;
	struct siw_ssn_entry *entry;
	struct sk_buff *skb;
	int cost = 0;

	kfree_skb(take_partial(&assoc->chan[0], sk));
	while ((skb = take_early(&assoc->chan[0], sk)))
		kfree_skb(skb);
	while ((entry = siw_ssn_drop(&assoc->chan[0].rx))) {
		cost += entry->cost;
		kfree_skb(entry_skb(entry));
	}
	uncharge_sock(sk, cost);
}

/* To be called after the socket is released */
static void free_assoc(struct siw_assoc *assoc)
{
	put_net(assoc->net);
	put_remote(assoc->peer);
	kfree(assoc);
}

/*
 * Received data has no reader any more, but unread data would make close()
 * abort. The limit ensures that the deadline also ends an association whose
 * peer sends as fast as this reads. Returns whether there was data.
 */
static bool discard_data(struct socket *s)
{
	int i;

	for (i = 0; i < SIW_SCTP_DISCARD_BATCH; i++) {
		struct msghdr msg = {};
		struct kvec iov;
		u8 buf[256];

		if (!peek_first(s->sk).len)
			break;

		iov = (struct kvec) { .iov_base = buf, .iov_len = sizeof(buf) };
		if (kernel_recvmsg(s, &msg, &iov, 1, sizeof(buf),
				   MSG_DONTWAIT) <= 0)
			break;
	}
	return i > 0;
}

/* Is the association shut down, or does the peer acknowledge no more data? */
static bool is_drained(struct siw_assoc *assoc, struct sock *sk)
{
	const struct sctp_association *peer;
	int unacked = 0;
	bool gone;

	lock_sock(sk);
	peer = sctp_assoc_of(sk);
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
	peer = sctp_assoc_of(sk);
	if (peer) {
		may = may || peer->ctsn_ack_point + 1 != peer->c.initial_tsn;
		check_restart(assoc, peer);
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
	assoc->poll_ms = discard_data(s) ? SIW_SCTP_POLL_MIN_MS :
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
	assoc_status(assoc, sk);
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
		free_held(assoc);
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
	held_pool.max = min_t(unsigned long,
			      totalram_pages() / SIW_SCTP_HELD_PART,
			      LONG_MAX >> PAGE_SHIFT) << PAGE_SHIFT;
	held_max = min_t(long, SIW_SCTP_HELD_MAX,
			 siw_ssn_share_max(&held_pool));
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
