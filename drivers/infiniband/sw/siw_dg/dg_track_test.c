// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Messages of Write-Record in pieces: each rule of the tracker. See NOTICE.
 *
 * S is 8 and ML is 28 unless a case sets them: four segments, the last of 4
 * bytes. The tracker is pure, so the test has its own copy and its own clock.
 */
#include <kunit/test.h>
#include <linux/module.h>
#include <linux/prandom.h>

#include "dg_track.c"

#define SLOTS		4
#define ZONE		0x12345601
#define BASE		0x1000
#define S		8
#define ML		28
#define DEADLINE	1000
#define GAP		2
#define LATE		200

struct world {
	struct dg_track track;
	struct dg_slot slots[SLOTS];
	struct dg_slot *message;
	u64 now;
	bool partial;
};

static const struct dg_track_times times = {
	.deadline = DEADLINE,
	.gap = GAP,
	.late = LATE,
};

static struct world *new_world(struct kunit *test, bool partial)
{
	struct world *w = kunit_kzalloc(test, sizeof(*w), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, w);
	dg_track_init(&w->track, w->slots, SLOTS, 1, &times);
	w->partial = partial;
	w->now = 5000;
	return w;
}

static struct dg_source source(u16 number)
{
	return (struct dg_source) { .addr = { 0xfd, [15] = 1 }, .port = number };
}

static struct dg_segment segment(u32 msn, u32 mo, u32 len, u32 ml)
{
	return (struct dg_segment) {
		.form = DG_WRITE_RECORD,
		.last = mo + len == ml,
		.stag = ZONE,
		.to = BASE + mo,
		.msn = msn,
		.mo = mo,
		.ml = ml,
		.len = len,
	};
}

static enum dg_verdict offer(struct world *w, u16 from, struct dg_segment seg)
{
	struct dg_source s = source(from);

	w->message = NULL;
	return dg_track_offer(&w->track, &s, &seg, w->partial, w->now,
			      &w->message);
}

/* Segment @index of a message of ML bytes */
static enum dg_verdict piece(struct world *w, u16 from, u32 msn, u32 index)
{
	u32 mo = index * S;

	return offer(w, from, segment(msn, mo, min_t(u32, S, ML - mo), ML));
}

static void expect_runs(struct kunit *test, const struct dg_slot *message,
			const struct dg_run *want, u32 number)
{
	struct dg_run run;
	u32 from = 0, i;

	KUNIT_ASSERT_NOT_NULL(test, message);
	for (i = 0; i < number; i++) {
		KUNIT_ASSERT_TRUE(test, dg_track_run(message, &from, &run));
		KUNIT_EXPECT_EQ(test, want[i].mo, run.mo);
		KUNIT_EXPECT_EQ(test, want[i].len, run.len);
		KUNIT_EXPECT_EQ(test, i == number - 1, run.end);
	}
	KUNIT_EXPECT_FALSE(test, dg_track_run(message, &from, &run));
}

static const struct dg_run all[] = { { 0, ML } };

/* DGM-16, DGM-33 */
static void write_record_of_one_datagram_uses_no_tracker_slot(struct kunit *test)
{
	struct world *w = new_world(test, false);
	u64 when;
	u32 i;

	for (i = 0; i < 10; i++)
		KUNIT_EXPECT_EQ(test, DG_SINGLE,
				offer(w, i, segment(1, 0, 5, 5)));
	KUNIT_EXPECT_EQ(test, DG_SINGLE, offer(w, 1, segment(1, 0, 0, 0)));
	KUNIT_EXPECT_FALSE(test, dg_track_next(&w->track, &when));
	KUNIT_EXPECT_EQ(test, 0ull, w->track.evicted);
}

static void segments_of_a_message_in_any_order_make_one_record(struct kunit *test)
{
	static const u8 orders[][4] = {
		{ 0, 1, 2, 3 }, { 3, 2, 1, 0 }, { 3, 0, 1, 2 }, { 2, 3, 0, 1 },
		{ 1, 0, 3, 2 }, { 0, 3, 1, 2 },
	};
	struct world *w = new_world(test, false);
	u32 order, i;

	for (order = 0; order < ARRAY_SIZE(orders); order++) {
		for (i = 0; i < 3; i++)
			KUNIT_EXPECT_EQ(test, DG_PLACE,
					piece(w, 1, order, orders[order][i]));
		KUNIT_EXPECT_EQ(test, DG_DELIVER,
				piece(w, 1, order, orders[order][3]));
		expect_runs(test, w->message, all, 1);
		KUNIT_EXPECT_EQ(test, (u64)BASE, w->message->base);
		KUNIT_EXPECT_EQ(test, (u32)ML, w->message->bytes);
	}
}

/* A byte count would accept three times segment 0 and Last as the message */
static void duplicate_segment_does_not_fill_a_hole_in_its_message(struct kunit *test)
{
	struct world *w = new_world(test, false);

	KUNIT_EXPECT_EQ(test, DG_PLACE, piece(w, 1, 7, 0));
	KUNIT_EXPECT_EQ(test, DG_DUPLICATE, piece(w, 1, 7, 0));
	KUNIT_EXPECT_EQ(test, DG_DUPLICATE, piece(w, 1, 7, 0));
	KUNIT_EXPECT_EQ(test, DG_PLACE, piece(w, 1, 7, 3));
	KUNIT_EXPECT_EQ(test, DG_DUPLICATE, piece(w, 1, 7, 3));
	KUNIT_EXPECT_EQ(test, DG_PLACE, piece(w, 1, 7, 1));
	KUNIT_EXPECT_EQ(test, DG_DELIVER, piece(w, 1, 7, 2));
}

/* The document's four criteria do not detect this loss */
static void loss_of_the_first_segment_of_a_message_is_detected(struct kunit *test)
{
	static const struct dg_run tail[] = { { S, ML - S } };
	struct world *w = new_world(test, true);

	KUNIT_EXPECT_EQ(test, DG_PLACE, piece(w, 1, 7, 1));
	KUNIT_EXPECT_EQ(test, DG_PLACE, piece(w, 1, 7, 2));
	KUNIT_EXPECT_EQ(test, DG_PLACE, piece(w, 1, 7, 3));
	w->now += GAP;
	w->message = dg_track_expire(&w->track, w->now);
	expect_runs(test, w->message, tail, 1);
	KUNIT_EXPECT_EQ(test, (u32)(ML - S), w->message->bytes);
}

/* DGM-15, DGM-33: the older message is discarded, and is late from then on */
static void newer_message_of_a_source_discards_the_older(struct kunit *test)
{
	struct world *w = new_world(test, true);

	KUNIT_EXPECT_EQ(test, DG_PLACE, piece(w, 1, 7, 0));
	KUNIT_EXPECT_EQ(test, DG_PLACE, piece(w, 1, 8, 0));
	KUNIT_EXPECT_EQ(test, 1ull, w->track.superseded);
	KUNIT_EXPECT_EQ(test, DG_LATE, piece(w, 1, 7, 1));
	KUNIT_EXPECT_EQ(test, DG_PLACE, piece(w, 1, 8, 1));
	KUNIT_EXPECT_EQ(test, DG_PLACE, piece(w, 1, 8, 2));
	KUNIT_EXPECT_EQ(test, DG_DELIVER, piece(w, 1, 8, 3));
	expect_runs(test, w->message, all, 1);
	w->now += DEADLINE;
	KUNIT_EXPECT_NULL(test, dg_track_expire(&w->track, w->now));
}

/* The older one waits for its gap: a busy receiver may read the newer first */
static void newer_message_ends_an_older_one_whose_last_segment_arrived(struct kunit *test)
{
	static const struct dg_run runs[] = { { 0, S }, { 2 * S, ML - 2 * S } };
	struct world *w = new_world(test, true);

	KUNIT_EXPECT_EQ(test, DG_PLACE, piece(w, 1, 7, 0));
	KUNIT_EXPECT_EQ(test, DG_PLACE, piece(w, 1, 7, 2));
	KUNIT_EXPECT_EQ(test, DG_PLACE, piece(w, 1, 7, 3));
	KUNIT_EXPECT_EQ(test, DG_OLDER, piece(w, 1, 8, 0));
	KUNIT_ASSERT_NOT_NULL(test, w->message);
	KUNIT_EXPECT_EQ(test, 7u, w->message->msn);
	expect_runs(test, w->message, runs, 2);
	KUNIT_EXPECT_EQ(test, DG_LATE, piece(w, 1, 7, 1));
	KUNIT_EXPECT_EQ(test, DG_PLACE, piece(w, 1, 8, 0));
	KUNIT_EXPECT_NULL(test, w->message);
	KUNIT_EXPECT_EQ(test, 0ull, w->track.superseded);
	KUNIT_EXPECT_EQ(test, DG_LATE, piece(w, 1, 7, 1));
	KUNIT_EXPECT_NULL(test, dg_track_expire(&w->track, w->now + GAP));
}

static void sources_and_zones_are_tracked_separately(struct kunit *test)
{
	struct world *w = new_world(test, false);
	struct dg_segment other = segment(8, 0, S, ML);
	struct dg_source far = source(1);

	KUNIT_EXPECT_EQ(test, DG_PLACE, piece(w, 1, 7, 0));
	KUNIT_EXPECT_EQ(test, DG_PLACE, piece(w, 2, 8, 0));
	other.stag = ZONE + 1;
	KUNIT_EXPECT_EQ(test, DG_PLACE, offer(w, 1, other));
	far.scope = 2;
	other.stag = ZONE;
	KUNIT_EXPECT_EQ(test, DG_PLACE,
			dg_track_offer(&w->track, &far, &other, false, w->now,
				       &w->message));
	KUNIT_EXPECT_EQ(test, DG_DUPLICATE, piece(w, 1, 7, 0));
	KUNIT_EXPECT_EQ(test, 0ull, w->track.superseded);
}

static void full_tracker_discards_the_oldest_message(struct kunit *test)
{
	struct world *w = new_world(test, false);
	u32 i;

	for (i = 0; i < SLOTS; i++) {
		w->now++;
		KUNIT_EXPECT_EQ(test, DG_PLACE, piece(w, i, 7, 0));
	}
	KUNIT_EXPECT_EQ(test, 0ull, w->track.evicted);
	KUNIT_EXPECT_EQ(test, DG_PLACE, piece(w, SLOTS, 7, 0));
	KUNIT_EXPECT_EQ(test, 1ull, w->track.evicted);
	/* Sources 1 to 4 are left; source 0 starts again and evicts source 1 */
	KUNIT_EXPECT_EQ(test, DG_DUPLICATE, piece(w, 1, 7, 0));
	KUNIT_EXPECT_EQ(test, DG_PLACE, piece(w, 0, 7, 0));
	KUNIT_EXPECT_EQ(test, 2ull, w->track.evicted);
	KUNIT_EXPECT_EQ(test, DG_DUPLICATE, piece(w, SLOTS, 7, 0));
}

/* A message in progress replaces one that is only remembered */
static void ended_message_is_evicted_before_incomplete_ones(struct kunit *test)
{
	struct world *w = new_world(test, false);
	u32 i;

	for (i = 1; i < SLOTS; i++)
		KUNIT_EXPECT_EQ(test, DG_PLACE, piece(w, i, 7, 0));
	KUNIT_EXPECT_EQ(test, DG_PLACE, offer(w, 9, segment(7, 0, S, 12)));
	KUNIT_EXPECT_EQ(test, DG_DELIVER, offer(w, 9, segment(7, S, 4, 12)));
	KUNIT_EXPECT_EQ(test, DG_PLACE, piece(w, 10, 7, 0));
	KUNIT_EXPECT_EQ(test, 0ull, w->track.evicted);
	for (i = 1; i < SLOTS; i++)
		KUNIT_EXPECT_EQ(test, DG_DUPLICATE, piece(w, i, 7, 0));
}

static void segments_of_an_ended_message_are_dropped_for_200_ms(struct kunit *test)
{
	struct world *w = new_world(test, false);
	u32 i;

	for (i = 0; i < 4; i++)
		piece(w, 1, 7, i);
	w->now += LATE - 1;
	KUNIT_EXPECT_EQ(test, DG_LATE, piece(w, 1, 7, 0));
	KUNIT_EXPECT_EQ(test, DG_LATE, piece(w, 1, 6, 0));
	w->now++;
	KUNIT_EXPECT_EQ(test, DG_PLACE, piece(w, 1, 6, 0));
}

static void newer_message_after_an_ended_one_is_not_dropped(struct kunit *test)
{
	struct world *w = new_world(test, false);
	u32 i;

	for (i = 0; i < 4; i++)
		piece(w, 1, 7, i);
	KUNIT_EXPECT_EQ(test, DG_PLACE, piece(w, 1, 8, 0));
	KUNIT_EXPECT_EQ(test, 0ull, w->track.superseded);
}

struct order {
	const char *name;
	u32 first, second;
	enum dg_verdict verdict;
};

/* RFC 1982 */
static const struct order orders[] = {
	{ "MSN 0 after 2^32 - 1 is a newer message", 0xffffffff, 0, DG_PLACE },
	{ "MSN 2^32 - 1 after 0 is a late, older message", 0, 0xffffffff, DG_LATE },
	{ "an MSN ahead by 2^31 - 1 is a newer message", 100, 100 + 0x7fffffffu, DG_PLACE },
	{ "an MSN ahead by 2^31 is a late, older message", 100, 100 + 0x80000000u, DG_LATE },
	{ "an MSN behind by 2^31 - 1 is a late, older message", 0x80000000, 1, DG_LATE },
};

static void order_desc(const struct order *o, char *desc)
{
	strscpy(desc, o->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(order, orders, order_desc);

static void msn_order_wraps_at_2_to_the_32(struct kunit *test)
{
	const struct order *o = test->param_value;
	struct world *w = new_world(test, false);

	KUNIT_EXPECT_EQ(test, DG_PLACE, piece(w, 1, o->first, 0));
	KUNIT_EXPECT_EQ(test, o->verdict, piece(w, 1, o->second, 1));
}

static void incomplete_message_is_discarded_at_the_deadline(struct kunit *test)
{
	struct world *w = new_world(test, false);
	u64 when;

	KUNIT_EXPECT_EQ(test, DG_PLACE, piece(w, 1, 7, 3));
	KUNIT_ASSERT_TRUE(test, dg_track_next(&w->track, &when));
	KUNIT_EXPECT_EQ(test, w->now + DEADLINE, when);
	w->now += DEADLINE - 1;
	KUNIT_EXPECT_EQ(test, DG_PLACE, piece(w, 1, 7, 0));
	KUNIT_EXPECT_NULL(test, dg_track_expire(&w->track, w->now));
	KUNIT_EXPECT_EQ(test, 0ull, w->track.expired);
	w->now++;
	KUNIT_EXPECT_NULL(test, dg_track_expire(&w->track, w->now));
	KUNIT_EXPECT_EQ(test, 1ull, w->track.expired);
	KUNIT_EXPECT_EQ(test, DG_LATE, piece(w, 1, 7, 1));
	KUNIT_EXPECT_FALSE(test, dg_track_next(&w->track, &when));
}

/* DGM-29 */
static void incomplete_message_is_recorded_as_its_received_ranges(struct kunit *test)
{
	static const struct dg_run runs[] = { { 0, S }, { 2 * S, ML - 2 * S } };
	struct world *w = new_world(test, true);

	KUNIT_EXPECT_EQ(test, DG_PLACE, piece(w, 1, 7, 0));
	KUNIT_EXPECT_EQ(test, DG_PLACE, piece(w, 1, 7, 3));
	KUNIT_EXPECT_EQ(test, DG_PLACE, piece(w, 1, 7, 2));
	KUNIT_EXPECT_NULL(test, dg_track_expire(&w->track, w->now + GAP - 1));
	w->message = dg_track_expire(&w->track, w->now + GAP);
	expect_runs(test, w->message, runs, 2);
	KUNIT_EXPECT_EQ(test, (u32)(ML - S), w->message->bytes);
	KUNIT_EXPECT_NULL(test, dg_track_expire(&w->track, w->now + GAP));
}

static void message_without_its_last_segment_waits_for_the_deadline(struct kunit *test)
{
	static const struct dg_run runs[] = { { 0, S }, { 2 * S, S } };
	struct world *w = new_world(test, true);

	KUNIT_EXPECT_EQ(test, DG_PLACE, piece(w, 1, 7, 0));
	KUNIT_EXPECT_EQ(test, DG_PLACE, piece(w, 1, 7, 2));
	KUNIT_EXPECT_NULL(test, dg_track_expire(&w->track, w->now + DEADLINE - 1));
	w->message = dg_track_expire(&w->track, w->now + DEADLINE);
	expect_runs(test, w->message, runs, 2);
	KUNIT_EXPECT_EQ(test, 0ull, w->track.expired);
}

static void last_segment_of_a_message_alone_is_recorded(struct kunit *test)
{
	static const struct dg_run runs[] = { { 3 * S, ML - 3 * S } };
	struct world *w = new_world(test, true);

	KUNIT_EXPECT_EQ(test, DG_PLACE, piece(w, 1, 7, 3));
	w->message = dg_track_expire(&w->track, w->now + GAP);
	expect_runs(test, w->message, runs, 1);
}

/* The document: deliver on Last */
static void last_segment_delivers_the_message_if_the_gap_time_is_0(struct kunit *test)
{
	static const struct dg_run runs[] = { { 0, S }, { 3 * S, ML - 3 * S } };
	struct world *w = new_world(test, true);

	w->track.times.gap = 0;
	KUNIT_EXPECT_EQ(test, DG_PLACE, piece(w, 1, 7, 0));
	KUNIT_EXPECT_EQ(test, DG_DELIVER, piece(w, 1, 7, 3));
	expect_runs(test, w->message, runs, 2);
	KUNIT_EXPECT_EQ(test, DG_LATE, piece(w, 1, 7, 1));
}

static void wait_for_missing_segments_ends_at_the_message_deadline(struct kunit *test)
{
	struct world *w = new_world(test, true);
	u64 when;

	KUNIT_EXPECT_EQ(test, DG_PLACE, piece(w, 1, 7, 0));
	w->now += DEADLINE - 1;
	KUNIT_EXPECT_EQ(test, DG_PLACE, piece(w, 1, 7, 3));
	KUNIT_ASSERT_TRUE(test, dg_track_next(&w->track, &when));
	KUNIT_EXPECT_EQ(test, w->now + 1, when);
	KUNIT_EXPECT_NOT_NULL(test, dg_track_expire(&w->track, w->now + 1));
}

static void missing_segment_within_the_gap_time_completes_the_message(struct kunit *test)
{
	struct world *w = new_world(test, true);

	KUNIT_EXPECT_EQ(test, DG_PLACE, piece(w, 1, 7, 3));
	KUNIT_EXPECT_EQ(test, DG_PLACE, piece(w, 1, 7, 0));
	KUNIT_EXPECT_EQ(test, DG_PLACE, piece(w, 1, 7, 1));
	w->now += GAP - 1;
	KUNIT_EXPECT_EQ(test, DG_DELIVER, piece(w, 1, 7, 2));
	expect_runs(test, w->message, all, 1);
	KUNIT_EXPECT_NULL(test, dg_track_expire(&w->track, w->now + DEADLINE));
}

struct lie {
	const char *name;
	struct { u32 mo, len, ml; } first, second;
	s64 shift; /* of the second segment's TO */
};

static const struct lie lies[] = {
	{ "a segment with a different message length is dropped", { 0, 8, 28 }, { 8, 8, 32 }, 0 },
	{ "a segment with a different message address is dropped", { 0, 8, 28 }, { 8, 8, 28 }, 1 },
	{ "a segment of a different length is dropped", { 0, 8, 28 }, { 4, 4, 28 }, 0 },
	{ "a last segment longer than the segments before is dropped",
	  { 0, 8, 28 }, { 16, 12, 28 }, 0 },
	{ "a last segment at no multiple of the segment length is dropped",
	  { 0, 8, 28 }, { 25, 3, 28 }, 0 },
	{ "a second, different last segment is dropped", { 24, 4, 28 }, { 20, 8, 28 }, 0 },
	{ "a segment shorter than the last one, received before, is dropped",
	  { 16, 12, 28 }, { 0, 8, 28 }, 0 },
	{ "a segment is dropped if the last one, received before, is misplaced",
	  { 25, 3, 28 }, { 0, 8, 28 }, 0 },
};

static void lie_desc(const struct lie *l, char *desc)
{
	strscpy(desc, l->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(lie, lies, lie_desc);

static void segment_that_contradicts_earlier_segments_is_dropped(struct kunit *test)
{
	const struct lie *l = test->param_value;
	struct world *w = new_world(test, false);
	struct dg_segment seg = segment(7, l->second.mo, l->second.len,
					l->second.ml);

	KUNIT_EXPECT_EQ(test, DG_PLACE,
			offer(w, 1, segment(7, l->first.mo, l->first.len,
					    l->first.ml)));
	seg.to += l->shift;
	KUNIT_EXPECT_EQ(test, DG_MISMATCH, offer(w, 1, seg));
}

static void message_has_at_most_1024_segments(struct kunit *test)
{
	struct world *w = new_world(test, false);
	u32 i;

	KUNIT_EXPECT_EQ(test, DG_TOO_MANY,
			offer(w, 1, segment(7, 0, 8, 8 * 1024 + 1)));
	KUNIT_EXPECT_EQ(test, DG_TOO_MANY,
			offer(w, 1, segment(7, 0xfffffff0, 4, 0xfffffff4)));
	for (i = 0; i < 1023; i++)
		KUNIT_ASSERT_EQ(test, DG_PLACE,
				offer(w, 1, segment(7, 8 * i, 8, 8 * 1024)));
	KUNIT_EXPECT_EQ(test, DG_DELIVER,
			offer(w, 1, segment(7, 8 * 1023, 8, 8 * 1024)));
}

/* A dropped segment must not end a message */
static void dropped_segment_does_not_end_an_older_message(struct kunit *test)
{
	struct world *w = new_world(test, false);

	KUNIT_EXPECT_EQ(test, DG_PLACE, piece(w, 1, 7, 0));
	KUNIT_EXPECT_EQ(test, DG_TOO_MANY,
			offer(w, 1, segment(8, 0, 1, 4096)));
	KUNIT_EXPECT_EQ(test, DG_DUPLICATE, piece(w, 1, 7, 0));
}

static void closing_a_memory_zone_drops_its_messages(struct kunit *test)
{
	struct world *w = new_world(test, true);
	u64 when;
	u32 i;

	for (i = 0; i < 4; i++)
		piece(w, 1, 7, i);
	KUNIT_EXPECT_EQ(test, DG_PLACE, piece(w, 2, 7, 3));
	dg_track_forget(&w->track, ZONE);
	KUNIT_EXPECT_FALSE(test, dg_track_next(&w->track, &when));
	KUNIT_EXPECT_NULL(test, dg_track_expire(&w->track, w->now + DEADLINE));
	KUNIT_EXPECT_EQ(test, DG_PLACE, piece(w, 1, 7, 0));
}

struct cover {
	const char *name;
	u64 to;
	u32 len;
	u64 first, number; /* of blocks of 100 bytes, in a zone of 1,050 */
};

static const struct cover covers[] = {
	{ "a segment of one block covers the block", 300, 100, 3, 1 },
	{ "a segment of two halves of blocks covers none", 450, 100, 0, 0 },
	{ "a segment within a block covers none", 410, 50, 0, 0 },
	{ "a segment covers no block of which a byte is missing", 401, 199, 5, 1 },
	{ "a segment covers three blocks between two halves", 150, 400, 2, 3 },
	{ "a segment to the end of the zone covers the short last block", 1000, 50, 10, 1 },
	{ "half of the short last block is not covered", 1020, 30, 0, 0 },
	{ "a segment of the whole zone covers all blocks", 0, 1050, 0, 11 },
	{ "an empty segment at the end of the zone covers none", 1050, 0, 0, 0 },
	{ "an empty segment at the begin of a block covers none", 300, 0, 0, 0 },
};

static void cover_desc(const struct cover *c, char *desc)
{
	strscpy(desc, c->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(cover, covers, cover_desc);

/* DGM-12 */
static void segment_covers_the_blocks_that_it_writes_whole(struct kunit *test)
{
	const struct cover *c = test->param_value;
	const struct dg_segment seg = { .to = c->to, .len = c->len };
	u64 first, end;

	dg_whole_blocks(&seg, 1050, 100, &first, &end);
	if (!c->number) {
		KUNIT_EXPECT_TRUE(test, end <= first);
		return;
	}
	KUNIT_EXPECT_EQ(test, c->first, first);
	KUNIT_EXPECT_EQ(test, c->number, end - first);
}

/* 3,000 messages with loss, duplicates and reordering against a plain array */
static void records_of_random_messages_match_the_received_octets(struct kunit *test)
{
	struct world *w = new_world(test, true);
	struct rnd_state rnd;
	struct dg_run run;
	u32 round, i, from;

	prandom_seed_state(&rnd, 8903935);
	for (round = 0; round < 3000; round++) {
		u32 seg_len = 1 + prandom_u32_state(&rnd) % 9;
		u32 number = 2 + prandom_u32_state(&rnd) % 40;
		u32 ml = seg_len * number - prandom_u32_state(&rnd) % seg_len;
		bool came[42] = {}, delivered = false;
		u32 steps = prandom_u32_state(&rnd) % (3 * number);

		for (i = 0; i < steps && !delivered; i++) {
			u32 at = prandom_u32_state(&rnd) % number;
			u32 len = min(seg_len, ml - at * seg_len);
			enum dg_verdict v = offer(w, 1, segment(round, at * seg_len,
								len, ml));

			KUNIT_ASSERT_EQ(test, came[at], v == DG_DUPLICATE);
			came[at] = true;
			delivered = v == DG_DELIVER;
		}
		w->now += DEADLINE;
		if (!delivered)
			w->message = dg_track_expire(&w->track, w->now);
		from = 0;
		i = 0;
		while (w->message && dg_track_run(w->message, &from, &run)) {
			for (; !came[i]; i++)
				KUNIT_ASSERT_LT(test, i, number);
			KUNIT_ASSERT_EQ(test, i * seg_len, run.mo);
			while (i < number && came[i])
				i++;
			KUNIT_ASSERT_EQ(test, min(i * seg_len, ml),
					run.mo + run.len);
		}
		for (; i < number; i++)
			KUNIT_ASSERT_FALSE(test, came[i]);
	}
}

static struct kunit_case track_cases[] = {
	KUNIT_CASE(write_record_of_one_datagram_uses_no_tracker_slot),
	KUNIT_CASE(segments_of_a_message_in_any_order_make_one_record),
	KUNIT_CASE(duplicate_segment_does_not_fill_a_hole_in_its_message),
	KUNIT_CASE(loss_of_the_first_segment_of_a_message_is_detected),
	KUNIT_CASE(newer_message_of_a_source_discards_the_older),
	KUNIT_CASE(newer_message_ends_an_older_one_whose_last_segment_arrived),
	KUNIT_CASE(sources_and_zones_are_tracked_separately),
	KUNIT_CASE(full_tracker_discards_the_oldest_message),
	KUNIT_CASE(ended_message_is_evicted_before_incomplete_ones),
	KUNIT_CASE(segments_of_an_ended_message_are_dropped_for_200_ms),
	KUNIT_CASE(newer_message_after_an_ended_one_is_not_dropped),
	KUNIT_CASE_PARAM(msn_order_wraps_at_2_to_the_32, order_gen_params),
	KUNIT_CASE(incomplete_message_is_discarded_at_the_deadline),
	KUNIT_CASE(incomplete_message_is_recorded_as_its_received_ranges),
	KUNIT_CASE(message_without_its_last_segment_waits_for_the_deadline),
	KUNIT_CASE(last_segment_of_a_message_alone_is_recorded),
	KUNIT_CASE(last_segment_delivers_the_message_if_the_gap_time_is_0),
	KUNIT_CASE(wait_for_missing_segments_ends_at_the_message_deadline),
	KUNIT_CASE(missing_segment_within_the_gap_time_completes_the_message),
	KUNIT_CASE_PARAM(segment_that_contradicts_earlier_segments_is_dropped, lie_gen_params),
	KUNIT_CASE(message_has_at_most_1024_segments),
	KUNIT_CASE(dropped_segment_does_not_end_an_older_message),
	KUNIT_CASE(closing_a_memory_zone_drops_its_messages),
	KUNIT_CASE_PARAM(segment_covers_the_blocks_that_it_writes_whole, cover_gen_params),
	KUNIT_CASE(records_of_random_messages_match_the_received_octets),
	{}
};

static struct kunit_suite track_suite = {
	.name = "siw_dg_track",
	.test_cases = track_cases,
};

kunit_test_suite(track_suite);

MODULE_DESCRIPTION("KUnit tests of the tracker of datagram iWARP");
MODULE_LICENSE("Dual BSD/GPL");
