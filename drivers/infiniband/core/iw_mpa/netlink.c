// SPDX-License-Identifier: GPL-2.0
/*
 * The generic netlink family rdma-mpa: settings and capabilities.
 * Documentation/netlink/specs/rdma-mpa.yaml describes the family. genl.c has
 * its tables, generated from the description.
 *
 * Locks: handlers take iw_mpa_devices_lock and hold a reference on the device
 * while they use it, so that it is neither removed nor changes its namespace.
 * Notifications of connections are in notify.c.
 */
#include <linux/errno.h>
#include <linux/in6.h>
#include <linux/module.h>
#include <linux/nsproxy.h>
#include <net/genetlink.h>
#include <net/sock.h>

#include <rdma/ib_verbs.h>

#include "device.h"
#include "genl.h"
#include "netlink.h"
#include "option.h"

/* Settings and their attributes have the same numbers */
#define ASSERT_SETTING(name) \
	static_assert((int)RDMA_MPA_SETTING_##name == RDMA_MPA_A_POLICY_##name)

ASSERT_SETTING(REVISION);
ASSERT_SETTING(MODEL);
ASSERT_SETTING(RTR_OFFER);
ASSERT_SETTING(RTR_ACCEPT);
ASSERT_SETTING(RTR_ORDER);
ASSERT_SETTING(IRD);
ASSERT_SETTING(ORD);
ASSERT_SETTING(CRC);
ASSERT_SETTING(DIALECT);
ASSERT_SETTING(SHORT_IRD);
ASSERT_SETTING(FASTOPEN);
ASSERT_SETTING(SEGMENT);
ASSERT_SETTING(CONNECT_MS);
ASSERT_SETTING(REQUEST_MS);
ASSERT_SETTING(REPLY_MS);
ASSERT_SETTING(RTR_MS);
ASSERT_SETTING(DECIDE_MS);
ASSERT_SETTING(IRD_MODE);
ASSERT_SETTING(ORD_MODE);
ASSERT_SETTING(STREAMS);
ASSERT_SETTING(IDLE);

static_assert(IW_MPA_DEPTH_MAX == RDMA_MPA_DEPTH_MAX);

/* ---- settings: value <-> attributes */

static int put_rtr_order(struct sk_buff *msg, u32 order)
{
	struct nlattr *nest = nla_nest_start(msg, RDMA_MPA_A_POLICY_RTR_ORDER);

	if (!nest)
		return -EMSGSIZE;
	for (; order; order >>= 4)
		if (nla_put_u32(msg, RDMA_MPA_A_RTR_ORDER_KIND, order & 0xf))
			return -EMSGSIZE;
	nla_nest_end(msg, nest);
	return 0;
}

static int put_depth(struct sk_buff *msg, int attr, int mode_attr, u32 value)
{
	switch (value) {
	case IW_MPA_DEPTH_MAX:
		return nla_put_u32(msg, mode_attr, RDMA_MPA_DEPTH_MODE_DEVICE);
	case IW_MPA_DEPTH_ULP:
		return nla_put_u32(msg, mode_attr, RDMA_MPA_DEPTH_MODE_ULP);
	default:
		return nla_put_u32(msg, mode_attr,
				   RDMA_MPA_DEPTH_MODE_LIMITED) ?:
		       nla_put_u32(msg, attr, value);
	}
}

static int put_setting(struct sk_buff *msg, enum rdma_mpa_setting setting,
		       u32 value)
{
	switch (setting) {
	case RDMA_MPA_SETTING_RTR_ORDER:
		return put_rtr_order(msg, value);
	case RDMA_MPA_SETTING_IRD:
		return put_depth(msg, RDMA_MPA_A_POLICY_IRD,
				 RDMA_MPA_A_POLICY_IRD_MODE, value);
	case RDMA_MPA_SETTING_ORD:
		return put_depth(msg, RDMA_MPA_A_POLICY_ORD,
				 RDMA_MPA_A_POLICY_ORD_MODE, value);
	default:
		return nla_put_u32(msg, setting, value);
	}
}

/* The settings of @policy that are in @set, as the nest @attr */
static int put_policy(struct sk_buff *msg, int attr,
		      const struct iw_mpa_policy *policy, u32 set)
{
	struct nlattr *nest = nla_nest_start(msg, attr);
	enum rdma_mpa_setting setting;

	if (!nest)
		return -EMSGSIZE;
	iw_mpa_for_each_setting(setting)
		if (set & BIT(setting) &&
		    put_setting(msg, setting,
				iw_mpa_setting_get(policy, setting)))
			return -EMSGSIZE;
	nla_nest_end(msg, nest);
	return 0;
}

static int parse_rtr_order(const struct nlattr *nest, u32 *value)
{
	const struct nlattr *attr;
	unsigned int shift = 0;
	int rem;

	*value = 0;
	nla_for_each_nested(attr, nest, rem) {
		if (shift > 8 || !nla_get_u32(attr))
			return -EINVAL;
		*value |= nla_get_u32(attr) << shift;
		shift += 4;
	}
	return 0;
}

/* A limit is valid without its mode. All other modes must have no limit. */
static int parse_depth(const struct nlattr *limit, const struct nlattr *mode,
		       u32 *value)
{
	u32 how = mode ? nla_get_u32(mode) : RDMA_MPA_DEPTH_MODE_LIMITED;
	bool limited = how == RDMA_MPA_DEPTH_MODE_LIMITED;

	if (limited != !!limit)
		return -EINVAL;
	if (limit)
		*value = nla_get_u32(limit);
	else
		*value = how == RDMA_MPA_DEPTH_MODE_ULP ? IW_MPA_DEPTH_ULP :
							  IW_MPA_DEPTH_MAX;
	return 0;
}

/* The attribute of a setting in a request, or NULL */
static const struct nlattr *find_attr(struct nlattr *tb[],
				      enum rdma_mpa_setting setting)
{
	if (setting == RDMA_MPA_SETTING_IRD && !tb[setting])
		return tb[RDMA_MPA_A_POLICY_IRD_MODE];
	if (setting == RDMA_MPA_SETTING_ORD && !tb[setting])
		return tb[RDMA_MPA_A_POLICY_ORD_MODE];
	return tb[setting];
}

static int parse_setting(struct nlattr *tb[], enum rdma_mpa_setting setting,
			 u32 *value)
{
	switch (setting) {
	case RDMA_MPA_SETTING_RTR_ORDER:
		return parse_rtr_order(tb[setting], value);
	case RDMA_MPA_SETTING_IRD:
		return parse_depth(tb[setting], tb[RDMA_MPA_A_POLICY_IRD_MODE],
				   value);
	case RDMA_MPA_SETTING_ORD:
		return parse_depth(tb[setting], tb[RDMA_MPA_A_POLICY_ORD_MODE],
				   value);
	default:
		*value = nla_get_u32(tb[setting]);
		return 0;
	}
}

/* Reads the settings of a request into a layer */
static int parse_policy(const struct nlattr *nest, struct iw_mpa_layer *layer,
			struct netlink_ext_ack *extack)
{
	struct nlattr *tb[RDMA_MPA_A_POLICY_MAX + 1];
	enum rdma_mpa_setting setting;
	u32 value;
	int rv;

	rv = nla_parse_nested(tb, RDMA_MPA_A_POLICY_MAX, nest,
			      rdma_mpa_policy_nl_policy, extack);
	if (rv)
		return rv;

	iw_mpa_for_each_setting(setting) {
		const struct nlattr *attr = find_attr(tb, setting);

		if (!attr)
			continue;
		rv = parse_setting(tb, setting, &value) ?:
		     iw_mpa_layer_set(layer, setting, value);
		if (rv) {
			NL_SET_BAD_ATTR(extack, attr);
			NL_SET_ERR_MSG_FMT(extack, "%s: invalid value",
					   iw_mpa_setting_str(setting));
			return rv;
		}
	}
	return 0;
}

/* ---- replies */

static int put_origin(struct sk_buff *msg, enum rdma_mpa_setting setting,
		      u32 layer)
{
	struct nlattr *nest = nla_nest_start(msg, RDMA_MPA_A_ORIGIN);

	if (!nest ||
	    nla_put_u32(msg, RDMA_MPA_A_ORIGIN_SETTING, setting) ||
	    nla_put_u32(msg, RDMA_MPA_A_ORIGIN_LAYER, layer))
		return -EMSGSIZE;
	nla_nest_end(msg, nest);
	return 0;
}

/* Settings that exist on a device; the default layer has all settings */
static u32 existing_settings(const struct iw_mpa_device *dev)
{
	enum rdma_mpa_setting setting;
	u32 mask = 0;

	iw_mpa_for_each_setting(setting)
		if (!dev || iw_mpa_setting_exists(setting, &dev->driver.caps))
			mask |= BIT(setting);
	return mask;
}

static int put_view(struct sk_buff *msg, const struct iw_mpa_view *view,
		    u32 existing)
{
	enum rdma_mpa_setting setting;

	if (put_policy(msg, RDMA_MPA_A_POLICY, &view->own.value,
		       view->own.set) ||
	    put_policy(msg, RDMA_MPA_A_EFFECTIVE, &view->effective, existing))
		return -EMSGSIZE;
	iw_mpa_for_each_setting(setting) {
		if (existing & BIT(setting) &&
		    put_origin(msg, setting, view->origin[setting]))
			return -EMSGSIZE;
		if (view->not_taken & BIT(setting) &&
		    nla_put_u32(msg, RDMA_MPA_A_NOT_TAKEN, setting))
			return -EMSGSIZE;
	}
	return 0;
}

static int fill_policy(struct sk_buff *msg, const struct iw_mpa_place *place)
{
	struct iw_mpa_view view;

	iw_mpa_view_place(place, &view);
	if (place->dev && iw_mpa_put_ids(msg, place->dev))
		return -EMSGSIZE;
	if (place->port && nla_put_u32(msg, RDMA_MPA_A_PORT, place->port->num))
		return -EMSGSIZE;
	return put_view(msg, &view, existing_settings(place->dev));
}

static int fill_device(struct sk_buff *msg, const struct iw_mpa_place *place)
{
	const struct iw_mpa_caps *caps = &place->dev->driver.caps;
	struct nlattr *nest;

	if (iw_mpa_put_ids(msg, place->dev))
		return -EMSGSIZE;
	nest = nla_nest_start(msg, RDMA_MPA_A_CAPS);
	if (!nest ||
	    nla_put_u32(msg, RDMA_MPA_A_CAPS_MAX_IRD, caps->max_ird) ||
	    nla_put_u32(msg, RDMA_MPA_A_CAPS_MAX_ORD, caps->max_ord) ||
	    nla_put_u32(msg, RDMA_MPA_A_CAPS_RTR_SEND, caps->rtr_send) ||
	    nla_put_u32(msg, RDMA_MPA_A_CAPS_RTR_RECV, caps->rtr_recv) ||
	    iw_mpa_put_flag(msg, RDMA_MPA_A_CAPS_CRC, !caps->no_crc) ||
	    iw_mpa_put_flag(msg, RDMA_MPA_A_CAPS_TX_MARKERS, caps->tx_markers) ||
	    iw_mpa_put_flag(msg, RDMA_MPA_A_CAPS_RX_MARKERS, caps->rx_markers))
		return -EMSGSIZE;
	nla_nest_end(msg, nest);
	return 0;
}

/* ---- notifications */

static void notify_policy(const struct iw_mpa_place *place)
{
	struct net *net = iw_mpa_owner_net(place->dev);
	struct sk_buff *msg;
	void *hdr;

	if (!genl_has_listeners(&rdma_mpa_nl_family, net, RDMA_MPA_NLGRP_POLICIES))
		return;
	msg = genlmsg_new(NLMSG_GOODSIZE, GFP_KERNEL);
	if (!msg)
		goto lost;
	hdr = genlmsg_put(msg, 0, 0, &rdma_mpa_nl_family, 0,
			  RDMA_MPA_CMD_POLICY_NTF);
	if (!hdr || fill_policy(msg, place)) {
		nlmsg_free(msg);
		goto lost;
	}
	genlmsg_end(msg, hdr);
	genlmsg_multicast_netns(&rdma_mpa_nl_family, net, msg, 0,
				RDMA_MPA_NLGRP_POLICIES, GFP_KERNEL);
	return;
lost:
	genl_set_err(&rdma_mpa_nl_family, net, 0, RDMA_MPA_NLGRP_POLICIES,
		     -ENOBUFS);
}

/* ---- requests */

static void put_place(const struct iw_mpa_place *place)
{
	if (place->dev)
		ib_device_put(place->dev->ibdev);
}

static int find_port(struct genl_info *info, struct iw_mpa_place *place)
{
	const struct nlattr *attr = info->attrs[RDMA_MPA_A_PORT];
	u32 num = nla_get_u32(attr);

	if (num && num <= place->dev->ports) {
		place->port = &place->dev->port[num - 1];
		return 0;
	}
	NL_SET_BAD_ATTR(info->extack, attr);
	NL_SET_ERR_MSG_FMT(info->extack, "no such port, ports are 1 to %u",
			   place->dev->ports);
	return -EINVAL;
}

/* The device that a request names, with a reference */
static int find_device(struct genl_info *info, struct iw_mpa_place *place)
{
	const struct nlattr *index = info->attrs[RDMA_MPA_A_DEV_INDEX];

	memset(place, 0, sizeof(*place));
	place->dev = iw_mpa_find_device(nla_get_u32(index));
	if (place->dev &&
	    !rdma_dev_access_netns(place->dev->ibdev, genl_info_net(info))) {
		put_place(place);
		place->dev = NULL;
	}
	if (place->dev)
		return 0;
	NL_SET_BAD_ATTR(info->extack, index);
	NL_SET_ERR_MSG(info->extack, "no iWARP device with this index in this namespace");
	return -ENODEV;
}

/* The place that a request names, with a reference on its device */
static int get_place(struct genl_info *info, struct iw_mpa_place *place)
{
	int rv;

	memset(place, 0, sizeof(*place));
	if (!info->attrs[RDMA_MPA_A_DEV_INDEX]) {
		if (!info->attrs[RDMA_MPA_A_PORT])
			return 0;
		NL_SET_ERR_MSG(info->extack, "a port requires a device index");
		return -EINVAL;
	}
	rv = find_device(info, place);
	if (rv || !info->attrs[RDMA_MPA_A_PORT])
		return rv;
	rv = find_port(info, place);
	if (rv)
		put_place(place);
	return rv;
}

static int send_reply(struct genl_info *info, u8 cmd,
		      const struct iw_mpa_place *place,
		      int (*fill)(struct sk_buff *msg,
				  const struct iw_mpa_place *place))
{
	struct sk_buff *msg = genlmsg_new(NLMSG_GOODSIZE, GFP_KERNEL);
	void *hdr;

	if (!msg)
		return -ENOMEM;
	hdr = genlmsg_put_reply(msg, info, &rdma_mpa_nl_family, 0, cmd);
	if (!hdr || fill(msg, place)) {
		nlmsg_free(msg);
		return -EMSGSIZE;
	}
	genlmsg_end(msg, hdr);
	return genlmsg_reply(msg, info);
}

int rdma_mpa_nl_policy_get_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct iw_mpa_place place;
	int rv;

	mutex_lock(&iw_mpa_devices_lock);
	rv = get_place(info, &place);
	if (!rv) {
		rv = send_reply(info, RDMA_MPA_CMD_POLICY_GET, &place,
				fill_policy);
		put_place(&place);
	}
	mutex_unlock(&iw_mpa_devices_lock);
	return rv;
}

int rdma_mpa_nl_dev_get_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct iw_mpa_place place;
	int rv;

	if (GENL_REQ_ATTR_CHECK(info, RDMA_MPA_A_DEV_INDEX)) {
		NL_SET_ERR_MSG(info->extack, "device index attribute missing");
		return -EINVAL;
	}
	mutex_lock(&iw_mpa_devices_lock);
	rv = find_device(info, &place);
	if (!rv) {
		rv = send_reply(info, RDMA_MPA_CMD_DEV_GET, &place,
				fill_device);
		put_place(&place);
	}
	mutex_unlock(&iw_mpa_devices_lock);
	return rv;
}

/* ---- changes */

static int check_permission(struct sk_buff *skb, struct genl_info *info,
			    const struct iw_mpa_place *place)
{
	if (netlink_ns_capable(skb, iw_mpa_owner_net(place->dev)->user_ns,
			       CAP_NET_ADMIN))
		return 0;
	NL_SET_ERR_MSG(info->extack,
		       "needs CAP_NET_ADMIN in the namespace that owns the device");
	return -EPERM;
}

static int parse_policy_set(struct genl_info *info,
			    struct iw_mpa_change *change)
{
	if (GENL_REQ_ATTR_CHECK(info, RDMA_MPA_A_POLICY)) {
		NL_SET_ERR_MSG(info->extack, "settings attribute missing");
		return -EINVAL;
	}
	return parse_policy(info->attrs[RDMA_MPA_A_POLICY], &change->layer,
			    info->extack);
}

static int parse_policy_reset(struct genl_info *info,
			      struct iw_mpa_change *change)
{
	const struct nlattr *attr;
	int rem;

	if (!info->attrs[RDMA_MPA_A_SETTING])
		change->unset = ~0U;
	/* There is one attribute for each setting */
	nlmsg_for_each_attr(attr, info->nlhdr, GENL_HDRLEN, rem) {
		if (nla_type(attr) != RDMA_MPA_A_SETTING)
			continue;
		if (!iw_mpa_is_setting(nla_get_u32(attr))) {
			NL_SET_BAD_ATTR(info->extack, attr);
			NL_SET_ERR_MSG(info->extack, "unknown setting number");
			return -EINVAL;
		}
		change->unset |= BIT(nla_get_u32(attr));
	}
	return 0;
}

/* Applies a change and sends a notification of it */
static int change_place(struct sk_buff *skb, struct genl_info *info,
			const struct iw_mpa_place *place,
			const struct iw_mpa_change *change)
{
	char why[NETLINK_MAX_FMTMSG_LEN];
	int rv;

	rv = check_permission(skb, info, place);
	if (rv)
		return rv;
	rv = iw_mpa_change_layer(place, change, why, sizeof(why));
	if (rv)
		NL_SET_ERR_MSG_FMT(info->extack, "%s", why);
	else
		notify_policy(place);
	return rv;
}

static int handle_change(struct sk_buff *skb, struct genl_info *info,
			 const struct iw_mpa_change *change)
{
	struct iw_mpa_place place;
	int rv;

	mutex_lock(&iw_mpa_devices_lock);
	rv = get_place(info, &place);
	if (!rv) {
		rv = change_place(skb, info, &place, change);
		put_place(&place);
	}
	mutex_unlock(&iw_mpa_devices_lock);
	return rv;
}

int rdma_mpa_nl_policy_set_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct iw_mpa_change change = {};

	return parse_policy_set(info, &change) ?:
	       handle_change(skb, info, &change);
}

int rdma_mpa_nl_policy_reset_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct iw_mpa_change change = {};

	return parse_policy_reset(info, &change) ?:
	       handle_change(skb, info, &change);
}

/* ---- dumps */

/**
 * struct dump - progress of a dump
 * @skb: message to fill
 * @cb: the dump; args[0] counts the records sent so far
 * @cmd: command of the records
 * @fill: fills in one record
 * @at: number of the next record
 * @rv: -EMSGSIZE once the message is full
 */
struct dump {
	struct sk_buff *skb;
	struct netlink_callback *cb;
	u8 cmd;
	int (*fill)(struct sk_buff *msg, const struct iw_mpa_place *place);
	long at;
	int rv;
};

static void dump_record(struct dump *d, const struct iw_mpa_place *place)
{
	void *hdr;

	if (d->rv || d->at++ < d->cb->args[0])
		return;
	hdr = genlmsg_put(d->skb, NETLINK_CB(d->cb->skb).portid,
			  d->cb->nlh->nlmsg_seq, &rdma_mpa_nl_family, NLM_F_MULTI,
			  d->cmd);
	if (!hdr) {
		d->rv = -EMSGSIZE;
		return;
	}
	genl_dump_check_consistent(d->cb, hdr);
	d->rv = d->fill(d->skb, place);
	if (d->rv) {
		genlmsg_cancel(d->skb, hdr);
		return;
	}
	genlmsg_end(d->skb, hdr);
	d->cb->args[0]++;
}

static void dump_device(struct dump *d, struct iw_mpa_device *dev)
{
	struct iw_mpa_place place = { .dev = dev };
	u32 i;

	if (!rdma_dev_access_netns(dev->ibdev, sock_net(d->cb->skb->sk)))
		return;
	dump_record(d, &place);
	if (d->cmd != RDMA_MPA_CMD_POLICY_GET)
		return;
	for (i = 0; i < dev->ports; i++) {
		place.port = &dev->port[i];
		dump_record(d, &place);
	}
}

/* A number that changes with the list of devices, never 0 */
static u32 list_sequence(const struct net *net)
{
	struct iw_mpa_device *dev;
	u32 seq = iw_mpa_generation;

	/* A device can move to another namespace without notice to iw_mpa */
	list_for_each_entry(dev, &iw_mpa_devices, list) {
		if (!ib_device_try_get(dev->ibdev))
			continue;
		if (rdma_dev_access_netns(dev->ibdev, net))
			seq = seq * 31 + dev->ibdev->index + 1;
		ib_device_put(dev->ibdev);
	}
	return seq ?: 1;
}

/*
 * A dump continues at the number of its next record. If the list has changed
 * since, the reader gets NLM_F_DUMP_INTR and starts again.
 */
static int dump_list(struct dump *d)
{
	struct iw_mpa_place nowhere = {};
	struct iw_mpa_device *dev;
	long before = d->cb->args[0];

	if (nlmsg_attrlen(d->cb->nlh, GENL_HDRLEN)) {
		NL_SET_ERR_MSG(d->cb->extack, "a dump does not support attributes");
		return -EINVAL;
	}
	mutex_lock(&iw_mpa_devices_lock);
	d->cb->seq = list_sequence(sock_net(d->cb->skb->sk));
	if (d->cmd == RDMA_MPA_CMD_POLICY_GET)
		dump_record(d, &nowhere);
	list_for_each_entry(dev, &iw_mpa_devices, list) {
		if (!ib_device_try_get(dev->ibdev))
			continue;
		dump_device(d, dev);
		ib_device_put(dev->ibdev);
	}
	mutex_unlock(&iw_mpa_devices_lock);

	/* A record that does not fit into an empty message never will */
	if (d->rv && d->cb->args[0] == before)
		return d->rv;
	return d->skb->len;
}

int rdma_mpa_nl_policy_get_dumpit(struct sk_buff *skb,
				  struct netlink_callback *cb)
{
	struct dump d = {
		.skb = skb,
		.cb = cb,
		.cmd = RDMA_MPA_CMD_POLICY_GET,
		.fill = fill_policy,
	};

	return dump_list(&d);
}

int rdma_mpa_nl_dev_get_dumpit(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct dump d = {
		.skb = skb,
		.cb = cb,
		.cmd = RDMA_MPA_CMD_DEV_GET,
		.fill = fill_device,
	};

	return dump_list(&d);
}

/* ---- family */

MODULE_ALIAS_GENL_FAMILY(RDMA_MPA_FAMILY_NAME);

static int __init iw_mpa_init(void)
{
	int rv = genl_register_family(&rdma_mpa_nl_family);

	if (!rv)
		iw_mpa_register_options();
	return rv;
}

static void __exit iw_mpa_exit(void)
{
	iw_mpa_unregister_options();
	genl_unregister_family(&rdma_mpa_nl_family);
}

module_init(iw_mpa_init);
module_exit(iw_mpa_exit);
