// SPDX-License-Identifier: GPL-2.0
/* In user space nobody counts, traces or listens. */
#include "../../../drivers/infiniband/core/iw_mpa/observe.h"

void iw_mpa_saw_state(const struct iw_mpa_session *s, enum iw_mpa_state was)
{
}

void iw_mpa_saw_tx(const struct iw_mpa_session *s,
		   const struct iw_mpa_frame *frame)
{
}

void iw_mpa_saw_rx(const struct iw_mpa_session *s)
{
}

void iw_mpa_saw_bad_rx(const struct iw_mpa_session *s,
		       enum iw_mpa_parse result)
{
}

void iw_mpa_saw_decision(const struct iw_mpa_session *s)
{
}

void iw_mpa_saw_rtr(const struct iw_mpa_session *s, u8 rtr)
{
}

void iw_mpa_saw_term(const struct iw_mpa_session *s, enum iw_mpa_ecode ecode)
{
}

void iw_mpa_saw_timeout(const struct iw_mpa_session *s)
{
}

void iw_mpa_saw_fallback(const struct iw_mpa_session *s)
{
}

void iw_mpa_saw_fast_open(const struct iw_mpa_session *s)
{
}

void iw_mpa_saw_end(const struct iw_mpa_session *s, enum iw_mpa_state was,
		    int status, enum iw_mpa_ecode ecode)
{
}
