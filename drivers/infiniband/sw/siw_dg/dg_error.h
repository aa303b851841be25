/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Error messages: which datagrams have one, how often, and which ones a sender
 * believes. See NOTICE.
 *
 * A target may send one about a Write-Record that it refuses: one a second and
 * source at most, never longer than the datagram, and never about an error
 * message. A sender believes one about a datagram that it has sent, from where it
 * has sent it: the zone's Q_Key is in it, which others do not know.
 */
#ifndef _DG_ERROR_H
#define _DG_ERROR_H

#include <linux/types.h>

#include "dg_track.h"
#include "dg_wire.h"

/* An error message about a Write-Record, with its CRC */
#define DG_REFUSAL_LEN	(DG_ERROR_HDR + DG_WRITE_HDR + DG_CRC_LEN)
/* Sources that share an entry share their limit */
#define DG_LIMITS	64
/* Messages that a sender remembers */
#define DG_WRITES	256
/* Between two error messages to a source, in ns */
#define DG_REFUSAL_PAUSE	1000000000ULL

/**
 * enum dg_refusal - why a Write-Record is refused
 * @DG_REFUSED_ZONE: no such zone, or a wrong Q_Key
 * @DG_REFUSED_RANGE: its message is beyond the zone
 * @DG_REFUSED_ROOM: no room for its record
 * @DG_REFUSED_FORM: it contradicts its message, or that has too many datagrams
 * @DG_REFUSALS: number of reasons
 */
enum dg_refusal {
	DG_REFUSED_ZONE,
	DG_REFUSED_RANGE,
	DG_REFUSED_ROOM,
	DG_REFUSED_FORM,
	DG_REFUSALS,
};

/**
 * struct dg_limit - when sources may have an error message
 * @seed: of the hash, which must be secret from peers
 * @until: by hash of the address; 0: no error message yet
 */
struct dg_limit {
	u32 seed;
	u64 until[DG_LIMITS];
};

/**
 * struct dg_write - a message that has been sent
 * @target: where to
 * @stag: the zone; 0: none, or an error message about it has come
 * @qkey: of the zone
 * @msn: its number
 * @ml: its length in bytes
 * @base: where it begins in the zone
 */
struct dg_write {
	struct dg_source target;
	u32 stag;
	u32 qkey;
	u32 msn;
	u32 ml;
	u64 base;
};

/**
 * struct dg_writes - the last messages that have been sent
 * @list: by number, modulo its size
 */
struct dg_writes {
	struct dg_write list[DG_WRITES];
};

bool dg_limit_pass(struct dg_limit *limit, const struct dg_source *source,
		   u64 now);
int dg_build_refusal(u32 msn, enum dg_refusal why, const void *header, u32 len,
		     void *buf);
void dg_writes_add(struct dg_writes *writes, const struct dg_write *write);
bool dg_writes_take(struct dg_writes *writes, const struct dg_source *source,
		    const struct dg_error *error, struct dg_segment *cause);

#endif
