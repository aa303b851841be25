// SPDX-License-Identifier: GPL-2.0
/*
 * The Request in TCP's SYN (RFC 7413), under a driver that only records calls.
 */
#include <kunit/test.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/string.h>

#include "iw_mpa_fake.h"

static const struct iw_mpa_ulp ulp_ping = {
	.ird = 8, .ord = 8, .pdata = "ping", .pdata_len = 4,
};

#define REQ_PING REQ "100200088008c00870696e67"

static struct fake *new_fast_opener(struct kunit *test, bool policy_on,
				    bool caps_on, bool fallback)
{
	struct iw_mpa_policy policy = iw_mpa_default_policy;
	struct iw_mpa_caps caps = fake_caps;

	policy.fastopen = policy_on;
	policy.fallback = fallback;
	caps.fastopen = caps_on;
	return new_device(test, &caps, &policy);
}

static struct fake *fast_opener(struct kunit *test, bool fallback)
{
	struct fake *f = new_fast_opener(test, true, true, fallback);

	KUNIT_ASSERT_EQ(test, 0, iw_mpa_connect(&f->s, &ulp_ping));
	return f;
}

/* TCP accepts at most the first @len bytes with the SYN */
static size_t dial(struct fake *f, size_t len)
{
	len = min(len, iw_mpa_early_request(&f->s, f->syn, sizeof(f->syn)));
	memset(f->syn + len, 0, sizeof(f->syn) - len);
	iw_mpa_early_sent(&f->s, len);
	return len;
}

/* The SYN's @cut bytes and the bytes sent later form the frame */
static void expect_sent_in_two(struct fake *f, const char *hex, size_t cut)
{
	u8 bin[IW_MPA_FRAME_MAX];
	size_t len = unhex(f, hex, bin);

	KUNIT_ASSERT_EQ(f->test, len - cut, f->tx_len);
	KUNIT_EXPECT_EQ(f->test, 0, memcmp(bin, f->syn, cut));
	KUNIT_EXPECT_EQ(f->test, 0, memcmp(bin + cut, f->tx, len - cut));
}

static void request_is_in_the_syn_only_if_enabled_and_supported(struct kunit *test)
{
	u8 buf[IW_MPA_FRAME_MAX];
	int policy_on, caps_on;

	for (policy_on = 0; policy_on < 2; policy_on++)
		for (caps_on = 0; caps_on < 2; caps_on++) {
			struct fake *f = new_fast_opener(test, policy_on,
							 caps_on, false);
			const struct iw_mpa_config *config = &f->s.setup->config;
			bool on = policy_on && caps_on;

			KUNIT_EXPECT_EQ(test, on,
					iw_mpa_config_fast_open(config));
			iw_mpa_connect(&f->s, &ulp_ping);
			KUNIT_EXPECT_EQ(test, on ? 28 : 0,
					(int)iw_mpa_early_request(&f->s, buf,
								  sizeof(buf)));
		}
}

static void request_is_in_the_syn_only_before_tcp_connects(struct kunit *test)
{
	struct fake *f = new_fast_opener(test, true, true, false);
	u8 buf[IW_MPA_FRAME_MAX];

	KUNIT_EXPECT_EQ(test, 0, (int)iw_mpa_early_request(&f->s, buf,
							   sizeof(buf)));
	iw_mpa_connect(&f->s, &ulp_ping);
	/* The call changes nothing; a Request that does not fit is not early */
	KUNIT_EXPECT_EQ(test, 28, (int)iw_mpa_early_request(&f->s, buf, 28));
	KUNIT_EXPECT_EQ(test, 0, (int)iw_mpa_early_request(&f->s, buf, 27));
	KUNIT_EXPECT_EQ(test, 28, (int)iw_mpa_early_request(&f->s, buf, 28));
	iw_mpa_connected(&f->s);
	KUNIT_EXPECT_EQ(test, 0, (int)iw_mpa_early_request(&f->s, buf,
							   sizeof(buf)));
	expect_sent(f, REQ_PING);
	iw_mpa_timeout(&f->s);
	KUNIT_EXPECT_EQ(test, 0, (int)iw_mpa_early_request(&f->s, buf,
							   sizeof(buf)));

	f = new_fast_opener(test, true, true, false);
	iw_mpa_respond(&f->s);
	KUNIT_EXPECT_EQ(test, 0, (int)iw_mpa_early_request(&f->s, buf,
							   sizeof(buf)));
}

/* RSP-02 FRM-20: each byte is sent once, wherever TCP splits the Request */
static void bytes_in_and_after_the_syn_make_one_request(struct kunit *test)
{
	size_t cut;

	for (cut = 0; cut <= 28; cut++) {
		struct fake *f = fast_opener(test, false);

		KUNIT_ASSERT_EQ(test, cut, dial(f, cut));
		KUNIT_EXPECT_EQ(test, 0, f->sends);
		KUNIT_EXPECT_EQ(test, IW_MPA_CONNECTING, f->s.state);
		KUNIT_EXPECT_EQ(test, 150000u, f->deadline);

		KUNIT_EXPECT_EQ(test, IW_MPA_NEXT_WAIT,
				iw_mpa_connected(&f->s));
		KUNIT_EXPECT_EQ(test, IW_MPA_REQ_SENT, f->s.state);
		KUNIT_EXPECT_EQ(test, 10000u, f->deadline);
		KUNIT_EXPECT_EQ(test, cut < 28, f->sends);
		expect_sent_in_two(f, REQ_PING, cut);

		/* The Reply is checked against the whole Request */
		KUNIT_EXPECT_EQ(test, IW_MPA_NEXT_DONE,
				feed(f, REP "500200048008c008", 532, false));
		KUNIT_EXPECT_EQ(test, 1, f->events);
		KUNIT_EXPECT_EQ(test, 0, f->ev.status);
		KUNIT_EXPECT_EQ(test, RDMA_MPA_RTR_WRITE, (int)f->rdma.rtr);
		KUNIT_EXPECT_EQ(test, 8, (int)f->rdma.ird);
	}
}

/* IOP-06: the second attempt sends its own Request after the handshake */
static void rev1_retry_sends_no_request_in_the_syn(struct kunit *test)
{
	struct fake *f = fast_opener(test, true);

	KUNIT_EXPECT_EQ(test, 28, (int)dial(f, IW_MPA_FRAME_MAX));
	iw_mpa_fast_opened(&f->s);
	iw_mpa_connected(&f->s);
	KUNIT_EXPECT_EQ(test, 0, f->sends);
	KUNIT_EXPECT_TRUE(test, f->s.setup->fast_opened);

	KUNIT_EXPECT_EQ(test, IW_MPA_NEXT_RECONNECT,
			iw_mpa_peer_gone(&f->s, 0));
	KUNIT_EXPECT_FALSE(test, f->s.setup->fast_opened);
	KUNIT_EXPECT_EQ(test, 0, (int)dial(f, IW_MPA_FRAME_MAX));
	KUNIT_EXPECT_EQ(test, IW_MPA_NEXT_WAIT, iw_mpa_connected(&f->s));
	expect_sent(f, REQ "0001000470696e67");
	KUNIT_EXPECT_EQ(test, 0, f->events);
}

/* ERR-06 INI-15: the SYN gets a RST or no answer */
static void unanswered_syn_with_a_request_causes_exactly_one_event(struct kunit *test)
{
	struct fake *f = fast_opener(test, true);

	dial(f, IW_MPA_FRAME_MAX);
	expect_over(f, iw_mpa_peer_gone(&f->s, -ECONNREFUSED), 1);
	KUNIT_EXPECT_EQ(test, -ECONNREFUSED, f->ev.status);

	f = fast_opener(test, true);
	dial(f, IW_MPA_FRAME_MAX);
	expect_over(f, iw_mpa_timeout(&f->s), 1);
	KUNIT_EXPECT_EQ(test, -ETIMEDOUT, f->ev.status);
}

/* ---- ports */

static const struct iw_mpa_choice fast_open_on = {
	RDMA_MPA_SETTING_FASTOPEN, RDMA_MPA_FASTOPEN_ON
};

static void requests_in_syns_are_counted(struct kunit *test)
{
	struct iw_mpa_caps caps = fake_caps;
	struct iw_mpa_device *dev;
	struct fake *f;

	caps.fastopen = true;
	dev = new_iw_device(test, &caps, &fast_open_on, 1);
	f = open_on(test, dev);
	iw_mpa_connect(&f->s, &ulp_ping);
	iw_mpa_fast_opened(&f->s);
	iw_mpa_connected(&f->s);
	KUNIT_EXPECT_EQ(test, 1ULL, counted(test, dev, "mpa_req_sent_syn"));
	KUNIT_EXPECT_EQ(test, 0ULL, counted(test, dev, "mpa_req_rcvd_syn"));
	iw_mpa_abort(&f->s, -ENODEV);

	f = open_on(test, dev);
	iw_mpa_respond(&f->s);
	iw_mpa_fast_opened(&f->s);
	KUNIT_EXPECT_EQ(test, 1ULL, counted(test, dev, "mpa_req_sent_syn"));
	KUNIT_EXPECT_EQ(test, 1ULL, counted(test, dev, "mpa_req_rcvd_syn"));
	iw_mpa_abort(&f->s, -ENODEV);
	/* After the end of the session the call has no effect */
	iw_mpa_fast_opened(&f->s);
	KUNIT_EXPECT_EQ(test, 1ULL, counted(test, dev, "mpa_req_rcvd_syn"));
	iw_mpa_unregister_device(dev);
}

/* A device without Fast Open ignores an inherited `fastopen on` */
static void fast_open_is_ignored_if_unsupported(struct kunit *test)
{
	struct iw_mpa_caps caps = fake_caps;
	struct iw_mpa_device *dev;

	dev = new_iw_device(test, &caps, &fast_open_on, 1);
	KUNIT_EXPECT_FALSE(test,
			   open_on(test, dev)->s.setup->config.policy.fastopen);
	iw_mpa_unregister_device(dev);

	caps.fastopen = true;
	dev = new_iw_device(test, &caps, &fast_open_on, 1);
	KUNIT_EXPECT_TRUE(test,
			  open_on(test, dev)->s.setup->config.policy.fastopen);
	iw_mpa_unregister_device(dev);
}

/* A listener on a device without Fast Open accepts no Request in a SYN */
static void listener_accepts_requests_in_syns_if_supported(struct kunit *test)
{
	struct iw_mpa_caps caps = fake_caps;
	int on, can;

	for (on = 0; on < 2; on++)
		for (can = 0; can < 2; can++) {
			struct iw_mpa_device *dev;
			struct iw_mpa_config *config;

			caps.fastopen = can;
			dev = new_iw_device(test, &caps, &fast_open_on, on);
			config = iw_mpa_config_get(dev, 1, NULL);
			KUNIT_ASSERT_FALSE(test, IS_ERR(config));
			KUNIT_EXPECT_EQ(test, on && can,
					iw_mpa_config_fast_open(config));
			iw_mpa_config_put(config);
			iw_mpa_unregister_device(dev);
		}
}

static struct kunit_case fastopen_cases[] = {
	KUNIT_CASE(request_is_in_the_syn_only_if_enabled_and_supported),
	KUNIT_CASE(request_is_in_the_syn_only_before_tcp_connects),
	KUNIT_CASE(bytes_in_and_after_the_syn_make_one_request),
	KUNIT_CASE(rev1_retry_sends_no_request_in_the_syn),
	KUNIT_CASE(unanswered_syn_with_a_request_causes_exactly_one_event),
	KUNIT_CASE(requests_in_syns_are_counted),
	KUNIT_CASE(fast_open_is_ignored_if_unsupported),
	KUNIT_CASE(listener_accepts_requests_in_syns_if_supported),
	{}
};

static struct kunit_suite fastopen_suite = {
	.name = "iw_mpa_fastopen",
	.init = open_endpoints,
	.exit = close_endpoints,
	.test_cases = fastopen_cases,
};

kunit_test_suite(fastopen_suite);

MODULE_DESCRIPTION("KUnit tests of MPA Requests in TCP's SYN");
MODULE_LICENSE("GPL");
MODULE_IMPORT_NS("EXPORTED_FOR_KUNIT_TESTING");
