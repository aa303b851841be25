/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Options of ULPs.
 */
#ifndef _IW_MPA_OPTION_H
#define _IW_MPA_OPTION_H

void iw_mpa_register_options(void);
void iw_mpa_unregister_options(void);

#endif /* _IW_MPA_OPTION_H */
