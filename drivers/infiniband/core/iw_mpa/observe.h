/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a session tells those who count, trace and listen. Nothing here changes
 * the session.
 */
#ifndef _IW_MPA_OBSERVE_H
#define _IW_MPA_OBSERVE_H

#include <rdma/iw_mpa.h>

void iw_mpa_session_name(const struct iw_mpa_session *s,
			 struct iw_mpa_name *name);
void iw_mpa_saw_state(const struct iw_mpa_session *s, enum iw_mpa_state was);
void iw_mpa_saw_tx(const struct iw_mpa_session *s,
		   const struct iw_mpa_frame *frame);
void iw_mpa_saw_rx(const struct iw_mpa_session *s);
void iw_mpa_saw_bad_rx(const struct iw_mpa_session *s,
		       enum iw_mpa_parse result);
void iw_mpa_saw_decision(const struct iw_mpa_session *s);
void iw_mpa_saw_rtr(const struct iw_mpa_session *s, u8 rtr);
void iw_mpa_saw_term(const struct iw_mpa_session *s, enum iw_mpa_ecode ecode);
void iw_mpa_saw_timeout(const struct iw_mpa_session *s);
void iw_mpa_saw_fallback(const struct iw_mpa_session *s);
void iw_mpa_saw_fast_open(const struct iw_mpa_session *s);
void iw_mpa_saw_end(const struct iw_mpa_session *s, enum iw_mpa_state was,
		    int status, enum iw_mpa_ecode ecode);

#endif /* _IW_MPA_OBSERVE_H */
