/* SPDX-License-Identifier: GPL-2.0 */
/*
 * An adapter without hardware. Fakes that record their calls replace the
 * functions of cxgb4 and libcxgb that the driver calls, and skb allocation. The
 * linker finds the fakes in the test's own module.
 *
 * The test includes this file once, before the driver's sources.
 */
#ifndef C4IW_TEST_EDGE_H
#define C4IW_TEST_EDGE_H

#include <kunit/test.h>
#include <linux/module.h>
#include <linux/skbuff.h>
#include <linux/slab.h>
#include <net/dst.h>
#include <net/neighbour.h>

#include <libcxgb_cm.h>

/* Tests run after the module's initialisation */
#undef __init
#define __init

#include "../iw_cxgb4.h"

enum edge_sizes {
	EDGE_TIDS	= 64,
	EDGE_STID	= 3,
	EDGE_FRAME_MAX	= 1024,
	EDGE_NO_LIMIT	= -1,
	EDGE_PORTS	= 2,
	EDGE_INDEX	= 0x7fffff00,	/* of the RDMA device; unique */
};

/**
 * struct edge - the adapter of the running test
 * @test: the test
 * @dev: the RDMA device on it
 * @tids: its tables
 * @atids: active opens
 * @tid_tab: connections
 * @stid_data: the listener
 * @netdev: all of its ports
 * @port: index of the port that routes go through
 * @l2t: its only L2T entry
 * @l2t_refs: references to it that the driver holds
 * @dst: its only route
 * @neigh: its only neighbour
 * @neigh_silent: ARP gets no answer; a request to connect waits for one
 * @waiting: the request that waits for ARP
 * @configs: settings of listeners that the driver holds
 * @skbs_left: skbs that can still be allocated, %EDGE_NO_LIMIT = all
 * @no_l2t: allocation of an L2T entry fails
 * @no_atid: allocation of an atid fails
 * @l2t_rv: result of cxgb4_l2t_send() for a frame
 * @fw_rv: the firmware's answer to FW_RI_INIT
 * @cpl: work requests sent, by CPL
 * @flowcs: FW_FLOWC_WR sent
 * @inits: FW_RI_INIT sent
 * @init: the last FW_RI_INIT
 * @finis: FW_RI_FINI sent
 * @terms: FW_RI_TERMINATE sent
 * @term: layer, type and code of the last FW_RI_TERMINATE
 * @closes_before_term: CPL_CLOSE_CON_REQ and CPL_ABORT_REQ sent before the TERM
 * @frames: streaming data sent
 * @frame: the last frame
 * @frame_len: length of @frame in bytes
 * @frame_tid: connection of @frame
 * @frame_imm: @frame was in the work request itself
 * @tid_releases: tids released
 */
struct edge {
	struct kunit *test;
	struct c4iw_dev *dev;
	struct tid_info tids;
	union aopen_entry atids[EDGE_TIDS];
	void *tid_tab[EDGE_TIDS];
	void *stid_data;
	struct net_device *netdev;
	unsigned int port;
	struct l2t_entry l2t;
	int l2t_refs;
	struct dst_entry dst;
	struct neighbour neigh;
	bool neigh_silent;
	struct sk_buff *waiting;
	int configs;

	int skbs_left;
	bool no_l2t;
	bool no_atid;
	int l2t_rv;
	int fw_rv;

	int cpl[256];
	int flowcs;
	int inits;
	struct fw_ri_wr init;
	int finis;
	int terms;
	u8 term[4];
	int closes_before_term;
	int frames;
	u8 frame[EDGE_FRAME_MAX];
	size_t frame_len;
	u32 frame_tid;
	bool frame_imm;
	int tid_releases;
};

static struct edge *edge;

static struct sk_buff *edge_alloc_skb(unsigned int size, gfp_t gfp)
{
	if (!edge->skbs_left)
		return NULL;
	if (edge->skbs_left > 0)
		edge->skbs_left--;
	return alloc_skb(size, gfp);
}

/* ------------------------------------------------ from the driver, to it */

/* The answer to a work request that waits for one */
static void edge_fw_reply(u64 cookie, int rv)
{
	struct sk_buff *skb = alloc_skb(sizeof(struct cpl_fw6_msg), GFP_KERNEL);
	struct cpl_fw6_msg *rpl = skb_put_zero(skb, sizeof(*rpl));

	rpl->opcode = CPL_FW6_MSG;
	rpl->type = FW6_TYPE_WR_RPL;
	rpl->data[0] = cpu_to_be64((u64)-rv << 8);
	rpl->data[1] = (__force __be64)cookie;
	c4iw_handlers[CPL_FW6_MSG](edge->dev, skb);
}

static void edge_note_frame(const struct sk_buff *skb)
{
	const struct fw_ofld_tx_data_wr *req = (const void *)skb->data;
	u32 imm = be32_to_cpu(req->op_to_immdlen) & FW_WR_IMMDLEN_M;
	size_t len = be32_to_cpu(req->plen);
	u32 flowid_len16 = be32_to_cpu(req->flowid_len16);
	u32 len16 = flowid_len16 & 0xff;
	struct kunit *test = edge->test;

	edge->frames++;
	edge->frame_imm = imm;
	edge->frame_len = min_t(size_t, len, EDGE_FRAME_MAX);
	edge->frame_tid = flowid_len16 >> FW_WR_FLOWID_S;
	memcpy(edge->frame, req + 1, edge->frame_len);

	/* Bits above IMMDLEN belong to other fields */
	KUNIT_EXPECT_EQ(test, 0u, be32_to_cpu(req->op_to_immdlen) & 0x1fff00);
	KUNIT_EXPECT_TRUE(test,
			  be32_to_cpu(req->op_to_immdlen) & FW_WR_COMPL_F);
	if (imm) {
		/* is_ofld_imm() of the SGE */
		KUNIT_EXPECT_LE(test, (size_t)skb->len,
				(size_t)MAX_IMM_OFLD_TX_DATA_WR_LEN);
		KUNIT_EXPECT_EQ(test, (size_t)imm, len);
		KUNIT_EXPECT_EQ(test, (size_t)skb->len, sizeof(*req) + len);
		KUNIT_EXPECT_EQ(test, len16, DIV_ROUND_UP(skb->len, 16));
		return;
	}
	/* Fetched by the SGE: header, then a list of one */
	KUNIT_EXPECT_GT(test, (size_t)skb->len,
			(size_t)MAX_IMM_OFLD_TX_DATA_WR_LEN);
	KUNIT_EXPECT_EQ(test, (size_t)skb->len, sizeof(*req) + len);
	KUNIT_EXPECT_EQ(test, (int)sizeof(*req), skb_transport_offset(skb));
	KUNIT_EXPECT_EQ(test, 2u, len16);
	KUNIT_EXPECT_GE(test, skb_headroom(skb), 8u);
}

static void edge_note_ri(const struct sk_buff *skb)
{
	const struct fw_ri_wr *wqe = (const void *)skb->data;
	int rv = 0;

	switch (wqe->u.init.type) {
	case FW_RI_TYPE_INIT:
		edge->inits++;
		edge->init = *wqe;
		rv = edge->fw_rv;
		break;
	case FW_RI_TYPE_FINI:
		edge->finis++;
		break;
	case FW_RI_TYPE_TERMINATE:
		edge->terms++;
		memcpy(edge->term, wqe->u.terminate.termmsg, 4);
		edge->closes_before_term = edge->cpl[CPL_CLOSE_CON_REQ] +
					   edge->cpl[CPL_ABORT_REQ];
		break;
	}
	if (be32_to_cpu(wqe->op_compl) & FW_WR_COMPL_F)
		edge_fw_reply(wqe->cookie, rv);
}

static void edge_note(const struct sk_buff *skb)
{
	const struct cpl_abort_req *req = (const void *)skb->data;

	switch (FW_WR_OP_G(be32_to_cpu(req->wr.wr_hi))) {
	case FW_OFLD_TX_DATA_WR:
		edge_note_frame(skb);
		break;
	case FW_FLOWC_WR:
		edge->flowcs++;
		break;
	case FW_RI_INIT_WR:
		edge_note_ri(skb);
		break;
	default:
		edge->cpl[req->ot.opcode]++;
	}
}

int cxgb4_l2t_send(struct net_device *dev, struct sk_buff *skb,
		   struct l2t_entry *e)
{
	const struct work_request_hdr *req = (const void *)skb->data;

	if (edge->l2t_rv &&
	    FW_WR_OP_G(be32_to_cpu(req->wr_hi)) == FW_OFLD_TX_DATA_WR)
		return edge->l2t_rv;
	edge_note(skb);
	if (edge->neigh_silent)
		edge->waiting = skb;
	else
		kfree_skb(skb);
	return 0;
}

/*
 * In a soft interrupt, like handle_failed_resolution(). The driver releases
 * @tid, which is not a tid of the connection.
 */
static void edge_fail_arp(struct kunit *test, u32 tid)
{
	struct sk_buff *skb = edge->waiting;
	struct l2t_skb_cb *cb = L2T_SKB_CB(skb);

	KUNIT_ASSERT_NOT_NULL(test, skb);
	KUNIT_ASSERT_NOT_NULL(test, cb->arp_err_handler);
	edge->neigh_silent = false;
	edge->waiting = NULL;
	edge->tid_tab[tid] = edge;
	local_bh_disable();
	cb->arp_err_handler(cb->handle, skb);
	local_bh_enable();
}

int cxgb4_ofld_send(struct net_device *dev, struct sk_buff *skb)
{
	edge_note(skb);
	kfree_skb(skb);
	return 0;
}

/* ------------------------------------------------------------ TID tables */

int cxgb4_alloc_atid(struct tid_info *t, void *data)
{
	int atid;

	for (atid = 0; !edge->no_atid && atid < EDGE_TIDS; atid++) {
		if (edge->atids[atid].data)
			continue;
		edge->atids[atid].data = data;
		return atid;
	}
	return -1;
}

void cxgb4_free_atid(struct tid_info *t, unsigned int atid)
{
	edge->atids[atid].data = NULL;
}

void cxgb4_remove_tid(struct tid_info *t, unsigned int chan, unsigned int tid,
		      unsigned short family)
{
	KUNIT_EXPECT_NOT_NULL(edge->test, edge->tid_tab[tid]);
	edge->tid_tab[tid] = NULL;
	edge->tid_releases++;
}

int cxgb4_alloc_stid(struct tid_info *t, int family, void *data)
{
	edge->stid_data = data;
	return EDGE_STID;
}

void cxgb4_free_stid(struct tid_info *t, unsigned int stid, int family)
{
	edge->stid_data = NULL;
}

static int edge_listener_reply(u8 opcode)
{
	struct sk_buff *skb = alloc_skb(sizeof(struct cpl_pass_open_rpl),
					GFP_KERNEL);
	struct cpl_pass_open_rpl *rpl = skb_put_zero(skb, sizeof(*rpl));

	OPCODE_TID(rpl) = cpu_to_be32(MK_OPCODE_TID(opcode, EDGE_STID));
	return c4iw_handlers[opcode](edge->dev, skb);
}

int cxgb4_create_server(const struct net_device *dev, unsigned int stid,
			__be32 sip, __be16 sport, __be16 vlan,
			unsigned int queue)
{
	return edge_listener_reply(CPL_PASS_OPEN_RPL);
}

int cxgb4_remove_server(const struct net_device *dev, unsigned int stid,
			unsigned int queue, bool ipv6)
{
	return edge_listener_reply(CPL_CLOSE_LISTSRV_RPL);
}

/* ---------------------------------------------------- routes, neighbours */

static struct neighbour *edge_neigh_lookup(const struct dst_entry *dst,
					   struct sk_buff *skb,
					   const void *daddr)
{
	refcount_inc(&edge->neigh.refcnt);
	return &edge->neigh;
}

static unsigned int edge_mtu(const struct dst_entry *dst)
{
	return 1500;
}

static struct dst_ops edge_dst_ops = {
	.family		= AF_INET,
	.mtu		= edge_mtu,
	.neigh_lookup	= edge_neigh_lookup,
};

struct dst_entry *
cxgb_find_route(struct cxgb4_lld_info *lldi,
		struct net_device *(*get_real_dev)(struct net_device *),
		__be32 local_ip, __be32 peer_ip, __be16 local_port,
		__be16 peer_port, u8 tos)
{
	dst_hold(&edge->dst);
	return &edge->dst;
}

void cxgb_get_4tuple(struct cpl_pass_accept_req *req, enum chip_type type,
		     int *iptype, __u8 *local_ip, __u8 *peer_ip,
		     __be16 *local_port, __be16 *peer_port)
{
	*iptype = 4;
	*(__be32 *)local_ip = htonl(0x0a4d0002);
	*(__be32 *)peer_ip = htonl(0x0a4d0001);
	*local_port = htons(7471);
	*peer_port = htons(40000);
}

struct l2t_entry *cxgb4_l2t_get(struct l2t_data *d, struct neighbour *neigh,
				const struct net_device *physdev,
				unsigned int priority)
{
	if (edge->no_l2t)
		return NULL;
	edge->l2t_refs++;
	return &edge->l2t;
}

void cxgb4_l2t_release(struct l2t_entry *e)
{
	edge->l2t_refs--;
}

unsigned int cxgb4_port_chan(const struct net_device *dev)
{
	return 0;
}

unsigned int cxgb4_port_idx(const struct net_device *dev)
{
	return edge->port;
}

u64 cxgb4_select_ntuple(struct net_device *dev, const struct l2t_entry *l2t)
{
	return 0;
}

unsigned int cxgb4_best_aligned_mtu(const unsigned short *mtus,
				    unsigned short header_size,
				    unsigned short data_size_max,
				    unsigned short data_size_align,
				    unsigned int *mtu_idxp)
{
	*mtu_idxp = 0;
	return mtus[0];
}

/* ------------------------------- functions of the driver's other sources */

int use_dsgl;
int c4iw_wr_log;

struct c4iw_wr_wait *c4iw_alloc_wr_wait(gfp_t gfp)
{
	struct c4iw_wr_wait *wr_wait = kzalloc(sizeof(*wr_wait), gfp);

	if (wr_wait)
		kref_init(&wr_wait->kref);
	return wr_wait;
}

void _c4iw_free_wr_wait(struct kref *kref)
{
	kfree(container_of(kref, struct c4iw_wr_wait, kref));
}

/* No test reaches the functions that call this */
static void edge_unreached(const char *name)
{
	KUNIT_FAIL(edge->test, "%s called", name);
}

int cxgb4_alloc_sftid(struct tid_info *t, int family, void *data)
{
	edge_unreached(__func__);
	return -1;
}

int cxgb4_create_server6(const struct net_device *dev, unsigned int stid,
			 const struct in6_addr *sip, __be16 sport,
			 unsigned int queue)
{
	edge_unreached(__func__);
	return -1;
}

int cxgb4_create_server_filter(const struct net_device *dev, unsigned int stid,
			       __be32 sip, __be16 sport, __be16 vlan,
			       unsigned int queue, unsigned char port,
			       unsigned char mask)
{
	edge_unreached(__func__);
	return -1;
}

int cxgb4_remove_server_filter(const struct net_device *dev, unsigned int stid,
			       unsigned int queue, bool ipv6)
{
	edge_unreached(__func__);
	return -1;
}

struct dst_entry *
cxgb_find_route6(struct cxgb4_lld_info *lldi,
		 struct net_device *(*get_real_dev)(struct net_device *),
		 __u8 *local_ip, __u8 *peer_ip, __be16 local_port,
		 __be16 peer_port, u8 tos, __u32 scope)
{
	edge_unreached(__func__);
	return NULL;
}

int cxgb4_bar2_sge_qregs(struct net_device *dev, unsigned int qid,
			 enum cxgb4_bar2_qtype qtype, int user, u64 *off,
			 unsigned int *pqid)
{
	edge_unreached(__func__);
	return -1;
}

u64 cxgb4_read_sge_timestamp(struct net_device *dev)
{
	edge_unreached(__func__);
	return 0;
}

int c4iw_alloc_srq_idx(struct c4iw_rdev *rdev)
{
	edge_unreached(__func__);
	return -1;
}

void c4iw_free_srq_idx(struct c4iw_rdev *rdev, int idx)
{
	edge_unreached(__func__);
}

void c4iw_count_rcqes(struct t4_cq *cq, struct t4_wq *wq, int *count)
{
	edge_unreached(__func__);
}

void c4iw_ev_dispatch(struct c4iw_dev *dev, struct t4_cqe *err_cqe)
{
	edge_unreached(__func__);
}

void c4iw_flush_hw_cq(struct c4iw_cq *chp, struct c4iw_qp *qhp)
{
	edge_unreached(__func__);
}

int c4iw_flush_rq(struct t4_wq *wq, struct t4_cq *cq, int count)
{
	edge_unreached(__func__);
	return 0;
}

int c4iw_flush_sq(struct c4iw_qp *qhp)
{
	edge_unreached(__func__);
	return 0;
}

void c4iw_flush_srqidx(struct c4iw_qp *qhp, u32 srqidx)
{
	edge_unreached(__func__);
}

u32 c4iw_get_qpid(struct c4iw_rdev *rdev, struct c4iw_dev_ucontext *uctx)
{
	edge_unreached(__func__);
	return 0;
}

void c4iw_put_qpid(struct c4iw_rdev *rdev, u32 qid,
		   struct c4iw_dev_ucontext *uctx)
{
	edge_unreached(__func__);
}

void c4iw_invalidate_mr(struct c4iw_dev *rhp, u32 rkey)
{
	edge_unreached(__func__);
}

u32 c4iw_ocqp_pool_alloc(struct c4iw_rdev *rdev, int size)
{
	edge_unreached(__func__);
	return 0;
}

void c4iw_ocqp_pool_free(struct c4iw_rdev *rdev, u32 addr, int size)
{
	edge_unreached(__func__);
}

u32 c4iw_rqtpool_alloc(struct c4iw_rdev *rdev, int size)
{
	edge_unreached(__func__);
	return 0;
}

void c4iw_rqtpool_free(struct c4iw_rdev *rdev, u32 addr, int size)
{
	edge_unreached(__func__);
}

/* ------------------------------------------------------------- life cycle */

/* A chip that supports @max_ordird reads on a connection */
static void edge_up(struct kunit *test, enum chip_type chip, u32 max_ordird)
{
	static const unsigned short mtus[NMTUS] = { 1500 };
	static struct net_device *ports[EDGE_PORTS];
	static struct cxgb4_virt_res vr;
	static unsigned short rxq_ids[EDGE_PORTS];
	struct cxgb4_lld_info *lldi;
	struct c4iw_dev *dev;

	edge = kunit_kzalloc(test, sizeof(*edge), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, edge);
	edge->test = test;
	edge->skbs_left = EDGE_NO_LIMIT;
	edge->netdev = kunit_kzalloc(test, ALIGN(sizeof(*edge->netdev),
						 NETDEV_ALIGN) +
					   sizeof(struct port_info),
				     GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, edge->netdev);
	edge->l2t.vlan = CPL_L2T_VLAN_NONE;
	edge->dst.ops = &edge_dst_ops;
	rcuref_init(&edge->dst.__rcuref, 1);
	edge->neigh.dev = edge->netdev;
	refcount_set(&edge->neigh.refcnt, 1);
	edge->tids.atid_tab = edge->atids;
	edge->tids.natids = EDGE_TIDS;
	edge->tids.tid_tab = edge->tid_tab;
	edge->tids.ntids = EDGE_TIDS;

	dev = kunit_kzalloc(test, sizeof(*dev), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, dev);
	edge->dev = dev;
	ports[0] = edge->netdev;
	ports[1] = edge->netdev;
	lldi = &dev->rdev.lldi;
	lldi->pdev = kunit_kzalloc(test, sizeof(*lldi->pdev), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, lldi->pdev);
	lldi->tids = &edge->tids;
	lldi->ports = ports;
	lldi->vr = &vr;
	lldi->mtus = mtus;
	lldi->rxq_ids = rxq_ids;
	lldi->nports = EDGE_PORTS;
	lldi->nrxq = EDGE_PORTS;
	lldi->ntxq = EDGE_PORTS;
	lldi->nchan = EDGE_PORTS;
	lldi->adapter_type = chip;
	lldi->max_ordird_qp = max_ordird;
	lldi->max_ird_adapter = 1024;
	dev->avail_ird = lldi->max_ird_adapter;
	xa_init_flags(&dev->qps, XA_FLAGS_LOCK_IRQ);
	xa_init_flags(&dev->hwtids, XA_FLAGS_LOCK_IRQ);
	xa_init_flags(&dev->atids, XA_FLAGS_LOCK_IRQ);
	xa_init_flags(&dev->stids, XA_FLAGS_LOCK_IRQ);
	mutex_init(&dev->rdev.stats.lock);
	init_waitqueue_head(&dev->wait);
	/* For iw_mpa the device counts as registered */
	refcount_set(&dev->ibdev.refcount, 1);
	write_pnet(&dev->ibdev.coredev.rdma_net, &init_net);
	dev->ibdev.dev.init_name = "c4iw_test";
	dev->ibdev.index = EDGE_INDEX;
	dev->ibdev.phys_port_cnt = EDGE_PORTS;
	KUNIT_ASSERT_EQ(test, 0, c4iw_mpa_register(dev));
}

/* The driver reads the module parameters when an adapter is plugged in */
static void edge_replug(struct kunit *test)
{
	c4iw_mpa_unregister(edge->dev);
	KUNIT_ASSERT_EQ(test, 0, c4iw_mpa_register(edge->dev));
}

/* A counter of port @port, from 1 */
static u64 edge_counter(struct kunit *test, u32 port, const char *name)
{
	struct rdma_hw_stats *stats = iw_mpa_alloc_port_stats();
	u64 value = U64_MAX;
	int i;

	if (!stats)
		return value;
	if (iw_mpa_get_port_stats(edge->dev->mpa, port, stats) ==
	    stats->num_counters)
		for (i = 0; i < stats->num_counters; i++)
			if (!strcmp(stats->descs[i].name, name))
				value = stats->value[i];
	rdma_free_hw_stats_struct(stats);
	KUNIT_EXPECT_NE_MSG(test, value, U64_MAX, "no counter %s", name);
	return value;
}

/* Connections that have started and not ended */
static u64 edge_half_open(struct kunit *test, u32 port)
{
	return edge_counter(test, port, "mpa_started_initiator") +
	       edge_counter(test, port, "mpa_started_responder") -
	       edge_counter(test, port, "mpa_established_initiator") -
	       edge_counter(test, port, "mpa_established_responder") -
	       edge_counter(test, port, "mpa_failed_initiator") -
	       edge_counter(test, port, "mpa_failed_responder");
}

static struct iw_mpa_config *
edge_config_get(struct iw_mpa_device *dev, u32 port_num,
		const struct iw_mpa_layer *options)
{
	struct iw_mpa_config *config;

	config = iw_mpa_config_get(dev, port_num, options);
	if (!IS_ERR(config))
		edge->configs++;
	return config;
}

static void edge_config_put(struct iw_mpa_config *config)
{
	if (config)
		edge->configs--;
	iw_mpa_config_put(config);
}

/* Checks that the driver has released everything that it acquired */
static void edge_down(struct kunit *test)
{
	struct c4iw_dev *dev = edge->dev;
	int i;

	for (i = 1; i <= EDGE_PORTS; i++)
		KUNIT_EXPECT_EQ(test, 0ULL, edge_half_open(test, i));
	KUNIT_EXPECT_EQ(test, 0, edge->configs);
	KUNIT_EXPECT_NULL(test, edge->waiting);
	c4iw_mpa_unregister(dev);
	KUNIT_EXPECT_EQ(test, 1u, refcount_read(&dev->ibdev.refcount));
	KUNIT_EXPECT_TRUE(test, xa_empty(&dev->hwtids));
	KUNIT_EXPECT_TRUE(test, xa_empty(&dev->atids));
	KUNIT_EXPECT_TRUE(test, xa_empty(&dev->stids));
	for (i = 0; i < EDGE_TIDS; i++) {
		KUNIT_EXPECT_NULL(test, edge->atids[i].data);
		KUNIT_EXPECT_NULL(test, edge->tid_tab[i]);
	}
	KUNIT_EXPECT_NULL(test, edge->stid_data);
	KUNIT_EXPECT_EQ(test, 0, edge->l2t_refs);
	KUNIT_EXPECT_EQ(test, 1u, rcuref_read(&edge->dst.__rcuref));
	KUNIT_EXPECT_EQ(test, 1u, refcount_read(&edge->neigh.refcnt));
	xa_destroy(&dev->qps);
	xa_destroy(&dev->hwtids);
	xa_destroy(&dev->atids);
	xa_destroy(&dev->stids);
}

/* The driver's sources follow this file and allocate through the fake */
#define alloc_skb(size, gfp) edge_alloc_skb(size, gfp)
#define iw_mpa_config_get(dev, port, options) \
	edge_config_get(dev, port, options)
#define iw_mpa_config_put(config) edge_config_put(config)

#endif
