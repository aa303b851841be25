// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Provider for siw_dg devices: UD queue pairs over UDP. See NOTICE.
 *
 * Requests and completions are in memory that the module shares. The indices of
 * a ring order all accesses; the memory is cached, and no device reads it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "provider.h"
#include "siwdg.h"

static_assert(SIWDG_FRAGMENT == SIW_DG_FRAGMENT, "flag");
static_assert(SIWDG_SEND_ERRORS == SIW_DG_SEND_ERRORS, "flag");
static_assert(SIWDG_RECEIVE_ERRORS == SIW_DG_RECEIVE_ERRORS, "flag");

/* ---- rings */

int siwdg_map(struct ibv_context *context, struct siwdg_queue *queue,
	      uint64_t key, uint32_t size, size_t entry_size)
{
	void *ring;

	queue->length = sizeof(struct siw_dg_ring) + size * entry_size;
	ring = mmap(NULL, queue->length, PROT_READ | PROT_WRITE, MAP_SHARED,
		    context->cmd_fd, key);
	if (ring == MAP_FAILED)
		return errno;
	queue->ring = ring;
	queue->size = size;
	return 0;
}

void siwdg_unmap(struct siwdg_queue *queue)
{
	if (queue->ring)
		munmap(queue->ring, queue->length);
}

/* The entry at @index. @entry_size is that of siwdg_map(). */
static void *siwdg_entry(const struct siwdg_queue *queue, uint32_t index,
			 size_t entry_size)
{
	return (char *)(queue->ring + 1) +
	       (index & (queue->size - 1)) * entry_size;
}

static bool siwdg_is_full(const struct siwdg_queue *queue)
{
	/* Pairs with the module's release after it read an entry */
	return queue->next - __atomic_load_n(&queue->ring->consumer,
					     __ATOMIC_ACQUIRE) >= queue->size;
}

/* Pairs with the module's acquire before it reads an entry */
static void siwdg_publish(const struct siwdg_queue *queue)
{
	__atomic_store_n(&queue->ring->producer, queue->next, __ATOMIC_RELEASE);
}

/* ---- device, port, protection domains, memory regions */

static int siwdg_query_device(struct ibv_context *context,
			      const struct ibv_query_device_ex_input *input,
			      struct ibv_device_attr_ex *attr, size_t attr_size)
{
	/* There is no firmware, so its version stays empty */
	return ibv_cmd_query_device_any(context, input, attr, attr_size, NULL,
					NULL);
}

static int siwdg_query_port(struct ibv_context *context, uint8_t port,
			    struct ibv_port_attr *attr)
{
	struct ibv_query_port cmd = {};

	return ibv_cmd_query_port(context, port, attr, &cmd, sizeof(cmd));
}

static struct ibv_pd *siwdg_alloc_pd(struct ibv_context *context)
{
	struct ib_uverbs_alloc_pd_resp resp = {};
	struct ibv_alloc_pd cmd = {};
	struct ibv_pd *pd = calloc(1, sizeof(*pd));
	int ret;

	if (!pd)
		return NULL;
	ret = ibv_cmd_alloc_pd(context, pd, &cmd, sizeof(cmd), &resp,
			       sizeof(resp));
	if (ret) {
		free(pd);
		errno = ret;
		return NULL;
	}
	return pd;
}

static int siwdg_dealloc_pd(struct ibv_pd *pd)
{
	int ret = ibv_cmd_dealloc_pd(pd);

	if (!ret)
		free(pd);
	return ret;
}

static struct ibv_mr *siwdg_reg_mr(struct ibv_pd *pd, void *addr, size_t length,
				   uint64_t hca_va, int access)
{
	struct ib_uverbs_reg_mr_resp resp = {};
	struct ibv_reg_mr cmd = {};
	struct verbs_mr *mr = calloc(1, sizeof(*mr));
	int ret;

	if (!mr)
		return NULL;
	ret = ibv_cmd_reg_mr(pd, addr, length, hca_va, access, mr, &cmd,
			     sizeof(cmd), &resp, sizeof(resp));
	if (ret) {
		free(mr);
		errno = ret;
		return NULL;
	}
	return &mr->ibv_mr;
}

static int siwdg_dereg_mr(struct verbs_mr *mr)
{
	int ret = ibv_cmd_dereg_mr(mr);

	if (!ret)
		free(mr);
	return ret;
}

/* ---- address handles */

static struct ibv_ah *siwdg_create_ah(struct ibv_pd *pd,
				      struct ibv_ah_attr *attr)
{
	struct siwdg_create_ah_resp resp = {};
	struct siwdg_ah *ah = calloc(1, sizeof(*ah));
	int ret;

	if (!ah)
		return NULL;
	ret = ibv_cmd_create_ah(pd, &ah->base, attr, &resp.ibv_resp,
				sizeof(resp));
	if (ret) {
		free(ah);
		errno = ret;
		return NULL;
	}
	ah->number = resp.drv.ah;
	return &ah->base;
}

static int siwdg_destroy_ah(struct ibv_ah *base)
{
	int ret = ibv_cmd_destroy_ah(base);

	if (!ret)
		free(to_siwdg_ah(base));
	return ret;
}

/* ---- completion queues */

static struct ibv_cq *siwdg_create_cq(struct ibv_context *context, int cqe,
				      struct ibv_comp_channel *channel,
				      int comp_vector)
{
	struct siwdg_create_cq_resp resp = {};
	struct ibv_create_cq cmd = {};
	struct siwdg_cq *cq = calloc(1, sizeof(*cq));
	int ret;

	if (!cq)
		return NULL;
	ret = ibv_cmd_create_cq(context, cqe, channel, comp_vector, &cq->base,
				&cmd, sizeof(cmd), &resp.ibv_resp,
				sizeof(resp));
	if (ret)
		goto free;
	ret = siwdg_map(context, &cq->queue, resp.drv.key, resp.drv.size,
			sizeof(struct siw_dg_cqe));
	if (ret)
		goto destroy;
	pthread_spin_init(&cq->lock, PTHREAD_PROCESS_PRIVATE);
	return &cq->base;

destroy:
	ibv_cmd_destroy_cq(&cq->base);
free:
	free(cq);
	errno = ret;
	return NULL;
}

static int siwdg_destroy_cq(struct ibv_cq *base)
{
	struct siwdg_cq *cq = to_siwdg_cq(base);
	int ret = ibv_cmd_destroy_cq(base);

	if (ret)
		return ret;
	siwdg_unmap(&cq->queue);
	pthread_spin_destroy(&cq->lock);
	free(cq);
	return 0;
}

static void siwdg_read_cqe(const struct siw_dg_cqe *cqe, struct ibv_wc *wc)
{
	memset(wc, 0, sizeof(*wc));
	wc->wr_id = cqe->wr_id;
	wc->status = cqe->status;
	wc->byte_len = cqe->byte_len;
	wc->qp_num = cqe->qp_num;
	wc->src_qp = cqe->src_qp;
	switch (cqe->opcode) {
	case SIW_DG_WC_SEND:
		wc->opcode = IBV_WC_SEND;
		break;
	case SIW_DG_WC_RECV:
		wc->opcode = IBV_WC_RECV;
		wc->wc_flags = IBV_WC_GRH;
		break;
	case SIW_DG_WC_WRITE_RECORD:
		wc->opcode = IBV_WC_RDMA_WRITE;
		break;
	case SIW_DG_WC_RECORD:
	case SIW_DG_WC_PIECE:
		wc->opcode = IBV_WC_DRIVER1;
		wc->invalidated_rkey = cqe->zone;
		break;
	case SIW_DG_WC_ERROR:
		wc->opcode = IBV_WC_DRIVER2;
		wc->invalidated_rkey = cqe->zone;
		break;
	default:
		/* Of a newer module: it must not pass for a Send */
		wc->status = IBV_WC_GENERAL_ERR;
		break;
	}
}

static void siwdg_read_record(const struct siw_dg_cqe *cqe, void *to,
			      size_t size)
{
	struct siwdg_wc wc = {
		.msn = cqe->msn,
		.flags = cqe->opcode == SIW_DG_WC_RECORD ? SIWDG_END : 0,
		.message = cqe->wr_id - cqe->mo,
		.message_length = cqe->ml,
		.bytes = cqe->bytes,
	};

	/* Of a module whose messages have one datagram: it leaves these members 0 */
	if (!cqe->ml && cqe->opcode == SIW_DG_WC_RECORD) {
		wc.message_length = cqe->byte_len;
		wc.bytes = cqe->byte_len;
	}
	siwdg_read_cqe(cqe, &wc.wc);
	memcpy(&wc.source, cqe->source, sizeof(wc.source));
	/* The program may be older than this library, or newer */
	if (size > sizeof(wc))
		memset((char *)to + sizeof(wc), 0, size - sizeof(wc));
	memcpy(to, &wc, size < sizeof(wc) ? size : sizeof(wc));
}

static void siwdg_read_plain(const struct siw_dg_cqe *cqe, void *to,
			     size_t size)
{
	siwdg_read_cqe(cqe, to);
}

/* Opcode of a completion that siwdg_fold() has taken; the module does not read it */
#define SIWDG_WC_TAKEN	UINT32_MAX

/* Entries of @wc have @size bytes, which @read fills */
static int siwdg_poll_with(struct ibv_cq *base, int num_entries, void *wc,
			   size_t size,
			   void (*read)(const struct siw_dg_cqe *cqe, void *to,
					size_t size))
{
	struct siwdg_cq *cq = to_siwdg_cq(base);
	struct siwdg_queue *queue = &cq->queue;
	const struct siw_dg_cqe *cqe;
	uint32_t producer, before;
	int found = 0;

	pthread_spin_lock(&cq->lock);
	/* Pairs with the module's release after it wrote a completion */
	producer = __atomic_load_n(&queue->ring->producer, __ATOMIC_ACQUIRE);
	before = queue->next;
	while (found < num_entries && queue->next != producer) {
		cqe = siwdg_entry(queue, queue->next++, sizeof(*cqe));
		if (cqe->opcode != SIWDG_WC_TAKEN)
			read(cqe, (char *)wc + size * found++, size);
	}
	/* Pairs with the module's acquire before it writes there anew */
	if (queue->next != before)
		__atomic_store_n(&queue->ring->consumer, queue->next,
				 __ATOMIC_RELEASE);
	pthread_spin_unlock(&cq->lock);
	return found;
}

static int siwdg_poll_cq(struct ibv_cq *base, int num_entries,
			 struct ibv_wc *wc)
{
	return siwdg_poll_with(base, num_entries, wc, sizeof(*wc),
			       siwdg_read_plain);
}

/* The first version of struct siwdg_wc, whose padding depends on the machine */
struct siwdg_first_wc {
	struct ibv_wc wc;
	struct in6_addr source;
	uint32_t msn;
};

#define SIWDG_WC_SIZE	sizeof(struct siwdg_first_wc)

int siwdg_poll_sized(struct ibv_cq *base, int num_entries, struct siwdg_wc *wc,
		     size_t size)
{
	if (!siwdg_is_ours(base->context) || size < SIWDG_WC_SIZE)
		return -1;
	return siwdg_poll_with(base, num_entries, wc, size, siwdg_read_record);
}

/* For programs that were compiled with the first version */
#undef siwdg_poll
int siwdg_poll(struct ibv_cq *base, int num_entries, struct siwdg_wc *wc);

int siwdg_poll(struct ibv_cq *base, int num_entries, struct siwdg_wc *wc)
{
	return siwdg_poll_sized(base, num_entries, wc, SIWDG_WC_SIZE);
}

static bool siwdg_is_record(const struct siw_dg_cqe *cqe, uint32_t qp_num,
			    uint32_t zone)
{
	return (cqe->opcode == SIW_DG_WC_RECORD ||
		cqe->opcode == SIW_DG_WC_PIECE) &&
	       cqe->qp_num == qp_num && cqe->zone == zone;
}

/* Frees the taken entries before which no other waits */
static void siwdg_pass_taken(struct siwdg_queue *queue, uint32_t producer)
{
	const struct siw_dg_cqe *cqe;

	for (; queue->next != producer; queue->next++) {
		cqe = siwdg_entry(queue, queue->next, sizeof(*cqe));
		if (cqe->opcode != SIWDG_WC_TAKEN)
			break;
	}
	/* Pairs with the module's acquire before it writes there anew */
	__atomic_store_n(&queue->ring->consumer, queue->next, __ATOMIC_RELEASE);
}

int siwdg_fold_cq(struct ibv_cq *base, uint32_t qp_num, uint32_t zone,
		  int (*add)(void *map, uint64_t offset, uint64_t length),
		  void *map)
{
	struct siwdg_cq *cq = to_siwdg_cq(base);
	struct siwdg_queue *queue = &cq->queue;
	struct siw_dg_cqe *cqe;
	uint32_t producer, i;
	int taken = 0;

	pthread_spin_lock(&cq->lock);
	/* Pairs with the module's release after it wrote a completion */
	producer = __atomic_load_n(&queue->ring->producer, __ATOMIC_ACQUIRE);
	for (i = queue->next; i != producer; i++) {
		cqe = siwdg_entry(queue, i, sizeof(*cqe));
		if (!siwdg_is_record(cqe, qp_num, zone))
			continue;
		if (add(map, cqe->wr_id, cqe->byte_len))
			break;
		cqe->opcode = SIWDG_WC_TAKEN;
		taken++;
	}
	siwdg_pass_taken(queue, producer);
	pthread_spin_unlock(&cq->lock);
	return taken;
}

static int siwdg_req_notify_cq(struct ibv_cq *base, int solicited_only)
{
	struct siw_dg_ring *ring = to_siwdg_cq(base)->queue.ring;

	/* A request for each completion outlasts one for solicited ones */
	__atomic_fetch_or(&ring->armed, solicited_only ? SIW_DG_ARM_SOLICITED :
							 SIW_DG_ARM_NEXT,
			  __ATOMIC_SEQ_CST);
	/* The program polls once more, which must not begin before this */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return 0;
}

/* ---- queue pairs */

static int siwdg_map_qp(struct ibv_context *context, struct siwdg_qp *qp,
			const struct siw_dg_create_qp_resp *resp)
{
	int ret = siwdg_map(context, &qp->sq, resp->sq_key, resp->sq_size,
			    sizeof(struct siw_dg_sqe));

	if (ret || !resp->rq_size)
		return ret;
	return siwdg_map(context, &qp->rq, resp->rq_key, resp->rq_size,
			 sizeof(struct siw_dg_rqe));
}

static void siwdg_free_qp(struct siwdg_qp *qp)
{
	siwdg_unmap(&qp->sq);
	siwdg_unmap(&qp->rq);
	free(qp);
}

static struct ibv_qp *siwdg_make_qp(struct ibv_pd *pd,
				    struct ibv_qp_init_attr *attr,
				    const struct siw_dg_create_qp_req *req)
{
	struct siwdg_create_qp cmd = { .drv = *req };
	struct siwdg_create_qp_resp resp = {};
	struct siwdg_qp *qp;
	int ret;

	if (attr->qp_type != IBV_QPT_UD || attr->srq) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	qp = calloc(1, sizeof(*qp));
	if (!qp)
		return NULL;
	ret = ibv_cmd_create_qp(pd, &qp->base, attr, &cmd.ibv_cmd, sizeof(cmd),
				&resp.ibv_resp, sizeof(resp));
	if (ret)
		goto free;
	ret = siwdg_map_qp(pd->context, qp, &resp.drv);
	if (ret)
		goto destroy;
	qp->cap = attr->cap;
	qp->signal_all = attr->sq_sig_all;
	pthread_spin_init(&qp->sq_lock, PTHREAD_PROCESS_PRIVATE);
	pthread_spin_init(&qp->rq_lock, PTHREAD_PROCESS_PRIVATE);
	return &qp->base;

destroy:
	ibv_cmd_destroy_qp(&qp->base);
free:
	siwdg_free_qp(qp);
	errno = ret;
	return NULL;
}

static struct ibv_qp *siwdg_create_plain_qp(struct ibv_pd *pd,
					    struct ibv_qp_init_attr *attr)
{
	const struct siw_dg_create_qp_req req = { .sockfd = -1 };

	return siwdg_make_qp(pd, attr, &req);
}

struct ibv_qp *siwdg_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr,
			       int sockfd)
{
	const struct siwdg_qp_attr qp_attr = {
		.comp_mask = SIWDG_QP_SOCKET,
		.sockfd = sockfd,
	};

	return siwdg_create_qp_ex(pd, attr, &qp_attr);
}

/* Returns the value of a member that has its bit, else 0; adds the module's bit */
static uint32_t siwdg_member(const struct siwdg_qp_attr *attr, uint32_t bit,
			     uint32_t value, struct siw_dg_create_qp_req *req,
			     uint32_t module_bit)
{
	if (!(attr->comp_mask & bit))
		return 0;
	req->comp_mask |= module_bit;
	return value;
}

struct ibv_qp *siwdg_create_qp_ex(struct ibv_pd *pd,
				  struct ibv_qp_init_attr *attr,
				  const struct siwdg_qp_attr *dg)
{
	struct siw_dg_create_qp_req req = { .sockfd = -1 };

	if (!siwdg_is_ours(pd->context) ||
	    dg->comp_mask & ~(SIWDG_QP_SOCKET | SIWDG_QP_SLOTS |
			      SIWDG_QP_DEADLINE | SIWDG_QP_GAP |
			      SIWDG_QP_SEGMENT | SIWDG_QP_FLAGS)) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	if (dg->comp_mask & SIWDG_QP_SOCKET) {
		if (dg->sockfd < 0) {
			errno = EBADF;
			return NULL;
		}
		req.sockfd = dg->sockfd;
	}
	req.slots = siwdg_member(dg, SIWDG_QP_SLOTS, dg->slots, &req,
				 SIW_DG_QP_SLOTS);
	req.deadline_ms = siwdg_member(dg, SIWDG_QP_DEADLINE, dg->deadline_ms,
				       &req, SIW_DG_QP_DEADLINE);
	req.gap_ms = siwdg_member(dg, SIWDG_QP_GAP, dg->gap_ms, &req,
				  SIW_DG_QP_GAP);
	req.segment = siwdg_member(dg, SIWDG_QP_SEGMENT, dg->segment, &req,
				   SIW_DG_QP_SEGMENT);
	/* Programs of an earlier header have no such member */
	if (dg->comp_mask & SIWDG_QP_FLAGS)
		req.flags = siwdg_member(dg, SIWDG_QP_FLAGS, dg->flags, &req,
					 SIW_DG_QP_FLAGS);
	return siwdg_make_qp(pd, attr, &req);
}

/* The module reads the requests from the queue; the call has none */
static int siwdg_ring_doorbell(struct siwdg_qp *qp)
{
	struct ibv_send_wr *bad_wr;

	return ibv_cmd_post_send(&qp->base, NULL, &bad_wr);
}

static int siwdg_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
			  struct ibv_qp_init_attr *init_attr)
{
	struct ibv_query_qp cmd = {};

	return ibv_cmd_query_qp(qp, attr, mask, init_attr, &cmd, sizeof(cmd));
}

/*
 * The module discards the requests of a QP that goes to RESET, by its consumer
 * index. Completions of the QP stay in the CQs until they are polled.
 */
static int siwdg_modify_qp(struct ibv_qp *base, struct ibv_qp_attr *attr,
			   int mask)
{
	struct siwdg_qp *qp = to_siwdg_qp(base);
	struct ibv_modify_qp cmd = {};
	int ret = ibv_cmd_modify_qp(base, attr, mask, &cmd, sizeof(cmd));

	if (ret || !(mask & IBV_QP_STATE))
		return ret;
	pthread_spin_lock(&qp->sq_lock);
	pthread_spin_lock(&qp->rq_lock);
	base->state = attr->qp_state;
	pthread_spin_unlock(&qp->rq_lock);
	pthread_spin_unlock(&qp->sq_lock);
	/* Requests posted since the module flushed the queues */
	return attr->qp_state == IBV_QPS_ERR ? siwdg_ring_doorbell(qp) : 0;
}

static int siwdg_destroy_qp(struct ibv_qp *base)
{
	struct siwdg_qp *qp = to_siwdg_qp(base);
	int ret = ibv_cmd_destroy_qp(base);

	if (ret)
		return ret;
	pthread_spin_destroy(&qp->sq_lock);
	pthread_spin_destroy(&qp->rq_lock);
	siwdg_free_qp(qp);
	return 0;
}

/* ---- requests */

static void siwdg_copy_sges(struct siw_dg_sge *to, const struct ibv_sge *from,
			    int num)
{
	int i;

	for (i = 0; i < num; i++) {
		to[i].addr = from[i].addr;
		to[i].length = from[i].length;
		to[i].lkey = from[i].lkey;
	}
}

static int siwdg_copy_inline(const struct siwdg_qp *qp, struct siw_dg_sqe *sqe,
			     const struct ibv_sge *sge, int num)
{
	int i;

	for (i = 0; i < num; i++, sge++) {
		if (sge->length > qp->cap.max_inline_data - sqe->inline_len)
			return EINVAL;
		memcpy(sqe->data + sqe->inline_len,
		       (const void *)(uintptr_t)sge->addr, sge->length);
		sqe->inline_len += sge->length;
	}
	sqe->flags |= SIW_DG_INLINE;
	return 0;
}

/**
 * struct siwdg_request - what a Send and a Write-Record have in common
 * @wr_id: of the program
 * @sg_list: its data
 * @num_sge: number of entries
 * @flags: enum ibv_send_flags
 * @ah: the target's address
 * @qpn: the target's UDP port
 * @qkey: of the target
 */
struct siwdg_request {
	uint64_t wr_id;
	const struct ibv_sge *sg_list;
	int num_sge;
	unsigned int flags;
	struct ibv_ah *ah;
	uint32_t qpn;
	uint32_t qkey;
};

static int siwdg_check_send(const struct siwdg_qp *qp,
			    const struct siwdg_request *wr)
{
	if (qp->base.state != IBV_QPS_RTS && qp->base.state != IBV_QPS_SQD &&
	    qp->base.state != IBV_QPS_ERR)
		return EINVAL;
	if (!wr->ah || wr->num_sge < 0 ||
	    wr->num_sge > (int)qp->cap.max_send_sge)
		return EINVAL;
	return siwdg_is_full(&qp->sq) ? ENOMEM : 0;
}

/* Writes a request but for its opcode, and does not count it yet */
static int siwdg_fill_send(struct siwdg_qp *qp, const struct siwdg_request *wr,
			   struct siw_dg_sqe **request)
{
	struct siw_dg_sqe *sqe;
	int ret = siwdg_check_send(qp, wr);

	if (ret)
		return ret;
	sqe = siwdg_entry(&qp->sq, qp->sq.next, sizeof(*sqe));
	memset(sqe, 0, offsetof(struct siw_dg_sqe, sge));
	sqe->wr_id = wr->wr_id;
	sqe->ah = to_siwdg_ah(wr->ah)->number;
	sqe->remote_qpn = wr->qpn;
	sqe->remote_qkey = wr->qkey;
	if (qp->signal_all || wr->flags & IBV_SEND_SIGNALED)
		sqe->flags |= SIW_DG_SIGNALED;
	if (wr->flags & IBV_SEND_SOLICITED)
		sqe->flags |= SIW_DG_SOLICITED;
	*request = sqe;
	if (wr->flags & IBV_SEND_INLINE)
		return siwdg_copy_inline(qp, sqe, wr->sg_list, wr->num_sge);
	siwdg_copy_sges(sqe->sge, wr->sg_list, wr->num_sge);
	sqe->num_sge = wr->num_sge;
	return 0;
}

/* Writes a request; siwdg_publish() makes it valid */
static int siwdg_add_send(struct siwdg_qp *qp, const struct ibv_send_wr *wr)
{
	const struct siwdg_request request = {
		.wr_id = wr->wr_id,
		.sg_list = wr->sg_list,
		.num_sge = wr->num_sge,
		.flags = wr->send_flags,
		.ah = wr->wr.ud.ah,
		.qpn = wr->wr.ud.remote_qpn,
		.qkey = wr->wr.ud.remote_qkey,
	};
	struct siw_dg_sqe *sqe;
	int ret;

	if (wr->opcode != IBV_WR_SEND)
		return EINVAL;
	ret = siwdg_fill_send(qp, &request, &sqe);
	if (ret)
		return ret;
	sqe->opcode = SIW_DG_OP_SEND;
	qp->sq.next++;
	return 0;
}

static int siwdg_add_write(struct siwdg_qp *qp, const struct siwdg_write *write)
{
	const struct siwdg_request request = {
		.wr_id = write->wr_id,
		.sg_list = write->sg_list,
		.num_sge = write->num_sge,
		.flags = write->send_flags,
		.ah = write->ah,
		.qpn = write->remote_qpn,
		.qkey = write->remote_qkey,
	};
	struct siw_dg_sqe *sqe;
	int ret;

	if (write->send_flags & ~(IBV_SEND_SIGNALED | IBV_SEND_INLINE))
		return EINVAL;
	ret = siwdg_fill_send(qp, &request, &sqe);
	if (ret)
		return ret;
	sqe->opcode = SIW_DG_OP_WRITE_RECORD;
	sqe->remote_zone = write->remote_zone;
	sqe->remote_offset = write->remote_offset;
	qp->sq.next++;
	return 0;
}

static int siwdg_post_send(struct ibv_qp *base, struct ibv_send_wr *first,
			   struct ibv_send_wr **bad_wr)
{
	struct siwdg_qp *qp = to_siwdg_qp(base);
	struct ibv_send_wr *wr;
	int ret = 0, doorbell;

	pthread_spin_lock(&qp->sq_lock);
	for (wr = first; wr; wr = wr->next) {
		ret = siwdg_add_send(qp, wr);
		if (ret)
			break;
	}
	if (wr != first)
		siwdg_publish(&qp->sq);
	pthread_spin_unlock(&qp->sq_lock);

	if (ret)
		*bad_wr = wr;
	if (wr == first)
		return ret;
	/* Without the lock: the module may sleep */
	doorbell = siwdg_ring_doorbell(qp);
	if (!doorbell)
		return ret;
	*bad_wr = first;
	return doorbell;
}

int siwdg_post_write(struct ibv_qp *base, const struct siwdg_write *write)
{
	struct siwdg_qp *qp;
	int ret;

	if (!siwdg_is_ours(base->context))
		return EOPNOTSUPP;
	qp = to_siwdg_qp(base);
	pthread_spin_lock(&qp->sq_lock);
	ret = siwdg_add_write(qp, write);
	if (!ret)
		siwdg_publish(&qp->sq);
	pthread_spin_unlock(&qp->sq_lock);
	return ret ? ret : siwdg_ring_doorbell(qp);
}

static int siwdg_add_recv(struct siwdg_qp *qp, const struct ibv_recv_wr *wr)
{
	struct siw_dg_rqe *rqe;

	if (qp->base.state == IBV_QPS_RESET || !qp->rq.ring ||
	    wr->num_sge < 0 || wr->num_sge > (int)qp->cap.max_recv_sge)
		return EINVAL;
	if (siwdg_is_full(&qp->rq))
		return ENOMEM;
	rqe = siwdg_entry(&qp->rq, qp->rq.next, sizeof(*rqe));
	memset(rqe, 0, offsetof(struct siw_dg_rqe, sge));
	rqe->wr_id = wr->wr_id;
	rqe->num_sge = wr->num_sge;
	siwdg_copy_sges(rqe->sge, wr->sg_list, wr->num_sge);
	qp->rq.next++;
	return 0;
}

static int siwdg_post_recv(struct ibv_qp *base, struct ibv_recv_wr *first,
			   struct ibv_recv_wr **bad_wr)
{
	struct siwdg_qp *qp = to_siwdg_qp(base);
	struct ibv_recv_wr *wr;
	int ret = 0, doorbell;
	bool flush;

	pthread_spin_lock(&qp->rq_lock);
	for (wr = first; wr; wr = wr->next) {
		ret = siwdg_add_recv(qp, wr);
		if (ret)
			break;
	}
	if (wr != first)
		siwdg_publish(&qp->rq);
	flush = base->state == IBV_QPS_ERR;
	pthread_spin_unlock(&qp->rq_lock);

	if (ret)
		*bad_wr = wr;
	/* The module reads the RQ when a datagram comes, but flushes on demand */
	if (!flush || wr == first)
		return ret;
	doorbell = siwdg_ring_doorbell(qp);
	if (!doorbell)
		return ret;
	*bad_wr = first;
	return doorbell;
}

/* ---- the device */

static void siwdg_free_context(struct ibv_context *base)
{
	struct siwdg_context *context = to_siwdg_context(base);

	verbs_uninit_context(&context->base);
	free(context);
}

static const struct verbs_context_ops siwdg_context_ops = {
	.alloc_pd = siwdg_alloc_pd,
	.attach_mcast = ibv_cmd_attach_mcast,
	.create_ah = siwdg_create_ah,
	.create_cq = siwdg_create_cq,
	.create_qp = siwdg_create_plain_qp,
	.dealloc_pd = siwdg_dealloc_pd,
	.dereg_mr = siwdg_dereg_mr,
	.destroy_ah = siwdg_destroy_ah,
	.destroy_cq = siwdg_destroy_cq,
	.destroy_qp = siwdg_destroy_qp,
	.detach_mcast = ibv_cmd_detach_mcast,
	.free_context = siwdg_free_context,
	.modify_qp = siwdg_modify_qp,
	.poll_cq = siwdg_poll_cq,
	.post_recv = siwdg_post_recv,
	.post_send = siwdg_post_send,
	.query_device_ex = siwdg_query_device,
	.query_port = siwdg_query_port,
	.query_qp = siwdg_query_qp,
	.reg_mr = siwdg_reg_mr,
	.req_notify_cq = siwdg_req_notify_cq,
};

static int siwdg_get_context(struct verbs_context *context)
{
	struct ib_uverbs_get_context_resp resp = {};
	struct ibv_get_context cmd = {};

#ifdef SIWDG_GET_CONTEXT_HAS_FDS
	return ibv_cmd_get_context(context, &cmd, sizeof(cmd), NULL, &resp,
				   sizeof(resp));
#else
	return ibv_cmd_get_context(context, &cmd, sizeof(cmd), &resp,
				   sizeof(resp));
#endif
}

static struct verbs_context *siwdg_alloc_context(struct ibv_device *device,
						 int cmd_fd, void *private_data)
{
	struct siwdg_context *context;

	/* The kernel compares this with the module's, in each ioctl */
	context = verbs_init_and_alloc_context(device, cmd_fd, context, base,
					       RDMA_DRIVER_UNKNOWN);
	if (!context)
		return NULL;
	if (siwdg_get_context(&context->base)) {
		siwdg_free_context(&context->base.context);
		return NULL;
	}
	verbs_set_ops(&context->base, &siwdg_context_ops);
	return &context->base;
}

/* For want of a driver number, by the node description */
static bool siwdg_match_device(struct verbs_sysfs_dev *sysfs_dev)
{
	char desc[128];

	return ibv_read_ibdev_sysfs_file(desc, sizeof(desc), sysfs_dev,
					 "node_desc") > 0 &&
	       !strncmp(desc, SIW_DG_NODE_DESC, strlen(SIW_DG_NODE_DESC));
}

static struct verbs_device *siwdg_alloc_device(struct verbs_sysfs_dev *sysfs_dev)
{
	struct siwdg_device *dev = calloc(1, sizeof(*dev));

	return dev ? &dev->base : NULL;
}

static void siwdg_uninit_device(struct verbs_device *base)
{
	free(to_siwdg_device(base));
}

/* libibverbs reads it for each device that has a driver number */
static const struct verbs_match_ent siwdg_match_table[] = { {} };

static const struct verbs_device_ops siwdg_device_ops = {
	.name = "siwdg",
	.match_table = siwdg_match_table,
	.match_min_abi_version = SIW_DG_ABI_VERSION,
	.match_max_abi_version = SIW_DG_ABI_VERSION,
	.match_device = siwdg_match_device,
	.alloc_context = siwdg_alloc_context,
	.alloc_device = siwdg_alloc_device,
	.uninit_device = siwdg_uninit_device,
};

bool siwdg_is_ours(const struct ibv_context *context)
{
	return verbs_get_device(context->device)->ops == &siwdg_device_ops;
}

PROVIDER_DRIVER(siwdg, siwdg_device_ops);
