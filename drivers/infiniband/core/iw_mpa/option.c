// SPDX-License-Identifier: GPL-2.0
/*
 * Options that ULPs set on an rdma_cm_id, for their connection alone. rdma_cm
 * stores these options in an object that is opaque to it, except for its size.
 * They are registered with iw_cm: any user can have this module loaded, by way
 * of its netlink family, and must not get rdma_cm with it.
 */
#include <rdma/iw_cm.h>

#include "option.h"
#include "policy.h"

static int set_option(void *options, int optname, const void *optval,
		      size_t optlen)
{
	return iw_mpa_layer_set_option(options, optname, optval, optlen);
}

static const struct iw_cm_option_ops mpa_options = {
	.size	= sizeof(struct iw_mpa_layer),
	.set	= set_option,
};

/**
 * iw_mpa_register_options - accept options from ULPs
 */
void iw_mpa_register_options(void)
{
	iw_cm_register_options(&mpa_options);
}

/**
 * iw_mpa_unregister_options - stop accepting options
 *
 * Options that were set before stay in their rdma_cm_id.
 */
void iw_mpa_unregister_options(void)
{
	iw_cm_unregister_options(&mpa_options);
}
