// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Error messages of a QP, which it sends and receives if its program wants so. See
 * NOTICE and dg_error.h.
 *
 * Receiving is in softirq and leaves what is to be sent to a work item. Some are
 * left out if that is late: an error message is a hint, and nobody relies on it.
 */
#include <linux/cred.h>
#include <linux/fs.h>
#include <linux/random.h>
#include <linux/uio.h>

#include "dg_device.h"
#include "dg_error.h"

/* The most error messages that wait to be sent */
#define DG_REPORTS	8

/**
 * struct dg_report - an error message that waits
 * @to: where it goes
 * @port: UDP port there
 * @octets: the message
 */
struct dg_report {
	struct dg_address to;
	u16 port;
	u8 octets[DG_REFUSAL_LEN];
};

/**
 * struct dg_reports - error messages that a QP sends; the QP's rq_lock protects it
 * @qp: the QP
 * @work: sends them
 * @limit: when sources may have one
 * @msn: of the last one
 * @waiting: used entries of @list
 * @list: those that wait
 */
struct dg_reports {
	struct dg_qp *qp;
	struct work_struct work;
	struct dg_limit limit;
	u32 msn;
	u32 waiting;
	struct dg_report list[DG_REPORTS];
};

static bool dg_take_report(struct dg_qp *qp, struct dg_report *report)
{
	struct dg_reports *reports = qp->reports;
	bool found;

	spin_lock_bh(&qp->rq_lock);
	found = qp->state == IB_QPS_RTS && reports->waiting;
	if (found)
		*report = reports->list[--reports->waiting];
	spin_unlock_bh(&qp->rq_lock);
	return found;
}

static void dg_send_report(struct dg_qp *qp, struct dg_report *report)
{
	struct kvec vec = {
		.iov_base = report->octets,
		.iov_len = sizeof(report->octets),
	};
	struct iov_iter iter;

	iov_iter_kvec(&iter, ITER_SOURCE, &vec, 1, vec.iov_len);
	if (!dg_is_corked(qp) &&
	    !dg_sendmsg(qp, &report->to, report->port, 0, &iter))
		dg_count(qp, DG_ERRORS_SENT);
}

static void dg_report_work(struct work_struct *work)
{
	struct dg_reports *reports = container_of(work, struct dg_reports, work);
	struct dg_qp *qp = reports->qp;
	struct dg_report report;
	const struct cred *own;

	own = override_creds(qp->socket->file->f_cred);
	/* The QP that is modified to another state meanwhile sends nothing behind it */
	mutex_lock(&qp->sq_mutex);
	while (dg_take_report(qp, &report))
		dg_send_report(qp, &report);
	mutex_unlock(&qp->sq_mutex);
	revert_creds(own);
}

/**
 * dg_report_create - allocate memory for error messages
 * @qp: the QP
 * @flags: SIW_DG_SEND_ERRORS and SIW_DG_RECEIVE_ERRORS
 *
 * Return: 0, or -ENOMEM; then, too, dg_report_destroy() frees what there is
 */
int dg_report_create(struct dg_qp *qp, u32 flags)
{
	if (flags & SIW_DG_RECEIVE_ERRORS) {
		qp->writes = kzalloc(sizeof(*qp->writes), GFP_KERNEL_ACCOUNT);
		if (!qp->writes)
			return -ENOMEM;
	}
	if (flags & SIW_DG_SEND_ERRORS) {
		qp->reports = kzalloc(sizeof(*qp->reports), GFP_KERNEL_ACCOUNT);
		if (!qp->reports)
			return -ENOMEM;
		qp->reports->qp = qp;
		qp->reports->limit.seed = get_random_u32();
		INIT_WORK(&qp->reports->work, dg_report_work);
	}
	return 0;
}

/**
 * dg_report_stop - wait for the work item, which nothing queues any more
 * @qp: the QP
 */
void dg_report_stop(struct dg_qp *qp)
{
	if (qp->reports)
		cancel_work_sync(&qp->reports->work);
}

void dg_report_destroy(struct dg_qp *qp)
{
	kfree(qp->reports);
	kfree(qp->writes);
}

/**
 * dg_report_set_state - forget what a QP does not need in its new state
 * @qp: the QP; the caller holds rq_lock
 * @state: the new state
 *
 * Only RTS sends error messages. The work item leaves those that wait when the
 * QP leaves RTS, and RTS does not queue it again.
 */
void dg_report_set_state(struct dg_qp *qp, enum ib_qp_state state)
{
	if (qp->reports && state != IB_QPS_RTS)
		qp->reports->waiting = 0;
	if (qp->writes && (state == IB_QPS_RESET || state == IB_QPS_ERR))
		memset(qp->writes, 0, sizeof(*qp->writes));
}

/**
 * dg_report_may - may this source have an error message now?
 * @qp: a QP with reports; the caller holds rq_lock
 * @source: the source
 * @now: the time in ns
 *
 * Return: true if so; a second passes until its next one
 */
bool dg_report_may(struct dg_qp *qp, const struct dg_source *source, u64 now)
{
	return qp->reports->waiting < DG_REPORTS &&
	       dg_limit_pass(&qp->reports->limit, source, now);
}

/**
 * dg_report_add - send an error message
 * @qp: a QP whose dg_report_may() has been true; the caller holds rq_lock
 * @to: where to
 * @port: UDP port there
 * @why: the reason
 * @header: the refused datagram's first %DG_WRITE_HDR bytes
 * @len: its length
 */
void dg_report_add(struct dg_qp *qp, const struct dg_address *to, u16 port,
		   enum dg_refusal why, const void *header, u32 len)
{
	struct dg_reports *reports = qp->reports;
	struct dg_report *report = &reports->list[reports->waiting];

	if (dg_build_refusal(++reports->msn, why, header, len,
			     report->octets) < 0)
		return;
	report->to = *to;
	report->port = port;
	reports->waiting++;
	queue_work(dg_tx_wq, &reports->work);
}

/**
 * dg_report_expect - remember a Write-Record for error messages about it
 * @qp: the QP
 * @to: where it goes
 * @port: UDP port there
 * @write: the message, but for its target
 */
void dg_report_expect(struct dg_qp *qp, const struct dg_address *to, u16 port,
		      struct dg_write *write)
{
	if (!qp->writes)
		return;
	write->target = (struct dg_source) { .port = port };
	memcpy(write->target.addr, &to->target, sizeof(write->target.addr));
	spin_lock_bh(&qp->rq_lock);
	dg_writes_add(qp->writes, write);
	spin_unlock_bh(&qp->rq_lock);
}
