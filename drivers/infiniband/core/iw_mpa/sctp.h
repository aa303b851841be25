/* SPDX-License-Identifier: GPL-2.0 */
/*
 * DDP stream session control over SCTP (RFC 5043 section 5.2.3, RFC 6581
 * section 7).
 */
#ifndef _IW_MPA_SCTP_H
#define _IW_MPA_SCTP_H

#include "frame.h"

/* Sizes in bytes */
enum iw_mpa_sctp_sizes {
	IW_MPA_SCTP_CODE_LEN	= 2,	/* function code */
	IW_MPA_SCTP_MAX		= IW_MPA_SCTP_CODE_LEN + IW_MPA_PDATA_MAX,
};

/**
 * enum iw_mpa_sctp_code - function codes of DDP stream session control
 * @IW_MPA_SCTP_INITIATE: the initiator asks for a session
 * @IW_MPA_SCTP_ACCEPT: the responder accepts
 * @IW_MPA_SCTP_REJECT: the responder's ULP rejects
 * @IW_MPA_SCTP_TERMINATE: either side ends the session; no private data
 * @IW_MPA_SCTP_ENH_INITIATE: Initiate with enhanced data
 * @IW_MPA_SCTP_ENH_ACCEPT: Accept with enhanced data
 * @IW_MPA_SCTP_ENH_REJECT: Reject with enhanced data
 *
 * RFC 5043 section 5.2.3, RFC 6581 section 7.
 */
enum iw_mpa_sctp_code {
	IW_MPA_SCTP_INITIATE		= 1,
	IW_MPA_SCTP_ACCEPT		= 2,
	IW_MPA_SCTP_REJECT		= 3,
	IW_MPA_SCTP_TERMINATE		= 4,
	IW_MPA_SCTP_ENH_INITIATE	= 5,
	IW_MPA_SCTP_ENH_ACCEPT		= 6,
	IW_MPA_SCTP_ENH_REJECT		= 7,
};

enum iw_mpa_parse iw_mpa_sctp_parse(enum iw_mpa_kind kind,
				    enum rdma_mpa_dialect dialect,
				    const void *buf, size_t len,
				    struct iw_mpa_frame *frame, size_t *need);
int iw_mpa_sctp_build(const struct iw_mpa_frame *frame,
		      enum rdma_mpa_dialect dialect, void *buf, size_t size);

#endif /* _IW_MPA_SCTP_H */
