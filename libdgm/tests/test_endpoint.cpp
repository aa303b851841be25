// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
// What programs see of endpoints, over loopback. DGM-… are the requirements that a case shows.
#include "world.h"

#include <sys/epoll.h>

using namespace world;

namespace {

// With a thread and without, with bundles and datagram by datagram
class Both : public testing::TestWithParam<uint32_t> {
protected:
	dgm_options chosen = patient(GetParam());
	Endpoint a{&chosen}, b{&chosen};
	sockaddr_in to_b = b.address();
};

INSTANTIATE_TEST_SUITE_P(Modes, Both,
			 testing::Values(0u, DGM_NO_THREAD, DGM_NO_SEGMENT | DGM_NO_GRO,
					 DGM_NO_THREAD | DGM_NO_SEGMENT | DGM_NO_GRO),
			 [](const auto &p) {
				 return std::string(p.param & DGM_NO_THREAD ? "NoThread" : "Thread") +
					(p.param & DGM_NO_GRO ? "Single" : "Bundle");
			 });

TEST_P(Both, DGM_02_03_06_SendsMatchReceivesInOrderOfArrival)
{
	char memory[3][16] = {};
	for (int i = 0; i < 3; i++)
		ASSERT_EQ(dgm_recv(b, memory[i], sizeof(memory[i]), &memory[i]), 0);
	for (const char *text : {"one", "two", ""})
		ASSERT_EQ(dgm_send(a, any(to_b), sizeof(to_b), dgm_qkey(b), text, std::strlen(text), 0), 0);
	const auto events = b.events(3);
	ASSERT_EQ(events.size(), 3u);
	const char *const want[] = {"one", "two", ""};
	for (size_t i = 0; i < 3; i++) {
		EXPECT_EQ(events[i].type, DGM_RECEIVE);
		EXPECT_EQ(events[i].error, 0);
		EXPECT_EQ(events[i].context, &memory[i]);
		EXPECT_EQ(events[i].length, std::strlen(want[i]));
		EXPECT_STREQ(memory[i], want[i]);
		EXPECT_EQ(events[i].msn, i + 1);
		EXPECT_EQ(events[i].peer.v4.sin_port, a.address().sin_port);
		EXPECT_EQ(events[i].peer.v4.sin_addr.s_addr, htonl(INADDR_LOOPBACK));
	}
	EXPECT_EQ(b.counter("sends_received"), 3u);
}

TEST_P(Both, DGM_10_11_WriteIsRecordedAndConsumesNoReceive)
{
	Zone zone(b, 65536);
	char unused[8];
	ASSERT_EQ(dgm_recv(b, unused, sizeof(unused), nullptr), 0);
	const Bytes data = random_bytes(100);
	uint32_t msn = 0;
	ASSERT_EQ(dgm_write(a, any(to_b), sizeof(to_b), zone.number, zone.qkey, 1000, data.data(), data.size(), &msn), 0);
	const auto events = b.events(1);
	ASSERT_EQ(events.size(), 1u);
	EXPECT_EQ(events[0].type, DGM_RECORD);
	EXPECT_EQ(events[0].zone, zone.number);
	EXPECT_EQ(events[0].msn, msn);
	EXPECT_EQ(events[0].offset, 1000u);
	EXPECT_EQ(events[0].length, 100u);
	EXPECT_EQ(events[0].message, 1000u);
	EXPECT_EQ(events[0].message_length, 100u);
	EXPECT_EQ(events[0].bytes, 100u);
	EXPECT_EQ(events[0].flags, static_cast<uint32_t>(DGM_END));
	EXPECT_TRUE(zone.holds(1000, data));
}

TEST_P(Both, DGM_13_26_34_MessageOfManyDatagramsIsOneRecord)
{
	chosen.segment = 1438;
	const Endpoint source(&chosen);
	Zone zone(b, 1 << 20);
	const Bytes data = random_bytes(200000);
	ASSERT_EQ(write(source, b, zone, 77, data), 0);
	const auto events = b.events(1);
	ASSERT_EQ(events.size(), 1u);
	EXPECT_EQ(events[0].offset, 77u);
	EXPECT_EQ(events[0].length, data.size());
	EXPECT_EQ(events[0].bytes, data.size());
	EXPECT_EQ(events[0].flags, static_cast<uint32_t>(DGM_END));
	EXPECT_TRUE(zone.holds(77, data));
	EXPECT_EQ(b.counter("segments_placed"), 140u); // 200000 / 1438, rounded up
}

// The loopback device takes datagrams of 64 KiB
TEST_P(Both, DGM_25_MessageUpToThePathMtuIsOneDatagram)
{
	Zone zone(b, 100000);
	uint64_t datagrams = 0;
	for (const auto &[size, needed] : {std::pair{1000u, 1u}, {60000, 1}, {100000, 2}}) {
		ASSERT_EQ(write(a, b, zone, 0, random_bytes(size)), 0);
		ASSERT_EQ(b.events(1).size(), 1u);
		EXPECT_EQ(b.counter("segments_placed"), datagrams += needed) << size;
	}
}

TEST_P(Both, EmptyWriteIsRecorded)
{
	Zone zone(b, 100);
	ASSERT_EQ(write(a, b, zone, 100, {}), 0);
	const auto events = b.events(1);
	ASSERT_EQ(events.size(), 1u);
	EXPECT_EQ(events[0].offset, 100u);
	EXPECT_EQ(events[0].length, 0u);
}

TEST_P(Both, DGM_30_FoldAddsTheRecordsOfOneZoneToAMap)
{
	Zone zone(b, 65536), other(b, 65536);
	dgm_map *const map = dgm_map_new();
	const Bytes data = random_bytes(100);
	for (const uint64_t offset : {0, 100, 300})
		ASSERT_EQ(write(a, b, zone, offset, data), 0);
	ASSERT_EQ(write(a, b, other, 200, data), 0);
	int folded = 0;
	EXPECT_TRUE(b.wait([&] { return (folded += dgm_fold(b, zone.number, map)) == 3; }));
	EXPECT_TRUE(dgm_map_has(map, 0, 200));
	EXPECT_FALSE(dgm_map_has(map, 200, 1));
	EXPECT_TRUE(dgm_map_has(map, 300, 100));
	EXPECT_EQ(b.events(1).size(), 1u) << "records of the other zone stay";
	dgm_map_free(map);
}

TEST_P(Both, DGM_09_ANetworkErrorIsAnEventAndTheNextWriteArrives)
{
	const auto closed = Raw().address();
	const char octet = 1;
	ASSERT_EQ(dgm_send(a, any(closed), sizeof(closed), 1, &octet, 1, 0), 0);
	const auto events = a.events(1);
	ASSERT_EQ(events.size(), 1u);
	EXPECT_EQ(events[0].type, DGM_ERROR);
	EXPECT_EQ(events[0].error, ECONNREFUSED);
	EXPECT_EQ(events[0].peer.v4.sin_port, closed.sin_port);
	Zone zone(b, 100);
	ASSERT_EQ(write(a, b, zone, 0, random_bytes(10)), 0);
	EXPECT_EQ(b.events(1).size(), 1u);
}

class Threaded : public testing::Test {
protected:
	Endpoint a, b;
	sockaddr_in to_b = b.address();
};

TEST_F(Threaded, SendWithoutAPostedReceiveIsDroppedAndCounted)
{
	char octet = 7;
	ASSERT_EQ(dgm_send(a, any(to_b), sizeof(to_b), dgm_qkey(b), &octet, 1, 0), 0);
	EXPECT_TRUE(b.wait_counter("no_receive", 1));
	ASSERT_EQ(dgm_recv(b, &octet, 1, nullptr), 0);
	EXPECT_EQ(b.events(1, 50).size(), 0u);
}

TEST_F(Threaded, SendLongerThanTheReceiveCompletesTheReceiveWithEmsgsize)
{
	Bytes memory(16);
	ASSERT_EQ(dgm_recv(b, memory.data(), 8, nullptr), 0);
	ASSERT_EQ(dgm_recv(b, memory.data(), 9, nullptr), 0);
	const Bytes data = random_bytes(9);
	for (int i = 0; i < 2; i++)
		ASSERT_EQ(dgm_send(a, any(to_b), sizeof(to_b), dgm_qkey(b), data.data(), data.size(), 0), 0);
	const auto events = b.events(2);
	ASSERT_EQ(events.size(), 2u);
	EXPECT_EQ(events[0].error, EMSGSIZE);
	EXPECT_EQ(events[1].error, 0);
	EXPECT_TRUE(std::equal(data.begin(), data.end(), memory.begin()));
	EXPECT_EQ(memory[9], 0);
}

TEST_F(Threaded, SendWithAWrongQKeyIsDroppedAndCounted)
{
	char octet = 7;
	ASSERT_EQ(dgm_recv(b, &octet, 1, nullptr), 0);
	ASSERT_EQ(dgm_send(a, any(to_b), sizeof(to_b), dgm_qkey(b) + 1, &octet, 1, 0), 0);
	EXPECT_TRUE(b.wait_counter("bad_qkey", 1));
	EXPECT_EQ(b.events(1, 50).size(), 0u);
}

TEST_F(Threaded, PostingReceive257FailsWithEnobufs)
{
	char octet;
	for (int i = 0; i < 256; i++)
		ASSERT_EQ(dgm_recv(b, &octet, 1, nullptr), 0);
	EXPECT_EQ(dgm_recv(b, &octet, 1, nullptr), -1);
	EXPECT_EQ(errno, ENOBUFS);
}

// DGM-35: a Write-Record raises no event where only solicited ones are wanted
TEST(Endpoint, DGM_18_23_35_OnlySolicitedSendsRaiseEvents)
{
	const auto chosen = options(DGM_SOLICITED_ONLY);
	const Endpoint a, b(&chosen);
	const auto to_b = b.address();
	Zone zone(b, 100);
	char memory[2];
	const auto readable = [&](int timeout) {
		const int epoll = ::epoll_create1(0);
		epoll_event event{.events = EPOLLIN, .data = {}};
		::epoll_ctl(epoll, EPOLL_CTL_ADD, dgm_fd(b), &event);
		const int ready = ::epoll_wait(epoll, &event, 1, timeout);
		::close(epoll);
		return ready == 1;
	};
	for (char &octet : memory)
		ASSERT_EQ(dgm_recv(b, &octet, 1, nullptr), 0);
	ASSERT_EQ(write(a, b, zone, 0, random_bytes(10)), 0);
	ASSERT_EQ(dgm_send(a, any(to_b), sizeof(to_b), dgm_qkey(b), "x", 1, 0), 0);
	ASSERT_TRUE(b.wait_counter("sends_received", 1));
	EXPECT_FALSE(readable(50));
	ASSERT_EQ(dgm_send(a, any(to_b), sizeof(to_b), dgm_qkey(b), "y", 1, DGM_SOLICITED), 0);
	EXPECT_TRUE(readable(patience));
	const auto events = b.events(3);
	ASSERT_EQ(events.size(), 3u);
	EXPECT_EQ(events[2].flags, static_cast<uint32_t>(DGM_SOLICITED));
	EXPECT_FALSE(readable(0));
}

TEST_F(Threaded, WriteOfASourceThatIsNotAllowedIsDroppedAndCounted)
{
	Zone zone(b, 100, 0, false);
	ASSERT_EQ(write(a, b, zone, 0, random_bytes(10)), 0);
	EXPECT_TRUE(b.wait_counter("bad_source", 1));
	EXPECT_TRUE(zone.is_blank());
}

struct Naming {
	const char *name;
	const char *address;
	bool port, other_port;
	unsigned prefix;
	bool allowed;
};

class Names : public testing::TestWithParam<Naming> {};

INSTANTIATE_TEST_SUITE_P(Sources, Names,
			 testing::Values(Naming{"AllowedAddress", "127.0.0.1", false, false, 32, true},
					 Naming{"AllowedAddressAndPort", "127.0.0.1", true, false, 32, true},
					 Naming{"DifferentPortIsNotAllowed", "127.0.0.1", true, true, 32, false},
					 Naming{"DifferentAddressIsNotAllowed", "127.0.0.2", false, false, 32, false},
					 Naming{"AllowedNetworkOf24Bits", "127.0.0.254", false, false, 24, true},
					 Naming{"DifferentNetworkOf31BitsIsNotAllowed", "127.0.0.2", false, false, 31, false},
					 Naming{"DifferentNetworkOf24BitsIsNotAllowed", "127.0.1.1", false, false, 24, false},
					 Naming{"AllowedFirstBit", "1.2.3.4", false, false, 1, true},
					 Naming{"DifferentFirstBitIsNotAllowed", "129.2.3.4", false, false, 1, false}),
			 [](const auto &p) { return p.param.name; });

TEST_P(Names, OnlyWritesOfAllowedSourcesArePlaced)
{
	const Naming &n = GetParam();
	const Endpoint a, b;
	Zone zone(b, 100, 0, false);
	auto source = loopback(n.port ? static_cast<uint16_t>(ntohs(a.address().sin_port) ^ (n.other_port ? 1 : 0)) : 0);
	ASSERT_EQ(inet_pton(AF_INET, n.address, &source.sin_addr), 1);
	ASSERT_EQ(dgm_allow(zone, any(source), sizeof(source), n.prefix), 0);
	ASSERT_EQ(write(a, b, zone, 0, random_bytes(10)), 0);
	EXPECT_TRUE(b.wait_counter(n.allowed ? "segments_placed" : "bad_source", 1));
	EXPECT_EQ(zone.is_blank(), !n.allowed);
}

class Ip6 : public testing::Test {
protected:
	void SetUp() override
	{
		const auto address = loopback6();
		dgm_endpoint *const endpoint = dgm_open(&address.any, sizeof(address), nullptr);
		if (endpoint == nullptr && (errno == EADDRNOTAVAIL || errno == EAFNOSUPPORT))
			GTEST_SKIP() << "this host has no ::1";
		dgm_close(endpoint);
	}
};

TEST_F(Ip6, WritesAndSendsArriveUnchangedOverIpv6)
{
	auto chosen = patient();
	chosen.segment = 1418;
	const Endpoint a(loopback6(), &chosen), b(loopback6(), &chosen);
	const auto from = a.local(), to = b.local();
	Zone zone(b, 1 << 20);
	const Bytes data = random_bytes(200000);
	char octet = 0;
	ASSERT_EQ(dgm_recv(b, &octet, 1, nullptr), 0);
	ASSERT_EQ(write(a, b, zone, 77, data), 0);
	ASSERT_EQ(dgm_send(a, &to.any, sizeof(to), dgm_qkey(b), "x", 1, 0), 0);
	const auto events = b.events(2);
	ASSERT_EQ(events.size(), 2u);
	for (const dgm_event &event : events)
		EXPECT_EQ(std::memcmp(&event.peer, &from, sizeof(from)), 0);
	EXPECT_EQ(events[0].bytes, data.size());
	EXPECT_TRUE(zone.holds(77, data));
	EXPECT_EQ(b.counter("segments_placed"), 142u); // 200000 / 1418, rounded up
	EXPECT_EQ(octet, 'x');
}

TEST_F(Ip6, OnlyWritesOfAllowedSourcesArePlaced)
{
	for (const auto &[source, prefix, allowed] : {std::tuple{"::1", 128, true}, {"::2", 128, false}, {"::2", 127, false},
						      {"::2", 126, true}, {"fd77::1", 64, false}, {"127.0.0.1", 32, false}}) {
		const Endpoint a(loopback6()), b(loopback6());
		Zone zone(b, 100, 0, false);
		dgm_address named{};
		const bool v4 = inet_pton(AF_INET, source, &named.v4.sin_addr) == 1;
		named.any.sa_family = v4 ? AF_INET : AF_INET6;
		ASSERT_TRUE(v4 || inet_pton(AF_INET6, source, &named.v6.sin6_addr) == 1);
		ASSERT_EQ(dgm_allow(zone, &named.any, sizeof(named), static_cast<unsigned>(prefix)), 0);
		ASSERT_EQ(write(a, b, zone, 0, random_bytes(10)), 0);
		EXPECT_TRUE(b.wait_counter(allowed ? "segments_placed" : "bad_source", 1)) << source << '/' << prefix;
		EXPECT_EQ(zone.is_blank(), !allowed);
	}
}

TEST_F(Ip6, DualStackEndpointReportsIpv4SourceAddresses)
{
	dgm_address everywhere = loopback6();
	everywhere.v6.sin6_addr = in6addr_any;
	const Endpoint a, b(everywhere);
	Zone zone(b, 100, 0, false);
	const auto source = a.address(), to = loopback(ntohs(b.local().v6.sin6_port));
	ASSERT_EQ(dgm_allow(zone, any(source), sizeof(source), 32), 0);
	ASSERT_EQ(dgm_write(a, any(to), sizeof(to), zone.number, zone.qkey, 0, "x", 1, nullptr), 0);
	const auto events = b.events(1);
	ASSERT_EQ(events.size(), 1u);
	EXPECT_EQ(std::memcmp(&events[0].peer.v4, &source, sizeof(source)), 0);
}

TEST_F(Ip6, PrefixOfOneFamilyDoesNotAllowWritesOfTheOther)
{
	dgm_address everywhere = loopback6();
	everywhere.v6.sin6_addr = in6addr_any;
	const Endpoint a, a6(loopback6()), b(everywhere);
	Zone zone(b, 100, 0, false);
	dgm_address named{};
	// A mapped IPv4 address begins with 80 bits that are 0
	named.v6.sin6_family = AF_INET6;
	ASSERT_EQ(dgm_allow(zone, &named.any, sizeof(named.v6), 1), 0);
	const auto to = loopback(ntohs(b.local().v6.sin6_port));
	ASSERT_EQ(dgm_write(a, any(to), sizeof(to), zone.number, zone.qkey, 0, "x", 1, nullptr), 0);
	EXPECT_TRUE(b.wait_counter("bad_source", 1));
	EXPECT_TRUE(zone.is_blank());
	dgm_address to6 = loopback6();
	to6.v6.sin6_port = b.local().v6.sin6_port;
	ASSERT_EQ(dgm_write(a6, &to6.any, sizeof(to6.v6), zone.number, zone.qkey, 0, "x", 1, nullptr), 0);
	EXPECT_TRUE(b.wait_counter("segments_placed", 1));
}

TEST_F(Ip6, AllowFailsWithEinvalForAMappedPrefixOfAllIpv4Addresses)
{
	const Endpoint b(loopback6());
	Zone zone(b, 100, 0, false);
	dgm_address named{};
	ASSERT_EQ(inet_pton(AF_INET6, "::ffff:10.1.2.3", &named.v6.sin6_addr), 1);
	named.v6.sin6_family = AF_INET6;
	for (const unsigned prefix : {64U, 96U}) {
		errno = 0;
		EXPECT_EQ(dgm_allow(zone, &named.any, sizeof(named.v6), prefix), -1) << prefix;
		EXPECT_EQ(errno, EINVAL);
	}
	EXPECT_EQ(dgm_allow(zone, &named.any, sizeof(named.v6), 97), 0);
}

TEST_F(Threaded, AllowFailsWithEinvalForAnInvalidPrefixLength)
{
	Zone zone(b, 100, 0, false);
	const auto source = loopback();
	for (const unsigned prefix : {0u, 33u, 1000u}) {
		EXPECT_EQ(dgm_allow(zone, any(source), sizeof(source), prefix), -1) << prefix;
		EXPECT_EQ(errno, EINVAL);
	}
}

TEST_F(Threaded, WriteToAClosedZoneIsDroppedAndCounted)
{
	Zone zone(b, 100);
	ASSERT_EQ(write(a, b, zone, 0, random_bytes(10)), 0);
	ASSERT_EQ(b.events(1).size(), 1u);
	zone.close();
	std::fill_n(zone.data(), 100, uint8_t{0});
	ASSERT_EQ(write(a, b, zone, 0, random_bytes(10)), 0);
	EXPECT_TRUE(b.wait_counter("no_zone", 1));
	EXPECT_TRUE(zone.is_blank());
}

TEST_F(Threaded, DGM_17_ZoneNumbersAreChosenByTheProgramOrRandom)
{
	uint8_t memory[10];
	const dgm_zone_options chosen{.number = 77, .qkey = 88, .flags = 0, .block = 0};
	dgm_zone *const zone = dgm_zone_open(b, memory, sizeof(memory), &chosen);
	ASSERT_NE(zone, nullptr);
	EXPECT_EQ(dgm_zone_number(zone), 77u);
	EXPECT_EQ(dgm_zone_qkey(zone), 88u);
	EXPECT_EQ(dgm_zone_open(b, memory, sizeof(memory), &chosen), nullptr);
	EXPECT_EQ(errno, EEXIST);
	dgm_zone *const random = dgm_zone_open(b, memory, sizeof(memory), nullptr);
	ASSERT_NE(random, nullptr);
	EXPECT_NE(dgm_zone_number(random), 0u);
	EXPECT_NE(dgm_zone_qkey(random), 0u);
}

TEST_F(Threaded, DGM_12_31_ValidBlocksOfAZoneAreReadWithoutEvents)
{
	Zone zone(b, 1050, DGM_NO_RECORD, true, 100);
	ASSERT_EQ(write(a, b, zone, 100, random_bytes(250)), 0); // blocks 1 and 2, and half of 3
	EXPECT_TRUE(b.wait([&] { return dgm_zone_valid(zone, 2) != 0; }));
	EXPECT_TRUE(dgm_zone_valid(zone, 1));
	EXPECT_FALSE(dgm_zone_valid(zone, 0));
	EXPECT_FALSE(dgm_zone_valid(zone, 3));
	ASSERT_EQ(write(a, b, zone, 999, random_bytes(51)), 0); // the last one is short
	EXPECT_TRUE(b.wait([&] { return dgm_zone_valid(zone, 10) != 0; }));
	EXPECT_FALSE(dgm_zone_valid(zone, 9));
	EXPECT_FALSE(dgm_zone_valid(zone, 11));
	dgm_zone_clear(zone, 2, SIZE_MAX);
	EXPECT_TRUE(dgm_zone_valid(zone, 1));
	EXPECT_FALSE(dgm_zone_valid(zone, 2));
	EXPECT_FALSE(dgm_zone_valid(zone, 10));
	EXPECT_EQ(b.events(1, 20).size(), 0u) << "no records";
}

TEST_F(Threaded, DGM_19_AMulticastWriteIsPlacedByThreeReaders)
{
	auto group = loopback(0, 0xefff4d01); // 239.255.77.1
	const dgm_zone_options chosen{.number = 5, .qkey = 6, .flags = 0, .block = 0};
	uint8_t memory[3][64] = {};
	dgm_endpoint *readers[3];
	const int port = 20000 + ::getpid() % 20000;
	for (int i = 0; i < 3; i++) {
		const int fd = ::socket(AF_INET, SOCK_DGRAM, 0), on = 1;
		auto address = loopback(static_cast<uint16_t>(port), INADDR_ANY);
		::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
		ASSERT_EQ(::bind(fd, any(address), sizeof(address)), 0);
		auto handed_over = options();
		handed_over.socket = fd;
		readers[i] = dgm_open(nullptr, 0, &handed_over);
		ASSERT_NE(readers[i], nullptr);
		ASSERT_EQ(dgm_join(readers[i], any(group), sizeof(group), 1), 0) << std::strerror(errno);
		dgm_allow_any(dgm_zone_open(readers[i], memory[i], sizeof(memory[i]), &chosen));
	}
	const in_addr lo{.s_addr = htonl(INADDR_LOOPBACK)};
	ASSERT_EQ(::setsockopt(dgm_socket(a), IPPROTO_IP, IP_MULTICAST_IF, &lo, sizeof(lo)), 0);
	group.sin_port = htons(static_cast<uint16_t>(port));
	ASSERT_EQ(dgm_write(a, any(group), sizeof(group), 5, 6, 8, "value", 5, nullptr), 0) << std::strerror(errno);
	for (int i = 0; i < 3; i++) {
		dgm_event event;
		EXPECT_EQ(dgm_poll(readers[i], &event, 1, patience), 1);
		EXPECT_EQ(std::memcmp(memory[i] + 8, "value", 5), 0);
		EXPECT_EQ(dgm_leave(readers[i], any(group), sizeof(group), 1), 0);
		dgm_close(readers[i]);
	}
}

TEST_F(Threaded, JoiningAUnicastAddressFailsWithEinval)
{
	const auto address = loopback();
	EXPECT_EQ(dgm_join(b, any(address), sizeof(address), 0), -1);
	EXPECT_EQ(errno, EINVAL);
}

TEST(Endpoint, WriteIsDroppedUnplacedIfTheEventQueueIsFull)
{
	auto chosen = options();
	chosen.records = 4;
	const Endpoint a, b(&chosen);
	Zone zone(b, 1000);
	for (uint64_t i = 0; i < 10; i++)
		ASSERT_EQ(write(a, b, zone, 100 * i, random_bytes(100)), 0);
	EXPECT_TRUE(b.wait_counter("queue_full", 6));
	EXPECT_TRUE(zone.holds(0, random_bytes(100)));
	EXPECT_TRUE(zone.holds(400, Bytes(600)));
	EXPECT_EQ(b.events(5, 50).size(), 4u);
	ASSERT_EQ(write(a, b, zone, 900, random_bytes(100)), 0);
	EXPECT_EQ(b.events(1).size(), 1u);
}

TEST(Endpoint, DGM_01_OpenAcceptsOnlyABoundUdpSocket)
{
	auto chosen = options();
	const auto address = loopback();
	const int tcp = ::socket(AF_INET, SOCK_STREAM, 0), udp = ::socket(AF_INET, SOCK_DGRAM, 0);
	for (const int fd : {tcp, udp, 9999}) {
		chosen.socket = fd;
		EXPECT_EQ(dgm_open(nullptr, 0, &chosen), nullptr);
		EXPECT_EQ(errno, EINVAL);
	}
	// They are still the program's
	EXPECT_EQ(::close(tcp), 0);
	ASSERT_EQ(::bind(udp, any(address), sizeof(address)), 0);
	chosen.socket = udp;
	dgm_endpoint *const endpoint = dgm_open(nullptr, 0, &chosen);
	ASSERT_NE(endpoint, nullptr);
	dgm_close(endpoint);
	EXPECT_EQ(::close(udp), -1);
	EXPECT_EQ(errno, EBADF);
}

TEST(Endpoint, OpenFailsWithInvalidOptions)
{
	const auto address = loopback();
	const auto refused = [&](auto change) {
		auto chosen = options();
		change(chosen);
		EXPECT_EQ(dgm_open(any(address), sizeof(address), &chosen), nullptr);
		EXPECT_EQ(errno, EINVAL);
	};
	refused([](auto &o) { o.flags = 128; });
	refused([](auto &o) { o.flags = DGM_NO_THREAD | DGM_SOLICITED_ONLY; });
	refused([](auto &o) { o.records = 0; });
	refused([](auto &o) { o.receives = 0; });
	refused([](auto &o) { o.slots = 0; });
	refused([](auto &o) { o.slots = 4097; });
	refused([](auto &o) { o.deadline_ms = 0; });
	refused([](auto &o) { o.segment = 65474; });
	EXPECT_EQ(dgm_open(any(address), 1, nullptr), nullptr);
	EXPECT_EQ(dgm_open(nullptr, 0, nullptr), nullptr);
}

TEST_F(Threaded, CallsWithInvalidArgumentsFailWithAnErrno)
{
	Zone zone(b, 100);
	dgm_event event;
	const auto refused = [](int result, int error) { return result == -1 && errno == error; };
	EXPECT_TRUE(refused(dgm_send(a, nullptr, 0, 1, "x", 1, 0), EINVAL));
	EXPECT_TRUE(refused(dgm_send(a, any(to_b), sizeof(to_b), 1, nullptr, 1, 0), EINVAL));
	EXPECT_TRUE(refused(dgm_send(a, any(to_b), sizeof(to_b), 1, "x", 1, 1), EINVAL));
	EXPECT_TRUE(refused(dgm_poll(b, &event, 0, 0), EINVAL));
	EXPECT_TRUE(refused(dgm_recv(b, nullptr, 1, nullptr), EINVAL));
	EXPECT_EQ(dgm_zone_open(b, nullptr, 1, nullptr), nullptr);
	EXPECT_EQ(dgm_zone_open(b, &event, 0, nullptr), nullptr);
	const Bytes huge(100000);
	EXPECT_TRUE(refused(dgm_send(a, any(to_b), sizeof(to_b), 1, huge.data(), huge.size(), 0), EMSGSIZE));
	EXPECT_TRUE(refused(dgm_write(a, any(to_b), sizeof(to_b), 1, 1, UINT64_MAX, "xy", 2, nullptr), EMSGSIZE));
}

TEST(Endpoint, WriteOfMoreThan1024DatagramsFailsWithEmsgsize)
{
	auto chosen = patient();
	chosen.segment = 10;
	const Endpoint a(&chosen), b(&chosen);
	Zone zone(b, 20000);
	EXPECT_EQ(write(a, b, zone, 0, Bytes(10241)), -1);
	EXPECT_EQ(errno, EMSGSIZE);
	ASSERT_EQ(write(a, b, zone, 0, random_bytes(10240)), 0);
	EXPECT_EQ(b.events(1).size(), 1u);
	EXPECT_TRUE(zone.holds(0, random_bytes(10240)));
}

TEST_F(Threaded, PollWithoutEventsReturnsAtItsTimeout)
{
	dgm_event event;
	const auto begin = std::chrono::steady_clock::now();
	EXPECT_EQ(dgm_poll(b, &event, 1, 50), 0);
	EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(50));
}

} // namespace
