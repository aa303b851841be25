// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
// The C interface: checks what the program gives, and turns exceptions into errno
#include "endpoint.h"
#include "map.h"

#include <cerrno>
#include <new>
#include <system_error>

using namespace libdgm;

struct dgm_endpoint : Endpoint {
	using Endpoint::Endpoint;
};

struct dgm_map {
	Intervals intervals;
};

namespace {

template <typename Function> auto guarded(Function function, decltype(function()) failed) -> decltype(function())
{
	try {
		return function();
	} catch (const std::system_error &error) {
		errno = error.code().value();
	} catch (const std::bad_alloc &) {
		errno = ENOMEM;
	}
	return failed;
}

// For functions that return 0 or an errno value
template <typename Function> int guarded_call(Function function)
{
	const int error = guarded(function, -1);
	if (error > 0)
		errno = error;
	return error == 0 ? 0 : -1;
}

bool in_range(uint32_t value, uint32_t low, uint32_t high)
{
	return value >= low && value <= high;
}

bool valid(const dgm_options &o)
{
	constexpr uint32_t hour = 3600000, all_flags = 127;
	constexpr uint32_t contradiction = DGM_NO_THREAD | DGM_SOLICITED_ONLY;
	return o.flags <= all_flags && (o.flags & contradiction) != contradiction && in_range(o.records, 1, 1 << 20) && in_range(o.receives, 1, 65536) &&
	       in_range(o.slots, 1, DG_SLOTS_MAX) && in_range(o.deadline_ms, 1, hour) && o.gap_ms <= hour &&
	       o.segment <= Udp::bundle_max - DG_WRITE_HDR - DG_CRC_LEN && o.send_ms <= hour;
}

Zone *inside(dgm_zone *zone)
{
	return reinterpret_cast<Zone *>(zone);
}

constexpr const char *names[] = {
	"sends_received", "segments_placed", "bad_length", "bad_ddp_control", "bad_rdmap_control", "bad_opcode", "no_msn",
	"bad_qn", "bad_last", "bad_mo", "bad_to", "bad_error_message", "error_messages", "bad_qkey", "no_receive", "too_long",
	"no_zone", "bad_source", "bad_crc", "out_of_bounds", "queue_full", "mismatch", "too_many_segments", "duplicate",
	"late", "messages_superseded", "messages_evicted", "messages_expired", "records_lost", "network_errors",
	"errors_lost", "socket_overflows", "error_messages_sent",
};
static_assert(std::size(names) == static_cast<unsigned>(Counter::number));

} // namespace

extern "C" {

void dgm_defaults(struct dgm_options *options)
{
	*options = {.socket = -1,
		    .flags = 0,
		    .qkey = 0,
		    .records = 1024,
		    .receives = 256,
		    .slots = 64,
		    .deadline_ms = 1000,
		    .gap_ms = 2,
		    .segment = 0,
		    .send_ms = 1000};
}

dgm_endpoint *dgm_open(const struct sockaddr *address, socklen_t length, const struct dgm_options *options)
{
	return guarded([&]() -> dgm_endpoint * {
		dgm_options chosen;
		dgm_defaults(&chosen);
		if (options != nullptr)
			chosen = *options;
		if (!valid(chosen))
			throw_errno(EINVAL);
		return new dgm_endpoint(address, length, chosen);
	}, nullptr);
}

void dgm_close(dgm_endpoint *endpoint)
{
	delete endpoint;
}

int dgm_local(dgm_endpoint *endpoint, union dgm_address *address)
{
	return guarded_call([&] {
		*address = to_address(endpoint->udp().local());
		return 0;
	});
}

uint32_t dgm_qkey(dgm_endpoint *endpoint)
{
	return endpoint->qkey();
}

int dgm_socket(dgm_endpoint *endpoint)
{
	return endpoint->udp().fd();
}

static int change_membership(dgm_endpoint *endpoint, const struct sockaddr *group, socklen_t length, unsigned int interface,
			     bool join)
{
	return guarded_call([&] {
		const auto source = to_source(group, length);
		return source ? endpoint->udp().membership(*source, interface, join) : EINVAL;
	});
}

int dgm_join(dgm_endpoint *endpoint, const struct sockaddr *group, socklen_t length, unsigned int interface)
{
	return change_membership(endpoint, group, length, interface, true);
}

int dgm_leave(dgm_endpoint *endpoint, const struct sockaddr *group, socklen_t length, unsigned int interface)
{
	return change_membership(endpoint, group, length, interface, false);
}

int dgm_poll(dgm_endpoint *endpoint, struct dgm_event *events, int max, int timeout)
{
	return guarded([&] {
		if (events == nullptr || max < 1)
			throw_errno(EINVAL);
		return endpoint->poll(events, max, timeout);
	}, -1);
}

int dgm_fd(dgm_endpoint *endpoint)
{
	return endpoint->fd();
}

int dgm_recv(dgm_endpoint *endpoint, void *memory, size_t length, void *context)
{
	return guarded_call([&] {
		if (memory == nullptr && length != 0)
			return EINVAL;
		return endpoint->post_receive(memory, length, context);
	});
}

int dgm_send(dgm_endpoint *endpoint, const struct sockaddr *peer, socklen_t length, uint32_t qkey, const void *data,
	     size_t size, int flags)
{
	return guarded_call([&] {
		const auto target = to_source(peer, length);
		if (!target || (data == nullptr && size != 0) || (flags & ~DGM_SOLICITED) != 0)
			return EINVAL;
		return endpoint->sender().send(*target, qkey, data, size, flags != 0);
	});
}

dgm_zone *dgm_zone_open(dgm_endpoint *endpoint, void *memory, size_t length, const struct dgm_zone_options *options)
{
	return guarded([&]() -> dgm_zone * {
		const dgm_zone_options chosen = options != nullptr ? *options : dgm_zone_options{};
		if (memory == nullptr || length == 0 || (chosen.flags & ~(DGM_PARTIAL | DGM_NO_RECORD)) != 0)
			throw_errno(EINVAL);
		return reinterpret_cast<dgm_zone *>(endpoint->open_zone(memory, length, chosen));
	}, nullptr);
}

void dgm_zone_close(dgm_zone *zone)
{
	if (zone != nullptr)
		inside(zone)->endpoint->close_zone(inside(zone));
}

uint32_t dgm_zone_number(dgm_zone *zone)
{
	return inside(zone)->number;
}

uint32_t dgm_zone_qkey(dgm_zone *zone)
{
	return inside(zone)->qkey;
}

int dgm_allow(dgm_zone *zone, const struct sockaddr *source, socklen_t length, unsigned int prefix)
{
	return guarded_call([&] {
		const auto named = to_source(source, length);
		if (!named)
			return EINVAL;
		const unsigned begin = source->sa_family == AF_INET ? 96 : 0;
		// Everybody, and all of IPv4, is only let in by dgm_allow_any()
		if (prefix < 1 || prefix > 128 - begin || (is_v4(*named) && begin + prefix <= 96))
			return EINVAL;
		return inside(zone)->endpoint->allow(inside(zone), *named, begin + prefix);
	});
}

int dgm_allow_any(dgm_zone *zone)
{
	inside(zone)->endpoint->allow_any(inside(zone));
	return 0;
}

int dgm_zone_valid(dgm_zone *zone, size_t block)
{
	return inside(zone)->map != nullptr && inside(zone)->map->has(block);
}

void dgm_zone_clear(dgm_zone *zone, size_t first, size_t count)
{
	if (inside(zone)->map != nullptr)
		inside(zone)->map->clear(first, count);
}

int dgm_write(dgm_endpoint *endpoint, const struct sockaddr *peer, socklen_t length, uint32_t zone, uint32_t qkey,
	      uint64_t offset, const void *data, size_t size, uint32_t *msn)
{
	return guarded_call([&] {
		const auto target = to_source(peer, length);
		uint32_t number = 0;
		if (!target || (data == nullptr && size != 0))
			return EINVAL;
		const int error = endpoint->sender().write(*target, zone, qkey, offset, data, size, number);
		if (msn != nullptr)
			*msn = number;
		return error;
	});
}

dgm_map *dgm_map_new(void)
{
	return guarded([]() -> dgm_map * { return new dgm_map; }, nullptr);
}

void dgm_map_free(dgm_map *map)
{
	delete map;
}

int dgm_map_add(dgm_map *map, uint64_t offset, uint64_t length)
{
	return guarded_call([&] {
		if (length > UINT64_MAX - offset)
			return EINVAL;
		map->intervals.add(offset, offset + length);
		return 0;
	});
}

int dgm_map_has(const dgm_map *map, uint64_t offset, uint64_t length)
{
	return length <= UINT64_MAX - offset && map->intervals.has(offset, offset + length);
}

uint64_t dgm_map_bytes(const dgm_map *map)
{
	return map->intervals.bytes();
}

int dgm_map_next(const dgm_map *map, uint64_t *offset, uint64_t *length)
{
	const auto found = map->intervals.next(*offset);
	if (!found)
		return 0;
	*offset = found->first;
	*length = found->second - found->first;
	return 1;
}

int dgm_fold(dgm_endpoint *endpoint, uint32_t zone, dgm_map *map)
{
	return guarded([&] {
		return static_cast<int>(endpoint->fold(zone, [&](const dgm_event &event) {
			map->intervals.add(event.offset, event.offset + event.length);
		}));
	}, -1);
}

uint64_t dgm_counter(dgm_endpoint *endpoint, unsigned int number)
{
	return number < std::size(names) ? endpoint->counter(static_cast<Counter>(number)) : 0;
}

const char *dgm_counter_name(unsigned int number)
{
	return number < std::size(names) ? names[number] : nullptr;
}

} // extern "C"
