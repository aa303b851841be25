/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * siw's side of iw_mpa.
 */
#ifndef _SIW_MPA_H
#define _SIW_MPA_H

#include <rdma/iw_mpa.h>

struct ib_device;
struct ib_qp;
struct iwarp_terminate;
struct iw_cm_id;
struct rdma_cm_id;
struct siw_cep;
struct siw_device;
struct siw_qp;

int siw_mpa_register(struct siw_device *sdev, bool crc);
void siw_mpa_unregister(struct siw_device *sdev);
int siw_mpa_open(struct siw_cep *cep, struct iw_cm_id *id);
int siw_mpa_listen(struct siw_cep *cep, struct iw_cm_id *id);
enum iw_mpa_next siw_mpa_rx(struct siw_cep *cep);
bool siw_mpa_absorb_send(struct siw_qp *qp);
bool siw_mpa_rx_null_fpdu(struct siw_qp *qp, int *rv);
void siw_mpa_open_gate(struct siw_qp *qp, u8 rtr);
u8 siw_mpa_rtr_received(const struct siw_qp *qp);
void siw_mpa_term_received(struct siw_qp *qp, struct iwarp_terminate *term);
int siw_mpa_fill_res_qp(struct sk_buff *msg, struct ib_qp *base_qp);
int siw_mpa_fill_res_cm_id(struct sk_buff *msg, struct rdma_cm_id *id);
struct rdma_hw_stats *siw_mpa_alloc_stats(struct ib_device *base_dev, u32 port);
int siw_mpa_get_stats(struct ib_device *base_dev, struct rdma_hw_stats *stats,
		      u32 port, int index);

#endif
