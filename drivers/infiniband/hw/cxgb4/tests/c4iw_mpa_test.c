// SPDX-License-Identifier: GPL-2.0
/*
 * Connection setup of cxgb4 without hardware: the driver's own cm.c, qp.c and
 * mpa.c over a fake adapter (edge.h). Messages of the adapter (CPLs) go in,
 * work requests come out; frames are compared byte for byte.
 *
 * "V" numbers in names are frames of the project's conformance matrix, with C=1
 * because crc_enabled is the default. "C" numbers in names are former defects
 * of the driver.
 */
#include "edge.h"

#include "../mpa.c"
#include "../qp.c"
#include "../cm.c"

#include <linux/delay.h>
#include <linux/file.h>
#include <linux/hex.h>
#include <linux/net.h>
#include <net/genetlink.h>
#include <net/netlink.h>
#include <rdma/rdma_netlink.h>

#include "../../../core/iw_mpa/policy.h"

/* cm.c includes the header that declares these, and allows only one include */
int cxgb4_clip_get(const struct net_device *dev, const u32 *lip, u8 v6)
{
	edge_unreached(__func__);
	return -1;
}

/* The driver calls this also for a listener on an IPv4 address */
void cxgb4_clip_release(const struct net_device *dev, const u32 *lip, u8 v6)
{
}

#define REQ "4d504120494420526571204672616d65"
#define REP "4d504120494420526570204672616d65"

enum {
	QPN		= 5,
	CHILD_TID	= 20,
	INITIATOR_TID	= 10,
	T5_DEPTH	= 128,
	PDATA_SOURCE	= 1000,
};

/* ---------------------------------------------------------------- the ULP */

/**
 * struct ulp - the iw_cm above the driver
 * @id: a connection, or a listener
 * @refs: references to @id that the driver holds
 * @count: events, by type
 * @event: the last event
 * @pdata: private data of the last event
 * @rv: result for an event
 * @options: options set with rdma_set_option()
 * @request: the last request that has not been answered
 */
struct ulp {
	struct iw_cm_id id;
	int refs;
	int count[IW_CM_EVENT_CLOSE + 1];
	struct iw_cm_event event;
	u8 pdata[U8_MAX];
	int rv;
	struct iw_mpa_layer options;
	void *request;
};

static struct ulp *to_ulp(struct iw_cm_id *id)
{
	return container_of(id, struct ulp, id);
}

static void ulp_ref(struct iw_cm_id *id)
{
	to_ulp(id)->refs++;
}

static void ulp_unref(struct iw_cm_id *id)
{
	to_ulp(id)->refs--;
}

static int ulp_event(struct iw_cm_id *id, struct iw_cm_event *event)
{
	struct ulp *ulp = to_ulp(id);

	ulp->count[event->event]++;
	ulp->event = *event;
	if (event->private_data_len)
		memcpy(ulp->pdata, event->private_data,
		       event->private_data_len);
	if (event->event == IW_CM_EVENT_CONNECT_REQUEST && !ulp->rv)
		ulp->request = event->provider_data;
	return ulp->rv;
}

const void *iw_cm_options(struct iw_cm_id *id)
{
	return &to_ulp(id)->options;
}

static void set_address(struct sockaddr_storage *ss, u32 ip, u16 port)
{
	struct sockaddr_in *sin = (struct sockaddr_in *)ss;

	sin->sin_family = AF_INET;
	sin->sin_addr.s_addr = htonl(ip);
	sin->sin_port = htons(port);
}

/* A new port for each test: iw_mpa caches peers that support only Rev 1 */
static u16 peer_port = 7471;

static void ulp_init(struct ulp *ulp)
{
	ulp->id.device = &edge->dev->ibdev;
	ulp->id.event_handler = ulp_event;
	ulp->id.add_ref = ulp_ref;
	ulp->id.rem_ref = ulp_unref;
	set_address(&ulp->id.m_local_addr, 0x0a4d0001, 40000);
	set_address(&ulp->id.m_remote_addr, 0x0a4d0002, peer_port);
}

/* ------------------------------------------------------------ the fixture */

struct fixture {
	struct ulp ulp;		/* initiator, or the responder's connection */
	struct ulp listener;
	struct c4iw_qp *qp;
	struct c4iw_cq cq;
	u8 in_error[2];
	struct ib_uobject *uobject;
	u8 pdata[PDATA_SOURCE];	/* byte i = i mod 256 */
	bool listening;
};

static struct fixture *fix;

static const struct {
	int mpa_rev, peer2peer, p2p_type, markers, crc, timeout;
	uint depth;
} params = { 2, 1, FW_RI_INIT_P2PTYPE_READ_REQ, 0, 1, 60, 32 };

static void reset_params(void)
{
	mpa_rev = params.mpa_rev;
	peer2peer = params.peer2peer;
	p2p_type = params.p2p_type;
	markers_enabled = params.markers;
	crc_enabled = params.crc;
	c4iw_ep_timeout_secs = params.timeout;
	c4iw_max_read_depth = params.depth;
}

static void no_completions(struct ib_cq *cq, void *context)
{
}

static void new_qp(struct kunit *test)
{
	struct c4iw_qp *qp = kunit_kzalloc(test, sizeof(*qp), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, qp);
	fix->qp = qp;
	qp->rhp = edge->dev;
	qp->wq.sq.qid = QPN;
	qp->wq.rq.qid = QPN + 1;
	qp->wq.qp_errp = &fix->in_error[0];
	fix->cq.cq.qp_errp = &fix->in_error[1];
	fix->cq.ibcq.comp_handler = no_completions;
	spin_lock_init(&fix->cq.lock);
	spin_lock_init(&fix->cq.comp_handler_lock);
	qp->ibqp.recv_cq = &fix->cq.ibcq;
	qp->ibqp.send_cq = &fix->cq.ibcq;
	/* The QP of a program: the driver does not touch its queues */
	fix->uobject = kunit_kzalloc(test, sizeof(*fix->uobject), GFP_KERNEL);
	qp->ibqp.uobject = (void *)fix->uobject;
	mutex_init(&qp->mutex);
	spin_lock_init(&qp->lock);
	init_waitqueue_head(&qp->wait);
	refcount_set(&qp->qp_refcnt, 1);
	init_completion(&qp->qp_rel_comp);
	KUNIT_ASSERT_EQ(test, 0, xa_insert_irq(&edge->dev->qps, QPN, qp,
					       GFP_KERNEL));
}

static void start_on(struct kunit *test, enum chip_type chip, u32 max_ordird)
{
	int i;

	edge_up(test, chip, max_ordird);
	fix = kunit_kzalloc(test, sizeof(*fix), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, fix);
	for (i = 0; i < PDATA_SOURCE; i++)
		fix->pdata[i] = i;
	ulp_init(&fix->ulp);
	ulp_init(&fix->listener);
	peer_port++;
	set_address(&fix->listener.id.m_local_addr, 0x0a4d0002, 7471);
	new_qp(test);
}

static int c4iw_test_init(struct kunit *test)
{
	reset_params();
	start_on(test, CHELSIO_CHIP_CODE(CHELSIO_T5, 0), T5_DEPTH);
	return c4iw_cm_init();
}

/* ---------------------------------------------- messages of the adapter */

static void deliver(u8 opcode, struct sk_buff *skb)
{
	c4iw_handlers[opcode](edge->dev, skb);
	flush_workqueue(workq);
}

/* Each CPL begins with opcode and tid */
static void *new_cpl(struct sk_buff **skb, size_t size, u8 opcode, u32 tid)
{
	union opcode_tid *ot;

	*skb = (alloc_skb)(256, GFP_KERNEL);
	ot = skb_put_zero(*skb, size);
	ot->opcode_tid = cpu_to_be32(MK_OPCODE_TID(opcode, tid));
	return ot;
}

static void cpl_act_establish(int atid, int tid)
{
	struct cpl_act_establish *cpl;
	struct sk_buff *skb;

	cpl = new_cpl(&skb, sizeof(*cpl), CPL_ACT_ESTABLISH, tid);
	cpl->tos_atid = cpu_to_be32(TID_TID_V(atid));
	cpl->snd_isn = cpu_to_be32(1000);
	cpl->rcv_isn = cpu_to_be32(2000);
	deliver(CPL_ACT_ESTABLISH, skb);
}

/* The tid in this message is not known to the driver */
static void cpl_act_open_rpl(int atid, int status)
{
	struct cpl_act_open_rpl *cpl;
	struct sk_buff *skb;

	edge->tid_tab[0] = edge;
	cpl = new_cpl(&skb, sizeof(*cpl), CPL_ACT_OPEN_RPL, 0);
	cpl->atid_status = cpu_to_be32(atid << AOPEN_ATID_S | status);
	deliver(CPL_ACT_OPEN_RPL, skb);
}

static void cpl_pass_accept(int tid)
{
	struct cpl_pass_accept_req *cpl;
	struct sk_buff *skb;

	cpl = new_cpl(&skb, sizeof(*cpl), CPL_PASS_ACCEPT_REQ, tid);
	cpl->tos_stid = cpu_to_be32(PASS_OPEN_TID_V(EDGE_STID));
	deliver(CPL_PASS_ACCEPT_REQ, skb);
}

static void cpl_pass_establish(int tid)
{
	struct cpl_pass_establish *cpl;
	struct sk_buff *skb;

	cpl = new_cpl(&skb, sizeof(*cpl), CPL_PASS_ESTABLISH, tid);
	cpl->snd_isn = cpu_to_be32(1000);
	cpl->rcv_isn = cpu_to_be32(2000);
	deliver(CPL_PASS_ESTABLISH, skb);
}

static void cpl_abort(int tid, u8 status)
{
	struct cpl_abort_req_rss *cpl;
	struct sk_buff *skb;

	cpl = new_cpl(&skb, sizeof(*cpl), CPL_ABORT_REQ_RSS, tid);
	cpl->status = status;
	deliver(CPL_ABORT_REQ_RSS, skb);
}

static void cpl_simple(u8 opcode, int tid)
{
	struct cpl_peer_close *cpl;
	struct sk_buff *skb;

	cpl = new_cpl(&skb, sizeof(*cpl), opcode, tid);
	deliver(opcode, skb);
}

static void cpl_fw4_ack(int tid)
{
	struct cpl_fw4_ack *cpl;
	struct sk_buff *skb;

	cpl = new_cpl(&skb, sizeof(*cpl), CPL_FW4_ACK, tid);
	cpl->credits = 1;
	deliver(CPL_FW4_ACK, skb);
}

/* Like cxgb4_pktgl_to_skb(): up to 256 bytes are copied. Of a longer message
 * the first 128 bytes are copied; the rest stays in the adapter's page.
 */
static void cpl_rx_data(int tid, const void *data, size_t len)
{
	enum { COPY_MAX = 256, PULL = 128 };
	struct cpl_rx_data hdr = {};
	size_t total = sizeof(hdr) + len;
	struct page *page = alloc_page(GFP_KERNEL | __GFP_ZERO);
	struct sk_buff *skb;
	u8 *buf = page_address(page);

	OPCODE_TID(&hdr) = cpu_to_be32(MK_OPCODE_TID(CPL_RX_DATA, tid));
	hdr.len = cpu_to_be16(len);
	memcpy(buf, &hdr, sizeof(hdr));
	memcpy(buf + sizeof(hdr), data, len);

	if (total <= COPY_MAX) {
		skb = (alloc_skb)(total, GFP_KERNEL);
		skb_put_data(skb, buf, total);
		__free_page(page);
	} else {
		skb = (alloc_skb)(PULL, GFP_KERNEL);
		skb_put_data(skb, buf, PULL);
		skb_add_rx_frag(skb, 0, page, PULL, total - PULL, PAGE_SIZE);
	}
	deliver(CPL_RX_DATA, skb);
}

/* A frame in hex, then @pdata bytes of private data, @chunk bytes at a time */
static void peer_sends_in(struct kunit *test, int tid, const char *hex,
			  size_t pdata, size_t chunk)
{
	size_t len = strlen(hex) / 2, off;
	u8 bin[1024];

	KUNIT_ASSERT_EQ(test, 0, hex2bin(bin, hex, len));
	memcpy(bin + len, fix->pdata, pdata);
	len += pdata;
	for (off = 0; off < len; off += chunk)
		cpl_rx_data(tid, bin + off, min(chunk, len - off));
}

static void peer_sends(struct kunit *test, int tid, const char *hex)
{
	peer_sends_in(test, tid, hex, 0, 1024);
}

/* Ends the remaining connections, like the adapter */
static void end_connections(void)
{
	struct c4iw_ep *ep;
	unsigned long tid;
	int atid;

	for (atid = 0; atid < EDGE_TIDS; atid++)
		if (edge->atids[atid].data)
			cpl_act_open_rpl(atid, CPL_ERR_CONN_TIMEDOUT);
	xa_for_each(&edge->dev->hwtids, tid, ep) {
		if (ep->com.state == ABORTING)
			cpl_simple(CPL_ABORT_RPL_RSS, tid);
		else
			cpl_abort(tid, CPL_ERR_CONN_TIMEDOUT);
	}
}

static void stop_listening(struct kunit *test)
{
	if (fix->listening)
		KUNIT_EXPECT_EQ(test, 0, c4iw_destroy_listen(&fix->listener.id));
	fix->listening = false;
}

static void c4iw_test_exit(struct kunit *test)
{
	struct iw_cm_id answer = { .device = &edge->dev->ibdev };

	if (fix->listener.request) {
		answer.provider_data = fix->listener.request;
		c4iw_reject_cr(&answer, NULL, 0);
	}
	end_connections();
	stop_listening(test);
	flush_workqueue(workq);
	KUNIT_EXPECT_EQ(test, 0, fix->ulp.refs);
	KUNIT_EXPECT_EQ(test, 0, fix->listener.refs);
	KUNIT_EXPECT_EQ(test, 1u, refcount_read(&fix->qp->qp_refcnt));
	edge_down(test);
	c4iw_cm_term();
}

/* --------------------------------------------------------- usual openings */

static struct c4iw_ep *ep_of(int tid)
{
	return xa_load(&edge->dev->hwtids, tid);
}

static int ulp_connects(u32 ird, u32 ord, size_t pdata_len)
{
	struct iw_cm_conn_param param = {
		.ird = ird,
		.ord = ord,
		.qpn = QPN,
		.private_data = fix->pdata,
		.private_data_len = pdata_len,
	};

	return c4iw_connect(&fix->ulp.id, &param);
}

static void initiator(struct kunit *test, u32 ird, u32 ord, size_t pdata_len)
{
	KUNIT_ASSERT_EQ(test, 0, ulp_connects(ird, ord, pdata_len));
	KUNIT_ASSERT_EQ(test, 1, edge->cpl[CPL_ACT_OPEN_REQ]);
	cpl_act_establish(0, INITIATOR_TID);
}

static void listener(struct kunit *test)
{
	KUNIT_ASSERT_EQ(test, 0, c4iw_create_listen(&fix->listener.id, 4));
	fix->listening = true;
	/* The reply's handler wakes the driver before it puts the endpoint */
	flush_workqueue(workq);
}

static void child(struct kunit *test, int tid)
{
	int replies = edge->cpl[CPL_PASS_ACCEPT_RPL];

	cpl_pass_accept(tid);
	KUNIT_ASSERT_EQ(test, replies + 1, edge->cpl[CPL_PASS_ACCEPT_RPL]);
	cpl_pass_establish(tid);
	KUNIT_ASSERT_NOT_NULL(test, ep_of(tid));
	KUNIT_ASSERT_EQ(test, MPA_REQ_WAIT, ep_of(tid)->com.state);
}

static void responder(struct kunit *test)
{
	listener(test);
	child(test, CHILD_TID);
}

static void take_request(void)
{
	fix->ulp.id.provider_data = fix->listener.request;
	fix->listener.request = NULL;
}

static int ulp_accepts(u32 ird, u32 ord, size_t pdata_len)
{
	struct iw_cm_conn_param param = {
		.ird = ird,
		.ord = ord,
		.qpn = QPN,
		.private_data = fix->pdata,
		.private_data_len = pdata_len,
	};

	take_request();
	return c4iw_accept_cr(&fix->ulp.id, &param);
}

static int ulp_rejects(const void *pdata, u8 len)
{
	take_request();
	return c4iw_reject_cr(&fix->ulp.id, pdata, len);
}

static void ulp_destroys_qp(void)
{
	struct c4iw_qp_attributes attrs = {
		.next_state = C4IW_QP_STATE_ERROR,
	};

	c4iw_modify_qp(edge->dev, fix->qp, C4IW_QP_ATTR_NEXT_STATE, &attrs, 1);
}

/* ---------------------------------------------------------- expectations */

static void expect_frame(struct kunit *test, int nr, const char *hex,
			 size_t pdata)
{
	size_t len = strlen(hex) / 2;
	u8 bin[EDGE_FRAME_MAX];

	KUNIT_EXPECT_EQ(test, nr, edge->frames);
	KUNIT_ASSERT_EQ(test, 0, hex2bin(bin, hex, len));
	memcpy(bin + len, fix->pdata, pdata);
	KUNIT_ASSERT_EQ(test, len + pdata, edge->frame_len);
	if (memcmp(bin, edge->frame, edge->frame_len))
		kunit_err(test, "%*phN", (int)min_t(size_t, edge->frame_len, 64),
			  edge->frame);
	KUNIT_EXPECT_EQ(test, 0, memcmp(bin, edge->frame, edge->frame_len));
}

static int p2ptype(void)
{
	return FW_RI_WR_P2PTYPE_G(edge->init.u.init.mpareqbit_p2ptype);
}

static int is_initiator(void)
{
	return FW_RI_WR_MPAREQBIT_G(edge->init.u.init.mpareqbit_p2ptype);
}

static u32 init_ird(void)
{
	return be32_to_cpu(edge->init.u.init.ird_max);
}

static u32 init_ord(void)
{
	return be32_to_cpu(edge->init.u.init.ord_max);
}

static void expect_reply_event(struct kunit *test, int status)
{
	KUNIT_EXPECT_EQ(test, 1, fix->ulp.count[IW_CM_EVENT_CONNECT_REPLY]);
	KUNIT_EXPECT_EQ(test, IW_CM_EVENT_CONNECT_REPLY, fix->ulp.event.event);
	KUNIT_EXPECT_EQ(test, status, fix->ulp.event.status);
	KUNIT_EXPECT_EQ(test, status ? 0 : 1, fix->ulp.refs);
}

/* No event but the outcome, however the connection ends later */
static void expect_no_other_event(struct kunit *test)
{
	end_connections();
	KUNIT_EXPECT_EQ(test, 1, fix->ulp.count[IW_CM_EVENT_CONNECT_REPLY]);
	KUNIT_EXPECT_EQ(test, 0, fix->ulp.count[IW_CM_EVENT_CLOSE]);
	KUNIT_EXPECT_EQ(test, 0, fix->ulp.count[IW_CM_EVENT_DISCONNECT]);
	KUNIT_EXPECT_EQ(test, 0, fix->ulp.refs);
}

static void listener_refs(struct kunit *test, unsigned int want)
{
	struct c4iw_listen_ep *ep = fix->listener.id.provider_data;

	KUNIT_EXPECT_EQ(test, want, kref_read(&ep->com.kref));
}

/* ------------------------------------------------- initiator: the Request */

struct request_case {
	const char *desc;
	int mpa_rev, peer2peer, p2p_type, markers, crc;
	u32 ird, ord;
	size_t pdata;
	const char *frame;
};

static const struct request_case request_cases[] = {
	{ "a Request with IRD 32, ORD 1 and a Read RTR is sent as in a bug report",
	  2, 1, 1, 0, 1, 32, 1, 32, REQ "5002002480204001" },
	{ "INI-04 V08: p2p_type=0 makes the Request offer only a Write RTR", 2, 1, 0, 0, 1, 8, 8, 0,
	  REQ "5002000480088008" },
	{ "INI-06 V05: peer2peer=0 makes the Request client-server", 2, 0, 1, 0, 1, 8, 4, 0,
	  REQ "5002000400080004" },
	{ "IRD-26 V19: an ORD of 0 is sent as 0 in the Request", 2, 1, 1, 0, 1, 0, 0, 0,
	  REQ "5002000480004000" },
	{ "FRM-12 V01: mpa_rev=1 makes the Request plain Rev 1",
	  1, 1, 1, 0, 1, 8, 8, 0, REQ "40010000" },
	{ "IOP-13: mpa_rev=0 makes the Request plain Rev 1, like mpa_rev=1",
	  0, 1, 1, 0, 1, 8, 8, 4, REQ "40010004" },
	{ "mpa_rev=3 makes the Request enhanced Rev 2, like mpa_rev=2",
	  3, 1, 0, 0, 1, 8, 8, 0, REQ "5002000480088008" },
	{ "FRM-05: markers_enabled=1 makes the Request ask for markers", 2, 1, 1, 1, 1, 8, 8, 0,
	  REQ "d002000480084008" },
	{ "FRM-06: crc_enabled=0 makes the Request ask for no CRC", 2, 1, 1, 0, 0, 8, 8, 0,
	  REQ "1002000480084008" },
	{ "p2p_type=15 makes the Request offer a Read RTR, like p2p_type=1",
	  2, 1, 15, 0, 1, 8, 8, 0,
	  REQ "5002000480084008" },
	{ "FRM-04: a Request with 231 bytes of private data fits into the work request",
	  2, 1, 1, 0, 1, 8, 8, 231, REQ "500200eb80084008" },
	{ "a Request with 232 bytes of private data is sent outside the work request",
	  2, 1, 1, 0, 1, 8, 8, 232, REQ "500200ec80084008" },
	{ "C10: a Request with 253 bytes of private data has PD_Length 257",
	  2, 1, 1, 0, 1, 8, 8, 253, REQ "5002010180084008" },
	{ "C10: a Request with 255 bytes of private data, rdma_cm's maximum, is sent",
	  2, 1, 1, 0, 1, 8, 8, 255,
	  REQ "5002010380084008" },
	{ "FRM-14: an enhanced Request with 508 bytes of private data is sent",
	  2, 1, 1, 0, 1, 8, 8, 508,
	  REQ "5002020080084008" },
	{ "FRM-13: a Rev 1 Request with 512 bytes of private data is sent",
	  1, 1, 1, 0, 1, 8, 8, 512,
	  REQ "40010200" },
};

static void request_desc(const struct request_case *c, char *desc)
{
	strscpy(desc, c->desc, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(request, request_cases, request_desc);

static void mpa_request_follows_the_module_parameters(struct kunit *test)
{
	const struct request_case *c = test->param_value;

	mpa_rev = c->mpa_rev;
	peer2peer = c->peer2peer;
	p2p_type = c->p2p_type;
	markers_enabled = c->markers;
	crc_enabled = c->crc;
	edge_replug(test);
	initiator(test, c->ird, c->ord, c->pdata);

	expect_frame(test, 1, c->frame, c->pdata);
	KUNIT_EXPECT_EQ(test, (u32)INITIATOR_TID, edge->frame_tid);
	KUNIT_EXPECT_EQ(test, 1, edge->flowcs);
	KUNIT_EXPECT_EQ(test, 0, edge->inits);
	KUNIT_EXPECT_EQ(test, edge->frame_len <= 255, edge->frame_imm);
	KUNIT_EXPECT_EQ(test, (u32)(1000 + edge->frame_len),
			ep_of(INITIATOR_TID)->snd_seq);
	/* fw4_ack() frees it */
	KUNIT_EXPECT_NOT_NULL(test, ep_of(INITIATOR_TID)->mpa_skb);
	cpl_fw4_ack(INITIATOR_TID);
	KUNIT_EXPECT_NULL(test, ep_of(INITIATOR_TID)->mpa_skb);
}

/* SEC-11: c4iw_connect() fails at once and leaves no state */
static void connect_beyond_the_adapters_limits_is_refused(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, -EINVAL, ulp_connects(33, 8, 0));
	KUNIT_EXPECT_EQ(test, -EINVAL, ulp_connects(8, 33, 0));
	KUNIT_EXPECT_EQ(test, -EINVAL, ulp_connects(8, 8, 509));
	KUNIT_EXPECT_EQ(test, 0, edge->cpl[CPL_ACT_OPEN_REQ]);
	KUNIT_EXPECT_EQ(test, 0, fix->ulp.refs);
	KUNIT_EXPECT_EQ(test, 0, ulp_connects(32, 32, 508));
}

/* The failure is reported once, and never on a NULL cm_id */
static void request_alloc_failure_is_reported_once(struct kunit *test)
{
	KUNIT_ASSERT_EQ(test, 0, ulp_connects(8, 8, 0));
	edge->skbs_left = 0;
	cpl_act_establish(0, INITIATOR_TID);
	edge->skbs_left = EDGE_NO_LIMIT;
	KUNIT_EXPECT_EQ(test, 0, edge->frames);
	expect_reply_event(test, -ENOMEM);
	KUNIT_EXPECT_EQ(test, 1, edge->cpl[CPL_CLOSE_CON_REQ]);
	expect_no_other_event(test);
}

static void request_send_failure_is_reported_once(struct kunit *test)
{
	KUNIT_ASSERT_EQ(test, 0, ulp_connects(8, 8, 0));
	edge->l2t_rv = -EIO;
	cpl_act_establish(0, INITIATOR_TID);
	expect_reply_event(test, -EIO);
	KUNIT_EXPECT_NULL(test, ep_of(INITIATOR_TID)->mpa_skb);
	expect_no_other_event(test);
}

/* --------------------------------------------------- initiator: the Reply */

struct reply_case {
	const char *desc;
	int p2p_type;
	u32 ird, ord;		/* asked for */
	const char *reply;
	int p2ptype;
	u32 init_ird, init_ord;
	u8 event_ird, event_ord;
};

/* ird in the event is the number of Reads that we may issue */
static const struct reply_case reply_cases[] = {
	{ "RTR-06 V45: a Read RTR, offered and accepted, is installed", 1, 8, 8,
	  REP "5002000480084008", FW_RI_INIT_P2PTYPE_READ_REQ, 8, 8, 8, 8 },
	{ "RTR-06 V35: a Write RTR, offered and accepted, is installed", 0, 8, 8,
	  REP "5002000480088008", FW_RI_INIT_P2PTYPE_RDMA_WRITE, 8, 8, 8, 8 },
	{ "a bug report's Accept of only a Read RTR installs Read, though Write was offered",
	  0, 8, 8,
	  REP "5002000480084008", FW_RI_INIT_P2PTYPE_READ_REQ, 8, 8, 8, 8 },
	{ "RTR-09: an Accept of only a Write RTR installs Write, though Read was offered", 1, 8, 8,
	  REP "5002000480088008", FW_RI_INIT_P2PTYPE_RDMA_WRITE, 8, 8, 8, 8 },
	{ "V37 V38: an Accept of all RTR kinds installs the kind of p2p_type, Read", 1, 8, 8,
	  REP "50020004c008c008", FW_RI_INIT_P2PTYPE_READ_REQ, 8, 8, 8, 8 },
	{ "IRD-08 IRD-09 V36: a Read RTR at ORD 0 installs one read slot for the provider", 1, 0, 0,
	  REP "5002000480014000", FW_RI_INIT_P2PTYPE_READ_REQ, 0, 1, 0, 0 },
	{ "IRD-16 C2: ORD 32 of an Accept raises our IRD to the limit of 32", 1, 8, 8,
	  REP "5002000480084020", FW_RI_INIT_P2PTYPE_READ_REQ, 32, 8, 8, 32 },
	{ "IRD-14 IRD-17: IRD 2 of an Accept lowers our ORD to 2", 1, 8, 8,
	  REP "5002000480024008", FW_RI_INIT_P2PTYPE_READ_REQ, 8, 2, 2, 8 },
	{ "IRD-22 IRD-23 V41: IRD and ORD 0x3fff of an Accept keep our IRD and ORD", 1, 8, 4,
	  REP "50020004bfff7fff", FW_RI_INIT_P2PTYPE_READ_REQ, 8, 4, 4, 8 },
};

static void reply_desc(const struct reply_case *c, char *desc)
{
	strscpy(desc, c->desc, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(reply, reply_cases, reply_desc);

static void reply_moves_the_qp_to_rts(struct kunit *test)
{
	const struct reply_case *c = test->param_value;
	const struct fw_ri_init *init = &edge->init.u.init;

	p2p_type = c->p2p_type;
	edge_replug(test);
	initiator(test, c->ird, c->ord, 0);
	peer_sends(test, INITIATOR_TID, c->reply);

	KUNIT_EXPECT_EQ(test, 1, edge->inits);
	KUNIT_EXPECT_EQ(test, 1, is_initiator());
	KUNIT_EXPECT_EQ(test, c->p2ptype, p2ptype());
	KUNIT_EXPECT_EQ(test, c->init_ird, init_ird());
	KUNIT_EXPECT_EQ(test, c->init_ord, init_ord());
	KUNIT_EXPECT_EQ(test, FW_RI_MPA_IETF_ENABLE | FW_RI_MPA_CRC_ENABLE,
			(int)init->mpa_attrs);
	/* FPDUs follow Request and Reply in the streams */
	KUNIT_EXPECT_EQ(test, 1024u, be32_to_cpu(init->iss));
	KUNIT_EXPECT_EQ(test, 2024u, be32_to_cpu(init->irs));
	/* Some peers reject an STag of 0 in the RTR */
	if (c->p2ptype == FW_RI_INIT_P2PTYPE_READ_REQ) {
		KUNIT_EXPECT_EQ(test, FW_RI_RDMA_READ_WR,
				(int)init->u.read.opcode);
		KUNIT_EXPECT_NE(test, 0u, be32_to_cpu(init->u.read.stag_src));
		KUNIT_EXPECT_NE(test, 0u, be32_to_cpu(init->u.read.stag_sink));
		KUNIT_EXPECT_EQ(test, 0u, be32_to_cpu(init->u.read.plen));
	} else {
		KUNIT_EXPECT_EQ(test, FW_RI_RDMA_WRITE_WR,
				(int)init->u.write.opcode);
		KUNIT_EXPECT_NE(test, 0u, be32_to_cpu(init->u.write.stag_sink));
		KUNIT_EXPECT_EQ(test, 0u, be32_to_cpu(init->u.write.plen));
	}

	expect_reply_event(test, 0);
	KUNIT_EXPECT_EQ(test, c->event_ird, fix->ulp.event.ird);
	KUNIT_EXPECT_EQ(test, c->event_ord, fix->ulp.event.ord);
	KUNIT_EXPECT_EQ(test, 1, edge->frames);
	KUNIT_EXPECT_EQ(test, 0, edge->terms);
	KUNIT_EXPECT_EQ(test, FPDU_MODE, ep_of(INITIATOR_TID)->com.state);

	/* The end of an established connection is another event */
	cpl_abort(INITIATOR_TID, CPL_ERR_CONN_RESET);
	KUNIT_EXPECT_EQ(test, 1, fix->ulp.count[IW_CM_EVENT_CONNECT_REPLY]);
	KUNIT_EXPECT_EQ(test, 1, fix->ulp.count[IW_CM_EVENT_CLOSE]);
}

/* IOP-09: a peer that has not agreed to an RTR gets none, despite peer2peer */
static void plain_reply_is_not_followed_by_an_rtr(struct kunit *test)
{
	mpa_rev = 1;
	edge_replug(test);
	initiator(test, 8, 8, 0);
	peer_sends(test, INITIATOR_TID, REP "4001000470696e67");
	expect_reply_event(test, 0);
	KUNIT_EXPECT_EQ(test, FW_RI_INIT_P2PTYPE_DISABLED, p2ptype());
	KUNIT_EXPECT_EQ(test, 4, (int)fix->ulp.event.private_data_len);
	KUNIT_EXPECT_EQ(test, 0, memcmp(fix->ulp.pdata, "ping", 4));
	KUNIT_EXPECT_EQ(test, 8, (int)fix->ulp.event.ird);
	KUNIT_EXPECT_EQ(test, 8u, init_ord());
}

/* RTR-30 V33 */
static void client_server_reply_is_not_followed_by_an_rtr(struct kunit *test)
{
	peer2peer = 0;
	edge_replug(test);
	initiator(test, 8, 4, 0);
	peer_sends(test, INITIATOR_TID, REP "5002000400040008");
	expect_reply_event(test, 0);
	KUNIT_EXPECT_EQ(test, FW_RI_INIT_P2PTYPE_DISABLED, p2ptype());
	KUNIT_EXPECT_EQ(test, 8u, init_ird());
	KUNIT_EXPECT_EQ(test, 4u, init_ord());
}

/* FRM-05: the peer's M is about our FPDUs, our M about the peer's */
static void markers_are_sent_if_the_peer_requests_them(struct kunit *test)
{
	initiator(test, 8, 8, 0);
	peer_sends(test, INITIATOR_TID, REP "d002000480084008");
	KUNIT_EXPECT_EQ(test, (int)(FW_RI_MPA_IETF_ENABLE |
				    FW_RI_MPA_CRC_ENABLE |
				    FW_RI_MPA_TX_MARKER_ENABLE),
			(int)edge->init.u.init.mpa_attrs);
}

static void markers_are_received_if_enabled(struct kunit *test)
{
	markers_enabled = 1;
	crc_enabled = 0;
	edge_replug(test);
	initiator(test, 8, 8, 0);
	peer_sends(test, INITIATOR_TID, REP "1002000480084008");
	KUNIT_EXPECT_EQ(test, (int)(FW_RI_MPA_IETF_ENABLE |
				    FW_RI_MPA_RX_MARKER_ENABLE),
			(int)edge->init.u.init.mpa_attrs);
}

/* --------------------------------------------- initiator: TERM, or nothing */

struct term_case {
	const char *desc;
	const char *reply;
	int status;
	u8 ecode;
};

static const struct term_case term_cases[] = {
	{ "RTR-12 V47: a client-server Accept of a p2p Request gets TERM 2/0/7",
	  REP "5002000400080008", -EPROTO,
	  RDMA_MPA_ECODE_RTR },
	{ "RTR-11 V50: a p2p Accept without an RTR kind gets TERM 2/0/7",
	  REP "5002000480080008", -EPROTO,
	  RDMA_MPA_ECODE_RTR },
	{ "RTR-07 V34: an Accept of only a Send RTR, unknown to the firmware, gets TERM 2/0/7",
	  REP "50020004c0080008", -EPROTO, RDMA_MPA_ECODE_RTR },
	{ "RTR-24: an Accept of only a Read RTR with IRD 0 gets TERM 2/0/7",
	  REP "5002000480004008", -EPROTO,
	  RDMA_MPA_ECODE_RTR },
	{ "IRD-15 C2: an Accept with ORD 33 gets TERM 2/0/6 at limit 32, adapter maximum 128",
	  REP "5002000480084021", -ENOMEM, RDMA_MPA_ECODE_IRD },
	{ "IRD-15 C2: an Accept with ORD 128 gets TERM 2/0/6 at limit 32",
	  REP "5002000480084080", -ENOMEM,
	  RDMA_MPA_ECODE_IRD },
	{ "ERR-17: an Accept with both ORD and RTR unacceptable gets TERM 2/0/6",
	  REP "5002000480080021", -ENOMEM,
	  RDMA_MPA_ECODE_IRD },
};

static void term_desc(const struct term_case *c, char *desc)
{
	strscpy(desc, c->desc, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(term, term_cases, term_desc);

/* ERR-13 ERR-18 ERR-01 */
static void unacceptable_reply_causes_a_term(struct kunit *test)
{
	const struct term_case *c = test->param_value;

	initiator(test, 8, 8, 0);
	peer_sends(test, INITIATOR_TID, c->reply);

	/* To send a TERM the firmware has to be in RDMA mode, without an RTR */
	KUNIT_EXPECT_EQ(test, 1, edge->inits);
	KUNIT_EXPECT_EQ(test, FW_RI_INIT_P2PTYPE_DISABLED, p2ptype());
	KUNIT_EXPECT_EQ(test, 1, edge->terms);
	KUNIT_EXPECT_EQ(test, 0x20, (int)edge->term[0]);
	KUNIT_EXPECT_EQ(test, c->ecode, edge->term[1]);
	KUNIT_EXPECT_EQ(test, 0, edge->finis);
	KUNIT_EXPECT_EQ(test, 0, edge->closes_before_term);
	KUNIT_EXPECT_EQ(test, 1, edge->cpl[CPL_CLOSE_CON_REQ]);
	KUNIT_EXPECT_EQ(test, 0, edge->cpl[CPL_ABORT_REQ]);
	expect_reply_event(test, c->status);

	ulp_destroys_qp();
	expect_no_other_event(test);
}

/* ERR-19: the failure's event has the peer's depths and private data */
static void failed_connect_reports_the_peers_private_data(struct kunit *test)
{
	initiator(test, 8, 8, 0);
	peer_sends(test, INITIATOR_TID, REP "5002000880080008706f6e67");
	expect_reply_event(test, -EPROTO);
	KUNIT_EXPECT_EQ(test, 4, (int)fix->ulp.event.private_data_len);
	KUNIT_EXPECT_EQ(test, 0, memcmp(fix->ulp.pdata, "pong", 4));
	ulp_destroys_qp();
}

struct bad_reply_case {
	const char *desc;
	const char *reply;
	size_t pdata;
	int status;
	const char *ulp_data;
};

static const struct bad_reply_case bad_reply_cases[] = {
	{ "C3 SEC-04: an enhanced Accept with PD_Length 0 fails with EPROTO", REP "50020000", 0,
	  -EPROTO },
	{ "C3 SEC-04: an enhanced Accept with PD_Length 1 fails with EPROTO", REP "5002000180", 0,
	  -EPROTO },
	{ "C3 SEC-04: an enhanced Accept with PD_Length 2 fails with EPROTO", REP "500200028008", 0,
	  -EPROTO },
	{ "C3 SEC-04: an enhanced Accept with PD_Length 3 fails with EPROTO",
	  REP "50020003800840", 0,
	  -EPROTO },
	{ "C3 V31: a plain Reject is reported as ECONNREFUSED with its data",
	  REP "600100026e6f", 0, -ECONNREFUSED,
	  "no" },
	{ "C3: a plain Reject without data is reported as ECONNREFUSED without data",
	  REP "60010000", 0,
	  -ECONNREFUSED, "" },
	{ "C3 AMB-03 V49: an enhanced Reject with PD_Length 0 is reported without data",
	  REP "70020000", 0,
	  -ECONNREFUSED, "" },
	{ "IRD-06 V43: an enhanced Reject is reported as ECONNREFUSED with its data",
	  REP "700200088008c00862757379", 0,
	  -ECONNREFUSED, "busy" },
	{ "C4 FRM-20: a Reply header with PD_Length 513 fails with EPROTO", REP "50020201", 0,
	  -EPROTO },
	{ "SEC-03: a Reply header with PD_Length 65535 fails with EPROTO",
	  REP "5002ffff", 0, -EPROTO },
	{ "C11 IOP-13: a Reply of Rev 0 fails with EPROTO", REP "40000004", 4, -EPROTO },
	{ "IOP-13 V26: a Reply of Rev 3 fails with EPROTO", REP "5003000400080004", 0, -EPROTO },
	{ "IOP-14 V48: a plain Accept of an enhanced Request fails with EPROTO",
	  REP "4001000400080004", 0,
	  -EPROTO },
	{ "C11 IOP-14: a plain Rev 2 Accept of an enhanced Request fails with EPROTO",
	  REP "4002000400080004", 0,
	  -EPROTO },
	{ "INI-08: a Request in place of the Reply fails with EPROTO",
	  REQ "5002000480084008", 0, -EPROTO },
	{ "SEC-06: a Reply followed by one byte fails with EPROTO",
	  REP "500200048008400800", 0, -EPROTO },
	{ "SEC-06: a Reply followed by 500 bytes fails with EPROTO",
	  REP "5002000480084008", 500, -EPROTO },
};

static void bad_reply_desc(const struct bad_reply_case *c, char *desc)
{
	strscpy(desc, c->desc, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(bad_reply, bad_reply_cases, bad_reply_desc);

/* The event shows neither the ULP's own private data nor other memory */
static void bad_reply_is_reported_once(struct kunit *test)
{
	const struct bad_reply_case *c = test->param_value;
	const char *want = c->ulp_data ?: "";

	initiator(test, 8, 8, 64);
	peer_sends_in(test, INITIATOR_TID, c->reply, c->pdata, 1024);
	expect_reply_event(test, c->status);
	if (c->ulp_data) {
		KUNIT_EXPECT_EQ(test, strlen(want),
				(size_t)fix->ulp.event.private_data_len);
		KUNIT_EXPECT_EQ(test, 0, memcmp(fix->ulp.pdata, want,
						strlen(want)));
	}
	KUNIT_EXPECT_EQ(test, 0, edge->inits);
	KUNIT_EXPECT_EQ(test, 0, edge->terms);
	KUNIT_EXPECT_EQ(test, 1, edge->cpl[CPL_ABORT_REQ]);
	KUNIT_EXPECT_EQ(test, 1, edge->frames);
	/* The endpoint is in ABORTING when further data arrives */
	peer_sends(test, INITIATOR_TID, REP "5002000480084008");
	expect_no_other_event(test);
}

struct size_case {
	const char *desc;
	const char *frame;
	size_t pdata;
	u8 told;
};

static const struct size_case reply_sizes[] = {
	{ "231 bytes of private data of a Reply are delivered", REP "500200eb80084008", 231, 231 },
	{ "C4: a Reply with PD_Length 256 delivers 252 bytes of private data",
	  REP "5002010080084008", 252, 252 },
	{ "C10: a Reply with PD_Length 257 delivers 253 bytes of private data",
	  REP "5002010180084008", 253, 253 },
	{ "I5: 256 bytes of private data of a Reply are cut to iw_cm's 255",
	  REP "5002010480084008", 256, 255 },
	{ "FRM-13: a Reply with PD_Length 512 delivers 255 bytes, iw_cm's maximum",
	  REP "5002020080084008", 508, 255 },
};

static void size_desc(const struct size_case *c, char *desc)
{
	strscpy(desc, c->desc, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(reply_size, reply_sizes, size_desc);

/* Of a frame of over 240 bytes, only the first 112 are in the skb's head */
static void long_mpa_reply_is_read_from_the_pages_of_its_skb(struct kunit *test)
{
	const struct size_case *c = test->param_value;
	static const size_t chunks[] = { 1024, 300, 100, 7 };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(chunks); i++) {
		memset(&fix->ulp.count, 0, sizeof(fix->ulp.count));
		edge->cpl[CPL_ACT_OPEN_REQ] = 0;
		fix->qp->attr.state = C4IW_QP_STATE_IDLE;
		initiator(test, 8, 8, 0);
		peer_sends_in(test, INITIATOR_TID, c->frame, c->pdata,
			      chunks[i]);
		expect_reply_event(test, 0);
		KUNIT_EXPECT_EQ(test, c->told,
				fix->ulp.event.private_data_len);
		KUNIT_EXPECT_EQ(test, 0, memcmp(fix->ulp.pdata, fix->pdata,
						c->told));
		end_connections();
	}
}

/* SEC-05: V38 with all its cuts */
static void reply_may_arrive_in_any_portions(struct kunit *test)
{
	size_t chunk;

	for (chunk = 1; chunk <= 28; chunk++) {
		memset(&fix->ulp.count, 0, sizeof(fix->ulp.count));
		edge->cpl[CPL_ACT_OPEN_REQ] = 0;
		fix->qp->attr.state = C4IW_QP_STATE_IDLE;
		initiator(test, 8, 8, 0);
		peer_sends_in(test, INITIATOR_TID,
			      REP "50020008c008c008706f6e67", 0, chunk);
		expect_reply_event(test, 0);
		KUNIT_EXPECT_EQ(test, 0, memcmp(fix->ulp.pdata, "pong", 4));
		end_connections();
	}
}

/* INI-15: if iw_cm has no memory for private data, the event has none */
static void reply_event_is_repeated_without_data_if_iw_cm_has_no_memory(struct kunit *test)
{
	initiator(test, 8, 8, 0);
	fix->ulp.rv = -ENOMEM;
	peer_sends(test, INITIATOR_TID, REP "5002000880084008706f6e67");
	fix->ulp.rv = 0;
	KUNIT_EXPECT_EQ(test, 2, fix->ulp.count[IW_CM_EVENT_CONNECT_REPLY]);
	KUNIT_EXPECT_EQ(test, 0, (int)fix->ulp.event.private_data_len);
	KUNIT_EXPECT_NULL(test, fix->ulp.event.private_data);
}

/* SEC-08: the endpoint's timer expires now */
static void expire(struct c4iw_ep *ep)
{
	/* The timeout may put the last other reference */
	c4iw_get_ep(&ep->com);
	mod_timer(&ep->timer, jiffies);
	while (timer_pending(&ep->timer))
		msleep(20);
	/* On a busy host the timer may still run when it is deleted */
	timer_delete_sync(&ep->timer);
	flush_workqueue(workq);
	c4iw_put_ep(&ep->com);
}

static void silent_responder_times_out(struct kunit *test)
{
	initiator(test, 8, 8, 0);
	KUNIT_EXPECT_GT(test, ep_of(INITIATOR_TID)->timer.expires,
			jiffies + 50 * HZ);
	expire(ep_of(INITIATOR_TID));
	expect_reply_event(test, -ETIMEDOUT);
	KUNIT_EXPECT_EQ(test, 1, edge->cpl[CPL_ABORT_REQ]);
	expect_no_other_event(test);
}

static void fin_instead_of_a_reply_is_reported_once(struct kunit *test)
{
	mpa_rev = 1;
	edge_replug(test);
	initiator(test, 8, 8, 0);
	cpl_simple(CPL_PEER_CLOSE, INITIATOR_TID);
	expect_reply_event(test, -ECONNRESET);
	KUNIT_EXPECT_EQ(test, 1, edge->cpl[CPL_CLOSE_CON_REQ]);
	KUNIT_EXPECT_TRUE(test, timer_pending(&ep_of(INITIATOR_TID)->timer));
	cpl_simple(CPL_CLOSE_CON_RPL, INITIATOR_TID);
	KUNIT_EXPECT_NULL(test, ep_of(INITIATOR_TID));
	expect_no_other_event(test);
}

/* INI-14: the firmware refuses; a QP that is not in RTS sends no TERM */
static void failed_rdma_init_of_the_qp_is_reported_once(struct kunit *test)
{
	initiator(test, 8, 8, 0);
	edge->fw_rv = -ENOMEM;
	peer_sends(test, INITIATOR_TID, REP "5002000480084008");
	expect_reply_event(test, -ENOMEM);
	KUNIT_EXPECT_EQ(test, 1, edge->inits);
	KUNIT_EXPECT_EQ(test, 0, edge->terms);
	KUNIT_EXPECT_EQ(test, 0ULL,
			edge_counter(test, 1, "mpa_term_sent_local"));
	KUNIT_EXPECT_EQ(test, 1, edge->cpl[CPL_ABORT_REQ]);
	/* The QP's IRD is released exactly once */
	KUNIT_EXPECT_EQ(test, 1024u, edge->dev->avail_ird);
	KUNIT_EXPECT_EQ(test, 0u, fix->qp->attr.max_ird);
	expect_no_other_event(test);
}

struct depth_case {
	const char *desc;
	int chip;
	u32 adapter;
	uint parameter;
	u32 limit;
};

static const struct depth_case depth_cases[] = {
	{ "a T4 with a limit of 16 and parameter 32 supports depths up to 16",
	  CHELSIO_T4, 16, 32, 16 },
	{ "a T4 with a limit of 32 and parameter 128 supports depths up to 32",
	  CHELSIO_T4, 32, 128, 32 },
	{ "a T5 with a limit of 128 and parameter 32 supports depths up to 32",
	  CHELSIO_T5, 128, 32, 32 },
	{ "a T5 with a limit of 128 and parameter 128 supports depths up to 128",
	  CHELSIO_T5, 128, 128, 128 },
	{ "a T6 with a limit of 128 and parameter 64 supports depths up to 64",
	  CHELSIO_T6, 128, 64, 64 },
};

static void depth_desc(const struct depth_case *c, char *desc)
{
	strscpy(desc, c->desc, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(depth, depth_cases, depth_desc);

static void set_depths(struct kunit *test, const struct depth_case *c)
{
	edge->dev->rdev.lldi.adapter_type = CHELSIO_CHIP_CODE(c->chip, 0);
	edge->dev->rdev.lldi.max_ordird_qp = c->adapter;
	c4iw_max_read_depth = c->parameter;
	edge_replug(test);
}

/* IRD-15 IRD-16: the driver accepts no more than the adapter can install */
static void ord_of_a_reply_is_checked_against_the_adapters_ird(struct kunit *test)
{
	const struct depth_case *c = test->param_value;
	char reply[64];

	set_depths(test, c);
	initiator(test, 1, 1, 0);
	snprintf(reply, sizeof(reply), REP "5002000480014%03x", c->limit);
	peer_sends(test, INITIATOR_TID, reply);
	expect_reply_event(test, 0);
	KUNIT_EXPECT_EQ(test, c->limit, init_ird());
	end_connections();

	memset(&fix->ulp.count, 0, sizeof(fix->ulp.count));
	fix->qp->attr.state = C4IW_QP_STATE_IDLE;
	edge->cpl[CPL_ACT_OPEN_REQ] = 0;
	initiator(test, 1, 1, 0);
	snprintf(reply, sizeof(reply), REP "5002000480014%03x", c->limit + 1);
	peer_sends(test, INITIATOR_TID, reply);
	expect_reply_event(test, -ENOMEM);
	KUNIT_EXPECT_EQ(test, 1, edge->terms);
	KUNIT_EXPECT_EQ(test, RDMA_MPA_ECODE_IRD, (int)edge->term[1]);
	ulp_destroys_qp();
}

/* ------------------------------------------ initiator: retry with Rev 1 */

/* IOP-06 IOP-07: same data, Rev 1, and the ULP gets no event */
static void reset_after_the_request_is_retried_with_rev1(struct kunit *test)
{
	initiator(test, 8, 8, 20);
	expect_frame(test, 1, REQ "5002001880084008", 20);
	cpl_abort(INITIATOR_TID, CPL_ERR_CONN_RESET);
	KUNIT_EXPECT_EQ(test, 1, edge->cpl[CPL_ABORT_RPL]);
	KUNIT_EXPECT_EQ(test, 1, edge->tid_releases);
	KUNIT_EXPECT_EQ(test, 2, edge->cpl[CPL_ACT_OPEN_REQ]);
	KUNIT_EXPECT_EQ(test, 0, fix->ulp.count[IW_CM_EVENT_CONNECT_REPLY]);

	cpl_act_establish(0, INITIATOR_TID + 1);
	expect_frame(test, 2, REQ "40010014", 20);
	KUNIT_EXPECT_EQ(test, (u32)INITIATOR_TID + 1, edge->frame_tid);
	KUNIT_EXPECT_EQ(test, 0, fix->ulp.count[IW_CM_EVENT_CONNECT_REPLY]);
	KUNIT_EXPECT_TRUE(test,
			  timer_pending(&ep_of(INITIATOR_TID + 1)->timer));

	peer_sends(test, INITIATOR_TID + 1, REP "40010004706f6e67");
	expect_reply_event(test, 0);
	KUNIT_EXPECT_EQ(test, 4, (int)fix->ulp.event.private_data_len);
	KUNIT_EXPECT_EQ(test, 0, memcmp(fix->ulp.pdata, "pong", 4));
	/* IOP-09 */
	KUNIT_EXPECT_EQ(test, FW_RI_INIT_P2PTYPE_DISABLED, p2ptype());
}

/* IOP-03 IOP-06: a responder may also send FIN; we abort the connection */
static void fin_after_the_request_is_retried_with_rev1(struct kunit *test)
{
	initiator(test, 8, 8, 20);
	cpl_simple(CPL_PEER_CLOSE, INITIATOR_TID);
	KUNIT_EXPECT_EQ(test, 1, edge->cpl[CPL_ABORT_REQ]);
	KUNIT_EXPECT_EQ(test, 1, edge->cpl[CPL_ACT_OPEN_REQ]);
	cpl_simple(CPL_ABORT_RPL_RSS, INITIATOR_TID);
	KUNIT_EXPECT_EQ(test, 1, edge->tid_releases);
	KUNIT_EXPECT_EQ(test, 2, edge->cpl[CPL_ACT_OPEN_REQ]);
	KUNIT_EXPECT_EQ(test, 0, fix->ulp.count[IW_CM_EVENT_CONNECT_REPLY]);

	cpl_act_establish(0, INITIATOR_TID + 1);
	expect_frame(test, 2, REQ "40010014", 20);
	/* The second FIN ends the session */
	cpl_simple(CPL_PEER_CLOSE, INITIATOR_TID + 1);
	expect_reply_event(test, -ECONNRESET);
	KUNIT_EXPECT_EQ(test, 1, edge->cpl[CPL_CLOSE_CON_REQ]);
	cpl_simple(CPL_CLOSE_CON_RPL, INITIATOR_TID + 1);
	expect_no_other_event(test);
}

/* AMB-23: the next connection begins with Rev 2 */
static void rev1_peer_is_not_remembered(struct kunit *test)
{
	initiator(test, 8, 8, 0);
	cpl_abort(INITIATOR_TID, CPL_ERR_CONN_RESET);
	cpl_act_establish(0, INITIATOR_TID + 1);
	peer_sends(test, INITIATOR_TID + 1, REP "60010000");
	expect_reply_event(test, -ECONNREFUSED);
	end_connections();

	KUNIT_ASSERT_EQ(test, 0, ulp_connects(8, 8, 0));
	cpl_act_establish(0, INITIATOR_TID + 2);
	expect_frame(test, 3, REQ "5002000480084008", 0);
}

/* TCP does not connect */
static void refused_tcp_connection_is_reported_once(struct kunit *test)
{
	KUNIT_ASSERT_EQ(test, 0, ulp_connects(8, 8, 0));
	cpl_act_open_rpl(0, CPL_ERR_CONN_RESET);
	expect_reply_event(test, -ECONNRESET);
	KUNIT_EXPECT_EQ(test, 0, edge->frames);
	expect_no_other_event(test);
}

/* ARP gets no answer; the error handler runs in a soft interrupt */
static void arp_failure_is_reported_once(struct kunit *test)
{
	edge->neigh_silent = true;
	KUNIT_ASSERT_EQ(test, 0, ulp_connects(8, 8, 0));
	KUNIT_EXPECT_EQ(test, 1ULL, edge_half_open(test, 1));
	edge_fail_arp(test, 0);
	flush_workqueue(workq);
	expect_reply_event(test, -EHOSTUNREACH);
	KUNIT_EXPECT_NULL(test, edge->atids[0].data);
	KUNIT_EXPECT_EQ(test, 0, edge->l2t_refs);
	KUNIT_EXPECT_EQ(test, 0, edge->frames);
	KUNIT_EXPECT_EQ(test, 1ULL,
			edge_counter(test, 1, "mpa_failed_initiator"));
	expect_no_other_event(test);
}

/* A holder of the endpoint's mutex has exclusive use of the session */
static void arp_failure_waits_for_the_endpoints_mutex(struct kunit *test)
{
	struct c4iw_ep *ep;

	edge->neigh_silent = true;
	KUNIT_ASSERT_EQ(test, 0, ulp_connects(8, 8, 0));
	ep = fix->ulp.id.provider_data;
	c4iw_get_ep(&ep->com);
	mutex_lock(&ep->com.mutex);
	edge_fail_arp(test, 0);
	/* Wait until the worker has dequeued the message and could do harm */
	while (!skb_queue_empty_lockless(&rxq))
		msleep(20);
	msleep(20);
	KUNIT_EXPECT_EQ(test, 0, fix->ulp.count[IW_CM_EVENT_CONNECT_REPLY]);
	KUNIT_EXPECT_TRUE(test, iw_mpa_is_connecting(&ep->mpa));
	KUNIT_EXPECT_EQ(test, CONNECTING, ep->com.state);
	mutex_unlock(&ep->com.mutex);
	flush_workqueue(workq);
	expect_reply_event(test, -EHOSTUNREACH);
	KUNIT_EXPECT_EQ(test, DEAD, ep->com.state);
	KUNIT_EXPECT_EQ(test, 1u, kref_read(&ep->com.kref));
	c4iw_put_ep(&ep->com);
	expect_no_other_event(test);
}

/* ARP may also fail for the second attempt */
static void arp_failure_of_the_rev1_retry_is_reported_once(struct kunit *test)
{
	initiator(test, 8, 8, 0);
	edge->neigh_silent = true;
	cpl_abort(INITIATOR_TID, CPL_ERR_CONN_RESET);
	KUNIT_EXPECT_EQ(test, 2, edge->cpl[CPL_ACT_OPEN_REQ]);
	KUNIT_EXPECT_EQ(test, 0, fix->ulp.count[IW_CM_EVENT_CONNECT_REPLY]);
	edge_fail_arp(test, INITIATOR_TID);
	flush_workqueue(workq);
	expect_reply_event(test, -EHOSTUNREACH);
	KUNIT_EXPECT_EQ(test, 0, edge->l2t_refs);
	expect_no_other_event(test);
}

/* The adapter connects TCP: a deadline of iw_mpa could not abort it */
static void tcp_connect_has_no_deadline_of_iw_mpa(struct kunit *test)
{
	struct c4iw_ep *ep;

	KUNIT_ASSERT_EQ(test, 0, ulp_connects(8, 8, 0));
	ep = fix->ulp.id.provider_data;
	KUNIT_EXPECT_TRUE(test, iw_mpa_is_connecting(&ep->mpa));
	KUNIT_EXPECT_FALSE(test, timer_pending(&ep->timer));
	cpl_act_establish(0, INITIATOR_TID);
	KUNIT_EXPECT_TRUE(test, timer_pending(&ep->timer));
}

/* IOP-07: once only */
static void reset_of_the_rev1_retry_is_reported(struct kunit *test)
{
	initiator(test, 8, 8, 0);
	cpl_abort(INITIATOR_TID, CPL_ERR_CONN_RESET);
	cpl_act_establish(0, INITIATOR_TID + 1);
	cpl_abort(INITIATOR_TID + 1, CPL_ERR_CONN_RESET);
	expect_reply_event(test, -ECONNRESET);
	KUNIT_EXPECT_EQ(test, 2, edge->cpl[CPL_ACT_OPEN_REQ]);
	expect_no_other_event(test);
}

/* IOP-08 AMB-23: a peer that has sent a byte of a Reply supports MPA */
static void reset_after_a_partial_reply_is_reported(struct kunit *test)
{
	initiator(test, 8, 8, 20);
	peer_sends(test, INITIATOR_TID, REP "50");
	cpl_abort(INITIATOR_TID, CPL_ERR_CONN_RESET);
	expect_reply_event(test, -ECONNRESET);
	KUNIT_EXPECT_EQ(test, 1, edge->cpl[CPL_ACT_OPEN_REQ]);
	expect_no_other_event(test);
}

static void reset_after_a_plain_request_is_reported(struct kunit *test)
{
	mpa_rev = 1;
	edge_replug(test);
	initiator(test, 8, 8, 0);
	cpl_abort(INITIATOR_TID, CPL_ERR_CONN_RESET);
	expect_reply_event(test, -ECONNRESET);
	KUNIT_EXPECT_EQ(test, 1, edge->cpl[CPL_ACT_OPEN_REQ]);
	expect_no_other_event(test);
}

/* IOP-08: a timeout does not indicate an old peer */
static void tcp_timeout_after_the_request_is_not_retried(struct kunit *test)
{
	initiator(test, 8, 8, 0);
	cpl_abort(INITIATOR_TID, CPL_ERR_CONN_TIMEDOUT);
	expect_reply_event(test, -ETIMEDOUT);
	KUNIT_EXPECT_EQ(test, 1, edge->cpl[CPL_ACT_OPEN_REQ]);
	expect_no_other_event(test);
}

/* Each step of the second attempt can run out of memory */
static void alloc_failure_of_the_rev1_retry_is_reported(struct kunit *test)
{
	initiator(test, 8, 8, 0);
	edge->skbs_left = 0;
	cpl_abort(INITIATOR_TID, CPL_ERR_CONN_RESET);
	expect_reply_event(test, -ECONNRESET);
	expect_no_other_event(test);
}

static void connect_fails_with_econnreset_if_its_rev1_retry_gets_no_atid(struct kunit *test)
{
	initiator(test, 8, 8, 0);
	edge->no_atid = true;
	cpl_abort(INITIATOR_TID, CPL_ERR_CONN_RESET);
	expect_reply_event(test, -ECONNRESET);
	expect_no_other_event(test);
}

static void connect_fails_with_econnreset_if_its_rev1_retry_gets_no_l2t_entry(struct kunit *test)
{
	initiator(test, 8, 8, 0);
	edge->no_l2t = true;
	cpl_abort(INITIATOR_TID, CPL_ERR_CONN_RESET);
	expect_reply_event(test, -ECONNRESET);
	expect_no_other_event(test);
}

/* ------------------------------------------------- responder: the Request */

struct accept_case {
	const char *desc;
	int p2p_type, peer2peer;
	const char *request;
	size_t pdata;		/* of the Request, after its hex digits */
	size_t told;		/* bytes of it that the ULP gets */
	u8 event_ird, event_ord;
	u32 ird, ord;		/* the ULP's depths for accept */
	const char *reply;
	int p2ptype;
	u32 init_ird, init_ord;
};

static const struct accept_case accept_cases[] = {
	{ "a bug report's Request with IRD 32, ORD 1 and Read RTR is accepted with Read", 1, 1,
	  REQ "5002002480204001", 32, 32, 32, 1, 1, 32,
	  REP "5002000480014020", FW_RI_INIT_P2PTYPE_READ_REQ, 1, 32 },
	{ "C9 V08: a requested Write RTR is accepted and installed", 1, 1,
	  REQ "5002000480088008", 0, 0, 8, 8, 8, 8,
	  REP "5002000480088008", FW_RI_INIT_P2PTYPE_RDMA_WRITE, 8, 8 },
	{ "C9 V09: a requested Read RTR is accepted though p2p_type=0 prefers Write", 0, 1,
	  REQ "5002000480084008", 0, 0, 8, 8, 8, 8,
	  REP "5002000480084008", FW_RI_INIT_P2PTYPE_READ_REQ, 8, 8 },
	{ "RSP-09 V12: p2p_type=1 selects Read of requested Write and Read RTR", 1, 1,
	  REQ "500200048008c008", 0, 0, 8, 8, 8, 8,
	  REP "5002000480084008", FW_RI_INIT_P2PTYPE_READ_REQ, 8, 8 },
	{ "RSP-09 V13: p2p_type=0 selects Write of all RTR kinds requested", 0, 1,
	  REQ "50020008c008c00870696e67", 0, 4, 8, 8, 8, 8,
	  REP "5002000480088008", FW_RI_INIT_P2PTYPE_RDMA_WRITE, 8, 8 },
	{ "RSP-12 V07: a requested Send RTR is answered with Read, the kind of p2p_type", 1, 1,
	  REQ "50020004c0080008", 0, 0, 8, 8, 8, 8,
	  REP "5002000480084008", FW_RI_INIT_P2PTYPE_READ_REQ, 8, 8 },
	{ "RTR-08 V14: a p2p Request without RTR kinds gets Write, the kind of p2p_type", 0, 1,
	  REQ "5002000480080008", 0, 0, 8, 8, 8, 8,
	  REP "5002000480088008", FW_RI_INIT_P2PTYPE_RDMA_WRITE, 8, 8 },
	{ "RSP-06: a p2p Request is accepted as p2p though peer2peer=0", 1, 0,
	  REQ "5002000480084008", 0, 0, 8, 8, 8, 8,
	  REP "5002000480084008", FW_RI_INIT_P2PTYPE_READ_REQ, 8, 8 },
	{ "RSP-07 V05: a client-server Request gets a client-server Accept", 1, 1,
	  REQ "5002000400080004", 0, 0, 8, 4, 4, 8,
	  REP "5002000400040008", FW_RI_INIT_P2PTYPE_DISABLED, 4, 8 },
	{ "RTR-05 V22: RTR flags in a client-server Request are ignored", 1, 1,
	  REQ "500200044008c008", 0, 0, 8, 8, 8, 8,
	  REP "5002000400080008", FW_RI_INIT_P2PTYPE_DISABLED, 8, 8 },
	{ "IRD-08 V19: an accepted Read RTR raises our IRD from 0 to 1", 1, 1,
	  REQ "5002000480004000", 0, 0, 0, 0, 0, 0,
	  REP "5002000480014000", FW_RI_INIT_P2PTYPE_READ_REQ, 1, 0 },
	{ "IRD-02 IRD-03: the peer's IRD 4 limits our ORD and its ORD 8 raises our IRD", 1, 1,
	  REQ "5002000480044008", 0, 0, 4, 8, 2, 8,
	  REP "5002000480084004", FW_RI_INIT_P2PTYPE_READ_REQ, 8, 4 },
	{ "IRD-04 IRD-27 V18: IRD and ORD 0x3ffe are limited to the adapter's 32", 0, 1,
	  REQ "50020004fffefffe", 0, 0, 32, 32, 32, 32,
	  REP "5002000480208020", FW_RI_INIT_P2PTYPE_RDMA_WRITE, 32, 32 },
	{ "IRD-20 IRD-21 V15: IRD and ORD 0x3fff of a Request are echoed, ours stay", 1, 1,
	  REQ "500200043fff3fff", 0, 0, 32, 32, 8, 4,
	  REP "500200043fff3fff", FW_RI_INIT_P2PTYPE_DISABLED, 8, 4 },
	{ "IOP-10 V01: a Rev 1 Request gets a Rev 1 Accept at peer2peer=0", 1, 0,
	  REQ "40010000", 0, 0, 32, 32, 8, 8,
	  REP "40010000", FW_RI_INIT_P2PTYPE_DISABLED, 8, 8 },
	{ "C13: peer2peer=1 prepares the QP for an RTR after a Rev 1 Request", 1, 1,
	  REQ "4001000470696e67", 0, 4, 32, 32, 0, 0,
	  REP "40010000", FW_RI_INIT_P2PTYPE_READ_REQ, 1, 0 },
	{ "IOP-12 V23: a Rev 1 Request with bit S is plain, all its data is delivered", 1, 0,
	  REQ "5001000464617461", 0, 4, 32, 32, 8, 8,
	  REP "40010000", FW_RI_INIT_P2PTYPE_DISABLED, 8, 8 },
	{ "C11 IOP-11 V04: a plain Rev 2 Request delivers all its private data", 1, 1,
	  REQ "40020003686921", 0, 3, 32, 32, 8, 8,
	  REP "40020000", FW_RI_INIT_P2PTYPE_DISABLED, 8, 8 },
	{ "FRM-06: a Request without CRC is accepted with CRC if crc_enabled", 1, 1,
	  REQ "1002000480084008", 0, 0, 8, 8, 8, 8,
	  REP "5002000480084008", FW_RI_INIT_P2PTYPE_READ_REQ, 8, 8 },
	{ "FRM-11 V27: reserved bits of a Request are ignored", 1, 1,
	  REQ "5f02000480084008", 0, 0, 8, 8, 8, 8,
	  REP "5002000480084008", FW_RI_INIT_P2PTYPE_READ_REQ, 8, 8 },
	{ "C4: a Request with PD_Length 256 delivers 252 bytes of private data", 1, 1,
	  REQ "5002010080084008", 252, 252, 8, 8, 8, 8,
	  REP "5002000480084008", FW_RI_INIT_P2PTYPE_READ_REQ, 8, 8 },
	{ "C10: a Request with PD_Length 259 delivers 255 bytes of private data", 1, 1,
	  REQ "5002010380084008", 255, 255, 8, 8, 8, 8,
	  REP "5002000480084008", FW_RI_INIT_P2PTYPE_READ_REQ, 8, 8 },
	{ "V20: an enhanced Request with PD_Length 512 delivers 255 bytes, iw_cm's maximum", 0, 1,
	  REQ "500202008020c020", 508, 255, 32, 32, 32, 32,
	  REP "5002000480208020", FW_RI_INIT_P2PTYPE_RDMA_WRITE, 32, 32 },
	{ "V21: a Rev 1 Request with PD_Length 512 delivers 255 bytes, iw_cm's maximum", 1, 0,
	  REQ "40010200", 512, 255, 32, 32, 8, 8,
	  REP "40010000", FW_RI_INIT_P2PTYPE_DISABLED, 8, 8 },
};

static void accept_desc(const struct accept_case *c, char *desc)
{
	strscpy(desc, c->desc, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(accept, accept_cases, accept_desc);

static void expect_request_event(struct kunit *test)
{
	KUNIT_ASSERT_EQ(test, 1,
			fix->listener.count[IW_CM_EVENT_CONNECT_REQUEST]);
	KUNIT_ASSERT_NOT_NULL(test, fix->listener.request);
	KUNIT_EXPECT_EQ(test, 0, fix->listener.event.status);
}

/* RSP-16 RSP-18: the QP is ready when the Reply leaves */
static void mpa_request_is_accepted(struct kunit *test)
{
	const struct accept_case *c = test->param_value;
	struct iw_cm_event *event = &fix->listener.event;
	const char *data;

	p2p_type = c->p2p_type;
	peer2peer = c->peer2peer;
	edge_replug(test);
	responder(test);
	peer_sends_in(test, CHILD_TID, c->request, c->pdata, 1024);

	expect_request_event(test);
	KUNIT_EXPECT_EQ(test, c->event_ird, event->ird);
	KUNIT_EXPECT_EQ(test, c->event_ord, event->ord);
	KUNIT_EXPECT_EQ(test, c->told, (size_t)event->private_data_len);
	data = c->pdata ? (const char *)fix->pdata :
	       strstr(c->request, "686921") ? "hi!" :
	       strstr(c->request, "64617461") ? "data" : "ping";
	KUNIT_EXPECT_EQ(test, 0, memcmp(fix->listener.pdata, data, c->told));
	KUNIT_EXPECT_EQ(test, 0, edge->frames);
	KUNIT_EXPECT_EQ(test, 0, edge->inits);

	KUNIT_EXPECT_EQ(test, 0, ulp_accepts(c->ird, c->ord, 0));
	expect_frame(test, 1, c->reply, 0);
	KUNIT_EXPECT_EQ(test, (u32)CHILD_TID, edge->frame_tid);
	KUNIT_EXPECT_EQ(test, 1, edge->inits);
	KUNIT_EXPECT_EQ(test, 0, is_initiator());
	KUNIT_EXPECT_EQ(test, c->p2ptype, p2ptype());
	KUNIT_EXPECT_EQ(test, c->init_ird, init_ird());
	KUNIT_EXPECT_EQ(test, c->init_ord, init_ord());
	/* The Reply is counted by the firmware, as streaming data */
	KUNIT_EXPECT_EQ(test, 1000u, be32_to_cpu(edge->init.u.init.iss));
	KUNIT_EXPECT_EQ(test, 1, fix->ulp.count[IW_CM_EVENT_ESTABLISHED]);
	KUNIT_EXPECT_EQ(test, 0, fix->ulp.event.status);
	KUNIT_EXPECT_EQ(test, FPDU_MODE, ep_of(CHILD_TID)->com.state);

	/* A deadline runs until the peer has acknowledged the Reply */
	KUNIT_EXPECT_TRUE(test, timer_pending(&ep_of(CHILD_TID)->timer));
	cpl_fw4_ack(CHILD_TID);
	KUNIT_EXPECT_FALSE(test, timer_pending(&ep_of(CHILD_TID)->timer));
	KUNIT_EXPECT_NULL(test, ep_of(CHILD_TID)->mpa_skb);
	KUNIT_EXPECT_EQ(test, 0, edge->cpl[CPL_ABORT_REQ]);
}

static bool contains(const struct sk_buff *msg, const char *text)
{
	size_t len = strlen(text), off;

	for (off = 0; off + len <= msg->len; off++)
		if (!memcmp(msg->data + off, text, len))
			return true;
	return false;
}

static void negotiated_values_are_shown_with_the_qp(struct kunit *test)
{
	struct sk_buff *msg = (alloc_skb)(1024, GFP_KERNEL);

	KUNIT_EXPECT_EQ(test, 0, c4iw_mpa_fill_res_qp(msg, fix->qp));
	KUNIT_EXPECT_EQ(test, 0u, msg->len);
	responder(test);
	peer_sends(test, CHILD_TID, REQ "5002000480084008");
	KUNIT_EXPECT_EQ(test, 0, ulp_accepts(8, 8, 0));
	KUNIT_EXPECT_EQ(test, 0, c4iw_mpa_fill_res_qp(msg, fix->qp));
	KUNIT_EXPECT_TRUE(test, contains(msg, "peer-to-peer"));
	/* The driver does not see the RTR; it shows the kind it expects */
	KUNIT_EXPECT_TRUE(test, contains(msg, "read"));
	KUNIT_EXPECT_FALSE(test, contains(msg, "none"));
	kfree_skb(msg);
}

/* Private data of each length that a ULP may pass */
static void reply_carries_the_ulps_private_data(struct kunit *test)
{
	responder(test);
	peer_sends(test, CHILD_TID, REQ "5002000480084008");
	KUNIT_EXPECT_EQ(test, 0, ulp_accepts(8, 8, 255));
	expect_frame(test, 1, REP "5002010380084008", 255);
	KUNIT_EXPECT_FALSE(test, edge->frame_imm);
}

static void unacknowledged_reply_times_out(struct kunit *test)
{
	responder(test);
	peer_sends(test, CHILD_TID, REQ "5002000480084008");
	KUNIT_EXPECT_EQ(test, 0, ulp_accepts(8, 8, 0));
	expire(ep_of(CHILD_TID));
	KUNIT_EXPECT_EQ(test, 1, edge->cpl[CPL_ABORT_REQ]);
	ulp_destroys_qp();
}

/* The endpoint's timer expires now, but no worker has handled it yet */
static void expire_unseen(struct c4iw_ep *ep)
{
	timer_delete_sync(&ep->timer);
	set_bit(TIMEOUT, &ep->com.flags);
}

/* A late timeout must not end a later phase that restarted the timer */
static void expired_timer_of_an_earlier_phase_has_no_effect(struct kunit *test)
{
	struct c4iw_ep *ep;

	responder(test);
	ep = ep_of(CHILD_TID);
	expire_unseen(ep);
	peer_sends(test, CHILD_TID, REQ "5002000480084008");
	process_timeout(ep);
	expire_unseen(ep);
	KUNIT_EXPECT_EQ(test, 0, ulp_accepts(8, 8, 0));
	process_timeout(ep);
	KUNIT_EXPECT_TRUE(test, timer_pending(&ep->timer));
	KUNIT_EXPECT_EQ(test, 0, edge->cpl[CPL_ABORT_REQ]);
}

/* After a reset the timer must not outlive the connection */
static void reset_stops_the_timer_that_the_reply_started(struct kunit *test)
{
	struct c4iw_ep *ep;

	responder(test);
	peer_sends(test, CHILD_TID, REQ "5002000480084008");
	KUNIT_EXPECT_EQ(test, 0, ulp_accepts(8, 8, 0));
	ep = ep_of(CHILD_TID);
	c4iw_get_ep(&ep->com);
	KUNIT_EXPECT_TRUE(test, timer_pending(&ep->timer));
	cpl_abort(CHILD_TID, CPL_ERR_CONN_RESET);
	KUNIT_EXPECT_FALSE(test, timer_pending(&ep->timer));
	KUNIT_EXPECT_EQ(test, 1u, kref_read(&ep->com.kref));
	KUNIT_EXPECT_EQ(test, 1, fix->ulp.count[IW_CM_EVENT_CLOSE]);
	c4iw_put_ep(&ep->com);
}

static void request_may_arrive_in_any_portions(struct kunit *test)
{
	size_t chunk;

	listener(test);
	for (chunk = 1; chunk <= 28; chunk++) {
		memset(&fix->listener.count, 0, sizeof(fix->listener.count));
		child(test, CHILD_TID);
		peer_sends_in(test, CHILD_TID,
			      REQ "50020008c008c00870696e67", 0, chunk);
		expect_request_event(test);
		KUNIT_EXPECT_EQ(test, 0, memcmp(fix->listener.pdata, "ping",
						4));
		ulp_rejects(NULL, 0);
		end_connections();
	}
}

/* IRD-04 IRD-27 */
static void ird_and_ord_of_a_request_are_limited_to_the_adapters(struct kunit *test)
{
	const struct depth_case *c = test->param_value;
	char reply[64];

	set_depths(test, c);
	responder(test);
	peer_sends(test, CHILD_TID, REQ "50020004fffe7ffe");
	expect_request_event(test);
	KUNIT_EXPECT_EQ(test, c->limit, (u32)fix->listener.event.ird);
	KUNIT_EXPECT_EQ(test, 0, ulp_accepts(c->limit, c->limit, 0));
	snprintf(reply, sizeof(reply), REP "500200048%03x4%03x", c->limit,
		 c->limit);
	expect_frame(test, 1, reply, 0);
	KUNIT_EXPECT_EQ(test, c->limit, init_ird());
	KUNIT_EXPECT_EQ(test, c->limit, init_ord());
}

/* --------------------------------------------------- responder: reject */

static void reject_is_enhanced_only_if_its_request_is(struct kunit *test)
{
	responder(test);
	peer_sends(test, CHILD_TID, REQ "50020008c008c00870696e67");
	expect_request_event(test);
	KUNIT_EXPECT_EQ(test, 0, ulp_rejects("busy", 4));
	/* V43: the reject lists the limits of the device */
	expect_frame(test, 1, REP "700200088008c00862757379", 0);
	KUNIT_EXPECT_EQ(test, 1, edge->cpl[CPL_CLOSE_CON_REQ]);
	KUNIT_EXPECT_EQ(test, 0, edge->cpl[CPL_ABORT_REQ]);
	KUNIT_EXPECT_EQ(test, 0, edge->inits);
}

static void plain_request_gets_a_plain_reject(struct kunit *test)
{
	responder(test);
	peer_sends(test, CHILD_TID, REQ "40010000");
	KUNIT_EXPECT_EQ(test, 0, ulp_rejects("no", 2));
	expect_frame(test, 1, REP "600100026e6f", 0);
}

static void request_is_accepted_or_rejected_only_once(struct kunit *test)
{
	struct iw_cm_conn_param param = { .qpn = QPN };
	struct c4iw_ep *ep;

	responder(test);
	peer_sends(test, CHILD_TID, REQ "5002000480084008");
	ep = fix->listener.request;
	/* References that the driver puts for each answer of the ULP */
	c4iw_get_ep(&ep->com);
	c4iw_get_ep(&ep->com);
	KUNIT_EXPECT_EQ(test, 0, ulp_accepts(8, 8, 0));
	KUNIT_EXPECT_EQ(test, -ECONNRESET,
			c4iw_accept_cr(&fix->ulp.id, &param));
	KUNIT_EXPECT_EQ(test, -ECONNRESET,
			c4iw_reject_cr(&fix->ulp.id, NULL, 0));
	KUNIT_EXPECT_EQ(test, 1, edge->frames);
	KUNIT_EXPECT_EQ(test, 1, fix->ulp.refs);
}

/* The peer gets a reject before the connection ends */
static void failed_accept_sends_a_reject(struct kunit *test)
{
	responder(test);
	peer_sends(test, CHILD_TID, REQ "5002000480084008");
	edge->fw_rv = -ENOMEM;
	KUNIT_EXPECT_EQ(test, -ENOMEM, ulp_accepts(8, 8, 0));
	expect_frame(test, 1, REP "700200048008c008", 0);
	KUNIT_EXPECT_EQ(test, 1, edge->cpl[CPL_CLOSE_CON_REQ]);
	KUNIT_EXPECT_EQ(test, 0, fix->ulp.count[IW_CM_EVENT_ESTABLISHED]);
	KUNIT_EXPECT_EQ(test, 0, fix->ulp.refs);
	KUNIT_EXPECT_EQ(test, 1024u, edge->dev->avail_ird);
}

static void accept_beyond_the_adapters_limits_sends_a_reject(struct kunit *test)
{
	responder(test);
	peer_sends(test, CHILD_TID, REQ "5002000480084008");
	KUNIT_EXPECT_EQ(test, -EINVAL, ulp_accepts(33, 8, 0));
	expect_frame(test, 1, REP "700200048008c008", 0);
	KUNIT_EXPECT_EQ(test, 0, edge->inits);
	KUNIT_EXPECT_EQ(test, 0, fix->ulp.refs);
}

static void accept_without_a_qp_sends_a_reject(struct kunit *test)
{
	struct iw_cm_conn_param param = { .qpn = QPN + 1 };

	responder(test);
	peer_sends(test, CHILD_TID, REQ "5002000480084008");
	take_request();
	KUNIT_EXPECT_EQ(test, -EINVAL, c4iw_accept_cr(&fix->ulp.id, &param));
	expect_frame(test, 1, REP "700200048008c008", 0);
	KUNIT_EXPECT_EQ(test, 1, edge->cpl[CPL_CLOSE_CON_REQ]);
}

/* The adapter has no IRD left */
static void accept_without_free_adapter_ird_sends_a_reject(struct kunit *test)
{
	responder(test);
	peer_sends(test, CHILD_TID, REQ "5002000480084008");
	edge->dev->avail_ird = 7;
	KUNIT_EXPECT_EQ(test, -ENOMEM, ulp_accepts(8, 8, 0));
	expect_frame(test, 1, REP "700200048008c008", 0);
	KUNIT_EXPECT_EQ(test, 0, edge->inits);
	KUNIT_EXPECT_EQ(test, 7u, edge->dev->avail_ird);
}

static void reply_send_failure_ends_the_connection(struct kunit *test)
{
	responder(test);
	peer_sends(test, CHILD_TID, REQ "5002000480084008");
	edge->l2t_rv = -EIO;
	KUNIT_EXPECT_EQ(test, -EIO, ulp_accepts(8, 8, 0));
	KUNIT_EXPECT_EQ(test, 1, edge->cpl[CPL_ABORT_REQ]);
	KUNIT_EXPECT_EQ(test, 0, fix->ulp.count[IW_CM_EVENT_ESTABLISHED]);
	KUNIT_EXPECT_EQ(test, 0, fix->ulp.refs);
	ulp_destroys_qp();
}

/* The listener's ULP has no memory, or is gone */
static void request_not_delivered_to_the_ulp_is_rejected(struct kunit *test)
{
	responder(test);
	fix->listener.rv = -ENOMEM;
	peer_sends(test, CHILD_TID, REQ "5002000480084008");
	expect_frame(test, 1, REP "700200048008c008", 0);
	KUNIT_EXPECT_EQ(test, 1, edge->cpl[CPL_CLOSE_CON_REQ]);
}

static void request_for_a_stopped_listener_is_rejected(struct kunit *test)
{
	responder(test);
	stop_listening(test);
	peer_sends(test, CHILD_TID, REQ "5002000480084008");
	KUNIT_EXPECT_EQ(test, 0,
			fix->listener.count[IW_CM_EVENT_CONNECT_REQUEST]);
	expect_frame(test, 1, REP "700200048008c008", 0);
}

struct bad_request_case {
	const char *desc;
	const char *request;
	size_t pdata;
};

static const struct bad_request_case bad_request_cases[] = {
	{ "RSP-02 V24: a Request with truncated enhanced data is dropped unanswered",
	  REQ "500200028008" },
	{ "C3: an enhanced Request with PD_Length 0 is dropped unanswered", REQ "50020000" },
	{ "V25: a Request header with PD_Length 513 is dropped unanswered", REQ "50020201" },
	{ "SEC-03: a Request with PD_Length 65535 and 900 bytes is dropped unanswered",
	  REQ "5002ffff", 900 },
	{ "C11 IOP-13: a Request of Rev 0 is dropped unanswered", REQ "4000000470696e67" },
	{ "IOP-13 V26: a Request of Rev 3 is dropped unanswered", REQ "5003000400080004" },
	{ "SEC-07 V30: a Reply in place of the Request is dropped unanswered", REP "40010000" },
	{ "SEC-07: bytes without an MPA key are dropped unanswered",
	  "474554202f20485454502f312e31" },
	{ "SEC-06 V05: a Request followed by one byte is dropped unanswered",
	  REQ "500200040008000400" },
	{ "SEC-06 V05: a Request followed by 500 bytes is dropped unanswered",
	  REQ "5002000400080004", 500 },
};

static void bad_request_desc(const struct bad_request_case *c, char *desc)
{
	strscpy(desc, c->desc, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(bad_request, bad_request_cases, bad_request_desc);

/* The ULP gets no event, and the listener drops the connection */
static void bad_request_is_not_reported_to_the_ulp(struct kunit *test)
{
	const struct bad_request_case *c = test->param_value;

	responder(test);
	listener_refs(test, 2);
	peer_sends_in(test, CHILD_TID, c->request, c->pdata, 1024);
	KUNIT_EXPECT_EQ(test, 0,
			fix->listener.count[IW_CM_EVENT_CONNECT_REQUEST]);
	KUNIT_EXPECT_EQ(test, 0, edge->frames);
	KUNIT_EXPECT_EQ(test, 1, edge->cpl[CPL_ABORT_REQ]);
	cpl_simple(CPL_ABORT_RPL_RSS, CHILD_TID);
	KUNIT_EXPECT_NULL(test, ep_of(CHILD_TID));
	listener_refs(test, 1);
}

/* A listener releases its connection in each way that it can end */
static void ended_passive_endpoint_releases_its_listener(struct kunit *test)
{
	int tid = CHILD_TID;

	listener(test);
	listener_refs(test, 1);

	/* a port scan */
	cpl_pass_accept(++tid);
	cpl_abort(tid, CPL_ERR_CONN_RESET);
	listener_refs(test, 1);

	child(test, ++tid);
	cpl_abort(tid, CPL_ERR_CONN_RESET);
	listener_refs(test, 1);

	child(test, ++tid);
	peer_sends(test, tid, "4d504120494420");
	cpl_simple(CPL_PEER_CLOSE, tid);
	cpl_simple(CPL_CLOSE_CON_RPL, tid);
	listener_refs(test, 1);

	child(test, ++tid);
	expire(ep_of(tid));
	cpl_simple(CPL_ABORT_RPL_RSS, tid);
	listener_refs(test, 1);

	/* the request was reported, then reset */
	child(test, ++tid);
	peer_sends(test, tid, REQ "5002000480084008");
	cpl_abort(tid, CPL_ERR_CONN_RESET);
	KUNIT_EXPECT_EQ(test, -ECONNRESET, ulp_accepts(8, 8, 0));
	listener_refs(test, 1);

	/* the ULP never answers */
	child(test, ++tid);
	peer_sends(test, tid, REQ "5002000480084008");
	expire(ep_of(tid));
	cpl_simple(CPL_ABORT_RPL_RSS, tid);
	KUNIT_EXPECT_EQ(test, -ECONNRESET, ulp_rejects(NULL, 0));
	listener_refs(test, 1);

	KUNIT_EXPECT_EQ(test, 0, edge->frames);
	KUNIT_EXPECT_EQ(test, 0, edge->l2t_refs);
}

/* SEC-06: data while the ULP decides */
static void data_before_the_accept_aborts_the_connection(struct kunit *test)
{
	responder(test);
	peer_sends(test, CHILD_TID, REQ "5002000480084008");
	peer_sends(test, CHILD_TID, "78");
	KUNIT_EXPECT_EQ(test, 1, edge->cpl[CPL_ABORT_REQ]);
	KUNIT_EXPECT_EQ(test, -ECONNRESET, ulp_accepts(8, 8, 0));
	KUNIT_EXPECT_EQ(test, 0, edge->frames);
	KUNIT_EXPECT_EQ(test, 0, edge->inits);
}

/* One more allocation succeeds each time; the connection leaves no state */
static void passive_open_survives_alloc_failures(struct kunit *test)
{
	int skbs;

	listener(test);
	for (skbs = 0; skbs < CN_MAX_CON_BUF; skbs++) {
		edge->skbs_left = skbs;
		cpl_pass_accept(CHILD_TID);
		KUNIT_EXPECT_NULL(test, ep_of(CHILD_TID));
		KUNIT_EXPECT_EQ(test, 0, edge->l2t_refs);
		listener_refs(test, 1);
	}
	KUNIT_EXPECT_EQ(test, 0, edge->cpl[CPL_PASS_ACCEPT_RPL]);
	KUNIT_EXPECT_EQ(test, (int)CN_MAX_CON_BUF, edge->cpl[CPL_TID_RELEASE]);

	edge->skbs_left = EDGE_NO_LIMIT;
	edge->no_l2t = true;
	cpl_pass_accept(CHILD_TID);
	KUNIT_EXPECT_NULL(test, ep_of(CHILD_TID));
	KUNIT_EXPECT_EQ(test, 1u, rcuref_read(&edge->dst.__rcuref));
	listener_refs(test, 1);
}

/* accept_cr() cannot use the message's skb, and allocation fails */
static void passive_open_survives_an_alloc_failure_with_a_shared_skb(struct kunit *test)
{
	struct cpl_pass_accept_req *cpl;
	struct sk_buff *skb, *clone;

	listener(test);
	cpl = new_cpl(&skb, sizeof(*cpl), CPL_PASS_ACCEPT_REQ, CHILD_TID);
	cpl->tos_stid = cpu_to_be32(PASS_OPEN_TID_V(EDGE_STID));
	clone = skb_clone(skb, GFP_KERNEL);
	edge->skbs_left = CN_MAX_CON_BUF;
	deliver(CPL_PASS_ACCEPT_REQ, skb);
	kfree_skb(clone);
	KUNIT_EXPECT_NULL(test, ep_of(CHILD_TID));
	KUNIT_EXPECT_EQ(test, 0, edge->cpl[CPL_PASS_ACCEPT_RPL]);
	KUNIT_EXPECT_EQ(test, 1, edge->tid_releases);
	listener_refs(test, 1);
}

/* An endpoint that could not be inserted must not remove another one's entry */
static void second_request_for_a_tid_leaves_its_first_endpoint(struct kunit *test)
{
	struct c4iw_ep *ep;

	responder(test);
	ep = ep_of(CHILD_TID);
	cpl_pass_accept(CHILD_TID);
	KUNIT_EXPECT_PTR_EQ(test, ep, ep_of(CHILD_TID));
	/* The second endpoint has released the tid of the fake adapter */
	edge->tid_tab[CHILD_TID] = ep;
}

/* --------------------------------------------------------------- policies */

/* The answer to a message of generic netlink */
struct answer {
	struct nlmsghdr nlh;
	union {
		struct nlmsgerr err;
		u8 more[1024];
	};
};

/* Sends through a socket like a program */
static void ask(struct kunit *test, struct sk_buff *msg, struct answer *answer)
{
	struct kvec out = { .iov_base = msg->data, .iov_len = msg->len };
	struct kvec in = { .iov_base = answer, .iov_len = sizeof(*answer) };
	struct msghdr hdr = { .msg_flags = MSG_DONTWAIT };
	struct socket *sock;
	struct file *file;
	int rv;

	memset(answer, 0, sizeof(*answer));
	KUNIT_ASSERT_EQ(test, 0, sock_create_kern(&init_net, AF_NETLINK,
						  SOCK_RAW, NETLINK_GENERIC,
						  &sock));
	/* Netlink checks the permissions of the file's opener */
	file = sock_alloc_file(sock, 0, NULL);
	KUNIT_ASSERT_FALSE(test, IS_ERR(file));
	rv = kernel_sendmsg(sock, &hdr, &out, 1, msg->len);
	KUNIT_EXPECT_EQ(test, (int)msg->len, rv);
	rv = kernel_recvmsg(sock, &hdr, &in, 1, sizeof(*answer), MSG_DONTWAIT);
	KUNIT_EXPECT_GE(test, rv, (int)sizeof(answer->nlh) + 4);
	fput(file);
	kfree_skb(msg);
}

static struct sk_buff *message(struct kunit *test, u16 family, u8 cmd,
			       u16 flags)
{
	struct sk_buff *msg = nlmsg_new(NLMSG_DEFAULT_SIZE, GFP_KERNEL);
	struct genlmsghdr *genl;
	struct nlmsghdr *nlh;

	KUNIT_ASSERT_NOT_NULL(test, msg);
	nlh = nlmsg_put(msg, 0, 1, family, GENL_HDRLEN, NLM_F_REQUEST | flags);
	genl = nlmsg_data(nlh);
	*genl = (struct genlmsghdr) {
		.cmd = cmd,
		.version = RDMA_MPA_FAMILY_VERSION,
	};
	return msg;
}

static u16 family_id(struct kunit *test)
{
	struct sk_buff *msg = message(test, GENL_ID_CTRL, CTRL_CMD_GETFAMILY,
				      0);
	struct answer answer;
	struct nlattr *id;

	nla_put_string(msg, CTRL_ATTR_FAMILY_NAME, RDMA_MPA_FAMILY_NAME);
	nlmsg_end(msg, nlmsg_hdr(msg));
	ask(test, msg, &answer);
	KUNIT_ASSERT_EQ(test, GENL_ID_CTRL, (int)answer.nlh.nlmsg_type);
	id = nlmsg_find_attr(&answer.nlh, GENL_HDRLEN, CTRL_ATTR_FAMILY_ID);
	KUNIT_ASSERT_NOT_NULL(test, id);
	return nla_get_u16(id);
}

/* Sends a request like `rdma mpa`; returns the status of the answer */
static int ask_iw_mpa(struct kunit *test, struct sk_buff *msg)
{
	struct answer answer;

	nlmsg_end(msg, nlmsg_hdr(msg));
	ask(test, msg, &answer);
	KUNIT_EXPECT_EQ(test, NLMSG_ERROR, (int)answer.nlh.nlmsg_type);
	return answer.err.error;
}

static struct sk_buff *request_for(struct kunit *test, u8 cmd, u32 port)
{
	struct sk_buff *msg = message(test, family_id(test), cmd, NLM_F_ACK);

	nla_put_u32(msg, RDMA_MPA_A_DEV_INDEX, EDGE_INDEX);
	if (port)
		nla_put_u32(msg, RDMA_MPA_A_PORT, port);
	return msg;
}

/* `rdma mpa set dev` (@port 0) or `rdma mpa set link` */
static int mpa_set(struct kunit *test, u32 port, int attr, u32 value)
{
	struct sk_buff *msg = request_for(test, RDMA_MPA_CMD_POLICY_SET, port);
	struct nlattr *nest = nla_nest_start(msg, RDMA_MPA_A_POLICY);

	nla_put_u32(msg, attr, value);
	nla_nest_end(msg, nest);
	return ask_iw_mpa(test, msg);
}

static int mpa_reset(struct kunit *test, u32 port)
{
	return ask_iw_mpa(test, request_for(test, RDMA_MPA_CMD_POLICY_RESET,
					    port));
}

struct policy_case {
	const char *desc;
	u32 port;		/* 0: the device */
	unsigned int route;	/* index of the connection's port */
	int attr;
	u32 value;
	const char *frame;
};

/* Without the setting: V09 with IRD and ORD of 8, peer2peer=1, p2p_type=1 */
static const struct policy_case policy_cases[] = {
	{ "set dev rtr write: the next Request offers a Write RTR",
	  0, 0, RDMA_MPA_A_POLICY_RTR_OFFER, 2,
	  REQ "5002000480088008" },
	{ "set link /1 rtr write: the next Request on port 1 offers a Write RTR",
	  1, 0, RDMA_MPA_A_POLICY_RTR_OFFER, 2,
	  REQ "5002000480088008" },
	{ "set link /1 rtr read,write: the next Request on port 1 offers both RTR kinds", 1, 0,
	  RDMA_MPA_A_POLICY_RTR_OFFER, 6, REQ "500200048008c008" },
	{ "set link /2 rtr write: the next Request on port 1 still offers a Read RTR", 2, 0,
	  RDMA_MPA_A_POLICY_RTR_OFFER, 2, REQ "5002000480084008" },
	{ "set link /2 rtr write: the next Request on port 2 offers a Write RTR", 2, 1,
	  RDMA_MPA_A_POLICY_RTR_OFFER, 2, REQ "5002000480088008" },
	{ "set link /1 model client-server: the next Request is client-server",
	  1, 0, RDMA_MPA_A_POLICY_MODEL,
	  RDMA_MPA_MODEL_CLIENT_SERVER, REQ "5002000400080008" },
	{ "set dev revision 1: the next Request is plain Rev 1", 0, 0, RDMA_MPA_A_POLICY_REVISION,
	  RDMA_MPA_REVISION_RFC5044, REQ "40010000" },
	{ "set dev crc if-asked: the next Request asks for no CRC", 0, 0, RDMA_MPA_A_POLICY_CRC,
	  RDMA_MPA_CRC_IF_ASKED, REQ "1002000480084008" },
	{ "set dev ird 4: the next Request has IRD 4", 0, 0, RDMA_MPA_A_POLICY_IRD, 4,
	  REQ "5002000480044008" },
	{ "set dev ord ulp: the next Request has ORD 0x3fff", 0, 0, RDMA_MPA_A_POLICY_ORD_MODE,
	  RDMA_MPA_DEPTH_MODE_ULP, REQ "5002000480087fff" },
};

static void policy_desc(const struct policy_case *c, char *desc)
{
	strscpy(desc, c->desc, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(policy, policy_cases, policy_desc);

static void next_initiator(struct kunit *test)
{
	end_connections();
	fix->qp->attr.state = C4IW_QP_STATE_IDLE;
	edge->cpl[CPL_ACT_OPEN_REQ] = 0;
	initiator(test, 8, 8, 0);
}

static void changed_setting_applies_to_the_next_request(struct kunit *test)
{
	const struct policy_case *c = test->param_value;

	edge->port = c->route;
	initiator(test, 8, 8, 0);
	expect_frame(test, 1, REQ "5002000480084008", 0);
	KUNIT_ASSERT_EQ(test, 0, mpa_set(test, c->port, c->attr, c->value));
	next_initiator(test);
	expect_frame(test, 2, c->frame, 0);
	/* A reset restores the parameters' values */
	KUNIT_ASSERT_EQ(test, 0, mpa_reset(test, c->port));
	next_initiator(test);
	expect_frame(test, 3, REQ "5002000480084008", 0);
	KUNIT_EXPECT_EQ(test, 3ULL,
			edge_counter(test, c->route + 1,
				     "mpa_req_sent_rev1") +
			edge_counter(test, c->route + 1,
				     "mpa_req_sent_rev2"));
	KUNIT_EXPECT_EQ(test, 0ULL,
			edge_counter(test, 2 - c->route, "mpa_req_sent_rev2"));
}

static void reply_timeout_setting_is_applied(struct kunit *test)
{
	KUNIT_ASSERT_EQ(test, 0, mpa_set(test, 1, RDMA_MPA_A_POLICY_REPLY_MS,
					 5000));
	initiator(test, 8, 8, 0);
	KUNIT_EXPECT_LE(test, ep_of(INITIATOR_TID)->timer.expires,
			jiffies + 5 * HZ + 1);
	expire(ep_of(INITIATOR_TID));
	expect_reply_event(test, -ETIMEDOUT);
	KUNIT_EXPECT_EQ(test, 1ULL, edge_counter(test, 1, "mpa_timeout_reply"));
	expect_no_other_event(test);
}

static void setting_unsupported_by_the_adapter_is_refused(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, -EINVAL,
			mpa_set(test, 0, RDMA_MPA_A_POLICY_RTR_OFFER,
				RDMA_MPA_RTR_SEND));
	KUNIT_EXPECT_EQ(test, -EINVAL,
			mpa_set(test, 1, RDMA_MPA_A_POLICY_RTR_ACCEPT,
				IW_MPA_RTR_ALL));
	KUNIT_EXPECT_EQ(test, -EINVAL,
			mpa_set(test, 0, RDMA_MPA_A_POLICY_IRD, 33));
	KUNIT_EXPECT_EQ(test, 0,
			mpa_set(test, 0, RDMA_MPA_A_POLICY_IRD, 32));
	KUNIT_EXPECT_EQ(test, -EINVAL,
			mpa_set(test, 0, RDMA_MPA_A_POLICY_CONNECT_MS, 1000));
	KUNIT_EXPECT_EQ(test, -EINVAL,
			mpa_set(test, 1, RDMA_MPA_A_POLICY_RTR_MS, 1000));
	KUNIT_EXPECT_EQ(test, -EINVAL,
			mpa_set(test, 1, RDMA_MPA_A_POLICY_FASTOPEN,
				RDMA_MPA_FASTOPEN_ON));
	KUNIT_EXPECT_EQ(test, -EINVAL,
			mpa_set(test, EDGE_PORTS + 1, RDMA_MPA_A_POLICY_CRC,
				RDMA_MPA_CRC_OFF));
	initiator(test, 8, 8, 0);
	expect_frame(test, 1, REQ "5002000480084008", 0);
}

/* A later change affects only adapters that are plugged in after it */
static void module_parameters_are_read_once_per_adapter(struct kunit *test)
{
	peer2peer = 0;
	c4iw_max_read_depth = 4;
	initiator(test, 8, 8, 0);
	expect_frame(test, 1, REQ "5002000480084008", 0);
	end_connections();
	edge_replug(test);
	KUNIT_EXPECT_EQ(test, -EINVAL, ulp_connects(8, 8, 0));
	fix->qp->attr.state = C4IW_QP_STATE_IDLE;
	edge->cpl[CPL_ACT_OPEN_REQ] = 0;
	initiator(test, 4, 4, 0);
	expect_frame(test, 2, REQ "5002000400040004", 0);
}

/* The Reply lists the preferred one of V12's kinds */
static void listener_keeps_the_mpa_policy_of_its_creation(struct kunit *test)
{
	responder(test);
	KUNIT_ASSERT_EQ(test, 0, mpa_set(test, 1, RDMA_MPA_A_POLICY_RTR_ACCEPT,
					 RDMA_MPA_RTR_WRITE));
	peer_sends(test, CHILD_TID, REQ "500200048008c008");
	KUNIT_EXPECT_EQ(test, 0, ulp_accepts(8, 8, 0));
	expect_frame(test, 1, REP "5002000480084008", 0);
	cpl_fw4_ack(CHILD_TID);
	end_connections();
	stop_listening(test);

	/* The next listener has the new policy, on that port alone */
	fix->qp->attr.state = C4IW_QP_STATE_IDLE;
	responder(test);
	peer_sends(test, CHILD_TID, REQ "500200048008c008");
	KUNIT_EXPECT_EQ(test, 0, ulp_accepts(8, 8, 0));
	expect_frame(test, 2, REP "5002000480088008", 0);
	cpl_fw4_ack(CHILD_TID);
	end_connections();

	edge->port = 1;
	fix->qp->attr.state = C4IW_QP_STATE_IDLE;
	child(test, CHILD_TID);
	peer_sends(test, CHILD_TID, REQ "500200048008c008");
	KUNIT_EXPECT_EQ(test, 0, ulp_accepts(8, 8, 0));
	expect_frame(test, 3, REP "5002000480084008", 0);
	cpl_fw4_ack(CHILD_TID);
	KUNIT_EXPECT_EQ(test, 2ULL,
			edge_counter(test, 1, "mpa_established_responder"));
	KUNIT_EXPECT_EQ(test, 1ULL,
			edge_counter(test, 2, "mpa_established_responder"));
}

static void set_rtr_option(struct iw_mpa_layer *options, u32 kind)
{
	iw_mpa_layer_set_option(options, RDMA_MPA_OPTION_RTR, &kind,
				sizeof(kind));
}

static void option_of_connect_overrides_the_port_setting(struct kunit *test)
{
	struct iw_mpa_layer *options = &fix->ulp.options;

	KUNIT_ASSERT_EQ(test, 0, mpa_set(test, 1, RDMA_MPA_A_POLICY_RTR_OFFER,
					 RDMA_MPA_RTR_READ));
	set_rtr_option(options, RDMA_MPA_RTR_SEND);
	KUNIT_EXPECT_EQ(test, -EINVAL, ulp_connects(8, 8, 0));
	KUNIT_EXPECT_EQ(test, 0, fix->ulp.refs);
	set_rtr_option(options, RDMA_MPA_RTR_WRITE);
	initiator(test, 8, 8, 0);
	expect_frame(test, 1, REQ "5002000480088008", 0);
}

static void options_of_listen_and_accept_are_applied(struct kunit *test)
{
	struct iw_mpa_layer *options = &fix->listener.options;

	set_rtr_option(options, RDMA_MPA_RTR_SEND);
	KUNIT_EXPECT_EQ(test, -EINVAL, c4iw_create_listen(&fix->listener.id, 4));
	KUNIT_EXPECT_EQ(test, 0, fix->listener.refs);
	KUNIT_EXPECT_NULL(test, edge->stid_data);

	set_rtr_option(options, RDMA_MPA_RTR_WRITE);
	responder(test);
	peer_sends(test, CHILD_TID, REQ "500200048008c008");
	KUNIT_EXPECT_EQ(test, 0, ulp_accepts(8, 8, 0));
	expect_frame(test, 1, REP "5002000480088008", 0);
	cpl_fw4_ack(CHILD_TID);
	end_connections();

	set_rtr_option(&fix->ulp.options, RDMA_MPA_RTR_READ);
	fix->qp->attr.state = C4IW_QP_STATE_IDLE;
	child(test, CHILD_TID);
	peer_sends(test, CHILD_TID, REQ "500200048008c008");
	KUNIT_EXPECT_EQ(test, 0, ulp_accepts(8, 8, 0));
	expect_frame(test, 2, REP "5002000480084008", 0);
	cpl_fw4_ack(CHILD_TID);
	end_connections();

	/* A kind that the device does not support is rejected, as usual */
	set_rtr_option(&fix->ulp.options, RDMA_MPA_RTR_SEND);
	fix->qp->attr.state = C4IW_QP_STATE_IDLE;
	child(test, CHILD_TID);
	peer_sends(test, CHILD_TID, REQ "500200048008c008");
	KUNIT_EXPECT_EQ(test, -EINVAL, ulp_accepts(8, 8, 0));
	KUNIT_EXPECT_EQ(test, 3, edge->frames);
	KUNIT_EXPECT_EQ(test, 0x70, (int)edge->frame[16]);
	KUNIT_EXPECT_EQ(test, 1, edge->cpl[CPL_CLOSE_CON_REQ]);
}

/* A listener holds the settings of each port until it ends */
static void listener_releases_its_settings(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, 0, edge->configs);
	listener(test);
	KUNIT_EXPECT_EQ(test, (int)EDGE_PORTS, edge->configs);
	child(test, CHILD_TID);
	KUNIT_EXPECT_EQ(test, (int)EDGE_PORTS, edge->configs);
	/* A connection that is being set up still refers to the listener */
	stop_listening(test);
	KUNIT_EXPECT_EQ(test, (int)EDGE_PORTS, edge->configs);
	cpl_abort(CHILD_TID, CPL_ERR_CONN_RESET);
	KUNIT_EXPECT_EQ(test, 0, edge->configs);
}

/* The listener has acquired the first port's settings before the failure */
static void failed_listener_releases_its_settings(struct kunit *test)
{
	struct iw_mpa_layer *options = &fix->listener.options;
	const u32 required = RDMA_MPA_MODEL_PEER_TO_PEER_REQUIRED;

	KUNIT_ASSERT_EQ(test, 0, mpa_set(test, 2, RDMA_MPA_A_POLICY_REVISION,
					 RDMA_MPA_REVISION_RFC5044));
	iw_mpa_layer_set_option(options, RDMA_MPA_OPTION_MODEL, &required,
				sizeof(required));
	KUNIT_EXPECT_EQ(test, -EINVAL, c4iw_create_listen(&fix->listener.id, 4));
	KUNIT_EXPECT_EQ(test, 0, edge->configs);
	KUNIT_EXPECT_EQ(test, 0, fix->listener.refs);
	KUNIT_EXPECT_NULL(test, edge->stid_data);
	/* A connection through the other port is possible */
	memset(options, 0, sizeof(*options));
	listener(test);
}

/* While TCP connects there is no tid, and the QP has no endpoint */
static void resource_tracking_shows_a_connection_in_each_state(struct kunit *test)
{
	struct sk_buff *msg = (alloc_skb)(1024, GFP_KERNEL);
	struct c4iw_ep *ep;
	unsigned int len;

	KUNIT_ASSERT_EQ(test, 0, ulp_connects(8, 8, 0));
	ep = fix->ulp.id.provider_data;
	KUNIT_EXPECT_EQ(test, 0, iw_mpa_fill_res(msg, edge->dev->mpa, &ep->mpa));
	KUNIT_EXPECT_TRUE(test, contains(msg, "CONNECTING"));
	KUNIT_EXPECT_TRUE(test, contains(msg, "initiator"));
	KUNIT_EXPECT_TRUE(test, contains(msg, "tcp"));
	KUNIT_EXPECT_FALSE(test, contains(msg, "model"));
	skb_trim(msg, 0);

	cpl_act_establish(0, INITIATOR_TID);
	peer_sends(test, INITIATOR_TID, REP "5002000480084008");
	KUNIT_EXPECT_EQ(test, 0, iw_mpa_fill_res(msg, edge->dev->mpa, &ep->mpa));
	KUNIT_EXPECT_TRUE(test, contains(msg, "RDMA"));
	KUNIT_EXPECT_TRUE(test, contains(msg, "peer-to-peer"));
	len = msg->len;
	/* The QP shows the same values */
	KUNIT_EXPECT_EQ(test, 0, c4iw_mpa_fill_res_qp(msg, fix->qp));
	KUNIT_EXPECT_EQ(test, 2 * len, msg->len);
	KUNIT_EXPECT_EQ(test, 0, memcmp(msg->data, msg->data + len, len));
	kfree_skb(msg);
}

static void connection_raises_the_port_counters(struct kunit *test)
{
	initiator(test, 8, 8, 0);
	KUNIT_EXPECT_EQ(test, 1ULL,
			edge_counter(test, 1, "mpa_started_initiator"));
	KUNIT_EXPECT_EQ(test, 1ULL, edge_half_open(test, 1));
	peer_sends(test, INITIATOR_TID, REP "5002000480084008");
	KUNIT_EXPECT_EQ(test, 0ULL, edge_half_open(test, 1));
	KUNIT_EXPECT_EQ(test, 1ULL,
			edge_counter(test, 1, "mpa_req_sent_enhanced"));
	KUNIT_EXPECT_EQ(test, 1ULL, edge_counter(test, 1, "mpa_rep_rcvd_rev2"));
	KUNIT_EXPECT_EQ(test, 1ULL, edge_counter(test, 1, "mpa_rtr_sent_read"));
	KUNIT_EXPECT_EQ(test, 1ULL,
			edge_counter(test, 1, "mpa_established_initiator"));

	/* V47: the model differs */
	next_initiator(test);
	peer_sends(test, INITIATOR_TID, REP "5002000400080008");
	KUNIT_EXPECT_EQ(test, 1ULL, edge_counter(test, 1, "mpa_term_sent_rtr"));
	KUNIT_EXPECT_EQ(test, 1ULL,
			edge_counter(test, 1, "mpa_failed_initiator"));
	ulp_destroys_qp();
}

/* c4iw_connect() returns the failure; no session stays half open */
static void connect_send_failure_is_reported_once(struct kunit *test)
{
	edge->skbs_left = CN_MAX_CON_BUF;
	KUNIT_EXPECT_EQ(test, -ENOMEM, ulp_connects(8, 8, 0));
	edge->skbs_left = EDGE_NO_LIMIT;
	KUNIT_EXPECT_EQ(test, 0, fix->ulp.count[IW_CM_EVENT_CONNECT_REPLY]);
	KUNIT_EXPECT_EQ(test, 0, fix->ulp.refs);
	KUNIT_EXPECT_EQ(test, 0ULL, edge_half_open(test, 1));
	KUNIT_EXPECT_EQ(test, 1ULL,
			edge_counter(test, 1, "mpa_failed_initiator"));
}

static struct kunit_case c4iw_mpa_cases[] = {
	KUNIT_CASE_PARAM(mpa_request_follows_the_module_parameters,
			 request_gen_params),
	KUNIT_CASE(connect_beyond_the_adapters_limits_is_refused),
	KUNIT_CASE(request_alloc_failure_is_reported_once),
	KUNIT_CASE(request_send_failure_is_reported_once),
	KUNIT_CASE_PARAM(reply_moves_the_qp_to_rts, reply_gen_params),
	KUNIT_CASE(plain_reply_is_not_followed_by_an_rtr),
	KUNIT_CASE(client_server_reply_is_not_followed_by_an_rtr),
	KUNIT_CASE(markers_are_sent_if_the_peer_requests_them),
	KUNIT_CASE(markers_are_received_if_enabled),
	KUNIT_CASE_PARAM(unacceptable_reply_causes_a_term, term_gen_params),
	KUNIT_CASE(failed_connect_reports_the_peers_private_data),
	KUNIT_CASE_PARAM(bad_reply_is_reported_once, bad_reply_gen_params),
	KUNIT_CASE_PARAM(long_mpa_reply_is_read_from_the_pages_of_its_skb,
			 reply_size_gen_params),
	KUNIT_CASE(reply_may_arrive_in_any_portions),
	KUNIT_CASE(reply_event_is_repeated_without_data_if_iw_cm_has_no_memory),
	KUNIT_CASE(silent_responder_times_out),
	KUNIT_CASE(fin_instead_of_a_reply_is_reported_once),
	KUNIT_CASE(failed_rdma_init_of_the_qp_is_reported_once),
	KUNIT_CASE_PARAM(ord_of_a_reply_is_checked_against_the_adapters_ird, depth_gen_params),
	KUNIT_CASE(reset_after_the_request_is_retried_with_rev1),
	KUNIT_CASE(fin_after_the_request_is_retried_with_rev1),
	KUNIT_CASE(rev1_peer_is_not_remembered),
	KUNIT_CASE(refused_tcp_connection_is_reported_once),
	KUNIT_CASE(arp_failure_is_reported_once),
	KUNIT_CASE(arp_failure_waits_for_the_endpoints_mutex),
	KUNIT_CASE(arp_failure_of_the_rev1_retry_is_reported_once),
	KUNIT_CASE(tcp_connect_has_no_deadline_of_iw_mpa),
	KUNIT_CASE(reset_of_the_rev1_retry_is_reported),
	KUNIT_CASE(reset_after_a_partial_reply_is_reported),
	KUNIT_CASE(reset_after_a_plain_request_is_reported),
	KUNIT_CASE(tcp_timeout_after_the_request_is_not_retried),
	KUNIT_CASE(alloc_failure_of_the_rev1_retry_is_reported),
	KUNIT_CASE(connect_fails_with_econnreset_if_its_rev1_retry_gets_no_atid),
	KUNIT_CASE(connect_fails_with_econnreset_if_its_rev1_retry_gets_no_l2t_entry),
	KUNIT_CASE_PARAM(mpa_request_is_accepted, accept_gen_params),
	KUNIT_CASE(negotiated_values_are_shown_with_the_qp),
	KUNIT_CASE(reply_carries_the_ulps_private_data),
	KUNIT_CASE(unacknowledged_reply_times_out),
	KUNIT_CASE(expired_timer_of_an_earlier_phase_has_no_effect),
	KUNIT_CASE(reset_stops_the_timer_that_the_reply_started),
	KUNIT_CASE(request_may_arrive_in_any_portions),
	KUNIT_CASE_PARAM(ird_and_ord_of_a_request_are_limited_to_the_adapters,
			 depth_gen_params),
	KUNIT_CASE(reject_is_enhanced_only_if_its_request_is),
	KUNIT_CASE(plain_request_gets_a_plain_reject),
	KUNIT_CASE(request_is_accepted_or_rejected_only_once),
	KUNIT_CASE(failed_accept_sends_a_reject),
	KUNIT_CASE(accept_beyond_the_adapters_limits_sends_a_reject),
	KUNIT_CASE(accept_without_a_qp_sends_a_reject),
	KUNIT_CASE(accept_without_free_adapter_ird_sends_a_reject),
	KUNIT_CASE(reply_send_failure_ends_the_connection),
	KUNIT_CASE(request_not_delivered_to_the_ulp_is_rejected),
	KUNIT_CASE(request_for_a_stopped_listener_is_rejected),
	KUNIT_CASE_PARAM(bad_request_is_not_reported_to_the_ulp, bad_request_gen_params),
	KUNIT_CASE(ended_passive_endpoint_releases_its_listener),
	KUNIT_CASE(data_before_the_accept_aborts_the_connection),
	KUNIT_CASE(passive_open_survives_alloc_failures),
	KUNIT_CASE(passive_open_survives_an_alloc_failure_with_a_shared_skb),
	KUNIT_CASE(second_request_for_a_tid_leaves_its_first_endpoint),
	KUNIT_CASE_PARAM(changed_setting_applies_to_the_next_request, policy_gen_params),
	KUNIT_CASE(reply_timeout_setting_is_applied),
	KUNIT_CASE(setting_unsupported_by_the_adapter_is_refused),
	KUNIT_CASE(module_parameters_are_read_once_per_adapter),
	KUNIT_CASE(listener_keeps_the_mpa_policy_of_its_creation),
	KUNIT_CASE(option_of_connect_overrides_the_port_setting),
	KUNIT_CASE(options_of_listen_and_accept_are_applied),
	KUNIT_CASE(listener_releases_its_settings),
	KUNIT_CASE(failed_listener_releases_its_settings),
	KUNIT_CASE(resource_tracking_shows_a_connection_in_each_state),
	KUNIT_CASE(connection_raises_the_port_counters),
	KUNIT_CASE(connect_send_failure_is_reported_once),
	{}
};

static struct kunit_suite c4iw_mpa_suite = {
	.name = "c4iw_mpa",
	.init = c4iw_test_init,
	.exit = c4iw_test_exit,
	.test_cases = c4iw_mpa_cases,
};

kunit_test_suite(c4iw_mpa_suite);

MODULE_DESCRIPTION("KUnit tests of cxgb4's connection setup");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_IMPORT_NS("EXPORTED_FOR_KUNIT_TESTING");
