/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The lower layer protocol under siw's connection management.
 */
#ifndef _SIW_LLP_H
#define _SIW_LLP_H

#include <linux/net.h>
#include <linux/socket.h>
#include <linux/types.h>

#include <rdma/iw_mpa.h>

struct siw_cep;
struct siw_qp;
struct sockaddr_storage;

/**
 * struct siw_llp_ops - a lower layer protocol
 *
 * All operations may sleep unless they allow any context. @start_rx must not
 * sleep. An int result is 0 or a negative errno unless described otherwise.
 */
struct siw_llp_ops {
	/** @name: name for messages */
	const char *name;
	/** @create: make a socket for an address family */
	int (*create)(struct net *net, int family, struct socket **s);
	/**
	 * @connect: bind to @laddr and start to connect to @raddr; does not
	 * block. The socket's state change reports the result.
	 */
	int (*connect)(struct socket *s, struct sockaddr *laddr,
		       struct sockaddr *raddr, bool afonly);
	/**
	 * @connect_with: like @connect, with the @len bytes at @msg in the
	 * first packet if possible. Returns the number of bytes accepted, or
	 * a negative errno. Accepted bytes must not be sent again.
	 */
	int (*connect_with)(struct socket *s, struct sockaddr *laddr,
			    struct sockaddr *raddr, bool afonly,
			    const void *msg, size_t len);
	/**
	 * @status: 0 if the connection is up, -EINPROGRESS while it is being
	 * set up, else the errno of the failure
	 */
	int (*status)(struct socket *s);
	/**
	 * @early_data: did the first packet of this connection carry data that
	 * the receiver accepted? The connection is up or was just accepted.
	 * Any context, takes no lock.
	 */
	bool (*early_data)(const struct socket *s);
	/**
	 * @listen: bind to @laddr and listen; if @laddr is a wildcard address,
	 * only on the interface @ifindex
	 */
	int (*listen)(struct socket *s, struct sockaddr *laddr, bool afonly,
		      int ifindex, int backlog);
	/**
	 * @listen_again: if the socket of a listener has been destroyed from
	 * outside, listen as before, else do nothing. Optional.
	 */
	int (*listen_again)(struct socket *s);
	/**
	 * @take_early: make a listener accept data in first packets, for at
	 * most @pending connections that are not up yet
	 */
	int (*take_early)(struct socket *s, int pending);
	/** @accept: accept a connection of a listener; does not block */
	int (*accept)(struct socket *s, struct socket **new_s);
	/**
	 * @adopt: the endpoint takes over its own or an accepted socket:
	 * install the callbacks. Optional.
	 */
	int (*adopt)(struct siw_cep *cep, struct socket *s);
	/**
	 * @detach: the endpoint releases its socket; @close or @abort follows.
	 * Under the socket's callback lock. Optional.
	 */
	void (*detach)(struct siw_cep *cep, struct socket *s);
	/** @end: end a session that is being set up. Optional. */
	void (*end)(struct siw_cep *cep);
	/** @send: send one whole control message; does not block */
	int (*send)(struct socket *s, const void *msg, size_t len);
	/**
	 * @recv: receive up to @len bytes of control messages; if @peek, the
	 * bytes stay in the stream. Does not block. Returns the number of
	 * bytes, 0 at the end of the stream, -EAGAIN if no bytes are available.
	 */
	int (*recv)(struct socket *s, void *buf, size_t len, bool peek);
	/** @start_rx: from now on pass received data to the QP */
	void (*start_rx)(struct siw_cep *cep, struct siw_qp *qp);
	/**
	 * @rx_setup: process received control messages, with the endpoint in
	 * use. In place of @recv, for a protocol that delivers messages.
	 * Returns the next step.
	 */
	enum iw_mpa_next (*rx_setup)(struct siw_cep *cep);
	/**
	 * @pump: pass received data to the QP, with the endpoint in use.
	 * Optional: without it a callback of the socket does so.
	 */
	void (*pump)(struct siw_cep *cep);
	/** @kick_rx: pass data to the QP that arrived before it was ready */
	void (*kick_rx)(struct socket *s);
	/**
	 * @addrs: the connection's addresses, also after it has broken; an
	 * unknown address has family 0. Any context, takes no lock.
	 */
	void (*addrs)(const struct socket *s, struct sockaddr_storage *local,
		      struct sockaddr_storage *remote);
	/** @close: flush sent data, then release the socket */
	void (*close)(struct socket *s);
	/** @abort: release at once, so that the addresses can connect again */
	void (*abort)(struct socket *s);
};

extern const struct siw_llp_ops siw_llp_tcp;

int siw_sock_bind(struct socket *s, struct sockaddr *laddr, bool afonly);
int siw_sock_bind_source(struct socket *s, struct sockaddr *laddr, bool afonly);
void siw_sock_abort(struct socket *s);
void siw_sock_addrs(const struct socket *s, struct sockaddr_storage *local,
		    struct sockaddr_storage *remote);
bool siw_addr_is_wildcard(const struct sockaddr *addr);

#endif
