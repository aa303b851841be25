/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The order of the chunks of a DDP stream over SCTP (RFC 5043 section 10).
 */
#ifndef _SIW_SSN_H
#define _SIW_SSN_H

#include <linux/atomic.h>
#include <linux/rbtree.h>
#include <linux/types.h>

/**
 * struct siw_ssn_entry - a received chunk
 * @node: private
 * @ssn: its DDP-SSN
 * @cost: its memory in bytes
 */
struct siw_ssn_entry {
	struct rb_node node;
	u16 ssn;
	u32 cost;
};

/**
 * struct siw_ssn_pool - memory that all windows of the host hold
 * @held: bytes beyond the floors
 * @floors: bytes within the floors
 * @max: largest @held, and largest @floors
 */
struct siw_ssn_pool {
	atomic_long_t held;
	atomic_long_t floors;
	long max;
};

/**
 * struct siw_ssn_share - memory that the windows of one remote address hold
 * @held: bytes beyond the floors
 * @floors: bytes within the floors
 */
struct siw_ssn_share {
	atomic_long_t held;
	atomic_long_t floors;
};

/**
 * struct siw_ssn_group - memory that the windows of one association hold
 * @held: bytes beyond the floors
 * @max: largest @held
 */
struct siw_ssn_group {
	atomic_long_t held;
	long max;
};

/**
 * struct siw_ssn_window - the chunks of one direction of a DDP stream
 * @held: private: chunks after a gap, by DDP-SSN
 * @cost: memory charged to the window in bytes
 * @limit: largest @cost
 * @floor: largest @in_floor
 * @in_floor: private: part of @cost that is charged as a floor
 * @half: it may only use half of an address's part, and of @group
 * @pool: also charged with @cost
 * @share: also charged with @cost; %NULL: each charge fails
 * @group: also charged with @cost beyond the floor; may be %NULL
 * @next: DDP-SSN of the next chunk in order
 */
struct siw_ssn_window {
	struct rb_root_cached held;
	u32 cost;
	u32 limit;
	u32 floor;
	u32 in_floor;
	bool half;
	struct siw_ssn_pool *pool;
	struct siw_ssn_share *share;
	struct siw_ssn_group *group;
	u16 next;
};

/**
 * enum siw_ssn_verdict - place of a received chunk in the stream
 * @SIW_SSN_NEXT: next in order: process it, then call siw_ssn_take()
 * @SIW_SSN_HELD: chunks before it are missing; the window holds it
 * @SIW_SSN_BAD: see siw_ssn_possible(), or a held chunk has this number: end
 *	the session
 * @SIW_SSN_FULL: a limit of window, share or pool is exceeded: end the session
 */
enum siw_ssn_verdict {
	SIW_SSN_NEXT,
	SIW_SSN_HELD,
	SIW_SSN_BAD,
	SIW_SSN_FULL,
};

void siw_ssn_init(struct siw_ssn_window *window, u32 limit, u32 floor,
		  struct siw_ssn_pool *pool);
long siw_ssn_share_max(const struct siw_ssn_pool *pool);
u32 siw_ssn_floor(u32 rcvbuf, unsigned int sessions);
u32 siw_ssn_sndbuf(u32 sndbuf, unsigned int sessions, u32 max);
u32 siw_ssn_reserve(u32 sndbuf, unsigned int sessions, u32 segment);
bool siw_ssn_is_acked(u32 tsn, u32 ack_point);
int siw_stream_pick(void *const *used, unsigned int num, bool active);
bool siw_ssn_possible(const struct siw_ssn_window *window, u16 ssn);
bool siw_ssn_holds(const struct siw_ssn_window *window);
bool siw_ssn_has_next(const struct siw_ssn_window *window);
bool siw_ssn_charge(struct siw_ssn_window *window, u32 cost);
void siw_ssn_uncharge(struct siw_ssn_window *window, u32 cost);
enum siw_ssn_verdict siw_ssn_offer(struct siw_ssn_window *window,
				   struct siw_ssn_entry *entry);
struct siw_ssn_entry *siw_ssn_take(struct siw_ssn_window *window);
struct siw_ssn_entry *siw_ssn_drop(struct siw_ssn_window *window);

#endif
