/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Parts of the messages of the generic netlink family;
 * Documentation/netlink/specs/rdma-mpa.yaml describes it.
 */
#ifndef _IW_MPA_NETLINK_H
#define _IW_MPA_NETLINK_H

#include <net/net_namespace.h>
#include <net/netlink.h>
#include <uapi/rdma/rdma_mpa.h>

#include "device.h"

/* The default layer belongs to init_net. The caller has a reference on @dev. */
static inline struct net *iw_mpa_owner_net(const struct iw_mpa_device *dev)
{
	return dev ? read_pnet(&dev->ibdev->coredev.rdma_net) : &init_net;
}

static inline int iw_mpa_put_ids(struct sk_buff *msg,
				 const struct iw_mpa_device *dev)
{
	char name[IB_DEVICE_NAME_MAX];

	iw_mpa_device_name(dev, name);
	return nla_put_u32(msg, RDMA_MPA_A_DEV_INDEX, dev->ibdev->index) ?:
	       nla_put_string(msg, RDMA_MPA_A_DEV_NAME, name) ?:
	       nla_put_u32(msg, RDMA_MPA_A_LLP, dev->driver.caps.llp);
}

static inline int iw_mpa_put_flag(struct sk_buff *msg, int attr, bool value)
{
	return value ? nla_put_flag(msg, attr) : 0;
}

#endif /* _IW_MPA_NETLINK_H */
