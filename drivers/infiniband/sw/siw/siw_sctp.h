/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * SCTP as siw's lower layer protocol (RFC 5043).
 */
#ifndef _SIW_SCTP_H
#define _SIW_SCTP_H

#include <linux/errno.h>
#include <linux/types.h>
#include <linux/uio.h>

struct net;
struct siw_cep;
struct siw_chan;
struct siw_llp_ops;

extern const struct siw_llp_ops siw_llp_sctp;

int siw_sctp_check(struct net *net);

#if IS_ENABLED(CONFIG_RDMA_SIW_SCTP)

int siw_sctp_send_segment(struct siw_chan *chan, struct kvec *iov, size_t num,
			  size_t len);
unsigned int siw_sctp_segment_max(struct siw_chan *chan, bool refresh);
int siw_sctp_init(void);
void siw_sctp_exit(void);

#else

/* No QP has a channel */
static inline int siw_sctp_send_segment(struct siw_chan *chan, struct kvec *iov,
					size_t num, size_t len)
{
	return -EOPNOTSUPP;
}

static inline unsigned int siw_sctp_segment_max(struct siw_chan *chan,
						bool refresh)
{
	return 0;
}

static inline int siw_sctp_init(void)
{
	return 0;
}

static inline void siw_sctp_exit(void)
{
}

#endif

#endif
