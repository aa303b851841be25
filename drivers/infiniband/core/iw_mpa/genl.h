/* SPDX-License-Identifier: ((GPL-2.0 WITH Linux-syscall-note) OR BSD-3-Clause) */
/* Do not edit directly, auto-generated from: */
/*	Documentation/netlink/specs/rdma-mpa.yaml */
/* YNL-GEN kernel header */
/* To regenerate run: tools/net/ynl/ynl-regen.sh */

#ifndef _LINUX_RDMA_MPA_GEN_H
#define _LINUX_RDMA_MPA_GEN_H

#include <net/netlink.h>
#include <net/genetlink.h>

#include <uapi/rdma/rdma_mpa.h>
#include <rdma/ib_verbs.h>

/* Common nested types */
extern const struct nla_policy rdma_mpa_policy_nl_policy[RDMA_MPA_A_POLICY_IDLE + 1];
extern const struct nla_policy rdma_mpa_rtr_order_nl_policy[RDMA_MPA_A_RTR_ORDER_KIND + 1];

int rdma_mpa_nl_policy_get_doit(struct sk_buff *skb, struct genl_info *info);
int rdma_mpa_nl_policy_get_dumpit(struct sk_buff *skb,
				  struct netlink_callback *cb);
int rdma_mpa_nl_policy_set_doit(struct sk_buff *skb, struct genl_info *info);
int rdma_mpa_nl_policy_reset_doit(struct sk_buff *skb, struct genl_info *info);
int rdma_mpa_nl_dev_get_doit(struct sk_buff *skb, struct genl_info *info);
int rdma_mpa_nl_dev_get_dumpit(struct sk_buff *skb,
			       struct netlink_callback *cb);

enum {
	RDMA_MPA_NLGRP_POLICIES,
	RDMA_MPA_NLGRP_CONNECTIONS,
};

extern struct genl_family rdma_mpa_nl_family;

#endif /* _LINUX_RDMA_MPA_GEN_H */
