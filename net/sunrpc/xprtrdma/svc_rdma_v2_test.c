// SPDX-License-Identifier: GPL-2.0
/*
 * The server's side of RPC-over-RDMA version two: cases that no Linux client
 * causes
 */
#include <kunit/test.h>
#include <linux/module.h>
#include <linux/sunrpc/xprt.h>

#include <rdma/ib_verbs.h>

#include "rpcrdma2.h"

#define XID	cpu_to_be32(0x9cb1e600)

/* A callback that waits for its reply */
struct callback {
	struct rpc_xprt xprt;
	struct rpc_rqst rqst;
	struct rpc_task task;
};

static struct callback *send_callback(struct kunit *test)
{
	struct callback *callback;

	callback = kunit_kzalloc(test, sizeof(*callback), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, callback);
	spin_lock_init(&callback->xprt.queue_lock);
	callback->xprt.recv_queue = RB_ROOT;
	callback->task.tk_rqstp = &callback->rqst;
	set_bit(RPC_TASK_NEED_RECV, &callback->task.tk_runstate);
	callback->rqst.rq_task = &callback->task;
	callback->rqst.rq_xprt = &callback->xprt;
	callback->rqst.rq_xid = XID;
	rb_link_node(&callback->rqst.rq_recv, NULL,
		     &callback->xprt.recv_queue.rb_node);
	rb_insert_color(&callback->rqst.rq_recv, &callback->xprt.recv_queue);
	return callback;
}

static bool is_waiting(const struct callback *callback)
{
	return test_bit(RPC_TASK_NEED_RECV, &callback->task.tk_runstate) &&
	       !RB_EMPTY_ROOT(&callback->xprt.recv_queue);
}

/* RPC-3 */
static void callback_fails_with_eio_after_an_rpcrdma2_error_with_its_xid(struct kunit *test)
{
	struct callback *callback = send_callback(test);

	svc_rdma_v2_fail_callback(&callback->xprt, XID);
	KUNIT_EXPECT_EQ(test, -EIO, callback->task.tk_status);
	KUNIT_EXPECT_FALSE(test, is_waiting(callback));
}

static void callback_keeps_waiting_after_an_rpcrdma2_error_with_a_different_xid(struct kunit *test)
{
	struct callback *callback = send_callback(test);

	svc_rdma_v2_fail_callback(&callback->xprt, XID + 1);
	KUNIT_EXPECT_EQ(test, 0, callback->task.tk_status);
	KUNIT_EXPECT_TRUE(test, is_waiting(callback));
}

static struct kunit_case server_cases[] = {
	KUNIT_CASE(callback_fails_with_eio_after_an_rpcrdma2_error_with_its_xid),
	KUNIT_CASE(callback_keeps_waiting_after_an_rpcrdma2_error_with_a_different_xid),
	{}
};

static struct kunit_suite server_suite = {
	.name = "svc_rdma_v2",
	.test_cases = server_cases,
};

kunit_test_suite(server_suite);

MODULE_DESCRIPTION("KUnit tests of the server's side of RPC-over-RDMA version two");
MODULE_LICENSE("GPL");
MODULE_IMPORT_NS("EXPORTED_FOR_KUNIT_TESTING");
