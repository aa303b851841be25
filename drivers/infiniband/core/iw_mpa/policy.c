// SPDX-License-Identifier: GPL-2.0
/*
 * Settings: one table describes all of them. A layer holds some settings. All
 * layers together make a policy.
 *
 * The functions are pure: no allocation, no locks, no kernel services; any
 * context.
 */
#include <linux/bits.h>
#include <linux/errno.h>
#include <linux/export.h>
#include <linux/kernel.h>
#include <linux/log2.h>
#include <linux/minmax.h>
#include <linux/stddef.h>
#include <linux/string.h>
#include <kunit/visibility.h>

#include "frame.h"
#include "policy.h"

/* ---- settings with more than one field */

static u32 get_revision(const struct iw_mpa_policy *policy)
{
	if (!policy->enhanced)
		return RDMA_MPA_REVISION_RFC5044;
	return policy->fallback ? RDMA_MPA_REVISION_FALLBACK :
				  RDMA_MPA_REVISION_RFC6581;
}

static int set_revision(struct iw_mpa_policy *policy, u32 value)
{
	policy->rev = value == RDMA_MPA_REVISION_RFC5044 ? 1 : 2;
	policy->enhanced = value != RDMA_MPA_REVISION_RFC5044;
	policy->fallback = value == RDMA_MPA_REVISION_FALLBACK;
	return 0;
}

/* Three kinds of four bits each, the preferred one lowest */
#define ORDER_BITS	4
#define ORDER_MASK	(BIT(ORDER_BITS) - 1)

static u32 get_rtr_order(const struct iw_mpa_policy *policy)
{
	return policy->rtr_order[0] | policy->rtr_order[1] << ORDER_BITS |
	       policy->rtr_order[2] << (2 * ORDER_BITS);
}

/* Each kind at most once; missing kinds are appended in the usual order */
static int set_rtr_order(struct iw_mpa_policy *policy, u32 value)
{
	static const u8 usual[] = {
		RDMA_MPA_RTR_WRITE, RDMA_MPA_RTR_READ, RDMA_MPA_RTR_SEND
	};
	u8 order[ARRAY_SIZE(usual)];
	unsigned int i, n;
	u8 seen = 0;

	if (!value)
		return -EINVAL;
	for (n = 0; value; n++, value >>= ORDER_BITS) {
		u8 kind = value & ORDER_MASK;

		if (n == ARRAY_SIZE(order) || !is_power_of_2(kind) ||
		    kind & ~IW_MPA_RTR_ALL || kind & seen)
			return -EINVAL;
		seen |= kind;
		order[n] = kind;
	}
	for (i = 0; i < ARRAY_SIZE(usual); i++)
		if (!(usual[i] & seen))
			order[n++] = usual[i];
	memcpy(policy->rtr_order, order, sizeof(order));
	return 0;
}

/* A limit, IW_MPA_DEPTH_MAX if there is none, or IW_MPA_DEPTH_ULP */
static u32 get_ird(const struct iw_mpa_policy *policy)
{
	return policy->ird_ulp ? IW_MPA_DEPTH_ULP : policy->max_ird;
}

static int set_ird(struct iw_mpa_policy *policy, u32 value)
{
	policy->ird_ulp = value == IW_MPA_DEPTH_ULP;
	policy->max_ird = min_t(u32, value, IW_MPA_DEPTH_MAX);
	return 0;
}

static u32 get_ord(const struct iw_mpa_policy *policy)
{
	return policy->ord_ulp ? IW_MPA_DEPTH_ULP : policy->max_ord;
}

static int set_ord(struct iw_mpa_policy *policy, u32 value)
{
	policy->ord_ulp = value == IW_MPA_DEPTH_ULP;
	policy->max_ord = min_t(u32, value, IW_MPA_DEPTH_MAX);
	return 0;
}

static u32 get_segment(const struct iw_mpa_policy *policy)
{
	return policy->large ? RDMA_MPA_SEGMENT_LARGE : RDMA_MPA_SEGMENT_MSS;
}

static int set_segment(struct iw_mpa_policy *policy, u32 value)
{
	policy->large = value == RDMA_MPA_SEGMENT_LARGE;
	return 0;
}

static u32 get_streams(const struct iw_mpa_policy *policy)
{
	return policy->streams;
}

static int set_streams(struct iw_mpa_policy *policy, u32 value)
{
	policy->streams = value;
	return 0;
}

static u32 get_idle(const struct iw_mpa_policy *policy)
{
	return policy->idle;
}

static int set_idle(struct iw_mpa_policy *policy, u32 value)
{
	policy->idle = value;
	return 0;
}

/* ---- abilities of the device */

static const char *kinds_str(u8 kinds)
{
	static const char * const name[IW_MPA_RTR_ALL + 1] = {
		"none", "send", "write", "send and write",
		"read", "send and read", "write and read",
		"send, write and read",
	};

	return name[kinds & IW_MPA_RTR_ALL];
}

static bool can_offer(const struct iw_mpa_caps *caps, u32 value, char *why,
		      size_t size)
{
	if (!(value & ~caps->rtr_send))
		return true;
	scnprintf(why, size, "the device sends only these RTR kinds: %s",
		  kinds_str(caps->rtr_send));
	return false;
}

static bool can_recognise(const struct iw_mpa_caps *caps, u32 value, char *why,
			  size_t size)
{
	if (!(value & ~caps->rtr_recv))
		return true;
	scnprintf(why, size, "the device recognises only these RTR kinds: %s",
		  kinds_str(caps->rtr_recv));
	return false;
}

static bool can_do_ird(const struct iw_mpa_caps *caps, u32 value, char *why,
		       size_t size)
{
	if (value <= caps->max_ird || value >= IW_MPA_DEPTH_MAX)
		return true;
	scnprintf(why, size, "the device's largest IRD is %u", caps->max_ird);
	return false;
}

static bool can_do_ord(const struct iw_mpa_caps *caps, u32 value, char *why,
		       size_t size)
{
	if (value <= caps->max_ord || value >= IW_MPA_DEPTH_MAX)
		return true;
	scnprintf(why, size, "the device's largest ORD is %u", caps->max_ord);
	return false;
}

static bool can_do_crc(const struct iw_mpa_caps *caps, u32 value, char *why,
		       size_t size)
{
	if (!caps->no_crc || value != RDMA_MPA_CRC_REQUIRED)
		return true;
	scnprintf(why, size, "the device does not support CRC32c");
	return false;
}

static bool can_fast_open(const struct iw_mpa_caps *caps, u32 value, char *why,
			  size_t size)
{
	if (caps->fastopen || value == RDMA_MPA_FASTOPEN_OFF)
		return true;
	scnprintf(why, size, "the device does not support TCP Fast Open");
	return false;
}

static bool can_send_large(const struct iw_mpa_caps *caps, u32 value, char *why,
			   size_t size)
{
	if (caps->large || value == RDMA_MPA_SEGMENT_MSS)
		return true;
	scnprintf(why, size,
		  "the device does not support FPDUs above the MSS");
	return false;
}

static bool can_share(const struct iw_mpa_caps *caps, u32 value, char *why,
		      size_t size)
{
	if (caps->streams || value == 1)
		return true;
	scnprintf(why, size,
		  "the device does not support several connections on one SCTP association");
	return false;
}

static bool can_give_up(const struct iw_mpa_caps *caps, u32 value, char *why,
			size_t size)
{
	if (!caps->no_connect_ms)
		return true;
	scnprintf(why, size,
		  "the device does not support a deadline of the TCP connect");
	return false;
}

static bool can_time_rtr(const struct iw_mpa_caps *caps, u32 value, char *why,
			 size_t size)
{
	if (!caps->rtr_offload)
		return true;
	scnprintf(why, size,
		  "the device does not support a deadline of the RTR");
	return false;
}

/* ---- the table */

/**
 * struct iw_mpa_setting - one setting
 * @name: for messages
 * @option: enum rdma_mpa_option with which a ULP sets it, 0 if no option does
 * @offset: offset of its field in struct iw_mpa_policy
 * @size: size of that field in bytes; 0 if @get and @set are needed
 * @min: smallest value
 * @max: largest value
 * @get: reads the setting
 * @set: changes the setting; returns 0, or -EINVAL if the value is invalid
 * @able: does the device support the value? Writes the reason if not. NULL if
 *	all devices do.
 */
struct iw_mpa_setting {
	const char *name;
	u8 option;
	u8 offset;
	u8 size;
	u32 min;
	u32 max;
	u32 (*get)(const struct iw_mpa_policy *policy);
	int (*set)(struct iw_mpa_policy *policy, u32 value);
	bool (*able)(const struct iw_mpa_caps *caps, u32 value, char *why,
		     size_t size);
};

#define FIELD(member)						\
	.offset = offsetof(struct iw_mpa_policy, member),	\
	.size = sizeof_field(struct iw_mpa_policy, member)
#define DEADLINE(member) FIELD(member), .min = 1, .max = RDMA_MPA_DEADLINE_MAX

static const struct iw_mpa_setting settings[IW_MPA_SETTINGS] = {
	[RDMA_MPA_SETTING_REVISION] = {
		.name = "revision", .option = RDMA_MPA_OPTION_REVISION,
		.min = RDMA_MPA_REVISION_RFC5044,
		.max = RDMA_MPA_REVISION_FALLBACK,
		.get = get_revision, .set = set_revision,
	},
	[RDMA_MPA_SETTING_MODEL] = {
		.name = "model", .option = RDMA_MPA_OPTION_MODEL,
		FIELD(model), .max = RDMA_MPA_MODEL_PEER_TO_PEER_REQUIRED,
	},
	[RDMA_MPA_SETTING_RTR_OFFER] = {
		.name = "RTR kinds to offer",
		FIELD(rtr_offer), .min = 1, .max = IW_MPA_RTR_ALL,
		.able = can_offer,
	},
	[RDMA_MPA_SETTING_RTR_ACCEPT] = {
		.name = "RTR kinds to accept",
		FIELD(rtr_accept), .min = 1, .max = IW_MPA_RTR_ALL,
		.able = can_recognise,
	},
	[RDMA_MPA_SETTING_RTR_ORDER] = {
		.name = "order of RTR kinds", .max = U32_MAX,
		.get = get_rtr_order, .set = set_rtr_order,
	},
	[RDMA_MPA_SETTING_IRD] = {
		.name = "IRD", .option = RDMA_MPA_OPTION_IRD,
		.max = IW_MPA_DEPTH_ULP, .get = get_ird, .set = set_ird,
		.able = can_do_ird,
	},
	[RDMA_MPA_SETTING_ORD] = {
		.name = "ORD", .option = RDMA_MPA_OPTION_ORD,
		.max = IW_MPA_DEPTH_ULP, .get = get_ord, .set = set_ord,
		.able = can_do_ord,
	},
	[RDMA_MPA_SETTING_CRC] = {
		.name = "CRC",
		FIELD(crc), .max = RDMA_MPA_CRC_REQUIRED, .able = can_do_crc,
	},
	[RDMA_MPA_SETTING_DIALECT] = {
		.name = "dialect",
		FIELD(dialect), .max = RDMA_MPA_DIALECT_EARLY_DRAFT,
	},
	[RDMA_MPA_SETTING_SHORT_IRD] = {
		.name = "answer to a too small IRD",
		.option = RDMA_MPA_OPTION_SHORT_IRD,
		FIELD(short_ird), .max = RDMA_MPA_SHORT_IRD_REJECT,
	},
	[RDMA_MPA_SETTING_FASTOPEN] = {
		.name = "TCP Fast Open",
		FIELD(fastopen), .max = RDMA_MPA_FASTOPEN_ON,
		.able = can_fast_open,
	},
	[RDMA_MPA_SETTING_SEGMENT] = {
		.name = "length of FPDUs", .option = RDMA_MPA_OPTION_SEGMENT,
		.max = RDMA_MPA_SEGMENT_LARGE,
		.get = get_segment, .set = set_segment, .able = can_send_large,
	},
	[RDMA_MPA_SETTING_STREAMS] = {
		.name = "streams of an association",
		.min = 1, .max = RDMA_MPA_STREAMS_MAX,
		.get = get_streams, .set = set_streams, .able = can_share,
	},
	[RDMA_MPA_SETTING_IDLE] = {
		.name = "idle time of an association",
		.min = 1, .max = RDMA_MPA_IDLE_MAX,
		.get = get_idle, .set = set_idle,
	},
	[RDMA_MPA_SETTING_CONNECT_MS] = {
		.name = "deadline of the TCP connect",
		.option = RDMA_MPA_OPTION_CONNECT_MS,
		DEADLINE(connect_ms), .able = can_give_up,
	},
	[RDMA_MPA_SETTING_REQUEST_MS] = {
		.name = "deadline of the Request",
		.option = RDMA_MPA_OPTION_REQUEST_MS, DEADLINE(request_ms),
	},
	[RDMA_MPA_SETTING_REPLY_MS] = {
		.name = "deadline of the Reply",
		.option = RDMA_MPA_OPTION_REPLY_MS, DEADLINE(reply_ms),
	},
	[RDMA_MPA_SETTING_RTR_MS] = {
		.name = "deadline of the RTR",
		.option = RDMA_MPA_OPTION_RTR_MS, DEADLINE(rtr_ms),
		.able = can_time_rtr,
	},
	[RDMA_MPA_SETTING_DECIDE_MS] = {
		.name = "deadline of the ULP's answer",
		.option = RDMA_MPA_OPTION_DECIDE_MS, DEADLINE(decide_ms),
	},
};

/**
 * iw_mpa_setting_str - name a setting
 * @setting: the setting
 *
 * Return: a static string
 */
const char *iw_mpa_setting_str(enum rdma_mpa_setting setting)
{
	return settings[setting].name;
}
EXPORT_SYMBOL_IF_KUNIT(iw_mpa_setting_str);

/**
 * iw_mpa_setting_get - read a setting
 * @policy: the policy
 * @setting: the setting
 *
 * Return: its value, in the format of iw_mpa_layer_set()
 */
u32 iw_mpa_setting_get(const struct iw_mpa_policy *policy,
		       enum rdma_mpa_setting setting)
{
	const struct iw_mpa_setting *s = &settings[setting];
	const void *field = (const u8 *)policy + s->offset;

	if (s->get)
		return s->get(policy);
	return s->size == sizeof(u32) ? *(const u32 *)field :
					*(const u8 *)field;
}
EXPORT_SYMBOL_IF_KUNIT(iw_mpa_setting_get);

/* The caller has checked the range of @value */
static int put_setting(struct iw_mpa_policy *policy,
		       enum rdma_mpa_setting setting, u32 value)
{
	const struct iw_mpa_setting *s = &settings[setting];
	void *field = (u8 *)policy + s->offset;

	if (s->set)
		return s->set(policy, value);
	if (s->size == sizeof(u32))
		*(u32 *)field = value;
	else
		*(u8 *)field = value;
	return 0;
}

/**
 * iw_mpa_layer_set - set a setting
 * @layer: the layer
 * @setting: the setting
 * @value: as in its attribute. A depth is a limit, or %IW_MPA_DEPTH_MAX if the
 *	device is the only limit, or %IW_MPA_DEPTH_ULP. An order of RTR kinds is
 *	up to three of them, the preferred one in the lowest four bits.
 *
 * Return: 0, or -EINVAL if the setting or value is invalid; @layer is then
 * unchanged.
 */
int iw_mpa_layer_set(struct iw_mpa_layer *layer, enum rdma_mpa_setting setting,
		     u32 value)
{
	int rv;

	if (!iw_mpa_is_setting(setting) ||
	    value < settings[setting].min || value > settings[setting].max)
		return -EINVAL;
	rv = put_setting(&layer->value, setting, value);
	if (!rv)
		layer->set |= BIT(setting);
	return rv;
}
EXPORT_SYMBOL_IF_KUNIT(iw_mpa_layer_set);

/**
 * iw_mpa_layer_apply - apply a layer to a policy
 * @layer: the layer
 * @which: settings to apply, mask of BIT(enum rdma_mpa_setting)
 * @policy: the policy of the layers below; changed
 *
 * A setting replaces the one of the layers below. A limit can only get lower.
 */
void iw_mpa_layer_apply(const struct iw_mpa_layer *layer, u32 which,
			struct iw_mpa_policy *policy)
{
	u16 max_ird = policy->max_ird, max_ord = policy->max_ord;
	enum rdma_mpa_setting setting;

	iw_mpa_for_each_setting(setting)
		if (layer->set & which & BIT(setting))
			put_setting(policy, setting,
				    iw_mpa_setting_get(&layer->value, setting));
	policy->max_ird = min(policy->max_ird, max_ird);
	policy->max_ord = min(policy->max_ord, max_ord);
}
EXPORT_SYMBOL_IF_KUNIT(iw_mpa_layer_apply);

/**
 * iw_mpa_setting_exists - does a device have this setting?
 * @setting: the setting
 * @caps: the device
 *
 * Return: false if the device supports no value of the setting
 */
bool iw_mpa_setting_exists(enum rdma_mpa_setting setting,
			   const struct iw_mpa_caps *caps)
{
	switch (setting) {
	case RDMA_MPA_SETTING_CONNECT_MS:
		return !caps->no_connect_ms;
	case RDMA_MPA_SETTING_RTR_MS:
		return !caps->rtr_offload;
	default:
		return true;
	}
}
EXPORT_SYMBOL_IF_KUNIT(iw_mpa_setting_exists);

/**
 * iw_mpa_layer_unable - find the settings that a device does not support
 * @layer: the layer
 * @caps: the device
 * @why: filled with the reason for the first unsupported setting
 * @size: size of @why in bytes
 *
 * This checks each setting alone. iw_mpa_policy_explain() checks all together.
 *
 * Return: mask of BIT(enum rdma_mpa_setting)
 */
u32 iw_mpa_layer_unable(const struct iw_mpa_layer *layer,
			const struct iw_mpa_caps *caps, char *why, size_t size)
{
	enum rdma_mpa_setting setting;
	u32 unable = 0;

	iw_mpa_for_each_setting(setting) {
		const struct iw_mpa_setting *s = &settings[setting];

		if (!iw_mpa_layer_has(layer, setting) || !s->able)
			continue;
		if (!s->able(caps, iw_mpa_setting_get(&layer->value, setting),
			     why, unable ? 0 : size))
			unable |= BIT(setting);
	}
	return unable;
}
EXPORT_SYMBOL_IF_KUNIT(iw_mpa_layer_unable);

/* ---- options of ULPs */

/* Initiator and responder use only these kinds, preferred in this order */
static int set_rtr_option(struct iw_mpa_layer *layer, u32 order)
{
	u8 mask = 0;
	int rv;

	rv = iw_mpa_layer_set(layer, RDMA_MPA_SETTING_RTR_ORDER, order);
	if (rv)
		return rv;
	for (; order; order >>= ORDER_BITS)
		mask |= order & ORDER_MASK;
	iw_mpa_layer_set(layer, RDMA_MPA_SETTING_RTR_OFFER, mask);
	iw_mpa_layer_set(layer, RDMA_MPA_SETTING_RTR_ACCEPT, mask);
	return 0;
}

static int set_mode_option(struct iw_mpa_layer *layer,
			   enum rdma_mpa_setting setting, u32 mode)
{
	switch (mode) {
	case RDMA_MPA_DEPTH_MODE_DEVICE:
		return iw_mpa_layer_set(layer, setting, IW_MPA_DEPTH_MAX);
	case RDMA_MPA_DEPTH_MODE_ULP:
		return iw_mpa_layer_set(layer, setting, IW_MPA_DEPTH_ULP);
	default:
		/* A separate option sets a limit */
		return -EINVAL;
	}
}

/**
 * iw_mpa_layer_set_option - set an option of rdma_set_option()
 * @layer: a connection's layer
 * @optname: enum rdma_mpa_option
 * @optval: its value, a u32
 * @optlen: length of @optval in bytes
 *
 * Return: 0, or -EINVAL if the option, value or length is invalid; @layer is
 * then unchanged.
 */
int iw_mpa_layer_set_option(struct iw_mpa_layer *layer, int optname,
			    const void *optval, size_t optlen)
{
	enum rdma_mpa_setting setting;
	u32 value;

	if (optlen != sizeof(value))
		return -EINVAL;
	memcpy(&value, optval, sizeof(value));

	if (optname == RDMA_MPA_OPTION_RTR)
		return set_rtr_option(layer, value);
	if (optname == RDMA_MPA_OPTION_IRD_MODE)
		return set_mode_option(layer, RDMA_MPA_SETTING_IRD, value);
	if (optname == RDMA_MPA_OPTION_ORD_MODE)
		return set_mode_option(layer, RDMA_MPA_SETTING_ORD, value);
	/* 0x3fff is a mode, not a number */
	if ((optname == RDMA_MPA_OPTION_IRD ||
	     optname == RDMA_MPA_OPTION_ORD) && value > IW_MPA_DEPTH_MAX)
		return -EINVAL;
	iw_mpa_for_each_setting(setting)
		if (optname > 0 && settings[setting].option == optname)
			return iw_mpa_layer_set(layer, setting, value);
	return -EINVAL;
}
EXPORT_SYMBOL_IF_KUNIT(iw_mpa_layer_set_option);

/* ---- policies */

/*
 * Ask for peer-to-peer and accept both models, like cxgb4. Without any
 * configuration, either side may then speak first.
 */
const struct iw_mpa_policy iw_mpa_default_policy = {
	.rev		= 2,
	.enhanced	= true,
	.model		= RDMA_MPA_MODEL_PEER_TO_PEER,
	.rtr_offer	= RDMA_MPA_RTR_WRITE | RDMA_MPA_RTR_READ,
	.rtr_accept	= IW_MPA_RTR_ALL,
	/* A Write needs neither a read slot nor a receive buffer */
	.rtr_order	= { RDMA_MPA_RTR_WRITE, RDMA_MPA_RTR_READ,
			    RDMA_MPA_RTR_SEND },
	.max_ird	= IW_MPA_DEPTH_MAX,
	.max_ord	= IW_MPA_DEPTH_MAX,
	.crc		= RDMA_MPA_CRC_IF_ASKED,
	.dialect	= RDMA_MPA_DIALECT_RFC6581,
	.streams	= 1,
	.idle		= 5,
	/* Longer than TCP's own default */
	.connect_ms	= 150 * 1000,
	.request_ms	= 5 * 1000,
	.reply_ms	= 10 * 1000,
	.rtr_ms		= 10 * 1000,
	.decide_ms	= 60 * 1000,
};
EXPORT_SYMBOL_IF_KUNIT(iw_mpa_default_policy);

static bool deadline_valid(unsigned int ms)
{
	return ms && ms <= RDMA_MPA_DEADLINE_MAX;
}

/* Every kind once */
static bool order_valid(const u8 *order)
{
	return is_power_of_2(order[0]) && is_power_of_2(order[1]) &&
	       is_power_of_2(order[2]) &&
	       (order[0] | order[1] | order[2]) == IW_MPA_RTR_ALL;
}

/* The first setting whose value no device supports; 0 if there is none */
static enum rdma_mpa_setting find_invalid(const struct iw_mpa_policy *policy)
{
	if ((policy->rev != 1 && policy->rev != 2) ||
	    (policy->enhanced && policy->rev != 2))
		return RDMA_MPA_SETTING_REVISION;
	if (policy->model > RDMA_MPA_MODEL_PEER_TO_PEER_REQUIRED)
		return RDMA_MPA_SETTING_MODEL;
	if (policy->rtr_offer & ~IW_MPA_RTR_ALL)
		return RDMA_MPA_SETTING_RTR_OFFER;
	if (policy->rtr_accept & ~IW_MPA_RTR_ALL)
		return RDMA_MPA_SETTING_RTR_ACCEPT;
	if (!order_valid(policy->rtr_order))
		return RDMA_MPA_SETTING_RTR_ORDER;
	if (policy->crc > RDMA_MPA_CRC_REQUIRED)
		return RDMA_MPA_SETTING_CRC;
	if (policy->dialect > RDMA_MPA_DIALECT_EARLY_DRAFT)
		return RDMA_MPA_SETTING_DIALECT;
	if (!policy->streams || policy->streams > RDMA_MPA_STREAMS_MAX)
		return RDMA_MPA_SETTING_STREAMS;
	if (!policy->idle || policy->idle > RDMA_MPA_IDLE_MAX)
		return RDMA_MPA_SETTING_IDLE;
	if (!deadline_valid(policy->connect_ms))
		return RDMA_MPA_SETTING_CONNECT_MS;
	if (!deadline_valid(policy->request_ms))
		return RDMA_MPA_SETTING_REQUEST_MS;
	if (!deadline_valid(policy->reply_ms))
		return RDMA_MPA_SETTING_REPLY_MS;
	if (!deadline_valid(policy->rtr_ms))
		return RDMA_MPA_SETTING_RTR_MS;
	if (!deadline_valid(policy->decide_ms))
		return RDMA_MPA_SETTING_DECIDE_MS;
	return 0;
}

/**
 * iw_mpa_kinds_able - kinds of RTR that an initiator can send
 * @caps: the device, under the policy's ceilings
 *
 * A Read needs an ORD of at least 1.
 *
 * Return: mask of enum rdma_mpa_rtr
 */
u8 iw_mpa_kinds_able(const struct iw_mpa_caps *caps)
{
	return caps->max_ord ? caps->rtr_send :
			       caps->rtr_send & ~RDMA_MPA_RTR_READ;
}

/**
 * iw_mpa_kinds_offered - kinds of RTR that an initiator can offer
 * @policy: the policy
 * @caps: the device, under the policy's ceilings
 *
 * Return: mask of enum rdma_mpa_rtr
 */
u8 iw_mpa_kinds_offered(const struct iw_mpa_policy *policy,
			const struct iw_mpa_caps *caps)
{
	return policy->rtr_offer & iw_mpa_kinds_able(caps);
}

/**
 * iw_mpa_kinds_accepted - kinds of RTR that a responder can accept
 * @policy: the policy
 * @caps: the device
 *
 * Return: mask of enum rdma_mpa_rtr
 */
u8 iw_mpa_kinds_accepted(const struct iw_mpa_policy *policy,
			 const struct iw_mpa_caps *caps)
{
	return policy->rtr_accept & caps->rtr_recv;
}

/**
 * iw_mpa_policy_check - does a device support a policy?
 * @policy: the policy
 * @caps: the device
 *
 * Return: 0, or -EINVAL if a value is out of its range, contradicts another or
 * exceeds the device's limit.
 */
int iw_mpa_policy_check(const struct iw_mpa_policy *policy,
			const struct iw_mpa_caps *caps)
{
	bool ok = !find_invalid(policy);

	ok &= !policy->markers || caps->rx_markers;
	ok &= !(caps->no_crc && policy->crc == RDMA_MPA_CRC_REQUIRED);
	ok &= !policy->large || caps->large;
	ok &= policy->streams == 1 || caps->streams;
	if (policy->enhanced) {
		/* RFC 6581 section 9.2: support at least one option */
		ok &= iw_mpa_kinds_accepted(policy, caps) != 0;
		ok &= policy->model == RDMA_MPA_MODEL_CLIENT_SERVER ||
		      iw_mpa_kinds_offered(policy, caps);
	} else {
		ok &= policy->model != RDMA_MPA_MODEL_PEER_TO_PEER_REQUIRED;
	}
	return ok ? 0 : -EINVAL;
}
EXPORT_SYMBOL_IF_KUNIT(iw_mpa_policy_check);

static u16 limit_depth(u16 depth, u16 ceiling, bool pow2)
{
	if (ceiling == IW_MPA_DEPTH_MAX)
		return depth;
	/* A device that rounds up must not pass the ceiling */
	if (pow2 && ceiling)
		ceiling = rounddown_pow_of_two(ceiling);
	return min(depth, ceiling);
}

/**
 * iw_mpa_policy_limit - capabilities of a device under a policy's ceilings
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
EXPORT_SYMBOL_IF_KUNIT(iw_mpa_policy_limit);

/**
 * iw_mpa_policy_explain - the reason why a device does not support a policy
 * @policy: the policy
 * @caps: the device, without the policy's ceilings
 * @why: filled with the reason if the device does not support @policy
 * @size: size of @why in bytes
 *
 * Return: 0 or -EINVAL, as iw_mpa_policy_check() under the policy's ceilings.
 */
int iw_mpa_policy_explain(const struct iw_mpa_policy *policy,
			  const struct iw_mpa_caps *caps, char *why,
			  size_t size)
{
	struct iw_mpa_caps limited = *caps;
	enum rdma_mpa_setting invalid;
	int rv;

	iw_mpa_policy_limit(policy, &limited);
	rv = iw_mpa_policy_check(policy, &limited);
	if (!rv)
		return 0;

	invalid = find_invalid(policy);
	if (invalid)
		scnprintf(why, size, "%s: invalid value",
			  iw_mpa_setting_str(invalid));
	else if (policy->markers && !caps->rx_markers)
		scnprintf(why, size, "the device does not support markers");
	else if (policy->large && !caps->large)
		scnprintf(why, size,
			  "the device does not support FPDUs above the MSS");
	else if (policy->streams > 1 && !caps->streams)
		scnprintf(why, size,
			  "the device does not support several connections on one SCTP association");
	else if (policy->crc == RDMA_MPA_CRC_REQUIRED && caps->no_crc)
		scnprintf(why, size, "the device does not support CRC32c");
	else if (policy->model == RDMA_MPA_MODEL_PEER_TO_PEER_REQUIRED &&
		 !policy->enhanced)
		scnprintf(why, size,
			  "revision 1 does not support the peer-to-peer model");
	else if (policy->enhanced && !(policy->rtr_accept & caps->rtr_recv))
		scnprintf(why, size, "the device recognises only these RTR kinds: %s",
			  kinds_str(caps->rtr_recv));
	else if (policy->enhanced && !(policy->rtr_offer & caps->rtr_send))
		scnprintf(why, size, "the device sends only these RTR kinds: %s",
			  kinds_str(caps->rtr_send));
	else if (!(policy->rtr_offer & ~RDMA_MPA_RTR_READ))
		scnprintf(why, size, "a Read RTR needs an ORD of 1 or more");
	else
		scnprintf(why, size,
			  "the only usable RTR kind, read, needs an ORD of 1 or more");
	return rv;
}
EXPORT_SYMBOL_IF_KUNIT(iw_mpa_policy_explain);
