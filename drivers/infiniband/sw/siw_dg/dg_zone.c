// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Zones: parts of memory regions that named sources may write. See NOTICE.
 *
 * The RDMA core keeps the objects of a call from being destroyed meanwhile, and
 * destroys a program's zones with the program. A zone keeps its QP and its
 * region: neither can be destroyed before it.
 */
#include <linux/random.h>
#include <net/ipv6.h>

#include "dg_device.h"

#define UVERBS_MODULE_NAME siw_dg
#include <rdma/uverbs_named_ioctl.h>

/**
 * struct dg_source_rule - sources that may write to a zone
 * @entry: in dg_zone.sources
 * @address: an address, IPv4 mapped
 * @prefix: the first bits of @address that count
 * @port: UDP port; 0: any
 */
struct dg_source_rule {
	struct list_head entry;
	struct in6_addr address;
	u32 prefix;
	u16 port;
};

/* ::/1 has no IPv4 address, although the mapped ones begin with its bits */
static bool dg_rule_has(const struct dg_source_rule *rule,
			const struct in6_addr *address)
{
	return !rule->prefix ||
	       (ipv6_addr_v4mapped(&rule->address) ==
		ipv6_addr_v4mapped(address) &&
		ipv6_prefix_equal(&rule->address, address, rule->prefix));
}

/**
 * dg_zone_allows - may this source write to a zone?
 * @zone: the zone; the caller holds the QP's rq_lock
 * @address: of the source, an IPv4 address mapped
 * @port: of the source
 *
 * Any context.
 *
 * Return: true if the program has named it
 */
bool dg_zone_allows(const struct dg_zone *zone, const struct in6_addr *address,
		    u16 port)
{
	const struct dg_source_rule *rule;

	list_for_each_entry(rule, &zone->sources, entry)
		if ((!rule->port || rule->port == port) &&
		    dg_rule_has(rule, address))
			return true;
	return false;
}

/* A rule for all sources names none */
static bool dg_zone_names(const struct dg_zone *zone,
			  const struct in6_addr *address, u16 port)
{
	const struct dg_source_rule *rule;

	list_for_each_entry(rule, &zone->sources, entry)
		if (rule->prefix && (!rule->port || rule->port == port) &&
		    dg_rule_has(rule, address))
			return true;
	return false;
}

/* Rules that are read for one error message at most, and the cost of a zone in rules */
#define DG_NAMES	1024
#define DG_NAMES_ZONE	16

/**
 * dg_zones_name - does any zone name this source?
 * @qp: the QP; the caller holds rq_lock
 * @first: one of its zones, or NULL
 * @address: of the source, an IPv4 address mapped
 * @port: of the source
 *
 * Everybody can make the QP ask this, so beside @first only zones with the lowest
 * numbers are read: 60 with a rule each, fewer with more rules. Any context.
 *
 * Return: true if one of these does
 */
bool dg_zones_name(struct dg_qp *qp, const struct dg_zone *first,
		   const struct in6_addr *address, u16 port)
{
	const struct dg_zone *zone;
	int left = DG_NAMES;
	unsigned long number;

	if (first && dg_zone_names(first, address, port))
		return true;
	xa_for_each(&qp->zones, number, zone) {
		left -= DG_NAMES_ZONE + zone->num_sources;
		if (left < 0)
			break;
		if (dg_zone_names(zone, address, port))
			return true;
	}
	return false;
}

static bool dg_source_is_good(const struct siw_dg_zone_source *source)
{
	struct in6_addr address;

	memcpy(&address, source->address, sizeof(address));
	/* All of IPv4 has to be named by prefix 0, with all of IPv6 */
	return source->prefix <= 128 && !source->reserved &&
	       (!source->prefix || source->prefix > 96 ||
		!ipv6_addr_v4mapped(&address));
}

static int dg_zone_allow(struct dg_zone *zone,
			 const struct siw_dg_zone_source *source)
{
	struct dg_source_rule *rule;
	int ret = -ENOSPC;

	if (!dg_source_is_good(source))
		return -EINVAL;
	rule = kzalloc(sizeof(*rule), GFP_KERNEL_ACCOUNT);
	if (!rule)
		return -ENOMEM;
	memcpy(&rule->address, source->address, sizeof(rule->address));
	rule->prefix = source->prefix;
	rule->port = source->port;

	spin_lock_bh(&zone->qp->rq_lock);
	if (zone->num_sources < SIW_DG_MAX_SOURCES) {
		list_add_tail(&rule->entry, &zone->sources);
		zone->num_sources++;
		ret = 0;
	}
	spin_unlock_bh(&zone->qp->rq_lock);
	if (ret)
		kfree(rule);
	return ret;
}

static int dg_zone_check(const struct dg_qp *qp, const struct dg_mr *mr,
			 const struct siw_dg_zone_open_req *req)
{
	const struct dg_cq *cq;

	if (req->flags & ~(SIW_DG_ZONE_NO_RECORD | SIW_DG_ZONE_PARTIAL) ||
	    mr->base.pd != qp->base.pd || !req->length ||
	    req->offset > mr->length || req->length > mr->length - req->offset)
		return -EINVAL;
	if (!mr->remote_writable)
		return -EACCES;
	if (req->block &&
	    div_u64(req->length - 1, req->block) >= SIW_DG_MAX_BLOCKS)
		return -E2BIG;
	cq = to_dg_cq(qp->base.recv_cq);
	return req->flags & SIW_DG_ZONE_NO_RECORD ||
	       atomic_read(&cq->requests) < cq->queue->size ? 0 : -ENOBUFS;
}

/* 0 stands for no choice */
static u32 dg_random(void)
{
	u32 number;

	do
		number = get_random_u32();
	while (!number);
	return number;
}

/* A datagram may find the zone as soon as it has a number */
static int dg_zone_insert(struct dg_zone *zone, u32 chosen)
{
	int ret;

	do {
		zone->number = chosen ?: dg_random();
		ret = xa_insert_bh(&zone->qp->zones, zone->number, zone,
				   GFP_KERNEL);
	} while (ret == -EBUSY && !chosen);
	return ret == -EBUSY ? -EEXIST : ret;
}

/* Memory for messages of several datagrams: only a QP with a zone needs it */
static int dg_make_slots(struct dg_qp *qp)
{
	struct dg_slot *slots;

	if (READ_ONCE(qp->slots))
		return 0;
	slots = kvmalloc_array(qp->num_slots, sizeof(*slots),
			       GFP_KERNEL_ACCOUNT);
	if (!slots)
		return -ENOMEM;
	spin_lock_bh(&qp->rq_lock);
	if (!qp->slots) {
		dg_track_init(&qp->track, slots, qp->num_slots,
			      get_random_u32(), &qp->times);
		qp->slots = slots;
		slots = NULL;
	}
	spin_unlock_bh(&qp->rq_lock);
	kvfree(slots);
	return 0;
}

static int dg_make_map(struct dg_zone *zone, struct ib_ucontext *context,
		       u32 block, struct siw_dg_zone_open_resp *resp)
{
	u64 key;

	if (!block)
		return 0;
	zone->block = block;
	resp->map_words = div_u64(zone->length - 1, block) / 32 + 1;
	zone->map = dg_queue_create(context, resp->map_words, sizeof(u32),
				    &key);
	if (!zone->map)
		return -ENOMEM;
	resp->map_key = key;
	return 0;
}

static struct dg_zone *dg_zone_open(struct dg_qp *qp, struct dg_mr *mr,
				    struct ib_ucontext *context,
				    const struct siw_dg_zone_open_req *req,
				    struct siw_dg_zone_open_resp *resp)
{
	struct dg_device *dev = dg_device_of(qp);
	struct dg_zone *zone;
	int ret = dg_zone_check(qp, mr, req);

	if (ret)
		return ERR_PTR(ret);
	zone = kzalloc(sizeof(*zone), GFP_KERNEL_ACCOUNT);
	if (!zone)
		return ERR_PTR(-ENOMEM);
	INIT_LIST_HEAD(&zone->sources);
	zone->qp = qp;
	zone->mr = mr;
	zone->addr = mr->iova + req->offset;
	zone->length = req->length;
	zone->qkey = req->qkey ?: dg_random();
	zone->record = !(req->flags & SIW_DG_ZONE_NO_RECORD);
	zone->partial = req->flags & SIW_DG_ZONE_PARTIAL;

	ret = dg_make_slots(qp);
	if (!ret)
		ret = dg_make_map(zone, context, req->block, resp);
	if (ret)
		goto free;
	ret = -ENOSPC;
	if (!atomic_add_unless(&qp->num_zones, 1, SIW_DG_MAX_ZONES))
		goto free;
	if (!atomic_add_unless(&dev->num_zones, 1, DG_MAX_ZONE))
		goto uncount_qp;
	ret = dg_zone_insert(zone, req->number);
	if (ret)
		goto uncount;
	/* The RDMA core destroys no QP that is in use */
	atomic_inc(&qp->base.usecnt);
	atomic_inc(&mr->zones);
	resp->number = zone->number;
	resp->qkey = zone->qkey;
	return zone;

uncount:
	atomic_dec(&dev->num_zones);
uncount_qp:
	atomic_dec(&qp->num_zones);
free:
	dg_queue_destroy(zone->map);
	kfree(zone);
	return ERR_PTR(ret);
}

/* No octet of the zone is written any more when this returns */
static void dg_zone_close(struct dg_zone *zone)
{
	struct dg_source_rule *rule, *next;
	struct dg_qp *qp = zone->qp;

	/*
	 * Waits for a datagram that has found it. A zone that gets the number next
	 * must not get records of this one's messages: it may be shorter.
	 */
	spin_lock_bh(&qp->rq_lock);
	xa_erase_bh(&qp->zones, zone->number);
	dg_track_forget(&qp->track, zone->number);
	spin_unlock_bh(&qp->rq_lock);
	dg_queue_destroy(zone->map);
	list_for_each_entry_safe(rule, next, &zone->sources, entry)
		kfree(rule);
	atomic_dec(&zone->mr->zones);
	atomic_dec(&dg_device_of(qp)->num_zones);
	atomic_dec(&qp->num_zones);
	atomic_dec(&qp->base.usecnt);
	kfree(zone);
}

/* ---- ioctls */

static int dg_zone_free(struct ib_uobject *uobject, enum rdma_remove_reason why,
			struct uverbs_attr_bundle *attrs)
{
	dg_zone_close(uobject->object);
	return 0;
}

static int UVERBS_HANDLER(SIW_DG_METHOD_ZONE_OPEN)(struct uverbs_attr_bundle *attrs)
{
	struct ib_uobject *uobject =
		uverbs_attr_get_uobject(attrs, SIW_DG_ATTR_ZONE_OPEN_HANDLE);
	struct ib_qp *qp =
		uverbs_attr_get_obj(attrs, SIW_DG_ATTR_ZONE_OPEN_QP);
	struct ib_mr *mr =
		uverbs_attr_get_obj(attrs, SIW_DG_ATTR_ZONE_OPEN_MR);
	struct siw_dg_zone_open_resp resp = {};
	struct siw_dg_zone_open_req req;
	struct dg_zone *zone;
	int ret;

	ret = uverbs_copy_from_or_zero(&req, attrs, SIW_DG_ATTR_ZONE_OPEN_REQ);
	if (ret)
		return ret;
	zone = dg_zone_open(to_dg_qp(qp), to_dg_mr(mr), uobject->context, &req,
			    &resp);
	if (IS_ERR(zone))
		return PTR_ERR(zone);
	uobject->object = zone;
	/* From now on the RDMA core closes it if this call fails */
	uverbs_finalize_uobj_create(attrs, SIW_DG_ATTR_ZONE_OPEN_HANDLE);
	return uverbs_copy_to_struct_or_zero(attrs, SIW_DG_ATTR_ZONE_OPEN_RESP,
					     &resp, sizeof(resp));
}

static int UVERBS_HANDLER(SIW_DG_METHOD_ZONE_ALLOW)(struct uverbs_attr_bundle *attrs)
{
	struct dg_zone *zone =
		uverbs_attr_get_obj(attrs, SIW_DG_ATTR_ZONE_ALLOW_HANDLE);
	struct siw_dg_zone_source source;
	int ret;

	ret = uverbs_copy_from_or_zero(&source, attrs,
				       SIW_DG_ATTR_ZONE_ALLOW_SOURCE);
	return ret ?: dg_zone_allow(zone, &source);
}

/* Members may be appended: an older module takes them as long as they are 0 */
DECLARE_UVERBS_NAMED_METHOD(SIW_DG_METHOD_ZONE_OPEN,
			    UVERBS_ATTR_IDR(SIW_DG_ATTR_ZONE_OPEN_HANDLE,
					    SIW_DG_OBJECT_ZONE,
					    UVERBS_ACCESS_NEW, UA_MANDATORY),
			    UVERBS_ATTR_IDR(SIW_DG_ATTR_ZONE_OPEN_QP,
					    UVERBS_OBJECT_QP,
					    UVERBS_ACCESS_READ, UA_MANDATORY),
			    UVERBS_ATTR_IDR(SIW_DG_ATTR_ZONE_OPEN_MR,
					    UVERBS_OBJECT_MR,
					    UVERBS_ACCESS_READ, UA_MANDATORY),
			    UVERBS_ATTR_PTR_IN(SIW_DG_ATTR_ZONE_OPEN_REQ,
					       UVERBS_ATTR_STRUCT(struct siw_dg_zone_open_req,
								  block),
					       UA_MANDATORY),
			    UVERBS_ATTR_PTR_OUT(SIW_DG_ATTR_ZONE_OPEN_RESP,
						UVERBS_ATTR_STRUCT(struct siw_dg_zone_open_resp,
								   qkey),
						UA_MANDATORY));

DECLARE_UVERBS_NAMED_METHOD_DESTROY(SIW_DG_METHOD_ZONE_CLOSE,
				    UVERBS_ATTR_IDR(SIW_DG_ATTR_ZONE_CLOSE_HANDLE,
						    SIW_DG_OBJECT_ZONE,
						    UVERBS_ACCESS_DESTROY,
						    UA_MANDATORY));

DECLARE_UVERBS_NAMED_METHOD(SIW_DG_METHOD_ZONE_ALLOW,
			    UVERBS_ATTR_IDR(SIW_DG_ATTR_ZONE_ALLOW_HANDLE,
					    SIW_DG_OBJECT_ZONE,
					    UVERBS_ACCESS_READ, UA_MANDATORY),
			    UVERBS_ATTR_PTR_IN(SIW_DG_ATTR_ZONE_ALLOW_SOURCE,
					       UVERBS_ATTR_STRUCT(struct siw_dg_zone_source,
								  reserved),
					       UA_MANDATORY));

DECLARE_UVERBS_NAMED_OBJECT(SIW_DG_OBJECT_ZONE,
			    UVERBS_TYPE_ALLOC_IDR(dg_zone_free),
			    &UVERBS_METHOD(SIW_DG_METHOD_ZONE_OPEN),
			    &UVERBS_METHOD(SIW_DG_METHOD_ZONE_CLOSE),
			    &UVERBS_METHOD(SIW_DG_METHOD_ZONE_ALLOW));

const struct uapi_definition dg_zone_defs[] = {
	UAPI_DEF_CHAIN_OBJ_TREE_NAMED(SIW_DG_OBJECT_ZONE),
	{},
};
