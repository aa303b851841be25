// SPDX-License-Identifier: GPL-2.0
/*
 * Cache of peers that closed on a Rev 2 Request and answered a Rev 1 Request.
 * The next connection to such a peer begins with Rev 1. Over SCTP no peer is
 * cached: there a full backlog also ends the session (RFC 5043 section 6.4).
 *
 * An entry is valid for the policy under which it was added: a change of the
 * port's settings invalidates it. A connection with options set by its program
 * neither adds nor uses entries, else any program could make others fall back.
 *
 * There is one entry for each hash value; a later peer replaces an earlier one.
 * An entry is valid for ten minutes. A lost entry costs one refused attempt.
 *
 * Locking: rev1_lock, taken for a few instructions in any context.
 */
#include <linux/export.h>
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/jhash.h>
#include <linux/jiffies.h>
#include <linux/socket.h>
#include <linux/spinlock.h>
#include <net/ipv6.h>
#include <net/net_namespace.h>

#include "rev1_peers.h"

#define REV1_PEERS		256
#define REV1_BELIEVED		(600 * HZ)

static struct rev1_peer {
	struct iw_mpa_addr addr;
	unsigned long until;	/* jiffies */
} rev1_peers[REV1_PEERS];
static DEFINE_SPINLOCK(rev1_lock);

static struct rev1_peer *rev1_slot(const struct iw_mpa_addr *addr)
{
	u32 hash = jhash2((__force const u32 *)addr->ip.s6_addr32, 4,
			  (__force u16)addr->port);

	return &rev1_peers[jhash_2words(hash, addr->net, addr->policy_id) %
			   REV1_PEERS];
}

static bool same_addr(const struct iw_mpa_addr *a, const struct iw_mpa_addr *b)
{
	return a->net == b->net && a->port == b->port &&
	       a->policy_id == b->policy_id && ipv6_addr_equal(&a->ip, &b->ip);
}

/* Is this peer cached as one that supports only Rev 1? Any context. */
bool iw_mpa_peer_is_rev1(const struct iw_mpa_addr *addr)
{
	struct rev1_peer *peer;
	unsigned long flags;
	bool found;

	if (!addr->net || !addr->policy_id)
		return false;
	peer = rev1_slot(addr);
	spin_lock_irqsave(&rev1_lock, flags);
	found = same_addr(&peer->addr, addr) &&
		time_before(jiffies, peer->until);
	spin_unlock_irqrestore(&rev1_lock, flags);
	return found;
}

/* Any context. */
void iw_mpa_peer_set_rev1(const struct iw_mpa_addr *addr)
{
	struct rev1_peer *peer;
	unsigned long flags;

	if (!addr->net || !addr->policy_id)
		return;
	peer = rev1_slot(addr);
	spin_lock_irqsave(&rev1_lock, flags);
	peer->addr = *addr;
	peer->until = jiffies + REV1_BELIEVED;
	spin_unlock_irqrestore(&rev1_lock, flags);
}

/**
 * iw_mpa_set_peer - set the peer's address of an initiator's session
 * @s: a fresh session
 * @net: the network namespace
 * @addr: the peer's address and port, IPv4 or IPv6
 *
 * For the policy's fallback: iw_mpa caches for ten minutes that a peer supports
 * only Rev 1. A connection without a peer's address, or with options of its
 * ULP, does not use the cache. Any context.
 */
void iw_mpa_set_peer(struct iw_mpa_session *s, const struct net *net,
		     const struct sockaddr *addr)
{
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)addr;
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)addr;
	struct iw_mpa_addr *peer = &s->setup->peer_addr;

	switch (addr->sa_family) {
	case AF_INET:
		ipv6_addr_set_v4mapped(v4->sin_addr.s_addr, &peer->ip);
		peer->port = v4->sin_port;
		break;
	case AF_INET6:
		peer->ip = v6->sin6_addr;
		peer->port = v6->sin6_port;
		break;
	default:
		return;
	}
	peer->policy_id = s->setup->config.policy_id;
	peer->net = net->net_cookie;
}
EXPORT_SYMBOL_GPL(iw_mpa_set_peer);
