/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * What siw's connection management needs of its lower layer protocol.
 */
#ifndef _SIW_LLP_H
#define _SIW_LLP_H

#include <linux/net.h>
#include <linux/socket.h>
#include <linux/types.h>

struct siw_cep;
struct siw_qp;
struct sockaddr_storage;

/**
 * struct siw_llp_ops - a lower layer protocol
 *
 * All but @start_rx and @addrs may sleep. Those that return int return 0 or a
 * negative errno unless they say otherwise.
 */
struct siw_llp_ops {
	/** @name: for people */
	const char *name;
	/** @create: make a socket for an address family */
	int (*create)(struct net *net, int family, struct socket **s);
	/**
	 * @connect: bind to @laddr and set out to connect to @raddr; does not
	 * block. The socket's state change tells how it went.
	 */
	int (*connect)(struct socket *s, struct sockaddr *laddr,
		       struct sockaddr *raddr, bool afonly);
	/**
	 * @connect_with: likewise, with the @len bytes at @msg in the first
	 * packet if that can be. Returns how many of them were taken, which
	 * will be delivered if anything is.
	 */
	int (*connect_with)(struct socket *s, struct sockaddr *laddr,
			    struct sockaddr *raddr, bool afonly,
			    const void *msg, size_t len);
	/**
	 * @status: 0 if the connection is up, -EINPROGRESS if it is about to
	 * be, else why it is not
	 */
	int (*status)(struct socket *s);
	/**
	 * @early_data: a connection that is up, or has just been accepted:
	 * did the first packet carry data, and was it taken? Any context,
	 * takes no lock.
	 */
	bool (*early_data)(const struct socket *s);
	/**
	 * @listen: bind to @laddr and listen; on a wildcard address only on
	 * the interface @ifindex
	 */
	int (*listen)(struct socket *s, struct sockaddr *laddr, bool afonly,
		      int ifindex, int backlog);
	/**
	 * @take_early: a listener: take data in first packets, of up to
	 * @pending connections that are not up yet
	 */
	int (*take_early)(struct socket *s, int pending);
	/** @accept: take a new connection off a listener; does not block */
	int (*accept)(struct socket *s, struct socket **new_s);
	/** @send: send one whole control message; does not block */
	int (*send)(struct socket *s, const void *msg, size_t len);
	/**
	 * @recv: receive up to @len bytes of control messages, leave them
	 * where they are if @peek; does not block. Returns how many, 0 at the
	 * end of the stream, -EAGAIN if there are none yet.
	 */
	int (*recv)(struct socket *s, void *buf, size_t len, bool peek);
	/** @start_rx: from now on what comes in goes to the QP */
	void (*start_rx)(struct siw_cep *cep, struct siw_qp *qp);
	/** @kick_rx: let the QP look for what came in before it was ready */
	void (*kick_rx)(struct socket *s);
	/**
	 * @addrs: the connection's addresses, also when it has broken; the
	 * family of one that is not known is 0. Any context, takes no lock.
	 */
	void (*addrs)(const struct socket *s, struct sockaddr_storage *local,
		      struct sockaddr_storage *remote);
	/** @close: flush what was sent, and release */
	void (*close)(struct socket *s);
	/** @abort: release at once; the addresses are free to connect again */
	void (*abort)(struct socket *s);
};

extern const struct siw_llp_ops siw_llp_tcp;

bool siw_addr_is_wildcard(const struct sockaddr *addr);

#endif
