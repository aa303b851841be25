// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//
// The connection machine, both ends in one process; the names carry the requirements. World checks with every step that
// no Read or Write meets memory whose operation is complete, that each message finds a buffer, and the depths of Reads.
#include "world.h"

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <new>

#include <gtest/gtest.h>

#ifndef LIBEXS_ADDRESS_SANITIZER // which has operators of its own
namespace {
std::atomic<uint64_t> allocations = 0;
}

void *operator new(size_t size)
{
	allocations++;
	if (void *const memory = std::malloc(size))
		return memory;
	throw std::bad_alloc();
}
void operator delete(void *memory) noexcept
{
	std::free(memory);
}
void operator delete(void *memory, size_t /*size*/) noexcept
{
	std::free(memory);
}
#endif

namespace {

using namespace libexs;
using namespace libexs::test;
using wire::Message;
using wire::Status;
using wire::Type;

struct Pair : World {
	explicit Pair(const Machine::Config &settings = config()) : World(settings, responder(settings)) { run(); }
	Pair(const Machine::Config &one, const Machine::Config &other) : World(one, other) { run(); }

	static Machine::Config responder(Machine::Config settings)
	{
		settings.initiator = false;
		return settings;
	}
};

void expect_done(Side &side, int64_t op, uint64_t length)
{
	ASSERT_GT(op, 0);
	ASSERT_TRUE(side.op(op).done) << "operation " << op;
	EXPECT_EQ(side.op(op).done->error, 0);
	EXPECT_EQ(side.op(op).done->length, length);
}

void expect_error(Side &side, int64_t op, int error)
{
	ASSERT_GT(op, 0);
	ASSERT_TRUE(side.op(op).done) << "operation " << op;
	EXPECT_EQ(side.op(op).done->error, error);
}

void expect_waits(Side &side, int64_t op)
{
	ASSERT_GT(op, 0);
	EXPECT_FALSE(side.op(op).done);
}

void end(World &world)
{
	world.a->close();
	world.run();
	world.check(false);
	EXPECT_EQ(world.a->machine.error(), 0);
	EXPECT_EQ(world.b->machine.error(), 0);
}

// ---- who speaks first

TEST(Machine, ResponderSendsNothingBeforeTheReadyMessageOfTheInitiator)
{
	World world(World::config(), Pair::responder(World::config()));
	EXPECT_FALSE(world.b->opened);
	EXPECT_EQ(world.b->send(100), -ENOTCONN);
	EXPECT_TRUE(world.a->opened);
	world.run();
	EXPECT_TRUE(world.b->opened);
	const auto op = world.b->send(100);
	world.a->recv(100);
	world.run();
	expect_done(*world.b, op, 100);
	EXPECT_EQ(world.a->sent.messages, 2U); // READY, ACK
	end(world);
}

// ---- EXS-4, EXS-5

TEST(Machine, EXS4_ReceiverReadsTheDataWhenTheSendIsPostedFirst)
{
	Pair pair;
	const auto send = pair.a->send(1000);
	pair.run();
	expect_waits(*pair.a, send);
	EXPECT_TRUE(pair.b->machine.readable());
	EXPECT_EQ(pair.b->sent.read_requests, 0U);
	const auto recv = pair.b->recv(1000);
	pair.run();
	expect_done(*pair.a, send, 1000);
	expect_done(*pair.b, recv, 1000);
	end(pair);
}

TEST(Machine, EXS4_ReceiverReadsTheDataWhenTheRecvIsPostedFirst)
{
	Pair pair;
	const auto recv = pair.b->recv(1000);
	pair.run();
	expect_waits(*pair.b, recv);
	EXPECT_FALSE(pair.b->machine.readable());
	const auto send = pair.a->send(1000);
	pair.run();
	expect_done(*pair.a, send, 1000);
	expect_done(*pair.b, recv, 1000);
	end(pair);
}

TEST(Machine, EXS4_NormalTransferTakesFourMessages)
{
	Pair pair;
	const Counters a = pair.a->sent, b = pair.b->sent;
	pair.b->recv(1000);
	pair.a->send(1000);
	pair.run();
	EXPECT_EQ(pair.a->sent.messages - a.messages, 1U);
	EXPECT_EQ(pair.b->sent.read_requests - b.read_requests, 1U);
	EXPECT_EQ(pair.a->sent.read_responses - a.read_responses, 1U);
	EXPECT_EQ(pair.b->sent.messages - b.messages, 1U);
	end(pair);
}

TEST(Machine, EXS4_ShortRecvTruncatesAMessage)
{
	Pair pair;
	const auto send = pair.a->send(1000), small = pair.a->send(50);
	const auto first = pair.b->recv(300), second = pair.b->recv(20);
	pair.run();
	expect_done(*pair.b, first, 300);
	EXPECT_TRUE(pair.b->op(first).done->truncated);
	expect_done(*pair.b, second, 20);
	EXPECT_TRUE(pair.b->op(second).done->truncated);
	expect_done(*pair.a, send, 300);
	expect_done(*pair.a, small, 20);
	end(pair);
}

TEST(Machine, EXS4_EmptyMessageIsTransferred)
{
	Pair pair;
	const auto send = pair.a->send(0);
	const auto recv = pair.b->recv(10);
	pair.run();
	expect_done(*pair.a, send, 0);
	expect_done(*pair.b, recv, 0);
	EXPECT_FALSE(pair.b->op(recv).done->eof);
	end(pair);
}

TEST(Machine, EXS5_AckCompletesTheSendAndReturnsItsCredit)
{
	auto settings = World::config();
	settings.send_credits = settings.recv_credits = 1;
	Pair pair(settings);
	const auto first = pair.a->send(500), second = pair.a->send(500);
	pair.run();
	expect_waits(*pair.a, first);
	EXPECT_EQ(pair.a->sent.messages, 2U); // READY, ADV
	pair.b->recv(500);
	pair.run();
	expect_done(*pair.a, first, 500);
	expect_waits(*pair.a, second);
	EXPECT_EQ(pair.a->sent.messages, 3U);
	pair.b->recv(500);
	pair.run();
	expect_done(*pair.a, second, 500);
	end(pair);
}

// ---- EXS-6

TEST(Machine, EXS6_SendsWithoutACreditAreAdvertisedOnlyWhenCreditsReturn)
{
	auto settings = World::config();
	settings.send_credits = settings.recv_credits = 3;
	Pair pair(settings);
	for (int i = 0; i < 10; i++)
		pair.a->send(i % 2 ? 1000 : 10);
	pair.run();
	EXPECT_EQ(pair.a->sent.messages, 1U + 3U);
	EXPECT_FALSE(pair.a->machine.writable());
	for (int i = 0; i < 10; i++)
		pair.b->recv(1000);
	pair.run();
	EXPECT_EQ(pair.a->sent.messages, 1U + 10U);
	EXPECT_TRUE(pair.a->machine.writable());
	end(pair);
}

TEST(Machine, EXS6_TransfersInBothDirectionsCompleteWithOneCreditEach)
{
	auto settings = World::config();
	settings.send_credits = settings.recv_credits = 1;
	Pair pair(settings);
	for (int i = 0; i < 20; i++) {
		for (Side *side : {pair.a.get(), pair.b.get()}) {
			side->send(i % 3 ? 700 : 7);
			side->recv(700);
		}
	}
	pair.run();
	EXPECT_EQ(pair.a->received.size(), 20U);
	EXPECT_EQ(pair.b->received.size(), 20U);
	end(pair);
}

// ---- EXS-7

TEST(Machine, EXS7_ImmediateTransferUpToTheLimitTakesTwoMessages)
{
	for (const uint64_t length : {1U, 63U, 64U, 65U}) {
		Pair pair; // the limit is 64
		const Counters a = pair.a->sent, b = pair.b->sent;
		const auto recv = pair.b->recv(100);
		const auto send = pair.a->send(length);
		pair.run();
		expect_done(*pair.a, send, length);
		expect_done(*pair.b, recv, length);
		EXPECT_EQ(pair.a->sent.messages - a.messages, 1U);
		EXPECT_EQ(pair.b->sent.messages - b.messages, 1U);
		EXPECT_EQ(pair.b->sent.read_requests - b.read_requests, length <= 64 ? 0U : 1U) << length;
		end(pair);
	}
}

// The buffer holds the data until somebody wants them
TEST(Machine, EXS7_ImmediateDataAreKeptUntilARecvIsPosted)
{
	Pair pair;
	pair.a->send(60);
	pair.a->send(10);
	pair.run();
	const auto first = pair.b->recv(60), second = pair.b->recv(60);
	pair.run();
	expect_done(*pair.b, first, 60);
	expect_done(*pair.b, second, 10);
	end(pair);
}

TEST(Machine, EXS7_ImmediateSendIsNotCompleteBeforeItsDataAreSent)
{
	Pair pair;
	const auto send = pair.a->send(10); // posted, not transmitted
	pair.b->close();
	while (pair.b->transmit())
		;
	while (pair.a->deliver() || pair.a->process())
		;
	expect_waits(*pair.a, send);
	pair.run();
	expect_error(*pair.a, send, EPIPE);
	end(pair);
}

// ---- EXS-8, EXS-9

TEST(Machine, EXS8_PersistentSendIsReadTenTimesWithoutMessages)
{
	Pair pair;
	const auto send = pair.a->send(800, true);
	pair.run();
	const Counters before = pair.a->sent;
	for (int i = 0; i < 10; i++) {
		const auto recv = pair.b->recv(800);
		pair.run();
		expect_done(*pair.b, recv, 800);
		EXPECT_EQ(pair.b->op(recv).bytes, pair.a->op(send).bytes);
	}
	EXPECT_EQ(pair.a->sent.messages, before.messages) << "the sender's program and library do nothing";
	EXPECT_EQ(pair.a->sent.read_responses, before.read_responses + 10);
	EXPECT_EQ(pair.b->sent.messages, 0U);
	expect_waits(*pair.a, send);
	EXPECT_EQ(pair.a->op(send).noted, 0U);
	end(pair);
}

TEST(Machine, EXS8_EachRecvReadsTheCurrentContentOfAPersistentSend)
{
	Pair pair;
	const auto send = pair.a->send(8, true);
	pair.a->op(send).bytes.assign(8, 0x11);
	const auto first = pair.b->recv(8);
	pair.run();
	pair.a->op(send).bytes.assign(8, 0x22);
	const auto second = pair.b->recv(8);
	pair.run();
	EXPECT_EQ(pair.b->op(first).bytes, std::vector<uint8_t>(8, 0x11));
	EXPECT_EQ(pair.b->op(second).bytes, std::vector<uint8_t>(8, 0x22));
}

TEST(Machine, EXS8_SendDuringAPersistentSendFailsWithEbusy)
{
	Pair pair;
	const auto send = pair.a->send(100, true);
	EXPECT_EQ(pair.a->send(100), -EBUSY);
	EXPECT_EQ(pair.a->cancel(static_cast<OpId>(send)), 0);
	pair.run();
	expect_error(*pair.a, send, ECANCELED);
	const auto next = pair.a->send(100), recv = pair.b->recv(100);
	pair.run();
	expect_done(*pair.a, next, 100);
	expect_done(*pair.b, recv, 100);
	end(pair);
}

TEST(Machine, EXS8_PersistentOrOffsetOperationsOnAStreamFailWithEopnotsupp)
{
	Pair pair(World::config(true));
	EXPECT_EQ(pair.a->send(100, true), -EOPNOTSUPP);
	EXPECT_EQ(pair.a->recv(100, true), -EOPNOTSUPP);
	EXPECT_EQ(pair.a->send(100, false, false, 5), -EOPNOTSUPP);
	EXPECT_EQ(pair.a->recv(100, false, false, 5), -EOPNOTSUPP);
}

TEST(Machine, EXS9_PersistentSendWithNotifyGetsOneEventForEachRead)
{
	Pair pair;
	const auto send = pair.a->send(800, true, true);
	for (uint32_t i = 1; i <= 5; i++) {
		pair.b->recv(800);
		pair.run();
		EXPECT_EQ(pair.a->op(send).noted, i);
	}
	for (int i = 0; i < 7; i++)
		pair.b->recv(2500); // of each three Reads
	pair.run();
	EXPECT_EQ(pair.a->op(send).noted, 12U);
	end(pair);
}

TEST(Machine, EXS9_NoReadEventIsLostWhenAPersistentSendIsCancelled)
{
	Pair pair;
	const auto send = pair.a->send(80, true, true);
	for (int i = 0; i < 3; i++)
		pair.b->recv(80);
	pair.a->cancel(static_cast<OpId>(send));
	pair.run();
	expect_error(*pair.a, send, ECANCELED);
	uint32_t read = 0;
	for (const auto &[number, op] : pair.b->ops())
		read += op.done && op.done->error == 0;
	EXPECT_EQ(pair.a->op(send).noted, read);
	EXPECT_EQ(pair.a->send(80, false, true), -EINVAL) << "notify is for persistent ones";
	end(pair);
}

// ---- EXS-10

TEST(Machine, EXS10_SendsToAPersistentRecvAreRdmaWritesWithoutMessages)
{
	Pair pair;
	const auto recv = pair.b->recv(800, true);
	pair.run();
	const Counters before = pair.b->sent;
	for (int i = 0; i < 5; i++) {
		const auto send = pair.a->send(800);
		pair.run();
		expect_done(*pair.a, send, 800);
		EXPECT_EQ(pair.b->op(recv).bytes, pair.a->op(send).bytes);
	}
	EXPECT_EQ(pair.b->sent.messages, before.messages);
	EXPECT_EQ(pair.a->sent.messages, 1U) << "READY";
	EXPECT_EQ(pair.a->sent.writes, 5U);
	expect_waits(*pair.b, recv);
	end(pair);
}

// The sends were advertised before the sender knew
TEST(Machine, EXS10_SendsPostedBeforeAPersistentRecvIsAnnouncedAreReadIntoItsBuffer)
{
	for (const uint64_t length : {20U, 800U}) {
		Pair pair;
		const auto recv = pair.b->recv(800, true);
		const auto first = pair.a->send(length), second = pair.a->send(length), long_one = pair.a->send(801);
		pair.run();
		expect_done(*pair.a, first, length);
		expect_done(*pair.a, second, length);
		expect_error(*pair.a, long_one, EMSGSIZE);
		const auto &bytes = pair.b->op(recv).bytes;
		EXPECT_TRUE(std::equal(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(length),
				       pair.a->op(second).bytes.begin()));
		const auto third = pair.a->send(length), too_long = pair.a->send(801);
		pair.run();
		expect_done(*pair.a, third, length);
		expect_error(*pair.a, too_long, EMSGSIZE);
		end(pair);
	}
}

TEST(Machine, EXS10_CancelledPersistentRecvIsNoLongerWritten)
{
	Pair pair;
	const auto recv = pair.b->recv(800, true);
	EXPECT_EQ(pair.b->recv(10), -EBUSY);
	pair.run();
	for (int i = 0; i < 20; i++)
		pair.a->send(800);
	for (int i = 0; i < 3; i++)
		pair.a->transmit();
	pair.b->cancel(static_cast<OpId>(recv));
	pair.b->transmit(); // REVOKE
	while (pair.a->deliver() || pair.a->process())
		;
	pair.run();
	expect_error(*pair.b, recv, ECANCELED);
	EXPECT_LT(pair.a->sent.writes, 10U);
	const auto next = pair.b->recv(800); // the rest comes as ever
	pair.run();
	expect_done(*pair.b, next, 800);
	pair.a->close();
	pair.run();
	pair.check(false);
}

TEST(Machine, EXS10_PersistentRecvCompletesAtEndOfFileAfterAllDataIsWritten)
{
	Pair pair;
	const auto recv = pair.b->recv(5000, true);
	pair.run();
	for (uint64_t i = 0; i < 5; i++)
		pair.a->send(1000, false, false, i * 1000);
	EXPECT_EQ(pair.a->shutdown(), 0);
	pair.run();
	expect_done(*pair.b, recv, 0);
	EXPECT_TRUE(pair.b->op(recv).done->eof);
	EXPECT_EQ(pair.b->op(recv).bytes[4999], pattern(pair.b->op(recv).op + 5, 999));
	const auto late = pair.b->recv(10, true);
	pair.run();
	expect_done(*pair.b, late, 0);
	EXPECT_TRUE(pair.b->op(late).done->eof);
	end(pair);
}

// ---- EXS-11

TEST(Machine, EXS11_SecondOfAPersistentSendAndAPersistentRecvFailsWithEinval)
{
	Pair pair;
	const auto send = pair.a->send(100, true);
	pair.run();
	EXPECT_EQ(pair.b->recv(100, true), -EINVAL);
	expect_waits(*pair.a, send);

	Pair other;
	const auto recv = other.b->recv(100, true);
	other.run();
	EXPECT_EQ(other.a->send(100, true), -EINVAL);
	expect_waits(*other.b, recv);
	end(pair);
	end(other);
}

TEST(Machine, EXS11_PersistentSendAndPersistentRecvStartedTogetherBothFailWithEinval)
{
	Pair pair;
	const auto send = pair.a->send(100, true);
	const auto recv = pair.b->recv(100, true);
	pair.run();
	expect_error(*pair.a, send, EINVAL);
	expect_error(*pair.b, recv, EINVAL);
	const auto next = pair.a->send(100), taken = pair.b->recv(100);
	pair.run();
	expect_done(*pair.a, next, 100);
	expect_done(*pair.b, taken, 100);
	end(pair);
}

TEST(Machine, EXS11_BothEndsCanReadThePeersPersistentSend)
{
	Pair pair;
	const auto ours = pair.a->send(100, true), theirs = pair.b->send(100, true);
	pair.run();
	const auto one = pair.a->recv(100), other = pair.b->recv(100);
	pair.run();
	expect_done(*pair.a, one, 100);
	expect_done(*pair.b, other, 100);
	expect_waits(*pair.a, ours);
	expect_waits(*pair.b, theirs);
	end(pair);
}

// ---- EXS-12

TEST(Machine, EXS12_RecvOffsetReadsAPartOfThePeersPersistentSend)
{
	Pair pair;
	const auto send = pair.a->send(5000, true);
	const auto recv = pair.b->recv(2000, false, false, 1500), last = pair.b->recv(1, false, false, 4999),
		   none = pair.b->recv(0, false, false, 5000);
	pair.run();
	expect_done(*pair.b, recv, 2000);
	const auto &all = pair.a->op(send).bytes;
	EXPECT_TRUE(std::equal(all.begin() + 1500, all.begin() + 3500, pair.b->op(recv).bytes.begin()));
	expect_done(*pair.b, last, 1);
	expect_done(*pair.b, none, 0);
	end(pair);
}

TEST(Machine, EXS12_RecvOffsetBeyondThePeersPersistentSendFailsWithErange)
{
	Pair pair;
	pair.a->send(5000, true);
	const uint64_t huge = UINT64_MAX;
	const auto behind = pair.b->recv(1, false, false, 5000), over = pair.b->recv(2, false, false, 4999),
		   wraps = pair.b->recv(2, false, false, huge), none = pair.b->recv(0, false, false, 5001);
	pair.run();
	for (const auto op : {behind, over, wraps, none})
		expect_error(*pair.b, op, ERANGE);
	EXPECT_EQ(pair.b->sent.read_requests, 0U);
	end(pair);
}

TEST(Machine, EXS12_RecvOffsetWithoutAPersistentSendOfThePeerFailsWithEinval)
{
	Pair pair;
	const auto offset = pair.b->recv(10, false, false, 0), plain = pair.b->recv(1000);
	const auto send = pair.a->send(1000);
	pair.run();
	expect_error(*pair.b, offset, EINVAL);
	expect_done(*pair.b, plain, 1000);
	expect_done(*pair.a, send, 1000);
	end(pair);
}

TEST(Machine, EXS12_SendOffsetWritesIntoThePeersPersistentRecvOrFailsWithErange)
{
	Pair pair;
	const auto early = pair.a->send(10, false, false, 100); // waits for the memory
	pair.run();
	expect_waits(*pair.a, early);
	const auto recv = pair.b->recv(5000, true);
	const auto send = pair.a->send(2500, false, false, 2500), over = pair.a->send(2501, false, false, 2500),
		   behind = pair.a->send(1, false, false, 5000), wraps = pair.a->send(2, false, false, UINT64_MAX);
	pair.run();
	expect_done(*pair.a, early, 10);
	expect_done(*pair.a, send, 2500);
	for (const auto op : {over, behind, wraps})
		expect_error(*pair.a, op, ERANGE);
	const auto &all = pair.b->op(recv).bytes;
	EXPECT_TRUE(std::equal(all.begin() + 100, all.begin() + 110, pair.a->op(early).bytes.begin()));
	EXPECT_TRUE(std::equal(all.begin() + 2500, all.end(), pair.a->op(send).bytes.begin()));
	EXPECT_EQ(pair.a->send(10, true, false, 0), -EINVAL);
	end(pair);
}

// ---- EXS-13: streams

TEST(Machine, EXS13_StreamKeepsNoMessageBoundaries)
{
	Pair pair(World::config(true));
	pair.a->send(100);
	pair.a->send(50);
	pair.a->send(1000);
	pair.run();
	const auto some = pair.b->recv(30), rest = pair.b->recv(2000), last = pair.b->recv(2000);
	pair.run();
	expect_done(*pair.b, some, 30);
	expect_done(*pair.b, rest, 120);
	expect_done(*pair.b, last, 1000);
	const auto more = pair.b->recv(10);
	pair.run();
	expect_waits(*pair.b, more);
	end(pair);
}

// Of the peer's advertisements one after the other: it may not answer the next Read
TEST(Machine, EXS13_ReceivedOctetsCompleteAStreamRecvWithoutWaitingForTheNextRead)
{
	Pair pair(World::config(true));
	pair.a->send(1);
	pair.a->send(500);
	while (pair.a->transmit() || pair.b->deliver() || pair.b->process())
		;
	const auto first = pair.b->recv(2000); // both are there
	while (pair.b->process())
		; // no Read is answered
	expect_done(*pair.b, first, 1);
	const auto second = pair.b->recv(2000);
	pair.run();
	expect_done(*pair.b, second, 500);
	end(pair);
}

TEST(Machine, EXS13_StreamRecvReturnsTheOctetsReceivedBeforeAConnectionLoss)
{
	auto settings = World::config(true);
	settings.largest = 100;
	Pair pair(settings);
	const auto all = pair.b->recv(2000, false, true), next = pair.b->recv(10);
	const auto one = pair.a->send(1), more = pair.a->send(500);
	while (pair.a->transmit() || pair.b->deliver() || pair.b->process() || pair.b->transmit())
		;
	while (pair.a->deliver())
		;
	EXPECT_TRUE(pair.a->answer()); // the first of five
	EXPECT_TRUE(pair.a->transmit() || pair.b->deliver());
	while (pair.b->deliver() || pair.b->process())
		;
	pair.b->lose(ECONNRESET);
	expect_done(*pair.b, all, 101);
	EXPECT_FALSE(pair.b->op(all).done->eof);
	EXPECT_EQ(pair.b->op(all).bytes[0], pair.a->op(one).bytes[0]);
	EXPECT_EQ(pair.b->op(all).bytes[100], pair.a->op(more).bytes[99]);
	expect_error(*pair.b, next, ECONNRESET);
	EXPECT_EQ(pair.b->recv(10), -ECONNRESET);
}

TEST(Machine, EXS13_ImmediateOctetsAfterAnUnansweredReadAreNotReceivedOnConnectionLoss)
{
	for (const bool sender_closes : {false, true}) {
		Pair pair(World::config(true));
		const auto run_without_answers = [&pair] {
			while (pair.a->transmit() || pair.b->deliver() || pair.b->process() || pair.b->transmit() || pair.a->deliver() ||
			       pair.a->process())
				;
		};
		const auto read = pair.b->recv(500), immediate = pair.b->recv(1);
		pair.a->send(500);
		const auto behind = pair.a->send(1);
		run_without_answers();
		if (sender_closes)
			pair.a->close();
		run_without_answers();
		expect_waits(*pair.a, behind); // it is not acknowledged
		pair.b->lose(ECONNRESET);
		expect_error(*pair.b, read, ECONNRESET);
		expect_error(*pair.b, immediate, ECONNRESET);
		EXPECT_EQ(pair.b->op(immediate).done->length, 0U);
	}
}

TEST(Machine, EXS13_StreamRecvWithWaitAllWaitsForAllOctets)
{
	Pair pair(World::config(true));
	const auto all = pair.b->recv(1000, false, true);
	pair.a->send(400);
	pair.run();
	expect_waits(*pair.b, all);
	pair.a->send(700);
	pair.run();
	expect_done(*pair.b, all, 1000);
	end(pair);
}

TEST(Machine, EXS13_EndOfFileAfterShutdownIsReportedAfterAllData)
{
	for (const bool stream : {false, true}) {
		Pair pair(World::config(stream));
		for (int i = 0; i < 6; i++)
			pair.a->send(700); // more than there are credits
		EXPECT_EQ(pair.a->shutdown(), 0);
		EXPECT_EQ(pair.a->send(1), -EPIPE);
		pair.run();
		for (int i = 0; i < 6; i++) {
			const auto recv = pair.b->recv(700, false, stream);
			pair.run();
			expect_done(*pair.b, recv, 700);
			EXPECT_FALSE(pair.b->op(recv).done->eof);
		}
		const auto last = pair.b->recv(700);
		pair.run();
		expect_done(*pair.b, last, 0);
		EXPECT_TRUE(pair.b->op(last).done->eof);
		const auto back = pair.b->send(100), taken = pair.a->recv(100); // half closed
		pair.run();
		expect_done(*pair.b, back, 100);
		expect_done(*pair.a, taken, 100);
		end(pair);
	}
}

TEST(Machine, EXS13_CancelledStreamRecvReturnsTheReceivedOctets)
{
	Pair pair(World::config(true));
	const auto all = pair.b->recv(1000, false, true), next = pair.b->recv(100);
	pair.a->send(40);
	pair.run();
	pair.b->cancel(static_cast<OpId>(all));
	pair.a->send(60);
	pair.run();
	expect_done(*pair.b, all, 40);
	expect_done(*pair.b, next, 60);
	end(pair);
}

// ---- depths of Reads

TEST(Machine, EXS2_NoMoreReadsAreInFlightThanTheOrdAllows)
{
	auto settings = World::config(); // World fails if there are more
	for (const uint32_t depth : {1U, 2U, 7U}) {
		settings.ord = settings.ird = depth;
		settings.largest = 10;
		Pair pair(settings);
		const auto send = pair.a->send(1001), recv = pair.b->recv(1001);
		pair.run();
		expect_done(*pair.a, send, 1001);
		expect_done(*pair.b, recv, 1001);
		EXPECT_EQ(pair.b->sent.read_requests, 101U);
		end(pair);
	}
}

TEST(Machine, WithOrdZeroImmediateSendsArriveLargeAndPersistentSendsFailWithEopnotsupp)
{
	auto settings = World::config();
	settings.ord = settings.ird = 0;
	Pair pair(settings);
	const auto large = pair.a->send(100), small = pair.a->send(10), persistent = pair.a->send(10, true);
	const auto recv = pair.b->recv(100);
	pair.run();
	expect_error(*pair.a, large, EOPNOTSUPP);
	expect_done(*pair.a, small, 10);
	expect_done(*pair.b, recv, 10);
	expect_error(*pair.a, persistent, EOPNOTSUPP);
	end(pair);
}

// The sender does not know
TEST(Machine, WhenOnlyTheReceiverHasOrdZeroALargeTransferFailsAtBothEndsWithEopnotsupp)
{
	auto one = World::config(), other = Pair::responder(World::config());
	other.ord = 0;
	Pair pair(one, other);
	const auto large = pair.a->send(100);
	const auto recv = pair.b->recv(100);
	pair.run();
	expect_error(*pair.a, large, EOPNOTSUPP);
	expect_error(*pair.b, recv, EOPNOTSUPP);
	end(pair);
}

// ---- lifetimes

// b has a Read in flight of a's memory when a closes
TEST(Machine, EXS5_CloseWaitsForAReadOfThePeerThatIsInFlight)
{
	Pair pair;
	const auto send = pair.a->send(900);
	const auto recv = pair.b->recv(900);
	while (pair.a->transmit())
		;
	while (pair.b->deliver() || pair.b->process())
		;
	ASSERT_TRUE(pair.b->transmit()); // the Read Request
	pair.a->close();
	expect_waits(*pair.a, send);
	pair.run();
	expect_done(*pair.b, recv, 900);
	expect_done(*pair.a, send, 900); // the ACK was under way
	EXPECT_EQ(pair.a->machine.error(), 0);
	EXPECT_EQ(pair.b->machine.error(), 0);
	pair.check(false);
}

TEST(Machine, CloseOfOneEndCompletesThePendingOperationsOfBothEnds)
{
	Pair pair;
	const auto unread = pair.a->send(900), waiting = pair.a->recv(10);
	const auto theirs = pair.b->send(900), other = pair.b->recv(1);
	pair.b->recv(1);
	pair.run();
	pair.a->close();
	pair.run();
	EXPECT_TRUE(pair.a->op(unread).done);
	EXPECT_TRUE(pair.a->op(waiting).done);
	EXPECT_TRUE(pair.b->op(theirs).done);
	EXPECT_TRUE(pair.b->op(other).done);
	pair.check(false);
}

TEST(Machine, PeerCloseIsReportedAsEndOfFileOrWithUnreadDataAsEconnreset)
{
	Pair quiet;
	const auto last = quiet.b->recv(10);
	quiet.a->close();
	quiet.run();
	expect_done(*quiet.b, last, 0);
	EXPECT_TRUE(quiet.b->op(last).done->eof);
	const auto after = quiet.b->recv(10);
	expect_done(*quiet.b, after, 0);
	EXPECT_EQ(quiet.b->send(10), -EPIPE);

	Pair unread;
	unread.a->send(100);
	unread.run();
	unread.a->close();
	while (unread.a->step() || unread.b->step())
		;
	const auto reset = unread.b->recv(100);
	expect_error(*unread.b, reset, ECONNRESET);
}

TEST(Machine, SimultaneousCloseOfBothEndsCausesNoError)
{
	Pair pair;
	for (Side *side : {pair.a.get(), pair.b.get()}) {
		side->send(900);
		side->recv(900);
	}
	pair.a->close();
	pair.b->close();
	pair.run();
	pair.check(false);
	EXPECT_EQ(pair.a->machine.error(), 0);
	EXPECT_EQ(pair.b->machine.error(), 0);
}

TEST(Machine, CancelOfAnAdvertisedSendCompletesWithThePeersAnswer)
{
	Pair pair;
	const auto send = pair.a->send(900);
	pair.run();
	pair.a->cancel(static_cast<OpId>(send));
	expect_waits(*pair.a, send);
	pair.run();
	expect_error(*pair.a, send, ECANCELED);
	EXPECT_EQ(pair.a->machine.cancel(static_cast<OpId>(send)), ENOENT);
	const auto recv = pair.b->recv(900);
	pair.run();
	expect_waits(*pair.b, recv);
	end(pair);
}

TEST(Machine, SendCancelledDuringAReadLeavesTheRecvToTheNextSend)
{
	auto settings = World::config();
	settings.ord = settings.ird = 1;
	settings.largest = 100;
	Pair pair(settings);
	const auto send = pair.a->send(900);
	const auto recv = pair.b->recv(900);
	while (pair.a->transmit())
		;
	for (int i = 0; i < 3; i++)
		pair.b->step();
	pair.a->cancel(static_cast<OpId>(send));
	pair.run();
	expect_error(*pair.a, send, ECANCELED);
	expect_waits(*pair.b, recv);
	const auto next = pair.a->send(500);
	pair.run();
	expect_done(*pair.a, next, 500);
	expect_done(*pair.b, recv, 500);
	end(pair);
}

// The check of the stream has to find where the first send ended, though its next octet is the second one's first
TEST(Machine, StreamGoesOnBehindWhatWasReadOfACancelledSend)
{
	constexpr OpId first = 1, second = 2;
	auto settings = World::config(true);
	settings.ord = settings.ird = 1;
	settings.largest = 4;
	while (pattern(first, settings.largest) != pattern(second, 0))
		settings.largest++;
	Pair pair(settings);
	ASSERT_EQ(pair.a->send(settings.largest + 10), first);
	ASSERT_EQ(pair.a->send(5), second);
	while (pair.a->transmit() || pair.b->deliver() || pair.b->process())
		;
	const auto recv = pair.b->recv(settings.largest + 10);
	while (pair.b->transmit() || pair.a->deliver())
		;
	pair.a->cancel(first); // the REVOKE leaves before the Read Response
	while (pair.a->transmit() || pair.a->answer())
		;
	const auto next = pair.b->recv(5);
	pair.a->lose(ECONNRESET);
	pair.end_of_connection();
	expect_done(*pair.b, recv, settings.largest);
	expect_done(*pair.b, next, 5);
	expect_error(*pair.a, first, ECANCELED);
	pair.check(true);
}

TEST(Machine, RecvCancelledDuringAReadLeavesTheWholeMessageToTheNextRecv)
{
	auto settings = World::config();
	settings.ord = settings.ird = 1;
	settings.largest = 100;
	Pair pair(settings);
	const auto recv = pair.b->recv(900);
	const auto send = pair.a->send(900);
	while (pair.a->transmit())
		;
	for (int i = 0; i < 3; i++)
		pair.b->step();
	pair.b->cancel(static_cast<OpId>(recv));
	const auto next = pair.b->recv(900);
	pair.run();
	expect_error(*pair.b, recv, ECANCELED);
	expect_done(*pair.b, next, 900);
	expect_done(*pair.a, send, 900);
	end(pair);
}

TEST(Machine, ConnectionLossCompletesEachOperationWithEconnreset)
{
	Pair pair;
	std::vector<int64_t> ops;
	for (int i = 0; i < 8; i++) {
		ops.push_back(pair.a->send(i % 2 ? 900 : 9));
		ops.push_back(pair.a->recv(900));
	}
	pair.a->transmit();
	pair.a->lose(ECONNRESET);
	for (const auto op : ops)
		expect_error(*pair.a, op, ECONNRESET);
	EXPECT_EQ(pair.a->send(1), -ECONNRESET);
	EXPECT_EQ(pair.a->recv(1), -ECONNRESET);
	pair.check(true);
}

TEST(Machine, SilentPeerIsDisconnectedAtTheDeadlineOfACancelOrClose)
{
	Pair pair;
	const auto send = pair.a->send(900);
	pair.run();
	EXPECT_FALSE(pair.a->timer_runs());
	pair.a->cancel(static_cast<OpId>(send));
	ASSERT_TRUE(pair.a->timer_runs());
	pair.a->expire();
	expect_error(*pair.a, send, ECANCELED);
	EXPECT_EQ(pair.a->machine.error(), ETIMEDOUT);

	Pair other;
	other.a->close();
	ASSERT_TRUE(other.a->timer_runs());
	other.a->expire();
	EXPECT_TRUE(other.a->is_down());
}

// ---- cost

// Of a message, in processor time, with so many receives posted behind it, or sends before it
double cost_of_a_message(uint32_t posted, uint32_t credits)
{
	auto settings = World::config();
	settings.initiator = false;
	settings.send_credits = settings.recv_credits = credits;
	const auto now = [] {
		timespec time{};
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
		return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) / 1e3;
	};
	double best = 1e9;
	for (int attempt = 0; attempt < 5; attempt++) {
		Machine machine(settings);
		OpId op = 1;
		uint32_t id = 1;
		machine.message(wire::encode(Message{.type = Type::ready}), 0, 0);
		const auto post = [&] {
			EXPECT_EQ(machine.recv({.op = op++, .memory = {.address = 4096, .length = 100}}), 0);
			EXPECT_EQ(machine.send({.op = op++, .memory = {.address = 4096, .length = 100}}), 0);
		};
		for (uint32_t i = 0; i < posted; i++)
			post();
		machine.take();
		constexpr int messages = 1000;
		const double start = now();
		for (int i = 0; i < messages; i++) {
			post();
			EXPECT_EQ(machine.cancel(op - 1), 0);
			machine.message(wire::encode(Message{.type = Type::adv_imm, .id = id, .length = 10}), 10, 1);
			// the last one that was advertised, with all others before it
			machine.message(wire::encode(Message{.type = Type::ack, .id = credits + id - 1, .length = 100}), 0, 2);
			id++;
			EXPECT_TRUE(machine.open());
			machine.take();
		}
		best = std::min(best, (now() - start) / messages);
	}
	return best;
}

// The walk of a list makes this 100 times as much, or more
TEST(Machine, CostPerOperationDoesNotGrowWithPostedOperations)
{
	const double few = cost_of_a_message(1000, 16), many = cost_of_a_message(100000, 16);
	EXPECT_LT(many, 8 * few) << "in us";
	const double with_credits = cost_of_a_message(100000, 4096);
	EXPECT_LT(with_credits, 8 * few) << "in us";
}

// ---- a peer that lies

class Hostile {
public:
	explicit Hostile(Machine::Config settings = World::config())
	    : credits(settings.recv_credits), machine((settings.initiator = false, settings))
	{
		say({.type = Type::ready});
	}

	Hostile &say(const Message &message, uint64_t data = 0)
	{
		machine.message(wire::encode(message), data, buffer++);
		for (const Action &action : machine.take())
			if (const auto *abort = std::get_if<action::Abort>(&action))
				aborted = abort->error;
		return *this;
	}
	Hostile &adv(uint32_t id, uint8_t flags = 0)
	{
		return say({.type = Type::adv, .flags = flags, .id = id, .length = 100, .address = 4096, .key = 1});
	}
	Hostile &radv(uint32_t id)
	{
		return say({.type = Type::radv, .id = id, .length = 100, .address = 4096, .key = 1});
	}
	Hostile &send(OpId op, bool persistent = false, uint64_t length = 1000)
	{
		EXPECT_EQ(machine.send({.op = op, .memory = {.address = 4096, .length = length}, .persistent = persistent}), 0);
		machine.take();
		return *this;
	}
	Hostile &cancel(OpId op)
	{
		machine.cancel(op);
		machine.take();
		return *this;
	}

	uint32_t credits;
	Machine machine;
	uint32_t buffer = 0;
	int aborted = 0;
};

#define EXPECT_REFUSED(peer) EXPECT_EQ((peer).aborted, EPROTO)
#define EXPECT_TAKEN(peer) EXPECT_EQ((peer).aborted, 0)

TEST(Hostile, PeerIsDisconnectedForAMessageOutOfOrder)
{
	EXPECT_REFUSED(Hostile().say({.type = Type::ready}));
	EXPECT_REFUSED(Hostile().say({.type = Type::fin}).say({.type = Type::fin}));
	EXPECT_REFUSED(Hostile().say({.type = Type::fin}).adv(1));
	EXPECT_REFUSED(Hostile().say({.type = Type::close, .flags = wire::flag_reply})) << "no CLOSE of ours";
	EXPECT_REFUSED(Hostile().say({.type = Type::note_ack, .id = 1}));
	EXPECT_REFUSED(Hostile().say({.type = Type::note, .id = 1, .count = 1}));
	EXPECT_REFUSED(Hostile().say({.type = Type::ack, .id = 1}));
	EXPECT_REFUSED(Hostile().say({.type = Type::revoked, .id = 1}));
	EXPECT_REFUSED(Hostile().say({.type = Type::revoke, .id = 1})) << "there is no advertisement 1 yet";
}

TEST(Hostile, PeerIsDisconnectedForAFirstMessageOtherThanReady)
{
	auto settings = World::config();
	settings.initiator = false;
	Machine machine(settings);
	machine.message(wire::encode(Message{.type = Type::fin}), 0, 0);
	EXPECT_EQ(machine.error(), EPROTO);
}

TEST(Hostile, PeerIsDisconnectedForAReadyMessageToTheInitiator)
{
	Machine machine(World::config());
	machine.start();
	machine.message(wire::encode(Message{.type = Type::ready}), 0, 0);
	EXPECT_EQ(machine.error(), EPROTO);
}

TEST(Hostile, PeerIsDisconnectedForAnAdvertisementAfterAGapOrWithoutACredit)
{
	EXPECT_REFUSED(Hostile().adv(2));
	EXPECT_REFUSED(Hostile().adv(1).adv(1));
	EXPECT_REFUSED(Hostile().adv(1).adv(3));
	Hostile greedy;
	for (uint32_t i = 1; i <= greedy.credits; i++)
		greedy.adv(i);
	EXPECT_TAKEN(greedy);
	EXPECT_REFUSED(greedy.adv(greedy.credits + 1));
	Hostile counted; // persistent memory counts
	counted.radv(1);
	for (uint32_t i = 2; i <= counted.credits; i++)
		counted.adv(i);
	EXPECT_TAKEN(counted);
	EXPECT_REFUSED(counted.adv(counted.credits + 1));
}

TEST(Hostile, PeerIsDisconnectedForImmediateDataOfAWrongOrTooLargeLength)
{
	EXPECT_TAKEN(Hostile().say({.type = Type::adv_imm, .id = 1, .length = 64}, 64));
	EXPECT_REFUSED(Hostile().say({.type = Type::adv_imm, .id = 1, .length = 65}, 65)) << "the limit is 64";
	EXPECT_REFUSED(Hostile().say({.type = Type::adv_imm, .id = 1, .length = 64}, 63));
	EXPECT_REFUSED(Hostile().say({.type = Type::adv_imm, .id = 1, .length = 10}, 11));
	EXPECT_REFUSED(Hostile().say({.type = Type::fin}, 1));
}

TEST(Hostile, PeerIsDisconnectedForAnAdvertisementBesidesAPersistentOneOrAPersistentOneOnAStream)
{
	EXPECT_REFUSED(Hostile().adv(1, wire::flag_persistent).adv(2));
	EXPECT_REFUSED(Hostile().radv(1).radv(2));
	EXPECT_REFUSED(Hostile(World::config(true)).adv(1, wire::flag_persistent));
	EXPECT_REFUSED(Hostile(World::config(true)).radv(1));
}

TEST(Hostile, PeerIsDisconnectedForAnAckThatContradictsTheSend)
{
	const auto ack = [](Status status, uint64_t length, uint32_t count = 0, uint32_t id = 1) {
		return Message{.type = Type::ack, .status = status, .id = id, .length = length, .count = count};
	};
	EXPECT_TAKEN(Hostile().send(1).say(ack(Status::ok, 1000)));
	EXPECT_TAKEN(Hostile().send(1).say(ack(Status::ok, 10))) << "truncated";
	EXPECT_REFUSED(Hostile().send(1).say(ack(Status::ok, 1001)));
	EXPECT_REFUSED(Hostile().send(1).say(ack(Status::ok, 1000, 1))) << "no notes were wanted";
	EXPECT_REFUSED(Hostile().send(1).say(ack(Status::ok, 1000, 0, 2)));
	EXPECT_REFUSED(Hostile().send(1).say(ack(Status::ok, 1000)).say(ack(Status::ok, 1000)));
	EXPECT_REFUSED(Hostile().send(1).say(ack(Status::canceled, 0))) << "we have not revoked it";
	EXPECT_REFUSED(Hostile().send(1).say(ack(Status::both_persistent, 0)));
	EXPECT_REFUSED(Hostile().send(1, true).say(ack(Status::ok, 1000))) << "persistent sends are not done";
	EXPECT_TAKEN(Hostile().send(1, true).say(ack(Status::both_persistent, 0)));
	EXPECT_REFUSED(Hostile(World::config(true)).send(1).say(ack(Status::ok, 999))) << "streams are read whole";
	EXPECT_TAKEN(Hostile().send(1).cancel(1).say(ack(Status::canceled, 0)));
	EXPECT_REFUSED(Hostile().send(1).cancel(1).say(ack(Status::canceled, 5)));
}

TEST(Hostile, PeerIsDisconnectedForARevokedMessageBeforeTheAckOfTheSend)
{
	EXPECT_REFUSED(Hostile().send(1).cancel(1).say({.type = Type::revoked, .id = 1}));
	EXPECT_TAKEN(Hostile()
			     .send(1)
			     .cancel(1)
			     .say({.type = Type::ack, .status = Status::canceled, .id = 1})
			     .say({.type = Type::revoked, .id = 1}));
	EXPECT_REFUSED(Hostile()
			       .send(1)
			       .cancel(1)
			       .say({.type = Type::ack, .status = Status::canceled, .id = 1})
			       .say({.type = Type::revoked, .id = 2}));
}

TEST(Hostile, PeerIsDisconnectedForARevokeOfAnUnknownAdvertisement)
{
	for (const uint32_t id : {1U, 2U, 0x7fffffffU, 0x80000000U, 0x80000001U, 0x80000002U, 0xfffffffeU, UINT32_MAX}) {
		EXPECT_REFUSED(Hostile().say({.type = Type::revoke, .id = id})) << id;
		EXPECT_EQ(Hostile().adv(1).say({.type = Type::revoke, .id = id}).aborted, id == 1 ? 0 : EPROTO) << id;
	}
}

TEST(Hostile, PeerIsDisconnectedForASecondRevokeBeforeTheFirstIsAnswered)
{
	Hostile peer;
	peer.adv(1).adv(2);
	EXPECT_EQ(peer.machine.recv({.op = 1, .memory = {.address = 4096, .length = 100}}), 0);
	peer.machine.take(); // a Read of 1 is in flight
	peer.say({.type = Type::revoke, .id = 1});
	EXPECT_TAKEN(peer);
	EXPECT_REFUSED(peer.say({.type = Type::revoke, .id = 2}));
}

TEST(Hostile, PeerIsDisconnectedForAMessageAfterItsClose)
{
	Hostile peer;
	peer.adv(1);
	EXPECT_EQ(peer.machine.recv({.op = 1, .memory = {.address = 4096, .length = 100}}), 0);
	peer.machine.take(); // a Read is in flight: our CLOSE waits
	peer.say({.type = Type::close});
	EXPECT_TAKEN(peer);
	EXPECT_REFUSED(peer.say({.type = Type::close}));
}

TEST(Hostile, PeerIsDisconnectedForAMessageOfAllOnes)
{
	Hostile peer;
	std::array<uint8_t, wire::message_size> garbage{};
	garbage.fill(0xff);
	peer.machine.message(garbage, 0, 1);
	EXPECT_EQ(peer.machine.error(), EPROTO);
}

#ifndef LIBEXS_ADDRESS_SANITIZER
// The sender and the receiver, without the memory that World adds
class Exchange {
public:
	explicit Exchange(uint32_t immediate) : sender_(settings(true, immediate)), receiver_(settings(false, immediate))
	{
		sender_.start();
		deliver();
	}

	// One message of 64 octets is sent, received and acknowledged
	bool message()
	{
		const OpId op = ++op_;
		const bool taken = sender_.send({.op = op, .memory = {.length = 64}}) == 0 &&
				   receiver_.recv({.op = op, .memory = {.length = 64}}) == 0;
		deliver();
		return taken && std::exchange(completions_, 0) == 2;
	}

private:
	static Machine::Config settings(bool initiator, uint32_t immediate)
	{
		return {.initiator = initiator, .send_immediate = immediate, .recv_immediate = immediate, .ord = 1, .ird = 1};
	}

	void deliver()
	{
		while (step(sender_, receiver_) || step(receiver_, sender_))
			;
	}

	bool step(Machine &from, Machine &to)
	{
		actions_.clear();
		actions_ = from.take(std::move(actions_));
		for (const Action &action : actions_) {
			if (const auto *post = std::get_if<action::Post>(&action)) {
				to.message(wire::encode(post->message), post->data.length, 0);
				from.done(post->work);
			} else if (const auto *read = std::get_if<action::Read>(&action)) {
				from.done(read->work);
			} else if (std::holds_alternative<action::Complete>(action)) {
				completions_++;
			}
		}
		return !actions_.empty();
	}

	std::vector<Action> actions_;
	unsigned completions_ = 0;
	OpId op_ = 0;

	Machine sender_, receiver_;
};

void expect_no_allocations(Exchange &&exchange)
{
	bool good = true;
	for (int i = 0; i < 100; i++)
		good = exchange.message() && good;
	const uint64_t before = allocations;
	for (int i = 0; i < 1000; i++)
		good = exchange.message() && good;
	EXPECT_EQ(allocations - before, 0U);
	EXPECT_TRUE(good);
}

TEST(Machine, AnImmediateMessageAfterAHundredOthersAllocatesNoMemory)
{
	expect_no_allocations(Exchange(64));
}

TEST(Machine, ANormalMessageAfterAHundredOthersAllocatesNoMemory)
{
	expect_no_allocations(Exchange(0));
}
#endif

} // namespace
