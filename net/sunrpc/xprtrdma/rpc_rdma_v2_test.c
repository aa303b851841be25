// SPDX-License-Identifier: GPL-2.0
/*
 * Which version of RPC-over-RDMA a client's connection uses, also where no
 * server can bring the decision about at will. Sections 5.1 and 5.2 of
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

/* A connection whose first message, of version two, has been sent */
static void begin(struct client *client)
{
	memset(&client->ep, 0, sizeof(client->ep));
	client->xprt.rx_ep = &client->ep;
	spin_lock_init(&client->xprt.rx_xprt.transport_lock);
	rpcrdma2_start(&client->xprt, &client->ep);
	/* so says the server when it accepts */
	client->ep.re_inline_send = 1024;
	client->ep.re_inline_recv = 1024;
	rpcrdma2_limit_probe(&client->ep);
	client->ep.re_probe_sent = client->ep.re_probing;
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

static bool receive(struct kunit *test, const __be32 *message, size_t words)
{
	struct client *client = test->priv;
	size_t octets = words * sizeof(*message);
	struct rpcrdma_rep *rep;
	void *buf;

	rep = kunit_kzalloc(test, sizeof(*rep), GFP_KERNEL);
	buf = kunit_kzalloc(test, octets, GFP_KERNEL);
	KUNIT_ASSERT_TRUE(test, rep && buf);
	memcpy(buf, message, octets);
	rep->rr_xid = message[0];
	rep->rr_vers = message[1];
	rep->rr_proc = message[3];
	rep->rr_hdrbuf.head[0].iov_base = buf;
	rep->rr_hdrbuf.head[0].iov_len = octets;
	rep->rr_hdrbuf.len = octets;
	return rpcrdma2_receive(&client->xprt, rep);
}

/* A message of version two that ends before its direction */
static void receive_half_a_header(struct kunit *test)
{
	static const __be32 message[] = {
		cpu_to_be32(7), cpu_to_be32(2), cpu_to_be32(1), cpu_to_be32(0),
	};

	KUNIT_EXPECT_FALSE(test, receive(test, message, ARRAY_SIZE(message)));
}

/* An ERROR with this code, and some words behind it */
static bool receive_error(struct kunit *test, u32 vers, u32 code, size_t behind)
{
	const __be32 message[7] = {
		cpu_to_be32(7), cpu_to_be32(vers), cpu_to_be32(1),
		cpu_to_be32(4), cpu_to_be32(code), cpu_to_be32(1),
		cpu_to_be32(1),
	};

	return receive(test, message, 5 + behind);
}

/* RPC-12: that version is its own; RPC-3 */
static void first_error_may_have_any_version(struct kunit *test)
{
	KUNIT_EXPECT_TRUE(test, receive_error(test, 1, 1, 2));
	KUNIT_EXPECT_TRUE(test, receive_error(test, 2, 1, 2));
	KUNIT_EXPECT_TRUE(test, receive_error(test, 3, 1, 2));
	KUNIT_EXPECT_TRUE(test, receive_error(test, 2, 2, 0));
}

/* RPC-3 */
static void later_error_has_version_two(struct kunit *test)
{
	struct client *client = test->priv;

	client->ep.re_probing = false;
	KUNIT_EXPECT_TRUE(test, receive_error(test, 2, 2, 0));
	KUNIT_EXPECT_FALSE(test, receive_error(test, 1, 2, 0));
	KUNIT_EXPECT_FALSE(test, receive_error(test, 3, 2, 0));
}

/* RPC-3: no payload, a range behind ERR_VERS, no other code */
static void malformed_error_is_dropped(struct kunit *test)
{
	KUNIT_EXPECT_FALSE(test, receive_error(test, 2, 2, 2));
	KUNIT_EXPECT_FALSE(test, receive_error(test, 2, 1, 1));
	KUNIT_EXPECT_FALSE(test, receive_error(test, 2, 4, 0));
}

/* RPC-12: the same call again, in version one, on the same connection */
static void refusal_means_version_one(struct kunit *test)
{
	struct client *client = test->priv;
	unsigned int cookie = client->xprt.rx_xprt.connect_cookie;

	KUNIT_EXPECT_EQ(test, 2, client->ep.re_vers);
	KUNIT_EXPECT_EQ(test, -EAGAIN, refuse(test, 2, 1, 1));
	KUNIT_EXPECT_EQ(test, 1, client->ep.re_vers);
	KUNIT_EXPECT_EQ(test, 1024U, client->ep.re_inline_recv);
	KUNIT_EXPECT_NE(test, cookie, client->xprt.rx_xprt.connect_cookie);
	begin(client);
	KUNIT_EXPECT_EQ(test, 1, client->ep.re_vers);
}

/* RPC-12: a call may be on its way in version two when that is refused: the
 * task of the first message was killed, and its credit free again
 */
static void late_refusal_is_no_error(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, -EAGAIN, refuse(test, 2, 1, 1));
	KUNIT_EXPECT_EQ(test, -EAGAIN, refuse(test, 2, 1, 1));
	/* nothing refuses version one */
	KUNIT_EXPECT_EQ(test, -EIO, refuse(test, 1, 1, 1));
}

/* RPC-12: sunrpc may lose the first result and send the call again, which must
 * then get the same
 */
static void server_without_either_is_not_one_of_version_one(struct kunit *test)
{
	struct client *client = test->priv;

	KUNIT_EXPECT_EQ(test, -EPROTONOSUPPORT, refuse(test, 2, 3, 4));
	begin(client);
	KUNIT_EXPECT_EQ(test, 2, client->ep.re_vers);
	KUNIT_EXPECT_EQ(test, -EPROTONOSUPPORT, refuse(test, 2, 3, 4));
}

/* RPC-13 */
static void silence_means_version_one(struct kunit *test)
{
	struct client *client = test->priv;

	rpcrdma2_stop(&client->xprt);
	begin(client);
	KUNIT_EXPECT_EQ(test, 1, client->ep.re_vers);
}

/* RPC-13: a connection on which nothing was sent says nothing */
static void early_end_means_nothing(struct kunit *test)
{
	struct client *client = test->priv;

	client->ep.re_probe_sent = false;
	rpcrdma2_stop(&client->xprt);
	begin(client);
	KUNIT_EXPECT_EQ(test, 2, client->ep.re_vers);
}

/* RPC-13: the server has spoken version two, so it may lose one message */
static void bad_message_shows_the_version(struct kunit *test)
{
	struct client *client = test->priv;

	receive_half_a_header(test);
	rpcrdma2_stop(&client->xprt);
	begin(client);
	KUNIT_EXPECT_EQ(test, 2, client->ep.re_vers);
	rpcrdma2_stop(&client->xprt);
	begin(client);
	KUNIT_EXPECT_EQ(test, 1, client->ep.re_vers);
}

static struct kunit_case client_cases[] = {
	KUNIT_CASE(first_error_may_have_any_version),
	KUNIT_CASE(later_error_has_version_two),
	KUNIT_CASE(malformed_error_is_dropped),
	KUNIT_CASE(refusal_means_version_one),
	KUNIT_CASE(late_refusal_is_no_error),
	KUNIT_CASE(server_without_either_is_not_one_of_version_one),
	KUNIT_CASE(silence_means_version_one),
	KUNIT_CASE(early_end_means_nothing),
	KUNIT_CASE(bad_message_shows_the_version),
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
