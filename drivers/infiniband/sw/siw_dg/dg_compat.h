/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Names of Linux 7.2 for 6.12 and 6.1. See NOTICE.
 */
#ifndef _DG_COMPAT_H
#define _DG_COMPAT_H

#include <linux/version.h>

#include <linux/mm.h>
#include <net/inet_dscp.h>
#include <net/route.h>

#include <rdma/ib_umem.h>
#include <rdma/uverbs_ioctl.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0) && !defined(vm_flags_set)
#define vm_flags_set(vma, flags)	((vma)->vm_flags |= (flags))
#endif

/* The bits of a TOS that choose the route of a datagram */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 10, 0)
#define dg_rt_tos(tos)			RT_TOS(tos)
#else
#define dg_rt_tos(tos)			((tos) & INET_DSCP_MASK)
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 11, 0)
#define DG_CQ_ATTRS			struct ib_udata
#define dg_cq_udata(attrs)		(attrs)
#else
#define DG_CQ_ATTRS			struct uverbs_attr_bundle
#define dg_cq_udata(attrs)		(&(attrs)->driver_udata)
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(7, 0, 0)
#define ib_umem_get_va			ib_umem_get
#define sockaddr_unsized		sockaddr
#define create_user_cq			create_cq
#define DG_MR_DMAH
#else
#define DG_MR_DMAH			struct ib_dmah *dmah,
#endif

#endif
