// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//
// The library while its allocations fail. Over TCP: the allocations of a device cannot be told from others.
#include "failing_new.h"
#include "library.h"

#include <atomic>
#include <memory>

namespace {

// Allocations of the library fail: in the thread of the test from one on (or this one alone), in the other threads all
thread_local bool is_testing = false;
std::atomic<int> left_to_fail = -1; // before the first one that fails; negative: none does
std::atomic<bool> fails_on = false, others_fail = false;

} // namespace

static bool must_fail(const void *caller)
{
	if (!is_testing)
		return others_fail && is_of("libexs.so", caller);
	if (left_to_fail < 0 || !is_of("libexs.so", caller) || --left_to_fail >= 0)
		return false;
	if (fails_on)
		left_to_fail = 0;
	return true;
}

namespace {

using namespace exs_test;

class Exhausted : public Library {
protected:
	void SetUp() override
	{
		if (rdma_address != nullptr)
			GTEST_SKIP() << "the allocations of a device cannot be told from others";
		is_testing = true;
		options[EXS_CLOSE_MS] = 1000;
		Library::SetUp();
	}
	void TearDown() override
	{
		others_fail = is_testing = false;
		left_to_fail = -1;
		if (rdma_address == nullptr)
			Library::TearDown();
	}

	// The call fails by each of its allocations, and at last by none; prepare() and check() do not
	template <typename Prepare, typename Call, typename Check>
	void fail_each(const Prepare &prepare, const Call &call, const Check &check)
	{
		for (const bool on : {false, true}) {
			fails_on = on;
			bool failed = true;
			int which = 0;
			for (; failed && !HasFailure(); which++) {
				ASSERT_LT(which, 1000);
				prepare();
				left_to_fail = which;
				const int64_t result = call();
				const int error = errno;
				failed = left_to_fail.exchange(-1) < (on ? 1 : 0);
				EXPECT_TRUE(result > 0 || error == ENOMEM) << strerror(error);
				check(result);
				if (HasFailure())
					ADD_FAILURE() << "allocation " << which << (on ? " and all later ones" : "");
			}
			EXPECT_GT(which, 1) << "no allocation of the library was found";
		}
	}

	void close_both()
	{
		exs_close(a, 0, nullptr);
		wait(exs_close(b, queue, nullptr));
	}
};

TEST_F(Exhausted, AReceiveThatFailsLeavesItsMemoryUnused)
{
	for (const bool in_parts : {false, true}) {
		std::unique_ptr<Memory> one, other;
		fail_each(
			[&] {
				connect();
				one = std::make_unique<Memory>(10000);
				other = std::make_unique<Memory>(10000);
			},
			[&] {
				const std::array parts{exs_part{one->handle, one->bytes.data(), 10000}, exs_part{other->handle, other->bytes.data(), 10000}};
				return in_parts ? exs_recvv(b, parts.data(), 2, 0, queue, nullptr) : recv(b, *one);
			},
			[&](exs_op_t op) {
				if (op > 0) {
					exs_cancel(b, op);
					wait(op);
				}
				EXPECT_EQ(exs_mderegister(one->handle), 0) << strerror(errno);
				EXPECT_EQ(exs_mderegister(other->handle), 0) << strerror(errno);
				close_both();
				for (const exs_event &event : std::exchange(events, {}))
					EXPECT_NE(event.type, EXS_EVENT_RECV) << "of a call that has failed";
			});
	}
}

TEST_F(Exhausted, ARevocationThatFailsCanBeRepeatedAndThenEnds)
{
	std::unique_ptr<Memory> to;
	exs_op_t receiving = 0;
	fail_each(
		[&] {
			connect();
			to = std::make_unique<Memory>(10000);
			receiving = recv(b, *to);
		},
		[&] { return exs_mrevoke(to->handle, queue, nullptr); },
		[&](exs_op_t op) {
			if (op < 0)
				op = exs_mrevoke(to->handle, queue, nullptr);
			EXPECT_NE(wait(receiving).error, 0);
			EXPECT_EQ(wait(op).error, 0);
			close_both();
		});
}

TEST_F(Exhausted, ACloseThatFailsCanBeRepeatedAndThenEnds)
{
	Memory to(10000);
	exs_op_t receiving = 0;
	fail_each(
		[&] {
			connect();
			receiving = recv(b, to);
		},
		[&] { return exs_close(b, queue, nullptr); },
		[&](exs_op_t op) {
			if (op < 0)
				op = exs_close(b, queue, nullptr);
			EXPECT_NE(wait(receiving).error, 0);
			wait(op);
			exs_close(a, 0, nullptr);
		});
}

TEST_F(Exhausted, EachOperationEndsWithAnEventIfItsConnectionEndsWithoutMemory)
{
	connect();
	Memory to(10000);
	std::vector<exs_op_t> receives;
	for (int i = 0; i < 200; i++)
		receives.push_back(recv(b, to));
	others_fail = true;
	const auto closing = exs_close(a, queue, nullptr);
	for (const auto op : receives)
		wait(op);
	wait(closing);
	others_fail = false;
	wait(exs_close(b, queue, nullptr));
	connect();
}

TEST_F(Exhausted, AnAcceptThatFailsLeavesTheConnectionToTheNextOne)
{
	listen(SOCK_SEQPACKET);
	exs_fd_t client = 0;
	fail_each(
		[&] {
			client = exs_socket(AF_INET, SOCK_SEQPACKET, EXS_PROTO_ANY);
			wait(exs_connect(client, raw(address), sizeof(address), queue, nullptr));
			exs_pollfd ready{.fd = listener, .events = EXS_POLLIN, .revents = 0};
			EXPECT_EQ(exs_poll(&ready, 1, patience), 1);
		},
		[&] { return exs_accept(listener, queue, nullptr); },
		[&](exs_op_t op) {
			const auto event = wait(op > 0 ? op : exs_accept(listener, queue, nullptr));
			EXPECT_EQ(event.error, 0);
			exs_close(event.accepted, 0, nullptr);
			wait(exs_close(client, queue, nullptr));
		});
}

} // namespace
