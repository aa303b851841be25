/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A driver that only records calls: frames sent, moves of the QP, events for the
 * ULP and their number.
 */
#ifndef IW_MPA_FAKE_H
#define IW_MPA_FAKE_H

#include <kunit/test.h>
#include <linux/hex.h>
#include <linux/list.h>
#include <linux/slab.h>
#include <linux/string.h>

#include <rdma/ib_verbs.h>

#include "session.h"

#define REQ "4d504120494420526571204672616d65"
#define REP "4d504120494420526570204672616d65"

struct fake {
	struct iw_mpa_session s;
	struct kunit *test;
	struct list_head list;	/* of the test's sessions */

	u8 syn[IW_MPA_FRAME_MAX];	/* data of the SYN */
	u8 tx[IW_MPA_FRAME_MAX];
	size_t tx_len;
	int sends;

	struct iw_mpa_rdma rdma;
	int enters;
	int enter_after_sends;	/* frames sent before enter_rdma */

	enum rdma_mpa_ecode term;
	int terms;

	unsigned int deadline;

	struct iw_mpa_event ev;
	u8 pdata[IW_MPA_PDATA_MAX];
	int events;

	int send_rv;
	int enter_rv;
	int term_rv;
	int event_rv;
};

static inline struct fake *to_fake(struct iw_mpa_session *s)
{
	return container_of(s, struct fake, s);
}

static inline int fake_send(struct iw_mpa_session *s, const void *frame, size_t len)
{
	struct fake *f = to_fake(s);

	if (f->send_rv)
		return f->send_rv;
	memcpy(f->tx, frame, len);
	f->tx_len = len;
	f->sends++;
	return 0;
}

static inline int fake_enter_rdma(struct iw_mpa_session *s,
				  const struct iw_mpa_rdma *rdma)
{
	struct fake *f = to_fake(s);

	if (f->enter_rv)
		return f->enter_rv;
	f->rdma = *rdma;
	f->enter_after_sends = f->sends;
	f->enters++;
	return 0;
}

static inline int fake_terminate(struct iw_mpa_session *s,
				 const struct iw_mpa_rdma *rdma,
				 enum rdma_mpa_ecode ecode)
{
	struct fake *f = to_fake(s);

	if (f->term_rv)
		return f->term_rv;
	f->term = ecode;
	f->terms++;
	return 0;
}

static inline void fake_deadline(struct iw_mpa_session *s, unsigned int ms)
{
	to_fake(s)->deadline = ms;
}

static inline int fake_event(struct iw_mpa_session *s, const struct iw_mpa_event *ev)
{
	struct fake *f = to_fake(s);

	f->ev = *ev;
	memcpy(f->pdata, ev->pdata, ev->pdata_len);
	f->events++;
	return f->event_rv;
}

static const struct iw_mpa_ops fake_ops = {
	.send		= fake_send,
	.enter_rdma	= fake_enter_rdma,
	.terminate	= fake_terminate,
	.deadline	= fake_deadline,
	.event		= fake_event,
};

static const struct iw_mpa_caps fake_caps = {
	.max_ird	= 128,
	.max_ord	= 128,
	.rtr_send	= RDMA_MPA_RTR_WRITE | RDMA_MPA_RTR_READ,
	.rtr_recv	= RDMA_MPA_RTR_WRITE | RDMA_MPA_RTR_READ,
};

static const struct iw_mpa_ulp ulp_8_8 = { .ird = 8, .ord = 8 };

/* An endpoint, whose session is closed when the test is over */
static inline struct fake *new_endpoint(struct kunit *test)
{
	struct fake *f = kunit_kzalloc(test, sizeof(*f), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, f);
	f->test = test;
	list_add(&f->list, test->priv);
	return f;
}

static inline int open_endpoints(struct kunit *test)
{
	struct list_head *endpoints = kunit_kzalloc(test, sizeof(*endpoints),
						    GFP_KERNEL);

	if (!endpoints)
		return -ENOMEM;
	INIT_LIST_HEAD(endpoints);
	test->priv = endpoints;
	return 0;
}

static inline void close_endpoints(struct kunit *test)
{
	struct list_head *endpoints = test->priv;
	struct fake *f;

	list_for_each_entry(f, endpoints, list)
		iw_mpa_session_close(&f->s);
}

static inline struct fake *new_device(struct kunit *test,
				      const struct iw_mpa_caps *caps,
				      const struct iw_mpa_policy *policy)
{
	struct fake *f = new_endpoint(test);
	struct iw_mpa_config config;

	KUNIT_ASSERT_EQ(test, 0, iw_mpa_config_init(&config, &fake_ops, caps,
						    policy));
	/* The session does not depend on the memory's former contents */
	memset(&f->s, 0xa5, sizeof(f->s));
	KUNIT_ASSERT_EQ(test, 0, iw_mpa_session_inherit(&f->s, &config));
	KUNIT_ASSERT_EQ(test, IW_MPA_IDLE, f->s.state);
	return f;
}

static inline struct fake *new_fake(struct kunit *test,
				    const struct iw_mpa_policy *policy)
{
	return new_device(test, &fake_caps, policy);
}

static inline size_t unhex(struct fake *f, const char *hex, u8 *bin)
{
	size_t len = strlen(hex) / 2;

	KUNIT_ASSERT_EQ(f->test, 0, hex2bin(bin, hex, len));
	return len;
}

/* Up to @len bytes arrive, as many as are awaited. Returns their number. */
static inline size_t receive(struct fake *f, const u8 *bin, size_t len,
			     enum iw_mpa_next *next)
{
	size_t n;
	void *room = iw_mpa_rx_room(&f->s, &n);

	n = min(n, len);
	if (room)
		memcpy(room, bin, n);
	*next = iw_mpa_rx_done(&f->s, room ? n : len);
	return n;
}

/* Bytes arrive, @chunk at a time; if @more, further bytes follow the frame */
static inline enum iw_mpa_next feed(struct fake *f, const char *hex, size_t chunk,
				    bool more)
{
	enum iw_mpa_next next = IW_MPA_NEXT_WAIT;
	u8 bin[IW_MPA_FRAME_MAX];
	size_t len = unhex(f, hex, bin), off = 0;

	while (off < len) {
		off += receive(f, bin + off, min(chunk, len - off), &next);
		if (next == IW_MPA_NEXT_FRAME)
			return iw_mpa_process(&f->s, more || off < len);
		if (next != IW_MPA_NEXT_WAIT)
			return next;
	}
	return next;
}

static inline void expect_sent(struct fake *f, const char *hex)
{
	u8 bin[IW_MPA_FRAME_MAX];
	size_t len = unhex(f, hex, bin);

	KUNIT_ASSERT_EQ(f->test, len, f->tx_len);
	KUNIT_EXPECT_EQ(f->test, 0, memcmp(bin, f->tx, len));
}

static inline void expect_over(struct fake *f, enum iw_mpa_next next, int events)
{
	KUNIT_EXPECT_EQ(f->test, IW_MPA_NEXT_CLOSE, next);
	KUNIT_EXPECT_EQ(f->test, IW_MPA_CLOSED, f->s.state);
	KUNIT_EXPECT_EQ(f->test, 0u, f->deadline);
	KUNIT_EXPECT_EQ(f->test, events, f->events);
	KUNIT_EXPECT_NULL(f->test, f->s.setup);
}

static inline struct fake *connecting(struct kunit *test,
				      const struct iw_mpa_policy *policy)
{
	struct fake *f = new_fake(test, policy);

	KUNIT_ASSERT_EQ(test, 0, iw_mpa_connect(&f->s, &ulp_8_8));
	KUNIT_ASSERT_EQ(test, IW_MPA_CONNECTING, f->s.state);
	return f;
}

static inline struct fake *initiator(struct kunit *test)
{
	struct fake *f = connecting(test, &iw_mpa_default_policy);

	KUNIT_ASSERT_EQ(test, 0, f->sends);
	KUNIT_ASSERT_EQ(test, IW_MPA_NEXT_WAIT, iw_mpa_connected(&f->s));
	return f;
}

static inline struct fake *responder(struct kunit *test)
{
	struct fake *f = new_fake(test, &iw_mpa_default_policy);

	iw_mpa_respond(&f->s);
	return f;
}

/* ---- devices */

/* A device with one port; settings not in @initial have built-in values */
static inline struct iw_mpa_device *new_iw_device(struct kunit *test,
						  const struct iw_mpa_caps *caps,
						  const struct iw_mpa_choice *initial,
						  unsigned int num_initial)
{
	struct ib_device *ibdev = kunit_kzalloc(test, sizeof(*ibdev),
						GFP_KERNEL);
	const struct iw_mpa_driver driver = {
		.ops = &fake_ops,
		.caps = *caps,
		.initial = initial,
		.num_initial = num_initial,
	};
	struct iw_mpa_device *dev;

	KUNIT_ASSERT_NOT_NULL(test, ibdev);
	ibdev->phys_port_cnt = 1;
	ibdev->dev.init_name = "fake";
	dev = iw_mpa_register_device(ibdev, &driver);
	KUNIT_ASSERT_FALSE(test, IS_ERR(dev));
	return dev;
}

static inline struct fake *open_with(struct kunit *test, struct iw_mpa_device *dev,
				     const struct iw_mpa_layer *options)
{
	struct fake *f = new_endpoint(test);

	KUNIT_ASSERT_EQ(test, 0, iw_mpa_session_open(&f->s, dev, 1, options));
	return f;
}

static inline struct fake *open_on(struct kunit *test, struct iw_mpa_device *dev)
{
	return open_with(test, dev, NULL);
}

/* ---- counters */

static inline struct rdma_hw_stats *read_counters(struct kunit *test,
						  struct iw_mpa_device *dev)
{
	struct rdma_hw_stats *stats = iw_mpa_alloc_port_stats();

	KUNIT_ASSERT_NOT_NULL(test, stats);
	KUNIT_EXPECT_EQ(test, stats->num_counters,
			iw_mpa_get_port_stats(dev, 1, stats));
	return stats;
}

static inline u64 counted(struct kunit *test, struct iw_mpa_device *dev,
			  const char *name)
{
	struct rdma_hw_stats *stats = read_counters(test, dev);
	u64 value = U64_MAX;
	int i;

	for (i = 0; i < stats->num_counters; i++)
		if (!strcmp(stats->descs[i].name, name))
			value = stats->value[i];
	rdma_free_hw_stats_struct(stats);
	return value;
}

#endif /* IW_MPA_FAKE_H */
