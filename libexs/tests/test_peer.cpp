// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//
// The library against a peer that keeps to the format and not to its promises. Over TCP, and over RDMA by mpapeer.
#include "library.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <future>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>

#include <sys/mman.h>

namespace {

using namespace exs_test;

class Peer : public Library {
protected:
	void SetUp() override
	{
		if (rdma_address != nullptr)
			GTEST_SKIP() << "the peer is one of TCP";
		Library::SetUp();
	}
	void TearDown() override
	{
		peer.reset();
		if (rdma_address == nullptr)
			Library::TearDown();
	}

	// b is our end
	void meet(int type = SOCK_SEQPACKET)
	{
		options[EXS_CLOSE_MS] = 300;
		listen(type);
		const auto accepting = exs_accept(listener, queue, nullptr);
		peer = std::make_unique<RawClient>(address, type);
		b = wait(accepting).accepted;
	}

	// The peer is asked for what it has advertised, and does not answer
	exs_op_t begin_read(Memory &to, int flags = 0)
	{
		const auto op = recv(b, to, flags);
		peer->say({.type = RawClient::adv, .id = 1, .length = to.bytes.size(), .address = 4096, .key = 1});
		peer->wait_read_request();
		return op;
	}

	std::unique_ptr<RawClient> peer;
};

// Sends of a queue with EXS_QUEUE_BATCH
class BatchingPeer : public Peer {
protected:
	void meet_batching()
	{
		meet();
		ASSERT_EQ(exs_qset(queue, EXS_QUEUE_BATCH, 1), 0);
		uint8_t kind = 1;
		peer->next(kind);
		ASSERT_EQ(kind, 0); // the hello
	}

	bool has_left() const { return peer->is_readable(300); }
	void expect_advertised(uint32_t id) const { EXPECT_EQ(peer->next_message(RawClient::adv_imm).id, id); }
};

TEST_F(BatchingPeer, WithQueueBatchSendsLeaveWhenQdequeueFindsNoEvent)
{
	meet_batching();
	Memory one(10), two(20);
	send(b, one);
	send(b, two);
	EXPECT_FALSE(has_left());
	exs_event event{};
	EXPECT_EQ(exs_qdequeue(queue, &event, 1, 0), 0);
	expect_advertised(1);
	expect_advertised(2);
}

TEST_F(BatchingPeer, WithQueueBatchSendsLeaveBeforeQdequeueWaits)
{
	meet_batching();
	Memory from(10);
	const auto sending = send(b, from);
	std::thread answering([this] {
		expect_advertised(1);
		peer->say({.type = RawClient::ack, .id = 1, .length = 10});
	});
	EXPECT_EQ(wait(sending).error, 0);
	answering.join();
}

TEST_F(BatchingPeer, WithQueueBatchASendLeavesAtOnceWhileAThreadWaitsInQdequeue)
{
	meet_batching();
	std::atomic<pid_t> thread = 0;
	exs_event event{};
	std::thread waiter([&] {
		thread = ::gettid();
		EXPECT_EQ(exs_qdequeue(queue, &event, 1, patience), 1);
	});
	while (thread == 0)
		std::this_thread::yield();
	wait_asleep(thread);
	Memory from(10);
	const auto sending = send(b, from);
	expect_advertised(1);
	peer->say({.type = RawClient::ack, .id = 1, .length = 10});
	waiter.join();
	EXPECT_EQ(event.op, sending);
}

TEST_F(BatchingPeer, WithQueueBatchASendLeavesAtOnceAfterQfd)
{
	meet_batching();
	EXPECT_GE(exs_qfd(queue), 0);
	Memory from(10);
	send(b, from);
	expect_advertised(1);
}

TEST_F(BatchingPeer, WithQueueBatchASendLeavesWhenItsQueueIsAbandonedOrNoLongerBatches)
{
	meet_batching();
	Memory from(10);
	send(b, from);
	EXPECT_FALSE(has_left());
	EXPECT_EQ(exs_qset(queue, EXS_QUEUE_BATCH, 0), 0);
	expect_advertised(1);
	const auto other = exs_qcreate();
	EXPECT_EQ(exs_qset(other, EXS_QUEUE_BATCH, 1), 0);
	exs_send(b, from.handle, from.bytes.data(), 10, 0, other, nullptr);
	EXPECT_FALSE(has_left());
	EXPECT_EQ(exs_qabandon(other), 0);
	expect_advertised(2);
}

// A large message by a Read, and eight small ones behind it in one stream
class Splits : public Peer {
protected:
	static constexpr size_t small = 8, most = 5000, header = 24;

	void play(size_t length, size_t first)
	{
		std::vector<exs_op_t> receives{exs_recv(b, large->handle, large->bytes.data(), length, 0, queue, nullptr)};
		for (size_t i = 0; i < 8; i++)
			receives.push_back(exs_recv(b, smalls->handle, &smalls->bytes[i * small], small, 0, queue, nullptr));
		std::ranges::fill(large->bytes, uint8_t{0xee});
		std::ranges::fill(smalls->bytes, uint8_t{0xee});
		peer->say({.type = RawClient::adv, .id = ++id, .length = length, .address = 4096, .key = 1});
		peer->wait_read_request();
		peer->hold();
		peer->answer_read(octets(length, 1));
		for (size_t i = 0; i < 8; i++)
			peer->say({.type = RawClient::adv_imm, .id = ++id, .length = small}, octets(small, i + 2));
		peer->release(first);
		for (size_t i = 0; i < receives.size(); i++) {
			const auto event = wait(receives[i]);
			EXPECT_EQ(event.error, 0);
			EXPECT_EQ(event.length, i == 0 ? length : small);
			peer->next_message(RawClient::ack);
		}
		auto expected = octets(length, 1);
		expected.resize(large->bytes.size(), 0xee);
		EXPECT_EQ(large->bytes, expected);
		for (size_t i = 0; i < 8; i++)
			EXPECT_TRUE(std::ranges::equal(octets(small, i + 2), std::span(&smalls->bytes[i * small], small)));
	}

	static std::vector<uint8_t> octets(size_t length, size_t seed)
	{
		std::vector<uint8_t> bytes(length);
		for (size_t i = 0; i < length; i++)
			bytes[i] = static_cast<uint8_t>(i * 7 + i / 251 + seed * 31);
		return bytes;
	}

	std::optional<Memory> large, smalls;
	uint32_t id = 0;
};

// The library reads 512 octets beyond a large body, and 64 KiB beyond small ones
TEST_F(Splits, LargeAndSmallFramesArriveWhereverTheyAreSplit)
{
	meet();
	large.emplace(most);
	smalls.emplace(8 * small);
	for (const size_t length : {511, 512, 513, 4095, 4096, 4097, 5000})
		for (const size_t end : {size_t{0}, size_t{512}, length, length + 512})
			for (size_t first = end < 4 ? 0 : end - 4; first <= end + 4 && !HasFailure(); first++) {
				play(length, header + first);
				if (HasFailure())
					ADD_FAILURE() << length << " octets, split behind " << first;
			}
	for (size_t i = 0; i < 9; i++) // 72 small bodies
		play(511, 0);
	play(5000, header + 600);
	large.reset();
	smalls.reset();
}

TEST_F(Peer, CancelEndsAReceiveWhoseReadIsNotAnsweredAndDisconnectsThePeer)
{
	meet();
	Memory to(10000);
	const auto receiving = begin_read(to);
	EXPECT_TRUE(waits(receiving));
	EXPECT_EQ(exs_cancel(b, receiving), 0);
	EXPECT_EQ(wait(receiving).error, ECANCELED);
	EXPECT_TRUE(peer->is_dropped());
	EXPECT_EQ(exs_mderegister(to.handle), 0);
}

TEST_F(Peer, TheDeadlineOfACancelledReceiveDoesNotAffectTheNextReceive)
{
	meet();
	Memory to(10000), later(10000);
	const auto first = begin_read(to);
	const auto second = recv(b, later);
	peer->say({.type = RawClient::adv, .id = 2, .length = 10000, .address = 4096, .key = 1});
	peer->wait_read_request();
	EXPECT_EQ(exs_cancel(b, first), 0);
	EXPECT_EQ(exs_cancel(b, first), 0); // which does not begin anew
	EXPECT_TRUE(peer->answer_read(std::vector<uint8_t>(10000, 1)));
	EXPECT_EQ(wait(first).error, 0);
	usleep(400000); // the deadline of the first one is over, that of no other one has begun
	EXPECT_TRUE(waits(second));
	EXPECT_EQ(exs_cancel(b, second), 0);
	EXPECT_EQ(wait(second).error, ECANCELED);
}

TEST_F(Peer, RevocationOfMemoryEndsAReceiveWhoseReadIsNotAnswered)
{
	meet();
	Memory to(10000);
	const auto receiving = begin_read(to);
	const auto revoking = exs_mrevoke(to.handle, queue, nullptr);
	EXPECT_EQ(wait(receiving).error, ECANCELED);
	EXPECT_EQ(wait(revoking).error, 0);
}

// One REVOKE is under way at a time
TEST_F(Peer, APeerThatAnswersEachRevokeInTimeStaysConnected)
{
	meet();
	auto from = std::make_unique<Memory>(10000);
	std::vector<exs_op_t> sends;
	for (int i = 0; i < 6; i++) {
		sends.push_back(send(b, *from));
		peer->next_message(RawClient::adv);
	}
	sends.push_back(recv(b, *from, EXS_PERSISTENT));
	peer->next_message(RawClient::radv);
	const auto revoking = exs_mrevoke(from->handle, queue, nullptr);
	for (const auto sending : sends) {
		const uint32_t id = peer->next_message(RawClient::revoke).id;
		EXPECT_FALSE(peer->is_readable(150)); // half of its time
		peer->say({.type = RawClient::ack, .id = id, .status = 1});
		peer->say({.type = RawClient::revoked, .id = id});
		EXPECT_EQ(wait(sending).error, ECANCELED);
	}
	EXPECT_EQ(wait(revoking).error, 0);
	from = std::make_unique<Memory>(10000);
	send(b, *from);
	peer->next_message(RawClient::adv);
}

TEST_F(Peer, CancelEndsAStreamReceiveWhoseReadIsNotAnswered)
{
	meet(SOCK_STREAM);
	Memory to(10000);
	const auto receiving = begin_read(to, EXS_WAITALL);
	EXPECT_EQ(exs_cancel(b, receiving), 0);
	const auto event = wait(receiving);
	EXPECT_EQ(event.error, ECANCELED);
	EXPECT_EQ(event.length, 0U);
}

// An octet is acknowledged, and more are advertised; then the peer is gone
TEST_F(Peer, AStreamReceiveReturnsAnAcknowledgedOctetIfThePeerIsLostDuringARead)
{
	for (const int flags : {0, EXS_WAITALL}) {
		meet(SOCK_STREAM);
		Memory to(10000);
		const auto first = recv(b, to, flags), second = recv(b, to, flags);
		peer->say({.type = RawClient::adv_imm, .id = 1, .length = 1}, {'x'});
		peer->say({.type = RawClient::adv, .id = 2, .length = 5000, .address = 4096, .key = 1});
		peer->next_message(RawClient::ack);
		peer->wait_read_request();
		peer.reset();
		const auto event = wait(first);
		EXPECT_EQ(event.error, 0);
		EXPECT_EQ(event.length, 1U);
		EXPECT_EQ(to.bytes[0], 'x');
		EXPECT_EQ(wait(second).error, ECONNRESET);
		wait(exs_close(b, queue, nullptr));
		wait(exs_close(std::exchange(listener, 0), queue, nullptr));
	}
}

TEST_F(Peer, CancelEndsASendIntoAPersistentRecvIfThePeerDoesNotReadFromTcp)
{
	meet();
	Memory from(64 << 20);
	peer->say({.type = RawClient::radv, .id = 1, .length = from.bytes.size(), .address = 4096, .key = 1});
	const auto sending = send(b, from); // by Writes
	EXPECT_TRUE(waits(sending));
	EXPECT_EQ(exs_cancel(b, sending), 0);
	EXPECT_EQ(wait(sending).error, ECANCELED);
}

TEST_F(Peer, CloseCancelsASendWhoseDataThePeerRequestedAndDoesNotRead)
{
	meet();
	Memory from(64 << 20);
	const auto sending = send(b, from);
	const auto advert = peer->next_message(RawClient::adv);
	peer->request_read(advert.address, advert.key, static_cast<uint32_t>(advert.length));
	EXPECT_TRUE(peer->is_readable()); // so that the answer is on its way before CLOSE
	const auto closing = exs_close(b, queue, nullptr);
	usleep(50000);
	peer->say({.type = RawClient::close, .flags = RawClient::reply});
	EXPECT_EQ(wait(sending).error, ECANCELED);
	EXPECT_EQ(wait(closing).error, 0);
}

// ---- a peer that says nothing more and reads nothing more

class Silent : public Peer {
protected:
	enum class Uses { none, small, large }; // of its memory: can be revoked
	struct Case {
		const char *name;
		std::function<exs_op_t()> start;
		Uses uses = Uses::small;
		std::function<void()> answer{}; // to its REVOKE
	};

	void SetUp() override
	{
		Peer::SetUp();
		if (rdma_address == nullptr) {
			small.emplace(10000);
			large.emplace(64 << 20); // more than TCP holds
		}
	}
	void TearDown() override
	{
		small.reset();
		large.reset();
		Peer::TearDown();
	}

	void advertise(uint8_t flags = 0)
	{
		peer->say({.type = RawClient::adv, .flags = flags, .id = 1, .length = 10000, .address = 4096, .key = 1});
	}
	// Sends are written there, when this returns
	void open_memory()
	{
		Memory one(1);
		const auto receiving = recv(b, one);
		peer->say({.type = RawClient::radv, .id = 1, .length = large->bytes.size(), .address = 4096, .key = 1});
		peer->say({.type = RawClient::adv_imm, .id = 2, .length = 1}, {'x'});
		EXPECT_EQ(wait(receiving).error, 0);
	}
	exs_op_t sent(uint8_t type, exs_op_t op) const
	{
		peer->next_message(type);
		return op;
	}
	exs_op_t requested(exs_op_t op) const
	{
		peer->wait_read_request();
		return op;
	}
	exs_op_t send_file()
	{
		const int file = ::memfd_create("exs", MFD_CLOEXEC);
		EXPECT_EQ(::ftruncate(file, 10000), 0);
		const auto op = exs_sendfile(b, file, 0, 10000, queue, nullptr);
		::close(file);
		return op;
	}
	std::array<exs_part, 2> parts()
	{
		return {exs_part{small->handle, small->bytes.data(), 3000}, exs_part{small->handle, small->bytes.data() + 4000, 3000}};
	}

	std::vector<Case> cases();

	std::optional<Memory> small, large;
};

std::vector<Silent::Case> Silent::cases()
{
	return {
		{"an advertised send", [this] { return sent(RawClient::adv, send(b, *small)); }},
		{"an immediate send",
		 [this] { return sent(RawClient::adv_imm, exs_send(b, small->handle, small->bytes.data(), 9, 0, queue, nullptr)); }},
		{"a send without a credit",
		 [this] {
			 for (int i = 0; i < 16; i++)
				 sent(RawClient::adv, send(b, *large));
			 return send(b, *small);
		 }},
		{"a send of a file", [this] { return sent(RawClient::adv, send_file()); }, Uses::none},
		{"a send of two parts",
		 [this] { return sent(RawClient::adv, exs_sendv(b, parts().data(), 2, 0, queue, nullptr)); }, Uses::none},
		{"a persistent send", [this] { return sent(RawClient::adv, send(b, *small, EXS_PERSISTENT | EXS_NOTIFY)); }},
		{"a send into memory that the peer has not advertised",
		 [this] { return exs_send_offset(b, small->handle, small->bytes.data(), 100, 0, queue, nullptr, 0); }},
		{"a send by Writes",
		 [this] {
			 open_memory();
			 return send(b, *large);
		 },
		 Uses::large},
		{"a send that waits for Writes of another",
		 [this] {
			 open_memory();
			 send(b, *large);
			 return send(b, *small);
		 }},
		{"a receive without data", [this] { return recv(b, *small); }},
		{"a receive by a Read",
		 [this] {
			 advertise();
			 return requested(recv(b, *small));
		 }},
		{"a receive by two Reads",
		 [this] {
			 advertise();
			 return requested(requested(exs_recvv(b, parts().data(), 2, 0, queue, nullptr)));
		 }},
		{"a receive of persistent data",
		 [this] {
			 advertise(1);
			 return requested(recv(b, *small));
		 }},
		{"a receive of a part of persistent data",
		 [this] {
			 advertise(1);
			 return requested(exs_recv_offset(b, small->handle, small->bytes.data(), 100, 0, queue, nullptr, 10));
		 }},
		{"a receive that waits for a Read of another",
		 [this] {
			 advertise();
			 requested(recv(b, *large));
			 return recv(b, *small);
		 }},
		{"a persistent receive", [this] { return sent(RawClient::radv, recv(b, *small, EXS_PERSISTENT)); }},
		{"a persistent receive that begins by a Read",
		 [this] {
			 advertise();
			 return requested(recv(b, *small, EXS_PERSISTENT));
		 }},
		{"a persistent receive that begins by a Read, and the peer answers its REVOKE",
		 [this] {
			 advertise();
			 return requested(recv(b, *small, EXS_PERSISTENT));
		 },
		 Uses::small,
		 [this] {
			 peer->say({.type = RawClient::ack, .id = 1, .status = 1});
			 peer->say({.type = RawClient::revoked, .id = 1});
		 }},
		{"a poll", [this] { return exs_qpoll(b, EXS_POLLIN, queue, nullptr); }, Uses::none},
	};
}

TEST_F(Silent, CancelRevocationAndCloseEndEachOperationAfterExsCloseMs)
{
	enum { cancel, revoke, close, cancel_and_close };
	for (const Case &one : cases())
		for (const int way : {cancel, revoke, close, cancel_and_close}) {
			if (way == revoke && one.uses == Uses::none)
				continue;
			SCOPED_TRACE(testing::Message() << one.name << ", way " << way);
			meet();
			set(b, EXS_CLOSE_MS, 60);
			const auto op = one.start();
			const auto start = std::chrono::steady_clock::now();
			auto &memory = one.uses == Uses::large ? large : small;
			exs_op_t end = 0;
			if (way == cancel || way == cancel_and_close) {
				EXPECT_EQ(exs_cancel(b, op), 0);
			} else if (way == revoke) {
				end = exs_mrevoke(memory->handle, queue, nullptr);
			}
			if (one.answer && way != close)
				one.answer();
			const bool is_closed = way == close || way == cancel_and_close;
			if (is_closed)
				end = exs_close(b, queue, nullptr);
			EXPECT_EQ(wait(op).error, ECANCELED);
			if (end != 0) {
				EXPECT_EQ(wait(end).error, 0);
			}
			EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(4)); // the default is 5 s
			peer.reset();
			if (!is_closed)
				wait(exs_close(b, queue, nullptr)); // with all others
			if (way == revoke)
				memory.emplace(memory->bytes.size());
			wait(exs_close(std::exchange(listener, 0), queue, nullptr));
			events.clear();
			if (HasFailure())
				return;
		}
}

// Over RDMA: EXS_TEST_PEER is the begin of a command that plays tests/scenarios/exs-client.txt (tests/exs.sh)
class RdmaPeer : public Library {
protected:
	void SetUp() override
	{
		if (rdma_address == nullptr || command == nullptr)
			GTEST_SKIP() << "it needs a device and mpapeer";
		Library::SetUp();
	}
	void TearDown() override
	{
		if (rdma_address != nullptr && command != nullptr)
			Library::TearDown();
	}

	static std::string say(uint8_t type, uint32_t id, size_t length, uint64_t source, uint32_t key, const char *data = "")
	{
		std::array<char, 100> hex{};
		std::snprintf(hex.data(), hex.size(), "%02x000000%08x%016zx%016llx%08x00000000", type, id, length,
			      static_cast<unsigned long long>(source), key);
		return std::string("send fpdu send ") + hex.data() + data;
	}
	// It advertises data, leaves the Read of them unanswered, and advertises an octet when it has the Read
	std::future<int> start_peer(size_t length)
	{
		std::string line = std::string(command) + " --connect " + rdma_address + ':' + std::to_string(ntohs(address.sin_port));
		for (const std::string &setting : {"MESSAGE=" + say(RawClient::adv, 1, length, 4096, 1), std::string("MORE=expect read-request"),
						   "ANSWER=" + say(RawClient::adv_imm, 2, 1, 0, 0, "78")})
			line += " --set '" + setting + '\'';
		return std::async(std::launch::async, [line] { return std::system(line.c_str()); });
	}

	const char *const command = std::getenv("EXS_TEST_PEER");
};

TEST_F(RdmaPeer, CancelRevocationAndCloseEndAReceiveWhoseReadIsNotAnsweredAfterExsCloseMs)
{
	enum { cancel, revoke, close };
	options[EXS_CLOSE_MS] = 300;
	for (const int way : {cancel, revoke, close}) {
		SCOPED_TRACE(testing::Message() << "way " << way);
		listen(SOCK_SEQPACKET);
		const auto accepting = exs_accept(listener, queue, nullptr);
		Memory to(10000);
		auto peer = start_peer(to.bytes.size());
		b = wait(accepting).accepted;
		const auto receiving = recv(b, to);
		exs_pollfd octet{.fd = b, .events = EXS_POLLIN, .revents = 0};
		ASSERT_EQ(exs_poll(&octet, 1, patience), 1) << "the peer has no Read Request";
		const auto start = std::chrono::steady_clock::now();
		exs_op_t end = 0;
		if (way == cancel) {
			EXPECT_EQ(exs_cancel(b, receiving), 0);
		} else {
			end = way == revoke ? exs_mrevoke(to.handle, queue, nullptr) : exs_close(b, queue, nullptr);
		}
		EXPECT_EQ(wait(receiving).error, ECANCELED);
		if (end != 0) {
			EXPECT_EQ(wait(end).error, 0);
		}
		EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(4)); // the default is 5 s
		EXPECT_EQ(peer.get(), 0) << "the peer has not seen the end of the connection";
		if (way != close)
			wait(exs_close(b, queue, nullptr));
		wait(exs_close(std::exchange(listener, 0), queue, nullptr));
	}
}

// ---- half open

TEST_F(Peer, TwoHundredPeersThatOpenTogetherAreAllAccepted)
{
	listen(SOCK_SEQPACKET, 300);
	std::vector<std::unique_ptr<RawClient>> peers;
	for (int i = 0; i < 200; i++)
		peers.push_back(std::make_unique<RawClient>(address, SOCK_SEQPACKET, false));
	usleep(200000); // the round trip of READY
	for (const auto &one : peers)
		one->say(RawClient::ready);
	for (int i = 0; i < 200 && !HasFailure(); i++)
		EXPECT_EQ(wait(exs_accept(listener, queue, nullptr)).error, 0) << "peer " << i;
}

TEST_F(Peer, PeersThatNeverOpenMakeRoomForOneThatDoes)
{
	listen(SOCK_SEQPACKET, 300);
	std::vector<std::unique_ptr<RawClient>> silent;
	for (int i = 0; i < 128; i++)
		silent.push_back(std::make_unique<RawClient>(address, SOCK_SEQPACKET, false));
	peer = std::make_unique<RawClient>(address);
	const auto start = std::chrono::steady_clock::now();
	EXPECT_EQ(wait(exs_accept(listener, queue, nullptr)).error, 0);
	EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5)); // not the 10 s of a set-up
	uint8_t kind = 0;
	silent.front()->next(kind); // the hello
	EXPECT_TRUE(silent.front()->is_dropped());
}

// ---- a host that dies

TEST_F(Peer, AReceiverWithKeepaliveLosesAPeerWhoseHostForgetsTheConnection)
{
	options[EXS_KEEPALIVE_MS] = 1000;
	meet();
	Memory to(10);
	const auto receiving = recv(b, to);
	if (!peer->vanish())
		GTEST_SKIP() << "TCP_REPAIR needs CAP_NET_ADMIN";
	const int error = wait(receiving).error; // the host is there, and resets what it does not know
	EXPECT_TRUE(error == ECONNRESET || error == ETIMEDOUT) << error;
}

// ---- least right

TEST_F(Peer, AWriterIntoAPersistentReceiveIsIdleOnlyIfThePeersHostAcknowledgesNothing)
{
	using Clock = std::chrono::steady_clock;
	options[EXS_IDLE_MS] = 1500;
	meet();
	peer->say({.type = RawClient::radv, .id = 1, .length = 10, .address = 4096, .key = 1});
	Memory from(10);
	const auto write_for = [&](Clock::duration time) {
		for (const auto end = Clock::now() + time; Clock::now() < end;) {
			const auto sending = exs_send_offset(b, from.handle, from.bytes.data(), from.bytes.size(), 0, queue, nullptr, 0);
			const int error = sending < 0 ? errno : wait(sending).error;
			if (error != 0)
				return error;
			EXPECT_TRUE(waits(sending)); // 50 ms
		}
		return 0;
	};
	EXPECT_EQ(write_for(std::chrono::milliseconds(3500)), 0);
	peer->go_deaf();
	EXPECT_EQ(write_for(std::chrono::seconds(10)), ETIMEDOUT);
}

TEST_F(Peer, APeerThatReadsOutsideOfTheMemoryOfASendIsDisconnected)
{
	for (const int beyond : {-1, 1}) {
		meet();
		Memory region(10000);
		const auto sending = exs_send(b, region.handle, region.bytes.data() + 1000, 5000, 0, queue, nullptr);
		const auto advert = peer->next_message(RawClient::adv);
		EXPECT_EQ(advert.length, 5000U);
		peer->request_read(advert.address, advert.key, 5000);
		uint8_t kind = 0;
		EXPECT_EQ(peer->next(kind).size(), 5000U);
		peer->request_read(advert.address + static_cast<uint64_t>(beyond), advert.key, 5000);
		EXPECT_TRUE(peer->is_dropped());
		EXPECT_EQ(wait(sending).error, EPROTO);
		exs_close(b, 0, nullptr);
		exs_close(std::exchange(listener, 0), 0, nullptr);
	}
}

TEST_F(Peer, APeerThatReadsTheMemoryOfAnAcknowledgedSendIsDisconnected)
{
	meet();
	Memory region(10000);
	const auto first = send(b, region), second = send(b, region);
	const auto advert = peer->next_message(RawClient::adv);
	peer->say({.type = RawClient::ack, .id = 1, .length = region.bytes.size()});
	EXPECT_EQ(wait(first).error, 0);
	EXPECT_NE(peer->next_message(RawClient::adv).key, advert.key);
	peer->request_read(advert.address, advert.key, 1);
	EXPECT_TRUE(peer->is_dropped());
	EXPECT_EQ(wait(second).error, EPROTO);
}

// ---- TCP where RDMA has the port

class NextPort : public Peer {
protected:
	~NextPort() override
	{
		close(other);
		close(next);
	}

	// Something that is not of libexs at a port; next: a listener of TCP, or libexs's, at the one that follows
	void occupy(bool with_library)
	{
		for (int i = 0; i < 100; i++) {
			close(std::exchange(other, listen_raw(loopback())));
			at = loopback(static_cast<uint16_t>(port_of(other) + 1));
			if (with_library ? listen_library() : (next = listen_raw(at)) >= 0)
				break;
		}
		at = loopback(port_of(other));
		rejecter = std::thread([this] {
			char octets[64];
			const int connection = ::accept(other, nullptr, nullptr);
			EXPECT_GT(::recv(connection, octets, sizeof(octets), 0), 0);
			::close(connection);
		});
	}
	void TearDown() override
	{
		if (rejecter.joinable())
			rejecter.join();
		Peer::TearDown();
	}

	int connect_error()
	{
		a = exs_socket(AF_INET, SOCK_SEQPACKET, EXS_PROTO_ANY);
		return wait(exs_connect(a, raw(at), sizeof(at), queue, nullptr)).error;
	}

	static uint16_t port_of(int fd)
	{
		sockaddr_in name{};
		socklen_t length = sizeof(name);
		::getsockname(fd, reinterpret_cast<sockaddr *>(&name), &length);
		return ntohs(name.sin_port);
	}

	int other = -1, next = -1;
	sockaddr_in at{};
	std::thread rejecter;

private:
	static int listen_raw(const sockaddr_in &address)
	{
		const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
		const timeval deadline{.tv_sec = patience / 1000, .tv_usec = 0}; // of accept()
		::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &deadline, sizeof(deadline));
		if (::bind(fd, raw(address), sizeof(address)) == 0 && ::listen(fd, 5) == 0)
			return fd;
		::close(fd);
		return -1;
	}
	bool listen_library()
	{
		listener = exs_socket(AF_INET, SOCK_SEQPACKET, EXS_PROTO_ANY);
		return exs_bind(listener, raw(at), sizeof(at)) == 0 && exs_listen(listener, 5) == 0;
	}
};

TEST_F(NextPort, AClientRejectedAtAPortConnectsToPortPlus1AndSendsTheRequestedPortInItsHello)
{
	occupy(false);
	std::thread server([this] {
		const int connection = ::accept(next, nullptr, nullptr);
		std::array<uint8_t, 32> hello{};
		EXPECT_EQ(::recv(connection, hello.data(), hello.size(), MSG_WAITALL), 32);
		EXPECT_EQ(hello[14] << 8 | hello[15], port_of(other));
		const std::array<uint8_t, 32> answer{0x4c, 0x45, 0x58, 0x53, 1, 1, 0, 0, 0, 16, 0, 16, 0, 16};
		::send(connection, answer.data(), answer.size(), 0);
		::recv(connection, hello.data(), hello.size(), 0);
		::close(connection);
	});
	EXPECT_EQ(connect_error(), 0);
	server.join();
}

TEST_F(NextPort, AListenerRejectsAHelloWithAPortOtherThanItsOwn)
{
	occupy(true);
	EXPECT_EQ(connect_error(), ECONNRESET);
	EXPECT_TRUE(waits(exs_accept(listener, queue, nullptr)));
	EXPECT_EQ(exs_fcntl(listener, EXS_GET, EXS_TCP_PORT), ntohs(at.sin_port) + 1);
}

} // namespace
