// SPDX-License-Identifier: GPL-2.0
/*
 * Every combination of flags with boundary values of the depths against the
 * rules of RFC 6581 sections 9.1 and 9.2.
 *
 * Expected values are computed from the text. Each number stands for one
 * scenario: pick() splits it into coordinates.
 */
#include <kunit/test.h>
#include <linux/kernel.h>
#include <linux/log2.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/string.h>

#include <rdma/ib_verbs.h>

#include "iw_mpa_side.h"

/*
 * User-mode Linux tries all scenarios. With KASAN, in emulation, that takes a
 * minute: there the test tries one in 11, which divides no dimension.
 */
#define STRIDE	(IS_ENABLED(CONFIG_KASAN) ? 11 : 1)

/* Extracts the next coordinate, 0..@base-1, from a scenario's number */
static u32 pick(u32 *n, u32 base)
{
	u32 digit = *n % base;

	*n /= base;
	return digit;
}

#define BOUNDARIES	7

static u32 boundary(u32 cap, u32 which)
{
	const u32 values[BOUNDARIES] = {
		0, 1, cap ? cap - 1 : 2, cap, cap + 1, 0x3ffe, 0x3fff,
	};

	return values[which];
}

static const u16 caps_to_try[] = { 0, 1, 5, 16, 0x3ffe, 0xffff };

static u32 pick_cap(u32 *n)
{
	return caps_to_try[pick(n, ARRAY_SIZE(caps_to_try))];
}

/* 0x3fff is the sentinel here */
static u16 pick_wire_depth(u32 *n, u32 cap)
{
	return min_t(u32, boundary(cap, pick(n, BOUNDARIES)), 0x3fff);
}

/* A=0, or A=1 with each set of kinds: 9 of them */
#define MODELS	9

static void pick_model(u32 *n, struct iw_mpa_enh *enh)
{
	u32 model = pick(n, MODELS);

	enh->p2p = model;
	enh->rtr = model ? model - 1 : 0;
}

/* Is a depth unchanged? No device installs the sentinel */
static bool left_alone(u32 got, u32 own)
{
	return got == own || (own > COUNT_MAX && got == COUNT_MAX);
}

static u32 round_up_depth(u32 depth, const struct iw_mpa_caps *caps)
{
	if (caps->pow2_depths && depth)
		depth = roundup_pow_of_two(depth);
	return min3(depth, (u32)caps->max_ird, (u32)COUNT_MAX);
}

static u32 round_down_depth(u32 depth, const struct iw_mpa_caps *caps)
{
	if (caps->pow2_depths && depth)
		depth = rounddown_pow_of_two(depth);
	return depth;
}

/* Records the first claim that does not hold */
static void hold(const char **broken, bool holds, const char *claim)
{
	if (!holds && !*broken)
		*broken = claim;
}

#define RULE(claim)	hold(broken, claim, #claim)

/* Stops at the first failure: the next million may fail the same way */
static void assert_unbroken(struct kunit *test, const char *broken, u32 n,
			    const struct side *own,
			    const struct iw_mpa_msg *peer)
{
	const struct iw_mpa_enh *enh = &peer->enh;

	KUNIT_ASSERT_NULL_MSG(test, broken,
			      "%s; scenario %u, cap %u %u/%u, peer %s %u %u/%u",
			      broken, n, own->caps.max_ird, own->local.ird,
			      own->local.ord, enh->p2p ? "p2p" : "", enh->rtr,
			      enh->ird, enh->ord);
}

/* A scenario of the responder, and the values that its rules need */
struct responding {
	struct side side;
	struct iw_mpa_msg request;
	struct iw_mpa_decision got;
	u8 own;			/* kinds it could accept */
	bool ird_alone;		/* the ULP manages its IRD */
	bool bad_ulp;
	bool bad_model;
	bool bad_ord;
	bool bad_rtr;
};

static const u8 accept_to_try[] = { BY_SEND, BY_READ, BY_WRITE | BY_READ, ALL };

#define RESPONDER_SCENARIOS					\
	(ARRAY_SIZE(caps_to_try) * BOUNDARIES * BOUNDARIES *	\
	 BOUNDARIES * BOUNDARIES * MODELS * ARRAY_SIZE(accept_to_try) * 5)

static void pick_responding(u32 n, struct responding *r)
{
	u32 cap = pick_cap(&n), mode;
	struct setup setup = {
		.ird = boundary(cap, pick(&n, BOUNDARIES)),
		.ord = boundary(cap, pick(&n, BOUNDARIES)),
	};

	memset(r, 0, sizeof(*r));
	r->request.enhanced = true;
	r->request.enh.ird = pick_wire_depth(&n, cap);
	r->request.enh.ord = pick_wire_depth(&n, cap);
	pick_model(&n, &r->request.enh);
	setup.recv = accept_to_try[pick(&n, ARRAY_SIZE(accept_to_try))];
	mode = pick(&n, 5);
	setup.ird_ulp = mode == 1;
	setup.strict = mode == 2;
	setup.pow2 = mode == 3;
	if (mode == 4)
		setup.model = RDMA_MPA_MODEL_PEER_TO_PEER_REQUIRED;
	set_up(&r->side, &setup);
	r->side.caps.max_ird = cap;
	r->side.caps.max_ord = cap;
}

/* Finds the reasons for section 9 or the policy to refuse the Request */
static void reasons_to_refuse(struct responding *r)
{
	const struct iw_mpa_policy *policy = &r->side.policy;
	const struct iw_mpa_local *local = &r->side.local;
	const struct iw_mpa_caps *caps = &r->side.caps;
	const struct iw_mpa_enh *req = &r->request.enh;

	r->own = policy->rtr_accept & caps->rtr_recv;
	r->ird_alone = req->ord == ULP || policy->ird_ulp;
	if (!caps->max_ird || (r->ird_alone && !local->ird))
		r->own &= ~BY_READ;	/* RTR-24: it would overrun us */

	r->bad_ulp = local->ird > caps->max_ird || local->ord > caps->max_ord;
	r->bad_model = policy->model == RDMA_MPA_MODEL_PEER_TO_PEER_REQUIRED &&
		       !req->p2p;
	r->bad_ord = policy->short_ird && req->ird != ULP &&
		     local->ord > req->ird;
	r->bad_rtr = req->p2p && !r->own;
}

static void check_refusal(const struct responding *r, const char **broken)
{
	const struct iw_mpa_decision *got = &r->got;

	RULE(got->reply.reject);
	switch (got->status) {
	case -EINVAL:
		RULE(r->bad_ulp);
		break;
	case -ENOMEM:
		RULE(r->bad_ord);
		RULE(got->ecode == RDMA_MPA_ECODE_IRD);
		RULE(got->reply.enh.ord == min_t(u32, r->side.local.ord,
						 COUNT_MAX));
		break;
	case -EPROTO:
		RULE(r->bad_model || r->bad_rtr);
		RULE(got->ecode == RDMA_MPA_ECODE_RTR);
		break;
	default:
		RULE(false && "-EINVAL, -ENOMEM or -EPROTO");
	}
}

/* Section 9.2 */
static void check_options(const struct responding *r, const char **broken)
{
	u8 common = r->request.enh.rtr & r->own;
	const struct iw_mpa_decision *got = &r->got;
	u8 options = got->reply.enh.rtr;

	RULE(got->rtr == options);
	if (!r->request.enh.p2p) {
		RULE(!options);
		return;
	}
	RULE(options);				/* RSP-10, RSP-12 */
	RULE(options == (common ?: r->own));	/* RSP-08 */
	/* IRD-08, RTR-24 */
	RULE(!(options & BY_READ) || got->ird >= 1);
}

/* Section 9.1 */
static void check_responder_depths(const struct responding *r,
				   const char **broken)
{
	const struct iw_mpa_local *local = &r->side.local;
	const struct iw_mpa_enh *req = &r->request.enh;
	const struct iw_mpa_decision *got = &r->got;
	const struct iw_mpa_enh *reply = &got->reply.enh;
	u32 ird = max_t(u32, local->ird, req->ord);

	if (reply->rtr & BY_READ)
		ird = max_t(u32, ird, 1);
	RULE(got->ird <= local->caps->max_ird);
	RULE(got->ord <= local->caps->max_ord);
	RULE(got->ird != ULP && got->ord != ULP);	/* IRD-25 */
	RULE(got->read_slots == got->ord);
	RULE(reply->ird == (req->ord == ULP ? ULP : got->ird));
	RULE(reply->ord == (req->ird == ULP ? ULP : got->ord));
	if (r->ird_alone)
		RULE(left_alone(got->ird, local->ird));
	else
		RULE(got->ird == round_up_depth(ird, local->caps));
	if (req->ird == ULP)
		RULE(left_alone(got->ord, local->ord));
	else
		RULE(got->ord ==
		     round_down_depth(min_t(u32, local->ord, req->ird),
				      local->caps));
}

static void check_answer(const struct responding *r, const char **broken)
{
	const struct iw_mpa_enh *req = &r->request.enh;
	const struct iw_mpa_decision *got = &r->got;
	bool refuse = r->bad_ulp || r->bad_model || r->bad_ord || r->bad_rtr;

	RULE(got->reply.enhanced);			/* RSP-03 */
	RULE(got->reply.enh.p2p == req->p2p);		/* RSP-06 */
	RULE(req->p2p || !got->reply.enh.rtr);		/* RSP-07 */
	RULE(got->peer_known);				/* RSP-17 */
	RULE(got->peer_ird == req->ird && got->peer_ord == req->ord);
	RULE(got->verdict == (refuse ? IW_MPA_REJECTED : IW_MPA_GO));
	if (refuse) {
		check_refusal(r, broken);
		return;
	}
	RULE(!got->reply.reject);
	RULE(got->status == 0 && got->ecode == RDMA_MPA_ECODE_NONE);
	check_options(r, broken);
	check_responder_depths(r, broken);
}

static void every_reply_follows_the_rules_of_rfc6581(struct kunit *test)
{
	const char *broken = NULL;
	struct responding r;
	u32 n;

	for (n = 0; n < RESPONDER_SCENARIOS; n += STRIDE) {
		pick_responding(n, &r);
		reasons_to_refuse(&r);
		memset(&r.got, UNTOUCHED, sizeof(r.got));
		iw_mpa_negotiate_responder(&r.side.local, &r.request, &r.got);
		check_answer(&r, &broken);
		assert_unbroken(test, broken, n, &r.side, &r.request);
		if (n % 1024 == 0)
			cond_resched();
	}
}

/* A scenario of the initiator */
struct initiating {
	struct side side;
	struct iw_mpa_msg request;
	struct iw_mpa_msg reply;
	struct iw_mpa_decision got;
};

static const u8 send_to_try[] = { BY_SEND, BY_READ, BY_WRITE | BY_READ, ALL };

#define INITIATOR_SCENARIOS					\
	(ARRAY_SIZE(caps_to_try) * 4 * 4 * 4 * BOUNDARIES *	\
	 BOUNDARIES * MODELS * 2 * ARRAY_SIZE(send_to_try) * 2)

static void pick_initiating(u32 n, struct initiating *i)
{
	u32 cap = pick_cap(&n), managed;
	struct setup setup = {
		/* up to the cap: make_request refuses more */
		.ird = min(boundary(cap, pick(&n, 4)), cap),
		.ord = min(boundary(cap, pick(&n, 4)), cap),
	};

	memset(i, 0, sizeof(*i));
	managed = pick(&n, 4);
	setup.ird_ulp = managed & 1;
	setup.ord_ulp = managed & 2;
	i->reply.enhanced = true;
	i->reply.enh.ird = pick_wire_depth(&n, cap);
	i->reply.enh.ord = pick_wire_depth(&n, cap);
	pick_model(&n, &i->reply.enh);
	setup.model = pick(&n, 2) ? RDMA_MPA_MODEL_PEER_TO_PEER : RDMA_MPA_MODEL_CLIENT_SERVER;
	setup.send = send_to_try[pick(&n, ARRAY_SIZE(send_to_try))];
	setup.pow2 = pick(&n, 2);
	setup.read_first = setup.pow2;
	set_up(&i->side, &setup);
	i->side.caps.max_ird = cap;
	i->side.caps.max_ord = cap;
}

static void check_request(const struct initiating *i, const char **broken)
{
	const struct iw_mpa_local *local = &i->side.local;
	const struct iw_mpa_enh *enh = &i->request.enh;
	bool p2p = local->policy->model != RDMA_MPA_MODEL_CLIENT_SERVER;
	u8 able = local->caps->rtr_send;

	/* a device without ORD has no slot for a Read (IRD-09) */
	if (!local->caps->max_ord)
		able &= ~BY_READ;
	RULE(i->request.enhanced && !i->request.reject);
	RULE(enh->p2p == p2p);
	RULE(enh->rtr == (p2p ? able : 0));
	if (local->policy->ird_ulp)
		RULE(enh->ird == ULP);
	else
		RULE(enh->ird <= min_t(u32, local->ird, COUNT_MAX));
	if (local->policy->ord_ulp)
		RULE(enh->ord == ULP);
	else
		RULE(enh->ord <= min_t(u32, local->ord, COUNT_MAX));
}

/* The RTR that section 9.2 and policy demand, 0 if there is none */
static u8 rtr_to_send(const struct initiating *i)
{
	u8 able = i->reply.enh.rtr & i->side.caps.rtr_send;
	const u8 *order = i->side.policy.rtr_order;

	/* a device without ORD has no slot for a Read (IRD-09) */
	if (!i->reply.enh.ird || !i->side.caps.max_ord)
		able &= ~BY_READ;
	if (order[0] & able)
		return order[0];
	if (order[1] & able)
		return order[1];
	return order[2] & able;
}

static void check_initiator_depths(const struct initiating *i,
				   const char **broken)
{
	const struct iw_mpa_local *local = &i->side.local;
	const struct iw_mpa_enh *reply = &i->reply.enh;
	const struct iw_mpa_decision *got = &i->got;
	u32 own_ird = min_t(u32, local->ird, COUNT_MAX);

	RULE(got->ird <= local->caps->max_ird);
	RULE(got->ord <= local->caps->max_ord);
	RULE(got->ird != ULP && got->ord != ULP);	/* IRD-25 */
	if (local->policy->ird_ulp || reply->ord == ULP) {
		RULE(left_alone(got->ird, local->ird));
	} else {
		RULE(got->ird >= reply->ord);		/* IRD-13 */
		RULE(got->ird ==
		     round_up_depth(max_t(u32, own_ird, reply->ord),
				    local->caps));
	}
	if (local->policy->ord_ulp || reply->ird == ULP) {
		RULE(left_alone(got->ord, local->ord));
	} else {
		RULE(got->ord <= reply->ird);		/* IRD-14 */
		RULE(got->ord ==
		     round_down_depth(min_t(u32, local->ord, reply->ird),
				      local->caps));
	}
	RULE(got->read_slots == (got->ord ?: got->rtr == BY_READ));
	RULE(got->read_slots <= local->caps->max_ord);
}

static void check_outcome(const struct initiating *i, const char **broken)
{
	const struct iw_mpa_local *local = &i->side.local;
	const struct iw_mpa_enh *reply = &i->reply.enh;
	const struct iw_mpa_decision *got = &i->got;
	bool no_ird = !local->policy->ird_ulp && reply->ord != ULP &&
		      reply->ord > local->caps->max_ird;
	bool no_rtr = reply->p2p ? !rtr_to_send(i) : i->request.enh.p2p;

	RULE(got->peer_known);			/* IRD-06, ERR-19 */
	RULE(got->peer_ird == reply->ird && got->peer_ord == reply->ord);
	if (no_ird || no_rtr) {
		RULE(got->verdict == IW_MPA_TERMINATE);
		RULE(got->ecode == (no_ird ? RDMA_MPA_ECODE_IRD :
					     RDMA_MPA_ECODE_RTR));
		RULE(got->status == (no_ird ? -ENOMEM : -EPROTO));
		RULE(!got->rtr);			/* ERR-18 */
		return;
	}
	RULE(got->verdict == IW_MPA_GO);
	RULE(got->status == 0 && got->ecode == RDMA_MPA_ECODE_NONE);
	RULE(got->rtr == (reply->p2p ? rtr_to_send(i) : 0));
	RULE(!got->rtr || is_power_of_2(got->rtr));	/* RTR-14 */
	check_initiator_depths(i, broken);
}

static void every_accept_is_evaluated_as_rfc6581_requires(struct kunit *test)
{
	const char *broken = NULL;
	struct initiating i;
	u32 n;

	for (n = 0; n < INITIATOR_SCENARIOS; n += STRIDE) {
		pick_initiating(n, &i);
		KUNIT_ASSERT_EQ(test, 0, iw_mpa_make_request(&i.side.local,
							     &i.request));
		check_request(&i, &broken);
		memset(&i.got, UNTOUCHED, sizeof(i.got));
		iw_mpa_negotiate_initiator(&i.side.local, &i.request, &i.reply,
					   &i.got);
		check_outcome(&i, &broken);
		assert_unbroken(test, broken, n, &i.side, &i.reply);
		if (n % 1024 == 0)
			cond_resched();
	}
}

static void check_rejected(const struct initiating *i, const char **broken)
{
	RULE(i->got.verdict == IW_MPA_REJECTED);
	RULE(i->got.status == -ECONNREFUSED);
	RULE(!i->got.rtr);
	RULE(i->got.peer_known);
	RULE(i->got.peer_ird == i->reply.enh.ird);
	RULE(i->got.peer_ord == i->reply.enh.ord);
}

static void every_received_reject_is_reported_and_never_enters_rdma_mode(struct kunit *test)
{
	const char *broken = NULL;
	struct initiating i;
	u32 n;

	for (n = 0; n < INITIATOR_SCENARIOS; n += 7) {
		pick_initiating(n, &i);
		i.reply.reject = true;
		iw_mpa_make_request(&i.side.local, &i.request);
		memset(&i.got, UNTOUCHED, sizeof(i.got));
		iw_mpa_negotiate_initiator(&i.side.local, &i.request, &i.reply,
					   &i.got);
		check_rejected(&i, &broken);
		assert_unbroken(test, broken, n, &i.side, &i.reply);
		if (n % 1024 == 0)
			cond_resched();
	}
}

/* ------------------------------------------------------------- end to end */

/* Two sides of ours must agree under all policies */
struct meeting {
	struct side a;			/* initiator */
	struct side b;			/* responder */
	struct iw_mpa_msg request;
	struct iw_mpa_decision at_a;
	struct iw_mpa_decision at_b;
};

static const u16 meeting_caps[] = { 1, 5, 0xffff };

#define MEETINGS						\
	(3 * 3 * 4 * 4 * 4 * 4 * MODELS *			\
	 ARRAY_SIZE(accept_to_try) * 4 * 4 * 2)

static void pick_meeting(u32 n, struct meeting *m)
{
	u32 cap_a = meeting_caps[pick(&n, 3)];
	u32 cap_b = meeting_caps[pick(&n, 3)];
	struct setup a = {
		.cap = cap_a,
		.ird = boundary(cap_a, pick(&n, 4)),
		.ord = boundary(cap_a, pick(&n, 4)),
	};
	struct setup b = {
		.cap = cap_b,
		.ird = boundary(cap_b, pick(&n, 4)),
		.ord = boundary(cap_b, pick(&n, 4)),
	};
	struct iw_mpa_enh model;
	u32 flags;

	memset(m, 0, sizeof(*m));
	pick_model(&n, &model);
	if (model.rtr)
		a.model = RDMA_MPA_MODEL_PEER_TO_PEER;
	a.offer = model.rtr;
	b.recv = accept_to_try[pick(&n, ARRAY_SIZE(accept_to_try))];
	flags = pick(&n, 4);
	a.ird_ulp = flags & 1;
	a.ord_ulp = flags & 2;
	flags = pick(&n, 4);
	a.pow2 = flags & 1;
	b.pow2 = flags & 2;
	b.ird_ulp = pick(&n, 2);
	set_up(&m->a, &a);
	set_up(&m->b, &b);
	if (flags)	/* a device that can send only the kinds it offers */
		m->a.caps.rtr_send = m->a.policy.rtr_offer;
}

/* The depths that peer and ULP can trust by section 9.1 */
static void check_depth_agreement(const struct meeting *m, const char **broken)
{
	bool ird_ulp = m->request.enh.ird == ULP;
	bool ord_ulp = m->request.enh.ord == ULP;

	RULE(ord_ulp || m->at_a.ord <= m->at_b.ird);
	RULE(ird_ulp || m->at_b.ord <= m->at_a.ird);
	RULE(ord_ulp || m->at_a.read_slots <= m->at_b.ird);
	RULE(m->at_a.rtr != BY_READ || m->at_b.ird);
	RULE(m->at_a.peer_ird == (ord_ulp ? ULP : m->at_b.ird));
	RULE(m->at_a.peer_ord == (ird_ulp ? ULP : m->at_b.ord));
	RULE(m->at_b.peer_ird == m->request.enh.ird);
	RULE(m->at_b.peer_ord == m->request.enh.ord);
	RULE(m->at_a.ird != ULP && m->at_a.ord != ULP);
	RULE(m->at_b.ird != ULP && m->at_b.ord != ULP);
}

static void check_agreement(const struct meeting *m, const char **broken)
{
	u8 options = m->at_b.reply.enh.rtr;
	u8 able = options & m->a.caps.rtr_send;

	RULE(m->at_b.verdict == IW_MPA_GO);
	if (m->request.enh.p2p && !able) {
		RULE(m->at_a.verdict == IW_MPA_TERMINATE);
		RULE(m->at_a.ecode == RDMA_MPA_ECODE_RTR);
		return;
	}
	/* our responder never causes TERM 6 nor offers a useless Read */
	RULE(m->at_a.verdict == IW_MPA_GO);
	RULE(!m->at_a.rtr == !m->request.enh.p2p);
	RULE(!m->at_b.rtr == !m->request.enh.p2p);
	RULE((m->at_a.rtr & m->at_b.rtr) == m->at_a.rtr);
	RULE((m->at_a.rtr & m->a.caps.rtr_send) == m->at_a.rtr);
	check_depth_agreement(m, broken);
}

/* B accepts only Read and its IRD stays 0: B has to refuse */
static bool cannot_meet(const struct meeting *m)
{
	return m->request.enh.p2p && m->b.caps.rtr_recv == BY_READ &&
	       !m->b.local.ird &&
	       (m->b.policy.ird_ulp || m->request.enh.ord == ULP);
}

static void check_no_meeting(const struct meeting *m, const char **broken)
{
	RULE(m->at_b.verdict == IW_MPA_REJECTED);
	RULE(m->at_b.ecode == RDMA_MPA_ECODE_RTR);
	RULE(m->at_a.verdict == IW_MPA_REJECTED);
	RULE(m->at_a.status == -ECONNREFUSED);
}

static void two_iw_mpa_ends_agree_on_the_negotiated_values(struct kunit *test)
{
	const char *broken = NULL;
	struct meeting m;
	u32 n;

	for (n = 0; n < MEETINGS; n += STRIDE) {
		pick_meeting(n, &m);
		KUNIT_ASSERT_EQ(test, 0, iw_mpa_make_request(&m.a.local,
							     &m.request));
		iw_mpa_negotiate_responder(&m.b.local, &m.request, &m.at_b);
		iw_mpa_negotiate_initiator(&m.a.local, &m.request,
					   &m.at_b.reply, &m.at_a);
		if (cannot_meet(&m))
			check_no_meeting(&m, &broken);
		else
			check_agreement(&m, &broken);
		assert_unbroken(test, broken, n, &m.b, &m.request);
		if (n % 1024 == 0)
			cond_resched();
	}
}

static struct kunit_case exhaustive_cases[] = {
	KUNIT_CASE(every_reply_follows_the_rules_of_rfc6581),
	KUNIT_CASE(every_accept_is_evaluated_as_rfc6581_requires),
	KUNIT_CASE(every_received_reject_is_reported_and_never_enters_rdma_mode),
	KUNIT_CASE(two_iw_mpa_ends_agree_on_the_negotiated_values),
	{}
};

static struct kunit_suite exhaustive_suite = {
	.name = "iw_mpa_negotiate_exhaustive",
	.test_cases = exhaustive_cases,
};

kunit_test_suite(exhaustive_suite);

MODULE_DESCRIPTION("KUnit tests of every MPA negotiation");
MODULE_LICENSE("GPL");
MODULE_IMPORT_NS("EXPORTED_FOR_KUNIT_TESTING");
