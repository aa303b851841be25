// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Send, in the context of the program; a work item goes on when the socket was
 * full. A Send is one datagram. A Write-Record is as many as it takes, handed over
 * to UDP in bundles (UDP_SEGMENT). See NOTICE.
 *
 * The program can write its queue and its data at any time. A request is
 * copied before it is looked at. Data that changes while it is sent has a wrong
 * CRC at worst, and the receiver drops it.
 */
#include <linux/bvec.h>
#include <linux/cred.h>
#include <linux/fs.h>
#include <linux/highmem.h>
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/sched/signal.h>
#include <linux/udp.h>
#include <linux/uio.h>
#include <net/ipv6.h>
#include <net/route.h>
#include <net/sock.h>

#include "dg_device.h"

/* Q_Keys with this bit stand for the QP's own */
#define DG_QKEY_PRIVILEGED	0x80000000U

/* The most datagrams of a bundle; 45 of 1,500 octets are more than its octets */
#define DG_BUNDLE		64
/* The most octets of a bundle: one of UDP over IPv4 */
#define DG_BUNDLE_OCTETS	(65535 - 20 - 8)
/* So much is sent in one hold of sq_mutex, and by one work item */
#define DG_TX_OCTETS		(4 * 1024 * 1024)
/* Cost of a call, in octets, beside those that it sends */
#define DG_TX_CALL		1024
/* -EAGAIN in succession, although the socket claims to have room, before it is an error */
#define DG_RETRIES		16
/* How often a message begins anew because the path takes less than its datagrams */
#define DG_ATTEMPTS		5

/* Header, data and CRC of each datagram; pages; and both ends of each SGE */
#define DG_TX_BVECS	(3 * DG_BUNDLE + \
			 DIV_ROUND_UP(DG_BUNDLE_OCTETS, PAGE_SIZE) + \
			 2 * SIW_DG_MAX_SGE)

/**
 * struct dg_tx - the send request in progress
 * @busy: it has begun, and waits
 * @retries: how often in succession the socket claimed to have room, and had none
 * @sqe: copy of the request
 * @address: where it goes
 * @length: of its data in octets
 * @msn: its number
 * @segment: data octets of its datagrams but the last
 * @bundle: datagrams of a call
 * @mo: octets of its data that the network has taken
 * @attempts: how often it has begun anew
 * @budget: what this call may still send
 * @num_mrs: used entries of @mrs
 * @mrs: regions of its data, by entry of its list; held only within a call
 * @sge: entry of the next octet
 * @done: octets of that entry that are in @bvecs
 * @num_bvecs: used entries of @bvecs
 * @octets: of @bvecs
 * @bvecs: a bundle
 * @headers: its headers and CRCs
 */
struct dg_tx {
	bool busy;
	u32 retries;
	struct siw_dg_sqe sqe;
	struct dg_address address;
	u32 length;
	u32 msn;
	u32 segment;
	u32 bundle;
	u32 mo;
	u32 attempts;
	s32 budget;
	struct dg_mr *mrs[SIW_DG_MAX_SGE];
	u32 sge;
	u32 done;
	u32 num_bvecs;
	size_t octets;
	struct bio_vec bvecs[DG_TX_BVECS];
	u8 headers[DG_BUNDLE][DG_WRITE_HDR + DG_CRC_LEN];
};

/**
 * dg_tx_create - allocate memory for sending
 * @qp: the QP
 *
 * Return: 0 or -ENOMEM
 */
int dg_tx_create(struct dg_qp *qp)
{
	/* Headers go to the socket by their pages: no vmalloc() */
	qp->tx = kzalloc(sizeof(*qp->tx), GFP_KERNEL_ACCOUNT);
	return qp->tx ? 0 : -ENOMEM;
}

void dg_tx_destroy(struct dg_qp *qp)
{
	kfree(qp->tx);
}

/**
 * dg_tx_forget - drop the send request in progress
 * @qp: the QP; the caller holds sq_mutex
 */
void dg_tx_forget(struct dg_qp *qp)
{
	qp->tx->busy = false;
	qp->tx->retries = 0;
}

/* A control message: source address, TOS or traffic class, TTL or hop limit, UDP_SEGMENT */
struct dg_control {
	u8 buf[CMSG_SPACE(sizeof(struct in6_pktinfo)) +
	       3 * CMSG_SPACE(sizeof(int))] __aligned(8);
	size_t length;
};

static void dg_put_cmsg(struct dg_control *control, int level, int type,
			const void *data, size_t len)
{
	struct cmsghdr *cmsg = (void *)control->buf + control->length;

	cmsg->cmsg_level = level;
	cmsg->cmsg_type = type;
	cmsg->cmsg_len = CMSG_LEN(len);
	memcpy(CMSG_DATA(cmsg), data, len);
	control->length += CMSG_SPACE(len);
}

static void dg_put_cmsg_int(struct dg_control *control, int level, int type,
			    int value)
{
	/* 0: the socket's own */
	if (value)
		dg_put_cmsg(control, level, type, &value, sizeof(value));
}

static void dg_set_target4(const struct dg_qp *qp, const struct dg_address *to,
			   u16 port, struct msghdr *msg,
			   struct dg_control *control)
{
	struct sockaddr_in *sin = msg->msg_name;
	struct in_pktinfo info = {
		.ipi_ifindex = dg_device_of(qp)->netdev->ifindex,
		.ipi_spec_dst.s_addr = to->source.s6_addr32[3],
	};

	sin->sin_family = AF_INET;
	sin->sin_addr.s_addr = to->target.s6_addr32[3];
	sin->sin_port = htons(port);
	msg->msg_namelen = sizeof(*sin);
	dg_put_cmsg(control, SOL_IP, IP_PKTINFO, &info, sizeof(info));
	dg_put_cmsg_int(control, SOL_IP, IP_TOS, to->tclass);
	dg_put_cmsg_int(control, SOL_IP, IP_TTL, to->hop_limit);
}

static void dg_set_target6(const struct dg_qp *qp, const struct dg_address *to,
			   u16 port, struct msghdr *msg,
			   struct dg_control *control)
{
	int ifindex = dg_device_of(qp)->netdev->ifindex;
	struct sockaddr_in6 *sin6 = msg->msg_name;
	struct in6_pktinfo info = {
		.ipi6_ifindex = ifindex,
		.ipi6_addr = to->source,
	};

	sin6->sin6_family = AF_INET6;
	sin6->sin6_addr = to->target;
	sin6->sin6_port = htons(port);
	if (__ipv6_addr_needs_scope_id(ipv6_addr_type(&sin6->sin6_addr)))
		sin6->sin6_scope_id = ifindex;
	msg->msg_namelen = sizeof(*sin6);
	dg_put_cmsg(control, SOL_IPV6, IPV6_PKTINFO, &info, sizeof(info));
	dg_put_cmsg_int(control, SOL_IPV6, IPV6_TCLASS, to->tclass);
	dg_put_cmsg_int(control, SOL_IPV6, IPV6_HOPLIMIT, to->hop_limit);
}

static bool dg_is_ipv4(const struct dg_tx *tx)
{
	return ipv6_addr_v4mapped(&tx->address.target);
}

/* ---- the path */

/* The route that sendmsg() takes */
static u8 dg_route_tos(const struct dg_qp *qp, const struct dg_tx *tx)
{
	return dg_rt_tos(tx->address.tclass ?:
			 READ_ONCE(inet_sk(qp->socket->sk)->tos));
}

static u8 dg_route_tclass(const struct dg_qp *qp, const struct dg_tx *tx)
{
	return tx->address.tclass ?:
	       READ_ONCE(inet6_sk(qp->socket->sk)->tclass);
}

static u32 dg_path_mtu4(const struct dg_qp *qp, const struct dg_tx *tx)
{
	const struct dg_device *dev = dg_device_of(qp);
	const struct sock *sk = qp->socket->sk;
	struct net *net = sock_net(sk);
	struct flowi4 fl4 = {};
	struct rtable *rt;
	u32 mtu;

	flowi4_init_output(&fl4, dev->netdev->ifindex, READ_ONCE(sk->sk_mark),
			   dg_route_tos(qp, tx), RT_SCOPE_UNIVERSE, IPPROTO_UDP,
			   0, tx->address.target.s6_addr32[3],
			   tx->address.source.s6_addr32[3],
			   htons(tx->sqe.remote_qpn), htons(qp->base.qp_num),
			   sock_net_uid(net, sk));
	rt = ip_route_output_flow(net, &fl4, sk);
	if (IS_ERR(rt))
		return 0;
	mtu = dst_mtu(&rt->dst);
	ip_rt_put(rt);
	return mtu;
}

static u32 dg_path_mtu6(const struct dg_qp *qp, const struct dg_tx *tx)
{
	const struct sock *sk = qp->socket->sk;
	struct flowi6 fl6 = {
		.flowi6_oif = dg_device_of(qp)->netdev->ifindex,
		.flowi6_mark = READ_ONCE(sk->sk_mark),
		.flowi6_proto = IPPROTO_UDP,
		.flowi6_uid = sock_net_uid(sock_net(sk), sk),
		.daddr = tx->address.target,
		.saddr = tx->address.source,
		.fl6_dport = htons(tx->sqe.remote_qpn),
		.fl6_sport = htons(qp->base.qp_num),
	};
	struct dst_entry *dst;
	u32 mtu;

	/* A host without IPv6 has no routes of it */
	if (sk->sk_family != AF_INET6)
		return 0;
	fl6.flowlabel = ip6_make_flowinfo(dg_route_tclass(qp, tx), 0);
	dst = ip6_dst_lookup_flow(sock_net(sk), sk, &fl6, NULL);
	if (IS_ERR(dst))
		return 0;
	mtu = dst_mtu(dst);
	dst_release(dst);
	return mtu;
}

/* Without a route it does not matter: the socket reports that */
static u32 dg_path_mtu(const struct dg_qp *qp, const struct dg_tx *tx)
{
	u32 mtu = dg_is_ipv4(tx) ? dg_path_mtu4(qp, tx) :
				   dg_path_mtu6(qp, tx);

	return mtu ?: READ_ONCE(dg_device_of(qp)->netdev->mtu);
}

/* Data octets of a Write-Record in a packet; 0: not even the header has room */
static u32 dg_room(const struct dg_tx *tx, u32 mtu)
{
	u32 overhead = (dg_is_ipv4(tx) ? 20 : 40) + 8 + DG_WRITE_HDR +
		       DG_CRC_LEN;

	mtu = min(mtu, 65535U);
	return mtu > overhead ? mtu - overhead : 0;
}

/* ---- beginning */

static bool dg_opcode_is_good(const struct siw_dg_sqe *sqe)
{
	u16 flags = SIW_DG_SIGNALED | SIW_DG_INLINE;

	switch (sqe->opcode) {
	case SIW_DG_OP_SEND:
		return !(sqe->flags & ~(flags | SIW_DG_SOLICITED)) &&
		       !sqe->remote_zone && !sqe->remote_offset;
	case SIW_DG_OP_WRITE_RECORD:
		return !(sqe->flags & ~flags);
	}
	return false;
}

static enum ib_wc_status dg_check_length(struct dg_tx *tx)
{
	const struct siw_dg_sqe *sqe = &tx->sqe;
	u32 most = sqe->opcode == SIW_DG_OP_SEND ? DG_MAX_MSG : U32_MAX;
	int i;

	tx->length = 0;
	if (sqe->flags & SIW_DG_INLINE) {
		tx->length = sqe->inline_len;
		return tx->length <= SIW_DG_MAX_INLINE ? IB_WC_SUCCESS :
							 IB_WC_LOC_LEN_ERR;
	}
	if (sqe->num_sge > SIW_DG_MAX_SGE)
		return IB_WC_LOC_QP_OP_ERR;
	for (i = 0; i < sqe->num_sge; i++) {
		if (sqe->sge[i].length > most - tx->length)
			return IB_WC_LOC_LEN_ERR;
		tx->length += sqe->sge[i].length;
	}
	return IB_WC_SUCCESS;
}

static enum ib_wc_status dg_check_sqe(const struct dg_qp *qp, struct dg_tx *tx)
{
	const struct siw_dg_sqe *sqe = &tx->sqe;

	if (!dg_opcode_is_good(sqe) ||
	    memchr_inv(sqe->reserved, 0, sizeof(sqe->reserved)))
		return IB_WC_LOC_QP_OP_ERR;
	if (!sqe->remote_qpn || sqe->remote_qpn > U16_MAX ||
	    !dg_ah_find(dg_device_of(qp), qp->base.pd, sqe->ah, &tx->address))
		return IB_WC_LOC_QP_OP_ERR;
	return dg_check_length(tx);
}

static void dg_expect_errors(struct dg_qp *qp, const struct dg_tx *tx)
{
	struct dg_write write = {
		.stag = tx->sqe.remote_zone,
		.qkey = tx->sqe.remote_qkey,
		.msn = tx->msn,
		.ml = tx->length,
		.base = tx->sqe.remote_offset,
	};

	dg_report_expect(qp, &tx->address, tx->sqe.remote_qpn, &write);
}

/* A Write-Record begins, with datagrams of at most @room data octets */
static enum ib_wc_status dg_cut(struct dg_qp *qp, struct dg_tx *tx, u32 room)
{
	u32 most = max(tx->length, 1U);
	u32 segment = min(room, most);

	/* Without the program's choice no packet is longer than the path takes */
	if (qp->segment)
		segment = min(qp->fragment ? most : segment, qp->segment);
	if (!segment || DIV_ROUND_UP_ULL(tx->length, segment) > DG_SEGMENTS)
		return IB_WC_LOC_LEN_ERR;
	tx->segment = segment;
	tx->bundle = min3(DG_BUNDLE, (int)UDP_MAX_SEGMENTS,
			  (int)(DG_BUNDLE_OCTETS /
				(segment + DG_WRITE_HDR + DG_CRC_LEN)));
	/* UDP makes no bundles of datagrams that become fragments */
	if (segment > room)
		tx->bundle = 1;
	tx->mo = 0;
	tx->msn = ++qp->write_msn;
	dg_expect_errors(qp, tx);
	return IB_WC_SUCCESS;
}

static enum ib_wc_status dg_begin(struct dg_qp *qp, struct dg_tx *tx)
{
	enum ib_wc_status status = dg_check_sqe(qp, tx);
	u32 room;

	if (status != IB_WC_SUCCESS)
		return status;
	tx->attempts = 0;
	if (tx->sqe.opcode == SIW_DG_OP_SEND) {
		tx->mo = 0;
		tx->segment = tx->length;
		tx->bundle = 1;
		tx->msn = ++qp->send_msn;
		return IB_WC_SUCCESS;
	}
	/* Most paths take what the interface takes: the route is looked up if not */
	room = dg_room(tx, READ_ONCE(dg_device_of(qp)->netdev->mtu));
	if (tx->length > room)
		room = dg_room(tx, dg_path_mtu(qp, tx));
	return dg_cut(qp, tx, room);
}

/* All datagrams of a message have one length, so a smaller one is of a new message */
static enum ib_wc_status dg_begin_anew(struct dg_qp *qp, struct dg_tx *tx)
{
	u32 room = dg_room(tx, dg_path_mtu(qp, tx));

	if (room >= tx->segment || ++tx->attempts > DG_ATTEMPTS)
		return IB_WC_LOC_LEN_ERR;
	return dg_cut(qp, tx, room);
}

/* ---- building */

static void dg_add_bvec(struct dg_tx *tx, struct page *page, u32 len,
			u32 offset)
{
	bvec_set_page(&tx->bvecs[tx->num_bvecs++], page, len, offset);
	tx->octets += len;
}

/* Of kmalloc()'s memory */
static void dg_add_own(struct dg_tx *tx, void *p, u32 len)
{
	if (len)
		dg_add_bvec(tx, virt_to_page(p), len, offset_in_page(p));
}

/* Returns the length of the header; negative: the message wraps around */
static int dg_build_header(const struct dg_qp *qp, const struct dg_tx *tx,
			   u32 mo, u32 len, u8 *header)
{
	const struct siw_dg_sqe *sqe = &tx->sqe;
	struct dg_segment seg = {
		.form = DG_SEND,
		.solicited = sqe->flags & SIW_DG_SOLICITED,
		.last = mo + len == tx->length,
		.qkey = sqe->remote_qkey,
		.stag = sqe->remote_zone,
		.msn = tx->msn,
		.mo = mo,
		.ml = tx->length,
		.to = sqe->remote_offset + mo,
		.len = len,
	};

	if (sqe->opcode == SIW_DG_OP_WRITE_RECORD)
		seg.form = DG_WRITE_RECORD;
	else if (sqe->remote_qkey & DG_QKEY_PRIVILEGED)
		seg.qkey = qp->qkey;
	return dg_build(&seg, header, DG_WRITE_HDR);
}

/* The next octet that is sent is the one at @mo */
static void dg_seek(struct dg_tx *tx)
{
	tx->sge = 0;
	tx->done = tx->mo;
	if (tx->sqe.flags & SIW_DG_INLINE)
		return;
	while (tx->done && tx->done >= tx->sqe.sge[tx->sge].length)
		tx->done -= tx->sqe.sge[tx->sge++].length;
}

/* Adds the next data octets, at most @len of them, and to @crc. Returns how many. */
static u32 dg_add_some(struct dg_tx *tx, u32 len, u32 *crc)
{
	const struct siw_dg_sge *sge;
	struct page *page;
	u32 offset;
	void *p;

	if (tx->sqe.flags & SIW_DG_INLINE) {
		dg_add_own(tx, tx->sqe.data + tx->done, len);
		*crc = dg_crc_add(*crc, tx->sqe.data + tx->done, len);
		tx->done += len;
		return len;
	}
	while (tx->done == tx->sqe.sge[tx->sge].length) {
		tx->sge++;
		tx->done = 0;
	}
	sge = &tx->sqe.sge[tx->sge];
	page = dg_mr_page(tx->mrs[tx->sge], sge->addr + tx->done, &offset);
	len = min3(len, sge->length - tx->done, (u32)PAGE_SIZE - offset);
	p = kmap_local_page(page);
	*crc = dg_crc_add(*crc, p + offset, len);
	kunmap_local(p);
	dg_add_bvec(tx, page, len, offset);
	tx->done += len;
	return len;
}

/* Adds the datagram of @len data octets at @mo. Returns false if the message wraps around. */
static bool dg_add_datagram(const struct dg_qp *qp, struct dg_tx *tx, u32 mo,
			    u32 len, u8 *header)
{
	int hdr_len = dg_build_header(qp, tx, mo, len, header);
	u32 crc;

	if (hdr_len < 0)
		return false;
	dg_add_own(tx, header, hdr_len);
	crc = dg_crc_add(DG_CRC_START, header, hdr_len);
	while (len)
		len -= dg_add_some(tx, len, &crc);
	header += DG_WRITE_HDR;
	dg_crc_put(crc, header);
	dg_add_own(tx, header, DG_CRC_LEN);
	return true;
}

/* Returns the number of datagrams; 0: the message wraps around */
static u32 dg_build_bundle(const struct dg_qp *qp, struct dg_tx *tx)
{
	u32 mo = tx->mo, count = 0, len;

	tx->num_bvecs = 0;
	tx->octets = 0;
	dg_seek(tx);
	do {
		len = min(tx->segment, tx->length - mo);
		if (!dg_add_datagram(qp, tx, mo, len, tx->headers[count]))
			return 0;
		mo += len;
	} while (++count < tx->bundle && mo < tx->length);
	return count;
}

/* The program may take a region back while a request waits, so they are held only meanwhile */
static enum ib_wc_status dg_hold_data(const struct dg_qp *qp, struct dg_tx *tx)
{
	const struct siw_dg_sge *sge = tx->sqe.sge;
	int i;

	if (tx->sqe.flags & SIW_DG_INLINE)
		return IB_WC_SUCCESS;
	for (i = 0; i < tx->sqe.num_sge; i++, sge++) {
		if (!sge->length)
			continue;
		tx->mrs[i] = dg_mr_get(dg_device_of(qp), qp->base.pd, sge,
				       false);
		if (!tx->mrs[i])
			return IB_WC_LOC_PROT_ERR;
	}
	return IB_WC_SUCCESS;
}

static void dg_put_data(struct dg_tx *tx)
{
	int i;

	for (i = 0; i < SIW_DG_MAX_SGE; i++) {
		if (tx->mrs[i])
			dg_mr_put(tx->mrs[i]);
		tx->mrs[i] = NULL;
	}
}

/* ---- sending */

/**
 * dg_is_corked - is a datagram of the program's in the socket?
 * @qp: the QP
 *
 * The program may have corked the socket that it handed over, or have begun a
 * datagram there: ours would be appended to it, after a wait for the socket's lock
 * whose end is up to the program.
 *
 * Return: true if so
 */
bool dg_is_corked(const struct dg_qp *qp)
{
	const struct sock *sk = qp->socket->sk;

	return udp_test_bit(CORK, sk) || READ_ONCE(udp_sk(sk)->pending);
}

/**
 * dg_sendmsg - send datagrams
 * @qp: the QP; the caller holds sq_mutex
 * @to: where to
 * @port: UDP port there
 * @size: length of each datagram but the last; 0: one datagram, whatever the program
 *        has set for the socket
 * @iter: their octets
 *
 * Return: 0 or an error of the socket
 */
int dg_sendmsg(const struct dg_qp *qp, const struct dg_address *to, u16 port,
	       u16 size, struct iov_iter *iter)
{
	struct sockaddr_in6 name = {};
	struct dg_control control = {};
	struct msghdr msg = {
		.msg_name = &name,
		.msg_control = &control.buf,
		.msg_flags = MSG_DONTWAIT | MSG_NOSIGNAL,
		.msg_iter = *iter,
	};
	int ret;

	if (ipv6_addr_v4mapped(&to->target))
		dg_set_target4(qp, to, port, &msg, &control);
	else
		dg_set_target6(qp, to, port, &msg, &control);
	dg_put_cmsg(&control, SOL_UDP, UDP_SEGMENT, &size, sizeof(size));
	msg.msg_controllen = control.length;
	/* An error of ICMP, which the program can ask for, is about an earlier datagram */
	sock_error(qp->socket->sk);
	ret = sock_sendmsg(qp->socket, &msg);
	return ret < 0 ? ret : 0;
}

static int dg_send_bundle(const struct dg_qp *qp, struct dg_tx *tx, u32 count)
{
	u16 size = count > 1 ? tx->segment + DG_WRITE_HDR + DG_CRC_LEN : 0;
	struct iov_iter iter;

	iov_iter_bvec(&iter, ITER_SOURCE, tx->bvecs, tx->num_bvecs, tx->octets);
	return dg_sendmsg(qp, &tx->address, tx->sqe.remote_qpn, size, &iter);
}

/* After -EAGAIN. False if room has come meanwhile. */
static bool dg_tx_must_wait(struct dg_qp *qp)
{
	set_bit(DG_QP_TX_WAITS, &qp->flags);
	/* Pairs with dg_write_space() */
	smp_mb__after_atomic();
	return !sock_writeable(qp->socket->sk) ||
	       !test_and_clear_bit(DG_QP_TX_WAITS, &qp->flags);
}

static enum ib_wc_status dg_status_of(int error)
{
	switch (error) {
	case 0:
		return IB_WC_SUCCESS;
	case -EMSGSIZE:
		return IB_WC_LOC_LEN_ERR;
	default:
		return IB_WC_GENERAL_ERR;
	}
}

static void dg_complete_send(struct dg_qp *qp, const struct siw_dg_sqe *sqe,
			     enum ib_wc_status status)
{
	struct siw_dg_cqe cqe = {
		.wr_id = sqe->wr_id,
		.status = status,
		.opcode = sqe->opcode == SIW_DG_OP_WRITE_RECORD ?
			  SIW_DG_WC_WRITE_RECORD : SIW_DG_WC_SEND,
		.qp_num = qp->base.qp_num,
	};

	if (status != IB_WC_SUCCESS)
		dg_count(qp, DG_SEND_ERRORS);
	else if (!qp->signal_all && !(sqe->flags & SIW_DG_SIGNALED))
		return;
	if (!dg_cq_add(to_dg_cq(qp->base.send_cq), &cqe,
		       status != IB_WC_SUCCESS))
		dg_count(qp, DG_CQ_FULL);
}

/* Judges the result of a call that was to send @count datagrams */
static enum ib_wc_status dg_judge_call(struct dg_qp *qp, struct dg_tx *tx,
				       u32 count, int error)
{
	if (!error) {
		tx->retries = 0;
		tx->mo += min_t(u64, (u64)count * tx->segment,
				tx->length - tx->mo);
		atomic64_add(count, &dg_device_of(qp)->counters[DG_SENT]);
		return IB_WC_SUCCESS;
	}
	/* Datagrams that are too long, or a device that cannot: one alone shows which */
	if (count > 1 &&
	    (error == -EINVAL || error == -EMSGSIZE || error == -EIO)) {
		tx->bundle = 1;
		return IB_WC_SUCCESS;
	}
	if (error == -EMSGSIZE && tx->sqe.opcode == SIW_DG_OP_WRITE_RECORD)
		return dg_begin_anew(qp, tx);
	return dg_status_of(error);
}

/*
 * Sends the next bundle. *@error is -EAGAIN if the socket is full; an empty
 * message is done after one call.
 */
static enum ib_wc_status dg_send_some(struct dg_qp *qp, struct dg_tx *tx,
				      int *error)
{
	u32 count = dg_build_bundle(qp, tx);

	if (!count || dg_is_corked(qp))
		return IB_WC_LOC_QP_OP_ERR;
	tx->budget -= tx->octets + DG_TX_CALL;
	*error = dg_send_bundle(qp, tx, count);
	if (*error == -EAGAIN && tx->retries < DG_RETRIES)
		return IB_WC_SUCCESS;
	return dg_judge_call(qp, tx, count, *error);
}

/*
 * Goes on with the request. Returns 0 if it has completed, -EAGAIN if the socket
 * is full, -EBUSY if others shall have the processor.
 */
static int dg_send_request(struct dg_qp *qp, struct dg_tx *tx)
{
	enum ib_wc_status status = IB_WC_SUCCESS;
	int error;

	if (!tx->busy)
		status = dg_begin(qp, tx);
	if (status == IB_WC_SUCCESS)
		status = dg_hold_data(qp, tx);
	tx->busy = status == IB_WC_SUCCESS;
	error = -EBUSY;
	while (tx->busy && tx->budget > 0) {
		status = dg_send_some(qp, tx, &error);
		if (status == IB_WC_SUCCESS && error == -EAGAIN)
			break;
		tx->busy = status == IB_WC_SUCCESS &&
			   (error || tx->mo < tx->length);
		error = -EBUSY;
	}
	dg_put_data(tx);
	if (tx->busy)
		return error;
	tx->retries = 0;
	dg_complete_send(qp, &tx->sqe, status);
	return 0;
}

/* Number of requests; -EINVAL if the program has written nonsense */
static int dg_sq_used(const struct dg_qp *qp)
{
	u32 used;

	/* Pairs with the program's release after it wrote the requests */
	used = smp_load_acquire(&qp->sq->ring->producer) - qp->sq_next;

	return used <= qp->sq->size ? used : -EINVAL;
}

static void dg_read_sqe(struct dg_qp *qp, struct siw_dg_sqe *sqe)
{
	memcpy(sqe, dg_queue_entry(qp->sq, qp->sq_next, sizeof(*sqe)),
	       sizeof(*sqe));
	/* The program may change its copy; the compiler must not look again */
	barrier();
}

static void dg_pass_sqe(struct dg_qp *qp)
{
	/* Pairs with the program's acquire before it writes there anew */
	smp_store_release(&qp->sq->ring->consumer, ++qp->sq_next);
}

static void dg_tx_later(struct dg_qp *qp)
{
	set_bit(DG_QP_TX_WAITS, &qp->flags);
	queue_work(dg_tx_wq, &qp->tx_work);
}

/*
 * The caller holds sq_mutex. Returns -EBUSY if requests are left for the caller,
 * which has sent its part.
 */
static int dg_run_sq(struct dg_qp *qp)
{
	struct dg_tx *tx = qp->tx;
	int used = dg_sq_used(qp);
	int ret;

	tx->budget = DG_TX_OCTETS;
	while (used > 0) {
		if (!tx->busy)
			dg_read_sqe(qp, &tx->sqe);
		ret = dg_send_request(qp, tx);
		if (ret == -EAGAIN) {
			if (dg_tx_must_wait(qp))
				return 0;
			/* Other datagrams may still take the room: then later */
			if (tx->retries++) {
				dg_tx_later(qp);
				return 0;
			}
			continue;
		}
		if (ret)
			return ret;
		dg_pass_sqe(qp);
		used--;
		/* Requests that fail send nothing, but cost time, too */
		tx->budget -= DG_TX_CALL;
	}
	return used;
}

/**
 * dg_flush_sq - complete all send requests with IB_WC_WR_FLUSH_ERR
 * @qp: the QP, in state ERR; the caller holds sq_mutex
 */
void dg_flush_sq(struct dg_qp *qp)
{
	struct siw_dg_sqe sqe;
	int used;

	dg_tx_forget(qp);
	for (used = dg_sq_used(qp); used > 0; used--) {
		dg_read_sqe(qp, &sqe);
		dg_complete_send(qp, &sqe, IB_WC_WR_FLUSH_ERR);
		dg_pass_sqe(qp);
	}
}

/* Sends a part. The caller holds sq_mutex. Returns -EBUSY if requests are left. */
static int dg_doorbell(struct dg_qp *qp)
{
	int ret = -EINVAL;

	if (qp->state == IB_QPS_RTS) {
		/* Requests stay in order: those that wait go first */
		ret = test_bit(DG_QP_TX_WAITS, &qp->flags) ? 0 : dg_run_sq(qp);
		/* Nobody shall wait long for the end of the program or the device */
		if (ret == -EBUSY &&
		    (fatal_signal_pending(current) ||
		     READ_ONCE(dg_device_of(qp)->goes))) {
			dg_tx_later(qp);
			ret = 0;
		}
	} else if (qp->state == IB_QPS_SQD) {
		ret = 0;
	} else if (qp->state == IB_QPS_ERR) {
		dg_flush_sq(qp);
		dg_flush_rq(qp);
		ret = 0;
	}
	return ret;
}

/* The doorbell. The program's own time and limits pay for what it sends. */
int dg_post_send(struct ib_qp *base, const struct ib_send_wr *wr,
		 const struct ib_send_wr **bad_wr)
{
	struct dg_qp *qp = to_dg_qp(base);
	int ret;

	if (wr) {
		*bad_wr = wr;
		return -EINVAL;
	}
	do {
		mutex_lock(&qp->sq_mutex);
		ret = dg_doorbell(qp);
		mutex_unlock(&qp->sq_mutex);
		cond_resched();
	} while (ret == -EBUSY);
	return ret;
}

void dg_tx_work(struct work_struct *work)
{
	struct dg_qp *qp = container_of(work, struct dg_qp, tx_work);
	const struct cred *own;

	/* Security modules see the program, or whoever made its socket */
	own = override_creds(qp->socket->file->f_cred);
	mutex_lock(&qp->sq_mutex);
	clear_bit(DG_QP_TX_WAITS, &qp->flags);
	if (qp->state == IB_QPS_RTS && dg_run_sq(qp) == -EBUSY)
		dg_tx_later(qp);
	mutex_unlock(&qp->sq_mutex);
	revert_creds(own);
}
