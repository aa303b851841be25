/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Notifications of connections.
 */
#ifndef _IW_MPA_NOTIFY_H
#define _IW_MPA_NOTIFY_H

#include "session.h"

#if IS_ENABLED(CONFIG_INFINIBAND_IW_MPA_SETTINGS)
void iw_mpa_notify_conn(const struct iw_mpa_session *s, enum iw_mpa_state state,
			int status, enum rdma_mpa_ecode ecode);
#else
static inline void iw_mpa_notify_conn(const struct iw_mpa_session *s,
				      enum iw_mpa_state state, int status,
				      enum rdma_mpa_ecode ecode)
{
}
#endif

#endif /* _IW_MPA_NOTIFY_H */
