/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * cxgb4's side of iw_mpa.
 */
#ifndef _C4IW_MPA_H
#define _C4IW_MPA_H

#include <rdma/iw_mpa.h>

struct c4iw_dev;
struct c4iw_ep;
struct c4iw_listen_ep;
struct c4iw_qp;
struct iw_cm_conn_param;
struct iw_cm_id;
struct sk_buff;

/**
 * enum c4iw_mpa_close - next step for TCP
 * @C4IW_MPA_KEEP: nothing
 * @C4IW_MPA_CLOSE: FIN, after all sent data
 * @C4IW_MPA_ABORT: RST
 */
enum c4iw_mpa_close {
	C4IW_MPA_KEEP,
	C4IW_MPA_CLOSE,
	C4IW_MPA_ABORT,
};

int c4iw_mpa_register(struct c4iw_dev *dev);
void c4iw_mpa_unregister(struct c4iw_dev *dev);
int c4iw_mpa_listen(struct c4iw_listen_ep *ep, struct iw_cm_id *id);
void c4iw_mpa_unlisten(struct c4iw_listen_ep *ep);
int c4iw_mpa_inherit(struct c4iw_ep *ep, const struct c4iw_listen_ep *listener);
int c4iw_mpa_connect(struct c4iw_ep *ep, struct iw_cm_id *id,
		     const struct iw_cm_conn_param *param);
void c4iw_mpa_cancel(struct c4iw_ep *ep, int err);
int c4iw_mpa_accept(struct c4iw_ep *ep, struct iw_cm_id *id,
		    const struct iw_cm_conn_param *param);
enum c4iw_mpa_close c4iw_mpa_rx(struct c4iw_ep *ep, const struct sk_buff *skb,
				unsigned int len);
enum c4iw_mpa_close c4iw_mpa_how_to_close(const struct c4iw_ep *ep);
int c4iw_mpa_fill_res_qp(struct sk_buff *msg, struct c4iw_qp *qhp);

#endif
