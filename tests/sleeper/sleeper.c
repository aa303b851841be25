// SPDX-License-Identifier: GPL-2.0
/*
 * A ULP of the kernel whose event handler sleeps, for tests/streams.sh.
 *
 * It connects to @address and @port, in the network namespace of the process
 * that loads it. Its handler of ESTABLISHED sleeps until the module is unloaded:
 * until then siw processes nothing that the peer sends to this QP.
 *
 * No program can stop siw's receiver: siw places data itself, and its completion
 * handlers run with softirqs disabled, so that no ULP sleeps there. The handler
 * of a connection's events may sleep, and only the kernel's ULPs have one.
 */
#include <linux/completion.h>
#include <linux/inet.h>
#include <linux/module.h>
#include <linux/nsproxy.h>
#include <linux/sched.h>
#include <net/net_namespace.h>
#include <rdma/rdma_cm.h>

#define TIMEOUT_MS	5000

/*
 * Asks rdmafirst's server for RDMA Writes. They are never processed, so that the
 * address and the key do not matter.
 */
static const char request[] = "write 1000 100";

static char *address;
module_param(address, charp, 0);
MODULE_PARM_DESC(address, "IPv4 address of the peer");
static unsigned short port;
module_param(port, ushort, 0);
MODULE_PARM_DESC(port, "port of the peer");

static struct rdma_cm_id *id;
static struct ib_pd *pd;
static struct ib_cq *cq;
static DECLARE_COMPLETION(awake);

static int connect_qp(void)
{
	struct rdma_conn_param param = {
		.private_data = request,
		.private_data_len = sizeof(request) - 1,
		.responder_resources = 1,
		.initiator_depth = 1,
	};
	struct ib_qp_init_attr attr = {
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.qp_type = IB_QPT_RC,
		.sq_sig_type = IB_SIGNAL_ALL_WR,
	};
	int rv;

	pd = ib_alloc_pd(id->device, 0);
	if (IS_ERR(pd))
		return PTR_ERR(pd);
	cq = ib_alloc_cq(id->device, NULL, 4, 0, IB_POLL_WORKQUEUE);
	if (IS_ERR(cq))
		return PTR_ERR(cq);
	attr.send_cq = cq;
	attr.recv_cq = cq;
	rv = rdma_create_qp(id, pd, &attr);
	return rv ?: rdma_connect_locked(id, &param);
}

/* An error would destroy the id, which sleeper_exit() does */
static int handle(struct rdma_cm_id *unused, struct rdma_cm_event *event)
{
	int rv = 0;

	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		rv = rdma_resolve_route(id, TIMEOUT_MS);
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		rv = connect_qp();
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		pr_info("sleeper: asleep\n");
		rv = wait_for_completion_interruptible(&awake);
		break;
	default:
		pr_info("sleeper: %s, status %d\n",
			rdma_event_msg(event->event), event->status);
	}
	if (rv)
		pr_info("sleeper: error %d after %s\n", rv,
			rdma_event_msg(event->event));
	return 0;
}

static int __init sleeper_init(void)
{
	struct sockaddr_in peer = {
		.sin_family = AF_INET,
		.sin_port = htons(port),
	};
	int rv;

	if (!address || !in4_pton(address, -1, (u8 *)&peer.sin_addr, -1, NULL))
		return -EINVAL;
	id = rdma_create_id(current->nsproxy->net_ns, handle, NULL, RDMA_PS_TCP,
			    IB_QPT_RC);
	if (IS_ERR(id))
		return PTR_ERR(id);
	rv = rdma_resolve_addr(id, NULL, (struct sockaddr *)&peer, TIMEOUT_MS);
	if (rv)
		rdma_destroy_id(id);
	return rv;
}

/* To be called when the handler sleeps, or never will */
static void __exit sleeper_exit(void)
{
	complete_all(&awake);
	if (id->qp)
		rdma_destroy_qp(id);
	rdma_destroy_id(id);
	if (!IS_ERR_OR_NULL(cq))
		ib_free_cq(cq);
	if (!IS_ERR_OR_NULL(pd))
		ib_dealloc_pd(pd);
}

module_init(sleeper_init);
module_exit(sleeper_exit);
MODULE_DESCRIPTION("A ULP that sleeps, for tests");
MODULE_LICENSE("GPL");
