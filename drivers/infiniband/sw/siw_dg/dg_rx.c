// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Receive: in softirq, straight from the socket into the program's memory. See
 * NOTICE.
 *
 * Everything about a datagram is judged before its first octet is written.
 * A bad datagram is counted and dropped. It is answered only if the program wants
 * so: by an error message to a source that a zone names, see dg_error.h.
 */
#include <linux/highmem.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/skbuff.h>
#include <net/ipv6.h>
#include <net/udp.h>

#include "dg_device.h"

/* The most datagrams and octets in one softirq, so that a flood does not keep it */
#define DG_RX_BUDGET	64
#define DG_RX_OCTETS	(256 * 1024)
/* The most messages that one call ends at their time: each may have 512 holes */
#define DG_END_BUDGET	8

/**
 * struct dg_datagram - a datagram
 * @skb: a packet, or a bundle of GRO
 * @offset: where the datagram begins in it
 * @len: its length in octets
 * @seg: its header
 * @zone: Write-Record: where it goes, once it is judged; NULL: unknown
 */
struct dg_datagram {
	struct sk_buff *skb;
	u32 offset;
	u32 len;
	struct dg_segment seg;
	const struct dg_zone *zone;
};

/* ---- judging */

static u32 dg_rq_used(const struct dg_qp *qp)
{
	u32 used;

	if (!qp->rq)
		return 0;
	/* Pairs with the program's release after it wrote the requests */
	used = smp_load_acquire(&qp->rq->ring->producer) - qp->rq_next;
	/* More: the program has written nonsense */
	return used <= qp->rq->size ? used : 0;
}

static bool dg_header_is_good(struct dg_datagram *d)
{
	u8 buf[DG_PARSE_MAX];
	u32 len = min_t(u32, d->len, sizeof(buf));

	return !skb_copy_bits(d->skb, d->offset, buf, len) &&
	       dg_parse(buf, d->len, &d->seg) == DG_OK;
}

static bool dg_crc_is_good(const struct dg_datagram *d)
{
	u32 covered = d->len - DG_CRC_LEN, done = 0, crc = DG_CRC_START;
	u8 expected[DG_CRC_LEN], found[DG_CRC_LEN];
	struct skb_seq_state st;
	const u8 *data;
	u32 len;

	skb_prepare_seq_read(d->skb, d->offset, d->offset + covered, &st);
	while (done < covered) {
		len = skb_seq_read(done, &data, &st);
		if (!len)
			break;
		/* The block may go on behind the end */
		len = min(len, covered - done);
		crc = dg_crc_add(crc, data, len);
		done += len;
	}
	skb_abort_seq_read(&st);
	dg_crc_put(crc, expected);
	return done == covered &&
	       !skb_copy_bits(d->skb, d->offset + covered, found,
			      sizeof(found)) &&
	       !memcmp(expected, found, sizeof(found));
}

static bool dg_is_ipv4(const struct dg_datagram *d)
{
	return d->skb->protocol == htons(ETH_P_IP);
}

static void dg_source_address(const struct dg_datagram *d,
			      struct in6_addr *address)
{
	if (dg_is_ipv4(d))
		ipv6_addr_set_v4mapped(ip_hdr(d->skb)->saddr, address);
	else
		*address = ipv6_hdr(d->skb)->saddr;
}

static u16 dg_source_port(const struct dg_datagram *d)
{
	return ntohs(udp_hdr(d->skb)->source);
}

static enum dg_counter dg_judge_send(const struct dg_qp *qp,
				     const struct dg_datagram *d)
{
	if (d->seg.qkey != READ_ONCE(qp->qkey))
		return DG_BAD_QKEY;
	if (!dg_rq_used(qp))
		return DG_NO_RQE;
	/* Or the message would be written, and the program not hear of it */
	return dg_cq_has_room(to_dg_cq(qp->base.recv_cq),
			      SIW_DG_WC_RECV) ?
		DG_RECEIVED : DG_CQ_FULL;
}

static enum dg_counter dg_judge_write(struct dg_qp *qp, struct dg_datagram *d)
{
	const struct dg_segment *seg = &d->seg;
	struct in6_addr source;

	d->zone = xa_load(&qp->zones, seg->stag);
	/* Counted apart, they would show each local program which half of a guess is right */
	if (!d->zone || seg->qkey != d->zone->qkey)
		return DG_NO_ZONE;
	dg_source_address(d, &source);
	if (!dg_zone_allows(d->zone, &source, dg_source_port(d)))
		return DG_BAD_SOURCE;
	/* All of its message */
	if (!dg_within(seg, d->zone->length))
		return DG_BAD_RANGE;
	return !d->zone->record ||
	       dg_cq_has_room(to_dg_cq(qp->base.recv_cq), SIW_DG_WC_RECORD) ?
		DG_WRITTEN : DG_CQ_FULL;
}

/*
 * Returns DG_RECEIVED, DG_WRITTEN or DG_ERRORS_RECEIVED, or the reason for dropping
 * it. The CRC comes last, as it costs most; behind it only the tracker, which
 * remembers what it has seen. The caller holds rq_lock.
 */
static enum dg_counter dg_judge(struct dg_qp *qp, struct dg_datagram *d)
{
	enum dg_counter verdict = DG_ERRORS_RECEIVED;

	if (!dg_header_is_good(d))
		return DG_BAD_HEADER;
	if (d->seg.form == DG_SEND)
		verdict = dg_judge_send(qp, d);
	else if (d->seg.form == DG_WRITE_RECORD)
		verdict = dg_judge_write(qp, d);
	if (verdict != DG_RECEIVED && verdict != DG_WRITTEN &&
	    verdict != DG_ERRORS_RECEIVED)
		return verdict;
	return dg_crc_is_good(d) ? verdict : DG_BAD_CRC;
}

static struct dg_source dg_source_of(const struct dg_datagram *d)
{
	/* A link-local address is one host: the QP has one interface */
	struct dg_source source = { .port = dg_source_port(d) };
	struct in6_addr address;

	dg_source_address(d, &address);
	memcpy(source.addr, &address, sizeof(source.addr));
	return source;
}

/* ---- error messages */

/* Returns false for a datagram that has none */
static bool dg_refusal_of(enum dg_counter counter, enum dg_refusal *why)
{
	switch (counter) {
	case DG_NO_ZONE:
		*why = DG_REFUSED_ZONE;
		return true;
	case DG_BAD_RANGE:
		*why = DG_REFUSED_RANGE;
		return true;
	case DG_CQ_FULL:
		*why = DG_REFUSED_ROOM;
		return true;
	case DG_CONTRARY:
	case DG_MSG_TOO_LONG:
		*why = DG_REFUSED_FORM;
		return true;
	default:
		return false;
	}
}

/* Neither multicast nor broadcast, which many would answer */
static bool dg_is_unicast(const struct dg_datagram *d)
{
	if (d->skb->pkt_type != PACKET_HOST)
		return false;
	return dg_is_ipv4(d) ?
	       !ipv4_is_multicast(ip_hdr(d->skb)->daddr) &&
	       !ipv4_is_lbcast(ip_hdr(d->skb)->daddr) :
	       !ipv6_addr_is_multicast(&ipv6_hdr(d->skb)->daddr);
}

/* Where an answer goes, from the address that the datagram was sent to */
static void dg_answer_address(const struct dg_datagram *d,
			      struct dg_address *answer)
{
	*answer = (struct dg_address) {};
	dg_source_address(d, &answer->target);
	if (dg_is_ipv4(d))
		ipv6_addr_set_v4mapped(ip_hdr(d->skb)->daddr, &answer->source);
	else
		answer->source = ipv6_hdr(d->skb)->daddr;
}

/* Answers a refused datagram, seldom. The caller holds rq_lock. */
static void dg_refuse(struct dg_qp *qp, const struct dg_datagram *d,
		      enum dg_counter counter)
{
	struct dg_source source;
	struct dg_address answer;
	u8 header[DG_WRITE_HDR];
	enum dg_refusal why;

	/* Without a zone no source is named, and the QP has no time */
	if (!qp->reports || !qp->slots || qp->state != IB_QPS_RTS ||
	    d->seg.form != DG_WRITE_RECORD || d->len < DG_REFUSAL_LEN ||
	    !dg_refusal_of(counter, &why) || !dg_is_unicast(d))
		return;
	source = dg_source_of(d);
	dg_answer_address(d, &answer);
	/* Last the limit: it is for those alone who may have an error message */
	if (dg_zones_name(qp, d->zone, &answer.target, source.port) &&
	    dg_crc_is_good(d) &&
	    !skb_copy_bits(d->skb, d->offset, header, sizeof(header)) &&
	    dg_report_may(qp, &source, qp->now))
		dg_report_add(qp, &answer, source.port, why, header, d->len);
}

static void dg_drop(struct dg_qp *qp, const struct dg_datagram *d,
		    enum dg_counter counter)
{
	dg_count(qp, counter);
	dg_refuse(qp, d, counter);
}

/* ---- placing */

static void dg_put_grh4(const struct iphdr *ip, struct ipv6hdr *grh)
{
	ip6_flow_hdr(grh, ip->tos, 0);
	grh->hop_limit = ip->ttl;
	ipv6_addr_set_v4mapped(ip->saddr, &grh->saddr);
	ipv6_addr_set_v4mapped(ip->daddr, &grh->daddr);
}

/*
 * ibv_init_ah_from_wc() looks an IPv4 header up among the GIDs of RoCE v2,
 * which this port does not have, so it is IPv6 for both.
 */
static void dg_build_grh(const struct dg_datagram *d, struct ipv6hdr *grh)
{
	BUILD_BUG_ON(sizeof(*grh) != SIW_DG_GRH_LEN);
	if (dg_is_ipv4(d))
		dg_put_grh4(ip_hdr(d->skb), grh);
	else
		*grh = *ipv6_hdr(d->skb);
	grh->payload_len = htons(d->seg.len);
	grh->nexthdr = SIW_DG_GRH_NEXTHDR;
}

/**
 * struct dg_place - a receive request that is being filled
 * @rqe: copy of the request
 * @mrs: its regions; NULL for an entry of length 0
 * @sge: index of the current entry
 * @done: octets in the current entry
 */
struct dg_place {
	struct siw_dg_rqe rqe;
	struct dg_mr *mrs[SIW_DG_MAX_SGE];
	u32 sge;
	u32 done;
};

/* Returns the page of the next octet; *@len: octets that are contiguous there */
static struct page *dg_next_place(struct dg_place *place, u32 *offset, u32 *len)
{
	const struct siw_dg_sge *sge;
	struct page *page;

	while (place->done == place->rqe.sge[place->sge].length) {
		place->sge++;
		place->done = 0;
	}
	sge = &place->rqe.sge[place->sge];
	page = dg_mr_page(place->mrs[place->sge], sge->addr + place->done,
			  offset);
	*len = min3(*len, (u32)PAGE_SIZE - *offset, sge->length - place->done);
	place->done += *len;
	return page;
}

/* The request has room for @len octets. From @from, or from the packet if it is NULL. */
static void dg_fill(struct dg_place *place, const void *from,
		    const struct dg_datagram *d, u32 len)
{
	u32 done, now, offset;
	struct page *page;
	void *to;

	for (done = 0; done < len; done += now) {
		now = len - done;
		page = dg_next_place(place, &offset, &now);
		to = kmap_local_page(page) + offset;
		if (from)
			memcpy(to, from + done, now);
		else
			skb_copy_bits(d->skb,
				      d->offset + d->seg.hdr_len + done, to,
				      now);
		flush_dcache_page(page);
		kunmap_local(to);
	}
}

static void dg_put_place(struct dg_place *place)
{
	int i;

	for (i = 0; i < SIW_DG_MAX_SGE; i++)
		if (place->mrs[i])
			dg_mr_put(place->mrs[i]);
}

static enum ib_wc_status dg_get_place(struct dg_qp *qp, struct dg_place *place,
				      u32 len)
{
	struct siw_dg_sge *sge = place->rqe.sge;
	u32 i;

	if (place->rqe.num_sge > SIW_DG_MAX_SGE ||
	    memchr_inv(place->rqe.reserved, 0, sizeof(place->rqe.reserved)))
		return IB_WC_LOC_QP_OP_ERR;
	for (i = 0; i < place->rqe.num_sge && len; i++, sge++) {
		if (!sge->length)
			continue;
		place->mrs[i] = dg_mr_get(dg_device_of(qp), qp->base.pd, sge,
					  true);
		if (!place->mrs[i])
			return IB_WC_LOC_PROT_ERR;
		len -= min(len, sge->length);
	}
	return len ? IB_WC_LOC_LEN_ERR : IB_WC_SUCCESS;
}

static enum ib_wc_status dg_place_message(struct dg_qp *qp,
					  struct dg_place *place,
					  const struct dg_datagram *d)
{
	enum ib_wc_status status;
	struct ipv6hdr grh;

	status = dg_get_place(qp, place, sizeof(grh) + d->seg.len);
	if (status == IB_WC_SUCCESS) {
		dg_build_grh(d, &grh);
		dg_fill(place, &grh, NULL, sizeof(grh));
		dg_fill(place, NULL, d, d->seg.len);
	}
	dg_put_place(place);
	return status;
}

/* ---- receive queue */

static void dg_take_rqe(struct dg_qp *qp, struct siw_dg_rqe *rqe)
{
	memcpy(rqe, dg_queue_entry(qp->rq, qp->rq_next, sizeof(*rqe)),
	       sizeof(*rqe));
	/* The program may change its copy; the compiler must not look again */
	barrier();
	/* Pairs with the program's acquire before it writes there anew */
	smp_store_release(&qp->rq->ring->consumer, ++qp->rq_next);
}

static void dg_complete_receive(struct dg_qp *qp, struct siw_dg_cqe *cqe,
				enum ib_wc_status status, bool solicited)
{
	cqe->status = status;
	cqe->opcode = SIW_DG_WC_RECV;
	cqe->qp_num = qp->base.qp_num;
	dg_count(qp, status == IB_WC_SUCCESS ? DG_RECEIVED : DG_RQE_ERRORS);
	if (!dg_cq_add(to_dg_cq(qp->base.recv_cq), cqe,
		       solicited || status != IB_WC_SUCCESS))
		dg_count(qp, DG_CQ_FULL);
}

/* The caller holds rq_lock */
static void dg_receive_message(struct dg_qp *qp, const struct dg_datagram *d)
{
	struct dg_place place = {};
	struct siw_dg_cqe cqe = {
		.byte_len = SIW_DG_GRH_LEN + d->seg.len,
		.src_qp = dg_source_port(d),
	};
	enum ib_wc_status status;

	dg_take_rqe(qp, &place.rqe);
	status = dg_place_message(qp, &place, d);
	cqe.wr_id = place.rqe.wr_id;
	dg_complete_receive(qp, &cqe, status, d->seg.solicited);
}

/* Returns whether requests are left */
static bool dg_flush_some(struct dg_qp *qp)
{
	struct siw_dg_rqe rqe;
	int i;

	for (i = 0; i < DG_RX_BUDGET && dg_rq_used(qp); i++) {
		struct siw_dg_cqe cqe = {};

		dg_take_rqe(qp, &rqe);
		cqe.wr_id = rqe.wr_id;
		dg_complete_receive(qp, &cqe, IB_WC_WR_FLUSH_ERR, false);
	}
	return dg_rq_used(qp);
}

/**
 * dg_flush_rq - complete all receive requests with IB_WC_WR_FLUSH_ERR
 * @qp: the QP, in state ERR; the caller holds sq_mutex
 */
void dg_flush_rq(struct dg_qp *qp)
{
	u32 left = DG_MAX_WR;
	bool more = true;

	/* A program may post while they are flushed, which is not followed */
	for (; more && left; left -= DG_RX_BUDGET) {
		spin_lock_bh(&qp->rq_lock);
		more = dg_flush_some(qp);
		spin_unlock_bh(&qp->rq_lock);
	}
}

/* ---- zones */

static void dg_add_record(struct dg_qp *qp, struct siw_dg_cqe *cqe,
			  const u8 *source)
{
	cqe->status = IB_WC_SUCCESS;
	cqe->qp_num = qp->base.qp_num;
	memcpy(cqe->source, source, sizeof(cqe->source));
	if (!dg_cq_add(to_dg_cq(qp->base.recv_cq), cqe, false))
		dg_count(qp, DG_CQ_FULL);
}

/* A program that asked for it has a completion. The caller holds rq_lock. */
static void dg_receive_error(struct dg_qp *qp, const struct dg_datagram *d)
{
	struct dg_source source = dg_source_of(d);
	struct dg_segment cause;
	struct dg_error error;
	/* Its sender may still change the octets that were judged */
	u8 buf[DG_PARSE_MAX] = {};
	struct siw_dg_cqe cqe;

	dg_count(qp, DG_ERRORS_RECEIVED);
	if (!qp->writes ||
	    skb_copy_bits(d->skb, d->offset, buf, d->seg.hdr_len))
		return;
	/* Each message has one completion: without room a later error message has it */
	if (!dg_cq_has_room(to_dg_cq(qp->base.recv_cq), SIW_DG_WC_ERROR)) {
		dg_count(qp, DG_CQ_FULL);
		return;
	}
	dg_parse_error(buf, &error);
	if (!dg_writes_take(qp->writes, &source, &error, &cause))
		return;
	cqe = (struct siw_dg_cqe) {
		.wr_id = cause.to,
		.opcode = SIW_DG_WC_ERROR,
		.byte_len = cause.len,
		.src_qp = source.port,
		.zone = cause.stag,
		.msn = cause.msn,
		.mo = cause.mo,
		.ml = cause.ml,
		.bytes = error.layer << 12 | error.type << 8 | error.code,
	};
	dg_add_record(qp, &cqe, source.addr);
}

static void dg_record_datagram(struct dg_qp *qp, const struct dg_datagram *d,
			       const struct dg_source *source)
{
	struct siw_dg_cqe cqe = {
		.wr_id = d->seg.to,
		.opcode = SIW_DG_WC_RECORD,
		.byte_len = d->seg.len,
		.src_qp = source->port,
		.zone = d->zone->number,
		.msn = d->seg.msn,
		.ml = d->seg.ml,
		.bytes = d->seg.len,
	};

	if (d->zone->record)
		dg_add_record(qp, &cqe, source->addr);
}

/* A record for each contiguous part that came. The caller holds rq_lock. */
static void dg_record_message(struct dg_qp *qp, const struct dg_slot *message)
{
	const struct dg_zone *zone = xa_load(&qp->zones, message->stag);
	struct siw_dg_cqe cqe = {
		.src_qp = message->source.port,
		.zone = message->stag,
		.msn = message->msn,
		.ml = message->ml,
	};
	struct dg_run run;
	u32 from = 0;

	/* Closing a zone forgets its messages, so it is there */
	if (!zone || !zone->record)
		return;
	while (dg_track_run(message, &from, &run)) {
		cqe.opcode = run.end ? SIW_DG_WC_RECORD : SIW_DG_WC_PIECE;
		cqe.wr_id = message->base + run.mo;
		cqe.byte_len = run.len;
		cqe.mo = run.mo;
		cqe.bytes = run.end ? message->bytes : 0;
		dg_add_record(qp, &cqe, message->source.addr);
	}
}

/* Sets the bits of the blocks that the datagram has written whole */
static void dg_mark_map(const struct dg_zone *zone,
			const struct dg_segment *seg)
{
	atomic_t *words = (atomic_t *)(zone->map->ring + 1);
	u64 next, end;
	u32 bit, bits;

	dg_whole_blocks(seg, zone->length, zone->block, &next, &end);
	/* A bit never stands for data that is not there */
	smp_wmb();
	for (; next < end; next += bits) {
		bit = next % 32;
		bits = min_t(u64, 32 - bit, end - next);
		atomic_or(GENMASK(bit + bits - 1, bit), &words[next / 32]);
	}
}

/* The caller holds rq_lock, which keeps the zone, which keeps its region */
static void dg_place_write(const struct dg_datagram *d)
{
	struct dg_place place = {
		.rqe.sge[0] = {
			.addr = d->zone->addr + d->seg.to,
			.length = d->seg.len,
		},
		.mrs[0] = d->zone->mr,
	};

	dg_fill(&place, NULL, d, d->seg.len);
	if (d->zone->map)
		dg_mark_map(d->zone, &d->seg);
}

static enum dg_counter dg_counter_of(enum dg_verdict verdict)
{
	switch (verdict) {
	case DG_SINGLE:
	case DG_PLACE:
	case DG_DELIVER:
		return DG_WRITTEN;
	case DG_LATE:
		return DG_MSG_ENDED;
	case DG_DUPLICATE:
		return DG_REPEATED;
	case DG_OLDER:
	case DG_MISMATCH:
		return DG_CONTRARY;
	case DG_TOO_MANY:
		break;
	}
	return DG_MSG_TOO_LONG;
}

/* The caller holds rq_lock */
static void dg_receive_write(struct dg_qp *qp, const struct dg_datagram *d)
{
	struct dg_source source = dg_source_of(d);
	struct dg_slot *message;
	enum dg_verdict verdict;
	enum dg_counter counter;

	verdict = dg_track_offer(&qp->track, &source, &d->seg,
				 d->zone->partial, qp->now, &message);
	if (verdict == DG_OLDER) {
		dg_record_message(qp, message);
		verdict = dg_track_offer(&qp->track, &source, &d->seg,
					 d->zone->partial, qp->now, &message);
	}
	counter = dg_counter_of(verdict);
	if (counter != DG_WRITTEN) {
		dg_drop(qp, d, counter);
		return;
	}
	dg_count(qp, counter);
	dg_place_write(d);
	/* An entry never stands for data that is not there */
	if (verdict == DG_SINGLE)
		dg_record_datagram(qp, d, &source);
	else if (verdict == DG_DELIVER)
		dg_record_message(qp, message);
}

/* ---- time */

static void dg_add_count(const struct dg_qp *qp, enum dg_counter counter,
			 u64 *number)
{
	if (*number)
		atomic64_add(*number, &dg_device_of(qp)->counters[counter]);
	*number = 0;
}

/* Begins a batch of datagrams. The caller holds rq_lock. */
static void dg_end_messages(struct dg_qp *qp)
{
	const struct dg_slot *message;
	int i;

	if (!qp->slots)
		return;
	qp->now = ktime_get_ns();
	for (i = 0; i < DG_END_BUDGET; i++) {
		message = dg_track_expire(&qp->track, qp->now);
		if (!message)
			break;
		dg_record_message(qp, message);
	}
}

/*
 * Ends a batch of datagrams. The work item runs at the end of the oldest message
 * that it has seen, although that may have come whole meanwhile: most messages
 * do, and never touch the timer. The caller holds rq_lock.
 */
static void dg_watch_messages(struct dg_qp *qp)
{
	u64 when;

	if (!qp->slots)
		return;
	dg_add_count(qp, DG_SUPERSEDED, &qp->track.superseded);
	dg_add_count(qp, DG_EVICTED, &qp->track.evicted);
	dg_add_count(qp, DG_EXPIRED, &qp->track.expired);
	if (!dg_track_next(&qp->track, &when) ||
	    (qp->armed && qp->armed <= when))
		return;
	qp->armed = when;
	mod_delayed_work(dg_wq, &qp->end_work, when > qp->now ?
			 nsecs_to_jiffies(when - qp->now) + 1 : 0);
}

void dg_end_work(struct work_struct *work)
{
	struct dg_qp *qp = container_of(to_delayed_work(work), struct dg_qp,
					end_work);

	spin_lock_bh(&qp->rq_lock);
	qp->armed = 0;
	dg_end_messages(qp);
	dg_watch_messages(qp);
	spin_unlock_bh(&qp->rq_lock);
}

/* ---- packets */

/* Returns DG_RECEIVED, or the reason for dropping all of it */
static enum dg_counter dg_judge_packet(const struct dg_qp *qp,
				       struct sk_buff *skb)
{
	if (udp_lib_checksum_complete(skb))
		return DG_BAD_CSUM;
	if (skb->skb_iif != dg_device_of(qp)->netdev->ifindex &&
	    skb->skb_iif != LOOPBACK_IFINDEX)
		return DG_BAD_IFACE;
	/* It would pass for an IPv4 packet, whose source other rules have checked */
	if (skb->protocol == htons(ETH_P_IPV6) &&
	    ipv6_addr_v4mapped(&ipv6_hdr(skb)->saddr))
		return DG_BAD_SOURCE;
	switch (qp->state) {
	case IB_QPS_RTR:
	case IB_QPS_RTS:
	case IB_QPS_SQD:
	case IB_QPS_SQE:
		return DG_RECEIVED;
	default:
		return DG_BAD_STATE;
	}
}

/* Other bundles than those of GRO are one datagram */
static u32 dg_datagram_size(const struct sk_buff *skb)
{
	const struct skb_shared_info *info = skb_shinfo(skb);

	return info->gso_size && info->gso_type & SKB_GSO_UDP_L4 ?
		info->gso_size : skb->len;
}

/* Returns the number of datagrams */
static u32 dg_receive_packet(struct dg_qp *qp, struct sk_buff *skb)
{
	struct dg_datagram d = { .skb = skb };
	enum dg_counter verdict = dg_judge_packet(qp, skb);
	u32 size = dg_datagram_size(skb), number = 0;

	/* None of a bundle of smaller ones is good, and they may be many */
	if (verdict == DG_RECEIVED && size < DG_SEND_HDR + DG_CRC_LEN)
		verdict = DG_BAD_HEADER;
	if (verdict != DG_RECEIVED) {
		/* An empty datagram is one as well */
		dg_count_many(qp, verdict, skb->len ? DIV_ROUND_UP(skb->len, size) : 1);
		return 1;
	}
	do {
		d.len = min(size, skb->len - d.offset);
		verdict = dg_judge(qp, &d);
		if (verdict == DG_RECEIVED)
			dg_receive_message(qp, &d);
		else if (verdict == DG_WRITTEN)
			dg_receive_write(qp, &d);
		else if (verdict == DG_ERRORS_RECEIVED)
			dg_receive_error(qp, &d);
		else
			dg_drop(qp, &d, verdict);
		d.offset += d.len;
		number++;
	} while (d.offset < skb->len);
	return number;
}

/* NULL: the queue is empty */
static struct sk_buff *dg_next_packet(struct sock *sk)
{
	struct sk_buff *skb;
	int error;

	/* An empty queue would make skb_recv_udp() poll, if the program wants it */
	if (skb_queue_empty_lockless(&sk->sk_receive_queue) &&
	    skb_queue_empty_lockless(&udp_sk(sk)->reader_queue))
		return NULL;
#ifdef CONFIG_NET_RX_BUSY_POLL
	WRITE_ONCE(sk->sk_ll_usec, 0);
#endif
	/* First the error of a socket, which it forgets with that */
	do
		skb = skb_recv_udp(sk, MSG_DONTWAIT, &error);
	while (!skb && error != -EAGAIN);
	/* UDP has used it for something else */
	if (skb)
		skb->dev = NULL;
	return skb;
}

/**
 * dg_rx_receive - receive datagrams that the socket holds
 * @qp: the QP
 *
 * Leaves what is more than a softirq should do to dg_rx_work().
 *
 * Context: softirq, or process with softirqs off; the socket's
 * sk_callback_lock, or the work item, keeps the QP.
 */
void dg_rx_receive(struct dg_qp *qp)
{
	u32 datagrams = 0, octets = 0;
	struct sk_buff *skb = NULL;

	spin_lock_bh(&qp->rq_lock);
	dg_end_messages(qp);
	while (datagrams < DG_RX_BUDGET && octets < DG_RX_OCTETS) {
		skb = dg_next_packet(qp->socket->sk);
		if (!skb)
			break;
		octets += skb->len;
		datagrams += dg_receive_packet(qp, skb);
		consume_skb(skb);
	}
	dg_watch_messages(qp);
	spin_unlock_bh(&qp->rq_lock);
	if (skb)
		queue_work(dg_wq, &qp->rx_work);
}

void dg_rx_work(struct work_struct *work)
{
	dg_rx_receive(container_of(work, struct dg_qp, rx_work));
}
