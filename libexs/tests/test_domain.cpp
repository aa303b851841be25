// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//
// Registrations that several owners share, and the engine, with functions of verbs, rdma_cm and epoll that count or fail
#include "../src/domain.h"
#include "../src/engine.h"
#include "../src/spare.h"
#include "../src/tcp_link.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <climits>
#include <condition_variable>
#include <csignal>
#include <ctime>
#include <functional>
#include <future>
#include <latch>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#undef ibv_reg_mr

namespace {

using namespace std::chrono_literals;

std::atomic<int> domains = 0, registrations = 0; // that there are
std::atomic<int> registered = 0;		 // ever
std::atomic<bool> refuses = false;
std::atomic<int> most = INT_MAX; // that there may be
std::function<void()> pin, unpin; // what else ibv_reg_mr() does, and ibv_dereg_mr()
std::array<ibv_context, 2> devices{};
std::atomic<int> ids = 0;
std::atomic<bool> watches = true; // epoll_ctl()
constexpr uint64_t table = 0x10000, length = 4096;
constexpr int access_flags = IBV_ACCESS_REMOTE_READ;

// In rdma_get_cm_event()
class Handling {
public:
	// Returns when somebody disturbs it, or after a while in which nobody did
	void handle()
	{
		std::unique_lock lock(mutex_);
		begun_++;
		disturbed_ = false;
		now_ = true;
		changed_.notify_all();
		changed_.wait_for(lock, 2ms, [this] { return disturbed_; });
		now_ = false;
	}
	// False: nothing is handled now
	bool disturb()
	{
		const std::lock_guard lock(mutex_);
		disturbed_ = disturbed_ || now_;
		changed_.notify_all();
		return now_;
	}
	// Returns when one more has begun; false: it does not
	bool wait()
	{
		std::unique_lock lock(mutex_);
		return changed_.wait_for(lock, 20s, [this, before = begun_] { return begun_ != before; });
	}

private:
	std::mutex mutex_; // of all below
	std::condition_variable changed_;
	int begun_ = 0;
	bool now_ = false, disturbed_ = false;
} handling;

ibv_mr *make_mr(ibv_pd *pd)
{
	if (refuses || registrations >= most) {
		errno = ENOMEM;
		return nullptr;
	}
	if (pin)
		pin();
	registered++;
	registrations++;
	std::atomic_ref(pd->handle)++; // its registrations
	auto *mr = new ibv_mr{};
	mr->pd = pd;
	return mr;
}

} // namespace

extern "C" {

// Its descriptor is readable, but the event is gone when it is handled
rdma_event_channel *rdma_create_event_channel()
{
	return new rdma_event_channel{.fd = ::eventfd(1, EFD_CLOEXEC)};
}

void rdma_destroy_event_channel(rdma_event_channel *channel)
{
	::close(channel->fd);
	delete channel;
}

int rdma_get_cm_event(rdma_event_channel *channel, rdma_cm_event ** /*event*/)
{
	handling.handle();
	EXPECT_GE(channel->fd, 0);
	errno = EAGAIN;
	return -1;
}

int rdma_ack_cm_event(rdma_cm_event * /*event*/)
{
	return 0;
}

int rdma_create_id(rdma_event_channel * /*channel*/, rdma_cm_id **id, void * /*context*/, rdma_port_space /*ps*/)
{
	EXPECT_FALSE(handling.disturb()) << "an id is made while librdmacm handles an event";
	ids++;
	*id = new rdma_cm_id{};
	return 0;
}

void rdma_destroy_qp(rdma_cm_id *id)
{
	EXPECT_FALSE(handling.disturb()) << "a queue pair is destroyed while librdmacm handles an event";
	id->qp = nullptr;
}

int rdma_destroy_id(rdma_cm_id *id)
{
	EXPECT_EQ(domains, 0) << "an id is destroyed before the domain that needs it";
	ids--;
	delete id;
	return 0;
}

int epoll_ctl(int epoll, int operation, int fd, epoll_event *event) noexcept
{
	if (operation == EPOLL_CTL_ADD && !watches) {
		errno = ENOSPC;
		return -1;
	}
	return static_cast<int>(::syscall(SYS_epoll_ctl, epoll, operation, fd, event));
}

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
	if (unpin)
		unpin();
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
		most = INT_MAX;
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

// Ten times as many take ten times as long, not a hundred times
TEST_F(Shared, TimeToShareARangeDoesNotGrowWithTheRangesOfADevice)
{
	const auto cost = [this](uint64_t ranges) {
		const auto domain = all.of(&devices[0]);
		std::vector<std::shared_ptr<Registration>> owners;
		const std::clock_t start = std::clock();
		for (uint64_t i = 0; i < ranges; i++)
			owners.push_back(domain->shared(table + i, length, access_flags));
		return static_cast<double>(std::clock() - start);
	};
	cost(4000);
	EXPECT_LT(cost(40000), 40 * cost(4000));
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

// The memory of one connection
class Connection : public Shared {
protected:
	void SetUp() override
	{
		Shared::SetUp();
		exposed.open(Domain::make(&devices[0]));
	}
	int add(bool shared = false) { return exposed.add(table, length, access_flags, shared, key); }
	void close()
	{
		ids++;
		exposed.close(Verbs<rdma_cm_id>(new rdma_cm_id{}));
	}

	Exposed exposed;
	Exposed::Key key;
};

TEST_F(Connection, MemoryIsDeregisteredWhenItIsWithdrawnOrTheConnectionEnds)
{
	EXPECT_EQ(add(), 0);
	EXPECT_EQ(add(true), 0);
	EXPECT_EQ(registrations, 2);
	exposed.remove(key.mr);
	exposed.remove(key.mr);
	EXPECT_EQ(registrations, 1);
	refuses = true;
	EXPECT_EQ(add(), ENOMEM);
	refuses = false;
	close();
	EXPECT_EQ(registrations, 0);
	EXPECT_EQ(ids, 0);
	EXPECT_EQ(add(), ENOTCONN);
}

TEST_F(Connection, MemoryTakesThePlaceOfTheReserveOfItsKindOnce)
{
	EXPECT_EQ(exposed.reserve(length, access_flags), 0);
	EXPECT_EQ(exposed.reserve(length, IBV_ACCESS_LOCAL_WRITE), 0);
	most = registrations.load();
	EXPECT_EQ(exposed.reserve(length, IBV_ACCESS_REMOTE_WRITE), ENOMEM);
	EXPECT_EQ(add(), 0);
	EXPECT_EQ(registrations, 2);
	EXPECT_EQ(add(), ENOMEM);
	close();
	EXPECT_EQ(registrations, 0);
}

TEST_F(Connection, ANewConnectionDoesNotGetThePlaceOfAReserveThatMemoryTakes)
{
	EXPECT_EQ(exposed.reserve(length, access_flags), 0);
	most = 1;
	std::future<int> other;
	unpin = [&] {
		unpin = nullptr;
		other = std::async(std::launch::async, [] {
			Exposed coming;
			coming.open(Domain::make(&devices[0]));
			const std::lock_guard lock(pin_mutex);
			return coming.reserve(length, access_flags);
		});
		other.wait_for(100ms); // which would be enough
	};
	EXPECT_EQ(add(), 0);
	EXPECT_EQ(other.get(), ENOMEM);
	close();
}

// By another thread, which takes long for gigabytes
TEST_F(Connection, TheEndOfAConnectionDoesNotWaitForMemoryThatIsBeingPinned)
{
	std::latch pins(2);
	std::promise<void> ended;
	pin = [&pins, end = ended.get_future().share()] {
		pins.count_down();
		EXPECT_EQ(end.wait_for(20s), std::future_status::ready) << "the end has waited";
	};
	std::array<int, 2> errors{};
	{
		std::vector<std::jthread> adding;
		for (int &error : errors)
			adding.emplace_back([this, &error] {
				Exposed::Key own;
				error = exposed.add(table, length, access_flags, false, own);
			});
		pins.wait();
		close();
		EXPECT_EQ(ids, 1);
		ended.set_value();
	}
	pin = nullptr;
	EXPECT_EQ(errors, (std::array{ENOTCONN, ENOTCONN}));
	EXPECT_EQ(ids, 0);
}

// The kernel would give a destroyed id's number to the new one, and librdmacm ask for its device: it crashed
TEST(Ids, AnIdIsNotMadeWhileLibrdmacmHandlesAnEvent)
{
	Engine engine;
	for (int i = 0; i < 50; i++) {
		rdma_cm_id *const id = engine.make_id(1); // the first one opens the channel
		ASSERT_NE(id, nullptr);
		rdma_destroy_id(id);
		ASSERT_TRUE(handling.wait());
	}
	EXPECT_EQ(ids, 0);
}

// librdmacm moves it to ERROR when the connection is refused or lost: it crashed
TEST(Ids, AQueuePairIsNotDestroyedWhileLibrdmacmHandlesAnEvent)
{
	Engine engine;
	rdma_cm_id *const id = engine.make_id(1);
	ASSERT_NE(id, nullptr);
	for (int i = 0; i < 50; i++) {
		ASSERT_TRUE(handling.wait());
		engine.destroy_queue_pair(id);
	}
	rdma_destroy_id(id);
	EXPECT_EQ(ids, 0);
}

TEST(Engines, ATaskWithoutMemoryDoesNotEndTheProgram)
{
	std::latch done(1); // it outlives the thread that counts it down
	Engine engine;
	engine.run([] { throw std::bad_alloc(); });
	engine.run([&done] { done.count_down(); });
	done.wait();
}

// While descriptors are ready, ppoll() handles no signal
TEST(Engines, APendingSignalEndsAWaitForDescriptorsThatAreReady)
{
	static volatile std::sig_atomic_t handled = 0;
	struct sigaction action {}, old_action {};
	action.sa_handler = [](int) { handled = 1; };
	::sigaction(SIGUSR1, &action, &old_action);
	sigset_t held, mask;
	sigemptyset(&held);
	sigaddset(&held, SIGUSR1);
	::pthread_sigmask(SIG_BLOCK, &held, &mask);
	const Descriptor ready(::eventfd(1, EFD_CLOEXEC));
	pollfd one{.fd = ready.get(), .events = POLLIN, .revents = 0};
	EXPECT_EQ(poll_for(std::span(&one, 1), -1, &mask), 1);
	::pthread_kill(::pthread_self(), SIGUSR1);
	EXPECT_EQ(poll_for(std::span(&one, 1), -1, nullptr), 1);
	EXPECT_EQ(handled, 0);
	EXPECT_EQ(poll_for(std::span(&one, 1), -1, &mask), -1);
	EXPECT_EQ(errno, EINTR);
	EXPECT_EQ(handled, 1);
	::pthread_sigmask(SIG_SETMASK, &mask, nullptr);
	::sigaction(SIGUSR1, &old_action, nullptr);
}

TEST(Spares, MemoryOfAPeakIsGivenBack)
{
	constexpr size_t count = 10000, size = 64;
	Spare spare;
	std::vector<void *> pieces;
	for (size_t i = 0; i < count; i++)
		pieces.push_back(spare.take(size));
	for (void *piece : pieces)
		spare.put(piece, size);
	EXPECT_LE(spare.kept(), Spare::most);
	const size_t before = spare.kept();
	void *const again = spare.take(size);
	EXPECT_EQ(spare.kept(), before - (before != 0 ? size : 0)); // with AddressSanitizer nothing is kept
	spare.put(again, size);
	EXPECT_EQ(spare.kept(), before);
}

class Idle : public Actor {
	void on_ready(uint64_t /*token*/, uint32_t /*events*/) override {}
	void on_cm(uint64_t /*token*/, const CmEvent & /*event*/) override {}
	void on_timer(uint64_t /*token*/) override {}
	void on_failure() noexcept override {}
};

TEST(Links, AMoveToAnEngineThatCannotWatchTheDescriptorIsRefused)
{
	Engine first, second;
	std::array<int, 2> pair{};
	ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair.data()), 0);
	const auto actor = std::make_shared<Idle>();
	TcpLink link(first, actor, Descriptor(pair[0]), {.count = 1, .data = 0});
	const Descriptor peer(pair[1]);
	watches = false;
	EXPECT_FALSE(link.move_to(second, actor));
	watches = true;
	EXPECT_EQ(first.actors().size(), 1U);
	EXPECT_EQ(second.actors().size(), 0U);
	EXPECT_TRUE(link.move_to(second, actor));
	EXPECT_EQ(first.actors().size(), 0U);
	EXPECT_EQ(second.actors().size(), 1U);
	EXPECT_FALSE((link.abort(), link.move_to(first, actor)));
}

} // namespace
