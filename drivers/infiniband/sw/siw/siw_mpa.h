/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * siw's side of iw_mpa.
 */
#ifndef _SIW_MPA_H
#define _SIW_MPA_H

#include <rdma/iw_mpa.h>

struct ib_qp;
struct siw_cep;
struct siw_qp;

int siw_mpa_init(struct siw_cep *cep);
enum iw_mpa_next siw_mpa_rx(struct siw_cep *cep);
bool siw_mpa_absorb_send(struct siw_qp *qp);
bool siw_mpa_rx_null_fpdu(struct siw_qp *qp, int *rv);
void siw_mpa_open_gate(struct siw_qp *qp, u8 rtr);
u8 siw_mpa_rtr_received(const struct siw_qp *qp);
int siw_mpa_fill_res_qp(struct sk_buff *msg, struct ib_qp *base_qp);

#endif
