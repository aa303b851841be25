/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Settings and their layers: for all devices, a device, a port, a connection.
 */
#ifndef _IW_MPA_POLICY_H
#define _IW_MPA_POLICY_H

#include <linux/types.h>
#include <rdma/iw_mpa.h>

/**
 * struct iw_mpa_policy - all settings, for one connection
 * @rev: revision of the Request, 1 or 2
 * @enhanced: use enhanced connection data; needs @rev 2. If false, a responder
 *	answers an enhanced Request with a close, like a peer that supports
 *	only RFC 5044.
 * @model: enum rdma_mpa_model
 * @rtr_offer: kinds of RTR to offer as initiator, mask of enum rdma_mpa_rtr
 * @rtr_accept: kinds of RTR to accept as responder, mask of enum rdma_mpa_rtr
 * @rtr_order: every kind once, the preferred one first
 * @max_ird: ceiling of IRD; %IW_MPA_DEPTH_MAX: the device is the only limit
 * @max_ord: ceiling of ORD; %IW_MPA_DEPTH_MAX: the device is the only limit
 * @ird_ulp: the ULP manages IRD; it is not negotiated (0x3fff on the wire)
 * @ord_ulp: the ULP manages ORD; it is not negotiated (0x3fff on the wire)
 * @short_ird: answer of a responder to an IRD below its ORD, enum
 *	rdma_mpa_short_ird
 *	(RFC 6581 section 9.1: MAY) instead of lowering our ORD
 * @crc: enum rdma_mpa_crc
 * @markers: ask the peer to send markers
 * @dialect: enum rdma_mpa_dialect
 * @fallback: initiator: after a close or reset before the first byte of a
 *	Reply, try once more with Rev 1, unless @model requires peer-to-peer
 * @fastopen: initiator: send the Request with TCP's SYN if possible; listener:
 *	accept Requests in SYNs
 * @large: send FPDUs that are longer than a segment of TCP
 * @streams: how many sessions an SCTP association carries, at least 1
 * @idle: how long we keep an SCTP association without a session that we have
 *	opened, in seconds, at least 1
 * @connect_ms: initiator: how long TCP may take to connect
 * @request_ms: responder: how long a peer may take to send its Request
 * @reply_ms: initiator: how long a peer may take to send its Reply
 * @rtr_ms: responder: how long a peer may take to send its RTR
 * @decide_ms: responder: how long the ULP may take to accept or reject
 *
 * Deadlines are in milliseconds, 1..%RDMA_MPA_DEADLINE_MAX.
 */
struct iw_mpa_policy {
	u8 rev;
	u8 model;
	u8 rtr_offer;
	u8 rtr_accept;
	u8 rtr_order[3];
	u8 dialect;
	u16 max_ird;
	u16 max_ord;
	u8 short_ird;
	u8 crc;
	bool markers : 1;
	bool large : 1;
	bool enhanced : 1;
	bool fallback : 1;
	bool ird_ulp : 1;
	bool ord_ulp : 1;
	bool fastopen;
	u16 streams;
	u16 idle;
	u32 connect_ms;
	u32 request_ms;
	u32 reply_ms;
	u32 rtr_ms;
	u32 decide_ms;
};

extern const struct iw_mpa_policy iw_mpa_default_policy;

u8 iw_mpa_kinds_able(const struct iw_mpa_caps *caps);
u8 iw_mpa_kinds_offered(const struct iw_mpa_policy *policy,
			const struct iw_mpa_caps *caps);
u8 iw_mpa_kinds_accepted(const struct iw_mpa_policy *policy,
			 const struct iw_mpa_caps *caps);
int iw_mpa_policy_check(const struct iw_mpa_policy *policy,
			const struct iw_mpa_caps *caps);

/* For arrays that enum rdma_mpa_setting indexes */
#define IW_MPA_SETTINGS		(RDMA_MPA_SETTING_IDLE + 1)

/* A setting has the number of its attribute. Some attributes are no settings. */
static inline bool iw_mpa_is_setting(unsigned int number)
{
	return number && number < IW_MPA_SETTINGS &&
	       number != RDMA_MPA_SETTING_IRD_MODE &&
	       number != RDMA_MPA_SETTING_ORD_MODE;
}

static inline enum rdma_mpa_setting
iw_mpa_next_setting(enum rdma_mpa_setting setting)
{
	unsigned int number = setting + 1;

	while (number < IW_MPA_SETTINGS && !iw_mpa_is_setting(number))
		number++;
	return (enum rdma_mpa_setting)number;
}

#define iw_mpa_for_each_setting(setting) \
	for ((setting) = RDMA_MPA_SETTING_REVISION; \
	     (setting) < IW_MPA_SETTINGS; \
	     (setting) = iw_mpa_next_setting(setting))

/**
 * struct iw_mpa_layer - settings of one layer
 * @set: which settings the layer has, mask of BIT(enum rdma_mpa_setting)
 * @value: values of these settings; the other fields have no meaning
 */
struct iw_mpa_layer {
	u32 set;
	struct iw_mpa_policy value;
};

static inline bool iw_mpa_layer_has(const struct iw_mpa_layer *layer,
				    enum rdma_mpa_setting setting)
{
	return layer->set & (1U << setting);
}

const char *iw_mpa_setting_str(enum rdma_mpa_setting setting);
u32 iw_mpa_setting_get(const struct iw_mpa_policy *policy,
		       enum rdma_mpa_setting setting);
int iw_mpa_layer_set(struct iw_mpa_layer *layer, enum rdma_mpa_setting setting,
		     u32 value);
int iw_mpa_layer_set_option(struct iw_mpa_layer *layer, int optname,
			    const void *optval, size_t optlen);
void iw_mpa_layer_apply(const struct iw_mpa_layer *layer, u32 settings,
			struct iw_mpa_policy *policy);
bool iw_mpa_setting_exists(enum rdma_mpa_setting setting,
			   const struct iw_mpa_caps *caps);
u32 iw_mpa_layer_unable(const struct iw_mpa_layer *layer,
			const struct iw_mpa_caps *caps, char *why,
			size_t size);
int iw_mpa_policy_explain(const struct iw_mpa_policy *policy,
			  const struct iw_mpa_caps *caps, char *why,
			  size_t size);
void iw_mpa_policy_limit(const struct iw_mpa_policy *policy,
			 struct iw_mpa_caps *caps);

#endif /* _IW_MPA_POLICY_H */
