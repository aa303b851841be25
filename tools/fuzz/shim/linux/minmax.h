/* SPDX-License-Identifier: GPL-2.0 */
#ifndef SHIM_LINUX_MINMAX_H
#define SHIM_LINUX_MINMAX_H

/* As strict as the kernel's: both sides and the result have one type */
#define SHIM_PICK(x, y, op)						\
	({								\
		__auto_type shim_x = (x);				\
		__auto_type shim_y = (y);				\
		_Static_assert(__builtin_types_compatible_p(		\
			__typeof__(shim_x), __typeof__(shim_y)), "types");	\
		(__typeof__(shim_x))(shim_x op shim_y ? shim_x : shim_y); \
	})
#define min(x, y) SHIM_PICK(x, y, <)
#define max(x, y) SHIM_PICK(x, y, >)
#define min_t(type, x, y) min((type)(x), (type)(y))
#define max_t(type, x, y) max((type)(x), (type)(y))

#endif
