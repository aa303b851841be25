// SPDX-License-Identifier: GPL-2.0
/*
 * The order of the chunks of a DDP stream over SCTP (RFC 5043 sections 6.1 and
 * 10): SC-02 and SC-05 of the conformance matrix.
 *
 * The window is pure, so the test has its own copy and needs no siw.
 */
#include <kunit/test.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/prandom.h>
#include <linux/slab.h>

#include "../../sw/siw/siw_ssn.c"

#define LIMIT	1000
#define SEED	5043

/* Memory of the host and of a remote address, reset for each case */
static struct siw_ssn_pool pool;
static struct siw_ssn_share share;

/* A chunk of 1 byte */
static struct siw_ssn_entry *chunk(struct kunit *test, u16 ssn)
{
	struct siw_ssn_entry *entry = kunit_kzalloc(test, sizeof(*entry),
						    GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, entry);
	entry->ssn = ssn;
	entry->cost = 1;
	return entry;
}

static enum siw_ssn_verdict offer(struct kunit *test,
				  struct siw_ssn_window *window, u16 ssn)
{
	return siw_ssn_offer(window, chunk(test, ssn));
}

static struct siw_ssn_window window_of(struct siw_ssn_share *of)
{
	struct siw_ssn_window window;

	siw_ssn_init(&window, LIMIT, 0, &pool);
	window.share = of;
	return window;
}

/* A window whose next chunk in order is @next */
static struct siw_ssn_window window_at(u16 next)
{
	struct siw_ssn_window window = window_of(&share);

	window.next = next;
	return window;
}

static void expect_taken(struct kunit *test, struct siw_ssn_window *window,
			 u16 first, unsigned int number)
{
	unsigned int i;

	for (i = 0; i < number; i++) {
		struct siw_ssn_entry *entry = siw_ssn_take(window);

		KUNIT_ASSERT_NOT_NULL(test, entry);
		KUNIT_ASSERT_EQ(test, (u16)(first + i), entry->ssn);
	}
	KUNIT_EXPECT_NULL(test, siw_ssn_take(window));
}

/* SC-02: a session begins with 0 */
static void sctp_session_begins_with_ddp_ssn_0(struct kunit *test)
{
	struct siw_ssn_window window = window_of(&share);

	KUNIT_EXPECT_NULL(test, siw_ssn_take(&window));
	KUNIT_EXPECT_EQ(test, SIW_SSN_HELD, offer(test, &window, 1));
	KUNIT_EXPECT_NULL(test, siw_ssn_take(&window));
	KUNIT_EXPECT_EQ(test, SIW_SSN_NEXT, offer(test, &window, 0));
	expect_taken(test, &window, 1, 1);
}

/* 0 to 65535 and 0 again: 200,000 chunks wrap around three times */
static void sctp_chunks_in_ddp_ssn_order_are_never_queued(struct kunit *test)
{
	struct siw_ssn_window window = window_at(0);
	struct siw_ssn_entry entry = { .cost = 1 };
	u32 i;

	for (i = 0; i < 200000; i++) {
		entry.ssn = i;
		KUNIT_ASSERT_EQ(test, SIW_SSN_NEXT,
				siw_ssn_offer(&window, &entry));
		KUNIT_ASSERT_NULL(test, siw_ssn_take(&window));
	}
	KUNIT_EXPECT_EQ(test, 0u, window.cost);
}

/* The first of a window's chunks is lost, at every place around the wrap */
static void ddp_ssn_gap_is_filled_across_the_wraparound(struct kunit *test)
{
	int start;

	for (start = -20; start <= 2; start++) {
		struct siw_ssn_window window = window_at(start);
		u16 i;

		for (i = 1; i < 20; i++)
			KUNIT_ASSERT_EQ(test, SIW_SSN_HELD,
					offer(test, &window, start + i));
		KUNIT_ASSERT_EQ(test, 19u, window.cost);
		KUNIT_ASSERT_EQ(test, SIW_SSN_NEXT,
				offer(test, &window, start));
		expect_taken(test, &window, start + 1, 19);
		KUNIT_ASSERT_EQ(test, 0u, window.cost);
	}
}

static void two_ddp_ssn_gaps_are_filled_one_by_one(struct kunit *test)
{
	struct siw_ssn_window window = window_at(65534);

	/* 65534 and 1 are missing */
	KUNIT_EXPECT_EQ(test, SIW_SSN_HELD, offer(test, &window, 2));
	KUNIT_EXPECT_EQ(test, SIW_SSN_HELD, offer(test, &window, 65535));
	KUNIT_EXPECT_EQ(test, SIW_SSN_HELD, offer(test, &window, 0));
	KUNIT_EXPECT_EQ(test, SIW_SSN_NEXT, offer(test, &window, 65534));
	expect_taken(test, &window, 65535, 2);
	KUNIT_EXPECT_EQ(test, SIW_SSN_NEXT, offer(test, &window, 1));
	expect_taken(test, &window, 2, 1);
	KUNIT_EXPECT_EQ(test, 3, (int)window.next);
}

struct hostile {
	const char *name;
	u16 next, ssn;
	enum siw_ssn_verdict verdict;
};

static const struct hostile hostiles[] = {
	{ "a chunk with the DDP-SSN before the next expected is refused", 0, 65535, SIW_SSN_BAD },
	{ "a chunk with an old DDP-SSN from before the wrap is refused", 5, 65530, SIW_SSN_BAD },
	{ "a chunk with a DDP-SSN 32767 ahead is queued", 0, 32767, SIW_SSN_HELD },
	{ "a chunk with a DDP-SSN 32768 ahead is refused", 0, 32768, SIW_SSN_BAD },
	{ "a chunk with a DDP-SSN 32767 ahead, across the wrap, is queued",
	  40000, 7231, SIW_SSN_HELD },
	{ "a chunk with a DDP-SSN 32768 ahead, across the wrap, is refused",
	  40000, 7232, SIW_SSN_BAD },
};

static void hostile_desc(const struct hostile *h, char *desc)
{
	strscpy(desc, h->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(hostile, hostiles, hostile_desc);

/* SC-05: an impossible number costs no memory */
static void chunk_with_a_ddp_ssn_outside_the_window_is_not_queued(struct kunit *test)
{
	const struct hostile *h = test->param_value;
	struct siw_ssn_window window = window_at(h->next);

	KUNIT_EXPECT_EQ(test, h->verdict != SIW_SSN_BAD,
			siw_ssn_possible(&window, h->ssn));
	KUNIT_EXPECT_EQ(test, h->verdict, offer(test, &window, h->ssn));
	KUNIT_EXPECT_EQ(test, h->verdict == SIW_SSN_HELD ? 1u : 0u, window.cost);
	KUNIT_EXPECT_EQ(test, h->next, window.next);
}

static void duplicate_ddp_ssn_is_refused(struct kunit *test)
{
	struct siw_ssn_window window = window_at(65535);

	KUNIT_EXPECT_EQ(test, SIW_SSN_HELD, offer(test, &window, 0));
	KUNIT_EXPECT_EQ(test, SIW_SSN_BAD, offer(test, &window, 0));
	KUNIT_EXPECT_EQ(test, 1u, window.cost);
	KUNIT_EXPECT_EQ(test, SIW_SSN_NEXT, offer(test, &window, 65535));
	KUNIT_EXPECT_EQ(test, SIW_SSN_BAD, offer(test, &window, 65535));
}

/* The memory of chunks after a gap is bounded if the gap never closes */
static void chunks_after_a_ddp_ssn_gap_are_queued_up_to_the_memory_limit(struct kunit *test)
{
	struct siw_ssn_window window = window_at(0);
	struct siw_ssn_entry *big = chunk(test, 9), *entry;
	unsigned int i, dropped = 0;

	big->cost = LIMIT - 3;
	KUNIT_EXPECT_EQ(test, SIW_SSN_HELD, siw_ssn_offer(&window, big));
	/* In reverse, the worst order for a list */
	for (i = 0; i < 3; i++)
		KUNIT_EXPECT_EQ(test, SIW_SSN_HELD,
				offer(test, &window, 8 - i));
	KUNIT_EXPECT_EQ(test, SIW_SSN_FULL, offer(test, &window, 2));
	/* Even then the next chunk in order is accepted */
	KUNIT_EXPECT_EQ(test, SIW_SSN_NEXT, offer(test, &window, 0));

	big = chunk(test, 1000);
	big->cost = ~0U;
	KUNIT_EXPECT_EQ(test, SIW_SSN_FULL, siw_ssn_offer(&window, big));

	while ((entry = siw_ssn_drop(&window)))
		dropped += entry->cost;
	KUNIT_EXPECT_EQ(test, (unsigned int)LIMIT, dropped);
	KUNIT_EXPECT_EQ(test, 0u, window.cost);
}

/* Holds chunks of 1 byte until no more is allowed; returns their number */
static unsigned int fill(struct kunit *test, struct siw_ssn_window *window)
{
	unsigned int n = 0;

	while (offer(test, window, window->next + n + 1) == SIW_SSN_HELD)
		n++;
	return n;
}

static void drop_all(struct siw_ssn_window *window)
{
	while (siw_ssn_drop(window))
		;
}

static void expect_nothing_held(struct kunit *test,
				struct siw_ssn_share *of)
{
	KUNIT_EXPECT_EQ(test, 0L, atomic_long_read(&of->held));
	KUNIT_EXPECT_EQ(test, 0L, atomic_long_read(&of->floors));
	KUNIT_EXPECT_EQ(test, 0L, atomic_long_read(&pool.held));
	KUNIT_EXPECT_EQ(test, 0L, atomic_long_read(&pool.floors));
}

/*
 * SC-05: a remote address may hold a quarter of the free memory, so the first
 * address a fifth of all, the second address a fifth of the rest. The number of
 * sessions has no effect.
 */
static void remote_address_gets_a_quarter_of_the_free_reorder_memory(struct kunit *test)
{
	struct siw_ssn_share second = {};
	struct siw_ssn_window a1 = window_of(&share), a2 = window_of(&share);
	struct siw_ssn_window b = window_of(&second);

	pool.max = 1000;
	KUNIT_EXPECT_EQ(test, 200u, fill(test, &a1));
	KUNIT_EXPECT_EQ(test, 0u, fill(test, &a2));
	KUNIT_EXPECT_EQ(test, 160u, fill(test, &b));
	KUNIT_EXPECT_EQ(test, 360L, atomic_long_read(&pool.held));

	drop_all(&b);
	KUNIT_EXPECT_EQ(test, 0L, atomic_long_read(&second.held));
	drop_all(&a1);
	KUNIT_EXPECT_EQ(test, 0L, atomic_long_read(&share.held));
	KUNIT_EXPECT_EQ(test, 0L, atomic_long_read(&pool.held));
	KUNIT_EXPECT_EQ(test, 200u, fill(test, &a2));
}

/* Other sessions of its remote address hold all other memory */
static void session_gets_its_guaranteed_reorder_memory(struct kunit *test)
{
	struct siw_ssn_window greedy = window_of(&share), small;

	pool.max = 1000;
	KUNIT_EXPECT_EQ(test, 200L, siw_ssn_share_max(&pool));
	KUNIT_EXPECT_EQ(test, 200u, fill(test, &greedy));
	siw_ssn_init(&small, LIMIT, 50, &pool);
	small.share = &share;
	KUNIT_EXPECT_EQ(test, 50u, fill(test, &small));
	KUNIT_EXPECT_EQ(test, 200L, atomic_long_read(&share.held));
	KUNIT_EXPECT_EQ(test, 200L, atomic_long_read(&pool.held));
	KUNIT_EXPECT_EQ(test, 50L, atomic_long_read(&share.floors));
	KUNIT_EXPECT_EQ(test, 50L, atomic_long_read(&pool.floors));

	drop_all(&greedy);
	KUNIT_EXPECT_EQ(test, 200u, fill(test, &greedy));
	drop_all(&greedy);
	drop_all(&small);
	expect_nothing_held(test, &share);
}

/*
 * F143: many sessions of an address hold their guaranteed memory, which has a
 * limit as well. Another address's part does not become smaller.
 */
static void guaranteed_reorder_memory_of_an_address_takes_no_share_of_others(struct kunit *test)
{
	enum { SESSIONS = 100, FLOOR = 50 };
	struct siw_ssn_window *greedy = kunit_kcalloc(test, SESSIONS,
						      sizeof(*greedy),
						      GFP_KERNEL);
	struct siw_ssn_share second = {};
	struct siw_ssn_window other;
	unsigned int i, held = 0;

	KUNIT_ASSERT_NOT_NULL(test, greedy);
	pool.max = 1000;
	for (i = 0; i < SESSIONS; i++) {
		siw_ssn_init(&greedy[i], LIMIT, FLOOR, &pool);
		greedy[i].share = &share;
		held += fill(test, &greedy[i]);
	}
	/* A fifth of the memory, and a fifth of that of the floors */
	KUNIT_EXPECT_EQ(test, 400u, held);
	siw_ssn_init(&other, LIMIT, FLOOR, &pool);
	other.share = &second;
	KUNIT_EXPECT_EQ(test, FLOOR + 160u, fill(test, &other));

	for (i = 0; i < SESSIONS; i++)
		drop_all(&greedy[i]);
	drop_all(&other);
	expect_nothing_held(test, &share);
	expect_nothing_held(test, &second);
}

/*
 * F144: chunks in order that wait for endpoints get half of an address's part,
 * an eighth of the free memory. Those after a gap may use all of it.
 */
static void chunks_that_wait_for_their_endpoint_leave_half_of_the_memory(struct kunit *test)
{
	struct siw_ssn_window queue = window_of(&share);
	struct siw_ssn_window reordered = window_of(&share);

	pool.max = 900;
	queue.half = true;
	KUNIT_EXPECT_EQ(test, 100u, fill(test, &queue));
	KUNIT_EXPECT_EQ(test, 80u, fill(test, &reordered));
	KUNIT_EXPECT_FALSE(test, siw_ssn_charge(&queue, 1));
	drop_all(&queue);
	KUNIT_EXPECT_EQ(test, 20u, fill(test, &queue));
	drop_all(&queue);
	drop_all(&reordered);
	expect_nothing_held(test, &share);
}

/*
 * F150: the sessions of an association share a limit for what they hold beyond
 * their guaranteed memory. Chunks that wait for their endpoint get half of it.
 */
static void sessions_of_an_association_share_a_limit_of_memory(struct kunit *test)
{
	struct siw_ssn_window queue = window_of(&share);
	struct siw_ssn_window first = window_of(&share), second;
	struct siw_ssn_group group = { .max = 60 };

	pool.max = 1000;
	siw_ssn_init(&second, LIMIT, 50, &pool);
	second.share = &share;
	queue.half = true;
	queue.group = &group;
	first.group = &group;
	second.group = &group;
	KUNIT_EXPECT_EQ(test, 30u, fill(test, &queue));
	KUNIT_EXPECT_EQ(test, 30u, fill(test, &first));
	KUNIT_EXPECT_EQ(test, 50u, fill(test, &second));
	drop_all(&first);
	KUNIT_EXPECT_TRUE(test, siw_ssn_charge(&second, 30));
	KUNIT_EXPECT_FALSE(test, siw_ssn_charge(&first, 1));
	siw_ssn_uncharge(&second, 30);

	/* A charge that the address refuses is not charged to the group */
	pool.max = 0;
	KUNIT_EXPECT_FALSE(test, siw_ssn_charge(&first, 1));
	KUNIT_EXPECT_EQ(test, 30L, atomic_long_read(&group.held));
	drop_all(&queue);
	drop_all(&second);
	KUNIT_EXPECT_EQ(test, 0L, atomic_long_read(&group.held));
	expect_nothing_held(test, &share);
}

static int charge_too_much(void *unused)
{
	struct siw_ssn_window window = window_of(&share);

	while (!kthread_should_stop()) {
		if (siw_ssn_charge(&window, LIMIT))
			siw_ssn_uncharge(&window, LIMIT);
		cond_resched();
	}
	return 0;
}

/* 200 bytes are allowed while another thread's requests for 1000 all fail */
static void refused_memory_charge_does_not_affect_other_sessions(struct kunit *test)
{
	struct siw_ssn_window window = window_of(&share);
	struct task_struct *thread;
	unsigned int refused = 0;
	int i;

	pool.max = LIMIT;
	thread = kthread_run(charge_too_much, NULL, "siw_ssn_test");
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, thread);
	for (i = 0; i < 1000000; i++) {
		if (!siw_ssn_charge(&window, 100)) {
			refused++;
			continue;
		}
		siw_ssn_uncharge(&window, 100);
		if (i % 1024 == 0)
			cond_resched();
	}
	kthread_stop(thread);
	KUNIT_EXPECT_EQ(test, 0u, refused);
}

/* A chunk taken in order is no longer charged, a refused one never */
static void reorder_memory_is_charged_while_sctp_chunks_are_queued(struct kunit *test)
{
	struct siw_ssn_window window = window_at(0);
	struct siw_ssn_entry *big = chunk(test, 5);

	/* Charged by its owner, for chunks that are in order */
	KUNIT_EXPECT_TRUE(test, siw_ssn_charge(&window, 7));
	KUNIT_EXPECT_FALSE(test, siw_ssn_holds(&window));
	siw_ssn_uncharge(&window, 7);
	KUNIT_EXPECT_EQ(test, SIW_SSN_HELD, offer(test, &window, 1));
	KUNIT_EXPECT_EQ(test, SIW_SSN_HELD, offer(test, &window, 2));
	KUNIT_EXPECT_EQ(test, SIW_SSN_BAD, offer(test, &window, 2));
	KUNIT_EXPECT_TRUE(test, siw_ssn_holds(&window));
	big->cost = LIMIT;
	KUNIT_EXPECT_EQ(test, SIW_SSN_FULL, siw_ssn_offer(&window, big));
	KUNIT_EXPECT_EQ(test, 2L, atomic_long_read(&pool.held));
	KUNIT_EXPECT_EQ(test, 2L, atomic_long_read(&share.held));
	KUNIT_EXPECT_EQ(test, SIW_SSN_NEXT, offer(test, &window, 0));
	expect_taken(test, &window, 1, 2);
	KUNIT_EXPECT_EQ(test, 0L, atomic_long_read(&pool.held));
	KUNIT_EXPECT_EQ(test, 0L, atomic_long_read(&share.held));
}

/* The remote address is not known yet */
static void sctp_chunk_is_not_queued_if_the_remote_address_is_unknown(struct kunit *test)
{
	struct siw_ssn_window window = window_of(NULL);

	KUNIT_EXPECT_EQ(test, SIW_SSN_FULL, offer(test, &window, 1));
	KUNIT_EXPECT_EQ(test, SIW_SSN_NEXT, offer(test, &window, 0));
}

/* Chunks in random order within a window; the numbers wrap many times */
static void chunks_in_random_order_are_delivered_in_ddp_ssn_order(struct kunit *test)
{
	enum { AHEAD = 64, ROUNDS = 3000 };
	struct siw_ssn_window window = window_at(65000);
	struct siw_ssn_entry *pool = kunit_kcalloc(test, AHEAD, sizeof(*pool),
						   GFP_KERNEL);
	u16 expected = 65000, base = 65000;
	struct siw_ssn_entry *entry;
	struct rnd_state rnd;
	int round, i;

	KUNIT_ASSERT_NOT_NULL(test, pool);
	prandom_seed_state(&rnd, SEED);
	for (round = 0; round < ROUNDS; round++, base += AHEAD) {
		for (i = 0; i < AHEAD; i++)
			pool[i] = (struct siw_ssn_entry) {
				.ssn = base + i,
				.cost = 1,
			};
		for (i = AHEAD - 1; i > 0; i--) {
			u32 other = prandom_u32_state(&rnd) % (i + 1);

			swap(pool[i].ssn, pool[other].ssn);
		}
		for (i = 0; i < AHEAD; i++) {
			enum siw_ssn_verdict v = siw_ssn_offer(&window, &pool[i]);

			if (v == SIW_SSN_HELD)
				continue;
			KUNIT_ASSERT_EQ(test, SIW_SSN_NEXT, v);
			KUNIT_ASSERT_EQ(test, expected, pool[i].ssn);
			expected++;
			while ((entry = siw_ssn_take(&window))) {
				KUNIT_ASSERT_EQ(test, expected, entry->ssn);
				expected++;
			}
		}
		KUNIT_ASSERT_EQ(test, 0u, window.cost);
		KUNIT_ASSERT_EQ(test, (u16)(base + AHEAD), window.next);
	}
}

/**
 * struct stream_case - a choice of a stream
 * @name: of the test
 * @num: number of streams
 * @used: a letter for each stream: x is in use
 * @active: the chooser has opened the association
 * @wanted: the choice
 */
struct stream_case {
	const char *name;
	unsigned int num;
	const char *used;
	bool active;
	int wanted;
};

/* The rule is this project's: RFC 5043 has none */
static const struct stream_case stream_cases[] = {
	{ "the opener of an association begins on stream 0", 4, "....", true, 0 },
	{ "the other side begins on stream 1", 4, "....", false, 1 },
	{ "the opener prefers even streams", 6, "x.x...", true, 4 },
	{ "the other side prefers odd streams", 6, ".x....", false, 3 },
	{ "the opener takes the last odd stream if even ones are in use", 6,
	  "x.x.x.", true, 5 },
	{ "the other side takes the last even stream if odd ones are in use", 5,
	  ".x.x.", false, 4 },
	{ "no stream is chosen if all are in use", 3, "xxx", true, -1 },
	{ "the opener has the only stream", 1, ".", true, 0 },
	{ "the other side uses the only stream if it is free", 1, ".", false, 0 },
	{ "no stream is chosen from none", 0, "", true, -1 },
};

static void stream_desc(const struct stream_case *c, char *desc)
{
	strscpy(desc, c->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(stream, stream_cases, stream_desc);

static void stream_of_a_new_session_is_chosen(struct kunit *test)
{
	const struct stream_case *c = test->param_value;
	void *used[8] = {};
	unsigned int i;

	for (i = 0; i < c->num; i++)
		used[i] = c->used[i] == 'x' ? test : NULL;
	KUNIT_EXPECT_EQ(test, c->wanted,
			siw_stream_pick(used, c->num, c->active));
}

/**
 * struct space_case - a part of a socket's buffer
 * @name: of the test
 * @buffer: in bytes
 * @sessions: number of sessions
 * @segment: largest segment in bytes, or another limit
 * @wanted: the part in bytes
 */
struct space_case {
	const char *name;
	u32 buffer;
	unsigned int sessions;
	u32 segment;
	u32 wanted;
};

static void space_desc(const struct space_case *c, char *desc)
{
	strscpy(desc, c->name, KUNIT_PARAM_DESC_SIZE);
}

/* 1536 bytes for each session, two segments; at most half of the buffer */
static const struct space_case reserve_cases[] = {
	{ "segments of the only session may fill the send buffer", 212992, 1,
	  1452, 0 },
	{ "segments leave a control message for each session", 212992, 8, 1452,
	  8 * 1536 + 2 * 1452 },
	{ "segments may fill half of the send buffer", 212992, 1024, 1452,
	  106496 },
	{ "large segments may fill half of the send buffer", 212992, 2, 65535,
	  106496 },
	{ "the reserve for the most streams does not overflow", U32_MAX,
	  UINT_MAX, U32_MAX, U32_MAX / 2 },
};

KUNIT_ARRAY_PARAM(reserve, reserve_cases, space_desc);

static void segments_leave_send_space_to_control_messages(struct kunit *test)
{
	const struct space_case *c = test->param_value;

	KUNIT_EXPECT_EQ(test, c->wanted,
			siw_ssn_reserve(c->buffer, c->sessions, c->segment));
}

/* Two messages of 1536 bytes for each session. A limit stands in place of the segment */
static const struct space_case sndbuf_cases[] = {
	{ "the only session leaves the send buffer as it is", 212992, 1,
	  2621440, 212992 },
	{ "8 sessions leave the send buffer as it is", 212992, 8, 2621440,
	  212992 },
	{ "300 sessions enlarge the send buffer", 212992, 300, 2621440,
	  921600 },
	{ "1024 sessions enlarge it to the limit", 212992, 1024, 2621440,
	  2621440 },
	{ "a large send buffer is reduced to the limit", 33554432, 1, 2621440,
	  2621440 },
	{ "the size for the most streams does not overflow", 212992, UINT_MAX,
	  U32_MAX, U32_MAX },
};

KUNIT_ARRAY_PARAM(sndbuf, sndbuf_cases, space_desc);

/* F145 */
static void send_buffer_has_space_for_the_control_messages_of_all_sessions(struct kunit *test)
{
	const struct space_case *c = test->param_value;

	KUNIT_EXPECT_EQ(test, c->wanted,
			siw_ssn_sndbuf(c->buffer, c->sessions, c->segment));
}

/* 16 KiB are several chunks of Ethernet's size */
static const struct space_case floor_cases[] = {
	{ "the only session is guaranteed the receive buffer", 212992, 1, 0,
	  212992 },
	{ "8 sessions are guaranteed equal parts of it", 212992, 8, 0, 26624 },
	{ "each of 1024 sessions is guaranteed some chunks", 212992, 1024, 0,
	  16384 },
	{ "no session is guaranteed more than the receive buffer", 4096, 8, 0,
	  4096 },
	{ "no session is guaranteed more than 208 KiB", 4194304, 1, 0,
	  212992 },
};

KUNIT_ARRAY_PARAM(floor, floor_cases, space_desc);

static void sessions_are_guaranteed_parts_of_the_receive_buffer(struct kunit *test)
{
	const struct space_case *c = test->param_value;

	KUNIT_EXPECT_EQ(test, c->wanted,
			siw_ssn_floor(c->buffer, c->sessions));
}

/* RFC 9260 section 6.4: TSNs are compared modulo 2^32 */
static void acknowledged_chunk_stays_acknowledged_when_tsns_wrap(struct kunit *test)
{
	const u32 tsn = 0xfffffff0;

	KUNIT_EXPECT_FALSE(test, siw_ssn_is_acked(tsn, tsn - 1));
	KUNIT_EXPECT_FALSE(test, siw_ssn_is_acked(tsn, tsn - 40000));
	KUNIT_EXPECT_TRUE(test, siw_ssn_is_acked(tsn, tsn));
	KUNIT_EXPECT_TRUE(test, siw_ssn_is_acked(tsn, tsn + 100));
	KUNIT_EXPECT_TRUE(test, siw_ssn_is_acked(tsn, tsn + 0x7fffffff));
	KUNIT_EXPECT_TRUE(test, siw_ssn_is_acked(tsn, tsn + 0x80000001));
	KUNIT_EXPECT_TRUE(test, siw_ssn_is_acked(tsn, tsn + 0xf0000000));
}

static struct kunit_case ssn_cases[] = {
	KUNIT_CASE(acknowledged_chunk_stays_acknowledged_when_tsns_wrap),
	KUNIT_CASE_PARAM(segments_leave_send_space_to_control_messages,
			 reserve_gen_params),
	KUNIT_CASE_PARAM(send_buffer_has_space_for_the_control_messages_of_all_sessions,
			 sndbuf_gen_params),
	KUNIT_CASE_PARAM(sessions_are_guaranteed_parts_of_the_receive_buffer,
			 floor_gen_params),
	KUNIT_CASE_PARAM(stream_of_a_new_session_is_chosen, stream_gen_params),
	KUNIT_CASE(sctp_session_begins_with_ddp_ssn_0),
	KUNIT_CASE(sctp_chunks_in_ddp_ssn_order_are_never_queued),
	KUNIT_CASE(ddp_ssn_gap_is_filled_across_the_wraparound),
	KUNIT_CASE(two_ddp_ssn_gaps_are_filled_one_by_one),
	KUNIT_CASE_PARAM(chunk_with_a_ddp_ssn_outside_the_window_is_not_queued, hostile_gen_params),
	KUNIT_CASE(duplicate_ddp_ssn_is_refused),
	KUNIT_CASE(chunks_after_a_ddp_ssn_gap_are_queued_up_to_the_memory_limit),
	KUNIT_CASE(remote_address_gets_a_quarter_of_the_free_reorder_memory),
	KUNIT_CASE(session_gets_its_guaranteed_reorder_memory),
	KUNIT_CASE(guaranteed_reorder_memory_of_an_address_takes_no_share_of_others),
	KUNIT_CASE(chunks_that_wait_for_their_endpoint_leave_half_of_the_memory),
	KUNIT_CASE(sessions_of_an_association_share_a_limit_of_memory),
	KUNIT_CASE(refused_memory_charge_does_not_affect_other_sessions),
	KUNIT_CASE(reorder_memory_is_charged_while_sctp_chunks_are_queued),
	KUNIT_CASE(sctp_chunk_is_not_queued_if_the_remote_address_is_unknown),
	KUNIT_CASE(chunks_in_random_order_are_delivered_in_ddp_ssn_order),
	{}
};

static int begin_anew(struct kunit *test)
{
	pool = (struct siw_ssn_pool) { .max = LONG_MAX };
	share = (struct siw_ssn_share) {};
	return 0;
}

static struct kunit_suite ssn_suite = {
	.name = "iw_mpa_siw_ssn",
	.init = begin_anew,
	.test_cases = ssn_cases,
};

kunit_test_suite(ssn_suite);

MODULE_DESCRIPTION("KUnit tests of the order of chunks over SCTP");
MODULE_LICENSE("GPL");
