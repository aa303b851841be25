// SPDX-License-Identifier: GPL-2.0
/*
 * Options that ULPs set on an rdma_cm_id, for their connection alone. rdma_cm
 * stores these options in an object that is opaque to it, except for its size.
 */
#include <rdma/rdma_cm.h>

#include "option.h"
#include "policy.h"

static int set_option(void *options, int optname, const void *optval,
		      size_t optlen)
{
	return iw_mpa_layer_set_option(options, optname, optval, optlen);
}

static const struct rdma_iw_options mpa_options = {
	.size	= sizeof(struct iw_mpa_layer),
	.set	= set_option,
};

/**
 * iw_mpa_register_options - accept options from ULPs
 */
void iw_mpa_register_options(void)
{
	rdma_register_iw_options(&mpa_options);
}

/**
 * iw_mpa_unregister_options - stop accepting options
 *
 * Options that were set before stay in their rdma_cm_id.
 */
void iw_mpa_unregister_options(void)
{
	rdma_unregister_iw_options(&mpa_options);
}
