// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Receive over SCTP (RFC 5043): the endpoint's work puts the chunks in order and
 * passes messages to iw_mpa and segments, as FPDUs, to the QP.
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

/* Segments read before the ULP has answered: the rest stays in the socket */
#define SIW_SCTP_EARLY_MAX	(64 << 10)
/* Milliseconds that a gap may last while SCTP has no missing chunk */
#define SIW_SCTP_GAP_MS		30000
/* Chunks to process before the endpoint is released to other users */
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
	siw_assoc_again(assoc, end + 1);
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
			chan->rx.limit = siw_held_max;
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
	peer = siw_assoc_sctp(sk);
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
		siw_assoc_again(cep->assoc, jiffies + SIW_SCTP_AGAIN);
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

enum iw_mpa_next siw_sctp_rx_setup(struct siw_cep *cep)
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
	struct siw_assoc *assoc = cep->assoc;
	struct sk_buff *skb;

	if (assoc->err || qp->rx_stream.rx_suspend ||
	    qp->attrs.state != SIW_QP_STATE_RTS)
		return false;
	skb = take_early(&assoc->chan[0], cep->assoc->sock->sk) ?:
	      next_chunk(assoc);
	if (IS_ERR(skb)) {
		if (PTR_ERR(skb) == -ENOMEM)
			siw_assoc_again(assoc, jiffies + SIW_SCTP_AGAIN);
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

/* The session has ended: held chunks are not processed */
void siw_sctp_free_held(struct siw_assoc *assoc)
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
