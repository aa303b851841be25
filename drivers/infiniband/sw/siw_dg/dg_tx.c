// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Send: a request is one datagram, sent in the context of the program. See
 * NOTICE.
 *
 * The program can write its queue and its data at any time. A request is
 * copied before it is looked at. Data that changes while it is sent has a wrong
 * CRC at worst, and the receiver drops it.
 */
#include <linux/highmem.h>
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/uio.h>
#include <net/ipv6.h>
#include <net/sock.h>

#include "dg_device.h"

/* Q_Keys with this bit stand for the QP's own */
#define DG_QKEY_PRIVILEGED	0x80000000U

/**
 * struct dg_message - a send request in progress
 * @sqe: copy of the request
 * @address: where it goes
 * @bvecs: used entries of dg_qp.bvecs
 * @num_mrs: used entries of dg_qp.mrs
 * @hdr_len: length of the header
 * @length: of the data in octets
 * @crc: CRC so far
 */
struct dg_message {
	struct siw_dg_sqe sqe;
	struct dg_address address;
	u32 bvecs;
	u32 num_mrs;
	u32 hdr_len;
	u32 length;
	u32 crc;
};

/* A control message: source address, TOS or traffic class, TTL or hop limit */
struct dg_control {
	u8 buf[CMSG_SPACE(sizeof(struct in6_pktinfo)) +
	       2 * CMSG_SPACE(sizeof(int))] __aligned(8);
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

static void dg_set_target4(const struct dg_qp *qp, const struct dg_message *m,
			   struct msghdr *msg, struct dg_control *control)
{
	struct sockaddr_in *sin = msg->msg_name;
	struct in_pktinfo info = {
		.ipi_ifindex = dg_device_of(qp)->netdev->ifindex,
		.ipi_spec_dst.s_addr = m->address.source.s6_addr32[3],
	};

	sin->sin_family = AF_INET;
	sin->sin_addr.s_addr = m->address.target.s6_addr32[3];
	sin->sin_port = htons(m->sqe.remote_qpn);
	msg->msg_namelen = sizeof(*sin);
	dg_put_cmsg(control, SOL_IP, IP_PKTINFO, &info, sizeof(info));
	dg_put_cmsg_int(control, SOL_IP, IP_TOS, m->address.tclass);
	dg_put_cmsg_int(control, SOL_IP, IP_TTL, m->address.hop_limit);
}

static void dg_set_target6(const struct dg_qp *qp, const struct dg_message *m,
			   struct msghdr *msg, struct dg_control *control)
{
	int ifindex = dg_device_of(qp)->netdev->ifindex;
	struct sockaddr_in6 *sin6 = msg->msg_name;
	struct in6_pktinfo info = {
		.ipi6_ifindex = ifindex,
		.ipi6_addr = m->address.source,
	};

	sin6->sin6_family = AF_INET6;
	sin6->sin6_addr = m->address.target;
	sin6->sin6_port = htons(m->sqe.remote_qpn);
	if (__ipv6_addr_needs_scope_id(ipv6_addr_type(&sin6->sin6_addr)))
		sin6->sin6_scope_id = ifindex;
	msg->msg_namelen = sizeof(*sin6);
	dg_put_cmsg(control, SOL_IPV6, IPV6_PKTINFO, &info, sizeof(info));
	dg_put_cmsg_int(control, SOL_IPV6, IPV6_TCLASS, m->address.tclass);
	dg_put_cmsg_int(control, SOL_IPV6, IPV6_HOPLIMIT,
			m->address.hop_limit);
}

/* ---- building */

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

static enum ib_wc_status dg_check_sqe(struct dg_qp *qp, struct dg_message *m)
{
	const struct siw_dg_sqe *sqe = &m->sqe;
	int i;

	if (!dg_opcode_is_good(sqe) ||
	    memchr_inv(sqe->reserved, 0, sizeof(sqe->reserved)))
		return IB_WC_LOC_QP_OP_ERR;
	if (!sqe->remote_qpn || sqe->remote_qpn > U16_MAX ||
	    !dg_ah_find(dg_device_of(qp), qp->base.pd, sqe->ah, &m->address))
		return IB_WC_LOC_QP_OP_ERR;
	if (sqe->flags & SIW_DG_INLINE) {
		m->length = sqe->inline_len;
		return m->length <= SIW_DG_MAX_INLINE ? IB_WC_SUCCESS :
							IB_WC_LOC_LEN_ERR;
	}
	if (sqe->num_sge > SIW_DG_MAX_SGE)
		return IB_WC_LOC_QP_OP_ERR;
	for (i = 0; i < sqe->num_sge; i++) {
		if (sqe->sge[i].length > DG_MAX_MSG - m->length)
			return IB_WC_LOC_LEN_ERR;
		m->length += sqe->sge[i].length;
	}
	return IB_WC_SUCCESS;
}

static u8 *dg_crc_field(const struct dg_qp *qp)
{
	return qp->header + DG_WRITE_HDR + SIW_DG_MAX_INLINE;
}

static void dg_add_bvec(struct dg_qp *qp, struct dg_message *m,
			struct page *page, u32 len, u32 offset)
{
	bvec_set_page(&qp->bvecs[m->bvecs++], page, len, offset);
}

/* Header and CRC are in kmalloc()'s memory */
static void dg_add_own(struct dg_qp *qp, struct dg_message *m, void *p, u32 len)
{
	dg_add_bvec(qp, m, virt_to_page(p), len, offset_in_page(p));
}

static u32 *dg_msn(struct dg_qp *qp, const struct dg_message *m)
{
	return m->sqe.opcode == SIW_DG_OP_SEND ? &qp->send_msn : &qp->write_msn;
}

static int dg_build_send(struct dg_qp *qp, const struct dg_message *m)
{
	const struct siw_dg_sqe *sqe = &m->sqe;
	struct dg_segment seg = {
		.form = DG_SEND,
		.solicited = sqe->flags & SIW_DG_SOLICITED,
		.qkey = sqe->remote_qkey & DG_QKEY_PRIVILEGED ?
			qp->qkey : sqe->remote_qkey,
		.msn = *dg_msn(qp, m),
	};

	return dg_build(&seg, qp->header, DG_SEND_HDR);
}

/* The message is one datagram; the target knows the bounds of its zone */
static int dg_build_write(struct dg_qp *qp, const struct dg_message *m)
{
	struct dg_segment seg = {
		.form = DG_WRITE_RECORD,
		.last = true,
		.qkey = m->sqe.remote_qkey,
		.stag = m->sqe.remote_zone,
		.msn = *dg_msn(qp, m),
		.ml = m->length,
		.to = m->sqe.remote_offset,
		.len = m->length,
	};

	return dg_build(&seg, qp->header, DG_WRITE_HDR);
}

/* Fails if a Write-Record wraps around */
static enum ib_wc_status dg_build_header(struct dg_qp *qp, struct dg_message *m)
{
	const struct siw_dg_sqe *sqe = &m->sqe;
	int len;

	++*dg_msn(qp, m);
	len = sqe->opcode == SIW_DG_OP_SEND ? dg_build_send(qp, m) :
					      dg_build_write(qp, m);
	if (len < 0)
		return IB_WC_LOC_QP_OP_ERR;
	m->hdr_len = len;
	if (sqe->flags & SIW_DG_INLINE) {
		memcpy(qp->header + len, sqe->data, m->length);
		len += m->length;
	}
	dg_add_own(qp, m, qp->header, len);
	m->crc = dg_crc_add(DG_CRC_START, qp->header, len);
	return IB_WC_SUCCESS;
}

static void dg_add_pages(struct dg_qp *qp, struct dg_message *m,
			 const struct dg_mr *mr, const struct siw_dg_sge *sge)
{
	u32 offset, len, done;
	struct page *page;
	void *p;

	for (done = 0; done < sge->length; done += len) {
		page = dg_mr_page(mr, sge->addr + done, &offset);
		len = min_t(u32, sge->length - done, PAGE_SIZE - offset);
		p = kmap_local_page(page);
		m->crc = dg_crc_add(m->crc, p + offset, len);
		kunmap_local(p);
		dg_add_bvec(qp, m, page, len, offset);
	}
}

static enum ib_wc_status dg_add_data(struct dg_qp *qp, struct dg_message *m)
{
	const struct siw_dg_sge *sge = m->sqe.sge;
	struct dg_mr *mr;
	int i;

	if (m->sqe.flags & SIW_DG_INLINE)
		return IB_WC_SUCCESS;
	for (i = 0; i < m->sqe.num_sge; i++, sge++) {
		if (!sge->length)
			continue;
		mr = dg_mr_get(dg_device_of(qp), qp->base.pd, sge, false);
		if (!mr)
			return IB_WC_LOC_PROT_ERR;
		qp->mrs[m->num_mrs++] = mr;
		dg_add_pages(qp, m, mr, sge);
	}
	return IB_WC_SUCCESS;
}

/* ---- sending */

static int dg_send_message(struct dg_qp *qp, const struct dg_message *m)
{
	struct sockaddr_in6 name = {};
	struct dg_control control = {};
	struct msghdr msg = {
		.msg_name = &name,
		.msg_control = &control.buf,
		.msg_flags = MSG_DONTWAIT | MSG_NOSIGNAL,
	};
	size_t len = m->hdr_len + m->length + DG_CRC_LEN;
	int ret;

	if (ipv6_addr_v4mapped(&m->address.target))
		dg_set_target4(qp, m, &msg, &control);
	else
		dg_set_target6(qp, m, &msg, &control);
	msg.msg_controllen = control.length;
	iov_iter_bvec(&msg.msg_iter, ITER_SOURCE, qp->bvecs, m->bvecs, len);
	ret = sock_sendmsg(qp->socket, &msg);
	return ret < 0 ? ret : 0;
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

	dg_count(qp, status == IB_WC_SUCCESS ? DG_SENT : DG_SEND_ERRORS);
	if (status == IB_WC_SUCCESS && !qp->signal_all &&
	    !(sqe->flags & SIW_DG_SIGNALED))
		return;
	if (!dg_cq_add(to_dg_cq(qp->base.send_cq), &cqe,
		       status != IB_WC_SUCCESS))
		dg_count(qp, DG_CQ_FULL);
}

/* Returns -EAGAIN if the socket is full and @may_wait; the request is then tried again */
static int dg_send_sqe(struct dg_qp *qp, struct dg_message *m, bool may_wait)
{
	enum ib_wc_status status = dg_check_sqe(qp, m);
	int ret = 0;

	if (status == IB_WC_SUCCESS)
		status = dg_build_header(qp, m);
	if (status == IB_WC_SUCCESS)
		status = dg_add_data(qp, m);
	if (status == IB_WC_SUCCESS) {
		dg_crc_put(m->crc, dg_crc_field(qp));
		dg_add_own(qp, m, dg_crc_field(qp), DG_CRC_LEN);
		ret = dg_send_message(qp, m);
		status = dg_status_of(ret);
	}
	while (m->num_mrs)
		dg_mr_put(qp->mrs[--m->num_mrs]);
	if (ret == -EAGAIN && may_wait) {
		--*dg_msn(qp, m);
		return ret;
	}
	dg_complete_send(qp, &m->sqe, status);
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

/* The caller holds sq_mutex. Each doorbell sends what was there when it came. */
static int dg_run_sq(struct dg_qp *qp)
{
	int used = dg_sq_used(qp);
	bool may_wait = true;

	while (used > 0) {
		struct dg_message m = {};

		dg_read_sqe(qp, &m.sqe);
		if (dg_send_sqe(qp, &m, may_wait)) {
			if (dg_tx_must_wait(qp))
				return 0;
			/* The socket has room: the next -EAGAIN is an error */
			may_wait = false;
			continue;
		}
		dg_pass_sqe(qp);
		may_wait = true;
		used--;
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

	for (used = dg_sq_used(qp); used > 0; used--) {
		dg_read_sqe(qp, &sqe);
		dg_complete_send(qp, &sqe, IB_WC_WR_FLUSH_ERR);
		dg_pass_sqe(qp);
	}
}

/* The doorbell */
int dg_post_send(struct ib_qp *base, const struct ib_send_wr *wr,
		 const struct ib_send_wr **bad_wr)
{
	struct dg_qp *qp = to_dg_qp(base);
	int ret = -EINVAL;

	if (wr) {
		*bad_wr = wr;
		return -EINVAL;
	}
	mutex_lock(&qp->sq_mutex);
	if (qp->state == IB_QPS_RTS) {
		/* Requests stay in order: those that wait go first */
		ret = test_bit(DG_QP_TX_WAITS, &qp->flags) ? 0 : dg_run_sq(qp);
	} else if (qp->state == IB_QPS_SQD) {
		ret = 0;
	} else if (qp->state == IB_QPS_ERR) {
		dg_flush_sq(qp);
		dg_flush_rq(qp);
		ret = 0;
	}
	mutex_unlock(&qp->sq_mutex);
	return ret;
}

void dg_tx_work(struct work_struct *work)
{
	struct dg_qp *qp = container_of(work, struct dg_qp, tx_work);

	mutex_lock(&qp->sq_mutex);
	if (qp->state == IB_QPS_RTS)
		dg_run_sq(qp);
	mutex_unlock(&qp->sq_mutex);
}
