/* SPDX-License-Identifier: GPL-2.0 */
#ifndef SHIM_LINUX_MODULE_H
#define SHIM_LINUX_MODULE_H

#define MODULE_DESCRIPTION(text) _Static_assert(sizeof(text), "text")
#define MODULE_LICENSE(text) _Static_assert(sizeof(text), "text")

#endif
