// SPDX-License-Identifier: GPL-2.0
/*
 * Options of RPC-over-RDMA version two (section 3.1 of
 * draft-cel-nfsv4-rpcrdma-version-two-01). There is none yet.
 */
#include <linux/errno.h>
#include <linux/export.h>
#include <linux/rwsem.h>

#include <kunit/visibility.h>

#include "rpcrdma2.h"

static LIST_HEAD(options);
static DECLARE_RWSEM(options_lock);

static struct rpcrdma2_option *find_option(u32 type)
{
	struct rpcrdma2_option *option;

	list_for_each_entry(option, &options, list)
		if (option->type == type)
			return option;
	return NULL;
}

/**
 * rpcrdma2_register_option - understand an option from now on
 * @option: type and handler; the caller keeps it until it is unregistered
 *
 * May sleep.
 *
 * Return: %0, or %-EEXIST if there is an option of this type
 */
int rpcrdma2_register_option(struct rpcrdma2_option *option)
{
	int rc = 0;

	down_write(&options_lock);
	if (find_option(option->type))
		rc = -EEXIST;
	else
		list_add(&option->list, &options);
	up_write(&options_lock);
	return rc;
}
EXPORT_SYMBOL_IF_KUNIT(rpcrdma2_register_option);

/**
 * rpcrdma2_unregister_option - understand an option no longer
 * @option: a registered one
 *
 * Waits until its handler has returned. May sleep.
 */
void rpcrdma2_unregister_option(struct rpcrdma2_option *option)
{
	down_write(&options_lock);
	list_del(&option->list);
	up_write(&options_lock);
}
EXPORT_SYMBOL_IF_KUNIT(rpcrdma2_unregister_option);

/**
 * rpcrdma2_receive_option - hand a received OPTIONAL to its option
 * @hdr: its header, which rpcrdma2_decode() found good
 * @message: the whole message
 * @len: its octets
 *
 * May sleep.
 *
 * Return: %0, or %-EOPNOTSUPP if the option is not known
 */
int rpcrdma2_receive_option(const struct rpcrdma2_hdr *hdr,
			    const void *message, size_t len)
{
	struct rpcrdma2_option *option;
	int rc = -EOPNOTSUPP;

	down_read(&options_lock);
	option = find_option(hdr->optional.type);
	if (option) {
		option->receive(hdr, message + hdr->len, len - hdr->len);
		rc = 0;
	}
	up_read(&options_lock);
	return rc;
}
EXPORT_SYMBOL_IF_KUNIT(rpcrdma2_receive_option);
