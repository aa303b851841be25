/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Calls for devices of type siw_dg that verbs do not have. See NOTICE.
 */
#ifndef _INFINIBAND_SIWDG_H
#define _INFINIBAND_SIWDG_H

#include <infiniband/verbs.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * siwdg_create_qp - create a UD QP that uses a socket of the program
 * @pd: PD of a siw_dg device
 * @attr: as for ibv_create_qp()
 * @sockfd: a bound UDP socket, IPv4 or IPv6, in the network namespace of the
 *          device. Its port becomes the number of the QP. The QP keeps the
 *          socket: the program may close @sockfd, and must not receive with it
 *
 * The way to a port of one's choice, and so to multicast: a group's messages
 * go to one port.
 *
 * Return: the QP, for ibv_destroy_qp(); NULL and errno: EOPNOTSUPP not such a
 * device, EBADF or ENOTSOCK no socket, EPROTOTYPE not UDP, EINVAL not bound, or
 * connected, EADDRNOTAVAIL another namespace, EADDRINUSE a QP of the device has
 * this port, EBUSY the socket is in use by a QP or the kernel
 */
struct ibv_qp *siwdg_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr,
			       int sockfd);

#ifdef __cplusplus
}
#endif

#endif
