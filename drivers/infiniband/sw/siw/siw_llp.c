// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * TCP as siw's lower layer protocol.
 *
 * An endpoint has one socket, from open() or accept() until close().
 */
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/tcp.h>
#include <net/addrconf.h>
#include <net/ip.h>
#include <net/ipv6.h>
#include <net/sock.h>
#include <net/tcp.h>
#include <rdma/ib_addr.h>

#include "siw.h"
#include "siw_cm.h"
#include "siw_llp.h"

/* Like a program's socket, the socket holds a reference on its namespace */
static int siw_tcp_create(struct net *net, int family, struct socket **s)
{
	return __sock_create(net, family, SOCK_STREAM, IPPROTO_TCP, s, 0);
}

static int siw_tcp_open(struct siw_cep *cep, struct net *net, int family)
{
	struct socket *s;
	int rv = siw_tcp_create(net, family, &s);

	if (rv)
		return rv;
	WRITE_ONCE(cep->sock, s);
	siw_sock_attach(cep, s);
	return 0;
}

static int siw_tcp_reopen(struct siw_cep *cep, int family)
{
	struct socket *old = cep->sock, *s;
	int rv = siw_tcp_create(sock_net(old->sk), family, &s);

	if (rv)
		return rv;
	siw_sock_detach(cep, old);
	WRITE_ONCE(cep->sock, s);
	siw_sock_abort(old);
	siw_sock_attach(cep, s);
	return 0;
}

/*
 * Each message of connection setup is answered at once, so TCP's ACK can be
 * sent with the answer: five packets instead of nine. TCP sends the ACK
 * separately if the answer is late.
 */
static void siw_tcp_delay_ack(struct socket *s)
{
	tcp_sock_set_quickack(s->sk, 0);
}

static void siw_tcp_setup(struct socket *s)
{
	if (!siw_tcp_nagle)
		tcp_sock_set_nodelay(s->sk);
}

static int bind_to(struct socket *s, struct sockaddr *laddr, bool afonly)
{
	int rv;

	if (afonly && laddr->sa_family == AF_INET6) {
		rv = ip6_sock_set_v6only(s->sk);
		if (rv)
			return rv;
	}
	return s->ops->bind(s, (struct sockaddr_unsized *)laddr,
			    rdma_addr_size(laddr));
}

/**
 * siw_sock_bind - bind a socket of either protocol
 * @s: the socket
 * @laddr: local address, IPv4 or IPv6
 * @afonly: no IPv4 on an IPv6 socket
 *
 * May sleep.
 *
 * Return: 0 or a negative errno
 */
int siw_sock_bind(struct socket *s, struct sockaddr *laddr, bool afonly)
{
	/* Allows binding the address again while old connections time out */
	sock_set_reuseaddr(s->sk);
	return bind_to(s, laddr, afonly);
}

/**
 * siw_sock_bind_source - bind a socket that is going to connect
 * @s: the socket
 * @laddr: local address, IPv4 or IPv6
 * @afonly: no IPv4 on an IPv6 socket
 * @any_port: rdma_cm has chosen the port, and does not know the ports of
 *	sockets: the network stack chooses again if another socket has it
 *
 * May sleep.
 *
 * Return: 0 or a negative errno
 */
int siw_sock_bind_source(struct socket *s, struct sockaddr *laddr, bool afonly,
			 bool any_port)
{
	struct sockaddr_storage any = {};
	int rv = -EADDRINUSE;

	if (any_port) {
		/* SO_REUSEADDR would allow the port of another connection */
		rv = bind_to(s, laddr, afonly);
		if (rv == -EADDRINUSE) {
			memcpy(&any, laddr, rdma_addr_size(laddr));
			/* IPv6's port stands at the same place */
			((struct sockaddr_in *)&any)->sin_port = 0;
			rv = bind_to(s, (struct sockaddr *)&any, afonly);
		}
	}
	if (rv == -EADDRINUSE)
		return siw_sock_bind(s, laddr, afonly);
	sock_set_reuseaddr(s->sk);
	return rv;
}

/*
 * TCP Fast Open: the SYN carries bytes of @msg if TCP has the peer's cookie.
 * Otherwise the SYN requests a cookie and TCP accepts no bytes.
 */
static int siw_tcp_fast_open(struct socket *s, struct sockaddr *raddr,
			     size_t size, const void *msg, size_t len)
{
	struct kvec iov = { .iov_base = (void *)msg, .iov_len = len };
	struct msghdr hdr = {
		.msg_name = raddr,
		.msg_namelen = size,
		.msg_flags = MSG_FASTOPEN | MSG_DONTWAIT | MSG_NOSIGNAL,
	};

	return kernel_sendmsg(s, &hdr, &iov, 1, len);
}

static int siw_tcp_connect_with(struct siw_cep *cep, struct sockaddr *laddr,
				struct sockaddr *raddr, bool afonly,
				const void *msg, size_t len)
{
	size_t size = rdma_addr_size(raddr);
	struct socket *s = cep->sock;
	int rv;

	rv = siw_sock_bind_source(s, laddr, afonly, cep->any_port);
	if (rv < 0)
		return rv;
	siw_tcp_setup(s);
	siw_tcp_delay_ack(s);
	/* If the sysctl forbids Fast Open, no SYN has been sent: connect now */
	rv = len ? siw_tcp_fast_open(s, raddr, size, msg, len) : -EOPNOTSUPP;
	if (rv == -EOPNOTSUPP)
		rv = s->ops->connect(s, (struct sockaddr_unsized *)raddr, size,
				     O_NONBLOCK);
	return rv == -EINPROGRESS ? 0 : rv;
}

static int siw_tcp_connect(struct siw_cep *cep, struct sockaddr *laddr,
			   struct sockaddr *raddr, bool afonly)
{
	return siw_tcp_connect_with(cep, laddr, raddr, afonly, NULL, 0);
}

static int siw_tcp_status(struct siw_cep *cep)
{
	const struct sock *sk = cep->sock->sk;

	switch (READ_ONCE(sk->sk_state)) {
	case TCP_ESTABLISHED:
		return 0;
	case TCP_SYN_SENT:
	case TCP_SYN_RECV:
		return -EINPROGRESS;
	default:
		return -READ_ONCE(sk->sk_err) ?: -ECONNRESET;
	}
}

/* TCP sets these bits before it reports the connection */
static bool siw_tcp_early_data(const struct siw_cep *cep)
{
	return tcp_sk(cep->sock->sk)->syn_data_acked;
}

/**
 * siw_addr_is_wildcard - does an address stand for all addresses?
 * @addr: the address, IPv4 or IPv6
 *
 * Any context.
 *
 * Return: true if so
 */
bool siw_addr_is_wildcard(const struct sockaddr *addr)
{
	if (addr->sa_family == AF_INET)
		return ipv4_is_zeronet(((const struct sockaddr_in *)addr)->sin_addr.s_addr);
	return ipv6_addr_any(&((const struct sockaddr_in6 *)addr)->sin6_addr);
}

/* Above @pending half-open connections, data waits for TCP's handshake */
static int siw_tcp_take_early(struct siw_cep *cep, int pending)
{
	struct socket *s = cep->sock;

	return s->ops->setsockopt(s, SOL_TCP, TCP_FASTOPEN,
				  KERNEL_SOCKPTR(&pending), sizeof(pending));
}

static int siw_tcp_begin_listen(struct siw_cep *cep, int backlog)
{
	struct socket *s = cep->sock;
	const struct fastopen_queue *early =
		&inet_csk(s->sk)->icsk_accept_queue.fastopenq;
	int pending = READ_ONCE(early->max_qlen);
	int rv = s->ops->listen(s, backlog);

	if (rv)
		return rv;
	/* Accepted sockets inherit this: the Request arrives before accept() */
	siw_tcp_delay_ack(s);
	/*
	 * The sysctl may enable Fast Open for all listeners. But not every ULP
	 * tolerates duplicate Requests, so the policy decides.
	 */
	if (READ_ONCE(early->max_qlen) != pending)
		rv = siw_tcp_take_early(cep, pending);
	return rv;
}

static int siw_tcp_listen(struct siw_cep *cep, struct sockaddr *laddr,
			  bool afonly, int ifindex, int backlog)
{
	struct socket *s = cep->sock;

	if (siw_addr_is_wildcard(laddr))
		s->sk->sk_bound_dev_if = ifindex;

	return siw_sock_bind(s, laddr, afonly) ?:
	       siw_tcp_begin_listen(cep, backlog);
}

/*
 * tcp_abort() closes the socket, which stays bound. Accepted sockets would
 * inherit its shutdown state, which only a disconnect clears.
 */
static int siw_tcp_listen_again(struct siw_cep *cep)
{
	struct socket *s = cep->sock;
	struct sockaddr_storage unspec = { .ss_family = AF_UNSPEC };
	int rv;

	if (READ_ONCE(s->sk->sk_state) != TCP_CLOSE)
		return 0;
	rv = s->ops->connect(s, (struct sockaddr_unsized *)&unspec,
			     sizeof(unspec), 0);
	if (rv)
		return rv;
	return siw_tcp_begin_listen(cep, READ_ONCE(s->sk->sk_max_ack_backlog));
}

static int siw_tcp_accept(struct siw_cep *cep, struct siw_cep **new_cep)
{
	struct socket *s;
	int rv = kernel_accept(cep->sock, &s, O_NONBLOCK);

	if (rv)
		return rv;
	*new_cep = siw_cep_accepted(cep);
	if (!*new_cep) {
		sock_release(s);
		return 0;
	}
	siw_tcp_setup(s);
	siw_cep_get(*new_cep);
	(*new_cep)->sock = s;
	return 0;
}

/* The socket has inherited the callbacks of the listener's */
static void siw_tcp_adopt(struct siw_cep *cep)
{
	struct sock *sk = cep->sock->sk;

	write_lock_bh(&sk->sk_callback_lock);
	siw_sk_set_cep(sk, cep);
	write_unlock_bh(&sk->sk_callback_lock);
}

static int siw_tcp_send(struct siw_cep *cep, const void *msg, size_t len)
{
	struct socket *s = cep->sock;
	struct kvec iov = { .iov_base = (void *)msg, .iov_len = len };
	struct msghdr hdr = { .msg_flags = MSG_DONTWAIT | MSG_NOSIGNAL };
	int rv;

	/* As a client, TCP ends the delay when the connection is up */
	siw_tcp_delay_ack(s);
	rv = kernel_sendmsg(s, &hdr, &iov, 1, len);
	if (rv < 0)
		return rv;
	return rv == len ? 0 : -EIO;
}

/*
 * This needs no socket lock. For data that arrives meanwhile, TCP calls
 * sk_data_ready(): siw's or, once the QP uses the socket, the QP's. Both check
 * for data again.
 */
static bool siw_tcp_is_empty(const struct sock *sk)
{
	return READ_ONCE(sk->sk_state) == TCP_ESTABLISHED &&
	       skb_queue_empty_lockless(&sk->sk_receive_queue);
}

static int siw_tcp_recv(struct siw_cep *cep, void *buf, size_t len, bool peek)
{
	struct socket *s = cep->sock;
	struct kvec iov = { .iov_base = buf, .iov_len = len };
	struct msghdr hdr = {};

	if (peek && siw_tcp_is_empty(s->sk))
		return -EAGAIN;
	return kernel_recvmsg(s, &hdr, &iov, 1, len,
			      MSG_DONTWAIT | (peek ? MSG_PEEK : 0));
}

static void siw_tcp_start_tx(struct siw_cep *cep, struct siw_qp *qp)
{
	qp->attrs.sk = cep->sock;
	qp->connected = true;
}

static void siw_tcp_start_rx(struct siw_cep *cep, struct siw_qp *qp)
{
	struct sock *sk = cep->sock->sk;

	write_lock_bh(&sk->sk_callback_lock);
	siw_tcp_start_tx(cep, qp);
	sk->sk_data_ready = siw_qp_llp_data_ready;
	sk->sk_write_space = siw_qp_llp_write_space;
	write_unlock_bh(&sk->sk_callback_lock);
}

static void siw_tcp_kick_rx(struct siw_cep *cep)
{
	struct sock *sk = cep->sock->sk;

	if (siw_tcp_is_empty(sk))
		return;
	lock_sock(sk);
	sk->sk_data_ready(sk);
	release_sock(sk);
}

static void siw_tcp_addr4(struct sockaddr_storage *ss, __be32 addr, __be16 port)
{
	struct sockaddr_in *sin = (struct sockaddr_in *)ss;

	memset(ss, 0, sizeof(*ss));
	if (!port)
		return;
	sin->sin_family = AF_INET;
	sin->sin_addr.s_addr = addr;
	sin->sin_port = port;
}

#if IS_ENABLED(CONFIG_IPV6)
static void siw_tcp_addr6(struct sockaddr_storage *ss, const struct sock *sk,
			  const struct in6_addr *addr, __be16 port)
{
	struct sockaddr_in6 *sin6 = (struct sockaddr_in6 *)ss;

	memset(ss, 0, sizeof(*ss));
	if (!port)
		return;
	sin6->sin6_family = AF_INET6;
	sin6->sin6_addr = *addr;
	sin6->sin6_port = port;
	sin6->sin6_scope_id = ipv6_iface_scope_id(addr, sk->sk_bound_dev_if);
}
#endif

/**
 * siw_sock_addrs - addresses of a socket of either protocol
 * @s: the socket
 * @local: its own address
 * @remote: the peer's address; an unknown address has family 0
 *
 * This does not use getname(), which takes the socket's lock: tracepoints must
 * not take locks. Also, getname() reports no peer after a connection has
 * broken. Any context.
 */
void siw_sock_addrs(const struct socket *s, struct sockaddr_storage *local,
		    struct sockaddr_storage *remote)
{
	const struct sock *sk = s->sk;
	const struct inet_sock *inet = inet_sk(sk);

#if IS_ENABLED(CONFIG_IPV6)
	/*
	 * A listener on :: also accepts IPv4 connections. rdma_cm finds no
	 * device for their mapped addresses.
	 */
	if (sk->sk_family == AF_INET6 &&
	    !ipv6_addr_v4mapped(&sk->sk_v6_daddr)) {
		siw_tcp_addr6(local, sk, &sk->sk_v6_rcv_saddr,
			      inet->inet_sport);
		siw_tcp_addr6(remote, sk, &sk->sk_v6_daddr, inet->inet_dport);
		return;
	}
#endif
	siw_tcp_addr4(local, inet->inet_rcv_saddr, inet->inet_sport);
	siw_tcp_addr4(remote, inet->inet_daddr, inet->inet_dport);
}

static void siw_tcp_addrs(const struct siw_cep *cep,
			  struct sockaddr_storage *local,
			  struct sockaddr_storage *remote)
{
	const struct socket *s = READ_ONCE(cep->sock);

	if (s) {
		siw_sock_addrs(s, local, remote);
	} else {
		local->ss_family = 0;
		remote->ss_family = 0;
	}
}

/**
 * siw_sock_abort - release a socket of either protocol at once
 * @s: the socket
 *
 * TCP's RST leaves no TIME_WAIT state and SCTP's ABORT no association, so the
 * same addresses can connect again. May sleep.
 */
void siw_sock_abort(struct socket *s)
{
	sock_no_linger(s->sk);
	sock_release(s);
}

static void siw_tcp_detach(struct siw_cep *cep)
{
	if (cep->sock)
		siw_sock_detach(cep, cep->sock);
}

static void siw_tcp_close(struct siw_cep *cep)
{
	struct socket *s = cep->sock;

	if (!s)
		return;
	WRITE_ONCE(cep->sock, NULL);
	sock_release(s);
}

const struct siw_llp_ops siw_llp_tcp = {
	.name		= "tcp",
	.open		= siw_tcp_open,
	.reopen		= siw_tcp_reopen,
	.connect	= siw_tcp_connect,
	.connect_with	= siw_tcp_connect_with,
	.status		= siw_tcp_status,
	.early_data	= siw_tcp_early_data,
	.listen		= siw_tcp_listen,
	.listen_again	= siw_tcp_listen_again,
	.take_early	= siw_tcp_take_early,
	.accept		= siw_tcp_accept,
	.adopt		= siw_tcp_adopt,
	.send		= siw_tcp_send,
	.recv		= siw_tcp_recv,
	.start_tx	= siw_tcp_start_tx,
	.start_rx	= siw_tcp_start_rx,
	.kick_rx	= siw_tcp_kick_rx,
	.addrs		= siw_tcp_addrs,
	.detach		= siw_tcp_detach,
	.close		= siw_tcp_close,
};
