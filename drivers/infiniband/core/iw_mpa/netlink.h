/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The netlink client; its interface is include/uapi/rdma/rdma_mpa.h.
 */
#ifndef _IW_MPA_NETLINK_H
#define _IW_MPA_NETLINK_H

#include <rdma/iw_mpa.h>

void iw_mpa_notify_conn(const struct iw_mpa_session *s, enum iw_mpa_state was,
			int status, enum iw_mpa_ecode ecode);

#endif /* _IW_MPA_NETLINK_H */
