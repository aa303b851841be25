// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Verbs of the device but those of QPs and memory. See NOTICE.
 */
#include <linux/ethtool.h>
#include <linux/inetdevice.h>
#include <linux/rtnetlink.h>
#include <net/addrconf.h>
#include <net/ipv6.h>

#include <rdma/ib_mad.h>

#include "dg_device.h"

/**
 * dg_max_mtu - the largest message that one packet of the interface holds
 * @netdev: the interface
 *
 * Return: octets, at least 1
 */
u32 dg_max_mtu(const struct net_device *netdev)
{
	u32 mtu = READ_ONCE(netdev->mtu);

	return mtu > DG_OVERHEAD ? mtu - DG_OVERHEAD : 1;
}

static int dg_query_device(struct ib_device *base, struct ib_device_attr *attr,
			   struct ib_udata *udata)
{
	/* 7.2 has none when it registers the device */
	if (udata && (udata->inlen || udata->outlen))
		return -EINVAL;
	memset(attr, 0, sizeof(*attr));
	attr->sys_image_guid = base->node_guid;
	attr->kernel_cap_flags = IBK_ALLOW_USER_UNREG;
	attr->max_mr_size = ~0ULL;
	attr->page_size_cap = PAGE_SIZE;
	attr->max_qp = DG_MAX_QP;
	attr->max_qp_wr = DG_MAX_WR;
	attr->max_send_sge = SIW_DG_MAX_SGE;
	attr->max_recv_sge = SIW_DG_MAX_SGE;
	attr->max_cq = DG_MAX_CQ;
	attr->max_cqe = DG_MAX_CQE;
	attr->max_mr = DG_MAX_MR;
	attr->max_pd = DG_MAX_PD;
	attr->max_ah = DG_MAX_AH;
	/* Of a socket: net.ipv4.igmp_max_memberships; the host's number of groups has no limit */
	attr->max_mcast_grp = DG_MAX_QP;
	attr->max_mcast_qp_attach = 20;
	attr->max_total_mcast_qp_attach = DG_MAX_QP;
	attr->max_pkeys = 1;
	return 0;
}

static bool dg_has_speed(struct net_device *netdev)
{
	struct ethtool_link_ksettings settings = {};
	bool has;

	rtnl_lock();
	/* ib_get_eth_speed() refuses an interface that goes */
	has = netdev->reg_state != NETREG_REGISTERED ||
	      (!__ethtool_get_link_ksettings(netdev, &settings) &&
	       settings.base.speed != (u32)SPEED_UNKNOWN);
	rtnl_unlock();
	return has;
}

/* ib_get_eth_speed() logs each query of an interface without a speed */
static int dg_get_speed(struct ib_device *base, u32 port,
			struct ib_port_attr *attr)
{
	if (dg_has_speed(to_dg_device(base)->netdev))
		return ib_get_eth_speed(base, port, &attr->active_speed,
					&attr->active_width);
	/* As there: 1 Gbit/s */
	attr->active_speed = IB_SPEED_SDR;
	attr->active_width = IB_WIDTH_1X;
	return 0;
}

static int dg_query_port(struct ib_device *base, u32 port,
			 struct ib_port_attr *attr)
{
	struct net_device *netdev = to_dg_device(base)->netdev;
	int ret;

	memset(attr, 0, sizeof(*attr));
	ret = dg_get_speed(base, port, attr);
	if (ret)
		return ret;
	attr->gid_tbl_len = DG_GIDS;
	attr->pkey_tbl_len = 1;
	attr->max_msg_sz = DG_MAX_MSG;
	attr->max_mtu = IB_MTU_4096;
	attr->active_mtu = ib_mtu_int_to_enum(dg_max_mtu(netdev));
	if (dg_netdev_is_active(netdev)) {
		attr->state = IB_PORT_ACTIVE;
		attr->phys_state = IB_PORT_PHYS_STATE_LINK_UP;
	} else {
		attr->state = IB_PORT_DOWN;
		attr->phys_state = IB_PORT_PHYS_STATE_DISABLED;
	}
	return 0;
}

static struct net_device *dg_get_netdev(struct ib_device *base, u32 port)
{
	struct net_device *netdev = to_dg_device(base)->netdev;

	dev_hold(netdev);
	return netdev;
}

static int dg_get_port_immutable(struct ib_device *base, u32 port,
				 struct ib_port_immutable *immutable)
{
	immutable->gid_tbl_len = DG_GIDS;
	immutable->pkey_tbl_len = 1;
	/* Without IW_CM: rdma_cm takes no connection here */
	immutable->core_cap_flags = RDMA_CORE_CAP_PROT_IWARP;
	return 0;
}

static int dg_query_pkey(struct ib_device *base, u32 port, u16 index,
			 u16 *pkey)
{
	if (index)
		return -EINVAL;
	*pkey = IB_DEFAULT_PKEY_FULL;
	return 0;
}

/* Finds address number @index of the interface; first those of IPv4 */
static bool dg_find_address(struct net_device *netdev, int index,
			    struct in6_addr *address)
{
	const struct inet6_ifaddr *ifa6;
	const struct in_ifaddr *ifa;
	struct in_device *in_dev;
	struct inet6_dev *in6_dev;
	bool found = false;

	rcu_read_lock();
	in_dev = __in_dev_get_rcu(netdev);
	if (in_dev) {
		in_dev_for_each_ifa_rcu(ifa, in_dev) {
			if (found || index--)
				continue;
			ipv6_addr_set_v4mapped(ifa->ifa_local, address);
			found = true;
		}
	}
	in6_dev = __in6_dev_get(netdev);
	if (in6_dev) {
		read_lock_bh(&in6_dev->lock);
		list_for_each_entry(ifa6, &in6_dev->addr_list, if_list) {
			if (found || index--)
				continue;
			*address = ifa6->addr;
			found = true;
		}
		read_unlock_bh(&in6_dev->lock);
	}
	rcu_read_unlock();
	return found;
}

/* The RDMA core asks anew after each IB_EVENT_GID_CHANGE */
static int dg_query_gid(struct ib_device *base, u32 port, int index,
			union ib_gid *gid)
{
	BUILD_BUG_ON(sizeof(struct in6_addr) != sizeof(*gid));
	if (!dg_find_address(to_dg_device(base)->netdev, index,
			     (struct in6_addr *)gid))
		memset(gid, 0, sizeof(*gid));
	return 0;
}

/* ---- objects without state */

static int dg_alloc_ucontext(struct ib_ucontext *context,
			     struct ib_udata *udata)
{
	return 0;
}

static void dg_dealloc_ucontext(struct ib_ucontext *context)
{
}

/* Mapped queues are ordinary memory, which a program may keep */
static void dg_disassociate_ucontext(struct ib_ucontext *context)
{
}

static int dg_alloc_pd(struct ib_pd *pd, struct ib_udata *udata)
{
	return atomic_add_unless(&to_dg_device(pd->device)->num_pds, 1,
				 DG_MAX_PD) ? 0 : -ENOMEM;
}

static int dg_dealloc_pd(struct ib_pd *pd, struct ib_udata *udata)
{
	atomic_dec(&to_dg_device(pd->device)->num_pds);
	return 0;
}

/* ---- address handles */

static bool dg_address_is_good(const struct dg_address *address)
{
	return !ipv6_addr_any(&address->source) &&
	       !ipv6_addr_any(&address->target) &&
	       ipv6_addr_v4mapped(&address->source) ==
	       ipv6_addr_v4mapped(&address->target);
}

static int dg_create_ah(struct ib_ah *base, struct rdma_ah_init_attr *init,
			struct ib_udata *udata)
{
	struct dg_device *dev = to_dg_device(base->device);
	struct siw_dg_create_ah_resp resp = {};
	const struct ib_global_route *grh;
	struct dg_ah *ah = to_dg_ah(base);
	int ret;

	if (!udata)
		return -EOPNOTSUPP;
	if (udata->outlen < sizeof(resp) ||
	    !(rdma_ah_get_ah_flags(init->ah_attr) & IB_AH_GRH))
		return -EINVAL;
	grh = rdma_ah_read_grh(init->ah_attr);
	memcpy(&ah->address.source, &grh->sgid_attr->gid,
	       sizeof(ah->address.source));
	memcpy(&ah->address.target, &grh->dgid, sizeof(ah->address.target));
	ah->address.tclass = grh->traffic_class;
	ah->address.hop_limit = grh->hop_limit;
	if (!dg_address_is_good(&ah->address))
		return -EINVAL;

	/* dg_ah_find() may find it as soon as it has a number */
	ret = xa_alloc(&dev->ahs, &ah->number, ah, XA_LIMIT(1, DG_MAX_AH),
		       GFP_KERNEL);
	if (ret)
		return -ENOMEM;
	resp.ah = ah->number;
	ret = ib_copy_to_udata(udata, &resp, sizeof(resp));
	if (ret)
		xa_erase(&dev->ahs, ah->number);
	return ret;
}

static int dg_query_ah(struct ib_ah *base, struct rdma_ah_attr *attr)
{
	const struct dg_ah *ah = to_dg_ah(base);

	memset(attr, 0, sizeof(*attr));
	attr->type = base->type;
	rdma_ah_set_port_num(attr, 1);
	rdma_ah_set_grh(attr, (union ib_gid *)&ah->address.target, 0,
			base->sgid_attr->index, ah->address.hop_limit,
			ah->address.tclass);
	return 0;
}

static int dg_destroy_ah(struct ib_ah *base, u32 flags)
{
	xa_erase(&to_dg_device(base->device)->ahs, to_dg_ah(base)->number);
	return 0;
}

/**
 * dg_ah_find - look up the address that a send request names
 * @dev: the device
 * @pd: PD of the QP
 * @number: from the request
 * @address: on success, a copy
 *
 * Process context.
 *
 * Return: true if the program has this address handle in this PD
 */
bool dg_ah_find(struct dg_device *dev, const struct ib_pd *pd, u32 number,
		struct dg_address *address)
{
	const struct dg_ah *ah;
	bool found;

	/* It is not freed before dg_destroy_ah() has had the lock */
	xa_lock(&dev->ahs);
	ah = xa_load(&dev->ahs, number);
	found = ah && ah->base.pd == pd;
	if (found)
		*address = ah->address;
	xa_unlock(&dev->ahs);
	return found;
}

/* ---- completion queues */

static int dg_create_cq(struct ib_cq *base, const struct ib_cq_init_attr *attr,
			DG_CQ_ATTRS *attrs)
{
	struct ib_udata *udata = dg_cq_udata(attrs);
	struct dg_device *dev = to_dg_device(base->device);
	struct siw_dg_create_cq_resp resp = {};
	struct dg_cq *cq = to_dg_cq(base);
	struct dg_ucontext *context;
	int ret;

	if (attr->flags)
		return -EOPNOTSUPP;
	if (attr->cqe < 1 || attr->cqe > DG_MAX_CQE ||
	    udata->outlen < sizeof(resp))
		return -EINVAL;
	if (!atomic_add_unless(&dev->num_cqs, 1, DG_MAX_CQ))
		return -ENOMEM;
	context = rdma_udata_to_drv_context(udata, struct dg_ucontext, base);
	spin_lock_init(&cq->lock);
	resp.size = roundup_pow_of_two(attr->cqe);
	cq->queue = dg_queue_create(&context->base, resp.size,
				    sizeof(struct siw_dg_cqe), &resp.key);
	if (!cq->queue) {
		ret = -ENOMEM;
		goto uncount;
	}
	ret = ib_copy_to_udata(udata, &resp, sizeof(resp));
	if (ret)
		goto destroy;
	base->cqe = resp.size;
	return 0;

destroy:
	dg_queue_destroy(cq->queue);
uncount:
	atomic_dec(&dev->num_cqs);
	return ret;
}

static int dg_destroy_cq(struct ib_cq *base, struct ib_udata *udata)
{
	dg_queue_destroy(to_dg_cq(base)->queue);
	atomic_dec(&to_dg_device(base->device)->num_cqs);
	return 0;
}

/* A program arms its CQ in memory */
static int dg_req_notify_cq(struct ib_cq *base, enum ib_cq_notify_flags flags)
{
	return -EOPNOTSUPP;
}

/* Of no request */
static bool dg_is_record(u32 opcode)
{
	return opcode == SIW_DG_WC_RECORD || opcode == SIW_DG_WC_PIECE ||
	       opcode == SIW_DG_WC_ERROR;
}

/**
 * dg_cq_has_room - look whether a CQ can take a completion
 * @cq: the CQ
 * @opcode: of the completion, SIW_DG_WC_*. Peers choose the number of records, which
 *          must not take the place of a request's completion; nor a piece that of
 *          the record at the end of its message
 *
 * A program that writes nonsense into its index harms its own completions.
 *
 * Any context.
 *
 * Return: true if it can now; without its lock, QPs that share it may fill it
 */
bool dg_cq_has_room(const struct dg_cq *cq, u32 opcode)
{
	u32 size = cq->queue->size, consumer, kept;

	kept = dg_is_record(opcode) ? atomic_read(&cq->requests) : 0;
	kept += opcode == SIW_DG_WC_PIECE;
	/* Pairs with the program's release after it read the completions */
	consumer = smp_load_acquire(&cq->queue->ring->consumer);
	return kept < size && READ_ONCE(cq->producer) - consumer < size - kept;
}

static void dg_raise_cq_error(struct dg_cq *cq)
{
	struct ib_event event = {
		.device = cq->base.device,
		.event = IB_EVENT_CQ_ERR,
		.element.cq = &cq->base,
	};

	if (cq->base.event_handler)
		cq->base.event_handler(&event, cq->base.cq_context);
}

static bool dg_cq_disarm(struct siw_dg_ring *ring, bool solicited)
{
	u32 armed = READ_ONCE(ring->armed);

	if (!(armed & SIW_DG_ARM_NEXT) &&
	    !(armed & SIW_DG_ARM_SOLICITED && solicited))
		return false;
	return xchg(&ring->armed, 0);
}

/**
 * dg_cq_add - add a completion to a CQ, and raise the event
 * @cq: the CQ
 * @cqe: the completion
 * @solicited: for an event that waits for solicited ones or errors
 *
 * A CQ that is full loses the completion. The program gets IBV_EVENT_CQ_ERR,
 * once, unless it is a record.
 *
 * Context: softirq or process.
 *
 * Return: true; false if the CQ is full
 */
bool dg_cq_add(struct dg_cq *cq, const struct siw_dg_cqe *cqe, bool solicited)
{
	bool record = dg_is_record(cqe->opcode);
	bool event, first;
	struct siw_dg_ring *ring = cq->queue->ring;

	spin_lock_bh(&cq->lock);
	if (!dg_cq_has_room(cq, cqe->opcode)) {
		first = !record && !cq->overrun;
		cq->overrun |= !record;
		spin_unlock_bh(&cq->lock);
		if (first)
			dg_raise_cq_error(cq);
		return false;
	}
	memcpy(dg_queue_entry(cq->queue, cq->producer, sizeof(*cqe)), cqe,
	       sizeof(*cqe));
	/* Pairs with the program's acquire before it reads the completion */
	smp_store_release(&ring->producer, cq->producer + 1);
	WRITE_ONCE(cq->producer, cq->producer + 1);
	/* A program that arms the CQ polls once more after it */
	smp_mb();
	event = dg_cq_disarm(ring, solicited);
	spin_unlock_bh(&cq->lock);
	if (event && cq->base.comp_handler)
		cq->base.comp_handler(&cq->base, cq->base.cq_context);
	return true;
}

/* ---- counters */

static const struct rdma_stat_desc dg_counter_names[DG_COUNTERS] = {
	[DG_SENT].name		= "sent",
	[DG_SEND_ERRORS].name	= "send_errors",
	[DG_RECEIVED].name	= "received",
	[DG_WRITTEN].name	= "written",
	[DG_SUPERSEDED].name	= "messages_superseded",
	[DG_EVICTED].name	= "messages_evicted",
	[DG_EXPIRED].name	= "messages_expired",
	[DG_BAD_CSUM].name	= "dropped_checksum",
	[DG_BAD_HEADER].name	= "dropped_header",
	[DG_BAD_CRC].name	= "dropped_crc",
	[DG_BAD_QKEY].name	= "dropped_qkey",
	[DG_NO_ZONE].name	= "dropped_no_zone",
	[DG_BAD_SOURCE].name	= "dropped_source",
	[DG_BAD_RANGE].name	= "dropped_range",
	[DG_MSG_ENDED].name	= "dropped_late",
	[DG_REPEATED].name	= "dropped_duplicate",
	[DG_CONTRARY].name	= "dropped_mismatch",
	[DG_MSG_TOO_LONG].name	= "dropped_too_many",
	[DG_BAD_IFACE].name	= "dropped_interface",
	[DG_BAD_STATE].name	= "dropped_qp_state",
	[DG_NO_RQE].name	= "dropped_no_receive",
	[DG_RQE_ERRORS].name	= "receive_errors",
	[DG_CQ_FULL].name	= "dropped_cq_full",
	[DG_ERRORS_SENT].name	= "error_messages_sent",
	[DG_ERRORS_RECEIVED].name = "error_messages_received",
};

static struct rdma_hw_stats *dg_alloc_stats(struct ib_device *base, u32 port)
{
	return rdma_alloc_hw_stats_struct(dg_counter_names, DG_COUNTERS,
					  RDMA_HW_STATS_DEFAULT_LIFESPAN);
}

static int dg_get_stats(struct ib_device *base, struct rdma_hw_stats *stats,
			u32 port, int index)
{
	struct dg_device *dev = to_dg_device(base);
	int i;

	/* The device itself has none */
	if (!port || !stats)
		return -EINVAL;
	for (i = 0; i < DG_COUNTERS; i++)
		stats->value[i] = atomic64_read(&dev->counters[i]);
	return DG_COUNTERS;
}

static void dg_dealloc_driver(struct ib_device *base)
{
	dg_device_forget(to_dg_device(base));
}

/*
 * The program id of siw would make Debian's libsiw take the device, and siw
 * mistake it for its own; without get_dma_mr no ULP of the kernel uses it.
 */
const struct ib_device_ops dg_device_ops = {
	.owner = THIS_MODULE,
	.driver_id = RDMA_DRIVER_UNKNOWN,
	.uverbs_abi_ver = SIW_DG_ABI_VERSION,
	.uverbs_no_driver_id_binding = 1,

	.alloc_hw_port_stats = dg_alloc_stats,
	.alloc_pd = dg_alloc_pd,
	.alloc_ucontext = dg_alloc_ucontext,
	.attach_mcast = dg_attach_mcast,
	.create_ah = dg_create_ah,
	.create_user_ah = dg_create_ah,
	.create_qp = dg_create_qp,
	.create_user_cq = dg_create_cq,
	.dealloc_driver = dg_dealloc_driver,
	.dealloc_pd = dg_dealloc_pd,
	.dealloc_ucontext = dg_dealloc_ucontext,
	.dereg_mr = dg_dereg_mr,
	.destroy_ah = dg_destroy_ah,
	.destroy_cq = dg_destroy_cq,
	.destroy_qp = dg_destroy_qp,
	.detach_mcast = dg_detach_mcast,
	.disassociate_ucontext = dg_disassociate_ucontext,
	.get_hw_stats = dg_get_stats,
	.get_netdev = dg_get_netdev,
	.get_port_immutable = dg_get_port_immutable,
	.mmap = dg_mmap,
	.mmap_free = dg_mmap_free,
	.modify_qp = dg_modify_qp,
	.post_send = dg_post_send,
	.query_ah = dg_query_ah,
	.query_device = dg_query_device,
	.query_gid = dg_query_gid,
	.query_pkey = dg_query_pkey,
	.query_port = dg_query_port,
	.query_qp = dg_query_qp,
	.reg_user_mr = dg_reg_user_mr,
	.req_notify_cq = dg_req_notify_cq,

	INIT_RDMA_OBJ_SIZE(ib_ah, dg_ah, base),
	INIT_RDMA_OBJ_SIZE(ib_cq, dg_cq, base),
	INIT_RDMA_OBJ_SIZE(ib_pd, dg_pd, base),
	INIT_RDMA_OBJ_SIZE(ib_qp, dg_qp, base),
	INIT_RDMA_OBJ_SIZE(ib_ucontext, dg_ucontext, base),
};
