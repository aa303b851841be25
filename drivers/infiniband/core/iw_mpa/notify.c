// SPDX-License-Identifier: GPL-2.0
/*
 * Notifications of connections, in generic netlink.
 *
 * They are sent under the driver's lock for the session and take no lock of
 * iw_mpa.
 */
#include <linux/errno.h>
#include <linux/in6.h>
#include <net/genetlink.h>

#include <rdma/ib_verbs.h>

#include "genl.h"
#include "name.h"
#include "netlink.h"
#include "notify.h"

static int put_ip(struct sk_buff *msg, const struct sockaddr_storage *ss)
{
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)ss;
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)ss;

	if (ss->ss_family == AF_INET)
		return nla_put_in_addr(msg, RDMA_MPA_A_ADDR_IP4,
				       v4->sin_addr.s_addr) ?:
		       nla_put_be16(msg, RDMA_MPA_A_ADDR_PORT, v4->sin_port);
	if (nla_put_in6_addr(msg, RDMA_MPA_A_ADDR_IP6, &v6->sin6_addr) ||
	    nla_put_be16(msg, RDMA_MPA_A_ADDR_PORT, v6->sin6_port))
		return -EMSGSIZE;
	return v6->sin6_scope_id ? nla_put_u32(msg, RDMA_MPA_A_ADDR_IFINDEX,
					       v6->sin6_scope_id) : 0;
}

static int put_addr(struct sk_buff *msg, int attr,
		    const struct sockaddr_storage *ss)
{
	struct nlattr *nest;

	if (ss->ss_family != AF_INET && ss->ss_family != AF_INET6)
		return 0;
	nest = nla_nest_start(msg, attr);
	if (!nest || put_ip(msg, ss))
		return -EMSGSIZE;
	nla_nest_end(msg, nest);
	return 0;
}

static int put_name(struct sk_buff *msg, const struct iw_mpa_session *s)
{
	struct iw_mpa_name name;

	iw_mpa_name_session(s, &name);
	if (name.qpn && nla_put_u32(msg, RDMA_MPA_A_CONN_QPN, name.qpn))
		return -EMSGSIZE;
	return put_addr(msg, RDMA_MPA_A_CONN_LOCAL, &name.local) ?:
	       put_addr(msg, RDMA_MPA_A_CONN_REMOTE, &name.remote);
}

/* A depth that the peer's ULP manages has no number */
static int put_peer_depth(struct sk_buff *msg, u16 depth, int attr,
			  int ulp_attr)
{
	return depth == IW_MPA_DEPTH_ULP ? nla_put_flag(msg, ulp_attr) :
					   nla_put_u32(msg, attr, depth);
}

static int put_peer(struct sk_buff *msg, const struct iw_mpa_setup *setup)
{
	const struct iw_mpa_frame *peer = &setup->peer;

	/* The peer's frame is not complete yet */
	if (!peer->rev)
		return 0;
	/* SCTP has no revisions */
	if (setup->config.caps.llp == RDMA_MPA_LLP_TCP &&
	    nla_put_u32(msg, RDMA_MPA_A_CONN_PEER_REVISION, peer->rev))
		return -EMSGSIZE;
	if (iw_mpa_put_flag(msg, RDMA_MPA_A_CONN_PEER_ENHANCED, peer->enhanced))
		return -EMSGSIZE;
	if (!peer->enhanced)
		return 0;
	return put_peer_depth(msg, peer->enh.ird, RDMA_MPA_A_CONN_PEER_IRD,
			      RDMA_MPA_A_CONN_PEER_IRD_ULP) ?:
	       put_peer_depth(msg, peer->enh.ord, RDMA_MPA_A_CONN_PEER_ORD,
			      RDMA_MPA_A_CONN_PEER_ORD_ULP);
}

static u32 model_number(bool p2p)
{
	return p2p ? RDMA_MPA_MODEL_PEER_TO_PEER : RDMA_MPA_MODEL_CLIENT_SERVER;
}

/* The Request, if it has been sent or received */
static int put_request(struct sk_buff *msg, const struct iw_mpa_session *s,
		       enum iw_mpa_state state)
{
	const struct iw_mpa_setup *setup = s->setup;
	const struct iw_mpa_enh *enh = s->responder ? &setup->peer.enh :
						      &setup->sent.enh;

	if (s->responder ? !setup->peer.rev : state <= IW_MPA_CONNECTING)
		return 0;
	return nla_put_u32(msg, RDMA_MPA_A_CONN_REQUESTED_MODEL,
			   model_number(enh->p2p)) ?:
	       nla_put_u32(msg, RDMA_MPA_A_CONN_REQUESTED_RTR, enh->rtr);
}

static int put_outcome(struct sk_buff *msg, const struct iw_mpa_session *s)
{
	const struct iw_mpa_outcome *o = &s->outcome;

	if (nla_put_u32(msg, RDMA_MPA_A_CONN_MODEL, model_number(o->rtr)) ||
	    nla_put_u32(msg, RDMA_MPA_A_CONN_RTR, o->rtr) ||
	    nla_put_u32(msg, RDMA_MPA_A_CONN_IRD, o->ird) ||
	    nla_put_u32(msg, RDMA_MPA_A_CONN_ORD, o->ord) ||
	    iw_mpa_put_flag(msg, RDMA_MPA_A_CONN_CRC, o->crc) ||
	    nla_put_u32(msg, RDMA_MPA_A_CONN_SEGMENT, o->large))
		return -EMSGSIZE;
	/* A device that handles the RTR itself does not report its kind */
	if (!s->responder || !o->rtr || s->setup->config.caps.rtr_offload)
		return 0;
	return nla_put_u32(msg, RDMA_MPA_A_CONN_RTR_SEEN, o->rtr_seen);
}

static int put_failure(struct sk_buff *msg, int status,
		       enum rdma_mpa_ecode ecode)
{
	return nla_put_u32(msg, RDMA_MPA_A_CONN_ERROR, -status) ?:
	       nla_put_u32(msg, RDMA_MPA_A_CONN_ECODE, ecode);
}

static int put_conn(struct sk_buff *msg, const struct iw_mpa_session *s,
		    enum iw_mpa_state state, int status,
		    enum rdma_mpa_ecode ecode)
{
	struct nlattr *nest = nla_nest_start(msg, RDMA_MPA_A_CONN);
	const struct iw_mpa_setup *setup = s->setup;

	if (!nest ||
	    nla_put_string(msg, RDMA_MPA_A_CONN_STATE,
			   iw_mpa_state_str(state)) ||
	    nla_put_u32(msg, RDMA_MPA_A_CONN_ROLE, s->responder) ||
	    put_name(msg, s) ||
	    iw_mpa_put_flag(msg, RDMA_MPA_A_CONN_FALLBACK, setup->fell_back) ||
	    iw_mpa_put_flag(msg, RDMA_MPA_A_CONN_FASTOPEN, setup->fast_opened) ||
	    put_peer(msg, setup) || put_request(msg, s, state) ||
	    (status ? put_failure(msg, status, ecode) : put_outcome(msg, s)))
		return -EMSGSIZE;
	nla_nest_end(msg, nest);
	return 0;
}

static int fill_conn(struct sk_buff *msg, const struct iw_mpa_session *s,
		     enum iw_mpa_state state, int status,
		     enum rdma_mpa_ecode ecode)
{
	const struct iw_mpa_port *port = s->port;

	return iw_mpa_put_ids(msg, port->dev) ?:
	       nla_put_u32(msg, RDMA_MPA_A_PORT, port->num) ?:
	       put_conn(msg, s, state, status, ecode);
}

static void notify_listeners(const struct iw_mpa_session *s, struct net *net,
			     enum iw_mpa_state state, int status,
			     enum rdma_mpa_ecode ecode)
{
	/* No reclaim: it might wait for this very connection */
	const gfp_t gfp = GFP_ATOMIC | __GFP_NOWARN;
	struct sk_buff *msg;
	void *hdr;

	msg = genlmsg_new(NLMSG_GOODSIZE, gfp);
	if (!msg)
		goto lost;
	hdr = genlmsg_put(msg, 0, 0, &rdma_mpa_nl_family, 0,
			  RDMA_MPA_CMD_CONN_NTF);
	if (!hdr || fill_conn(msg, s, state, status, ecode)) {
		nlmsg_free(msg);
		goto lost;
	}
	genlmsg_end(msg, hdr);
	genlmsg_multicast_netns(&rdma_mpa_nl_family, net, msg, 0,
				RDMA_MPA_NLGRP_CONNECTIONS, gfp);
	return;
lost:
	genl_set_err(&rdma_mpa_nl_family, net, 0, RDMA_MPA_NLGRP_CONNECTIONS,
		     -ENOBUFS);
}

/**
 * iw_mpa_notify_conn - notify of a connection's outcome
 * @s: the session, with a setup
 * @state: its state, or the state in which it failed
 * @status: 0 for established, else a negative errno
 * @ecode: the reason in MPA's terms
 */
void iw_mpa_notify_conn(const struct iw_mpa_session *s, enum iw_mpa_state state,
			int status, enum rdma_mpa_ecode ecode)
{
	struct ib_device *ibdev;
	struct net *net;

	if (!s->port)
		return;
	/* The reference keeps the device alive and in its namespace */
	ibdev = s->port->dev->ibdev;
	if (!ib_device_try_get(ibdev))
		return;
	net = iw_mpa_owner_net(s->port->dev);
	if (genl_has_listeners(&rdma_mpa_nl_family, net,
			       RDMA_MPA_NLGRP_CONNECTIONS))
		notify_listeners(s, net, state, status, ecode);
	ib_device_put(ibdev);
}
