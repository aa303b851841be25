// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Devices: `rdma link add NAME type siw_dg netdev NETDEV`. See NOTICE.
 */
#include <linux/etherdevice.h>
#include <linux/if_arp.h>
#include <linux/inetdevice.h>
#include <linux/module.h>
#include <linux/rtnetlink.h>
#include <net/addrconf.h>

#include <rdma/rdma_netlink.h>

#include "dg_device.h"

MODULE_DESCRIPTION("Datagram iWARP: RDMA over UDP");
MODULE_LICENSE("Dual BSD/GPL");

struct workqueue_struct *dg_wq;
struct workqueue_struct *dg_tx_wq;

static LIST_HEAD(dg_devices);
static DEFINE_SPINLOCK(dg_devices_lock);

/* The lock is held */
static struct dg_device *dg_find_device(const struct net_device *netdev)
{
	struct dg_device *dev;

	list_for_each_entry(dev, &dg_devices, entry)
		if (dev->netdev == netdev)
			return dev;
	return NULL;
}

/* On success ib_device_put() puts the reference */
static struct dg_device *dg_get_device(const struct net_device *netdev)
{
	struct dg_device *dev;

	spin_lock_bh(&dg_devices_lock);
	dev = dg_find_device(netdev);
	if (dev && !ib_device_try_get(&dev->base))
		dev = NULL;
	spin_unlock_bh(&dg_devices_lock);
	return dev;
}

static int dg_remember_device(struct dg_device *dev)
{
	int ret = -EEXIST;

	spin_lock_bh(&dg_devices_lock);
	if (!dg_find_device(dev->netdev)) {
		list_add(&dev->entry, &dg_devices);
		ret = 0;
	}
	spin_unlock_bh(&dg_devices_lock);
	return ret;
}

/**
 * dg_device_forget - take a device that goes from the list
 * @dev: the device, whose objects have all gone
 */
void dg_device_forget(struct dg_device *dev)
{
	xa_destroy(&dev->qps);
	xa_destroy(&dev->mrs);
	xa_destroy(&dev->ahs);
	netdev_put(dev->netdev, &dev->tracker);
	/* Last: dg_exit() waits for what is in the list */
	spin_lock_bh(&dg_devices_lock);
	list_del_init(&dev->entry);
	spin_unlock_bh(&dg_devices_lock);
}

/* Any context */
static void dg_raise_event(struct dg_device *dev, enum ib_event_type type)
{
	struct ib_event event = {
		.device = &dev->base,
		.event = type,
		.element.port_num = 1,
	};

	ib_dispatch_event(&event);
}

/* The caller holds the RTNL */
static void dg_check_port(struct dg_device *dev)
{
	bool active = dg_netdev_is_active(dev->netdev);

	if (active == dev->active)
		return;
	dev->active = active;
	dg_raise_event(dev, active ? IB_EVENT_PORT_ACTIVE : IB_EVENT_PORT_ERR);
}

/* Any context */
static void dg_change_gids(const struct net_device *netdev)
{
	struct dg_device *dev = dg_get_device(netdev);

	if (!dev)
		return;
	dg_raise_event(dev, IB_EVENT_GID_CHANGE);
	ib_device_put(&dev->base);
}

static int dg_netdev_event(struct notifier_block *nb, unsigned long event,
			   void *arg)
{
	struct dg_device *dev = dg_get_device(netdev_notifier_info_to_dev(arg));

	if (!dev)
		return NOTIFY_DONE;
	switch (event) {
	case NETDEV_UP:
	case NETDEV_CHANGE:
	case NETDEV_DOWN:
		dg_check_port(dev);
		break;
	case NETDEV_UNREGISTER:
		ib_unregister_device_queued(&dev->base);
		break;
	}
	ib_device_put(&dev->base);
	return NOTIFY_DONE;
}

static int dg_inetaddr_event(struct notifier_block *nb, unsigned long event,
			     void *arg)
{
	const struct in_ifaddr *ifa = arg;

	dg_change_gids(ifa->ifa_dev->dev);
	return NOTIFY_DONE;
}

static int dg_inet6addr_event(struct notifier_block *nb, unsigned long event,
			      void *arg)
{
	const struct inet6_ifaddr *ifa = arg;

	dg_change_gids(ifa->idev->dev);
	return NOTIFY_DONE;
}

static struct notifier_block dg_netdev_nb = {
	.notifier_call = dg_netdev_event,
};

static struct notifier_block dg_inetaddr_nb = {
	.notifier_call = dg_inetaddr_event,
};

static struct notifier_block dg_inet6addr_nb = {
	.notifier_call = dg_inet6addr_event,
};

/* The client is for devices of this module alone */
static int dg_client_add(struct ib_device *base)
{
	if (base->ops.owner != THIS_MODULE)
		return -EOPNOTSUPP;
	/* It comes back when it moves to another network namespace */
	WRITE_ONCE(to_dg_device(base)->goes, false);
	return 0;
}

static void dg_client_remove(struct ib_device *base, void *data)
{
	WRITE_ONCE(to_dg_device(base)->goes, true);
}

/* The last client goes first: before ib_uverbs waits for the calls of programs */
static struct ib_client dg_client = {
	.name = "siw_dg",
	.add = dg_client_add,
	.remove = dg_client_remove,
	/* The device has no verbs for the kernel */
	.no_kverbs_req = true,
};

static bool dg_netdev_is_good(const struct net_device *netdev)
{
	return netdev->type == ARPHRD_ETHER || netdev->type == ARPHRD_NONE ||
	       netdev->type == ARPHRD_LOOPBACK;
}

/* Its last event may have come before the device could be found */
static bool dg_netdev_goes(const struct net_device *netdev)
{
	bool goes;

	rtnl_lock();
	goes = netdev->reg_state != NETREG_REGISTERED;
	rtnl_unlock();
	return goes;
}

static int dg_newlink(const char *name, struct net_device *netdev)
{
	struct dg_device *dev;
	u8 mac[ETH_ALEN];
	int ret;

	if (!dg_netdev_is_good(netdev))
		return -EINVAL;
	dev = ib_alloc_device(dg_device, base);
	if (!dev)
		return -ENOMEM;
	INIT_LIST_HEAD(&dev->entry);
	dev->netdev = netdev;
	netdev_hold(netdev, &dev->tracker, GFP_KERNEL);
	dev->active = dg_netdev_is_active(netdev);
	xa_init(&dev->qps);
	xa_init_flags(&dev->mrs, XA_FLAGS_ALLOC1);
	xa_init_flags(&dev->ahs, XA_FLAGS_ALLOC1);

	/* perftest takes an RNIC for one that has RDMA Writes on each QP */
	dev->base.node_type = RDMA_NODE_UNSPECIFIED;
	dev->base.phys_port_cnt = 1;
	dev->base.num_comp_vectors = num_possible_cpus();
	dev->base.uverbs_cmd_mask |= BIT_ULL(IB_USER_VERBS_CMD_POST_SEND);
	strscpy(dev->base.node_desc, SIW_DG_NODE_DESC,
		sizeof(dev->base.node_desc));
	/* Differs from that of a siw link of the same interface */
	if (netdev->addr_len == ETH_ALEN && !is_zero_ether_addr(netdev->dev_addr))
		ether_addr_copy(mac, netdev->dev_addr);
	else
		eth_random_addr(mac);
	mac[0] ^= 0x02;
	addrconf_addr_eui48((u8 *)&dev->base.node_guid, mac);

	ib_set_device_ops(&dev->base, &dg_device_ops);
	dev->base.driver_def = dg_zone_defs;
	ret = dg_remember_device(dev);
	if (ret)
		goto free;
	/* It may be unregistered as soon as it is registered */
	get_device(&dev->base.dev);
	ret = ib_register_device(&dev->base, name, NULL);
	if (!ret && dg_netdev_goes(netdev)) {
		ib_unregister_device(&dev->base);
		put_device(&dev->base.dev);
		return -ENODEV;
	}
	put_device(&dev->base.dev);
	if (!ret)
		return 0;
free:
	ib_dealloc_device(&dev->base);
	return ret;
}

static struct rdma_link_ops dg_link_ops = {
	.type = "siw_dg",
	.newlink = dg_newlink,
};

static void dg_unregister_devices(void)
{
	struct dg_device *dev;

	for (;;) {
		spin_lock_bh(&dg_devices_lock);
		dev = list_first_entry_or_null(&dg_devices, struct dg_device,
					       entry);
		if (dev)
			get_device(&dev->base.dev);
		spin_unlock_bh(&dg_devices_lock);
		if (!dev)
			return;
		/* Waits for an unregistration that is under way */
		ib_unregister_device(&dev->base);
		put_device(&dev->base.dev);
	}
}

static int __init dg_init(void)
{
	int ret;

	dg_wq = alloc_workqueue("siw_dg", WQ_UNBOUND, 0);
	if (!dg_wq)
		return -ENOMEM;
	ret = -ENOMEM;
	dg_tx_wq = alloc_workqueue("siw_dg_tx", WQ_UNBOUND, 0);
	if (!dg_tx_wq)
		goto wq;
	ret = register_netdevice_notifier(&dg_netdev_nb);
	if (ret)
		goto tx_wq;
	ret = register_inetaddr_notifier(&dg_inetaddr_nb);
	if (ret)
		goto netdev;
	ret = register_inet6addr_notifier(&dg_inet6addr_nb);
	if (ret)
		goto inetaddr;
	ret = ib_register_client(&dg_client);
	if (ret)
		goto inet6addr;
	rdma_link_register(&dg_link_ops);
	return 0;

inet6addr:
	unregister_inet6addr_notifier(&dg_inet6addr_nb);
inetaddr:
	unregister_inetaddr_notifier(&dg_inetaddr_nb);
netdev:
	unregister_netdevice_notifier(&dg_netdev_nb);
tx_wq:
	destroy_workqueue(dg_tx_wq);
wq:
	destroy_workqueue(dg_wq);
	return ret;
}

static void __exit dg_exit(void)
{
	rdma_link_unregister(&dg_link_ops);
	unregister_inet6addr_notifier(&dg_inet6addr_nb);
	unregister_inetaddr_notifier(&dg_inetaddr_nb);
	unregister_netdevice_notifier(&dg_netdev_nb);
	dg_unregister_devices();
	/* A task may not have returned from dg_device_forget() */
	synchronize_rcu_tasks();
	ib_unregister_client(&dg_client);
	destroy_workqueue(dg_tx_wq);
	destroy_workqueue(dg_wq);
}

module_init(dg_init);
module_exit(dg_exit);

MODULE_ALIAS_RDMA_LINK("siw_dg");
