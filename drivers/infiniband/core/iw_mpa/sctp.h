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

enum iw_mpa_parse iw_mpa_sctp_parse(enum iw_mpa_kind kind,
				    enum rdma_mpa_dialect dialect,
				    const void *buf, size_t len,
				    struct iw_mpa_frame *frame, size_t *need);
int iw_mpa_sctp_build(const struct iw_mpa_frame *frame,
		      enum rdma_mpa_dialect dialect, void *buf, size_t size);

#endif /* _IW_MPA_SCTP_H */
