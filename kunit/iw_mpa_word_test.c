// SPDX-License-Identifier: GPL-2.0
/*
 * The word of the enhanced connection data, in the layout of RFC 6581 and in
 * that of the early drafts, with the words O1 to O5 of the conformance matrix.
 */
#include <kunit/test.h>
#include <linux/bits.h>
#include <linux/module.h>
#include <linux/prandom.h>
#include <linux/string.h>

#include <rdma/ib_verbs.h>

#include "frame.h"

#define UNTOUCHED	0xa5
#define RANDOM_WORDS	100000
#define SEED		6581

/**
 * struct early_vector - an enhanced word in both dialects
 * @name: number and description in the conformance matrix
 * @word: enhanced connection data, host byte order
 * @rfc: meaning in RFC 6581
 * @early: meaning in the early draft
 */
struct early_vector {
	const char *name;
	u32 word;
	struct iw_mpa_enh rfc;
	struct iw_mpa_enh early;
};

static const struct early_vector early_vectors[] = {
	{
		.name =
		"O1: word 0x40080008 is a Write RTR in the early draft, client-server in RFC 6581",
		.word = 0x40080008,
		.rfc = { .ird = 8, .ord = 8 },
		.early = {
			.ird = 8, .ord = 8,
			.p2p = true, .rtr = RDMA_MPA_RTR_WRITE,
		},
	},
	{
		.name =
		"O2: word 0xc0088008 is any RTR in the early draft, Send and Write in RFC 6581",
		.word = 0xc0088008,
		.rfc = {
			.ird = 8, .ord = 8,
			.p2p = true, .rtr = RDMA_MPA_RTR_SEND | RDMA_MPA_RTR_WRITE,
		},
		.early = {
			.ird = 8, .ord = 8,
			.p2p = true, .rtr = IW_MPA_RTR_ALL,
		},
	},
	{
		.name =
		"O3: word 0x00088008 is a Read RTR in the early draft, client-server in RFC 6581",
		.word = 0x00088008,
		.rfc = { .ird = 8, .ord = 8 },
		.early = {
			.ird = 8, .ord = 8,
			.p2p = true, .rtr = RDMA_MPA_RTR_READ,
		},
	},
	{
		.name = "O4: word 0x80080008 is a Send RTR in early drafts, bare p2p in RFC 6581",
		.word = 0x80080008,
		.rfc = { .ird = 8, .ord = 8, .p2p = true },
		.early = {
			.ird = 8, .ord = 8,
			.p2p = true, .rtr = RDMA_MPA_RTR_SEND,
		},
	},
	{
		.name = "O5: word 0x00080008 is client-server in the early draft and in RFC 6581",
		.word = 0x00080008,
		.rfc = { .ird = 8, .ord = 8 },
		.early = { .ird = 8, .ord = 8 },
	},
};

static bool same_enh(const struct iw_mpa_enh *a, const struct iw_mpa_enh *b)
{
	return a->ird == b->ird && a->ord == b->ord && a->rtr == b->rtr &&
	       a->p2p == b->p2p;
}

static void early_desc(const struct early_vector *v, char *desc)
{
	strscpy(desc, v->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(early, early_vectors, early_desc);

static void ird_ord_word_is_parsed_in_the_selected_dialect(struct kunit *test)
{
	const struct early_vector *v = test->param_value;
	struct iw_mpa_enh enh;

	memset(&enh, UNTOUCHED, sizeof(enh));
	iw_mpa_enh_unpack(v->word, RDMA_MPA_DIALECT_RFC6581, &enh);
	KUNIT_EXPECT_TRUE(test, same_enh(&v->rfc, &enh));

	memset(&enh, UNTOUCHED, sizeof(enh));
	iw_mpa_enh_unpack(v->word, RDMA_MPA_DIALECT_EARLY_DRAFT, &enh);
	KUNIT_EXPECT_TRUE(test, same_enh(&v->early, &enh));
	KUNIT_EXPECT_EQ(test, v->word,
			iw_mpa_enh_pack(&v->early, RDMA_MPA_DIALECT_EARLY_DRAFT));
}

static void each_rtr_flag_has_its_bit_in_dialect_rfc6581(struct kunit *test)
{
	struct iw_mpa_enh enh = { .p2p = true };
	u32 rtr, word;

	for (rtr = 0; rtr <= IW_MPA_RTR_ALL; rtr++) {
		enh.rtr = rtr;
		word = BIT(31);
		if (rtr & RDMA_MPA_RTR_SEND)
			word |= BIT(30);
		if (rtr & RDMA_MPA_RTR_WRITE)
			word |= BIT(15);
		if (rtr & RDMA_MPA_RTR_READ)
			word |= BIT(14);
		KUNIT_EXPECT_EQ(test, word,
				iw_mpa_enh_pack(&enh, RDMA_MPA_DIALECT_RFC6581));
	}
}

/* OLD-01 OLD-02: A, B, C are Send, Write, Read; D is reserved */
static void each_rtr_flag_has_its_bit_in_dialect_early_draft(struct kunit *test)
{
	struct iw_mpa_enh enh = {};
	u32 rtr, word;

	for (rtr = 0; rtr <= IW_MPA_RTR_ALL; rtr++) {
		enh.rtr = rtr;
		enh.p2p = rtr;
		word = 0;
		if (rtr & RDMA_MPA_RTR_SEND)
			word |= BIT(31);
		if (rtr & RDMA_MPA_RTR_WRITE)
			word |= BIT(30);
		if (rtr & RDMA_MPA_RTR_READ)
			word |= BIT(15);
		KUNIT_EXPECT_EQ(test, word,
				iw_mpa_enh_pack(&enh, RDMA_MPA_DIALECT_EARLY_DRAFT));
	}
}

/* The word with all bits cleared that a receiver must ignore */
static u32 without_ignored_bits(u32 word, enum rdma_mpa_dialect dialect)
{
	if (dialect == RDMA_MPA_DIALECT_EARLY_DRAFT)
		return word & ~BIT(14);
	return word & BIT(31) ? word : word & 0x3fff3fff;
}

static void unpacking_and_packing_preserves_the_ird_ord_word(struct kunit *test)
{
	static const u16 edge[] = { 0, 1, 0x1fff, 0x2000, 0x3ffe, 0x3fff };
	struct iw_mpa_enh enh;
	struct rnd_state rnd;
	u32 word, want, i;
	int dialect;

	prandom_seed_state(&rnd, SEED);
	for (i = 0; i < RANDOM_WORDS; i++) {
		word = prandom_u32_state(&rnd);
		if (i < 16 * 36)	/* first, every flag at the edges */
			word = (i & 12) << 28 | (i & 3) << 14 |
			       edge[i / 16 % 6] << 16 | edge[i / 96];
		dialect = i % 2 ? RDMA_MPA_DIALECT_RFC6581 : RDMA_MPA_DIALECT_EARLY_DRAFT;
		want = without_ignored_bits(word, dialect);
		iw_mpa_enh_unpack(word, dialect, &enh);
		KUNIT_ASSERT_EQ(test, (u16)(word >> 16 & 0x3fff), enh.ird);
		KUNIT_ASSERT_EQ(test, (u16)(word & 0x3fff), enh.ord);
		KUNIT_ASSERT_EQ(test, want, iw_mpa_enh_pack(&enh, dialect));
	}
}

static struct kunit_case word_cases[] = {
	KUNIT_CASE_PARAM(ird_ord_word_is_parsed_in_the_selected_dialect,
			 early_gen_params),
	KUNIT_CASE(each_rtr_flag_has_its_bit_in_dialect_rfc6581),
	KUNIT_CASE(each_rtr_flag_has_its_bit_in_dialect_early_draft),
	KUNIT_CASE(unpacking_and_packing_preserves_the_ird_ord_word),
	{}
};

static struct kunit_suite word_suite = {
	.name = "iw_mpa_word",
	.test_cases = word_cases,
};

kunit_test_suite(word_suite);

MODULE_DESCRIPTION("KUnit tests of the enhanced connection data of MPA");
MODULE_LICENSE("GPL");
MODULE_IMPORT_NS("EXPORTED_FOR_KUNIT_TESTING");
