// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Datagrams on the wire. See NOTICE.
 *
 * V1 to V6 are the vectors of the specification; each hostile datagram is one
 * of them with a few octets changed, so that one field is wrong. The codec is
 * pure, so the test has its own copy.
 */
#include <kunit/test.h>
#include <linux/module.h>

#include "dg_wire.c"
#include "dg_test.h"

struct vector {
	const char *name;
	const char *hex;
	struct dg_segment seg;
};

static const struct vector vectors[] = {
	{ "V1: a Send", "41431111111100000000000000010000000061626364ffc6e555",
	  { .form = DG_SEND, .last = true, .qkey = 0x11111111, .msn = 1,
	    .hdr_len = 18, .len = 4 } },
	{ "V2: an empty Send with Solicited Event",
	  "41451111111100000000000000020000000012553c2b",
	  { .form = DG_SEND, .last = true, .solicited = true,
	    .qkey = 0x11111111, .msn = 2, .hdr_len = 18 } },
	{ "V3: a Write-Record",
	  "e140123456010000000000001000000000070000000000000004c001d00d61626364cc96bd6c",
	  { .form = DG_WRITE_RECORD, .last = true, .stag = 0x12345601,
	    .to = 0x1000, .msn = 7, .ml = 4, .qkey = 0xc001d00d,
	    .hdr_len = 30, .len = 4 } },
	{ "V4: the first of two segments",
	  "a14012345601000000000000100000000008000000000000000cc001d00d3031323334353637a9c91dae",
	  { .form = DG_WRITE_RECORD, .stag = 0x12345601, .to = 0x1000,
	    .msn = 8, .ml = 12, .qkey = 0xc001d00d, .hdr_len = 30, .len = 8 } },
	{ "V4: the second of two segments",
	  "e14012345601000000000000100800000008000000080000000cc001d00d38396162fba1d35c",
	  { .form = DG_WRITE_RECORD, .last = true, .stag = 0x12345601,
	    .to = 0x1008, .msn = 8, .mo = 8, .ml = 12, .qkey = 0xc001d00d,
	    .hdr_len = 30, .len = 4 } },
	{ "V5: an empty Write-Record",
	  "e140123456010000000000001000000000090000000000000000c001d00dfb534307",
	  { .form = DG_WRITE_RECORD, .last = true, .stag = 0x12345601,
	    .to = 0x1000, .msn = 9, .qkey = 0xc001d00d, .hdr_len = 30 } },
	{ "V6: an error message about V3",
	  "4147000000000000000200000001000000001100c0000022e140123456010000000000001000000000070000000000000004c001d00d3b257021",
	  { .form = DG_ERROR_MESSAGE, .last = true, .msn = 1, .hdr_len = 54 } },
};

enum { V1, V2, V3, V4A, V4B, V5, V6 };

/* Names of the parameters: a vector's name is the subject of each outcome */

static void describe(const struct vector *v, const char *outcome, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "%s %s", v->name, outcome);
}

static void parsed_desc(const struct vector *v, char *desc)
{
	describe(v, "is parsed to its fields", desc);
}

static void built_desc(const struct vector *v, char *desc)
{
	describe(v, v->seg.form == DG_ERROR_MESSAGE ?
		 "is not built from a segment" : "is built byte for byte", desc);
}

static void truncated_desc(const struct vector *v, char *desc)
{
	describe(v, "is rejected if truncated", desc);
}

static void longer_desc(const struct vector *v, char *desc)
{
	describe(v, "with an extra octet is rejected", desc);
}

static void flipped_desc(const struct vector *v, char *desc)
{
	describe(v, "with a flipped bit has a wrong CRC", desc);
}

KUNIT_ARRAY_PARAM(parsed, vectors, parsed_desc);
KUNIT_ARRAY_PARAM(built, vectors, built_desc);
KUNIT_ARRAY_PARAM(truncated, vectors, truncated_desc);
KUNIT_ARRAY_PARAM(longer, vectors, longer_desc);
KUNIT_ARRAY_PARAM(flipped, vectors, flipped_desc);

static void expect_segment(struct kunit *test, const struct dg_segment *want,
			   const struct dg_segment *seg)
{
	KUNIT_EXPECT_EQ(test, want->form, seg->form);
	KUNIT_EXPECT_EQ(test, want->solicited, seg->solicited);
	KUNIT_EXPECT_EQ(test, want->last, seg->last);
	KUNIT_EXPECT_EQ(test, want->qkey, seg->qkey);
	KUNIT_EXPECT_EQ(test, want->stag, seg->stag);
	KUNIT_EXPECT_EQ(test, want->msn, seg->msn);
	KUNIT_EXPECT_EQ(test, want->mo, seg->mo);
	KUNIT_EXPECT_EQ(test, want->ml, seg->ml);
	KUNIT_EXPECT_EQ(test, want->to, seg->to);
	KUNIT_EXPECT_EQ(test, want->hdr_len, seg->hdr_len);
	KUNIT_EXPECT_EQ(test, want->len, seg->len);
}

/* The check value of CRC32c */
static void crc_of_123456789_is_e3069283(struct kunit *test)
{
	u8 bytes[4];

	KUNIT_EXPECT_EQ(test, 0xe3069283,
			(u32)~dg_crc_add(DG_CRC_START, "123456789", 9));
	KUNIT_EXPECT_EQ(test, dg_crc_add(DG_CRC_START, "123456789", 9),
			dg_crc_add(dg_crc_add(DG_CRC_START, "1234", 4), "56789", 5));
	dg_crc_put(~0xe3069283, bytes);
	KUNIT_EXPECT_EQ(test, 0x83, bytes[0]);
	KUNIT_EXPECT_EQ(test, 0xe3, bytes[3]);
}

static void valid_datagram_is_parsed(struct kunit *test)
{
	const struct vector *v = test->param_value;
	struct dg_segment seg;
	u8 bytes[LONGEST];
	size_t len = bytes_of(test, v->hex, bytes);

	KUNIT_ASSERT_EQ(test, DG_OK, dg_parse(bytes, len, &seg));
	expect_segment(test, &v->seg, &seg);
	KUNIT_EXPECT_TRUE(test, dg_crc_good(bytes, len));
}

static void valid_datagram_is_built(struct kunit *test)
{
	const struct vector *v = test->param_value;
	u8 want[LONGEST], bytes[LONGEST];
	size_t len = bytes_of(test, v->hex, want);
	u32 hdr_len = v->seg.hdr_len;

	if (v->seg.form == DG_ERROR_MESSAGE)
		return;
	KUNIT_ASSERT_EQ(test, (int)hdr_len,
			dg_build(&v->seg, bytes, hdr_len));
	memcpy(bytes + hdr_len, want + hdr_len, v->seg.len);
	dg_crc_put(dg_crc_add(DG_CRC_START, bytes, len - DG_CRC_LEN),
		   bytes + len - DG_CRC_LEN);
	KUNIT_EXPECT_EQ(test, 0, memcmp(bytes, want, len));
	KUNIT_EXPECT_EQ(test, -EMSGSIZE,
			dg_build(&v->seg, bytes, hdr_len - 1));
}

/* DDP, tagged buffer error, invalid STag: RFC 5041 section 7.2 */
static void error_message_contains_the_header_of_the_bad_datagram(struct kunit *test)
{
	u8 cause[LONGEST], want[LONGEST], bytes[LONGEST];
	size_t cause_bytes = bytes_of(test, vectors[V3].hex, cause);
	size_t len = bytes_of(test, vectors[V6].hex, want) - DG_CRC_LEN;
	struct dg_error error = {
		.layer = 1,
		.type = 1,
		.code = 0,
		.length = cause_bytes - DG_CRC_LEN,
		.cause = cause,
		.cause_len = DG_WRITE_HDR,
	}, parsed;

	KUNIT_ASSERT_EQ(test, (int)len,
			dg_build_error(1, &error, bytes, sizeof(bytes)));
	KUNIT_EXPECT_EQ(test, 0, memcmp(bytes, want, len));
	KUNIT_EXPECT_EQ(test, -EMSGSIZE,
			dg_build_error(1, &error, bytes, len - 1));

	dg_parse_error(want, &parsed);
	KUNIT_EXPECT_EQ(test, 1, parsed.layer);
	KUNIT_EXPECT_EQ(test, 1, parsed.type);
	KUNIT_EXPECT_EQ(test, 0, parsed.code);
	KUNIT_EXPECT_EQ(test, 34, parsed.length);
	KUNIT_EXPECT_EQ(test, 30u, parsed.cause_len);
	KUNIT_EXPECT_EQ(test, 0, memcmp(parsed.cause, cause, DG_WRITE_HDR));

	error.cause_len = DG_SEND_HDR;
	KUNIT_EXPECT_EQ(test, -EINVAL,
			dg_build_error(1, &error, bytes, sizeof(bytes)));
	error.cause_len = DG_WRITE_HDR;
	error.length = 29;
	KUNIT_EXPECT_EQ(test, -EINVAL,
			dg_build_error(1, &error, bytes, sizeof(bytes)));
}

struct hostile {
	const char *name;
	int vector;
	int offset;
	const char *octets;
	enum dg_result result;
};

static const struct hostile hostiles[] = {
	{ "a Send with DDP version 0 is refused", V1, 0, "40", DG_BAD_DDP },
	{ "a Send with DDP version 2 is refused", V1, 0, "42", DG_BAD_DDP },
	{ "a Send with reserved DDP bit 0x20 set is refused", V1, 0, "61", DG_BAD_DDP },
	{ "a Send with reserved DDP bit 0x10 set is refused", V1, 0, "51", DG_BAD_DDP },
	{ "a Send with reserved DDP bit 0x08 set is refused", V1, 0, "49", DG_BAD_DDP },
	{ "a Send with reserved DDP bit 0x04 set is refused", V1, 0, "45", DG_BAD_DDP },
	{ "a Send without Last is refused", V1, 0, "01", DG_BAD_LAST },
	{ "a Send with RDMAP version 0 is refused", V1, 1, "03", DG_BAD_RDMAP },
	{ "a Send with RDMAP version 2 is refused", V1, 1, "83", DG_BAD_RDMAP },
	{ "a Send with reserved RDMAP bit 0x20 set is refused", V1, 1, "63", DG_BAD_RDMAP },
	{ "a Send with reserved RDMAP bit 0x10 set is refused", V1, 1, "53", DG_BAD_RDMAP },
	{ "an untagged RDMA Write is refused", V1, 1, "40", DG_BAD_OPCODE },
	{ "an untagged Read Request is refused", V1, 1, "41", DG_BAD_OPCODE },
	{ "an untagged Read Response is refused", V1, 1, "42", DG_BAD_OPCODE },
	{ "a Send with Invalidate is refused", V1, 1, "44", DG_BAD_OPCODE },
	{ "a Send with Solicited Event and Invalidate is refused", V1, 1, "46", DG_BAD_OPCODE },
	{ "an untagged datagram of opcode 15 is refused", V1, 1, "4f", DG_BAD_OPCODE },
	{ "a Send to QN 1 is refused", V1, 6, "00000001", DG_BAD_QN },
	{ "a Send to QN 2 is refused", V1, 6, "00000002", DG_BAD_QN },
	{ "a Send to QN 0x01000000 is refused", V1, 6, "01000000", DG_BAD_QN },
	{ "a Send with MO 1 is refused", V1, 14, "00000001", DG_BAD_MO },
	{ "a Send with Q_Key 0 is accepted by the parser", V1, 2, "00000000", DG_OK },
	{ "a Send with MSN 2^32 - 1 is accepted by the parser", V1, 10, "ffffffff", DG_OK },
	{ "a Write-Record with DDP version 3 is refused", V3, 0, "e3", DG_BAD_DDP },
	{ "a Write-Record with reserved DDP bit 0x10 set is refused", V3, 0, "f1", DG_BAD_DDP },
	{ "a Write-Record with reserved DDP bit 0x04 set is refused", V3, 0, "e5", DG_BAD_DDP },
	{ "an RDMA Write of iWARP, without MSN, is refused", V3, 0, "c1", DG_NO_MSN },
	{ "a Write-Record of a whole message without Last is refused", V3, 0, "a1", DG_BAD_LAST },
	{ "a first of two segments with Last is refused", V4A, 0, "e1", DG_BAD_LAST },
	{ "a last of two segments without Last is refused", V4B, 0, "a1", DG_BAD_LAST },
	{ "an empty Write-Record without Last is refused", V5, 0, "a1", DG_BAD_LAST },
	{ "a tagged Read Response is refused", V3, 1, "42", DG_BAD_OPCODE },
	{ "a tagged Send is refused", V3, 1, "43", DG_BAD_OPCODE },
	{ "a tagged Terminate is refused", V3, 1, "47", DG_BAD_OPCODE },
	{ "a segment whose MO is no multiple of its length is refused",
	  V4A, 18, "00000002", DG_BAD_MO },
	{ "a segment whose MO + length exceeds ML is refused", V4A, 22, "00000007", DG_BAD_MO },
	{ "a segment whose MO + length exceeds 32 bits is refused",
	  V4A, 18, "fffffff8", DG_BAD_MO },
	{ "a Write-Record with ML 0 and data is refused", V3, 22, "00000000", DG_BAD_MO },
	{ "an empty segment of a message of 4 octets is refused", V5, 22, "00000004", DG_BAD_LAST },
	{ "an empty last segment after the end of its data is refused",
	  V5, 18, "0000000400000004", DG_BAD_MO },
	{ "a segment whose TO is less than its MO is refused",
	  V4B, 6, "0000000000000007", DG_BAD_TO },
	{ "a segment whose TO equals its MO is accepted", V4B, 6, "0000000000000008", DG_OK },
	{ "a Write-Record with TO 2^64 - 1 is refused", V3, 6, "ffffffffffffffff", DG_BAD_TO },
	{ "a Write-Record of a message up to TO 2^64 - 1 is accepted",
	  V3, 6, "fffffffffffffffb", DG_OK },
	{ "a Write-Record of a message up to TO 2^64 is refused",
	  V3, 6, "fffffffffffffffc", DG_BAD_TO },
	{ "a first segment with ML 2^32 - 1 is accepted", V4A, 22, "ffffffff", DG_OK },
	{ "an error message to QN 0 is refused", V6, 6, "00000000", DG_BAD_QN },
	{ "an error message without Last is refused", V6, 0, "01", DG_BAD_LAST },
	{ "an error message with MO 1 is refused", V6, 14, "00000001", DG_BAD_MO },
	{ "an error message with a Q_Key is refused", V6, 2, "00000001", DG_BAD_CAUSE },
	{ "an error message of layer 3 is refused", V6, 18, "31", DG_BAD_CAUSE },
	{ "an error message with bit M clear is refused", V6, 20, "40", DG_BAD_CAUSE },
	{ "an error message with bit D clear is refused", V6, 20, "80", DG_BAD_CAUSE },
	{ "an error message with bit R set is refused", V6, 20, "e0", DG_BAD_CAUSE },
	{ "an error message with a reserved bit set is refused", V6, 21, "01", DG_BAD_CAUSE },
	{ "an error message whose cause is shorter than its header is refused",
	  V6, 22, "001d", DG_BAD_CAUSE },
	{ "an error message with an untagged cause of a tagged cause's length is refused",
	  V6, 24, "41", DG_BAD_LENGTH },
	{ "a Send with the opcode of an error message is refused", V1, 1, "47", DG_BAD_QN },
};

static void hostile_desc(const struct hostile *h, char *desc)
{
	strscpy(desc, h->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(hostile, hostiles, hostile_desc);

static void invalid_header_field_is_detected(struct kunit *test)
{
	const struct hostile *h = test->param_value;
	struct dg_segment seg;
	u8 bytes[LONGEST];
	size_t len = bytes_of(test, vectors[h->vector].hex, bytes);

	bytes_of(test, h->octets, bytes + h->offset);
	KUNIT_EXPECT_EQ(test, h->result, dg_parse(bytes, len, &seg));
	KUNIT_EXPECT_FALSE(test, dg_crc_good(bytes, len));
}

/* Only the CRC detects that a Send or a segment before the last is truncated */
static bool has_one_length(const struct vector *v)
{
	return v->seg.form != DG_SEND && v->seg.last;
}

static void truncated_datagram_is_rejected(struct kunit *test)
{
	const struct vector *v = test->param_value;
	struct dg_segment seg;
	u8 bytes[LONGEST];
	size_t len = bytes_of(test, v->hex, bytes), part;

	for (part = 0; part < len; part++) {
		enum dg_result result = dg_parse(bytes, part, &seg);

		if (has_one_length(v) || part < v->seg.hdr_len + DG_CRC_LEN)
			KUNIT_EXPECT_NE(test, DG_OK, result);
		else
			KUNIT_EXPECT_FALSE(test, dg_crc_good(bytes, part));
	}
}

/* 33 octets: ML is what the length of its data, -1, would wrap around to */
static void write_record_shorter_than_its_header_is_rejected(struct kunit *test)
{
	u8 bytes[DG_WRITE_HDR + DG_CRC_LEN] = { 0xe1, 0x40 };
	struct dg_segment seg;

	put_unaligned_be32(0xffffffff, bytes + OFF_ML);
	KUNIT_EXPECT_EQ(test, DG_BAD_LENGTH,
			dg_parse(bytes, sizeof(bytes) - 1, &seg));
}

static void datagram_with_an_extra_octet_is_rejected(struct kunit *test)
{
	const struct vector *v = test->param_value;
	struct dg_segment seg;
	u8 bytes[LONGEST + 1] = {};
	size_t len = bytes_of(test, v->hex, bytes);

	if (has_one_length(v))
		KUNIT_EXPECT_NE(test, DG_OK, dg_parse(bytes, len + 1, &seg));
	KUNIT_EXPECT_FALSE(test, dg_crc_good(bytes, len + 1));
}

static void flipped_bit_breaks_the_crc(struct kunit *test)
{
	const struct vector *v = test->param_value;
	u8 bytes[LONGEST];
	size_t len = bytes_of(test, v->hex, bytes), bit;

	for (bit = 0; bit < 8 * len; bit++) {
		bytes[bit / 8] ^= 1 << bit % 8;
		KUNIT_EXPECT_FALSE(test, dg_crc_good(bytes, len));
		bytes[bit / 8] ^= 1 << bit % 8;
	}
}

struct place {
	const char *name;
	u64 to, size;
	u32 mo, ml;
	bool within;
};

static const struct place places[] = {
	{ "a message as long as the zone is within the zone", 0, 12, 0, 12, true },
	{ "a message one octet longer than the zone exceeds the zone", 0, 11, 0, 12, false },
	{ "a message up to the end of the zone is within the zone", 88, 100, 0, 12, true },
	{ "a message one octet beyond the end of the zone exceeds the zone",
	  89, 100, 0, 12, false },
	{ "a message whose last segment ends at the zone's end is within the zone",
	  96, 100, 8, 12, true },
	{ "a message whose last segment ends beyond the zone exceeds the zone",
	  97, 100, 8, 12, false },
	{ "a message that starts at the end of the zone exceeds the zone", 100, 100, 0, 12, false },
	{ "an empty message at the end of the zone is within the zone", 100, 100, 0, 0, true },
	{ "an empty message after the end of the zone exceeds the zone", 101, 100, 0, 0, false },
	{ "a message longer than the zone exceeds the zone even if its first segment fits",
	  0, 100, 0, 101, false },
	{ "a message near offset 2^64 exceeds a zone of 100 octets",
	  U64_MAX - 12, 100, 0, 12, false },
	{ "a message to a zone of no octets exceeds the zone", 0, 0, 0, 1, false },
};

static void place_desc(const struct place *p, char *desc)
{
	strscpy(desc, p->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(place, places, place_desc);

static void message_bounds_are_checked_against_the_memory_zone(struct kunit *test)
{
	const struct place *p = test->param_value;
	struct dg_segment seg = {
		.form = DG_WRITE_RECORD,
		.to = p->to,
		.mo = p->mo,
		.ml = p->ml,
	};

	KUNIT_EXPECT_EQ(test, p->within, dg_within(&seg, p->size));
}

static void invalid_segment_is_not_built(struct kunit *test)
{
	struct dg_segment seg = {
		.form = DG_WRITE_RECORD,
		.last = true,
		.len = 5,
		.ml = 4,
	};
	u8 bytes[LONGEST];

	KUNIT_EXPECT_EQ(test, -EINVAL, dg_build(&seg, bytes, sizeof(bytes)));
	seg.form = DG_ERROR_MESSAGE;
	KUNIT_EXPECT_EQ(test, -EINVAL, dg_build(&seg, bytes, sizeof(bytes)));
}

static void each_datagram_parse_result_is_printable(struct kunit *test)
{
	int result;

	for (result = 0; result < DG_RESULTS; result++)
		KUNIT_EXPECT_STRNEQ(test, "unknown", dg_result_str(result));
	KUNIT_EXPECT_STREQ(test, "unknown", dg_result_str(DG_RESULTS));
}

static struct kunit_case wire_cases[] = {
	KUNIT_CASE(crc_of_123456789_is_e3069283),
	KUNIT_CASE_PARAM(valid_datagram_is_parsed, parsed_gen_params),
	KUNIT_CASE_PARAM(valid_datagram_is_built, built_gen_params),
	KUNIT_CASE(error_message_contains_the_header_of_the_bad_datagram),
	KUNIT_CASE_PARAM(invalid_header_field_is_detected, hostile_gen_params),
	KUNIT_CASE_PARAM(truncated_datagram_is_rejected, truncated_gen_params),
	KUNIT_CASE(write_record_shorter_than_its_header_is_rejected),
	KUNIT_CASE_PARAM(datagram_with_an_extra_octet_is_rejected, longer_gen_params),
	KUNIT_CASE_PARAM(flipped_bit_breaks_the_crc, flipped_gen_params),
	KUNIT_CASE_PARAM(message_bounds_are_checked_against_the_memory_zone, place_gen_params),
	KUNIT_CASE(invalid_segment_is_not_built),
	KUNIT_CASE(each_datagram_parse_result_is_printable),
	{}
};

static struct kunit_suite wire_suite = {
	.name = "siw_dg_wire",
	.test_cases = wire_cases,
};

kunit_test_suite(wire_suite);

MODULE_DESCRIPTION("KUnit tests of datagram iWARP's wire format");
MODULE_LICENSE("Dual BSD/GPL");
