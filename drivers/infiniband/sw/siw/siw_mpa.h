/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * siw's side of iw_mpa.
 */
#ifndef _SIW_MPA_H
#define _SIW_MPA_H

#include <rdma/iw_mpa.h>

struct iwarp_terminate;
struct siw_cep;
struct siw_device;
struct siw_qp;

int siw_mpa_register(struct siw_device *sdev, enum rdma_mpa_model model);
int siw_mpa_register_sctp(struct siw_device *sdev);
void siw_mpa_unregister(struct siw_device *sdev);
int siw_mpa_open(struct siw_cep *cep, const struct iw_mpa_layer *options);
int siw_mpa_listen(struct siw_cep *cep, const struct iw_mpa_layer *options);
enum iw_mpa_next siw_mpa_rx(struct siw_cep *cep);
void siw_mpa_term_received(struct siw_qp *qp, struct iwarp_terminate *term);

#endif
