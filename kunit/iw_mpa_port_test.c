// SPDX-License-Identifier: GPL-2.0
/*
 * Sessions of a registered device: fallback to Rev 1 and the cache of peers,
 * counters, initial settings.
 */
#include <kunit/test.h>
#include <linux/in.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/string.h>
#include <net/net_namespace.h>

#include "device.h"
#include "iw_mpa_fake.h"

static const struct iw_mpa_policy *fallback_policy(enum rdma_mpa_model model)
{
	static struct iw_mpa_policy policy;

	policy = iw_mpa_default_policy;
	policy.fallback = true;
	policy.model = model;
	return &policy;
}

/* IOP-06 IOP-07 AMB-23: one retry, same private data, one outcome (INI-15) */
static void close_on_request_falls_back_to_rev1(struct kunit *test)
{
	static const int errs[] = { 0, -ECONNRESET, -EPIPE };
	struct iw_mpa_ulp ulp = { .ird = 8, .ord = 8, .pdata = "ping",
				  .pdata_len = 4 };
	struct fake *f;
	int i;

	for (i = 0; i < ARRAY_SIZE(errs); i++) {
		f = new_fake(test, fallback_policy(RDMA_MPA_MODEL_PEER_TO_PEER));
		KUNIT_ASSERT_EQ(test, 0, iw_mpa_connect(&f->s, &ulp));
		iw_mpa_connected(&f->s);
		expect_sent(f, REQ "100200088008c00870696e67");

		KUNIT_EXPECT_EQ(test, IW_MPA_NEXT_RECONNECT,
				iw_mpa_peer_gone(&f->s, errs[i]));
		KUNIT_EXPECT_EQ(test, 150000u, f->deadline);
		KUNIT_EXPECT_EQ(test, 0, f->events);
		KUNIT_EXPECT_EQ(test, IW_MPA_NEXT_WAIT,
				iw_mpa_connected(&f->s));
		expect_sent(f, REQ "0001000470696e67");

		expect_over(f, iw_mpa_peer_gone(&f->s, errs[i]), 1);
		KUNIT_EXPECT_EQ(test, 2, f->sends);
	}
}

/* IOP-08 AMB-23: timeouts, a byte of the peer, a ULP that requires Rev 2 */
static void no_rev1_fallback_unless_policy_and_peer_allow_it(struct kunit *test)
{
	struct fake *f = initiator(test);

	expect_over(f, iw_mpa_peer_gone(&f->s, 0), 1);

	f = connecting(test, fallback_policy(RDMA_MPA_MODEL_PEER_TO_PEER_REQUIRED));
	iw_mpa_connected(&f->s);
	expect_over(f, iw_mpa_peer_gone(&f->s, 0), 1);

	f = connecting(test, fallback_policy(RDMA_MPA_MODEL_PEER_TO_PEER));
	expect_over(f, iw_mpa_peer_gone(&f->s, -ECONNRESET), 1);

	f = connecting(test, fallback_policy(RDMA_MPA_MODEL_PEER_TO_PEER));
	iw_mpa_connected(&f->s);
	expect_over(f, iw_mpa_timeout(&f->s), 1);

	f = connecting(test, fallback_policy(RDMA_MPA_MODEL_PEER_TO_PEER));
	iw_mpa_connected(&f->s);
	expect_over(f, iw_mpa_peer_gone(&f->s, -ETIMEDOUT), 1);

	f = connecting(test, fallback_policy(RDMA_MPA_MODEL_PEER_TO_PEER));
	iw_mpa_connected(&f->s);
	feed(f, "4d", 1, false);
	expect_over(f, iw_mpa_peer_gone(&f->s, 0), 1);
}

static void set_peer(struct fake *f, u32 ip, u16 port)
{
	struct sockaddr_in sin = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(ip),
		.sin_port = htons(port),
	};

	iw_mpa_set_peer(&f->s, &init_net, (struct sockaddr *)&sin);
}

/* ---- peers that support only Rev 1 */

static const struct iw_mpa_choice fallback[] = {
	{ RDMA_MPA_SETTING_REVISION, RDMA_MPA_REVISION_FALLBACK },
};

/* Options of a program: @setting is @value */
static struct iw_mpa_layer option(struct kunit *test,
				  enum rdma_mpa_setting setting, u32 value)
{
	struct iw_mpa_layer layer = {};

	KUNIT_ASSERT_EQ(test, 0, iw_mpa_layer_set(&layer, setting, value));
	return layer;
}

static void expect_first_rev(struct kunit *test, struct iw_mpa_device *dev,
			     const struct iw_mpa_layer *options, u32 ip,
			     u16 port, u8 rev)
{
	struct fake *f = open_with(test, dev, options);

	set_peer(f, ip, port);
	KUNIT_ASSERT_EQ(test, 0, iw_mpa_connect(&f->s, &ulp_8_8));
	iw_mpa_connected(&f->s);
	KUNIT_EXPECT_EQ(test, rev, f->tx[17]);
	iw_mpa_session_close(&f->s);
}

/* The peer closes on a Rev 2 Request, then waits for a Rev 1 Request */
static struct fake *try_rev2(struct kunit *test, struct iw_mpa_device *dev,
			     const struct iw_mpa_layer *options, u32 ip)
{
	struct fake *f = open_with(test, dev, options);

	set_peer(f, ip, 7174);
	KUNIT_ASSERT_EQ(test, 0, iw_mpa_connect(&f->s, &ulp_8_8));
	iw_mpa_connected(&f->s);
	KUNIT_EXPECT_EQ(test, 2, f->tx[17]);
	KUNIT_EXPECT_EQ(test, IW_MPA_NEXT_RECONNECT, iw_mpa_peer_gone(&f->s, 0));
	iw_mpa_connected(&f->s);
	KUNIT_EXPECT_EQ(test, 1, f->tx[17]);
	return f;
}

static void answer_rev1(struct kunit *test, struct fake *f)
{
	KUNIT_EXPECT_EQ(test, IW_MPA_NEXT_DONE,
			feed(f, REP "00010000", 64, false));
	KUNIT_EXPECT_EQ(test, 1, f->events);
	KUNIT_EXPECT_EQ(test, 0, f->ev.status);
	KUNIT_EXPECT_EQ(test, 0, f->rdma.rtr);
}

/* IOP-09: no RTR in Rev 1 */
static void rev1_peer_is_remembered(struct kunit *test)
{
	struct iw_mpa_device *dev = new_iw_device(test, &fake_caps, fallback,
						  ARRAY_SIZE(fallback));
	const u32 ip = 0xc0000201; /* 192.0.2.1 */
	struct fake *f = try_rev2(test, dev, NULL, ip);

	/* The peer has not answered the Rev 1 Request yet */
	expect_first_rev(test, dev, NULL, ip, 7174, 2);
	answer_rev1(test, f);

	expect_first_rev(test, dev, NULL, ip, 7174, 1);
	expect_first_rev(test, dev, NULL, ip, 7175, 2);
	expect_first_rev(test, dev, NULL, ip + 1, 7174, 2);
	iw_mpa_unregister_device(dev);
}

/* Any user may set options. The dialect option can make a peer close. */
static void options_of_one_program_affect_no_rev1_fallback_of_others(struct kunit *test)
{
	const struct iw_mpa_layer options[] = {
		option(test, RDMA_MPA_SETTING_REVISION,
		       RDMA_MPA_REVISION_FALLBACK),
		option(test, RDMA_MPA_SETTING_DIALECT,
		       RDMA_MPA_DIALECT_EARLY_DRAFT),
	};
	struct iw_mpa_device *dev = new_iw_device(test, &fake_caps, fallback,
						  ARRAY_SIZE(fallback));
	const u32 ip = 0xc0000211; /* 192.0.2.17 */
	int i;

	for (i = 0; i < ARRAY_SIZE(options); i++) {
		answer_rev1(test, try_rev2(test, dev, &options[i], ip + i));
		expect_first_rev(test, dev, NULL, ip + i, 7174, 2);
		expect_first_rev(test, dev, &options[i], ip + i, 7174, 2);
	}
	iw_mpa_unregister_device(dev);
}

static void rev1_peer_is_remembered_for_one_port_until_its_policy_changes(struct kunit *test)
{
	struct iw_mpa_device *dev = new_iw_device(test, &fake_caps, fallback,
						  ARRAY_SIZE(fallback));
	struct iw_mpa_device *other = new_iw_device(test, &fake_caps, fallback,
						    ARRAY_SIZE(fallback));
	const struct iw_mpa_change change = {
		.layer = option(test, RDMA_MPA_SETTING_REPLY_MS, 20000),
	};
	const struct iw_mpa_place place = { .dev = dev };
	const u32 ip = 0xc0000221; /* 192.0.2.33 */
	char why[96];

	answer_rev1(test, try_rev2(test, dev, NULL, ip));
	expect_first_rev(test, other, NULL, ip, 7174, 2);
	expect_first_rev(test, dev, NULL, ip, 7174, 1);

	mutex_lock(&iw_mpa_devices_lock);
	KUNIT_EXPECT_EQ(test, 0, iw_mpa_change_layer(&place, &change, why,
						     sizeof(why)));
	mutex_unlock(&iw_mpa_devices_lock);
	expect_first_rev(test, dev, NULL, ip, 7174, 2);
	iw_mpa_unregister_device(other);
	iw_mpa_unregister_device(dev);
}

/* ---- counters */

/* Connections that have begun and not ended */
static u64 half_open(struct kunit *test, struct iw_mpa_device *dev,
		     const char *role)
{
	static const char * const ends[] = { "established", "failed" };
	char name[40];
	u64 value;
	int i;

	snprintf(name, sizeof(name), "mpa_started_%s", role);
	value = counted(test, dev, name);
	for (i = 0; i < ARRAY_SIZE(ends); i++) {
		snprintf(name, sizeof(name), "mpa_%s_%s", ends[i], role);
		value -= counted(test, dev, name);
	}
	return value;
}

/* Like initiator(), on a port with counters; enter_rdma fails */
static void initiator_whose_qp_fails(struct kunit *test,
				     struct iw_mpa_device *dev, int term_rv)
{
	struct fake *f = open_on(test, dev);

	f->enter_rv = -ENOMEM;
	f->term_rv = term_rv;
	KUNIT_ASSERT_EQ(test, 0, iw_mpa_connect(&f->s, &ulp_8_8));
	iw_mpa_connected(&f->s);
	KUNIT_EXPECT_EQ(test, 1ULL, half_open(test, dev, "initiator"));
	expect_over(f, feed(f, REP "500200048008c008", 532, false), 1);
	KUNIT_EXPECT_EQ(test, 0ULL, half_open(test, dev, "initiator"));
}

static void term_is_counted_only_if_the_driver_sends_it(struct kunit *test)
{
	struct iw_mpa_device *dev = new_iw_device(test, &fake_caps, NULL, 0);

	initiator_whose_qp_fails(test, dev, 0);
	KUNIT_EXPECT_EQ(test, 1ULL, counted(test, dev, "mpa_term_sent_local"));
	initiator_whose_qp_fails(test, dev, -EINVAL);
	KUNIT_EXPECT_EQ(test, 1ULL, counted(test, dev, "mpa_term_sent_local"));
	KUNIT_EXPECT_EQ(test, 2ULL, counted(test, dev, "mpa_failed_initiator"));
	iw_mpa_unregister_device(dev);
}

/*
 * Calls of a session, a letter for each: Connect, TCP is Up, Respond,
 * the peer's frame in portions (m) or with More bytes after it, Accept,
 * reJect, the first FPDU by its kind (s, w, r; other kinds: o), peer Gone,
 * Timeout, aBort, a byte (x), the SYN (Y), a TERM of the peer by its code.
 */
static void act_out(struct fake *f, char letter, const char *frame)
{
	enum iw_mpa_next next;

	switch (letter) {
	case 'C':
		KUNIT_ASSERT_EQ(f->test, 0, iw_mpa_connect(&f->s, &ulp_8_8));
		break;
	case 'U':
		iw_mpa_connected(&f->s);
		break;
	case 'R':
		iw_mpa_respond(&f->s);
		break;
	case 'm':
		feed(f, frame, 3, false);
		break;
	case 'M':
		feed(f, frame, 532, true);
		break;
	case 'A':
		iw_mpa_accept(&f->s, NULL, &ulp_8_8);
		break;
	case 'J':
		iw_mpa_reject(&f->s, NULL, 0);
		break;
	case 'w':
		iw_mpa_first_fpdu(&f->s, RDMA_MPA_RTR_WRITE);
		break;
	case 'r':
		iw_mpa_first_fpdu(&f->s, RDMA_MPA_RTR_READ);
		break;
	case 's':
		iw_mpa_first_fpdu(&f->s, RDMA_MPA_RTR_SEND);
		break;
	case 'o':
		iw_mpa_first_fpdu(&f->s, 0);
		break;
	case 'G':
		iw_mpa_peer_gone(&f->s, 0);
		break;
	case 'T':
		iw_mpa_timeout(&f->s);
		break;
	case 'B':
		iw_mpa_abort(&f->s, -ENODEV);
		break;
	case 'x':
		receive(f, "x", 1, &next);
		break;
	case 'Y':
		iw_mpa_fast_opened(&f->s);
		break;
	case '4':
		iw_mpa_term_received(&f->s, 2, 0, 4);
		break;
	case '5':
		iw_mpa_term_received(&f->s, 2, 0, 5);
		break;
	case '6':
		iw_mpa_term_received(&f->s, 2, 0, 6);
		break;
	case '7':
		iw_mpa_term_received(&f->s, 2, 0, 7);
		break;
	default:
		KUNIT_FAIL(f->test, "no letter %c", letter);
	}
}

/**
 * struct story - a session and its counters
 * @what: its name
 * @letters: calls in the format of act_out()
 * @frame: the peer's frame
 * @counted: names of counters without "mpa_"; each is 1, all others are 0
 */
struct story {
	const char *what;
	const char *letters;
	const char *frame;
	const char *counted;
};

#define TRIED " started_initiator req_sent_rev2 req_sent_enhanced "
#define TRIED_REV1 TRIED "fallbacks req_sent_rev1 "
#define ASKED " started_responder req_rcvd_rev2 req_rcvd_enhanced "
#define ANSWERED ASKED "rep_sent_rev2 rep_sent_enhanced "
#define REPLIED TRIED "rep_rcvd_rev2 rep_rcvd_enhanced "
#define LOST " failed_initiator "
#define GONE " failed_responder "

static const struct story stories[] = {
	{ "a session on which no function is called counts nothing", "", NULL, "" },
	{ "a started TCP connect is counted once", "C", NULL, " started_initiator " },
	{ "a sent Request is counted by revision and as enhanced", "CU", NULL, TRIED },
	{ "a Request sent in the SYN is counted as such", "CYU", NULL, TRIED "req_sent_syn " },
	{ "a sent Write RTR is counted", "CUm", REP "5002000480088008",
	  REPLIED "rtr_sent_write established_initiator " },
	{ "a sent Read RTR is counted", "CUm", REP "5002000480084008",
	  REPLIED "rtr_sent_read established_initiator " },
	{ "a sent Send RTR and a TERM 2/0/7 after it are counted", "CUm7", REP "50020004c0080008",
	  REPLIED "rtr_sent_send established_initiator term_rcvd_rtr " },
	{ "a connection lost after it was established is not counted as failed",
	  "CUmGGTB", REP "5002000480088008",
	  REPLIED "rtr_sent_write established_initiator " },
	{ "a received Reject is counted as such and as a failure", "CUm", REP "7002000480088008",
	  REPLIED "reject_rcvd" LOST },
	{ "a Reply timeout is counted once, later events are not", "CUTTGBx", NULL,
	  TRIED "timeout_reply" LOST },
	{ "a TCP connect timeout is counted", "CT", NULL,
	  " started_initiator timeout_connect" LOST },
	{ "a refused TCP connection is counted as a failure",
	  "CG", NULL, " started_initiator" LOST },
	{ "an abort after the Request is counted as a failure", "CUB", NULL, TRIED LOST },
	{ "a Rev 1 fallback that succeeds is counted as established", "CUGUm", REP "00010000",
	  TRIED_REV1 "rep_rcvd_rev1 established_initiator " },
	{ "a Rev 1 fallback that fails is counted as a failure", "CUGUG", NULL, TRIED_REV1 LOST },
	{ "a Reply without a usable RTR is counted as a sent TERM 2/0/7",
	  "CUm", REP "5002000400080008",
	  REPLIED "term_sent_rtr" LOST },
	{ "a Reply with an excessive ORD is counted as a sent TERM 2/0/6",
	  "CUm", REP "5002000480088081",
	  REPLIED "term_sent_ird" LOST },
	{ "a plain Reply to an enhanced Request is counted as a failure", "CUm", REP "00020000",
	  TRIED "rep_rcvd_rev2" LOST },
	{ "a Reply of Rev 0 is counted as a bad revision",
	  "CUm", REP "00000000", TRIED "bad_rev" LOST },
	{ "a Reply of Rev 3 is counted as a bad revision",
	  "CUm", REP "00030000", TRIED "bad_rev" LOST },
	{ "a Reply with the key of a Request is counted as a bad key",
	  "CUm", REQ "5002000480088008",
	  TRIED "bad_key" LOST },
	{ "a Reply with PD_Length 513 is counted as a bad length", "CUm", REP "50020201",
	  TRIED "bad_pdata_len" LOST },
	{ "an enhanced Reply without IRD/ORD is counted as a missing block", "CUm", REP "50020000",
	  TRIED "bad_block" LOST },
	{ "bytes after an Accept are counted as trailing", "CUM", REP "5002000480088008",
	  REPLIED "bad_trailing" LOST },
	{ "bytes after a Reject are not counted as trailing", "CUM", REP "7002000480088008",
	  REPLIED "reject_rcvd" LOST },

	{ "a responder that waits for the Request is counted as started",
	  "R", NULL, " started_responder " },
	{ "a Request timeout is counted once",
	  "RTT", NULL, " started_responder timeout_request" GONE },
	{ "a TCP close without a Request is counted as a failure",
	  "RGG", NULL, " started_responder" GONE },
	{ "a Request received in a SYN is counted as such", "RYm", REQ "5002000480088008",
	  ASKED "req_rcvd_syn " },
	{ "an accepted plain Request is counted as established", "RmA", REQ "00010000",
	  " started_responder req_rcvd_rev1 rep_sent_rev1 established_responder " },
	{ "an accepted Rev 2 Request without enhancements is counted as established",
	  "RmA", REQ "00020000",
	  " started_responder req_rcvd_rev2 rep_sent_rev2 established_responder " },
	{ "an accepted client-server Request is counted as established",
	  "RmA", REQ "5002000400080008",
	  ANSWERED "established_responder " },
	{ "an accepted peer-to-peer Request is not established before its RTR",
	  "RmA", REQ "500200048008c008", ANSWERED },
	{ "a received Write RTR is counted as such and as established",
	  "RmAw", REQ "500200048008c008",
	  ANSWERED "rtr_rcvd_write established_responder " },
	{ "a received Read RTR is counted, later FPDUs are not", "RmArrw", REQ "500200048008c008",
	  ANSWERED "rtr_rcvd_read established_responder " },
	{ "a received Send RTR is counted as such and as established",
	  "RmAs", REQ "500200048008c008",
	  ANSWERED "rtr_rcvd_send established_responder " },
	{ "an FPDU in place of the RTR is counted as such and as an established connection",
	  "RmAo", REQ "500200048008c008",
	  ANSWERED "rtr_rcvd_other established_responder " },
	{ "a TERM 2/0/6 in place of the RTR is counted as such and as a failure",
	  "RmA6G", REQ "500200048008c008",
	  ANSWERED "term_rcvd_ird" GONE },
	{ "a TERM 2/0/5 in place of the RTR is counted as such and as a failure",
	  "RmA5G", REQ "500200048008c008",
	  ANSWERED "term_rcvd_local" GONE },
	{ "a TERM other than 2/0/5 or 2/0/6 instead of the RTR is counted as such and as a failure",
	  "RmA4G", REQ "500200048008c008",
	  ANSWERED "term_rcvd_other" GONE },
	{ "an RTR timeout is counted as such and as a failure", "RmAT", REQ "500200048008c008",
	  ANSWERED "timeout_rtr" GONE },
	{ "a Request rejected by the ULP is counted as a sent Reject",
	  "RmJ", REQ "5002000480088008",
	  ANSWERED "reject_sent" GONE },
	{ "a timeout of the ULP's answer is counted, its late answer is not",
	  "RmTAJ", REQ "5002000480088008",
	  ASKED "timeout_decide" GONE },
	{ "a close by the peer before the ULP's answer is counted as a failure",
	  "RmGA", REQ "5002000480088008",
	  ASKED GONE },
	{ "data before the Reply is counted as trailing bytes", "Rmx", REQ "5002000480088008",
	  ASKED "bad_trailing" GONE },
	{ "bytes after the Request are counted as trailing", "RM", REQ "5002000480088008",
	  ASKED "bad_trailing" GONE },
	{ "a Request of Rev 0 is counted as a bad revision", "Rm", REQ "00000000",
	  " started_responder bad_rev" GONE },
	{ "a Request for markers is counted as rejected", "Rm", REQ "80010000",
	  " started_responder req_rcvd_rev1 rep_sent_rev1 reject_sent" GONE },
};

static void story_desc(const struct story *c, char *desc)
{
	strscpy(desc, c->what, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(story, stories, story_desc);

static unsigned int words_in(const char *text)
{
	unsigned int n = 0;

	for (; *text; text++)
		n += *text != ' ' && (text[1] == ' ' || !text[1]);
	return n;
}

static void session_counts_each_event_once(struct kunit *test)
{
	const struct iw_mpa_choice fallback = { RDMA_MPA_SETTING_REVISION,
						RDMA_MPA_REVISION_FALLBACK };
	const struct story *c = test->param_value;
	struct iw_mpa_caps caps = fake_caps;
	struct iw_mpa_device *dev;
	struct rdma_hw_stats *stats;
	unsigned int found = 0;
	const char *letter;
	char word[40];
	struct fake *f;
	int i;

	caps.rtr_send = IW_MPA_RTR_ALL;
	dev = new_iw_device(test, &caps, &fallback, 1);
	f = open_on(test, dev);
	for (letter = c->letters; *letter; letter++)
		act_out(f, *letter, c->frame);

	stats = read_counters(test, dev);
	for (i = 0; i < stats->num_counters; i++) {
		const char *name = stats->descs[i].name;
		bool due;

		KUNIT_ASSERT_EQ(test, 0, strncmp(name, "mpa_", 4));
		snprintf(word, sizeof(word), " %s ", name + 4);
		due = strstr(c->counted, word);
		found += due;
		KUNIT_EXPECT_EQ_MSG(test, (u64)due, stats->value[i], "%s", name);
	}
	KUNIT_EXPECT_EQ(test, words_in(c->counted), found);
	rdma_free_hw_stats_struct(stats);
	iw_mpa_session_close(&f->s);
	iw_mpa_unregister_device(dev);
}

/* A session that has not started is not counted */
static void refused_connect_is_not_counted(struct kunit *test)
{
	struct iw_mpa_device *dev = new_iw_device(test, &fake_caps, NULL, 0);
	const struct iw_mpa_ulp ulp = { .ird = 129 };
	struct fake *f = open_on(test, dev);

	KUNIT_EXPECT_EQ(test, -EINVAL, iw_mpa_connect(&f->s, &ulp));
	KUNIT_EXPECT_EQ(test, 0ULL,
			counted(test, dev, "mpa_started_initiator"));
	KUNIT_EXPECT_EQ(test, 0ULL, counted(test, dev, "mpa_failed_initiator"));

	f = open_on(test, dev);
	iw_mpa_abort(&f->s, -ENODEV);
	KUNIT_EXPECT_EQ(test, 0ULL,
			counted(test, dev, "mpa_started_initiator"));
	KUNIT_EXPECT_EQ(test, 0ULL, counted(test, dev, "mpa_failed_initiator"));
	iw_mpa_unregister_device(dev);
}

/* ---- initial settings */

/* RSP-13: initial settings must be valid and supported by the device */
static void initial_driver_settings_are_checked_against_the_device(struct kunit *test)
{
	struct ib_device *ibdev = kunit_kzalloc(test, sizeof(*ibdev),
						GFP_KERNEL);
	struct iw_mpa_choice choice = {
		RDMA_MPA_SETTING_RTR_OFFER, RDMA_MPA_RTR_SEND
	};
	const struct iw_mpa_driver driver = {
		.ops = &fake_ops,
		.caps = fake_caps,
		.initial = &choice,
		.num_initial = 1,
	};

	KUNIT_ASSERT_NOT_NULL(test, ibdev);
	ibdev->phys_port_cnt = 1;
	ibdev->dev.init_name = "fake";
	/* A kind that the device cannot send, then an invalid value */
	KUNIT_EXPECT_PTR_EQ(test, ERR_PTR(-EINVAL),
			    iw_mpa_register_device(ibdev, &driver));
	choice.value = 8;
	KUNIT_EXPECT_PTR_EQ(test, ERR_PTR(-EINVAL),
			    iw_mpa_register_device(ibdev, &driver));
	choice.setting = 0;
	choice.value = 1;
	KUNIT_EXPECT_PTR_EQ(test, ERR_PTR(-EINVAL),
			    iw_mpa_register_device(ibdev, &driver));
}

static struct kunit_case port_cases[] = {
	KUNIT_CASE(close_on_request_falls_back_to_rev1),
	KUNIT_CASE(no_rev1_fallback_unless_policy_and_peer_allow_it),
	KUNIT_CASE(rev1_peer_is_remembered),
	KUNIT_CASE(options_of_one_program_affect_no_rev1_fallback_of_others),
	KUNIT_CASE(rev1_peer_is_remembered_for_one_port_until_its_policy_changes),
	KUNIT_CASE(term_is_counted_only_if_the_driver_sends_it),
	KUNIT_CASE_PARAM(session_counts_each_event_once,
			 story_gen_params),
	KUNIT_CASE(refused_connect_is_not_counted),
	KUNIT_CASE(initial_driver_settings_are_checked_against_the_device),
	{}
};

static struct kunit_suite port_suite = {
	.name = "iw_mpa_port",
	.init = open_endpoints,
	.exit = close_endpoints,
	.test_cases = port_cases,
};

kunit_test_suite(port_suite);

MODULE_DESCRIPTION("KUnit tests of iw_mpa's sessions on a port");
MODULE_LICENSE("GPL");
MODULE_IMPORT_NS("EXPORTED_FOR_KUNIT_TESTING");
