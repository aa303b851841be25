// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * SCTP's own state of an association, and the remote addresses that
 * associations share.
 */
#include <linux/hashtable.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <net/ipv6.h>
#include <net/net_namespace.h>
#include <net/sctp/sctp.h>
#include <net/sctp/sm.h>
#include <net/sctp/structs.h>
#include <net/sock.h>
#include <rdma/ib_addr.h>

#include "siw.h"
#include "siw_assoc.h"
#include "siw_cm.h"

/* Room for control chunks in the same packet, RFC 5043 section 9 */
#define SIW_SCTP_BUNDLE_ROOM	32U
/* An AUTH chunk with SHA-256 */
#define SIW_SCTP_AUTH_ROOM	40

struct siw_ssn_pool siw_held_pool;
/* SIW_SCTP_HELD_MAX, or less on a small host */
u32 siw_held_max __ro_after_init;
struct workqueue_struct *siw_sctp_reader_wq;
static DEFINE_HASHTABLE(remotes, 8);
/* The table and its reference counts */
static DEFINE_SPINLOCK(remotes_lock);

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
	struct siw_remote *fresh = kzalloc_obj(*fresh, GFP_NOIO);
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

void siw_remote_put(struct siw_remote *remote)
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

struct sctp_association *siw_assoc_sctp(const struct sock *sk)
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

/*
 * The largest message that SCTP does not fragment. If an ICMP message lowers
 * the path MTU while the socket is owned, sendmsg() compares the next message
 * with the old limit, and then fragments it to fit the new MTU. The limit also
 * ignores an AUTH chunk.
 */
unsigned int siw_assoc_frag_point(const struct sctp_association *peer)
{
	const struct sctp_transport *path;
	unsigned int less;
	u32 mtu = peer->pathmtu;

	if (peer->pmtu_pending)
		list_for_each_entry(path, &peer->peer.transport_addr_list,
				    transports)
			if (path->pmtu_pending)
				mtu = min_t(u32, mtu,
					    atomic_read(&path->mtu_info));
	less = peer->pathmtu - mtu;
	if (wants_auth(peer))
		less += SIW_SCTP_AUTH_ROOM;
	return peer->frag_point - min_t(u32, peer->frag_point, less);
}

void siw_assoc_learn_seg_max(struct siw_assoc *assoc,
			     const struct sctp_association *peer)
{
	unsigned int max = siw_assoc_frag_point(peer);

	max -= min(max, SIW_SCTP_BUNDLE_ROOM);
	WRITE_ONCE(assoc->seg_max, max_t(unsigned int, max, SIW_SCTP_SEG_MIN));
}

/* How many pairs of streams are there? Sessions charge their windows from now */
static void learn_streams(struct siw_assoc *assoc,
			  const struct sctp_association *peer)
{
	struct siw_chan *chan;
	unsigned long flags;

	WRITE_ONCE(assoc->n_streams, min3(peer->stream.outcnt,
					  peer->stream.incnt,
					  assoc->max_streams));
	if (!assoc->peer)
		return;
	spin_lock_irqsave(&assoc->lock, flags);
	list_for_each_entry(chan, &assoc->sessions, node) {
		chan->rx.share = &assoc->peer->held;
		chan->queue.share = &assoc->peer->held;
	}
	spin_unlock_irqrestore(&assoc->lock, flags);
}

/* SCTP sets no scope ID in its own address: it is that of the peer's address */
static void set_local(struct siw_assoc *assoc,
		      const struct sctp_transport *path, u16 port)
{
	union sctp_addr addr = path->saddr;

	if (addr.sa.sa_family == AF_INET6)
		addr.v6.sin6_scope_id = path->ipaddr.v6.sin6_scope_id;
	set_addr(&assoc->local, &addr, port);
}

static void learn_up(struct siw_assoc *assoc, const struct sock *sk,
		     const struct sctp_association *peer)
{
	const struct sctp_transport *path = peer->peer.primary_path;

	/* A listener's socket may have had a wildcard address */
	set_local(assoc, path, peer->base.bind_addr.port);
	set_addr(&assoc->remote, &path->ipaddr, peer->peer.port);
	siw_assoc_learn_seg_max(assoc, peer);
	assoc->peer = get_remote(sk, &assoc->remote);
	if (!assoc->peer)
		assoc->err = -ENOMEM;
	learn_streams(assoc, peer);
	/* Without the indication DDP must not be used, RFC 5043 section 11.1 */
	if (peer->peer.adaptation_ind != SIW_SCTP_ADAPTATION)
		assoc->err = -EPROTO;
	assoc->peer_tag = peer->peer.i.init_tag;
	/* Pairs with siw_sctp_addrs() */
	smp_store_release(&assoc->up, true);
}

/*
 * A peer that restarts from the same addresses takes over our association
 * (RFC 9260 section 5.2). The session is lost, and a Terminate would reach
 * another session.
 */
void siw_assoc_check_restart(struct siw_assoc *assoc,
			     const struct sctp_association *peer)
{
	if (peer->peer.i.init_tag == assoc->peer_tag)
		return;
	assoc->err = assoc->err ?: -ECONNRESET;
	assoc->restarted = true;
}

/*
 * Have chunks arrived in order that the session has not processed, or any that
 * are not assigned to a session? @chan is %NULL if there is none. The caller
 * holds rx_mutex, or nothing reads: no chunk is between two of these queues.
 */
static bool has_unread(const struct siw_chan *chan, const struct sock *sk)
{
	if (!skb_queue_empty(&sk->sk_receive_queue))
		return true;
	if (!chan)
		return false;
	return !skb_queue_empty_lockless(&chan->ready) ||
	       (READ_ONCE(chan->established) &&
		(!skb_queue_empty_lockless(&chan->early) ||
		 siw_ssn_has_next(&chan->rx)));
}

/*
 * The socket's state does not show that an association is lost. If a listener's
 * association ends before it is accepted, SCTP keeps it, in state CLOSED: its
 * Initiate is processed like one that has arrived just before the end.
 */
int siw_assoc_status(struct siw_assoc *assoc, const struct siw_chan *chan,
		     struct sock *sk)
{
	const struct sctp_association *peer = siw_assoc_sctp(sk);

	if (peer && (peer->state == SCTP_STATE_COOKIE_WAIT ||
		     peer->state == SCTP_STATE_COOKIE_ECHOED))
		return -EINPROGRESS;
	if (peer && !assoc->up)
		learn_up(assoc, sk, peer);
	if (peer && peer->state == SCTP_STATE_ESTABLISHED) {
		siw_assoc_check_restart(assoc, peer);
		return assoc->err;
	}
	/* Chunks may have arrived before the end: read them first */
	if (assoc->up && has_unread(chan, sk))
		return assoc->err;
	return assoc->err ?: assoc->end_err ?: -READ_ONCE(sk->sk_err) ?:
	       -ECONNRESET;
}

bool siw_assoc_established(const struct sock *sk)
{
	const struct sctp_association *peer = siw_assoc_sctp(sk);

	return peer && peer->state == SCTP_STATE_ESTABLISHED;
}

/*
 * Does SCTP retransmit, with delays that grow? During the handshake as well.
 * Takes the socket's lock.
 */
bool siw_assoc_backed_off(struct sock *sk)
{
	const struct sctp_association *peer;
	bool backed_off;

	lock_sock(sk);
	peer = siw_assoc_sctp(sk);
	if (peer && peer->state < SCTP_STATE_ESTABLISHED)
		backed_off = peer->init_err_counter;
	else
		backed_off = peer && peer->state == SCTP_STATE_ESTABLISHED &&
			     peer->overall_error_count;
	release_sock(sk);
	return backed_off;
}

/*
 * The TSN of the last chunk that SCTP has been given, or of a later one: it
 * assigns the numbers when it sends.
 */
u32 siw_assoc_tail_tsn(struct sock *sk)
{
	const struct sctp_association *peer;
	const struct list_head *pos;
	u32 tsn = 0;

	lock_sock(sk);
	peer = siw_assoc_sctp(sk);
	if (peer) {
		tsn = peer->next_tsn - 1;
		list_for_each(pos, &peer->outqueue.out_chunk_list)
			tsn++;
	}
	release_sock(sk);
	return tsn;
}

/* Has the peer acknowledged this chunk and all before it? */
bool siw_assoc_acked(struct sock *sk, u32 tsn)
{
	const struct sctp_association *peer;
	bool acked;

	lock_sock(sk);
	peer = siw_assoc_sctp(sk);
	acked = !peer || siw_ssn_is_acked(tsn, peer->ctsn_ack_point);
	release_sock(sk);
	return acked;
}

/* ---- work */

/* Starts the reader. Any context. */
void siw_assoc_read(struct siw_assoc *assoc)
{
	queue_work(siw_sctp_reader_wq, &assoc->reader);
}

/* Expires at @when (jiffies) or before. Not after close, which awaits it. */
void siw_assoc_again(struct siw_assoc *assoc, unsigned long when)
{
	struct sock *sk = assoc->sock->sk;

	read_lock_bh(&sk->sk_callback_lock);
	if (siw_sk_to_assoc(sk))
		timer_reduce(&assoc->again, when);
	read_unlock_bh(&sk->sk_callback_lock);
}

/* The endpoint, if the session has one, looks for chunks. Any context. */
void siw_chan_wake(struct siw_chan *chan)
{
	unsigned long flags;

	spin_lock_irqsave(&chan->assoc->lock, flags);
	if (chan->cep)
		siw_cm_queue_work(chan->cep, SIW_CM_WORK_READ_MPAHDR);
	spin_unlock_irqrestore(&chan->assoc->lock, flags);
}
