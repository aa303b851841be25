// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * cxgb4's side of iw_mpa: the operations that a session calls.
 *
 * The adapter implements TCP. Frames are sent as work requests and arrive in
 * skbs. The firmware generates an initiator's RTR. As responder it holds back
 * the ULP's data until the peer's RTR has arrived. The transition to RTS
 * (FW_RI_INIT) passes the kind of RTR to the firmware.
 *
 * All functions are called with the endpoint's mutex held, which serialises
 * the session.
 */
#include <linux/kref.h>
#include <linux/minmax.h>
#include <linux/moduleparam.h>
#include <linux/skbuff.h>
#include <net/netlink.h>

#include <rdma/iw_cm.h>
#include <rdma/rdma_cm.h>
#include <rdma/restrack.h>

#include "iw_cxgb4.h"

/*
 * Settings of a device until netlink changes them. The driver reads these
 * parameters when it registers the device; a later write would have no effect.
 */
static int peer2peer = 1;
module_param(peer2peer, int, 0444);
MODULE_PARM_DESC(peer2peer, "Support peer2peer ULPs (default=1)");

static int p2p_type = FW_RI_INIT_P2PTYPE_READ_REQ;
module_param(p2p_type, int, 0444);
MODULE_PARM_DESC(p2p_type, "RDMAP opcode to use for the RTR message: 1=RDMA_READ 0=RDMA_WRITE (default 1)");

static int mpa_rev = 2;
module_param(mpa_rev, int, 0444);
MODULE_PARM_DESC(mpa_rev, "MPA revision, 1 is RFC5044, 2 is RFC6581 (default=2)");

static int markers_enabled;
module_param(markers_enabled, int, 0444);
MODULE_PARM_DESC(markers_enabled, "Enable MPA MARKERS (default(0)=disabled)");

static int crc_enabled = 1;
module_param(crc_enabled, int, 0444);
MODULE_PARM_DESC(crc_enabled, "Enable MPA CRC (default(1)=enabled)");

static struct c4iw_ep *session_ep(struct iw_mpa_session *s)
{
	return container_of(s, struct c4iw_ep, mpa);
}

static void mpa_arp_failure(void *handle, struct sk_buff *skb)
{
	pr_err("cannot resolve the peer's link address, an MPA frame is dropped\n");
	kfree_skb(skb);
}

/*
 * A work request can contain up to 255 bytes of a frame. If an skb is longer
 * than %MAX_IMM_OFLD_TX_DATA_WR_LEN, the SGE uses the bytes before the
 * transport header as the work request and fetches the remaining bytes by DMA.
 */
static struct sk_buff *mpa_wr(const struct c4iw_ep *ep, const void *frame,
			      size_t len)
{
	enum { SGL_ROOM = 16, FETCH_LEN16 = 2 };
	size_t wr_len = sizeof(struct fw_ofld_tx_data_wr) + len;
	bool imm = wr_len <= MAX_IMM_OFLD_TX_DATA_WR_LEN;
	struct fw_ofld_tx_data_wr *req;
	struct sk_buff *skb;

	skb = alloc_skb(SGL_ROOM + wr_len, GFP_KERNEL);
	if (!skb)
		return NULL;

	/* The SGE stores the DMA address in this room */
	skb_reserve(skb, SGL_ROOM);
	req = skb_put_zero(skb, wr_len);
	skb_set_transport_header(skb, imm ? 0 : sizeof(*req));
	req->op_to_immdlen = cpu_to_be32(FW_WR_OP_V(FW_OFLD_TX_DATA_WR) |
					 FW_WR_COMPL_F |
					 FW_WR_IMMDLEN_V(imm ? len : 0));
	req->flowid_len16 =
		cpu_to_be32(FW_WR_FLOWID_V(ep->hwtid) |
			    FW_WR_LEN16_V(imm ? DIV_ROUND_UP(wr_len, 16) :
						FETCH_LEN16));
	req->plen = cpu_to_be32(len);
	req->tunnel_to_proxy = cpu_to_be32(FW_OFLD_TX_DATA_WR_FLUSH_F |
					   FW_OFLD_TX_DATA_WR_SHOVE_F);
	memcpy(req + 1, frame, len);

	set_wr_txq(skb, CPL_PRIORITY_DATA, ep->txq_idx);
	t4_set_arp_err_handler(skb, NULL, mpa_arp_failure);
	return skb;
}

static int c4iw_mpa_send(struct iw_mpa_session *s, const void *frame,
			 size_t len)
{
	struct c4iw_ep *ep = session_ep(s);
	struct sk_buff *skb = mpa_wr(ep, frame, len);
	int rv;

	if (!skb)
		return -ENOMEM;

	/* fw4_ack() puts this reference when the peer has acked the frame */
	skb_get(skb);
	ep->mpa_skb = skb;
	rv = c4iw_l2t_send(&ep->com.dev->rdev, skb, ep->l2t);
	if (rv) {
		kfree_skb(ep->mpa_skb);
		ep->mpa_skb = NULL;
		return rv;
	}
	ep->snd_seq += len;
	ep->mpa_flush = s->responder;
	return 0;
}

static u8 fw_p2p_type(u8 rtr)
{
	switch (rtr) {
	case RDMA_MPA_RTR_WRITE:
		return FW_RI_INIT_P2PTYPE_RDMA_WRITE;
	case RDMA_MPA_RTR_READ:
		return FW_RI_INIT_P2PTYPE_READ_REQ;
	default:
		return FW_RI_INIT_P2PTYPE_DISABLED;
	}
}

/* Binds QP and TID by FW_RI_INIT */
static int move_to_rts(struct c4iw_ep *ep, const struct iw_mpa_rdma *rdma,
		       u8 rtr)
{
	const int mask = C4IW_QP_ATTR_NEXT_STATE |
			 C4IW_QP_ATTR_LLP_STREAM_HANDLE |
			 C4IW_QP_ATTR_MPA_ATTR |
			 C4IW_QP_ATTR_MAX_IRD | C4IW_QP_ATTR_MAX_ORD;
	struct c4iw_qp_attributes attrs = {
		.next_state = C4IW_QP_STATE_RTS,
		.llp_stream_handle = ep,
		.max_ird = rdma->ird,
		.max_ord = rdma->ord,
		.mpa_attr = {
			.initiator = !rdma->responder,
			.recv_marker_enabled = rdma->rx_markers,
			.xmit_marker_enabled = rdma->tx_markers,
			.crc_enabled = rdma->crc,
			.p2p_type = fw_p2p_type(rtr),
		},
	};
	int rv;

	/* A Read as RTR needs an entry of the IRD */
	if (rtr == RDMA_MPA_RTR_READ && rdma->responder)
		attrs.max_ird = max_t(u32, attrs.max_ird, 1);

	rv = c4iw_modify_qp(ep->com.qp->rhp, ep->com.qp, mask, &attrs, 1);
	if (!rv)
		ep->com.state = FPDU_MODE;
	return rv;
}

static int c4iw_mpa_enter_rdma(struct iw_mpa_session *s,
			       const struct iw_mpa_rdma *rdma)
{
	/*
	 * An older driver also sends an RTR to a Rev 1 responder. The firmware
	 * must be prepared for it in advance.
	 */
	return move_to_rts(session_ep(s), rdma,
			   rdma->rtr_unasked ?: rdma->rtr);
}

static int c4iw_mpa_terminate(struct iw_mpa_session *s,
			      const struct iw_mpa_rdma *rdma,
			      enum rdma_mpa_ecode ecode)
{
	struct c4iw_ep *ep = session_ep(s);
	struct c4iw_qp_attributes attrs = {
		.next_state = C4IW_QP_STATE_TERMINATE,
		.layer_etype = LAYER_MPA,
		.ecode = ecode,
		.send_term = 1,
	};
	int rv;

	/* The firmware sends a TERM only for a QP in RTS */
	rv = move_to_rts(ep, rdma, 0);
	if (!rv)
		rv = c4iw_modify_qp(ep->com.qp->rhp, ep->com.qp,
				    C4IW_QP_ATTR_NEXT_STATE, &attrs, 1);
	if (!rv)
		ep->mpa_flush = true;
	return rv;
}

static void c4iw_mpa_deadline(struct iw_mpa_session *s, unsigned int ms)
{
	c4iw_set_mpa_deadline(session_ep(s), ms);
}

static int c4iw_mpa_event(struct iw_mpa_session *s,
			  const struct iw_mpa_event *ev)
{
	struct c4iw_ep *ep = session_ep(s);
	struct iw_cm_event event = {};

	iw_mpa_fill_cm_event(&event, ev);
	/* c4iw_mpa_cancel() ends a session without a cm_id */
	if (ev->type != IW_MPA_EVENT_REQUEST && !ep->com.cm_id)
		return 0;
	switch (ev->type) {
	case IW_MPA_EVENT_REQUEST:
		return c4iw_connect_request_upcall(ep, &event);
	case IW_MPA_EVENT_REPLY:
		c4iw_connect_reply_upcall(ep, &event);
		return 0;
	case IW_MPA_EVENT_ESTABLISHED:
		c4iw_established_upcall(ep, &event);
		return 0;
	}
	return -EINVAL;
}

static void c4iw_mpa_name(const struct iw_mpa_session *s,
			  struct iw_mpa_name *name)
{
	const struct c4iw_ep *ep = container_of(s, struct c4iw_ep, mpa);

	if (ep->com.qp)
		name->qpn = ep->com.qp->wq.sq.qid;
	name->local = ep->com.local_addr;
	name->remote = ep->com.remote_addr;
}

static const struct iw_mpa_ops c4iw_mpa_ops = {
	.send		= c4iw_mpa_send,
	.enter_rdma	= c4iw_mpa_enter_rdma,
	.terminate	= c4iw_mpa_terminate,
	.deadline	= c4iw_mpa_deadline,
	.event		= c4iw_mpa_event,
	.name		= c4iw_mpa_name,
};

/* The endpoint of a QP, with a reference, or NULL */
static struct c4iw_ep *mpa_qp_ep(struct c4iw_qp *qhp)
{
	struct c4iw_ep *ep;

	mutex_lock(&qhp->mutex);
	ep = qhp->ep;
	if (ep)
		c4iw_get_ep(&ep->com);
	mutex_unlock(&qhp->mutex);
	return ep;
}

static unsigned int timeout_ms(void)
{
	return clamp(c4iw_ep_timeout_secs, 1, RDMA_MPA_DEADLINE_MAX / 1000) *
	       1000;
}

static void warn_of_parameters(void)
{
	if (mpa_rev != 1 && mpa_rev != 2)
		pr_warn("unsupported mpa_rev %d, using %d\n", mpa_rev,
			mpa_rev < 1 ? 1 : 2);
	if (p2p_type != FW_RI_INIT_P2PTYPE_RDMA_WRITE &&
	    p2p_type != FW_RI_INIT_P2PTYPE_READ_REQ)
		pr_warn("unsupported p2p_type %d, using %d\n", p2p_type,
			FW_RI_INIT_P2PTYPE_READ_REQ);
}

/* An RTR by Read needs an ORD of at least 1 */
static enum rdma_mpa_rtr initial_rtr(u32 max_ord)
{
	return p2p_type == FW_RI_INIT_P2PTYPE_RDMA_WRITE || !max_ord ?
		       RDMA_MPA_RTR_WRITE : RDMA_MPA_RTR_READ;
}

/**
 * c4iw_mpa_register - add a device to iw_mpa
 * @dev: the device, with its ports, not yet registered
 *
 * Reads the module parameters.
 *
 * Return: 0 or a negative errno
 */
int c4iw_mpa_register(struct c4iw_dev *dev)
{
	const u32 depth = min3(dev->rdev.lldi.max_ordird_qp,
			       c4iw_max_read_depth, (u32)IW_MPA_DEPTH_MAX);
	const u8 rtr = initial_rtr(depth);
	const struct iw_mpa_choice initial[] = {
		/* For cxgb4, mpa_rev=2 includes the fallback to Rev 1 */
		{ RDMA_MPA_SETTING_REVISION, mpa_rev < 2 ?
		  RDMA_MPA_REVISION_RFC5044 : RDMA_MPA_REVISION_FALLBACK },
		{ RDMA_MPA_SETTING_MODEL, peer2peer ?
		  RDMA_MPA_MODEL_PEER_TO_PEER : RDMA_MPA_MODEL_CLIENT_SERVER },
		{ RDMA_MPA_SETTING_RTR_OFFER, rtr },
		{ RDMA_MPA_SETTING_RTR_ACCEPT,
		  RDMA_MPA_RTR_WRITE | RDMA_MPA_RTR_READ },
		{ RDMA_MPA_SETTING_RTR_ORDER, rtr },
		{ RDMA_MPA_SETTING_CRC, crc_enabled ?
		  RDMA_MPA_CRC_REQUIRED : RDMA_MPA_CRC_IF_ASKED },
		{ RDMA_MPA_SETTING_REQUEST_MS, timeout_ms() },
		{ RDMA_MPA_SETTING_DECIDE_MS, timeout_ms() },
		{ RDMA_MPA_SETTING_REPLY_MS, timeout_ms() },
	};
	struct iw_mpa_driver driver = {
		.ops = &c4iw_mpa_ops,
		.caps = {
			.llp = RDMA_MPA_LLP_TCP,
			.rtr_send = RDMA_MPA_RTR_WRITE | RDMA_MPA_RTR_READ,
			.rtr_recv = RDMA_MPA_RTR_WRITE | RDMA_MPA_RTR_READ,
			.rtr_recv_one = true,
			.rtr_offload = true,
			.tx_markers = true,
			.rx_markers = markers_enabled,
			.no_connect_ms = true,
		},
		.initial = initial,
		.num_initial = ARRAY_SIZE(initial),
	};
	struct iw_mpa_device *mpa;

	dev->max_read_depth = depth;
	driver.caps.max_ird = dev->max_read_depth;
	driver.caps.max_ord = dev->max_read_depth;
	warn_of_parameters();
	mpa = iw_mpa_register_device(&dev->ibdev, &driver);
	if (IS_ERR(mpa))
		return PTR_ERR(mpa);
	dev->mpa = mpa;
	return 0;
}

/**
 * c4iw_mpa_unregister - remove a device from iw_mpa
 * @dev: the device, without endpoints
 */
void c4iw_mpa_unregister(struct c4iw_dev *dev)
{
	iw_mpa_unregister_device(dev->mpa);
	dev->mpa = NULL;
}

/* The port that the route goes through */
static unsigned int mpa_port(const struct c4iw_ep *ep)
{
	return ep->ctrlq_idx;
}

/**
 * c4iw_mpa_listen - the ULP listens
 * @ep: the endpoint
 * @id: the listener, with the options of its ULP
 *
 * Gets the settings of each port, for the connections through this port.
 * c4iw_mpa_unlisten() frees the settings.
 *
 * Return: 0, -ENOMEM, or -EINVAL if the device does not support the options
 */
int c4iw_mpa_listen(struct c4iw_listen_ep *ep, struct iw_cm_id *id)
{
	struct iw_mpa_config *config;
	unsigned int i;

	set_bit(MPA_LISTENER, &ep->com.flags);
	for (i = 0; i < ep->com.dev->rdev.lldi.nports; i++) {
		config = iw_mpa_config_get(ep->com.dev->mpa, i + 1,
					   iw_cm_options(id));
		if (IS_ERR(config))
			return PTR_ERR(config);
		ep->mpa[i] = config;
	}
	return 0;
}

/**
 * c4iw_mpa_unlisten - free the settings of a listener
 * @ep: the endpoint, which is about to be freed
 */
void c4iw_mpa_unlisten(struct c4iw_listen_ep *ep)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(ep->mpa); i++)
		iw_mpa_config_put(ep->mpa[i]);
}

/**
 * c4iw_mpa_inherit - prepare a responder's session
 * @ep: the endpoint, with its route
 * @listener: its listener
 *
 * Return: 0, -ENOMEM, or -ENODEV if the device does not have the port
 */
int c4iw_mpa_inherit(struct c4iw_ep *ep, const struct c4iw_listen_ep *listener)
{
	if (mpa_port(ep) >= listener->com.dev->rdev.lldi.nports)
		return -ENODEV;
	return iw_mpa_session_inherit(&ep->mpa, listener->mpa[mpa_port(ep)]);
}

static struct iw_mpa_ulp ulp_of(const struct iw_cm_conn_param *param)
{
	return (struct iw_mpa_ulp) {
		.ird = param->ird,
		.ord = param->ord,
		.pdata = param->private_data,
		.pdata_len = param->private_data_len,
	};
}

/**
 * c4iw_mpa_connect - the ULP connects
 * @ep: the endpoint, with its addresses and route
 * @id: the connection, with the options of its ULP
 * @param: from the ULP; copied
 *
 * Return: 0, or -EINVAL if a parameter exceeds the limits of device or protocol
 */
int c4iw_mpa_connect(struct c4iw_ep *ep, struct iw_cm_id *id,
		     const struct iw_cm_conn_param *param)
{
	struct iw_mpa_ulp ulp = ulp_of(param);
	int rv;

	rv = iw_mpa_session_open(&ep->mpa, ep->com.dev->mpa, mpa_port(ep) + 1,
				 iw_cm_options(id));
	if (rv)
		return rv;
	/*
	 * Nobody has asked for the fallback of mpa_rev=2. Without the peer's
	 * address it stays with this connection: one forged RST cannot change
	 * those of others.
	 */
	return iw_mpa_connect(&ep->mpa, &ulp);
}

/**
 * c4iw_mpa_cancel - end a session whose connect has failed
 * @ep: the endpoint, without its cm_id, so that the ULP gets no event
 * @err: a negative errno
 *
 * May be called before or after c4iw_mpa_connect(). The caller reports the
 * error to the ULP.
 */
void c4iw_mpa_cancel(struct c4iw_ep *ep, int err)
{
	if (iw_mpa_is_connecting(&ep->mpa))
		iw_mpa_abort(&ep->mpa, err);
}

/**
 * c4iw_mpa_accept - the ULP accepts
 * @ep: the endpoint, with cm_id and QP
 * @id: the connection, with the options of its ULP
 * @param: from the ULP
 *
 * Return: as from iw_mpa_accept()
 */
int c4iw_mpa_accept(struct c4iw_ep *ep, struct iw_cm_id *id,
		    const struct iw_cm_conn_param *param)
{
	struct iw_mpa_ulp ulp = ulp_of(param);

	return iw_mpa_accept(&ep->mpa, iw_cm_options(id), &ulp);
}

/**
 * c4iw_mpa_how_to_close - how to end TCP after the session has ended
 * @ep: the endpoint
 *
 * Return: %C4IW_MPA_CLOSE if a reject or a TERM still has to reach the peer,
 * else %C4IW_MPA_ABORT
 */
enum c4iw_mpa_close c4iw_mpa_how_to_close(const struct c4iw_ep *ep)
{
	return ep->mpa_flush ? C4IW_MPA_CLOSE : C4IW_MPA_ABORT;
}

/**
 * c4iw_mpa_rx - the peer has sent stream bytes
 * @ep: the endpoint
 * @skb: the bytes; not linear if there are many
 * @len: number of bytes
 *
 * Return: next step for TCP
 */
enum c4iw_mpa_close c4iw_mpa_rx(struct c4iw_ep *ep, const struct sk_buff *skb,
				unsigned int len)
{
	enum iw_mpa_next next = IW_MPA_NEXT_WAIT;
	unsigned int off = 0;
	size_t part;
	void *room;

	len = min(len, skb->len);
	while (next == IW_MPA_NEXT_WAIT && off < len) {
		room = iw_mpa_rx_room(&ep->mpa, &part);
		part = min_t(size_t, part, len - off);
		if (room && skb_copy_bits(skb, off, room, part))
			return C4IW_MPA_ABORT;
		next = iw_mpa_rx_done(&ep->mpa, room ? part : len - off);
		off += part;
		if (next == IW_MPA_NEXT_FRAME)
			next = iw_mpa_process(&ep->mpa, off < len);
	}
	return next == IW_MPA_NEXT_CLOSE ? c4iw_mpa_how_to_close(ep) :
					   C4IW_MPA_KEEP;
}

/**
 * c4iw_mpa_fill_res_qp - put a QP's negotiated values into a message
 * @msg: the message, inside a driver attribute nest
 * @qhp: the QP
 *
 * Return: 0 or a negative errno
 */
int c4iw_mpa_fill_res_qp(struct sk_buff *msg, struct c4iw_qp *qhp)
{
	struct c4iw_ep *ep = mpa_qp_ep(qhp);
	int rv = 0;

	if (!ep)
		return 0;

	/* The endpoint may be busy for long: do not wait, report nothing */
	if (mutex_trylock(&ep->com.mutex)) {
		rv = iw_mpa_fill_res(msg, qhp->rhp->mpa, &ep->mpa);
		mutex_unlock(&ep->com.mutex);
	}
	c4iw_put_ep(&ep->com);
	return rv;
}
