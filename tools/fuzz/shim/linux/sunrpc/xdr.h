/* SPDX-License-Identifier: GPL-2.0 */
/* An xdr_stream over one buffer, which is all that rpcrdma2_xdr.c decodes from. */
#ifndef SHIM_LINUX_SUNRPC_XDR_H
#define SHIM_LINUX_SUNRPC_XDR_H

#include <errno.h>
#include <linux/types.h>
#include <sys/types.h>

#include <asm/byteorder.h>

#define XDR_UNIT sizeof(__be32)
#define xdr_zero cpu_to_be32(0)

static inline u32 be32_to_cpup(const __be32 *p)
{
	return be32_to_cpu(*p);
}

/* The last word may be incomplete: nwords counts it, end does not */
struct xdr_stream {
	__be32 *p;
	__be32 *end;
	unsigned int nwords;
};

static inline __be32 *xdr_inline_decode(struct xdr_stream *xdr, size_t nbytes)
{
	const size_t nwords = (nbytes + XDR_UNIT - 1) / XDR_UNIT;
	__be32 *const p = xdr->p;

	if (nwords > xdr->nwords || nwords * XDR_UNIT > (size_t)((char *)xdr->end - (char *)p))
		return NULL;
	xdr->p += nwords;
	xdr->nwords -= (unsigned int)nwords;
	return p;
}

static inline ssize_t xdr_stream_decode_u32(struct xdr_stream *xdr, u32 *value)
{
	const __be32 *const p = xdr_inline_decode(xdr, sizeof(*p));

	if (!p)
		return -EBADMSG;
	*value = be32_to_cpup(p);
	return 0;
}

static inline ssize_t xdr_stream_decode_opaque_inline(struct xdr_stream *xdr, void **data, size_t maxlen)
{
	u32 len;

	*data = NULL;
	if (xdr_stream_decode_u32(xdr, &len) < 0)
		return -EBADMSG;
	if (len == 0)
		return 0;
	*data = xdr_inline_decode(xdr, len);
	if (!*data)
		return -EBADMSG;
	return len > maxlen ? -EMSGSIZE : (ssize_t)len;
}

#endif
