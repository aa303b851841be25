// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//
// A machine whose peer says anything, and whose user does anything: whatever the peer advertises, nothing but that is
// read and written, into memory of operations that are under way; buffers are posted once; each operation completes once.
#include "../src/machine.h"

#include <cerrno>
#include <cstdlib>
#include <map>
#include <set>

namespace {

using namespace libexs;

void require(bool holds)
{
	if (!holds)
		std::abort();
}

class Input {
public:
	Input(const uint8_t *data, size_t size) : rest_(data, size) {}

	uint8_t byte()
	{
		if (rest_.empty())
			return 0;
		const uint8_t value = rest_.front();
		rest_ = rest_.subspan(1);
		return value;
	}
	[[nodiscard]] bool empty() const { return rest_.empty(); }

private:
	std::span<const uint8_t> rest_;
};

struct Work {
	OpId op;
	bool is_read;
};

class Harness {
public:
	explicit Harness(Input &input);
	void run();

private:
	static Machine::Config config(Input &input);
	void step();
	void say();
	void send();
	void recv();
	void cancel();
	void complete_work();
	void act();
	OpId owner(const Memory &memory);

	void perform(const action::Post &post);
	void perform(const action::Read &read);
	void perform(const action::Write &write);
	void perform(const action::Copy &copy);
	void perform(const action::Repost &repost);
	void perform(const action::Complete &complete);
	void perform(const action::Noted &noted);
	void perform(const action::Limit &limit) { require(live_.contains(limit.op)); }
	void perform(const action::Start &) {}
	void perform(const action::Stop &) {}
	void perform(const action::Opened &) {}
	void perform(const action::Disconnect &) { ended_ = true; }
	void perform(const action::Abort &) { ended_ = true; }

	Input &input_;
	Machine::Config config_;
	Machine machine_;
	std::map<OpId, uint64_t> live_; // length
	std::map<uint64_t, Work> works_;
	std::map<uint32_t, uint64_t> held_; // buffers: octets of data
	std::set<uint32_t> memory_;	    // keys that the peer has ever advertised
	std::vector<uint32_t> adverts_;     // of ours
	OpId op_ = 0;
	uint32_t buffer_ = 0, peer_id_ = 0, key_ = 0;
	uint32_t reads_ = 0;
	bool closed_ = false, ended_ = false;
};

constexpr uint64_t peer_base = 1ULL << 40;

Machine::Config Harness::config(Input &input)
{
	const uint8_t a = input.byte(), b = input.byte();
	return {.initiator = (a & 1) != 0,
		.stream = (a & 2) != 0,
		.send_credits = 1U + (a >> 2 & 3),
		.recv_credits = 1U + (a >> 4 & 3),
		.send_immediate = (a & 64) != 0 ? 32U : 0U,
		.recv_immediate = (a & 128) != 0 ? 32U : 0U,
		.ord = b & 3U,
		.ird = b >> 2 & 3U,
		.largest = 1ULL + (b >> 4) * 8,
		.writes = 2};
}

Harness::Harness(Input &input) : input_(input), config_(config(input)), machine_(config_) {}

OpId Harness::owner(const Memory &memory)
{
	const OpId op = memory.address >> 16;
	const uint64_t offset = memory.address & 0xffff;
	require(live_.contains(op) && offset <= live_[op] && memory.length <= live_[op] - offset);
	return op;
}

void Harness::perform(const action::Post &post)
{
	require(!closed_ && !ended_);
	closed_ = post.message.type == wire::Type::close;
	if (post.work != 0)
		works_[post.work] = {owner(post.data), false};
	if (post.message.type == wire::Type::adv || post.message.type == wire::Type::adv_imm ||
	    post.message.type == wire::Type::radv)
		adverts_.push_back(post.message.id);
	require(wire::decode_message(wire::encode(post.message)) == post.message);
}

// Within what the peer has advertised: each place of it is known by its key
void Harness::perform(const action::Read &read)
{
	require(!ended_ && ++reads_ <= config_.ord && read.memory.length != 0 && read.memory.length <= config_.largest);
	require(memory_.contains(read.key));
	require(read.remote >= peer_base * read.key && read.remote + read.memory.length <= peer_base * read.key + 4096);
	require(works_.emplace(read.work, Work{owner(read.memory), true}).second);
}

void Harness::perform(const action::Write &write)
{
	require(!ended_ && write.memory.length != 0 && write.memory.length <= config_.largest);
	require(memory_.contains(write.key));
	require(write.remote >= peer_base * write.key && write.remote + write.memory.length <= peer_base * write.key + 4096);
	require(works_.emplace(write.work, Work{owner(write.memory), false}).second);
}

void Harness::perform(const action::Copy &copy)
{
	const auto held = held_.find(copy.buffer);
	require(held != held_.end() && copy.offset <= held->second && copy.to.length <= held->second - copy.offset);
	owner(copy.to);
}

void Harness::perform(const action::Repost &repost)
{
	require(held_.erase(repost.buffer) == 1);
}

// Not with work in flight, unless the connection has been taken down
void Harness::perform(const action::Complete &complete)
{
	require(live_.contains(complete.op) && complete.length <= live_[complete.op]);
	for (const auto &[number, work] : works_)
		require(ended_ || work.op != complete.op);
	live_.erase(complete.op);
}

void Harness::perform(const action::Noted &noted)
{
	require(live_.contains(noted.op) && noted.count != 0);
}

void Harness::act()
{
	for (auto actions = machine_.take(); !actions.empty(); actions = machine_.take())
		for (const Action &action : actions)
			std::visit([this](const auto &a) { perform(a); }, action);
}

// Likely to be right in most fields, else nothing would come of it
void Harness::say()
{
	wire::Message message{.type = static_cast<wire::Type>(input_.byte() % 13)};
	uint64_t data = 0;
	const uint8_t odd = input_.byte();
	switch (message.type) {
	case wire::Type::adv:
	case wire::Type::radv:
		message.flags = message.type == wire::Type::adv ? input_.byte() & 3 : 0;
		message.id = ++peer_id_;
		message.key = ++key_;
		message.address = peer_base * message.key;
		message.length = 1 + input_.byte() * 16U;
		memory_.insert(message.key);
		break;
	case wire::Type::adv_imm:
		message.id = ++peer_id_;
		data = message.length = input_.byte() % 36;
		break;
	case wire::Type::ack:
		message.status = static_cast<wire::Status>(input_.byte() % 5);
		message.length = input_.byte();
		message.count = input_.byte() % 3;
		[[fallthrough]];
	case wire::Type::note:
	case wire::Type::revoked:
		message.id = adverts_.empty() ? 1 : adverts_[input_.byte() % adverts_.size()];
		message.count = message.type == wire::Type::note ? 1 : message.count;
		break;
	case wire::Type::note_ack:
	case wire::Type::revoke:
		message.id = peer_id_ == 0 ? 1 : 1 + input_.byte() % peer_id_;
		break;
	case wire::Type::close:
		message.flags = odd & wire::flag_reply;
		break;
	default:
		break;
	}
	auto bytes = wire::encode(message);
	if (odd % 16 == 15)
		bytes[input_.byte() % bytes.size()] ^= input_.byte();
	if (odd % 16 == 14)
		data++;
	// a message that meets no buffer does not come: the peer would not get an answer either
	if (held_.size() >= Machine::buffers(config_.send_credits, config_.recv_credits))
		return;
	held_[++buffer_] = data;
	// with another key or place it would be the peer's memory all the same, but not as we know it
	const auto changed = wire::decode_message(bytes);
	if (changed && changed != message && (changed->type == wire::Type::adv || changed->type == wire::Type::radv))
		return static_cast<void>(held_.erase(buffer_));
	machine_.message(bytes, data, buffer_);
}

void Harness::send()
{
	const uint8_t kind = input_.byte();
	const uint64_t length = (kind & 1) != 0 ? input_.byte() * 16U : input_.byte() % 40;
	op_++;
	live_[op_] = length;
	Machine::SendRequest request{.op = op_, .memory = {.address = op_ << 16, .length = length}};
	request.persistent = (kind & 14) == 14;
	request.notify = request.persistent && (kind & 16) != 0;
	if ((kind & 96) == 96)
		request.offset = (kind & 128) != 0 ? UINT64_MAX - input_.byte() : input_.byte();
	if (machine_.send(request) != 0)
		live_.erase(op_);
}

void Harness::recv()
{
	const uint8_t kind = input_.byte();
	const uint64_t length = (kind & 1) != 0 ? input_.byte() * 16U : input_.byte() % 40;
	op_++;
	live_[op_] = length;
	Machine::RecvRequest request{.op = op_, .memory = {.address = op_ << 16, .length = length}};
	request.persistent = (kind & 14) == 14;
	request.wait_all = config_.stream && (kind & 16) != 0;
	if ((kind & 96) == 96)
		request.offset = (kind & 128) != 0 ? UINT64_MAX - input_.byte() : input_.byte();
	if (machine_.recv(request) != 0)
		live_.erase(op_);
}

void Harness::cancel()
{
	const OpId op = op_ == 0 ? 0 : 1 + input_.byte() % op_;
	const bool live = live_.contains(op);
	require((machine_.cancel(op) == 0) == live);
}

void Harness::complete_work()
{
	if (works_.empty() || ended_)
		return;
	const auto work = works_.begin(); // in order
	const uint64_t number = work->first;
	reads_ -= work->second.is_read;
	works_.erase(work);
	machine_.done(number);
}

void Harness::step()
{
	switch (input_.byte() % 16) {
	case 0:
		return send();
	case 1:
	case 2:
		return recv();
	case 3:
		return cancel();
	case 4:
	case 5:
	case 6:
		return complete_work();
	case 7:
		machine_.shutdown();
		return;
	case 8:
		if (input_.byte() % 8 == 0)
			machine_.close();
		return;
	case 9:
		if (input_.byte() % 32 == 0)
			machine_.lost(ECONNRESET);
		return;
	case 10:
		static_cast<void>(machine_.readable());
		static_cast<void>(machine_.writable());
		return;
	default:
		return say();
	}
}

void Harness::run()
{
	machine_.start();
	act();
	while (!input_.empty() && !ended_) {
		step();
		act();
	}
	ended_ = true;
	machine_.gone();
	act();
	require(live_.empty());
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	Input input(data, size);
	Harness(input).run();
	return 0;
}
