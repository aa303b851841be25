/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Devices registered with iw_mpa: their settings and counters.
 */
#ifndef _IW_MPA_DEVICE_H
#define _IW_MPA_DEVICE_H

#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/string.h>
#include <linux/u64_stats_sync.h>

#include <rdma/ib_verbs.h>
#include <rdma/iw_mpa.h>

#include "policy.h"

/* Counters of a port, all monotonic; device.c has their names */
enum iw_mpa_counter {
	IW_MPA_REQ_SENT_REV1,
	IW_MPA_REQ_SENT_REV2,
	IW_MPA_REQ_SENT_ENHANCED,
	IW_MPA_REQ_SENT_SYN,
	IW_MPA_REQ_RCVD_REV1,
	IW_MPA_REQ_RCVD_REV2,
	IW_MPA_REQ_RCVD_ENHANCED,
	IW_MPA_REQ_RCVD_SYN,
	IW_MPA_REP_SENT_REV1,
	IW_MPA_REP_SENT_REV2,
	IW_MPA_REP_SENT_ENHANCED,
	IW_MPA_REP_RCVD_REV1,
	IW_MPA_REP_RCVD_REV2,
	IW_MPA_REP_RCVD_ENHANCED,
	IW_MPA_REJECT_SENT,
	IW_MPA_REJECT_RCVD,
	IW_MPA_RTR_SENT_SEND,
	IW_MPA_RTR_SENT_WRITE,
	IW_MPA_RTR_SENT_READ,
	IW_MPA_RTR_RCVD_SEND,
	IW_MPA_RTR_RCVD_WRITE,
	IW_MPA_RTR_RCVD_READ,
	IW_MPA_RTR_RCVD_OTHER,
	IW_MPA_TERM_SENT_LOCAL,
	IW_MPA_TERM_SENT_IRD,
	IW_MPA_TERM_SENT_RTR,
	IW_MPA_TERM_RCVD_LOCAL,
	IW_MPA_TERM_RCVD_IRD,
	IW_MPA_TERM_RCVD_RTR,
	IW_MPA_TERM_RCVD_OTHER,
	IW_MPA_TIMEOUT_CONNECT,
	IW_MPA_TIMEOUT_REQUEST,
	IW_MPA_TIMEOUT_DECIDE,
	IW_MPA_TIMEOUT_RTR,
	IW_MPA_TIMEOUT_REPLY,
	IW_MPA_BAD_KEY,
	IW_MPA_BAD_REV,
	IW_MPA_BAD_PDATA_LEN,
	IW_MPA_BAD_BLOCK,
	IW_MPA_BAD_TRAILING,
	IW_MPA_FALLBACKS,
	IW_MPA_STARTED_INITIATOR,
	IW_MPA_STARTED_RESPONDER,
	IW_MPA_ESTABLISHED_INITIATOR,
	IW_MPA_ESTABLISHED_RESPONDER,
	IW_MPA_FAILED_INITIATOR,
	IW_MPA_FAILED_RESPONDER,
	IW_MPA_COUNTERS
};

struct iw_mpa_counters {
	u64_stats_t n[IW_MPA_COUNTERS];
	struct u64_stats_sync syncp;
};

/**
 * struct iw_mpa_view - result of all layers at one place
 * @own: the place's own layer
 * @effective: the settings in force there
 * @origin: enum rdma_mpa_layer that each setting comes from
 * @not_taken: settings of the default layer that the device ignores, mask of
 *	BIT(enum rdma_mpa_setting)
 */
struct iw_mpa_view {
	struct iw_mpa_layer own;
	struct iw_mpa_policy effective;
	u8 origin[IW_MPA_SETTINGS];
	u32 not_taken;
};

/**
 * struct iw_mpa_port - one port
 * @dev: its device
 * @num: its number, from 1
 * @layer: its settings; under iw_mpa_devices_lock
 * @effective: the settings in force; under effective_lock
 * @policy_id: number of @effective, unique among all ports and over time; under
 *	effective_lock
 * @counters: the counters of each CPU
 */
struct iw_mpa_port {
	struct iw_mpa_device *dev;
	u32 num;
	struct iw_mpa_layer layer;
	struct iw_mpa_policy effective;
	u32 policy_id;
	struct iw_mpa_counters __percpu *counters;
};

/**
 * struct iw_mpa_device - one device
 * @list: on iw_mpa_devices; under iw_mpa_devices_lock
 * @ibdev: the device; use it only while a reference of ib_device_try_get() is
 *	held
 * @driver: its driver and capabilities
 * @initial: settings in force unless a layer overrides them
 * @layer: its settings; under iw_mpa_devices_lock
 * @not_taken: settings of the default layer that its ports ignore
 * @told: part of @not_taken that has been logged
 * @ports: number of ports
 * @port: the ports, number 1 first
 */
struct iw_mpa_device {
	struct list_head list;
	struct ib_device *ibdev;
	struct iw_mpa_driver driver;
	struct iw_mpa_policy initial;
	struct iw_mpa_layer layer;
	u32 not_taken;
	u32 told;
	u32 ports;
	struct iw_mpa_port port[];
};

/**
 * struct iw_mpa_place - a layer: the default one, a device's or a port's
 * @dev: the device, NULL for the default layer
 * @port: the port, NULL for a device's layer
 */
struct iw_mpa_place {
	struct iw_mpa_device *dev;
	struct iw_mpa_port *port;
};

/**
 * struct iw_mpa_change - a change of a layer
 * @unset: settings that the layer loses, mask of BIT(enum rdma_mpa_setting)
 * @layer: settings that it gets afterwards
 */
struct iw_mpa_change {
	u32 unset;
	struct iw_mpa_layer layer;
};

extern struct mutex iw_mpa_devices_lock;
extern struct list_head iw_mpa_devices;
extern unsigned int iw_mpa_generation;

/*
 * @name has room for IB_DEVICE_NAME_MAX bytes. Not dev_name(): a concurrent
 * rename would free its string.
 */
static inline void iw_mpa_device_name(const struct iw_mpa_device *dev,
				      char *name)
{
	strscpy(name, dev->ibdev->name, IB_DEVICE_NAME_MAX);
}

struct iw_mpa_device *iw_mpa_find_device(u32 index);
void iw_mpa_view_place(const struct iw_mpa_place *place,
		       struct iw_mpa_view *view);
int iw_mpa_change_layer(const struct iw_mpa_place *place,
			const struct iw_mpa_change *change, char *why,
			size_t size);

#endif /* _IW_MPA_DEVICE_H */
