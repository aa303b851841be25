// SPDX-License-Identifier: GPL-2.0
/*
 * Layers of policy: what is set for all devices, for one device, for one of its
 * ports, for one connection. Each layer holds only what is set in it; what holds
 * in the end is computed.
 *
 * Pure; any context. Compiles in user space behind a few shim headers.
 */
#include <linux/bits.h>
#include <linux/errno.h>
#include <linux/export.h>
#include <linux/kernel.h>
#include <linux/log2.h>
#include <linux/minmax.h>
#include <linux/string.h>

#include <rdma/iw_mpa.h>

static bool has(const struct iw_mpa_layer *layer, enum rdma_mpa_policy setting)
{
	return layer->set & BIT(setting);
}

/**
 * iw_mpa_layer_apply - lay a layer over what holds below it
 * @layer: the layer
 * @policy: what holds without it; changed
 *
 * A setting replaces the one below, a ceiling can only get lower.
 */
void iw_mpa_layer_apply(const struct iw_mpa_layer *layer,
			struct iw_mpa_policy *policy)
{
	const struct iw_mpa_policy *v = &layer->value;

	if (has(layer, RDMA_MPA_POLICY_REVISION)) {
		policy->rev = v->rev;
		policy->enhanced = v->enhanced;
		policy->fallback = v->fallback;
	}
	if (has(layer, RDMA_MPA_POLICY_MODEL))
		policy->model = v->model;
	if (has(layer, RDMA_MPA_POLICY_RTR_OFFER))
		policy->rtr_offer = v->rtr_offer;
	if (has(layer, RDMA_MPA_POLICY_RTR_ACCEPT))
		policy->rtr_accept = v->rtr_accept;
	if (has(layer, RDMA_MPA_POLICY_RTR_ORDER))
		memcpy(policy->rtr_order, v->rtr_order,
		       sizeof(policy->rtr_order));
	if (has(layer, RDMA_MPA_POLICY_IRD)) {
		policy->ird_ulp = v->ird_ulp;
		policy->max_ird = min(policy->max_ird, v->max_ird);
	}
	if (has(layer, RDMA_MPA_POLICY_ORD)) {
		policy->ord_ulp = v->ord_ulp;
		policy->max_ord = min(policy->max_ord, v->max_ord);
	}
	if (has(layer, RDMA_MPA_POLICY_CRC))
		policy->crc = v->crc;
	if (has(layer, RDMA_MPA_POLICY_CONNECT_MS))
		policy->connect_ms = v->connect_ms;
	if (has(layer, RDMA_MPA_POLICY_REQUEST_MS))
		policy->request_ms = v->request_ms;
	if (has(layer, RDMA_MPA_POLICY_REPLY_MS))
		policy->reply_ms = v->reply_ms;
	if (has(layer, RDMA_MPA_POLICY_RTR_MS))
		policy->rtr_ms = v->rtr_ms;
	if (has(layer, RDMA_MPA_POLICY_DECIDE_MS))
		policy->decide_ms = v->decide_ms;
	if (has(layer, RDMA_MPA_POLICY_DIALECT))
		policy->dialect = v->dialect;
	if (has(layer, RDMA_MPA_POLICY_SHORT_IRD))
		policy->ord_strict = v->ord_strict;
	if (has(layer, RDMA_MPA_POLICY_FASTOPEN))
		policy->fastopen = v->fastopen;
}
EXPORT_SYMBOL_GPL(iw_mpa_layer_apply);

static u16 limit_depth(u16 depth, u16 ceiling, bool pow2)
{
	if (ceiling == IW_MPA_DEPTH_MAX)
		return depth;
	/* What a device rounds up must not pass the ceiling */
	if (pow2 && ceiling)
		ceiling = rounddown_pow_of_two(ceiling);
	return min(depth, ceiling);
}

/**
 * iw_mpa_policy_limit - what a device can do under a policy's ceilings
 * @policy: the policy
 * @caps: the device; its depths are lowered
 */
void iw_mpa_policy_limit(const struct iw_mpa_policy *policy,
			 struct iw_mpa_caps *caps)
{
	caps->max_ird = limit_depth(caps->max_ird, policy->max_ird,
				    caps->pow2_depths);
	caps->max_ord = limit_depth(caps->max_ord, policy->max_ord,
				    caps->pow2_depths);
}
EXPORT_SYMBOL_GPL(iw_mpa_policy_limit);

static const char *kinds_str(u8 kinds)
{
	static const char * const name[IW_MPA_RTR_ALL + 1] = {
		"none", "send", "write", "send and write",
		"read", "send and read", "write and read",
		"send, write and read",
	};

	return name[kinds & IW_MPA_RTR_ALL];
}

/**
 * iw_mpa_layer_check - can a device do what one of its own layers says?
 * @layer: a device's, a port's or a connection's layer
 * @caps: the device
 * @why: filled with what the device can do instead, if it cannot
 * @size: size of @why in bytes
 *
 * Only what can be said of each setting alone; iw_mpa_policy_explain() looks at
 * them together.
 *
 * Return: 0 or -EINVAL.
 */
int iw_mpa_layer_check(const struct iw_mpa_layer *layer,
		       const struct iw_mpa_caps *caps, char *why, size_t size)
{
	const struct iw_mpa_policy *v = &layer->value;

	if (has(layer, RDMA_MPA_POLICY_RTR_OFFER) &&
	    v->rtr_offer & ~caps->rtr_send) {
		scnprintf(why, size, "RTR kinds the device can send: %s",
			  kinds_str(caps->rtr_send));
		return -EINVAL;
	}
	if (has(layer, RDMA_MPA_POLICY_RTR_ACCEPT) &&
	    v->rtr_accept & ~caps->rtr_recv) {
		scnprintf(why, size, "RTR kinds the device recognises: %s",
			  kinds_str(caps->rtr_recv));
		return -EINVAL;
	}
	if (has(layer, RDMA_MPA_POLICY_IRD) && v->max_ird > caps->max_ird &&
	    v->max_ird != IW_MPA_DEPTH_MAX) {
		scnprintf(why, size, "the device's largest IRD is %u",
			  caps->max_ird);
		return -EINVAL;
	}
	if (has(layer, RDMA_MPA_POLICY_ORD) && v->max_ord > caps->max_ord &&
	    v->max_ord != IW_MPA_DEPTH_MAX) {
		scnprintf(why, size, "the device's largest ORD is %u",
			  caps->max_ord);
		return -EINVAL;
	}
	if (has(layer, RDMA_MPA_POLICY_FASTOPEN) && v->fastopen &&
	    !caps->fastopen) {
		scnprintf(why, size, "the device has no TCP Fast Open");
		return -EINVAL;
	}
	return 0;
}
EXPORT_SYMBOL_GPL(iw_mpa_layer_check);

/**
 * iw_mpa_policy_explain - why can a device not do what a policy says?
 * @policy: the policy, each setting within its range
 * @caps: the device, without the policy's ceilings
 * @why: filled with the reason, if it cannot
 * @size: size of @why in bytes
 *
 * Return: 0 or -EINVAL, as iw_mpa_policy_check() under the policy's ceilings.
 */
int iw_mpa_policy_explain(const struct iw_mpa_policy *policy,
			  const struct iw_mpa_caps *caps, char *why,
			  size_t size)
{
	struct iw_mpa_caps limited = *caps;
	int rv;

	iw_mpa_policy_limit(policy, &limited);
	rv = iw_mpa_policy_check(policy, &limited);
	if (!rv)
		return 0;

	if (policy->crc == IW_MPA_CRC_REQUIRED && caps->no_crc)
		scnprintf(why, size, "the device has no CRC32c");
	else if (policy->model == IW_MPA_PEER_TO_PEER_REQUIRED &&
		 !policy->enhanced)
		scnprintf(why, size,
			  "revision 1 has no peer-to-peer model to require");
	else if (policy->enhanced && !(policy->rtr_accept & caps->rtr_recv))
		scnprintf(why, size, "RTR kinds the device recognises: %s",
			  kinds_str(caps->rtr_recv));
	else if (policy->enhanced && !(policy->rtr_offer & caps->rtr_send))
		scnprintf(why, size, "RTR kinds the device can send: %s",
			  kinds_str(caps->rtr_send));
	else if (policy->enhanced && !limited.max_ord &&
		 !(policy->rtr_offer & ~IW_MPA_RTR_READ))
		scnprintf(why, size, "an RTR by read needs an ORD of 1 or more");
	else
		scnprintf(why, size, "the settings contradict each other");
	return rv;
}
EXPORT_SYMBOL_GPL(iw_mpa_policy_explain);
