// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * siw's side of iw_mpa: what a session asks of the driver.
 *
 * Everything here but siw_mpa_open_gate() runs in process context with the
 * endpoint in use, which serialises the session.
 */
#include <linux/kernel.h>
#include <linux/minmax.h>
#include <net/netlink.h>

#include <rdma/iw_cm.h>
#include <rdma/rdma_cm.h>
#include <rdma/rdma_netlink.h>
#include <rdma/restrack.h>

#include "siw.h"
#include "siw_cm.h"
#include "siw_mpa.h"

#define SIW_MPA_PORT 1

static struct siw_cep *to_siw_cep(struct iw_mpa_session *s)
{
	return container_of(s, struct siw_cep, mpa);
}

static int siw_mpa_send(struct iw_mpa_session *s, const void *frame, size_t len)
{
	struct siw_cep *cep = to_siw_cep(s);

	return cep->llp->send(cep->sock, frame, len);
}

static int siw_mpa_enter_rdma(struct iw_mpa_session *s,
			      const struct iw_mpa_rdma *rdma)
{
	struct siw_cep *cep = to_siw_cep(s);
	struct siw_qp *qp = cep->qp;
	u8 rtr = rdma->responder ? 0 : rdma->rtr;
	struct siw_qp_attrs attrs = {
		.state = SIW_QP_STATE_RTS,
		.irq_size = rdma->ird,
		.orq_size = rdma->ord,
		.flags = rdma->crc ? SIW_MPA_CRC : 0,
		.sk = cep->sock,
	};
	int rv = -EINVAL;

	down_write(&qp->state_lock);
	if (qp->attrs.state <= SIW_QP_STATE_RTR) {
		qp->tx_fenced = rdma->responder;
		qp->ulp_may_read = rdma->ulp_ord;
		qp->rtr_expected = rdma->responder ? rdma->rtr : 0;
		rv = siw_qp_modify(qp, &attrs,
				   SIW_QP_ATTR_STATE | SIW_QP_ATTR_LLP_HANDLE |
				   SIW_QP_ATTR_ORD | SIW_QP_ATTR_IRD |
				   SIW_QP_ATTR_MPA);
	}
	if (!rv) {
		/* Nobody can post before the lock is released */
		if (rtr)
			siw_qp_prepare_rtr(qp, rtr);
		cep->state = SIW_EPSTATE_RDMA_MODE;
		cep->llp->start_rx(cep, qp);
	}
	if (rv || !rtr) {
		up_write(&qp->state_lock);
		return rv;
	}
	/* Now: the ULP may close before a transmit thread has come to it */
	downgrade_write(&qp->state_lock);
	if (!qp->tx_ctx.tx_suspend && siw_qp_sq_process(qp) < 0 &&
	    !qp->tx_ctx.tx_suspend)
		siw_qp_cm_drop(qp, 1);
	up_read(&qp->state_lock);
	return 0;
}

static int siw_mpa_terminate(struct iw_mpa_session *s,
			     const struct iw_mpa_rdma *rdma,
			     enum rdma_mpa_ecode ecode)
{
	struct siw_qp *qp = to_siw_cep(s)->qp;
	int rv = -EINVAL;

	down_write(&qp->state_lock);
	if (qp->attrs.state <= SIW_QP_STATE_RTR &&
	    (!rdma->crc || !siw_qp_enable_crc(qp))) {
		siw_init_terminate(qp, TERM_ERROR_LAYER_LLP, LLP_ETYPE_MPA,
				   ecode, 0);
		siw_send_terminate(qp);
		rv = 0;
	}
	up_write(&qp->state_lock);
	return rv;
}

static void siw_mpa_deadline(struct iw_mpa_session *s, unsigned int ms)
{
	siw_cm_set_deadline(to_siw_cep(s), ms);
}

/* Any context: a socket is not looked into but for its addresses */
static void siw_mpa_addrs(const struct siw_cep *cep,
			  struct sockaddr_storage *local,
			  struct sockaddr_storage *remote)
{
	const struct socket *s = READ_ONCE(cep->sock);

	if (s) {
		cep->llp->addrs(s, local, remote);
	} else {
		local->ss_family = 0;
		remote->ss_family = 0;
	}
}

/*
 * The event of iw_cm has 8 bit for depths and for the length of the private
 * data. What does not fit saturates. Its ird is what we may read from the
 * peer, its ord what the peer may read from us: that is how rdma_cm takes them
 * for initiator_depth and responder_resources.
 */
static void siw_mpa_fill_event(struct siw_cep *cep,
			       const struct iw_mpa_event *ev,
			       struct iw_cm_event *event)
{
	memset(event, 0, sizeof(*event));
	event->status = ev->status;
	event->ird = iw_mpa_event_reads_out(ev);
	event->ord = iw_mpa_event_reads_in(ev);
	/* ULPs look at the pointer alone; iw_cm copies what has a length */
	if (ev->pdata_len) {
		event->private_data = (void *)ev->pdata;
		event->private_data_len = min_t(u16, ev->pdata_len, U8_MAX);
	}
	siw_mpa_addrs(cep, &event->local_addr, &event->remote_addr);
}

static int siw_mpa_request_event(struct siw_cep *cep, struct iw_cm_event *event)
{
	int rv;

	event->event = IW_CM_EVENT_CONNECT_REQUEST;
	event->provider_data = cep;

	/* The answer's reference; see siw_accept() and siw_reject() */
	siw_cep_get(cep);
	cep->answer_due = true;

	rv = siw_cep_raise_request(cep->listen_cep, event);
	siw_cep_leave_listener(cep);
	if (rv) {
		cep->answer_due = false;
		siw_cep_put(cep);
	}
	return rv;
}

static int siw_mpa_event(struct iw_mpa_session *s,
			 const struct iw_mpa_event *ev)
{
	struct siw_cep *cep = to_siw_cep(s);
	struct iw_cm_id *id = cep->cm_id;
	struct iw_cm_event event;

	/* A connect that fails says so itself, maybe before there is a socket */
	if (ev->type != IW_MPA_EVENT_REQUEST && !id)
		return 0;

	siw_mpa_fill_event(cep, ev, &event);
	if (ev->type == IW_MPA_EVENT_REQUEST)
		return siw_mpa_request_event(cep, &event);
	if (ev->type == IW_MPA_EVENT_REPLY) {
		event.event = IW_CM_EVENT_CONNECT_REPLY;
		/* rdma_cm takes them over, also when there is no connection */
		if (ev->status) {
			event.local_addr = id->local_addr;
			event.remote_addr = id->remote_addr;
		}
		/* No memory for a copy: the event itself must not get lost */
		if (id->event_handler(id, &event)) {
			event.private_data = NULL;
			event.private_data_len = 0;
			id->event_handler(id, &event);
		}
		return 0;
	}
	event.event = IW_CM_EVENT_ESTABLISHED;
	id->event_handler(id, &event);
	if (ev->status) {
		event.event = IW_CM_EVENT_CLOSE;
		id->event_handler(id, &event);
	}
	return 0;
}

static void siw_mpa_name(const struct iw_mpa_session *s,
			 struct iw_mpa_name *name)
{
	const struct siw_cep *cep = container_of(s, struct siw_cep, mpa);

	if (cep->qp)
		name->qpn = qp_id(cep->qp);
	siw_mpa_addrs(cep, &name->local, &name->remote);
}

static const struct iw_mpa_ops siw_mpa_ops = {
	.send		= siw_mpa_send,
	.enter_rdma	= siw_mpa_enter_rdma,
	.terminate	= siw_mpa_terminate,
	.deadline	= siw_mpa_deadline,
	.event		= siw_mpa_event,
	.name		= siw_mpa_name,
};

/**
 * siw_mpa_open - prepare an initiator's session
 * @cep: the endpoint
 * @id: the connection, with the options of its ULP
 *
 * Return: 0 or a negative errno
 */
int siw_mpa_open(struct siw_cep *cep, struct iw_cm_id *id)
{
	return iw_mpa_session_open(&cep->mpa, cep->sdev->mpa, SIW_MPA_PORT,
				   iw_cm_options(id));
}

/**
 * siw_mpa_listen - take the settings for the connections of a listener
 * @cep: the endpoint
 * @id: the listener, with the options of its ULP
 *
 * Return: 0 or a negative errno
 */
int siw_mpa_listen(struct siw_cep *cep, struct iw_cm_id *id)
{
	struct iw_mpa_config *config;

	config = iw_mpa_config_get(cep->sdev->mpa, SIW_MPA_PORT,
				   iw_cm_options(id));
	if (IS_ERR(config))
		return PTR_ERR(config);
	cep->mpa_config = config;
	return 0;
}

/* Whatever comes while it is our turn to speak ends the session */
static enum iw_mpa_next siw_mpa_rx_out_of_turn(struct siw_cep *cep)
{
	size_t used;
	u8 byte;
	int n = cep->llp->recv(cep->sock, &byte, sizeof(byte), true);

	if (n == -EAGAIN)
		return IW_MPA_NEXT_WAIT;
	if (n <= 0)
		return iw_mpa_peer_gone(&cep->mpa, n);
	return iw_mpa_rx(&cep->mpa, &byte, sizeof(byte), &used);
}

/**
 * siw_mpa_rx - read what the peer has sent
 * @cep: the endpoint, in %SIW_EPSTATE_MPA
 *
 * Return: what to do next
 */
enum iw_mpa_next siw_mpa_rx(struct siw_cep *cep)
{
	enum iw_mpa_next next;
	size_t want, used;
	u8 buf[64];
	int n;

	while ((want = iw_mpa_rx_want(&cep->mpa))) {
		n = cep->llp->recv(cep->sock, buf, min(want, sizeof(buf)),
				   false);
		if (n == -EAGAIN)
			return IW_MPA_NEXT_WAIT;
		if (n <= 0)
			return iw_mpa_peer_gone(&cep->mpa, n);

		next = iw_mpa_rx(&cep->mpa, buf, n, &used);
		if (next == IW_MPA_NEXT_FRAME) {
			n = cep->llp->recv(cep->sock, buf, 1, true);
			next = iw_mpa_process(&cep->mpa, n > 0);
			if (next == IW_MPA_NEXT_DONE)
				cep->llp->kick_rx(cep->sock);
		}
		if (next != IW_MPA_NEXT_WAIT)
			return next;
	}
	return siw_mpa_rx_out_of_turn(cep);
}

/**
 * siw_mpa_absorb_send - is the Send that has just begun the RTR?
 * @qp: the QP, fenced
 *
 * It takes no receive of the ULP and makes no completion, but it counts
 *. Called with its header complete and no FPDU before it.
 *
 * Return: true if it was and has been dealt with.
 */
bool siw_mpa_absorb_send(struct siw_qp *qp)
{
	struct siw_rx_stream *srx = &qp->rx_stream;
	const struct iwarp_send *send = &srx->hdr.send;
	u32 *msn = &srx->ddp_msn[RDMAP_UNTAGGED_QN_SEND];

	if (!(qp->rtr_expected & RDMA_MPA_RTR_SEND) ||
	    srx->rdmap_op != RDMAP_SEND || srx->fpdu_part_rem ||
	    !(srx->hdr.ctrl.ddp_rdmap_ctrl & DDP_FLAG_LAST) ||
	    be32_to_cpu(send->ddp_qn) != RDMAP_UNTAGGED_QN_SEND ||
	    be32_to_cpu(send->ddp_msn) != *msn || send->ddp_mo)
		return false;

	(*msn)++;
	return true;
}

/**
 * siw_mpa_rx_null_fpdu - is the first FPDU one without a ULPDU?
 * @qp: the QP, fenced, at the start of its first FPDU
 * @rv: if true is returned: 0, -EAGAIN for more bytes or a negative errno
 *
 * The other reading of option B: two bytes of length, both 0, two of
 * padding, four of CRC.
 *
 * Return: true if it is or may be, with what is there taken; false if the
 * FPDU has a header, what was taken of it is in its place.
 */
bool siw_mpa_rx_null_fpdu(struct siw_qp *qp, int *rv)
{
	enum { NULL_FPDU_LEN = 8 };
	struct siw_rx_stream *srx = &qp->rx_stream;
	u8 *fpdu = (u8 *)&srx->hdr;
	int want, bytes;

	if (!(qp->rtr_expected & RDMA_MPA_RTR_SEND))
		return false;
	/* Known already to have a header, of which more has come */
	if (srx->fpdu_part_rcvd >= MPA_HDR_SIZE && srx->hdr.ctrl.mpa_len)
		return false;

	do {
		want = srx->fpdu_part_rcvd < MPA_HDR_SIZE ? MPA_HDR_SIZE :
							    NULL_FPDU_LEN;
		bytes = min(want - srx->fpdu_part_rcvd, srx->skb_new);
		skb_copy_bits(srx->skb, srx->skb_offset,
			      fpdu + srx->fpdu_part_rcvd, bytes);
		srx->fpdu_part_rcvd += bytes;
		srx->skb_new -= bytes;
		srx->skb_offset += bytes;
		srx->skb_copied += bytes;

		*rv = -EAGAIN;
		if (srx->fpdu_part_rcvd < want)
			return true;
		if (srx->hdr.ctrl.mpa_len)
			return false;
	} while (want < NULL_FPDU_LEN);

	srx->fpdu_part_rcvd = 0;
	*rv = -EINVAL;
	if (siw_rx_crc_ok(srx, fpdu, NULL_FPDU_LEN - MPA_CRC_SIZE)) {
		*rv = 0;
		siw_mpa_open_gate(qp, RDMA_MPA_RTR_SEND);
	}
	return true;
}

/**
 * siw_mpa_rtr_received - what kind of RTR is the FPDU just received?
 * @qp: the QP
 *
 * Return: one of enum rdma_mpa_rtr, 0 if it is none
 */
u8 siw_mpa_rtr_received(const struct siw_qp *qp)
{
	const struct siw_rx_stream *srx = &qp->rx_stream;
	u16 ulpdu_len = be16_to_cpu(srx->hdr.ctrl.mpa_len);

	switch (srx->rdmap_op) {
	case RDMAP_RDMA_WRITE:
		return ulpdu_len + MPA_HDR_SIZE == sizeof(srx->hdr.rwrite) ?
		       RDMA_MPA_RTR_WRITE : 0;
	case RDMAP_RDMA_READ_REQ:
		return srx->hdr.rreq.read_size ? 0 : RDMA_MPA_RTR_READ;
	case RDMAP_SEND:
		return ulpdu_len + MPA_HDR_SIZE == sizeof(srx->hdr.send) ?
		       RDMA_MPA_RTR_SEND : 0;
	default:
		return 0;
	}
}

/**
 * siw_mpa_open_gate - a responder's first whole and valid FPDU is in
 * @qp: the QP, fenced until now
 * @rtr: which kind of RTR it is, 0 if it is none
 *
 * RFC 5044 section 7.1.2: from now on it may send. What was posted early is
 * waiting as the QP's active work. Any context; takes the SQ lock.
 */
void siw_mpa_open_gate(struct siw_qp *qp, u8 rtr)
{
	unsigned long flags;
	bool waiting;

	spin_lock_irqsave(&qp->sq_lock, flags);
	qp->tx_fenced = false;
	qp->first_fpdu = rtr;
	waiting = tx_wqe(qp)->wr_status != SIW_WR_IDLE;
	spin_unlock_irqrestore(&qp->sq_lock, flags);

	if (waiting)
		siw_sq_start(qp);
	if (qp->cep)
		siw_cm_queue_work(qp->cep, SIW_CM_WORK_FIRST_FPDU);
}

/* The endpoint of a QP, with a reference, or NULL */
static struct siw_cep *siw_mpa_qp_cep(struct siw_qp *qp)
{
	struct siw_cep *cep;

	down_read(&qp->state_lock);
	cep = qp->cep;
	if (cep)
		siw_cep_get(cep);
	up_read(&qp->state_lock);
	return cep;
}

static int siw_mpa_nest_res(struct sk_buff *msg, const struct siw_cep *cep)
{
	struct nlattr *nest = nla_nest_start(msg, RDMA_NLDEV_ATTR_DRIVER);
	int rv;

	if (!nest)
		return -EMSGSIZE;
	rv = iw_mpa_fill_res(msg, cep->sdev->mpa, &cep->mpa);
	if (rv)
		nla_nest_cancel(msg, nest);
	else
		nla_nest_end(msg, nest);
	return rv;
}

/* Takes over the reference */
static int siw_mpa_fill_res(struct sk_buff *msg, struct siw_cep *cep)
{
	int rv = 0;

	if (!cep)
		return 0;
	/* It may be busy connecting for long: then there is nothing to tell */
	if (siw_cep_try_inuse(cep)) {
		rv = siw_mpa_nest_res(msg, cep);
		siw_cep_set_free(cep);
	}
	siw_cep_put(cep);
	return rv;
}

/**
 * siw_mpa_fill_res_qp - tell resource tracking what a QP negotiated
 * @msg: the message
 * @base_qp: the QP
 *
 * Return: 0 or a negative errno
 */
int siw_mpa_fill_res_qp(struct sk_buff *msg, struct ib_qp *base_qp)
{
	return siw_mpa_fill_res(msg, siw_mpa_qp_cep(to_siw_qp(base_qp)));
}

/**
 * siw_mpa_fill_res_cm_id - tell resource tracking what a connection negotiated
 * @msg: the message
 * @id: the connection
 *
 * Its iw_cm_id may be gone by now: it is looked up and not looked into.
 *
 * Return: 0 or a negative errno
 */
int siw_mpa_fill_res_cm_id(struct sk_buff *msg, struct rdma_cm_id *id)
{
	const struct iw_cm_id *iw_id = rdma_iw_cm_id(id);

	if (!iw_id)
		return 0;
	return siw_mpa_fill_res(msg, siw_cep_find(to_siw_dev(id->device),
						  iw_id));
}

/**
 * siw_mpa_register - make a device known to iw_mpa
 * @sdev: the device, not yet registered
 * @crc: whether there is a CRC32c
 *
 * Return: 0 or a negative errno
 */
int siw_mpa_register(struct siw_device *sdev, bool crc)
{
	const struct iw_mpa_driver driver = {
		.ops = &siw_mpa_ops,
		.llp = RDMA_MPA_LLP_TCP,
		.caps = {
			.max_ird = sdev->attrs.max_ird,
			.max_ord = sdev->attrs.max_ord,
			.rtr_send = IW_MPA_RTR_ALL,
			.rtr_recv = IW_MPA_RTR_ALL,
			.pow2_depths = true,
			.no_crc = !crc,
			.fastopen = true,
		},
	};
	struct iw_mpa_device *dev;

	dev = iw_mpa_register_device(&sdev->base_dev, &driver);
	if (IS_ERR(dev))
		return PTR_ERR(dev);
	sdev->mpa = dev;
	return 0;
}

/**
 * siw_mpa_unregister - the opposite
 * @sdev: the device, without endpoints
 */
void siw_mpa_unregister(struct siw_device *sdev)
{
	iw_mpa_unregister_device(sdev->mpa);
	sdev->mpa = NULL;
}

/**
 * siw_mpa_alloc_stats - room for a port's counters
 * @base_dev: the device
 * @port: the port
 *
 * Return: the statistics or NULL
 */
struct rdma_hw_stats *siw_mpa_alloc_stats(struct ib_device *base_dev, u32 port)
{
	return iw_mpa_alloc_port_stats();
}

/**
 * siw_mpa_get_stats - a port's counters
 * @base_dev: the device
 * @stats: filled
 * @port: the port
 * @index: which one is asked for; all are filled
 *
 * Return: number of counters or a negative errno
 */
int siw_mpa_get_stats(struct ib_device *base_dev, struct rdma_hw_stats *stats,
		      u32 port, int index)
{
	return iw_mpa_get_port_stats(to_siw_dev(base_dev)->mpa, port, stats);
}

/**
 * siw_mpa_term_received - the peer has sent a TERM
 * @qp: the QP that received it
 * @term: the message
 *
 * In soft interrupts.
 */
void siw_mpa_term_received(struct siw_qp *qp, struct iwarp_terminate *term)
{
	const struct siw_cep *cep = READ_ONCE(qp->cep);

	/* It is not freed while its socket's callback runs */
	if (cep)
		iw_mpa_term_received(&cep->mpa, __rdmap_term_layer(term),
				     __rdmap_term_etype(term),
				     __rdmap_term_ecode(term));
}
