// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
// Datagrams of peers that are broken, hostile, or behind a bad network: counted by reason, nothing is placed or recorded
// that must not be, memory stays bounded, and nothing is answered
#include "world.h"

#include <malloc.h>

using namespace world;

namespace {

class Hostile : public testing::Test {
protected:
	dgm_options settings = patient();
	Endpoint b{&settings};
	sockaddr_in to_b = b.address();
	Raw raw;
};

TEST_F(Hostile, DGM_03_24_EachInvalidDatagramIsDroppedAndRaisesOnlyTheCounterOfItsFault)
{
	Zone zone(b, 65536);
	Bytes memory(100);
	ASSERT_EQ(dgm_recv(b, memory.data(), memory.size(), nullptr), 0);
	for (const auto &bad : dgmpeer::hostile_datagrams({dgm_qkey(b), zone.number, zone.qkey, zone.size()})) {
		auto want = b.counters();
		want[bad.counter]++;
		raw.send(to_b, bad.datagram);
		ASSERT_TRUE(b.wait([&] { return b.counters() == want; })) << bad.name << ": not " << bad.counter;
	}
	EXPECT_TRUE(zone.is_blank());
	EXPECT_EQ(memory, Bytes(100));
	EXPECT_EQ(b.events(1, 50).size(), 0u);
	EXPECT_EQ(raw.receive(50), Bytes()) << "nothing is sent in answer";
}

// The first datagrams of a peer: nothing was exchanged before
TEST_F(Hostile, DGM_04_18_27_ValidDatagramsAreAcceptedWithoutConnectionSetup)
{
	Zone zone(b, 65536);
	Bytes memory(100);
	ASSERT_EQ(dgm_recv(b, memory.data(), memory.size(), nullptr), 0);
	const Bytes data = random_bytes(20);
	raw.send(to_b, Datagram::send(dgm_qkey(b), 1, data).sealed());
	raw.send(to_b, Datagram::write(zone.number, zone.qkey, 5, 1, 0, 20, data).sealed());
	raw.send(to_b, Datagram::error(1, 1, 1, 0, Datagram::send(1, 1, data)).sealed());
	EXPECT_EQ(b.events(2).size(), 2u);
	EXPECT_TRUE(zone.holds(5, data));
	EXPECT_TRUE(b.wait_counter("error_messages", 1));
	EXPECT_EQ(raw.receive(50), Bytes()) << "nothing is sent in answer";
}

// A segment is a datagram: no marker, no length, no pad, and the socket has it when dgm_send() returns
TEST_F(Hostile, DGM_05_08_39_SentDatagramsHaveTheSpecifiedFormat)
{
	auto chosen = options();
	chosen.segment = 8;
	const Endpoint a(&chosen);
	const auto to = raw.address();
	const Bytes data = random_bytes(11);
	ASSERT_EQ(dgm_send(a, any(to), sizeof(to), 7, data.data(), data.size(), 0), 0);
	ASSERT_EQ(dgm_write(a, any(to), sizeof(to), 8, 9, 1000, data.data(), data.size(), nullptr), 0);
	EXPECT_EQ(raw.receive(), Datagram::send(7, 1, data).sealed());
	for (const uint32_t mo : {0, 8}) {
		const auto piece = std::span(data).subspan(mo, std::min<size_t>(8, data.size() - mo));
		EXPECT_EQ(raw.receive(), Datagram::write(8, 9, 1000, 1, mo, 11, piece).sealed());
	}
}

// The message of 10 segments of 100 octets at 50
constexpr uint32_t S = 100, ML = 950;
constexpr uint64_t base = 50;

class Pieces : public Hostile {
protected:
	void piece(const Zone &zone, uint32_t msn, uint32_t index)
	{
		const uint32_t mo = index * S;
		const auto data = std::span(message).subspan(mo, std::min(S, ML - mo));
		raw.send(to_b, Datagram::write(zone.number, zone.qkey, base, msn, mo, ML, data).sealed());
	}
	Bytes message = random_bytes(ML);
};

TEST_F(Pieces, DGM_14_29_PartialMessageRaisesARecordForEachReceivedRange)
{
	Zone zone(b, 2000, DGM_PARTIAL);
	for (const uint32_t index : {0, 1, 4, 5, 9, 7})
		piece(zone, 1, index);
	const auto events = b.events(4);
	const std::pair<uint64_t, uint64_t> want[] = {{0, 200}, {400, 200}, {700, 100}, {900, 50}};
	ASSERT_EQ(events.size(), 4u);
	for (size_t i = 0; i < 4; i++) {
		EXPECT_EQ(events[i].offset, base + want[i].first);
		EXPECT_EQ(events[i].length, want[i].second);
		EXPECT_EQ(events[i].flags, DGM_HOLES | (i == 3 ? DGM_END : 0u));
		EXPECT_TRUE(zone.holds(events[i].offset, std::span(message).subspan(want[i].first, want[i].second)));
	}
	EXPECT_EQ(events[3].bytes, 550u);
	piece(zone, 1, 2);
	EXPECT_TRUE(b.wait_counter("late", 1)) << "after its end a message is not placed";
	EXPECT_TRUE(zone.holds(base + 200, Bytes(100)));
}

TEST(Timers, DGM_14_IncompleteMessageIsDiscardedAtItsDeadline)
{
	auto chosen = options();
	chosen.deadline_ms = 100;
	const Endpoint b(&chosen);
	const Raw raw;
	Zone zone(b, 2000);
	raw.send(b.address(), Datagram::write(zone.number, zone.qkey, 0, 1, 8, 16, random_bytes(8)).sealed());
	EXPECT_TRUE(b.wait_counter("messages_expired", 1));
	EXPECT_EQ(b.events(1, 20).size(), 0u);
}

TEST(Timers, DGM_14_PartialMessageWithoutItsLastSegmentEndsAtItsDeadline)
{
	for (const uint32_t flags : {0, DGM_NO_THREAD}) {
		auto chosen = options(flags);
		chosen.deadline_ms = 100;
		const Endpoint b(&chosen);
		const Raw raw;
		Zone zone(b, 2000, DGM_PARTIAL);
		raw.send(b.address(), Datagram::write(zone.number, zone.qkey, 0, 1, 0, 16, random_bytes(8)).sealed());
		EXPECT_EQ(b.events(1, 20).size(), 0u);
		const auto events = b.events(1);
		ASSERT_EQ(events.size(), 1u);
		EXPECT_EQ(events[0].length, 8u);
		EXPECT_EQ(events[0].flags, static_cast<uint32_t>(DGM_END | DGM_HOLES));
	}
}

// The hole comes at once behind it, and is late
TEST(Timers, LastSegmentEndsAPartialMessageIfTheGapTimeIsZero)
{
	auto chosen = options(DGM_NO_THREAD);
	chosen.gap_ms = 0;
	const Endpoint b(&chosen);
	const Raw raw;
	Zone zone(b, 2000, DGM_PARTIAL);
	for (const uint32_t mo : {8, 0})
		raw.send(b.address(), Datagram::write(zone.number, zone.qkey, 0, 1, mo, 16, random_bytes(8)).sealed());
	const auto events = b.events(1);
	ASSERT_EQ(events.size(), 1u);
	EXPECT_EQ(events[0].offset, 8u);
	EXPECT_EQ(events[0].length, 8u);
	EXPECT_EQ(b.counter("late"), 1u);
}

TEST_F(Pieces, DGM_15_NewerMessageDiscardsAnOlderIncompleteMessage)
{
	Zone zone(b, 2000);
	piece(zone, 0xffffffff, 0);
	for (uint32_t index = 0; index < 10; index++)
		piece(zone, 0, index);
	piece(zone, 0xffffffff, 1);
	const auto events = b.events(1);
	ASSERT_EQ(events.size(), 1u);
	EXPECT_EQ(events[0].msn, 0u);
	EXPECT_TRUE(b.wait_counter("late", 1));
	EXPECT_EQ(b.counter("messages_superseded"), 1u);
}

TEST_F(Pieces, SegmentsThatContradictTheFirstSegmentOfTheirMessageAreDroppedAndCounted)
{
	Zone zone(b, 2000);
	piece(zone, 1, 0);
	const Bytes data = random_bytes(S, 9);
	raw.send(to_b, Datagram::write(zone.number, zone.qkey, base, 1, S, ML + S, data).sealed());
	raw.send(to_b, Datagram::write(zone.number, zone.qkey, base + 1, 1, S, ML, data).sealed());
	raw.send(to_b, Datagram::write(zone.number, zone.qkey, base, 1, S / 2, ML, std::span(data).first(S / 2)).sealed());
	EXPECT_TRUE(b.wait_counter("mismatch", 3));
	EXPECT_TRUE(zone.holds(base + S, Bytes(ML - S)));
}

TEST_F(Pieces, DGM_34_RepeatedSegmentIsCountedAndNotWritten)
{
	Zone zone(b, 2000);
	piece(zone, 1, 0);
	raw.send(to_b, Datagram::write(zone.number, zone.qkey, base, 1, 0, ML, random_bytes(S, 9)).sealed());
	EXPECT_TRUE(b.wait_counter("duplicate", 1));
	EXPECT_EQ(b.counter("segments_placed"), 1u);
	EXPECT_TRUE(zone.holds(base, std::span(message).first(S)));
}

// Octets of this process on the heap, of all threads
size_t heap()
{
	const auto info = ::mallinfo2();
	return info.uordblks + info.hblkhd;
}

// Sanitizers have a heap of their own
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool has_heap = false;
#else
constexpr bool has_heap = true;
#endif

// The limits of dgm.h and dgm(7): 1 MiB for datagrams that arrive, 64 messages in progress, and the events that wait
constexpr size_t events_max(size_t events)
{
	return 2 * events * sizeof(dgm_event);
}

TEST(Memory, DGM_36_EndpointUsesNoMoreMemoryThanDocumented)
{
	const size_t before = heap();
	const Endpoint endpoint;
	EXPECT_LE(heap(), before + (1 << 20) + 64 * 512 + 65536);
	EXPECT_TRUE(!has_heap || heap() >= before + (1 << 20));
}

// 1,024 sources with a message in progress, and a record of each, 64 slots: an honest message still comes through
TEST_F(Hostile, DGM_33_36_ThousandsOfSourcesUseNoMemoryBeyondTheSlots)
{
	constexpr uint32_t sources = 1024, at_once = 64; // no faster than the socket takes them
	Zone zone(b, 65536);
	const size_t before = heap();
	for (uint32_t i = 0; i < sources; i++) {
		const Raw source(0x7f010000 + i);
		source.send(to_b, Datagram::write(zone.number, zone.qkey, 1000, 1, 0, 16, random_bytes(8)).sealed());
		source.send(to_b, Datagram::write(zone.number, zone.qkey, 0, 2, 0, 8, random_bytes(8)).sealed());
		if (i % at_once == at_once - 1) {
			ASSERT_EQ(b.events(at_once).size(), at_once);
		}
	}
	EXPECT_EQ(b.counter("segments_placed"), 2 * sources);
	EXPECT_LE(heap(), before + events_max(at_once)) << "of " << sources << " sources";
	EXPECT_EQ(b.counter("messages_evicted"), 1024u - 64);
	const Endpoint honest;
	const Bytes data = random_bytes(100000);
	Zone big(b, 100000);
	ASSERT_EQ(write(honest, b, big, 0, data), 0);
	const auto events = b.events(1);
	ASSERT_EQ(events.size(), 1u);
	EXPECT_TRUE(big.holds(0, data));
}

// A host on the path has recorded datagrams, and sends them again. A message is remembered for 200 ms: a host that
// stalls for longer shows nothing, so once more
TEST_F(Hostile, ReplayedMessageIsCountedAndNotWritten)
{
	auto chosen = options();
	chosen.segment = S;
	const Endpoint honest(&chosen);
	const Raw path;
	const auto to = path.address();
	Zone zone(b, 2000);
	const Bytes data = random_bytes(ML);
	ASSERT_EQ(dgm_write(honest, any(to), sizeof(to), zone.number, zone.qkey, base, data.data(), data.size(), nullptr), 0);
	std::vector<Bytes> recorded(10);
	std::ranges::generate(recorded, [&] { return path.receive(); });
	const auto replay = [&] {
		for (const Bytes &datagram : recorded)
			path.send(to_b, datagram);
	};
	for (int attempt = 0; attempt < 20; attempt++) {
		const auto begin = std::chrono::steady_clock::now();
		const uint64_t late = b.counter("late"), placed = b.counter("segments_placed");
		replay();
		ASSERT_EQ(b.events(1).size(), 1u);
		ASSERT_TRUE(zone.holds(base, data));
		std::fill_n(zone.data(), zone.size(), uint8_t{0});
		replay();
		ASSERT_TRUE(b.wait([&] { return b.counter("late") + b.counter("segments_placed") == late + placed + 20; }));
		const bool in_time = std::chrono::steady_clock::now() - begin < std::chrono::milliseconds(150);
		const auto records = b.events(1, 20);
		if (in_time) {
			EXPECT_EQ(b.counter("late"), late + 10);
			EXPECT_TRUE(zone.is_blank());
			EXPECT_EQ(records.size(), 0u);
			return;
		}
		::usleep(250000);
	}
	FAIL() << "this host stalls";
}

// dgm(7): it keeps no state
TEST_F(Hostile, DGM_16_LateOrReplayedMessageOfOneDatagramIsPlaced)
{
	Zone zone(b, 100);
	for (const uint32_t msn : {2, 1, 1})
		raw.send(to_b, Datagram::write(zone.number, zone.qkey, 0, msn, 0, 8, random_bytes(8, msn)).sealed());
	EXPECT_EQ(b.events(3).size(), 3u);
	EXPECT_TRUE(zone.holds(0, random_bytes(8, 1)));
}

// Loss, duplicates, reordering and replays, several messages at once: exactly what came whole is recorded, and the
// octets of each record are those that were sent
TEST(Timers, RecordsMatchTheReceivedSegments)
{
	// Last may come one datagram too early, and a slow host needs more than the default of 2 ms for the next one
	auto chosen = options();
	chosen.gap_ms = 100;
	const Endpoint b(&chosen);
	const Raw raw;
	const sockaddr_in to_b = b.address();
	std::mt19937 random(42);
	constexpr uint32_t segment = 64;
	int stalls = 0;
	for (int round = 0; round < 60; round++) {
		Zone zone(b, 40000, DGM_PARTIAL);
		const uint32_t ml = 65 + static_cast<uint32_t>(random() % 20000), number = (ml - 1) / segment + 1;
		const Bytes data = random_bytes(ml, static_cast<unsigned>(round));
		const uint64_t begin = random() % 20000;
		std::vector<uint32_t> order;
		std::vector<bool> sent(number);
		for (uint32_t i = 0; i < number; i++) {
			if (random() % 10 == 0)
				continue; // lost
			order.push_back(i);
			sent[i] = true;
			if (random() % 20 == 0)
				order.push_back(i); // duplicated
		}
		for (size_t i = 0; i + 1 < order.size(); i++) // reordered, but Last stays within the gap
			if (random() % 4 == 0)
				std::swap(order[i], order[i + 1]);
		uint64_t handled = 0;
		const auto seen = [&] { return b.counter("segments_placed") + b.counter("duplicate") + b.counter("late"); };
		const uint64_t before = seen(), late = b.counter("late");
		for (const uint32_t i : order) {
			const auto piece = std::span(data).subspan(i * segment, std::min(segment, ml - i * segment));
			raw.send(to_b, Datagram::write(zone.number, zone.qkey, begin, 1, i * segment, ml, piece).sealed());
			if (++handled % 64 == 0) {
				ASSERT_TRUE(b.wait([&] { return seen() == before + handled; })) << "round " << round;
			}
		}
		std::vector<bool> recorded(number);
		while (true) {
			const auto events = b.events(1);
			ASSERT_EQ(events.size(), 1u) << "round " << round;
			const dgm_event &event = events[0];
			ASSERT_TRUE(zone.holds(event.offset, std::span(data).subspan(event.offset - begin, event.length)));
			for (uint64_t at = event.offset - begin; at < event.offset - begin + event.length; at += segment)
				recorded[at / segment] = true;
			if (event.flags & DGM_END)
				break;
		}
		// A host that stalls for the gap ends a message too early: the rest is late, and must not be recorded
		if (recorded != sent) {
			ASSERT_TRUE(std::ranges::equal(recorded, sent, std::less_equal<>())) << "round " << round;
			ASSERT_TRUE(b.wait([&] { return seen() == before + order.size(); })) << "round " << round;
			ASSERT_GT(b.counter("late"), late) << "round " << round;
			ASSERT_LT(++stalls, 10);
		}
		for (uint32_t i = 0; i < number; i++)
			ASSERT_TRUE(sent[i] || zone.holds(begin + i * segment, Bytes(std::min(segment, ml - i * segment))));
	}
}

// A flood keeps the program in dgm_poll() for one system call behind the deadline: 16 datagrams or bundles
TEST_F(Hostile, PollReturnsAtItsTimeoutWhileTheSocketIsFull)
{
	const auto chosen = options(DGM_NO_THREAD);
	const Endpoint polled(&chosen);
	constexpr uint64_t queued = 100, in_one_call = 16;
	for (uint64_t i = 0; i < queued; i++)
		raw.send(polled.address(), Datagram::send(dgm_qkey(polled) ^ 1, 1, {}).sealed());
	dgm_event event;
	uint64_t handled = 0;
	for (uint64_t before = 0; before < queued; before = handled) {
		ASSERT_EQ(dgm_poll(polled, &event, 1, 0), 0);
		handled = polled.counter("bad_qkey");
		ASSERT_GT(handled, before);
		ASSERT_LE(handled, before + in_one_call);
	}
}

// 10^5 bad datagrams between those of an honest sender, no faster than the socket takes them
TEST_F(Hostile, BadDatagramsDoNotCostTheHonestSenderDatagrams)
{
	Zone zone(b, 65536, DGM_NO_RECORD);
	const auto bad = dgmpeer::hostile_datagrams({dgm_qkey(b), zone.number, zone.qkey, zone.size()});
	const Endpoint honest;
	uint64_t sent = 0;
	for (int i = 0; i < 100000; i++) {
		raw.send(to_b, bad[static_cast<size_t>(i) % bad.size()].datagram);
		if (i % 100 == 99) {
			ASSERT_EQ(write(honest, b, zone, 0, random_bytes(1000)), 0);
			sent++;
			ASSERT_TRUE(b.wait_counter("segments_placed", sent));
		}
	}
	EXPECT_EQ(b.counter("segments_placed"), 1000u);
	EXPECT_EQ(b.counter("socket_overflows"), 0u);
}

} // namespace
