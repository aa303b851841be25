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
#define WORDS_MAX	48

/* A segment is a handle, a length and two words of an offset */
#define HANDLE		0x00001234
#define LENGTH		4096
#define HIGH		0x00000001
#define LOW		0xfffff000

struct vector {
	const char *name;
	enum rpcrdma2_parse want;
	u32 answer;
	size_t octets;
	u32 word[WORDS_MAX];
	struct rpcrdma2_hdr hdr;
};

static const struct vector good_vectors[] = {
	{
		.name = "RPC-2: the smallest call",
		.octets = 40,
		.word = { XID, 2, CREDITS, 0, 0, 0, 0, 0, XID, 0 },
		.hdr = { .proc = 0, .direction = 0, .len = 32,
			 .chunks = { .offset = 20 } },
	}, {
		.name = "RPC-2: the smallest reply",
		.octets = 40,
		.word = { XID, 2, CREDITS, 0, 1, 0, 0, 0, XID, 1 },
		.hdr = { .proc = 0, .direction = 1, .len = 32,
			 .chunks = { .offset = 20 } },
	}, {
		.name = "RPC-2: a call with a Read chunk of two segments",
		.octets = 88,
		.word = { XID, 2, CREDITS, 0, 0, 1, 104, HANDLE, LENGTH, HIGH,
			  LOW, 1, 104, HANDLE, LENGTH, HIGH, LOW, 0, 0, 0, XID,
			  0 },
		.hdr = { .proc = 0, .direction = 0, .len = 80,
			 .chunks = { .offset = 20, .reads = 2 } },
	}, {
		.name = "RPC-2: a call with two Write chunks of one and two segments",
		.octets = 104,
		.word = { XID, 2, CREDITS, 0, 0, 0, 1, 1, HANDLE, LENGTH, HIGH,
			  LOW, 1, 2, HANDLE, LENGTH, HIGH, LOW, HANDLE, LENGTH,
			  HIGH, LOW, 0, 0, XID, 0 },
		.hdr = { .proc = 0, .direction = 0, .len = 96,
			 .chunks = { .offset = 20, .writes = 2,
				     .write_segs = 3 } },
	}, {
		.name = "RPC-2: a call with a Reply chunk of two segments",
		.octets = 76,
		.word = { XID, 2, CREDITS, 0, 0, 0, 0, 1, 2, HANDLE, LENGTH,
			  HIGH, LOW, HANDLE, LENGTH, HIGH, LOW, XID, 0 },
		.hdr = { .proc = 0, .direction = 0, .len = 68,
			 .chunks = { .offset = 20, .has_reply = true,
				     .reply_segs = 2 } },
	}, {
		.name = "RPC-2: a long call",
		.octets = 56,
		.word = { XID, 2, CREDITS, 1, 0, 1, 0, HANDLE, LENGTH, HIGH,
			  LOW, 0, 0, 0 },
		.hdr = { .proc = 1, .direction = 0, .len = 56,
			 .chunks = { .offset = 20, .reads = 1, .calls = 1 } },
	}, {
		.name = "RPC-2: a long reply",
		.octets = 52,
		.word = { XID, 2, CREDITS, 1, 1, 0, 0, 1, 1, HANDLE, LENGTH,
			  HIGH, LOW },
		.hdr = { .proc = 1, .direction = 1, .len = 52,
			 .chunks = { .offset = 20, .has_reply = true,
				     .reply_segs = 1 } },
	}, {
		.name = "RPC-2: a long reply with an unused segment",
		.octets = 68,
		.word = { XID, 2, CREDITS, 1, 1, 0, 0, 1, 2, HANDLE, LENGTH,
			  HIGH, LOW, HANDLE, 0, HIGH, LOW },
		.hdr = { .proc = 1, .direction = 1, .len = 68,
			 .chunks = { .offset = 20, .has_reply = true,
				     .reply_segs = 2 } },
	}, {
		.name = "RPC-2: a segment that ends where the addresses end",
		.octets = 52,
		.word = { XID, 2, CREDITS, 1, 1, 0, 0, 1, 1, 7, 4096,
			  0xffffffff, 0xfffff000 },
		.hdr = { .proc = 1, .direction = 1, .len = 52,
			 .chunks = { .offset = 20, .has_reply = true,
				     .reply_segs = 1 } },
	}, {
		.name = "RPC-3: versions 1 to 2",
		.octets = 28,
		.word = { XID, 2, CREDITS, 4, 1, 1, 2 },
		.hdr = { .proc = 4, .direction = 1, .len = 28,
			 .error = { .code = 1, .low = 1, .high = 2 } },
	}, {
		.name = "RPC-3: bad header",
		.octets = 20,
		.word = { XID, 2, CREDITS, 4, 2 },
		.hdr = { .proc = 4, .direction = 1, .len = 20,
			 .error = { .code = 2 } },
	}, {
		.name = "RPC-3: invalid option",
		.octets = 20,
		.word = { XID, 2, CREDITS, 4, 3 },
		.hdr = { .proc = 4, .direction = 1, .len = 20,
			 .error = { .code = 3 } },
	}, {
		.name = "RPC-4: an option without data and without a message",
		.octets = 28,
		.word = { XID, 2, CREDITS, 5, 0, 0x80000001, 0 },
		.hdr = { .proc = 5, .direction = 0, .len = 28,
			 .optional = { .type = 0x80000001 } },
	}, {
		.name = "RPC-4: an option with five octets of data",
		.octets = 36,
		.word = { XID, 2, CREDITS, 5, 1, 0xffffffff, 5, 0x01020304,
			  0x05000000 },
		.hdr = { .proc = 5, .direction = 1, .len = 36,
			 .optional = { .type = 0xffffffff, .info_len = 5 } },
	},
};

static const struct vector bad_vectors[] = {
	{
		.name = "RPC-16: less than xid, version, credits and proc",
		.want = RPCRDMA2_SHORT, .octets = 15,
		.word = { XID, 2, CREDITS, 0 },
	}, {
		.name = "RPC-16: a call of 31 octets",
		.want = RPCRDMA2_SHORT, .octets = 31,
		.word = { XID, 2, CREDITS, 0, 0, 0, 0, 0 },
	}, {
		.name = "RPC-1: version one",
		.want = RPCRDMA2_BAD_VERS, .octets = 40,
		.word = { XID, 1, CREDITS, 0, 0, 0, 0, 0, XID, 0 },
	}, {
		.name = "RPC-1: version three",
		.want = RPCRDMA2_BAD_VERS, .octets = 40,
		.word = { XID, 3, CREDITS, 0, 0, 0, 0, 0, XID, 0 },
	}, {
		.name = "RPC-1: proc 2 is gone",
		.want = RPCRDMA2_BAD_PROC, .answer = 2, .octets = 40,
		.word = { XID, 2, CREDITS, 2, 0, 0, 0, 0, XID, 0 },
	}, {
		.name = "RPC-1: proc 3 is gone",
		.want = RPCRDMA2_BAD_PROC, .answer = 2, .octets = 40,
		.word = { XID, 2, CREDITS, 3, 0, 0, 0, 0, XID, 0 },
	}, {
		.name = "RPC-1: there is no proc 6",
		.want = RPCRDMA2_BAD_PROC, .answer = 2, .octets = 40,
		.word = { XID, 2, CREDITS, 6, 0, 0, 0, 0, XID, 0 },
	}, {
		.name = "RPC-2: a Read list that goes on without end",
		.want = RPCRDMA2_BAD_CHUNKS, .answer = 2, .octets = 68,
		.word = { XID, 2, CREDITS, 0, 0, 1, 4, HANDLE, LENGTH, HIGH,
			  LOW, 1, 4, HANDLE, LENGTH, HIGH, LOW },
	}, {
		.name = "RPC-2: a Write list that goes on without end",
		.want = RPCRDMA2_BAD_CHUNKS, .answer = 2, .octets = 72,
		.word = { XID, 2, CREDITS, 0, 0, 0, 1, 1, HANDLE, LENGTH, HIGH,
			  LOW, 1, 1, HANDLE, LENGTH, HIGH, LOW },
	}, {
		.name = "RPC-2: more segments than the message holds",
		.want = RPCRDMA2_BAD_CHUNKS, .answer = 2, .octets = 56,
		.word = { XID, 2, CREDITS, 0, 0, 0, 1, 0x40000001, HANDLE,
			  LENGTH, HIGH, LOW, 0, 0 },
	}, {
		.name = "RPC-2: a Reply chunk that is cut off",
		.want = RPCRDMA2_BAD_CHUNKS, .octets = 48,
		.word = { XID, 2, CREDITS, 1, 1, 0, 0, 1, 1, HANDLE, LENGTH,
			  HIGH, LOW },
	}, {
		.name = "RPC-2: a boolean of 2",
		.want = RPCRDMA2_BAD_CHUNKS, .answer = 2, .octets = 40,
		.word = { XID, 2, CREDITS, 0, 0, 2, 0, 0, XID, 0 },
	}, {
		.name = "RPC-2: a Read segment at position 2",
		.want = RPCRDMA2_BAD_CHUNKS, .answer = 2, .octets = 64,
		.word = { XID, 2, CREDITS, 0, 0, 1, 2, HANDLE, LENGTH, HIGH,
			  LOW, 0, 0, 0, XID, 0 },
	}, {
		.name = "F77: a Read segment of length 0",
		.want = RPCRDMA2_BAD_CHUNKS, .answer = 2, .octets = 64,
		.word = { XID, 2, CREDITS, 0, 0, 1, 4, HANDLE, 0, HIGH, LOW,
			  0, 0, 0, XID, 0 },
	}, {
		.name = "F77: a Read segment of length 0 is the call",
		.want = RPCRDMA2_BAD_CHUNKS, .answer = 2, .octets = 56,
		.word = { XID, 2, CREDITS, 1, 0, 1, 0, HANDLE, 0, HIGH, LOW,
			  0, 0, 0 },
	}, {
		.name = "RPC-2: a segment that wraps",
		.want = RPCRDMA2_BAD_CHUNKS, .octets = 52,
		.word = { XID, 2, CREDITS, 1, 1, 0, 0, 1, 1, 7, 4097,
			  0xffffffff, 0xfffff000 },
	}, {
		.name = "RPC-3: error 0",
		.want = RPCRDMA2_BAD_ERROR, .octets = 20,
		.word = { XID, 2, CREDITS, 4, 0 },
	}, {
		.name = "RPC-3: error 4",
		.want = RPCRDMA2_BAD_ERROR, .octets = 20,
		.word = { XID, 2, CREDITS, 4, 4 },
	}, {
		.name = "RPC-3: a range of versions that is cut off",
		.want = RPCRDMA2_BAD_ERROR, .octets = 24,
		.word = { XID, 2, CREDITS, 4, 1, 1 },
	}, {
		.name = "RPC-3: versions 2 to 1",
		.want = RPCRDMA2_BAD_ERROR, .octets = 28,
		.word = { XID, 2, CREDITS, 4, 1, 2, 1 },
	}, {
		.name = "RPC-3: a message behind an error",
		.want = RPCRDMA2_BAD_PAYLOAD, .octets = 28,
		.word = { XID, 2, CREDITS, 4, 2, XID, 1 },
	}, {
		.name = "RPC-4: data that is longer than the message",
		.want = RPCRDMA2_BAD_OPTION, .answer = 2, .octets = 32,
		.word = { XID, 2, CREDITS, 5, 0, 7, 5, 0 },
	}, {
		.name = "RPC-4: a length of data that wraps",
		.want = RPCRDMA2_BAD_OPTION, .answer = 2, .octets = 32,
		.word = { XID, 2, CREDITS, 5, 0, 7, 0xffffffff, 0 },
	}, {
		.name = "RPC-6: direction 2",
		.want = RPCRDMA2_BAD_DIRECTION, .answer = 2, .octets = 40,
		.word = { XID, 2, CREDITS, 0, 2, 0, 0, 0, XID, 0 },
	}, {
		.name = "RPC-6: direction 2 of an option",
		.want = RPCRDMA2_BAD_DIRECTION, .answer = 2, .octets = 28,
		.word = { XID, 2, CREDITS, 5, 2, 7, 0 },
	}, {
		.name = "RPC-6: a call that says it is a reply",
		.want = RPCRDMA2_BAD_DIRECTION, .answer = 2, .octets = 40,
		.word = { XID, 2, CREDITS, 0, 1, 0, 0, 0, XID, 0 },
	}, {
		.name = "RPC-6: a reply that says it is a call",
		.want = RPCRDMA2_BAD_DIRECTION, .answer = 2, .octets = 40,
		.word = { XID, 2, CREDITS, 0, 0, 0, 0, 0, XID, 1 },
	}, {
		.name = "RPC-7: a MSG that no message follows",
		.want = RPCRDMA2_BAD_PAYLOAD, .answer = 2, .octets = 32,
		.word = { XID, 2, CREDITS, 0, 0, 0, 0, 0 },
	}, {
		.name = "RPC-7: a message with another xid",
		.want = RPCRDMA2_BAD_PAYLOAD, .answer = 2, .octets = 40,
		.word = { XID, 2, CREDITS, 0, 0, 0, 0, 0, XID + 1, 0 },
	}, {
		.name = "RPC-7: a long call without its chunk",
		.want = RPCRDMA2_BAD_PAYLOAD, .answer = 2, .octets = 56,
		.word = { XID, 2, CREDITS, 1, 0, 1, 4, HANDLE, LENGTH, HIGH,
			  LOW, 0, 0, 0 },
	}, {
		.name = "RPC-7: a long reply without its chunk",
		.want = RPCRDMA2_BAD_PAYLOAD, .octets = 32,
		.word = { XID, 2, CREDITS, 1, 1, 0, 0, 0 },
	},
};

static void describe(const struct vector *vector, char *text)
{
	strscpy(text, vector->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(good, good_vectors, describe);
KUNIT_ARRAY_PARAM(bad, bad_vectors, describe);

/* The vector's octets in memory of exactly this size */
static const __be32 *lay_out(struct kunit *test, const struct vector *vector,
			     size_t octets)
{
	__be32 word[WORDS_MAX];
	void *buf;
	int i;

	for (i = 0; i < WORDS_MAX; i++)
		word[i] = cpu_to_be32(vector->word[i]);
	buf = kunit_kzalloc(test, max_t(size_t, octets, 1), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, buf);
	memcpy(buf, word, octets);
	return buf;
}

static void expect_chunks(struct kunit *test, const struct rpcrdma2_chunks *want,
			  const struct rpcrdma2_chunks *got)
{
	KUNIT_EXPECT_EQ(test, want->offset, got->offset);
	KUNIT_EXPECT_EQ(test, want->reads, got->reads);
	KUNIT_EXPECT_EQ(test, want->calls, got->calls);
	KUNIT_EXPECT_EQ(test, want->writes, got->writes);
	KUNIT_EXPECT_EQ(test, want->write_segs, got->write_segs);
	KUNIT_EXPECT_EQ(test, want->has_reply, got->has_reply);
	KUNIT_EXPECT_EQ(test, want->reply_segs, got->reply_segs);
}

static void good_header_is_decoded(struct kunit *test)
{
	const struct vector *vector = test->param_value;
	const struct rpcrdma2_hdr *want = &vector->hdr;
	const __be32 *buf = lay_out(test, vector, vector->octets);
	struct rpcrdma2_hdr got;

	KUNIT_ASSERT_EQ(test, RPCRDMA2_GOOD,
			rpcrdma2_decode(buf, vector->octets, &got));
	KUNIT_EXPECT_EQ(test, (u32)XID, got.xid);
	KUNIT_EXPECT_EQ(test, (u32)CREDITS, got.credit);
	KUNIT_EXPECT_EQ(test, want->proc, got.proc);
	KUNIT_EXPECT_EQ(test, want->direction, got.direction);
	KUNIT_EXPECT_EQ(test, want->len, got.len);
	switch (got.proc) {
	case RDMA2_MSG:
	case RDMA2_NOMSG:
		expect_chunks(test, &want->chunks, &got.chunks);
		break;
	case RDMA2_ERROR:
		KUNIT_EXPECT_EQ(test, want->error.code, got.error.code);
		KUNIT_EXPECT_EQ(test, want->error.low, got.error.low);
		KUNIT_EXPECT_EQ(test, want->error.high, got.error.high);
		break;
	case RDMA2_OPTIONAL:
		KUNIT_EXPECT_EQ(test, want->optional.type, got.optional.type);
		KUNIT_EXPECT_EQ(test, want->optional.info_len,
				got.optional.info_len);
		KUNIT_EXPECT_PTR_EQ(test, (const u8 *)buf + 28,
				    got.optional.info);
		break;
	}
}

/* The memory of each prefix ends with it, which KASAN watches */
static void no_prefix_of_a_good_header_is_good(struct kunit *test)
{
	const struct vector *vector = test->param_value;
	struct rpcrdma2_hdr got;
	size_t octets;

	for (octets = 0; octets < vector->octets; octets++) {
		const __be32 *buf = lay_out(test, vector, octets);

		KUNIT_EXPECT_NE_MSG(test, RPCRDMA2_GOOD,
				    rpcrdma2_decode(buf, octets, &got),
				    "%zu octets", octets);
	}
}

static void bad_header_is_refused(struct kunit *test)
{
	const struct vector *vector = test->param_value;
	const __be32 *buf = lay_out(test, vector, vector->octets);
	struct rpcrdma2_hdr got;

	KUNIT_EXPECT_EQ(test, vector->want,
			rpcrdma2_decode(buf, vector->octets, &got));
}

/* The answer to a bad header needs these */
static void bad_header_has_its_xid(struct kunit *test)
{
	const struct vector *vector = test->param_value;
	const __be32 *buf = lay_out(test, vector, vector->octets);
	struct rpcrdma2_hdr got;

	if (rpcrdma2_decode(buf, vector->octets, &got) == RPCRDMA2_SHORT)
		return;
	KUNIT_EXPECT_EQ(test, (u32)XID, got.xid);
	KUNIT_EXPECT_EQ(test, (u32)CREDITS, got.credit);
	KUNIT_EXPECT_EQ(test, vector->word[3], got.proc);
}

/* Section 4.2.3, RFC 8166, section 4.5: no error answers what is too short, an
 * error, or a reply
 */
static void bad_header_is_answered(struct kunit *test)
{
	const struct vector *vector = test->param_value;
	const __be32 *buf = lay_out(test, vector, vector->octets);
	struct rpcrdma2_hdr got;
	enum rpcrdma2_parse result;

	result = rpcrdma2_decode(buf, vector->octets, &got);
	KUNIT_EXPECT_EQ(test, vector->answer, rpcrdma2_judge(&got, result));
}

static void good_header_is_not_answered(struct kunit *test)
{
	const struct vector *vector = test->param_value;
	const __be32 *buf = lay_out(test, vector, vector->octets);
	struct rpcrdma2_hdr got;
	enum rpcrdma2_parse result;

	result = rpcrdma2_decode(buf, vector->octets, &got);
	KUNIT_EXPECT_EQ(test, 0U, rpcrdma2_judge(&got, result));
}

static void fixed_part_is_five_words(struct kunit *test)
{
	__be32 p[6] = {};

	KUNIT_EXPECT_PTR_EQ(test, p + 5,
			    rpcrdma2_encode_fixed(p, XID, CREDITS, RDMA2_NOMSG,
						  RPCRDMA2_REPLY));
	KUNIT_EXPECT_EQ(test, (u32)XID, be32_to_cpu(p[0]));
	KUNIT_EXPECT_EQ(test, 2U, be32_to_cpu(p[1]));
	KUNIT_EXPECT_EQ(test, (u32)CREDITS, be32_to_cpu(p[2]));
	KUNIT_EXPECT_EQ(test, 1U, be32_to_cpu(p[3]));
	KUNIT_EXPECT_EQ(test, 1U, be32_to_cpu(p[4]));
	KUNIT_EXPECT_EQ(test, 0U, be32_to_cpu(p[5]));
}

static int encode(const struct rpcrdma2_hdr *hdr, void *buf, size_t size)
{
	return hdr->proc == RDMA2_ERROR ?
	       rpcrdma2_encode_error(hdr, buf, size) :
	       rpcrdma2_encode_optional(hdr, buf, size);
}

/* RPC-3, RPC-4: errors and options are encoded as in the vectors, and only if there is room */
static void error_and_option_are_encoded(struct kunit *test)
{
	const struct vector *vector = test->param_value;
	static const u8 info[] = { 1, 2, 3, 4, 5 };
	struct rpcrdma2_hdr hdr = vector->hdr;
	const __be32 *want;
	u8 *got;

	if (hdr.proc != RDMA2_ERROR && hdr.proc != RDMA2_OPTIONAL)
		return;
	hdr.xid = XID;
	hdr.credit = CREDITS;
	if (hdr.proc == RDMA2_OPTIONAL)
		hdr.optional.info = info;
	want = lay_out(test, vector, vector->octets);
	got = kunit_kmalloc(test, vector->octets, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, got);
	memset(got, 0xa5, vector->octets);
	KUNIT_EXPECT_EQ(test, -EMSGSIZE, encode(&hdr, got, vector->octets - 1));
	KUNIT_EXPECT_EQ(test, -EMSGSIZE, encode(&hdr, got, 0));
	KUNIT_EXPECT_NULL(test, memchr_inv(got, 0xa5, vector->octets));
	KUNIT_EXPECT_EQ(test, (int)vector->octets,
			encode(&hdr, got, vector->octets));
	KUNIT_EXPECT_EQ(test, 0, memcmp(want, got, vector->octets));
}

static void impossible_error_is_not_encoded(struct kunit *test)
{
	struct rpcrdma2_hdr hdr = { .error = { .code = 0 } };
	__be32 buf[7];

	KUNIT_EXPECT_EQ(test, -EINVAL,
			rpcrdma2_encode_error(&hdr, buf, sizeof(buf)));
	hdr.error.code = 4;
	KUNIT_EXPECT_EQ(test, -EINVAL,
			rpcrdma2_encode_error(&hdr, buf, sizeof(buf)));
	hdr.error = (struct rpcrdma2_error){ .code = 1, .low = 2, .high = 1 };
	KUNIT_EXPECT_EQ(test, -EINVAL,
			rpcrdma2_encode_error(&hdr, buf, sizeof(buf)));
}

static void impossible_option_is_not_encoded(struct kunit *test)
{
	struct rpcrdma2_hdr hdr = { .direction = 2 };
	__be32 buf[7];

	KUNIT_EXPECT_EQ(test, -EINVAL,
			rpcrdma2_encode_optional(&hdr, buf, sizeof(buf)));
	hdr.direction = RPCRDMA2_CALL;
	hdr.optional.info_len = U32_MAX;
	KUNIT_EXPECT_EQ(test, -EMSGSIZE,
			rpcrdma2_encode_optional(&hdr, buf, sizeof(buf)));
}

static struct kunit_case xdr_cases[] = {
	KUNIT_CASE_PARAM(good_header_is_decoded, good_gen_params),
	KUNIT_CASE_PARAM(no_prefix_of_a_good_header_is_good, good_gen_params),
	KUNIT_CASE_PARAM(bad_header_is_refused, bad_gen_params),
	KUNIT_CASE_PARAM(bad_header_has_its_xid, bad_gen_params),
	KUNIT_CASE_PARAM(bad_header_is_answered, bad_gen_params),
	KUNIT_CASE_PARAM(good_header_is_not_answered, good_gen_params),
	KUNIT_CASE(fixed_part_is_five_words),
	KUNIT_CASE_PARAM(error_and_option_are_encoded, good_gen_params),
	KUNIT_CASE(impossible_error_is_not_encoded),
	KUNIT_CASE(impossible_option_is_not_encoded),
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
