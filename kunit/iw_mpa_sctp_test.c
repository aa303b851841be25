// SPDX-License-Identifier: GPL-2.0
/*
 * Session control over SCTP: messages on the wire, and the session's state
 * machine above them (RFC 5043, RFC 6581 section 7).
 *
 * S1 to S5 are the vectors of the conformance matrix, SCT-…, SC-… and AMB-… its
 * rows. A scene is a script of calls, and the log of all calls by the session.
 */
#include <kunit/test.h>
#include <linux/hex.h>
#include <linux/in.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/prandom.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <net/net_namespace.h>

#include <rdma/ib_verbs.h>

#include "rev1_peers.h"
#include "sctp.h"
#include "session.h"

#define UNTOUCHED	0xa5
#define RANDOM_MESSAGES	5000
#define SEED		5043

/* ---- messages */

struct message {
	const char *name;
	const char *hex;
	enum iw_mpa_kind kind;
	enum iw_mpa_parse result;
	bool reject, enhanced, block_missing;
	struct iw_mpa_enh enh;
	u16 pdata_len;
	bool canonical;	/* building gives the same bytes */
};

#define WRITE_READ	(RDMA_MPA_RTR_WRITE | RDMA_MPA_RTR_READ)

static const struct message messages[] = {
	{ "SCT-01 SCT-04 SCT-05 S1: an Enhanced Initiate with data is decoded",
	  "00058008c00870696e67",
	  IW_MPA_REQUEST, IW_MPA_FRAME_COMPLETE, .enhanced = true,
	  .enh = { 8, 8, WRITE_READ, true }, .pdata_len = 4, .canonical = true },
	{ "SCT-01 SCT-04 S2: an Enhanced Accept without data is decoded", "000680088008",
	  IW_MPA_REPLY, IW_MPA_FRAME_COMPLETE, .enhanced = true,
	  .enh = { 8, 8, RDMA_MPA_RTR_WRITE, true }, .canonical = true },
	{ "SCT-01 AMB-20 S3: an Enhanced Reject with IRD, ORD and data is decoded",
	  "0007800480206e6f",
	  IW_MPA_REPLY, IW_MPA_FRAME_COMPLETE, .reject = true, .enhanced = true,
	  .enh = { 4, 32, RDMA_MPA_RTR_WRITE, true }, .pdata_len = 2,
	  .canonical = true },
	{ "SCT-02 S5: a plain Initiate with data is decoded", "000170696e67",
	  IW_MPA_REQUEST, IW_MPA_FRAME_COMPLETE, .pdata_len = 4,
	  .canonical = true },
	{ "SCT-02: a plain Accept is decoded", "0002", IW_MPA_REPLY, IW_MPA_FRAME_COMPLETE,
	  .canonical = true },
	{ "SCT-02: a plain Reject with data is decoded",
	  "00036e6f", IW_MPA_REPLY, IW_MPA_FRAME_COMPLETE,
	  .reject = true, .pdata_len = 2, .canonical = true },
	{ "AMB-20: an Enhanced Reject without IRD/ORD is decoded as a Reject", "0007",
	  IW_MPA_REPLY, IW_MPA_FRAME_COMPLETE, .reject = true,
	  .block_missing = true },
	{ "RTR-05: an Enhanced Accept for client-server is decoded without RTR flags",
	  "000640088008",
	  IW_MPA_REPLY, IW_MPA_FRAME_COMPLETE, .enhanced = true,
	  .enh = { 8, 8, 0, false } },
	{ "SCT-13 S4: a Terminate is recognised by a responder", "0004",
	  IW_MPA_REQUEST, IW_MPA_FRAME_TERMINATE },
	{ "SCT-13 S4: a Terminate is recognised by an initiator", "0004",
	  IW_MPA_REPLY, IW_MPA_FRAME_TERMINATE },
	{ "SCT-07: a Terminate with data is refused", "000400", IW_MPA_REQUEST,
	  IW_MPA_FRAME_PDATA_TOO_LONG },
	{ "AMB-20: an Enhanced Reject with 1 octet of data is refused", "000780", IW_MPA_REPLY,
	  IW_MPA_FRAME_BLOCK_MISSING },
	{ "AMB-20: an Enhanced Reject with 3 octets of data is refused", "0007800480", IW_MPA_REPLY,
	  IW_MPA_FRAME_BLOCK_MISSING },
	{ "an Enhanced Initiate without IRD/ORD is refused", "0005", IW_MPA_REQUEST,
	  IW_MPA_FRAME_BLOCK_MISSING },
	{ "an Enhanced Accept with only 3 octets of IRD/ORD is refused", "0006800880", IW_MPA_REPLY,
	  IW_MPA_FRAME_BLOCK_MISSING },
	{ "an SCTP session message without an octet is refused",
	  "", IW_MPA_REQUEST, IW_MPA_FRAME_BAD_CODE },
	{ "an SCTP session message with half a function code is refused",
	  "00", IW_MPA_REPLY, IW_MPA_FRAME_BAD_CODE },
	{ "an SCTP session message with function code 0 is refused",
	  "0000", IW_MPA_REQUEST, IW_MPA_FRAME_BAD_CODE },
	{ "an SCTP session message with function code 8 is refused", "000880088008", IW_MPA_REPLY,
	  IW_MPA_FRAME_BAD_CODE },
	{ "an SCTP session message with function code 256 + 5 is refused",
	  "010580088008", IW_MPA_REQUEST,
	  IW_MPA_FRAME_BAD_CODE },
	{ "an Accept is refused by a responder", "0002", IW_MPA_REQUEST,
	  IW_MPA_FRAME_BAD_CODE },
	{ "an Enhanced Reject is refused by a responder", "000780088008", IW_MPA_REQUEST,
	  IW_MPA_FRAME_BAD_CODE },
	{ "an Initiate is refused by an initiator", "0001", IW_MPA_REPLY,
	  IW_MPA_FRAME_BAD_CODE },
	{ "an Enhanced Initiate is refused by an initiator", "000580088008", IW_MPA_REPLY,
	  IW_MPA_FRAME_BAD_CODE },
};

static void message_desc(const struct message *m, char *desc)
{
	strscpy(desc, m->name, KUNIT_PARAM_DESC_SIZE);
}

static void rebuilt_desc(const struct message *m, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "%s and %s", m->name,
		 m->canonical ? "rebuilt byte for byte" : "not rebuilt");
}

KUNIT_ARRAY_PARAM(message, messages, message_desc);
KUNIT_ARRAY_PARAM(rebuilt, messages, rebuilt_desc);

/* A message that ends where its memory ends, for KASAN */
static u8 *message_bytes(struct kunit *test, const char *hex, size_t *len)
{
	u8 *buf;

	*len = strcspn(hex, " ") / 2;
	buf = kunit_kmalloc(test, *len, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, buf);
	KUNIT_ASSERT_EQ(test, 0, hex2bin(buf, hex, *len));
	return buf;
}

static enum iw_mpa_parse parse(enum iw_mpa_kind kind, const u8 *buf, size_t len,
			       struct iw_mpa_frame *frame)
{
	size_t need;

	memset(frame, UNTOUCHED, sizeof(*frame));
	return iw_mpa_sctp_parse(kind, RDMA_MPA_DIALECT_RFC6581, buf, len,
				 frame, &need);
}

static void sctp_session_message_is_parsed_to_the_expected_fields(struct kunit *test)
{
	const struct message *m = test->param_value;
	struct iw_mpa_frame frame;
	size_t len;
	u8 *buf = message_bytes(test, m->hex, &len);

	KUNIT_ASSERT_EQ(test, m->result, parse(m->kind, buf, len, &frame));
	if (m->result != IW_MPA_FRAME_COMPLETE) {
		KUNIT_EXPECT_NULL(test, memchr_inv(&frame, UNTOUCHED,
						   sizeof(frame)));
		return;
	}
	KUNIT_EXPECT_EQ(test, m->kind, frame.kind);
	KUNIT_EXPECT_EQ(test, m->reject, frame.reject);
	KUNIT_EXPECT_EQ(test, m->enhanced, frame.enhanced);
	KUNIT_EXPECT_EQ(test, m->block_missing, frame.block_missing);
	KUNIT_EXPECT_EQ(test, m->enh.ird, frame.enh.ird);
	KUNIT_EXPECT_EQ(test, m->enh.ord, frame.enh.ord);
	KUNIT_EXPECT_EQ(test, m->enh.rtr, frame.enh.rtr);
	KUNIT_EXPECT_EQ(test, m->enh.p2p, frame.enh.p2p);
	KUNIT_EXPECT_FALSE(test, frame.markers || frame.crc);
	KUNIT_ASSERT_EQ(test, m->pdata_len, frame.pdata_len);
	KUNIT_EXPECT_PTR_EQ(test, buf + len - m->pdata_len, frame.pdata);
}

static void parsed_sctp_session_message_is_rebuilt_byte_for_byte(struct kunit *test)
{
	const struct message *m = test->param_value;
	u8 built[IW_MPA_SCTP_MAX];
	struct iw_mpa_frame frame;
	size_t len, size;
	u8 *buf = message_bytes(test, m->hex, &len);

	if (!m->canonical)
		return;
	parse(m->kind, buf, len, &frame);
	for (size = 0; size < len; size++)
		KUNIT_ASSERT_EQ(test, -EMSGSIZE,
				iw_mpa_sctp_build(&frame,
						  RDMA_MPA_DIALECT_RFC6581,
						  built, size));
	KUNIT_ASSERT_EQ(test, len,
			iw_mpa_sctp_build(&frame, RDMA_MPA_DIALECT_RFC6581,
					  built, len));
	KUNIT_EXPECT_EQ(test, 0, memcmp(built, buf, len));
}

/* SCT-06: 512 octets of private data, the enhanced data included */
static void private_data_beyond_512_octets_is_rejected(struct kunit *test)
{
	enum iw_mpa_sctp_code code;
	struct iw_mpa_frame frame;
	size_t len;
	u8 *buf;

	for (code = IW_MPA_SCTP_INITIATE; code <= IW_MPA_SCTP_ENH_REJECT; code++) {
		bool request = code == IW_MPA_SCTP_INITIATE ||
			       code == IW_MPA_SCTP_ENH_INITIATE;
		bool fits;

		for (len = 513; len <= 515; len++) {
			buf = kunit_kzalloc(test, len, GFP_KERNEL);
			KUNIT_ASSERT_NOT_NULL(test, buf);
			buf[1] = code;
			fits = len <= 514 && code != IW_MPA_SCTP_TERMINATE;
			KUNIT_EXPECT_EQ(test, fits ? IW_MPA_FRAME_COMPLETE :
						IW_MPA_FRAME_PDATA_TOO_LONG,
					parse(request ? IW_MPA_REQUEST :
							IW_MPA_REPLY,
					      buf, len, &frame));
		}
	}
}

static void invalid_sctp_session_message_is_not_built(struct kunit *test)
{
	static const struct iw_mpa_frame impossible[] = {
		{ .kind = IW_MPA_REQUEST, .rev = 1, .crc = true },
		{ .kind = IW_MPA_REQUEST, .rev = 1, .markers = true },
		{ .kind = IW_MPA_REQUEST, .rev = 1, .reject = true },
		{ .kind = IW_MPA_REPLY, .rev = 1, .pdata_len = 1 },
		{ .kind = IW_MPA_REPLY, .rev = 2, .enhanced = true,
		  .enh.ird = 0x4000 },
		{ .kind = IW_MPA_REPLY, .rev = 1, .pdata_len = 513,
		  .pdata = (const u8 *)messages },
		{ .kind = IW_MPA_REPLY, .rev = 2, .enhanced = true,
		  .pdata_len = 509, .pdata = (const u8 *)messages },
	};
	u8 buf[IW_MPA_SCTP_MAX + 1];
	int i;

	for (i = 0; i < ARRAY_SIZE(impossible); i++)
		KUNIT_EXPECT_EQ_MSG(test, -EINVAL,
				    iw_mpa_sctp_build(&impossible[i],
						      RDMA_MPA_DIALECT_RFC6581,
						      buf, sizeof(buf)),
				    "%d", i);
}

/* Random contents survive the wire in either dialect (OLD-11) */
static void random_sctp_session_messages_are_parsed_as_they_were_built(struct kunit *test)
{
	u8 pdata[IW_MPA_PDATA_MAX], buf[IW_MPA_SCTP_MAX];
	struct rnd_state rnd;
	int i;

	prandom_seed_state(&rnd, SEED);
	prandom_bytes_state(&rnd, pdata, sizeof(pdata));
	for (i = 0; i < RANDOM_MESSAGES; i++) {
		u32 r = prandom_u32_state(&rnd), word = prandom_u32_state(&rnd);
		enum rdma_mpa_dialect dialect = r >> 4 & 1;
		struct iw_mpa_frame got, want = {
			.kind = r & 1,
			.rev = 2,
			.reject = r & 1 && r & 2,
			.enhanced = r & 4,
			.pdata_len = (r >> 8) % 509,
			.pdata = pdata,
		};
		size_t need;
		int len;

		if (want.enhanced)
			iw_mpa_enh_unpack(word, dialect, &want.enh);
		len = iw_mpa_sctp_build(&want, dialect, buf, sizeof(buf));
		KUNIT_ASSERT_EQ(test, 2 + (want.enhanced ? 4 : 0) +
				      want.pdata_len, len);
		KUNIT_ASSERT_EQ(test, IW_MPA_FRAME_COMPLETE,
				iw_mpa_sctp_parse(want.kind, dialect, buf, len,
						  &got, &need));
		KUNIT_ASSERT_EQ(test, want.reject, got.reject);
		KUNIT_ASSERT_EQ(test, want.enhanced, got.enhanced);
		KUNIT_ASSERT_EQ(test, want.enh.ird, got.enh.ird);
		KUNIT_ASSERT_EQ(test, want.enh.ord, got.enh.ord);
		KUNIT_ASSERT_EQ(test, want.enh.rtr, got.enh.rtr);
		KUNIT_ASSERT_EQ(test, want.enh.p2p, got.enh.p2p);
		KUNIT_ASSERT_EQ(test, want.pdata_len, got.pdata_len);
		KUNIT_ASSERT_EQ(test, 0, memcmp(got.pdata, pdata, got.pdata_len));
	}
}

/* ---- sessions */

struct stage {
	struct iw_mpa_session s;
	struct kunit *test;
	char log[256];
	size_t len;
	int enter_rv;
	int event_rv;
};

static struct stage *to_stage(struct iw_mpa_session *s)
{
	return container_of(s, struct stage, s);
}

static __printf(2, 3) void note(struct stage *st, const char *fmt, ...)
{
	va_list args;

	if (st->len)
		st->len += scnprintf(st->log + st->len,
				     sizeof(st->log) - st->len, " ");
	va_start(args, fmt);
	st->len += vscnprintf(st->log + st->len, sizeof(st->log) - st->len,
			      fmt, args);
	va_end(args);
}

static int stage_send(struct iw_mpa_session *s, const void *frame, size_t len)
{
	/* More than 32 octets are counted only */
	if (len <= 32)
		note(to_stage(s), "send:%*phN", (int)len, frame);
	else
		note(to_stage(s), "send:%zu", len);
	return 0;
}

static int stage_enter_rdma(struct iw_mpa_session *s,
			    const struct iw_mpa_rdma *rdma)
{
	struct stage *st = to_stage(s);

	note(st, "enter:%u/%u/%u%s%s", rdma->ird, rdma->ord, rdma->rtr,
	     rdma->crc || rdma->rtr_unasked ? "!" : "",
	     rdma->fenced ? "fenced" : "");
	return st->enter_rv;
}

static int stage_terminate(struct iw_mpa_session *s,
			   const struct iw_mpa_rdma *rdma,
			   enum rdma_mpa_ecode ecode)
{
	note(to_stage(s), "term:%d", ecode);
	return 0;
}

static void stage_end(struct iw_mpa_session *s)
{
	note(to_stage(s), "end");
}

static void stage_deadline(struct iw_mpa_session *s, unsigned int ms)
{
}

static int stage_event(struct iw_mpa_session *s, const struct iw_mpa_event *ev)
{
	static const char * const name[] = {
		[IW_MPA_EVENT_REQUEST]		= "request",
		[IW_MPA_EVENT_REPLY]		= "reply",
		[IW_MPA_EVENT_ESTABLISHED]	= "established",
	};
	struct stage *st = to_stage(s);

	note(st, "%s:%d", name[ev->type], ev->status);
	if (ev->pdata_len)
		note(st, "data:%u", ev->pdata_len);
	return ev->type == IW_MPA_EVENT_REQUEST ? st->event_rv : 0;
}

static const struct iw_mpa_ops stage_ops = {
	.send		= stage_send,
	.enter_rdma	= stage_enter_rdma,
	.terminate	= stage_terminate,
	.end		= stage_end,
	.deadline	= stage_deadline,
	.event		= stage_event,
};

enum props {
	P2P		= BIT(0),
	P2P_REQUIRED	= BIT(1),
	PLAIN		= BIT(2),
	FALLBACK	= BIT(3),
	STRICT		= BIT(4),
	QP_FAILS	= BIT(5),
	ULP_FAILS	= BIT(6),
};

static struct stage *new_stage(struct kunit *test, unsigned int props)
{
	const struct iw_mpa_caps caps = {
		.llp		= RDMA_MPA_LLP_SCTP,
		.max_ird	= 128,
		.max_ord	= 128,
		.rtr_send	= WRITE_READ,
		.rtr_recv	= WRITE_READ,
		.no_crc		= true,
	};
	struct iw_mpa_policy policy = iw_mpa_default_policy;
	struct stage *st = kunit_kzalloc(test, sizeof(*st), GFP_KERNEL);
	struct iw_mpa_config config;

	KUNIT_ASSERT_NOT_NULL(test, st);
	policy.model = props & P2P_REQUIRED ?
		       RDMA_MPA_MODEL_PEER_TO_PEER_REQUIRED :
		       props & P2P ? RDMA_MPA_MODEL_PEER_TO_PEER :
				     RDMA_MPA_MODEL_CLIENT_SERVER;
	policy.enhanced = !(props & PLAIN);
	policy.fallback = props & FALLBACK;
	policy.short_ird = props & STRICT ? RDMA_MPA_SHORT_IRD_REJECT :
					    RDMA_MPA_SHORT_IRD_LOWER;
	policy.crc = RDMA_MPA_CRC_OFF;
	st->test = test;
	st->enter_rv = props & QP_FAILS ? -ENOMEM : 0;
	st->event_rv = props & ULP_FAILS ? -ENOMEM : 0;
	KUNIT_ASSERT_EQ(test, 0, iw_mpa_config_init(&config, &stage_ops, &caps,
						    &policy));
	KUNIT_ASSERT_EQ(test, 0, iw_mpa_session_inherit(&st->s, &config));
	return st;
}

static void note_next(struct stage *st, enum iw_mpa_next next)
{
	if (next == IW_MPA_NEXT_CLOSE)
		note(st, "close");
	else if (next == IW_MPA_NEXT_DONE)
		note(st, "done");
	else if (next == IW_MPA_NEXT_RECONNECT)
		note(st, "reconnect");
}

static void receive(struct stage *st, const u8 *msg, size_t len)
{
	enum iw_mpa_next next;
	size_t room;

	/* SCTP has messages, no stream */
	KUNIT_EXPECT_NULL(st->test, iw_mpa_rx_room(&st->s, &room));
	next = iw_mpa_rx_message(&st->s, msg, len);
	if (next == IW_MPA_NEXT_FRAME)
		next = iw_mpa_process(&st->s, false);
	note_next(st, next);
}

/* One word of a script: a call, or the hex of a received message */
static void play(struct stage *st, const char *word)
{
	const struct iw_mpa_ulp ulp = { 8, 8, "pong", 4 };
	size_t len;
	u8 *msg;

	if (strstarts(word, "accept")) {
		int rv = iw_mpa_accept(&st->s, NULL, &ulp);

		if (rv)
			note(st, "%d", rv);
	} else if (strstarts(word, "reject")) {
		iw_mpa_reject(&st->s, "no", 2);
	} else if (strstarts(word, "babble")) {
		static const u8 much[IW_MPA_PDATA_MAX];

		iw_mpa_reject(&st->s, much, 509);
	} else if (strstarts(word, "segment")) {
		note_next(st, iw_mpa_out_of_turn(&st->s));
	} else if (strstarts(word, "silence")) {
		note_next(st, iw_mpa_timeout(&st->s));
	} else if (strstarts(word, "abort")) {
		note_next(st, iw_mpa_peer_gone(&st->s, -ECONNRESET));
	} else if (strstarts(word, "destroy")) {
		note_next(st, iw_mpa_abort(&st->s, -ECONNABORTED));
	} else if (strstarts(word, "connected")) {
		note_next(st, iw_mpa_connected(&st->s));
	} else {
		msg = message_bytes(st->test, word, &len);
		receive(st, msg, len);
		kunit_kfree(st->test, msg);
	}
}

struct scene {
	const char *name;
	unsigned int props;
	const char *script;
	const char *log;
};

static void run(struct stage *st, const struct scene *scene)
{
	const char *word = scene->script;

	while (word && *word) {
		play(st, word);
		word = strchr(word, ' ');
		word = word ? word + 1 : NULL;
	}
	KUNIT_EXPECT_STREQ(st->test, scene->log, st->log);
	iw_mpa_session_close(&st->s);
}

static void scene_desc(const struct scene *scene, char *desc)
{
	strscpy(desc, scene->name, KUNIT_PARAM_DESC_SIZE);
}

#define ASKS	"send:000500080008"
#define ASKS_P2P "send:00058008c008"
#define ASKS_PLAIN "send:0001"
#define THEN	" "

static const struct scene initiator_scenes[] = {
	{ "SCT-09 SCT-15 SCT-20: an Enhanced Accept completes the SCTP session", 0, "000600040004",
	  ASKS " enter:8/4/0 reply:0 done" },
	{ "SCT-15 AMB-22 S2: an Enhanced Accept of peer-to-peer selects the Write RTR",
	  P2P, "000680088008",
	  ASKS_P2P " enter:8/8/2 reply:0 done" },
	{ "SCT-11: data of an Enhanced Accept is passed to the ULP", 0, "000600080008706f6e67",
	  ASKS " enter:8/8/0 reply:0 data:4 done" },
	{ "SCT-16 SCT-10 S3: an Enhanced Reject is reported as ECONNREFUSED with its data",
	  P2P, "0007800480206e6f",
	  ASKS_P2P " reply:-111 data:2 close" },
	{ "AMB-20: an Enhanced Reject without data is reported as ECONNREFUSED",
	  0, "0007", ASKS " reply:-111 close" },
	{ "AMB-20: an Enhanced Reject with 3 octets ends the session with EPROTO", 0, "0007800480",
	  ASKS " end reply:-71 close" },
	{ "a plain Reject of an Enhanced Initiate is reported as ECONNREFUSED with its data",
	  0, "00036e6f",
	  ASKS " reply:-111 data:2 close" },
	{ "SCT-18: a plain Accept of an Enhanced Initiate ends the session with EPROTO",
	  0, "0002", ASKS " end reply:-71 close" },
	{ "SCT-18: an Enhanced Accept of a plain Initiate ends the session with EPROTO",
	  PLAIN, "000600080008",
	  ASKS_PLAIN " end reply:-71 close" },
	{ "SCT-18: an Enhanced Reject of a plain Initiate ends the session with EPROTO",
	  PLAIN, "000700080008",
	  ASKS_PLAIN " end reply:-71 close" },
	{ "SCT-18: an empty Enhanced Reject of a plain Initiate ends with EPROTO", PLAIN, "0007",
	  ASKS_PLAIN " end reply:-71 close" },
	{ "SCT-18: an Initiate in reply to the Initiate ends the session with EPROTO",
	  0, "000500080008",
	  ASKS " end reply:-71 close" },
	{ "SCT-19: a plain Accept of a plain Initiate completes the SCTP session",
	  PLAIN, "0002706f6e67",
	  ASKS_PLAIN " enter:8/8/0 reply:0 data:4 done" },
	{ "a plain Reject of a plain Initiate is reported as ECONNREFUSED", PLAIN, "0003",
	  ASKS_PLAIN " reply:-111 close" },
	{ "SCT-17 AMB-21 S4: a Terminate in reply to the Initiate gives ECONNRESET", 0, "0004",
	  ASKS " reply:-104 close" },
	{ "SCT-07: a Terminate with data ends the session with EPROTO", 0, "000400",
	  ASKS " end reply:-71 close" },
	{ "an unknown function code in reply to the Initiate ends the session with EPROTO",
	  0, "0009", ASKS " end reply:-71 close" },
	{ "an empty chunk in reply to the Initiate ends the session with EPROTO",
	  0, " ", ASKS " end reply:-71 close" },
	{ "SC-06: a DDP segment before the Accept ends the initiator's session with EPROTO",
	  0, "segment",
	  ASKS " end reply:-71 close" },
	{ "AMB-10: a Terminate causes a plain retry that completes",
	  FALLBACK, "0004 connected 0002",
	  ASKS " reconnect " ASKS_PLAIN " enter:8/8/0 reply:0 done" },
	{ "AMB-10: an ABORT causes a plain retry that completes", FALLBACK, "abort connected 0002",
	  ASKS " reconnect " ASKS_PLAIN " enter:8/8/0 reply:0 done" },
	{ "AMB-10: a Terminate of the plain retry ends the attempt", FALLBACK,
	  "0004 connected 0004",
	  ASKS " reconnect " ASKS_PLAIN " reply:-104 close" },
	{ "AMB-10 AMB-23: a timeout does not cause a fallback", FALLBACK, "silence",
	  ASKS " end reply:-110 close" },
	{ "AMB-23: a plain Reject does not cause a fallback", FALLBACK, "0003",
	  ASKS " reply:-111 close" },
	{ "an ABORT ends the session if fallback is not allowed", 0, "abort",
	  ASKS " reply:-104 close" },
	{ "SCT-20 SC-07: an excessive ORD gets TERM 2/0/6, then a Terminate", 0, "000600080081",
	  ASKS " term:6 end reply:-12 close" },
	{ "SCT-20 SC-07: an Accept without a usable RTR gets TERM 2/0/7, then a Terminate",
	  P2P, "0006c0080008",
	  ASKS_P2P " term:7 end reply:-71 close" },
	{ "SCT-20 SC-07: a QP failure after the Accept causes TERM 2/0/5, then a Terminate",
	  QP_FAILS, "000600080008",
	  ASKS " enter:8/8/0 term:5 end reply:-12 close" },
	{ "ERR-06: an Accept after the end of the session changes nothing", 0,
	  "0004 000600080008 accept", ASKS " reply:-104 close" THEN "close -104" },
	{ "ERR-06: a DDP segment after the end of the session changes nothing", 0, "0004 segment",
	  ASKS " reply:-104 close" THEN "close" },
	{ "ERR-06: the deadline after the end of the session changes nothing", 0, "0004 silence",
	  ASKS " reply:-104 close" THEN "close" },
	{ "ERR-06: an ABORT after the end of the session changes nothing", 0, "0004 abort",
	  ASKS " reply:-104 close" THEN "close" },
	{ "destroying the initiator's session sends a Terminate and reports ECONNABORTED",
	  0, "destroy", ASKS " end reply:-103 close" },
};

KUNIT_ARRAY_PARAM(initiator_scene, initiator_scenes, scene_desc);

static void sctp_initiator_answers_valid_and_ends_on_unexpected_messages(struct kunit *test)
{
	const struct scene *scene = test->param_value;
	const struct iw_mpa_ulp ulp = { .ird = 8, .ord = 8 };
	struct stage *st = new_stage(test, scene->props);

	KUNIT_ASSERT_EQ(test, 0, iw_mpa_connect(&st->s, &ulp));
	note_next(st, iw_mpa_connected(&st->s));
	run(st, scene);
}

static const struct scene responder_scenes[] = {
	{ "SCT-19 S5: a plain Initiate gets a plain Accept", 0, "000170696e67 accept",
	  "request:0 data:4 enter:8/8/0 send:0002706f6e67 established:0" },
	{ "SCT-14 AMB-22 S1: a peer-to-peer Accept establishes before an RTR arrives", 0,
	  "00058008c00870696e67 accept",
	  "request:0 data:4 enter:8/8/6 send:00068008c008706f6e67 established:0" },
	{ "SCT-15: a client-server Enhanced Initiate gets an Enhanced Accept",
	  0, "000500080008 accept",
	  "request:0 enter:8/8/0 send:000600080008706f6e67 established:0" },
	{ "SCT-08 SCT-16: a ULP's reject of an Enhanced Initiate sends an Enhanced Reject",
	  0, "00058008c008 reject",
	  "request:0 send:00078008c0086e6f" },
	{ "SCT-19: a ULP's reject of a plain Initiate sends a plain Reject", 0, "0001 reject",
	  "request:0 send:00036e6f" },
	{ "SCT-06: data too long for an Enhanced Reject is omitted", 0,
	  "000500080008 babble", "request:0 send:000700080008" },
	{ "SC-06 SCT-17: a failed request event sends a Terminate and no Reject", ULP_FAILS,
	  "000500080008", "request:0 end close" },
	{ "SC-06 SCT-17: a failed QP of the responder sends a Terminate and no Reject", QP_FAILS,
	  "000500080008 accept", "request:0 enter:8/8/0 end -12" },
	{ "SCT-12 AMB-21: a client-server Initiate is rejected where p2p is required", P2P_REQUIRED,
	  "000500080008 accept", "request:0 send:000700080008 -71" },
	{ "SC-06 AMB-21: a plain Initiate is answered by Terminate where p2p is required",
	  P2P_REQUIRED,
	  "0001 accept", "request:0 end -71" },
	{ "SCT-20: an Initiate with too small an IRD gets an Enhanced Reject", STRICT,
	  "000500040008 accept", "request:0 send:000700080008 -12" },
	{ "AMB-10: an Enhanced Initiate to a revision-1 responder gets a Terminate", PLAIN,
	  "000500080008", "end close" },
	{ "SCT-18: a second Initiate ends the session with a Terminate",
	  0, "000500080008 000500080008 accept",
	  "request:0 end close -104" },
	{ "an Accept from the initiator ends the session with a Terminate",
	  0, "000500080008 000600080008",
	  "request:0 end close" },
	{ "a Terminate before the ULP's answer ends the session", 0, "000500080008 0004 accept",
	  "request:0 close -104" },
	{ "a Terminate with data before the ULP's answer ends the session",
	  0, "000500080008 000400",
	  "request:0 end close" },
	{ "a Terminate in place of an Initiate closes the association", 0, "0004", "close" },
	{ "an Accept in place of an Initiate is answered by a Terminate",
	  0, "000600080008", "end close" },
	{ "an Enhanced Initiate without IRD/ORD is answered by a Terminate",
	  0, "00058008", "end close" },
	{ "SC-06: a DDP segment before the Initiate is answered by a Terminate",
	  0, "segment", "end close" },
	{ "SC-06: a DDP segment before the Accept is answered by a Terminate",
	  0, "000500080008 segment",
	  "request:0 end close" },
	{ "a timeout without an Initiate closes the association without a Terminate",
	  0, "silence", "close" },
	{ "SEC-08: a timeout of the ULP's answer sends a Terminate", 0, "000500080008 silence",
	  "request:0 end close" },
	{ "a lost association ends the responder's session", 0, "000500080008 abort",
	  "request:0 close" },
	{ "destroying the responder's session before the ULP's answer sends a Terminate",
	  0, "000500080008 destroy",
	  "request:0 end close" },
};

KUNIT_ARRAY_PARAM(responder_scene, responder_scenes, scene_desc);

static void sctp_responder_answers_valid_and_ends_on_unexpected_messages(struct kunit *test)
{
	const struct scene *scene = test->param_value;
	struct stage *st = new_stage(test, scene->props);

	iw_mpa_respond(&st->s);
	run(st, scene);
}

/* SCT-06: a session accepts the longest message, but not a longer one */
static void sctp_initiate_with_512_octets_of_data_is_the_longest_accepted(struct kunit *test)
{
	static const char * const log[] = { "request:0 data:512", "end close" };
	struct stage *st;
	u8 *msg;
	int i;

	for (i = 0; i < ARRAY_SIZE(log); i++) {
		st = new_stage(test, 0);
		msg = kunit_kzalloc(test, IW_MPA_SCTP_MAX + i, GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, msg);
		msg[1] = IW_MPA_SCTP_INITIATE;
		iw_mpa_respond(&st->s);
		receive(st, msg, IW_MPA_SCTP_MAX + i);
		KUNIT_EXPECT_STREQ(test, log[i], st->log);
		iw_mpa_session_close(&st->s);
	}
}

static struct stage *name_peer_and_connect(struct kunit *test,
					   unsigned int props)
{
	/* A separate address, because the module has one cache of peers */
	const struct sockaddr_in sin = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = cpu_to_be32(0xc0000243),
		.sin_port = cpu_to_be16(5043),
	};
	const struct iw_mpa_ulp ulp = { .ird = 8, .ord = 8 };
	struct stage *st = new_stage(test, props);

	st->s.setup->config.policy_id = 1;
	iw_mpa_set_peer(&st->s, &init_net, (const struct sockaddr *)&sin);
	KUNIT_ASSERT_EQ(test, 0, iw_mpa_connect(&st->s, &ulp));
	note_next(st, iw_mpa_connected(&st->s));
	return st;
}

/*
 * A peer whose backlog is full also sends a Terminate (RFC 5043 section 6.4):
 * the next connection requests RFC 6581 again
 */
static void sctp_terminate_does_not_make_the_next_initiate_plain(struct kunit *test)
{
	static const struct scene sctp = {
		.script = "0004 connected 0002",
		.log = ASKS " reconnect " ASKS_PLAIN " enter:8/8/0 reply:0 done",
	};

	run(name_peer_and_connect(test, FALLBACK), &sctp);
	run(name_peer_and_connect(test, FALLBACK), &sctp);
}

/**
 * struct code_case - a session control message
 * @name: of the test
 * @msg: its first bytes
 * @len: number of bytes
 * @initiate: it is an Initiate
 * @reject: it is a Reject
 */
struct code_case {
	const char *name;
	u8 msg[2];
	size_t len;
	bool initiate;
	bool reject;
};

/* Function codes of RFC 5043 section 5.2.3 and RFC 6581 section 7 */
static const struct code_case code_cases[] = {
	{ "code 1 is an Initiate", { 0, 1 }, 2, true, false },
	{ "code 2, an Accept, begins and rejects nothing", { 0, 2 }, 2, false, false },
	{ "code 3 is a Reject", { 0, 3 }, 2, false, true },
	{ "code 4, a Terminate, begins and rejects nothing", { 0, 4 }, 2, false, false },
	{ "code 5 is an Initiate", { 0, 5 }, 2, true, false },
	{ "code 6, an Accept, begins and rejects nothing", { 0, 6 }, 2, false, false },
	{ "code 7 is a Reject", { 0, 7 }, 2, false, true },
	{ "code 0x0100 is no Initiate", { 1, 0 }, 2, false, false },
	{ "one byte is no message", { 0, 1 }, 1, false, false },
};

static void code_desc(const struct code_case *c, char *desc)
{
	strscpy(desc, c->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(code, code_cases, code_desc);

static void session_control_code_is_recognised(struct kunit *test)
{
	const struct code_case *c = test->param_value;

	KUNIT_EXPECT_EQ(test, c->initiate,
			iw_mpa_sctp_is_initiate(c->msg, c->len));
	KUNIT_EXPECT_EQ(test, c->reject,
			iw_mpa_sctp_is_reject(c->msg, c->len));
}

static struct kunit_case message_cases[] = {
	KUNIT_CASE_PARAM(session_control_code_is_recognised, code_gen_params),
	KUNIT_CASE_PARAM(sctp_session_message_is_parsed_to_the_expected_fields, message_gen_params),
	KUNIT_CASE_PARAM(parsed_sctp_session_message_is_rebuilt_byte_for_byte, rebuilt_gen_params),
	KUNIT_CASE(private_data_beyond_512_octets_is_rejected),
	KUNIT_CASE(invalid_sctp_session_message_is_not_built),
	KUNIT_CASE(random_sctp_session_messages_are_parsed_as_they_were_built),
	{}
};

static struct kunit_suite message_suite = {
	.name = "iw_mpa_sctp_message",
	.test_cases = message_cases,
};

static struct kunit_case session_cases[] = {
	KUNIT_CASE_PARAM(sctp_initiator_answers_valid_and_ends_on_unexpected_messages,
			 initiator_scene_gen_params),
	KUNIT_CASE_PARAM(sctp_responder_answers_valid_and_ends_on_unexpected_messages,
			 responder_scene_gen_params),
	KUNIT_CASE(sctp_initiate_with_512_octets_of_data_is_the_longest_accepted),
	KUNIT_CASE(sctp_terminate_does_not_make_the_next_initiate_plain),
	{}
};

static struct kunit_suite session_suite = {
	.name = "iw_mpa_sctp_session",
	.test_cases = session_cases,
};

kunit_test_suites(&message_suite, &session_suite);

MODULE_DESCRIPTION("KUnit tests of session control over SCTP");
MODULE_LICENSE("GPL");
MODULE_IMPORT_NS("EXPORTED_FOR_KUNIT_TESTING");
