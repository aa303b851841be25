// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//
// Threads that do anything to the same sockets at any time, by the C interface, over TCP on the loopback interface or over
// RDMA: each operation has to complete once, and its memory is the program's then. To be run with ThreadSanitizer, which
// sees accesses that come too late, and with AddressSanitizer.
#include "exs.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <map>
#include <mutex>
#include <random>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <arpa/inet.h>
#include <netinet/in.h>

namespace {

using Clock = std::chrono::steady_clock;
constexpr size_t pairs = 3, threads = 4, slots = 400, slot_size = 40000;
constexpr int patience = 60000; // ms

[[noreturn]] void fail(const std::string &why)
{
	throw std::runtime_error(why);
}

[[noreturn]] void fail_errno(const char *call)
{
	throw std::system_error(errno, std::generic_category(), call);
}

// Memory of one operation at a time
struct Slot {
	std::vector<uint8_t> bytes = std::vector<uint8_t>(slot_size);
	std::atomic<exs_mh_t> memory = 0;
	std::atomic<bool> busy = false, revoking = false;
};

class Storm {
public:
	Storm(uint64_t seed, const std::string &address, int protocol);
	~Storm();
	void run(Clock::time_point end);
	[[nodiscard]] uint64_t operations() const { return started_; }

private:
	// What was started; the event may be quicker than the call returns
	struct Record {
		bool started = false;
		int finished = 0;
	};

	void user(uint64_t seed, Clock::time_point end);
	void act(std::mt19937_64 &random);
	void transfer(std::mt19937_64 &random, exs_fd_t fd);
	static std::vector<exs_part> parts_of(std::mt19937_64 &random, Slot &slot, size_t length);
	void revoke(std::mt19937_64 &random);
	void renew(std::mt19937_64 &random);
	void dequeue(exs_qh_t queue, Clock::time_point end);
	void take(const exs_event &event);
	void started(exs_op_t op);
	Slot *free_slot(std::mt19937_64 &random);
	exs_fd_t any(std::mt19937_64 &random);
	exs_qh_t any_queue(std::mt19937_64 &random) const { return queues_[random() % queues_.size()]; }
	bool all_done();
	void settle();

	uint64_t seed_;
	std::array<exs_qh_t, 3> queues_{}; // the second has a thread, the third one in exs_qdequeue()
	exs_fd_t listener_ = 0;
	sockaddr_in address_{};
	std::array<Slot, slots> slots_;
	std::mutex mutex_; // of all below
	std::map<exs_op_t, Record> records_;
	std::map<exs_op_t, exs_fd_t> connecting_;
	std::vector<exs_fd_t> sockets_;
	std::vector<exs_op_t> recent_;
	std::vector<std::string> problems_;
	std::atomic<uint64_t> started_ = 0;
	std::atomic<int64_t> posts_ = 0; // without their event yet
	const int type_, protocol_;
};

Storm::Storm(uint64_t seed, const std::string &address, int protocol)
    : seed_(seed), type_(seed % 3 == 0 ? SOCK_STREAM : SOCK_SEQPACKET), protocol_(protocol)
{
	if (exs_init(EXS_VERSION) != 0)
		fail_errno("exs_init");
	for (exs_qh_t &queue : queues_)
		queue = exs_qcreate();
	exs_qset(queues_[1], EXS_QUEUE_THREAD, 1);
	exs_qset(queues_[2], EXS_QUEUE_THREAD, 1);
	exs_qset(queues_[2], EXS_QUEUE_PROGRESS, 1);
	for (Slot &slot : slots_)
		slot.memory = exs_mregister(slot.bytes.data(), slot_size, EXS_MEM_SEND | EXS_MEM_RECV);
	address_.sin_family = AF_INET;
	inet_pton(AF_INET, address.c_str(), &address_.sin_addr);
	listener_ = exs_socket(AF_INET, type_, protocol_);
	exs_fcntl(listener_, EXS_SET, EXS_RECV_CREDITS, 1 + static_cast<unsigned>(seed % 4));
	exs_fcntl(listener_, EXS_SET, EXS_SHARED, static_cast<unsigned>(seed / 4 % 2));
	exs_fcntl(listener_, EXS_SET, EXS_RESERVE, static_cast<unsigned>(seed / 8 % 2 * slot_size));
	exs_fcntl(listener_, EXS_SET, EXS_SMALL_MAX, static_cast<unsigned>(seed % 2) * 500);
	socklen_t length = sizeof(address_);
	if (exs_bind(listener_, reinterpret_cast<sockaddr *>(&address_), sizeof(address_)) != 0)
		fail_errno("exs_bind");
	if (exs_listen(listener_, 100) != 0)
		fail_errno("exs_listen");
	if (exs_getsockname(listener_, reinterpret_cast<sockaddr *>(&address_), &length) != 0)
		fail_errno("exs_getsockname");
}

Storm::~Storm()
{
	exs_exit();
}

void Storm::started(exs_op_t op)
{
	if (op < 0)
		return;
	started_++;
	const std::lock_guard lock(mutex_);
	Record &record = records_[op];
	record.started = true;
	if (record.finished != 0)
		records_.erase(op);
	else
		recent_.push_back(op);
	if (recent_.size() > 100)
		recent_.erase(recent_.begin(), recent_.begin() + 50);
}

// The memory is ours again: written without any more ado
void Storm::take(const exs_event &event)
{
	if (event.type == EXS_EVENT_NOTE)
		return;
	if (event.type == EXS_EVENT_USER) {
		posts_--;
		return;
	}
	if (event.type == EXS_EVENT_REVOKE) {
		auto *slot = static_cast<Slot *>(event.context);
		if (!slot->busy.exchange(true)) { // or the last event of an operation has not been taken yet
			std::ranges::fill(slot->bytes, static_cast<uint8_t>(event.op));
			slot->busy = false;
		}
		slot->memory = exs_mregister(slot->bytes.data(), slot_size, EXS_MEM_SEND | EXS_MEM_RECV);
		slot->revoking = false;
	} else if (event.context != nullptr) {
		auto *slot = static_cast<Slot *>(event.context);
		std::ranges::fill(slot->bytes, static_cast<uint8_t>(event.op));
		slot->busy = false;
	}
	const std::lock_guard lock(mutex_);
	if (event.type == EXS_EVENT_ACCEPT && event.error == 0)
		sockets_.push_back(event.accepted);
	Record &record = records_[event.op];
	if (++record.finished != 1)
		problems_.push_back(fmt::format("operation {} has two events", event.op));
	if (record.started)
		records_.erase(event.op);
}

void Storm::dequeue(exs_qh_t queue, Clock::time_point end)
{
	std::array<exs_event, 16> events{};
	while (Clock::now() < end) {
		const int count = exs_qdequeue(queue, events.data(), events.size(), 20);
		for (int i = 0; i < count; i++)
			take(events[static_cast<size_t>(i)]);
	}
}

Slot *Storm::free_slot(std::mt19937_64 &random)
{
	Slot &slot = slots_[random() % slots];
	return slot.busy.exchange(true) ? nullptr : &slot;
}

exs_fd_t Storm::any(std::mt19937_64 &random)
{
	const std::lock_guard lock(mutex_);
	return sockets_.empty() ? 0 : sockets_[random() % sockets_.size()];
}

std::vector<exs_part> Storm::parts_of(std::mt19937_64 &random, Slot &slot, size_t length)
{
	std::vector<exs_part> parts;
	for (size_t at = 0; at < length; at += parts.back().length)
		parts.push_back({slot.memory, slot.bytes.data() + at, 1 + random() % (length - at)});
	return parts;
}

// Also while operations use it
void Storm::revoke(std::mt19937_64 &random)
{
	Slot &slot = slots_[random() % slots];
	if (slot.revoking.exchange(true))
		return;
	const exs_op_t op = exs_mrevoke(slot.memory, any_queue(random), &slot);
	if (op < 0)
		slot.revoking = false;
	started(op);
}

void Storm::transfer(std::mt19937_64 &random, exs_fd_t fd)
{
	Slot *slot = free_slot(random);
	if (slot == nullptr)
		return;
	const size_t length = random() % 3 == 0 ? random() % slot_size : random() % 600;
	const bool persistent = random() % 20 == 0;
	const exs_qh_t queue = any_queue(random);
	const uint64_t kind = random() % 10;
	exs_op_t op = -1;
	if (kind < 3)
		op = exs_send(fd, slot->memory, slot->bytes.data(), length, persistent ? EXS_PERSISTENT | EXS_NOTIFY : 0, queue,
			      slot);
	else if (kind < 6)
		op = exs_recv(fd, slot->memory, slot->bytes.data(), length, persistent ? EXS_PERSISTENT : 0, queue, slot);
	else if (kind == 6)
		op = exs_send_offset(fd, slot->memory, slot->bytes.data(), length, 0, queue, slot, random() % slot_size);
	else if (kind == 7)
		op = exs_recv_offset(fd, slot->memory, slot->bytes.data(), length, 0, queue, slot, random() % slot_size);
	else if (const auto parts = parts_of(random, *slot, length); kind == 8)
		op = exs_sendv(fd, parts.data(), static_cast<int>(parts.size()), 0, queue, slot);
	else
		op = exs_recvv(fd, parts.data(), static_cast<int>(parts.size()), 0, queue, slot);
	if (op < 0)
		slot->busy = false;
	started(op);
}

// Another connection, instead of one that there is
void Storm::renew(std::mt19937_64 &random)
{
	exs_fd_t old = 0;
	{
		const std::lock_guard lock(mutex_);
		if (sockets_.size() >= 2 * pairs) {
			const size_t at = random() % sockets_.size();
			old = sockets_[at];
			sockets_.erase(sockets_.begin() + static_cast<ptrdiff_t>(at));
		}
	}
	if (old != 0) {
		started(exs_close(old, any_queue(random), nullptr));
		return;
	}
	const exs_fd_t fd = exs_socket(AF_INET, type_, protocol_);
	exs_fcntl(fd, EXS_SET, EXS_SEND_CREDITS, 1 + static_cast<unsigned>(random() % 4));
	exs_fcntl(fd, EXS_SET, EXS_SHARED, static_cast<unsigned>(random() % 2));
	exs_fcntl(fd, EXS_SET, EXS_RESERVE, static_cast<unsigned>(random() % 2 * slot_size));
	started(exs_accept(listener_, any_queue(random), nullptr));
	started(exs_connect(fd, reinterpret_cast<sockaddr *>(&address_), sizeof(address_), any_queue(random), nullptr));
	const std::lock_guard lock(mutex_);
	sockets_.push_back(fd);
}

void Storm::act(std::mt19937_64 &random)
{
	const exs_fd_t fd = any(random);
	exs_op_t op = 0;
	switch (random() % 40) {
	case 0:
		return renew(random);
	case 1:
		if (random() % 10 == 0)
			exs_shutdown(fd);
		return;
	case 2: case 3: {
		const std::lock_guard lock(mutex_);
		op = recent_.empty() ? 0 : recent_[random() % recent_.size()];
		break;
	}
	case 4: {
		std::array<exs_pollfd, 2> fds{{{fd, EXS_POLLIN, 0}, {any(random), EXS_POLLOUT, 0}}};
		if (random() % 2 == 0)
			started(exs_qpoll(fd, EXS_POLLIN, any_queue(random), nullptr));
		else
			exs_poll(fds.data(), fds.size(), 1);
		return;
	}
	case 5: {
		sockaddr_storage name{};
		socklen_t length = sizeof(name);
		exs_getpeername(fd, reinterpret_cast<sockaddr *>(&name), &length);
		exs_fcntl(fd, EXS_GET, EXS_SEND_CREDITS);
		return;
	}
	case 6: {
		// deregistered and registered again, if nobody uses it
		Slot *slot = free_slot(random);
		if (slot == nullptr)
			return;
		if (exs_mderegister(slot->memory) == 0)
			slot->memory = exs_mregister(slot->bytes.data(), slot_size, EXS_MEM_SEND | EXS_MEM_RECV);
		slot->busy = false;
		return;
	}
	case 7:
		return revoke(random);
	case 8:
		posts_ += exs_qpost(any_queue(random), nullptr) == 0;
		return;
	case 9:
		if (random() % 2 == 0)
			exs_qset(any_queue(random), EXS_QUEUE_BATCH, random() % 2);
		else
			exs_qset(any_queue(random), EXS_QUEUE_SPIN_US, random() % 2 * 50);
		return;
	default:
		return transfer(random, fd);
	}
	exs_cancel(fd, op);
}

void Storm::user(uint64_t seed, Clock::time_point end)
{
	std::mt19937_64 random(seed);
	while (Clock::now() < end)
		act(random);
}

bool Storm::all_done()
{
	const std::lock_guard lock(mutex_);
	return records_.empty() && posts_ == 0;
}

void Storm::settle()
{
	std::vector<exs_fd_t> open;
	{
		const std::lock_guard lock(mutex_);
		open.swap(sockets_);
	}
	started(exs_close(listener_, queues_[0], nullptr));
	for (const exs_fd_t fd : open)
		started(exs_close(fd, queues_[0], nullptr));
	const auto until = Clock::now() + std::chrono::milliseconds(patience);
	std::array<exs_event, 64> events{};
	for (int wait = 0; !all_done() && Clock::now() < until;) {
		int taken = 0;
		for (const exs_qh_t queue : queues_) {
			const int count = exs_qdequeue(queue, events.data(), events.size(), wait);
			for (int i = 0; i < count; i++) {
				const exs_event &event = events[static_cast<size_t>(i)];
				take(event);
				if (event.type == EXS_EVENT_ACCEPT && event.error == 0)
					started(exs_close(event.accepted, queues_[0], nullptr));
			}
			taken += std::max(count, 0);
		}
		wait = taken == 0 ? 10 : 0; // all others wait meanwhile
	}
	for (const auto &[op, record] : records_)
		problems_.push_back(fmt::format("operation {} has {} events, not 1{}", op, record.finished,
						     record.started ? "" : ", and its call has not returned"));
	if (posts_ != 0)
		problems_.push_back(fmt::format("of what was posted, {} events are missing", posts_.load()));
}

void Storm::run(Clock::time_point end)
{
	{
		std::vector<std::jthread> all;
		for (size_t i = 0; i < threads; i++)
			all.emplace_back([this, i, end] { user(seed_ * threads + i, end); });
		for (const exs_qh_t queue : queues_)
			all.emplace_back([this, queue, end] { dequeue(queue, end); });
	}
	settle();
	if (!problems_.empty())
		fail(problems_.front());
}

} // namespace

int main(int argc, char **argv)
{
	CLI::App app{"Calls libexs at random from several threads"};
	unsigned seconds = 5;
	uint64_t seed = std::random_device{}();
	app.add_option("--seconds", seconds, "duration in seconds (5)");
	app.add_option("--seed", seed, "seed of the calls (not of their timing)");
	std::string address = "127.0.0.1";
	bool rdma = false;
	app.add_option("--address", address, "address of both ends (127.0.0.1)");
	app.add_flag("--rdma", rdma, "use RDMA instead of TCP");
	CLI11_PARSE(app, argc, argv);
	const auto end = Clock::now() + std::chrono::seconds(seconds);
	uint64_t operations = 0;
	try {
		while (Clock::now() < end) {
			Storm storm(seed++, address, rdma ? EXS_PROTO_RDMA : EXS_PROTO_TCP);
			storm.run(std::min(end, Clock::now() + std::chrono::seconds(1)));
			operations += storm.operations();
		}
	} catch (const std::exception &error) {
		fmt::print("--seed {}: {}\n", seed - 1, error.what());
		return 1;
	}
	fmt::print("{} operations\n", operations);
	return 0;
}
