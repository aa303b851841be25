// SPDX-License-Identifier: GPL-2.0
/*
 * iw_cm's events: how many are queued for a handler, their order, and the
 * behaviour when the queue is full. The device is a fake; the test is the
 * provider.
 */
#include <kunit/test.h>
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/workqueue.h>

#include <rdma/ib_verbs.h>
#include <rdma/iw_cm.h>

/* Much longer than any step takes; only a failure waits so long */
#define PATIENCE (30 * HZ)

#define MAX_EVENTS 64

struct fake {
	struct ib_device dev;
	struct ib_qp qp;
	atomic_t qp_refs;

	/* The provider saw these requests rejected, by their provider_data */
	spinlock_t lock;
	unsigned long rejected[MAX_EVENTS];
	bool ulp_rejects[MAX_EVENTS];
	unsigned int n_rejected;

	/* The cm_id that a ULP has accepted; its QP is moved to ERROR then */
	struct iw_cm_id *accepted;
	unsigned int n_accepted;
	unsigned int n_errors;
	/* An accepted connection is established and ends at once */
	bool establishes;
};

/* Events that the ULP's handler of one cm_id has seen, and its duration */
struct ulp {
	enum iw_cm_event_type seen[MAX_EVENTS];
	int status[MAX_EVENTS];
	unsigned long data[MAX_EVENTS];
	atomic_t n;
	bool slow;
	int rv;
	bool accepts;
	bool rejects;
	bool refuses;
	int accept_rv;
	struct completion entered;
	struct completion go_on;
	bool left;
	struct task_struct *task;
};

static struct fake *to_fake(struct ib_device *dev)
{
	return container_of(dev, struct fake, dev);
}

static int fake_create_listen(struct iw_cm_id *id, int backlog)
{
	return 0;
}

static int fake_destroy_listen(struct iw_cm_id *id)
{
	return 0;
}

static int fake_reject(struct iw_cm_id *id, const void *pdata, u8 len)
{
	struct fake *f = to_fake(id->device);

	spin_lock(&f->lock);
	if (f->n_rejected < MAX_EVENTS) {
		f->ulp_rejects[f->n_rejected] = iw_cm_ulp_rejects(id);
		f->rejected[f->n_rejected++] = (unsigned long)id->provider_data;
	}
	spin_unlock(&f->lock);
	return 0;
}

static int fake_connect(struct iw_cm_id *id, struct iw_cm_conn_param *param)
{
	return 0;
}

static int fake_accept(struct iw_cm_id *id, struct iw_cm_conn_param *param)
{
	struct fake *f = to_fake(id->device);

	f->accepted = id;
	f->n_accepted++;
	if (f->establishes) {
		id->event_handler(id, &(struct iw_cm_event) {
			.event = IW_CM_EVENT_ESTABLISHED });
		id->event_handler(id, &(struct iw_cm_event) {
			.event = IW_CM_EVENT_CLOSE });
	}
	return 0;
}

/* As siw does: a connection that has been accepted ends with its QP */
static int fake_modify_qp(struct ib_qp *qp, struct ib_qp_attr *attr, int mask,
			  struct ib_udata *udata)
{
	struct iw_cm_event event = {
		.event = IW_CM_EVENT_ESTABLISHED,
		.status = -ECONNABORTED,
	};
	struct fake *f = container_of(qp, struct fake, qp);

	if (!(mask & IB_QP_STATE) || attr->qp_state != IB_QPS_ERR)
		return 0;
	if (!f->n_errors++ && f->accepted)
		f->accepted->event_handler(f->accepted, &event);
	return 0;
}

static void fake_add_ref(struct ib_qp *qp)
{
	atomic_inc(&container_of(qp, struct fake, qp)->qp_refs);
}

static struct ib_qp *fake_get_qp(struct ib_device *dev, int qpn)
{
	struct ib_qp *qp = &to_fake(dev)->qp;

	fake_add_ref(qp);
	return qp;
}

static void fake_rem_ref(struct ib_qp *qp)
{
	atomic_dec(&container_of(qp, struct fake, qp)->qp_refs);
}

static struct fake *new_fake(struct kunit *test)
{
	struct fake *f = kunit_kzalloc(test, sizeof(*f), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, f);
	spin_lock_init(&f->lock);
	f->dev.dev.init_name = "fake";
	strscpy(f->dev.iw_ifname, "fake0", sizeof(f->dev.iw_ifname));
	f->dev.ops.iw_create_listen = fake_create_listen;
	f->dev.ops.iw_destroy_listen = fake_destroy_listen;
	f->dev.ops.iw_reject = fake_reject;
	f->dev.ops.iw_connect = fake_connect;
	f->dev.ops.iw_accept = fake_accept;
	f->dev.ops.modify_qp = fake_modify_qp;
	/* ib_modify_qp() reads the kind of the QP's port, which is 0 */
	f->dev.port_data = kunit_kzalloc(test, sizeof(*f->dev.port_data),
					 GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, f->dev.port_data);
	f->qp.device = &f->dev;
	f->qp.real_qp = &f->qp;
	f->qp.qp_type = IB_QPT_RC;
	f->dev.ops.iw_get_qp = fake_get_qp;
	f->dev.ops.iw_add_ref = fake_add_ref;
	f->dev.ops.iw_rem_ref = fake_rem_ref;
	return f;
}

static struct ulp *new_ulp(struct kunit *test)
{
	struct ulp *u = kunit_kzalloc(test, sizeof(*u), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, u);
	init_completion(&u->entered);
	init_completion(&u->go_on);
	return u;
}

static int ulp_handler(struct iw_cm_id *id, struct iw_cm_event *event)
{
	struct ulp *u = id->context;
	int n = atomic_read(&u->n);

	if (n < MAX_EVENTS) {
		u->seen[n] = event->event;
		u->status[n] = event->status;
		u->data[n] = (unsigned long)event->provider_data;
	}
	u->task = current;
	if (u->accepts && event->event == IW_CM_EVENT_CONNECT_REQUEST) {
		struct iw_cm_conn_param param = {};

		u->accept_rv = iw_cm_accept(id, &param);
	}
	if (u->rejects && event->event == IW_CM_EVENT_CONNECT_REQUEST)
		iw_cm_reject(id, NULL, 0);
	if (u->refuses && event->event == IW_CM_EVENT_CONNECT_REQUEST)
		iw_cm_refuse(id);
	atomic_inc(&u->n);
	complete(&u->entered);
	if (u->slow)
		wait_for_completion_timeout(&u->go_on, PATIENCE);
	u->left = true;
	return u->rv;
}

static struct iw_cm_id *new_id(struct kunit *test, struct fake *f,
			       struct ulp *u)
{
	struct iw_cm_id *id = iw_create_cm_id(&f->dev, ulp_handler, u);

	KUNIT_ASSERT_FALSE(test, IS_ERR(id));
	id->local_addr.ss_family = AF_INET;
	id->remote_addr.ss_family = AF_INET;
	return id;
}

static struct iw_cm_id *new_listener(struct kunit *test, struct fake *f,
				     struct ulp *u, int backlog)
{
	struct iw_cm_id *id = new_id(test, f, u);

	KUNIT_ASSERT_EQ(test, iw_cm_listen(id, backlog), 0);
	return id;
}

static struct iw_cm_id *new_connection(struct kunit *test, struct fake *f,
				       struct ulp *u)
{
	struct iw_cm_conn_param param = {};
	struct iw_cm_id *id = new_id(test, f, u);

	KUNIT_ASSERT_EQ(test, iw_cm_connect(id, &param), 0);
	return id;
}

static int tell(struct iw_cm_id *id, enum iw_cm_event_type type, int status)
{
	struct iw_cm_event event = { .event = type, .status = status };

	return id->event_handler(id, &event);
}

static int request(struct iw_cm_id *listener, unsigned long number)
{
	struct iw_cm_event event = {
		.event = IW_CM_EVENT_CONNECT_REQUEST,
		.provider_data = (void *)number,
		.private_data = "ULP data",
		.private_data_len = 8,
	};

	return listener->event_handler(listener, &event);
}

static bool wait_until(struct ulp *u, int n)
{
	unsigned long end = jiffies + PATIENCE;

	while (atomic_read(&u->n) < n && time_before(jiffies, end))
		wait_for_completion_timeout(&u->entered, HZ / 10);
	return atomic_read(&u->n) >= n;
}

/* ---- a listener */

/*
 * The handler is busy with the first request. As many requests as the backlog
 * are queued. The provider gets an error for each further request. No request
 * is lost: queued requests are handled in order and answered.
 */
static void requests_beyond_the_backlog_are_refused(struct kunit *test)
{
	enum { BACKLOG = 20 };
	struct fake *f = new_fake(test);
	struct ulp *u = new_ulp(test);
	struct iw_cm_id *id = new_listener(test, f, u, BACKLOG);
	int i;

	u->slow = true;
	u->rv = -ECONNREFUSED;
	KUNIT_ASSERT_EQ(test, request(id, 0), 0);
	KUNIT_ASSERT_TRUE(test, wait_until(u, 1));

	for (i = 1; i <= BACKLOG; i++)
		KUNIT_EXPECT_EQ(test, request(id, i), 0);
	for (; i < BACKLOG + 5; i++)
		KUNIT_EXPECT_EQ(test, request(id, 1000), -ENOMEM);

	u->slow = false;
	complete(&u->go_on);
	KUNIT_EXPECT_TRUE(test, wait_until(u, BACKLOG + 1));
	/* There is room again */
	KUNIT_EXPECT_EQ(test, request(id, BACKLOG + 1), 0);
	KUNIT_EXPECT_TRUE(test, wait_until(u, BACKLOG + 2));

	iw_destroy_cm_id(id);
	KUNIT_EXPECT_EQ(test, atomic_read(&u->n), BACKLOG + 2);
	KUNIT_EXPECT_EQ(test, f->n_rejected, BACKLOG + 2);
	for (i = 0; i < BACKLOG + 2; i++) {
		KUNIT_EXPECT_EQ(test, u->data[i], (unsigned long)i);
		KUNIT_EXPECT_EQ(test, f->rejected[i], (unsigned long)i);
	}
}

/* When the listener is destroyed, all waiting requests have been answered */
static void pending_requests_of_a_destroyed_listener_are_rejected(struct kunit *test)
{
	enum { WAITING = 12 };
	struct fake *f = new_fake(test);
	struct ulp *u = new_ulp(test);
	struct iw_cm_id *id = new_listener(test, f, u, 16);
	int i;

	u->slow = true;
	u->rv = -ECONNREFUSED;
	for (i = 0; i <= WAITING; i++)
		KUNIT_ASSERT_EQ(test, request(id, i), 0);
	KUNIT_ASSERT_TRUE(test, wait_until(u, 1));
	u->slow = false;
	complete(&u->go_on);
	iw_destroy_cm_id(id);

	KUNIT_EXPECT_EQ(test, f->n_rejected, WAITING + 1);
}

/*
 * Only the ULP may reject over SCTP (RFC 5043 section 6.3). The provider must
 * distinguish a rejection by the ULP from a rejection by iw_cm itself.
 */
static void provider_distinguishes_rejects_by_the_ulp_from_rejects_by_iw_cm(struct kunit *test)
{
	struct fake *f = new_fake(test);
	struct ulp *u = new_ulp(test);
	struct iw_cm_id *id = new_listener(test, f, u, 16);

	u->rejects = true;
	u->rv = -ECONNREFUSED;
	KUNIT_ASSERT_EQ(test, request(id, 1), 0);
	KUNIT_ASSERT_TRUE(test, wait_until(u, 1));
	u->rejects = false;
	KUNIT_ASSERT_EQ(test, request(id, 2), 0);
	KUNIT_ASSERT_TRUE(test, wait_until(u, 2));
	/* As rdma_accept() does if it cannot modify the QP */
	u->refuses = true;
	KUNIT_ASSERT_EQ(test, request(id, 3), 0);
	KUNIT_ASSERT_TRUE(test, wait_until(u, 3));
	u->refuses = false;
	/* The fifth request is queued until its listener is destroyed */
	u->slow = true;
	KUNIT_ASSERT_EQ(test, request(id, 4), 0);
	KUNIT_ASSERT_EQ(test, request(id, 5), 0);
	KUNIT_ASSERT_TRUE(test, wait_until(u, 4));
	u->slow = false;
	complete(&u->go_on);
	iw_destroy_cm_id(id);

	KUNIT_ASSERT_EQ(test, f->n_rejected, 5);
	KUNIT_EXPECT_TRUE(test, f->ulp_rejects[0]);
	KUNIT_EXPECT_FALSE(test, f->ulp_rejects[1]);
	KUNIT_EXPECT_FALSE(test, f->ulp_rejects[2]);
	KUNIT_EXPECT_FALSE(test, f->ulp_rejects[3]);
	KUNIT_EXPECT_FALSE(test, f->ulp_rejects[4]);
}

/*
 * A handler that accepts and then returns an error: the request has been
 * answered, so it is not rejected. The connection ends without any action of
 * the peer. The handler is not called for this end, as its context no longer
 * exists, nor for events that the provider raised before.
 */
static void check_failing_handler(struct kunit *test, bool established)
{
	struct fake *f = new_fake(test);
	struct ulp *u = new_ulp(test);
	struct iw_cm_id *id = new_listener(test, f, u, 16);

	f->establishes = established;
	u->accepts = true;
	u->slow = true;
	u->rv = -ENOMEM;
	KUNIT_ASSERT_EQ(test, request(id, 1), 0);
	KUNIT_ASSERT_TRUE(test, wait_until(u, 1));
	/* No event while the handler is busy, and none after it */
	msleep(50);
	u->slow = false;
	complete(&u->go_on);
	/* Waits for the handler, and so for the end of its cm_id */
	iw_destroy_cm_id(id);
	msleep(50);

	KUNIT_EXPECT_EQ(test, u->accept_rv, 0);
	KUNIT_EXPECT_EQ(test, f->n_accepted, 1);
	KUNIT_EXPECT_EQ(test, f->n_rejected, 0);
	KUNIT_EXPECT_EQ(test, f->n_errors, 1);
	KUNIT_EXPECT_EQ(test, atomic_read(&u->n), 1);
	KUNIT_EXPECT_EQ(test, atomic_read(&f->qp_refs), 0);
}

static void a_request_handler_that_accepts_and_fails_ends_the_connection(struct kunit *test)
{
	check_failing_handler(test, false);
}

static void a_request_handler_that_fails_gets_no_further_event(struct kunit *test)
{
	check_failing_handler(test, true);
}

/*
 * The connection is established, and ends, while the handler of its request is
 * busy. The handler is not called for these events before it has returned.
 */
static void events_of_a_new_connection_wait_for_its_request_handler(struct kunit *test)
{
	struct fake *f = new_fake(test);
	struct ulp *u = new_ulp(test);
	struct iw_cm_id *id = new_listener(test, f, u, 16);

	f->establishes = true;
	u->accepts = true;
	u->slow = true;
	KUNIT_ASSERT_EQ(test, request(id, 1), 0);
	KUNIT_ASSERT_TRUE(test, wait_until(u, 1));
	msleep(50);
	KUNIT_EXPECT_EQ(test, atomic_read(&u->n), 1);
	u->slow = false;
	complete(&u->go_on);
	KUNIT_EXPECT_TRUE(test, wait_until(u, 3));
	KUNIT_EXPECT_EQ(test, (int)u->seen[1], (int)IW_CM_EVENT_ESTABLISHED);
	KUNIT_EXPECT_EQ(test, (int)u->seen[2], (int)IW_CM_EVENT_CLOSE);
	KUNIT_EXPECT_EQ(test, atomic_read(&f->qp_refs), 0);

	iw_destroy_cm_id(f->accepted);
	iw_destroy_cm_id(id);
}

/* A cm_id that does not listen accepts no requests */
static void a_request_to_a_cm_id_that_does_not_listen_is_refused(struct kunit *test)
{
	struct fake *f = new_fake(test);
	struct iw_cm_id *id = new_id(test, f, new_ulp(test));

	KUNIT_EXPECT_EQ(test, request(id, 1), -ENOMEM);
	iw_destroy_cm_id(id);
}

/* ---- a connection */

static void events_of_a_connection_are_handled_in_order(struct kunit *test)
{
	struct fake *f = new_fake(test);
	struct ulp *u = new_ulp(test);
	struct iw_cm_id *id = new_connection(test, f, u);

	u->slow = true;
	KUNIT_EXPECT_EQ(test, tell(id, IW_CM_EVENT_CONNECT_REPLY, 0), 0);
	KUNIT_ASSERT_TRUE(test, wait_until(u, 1));
	/* All events arrive while the handler is busy */
	KUNIT_EXPECT_EQ(test, tell(id, IW_CM_EVENT_DISCONNECT, 0), 0);
	KUNIT_EXPECT_EQ(test, tell(id, IW_CM_EVENT_CLOSE, 0), 0);
	u->slow = false;
	complete(&u->go_on);
	KUNIT_EXPECT_TRUE(test, wait_until(u, 2));
	iw_destroy_cm_id(id);

	/* iw_cm does not pass DISCONNECT to the ULP */
	KUNIT_EXPECT_EQ(test, atomic_read(&u->n), 2);
	KUNIT_EXPECT_EQ(test, (int)u->seen[0], (int)IW_CM_EVENT_CONNECT_REPLY);
	KUNIT_EXPECT_EQ(test, (int)u->seen[1], (int)IW_CM_EVENT_CLOSE);
	KUNIT_EXPECT_EQ(test, atomic_read(&f->qp_refs), 0);
}

/* A second outcome from the provider does not overwrite the first */
static void a_connection_reports_only_one_connect_reply(struct kunit *test)
{
	struct fake *f = new_fake(test);
	struct ulp *u = new_ulp(test);
	struct iw_cm_id *id = new_connection(test, f, u);
	int i, rv, refused = 0;

	for (i = 0; i < 4; i++) {
		rv = tell(id, IW_CM_EVENT_CONNECT_REPLY, -ECONNREFUSED);
		KUNIT_EXPECT_TRUE(test, !rv || rv == -EALREADY);
		refused += !!rv;
	}
	KUNIT_EXPECT_TRUE(test, wait_until(u, 1));
	iw_destroy_cm_id(id);
	KUNIT_EXPECT_EQ(test, atomic_read(&u->n), 1);
	KUNIT_EXPECT_LE(test, refused, 3);
	KUNIT_EXPECT_EQ(test, atomic_read(&f->qp_refs), 0);
}

/* A ULP that connects waits for CONNECT_REPLY and for no other event */
static void a_close_before_the_reply_is_reported_as_a_reset(struct kunit *test)
{
	struct fake *f = new_fake(test);
	struct ulp *u = new_ulp(test);
	struct iw_cm_id *id = new_connection(test, f, u);

	KUNIT_EXPECT_EQ(test, tell(id, IW_CM_EVENT_CLOSE, 0), 0);
	KUNIT_ASSERT_TRUE(test, wait_until(u, 1));
	KUNIT_EXPECT_EQ(test, (int)u->seen[0], (int)IW_CM_EVENT_CONNECT_REPLY);
	KUNIT_EXPECT_EQ(test, u->status[0], -ECONNRESET);
	iw_destroy_cm_id(id);
	KUNIT_EXPECT_EQ(test, atomic_read(&u->n), 1);
	KUNIT_EXPECT_EQ(test, atomic_read(&f->qp_refs), 0);
}

/* A second connect, which fails, takes no further reference */
static void iw_cm_holds_one_qp_reference_per_connection(struct kunit *test)
{
	struct iw_cm_conn_param param = {};
	struct fake *f = new_fake(test);
	struct ulp *u = new_ulp(test);
	struct iw_cm_id *id = new_connection(test, f, u);

	KUNIT_EXPECT_EQ(test, iw_cm_connect(id, &param), -EINVAL);
	KUNIT_EXPECT_EQ(test, atomic_read(&f->qp_refs), 1);
	KUNIT_EXPECT_EQ(test, tell(id, IW_CM_EVENT_CONNECT_REPLY, -ECONNREFUSED),
			0);
	KUNIT_EXPECT_TRUE(test, wait_until(u, 1));
	iw_destroy_cm_id(id);
	KUNIT_EXPECT_EQ(test, atomic_read(&f->qp_refs), 0);
}

static void a_slow_event_handler_delays_no_other_connection(struct kunit *test)
{
	struct fake *f = new_fake(test);
	struct ulp *slow = new_ulp(test), *quick = new_ulp(test);
	struct iw_cm_id *slow_id = new_connection(test, f, slow);
	struct iw_cm_id *quick_id = new_connection(test, f, quick);

	slow->slow = true;
	KUNIT_EXPECT_EQ(test, tell(slow_id, IW_CM_EVENT_CONNECT_REPLY, -ETIMEDOUT),
			0);
	KUNIT_ASSERT_TRUE(test, wait_until(slow, 1));
	KUNIT_EXPECT_EQ(test, tell(quick_id, IW_CM_EVENT_CONNECT_REPLY, -ETIMEDOUT),
			0);
	KUNIT_EXPECT_TRUE(test, wait_until(quick, 1));
	/* A busy handler does not delay the destruction of another cm_id */
	iw_destroy_cm_id(quick_id);
	KUNIT_EXPECT_FALSE(test, slow->left);

	complete(&slow->go_on);
	iw_destroy_cm_id(slow_id);
	/* Destruction waits for the handler of the same cm_id */
	KUNIT_EXPECT_TRUE(test, slow->left);
}

/* ---- a provider that handles the events in its own task */

/* Events that iw_cm's work item was to handle before this have been handled */
static void wait_for_work_item(struct kunit *test, struct fake *f)
{
	struct ulp *u = new_ulp(test);
	struct iw_cm_id *id = new_connection(test, f, u);

	KUNIT_EXPECT_EQ(test, tell(id, IW_CM_EVENT_CONNECT_REPLY, -ETIMEDOUT), 0);
	KUNIT_EXPECT_TRUE(test, wait_until(u, 1));
	iw_destroy_cm_id(id);
}

static void held_events_are_handled_by_the_task_that_held_them(struct kunit *test)
{
	struct fake *f = new_fake(test);
	struct ulp *u = new_ulp(test);
	struct iw_cm_id *id = new_connection(test, f, u);

	iw_cm_hold_events(id);
	KUNIT_EXPECT_EQ(test, tell(id, IW_CM_EVENT_CONNECT_REPLY, 0), 0);
	KUNIT_EXPECT_EQ(test, tell(id, IW_CM_EVENT_CLOSE, 0), 0);
	wait_for_work_item(test, f);
	KUNIT_EXPECT_EQ(test, atomic_read(&u->n), 0);
	iw_cm_handle_events(id);
	KUNIT_EXPECT_EQ(test, atomic_read(&u->n), 2);
	KUNIT_EXPECT_EQ(test, (int)u->seen[0], (int)IW_CM_EVENT_CONNECT_REPLY);
	KUNIT_EXPECT_EQ(test, (int)u->seen[1], (int)IW_CM_EVENT_CLOSE);
	KUNIT_EXPECT_PTR_EQ(test, u->task, current);
	iw_destroy_cm_id(id);
}

static void events_wait_for_the_last_task_that_holds_them(struct kunit *test)
{
	struct fake *f = new_fake(test);
	struct ulp *u = new_ulp(test);
	struct iw_cm_id *id = new_connection(test, f, u);

	iw_cm_hold_events(id);
	iw_cm_hold_events(id);
	KUNIT_EXPECT_EQ(test, tell(id, IW_CM_EVENT_CONNECT_REPLY, 0), 0);
	iw_cm_handle_events(id);
	wait_for_work_item(test, f);
	KUNIT_EXPECT_EQ(test, atomic_read(&u->n), 0);
	iw_cm_handle_events(id);
	KUNIT_EXPECT_EQ(test, atomic_read(&u->n), 1);

	/* The work item of iw_cm handles events that nobody holds */
	KUNIT_EXPECT_EQ(test, tell(id, IW_CM_EVENT_CLOSE, 0), 0);
	KUNIT_EXPECT_TRUE(test, wait_until(u, 2));
	KUNIT_EXPECT_PTR_NE(test, u->task, current);
	iw_destroy_cm_id(id);
	KUNIT_EXPECT_EQ(test, atomic_read(&f->qp_refs), 0);
}

static void held_events_of_a_destroyed_cm_id_are_dropped(struct kunit *test)
{
	struct fake *f = new_fake(test);
	struct ulp *u = new_ulp(test);
	struct iw_cm_id *id = new_connection(test, f, u);

	KUNIT_EXPECT_EQ(test, tell(id, IW_CM_EVENT_CONNECT_REPLY, 0), 0);
	KUNIT_ASSERT_TRUE(test, wait_until(u, 1));
	iw_cm_hold_events(id);
	KUNIT_EXPECT_EQ(test, tell(id, IW_CM_EVENT_CLOSE, 0), 0);
	iw_destroy_cm_id(id);
	iw_cm_handle_events(id);
	KUNIT_EXPECT_EQ(test, atomic_read(&u->n), 1);
}

struct provider {
	struct work_struct work;
	struct delayed_work release;
	struct iw_cm_id *id;
	struct ulp *u;
};

static void provider_work(struct work_struct *work)
{
	iw_cm_handle_events(container_of(work, struct provider, work)->id);
}

static void release_work(struct work_struct *work)
{
	struct provider *p = container_of(work, struct provider, release.work);

	complete(&p->u->go_on);
}

static void destruction_waits_for_a_handler_in_the_providers_task(struct kunit *test)
{
	struct provider *p = kunit_kzalloc(test, sizeof(*p), GFP_KERNEL);
	struct fake *f = new_fake(test);
	struct ulp *u = new_ulp(test);

	KUNIT_ASSERT_NOT_NULL(test, p);
	INIT_WORK(&p->work, provider_work);
	INIT_DELAYED_WORK(&p->release, release_work);
	p->u = u;
	p->id = new_connection(test, f, u);
	u->slow = true;
	iw_cm_hold_events(p->id);
	KUNIT_EXPECT_EQ(test, tell(p->id, IW_CM_EVENT_CONNECT_REPLY, 0), 0);
	schedule_work(&p->work);
	KUNIT_EXPECT_TRUE(test, wait_until(u, 1));
	schedule_delayed_work(&p->release, HZ / 10);
	iw_destroy_cm_id(p->id);
	KUNIT_EXPECT_TRUE(test, u->left);
	flush_work(&p->work);
	flush_delayed_work(&p->release);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(requests_beyond_the_backlog_are_refused),
	KUNIT_CASE(pending_requests_of_a_destroyed_listener_are_rejected),
	KUNIT_CASE(provider_distinguishes_rejects_by_the_ulp_from_rejects_by_iw_cm),
	KUNIT_CASE(a_request_handler_that_accepts_and_fails_ends_the_connection),
	KUNIT_CASE(a_request_handler_that_fails_gets_no_further_event),
	KUNIT_CASE(events_of_a_new_connection_wait_for_its_request_handler),
	KUNIT_CASE(a_request_to_a_cm_id_that_does_not_listen_is_refused),
	KUNIT_CASE(events_of_a_connection_are_handled_in_order),
	KUNIT_CASE(a_connection_reports_only_one_connect_reply),
	KUNIT_CASE(a_close_before_the_reply_is_reported_as_a_reset),
	KUNIT_CASE(iw_cm_holds_one_qp_reference_per_connection),
	KUNIT_CASE(a_slow_event_handler_delays_no_other_connection),
	KUNIT_CASE(held_events_are_handled_by_the_task_that_held_them),
	KUNIT_CASE(events_wait_for_the_last_task_that_holds_them),
	KUNIT_CASE(held_events_of_a_destroyed_cm_id_are_dropped),
	KUNIT_CASE(destruction_waits_for_a_handler_in_the_providers_task),
	{}
};

static struct kunit_suite suite = {
	.name = "iw_mpa_iwcm",
	.test_cases = cases,
};

kunit_test_suite(suite);

MODULE_DESCRIPTION("KUnit tests of the events of iw_cm");
MODULE_LICENSE("GPL");
