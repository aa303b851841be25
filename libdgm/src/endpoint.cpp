// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
// Order of judgement, all before the first octet is written: form, Q_Key and zone, source, CRC, bounds, room for a
// record, tracker. Room comes before the tracker, which must not count a segment that is then not placed.
#include "endpoint.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>

namespace libdgm {

namespace {

constexpr uint64_t ms = 1'000'000;
constexpr uint64_t late_ms = 200;
constexpr size_t zones_max = 1024;
constexpr int batches = 8; // system calls until a caller gets what they have brought

uint64_t now_ns()
{
	return static_cast<uint64_t>(Clock::now().time_since_epoch().count());
}

Descriptor checked(int fd)
{
	if (fd < 0)
		throw_errno(errno);
	return Descriptor(fd);
}

Udp make_udp(const sockaddr *address, socklen_t length, const dgm_options &options)
{
	const UdpOptions udp{.gro = (options.flags & DGM_NO_GRO) == 0,
			     .fragment = (options.flags & DGM_FRAGMENT) != 0,
			     .target = (options.flags & DGM_SEND_ERRORS) != 0};
	return options.socket >= 0 ? Udp(options.socket, udp) : Udp(address, length, udp);
}

Counter counter_of(dg_result result)
{
	static constexpr Counter counters[DG_RESULTS] = {
		[DG_OK] = Counter::number,		[DG_BAD_LENGTH] = Counter::bad_length,
		[DG_BAD_DDP] = Counter::bad_ddp,	[DG_BAD_RDMAP] = Counter::bad_rdmap,
		[DG_BAD_OPCODE] = Counter::bad_opcode,	[DG_NO_MSN] = Counter::no_msn,
		[DG_BAD_QN] = Counter::bad_qn,		[DG_BAD_LAST] = Counter::bad_last,
		[DG_BAD_MO] = Counter::bad_mo,		[DG_BAD_TO] = Counter::bad_to,
		[DG_BAD_CAUSE] = Counter::bad_cause,
	};
	return counters[result];
}

// A wrong number and a wrong Q_Key are one: else they would show which half of a guess is right
std::optional<dg_refusal> refusal_of(Counter counter)
{
	switch (counter) {
	case Counter::no_zone:
	case Counter::bad_qkey:
		return DG_REFUSED_ZONE;
	case Counter::out_of_bounds:
		return DG_REFUSED_RANGE;
	case Counter::queue_full:
		return DG_REFUSED_ROOM;
	case Counter::mismatch:
	case Counter::too_many_segments:
		return DG_REFUSED_FORM;
	default:
		return {};
	}
}

} // namespace

uint32_t random_number()
{
	uint32_t number = 0;
	while (number == 0)
		if (::getrandom(&number, sizeof(number), 0) != sizeof(number))
			throw_errno(errno);
	return number;
}

Endpoint::Endpoint(const sockaddr *address, socklen_t length, const dgm_options &options)
	: options_(options), threaded_((options.flags & DGM_NO_THREAD) == 0),
	  qkey_(options.qkey != 0 ? options.qkey : random_number()), udp_(make_udp(address, length, options)),
	  sender_(udp_, options_), queue_(options.records, (options.flags & DGM_SOLICITED_ONLY) != 0),
	  slots_(std::make_unique_for_overwrite<dg_slot[]>(options.slots))
{
	start();
	udp_.own();
}

void Endpoint::start()
{
	const dg_track_times times{.deadline = options_.deadline_ms * ms, .gap = options_.gap_ms * ms, .late = late_ms * ms};
	dg_track_init(&track_, slots_.get(), options_.slots, random_number(), &times);
	if ((options_.flags & DGM_SEND_ERRORS) != 0) {
		limit_ = std::make_unique<dg_limit>();
		limit_->seed = random_number();
	}
	sender_.set_error_report([this](const NetworkError &error) {
		const std::lock_guard guard(lock_);
		report(error);
	});
	epoll_ = checked(::epoll_create1(EPOLL_CLOEXEC));
	timer_ = checked(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
	stop_ = checked(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	for (const int fd : {udp_.fd(), timer_.get(), threaded_ ? stop_.get() : queue_.fd()}) {
		epoll_event event{.events = EPOLLIN, .data = {.fd = fd}};
		if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0)
			throw_errno(errno);
	}
	if (threaded_)
		thread_ = std::thread([this] { run(); });
}

Endpoint::~Endpoint()
{
	if (!thread_.joinable())
		return;
	::eventfd_write(stop_.get(), 1);
	thread_.join();
}

void Endpoint::run()
{
	while (true) {
		epoll_event events[3];
		const int ready = ::epoll_wait(epoll_.get(), events, 3, -1);
		for (int i = 0; i < ready; i++)
			if (events[i].data.fd == stop_.get())
				return;
		progress();
	}
}

// ---- zones

Zone *Endpoint::open_zone(void *memory, size_t length, const dgm_zone_options &options)
{
	auto zone = std::make_unique<Zone>();
	zone->endpoint = this;
	zone->memory = static_cast<uint8_t *>(memory);
	zone->length = length;
	zone->qkey = options.qkey != 0 ? options.qkey : random_number();
	zone->partial = (options.flags & DGM_PARTIAL) != 0;
	zone->record = (options.flags & DGM_NO_RECORD) == 0;
	if (options.block != 0)
		zone->map = std::make_unique<ValidityMap>(length, options.block);
	const std::lock_guard guard(lock_);
	if (zones_.size() == zones_max)
		throw_errno(ENOSPC);
	do {
		zone->number = options.number != 0 ? options.number : random_number();
		if (options.number != 0 && zones_.contains(options.number))
			throw_errno(EEXIST);
	} while (zones_.contains(zone->number));
	Zone *const opened = zone.get();
	zones_.emplace(opened->number, std::move(zone));
	return opened;
}

void Endpoint::close_zone(Zone *zone)
{
	const std::lock_guard guard(lock_);
	dg_track_forget(&track_, zone->number);
	zones_.erase(zone->number);
}

int Endpoint::allow(Zone *zone, const dg_source &source, unsigned prefix)
{
	const std::lock_guard guard(lock_);
	return zone->sources.add(source, prefix) ? 0 : ENOSPC;
}

void Endpoint::allow_any(Zone *zone)
{
	const std::lock_guard guard(lock_);
	zone->sources.add_any();
}

// ---- what the program asks for

int Endpoint::post_receive(void *memory, size_t length, void *context)
{
	const std::lock_guard guard(lock_);
	if (receives_.size() + queue_.receives() >= options_.receives)
		return ENOBUFS;
	receives_.push_back({static_cast<uint8_t *>(memory), length, context});
	return 0;
}

int Endpoint::poll(dgm_event *events, int max, int timeout)
{
	const auto until = timeout < 0 ? Clock::time_point::max() : Clock::now() + std::chrono::milliseconds(timeout);
	while (true) {
		if (!threaded_)
			progress(until);
		{
			const std::lock_guard guard(lock_);
			if (const size_t taken = queue_.take(events, static_cast<size_t>(max)); taken > 0)
				return static_cast<int>(taken);
		}
		int wait = -1;
		if (timeout >= 0) {
			const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
			if (left <= 0)
				return 0;
			wait = static_cast<int>(left);
		}
		pollfd ready{.fd = fd(), .events = POLLIN, .revents = 0};
		if (::poll(&ready, 1, wait) < 0)
			throw_errno(errno);
	}
}

size_t Endpoint::fold(uint32_t zone, const std::function<void(const dgm_event &)> &fold)
{
	if (!threaded_)
		progress();
	const std::lock_guard guard(lock_);
	return queue_.take_records(zone, fold);
}

uint64_t Endpoint::counter(Counter counter)
{
	const std::lock_guard guard(lock_);
	count(Counter::superseded, track_.superseded - counters_[static_cast<unsigned>(Counter::superseded)]);
	count(Counter::evicted, track_.evicted - counters_[static_cast<unsigned>(Counter::evicted)]);
	count(Counter::expired, track_.expired - counters_[static_cast<unsigned>(Counter::expired)]);
	count(Counter::socket_overflows, udp_.overflows() - counters_[static_cast<unsigned>(Counter::socket_overflows)]);
	return counters_[static_cast<unsigned>(counter)];
}

// ---- what the network brings

// One system call at a time: a peer that floods the socket keeps nobody from the lock, nor a caller beyond its deadline
void Endpoint::progress(Clock::time_point until)
{
	for (int i = 0; i < batches && receive_batch() && Clock::now() < until; i++)
		;
	const std::lock_guard guard(lock_);
	udp_.drain_errors([this](const NetworkError &error) { report(error); });
	set_timer();
}

// Returns false if nothing came
bool Endpoint::receive_batch()
{
	const std::lock_guard guard(lock_);
	const uint64_t now = now_ns();
	end_messages(now);
	return udp_.receive([&](const Arrival &arrival, std::span<const uint8_t> datagram) {
		count(arrival.source ? judge(arrival, datagram, now) : Counter::bad_source);
	}) != 0;
}

void Endpoint::end_messages(uint64_t now)
{
	while (const dg_slot *const message = dg_track_expire(&track_, now))
		record_message(*message);
}

void Endpoint::set_timer()
{
	uint64_t when = 0;
	if (!dg_track_next(&track_, &when))
		when = 0;
	uint64_t fired;
	// Its only reader: what it has counted means nothing
	[[maybe_unused]] const ssize_t read = ::read(timer_.get(), &fired, sizeof(fired));
	if (when == armed_ && read < 0)
		return;
	armed_ = when;
	const itimerspec spec{.it_interval = {},
			      .it_value = {.tv_sec = static_cast<time_t>(when / 1'000'000'000),
					   .tv_nsec = static_cast<long>(when % 1'000'000'000)}};
	::timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &spec, nullptr);
}

void Endpoint::report(const NetworkError &error)
{
	count(Counter::network_errors);
	if (error.error == EMSGSIZE) {
		sender_.learn_mtu(error.peer, error.mtu);
		return; // the sender begins the message anew
	}
	dgm_event event{};
	event.type = DGM_ERROR;
	event.error = error.error;
	event.peer = to_address(error.peer);
	if (!queue_.push(event))
		count(Counter::errors_lost);
}

// Returns the counter for this datagram
Counter Endpoint::judge(const Arrival &arrival, std::span<const uint8_t> datagram, uint64_t now)
{
	const dg_source &source = *arrival.source;
	Counter verdict{};
	dg_segment seg;
	const dg_result result = dg_parse(datagram.data(), datagram.size(), &seg);
	if (result != DG_OK)
		return counter_of(result);
	switch (seg.form) {
	case DG_SEND:
		return judge_send(source, seg, datagram);
	case DG_WRITE_RECORD:
		verdict = judge_write(source, seg, datagram, now);
		refuse(verdict, arrival, datagram, now);
		return verdict;
	default:
		if (!dg_crc_good(datagram.data(), datagram.size()))
			return Counter::bad_crc;
		report_refused(source, datagram);
		return Counter::error_messages;
	}
}

// Reports it to the program if it is about a message that has been sent; no other state depends on it
void Endpoint::report_refused(const dg_source &source, std::span<const uint8_t> datagram)
{
	dg_error error;
	dg_segment cause;
	// Each message has one event: without room a later error message has it
	if (!queue_.has_room_for_error()) {
		count(Counter::errors_lost);
		return;
	}
	dg_parse_error(datagram.data(), &error);
	if (!sender_.take_refused(source, error, cause))
		return;
	dgm_event event{};
	event.type = DGM_REFUSED;
	event.error = error.layer << 12 | error.type << 8 | error.code;
	event.peer = to_address(source);
	event.zone = cause.stag;
	event.msn = cause.msn;
	event.offset = cause.to;
	event.length = cause.len;
	event.message = cause.to - cause.mo;
	event.message_length = cause.ml;
	queue_.push(event);
}

// Answers a Write-Record that is refused, seldom
void Endpoint::refuse(Counter why, const Arrival &arrival, std::span<const uint8_t> datagram, uint64_t now)
{
	const auto reason = refusal_of(why);
	if (!limit_ || !reason || datagram.size() < DG_REFUSAL_LEN || !arrival.target || is_multicast(*arrival.target))
		return;
	// Last the limit: it is for those alone who may have an error message
	if (std::ranges::none_of(zones_, [&](const auto &zone) { return zone.second->sources.names(*arrival.source); }) ||
	    !dg_crc_good(datagram.data(), datagram.size()) || !dg_limit_pass(limit_.get(), &*arrival.source, now))
		return;
	std::array<uint8_t, DG_REFUSAL_LEN> message;
	dg_build_refusal(++error_msn_, *reason, datagram.data(), static_cast<uint32_t>(datagram.size()), message.data());
	// Only from an address of this host, so none answers broadcast
	if (udp_.answer(*arrival.source, *arrival.target, message) == 0)
		count(Counter::error_messages_sent);
}

Counter Endpoint::judge_send(const dg_source &source, const dg_segment &seg, std::span<const uint8_t> datagram)
{
	if (seg.qkey != qkey_)
		return Counter::bad_qkey;
	if (!dg_crc_good(datagram.data(), datagram.size()))
		return Counter::bad_crc;
	if (receives_.empty())
		return Counter::no_receive;
	const Receive receive = receives_.front();
	receives_.pop_front();
	dgm_event event{};
	event.type = DGM_RECEIVE;
	event.flags = seg.solicited ? DGM_SOLICITED : 0;
	event.peer = to_address(source);
	event.msn = seg.msn;
	event.length = seg.len;
	event.context = receive.context;
	const bool fits = seg.len <= receive.length;
	if (fits && seg.len > 0)
		std::memcpy(receive.memory, datagram.data() + seg.hdr_len, seg.len);
	event.error = fits ? 0 : EMSGSIZE;
	queue_.push(event);
	return fits ? Counter::sends_received : Counter::too_long;
}

Counter Endpoint::judge_write(const dg_source &source, const dg_segment &seg, std::span<const uint8_t> datagram, uint64_t now)
{
	const auto found = zones_.find(seg.stag);
	if (found == zones_.end())
		return Counter::no_zone;
	Zone &zone = *found->second;
	if (seg.qkey != zone.qkey)
		return Counter::bad_qkey;
	if (!zone.sources.has(source))
		return Counter::bad_source;
	if (!dg_crc_good(datagram.data(), datagram.size()))
		return Counter::bad_crc;
	if (!dg_within(&seg, zone.length))
		return Counter::out_of_bounds;
	if (zone.record && !queue_.has_room())
		return Counter::queue_full;
	dg_slot *message = nullptr;
	auto verdict = dg_track_offer(&track_, &source, &seg, zone.partial, now, &message);
	if (verdict == DG_OLDER) {
		record_message(*message);
		verdict = dg_track_offer(&track_, &source, &seg, zone.partial, now, &message);
	}
	switch (verdict) {
	case DG_SINGLE:
		place(zone, seg, datagram);
		record_single(zone, source, seg);
		return Counter::segments_placed;
	case DG_PLACE:
		place(zone, seg, datagram);
		return Counter::segments_placed;
	case DG_DELIVER:
		place(zone, seg, datagram);
		record_message(*message);
		return Counter::segments_placed;
	case DG_LATE:
		return Counter::late;
	case DG_DUPLICATE:
		return Counter::duplicate;
	case DG_MISMATCH:
		return Counter::mismatch;
	case DG_OLDER: // once alone
	case DG_TOO_MANY:
		break;
	}
	return Counter::too_many_segments;
}

void Endpoint::place(Zone &zone, const dg_segment &seg, std::span<const uint8_t> datagram)
{
	if (seg.len > 0)
		std::memcpy(zone.memory + seg.to, datagram.data() + seg.hdr_len, seg.len);
	if (zone.map)
		zone.map->mark(seg.to, seg.to + seg.len);
}

void Endpoint::push_record(const dgm_event &event)
{
	if (!queue_.push(event))
		count(Counter::records_lost);
}

void Endpoint::record_single(const Zone &zone, const dg_source &source, const dg_segment &seg)
{
	if (!zone.record)
		return;
	dgm_event event{};
	event.type = DGM_RECORD;
	event.flags = DGM_END;
	event.peer = to_address(source);
	event.zone = zone.number;
	event.msn = seg.msn;
	event.offset = event.message = seg.to;
	event.length = event.message_length = event.bytes = seg.len;
	push_record(event);
}

// A record for each run of what came
void Endpoint::record_message(const dg_slot &message)
{
	const auto found = zones_.find(message.stag);
	if (found == zones_.end() || !found->second->record)
		return;
	dgm_event event{};
	event.type = DGM_RECORD;
	event.peer = to_address(message.source);
	event.zone = message.stag;
	event.msn = message.msn;
	event.message = message.base;
	event.message_length = message.ml;
	dg_run run;
	uint32_t from = 0;
	while (dg_track_run(&message, &from, &run)) {
		event.offset = message.base + run.mo;
		event.length = run.len;
		event.flags = (run.end ? DGM_END : 0) | (message.bytes != message.ml ? DGM_HOLES : 0);
		event.bytes = run.end ? message.bytes : 0;
		push_record(event);
	}
}

} // namespace libdgm
