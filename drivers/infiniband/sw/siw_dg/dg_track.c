// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Messages of Write-Record that arrive in pieces. See NOTICE and dg_track.h.
 *
 * The functions are pure: no allocation, no locks; the caller provides memory
 * and time. Any context. libdgm and the fuzzers compile this file in user space
 * with shim headers.
 *
 * Each slot is in one of three lists: unused, active or ended. Segments are
 * marked in a bitmap. With a sum of bytes alone, a message with a hole would
 * appear complete as soon as the network duplicates a datagram.
 */
#include <linux/bitops.h>
#include <linux/jhash.h>
#include <linux/kernel.h>
#include <linux/math64.h>
#include <linux/string.h>

#include "dg_track.h"

/* The data of a datagram are shorter than this */
#define SEG_LEN_MAX	65535

static u32 bucket_of(const struct dg_track *track,
		     const struct dg_source *source, u32 stag)
{
	u32 key[7];

	memcpy(key, source->addr, sizeof(source->addr));
	key[4] = source->scope;
	key[5] = source->port;
	key[6] = stag;
	return jhash2(key, ARRAY_SIZE(key), track->seed) % track->number;
}

static struct dg_slot *find_slot(const struct dg_track *track,
				 const struct dg_source *source, u32 stag)
{
	u32 bucket = bucket_of(track, source, stag);
	struct dg_slot *slot;

	hlist_for_each_entry(slot, &track->slots[bucket].bucket, hash)
		if (slot->stag == stag && slot->source.port == source->port &&
		    slot->source.scope == source->scope &&
		    !memcmp(slot->source.addr, source->addr, sizeof(source->addr)))
			return slot;
	return NULL;
}

static void release_slot(struct dg_track *track, struct dg_slot *slot)
{
	hlist_del(&slot->hash);
	list_del_init(&slot->gap);
	list_move(&slot->order, &track->unused);
	slot->active = false;
}

static void end_message(struct dg_track *track, struct dg_slot *slot, u64 now)
{
	list_del_init(&slot->gap);
	list_move_tail(&slot->order, &track->ended);
	slot->active = false;
	slot->ended = now;
}

/* Never fails: evicts the oldest ended message, else the oldest in progress */
static struct dg_slot *obtain_slot(struct dg_track *track)
{
	struct dg_slot *slot;

	slot = list_first_entry_or_null(&track->unused, struct dg_slot, order);
	if (slot)
		return slot;
	slot = list_first_entry_or_null(&track->ended, struct dg_slot, order);
	if (!slot) {
		slot = list_first_entry(&track->active, struct dg_slot, order);
		track->evicted++;
	}
	release_slot(track, slot);
	return slot;
}

/**
 * dg_track_init - initialise a tracker
 * @track: filled
 * @slots: memory of the tracker from now on
 * @number: slots, 1 to %DG_SLOTS_MAX
 * @seed: a random number that must be secret from peers
 * @times: durations
 */
void dg_track_init(struct dg_track *track, struct dg_slot *slots, u32 number,
		   u32 seed, const struct dg_track_times *times)
{
	u32 i;

	memset(track, 0, sizeof(*track));
	track->slots = slots;
	track->number = number;
	track->seed = seed;
	track->times = *times;
	INIT_LIST_HEAD(&track->unused);
	INIT_LIST_HEAD(&track->active);
	INIT_LIST_HEAD(&track->gaps);
	INIT_LIST_HEAD(&track->ended);
	memset(slots, 0, number * sizeof(*slots));
	for (i = 0; i < number; i++) {
		INIT_HLIST_HEAD(&slots[i].bucket);
		INIT_LIST_HEAD(&slots[i].gap);
		list_add_tail(&slots[i].order, &track->unused);
	}
}

/* Can this segment belong to a message of at most DG_SEGMENTS segments? */
static bool is_countable(const struct dg_segment *seg)
{
	if (!seg->last)
		return seg->ml <= (u64)DG_SEGMENTS * seg->len;
	return seg->mo <= (DG_SEGMENTS - 1) * SEG_LEN_MAX;
}

static void start_message(struct dg_track *track, struct dg_slot *slot,
			  const struct dg_segment *seg, bool partial, u64 now)
{
	list_del_init(&slot->gap);
	list_move_tail(&slot->order, &track->active);
	slot->msn = seg->msn;
	slot->ml = seg->ml;
	slot->bytes = 0;
	slot->seg_len = 0;
	slot->base = seg->to - seg->mo;
	slot->started = now;
	slot->active = true;
	slot->partial = partial;
	slot->last = false;
	bitmap_zero(slot->bits, DG_SEGMENTS);
}

static struct dg_slot *new_slot(struct dg_track *track,
				const struct dg_source *source, u32 stag)
{
	struct dg_slot *slot = obtain_slot(track);

	slot->source = *source;
	slot->stag = stag;
	hlist_add_head(&slot->hash,
		       &track->slots[bucket_of(track, source, stag)].bucket);
	return slot;
}

/* Does the segment match the received ones? The first one always does. */
static bool fits_message(const struct dg_slot *slot,
			 const struct dg_segment *seg)
{
	if (seg->ml != slot->ml || seg->to - seg->mo != slot->base)
		return false;
	if (!seg->last) {
		if (slot->seg_len)
			return seg->len == slot->seg_len;
		/* The last segment has arrived before all others */
		return !slot->last || (slot->last_mo % seg->len == 0 &&
				       slot->ml - slot->last_mo <= seg->len);
	}
	if (slot->last)
		return seg->mo == slot->last_mo;
	return !slot->seg_len ||
	       (seg->mo % slot->seg_len == 0 && seg->len <= slot->seg_len);
}

/* Returns false for a duplicate */
static bool mark_segment(struct dg_slot *slot, const struct dg_segment *seg)
{
	if (seg->last) {
		if (slot->last)
			return false;
		slot->last = true;
		slot->last_mo = seg->mo;
	} else if (!slot->seg_len) {
		slot->seg_len = seg->len;
		if (slot->last)
			__set_bit(slot->last_mo / slot->seg_len, slot->bits);
	}
	if (slot->seg_len &&
	    __test_and_set_bit(seg->mo / slot->seg_len, slot->bits))
		return false;
	slot->bytes += seg->len;
	return true;
}

static enum dg_verdict add_segment(struct dg_track *track, struct dg_slot *slot,
				   const struct dg_segment *seg, u64 now)
{
	if (!fits_message(slot, seg))
		return DG_MISMATCH;
	if (!mark_segment(slot, seg))
		return DG_DUPLICATE;
	/* No two segments overlap: the sum of bytes is that of all segments */
	if (slot->bytes == slot->ml) {
		end_message(track, slot, now);
		return DG_DELIVER;
	}
	if (!seg->last || !slot->partial)
		return DG_PLACE;
	if (!track->times.gap) {
		end_message(track, slot, now);
		return DG_DELIVER;
	}
	/* Wait for segments that Last has overtaken */
	slot->gap_until = now + track->times.gap;
	list_add_tail(&slot->gap, &track->gaps);
	return DG_PLACE;
}

/**
 * dg_track_offer - evaluate a received segment
 * @track: the tracker
 * @source: its source
 * @seg: a Write-Record that dg_parse() has accepted
 * @partial: the zone accepts messages with holes
 * @now: the time; dg_track_expire() has been called for it
 * @message: set if the verdict is %DG_DELIVER or %DG_OLDER; valid until the
 *           next call
 *
 * A caller that gets %DG_SINGLE, %DG_PLACE or %DG_DELIVER places the segment.
 *
 * Return: see enum dg_verdict
 */
enum dg_verdict dg_track_offer(struct dg_track *track,
			       const struct dg_source *source,
			       const struct dg_segment *seg, bool partial,
			       u64 now, struct dg_slot **message)
{
	struct dg_slot *slot;
	enum dg_verdict verdict;
	s32 ahead;

	if (!seg->mo && seg->len == seg->ml)
		return DG_SINGLE;
	if (!is_countable(seg))
		return DG_TOO_MANY;
	slot = find_slot(track, source, seg->stag);
	if (slot && !slot->active && now - slot->ended >= track->times.late) {
		release_slot(track, slot);
		slot = NULL;
	}
	if (slot) {
		/* RFC 1982; half of the circle away is older in both directions */
		ahead = seg->msn - slot->msn;
		if (ahead < 0 || (!ahead && !slot->active))
			return DG_LATE;
		if (ahead && !list_empty(&slot->gap)) {
			end_message(track, slot, now);
			*message = slot;
			return DG_OLDER;
		}
		if (ahead) {
			track->superseded += slot->active;
			start_message(track, slot, seg, partial, now);
		}
	} else {
		slot = new_slot(track, source, seg->stag);
		start_message(track, slot, seg, partial, now);
	}
	verdict = add_segment(track, slot, seg, now);
	if (verdict == DG_DELIVER)
		*message = slot;
	return verdict;
}

static struct dg_slot *first_due(struct dg_track *track, u64 now)
{
	struct dg_slot *slot;

	slot = list_first_entry_or_null(&track->gaps, struct dg_slot, gap);
	if (slot && now >= slot->gap_until)
		return slot;
	slot = list_first_entry_or_null(&track->active, struct dg_slot, order);
	if (slot && now - slot->started >= track->times.deadline)
		return slot;
	return NULL;
}

/**
 * dg_track_expire - end messages that have timed out
 * @track: the tracker
 * @now: the time, never less than in the call before
 *
 * Call it until it returns NULL. It discards messages that are not partial.
 *
 * Return: a partial message to record, valid until the next call, or NULL
 */
struct dg_slot *dg_track_expire(struct dg_track *track, u64 now)
{
	struct dg_slot *slot;

	while ((slot = first_due(track, now))) {
		end_message(track, slot, now);
		if (slot->partial)
			return slot;
		track->expired++;
	}
	return NULL;
}

/**
 * dg_track_next - when is dg_track_expire() needed?
 * @track: the tracker
 * @when: set to the time, if there is one
 *
 * Return: false if no message is in progress
 */
bool dg_track_next(struct dg_track *track, u64 *when)
{
	struct dg_slot *slot;

	slot = list_first_entry_or_null(&track->active, struct dg_slot, order);
	if (!slot)
		return false;
	*when = slot->started + track->times.deadline;
	slot = list_first_entry_or_null(&track->gaps, struct dg_slot, gap);
	if (slot && slot->gap_until < *when)
		*when = slot->gap_until;
	return true;
}

/**
 * dg_track_run - iterate over the received parts of a message
 * @message: a message that has ended
 * @from: set it to 0 before the first call
 * @run: filled
 *
 * Return: false if there are no more
 */
bool dg_track_run(const struct dg_slot *message, u32 *from, struct dg_run *run)
{
	u32 segments, first, next;

	if (!message->seg_len) {
		/* Only the last segment has been received */
		*run = (struct dg_run) {
			.mo = message->last_mo,
			.len = message->ml - message->last_mo,
			.end = true,
		};
		return !(*from)++;
	}
	segments = (message->ml - 1) / message->seg_len + 1;
	first = find_next_bit(message->bits, segments, *from);
	if (first >= segments)
		return false;
	next = find_next_zero_bit(message->bits, segments, first);
	run->mo = first * message->seg_len;
	run->len = next == segments ? message->ml - run->mo :
				      next * message->seg_len - run->mo;
	run->end = find_next_bit(message->bits, segments, next) >= segments;
	*from = next;
	return true;
}

static void forget_in(struct dg_track *track, struct list_head *list, u32 stag)
{
	struct dg_slot *slot, *next;

	list_for_each_entry_safe(slot, next, list, order)
		if (slot->stag == stag)
			release_slot(track, slot);
}

/**
 * dg_track_forget - drop all messages of a zone that is being closed
 * @track: the tracker
 * @stag: the zone
 */
void dg_track_forget(struct dg_track *track, u32 stag)
{
	forget_in(track, &track->active, stag);
	forget_in(track, &track->ended, stag);
}

/**
 * dg_whole_blocks - find the blocks of a zone that a segment covers whole
 * @seg: a Write-Record that is within the zone
 * @length: length of the zone in bytes
 * @block: length of a block in bytes, not 0; the last block may be shorter
 * @first: set to the number of the first one
 * @end: set to the number behind the last one; not more than *@first if there is
 *       none
 */
void dg_whole_blocks(const struct dg_segment *seg, u64 length, u32 block,
		     u64 *first, u64 *end)
{
	u64 to = seg->to + seg->len;

	if (to == length)
		to += block - 1;
	*first = div64_u64(seg->to + block - 1, block);
	*end = div64_u64(to, block);
}
