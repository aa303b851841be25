// SPDX-License-Identifier: GPL-2.0
/*
 * The session's state machine under a driver that only records calls: frames
 * sent, moves of the QP, events for the ULP and their number.
 *
 * Frames are those of the conformance matrix ("V" numbers).
 */
#include <kunit/test.h>
#include <linux/hex.h>
#include <linux/in.h>
#include <linux/kernel.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <net/net_namespace.h>

#include <rdma/ib_verbs.h>

#include "device.h"
#include "session.h"

#define REQ "4d504120494420526571204672616d65"
#define REP "4d504120494420526570204672616d65"

struct fake {
	struct iw_mpa_session s;
	struct kunit *test;
	struct list_head list;	/* of the test's sessions */

	u8 syn[IW_MPA_FRAME_MAX];	/* data of the SYN */
	u8 tx[IW_MPA_FRAME_MAX];
	size_t tx_len;
	int sends;

	struct iw_mpa_rdma rdma;
	int enters;
	int enter_after_sends;	/* frames sent before enter_rdma */

	enum rdma_mpa_ecode term;
	int terms;

	unsigned int deadline;

	struct iw_mpa_event ev;
	u8 pdata[IW_MPA_PDATA_MAX];
	int events;

	int send_rv;
	int enter_rv;
	int term_rv;
	int event_rv;
};

static struct fake *to_fake(struct iw_mpa_session *s)
{
	return container_of(s, struct fake, s);
}

static int fake_send(struct iw_mpa_session *s, const void *frame, size_t len)
{
	struct fake *f = to_fake(s);

	if (f->send_rv)
		return f->send_rv;
	memcpy(f->tx, frame, len);
	f->tx_len = len;
	f->sends++;
	return 0;
}

static int fake_enter_rdma(struct iw_mpa_session *s,
			   const struct iw_mpa_rdma *rdma)
{
	struct fake *f = to_fake(s);

	if (f->enter_rv)
		return f->enter_rv;
	f->rdma = *rdma;
	f->enter_after_sends = f->sends;
	f->enters++;
	return 0;
}

static int fake_terminate(struct iw_mpa_session *s,
			  const struct iw_mpa_rdma *rdma,
			  enum rdma_mpa_ecode ecode)
{
	struct fake *f = to_fake(s);

	if (f->term_rv)
		return f->term_rv;
	f->term = ecode;
	f->terms++;
	return 0;
}

static void fake_deadline(struct iw_mpa_session *s, unsigned int ms)
{
	to_fake(s)->deadline = ms;
}

static int fake_event(struct iw_mpa_session *s, const struct iw_mpa_event *ev)
{
	struct fake *f = to_fake(s);

	f->ev = *ev;
	memcpy(f->pdata, ev->pdata, ev->pdata_len);
	f->events++;
	return f->event_rv;
}

static const struct iw_mpa_ops fake_ops = {
	.send		= fake_send,
	.enter_rdma	= fake_enter_rdma,
	.terminate	= fake_terminate,
	.deadline	= fake_deadline,
	.event		= fake_event,
};

static const struct iw_mpa_caps fake_caps = {
	.max_ird	= 128,
	.max_ord	= 128,
	.rtr_send	= RDMA_MPA_RTR_WRITE | RDMA_MPA_RTR_READ,
	.rtr_recv	= RDMA_MPA_RTR_WRITE | RDMA_MPA_RTR_READ,
};

static const struct iw_mpa_ulp ulp_8_8 = { .ird = 8, .ord = 8 };

/* An endpoint, whose session is closed when the test is over */
static struct fake *new_endpoint(struct kunit *test)
{
	struct fake *f = kunit_kzalloc(test, sizeof(*f), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, f);
	f->test = test;
	list_add(&f->list, test->priv);
	return f;
}

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

static struct fake *new_device(struct kunit *test,
			       const struct iw_mpa_caps *caps,
			       const struct iw_mpa_policy *policy)
{
	struct fake *f = new_endpoint(test);
	struct iw_mpa_config config;

	KUNIT_ASSERT_EQ(test, 0, iw_mpa_config_init(&config, &fake_ops, caps,
						    policy));
	/* The session does not depend on the memory's former contents */
	memset(&f->s, 0xa5, sizeof(f->s));
	KUNIT_ASSERT_EQ(test, 0, iw_mpa_session_inherit(&f->s, &config));
	KUNIT_ASSERT_EQ(test, IW_MPA_IDLE, f->s.state);
	return f;
}

static struct fake *new_fake(struct kunit *test,
			     const struct iw_mpa_policy *policy)
{
	return new_device(test, &fake_caps, policy);
}

static size_t unhex(struct fake *f, const char *hex, u8 *bin)
{
	size_t len = strlen(hex) / 2;

	KUNIT_ASSERT_EQ(f->test, 0, hex2bin(bin, hex, len));
	return len;
}

/* Up to @len bytes arrive, as many as are awaited. Returns their number. */
static size_t receive(struct fake *f, const u8 *bin, size_t len,
		      enum iw_mpa_next *next)
{
	size_t n;
	void *room = iw_mpa_rx_room(&f->s, &n);

	n = min(n, len);
	if (room)
		memcpy(room, bin, n);
	*next = iw_mpa_rx_done(&f->s, room ? n : len);
	return n;
}

/* Bytes arrive, @chunk at a time; if @more, further bytes follow the frame */
static enum iw_mpa_next feed(struct fake *f, const char *hex, size_t chunk,
			     bool more)
{
	enum iw_mpa_next next = IW_MPA_NEXT_WAIT;
	u8 bin[IW_MPA_FRAME_MAX];
	size_t len = unhex(f, hex, bin), off = 0;

	while (off < len) {
		off += receive(f, bin + off, min(chunk, len - off), &next);
		if (next == IW_MPA_NEXT_FRAME)
			return iw_mpa_process(&f->s, more || off < len);
		if (next != IW_MPA_NEXT_WAIT)
			return next;
	}
	return next;
}

static void expect_sent(struct fake *f, const char *hex)
{
	u8 bin[IW_MPA_FRAME_MAX];
	size_t len = unhex(f, hex, bin);

	KUNIT_ASSERT_EQ(f->test, len, f->tx_len);
	KUNIT_EXPECT_EQ(f->test, 0, memcmp(bin, f->tx, len));
}

static void expect_over(struct fake *f, enum iw_mpa_next next, int events)
{
	KUNIT_EXPECT_EQ(f->test, IW_MPA_NEXT_CLOSE, next);
	KUNIT_EXPECT_EQ(f->test, IW_MPA_CLOSED, f->s.state);
	KUNIT_EXPECT_EQ(f->test, 0u, f->deadline);
	KUNIT_EXPECT_EQ(f->test, events, f->events);
	KUNIT_EXPECT_NULL(f->test, f->s.setup);
}

static struct fake *connecting(struct kunit *test,
			       const struct iw_mpa_policy *policy)
{
	struct fake *f = new_fake(test, policy);

	KUNIT_ASSERT_EQ(test, 0, iw_mpa_connect(&f->s, &ulp_8_8));
	KUNIT_ASSERT_EQ(test, IW_MPA_CONNECTING, f->s.state);
	return f;
}

static struct fake *initiator(struct kunit *test)
{
	struct fake *f = connecting(test, &iw_mpa_default_policy);

	KUNIT_ASSERT_EQ(test, 0, f->sends);
	KUNIT_ASSERT_EQ(test, IW_MPA_NEXT_WAIT, iw_mpa_connected(&f->s));
	return f;
}

static struct fake *responder(struct kunit *test)
{
	struct fake *f = new_fake(test, &iw_mpa_default_policy);

	iw_mpa_respond(&f->s);
	return f;
}

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

/* ---- devices */

/* A device with one port; settings not in @initial have built-in values */
static struct iw_mpa_device *new_iw_device(struct kunit *test,
					   const struct iw_mpa_caps *caps,
					   const struct iw_mpa_choice *initial,
					   unsigned int num_initial)
{
	struct ib_device *ibdev = kunit_kzalloc(test, sizeof(*ibdev),
						GFP_KERNEL);
	const struct iw_mpa_driver driver = {
		.ops = &fake_ops,
		.caps = *caps,
		.initial = initial,
		.num_initial = num_initial,
	};
	struct iw_mpa_device *dev;

	KUNIT_ASSERT_NOT_NULL(test, ibdev);
	ibdev->phys_port_cnt = 1;
	ibdev->dev.init_name = "fake";
	dev = iw_mpa_register_device(ibdev, &driver);
	KUNIT_ASSERT_FALSE(test, IS_ERR(dev));
	return dev;
}

static struct fake *open_with(struct kunit *test, struct iw_mpa_device *dev,
			      const struct iw_mpa_layer *options)
{
	struct fake *f = new_endpoint(test);

	KUNIT_ASSERT_EQ(test, 0, iw_mpa_session_open(&f->s, dev, 1, options));
	return f;
}

static struct fake *open_on(struct kunit *test, struct iw_mpa_device *dev)
{
	return open_with(test, dev, NULL);
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

static struct rdma_hw_stats *read_counters(struct kunit *test,
					   struct iw_mpa_device *dev)
{
	struct rdma_hw_stats *stats = iw_mpa_alloc_port_stats();

	KUNIT_ASSERT_NOT_NULL(test, stats);
	KUNIT_EXPECT_EQ(test, stats->num_counters,
			iw_mpa_get_port_stats(dev, 1, stats));
	return stats;
}

static u64 counted(struct kunit *test, struct iw_mpa_device *dev,
		   const char *name)
{
	struct rdma_hw_stats *stats = read_counters(test, dev);
	u64 value = U64_MAX;
	int i;

	for (i = 0; i < stats->num_counters; i++)
		if (!strcmp(stats->descs[i].name, name))
			value = stats->value[i];
	rdma_free_hw_stats_struct(stats);
	return value;
}

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

/* ---- the Request in TCP's SYN */

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
	KUNIT_CASE(close_on_request_falls_back_to_rev1),
	KUNIT_CASE(no_rev1_fallback_unless_policy_and_peer_allow_it),
	KUNIT_CASE(rev1_peer_is_remembered),
	KUNIT_CASE(options_of_one_program_affect_no_rev1_fallback_of_others),
	KUNIT_CASE(rev1_peer_is_remembered_for_one_port_until_its_policy_changes),
	KUNIT_CASE(term_is_counted_only_if_the_driver_sends_it),
	KUNIT_CASE_PARAM(session_counts_each_event_once,
			 story_gen_params),
	KUNIT_CASE(refused_connect_is_not_counted),
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
	KUNIT_CASE(request_is_in_the_syn_only_if_enabled_and_supported),
	KUNIT_CASE(request_is_in_the_syn_only_before_tcp_connects),
	KUNIT_CASE(bytes_in_and_after_the_syn_make_one_request),
	KUNIT_CASE(rev1_retry_sends_no_request_in_the_syn),
	KUNIT_CASE(unanswered_syn_with_a_request_causes_exactly_one_event),
	KUNIT_CASE(requests_in_syns_are_counted),
	KUNIT_CASE(initial_driver_settings_are_checked_against_the_device),
	KUNIT_CASE(fast_open_is_ignored_if_unsupported),
	KUNIT_CASE(listener_accepts_requests_in_syns_if_supported),
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
