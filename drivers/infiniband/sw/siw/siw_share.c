// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Associations that several sessions share (RFC 5043 sections 6 and 7).
 *
 * A connect to a peer and port with which there is an association begins a
 * session on one of its streams, which takes one round trip. Connects during the
 * handshake wait for it. If all streams are in use, the peer offers fewer, or
 * SCTP retransmits, a connect gets another association. An Initiate of the peer
 * on an unused stream is a connection request for the listener of the
 * association's local address and port.
 *
 * The end of a session is not the end of the association. Both sides send a
 * Terminate. A stream is used again when the peer's last message and all
 * messages before it have arrived, and ours are acknowledged. The last session
 * leaves the association to the next connects for some time. The side that has
 * opened it ends it first: otherwise a connect may meet the peer's shutdown. The
 * number of associations without a session is limited. The stream of a
 * rejected session is used again by the peer alone, which may have sent segments
 * already and ends with no Terminate.
 *
 * The keeper, a work item of each association, sends the Terminates, frees
 * streams and ends the association. Storage may be connected here: what connects
 * and ends allocates memory without I/O.
 *
 * Locks: dial_mutex, then rx_mutex, then table_lock, then an association's lock.
 * An endpoint in use may wait for each of them.
 */
#include <linux/hashtable.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/wait_bit.h>
#include <linux/workqueue.h>
#include <net/ipv6.h>
#include <net/net_namespace.h>
#include <net/sock.h>
#include <rdma/ib_addr.h>

#include "siw.h"
#include "siw_assoc.h"
#include "siw_cm.h"
#include "siw_ssn.h"

/*
 * Limits of associations without sessions: of those that we have opened, of
 * those that peers have opened, and of the latter for each remote address.
 * Beyond a limit, an association ends at once.
 */
#define SIW_SHARE_IDLE_MAX		1024
#define SIW_SHARE_IDLE_SHARE		256
/* Limit of a listener's sessions without an endpoint: more are terminated */
#define SIW_SHARE_PENDING_MAX		4096
/* Milliseconds between attempts to send a Terminate */
#define SIW_SHARE_POLL_MIN_MS		20U
#define SIW_SHARE_POLL_MAX_MS		320U

static DEFINE_HASHTABLE(associations, 8);
static LIST_HEAD(listeners);
static unsigned int n_ending;
static unsigned int n_idle[2]; /* of peers, of our own */
/* The table and list, the counts of sessions, and those without endpoint */
static DEFINE_SPINLOCK(table_lock);
/* Connects that would open an association to the same peer */
static DEFINE_MUTEX(dial_mutex);

static struct ib_client device_client;

static void keep(struct work_struct *work);

static struct siw_assoc *share_assoc(struct siw_share *share)
{
	return container_of(share, struct siw_assoc, share);
}

/* ---- addresses */

static bool same_ip(const struct sockaddr_storage *a,
		    const struct sockaddr_storage *b)
{
	const struct sockaddr_in6 *a6 = (const void *)a, *b6 = (const void *)b;

	if (a->ss_family != b->ss_family)
		return false;
	if (a->ss_family == AF_INET)
		return ((const struct sockaddr_in *)a)->sin_addr.s_addr ==
		       ((const struct sockaddr_in *)b)->sin_addr.s_addr;
	return ipv6_addr_equal(&a6->sin6_addr, &b6->sin6_addr) &&
	       ipv6_iface_scope_id(&a6->sin6_addr, a6->sin6_scope_id) ==
	       ipv6_iface_scope_id(&b6->sin6_addr, b6->sin6_scope_id);
}

/* The port has the same place in addresses of both families */
static __be16 port_of(const struct sockaddr_storage *ss)
{
	return ((const struct sockaddr_in *)ss)->sin_port;
}

static bool same_end(const struct sockaddr_storage *a,
		     const struct sockaddr_storage *b)
{
	return same_ip(a, b) && port_of(a) == port_of(b);
}

/* In the table, associations with the same peer and port are together */
static u32 key_of(const struct sockaddr_storage *remote)
{
	u32 ip = remote->ss_family == AF_INET ?
		 (__force u32)((const struct sockaddr_in *)remote)->sin_addr.s_addr :
		 ipv6_addr_hash(&((const struct sockaddr_in6 *)remote)->sin6_addr);

	return ip ^ (__force u32)port_of(remote);
}

static void copy_addr(struct sockaddr_storage *to, const struct sockaddr *from)
{
	memset(to, 0, sizeof(*to));
	memcpy(to, from, rdma_addr_size((struct sockaddr *)from));
}

/* ---- streams; under rx_mutex */

void siw_share_bind(struct siw_chan *chan, u16 stream)
{
	struct siw_share *share = &chan->assoc->share;

	chan->stream = stream;
	chan->bound = true;
	share->chan[stream] = chan;
	share->used = true;
}

/*
 * Frees a closed session and its stream. If the endpoint has not left a rejected
 * session yet, it frees the session later.
 */
void siw_share_unbind(struct siw_chan *chan)
{
	struct siw_share *share = &chan->assoc->share;

	share->chan[chan->stream] = NULL;
	if (!chan->closed) {
		chan->bound = false;
		return;
	}
	WRITE_ONCE(share->n_closed, share->n_closed - 1);
	kfree(chan);
}

static int bind_free(struct siw_chan *chan)
{
	struct siw_assoc *assoc = chan->assoc;
	int stream = siw_stream_pick((void **)assoc->share.chan,
				     assoc->n_streams, assoc->share.active);

	if (stream < 0)
		return -EXFULL;
	siw_share_bind(chan, stream);
	return 0;
}

/* Have both sides sent their last message, and has the peer's arrived? */
static bool is_over(const struct siw_chan *chan)
{
	return chan->tx_last && chan->rx_last &&
	       chan->rx_seen == (u16)(chan->rx_last_ssn + 1);
}

/* Returns whether a Terminate is due that cannot be sent yet */
bool siw_share_owes(struct siw_assoc *assoc)
{
	struct siw_chan *chan;
	bool owes = false;
	unsigned int i;

	for (i = 0; i < assoc->max_streams && assoc->share.n_closed; i++) {
		chan = assoc->share.chan[i];
		if (chan && chan->closed)
			owes |= siw_chan_owes(chan);
	}
	return owes;
}

/*
 * Frees the streams that may be used again, RFC 5043 section 6.6. Returns
 * whether one only waits for the acknowledgment of our last message.
 */
static bool free_streams(struct siw_assoc *assoc)
{
	struct siw_chan *chan;
	bool awaits = false;
	unsigned int i;

	for (i = 0; i < assoc->max_streams && assoc->share.n_closed; i++) {
		chan = assoc->share.chan[i];
		if (!chan || !chan->closed || chan->owes_terminate)
			continue;
		if (assoc->share.lost ||
		    (is_over(chan) &&
		     siw_assoc_acked(assoc->sock->sk, chan->last_tsn)))
			siw_share_unbind(chan);
		else
			awaits |= is_over(chan);
	}
	return awaits;
}

/*
 * Is a Terminate due? Peers with one stream end a session with the association
 * and expect only one Terminate.
 */
static bool needs_terminate(const struct siw_chan *chan)
{
	if (chan->tx_last || chan->rx_reject)
		return false;
	if (chan->assoc->n_streams < 2)
		return chan->owes_terminate;
	return true;
}

/* The endpoint has left the session. Returns whether its stream stays in use. */
static bool close_session(struct siw_chan *chan)
{
	struct siw_assoc *assoc = chan->assoc;
	struct siw_share *share = &assoc->share;

	if (share->blocked == chan)
		share->blocked = NULL;
	if (share->spare == chan)
		share->spare = NULL;
	if (!chan->bound)
		return false;
	chan->closed = true;
	WRITE_ONCE(share->n_closed, share->n_closed + 1);
	if (share->lost || assoc->err || (!chan->sent && !chan->rx_seen)) {
		siw_share_unbind(chan);
		return true;
	}
	chan->owes_terminate = needs_terminate(chan);
	/* After a Reject, our Initiate was the last message */
	if (chan->rx_reject && !chan->tx_last) {
		chan->tx_last = true;
		chan->last_tsn = chan->first_tsn;
	}
	return true;
}

/* ---- associations */

int siw_share_init_assoc(struct siw_assoc *assoc)
{
	struct siw_share *share = &assoc->share;

	INIT_HLIST_NODE(&share->hash);
	INIT_DELAYED_WORK(&share->keeper, keep);
	/* One send buffer of the peer is for all of them: as much as for one */
	share->held.max = siw_held_max;
	/* The first session */
	share->n_live = 1;
	share->chan = kcalloc(assoc->max_streams, sizeof(*share->chan),
			      GFP_KERNEL);
	return share->chan ? 0 : -ENOMEM;
}

void siw_share_free_chunks(struct siw_assoc *assoc)
{
	struct siw_share *share = &assoc->share;
	struct sock *sk = assoc->sock->sk;

	if (!share->partial)
		return;
	lock_sock(sk);
	sk_mem_uncharge(sk, share->partial->truesize);
	release_sock(sk);
	kfree_skb(share->partial);
	share->partial = NULL;
}

void siw_share_free_assoc(struct siw_assoc *assoc)
{
	unsigned int i;

	if (!assoc->share.chan)
		return;
	for (i = 0; i < assoc->max_streams; i++)
		kfree(assoc->share.chan[i]);
	kfree(assoc->share.chan);
}

void siw_share_kick(struct siw_assoc *assoc)
{
	mod_delayed_work(siw_closing_wq, &assoc->share.keeper, 0);
}

/*
 * The association has no session. Returns whether it may stay. Under table_lock.
 */
static bool begin_idle(struct siw_assoc *assoc)
{
	struct siw_share *share = &assoc->share;

	if (n_idle[share->active] >= SIW_SHARE_IDLE_MAX)
		return false;
	if (!share->active) {
		if (!assoc->peer || assoc->peer->n_idle >= SIW_SHARE_IDLE_SHARE)
			return false;
		assoc->peer->n_idle++;
	}
	n_idle[share->active]++;
	share->idle = true;
	return true;
}

/* Under table_lock */
static void end_idle(struct siw_assoc *assoc)
{
	struct siw_share *share = &assoc->share;

	if (!share->idle)
		return;
	share->idle = false;
	n_idle[share->active]--;
	if (!share->active)
		assoc->peer->n_idle--;
}

/* Reserves a session. Under table_lock. */
static void enter(struct siw_assoc *assoc)
{
	assoc->share.n_live++;
	end_idle(assoc);
}

/*
 * A session has ended, and the association may stay without one, for @most
 * seconds. The last session leaves it to the keeper.
 */
static void leave_for(struct siw_assoc *assoc, unsigned int most)
{
	struct siw_share *share = &assoc->share;
	unsigned int seconds;

	spin_lock(&table_lock);
	seconds = min(most, share->idle_s);
	share->n_live--;
	if (!share->n_live && !begin_idle(assoc))
		seconds = 0;
	share->idle_end = jiffies + seconds * HZ;
	/* Without a session, the keeper may free the association from now on */
	siw_share_kick(assoc);
	spin_unlock(&table_lock);
}

static void leave(struct siw_assoc *assoc)
{
	leave_for(assoc, UINT_MAX);
}

void siw_share_close(struct siw_chan *chan)
{
	struct siw_assoc *assoc = chan->assoc;
	bool bound, broken;

	mutex_lock(&assoc->rx_mutex);
	siw_chan_unlist(chan);
	/* The peer has violated the protocol: it gets no time without session */
	broken = chan->rx_err == -EPROTO || chan->err == -EPROTO;
	bound = close_session(chan);
	mutex_unlock(&assoc->rx_mutex);
	if (!bound)
		kfree(chan);
	/* The reader may go on */
	siw_assoc_read(assoc);
	if (broken)
		leave_for(assoc, 0);
	else
		leave(assoc);
}

/* Takes an association that is to end out of the table */
static bool take_ended(struct siw_assoc *assoc, int status)
{
	struct siw_share *share = &assoc->share;
	bool ends;

	spin_lock(&table_lock);
	ends = !share->n_live &&
	       (status || assoc->n_streams < 2 || !share->used ||
		time_after_eq(jiffies, share->idle_end));
	if (ends) {
		/* The reader may still find an Initiate: no session begins */
		share->ending = true;
		end_idle(assoc);
		hash_del(&share->hash);
		n_ending++;
	}
	spin_unlock(&table_lock);
	return ends;
}

/*
 * Sends and frees what it can. Sets when to do so again, in jiffies, or 0.
 * Returns the status of the association.
 */
static int keep_sessions(struct siw_assoc *assoc, unsigned long *again)
{
	struct siw_share *share = &assoc->share;
	struct sock *sk = assoc->sock->sk;
	bool owes, awaits;
	int status;

	*again = 0;
	mutex_lock(&assoc->rx_mutex);
	/* Before looking: an acknowledgment from now on starts the keeper */
	WRITE_ONCE(share->awaits_ack, true);
	lock_sock(sk);
	status = siw_assoc_status(assoc, NULL, sk);
	release_sock(sk);
	owes = !share->lost && siw_share_owes(assoc);
	if (owes) {
		share->poll_ms = clamp(2 * share->poll_ms,
				       SIW_SHARE_POLL_MIN_MS,
				       SIW_SHARE_POLL_MAX_MS);
		*again = jiffies + msecs_to_jiffies(share->poll_ms);
	} else {
		share->poll_ms = 0;
	}
	awaits = free_streams(assoc);
	WRITE_ONCE(share->awaits_ack, owes || awaits);
	mutex_unlock(&assoc->rx_mutex);
	return status;
}

static void keep_assoc(struct siw_assoc *assoc)
{
	struct siw_share *share = &assoc->share;
	unsigned long again;
	int status = keep_sessions(assoc, &again);

	if (take_ended(assoc, status)) {
		siw_assoc_end(assoc);
		spin_lock(&table_lock);
		n_ending--;
		spin_unlock(&table_lock);
		wake_up_var(&n_ending);
		return;
	}
	spin_lock(&table_lock);
	if (!share->n_live && (!again || time_before(share->idle_end, again)))
		again = share->idle_end;
	spin_unlock(&table_lock);
	if (again)
		queue_delayed_work(siw_closing_wq, &share->keeper,
				   time_after(again, jiffies) ?
				   again - jiffies : 0);
}

static void keep(struct work_struct *work)
{
	struct siw_share *share = container_of(to_delayed_work(work),
					       struct siw_share, keeper);
	unsigned int flags = memalloc_noio_save();

	keep_assoc(share_assoc(share));
	memalloc_noio_restore(flags);
}

/*
 * The caller has an endpoint of the device, which may still connect after
 * remove_device(): then the association ends with its session.
 */
static void list_assoc(struct siw_assoc *assoc, struct ib_device *device)
{
	struct siw_share *share = &assoc->share;

	share->device = device;
	spin_lock(&table_lock);
	hash_add(associations, &share->hash, key_of(&share->remote));
	if (!ib_get_client_data(device, &device_client))
		share->idle_s = 0;
	spin_unlock(&table_lock);
}

/* A listener has accepted the association: it has a session without stream */
void siw_share_accepted(struct siw_assoc *assoc, struct ib_device *device)
{
	struct siw_share *share = &assoc->share;

	share->local = assoc->local;
	share->remote = assoc->remote;
	share->dialed = true;
	list_assoc(assoc, device);
}

/* ---- active side */

static bool has_room(const struct siw_assoc *assoc)
{
	const struct siw_share *share = &assoc->share;

	if (READ_ONCE(share->closed_to_new) || share->lost)
		return false;
	/* Pairs with learn_up() */
	if (smp_load_acquire(&assoc->up))
		return assoc->n_streams > 1 &&
		       share->n_live + READ_ONCE(share->n_closed) <
		       assoc->n_streams;
	return !share->alone && share->n_live < assoc->max_streams;
}

/*
 * Returns an association to the peer, in which a session is reserved, or NULL:
 * the first one, or one after @last, in which a session is reserved.
 */
static struct siw_assoc *find_assoc(const struct net *net,
				    const struct sockaddr_storage *local,
				    const struct sockaddr_storage *remote,
				    const struct siw_assoc *last)
{
	u32 bucket = hash_min(key_of(remote), HASH_BITS(associations));
	struct siw_assoc *found = NULL;
	struct hlist_node *node;
	struct siw_share *share;

	spin_lock(&table_lock);
	node = last ? last->share.hash.next : associations[bucket].first;
	share = hlist_entry_safe(node, struct siw_share, hash);
	hlist_for_each_entry_from(share, hash) {
		if (share_assoc(share)->net != net ||
		    !same_ip(&share->local, local) ||
		    !same_end(&share->remote, remote) ||
		    !has_room(share_assoc(share)))
			continue;
		found = share_assoc(share);
		enter(found);
		break;
	}
	spin_unlock(&table_lock);
	return found;
}

/*
 * Like find_assoc(), but one that does not retransmit: a connect would wait for
 * the next attempt, which may take up to a minute.
 */
static struct siw_assoc *find_swift(const struct net *net,
				    const struct sockaddr_storage *local,
				    const struct sockaddr_storage *remote)
{
	struct siw_assoc *assoc = find_assoc(net, local, remote, NULL), *next;

	while (assoc && siw_assoc_backed_off(assoc->sock->sk)) {
		next = find_assoc(net, local, remote, assoc);
		leave(assoc);
		assoc = next;
	}
	return assoc;
}

/* Connects wait for this with dial_mutex: reclaim must not need one of them */
static struct siw_assoc *make_assoc(struct net *net, unsigned int streams,
				    unsigned int idle_s,
				    const struct sockaddr_storage *local,
				    const struct sockaddr_storage *remote)
{
	unsigned int flags = memalloc_noio_save();
	struct siw_assoc *assoc = siw_assoc_make(net, local->ss_family, streams,
						 true);

	memalloc_noio_restore(flags);
	if (IS_ERR(assoc))
		return assoc;
	assoc->share.local = *local;
	assoc->share.remote = *remote;
	assoc->share.active = true;
	assoc->share.idle_s = idle_s;
	return assoc;
}

/* Begins a session, for which the caller has a reservation */
static int add_session(struct siw_cep *cep, struct siw_assoc *assoc,
		       bool joined)
{
	struct siw_chan *chan = siw_chan_new(assoc);

	if (!chan) {
		leave(assoc);
		return -ENOMEM;
	}
	chan->joined = joined;
	WRITE_ONCE(cep->chan, chan);
	siw_chan_attach(chan, cep, siw_held_max);
	return 0;
}

int siw_share_join(struct siw_cep *cep, struct net *net, struct sockaddr *laddr,
		   struct sockaddr *raddr)
{
	unsigned int streams = iw_mpa_session_streams(&cep->mpa);
	struct sockaddr_storage local, remote;
	struct siw_assoc *assoc;
	bool joined;

	if (streams < 2)
		return -ENOENT;
	copy_addr(&local, laddr);
	copy_addr(&remote, raddr);
	mutex_lock(&dial_mutex);
	assoc = find_swift(net, &local, &remote);
	joined = assoc;
	if (!joined) {
		assoc = make_assoc(net, streams,
				   iw_mpa_session_idle(&cep->mpa), &local,
				   &remote);
		if (!IS_ERR(assoc))
			list_assoc(assoc, &cep->sdev->base_dev);
	}
	mutex_unlock(&dial_mutex);
	return IS_ERR(assoc) ? PTR_ERR(assoc) :
			       add_session(cep, assoc, joined);
}

/*
 * The port of the ULP's identifier is not used: the association outlives the
 * identifier.
 */
static int dial_once(struct siw_assoc *assoc)
{
	struct siw_share *share = &assoc->share;
	struct sockaddr_storage local = share->local;
	unsigned int flags = memalloc_noio_save();
	int rv;

	((struct sockaddr_in *)&local)->sin_port = 0;
	rv = siw_assoc_dial(assoc, (struct sockaddr *)&local,
			    (struct sockaddr *)&share->remote, share->afonly,
			    false);
	memalloc_noio_restore(flags);
	if (rv) {
		assoc->err = rv;
		WRITE_ONCE(share->closed_to_new, true);
	}
	WRITE_ONCE(share->dialed, true);
	return rv;
}

int siw_share_connect(struct siw_cep *cep, struct sockaddr *laddr,
		      struct sockaddr *raddr, bool afonly)
{
	struct siw_assoc *assoc = cep->chan->assoc;
	int rv = 0;

	mutex_lock(&dial_mutex);
	if (!assoc->share.dialed) {
		assoc->share.afonly = afonly;
		rv = dial_once(assoc);
		if (rv)
			siw_assoc_report(assoc, true);
	}
	mutex_unlock(&dial_mutex);
	/* The association may be up, or lost, already */
	siw_cm_queue_work(cep, SIW_CM_WORK_CONNECTED);
	siw_cm_queue_work(cep, SIW_CM_WORK_PEER_CLOSE);
	return rv;
}

/* The endpoint leaves its session for one in @assoc, where it is reserved */
static int change_session(struct siw_cep *cep, struct siw_assoc *assoc,
			  bool joined)
{
	struct siw_chan *old = cep->chan, *chan = siw_chan_new(assoc);

	if (!chan) {
		leave(assoc);
		return -ENOMEM;
	}
	siw_sctp_detach(cep);
	/* The end of the old association may have suspended it */
	if (cep->qp)
		cep->qp->tx_ctx.tx_suspend = 0;
	chan->joined = joined;
	WRITE_ONCE(cep->chan, chan);
	siw_chan_attach(chan, cep, siw_held_max);
	siw_share_close(old);
	return 0;
}

/* Instead of the one of @cep */
static struct siw_assoc *make_another(const struct siw_cep *cep)
{
	const struct siw_assoc *old = cep->chan->assoc;
	struct siw_assoc *assoc = make_assoc(old->net, old->max_streams,
					     old->share.idle_s,
					     &old->share.local,
					     &old->share.remote);

	if (IS_ERR(assoc))
		return assoc;
	assoc->share.alone = true;
	assoc->share.afonly = old->share.afonly;
	list_assoc(assoc, &cep->sdev->base_dev);
	return assoc;
}

/* The association has no stream for the session: it gets one of its own */
static int move(struct siw_cep *cep)
{
	struct siw_assoc *assoc = make_another(cep);
	int rv;

	if (IS_ERR(assoc))
		return PTR_ERR(assoc);
	rv = change_session(cep, assoc, false) ?:
	     siw_share_connect(cep, NULL, NULL, assoc->share.afonly);
	return rv ?: -EINPROGRESS;
}

/*
 * A session without a stream has joined an association that has ended since: it
 * tries one of its own. Peers that do not use DDP would refuse this one as well.
 */
static bool needs_another(const struct siw_chan *chan, int status, bool up)
{
	return chan->joined && !chan->bound && chan->assoc->up && !up &&
	       status != -EINPROGRESS && status != -EPROTO;
}

int siw_share_status(struct siw_cep *cep)
{
	struct siw_chan *chan = cep->chan;
	struct siw_assoc *assoc = chan->assoc;
	struct sock *sk = assoc->sock->sk;
	bool up;
	int rv;

	if (!READ_ONCE(assoc->share.dialed))
		return -EINPROGRESS;
	mutex_lock(&assoc->rx_mutex);
	lock_sock(sk);
	rv = siw_assoc_status(assoc, chan, sk);
	up = siw_assoc_established(sk) && !assoc->restarted;
	release_sock(sk);
	if (needs_another(chan, rv, up))
		rv = -EXFULL;
	else if (rv && rv != -EINPROGRESS && assoc->up)
		siw_chan_end(chan, rv);
	else if (!rv && !chan->bound && !chan->accepted)
		rv = bind_free(chan);
	mutex_unlock(&assoc->rx_mutex);
	if (rv == -EXFULL)
		return move(cep);
	return rv == -EINPROGRESS ? rv : chan->err ?: rv;
}

/*
 * The next attempt uses another stream. If the association is lost, it uses
 * another association.
 */
int siw_share_reopen(struct siw_cep *cep)
{
	struct siw_assoc *assoc = cep->chan->assoc;
	struct sock *sk = assoc->sock->sk;
	bool lost;

	mutex_lock(&assoc->rx_mutex);
	lock_sock(sk);
	/* It may have ended with chunks that have not been read */
	lost = siw_assoc_status(assoc, NULL, sk) || !siw_assoc_established(sk);
	release_sock(sk);
	mutex_unlock(&assoc->rx_mutex);
	lost = lost || READ_ONCE(assoc->share.closed_to_new);
	if (lost) {
		assoc = make_another(cep);
		if (IS_ERR(assoc))
			return PTR_ERR(assoc);
	} else {
		spin_lock(&table_lock);
		enter(assoc);
		spin_unlock(&table_lock);
	}
	return change_session(cep, assoc, !lost);
}

/* ---- passive side */

static struct siw_assoc *find_listener(const struct siw_assoc *assoc)
{
	struct siw_share *share;

	list_for_each_entry(share, &listeners, node)
		if (share_assoc(share)->net == assoc->net &&
		    same_end(&share->local, &assoc->local))
			return share_assoc(share);
	return NULL;
}

/*
 * The peer has begun a session: it waits for an endpoint of the listener, or is
 * ended. Under rx_mutex.
 */
void siw_share_offer(struct siw_chan *chan)
{
	struct siw_assoc *assoc = chan->assoc, *listener;

	spin_lock(&table_lock);
	listener = find_listener(assoc);
	if (listener && !assoc->share.ending &&
	    listener->share.n_pending < SIW_SHARE_PENDING_MAX) {
		list_add_tail(&chan->pending, &listener->share.pending);
		listener->share.n_pending++;
		enter(assoc);
		siw_assoc_wake_listener(listener);
	} else {
		listener = NULL;
	}
	spin_unlock(&table_lock);
	if (listener)
		return;
	siw_chan_unlist(chan);
	close_session(chan);
	siw_share_kick(assoc);
}

/* Under table_lock */
static struct siw_chan *take_pending(struct siw_assoc *listener)
{
	struct siw_chan *chan;

	chan = list_first_entry_or_null(&listener->share.pending,
					struct siw_chan, pending);
	if (chan) {
		list_del_init(&chan->pending);
		listener->share.n_pending--;
	}
	return chan;
}

/* Returns a session without an endpoint, or NULL */
struct siw_chan *siw_share_take_pending(struct siw_assoc *listener)
{
	struct siw_chan *chan = NULL;

	spin_lock(&table_lock);
	if (listener->share.listed)
		chan = take_pending(listener);
	spin_unlock(&table_lock);
	return chan;
}

/* The same of a listener that is not listed any more */
static struct siw_chan *drop_pending(struct siw_assoc *listener)
{
	struct siw_chan *chan;

	spin_lock(&table_lock);
	chan = take_pending(listener);
	spin_unlock(&table_lock);
	return chan;
}

void siw_share_listen(struct siw_assoc *listener, const struct sockaddr *laddr)
{
	struct siw_share *share = &listener->share;

	copy_addr(&share->local, laddr);
	INIT_LIST_HEAD(&share->pending);
	spin_lock(&table_lock);
	share->listed = true;
	list_add(&share->node, &listeners);
	spin_unlock(&table_lock);
}

void siw_share_stop_listen(struct siw_assoc *listener)
{
	struct siw_share *share = &listener->share;
	struct siw_chan *chan;

	if (!share->listed)
		return;
	spin_lock(&table_lock);
	share->listed = false;
	list_del(&share->node);
	spin_unlock(&table_lock);
	while ((chan = drop_pending(listener)))
		siw_share_close(chan);
}

/* ---- devices */

static int add_device(struct ib_device *device)
{
	if (device->ops.driver_id != RDMA_DRIVER_SIW)
		return -EOPNOTSUPP;
	/* Its presence is the information: see list_assoc() */
	ib_set_client_data(device, &device_client, &device_client);
	return 0;
}

/*
 * A device is being removed: its associations do not outlive their sessions,
 * which may end later. Each association holds its namespace.
 */
static void remove_device(struct ib_device *device, void *unused)
{
	struct siw_share *share;
	unsigned int i;

	ib_set_client_data(device, &device_client, NULL);
	spin_lock(&table_lock);
	hash_for_each(associations, i, share, hash) {
		if (share->device != device)
			continue;
		share->idle_s = 0;
		share->idle_end = jiffies;
		siw_share_kick(share_assoc(share));
	}
	spin_unlock(&table_lock);
}

static bool watches;
static struct ib_client device_client = {
	.name = "siw_sctp",
	.add = add_device,
	.remove = remove_device,
};

/**
 * siw_share_init - watch the removal of devices
 *
 * Return: 0 or a negative errno
 */
int __init siw_share_init(void)
{
	int rv = ib_register_client(&device_client);

	watches = !rv;
	return rv;
}

static bool all_ended(void)
{
	bool ended;

	spin_lock(&table_lock);
	ended = hash_empty(associations) && !n_ending;
	spin_unlock(&table_lock);
	return ended;
}

/**
 * siw_share_exit - end the associations without sessions
 *
 * No endpoint is left.
 */
void siw_share_exit(void)
{
	struct siw_share *share;
	unsigned int i;

	if (watches)
		ib_unregister_client(&device_client);
	spin_lock(&table_lock);
	hash_for_each(associations, i, share, hash) {
		share->idle_end = jiffies;
		siw_share_kick(share_assoc(share));
	}
	spin_unlock(&table_lock);
	wait_var_event(&n_ending, all_ended());
}
