// SPDX-License-Identifier: GPL-2.0
/*
 * Frames on the wire against RFC 6581: vectors, every prefix, every flipped
 * header bit, round trips. Expected values come from the vectors and from
 * read_by_the_book(), which follows the text, not the parser.
 */
#include <kunit/test.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/prandom.h>
#include <linux/slab.h>

#include <rdma/ib_verbs.h>

#include "frame.h"
#include "iw_mpa_vectors.h"

#define UNTOUCHED	0xa5
#define RANDOM_FRAMES	5000
#define SEED		6581

/* Results of one call of the parser */
struct reading {
	enum iw_mpa_parse result;
	size_t need;
	struct iw_mpa_frame frame;
};

/* Not by value: a copy may lose the padding that assert_untouched() checks */
static void parse(enum iw_mpa_kind kind, const u8 *buf, size_t len,
		  struct reading *got)
{
	memset(got, UNTOUCHED, sizeof(*got));
	got->result = iw_mpa_frame_parse(kind, RDMA_MPA_DIALECT_RFC6581, buf, len,
					 &got->frame, &got->need);
}

static bool has_frame(enum iw_mpa_parse result)
{
	return result == IW_MPA_FRAME_COMPLETE ||
	       result == IW_MPA_FRAME_TRAILING;
}

static bool has_need(enum iw_mpa_parse result)
{
	return has_frame(result) || result == IW_MPA_FRAME_NEED_MORE;
}

static enum iw_mpa_kind other(enum iw_mpa_kind kind)
{
	return kind == IW_MPA_REQUEST ? IW_MPA_REPLY : IW_MPA_REQUEST;
}

static bool same_enh(const struct iw_mpa_enh *a, const struct iw_mpa_enh *b)
{
	return a->ird == b->ird && a->ord == b->ord && a->rtr == b->rtr &&
	       a->p2p == b->p2p;
}

static void assert_untouched(struct kunit *test, const struct reading *got)
{
	KUNIT_ASSERT_NULL_MSG(test, memchr_inv(&got->frame, UNTOUCHED,
					       sizeof(got->frame)),
			      "result %d wrote to the frame", got->result);
}

static void assert_frame(struct kunit *test, const struct iw_mpa_frame *want,
			 const struct iw_mpa_frame *got)
{
	KUNIT_ASSERT_EQ(test, want->kind, got->kind);
	KUNIT_ASSERT_EQ(test, want->rev, got->rev);
	KUNIT_ASSERT_EQ(test, want->markers, got->markers);
	KUNIT_ASSERT_EQ(test, want->crc, got->crc);
	KUNIT_ASSERT_EQ(test, want->reject, got->reject);
	KUNIT_ASSERT_EQ(test, want->enhanced, got->enhanced);
	KUNIT_ASSERT_EQ(test, want->block_missing, got->block_missing);
	KUNIT_ASSERT_TRUE(test, same_enh(&want->enh, &got->enh));
	KUNIT_ASSERT_EQ(test, want->pdata_len, got->pdata_len);
	if (want->pdata_len)
		KUNIT_ASSERT_PTR_EQ(test, want->pdata, got->pdata);
}

/* A copy of the vector that ends where its memory ends, for KASAN */
static u8 *vector_at_the_edge(struct kunit *test, const struct iw_mpa_vector *v)
{
	u8 *buf = kunit_kmalloc(test, iw_mpa_vector_len(v), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, buf);
	iw_mpa_vector_bytes(v, buf);
	return buf;
}

/* Names of the parameters: a vector's name is the subject of each outcome */

static void describe(const struct iw_mpa_vector *v, const char *outcome, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "%s %s", v->name, outcome);
}

static void parsed_desc(const struct iw_mpa_vector *v, char *desc)
{
	describe(v, has_frame(v->result) ? "is parsed to its fields" : "is refused", desc);
}

static void truncated_desc(const struct iw_mpa_vector *v, char *desc)
{
	describe(v, has_frame(v->result) ? "is incomplete if truncated" :
		 "is refused after its header", desc);
}

static void swapped_desc(const struct iw_mpa_vector *v, char *desc)
{
	describe(v, v->kind == IW_MPA_REQUEST ? "is refused as a Reply" :
		 "is refused as a Request", desc);
}

static void trailing_desc(const struct iw_mpa_vector *v, char *desc)
{
	describe(v, has_frame(v->result) ? "is parsed, bytes after it are reported" :
		 "is refused, bytes after it are not tested", desc);
}

static void rebuilt_desc(const struct iw_mpa_vector *v, char *desc)
{
	describe(v, v->canonical ? "is rebuilt byte for byte" :
		 "is not rebuilt, as no conforming sender sends it", desc);
}

static void flipped_desc(const struct iw_mpa_vector *v, char *desc)
{
	describe(v, "with flipped header bits is parsed like by a model", desc);
}

KUNIT_ARRAY_PARAM(parsed, iw_mpa_vectors, parsed_desc);
KUNIT_ARRAY_PARAM(truncated, iw_mpa_vectors, truncated_desc);
KUNIT_ARRAY_PARAM(swapped, iw_mpa_vectors, swapped_desc);
KUNIT_ARRAY_PARAM(trailing, iw_mpa_vectors, trailing_desc);
KUNIT_ARRAY_PARAM(rebuilt, iw_mpa_vectors, rebuilt_desc);
KUNIT_ARRAY_PARAM(flipped, iw_mpa_vectors, flipped_desc);

/* ---------------------------------------------------------------- vectors */

static void known_mpa_frame_is_parsed_to_the_expected_fields(struct kunit *test)
{
	const struct iw_mpa_vector *v = test->param_value;
	u8 *buf = vector_at_the_edge(test, v);
	struct reading got;
	struct iw_mpa_frame want = {
		.kind = v->kind,
		.rev = v->rev,
		.markers = v->markers,
		.crc = v->crc,
		.reject = v->reject,
		.enhanced = v->enhanced,
		.block_missing = v->block_missing,
		.enh = v->enh,
		.pdata_len = v->ulp_len,
		.pdata = buf + IW_MPA_HDR_LEN +
			 (v->enhanced ? IW_MPA_ENH_LEN : 0),
	};

	parse(v->kind, buf, iw_mpa_vector_len(v), &got);
	KUNIT_ASSERT_EQ(test, v->result, got.result);
	if (!has_frame(v->result)) {
		assert_untouched(test, &got);
		return;
	}
	KUNIT_EXPECT_EQ(test, iw_mpa_vector_len(v), got.need);
	assert_frame(test, &want, &got.frame);
	if (v->ulp)
		KUNIT_EXPECT_EQ(test, 0, memcmp(v->ulp, got.frame.pdata,
						v->ulp_len));
}

static void truncated_mpa_frame_is_incomplete_or_invalid(struct kunit *test)
{
	const struct iw_mpa_vector *v = test->param_value;
	size_t whole = iw_mpa_vector_len(v);
	u8 *all = vector_at_the_edge(test, v);
	struct reading got;
	size_t len;
	u8 *buf;

	for (len = 0; len < whole; len++) {
		/* exactly @len bytes, so that KASAN detects a read beyond */
		buf = kmemdup(all, len, GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, buf);
		parse(v->kind, buf, len, &got);
		kfree(buf);

		assert_untouched(test, &got);
		if (len >= IW_MPA_HDR_LEN && !has_frame(v->result)) {
			KUNIT_ASSERT_EQ(test, v->result, got.result);
			continue;
		}
		KUNIT_ASSERT_EQ(test, IW_MPA_FRAME_NEED_MORE, got.result);
		KUNIT_ASSERT_EQ_MSG(test, got.need,
				    len < IW_MPA_HDR_LEN ? IW_MPA_HDR_LEN :
							   whole,
				    "after %zu bytes", len);
	}
}

static void request_is_invalid_as_reply_and_reply_as_request(struct kunit *test)
{
	const struct iw_mpa_vector *v = test->param_value;
	u8 *buf = vector_at_the_edge(test, v);
	struct reading got;
	size_t len;

	/* "MPA ID Req Frame", "MPA ID Rep Frame": byte 9 differs (SEC-07) */
	for (len = 0; len <= iw_mpa_vector_len(v); len++) {
		parse(other(v->kind), buf, len, &got);
		KUNIT_ASSERT_EQ_MSG(test, got.result,
				    len < 10 ? IW_MPA_FRAME_NEED_MORE :
					       IW_MPA_FRAME_BAD_KEY,
				    "after %zu bytes", len);
		assert_untouched(test, &got);
	}
}

static void bytes_after_an_mpa_frame_are_reported_as_trailing(struct kunit *test)
{
	const struct iw_mpa_vector *v = test->param_value;
	size_t len = iw_mpa_vector_len(v);
	struct reading exact, more;
	size_t extra;
	u8 *buf;

	if (!has_frame(v->result))
		kunit_skip(test, "not a valid frame");
	buf = kunit_kzalloc(test, len + 100, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, buf);
	iw_mpa_vector_bytes(v, buf);

	parse(v->kind, buf, len, &exact);
	for (extra = 1; extra <= 100; extra++) {
		parse(v->kind, buf, len + extra, &more);
		KUNIT_ASSERT_EQ(test, IW_MPA_FRAME_TRAILING, more.result);
		KUNIT_ASSERT_EQ(test, len, more.need);
		assert_frame(test, &exact.frame, &more.frame);
	}
}

static void parsed_mpa_frame_is_rebuilt_byte_for_byte(struct kunit *test)
{
	const struct iw_mpa_vector *v = test->param_value;
	int len = iw_mpa_vector_len(v);
	u8 *buf = vector_at_the_edge(test, v);
	u8 *again = kunit_kmalloc(test, len, GFP_KERNEL);
	struct reading got;

	if (!v->canonical)
		kunit_skip(test, "no conforming sender produces this");
	KUNIT_ASSERT_NOT_NULL(test, again);
	parse(v->kind, buf, len, &got);
	KUNIT_ASSERT_EQ(test, IW_MPA_FRAME_COMPLETE, got.result);
	KUNIT_EXPECT_EQ(test, len, iw_mpa_frame_build(&got.frame,
						      RDMA_MPA_DIALECT_RFC6581, again,
						      len));
	KUNIT_EXPECT_EQ(test, 0, memcmp(buf, again, len));
	KUNIT_EXPECT_EQ(test, -EMSGSIZE,
			iw_mpa_frame_build(&got.frame, RDMA_MPA_DIALECT_RFC6581, again,
					   len - 1));
}

/* ---------------------------------------------------- headers, by the book */

static const u8 book_key[][IW_MPA_KEY_LEN + 1] = {
	[IW_MPA_REQUEST] = "MPA ID Req Frame",
	[IW_MPA_REPLY] = "MPA ID Rep Frame",
};

static void book_word(const u8 *b, struct iw_mpa_enh *enh)
{
	enh->ird = (b[0] & 0x3f) * 256 + b[1];
	enh->ord = (b[2] & 0x3f) * 256 + b[3];
	enh->p2p = b[0] >= 0x80;
	enh->rtr = 0;
	if (!enh->p2p)
		return;			/* RTR-05 */
	if (b[0] & 0x40)
		enh->rtr |= RDMA_MPA_RTR_SEND;
	if (b[2] & 0x80)
		enh->rtr |= RDMA_MPA_RTR_WRITE;
	if (b[2] & 0x40)
		enh->rtr |= RDMA_MPA_RTR_READ;
}

/* The result for a header: an error, or NEED_MORE with the frame's length */
static enum iw_mpa_parse book_header(enum iw_mpa_kind kind, const u8 *b,
				     size_t *need)
{
	size_t pd_length = b[18] * 256 + b[19];
	bool reject = kind == IW_MPA_REPLY && (b[16] & 0x20);

	if (b[17] > 2)
		return IW_MPA_FRAME_BAD_REV;
	if (pd_length > 512)
		return IW_MPA_FRAME_PDATA_TOO_LONG;
	if ((b[16] & 0x10) && b[17] == 2 && pd_length < 4 && !reject)
		return IW_MPA_FRAME_BLOCK_MISSING;
	*need = 20 + pd_length;
	return IW_MPA_FRAME_NEED_MORE;
}

static void book_fields(enum iw_mpa_kind kind, const u8 *b,
			struct iw_mpa_frame *f)
{
	bool s = (b[16] & 0x10) && b[17] == 2;

	memset(f, 0, sizeof(*f));
	f->kind = kind;
	f->rev = b[17];
	f->markers = b[16] & 0x80;
	f->crc = b[16] & 0x40;
	f->reject = kind == IW_MPA_REPLY && (b[16] & 0x20);
	f->pdata_len = b[18] * 256 + b[19];
	f->pdata = b + 20;
	if (s && f->pdata_len < 4) {
		f->block_missing = true;
		f->pdata_len = 0;
	} else if (s) {
		f->enhanced = true;
		book_word(b + 20, &f->enh);
		f->pdata_len -= 4;
		f->pdata += 4;
	}
}

static struct reading read_by_the_book(enum iw_mpa_kind kind, const u8 *b,
				       size_t len)
{
	struct reading r = { .result = IW_MPA_FRAME_NEED_MORE, .need = 20 };

	if (memcmp(b, book_key[kind], min_t(size_t, len, 16)))
		r.result = IW_MPA_FRAME_BAD_KEY;
	else if (len >= 20)
		r.result = book_header(kind, b, &r.need);
	if (r.result != IW_MPA_FRAME_NEED_MORE || len < r.need)
		return r;
	r.result = len == r.need ? IW_MPA_FRAME_COMPLETE :
				   IW_MPA_FRAME_TRAILING;
	book_fields(kind, b, &r.frame);
	return r;
}

static void assert_the_book(struct kunit *test, enum iw_mpa_kind kind,
			    const u8 *buf, size_t len)
{
	struct reading want = read_by_the_book(kind, buf, len);
	struct reading got;

	parse(kind, buf, len, &got);
	KUNIT_ASSERT_EQ_MSG(test, want.result, got.result,
			    "%zu bytes, flags %02x rev %u length %02x%02x", len,
			    buf[16], buf[17], buf[18], buf[19]);
	if (has_need(want.result))
		KUNIT_ASSERT_EQ(test, want.need, got.need);
	if (has_frame(want.result))
		assert_frame(test, &want.frame, &got.frame);
	else
		assert_untouched(test, &got);
}

static void mpa_parser_matches_a_model_for_flipped_header_bits(struct kunit *test)
{
	const struct iw_mpa_vector *v = test->param_value;
	size_t len = iw_mpa_vector_len(v);
	u8 *buf = vector_at_the_edge(test, v);
	size_t bit;

	for (bit = 0; bit < IW_MPA_HDR_LEN * 8; bit++) {
		buf[bit / 8] ^= BIT(bit % 8);
		assert_the_book(test, v->kind, buf, len);
		assert_the_book(test, v->kind, buf, IW_MPA_HDR_LEN);
		buf[bit / 8] ^= BIT(bit % 8);
	}
}

static void mpa_parser_matches_a_model_for_flags_revs_and_lengths(struct kunit *test)
{
	static const u16 lengths[] = {
		0, 1, 2, 3, 4, 5, 255, 256, 508, 511, 512, 513, 516, 1024,
		0x7fff, 0x8000, 0xff00, 0xffff,
	};
	static const u8 revs[] = { 0, 1, 2, 3, 4, 0x80, 0x82, 0xff };
	u8 *buf = kunit_kzalloc(test, IW_MPA_FRAME_MAX, GFP_KERNEL);
	unsigned int kind, flags, r, l;

	KUNIT_ASSERT_NOT_NULL(test, buf);
	for (kind = IW_MPA_REQUEST; kind <= IW_MPA_REPLY; kind++) {
		memcpy(buf, book_key[kind], IW_MPA_KEY_LEN);
		for (flags = 0; flags < 256; flags++) {
			for (r = 0; r < ARRAY_SIZE(revs); r++) {
				for (l = 0; l < ARRAY_SIZE(lengths); l++) {
					buf[16] = flags;
					buf[17] = revs[r];
					buf[18] = lengths[l] / 256;
					buf[19] = lengths[l] % 256;
					assert_the_book(test, kind, buf, 20);
					assert_the_book(test, kind, buf,
							IW_MPA_FRAME_MAX);
				}
			}
		}
	}
}

static void mpa_key_is_rejected_at_its_first_wrong_byte(struct kunit *test)
{
	u8 key[IW_MPA_KEY_LEN];
	struct reading got;
	unsigned int wrong, kind;
	size_t i, len;

	for (kind = IW_MPA_REQUEST; kind <= IW_MPA_REPLY; kind++) {
		for (i = 0; i < IW_MPA_KEY_LEN; i++) {
			memcpy(key, book_key[kind], IW_MPA_KEY_LEN);
			for (wrong = 1; wrong < 256; wrong++) {
				key[i] = book_key[kind][i] ^ wrong;
				parse(kind, key, i, &got);
				KUNIT_ASSERT_EQ(test, IW_MPA_FRAME_NEED_MORE,
						got.result);
				for (len = i + 1; len <= sizeof(key); len++) {
					parse(kind, key, len, &got);
					KUNIT_ASSERT_EQ(test,
							IW_MPA_FRAME_BAD_KEY,
							got.result);
				}
			}
		}
	}
}

/* ------------------------------------------------------------------ builder */

static void random_frame(struct rnd_state *rnd, enum rdma_mpa_dialect dialect,
			 struct iw_mpa_frame *f, const u8 *pdata)
{
	u32 r = prandom_u32_state(rnd);

	memset(f, 0, sizeof(*f));
	f->kind = r & 1 ? IW_MPA_REPLY : IW_MPA_REQUEST;
	f->rev = (r >> 1) % 3;
	f->markers = r & BIT(8);
	f->crc = r & BIT(9);
	f->reject = f->kind == IW_MPA_REPLY && (r & BIT(10));
	f->enhanced = f->rev == 2 && (r & BIT(11));
	f->pdata = pdata;
	f->pdata_len = prandom_u32_state(rnd) % (f->enhanced ? 509 : 513);
	if (!f->enhanced)
		return;
	r = prandom_u32_state(rnd);
	f->enh.ird = r & 0x3fff;
	f->enh.ord = r >> 14 & 0x3fff;
	f->enh.p2p = r & BIT(31);
	if (f->enh.p2p)
		f->enh.rtr = r >> 28 & IW_MPA_RTR_ALL;
	if (dialect == RDMA_MPA_DIALECT_EARLY_DRAFT)
		f->enh.p2p = f->enh.rtr;
}

static void random_mpa_frames_are_parsed_as_they_were_built(struct kunit *test)
{
	u8 *pdata = kunit_kzalloc(test, IW_MPA_PDATA_MAX, GFP_KERNEL);
	u8 *wire = kunit_kzalloc(test, IW_MPA_FRAME_MAX, GFP_KERNEL);
	struct iw_mpa_frame sent, got;
	enum rdma_mpa_dialect dialect;
	struct rnd_state rnd;
	int i, len, want;
	size_t need;

	KUNIT_ASSERT_NOT_NULL(test, pdata);
	KUNIT_ASSERT_NOT_NULL(test, wire);
	prandom_seed_state(&rnd, SEED);
	for (i = 0; i < RANDOM_FRAMES; i++) {
		dialect = i % 4 ? RDMA_MPA_DIALECT_RFC6581 : RDMA_MPA_DIALECT_EARLY_DRAFT;
		prandom_bytes_state(&rnd, pdata, IW_MPA_PDATA_MAX);
		random_frame(&rnd, dialect, &sent, pdata);
		want = 20 + (sent.enhanced ? 4 : 0) + sent.pdata_len;
		len = iw_mpa_frame_build(&sent, dialect, wire,
					 IW_MPA_FRAME_MAX);
		KUNIT_ASSERT_EQ(test, want, len);
		KUNIT_ASSERT_EQ(test, IW_MPA_FRAME_COMPLETE,
				iw_mpa_frame_parse(sent.kind, dialect, wire,
						   len, &got, &need));
		KUNIT_ASSERT_EQ(test, 0,
				memcmp(pdata, got.pdata, sent.pdata_len));
		sent.pdata = got.pdata;
		assert_frame(test, &sent, &got);
		if (dialect == RDMA_MPA_DIALECT_RFC6581)
			assert_the_book(test, sent.kind, wire, len);
	}
}

static int build_in(const struct iw_mpa_frame *f, void *buf, size_t size)
{
	return iw_mpa_frame_build(f, RDMA_MPA_DIALECT_RFC6581, buf, size);
}

static int build(const struct iw_mpa_frame *f)
{
	static u8 buf[IW_MPA_FRAME_MAX + 64];

	return build_in(f, buf, sizeof(buf));
}

static const u8 much[IW_MPA_PDATA_MAX + 64];

static struct iw_mpa_frame good_frame(void)
{
	return (struct iw_mpa_frame) {
		.kind = IW_MPA_REPLY,
		.rev = 2,
		.crc = true,
		.enhanced = true,
		.enh = { .ird = 8, .ord = 8, .p2p = true,
			 .rtr = RDMA_MPA_RTR_WRITE },
		.pdata = much,
		.pdata_len = 4,
	};
}

/* Result of building good_frame() with @field set to @value */
#define BUILT_WITH(field, value) ({				\
	struct iw_mpa_frame __f = good_frame();			\
								\
	__f.field = (value);					\
	build(&__f);						\
})

static void invalid_frame_header_is_not_built(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, 28, BUILT_WITH(rev, 2));
	KUNIT_EXPECT_EQ(test, -EINVAL, BUILT_WITH(rev, 0));
	KUNIT_EXPECT_EQ(test, -EINVAL, BUILT_WITH(rev, 1));
	KUNIT_EXPECT_EQ(test, -EINVAL, BUILT_WITH(rev, 3));
	KUNIT_EXPECT_EQ(test, -EINVAL, BUILT_WITH(rev, 255));
	KUNIT_EXPECT_EQ(test, 28, BUILT_WITH(reject, true));
	KUNIT_EXPECT_EQ(test, 28, BUILT_WITH(kind, IW_MPA_REQUEST));
}

static void mpa_request_with_the_reject_flag_is_not_built(struct kunit *test)
{
	struct iw_mpa_frame f = good_frame();

	f.kind = IW_MPA_REQUEST;
	f.reject = true;
	KUNIT_EXPECT_EQ(test, -EINVAL, build(&f));
}

static void plain_frame_of_rev_3_is_not_built(struct kunit *test)
{
	struct iw_mpa_frame f = { .kind = IW_MPA_REQUEST };

	for (f.rev = 0; f.rev < 3; f.rev++)
		KUNIT_EXPECT_EQ(test, 20, build(&f));
	KUNIT_EXPECT_EQ(test, -EINVAL, build(&f));
}

static void ird_or_ord_above_0x3fff_is_not_built(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, 28, BUILT_WITH(enh.ird, 0x3fff));
	KUNIT_EXPECT_EQ(test, 28, BUILT_WITH(enh.ord, 0x3fff));
	KUNIT_EXPECT_EQ(test, -EINVAL, BUILT_WITH(enh.ird, 0x4000));
	KUNIT_EXPECT_EQ(test, -EINVAL, BUILT_WITH(enh.ord, 0x4000));
	KUNIT_EXPECT_EQ(test, -EINVAL, BUILT_WITH(enh.ird, 0xffff));
	KUNIT_EXPECT_EQ(test, -EINVAL, BUILT_WITH(enh.ord, 0xffff));
}

static void invalid_rtr_kinds_are_not_built(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, 28, BUILT_WITH(enh.rtr, IW_MPA_RTR_ALL));
	KUNIT_EXPECT_EQ(test, 28, BUILT_WITH(enh.rtr, 0));
	KUNIT_EXPECT_EQ(test, -EINVAL, BUILT_WITH(enh.rtr, 8));
	KUNIT_EXPECT_EQ(test, -EINVAL, BUILT_WITH(enh.rtr, 0x81));
	/* INI-06, RSP-07 */
	KUNIT_EXPECT_EQ(test, -EINVAL, BUILT_WITH(enh.p2p, false));
}

static void frame_with_over_512_bytes_of_private_data_is_not_built(struct kunit *test)
{
	struct iw_mpa_frame plain = {
		.kind = IW_MPA_REPLY, .rev = 2, .pdata = much,
	};

	/* FRM-13, FRM-14 */
	KUNIT_EXPECT_EQ(test, 532, BUILT_WITH(pdata_len, 508));
	KUNIT_EXPECT_EQ(test, -EINVAL, BUILT_WITH(pdata_len, 509));
	KUNIT_EXPECT_EQ(test, -EINVAL, BUILT_WITH(pdata_len, 0xffff));
	plain.pdata_len = 512;
	KUNIT_EXPECT_EQ(test, 532, build(&plain));
	plain.pdata_len = 513;
	KUNIT_EXPECT_EQ(test, -EINVAL, build(&plain));

	KUNIT_EXPECT_EQ(test, -EINVAL, BUILT_WITH(pdata, NULL));
	plain.pdata = NULL;
	KUNIT_EXPECT_EQ(test, -EINVAL, build(&plain));
	plain.pdata_len = 0;
	KUNIT_EXPECT_EQ(test, 20, build(&plain));
}

static void frame_builder_stays_inside_its_buffer(struct kunit *test)
{
	struct iw_mpa_frame f = good_frame();
	size_t size;
	u8 *buf;

	for (size = 0; size <= 28; size++) {
		buf = kmalloc(size, GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, buf);
		KUNIT_EXPECT_EQ(test, size < 28 ? -EMSGSIZE : 28,
				build_in(&f, buf, size));
		kfree(buf);
	}
}

static void plain_mpa_frame_contains_no_ird_ord_word(struct kunit *test)
{
	struct iw_mpa_frame f = good_frame();
	u8 buf[64];

	/* FRM-09: without S the frame has no enhanced word */
	f.enhanced = false;
	f.enh = (struct iw_mpa_enh) {};
	f.pdata = "ping";
	KUNIT_EXPECT_EQ(test, 24, build_in(&f, buf, sizeof(buf)));
	KUNIT_EXPECT_EQ(test, 0x40, (int)buf[16]);
	KUNIT_EXPECT_EQ(test, 0, memcmp(buf + 18, "\x00\x04ping", 6));
}

static void every_parse_result_has_a_unique_string(struct kunit *test)
{
	int a, b;

	for (a = 0; a < IW_MPA_FRAME_RESULTS; a++) {
		KUNIT_ASSERT_NOT_NULL(test, iw_mpa_parse_str(a));
		for (b = 0; b < a; b++)
			KUNIT_EXPECT_STRNEQ(test, iw_mpa_parse_str(a),
					    iw_mpa_parse_str(b));
	}
	KUNIT_EXPECT_NOT_NULL(test, iw_mpa_parse_str(IW_MPA_FRAME_RESULTS));
}

static struct kunit_case vector_cases[] = {
	KUNIT_CASE_PARAM(known_mpa_frame_is_parsed_to_the_expected_fields, parsed_gen_params),
	KUNIT_CASE_PARAM(truncated_mpa_frame_is_incomplete_or_invalid,
			 truncated_gen_params),
	KUNIT_CASE_PARAM(request_is_invalid_as_reply_and_reply_as_request, swapped_gen_params),
	KUNIT_CASE_PARAM(bytes_after_an_mpa_frame_are_reported_as_trailing,
			 trailing_gen_params),
	KUNIT_CASE_PARAM(parsed_mpa_frame_is_rebuilt_byte_for_byte, rebuilt_gen_params),
	KUNIT_CASE_PARAM(mpa_parser_matches_a_model_for_flipped_header_bits,
			 flipped_gen_params),
	{}
};

static struct kunit_suite vector_suite = {
	.name = "iw_mpa_frame_vectors",
	.test_cases = vector_cases,
};

static struct kunit_case frame_cases[] = {
	KUNIT_CASE(mpa_parser_matches_a_model_for_flags_revs_and_lengths),
	KUNIT_CASE(mpa_key_is_rejected_at_its_first_wrong_byte),
	KUNIT_CASE(random_mpa_frames_are_parsed_as_they_were_built),
	KUNIT_CASE(invalid_frame_header_is_not_built),
	KUNIT_CASE(mpa_request_with_the_reject_flag_is_not_built),
	KUNIT_CASE(plain_frame_of_rev_3_is_not_built),
	KUNIT_CASE(ird_or_ord_above_0x3fff_is_not_built),
	KUNIT_CASE(invalid_rtr_kinds_are_not_built),
	KUNIT_CASE(frame_with_over_512_bytes_of_private_data_is_not_built),
	KUNIT_CASE(frame_builder_stays_inside_its_buffer),
	KUNIT_CASE(plain_mpa_frame_contains_no_ird_ord_word),
	KUNIT_CASE(every_parse_result_has_a_unique_string),
	{}
};

static struct kunit_suite frame_suite = {
	.name = "iw_mpa_frame",
	.test_cases = frame_cases,
};

kunit_test_suites(&vector_suite, &frame_suite);

MODULE_DESCRIPTION("KUnit tests of MPA frames");
MODULE_LICENSE("GPL");
MODULE_IMPORT_NS("EXPORTED_FOR_KUNIT_TESTING");
