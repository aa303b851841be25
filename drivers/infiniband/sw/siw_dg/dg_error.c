// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Error messages: which datagrams have one, how often, and which ones a sender
 * believes. See NOTICE and dg_error.h.
 *
 * The functions are pure: no allocation, no locks; the caller provides memory
 * and time. Any context. libdgm compiles this file in user space with shim
 * headers.
 */
#include <linux/errno.h>
#include <linux/jhash.h>
#include <linux/kernel.h>
#include <linux/string.h>

#include "dg_error.h"

/**
 * dg_limit_pass - may this source have an error message now?
 * @limit: the limit
 * @source: its address counts, not its port
 * @now: the time in ns
 *
 * If so, its next one is %DG_REFUSAL_PAUSE later, and so is that of each address
 * with this entry: the table has a fixed size. A sender with many addresses, or
 * with that of @source, can use up the error messages of others.
 *
 * Return: true if so
 */
bool dg_limit_pass(struct dg_limit *limit, const struct dg_source *source,
		   u64 now)
{
	u32 key[4];
	u64 *until;

	memcpy(key, source->addr, sizeof(key));
	until = &limit->until[jhash2(key, ARRAY_SIZE(key), limit->seed) %
			      DG_LIMITS];
	if (now < *until)
		return false;
	*until = now + DG_REFUSAL_PAUSE;
	return true;
}

/**
 * dg_build_refusal - make an error message about a Write-Record
 * @msn: number of the error message
 * @why: the reason
 * @header: the datagram's first %DG_WRITE_HDR bytes
 * @len: length of the whole datagram in bytes, CRC included
 * @buf: destination, %DG_REFUSAL_LEN bytes
 *
 * Return: length in bytes, CRC included, or -EMSGSIZE: it would be longer than
 * the datagram
 */
int dg_build_refusal(u32 msn, enum dg_refusal why, const void *header, u32 len,
		     void *buf)
{
	/* RFC 5041 section 7.2, RFC 5040 section 4.8 */
	static const struct dg_error reasons[DG_REFUSALS] = {
		/* DDP, tagged buffer: invalid STag */
		[DG_REFUSED_ZONE]	= { .layer = 1, .type = 1, .code = 0 },
		/* DDP, tagged buffer: base or bounds violation */
		[DG_REFUSED_RANGE]	= { .layer = 1, .type = 1, .code = 1 },
		/* RDMAP: local catastrophic error */
		[DG_REFUSED_ROOM]	= { .layer = 0, .type = 0, .code = 0 },
		/* RDMAP, remote operation: unspecified error */
		[DG_REFUSED_FORM]	= { .layer = 0, .type = 2, .code = 0xff },
	};
	struct dg_error error = reasons[why];
	int ret;

	if (len < DG_REFUSAL_LEN)
		return -EMSGSIZE;
	error.length = len - DG_CRC_LEN;
	error.cause = header;
	error.cause_len = DG_WRITE_HDR;
	ret = dg_build_error(msn, &error, buf, DG_ERROR_HDR + DG_WRITE_HDR);
	if (ret < 0)
		return ret;
	dg_crc_put(dg_crc_add(DG_CRC_START, buf, ret), (u8 *)buf + ret);
	return ret + DG_CRC_LEN;
}

/**
 * dg_writes_add - remember a message before its first datagram is sent
 * @writes: the messages
 * @write: the message
 */
void dg_writes_add(struct dg_writes *writes, const struct dg_write *write)
{
	writes->list[write->msn % DG_WRITES] = *write;
}

static bool is_same_source(const struct dg_source *a, const struct dg_source *b)
{
	return a->port == b->port && a->scope == b->scope &&
	       !memcmp(a->addr, b->addr, sizeof(a->addr));
}

/**
 * dg_writes_take - is this error message about a message that has been sent?
 * @writes: the messages
 * @source: where the error message comes from
 * @error: its contents
 * @cause: filled: the header that it has
 *
 * A message is taken once, so an error message cannot be repeated, and there are
 * no more of them than messages.
 *
 * Return: true if so
 */
bool dg_writes_take(struct dg_writes *writes, const struct dg_source *source,
		    const struct dg_error *error, struct dg_segment *cause)
{
	struct dg_write *write;

	if (!dg_parse_cause(error, cause))
		return false;
	write = &writes->list[cause->msn % DG_WRITES];
	if (!write->stag || write->stag != cause->stag ||
	    write->qkey != cause->qkey || write->msn != cause->msn ||
	    write->ml != cause->ml || cause->mo > cause->ml ||
	    cause->len > cause->ml - cause->mo ||
	    write->base + cause->mo != cause->to ||
	    !is_same_source(&write->target, source))
		return false;
	write->stag = 0;
	return true;
}
