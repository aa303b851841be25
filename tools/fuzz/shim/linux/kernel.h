/* SPDX-License-Identifier: GPL-2.0 */
#ifndef SHIM_LINUX_KERNEL_H
#define SHIM_LINUX_KERNEL_H

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

#endif
