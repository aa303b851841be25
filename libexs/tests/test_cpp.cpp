// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//
// exs.hpp over TCP on the loopback interface
#include "library.h"

#include <exs.hpp>

#include <atomic>
#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace {

using namespace exs;

class Cpp : public testing::Test {
public:
	Cpp() : listener(own, AF_INET, SOCK_SEQPACKET, EXS_PROTO_TCP)
	{
		listener.bind(endpoint("127.0.0.1", 0));
		listener.listen(10);
		sockaddr_in name{};
		socklen_t length = sizeof(name);
		exs_getsockname(listener.fd(), reinterpret_cast<sockaddr *>(&name), &length);
		port = ntohs(name.sin_port);
	}

	task<exs::socket> connected()
	{
		exs::socket made(own, AF_INET, SOCK_SEQPACKET, EXS_PROTO_TCP);
		(co_await made.connect(endpoint("127.0.0.1", port))).value();
		co_return made;
	}

	library lib;
	loop own;
	exs::socket listener;
	uint16_t port = 0;
};

task<> echo(exs::socket &listener)
{
	exs::socket peer = (co_await listener.accept()).value();
	const memory buffer(1000);
	for (;;) {
		const auto got = co_await peer.recv(buffer);
		if (!got || result(got)->eof)
			break;
		if (!co_await peer.send(buffer.slice(0, result(got)->length)))
			break;
	}
	static_cast<void>(co_await peer.close());
}

TEST_F(Cpp, CoroutinesEchoMessages)
{
	own.spawn(echo(listener));
	const int rounds = own.run([](Cpp &test) -> task<int> {
		exs::socket peer = co_await test.connected();
		const memory to(1000), from(1000);
		int done = 0;
		for (; done < 20; done++) {
			std::memset(from.text(), 'a' + done, 1000);
			(co_await peer.send(from.slice(0, 500))).value();
			const auto got = (co_await peer.recv(to)).value();
			if (got.length != 500 || std::memcmp(to.text(), from.text(), 500) != 0)
				break;
		}
		peer.shutdown();
		co_return done;
	}(*this));
	EXPECT_EQ(rounds, 20);
	own.run();
}

TEST_F(Cpp, EXS8_EXS9_ACoroutineReadsTheUpdatesOfAPersistentSend)
{
	char published = 0;
	own.spawn([](Cpp &test, char &version) -> task<> {
		exs::socket peer = (co_await test.listener.accept()).value();
		const memory counter(8);
		auto publishing = peer.publish(counter, true).value();
		while (version < 5) {
			EXPECT_EQ((co_await publishing.reads()).value(), 1U);
			counter.text()[0] = ++version;
		}
		EXPECT_EQ((co_await publishing.withdraw()).error(), std::errc::operation_canceled);
	}(*this, published));
	own.run([](Cpp &test, const char &version) -> task<int> {
		exs::socket peer = co_await test.connected();
		const memory copy(8);
		for (char i = 0; i < 5; i++) {
			EXPECT_EQ((co_await peer.recv(copy)).value().length, 8U);
			EXPECT_EQ(copy.text()[0], i);
			while (version == i && test.own.run_once(20000))
				;
		}
		co_return 0;
	}(*this, published));
	own.run();
}

TEST_F(Cpp, EXS10_EXS12_ACoroutineSendsAtAnOffsetIntoAPersistentRecv)
{
	own.spawn([](Cpp &test) -> task<> {
		exs::socket peer = (co_await test.listener.accept()).value();
		const memory target(100);
		auto taking = peer.subscribe(target).value();
		EXPECT_TRUE(co_await taking.ended());
		EXPECT_EQ(std::string(target.text() + 50, 5), "fifty");
	}(*this));
	own.run([](Cpp &test) -> task<int> {
		exs::socket peer = co_await test.connected();
		const memory word(5);
		std::memcpy(word.text(), "fifty", 5);
		(co_await peer.send_at(word, 50)).value();
		EXPECT_EQ((co_await peer.send_at(word, 96)).error(), std::error_code(ERANGE, std::generic_category()));
		peer.shutdown();
		while (test.own.run_once(100))
			;
		co_return 0;
	}(*this));
	own.run();
}

TEST_F(Cpp, CoroutinesTransferPartsAPartOfAFileAndAPartOfPersistentDataAndPoll)
{
	own.spawn([](Cpp &test) -> task<> {
		exs::socket peer = (co_await test.listener.accept()).value();
		const memory to(400);
		EXPECT_EQ((co_await peer.poll(EXS_POLLIN)).value(), EXS_POLLIN);
		const std::vector<memory::part> parts{to.slice(0, 100), to.slice(200, 200)}; // GCC 12 takes no list within co_await
		EXPECT_EQ((co_await peer.recvv(parts)).value().length, 200U);
		EXPECT_EQ(std::string(to.text(), 100), std::string(50, 'a') + std::string(50, 'c'));
		EXPECT_EQ(std::string(to.text() + 200, 100), std::string(100, 'c'));
		EXPECT_EQ(to.text()[100], 0);
		EXPECT_EQ((co_await peer.recv(to)).value().length, 6U);
		EXPECT_EQ(std::string(to.text(), 6), "middle");
		EXPECT_EQ((co_await peer.recv_at(to.slice(0, 10), 95)).value().length, 10U);
		EXPECT_EQ(std::string(to.text(), 10), "aaaaabbbbb");
	}(*this));
	own.run([](Cpp &test) -> task<int> {
		exs::socket peer = co_await test.connected();
		const memory from(400);
		for (size_t i = 0; i < 400; i++)
			from.text()[i] = static_cast<char>('a' + i / 100);
		const std::vector<memory::part> parts{from.slice(0, 50), from.slice(200, 100), from.slice(299, 1), from.slice(200, 49)};
		EXPECT_EQ((co_await peer.sendv(parts)).value(), 200U);
		const int file = ::memfd_create("exs", MFD_CLOEXEC);
		EXPECT_EQ(::write(file, "the middle of it", 16), 16);
		EXPECT_EQ((co_await peer.sendfile(file, 4, 6)).value(), 6U);
		::close(file);
		auto publishing = peer.publish(from).value();
		EXPECT_FALSE(co_await publishing.ended()); // by the peer's close
		co_return 0;
	}(*this));
	own.run();
}

TEST_F(Cpp, ErrorsOfOperationsAreResultsAndErrorsOfSetupAreExceptions)
{
	own.run([](Cpp &test) -> task<int> {
		exs::socket idle(test.own, AF_INET, SOCK_STREAM);
		const memory octet(1);
		const auto sent = co_await idle.send(octet);
		EXPECT_FALSE(sent);
		EXPECT_EQ(sent.error(), std::errc::not_connected);
		EXPECT_THROW(result(sent).value(), std::system_error);
		EXPECT_FALSE(idle.publish(octet));
		EXPECT_THROW(idle.set(EXS_IRD, 256), std::system_error);
		EXPECT_THROW(endpoint("nowhere", 1), std::system_error);
		EXPECT_THROW(memory(0), std::system_error);
		co_return 0;
	}(*this));
}

TEST_F(Cpp, AnExceptionOfACoroutinePropagatesOutOfRun)
{
	own.spawn([](Cpp &test) -> task<> {
		co_await test.connected();
		throw std::runtime_error("thrown by the test");
	}(*this));
	EXPECT_THROW(own.run(), std::runtime_error);
}

// Several at a time, awaited together
TEST_F(Cpp, StartedTasksCanBeAwaitedLater)
{
	own.spawn(echo(listener));
	own.run([](Cpp &test) -> task<int> {
		exs::socket peer = co_await test.connected();
		const memory from(8), to(80);
		auto receive = [&](size_t place) -> task<size_t> { co_return (co_await peer.recv(to.slice(10 * place, 10))).value().length; };
		auto fail = []() -> task<size_t> {
			throw std::runtime_error("thrown by the test");
			co_return 0;
		};
		std::vector<task<size_t>> all;
		for (size_t i = 0; i < 8; i++) {
			all.push_back(receive(i));
			all.back().start();
		}
		auto failing = fail();
		failing.start();
		EXPECT_TRUE(failing.is_done());
		for (size_t i = 0; i < 8; i++)
			(co_await peer.send(from.slice(0, i))).value();
		for (size_t i = 0; i < 8; i++)
			EXPECT_EQ(co_await std::move(all[i]), i);
		EXPECT_THROW(co_await std::move(failing), std::runtime_error);
		co_return 0;
	}(*this));
}

// Coroutines, memory and sockets that go while operations are under way; the events come later
TEST_F(Cpp, CoroutinesAndSocketsWithPendingOperationsCanBeDestroyed)
{
	own.spawn(echo(listener));
	for (int i = 0; i < 5; i++) {
		auto waiting = [](Cpp &test) -> task<> {
			exs::socket peer = co_await test.connected();
			const memory to(100000), from(100000);
			auto publishing = peer.publish(from).value();
			static_cast<void>(co_await peer.recv(to));
		}(*this);
		waiting.start();
		for (int j = 0; j < i; j++)
			own.run_once(10);
		EXPECT_FALSE(waiting.is_done());
	}
	{
		auto accepting = [](exs::socket &from) -> task<> { co_await from.accept(); }(listener);
		accepting.start();
	}
	own.run([](Cpp &test) -> task<int> {
		exs::socket peer = co_await test.connected();
		co_return 0;
	}(*this));
	while (own.run_once(50))
		;
}

// ---- deadlines, cancellation, other threads

task<> wait_for_ever(exs::socket &listener)
{
	static_cast<void>(co_await listener.accept());
}

using namespace std::chrono_literals;

TEST_F(Cpp, AReceiveWithinADeadlineFailsWithEtimedoutAndTheNextReceiveSucceeds)
{
	own.spawn(echo(listener));
	own.run([](Cpp &test) -> task<int> {
		exs::socket peer = co_await test.connected();
		const memory from(500), to(1000);
		const auto start = loop::clock::now();
		EXPECT_EQ((co_await peer.recv(to).within(50ms)).error(), std::errc::timed_out);
		EXPECT_GE(loop::clock::now() - start, 50ms);
		EXPECT_LT(loop::clock::now() - start, 5s);
		EXPECT_EQ((co_await peer.send(from).within(20s)).value(), 500U);
		EXPECT_EQ((co_await peer.recv(to).within(20s)).value().length, 500U);
		EXPECT_LT(test.own.wait_time(), 0) << "a timer is left";
		co_return 0;
	}(*this));
	own.run();
}

TEST_F(Cpp, AStopRequestOfAnotherThreadCancelsAReceive)
{
	own.spawn(echo(listener));
	own.run([](Cpp &test) -> task<int> {
		exs::socket peer = co_await test.connected();
		const memory to(1000);
		std::stop_source stop;
		std::jthread other([&stop] {
			exs_test::wait_asleep(::getpid());
			stop.request_stop();
		});
		EXPECT_EQ((co_await peer.recv(to).until(stop.get_token())).error(), std::errc::operation_canceled);
		EXPECT_EQ((co_await peer.recv(to).until(stop.get_token())).error(), std::errc::operation_canceled) << "requested before";
		EXPECT_EQ((co_await test.listener.accept().until(stop.get_token())).error(), std::errc::operation_canceled);
		co_return 0;
	}(*this));
	own.run();
}

TEST_F(Cpp, AWaitForReadsOrTheEndOfAPersistentSendEndsByADeadlineOrAStopAndTheSendGoesOn)
{
	own.spawn([](Cpp &test) -> task<> {
		exs::socket peer = (co_await test.listener.accept()).value();
		const memory table(8);
		auto publishing = peer.publish(table, true).value();
		std::stop_source stop;
		EXPECT_EQ((co_await publishing.reads().within(20ms)).error(), std::errc::timed_out);
		EXPECT_EQ((co_await publishing.ended().within(20ms)).error(), std::errc::timed_out);
		{
			std::jthread other([&stop] {
				exs_test::wait_asleep(::getpid());
				stop.request_stop();
			});
			EXPECT_EQ((co_await publishing.reads().within(20s).until(stop.get_token())).error(), std::errc::operation_canceled);
		}
		EXPECT_EQ((co_await publishing.ended().until(stop.get_token())).error(), std::errc::operation_canceled) << "requested before";
		EXPECT_LT(test.own.wait_time(), 0) << "a timer is left";
		{
			auto abandoned = [](persistent &of) -> task<> { static_cast<void>(co_await of.reads()); }(publishing);
			abandoned.start();
		}
		const memory word(8);
		(co_await peer.recv(word)).value(); // the peer reads after this
		EXPECT_EQ((co_await publishing.reads().within(20s)).value(), 1U);
	}(*this));
	own.run([](Cpp &test) -> task<int> {
		exs::socket peer = co_await test.connected();
		const memory copy(8);
		(co_await peer.send(copy)).value();
		EXPECT_EQ((co_await peer.recv(copy)).value().length, 8U);
		co_return 0;
	}(*this));
	own.run();
}

TEST_F(Cpp, SleepingCoroutinesResumeInTheOrderOfTheirDeadlines)
{
	std::string order;
	const auto sleeper = [](loop &in, std::string &names, char name, loop::clock::duration time) -> task<> {
		co_await in.sleep(time);
		names += name;
	};
	own.spawn(sleeper(own, order, 'c', 90ms));
	own.spawn(sleeper(own, order, 'a', 20ms));
	own.spawn(sleeper(own, order, 'b', 50ms));
	{
		auto dropped = sleeper(own, order, 'x', 30ms);
		dropped.start();
	}
	const auto start = loop::clock::now();
	own.run();
	EXPECT_EQ(order, "abc");
	EXPECT_GE(loop::clock::now() - start, 90ms);
}

TEST_F(Cpp, TheTimeOfAnEventDoesNotGrowWithSpawnedCoroutines)
{
	const auto spawn = [this](int count) {
		for (int i = 0; i < count; i++)
			own.spawn([](loop &in) -> task<> { co_await in.sleep(1h); }(own));
	};
	const auto handle = [this] {
		own.post([] {});
		EXPECT_TRUE(own.run_once(0));
	};
	exs_test::expect_constant_cost(100, spawn, handle);
}

TEST_F(Cpp, RunThrowsTheExceptionsOfSeveralSpawnedCoroutinesOneAfterTheOther)
{
	const auto thrower = [](loop &in, const char *what) -> task<> {
		co_await in.sleep(1ms);
		throw std::runtime_error(what);
	};
	own.spawn(thrower(own, "first"));
	own.spawn(thrower(own, "second"));
	EXPECT_THROW(own.run(), std::runtime_error);
	EXPECT_THROW(own.run(), std::runtime_error);
	own.run();
}

TEST_F(Cpp, WorkPostedByOtherThreadsRunsInTheLoopsThreadWhileItWaits)
{
	const auto self = std::this_thread::get_id();
	int done = 0;
	std::vector<std::jthread> others;
	own.spawn(wait_for_ever(listener));
	for (int i = 0; i < 4; i++)
		others.emplace_back([&] {
			for (int j = 0; j < 500; j++)
				own.post([&] {
					EXPECT_EQ(std::this_thread::get_id(), self);
					if (++done == 2000)
						own.stop();
				});
		});
	own.run();
	EXPECT_EQ(done, 2000);
}

TEST_F(Cpp, AnExceptionOfPostedWorkPropagatesAndTheRestOfTheWorkRuns)
{
	bool ran = false;
	own.post([] { throw std::runtime_error("thrown by the test"); });
	own.post([&ran] { ran = true; });
	EXPECT_THROW(own.run_once(20000), std::runtime_error);
	EXPECT_TRUE(own.run_once(20000));
	EXPECT_TRUE(ran);
	EXPECT_FALSE(own.run_once(0));
}

TEST_F(Cpp, DestroyingALoopWithAPendingAcceptClosesItsDescriptors)
{
	const auto descriptors = [] {
		int count = 0;
		for (int fd = 0; fd < 1024; fd++)
			count += fcntl(fd, F_GETFD) != -1;
		return count;
	};
	const int before = descriptors();
	for (int i = 0; i < 20; i++) {
		loop other;
		EXPECT_GE(other.fd(), 0); // a queue has none before
		exs::socket waiting(other, AF_INET, SOCK_SEQPACKET, EXS_PROTO_TCP);
		waiting.bind(endpoint("127.0.0.1", 0));
		waiting.listen(10);
		other.spawn(wait_for_ever(waiting));
	} // the socket first, with its operation under way
	EXPECT_LE(descriptors(), before + 2);
}

// ---- memory that a peer does not give back

// Takes the peer away if the test goes on for too long, so that a thread that waits for the peer goes on
class Watch {
public:
	explicit Watch(std::unique_ptr<exs_test::RawClient> &peer) : thread_([this, &peer](const std::stop_token &stop) {
		std::unique_lock lock(mutex_);
		if (ended_.wait_for(lock, stop, std::chrono::milliseconds(exs_test::patience), [] { return false; }) || stop.stop_requested())
			return;
		expired_ = true;
		peer.reset();
	}) {}
	[[nodiscard]] bool end()
	{
		thread_.request_stop();
		thread_.join();
		return !expired_;
	}

private:
	std::mutex mutex_;
	std::condition_variable_any ended_;
	bool expired_ = false;
	std::jthread thread_;
};

constexpr size_t more_than_tcp_holds = 64 << 20;

task<> receive_once(exs::socket &listener, bool &begun)
{
	exs::socket peer = (co_await listener.accept()).value();
	const memory buffer(10000);
	begun = true;
	static_cast<void>(co_await peer.recv(buffer));
}

task<> send_once(exs::socket &listener, bool &begun)
{
	exs::socket peer = (co_await listener.accept()).value();
	const memory buffer(more_than_tcp_holds);
	static_cast<void>(co_await peer.recv(buffer)); // the peer has advertised its memory before
	begun = true;
	static_cast<void>(co_await peer.send(buffer));
}

task<> publish_once(exs::socket &listener, bool &begun)
{
	exs::socket peer = (co_await listener.accept()).value();
	const memory buffer(10000);
	auto publishing = peer.publish(buffer).value();
	begun = true;
	static_cast<void>(co_await publishing.ended());
}

// Each coroutine is destroyed by the only thread, with its memory, as a task is that ends
TEST_F(Cpp, DestructionOfMemoryReturnsAfterExsCloseMsIfThePeerIsSilent)
{
	using exs_test::RawClient;
	listener.set(EXS_CLOSE_MS, 300);
	for (task<> (*const begin)(exs::socket &, bool &) : {receive_once, send_once, publish_once}) {
		auto peer = std::make_unique<RawClient>(exs_test::loopback(port));
		bool begun = false;
		auto working = std::make_unique<task<>>(begin(listener, begun));
		working->start();
		if (begin == receive_once) {
			peer->say({.type = RawClient::adv, .id = 1, .length = 10000, .address = 4096, .key = 1});
		} else if (begin == send_once) {
			peer->say({.type = RawClient::radv, .id = 1, .length = more_than_tcp_holds, .address = 4096, .key = 1});
			peer->say({.type = RawClient::adv_imm, .id = 2});
		}
		while (!begun)
			ASSERT_TRUE(own.run_once(exs_test::patience));
		if (begin == receive_once)
			peer->wait_read_request();
		ASSERT_FALSE(working->is_done());
		const auto start = loop::clock::now();
		Watch watch(peer);
		working.reset();
		EXPECT_TRUE(watch.end()) << "the destructor had not returned after " << exs_test::patience << " ms";
		EXPECT_LT(loop::clock::now() - start, 4s); // the default of EXS_CLOSE_MS is 5 s
	}
}

// Takes all descriptors that the process may have
class NoDescriptors {
public:
	NoDescriptors()
	{
		::getrlimit(RLIMIT_NOFILE, &before_);
		const rlimit few{.rlim_cur = 256, .rlim_max = before_.rlim_max};
		::setrlimit(RLIMIT_NOFILE, &few);
		for (int fd = 0; (fd = ::dup(0)) >= 0;)
			taken_.push_back(fd);
	}
	~NoDescriptors()
	{
		for (const int fd : taken_)
			::close(fd);
		::setrlimit(RLIMIT_NOFILE, &before_);
	}
	NoDescriptors(const NoDescriptors &) = delete;
	NoDescriptors &operator=(const NoDescriptors &) = delete;

private:
	rlimit before_{};
	std::vector<int> taken_;
};

TEST_F(Cpp, DestructionOfMemoryInUseWaitsForTheEndOfItsOperationsWithoutAFreeDescriptor)
{
	listener.set(EXS_CLOSE_MS, 300);
	auto peer = std::make_unique<exs_test::RawClient>(exs_test::loopback(port));
	exs::socket accepted = own.run([](Cpp &test) -> task<exs::socket> { co_return (co_await test.listener.accept()).value(); }(*this));
	auto buffer = std::make_unique<memory>(10000);
	ASSERT_GT(exs_recv(accepted.fd(), buffer->handle(), buffer->text(), buffer->size(), 0, own.queue(), nullptr), 0);
	peer->say({.type = exs_test::RawClient::adv, .id = 1, .length = 10000, .address = 4096, .key = 1});
	peer->wait_read_request();
	{
		const NoDescriptors none;
		ASSERT_EQ(::dup(0), -1);
		buffer.reset();
	}
	exs_event event{};
	ASSERT_EQ(exs_qdequeue(own.queue(), &event, 1, 0), 1) << "the receive is pending, its memory freed";
	EXPECT_EQ(event.error, ECANCELED);
}

} // namespace
