/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Messages of Write-Record that arrive in pieces. See NOTICE.
 *
 * All segments of a message but the last have the same length S > 0, and the MO
 * of each is a multiple of S. Each names the length of the message, ML. Last is
 * set exactly if MO + length = ML. TO - MO, where the message begins in the
 * zone, is the same in each segment. A message of one segment needs no
 * tracking.
 *
 * A source has one message in progress per zone: a newer MSN (RFC 1982)
 * discards the older message, or ends it if it is partial and its Last has
 * arrived. A message that has ended is remembered for some time, so that its
 * late segments are not placed.
 */
#ifndef _DG_TRACK_H
#define _DG_TRACK_H

#include <linux/bitmap.h>
#include <linux/list.h>
#include <linux/types.h>

#include "dg_wire.h"

/* Maximum number of segments of a message */
#define DG_SEGMENTS	1024
/* Maximum number of slots of a tracker */
#define DG_SLOTS_MAX	4096

/**
 * struct dg_source - source of a datagram
 * @addr: IPv6 address, or IPv4-mapped
 * @scope: interface of a link-local address, else 0
 * @port: UDP port
 */
struct dg_source {
	u8 addr[16];
	u32 scope;
	u16 port;
};

/**
 * struct dg_slot - a message in progress, or one that has ended
 * @bucket: private: slots with a hash of this slot's index
 * @hash: private: place in a bucket
 * @order: private: place in the tracker's list of its state
 * @gap: private: place in the tracker's list of messages whose Last has arrived
 * @source: its source
 * @stag: the zone
 * @msn: number of the message
 * @ml: length of the message in bytes
 * @bytes: bytes received
 * @seg_len: S; 0 while only the last segment has been received
 * @last_mo: MO of the last segment, if @last
 * @base: where the message begins in the zone
 * @started: when its first segment arrived
 * @ended: when it ended; valid unless @active
 * @gap_until: end of the wait for segments that Last has overtaken
 * @active: it has not ended
 * @partial: deliver it with holes
 * @last: the last segment has been received
 * @bits: segments received, once @seg_len is known
 */
struct dg_slot {
	struct hlist_head bucket;
	struct hlist_node hash;
	struct list_head order;
	struct list_head gap;
	struct dg_source source;
	u32 stag;
	u32 msn;
	u32 ml;
	u32 bytes;
	u32 seg_len;
	u32 last_mo;
	u64 base;
	u64 started;
	u64 ended;
	u64 gap_until;
	bool active;
	bool partial;
	bool last;
	DECLARE_BITMAP(bits, DG_SEGMENTS);
};

/**
 * struct dg_track_times - durations, in the unit of the caller's clock
 * @deadline: from the first segment of a message until it ends
 * @gap: from the last segment until a partial message ends; 0: at once
 * @late: for how long a message that has ended is remembered
 */
struct dg_track_times {
	u64 deadline;
	u64 gap;
	u64 late;
};

/**
 * struct dg_track - the messages in progress at a receiver
 * @slots: private: memory of the caller
 * @number: private: slots
 * @seed: private: of the hash
 * @times: durations
 * @unused: private: slots
 * @active: private: messages in progress, by @started
 * @gaps: private: messages in progress that end at @gap_until, by @gap_until
 * @ended: private: messages that are remembered, by @ended
 * @superseded: messages discarded for a newer one
 * @evicted: messages discarded for lack of a slot
 * @expired: messages discarded at their deadline
 */
struct dg_track {
	struct dg_slot *slots;
	u32 number;
	u32 seed;
	struct dg_track_times times;
	struct list_head unused;
	struct list_head active;
	struct list_head gaps;
	struct list_head ended;
	u64 superseded;
	u64 evicted;
	u64 expired;
};

/**
 * enum dg_verdict - what to do with a segment
 * @DG_SINGLE: it is the whole message: place and record it
 * @DG_PLACE: place it
 * @DG_DELIVER: place it, then record the runs of the message, which has ended
 * @DG_OLDER: its message ends an older one: record the runs of that one, then
 *            offer the segment again
 * @DG_LATE: its message has ended, or a newer one has begun: drop it
 * @DG_DUPLICATE: it was received before: drop it
 * @DG_MISMATCH: it contradicts the segments before it: drop it
 * @DG_TOO_MANY: its message has more than %DG_SEGMENTS segments: drop it
 */
enum dg_verdict {
	DG_SINGLE,
	DG_PLACE,
	DG_DELIVER,
	DG_OLDER,
	DG_LATE,
	DG_DUPLICATE,
	DG_MISMATCH,
	DG_TOO_MANY,
};

/**
 * struct dg_run - a contiguous received part of a message
 * @mo: offset in the message
 * @len: length in bytes
 * @end: no further run follows
 */
struct dg_run {
	u32 mo;
	u32 len;
	bool end;
};

void dg_track_init(struct dg_track *track, struct dg_slot *slots, u32 number,
		   u32 seed, const struct dg_track_times *times);
enum dg_verdict dg_track_offer(struct dg_track *track,
			       const struct dg_source *source,
			       const struct dg_segment *seg, bool partial,
			       u64 now, struct dg_slot **message);
struct dg_slot *dg_track_expire(struct dg_track *track, u64 now);
bool dg_track_next(struct dg_track *track, u64 *when);
bool dg_track_run(const struct dg_slot *message, u32 *from, struct dg_run *run);
void dg_track_forget(struct dg_track *track, u32 stag);
void dg_whole_blocks(const struct dg_segment *seg, u64 length, u32 block,
		     u64 *first, u64 *end);

#endif
