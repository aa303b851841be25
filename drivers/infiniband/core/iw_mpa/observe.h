/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Counters, tracepoints and notifications of sessions. These functions change
 * nothing in a session except its record.
 */
#ifndef _IW_MPA_OBSERVE_H
#define _IW_MPA_OBSERVE_H

#include "session.h"

void iw_mpa_observe(struct iw_mpa_session *s);
void iw_mpa_observe_disconnect(const struct iw_mpa_session *s);

#endif /* _IW_MPA_OBSERVE_H */
