// SPDX-License-Identifier: GPL-2.0
/*
 * Layers of policy, their valid settings, and their effect on a session.
 */
#include <kunit/test.h>
#include <linux/hex.h>
#include <linux/kernel.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/string.h>

#include <rdma/ib_verbs.h>

#include "policy.h"
#include "session.h"

#define REQ "4d504120494420526571204672616d65"

static const struct iw_mpa_caps usual_caps = {
	.max_ird	= 128,
	.max_ord	= 64,
	.rtr_send	= IW_MPA_RTR_ALL,
	.rtr_recv	= IW_MPA_RTR_ALL,
};

/* ---- one setting */

/**
 * struct setting_range - values of a setting
 * @name: of the test
 * @setting: the setting
 * @min: smallest value; one less is refused
 * @max: largest value; one more is refused
 */
struct setting_range {
	const char *name;
	enum rdma_mpa_setting setting;
	u32 min;
	u32 max;
};

/* From Documentation/netlink/specs/rdma-mpa.yaml; 0x3ffe, 0x3fff are modes */
static const struct setting_range ranges[] = {
	{ "revision", RDMA_MPA_SETTING_REVISION, 1, 3 },
	{ "model", RDMA_MPA_SETTING_MODEL, 0, 2 },
	{ "rtr-offer", RDMA_MPA_SETTING_RTR_OFFER, 1, 7 },
	{ "rtr-accept", RDMA_MPA_SETTING_RTR_ACCEPT, 1, 7 },
	{ "ird", RDMA_MPA_SETTING_IRD, 0, 0x3fff },
	{ "ord", RDMA_MPA_SETTING_ORD, 0, 0x3fff },
	{ "crc", RDMA_MPA_SETTING_CRC, 0, 2 },
	{ "dialect", RDMA_MPA_SETTING_DIALECT, 0, 1 },
	{ "short-ird", RDMA_MPA_SETTING_SHORT_IRD, 0, 1 },
	{ "fastopen", RDMA_MPA_SETTING_FASTOPEN, 0, 1 },
	{ "segment", RDMA_MPA_SETTING_SEGMENT, 0, 1 },
	{ "streams", RDMA_MPA_SETTING_STREAMS, 1, 1024 },
	{ "idle", RDMA_MPA_SETTING_IDLE, 1, 3600 },
	{ "connect-ms", RDMA_MPA_SETTING_CONNECT_MS, 1, 3600000 },
	{ "request-ms", RDMA_MPA_SETTING_REQUEST_MS, 1, 3600000 },
	{ "reply-ms", RDMA_MPA_SETTING_REPLY_MS, 1, 3600000 },
	{ "rtr-ms", RDMA_MPA_SETTING_RTR_MS, 1, 3600000 },
	{ "decide-ms", RDMA_MPA_SETTING_DECIDE_MS, 1, 3600000 },
};

static void range_desc(const struct setting_range *c, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE,
		 "setting %s: %u to %u is stored, a value outside is refused",
		 c->name, c->min, c->max);
}

KUNIT_ARRAY_PARAM(range, ranges, range_desc);

static u32 built_in(enum rdma_mpa_setting setting)
{
	return iw_mpa_setting_get(&iw_mpa_default_policy, setting);
}

/* Other settings keep their values */
static void expect_set(struct kunit *test, enum rdma_mpa_setting setting,
		       u32 value)
{
	struct iw_mpa_layer layer = {
		.set = BIT(RDMA_MPA_SETTING_MODEL),
		.value = iw_mpa_default_policy,
	};
	enum rdma_mpa_setting other;

	KUNIT_EXPECT_EQ_MSG(test, 0, iw_mpa_layer_set(&layer, setting, value),
			    "%u", value);
	KUNIT_EXPECT_EQ(test, value, iw_mpa_setting_get(&layer.value, setting));
	KUNIT_EXPECT_EQ(test,
			(u32)(BIT(RDMA_MPA_SETTING_MODEL) | BIT(setting)),
			layer.set);
	iw_mpa_for_each_setting(other)
		if (other != setting)
			KUNIT_EXPECT_EQ_MSG(test, built_in(other),
					    iw_mpa_setting_get(&layer.value,
							       other),
					    "setting %d", other);
}

static void expect_refused(struct kunit *test, enum rdma_mpa_setting setting,
			   u32 value)
{
	struct iw_mpa_layer layer = {}, none = {};

	KUNIT_EXPECT_EQ_MSG(test, -EINVAL,
			    iw_mpa_layer_set(&layer, setting, value),
			    "%#x", value);
	KUNIT_EXPECT_EQ(test, 0, memcmp(&layer, &none, sizeof(none)));
}

static void setting_value_is_stored_in_range_and_refused_outside(struct kunit *test)
{
	const struct setting_range *c = test->param_value;

	expect_set(test, c->setting, c->min);
	expect_set(test, c->setting, c->min + 1);
	expect_set(test, c->setting, c->max - 1);
	expect_set(test, c->setting, c->max);
	if (c->min)
		expect_refused(test, c->setting, c->min - 1);
	expect_refused(test, c->setting, c->max + 1);
	/* A value that is valid only if truncated to the size of a field */
	expect_refused(test, c->setting, 0x100 + c->max);
	expect_refused(test, c->setting, 0x10000 + c->max);
	expect_refused(test, c->setting, ~0U);
}

static void every_setting_has_its_range_tested(struct kunit *test)
{
	u32 seen = BIT(RDMA_MPA_SETTING_RTR_ORDER);
	enum rdma_mpa_setting setting;
	int i;

	for (i = 0; i < ARRAY_SIZE(ranges); i++)
		seen |= BIT(ranges[i].setting);
	iw_mpa_for_each_setting(setting) {
		KUNIT_EXPECT_TRUE_MSG(test, seen & BIT(setting), "setting %d",
				      setting);
		KUNIT_EXPECT_NOT_NULL(test, iw_mpa_setting_str(setting));
	}
	expect_refused(test, 0, 1);
	expect_refused(test, RDMA_MPA_SETTING_IRD_MODE, 0);
	expect_refused(test, RDMA_MPA_SETTING_ORD_MODE, 0);
	expect_refused(test, IW_MPA_SETTINGS, 1);
	expect_refused(test, 31, 1);
	expect_refused(test, 32, 1);
	expect_refused(test, -1, 1);
}

struct revision_case {
	u32 revision;
	u8 rev;
	bool enhanced;
	bool fallback;
};

/* IOP-01 IOP-03 IOP-06: one setting, three fields */
static void revision_setting_sets_rev_enhanced_data_and_fallback(struct kunit *test)
{
	static const struct revision_case cases[] = {
		{ RDMA_MPA_REVISION_RFC5044, 1, false, false },
		{ RDMA_MPA_REVISION_RFC6581, 2, true, false },
		{ RDMA_MPA_REVISION_FALLBACK, 2, true, true },
	};
	int i, before;

	for (i = 0; i < ARRAY_SIZE(cases); i++)
		for (before = 1; before <= 3; before++) {
			struct iw_mpa_layer layer = {};

			iw_mpa_layer_set(&layer, RDMA_MPA_SETTING_REVISION,
					 before);
			iw_mpa_layer_set(&layer, RDMA_MPA_SETTING_REVISION,
					 cases[i].revision);
			KUNIT_EXPECT_EQ(test, cases[i].rev, layer.value.rev);
			KUNIT_EXPECT_EQ(test, cases[i].enhanced,
					(bool)layer.value.enhanced);
			KUNIT_EXPECT_EQ(test, cases[i].fallback,
					(bool)layer.value.fallback);
		}
}

/* A number is a limit; the two modes are not */
static void ird_or_ord_setting_is_a_limit_or_a_mode(struct kunit *test)
{
	struct iw_mpa_layer layer = {};

	iw_mpa_layer_set(&layer, RDMA_MPA_SETTING_IRD, 0x3ffd);
	iw_mpa_layer_set(&layer, RDMA_MPA_SETTING_ORD, 0);
	KUNIT_EXPECT_EQ(test, 0x3ffd, (int)layer.value.max_ird);
	KUNIT_EXPECT_EQ(test, 0, (int)layer.value.max_ord);
	KUNIT_EXPECT_FALSE(test, layer.value.ird_ulp || layer.value.ord_ulp);

	iw_mpa_layer_set(&layer, RDMA_MPA_SETTING_IRD, IW_MPA_DEPTH_ULP);
	iw_mpa_layer_set(&layer, RDMA_MPA_SETTING_ORD, IW_MPA_DEPTH_ULP);
	KUNIT_EXPECT_TRUE(test, layer.value.ird_ulp && layer.value.ord_ulp);
	KUNIT_EXPECT_EQ(test, 0x3ffe, (int)layer.value.max_ird);
	KUNIT_EXPECT_EQ(test, 0x3ffe, (int)layer.value.max_ord);

	iw_mpa_layer_set(&layer, RDMA_MPA_SETTING_IRD, IW_MPA_DEPTH_MAX);
	iw_mpa_layer_set(&layer, RDMA_MPA_SETTING_ORD, 7);
	KUNIT_EXPECT_FALSE(test, layer.value.ird_ulp || layer.value.ord_ulp);
	KUNIT_EXPECT_EQ(test, 0x3ffe, (int)layer.value.max_ird);
	KUNIT_EXPECT_EQ(test, 7, (int)layer.value.max_ord);
}

/**
 * struct order_case - an order of RTR kinds
 * @name: of the test
 * @value: four bits a kind, the preferred one lowest
 * @order: the resulting order; all 0: refused
 */
struct order_case {
	const char *name;
	u32 value;
	u8 order[3];
};

static const struct order_case order_cases[] = {
	{ "RTR order read, write, send is stored as set", 0x214, { 4, 1, 2 } },
	{ "RTR order write, read, send is stored as set", 0x412, { 2, 1, 4 } },
	{ "RTR order read alone is completed by write and send", 0x4, { 4, 2, 1 } },
	{ "RTR order write alone is completed by read and send", 0x2, { 2, 4, 1 } },
	{ "RTR order send alone is completed by write and read", 0x1, { 1, 2, 4 } },
	{ "RTR order send, read is completed by write", 0x41, { 1, 4, 2 } },
	{ "RTR order without a kind is refused", 0 },
	{ "RTR order of four entries is refused", 0x1421 },
	{ "RTR order with an entry in the top bits is refused", 0x10000421 },
	{ "RTR order that lists a kind twice is refused", 0x22 },
	{ "RTR order that lists a kind twice with a second kind between is refused", 0x242 },
	{ "RTR order with two kinds in its first entry is refused", 0x3 },
	{ "RTR order with two kinds in its second entry is refused", 0x61 },
	{ "RTR order with an empty entry between two kinds is refused", 0x401 },
	{ "RTR order with an empty first entry is refused", 0x40 },
	{ "RTR order of an unknown kind is refused", 0x8 },
	{ "RTR order with an unknown kind after known ones is refused", 0x842 },
	{ "RTR order with all bits set is refused", ~0U },
};

static void order_desc(const struct order_case *c, char *desc)
{
	strscpy(desc, c->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(order, order_cases, order_desc);

static void short_rtr_order_is_completed_and_invalid_one_refused(struct kunit *test)
{
	const struct order_case *c = test->param_value;
	struct iw_mpa_layer layer = {};
	u32 whole = c->order[0] | c->order[1] << 4 | c->order[2] << 8;

	if (!c->order[0]) {
		expect_refused(test, RDMA_MPA_SETTING_RTR_ORDER, c->value);
		return;
	}
	KUNIT_EXPECT_EQ(test, 0,
			iw_mpa_layer_set(&layer, RDMA_MPA_SETTING_RTR_ORDER,
					 c->value));
	KUNIT_EXPECT_EQ(test, 0, memcmp(layer.value.rtr_order, c->order, 3));
	KUNIT_EXPECT_EQ(test, (u32)BIT(RDMA_MPA_SETTING_RTR_ORDER), layer.set);
	/* The order that is read also contains the omitted kinds */
	KUNIT_EXPECT_EQ(test, whole,
			iw_mpa_setting_get(&layer.value,
					   RDMA_MPA_SETTING_RTR_ORDER));
	expect_set(test, RDMA_MPA_SETTING_RTR_ORDER, whole);
}

/* ---- options of programs */

#define LAST_OPTION	RDMA_MPA_OPTION_SEGMENT

static int set_option(struct iw_mpa_layer *layer, int name, u32 value)
{
	return iw_mpa_layer_set_option(layer, name, &value, sizeof(value));
}

static void connection_option_of_wrong_length_or_number_is_refused(struct kunit *test)
{
	struct iw_mpa_layer layer = {}, none = {};
	const u8 zeroes[64] = {};
	int name, len;

	for (name = -1; name <= LAST_OPTION + 1; name++)
		for (len = 0; len <= sizeof(zeroes); len++)
			if (len != sizeof(u32))
				KUNIT_EXPECT_EQ(test, -EINVAL,
						iw_mpa_layer_set_option(&layer,
									name,
									zeroes,
									len));
	KUNIT_EXPECT_EQ(test, -EINVAL, set_option(&layer, -1, 1));
	KUNIT_EXPECT_EQ(test, -EINVAL, set_option(&layer, 0, 1));
	KUNIT_EXPECT_EQ(test, -EINVAL, set_option(&layer, LAST_OPTION + 1, 1));
	/* A number that names an option only if truncated to a byte */
	KUNIT_EXPECT_EQ(test, -EINVAL,
			set_option(&layer, 256 + RDMA_MPA_OPTION_MODEL, 1));
	KUNIT_EXPECT_EQ(test, -EINVAL,
			set_option(&layer, RDMA_MPA_OPTION_MODEL, 3));
	KUNIT_EXPECT_EQ(test, 0, memcmp(&layer, &none, sizeof(none)));
}

/**
 * struct option_case - an option with one number as its value
 * @name: of the test
 * @option: the option
 * @setting: the setting that the option changes
 * @min: smallest value; one less is refused
 * @max: largest value; one more is refused
 */
struct option_case {
	const char *name;
	enum rdma_mpa_option option;
	enum rdma_mpa_setting setting;
	u32 min;
	u32 max;
};

static const struct option_case option_cases[] = {
	{ "revision", RDMA_MPA_OPTION_REVISION, RDMA_MPA_SETTING_REVISION,
	  1, 3 },
	{ "model", RDMA_MPA_OPTION_MODEL, RDMA_MPA_SETTING_MODEL, 0, 2 },
	/* 0x3fff is a mode */
	{ "ird", RDMA_MPA_OPTION_IRD, RDMA_MPA_SETTING_IRD, 0, 0x3ffe },
	{ "ord", RDMA_MPA_OPTION_ORD, RDMA_MPA_SETTING_ORD, 0, 0x3ffe },
	{ "connect-ms", RDMA_MPA_OPTION_CONNECT_MS,
	  RDMA_MPA_SETTING_CONNECT_MS, 1, 3600000 },
	{ "request-ms", RDMA_MPA_OPTION_REQUEST_MS,
	  RDMA_MPA_SETTING_REQUEST_MS, 1, 3600000 },
	{ "reply-ms", RDMA_MPA_OPTION_REPLY_MS, RDMA_MPA_SETTING_REPLY_MS,
	  1, 3600000 },
	{ "rtr-ms", RDMA_MPA_OPTION_RTR_MS, RDMA_MPA_SETTING_RTR_MS,
	  1, 3600000 },
	{ "decide-ms", RDMA_MPA_OPTION_DECIDE_MS, RDMA_MPA_SETTING_DECIDE_MS,
	  1, 3600000 },
	{ "short-ird", RDMA_MPA_OPTION_SHORT_IRD, RDMA_MPA_SETTING_SHORT_IRD,
	  0, 1 },
	{ "segment", RDMA_MPA_OPTION_SEGMENT, RDMA_MPA_SETTING_SEGMENT, 0, 1 },
};

static void option_desc(const struct option_case *c, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE,
		 "connection option %s: %u to %u is stored, a value outside is refused",
		 c->name, c->min, c->max);
}

KUNIT_ARRAY_PARAM(option, option_cases, option_desc);

static void connection_option_stores_a_value_in_range_only(struct kunit *test)
{
	const struct option_case *c = test->param_value;
	struct iw_mpa_layer layer = {}, none = {};

	if (c->min)
		KUNIT_EXPECT_EQ(test, -EINVAL,
				set_option(&layer, c->option, c->min - 1));
	KUNIT_EXPECT_EQ(test, -EINVAL,
			set_option(&layer, c->option, c->max + 1));
	KUNIT_EXPECT_EQ(test, -EINVAL, set_option(&layer, c->option, ~0U));
	KUNIT_EXPECT_EQ(test, 0, memcmp(&layer, &none, sizeof(none)));

	KUNIT_EXPECT_EQ(test, 0, set_option(&layer, c->option, c->min));
	KUNIT_EXPECT_EQ(test, c->min,
			iw_mpa_setting_get(&layer.value, c->setting));
	KUNIT_EXPECT_EQ(test, 0, set_option(&layer, c->option, c->max));
	KUNIT_EXPECT_EQ(test, c->max,
			iw_mpa_setting_get(&layer.value, c->setting));
	KUNIT_EXPECT_EQ(test, (u32)BIT(c->setting), layer.set);
}

/* Programs cannot set CRC, dialect, Fast Open or a single list of RTR kinds */
static void every_rdma_mpa_option_is_tested(struct kunit *test)
{
	u32 seen = BIT(RDMA_MPA_OPTION_RTR) | BIT(RDMA_MPA_OPTION_IRD_MODE) |
		   BIT(RDMA_MPA_OPTION_ORD_MODE);
	int i;

	for (i = 0; i < ARRAY_SIZE(option_cases); i++)
		seen |= BIT(option_cases[i].option);
	for (i = 1; i <= LAST_OPTION; i++)
		KUNIT_EXPECT_TRUE_MSG(test, seen & BIT(i), "option %d", i);
}

/* IRD-19: limit and mode are two options, and the last one is effective */
static void last_of_ird_or_ord_limit_and_mode_options_is_effective(struct kunit *test)
{
	static const struct {
		enum rdma_mpa_option limit, mode;
		enum rdma_mpa_setting setting;
	} cases[] = {
		{ RDMA_MPA_OPTION_IRD, RDMA_MPA_OPTION_IRD_MODE,
		  RDMA_MPA_SETTING_IRD },
		{ RDMA_MPA_OPTION_ORD, RDMA_MPA_OPTION_ORD_MODE,
		  RDMA_MPA_SETTING_ORD },
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		struct iw_mpa_layer layer = {}, none = {};
		const u32 *value = &layer.set;

		KUNIT_EXPECT_EQ(test, -EINVAL,
				set_option(&layer, cases[i].mode,
					   RDMA_MPA_DEPTH_MODE_LIMITED));
		KUNIT_EXPECT_EQ(test, -EINVAL,
				set_option(&layer, cases[i].mode, 3));
		KUNIT_EXPECT_EQ(test, 0, memcmp(&layer, &none, sizeof(none)));

		KUNIT_EXPECT_EQ(test, 0,
				set_option(&layer, cases[i].mode,
					   RDMA_MPA_DEPTH_MODE_ULP));
		KUNIT_EXPECT_EQ(test, (u32)BIT(cases[i].setting), *value);
		KUNIT_EXPECT_EQ(test, 0x3fffU,
				iw_mpa_setting_get(&layer.value,
						   cases[i].setting));
		KUNIT_EXPECT_EQ(test, 0, set_option(&layer, cases[i].limit, 5));
		KUNIT_EXPECT_EQ(test, 5U,
				iw_mpa_setting_get(&layer.value,
						   cases[i].setting));
		KUNIT_EXPECT_EQ(test, 0,
				set_option(&layer, cases[i].mode,
					   RDMA_MPA_DEPTH_MODE_DEVICE));
		KUNIT_EXPECT_EQ(test, 0x3ffeU,
				iw_mpa_setting_get(&layer.value,
						   cases[i].setting));
		KUNIT_EXPECT_EQ(test, (u32)BIT(cases[i].setting), *value);
	}
}

static void connection_options_applied_together_each_change_the_policy(struct kunit *test)
{
	struct iw_mpa_layer layer = {};
	struct iw_mpa_policy p = iw_mpa_default_policy;

	KUNIT_EXPECT_EQ(test, 0, set_option(&layer, RDMA_MPA_OPTION_MODEL,
					    RDMA_MPA_MODEL_CLIENT_SERVER));
	KUNIT_EXPECT_EQ(test, 0, set_option(&layer, RDMA_MPA_OPTION_REVISION,
					    RDMA_MPA_REVISION_FALLBACK));
	KUNIT_EXPECT_EQ(test, 0, set_option(&layer, RDMA_MPA_OPTION_IRD, 5));
	KUNIT_EXPECT_EQ(test, 0, set_option(&layer, RDMA_MPA_OPTION_ORD_MODE,
					    RDMA_MPA_DEPTH_MODE_ULP));
	KUNIT_EXPECT_EQ(test, 0,
			set_option(&layer, RDMA_MPA_OPTION_REQUEST_MS, 11));
	KUNIT_EXPECT_EQ(test, 0,
			set_option(&layer, RDMA_MPA_OPTION_REPLY_MS, 12));
	KUNIT_EXPECT_EQ(test, 0,
			set_option(&layer, RDMA_MPA_OPTION_RTR_MS, 13));
	KUNIT_EXPECT_EQ(test, 0,
			set_option(&layer, RDMA_MPA_OPTION_DECIDE_MS, 14));
	KUNIT_EXPECT_EQ(test, 0,
			set_option(&layer, RDMA_MPA_OPTION_CONNECT_MS, 15));
	KUNIT_EXPECT_EQ(test, 0, set_option(&layer, RDMA_MPA_OPTION_SHORT_IRD,
					    RDMA_MPA_SHORT_IRD_REJECT));
	KUNIT_EXPECT_EQ(test, 0, set_option(&layer, RDMA_MPA_OPTION_RTR,
					    RDMA_MPA_RTR_READ |
					    RDMA_MPA_RTR_SEND << 4));
	iw_mpa_layer_apply(&layer, ~0U, &p);

	KUNIT_EXPECT_EQ(test, RDMA_MPA_MODEL_CLIENT_SERVER, (int)p.model);
	KUNIT_EXPECT_EQ(test, 2, (int)p.rev);
	KUNIT_EXPECT_TRUE(test, p.enhanced && p.fallback);
	KUNIT_EXPECT_EQ(test, 5, (int)p.max_ird);
	KUNIT_EXPECT_FALSE(test, p.ird_ulp);
	KUNIT_EXPECT_TRUE(test, p.ord_ulp);
	KUNIT_EXPECT_EQ(test, 0x3ffe, (int)p.max_ord);
	KUNIT_EXPECT_EQ(test, 11u, p.request_ms);
	KUNIT_EXPECT_EQ(test, 12u, p.reply_ms);
	KUNIT_EXPECT_EQ(test, 13u, p.rtr_ms);
	KUNIT_EXPECT_EQ(test, 14u, p.decide_ms);
	KUNIT_EXPECT_EQ(test, 15u, p.connect_ms);
	KUNIT_EXPECT_EQ(test, RDMA_MPA_SHORT_IRD_REJECT, (int)p.short_ird);
	KUNIT_EXPECT_EQ(test, RDMA_MPA_RTR_READ | RDMA_MPA_RTR_SEND,
			(int)p.rtr_offer);
	KUNIT_EXPECT_EQ(test, RDMA_MPA_RTR_READ | RDMA_MPA_RTR_SEND,
			(int)p.rtr_accept);
	KUNIT_EXPECT_EQ(test, RDMA_MPA_RTR_READ, (int)p.rtr_order[0]);
	KUNIT_EXPECT_EQ(test, RDMA_MPA_RTR_SEND, (int)p.rtr_order[1]);
}

static bool is_list_of_kinds(u32 value, u8 *kinds, size_t *count)
{
	u8 mask = 0;

	for (*count = 0; value; value >>= 4, (*count)++) {
		u8 kind = value & 0xf;

		if (*count == 3 || (kind != 1 && kind != 2 && kind != 4) ||
		    mask & kind)
			return false;
		mask |= kind;
		kinds[*count] = kind;
	}
	return *count;
}

static void check_rtr_option(struct kunit *test, u32 value)
{
	struct iw_mpa_layer layer = {}, none = {};
	u8 kinds[3] = {};
	u8 mask;
	size_t count;

	if (!is_list_of_kinds(value, kinds, &count)) {
		KUNIT_ASSERT_EQ_MSG(test, -EINVAL,
				    set_option(&layer, RDMA_MPA_OPTION_RTR,
					       value), "%#x", value);
		KUNIT_ASSERT_EQ(test, 0, memcmp(&layer, &none, sizeof(none)));
		return;
	}
	mask = kinds[0] | kinds[1] | kinds[2];
	KUNIT_ASSERT_EQ_MSG(test, 0, set_option(&layer, RDMA_MPA_OPTION_RTR,
						value), "%#x", value);
	KUNIT_ASSERT_EQ(test, mask, layer.value.rtr_offer);
	KUNIT_ASSERT_EQ(test, mask, layer.value.rtr_accept);
	KUNIT_ASSERT_EQ(test, 0,
			memcmp(layer.value.rtr_order, kinds, count));
}

/* One to three kinds of four bits, each kind once, the preferred one lowest */
static void rtr_option_accepts_only_lists_of_distinct_rtr_kinds(struct kunit *test)
{
	u32 value;

	for (value = 0; value < 0x10000; value++)
		check_rtr_option(test, value);
	for (; value; value <<= 1) {
		check_rtr_option(test, value);
		check_rtr_option(test, value | 0x421);
	}
}

/* ---- layers over each other */

static void empty_settings_layer_changes_no_setting(struct kunit *test)
{
	struct iw_mpa_layer layer = {};
	struct iw_mpa_policy p = iw_mpa_default_policy;

	memset(&layer.value, 0xff, sizeof(layer.value));
	iw_mpa_layer_apply(&layer, ~0U, &p);
	KUNIT_EXPECT_EQ(test, 0, memcmp(&p, &iw_mpa_default_policy, sizeof(p)));
}

static void port_setting_overrides_device_setting(struct kunit *test)
{
	struct iw_mpa_layer device = {}, port = {};
	struct iw_mpa_policy p = iw_mpa_default_policy;

	iw_mpa_layer_set(&device, RDMA_MPA_SETTING_MODEL,
			 RDMA_MPA_MODEL_CLIENT_SERVER);
	iw_mpa_layer_set(&device, RDMA_MPA_SETTING_RTR_MS, 100);
	iw_mpa_layer_set(&port, RDMA_MPA_SETTING_MODEL,
			 RDMA_MPA_MODEL_PEER_TO_PEER_REQUIRED);
	iw_mpa_layer_apply(&device, ~0U, &p);
	iw_mpa_layer_apply(&port, ~0U, &p);
	KUNIT_EXPECT_EQ(test, RDMA_MPA_MODEL_PEER_TO_PEER_REQUIRED,
			(int)p.model);
	KUNIT_EXPECT_EQ(test, 100u, p.rtr_ms);
	KUNIT_EXPECT_EQ(test, iw_mpa_default_policy.reply_ms, p.reply_ms);
}

/* The layer contains all settings */
static void each_setting_of_a_layer_can_be_applied_alone(struct kunit *test)
{
	struct iw_mpa_layer layer = {};
	enum rdma_mpa_setting setting, other;
	int i;

	for (i = 0; i < ARRAY_SIZE(ranges); i++) {
		/* A value that is not the default */
		setting = ranges[i].setting;
		iw_mpa_layer_set(&layer, setting,
				 built_in(setting) == ranges[i].min ?
				 ranges[i].min + 1 : ranges[i].min);
	}
	iw_mpa_layer_set(&layer, RDMA_MPA_SETTING_RTR_ORDER, 0x214);
	iw_mpa_for_each_setting(setting) {
		struct iw_mpa_policy p = iw_mpa_default_policy;

		iw_mpa_layer_apply(&layer, BIT(setting), &p);
		iw_mpa_for_each_setting(other) {
			u32 want = built_in(other);

			if (other == setting)
				want = iw_mpa_setting_get(&layer.value, other);
			KUNIT_EXPECT_EQ_MSG(test, want,
					    iw_mpa_setting_get(&p, other),
					    "setting %d after %d", other,
					    setting);
		}
	}
}

static void fast_open_setting_is_inherited_and_overridden(struct kunit *test)
{
	struct iw_mpa_layer device = {}, port = {};
	struct iw_mpa_policy p = iw_mpa_default_policy;

	KUNIT_EXPECT_FALSE(test, p.fastopen);
	iw_mpa_layer_set(&device, RDMA_MPA_SETTING_FASTOPEN,
			 RDMA_MPA_FASTOPEN_ON);
	iw_mpa_layer_apply(&device, ~0U, &p);
	KUNIT_EXPECT_TRUE(test, p.fastopen);
	iw_mpa_layer_apply(&port, ~0U, &p);
	KUNIT_EXPECT_TRUE(test, p.fastopen);
	iw_mpa_layer_set(&port, RDMA_MPA_SETTING_FASTOPEN,
			 RDMA_MPA_FASTOPEN_OFF);
	iw_mpa_layer_apply(&port, ~0U, &p);
	KUNIT_EXPECT_FALSE(test, p.fastopen);
}

static void ird_and_ord_limits_can_only_be_lowered(struct kunit *test)
{
	struct iw_mpa_layer device = {}, port = {}, conn = {};
	struct iw_mpa_policy p = iw_mpa_default_policy;

	iw_mpa_layer_set(&device, RDMA_MPA_SETTING_IRD, 16);
	iw_mpa_layer_set(&device, RDMA_MPA_SETTING_ORD, 16);
	iw_mpa_layer_set(&port, RDMA_MPA_SETTING_IRD, 32);
	iw_mpa_layer_set(&port, RDMA_MPA_SETTING_ORD, 8);
	iw_mpa_layer_apply(&device, ~0U, &p);
	iw_mpa_layer_apply(&port, ~0U, &p);
	KUNIT_EXPECT_EQ(test, 16, (int)p.max_ird);
	KUNIT_EXPECT_EQ(test, 8, (int)p.max_ord);

	/* The limit also applies if the ULP manages the depths */
	iw_mpa_layer_set(&conn, RDMA_MPA_SETTING_IRD, IW_MPA_DEPTH_ULP);
	iw_mpa_layer_apply(&conn, ~0U, &p);
	KUNIT_EXPECT_TRUE(test, p.ird_ulp);
	KUNIT_EXPECT_FALSE(test, p.ord_ulp);
	KUNIT_EXPECT_EQ(test, 16, (int)p.max_ird);
}

/* ---- policies that a device does not support */

struct why_case {
	const char *name;
	enum rdma_mpa_setting setting;
	u32 value;
	struct iw_mpa_caps caps;
	const char *why;	/* NULL: supported */
};

#define CAPS_OF(ORD, SEND, RECV, ...) { .max_ird = 128, .max_ord = (ORD), \
	.rtr_send = (SEND), .rtr_recv = (RECV), ##__VA_ARGS__ }
#define CAPS(...) CAPS_OF(64, IW_MPA_RTR_ALL, IW_MPA_RTR_ALL, ##__VA_ARGS__)
#define CAPS_RTR(SEND, RECV) CAPS_OF(64, SEND, RECV)

static const struct why_case layer_cases[] = {
	{ "a setting that requires CRC is refused by a device without CRC32c",
	  RDMA_MPA_SETTING_CRC, RDMA_MPA_CRC_REQUIRED,
	  CAPS(.no_crc = true), "the device does not support CRC32c" },
	{ "a setting of CRC only if asked is accepted by a device without CRC32c",
	  RDMA_MPA_SETTING_CRC, RDMA_MPA_CRC_IF_ASKED, CAPS(.no_crc = true), NULL },
	{ "a setting that requires CRC is accepted by a device with CRC32c",
	  RDMA_MPA_SETTING_CRC, RDMA_MPA_CRC_REQUIRED,
	  CAPS(), NULL },
	{ "a TCP connect timeout is accepted by a device with support",
	  RDMA_MPA_SETTING_CONNECT_MS, 1000, CAPS(), NULL },
	{ "a TCP connect timeout is refused by a device without support",
	  RDMA_MPA_SETTING_CONNECT_MS, 1000, CAPS(.no_connect_ms = true),
	  "the device does not support a deadline of the TCP connect" },
	{ "an RTR timeout is accepted by a device without RTR offload",
	  RDMA_MPA_SETTING_RTR_MS, 1000, CAPS(), NULL },
	{ "an RTR timeout is refused by a device that offloads the RTR",
	  RDMA_MPA_SETTING_RTR_MS, 1000, CAPS(.rtr_offload = true),
	  "the device does not support a deadline of the RTR" },
	{ "an RTR kind that the device can send is accepted as an offer",
	  RDMA_MPA_SETTING_RTR_OFFER, 4,
	  CAPS_RTR(4, IW_MPA_RTR_ALL), NULL },
	{ "an RTR kind that the device cannot send is refused as an offer",
	  RDMA_MPA_SETTING_RTR_OFFER, 1,
	  CAPS_RTR(6, IW_MPA_RTR_ALL),
	  "the device sends only these RTR kinds: write and read" },
	{ "an offer of two RTR kinds is refused if the device can send only one",
	  RDMA_MPA_SETTING_RTR_OFFER, 6,
	  CAPS_RTR(4, IW_MPA_RTR_ALL), "the device sends only these RTR kinds: read" },
	{ "an RTR kind that the device does not recognise is refused as an accepted kind",
	  RDMA_MPA_SETTING_RTR_ACCEPT, 2,
	  CAPS_RTR(IW_MPA_RTR_ALL, 5),
	  "the device recognises only these RTR kinds: send and read" },
	{ "the device's largest IRD is accepted as a setting",
	  RDMA_MPA_SETTING_IRD, 128, CAPS(), NULL },
	{ "an IRD above the device's largest is refused as a setting",
	  RDMA_MPA_SETTING_IRD, 129, CAPS(),
	  "the device's largest IRD is 128" },
	{ "an IRD of IW_MPA_DEPTH_MAX is accepted above the device's largest",
	  RDMA_MPA_SETTING_IRD, IW_MPA_DEPTH_MAX,
	  CAPS(), NULL },
	{ "an IRD managed by the ULP is accepted as a setting",
	  RDMA_MPA_SETTING_IRD, IW_MPA_DEPTH_ULP, CAPS(),
	  NULL },
	{ "the device's largest ORD is accepted as a setting",
	  RDMA_MPA_SETTING_ORD, 64, CAPS(), NULL },
	{ "an ORD above the device's largest is refused as a setting",
	  RDMA_MPA_SETTING_ORD, 65, CAPS(),
	  "the device's largest ORD is 64" },
	{ "a setting of Fast Open on is accepted by a device with TCP Fast Open",
	  RDMA_MPA_SETTING_FASTOPEN, 1, CAPS(.fastopen = true),
	  NULL },
	{ "a setting of Fast Open off is accepted by a device without TCP Fast Open",
	  RDMA_MPA_SETTING_FASTOPEN, 0, CAPS(),
	  NULL },
	{ "a setting of Fast Open on is refused by a device without TCP Fast Open",
	  RDMA_MPA_SETTING_FASTOPEN, 1, CAPS(),
	  "the device does not support TCP Fast Open" },
	{ "FPDUs above the MSS are accepted by a device with support",
	  RDMA_MPA_SETTING_SEGMENT, RDMA_MPA_SEGMENT_LARGE,
	  CAPS(.large = true), NULL },
	{ "several streams are refused by a device without support for them",
	  RDMA_MPA_SETTING_STREAMS, 2, CAPS(),
	  "the device does not support several connections on one SCTP association" },
	{ "one stream is accepted by a device without support for several",
	  RDMA_MPA_SETTING_STREAMS, 1, CAPS(), NULL },
	{ "several streams are accepted by a device that supports them",
	  RDMA_MPA_SETTING_STREAMS, 1024, CAPS(.streams = true), NULL },
	{ "MSS-sized FPDUs are accepted by a device without support for larger ones",
	  RDMA_MPA_SETTING_SEGMENT,
	  RDMA_MPA_SEGMENT_MSS, CAPS(), NULL },
	{ "FPDUs above the MSS are refused by a device without support", RDMA_MPA_SETTING_SEGMENT,
	  RDMA_MPA_SEGMENT_LARGE, CAPS(),
	  "the device does not support FPDUs above the MSS" },
};

static const struct why_case policy_cases[] = {
	{ "a policy with the default model is accepted",
	  RDMA_MPA_SETTING_MODEL, RDMA_MPA_MODEL_PEER_TO_PEER, CAPS(),
	  NULL },
	{ "a policy that requires CRC is refused by a device without CRC32c",
	  RDMA_MPA_SETTING_CRC, RDMA_MPA_CRC_REQUIRED,
	  CAPS(.no_crc = true), "the device does not support CRC32c" },
	{ "a policy that requires CRC is accepted by a device with CRC32c",
	  RDMA_MPA_SETTING_CRC, RDMA_MPA_CRC_REQUIRED, CAPS(),
	  NULL },
	{ "a policy of CRC only if asked is accepted by a device without CRC32c",
	  RDMA_MPA_SETTING_CRC, RDMA_MPA_CRC_IF_ASKED, CAPS(.no_crc = true), NULL },
	{ "a policy is refused if the device can send none of its offered RTR kinds",
	  RDMA_MPA_SETTING_RTR_OFFER, 2,
	  CAPS_RTR(1, IW_MPA_RTR_ALL), "the device sends only these RTR kinds: send" },
	{ "a policy is refused if the device recognises none of its accepted RTR kinds",
	  RDMA_MPA_SETTING_RTR_ACCEPT, 2,
	  CAPS_RTR(IW_MPA_RTR_ALL, 4),
	  "the device recognises only these RTR kinds: read" },
	{ "a policy that offers only a Read RTR is refused with ORD 0",
	  RDMA_MPA_SETTING_RTR_OFFER, 4,
	  CAPS_OF(0, IW_MPA_RTR_ALL, IW_MPA_RTR_ALL),
	  "a Read RTR needs an ORD of 1 or more" },
	{ "a policy is refused with ORD 0 if the device sends only Read of its offered RTR kinds",
	  RDMA_MPA_SETTING_RTR_OFFER, 6,
	  CAPS_OF(0, 5, IW_MPA_RTR_ALL),
	  "the only usable RTR kind, read, needs an ORD of 1 or more" },
	{ "a policy of revision 1 is accepted", RDMA_MPA_SETTING_REVISION, 1, CAPS(), NULL },
};

static void why_desc(const struct why_case *c, char *desc)
{
	strscpy(desc, c->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(layer, layer_cases, why_desc);
KUNIT_ARRAY_PARAM(policy, policy_cases, why_desc);

static void single_setting_is_checked_against_the_device(struct kunit *test)
{
	const struct why_case *c = test->param_value;
	struct iw_mpa_layer layer = {};
	char why[80] = "";

	KUNIT_ASSERT_EQ(test, 0,
			iw_mpa_layer_set(&layer, c->setting, c->value));
	KUNIT_EXPECT_EQ(test, c->why ? (u32)BIT(c->setting) : 0U,
			iw_mpa_layer_unable(&layer, &c->caps, why,
					    sizeof(why)));
	KUNIT_EXPECT_STREQ(test, c->why ?: "", why);
}

/* All unsupported settings are found, with the reason for the first */
static void every_setting_unsupported_by_the_device_is_reported(struct kunit *test)
{
	static const struct iw_mpa_caps caps = CAPS(.no_crc = true);
	struct iw_mpa_layer layer = {};
	char why[80] = "";

	iw_mpa_layer_set(&layer, RDMA_MPA_SETTING_FASTOPEN, 1);
	iw_mpa_layer_set(&layer, RDMA_MPA_SETTING_MODEL, 0);
	iw_mpa_layer_set(&layer, RDMA_MPA_SETTING_CRC, RDMA_MPA_CRC_REQUIRED);
	iw_mpa_layer_set(&layer, RDMA_MPA_SETTING_ORD, 64);
	iw_mpa_layer_set(&layer, RDMA_MPA_SETTING_IRD, 129);
	KUNIT_EXPECT_EQ(test,
			(u32)(BIT(RDMA_MPA_SETTING_IRD) |
			      BIT(RDMA_MPA_SETTING_CRC) |
			      BIT(RDMA_MPA_SETTING_FASTOPEN)),
			iw_mpa_layer_unable(&layer, &caps, why, sizeof(why)));
	KUNIT_EXPECT_STREQ(test, "the device's largest IRD is 128", why);
}

static void mpa_policy_is_checked_against_the_device(struct kunit *test)
{
	const struct why_case *c = test->param_value;
	struct iw_mpa_policy p = iw_mpa_default_policy;
	struct iw_mpa_layer layer = {};
	char why[80] = "";

	KUNIT_ASSERT_EQ(test, 0,
			iw_mpa_layer_set(&layer, c->setting, c->value));
	iw_mpa_layer_apply(&layer, ~0U, &p);
	KUNIT_EXPECT_EQ(test, c->why ? -EINVAL : 0,
			iw_mpa_policy_explain(&p, &c->caps, why, sizeof(why)));
	KUNIT_EXPECT_STREQ(test, c->why ?: "", why);
}

static void policy_of_revision_1_that_requires_peer_to_peer_is_refused(struct kunit *test)
{
	struct iw_mpa_policy p = iw_mpa_default_policy;
	struct iw_mpa_layer layer = {};
	char why[80] = "";

	iw_mpa_layer_set(&layer, RDMA_MPA_SETTING_REVISION, 1);
	iw_mpa_layer_set(&layer, RDMA_MPA_SETTING_MODEL,
			 RDMA_MPA_MODEL_PEER_TO_PEER_REQUIRED);
	iw_mpa_layer_apply(&layer, ~0U, &p);
	KUNIT_EXPECT_EQ(test, -EINVAL,
			iw_mpa_policy_explain(&p, &usual_caps, why,
					      sizeof(why)));
	KUNIT_EXPECT_STREQ(test, why,
			   "revision 1 does not support the peer-to-peer model");
}

#define DEFAULT_POLICY_WITH(field, value) ({			\
	struct iw_mpa_policy __p = iw_mpa_default_policy;	\
								\
	__p.field = (value);					\
	__p;							\
})

static void expect_why(struct kunit *test, const char *reason,
		       struct iw_mpa_policy p)
{
	char why[80] = "";

	KUNIT_EXPECT_EQ(test, -EINVAL,
			iw_mpa_policy_explain(&p, &usual_caps, why,
					      sizeof(why)));
	KUNIT_EXPECT_STREQ(test, reason, why);
}

static void invalid_value_is_refused_with_the_name_of_its_setting(struct kunit *test)
{
	expect_why(test, "revision: invalid value",
		   DEFAULT_POLICY_WITH(rev, 3));
	expect_why(test, "revision: invalid value",
		   DEFAULT_POLICY_WITH(rev, 1));
	expect_why(test, "model: invalid value",
		   DEFAULT_POLICY_WITH(model, 3));
	expect_why(test, "RTR kinds to offer: invalid value",
		   DEFAULT_POLICY_WITH(rtr_offer, 9));
	expect_why(test, "RTR kinds to accept: invalid value",
		   DEFAULT_POLICY_WITH(rtr_accept, 8));
	expect_why(test, "order of RTR kinds: invalid value",
		   DEFAULT_POLICY_WITH(rtr_order[0], 4));
	expect_why(test, "CRC: invalid value",
		   DEFAULT_POLICY_WITH(crc, 3));
	expect_why(test, "dialect: invalid value",
		   DEFAULT_POLICY_WITH(dialect, 2));
	expect_why(test, "deadline of the TCP connect: invalid value",
		   DEFAULT_POLICY_WITH(connect_ms, 0));
	expect_why(test, "deadline of the Request: invalid value",
		   DEFAULT_POLICY_WITH(request_ms, RDMA_MPA_DEADLINE_MAX + 1));
	expect_why(test, "deadline of the Reply: invalid value",
		   DEFAULT_POLICY_WITH(reply_ms, 0));
	expect_why(test, "deadline of the RTR: invalid value",
		   DEFAULT_POLICY_WITH(rtr_ms, 0));
	expect_why(test, "deadline of the ULP's answer: invalid value",
		   DEFAULT_POLICY_WITH(decide_ms, 0));
	expect_why(test, "idle time of an association: invalid value",
		   DEFAULT_POLICY_WITH(idle, 0));
}

static void markers_and_large_fpdus_are_refused_by_a_device_without_them(struct kunit *test)
{
	expect_why(test, "the device does not support markers",
		   DEFAULT_POLICY_WITH(markers, true));
	expect_why(test, "the device does not support FPDUs above the MSS",
		   DEFAULT_POLICY_WITH(large, true));
}

/* A long reason is truncated; no byte is written beyond the buffer */
static void reason_for_a_refused_setting_is_truncated_to_the_buffer(struct kunit *test)
{
	struct iw_mpa_layer layer = {};
	char why[10];

	memset(why, 'x', sizeof(why));
	iw_mpa_layer_set(&layer, RDMA_MPA_SETTING_IRD, 129);
	KUNIT_EXPECT_EQ(test, (u32)BIT(RDMA_MPA_SETTING_IRD),
			iw_mpa_layer_unable(&layer, &usual_caps, why, 8));
	KUNIT_EXPECT_STREQ(test, why, "the dev");
	KUNIT_EXPECT_EQ(test, 'x', (int)why[8]);
}

static void rounding_does_not_exceed_the_ird_and_ord_limits(struct kunit *test)
{
	struct iw_mpa_policy p = iw_mpa_default_policy;
	struct iw_mpa_caps caps = usual_caps;

	p.max_ird = 100;
	p.max_ord = 0;
	iw_mpa_policy_limit(&p, &caps);
	KUNIT_EXPECT_EQ(test, 100, (int)caps.max_ird);
	KUNIT_EXPECT_EQ(test, 0, (int)caps.max_ord);

	/* The device would round 100 up to 128 */
	caps = usual_caps;
	caps.pow2_depths = true;
	iw_mpa_policy_limit(&p, &caps);
	KUNIT_EXPECT_EQ(test, 64, (int)caps.max_ird);
}

/* ---- policies of sessions */

struct fake {
	struct iw_mpa_session s;
	struct list_head list;	/* of the test's sessions */
	u8 tx[IW_MPA_FRAME_MAX];
	size_t tx_len;
	struct iw_mpa_rdma rdma;
	struct iw_mpa_event ev;
	int events;
};

static int fake_send(struct iw_mpa_session *s, const void *frame, size_t len)
{
	struct fake *f = container_of(s, struct fake, s);

	memcpy(f->tx, frame, len);
	f->tx_len = len;
	return 0;
}

static int fake_enter_rdma(struct iw_mpa_session *s,
			   const struct iw_mpa_rdma *rdma)
{
	container_of(s, struct fake, s)->rdma = *rdma;
	return 0;
}

static int fake_terminate(struct iw_mpa_session *s,
			  const struct iw_mpa_rdma *rdma,
			  enum rdma_mpa_ecode ecode)
{
	return 0;
}

static void fake_deadline(struct iw_mpa_session *s, unsigned int ms)
{
}

static int fake_event(struct iw_mpa_session *s, const struct iw_mpa_event *ev)
{
	struct fake *f = container_of(s, struct fake, s);

	f->ev = *ev;
	f->events++;
	return 0;
}

static const struct iw_mpa_ops fake_ops = {
	.send		= fake_send,
	.enter_rdma	= fake_enter_rdma,
	.terminate	= fake_terminate,
	.deadline	= fake_deadline,
	.event		= fake_event,
};

static int open_endpoints(struct kunit *test)
{
	struct list_head *endpoints = kunit_kzalloc(test, sizeof(*endpoints),
						    GFP_KERNEL);

	if (!endpoints)
		return -ENOMEM;
	INIT_LIST_HEAD(endpoints);
	test->priv = endpoints;
	return 0;
}

static void close_endpoints(struct kunit *test)
{
	struct list_head *endpoints = test->priv;
	struct fake *f;

	list_for_each_entry(f, endpoints, list)
		iw_mpa_session_close(&f->s);
}

static struct iw_mpa_config new_config(struct kunit *test,
				       const struct iw_mpa_policy *p)
{
	struct iw_mpa_config config;

	KUNIT_ASSERT_EQ(test, 0, iw_mpa_config_init(&config, &fake_ops,
						    &usual_caps, p));
	return config;
}

static struct fake *new_session(struct kunit *test,
				const struct iw_mpa_config *config)
{
	struct fake *f = kunit_kzalloc(test, sizeof(*f), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, f);
	list_add(&f->list, test->priv);
	KUNIT_ASSERT_EQ(test, 0, iw_mpa_session_inherit(&f->s, config));
	return f;
}

static struct fake *new_fake(struct kunit *test, const struct iw_mpa_policy *p)
{
	struct iw_mpa_config config = new_config(test, p);

	return new_session(test, &config);
}

static enum iw_mpa_next feed(struct kunit *test, struct fake *f,
			     const char *hex)
{
	enum iw_mpa_next next = IW_MPA_NEXT_WAIT;
	void *room;
	size_t len;

	while (next == IW_MPA_NEXT_WAIT &&
	       (room = iw_mpa_rx_room(&f->s, &len)) && *hex) {
		KUNIT_ASSERT_EQ(test, 0, hex2bin(room, hex, len));
		hex += 2 * len;
		next = iw_mpa_rx_done(&f->s, len);
	}
	KUNIT_EXPECT_STREQ(test, "", hex);
	return next == IW_MPA_NEXT_FRAME ? iw_mpa_process(&f->s, false) : next;
}

static void expect_sent(struct kunit *test, struct fake *f, const char *hex)
{
	u8 bin[IW_MPA_FRAME_MAX];
	size_t len = strlen(hex) / 2;

	KUNIT_ASSERT_EQ(test, 0, hex2bin(bin, hex, len));
	KUNIT_ASSERT_EQ(test, len, f->tx_len);
	KUNIT_EXPECT_EQ(test, 0, memcmp(bin, f->tx, len));
}

/* A ULP that asks for more than the administrator's limit gets the limit */
static void initiator_requests_at_most_the_ird_and_ord_limits(struct kunit *test)
{
	struct iw_mpa_policy p = iw_mpa_default_policy;
	const struct iw_mpa_ulp ulp = { .ird = 128, .ord = 64 };
	struct fake *f;

	p.max_ird = 5;
	p.max_ord = 3;
	f = new_fake(test, &p);
	KUNIT_EXPECT_EQ(test, 0, iw_mpa_connect(&f->s, &ulp));
	iw_mpa_connected(&f->s);
	expect_sent(test, f, REQ "100200048005c003");
}

static void connect_with_ird_above_the_device_limit_fails_with_einval(struct kunit *test)
{
	struct iw_mpa_policy p = iw_mpa_default_policy;
	const struct iw_mpa_ulp ulp = { .ird = 129, .ord = 1 };
	struct fake *f;

	p.max_ird = 5;
	f = new_fake(test, &p);
	KUNIT_EXPECT_EQ(test, -EINVAL, iw_mpa_connect(&f->s, &ulp));
	KUNIT_EXPECT_EQ(test, (size_t)0, f->tx_len);
}

static void responder_grants_at_most_the_ird_and_ord_limits(struct kunit *test)
{
	struct iw_mpa_policy p = iw_mpa_default_policy;
	const struct iw_mpa_ulp ulp = { .ird = 128, .ord = 64 };
	struct fake *f;

	p.max_ird = 5;
	p.max_ord = 3;
	f = new_fake(test, &p);
	iw_mpa_respond(&f->s);
	/* V05 with IRD 8 and ORD 8 */
	feed(test, f, REQ "1002000400080008");
	KUNIT_EXPECT_EQ(test, 5, (int)f->ev.ird);
	KUNIT_EXPECT_EQ(test, 3, (int)f->ev.ord);
	KUNIT_EXPECT_EQ(test, 0, iw_mpa_accept(&f->s, NULL, &ulp));
	KUNIT_EXPECT_EQ(test, 5, (int)f->rdma.ird);
	KUNIT_EXPECT_EQ(test, 3, (int)f->rdma.ord);
}

/* A Read needs a slot of the ORD, and the ORD is 0 */
static void read_rtr_is_not_offered_with_ord_0(struct kunit *test)
{
	struct iw_mpa_policy p = iw_mpa_default_policy;
	const struct iw_mpa_ulp ulp = { .ird = 8, .ord = 0 };
	struct fake *f;

	p.max_ord = 0;
	f = new_fake(test, &p);
	KUNIT_EXPECT_EQ(test, 0, iw_mpa_connect(&f->s, &ulp));
	iw_mpa_connected(&f->s);
	/* A and C, not D */
	expect_sent(test, f, REQ "1002000480088000");
}

/* IOP-03 IOP-05 */
static void unenhanced_responder_closes_on_an_enhanced_request(struct kunit *test)
{
	struct iw_mpa_policy p = iw_mpa_default_policy;
	struct fake *f;

	p.enhanced = false;
	f = new_fake(test, &p);
	iw_mpa_respond(&f->s);
	KUNIT_EXPECT_EQ(test, IW_MPA_NEXT_CLOSE,
			feed(test, f, REQ "1002000400080004"));
	KUNIT_EXPECT_EQ(test, (size_t)0, f->tx_len);
	KUNIT_EXPECT_EQ(test, 0, f->events);
}

/* IOP-04 IOP-11: V01 and V04 with C=0 */
static void unenhanced_responder_accepts_plain_requests(struct kunit *test)
{
	struct iw_mpa_policy p = iw_mpa_default_policy;
	struct fake *f;

	p.rev = 1;
	p.enhanced = false;
	f = new_fake(test, &p);
	iw_mpa_respond(&f->s);
	feed(test, f, REQ "00010000");
	KUNIT_EXPECT_EQ(test, 1, f->events);

	f = new_fake(test, &p);
	iw_mpa_respond(&f->s);
	feed(test, f, REQ "00020003686921");
	KUNIT_EXPECT_EQ(test, 1, f->events);
	KUNIT_EXPECT_EQ(test, 3, (int)f->ev.pdata_len);
}

/* INI-03 FRM-12 */
static void initiator_of_revision_1_sends_a_plain_request(struct kunit *test)
{
	struct iw_mpa_layer layer = {};
	struct iw_mpa_policy p = iw_mpa_default_policy;
	const struct iw_mpa_ulp ulp = { .ird = 8, .ord = 8 };
	struct fake *f;

	iw_mpa_layer_set(&layer, RDMA_MPA_SETTING_REVISION, 1);
	iw_mpa_layer_apply(&layer, ~0U, &p);
	f = new_fake(test, &p);
	KUNIT_EXPECT_EQ(test, 0, iw_mpa_connect(&f->s, &ulp));
	iw_mpa_connected(&f->s);
	expect_sent(test, f, REQ "00010000");
}

static void connection_options_override_the_policy(struct kunit *test)
{
	struct iw_mpa_config config = new_config(test, &iw_mpa_default_policy);
	const struct iw_mpa_ulp ulp = { .ird = 8, .ord = 8 };
	struct iw_mpa_layer layer = {};
	struct fake *f;

	set_option(&layer, RDMA_MPA_OPTION_RTR, RDMA_MPA_RTR_READ);
	KUNIT_EXPECT_EQ(test, 0, iw_mpa_config_apply(&config, &layer));
	f = new_session(test, &config);
	KUNIT_EXPECT_EQ(test, 0, iw_mpa_connect(&f->s, &ulp));
	iw_mpa_connected(&f->s);
	expect_sent(test, f, REQ "1002000480084008");
}

/* An option's ceiling can only lower a ceiling, also in a second layer */
static void connection_options_only_lower_the_ird_and_ord_limits(struct kunit *test)
{
	struct iw_mpa_config config = new_config(test, &iw_mpa_default_policy);
	struct iw_mpa_layer layer = {};

	set_option(&layer, RDMA_MPA_OPTION_IRD, 16);
	set_option(&layer, RDMA_MPA_OPTION_ORD, 65);
	KUNIT_EXPECT_EQ(test, 0, iw_mpa_config_apply(&config, &layer));
	KUNIT_EXPECT_EQ(test, 16, (int)config.caps.max_ird);
	KUNIT_EXPECT_EQ(test, 64, (int)config.caps.max_ord);
	set_option(&layer, RDMA_MPA_OPTION_IRD, 32);
	KUNIT_EXPECT_EQ(test, 0, iw_mpa_config_apply(&config, &layer));
	KUNIT_EXPECT_EQ(test, 16, (int)config.caps.max_ird);
	KUNIT_EXPECT_EQ(test, 128, (int)config.device_ird);
	KUNIT_EXPECT_EQ(test, 64, (int)config.device_ord);
	KUNIT_EXPECT_EQ(test, 0, iw_mpa_config_apply(&config, NULL));
	KUNIT_EXPECT_EQ(test, 16, (int)config.caps.max_ird);
}

static void contradictory_connection_options_fail_and_change_no_setting(struct kunit *test)
{
	struct iw_mpa_config config = new_config(test, &iw_mpa_default_policy);
	struct iw_mpa_config before = config;
	struct iw_mpa_layer layer = {};

	set_option(&layer, RDMA_MPA_OPTION_REVISION,
		   RDMA_MPA_REVISION_RFC5044);
	set_option(&layer, RDMA_MPA_OPTION_MODEL,
		   RDMA_MPA_MODEL_PEER_TO_PEER_REQUIRED);
	KUNIT_EXPECT_EQ(test, -EINVAL, iw_mpa_config_apply(&config, &layer));
	KUNIT_EXPECT_EQ(test, 0, memcmp(&before, &config, sizeof(config)));
}

static void config_without_a_usable_rtr_kind_is_refused(struct kunit *test)
{
	struct iw_mpa_policy p = iw_mpa_default_policy;
	struct iw_mpa_config config;

	p.rtr_offer = RDMA_MPA_RTR_READ;
	p.max_ord = 0;
	KUNIT_EXPECT_EQ(test, -EINVAL,
			iw_mpa_config_init(&config, &fake_ops, &usual_caps,
					   &p));
	p.max_ord = 1;
	KUNIT_EXPECT_EQ(test, 0,
			iw_mpa_config_init(&config, &fake_ops, &usual_caps,
					   &p));
}

static void session_inherits_settings_from_its_listener(struct kunit *test)
{
	struct iw_mpa_policy p = iw_mpa_default_policy;
	struct iw_mpa_config listener;
	const struct iw_mpa_config *own;
	struct fake *f;

	p.request_ms = 77;
	p.max_ird = 9;
	listener = new_config(test, &p);
	f = new_session(test, &listener);
	/* The listener's memory is reused before the session is used */
	memset(&listener, 0xa5, sizeof(listener));
	own = &f->s.setup->config;
	KUNIT_EXPECT_EQ(test, 77u, own->policy.request_ms);
	KUNIT_EXPECT_EQ(test, 9, (int)own->caps.max_ird);
	KUNIT_EXPECT_EQ(test, 128, (int)own->device_ird);
	KUNIT_EXPECT_PTR_EQ(test, &fake_ops, own->ops);
}

static struct kunit_case policy_test_cases[] = {
	KUNIT_CASE_PARAM(setting_value_is_stored_in_range_and_refused_outside, range_gen_params),
	KUNIT_CASE(every_setting_has_its_range_tested),
	KUNIT_CASE(revision_setting_sets_rev_enhanced_data_and_fallback),
	KUNIT_CASE(ird_or_ord_setting_is_a_limit_or_a_mode),
	KUNIT_CASE_PARAM(short_rtr_order_is_completed_and_invalid_one_refused, order_gen_params),
	KUNIT_CASE(connection_option_of_wrong_length_or_number_is_refused),
	KUNIT_CASE_PARAM(connection_option_stores_a_value_in_range_only, option_gen_params),
	KUNIT_CASE(every_rdma_mpa_option_is_tested),
	KUNIT_CASE(last_of_ird_or_ord_limit_and_mode_options_is_effective),
	KUNIT_CASE(connection_options_applied_together_each_change_the_policy),
	KUNIT_CASE(rtr_option_accepts_only_lists_of_distinct_rtr_kinds),
	KUNIT_CASE(empty_settings_layer_changes_no_setting),
	KUNIT_CASE(port_setting_overrides_device_setting),
	KUNIT_CASE(each_setting_of_a_layer_can_be_applied_alone),
	KUNIT_CASE(fast_open_setting_is_inherited_and_overridden),
	KUNIT_CASE(ird_and_ord_limits_can_only_be_lowered),
	KUNIT_CASE_PARAM(single_setting_is_checked_against_the_device, layer_gen_params),
	KUNIT_CASE(every_setting_unsupported_by_the_device_is_reported),
	KUNIT_CASE_PARAM(mpa_policy_is_checked_against_the_device, policy_gen_params),
	KUNIT_CASE(policy_of_revision_1_that_requires_peer_to_peer_is_refused),
	KUNIT_CASE(invalid_value_is_refused_with_the_name_of_its_setting),
	KUNIT_CASE(markers_and_large_fpdus_are_refused_by_a_device_without_them),
	KUNIT_CASE(reason_for_a_refused_setting_is_truncated_to_the_buffer),
	KUNIT_CASE(rounding_does_not_exceed_the_ird_and_ord_limits),
	KUNIT_CASE(initiator_requests_at_most_the_ird_and_ord_limits),
	KUNIT_CASE(connect_with_ird_above_the_device_limit_fails_with_einval),
	KUNIT_CASE(responder_grants_at_most_the_ird_and_ord_limits),
	KUNIT_CASE(read_rtr_is_not_offered_with_ord_0),
	KUNIT_CASE(unenhanced_responder_closes_on_an_enhanced_request),
	KUNIT_CASE(unenhanced_responder_accepts_plain_requests),
	KUNIT_CASE(initiator_of_revision_1_sends_a_plain_request),
	KUNIT_CASE(connection_options_override_the_policy),
	KUNIT_CASE(connection_options_only_lower_the_ird_and_ord_limits),
	KUNIT_CASE(contradictory_connection_options_fail_and_change_no_setting),
	KUNIT_CASE(config_without_a_usable_rtr_kind_is_refused),
	KUNIT_CASE(session_inherits_settings_from_its_listener),
	{}
};

static struct kunit_suite policy_test_suite = {
	.name = "iw_mpa_layers",
	.init = open_endpoints,
	.exit = close_endpoints,
	.test_cases = policy_test_cases,
};

kunit_test_suite(policy_test_suite);

MODULE_DESCRIPTION("KUnit tests of iw_mpa's layers of policy");
MODULE_LICENSE("GPL");
MODULE_IMPORT_NS("EXPORTED_FOR_KUNIT_TESTING");
