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
 * A protocol keeps the state of an endpoint's connection or listener in the
 * endpoint; other code does not read it. All operations may sleep unless they
 * allow any context. An int result is 0 or a negative errno unless described
 * otherwise.
 */
struct siw_llp_ops {
	/** @name: name for messages */
	const char *name;
	/**
	 * @join: use a connection to @raddr that other endpoints share, or make
	 * one to be shared. Returns -ENOENT if the endpoint is to @open one of
	 * its own. Optional.
	 */
	int (*join)(struct siw_cep *cep, struct net *net,
		    struct sockaddr *laddr, struct sockaddr *raddr);
	/**
	 * @open: make a socket of an address family for an endpoint that is
	 * going to connect or to listen; its callbacks report to the endpoint
	 */
	int (*open)(struct siw_cep *cep, struct net *net, int family);
	/**
	 * @reopen: abort the endpoint's connection, so that the same addresses
	 * can connect again, and make a new socket in the same namespace. After
	 * an error the connection is as before.
	 */
	int (*reopen)(struct siw_cep *cep, int family);
	/**
	 * @connect: bind to @laddr and start to connect to @raddr; does not
	 * block. The socket's state change reports the result.
	 */
	int (*connect)(struct siw_cep *cep, struct sockaddr *laddr,
		       struct sockaddr *raddr, bool afonly);
	/**
	 * @connect_with: like @connect, with the @len bytes at @msg in the
	 * first packet if possible. Returns the number of bytes accepted, or
	 * a negative errno. Accepted bytes must not be sent again.
	 */
	int (*connect_with)(struct siw_cep *cep, struct sockaddr *laddr,
			    struct sockaddr *raddr, bool afonly,
			    const void *msg, size_t len);
	/**
	 * @status: 0 if the connection is up, -EINPROGRESS while it is being
	 * set up, else the errno of the failure
	 */
	int (*status)(struct siw_cep *cep);
	/**
	 * @early_data: did the first packet of this connection carry data that
	 * the receiver accepted? The connection is up or was just accepted.
	 * Any context, takes no lock.
	 */
	bool (*early_data)(const struct siw_cep *cep);
	/**
	 * @listen: bind to @laddr and listen; if @laddr is a wildcard address,
	 * only on the interface @ifindex
	 */
	int (*listen)(struct siw_cep *cep, struct sockaddr *laddr, bool afonly,
		      int ifindex, int backlog);
	/**
	 * @listen_again: if the socket of a listener has been destroyed from
	 * outside, listen as before, else do nothing. Optional.
	 */
	int (*listen_again)(struct siw_cep *cep);
	/**
	 * @take_early: make a listener accept data in first packets, for at
	 * most @pending connections that are not up yet
	 */
	int (*take_early)(struct siw_cep *cep, int pending);
	/**
	 * @accept: accept a connection of a listener, with an endpoint from
	 * siw_cep_accepted(); does not block. On success @new_cep is %NULL if
	 * memory for the endpoint is missing: the connection has been refused.
	 */
	int (*accept)(struct siw_cep *cep, struct siw_cep **new_cep);
	/**
	 * @adopt: from now on the callbacks of an accepted connection report to
	 * its endpoint
	 */
	void (*adopt)(struct siw_cep *cep);
	/** @end: end a session that is being set up. Optional. */
	void (*end)(struct siw_cep *cep);
	/** @send: send one whole control message; does not block */
	int (*send)(struct siw_cep *cep, const void *msg, size_t len);
	/**
	 * @recv: receive up to @len bytes of control messages; if @peek, the
	 * bytes stay in the stream. Does not block. Returns the number of
	 * bytes, 0 at the end of the stream, -EAGAIN if no bytes are available.
	 */
	int (*recv)(struct siw_cep *cep, void *buf, size_t len, bool peek);
	/**
	 * @start_tx: from now on the QP may send. With the QP's state lock.
	 */
	void (*start_tx)(struct siw_cep *cep, struct siw_qp *qp);
	/**
	 * @start_rx: from now on the QP may send, and received data is passed
	 * to it. With the QP's state lock.
	 */
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
	void (*kick_rx)(struct siw_cep *cep);
	/**
	 * @addrs: the connection's addresses, also after it has broken; an
	 * unknown address has family 0, as have both without a socket. Any
	 * context, takes no lock.
	 */
	void (*addrs)(const struct siw_cep *cep, struct sockaddr_storage *local,
		      struct sockaddr_storage *remote);
	/**
	 * @detach: from now on no callback reports to the endpoint. A QP may
	 * still send. Does nothing without a socket.
	 */
	void (*detach)(struct siw_cep *cep);
	/**
	 * @close: flush sent data, then release the socket, if the endpoint has
	 * one. It is detached.
	 */
	void (*close)(struct siw_cep *cep);
};

extern const struct siw_llp_ops siw_llp_tcp;

int siw_sock_bind(struct socket *s, struct sockaddr *laddr, bool afonly);
int siw_sock_bind_source(struct socket *s, struct sockaddr *laddr, bool afonly,
			 bool any_port);
void siw_sock_abort(struct socket *s);
void siw_sock_addrs(const struct socket *s, struct sockaddr_storage *local,
		    struct sockaddr_storage *remote);
bool siw_addr_is_wildcard(const struct sockaddr *addr);

#endif
