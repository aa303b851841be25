// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//
// Registrations that several owners share, with functions of verbs that count
#include "../src/domain.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <latch>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#undef ibv_reg_mr

namespace {

std::atomic<int> domains = 0, registrations = 0; // that there are
std::atomic<int> registered = 0;		 // ever
std::atomic<bool> refuses = false;
std::array<ibv_context, 2> devices{};
constexpr uint64_t table = 0x10000, length = 4096;
constexpr int access_flags = IBV_ACCESS_REMOTE_READ;

ibv_mr *make_mr(ibv_pd *pd)
{
	if (refuses) {
		errno = ENOMEM;
		return nullptr;
	}
	registered++;
	registrations++;
	std::atomic_ref(pd->handle)++; // its registrations
	auto *mr = new ibv_mr{};
	mr->pd = pd;
	return mr;
}

} // namespace

extern "C" {

ibv_pd *ibv_alloc_pd(ibv_context *device)
{
	domains++;
	auto *pd = new ibv_pd{};
	pd->context = device;
	return pd;
}

int ibv_dealloc_pd(ibv_pd *pd)
{
	EXPECT_EQ(pd->handle, 0U) << "registrations in a protection domain that goes";
	domains--;
	delete pd;
	return 0;
}

ibv_mr *ibv_reg_mr(ibv_pd *pd, void * /*address*/, size_t /*length*/, int /*access*/)
{
	return make_mr(pd);
}

ibv_mr *ibv_reg_mr_iova2(ibv_pd *pd, void * /*address*/, size_t /*length*/, uint64_t /*iova*/, unsigned /*access*/)
{
	return make_mr(pd);
}

int ibv_dereg_mr(ibv_mr *mr)
{
	registrations--;
	std::atomic_ref(mr->pd->handle)--;
	delete mr;
	return 0;
}
}

namespace {

using namespace libexs;

class Shared : public testing::Test {
protected:
	void SetUp() override { registered = 0; }
	void TearDown() override
	{
		refuses = false;
		EXPECT_EQ(registrations, 0);
		EXPECT_EQ(domains, 0);
	}
	Domains all;
};

TEST_F(Shared, ConnectionsOfADeviceHaveOneProtectionDomainUntilTheLastOneEnds)
{
	auto first = all.of(&devices[0]), second = all.of(&devices[0]);
	const auto other = all.of(&devices[1]);
	EXPECT_EQ(first, second);
	EXPECT_NE(first, other);
	EXPECT_EQ(domains, 2);
	first.reset();
	EXPECT_EQ(domains, 2);
	second.reset();
	EXPECT_EQ(domains, 1);
	EXPECT_NE(all.of(&devices[0]), nullptr);
	EXPECT_EQ(domains, 1);
}

TEST_F(Shared, ThreeOwnersOfOneRangeRegisterItOnceAndTheLastOwnerDeregistersIt)
{
	std::vector<std::shared_ptr<Registration>> owners;
	for (int i = 0; i < 3; i++) {
		owners.push_back(all.of(&devices[0])->shared(table, length, access_flags));
		ASSERT_NE(owners.back()->get(), nullptr);
	}
	EXPECT_EQ(owners[0]->get(), owners[2]->get());
	EXPECT_EQ(registered, 1);
	owners.erase(owners.begin(), owners.begin() + 2);
	EXPECT_EQ(registrations, 1);
	owners.clear();
	EXPECT_EQ(registrations, 0);
	const auto again = all.of(&devices[0])->shared(table, length, access_flags);
	EXPECT_NE(again->get(), nullptr);
	EXPECT_EQ(registered, 2);
}

TEST_F(Shared, MemoryOfAnotherRangeOtherRightsOrAnotherDeviceIsRegisteredByItself)
{
	const std::vector<std::shared_ptr<Registration>> owners{
		all.of(&devices[0])->shared(table, length, access_flags),
		all.of(&devices[0])->shared(table, length - 1, access_flags),
		all.of(&devices[0])->shared(table + 1, length, access_flags),
		all.of(&devices[0])->shared(table, length, access_flags | IBV_ACCESS_LOCAL_WRITE),
		all.of(&devices[1])->shared(table, length, access_flags)};
	for (const auto &owner : owners)
		EXPECT_NE(owner->get(), nullptr);
	EXPECT_EQ(registrations, 5);
}

TEST_F(Shared, ARegistrationThatFailedIsTriedAgainByTheNextOwner)
{
	const auto domain = all.of(&devices[0]);
	const auto first = domain->shared(table, length, access_flags);
	refuses = true;
	EXPECT_EQ(first->get(), nullptr);
	EXPECT_EQ(errno, ENOMEM);
	refuses = false;
	EXPECT_NE(domain->shared(table, length, access_flags)->get(), nullptr);
	EXPECT_EQ(registrations, 1);
}

// With ThreadSanitizer, too
TEST_F(Shared, ThreadsThatTakeAndLeaveOneRangeLeaveNoRegistration)
{
	constexpr int threads = 4;
	std::latch begin(threads);
	std::vector<std::jthread> running;
	for (int i = 0; i < threads; i++)
		running.emplace_back([this, &begin] {
			begin.arrive_and_wait();
			for (int round = 0; round < 2000; round++) {
				const auto owner = all.of(&devices[0])->shared(table, length, access_flags);
				EXPECT_EQ(owner->get()->pd->context, &devices[0]);
			}
		});
}

} // namespace
