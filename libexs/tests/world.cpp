// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#include "world.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <set>

namespace libexs::test {
namespace {

constexpr unsigned op_shift = 32; // an address says whose it is

bool tracing = false;

template <typename... Values> void say(const char *side, const char *what, Values... values)
{
	if (!tracing)
		return;
	std::printf("%s: %s", side, what);
	((std::printf(" %llu", static_cast<unsigned long long>(values))), ...);
	std::printf("\n");
}

} // namespace

void trace()
{
	tracing = true;
}

uint8_t pattern(OpId op, uint64_t at)
{
	if (at < 4)
		return static_cast<uint8_t>(op >> (8 * at));
	uint64_t x = (op << 32) + at;
	x = (x ^ (x >> 29)) * 0xbf58476d1ce4e5b9ULL;
	return static_cast<uint8_t>(x >> 32);
}

Side::Side(World &world, const Machine::Config &config) : machine(config), world_(world), config_(config)
{
	for (uint32_t i = 0; i < Machine::buffers(config.send_credits, config.recv_credits); i++)
		free_buffers_.push_back(i);
}

const char *Side::name() const
{
	return config_.initiator ? "a" : "b";
}

Side &Side::peer() const
{
	return world_.a.get() == this ? *world_.b : *world_.a;
}

// ---- the user

int64_t Side::take(UserOp &op, int error)
{
	if (error != 0) {
		require(!op.done, "operation ", op.op, " was refused, but completes");
		return -error;
	}
	op.taken = true;
	say(name(), op.is_send ? "user sends op, length, persistent" : "user receives op, length, persistent", op.op,
	    op.bytes.size(), op.persistent);
	act();
	return static_cast<int64_t>(op.op);
}

int64_t Side::send(uint64_t length, bool persistent, bool notify, std::optional<uint64_t> offset)
{
	UserOp &op = ops_[world_.next_op];
	op.op = world_.next_op++;
	op.is_send = true;
	op.persistent = persistent;
	for (uint64_t i = 0; i < length; i++)
		op.bytes.push_back(pattern(op.op, i));
	const Memory memory{.address = op.op << op_shift,
			    .length = length,
			    .local_key = static_cast<uint32_t>(op.op),
			    .remote_key = static_cast<uint32_t>(op.op)};
	const int error = machine.send(
		{.op = op.op, .memory = memory, .offset = offset, .persistent = persistent, .notify = notify});
	return take(op, error);
}

int64_t Side::recv(uint64_t length, bool persistent, bool wait_all, std::optional<uint64_t> offset)
{
	UserOp &op = ops_[world_.next_op];
	op.op = world_.next_op++;
	op.persistent = persistent;
	op.bytes.resize(length);
	const Memory memory{.address = op.op << op_shift,
			    .length = length,
			    .local_key = static_cast<uint32_t>(op.op),
			    .remote_key = static_cast<uint32_t>(op.op)};
	const int error = machine.recv(
		{.op = op.op, .memory = memory, .offset = offset, .persistent = persistent, .wait_all = wait_all});
	return take(op, error);
}

int Side::cancel(OpId op)
{
	say(name(), "user cancels", op);
	const int error = machine.cancel(op);
	act();
	return error;
}

int Side::shutdown()
{
	say(name(), "user shuts down");
	const int error = machine.shutdown();
	act();
	return error;
}

void Side::close()
{
	say(name(), "user closes");
	machine.close();
	act();
}

// ---- actions

void Side::act()
{
	for (auto actions = machine.take(); !actions.empty(); actions = machine.take())
		for (const Action &action : actions)
			std::visit([this](const auto &a) { perform(a); }, action);
}

uint8_t *Side::place(uint64_t address, uint64_t length, uint32_t key, bool remote_write, bool remote_read)
{
	const auto found = ops_.find(address >> op_shift);
	const uint64_t offset = address & ((1ULL << op_shift) - 1);
	require(found != ops_.end() && found->first == key, "memory at address ", address, " with key ", key,
		" is used, but belongs to no operation");
	UserOp &op = found->second;
	require(!op.done, "memory of operation ", op.op, " is used after its completion");
	require(offset <= op.bytes.size() && length <= op.bytes.size() - offset, length, " octets at offset ", offset,
		" are used of the memory of operation ", op.op, ", which has ", op.bytes.size());
	require(!remote_read || op.is_send, "the peer reads the memory of operation ", op.op, ", which is not a send");
	require(!remote_write || (!op.is_send && op.persistent), "the peer writes to the memory of operation ", op.op,
		", which is not a persistent recv");
	return op.bytes.data() + offset;
}

void Side::perform(const action::Post &action)
{
	say(name(), "post type, id, length, status, flags", static_cast<unsigned>(action.message.type), action.message.id,
	    action.message.length, static_cast<unsigned>(action.message.status), action.message.flags);
	const auto bytes = wire::encode(action.message);
	Item item{.message = {bytes.begin(), bytes.end()}, .memory = action.data, .work = action.work};
	require(action.work == 0 || action.data.length != 0, "message ", action.message.id,
		" is posted without data, but with a completion");
	require(action.work != 0 || action.data.length == 0, "message ", action.message.id,
		" is posted with data, but without a completion");
	if (action.message.type != wire::Type::adv_imm)
		require(action.data.length == 0, "message ", action.message.id, " of type ",
			static_cast<unsigned>(action.message.type), " is posted with data, which only adv_imm has");
	else
		require(action.data.length == action.message.length && action.data.length <= config_.send_immediate,
			"message ", action.message.id, " announces ", action.message.length, " octets of data and has ",
			action.data.length, ", at most ", config_.send_immediate, " are allowed");
	posted_.push_back(std::move(item));
}

void Side::perform(const action::Read &action)
{
	say(name(), "read work, into, length, from", action.work, action.memory.address >> op_shift, action.memory.length,
	    action.key);
	Item item{.kind = Item::Kind::read,
		  .memory = action.memory,
		  .work = action.work,
		  .remote = action.remote,
		  .key = action.key};
	require(reads_.size() < config_.ord, "Read ", action.work, " exceeds the ORD of ", config_.ord);
	require(action.memory.length != 0 && action.memory.length <= config_.largest, "Read ", action.work, " has ",
		action.memory.length, " octets, not 1 to ", config_.largest);
	require(reads_.emplace(action.work, item).second, "number ", action.work, " is used for two Reads");
	posted_.push_back(std::move(item));
}

void Side::perform(const action::Write &action)
{
	say(name(), "write work, from, length, into", action.work, action.memory.address >> op_shift, action.memory.length,
	    action.key);
	require(action.memory.length != 0 && action.memory.length <= config_.largest, "Write ", action.work, " has ",
		action.memory.length, " octets, not 1 to ", config_.largest);
	posted_.push_back({.kind = Item::Kind::write,
			   .memory = action.memory,
			   .work = action.work,
			   .remote = action.remote,
			   .key = action.key});
}

void Side::perform(const action::Copy &action)
{
	const auto found = buffers_.find(action.buffer);
	require(found != buffers_.end(), "data are copied from buffer ", action.buffer, ", which holds no message");
	const auto &bytes = found->second;
	require(wire::message_size + action.offset + action.to.length <= bytes.size(), action.to.length,
		" octets at offset ", action.offset, " are copied from the data in buffer ", action.buffer, ", which has ",
		bytes.size() - wire::message_size);
	uint8_t *to = place(action.to.address, action.to.length, action.to.local_key, false, false);
	std::copy_n(bytes.begin() + static_cast<ptrdiff_t>(wire::message_size + action.offset), action.to.length, to);
}

void Side::perform(const action::Repost &action)
{
	require(buffers_.erase(action.buffer) == 1, "buffer ", action.buffer, " is posted again, but holds no message");
	free_buffers_.push_back(action.buffer);
}

void Side::perform(const action::Complete &action)
{
	say(name(), "complete op, error, length", action.op, action.error, action.length);
	const auto found = ops_.find(action.op);
	require(found != ops_.end(), "operation ", action.op, " completes, but does not exist");
	require(!found->second.done, "operation ", action.op, " completes twice");
	require(action.length <= found->second.bytes.size(), "operation ", action.op, " completes with ", action.length,
		" octets, its memory has ", found->second.bytes.size());
	found->second.done = action;
	if (!found->second.is_send && (action.error == 0 || action.length != 0) && !action.eof)
		received.push_back(action.op);
}

void Side::perform(const action::Noted &action)
{
	UserOp &noted = ops_.at(action.op);
	require(noted.live() && noted.is_send && noted.persistent, "operation ", action.op,
		" is reported as read by the peer, but is not a live persistent send");
	noted.noted += action.count;
}

void Side::perform(const action::Limit &action)
{
	require(ops_.at(action.op).live(), "operation ", action.op, " has a limit, but has completed");
}

void Side::perform(const action::Start &action)
{
	timers_[action.timer] = true;
}

void Side::perform(const action::Stop &action)
{
	timers_.erase(action.timer);
}

void Side::perform(const action::Opened & /*action*/)
{
	require(!opened, "end ", name(), " is opened twice");
	opened = true;
}

void Side::perform(const action::Disconnect & /*action*/)
{
	disconnecting_ = true;
}

void Side::perform(const action::Abort & /*action*/)
{
	go_down();
}

void Side::go_down()
{
	say(name(), "goes down");
	if (down_)
		return;
	down_ = true;
	timers_.clear();
	posted_.clear();
	requests_.clear();
	inbound_.clear();
	events_.clear();
	reads_.clear();
	machine.gone();
	act();
}

// ---- steps

bool Side::transmit()
{
	if (down_ || posted_.empty()) {
		if (down_ || !disconnecting_)
			return false;
		go_down();
		return true;
	}
	Item item = std::move(posted_.front());
	posted_.pop_front();
	if (item.kind == Item::Kind::message && item.memory.length != 0) {
		const uint8_t *from = place(item.memory.address, item.memory.length, item.memory.local_key, false, false);
		item.message.insert(item.message.end(), from, from + item.memory.length);
		events_.push_back({.work = item.work});
	} else if (item.kind == Item::Kind::write) {
		const uint8_t *from = place(item.memory.address, item.memory.length, item.memory.local_key, false, false);
		item.data.assign(from, from + item.memory.length);
		events_.push_back({.work = item.work});
	}
	sent.messages += item.kind == Item::Kind::message;
	sent.read_requests += item.kind == Item::Kind::read;
	sent.writes += item.kind == Item::Kind::write;
	if (!peer().down_)
		peer().inbound_.push_back(std::move(item));
	return true;
}

bool Side::deliver()
{
	if (down_ || inbound_.empty())
		return false;
	Item item = std::move(inbound_.front());
	inbound_.pop_front();
	arrive(std::move(item));
	return true;
}

void Side::arrive(Item item)
{
	switch (item.kind) {
	case Item::Kind::message: {
		require(!free_buffers_.empty(), "a message arrives at end ", name(), ", which has no free buffer");
		const uint32_t buffer = free_buffers_.front();
		free_buffers_.pop_front();
		events_.push_back({.message = std::move(item.message), .buffer = buffer});
		return;
	}
	case Item::Kind::read:
		require(requests_.size() < config_.ird, "Read ", item.work, " exceeds the IRD of ", config_.ird, " of end ", name());
		requests_.push_back(std::move(item));
		return;
	case Item::Kind::response: {
		const auto read = reads_.find(item.work);
		require(read != reads_.end(), "a response arrives for Read ", item.work, ", which end ", name(), " has not sent");
		const Memory &memory = read->second.memory;
		uint8_t *to = place(memory.address, memory.length, memory.local_key, false, false);
		std::ranges::copy(item.data, to);
		reads_.erase(read);
		events_.push_back({.work = item.work});
		return;
	}
	case Item::Kind::write:
		std::ranges::copy(item.data, place(item.remote, item.data.size(), item.key, true, false));
		return;
	}
}

bool Side::answer()
{
	if (down_ || requests_.empty())
		return false;
	Item item = std::move(requests_.front());
	requests_.pop_front();
	say(name(), "answers read of, length", item.key, item.memory.length);
	const uint8_t *from = place(item.remote, item.memory.length, item.key, false, true);
	sent.read_responses++;
	if (!peer().down_)
		peer().inbound_.push_back({.kind = Item::Kind::response,
					   .data = {from, from + item.memory.length},
					   .work = item.work});
	return true;
}

bool Side::process()
{
	if (down_ || events_.empty())
		return false;
	const Event event = std::move(events_.front());
	events_.pop_front();
	if (event.message.empty()) {
		machine.done(event.work);
	} else {
		buffers_[event.buffer] = event.message;
		machine.message(std::span(event.message).first(wire::message_size),
				event.message.size() - wire::message_size, event.buffer);
	}
	act();
	return true;
}

bool Side::step()
{
	return process() || deliver() || answer() || transmit();
}

void Side::lose(int error)
{
	machine.lost(error);
	act();
}

void Side::expire()
{
	machine.timeout();
	act();
}

// ---- both

World::World(const Machine::Config &initiator, const Machine::Config &responder)
    : a(std::make_unique<Side>(*this, initiator)), b(std::make_unique<Side>(*this, responder))
{
	a->machine.start();
	a->act();
}

Machine::Config World::config(bool stream)
{
	return {.initiator = true, .stream = stream, .send_credits = 4, .recv_credits = 4, .send_immediate = 64,
		.recv_immediate = 64, .ord = 4, .ird = 4, .largest = 1000, .writes = 4};
}

// An end whose peer is down gets what has been sent, then it finds out
void World::end_of_connection()
{
	for (Side *side : {a.get(), b.get()}) {
		if (!side->peer().is_down())
			continue;
		while (side->process() || side->deliver())
			;
		if (!side->is_down())
			side->lose(ECONNRESET);
	}
}

void World::run()
{
	for (;;) {
		bool went_on = false;
		for (Side *side : {a.get(), b.get()})
			while (side->step())
				went_on = true;
		if (went_on)
			continue;
		if (a->is_down() == b->is_down())
			return;
		end_of_connection();
	}
}

void World::check(bool lost)
{
	for (const Side *side : {a.get(), b.get()}) {
		for (const auto &[number, op] : side->ops())
			require(!op.taken || op.done, "operation ", number, " never completes");
		require(side->reads_.empty() && side->requests_.empty(), "end ", side->name(), " is down, but has ",
			side->reads_.size(), " Reads without a response and ", side->requests_.size(), " to answer");
	}
	if (a->config_.stream) {
		check_stream(*a, *b, lost);
		check_stream(*b, *a, lost);
	} else {
		check_packets(*a, *b);
		check_packets(*b, *a);
	}
}

void World::check_packets(const Side &from, const Side &to) const
{
	OpId last = 0;
	std::set<OpId> arrived;
	for (const OpId number : to.received) {
		const UserOp &recv = to.ops_.at(number);
		const uint64_t length = recv.done->length;
		if (length < 4 || recv.persistent)
			continue;
		const OpId sent = recv.bytes[0] | recv.bytes[1] << 8 | recv.bytes[2] << 16 | OpId{recv.bytes[3]} << 24;
		const auto found = from.ops_.find(sent);
		if (found == from.ops_.end())
			continue; // a part of persistent memory
		const UserOp &send = found->second;
		require(length <= send.bytes.size() &&
				std::equal(recv.bytes.begin(), recv.bytes.begin() + static_cast<ptrdiff_t>(length),
					   send.bytes.begin()),
			"operation ", number, " has received other data than operation ", sent, " has sent");
		if (send.persistent)
			continue;
		require(sent > last, "the message of operation ", sent, " arrives twice, or after that of the later operation ",
			last);
		last = sent;
		arrived.insert(sent);
	}
	for (const auto &[number, send] : from.ops_) {
		const bool read = send.is_send && !send.persistent && send.done && send.done->error == 0 &&
				  send.done->length >= 4;
		// into persistent memory it goes without a recv for each
		const bool into_memory =
			std::ranges::any_of(to.ops_, [](const auto &o) { return !o.second.is_send && o.second.persistent; });
		require(!read || into_memory || arrived.contains(number),
			"the message of operation ", number, " was sent, but not received");
	}
}

// Can what was received from here on have come of these sends? How much of one has been read before it was given up is
// not known; the octets that a next one begins with may happen to be the same.
bool World::explains(std::span<const UserOp *const> sends, std::span<const uint8_t> received, bool lost)
{
	while (!sends.empty()) {
		const auto &bytes = sends.front()->bytes;
		const action::Complete &done = *sends.front()->done;
		sends = sends.subspan(1);
		if (done.error == 0 || done.length != 0) {
			const size_t length = std::min(lost ? received.size() : done.length, done.length);
			if (length > received.size() || !std::equal(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(length),
								    received.begin()))
				return false;
			received = received.subspan(length);
			continue;
		}
		for (auto read = std::ranges::mismatch(bytes, received).in1 - bytes.begin(); read != 0; read--)
			if (explains(sends, received.subspan(static_cast<size_t>(read)), lost))
				return true;
	}
	return received.empty();
}

void World::check_stream(const Side &from, const Side &to, bool lost) const
{
	std::vector<uint8_t> all;
	for (const OpId number : to.received) {
		const UserOp &recv = to.ops_.at(number);
		all.insert(all.end(), recv.bytes.begin(), recv.bytes.begin() + static_cast<ptrdiff_t>(recv.done->length));
	}
	std::vector<const UserOp *> sends;
	for (const auto &[number, op] : from.ops_)
		if (op.is_send && op.taken)
			sends.push_back(&op);
	require(explains(sends, all, lost), "the octets that end ", to.name(), " has received differ from those that end ",
		from.name(), " has sent");
}

} // namespace libexs::test
