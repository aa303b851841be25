// SPDX-License-Identifier: GPL-2.0
/*
 * The devices that iw_mpa knows, the layers of policy and the counters.
 *
 * Locks:
 *
 *   iw_mpa_devices_lock  mutex: the list of devices, and who changes a layer.
 *			  Innermost of what sleeps: nothing of ib_core is
 *			  called under it but what takes no lock.
 *   layers_lock	  spin lock: the contents of the layers, which sessions
 *			  copy from any context but interrupts.
 *
 * Lifetimes: a driver registers a device before ib_register_device() and
 * unregisters it in dealloc_driver, when all its endpoints are gone. In between
 * it may be found here, but is only touched under ib_device_try_get().
 */
#include <linux/errno.h>
#include <linux/export.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string.h>

#include <rdma/ib_verbs.h>

#include "device.h"

/* The list, and who changes a layer; see above */
DEFINE_MUTEX(iw_mpa_devices_lock);
LIST_HEAD(iw_mpa_devices);

/* Changes with every layer and with the list; under iw_mpa_devices_lock */
unsigned int iw_mpa_generation = 1;

static DEFINE_SPINLOCK(layers_lock);
static struct iw_mpa_layer default_layer;

static const struct rdma_stat_desc counter_descs[IW_MPA_COUNTERS] = {
	[IW_MPA_REQ_SENT_REV1].name		= "mpa_req_sent_rev1",
	[IW_MPA_REQ_SENT_REV2].name		= "mpa_req_sent_rev2",
	[IW_MPA_REQ_SENT_ENHANCED].name		= "mpa_req_sent_enhanced",
	[IW_MPA_REQ_SENT_SYN].name		= "mpa_req_sent_syn",
	[IW_MPA_REQ_RCVD_REV1].name		= "mpa_req_rcvd_rev1",
	[IW_MPA_REQ_RCVD_REV2].name		= "mpa_req_rcvd_rev2",
	[IW_MPA_REQ_RCVD_ENHANCED].name		= "mpa_req_rcvd_enhanced",
	[IW_MPA_REQ_RCVD_SYN].name		= "mpa_req_rcvd_syn",
	[IW_MPA_REP_SENT_REV1].name		= "mpa_rep_sent_rev1",
	[IW_MPA_REP_SENT_REV2].name		= "mpa_rep_sent_rev2",
	[IW_MPA_REP_SENT_ENHANCED].name		= "mpa_rep_sent_enhanced",
	[IW_MPA_REP_RCVD_REV1].name		= "mpa_rep_rcvd_rev1",
	[IW_MPA_REP_RCVD_REV2].name		= "mpa_rep_rcvd_rev2",
	[IW_MPA_REP_RCVD_ENHANCED].name		= "mpa_rep_rcvd_enhanced",
	[IW_MPA_REJECT_SENT].name		= "mpa_reject_sent",
	[IW_MPA_REJECT_RCVD].name		= "mpa_reject_rcvd",
	[IW_MPA_RTR_SENT_SEND].name		= "mpa_rtr_sent_send",
	[IW_MPA_RTR_SENT_WRITE].name		= "mpa_rtr_sent_write",
	[IW_MPA_RTR_SENT_READ].name		= "mpa_rtr_sent_read",
	[IW_MPA_RTR_RCVD_SEND].name		= "mpa_rtr_rcvd_send",
	[IW_MPA_RTR_RCVD_WRITE].name		= "mpa_rtr_rcvd_write",
	[IW_MPA_RTR_RCVD_READ].name		= "mpa_rtr_rcvd_read",
	[IW_MPA_RTR_RCVD_OTHER].name		= "mpa_rtr_rcvd_other",
	[IW_MPA_TERM_SENT_LOCAL].name		= "mpa_term_sent_local",
	[IW_MPA_TERM_SENT_IRD].name		= "mpa_term_sent_ird",
	[IW_MPA_TERM_SENT_RTR].name		= "mpa_term_sent_rtr",
	[IW_MPA_TERM_RCVD_LOCAL].name		= "mpa_term_rcvd_local",
	[IW_MPA_TERM_RCVD_IRD].name		= "mpa_term_rcvd_ird",
	[IW_MPA_TERM_RCVD_RTR].name		= "mpa_term_rcvd_rtr",
	[IW_MPA_TERM_RCVD_OTHER].name		= "mpa_term_rcvd_other",
	[IW_MPA_TIMEOUT_CONNECT].name		= "mpa_timeout_connect",
	[IW_MPA_TIMEOUT_REQUEST].name		= "mpa_timeout_request",
	[IW_MPA_TIMEOUT_DECIDE].name		= "mpa_timeout_decide",
	[IW_MPA_TIMEOUT_RTR].name		= "mpa_timeout_rtr",
	[IW_MPA_TIMEOUT_REPLY].name		= "mpa_timeout_reply",
	[IW_MPA_BAD_KEY].name			= "mpa_bad_key",
	[IW_MPA_BAD_REV].name			= "mpa_bad_rev",
	[IW_MPA_BAD_PDATA_LEN].name		= "mpa_bad_pdata_len",
	[IW_MPA_BAD_BLOCK].name			= "mpa_bad_block",
	[IW_MPA_BAD_TRAILING].name		= "mpa_bad_trailing",
	[IW_MPA_FALLBACKS].name			= "mpa_fallbacks",
	[IW_MPA_ESTABLISHED_INITIATOR].name	= "mpa_established_initiator",
	[IW_MPA_ESTABLISHED_RESPONDER].name	= "mpa_established_responder",
	[IW_MPA_FAILED_INITIATOR].name		= "mpa_failed_initiator",
	[IW_MPA_FAILED_RESPONDER].name		= "mpa_failed_responder",
	[IW_MPA_HALF_OPEN].name			= "mpa_half_open",
};

const char *iw_mpa_counter_name(enum iw_mpa_counter counter)
{
	return counter_descs[counter].name;
}

/* A part may be below zero: what one CPU opens, another closes */
u64 iw_mpa_counter_read(const struct iw_mpa_port *port,
			enum iw_mpa_counter counter)
{
	s64 sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += READ_ONCE(per_cpu_ptr(port->counters, cpu)->n[counter]);
	return max_t(s64, sum, 0);
}

/**
 * iw_mpa_alloc_port_stats - for a driver's alloc_hw_port_stats
 *
 * Return: the statistics or NULL.
 */
struct rdma_hw_stats *iw_mpa_alloc_port_stats(void)
{
	return rdma_alloc_hw_stats_struct(counter_descs, IW_MPA_COUNTERS,
					  RDMA_HW_STATS_DEFAULT_LIFESPAN);
}
EXPORT_SYMBOL_GPL(iw_mpa_alloc_port_stats);

/**
 * iw_mpa_get_port_stats - for a driver's get_hw_stats
 * @dev: the device
 * @port_num: the port, from 1
 * @stats: filled
 *
 * Return: number of counters, or -EINVAL if there is no such port.
 */
int iw_mpa_get_port_stats(struct iw_mpa_device *dev, u32 port_num,
			  struct rdma_hw_stats *stats)
{
	int i;

	if (!port_num || port_num > dev->ports)
		return -EINVAL;
	for (i = 0; i < IW_MPA_COUNTERS; i++)
		stats->value[i] = iw_mpa_counter_read(&dev->port[port_num - 1],
						      i);
	return IW_MPA_COUNTERS;
}
EXPORT_SYMBOL_GPL(iw_mpa_get_port_stats);

/*
 * The device of that index, with a reference, or NULL. Under
 * iw_mpa_devices_lock. Namespaces are the caller's to look at.
 */
struct iw_mpa_device *iw_mpa_find_device(u32 index)
{
	struct iw_mpa_device *dev;

	lockdep_assert_held(&iw_mpa_devices_lock);
	list_for_each_entry(dev, &iw_mpa_devices, list)
		/* It has no index before it can be had */
		if (ib_device_try_get(dev->ibdev)) {
			if (dev->ibdev->index == index)
				return dev;
			ib_device_put(dev->ibdev);
		}
	return NULL;
}

static void apply(const struct iw_mpa_layer *layer, enum rdma_mpa_layer name,
		  struct iw_mpa_view *view)
{
	int i;

	iw_mpa_layer_apply(layer, &view->effective);
	for (i = 0; i < __RDMA_MPA_POLICY_NUM; i++)
		if (layer->set & BIT(i))
			view->origin[i] = name;
	view->own = *layer;
}

/* The layers from the bottom up to @place. Needs layers_lock. */
static void look(const struct iw_mpa_place *place, struct iw_mpa_view *view)
{
	memset(view, 0, sizeof(*view));
	view->effective = place->dev ? place->dev->initial :
				       iw_mpa_default_policy;
	apply(&default_layer, RDMA_MPA_LAYER_DEFAULT, view);
	if (place->dev)
		apply(&place->dev->layer, RDMA_MPA_LAYER_DEVICE, view);
	if (place->port)
		apply(&place->port->layer, RDMA_MPA_LAYER_PORT, view);

	/* What is used if it is asked for is not asked for where it is missing */
	if (place->dev && place->dev->caps.no_crc &&
	    view->effective.crc == IW_MPA_CRC_IF_ASKED)
		view->effective.crc = IW_MPA_CRC_OFF;
	/* Nor is what saves time where it can be had */
	if (place->dev && !place->dev->caps.fastopen)
		view->effective.fastopen = false;
}

/* What one place says and what holds there. Any context but interrupts. */
void iw_mpa_view(const struct iw_mpa_place *place, struct iw_mpa_view *view)
{
	spin_lock_bh(&layers_lock);
	look(place, view);
	spin_unlock_bh(&layers_lock);
}

static struct iw_mpa_layer *layer_of(const struct iw_mpa_place *place)
{
	if (place->port)
		return &place->port->layer;
	return place->dev ? &place->dev->layer : &default_layer;
}

static int check_place(struct iw_mpa_device *dev, struct iw_mpa_port *port,
		       char *why, size_t size)
{
	struct iw_mpa_place place = { dev, port };
	struct iw_mpa_view view;
	char reason[96];
	int rv;

	look(&place, &view);
	rv = iw_mpa_policy_explain(&view.effective, &dev->caps, reason,
				   sizeof(reason));
	if (rv && port)
		scnprintf(why, size, "%s/%u: %s", dev_name(&dev->ibdev->dev),
			  port->num, reason);
	else if (rv)
		scnprintf(why, size, "%s: %s", dev_name(&dev->ibdev->dev),
			  reason);
	return rv;
}

static int check_device(struct iw_mpa_device *dev, char *why, size_t size)
{
	u32 i;
	int rv;

	rv = check_place(dev, NULL, why, size);
	for (i = 0; i < dev->ports && !rv; i++)
		rv = check_place(dev, &dev->port[i], why, size);
	return rv;
}

/* Can everything above the layer of @place live with it? */
static int check_above(const struct iw_mpa_place *place, char *why, size_t size)
{
	static const struct iw_mpa_caps anything = {
		.max_ird = IW_MPA_DEPTH_MAX,
		.max_ord = IW_MPA_DEPTH_MAX,
		.rtr_send = IW_MPA_RTR_ALL,
		.rtr_recv = IW_MPA_RTR_ALL,
	};
	struct iw_mpa_device *dev;
	struct iw_mpa_view view;
	int rv;

	if (place->port)
		return check_place(place->dev, place->port, why, size);
	if (place->dev)
		return check_device(place->dev, why, size);

	look(place, &view);
	rv = iw_mpa_policy_explain(&view.effective, &anything, why, size);
	if (rv)
		return rv;
	list_for_each_entry(dev, &iw_mpa_devices, list) {
		if (!ib_device_try_get(dev->ibdev))
			continue;
		rv = check_device(dev, why, size);
		ib_device_put(dev->ibdev);
		if (rv)
			return rv;
	}
	return 0;
}

/**
 * iw_mpa_change - replace a layer
 * @place: which
 * @layer: what it is to be
 * @why: filled with the reason, if it cannot be
 * @size: size of @why in bytes
 *
 * Needs iw_mpa_devices_lock and, unless it is the default layer, a reference on
 * the device.
 *
 * Return: 0, or -EINVAL if a device cannot do what would come of it; then nothing
 * has changed.
 */
int iw_mpa_change(const struct iw_mpa_place *place,
		  const struct iw_mpa_layer *layer, char *why, size_t size)
{
	struct iw_mpa_layer *held = layer_of(place);
	struct iw_mpa_layer was = *held;
	int rv;

	lockdep_assert_held(&iw_mpa_devices_lock);
	if (place->dev) {
		rv = iw_mpa_layer_check(layer, &place->dev->caps, why, size);
		if (rv)
			return rv;
	}
	/* Nobody sees it before it has been checked */
	spin_lock_bh(&layers_lock);
	*held = *layer;
	rv = check_above(place, why, size);
	if (rv)
		*held = was;
	spin_unlock_bh(&layers_lock);
	if (!rv)
		iw_mpa_generation++;
	return rv;
}

/**
 * iw_mpa_register_device - make a device known
 * @ibdev: the device, not yet registered
 * @caps: what it can do; copied
 * @initial: the policy that holds for it where nothing is set, what a driver's
 *	parameters ask for; copied. NULL for %iw_mpa_default_policy.
 * @ops: the driver's; must outlive the device
 *
 * May sleep.
 *
 * Return: what the driver's sessions are opened on, or an ERR_PTR.
 */
struct iw_mpa_device *iw_mpa_register_device(struct ib_device *ibdev,
					     const struct iw_mpa_caps *caps,
					     const struct iw_mpa_policy *initial,
					     const struct iw_mpa_device_ops *ops)
{
	struct iw_mpa_device *dev;
	u32 i;

	dev = kzalloc(struct_size(dev, port, ibdev->phys_port_cnt), GFP_KERNEL);
	if (!dev)
		return ERR_PTR(-ENOMEM);

	dev->ibdev = ibdev;
	dev->caps = *caps;
	dev->initial = initial ? *initial : iw_mpa_default_policy;
	dev->ops = ops;
	for (i = 0; i < ibdev->phys_port_cnt; i++) {
		struct iw_mpa_port *port = &dev->port[i];

		port->dev = dev;
		port->num = i + 1;
		port->counters = alloc_percpu(struct iw_mpa_counters);
		if (!port->counters)
			goto error;
		dev->ports++;
	}
	mutex_lock(&iw_mpa_devices_lock);
	list_add_tail(&dev->list, &iw_mpa_devices);
	iw_mpa_generation++;
	mutex_unlock(&iw_mpa_devices_lock);
	return dev;

error:
	for (i = 0; i < dev->ports; i++)
		free_percpu(dev->port[i].counters);
	kfree(dev);
	return ERR_PTR(-ENOMEM);
}
EXPORT_SYMBOL_GPL(iw_mpa_register_device);

/**
 * iw_mpa_unregister_device - forget a device, its policies and its counters
 * @dev: the device, without sessions; may be NULL
 *
 * Once ib_core has no reference left, or if it never had one. May sleep.
 */
void iw_mpa_unregister_device(struct iw_mpa_device *dev)
{
	u32 i;

	if (!dev)
		return;
	mutex_lock(&iw_mpa_devices_lock);
	list_del(&dev->list);
	iw_mpa_generation++;
	mutex_unlock(&iw_mpa_devices_lock);

	for (i = 0; i < dev->ports; i++)
		free_percpu(dev->port[i].counters);
	kfree(dev);
}
EXPORT_SYMBOL_GPL(iw_mpa_unregister_device);

/**
 * iw_mpa_session_open - prepare a session under the policy of its port
 * @s: the session
 * @ops: the driver
 * @dev: the device
 * @port_num: the port, from 1
 * @options: what the ULP wants for this connection alone; may be NULL
 *
 * What is set later does not matter to it. Any context but interrupts.
 *
 * Return: 0, or -EINVAL if the device cannot do what is asked for.
 */
int iw_mpa_session_open(struct iw_mpa_session *s, const struct iw_mpa_ops *ops,
			struct iw_mpa_device *dev, u32 port_num,
			const struct iw_mpa_layer *options)
{
	struct iw_mpa_place place = { .dev = dev };
	struct iw_mpa_view view;
	int rv;

	if (!port_num || port_num > dev->ports)
		return -EINVAL;
	place.port = &dev->port[port_num - 1];
	iw_mpa_view(&place, &view);
	if (options)
		iw_mpa_layer_apply(options, &view.effective);

	rv = iw_mpa_session_init(s, ops, &dev->caps, &view.effective);
	s->port = place.port;
	return rv;
}
EXPORT_SYMBOL_GPL(iw_mpa_session_open);
