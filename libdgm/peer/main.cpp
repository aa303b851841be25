// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
// dgmpeer: sends and expects any datagram, see dgmpeer(1)
#include "datagram.h"

#include "../tools/common.h"

#include <netinet/ip6.h>
#include <netinet/udp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <iostream>
#include <map>
#include <random>
#include <thread>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace {

using namespace dgmpeer;

class Socket {
public:
	explicit Socket(int family, int type = SOCK_DGRAM, int protocol = 0) : fd_(::socket(family, type | SOCK_CLOEXEC, protocol))
	{
		if (fd_ < 0)
			tools::fail("socket");
	}
	~Socket() { ::close(fd_); }
	Socket(const Socket &) = delete;
	Socket &operator=(const Socket &) = delete;
	void bind(const dgm_address &address) const
	{
		if (::bind(fd_, &address.any, tools::length_of(address)) != 0)
			tools::fail("bind");
	}
	// Port 0: any
	[[nodiscard]] const Socket &bind_port(sa_family_t family, uint16_t port) const
	{
		if (port != 0)
			bind(tools::parse_address(family == AF_INET ? "0.0.0.0" : "::", port));
		return *this;
	}
	void send(const dgm_address &to, const Bytes &bytes) const
	{
		if (::sendto(fd_, bytes.data(), bytes.size(), 0, &to.any, tools::length_of(to)) < 0 && errno != ECONNREFUSED)
			tools::fail("sendto");
	}
	void connect(const dgm_address &address) const
	{
		if (::connect(fd_, &address.any, tools::length_of(address)) != 0)
			tools::fail("connect");
	}
	// Each packet is cut into datagrams of this size
	void segment(size_t size) const
	{
		const int value = static_cast<int>(size);
		if (::setsockopt(fd_, SOL_UDP, UDP_SEGMENT, &value, sizeof(value)) != 0)
			tools::fail("setsockopt UDP_SEGMENT");
	}
	void send_packets(Bytes &bytes, size_t size) const
	{
		std::vector<iovec> parts;
		for (size_t i = 0; i < bytes.size(); i += size)
			parts.push_back({.iov_base = bytes.data() + i, .iov_len = std::min(size, bytes.size() - i)});
		std::vector<mmsghdr> packets(parts.size());
		for (size_t i = 0; i < parts.size(); i++)
			packets[i].msg_hdr = {.msg_name = nullptr, .msg_namelen = 0, .msg_iov = &parts[i], .msg_iovlen = 1,
					      .msg_control = nullptr, .msg_controllen = 0, .msg_flags = 0};
		for (size_t i = 0; i < packets.size();) {
			const int sent = ::sendmmsg(fd_, &packets[i], static_cast<unsigned>(packets.size() - i), 0);
			if (sent < 0 && errno != ECONNREFUSED)
				tools::fail("sendmmsg");
			i += static_cast<size_t>(std::max(sent, 0));
		}
	}
	// Empty optional: nothing came in time
	[[nodiscard]] std::optional<Bytes> receive(int timeout) const
	{
		pollfd wait{.fd = fd_, .events = POLLIN, .revents = 0};
		Bytes bytes(65536);
		if (::poll(&wait, 1, timeout) < 1)
			return {};
		const ssize_t size = ::recv(fd_, bytes.data(), bytes.size(), 0);
		bytes.resize(size > 0 ? static_cast<size_t>(size) : 0);
		return bytes;
	}

private:
	int fd_;
};

// The sum of 16-bit numbers, as in the checksum of RFC 768
uint32_t sum_of(const void *memory, size_t size, uint32_t sum = 0)
{
	const auto *const octets = static_cast<const uint8_t *>(memory);
	for (size_t i = 0; i < size; i++)
		sum += i % 2 != 0 ? octets[i] : uint32_t{octets[i]} << 8;
	return sum;
}

// In an IPv6 packet with any source address, port 7707
void send_from(const std::string &source, const dgm_address &to, const Bytes &bytes, bool bad_checksum)
{
	const dgm_address from = tools::parse_address(source, 7707);
	if (from.any.sa_family != AF_INET6 || to.any.sa_family != AF_INET6)
		throw std::runtime_error("--source needs IPv6 addresses");
	udphdr udp{};
	udp.source = from.v6.sin6_port;
	udp.dest = to.v6.sin6_port;
	udp.len = htons(static_cast<uint16_t>(sizeof(udp) + bytes.size()));
	ip6_hdr ip{};
	ip.ip6_flow = htonl(6U << 28);
	ip.ip6_plen = udp.len;
	ip.ip6_nxt = IPPROTO_UDP;
	ip.ip6_hlim = 64;
	ip.ip6_src = from.v6.sin6_addr;
	ip.ip6_dst = to.v6.sin6_addr;
	uint32_t sum = sum_of(&ip.ip6_src, 2 * sizeof(ip.ip6_src), IPPROTO_UDP + ntohs(udp.len));
	sum = sum_of(bytes.data(), bytes.size(), sum_of(&udp, sizeof(udp), sum));
	while (sum > 0xffff)
		sum = (sum & 0xffff) + (sum >> 16);
	udp.check = htons(sum == 0xffff ? 0xffff : static_cast<uint16_t>(~sum));
	if (bad_checksum) // another one, but not 0, which is none
		udp.check = udp.check == 0xffff ? 1 : 0xffff;
	Bytes packet(sizeof(ip) + sizeof(udp));
	std::memcpy(packet.data(), &ip, sizeof(ip));
	std::memcpy(packet.data() + sizeof(ip), &udp, sizeof(udp));
	packet.insert(packet.end(), bytes.begin(), bytes.end());
	dgm_address where = to;
	where.v6.sin6_port = 0;
	Socket(AF_INET6, SOCK_RAW, IPPROTO_RAW).send(where, packet);
}

Bytes from_hex(const std::string &hex)
{
	Bytes bytes;
	if (hex.size() % 2 != 0 || hex.find_first_not_of("0123456789abcdefABCDEF") != std::string::npos)
		throw std::runtime_error("not a string of hexadecimal octets: '" + hex + "'");
	for (size_t i = 0; i < hex.size(); i += 2)
		bytes.push_back(static_cast<uint8_t>(std::stoul(hex.substr(i, 2), nullptr, 16)));
	return bytes;
}

std::string to_hex(const Bytes &bytes)
{
	std::string hex;
	for (const uint8_t octet : bytes)
		hex += fmt::format("{:02x}", octet);
	return hex;
}

nlohmann::json decode(const Bytes &bytes)
{
	nlohmann::json out{{"octets", bytes.size()}, {"hex", to_hex(bytes)}};
	if (bytes.size() < 4)
		return out;
	const Datagram datagram(Bytes(bytes.begin(), bytes.end() - 4));
	for (const Field &field : fields())
		if (const auto value = datagram.get(field.name))
			out[std::string(field.name)] = *value;
	out["crc"] = datagram.sealed() == bytes;
	return out;
}

struct Make {
	std::string kind, data, source;
	uint16_t source_port = 0;
	std::vector<std::string> set;
	int cut = -1;
	bool bad_crc = false;
};

Bytes make(const Make &options)
{
	const Bytes data(options.data.begin(), options.data.end());
	const auto size = static_cast<uint32_t>(data.size());
	Datagram datagram = options.kind == "send"    ? Datagram::send(0, 1, data)
			    : options.kind == "write" ? Datagram::write(0, 0, 0, 1, 0, size, data)
						      : Datagram::error(1, 1, 1, 0, Datagram::write(0, 0, 0, 1, 0, size, data));
	for (const std::string &assignment : options.set) {
		const size_t equal = assignment.find('=');
		if (equal == std::string::npos)
			throw std::runtime_error("not FIELD=VALUE: '" + assignment + "'");
		datagram.set(assignment.substr(0, equal), std::stoull(assignment.substr(equal + 1), nullptr, 0));
	}
	Bytes bytes = datagram.sealed();
	if (options.bad_crc)
		bytes.back() ^= 1;
	if (options.cut >= 0)
		bytes.resize(std::min(bytes.size(), static_cast<size_t>(options.cut)));
	return bytes;
}

// One at a time, or those of one size as a packet that the receiver may get whole (UDP_GRO)
class Sender {
public:
	Sender(const dgm_address &to, bool bundles) : socket_(to.any.sa_family), to_(to), bundles_(bundles) {}
	void send(const Bytes &datagram)
	{
		if (!bundles_ || datagram.empty() || datagram.size() > largest) {
			socket_.send(to_, datagram);
			return;
		}
		Bytes &bundle = of_size_[datagram.size()];
		bundle.insert(bundle.end(), datagram.begin(), datagram.end());
		if (bundle.size() >= std::min(most * datagram.size(), size_t{60000}))
			send_bundle(datagram.size());
	}
	void finish()
	{
		for (const auto &[size, bundle] : of_size_)
			if (!bundle.empty())
				send_bundle(size);
	}

private:
	static constexpr size_t largest = 1400, most = 40;
	void send_bundle(size_t size)
	{
		socket_.segment(size);
		socket_.send(to_, of_size_[size]);
		socket_.segment(0);
		of_size_[size].clear();
	}

	Socket socket_;
	dgm_address to_;
	bool bundles_;
	std::map<size_t, Bytes> of_size_;
};

// Returns how many were sent for each counter
std::map<std::string, uint64_t> send_hostile(const tools::Target &target, uint64_t count, double rate, bool bundles)
{
	const auto list = hostile_datagrams({target.send_key, target.zone, target.qkey, target.size});
	Sender sender(target.address, bundles);
	std::map<std::string, uint64_t> sent;
	const auto begin = std::chrono::steady_clock::now();
	for (uint64_t i = 0; i < (count != 0 ? count : list.size()); i++) {
		const auto &bad = list[i % list.size()];
		sender.send(bad.datagram);
		sent[bad.counter]++;
		if (rate > 0 && i % 32 == 31)
			std::this_thread::sleep_until(begin + std::chrono::duration_cast<std::chrono::nanoseconds>(
				std::chrono::duration<double>(static_cast<double>(i) / rate)));
	}
	sender.finish();
	return sent;
}

void send_mutated(const tools::Target &target, uint64_t count, uint64_t seed, bool bundles)
{
	Sender sender(target.address, bundles);
	std::mt19937_64 random(seed);
	for (uint64_t i = 0; i < count; i++)
		sender.send(mutated_datagram({target.send_key, target.zone, target.qkey, target.size}, random));
	sender.finish();
}

// Writes to a zone, with a correct CRC, that differ in zone number and Q_Key
class Guess {
public:
	Guess()
	{
		// The CRC is linear: that of a datagram is that of zeros, with a term for each octet of the two fields
		for (size_t i = 0; i < terms_.size(); i++)
			for (uint32_t value = 0; value < 256; value++) {
				const uint64_t both = uint64_t{value} << 8 * (7 - i);
				terms_[i][value] = crc_of(write(static_cast<uint32_t>(both >> 32), static_cast<uint32_t>(both))) ^ crc_of(octets_);
			}
	}

	[[nodiscard]] size_t size() const { return octets_.size(); }

	void put(uint8_t *to, uint32_t zone, uint32_t qkey) const
	{
		const uint64_t both = uint64_t{zone} << 32 | qkey;
		uint32_t crc = crc_of(octets_);
		std::memcpy(to, octets_.data(), octets_.size());
		for (size_t i = 0; i < terms_.size(); i++) {
			const auto octet = static_cast<uint8_t>(both >> 8 * (7 - i));
			to[i < 4 ? zone_at + i : qkey_at + i - 4] = octet;
			crc ^= terms_[i][octet];
		}
		for (size_t i = 0; i < 4; i++)
			to[octets_.size() - 4 + i] = static_cast<uint8_t>(crc >> 8 * i);
	}

private:
	static constexpr size_t zone_at = 2, qkey_at = 26; // section 3.2 of the specification

	[[nodiscard]] static Bytes write(uint32_t zone, uint32_t qkey)
	{
		const Bytes data{'g', 'u', 'e', 's', 's', 'e', 'd', '!'};
		return Datagram::write(zone, qkey, 0, 1, 0, static_cast<uint32_t>(data.size()), data).sealed();
	}
	static uint32_t crc_of(const Bytes &bytes)
	{
		uint32_t crc = 0;
		for (size_t i = 0; i < 4; i++)
			crc |= uint32_t{bytes[bytes.size() - 4 + i]} << 8 * i;
		return crc;
	}

	Bytes octets_ = write(0, 0);
	std::array<std::array<uint32_t, 256>, 8> terms_{};
};

// A third has the target's zone, a third its Q_Key, and a third neither
void send_guesses(const tools::Target &target, uint64_t count)
{
	constexpr size_t segments = 64, packets = 16; // of a packet, of a call
	const Socket socket(target.address.any.sa_family);
	const Guess guess;
	socket.connect(target.address);
	socket.segment(guess.size());
	std::mt19937_64 random(std::random_device{}());
	Bytes buffer(segments * packets * guess.size());
	for (uint64_t sent = 0; sent < count; sent += segments * packets) {
		for (size_t i = 0; i < segments * packets; i++) {
			const uint64_t both = random();
			auto zone = static_cast<uint32_t>(both >> 32), qkey = static_cast<uint32_t>(both);
			if (i % 3 == 0)
				zone = target.zone;
			else if (i % 3 == 1)
				qkey = target.qkey;
			if (zone == target.zone && qkey == target.qkey)
				qkey++;
			guess.put(buffer.data() + i * guess.size(), zone, qkey);
		}
		socket.send_packets(buffer, segments * guess.size());
	}
}

int expect(const dgm_address &address, int count, double timeout)
{
	const Socket socket(address.any.sa_family);
	socket.bind(address);
	const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(static_cast<int>(timeout * 1000));
	std::cout << "listening" << std::endl;
	for (int i = 0; i < count; i++) {
		const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - std::chrono::steady_clock::now()).count();
		const auto bytes = socket.receive(static_cast<int>(std::max<long>(left, 0)));
		if (!bytes)
			return 1;
		std::cout << decode(*bytes).dump() << std::endl;
	}
	return 0;
}

int run(int argc, char **argv)
{
	CLI::App app("Send and expect any datagram of datagram iWARP");
	app.require_subcommand(1);
	std::string host, hex, target;
	uint16_t port = 0;
	Make options;
	uint64_t flood = 0, seed = std::random_device{}();
	int count = 1;
	double rate = 0, timeout = 10;
	bool bad_checksum = false;
	bool bundles = false;
	const auto with_address = [&](CLI::App *sub) {
		sub->add_option("address", host)->required();
		sub->add_option("port", port)->required();
		return sub;
	};
	auto *const send = with_address(app.add_subcommand("send", "send one datagram"));
	send->add_option("kind", options.kind)->required()->check(CLI::IsMember({"send", "write", "error"}));
	send->add_option("set", options.set, "FIELD=VALUE");
	send->add_option("--data", options.data, "the data");
	send->add_option("--cut", options.cut, "send only the first N octets");
	auto *const source = send->add_option("--source", options.source, "source address of the IPv6 packet, which may be forged");
	send->add_flag("--bad-checksum", bad_checksum, "the UDP checksum is wrong")->needs(source);
	send->add_option("--source-port", options.source_port, "source port");
	send->add_flag("--bad-crc", options.bad_crc, "one bit of the CRC is wrong");
	auto *const raw = with_address(app.add_subcommand("raw", "send octets"));
	raw->add_option("hex", hex)->required();
	raw->add_option("--source-port", options.source_port, "source port");
	auto *const hostile = app.add_subcommand("hostile", "send datagrams that are wrong in one thing");
	hostile->add_option("target", target, "target line printed by dgm-recv")->required();
	hostile->add_option("--count", flood, "how many; without it each once");
	hostile->add_option("--rate", rate, "datagrams a second");
	auto *const guess = app.add_subcommand("guess", "send writes with a random zone number, a random Q_Key, or both");
	guess->add_option("target", target, "target line printed by dgm-recv")->required();
	guess->add_option("--count", flood, "how many, rounded up to a multiple of 1024")->required();
	auto *const mutate = app.add_subcommand("mutate", "send good datagrams of which some bits and octets are random, with a correct CRC");
	mutate->add_option("target", target, "target line printed by dgm-recv")->required();
	mutate->add_option("--count", flood, "how many")->required();
	mutate->add_option("--seed", seed, "of the random numbers; without it a random one");
	for (auto *const sub : {hostile, mutate})
		sub->add_flag("--bundles", bundles, "datagrams of one size in one packet (UDP_SEGMENT)");
	auto *const listen = with_address(app.add_subcommand("expect", "print datagrams that arrive"));
	listen->add_option("--count", count, "how many");
	listen->add_option("--timeout", timeout, "seconds");
	auto *const show = app.add_subcommand("decode", "print a datagram");
	show->add_option("hex", hex)->required();
	CLI11_PARSE(app, argc, argv);

	if (*send || *raw) {
		const dgm_address address = tools::parse_address(host, port);
		const Bytes bytes = *send ? make(options) : from_hex(hex);
		if (options.source.empty())
			Socket(address.any.sa_family).bind_port(address.any.sa_family, options.source_port).send(address, bytes);
		else
			send_from(options.source, address, bytes, bad_checksum);
	} else if (*hostile) {
		std::cout << nlohmann::json(send_hostile(tools::Target::parse(target), flood, rate, bundles)).dump() << '\n';
	} else if (*guess) {
		send_guesses(tools::Target::parse(target), flood);
	} else if (*mutate) {
		std::cout << "seed " << seed << std::endl; // before a target that does not survive it
		send_mutated(tools::Target::parse(target), flood, seed, bundles);
	} else if (*listen) {
		return expect(tools::parse_address(host, port), count, timeout);
	} else {
		std::cout << decode(from_hex(hex)).dump() << '\n';
	}
	return 0;
}

} // namespace

int main(int argc, char **argv)
{
	try {
		return run(argc, argv);
	} catch (const std::exception &error) {
		std::cerr << "dgmpeer: " << error.what() << '\n';
		return 1;
	}
}
