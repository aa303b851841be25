// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
// DGM-27: error messages: who gets them and how often, and which of them an endpoint believes
#include "world.h"

using namespace world;

namespace {

// Waits in which nothing is expected, ms
constexpr int quiet = 100;

class Refusing : public testing::Test {
protected:
	Refusing() { name(); }
	void name(unsigned prefix = 32)
	{
		const auto source = loopback(0);
		ASSERT_EQ(dgm_allow(zone, any(source), sizeof(source), prefix), 0);
	}
	// A Write-Record with this much data at `to` of a zone
	[[nodiscard]] static Datagram to_zone(uint32_t number, uint32_t qkey, uint64_t to, size_t size = 24)
	{
		return Datagram::write(number, qkey, to, 1, 0, static_cast<uint32_t>(size), random_bytes(size));
	}
	void expect_answer(const Datagram &cause, unsigned layer, unsigned type, unsigned code)
	{
		raw.send(b.address(), cause.sealed());
		EXPECT_EQ(raw.receive(), Datagram::error(1, layer, type, code, cause).sealed());
		EXPECT_TRUE(b.wait_counter("error_messages_sent", 1));
	}
	dgm_options chosen = [] {
		auto o = patient(DGM_SEND_ERRORS);
		o.records = 1;
		return o;
	}();
	Endpoint b{&chosen};
	Zone zone{b, 100, 0, false};
	Raw raw;
};

TEST_F(Refusing, DGM_27_WriteToAnUnknownZoneHasTheErrorMessageInvalidStag)
{
	expect_answer(to_zone(zone.number ^ 1, zone.qkey, 0), 1, 1, 0);
}

TEST_F(Refusing, DGM_27_WriteWithAWrongQKeyHasTheErrorMessageOfAnUnknownZone)
{
	expect_answer(to_zone(zone.number, zone.qkey ^ 1, 0), 1, 1, 0);
}

TEST_F(Refusing, DGM_27_WriteBeyondTheZoneHasTheErrorMessageBoundsViolation)
{
	expect_answer(to_zone(zone.number, zone.qkey, 77), 1, 1, 1);
}

TEST_F(Refusing, DGM_27_WriteWithoutRoomForItsRecordHasTheErrorMessageCatastrophicError)
{
	raw.send(b.address(), to_zone(zone.number, zone.qkey, 0).sealed());
	ASSERT_TRUE(b.wait_counter("segments_placed", 1));
	expect_answer(to_zone(zone.number, zone.qkey, 24), 0, 0, 0);
}

TEST_F(Refusing, DGM_27_WriteThatContradictsItsMessageHasTheErrorMessageUnspecified)
{
	const Bytes data = random_bytes(24);
	raw.send(b.address(), Datagram::write(zone.number, zone.qkey, 0, 1, 0, 72, data).sealed());
	ASSERT_TRUE(b.wait_counter("segments_placed", 1));
	expect_answer(Datagram::write(zone.number, zone.qkey, 0, 1, 24, 96, data), 0, 2, 0xff);
}

TEST_F(Refusing, DGM_27_SourceHasOneErrorMessageASecond)
{
	const Datagram cause = to_zone(zone.number ^ 1, zone.qkey, 0);
	const Raw other; // with another port
	const auto begin = std::chrono::steady_clock::now();
	expect_answer(cause, 1, 1, 0);
	for (int i = 0; i < 5; i++)
		other.send(b.address(), cause.sealed());
	ASSERT_TRUE(b.wait_counter("no_zone", 6));
	const bool busy = std::chrono::steady_clock::now() - begin > std::chrono::milliseconds(800);
	EXPECT_TRUE(busy || b.counter("error_messages_sent") == 1);
	::usleep(1200000);
	raw.send(b.address(), cause.sealed());
	EXPECT_TRUE(b.wait_counter("error_messages_sent", 2));
}

// Whoever may not have an error message does not use up that of its address
TEST_F(Refusing, DGM_27_WriteWithAWrongCrcUsesUpNoErrorMessage)
{
	const Datagram cause = to_zone(zone.number ^ 1, zone.qkey, 0);
	Bytes bytes = cause.sealed();
	bytes.back() ^= 1;
	raw.send(b.address(), bytes);
	ASSERT_TRUE(b.wait_counter("no_zone", 1));
	expect_answer(cause, 1, 1, 0);
}

TEST(Errors, DGM_27_WriteFromAPortThatNoZoneNamesUsesUpNoErrorMessage)
{
	const auto chosen = options(DGM_SEND_ERRORS);
	const Endpoint b(&chosen);
	const Zone zone(b, 100, 0, false);
	const Raw named, other;
	const auto source = named.address();
	ASSERT_EQ(dgm_allow(zone, any(source), sizeof(source), 32), 0);
	const Datagram cause = Datagram::write(zone.number ^ 1, zone.qkey, 0, 1, 0, 24, random_bytes(24));
	other.send(b.address(), cause.sealed());
	ASSERT_TRUE(b.wait_counter("no_zone", 1));
	named.send(b.address(), cause.sealed());
	EXPECT_EQ(named.receive(), Datagram::error(1, 1, 1, 0, cause).sealed());
	EXPECT_EQ(other.receive(quiet), Bytes());
}

// The datagram has the least length whose error message is not longer
TEST_F(Refusing, DGM_27_NoErrorMessageIsLongerThanItsCause)
{
	raw.send(b.address(), to_zone(zone.number ^ 1, zone.qkey, 0, 23).sealed());
	ASSERT_TRUE(b.wait_counter("no_zone", 1));
	const Datagram cause = to_zone(zone.number ^ 1, zone.qkey, 0, 24);
	expect_answer(cause, 1, 1, 0);
	EXPECT_EQ(Datagram::error(1, 1, 1, 0, cause).sealed().size(), cause.sealed().size());
}

TEST_F(Refusing, DGM_27_SendsAndErrorMessagesAndWrongCrcsHaveNoErrorMessage)
{
	const Datagram cause = to_zone(zone.number ^ 1, zone.qkey, 0);
	raw.send(b.address(), Datagram::send(dgm_qkey(b) ^ 1, 1, random_bytes(100)).sealed());
	raw.send(b.address(), Datagram::error(1, 1, 1, 0, cause).sealed());
	Bytes bytes = cause.sealed();
	bytes.back() ^= 1;
	raw.send(b.address(), bytes);
	ASSERT_TRUE(b.wait_counter("no_zone", 1) && b.wait_counter("error_messages", 1) && b.wait_counter("bad_qkey", 1));
	EXPECT_EQ(raw.receive(quiet), Bytes());
	EXPECT_EQ(b.counter("error_messages_sent"), 0u);
}

TEST(Errors, DGM_27_WithoutTheOptionNoErrorMessageIsSent)
{
	const Endpoint b;
	const Zone zone(b, 100);
	const Raw raw;
	const auto source = loopback(0);
	ASSERT_EQ(dgm_allow(zone, any(source), sizeof(source), 32), 0);
	raw.send(b.address(), Datagram::write(zone.number, zone.qkey, 90, 1, 0, 24, random_bytes(24)).sealed());
	ASSERT_TRUE(b.wait_counter("out_of_bounds", 1));
	EXPECT_EQ(raw.receive(quiet), Bytes());
}

TEST(Errors, DGM_27_SourceThatNoZoneNamesHasNoErrorMessage)
{
	const auto chosen = options(DGM_SEND_ERRORS);
	const Endpoint b(&chosen);
	const Zone everybody(b, 100), one(b, 100, 0, false);
	const Raw raw;
	const auto source = loopback(0, INADDR_LOOPBACK + 1);
	ASSERT_EQ(dgm_allow(one, any(source), sizeof(source), 32), 0);
	raw.send(b.address(), Datagram::write(everybody.number, everybody.qkey, 90, 1, 0, 24, random_bytes(24)).sealed());
	ASSERT_TRUE(b.wait_counter("out_of_bounds", 1));
	EXPECT_EQ(raw.receive(quiet), Bytes());
	EXPECT_EQ(b.counter("error_messages_sent"), 0u);
}

// The kernel sends none from an address of a group, but a try would use up that of the next datagram
TEST(Errors, DGM_27_MulticastHasNoErrorMessageAndUsesUpNone)
{
	auto group = loopback(0, 0xefff4d02); // 239.255.77.2
	const auto chosen = options(DGM_SEND_ERRORS);
	const Endpoint b(dgm_address{.v4 = loopback(0, INADDR_ANY)}, &chosen);
	const Zone zone(b, 100, 0, false);
	const Endpoint a;
	const auto source = loopback(0);
	ASSERT_EQ(dgm_allow(zone, any(source), sizeof(source), 32), 0);
	ASSERT_EQ(dgm_join(b, any(group), sizeof(group), 1), 0);
	const in_addr lo{.s_addr = htonl(INADDR_LOOPBACK)};
	ASSERT_EQ(::setsockopt(dgm_socket(a), IPPROTO_IP, IP_MULTICAST_IF, &lo, sizeof(lo)), 0);
	group.sin_port = b.address().sin_port;
	const Bytes data = random_bytes(24);
	ASSERT_EQ(dgm_write(a, any(group), sizeof(group), zone.number, zone.qkey, 90, data.data(), data.size(), nullptr), 0);
	ASSERT_TRUE(b.wait_counter("out_of_bounds", 1));
	const Raw raw;
	const Datagram cause = Datagram::write(zone.number, zone.qkey, 90, 1, 0, 24, data);
	raw.send(loopback(ntohs(b.address().sin_port)), cause.sealed());
	EXPECT_EQ(raw.receive(), Datagram::error(1, 1, 1, 1, cause).sealed());
	EXPECT_EQ(b.counter("error_messages_sent"), 1u);
}

// An endpoint whose writes `target` refuses
class Refused : public testing::Test {
protected:
	Refused()
	{
		const auto to = target.address();
		EXPECT_EQ(dgm_write(a, any(to), sizeof(to), 5, 6, 1000, data.data(), data.size(), nullptr), 0);
		EXPECT_EQ(target.receive().size(), 30u + 24 + 4);
	}
	dgm_options chosen = options(DGM_RECEIVE_ERRORS);
	Endpoint a{&chosen};
	Raw target;
	const Bytes data = random_bytes(24);
	const Datagram sent = Datagram::write(5, 6, 1000, 1, 0, 24, data);
	const Datagram error = Datagram::error(1, 1, 1, 0, sent);
};

TEST_F(Refused, DGM_27_ErrorMessageAboutASentDatagramIsOneEvent)
{
	target.send(a.address(), error.sealed());
	target.send(a.address(), error.sealed());
	const auto events = a.events(1);
	ASSERT_EQ(events.size(), 1u);
	EXPECT_EQ(events[0].type, DGM_REFUSED);
	EXPECT_EQ(events[0].error, 0x1100);
	EXPECT_EQ(events[0].peer.v4.sin_port, target.address().sin_port);
	EXPECT_EQ(events[0].zone, 5u);
	EXPECT_EQ(events[0].msn, 1u);
	EXPECT_EQ(events[0].offset, 1000u);
	EXPECT_EQ(events[0].length, 24u);
	EXPECT_EQ(events[0].message, 1000u);
	EXPECT_EQ(events[0].message_length, 24u);
	ASSERT_TRUE(a.wait_counter("error_messages", 2));
	EXPECT_EQ(a.events(1, quiet).size(), 0u);
}

// Each forged one differs in one thing
TEST_F(Refused, DGM_27_ForgedErrorMessageIsCountedAndChangesNothing)
{
	const Raw other;
	other.send(a.address(), error.sealed());
	for (const auto &[field, value] : {std::pair{"stag", 7}, {"qkey", 7}, {"msn", 2}, {"ml", 25}, {"to", 1001}}) {
		Datagram cause = sent;
		target.send(a.address(), Datagram::error(1, 1, 1, 0, cause.set(field, static_cast<uint64_t>(value))).sealed());
	}
	target.send(a.address(), Datagram::error(1, 1, 1, 0, Datagram::send(6, 1, data)).sealed());
	ASSERT_TRUE(a.wait_counter("error_messages", 7));
	EXPECT_EQ(a.events(1, quiet).size(), 0u);
	target.send(a.address(), error.sealed());
	EXPECT_EQ(a.events(1).size(), 1u);
}

TEST(Errors, DGM_27_ErrorMessageThatFindsTheQueueFullHasItsEventWhenItIsRepeated)
{
	constexpr uint32_t full = 64;
	const auto chosen = options(DGM_RECEIVE_ERRORS);
	const Endpoint a(&chosen);
	const Raw target;
	const auto to = target.address();
	const Bytes data = random_bytes(24);
	const auto refuse = [&](uint32_t msn) {
		target.send(a.address(), Datagram::error(msn, 1, 1, 0, Datagram::write(5, 6, 1000, msn, 0, 24, data)).sealed());
	};
	for (uint32_t msn = 1; msn <= full + 1; msn++) {
		ASSERT_EQ(dgm_write(a, any(to), sizeof(to), 5, 6, 1000, data.data(), data.size(), nullptr), 0);
		refuse(msn);
		ASSERT_TRUE(a.wait_counter("error_messages", msn));
	}
	EXPECT_EQ(a.counter("errors_lost"), 1u);
	EXPECT_EQ(a.events(full).size(), full);
	refuse(full + 1);
	const auto events = a.events(1);
	ASSERT_EQ(events.size(), 1u);
	EXPECT_EQ(events[0].msn, full + 1);
}

TEST(Errors, DGM_27_WithoutTheOptionAnErrorMessageIsCounted)
{
	const Endpoint a;
	const Raw target;
	const auto to = target.address();
	const Bytes data = random_bytes(24);
	ASSERT_EQ(dgm_write(a, any(to), sizeof(to), 5, 6, 1000, data.data(), data.size(), nullptr), 0);
	target.send(a.address(), Datagram::error(1, 1, 1, 0, Datagram::write(5, 6, 1000, 1, 0, 24, data)).sealed());
	EXPECT_TRUE(a.wait_counter("error_messages", 1));
	EXPECT_EQ(a.events(1, quiet).size(), 0u);
}

// Endpoints at IPv6, with a target that is bound to all addresses
TEST(Errors, DGM_27_EndpointsExchangeErrorMessagesOverIPv6)
{
	const auto source = loopback6();
	auto everywhere = source;
	everywhere.v6.sin6_addr = in6addr_any;
	const auto sender = options(DGM_RECEIVE_ERRORS), receiver = options(DGM_SEND_ERRORS);
	const Endpoint a(source, &sender), b(everywhere, &receiver);
	const Zone zone(b, 100, 0, false);
	ASSERT_EQ(dgm_allow(zone, &source.any, sizeof(source.v6), 128), 0);
	auto to = b.local();
	to.v6.sin6_addr = in6addr_loopback;
	const Bytes data = random_bytes(30);
	ASSERT_EQ(dgm_write(a, &to.any, sizeof(to.v6), zone.number, zone.qkey, 90, data.data(), data.size(), nullptr), 0);
	const auto events = a.events(1);
	ASSERT_EQ(events.size(), 1u);
	EXPECT_EQ(events[0].type, DGM_REFUSED);
	EXPECT_EQ(events[0].error, 0x1101);
}

} // namespace
