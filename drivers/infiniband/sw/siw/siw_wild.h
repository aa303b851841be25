/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Listeners on all addresses of a device.
 */
#ifndef _SIW_WILD_H
#define _SIW_WILD_H

#include <linux/errno.h>

struct iw_cm_id;

#if IS_ENABLED(CONFIG_RDMA_SIW_SCTP)

int siw_wild_listen(struct iw_cm_id *id, int backlog);
void siw_wild_forget(struct iw_cm_id *id);
int siw_wild_init(void);
void siw_wild_exit(void);

#else

static inline int siw_wild_listen(struct iw_cm_id *id, int backlog)
{
	return -EOPNOTSUPP;
}

static inline void siw_wild_forget(struct iw_cm_id *id)
{
}

static inline int siw_wild_init(void)
{
	return 0;
}

static inline void siw_wild_exit(void)
{
}

#endif

#endif
