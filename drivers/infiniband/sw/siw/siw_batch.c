// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * FPDUs that are handed to the lower layer in one call.
 *
 * A program may write to its memory while a peer reads it, or while it is being
 * sent. So the data is copied once, to where nothing else writes. The CRC covers
 * the copy, and TCP refers to its pages until they are acknowledged.
 *
 * A batch is one sk_buff of TCP. All segments into which TCP's segmentation
 * offload splits it begin with an FPDU, because the caller makes each FPDU
 * except the last ones as long as a segment. MSG_EOR keeps the next batch out
 * of the sk_buff.
 */
#include <linux/mm.h>
#include <linux/percpu.h>
#include <linux/sched.h>
#include <net/hotdata.h>
#include <net/sock.h>

#include "siw.h"
#include "siw_batch.h"
#include "siw_sctp.h"

/*
 * Full blocks, to be used again when TCP has released them: a new block costs
 * its allocation and, with init_on_alloc, clearing it. None with init_on_free,
 * which clears what was sent.
 */
#define SIW_FULL_BLOCKS 16

struct siw_full_blocks {
	struct page *page[SIW_FULL_BLOCKS];
	unsigned int oldest;
};

static DEFINE_PER_CPU(struct siw_full_blocks, siw_full_blocks);

/**
 * siw_batch_exit - free the blocks that are kept
 *
 * Context: No batch is in use.
 */
void siw_batch_exit(void)
{
	unsigned int i;
	int cpu;

	for_each_possible_cpu(cpu)
		for (i = 0; i < SIW_FULL_BLOCKS; i++)
			if (per_cpu(siw_full_blocks, cpu).page[i])
				put_page(per_cpu(siw_full_blocks, cpu).page[i]);
}

/* Returns the page fragments of TCP's packet that @len octets add at most */
static unsigned int count_frags(const struct siw_batch *batch, unsigned int len)
{
	const struct page_frag *frag = &current->task_frag;
	const struct bio_vec *vec = batch->vec + batch->n_vecs;
	unsigned int used;

	/* They follow the last ones, and may use the rest of their page */
	if (batch->n_vecs && vec[-1].bv_page == frag->page &&
	    vec[-1].bv_offset + vec[-1].bv_len == frag->offset &&
	    frag->size - frag->offset >= sizeof(union iwarp_hdr)) {
		used = offset_in_page(frag->offset);
		return DIV_ROUND_UP(used + len, PAGE_SIZE) - !!used;
	}
	/* They may begin in the middle of a page */
	return DIV_ROUND_UP(len, PAGE_SIZE) + 1;
}

/**
 * siw_batch_has_room - does a batch have room for another FPDU?
 * @batch: the batch
 * @len: length of the FPDU
 * @max: limit of the batch, in octets
 *
 * Return: true if the FPDU fits, which it always does if the batch is empty.
 */
bool siw_batch_has_room(const struct siw_batch *batch, unsigned int len,
			unsigned int max)
{
	unsigned int frags = count_frags(batch, len);

	return !batch->len ||
	       (batch->len + len <= max &&
		batch->n_vecs + frags <= SIW_BATCH_VECS &&
		batch->frags + frags <=
			READ_ONCE(net_hotdata.sysctl_max_skb_frags));
}

/**
 * siw_batch_undo_fpdu - remove the last FPDU, or the part that has been added
 * @batch: the batch
 */
void siw_batch_undo_fpdu(struct siw_batch *batch)
{
	while (batch->n_vecs > batch->fpdu.n_vecs)
		put_page(batch->vec[--batch->n_vecs].bv_page);
	if (batch->n_vecs)
		batch->vec[batch->n_vecs - 1].bv_len = batch->fpdu.vec_len;
	batch->len = batch->fpdu.len;
	batch->frags = batch->fpdu.frags;
	batch->left = 0;
}

/* Adds @len octets at the task's page fragment to the batch */
static int add_part(struct siw_batch *batch, const struct page_frag *frag,
		    unsigned int len)
{
	unsigned int last = (frag->offset + len - 1) / PAGE_SIZE;
	struct bio_vec *vec = batch->vec + batch->n_vecs;

	if (batch->n_vecs && vec[-1].bv_page == frag->page &&
	    vec[-1].bv_offset + vec[-1].bv_len == frag->offset) {
		vec[-1].bv_len += len;
		batch->frags += last - (frag->offset - 1) / PAGE_SIZE;
	} else {
		if (batch->n_vecs == SIW_BATCH_VECS)
			return -EMSGSIZE;
		get_page(frag->page);
		bvec_set_page(vec, frag->page, len, frag->offset);
		batch->n_vecs++;
		batch->frags += last - frag->offset / PAGE_SIZE + 1;
	}
	batch->len += len;
	return 0;
}

/* Makes room for @len octets in the task's page fragment */
static bool refill(struct page_frag *frag, unsigned int len)
{
	struct siw_full_blocks *blocks;
	struct page *full = frag->page;

	if (full && frag->size == PAGE_SIZE << SKB_FRAG_PAGE_ORDER &&
	    frag->offset + len > frag->size && page_ref_count(full) > 1 &&
	    !want_init_on_free()) {
		blocks = get_cpu_ptr(&siw_full_blocks);
		frag->page = blocks->page[blocks->oldest];
		blocks->page[blocks->oldest] = full;
		blocks->oldest = (blocks->oldest + 1) % SIW_FULL_BLOCKS;
		put_cpu_ptr(&siw_full_blocks);
		/* Uses it from its beginning, or replaces it if TCP has it */
	}
	return skb_page_frag_refill(len, frag, GFP_KERNEL);
}

/* Reserves some of the next @len octets of the batch, in one piece */
static int reserve(struct siw_batch *batch, unsigned int len)
{
	/* One fragment for each task, as for a program's own sockets */
	struct page_frag *frag = &current->task_frag;
	int rv;

	/* A header stays in one piece */
	if (!refill(frag, min(len, sizeof(union iwarp_hdr))))
		return -ENOMEM;
	len = min(len, frag->size - frag->offset);
	rv = add_part(batch, frag, len);
	if (rv)
		return rv;
	batch->to = page_address(frag->page) + frag->offset;
	batch->left = len;
	frag->offset += len;
	return 0;
}

/**
 * siw_batch_begin_fpdu - remember where an FPDU begins, and make room for it
 * @batch: the batch
 * @len: length of the FPDU, to be added with siw_batch_add()
 *
 * May sleep.
 *
 * Return: 0, -ENOMEM, or -EMSGSIZE if the batch has no room
 */
int siw_batch_begin_fpdu(struct siw_batch *batch, unsigned int len)
{
	batch->fpdu.n_vecs = batch->n_vecs;
	batch->fpdu.vec_len = 0;
	if (batch->n_vecs)
		batch->fpdu.vec_len = batch->vec[batch->n_vecs - 1].bv_len;
	batch->fpdu.len = batch->len;
	batch->fpdu.frags = batch->frags;

	return reserve(batch, len);
}

/**
 * siw_batch_reserve - make room for the next octets of the last FPDU
 * @batch: the batch
 * @len: their number; reduced to those that fit at @batch->to
 *
 * May sleep.
 *
 * Return: 0, -ENOMEM, or -EMSGSIZE if the batch has no room
 */
int siw_batch_reserve(struct siw_batch *batch, unsigned int *len)
{
	int rv = batch->left ? 0 : reserve(batch, *len);

	*len = min(*len, batch->left);
	return rv;
}

/**
 * siw_batch_commit - add octets that have been copied to @batch->to
 * @batch: the batch
 * @len: their number, at most that of siw_batch_reserve()
 */
void siw_batch_commit(struct siw_batch *batch, unsigned int len)
{
	batch->to += len;
	batch->left -= len;
}

/**
 * siw_batch_add - copy octets of the last FPDU into the batch
 * @batch: the batch
 * @data: the octets
 * @len: their number
 *
 * May sleep.
 *
 * Return: 0, -ENOMEM, or -EMSGSIZE if the batch has no room
 */
int siw_batch_add(struct siw_batch *batch, const void *data, unsigned int len)
{
	while (len) {
		unsigned int part = len;
		int rv;

		rv = siw_batch_reserve(batch, &part);
		if (rv)
			return rv;
		memcpy(batch->to, data, part);
		siw_batch_commit(batch, part);
		data += part;
		len -= part;
	}
	return 0;
}

/**
 * siw_batch_crc - compute the CRC of the beginning of the last FPDU
 * @batch: the batch
 * @len: octets that have been added and are covered by the CRC
 *
 * Return: the CRC32c, to be passed to siw_crc_final()
 */
u32 siw_batch_crc(const struct siw_batch *batch, unsigned int len)
{
	/* The FPDU may begin in the element that was the last one */
	unsigned int skip = batch->fpdu.vec_len;
	unsigned int i = batch->fpdu.n_vecs;
	u32 crc;

	siw_crc_init(&crc);
	for (i -= !!i; len && i < batch->n_vecs; i++) {
		const struct bio_vec *vec = &batch->vec[i];
		unsigned int part = min(len, vec->bv_len - skip);

		siw_crc_update(&crc,
			       page_address(vec->bv_page) + vec->bv_offset + skip,
			       part);
		len -= part;
		skip = 0;
	}
	return crc;
}

/**
 * siw_batch_drop - empty a batch
 * @batch: the batch
 */
void siw_batch_drop(struct siw_batch *batch)
{
	while (batch->n_vecs)
		put_page(batch->vec[--batch->n_vecs].bv_page);
	batch->len = 0;
	batch->sent = 0;
	batch->frags = 0;
}

/**
 * siw_batch_send_tcp - hand a batch to TCP
 * @batch: the batch, emptied if TCP has accepted all of it
 * @s: the socket
 *
 * Return: 0, -EAGAIN if sk_write_space() follows, or another negative errno
 */
int siw_batch_send_tcp(struct siw_batch *batch, struct socket *s)
{
	struct msghdr msg = {
		.msg_flags = MSG_DONTWAIT | MSG_EOR | MSG_NOSIGNAL |
			     MSG_SPLICE_PAGES | MSG_NO_SHARED_FRAGS,
	};
	int rv;

	iov_iter_bvec(&msg.msg_iter, ITER_SOURCE, batch->vec, batch->n_vecs,
		      batch->len);
	if (batch->sent)
		iov_iter_advance(&msg.msg_iter, batch->sent);
	rv = sock_sendmsg(s, &msg);
	if (rv < 0)
		return rv;
	batch->sent += rv;
	if (batch->sent < batch->len)
		return -EAGAIN;
	siw_batch_drop(batch);
	return 0;
}

/**
 * siw_batch_send_sctp - hand a batch of one FPDU to SCTP
 * @batch: the batch, emptied if SCTP has accepted it
 * @chan: the session
 * @len: length of the FPDU without pad and CRC
 *
 * Return: 0, or the error of siw_sctp_send_segment(): nothing has been sent
 */
int siw_batch_send_sctp(struct siw_batch *batch, struct siw_chan *chan,
			unsigned int len)
{
	struct kvec iov[SIW_BATCH_VECS];
	unsigned int i, left = len;
	int rv;

	for (i = 0; i < batch->n_vecs && left; i++) {
		const struct bio_vec *vec = &batch->vec[i];

		iov[i].iov_base = page_address(vec->bv_page) + vec->bv_offset;
		iov[i].iov_len = min(vec->bv_len, left);
		left -= iov[i].iov_len;
	}
	rv = siw_sctp_send_segment(chan, iov, i, len);
	if (!rv)
		siw_batch_drop(batch);
	return rv;
}
