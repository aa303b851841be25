// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* A ULP in the kernel: what is special about iWARP, explained in iw_mpa_ulp.rst */
#include <linux/module.h>
#include <rdma/ib_cm.h>
#include <rdma/rdma_cm.h>
#include <uapi/rdma/rdma_mpa.h>

/* Before rdma_connect() or rdma_listen(); the connections of a listener inherit it */
int foo_require_peer_to_peer(struct rdma_cm_id *id)
{
	u32 model = RDMA_MPA_MODEL_PEER_TO_PEER_REQUIRED;
	int ret;

	ret = rdma_set_iw_option(id, RDMA_MPA_OPTION_MODEL, &model, sizeof(model));
	/* InfiniBand and RoCE: either side may speak first anyway */
	return ret == -EOPNOTSUPP ? 0 : ret;
}

int foo_connect(struct rdma_cm_id *id, u8 reads_in, u8 reads_out)
{
	struct rdma_conn_param param = {
		.responder_resources = reads_in,
		.initiator_depth = reads_out,
	};
	int ret;

	ret = foo_require_peer_to_peer(id);
	return ret ?: rdma_connect(id, &param);
}

/* The peer takes no more than it asks for: accept no more */
int foo_accept(struct rdma_cm_id *id, const struct rdma_cm_event *request, u8 reads_in,
	       u8 reads_out)
{
	const struct rdma_conn_param *peer = &request->param.conn;
	struct rdma_conn_param param = {
		.responder_resources = min(reads_in, peer->responder_resources),
		.initiator_depth = min(reads_out, peer->initiator_depth),
	};

	return rdma_accept(id, &param);
}

/* An initiator's event: what holds now */
u8 foo_reads_out(const struct rdma_cm_event *established)
{
	return established->param.conn.initiator_depth;
}

MODULE_DESCRIPTION("Example of a ULP over iWARP");
MODULE_LICENSE("Dual BSD/GPL");
