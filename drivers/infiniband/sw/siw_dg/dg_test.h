/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * For the KUnit tests: datagrams in hexadecimal. See NOTICE.
 */
#ifndef _DG_TEST_H
#define _DG_TEST_H

#include <kunit/test.h>
#include <linux/hex.h>
#include <linux/string.h>

#define LONGEST	64

/* @bytes has room for LONGEST. Returns their number */
static inline size_t bytes_of(struct kunit *test, const char *hex, u8 *bytes)
{
	size_t len = strlen(hex) / 2;

	KUNIT_ASSERT_LE(test, len, (size_t)LONGEST);
	KUNIT_ASSERT_EQ(test, 0, hex2bin(bytes, hex, len));
	return len;
}

#endif
