// SPDX-License-Identifier: GPL-2.0
/*
 * Names for people and programs: of a lower layer protocol, of a state, and of a
 * session by its addresses.
 */
#include <linux/in.h>
#include <linux/string.h>
#include <net/ipv6.h>
#include <kunit/visibility.h>

#include "name.h"

/**
 * iw_mpa_llp_str - name the lower layer protocol of a device
 * @dev: the device
 *
 * Return: a static string
 */
const char *iw_mpa_llp_str(const struct iw_mpa_device *dev)
{
	return dev->driver.caps.llp == RDMA_MPA_LLP_SCTP ? "sctp" : "tcp";
}

/**
 * iw_mpa_state_str - name a state
 * @state: the state
 *
 * Return: a static string, never NULL.
 */
const char *iw_mpa_state_str(enum iw_mpa_state state)
{
	static const char * const name[IW_MPA_STATES] = {
		[IW_MPA_IDLE]		= "IDLE",
		[IW_MPA_CONNECTING]	= "CONNECTING",
		[IW_MPA_REQ_SENT]	= "REQ_SENT",
		[IW_MPA_REP_RCVD]	= "REP_RCVD",
		[IW_MPA_REQ_WAIT]	= "REQ_WAIT",
		[IW_MPA_REQ_RCVD]	= "REQ_RCVD",
		[IW_MPA_REP_SENT]	= "REP_SENT",
		[IW_MPA_RTR_WAIT]	= "RTR_WAIT",
		[IW_MPA_RDMA]		= "RDMA",
		[IW_MPA_CLOSED]		= "CLOSED",
	};

	return state < IW_MPA_STATES ? name[state] : "unknown";
}
EXPORT_SYMBOL_IF_KUNIT(iw_mpa_state_str);

static void name_peer(const struct iw_mpa_addr *peer,
		      struct sockaddr_storage *ss)
{
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)ss;
	struct sockaddr_in *v4 = (struct sockaddr_in *)ss;

	if (ipv6_addr_v4mapped(&peer->ip)) {
		v4->sin_family = AF_INET;
		v4->sin_addr.s_addr = peer->ip.s6_addr32[3];
		v4->sin_port = peer->port;
	} else {
		v6->sin6_family = AF_INET6;
		v6->sin6_addr = peer->ip;
		v6->sin6_port = peer->port;
	}
}

static const struct iw_mpa_ops *session_ops(const struct iw_mpa_session *s)
{
	if (s->setup)
		return s->setup->config.ops;
	return s->port ? s->port->dev->driver.ops : NULL;
}

/**
 * iw_mpa_name_session - addresses and queue pair of a session
 * @s: the session
 * @name: filled; unknown parts are zero
 *
 * Any context.
 */
void iw_mpa_name_session(const struct iw_mpa_session *s,
			 struct iw_mpa_name *name)
{
	const struct iw_mpa_ops *ops = session_ops(s);

	memset(name, 0, sizeof(*name));
	if (ops && ops->name)
		ops->name(s, name);
	/* A failed socket no longer provides its peer's address */
	if (!name->remote.ss_family && s->setup && s->setup->peer_addr.net)
		name_peer(&s->setup->peer_addr, &name->remote);
}
