// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
// Endpoints at 127.0.0.1 or ::1, and memory whose neighbourhood is watched
#pragma once

#include "../peer/datagram.h"

#include <dgm.h>

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace world {

using dgmpeer::Bytes;
using dgmpeer::Datagram;

constexpr int patience = 10000; // ms

inline sockaddr_in loopback(uint16_t port = 0, uint32_t host = INADDR_LOOPBACK)
{
	sockaddr_in address{};
	address.sin_family = AF_INET;
	address.sin_port = htons(port);
	address.sin_addr.s_addr = htonl(host);
	return address;
}

inline const sockaddr *any(const sockaddr_in &address)
{
	return reinterpret_cast<const sockaddr *>(&address);
}

inline dgm_address loopback6()
{
	dgm_address address{};
	address.v6.sin6_family = AF_INET6;
	address.v6.sin6_addr = in6addr_loopback;
	return address;
}

inline Bytes random_bytes(size_t size, unsigned seed = 1)
{
	std::mt19937 random(seed);
	Bytes bytes(size);
	for (auto &octet : bytes)
		octet = static_cast<uint8_t>(random() | 1); // never 0, which is what fresh memory has
	return bytes;
}

class Endpoint {
public:
	explicit Endpoint(const dgm_options *options = nullptr) : Endpoint(dgm_address{.v4 = loopback()}, options) {}
	explicit Endpoint(const dgm_address &local, const dgm_options *options = nullptr)
	{
		endpoint_.reset(dgm_open(&local.any, sizeof(local), options));
		if (!endpoint_)
			throw std::runtime_error("dgm_open: " + std::string(std::strerror(errno)));
	}
	operator dgm_endpoint *() const { return endpoint_.get(); }
	[[nodiscard]] dgm_address local() const
	{
		dgm_address address;
		dgm_local(endpoint_.get(), &address);
		return address;
	}
	[[nodiscard]] sockaddr_in address() const { return local().v4; }
	[[nodiscard]] uint64_t counter(const std::string &name) const
	{
		for (unsigned i = 0; dgm_counter_name(i) != nullptr; i++)
			if (name == dgm_counter_name(i))
				return dgm_counter(endpoint_.get(), i);
		ADD_FAILURE() << "no counter " << name;
		return 0;
	}
	[[nodiscard]] std::map<std::string, uint64_t> counters() const
	{
		std::map<std::string, uint64_t> all;
		for (unsigned i = 0; dgm_counter_name(i) != nullptr; i++)
			if (const uint64_t value = dgm_counter(endpoint_.get(), i); value != 0)
				all[dgm_counter_name(i)] = value;
		return all;
	}
	// An endpoint without a thread places nothing meanwhile
	template <typename Condition> bool wait(Condition condition) const
	{
		const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(patience);
		while (!condition()) {
			if (std::chrono::steady_clock::now() > until)
				return false;
			::usleep(500);
		}
		return true;
	}
	bool wait_counter(const std::string &name, uint64_t value) const
	{
		return wait([&] { return counter(name) >= value; });
	}
	[[nodiscard]] std::vector<dgm_event> events(size_t number, int timeout = patience) const
	{
		std::vector<dgm_event> all;
		dgm_event event;
		while (all.size() < number && dgm_poll(endpoint_.get(), &event, 1, timeout) == 1)
			all.push_back(event);
		return all;
	}

private:
	struct Close {
		void operator()(dgm_endpoint *endpoint) const { dgm_close(endpoint); }
	};
	std::unique_ptr<dgm_endpoint, Close> endpoint_;
};

inline dgm_options options(uint32_t flags = 0)
{
	dgm_options chosen;
	dgm_defaults(&chosen);
	chosen.flags = flags;
	return chosen;
}

// Messages have time on a busy host, too
inline dgm_options patient(uint32_t flags = 0)
{
	dgm_options chosen = options(flags);
	chosen.deadline_ms = patience;
	chosen.gap_ms = 50;
	return chosen;
}

// A zone in the middle of memory of which nothing else may change
class Zone {
public:
	static constexpr size_t margin = 4096;

	Zone(const Endpoint &endpoint, size_t length, uint32_t flags = 0, bool anybody = true, uint32_t block = 0)
		: memory_(length + 2 * margin), length_(length)
	{
		std::fill_n(memory_.begin(), margin, uint8_t{0xa5});
		std::fill_n(memory_.end() - margin, margin, uint8_t{0xa5});
		const dgm_zone_options chosen{.number = 0, .qkey = 0, .flags = flags, .block = block};
		zone_ = dgm_zone_open(endpoint, data(), length, &chosen);
		number = dgm_zone_number(zone_);
		qkey = dgm_zone_qkey(zone_);
		if (anybody)
			dgm_allow_any(zone_);
	}
	~Zone()
	{
		close();
		EXPECT_TRUE(is_intact()) << "octets outside of the zone have changed";
	}
	Zone(const Zone &) = delete;
	Zone &operator=(const Zone &) = delete;
	void close() { dgm_zone_close(std::exchange(zone_, nullptr)); }
	operator dgm_zone *() const { return zone_; }
	uint8_t *data() { return memory_.data() + margin; }
	[[nodiscard]] size_t size() const { return length_; }
	[[nodiscard]] bool holds(size_t offset, std::span<const uint8_t> bytes)
	{
		return offset + bytes.size() <= length_ && std::equal(bytes.begin(), bytes.end(), data() + offset);
	}
	[[nodiscard]] bool is_blank()
	{
		return std::all_of(data(), data() + length_, [](uint8_t octet) { return octet == 0; });
	}

	uint32_t number, qkey;

private:
	[[nodiscard]] bool is_intact() const
	{
		const auto good = [](uint8_t octet) { return octet == 0xa5; };
		return std::all_of(memory_.begin(), memory_.begin() + margin, good) &&
		       std::all_of(memory_.end() - margin, memory_.end(), good);
	}
	Bytes memory_;
	size_t length_;
	dgm_zone *zone_;
};

// A UDP socket that sends any octets
class Raw {
public:
	explicit Raw(uint32_t host = INADDR_LOOPBACK) : fd_(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0))
	{
		const auto address = loopback(0, host);
		if (::bind(fd_, any(address), sizeof(address)) != 0)
			throw std::runtime_error("bind");
	}
	~Raw() { ::close(fd_); }
	Raw(const Raw &) = delete;
	Raw &operator=(const Raw &) = delete;
	void send(const sockaddr_in &to, std::span<const uint8_t> bytes) const
	{
		ASSERT_EQ(::sendto(fd_, bytes.data(), bytes.size(), 0, any(to), sizeof(to)), static_cast<ssize_t>(bytes.size()));
	}
	// Empty if nothing comes in time
	[[nodiscard]] Bytes receive(int timeout = patience) const
	{
		timeval wait{.tv_sec = timeout / 1000, .tv_usec = timeout % 1000 * 1000};
		::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
		Bytes bytes(65536);
		bytes.resize(static_cast<size_t>(std::max<ssize_t>(::recv(fd_, bytes.data(), bytes.size(), 0), 0)));
		return bytes;
	}
	[[nodiscard]] sockaddr_in address() const
	{
		sockaddr_in address{};
		socklen_t length = sizeof(address);
		::getsockname(fd_, reinterpret_cast<sockaddr *>(&address), &length);
		return address;
	}

private:
	int fd_;
};

inline int write(const Endpoint &from, const Endpoint &to, const Zone &zone, uint64_t offset, std::span<const uint8_t> data)
{
	const auto address = to.local();
	return dgm_write(from, &address.any, sizeof(address), zone.number, zone.qkey, offset, data.data(), data.size(), nullptr);
}

} // namespace world
