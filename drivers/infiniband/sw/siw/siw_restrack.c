// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The counters of a port, and resource tracking of QPs and connections.
 */
#include <net/netlink.h>

#include <rdma/iw_cm.h>
#include <rdma/iw_mpa.h>
#include <rdma/rdma_cm.h>
#include <rdma/rdma_netlink.h>
#include <rdma/restrack.h>

#include "siw.h"
#include "siw_cm.h"
#include "siw_restrack.h"

/*
 * The endpoint of a QP, with a reference, or NULL. Does not wait for the lock:
 * while a task waits, siw_post_send() cannot acquire the lock, and leaves its
 * WR to a writer.
 */
static struct siw_cep *siw_qp_cep(struct siw_qp *qp)
{
	struct siw_cep *cep;

	if (!down_read_trylock(&qp->state_lock))
		return NULL;
	cep = qp->cep;
	if (cep)
		siw_cep_get(cep);
	up_read(&qp->state_lock);
	return cep;
}

static int siw_nest_res(struct sk_buff *msg, const struct siw_cep *cep)
{
	struct nlattr *nest = nla_nest_start(msg, RDMA_NLDEV_ATTR_DRIVER);
	int rv;

	if (!nest)
		return -EMSGSIZE;
	rv = iw_mpa_fill_res(msg, cep->sdev->mpa, &cep->mpa);
	if (rv)
		nla_nest_cancel(msg, nest);
	else
		nla_nest_end(msg, nest);
	return rv;
}

/*
 * rdma_cm makes its object, whose first member is the rdma_cm_id, the context
 * of the iw_cm_id. The endpoint is in use and keeps its iw_cm_id.
 */
static bool siw_cep_is_of(const struct siw_cep *cep,
			  const struct rdma_cm_id *id)
{
	return !id || (cep->cm_id && cep->cm_id->context == id);
}

/* Puts the caller's reference on @cep. @id is NULL if @cep is that of a QP. */
static int siw_fill_res(struct sk_buff *msg, struct siw_cep *cep,
			const struct rdma_cm_id *id)
{
	int rv = 0;

	if (!cep)
		return 0;
	/* The endpoint may be busy for long: do not wait, report nothing */
	if (siw_cep_try_inuse(cep)) {
		if (siw_cep_is_of(cep, id))
			rv = siw_nest_res(msg, cep);
		siw_cep_set_free(cep);
	}
	siw_cep_put(cep);
	return rv;
}

/**
 * siw_fill_res_qp - put a QP's negotiated values into a message
 * @msg: the message
 * @base_qp: the QP
 *
 * Return: 0 or a negative errno
 */
int siw_fill_res_qp(struct sk_buff *msg, struct ib_qp *base_qp)
{
	return siw_fill_res(msg, siw_qp_cep(to_siw_qp(base_qp)), NULL);
}

/**
 * siw_fill_res_cm_id - put a connection's negotiated values into a message
 * @msg: the message
 * @id: the connection
 *
 * The iw_cm_id of @id may have been freed and its memory reused for another
 * connection. Its address is only used to find an endpoint. The endpoint's own
 * iw_cm_id shows whether it belongs to @id.
 *
 * Return: 0 or a negative errno
 */
int siw_fill_res_cm_id(struct sk_buff *msg, struct rdma_cm_id *id)
{
	const struct iw_cm_id *iw_id = rdma_iw_cm_id(id);

	if (!iw_id)
		return 0;
	return siw_fill_res(msg, siw_cep_find(to_siw_dev(id->device), iw_id),
			    id);
}

/**
 * siw_alloc_stats - allocate a port's counters
 * @base_dev: the device
 * @port: the port
 *
 * Return: the statistics or NULL
 */
struct rdma_hw_stats *siw_alloc_stats(struct ib_device *base_dev, u32 port)
{
	return iw_mpa_alloc_port_stats();
}

/**
 * siw_get_stats - read a port's counters
 * @base_dev: the device
 * @stats: filled
 * @port: the port
 * @index: ignored; all counters are filled
 *
 * Return: number of counters or a negative errno
 */
int siw_get_stats(struct ib_device *base_dev, struct rdma_hw_stats *stats,
		  u32 port, int index)
{
	return iw_mpa_get_port_stats(to_siw_dev(base_dev)->mpa, port, stats);
}
