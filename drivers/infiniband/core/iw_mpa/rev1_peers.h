/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Peers that support only MPA Rev 1.
 */
#ifndef _IW_MPA_REV1_PEERS_H
#define _IW_MPA_REV1_PEERS_H

#include "session.h"

bool iw_mpa_peer_is_rev1(const struct iw_mpa_addr *addr);
void iw_mpa_peer_set_rev1(const struct iw_mpa_addr *addr);

#endif
