// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The gate of a responder: the QP sends nothing before the initiator's first
 * FPDU has arrived (RFC 5044 section 7.1.2). In the peer-to-peer model this
 * FPDU is a Ready-to-Receive message, RTR (RFC 6581 section 9.2).
 */
#include <linux/kernel.h>
#include <linux/minmax.h>

#include "siw.h"
#include "siw_cm.h"
#include "siw_gate.h"

/**
 * siw_gate_absorb_send - consume the Send that has just begun if it is the RTR
 * @qp: the QP, fenced
 *
 * An RTR consumes no receive WR of the ULP and generates no completion, but
 * advances the message sequence number (RFC 6581 section 9.2). The caller has
 * received the header of the Send, and no FPDU before it.
 *
 * Return: true if the Send is the RTR; it has then been consumed.
 */
bool siw_gate_absorb_send(struct siw_qp *qp)
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
 * siw_gate_rx_null_fpdu - consume the first FPDU if it has no ULPDU
 * @qp: the QP, fenced, at the start of its first FPDU
 * @rv: if true is returned: 0, -EAGAIN for more bytes or a negative errno
 *
 * RFC 6581 section 9.2 does not specify whether the zero-length FPDU has the
 * headers of a Send. This function accepts the form without headers: two bytes
 * of length, both 0, two of padding, four of CRC.
 *
 * Return: true if the FPDU has no ULPDU or more bytes are needed to decide; the
 * available bytes have been consumed. False if the FPDU has a header; the bytes
 * consumed are in their place in the header.
 */
bool siw_gate_rx_null_fpdu(struct siw_qp *qp, int *rv)
{
	enum { NULL_FPDU_LEN = 8 };
	struct siw_rx_stream *srx = &qp->rx_stream;
	u8 *fpdu = (u8 *)&srx->hdr;
	int want, bytes;

	if (!(qp->rtr_expected & RDMA_MPA_RTR_SEND))
		return false;
	/* The length was received before and is not 0: the FPDU has a header */
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
		siw_gate_open(qp, RDMA_MPA_RTR_SEND);
	}
	return true;
}

/**
 * siw_gate_rtr_kind - kind of RTR of the FPDU just received
 * @qp: the QP
 *
 * Return: one of enum rdma_mpa_rtr, 0 if the FPDU is no RTR
 */
u8 siw_gate_rtr_kind(const struct siw_qp *qp)
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
 * siw_gate_open - a responder's first whole and valid FPDU has arrived
 * @qp: the QP, fenced until now
 * @rtr: kind of RTR, 0 if the FPDU is no RTR
 *
 * From now on the QP may send (RFC 5044 section 7.1.2). Work that was posted
 * early waits as the QP's active work. Any context; takes the SQ lock.
 */
void siw_gate_open(struct siw_qp *qp, u8 rtr)
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
