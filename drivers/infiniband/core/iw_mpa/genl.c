// SPDX-License-Identifier: ((GPL-2.0 WITH Linux-syscall-note) OR BSD-3-Clause)
/* Do not edit directly, auto-generated from: */
/*	Documentation/netlink/specs/rdma-mpa.yaml */
/* YNL-GEN kernel source */
/* To regenerate run: tools/net/ynl/ynl-regen.sh */

#include <net/netlink.h>
#include <net/genetlink.h>

#include "genl.h"

#include <uapi/rdma/rdma_mpa.h>
#include <rdma/ib_verbs.h>

/* Common nested types */
const struct nla_policy rdma_mpa_policy_nl_policy[RDMA_MPA_A_POLICY_IDLE + 1] = {
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
	[RDMA_MPA_A_POLICY_SEGMENT] = NLA_POLICY_MAX(NLA_U32, 1),
	[RDMA_MPA_A_POLICY_CONNECT_MS] = NLA_POLICY_MIN(NLA_U32, 1),
	[RDMA_MPA_A_POLICY_REQUEST_MS] = NLA_POLICY_MIN(NLA_U32, 1),
	[RDMA_MPA_A_POLICY_REPLY_MS] = NLA_POLICY_MIN(NLA_U32, 1),
	[RDMA_MPA_A_POLICY_RTR_MS] = NLA_POLICY_MIN(NLA_U32, 1),
	[RDMA_MPA_A_POLICY_DECIDE_MS] = NLA_POLICY_MIN(NLA_U32, 1),
	[RDMA_MPA_A_POLICY_IRD_MODE] = NLA_POLICY_MAX(NLA_U32, 2),
	[RDMA_MPA_A_POLICY_ORD_MODE] = NLA_POLICY_MAX(NLA_U32, 2),
	[RDMA_MPA_A_POLICY_STREAMS] = NLA_POLICY_RANGE(NLA_U32, 1, RDMA_MPA_STREAMS_MAX),
	[RDMA_MPA_A_POLICY_IDLE] = NLA_POLICY_RANGE(NLA_U32, 1, RDMA_MPA_IDLE_MAX),
};

const struct nla_policy rdma_mpa_rtr_order_nl_policy[RDMA_MPA_A_RTR_ORDER_KIND + 1] = {
	[RDMA_MPA_A_RTR_ORDER_KIND] = NLA_POLICY_MASK(NLA_U32, 0x7),
};

/* RDMA_MPA_CMD_POLICY_GET - do */
static const struct nla_policy rdma_mpa_policy_get_nl_policy[RDMA_MPA_A_PORT + 1] = {
	[RDMA_MPA_A_DEV_INDEX] = { .type = NLA_U32, },
	[RDMA_MPA_A_PORT] = NLA_POLICY_MIN(NLA_U32, 1),
};

/* RDMA_MPA_CMD_POLICY_SET - do */
static const struct nla_policy rdma_mpa_policy_set_nl_policy[RDMA_MPA_A_POLICY + 1] = {
	[RDMA_MPA_A_DEV_INDEX] = { .type = NLA_U32, },
	[RDMA_MPA_A_PORT] = NLA_POLICY_MIN(NLA_U32, 1),
	[RDMA_MPA_A_POLICY] = NLA_POLICY_NESTED(rdma_mpa_policy_nl_policy),
};

/* RDMA_MPA_CMD_POLICY_RESET - do */
static const struct nla_policy rdma_mpa_policy_reset_nl_policy[RDMA_MPA_A_SETTING + 1] = {
	[RDMA_MPA_A_DEV_INDEX] = { .type = NLA_U32, },
	[RDMA_MPA_A_PORT] = NLA_POLICY_MIN(NLA_U32, 1),
	[RDMA_MPA_A_SETTING] = NLA_POLICY_RANGE(NLA_U32, 1, 31),
};

/* RDMA_MPA_CMD_DEV_GET - do */
static const struct nla_policy rdma_mpa_dev_get_nl_policy[RDMA_MPA_A_DEV_INDEX + 1] = {
	[RDMA_MPA_A_DEV_INDEX] = { .type = NLA_U32, },
};

/* Ops table for rdma_mpa */
static const struct genl_split_ops rdma_mpa_nl_ops[] = {
	{
		.cmd		= RDMA_MPA_CMD_POLICY_GET,
		.doit		= rdma_mpa_nl_policy_get_doit,
		.policy		= rdma_mpa_policy_get_nl_policy,
		.maxattr	= RDMA_MPA_A_PORT,
		.flags		= GENL_CMD_CAP_DO,
	},
	{
		.cmd	= RDMA_MPA_CMD_POLICY_GET,
		.dumpit	= rdma_mpa_nl_policy_get_dumpit,
		.flags	= GENL_CMD_CAP_DUMP,
	},
	{
		.cmd		= RDMA_MPA_CMD_POLICY_SET,
		.doit		= rdma_mpa_nl_policy_set_doit,
		.policy		= rdma_mpa_policy_set_nl_policy,
		.maxattr	= RDMA_MPA_A_POLICY,
		.flags		= GENL_CMD_CAP_DO,
	},
	{
		.cmd		= RDMA_MPA_CMD_POLICY_RESET,
		.doit		= rdma_mpa_nl_policy_reset_doit,
		.policy		= rdma_mpa_policy_reset_nl_policy,
		.maxattr	= RDMA_MPA_A_SETTING,
		.flags		= GENL_CMD_CAP_DO,
	},
	{
		.cmd		= RDMA_MPA_CMD_DEV_GET,
		.doit		= rdma_mpa_nl_dev_get_doit,
		.policy		= rdma_mpa_dev_get_nl_policy,
		.maxattr	= RDMA_MPA_A_DEV_INDEX,
		.flags		= GENL_CMD_CAP_DO,
	},
	{
		.cmd	= RDMA_MPA_CMD_DEV_GET,
		.dumpit	= rdma_mpa_nl_dev_get_dumpit,
		.flags	= GENL_CMD_CAP_DUMP,
	},
};

static const struct genl_multicast_group rdma_mpa_nl_mcgrps[] = {
	[RDMA_MPA_NLGRP_POLICIES] = { "policies", },
	[RDMA_MPA_NLGRP_CONNECTIONS] = { "connections", .flags = GENL_MCAST_CAP_NET_ADMIN, },
};

struct genl_family rdma_mpa_nl_family __ro_after_init = {
	.name		= RDMA_MPA_FAMILY_NAME,
	.version	= RDMA_MPA_FAMILY_VERSION,
	.netnsok	= true,
	.parallel_ops	= true,
	.module		= THIS_MODULE,
	.split_ops	= rdma_mpa_nl_ops,
	.n_split_ops	= ARRAY_SIZE(rdma_mpa_nl_ops),
	.mcgrps		= rdma_mpa_nl_mcgrps,
	.n_mcgrps	= ARRAY_SIZE(rdma_mpa_nl_mcgrps),
};
