// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//
// The things that sockets share cost each of them the same, however many there are
#include "library.h"

#include "engine.h"
#include "queue.h"
#include "region.h"

#include <array>
#include <memory>
#include <thread>
#include <vector>

namespace {

using namespace exs_test;

int allocated = 0; // of sockets that the region knows

template <typename T> struct Counting {
	using value_type = T;
	Counting() = default;
	template <typename U> Counting(const Counting<U> & /*other*/) {}
	T *allocate(size_t count)
	{
		allocated++;
		return std::allocator<T>().allocate(count);
	}
	void deallocate(T *memory, size_t count)
	{
		allocated--;
		std::allocator<T>().deallocate(memory, count);
	}
	template <typename U> bool operator==(const Counting<U> & /*other*/) const { return true; }
};

// The region looks only at who owns it
std::shared_ptr<libexs::Socket> make_socket()
{
	const auto owner = std::allocate_shared<char>(Counting<char>());
	return {owner, reinterpret_cast<libexs::Socket *>(owner.get())};
}

TEST(Costs, TheTimeOfTheFirstUseOfARegionDoesNotGrowWithItsSockets)
{
	libexs::Region region(0, 1, 0);
	std::vector<std::shared_ptr<libexs::Socket>> sockets;
	const auto use = [&] {
		sockets.push_back(make_socket());
		EXPECT_TRUE(region.enter(sockets.back()));
	};
	const auto use_by = [&use](int count) {
		for (int i = 0; i < count; i++)
			use();
	};
	expect_constant_cost(100, use_by, use);
}

TEST(Costs, ARegionForgetsSocketsThatAreGone)
{
	libexs::Region region(0, 1, 0);
	for (int i = 0; i < 1000; i++)
		EXPECT_TRUE(region.enter(make_socket()));
	EXPECT_LT(allocated, 100);
	EXPECT_FALSE(region.socket_after(nullptr));
}

struct CountingSender : libexs::Sender {
	void send_now() override { sends++; }
	int sends = 0;
};

class Batching : public testing::Test {
protected:
	void SetUp() override { ASSERT_EQ(queue->set(EXS_QUEUE_BATCH, 1), 0); }

	libexs::Engine engine;
	libexs::Engines engines;
	const std::shared_ptr<libexs::Queue> queue = std::make_shared<libexs::Queue>(engine, engines);
};

TEST_F(Batching, TheTimeToBatchASendDoesNotGrowWithTheSocketsThatBatch)
{
	std::vector<std::shared_ptr<CountingSender>> senders;
	const auto start = [&](int count) {
		for (int i = 0; i < count; i++) {
			senders.push_back(std::make_shared<CountingSender>());
			EXPECT_TRUE(queue->send_later(senders.back()));
		}
	};
	const auto again = [&] { EXPECT_TRUE(queue->send_later(senders.back())); };
	expect_constant_cost(1000, start, again);
	queue->send();
	for (const auto &sender : senders)
		ASSERT_EQ(sender->sends, 1);
}

// Threads begin and end operations while others take their events
TEST(Queues, EachOperationOfSeveralThreadsHasAPlaceForItsEvent)
{
	constexpr int threads = 3, rounds = 20000;
	libexs::Engine engine;
	libexs::Engines engines;
	const auto queue = std::make_shared<libexs::Queue>(engine, engines);
	std::vector<std::jthread> all;
	for (int i = 0; i < threads; i++)
		all.emplace_back([&queue] {
			const exs_event event{};
			for (int round = 0; round < rounds; round++) {
				const int count = 1 + round % 7;
				for (int j = 0; j < count; j++)
					queue->enter();
				if (round % 3 == 0)
					queue->leave();
				for (int j = round % 3 == 0 ? 1 : 0; j < count; j++)
					EXPECT_TRUE(queue->leave(event));
			}
		});
	int64_t expected = 0;
	for (int round = 0; round < rounds; round++)
		expected += threads * (round % 3 == 0 ? round % 7 : 1 + round % 7);
	std::array<exs_event, 64> events{};
	while (expected > 0) {
		const int taken = queue->take(events.data(), events.size(), patience);
		ASSERT_GT(taken, 0);
		expected -= taken;
	}
	all.clear();
	EXPECT_EQ(expected, 0);
	EXPECT_FALSE(queue->in_use());
}

// Also while another queue has it, and after it was called
TEST_F(Batching, ASenderOfTwoQueuesIsCalledByBoth)
{
	const auto other = std::make_shared<libexs::Queue>(engine, engines);
	ASSERT_EQ(other->set(EXS_QUEUE_BATCH, 1), 0);
	const auto sender = std::make_shared<CountingSender>();
	for (int round = 0; round < 3; round++) {
		sender->sends = 0;
		queue->send_later(sender);
		other->send_later(sender);
		queue->send();
		EXPECT_EQ(sender->sends, 1);
		queue->send_later(sender);
		other->send();
		EXPECT_EQ(sender->sends, 2);
		queue->send();
		EXPECT_EQ(sender->sends, 3);
	}
}

} // namespace
