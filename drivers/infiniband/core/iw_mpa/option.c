// SPDX-License-Identifier: GPL-2.0
/*
 * One setting of one layer, checked. Whether a device can do it is policy.c's
 * to say.
 *
 * Pure; any context. Part of iw_cm.ko, so that rdma_cm can check a program's
 * options without depending on iw_mpa.ko.
 */
#include <linux/bits.h>
#include <linux/errno.h>
#include <linux/export.h>
#include <linux/kernel.h>
#include <linux/log2.h>
#include <linux/string.h>

#include <rdma/iw_mpa.h>

static void set_revision(struct iw_mpa_policy *policy, u32 value)
{
	policy->rev = value == RDMA_MPA_REVISION_1 ? 1 : 2;
	policy->enhanced = value != RDMA_MPA_REVISION_1;
	policy->fallback = value == RDMA_MPA_REVISION_2_OR_1;
}

static void set_depth(u16 *ceiling, bool *ulp, u32 value)
{
	*ulp = value == IW_MPA_DEPTH_ULP;
	*ceiling = *ulp ? IW_MPA_DEPTH_MAX : value;
}

struct value_range {
	u32 min;
	u32 max;
};

static const struct value_range range_of[__RDMA_MPA_POLICY_NUM] = {
	[RDMA_MPA_POLICY_REVISION]	= { 1, RDMA_MPA_REVISION_2_OR_1 },
	[RDMA_MPA_POLICY_MODEL]		= { 0, IW_MPA_PEER_TO_PEER_REQUIRED },
	[RDMA_MPA_POLICY_RTR_OFFER]	= { 1, IW_MPA_RTR_ALL },
	[RDMA_MPA_POLICY_RTR_ACCEPT]	= { 1, IW_MPA_RTR_ALL },
	[RDMA_MPA_POLICY_IRD]		= { 0, IW_MPA_DEPTH_ULP },
	[RDMA_MPA_POLICY_ORD]		= { 0, IW_MPA_DEPTH_ULP },
	[RDMA_MPA_POLICY_CRC]		= { 0, IW_MPA_CRC_REQUIRED },
	[RDMA_MPA_POLICY_REQUEST_MS]	= { 1, IW_MPA_DEADLINE_MAX },
	[RDMA_MPA_POLICY_REPLY_MS]	= { 1, IW_MPA_DEADLINE_MAX },
	[RDMA_MPA_POLICY_RTR_MS]	= { 1, IW_MPA_DEADLINE_MAX },
	[RDMA_MPA_POLICY_DECIDE_MS]	= { 1, IW_MPA_DEADLINE_MAX },
	[RDMA_MPA_POLICY_CONNECT_MS]	= { 1, IW_MPA_DEADLINE_MAX },
	[RDMA_MPA_POLICY_DIALECT]	= { 0, IW_MPA_EARLY_DRAFT },
	[RDMA_MPA_POLICY_SHORT_IRD]	= { 0, RDMA_MPA_SHORT_IRD_REJECT },
	[RDMA_MPA_POLICY_FASTOPEN]	= { 0, RDMA_MPA_FASTOPEN_ON },
};

/**
 * iw_mpa_layer_set - set a number
 * @layer: the layer
 * @setting: which setting; not %RDMA_MPA_POLICY_RTR_ORDER
 * @value: as enum rdma_mpa_policy says
 *
 * Return: 0, -EINVAL if there is no such setting, -ERANGE if there is no such
 * value; then nothing has changed.
 */
int iw_mpa_layer_set(struct iw_mpa_layer *layer, enum rdma_mpa_policy setting,
		     u32 value)
{
	struct iw_mpa_policy *policy = &layer->value;

	if (setting >= __RDMA_MPA_POLICY_NUM || !range_of[setting].max)
		return -EINVAL;
	if (value < range_of[setting].min || value > range_of[setting].max)
		return -ERANGE;

	switch (setting) {
	case RDMA_MPA_POLICY_REVISION:
		set_revision(policy, value);
		break;
	case RDMA_MPA_POLICY_MODEL:
		policy->model = value;
		break;
	case RDMA_MPA_POLICY_RTR_OFFER:
		policy->rtr_offer = value;
		break;
	case RDMA_MPA_POLICY_RTR_ACCEPT:
		policy->rtr_accept = value;
		break;
	case RDMA_MPA_POLICY_IRD:
		set_depth(&policy->max_ird, &policy->ird_ulp, value);
		break;
	case RDMA_MPA_POLICY_ORD:
		set_depth(&policy->max_ord, &policy->ord_ulp, value);
		break;
	case RDMA_MPA_POLICY_CRC:
		policy->crc = value;
		break;
	case RDMA_MPA_POLICY_REQUEST_MS:
		policy->request_ms = value;
		break;
	case RDMA_MPA_POLICY_REPLY_MS:
		policy->reply_ms = value;
		break;
	case RDMA_MPA_POLICY_RTR_MS:
		policy->rtr_ms = value;
		break;
	case RDMA_MPA_POLICY_DECIDE_MS:
		policy->decide_ms = value;
		break;
	case RDMA_MPA_POLICY_CONNECT_MS:
		policy->connect_ms = value;
		break;
	case RDMA_MPA_POLICY_DIALECT:
		policy->dialect = value;
		break;
	case RDMA_MPA_POLICY_SHORT_IRD:
		policy->ord_strict = value == RDMA_MPA_SHORT_IRD_REJECT;
		break;
	case RDMA_MPA_POLICY_FASTOPEN:
		policy->fastopen = value == RDMA_MPA_FASTOPEN_ON;
		break;
	default:
		return -EINVAL;
	}
	layer->set |= BIT(setting);
	return 0;
}
EXPORT_SYMBOL_GPL(iw_mpa_layer_set);

/**
 * iw_mpa_layer_set_order - set the order of preference among kinds of RTR
 * @layer: the layer
 * @kinds: enum iw_mpa_rtr each, none twice, the preferred one first; those left
 *	out follow in the built-in order
 * @count: how many, 1..3
 *
 * Return: 0, or -EINVAL; then nothing has changed.
 */
int iw_mpa_layer_set_order(struct iw_mpa_layer *layer, const u8 *kinds,
			   size_t count)
{
	static const u8 usual[] = {
		IW_MPA_RTR_WRITE, IW_MPA_RTR_READ, IW_MPA_RTR_SEND
	};
	u8 order[ARRAY_SIZE(usual)];
	size_t i, n;
	u8 seen = 0;

	if (!count || count > ARRAY_SIZE(order))
		return -EINVAL;
	for (n = 0; n < count; n++) {
		if (!is_power_of_2(kinds[n]) || kinds[n] & ~IW_MPA_RTR_ALL ||
		    kinds[n] & seen)
			return -EINVAL;
		seen |= kinds[n];
		order[n] = kinds[n];
	}
	for (i = 0; i < ARRAY_SIZE(usual); i++)
		if (!(usual[i] & seen))
			order[n++] = usual[i];

	memcpy(layer->value.rtr_order, order, sizeof(order));
	layer->set |= BIT(RDMA_MPA_POLICY_RTR_ORDER);
	return 0;
}
EXPORT_SYMBOL_GPL(iw_mpa_layer_set_order);

/* These kinds and no others, as initiator and as responder, in this order */
static int set_rtr_option(struct iw_mpa_layer *layer, const u8 *kinds,
			  size_t count)
{
	u8 mask = 0;
	size_t i;
	int rv;

	rv = iw_mpa_layer_set_order(layer, kinds, count);
	if (rv)
		return rv;
	for (i = 0; i < count; i++)
		mask |= kinds[i];
	iw_mpa_layer_set(layer, RDMA_MPA_POLICY_RTR_OFFER, mask);
	iw_mpa_layer_set(layer, RDMA_MPA_POLICY_RTR_ACCEPT, mask);
	return 0;
}

/**
 * iw_mpa_layer_set_option - an option of rdma_set_option()
 * @layer: a connection's layer
 * @optname: enum rdma_mpa_option
 * @optval: its value
 * @optlen: length of @optval in bytes
 *
 * Return: 0, or -EINVAL; then nothing has changed.
 */
int iw_mpa_layer_set_option(struct iw_mpa_layer *layer, int optname,
			    const void *optval, size_t optlen)
{
	static const u8 setting_of[__RDMA_OPTION_MPA_NUM] = {
		[RDMA_OPTION_MPA_REVISION]	= RDMA_MPA_POLICY_REVISION,
		[RDMA_OPTION_MPA_MODEL]		= RDMA_MPA_POLICY_MODEL,
		[RDMA_OPTION_MPA_IRD]		= RDMA_MPA_POLICY_IRD,
		[RDMA_OPTION_MPA_ORD]		= RDMA_MPA_POLICY_ORD,
		[RDMA_OPTION_MPA_REQUEST_MS]	= RDMA_MPA_POLICY_REQUEST_MS,
		[RDMA_OPTION_MPA_REPLY_MS]	= RDMA_MPA_POLICY_REPLY_MS,
		[RDMA_OPTION_MPA_RTR_MS]	= RDMA_MPA_POLICY_RTR_MS,
		[RDMA_OPTION_MPA_DECIDE_MS]	= RDMA_MPA_POLICY_DECIDE_MS,
		[RDMA_OPTION_MPA_CONNECT_MS]	= RDMA_MPA_POLICY_CONNECT_MS,
		[RDMA_OPTION_MPA_SHORT_IRD]	= RDMA_MPA_POLICY_SHORT_IRD,
	};
	u32 value;

	if (optname == RDMA_OPTION_MPA_RTR)
		return set_rtr_option(layer, optval, optlen);
	if (optname <= 0 || optname >= __RDMA_OPTION_MPA_NUM ||
	    optlen != sizeof(value))
		return -EINVAL;
	memcpy(&value, optval, sizeof(value));
	return iw_mpa_layer_set(layer, setting_of[optname], value) ? -EINVAL : 0;
}
EXPORT_SYMBOL_GPL(iw_mpa_layer_set_option);
