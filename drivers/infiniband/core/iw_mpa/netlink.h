/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The generic netlink family; Documentation/netlink/specs/rdma-mpa.yaml
 * describes it.
 */
#ifndef _IW_MPA_NETLINK_H
#define _IW_MPA_NETLINK_H

#include "session.h"

void iw_mpa_notify_conn(const struct iw_mpa_session *s, enum iw_mpa_state state,
			int status, enum rdma_mpa_ecode ecode);

#endif /* _IW_MPA_NETLINK_H */
