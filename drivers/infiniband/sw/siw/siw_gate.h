/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The gate of a responder: no sends before the initiator's first FPDU.
 */
#ifndef _SIW_GATE_H
#define _SIW_GATE_H

#include <linux/types.h>

struct siw_qp;

bool siw_gate_absorb_send(struct siw_qp *qp);
bool siw_gate_rx_null_fpdu(struct siw_qp *qp, int *rv);
u8 siw_gate_rtr_kind(const struct siw_qp *qp);
void siw_gate_open(struct siw_qp *qp, u8 rtr);

#endif
