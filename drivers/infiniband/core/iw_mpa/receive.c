// SPDX-License-Identifier: GPL-2.0
/*
 * The way of the peer's bytes: they are collected until the frame is complete,
 * which initiator.c or responder.c then acts on.
 */
#include <linux/errno.h>
#include <linux/export.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "session.h"

static enum iw_mpa_kind awaited_kind(const struct iw_mpa_session *s)
{
	return s->state == IW_MPA_REQ_SENT ? IW_MPA_REPLY : IW_MPA_REQUEST;
}

static bool awaits_frame(const struct iw_mpa_session *s)
{
	return s->state == IW_MPA_REQ_SENT || s->state == IW_MPA_REQ_WAIT;
}

static enum iw_mpa_parse parse_frame(const struct iw_mpa_session *s,
				     const void *buf, size_t len,
				     struct iw_mpa_frame *frame, size_t *need)
{
	const struct iw_mpa_setup *setup = s->setup;

	return iw_mpa_codec_of(setup)->parse(awaited_kind(s), setup->config.policy.dialect,
				  buf, len, frame, need);
}

static bool frame_is_complete(const struct iw_mpa_setup *setup)
{
	return setup->rx_len == setup->rx_need;
}

/**
 * iw_mpa_rx_room - get the room for the peer's next bytes
 * @s: the session
 * @len: filled with the number of bytes that the room has; at least one if the
 *	function returns a room, else 0
 *
 * The room ends with the header, later with the frame: the driver cannot read a
 * byte of what follows the frame. It is valid until iw_mpa_rx_done(), the only
 * call that may follow. Over SCTP use iw_mpa_rx_message().
 *
 * Return: the room; %NULL if no bytes of a frame are awaited
 */
void *iw_mpa_rx_room(struct iw_mpa_session *s, size_t *len)
{
	struct iw_mpa_setup *setup = s->setup;

	*len = 0;
	if (!awaits_frame(s) || iw_mpa_codec_of(setup)->whole || frame_is_complete(setup))
		return NULL;
	*len = setup->rx_need - setup->rx_len;
	return setup->rx + setup->rx_len;
}
EXPORT_SYMBOL_GPL(iw_mpa_rx_room);

/* Makes room for a frame of @need bytes */
static int make_room(struct iw_mpa_setup *setup, size_t need)
{
	u8 *rx;

	if (need > sizeof(setup->hdr)) {
		rx = kmalloc(need, GFP_KERNEL);
		if (!rx)
			return -ENOMEM;
		memcpy(rx, setup->hdr, setup->rx_len);
		setup->rx = rx;
	}
	setup->rx_need = need;
	return 0;
}

static enum iw_mpa_next end_for_bad_bytes(struct iw_mpa_session *s,
					  enum iw_mpa_parse bad)
{
	if (s->setup)
		s->setup->record.bad = bad;
	return iw_mpa_end(s, -EPROTO, RDMA_MPA_ECODE_BAD_FRAME);
}

/* Judges the bytes received so far */
static enum iw_mpa_next take_bytes(struct iw_mpa_session *s)
{
	struct iw_mpa_setup *setup = s->setup;
	enum iw_mpa_parse result;
	size_t need;

	result = parse_frame(s, setup->rx, setup->rx_len, &setup->peer, &need);
	switch (result) {
	case IW_MPA_FRAME_COMPLETE:
		setup->record.received = true;
		return IW_MPA_NEXT_FRAME;
	case IW_MPA_FRAME_NEED_MORE:
		if (need != setup->rx_need && make_room(setup, need))
			return iw_mpa_end(s, -ENOMEM, RDMA_MPA_ECODE_LOCAL);
		return IW_MPA_NEXT_WAIT;
	default:
		return end_for_bad_bytes(s, result);
	}
}

static enum iw_mpa_next lose_peer(struct iw_mpa_session *s, int err)
{
	if (iw_mpa_try_fall_back(s, err))
		return IW_MPA_NEXT_RECONNECT;
	if (s->setup)
		s->setup->peer_gone = true;
	return iw_mpa_end(s, err ?: -ECONNRESET, RDMA_MPA_ECODE_CLOSED);
}

/*
 * A plain Reject may answer an Enhanced Initiate: it refuses every form of
 * session. All other mixed pairs are errors (RFC 6581 section 7). negotiate.c
 * detects a plain Accept that answers an Enhanced Initiate.
 */
static bool fits_request(const struct iw_mpa_session *s,
			 const struct iw_mpa_frame *frame)
{
	return s->state != IW_MPA_REQ_SENT || s->setup->sent.enhanced ||
	       !(frame->enhanced || frame->block_missing);
}

static enum iw_mpa_next take_message(struct iw_mpa_session *s, const u8 *buf,
				     size_t len)
{
	struct iw_mpa_setup *setup = s->setup;
	struct iw_mpa_frame frame;
	enum iw_mpa_parse result;
	size_t need;

	result = parse_frame(s, buf, len, &frame, &need);
	if (result == IW_MPA_FRAME_TERMINATE)
		return lose_peer(s, -ECONNRESET);
	if (!awaits_frame(s) || setup->rx_len)
		return end_for_bad_bytes(s, IW_MPA_FRAME_TRAILING);
	if (result == IW_MPA_FRAME_COMPLETE && !fits_request(s, &frame))
		result = IW_MPA_FRAME_BAD_CODE;
	if (result != IW_MPA_FRAME_COMPLETE)
		return end_for_bad_bytes(s, result);

	if (make_room(setup, len))
		return iw_mpa_end(s, -ENOMEM, RDMA_MPA_ECODE_LOCAL);
	memcpy(setup->rx, buf, len);
	setup->rx_len = len;
	setup->peer = frame;
	setup->peer.pdata = setup->rx + (frame.pdata - buf);
	setup->record.received = true;
	return IW_MPA_NEXT_FRAME;
}

/**
 * iw_mpa_rx_done - bytes from the peer have arrived
 * @s: the session
 * @len: number of bytes, at least one: in the room of iw_mpa_rx_room(), or, if
 *	that function has returned no room, still in the stream
 *
 * Bytes may arrive in any portions. In RDMA mode the stream belongs to the QP.
 * Before, bytes without a room end the session: the peer must send nothing
 * while it waits for us.
 *
 * Return: %IW_MPA_NEXT_FRAME when the frame is complete, else the next step.
 */
enum iw_mpa_next iw_mpa_rx_done(struct iw_mpa_session *s, size_t len)
{
	size_t room;

	if (s->state == IW_MPA_RDMA || s->state == IW_MPA_RTR_WAIT)
		return IW_MPA_NEXT_DONE;
	if (!iw_mpa_rx_room(s, &room) || len > room)
		return iw_mpa_out_of_turn(s);
	s->setup->rx_len += len;
	return iw_mpa_leave(s, take_bytes(s));
}
EXPORT_SYMBOL_GPL(iw_mpa_rx_done);

/**
 * iw_mpa_rx_message - process a message from the peer, over SCTP
 * @s: the session
 * @buf: the session control message, without its DDP-SSN
 * @len: length of the message in bytes
 *
 * In RDMA mode a message ends the session, without this call.
 *
 * Return: %IW_MPA_NEXT_FRAME for an Initiate, Accept or Reject, else the next
 * step.
 */
enum iw_mpa_next iw_mpa_rx_message(struct iw_mpa_session *s, const void *buf,
				   size_t len)
{
	if (s->state == IW_MPA_RDMA || s->state == IW_MPA_RTR_WAIT)
		return IW_MPA_NEXT_DONE;
	if (!s->setup || !iw_mpa_codec_of(s->setup)->whole)
		return iw_mpa_out_of_turn(s);
	return iw_mpa_leave(s, take_message(s, buf, len));
}
EXPORT_SYMBOL_GPL(iw_mpa_rx_message);

/**
 * iw_mpa_out_of_turn - end the session because the peer sent data out of turn
 * @s: the session, not in RDMA mode
 *
 * Drivers call this over SCTP, for a DDP segment before the session is set up
 * and for a chunk that is not a message of RFC 5043.
 *
 * Return: %IW_MPA_NEXT_CLOSE
 */
enum iw_mpa_next iw_mpa_out_of_turn(struct iw_mpa_session *s)
{
	return iw_mpa_leave(s, end_for_bad_bytes(s, IW_MPA_FRAME_TRAILING));
}
EXPORT_SYMBOL_GPL(iw_mpa_out_of_turn);

/**
 * iw_mpa_process - act on a complete frame
 * @s: the session
 * @more: more bytes follow the frame; only a peer that rejects may send them
 *
 * This is not part of iw_mpa_rx_done(), because only the driver knows @more. The
 * QP may start to read the stream during this call.
 *
 * Return: next step of the driver.
 */
enum iw_mpa_next iw_mpa_process(struct iw_mpa_session *s, bool more)
{
	if (!awaits_frame(s) || !frame_is_complete(s->setup))
		return IW_MPA_NEXT_WAIT;
	if (s->state == IW_MPA_REQ_SENT)
		return iw_mpa_leave(s, iw_mpa_act_on_reply(s, more));
	if (more)
		return iw_mpa_leave(s, end_for_bad_bytes(s,
						IW_MPA_FRAME_TRAILING));
	return iw_mpa_leave(s, iw_mpa_act_on_request(s));
}
EXPORT_SYMBOL_GPL(iw_mpa_process);

/**
 * iw_mpa_peer_gone - the peer has sent FIN or RST, or TCP has failed
 * @s: the session
 * @err: negative errno, 0 for FIN
 *
 * In RDMA mode only the state changes; the driver notifies the ULP.
 *
 * Return: %IW_MPA_NEXT_CLOSE, or %IW_MPA_NEXT_RECONNECT to try Rev 1.
 */
enum iw_mpa_next iw_mpa_peer_gone(struct iw_mpa_session *s, int err)
{
	return iw_mpa_leave(s, lose_peer(s, err));
}
EXPORT_SYMBOL_GPL(iw_mpa_peer_gone);
