// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * UD queue pairs: creation, states, multicast. See NOTICE.
 *
 * A QP is a UDP socket, and its number is the port. The socket belongs to the
 * program that creates the QP: cgroups and netfilter treat it as a socket of the
 * program's own.
 */
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/file.h>
#include <linux/iopoll.h>
#include <linux/module.h>
#include <linux/random.h>
#include <net/ipv6.h>
#include <net/udp.h>

#include "dg_device.h"

static int dg_set_option(struct socket *socket, int level, int name, int value)
{
	return READ_ONCE(socket->ops)->setsockopt(socket, level, name,
						  KERNEL_SOCKPTR(&value),
						  sizeof(value));
}

/* ---- socket */

/* NULL: the QP goes, or another user has taken the program's socket without asking */
static struct dg_qp *dg_qp_of_socket(const struct sock *sk)
{
	uintptr_t data = (uintptr_t)sk->sk_user_data;

	return data & SK_USER_DATA_NOCOPY ?
		(void *)(data & ~(uintptr_t)SK_USER_DATA_NOCOPY) : NULL;
}

static void dg_data_ready(struct sock *sk)
{
	void (*own)(struct sock *sk) = NULL;
	struct dg_qp *qp;

	read_lock_bh(&sk->sk_callback_lock);
	qp = dg_qp_of_socket(sk);
	if (qp)
		dg_rx_receive(qp);
	else if (!sk->sk_user_data)
		own = sk->sk_data_ready;
	read_unlock_bh(&sk->sk_callback_lock);
	if (own && own != dg_data_ready)
		own(sk);
}

static void dg_write_space(struct sock *sk)
{
	void (*own)(struct sock *sk) = NULL;
	struct dg_qp *qp;

	read_lock_bh(&sk->sk_callback_lock);
	qp = dg_qp_of_socket(sk);
	if (!sk->sk_user_data)
		own = sk->sk_write_space;
	if (qp) {
		own = qp->write_space;
		/* Pairs with dg_tx_must_wait() */
		smp_mb();
		if (sock_writeable(sk) &&
		    test_and_clear_bit(DG_QP_TX_WAITS, &qp->flags))
			queue_work(dg_tx_wq, &qp->tx_work);
	}
	read_unlock_bh(&sk->sk_callback_lock);
	if (own && own != dg_write_space)
		own(sk);
}

static int dg_hook_socket(struct dg_qp *qp)
{
	struct sock *sk = qp->socket->sk;
	int ret = 0;

	write_lock_bh(&sk->sk_callback_lock);
	if (sk->sk_user_data || READ_ONCE(udp_sk(sk)->encap_type)) {
		ret = -EBUSY;
	} else {
		qp->data_ready = sk->sk_data_ready;
		qp->write_space = sk->sk_write_space;
		sk->sk_user_data = (void *)((uintptr_t)qp |
					    SK_USER_DATA_NOCOPY);
		WRITE_ONCE(sk->sk_data_ready, dg_data_ready);
		WRITE_ONCE(sk->sk_write_space, dg_write_space);
	}
	write_unlock_bh(&sk->sk_callback_lock);
	return ret;
}

static void dg_unhook_socket(struct dg_qp *qp)
{
	struct sock *sk = qp->socket->sk;

	write_lock_bh(&sk->sk_callback_lock);
	if (dg_qp_of_socket(sk) == qp)
		sk->sk_user_data = NULL;
	else
		/* The other user may call back for ever (sunrpc does) */
		__module_get(THIS_MODULE);
	if (sk->sk_data_ready == dg_data_ready)
		WRITE_ONCE(sk->sk_data_ready, qp->data_ready);
	if (sk->sk_write_space == dg_write_space)
		WRITE_ONCE(sk->sk_write_space, qp->write_space);
	write_unlock_bh(&sk->sk_callback_lock);
}

/*
 * Datagrams come in bundles, leave whole by default, and groups are the QP's own.
 * Nobody reads the queue of IP_RECVERR, which would take the room of datagrams.
 */
static int dg_set_options(struct dg_qp *qp)
{
	/* IPv6 has the same values */
	int discover = qp->fragment ? IP_PMTUDISC_DONT : IP_PMTUDISC_DO;
	const struct {
		int level;
		int name;
		int value;
	} options[] = {
		{ SOL_UDP, UDP_GRO, 1 },
		{ SOL_IP, IP_MTU_DISCOVER, discover },
		{ SOL_IP, IP_MULTICAST_ALL, 0 },
		{ SOL_IP, IP_RECVERR, 0 },
		{ SOL_IPV6, IPV6_MTU_DISCOVER, discover },
		{ SOL_IPV6, IPV6_MULTICAST_ALL, 0 },
		{ SOL_IPV6, IPV6_RECVERR, 0 },
	};
	const struct sock *sk = qp->socket->sk;
	int i, ret = 0;

	qp->restore_gro = !udp_test_bit(GRO_ENABLED, sk);
	for (i = 0; i < ARRAY_SIZE(options) && !ret; i++)
		if (options[i].level != SOL_IPV6 || sk->sk_family == AF_INET6)
			ret = dg_set_option(qp->socket, options[i].level,
					    options[i].name, options[i].value);
	return ret;
}

static int dg_bind_socket(struct socket *socket)
{
	struct sockaddr_in6 any6 = { .sin6_family = AF_INET6 };
	struct sockaddr_in any = { .sin_family = AF_INET };
	int ret;

	if (socket->sk->sk_family == AF_INET)
		return kernel_bind(socket, (struct sockaddr_unsized *)&any,
				   sizeof(any));
	ret = dg_set_option(socket, SOL_IPV6, IPV6_V6ONLY, 0);
	if (ret)
		return ret;
	return kernel_bind(socket, (struct sockaddr_unsized *)&any6,
			   sizeof(any6));
}

/* A port that nobody asked for by number is lost when the socket is aborted (ss -K) */
static void dg_keep_port(struct sock *sk)
{
	lock_sock(sk);
	sk->sk_userlocks |= SOCK_BINDPORT_LOCK;
	release_sock(sk);
}

static int dg_make_socket(struct dg_qp *qp)
{
	struct file *file;
	int ret = sock_create(AF_INET6, SOCK_DGRAM, IPPROTO_UDP, &qp->socket);

	/* A host without IPv6 */
	if (ret == -EAFNOSUPPORT)
		ret = sock_create(AF_INET, SOCK_DGRAM, IPPROTO_UDP,
				  &qp->socket);
	if (ret)
		return ret;
	/* Netfilter finds a socket's owner by its file */
	file = sock_alloc_file(qp->socket, O_CLOEXEC, NULL);
	if (IS_ERR(file))
		return PTR_ERR(file);
	ret = dg_bind_socket(qp->socket);
	if (ret)
		fput(file);
	else
		dg_keep_port(qp->socket->sk);
	return ret;
}

/* Does not wait: another thread may hold the socket for as long as it likes */
static int dg_check_socket(struct sock *sk)
{
	int ret = 0;

	if ((sk->sk_family != AF_INET && sk->sk_family != AF_INET6) ||
	    sk->sk_protocol != IPPROTO_UDP || sk->sk_type != SOCK_DGRAM)
		return -EPROTOTYPE;
	spin_lock_bh(&sk->sk_lock.slock);
	if (sock_owned_by_user(sk))
		ret = -EBUSY;
	else if (!inet_sk(sk)->inet_num || sk->sk_state == TCP_ESTABLISHED)
		ret = -EINVAL;
	else
		sk->sk_userlocks |= SOCK_BINDPORT_LOCK;
	spin_unlock_bh(&sk->sk_lock.slock);
	return ret;
}

/* Its address, port and options are the program's choice */
static int dg_take_socket(struct dg_qp *qp, int fd)
{
	struct socket *socket;
	int ret;

	socket = sockfd_lookup(fd, &ret);
	if (!socket)
		return ret;
	if (!net_eq(sock_net(socket->sk), dev_net(dg_device_of(qp)->netdev)))
		ret = -EADDRNOTAVAIL;
	else
		ret = dg_check_socket(socket->sk);
	if (ret)
		sockfd_put(socket);
	qp->socket = socket;
	return ret;
}

static int dg_get_socket(struct dg_qp *qp, int fd)
{
	const struct net *net = dev_net(dg_device_of(qp)->netdev);
	int ret;

	if (fd >= 0)
		ret = dg_take_socket(qp, fd);
	else if (!net_eq(current->nsproxy->net_ns, net))
		ret = -EADDRNOTAVAIL;
	else
		ret = dg_make_socket(qp);
	if (ret)
		return ret;
	ret = dg_hook_socket(qp);
	if (ret)
		sockfd_put(qp->socket);
	return ret;
}

/* Waits for all users of the QP below its verbs */
static void dg_put_socket(struct dg_qp *qp)
{
	dg_unhook_socket(qp);
	cancel_work_sync(&qp->rx_work);
	/* Receiving queues it */
	cancel_delayed_work_sync(&qp->end_work);
	dg_report_stop(qp);
	cancel_work_sync(&qp->tx_work);
	/*
	 * The program's own reads are not prepared for bundles. setsockopt()
	 * would wait for a thread that holds the socket, without a deadline.
	 */
	if (qp->restore_gro) {
		udp_assign_bit(GRO_ENABLED, qp->socket->sk, 0);
		udp_assign_bit(ACCEPT_L4, qp->socket->sk, 0);
	}
	sockfd_put(qp->socket);
}

/* ---- creation */

static int dg_check_init_attr(const struct ib_qp_init_attr *attrs)
{
	const struct ib_qp_cap *cap = &attrs->cap;

	if (attrs->qp_type != IB_QPT_UD || attrs->create_flags || attrs->srq)
		return -EOPNOTSUPP;
	if (cap->max_send_wr > DG_MAX_WR ||
	    cap->max_recv_wr > DG_MAX_WR ||
	    cap->max_send_sge > SIW_DG_MAX_SGE ||
	    cap->max_recv_sge > SIW_DG_MAX_SGE ||
	    cap->max_inline_data > SIW_DG_MAX_INLINE)
		return -EINVAL;
	return 0;
}

/* The CQs keep an entry for each request */
static void dg_count_requests(const struct dg_qp *qp, int sign)
{
	if (qp->sq)
		atomic_add(sign * (int)qp->sq->size,
			   &to_dg_cq(qp->base.send_cq)->requests);
	if (qp->rq)
		atomic_add(sign * (int)qp->rq->size,
			   &to_dg_cq(qp->base.recv_cq)->requests);
}

static int dg_create_queues(struct dg_qp *qp, struct ib_ucontext *context,
			    struct siw_dg_create_qp_resp *resp)
{
	resp->sq_size = roundup_pow_of_two(qp->cap.max_send_wr);
	qp->sq = dg_queue_create(context, resp->sq_size,
				 sizeof(struct siw_dg_sqe), &resp->sq_key);
	if (!qp->sq)
		return -ENOMEM;
	if (!qp->cap.max_recv_wr)
		return 0;
	resp->rq_size = roundup_pow_of_two(qp->cap.max_recv_wr);
	qp->rq = dg_queue_create(context, resp->rq_size,
				 sizeof(struct siw_dg_rqe), &resp->rq_key);
	return qp->rq ? 0 : -ENOMEM;
}

static void dg_destroy_queues(struct dg_qp *qp)
{
	dg_queue_destroy(qp->sq);
	dg_queue_destroy(qp->rq);
	dg_tx_destroy(qp);
	dg_report_destroy(qp);
	kvfree(qp->slots);
}

/* Another QP with this port shares it by SO_REUSEPORT */
static int dg_set_number(struct dg_qp *qp)
{
	u16 port = inet_sk(qp->socket->sk)->inet_num;
	int ret = xa_insert(&dg_device_of(qp)->qps, port, qp, GFP_KERNEL);

	qp->base.qp_num = port;
	return ret == -EBUSY ? -EADDRINUSE : ret;
}

static void dg_init_qp(struct dg_qp *qp, const struct ib_qp_init_attr *attrs)
{
	qp->cap = attrs->cap;
	qp->cap.max_inline_data = SIW_DG_MAX_INLINE;
	/* A QP that only receives has an SQ, too */
	qp->cap.max_send_wr = max(qp->cap.max_send_wr, 1U);
	qp->signal_all = attrs->sq_sig_type == IB_SIGNAL_ALL_WR;
	qp->state = IB_QPS_RESET;
	mutex_init(&qp->sq_mutex);
	spin_lock_init(&qp->rq_lock);
	xa_init_flags(&qp->zones, XA_FLAGS_ACCOUNT | XA_FLAGS_LOCK_BH);
	INIT_WORK(&qp->tx_work, dg_tx_work);
	INIT_WORK(&qp->rx_work, dg_rx_work);
	INIT_DELAYED_WORK(&qp->end_work, dg_end_work);
}

/* A member without its bit has its default, and must be 0 */
static int dg_read_member(u32 *member, bool present, u32 usual, u32 least,
			  u32 most)
{
	if (!present) {
		if (*member)
			return -EINVAL;
		*member = usual;
		return 0;
	}
	return *member < least || *member > most ? -EINVAL : 0;
}

static int dg_read_members(struct siw_dg_create_qp_req *req)
{
	u32 mask = req->comp_mask;

	if (mask & ~(SIW_DG_QP_SLOTS | SIW_DG_QP_DEADLINE | SIW_DG_QP_GAP |
		     SIW_DG_QP_SEGMENT | SIW_DG_QP_FLAGS))
		return -EOPNOTSUPP;
	if (req->reserved)
		return -EINVAL;
	return dg_read_member(&req->slots, mask & SIW_DG_QP_SLOTS,
			      DG_SLOTS_DEFAULT, 1, DG_SLOTS_MAX) ?:
	       dg_read_member(&req->deadline_ms, mask & SIW_DG_QP_DEADLINE,
			      DG_DEADLINE_DEFAULT, 1, DG_MS_MAX) ?:
	       dg_read_member(&req->gap_ms, mask & SIW_DG_QP_GAP,
			      DG_GAP_DEFAULT, 0, DG_MS_MAX) ?:
	       dg_read_member(&req->segment, mask & SIW_DG_QP_SEGMENT,
			      0, 1, DG_SEGMENT_MAX) ?:
	       dg_read_member(&req->flags, mask & SIW_DG_QP_FLAGS, 0, 0,
			      SIW_DG_FRAGMENT | SIW_DG_SEND_ERRORS |
			      SIW_DG_RECEIVE_ERRORS);
}

static int dg_read_request(struct ib_udata *udata,
			   struct siw_dg_create_qp_req *req)
{
	size_t len;

	if (!udata)
		return -EOPNOTSUPP;
	len = min(udata->inlen, sizeof(*req));
	/* That of the first providers */
	if (len < offsetofend(struct siw_dg_create_qp_req, comp_mask) ||
	    udata->outlen < sizeof(struct siw_dg_create_qp_resp))
		return -EINVAL;
	memset(req, 0, sizeof(*req));
	if (ib_copy_from_udata(req, udata, len))
		return -EFAULT;
	if (udata->inlen > len &&
	    !ib_is_udata_cleared(udata, len, udata->inlen - len))
		return -EOPNOTSUPP;
	return req->sockfd < -1 ? -EINVAL : dg_read_members(req);
}

static void dg_set_request(struct dg_qp *qp,
			   const struct siw_dg_create_qp_req *req)
{
	qp->segment = req->segment;
	qp->fragment = req->flags & SIW_DG_FRAGMENT;
	qp->num_slots = req->slots;
	qp->times.deadline = (u64)req->deadline_ms * NSEC_PER_MSEC;
	qp->times.gap = (u64)req->gap_ms * NSEC_PER_MSEC;
	qp->times.late = DG_LATE_MS * NSEC_PER_MSEC;
}

int dg_create_qp(struct ib_qp *base, struct ib_qp_init_attr *attrs,
		 struct ib_udata *udata)
{
	struct dg_device *dev = to_dg_device(base->device);
	struct siw_dg_create_qp_resp resp = {};
	struct dg_qp *qp = to_dg_qp(base);
	struct siw_dg_create_qp_req req;
	struct dg_ucontext *context;
	int ret;

	ret = dg_read_request(udata, &req);
	if (!ret)
		ret = dg_check_init_attr(attrs);
	if (ret)
		return ret;
	if (!atomic_add_unless(&dev->num_qps, 1, DG_MAX_QP))
		return -ENOMEM;
	dg_init_qp(qp, attrs);
	dg_set_request(qp, &req);

	ret = dg_get_socket(qp, req.sockfd);
	if (ret)
		goto uncount;
	ret = dg_set_options(qp);
	if (ret)
		goto destroy;
	context = rdma_udata_to_drv_context(udata, struct dg_ucontext, base);
	ret = dg_create_queues(qp, &context->base, &resp);
	if (ret)
		goto destroy;
	ret = dg_tx_create(qp);
	if (ret)
		goto destroy;
	ret = dg_report_create(qp, req.flags);
	if (ret)
		goto destroy;
	ret = dg_set_number(qp);
	if (ret)
		goto destroy;
	ret = ib_copy_to_udata(udata, &resp, sizeof(resp));
	if (ret)
		goto erase;
	dg_count_requests(qp, 1);
	/* Drops those that came before the hook, which would fill the socket */
	queue_work(dg_wq, &qp->rx_work);
	attrs->cap = qp->cap;
	return 0;

erase:
	xa_erase(&dev->qps, base->qp_num);
destroy:
	dg_put_socket(qp);
	dg_destroy_queues(qp);
uncount:
	atomic_dec(&dev->num_qps);
	return ret;
}

int dg_destroy_qp(struct ib_qp *base, struct ib_udata *udata)
{
	struct dg_device *dev = to_dg_device(base->device);
	struct dg_qp *qp = to_dg_qp(base);

	xa_erase(&dev->qps, base->qp_num);
	dg_put_socket(qp);
	dg_count_requests(qp, -1);
	dg_destroy_queues(qp);
	/* An insertion that failed for lack of memory has left nodes */
	xa_destroy(&qp->zones);
	atomic_dec(&dev->num_qps);
	return 0;
}

/* ---- states */

static void dg_set_state(struct dg_qp *qp, enum ib_qp_state state)
{
	spin_lock_bh(&qp->rq_lock);
	WRITE_ONCE(qp->state, state);
	if (state == IB_QPS_RESET && qp->rq) {
		qp->rq_next = READ_ONCE(qp->rq->ring->producer);
		WRITE_ONCE(qp->rq->ring->consumer, qp->rq_next);
	}
	/* The parts of messages that have come are not recorded any more */
	if ((state == IB_QPS_RESET || state == IB_QPS_ERR) && qp->slots)
		dg_track_init(&qp->track, qp->slots, qp->num_slots,
			      get_random_u32(), &qp->times);
	dg_report_set_state(qp, state);
	spin_unlock_bh(&qp->rq_lock);
	if (state == IB_QPS_RESET) {
		dg_tx_forget(qp);
		qp->sq_next = READ_ONCE(qp->sq->ring->producer);
		WRITE_ONCE(qp->sq->ring->consumer, qp->sq_next);
		qp->send_msn = 0;
		clear_bit(DG_QP_TX_WAITS, &qp->flags);
	}
	/* Requests may have waited in SQD */
	if (state == IB_QPS_RTS)
		queue_work(dg_tx_wq, &qp->tx_work);
	if (state == IB_QPS_ERR) {
		dg_flush_sq(qp);
		dg_flush_rq(qp);
	}
}

int dg_modify_qp(struct ib_qp *base, struct ib_qp_attr *attr, int mask,
		 struct ib_udata *udata)
{
	struct dg_qp *qp = to_dg_qp(base);
	enum ib_qp_state cur, next;
	int ret = -EINVAL;

	if (mask & ~IB_QP_ATTR_STANDARD_BITS)
		return -EOPNOTSUPP;
	/* A long message may stay half sent in SQD: no IB_EVENT_SQ_DRAINED */
	if (mask & IB_QP_EN_SQD_ASYNC_NOTIFY && attr->en_sqd_async_notify)
		return -EOPNOTSUPP;
	mutex_lock(&qp->sq_mutex);
	cur = qp->state;
	next = mask & IB_QP_STATE ? attr->qp_state : cur;
	if (mask & IB_QP_CUR_STATE && attr->cur_qp_state != cur)
		goto unlock;
	if (!ib_modify_qp_is_ok(cur, next, IB_QPT_UD, mask))
		goto unlock;
	if ((mask & IB_QP_PORT && attr->port_num != 1) ||
	    (mask & IB_QP_PKEY_INDEX && attr->pkey_index))
		goto unlock;
	if (mask & IB_QP_QKEY)
		WRITE_ONCE(qp->qkey, attr->qkey);
	if (mask & IB_QP_STATE)
		dg_set_state(qp, next);
	ret = 0;
unlock:
	mutex_unlock(&qp->sq_mutex);
	return ret;
}

int dg_query_qp(struct ib_qp *base, struct ib_qp_attr *attr, int mask,
		struct ib_qp_init_attr *init_attr)
{
	struct dg_qp *qp = to_dg_qp(base);

	/* The program gets all of both */
	memset(attr, 0, sizeof(*attr));
	memset(init_attr, 0, sizeof(*init_attr));
	attr->qp_state = READ_ONCE(qp->state);
	attr->cur_qp_state = attr->qp_state;
	attr->qkey = READ_ONCE(qp->qkey);
	attr->cap = qp->cap;
	attr->port_num = 1;
	attr->path_mtu = ib_mtu_int_to_enum(dg_max_mtu(dg_device_of(qp)->netdev));

	init_attr->qp_type = IB_QPT_UD;
	init_attr->send_cq = base->send_cq;
	init_attr->recv_cq = base->recv_cq;
	init_attr->cap = qp->cap;
	init_attr->sq_sig_type = qp->signal_all ? IB_SIGNAL_ALL_WR :
						  IB_SIGNAL_REQ_WR;
	return 0;
}

/* ---- multicast */

static int dg_change_membership(struct dg_qp *qp, const union ib_gid *gid,
				bool join)
{
	const struct in6_addr *group = (const struct in6_addr *)gid->raw;
	int ifindex = dg_device_of(qp)->netdev->ifindex;
	struct socket *socket = qp->socket;
	struct ipv6_mreq mreq6 = {
		.ipv6mr_multiaddr = *group,
		.ipv6mr_ifindex = ifindex,
	};
	struct ip_mreqn mreq = {
		.imr_multiaddr.s_addr = group->s6_addr32[3],
		.imr_ifindex = ifindex,
	};

	if (ipv6_addr_v4mapped(group))
		return READ_ONCE(socket->ops)->setsockopt(socket, SOL_IP,
				join ? IP_ADD_MEMBERSHIP : IP_DROP_MEMBERSHIP,
				KERNEL_SOCKPTR(&mreq), sizeof(mreq));
	if (socket->sk->sk_family != AF_INET6)
		return -EAFNOSUPPORT;
	return READ_ONCE(socket->ops)->setsockopt(socket, SOL_IPV6,
			join ? IPV6_ADD_MEMBERSHIP : IPV6_DROP_MEMBERSHIP,
			KERNEL_SOCKPTR(&mreq6), sizeof(mreq6));
}

int dg_attach_mcast(struct ib_qp *qp, union ib_gid *gid, u16 lid)
{
	return dg_change_membership(to_dg_qp(qp), gid, true);
}

/*
 * Does not fail: the core forgets the group in any case, and does not destroy a
 * QP that says that it is in one. The program may have left it by the socket. It
 * can also hold the socket for as long as it likes; the end of neither the QP
 * nor the device waits for that, and the socket stays in the group.
 */
int dg_detach_mcast(struct ib_qp *base, union ib_gid *gid, u16 lid)
{
	struct dg_qp *qp = to_dg_qp(base);
	bool held;

	if (READ_ONCE(dg_device_of(qp)->goes))
		return 0;
	/* A thread that only sends is soon done */
	read_poll_timeout(sock_owned_by_user_nocheck, held, !held,
			  USEC_PER_MSEC, 10 * USEC_PER_MSEC, false,
			  qp->socket->sk);
	if (!held)
		dg_change_membership(qp, gid, false);
	return 0;
}
