/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Names of states and sessions.
 */
#ifndef _IW_MPA_NAME_H
#define _IW_MPA_NAME_H

#include "session.h"

const char *iw_mpa_state_str(enum iw_mpa_state state);
void iw_mpa_name_session(const struct iw_mpa_session *s,
			 struct iw_mpa_name *name);

#endif /* _IW_MPA_NAME_H */
