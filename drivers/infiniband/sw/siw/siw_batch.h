/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * FPDUs that are handed to the lower layer in one call.
 */
#ifndef _SIW_BATCH_H
#define _SIW_BATCH_H

#include <linux/bvec.h>
#include <linux/skbuff.h>
#include <linux/types.h>

struct siw_chan;
struct socket;

/* Octets in a batch: one packet of TCP's segmentation offload */
#define SIW_BATCH_MAX		65536
/*
 * Blocks of one page for the largest FPDU, which may begin in the middle of a
 * block. A header does not begin in the last octets of a block.
 */
#define SIW_BATCH_VECS		(SIW_BATCH_MAX / PAGE_SIZE + 3)

/**
 * struct siw_batch - FPDUs on their way to the lower layer
 * @vec: their octets, in pages that hold nothing else of value; each has a
 *	reference on its page
 * @n_vecs: used elements of @vec
 * @len: octets
 * @sent: octets that TCP has accepted
 * @frags: fragments of an sk_buff that refers to the pages
 * @to: where the next octets of the last FPDU are copied to
 * @left: octets of it that have a place, at @to, but have not been copied
 * @fpdu: the state before the last FPDU was added: @vec_len is the length of
 *	the last element of @vec
 *
 * Used by one sender at a time.
 */
struct siw_batch {
	struct bio_vec vec[SIW_BATCH_VECS];
	unsigned int n_vecs;
	unsigned int len;
	unsigned int sent;
	unsigned int frags;
	u8 *to;
	unsigned int left;
	struct {
		unsigned int n_vecs;
		unsigned int vec_len;
		unsigned int len;
		unsigned int frags;
	} fpdu;
};

bool siw_batch_has_room(const struct siw_batch *batch, unsigned int len,
			unsigned int max);
int siw_batch_begin_fpdu(struct siw_batch *batch, unsigned int len);
void siw_batch_undo_fpdu(struct siw_batch *batch);
int siw_batch_reserve(struct siw_batch *batch, unsigned int *len);
void siw_batch_commit(struct siw_batch *batch, unsigned int len);
int siw_batch_add(struct siw_batch *batch, const void *data, unsigned int len);
u32 siw_batch_crc(const struct siw_batch *batch, unsigned int len);
void siw_batch_drop(struct siw_batch *batch);
int siw_batch_send_tcp(struct siw_batch *batch, struct socket *s);
int siw_batch_send_sctp(struct siw_batch *batch, struct siw_chan *chan,
			unsigned int len);
void siw_batch_exit(void);

#endif
