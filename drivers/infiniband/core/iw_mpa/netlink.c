// SPDX-License-Identifier: GPL-2.0
/*
 * The NETLINK_RDMA client: policies, counters, connections, notifications. The
 * interface is include/uapi/rdma/rdma_mpa.h.
 *
 * Every byte of a message comes from a program that may have any intention:
 * attributes are looked at only after nlmsg_parse() with a table of what the
 * command takes.
 *
 * Locks: handlers take iw_mpa_devices_lock and hold a reference on the device
 * while they look at it, so that it neither goes away nor changes its namespace.
 * Notifications of connections are sent under the driver's lock for the session
 * and take none of ours.
 *
 * What is put into an extack must not be in this module, which may be gone when
 * the answer is written: see refuse() and finish().
 */
#include <linux/errno.h>
#include <linux/in6.h>
#include <linux/module.h>
#include <linux/nsproxy.h>
#include <net/netlink.h>
#include <net/sock.h>

#include <rdma/ib_verbs.h>
#include <rdma/rdma_netlink.h>
#include <rdma/restrack.h>

#include "device.h"
#include "netlink.h"
#include "observe.h"

MODULE_ALIAS_RDMA_NETLINK(RDMA_NL_MPA, 63);

#define refuse(extack, ...) rdma_nl_set_err_msg(extack, __VA_ARGS__)

static const struct nla_policy settings_policy[] = {
	[RDMA_MPA_POLICY_REVISION]	= { .type = NLA_U8 },
	[RDMA_MPA_POLICY_MODEL]		= { .type = NLA_U8 },
	[RDMA_MPA_POLICY_RTR_OFFER]	= { .type = NLA_U8 },
	[RDMA_MPA_POLICY_RTR_ACCEPT]	= { .type = NLA_U8 },
	[RDMA_MPA_POLICY_RTR_ORDER]	= { .type = NLA_BINARY, .len = 3 },
	[RDMA_MPA_POLICY_IRD]		= { .type = NLA_U16 },
	[RDMA_MPA_POLICY_ORD]		= { .type = NLA_U16 },
	[RDMA_MPA_POLICY_CRC]		= { .type = NLA_U8 },
	[RDMA_MPA_POLICY_REQUEST_MS]	= { .type = NLA_U32 },
	[RDMA_MPA_POLICY_REPLY_MS]	= { .type = NLA_U32 },
	[RDMA_MPA_POLICY_RTR_MS]	= { .type = NLA_U32 },
	[RDMA_MPA_POLICY_DECIDE_MS]	= { .type = NLA_U32 },
	[RDMA_MPA_POLICY_DIALECT]	= { .type = NLA_U8 },
	[RDMA_MPA_POLICY_CONNECT_MS]	= { .type = NLA_U32 },
	[RDMA_MPA_POLICY_SHORT_IRD]	= { .type = NLA_U8 },
	[RDMA_MPA_POLICY_FASTOPEN]	= { .type = NLA_U8 },
};

static const char * const setting_name[] = {
	[RDMA_MPA_POLICY_REVISION]	= "revision",
	[RDMA_MPA_POLICY_MODEL]		= "model",
	[RDMA_MPA_POLICY_RTR_OFFER]	= "RTR kinds to offer",
	[RDMA_MPA_POLICY_RTR_ACCEPT]	= "RTR kinds to accept",
	[RDMA_MPA_POLICY_RTR_ORDER]	= "order of RTR kinds",
	[RDMA_MPA_POLICY_IRD]		= "IRD",
	[RDMA_MPA_POLICY_ORD]		= "ORD",
	[RDMA_MPA_POLICY_CRC]		= "CRC",
	[RDMA_MPA_POLICY_REQUEST_MS]	= "deadline of the Request",
	[RDMA_MPA_POLICY_REPLY_MS]	= "deadline of the Reply",
	[RDMA_MPA_POLICY_RTR_MS]	= "deadline of the RTR",
	[RDMA_MPA_POLICY_DECIDE_MS]	= "deadline of the program",
	[RDMA_MPA_POLICY_DIALECT]	= "dialect",
	[RDMA_MPA_POLICY_CONNECT_MS]	= "deadline of TCP",
	[RDMA_MPA_POLICY_SHORT_IRD]	= "answer to a short IRD",
	[RDMA_MPA_POLICY_FASTOPEN]	= "TCP Fast Open",
};

static const struct nla_policy place_policy[] = {
	[RDMA_MPA_ATTR_DEV_INDEX]	= { .type = NLA_U32 },
	[RDMA_MPA_ATTR_PORT]		= { .type = NLA_U32 },
};

static const struct nla_policy set_policy[] = {
	[RDMA_MPA_ATTR_DEV_INDEX]	= { .type = NLA_U32 },
	[RDMA_MPA_ATTR_PORT]		= { .type = NLA_U32 },
	[RDMA_MPA_ATTR_POLICY]		= { .type = NLA_NESTED },
};

static const struct nla_policy reset_policy[] = {
	[RDMA_MPA_ATTR_DEV_INDEX]	= { .type = NLA_U32 },
	[RDMA_MPA_ATTR_PORT]		= { .type = NLA_U32 },
	[RDMA_MPA_ATTR_SETTINGS]	= { .type = NLA_U32 },
};

static const struct nla_policy conn_policy[] = {
	[RDMA_MPA_ATTR_DEV_INDEX]	= { .type = NLA_U32 },
	[RDMA_MPA_ATTR_QPN]		= { .type = NLA_U32 },
	[RDMA_MPA_ATTR_CM_ID]		= { .type = NLA_U32 },
};

/* ---- messages */

static int put_kinds(struct sk_buff *msg, const struct iw_mpa_policy *p, u32 set)
{
	if (set & BIT(RDMA_MPA_POLICY_RTR_OFFER) &&
	    nla_put_u8(msg, RDMA_MPA_POLICY_RTR_OFFER, p->rtr_offer))
		return -EMSGSIZE;
	if (set & BIT(RDMA_MPA_POLICY_RTR_ACCEPT) &&
	    nla_put_u8(msg, RDMA_MPA_POLICY_RTR_ACCEPT, p->rtr_accept))
		return -EMSGSIZE;
	if (set & BIT(RDMA_MPA_POLICY_RTR_ORDER) &&
	    nla_put(msg, RDMA_MPA_POLICY_RTR_ORDER, sizeof(p->rtr_order),
		    p->rtr_order))
		return -EMSGSIZE;
	return 0;
}

static int put_deadlines(struct sk_buff *msg, const struct iw_mpa_policy *p,
			 u32 set)
{
	const struct {
		u16 attr;
		u32 ms;
	} deadline[] = {
		{ RDMA_MPA_POLICY_CONNECT_MS, p->connect_ms },
		{ RDMA_MPA_POLICY_REQUEST_MS, p->request_ms },
		{ RDMA_MPA_POLICY_REPLY_MS, p->reply_ms },
		{ RDMA_MPA_POLICY_RTR_MS, p->rtr_ms },
		{ RDMA_MPA_POLICY_DECIDE_MS, p->decide_ms },
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(deadline); i++)
		if (set & BIT(deadline[i].attr) &&
		    nla_put_u32(msg, deadline[i].attr, deadline[i].ms))
			return -EMSGSIZE;
	return 0;
}

static u8 revision_of(const struct iw_mpa_policy *p)
{
	if (!p->enhanced)
		return RDMA_MPA_REVISION_1;
	return p->fallback ? RDMA_MPA_REVISION_2_OR_1 : RDMA_MPA_REVISION_2;
}

/* The settings of @p that are in @set, as the nest @attr */
static int put_settings(struct sk_buff *msg, int attr,
			const struct iw_mpa_policy *p, u32 set)
{
	struct nlattr *nest = nla_nest_start(msg, attr);

	if (!nest)
		return -EMSGSIZE;
	if (set & BIT(RDMA_MPA_POLICY_REVISION) &&
	    nla_put_u8(msg, RDMA_MPA_POLICY_REVISION, revision_of(p)))
		return -EMSGSIZE;
	if (set & BIT(RDMA_MPA_POLICY_MODEL) &&
	    nla_put_u8(msg, RDMA_MPA_POLICY_MODEL, p->model))
		return -EMSGSIZE;
	if (put_kinds(msg, p, set))
		return -EMSGSIZE;
	if (set & BIT(RDMA_MPA_POLICY_IRD) &&
	    nla_put_u16(msg, RDMA_MPA_POLICY_IRD,
			p->ird_ulp ? RDMA_MPA_DEPTH_ULP : p->max_ird))
		return -EMSGSIZE;
	if (set & BIT(RDMA_MPA_POLICY_ORD) &&
	    nla_put_u16(msg, RDMA_MPA_POLICY_ORD,
			p->ord_ulp ? RDMA_MPA_DEPTH_ULP : p->max_ord))
		return -EMSGSIZE;
	if (set & BIT(RDMA_MPA_POLICY_CRC) &&
	    nla_put_u8(msg, RDMA_MPA_POLICY_CRC, p->crc))
		return -EMSGSIZE;
	if (put_deadlines(msg, p, set))
		return -EMSGSIZE;
	if (set & BIT(RDMA_MPA_POLICY_DIALECT) &&
	    nla_put_u8(msg, RDMA_MPA_POLICY_DIALECT, p->dialect))
		return -EMSGSIZE;
	if (set & BIT(RDMA_MPA_POLICY_SHORT_IRD) &&
	    nla_put_u8(msg, RDMA_MPA_POLICY_SHORT_IRD, p->ord_strict))
		return -EMSGSIZE;
	if (set & BIT(RDMA_MPA_POLICY_FASTOPEN) &&
	    nla_put_u8(msg, RDMA_MPA_POLICY_FASTOPEN, p->fastopen))
		return -EMSGSIZE;
	nla_nest_end(msg, nest);
	return 0;
}

static int put_origin(struct sk_buff *msg, const struct iw_mpa_view *view)
{
	struct nlattr *nest = nla_nest_start(msg, RDMA_MPA_ATTR_ORIGIN);
	int i;

	if (!nest)
		return -EMSGSIZE;
	for (i = RDMA_MPA_POLICY_UNSPEC + 1; i < __RDMA_MPA_POLICY_NUM; i++)
		if (nla_put_u8(msg, i, view->origin[i]))
			return -EMSGSIZE;
	nla_nest_end(msg, nest);
	return 0;
}

static int put_caps(struct sk_buff *msg, const struct iw_mpa_caps *caps)
{
	struct nlattr *nest = nla_nest_start(msg, RDMA_MPA_ATTR_CAPS);

	if (!nest ||
	    nla_put_u32(msg, RDMA_MPA_CAP_MAX_IRD, caps->max_ird) ||
	    nla_put_u32(msg, RDMA_MPA_CAP_MAX_ORD, caps->max_ord) ||
	    nla_put_u8(msg, RDMA_MPA_CAP_RTR_SEND, caps->rtr_send) ||
	    nla_put_u8(msg, RDMA_MPA_CAP_RTR_RECV, caps->rtr_recv) ||
	    nla_put_u8(msg, RDMA_MPA_CAP_CRC, !caps->no_crc) ||
	    nla_put_u8(msg, RDMA_MPA_CAP_TX_MARKERS, caps->tx_markers) ||
	    nla_put_u8(msg, RDMA_MPA_CAP_RX_MARKERS, caps->rx_markers) ||
	    nla_put_u8(msg, RDMA_MPA_CAP_FASTOPEN, caps->fastopen))
		return -EMSGSIZE;
	nla_nest_end(msg, nest);
	return 0;
}

static int put_place(struct sk_buff *msg, const struct iw_mpa_place *place)
{
	const struct iw_mpa_device *dev = place->dev;

	if (!dev)
		return 0;
	if (nla_put_u32(msg, RDMA_MPA_ATTR_DEV_INDEX, dev->ibdev->index) ||
	    nla_put_string(msg, RDMA_MPA_ATTR_DEV_NAME,
			   dev_name(&dev->ibdev->dev)) ||
	    nla_put_string(msg, RDMA_MPA_ATTR_LLP, dev->ops->llp))
		return -EMSGSIZE;
	if (place->port &&
	    nla_put_u32(msg, RDMA_MPA_ATTR_PORT, place->port->num))
		return -EMSGSIZE;
	return 0;
}

static int fill_policy(struct sk_buff *msg, const struct iw_mpa_place *place)
{
	struct iw_mpa_view view;

	iw_mpa_view(place, &view);
	if (put_place(msg, place) ||
	    put_settings(msg, RDMA_MPA_ATTR_POLICY, &view.own.value,
			 view.own.set) ||
	    put_settings(msg, RDMA_MPA_ATTR_EFFECTIVE, &view.effective, ~0U) ||
	    put_origin(msg, &view))
		return -EMSGSIZE;
	return place->dev ? put_caps(msg, &place->dev->caps) : 0;
}

static int put_stat(struct sk_buff *msg, const struct iw_mpa_port *port,
		    enum iw_mpa_counter counter)
{
	struct nlattr *nest = nla_nest_start(msg, RDMA_MPA_ATTR_STAT);

	if (!nest ||
	    nla_put_string(msg, RDMA_MPA_ATTR_STAT_NAME,
			   iw_mpa_counter_name(counter)) ||
	    nla_put_u64_64bit(msg, RDMA_MPA_ATTR_STAT_VALUE,
			      iw_mpa_counter_read(port, counter),
			      RDMA_MPA_ATTR_PAD))
		return -EMSGSIZE;
	nla_nest_end(msg, nest);
	return 0;
}

static int fill_stat(struct sk_buff *msg, const struct iw_mpa_place *place)
{
	struct nlattr *nest;
	int i;

	if (put_place(msg, place))
		return -EMSGSIZE;
	nest = nla_nest_start(msg, RDMA_MPA_ATTR_STATS);
	if (!nest)
		return -EMSGSIZE;
	for (i = 0; i < IW_MPA_COUNTERS; i++)
		if (put_stat(msg, place->port, i))
			return -EMSGSIZE;
	nla_nest_end(msg, nest);
	return 0;
}

static struct sk_buff *new_message(u32 portid, u32 seq, int cmd, gfp_t gfp,
				   struct nlmsghdr **nlh)
{
	struct sk_buff *msg = nlmsg_new(NLMSG_GOODSIZE, gfp);

	if (!msg)
		return NULL;
	*nlh = nlmsg_put(msg, portid, seq,
			 RDMA_NL_GET_TYPE(RDMA_NL_MPA, cmd), 0, 0);
	if (*nlh)
		return msg;
	nlmsg_free(msg);
	return NULL;
}

/* The first namespace for what belongs to no device; else needs a reference */
static struct net *owner_net(const struct iw_mpa_device *dev)
{
	return dev ? read_pnet(&dev->ibdev->coredev.rdma_net) : &init_net;
}

/* ---- notifications */

static bool is_heard(const struct net *net)
{
	/* Of other namespaces ib_core cannot tell */
	return net != &init_net || rdma_nl_chk_listeners(RDMA_NL_GROUP_MPA);
}

static void notify_policy(const struct iw_mpa_place *place)
{
	struct net *net = owner_net(place->dev);
	struct sk_buff *msg;
	struct nlmsghdr *nlh;

	if (!is_heard(net))
		return;
	msg = new_message(0, 0, RDMA_MPA_CMD_POLICY_NTF, GFP_KERNEL, &nlh);
	if (!msg)
		return;
	if (fill_policy(msg, place)) {
		nlmsg_free(msg);
		return;
	}
	nlmsg_end(msg, nlh);
	rdma_nl_multicast(net, msg, RDMA_NL_GROUP_MPA, GFP_KERNEL);
}

static int put_addr(struct sk_buff *msg, int attr,
		    const struct sockaddr_storage *addr)
{
	switch (addr->ss_family) {
	case AF_INET:
		return nla_put(msg, attr, sizeof(struct sockaddr_in), addr);
	case AF_INET6:
		return nla_put(msg, attr, sizeof(struct sockaddr_in6), addr);
	default:
		return 0;
	}
}

static int put_name(struct sk_buff *msg, const struct iw_mpa_session *s)
{
	struct iw_mpa_name name;

	iw_mpa_session_name(s, &name);
	if (name.qpn && nla_put_u32(msg, RDMA_MPA_ATTR_QPN, name.qpn))
		return -EMSGSIZE;
	if (put_addr(msg, RDMA_MPA_ATTR_LOCAL_ADDR, &name.local) ||
	    put_addr(msg, RDMA_MPA_ATTR_REMOTE_ADDR, &name.remote))
		return -EMSGSIZE;
	return 0;
}

static int put_outcome(struct sk_buff *msg, const struct iw_mpa_session *s)
{
	const struct iw_mpa_decision *d = &s->outcome;
	/* In force, or, of what has failed, asked for */
	bool p2p = d->rtr ||
		   (s->responder ? s->peer.enh.p2p : s->sent.enh.p2p);

	/* There is none without the peer's frame */
	if (!s->peer.rev)
		return 0;
	if (nla_put_u8(msg, RDMA_MPA_ATTR_REVISION, s->peer.rev) ||
	    nla_put_u8(msg, RDMA_MPA_ATTR_ENHANCED, s->peer.enhanced) ||
	    nla_put_u8(msg, RDMA_MPA_ATTR_MODEL,
		       p2p ? RDMA_MPA_MODEL_PEER_TO_PEER :
			     RDMA_MPA_MODEL_CLIENT_SERVER) ||
	    nla_put_u8(msg, RDMA_MPA_ATTR_RTR, d->rtr) ||
	    nla_put_u32(msg, RDMA_MPA_ATTR_IRD, d->ird) ||
	    nla_put_u32(msg, RDMA_MPA_ATTR_ORD, d->ord) ||
	    nla_put_u8(msg, RDMA_MPA_ATTR_CRC, s->sent_crc || s->peer.crc))
		return -EMSGSIZE;
	if (s->responder &&
	    nla_put_u8(msg, RDMA_MPA_ATTR_RTR_SEEN, s->rtr_seen))
		return -EMSGSIZE;
	if (d->peer_known &&
	    (nla_put_u32(msg, RDMA_MPA_ATTR_PEER_IRD, d->peer_ird) ||
	     nla_put_u32(msg, RDMA_MPA_ATTR_PEER_ORD, d->peer_ord)))
		return -EMSGSIZE;
	return 0;
}

static int fill_conn(struct sk_buff *msg, const struct iw_mpa_session *s,
		     enum iw_mpa_state state, int status, u8 ecode)
{
	struct iw_mpa_place place = { .dev = s->port->dev, .port = s->port };

	if (put_place(msg, &place) ||
	    nla_put_string(msg, RDMA_MPA_ATTR_STATE, iw_mpa_state_str(state)) ||
	    nla_put_u8(msg, RDMA_MPA_ATTR_ROLE,
		       s->responder ? RDMA_MPA_ROLE_RESPONDER :
				      RDMA_MPA_ROLE_INITIATOR) ||
	    nla_put_u32(msg, RDMA_MPA_ATTR_STATUS, -status) ||
	    nla_put_u8(msg, RDMA_MPA_ATTR_ECODE, ecode) ||
	    nla_put_u8(msg, RDMA_MPA_ATTR_FALLBACK, s->fell_back) ||
	    nla_put_u8(msg, RDMA_MPA_ATTR_FASTOPEN, s->fast_opened) ||
	    put_name(msg, s))
		return -EMSGSIZE;
	return put_outcome(msg, s);
}

static void notify_conn(const struct iw_mpa_session *s, enum iw_mpa_state state,
			int status, enum iw_mpa_ecode ecode)
{
	struct net *net = owner_net(s->port->dev);
	struct sk_buff *msg;
	struct nlmsghdr *nlh;

	if (!is_heard(net))
		return;
	/* Reclaim might wait for this very connection */
	msg = new_message(0, 0, RDMA_MPA_CMD_CONN_NTF,
			  GFP_ATOMIC | __GFP_NOWARN, &nlh);
	if (!msg)
		return;
	if (fill_conn(msg, s, state, status, ecode)) {
		nlmsg_free(msg);
		return;
	}
	nlmsg_end(msg, nlh);
	rdma_nl_multicast(net, msg, RDMA_NL_GROUP_MPA, GFP_ATOMIC);
}

/**
 * iw_mpa_notify_conn - tell who listens what became of a connection
 * @s: the session
 * @was: the state it ended in
 * @status: 0 for established, else a negative errno
 * @ecode: why, in MPA terms
 *
 * May sleep.
 */
void iw_mpa_notify_conn(const struct iw_mpa_session *s, enum iw_mpa_state was,
			int status, enum iw_mpa_ecode ecode)
{
	struct ib_device *ibdev;

	if (!s->port)
		return;
	/* With a reference it stays in its namespace, and so does that */
	ibdev = s->port->dev->ibdev;
	if (!ib_device_try_get(ibdev))
		return;
	notify_conn(s, status ? was : s->state, status, ecode);
	ib_device_put(ibdev);
}

/**
 * iw_mpa_fill_conn - put what a session negotiated into a message
 * @msg: the message that the driver's fill_conn was given
 * @s: the session, with a port
 *
 * Called like an entry point, with the session not changing meanwhile.
 *
 * Return: 0, -EMSGSIZE, or -ENOTCONN if nothing has begun.
 */
int iw_mpa_fill_conn(struct sk_buff *msg, const struct iw_mpa_session *s)
{
	if (!s->port || s->state == IW_MPA_IDLE)
		return -ENOTCONN;
	return fill_conn(msg, s, s->state, 0, IW_MPA_ECODE_NONE);
}
EXPORT_SYMBOL_GPL(iw_mpa_fill_conn);

/* ---- requests */

static void drop_device(struct iw_mpa_device *dev)
{
	if (dev)
		ib_device_put(dev->ibdev);
}

/* The place that DEV_INDEX and PORT name, with a reference on its device */
static int find_place(struct sk_buff *skb, struct nlattr *tb[],
		      struct netlink_ext_ack *extack, struct iw_mpa_place *place)
{
	u32 num;

	memset(place, 0, sizeof(*place));
	if (!tb[RDMA_MPA_ATTR_DEV_INDEX]) {
		if (!tb[RDMA_MPA_ATTR_PORT])
			return 0;
		refuse(extack, "a port needs a device");
		return -EINVAL;
	}
	place->dev = iw_mpa_find_device(nla_get_u32(tb[RDMA_MPA_ATTR_DEV_INDEX]));
	if (place->dev &&
	    !rdma_dev_access_netns(place->dev->ibdev, sock_net(skb->sk))) {
		drop_device(place->dev);
		place->dev = NULL;
	}
	if (!place->dev) {
		NL_SET_BAD_ATTR(extack, tb[RDMA_MPA_ATTR_DEV_INDEX]);
		refuse(extack, "no iWARP device of that index here");
		return -ENODEV;
	}
	if (!tb[RDMA_MPA_ATTR_PORT])
		return 0;

	num = nla_get_u32(tb[RDMA_MPA_ATTR_PORT]);
	if (num && num <= place->dev->ports) {
		place->port = &place->dev->port[num - 1];
		return 0;
	}
	NL_SET_BAD_ATTR(extack, tb[RDMA_MPA_ATTR_PORT]);
	refuse(extack, "the device has the ports 1 to %u", place->dev->ports);
	drop_device(place->dev);
	return -EINVAL;
}

static int may_change(struct sk_buff *skb, const struct iw_mpa_place *place,
		      struct netlink_ext_ack *extack)
{
	if (netlink_ns_capable(skb, owner_net(place->dev)->user_ns,
			       CAP_NET_ADMIN))
		return 0;
	refuse(extack, "needs CAP_NET_ADMIN in the namespace that owns the device");
	return -EPERM;
}

static int reply(struct sk_buff *skb, struct nlmsghdr *nlh, int cmd,
		 const struct iw_mpa_place *place,
		 int (*fill)(struct sk_buff *msg,
			     const struct iw_mpa_place *place))
{
	struct nlmsghdr *answer;
	struct sk_buff *msg;
	int rv;

	msg = new_message(NETLINK_CB(skb).portid, nlh->nlmsg_seq, cmd,
			  GFP_KERNEL, &answer);
	if (!msg)
		return -ENOMEM;
	rv = fill(msg, place);
	if (rv) {
		nlmsg_free(msg);
		return rv;
	}
	nlmsg_end(msg, answer);
	return rdma_nl_unicast(sock_net(skb->sk), msg, NETLINK_CB(skb).portid);
}

/* The table of what a command takes is in this module */
static int finish(struct netlink_ext_ack *extack, int rv)
{
	extack->policy = NULL;
	return rv;
}

static int policy_get_doit(struct sk_buff *skb, struct nlmsghdr *nlh,
			   struct netlink_ext_ack *extack)
{
	struct nlattr *tb[ARRAY_SIZE(place_policy)];
	struct iw_mpa_place place;
	int rv;

	rv = nlmsg_parse(nlh, 0, tb, ARRAY_SIZE(tb) - 1, place_policy,
			 extack);
	if (rv)
		return finish(extack, rv);

	mutex_lock(&iw_mpa_devices_lock);
	rv = find_place(skb, tb, extack, &place);
	if (!rv) {
		rv = reply(skb, nlh, RDMA_MPA_CMD_POLICY_GET, &place,
			   fill_policy);
		drop_device(place.dev);
	}
	mutex_unlock(&iw_mpa_devices_lock);
	return rv;
}

static u32 number(const struct nlattr *attr)
{
	switch (nla_len(attr)) {
	case sizeof(u8):
		return nla_get_u8(attr);
	case sizeof(u16):
		return nla_get_u16(attr);
	default:
		return nla_get_u32(attr);
	}
}

/* Adds the settings of a nest to a layer */
static int read_settings(const struct nlattr *nest, struct iw_mpa_layer *layer,
			 struct netlink_ext_ack *extack)
{
	struct nlattr *tb[ARRAY_SIZE(settings_policy)];
	int i, rv;

	rv = nla_parse_nested(tb, ARRAY_SIZE(tb) - 1, nest, settings_policy,
			      extack);
	if (rv)
		return rv;

	for (i = RDMA_MPA_POLICY_UNSPEC + 1; i < ARRAY_SIZE(tb); i++) {
		if (!tb[i])
			continue;
		if (i == RDMA_MPA_POLICY_RTR_ORDER)
			rv = iw_mpa_layer_set_order(layer, nla_data(tb[i]),
						    nla_len(tb[i]));
		else
			rv = iw_mpa_layer_set(layer, i, number(tb[i]));
		if (rv) {
			NL_SET_BAD_ATTR(extack, tb[i]);
			refuse(extack, "%s: there is no such value",
			       setting_name[i]);
			return rv;
		}
	}
	return 0;
}

/* Replaces a layer, if that is possible, and tells who listens */
static int change(const struct iw_mpa_place *place,
		  const struct iw_mpa_layer *layer,
		  struct netlink_ext_ack *extack)
{
	char why[128];
	int rv;

	rv = iw_mpa_change(place, layer, why, sizeof(why));
	if (rv)
		refuse(extack, "%s", why);
	else
		notify_policy(place);
	return rv;
}

static int policy_set(const struct iw_mpa_place *place, struct nlattr *tb[],
		      struct netlink_ext_ack *extack)
{
	struct iw_mpa_view view;
	int rv;

	iw_mpa_view(place, &view);
	rv = read_settings(tb[RDMA_MPA_ATTR_POLICY], &view.own, extack);
	return rv ?: change(place, &view.own, extack);
}

static int policy_set_doit(struct sk_buff *skb, struct nlmsghdr *nlh,
			   struct netlink_ext_ack *extack)
{
	struct nlattr *tb[ARRAY_SIZE(set_policy)];
	struct iw_mpa_place place;
	int rv;

	rv = nlmsg_parse(nlh, 0, tb, ARRAY_SIZE(tb) - 1, set_policy,
			 extack);
	if (rv)
		return finish(extack, rv);
	if (!tb[RDMA_MPA_ATTR_POLICY]) {
		refuse(extack, "there is nothing to set");
		return -EINVAL;
	}

	mutex_lock(&iw_mpa_devices_lock);
	rv = find_place(skb, tb, extack, &place);
	if (!rv) {
		rv = may_change(skb, &place, extack) ?:
		     policy_set(&place, tb, extack);
		drop_device(place.dev);
	}
	mutex_unlock(&iw_mpa_devices_lock);
	return finish(extack, rv);
}

static int policy_reset(const struct iw_mpa_place *place, struct nlattr *tb[],
			struct netlink_ext_ack *extack)
{
	u32 known = GENMASK(__RDMA_MPA_POLICY_NUM - 1,
			    RDMA_MPA_POLICY_UNSPEC + 1);
	struct iw_mpa_view view;
	u32 mask = known;

	if (tb[RDMA_MPA_ATTR_SETTINGS])
		mask = nla_get_u32(tb[RDMA_MPA_ATTR_SETTINGS]);
	if (mask & ~known) {
		NL_SET_BAD_ATTR(extack, tb[RDMA_MPA_ATTR_SETTINGS]);
		refuse(extack, "there is a setting that does not exist");
		return -EINVAL;
	}
	iw_mpa_view(place, &view);
	view.own.set &= ~mask;
	return change(place, &view.own, extack);
}

static int policy_reset_doit(struct sk_buff *skb, struct nlmsghdr *nlh,
			     struct netlink_ext_ack *extack)
{
	struct nlattr *tb[ARRAY_SIZE(reset_policy)];
	struct iw_mpa_place place;
	int rv;

	rv = nlmsg_parse(nlh, 0, tb, ARRAY_SIZE(tb) - 1, reset_policy,
			 extack);
	if (rv)
		return finish(extack, rv);

	mutex_lock(&iw_mpa_devices_lock);
	rv = find_place(skb, tb, extack, &place);
	if (!rv) {
		rv = may_change(skb, &place, extack) ?:
		     policy_reset(&place, tb, extack);
		drop_device(place.dev);
	}
	mutex_unlock(&iw_mpa_devices_lock);
	return rv;
}

static int stat_get_doit(struct sk_buff *skb, struct nlmsghdr *nlh,
			 struct netlink_ext_ack *extack)
{
	struct nlattr *tb[ARRAY_SIZE(place_policy)];
	struct iw_mpa_place place;
	int rv;

	rv = nlmsg_parse(nlh, 0, tb, ARRAY_SIZE(tb) - 1, place_policy,
			 extack);
	if (rv)
		return finish(extack, rv);

	mutex_lock(&iw_mpa_devices_lock);
	rv = find_place(skb, tb, extack, &place);
	if (!rv && !place.port) {
		refuse(extack, "counters are a port's: device and port are needed");
		rv = -EINVAL;
		drop_device(place.dev);
	} else if (!rv) {
		rv = reply(skb, nlh, RDMA_MPA_CMD_STAT_GET, &place, fill_stat);
		drop_device(place.dev);
	}
	mutex_unlock(&iw_mpa_devices_lock);
	return rv;
}

/* The QP or rdma_cm_id that the attributes name, with a reference */
static struct rdma_restrack_entry *find_res(struct ib_device *ibdev,
					    struct nlattr *tb[])
{
	if (tb[RDMA_MPA_ATTR_QPN])
		return rdma_restrack_get_byid(ibdev, RDMA_RESTRACK_QP,
					      nla_get_u32(tb[RDMA_MPA_ATTR_QPN]));
	return rdma_restrack_get_byid(ibdev, RDMA_RESTRACK_CM_ID,
				      nla_get_u32(tb[RDMA_MPA_ATTR_CM_ID]));
}

static int conn_reply(struct sk_buff *skb, struct nlmsghdr *nlh,
		      struct iw_mpa_device *dev,
		      struct rdma_restrack_entry *res)
{
	struct nlmsghdr *answer;
	struct sk_buff *msg;
	int rv;

	msg = new_message(NETLINK_CB(skb).portid, nlh->nlmsg_seq,
			  RDMA_MPA_CMD_CONN_GET, GFP_KERNEL, &answer);
	if (!msg)
		return -ENOMEM;
	rv = dev->ops->fill_conn(msg, res);
	if (rv) {
		nlmsg_free(msg);
		return rv;
	}
	nlmsg_end(msg, answer);
	return rdma_nl_unicast(sock_net(skb->sk), msg, NETLINK_CB(skb).portid);
}

static int conn_get(struct sk_buff *skb, struct nlmsghdr *nlh,
		    struct iw_mpa_device *dev, struct nlattr *tb[],
		    struct netlink_ext_ack *extack)
{
	struct rdma_restrack_entry *res;
	int rv;

	if (!dev->ops->fill_conn) {
		refuse(extack, "the driver does not tell of connections");
		return -EOPNOTSUPP;
	}
	res = find_res(dev->ibdev, tb);
	if (IS_ERR(res)) {
		refuse(extack, "the device has no such QP or cm_id");
		return PTR_ERR(res);
	}
	rv = conn_reply(skb, nlh, dev, res);
	rdma_restrack_put(res);
	if (rv)
		refuse(extack, "nothing to be told of a connection there");
	return rv;
}

static int conn_get_doit(struct sk_buff *skb, struct nlmsghdr *nlh,
			 struct netlink_ext_ack *extack)
{
	struct nlattr *tb[ARRAY_SIZE(conn_policy)];
	struct iw_mpa_place place;
	int rv;

	rv = nlmsg_parse(nlh, 0, tb, ARRAY_SIZE(tb) - 1, conn_policy,
			 extack);
	if (rv)
		return finish(extack, rv);
	if (!tb[RDMA_MPA_ATTR_DEV_INDEX] ||
	    !tb[RDMA_MPA_ATTR_QPN] == !tb[RDMA_MPA_ATTR_CM_ID]) {
		refuse(extack, "a device and either a QP or a cm_id are needed");
		return -EINVAL;
	}
	mutex_lock(&iw_mpa_devices_lock);
	rv = find_place(skb, tb, extack, &place);
	mutex_unlock(&iw_mpa_devices_lock);
	if (rv)
		return rv;
	/* The driver may wait for the connection: not under the lock */
	rv = conn_get(skb, nlh, place.dev, tb, extack);
	drop_device(place.dev);
	return rv;
}

/* ---- dumps */

/**
 * struct walk - where a dump has got to
 * @skb: to be filled
 * @cb: the dump; its first word counts the records it has had
 * @cmd: of the records
 * @fill: makes one
 * @at: number of the record that comes next
 * @rv: -EMSGSIZE once there is no more room
 */
struct walk {
	struct sk_buff *skb;
	struct netlink_callback *cb;
	int cmd;
	int (*fill)(struct sk_buff *msg, const struct iw_mpa_place *place);
	long at;
	int rv;
};

static void put_record(struct walk *w, const struct iw_mpa_place *place)
{
	struct nlmsghdr *nlh;

	if (w->rv || w->at++ < w->cb->args[0])
		return;
	nlh = nlmsg_put(w->skb, NETLINK_CB(w->cb->skb).portid,
			w->cb->nlh->nlmsg_seq,
			RDMA_NL_GET_TYPE(RDMA_NL_MPA, w->cmd), 0, NLM_F_MULTI);
	if (!nlh) {
		w->rv = -EMSGSIZE;
		return;
	}
	nl_dump_check_consistent(w->cb, nlh);
	w->rv = w->fill(w->skb, place);
	if (w->rv) {
		nlmsg_cancel(w->skb, nlh);
		return;
	}
	nlmsg_end(w->skb, nlh);
	w->cb->args[0]++;
}

static void put_device_records(struct walk *w, struct iw_mpa_device *dev)
{
	struct iw_mpa_place place = { .dev = dev };
	u32 i;

	if (!rdma_dev_access_netns(dev->ibdev, sock_net(w->cb->skb->sk)))
		return;
	if (w->cmd == RDMA_MPA_CMD_POLICY_GET)
		put_record(w, &place);
	for (i = 0; i < dev->ports; i++) {
		place.port = &dev->port[i];
		put_record(w, &place);
	}
}

/* Another number for every other list, never 0 */
static u32 sequence(const struct net *net)
{
	struct iw_mpa_device *dev;
	u32 seq = iw_mpa_generation;

	/* What is visible changes without our being told */
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
 * A record is found again by its number; if anything has changed since, the
 * program is told so (NLM_F_DUMP_INTR) and starts again.
 */
static int dump(struct walk *w)
{
	struct iw_mpa_place nowhere = {};
	struct iw_mpa_device *dev;
	long before = w->cb->args[0];

	mutex_lock(&iw_mpa_devices_lock);
	w->cb->seq = sequence(sock_net(w->cb->skb->sk));
	if (w->cmd == RDMA_MPA_CMD_POLICY_GET)
		put_record(w, &nowhere);
	list_for_each_entry(dev, &iw_mpa_devices, list) {
		if (!ib_device_try_get(dev->ibdev))
			continue;
		put_device_records(w, dev);
		ib_device_put(dev->ibdev);
	}
	mutex_unlock(&iw_mpa_devices_lock);

	/* A record that does not fit into an empty message never will */
	if (w->rv && w->cb->args[0] == before)
		return w->rv;
	return w->skb->len;
}

static int check_dump(struct netlink_callback *cb)
{
	if (!nlmsg_attrlen(cb->nlh, 0))
		return 0;
	NL_SET_ERR_MSG(cb->extack, "a list takes no attributes");
	return -EINVAL;
}

static int policy_get_dump(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct walk w = {
		.skb = skb,
		.cb = cb,
		.cmd = RDMA_MPA_CMD_POLICY_GET,
		.fill = fill_policy,
	};

	return check_dump(cb) ?: dump(&w);
}

static int stat_get_dump(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct walk w = {
		.skb = skb,
		.cb = cb,
		.cmd = RDMA_MPA_CMD_STAT_GET,
		.fill = fill_stat,
	};

	return check_dump(cb) ?: dump(&w);
}

static const struct rdma_nl_cbs callbacks[__RDMA_MPA_CMD_NUM] = {
	[RDMA_MPA_CMD_POLICY_GET] = {
		.doit = policy_get_doit,
		.dump = policy_get_dump,
	},
	[RDMA_MPA_CMD_POLICY_SET] = {
		.doit = policy_set_doit,
	},
	[RDMA_MPA_CMD_POLICY_RESET] = {
		.doit = policy_reset_doit,
	},
	[RDMA_MPA_CMD_STAT_GET] = {
		.doit = stat_get_doit,
		.dump = stat_get_dump,
	},
	[RDMA_MPA_CMD_CONN_GET] = {
		.doit = conn_get_doit,
	},
};

static int __init iw_mpa_init(void)
{
	rdma_nl_register_module(RDMA_NL_MPA, callbacks, THIS_MODULE);
	return 0;
}

static void __exit iw_mpa_exit(void)
{
	rdma_nl_unregister(RDMA_NL_MPA);
}

module_init(iw_mpa_init);
module_exit(iw_mpa_exit);
