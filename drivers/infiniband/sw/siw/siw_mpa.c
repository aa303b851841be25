// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * siw's side of iw_mpa: the operations that a session calls.
 *
 * All operations and functions with an endpoint, except
 * siw_mpa_term_received(), run in process context with the endpoint in use,
 * which serialises the session.
 */
#include <linux/minmax.h>

#include <rdma/iw_cm.h>

#include "siw.h"
#include "siw_cm.h"
#include "siw_gate.h"
#include "siw_mpa.h"

static struct siw_cep *to_siw_cep(struct iw_mpa_session *s)
{
	return container_of(s, struct siw_cep, mpa);
}

static int siw_mpa_send(struct iw_mpa_session *s, const void *frame, size_t len)
{
	struct siw_cep *cep = to_siw_cep(s);

	return cep->llp->send(cep, frame, len);
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
	};
	int rv = -EINVAL;

	down_write(&qp->state_lock);
	if (qp->attrs.state <= SIW_QP_STATE_RTR) {
		/* A Reply or Accept goes first, even if no FPDU is awaited */
		qp->tx_fenced = rdma->responder;
		qp->ulp_may_read = rdma->ulp_ord;
		qp->rtr_expected = rdma->responder ? rdma->rtr : 0;
		qp->tx_ctx.gso_seg_limit = rdma->large ? 0 : 1;
		rv = siw_qp_modify(qp, &attrs,
				   SIW_QP_ATTR_STATE | SIW_QP_ATTR_LLP_HANDLE |
				   SIW_QP_ATTR_ORD | SIW_QP_ATTR_IRD |
				   SIW_QP_ATTR_MPA);
	}
	if (!rv) {
		/* No WR of the ULP is active before the lock is released */
		if (rtr)
			siw_qp_prepare_rtr(qp, rtr);
		cep->state = SIW_EPSTATE_RDMA_MODE;
		cep->llp->start_rx(cep, qp);
	}
	if (rv || !rtr) {
		up_write(&qp->state_lock);
		return rv;
	}
	/* Send the RTR here: the ULP may close before a transmit thread runs */
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
	struct siw_cep *cep = to_siw_cep(s);
	struct siw_qp *qp = cep->qp;
	int rv = -EINVAL;

	down_write(&qp->state_lock);
	if (qp->attrs.state <= SIW_QP_STATE_RTR) {
		if (rdma->crc)
			siw_qp_enable_crc(qp);
		cep->llp->start_tx(cep, qp);
		siw_init_terminate(qp, TERM_ERROR_LAYER_LLP, LLP_ETYPE_MPA,
				   ecode, 0);
		siw_send_terminate(qp);
		rv = 0;
	}
	up_write(&qp->state_lock);
	return rv;
}

static void siw_mpa_end(struct iw_mpa_session *s)
{
	struct siw_cep *cep = to_siw_cep(s);

	if (cep->llp->end)
		cep->llp->end(cep);
}

static void siw_mpa_deadline(struct iw_mpa_session *s, unsigned int ms)
{
	siw_cm_set_deadline(to_siw_cep(s), ms);
}

static int siw_mpa_request_event(struct siw_cep *cep, struct iw_cm_event *event)
{
	int rv;

	event->event = IW_CM_EVENT_CONNECT_REQUEST;
	event->provider_data = cep;

	/* siw_accept() or siw_reject() puts this reference */
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

	/* siw_connect() returns this error itself; there may be no socket */
	if (ev->type != IW_MPA_EVENT_REQUEST && !id)
		return 0;

	memset(&event, 0, sizeof(event));
	iw_mpa_fill_cm_event(&event, ev);
	cep->llp->addrs(cep, &event.local_addr, &event.remote_addr);
	if (ev->type == IW_MPA_EVENT_REQUEST)
		return siw_mpa_request_event(cep, &event);
	if (ev->type == IW_MPA_EVENT_REPLY) {
		event.event = IW_CM_EVENT_CONNECT_REPLY;
		/* rdma_cm copies the addresses, also of a failed connect */
		if (ev->status) {
			event.local_addr = id->local_addr;
			event.remote_addr = id->remote_addr;
		}
		/* iw_cm had no memory for private data: send the event alone */
		if (id->event_handler(id, &event)) {
			event.private_data = NULL;
			event.private_data_len = 0;
			id->event_handler(id, &event);
		}
		return 0;
	}
	/* SCTP awaits no FPDU, and the Accept has been sent */
	if (!ev->status && cep->llp->rx_setup)
		siw_gate_open(cep->qp, 0);
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
	cep->llp->addrs(cep, &name->local, &name->remote);
}

static const struct iw_mpa_ops siw_mpa_ops = {
	.send		= siw_mpa_send,
	.enter_rdma	= siw_mpa_enter_rdma,
	.terminate	= siw_mpa_terminate,
	.end		= siw_mpa_end,
	.deadline	= siw_mpa_deadline,
	.event		= siw_mpa_event,
	.name		= siw_mpa_name,
};

/**
 * siw_mpa_open - prepare an initiator's session
 * @cep: the endpoint
 * @options: options of its ULP; may be NULL
 *
 * Return: 0 or a negative errno
 */
int siw_mpa_open(struct siw_cep *cep, const struct iw_mpa_layer *options)
{
	return iw_mpa_session_open(&cep->mpa, cep->sdev->mpa, SIW_PORT,
				   options);
}

/**
 * siw_mpa_listen - get the settings for the connections of a listener
 * @cep: the endpoint
 * @options: options of its ULP; may be NULL
 *
 * Return: 0 or a negative errno
 */
int siw_mpa_listen(struct siw_cep *cep, const struct iw_mpa_layer *options)
{
	struct iw_mpa_config *config;

	config = iw_mpa_config_get(cep->sdev->mpa, SIW_PORT, options);
	if (IS_ERR(config))
		return PTR_ERR(config);
	cep->mpa_config = config;
	return 0;
}

/* Data that arrives while the peer must wait for us ends the session */
static enum iw_mpa_next siw_mpa_rx_out_of_turn(struct siw_cep *cep)
{
	u8 byte;
	int n = cep->llp->recv(cep, &byte, sizeof(byte), true);

	if (n == -EAGAIN)
		return IW_MPA_NEXT_WAIT;
	if (n <= 0)
		return iw_mpa_peer_gone(&cep->mpa, n);
	return iw_mpa_rx_done(&cep->mpa, n);
}

/**
 * siw_mpa_rx - read the peer's bytes
 * @cep: the endpoint, in %SIW_EPSTATE_MPA
 *
 * Return: next step of the driver
 */
enum iw_mpa_next siw_mpa_rx(struct siw_cep *cep)
{
	enum iw_mpa_next next;
	size_t len;
	void *room;
	u8 byte;
	int n;

	if (cep->llp->rx_setup)
		return cep->llp->rx_setup(cep);
	while ((room = iw_mpa_rx_room(&cep->mpa, &len))) {
		n = cep->llp->recv(cep, room, len, false);
		if (n == -EAGAIN)
			return IW_MPA_NEXT_WAIT;
		if (n <= 0)
			return iw_mpa_peer_gone(&cep->mpa, n);

		next = iw_mpa_rx_done(&cep->mpa, n);
		if (next == IW_MPA_NEXT_FRAME) {
			n = cep->llp->recv(cep, &byte, 1, true);
			next = iw_mpa_process(&cep->mpa, n > 0);
			if (next == IW_MPA_NEXT_DONE)
				cep->llp->kick_rx(cep);
		}
		if (next != IW_MPA_NEXT_WAIT)
			return next;
	}
	return siw_mpa_rx_out_of_turn(cep);
}

static int siw_mpa_add(struct siw_device *sdev,
		       const struct iw_mpa_driver *driver)
{
	struct iw_mpa_device *dev;

	dev = iw_mpa_register_device(&sdev->base_dev, driver);
	if (IS_ERR(dev))
		return PTR_ERR(dev);
	sdev->mpa = dev;
	return 0;
}

/**
 * siw_mpa_register - add a device to iw_mpa
 * @sdev: the device, not yet registered
 * @model: connection model in force until an administrator sets one
 *
 * Return: 0 or a negative errno
 */
int siw_mpa_register(struct siw_device *sdev, enum rdma_mpa_model model)
{
	const struct iw_mpa_choice initial = { RDMA_MPA_SETTING_MODEL, model };
	const struct iw_mpa_driver driver = {
		.ops = &siw_mpa_ops,
		.caps = {
			.llp = RDMA_MPA_LLP_TCP,
			.max_ird = sdev->attrs.max_ird,
			.max_ord = sdev->attrs.max_ord,
			.rtr_send = IW_MPA_RTR_ALL,
			.rtr_recv = IW_MPA_RTR_ALL,
			.pow2_depths = true,
			.fastopen = true,
			.large = true,
		},
		.initial = &initial,
		.num_initial = 1,
	};

	return siw_mpa_add(sdev, &driver);
}

/**
 * siw_mpa_register_sctp - add a device that uses SCTP to iw_mpa
 * @sdev: the device, not yet registered
 *
 * Return: 0 or a negative errno
 */
int siw_mpa_register_sctp(struct siw_device *sdev)
{
	/* Without a gate the peer-to-peer model has no purpose */
	const struct iw_mpa_choice initial = {
		RDMA_MPA_SETTING_MODEL, RDMA_MPA_MODEL_CLIENT_SERVER
	};
	const struct iw_mpa_driver driver = {
		.ops = &siw_mpa_ops,
		.caps = {
			.llp = RDMA_MPA_LLP_SCTP,
			.max_ird = sdev->attrs.max_ird,
			.max_ord = sdev->attrs.max_ord,
			/* Only the gate recognises a Send */
			.rtr_send = RDMA_MPA_RTR_WRITE | RDMA_MPA_RTR_READ,
			.rtr_recv = RDMA_MPA_RTR_WRITE | RDMA_MPA_RTR_READ,
			.pow2_depths = true,
			.no_crc = true,
			.streams = true,
		},
		.initial = &initial,
		.num_initial = 1,
	};

	return siw_mpa_add(sdev, &driver);
}

/**
 * siw_mpa_unregister - remove a device from iw_mpa
 * @sdev: the device, without endpoints
 */
void siw_mpa_unregister(struct siw_device *sdev)
{
	iw_mpa_unregister_device(sdev->mpa);
	sdev->mpa = NULL;
}

/**
 * siw_mpa_term_received - the peer has sent a TERM
 * @qp: the QP that received it
 * @term: the message
 *
 * May run in soft interrupts.
 */
void siw_mpa_term_received(struct siw_qp *qp, struct iwarp_terminate *term)
{
	const struct siw_cep *cep = READ_ONCE(qp->cep);

	/* The endpoint is not freed while the callback of its socket runs */
	if (cep)
		iw_mpa_term_received(&cep->mpa, __rdmap_term_layer(term),
				     __rdmap_term_etype(term),
				     __rdmap_term_ecode(term));
}
