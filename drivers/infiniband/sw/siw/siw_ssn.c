// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The order of the chunks of a DDP stream over SCTP.
 *
 * SCTP delivers unordered chunks as they arrive. Each has a DDP-SSN of 16 bits,
 * and the stream is evaluated in the order of these numbers (RFC 5043 sections
 * 6.1 and 10). A sender has at most 32767 chunks in flight, so a number in the
 * next half of the number space is ahead, and one in the other half was
 * received before. SCTP delivers no chunk twice: the peer has used such a
 * number twice.
 *
 * A peer that leaves a gap makes us hold the chunks after it. Their memory is
 * limited for each window, for all windows of a remote address and for the
 * host. The host's memory is shared like the buffers of a switch: an address
 * may hold a quarter of the free memory. So one address holds at most a fifth
 * of all memory, and further addresses get a part even if many others are at
 * their limit. Each window has a floor: otherwise many windows of one address
 * would have almost no memory each. The floors are charged to as much memory
 * again, which is shared likewise, so that they reduce no other address's part.
 * A group of windows, those of an association, also has a limit for what they
 * hold beyond their floors.
 *
 * Chunks in order may wait for their endpoint, also in windows. They leave half
 * of an address's part to chunks after a gap: a lack of memory only delays the
 * former, but ends the session of the latter.
 *
 * The functions are pure: no allocation, no locks. Any context.
 */
#include "siw_ssn.h"

/* The next half of the number space; RFC 5043 section 10 */
#define SSN_AHEAD_MAX	32767

/* A remote address may hold 1/SSN_SHARE of the free memory */
#define SSN_SHARE	4

/*
 * Part of a receive buffer for a session, in bytes: some chunks at least, and
 * Linux's default of a buffer at most, as a host may have thousands of sessions
 */
#define SSN_FLOOR_MIN	16384U
#define SSN_FLOOR_MAX	212992U
/* Send space that SCTP charges for a control message, in bytes */
#define SSN_CONTROL_COST	1536U
/* More chunks than any send buffer holds */
#define SSN_IN_FLIGHT_MAX	BIT(20)

/* Distance from the next number. It gives the order of the numbers ahead. */
static u16 ssn_distance(const struct siw_ssn_window *window, u16 ssn)
{
	return ssn - window->next;
}

static struct siw_ssn_entry *to_entry(struct rb_node *node)
{
	return rb_entry_safe(node, struct siw_ssn_entry, node);
}

/**
 * siw_ssn_init - begin a stream
 * @window: filled
 * @limit: largest number of bytes to hold
 * @floor: number of bytes that are charged as its floor
 * @pool: memory of all windows
 */
void siw_ssn_init(struct siw_ssn_window *window, u32 limit, u32 floor,
		  struct siw_ssn_pool *pool)
{
	*window = (struct siw_ssn_window) {
		.held = RB_ROOT_CACHED,
		.limit = limit,
		.floor = floor,
		.pool = pool,
	};
}

/**
 * siw_ssn_possible - can a chunk with this number come next?
 * @window: the window
 * @ssn: its DDP-SSN
 *
 * To be called before memory is allocated for the chunk (RFC 5043 section 10).
 *
 * Return: false if the number was received before, or if the sender had more
 * than 32767 chunks in flight
 */
bool siw_ssn_possible(const struct siw_ssn_window *window, u16 ssn)
{
	return ssn_distance(window, ssn) <= SSN_AHEAD_MAX;
}

/**
 * siw_ssn_holds - does the window hold chunks after a gap?
 * @window: the window
 *
 * Return: true if so
 */
bool siw_ssn_holds(const struct siw_ssn_window *window)
{
	return !RB_EMPTY_ROOT(&window->held.rb_root);
}

/**
 * siw_ssn_has_next - does the window hold the next chunk in order?
 * @window: the window
 *
 * Return: true if siw_ssn_take() would return a chunk
 */
bool siw_ssn_has_next(const struct siw_ssn_window *window)
{
	const struct siw_ssn_entry *first =
		to_entry(rb_first_cached(&window->held));

	return first && first->ssn == window->next;
}

/**
 * siw_ssn_share_max - memory that a remote address may hold alone
 * @pool: memory of all windows
 *
 * Return: bytes
 */
long siw_ssn_share_max(const struct siw_ssn_pool *pool)
{
	return pool->max / (SSN_SHARE + 1);
}

/*
 * Charges @cost to an address and the host, or to none of them. The address may
 * hold 1/@part of the free memory.
 */
static bool charge(atomic_long_t *share, atomic_long_t *pool, long cost,
		   long max, unsigned int part)
{
	long most = (max - atomic_long_read(pool)) / part;
	long held = atomic_long_read(share);

	do {
		if (held > most - cost)
			return false;
	} while (!atomic_long_try_cmpxchg(share, &held, held + cost));
	atomic_long_add(cost, pool);
	return true;
}

/* Charges are serialised; the endpoints of several sessions uncharge */
static bool charge_group(const struct siw_ssn_window *window, long cost)
{
	struct siw_ssn_group *group = window->group;

	if (!group)
		return true;
	if (atomic_long_read(&group->held) + cost >
	    (window->half ? group->max / 2 : group->max))
		return false;
	atomic_long_add(cost, &group->held);
	return true;
}

static void uncharge_group(const struct siw_ssn_window *window, long cost)
{
	if (window->group)
		atomic_long_sub(cost, &window->group->held);
}

/* Charges @cost beyond the floor */
static bool charge_above(const struct siw_ssn_window *window, long cost,
			 unsigned int part)
{
	struct siw_ssn_pool *pool = window->pool;

	if (!charge_group(window, cost))
		return false;
	if (charge(&window->share->held, &pool->held, cost, pool->max, part))
		return true;
	uncharge_group(window, cost);
	return false;
}

/**
 * siw_ssn_charge - charge memory to a window, its group, address and host
 * @window: the window
 * @cost: bytes
 *
 * Calls for windows of one group must be serialised.
 *
 * Return: true, or false if a limit would be exceeded; then nothing is charged
 */
bool siw_ssn_charge(struct siw_ssn_window *window, u32 cost)
{
	struct siw_ssn_share *share = window->share;
	struct siw_ssn_pool *pool = window->pool;
	unsigned int part = window->half ? 2 * SSN_SHARE : SSN_SHARE;

	if (!share || cost > window->limit - window->cost)
		return false;
	if (cost <= window->floor - window->in_floor &&
	    charge(&share->floors, &pool->floors, cost, pool->max, part))
		window->in_floor += cost;
	else if (!charge_above(window, cost, part))
		return false;
	window->cost += cost;
	return true;
}

/**
 * siw_ssn_uncharge - the reverse of siw_ssn_charge()
 * @window: the window
 * @cost: bytes
 */
void siw_ssn_uncharge(struct siw_ssn_window *window, u32 cost)
{
	u32 above = min(cost, window->cost - window->in_floor);

	window->cost -= cost;
	window->in_floor -= cost - above;
	uncharge_group(window, above);
	atomic_long_sub(above, &window->pool->held);
	atomic_long_sub(above, &window->share->held);
	atomic_long_sub(cost - above, &window->pool->floors);
	atomic_long_sub(cost - above, &window->share->floors);
}

/* Returns false if this number is held already */
static bool insert_entry(struct siw_ssn_window *window,
			 struct siw_ssn_entry *entry)
{
	struct rb_node **link = &window->held.rb_root.rb_node, *parent = NULL;
	u16 distance = ssn_distance(window, entry->ssn);
	bool leftmost = true;

	while (*link) {
		u16 there = ssn_distance(window, to_entry(*link)->ssn);

		parent = *link;
		if (distance == there)
			return false;
		if (distance < there) {
			link = &parent->rb_left;
		} else {
			link = &parent->rb_right;
			leftmost = false;
		}
	}
	rb_link_node(&entry->node, parent, link);
	rb_insert_color_cached(&entry->node, &window->held, leftmost);
	return true;
}

/**
 * siw_ssn_offer - find the place of a received chunk, hold it if necessary
 * @window: the window
 * @entry: the chunk, with @ssn and @cost; owned by the window if it is held
 *
 * Return: see enum siw_ssn_verdict
 */
enum siw_ssn_verdict siw_ssn_offer(struct siw_ssn_window *window,
				   struct siw_ssn_entry *entry)
{
	u16 distance = ssn_distance(window, entry->ssn);

	if (!siw_ssn_possible(window, entry->ssn))
		return SIW_SSN_BAD;
	if (!distance) {
		window->next++;
		return SIW_SSN_NEXT;
	}
	if (!siw_ssn_charge(window, entry->cost))
		return SIW_SSN_FULL;
	if (insert_entry(window, entry))
		return SIW_SSN_HELD;
	siw_ssn_uncharge(window, entry->cost);
	return SIW_SSN_BAD;
}

static struct siw_ssn_entry *remove_entry(struct siw_ssn_window *window,
					  struct siw_ssn_entry *entry)
{
	rb_erase_cached(&entry->node, &window->held);
	siw_ssn_uncharge(window, entry->cost);
	return entry;
}

/**
 * siw_ssn_take - remove the next chunk in order from the window
 * @window: the window
 *
 * Return: the chunk, or NULL if the window does not hold it
 */
struct siw_ssn_entry *siw_ssn_take(struct siw_ssn_window *window)
{
	if (!siw_ssn_has_next(window))
		return NULL;
	window->next++;
	return remove_entry(window, to_entry(rb_first_cached(&window->held)));
}

/**
 * siw_ssn_drop - remove any chunk from the window, to free it
 * @window: the window, whose stream has ended
 *
 * Return: a chunk, or NULL if none is left
 */
struct siw_ssn_entry *siw_ssn_drop(struct siw_ssn_window *window)
{
	struct siw_ssn_entry *first = to_entry(rb_first_cached(&window->held));

	return first ? remove_entry(window, first) : NULL;
}

/**
 * siw_ssn_floor - memory that a session may hold independently of others
 * @rcvbuf: receive buffer of its socket in bytes
 * @sessions: number of sessions that the socket may have, at least 1
 *
 * Return: bytes: its part of @rcvbuf, but enough for some chunks, and 208 KiB
 * at most
 */
u32 siw_ssn_floor(u32 rcvbuf, unsigned int sessions)
{
	u32 least = min(rcvbuf, SSN_FLOOR_MIN);

	return clamp(rcvbuf / sessions, least, SSN_FLOOR_MAX);
}

/**
 * siw_ssn_sndbuf - send buffer of a socket that sessions share
 * @sndbuf: its size in bytes for one session
 * @sessions: number of sessions that the socket may have
 * @max: largest size in bytes
 *
 * Many sessions may begin within a round trip. Their control messages do not
 * wait for space: a session whose message finds none ends. siw_ssn_reserve()
 * keeps half of the buffer for them.
 *
 * Return: bytes: @sndbuf, or enough for two messages of each session; at most
 * @max
 */
u32 siw_ssn_sndbuf(u32 sndbuf, unsigned int sessions, u32 max)
{
	u64 wanted = sndbuf;

	if (sessions > 1)
		wanted = max_t(u64, wanted, 2ULL * sessions * SSN_CONTROL_COST);
	return min_t(u64, wanted, max);
}

/**
 * siw_ssn_reserve - send space that segments leave to control messages
 * @sndbuf: send buffer of the socket in bytes
 * @sessions: number of sessions that the socket may have
 * @segment: largest segment in bytes
 *
 * Segments of one session would fill the buffer. The setup and the end of the
 * other ones would then fail, as control messages do not wait for space. The
 * reserve is for a message of each session. SCTP accepts a chunk if any space is
 * left, so that the last segment may exceed it.
 *
 * Return: bytes, at most half of @sndbuf; 0 for one session
 */
u32 siw_ssn_reserve(u32 sndbuf, unsigned int sessions, u32 segment)
{
	if (sessions < 2)
		return 0;
	return min_t(u64, sndbuf / 2,
		     (u64)sessions * SSN_CONTROL_COST + 2ULL * segment);
}

/**
 * siw_ssn_is_acked - has the peer acknowledged a chunk of ours?
 * @tsn: TSN of the chunk, which may be older than 2^31 chunks
 * @ack_point: the last TSN up to which all are acknowledged
 *
 * The send buffer holds far fewer than SSN_IN_FLIGHT_MAX chunks.
 */
bool siw_ssn_is_acked(u32 tsn, u32 ack_point)
{
	return tsn - ack_point - 1 >= SSN_IN_FLIGHT_MAX;
}

/**
 * siw_stream_pick - choose the number of a new stream
 * @used: for each stream, not %NULL if its number is in use
 * @num: number of streams
 * @active: we have opened the association
 *
 * Both sides may begin a stream at the same time, and two Initiates on one
 * stream end it. RFC 5043 has no rule against this. So the side that has opened
 * the association prefers even numbers, and the other side odd ones. If they are
 * in use, a side uses the other numbers, from the last one down.
 *
 * Return: the number, or -1 if all are in use
 */
int siw_stream_pick(void *const *used, unsigned int num, bool active)
{
	unsigned int parity = active ? 0 : 1, i;

	for (i = parity; i < num; i += 2)
		if (!used[i])
			return i;
	for (i = num; i--;)
		if (i % 2 != parity && !used[i])
			return i;
	return -1;
}
