// SPDX-License-Identifier: GPL-2.0
/*
 * Layers of policy, what may be set in them, and what a session makes of them.
 */
#include <kunit/test.h>
#include <linux/hex.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/string.h>

#include <rdma/iw_mpa.h>

#define REQ "4d504120494420526571204672616d65"

static const struct iw_mpa_caps usual_caps = {
	.max_ird	= 128,
	.max_ord	= 64,
	.rtr_send	= IW_MPA_RTR_ALL,
	.rtr_recv	= IW_MPA_RTR_ALL,
};

/* ---- one setting */

struct value_case {
	const char *name;
	enum rdma_mpa_policy setting;
	u32 value;
	int rv;
};

/* Both ends of each range of enum rdma_mpa_policy, and one step beyond */
static const struct value_case value_cases[] = {
	{ "no setting", RDMA_MPA_POLICY_UNSPEC, 1, -EINVAL },
	{ "beyond the last", __RDMA_MPA_POLICY_NUM, 1, -EINVAL },
	{ "an order is no number", RDMA_MPA_POLICY_RTR_ORDER, 1, -EINVAL },
	{ "revision 0", RDMA_MPA_POLICY_REVISION, 0, -ERANGE },
	{ "revision 1", RDMA_MPA_POLICY_REVISION, 1, 0 },
	{ "revision 2 or 1", RDMA_MPA_POLICY_REVISION, 3, 0 },
	{ "revision beyond", RDMA_MPA_POLICY_REVISION, 4, -ERANGE },
	{ "client-server", RDMA_MPA_POLICY_MODEL, 0, 0 },
	{ "peer-to-peer required", RDMA_MPA_POLICY_MODEL, 2, 0 },
	{ "model beyond", RDMA_MPA_POLICY_MODEL, 3, -ERANGE },
	{ "offer nothing", RDMA_MPA_POLICY_RTR_OFFER, 0, -ERANGE },
	{ "offer all", RDMA_MPA_POLICY_RTR_OFFER, 7, 0 },
	{ "offer beyond", RDMA_MPA_POLICY_RTR_OFFER, 8, -ERANGE },
	{ "accept nothing", RDMA_MPA_POLICY_RTR_ACCEPT, 0, -ERANGE },
	{ "accept all", RDMA_MPA_POLICY_RTR_ACCEPT, 7, 0 },
	{ "accept beyond", RDMA_MPA_POLICY_RTR_ACCEPT, 8, -ERANGE },
	{ "IRD 0", RDMA_MPA_POLICY_IRD, 0, 0 },
	{ "IRD of the ULP", RDMA_MPA_POLICY_IRD, 0x3fff, 0 },
	{ "IRD beyond", RDMA_MPA_POLICY_IRD, 0x4000, -ERANGE },
	{ "ORD 0", RDMA_MPA_POLICY_ORD, 0, 0 },
	{ "ORD of the ULP", RDMA_MPA_POLICY_ORD, 0x3fff, 0 },
	{ "ORD beyond", RDMA_MPA_POLICY_ORD, 0x4000, -ERANGE },
	{ "CRC off", RDMA_MPA_POLICY_CRC, 0, 0 },
	{ "CRC required", RDMA_MPA_POLICY_CRC, 2, 0 },
	{ "CRC beyond", RDMA_MPA_POLICY_CRC, 3, -ERANGE },
	{ "Request at once", RDMA_MPA_POLICY_REQUEST_MS, 0, -ERANGE },
	{ "Request in 1 ms", RDMA_MPA_POLICY_REQUEST_MS, 1, 0 },
	{ "Request in an hour", RDMA_MPA_POLICY_REQUEST_MS, 3600000, 0 },
	{ "Request later", RDMA_MPA_POLICY_REQUEST_MS, 3600001, -ERANGE },
	{ "Reply at once", RDMA_MPA_POLICY_REPLY_MS, 0, -ERANGE },
	{ "Reply later", RDMA_MPA_POLICY_REPLY_MS, 3600001, -ERANGE },
	{ "RTR at once", RDMA_MPA_POLICY_RTR_MS, 0, -ERANGE },
	{ "RTR later", RDMA_MPA_POLICY_RTR_MS, ~0U, -ERANGE },
	{ "decided at once", RDMA_MPA_POLICY_DECIDE_MS, 0, -ERANGE },
	{ "decided later", RDMA_MPA_POLICY_DECIDE_MS, 3600001, -ERANGE },
	{ "connected at once", RDMA_MPA_POLICY_CONNECT_MS, 0, -ERANGE },
	{ "connected later", RDMA_MPA_POLICY_CONNECT_MS, 3600001, -ERANGE },
	{ "RFC 6581", RDMA_MPA_POLICY_DIALECT, 0, 0 },
	{ "early draft", RDMA_MPA_POLICY_DIALECT, 1, 0 },
	{ "dialect beyond", RDMA_MPA_POLICY_DIALECT, 2, -ERANGE },
	{ "ORD lowered", RDMA_MPA_POLICY_SHORT_IRD, 0, 0 },
	{ "short IRD rejected", RDMA_MPA_POLICY_SHORT_IRD, 1, 0 },
	{ "short IRD beyond", RDMA_MPA_POLICY_SHORT_IRD, 2, -ERANGE },
	{ "fast open off", RDMA_MPA_POLICY_FASTOPEN, 0, 0 },
	{ "fast open on", RDMA_MPA_POLICY_FASTOPEN, 1, 0 },
	{ "fast open beyond", RDMA_MPA_POLICY_FASTOPEN, 2, -ERANGE },
};

static void value_desc(const struct value_case *c, char *desc)
{
	strscpy(desc, c->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(value, value_cases, value_desc);

static void value_is_in_its_range_or_refused(struct kunit *test)
{
	const struct value_case *c = test->param_value;
	struct iw_mpa_layer layer = {}, none = {};

	KUNIT_EXPECT_EQ(test, c->rv,
			iw_mpa_layer_set(&layer, c->setting, c->value));
	if (c->rv)
		KUNIT_EXPECT_EQ(test, 0, memcmp(&layer, &none, sizeof(none)));
	else
		KUNIT_EXPECT_EQ(test, (u32)BIT(c->setting), layer.set);
}

struct order_case {
	const char *name;
	u8 kinds[4];
	size_t count;
	u8 order[3];	/* all 0: refused */
};

static const struct order_case order_cases[] = {
	{ "all", { 4, 1, 2 }, 3, { 4, 1, 2 } },
	{ "read, the others as usual", { 4 }, 1, { 4, 2, 1 } },
	{ "send, the others as usual", { 1 }, 1, { 1, 2, 4 } },
	{ "two", { 1, 4 }, 2, { 1, 4, 2 } },
	{ "none", {}, 0 },
	{ "four", { 1, 2, 4, 1 }, 4 },
	{ "one twice", { 2, 2 }, 2 },
	{ "two at once", { 3 }, 1 },
	{ "nothing", { 2, 0 }, 2 },
	{ "unknown", { 8 }, 1 },
};

static void order_desc(const struct order_case *c, char *desc)
{
	strscpy(desc, c->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(order, order_cases, order_desc);

static void order_is_completed_or_refused(struct kunit *test)
{
	const struct order_case *c = test->param_value;
	struct iw_mpa_layer layer = {};
	int rv = iw_mpa_layer_set_order(&layer, c->kinds, c->count);

	KUNIT_EXPECT_EQ(test, c->order[0] ? 0 : -EINVAL, rv);
	KUNIT_EXPECT_EQ(test, 0, memcmp(layer.value.rtr_order, c->order, 3));
	KUNIT_EXPECT_EQ(test, rv ? 0U : (u32)BIT(RDMA_MPA_POLICY_RTR_ORDER),
			layer.set);
}

/* ---- options of programs */

static int set_option(struct iw_mpa_layer *layer, int name, u32 value)
{
	return iw_mpa_layer_set_option(layer, name, &value, sizeof(value));
}

static void option_of_another_length_is_refused(struct kunit *test)
{
	struct iw_mpa_layer layer = {}, none = {};
	const u8 zeroes[64] = {};
	int name, len;

	for (name = -1; name <= __RDMA_OPTION_MPA_NUM; name++)
		for (len = 0; len <= sizeof(zeroes); len++)
			if (len != sizeof(u32))
				KUNIT_EXPECT_EQ(test, -EINVAL,
						iw_mpa_layer_set_option(&layer,
									name,
									zeroes,
									len));
	KUNIT_EXPECT_EQ(test, -EINVAL, set_option(&layer, -1, 1));
	KUNIT_EXPECT_EQ(test, -EINVAL, set_option(&layer, 0, 1));
	KUNIT_EXPECT_EQ(test, -EINVAL,
			set_option(&layer, __RDMA_OPTION_MPA_NUM, 1));
	KUNIT_EXPECT_EQ(test, -EINVAL,
			set_option(&layer, RDMA_OPTION_MPA_MODEL, 3));
	KUNIT_EXPECT_EQ(test, 0, memcmp(&layer, &none, sizeof(none)));
}

static void options_become_settings(struct kunit *test)
{
	const u8 kinds[] = { RDMA_MPA_RTR_READ, RDMA_MPA_RTR_SEND };
	struct iw_mpa_layer layer = {};
	struct iw_mpa_policy p = iw_mpa_default_policy;

	KUNIT_EXPECT_EQ(test, 0, set_option(&layer, RDMA_OPTION_MPA_MODEL,
					    RDMA_MPA_MODEL_CLIENT_SERVER));
	KUNIT_EXPECT_EQ(test, 0, set_option(&layer, RDMA_OPTION_MPA_REVISION,
					    RDMA_MPA_REVISION_2_OR_1));
	KUNIT_EXPECT_EQ(test, 0, set_option(&layer, RDMA_OPTION_MPA_IRD, 5));
	KUNIT_EXPECT_EQ(test, 0, set_option(&layer, RDMA_OPTION_MPA_ORD,
					    RDMA_MPA_DEPTH_ULP));
	KUNIT_EXPECT_EQ(test, 0,
			set_option(&layer, RDMA_OPTION_MPA_REQUEST_MS, 11));
	KUNIT_EXPECT_EQ(test, 0,
			set_option(&layer, RDMA_OPTION_MPA_REPLY_MS, 12));
	KUNIT_EXPECT_EQ(test, 0, set_option(&layer, RDMA_OPTION_MPA_RTR_MS, 13));
	KUNIT_EXPECT_EQ(test, 0,
			set_option(&layer, RDMA_OPTION_MPA_DECIDE_MS, 14));
	KUNIT_EXPECT_EQ(test, 0,
			set_option(&layer, RDMA_OPTION_MPA_CONNECT_MS, 15));
	KUNIT_EXPECT_EQ(test, 0, set_option(&layer, RDMA_OPTION_MPA_SHORT_IRD,
					    RDMA_MPA_SHORT_IRD_REJECT));
	KUNIT_EXPECT_EQ(test, 0,
			iw_mpa_layer_set_option(&layer, RDMA_OPTION_MPA_RTR,
						kinds, sizeof(kinds)));
	iw_mpa_layer_apply(&layer, &p);

	KUNIT_EXPECT_EQ(test, RDMA_MPA_MODEL_CLIENT_SERVER, p.model);
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
	KUNIT_EXPECT_TRUE(test, p.ord_strict);
	KUNIT_EXPECT_EQ(test, RDMA_MPA_RTR_READ | RDMA_MPA_RTR_SEND,
			(int)p.rtr_offer);
	KUNIT_EXPECT_EQ(test, RDMA_MPA_RTR_READ | RDMA_MPA_RTR_SEND,
			(int)p.rtr_accept);
	KUNIT_EXPECT_EQ(test, RDMA_MPA_RTR_READ, (int)p.rtr_order[0]);
	KUNIT_EXPECT_EQ(test, RDMA_MPA_RTR_SEND, (int)p.rtr_order[1]);
}

static void refused_rtr_option_changes_nothing(struct kunit *test)
{
	const u8 kinds[] = { RDMA_MPA_RTR_READ, RDMA_MPA_RTR_READ };
	struct iw_mpa_layer layer = {}, none = {};

	KUNIT_EXPECT_EQ(test, -EINVAL,
			iw_mpa_layer_set_option(&layer, RDMA_OPTION_MPA_RTR,
						kinds, sizeof(kinds)));
	KUNIT_EXPECT_EQ(test, 0, memcmp(&layer, &none, sizeof(none)));
}

/* ---- layers over each other */

static void empty_layer_changes_nothing(struct kunit *test)
{
	struct iw_mpa_layer layer = {};
	struct iw_mpa_policy p = iw_mpa_default_policy;

	memset(&layer.value, 0xff, sizeof(layer.value));
	iw_mpa_layer_apply(&layer, &p);
	KUNIT_EXPECT_EQ(test, 0, memcmp(&p, &iw_mpa_default_policy, sizeof(p)));
}

static void upper_layer_beats_lower(struct kunit *test)
{
	struct iw_mpa_layer device = {}, port = {};
	struct iw_mpa_policy p = iw_mpa_default_policy;

	iw_mpa_layer_set(&device, RDMA_MPA_POLICY_MODEL, RDMA_MPA_MODEL_CLIENT_SERVER);
	iw_mpa_layer_set(&device, RDMA_MPA_POLICY_RTR_MS, 100);
	iw_mpa_layer_set(&port, RDMA_MPA_POLICY_MODEL,
			 RDMA_MPA_MODEL_PEER_TO_PEER_REQUIRED);
	iw_mpa_layer_apply(&device, &p);
	iw_mpa_layer_apply(&port, &p);
	KUNIT_EXPECT_EQ(test, RDMA_MPA_MODEL_PEER_TO_PEER_REQUIRED, p.model);
	KUNIT_EXPECT_EQ(test, 100u, p.rtr_ms);
	KUNIT_EXPECT_EQ(test, iw_mpa_default_policy.reply_ms, p.reply_ms);
}

static void fast_open_is_a_setting_like_others(struct kunit *test)
{
	struct iw_mpa_layer device = {}, port = {};
	struct iw_mpa_policy p = iw_mpa_default_policy;

	KUNIT_EXPECT_FALSE(test, p.fastopen);
	iw_mpa_layer_set(&device, RDMA_MPA_POLICY_FASTOPEN,
			 RDMA_MPA_FASTOPEN_ON);
	iw_mpa_layer_apply(&device, &p);
	KUNIT_EXPECT_TRUE(test, p.fastopen);
	iw_mpa_layer_apply(&port, &p);
	KUNIT_EXPECT_TRUE(test, p.fastopen);
	iw_mpa_layer_set(&port, RDMA_MPA_POLICY_FASTOPEN,
			 RDMA_MPA_FASTOPEN_OFF);
	iw_mpa_layer_apply(&port, &p);
	KUNIT_EXPECT_FALSE(test, p.fastopen);
}

static void ceiling_can_only_get_lower(struct kunit *test)
{
	struct iw_mpa_layer device = {}, port = {}, conn = {};
	struct iw_mpa_policy p = iw_mpa_default_policy;

	iw_mpa_layer_set(&device, RDMA_MPA_POLICY_IRD, 16);
	iw_mpa_layer_set(&device, RDMA_MPA_POLICY_ORD, 16);
	iw_mpa_layer_set(&port, RDMA_MPA_POLICY_IRD, 32);
	iw_mpa_layer_set(&port, RDMA_MPA_POLICY_ORD, 8);
	iw_mpa_layer_apply(&device, &p);
	iw_mpa_layer_apply(&port, &p);
	KUNIT_EXPECT_EQ(test, 16, (int)p.max_ird);
	KUNIT_EXPECT_EQ(test, 8, (int)p.max_ord);

	/* A ULP that manages them itself stays below, too */
	iw_mpa_layer_set(&conn, RDMA_MPA_POLICY_IRD, RDMA_MPA_DEPTH_ULP);
	iw_mpa_layer_apply(&conn, &p);
	KUNIT_EXPECT_TRUE(test, p.ird_ulp);
	KUNIT_EXPECT_FALSE(test, p.ord_ulp);
	KUNIT_EXPECT_EQ(test, 16, (int)p.max_ird);
}

/* ---- what a device cannot do */

struct why_case {
	const char *name;
	enum rdma_mpa_policy setting;
	u32 value;
	struct iw_mpa_caps caps;
	const char *why;	/* NULL: it can */
};

#define CAPS_OF(ORD, SEND, RECV, ...) { .max_ird = 128, .max_ord = (ORD), \
	.rtr_send = (SEND), .rtr_recv = (RECV), ##__VA_ARGS__ }
#define CAPS(...) CAPS_OF(64, IW_MPA_RTR_ALL, IW_MPA_RTR_ALL, ##__VA_ARGS__)
#define CAPS_RTR(SEND, RECV) CAPS_OF(64, SEND, RECV)

static const struct why_case layer_cases[] = {
	{ "an RTR it can send", RDMA_MPA_POLICY_RTR_OFFER, 4,
	  CAPS_RTR(4, IW_MPA_RTR_ALL), NULL },
	{ "an RTR it cannot send", RDMA_MPA_POLICY_RTR_OFFER, 1,
	  CAPS_RTR(6, IW_MPA_RTR_ALL),
	  "RTR kinds the device can send: write and read" },
	{ "one it can and one it cannot", RDMA_MPA_POLICY_RTR_OFFER, 6,
	  CAPS_RTR(4, IW_MPA_RTR_ALL), "RTR kinds the device can send: read" },
	{ "an RTR it does not know", RDMA_MPA_POLICY_RTR_ACCEPT, 2,
	  CAPS_RTR(IW_MPA_RTR_ALL, 5),
	  "RTR kinds the device recognises: send and read" },
	{ "its largest IRD", RDMA_MPA_POLICY_IRD, 128, CAPS(), NULL },
	{ "more IRD", RDMA_MPA_POLICY_IRD, 129, CAPS(),
	  "the device's largest IRD is 128" },
	{ "as much IRD as there is", RDMA_MPA_POLICY_IRD, RDMA_MPA_DEPTH_AUTO,
	  CAPS(), NULL },
	{ "IRD of the ULP", RDMA_MPA_POLICY_IRD, RDMA_MPA_DEPTH_ULP, CAPS(),
	  NULL },
	{ "more ORD", RDMA_MPA_POLICY_ORD, 65, CAPS(),
	  "the device's largest ORD is 64" },
	{ "fast open", RDMA_MPA_POLICY_FASTOPEN, 1, CAPS(.fastopen = true),
	  NULL },
	{ "no fast open without it", RDMA_MPA_POLICY_FASTOPEN, 0, CAPS(),
	  NULL },
	{ "fast open without it", RDMA_MPA_POLICY_FASTOPEN, 1, CAPS(),
	  "the device has no TCP Fast Open" },
};

static const struct why_case policy_cases[] = {
	{ "the defaults", RDMA_MPA_POLICY_MODEL, RDMA_MPA_MODEL_PEER_TO_PEER, CAPS(),
	  NULL },
	{ "CRC without CRC32c", RDMA_MPA_POLICY_CRC, RDMA_MPA_CRC_REQUIRED,
	  CAPS(.no_crc = true), "the device has no CRC32c" },
	{ "CRC with CRC32c", RDMA_MPA_POLICY_CRC, RDMA_MPA_CRC_REQUIRED, CAPS(),
	  NULL },
	{ "CRC if asked without CRC32c", RDMA_MPA_POLICY_CRC,
	  RDMA_MPA_CRC_IF_ASKED, CAPS(.no_crc = true), NULL },
	{ "nothing in common to send", RDMA_MPA_POLICY_RTR_OFFER, 2,
	  CAPS_RTR(1, IW_MPA_RTR_ALL), "RTR kinds the device can send: send" },
	{ "nothing in common to accept", RDMA_MPA_POLICY_RTR_ACCEPT, 2,
	  CAPS_RTR(IW_MPA_RTR_ALL, 4),
	  "RTR kinds the device recognises: read" },
	{ "a read without a slot", RDMA_MPA_POLICY_RTR_OFFER, 4,
	  CAPS_OF(0, IW_MPA_RTR_ALL, IW_MPA_RTR_ALL),
	  "an RTR by read needs an ORD of 1 or more" },
	{ "revision 1", RDMA_MPA_POLICY_REVISION, 1, CAPS(), NULL },
};

static void why_desc(const struct why_case *c, char *desc)
{
	strscpy(desc, c->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(layer, layer_cases, why_desc);
KUNIT_ARRAY_PARAM(policy, policy_cases, why_desc);

static void expect_why(struct kunit *test, const struct why_case *c, int rv,
		       const char *why)
{
	KUNIT_EXPECT_EQ(test, c->why ? -EINVAL : 0, rv);
	KUNIT_EXPECT_STREQ(test, c->why ?: "", why);
}

static void layer_is_within_the_device(struct kunit *test)
{
	const struct why_case *c = test->param_value;
	struct iw_mpa_layer layer = {};
	char why[80] = "";

	KUNIT_ASSERT_EQ(test, 0,
			iw_mpa_layer_set(&layer, c->setting, c->value));
	expect_why(test, c, iw_mpa_layer_check(&layer, &c->caps, why,
					       sizeof(why)), why);
}

static void policy_is_within_the_device(struct kunit *test)
{
	const struct why_case *c = test->param_value;
	struct iw_mpa_policy p = iw_mpa_default_policy;
	struct iw_mpa_layer layer = {};
	char why[80] = "";

	KUNIT_ASSERT_EQ(test, 0,
			iw_mpa_layer_set(&layer, c->setting, c->value));
	iw_mpa_layer_apply(&layer, &p);
	expect_why(test, c, iw_mpa_policy_explain(&p, &c->caps, why,
						  sizeof(why)), why);
}

static void revision_1_cannot_require_peer_to_peer(struct kunit *test)
{
	struct iw_mpa_policy p = iw_mpa_default_policy;
	struct iw_mpa_layer layer = {};
	char why[80] = "";

	iw_mpa_layer_set(&layer, RDMA_MPA_POLICY_REVISION, 1);
	iw_mpa_layer_set(&layer, RDMA_MPA_POLICY_MODEL,
			 RDMA_MPA_MODEL_PEER_TO_PEER_REQUIRED);
	iw_mpa_layer_apply(&layer, &p);
	KUNIT_EXPECT_EQ(test, -EINVAL,
			iw_mpa_policy_explain(&p, &usual_caps, why,
					      sizeof(why)));
	KUNIT_EXPECT_STREQ(test, why,
			   "revision 1 has no peer-to-peer model to require");
}

/* The text is cut, nothing is written behind it */
static void reason_fits_where_it_is_put(struct kunit *test)
{
	struct iw_mpa_layer layer = {};
	char why[10];

	memset(why, 'x', sizeof(why));
	iw_mpa_layer_set(&layer, RDMA_MPA_POLICY_IRD, 129);
	KUNIT_EXPECT_EQ(test, -EINVAL,
			iw_mpa_layer_check(&layer, &usual_caps, why, 8));
	KUNIT_EXPECT_STREQ(test, why, "the dev");
	KUNIT_EXPECT_EQ(test, 'x', (int)why[8]);
}

static void limit_survives_rounding(struct kunit *test)
{
	struct iw_mpa_policy p = iw_mpa_default_policy;
	struct iw_mpa_caps caps = usual_caps;

	p.max_ird = 100;
	p.max_ord = 0;
	iw_mpa_policy_limit(&p, &caps);
	KUNIT_EXPECT_EQ(test, 100, (int)caps.max_ird);
	KUNIT_EXPECT_EQ(test, 0, (int)caps.max_ord);

	/* 100 would become 128 in the device */
	caps = usual_caps;
	caps.pow2_depths = true;
	iw_mpa_policy_limit(&p, &caps);
	KUNIT_EXPECT_EQ(test, 64, (int)caps.max_ird);
}

/* ---- what a session makes of it */

struct fake {
	struct iw_mpa_session s;
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

static struct fake *new_fake(struct kunit *test, const struct iw_mpa_policy *p)
{
	struct fake *f = kunit_kzalloc(test, sizeof(*f), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, f);
	KUNIT_ASSERT_EQ(test, 0, iw_mpa_session_init(&f->s, &fake_ops,
						     &usual_caps, p));
	return f;
}

static enum iw_mpa_next feed(struct kunit *test, struct fake *f,
			     const char *hex)
{
	u8 bin[IW_MPA_FRAME_MAX];
	size_t len = strlen(hex) / 2, used;
	enum iw_mpa_next next;

	KUNIT_ASSERT_EQ(test, 0, hex2bin(bin, hex, len));
	next = iw_mpa_rx(&f->s, bin, len, &used);
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

/* A ULP that asks for more than the administrator allows gets what is allowed */
static void initiator_asks_for_no_more_than_the_ceiling(struct kunit *test)
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

static void asking_for_more_than_the_device_has_stays_an_error(struct kunit *test)
{
	struct iw_mpa_policy p = iw_mpa_default_policy;
	const struct iw_mpa_ulp ulp = { .ird = 129, .ord = 1 };
	struct fake *f;

	p.max_ird = 5;
	f = new_fake(test, &p);
	KUNIT_EXPECT_EQ(test, -EINVAL, iw_mpa_connect(&f->s, &ulp));
	KUNIT_EXPECT_EQ(test, (size_t)0, f->tx_len);
}

static void responder_gives_no_more_than_the_ceiling(struct kunit *test)
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
	KUNIT_EXPECT_EQ(test, 0, iw_mpa_accept(&f->s, &ulp));
	KUNIT_EXPECT_EQ(test, 5, (int)f->rdma.ird);
	KUNIT_EXPECT_EQ(test, 3, (int)f->rdma.ord);
}

/* A Read takes a slot of the ORD, of which there is none */
static void read_is_not_offered_without_an_ord(struct kunit *test)
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
static void unenhanced_responder_takes_what_is_not_enhanced(struct kunit *test)
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
static void initiator_of_revision_1_asks_for_nothing(struct kunit *test)
{
	struct iw_mpa_layer layer = {};
	struct iw_mpa_policy p = iw_mpa_default_policy;
	const struct iw_mpa_ulp ulp = { .ird = 8, .ord = 8 };
	struct fake *f;

	iw_mpa_layer_set(&layer, RDMA_MPA_POLICY_REVISION, 1);
	iw_mpa_layer_apply(&layer, &p);
	f = new_fake(test, &p);
	KUNIT_EXPECT_EQ(test, 0, iw_mpa_connect(&f->s, &ulp));
	iw_mpa_connected(&f->s);
	expect_sent(test, f, REQ "00010000");
}

static void options_beat_the_policy(struct kunit *test)
{
	const u8 read[] = { RDMA_MPA_RTR_READ };
	struct fake *f = new_fake(test, &iw_mpa_default_policy);
	const struct iw_mpa_ulp ulp = { .ird = 8, .ord = 8 };
	struct iw_mpa_layer layer = {};

	iw_mpa_layer_set_option(&layer, RDMA_OPTION_MPA_RTR, read, 1);
	KUNIT_EXPECT_EQ(test, 0, iw_mpa_session_options(&f->s, &layer));
	KUNIT_EXPECT_EQ(test, 0, iw_mpa_connect(&f->s, &ulp));
	iw_mpa_connected(&f->s);
	expect_sent(test, f, REQ "1002000480084008");
}

static void impossible_options_change_nothing(struct kunit *test)
{
	struct fake *f = new_fake(test, &iw_mpa_default_policy);
	struct iw_mpa_layer layer = {};

	set_option(&layer, RDMA_OPTION_MPA_REVISION, RDMA_MPA_REVISION_1);
	set_option(&layer, RDMA_OPTION_MPA_MODEL,
		   RDMA_MPA_MODEL_PEER_TO_PEER_REQUIRED);
	KUNIT_EXPECT_EQ(test, -EINVAL, iw_mpa_session_options(&f->s, &layer));
	KUNIT_EXPECT_EQ(test, 0, memcmp(&f->s.policy, &iw_mpa_default_policy,
					sizeof(f->s.policy)));
}

static void session_inherits_from_its_listener(struct kunit *test)
{
	struct iw_mpa_policy p = iw_mpa_default_policy;
	struct fake *listener, *f;

	p.request_ms = 77;
	p.max_ird = 9;
	listener = new_fake(test, &p);
	f = new_fake(test, &iw_mpa_default_policy);
	iw_mpa_session_inherit(&f->s, &listener->s);
	KUNIT_EXPECT_EQ(test, 77u, f->s.policy.request_ms);
	KUNIT_EXPECT_EQ(test, 9, (int)f->s.caps.max_ird);
	KUNIT_EXPECT_EQ(test, 128, (int)f->s.device_ird);
	KUNIT_EXPECT_PTR_EQ(test, listener->s.ops, f->s.ops);
}

static struct kunit_case policy_test_cases[] = {
	KUNIT_CASE_PARAM(value_is_in_its_range_or_refused, value_gen_params),
	KUNIT_CASE_PARAM(order_is_completed_or_refused, order_gen_params),
	KUNIT_CASE(option_of_another_length_is_refused),
	KUNIT_CASE(options_become_settings),
	KUNIT_CASE(refused_rtr_option_changes_nothing),
	KUNIT_CASE(empty_layer_changes_nothing),
	KUNIT_CASE(upper_layer_beats_lower),
	KUNIT_CASE(fast_open_is_a_setting_like_others),
	KUNIT_CASE(ceiling_can_only_get_lower),
	KUNIT_CASE_PARAM(layer_is_within_the_device, layer_gen_params),
	KUNIT_CASE_PARAM(policy_is_within_the_device, policy_gen_params),
	KUNIT_CASE(revision_1_cannot_require_peer_to_peer),
	KUNIT_CASE(reason_fits_where_it_is_put),
	KUNIT_CASE(limit_survives_rounding),
	KUNIT_CASE(initiator_asks_for_no_more_than_the_ceiling),
	KUNIT_CASE(asking_for_more_than_the_device_has_stays_an_error),
	KUNIT_CASE(responder_gives_no_more_than_the_ceiling),
	KUNIT_CASE(read_is_not_offered_without_an_ord),
	KUNIT_CASE(unenhanced_responder_closes_on_an_enhanced_request),
	KUNIT_CASE(unenhanced_responder_takes_what_is_not_enhanced),
	KUNIT_CASE(initiator_of_revision_1_asks_for_nothing),
	KUNIT_CASE(options_beat_the_policy),
	KUNIT_CASE(impossible_options_change_nothing),
	KUNIT_CASE(session_inherits_from_its_listener),
	{}
};

static struct kunit_suite policy_test_suite = {
	.name = "iw_mpa_layers",
	.test_cases = policy_test_cases,
};

kunit_test_suite(policy_test_suite);

MODULE_DESCRIPTION("KUnit tests of iw_mpa's layers of policy");
MODULE_LICENSE("GPL");
