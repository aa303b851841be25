// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* A driver's side of iw_mpa, explained in iw_mpa_driver.rst */
#include <linux/container_of.h>
#include <linux/err.h>
#include <linux/minmax.h>
#include <rdma/iw_mpa.h>

struct foo_ep {
	struct iw_mpa_session mpa; /* under the endpoint's lock */
	struct iw_mpa_config *config; /* a listener's */
};

/* Of the driver. A read returns 0 at the end of the stream. */
int foo_read(struct foo_ep *ep, void *buf, size_t len);
bool foo_has_more(struct foo_ep *ep);
void foo_close(struct foo_ep *ep);
void foo_reconnect(struct foo_ep *ep);
int foo_send(struct iw_mpa_session *s, const void *frame, size_t len);
int foo_enter_rdma(struct iw_mpa_session *s, const struct iw_mpa_rdma *rdma);
int foo_terminate(struct iw_mpa_session *s, const struct iw_mpa_rdma *rdma,
		  enum rdma_mpa_ecode ecode);
void foo_deadline(struct iw_mpa_session *s, unsigned int ms);
int foo_event(struct iw_mpa_session *s, const struct iw_mpa_event *ev);

static const struct iw_mpa_ops foo_mpa_ops = {
	.send		= foo_send,
	.enter_rdma	= foo_enter_rdma,
	.terminate	= foo_terminate,
	.deadline	= foo_deadline,
	.event		= foo_event,
};

struct iw_mpa_device *foo_register_mpa(struct ib_device *ibdev);
struct iw_mpa_device *foo_register_mpa(struct ib_device *ibdev)
{
	const struct iw_mpa_driver driver = {
		.ops = &foo_mpa_ops,
		.caps = {
			.llp = RDMA_MPA_LLP_TCP,
			.max_ird = 128,
			.max_ord = 128,
			.rtr_send = IW_MPA_RTR_ALL,
			.rtr_recv = IW_MPA_RTR_ALL,
		},
	};

	return iw_mpa_register_device(ibdev, &driver);
}

static void foo_do_next(struct foo_ep *ep, enum iw_mpa_next next)
{
	if (next == IW_MPA_NEXT_CLOSE)
		foo_close(ep);
	else if (next == IW_MPA_NEXT_RECONNECT)
		foo_reconnect(ep);
}

/* Bytes have come, and the QP does not read them yet */
void foo_receive(struct foo_ep *ep);
void foo_receive(struct foo_ep *ep)
{
	enum iw_mpa_next next = IW_MPA_NEXT_WAIT;
	size_t len;
	void *room;
	int n;

	while (next == IW_MPA_NEXT_WAIT &&
	       (room = iw_mpa_rx_room(&ep->mpa, &len))) {
		n = foo_read(ep, room, len);
		if (n == -EAGAIN)
			return;
		if (n <= 0)
			next = iw_mpa_peer_gone(&ep->mpa, n);
		else
			next = iw_mpa_rx_done(&ep->mpa, n);
		if (next == IW_MPA_NEXT_FRAME)
			next = iw_mpa_process(&ep->mpa, foo_has_more(ep));
	}
	foo_do_next(ep, next);
}
