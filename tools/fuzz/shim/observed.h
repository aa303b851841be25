/* SPDX-License-Identifier: GPL-2.0 */
/* What the harness sees and says of files that are not compiled here */
#ifndef SHIM_OBSERVED_H
#define SHIM_OBSERVED_H

#include <linux/types.h>

struct iw_mpa_session;

#ifdef __cplusplus
extern "C" {
#endif

/* observe.c: called with the session's record, if it is not NULL */
extern void (*shim_observed)(struct iw_mpa_session *s);

/* rev1_peers.c: the answer, and how many were to be remembered */
extern bool shim_peer_is_rev1;
extern unsigned int shim_rev1_peers;

#ifdef __cplusplus
}
#endif

#endif
