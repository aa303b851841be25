// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Receive over SCTP (RFC 5043): the socket is read under rx_mutex, and the
 * chunks of each session are put in order. The endpoint's work passes messages
 * to iw_mpa and segments, as FPDUs, to the QP.
 *
 * The endpoint's work reads the socket itself. If it cannot, or after a change
 * of the association's state or a timer, the association's work does so, the
 * reader. It adds the chunks to the queue of the session and queues the
 * endpoint's work, but never waits for an endpoint. It stops while the queue is
 * full, which closes the peer's window. In a shared association, the queue of an
 * established session may grow as long as the limits of held memory allow. The
 * end of the association follows the last chunk, once for each session. Only the
 * reader reads a shared association, whose chunks belong to several endpoints.
 *
 * Locks: an endpoint in use or a QP's state lock, then rx_mutex, then the
 * socket's lock, then its callback lock or wait queue, then the association's
 * lock.
 *
 * Chunks after a gap must be read: the missing chunk may arrive after them, and
 * an unread socket closes the window for it. Their memory is charged to the
 * socket and limited for the session, the remote address and the host. The
 * duration of a gap is limited as well.
 */
#include <linux/sched/mm.h>
#include <linux/skbuff.h>
#include <linux/unaligned.h>
#include <net/sctp/sctp.h>
#include <net/sctp/structs.h>
#include <net/sock.h>

#include "siw.h"
#include "siw_assoc.h"
#include "siw_cm.h"

/* Segments taken before the ULP has answered: the rest stays in the socket */
#define SIW_SCTP_EARLY_MAX	(64 << 10)
/* Memory for a request before the ULP has accepted, without the queue */
#define SIW_SCTP_UNDECIDED_MAX	(2 * SIW_SCTP_EARLY_MAX)
/* Milliseconds that a gap may last while SCTP has no missing chunk */
#define SIW_SCTP_GAP_MS		30000
/*
 * Milliseconds that an endpoint may take no chunk before its full queue ends the
 * session, and that a full queue may stop the sessions of an association
 */
#define SIW_SCTP_STALL_MS	2000
/* Chunks to process before the endpoint is released, or the reader yields */
#define SIW_SCTP_RX_BATCH	64
/* Parts of messages to discard at a time, after close */
#define SIW_SCTP_DISCARD_BATCH	4096

/* In the control block of a chunk's skb */
struct siw_chunk_cb {
	struct siw_ssn_entry entry;
	u32 ppid;
};

static struct siw_chunk_cb *chunk_cb(struct sk_buff *skb)
{
	BUILD_BUG_ON(sizeof(struct siw_chunk_cb) > sizeof(skb->cb));
	return (struct siw_chunk_cb *)skb->cb;
}

static struct sk_buff *entry_skb(struct siw_ssn_entry *entry)
{
	return container_of((void *)entry, struct sk_buff, cb);
}

/**
 * struct siw_first - the first message in a socket
 * @len: its length in bytes, 0 if there is none
 * @ssn: its DDP-SSN, if it has one
 * @stream: number of its stream
 */
struct siw_first {
	size_t len;
	__be16 ssn;
	u16 stream;
};

static struct siw_first peek_first(struct sock *sk)
{
	struct siw_first first = {};
	bool slow = lock_sock_fast(sk);
	const struct sk_buff *skb;

	skb = skb_peek(&sk->sk_receive_queue);
	if (skb) {
		first.len = skb->len;
		first.stream = sctp_skb2event((struct sk_buff *)skb)->stream;
		if (skb->len >= sizeof(first.ssn))
			skb_copy_bits(skb, 0, &first.ssn, sizeof(first.ssn));
	}
	unlock_sock_fast(sk, slow);
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

/* Returns the PPID of a message of RFC 5043, or 0 for any other */
static u32 read_ppid(const struct msghdr *msg, u16 stream)
{
	struct cmsghdr *cmsg = msg->msg_control;
	const struct sctp_rcvinfo *info = CMSG_DATA(cmsg);
	u32 ppid;

	if (cmsg->cmsg_len < CMSG_LEN(sizeof(*info)) ||
	    cmsg->cmsg_level != IPPROTO_SCTP ||
	    cmsg->cmsg_type != SCTP_RCVINFO)
		return 0;
	ppid = ntohl((__force __be32)info->rcv_ppid);
	if (!(info->rcv_flags & SCTP_UNORDERED) || info->rcv_sid != stream)
		return 0;
	return ppid == SIW_SCTP_PPID_SEGMENT || ppid == SIW_SCTP_PPID_CONTROL ?
	       ppid : 0;
}

/*
 * Receives up to @len octets of the first chunk, with its PPID as of
 * read_ppid(). @whole says whether the chunk ends with them. Returns their
 * number or a negative errno.
 */
static int recv_octets(struct socket *s, u16 stream, void *buf, size_t len,
		       u32 *ppid, bool *whole)
{
	union {
		struct cmsghdr hdr;
		u8 room[CMSG_SPACE(sizeof(struct sctp_rcvinfo))];
	} control = {};
	struct msghdr msg = {
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	struct kvec iov = { .iov_base = buf, .iov_len = len };
	int rv = kernel_recvmsg(s, &msg, &iov, 1, len, MSG_DONTWAIT);

	*whole = rv >= 0 && msg.msg_flags & MSG_EOR;
	/* recvmsg has advanced msg_control */
	msg.msg_control = &control;
	*ppid = rv >= 0 ? read_ppid(&msg, stream) : 0;
	return rv;
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
	if (!cost)
		return;
	lock_sock(sk);
	sk_mem_uncharge(sk, cost);
	release_sock(sk);
}

/* Charges memory of a chunk that is not after a gap. Returns 0 or -ENOBUFS. */
static int charge(struct siw_chan *chan, struct sk_buff *skb)
{
	struct sock *sk = chan->assoc->sock->sk;
	struct siw_ssn_entry *entry = &chunk_cb(skb)->entry;

	entry->cost = skb->truesize;
	if (!charge_sock(sk, skb, entry->cost))
		return -ENOBUFS;
	if (siw_ssn_charge(&chan->rx, entry->cost))
		return 0;
	uncharge_sock(sk, entry->cost);
	return -ENOBUFS;
}

static void uncharge(struct siw_chan *chan, struct sk_buff *skb)
{
	siw_ssn_uncharge(&chan->rx, chunk_cb(skb)->entry.cost);
	uncharge_sock(chan->assoc->sock->sk, chunk_cb(skb)->entry.cost);
}

static struct sk_buff *take_partial(struct siw_chan *chan)
{
	struct sk_buff *skb = chan->partial;

	if (skb)
		uncharge(chan, skb);
	chan->partial = NULL;
	return skb;
}

/*
 * SCTP delivers the first part of a message alone if the window closes before
 * the rest has arrived; the next message in the socket is then the next part.
 * Returns 0 or -ENOBUFS.
 */
static int keep_partial(struct siw_chan *chan, struct sk_buff *skb)
{
	int rv = charge(chan, skb);

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

/*
 * Provides room for @len bytes, pad and CRC of an FPDU. NULL: no memory.
 * Reclaim must not wait for storage that this association connects.
 */
static struct sk_buff *make_room(struct sk_buff *skb, unsigned int len)
{
	len += 2 * MPA_CRC_SIZE;
	if (!skb)
		return alloc_skb(len, GFP_NOIO);
	if (skb_tailroom(skb) < len &&
	    pskb_expand_head(skb, 0, max(len, skb->len), GFP_NOIO))
		return NULL;
	return skb;
}

/*
 * Appends to @skb. Returns 1 if the message is @whole, 0 if not, or a negative
 * errno: then @skb has the part if it was read.
 */
static int recv_part(struct socket *s, u16 stream, struct sk_buff *skb,
		     size_t len, bool *whole)
{
	int rv = recv_octets(s, stream, skb_put(skb, len), len,
			     &chunk_cb(skb)->ppid, whole);

	skb_trim(skb, skb->len - len + max(rv, 0));
	if (rv < 0)
		return rv;
	if (rv != len || !chunk_cb(skb)->ppid)
		return -EPROTO;
	return *whole;
}

static struct sk_buff *set_entry(struct sk_buff *skb)
{
	chunk_cb(skb)->entry.ssn = get_unaligned_be16(skb->data);
	chunk_cb(skb)->entry.cost = skb->truesize;
	return skb;
}

/* Reads one chunk from the socket; ERR_PTR(-EAGAIN) if none has arrived */
static struct sk_buff *recv_chunk(struct siw_chan *chan)
{
	struct socket *s = chan->assoc->sock;

	for (;;) {
		struct siw_first first = peek_first(s->sk);
		struct sk_buff *skb;
		bool whole;
		int rv;

		if (!first.len)
			return ERR_PTR(nothing_came(s));
		if (!is_possible(chan, &first))
			return ERR_PTR(-EPROTO);
		skb = make_room(chan->partial, first.len);
		if (!skb)
			return ERR_PTR(-ENOMEM);
		take_partial(chan);
		rv = recv_part(s, chan->stream, skb, first.len, &whole);
		if (rv > 0)
			return set_entry(skb);
		rv = rv ?: keep_partial(chan, skb);
		if (rv) {
			kfree_skb(skb);
			return ERR_PTR(rv);
		}
	}
}

/* Holds a chunk after a gap. Returns 0 or a negative errno. */
static int hold_chunk(struct siw_chan *chan, struct sk_buff *skb)
{
	struct sock *sk = chan->assoc->sock->sk;
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
	peer = siw_assoc_sctp(sk);
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
static int check_gap(struct siw_chan *chan)
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
	end = gap_end(gap, chan->assoc->sock->sk);
	if (time_after(jiffies, end))
		return -EPROTO;
	siw_assoc_again(chan->assoc, end + 1);
	return -EAGAIN;
}

/* No chunk follows. Only the first reason counts. Under rx_mutex. */
void siw_chan_end(struct siw_chan *chan, int err)
{
	if (chan->rx_err)
		return;
	/* Pairs with next_chunk() */
	smp_store_release(&chan->rx_err, err);
	siw_chan_wake(chan);
}

/*
 * Under rx_mutex. Returns the next chunk in order, or ERR_PTR(-EAGAIN) if it
 * has not arrived or the session has ended.
 */
static struct sk_buff *read_chunk(struct siw_chan *chan)
{
	struct siw_ssn_entry *entry = siw_ssn_take(&chan->rx);
	struct sk_buff *skb;
	int rv;

	if (entry) {
		uncharge_sock(chan->assoc->sock->sk, entry->cost);
		return entry_skb(entry);
	}
	for (;;) {
		skb = recv_chunk(chan);
		if (IS_ERR(skb))
			break;
		entry = &chunk_cb(skb)->entry;
		if (entry->ssn == chan->rx.next) {
			siw_ssn_offer(&chan->rx, entry);
			return skb;
		}
		rv = hold_chunk(chan, skb);
		if (rv) {
			kfree_skb(skb);
			skb = ERR_PTR(rv);
			break;
		}
	}
	rv = PTR_ERR(skb);
	if (rv == -EAGAIN)
		rv = check_gap(chan);
	if (rv == -ENOMEM)
		siw_assoc_again(chan->assoc, jiffies + SIW_SCTP_AGAIN);
	else if (rv != -EAGAIN)
		siw_chan_end(chan, rv);
	return ERR_PTR(-EAGAIN);
}

/* ---- the queue of a session */

/*
 * The limits of held memory apply to shared associations. Beyond half of the
 * address's part the reader stops. Under the lock.
 */
static bool charge_queue(struct siw_chan *chan, unsigned int cost)
{
	return !chan->assoc->shared || siw_ssn_charge(&chan->queue, cost);
}

static void uncharge_queue(struct siw_chan *chan, unsigned int cost)
{
	if (chan->assoc->shared && cost)
		siw_ssn_uncharge(&chan->queue, cost);
}

/* Limits the memory of the queue of a shared association's session, in bytes */
void siw_chan_set_queue_limit(struct siw_chan *chan, u32 limit)
{
	spin_lock_bh(&chan->ready.lock);
	chan->queue.limit = limit;
	spin_unlock_bh(&chan->ready.lock);
}

static bool is_full(const struct siw_chan *chan)
{
	return !chan->assoc->shared && chan->ready_size >= SIW_SCTP_READY_MAX;
}

/*
 * Adds a chunk in order. If it cannot be charged, the reader stops until the
 * endpoint has taken chunks: the queue does not grow without charge. Returns
 * whether the session has exceeded a limit.
 */
static bool make_ready(struct siw_chan *chan, struct sk_buff *skb)
{
	struct siw_ssn_entry *entry = &chunk_cb(skb)->entry;
	struct sock *sk = chan->assoc->sock->sk;
	int cost = skb->truesize;
	bool in_sock = charge_sock(sk, skb, cost), charged;

	spin_lock_bh(&chan->ready.lock);
	charged = in_sock && charge_queue(chan, cost);
	entry->cost = charged ? cost : 0;
	chan->ready_size += entry->cost;
	if (!charged || is_full(chan)) {
		chan->stalled = true;
		chan->resume_at = chan->ready_size -
				  min_t(unsigned int, chan->ready_size / 2,
					SIW_SCTP_READY_MAX / 2);
	}
	if (skb_queue_empty(&chan->ready))
		WRITE_ONCE(chan->progress, jiffies);
	/* From now on the endpoint may take and free it */
	__skb_queue_tail(&chan->ready, skb);
	spin_unlock_bh(&chan->ready.lock);
	if (in_sock && !charged)
		uncharge_sock(sk, cost);
	siw_chan_wake(chan);
	return in_sock && !charged;
}

/* Returns NULL if the queue is empty. Starts the reader when it may go on. */
static struct sk_buff *take_ready(struct siw_chan *chan)
{
	struct sk_buff *skb;
	bool go_on = false;

	/* The reader wakes the endpoint after it has added a chunk */
	if (skb_queue_empty_lockless(&chan->ready))
		return NULL;
	spin_lock_bh(&chan->ready.lock);
	skb = __skb_dequeue(&chan->ready);
	if (skb) {
		WRITE_ONCE(chan->progress, jiffies);
		chan->ready_size -= chunk_cb(skb)->entry.cost;
		uncharge_queue(chan, chunk_cb(skb)->entry.cost);
		go_on = chan->stalled && chan->ready_size <= chan->resume_at;
		if (go_on)
			chan->stalled = false;
	}
	spin_unlock_bh(&chan->ready.lock);
	if (skb)
		uncharge_sock(chan->assoc->sock->sk,
			      chunk_cb(skb)->entry.cost);
	if (go_on)
		siw_assoc_read(chan->assoc);
	return skb;
}

/*
 * The session has ended, and its endpoint does not take its chunks. It gets none
 * of them, or all: a later one must not be processed without an earlier one.
 */
static void drop_ready(struct siw_chan *chan)
{
	struct sk_buff_head dropped;
	unsigned int cost;

	__skb_queue_head_init(&dropped);
	spin_lock_bh(&chan->ready.lock);
	skb_queue_splice_init(&chan->ready, &dropped);
	cost = chan->ready_size;
	chan->ready_size = 0;
	uncharge_queue(chan, cost);
	spin_unlock_bh(&chan->ready.lock);
	uncharge_sock(chan->assoc->sock->sk, cost);
	__skb_queue_purge(&dropped);
}

/* Returns false if nothing more can be read now */
static bool read_for_chan(struct siw_chan *chan)
{
	struct sk_buff *skb;

	if (READ_ONCE(chan->stalled) || chan->rx_err)
		return false;
	skb = read_chunk(chan);
	if (IS_ERR(skb))
		return false;
	make_ready(chan, skb);
	return true;
}

/* ---- shared associations: only the reader reads; all under rx_mutex */

/* Each received chunk of a session, also if it is discarded */
static void note_chunk(struct siw_chan *chan, u16 ssn, u32 ppid,
		       const void *msg, size_t len)
{
	bool reject = iw_mpa_sctp_is_reject(msg, len);

	chan->rx_seen++;
	if (ppid != SIW_SCTP_PPID_CONTROL || chan->rx_last ||
	    (!reject && !iw_mpa_sctp_is_terminate(msg, len)))
		return;
	chan->rx_last = true;
	chan->rx_last_ssn = ssn;
	chan->rx_reject = reject;
}

/* Will no further chunk of the session arrive? */
static bool is_complete(const struct siw_chan *chan)
{
	return chan->rx_last && chan->rx_seen == (u16)(chan->rx_last_ssn + 1);
}

static struct siw_chan *find_chan(struct siw_assoc *assoc, u16 stream)
{
	return stream < assoc->max_streams ? assoc->share.chan[stream] : NULL;
}

/*
 * A message, or a part of it, is not processed. Its DDP-SSN counts, as the
 * stream is not free before it has arrived. If it is not @whole, its end
 * follows, which has no DDP-SSN.
 */
static void refuse(struct siw_assoc *assoc, u16 stream,
		   const struct sk_buff *skb, bool whole)
{
	struct siw_chan *chan = find_chan(assoc, stream);

	if (skb->len) {
		assoc->share.dropping = !whole;
		assoc->share.part_stream = stream;
	}
	if (!chan || skb->len < SIW_SCTP_SSN_LEN)
		return;
	note_chunk(chan, get_unaligned_be16(skb->data), 0, NULL, 0);
	if (chan->closed)
		siw_share_kick(assoc);
}

/* Discards @len bytes of a message */
static void drop_rest(struct siw_assoc *assoc, size_t len)
{
	struct msghdr msg = {};

	iov_iter_discard(&msg.msg_iter, ITER_DEST, len);
	if (sock_recvmsg(assoc->sock, &msg, MSG_DONTWAIT) > 0)
		assoc->share.dropping = !(msg.msg_flags & MSG_EOR);
}

/*
 * Discards a message, or the part of it that has arrived. Returns 0, or the
 * reason for an empty socket.
 */
static int drop_first(struct siw_assoc *assoc, struct siw_chan *chan,
		      const struct siw_first *first)
{
	struct siw_share *share = &assoc->share;
	u8 buf[256];
	bool whole;
	u32 ppid;
	int rv;

	rv = recv_octets(assoc->sock, first->stream, buf, sizeof(buf), &ppid,
			 &whole);
	if (rv <= 0)
		return rv ?: -ECONNRESET;
	/* An ordered Terminate has no PPID here: it is not the last message */
	if (!share->dropping && chan && rv >= SIW_SCTP_SSN_LEN)
		note_chunk(chan, get_unaligned_be16(buf), ppid,
			   buf + SIW_SCTP_SSN_LEN, rv - SIW_SCTP_SSN_LEN);
	share->dropping = !whole;
	share->part_stream = first->stream;
	if (share->dropping && first->len > rv)
		drop_rest(assoc, first->len - rv);
	if (chan && chan->closed)
		siw_share_kick(assoc);
	return 0;
}

/*
 * May only an Initiate follow on the stream? After our Reject, one may arrive
 * before the endpoint has left the session.
 */
static bool is_fresh(const struct siw_chan *chan)
{
	return !chan || chan->closed || READ_ONCE(chan->tx_reject);
}

/*
 * May this message be processed? Called before allocation. Only an Initiate
 * begins a session. RFC 5043 section 6.6: a stream is used again only after its
 * last session has ended in both directions.
 */
static bool is_wanted(struct siw_chan *chan, const struct siw_first *first)
{
	u16 ssn = be16_to_cpu(first->ssn);

	if (first->len < SIW_SCTP_SSN_LEN ||
	    first->len > SIW_SCTP_SSN_LEN + U16_MAX)
		return false;
	if (is_fresh(chan))
		return !ssn && (!chan || chan->tx_reject ||
				(chan->tx_last && is_complete(chan))) &&
		       first->len <= SIW_SCTP_SSN_LEN + IW_MPA_FRAME_MAX;
	return !chan->rx_err && siw_ssn_possible(&chan->rx, ssn);
}

static void stop_session(struct siw_chan *chan, int err)
{
	if (!is_fresh(chan))
		siw_chan_end(chan, err);
}

/* Adds a part to the unfinished message. Returns 1 if it is whole, 0, or -errno */
static int join_part(struct siw_assoc *assoc, const struct siw_first *first,
		     struct sk_buff **skb)
{
	struct siw_share *share = &assoc->share;
	struct sk_buff *have = share->partial;
	struct sock *sk = assoc->sock->sk;
	bool whole;
	int rv;

	*skb = make_room(have, first->len);
	if (!*skb)
		return -ENOMEM;
	if (have)
		uncharge_sock(sk, chunk_cb(have)->entry.cost);
	share->partial = NULL;
	rv = recv_part(assoc->sock, first->stream, *skb, first->len, &whole);
	if (rv > 0) {
		set_entry(*skb);
		return rv;
	}
	if (!rv && charge_sock(sk, *skb, (*skb)->truesize)) {
		chunk_cb(*skb)->entry.cost = (*skb)->truesize;
		share->partial = *skb;
		share->part_stream = first->stream;
		return 0;
	}
	refuse(assoc, first->stream, *skb, whole);
	kfree_skb(*skb);
	return rv ?: -ENOBUFS;
}

/* The unfinished message is not completed: does its @rest follow? */
static void drop_partial(struct siw_assoc *assoc, bool rest)
{
	struct siw_share *share = &assoc->share;

	if (!share->partial)
		return;
	uncharge_sock(assoc->sock->sk, chunk_cb(share->partial)->entry.cost);
	refuse(assoc, share->part_stream, share->partial, !rest);
	kfree_skb(share->partial);
	share->partial = NULL;
}

/*
 * A full queue stops all sessions until the endpoint takes chunks. Before the
 * ULP has accepted, for which a program may take any time, only a lack of memory
 * does so.
 */
static void queue_chunk(struct siw_chan *chan, struct sk_buff *skb)
{
	struct siw_assoc *assoc = chan->assoc;
	bool full;

	full = make_ready(chan, skb);
	if (!READ_ONCE(chan->stalled))
		return;
	if (full && chan->accepted && !READ_ONCE(chan->established)) {
		siw_chan_end(chan, -ENOBUFS);
		return;
	}
	assoc->share.blocked = chan;
	assoc->share.blocked_since = jiffies;
}

/* Queues the chunks that the last one has put in order */
static void advance(struct siw_chan *chan)
{
	struct siw_ssn_entry *entry;

	while (!chan->rx_err && !READ_ONCE(chan->stalled)) {
		entry = siw_ssn_take(&chan->rx);
		if (!entry)
			return;
		uncharge_sock(chan->assoc->sock->sk, entry->cost);
		queue_chunk(chan, entry_skb(entry));
	}
}

static void deliver(struct siw_chan *chan, struct sk_buff *skb)
{
	struct siw_ssn_entry *entry = &chunk_cb(skb)->entry;
	int rv;

	if (entry->ssn == chan->rx.next) {
		siw_ssn_offer(&chan->rx, entry);
		queue_chunk(chan, skb);
		advance(chan);
		return;
	}
	rv = hold_chunk(chan, skb);
	if (rv) {
		kfree_skb(skb);
		siw_chan_end(chan, rv);
	} else {
		chan->assoc->share.has_gaps = true;
	}
}

/* The session of an Initiate on an unused stream: a spare one, or @made */
static struct siw_chan *begin_session(struct siw_assoc *assoc, u16 stream,
				      struct siw_chan **made)
{
	struct siw_share *share = &assoc->share;
	struct siw_chan *chan = share->spare;

	if (stream >= assoc->n_streams)
		return NULL;
	if (share->chan[stream])
		siw_share_unbind(share->chan[stream]);
	share->spare = NULL;
	if (chan) {
		siw_share_bind(chan, stream);
		return chan;
	}
	chan = *made;
	*made = NULL;
	chan->accepted = true;
	siw_share_bind(chan, stream);
	return chan;
}

/* Uses @made for the session of an Initiate, and then sets it to %NULL */
static void take_whole(struct siw_assoc *assoc, u16 stream, struct sk_buff *skb,
		       struct siw_chan **made)
{
	struct siw_chan *chan = find_chan(assoc, stream);
	bool fresh = is_fresh(chan), spare = assoc->share.spare;
	u32 ppid = chunk_cb(skb)->ppid;
	const u8 *msg = skb->data + SIW_SCTP_SSN_LEN;
	size_t len = skb->len - SIW_SCTP_SSN_LEN;
	struct siw_first first = {
		.len = skb->len,
		.ssn = cpu_to_be16(chunk_cb(skb)->entry.ssn),
		.stream = stream,
	};

	/* The session may have ended between the parts of the message */
	if (!is_wanted(chan, &first)) {
		refuse(assoc, stream, skb, true);
		kfree_skb(skb);
		return;
	}
	if (fresh && (ppid != SIW_SCTP_PPID_CONTROL ||
		      !iw_mpa_sctp_is_initiate(msg, len)))
		chan = NULL;
	else if (fresh)
		chan = begin_session(assoc, stream, made);
	if (!chan) {
		kfree_skb(skb);
		return;
	}
	note_chunk(chan, chunk_cb(skb)->entry.ssn, ppid, msg, len);
	deliver(chan, skb);
	if (fresh && !spare)
		siw_share_offer(chan);
}

/*
 * When the reader has waited long enough for the endpoint, in jiffies. If it had
 * stopped before its queue was full, that counts: siblings wait less. Before the
 * ULP has accepted, it may be waiting for the program.
 */
static unsigned long stall_end(const struct siw_chan *chan)
{
	unsigned long since = chan->assoc->share.blocked_since;
	unsigned long progress = READ_ONCE(chan->progress);

	if (READ_ONCE(chan->established) && time_before(progress, since))
		since = progress;
	return since + msecs_to_jiffies(SIW_SCTP_STALL_MS);
}

/* Returns whether the reader has to wait for the endpoint of a session */
static bool is_blocked(struct siw_assoc *assoc)
{
	struct siw_chan *chan = assoc->share.blocked;
	unsigned long end;

	if (!chan)
		return false;
	end = stall_end(chan);
	if (READ_ONCE(chan->stalled) && !chan->rx_err &&
	    time_before(jiffies, end)) {
		siw_assoc_again(assoc, end);
		return true;
	}
	assoc->share.blocked = NULL;
	if (READ_ONCE(chan->stalled)) {
		siw_chan_end(chan, -ENOBUFS);
		drop_ready(chan);
	} else {
		advance(chan);
	}
	return assoc->share.blocked;
}

/* Reads a message or a part of it. Returns 0 or a negative errno. */
static int read_message(struct siw_assoc *assoc)
{
	struct siw_share *share = &assoc->share;
	struct siw_first first = peek_first(assoc->sock->sk);
	struct siw_chan *chan = find_chan(assoc, first.stream), *made = NULL;
	struct sk_buff *skb;
	int rv;

	if (!first.len)
		return nothing_came(assoc->sock);
	/* SCTP has given the rest of a message up, as the peer has (RFC 3758) */
	if (share->part_stream != first.stream) {
		if (share->partial)
			stop_session(find_chan(assoc, share->part_stream),
				     -EPROTO);
		drop_partial(assoc, false);
		share->dropping = false;
	}
	if (share->dropping)
		return drop_first(assoc, chan, &first);
	if (share->partial ?
	    share->partial->len + first.len > SIW_SCTP_SSN_LEN + U16_MAX :
	    !is_wanted(chan, &first)) {
		stop_session(chan, -EPROTO);
		drop_partial(assoc, true);
		return drop_first(assoc, chan, &first);
	}
	/* Without memory for a session, its Initiate stays in the socket */
	if (is_fresh(chan) && !share->spare) {
		made = siw_chan_new(assoc);
		if (!made)
			return -ENOMEM;
	}
	rv = join_part(assoc, &first, &skb);
	if (rv > 0)
		take_whole(assoc, first.stream, skb, &made);
	if (made) {
		siw_chan_unlist(made);
		kfree(made);
	}
	if (rv != -EPROTO && rv != -ENOBUFS)
		return min(rv, 0);
	stop_session(chan, rv);
	return 0;
}

static void check_gaps(struct siw_assoc *assoc)
{
	struct siw_share *share = &assoc->share;
	struct siw_chan *chan;
	unsigned int i;

	if (!share->has_gaps)
		return;
	share->has_gaps = false;
	for (i = 0; i < assoc->max_streams; i++) {
		chan = share->chan[i];
		if (!chan || chan->closed || chan->rx_err)
			continue;
		if (check_gap(chan) == -EPROTO)
			siw_chan_end(chan, -EPROTO);
		else
			share->has_gaps |= siw_ssn_holds(&chan->rx);
	}
}

static void end_all(struct siw_assoc *assoc, int err)
{
	unsigned int i;

	assoc->share.lost = true;
	WRITE_ONCE(assoc->share.closed_to_new, true);
	/* The socket has reported it once, but sessions ask for the status */
	assoc->end_err = err == -ENOTCONN ? -ECONNRESET : err;
	for (i = 0; i < assoc->max_streams; i++)
		stop_session(assoc->share.chan[i], err);
	stop_session(assoc->share.spare, err);
	siw_assoc_report(assoc, true);
	siw_share_kick(assoc);
}

static void read_shared(struct siw_assoc *assoc)
{
	struct sock *sk = assoc->sock->sk;
	int rv = 0, i;

	mutex_lock(&assoc->rx_mutex);
	lock_sock(sk);
	rv = siw_assoc_status(assoc, NULL, sk);
	release_sock(sk);
	if (rv && rv != -EINPROGRESS && !assoc->share.lost)
		end_all(assoc, rv);
	for (i = 0; i < SIW_SCTP_RX_BATCH && !rv; i++)
		rv = is_blocked(assoc) ? -EBUSY : read_message(assoc);
	if (rv == -EAGAIN)
		check_gaps(assoc);
	else if (rv == -ENOMEM && !assoc->share.lost)
		siw_assoc_again(assoc, jiffies + SIW_SCTP_AGAIN);
	else if (rv && rv != -EBUSY && rv != -EINPROGRESS &&
		 !assoc->share.lost)
		end_all(assoc, rv);
	mutex_unlock(&assoc->rx_mutex);
	if (!rv)
		siw_assoc_read(assoc);
}

/* ---- the reader */

/*
 * Before the ULP has accepted, only the endpoint reads: it limits what a peer
 * may send by then, and how much may follow a gap depends on the Initiate.
 */
static void read_own(struct siw_assoc *assoc)
{
	struct siw_chan *chan = assoc->chan;
	struct sock *sk = assoc->sock->sk;
	bool more, setup;
	int status, i;

	mutex_lock(&assoc->rx_mutex);
	lock_sock(sk);
	status = siw_assoc_status(assoc, chan, sk);
	release_sock(sk);
	/* The end of an association whose peer is not known */
	if (!assoc->up && status != -EINPROGRESS)
		siw_chan_end(chan, status);
	setup = chan->accepted && !READ_ONCE(chan->established);
	more = assoc->up && !setup;
	for (i = 0; i < SIW_SCTP_RX_BATCH && more; i++)
		more = read_for_chan(chan);
	mutex_unlock(&assoc->rx_mutex);
	if (more)
		siw_assoc_read(assoc);
	else if (setup)
		siw_chan_wake(chan);
}

/*
 * The reader. Memory that it charges may be reclaimed in its control group:
 * that must not wait for storage that an association connects.
 */
void siw_sctp_read(struct work_struct *work)
{
	struct siw_assoc *assoc = container_of(work, struct siw_assoc, reader);
	unsigned int flags = memalloc_noio_save();

	if (assoc->shared)
		read_shared(assoc);
	else
		read_own(assoc);
	memalloc_noio_restore(flags);
}

/*
 * Reads a chunk for the endpoint, which saves the reader's work. If rx_mutex is
 * held, its holder may have found the socket empty already: the reader repeats.
 */
static struct sk_buff *read_next(struct siw_chan *chan)
{
	struct siw_assoc *assoc = chan->assoc;
	struct sk_buff *skb;

	if (!mutex_trylock(&assoc->rx_mutex)) {
		siw_assoc_read(assoc);
		return ERR_PTR(-EAGAIN);
	}
	skb = take_ready(chan);
	if (!skb && chan->rx_err) {
		skb = ERR_PTR(chan->rx_err);
	} else if (!skb && !assoc->up) {
		siw_assoc_read(assoc);
		skb = ERR_PTR(-EAGAIN);
	} else if (!skb) {
		skb = read_chunk(chan);
		if (IS_ERR(skb) && chan->rx_err)
			skb = ERR_PTR(chan->rx_err);
	}
	mutex_unlock(&assoc->rx_mutex);
	return skb;
}

/*
 * Returns the next chunk for the endpoint, which is in use, or an ERR_PTR:
 * -EAGAIN if it has not arrived, -ENOBUFS if a limit of held memory is
 * exceeded, -EPROTO if the peer violates the protocol, or the reason for the
 * end of the association.
 */
static struct sk_buff *next_chunk(struct siw_chan *chan)
{
	/* An error follows the chunks that are in the queue by then */
	int err = smp_load_acquire(&chan->rx_err);
	struct sk_buff *skb = take_ready(chan);

	if (skb)
		return skb;
	if (!err && chan->assoc->shared)
		err = -EAGAIN;
	return err ? ERR_PTR(err) : read_next(chan);
}

/* ---- the endpoint */

/* Limits the memory for chunks after a gap, in bytes */
void siw_chan_set_limit(struct siw_chan *chan, u32 limit)
{
	mutex_lock(&chan->assoc->rx_mutex);
	chan->rx.limit = limit;
	mutex_unlock(&chan->assoc->rx_mutex);
}

/*
 * The active side may send segments as soon as its Initiate was acknowledged
 * (RFC 5043 section 6.6). Keeps them until the ULP's answer. Returns 0 or
 * -ENOBUFS.
 */
static int keep_early(struct siw_chan *chan, struct sk_buff *skb)
{
	int rv;

	mutex_lock(&chan->assoc->rx_mutex);
	rv = charge(chan, skb);
	mutex_unlock(&chan->assoc->rx_mutex);
	if (rv)
		return rv;
	__skb_queue_tail(&chan->early, skb);
	return 0;
}

static struct sk_buff *take_early(struct siw_chan *chan)
{
	struct sk_buff *skb = __skb_dequeue(&chan->early);

	if (!skb)
		return NULL;
	mutex_lock(&chan->assoc->rx_mutex);
	uncharge(chan, skb);
	mutex_unlock(&chan->assoc->rx_mutex);
	return skb;
}

static enum iw_mpa_next take_message(struct siw_cep *cep, struct sk_buff *skb)
{
	struct siw_chan *chan = cep->chan;
	enum iw_mpa_next next;

	if (chunk_cb(skb)->ppid != SIW_SCTP_PPID_CONTROL)
		return iw_mpa_out_of_turn(&cep->mpa);
	next = iw_mpa_rx_message(&cep->mpa, skb->data + SIW_SCTP_SSN_LEN,
				 skb->len - SIW_SCTP_SSN_LEN);
	if (next == IW_MPA_NEXT_FRAME) {
		next = iw_mpa_process(&cep->mpa, false);
		chan->asked = next == IW_MPA_NEXT_WAIT;
		if (chan->asked)
			siw_chan_set_limit(chan, chan->assoc->shared ?
						 SIW_SCTP_UNDECIDED_MAX :
						 siw_held_max);
	}
	return next;
}

/* Consumes @skb */
static enum iw_mpa_next take_chunk(struct siw_cep *cep, struct sk_buff *skb)
{
	struct siw_chan *chan = cep->chan;
	enum iw_mpa_next next = IW_MPA_NEXT_WAIT;
	int rv;

	if (chan->asked && chunk_cb(skb)->ppid == SIW_SCTP_PPID_SEGMENT) {
		rv = keep_early(chan, skb);
		if (!rv)
			return next;
		next = iw_mpa_abort(&cep->mpa, rv);
	} else {
		next = take_message(cep, skb);
	}
	kfree_skb(skb);
	return next;
}

/* The reason why the session has ended, or 0 */
static int ended(const struct siw_chan *chan)
{
	return chan->err ?: READ_ONCE(chan->assoc->err);
}

/* Nothing is taken until the ULP answers: checks that the association is up */
static enum iw_mpa_next wait_for_ulp(struct siw_cep *cep)
{
	const struct sctp_association *peer;
	struct sock *sk = cep->chan->assoc->sock->sk;
	bool up;

	lock_sock(sk);
	peer = siw_assoc_sctp(sk);
	up = peer && peer->state == SCTP_STATE_ESTABLISHED;
	release_sock(sk);
	return up ? IW_MPA_NEXT_WAIT :
		    iw_mpa_peer_gone(&cep->mpa, -ECONNRESET);
}

/* The reader cannot leave more chunks in the socket of a shared association */
static bool has_overflown(const struct siw_chan *chan)
{
	return chan->assoc->shared && READ_ONCE(chan->rx_err) == -ENOBUFS;
}

static enum iw_mpa_next no_chunk(struct siw_cep *cep, int err)
{
	const struct siw_chan *chan = cep->chan;

	switch (err) {
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

static enum iw_mpa_next rx_setup(struct siw_cep *cep)
{
	struct siw_chan *chan = cep->chan;
	enum iw_mpa_next next = IW_MPA_NEXT_WAIT;
	int err = ended(chan);
	struct sk_buff *skb;

	if (err)
		return iw_mpa_peer_gone(&cep->mpa, err);
	while (next == IW_MPA_NEXT_WAIT) {
		/* The reader of a shared association may change the cost */
		if (chan->asked && READ_ONCE(chan->rx.cost) >= SIW_SCTP_EARLY_MAX)
			return has_overflown(chan) ? no_chunk(cep, -ENOBUFS) :
						     wait_for_ulp(cep);
		skb = next_chunk(chan);
		if (IS_ERR(skb))
			return no_chunk(cep, PTR_ERR(skb));
		next = take_chunk(cep, skb);
	}
	/* Segments may have arrived directly after the Accept */
	if (next == IW_MPA_NEXT_DONE)
		siw_cm_queue_work(cep, SIW_CM_WORK_READ_MPAHDR);
	return next;
}

/* Charges memory: see siw_sctp_read() */
enum iw_mpa_next siw_sctp_rx_setup(struct siw_cep *cep)
{
	unsigned int flags = memalloc_noio_save();
	enum iw_mpa_next next = rx_setup(cep);

	memalloc_noio_restore(flags);
	return next;
}

/* The session has ended: the endpoint's work reads this from the status */
static void lose_session(struct siw_cep *cep, int err, bool over)
{
	cep->chan->err = err;
	cep->chan->over = over;
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
	/* As below TCP: softirqs take the same locks */
	local_bh_disable();
	siw_tcp_rx_data(&rd_desc, skb, 0, skb->len);
	local_bh_enable();
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
	struct siw_chan *chan = cep->chan;
	struct sk_buff *skb;

	if (ended(chan) || qp->rx_stream.rx_suspend ||
	    qp->attrs.state != SIW_QP_STATE_RTS)
		return false;
	skb = take_early(chan) ?: next_chunk(chan);
	if (IS_ERR(skb)) {
		if (PTR_ERR(skb) != -EAGAIN)
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
static void pump(struct siw_cep *cep)
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
		if (!down_read_trylock(&qp->state_lock)) {
			/* Not at once: the holder of the lock may sleep */
			WRITE_ONCE(cep->chan->qp_busy, true);
			siw_assoc_again(cep->chan->assoc, jiffies + 1);
			return;
		}
		more = process_chunk(cep, qp);
		up_read(&qp->state_lock);
	}
	if (more)
		siw_cm_queue_work(cep, SIW_CM_WORK_READ_MPAHDR);
}

/* Charges memory: see siw_sctp_read() */
void siw_sctp_pump(struct siw_cep *cep)
{
	unsigned int flags = memalloc_noio_save();

	pump(cep);
	memalloc_noio_restore(flags);
}

/* ---- end */

/* The session has ended: its chunks are not processed. Nothing reads now. */
void siw_chan_free_chunks(struct siw_chan *chan)
{
	struct siw_ssn_entry *entry;
	struct sk_buff *skb;
	int cost = 0;

	kfree_skb(take_partial(chan));
	while ((skb = __skb_dequeue(&chan->early))) {
		uncharge(chan, skb);
		kfree_skb(skb);
	}
	while ((skb = skb_dequeue(&chan->ready))) {
		cost += chunk_cb(skb)->entry.cost;
		uncharge_queue(chan, chunk_cb(skb)->entry.cost);
		kfree_skb(skb);
	}
	while ((entry = siw_ssn_drop(&chan->rx))) {
		cost += entry->cost;
		kfree_skb(entry_skb(entry));
	}
	uncharge_sock(chan->assoc->sock->sk, cost);
}

/*
 * Received data has no reader any more, but unread data would make close()
 * abort. The limit ensures that the deadline also ends an association whose
 * peer sends as fast as this reads. Returns whether there was data.
 */
bool siw_sctp_discard(struct socket *s)
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
