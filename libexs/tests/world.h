// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#pragma once

#include "../src/machine.h"

#include <deque>
#include <map>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

// Two machines and what is between them: queues, receive buffers, Reads and Writes into memory that exists only as long
// as its operation. It checks with each step what a link or a peer would not forgive. Steps come from outside.
namespace libexs::test {

// A rule does not hold
struct Violation : std::logic_error {
	using std::logic_error::logic_error;
};

template <typename... Parts> void require(bool holds, const Parts &...parts)
{
	if (holds)
		return;
	std::ostringstream what;
	(what << ... << parts);
	throw Violation(what.str());
}

// Prints all that happens from now on
void trace();

// The octet at a place of the data of an operation; the first four tell the operation
uint8_t pattern(OpId op, uint64_t at);

struct UserOp {
	OpId op = 0;
	std::vector<uint8_t> bytes;
	bool is_send = false;
	bool persistent = false;
	bool taken = false; // the machine owes a completion
	std::optional<action::Complete> done;
	uint32_t noted = 0;

	[[nodiscard]] bool live() const { return taken && !done; }
};

// What is posted, or on its way
struct Item {
	enum class Kind { message, read, response, write } kind = Kind::message;
	std::vector<uint8_t> message{}, data{};
	Memory memory{}; // local: to be gathered, read into, written from
	uint64_t work = 0;
	uint64_t remote = 0;
	uint32_t key = 0;
};

struct Counters {
	unsigned messages = 0, read_requests = 0, read_responses = 0, writes = 0;
};

class World;

class Side {
public:
	Side(World &world, const Machine::Config &config);

	// The user. The number of the operation, or an error as a negative number; completions are in op().
	int64_t send(uint64_t length, bool persistent = false, bool notify = false, std::optional<uint64_t> offset = {});
	int64_t recv(uint64_t length, bool persistent = false, bool wait_all = false, std::optional<uint64_t> offset = {});
	int cancel(OpId op);
	int shutdown();
	void close();

	// Steps; false if there is nothing to be done
	bool transmit(); // the next of what is posted leaves
	bool deliver();	 // the next of what the peer has sent arrives
	bool answer();	 // the next Read of the peer's is answered
	bool process();	 // the next completion is processed
	bool step();	 // any of them
	void lose(int error);

	[[nodiscard]] UserOp &op(int64_t number) { return ops_.at(static_cast<OpId>(number)); }
	[[nodiscard]] const std::map<OpId, UserOp> &ops() const { return ops_; }
	[[nodiscard]] bool is_down() const { return down_; }
	[[nodiscard]] const char *name() const;
	[[nodiscard]] bool timer_runs() const { return !timers_.empty(); }
	void expire();

	Machine machine;
	Counters sent;
	std::vector<OpId> received; // in the order of completion
	bool opened = false;

private:
	friend class World;

	struct Event {
		uint64_t work = 0; // of a Read or Write, or:
		std::vector<uint8_t> message{};
		uint32_t buffer = 0;
	};

	int64_t take(UserOp &op, int error);
	void act();
	void perform(const action::Post &action);
	void perform(const action::Read &action);
	void perform(const action::Write &action);
	void perform(const action::Copy &action);
	void perform(const action::Repost &action);
	void perform(const action::Complete &action);
	void perform(const action::Noted &action);
	void perform(const action::Limit &action);
	void perform(const action::Start &action);
	void perform(const action::Stop &action);
	void perform(const action::Opened &action);
	void perform(const action::Disconnect &action);
	void perform(const action::Abort &action);
	void go_down();
	void arrive(Item item);
	uint8_t *place(uint64_t address, uint64_t length, uint32_t key, bool remote_write, bool remote_read);
	[[nodiscard]] Side &peer() const;

	World &world_;
	Machine::Config config_;
	std::map<OpId, UserOp> ops_;
	std::deque<Item> posted_;  // by us
	std::deque<Item> inbound_; // from the peer, in order
	std::deque<Item> requests_; // the peer's Reads, to be answered
	std::deque<Event> events_;
	std::map<uint64_t, Item> reads_; // ours, in flight
	std::deque<uint32_t> free_buffers_;
	std::map<uint32_t, std::vector<uint8_t>> buffers_;
	std::map<action::Timer, bool> timers_;
	bool down_ = false, disconnecting_ = false;
};

class World {
public:
	World(const Machine::Config &initiator, const Machine::Config &responder);

	// Both ends with the same settings; READY is exchanged
	static Machine::Config config(bool stream = false);

	// Everything that can happen without the user, in order
	void run();
	void end_of_connection(); // an end that is left finds out

	std::unique_ptr<Side> a, b;
	OpId next_op = 1;

	// That all has completed, and that what was received is what was sent. lost: it may not have all arrived.
	void check(bool lost);

private:
	void check_packets(const Side &from, const Side &to) const;
	static bool explains(std::span<const UserOp *const> sends, std::span<const uint8_t> received, bool lost);
	void check_stream(const Side &from, const Side &to, bool lost) const;
};

} // namespace libexs::test
