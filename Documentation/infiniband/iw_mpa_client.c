// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Usage: iw_mpa_client ADDRESS PORT
 *
 * Connects peer-to-peer or not at all, asks for 4 RDMA Reads in each direction, and prints what
 * holds. The other end can be "rping -s". Explained in iw_mpa_ulp.rst;
 * cc -o iw_mpa_client iw_mpa_client.c -lrdmacm
 */
#include <rdma/rdma_cma.h>
#include <rdma/rdma_mpa.h>

#include <linux/types.h>
#include <stdio.h>

/* RDMA_OPTION_IWARP of rdma/rdma_user_cm.h, which older headers lack */
enum { OPTION_IWARP = 2 };

int main(int argc, char **argv)
{
	/* the preferred kind in the lowest four bits */
	__u32 rtr = RDMA_MPA_RTR_READ | RDMA_MPA_RTR_WRITE << 4;
	__u32 model = RDMA_MPA_MODEL_PEER_TO_PEER_REQUIRED;
	struct ibv_qp_init_attr qp = {
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};
	struct rdma_conn_param param = {
		.responder_resources = 4, /* IRD: Reads that the peer may have outstanding at us */
		.initiator_depth = 4,     /* ORD: Reads that we may have outstanding at the peer */
	};
	struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_TCP }, *address;
	const struct rdma_conn_param *got;
	struct rdma_cm_id *id;

	if (argc != 3 || rdma_getaddrinfo(argv[1], argv[2], &hints, &address)) {
		fprintf(stderr, "usage: iw_mpa_client ADDRESS PORT\n");
		return 2;
	}
	if (rdma_create_ep(&id, address, NULL, &qp)) {
		perror("no queue pair");
		return 1;
	}
	rdma_freeaddrinfo(address);
	/*
	 * EOPNOTSUPP: not an iWARP device, or a kernel without iw_mpa. Not fatal: the port's
	 * settings hold
	 */
	if (rdma_set_option(id, OPTION_IWARP, RDMA_MPA_OPTION_MODEL, &model, sizeof(model)) ||
	    rdma_set_option(id, OPTION_IWARP, RDMA_MPA_OPTION_RTR, &rtr, sizeof(rtr)))
		perror("options");
	if (rdma_connect(id, &param)) {
		perror("connect");
		rdma_destroy_ep(id);
		return 1;
	}
	got = &id->event->param.conn;
	printf("connected: responder_resources %u initiator_depth %u\n", got->responder_resources,
	       got->initiator_depth);
	rdma_disconnect(id);
	rdma_destroy_ep(id);
	return 0;
}
