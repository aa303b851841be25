// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
// The sending half: cuts messages into datagrams
#pragma once

#include "udp.h"

#include <chrono>
#include <mutex>
#include <unordered_map>

namespace libdgm {

class Sender {
public:
	// options outlive it
	Sender(Udp &udp, const dgm_options &options)
		: udp_(udp), options_(options),
		  writes_((options.flags & DGM_RECEIVE_ERRORS) != 0 ? std::make_unique<dg_writes>() : nullptr)
	{
	}

	// Both return 0 or an errno value
	int send(const dg_source &peer, uint32_t qkey, const void *data, size_t size, bool solicited);
	int write(const dg_source &peer, uint32_t zone, uint32_t qkey, uint64_t offset, const void *data, size_t size,
		  uint32_t &msn);
	// The path has become narrower
	void learn_mtu(const dg_source &peer, uint32_t mtu);
	// With DGM_RECEIVE_ERRORS: is this about a message that has been sent? Sets cause. Does not wait for a message on its way
	bool take_refused(const dg_source &source, const dg_error &error, dg_segment &cause);
	void set_error_report(std::function<void(const NetworkError &)> report) { report_ = std::move(report); }

private:
	using Clock = std::chrono::steady_clock;
	struct Message {
		dg_source peer;
		uint32_t zone, qkey, msn;
		uint64_t offset;
		const uint8_t *data;
		size_t size;
	};

	static constexpr size_t paths_max = 4096;

	uint32_t mtu_of(const dg_source &peer);
	[[nodiscard]] size_t datagram_max(const dg_source &peer);
	int send_parts(const dg_source &peer, std::span<iovec> parts, size_t segment);
	void expect(const Message &message);
	int send_message(const Message &message, size_t segment);
	int send_bundle(const Message &message, size_t segment, size_t begin, size_t count);

	Udp &udp_;
	const dgm_options &options_;
	std::function<void(const NetworkError &)> report_;
	std::mutex lock_; // all below but writes and paths
	uint32_t send_msn_ = 0, write_msn_ = 0;
	std::mutex writes_lock_;
	std::unique_ptr<dg_writes> writes_;
	std::mutex paths_lock_;
	struct Path {
		uint32_t mtu;
		Clock::time_point until;
	};
	std::unordered_map<std::string, Path> paths_; // by address
};

} // namespace libdgm
