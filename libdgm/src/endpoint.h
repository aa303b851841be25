// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
// The receiving half: judges each datagram, places it, records it
#pragma once

#include "queue.h"
#include "sender.h"
#include "zone.h"

#include <array>
#include <chrono>
#include <mutex>
#include <thread>
#include <unordered_map>

namespace libdgm {

using Clock = std::chrono::steady_clock;

// Each datagram that arrives raises one of the counters up to `late`; those behind are of other events
enum class Counter : unsigned {
	sends_received,
	segments_placed, // of Write-Record
	bad_length,
	bad_ddp,
	bad_rdmap,
	bad_opcode,
	no_msn,
	bad_qn,
	bad_last,
	bad_mo,
	bad_to,
	bad_cause,
	error_messages,
	bad_qkey,
	no_receive,
	too_long,
	no_zone,
	bad_source,
	bad_crc,
	out_of_bounds,
	queue_full,
	mismatch,
	too_many_segments,
	duplicate,
	late,
	superseded,
	evicted,
	expired,
	records_lost,
	network_errors,
	errors_lost,
	socket_overflows,
	error_messages_sent,
	number
};

class Endpoint {
public:
	Endpoint(const sockaddr *address, socklen_t length, const dgm_options &options);
	~Endpoint();
	Endpoint(const Endpoint &) = delete;
	Endpoint &operator=(const Endpoint &) = delete;

	[[nodiscard]] Udp &udp() { return udp_; }
	[[nodiscard]] Sender &sender() { return sender_; }
	[[nodiscard]] uint32_t qkey() const { return qkey_; }
	[[nodiscard]] int fd() const { return threaded_ ? queue_.fd() : epoll_.get(); }

	Zone *open_zone(void *memory, size_t length, const dgm_zone_options &options);
	void close_zone(Zone *zone);
	// prefix of a mapped address; returns 0 or an errno value
	int allow(Zone *zone, const dg_source &source, unsigned prefix);
	void allow_any(Zone *zone);
	int post_receive(void *memory, size_t length, void *context);
	int poll(dgm_event *events, int max, int timeout);
	size_t fold(uint32_t zone, const std::function<void(const dgm_event &)> &fold);
	uint64_t counter(Counter counter);

private:
	struct Receive {
		uint8_t *memory;
		size_t length;
		void *context;
	};

	void start();
	void run();
	void progress(Clock::time_point until = Clock::time_point::max());
	bool receive_batch();
	void set_timer();
	void end_messages(uint64_t now);
	void report(const NetworkError &error);
	Counter judge(const Arrival &arrival, std::span<const uint8_t> datagram, uint64_t now);
	void refuse(Counter why, const Arrival &arrival, std::span<const uint8_t> datagram, uint64_t now);
	void report_refused(const dg_source &source, std::span<const uint8_t> datagram);
	Counter judge_send(const dg_source &source, const dg_segment &seg, std::span<const uint8_t> datagram);
	Counter judge_write(const dg_source &source, const dg_segment &seg, std::span<const uint8_t> datagram, uint64_t now);
	void place(Zone &zone, const dg_segment &seg, std::span<const uint8_t> datagram);
	void record_single(const Zone &zone, const dg_source &source, const dg_segment &seg);
	void record_message(const dg_slot &message);
	void push_record(const dgm_event &event);
	void count(Counter counter, uint64_t by = 1) { counters_[static_cast<unsigned>(counter)] += by; }

	const dgm_options options_;
	const bool threaded_;
	const uint32_t qkey_;
	Udp udp_;
	Sender sender_;
	Descriptor epoll_, timer_, stop_;

	std::mutex lock_; // all below
	Queue queue_;
	std::unique_ptr<dg_slot[]> slots_;
	dg_track track_;
	std::unique_ptr<dg_limit> limit_; // none: no error messages are sent
	uint32_t error_msn_ = 0;
	uint64_t armed_ = 0; // what the timer is set to; 0: off
	std::unordered_map<uint32_t, std::unique_ptr<Zone>> zones_;
	std::deque<Receive> receives_;
	std::array<uint64_t, static_cast<unsigned>(Counter::number)> counters_{};
	std::thread thread_;
};

uint32_t random_number();

} // namespace libdgm
