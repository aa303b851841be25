// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#include "sender.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>

namespace libdgm {

namespace {

constexpr size_t ip_overhead_v4 = 28, ip_overhead_v6 = 48;
constexpr uint32_t mtu_min = 576;
constexpr int attempts = 5; // each with a smaller MTU
constexpr int late_reports = 5; // of earlier datagrams, for one send
constexpr auto path_life = std::chrono::minutes(10); // as the kernel's, which forgets a smaller MTU, too

std::string path_key(const dg_source &peer)
{
	std::string key(reinterpret_cast<const char *>(peer.addr), sizeof(peer.addr));
	return key.append(reinterpret_cast<const char *>(&peer.scope), sizeof(peer.scope));
}

// A report about some earlier datagram, which the socket returns for the next call
bool is_late_report(int error)
{
	return error == ECONNREFUSED || error == EHOSTUNREACH || error == ENETUNREACH || error == EPROTO ||
	       error == EACCES || error == ENOPROTOOPT || error == EOPNOTSUPP || error == EHOSTDOWN;
}

void close_datagram(uint32_t crc, uint8_t *end)
{
	dg_crc_put(crc, end);
}

} // namespace

void Sender::learn_mtu(const dg_source &peer, uint32_t mtu)
{
	const std::lock_guard guard(paths_lock_);
	if (paths_.size() >= paths_max)
		paths_.clear();
	paths_[path_key(peer)] = {std::max(mtu, mtu_min), Clock::now() + path_life};
}

uint32_t Sender::mtu_of(const dg_source &peer)
{
	{
		const std::lock_guard guard(paths_lock_);
		if (const auto found = paths_.find(path_key(peer)); found != paths_.end() && Clock::now() < found->second.until)
			return found->second.mtu;
	}
	const uint32_t mtu = udp_.route_mtu(peer);
	learn_mtu(peer, mtu);
	return mtu;
}

size_t Sender::datagram_max(const dg_source &peer)
{
	const size_t overhead = is_v4(peer) ? ip_overhead_v4 : ip_overhead_v6;
	return std::min<size_t>(mtu_of(peer) - overhead, Udp::bundle_max);
}

int Sender::send_parts(const dg_source &peer, std::span<iovec> parts, size_t segment)
{
	const auto until = Clock::now() + std::chrono::milliseconds(options_.send_ms);
	int reports = 0;
	while (true) {
		const int error = udp_.send(peer, parts, segment);
		if (error == EINTR)
			continue;
		if (error != EAGAIN && error != ENOBUFS) {
			if (error == EMSGSIZE || is_late_report(error))
				udp_.drain_errors(report_);
			if (!is_late_report(error) || ++reports > late_reports)
				return error;
			continue;
		}
		const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
		if (left <= 0)
			return EAGAIN;
		pollfd wait{.fd = udp_.fd(), .events = POLLOUT, .revents = 0};
		// A full device queue (ENOBUFS) does not make poll() wait
		::poll(&wait, error == EAGAIN ? 1 : 0, static_cast<int>(error == EAGAIN ? left : 1));
		if ((wait.revents & POLLERR) != 0)
			udp_.drain_errors(report_);
	}
}

int Sender::send(const dg_source &peer, uint32_t qkey, const void *data, size_t size, bool solicited)
{
	uint8_t header[DG_SEND_HDR], end[DG_CRC_LEN];
	if (size > Udp::bundle_max - DG_SEND_HDR - DG_CRC_LEN)
		return EMSGSIZE;
	const std::lock_guard guard(lock_);
	dg_segment seg{};
	seg.form = DG_SEND;
	seg.solicited = solicited;
	seg.qkey = qkey;
	seg.msn = ++send_msn_;
	dg_build(&seg, header, sizeof(header));
	close_datagram(dg_crc_add(dg_crc_add(DG_CRC_START, header, sizeof(header)), data, size), end);
	std::array parts{iovec{header, sizeof(header)}, iovec{const_cast<void *>(data), size}, iovec{end, sizeof(end)}};
	return send_parts(peer, parts, 0);
}

// Datagrams of segments begin, begin + 1… of a message
int Sender::send_bundle(const Message &message, size_t segment, size_t begin, size_t count)
{
	std::array<std::array<uint8_t, DG_WRITE_HDR>, Udp::segments_max> headers;
	std::array<std::array<uint8_t, DG_CRC_LEN>, Udp::segments_max> ends;
	std::array<iovec, 3 * Udp::segments_max> parts;
	for (size_t i = 0; i < count; i++) {
		const size_t mo = (begin + i) * segment, length = std::min(segment, message.size - mo);
		dg_segment seg{};
		seg.form = DG_WRITE_RECORD;
		seg.last = mo + length == message.size;
		seg.stag = message.zone;
		seg.to = message.offset + mo;
		seg.msn = message.msn;
		seg.mo = static_cast<uint32_t>(mo);
		seg.ml = static_cast<uint32_t>(message.size);
		seg.qkey = message.qkey;
		seg.len = static_cast<uint32_t>(length);
		if (dg_build(&seg, headers[i].data(), headers[i].size()) < 0)
			return EINVAL;
		const uint32_t crc = dg_crc_add(DG_CRC_START, headers[i].data(), headers[i].size());
		close_datagram(dg_crc_add(crc, message.data + mo, length), ends[i].data());
		parts[3 * i] = {headers[i].data(), headers[i].size()};
		parts[3 * i + 1] = {const_cast<uint8_t *>(message.data + mo), length};
		parts[3 * i + 2] = {ends[i].data(), ends[i].size()};
	}
	const size_t datagram = segment + DG_WRITE_HDR + DG_CRC_LEN;
	return send_parts(message.peer, std::span(parts).first(3 * count), count > 1 ? datagram : 0);
}

bool Sender::take_refused(const dg_source &source, const dg_error &error, dg_segment &cause)
{
	if (!writes_)
		return false;
	const std::lock_guard guard(writes_lock_);
	return dg_writes_take(writes_.get(), &source, &error, &cause);
}

void Sender::expect(const Message &message)
{
	if (!writes_)
		return;
	const dg_write write{.target = message.peer,
			     .stag = message.zone,
			     .qkey = message.qkey,
			     .msn = message.msn,
			     .ml = static_cast<uint32_t>(message.size),
			     .base = message.offset};
	const std::lock_guard guard(writes_lock_);
	dg_writes_add(writes_.get(), &write);
}

int Sender::send_message(const Message &message, size_t segment)
{
	const size_t datagram = segment + DG_WRITE_HDR + DG_CRC_LEN;
	const size_t segments = message.size == 0 ? 1 : (message.size - 1) / segment + 1;
	size_t bundle = std::min(Udp::segments_max, Udp::bundle_max / datagram);
	if ((options_.flags & DGM_NO_SEGMENT) != 0)
		bundle = 1;
	if (segments > DG_SEGMENTS)
		return EMSGSIZE;
	expect(message);
	for (size_t begin = 0; begin < segments;) {
		const size_t count = std::min(bundle, segments - begin);
		const int error = send_bundle(message, segment, begin, count);
		if (count > 1 && (error == EINVAL || error == EMSGSIZE || error == EIO)) {
			// Datagrams that are too long, or a device that cannot: one alone shows which
			bundle = 1;
			continue;
		}
		if (error != 0)
			return error;
		begin += count;
	}
	return 0;
}

int Sender::write(const dg_source &peer, uint32_t zone, uint32_t qkey, uint64_t offset, const void *data, size_t size,
		  uint32_t &msn)
{
	if (size > UINT32_MAX || offset > UINT64_MAX - size)
		return EMSGSIZE;
	const std::lock_guard guard(lock_);
	int error = EMSGSIZE;
	for (int attempt = 0; attempt < attempts && error == EMSGSIZE; attempt++) {
		const size_t room = datagram_max(peer) - DG_WRITE_HDR - DG_CRC_LEN;
		const bool fragment = (options_.flags & DGM_FRAGMENT) != 0;
		size_t segment = options_.segment != 0 ? options_.segment : room;
		if (!fragment)
			segment = std::min(segment, room);
		segment = std::min(segment, std::max<size_t>(size, 1));
		msn = ++write_msn_;
		error = send_message({.peer = peer,
				      .zone = zone,
				      .qkey = qkey,
				      .msn = msn,
				      .offset = offset,
				      .data = static_cast<const uint8_t *>(data),
				      .size = size},
				     segment);
		if (error == EMSGSIZE && size != 0 && (size - 1) / segment + 1 > DG_SEGMENTS)
			return error;
	}
	return error;
}

} // namespace libdgm
