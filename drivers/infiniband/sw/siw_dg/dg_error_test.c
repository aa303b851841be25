// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * DGM-27: error messages. See NOTICE.
 *
 * The refused datagram is V3 of the specification with 24 octets of data more,
 * where a case does not say otherwise. The CRCs of the expected bytes were
 * computed apart. The functions are pure, so the test has its own copy.
 */
#include <kunit/test.h>
#include <linux/module.h>

#include "dg_wire.c"
#include "dg_error.c"
#include "dg_test.h"

#define SECOND	1000000000ULL

/* Zone 12345601, offset 1000 (hex), MSN 7, ML 4, Q_Key c001d00d */
#define V3_HEADER "e140123456010000000000001000000000070000000000000004c001d00d"

struct refusal {
	const char *name;
	enum dg_refusal why;
	const char *hex;
};

static const struct refusal refusals[] = {
	{ "an unknown zone is DDP's invalid STag", DG_REFUSED_ZONE,
	  "4147000000000000000200000001000000001100c0000036" V3_HEADER "f999f255" },
	{ "a message beyond the zone is DDP's bounds violation", DG_REFUSED_RANGE,
	  "4147000000000000000200000001000000001101c0000036" V3_HEADER "da0f3474" },
	{ "no room for a record is RDMAP's local catastrophic error", DG_REFUSED_ROOM,
	  "4147000000000000000200000001000000000000c0000036" V3_HEADER "9602c154" },
	{ "a contradiction is RDMAP's unspecified remote operation error", DG_REFUSED_FORM,
	  "41470000000000000002000000010000000002ffc0000036" V3_HEADER "40814906" },
};

static void refusal_desc(const struct refusal *r, char *desc)
{
	strscpy(desc, r->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(refusal, refusals, refusal_desc);

static void refused_datagram_has_the_error_message_of_its_reason(struct kunit *test)
{
	const struct refusal *r = test->param_value;
	u8 header[LONGEST], want[LONGEST], bytes[LONGEST];
	struct dg_segment seg;

	bytes_of(test, V3_HEADER, header);
	bytes_of(test, r->hex, want);
	KUNIT_ASSERT_EQ(test, 58, dg_build_refusal(1, r->why, header, 58, bytes));
	KUNIT_EXPECT_EQ(test, 0, memcmp(bytes, want, 58));
	KUNIT_EXPECT_EQ(test, DG_OK, dg_parse(bytes, 58, &seg));
	KUNIT_EXPECT_EQ(test, DG_ERROR_MESSAGE, seg.form);
}

static void error_message_longer_than_the_refused_datagram_is_not_built(struct kunit *test)
{
	u8 header[LONGEST], bytes[LONGEST];

	bytes_of(test, V3_HEADER, header);
	KUNIT_EXPECT_EQ(test, -EMSGSIZE,
			dg_build_refusal(1, DG_REFUSED_ZONE, header, 57, bytes));
	KUNIT_EXPECT_EQ(test, -EMSGSIZE,
			dg_build_refusal(1, DG_REFUSED_ZONE, header, 34, bytes));
}

static struct dg_source source(u8 host, u16 port)
{
	return (struct dg_source) { .addr = { 0xfd, [15] = host }, .port = port };
}

static void source_has_one_error_message_a_second_from_all_its_ports(struct kunit *test)
{
	struct dg_source first = source(1, 7000), second = source(1, 7001);
	struct dg_limit *limit = kunit_kzalloc(test, sizeof(*limit), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, limit);
	KUNIT_EXPECT_TRUE(test, dg_limit_pass(limit, &first, 5 * SECOND));
	KUNIT_EXPECT_FALSE(test, dg_limit_pass(limit, &first, 5 * SECOND));
	KUNIT_EXPECT_FALSE(test, dg_limit_pass(limit, &second, 6 * SECOND - 1));
	KUNIT_EXPECT_TRUE(test, dg_limit_pass(limit, &second, 6 * SECOND));
	KUNIT_EXPECT_FALSE(test, dg_limit_pass(limit, &first, 6 * SECOND + 1));
}

/* However many sources there are: 64 in a second */
static void error_messages_to_all_sources_have_a_limit(struct kunit *test)
{
	struct dg_limit *limit = kunit_kzalloc(test, sizeof(*limit), GFP_KERNEL);
	struct dg_source any = source(1, 7000);
	int passed = 0, i;

	KUNIT_ASSERT_NOT_NULL(test, limit);
	limit->seed = 12345;
	for (i = 0; i < 65536; i++) {
		any.addr[8] = i >> 8;
		any.addr[9] = i;
		passed += dg_limit_pass(limit, &any, 9 * SECOND);
	}
	KUNIT_EXPECT_EQ(test, 64, passed);
}

/* A message of 100 octets at 1000 of zone 12345601, number 7, to fd00::1 port 7000 */
static const struct dg_write message = {
	.target = { .addr = { 0xfd, [15] = 1 }, .port = 7000 },
	.stag = 0x12345601,
	.qkey = 0xc001d00d,
	.msn = 7,
	.ml = 100,
	.base = 1000,
};

/* The error message about its datagram at 50: what is added to each field of the right one */
struct claim {
	const char *name;
	u32 stag;
	u32 qkey;
	u32 msn;
	u32 ml;
	u32 mo;
	u64 to;
	u16 len;
	u8 host;
	u16 port;
	bool of_send;
};

static const struct claim right = { "about a sent datagram is believed" };

static const struct claim wrong[] = {
	{ "with another zone is not believed", .stag = 1 },
	{ "with another Q_Key is not believed", .qkey = 1 },
	{ "with another number of the message is not believed", .msn = 1 },
	{ "with a number higher by 256 is not believed", .msn = DG_WRITES },
	{ "with another length of the message is not believed", .ml = 1 },
	{ "with another offset in the zone is not believed", .to = 1 },
	{ "with an offset behind the message is not believed", .mo = 51, .to = 51 },
	{ "of octets behind the message is not believed", .len = 41 },
	{ "from another address is not believed", .host = 1 },
	{ "from another port is not believed", .port = 1 },
	{ "about a Send is not believed", .of_send = true },
};

static void claim_desc(const struct claim *c, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "an error message %s", c->name);
}

KUNIT_ARRAY_PARAM(claim, wrong, claim_desc);

static bool take(struct dg_writes *writes, const struct claim *c,
		 struct dg_segment *cause)
{
	struct dg_source from = source(1 + c->host, 7000 + c->port);
	u8 header[DG_WRITE_HDR] = { 0xa1, 0x40 };
	struct dg_error error = {
		.length = DG_WRITE_HDR + 10 + c->len,
		.cause = header,
		.cause_len = c->of_send ? DG_SEND_HDR : DG_WRITE_HDR,
	};

	put_unaligned_be32(0x12345601 + c->stag, header + 2);
	put_unaligned_be64(1050 + c->to, header + 6);
	put_unaligned_be32(7 + c->msn, header + 14);
	put_unaligned_be32(50 + c->mo, header + 18);
	put_unaligned_be32(100 + c->ml, header + 22);
	put_unaligned_be32(0xc001d00d + c->qkey, header + 26);
	return dg_writes_take(writes, &from, &error, cause);
}

static struct dg_writes *no_writes(struct kunit *test)
{
	struct dg_writes *writes = kunit_kzalloc(test, sizeof(*writes), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, writes);
	return writes;
}

static void error_message_about_a_sent_datagram_is_believed_once(struct kunit *test)
{
	struct dg_writes *writes = no_writes(test);
	struct dg_segment cause;

	KUNIT_EXPECT_FALSE(test, take(writes, &right, &cause));
	dg_writes_add(writes, &message);
	KUNIT_ASSERT_TRUE(test, take(writes, &right, &cause));
	KUNIT_EXPECT_EQ(test, 0x12345601u, cause.stag);
	KUNIT_EXPECT_EQ(test, 7u, cause.msn);
	KUNIT_EXPECT_EQ(test, 50u, cause.mo);
	KUNIT_EXPECT_EQ(test, 100u, cause.ml);
	KUNIT_EXPECT_EQ(test, 1050u, cause.to);
	KUNIT_EXPECT_EQ(test, 10u, cause.len);
	KUNIT_EXPECT_FALSE(test, take(writes, &right, &cause));
}

static void error_message_that_differs_from_what_was_sent_is_not_believed(struct kunit *test)
{
	struct dg_writes *writes = no_writes(test);
	struct dg_segment cause;

	dg_writes_add(writes, &message);
	KUNIT_EXPECT_FALSE(test, take(writes, test->param_value, &cause));
	/* The right one is still believed */
	KUNIT_EXPECT_TRUE(test, take(writes, &right, &cause));
}

static void sender_believes_error_messages_about_its_last_256_messages(struct kunit *test)
{
	struct dg_writes *writes = no_writes(test);
	const struct claim second = { "", .msn = 1 }, last = { "", .msn = 256 };
	struct dg_write write = message;
	struct dg_segment cause;

	for (; write.msn < 7 + 257; write.msn++)
		dg_writes_add(writes, &write);
	KUNIT_EXPECT_FALSE(test, take(writes, &right, &cause));
	KUNIT_EXPECT_TRUE(test, take(writes, &second, &cause));
	KUNIT_EXPECT_TRUE(test, take(writes, &last, &cause));
}

static struct kunit_case error_cases[] = {
	KUNIT_CASE_PARAM(refused_datagram_has_the_error_message_of_its_reason,
			 refusal_gen_params),
	KUNIT_CASE(error_message_longer_than_the_refused_datagram_is_not_built),
	KUNIT_CASE(source_has_one_error_message_a_second_from_all_its_ports),
	KUNIT_CASE(error_messages_to_all_sources_have_a_limit),
	KUNIT_CASE(error_message_about_a_sent_datagram_is_believed_once),
	KUNIT_CASE_PARAM(error_message_that_differs_from_what_was_sent_is_not_believed,
			 claim_gen_params),
	KUNIT_CASE(sender_believes_error_messages_about_its_last_256_messages),
	{}
};

static struct kunit_suite error_suite = {
	.name = "siw_dg_error",
	.test_cases = error_cases,
};

kunit_test_suite(error_suite);

MODULE_DESCRIPTION("KUnit tests of datagram iWARP's error messages");
MODULE_LICENSE("Dual BSD/GPL");
