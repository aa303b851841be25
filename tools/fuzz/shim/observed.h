/* SPDX-License-Identifier: GPL-2.0 */
/* The harness's access to replacements of files that are not compiled in user space */
#ifndef SHIM_OBSERVED_H
#define SHIM_OBSERVED_H

#include <linux/types.h>

struct iw_mpa_session;

#ifdef __cplusplus
extern "C" {
#endif

/* observe.c: called with the session's record, if it is not NULL */
extern void (*shim_observed)(struct iw_mpa_session *s);

/* rev1_peers.c: its answer, and the number of peers to remember */
extern bool shim_peer_is_rev1;
extern unsigned int shim_rev1_peers;

#ifdef __cplusplus
}
#endif

#endif
