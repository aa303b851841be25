/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Names of lower layer protocols, states and sessions.
 */
#ifndef _IW_MPA_NAME_H
#define _IW_MPA_NAME_H

#include "device.h"
#include "session.h"

const char *iw_mpa_llp_str(const struct iw_mpa_device *dev);
const char *iw_mpa_state_str(enum iw_mpa_state state);
void iw_mpa_name_session(const struct iw_mpa_session *s,
			 struct iw_mpa_name *name);

#endif /* _IW_MPA_NAME_H */
