// SPDX-License-Identifier: GPL-2.0
/*
 * The session's state machine under a driver that only records calls.
 *
 * Frames are those of the conformance matrix ("V" numbers).
 */
#include <kunit/test.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/string.h>

#include "iw_mpa_fake.h"

/* V12 with C=0, as the default policy does not demand CRCs */
static void default_request_offers_write_and_read_rtr(struct kunit *test)
{
	struct fake *f = initiator(test);

	expect_sent(f, REQ "100200048008c008");
	KUNIT_EXPECT_EQ(test, IW_MPA_REQ_SENT, f->s.state);
	KUNIT_EXPECT_EQ(test, 10000u, f->deadline);
	KUNIT_EXPECT_EQ(test, 0, f->enters);
}

/* INI-02 INI-10 RTR-06 RTR-15: V37 answers V12 */
static void initiator_enters_rdma_mode_when_it_sends_the_rtr(struct kunit *test)
{
	struct fake *f = initiator(test);

	KUNIT_EXPECT_EQ(test, IW_MPA_NEXT_DONE,
			feed(f, REP "500200048008c008", 532, false));
	KUNIT_EXPECT_EQ(test, 1, f->sends);
	KUNIT_EXPECT_EQ(test, 1, f->enters);
	KUNIT_EXPECT_EQ(test, RDMA_MPA_RTR_WRITE, (int)f->rdma.rtr);
	KUNIT_EXPECT_TRUE(test, f->rdma.crc);
	KUNIT_EXPECT_FALSE(test, f->rdma.responder);
	KUNIT_EXPECT_EQ(test, 1, f->events);
	KUNIT_EXPECT_EQ(test, IW_MPA_EVENT_REPLY, f->ev.type);
	KUNIT_EXPECT_EQ(test, 0, f->ev.status);
	KUNIT_EXPECT_EQ(test, 0u, f->deadline);
	KUNIT_EXPECT_EQ(test, IW_MPA_RDMA, f->s.state);
}

/* SEC-05: any segmentation gives the same result; V38 carries "pong" */
static void reply_may_arrive_in_any_portions(struct kunit *test)
{
	size_t chunk;

	for (chunk = 1; chunk <= 29; chunk++) {
		struct fake *f = initiator(test);

		KUNIT_EXPECT_EQ(test, IW_MPA_NEXT_DONE,
				feed(f, REP "50020008c008c008706f6e67", chunk,
				     false));
		KUNIT_EXPECT_EQ(test, 1, f->events);
		KUNIT_EXPECT_EQ(test, 4, (int)f->ev.pdata_len);
		KUNIT_EXPECT_EQ(test, 0, memcmp(f->pdata, "pong", 4));
	}
}

struct bad_reply {
	const char *what;
	const char *hex;
	int status;
	enum rdma_mpa_ecode ecode;
	int terms;
	bool more;
};

static const struct bad_reply bad_replies[] = {
	{ "SEC-04 S4d: an enhanced Accept with PD_Length 0 fails as a bad frame",
	  REP "50020000", -EPROTO, RDMA_MPA_ECODE_BAD_FRAME },
	{ "SEC-04 S4d: an enhanced Accept with PD_Length 2 fails as a bad frame",
	  REP "500200028008", -EPROTO, RDMA_MPA_ECODE_BAD_FRAME },
	{ "SEC-03 FRM-20: a Reply header with PD_Length 65535 fails as a bad frame",
	  REP "5002ffff", -EPROTO, RDMA_MPA_ECODE_BAD_FRAME },
	{ "INI-08: a Request in place of a Reply fails as a bad frame",
	  REQ "500200048008c008", -EPROTO, RDMA_MPA_ECODE_BAD_FRAME },
	{ "IOP-13 AMB-07: a Reply of Rev 3 fails as a bad frame", REP "50030000", -EPROTO,
	  RDMA_MPA_ECODE_BAD_FRAME },
	{ "IOP-13 AMB-07: a Reply of Rev 0 fails as a bad frame", REP "40000000", -EPROTO,
	  RDMA_MPA_ECODE_BAD_FRAME },
	{ "IOP-14 AMB-04 V48: a plain Accept of an enhanced Request fails as a bad frame",
	  REP "4001000400080004", -EPROTO,
	  RDMA_MPA_ECODE_BAD_FRAME },
	{ "IOP-17: an Accept that requests markers fails as a bad frame",
	  REP "d00200048008c008", -EPROTO,
	  RDMA_MPA_ECODE_BAD_FRAME },
	{ "SEC-06: an Accept followed by a byte fails as a bad frame",
	  REP "500200048008c008", -EPROTO,
	  RDMA_MPA_ECODE_BAD_FRAME, 0, true },
	{ "RTR-07 RTR-12 V47: a client-server Accept of a p2p Request gets TERM 2/0/7",
	  REP "5002000400080008",
	  -EPROTO, RDMA_MPA_ECODE_RTR, 1 },
	{ "RTR-11 V50: a p2p Accept without an RTR kind gets TERM 2/0/7",
	  REP "5002000480080008", -EPROTO,
	  RDMA_MPA_ECODE_RTR, 1 },
	{ "IRD-15 ERR-03: an Accept with ORD 129 above the limit of 128 gets TERM 2/0/6",
	  REP "5002000480088081",
	  -ENOMEM, RDMA_MPA_ECODE_IRD, 1 },
	{ "INI-09 V31: a Rev 1 Reject is reported as ECONNREFUSED",
	  REP "600100026e6f", -ECONNREFUSED,
	  RDMA_MPA_ECODE_NONE },
	{ "INI-09 V43: an enhanced Reject is reported as ECONNREFUSED",
	  REP "700200088008c00862757379",
	  -ECONNREFUSED, RDMA_MPA_ECODE_NONE },
	{ "AMB-03 V49: an enhanced Reject without IRD/ORD is reported as ECONNREFUSED",
	  REP "70020000",
	  -ECONNREFUSED, RDMA_MPA_ECODE_NONE },
	{ "a Reject followed by data, as sent by irdma, is reported as ECONNREFUSED",
	  REP "70020000", -ECONNREFUSED,
	  RDMA_MPA_ECODE_NONE, 0, true },
};

static void bad_reply_desc(const struct bad_reply *c, char *desc)
{
	strscpy(desc, c->what, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(bad_reply, bad_replies, bad_reply_desc);

static void bad_mpa_reply_causes_exactly_one_event(struct kunit *test)
{
	const struct bad_reply *c = test->param_value;
	struct fake *f = initiator(test);

	expect_over(f, feed(f, c->hex, 532, c->more), 1);
	KUNIT_EXPECT_EQ(test, IW_MPA_EVENT_REPLY, f->ev.type);
	KUNIT_EXPECT_EQ(test, c->status, f->ev.status);
	KUNIT_EXPECT_EQ(test, c->ecode, f->ev.ecode);
	KUNIT_EXPECT_EQ(test, c->terms, f->terms);
	if (c->terms)
		KUNIT_EXPECT_EQ(test, c->ecode, f->term);
	KUNIT_EXPECT_EQ(test, 0, f->enters);
	/* ERR-06 INI-15: later events change nothing */
	expect_over(f, iw_mpa_peer_gone(&f->s, 0), 1);
	expect_over(f, iw_mpa_timeout(&f->s), 1);
	expect_over(f, iw_mpa_abort(&f->s, -ENODEV), 1);
}

/* IRD-06 ERR-19: the ULP gets the peer's depths with the reject */
static void reject_reports_the_peers_ird_ord_and_private_data(struct kunit *test)
{
	struct fake *f = initiator(test);

	feed(f, REP "700200088008c00862757379", 532, false);
	KUNIT_EXPECT_TRUE(test, f->ev.peer_known);
	KUNIT_EXPECT_EQ(test, 8, (int)f->ev.peer_ird);
	KUNIT_EXPECT_EQ(test, 8, (int)f->ev.peer_ord);
	KUNIT_EXPECT_EQ(test, 4, (int)f->ev.pdata_len);
	KUNIT_EXPECT_EQ(test, 0, memcmp(f->pdata, "busy", 4));
}

/* INI-14 ERR-02: a QP that does not enter RTS is a local catastrophic error */
static void initiator_sends_a_term_if_its_qp_fails(struct kunit *test)
{
	struct fake *f = initiator(test);

	f->enter_rv = -ENOMEM;
	expect_over(f, feed(f, REP "500200048008c008", 532, false), 1);
	KUNIT_EXPECT_EQ(test, 1, f->terms);
	KUNIT_EXPECT_EQ(test, RDMA_MPA_ECODE_LOCAL, f->term);
	KUNIT_EXPECT_EQ(test, -ENOMEM, f->ev.status);
}

/* SEC-08 INI-15: one event; a late reply has no effect */
static void silent_responder_times_out(struct kunit *test)
{
	struct fake *f = initiator(test);

	expect_over(f, iw_mpa_timeout(&f->s), 1);
	KUNIT_EXPECT_EQ(test, -ETIMEDOUT, f->ev.status);
	feed(f, REP "500200048008c008", 532, false);
	KUNIT_EXPECT_EQ(test, 1, f->events);
	KUNIT_EXPECT_EQ(test, 0, f->enters);
}

/* FRM-14 SEC-11: refused before anything is sent */
static void oversized_private_data_or_depth_is_refused_locally(struct kunit *test)
{
	static const u8 pdata[IW_MPA_PDATA_MAX];
	struct iw_mpa_ulp ulp = { .pdata = pdata, .pdata_len = 509 };
	struct fake *f = new_fake(test, &iw_mpa_default_policy);

	KUNIT_EXPECT_EQ(test, -EINVAL, iw_mpa_connect(&f->s, &ulp));
	KUNIT_EXPECT_EQ(test, 0, f->sends);
	KUNIT_EXPECT_EQ(test, 0, f->events);
	KUNIT_EXPECT_NULL(test, f->s.setup);

	f = new_fake(test, &iw_mpa_default_policy);
	ulp.pdata_len = 508;
	KUNIT_EXPECT_EQ(test, 0, iw_mpa_connect(&f->s, &ulp));
	KUNIT_EXPECT_EQ(test, IW_MPA_NEXT_WAIT, iw_mpa_connected(&f->s));
	KUNIT_EXPECT_EQ(test, 532, (int)f->tx_len);

	f = new_fake(test, &iw_mpa_default_policy);
	ulp.ird = 129;
	KUNIT_EXPECT_EQ(test, -EINVAL, iw_mpa_connect(&f->s, &ulp));
	KUNIT_EXPECT_EQ(test, 0, f->sends);
}

/* RSP-01 RSP-17: one event for the ULP, nothing is sent; V13 carries "ping" */
static void request_is_reported_to_the_ulp(struct kunit *test)
{
	size_t chunk;

	for (chunk = 1; chunk <= 29; chunk++) {
		struct fake *f = responder(test);

		KUNIT_EXPECT_EQ(test, 5000u, f->deadline);
		KUNIT_EXPECT_EQ(test, IW_MPA_NEXT_WAIT,
				feed(f, REQ "50020008c008c00470696e67", chunk,
				     false));
		KUNIT_EXPECT_EQ(test, IW_MPA_REQ_RCVD, f->s.state);
		KUNIT_EXPECT_EQ(test, 60000u, f->deadline);
		KUNIT_EXPECT_EQ(test, 0, f->sends);
		KUNIT_EXPECT_EQ(test, 1, f->events);
		KUNIT_EXPECT_EQ(test, IW_MPA_EVENT_REQUEST, f->ev.type);
		/* IRD-29: the peer's ORD sets our IRD, its IRD our ORD */
		KUNIT_EXPECT_EQ(test, 4, (int)f->ev.ird);
		KUNIT_EXPECT_EQ(test, 8, (int)f->ev.ord);
		KUNIT_EXPECT_EQ(test, 8, (int)f->ev.peer_ird);
		KUNIT_EXPECT_EQ(test, 4, (int)f->ev.peer_ord);
		KUNIT_EXPECT_EQ(test, 0, memcmp(f->pdata, "ping", 4));
	}
}

/* IRD-28: if a peer sends no depths, the ULP gets the device's limits */
static void plain_request_reports_the_devices_depths_to_the_ulp(struct kunit *test)
{
	struct fake *f = responder(test);

	feed(f, REQ "40010000", 532, false);
	KUNIT_EXPECT_FALSE(test, f->ev.peer_known);
	KUNIT_EXPECT_EQ(test, 128, (int)f->ev.ird);
	KUNIT_EXPECT_EQ(test, 128, (int)f->ev.ord);
}

struct bad_request {
	const char *what;
	const char *hex;
	bool more;
	const char *reject;
};

static const struct bad_request bad_requests[] = {
	{ "SEC-07: a Reply received by a listener is dropped unanswered", REP "40010000" },
	{ "RSP-02 SEC-04 V24: a Request with truncated enhanced data is dropped unanswered",
	  REQ "500200028008" },
	{ "SEC-03 V25: a Request header with PD_Length 513 is dropped unanswered", REQ "50020201" },
	{ "IOP-13 V26: a Request of Rev 3 is dropped unanswered", REQ "5003000400080004" },
	{ "IOP-13: a Request of Rev 0 is dropped unanswered", REQ "40000000" },
	{ "SEC-06 V05: a Request followed by a byte is dropped unanswered",
	  REQ "5002000400080004", true },
	{ "IOP-17 V03: a plain Request for markers gets a plain Reject",
	  REQ "c001000568656c6c6f", false,
	  REP "60010000" },
	{ "IOP-17: an enhanced Request for markers gets an enhanced Reject", REQ "d002000400080004",
	  false, REP "7002000400040008" },
};

static void bad_request_desc(const struct bad_request *c, char *desc)
{
	strscpy(desc, c->what, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(bad_request, bad_requests, bad_request_desc);

static void bad_request_is_not_reported_to_the_ulp(struct kunit *test)
{
	const struct bad_request *c = test->param_value;
	struct fake *f = responder(test);

	expect_over(f, feed(f, c->hex, 532, c->more), 0);
	KUNIT_EXPECT_EQ(test, c->reject ? 1 : 0, f->sends);
	if (c->reject)
		expect_sent(f, c->reject);
	KUNIT_EXPECT_EQ(test, 0, f->enters);
}

/* RSP-14 RSP-16 RTR-25: QP first, then the Reply; established by the FPDU */
static void peer_to_peer_accept_waits_for_the_rtr(struct kunit *test)
{
	struct fake *f = responder(test);

	feed(f, REQ "500200048008c008", 532, false);
	KUNIT_EXPECT_EQ(test, 0, iw_mpa_accept(&f->s, NULL, &ulp_8_8));
	KUNIT_EXPECT_EQ(test, 1, f->enters);
	KUNIT_EXPECT_EQ(test, 0, f->enter_after_sends);
	KUNIT_EXPECT_TRUE(test, f->rdma.responder);
	KUNIT_EXPECT_TRUE(test, f->rdma.crc);
	expect_sent(f, REP "500200048008c008");
	KUNIT_EXPECT_EQ(test, IW_MPA_RTR_WAIT, f->s.state);
	KUNIT_EXPECT_EQ(test, 10000u, f->deadline);
	KUNIT_EXPECT_EQ(test, 1, f->events);

	KUNIT_EXPECT_EQ(test, IW_MPA_NEXT_DONE,
			iw_mpa_first_fpdu(&f->s, RDMA_MPA_RTR_WRITE));
	KUNIT_EXPECT_EQ(test, RDMA_MPA_RTR_WRITE, (int)f->s.outcome.rtr_seen);
	KUNIT_EXPECT_EQ(test, 2, f->events);
	KUNIT_EXPECT_EQ(test, IW_MPA_EVENT_ESTABLISHED, f->ev.type);
	KUNIT_EXPECT_EQ(test, 0, f->ev.status);
	KUNIT_EXPECT_EQ(test, 0, (int)f->ev.pdata_len);
	KUNIT_EXPECT_EQ(test, 0u, f->deadline);

	/* The event is sent exactly once */
	KUNIT_EXPECT_EQ(test, IW_MPA_NEXT_DONE, iw_mpa_first_fpdu(&f->s, 0));
	KUNIT_EXPECT_EQ(test, IW_MPA_NEXT_DONE, iw_mpa_timeout(&f->s));
	KUNIT_EXPECT_EQ(test, 2, f->events);
}

/* RTR-25: a device with rtr_offload does not report the RTR */
static void rtr_of_an_offloading_device_is_not_awaited(struct kunit *test)
{
	struct iw_mpa_caps caps = fake_caps;
	struct fake *f;

	caps.rtr_offload = true;
	caps.rtr_recv_one = true;
	f = new_device(test, &caps, &iw_mpa_default_policy);
	iw_mpa_respond(&f->s);
	feed(f, REQ "500200048008c008", 532, false);
	KUNIT_EXPECT_EQ(test, 0, iw_mpa_accept(&f->s, NULL, &ulp_8_8));
	KUNIT_EXPECT_TRUE(test, f->rdma.responder);
	KUNIT_EXPECT_EQ(test, RDMA_MPA_RTR_WRITE, (int)f->rdma.rtr);
	KUNIT_EXPECT_EQ(test, 0, f->enter_after_sends);
	expect_sent(f, REP "5002000480088008");
	KUNIT_EXPECT_EQ(test, IW_MPA_RDMA, f->s.state);
	KUNIT_EXPECT_EQ(test, 0u, f->deadline);
	KUNIT_EXPECT_EQ(test, 2, f->events);
	KUNIT_EXPECT_EQ(test, IW_MPA_EVENT_ESTABLISHED, f->ev.type);
	KUNIT_EXPECT_EQ(test, 0, f->ev.status);
}

/* FRM-05: each direction has its own markers; M only if the policy asks */
static void markers_are_requested_by_policy(struct kunit *test)
{
	struct iw_mpa_policy policy = iw_mpa_default_policy;
	struct iw_mpa_caps caps = fake_caps;
	struct fake *f;

	caps.rx_markers = true;
	caps.tx_markers = true;
	f = new_device(test, &caps, &policy);
	KUNIT_ASSERT_EQ(test, 0, iw_mpa_connect(&f->s, &ulp_8_8));
	iw_mpa_connected(&f->s);
	expect_sent(f, REQ "100200048008c008");
	feed(f, REP "d00200048008c008", 532, false);
	KUNIT_EXPECT_TRUE(test, f->rdma.tx_markers);
	KUNIT_EXPECT_FALSE(test, f->rdma.rx_markers);

	policy.markers = true;
	f = new_device(test, &caps, &policy);
	KUNIT_ASSERT_EQ(test, 0, iw_mpa_connect(&f->s, &ulp_8_8));
	iw_mpa_connected(&f->s);
	expect_sent(f, REQ "900200048008c008");
	feed(f, REP "500200048008c008", 532, false);
	KUNIT_EXPECT_FALSE(test, f->rdma.tx_markers);
	KUNIT_EXPECT_TRUE(test, f->rdma.rx_markers);

	f = new_device(test, &caps, &policy);
	iw_mpa_respond(&f->s);
	feed(f, REQ "40010000", 532, false);
	iw_mpa_accept(&f->s, NULL, &ulp_8_8);
	expect_sent(f, REP "c0010000");
	KUNIT_EXPECT_TRUE(test, f->rdma.rx_markers);
}

/* RTR-30 V05 V33: established by the reply; still fenced */
static void client_server_accept_is_established_at_once(struct kunit *test)
{
	static const struct iw_mpa_ulp ulp = { .ird = 4, .ord = 8 };
	struct fake *f = responder(test);

	feed(f, REQ "5002000400080004", 532, false);
	KUNIT_EXPECT_EQ(test, 0, iw_mpa_accept(&f->s, NULL, &ulp));
	expect_sent(f, REP "5002000400040008");
	KUNIT_EXPECT_EQ(test, IW_MPA_RDMA, f->s.state);
	KUNIT_EXPECT_EQ(test, 2, f->events);
	KUNIT_EXPECT_EQ(test, IW_MPA_EVENT_ESTABLISHED, f->ev.type);
	KUNIT_EXPECT_TRUE(test, f->rdma.responder);
	KUNIT_EXPECT_EQ(test, 0, (int)f->rdma.rtr);
}

/* IOP-10 V01 V30, IOP-11 V04 V32 */
static void plain_requests_get_plain_replies(struct kunit *test)
{
	struct fake *f = responder(test);

	feed(f, REQ "40010000", 532, false);
	KUNIT_EXPECT_EQ(test, 0, iw_mpa_accept(&f->s, NULL, &ulp_8_8));
	expect_sent(f, REP "40010000");

	f = responder(test);
	feed(f, REQ "40020003686921", 532, false);
	KUNIT_EXPECT_EQ(test, 3, (int)f->ev.pdata_len);
	KUNIT_EXPECT_EQ(test, 0, iw_mpa_accept(&f->s, NULL, &ulp_8_8));
	expect_sent(f, REP "40020000");
}

/* FRM-06: no CRC if neither side requests it; CRC and C=1 if we require it */
static void crc_is_used_if_either_end_requests_crc(struct kunit *test)
{
	struct iw_mpa_policy policy = iw_mpa_default_policy;
	struct fake *f = responder(test);

	feed(f, REQ "00010000", 532, false);
	iw_mpa_accept(&f->s, NULL, &ulp_8_8);
	expect_sent(f, REP "00010000");
	KUNIT_EXPECT_FALSE(test, f->rdma.crc);

	policy.crc = RDMA_MPA_CRC_REQUIRED;
	f = new_fake(test, &policy);
	iw_mpa_respond(&f->s);
	feed(f, REQ "00010000", 532, false);
	iw_mpa_accept(&f->s, NULL, &ulp_8_8);
	expect_sent(f, REP "40010000");
	KUNIT_EXPECT_TRUE(test, f->rdma.crc);

	policy.crc = RDMA_MPA_CRC_OFF;
	f = new_fake(test, &policy);
	iw_mpa_respond(&f->s);
	expect_over(f, feed(f, REQ "40010000", 532, false), 0);
	expect_sent(f, REP "60010000");
}

/* No bytes are accepted after the frame, whether it is processed or not */
static void bytes_after_a_complete_mpa_request_end_the_connection(struct kunit *test)
{
	struct fake *f = responder(test);
	enum iw_mpa_next next;
	u8 bin[64];

	unhex(f, REQ "5002000400080004", bin);
	KUNIT_EXPECT_EQ(test, 20, (int)receive(f, bin, 24, &next));
	KUNIT_EXPECT_EQ(test, IW_MPA_NEXT_WAIT, next);
	KUNIT_EXPECT_EQ(test, 4, (int)receive(f, bin + 20, 4, &next));
	KUNIT_EXPECT_EQ(test, IW_MPA_NEXT_FRAME, next);
	expect_over(f, iw_mpa_rx_done(&f->s, 1), 0);
	KUNIT_EXPECT_EQ(test, IW_MPA_NEXT_WAIT, iw_mpa_process(&f->s, false));
	KUNIT_EXPECT_EQ(test, 0, f->events);
}

/* SEC-06: data while the ULP decides */
static void data_before_the_accept_ends_the_connection(struct kunit *test)
{
	struct fake *f = responder(test);

	feed(f, REQ "500200048008c008", 532, false);
	expect_over(f, iw_mpa_rx_done(&f->s, 1), 1);
	KUNIT_EXPECT_EQ(test, -ECONNRESET, iw_mpa_accept(&f->s, NULL, &ulp_8_8));
	KUNIT_EXPECT_EQ(test, -ECONNRESET, iw_mpa_reject(&f->s, NULL, 0));
	KUNIT_EXPECT_EQ(test, 0, f->sends);
	KUNIT_EXPECT_EQ(test, 1, f->events);
}

/* RTR-29: no RTR arrives */
static void missing_rtr_causes_exactly_one_event(struct kunit *test)
{
	struct fake *f = responder(test);

	feed(f, REQ "500200048008c008", 532, false);
	iw_mpa_accept(&f->s, NULL, &ulp_8_8);
	expect_over(f, iw_mpa_timeout(&f->s), 2);
	KUNIT_EXPECT_EQ(test, IW_MPA_EVENT_ESTABLISHED, f->ev.type);
	KUNIT_EXPECT_EQ(test, -ETIMEDOUT, f->ev.status);
	KUNIT_EXPECT_EQ(test, 0, f->terms);
	expect_over(f, iw_mpa_first_fpdu(&f->s, RDMA_MPA_RTR_WRITE), 2);
	expect_over(f, iw_mpa_peer_gone(&f->s, -EPIPE), 2);
}

/* ERR-06: RST between Reply and RTR */
static void tcp_reset_before_the_rtr_causes_exactly_one_event(struct kunit *test)
{
	struct fake *f = responder(test);

	feed(f, REQ "500200048008c008", 532, false);
	iw_mpa_accept(&f->s, NULL, &ulp_8_8);
	expect_over(f, iw_mpa_peer_gone(&f->s, -ECONNRESET), 2);
	KUNIT_EXPECT_EQ(test, IW_MPA_EVENT_ESTABLISHED, f->ev.type);
	KUNIT_EXPECT_EQ(test, -ECONNRESET, f->ev.status);
	expect_over(f, iw_mpa_timeout(&f->s), 2);
}

/* RSP-03 RSP-04: a reject is as enhanced as its request */
static void reject_is_enhanced_only_if_its_request_is(struct kunit *test)
{
	struct fake *f = responder(test);

	feed(f, REQ "50020008c008c00870696e67", 532, false);
	KUNIT_EXPECT_EQ(test, 0, iw_mpa_reject(&f->s, "busy", 4));
	expect_sent(f, REP "700200088008c00862757379");
	KUNIT_EXPECT_EQ(test, IW_MPA_CLOSED, f->s.state);
	KUNIT_EXPECT_EQ(test, 1, f->events);

	f = responder(test);
	feed(f, REQ "40010000", 532, false);
	KUNIT_EXPECT_EQ(test, 0, iw_mpa_reject(&f->s, "no", 2));
	expect_sent(f, REP "600100026e6f");
}

/* AMB-09: a failed accept still sends a Reply; no event */
static void failed_accept_sends_a_reject(struct kunit *test)
{
	static const struct iw_mpa_ulp ulp = { .ird = 129 };
	struct fake *f = responder(test);

	feed(f, REQ "5002000400080004", 532, false);
	f->enter_rv = -ENOMEM;
	KUNIT_EXPECT_EQ(test, -ENOMEM, iw_mpa_accept(&f->s, NULL, &ulp_8_8));
	expect_sent(f, REP "7002000400040008");
	KUNIT_EXPECT_EQ(test, IW_MPA_CLOSED, f->s.state);
	KUNIT_EXPECT_EQ(test, 1, f->events);

	f = responder(test);
	feed(f, REQ "5002000400080004", 532, false);
	KUNIT_EXPECT_EQ(test, -EINVAL, iw_mpa_accept(&f->s, NULL, &ulp));
	expect_sent(f, REP "7002000400040008");
	KUNIT_EXPECT_EQ(test, 0, f->enters);
}

static void request_not_delivered_to_the_ulp_is_rejected(struct kunit *test)
{
	struct fake *f = responder(test);

	f->event_rv = -ENOMEM;
	expect_over(f, feed(f, REQ "40010000", 532, false), 1);
	expect_sent(f, REP "60010000");
}

/* SEC-09: FIN after each byte of a Request: no event, one end */
static void fin_inside_an_mpa_request_causes_no_event(struct kunit *test)
{
	enum iw_mpa_next next;
	u8 bin[64];
	size_t len, n, off;

	for (n = 0; n < 28; n++) {
		struct fake *f = responder(test);

		len = unhex(f, REQ "50020008c008c00870696e67", bin);
		KUNIT_ASSERT_EQ(test, 28, (int)len);
		for (off = 0; off < n;) {
			off += receive(f, bin + off, n - off, &next);
			KUNIT_ASSERT_EQ(test, IW_MPA_NEXT_WAIT, next);
		}
		expect_over(f, iw_mpa_peer_gone(&f->s, 0), 0);
	}
}

/* The driver gets room for the header, then for the rest: it cannot read more */
static void room_for_received_bytes_ends_with_the_mpa_frame(struct kunit *test)
{
	struct fake *f = initiator(test);
	enum iw_mpa_next next;
	u8 bin[64];
	size_t n;

	unhex(f, REP "500200048008c008ffff", bin);
	KUNIT_ASSERT_NOT_NULL(test, iw_mpa_rx_room(&f->s, &n));
	KUNIT_EXPECT_EQ(test, 20, (int)n);
	KUNIT_EXPECT_EQ(test, 7, (int)receive(f, bin, 7, &next));
	KUNIT_EXPECT_EQ(test, IW_MPA_NEXT_WAIT, next);
	KUNIT_ASSERT_NOT_NULL(test, iw_mpa_rx_room(&f->s, &n));
	KUNIT_EXPECT_EQ(test, 13, (int)n);
	KUNIT_EXPECT_EQ(test, 13, (int)receive(f, bin + 7, 19, &next));
	KUNIT_EXPECT_EQ(test, IW_MPA_NEXT_WAIT, next);
	KUNIT_ASSERT_NOT_NULL(test, iw_mpa_rx_room(&f->s, &n));
	KUNIT_EXPECT_EQ(test, 4, (int)n);
	KUNIT_EXPECT_EQ(test, 4, (int)receive(f, bin + 20, 6, &next));
	KUNIT_EXPECT_EQ(test, IW_MPA_NEXT_FRAME, next);
	KUNIT_EXPECT_NULL(test, iw_mpa_rx_room(&f->s, &n));
	KUNIT_EXPECT_EQ(test, 0, (int)n);
}

/* A driver that reports more than the room cannot write past it */
static void more_bytes_than_the_room_end_the_mpa_connection(struct kunit *test)
{
	struct fake *f = responder(test);

	expect_over(f, iw_mpa_rx_done(&f->s, 21), 0);
}

static void a_used_session_cannot_connect_again(struct kunit *test)
{
	struct fake *f = initiator(test);

	KUNIT_EXPECT_EQ(test, -EINVAL, iw_mpa_connect(&f->s, &ulp_8_8));
	KUNIT_EXPECT_EQ(test, 1, f->sends);
	KUNIT_EXPECT_EQ(test, IW_MPA_NEXT_WAIT, iw_mpa_connected(&f->s));
	KUNIT_EXPECT_EQ(test, 1, f->sends);
	KUNIT_EXPECT_EQ(test, IW_MPA_REQ_SENT, f->s.state);
}

/* INI-15 */
static void failed_tcp_connect_causes_exactly_one_event(struct kunit *test)
{
	struct fake *f = connecting(test, &iw_mpa_default_policy);

	KUNIT_EXPECT_EQ(test, 150000u, f->deadline);
	expect_over(f, iw_mpa_peer_gone(&f->s, -ECONNREFUSED), 1);
	KUNIT_EXPECT_EQ(test, -ECONNREFUSED, f->ev.status);
	expect_over(f, iw_mpa_connected(&f->s), 1);

	f = connecting(test, &iw_mpa_default_policy);
	expect_over(f, iw_mpa_timeout(&f->s), 1);
	KUNIT_EXPECT_EQ(test, -ETIMEDOUT, f->ev.status);
	KUNIT_EXPECT_EQ(test, 0, f->sends);

	f = connecting(test, &iw_mpa_default_policy);
	f->send_rv = -EPIPE;
	expect_over(f, iw_mpa_connected(&f->s), 1);
	KUNIT_EXPECT_EQ(test, -EPIPE, f->ev.status);
}

/* ---- outcome, and memory during setup */

static void expect_outcome(struct fake *f, u16 ird, u16 ord, u16 peer_ird,
			   u16 peer_ord, u8 rtr, u8 rtr_seen)
{
	const struct iw_mpa_outcome *o = &f->s.outcome;

	KUNIT_EXPECT_EQ(f->test, ird, o->ird);
	KUNIT_EXPECT_EQ(f->test, ord, o->ord);
	KUNIT_EXPECT_EQ(f->test, peer_ird, o->peer_ird);
	KUNIT_EXPECT_EQ(f->test, peer_ord, o->peer_ord);
	KUNIT_EXPECT_EQ(f->test, rtr, o->rtr);
	KUNIT_EXPECT_EQ(f->test, rtr_seen, o->rtr_seen);
}

static void negotiated_values_outlive_the_setup_memory(struct kunit *test)
{
	const u8 both = RDMA_MPA_RTR_WRITE | RDMA_MPA_RTR_READ;
	struct fake *f = initiator(test);

	/* IRD 4, ORD 9, both kinds */
	feed(f, REP "500200048004c009", 532, false);
	KUNIT_EXPECT_NULL(test, f->s.setup);
	KUNIT_EXPECT_TRUE(test, iw_mpa_is_connected(&f->s));
	expect_outcome(f, 9, 4, 4, 9, RDMA_MPA_RTR_WRITE, 0);
	KUNIT_EXPECT_EQ(test, 2, (int)f->s.outcome.peer_rev);
	KUNIT_EXPECT_TRUE(test, f->s.outcome.peer_known);
	KUNIT_EXPECT_TRUE(test, f->s.outcome.crc);

	f = responder(test);
	feed(f, REQ "100200048004ffff", 532, false);
	iw_mpa_accept(&f->s, NULL, &ulp_8_8);
	/* The outcome can be read while the RTR is awaited */
	KUNIT_EXPECT_NOT_NULL(test, f->s.setup);
	KUNIT_EXPECT_FALSE(test, iw_mpa_is_connected(&f->s));
	expect_outcome(f, 8, 4, 4, IW_MPA_DEPTH_ULP, both, 0);
	KUNIT_EXPECT_FALSE(test, f->s.outcome.crc);
	iw_mpa_first_fpdu(&f->s, RDMA_MPA_RTR_READ);
	KUNIT_EXPECT_NULL(test, f->s.setup);
	expect_outcome(f, 8, 4, 4, IW_MPA_DEPTH_ULP, both, RDMA_MPA_RTR_READ);
	iw_mpa_peer_gone(&f->s, 0);
	expect_outcome(f, 8, 4, 4, IW_MPA_DEPTH_ULP, both, RDMA_MPA_RTR_READ);

	f = responder(test);
	feed(f, REQ "40010000", 532, false);
	iw_mpa_accept(&f->s, NULL, &ulp_8_8);
	KUNIT_EXPECT_NULL(test, f->s.setup);
	expect_outcome(f, 8, 8, 0, 0, 0, 0);
	KUNIT_EXPECT_EQ(test, 1, (int)f->s.outcome.peer_rev);
	KUNIT_EXPECT_FALSE(test, f->s.outcome.peer_known);
	KUNIT_EXPECT_TRUE(test, f->s.outcome.crc);
}

/* The setting is local: it is not visible on the wire */
static void large_fpdus_are_sent_if_enabled(struct kunit *test)
{
	struct iw_mpa_policy policy = iw_mpa_default_policy;
	struct iw_mpa_caps caps = fake_caps;
	struct fake *f = responder(test);

	feed(f, REQ "00010000", 532, false);
	iw_mpa_accept(&f->s, NULL, &ulp_8_8);
	KUNIT_EXPECT_FALSE(test, f->rdma.large);
	KUNIT_EXPECT_FALSE(test, f->s.outcome.large);

	caps.large = true;
	policy.large = true;
	f = new_device(test, &caps, &policy);
	iw_mpa_respond(&f->s);
	feed(f, REQ "00010000", 532, false);
	iw_mpa_accept(&f->s, NULL, &ulp_8_8);
	expect_sent(f, REP "00010000");
	KUNIT_EXPECT_TRUE(test, f->rdma.large);
	KUNIT_EXPECT_TRUE(test, f->s.outcome.large);
}

static void failed_session_reports_no_negotiated_values(struct kunit *test)
{
	struct fake *f = initiator(test);

	feed(f, REP "7002000480088008", 532, false);
	expect_outcome(f, 0, 0, 0, 0, 0, 0);
	KUNIT_EXPECT_FALSE(test, iw_mpa_is_connected(&f->s));
	KUNIT_EXPECT_FALSE(test, iw_mpa_is_connecting(&f->s));
	KUNIT_EXPECT_FALSE(test, iw_mpa_prefers_peer_to_peer(&f->s));
}

/* A peer that has sent less than a header costs no buffer */
static void mpa_receive_buffer_is_as_long_as_the_frame(struct kunit *test)
{
	static const u16 lengths[] = { 0, 1, 4, 12, 13, 100, 508, 512 };
	u8 bin[IW_MPA_FRAME_MAX] = {};
	enum iw_mpa_next next;
	size_t i, n;

	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		size_t len = IW_MPA_HDR_LEN + lengths[i];
		struct fake *f = responder(test);
		struct iw_mpa_setup *u = f->s.setup;

		unhex(f, REQ "00010000", bin);
		bin[18] = lengths[i] >> 8;
		bin[19] = lengths[i] & 0xff;
		for (n = 0; n < min_t(size_t, len - 1, 20); n++) {
			KUNIT_EXPECT_PTR_EQ(test, u->rx, (u8 *)u->hdr);
			KUNIT_ASSERT_EQ(test, 1, (int)receive(f, bin + n, 1, &next));
			KUNIT_ASSERT_EQ(test, IW_MPA_NEXT_WAIT, next);
		}
		if (lengths[i]) {
			KUNIT_EXPECT_PTR_NE(test, u->rx, (u8 *)u->hdr);
			KUNIT_EXPECT_EQ(test, kmalloc_size_roundup(len),
					ksize(u->rx));
		}
		KUNIT_ASSERT_EQ(test, (int)(len - n),
				(int)receive(f, bin + n, len - n, &next));
		KUNIT_ASSERT_EQ(test, IW_MPA_NEXT_FRAME, next);
		KUNIT_EXPECT_EQ(test, !lengths[i], u->rx == u->hdr);
		KUNIT_ASSERT_EQ(test, IW_MPA_NEXT_WAIT,
				iw_mpa_process(&f->s, false));
		/* The ULP got the private data */
		KUNIT_EXPECT_EQ(test, lengths[i], f->ev.pdata_len);
		KUNIT_EXPECT_PTR_EQ(test, u->rx, (u8 *)u->hdr);
		KUNIT_EXPECT_EQ(test, 0, (int)u->peer.pdata_len);
		KUNIT_EXPECT_NULL(test, u->peer.pdata);
	}
}

static void private_data_of_connect_is_copied(struct kunit *test)
{
	struct iw_mpa_ulp ulp = { .ird = 8, .ord = 8, .pdata_len = 4 };
	struct fake *f = new_fake(test, &iw_mpa_default_policy);
	char pdata[] = "ping";

	ulp.pdata = pdata;
	KUNIT_EXPECT_EQ(test, 0, iw_mpa_connect(&f->s, &ulp));
	KUNIT_EXPECT_EQ(test, kmalloc_size_roundup(4),
			ksize(f->s.setup->pdata));
	memset(pdata, 'x', sizeof(pdata));
	iw_mpa_connected(&f->s);
	expect_sent(f, REQ "100200088008c00870696e67");

	/* No copy without private data */
	f = connecting(test, &iw_mpa_default_policy);
	KUNIT_EXPECT_NULL(test, f->s.setup->pdata);
}

/* ---- limits of a device, options of a ULP */

static void device_with_its_own_tcp_timeout_has_no_connect_deadline(struct kunit *test)
{
	struct iw_mpa_caps caps = fake_caps;
	struct fake *f;

	caps.no_connect_ms = true;
	f = new_device(test, &caps, &iw_mpa_default_policy);
	f->deadline = 1;
	KUNIT_ASSERT_EQ(test, 0, iw_mpa_connect(&f->s, &ulp_8_8));
	KUNIT_EXPECT_EQ(test, IW_MPA_CONNECTING, f->s.state);
	KUNIT_EXPECT_EQ(test, 0u, f->deadline);
	iw_mpa_connected(&f->s);
	KUNIT_EXPECT_EQ(test, 10000u, f->deadline);
}

static void set_option(struct fake *f, struct iw_mpa_layer *options, int name,
		       u32 value)
{
	KUNIT_ASSERT_EQ(f->test, 0,
			iw_mpa_layer_set_option(options, name, &value,
						sizeof(value)));
}

/* IOP-03 IOP-04: the option acts as if set before the Request arrived */
static void revision_1_set_at_accept_drops_an_enhanced_request(struct kunit *test)
{
	struct iw_mpa_layer options = {};
	struct fake *f = responder(test);

	set_option(f, &options, RDMA_MPA_OPTION_REVISION,
		   RDMA_MPA_REVISION_RFC5044);
	feed(f, REQ "5002000400080004", 532, false);
	KUNIT_EXPECT_EQ(test, -EPROTO,
			iw_mpa_accept(&f->s, &options, &ulp_8_8));
	expect_over(f, iw_mpa_timeout(&f->s), 1);
	KUNIT_EXPECT_EQ(test, 0, f->sends);
	KUNIT_EXPECT_EQ(test, 0, f->enters);

	f = responder(test);
	feed(f, REQ "40020003686921", 532, false);
	KUNIT_EXPECT_EQ(test, 0, iw_mpa_accept(&f->s, &options, &ulp_8_8));
	expect_sent(f, REP "40020000");
	KUNIT_EXPECT_EQ(test, IW_MPA_RDMA, f->s.state);
}

static void options_of_accept_apply_to_the_reply(struct kunit *test)
{
	struct iw_mpa_layer options = {};
	struct fake *f = responder(test);

	set_option(f, &options, RDMA_MPA_OPTION_RTR, RDMA_MPA_RTR_READ);
	set_option(f, &options, RDMA_MPA_OPTION_RTR_MS, 77);
	set_option(f, &options, RDMA_MPA_OPTION_IRD, 5);
	feed(f, REQ "500200048008c008", 532, false);
	KUNIT_EXPECT_EQ(test, 0, iw_mpa_accept(&f->s, &options, &ulp_8_8));
	expect_sent(f, REP "5002000480054008");
	KUNIT_EXPECT_EQ(test, RDMA_MPA_RTR_READ, (int)f->rdma.rtr);
	KUNIT_EXPECT_EQ(test, 5, (int)f->rdma.ird);
	KUNIT_EXPECT_EQ(test, 77u, f->deadline);
}

/* AMB-09: the peer gets a reject */
static void unsupported_options_of_accept_cause_a_reject(struct kunit *test)
{
	struct iw_mpa_layer options = {};
	struct fake *f = responder(test);

	set_option(f, &options, RDMA_MPA_OPTION_RTR, RDMA_MPA_RTR_SEND);
	feed(f, REQ "500200048008c008", 532, false);
	KUNIT_EXPECT_EQ(test, -EINVAL,
			iw_mpa_accept(&f->s, &options, &ulp_8_8));
	expect_sent(f, REP "700200048008c008");
	expect_over(f, iw_mpa_timeout(&f->s), 1);
	KUNIT_EXPECT_EQ(test, 0, f->enters);
}

/* The connection is gone before accept, so its options have no effect */
static void options_of_an_accept_after_the_peers_fin_are_ignored(struct kunit *test)
{
	struct iw_mpa_layer options = {};
	struct fake *f = responder(test);

	set_option(f, &options, RDMA_MPA_OPTION_RTR_MS, 77);
	feed(f, REQ "500200048008c008", 532, false);
	iw_mpa_peer_gone(&f->s, 0);
	KUNIT_EXPECT_EQ(test, -ECONNRESET,
			iw_mpa_accept(&f->s, &options, &ulp_8_8));
	expect_over(f, iw_mpa_timeout(&f->s), 1);
	KUNIT_EXPECT_EQ(test, 0, f->sends);
}

static struct kunit_case session_cases[] = {
	KUNIT_CASE(default_request_offers_write_and_read_rtr),
	KUNIT_CASE(initiator_enters_rdma_mode_when_it_sends_the_rtr),
	KUNIT_CASE(reply_may_arrive_in_any_portions),
	KUNIT_CASE_PARAM(bad_mpa_reply_causes_exactly_one_event, bad_reply_gen_params),
	KUNIT_CASE(reject_reports_the_peers_ird_ord_and_private_data),
	KUNIT_CASE(initiator_sends_a_term_if_its_qp_fails),
	KUNIT_CASE(silent_responder_times_out),
	KUNIT_CASE(oversized_private_data_or_depth_is_refused_locally),
	KUNIT_CASE(request_is_reported_to_the_ulp),
	KUNIT_CASE(plain_request_reports_the_devices_depths_to_the_ulp),
	KUNIT_CASE_PARAM(bad_request_is_not_reported_to_the_ulp, bad_request_gen_params),
	KUNIT_CASE(peer_to_peer_accept_waits_for_the_rtr),
	KUNIT_CASE(rtr_of_an_offloading_device_is_not_awaited),
	KUNIT_CASE(markers_are_requested_by_policy),
	KUNIT_CASE(client_server_accept_is_established_at_once),
	KUNIT_CASE(plain_requests_get_plain_replies),
	KUNIT_CASE(crc_is_used_if_either_end_requests_crc),
	KUNIT_CASE(bytes_after_a_complete_mpa_request_end_the_connection),
	KUNIT_CASE(data_before_the_accept_ends_the_connection),
	KUNIT_CASE(missing_rtr_causes_exactly_one_event),
	KUNIT_CASE(tcp_reset_before_the_rtr_causes_exactly_one_event),
	KUNIT_CASE(reject_is_enhanced_only_if_its_request_is),
	KUNIT_CASE(failed_accept_sends_a_reject),
	KUNIT_CASE(request_not_delivered_to_the_ulp_is_rejected),
	KUNIT_CASE(fin_inside_an_mpa_request_causes_no_event),
	KUNIT_CASE(room_for_received_bytes_ends_with_the_mpa_frame),
	KUNIT_CASE(more_bytes_than_the_room_end_the_mpa_connection),
	KUNIT_CASE(a_used_session_cannot_connect_again),
	KUNIT_CASE(failed_tcp_connect_causes_exactly_one_event),
	KUNIT_CASE(negotiated_values_outlive_the_setup_memory),
	KUNIT_CASE(large_fpdus_are_sent_if_enabled),
	KUNIT_CASE(failed_session_reports_no_negotiated_values),
	KUNIT_CASE(mpa_receive_buffer_is_as_long_as_the_frame),
	KUNIT_CASE(private_data_of_connect_is_copied),
	KUNIT_CASE(device_with_its_own_tcp_timeout_has_no_connect_deadline),
	KUNIT_CASE(revision_1_set_at_accept_drops_an_enhanced_request),
	KUNIT_CASE(options_of_accept_apply_to_the_reply),
	KUNIT_CASE(unsupported_options_of_accept_cause_a_reject),
	KUNIT_CASE(options_of_an_accept_after_the_peers_fin_are_ignored),
	{}
};

static struct kunit_suite session_suite = {
	.name = "iw_mpa_session",
	.init = open_endpoints,
	.exit = close_endpoints,
	.test_cases = session_cases,
};

kunit_test_suite(session_suite);

MODULE_DESCRIPTION("KUnit tests of iw_mpa's session");
MODULE_LICENSE("GPL");
MODULE_IMPORT_NS("EXPORTED_FOR_KUNIT_TESTING");
