// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Listeners on all addresses of a device, with a socket for each address.
 *
 * An SCTP socket with a wildcard address announces all addresses of the host to
 * its peers, also those of other devices. DDP's associations have one address
 * (RFC 5043 section 7.2). A work item adds addresses that the device gets
 * later. It repeats the scan during IPv6's duplicate address detection, whose
 * end is not notified, and after an allocation failure. Its delay grows,
 * because on an interface without a carrier the detection never ends. If an
 * address is removed, its socket stays and is used again when the address
 * returns.
 *
 * Lock: wild_lock, a mutex: the list of these listeners and the endpoints of
 * each. Under it, endpoints are taken into use and sockets are locked.
 */
#include <linux/inetdevice.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/notifier.h>
#include <linux/slab.h>
#include <linux/workqueue.h>
#include <net/addrconf.h>
#include <net/if_inet6.h>
#include <net/ipv6.h>

#include <rdma/ib_verbs.h>
#include <rdma/iw_cm.h>
#include <rdma/iw_mpa.h>

#include "siw.h"
#include "siw_cm.h"
#include "siw_wild.h"

/* Largest number of addresses for which a listener has a socket */
#define SIW_WILD_ADDRS	64
/* Delay before the next scan for addresses without a socket, in jiffies */
#define SIW_WILD_AGAIN_MIN	(HZ / 2)
#define SIW_WILD_AGAIN_MAX	(4 * HZ)

/**
 * struct siw_wild - a listener on all addresses
 * @list: in wild_listeners
 * @id: the listener; it exists until siw_wild_forget()
 * @backlog: as requested by the ULP
 * @config: settings of the time of siw_wild_listen(), for all addresses
 */
struct siw_wild {
	struct list_head list;
	struct iw_cm_id *id;
	int backlog;
	struct iw_mpa_config *config;
};

static void add_new_addrs(struct work_struct *work);
static DECLARE_DELAYED_WORK(addr_work, add_new_addrs);

static unsigned long again_after = SIW_WILD_AGAIN_MIN;

static LIST_HEAD(wild_listeners);
/* See the top of this file */
static DEFINE_MUTEX(wild_lock);

/* A scan that is already scheduled may be too far in the future */
static void look_after(unsigned long delay)
{
	WRITE_ONCE(again_after, SIW_WILD_AGAIN_MIN);
	cancel_delayed_work(&addr_work);
	schedule_delayed_work(&addr_work, delay);
}

/* ---- the device's addresses */

/* @again: some addresses cannot be used yet; @full: there are more addresses */
struct addr_list {
	bool again;
	bool full;
	unsigned int num;
	struct sockaddr_storage addr[SIW_WILD_ADDRS];
};

static void add_v4(struct addr_list *list, struct in_device *in_dev,
		   __be16 port)
{
	const struct in_ifaddr *ifa;

	in_dev_for_each_ifa_rcu(ifa, in_dev) {
		struct sockaddr_in *sin =
			(struct sockaddr_in *)&list->addr[list->num];

		list->full = list->num == SIW_WILD_ADDRS;
		if (list->full)
			return;
		sin->sin_family = AF_INET;
		sin->sin_addr.s_addr = ifa->ifa_local;
		sin->sin_port = port;
		list->num++;
	}
}

static void add_v6(struct addr_list *list, struct inet6_dev *idev, __be16 port)
{
	const struct inet6_ifaddr *ifp;

	read_lock_bh(&idev->lock);
	list_for_each_entry(ifp, &idev->addr_list, if_list) {
		struct sockaddr_in6 *sin6 =
			(struct sockaddr_in6 *)&list->addr[list->num];

		list->full = list->num == SIW_WILD_ADDRS;
		if (list->full)
			break;
		if (ifp->flags & IFA_F_DADFAILED)
			continue;
		if (ifp->flags & IFA_F_TENTATIVE) {
			list->again = true;
			continue;
		}
		sin6->sin6_family = AF_INET6;
		sin6->sin6_addr = ifp->addr;
		sin6->sin6_port = port;
		if (ipv6_addr_type(&ifp->addr) & IPV6_ADDR_LINKLOCAL)
			sin6->sin6_scope_id = idev->dev->ifindex;
		list->num++;
	}
	read_unlock_bh(&idev->lock);
}

/* The port is at the same offset in both kinds of address */
static void collect_addrs(const struct iw_cm_id *id, struct net_device *ndev,
			  struct addr_list *list)
{
	bool v6 = id->local_addr.ss_family == AF_INET6;
	__be16 port = ((const struct sockaddr_in *)&id->local_addr)->sin_port;
	struct in_device *in_dev;
	struct inet6_dev *idev;

	rcu_read_lock();
	in_dev = __in_dev_get_rcu(ndev);
	idev = __in6_dev_get(ndev);
	if (in_dev && !(v6 && id->afonly))
		add_v4(list, in_dev, port);
	if (idev && v6)
		add_v6(list, idev, port);
	rcu_read_unlock();
	if (list->full)
		pr_warn_once("siw: %s has more than %u addresses: some are not listened on\n",
			     ndev->name, SIW_WILD_ADDRS);
}

/* ---- listeners */

static bool same_addr(const struct sockaddr *a, const struct sockaddr *b)
{
	if (a->sa_family != b->sa_family)
		return false;
	if (a->sa_family == AF_INET)
		return ((const struct sockaddr_in *)a)->sin_addr.s_addr ==
		       ((const struct sockaddr_in *)b)->sin_addr.s_addr;
	return ipv6_addr_equal(&((const struct sockaddr_in6 *)a)->sin6_addr,
			       &((const struct sockaddr_in6 *)b)->sin6_addr);
}

static bool has_socket(const struct iw_cm_id *id, const struct sockaddr *addr)
{
	struct siw_cep *cep;

	if (!id->provider_data)
		return false;
	list_for_each_entry(cep, (struct list_head *)id->provider_data,
			    listenq) {
		struct sockaddr_storage own, peer;

		cep->llp->addrs(cep, &own, &peer);
		if (same_addr((struct sockaddr *)&own, addr))
			return true;
	}
	return false;
}

/* Returns 0 or the first error; an error does not affect other addresses */
static int listen_on_each(struct siw_wild *wild)
{
	struct net_device *ndev = ib_device_get_netdev(wild->id->device,
						       SIW_PORT);
	struct addr_list *list;
	unsigned int i;
	int rv = 0;

	if (!ndev)
		return -ENODEV;
	list = kzalloc_obj(*list);
	if (list)
		collect_addrs(wild->id, ndev, list);
	dev_put(ndev);
	if (!list) {
		schedule_delayed_work(&addr_work, READ_ONCE(again_after));
		return -ENOMEM;
	}
	for (i = 0; i < list->num; i++) {
		struct sockaddr *addr = (struct sockaddr *)&list->addr[i];
		int err;

		if (has_socket(wild->id, addr))
			continue;
		err = siw_listen_on(wild->id, addr, 0, wild->backlog,
				    wild->config);
		if (err == -EADDRNOTAVAIL || err == -ENOMEM)
			list->again = true;
		else if (err)
			pr_warn_ratelimited("siw: %s: cannot listen on %pISpc: %d\n",
					    dev_name(&wild->id->device->dev),
					    addr, err);
		if (err != -EADDRNOTAVAIL)
			rv = rv ?: err;
	}
	if (list->again)
		schedule_delayed_work(&addr_work, READ_ONCE(again_after));
	kfree(list);
	return rv;
}

/**
 * siw_wild_forget - a listener is about to be destroyed
 * @id: the listener, on all addresses or on one
 *
 * From now on no endpoint is added to it.
 */
void siw_wild_forget(struct iw_cm_id *id)
{
	struct siw_wild *wild, *next;

	mutex_lock(&wild_lock);
	list_for_each_entry_safe(wild, next, &wild_listeners, list) {
		if (wild->id == id) {
			list_del(&wild->list);
			iw_mpa_config_put(wild->config);
			kfree(wild);
		}
	}
	mutex_unlock(&wild_lock);
}

/**
 * siw_wild_listen - listen on all addresses of a device
 * @id: the listener
 * @backlog: as requested by the ULP
 *
 * Return: 0, or a negative errno; then there is no endpoint.
 */
int siw_wild_listen(struct iw_cm_id *id, int backlog)
{
	struct siw_wild *wild = kzalloc_obj(*wild);
	int rv;

	if (!wild)
		return -ENOMEM;
	wild->config = iw_mpa_config_get(to_siw_dev(id->device)->mpa, SIW_PORT,
					 iw_cm_options(id));
	if (IS_ERR(wild->config)) {
		rv = PTR_ERR(wild->config);
		kfree(wild);
		return rv;
	}
	wild->id = id;
	wild->backlog = backlog;
	mutex_lock(&wild_lock);
	list_add(&wild->list, &wild_listeners);
	rv = listen_on_each(wild);
	look_after(SIW_WILD_AGAIN_MIN);
	mutex_unlock(&wild_lock);
	if (rv)
		siw_destroy_listen(id);
	return rv;
}

/* ---- addresses that are added later */

static void add_new_addrs(struct work_struct *work)
{
	struct siw_wild *wild;

	mutex_lock(&wild_lock);
	WRITE_ONCE(again_after, min(2 * again_after, SIW_WILD_AGAIN_MAX));
	list_for_each_entry(wild, &wild_listeners, list)
		listen_on_each(wild);
	mutex_unlock(&wild_lock);
}

static int addr_event(struct notifier_block *nb, unsigned long event, void *arg)
{
	/* A new listener looks at the addresses after it is in the list */
	if (event != NETDEV_UP || list_empty(&wild_listeners))
		return NOTIFY_DONE;
	look_after(0);
	return NOTIFY_DONE;
}

static struct notifier_block addr_nb = { .notifier_call = addr_event };
static struct notifier_block __maybe_unused addr6_nb = { .notifier_call = addr_event };
static bool notified;

/**
 * siw_wild_init - watch the addresses of devices
 *
 * Return: 0 or a negative errno
 */
int siw_wild_init(void)
{
	int rv = register_inetaddr_notifier(&addr_nb);

	if (rv)
		return rv;
#if IS_ENABLED(CONFIG_IPV6)
	rv = register_inet6addr_notifier(&addr6_nb);
	if (rv) {
		unregister_inetaddr_notifier(&addr_nb);
		return rv;
	}
#endif
	notified = true;
	return 0;
}

/**
 * siw_wild_exit - stop watching the addresses of devices
 *
 * No listener is left.
 */
void siw_wild_exit(void)
{
	if (!notified)
		return;
#if IS_ENABLED(CONFIG_IPV6)
	unregister_inet6addr_notifier(&addr6_nb);
#endif
	unregister_inetaddr_notifier(&addr_nb);
	cancel_delayed_work_sync(&addr_work);
}
