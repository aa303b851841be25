// SPDX-License-Identifier: GPL-2.0
/*
 * Selection of the RPC-over-RDMA version of a client's connection, including
 * decisions that no server can cause at will. Sections 5.1 and 5.2 of
 * draft-cel-nfsv4-rpcrdma-version-two-01.
 */
#include <kunit/test.h>
#include <linux/module.h>

#include "xprt_rdma.h"
#include "rpcrdma2.h"

struct client {
	struct rpcrdma_xprt xprt;
	struct rpcrdma_ep ep;
	unsigned int max_version;
};

/* A connection whose first message has been sent. Both ends have room for
 * messages of @octets octets in version one (RFC 8797).
 */
static void begin_with(struct client *client, unsigned int octets)
{
	memset(&client->ep, 0, sizeof(client->ep));
	client->xprt.rx_ep = &client->ep;
	client->xprt.rx_buf.rb_credits = 1;
	spin_lock_init(&client->xprt.rx_xprt.transport_lock);
	rpcrdma2_start(&client->xprt, &client->ep);
	client->ep.re_inline_send = octets;
	client->ep.re_inline_recv = octets;
	rpcrdma2_limit_probe(&client->ep);
	client->ep.re_probe_sent = client->ep.re_probing;
}

static void begin(struct client *client)
{
	begin_with(client, 1024);
}

static int version(const struct client *client)
{
	return be32_to_cpu(client->ep.re_vers_ops->vers->number);
}

static int init(struct kunit *test)
{
	struct client *client = kunit_kzalloc(test, sizeof(*client), GFP_KERNEL);

	if (!client)
		return -ENOMEM;
	test->priv = client;
	client->max_version = xprt_rdma_max_version;
	xprt_rdma_max_version = RPCRDMA2_VERSION;
	begin(client);
	return 0;
}

static void restore(struct kunit *test)
{
	struct client *client = test->priv;

	if (client)
		xprt_rdma_max_version = client->max_version;
}

/* An ERR_VERS to a call that was sent in a version */
static int refuse(struct kunit *test, u32 sent_in, u32 low, u32 high)
{
	struct client *client = test->priv;
	struct rpcrdma_regbuf *buf;
	struct rpcrdma_req *req;
	__be32 *message;

	req = kunit_kzalloc(test, sizeof(*req), GFP_KERNEL);
	buf = kunit_kzalloc(test, sizeof(*buf), GFP_KERNEL);
	message = kunit_kzalloc(test, 40, GFP_KERNEL);
	KUNIT_ASSERT_TRUE(test, req && buf && message);
	message[1] = cpu_to_be32(sent_in);
	buf->rg_data = message;
	req->rl_rdmabuf = buf;
	return rpcrdma2_refuse(&client->xprt, &req->rl_slot, low, high);
}

static bool receive(struct kunit *test, const __be32 *message, size_t words,
		    u32 *credits)
{
	struct client *client = test->priv;
	size_t octets = words * sizeof(*message);
	struct rpcrdma_rep *rep;
	void *buf;

	rep = kunit_kzalloc(test, sizeof(*rep), GFP_KERNEL);
	buf = kunit_kzalloc(test, octets, GFP_KERNEL);
	KUNIT_ASSERT_TRUE(test, rep && buf);
	memcpy(buf, message, octets);
	rep->rr_rxprt = &client->xprt;
	rep->rr_xid = message[0];
	rep->rr_vers = message[1];
	rep->rr_proc = message[3];
	rep->rr_hdrbuf.head[0].iov_base = buf;
	rep->rr_hdrbuf.head[0].iov_len = octets;
	rep->rr_hdrbuf.len = octets;
	xdr_init_decode(&rep->rr_stream, &rep->rr_hdrbuf, buf, NULL);
	xdr_inline_decode(&rep->rr_stream, 16);
	return client->ep.re_vers_ops->receive(&client->xprt, rep, credits);
}

/* A message of version two that ends before its direction */
static void receive_half_a_header(struct kunit *test)
{
	static const __be32 message[] = {
		cpu_to_be32(7), cpu_to_be32(2), cpu_to_be32(1), cpu_to_be32(0),
	};

	u32 credits = 1;

	KUNIT_EXPECT_FALSE(test, receive(test, message, ARRAY_SIZE(message),
					 &credits));
}

/* An ERROR with this code, followed by @behind words */
static bool receive_error(struct kunit *test, u32 vers, u32 code, size_t behind)
{
	const __be32 message[7] = {
		cpu_to_be32(7), cpu_to_be32(vers), cpu_to_be32(1),
		cpu_to_be32(4), cpu_to_be32(code), cpu_to_be32(1),
		cpu_to_be32(1),
	};

	u32 credits = 64;
	bool taken = receive(test, message, 5 + behind, &credits);

	/* RPC-10: an error grants no credits */
	KUNIT_EXPECT_EQ(test, 1U, credits);
	return taken;
}

/* A valid reply has arrived */
static void settle(struct kunit *test)
{
	struct client *client = test->priv;
	struct rpcrdma_rep *rep;

	rep = kunit_kzalloc(test, sizeof(*rep), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, rep);
	rep->rr_proc = rdma_msg;
	rpcrdma2_settle(&client->xprt, rep);
}

/* RPC-12: the version is the server's own; RPC-3 */
static void rpcrdma_error_for_the_first_call_may_have_any_version(struct kunit *test)
{
	KUNIT_EXPECT_TRUE(test, receive_error(test, 1, 1, 2));
	KUNIT_EXPECT_TRUE(test, receive_error(test, 2, 1, 2));
	KUNIT_EXPECT_TRUE(test, receive_error(test, 3, 1, 2));
	KUNIT_EXPECT_TRUE(test, receive_error(test, 2, 2, 0));
	KUNIT_EXPECT_FALSE(test, receive_error(test, 1, 1, 1));
	KUNIT_EXPECT_FALSE(test, receive_error(test, 3, 2, 1));
}

/* RPC-3 */
static void rpcrdma_error_after_the_first_reply_must_have_version_two(struct kunit *test)
{
	struct client *client = test->priv;

	client->ep.re_probing = false;
	KUNIT_EXPECT_TRUE(test, receive_error(test, 2, 2, 0));
	KUNIT_EXPECT_FALSE(test, receive_error(test, 1, 2, 0));
	KUNIT_EXPECT_FALSE(test, receive_error(test, 3, 2, 0));
}

/* RPC-3: no payload, a range after ERR_VERS, no other code */
static void malformed_rpcrdma_error_is_dropped(struct kunit *test)
{
	KUNIT_EXPECT_FALSE(test, receive_error(test, 2, 2, 2));
	KUNIT_EXPECT_FALSE(test, receive_error(test, 2, 1, 1));
	KUNIT_EXPECT_FALSE(test, receive_error(test, 2, 4, 0));
}

/* RPC-12: the same call again, in version one, on the same connection */
static void err_vers_selects_rpcrdma_version_one(struct kunit *test)
{
	struct client *client = test->priv;
	unsigned int cookie = client->xprt.rx_xprt.connect_cookie;

	KUNIT_EXPECT_EQ(test, 2, version(client));
	KUNIT_EXPECT_EQ(test, -EAGAIN, refuse(test, 2, 1, 1));
	KUNIT_EXPECT_EQ(test, 1, version(client));
	KUNIT_EXPECT_EQ(test, 1024U, client->ep.re_inline_recv);
	KUNIT_EXPECT_NE(test, cookie, client->xprt.rx_xprt.connect_cookie);
	begin(client);
	KUNIT_EXPECT_EQ(test, 1, version(client));
}

/* RPC-12: a call of version two may be in flight when version two is refused:
 * the task of the first message was killed, and its credit released
 */
static void second_err_vers_is_retried_with_rpcrdma_version_one(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, -EAGAIN, refuse(test, 2, 1, 1));
	KUNIT_EXPECT_EQ(test, -EAGAIN, refuse(test, 2, 1, 1));
	/* nothing refuses version one */
	KUNIT_EXPECT_EQ(test, -EIO, refuse(test, 1, 1, 1));
}

/* RPC-12: sunrpc may lose the first result and send the call again, which must
 * then have the same result
 */
static void no_common_rpcrdma_version_with_the_server_is_an_error(struct kunit *test)
{
	struct client *client = test->priv;

	KUNIT_EXPECT_EQ(test, -EPROTONOSUPPORT, refuse(test, 2, 3, 4));
	begin(client);
	KUNIT_EXPECT_EQ(test, 2, version(client));
	KUNIT_EXPECT_EQ(test, -EPROTONOSUPPORT, refuse(test, 2, 3, 4));
}

/* RPC-13 */
static void disconnect_before_any_reply_selects_rpcrdma_version_one(struct kunit *test)
{
	struct client *client = test->priv;

	rpcrdma2_stop(&client->xprt);
	begin(client);
	KUNIT_EXPECT_EQ(test, 1, version(client));
}

/* RPC-13: a connection on which nothing was sent selects no version */
static void disconnect_before_the_first_call_keeps_rpcrdma_version_two(struct kunit *test)
{
	struct client *client = test->priv;

	client->ep.re_probe_sent = false;
	rpcrdma2_stop(&client->xprt);
	begin(client);
	KUNIT_EXPECT_EQ(test, 2, version(client));
}

/* RPC-13: the server has used version two: one loss is tolerated */
static void malformed_version_two_message_confirms_rpcrdma_version_two(struct kunit *test)
{
	struct client *client = test->priv;

	receive_half_a_header(test);
	rpcrdma2_stop(&client->xprt);
	begin(client);
	KUNIT_EXPECT_EQ(test, 2, version(client));
	rpcrdma2_stop(&client->xprt);
	begin(client);
	KUNIT_EXPECT_EQ(test, 1, version(client));
}

static void expect_thresholds(struct kunit *test, unsigned int send,
			      unsigned int recv)
{
	struct client *client = test->priv;

	KUNIT_EXPECT_EQ(test, send, client->ep.re_inline_send);
	KUNIT_EXPECT_EQ(test, recv, client->ep.re_inline_recv);
}

/* RPC-9: 4096 octets are the minimum in version two */
static void rpcrdma2_raises_small_inline_thresholds_to_4096(struct kunit *test)
{
	expect_thresholds(test, 1024, 4096);
	settle(test);
	expect_thresholds(test, 4096, 4096);
}

/* RPC-9, RPC-10, RFC 8797: version two keeps a larger threshold of version one,
 * except for the first message
 */
static void rpcrdma2_keeps_inline_thresholds_above_4096(struct kunit *test)
{
	struct client *client = test->priv;

	begin_with(client, 16384);
	expect_thresholds(test, 1024, 16384);
	settle(test);
	expect_thresholds(test, 16384, 16384);
}

/* Without version two, none of its state is set */
static void rpcrdma_version_one_is_the_default(struct kunit *test)
{
	struct client *client = test->priv;

	xprt_rdma_max_version = 1;
	begin_with(client, 16384);
	KUNIT_EXPECT_EQ(test, 1, version(client));
	expect_thresholds(test, 16384, 16384);
	KUNIT_EXPECT_FALSE(test, client->ep.re_probing);
	KUNIT_EXPECT_EQ(test, 0U, client->ep.re_vers_ops->max_errors);
	KUNIT_EXPECT_NULL(test, client->ep.re_vers_ops->receive);
	KUNIT_EXPECT_NULL(test, client->ep.re_vers_ops->is_reply);
	/* mountstats has no column for the version */
	KUNIT_EXPECT_EQ(test, 0U, client->xprt.rx_stats.vers);
}

/* xid and type of an RPC message in 8 octets, or in less */
static bool is_reply(struct kunit *test, __be32 proc, u32 xid, u32 type,
		     size_t octets)
{
	struct client *client = test->priv;
	struct rpcrdma_rep *rep;
	__be32 *message;

	rep = kunit_kzalloc(test, sizeof(*rep), GFP_KERNEL);
	message = kunit_kzalloc(test, 8, GFP_KERNEL);
	KUNIT_ASSERT_TRUE(test, rep && message);
	rep->rr_rqst = kunit_kzalloc(test, sizeof(*rep->rr_rqst), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, rep->rr_rqst);
	message[0] = cpu_to_be32(xid);
	message[1] = cpu_to_be32(type);
	rep->rr_xid = cpu_to_be32(7);
	rep->rr_proc = proc;
	rep->rr_rqst->rq_rcv_buf.head[0].iov_base = message;
	rep->rr_hdrbuf.head[0].iov_base = message;
	rep->rr_hdrbuf.head[0].iov_len = octets;
	rep->rr_hdrbuf.len = octets;
	xdr_init_decode(&rep->rr_stream, &rep->rr_hdrbuf, message, NULL);
	/* 4096 octets by a Write chunk do not make a message longer */
	return client->ep.re_vers_ops->is_reply(rep, proc == rdma_msg ?
						     octets + 4096 : octets);
}

/* RPC-6: also for a message that the server has written to memory */
static void rpc_reply_needs_matching_xid_type_and_length(struct kunit *test)
{
	static const __be32 procs[] = { rdma_msg, rdma_nomsg };
	int i;

	for (i = 0; i < ARRAY_SIZE(procs); i++) {
		KUNIT_EXPECT_TRUE(test, is_reply(test, procs[i], 7, 1, 8));
		KUNIT_EXPECT_FALSE(test, is_reply(test, procs[i], 7, 0, 8));
		KUNIT_EXPECT_FALSE(test, is_reply(test, procs[i], 8, 1, 8));
		KUNIT_EXPECT_FALSE(test, is_reply(test, procs[i], 7, 1, 7));
		KUNIT_EXPECT_FALSE(test, is_reply(test, procs[i], 7, 1, 0));
	}
}

static struct kunit_case client_cases[] = {
	KUNIT_CASE(rpcrdma_error_for_the_first_call_may_have_any_version),
	KUNIT_CASE(rpcrdma_error_after_the_first_reply_must_have_version_two),
	KUNIT_CASE(malformed_rpcrdma_error_is_dropped),
	KUNIT_CASE(err_vers_selects_rpcrdma_version_one),
	KUNIT_CASE(second_err_vers_is_retried_with_rpcrdma_version_one),
	KUNIT_CASE(no_common_rpcrdma_version_with_the_server_is_an_error),
	KUNIT_CASE(disconnect_before_any_reply_selects_rpcrdma_version_one),
	KUNIT_CASE(disconnect_before_the_first_call_keeps_rpcrdma_version_two),
	KUNIT_CASE(malformed_version_two_message_confirms_rpcrdma_version_two),
	KUNIT_CASE(rpcrdma2_raises_small_inline_thresholds_to_4096),
	KUNIT_CASE(rpcrdma2_keeps_inline_thresholds_above_4096),
	KUNIT_CASE(rpcrdma_version_one_is_the_default),
	KUNIT_CASE(rpc_reply_needs_matching_xid_type_and_length),
	{}
};

static struct kunit_suite client_suite = {
	.name = "rpc_rdma_v2",
	.init = init,
	.exit = restore,
	.test_cases = client_cases,
};

kunit_test_suite(client_suite);

MODULE_DESCRIPTION("KUnit tests of the client's version of RPC-over-RDMA");
MODULE_LICENSE("GPL");
MODULE_IMPORT_NS("EXPORTED_FOR_KUNIT_TESTING");
