/* SPDX-License-Identifier: GPL-2.0 */
#ifndef SHIM_LINUX_STDDEF_H
#define SHIM_LINUX_STDDEF_H

#include <stddef.h>
#include_next <linux/stddef.h>

#define sizeof_field(type, member) sizeof(((type *)0)->member)

#endif
