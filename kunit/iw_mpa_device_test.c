// SPDX-License-Identifier: GPL-2.0
/*
 * Layers of settings with fake devices: settings of the default layer that a
 * device applies, settings that are rejected, and the policy of sessions.
 */
#include <kunit/test.h>
#include <linux/err.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/string.h>

#include <rdma/ib_verbs.h>
#include <rdma/iw_cm.h>

#include "device.h"
#include "session.h"

enum {
	PORTS		= 2,
	INDEX		= 0x7fffff10,	/* of ib_device; unique */
};

/* ---- drivers */

static int fake_send(struct iw_mpa_session *s, const void *frame, size_t len)
{
	return 0;
}

static int fake_enter_rdma(struct iw_mpa_session *s,
			   const struct iw_mpa_rdma *rdma)
{
	return 0;
}

static int fake_terminate(struct iw_mpa_session *s,
			  const struct iw_mpa_rdma *rdma,
			  enum rdma_mpa_ecode ecode)
{
	return 0;
}

static void fake_deadline(struct iw_mpa_session *s, unsigned int ms)
{
}

static int fake_event(struct iw_mpa_session *s, const struct iw_mpa_event *ev)
{
	return 0;
}

static const struct iw_mpa_ops fake_ops = {
	.send		= fake_send,
	.enter_rdma	= fake_enter_rdma,
	.terminate	= fake_terminate,
	.deadline	= fake_deadline,
	.event		= fake_event,
};

/* A device that supports everything */
static const struct iw_mpa_caps able = {
	.max_ird	= 1024,
	.max_ord	= 1024,
	.rtr_send	= IW_MPA_RTR_ALL,
	.rtr_recv	= IW_MPA_RTR_ALL,
	.fastopen	= true,
	.large		= true,
};

static struct iw_mpa_device *
new_device_with(struct kunit *test, const struct iw_mpa_caps *caps,
		const struct iw_mpa_choice *initial, unsigned int num_initial)
{
	const struct iw_mpa_driver driver = {
		.ops = &fake_ops,
		.caps = *caps,
		.initial = initial,
		.num_initial = num_initial,
	};
	struct iw_mpa_device *dev;
	struct ib_device *ibdev;

	ibdev = kunit_kzalloc(test, sizeof(*ibdev), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, ibdev);
	ibdev->phys_port_cnt = PORTS;
	ibdev->index = INDEX;
	ibdev->dev.init_name = "fake";
	strscpy(ibdev->name, "fake", IB_DEVICE_NAME_MAX);
	/* For iw_mpa the device counts as registered */
	refcount_set(&ibdev->refcount, 1);
	dev = iw_mpa_register_device(ibdev, &driver);
	KUNIT_ASSERT_FALSE(test, IS_ERR(dev));
	return dev;
}

static struct iw_mpa_device *new_device(struct kunit *test,
					const struct iw_mpa_caps *caps)
{
	return new_device_with(test, caps, NULL, 0);
}

/* ---- places */

#define NOWHERE	((struct iw_mpa_place) {})
#define DEV(d)	((struct iw_mpa_place) { .dev = (d) })

static struct iw_mpa_place port_of(struct iw_mpa_device *dev, u32 num)
{
	return (struct iw_mpa_place) {
		.dev = dev,
		.port = &dev->port[num - 1],
	};
}

static struct iw_mpa_view view_of(struct iw_mpa_place place)
{
	struct iw_mpa_view view;

	mutex_lock(&iw_mpa_devices_lock);
	iw_mpa_view_place(&place, &view);
	mutex_unlock(&iw_mpa_devices_lock);
	return view;
}

static int change_layer(struct iw_mpa_place place,
			const struct iw_mpa_change *change, char *why,
			size_t size)
{
	int rv;

	mutex_lock(&iw_mpa_devices_lock);
	rv = iw_mpa_change_layer(&place, change, why, size);
	mutex_unlock(&iw_mpa_devices_lock);
	return rv;
}

/* Adds a setting to the layer of a place, like `rdma mpa set` */
static int set_saying(struct iw_mpa_place place, enum rdma_mpa_setting setting,
		      u32 value, char *why, size_t size)
{
	struct iw_mpa_change change = {};

	return iw_mpa_layer_set(&change.layer, setting, value) ?:
	       change_layer(place, &change, why, size);
}

static int set(struct iw_mpa_place place, enum rdma_mpa_setting setting,
	       u32 value)
{
	char why[80];

	return set_saying(place, setting, value, why, sizeof(why));
}

static void reset(struct kunit *test, struct iw_mpa_place place)
{
	const struct iw_mpa_change all = { .unset = ~0U };
	char why[80];

	KUNIT_EXPECT_EQ(test, 0, change_layer(place, &all, why, sizeof(why)));
}

static u32 effective(struct iw_mpa_place place, enum rdma_mpa_setting setting)
{
	struct iw_mpa_view view = view_of(place);

	return iw_mpa_setting_get(&view.effective, setting);
}

static int origin(struct iw_mpa_place place, enum rdma_mpa_setting setting)
{
	return view_of(place).origin[setting];
}

static u32 built_in(enum rdma_mpa_setting setting)
{
	return iw_mpa_setting_get(&iw_mpa_default_policy, setting);
}

/* A session on each port has the policy that its place shows */
static void expect_sessions(struct kunit *test, struct iw_mpa_device *dev)
{
	struct iw_mpa_session s;
	struct iw_mpa_view view;
	int i;

	for (i = 1; i <= PORTS; i++) {
		KUNIT_ASSERT_EQ(test, 0, iw_mpa_session_open(&s, dev, i, NULL));
		view = view_of(port_of(dev, i));
		KUNIT_EXPECT_EQ(test, 0, memcmp(&view.effective,
						&s.setup->config.policy,
						sizeof(view.effective)));
		iw_mpa_session_close(&s);
	}
}

/* The machine's own defaults, saved during each test */
static struct iw_mpa_layer administrators;

static int device_test_init(struct kunit *test)
{
	administrators = view_of(NOWHERE).own;
	reset(test, NOWHERE);
	return 0;
}

static void device_test_exit(struct kunit *test)
{
	const struct iw_mpa_change change = {
		.unset = ~0U,
		.layer = administrators,
	};
	char why[80];

	KUNIT_EXPECT_EQ(test, 0, change_layer(NOWHERE, &change, why,
					      sizeof(why)));
}

/* A change keeps the settings that it does not name, and may raise a limit */
static void change_of_a_layer_keeps_its_other_settings(struct kunit *test)
{
	struct iw_mpa_change change = { .unset = BIT(RDMA_MPA_SETTING_ORD) };
	struct iw_mpa_layer own;
	char why[80];

	KUNIT_ASSERT_EQ(test, 0, set(NOWHERE, RDMA_MPA_SETTING_IRD, 4));
	KUNIT_ASSERT_EQ(test, 0, set(NOWHERE, RDMA_MPA_SETTING_ORD, 5));
	KUNIT_ASSERT_EQ(test, 0, set(NOWHERE, RDMA_MPA_SETTING_REPLY_MS, 6000));
	KUNIT_ASSERT_EQ(test, 0, set(NOWHERE, RDMA_MPA_SETTING_IRD, 7));
	KUNIT_ASSERT_EQ(test, 0, change_layer(NOWHERE, &change, why,
					      sizeof(why)));
	own = view_of(NOWHERE).own;
	KUNIT_EXPECT_EQ(test, own.set, (u32)(BIT(RDMA_MPA_SETTING_IRD) |
					     BIT(RDMA_MPA_SETTING_REPLY_MS)));
	KUNIT_EXPECT_EQ(test, 7, (int)own.value.max_ird);
	KUNIT_EXPECT_EQ(test, 6000, (int)own.value.reply_ms);
}

/* ---- the default layer */

static void default_setting_applies_to_devices_and_ports(struct kunit *test)
{
	struct iw_mpa_device *dev = new_device(test, &able);

	KUNIT_EXPECT_EQ(test, RDMA_MPA_LAYER_BUILT_IN,
			origin(port_of(dev, 1), RDMA_MPA_SETTING_RTR_MS));
	KUNIT_EXPECT_EQ(test, 0, set(NOWHERE, RDMA_MPA_SETTING_RTR_MS, 77));
	KUNIT_EXPECT_EQ(test, 77U, effective(NOWHERE, RDMA_MPA_SETTING_RTR_MS));
	KUNIT_EXPECT_EQ(test, 77U,
			effective(DEV(dev), RDMA_MPA_SETTING_RTR_MS));
	KUNIT_EXPECT_EQ(test, 77U,
			effective(port_of(dev, 2), RDMA_MPA_SETTING_RTR_MS));
	KUNIT_EXPECT_EQ(test, RDMA_MPA_LAYER_DEFAULT,
			origin(port_of(dev, 2), RDMA_MPA_SETTING_RTR_MS));
	KUNIT_EXPECT_EQ(test, 0U, view_of(port_of(dev, 2)).own.set);
	KUNIT_EXPECT_EQ(test, 0U, view_of(port_of(dev, 2)).not_taken);
	expect_sessions(test, dev);
	reset(test, NOWHERE);
	KUNIT_EXPECT_EQ(test, built_in(RDMA_MPA_SETTING_RTR_MS),
			effective(port_of(dev, 2), RDMA_MPA_SETTING_RTR_MS));
	iw_mpa_unregister_device(dev);
}

/**
 * struct inability - a default that some device does not support
 * @name: of the test
 * @setting: the default
 * @value: its value
 * @caps: the device
 * @without: the value in force on the device
 */
struct inability {
	const char *name;
	enum rdma_mpa_setting setting;
	u32 value;
	struct iw_mpa_caps caps;
	u32 without;
};

#define CAPS(...) { .max_ird = 128, .max_ord = 64,			\
	.rtr_send = RDMA_MPA_RTR_READ | RDMA_MPA_RTR_WRITE,		\
	.rtr_recv = RDMA_MPA_RTR_READ | RDMA_MPA_RTR_WRITE, ##__VA_ARGS__ }

static const struct inability inabilities[] = {
	{ "a default that requires CRC is ignored by a device without CRC32c",
	  RDMA_MPA_SETTING_CRC, RDMA_MPA_CRC_REQUIRED,
	  CAPS(.no_crc = true), RDMA_MPA_CRC_OFF },
	{ "a default of Fast Open is ignored by a device without TCP Fast Open",
	  RDMA_MPA_SETTING_FASTOPEN, RDMA_MPA_FASTOPEN_ON,
	  CAPS(), RDMA_MPA_FASTOPEN_OFF },
	{ "a default of FPDUs above the MSS is ignored by a device without support",
	  RDMA_MPA_SETTING_SEGMENT, RDMA_MPA_SEGMENT_LARGE,
	  CAPS(), RDMA_MPA_SEGMENT_MSS },
	{ "a default TCP connect timeout is ignored by a device without support",
	  RDMA_MPA_SETTING_CONNECT_MS, 1000,
	  CAPS(.no_connect_ms = true), 150000 },
	{ "a default RTR kind is ignored by a device that cannot send it",
	  RDMA_MPA_SETTING_RTR_OFFER,
	  RDMA_MPA_RTR_SEND, CAPS(), RDMA_MPA_RTR_READ | RDMA_MPA_RTR_WRITE },
	{ "a default of three RTR kinds is reduced to those a device can send",
	  RDMA_MPA_SETTING_RTR_OFFER,
	  IW_MPA_RTR_ALL, CAPS(), RDMA_MPA_RTR_READ | RDMA_MPA_RTR_WRITE },
	{ "a default RTR kind is ignored by a device that does not recognise it",
	  RDMA_MPA_SETTING_RTR_ACCEPT,
	  RDMA_MPA_RTR_SEND, CAPS(), IW_MPA_RTR_ALL },
	{ "a default IRD above a device's largest is ignored by the device",
	  RDMA_MPA_SETTING_IRD, 129, CAPS(),
	  IW_MPA_DEPTH_MAX },
	{ "a default ORD above a device's largest is ignored by the device",
	  RDMA_MPA_SETTING_ORD, 65, CAPS(),
	  IW_MPA_DEPTH_MAX },
};

static void inability_desc(const struct inability *c, char *desc)
{
	strscpy(desc, c->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(inability, inabilities, inability_desc);

static void default_setting_unsupported_by_a_device_is_ignored(struct kunit *test)
{
	const struct inability *c = test->param_value;
	struct iw_mpa_device *dev = new_device(test, &c->caps);
	struct iw_mpa_device *other = new_device(test, &able);
	int i;

	KUNIT_EXPECT_EQ(test, 0, set(NOWHERE, c->setting, c->value));
	/* The device still applies other settings */
	KUNIT_EXPECT_EQ(test, 0, set(NOWHERE, RDMA_MPA_SETTING_RTR_MS, 77));
	for (i = 0; i <= PORTS; i++) {
		struct iw_mpa_place place = i ? port_of(dev, i) : DEV(dev);

		KUNIT_EXPECT_EQ(test, (u32)BIT(c->setting),
				view_of(place).not_taken);
		KUNIT_EXPECT_EQ(test, c->without, effective(place, c->setting));
		KUNIT_EXPECT_EQ(test, RDMA_MPA_LAYER_BUILT_IN,
				origin(place, c->setting));
		KUNIT_EXPECT_EQ(test, 77U,
				effective(place, RDMA_MPA_SETTING_RTR_MS));
	}
	KUNIT_EXPECT_EQ(test, 0U, view_of(port_of(other, 1)).not_taken);
	KUNIT_EXPECT_EQ(test, c->value,
			effective(port_of(other, 1), c->setting));
	KUNIT_EXPECT_EQ(test, 0U, view_of(NOWHERE).not_taken);
	expect_sessions(test, dev);
	expect_sessions(test, other);

	/* The order of registration and setting does not matter */
	iw_mpa_unregister_device(dev);
	dev = new_device(test, &c->caps);
	KUNIT_EXPECT_EQ(test, (u32)BIT(c->setting),
			view_of(port_of(dev, 1)).not_taken);
	expect_sessions(test, dev);

	reset(test, NOWHERE);
	KUNIT_EXPECT_EQ(test, 0U, view_of(port_of(dev, 1)).not_taken);
	iw_mpa_unregister_device(dev);
	iw_mpa_unregister_device(other);
}

static void default_setting_contradicting_device_settings_is_ignored(struct kunit *test)
{
	struct iw_mpa_device *dev = new_device(test, &able);
	struct iw_mpa_view view;

	KUNIT_EXPECT_EQ(test, 0, set(DEV(dev), RDMA_MPA_SETTING_MODEL,
				     RDMA_MPA_MODEL_PEER_TO_PEER_REQUIRED));
	KUNIT_EXPECT_EQ(test, 0, set(NOWHERE, RDMA_MPA_SETTING_CRC,
				     RDMA_MPA_CRC_OFF));
	KUNIT_EXPECT_EQ(test, 0, set(NOWHERE, RDMA_MPA_SETTING_REVISION,
				     RDMA_MPA_REVISION_RFC5044));
	KUNIT_EXPECT_EQ(test, 0, set(NOWHERE, RDMA_MPA_SETTING_RTR_MS, 77));

	/* The device applies all other settings */
	view = view_of(port_of(dev, 1));
	KUNIT_EXPECT_EQ(test, (u32)BIT(RDMA_MPA_SETTING_REVISION),
			view.not_taken);
	KUNIT_EXPECT_EQ(test, 2, (int)view.effective.rev);
	KUNIT_EXPECT_EQ(test, RDMA_MPA_CRC_OFF, (int)view.effective.crc);
	KUNIT_EXPECT_EQ(test, 77U, view.effective.rtr_ms);
	KUNIT_EXPECT_EQ(test, RDMA_MPA_LAYER_DEVICE,
			(int)view.origin[RDMA_MPA_SETTING_MODEL]);
	KUNIT_EXPECT_EQ(test, RDMA_MPA_LAYER_BUILT_IN,
			(int)view.origin[RDMA_MPA_SETTING_REVISION]);
	KUNIT_EXPECT_EQ(test, RDMA_MPA_LAYER_DEFAULT,
			(int)view.origin[RDMA_MPA_SETTING_CRC]);
	expect_sessions(test, dev);

	/* The device applies the default once its own setting is removed */
	reset(test, DEV(dev));
	KUNIT_EXPECT_EQ(test, 0U, view_of(port_of(dev, 1)).not_taken);
	KUNIT_EXPECT_EQ(test, (u32)RDMA_MPA_REVISION_RFC5044,
			effective(port_of(dev, 1), RDMA_MPA_SETTING_REVISION));
	expect_sessions(test, dev);
	iw_mpa_unregister_device(dev);
}

/* A ceiling can exclude the last kind of RTR */
static void default_setting_contradicting_port_settings_is_ignored(struct kunit *test)
{
	struct iw_mpa_device *dev = new_device(test, &able);

	KUNIT_EXPECT_EQ(test, 0, set(port_of(dev, 2), RDMA_MPA_SETTING_RTR_OFFER,
				     RDMA_MPA_RTR_READ));
	KUNIT_EXPECT_EQ(test, 0, set(NOWHERE, RDMA_MPA_SETTING_ORD, 0));
	KUNIT_EXPECT_EQ(test, 0U, view_of(port_of(dev, 1)).not_taken);
	KUNIT_EXPECT_EQ(test, 0U,
			effective(port_of(dev, 1), RDMA_MPA_SETTING_ORD));
	KUNIT_EXPECT_EQ(test, (u32)BIT(RDMA_MPA_SETTING_ORD),
			view_of(port_of(dev, 2)).not_taken);
	KUNIT_EXPECT_EQ(test, (u32)IW_MPA_DEPTH_MAX,
			effective(port_of(dev, 2), RDMA_MPA_SETTING_ORD));
	/* The log names this setting for the device */
	KUNIT_EXPECT_EQ(test, (u32)BIT(RDMA_MPA_SETTING_ORD), dev->not_taken);
	expect_sessions(test, dev);
	iw_mpa_unregister_device(dev);
}

static void default_setting_contradicting_driver_settings_is_ignored(struct kunit *test)
{
	static const struct iw_mpa_choice rev1 = {
		RDMA_MPA_SETTING_REVISION, RDMA_MPA_REVISION_RFC5044
	};
	struct iw_mpa_device *dev = new_device_with(test, &able, &rev1, 1);

	KUNIT_EXPECT_EQ(test, (u32)RDMA_MPA_REVISION_RFC5044,
			effective(port_of(dev, 1), RDMA_MPA_SETTING_REVISION));
	KUNIT_EXPECT_EQ(test, 0, set(NOWHERE, RDMA_MPA_SETTING_MODEL,
				     RDMA_MPA_MODEL_PEER_TO_PEER_REQUIRED));
	KUNIT_EXPECT_EQ(test, (u32)BIT(RDMA_MPA_SETTING_MODEL),
			view_of(port_of(dev, 1)).not_taken);
	expect_sessions(test, dev);

	/* Together the settings are valid */
	KUNIT_EXPECT_EQ(test, 0, set(NOWHERE, RDMA_MPA_SETTING_REVISION,
				     RDMA_MPA_REVISION_RFC6581));
	KUNIT_EXPECT_EQ(test, 0U, view_of(port_of(dev, 1)).not_taken);
	KUNIT_EXPECT_EQ(test, (u32)RDMA_MPA_MODEL_PEER_TO_PEER_REQUIRED,
			effective(port_of(dev, 1), RDMA_MPA_SETTING_MODEL));
	expect_sessions(test, dev);
	iw_mpa_unregister_device(dev);
}

/* The log names each setting once, when a session would have needed it */
static void ignored_default_setting_is_logged_once(struct kunit *test)
{
	static const struct iw_mpa_caps caps = CAPS(.no_crc = true);
	const u32 both = BIT(RDMA_MPA_SETTING_CRC) |
			 BIT(RDMA_MPA_SETTING_FASTOPEN);
	struct iw_mpa_device *dev;

	KUNIT_EXPECT_EQ(test, 0, set(NOWHERE, RDMA_MPA_SETTING_CRC,
				     RDMA_MPA_CRC_REQUIRED));
	dev = new_device(test, &caps);
	KUNIT_EXPECT_EQ(test, (u32)BIT(RDMA_MPA_SETTING_CRC), dev->not_taken);
	/* The device has no name before it is registered */
	KUNIT_EXPECT_EQ(test, 0U, dev->told);
	expect_sessions(test, dev);
	KUNIT_EXPECT_EQ(test, (u32)BIT(RDMA_MPA_SETTING_CRC), dev->told);
	KUNIT_EXPECT_EQ(test, 0, set(NOWHERE, RDMA_MPA_SETTING_FASTOPEN,
				     RDMA_MPA_FASTOPEN_ON));
	KUNIT_EXPECT_EQ(test, both, dev->not_taken);
	KUNIT_EXPECT_EQ(test, both, dev->told);
	iw_mpa_unregister_device(dev);
}

/**
 * struct contradiction - two settings that contradict each other
 * @name: of the test
 * @a: one setting, and its value
 * @b: the other setting, and its value
 * @why: the reason in the message
 */
struct contradiction {
	const char *name;
	struct iw_mpa_choice a;
	struct iw_mpa_choice b;
	const char *why;
};

static const struct contradiction contradictions[] = {
	{ "peer-to-peer-required and revision 1 are refused together",
	  { RDMA_MPA_SETTING_REVISION, RDMA_MPA_REVISION_RFC5044 },
	  { RDMA_MPA_SETTING_MODEL, RDMA_MPA_MODEL_PEER_TO_PEER_REQUIRED },
	  "revision 1 does not support the peer-to-peer model" },
	{ "a Read RTR and ORD 0 are refused together",
	  { RDMA_MPA_SETTING_ORD, 0 },
	  { RDMA_MPA_SETTING_RTR_OFFER, RDMA_MPA_RTR_READ },
	  "a Read RTR needs an ORD of 1 or more" },
};

static void contradiction_desc(const struct contradiction *c, char *desc)
{
	strscpy(desc, c->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(contradiction, contradictions, contradiction_desc);

static void expect_contradiction(struct kunit *test, struct iw_mpa_place place,
				 const struct iw_mpa_choice *a,
				 const struct iw_mpa_choice *b, const char *why)
{
	struct iw_mpa_layer before;
	char said[80] = "";
	unsigned int generation;

	KUNIT_EXPECT_EQ(test, 0, set(place, a->setting, a->value));
	before = view_of(place).own;
	generation = iw_mpa_generation;
	KUNIT_EXPECT_EQ(test, -EINVAL, set_saying(place, b->setting, b->value,
						  said, sizeof(said)));
	KUNIT_EXPECT_STREQ(test, why, said);
	/* Nothing has changed */
	KUNIT_EXPECT_EQ(test, before.set, view_of(place).own.set);
	KUNIT_EXPECT_EQ(test, built_in(b->setting),
			effective(place, b->setting));
	KUNIT_EXPECT_EQ(test, generation, iw_mpa_generation);
	reset(test, place);
}

static void contradictory_default_device_and_port_settings_are_refused(struct kunit *test)
{
	const struct contradiction *c = test->param_value;
	struct iw_mpa_device *dev = new_device(test, &able);
	char why[80];

	expect_contradiction(test, NOWHERE, &c->a, &c->b, c->why);
	expect_contradiction(test, NOWHERE, &c->b, &c->a, c->why);
	snprintf(why, sizeof(why), "fake: %s", c->why);
	expect_contradiction(test, DEV(dev), &c->a, &c->b, why);
	expect_contradiction(test, DEV(dev), &c->b, &c->a, why);
	snprintf(why, sizeof(why), "fake/2: %s", c->why);
	expect_contradiction(test, port_of(dev, 2), &c->a, &c->b, why);
	expect_contradiction(test, port_of(dev, 2), &c->b, &c->a, why);

	/* A port is below its device */
	KUNIT_EXPECT_EQ(test, 0, set(port_of(dev, 2), c->a.setting, c->a.value));
	KUNIT_EXPECT_EQ(test, -EINVAL,
			set_saying(DEV(dev), c->b.setting, c->b.value, why,
				   sizeof(why)));
	KUNIT_EXPECT_EQ(test, 0, strncmp(why, "fake/2: ", 8));
	expect_sessions(test, dev);
	iw_mpa_unregister_device(dev);
}

/* ---- the settings of a device */

/* Such settings would become invalid when the default is removed */
static void settings_valid_only_due_to_a_default_setting_are_refused(struct kunit *test)
{
	static const struct iw_mpa_choice rev1 = {
		RDMA_MPA_SETTING_REVISION, RDMA_MPA_REVISION_RFC5044
	};
	struct iw_mpa_device *dev = new_device_with(test, &able, &rev1, 1);
	char why[80] = "";

	KUNIT_EXPECT_EQ(test, 0, set(NOWHERE, RDMA_MPA_SETTING_REVISION,
				     RDMA_MPA_REVISION_RFC6581));
	KUNIT_EXPECT_EQ(test, (u32)RDMA_MPA_REVISION_RFC6581,
			effective(port_of(dev, 1), RDMA_MPA_SETTING_REVISION));
	KUNIT_EXPECT_EQ(test, -EINVAL,
			set_saying(DEV(dev), RDMA_MPA_SETTING_MODEL,
				   RDMA_MPA_MODEL_PEER_TO_PEER_REQUIRED, why,
				   sizeof(why)));
	KUNIT_EXPECT_STREQ(test, why,
			   "fake: revision 1 does not support the peer-to-peer model");
	KUNIT_EXPECT_EQ(test, -EINVAL,
			set(port_of(dev, 1), RDMA_MPA_SETTING_MODEL,
			    RDMA_MPA_MODEL_PEER_TO_PEER_REQUIRED));

	/* With the device's own revision the setting is valid */
	KUNIT_EXPECT_EQ(test, 0, set(DEV(dev), RDMA_MPA_SETTING_REVISION,
				     RDMA_MPA_REVISION_RFC6581));
	KUNIT_EXPECT_EQ(test, 0, set(port_of(dev, 1), RDMA_MPA_SETTING_MODEL,
				     RDMA_MPA_MODEL_PEER_TO_PEER_REQUIRED));
	reset(test, NOWHERE);
	expect_sessions(test, dev);
	/* The device cannot drop a revision that its port needs */
	KUNIT_EXPECT_EQ(test, -EINVAL, set(DEV(dev), RDMA_MPA_SETTING_REVISION,
					   RDMA_MPA_REVISION_RFC5044));
	iw_mpa_unregister_device(dev);
}

static void setting_unsupported_by_the_device_is_refused(struct kunit *test)
{
	const struct inability *c = test->param_value;
	struct iw_mpa_device *dev = new_device(test, &c->caps);

	KUNIT_EXPECT_EQ(test, -EINVAL, set(DEV(dev), c->setting, c->value));
	KUNIT_EXPECT_EQ(test, -EINVAL, set(port_of(dev, 2), c->setting, c->value));
	KUNIT_EXPECT_EQ(test, 0U, view_of(DEV(dev)).own.set);
	KUNIT_EXPECT_EQ(test, 0U, view_of(port_of(dev, 2)).own.set);
	KUNIT_EXPECT_EQ(test, c->without,
			effective(port_of(dev, 2), c->setting));
	iw_mpa_unregister_device(dev);
}

static void port_setting_overrides_device_and_default_settings(struct kunit *test)
{
	struct iw_mpa_device *dev = new_device(test, &able);
	enum rdma_mpa_setting ms = RDMA_MPA_SETTING_REPLY_MS;

	KUNIT_EXPECT_EQ(test, 0, set(port_of(dev, 1), ms, 3));
	KUNIT_EXPECT_EQ(test, 0, set(DEV(dev), ms, 2));
	KUNIT_EXPECT_EQ(test, 0, set(NOWHERE, ms, 1));
	KUNIT_EXPECT_EQ(test, 3U, effective(port_of(dev, 1), ms));
	KUNIT_EXPECT_EQ(test, 2U, effective(port_of(dev, 2), ms));
	KUNIT_EXPECT_EQ(test, 2U, effective(DEV(dev), ms));
	KUNIT_EXPECT_EQ(test, RDMA_MPA_LAYER_PORT, origin(port_of(dev, 1), ms));
	KUNIT_EXPECT_EQ(test, RDMA_MPA_LAYER_DEVICE, origin(port_of(dev, 2), ms));
	KUNIT_EXPECT_EQ(test, RDMA_MPA_LAYER_DEFAULT, origin(NOWHERE, ms));
	expect_sessions(test, dev);
	reset(test, DEV(dev));
	KUNIT_EXPECT_EQ(test, 3U, effective(port_of(dev, 1), ms));
	KUNIT_EXPECT_EQ(test, 1U, effective(port_of(dev, 2), ms));
	reset(test, port_of(dev, 1));
	KUNIT_EXPECT_EQ(test, 1U, effective(port_of(dev, 1), ms));
	iw_mpa_unregister_device(dev);
}

/* The owner of a device can lower the administrator's limit, not raise it */
static void lowest_ird_limit_of_port_device_and_default_applies(struct kunit *test)
{
	struct iw_mpa_device *dev = new_device(test, &able);
	enum rdma_mpa_setting ird = RDMA_MPA_SETTING_IRD;

	KUNIT_EXPECT_EQ(test, 0, set(NOWHERE, ird, 16));
	KUNIT_EXPECT_EQ(test, 0, set(DEV(dev), ird, 32));
	KUNIT_EXPECT_EQ(test, 0, set(port_of(dev, 1), ird, 8));
	KUNIT_EXPECT_EQ(test, 8U, effective(port_of(dev, 1), ird));
	KUNIT_EXPECT_EQ(test, 16U, effective(port_of(dev, 2), ird));
	KUNIT_EXPECT_EQ(test, 0, set(port_of(dev, 2), ird, IW_MPA_DEPTH_ULP));
	KUNIT_EXPECT_EQ(test, (u32)IW_MPA_DEPTH_ULP,
			effective(port_of(dev, 2), ird));
	KUNIT_EXPECT_EQ(test, 16,
			(int)view_of(port_of(dev, 2)).effective.max_ird);
	iw_mpa_unregister_device(dev);
}

/* A device without CRC ignores an inherited `crc if-asked` */
static void crc_if_asked_is_ignored_by_a_device_without_crc(struct kunit *test)
{
	static const struct iw_mpa_caps caps = CAPS(.no_crc = true);
	struct iw_mpa_device *dev = new_device(test, &caps);

	KUNIT_EXPECT_EQ(test, (u32)RDMA_MPA_CRC_OFF,
			effective(port_of(dev, 1), RDMA_MPA_SETTING_CRC));
	KUNIT_EXPECT_EQ(test, 0, set(NOWHERE, RDMA_MPA_SETTING_CRC,
				     RDMA_MPA_CRC_IF_ASKED));
	KUNIT_EXPECT_EQ(test, (u32)RDMA_MPA_CRC_OFF,
			effective(port_of(dev, 1), RDMA_MPA_SETTING_CRC));
	KUNIT_EXPECT_EQ(test, 0U, view_of(port_of(dev, 1)).not_taken);
	expect_sessions(test, dev);
	iw_mpa_unregister_device(dev);
}

static void unsupported_settings_do_not_exist_for_a_device(struct kunit *test)
{
	static const struct iw_mpa_caps tcp = CAPS(.no_connect_ms = true);
	static const struct iw_mpa_caps rtr = CAPS(.rtr_offload = true);
	enum rdma_mpa_setting setting;

	iw_mpa_for_each_setting(setting) {
		KUNIT_EXPECT_TRUE(test, iw_mpa_setting_exists(setting, &able));
		KUNIT_EXPECT_EQ(test, setting != RDMA_MPA_SETTING_CONNECT_MS,
				iw_mpa_setting_exists(setting, &tcp));
		KUNIT_EXPECT_EQ(test, setting != RDMA_MPA_SETTING_RTR_MS,
				iw_mpa_setting_exists(setting, &rtr));
	}
}

/* ---- sessions */

static void changed_settings_do_not_affect_existing_sessions(struct kunit *test)
{
	struct iw_mpa_device *dev = new_device(test, &able);
	struct iw_mpa_config *listener;
	struct iw_mpa_session s, child;

	KUNIT_EXPECT_EQ(test, 0, set(DEV(dev), RDMA_MPA_SETTING_RTR_MS, 7));
	listener = iw_mpa_config_get(dev, 1, NULL);
	KUNIT_ASSERT_FALSE(test, IS_ERR(listener));
	KUNIT_ASSERT_EQ(test, 0, iw_mpa_session_open(&s, dev, 1, NULL));
	KUNIT_EXPECT_EQ(test, 0, set(DEV(dev), RDMA_MPA_SETTING_RTR_MS, 8));
	KUNIT_ASSERT_EQ(test, 0, iw_mpa_session_inherit(&child, listener));
	iw_mpa_config_put(listener);

	KUNIT_EXPECT_EQ(test, 7U, s.setup->config.policy.rtr_ms);
	KUNIT_EXPECT_EQ(test, 7U, child.setup->config.policy.rtr_ms);
	KUNIT_EXPECT_PTR_EQ(test, &dev->port[0], child.port);
	iw_mpa_session_close(&s);
	iw_mpa_session_close(&child);
	/* A second close has no effect */
	iw_mpa_session_close(&s);
	iw_mpa_unregister_device(dev);
}

static void connection_options_are_checked_against_the_device(struct kunit *test)
{
	static const struct iw_mpa_caps caps = CAPS();
	struct iw_mpa_device *dev = new_device(test, &caps);
	const u32 send = RDMA_MPA_RTR_SEND;
	struct iw_mpa_layer options = {};
	struct iw_mpa_config *listener;
	struct iw_mpa_session s;
	u32 ms = 9;

	iw_mpa_layer_set_option(&options, RDMA_MPA_OPTION_RTR_MS, &ms,
				sizeof(ms));
	KUNIT_ASSERT_EQ(test, 0, iw_mpa_session_open(&s, dev, 2, &options));
	KUNIT_EXPECT_EQ(test, 9U, s.setup->config.policy.rtr_ms);
	iw_mpa_session_close(&s);
	listener = iw_mpa_config_get(dev, 2, &options);
	KUNIT_ASSERT_FALSE(test, IS_ERR(listener));
	KUNIT_EXPECT_EQ(test, 9U, listener->policy.rtr_ms);
	iw_mpa_config_put(listener);

	iw_mpa_layer_set_option(&options, RDMA_MPA_OPTION_RTR, &send,
				sizeof(send));
	KUNIT_EXPECT_EQ(test, -EINVAL,
			iw_mpa_session_open(&s, dev, 2, &options));
	KUNIT_EXPECT_NULL(test, s.setup);
	KUNIT_EXPECT_PTR_EQ(test, ERR_PTR(-EINVAL),
			    iw_mpa_config_get(dev, 2, &options));
	iw_mpa_unregister_device(dev);
}

static void nonexistent_port_of_a_device_is_refused(struct kunit *test)
{
	struct iw_mpa_device *dev = new_device(test, &able);
	static const u32 others[] = { 0, PORTS + 1, ~0U };
	struct rdma_hw_stats *stats = iw_mpa_alloc_port_stats();
	struct iw_mpa_session s;
	int i;

	KUNIT_ASSERT_NOT_NULL(test, stats);
	for (i = 0; i < ARRAY_SIZE(others); i++) {
		memset(&s, 0xa5, sizeof(s));
		KUNIT_EXPECT_EQ(test, -EINVAL,
				iw_mpa_session_open(&s, dev, others[i], NULL));
		KUNIT_EXPECT_NULL(test, s.setup);
		KUNIT_EXPECT_PTR_EQ(test, ERR_PTR(-EINVAL),
				    iw_mpa_config_get(dev, others[i], NULL));
		KUNIT_EXPECT_EQ(test, -EINVAL,
				iw_mpa_get_port_stats(dev, others[i], stats));
	}
	KUNIT_EXPECT_EQ(test, (int)IW_MPA_COUNTERS,
			iw_mpa_get_port_stats(dev, PORTS, stats));
	for (i = 0; i < IW_MPA_COUNTERS; i++)
		KUNIT_EXPECT_NOT_NULL(test, stats->descs[i].name);
	rdma_free_hw_stats_struct(stats);
	iw_mpa_unregister_device(dev);
}

/* A device is found while it is registered */
static void device_is_found_by_its_index(struct kunit *test)
{
	struct iw_mpa_device *dev = new_device(test, &able);
	struct ib_device *ibdev = dev->ibdev;

	mutex_lock(&iw_mpa_devices_lock);
	KUNIT_EXPECT_PTR_EQ(test, dev, iw_mpa_find_device(INDEX));
	KUNIT_EXPECT_EQ(test, 2u, refcount_read(&ibdev->refcount));
	ib_device_put(ibdev);
	KUNIT_EXPECT_NULL(test, iw_mpa_find_device(INDEX + 1));
	KUNIT_EXPECT_EQ(test, 1u, refcount_read(&ibdev->refcount));
	refcount_set(&ibdev->refcount, 0);
	KUNIT_EXPECT_NULL(test, iw_mpa_find_device(INDEX));
	mutex_unlock(&iw_mpa_devices_lock);

	/* A new default also applies to a device that is not registered */
	KUNIT_EXPECT_EQ(test, 0, set(NOWHERE, RDMA_MPA_SETTING_RTR_MS, 77));
	KUNIT_EXPECT_EQ(test, 77U, dev->port[0].effective.rtr_ms);
	iw_mpa_unregister_device(dev);
	iw_mpa_unregister_device(NULL);
}

/* ---- events for iw_cm, whose depths and length have 8 bits */

struct cm_event_case {
	const char *name;
	struct iw_mpa_event ev;
	u8 ird;
	u8 ord;
	u8 pdata_len;
};

static const u8 pdata[512];

static const struct cm_event_case cm_event_cases[] = {
	{ "IRD of the iw_cm event is the ORD the ULP may use", { .ird = 7, .ord = 3 }, 3, 7, 0 },
	{ "IRD and ORD of 255 are passed unchanged in the iw_cm event",
	  { .ird = 255, .ord = 255 }, 255, 255, 0 },
	{ "IRD and ORD of 256 are lowered to 255 in the iw_cm event",
	  { .ird = 256, .ord = 256 }, 255, 255, 0 },
	{ "the peer's IRD and ORD are in the iw_cm event of a failed connection",
	  { .status = -ECONNREFUSED, .ird = 1, .ord = 2, .peer_ird = 9,
	    .peer_ord = 0x3ffe }, 9, 255, 0 },
	{ "private data is passed in the iw_cm event",
	  { .pdata = pdata, .pdata_len = 1 }, 0, 0, 1 },
	{ "512 bytes of private data are cut to 255 in the iw_cm event",
	  { .pdata = pdata, .pdata_len = 512 }, 0, 0, 255 },
};

static void cm_event_desc(const struct cm_event_case *c, char *desc)
{
	strscpy(desc, c->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(cm_event, cm_event_cases, cm_event_desc);

static void iw_cm_event_matches_the_iw_mpa_event(struct kunit *test)
{
	const struct cm_event_case *c = test->param_value;
	struct iw_cm_event cm = {
		.private_data = &cm, .private_data_len = 1,
	};

	iw_mpa_fill_cm_event(&cm, &c->ev);
	KUNIT_EXPECT_EQ(test, c->ev.status, cm.status);
	KUNIT_EXPECT_EQ(test, c->ird, cm.ird);
	KUNIT_EXPECT_EQ(test, c->ord, cm.ord);
	KUNIT_EXPECT_EQ(test, c->pdata_len, cm.private_data_len);
	KUNIT_EXPECT_PTR_EQ(test, (const void *)c->ev.pdata,
			    (const void *)cm.private_data);
}

static struct kunit_case device_cases[] = {
	KUNIT_CASE(change_of_a_layer_keeps_its_other_settings),
	KUNIT_CASE(default_setting_applies_to_devices_and_ports),
	KUNIT_CASE_PARAM(default_setting_unsupported_by_a_device_is_ignored,
			 inability_gen_params),
	KUNIT_CASE(default_setting_contradicting_device_settings_is_ignored),
	KUNIT_CASE(default_setting_contradicting_port_settings_is_ignored),
	KUNIT_CASE(default_setting_contradicting_driver_settings_is_ignored),
	KUNIT_CASE(ignored_default_setting_is_logged_once),
	KUNIT_CASE_PARAM(contradictory_default_device_and_port_settings_are_refused,
			 contradiction_gen_params),
	KUNIT_CASE(settings_valid_only_due_to_a_default_setting_are_refused),
	KUNIT_CASE_PARAM(setting_unsupported_by_the_device_is_refused,
			 inability_gen_params),
	KUNIT_CASE(port_setting_overrides_device_and_default_settings),
	KUNIT_CASE(lowest_ird_limit_of_port_device_and_default_applies),
	KUNIT_CASE(crc_if_asked_is_ignored_by_a_device_without_crc),
	KUNIT_CASE(unsupported_settings_do_not_exist_for_a_device),
	KUNIT_CASE(changed_settings_do_not_affect_existing_sessions),
	KUNIT_CASE(connection_options_are_checked_against_the_device),
	KUNIT_CASE(nonexistent_port_of_a_device_is_refused),
	KUNIT_CASE(device_is_found_by_its_index),
	KUNIT_CASE_PARAM(iw_cm_event_matches_the_iw_mpa_event,
			 cm_event_gen_params),
	{}
};

static struct kunit_suite device_suite = {
	.name = "iw_mpa_devices",
	.init = device_test_init,
	.exit = device_test_exit,
	.test_cases = device_cases,
};

kunit_test_suite(device_suite);

MODULE_DESCRIPTION("KUnit tests of iw_mpa's devices and their settings");
MODULE_LICENSE("GPL");
MODULE_IMPORT_NS("EXPORTED_FOR_KUNIT_TESTING");
