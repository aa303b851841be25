// SPDX-License-Identifier: GPL-2.0
/*
 * The session's state machine under a driver that only takes notes: what is
 * sent, when the QP moves, what the ULP is told, and how often.
 *
 * Frames are those of the conformance matrix ("V" numbers).
 */
#include <kunit/test.h>
#include <linux/hex.h>
#include <linux/in.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/string.h>
#include <net/net_namespace.h>

#include <rdma/ib_verbs.h>
#include <rdma/iw_mpa.h>

#define REQ "4d504120494420526571204672616d65"
#define REP "4d504120494420526570204672616d65"

struct fake {
	struct iw_mpa_session s;
	struct kunit *test;

	u8 syn[IW_MPA_FRAME_MAX];	/* data of the SYN */
	u8 tx[IW_MPA_FRAME_MAX];
	size_t tx_len;
	int sends;

	struct iw_mpa_rdma rdma;
	int enters;
	int enter_after_sends;	/* how many frames had left by then */

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

static struct fake *new_device(struct kunit *test,
			       const struct iw_mpa_caps *caps,
			       const struct iw_mpa_policy *policy)
{
	struct fake *f = kunit_kzalloc(test, sizeof(*f), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, f);
	f->test = test;
	KUNIT_ASSERT_EQ(test, 0, iw_mpa_session_init(&f->s, &fake_ops, caps,
						     policy));
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

/* Bytes arrive, @chunk at a time; @more says that the last have company */
static enum iw_mpa_next feed(struct fake *f, const char *hex, size_t chunk,
			     bool more)
{
	enum iw_mpa_next next = IW_MPA_NEXT_WAIT;
	u8 bin[IW_MPA_FRAME_MAX];
	size_t len = unhex(f, hex, bin), off = 0, used;

	while (off < len) {
		next = iw_mpa_rx(&f->s, bin + off, min(chunk, len - off),
				 &used);
		off += used;
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
static void initiator_asks_for_write_and_read(struct kunit *test)
{
	struct fake *f = initiator(test);

	expect_sent(f, REQ "100200048008c008");
	KUNIT_EXPECT_EQ(test, IW_MPA_REQ_SENT, f->s.state);
	KUNIT_EXPECT_EQ(test, 10000u, f->deadline);
	KUNIT_EXPECT_EQ(test, 0, f->enters);
}

/* INI-02 INI-10 RTR-06 RTR-15: V37 answers V12 */
static void initiator_enters_rdma_with_the_rtr(struct kunit *test)
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
static void reply_may_come_in_any_portions(struct kunit *test)
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
	{ "SEC-04 S4d: enhanced accept with PD_Length 0",
	  REP "50020000", -EPROTO, RDMA_MPA_ECODE_BAD_FRAME },
	{ "SEC-04 S4d: enhanced accept with PD_Length 2",
	  REP "500200028008", -EPROTO, RDMA_MPA_ECODE_BAD_FRAME },
	{ "SEC-03 FRM-20: PD_Length 65535, header only",
	  REP "5002ffff", -EPROTO, RDMA_MPA_ECODE_BAD_FRAME },
	{ "INI-08: a request instead of a reply",
	  REQ "500200048008c008", -EPROTO, RDMA_MPA_ECODE_BAD_FRAME },
	{ "IOP-13 AMB-07: Rev 3", REP "50030000", -EPROTO,
	  RDMA_MPA_ECODE_BAD_FRAME },
	{ "IOP-13 AMB-07: Rev 0", REP "40000000", -EPROTO,
	  RDMA_MPA_ECODE_BAD_FRAME },
	{ "IOP-14 AMB-04 V48: not enhanced", REP "4001000400080004", -EPROTO,
	  RDMA_MPA_ECODE_BAD_FRAME },
	{ "IOP-17: markers wanted", REP "d00200048008c008", -EPROTO,
	  RDMA_MPA_ECODE_BAD_FRAME },
	{ "SEC-06: a byte behind the accept", REP "500200048008c008", -EPROTO,
	  RDMA_MPA_ECODE_BAD_FRAME, 0, true },
	{ "RTR-07 RTR-12 V47: client-server answer", REP "5002000400080008",
	  -EPROTO, RDMA_MPA_ECODE_RTR, 1 },
	{ "RTR-11 V50: no option", REP "5002000480080008", -EPROTO,
	  RDMA_MPA_ECODE_RTR, 1 },
	{ "IRD-15 ERR-03: ORD 129 against 128", REP "5002000480088081",
	  -ENOMEM, RDMA_MPA_ECODE_IRD, 1 },
	{ "INI-09 V31: Rev 1 reject", REP "600100026e6f", -ECONNREFUSED,
	  RDMA_MPA_ECODE_NONE },
	{ "INI-09 V43: enhanced reject", REP "700200088008c00862757379",
	  -ECONNREFUSED, RDMA_MPA_ECODE_NONE },
	{ "AMB-03 V49: enhanced reject without a block", REP "70020000",
	  -ECONNREFUSED, RDMA_MPA_ECODE_NONE },
	{ "irdma: something behind a reject", REP "70020000", -ECONNREFUSED,
	  RDMA_MPA_ECODE_NONE, 0, true },
};

static void bad_reply_desc(const struct bad_reply *c, char *desc)
{
	strscpy(desc, c->what, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(bad_reply, bad_replies, bad_reply_desc);

static void bad_reply_ends_in_one_event(struct kunit *test)
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
	/* ERR-06 INI-15: what comes later changes nothing */
	expect_over(f, iw_mpa_peer_gone(&f->s, 0), 1);
	expect_over(f, iw_mpa_timeout(&f->s), 1);
	expect_over(f, iw_mpa_abort(&f->s, -ENODEV), 1);
}

/* IRD-06 ERR-19: the peer's values go up with the reject */
static void reject_tells_the_peers_values(struct kunit *test)
{
	struct fake *f = initiator(test);

	feed(f, REP "700200088008c00862757379", 532, false);
	KUNIT_EXPECT_TRUE(test, f->ev.peer_known);
	KUNIT_EXPECT_EQ(test, 8, (int)f->ev.peer_ird);
	KUNIT_EXPECT_EQ(test, 8, (int)f->ev.peer_ord);
	KUNIT_EXPECT_EQ(test, 4, (int)f->ev.pdata_len);
	KUNIT_EXPECT_EQ(test, 0, memcmp(f->pdata, "busy", 4));
}

/* INI-14 ERR-02: a QP that does not move is a local catastrophic error */
static void initiator_whose_qp_fails_terminates(struct kunit *test)
{
	struct fake *f = initiator(test);

	f->enter_rv = -ENOMEM;
	expect_over(f, feed(f, REP "500200048008c008", 532, false), 1);
	KUNIT_EXPECT_EQ(test, 1, f->terms);
	KUNIT_EXPECT_EQ(test, RDMA_MPA_ECODE_LOCAL, f->term);
	KUNIT_EXPECT_EQ(test, -ENOMEM, f->ev.status);
}

/* SEC-08 INI-15: one event, a late reply is nobody's */
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
static void oversized_input_is_refused_locally(struct kunit *test)
{
	static const u8 pdata[IW_MPA_PDATA_MAX];
	struct iw_mpa_ulp ulp = { .pdata = pdata, .pdata_len = 509 };
	struct fake *f = new_fake(test, &iw_mpa_default_policy);

	KUNIT_EXPECT_EQ(test, -EINVAL, iw_mpa_ulp_check(&f->s, &ulp));
	KUNIT_EXPECT_EQ(test, -EINVAL, iw_mpa_connect(&f->s, &ulp));
	KUNIT_EXPECT_EQ(test, 0, f->sends);
	KUNIT_EXPECT_EQ(test, 0, f->events);

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

/* RSP-01 RSP-17: the ULP is asked, nothing is sent; V13 carries "ping" */
static void request_is_shown_to_the_ulp(struct kunit *test)
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
		/* IRD-29: its ORD asks for our IRD, its IRD bounds our ORD */
		KUNIT_EXPECT_EQ(test, 4, (int)f->ev.ird);
		KUNIT_EXPECT_EQ(test, 8, (int)f->ev.ord);
		KUNIT_EXPECT_EQ(test, 8, (int)f->ev.peer_ird);
		KUNIT_EXPECT_EQ(test, 4, (int)f->ev.peer_ord);
		KUNIT_EXPECT_EQ(test, 0, memcmp(f->pdata, "ping", 4));
	}
}

/* IRD-28 I6: who says nothing may have what there is */
static void plain_request_offers_the_devices_depths(struct kunit *test)
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
	{ "SEC-07: a reply at a listener", REP "40010000" },
	{ "RSP-02 SEC-04 V24: block cut short", REQ "500200028008" },
	{ "SEC-03 V25: PD_Length 513, header only", REQ "50020201" },
	{ "IOP-13 V26: Rev 3", REQ "5003000400080004" },
	{ "IOP-13: Rev 0", REQ "40000000" },
	{ "SEC-06: V05 + 1 byte", REQ "5002000400080004", true },
	{ "IOP-17 V03: markers wanted, reject", REQ "c001000568656c6c6f", false,
	  REP "60010000" },
	{ "IOP-17: markers wanted, enhanced reject", REQ "d002000400080004",
	  false, REP "7002000400040008" },
};

static void bad_request_desc(const struct bad_request *c, char *desc)
{
	strscpy(desc, c->what, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(bad_request, bad_requests, bad_request_desc);

static void bad_request_is_not_shown(struct kunit *test)
{
	const struct bad_request *c = test->param_value;
	struct fake *f = responder(test);

	expect_over(f, feed(f, c->hex, 532, c->more), 0);
	KUNIT_EXPECT_EQ(test, c->reject ? 1 : 0, f->sends);
	if (c->reject)
		expect_sent(f, c->reject);
	KUNIT_EXPECT_EQ(test, 0, f->enters);
}

/* RSP-14 RSP-16 RTR-25: QP first, reply then, established with the FPDU */
static void peer_to_peer_accept_waits_for_the_rtr(struct kunit *test)
{
	struct fake *f = responder(test);

	feed(f, REQ "500200048008c008", 532, false);
	KUNIT_EXPECT_EQ(test, 0, iw_mpa_accept(&f->s, &ulp_8_8));
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
	KUNIT_EXPECT_EQ(test, RDMA_MPA_RTR_WRITE, (int)f->s.rtr_seen);
	KUNIT_EXPECT_EQ(test, 2, f->events);
	KUNIT_EXPECT_EQ(test, IW_MPA_EVENT_ESTABLISHED, f->ev.type);
	KUNIT_EXPECT_EQ(test, 0, f->ev.status);
	KUNIT_EXPECT_EQ(test, 0, (int)f->ev.pdata_len);
	KUNIT_EXPECT_EQ(test, 0u, f->deadline);

	/* exactly once */
	KUNIT_EXPECT_EQ(test, IW_MPA_NEXT_DONE, iw_mpa_first_fpdu(&f->s, 0));
	KUNIT_EXPECT_EQ(test, IW_MPA_NEXT_DONE, iw_mpa_timeout(&f->s));
	KUNIT_EXPECT_EQ(test, 2, f->events);
}

/* RTR-25: a device that keeps the gate itself tells nobody when it opens */
static void offloaded_rtr_is_not_waited_for(struct kunit *test)
{
	struct iw_mpa_caps caps = fake_caps;
	struct fake *f;

	caps.rtr_offload = true;
	caps.rtr_recv_one = true;
	f = new_device(test, &caps, &iw_mpa_default_policy);
	iw_mpa_respond(&f->s);
	feed(f, REQ "500200048008c008", 532, false);
	KUNIT_EXPECT_EQ(test, 0, iw_mpa_accept(&f->s, &ulp_8_8));
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

/* FRM-05: each direction has its own markers; M only where they are wanted */
static void markers_are_asked_for_by_policy(struct kunit *test)
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
	iw_mpa_accept(&f->s, &ulp_8_8);
	expect_sent(f, REP "c0010000");
	KUNIT_EXPECT_TRUE(test, f->rdma.rx_markers);
}

/* RTR-30 V05 V33: established by the reply; still fenced */
static void client_server_accept_is_established_at_once(struct kunit *test)
{
	static const struct iw_mpa_ulp ulp = { .ird = 4, .ord = 8 };
	struct fake *f = responder(test);

	feed(f, REQ "5002000400080004", 532, false);
	KUNIT_EXPECT_EQ(test, 0, iw_mpa_accept(&f->s, &ulp));
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
	KUNIT_EXPECT_EQ(test, 0, iw_mpa_accept(&f->s, &ulp_8_8));
	expect_sent(f, REP "40010000");

	f = responder(test);
	feed(f, REQ "40020003686921", 532, false);
	KUNIT_EXPECT_EQ(test, 3, (int)f->ev.pdata_len);
	KUNIT_EXPECT_EQ(test, 0, iw_mpa_accept(&f->s, &ulp_8_8));
	expect_sent(f, REP "40020000");
}

/* FRM-06: neither asks, no CRC; we require, CRC and C=1 */
static void crc_is_used_if_either_side_asks(struct kunit *test)
{
	struct iw_mpa_policy policy = iw_mpa_default_policy;
	struct fake *f = responder(test);

	feed(f, REQ "00010000", 532, false);
	iw_mpa_accept(&f->s, &ulp_8_8);
	expect_sent(f, REP "00010000");
	KUNIT_EXPECT_FALSE(test, f->rdma.crc);

	policy.crc = RDMA_MPA_CRC_REQUIRED;
	f = new_fake(test, &policy);
	iw_mpa_respond(&f->s);
	feed(f, REQ "00010000", 532, false);
	iw_mpa_accept(&f->s, &ulp_8_8);
	expect_sent(f, REP "40010000");
	KUNIT_EXPECT_TRUE(test, f->rdma.crc);

	policy.crc = RDMA_MPA_CRC_OFF;
	f = new_fake(test, &policy);
	iw_mpa_respond(&f->s);
	expect_over(f, feed(f, REQ "40010000", 532, false), 0);
	expect_sent(f, REP "60010000");
}

/* SEC-06: data while the ULP decides */
static void peer_that_speaks_out_of_turn_is_dropped(struct kunit *test)
{
	struct fake *f = responder(test);
	size_t used;

	feed(f, REQ "500200048008c008", 532, false);
	expect_over(f, iw_mpa_rx(&f->s, "x", 1, &used), 1);
	KUNIT_EXPECT_EQ(test, 0, (int)used);
	KUNIT_EXPECT_EQ(test, -ECONNRESET, iw_mpa_accept(&f->s, &ulp_8_8));
	KUNIT_EXPECT_EQ(test, -ECONNRESET, iw_mpa_reject(&f->s, NULL, 0));
	KUNIT_EXPECT_EQ(test, 0, f->sends);
	KUNIT_EXPECT_EQ(test, 1, f->events);
}

/* RTR-29 S2: no RTR */
static void missing_rtr_ends_in_one_event(struct kunit *test)
{
	struct fake *f = responder(test);

	feed(f, REQ "500200048008c008", 532, false);
	iw_mpa_accept(&f->s, &ulp_8_8);
	expect_over(f, iw_mpa_timeout(&f->s), 2);
	KUNIT_EXPECT_EQ(test, IW_MPA_EVENT_ESTABLISHED, f->ev.type);
	KUNIT_EXPECT_EQ(test, -ETIMEDOUT, f->ev.status);
	KUNIT_EXPECT_EQ(test, 0, f->terms);
	expect_over(f, iw_mpa_first_fpdu(&f->s, RDMA_MPA_RTR_WRITE), 2);
	expect_over(f, iw_mpa_peer_gone(&f->s, -EPIPE), 2);
}

/* S1 ERR-06: RST between reply and RTR */
static void reset_before_the_rtr_ends_in_one_event(struct kunit *test)
{
	struct fake *f = responder(test);

	feed(f, REQ "500200048008c008", 532, false);
	iw_mpa_accept(&f->s, &ulp_8_8);
	expect_over(f, iw_mpa_peer_gone(&f->s, -ECONNRESET), 2);
	KUNIT_EXPECT_EQ(test, IW_MPA_EVENT_ESTABLISHED, f->ev.type);
	KUNIT_EXPECT_EQ(test, -ECONNRESET, f->ev.status);
	expect_over(f, iw_mpa_timeout(&f->s), 2);
}

/* RSP-03 RSP-04: a reject is as enhanced as its request */
static void reject_answers_in_kind(struct kunit *test)
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

/* AMB-09 I7: a failed accept still answers; no event */
static void failed_accept_sends_a_reject(struct kunit *test)
{
	static const struct iw_mpa_ulp ulp = { .ird = 129 };
	struct fake *f = responder(test);

	feed(f, REQ "5002000400080004", 532, false);
	f->enter_rv = -ENOMEM;
	KUNIT_EXPECT_EQ(test, -ENOMEM, iw_mpa_accept(&f->s, &ulp_8_8));
	expect_sent(f, REP "7002000400040008");
	KUNIT_EXPECT_EQ(test, IW_MPA_CLOSED, f->s.state);
	KUNIT_EXPECT_EQ(test, 1, f->events);

	f = responder(test);
	feed(f, REQ "5002000400080004", 532, false);
	KUNIT_EXPECT_EQ(test, -EINVAL, iw_mpa_accept(&f->s, &ulp));
	expect_sent(f, REP "7002000400040008");
	KUNIT_EXPECT_EQ(test, 0, f->enters);
}

static void undelivered_request_is_rejected(struct kunit *test)
{
	struct fake *f = responder(test);

	f->event_rv = -ENOMEM;
	expect_over(f, feed(f, REQ "40010000", 532, false), 1);
	expect_sent(f, REP "60010000");
}

/* SEC-09: FIN after every byte of a request: no event, one end */
static void fin_anywhere_in_a_request_is_silent(struct kunit *test)
{
	u8 bin[64];
	size_t len, n, used;

	for (n = 0; n < 28; n++) {
		struct fake *f = responder(test);

		len = unhex(f, REQ "50020008c008c00870696e67", bin);
		KUNIT_ASSERT_EQ(test, 28, (int)len);
		if (n)
			KUNIT_EXPECT_EQ(test, IW_MPA_NEXT_WAIT,
					iw_mpa_rx(&f->s, bin, n, &used));
		expect_over(f, iw_mpa_peer_gone(&f->s, 0), 0);
	}
}

/* What a driver feeds beyond the frame is left to it */
static void no_more_than_the_frame_is_used(struct kunit *test)
{
	struct fake *f = initiator(test);
	u8 bin[64];
	size_t used, len = unhex(f, REP "500200048008c008ffff", bin);

	KUNIT_EXPECT_EQ(test, 20, (int)iw_mpa_rx_want(&f->s));
	KUNIT_EXPECT_EQ(test, IW_MPA_NEXT_FRAME,
			iw_mpa_rx(&f->s, bin, len, &used));
	KUNIT_EXPECT_EQ(test, 24, (int)used);
	KUNIT_EXPECT_EQ(test, 0, (int)iw_mpa_rx_want(&f->s));
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
static void tcp_that_cannot_connect_ends_in_one_event(struct kunit *test)
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

/* IOP-06 IOP-07 AMB-23: once, the same private data, one outcome (INI-15) */
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

/* IOP-08 AMB-23: a timeout, a word of the peer, a ULP that needs Rev 2 */
static void no_fallback_without_reason(struct kunit *test)
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

static void expect_first_rev(struct kunit *test, u32 ip, u16 port,
			     enum rdma_mpa_model model, u8 rev)
{
	struct fake *f = new_fake(test, fallback_policy(model));

	set_peer(f, ip, port);
	KUNIT_ASSERT_EQ(test, 0, iw_mpa_connect(&f->s, &ulp_8_8));
	iw_mpa_connected(&f->s);
	KUNIT_EXPECT_EQ(test, rev, f->tx[17]);
}

/* IOP-09: no RTR then */
static void rev1_peer_is_remembered(struct kunit *test)
{
	const u32 ip = 0xc0000201; /* 192.0.2.1 */
	struct fake *f = new_fake(test, fallback_policy(RDMA_MPA_MODEL_PEER_TO_PEER));

	set_peer(f, ip, 7174);
	KUNIT_ASSERT_EQ(test, 0, iw_mpa_connect(&f->s, &ulp_8_8));
	iw_mpa_connected(&f->s);
	iw_mpa_peer_gone(&f->s, 0);
	iw_mpa_connected(&f->s);
	/* It has not answered Rev 1 either, yet */
	expect_first_rev(test, ip, 7174, RDMA_MPA_MODEL_PEER_TO_PEER, 2);

	KUNIT_EXPECT_EQ(test, IW_MPA_NEXT_DONE,
			feed(f, REP "00010000", 64, false));
	KUNIT_EXPECT_EQ(test, 1, f->events);
	KUNIT_EXPECT_EQ(test, 0, f->ev.status);
	KUNIT_EXPECT_EQ(test, 0, f->rdma.rtr);

	expect_first_rev(test, ip, 7174, RDMA_MPA_MODEL_PEER_TO_PEER, 1);
	expect_first_rev(test, ip, 7174, RDMA_MPA_MODEL_PEER_TO_PEER_REQUIRED, 2);
	expect_first_rev(test, ip, 7175, RDMA_MPA_MODEL_PEER_TO_PEER, 2);
	expect_first_rev(test, ip + 1, 7174, RDMA_MPA_MODEL_PEER_TO_PEER, 2);
}

static u64 counted(struct kunit *test, struct iw_mpa_device *dev,
		   const char *name)
{
	struct rdma_hw_stats *stats = iw_mpa_alloc_port_stats();
	u64 value = U64_MAX;
	int i;

	KUNIT_ASSERT_NOT_NULL(test, stats);
	KUNIT_EXPECT_EQ(test, stats->num_counters,
			iw_mpa_get_port_stats(dev, 1, stats));
	for (i = 0; i < stats->num_counters; i++)
		if (!strcmp(stats->descs[i].name, name))
			value = stats->value[i];
	rdma_free_hw_stats_struct(stats);
	return value;
}

/* As initiator(), on a port that counts; its Reply cannot be carried out */
static void initiator_whose_qp_fails(struct kunit *test,
				     struct iw_mpa_device *dev, int term_rv)
{
	struct fake *f = kunit_kzalloc(test, sizeof(*f), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, f);
	f->test = test;
	f->enter_rv = -ENOMEM;
	f->term_rv = term_rv;
	KUNIT_ASSERT_EQ(test, 0, iw_mpa_session_open(&f->s, &fake_ops, dev, 1,
						     NULL));
	KUNIT_ASSERT_EQ(test, 0, iw_mpa_connect(&f->s, &ulp_8_8));
	iw_mpa_connected(&f->s);
	KUNIT_EXPECT_EQ(test, 1ULL, counted(test, dev, "mpa_half_open"));
	expect_over(f, feed(f, REP "500200048008c008", 532, false), 1);
	KUNIT_EXPECT_EQ(test, 0ULL, counted(test, dev, "mpa_half_open"));
}

static void term_is_counted_if_it_is_sent(struct kunit *test)
{
	static const struct iw_mpa_device_ops ops = { .llp = "tcp" };
	struct ib_device *ibdev = kunit_kzalloc(test, sizeof(*ibdev),
						GFP_KERNEL);
	struct iw_mpa_device *dev;

	KUNIT_ASSERT_NOT_NULL(test, ibdev);
	ibdev->phys_port_cnt = 1;
	ibdev->dev.init_name = "fake";
	dev = iw_mpa_register_device(ibdev, &fake_caps, NULL, &ops);
	KUNIT_ASSERT_FALSE(test, IS_ERR(dev));

	initiator_whose_qp_fails(test, dev, 0);
	KUNIT_EXPECT_EQ(test, 1ULL, counted(test, dev, "mpa_term_sent_local"));
	initiator_whose_qp_fails(test, dev, -EINVAL);
	KUNIT_EXPECT_EQ(test, 1ULL, counted(test, dev, "mpa_term_sent_local"));
	KUNIT_EXPECT_EQ(test, 2ULL, counted(test, dev, "mpa_failed_initiator"));
	iw_mpa_unregister_device(dev);
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

/* As with connect(), TCP takes the first @len bytes at most */
static size_t dial(struct fake *f, size_t len)
{
	len = min(len, iw_mpa_early_request(&f->s, f->syn, sizeof(f->syn)));
	memset(f->syn + len, 0, sizeof(f->syn) - len);
	iw_mpa_early_sent(&f->s, len);
	return len;
}

/* The SYN's @cut bytes and what was sent later are the frame */
static void expect_sent_in_two(struct fake *f, const char *hex, size_t cut)
{
	u8 bin[IW_MPA_FRAME_MAX];
	size_t len = unhex(f, hex, bin);

	KUNIT_ASSERT_EQ(f->test, len - cut, f->tx_len);
	KUNIT_EXPECT_EQ(f->test, 0, memcmp(bin, f->syn, cut));
	KUNIT_EXPECT_EQ(f->test, 0, memcmp(bin + cut, f->tx, len - cut));
}

static void request_is_early_only_if_asked_for_and_possible(struct kunit *test)
{
	u8 buf[IW_MPA_FRAME_MAX];
	int policy_on, caps_on;

	for (policy_on = 0; policy_on < 2; policy_on++)
		for (caps_on = 0; caps_on < 2; caps_on++) {
			struct fake *f = new_fast_opener(test, policy_on,
							 caps_on, false);
			bool on = policy_on && caps_on;

			KUNIT_EXPECT_EQ(test, on, iw_mpa_may_fast_open(&f->s));
			iw_mpa_connect(&f->s, &ulp_ping);
			KUNIT_EXPECT_EQ(test, on ? 28 : 0,
					(int)iw_mpa_early_request(&f->s, buf,
								  sizeof(buf)));
		}
}

static void request_is_early_only_before_tcp_is_up(struct kunit *test)
{
	struct fake *f = new_fast_opener(test, true, true, false);
	u8 buf[IW_MPA_FRAME_MAX];

	KUNIT_EXPECT_EQ(test, 0, (int)iw_mpa_early_request(&f->s, buf,
							   sizeof(buf)));
	iw_mpa_connect(&f->s, &ulp_ping);
	/* Looking changes nothing; what does not fit is not sent early */
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

/* RSP-02 FRM-20: each byte once, wherever TCP cuts */
static void early_and_late_bytes_make_one_request(struct kunit *test)
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

		/* The Reply is measured against what was sent early, too */
		KUNIT_EXPECT_EQ(test, IW_MPA_NEXT_DONE,
				feed(f, REP "500200048008c008", 532, false));
		KUNIT_EXPECT_EQ(test, 1, f->events);
		KUNIT_EXPECT_EQ(test, 0, f->ev.status);
		KUNIT_EXPECT_EQ(test, RDMA_MPA_RTR_WRITE, (int)f->rdma.rtr);
		KUNIT_EXPECT_EQ(test, 8, (int)f->rdma.ird);
	}
}

/* IOP-06: the second attempt has a Request of its own, behind the handshake */
static void second_attempt_is_not_early(struct kunit *test)
{
	struct fake *f = fast_opener(test, true);

	KUNIT_EXPECT_EQ(test, 28, (int)dial(f, IW_MPA_FRAME_MAX));
	iw_mpa_fast_opened(&f->s);
	iw_mpa_connected(&f->s);
	KUNIT_EXPECT_EQ(test, 0, f->sends);
	KUNIT_EXPECT_TRUE(test, f->s.fast_opened);

	KUNIT_EXPECT_EQ(test, IW_MPA_NEXT_RECONNECT,
			iw_mpa_peer_gone(&f->s, 0));
	KUNIT_EXPECT_FALSE(test, f->s.fast_opened);
	KUNIT_EXPECT_EQ(test, 0, (int)dial(f, IW_MPA_FRAME_MAX));
	KUNIT_EXPECT_EQ(test, IW_MPA_NEXT_WAIT, iw_mpa_connected(&f->s));
	expect_sent(f, REQ "0001000470696e67");
	KUNIT_EXPECT_EQ(test, 0, f->events);
}

/* ERR-06 INI-15: nobody listens, or nobody answers the SYN */
static void early_request_nobody_gets_ends_in_one_event(struct kunit *test)
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

static struct iw_mpa_device *fake_device(struct kunit *test, bool caps_on)
{
	static const struct iw_mpa_device_ops ops = { .llp = "tcp" };
	struct iw_mpa_policy initial = iw_mpa_default_policy;
	struct iw_mpa_caps caps = fake_caps;
	struct iw_mpa_device *dev;
	struct ib_device *ibdev;

	ibdev = kunit_kzalloc(test, sizeof(*ibdev), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, ibdev);
	ibdev->phys_port_cnt = 1;
	ibdev->dev.init_name = "fake";
	initial.fastopen = true;
	caps.fastopen = caps_on;
	dev = iw_mpa_register_device(ibdev, &caps, &initial, &ops);
	KUNIT_ASSERT_FALSE(test, IS_ERR(dev));
	return dev;
}

static struct fake *open_on(struct kunit *test, struct iw_mpa_device *dev)
{
	struct fake *f = kunit_kzalloc(test, sizeof(*f), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, f);
	f->test = test;
	KUNIT_ASSERT_EQ(test, 0, iw_mpa_session_open(&f->s, &fake_ops, dev, 1,
						     NULL));
	return f;
}

static void requests_in_syns_are_counted(struct kunit *test)
{
	struct iw_mpa_device *dev = fake_device(test, true);
	struct fake *f = open_on(test, dev);

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
	iw_mpa_unregister_device(dev);
}

/* Below its own layers, what a device cannot do is not asked of it */
static void device_without_fast_open_does_without(struct kunit *test)
{
	struct iw_mpa_device *dev = fake_device(test, false);

	KUNIT_EXPECT_FALSE(test, open_on(test, dev)->s.policy.fastopen);
	iw_mpa_unregister_device(dev);
	dev = fake_device(test, true);
	KUNIT_EXPECT_TRUE(test, open_on(test, dev)->s.policy.fastopen);
	iw_mpa_unregister_device(dev);
}

static struct kunit_case session_cases[] = {
	KUNIT_CASE(initiator_asks_for_write_and_read),
	KUNIT_CASE(initiator_enters_rdma_with_the_rtr),
	KUNIT_CASE(reply_may_come_in_any_portions),
	KUNIT_CASE_PARAM(bad_reply_ends_in_one_event, bad_reply_gen_params),
	KUNIT_CASE(reject_tells_the_peers_values),
	KUNIT_CASE(initiator_whose_qp_fails_terminates),
	KUNIT_CASE(silent_responder_times_out),
	KUNIT_CASE(oversized_input_is_refused_locally),
	KUNIT_CASE(request_is_shown_to_the_ulp),
	KUNIT_CASE(plain_request_offers_the_devices_depths),
	KUNIT_CASE_PARAM(bad_request_is_not_shown, bad_request_gen_params),
	KUNIT_CASE(peer_to_peer_accept_waits_for_the_rtr),
	KUNIT_CASE(offloaded_rtr_is_not_waited_for),
	KUNIT_CASE(markers_are_asked_for_by_policy),
	KUNIT_CASE(client_server_accept_is_established_at_once),
	KUNIT_CASE(plain_requests_get_plain_replies),
	KUNIT_CASE(crc_is_used_if_either_side_asks),
	KUNIT_CASE(peer_that_speaks_out_of_turn_is_dropped),
	KUNIT_CASE(missing_rtr_ends_in_one_event),
	KUNIT_CASE(reset_before_the_rtr_ends_in_one_event),
	KUNIT_CASE(reject_answers_in_kind),
	KUNIT_CASE(failed_accept_sends_a_reject),
	KUNIT_CASE(undelivered_request_is_rejected),
	KUNIT_CASE(fin_anywhere_in_a_request_is_silent),
	KUNIT_CASE(no_more_than_the_frame_is_used),
	KUNIT_CASE(a_used_session_cannot_connect_again),
	KUNIT_CASE(tcp_that_cannot_connect_ends_in_one_event),
	KUNIT_CASE(close_on_request_falls_back_to_rev1),
	KUNIT_CASE(no_fallback_without_reason),
	KUNIT_CASE(rev1_peer_is_remembered),
	KUNIT_CASE(term_is_counted_if_it_is_sent),
	KUNIT_CASE(request_is_early_only_if_asked_for_and_possible),
	KUNIT_CASE(request_is_early_only_before_tcp_is_up),
	KUNIT_CASE(early_and_late_bytes_make_one_request),
	KUNIT_CASE(second_attempt_is_not_early),
	KUNIT_CASE(early_request_nobody_gets_ends_in_one_event),
	KUNIT_CASE(requests_in_syns_are_counted),
	KUNIT_CASE(device_without_fast_open_does_without),
	{}
};

static struct kunit_suite session_suite = {
	.name = "iw_mpa_session",
	.test_cases = session_cases,
};

kunit_test_suite(session_suite);

MODULE_DESCRIPTION("KUnit tests of iw_mpa's session");
MODULE_LICENSE("GPL");
