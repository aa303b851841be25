// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Zones, which the module has as objects of its own. See NOTICE and siwdg.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/cmd_ioctl.h>
#include <infiniband/cmd_write.h>

#include "provider.h"
#include "siwdg.h"

static_assert(SIWDG_ZONE_NO_RECORD == SIW_DG_ZONE_NO_RECORD, "flag");
static_assert(SIWDG_ZONE_PARTIAL == SIW_DG_ZONE_PARTIAL, "flag");

/**
 * struct siwdg_zone - a zone
 * @context: of its QP
 * @recv_cq: of its QP. The QP may be destroyed before the zone if the device has gone
 * @qp_num: of its QP
 * @handle: of the kernel
 * @number: on the wire
 * @map: its validity map, if mapped
 * @blocks: number of bits of @map
 */
struct siwdg_zone {
	struct ibv_context *context;
	struct ibv_cq *recv_cq;
	uint32_t qp_num;
	uint32_t handle;
	uint32_t number;
	struct siwdg_queue map;
	uint64_t blocks;
};

static int siwdg_zone_destroy(struct siwdg_zone *zone);

static int siwdg_zone_create(struct siwdg_zone *zone, const struct ibv_qp *qp,
			     const struct ibv_mr *mr,
			     struct siwdg_zone_attr *attr)
{
	DECLARE_COMMAND_BUFFER(cmd, SIW_DG_OBJECT_ZONE, SIW_DG_METHOD_ZONE_OPEN,
			       5);
	const struct siw_dg_zone_open_req req = {
		.offset = attr->offset,
		.length = attr->length,
		.number = attr->number,
		.qkey = attr->qkey,
		.flags = attr->flags & ~SIWDG_ZONE_MAP,
		.block = attr->flags & SIWDG_ZONE_MAP ? attr->block : 0,
	};
	struct siw_dg_zone_open_resp resp = {};
	struct ib_uverbs_attr *handle;
	int ret;

	if (attr->flags & SIWDG_ZONE_MAP && !attr->block)
		return EINVAL;
	handle = fill_attr_out_obj(cmd, SIW_DG_ATTR_ZONE_OPEN_HANDLE);
	fill_attr_in_obj(cmd, SIW_DG_ATTR_ZONE_OPEN_QP, qp->handle);
	fill_attr_in_obj(cmd, SIW_DG_ATTR_ZONE_OPEN_MR, mr->handle);
	fill_attr_in_ptr(cmd, SIW_DG_ATTR_ZONE_OPEN_REQ, &req);
	fill_attr_out_ptr(cmd, SIW_DG_ATTR_ZONE_OPEN_RESP, &resp);
	ret = execute_ioctl(zone->context, cmd);
	/* A module without the method */
	if (ret)
		return ret == EPROTONOSUPPORT ? EOPNOTSUPP : ret;
	zone->handle = read_attr_obj(SIW_DG_ATTR_ZONE_OPEN_HANDLE, handle);
	if (req.block) {
		zone->blocks = (attr->length - 1) / req.block + 1;
		ret = siwdg_map(zone->context, &zone->map, resp.map_key,
				resp.map_words, sizeof(uint32_t));
		if (ret) {
			siwdg_zone_destroy(zone);
			return ret;
		}
	}
	zone->number = resp.number;
	attr->number = resp.number;
	attr->qkey = resp.qkey;
	return 0;
}

struct siwdg_zone *siwdg_open_zone(struct ibv_qp *qp, struct ibv_mr *mr,
				   struct siwdg_zone_attr *attr)
{
	struct siwdg_zone *zone;
	int ret;

	if (!siwdg_is_ours(qp->context)) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	zone = calloc(1, sizeof(*zone));
	if (!zone)
		return NULL;
	zone->context = qp->context;
	zone->recv_cq = qp->recv_cq;
	zone->qp_num = qp->qp_num;
	/* Handles of another context would name other objects */
	ret = mr->context == qp->context ?
		siwdg_zone_create(zone, qp, mr, attr) : EINVAL;
	if (!ret)
		return zone;
	free(zone);
	errno = ret;
	return NULL;
}

static int siwdg_zone_destroy(struct siwdg_zone *zone)
{
	DECLARE_COMMAND_BUFFER(cmd, SIW_DG_OBJECT_ZONE, SIW_DG_METHOD_ZONE_CLOSE,
			       1);
	int ret;

	fill_attr_in_obj(cmd, SIW_DG_ATTR_ZONE_CLOSE_HANDLE, zone->handle);
	ret = execute_ioctl(zone->context, cmd);
	/* EIO: the device is gone, and the kernel has closed the zone */
	verbs_is_destroy_err(&ret);
	return ret;
}

int siwdg_close_zone(struct siwdg_zone *zone)
{
	int ret = siwdg_zone_destroy(zone);

	if (ret)
		return ret;
	siwdg_unmap(&zone->map);
	free(zone);
	return 0;
}

static uint32_t *siwdg_map_word(const struct siwdg_zone *zone, uint64_t block)
{
	return (uint32_t *)(zone->map.ring + 1) + block / 32;
}

int siwdg_zone_valid(const struct siwdg_zone *zone, uint64_t block)
{
	/* Pairs with the module's barrier behind the data */
	return block < zone->blocks &&
	       __atomic_load_n(siwdg_map_word(zone, block), __ATOMIC_ACQUIRE) >>
	       block % 32 & 1;
}

void siwdg_zone_clear(struct siwdg_zone *zone, uint64_t first, uint64_t count)
{
	for (; count && first < zone->blocks; count--, first++)
		__atomic_fetch_and(siwdg_map_word(zone, first),
				   ~(UINT32_C(1) << first % 32),
				   __ATOMIC_ACQ_REL);
}

int siwdg_fold(struct siwdg_zone *zone,
	       int (*add)(void *map, uint64_t offset, uint64_t length),
	       void *map)
{
	return siwdg_fold_cq(zone->recv_cq, zone->qp_num, zone->number, add,
			     map);
}

static int siwdg_add_source(struct siwdg_zone *zone,
			    const struct siw_dg_zone_source *source)
{
	DECLARE_COMMAND_BUFFER(cmd, SIW_DG_OBJECT_ZONE, SIW_DG_METHOD_ZONE_ALLOW,
			       2);

	fill_attr_in_obj(cmd, SIW_DG_ATTR_ZONE_ALLOW_HANDLE, zone->handle);
	fill_attr_in_ptr(cmd, SIW_DG_ATTR_ZONE_ALLOW_SOURCE, source);
	return execute_ioctl(zone->context, cmd);
}

static int siwdg_allow_ipv4(struct siwdg_zone *zone,
			    const struct sockaddr_in *sin, unsigned int prefix)
{
	struct siw_dg_zone_source source = {
		.address = { [10] = 0xff, [11] = 0xff },
		.prefix = 96 + prefix,
		.port = ntohs(sin->sin_port),
	};

	if (prefix < 1 || prefix > 32)
		return EINVAL;
	memcpy(source.address + 12, &sin->sin_addr, sizeof(sin->sin_addr));
	return siwdg_add_source(zone, &source);
}

static int siwdg_allow_ipv6(struct siwdg_zone *zone,
			    const struct sockaddr_in6 *sin6,
			    unsigned int prefix)
{
	struct siw_dg_zone_source source = {
		.prefix = prefix,
		.port = ntohs(sin6->sin6_port),
	};

	if (prefix < 1 || prefix > 128)
		return EINVAL;
	memcpy(source.address, &sin6->sin6_addr, sizeof(source.address));
	return siwdg_add_source(zone, &source);
}

int siwdg_allow(struct siwdg_zone *zone, const struct sockaddr *source,
		socklen_t length, unsigned int prefix)
{
	struct sockaddr_in6 sin6;
	struct sockaddr_in sin;

	if (length >= sizeof(sin) && source->sa_family == AF_INET) {
		memcpy(&sin, source, sizeof(sin));
		return siwdg_allow_ipv4(zone, &sin, prefix);
	}
	if (length >= sizeof(sin6) && source->sa_family == AF_INET6) {
		memcpy(&sin6, source, sizeof(sin6));
		return siwdg_allow_ipv6(zone, &sin6, prefix);
	}
	return EINVAL;
}

int siwdg_allow_any(struct siwdg_zone *zone)
{
	const struct siw_dg_zone_source source = {};

	return siwdg_add_source(zone, &source);
}
