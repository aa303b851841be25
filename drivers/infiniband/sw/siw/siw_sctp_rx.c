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
 * full, which closes the peer's window. The end of the association follows the
 * last chunk, once for each session.
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
/* Memory of a session's queue, in bytes: a full queue stops the reader */
#define SIW_SCTP_READY_MAX	(64 << 10)
/* Milliseconds that a gap may last while SCTP has no missing chunk */
#define SIW_SCTP_GAP_MS		30000
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
 */
struct siw_first {
	size_t len;
	__be16 ssn;
};

static struct siw_first peek_first(struct sock *sk)
{
	struct siw_first first = {};
	bool slow = lock_sock_fast(sk);
	const struct sk_buff *skb;

	skb = skb_peek(&sk->sk_receive_queue);
	if (skb) {
		first.len = skb->len;
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

/* Appends to @skb. Returns 1 if it is whole, 0 if not, or a negative errno. */
static int recv_part(const struct siw_chan *chan, struct sk_buff *skb,
		     size_t len)
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
	rv = kernel_recvmsg(chan->assoc->sock, &msg, &iov, 1, len,
			    MSG_DONTWAIT);
	if (rv < 0)
		return rv;
	/* recvmsg has advanced msg_control */
	msg.msg_control = &control;
	if (rv != len || !read_info(&msg, chan, skb))
		return -EPROTO;
	return !!(msg.msg_flags & MSG_EOR);
}

/* Reads one chunk from the socket; ERR_PTR(-EAGAIN) if none has arrived */
static struct sk_buff *recv_chunk(struct siw_chan *chan)
{
	struct socket *s = chan->assoc->sock;

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
		take_partial(chan);
		rv = recv_part(chan, skb, first.len);
		if (rv > 0) {
			chunk_cb(skb)->entry.ssn =
				get_unaligned_be16(skb->data);
			chunk_cb(skb)->entry.cost = skb->truesize;
			return skb;
		}
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
 * Adds a chunk in order. If it cannot be charged, the reader stops until the
 * endpoint has taken a chunk: the queue does not grow without charge.
 */
static void make_ready(struct siw_chan *chan, struct sk_buff *skb)
{
	struct siw_ssn_entry *entry = &chunk_cb(skb)->entry;
	bool charged = charge_sock(chan->assoc->sock->sk, skb, skb->truesize);

	entry->cost = charged ? skb->truesize : 0;
	spin_lock_bh(&chan->ready.lock);
	__skb_queue_tail(&chan->ready, skb);
	chan->ready_size += entry->cost;
	if (!charged || chan->ready_size >= SIW_SCTP_READY_MAX)
		chan->stalled = true;
	spin_unlock_bh(&chan->ready.lock);
	siw_chan_wake(chan);
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
		chan->ready_size -= chunk_cb(skb)->entry.cost;
		go_on = chan->stalled &&
			chan->ready_size <= SIW_SCTP_READY_MAX / 2;
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

/*
 * The reader. Before the ULP has accepted, only the endpoint reads: it limits
 * what a peer may send by then, and how much may follow a gap depends on the
 * Initiate.
 */
void siw_sctp_read(struct work_struct *work)
{
	struct siw_assoc *assoc = container_of(work, struct siw_assoc, reader);
	struct siw_chan *chan = &assoc->chan[0];
	struct sock *sk = assoc->sock->sk;
	bool more, setup;
	int status, i;

	mutex_lock(&assoc->rx_mutex);
	lock_sock(sk);
	status = siw_assoc_status(assoc, sk);
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
			siw_chan_set_limit(chan, siw_held_max);
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

enum iw_mpa_next siw_sctp_rx_setup(struct siw_cep *cep)
{
	struct siw_chan *chan = cep->chan;
	enum iw_mpa_next next = IW_MPA_NEXT_WAIT;
	int err = ended(chan);
	struct sk_buff *skb;

	if (err)
		return iw_mpa_peer_gone(&cep->mpa, err);
	while (next == IW_MPA_NEXT_WAIT) {
		/* The reader does not change the cost yet */
		if (chan->asked && chan->rx.cost >= SIW_SCTP_EARLY_MAX)
			return wait_for_ulp(cep);
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
void siw_sctp_pump(struct siw_cep *cep)
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

/* The session has ended: its chunks are not processed. Nothing reads now. */
void siw_chan_free_chunks(struct siw_chan *chan)
{
	struct siw_ssn_entry *entry;
	struct sk_buff *skb;
	int cost = 0;

	kfree_skb(take_partial(chan));
	while ((skb = take_early(chan)))
		kfree_skb(skb);
	while ((skb = skb_dequeue(&chan->ready))) {
		cost += chunk_cb(skb)->entry.cost;
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
