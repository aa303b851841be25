// SPDX-License-Identifier: GPL-2.0
/*
 * Registered devices, layers of settings, counters.
 *
 * Locks:
 *
 *   iw_mpa_devices_lock  mutex: the list of devices, and the layers. Its
 *			  holder calls no function of ib_core that takes a lock.
 *   effective_lock	  spin lock: the settings in force at each port, which
 *			  sessions copy.
 *
 * Lifetimes: a driver registers a device before ib_register_device() and
 * unregisters it in dealloc_driver, when all its endpoints are gone. In between
 * the device is on the list, but is used only with a reference of
 * ib_device_try_get().
 *
 * A device applies the settings of the default layer that it supports and
 * ignores the rest. So a default can be set before a device exists, and the
 * owner of a device cannot block a default. The settings of a device and of its
 * ports must be valid without the default layer.
 */
#include <linux/errno.h>
#include <linux/export.h>
#include <linux/minmax.h>
#include <linux/netdevice.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string.h>

#include <kunit/visibility.h>
#include <rdma/ib_verbs.h>
#include <rdma/iw_cm.h>

#include "device.h"
#include "session.h"

LIST_HEAD(iw_mpa_devices);
/* The devices and their layers; see the top of this file */
DEFINE_MUTEX(iw_mpa_devices_lock);
EXPORT_SYMBOL_IF_KUNIT(iw_mpa_devices_lock);

/* Incremented with each change of layers or list; under iw_mpa_devices_lock */
unsigned int iw_mpa_generation = 1;
EXPORT_SYMBOL_IF_KUNIT(iw_mpa_generation);

static struct iw_mpa_layer default_layer;
static DEFINE_SPINLOCK(effective_lock);
/* The last policy_id that was assigned; under effective_lock */
static u32 last_policy_id;

/* ---- counters */

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
	[IW_MPA_STARTED_INITIATOR].name		= "mpa_started_initiator",
	[IW_MPA_STARTED_RESPONDER].name		= "mpa_started_responder",
	[IW_MPA_ESTABLISHED_INITIATOR].name	= "mpa_established_initiator",
	[IW_MPA_ESTABLISHED_RESPONDER].name	= "mpa_established_responder",
	[IW_MPA_FAILED_INITIATOR].name		= "mpa_failed_initiator",
	[IW_MPA_FAILED_RESPONDER].name		= "mpa_failed_responder",
};

static u64 read_counter(const struct iw_mpa_port *port,
			enum iw_mpa_counter counter)
{
	u64 sum = 0;
	int cpu;

	for_each_possible_cpu(cpu) {
		const struct iw_mpa_counters *c =
			per_cpu_ptr(port->counters, cpu);
		unsigned int start;
		u64 value;

		do {
			start = u64_stats_fetch_begin(&c->syncp);
			value = u64_stats_read(&c->n[counter]);
		} while (u64_stats_fetch_retry(&c->syncp, start));
		sum += value;
	}
	return sum;
}

/**
 * iw_mpa_alloc_port_stats - allocate for a driver's alloc_hw_port_stats
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
 * iw_mpa_get_port_stats - read counters for a driver's get_hw_stats
 * @dev: the device
 * @port_num: the port, from 1
 * @stats: filled
 *
 * Return: number of counters, or -EINVAL if the port does not exist.
 */
int iw_mpa_get_port_stats(struct iw_mpa_device *dev, u32 port_num,
			  struct rdma_hw_stats *stats)
{
	int i;

	if (!port_num || port_num > dev->ports)
		return -EINVAL;
	for (i = 0; i < IW_MPA_COUNTERS; i++)
		stats->value[i] = read_counter(&dev->port[port_num - 1], i);
	return IW_MPA_COUNTERS;
}
EXPORT_SYMBOL_GPL(iw_mpa_get_port_stats);

/* ---- layers */

/* Applies all layers, but only the settings in @taken of the default layer */
static void compute_policy(const struct iw_mpa_place *place, u32 taken,
			   struct iw_mpa_policy *policy)
{
	const struct iw_mpa_device *dev = place->dev;

	*policy = dev ? dev->initial : iw_mpa_default_policy;
	iw_mpa_layer_apply(&default_layer, taken, policy);
	if (dev)
		iw_mpa_layer_apply(&dev->layer, ~0U, policy);
	if (place->port)
		iw_mpa_layer_apply(&place->port->layer, ~0U, policy);
}

static bool is_possible(const struct iw_mpa_place *place, u32 taken)
{
	struct iw_mpa_policy policy;
	char why[8];

	compute_policy(place, taken, &policy);
	return !iw_mpa_policy_explain(&policy, &place->dev->driver.caps, why,
				      sizeof(why));
}

/* The settings of the default layer that a device supports */
static u32 settings_taken(const struct iw_mpa_place *place)
{
	enum rdma_mpa_setting setting;
	u32 able, taken = 0;
	char why[8];

	if (!place->dev)
		return default_layer.set;
	able = default_layer.set &
	       ~iw_mpa_layer_unable(&default_layer, &place->dev->driver.caps,
				    why, sizeof(why));
	if (is_possible(place, able))
		return able;
	/* A default contradicts the device's own settings or capabilities */
	iw_mpa_for_each_setting(setting)
		if (able & BIT(setting) &&
		    is_possible(place, taken | BIT(setting)))
			taken |= BIT(setting);
	return taken;
}

/*
 * Without support a device ignores inherited `crc if-asked`, `fastopen on` and
 * `streams N`
 */
static void drop_wishes(const struct iw_mpa_caps *caps,
			struct iw_mpa_policy *policy)
{
	if (caps->no_crc && policy->crc == RDMA_MPA_CRC_IF_ASKED)
		policy->crc = RDMA_MPA_CRC_OFF;
	if (!caps->fastopen)
		policy->fastopen = false;
	if (!caps->streams)
		policy->streams = 1;
}

static struct iw_mpa_layer *layer_of(const struct iw_mpa_place *place)
{
	if (place->port)
		return &place->port->layer;
	return place->dev ? &place->dev->layer : &default_layer;
}

static void mark_origin(struct iw_mpa_view *view, u32 set,
			enum rdma_mpa_layer layer)
{
	enum rdma_mpa_setting setting;

	iw_mpa_for_each_setting(setting)
		if (set & BIT(setting))
			view->origin[setting] = layer;
}

/**
 * iw_mpa_view_place - collect the settings at one place and their origins
 * @place: the place
 * @view: filled
 *
 * Needs iw_mpa_devices_lock.
 */
void iw_mpa_view_place(const struct iw_mpa_place *place,
		       struct iw_mpa_view *view)
{
	u32 taken = settings_taken(place);

	lockdep_assert_held(&iw_mpa_devices_lock);
	memset(view, 0, sizeof(*view));
	view->own = *layer_of(place);
	view->not_taken = default_layer.set & ~taken;
	compute_policy(place, taken, &view->effective);
	mark_origin(view, taken, RDMA_MPA_LAYER_DEFAULT);
	if (!place->dev)
		return;
	drop_wishes(&place->dev->driver.caps, &view->effective);
	mark_origin(view, place->dev->layer.set, RDMA_MPA_LAYER_DEVICE);
	if (place->port)
		mark_origin(view, place->port->layer.set, RDMA_MPA_LAYER_PORT);
}
EXPORT_SYMBOL_IF_KUNIT(iw_mpa_view_place);

/* Returns the settings of the default layer that the device's ports ignore */
static u32 update_device(struct iw_mpa_device *dev)
{
	struct iw_mpa_place place = { .dev = dev };
	struct iw_mpa_view view;
	u32 i, not_taken = 0;

	for (i = 0; i < dev->ports; i++) {
		place.port = &dev->port[i];
		iw_mpa_view_place(&place, &view);
		not_taken |= view.not_taken;
		spin_lock_bh(&effective_lock);
		dev->port[i].effective = view.effective;
		dev->port[i].policy_id = ++last_policy_id;
		spin_unlock_bh(&effective_lock);
	}
	return not_taken;
}

/* Logs one line for a device if its list of ignored settings has grown */
static void log_not_taken(struct iw_mpa_device *dev)
{
	u32 mask = READ_ONCE(dev->not_taken);
	enum rdma_mpa_setting setting;
	char names[160];
	size_t len = 0;

	if (!(mask & ~READ_ONCE(dev->told)))
		return;
	WRITE_ONCE(dev->told, mask);
	iw_mpa_for_each_setting(setting)
		if (mask & BIT(setting))
			len += scnprintf(names + len, sizeof(names) - len,
					 "%s%s", len ? ", " : "",
					 iw_mpa_setting_str(setting));
	dev_notice(&dev->ibdev->dev,
		   "iw_mpa: defaults not applied, the device or its own settings exclude them: %s\n",
		   names);
}

/* ---- changes */

/* The settings of a device must be valid without the default layer */
static int check_place(struct iw_mpa_device *dev, struct iw_mpa_port *port,
		       char *why, size_t size)
{
	struct iw_mpa_place place = { dev, port };
	struct iw_mpa_policy policy;
	char name[IB_DEVICE_NAME_MAX];
	char reason[96];
	int rv;

	compute_policy(&place, 0, &policy);
	iw_mpa_device_name(dev, name);
	rv = iw_mpa_policy_explain(&policy, &dev->driver.caps, reason,
				   sizeof(reason));
	if (rv && port)
		scnprintf(why, size, "%s/%u: %s", name, port->num, reason);
	else if (rv)
		scnprintf(why, size, "%s: %s", name, reason);
	return rv;
}

static int check_device(const struct iw_mpa_place *place, char *why,
			size_t size)
{
	struct iw_mpa_device *dev = place->dev;
	u32 i;
	int rv;

	if (iw_mpa_layer_unable(layer_of(place), &dev->driver.caps, why, size))
		return -EINVAL;
	if (place->port)
		return check_place(dev, place->port, why, size);
	rv = check_place(dev, NULL, why, size);
	for (i = 0; i < dev->ports && !rv; i++)
		rv = check_place(dev, &dev->port[i], why, size);
	return rv;
}

/* Some device must be able to support the default layer */
static int check_default(char *why, size_t size)
{
	static const struct iw_mpa_caps anything = {
		.max_ird = IW_MPA_DEPTH_MAX,
		.max_ord = IW_MPA_DEPTH_MAX,
		.rtr_send = IW_MPA_RTR_ALL,
		.rtr_recv = IW_MPA_RTR_ALL,
		.large = true,
		.streams = true,
	};
	struct iw_mpa_place place = {};
	struct iw_mpa_policy policy;

	compute_policy(&place, ~0U, &policy);
	return iw_mpa_policy_explain(&policy, &anything, why, size);
}

static void update_devices(void)
{
	struct iw_mpa_device *dev;

	list_for_each_entry(dev, &iw_mpa_devices, list) {
		WRITE_ONCE(dev->not_taken, update_device(dev));
		/* The device has no name before it is registered */
		if (!ib_device_try_get(dev->ibdev))
			continue;
		log_not_taken(dev);
		ib_device_put(dev->ibdev);
	}
}

static void apply_change(const struct iw_mpa_change *change,
			 struct iw_mpa_layer *layer)
{
	u32 kept = layer->set & ~change->unset & ~change->layer.set;
	struct iw_mpa_layer was = *layer;
	enum rdma_mpa_setting setting;

	*layer = change->layer;
	iw_mpa_for_each_setting(setting)
		if (kept & BIT(setting))
			iw_mpa_layer_set(layer, setting,
					 iw_mpa_setting_get(&was.value,
							    setting));
}

/**
 * iw_mpa_change_layer - change a layer
 * @place: place of the layer
 * @change: the change
 * @why: filled with the reason if the change is rejected
 * @size: size of @why in bytes
 *
 * Needs iw_mpa_devices_lock and, unless @place is the default layer, a
 * reference on the device.
 *
 * Return: 0, or -EINVAL if the settings contradict each other or the device
 * does not support them; then nothing has changed.
 */
int iw_mpa_change_layer(const struct iw_mpa_place *place,
			const struct iw_mpa_change *change, char *why,
			size_t size)
{
	struct iw_mpa_layer *held = layer_of(place);
	struct iw_mpa_layer was = *held;
	int rv;

	lockdep_assert_held(&iw_mpa_devices_lock);
	apply_change(change, held);
	rv = place->dev ? check_device(place, why, size) :
			  check_default(why, size);
	if (rv) {
		*held = was;
		return rv;
	}
	iw_mpa_generation++;
	if (place->dev)
		WRITE_ONCE(place->dev->not_taken, update_device(place->dev));
	else
		update_devices();
	return 0;
}
EXPORT_SYMBOL_IF_KUNIT(iw_mpa_change_layer);

/* ---- devices */

/**
 * iw_mpa_find_device - find a device
 * @index: its index, as in nldev
 *
 * Needs iw_mpa_devices_lock. The caller checks network namespaces.
 *
 * Return: the device, with a reference on its ib_device, or NULL
 */
struct iw_mpa_device *iw_mpa_find_device(u32 index)
{
	struct iw_mpa_device *dev;

	lockdep_assert_held(&iw_mpa_devices_lock);
	list_for_each_entry(dev, &iw_mpa_devices, list)
		/* The device has no index before it is registered */
		if (ib_device_try_get(dev->ibdev)) {
			if (dev->ibdev->index == index)
				return dev;
			ib_device_put(dev->ibdev);
		}
	return NULL;
}
EXPORT_SYMBOL_IF_KUNIT(iw_mpa_find_device);

static int init_policy(struct iw_mpa_device *dev)
{
	const struct iw_mpa_driver *driver = &dev->driver;
	struct iw_mpa_layer layer = {};
	unsigned int i;
	char why[8];

	for (i = 0; i < driver->num_initial; i++)
		if (iw_mpa_layer_set(&layer, driver->initial[i].setting,
				     driver->initial[i].value))
			return -EINVAL;
	dev->initial = iw_mpa_default_policy;
	dev->initial.markers = driver->caps.rx_markers;
	iw_mpa_layer_apply(&layer, ~0U, &dev->initial);
	return iw_mpa_policy_explain(&dev->initial, &driver->caps, why,
				     sizeof(why));
}

static void free_device(struct iw_mpa_device *dev)
{
	u32 i;

	for (i = 0; i < dev->ports; i++)
		free_percpu(dev->port[i].counters);
	kfree(dev);
}

static int init_ports(struct iw_mpa_device *dev, u32 count)
{
	u32 i;

	for (i = 0; i < count; i++) {
		struct iw_mpa_port *port = &dev->port[i];

		port->dev = dev;
		port->num = i + 1;
		port->counters =
			netdev_alloc_pcpu_stats(struct iw_mpa_counters);
		if (!port->counters)
			return -ENOMEM;
		dev->ports++;
	}
	return 0;
}

/**
 * iw_mpa_register_device - add a device
 * @ibdev: the device, not yet registered, with its ports
 * @driver: its driver and capabilities; copied
 *
 * May sleep.
 *
 * Return: the device for iw_mpa, or an ERR_PTR: -ENOMEM, or -EINVAL if the
 * device does not support its initial settings
 */
struct iw_mpa_device *iw_mpa_register_device(struct ib_device *ibdev,
					     const struct iw_mpa_driver *driver)
{
	struct iw_mpa_device *dev;
	int rv;

	dev = kzalloc(struct_size(dev, port, ibdev->phys_port_cnt), GFP_KERNEL);
	if (!dev)
		return ERR_PTR(-ENOMEM);

	dev->ibdev = ibdev;
	dev->driver = *driver;
	rv = init_policy(dev) ?: init_ports(dev, ibdev->phys_port_cnt);
	if (rv) {
		free_device(dev);
		return ERR_PTR(rv);
	}
	/* The driver may free its array after registration */
	dev->driver.initial = NULL;
	mutex_lock(&iw_mpa_devices_lock);
	list_add_tail(&dev->list, &iw_mpa_devices);
	dev->not_taken = update_device(dev);
	iw_mpa_generation++;
	mutex_unlock(&iw_mpa_devices_lock);
	return dev;
}
EXPORT_SYMBOL_GPL(iw_mpa_register_device);

/**
 * iw_mpa_unregister_device - remove a device, its settings and its counters
 * @dev: the device, without sessions; may be NULL
 *
 * The driver calls this when ib_core has no reference left, or if ib_core
 * never had one. May sleep.
 */
void iw_mpa_unregister_device(struct iw_mpa_device *dev)
{
	if (!dev)
		return;
	mutex_lock(&iw_mpa_devices_lock);
	list_del(&dev->list);
	iw_mpa_generation++;
	mutex_unlock(&iw_mpa_devices_lock);
	free_device(dev);
}
EXPORT_SYMBOL_GPL(iw_mpa_unregister_device);

/* ---- sessions */

static int fill_config(struct iw_mpa_config *config, struct iw_mpa_device *dev,
		       u32 port_num, const struct iw_mpa_layer *options)
{
	struct iw_mpa_policy policy;
	struct iw_mpa_port *port;
	u32 policy_id;
	int rv;

	if (!port_num || port_num > dev->ports)
		return -EINVAL;
	port = &dev->port[port_num - 1];
	spin_lock_bh(&effective_lock);
	policy = port->effective;
	policy_id = port->policy_id;
	spin_unlock_bh(&effective_lock);
	log_not_taken(dev);

	rv = iw_mpa_config_init(config, dev->driver.ops, &dev->driver.caps,
				&policy);
	config->port = port;
	config->policy_id = policy_id;
	return rv ?: iw_mpa_config_apply(config, options);
}

/**
 * iw_mpa_config_get - settings for the connections of a listener
 * @dev: the device
 * @port_num: the port, from 1
 * @options: options of the ULP for this listener; may be NULL
 *
 * Later changes of settings have no effect on the listener. May sleep.
 *
 * Return: the settings, to be freed with iw_mpa_config_put(), or an ERR_PTR:
 * -ENOMEM, or -EINVAL if the device does not support @options
 */
struct iw_mpa_config *iw_mpa_config_get(struct iw_mpa_device *dev, u32 port_num,
					const struct iw_mpa_layer *options)
{
	struct iw_mpa_config *config = kzalloc(sizeof(*config), GFP_KERNEL);
	int rv;

	if (!config)
		return ERR_PTR(-ENOMEM);
	rv = fill_config(config, dev, port_num, options);
	if (!rv)
		return config;
	kfree(config);
	return ERR_PTR(rv);
}
EXPORT_SYMBOL_GPL(iw_mpa_config_get);

/**
 * iw_mpa_config_dup - copy the settings of a listener
 * @config: the settings
 *
 * For a listener with several sockets. May sleep.
 *
 * Return: the copy, to be freed with iw_mpa_config_put(), or %NULL if there is
 * no memory
 */
struct iw_mpa_config *iw_mpa_config_dup(const struct iw_mpa_config *config)
{
	return kmemdup(config, sizeof(*config), GFP_KERNEL);
}
EXPORT_SYMBOL_GPL(iw_mpa_config_dup);

/**
 * iw_mpa_config_put - free the settings of a listener
 * @config: the settings, or NULL
 */
void iw_mpa_config_put(struct iw_mpa_config *config)
{
	kfree(config);
}
EXPORT_SYMBOL_GPL(iw_mpa_config_put);

/**
 * iw_mpa_config_fast_open - may a listener accept Requests in SYNs (RFC 7413)?
 * @config: its settings
 *
 * Return: true if so
 */
bool iw_mpa_config_fast_open(const struct iw_mpa_config *config)
{
	return config->policy.fastopen && config->caps.fastopen;
}
EXPORT_SYMBOL_GPL(iw_mpa_config_fast_open);

/**
 * iw_mpa_config_streams - how many sessions may an association carry?
 * @config: settings of a listener
 *
 * Return: a number, at least 1
 */
unsigned int iw_mpa_config_streams(const struct iw_mpa_config *config)
{
	return config->policy.streams;
}
EXPORT_SYMBOL_GPL(iw_mpa_config_streams);

/**
 * iw_mpa_config_idle - how long may an association be without a session?
 * @config: settings of a listener
 *
 * Return: a time in seconds, for the side that has opened it; twice as long for
 * the other side
 */
unsigned int iw_mpa_config_idle(const struct iw_mpa_config *config)
{
	return config->policy.idle;
}
EXPORT_SYMBOL_GPL(iw_mpa_config_idle);

/**
 * iw_mpa_session_streams - how many sessions may an association carry?
 * @s: a session that is not established
 *
 * Return: a number, at least 1
 */
unsigned int iw_mpa_session_streams(const struct iw_mpa_session *s)
{
	return s->setup->config.policy.streams;
}
EXPORT_SYMBOL_GPL(iw_mpa_session_streams);

/**
 * iw_mpa_session_idle - how long may an association be without a session?
 * @s: a session that is not established
 *
 * Return: as iw_mpa_config_idle()
 */
unsigned int iw_mpa_session_idle(const struct iw_mpa_session *s)
{
	return s->setup->config.policy.idle;
}
EXPORT_SYMBOL_GPL(iw_mpa_session_idle);

/**
 * iw_mpa_session_open - prepare an initiator's session
 * @s: the session
 * @dev: the device
 * @port_num: the port, from 1
 * @options: options of the ULP for this connection; may be NULL
 *
 * Later changes of settings have no effect on the session. May sleep.
 *
 * Return: 0, -ENOMEM, or -EINVAL if the device does not support @options. After
 * an error iw_mpa_session_close() need not be called.
 */
int iw_mpa_session_open(struct iw_mpa_session *s, struct iw_mpa_device *dev,
			u32 port_num, const struct iw_mpa_layer *options)
{
	struct iw_mpa_config config;
	int rv;

	memset(s, 0, sizeof(*s));
	rv = fill_config(&config, dev, port_num, options);
	return rv ?: iw_mpa_session_inherit(s, &config);
}
EXPORT_SYMBOL_GPL(iw_mpa_session_open);

/* ---- events */

/**
 * iw_mpa_fill_cm_event - convert a session's event to an event for iw_cm
 * @cm: event for iw_cm; its type, addresses and provider data are not set
 * @ev: event of the session
 *
 * The event of iw_cm has 8 bits for each depth and for the length of the
 * private data: a larger value becomes 255. Its ird is the number of Reads that
 * the ULP may issue, its ord the number that the peer may issue, since rdma_cm
 * copies them to initiator_depth and responder_resources. They are the depths
 * in force or, if there is no connection, the peer's, 0 if the peer has not
 * sent any. Any context.
 */
void iw_mpa_fill_cm_event(struct iw_cm_event *cm,
			  const struct iw_mpa_event *ev)
{
	cm->status = ev->status;
	cm->ird = min_t(u16, ev->status ? ev->peer_ird : ev->ord, U8_MAX);
	cm->ord = min_t(u16, ev->status ? ev->peer_ord : ev->ird, U8_MAX);
	cm->private_data_len = min_t(u16, ev->pdata_len, U8_MAX);
	/* ULPs test the pointer, iw_cm the length: set both or neither */
	cm->private_data = ev->pdata_len ? (void *)ev->pdata : NULL;
}
EXPORT_SYMBOL_GPL(iw_mpa_fill_cm_event);
