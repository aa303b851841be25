/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The decisions of RFC 6581 section 9.
 */
#ifndef _IW_MPA_NEGOTIATE_H
#define _IW_MPA_NEGOTIATE_H

#include <linux/types.h>
#include <rdma/iw_mpa.h>

#include "frame.h"
#include "policy.h"

/**
 * struct iw_mpa_msg - contents of a control message of any transport
 * @enhanced: enhanced connection data is present, @enh is valid
 * @reject: a Reply that rejects
 * @enh: enhanced connection data
 *
 * MPA frames and SCTP session control chunks (RFC 6581 section 7) carry the
 * same contents.
 */
struct iw_mpa_msg {
	bool enhanced;
	bool reject;
	struct iw_mpa_enh enh;
};

/**
 * struct iw_mpa_local - the local side of a negotiation
 * @caps: the device
 * @policy: the policy in force for this connection
 * @ird: inbound RDMA Read depth that the ULP asks for
 * @ord: outbound RDMA Read depth that the ULP asks for
 */
struct iw_mpa_local {
	const struct iw_mpa_caps *caps;
	const struct iw_mpa_policy *policy;
	u32 ird;
	u32 ord;
};

/**
 * enum iw_mpa_verdict - how a negotiation ended
 * @IW_MPA_GO: enter RDMA mode
 * @IW_MPA_REJECTED: as initiator: the peer rejected; as responder: answer with
 *	the reject in @reply
 * @IW_MPA_TERMINATE: send a TERM message with @ecode, then end
 * @IW_MPA_DROP: end the connection and send nothing
 */
enum iw_mpa_verdict {
	IW_MPA_GO,
	IW_MPA_REJECTED,
	IW_MPA_TERMINATE,
	IW_MPA_DROP,
};

/**
 * struct iw_mpa_decision - the outcome of a negotiation
 * @verdict: how it ended, enum iw_mpa_verdict
 * @ecode: the reason, enum rdma_mpa_ecode
 * @status: 0 or a negative errno for the ULP
 * @ird: IRD to install
 * @ord: ORD in force for the ULP; see @read_slots
 * @read_slots: ORD to install: @ord, or 1 if @ord is 0 and the RTR is an RDMA
 *	Read
 * @rtr: initiator: the one kind to send, 0 = none; responder: mask of the
 *	kinds to expect, 0 = client-server
 * @peer_known: @peer_ird and @peer_ord were in the peer's message
 * @peer_ird: the peer's IRD as sent, may be %IW_MPA_DEPTH_ULP
 * @peer_ord: the peer's ORD as sent, may be %IW_MPA_DEPTH_ULP
 * @reply: responder: contents of the Reply
 */
struct iw_mpa_decision {
	u8 verdict;
	u8 ecode;
	int status;
	u16 ird;
	u16 ord;
	u16 read_slots;
	u8 rtr;
	bool peer_known;
	u16 peer_ird;
	u16 peer_ord;
	struct iw_mpa_msg reply;
};

int iw_mpa_make_request(const struct iw_mpa_local *local,
			struct iw_mpa_msg *request);
void iw_mpa_make_reject(const struct iw_mpa_local *local,
			const struct iw_mpa_msg *request,
			struct iw_mpa_msg *reply);
void iw_mpa_negotiate_initiator(const struct iw_mpa_local *local,
				const struct iw_mpa_msg *request,
				const struct iw_mpa_msg *reply,
				struct iw_mpa_decision *decision);
void iw_mpa_negotiate_responder(const struct iw_mpa_local *local,
				const struct iw_mpa_msg *request,
				struct iw_mpa_decision *decision);

#endif /* _IW_MPA_NEGOTIATE_H */
