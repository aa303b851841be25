/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* kunit/test.h has it all */
