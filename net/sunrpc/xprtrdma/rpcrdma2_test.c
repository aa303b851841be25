// SPDX-License-Identifier: GPL-2.0
/*
 * Headers of RPC-over-RDMA version two. The words were written by hand from
 * the XDR in section 4.2 of draft-cel-nfsv4-rpcrdma-version-two-01.
 */
#include <kunit/test.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/slab.h>

#include <rdma/ib_verbs.h>

#include "rpcrdma2_xdr.h"

#define XID		0x9cb1e600
#define CREDITS		128
#define WORDS_MAX	24

/* A segment is a handle, a length and two words of an offset */
#define HANDLE		0x00001234
#define LENGTH		4096
#define HIGH		0x00000001
#define LOW		0xfffff000

/**
 * struct vector - a message
 * @name: the claim
 * @want: its kind
 * @octets: number of its octets that arrive
 * @word: the whole message
 * @next: the word that is decoded next if it is a call, a reply or an ERROR
 */
struct vector {
	const char *name;
	enum rpcrdma2_kind want;
	size_t octets;
	u32 word[WORDS_MAX];
	unsigned int next;
};

static const struct vector vectors[] = {
	{
		.name = "RPC-2: the smallest call",
		.want = RPCRDMA2_IS_CALL, .octets = 40, .next = 5,
		.word = { XID, 2, CREDITS, 0, 0, 0, 0, 0, XID, 0 },
	}, {
		.name = "RPC-2: the smallest reply",
		.want = RPCRDMA2_IS_REPLY, .octets = 40, .next = 5,
		.word = { XID, 2, CREDITS, 0, 1, 0, 0, 0, XID, 1 },
	}, {
		.name = "RPC-2: a long call",
		.want = RPCRDMA2_IS_CALL, .octets = 56, .next = 5,
		.word = { XID, 2, CREDITS, 1, 0, 1, 0, HANDLE, LENGTH, HIGH,
			  LOW, 0, 0, 0 },
	}, {
		.name = "RPC-2: a long reply",
		.want = RPCRDMA2_IS_REPLY, .octets = 52, .next = 5,
		.word = { XID, 2, CREDITS, 1, 1, 0, 0, 1, 1, HANDLE, LENGTH,
			  HIGH, LOW },
	}, {
		.name = "RPC-3: a version error with the range 1 to 2",
		.want = RPCRDMA2_IS_ERROR, .octets = 28, .next = 4,
		.word = { XID, 2, CREDITS, 4, 1, 1, 2 },
	}, {
		.name = "RPC-3: a bad header error",
		.want = RPCRDMA2_IS_ERROR, .octets = 20, .next = 4,
		.word = { XID, 2, CREDITS, 4, 2 },
	}, {
		.name = "RPC-3: an invalid option error",
		.want = RPCRDMA2_IS_ERROR, .octets = 20, .next = 4,
		.word = { XID, 2, CREDITS, 4, 3 },
	}, {
		.name = "RPC-5: an option without data and without a message",
		.want = RPCRDMA2_IS_OPTION, .octets = 28,
		.word = { XID, 2, CREDITS, 5, 0, 0x80000001, 0 },
	}, {
		.name = "RPC-5: an option with five octets of data",
		.want = RPCRDMA2_IS_OPTION, .octets = 36,
		.word = { XID, 2, CREDITS, 5, 1, 0xffffffff, 5, 0x01020304,
			  0x05000000 },
	}, {
		.name = "RPC-5: an option with a message",
		.want = RPCRDMA2_IS_OPTION, .octets = 36,
		.word = { XID, 2, CREDITS, 5, 0, 7, 0, XID, 0 },
	}, {
		.name = "RPC-16: a call of 31 octets",
		.want = RPCRDMA2_IS_DROPPED, .octets = 31,
		.word = { XID, 2, CREDITS, 0, 0, 0, 0, 0 },
	}, {
		.name = "RPC-16: a long call of 31 octets",
		.want = RPCRDMA2_IS_DROPPED, .octets = 31,
		.word = { XID, 2, CREDITS, 1, 0, 0, 0, 0 },
	}, {
		.name = "RPC-16: an option of 27 octets",
		.want = RPCRDMA2_IS_DROPPED, .octets = 27,
		.word = { XID, 2, CREDITS, 5, 0, 7, 0 },
	}, {
		.name = "RPC-16: an error of 19 octets",
		.want = RPCRDMA2_IS_DROPPED, .octets = 19,
		.word = { XID, 2, CREDITS, 4, 2 },
	}, {
		.name = "RPC-1: the removed rdma_proc 2",
		.want = RPCRDMA2_IS_BAD, .octets = 40,
		.word = { XID, 2, CREDITS, 2, 0, 0, 0, 0, XID, 0 },
	}, {
		.name = "RPC-1: the removed rdma_proc 3",
		.want = RPCRDMA2_IS_BAD, .octets = 40,
		.word = { XID, 2, CREDITS, 3, 0, 0, 0, 0, XID, 0 },
	}, {
		.name = "RPC-1: the undefined rdma_proc 6",
		.want = RPCRDMA2_IS_BAD, .octets = 40,
		.word = { XID, 2, CREDITS, 6, 0, 0, 0, 0, XID, 0 },
	}, {
		.name = "RPC-3: an error with code 0",
		.want = RPCRDMA2_IS_DROPPED, .octets = 20,
		.word = { XID, 2, CREDITS, 4, 0 },
	}, {
		.name = "RPC-3: an error with the undefined code 4",
		.want = RPCRDMA2_IS_DROPPED, .octets = 20,
		.word = { XID, 2, CREDITS, 4, 4 },
	}, {
		.name = "RPC-3: a version error with a truncated range",
		.want = RPCRDMA2_IS_DROPPED, .octets = 24,
		.word = { XID, 2, CREDITS, 4, 1, 1 },
	}, {
		.name = "RPC-3: a version error with the range 2 to 1",
		.want = RPCRDMA2_IS_DROPPED, .octets = 28,
		.word = { XID, 2, CREDITS, 4, 1, 2, 1 },
	}, {
		.name = "RPC-3: a message after an error",
		.want = RPCRDMA2_IS_DROPPED, .octets = 28,
		.word = { XID, 2, CREDITS, 4, 2, XID, 1 },
	}, {
		.name = "RPC-4: option data longer than the message",
		.want = RPCRDMA2_IS_BAD, .octets = 32,
		.word = { XID, 2, CREDITS, 5, 0, 7, 5, 0 },
	}, {
		.name = "RPC-4: a length of option data that wraps",
		.want = RPCRDMA2_IS_BAD, .octets = 32,
		.word = { XID, 2, CREDITS, 5, 0, 7, 0xffffffff, 0 },
	}, {
		.name = "RPC-6: a message with direction 2",
		.want = RPCRDMA2_IS_BAD, .octets = 40,
		.word = { XID, 2, CREDITS, 0, 2, 0, 0, 0, XID, 0 },
	}, {
		.name = "RPC-6: an option with direction 2",
		.want = RPCRDMA2_IS_BAD, .octets = 28,
		.word = { XID, 2, CREDITS, 5, 2, 7, 0 },
	},
};

/* RPC-8: messages after a direction, from the chunk lists on. @want is
 * RPCRDMA2_IS_CALL or RPCRDMA2_IS_REPLY only for messages without chunks.
 */
static const struct vector lists[] = {
	{
		.name = "a call without chunks is identified as a call",
		.want = RPCRDMA2_IS_CALL, .octets = 20,
		.word = { 0, 0, 0, XID, 0 },
	}, {
		.name = "a reply without chunks is identified as a reply",
		.want = RPCRDMA2_IS_REPLY, .octets = 20,
		.word = { 0, 0, 0, XID, 1 },
	}, {
		.name = "an RPC message of type 2 is identified neither as call nor as reply",
		.want = RPCRDMA2_IS_BAD, .octets = 20,
		.word = { 0, 0, 0, XID, 2 },
	}, {
		.name = "an RPC message without the xid of its header is not identified as a call",
		.want = RPCRDMA2_IS_BAD, .octets = 20,
		.word = { 0, 0, 0, XID + 1, 0 },
	}, {
		.name = "an RPC message that ends in its type is not identified as a call",
		.want = RPCRDMA2_IS_BAD, .octets = 18,
		.word = { 0, 0, 0, XID, 0 },
	}, {
		.name = "a header without an RPC message is not identified as a call",
		.want = RPCRDMA2_IS_BAD, .octets = 12,
		.word = { 0, 0, 0, XID, 0 },
	}, {
		.name = "a header that ends in the chunk lists is not identified as a call",
		.want = RPCRDMA2_IS_BAD, .octets = 8,
		.word = { 0, 0, 0, XID, 0 },
	}, {
		.name = "a call with a Read list is not identified as a plain call",
		.want = RPCRDMA2_IS_BAD, .octets = 44,
		.word = { 1, 40, HANDLE, LENGTH, HIGH, LOW, 0, 0, 0, XID, 0 },
	}, {
		.name = "a call with a Write list is not identified as a plain call",
		.want = RPCRDMA2_IS_BAD, .octets = 20,
		.word = { 0, 1, 0, XID, 0 },
	}, {
		.name = "a call with a Reply chunk is not identified as a plain call",
		.want = RPCRDMA2_IS_BAD, .octets = 20,
		.word = { 0, 0, 1, XID, 0 },
	},
};

static void message_desc(const struct vector *vector, char *text)
{
	static const char * const outcome[] = {
		[RPCRDMA2_IS_CALL]	= "is decoded as a call",
		[RPCRDMA2_IS_REPLY]	= "is decoded as a reply",
		[RPCRDMA2_IS_ERROR]	= "is decoded as an error",
		[RPCRDMA2_IS_OPTION]	= "is decoded as an option",
		[RPCRDMA2_IS_BAD]	= "is refused with an error",
		[RPCRDMA2_IS_DROPPED]	= "is dropped",
	};

	snprintf(text, KUNIT_PARAM_DESC_SIZE, "%s %s", vector->name,
		 outcome[vector->want]);
}

static void short_message_desc(const struct vector *vector, char *text)
{
	static const char * const outcome[] = {
		[0 ... 1]	= "if truncated below the smallest size, is dropped",
		[2 ... 3]	= "if truncated, is not read beyond its end",
		[4]		= "if truncated, is not answered",
		[5]		= "if truncated below the smallest size, is dropped",
		[6]		= "if truncated, is not read beyond its end",
	};

	snprintf(text, KUNIT_PARAM_DESC_SIZE, "%s, %s", vector->name,
		 outcome[vector->word[3]]);
}

static void list_desc(const struct vector *vector, char *text)
{
	strscpy(text, vector->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(message, vectors, message_desc);
KUNIT_ARRAY_PARAM(short_message, vectors, short_message_desc);
KUNIT_ARRAY_PARAM(list, lists, list_desc);

struct laid_out {
	struct xdr_buf buf;
	struct xdr_stream xdr;
	__be32 *word;
};

/* The vector's octets in memory of exactly this size, which KASAN watches */
static struct laid_out *lay_out(struct kunit *test, const struct vector *vector,
				size_t octets)
{
	struct laid_out *out = kunit_kzalloc(test, sizeof(*out), GFP_KERNEL);
	__be32 word[WORDS_MAX];
	int i;

	KUNIT_ASSERT_NOT_NULL(test, out);
	out->word = kunit_kzalloc(test, max_t(size_t, octets, 1), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, out->word);
	for (i = 0; i < WORDS_MAX; i++)
		word[i] = cpu_to_be32(vector->word[i]);
	memcpy(out->word, word, octets);
	out->buf.head[0].iov_base = out->word;
	out->buf.head[0].iov_len = octets;
	out->buf.buflen = octets;
	out->buf.len = octets;
	xdr_init_decode(&out->xdr, &out->buf, out->word, NULL);
	return out;
}

/* Reads the words before the decoded part, as the callers do */
static enum rpcrdma2_kind decode(struct kunit *test, struct laid_out *out)
{
	KUNIT_ASSERT_NOT_NULL(test, xdr_inline_decode(&out->xdr, 16));
	return rpcrdma2_decode(&out->xdr, out->word[3]);
}

static void rpcrdma2_message_is_classified_by_its_header(struct kunit *test)
{
	const struct vector *vector = test->param_value;
	struct laid_out *out = lay_out(test, vector, vector->octets);

	KUNIT_EXPECT_EQ(test, vector->want, decode(test, out));
	if (vector->next)
		KUNIT_EXPECT_PTR_EQ(test, out->word + vector->next,
				    xdr_inline_decode(&out->xdr, 0));
}

/* RPC-16: neither an ERROR nor a message that is too short is answered */
static void too_short_rpcrdma2_message_is_not_answered(struct kunit *test)
{
	const struct vector *vector = test->param_value;
	size_t smallest = vector->word[3] == 5 ? 28 : 32;
	size_t octets;

	for (octets = 16; octets < vector->octets; octets++) {
		struct laid_out *out = lay_out(test, vector, octets);
		enum rpcrdma2_kind kind = decode(test, out);

		if (vector->word[3] == 4)
			KUNIT_EXPECT_TRUE(test, kind == RPCRDMA2_IS_ERROR ||
					  kind == RPCRDMA2_IS_DROPPED);
		else if (vector->word[3] != 2 && vector->word[3] != 3 &&
			 vector->word[3] != 6 && octets < smallest)
			KUNIT_EXPECT_EQ(test, RPCRDMA2_IS_DROPPED, kind);
	}
}

static void rpcrdma2_message_without_chunks_is_identified(struct kunit *test)
{
	const struct vector *vector = test->param_value;
	struct laid_out *out = lay_out(test, vector, vector->octets);
	const __be32 xid = cpu_to_be32(XID);

	KUNIT_EXPECT_EQ(test, vector->want == RPCRDMA2_IS_CALL,
			rpcrdma2_is_plain(&out->xdr, xid, RPCRDMA2_CALL));
	KUNIT_EXPECT_EQ(test, vector->want == RPCRDMA2_IS_REPLY,
			rpcrdma2_is_plain(&out->xdr, xid, RPCRDMA2_REPLY));
	KUNIT_EXPECT_PTR_EQ(test, out->word, xdr_inline_decode(&out->xdr, 0));
}

static void expect_words(struct kunit *test, const u32 *want, size_t count,
			 const __be32 *got)
{
	size_t i;

	for (i = 0; i < count; i++)
		KUNIT_EXPECT_EQ_MSG(test, want[i], be32_to_cpu(got[i]),
				    "word %zu", i);
}

/* The word after the header is not changed */
static void rpcrdma_header_without_chunks_is_encoded(struct kunit *test)
{
	static const u32 one[] = { XID, 1, CREDITS, 0, 0, 0, 0, 0xa5a5a5a5 };
	static const u32 two[] = { XID, 2, CREDITS, 0, 1, 0, 0, 0, 0xa5a5a5a5 };
	__be32 p[9];

	memset(p, 0xa5, sizeof(p));
	KUNIT_EXPECT_PTR_EQ(test, p + 7,
			    rpcrdma_encode_plain(&rpcrdma_vers_one, p,
						 cpu_to_be32(XID), CREDITS,
						 RPCRDMA2_REPLY));
	expect_words(test, one, ARRAY_SIZE(one), p);
	memset(p, 0xa5, sizeof(p));
	KUNIT_EXPECT_PTR_EQ(test, p + 8,
			    rpcrdma_encode_plain(&rpcrdma_vers_two, p,
						 cpu_to_be32(XID), CREDITS,
						 RPCRDMA2_REPLY));
	expect_words(test, two, ARRAY_SIZE(two), p);
}

static void rpcrdma2_error_message_is_encoded(struct kunit *test)
{
	static const u32 want[] = { XID, 2, CREDITS, 4, 3, 0xa5a5a5a5 };
	__be32 p[6];

	memset(p, 0xa5, sizeof(p));
	KUNIT_EXPECT_PTR_EQ(test, p + 5,
			    rpcrdma2_encode_error(p, cpu_to_be32(XID), CREDITS,
						  RDMA2_ERR_INVALID_OPTION));
	expect_words(test, want, ARRAY_SIZE(want), p);
}

static struct kunit_case xdr_cases[] = {
	KUNIT_CASE_PARAM(rpcrdma2_message_is_classified_by_its_header, message_gen_params),
	KUNIT_CASE_PARAM(too_short_rpcrdma2_message_is_not_answered, short_message_gen_params),
	KUNIT_CASE_PARAM(rpcrdma2_message_without_chunks_is_identified, list_gen_params),
	KUNIT_CASE(rpcrdma_header_without_chunks_is_encoded),
	KUNIT_CASE(rpcrdma2_error_message_is_encoded),
	{}
};

static struct kunit_suite xdr_suite = {
	.name = "rpcrdma2_xdr",
	.test_cases = xdr_cases,
};

kunit_test_suite(xdr_suite);

MODULE_DESCRIPTION("KUnit tests of RPC-over-RDMA version two");
MODULE_LICENSE("GPL");
MODULE_IMPORT_NS("EXPORTED_FOR_KUNIT_TESTING");
