// SPDX-License-Identifier: GPL-2.0
/*
 * Options of RPC-over-RDMA version two, with an option that only these tests
 * have
 */
#include <kunit/test.h>
#include <linux/module.h>

#include <rdma/ib_verbs.h>

#include "rpcrdma2.h"

#define TYPE	0x7e570001

/* An OPTIONAL from a requester: a word of data, and half an RPC message */
static const u32 message[] = { 7, 2, 1, 5, 0, TYPE, 4, 0x01020304, 7, 0 };

struct taken {
	int count;
	u32 xid;
	u32 info_len;
	u8 first;
	const void *payload;
	size_t len;
};

static struct taken taken;

static void take(const struct rpcrdma2_hdr *hdr, const void *payload,
		 size_t len)
{
	taken.count++;
	taken.xid = hdr->xid;
	taken.info_len = hdr->optional.info_len;
	taken.first = hdr->optional.info[0];
	taken.payload = payload;
	taken.len = len;
}

static int receive(struct kunit *test, const __be32 **buf)
{
	struct rpcrdma2_hdr hdr;
	__be32 *p;
	int i;

	p = kunit_kmalloc(test, sizeof(message), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, p);
	for (i = 0; i < ARRAY_SIZE(message); i++)
		p[i] = cpu_to_be32(message[i]);
	KUNIT_ASSERT_EQ(test, RPCRDMA2_GOOD,
			rpcrdma2_decode(p, sizeof(message), &hdr));
	*buf = p;
	return rpcrdma2_receive_option(&hdr, p, sizeof(message));
}

/* RPC-5, RPC-17 */
static void unknown_option_is_not_supported(struct kunit *test)
{
	const __be32 *buf;

	KUNIT_EXPECT_EQ(test, -EOPNOTSUPP, receive(test, &buf));
}

/* RPC-4, RPC-17 */
static void known_option_gets_its_message(struct kunit *test)
{
	struct rpcrdma2_option option = { .type = TYPE, .receive = take };
	const __be32 *buf;

	memset(&taken, 0, sizeof(taken));
	KUNIT_ASSERT_EQ(test, 0, rpcrdma2_register_option(&option));
	KUNIT_EXPECT_EQ(test, 0, receive(test, &buf));
	rpcrdma2_unregister_option(&option);
	KUNIT_EXPECT_EQ(test, 1, taken.count);
	KUNIT_EXPECT_EQ(test, 7U, taken.xid);
	KUNIT_EXPECT_EQ(test, 4U, taken.info_len);
	KUNIT_EXPECT_EQ(test, 1, taken.first);
	KUNIT_EXPECT_PTR_EQ(test, (const void *)(buf + 8), taken.payload);
	KUNIT_EXPECT_EQ(test, (size_t)8, taken.len);
}

static void option_is_unknown_after_it_has_gone(struct kunit *test)
{
	struct rpcrdma2_option option = { .type = TYPE, .receive = take };
	const __be32 *buf;

	KUNIT_ASSERT_EQ(test, 0, rpcrdma2_register_option(&option));
	rpcrdma2_unregister_option(&option);
	KUNIT_EXPECT_EQ(test, -EOPNOTSUPP, receive(test, &buf));
}

static void type_belongs_to_one_option(struct kunit *test)
{
	struct rpcrdma2_option option = { .type = TYPE, .receive = take };
	struct rpcrdma2_option other = { .type = TYPE, .receive = take };

	KUNIT_ASSERT_EQ(test, 0, rpcrdma2_register_option(&option));
	KUNIT_EXPECT_EQ(test, -EEXIST, rpcrdma2_register_option(&other));
	rpcrdma2_unregister_option(&option);
}

static struct kunit_case option_cases[] = {
	KUNIT_CASE(unknown_option_is_not_supported),
	KUNIT_CASE(known_option_gets_its_message),
	KUNIT_CASE(option_is_unknown_after_it_has_gone),
	KUNIT_CASE(type_belongs_to_one_option),
	{}
};

static struct kunit_suite option_suite = {
	.name = "rpcrdma2_option",
	.test_cases = option_cases,
};

kunit_test_suite(option_suite);

MODULE_DESCRIPTION("KUnit tests of options of RPC-over-RDMA version two");
MODULE_LICENSE("GPL");
MODULE_IMPORT_NS("EXPORTED_FOR_KUNIT_TESTING");
