// SPDX-License-Identifier: GPL-2.0
/*
 * Decisions against the conformance matrix: tables whose rows name the
 * requirements they show. Expected values are computed from the text.
 */
#include <kunit/test.h>
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/string.h>

#include <rdma/ib_verbs.h>

#include "iw_mpa_side.h"

/* Control messages, named after the vectors that carry them */
#define MSG(_ird, _ord)						\
	{ .enhanced = true, .enh = { .ird = (_ird), .ord = (_ord) } }
#define P2P(_rtr, _ird, _ord)					\
	{ .enhanced = true, .enh = { .p2p = true, .rtr = (_rtr),	\
				     .ird = (_ird), .ord = (_ord) } }
#define NO_MSG(_ird, _ord)					\
	{ .enhanced = true, .reject = true,			\
	  .enh = { .ird = (_ird), .ord = (_ord) } }
#define NO_P2P(_rtr, _ird, _ord)				\
	{ .enhanced = true, .reject = true,			\
	  .enh = { .p2p = true, .rtr = (_rtr),			\
		   .ird = (_ird), .ord = (_ord) } }
#define V01	{ .enhanced = false }
#define V05	MSG(8, 4)
#define V07	P2P(BY_SEND, 8, 8)
#define V08	P2P(BY_WRITE, 8, 8)
#define V09	P2P(BY_READ, 8, 8)
#define V10	P2P(BY_SEND | BY_WRITE, 8, 8)
#define V11	P2P(BY_SEND | BY_READ, 8, 8)
#define V12	P2P(BY_WRITE | BY_READ, 8, 8)
#define V13	P2P(ALL, 8, 8)
#define V14	P2P(0, 8, 8)
#define V15	MSG(ULP, ULP)
#define V16	MSG(ULP, 4)
#define V17	P2P(BY_WRITE, 4, ULP)
#define V18	P2P(ALL, COUNT_MAX, COUNT_MAX)
#define V19	P2P(BY_READ, 0, 0)
#define V30	{ .enhanced = false }
#define V31	{ .reject = true }
#define V33	MSG(4, 8)
#define V34	P2P(BY_SEND, 8, 8)
#define V35	P2P(BY_WRITE, 8, 8)
#define V36	P2P(BY_READ, 1, 0)
#define V37	P2P(BY_WRITE | BY_READ, 8, 8)
#define V38	P2P(ALL, 8, 8)
#define V39	MSG(ULP, ULP)
#define V40	MSG(4, ULP)
#define V41	P2P(BY_WRITE, ULP, 4)
#define V42	NO_MSG(4, 32)
#define V43	NO_P2P(BY_WRITE | BY_READ, 8, 8)
#define V44	MSG(4, 64)
#define V45	P2P(BY_READ, 8, 8)
#define V47	MSG(8, 8)
#define V48	{ .enhanced = false }
#define V50	P2P(0, 8, 8)

static void expect_msg(struct kunit *test, const struct iw_mpa_msg *want,
		       const struct iw_mpa_msg *got)
{
	KUNIT_EXPECT_EQ(test, want->enhanced, got->enhanced);
	KUNIT_EXPECT_EQ(test, want->reject, got->reject);
	KUNIT_EXPECT_EQ(test, want->enh.p2p, got->enh.p2p);
	KUNIT_EXPECT_EQ(test, want->enh.rtr, got->enh.rtr);
	KUNIT_EXPECT_EQ(test, want->enh.ird, got->enh.ird);
	KUNIT_EXPECT_EQ(test, want->enh.ord, got->enh.ord);
}

static void expect_peer(struct kunit *test, const struct iw_mpa_msg *peer,
			const struct iw_mpa_decision *got)
{
	KUNIT_EXPECT_EQ(test, peer->enhanced, got->peer_known);
	if (!peer->enhanced)
		return;
	KUNIT_EXPECT_EQ(test, peer->enh.ird, got->peer_ird);
	KUNIT_EXPECT_EQ(test, peer->enh.ord, got->peer_ord);
}

/* ---------------------------------------------------------------- Request */

struct request_case {
	const char *desc;
	struct setup local;
	int ret;
	struct iw_mpa_msg want;
};

static const struct request_case request_cases[] = {
	{
		.desc = "INI-07 INI-06 FRM-08 V05: a client-server Request has the ULP's depths",
		.local = { .ird = 8, .ord = 4 },
		.want = V05,
	}, {
		.desc = "INI-03 FRM-12 V01: a Rev 1 Request has no enhanced data",
		.local = { .ird = 8, .ord = 4, .rev1 = true },
		.want = V01,
	}, {
		.desc = "INI-03 V01: a Rev 2 Request without enhancements has no enhanced data",
		.local = { .ird = 8, .ord = 4, .plain = true },
		.want = V01,
	}, {
		.desc = "INI-03 V01: a plain Request contains no depth 0x3fff and no p2p flag",
		.local = { .ird = 8, .ord = 4, .plain = true, .ird_ulp = true,
			   .ord_ulp = true, .model = RDMA_MPA_MODEL_PEER_TO_PEER },
		.want = V01,
	}, {
		.desc = "INI-04 INI-05 V13: a p2p Request offers every RTR kind",
		.local = { .ird = 8, .ord = 8, .model = RDMA_MPA_MODEL_PEER_TO_PEER },
		.want = V13,
	}, {
		.desc = "INI-04 V13: model peer-to-peer-required sends a p2p Request",
		.local = { .ird = 8, .ord = 8,
			   .model = RDMA_MPA_MODEL_PEER_TO_PEER_REQUIRED },
		.want = V13,
	}, {
		.desc = "INI-05 AMB-15 V12: a p2p Request omits the RTR kind that policy excludes",
		.local = { .ird = 8, .ord = 8, .model = RDMA_MPA_MODEL_PEER_TO_PEER,
			   .offer = BY_WRITE | BY_READ },
		.want = V12,
	}, {
		.desc = "INI-05 V10: a p2p Request omits the RTR kind that the device cannot send",
		.local = { .ird = 8, .ord = 8, .model = RDMA_MPA_MODEL_PEER_TO_PEER,
			   .send = BY_SEND | BY_WRITE },
		.want = V10,
	}, {
		.desc = "INI-05 V08: a p2p Request offers only RTR kinds of both policy and device",
		.local = { .ird = 8, .ord = 8, .model = RDMA_MPA_MODEL_PEER_TO_PEER,
			   .send = BY_SEND | BY_WRITE,
			   .offer = BY_WRITE | BY_READ },
		.want = V08,
	}, {
		.desc = "IRD-26 V19: IRD and ORD 0 are sent as counts in the Request",
		.local = { .model = RDMA_MPA_MODEL_PEER_TO_PEER, .offer = BY_READ },
		.want = V19,
	}, {
		.desc = "IRD-19 V15: a Request has IRD and ORD 0x3fff if the ULP manages both",
		.local = { .ird = 8, .ord = 4, .ird_ulp = true,
			   .ord_ulp = true },
		.want = V15,
	}, {
		.desc = "IRD-19 IRD-24 V16: a Request has IRD 0x3fff if the ULP manages only IRD",
		.local = { .ird = 8, .ord = 4, .ird_ulp = true },
		.want = V16,
	}, {
		.desc = "IRD-19 IRD-24 V17: a Request has ORD 0x3fff if the ULP manages only ORD",
		.local = { .ird = 4, .ord = 4, .ord_ulp = true,
			   .model = RDMA_MPA_MODEL_PEER_TO_PEER, .offer = BY_WRITE },
		.want = V17,
	}, {
		.desc = "FRM-17 V18: the largest IRD and ORD, 0x3ffe, are sent in the Request",
		.local = { .cap = 0x3ffe, .ird = 0x3ffe, .ord = 0x3ffe,
			   .model = RDMA_MPA_MODEL_PEER_TO_PEER },
		.want = V18,
	}, {
		.desc = "FRM-18: a ULP's depth of 0x3fff is sent as the count 0x3ffe",
		.local = { .cap = 0xffff, .ird = 0x3fff, .ord = 0x3fff },
		.want = MSG(0x3ffe, 0x3ffe),
	}, {
		.desc = "FRM-18: depths above 0x3ffe are sent as 0x3ffe and not cut by a mask",
		.local = { .cap = 0xffff, .ird = 0x4000, .ord = 0xffff },
		.want = MSG(0x3ffe, 0x3ffe),
	}, {
		.desc = "SEC-11: a Request with the device's largest IRD and ORD is allowed",
		.local = { .cap = 16, .ird = 16, .ord = 16 },
		.want = MSG(16, 16),
	}, {
		.desc = "SEC-11: a Request with IRD above the device's limit is refused",
		.local = { .cap = 16, .ird = 17, .ord = 16 },
		.ret = -EINVAL,
	}, {
		.desc = "SEC-11: a Request with ORD above the device's limit is refused",
		.local = { .cap = 16, .ird = 16, .ord = 17 },
		.ret = -EINVAL,
	}, {
		.desc = "SEC-11: a Request with IRD 0x10008 is refused, not cut to 16 bits",
		.local = { .cap = 16, .ird = 0x10008, .ord = 4 },
		.ret = -EINVAL,
	}, {
		.desc = "SEC-11: a Request with ORD 0x10004 is refused, not cut to 16 bits",
		.local = { .cap = 0xffff, .ird = 8, .ord = 0x10004 },
		.ret = -EINVAL,
	},
};

static void request_desc(const struct request_case *c, char *desc)
{
	strscpy(desc, c->desc, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(request, request_cases, request_desc);

static void mpa_request_matches_policy_and_ulp_parameters(struct kunit *test)
{
	const struct request_case *c = test->param_value;
	struct iw_mpa_msg got;
	struct side side;

	set_up(&side, &c->local);
	memset(&got, UNTOUCHED, sizeof(got));
	KUNIT_ASSERT_EQ(test, c->ret, iw_mpa_make_request(&side.local, &got));
	if (!c->ret)
		expect_msg(test, &c->want, &got);
}

/* -------------------------------------------------------------- initiator */

/**
 * struct initiator_case - Request and Reply, and the initiator's decision
 * @desc: requirements and scenario
 * @local: the initiator
 * @request: the initiator's Request
 * @reply: the peer's Reply
 * @verdict: the decision's
 * @status: the decision's
 * @ecode: the decision's
 * @ird: the decision's, if @verdict is IW_MPA_GO
 * @ord: the decision's, if @verdict is IW_MPA_GO
 * @slot_for_rtr: a read slot is reserved for the RTR
 * @rtr: the decision's
 */
struct initiator_case {
	const char *desc;
	struct setup local;
	struct iw_mpa_msg request;
	struct iw_mpa_msg reply;
	enum iw_mpa_verdict verdict;
	int status;
	enum rdma_mpa_ecode ecode;
	u16 ird;
	u16 ord;
	bool slot_for_rtr;
	u8 rtr;
};

#define GO(_ird, _ord, _rtr)					\
	.verdict = IW_MPA_GO, .ird = (_ird), .ord = (_ord), .rtr = (_rtr)
#define GO_SLOT(_ird, _rtr)					\
	GO(_ird, 0, _rtr), .slot_for_rtr = true
#define REFUSED	.verdict = IW_MPA_REJECTED, .status = -ECONNREFUSED
#define DROP	.verdict = IW_MPA_DROP, .status = -EPROTO,	\
		.ecode = RDMA_MPA_ECODE_BAD_FRAME
#define TERM_6	.verdict = IW_MPA_TERMINATE, .status = -ENOMEM,	\
		.ecode = RDMA_MPA_ECODE_IRD
#define TERM_7	.verdict = IW_MPA_TERMINATE, .status = -EPROTO,	\
		.ecode = RDMA_MPA_ECODE_RTR

static const struct initiator_case initiator_cases[] = {
	/* enhanced or not, accepted or not */
	{
		.desc = "IOP-01 IRD-05 IRD-29 INI-06 V05 V33: a client-server Accept connects",
		.local = { .ird = 8, .ord = 4 },
		.request = V05, .reply = V33, GO(8, 4, 0),
	}, {
		.desc = "IOP-04 IOP-11 IRD-28 RTR-30 V01 V30: a plain Accept keeps IRD and ORD",
		.local = { .ird = 8, .ord = 4, .plain = true },
		.request = V01, .reply = V30, GO(8, 4, 0),
	}, {
		.desc = "IOP-14 AMB-04 ERR-09 V05 V48: a plain Accept of an enhanced Request fails",
		.local = { .ird = 8, .ord = 4 },
		.request = V05, .reply = V48, DROP,
	}, {
		.desc = "IOP-15 ERR-09 V01 V33: an enhanced Accept of a plain Request fails",
		.local = { .ird = 8, .ord = 4, .plain = true },
		.request = V01, .reply = V33, DROP,
	}, {
		.desc = "INI-09 V01 V31: a plain Reject of a plain Request gives ECONNREFUSED",
		.local = { .ird = 8, .ord = 4, .plain = true },
		.request = V01, .reply = V31, REFUSED,
	}, {
		.desc = "AMB-03 AMB-04 V05 V31 V49: a plain Reject rejects an enhanced Request",
		.local = { .ird = 8, .ord = 4 },
		.request = V05, .reply = V31, REFUSED,
	}, {
		.desc = "INI-09 IRD-06 V05 V42: the peer's depths in a Reject are reported",
		.local = { .ird = 8, .ord = 4 },
		.request = V05, .reply = V42, REFUSED,
	}, {
		.desc = "RTR-10 INI-09 V08 V43: a Reject that lists RTR kinds causes no RTR",
		.local = { .ird = 8, .ord = 8, .model = RDMA_MPA_MODEL_PEER_TO_PEER },
		.request = V08, .reply = V43, REFUSED,
	}, {
		.desc = "INI-09 V01 V42: an enhanced Reject rejects a plain Request",
		.local = { .ird = 8, .ord = 4, .plain = true },
		.request = V01, .reply = V42, REFUSED,
	}, {
		.desc = "INI-09 RTR-12: a client-server Reject of a p2p Request is not a mismatch",
		.local = { .ird = 8, .ord = 8, .model = RDMA_MPA_MODEL_PEER_TO_PEER },
		.request = V08, .reply = V42, REFUSED,
	}, {
		.desc = "INI-09 IRD-15: a Reject with ORD above our limit gives ECONNREFUSED",
		.local = { .cap = 16, .ird = 8, .ord = 4 },
		.request = V05, .reply = V42, REFUSED,
	},
	/* RTR */
	{
		.desc = "RTR-06 RTR-02 V07 V34: a Send RTR follows an Accept with Send only",
		.local = { .ird = 8, .ord = 8, .model = RDMA_MPA_MODEL_PEER_TO_PEER },
		.request = V07, .reply = V34, GO(8, 8, BY_SEND),
	}, {
		.desc = "RTR-06 RTR-03 V08 V35: a Write RTR follows an Accept with Write only",
		.local = { .ird = 8, .ord = 8, .model = RDMA_MPA_MODEL_PEER_TO_PEER },
		.request = V08, .reply = V35, GO(8, 8, BY_WRITE),
	}, {
		.desc = "RTR-06 RTR-04 RTR-23 V09 V45: a Read RTR follows an Accept with Read only",
		.local = { .ird = 8, .ord = 8, .model = RDMA_MPA_MODEL_PEER_TO_PEER },
		.request = V09, .reply = V45, GO(8, 8, BY_READ),
	}, {
		.desc =
		"RSP-09 RTR-06 V13 V35: a Write RTR follows if only Write of three is accepted",
		.local = { .ird = 8, .ord = 8, .model = RDMA_MPA_MODEL_PEER_TO_PEER },
		.request = V13, .reply = V35, GO(8, 8, BY_WRITE),
	}, {
		.desc = "RTR-15 RTR-14 AMB-01 V13 V38: Write is chosen from three agreed RTR kinds",
		.local = { .ird = 8, .ord = 8, .model = RDMA_MPA_MODEL_PEER_TO_PEER },
		.request = V13, .reply = V38, GO(8, 8, BY_WRITE),
	}, {
		.desc = "RTR-15 RTR-14 V12 V37: Write is chosen if Write and Read RTR are agreed",
		.local = { .ird = 8, .ord = 8, .model = RDMA_MPA_MODEL_PEER_TO_PEER },
		.request = V12, .reply = V37, GO(8, 8, BY_WRITE),
	}, {
		.desc = "RTR-15 AMB-01 V11: Read is chosen if Send and Read RTR are agreed",
		.local = { .ird = 8, .ord = 8, .model = RDMA_MPA_MODEL_PEER_TO_PEER },
		.request = V11, .reply = V11, GO(8, 8, BY_READ),
	}, {
		.desc = "RTR-15 V13 V38: Read is chosen from three agreed RTR kinds if preferred",
		.local = { .ird = 8, .ord = 8, .model = RDMA_MPA_MODEL_PEER_TO_PEER,
			   .read_first = true },
		.request = V13, .reply = V38, GO(8, 8, BY_READ),
	}, {
		.desc = "RTR-15 V10: Send is chosen over Write as RTR if policy prefers Send",
		.local = { .ird = 8, .ord = 8, .model = RDMA_MPA_MODEL_PEER_TO_PEER,
			   .read_first = true },
		.request = V10, .reply = V10, GO(8, 8, BY_SEND),
	}, {
		.desc = "RTR-06 V07 V38: a Send RTR is chosen of three by a Send-only device",
		.local = { .ird = 8, .ord = 8, .model = RDMA_MPA_MODEL_PEER_TO_PEER,
			   .send = BY_SEND },
		.request = V07, .reply = V38, GO(8, 8, BY_SEND),
	}, {
		.desc =
		"RTR-07 ERR-05 ERR-18 ERR-19 V08 V45: an unsupported Read RTR gives TERM 2/0/7",
		.local = { .ird = 8, .ord = 8, .model = RDMA_MPA_MODEL_PEER_TO_PEER,
			   .send = BY_WRITE },
		.request = V08, .reply = V45, TERM_7,
	}, {
		.desc =
		"RTR-09 RSP-11 V08 V45: an accepted Read RTR not offered but supported is sent",
		.local = { .ird = 8, .ord = 8, .model = RDMA_MPA_MODEL_PEER_TO_PEER,
			   .offer = BY_WRITE },
		.request = V08, .reply = V45, GO(8, 8, BY_READ),
	}, {
		.desc = "RTR-09 V09 V35: an accepted Write RTR not offered but supported is sent",
		.local = { .ird = 8, .ord = 8, .model = RDMA_MPA_MODEL_PEER_TO_PEER,
			   .offer = BY_READ },
		.request = V09, .reply = V35, GO(8, 8, BY_WRITE),
	}, {
		.desc = "RTR-11 ERR-05 V08 V50: a p2p Accept without an RTR kind gives TERM 2/0/7",
		.local = { .ird = 8, .ord = 8, .model = RDMA_MPA_MODEL_PEER_TO_PEER },
		.request = V08, .reply = V50, TERM_7,
	}, {
		.desc =
		"RTR-12 ERR-05 ERR-19 V08 V47: a client-server Accept of p2p gives TERM 2/0/7",
		.local = { .ird = 8, .ord = 8, .model = RDMA_MPA_MODEL_PEER_TO_PEER },
		.request = V08, .reply = V47, TERM_7,
	}, {
		.desc = "RTR-12: a client-server Accept gives TERM 2/0/7 where p2p is required",
		.local = { .ird = 8, .ord = 8,
			   .model = RDMA_MPA_MODEL_PEER_TO_PEER_REQUIRED },
		.request = V08, .reply = V47, TERM_7,
	}, {
		.desc =
		"RTR-13 AMB-13 V05 V35: an unrequested p2p Accept gets a supported Write RTR",
		.local = { .ird = 8, .ord = 4 },
		.request = V05, .reply = V35, GO(8, 4, BY_WRITE),
	}, {
		.desc =
		"RTR-13 AMB-13 V05 V35: unrequested p2p without a usable RTR gives TERM 2/0/7",
		.local = { .ird = 8, .ord = 4, .send = BY_READ },
		.request = V05, .reply = V35, TERM_7,
	}, {
		.desc = "RTR-05 SEC-10: RTR flags in a client-server Accept are ignored",
		.local = { .ird = 8, .ord = 4 },
		.request = V05,
		.reply = { .enhanced = true,
			   .enh = { .rtr = ALL, .ird = 4, .ord = 8 } },
		GO(8, 4, 0),
	},
	/* RTR by Read */
	{
		.desc = "IRD-08 IRD-09 V19 V36: a Read RTR at ORD 0 reserves one read slot",
		.local = { .ird = 0, .ord = 0, .model = RDMA_MPA_MODEL_PEER_TO_PEER,
			   .offer = BY_READ },
		.request = V19, .reply = V36, GO_SLOT(0, BY_READ),
	}, {
		.desc = "IRD-09: a Write RTR at ORD 0 reserves no read slot",
		.local = { .ird = 0, .ord = 0, .model = RDMA_MPA_MODEL_PEER_TO_PEER },
		.request = P2P(ALL, 0, 0), .reply = P2P(ALL, 1, 0),
		GO(0, 0, BY_WRITE),
	}, {
		.desc = "IRD-09: a Read RTR at ORD 1 uses that read slot and reserves no other",
		.local = { .ird = 0, .ord = 1, .model = RDMA_MPA_MODEL_PEER_TO_PEER },
		.request = P2P(BY_READ, 0, 1), .reply = P2P(BY_READ, 1, 0),
		GO(0, 1, BY_READ),
	}, {
		.desc = "IRD-09 IRD-19: a Read RTR reserves a read slot at an ORD 0 of the ULP",
		.local = { .ird = 4, .ord = 0, .ord_ulp = true,
			   .model = RDMA_MPA_MODEL_PEER_TO_PEER },
		.request = P2P(BY_READ, 4, ULP), .reply = P2P(BY_READ, ULP, 4),
		GO_SLOT(4, BY_READ),
	}, {
		.desc = "RTR-24 AMB-16: an Accept with only a Read RTR and IRD 0 gives TERM 2/0/7",
		.local = { .ird = 8, .ord = 8, .model = RDMA_MPA_MODEL_PEER_TO_PEER },
		.request = V09, .reply = P2P(BY_READ, 0, 8), TERM_7,
	}, {
		.desc =
		"RTR-24 IRD-26: Send replaces the preferred Read RTR if the Accept has IRD 0",
		.local = { .ird = 8, .ord = 8, .model = RDMA_MPA_MODEL_PEER_TO_PEER,
			   .read_first = true },
		.request = V11, .reply = P2P(BY_SEND | BY_READ, 0, 8),
		GO(8, 0, BY_SEND),
	}, {
		.desc = "RTR-24 AMB-16: a Read RTR is sent if the Accept has IRD 0x3fff",
		.local = { .ird = 8, .ord = 8, .model = RDMA_MPA_MODEL_PEER_TO_PEER },
		.request = V09, .reply = P2P(BY_READ, ULP, 8),
		GO(8, 8, BY_READ),
	},
	/* IRD and ORD */
	{
		.desc =
		"IRD-13 IRD-16 V05 V44: ORD 64 of an Accept raises IRD 8 to 64 at limit 128",
		.local = { .ird = 8, .ord = 4 },
		.request = V05, .reply = V44, GO(64, 4, 0),
	}, {
		.desc =
		"IRD-15 ERR-03 ERR-19 V05 V44: ORD 64 of an Accept at limit 16 gives TERM 2/0/6",
		.local = { .cap = 16, .ird = 8, .ord = 4 },
		.request = V05, .reply = V44, TERM_6,
	}, {
		.desc =
		"IRD-16 V05 V44: ORD 64 of an Accept raises our IRD to a device limit of 64",
		.local = { .cap = 64, .ird = 8, .ord = 4 },
		.request = V05, .reply = V44, GO(64, 4, 0),
	}, {
		.desc =
		"IRD-15 V05 V44: ORD 64 of an Accept at a device limit of 63 gives TERM 2/0/6",
		.local = { .cap = 63, .ird = 8, .ord = 4 },
		.request = V05, .reply = V44, TERM_6,
	}, {
		.desc = "IRD-15 IRD-27: ORD 0x3ffe of an Accept at limit 128 gives TERM 2/0/6",
		.local = { .ird = 8, .ord = 4 },
		.request = V05, .reply = MSG(8, COUNT_MAX), TERM_6,
	}, {
		.desc = "ERR-17: an Accept with both ORD and RTR unacceptable gives TERM 2/0/6",
		.local = { .cap = 16, .ird = 8, .ord = 8, .send = BY_WRITE,
			   .model = RDMA_MPA_MODEL_PEER_TO_PEER },
		.request = V08, .reply = P2P(BY_READ, 8, 64), TERM_6,
	}, {
		.desc = "ERR-17 RTR-12: an excessive ORD and a model mismatch give TERM 2/0/6",
		.local = { .cap = 16, .ird = 8, .ord = 8,
			   .model = RDMA_MPA_MODEL_PEER_TO_PEER },
		.request = V08, .reply = V44, TERM_6,
	}, {
		.desc = "IRD-14 IRD-17 AMB-11: IRD 2 of an Accept lowers our ORD from 4 to 2",
		.local = { .ird = 8, .ord = 4 },
		.request = V05, .reply = MSG(2, 8), GO(8, 2, 0),
	}, {
		.desc = "IRD-14: IRD 32 of an Accept does not raise our ORD of 4",
		.local = { .ird = 8, .ord = 4 },
		.request = V05, .reply = MSG(32, 8), GO(8, 4, 0),
	}, {
		.desc = "IRD-14 IRD-27: IRD 0x3ffe of an Accept does not change our ORD",
		.local = { .ird = 8, .ord = 4 },
		.request = V05, .reply = MSG(COUNT_MAX, 8), GO(8, 4, 0),
	}, {
		.desc = "AMB-19: ORD 2 of an Accept does not lower our IRD of 8",
		.local = { .ird = 8, .ord = 4 },
		.request = V05, .reply = MSG(4, 2), GO(8, 4, 0),
	}, {
		.desc = "IRD-26: an Accept with IRD and ORD 0 lowers our ORD to 0, our IRD stays",
		.local = { .ird = 8, .ord = 4 },
		.request = V05, .reply = MSG(0, 0), GO(8, 0, 0),
	},
	/* 0x3fff */
	{
		.desc = "IRD-22 IRD-23 V15 V39: an Accept with IRD and ORD 0x3fff keeps our depths",
		.local = { .ird = 8, .ord = 4, .ird_ulp = true,
			   .ord_ulp = true },
		.request = V15, .reply = V39, GO(8, 4, 0),
	}, {
		.desc =
		"IRD-23 IRD-24 IRD-14 V16 V40: ORD 0x3fff keeps our IRD, IRD 2 lowers our ORD",
		.local = { .ird = 20, .ord = 4, .ird_ulp = true },
		.request = V16, .reply = MSG(2, ULP), GO(20, 2, 0),
	}, {
		.desc =
		"IRD-22 IRD-24 IRD-13 V17 V41: IRD 0x3fff keeps our ORD, ORD 6 raises our IRD",
		.local = { .ird = 4, .ord = 9, .ord_ulp = true,
			   .model = RDMA_MPA_MODEL_PEER_TO_PEER },
		.request = V17, .reply = P2P(BY_WRITE, ULP, 6),
		GO(6, 9, BY_WRITE),
	}, {
		.desc = "AMB-18 IRD-25 V05 V39: unrequested 0x3fff in an Accept keeps our depths",
		.local = { .cap = 16, .ird = 8, .ord = 4 },
		.request = V05, .reply = V39, GO(8, 4, 0),
	}, {
		.desc = "AMB-18 V15 V33: counts in an Accept of our 0x3fff keep our depths",
		.local = { .ird = 6, .ord = 9, .ird_ulp = true,
			   .ord_ulp = true },
		.request = V15, .reply = V33, GO(6, 9, 0),
	}, {
		.desc = "AMB-18 IRD-15 V16 V44: an ORD above the limit keeps an IRD of the ULP",
		.local = { .cap = 16, .ird = 8, .ord = 4, .ird_ulp = true },
		.request = V16, .reply = V44, GO(8, 4, 0),
	},
	/* devices that round up */
	{
		.desc = "IRD-14 pow2: our ORD, limited to 3 by the Accept, is rounded down to 2",
		.local = { .ird = 8, .ord = 4, .pow2 = true },
		.request = V05, .reply = MSG(3, 8), GO(8, 2, 0),
	}, {
		.desc = "IRD-13 pow2: our IRD, raised to 9 by the Accept, is rounded up to 16",
		.local = { .ird = 8, .ord = 4, .pow2 = true },
		.request = V05, .reply = MSG(4, 9), GO(16, 4, 0),
	}, {
		.desc = "IRD-27 pow2: an initiator's IRD is rounded up to the device limit at most",
		.local = { .cap = 12, .ird = 8, .ord = 4, .pow2 = true },
		.request = V05, .reply = MSG(4, 9), GO(12, 4, 0),
	}, {
		.desc = "IRD-26 pow2: an initiator's depths of 0 are not rounded",
		.local = { .ird = 0, .ord = 4, .pow2 = true },
		.request = MSG(0, 4), .reply = MSG(0, 0), GO(0, 0, 0),
	}, {
		.desc = "IRD-19 pow2: an initiator's depths managed by the ULP are not rounded",
		.local = { .ird = 5, .ord = 5, .pow2 = true, .ird_ulp = true,
			   .ord_ulp = true },
		.request = V15, .reply = V39, GO(5, 5, 0),
	}, {
		.desc = "IRD-28 pow2: an initiator's depths are not rounded without enhanced data",
		.local = { .ird = 5, .ord = 5, .pow2 = true, .plain = true },
		.request = V01, .reply = V30, GO(5, 5, 0),
	},
};

static void initiator_desc(const struct initiator_case *c, char *desc)
{
	strscpy(desc, c->desc, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(initiator, initiator_cases, initiator_desc);

static void initiator_follows_the_conformance_matrix_for_every_reply(struct kunit *test)
{
	const struct initiator_case *c = test->param_value;
	struct iw_mpa_decision got;
	struct side side;

	set_up(&side, &c->local);
	memset(&got, UNTOUCHED, sizeof(got));
	iw_mpa_negotiate_initiator(&side.local, &c->request, &c->reply, &got);
	KUNIT_EXPECT_EQ(test, c->verdict, got.verdict);
	KUNIT_EXPECT_EQ(test, c->status, got.status);
	KUNIT_EXPECT_EQ(test, c->ecode, got.ecode);
	KUNIT_EXPECT_EQ(test, c->rtr, got.rtr);
	if (c->verdict != IW_MPA_DROP)
		expect_peer(test, &c->reply, &got);
	if (c->verdict != IW_MPA_GO)
		return;
	KUNIT_EXPECT_EQ(test, c->ird, got.ird);
	KUNIT_EXPECT_EQ(test, c->ord, got.ord);
	KUNIT_EXPECT_EQ(test, c->slot_for_rtr ? 1 : c->ord, got.read_slots);
}

/* -------------------------------------------------------------- responder */

/**
 * struct responder_case - a Request and the responder's decision
 * @desc: requirements and scenario
 * @local: the responder
 * @request: the peer's Request
 * @verdict: the decision's
 * @status: the decision's
 * @ecode: the decision's, checked if @any_ecode is false
 * @any_ecode: the matrix names no code
 * @ird: the decision's, if @verdict is IW_MPA_GO
 * @ord: the decision's, if @verdict is IW_MPA_GO
 * @reply: the decision's; its RTR kinds are those to expect
 */
struct responder_case {
	const char *desc;
	struct setup local;
	struct iw_mpa_msg request;
	enum iw_mpa_verdict verdict;
	int status;
	enum rdma_mpa_ecode ecode;
	bool any_ecode;
	u16 ird;
	u16 ord;
	struct iw_mpa_msg reply;
};

#define SAY_YES(_ird, _ord)					\
	.verdict = IW_MPA_GO, .ird = (_ird), .ord = (_ord)
#define SAY_NO(_status, _ecode)					\
	.verdict = IW_MPA_REJECTED, .status = (_status), .ecode = (_ecode)

static const struct responder_case responder_cases[] = {
	/* enhanced or not */
	{
		.desc =
		"IOP-01 RSP-03 RSP-07 IRD-01 IRD-29 V05 V33: enhanced Request gets enhanced Accept",
		.local = { .ird = 2, .ord = 16 },
		.request = V05, SAY_YES(4, 8), .reply = V33,
	}, {
		.desc =
		"IOP-02 IOP-10 RSP-04 RSP-05 IRD-28 V01 V30: a plain Request gets a plain Accept",
		.local = { .ird = 2, .ord = 16 },
		.request = V01, SAY_YES(2, 16), .reply = V30,
	}, {
		.desc =
		"IOP-11 IOP-12 RTR-30: a plain Request gets a plain Accept though policy is p2p",
		.local = { .ird = 0, .ord = 0, .model = RDMA_MPA_MODEL_PEER_TO_PEER },
		.request = V01, SAY_YES(0, 0), .reply = V30,
	}, {
		.desc =
		"RSP-06 RTR-05 SEC-10 V22: RTR flags in a client-server Request are ignored",
		.local = { .ird = 8, .ord = 8, .model = RDMA_MPA_MODEL_PEER_TO_PEER },
		.request = { .enhanced = true,
			     .enh = { .rtr = ALL, .ird = 8, .ord = 8 } },
		SAY_YES(8, 8), .reply = MSG(8, 8),
	},
	/* RTR */
	{
		.desc = "RSP-06 RSP-08 V07 V34: an offer of a Send RTR is accepted with Send",
		.local = { .ird = 8, .ord = 8, .model = RDMA_MPA_MODEL_PEER_TO_PEER },
		.request = V07, SAY_YES(8, 8), .reply = V34,
	}, {
		.desc = "RSP-06 RSP-08 V08 V35: an offer of a Write RTR is accepted with Write",
		.local = { .ird = 8, .ord = 8, .model = RDMA_MPA_MODEL_PEER_TO_PEER },
		.request = V08, SAY_YES(8, 8), .reply = V35,
	}, {
		.desc = "RSP-06 V08 V35: a p2p Request is accepted though policy is client-server",
		.local = { .ird = 8, .ord = 8 },
		.request = V08, SAY_YES(8, 8), .reply = V35,
	}, {
		.desc =
		"RSP-06 V05 V33: a client-server Request gets such an Accept though policy is p2p",
		.local = { .ird = 4, .ord = 8, .model = RDMA_MPA_MODEL_PEER_TO_PEER },
		.request = V05, SAY_YES(4, 8), .reply = V33,
	}, {
		.desc = "RSP-08 V13 V38: an offer of all RTR kinds is accepted with all kinds",
		.local = { .ird = 8, .ord = 8, .model = RDMA_MPA_MODEL_PEER_TO_PEER },
		.request = V13, SAY_YES(8, 8), .reply = V38,
	}, {
		.desc = "RSP-08 V12 V37: an offer of Write and Read RTR is accepted with both",
		.local = { .ird = 8, .ord = 8, .model = RDMA_MPA_MODEL_PEER_TO_PEER },
		.request = V12, SAY_YES(8, 8), .reply = V37,
	}, {
		.desc = "RSP-09 V13 V35: a Write-only device accepts only Write of all RTR kinds",
		.local = { .ird = 8, .ord = 8, .recv = BY_WRITE },
		.request = V13, SAY_YES(8, 8), .reply = V35,
	}, {
		.desc =
		"RSP-09 V13 V35: a device of one RTR kind at a time accepts only Write of all",
		.local = { .ird = 8, .ord = 8, .recv_one = true },
		.request = V13, SAY_YES(8, 8), .reply = V35,
	}, {
		.desc =
		"RSP-09 V12 V45: a one-RTR device accepts the preferred Read of Write and Read",
		.local = { .ird = 8, .ord = 8, .recv_one = true,
			   .read_first = true },
		.request = V12, SAY_YES(8, 8), .reply = V45,
	}, {
		.desc =
		"RSP-10 V08 V35: a one-RTR device that prefers Read accepts an offered Write",
		.local = { .ird = 8, .ord = 8, .recv_one = true,
			   .read_first = true },
		.request = V08, SAY_YES(8, 8), .reply = V35,
	}, {
		.desc = "RSP-12 V07 V45: a one-RTR device answers an unsupported Send with Read",
		.local = { .ird = 8, .ord = 8, .recv_one = true,
			   .recv = BY_WRITE | BY_READ, .read_first = true },
		.request = V07, SAY_YES(8, 8), .reply = V45,
	}, {
		.desc = "RSP-10 AMB-12 V10 V35: only the common RTR kind, Write, is accepted",
		.local = { .ird = 8, .ord = 8, .recv = BY_WRITE | BY_READ },
		.request = V10, SAY_YES(8, 8), .reply = V35,
	}, {
		.desc =
		"RSP-12 V08 V45: a Read-only device answers an offer of a Write RTR with Read",
		.local = { .ird = 8, .ord = 8, .recv = BY_READ },
		.request = V08, SAY_YES(8, 8), .reply = V45,
	}, {
		.desc =
		"RSP-12 V07 V37: a device that recognises no Send RTR offers Write and Read",
		.local = { .ird = 8, .ord = 8, .recv = BY_WRITE | BY_READ },
		.request = V07, SAY_YES(8, 8), .reply = V37,
	}, {
		.desc =
		"RTR-08 AMB-02 V14 V37: a p2p Request without RTR kinds gets our Write and Read",
		.local = { .ird = 8, .ord = 8, .recv = BY_WRITE | BY_READ },
		.request = V14, SAY_YES(8, 8), .reply = V37,
	}, {
		.desc = "RTR-08 V14 V38: a p2p Request without RTR kinds gets all three of ours",
		.local = { .ird = 8, .ord = 8 },
		.request = V14, SAY_YES(8, 8), .reply = V38,
	}, {
		.desc = "RSP-06 V08 V35: a p2p Request is accepted where p2p is required",
		.local = { .ird = 8, .ord = 8,
			   .model = RDMA_MPA_MODEL_PEER_TO_PEER_REQUIRED },
		.request = V08, SAY_YES(8, 8), .reply = V35,
	}, {
		.desc =
		"RSP-03 ERR-05 V05: a client-server Request is rejected where p2p is required",
		.local = { .ird = 8, .ord = 8,
			   .model = RDMA_MPA_MODEL_PEER_TO_PEER_REQUIRED },
		.request = V05, SAY_NO(-EPROTO, RDMA_MPA_ECODE_RTR),
		.reply = NO_MSG(4, 8),
	}, {
		.desc = "RSP-04 ERR-05 V01: a plain Request is rejected where p2p is required",
		.local = { .ird = 8, .ord = 8,
			   .model = RDMA_MPA_MODEL_PEER_TO_PEER_REQUIRED },
		.request = V01, SAY_NO(-EPROTO, RDMA_MPA_ECODE_RTR),
		.reply = { .reject = true },
	},
	/* RTR by Read */
	{
		.desc = "IRD-07 IRD-08 V19 V36: an accepted Read RTR raises our IRD from 0 to 1",
		.local = { .ird = 0, .ord = 0 },
		.request = V19, SAY_YES(1, 0), .reply = V36,
	}, {
		.desc = "IRD-08: a Read RTR that was not requested raises our IRD from 0 to 1",
		.local = { .ird = 0, .ord = 0, .recv = BY_READ },
		.request = P2P(BY_WRITE, 8, 0), SAY_YES(1, 0),
		.reply = P2P(BY_READ, 1, 0),
	}, {
		.desc = "IRD-08 IRD-26: our IRD stays 0 if the Accept has no Read RTR",
		.local = { .ird = 0, .ord = 0 },
		.request = P2P(BY_WRITE, 8, 0), SAY_YES(0, 0),
		.reply = P2P(BY_WRITE, 0, 0),
	}, {
		.desc = "IRD-20 RTR-24: an Accept omits the Read RTR if ORD 0x3fff keeps our IRD 0",
		.local = { .ird = 0, .ord = 4 },
		.request = P2P(BY_WRITE | BY_READ, 4, ULP), SAY_YES(0, 4),
		.reply = P2P(BY_WRITE, ULP, 4),
	}, {
		.desc =
		"IRD-20 RSP-12: Send and Write replace a requested Read RTR if our IRD stays 0",
		.local = { .ird = 0, .ord = 4 },
		.request = P2P(BY_READ, 4, ULP), SAY_YES(0, 4),
		.reply = P2P(BY_SEND | BY_WRITE, ULP, 4),
	}, {
		.desc = "IRD-20 RSP-13: a Read-only device whose IRD stays 0 rejects a Read RTR",
		.local = { .ird = 0, .ord = 4, .recv = BY_READ },
		.request = P2P(BY_READ, 4, ULP),
		SAY_NO(-EPROTO, RDMA_MPA_ECODE_RTR),
		.reply = NO_P2P(BY_READ, ULP, 4),
	}, {
		.desc = "IRD-20: a Read RTR is accepted if ORD 0x3fff keeps our IRD 1",
		.local = { .ird = 1, .ord = 4, .recv = BY_READ },
		.request = P2P(BY_READ, 4, ULP), SAY_YES(1, 4),
		.reply = P2P(BY_READ, ULP, 4),
	}, {
		.desc = "AMB-18 V12: an Accept omits the Read RTR if our ULP manages an IRD of 0",
		.local = { .ird = 0, .ord = 4, .ird_ulp = true },
		.request = V12, SAY_YES(0, 4), .reply = P2P(BY_WRITE, 0, 4),
	},
	/* IRD and ORD */
	{
		.desc = "IRD-02: IRD 8 of a Request lowers our ORD from 32 to 8",
		.local = { .ird = 4, .ord = 32 },
		.request = V05, SAY_YES(4, 8), .reply = MSG(4, 8),
	}, {
		.desc = "IRD-02: IRD 8 of a Request does not raise our ORD of 3",
		.local = { .ird = 4, .ord = 3 },
		.request = V05, SAY_YES(4, 3), .reply = MSG(4, 3),
	}, {
		.desc = "IRD-03 RSP-18: ORD 4 of a Request raises our IRD from 0 to 4",
		.local = { .ird = 0, .ord = 8 },
		.request = V05, SAY_YES(4, 8), .reply = MSG(4, 8),
	}, {
		.desc = "IRD-03 RSP-18: ORD 4 of a Request does not lower our IRD of 32",
		.local = { .ird = 32, .ord = 8 },
		.request = V05, SAY_YES(32, 8), .reply = MSG(32, 8),
	}, {
		.desc = "IRD-04: ORD 4 of a Request raises our IRD only to the device limit of 2",
		.local = { .cap = 2, .ird = 1, .ord = 2 },
		.request = V05, SAY_YES(2, 2), .reply = MSG(2, 2),
	}, {
		.desc = "IRD-26: IRD 0 of a Request lowers our ORD to 0",
		.local = { .ird = 4, .ord = 8 },
		.request = MSG(0, 4), SAY_YES(4, 0), .reply = MSG(4, 0),
	}, {
		.desc =
		"IRD-27 SEC-02 V18: ORD 0x3ffe raises our IRD only to the device limit of 128",
		.local = { .ird = 8, .ord = 8 },
		.request = V18, SAY_YES(128, 8), .reply = P2P(ALL, 128, 8),
	}, {
		.desc = "FRM-18: our IRD of 0x4000 is sent as 0x3ffe in the Accept",
		.local = { .cap = 0xffff, .ird = 0x4000, .ord = 8 },
		.request = V05, SAY_YES(0x3ffe, 8), .reply = MSG(0x3ffe, 8),
	}, {
		.desc =
		"IRD-10 IRD-11 IRD-12 ERR-04 AMB-08 V05 V42: IRD 8 below our ORD 32 is rejected",
		.local = { .ird = 4, .ord = 32, .strict = true },
		.request = V05, SAY_NO(-ENOMEM, RDMA_MPA_ECODE_IRD),
		.reply = V42,
	}, {
		.desc = "IRD-10: a Request with IRD 8 below an ORD of 9 is rejected",
		.local = { .ird = 4, .ord = 9, .strict = true },
		.request = V05, SAY_NO(-ENOMEM, RDMA_MPA_ECODE_IRD),
		.reply = NO_MSG(4, 9),
	}, {
		.desc = "IRD-10: a Request with IRD 8 equal to our ORD is accepted",
		.local = { .ird = 4, .ord = 8, .strict = true },
		.request = V05, SAY_YES(4, 8), .reply = MSG(4, 8),
	}, {
		.desc =
		"IRD-10 IRD-25 V16 V40: a Request with IRD 0x3fff is accepted at our ORD 128",
		.local = { .ird = 4, .ord = 128, .strict = true },
		.request = V16, SAY_YES(4, 128), .reply = V40,
	}, {
		.desc = "IRD-10 RSP-06: a Reject of a small IRD copies p2p and lists our RTR kinds",
		.local = { .ird = 4, .ord = 9, .strict = true,
			   .recv = BY_WRITE | BY_READ },
		.request = V08, SAY_NO(-ENOMEM, RDMA_MPA_ECODE_IRD),
		.reply = NO_P2P(BY_WRITE | BY_READ, 8, 9),
	}, {
		.desc = "SEC-11: a Request is rejected if our ULP's IRD exceeds the device limit",
		.local = { .cap = 16, .ird = 17, .ord = 8 },
		.request = V05, SAY_NO(-EINVAL, 0), .any_ecode = true,
		.reply = NO_MSG(4, 8),
	}, {
		.desc = "SEC-11: a Request is rejected if our ULP's ORD exceeds the device limit",
		.local = { .cap = 16, .ird = 8, .ord = 17 },
		.request = V08, SAY_NO(-EINVAL, 0), .any_ecode = true,
		.reply = NO_P2P(ALL, 8, 8),
	}, {
		.desc =
		"SEC-11: a Request is rejected if our ULP's IRD is 0x10008, not cut to 16 bits",
		.local = { .cap = 16, .ird = 0x10008, .ord = 8 },
		.request = V01, SAY_NO(-EINVAL, 0), .any_ecode = true,
		.reply = { .reject = true },
	},
	/* 0x3fff */
	{
		.desc =
		"IRD-19 IRD-20 IRD-21 IRD-25 V15 V39: IRD and ORD 0x3fff are echoed, ours stay",
		.local = { .ird = 20, .ord = 9 },
		.request = V15, SAY_YES(20, 9), .reply = V39,
	}, {
		.desc = "IRD-21 IRD-24 V16 V40: IRD 0x3fff is echoed as ORD, ORD 4 raises our IRD",
		.local = { .ird = 2, .ord = 20 },
		.request = V16, SAY_YES(4, 20), .reply = V40,
	}, {
		.desc = "IRD-20 IRD-24 V17 V41: ORD 0x3fff is echoed as IRD, IRD 4 lowers our ORD",
		.local = { .ird = 9, .ord = 20 },
		.request = V17, SAY_YES(9, 4), .reply = V41,
	}, {
		.desc = "AMB-18: an IRD managed by our ULP is sent as a count in the Accept",
		.local = { .ird = 2, .ord = 8, .ird_ulp = true },
		.request = V05, SAY_YES(2, 8), .reply = MSG(2, 8),
	},
	/* devices that round up */
	{
		.desc = "RSP-18 pow2: our IRD 5 is rounded up to 8 and our ORD 7 down to 4",
		.local = { .ird = 5, .ord = 7, .pow2 = true },
		.request = V05, SAY_YES(8, 4), .reply = MSG(8, 4),
	}, {
		.desc = "IRD-02 pow2: our ORD, limited to 6 by the Request, is rounded down to 4",
		.local = { .ird = 4, .ord = 16, .pow2 = true },
		.request = MSG(6, 4), SAY_YES(4, 4), .reply = MSG(4, 4),
	}, {
		.desc = "IRD-27 pow2: a responder's IRD is rounded up to the device limit at most",
		.local = { .cap = 6, .ird = 5, .ord = 4, .pow2 = true },
		.request = V05, SAY_YES(6, 4), .reply = MSG(6, 4),
	}, {
		.desc = "IRD-26 pow2: a responder's depths of 0 are not rounded",
		.local = { .ird = 0, .ord = 0, .pow2 = true },
		.request = MSG(0, 0), SAY_YES(0, 0), .reply = MSG(0, 0),
	}, {
		.desc = "IRD-20 IRD-21 pow2: a responder's depths are not rounded after 0x3fff",
		.local = { .ird = 5, .ord = 7, .pow2 = true },
		.request = V15, SAY_YES(5, 7), .reply = V39,
	}, {
		.desc = "IRD-28 pow2: a responder's depths are not rounded without enhanced data",
		.local = { .ird = 5, .ord = 7, .pow2 = true },
		.request = V01, SAY_YES(5, 7), .reply = V30,
	},
};

static void responder_desc(const struct responder_case *c, char *desc)
{
	strscpy(desc, c->desc, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(responder, responder_cases, responder_desc);

static void responder_follows_the_conformance_matrix_for_every_request(struct kunit *test)
{
	const struct responder_case *c = test->param_value;
	struct iw_mpa_decision got;
	struct side side;

	set_up(&side, &c->local);
	memset(&got, UNTOUCHED, sizeof(got));
	iw_mpa_negotiate_responder(&side.local, &c->request, &got);
	KUNIT_EXPECT_EQ(test, c->verdict, got.verdict);
	KUNIT_EXPECT_EQ(test, c->status, got.status);
	if (!c->any_ecode)
		KUNIT_EXPECT_EQ(test, c->ecode, got.ecode);
	expect_peer(test, &c->request, &got);
	expect_msg(test, &c->reply, &got.reply);
	if (c->verdict != IW_MPA_GO)
		return;
	KUNIT_EXPECT_EQ(test, c->ird, got.ird);
	KUNIT_EXPECT_EQ(test, c->ord, got.ord);
	KUNIT_EXPECT_EQ(test, c->ord, got.read_slots);
	KUNIT_EXPECT_EQ(test, c->reply.enh.rtr, got.rtr);
}

/* ----------------------------------------------------------------- reject */

struct reject_case {
	const char *desc;
	struct setup local;
	struct iw_mpa_msg request;
	struct iw_mpa_msg want;
};

static const struct reject_case reject_cases[] = {
	{
		.desc = "RSP-04 V01 V31: a plain Request gets a plain Reject",
		.request = V01, .want = V31,
	}, {
		.desc = "RSP-03 RSP-07 V05: a client-server Request gets an enhanced Reject",
		.request = V05, .want = NO_MSG(4, 8),
	}, {
		.desc = "RSP-06 RTR-10 V08 V43: a p2p Request gets a Reject with our RTR kinds",
		.local = { .recv = BY_WRITE | BY_READ },
		.request = V08, .want = V43,
	}, {
		.desc =
		"RSP-06 V14: a p2p Request without an RTR kind gets a Reject with our kinds",
		.local = { .recv = BY_SEND },
		.request = V14, .want = NO_P2P(BY_SEND, 8, 8),
	}, {
		.desc = "IRD-27 V18: a Reject of depths of 0x3ffe has at most the device's depths",
		.local = { .cap = 16 },
		.request = V18, .want = NO_P2P(ALL, 16, 16),
	}, {
		.desc =
		"IRD-20 IRD-21 V15: a Request with IRD and ORD 0x3fff gets both in the Reject",
		.local = { .cap = 16 },
		.request = V15, .want = NO_MSG(ULP, ULP),
	}, {
		.desc =
		"IRD-21 IRD-24 V16: a Request with IRD 0x3fff gets a Reject with ORD 0x3fff",
		.request = V16, .want = NO_MSG(4, ULP),
	}, {
		.desc =
		"IRD-20 IRD-24 V17: a Request with ORD 0x3fff gets a Reject with IRD 0x3fff",
		.request = V17, .want = NO_P2P(ALL, ULP, 4),
	}, {
		.desc = "IRD-26: a Reject of a Request with IRD and ORD 0 contains 0 as counts",
		.request = MSG(0, 0), .want = NO_MSG(0, 0),
	},
};

static void reject_desc(const struct reject_case *c, char *desc)
{
	strscpy(desc, c->desc, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(reject, reject_cases, reject_desc);

static void reject_is_enhanced_only_if_its_request_is(struct kunit *test)
{
	const struct reject_case *c = test->param_value;
	struct iw_mpa_msg got;
	struct side side;

	set_up(&side, &c->local);
	memset(&got, UNTOUCHED, sizeof(got));
	iw_mpa_make_reject(&side.local, &c->request, &got);
	expect_msg(test, &c->want, &got);
}

static void reject_lists_rtr_kinds_of_both_policy_and_device(struct kunit *test)
{
	const struct iw_mpa_msg request = V13;
	struct setup setup = { .recv = BY_SEND | BY_WRITE };
	struct iw_mpa_msg got;
	struct side side;

	set_up(&side, &setup);
	side.policy.rtr_accept = BY_WRITE | BY_READ;
	iw_mpa_make_reject(&side.local, &request, &got);
	KUNIT_EXPECT_EQ(test, (u8)BY_WRITE, got.enh.rtr);
}

/* ----------------------------------------------------------------- policy */

/* Result of the check for the usual policy and device with @field at @value */
#define WITH_POLICY(field, value) ({				\
	struct iw_mpa_policy __p = usual_policy();		\
	struct iw_mpa_caps __c = usual_caps();			\
								\
	__p.field = (value);					\
	iw_mpa_policy_check(&__p, &__c);			\
})

#define WITH_CAPS(field, value) ({				\
	struct iw_mpa_policy __p = usual_policy();		\
	struct iw_mpa_caps __c = usual_caps();			\
								\
	__c.field = (value);					\
	iw_mpa_policy_check(&__p, &__c);			\
})

static void default_policy_has_the_documented_values(struct kunit *test)
{
	const struct iw_mpa_policy *p = &iw_mpa_default_policy;
	struct iw_mpa_caps caps = usual_caps();

	KUNIT_EXPECT_EQ(test, 0, iw_mpa_policy_check(p, &caps));
	KUNIT_EXPECT_EQ(test, 2, (int)p->rev);
	KUNIT_EXPECT_TRUE(test, p->enhanced);
	KUNIT_EXPECT_EQ(test, RDMA_MPA_MODEL_PEER_TO_PEER, p->model);
	KUNIT_EXPECT_EQ(test, BY_WRITE | BY_READ, (int)p->rtr_offer);
	/* RTR-15 */
	KUNIT_EXPECT_EQ(test, BY_WRITE, (int)p->rtr_order[0]);
	KUNIT_EXPECT_EQ(test, BY_READ, (int)p->rtr_order[1]);
	KUNIT_EXPECT_EQ(test, BY_SEND, (int)p->rtr_order[2]);
	KUNIT_EXPECT_EQ(test, RDMA_MPA_DIALECT_RFC6581, p->dialect);	/* OLD-13 */
	KUNIT_EXPECT_FALSE(test, p->ird_ulp || p->ord_ulp || p->short_ird);
}

static void policy_with_an_unsuitable_revision_is_invalid(struct kunit *test)
{
	struct iw_mpa_policy p = usual_policy();
	struct iw_mpa_caps caps = usual_caps();

	KUNIT_EXPECT_EQ(test, 0, iw_mpa_policy_check(&p, &caps));
	KUNIT_EXPECT_EQ(test, -EINVAL, WITH_POLICY(rev, 0));
	KUNIT_EXPECT_EQ(test, -EINVAL, WITH_POLICY(rev, 3));
	KUNIT_EXPECT_EQ(test, -EINVAL, WITH_POLICY(rev, 1));	/* FRM-10 */
	KUNIT_EXPECT_EQ(test, 0, WITH_POLICY(enhanced, false));

	p.enhanced = false;
	p.rev = 1;
	KUNIT_EXPECT_EQ(test, 0, iw_mpa_policy_check(&p, &caps));
	p.model = RDMA_MPA_MODEL_PEER_TO_PEER_REQUIRED;
	KUNIT_EXPECT_EQ(test, -EINVAL, iw_mpa_policy_check(&p, &caps));
	p.rev = 2;
	KUNIT_EXPECT_EQ(test, -EINVAL, iw_mpa_policy_check(&p, &caps));
	p.enhanced = true;
	KUNIT_EXPECT_EQ(test, 0, iw_mpa_policy_check(&p, &caps));
}

static void policy_without_an_rtr_kind_of_the_device_is_refused(struct kunit *test)
{
	struct iw_mpa_policy p = usual_policy();
	struct iw_mpa_caps caps = usual_caps();

	/* AMB-15, RSP-13 */
	KUNIT_EXPECT_EQ(test, -EINVAL, WITH_POLICY(rtr_offer, 0));
	KUNIT_EXPECT_EQ(test, -EINVAL, WITH_POLICY(rtr_accept, 0));
	KUNIT_EXPECT_EQ(test, -EINVAL, WITH_CAPS(rtr_send, 0));
	KUNIT_EXPECT_EQ(test, -EINVAL, WITH_CAPS(rtr_recv, 0));

	p.rtr_offer = BY_WRITE;
	p.rtr_accept = BY_READ;
	KUNIT_EXPECT_EQ(test, 0, iw_mpa_policy_check(&p, &caps));
	caps.rtr_send = BY_SEND | BY_READ;
	KUNIT_EXPECT_EQ(test, -EINVAL, iw_mpa_policy_check(&p, &caps));
	p.model = RDMA_MPA_MODEL_CLIENT_SERVER;
	KUNIT_EXPECT_EQ(test, 0, iw_mpa_policy_check(&p, &caps));
	caps.rtr_recv = BY_SEND | BY_WRITE;
	KUNIT_EXPECT_EQ(test, -EINVAL, iw_mpa_policy_check(&p, &caps));
	p.enhanced = false;
	KUNIT_EXPECT_EQ(test, 0, iw_mpa_policy_check(&p, &caps));
}

static void policy_with_unknown_values_is_invalid(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, -EINVAL, WITH_POLICY(rtr_offer, 9));
	KUNIT_EXPECT_EQ(test, -EINVAL, WITH_POLICY(rtr_accept, 0x81));
	KUNIT_EXPECT_EQ(test, -EINVAL, WITH_POLICY(crc, 3));
	KUNIT_EXPECT_EQ(test, -EINVAL, WITH_POLICY(crc, 255));
	KUNIT_EXPECT_EQ(test, -EINVAL, WITH_POLICY(model, 3));
	KUNIT_EXPECT_EQ(test, -EINVAL, WITH_POLICY(model, 255));
	KUNIT_EXPECT_EQ(test, -EINVAL, WITH_POLICY(dialect, 2));
	KUNIT_EXPECT_EQ(test, -EINVAL, WITH_POLICY(dialect, 255));
	KUNIT_EXPECT_EQ(test, 0, WITH_POLICY(crc, RDMA_MPA_CRC_REQUIRED));
	KUNIT_EXPECT_EQ(test, 0, WITH_POLICY(dialect, RDMA_MPA_DIALECT_EARLY_DRAFT));
}

static void policy_with_markers_is_refused_by_a_device_without_markers(struct kunit *test)
{
	struct iw_mpa_policy p = usual_policy();
	struct iw_mpa_caps caps = usual_caps();

	p.markers = true;
	KUNIT_EXPECT_EQ(test, -EINVAL, iw_mpa_policy_check(&p, &caps));
	caps.tx_markers = true;
	KUNIT_EXPECT_EQ(test, -EINVAL, iw_mpa_policy_check(&p, &caps));
	caps.rx_markers = true;
	KUNIT_EXPECT_EQ(test, 0, iw_mpa_policy_check(&p, &caps));
}

static void rtr_order_of_a_policy_must_list_every_kind_once(struct kunit *test)
{
	struct iw_mpa_policy p = usual_policy();
	struct iw_mpa_caps caps = usual_caps();
	bool good;
	int i;

	for (i = 0; i < 1000; i++) {
		p.rtr_order[0] = i % 10;
		p.rtr_order[1] = i / 10 % 10;
		p.rtr_order[2] = i / 100;
		/* among 0..9 only 1, 2 and 4 multiply to 8 and sum up to 7 */
		good = p.rtr_order[0] * p.rtr_order[1] * p.rtr_order[2] == 8 &&
		       p.rtr_order[0] + p.rtr_order[1] + p.rtr_order[2] == 7;
		KUNIT_EXPECT_EQ_MSG(test, good ? 0 : -EINVAL,
				    iw_mpa_policy_check(&p, &caps),
				    "order %03d, last first", i);
	}
}

static void policy_with_a_deadline_out_of_range_is_refused(struct kunit *test)
{
	const unsigned int max = RDMA_MPA_DEADLINE_MAX;

	/* SEC-08 */
	KUNIT_EXPECT_EQ(test, -EINVAL, WITH_POLICY(request_ms, 0));
	KUNIT_EXPECT_EQ(test, -EINVAL, WITH_POLICY(decide_ms, 0));
	KUNIT_EXPECT_EQ(test, -EINVAL, WITH_POLICY(rtr_ms, 0));
	KUNIT_EXPECT_EQ(test, -EINVAL, WITH_POLICY(reply_ms, 0));
	KUNIT_EXPECT_EQ(test, -EINVAL, WITH_POLICY(connect_ms, 0));
	KUNIT_EXPECT_EQ(test, -EINVAL, WITH_POLICY(request_ms, max + 1));
	KUNIT_EXPECT_EQ(test, -EINVAL, WITH_POLICY(decide_ms, max + 1));
	KUNIT_EXPECT_EQ(test, -EINVAL, WITH_POLICY(rtr_ms, max + 1));
	KUNIT_EXPECT_EQ(test, -EINVAL, WITH_POLICY(reply_ms, max + 1));
	KUNIT_EXPECT_EQ(test, 0, WITH_POLICY(request_ms, max));
	KUNIT_EXPECT_EQ(test, 0, WITH_POLICY(decide_ms, 1));
	KUNIT_EXPECT_EQ(test, 0, WITH_POLICY(rtr_ms, max));
	KUNIT_EXPECT_EQ(test, 0, WITH_POLICY(reply_ms, 1));
}

static struct kunit_case table_cases[] = {
	KUNIT_CASE_PARAM(mpa_request_matches_policy_and_ulp_parameters, request_gen_params),
	KUNIT_CASE_PARAM(initiator_follows_the_conformance_matrix_for_every_reply,
			 initiator_gen_params),
	KUNIT_CASE_PARAM(responder_follows_the_conformance_matrix_for_every_request,
			 responder_gen_params),
	KUNIT_CASE_PARAM(reject_is_enhanced_only_if_its_request_is, reject_gen_params),
	KUNIT_CASE(reject_lists_rtr_kinds_of_both_policy_and_device),
	{}
};

static struct kunit_suite table_suite = {
	.name = "iw_mpa_negotiate_tables",
	.test_cases = table_cases,
};

static struct kunit_case policy_cases[] = {
	KUNIT_CASE(default_policy_has_the_documented_values),
	KUNIT_CASE(policy_with_an_unsuitable_revision_is_invalid),
	KUNIT_CASE(policy_without_an_rtr_kind_of_the_device_is_refused),
	KUNIT_CASE(policy_with_unknown_values_is_invalid),
	KUNIT_CASE(policy_with_markers_is_refused_by_a_device_without_markers),
	KUNIT_CASE(rtr_order_of_a_policy_must_list_every_kind_once),
	KUNIT_CASE(policy_with_a_deadline_out_of_range_is_refused),
	{}
};

static struct kunit_suite policy_suite = {
	.name = "iw_mpa_policy",
	.test_cases = policy_cases,
};

kunit_test_suites(&table_suite, &policy_suite);

MODULE_DESCRIPTION("KUnit tests of MPA negotiation");
MODULE_LICENSE("GPL");
MODULE_IMPORT_NS("EXPORTED_FOR_KUNIT_TESTING");
