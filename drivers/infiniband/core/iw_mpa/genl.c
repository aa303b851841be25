// SPDX-License-Identifier: ((GPL-2.0 WITH Linux-syscall-note) OR BSD-3-Clause)
/* Do not edit directly, auto-generated from: */
/*	Documentation/netlink/specs/rdma_mpa.yaml */
/* YNL-GEN kernel source */
/* To regenerate run: tools/net/ynl/ynl-regen.sh */

#include <net/netlink.h>
#include <net/genetlink.h>

#include "genl.h"

#include <uapi/rdma/rdma_mpa.h>

/* Common nested types */
const struct nla_policy rdma_mpa_policy_nl_policy[RDMA_MPA_A_POLICY_ORD_MODE + 1] = {
	[RDMA_MPA_A_POLICY_REVISION] = NLA_POLICY_RANGE(NLA_U32, 1, 3),
	[RDMA_MPA_A_POLICY_MODEL] = NLA_POLICY_MAX(NLA_U32, 2),
	[RDMA_MPA_A_POLICY_RTR_OFFER] = NLA_POLICY_MASK(NLA_U32, 0x7),
	[RDMA_MPA_A_POLICY_RTR_ACCEPT] = NLA_POLICY_MASK(NLA_U32, 0x7),
	[RDMA_MPA_A_POLICY_RTR_ORDER] = NLA_POLICY_NESTED(rdma_mpa_rtr_order_nl_policy),
	[RDMA_MPA_A_POLICY_IRD] = NLA_POLICY_MAX(NLA_U32, RDMA_MPA_DEPTH_MAX),
	[RDMA_MPA_A_POLICY_ORD] = NLA_POLICY_MAX(NLA_U32, RDMA_MPA_DEPTH_MAX),
	[RDMA_MPA_A_POLICY_CRC] = NLA_POLICY_MAX(NLA_U32, 2),
	[RDMA_MPA_A_POLICY_DIALECT] = NLA_POLICY_MAX(NLA_U32, 1),
	[RDMA_MPA_A_POLICY_SHORT_IRD] = NLA_POLICY_MAX(NLA_U32, 1),
	[RDMA_MPA_A_POLICY_FASTOPEN] = NLA_POLICY_MAX(NLA_U32, 1),
	[RDMA_MPA_A_POLICY_CONNECT_MS] = NLA_POLICY_MIN(NLA_U32, 1),
	[RDMA_MPA_A_POLICY_REQUEST_MS] = NLA_POLICY_MIN(NLA_U32, 1),
	[RDMA_MPA_A_POLICY_REPLY_MS] = NLA_POLICY_MIN(NLA_U32, 1),
	[RDMA_MPA_A_POLICY_RTR_MS] = NLA_POLICY_MIN(NLA_U32, 1),
	[RDMA_MPA_A_POLICY_DECIDE_MS] = NLA_POLICY_MIN(NLA_U32, 1),
	[RDMA_MPA_A_POLICY_IRD_MODE] = NLA_POLICY_MAX(NLA_U32, 2),
	[RDMA_MPA_A_POLICY_ORD_MODE] = NLA_POLICY_MAX(NLA_U32, 2),
};

const struct nla_policy rdma_mpa_rtr_order_nl_policy[RDMA_MPA_A_RTR_ORDER_KIND + 1] = {
	[RDMA_MPA_A_RTR_ORDER_KIND] = NLA_POLICY_MASK(NLA_U32, 0x7),
};

/* RDMA_MPA_CMD_POLICY_GET - do */
const struct nla_policy rdma_mpa_policy_get_nl_policy[RDMA_MPA_A_PORT + 1] = {
	[RDMA_MPA_A_DEV_INDEX] = { .type = NLA_U32, },
	[RDMA_MPA_A_PORT] = NLA_POLICY_MIN(NLA_U32, 1),
};

/* RDMA_MPA_CMD_POLICY_SET - do */
const struct nla_policy rdma_mpa_policy_set_nl_policy[RDMA_MPA_A_POLICY + 1] = {
	[RDMA_MPA_A_DEV_INDEX] = { .type = NLA_U32, },
	[RDMA_MPA_A_PORT] = NLA_POLICY_MIN(NLA_U32, 1),
	[RDMA_MPA_A_POLICY] = NLA_POLICY_NESTED(rdma_mpa_policy_nl_policy),
};

/* RDMA_MPA_CMD_POLICY_RESET - do */
const struct nla_policy rdma_mpa_policy_reset_nl_policy[RDMA_MPA_A_SETTING + 1] = {
	[RDMA_MPA_A_DEV_INDEX] = { .type = NLA_U32, },
	[RDMA_MPA_A_PORT] = NLA_POLICY_MIN(NLA_U32, 1),
	[RDMA_MPA_A_SETTING] = NLA_POLICY_RANGE(NLA_U32, 1, 16),
};

/* RDMA_MPA_CMD_DEV_GET - do */
const struct nla_policy rdma_mpa_dev_get_nl_policy[RDMA_MPA_A_DEV_INDEX + 1] = {
	[RDMA_MPA_A_DEV_INDEX] = { .type = NLA_U32, },
};

/* Ops table for rdma_mpa */
const struct genl_ops rdma_mpa_nl_ops[4] = {
	{
		.cmd		= RDMA_MPA_CMD_POLICY_GET,
		.doit		= rdma_mpa_nl_policy_get_doit,
		.dumpit		= rdma_mpa_nl_policy_get_dumpit,
		.policy		= rdma_mpa_policy_get_nl_policy,
		.maxattr	= RDMA_MPA_A_PORT,
	},
	{
		.cmd		= RDMA_MPA_CMD_POLICY_SET,
		.doit		= rdma_mpa_nl_policy_set_doit,
		.policy		= rdma_mpa_policy_set_nl_policy,
		.maxattr	= RDMA_MPA_A_POLICY,
	},
	{
		.cmd		= RDMA_MPA_CMD_POLICY_RESET,
		.doit		= rdma_mpa_nl_policy_reset_doit,
		.policy		= rdma_mpa_policy_reset_nl_policy,
		.maxattr	= RDMA_MPA_A_SETTING,
	},
	{
		.cmd		= RDMA_MPA_CMD_DEV_GET,
		.doit		= rdma_mpa_nl_dev_get_doit,
		.dumpit		= rdma_mpa_nl_dev_get_dumpit,
		.policy		= rdma_mpa_dev_get_nl_policy,
		.maxattr	= RDMA_MPA_A_DEV_INDEX,
	},
};

static const struct genl_multicast_group rdma_mpa_nl_mcgrps[] = {
	[RDMA_MPA_NLGRP_POLICIES] = { "policies", },
	[RDMA_MPA_NLGRP_CONNECTIONS] = { "connections", },
};
