// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#include "machine.h"

#include <algorithm>
#include <cerrno>

namespace libexs {

using wire::Status;
using wire::Type;

namespace {

Memory slice(const Memory &memory, uint64_t offset, uint64_t length)
{
	return {.address = memory.address + offset,
		.length = length,
		.local_key = memory.local_key,
		.remote_key = memory.remote_key};
}

int error_of(Status status)
{
	switch (status) {
	case Status::ok:
		return 0;
	case Status::canceled:
		return ECANCELED;
	case Status::both_persistent:
		return EINVAL;
	case Status::too_long:
		return EMSGSIZE;
	case Status::unsupported:
		return EOPNOTSUPP;
	}
	return EPROTO;
}

} // namespace

Machine::Machine(const Config &config) : config_(config) {}

// ---- what all parts use

void Machine::complete(OpId op, int error, uint64_t length, bool eof, bool truncated)
{
	emit(action::Complete{.op = op, .error = error, .length = length, .eof = eof, .truncated = truncated});
}

// Nothing is said after CLOSE
void Machine::post(const wire::Message &message)
{
	if (phase_ == Phase::open || phase_ == Phase::draining)
		emit(action::Post{.message = message});
}

void Machine::protocol_error()
{
	lost(EPROTO);
}

uint32_t Machine::next_id()
{
	if (++id_ == 0)
		id_ = 1;
	outstanding_++;
	return id_;
}

// What can go on, does. Every event ends with this.
void Machine::pump()
{
	if (phase_ != Phase::open && phase_ != Phase::draining)
		return;
	reap_adverts();
	answer_revoke();
	if (phase_ == Phase::open) {
		pump_recvs();
		reap_adverts();
		pump_sends();
		send_fin();
		send_revoke();
	}
	reap_recvs();
	try_close();
}

// ---- the user

int Machine::send(const SendRequest &request)
{
	if (phase_ == Phase::waiting)
		return ENOTCONN;
	if (phase_ == Phase::dead && error_ != 0)
		return error_;
	if (phase_ != Phase::open || fin_wanted_)
		return EPIPE;
	if (config_.stream && (request.persistent || request.offset))
		return EOPNOTSUPP;
	if (request.persistent ? request.offset.has_value() || request.memory.length == 0 : request.notify)
		return EINVAL;
	if (!sends_.empty() && sends_.back().request.persistent)
		return EBUSY;
	if (request.persistent && remote_)
		return EINVAL; // both ends
	sends_.push_back(Send{.request = request});
	const auto last = std::prev(sends_.end());
	send_ops_.emplace(request.op, last);
	if (next_send_ == sends_.end())
		next_send_ = last;
	pump();
	return 0;
}

int Machine::recv(const RecvRequest &request)
{
	if (phase_ == Phase::waiting)
		return ENOTCONN;
	if (phase_ == Phase::dead && error_ != 0)
		return error_;
	if (config_.stream ? request.persistent || request.offset : request.wait_all)
		return EOPNOTSUPP;
	if (request.persistent && (request.offset || request.memory.length == 0))
		return EINVAL;
	if (!recvs_.empty() && recvs_.back().request.persistent)
		return EBUSY;
	if (request.persistent && !adverts_.empty() && adverts_.back().persistent && !adverts_.back().closed)
		return EINVAL; // both ends
	recvs_.push_back(Recv{.request = request});
	const auto last = std::prev(recvs_.end());
	recv_ops_.emplace(request.op, last);
	if (next_recv_ == recvs_.end())
		next_recv_ = last;
	if (phase_ != Phase::open) {
		end_without_data(last);
		reap_recvs();
	}
	pump();
	return 0;
}

int Machine::cancel(OpId op)
{
	if (const auto send = send_ops_.find(op); send != send_ops_.end())
		cancel_send(send->second);
	else if (const auto recv = recv_ops_.find(op); recv != recv_ops_.end())
		cancel_recv(recv->second);
	else
		return ENOENT;
	pump();
	if (const auto send = send_ops_.find(op); send != send_ops_.end() && send->second->state != Send::State::advertised)
		emit(action::Limit{op});
	const auto recv = recv_ops_.find(op);
	if (recv != recv_ops_.end() && recv->second->id != 0)
		recv->second->limit_due = true;
	else if (recv != recv_ops_.end())
		emit(action::Limit{op});
	return 0;
}

int Machine::shutdown()
{
	if (phase_ == Phase::waiting)
		return ENOTCONN;
	if (phase_ != Phase::open)
		return error_ != 0 ? error_ : EPIPE;
	fin_wanted_ = true;
	pump();
	return 0;
}

void Machine::close()
{
	close_wanted_ = true;
	if (phase_ == Phase::waiting)
		return lost(ECANCELED);
	if (phase_ == Phase::open)
		drain();
	pump();
}

// ---- the link

void Machine::start()
{
	if (phase_ != Phase::waiting || !config_.initiator)
		return;
	phase_ = Phase::open;
	post({.type = Type::ready});
	emit(action::Opened{});
	pump();
}

void Machine::message(std::span<const uint8_t> bytes, uint64_t data, uint32_t buffer)
{
	if (phase_ == Phase::dead || phase_ == Phase::disconnecting)
		return;
	const auto message = wire::decode_message(bytes);
	if (!message || data != (message->type == Type::adv_imm ? message->length : 0) || close_received_)
		return protocol_error();
	dispatch(*message, buffer);
	pump();
}

void Machine::done(uint64_t work)
{
	if (const auto write = write_works_.extract(work)) {
		writes_--;
		write.mapped()->writes--;
		finish_write(write.mapped());
	} else if (const auto posted = post_works_.extract(work)) {
		const auto send = posted.mapped();
		send->posting = false;
		if (send->state == Send::State::settled)
			settle(send, send->error, send->length);
	} else if (const auto found = read_works_.extract(work)) {
		const auto &[recv, advert, local] = found.mapped();
		reads_--;
		recv->reads--;
		advert->reads--;
		reap_due_ = reap_due_ || (advert->ending && advert->reads == 0);
		if (advert->notify && recv->finished && recv->error == 0 && recv->reads == 0) {
			advert->notes++;
			send_notes(*advert);
		}
	}
	pump();
}

void Machine::timeout()
{
	lost(ETIMEDOUT);
}

void Machine::lost(int error)
{
	if (phase_ == Phase::dead)
		return;
	const bool in_order = phase_ == Phase::disconnecting || (phase_ == Phase::closed && close_received_);
	error_ = in_order ? 0 : error;
	phase_ = Phase::dead;
	emit(action::Abort{error_});
}

void Machine::gone()
{
	phase_ = Phase::dead;
	for (const Send &send : sends_) {
		int error = error_ != 0 ? error_ : EPIPE;
		if (send.canceled || close_wanted_)
			error = ECANCELED;
		if (send.state == Send::State::settled)
			error = send.error;
		complete(send.request.op, error, send.length);
	}
	std::unordered_map<const Recv *, uint64_t> missing; // the first octet that has not come; Reads end in their order
	for (const auto &[work, read] : read_works_)
		missing.try_emplace(&*read.recv, read.local);
	bool hole = false; // in a stream nothing behind it is good
	for (Recv &recv : recvs_) {
		if (recv.reads != 0 || !recv.finished || hole) {
			const auto end = missing.find(&recv);
			const uint64_t whole = end != missing.end() ? end->second : recv.assigned;
			recv.assigned = config_.stream && !hole ? whole : 0;
			hole = config_.stream;
			recv.truncated = false;
			recv.error = recv.canceled || close_wanted_ ? ECANCELED : error_;
			if (recv.assigned != 0)
				recv.error = 0;
			recv.eof = recv.error == 0 && recv.assigned == 0;
		}
		complete(recv.request.op, recv.error, recv.assigned, recv.eof, recv.truncated);
	}
	forget_all();
}

void Machine::forget_all()
{
	sends_.clear();
	recvs_.clear();
	adverts_.clear();
	next_send_ = sends_.end();
	next_recv_ = recvs_.end();
	next_advert_ = adverts_.end();
	advertised_.clear();
	send_ops_.clear();
	recv_ops_.clear();
	overtaking_.clear();
	advert_ids_.clear();
	ending_.clear();
	read_works_.clear();
	write_works_.clear();
	post_works_.clear();
	remote_.reset();
	reads_ = writes_ = 0;
}

// ---- sending

void Machine::remove(SendPlace send)
{
	if (next_send_ == send)
		++next_send_;
	if (send->state == Send::State::advertised)
		advertised_.erase(send->id);
	send_ops_.erase(send->request.op);
	sends_.erase(send);
}

void Machine::pump_sends()
{
	while (next_send_ != sends_.end()) {
		if (remote_ && !advertised_.empty())
			return; // it has to be read before others are written
		if (next_send_->canceled && next_send_->state == Send::State::writing)
			return; // the order stays
		if (!(remote_ ? write(next_send_) : advertise(next_send_)))
			return;
	}
}

int Machine::refuse_write(const SendRequest &request) const
{
	if (request.persistent)
		return EINVAL; // both ends
	if (request.offset) {
		const bool fits = *request.offset <= remote_->length &&
				  request.memory.length <= remote_->length - *request.offset;
		return fits ? 0 : ERANGE;
	}
	return request.memory.length <= remote_->length ? 0 : EMSGSIZE;
}

// False: it has to wait
bool Machine::write(SendPlace send)
{
	const SendRequest &request = send->request;
	if (remote_->revoking)
		return false;
	if (send->state == Send::State::queued) {
		if (const int error = refuse_write(request); error != 0) {
			complete(request.op, error);
			remove(send);
			return true;
		}
		send->state = Send::State::writing;
	}
	while (send->written < request.memory.length && writes_ < config_.writes) {
		const uint64_t length = std::min(request.memory.length - send->written, config_.largest);
		emit(action::Write{.work = ++work_,
				   .memory = slice(request.memory, send->written, length),
				   .remote = remote_->address + request.offset.value_or(0) + send->written,
				   .key = remote_->key});
		write_works_.emplace(work_, send);
		send->written += length;
		send->writes++;
		writes_++;
	}
	const bool posted = send->written == request.memory.length;
	if (posted)
		next_send_ = std::next(send);
	finish_write(send);
	return posted;
}

// If all of it has been written, or no more of it is to be
void Machine::finish_write(SendPlace send)
{
	const uint64_t length = send->request.memory.length;
	if (send->writes != 0 || (!send->canceled && send->written < length))
		return;
	if (send->written == length)
		complete(send->request.op, 0, length);
	else
		complete(send->request.op, close_received_ && !close_wanted_ ? EPIPE : ECANCELED);
	remove(send);
}

// False: it has to wait
bool Machine::advertise(SendPlace send)
{
	const SendRequest &request = send->request;
	const uint64_t length = request.memory.length;
	const bool immediate = !request.persistent && length <= config_.send_immediate;
	if (config_.stream && length == 0) {
		complete(request.op, 0);
		remove(send);
		return true;
	}
	if (!immediate && config_.ird == 0) {
		complete(request.op, EOPNOTSUPP);
		remove(send);
		return true;
	}
	if (request.offset || !has_credit())
		return false;
	send->state = Send::State::advertised;
	send->id = next_id();
	advertised_.emplace(send->id, send);
	next_send_ = std::next(send);
	if (immediate) {
		action::Post post{.message = {.type = Type::adv_imm, .id = send->id, .length = length}};
		if (length != 0) {
			post.data = request.memory;
			post.work = ++work_;
			post_works_.emplace(work_, send);
			send->posting = true;
		}
		emit(post);
		return true;
	}
	const int flags = (request.persistent ? wire::flag_persistent : 0) | (request.notify ? wire::flag_notify : 0);
	post({.type = Type::adv,
	      .flags = static_cast<uint8_t>(flags),
	      .id = send->id,
	      .length = length,
	      .address = request.memory.address,
	      .key = request.memory.remote_key});
	return true;
}

// It completes with this, but not before its data have left
void Machine::settle(SendPlace send, int error, uint64_t length)
{
	if (send->posting) {
		advertised_.erase(send->id);
		send->state = Send::State::settled;
		send->error = error;
		send->length = length;
		return;
	}
	complete(send->request.op, error, length);
	remove(send);
}

void Machine::send_fin()
{
	if (!fin_wanted_ || fin_sent_ || next_send_ != sends_.end())
		return;
	fin_sent_ = true;
	post({.type = Type::fin});
}

void Machine::cancel_send(SendPlace send)
{
	if (send->state == Send::State::settled)
		return;
	if (send->state == Send::State::queued || (send->state == Send::State::writing && send->writes == 0)) {
		complete(send->request.op, ECANCELED);
		remove(send);
		return;
	}
	if (!send->canceled && send->state == Send::State::advertised)
		revokes_.push_back(send->id);
	send->canceled = true;
}

Machine::SendPlace Machine::find_advertised(uint32_t id)
{
	const auto found = advertised_.find(id);
	return found != advertised_.end() ? found->second : sends_.end();
}

// ---- receiving

void Machine::pump_recvs()
{
	for (;;) {
		const auto recv = next_recv();
		if (recv == recvs_.end())
			return;
		if (config_.stream && recv->request.memory.length == 0) {
			finish_recv(recv);
			continue;
		}
		if (recv->request.persistent ? !serve_persistent(recv) : !serve(recv))
			return;
	}
}

// The first one that is not finished
Machine::RecvPlace Machine::next_recv()
{
	while (next_recv_ != recvs_.end() && next_recv_->finished)
		++next_recv_;
	return next_recv_;
}

Machine::AdvertPlace Machine::next_advert()
{
	const bool waits = next_advert_ != adverts_.end() && (next_advert_->revoking || next_advert_->again);
	return waits ? adverts_.end() : next_advert_;
}

// False: it has to wait
bool Machine::serve(RecvPlace recv)
{
	const auto advert = next_advert();
	if (advert != adverts_.end()) {
		if (config_.stream)
			return take_stream(recv, advert);
		return advert->persistent ? read_persistent(recv, advert) : take_packet(recv, advert);
	}
	if (fin_received_ && all_adverts_closed()) {
		end_without_data(recv);
		return true;
	}
	if (config_.stream && recv->assigned != 0 && !recv->request.wait_all) {
		finish_recv(recv);
		return true;
	}
	return false;
}

void Machine::finish_recv(RecvPlace recv, int error)
{
	recv->finished = true;
	recv->error = error;
	if (error != 0 && !config_.stream)
		recv->assigned = 0;
	if (error == ECANCELED && recv->assigned == 0)
		overtaking_.push_back(recv);
}

// There will not be any more data
void Machine::end_without_data(RecvPlace recv)
{
	recv->eof = false;
	if (config_.stream && recv->assigned != 0)
		return finish_recv(recv);
	if (close_wanted_ || recv->canceled)
		return finish_recv(recv, ECANCELED);
	if (dropped_)
		return finish_recv(recv, ECONNRESET);
	recv->assigned = 0;
	recv->eof = true;
	finish_recv(recv);
}

// It is the next one
void Machine::close_advert(AdvertPlace advert, Status status)
{
	advert->closed = true;
	advert->status = status;
	if (status != Status::ok)
		advert->assigned = 0;
	next_advert_ = std::next(advert);
	release_soon(advert);
}

void Machine::release_soon(AdvertPlace advert)
{
	if (!std::exchange(advert->ending, true))
		ending_.push_back(advert);
	reap_due_ = reap_due_ || advert->reads == 0;
}

void Machine::read_again(AdvertPlace advert)
{
	advert->again = true;
	release_soon(advert);
}

// Memory of a receive from an octet on, as far as it is in one piece
Memory Machine::place(const RecvRequest &request, uint64_t at, uint64_t length)
{
	if (request.parts.empty())
		return slice(request.memory, at, length);
	const auto next = std::ranges::upper_bound(request.parts, at, {}, &Part::start);
	const Part &part = *std::prev(next);
	return slice(part.memory, at - part.start, std::min(length, part.memory.length - (at - part.start)));
}

void Machine::copy(Advert &advert, const RecvRequest &to, uint64_t at, uint64_t length)
{
	while (length != 0) {
		const Memory piece = place(to, at, length);
		emit(action::Copy{.buffer = *advert.buffer, .offset = advert.assigned, .to = piece});
		advert.assigned += piece.length;
		at += piece.length;
		length -= piece.length;
	}
}

// Of the next Read
uint64_t Machine::next_length(RecvPlace recv, uint64_t left) const
{
	return place(recv->request, recv->assigned, std::min(left, config_.largest)).length;
}

bool Machine::read(RecvPlace recv, AdvertPlace advert, uint64_t local, uint64_t remote,
		   uint64_t length)
{
	if (reads_ >= config_.ord)
		return false;
	emit(action::Read{.work = ++work_,
			  .memory = place(recv->request, local, length),
			  .remote = advert->address + remote,
			  .key = advert->key});
	read_works_.emplace(work_, ReadWork{recv, advert, local});
	recv->reads++;
	advert->reads++;
	reads_++;
	return true;
}

bool Machine::take_stream(RecvPlace recv, AdvertPlace advert)
{
	// octets that are there do not wait for a Read, which the peer may never answer
	if (!advert->immediate && advert->assigned == 0 && recv->assigned != 0 && !recv->request.wait_all) {
		finish_recv(recv);
		return true;
	}
	uint64_t length = std::min(recv->request.memory.length - recv->assigned, advert->length - advert->assigned);
	if (advert->immediate) {
		copy(*advert, recv->request, recv->assigned, length);
	} else if (config_.ord == 0) {
		close_advert(advert, Status::unsupported);
		finish_recv(recv, EOPNOTSUPP);
		return true;
	} else {
		length = next_length(recv, length);
		if (!read(recv, advert, recv->assigned, advert->assigned, length))
			return false;
		advert->assigned += length;
	}
	recv->assigned += length;
	if (advert->assigned == advert->length)
		close_advert(advert);
	if (recv->assigned == recv->request.memory.length)
		finish_recv(recv);
	return true;
}

bool Machine::take_packet(RecvPlace recv, AdvertPlace advert)
{
	if (recv->request.offset) {
		finish_recv(recv, EINVAL); // the peer has no persistent memory
		return true;
	}
	const uint64_t target = std::min(recv->request.memory.length, advert->length);
	recv->from = advert->id;
	if (advert->immediate) {
		copy(*advert, recv->request, 0, target);
		recv->assigned = target;
	} else if (target != 0 && config_.ord == 0) {
		close_advert(advert, Status::unsupported);
		finish_recv(recv, EOPNOTSUPP);
		return true;
	}
	while (recv->assigned < target) {
		const uint64_t length = next_length(recv, target - recv->assigned);
		if (!read(recv, advert, recv->assigned, recv->assigned, length))
			return false;
		recv->assigned += length;
		advert->assigned += length;
	}
	recv->truncated = advert->length > target;
	close_advert(advert);
	finish_recv(recv);
	return true;
}

bool Machine::read_persistent(RecvPlace recv, AdvertPlace advert)
{
	const RecvRequest &request = recv->request;
	const uint64_t offset = request.offset.value_or(0);
	if (config_.ord == 0) {
		finish_recv(recv, EOPNOTSUPP);
		return true;
	}
	if (request.offset && (offset > advert->length || request.memory.length > advert->length - offset)) {
		finish_recv(recv, ERANGE);
		return true;
	}
	recv->from = advert->id;
	const uint64_t target = std::min(request.memory.length, advert->length - offset);
	while (recv->assigned < target) {
		const uint64_t length = next_length(recv, target - recv->assigned);
		if (!read(recv, advert, recv->assigned, offset + recv->assigned, length))
			return false;
		recv->assigned += length;
	}
	finish_recv(recv);
	return true;
}

// The peer is told of the memory; what it had advertised before it knew is read into it.
// False: nothing more to do now
bool Machine::serve_persistent(RecvPlace recv)
{
	const auto advert = next_advert();
	const bool persistent = advert != adverts_.end() && advert->persistent;
	const bool at_end = advert == adverts_.end() && fin_received_ && all_adverts_closed();
	if (recv->id == 0) {
		if (persistent) {
			finish_recv(recv, EINVAL); // both ends
			return true;
		}
		if (at_end) {
			end_without_data(recv);
			return true;
		}
		if (!has_credit())
			return false;
		recv->id = next_id();
		post({.type = Type::radv,
		      .id = recv->id,
		      .length = recv->request.memory.length,
		      .address = recv->request.memory.address,
		      .key = recv->request.memory.remote_key});
	}
	if (at_end && !recv->canceled) {
		recv->eof = true;
		cancel_recv(recv);
	}
	if (advert == adverts_.end() || recv->canceled)
		return false;
	if (persistent) {
		close_advert(advert, Status::both_persistent);
		return true;
	}
	return fill_persistent(recv, advert);
}

bool Machine::fill_persistent(RecvPlace recv, AdvertPlace advert)
{
	if (advert->length > recv->request.memory.length) {
		close_advert(advert, Status::too_long);
		return true;
	}
	if (advert->immediate)
		copy(*advert, recv->request, 0, advert->length);
	else if (config_.ord == 0) {
		close_advert(advert, Status::unsupported);
		return true;
	}
	while (advert->assigned < advert->length) {
		const uint64_t length = std::min(advert->length - advert->assigned, config_.largest);
		if (!read(recv, advert, advert->assigned, advert->assigned, length))
			return false;
		advert->assigned += length;
	}
	close_advert(advert);
	return true;
}

void Machine::complete(RecvPlace recv)
{
	complete(recv->request.op, recv->error, recv->assigned, recv->eof, recv->truncated);
	if (next_recv_ == recv)
		++next_recv_;
	recv_ops_.erase(recv->request.op);
	recvs_.erase(recv);
}

// Completions come in the order of the calls, but for what was cancelled before it had anything
void Machine::reap_recvs()
{
	reap_first_recvs();
	std::erase_if(overtaking_, [this](RecvPlace recv) {
		const bool done = recv->reads == 0;
		if (done)
			complete(recv);
		return done;
	});
	reap_first_recvs();
}

void Machine::reap_first_recvs()
{
	const auto overtakes = [](const Recv &recv) { return recv.error == ECANCELED && recv.assigned == 0; };
	while (!recvs_.empty() && recvs_.front().finished && recvs_.front().reads == 0 && !overtakes(recvs_.front()))
		complete(recvs_.begin());
}

// Of a stream no octet is acknowledged behind one that has not come
bool Machine::can_release(AdvertPlace advert)
{
	return advert->reads == 0 && (!config_.stream || !advert->closed || advert == adverts_.begin());
}

void Machine::reap_adverts()
{
	if (phase_ != Phase::open) {
		ending_.clear();
		for (auto at = adverts_.begin(); at != adverts_.end();)
			if (const auto advert = at++; can_release(advert))
				release_advert(advert);
		return;
	}
	if (!std::exchange(reap_due_, false))
		return;
	std::erase_if(ending_, [this](AdvertPlace advert) {
		if (!can_release(advert))
			return false;
		advert->ending = false;
		if (std::exchange(advert->again, false))
			advert->assigned = 0;
		if (advert->closed || advert->revoking)
			release_advert(advert);
		return true;
	});
}

// Without an ACK if the connection ends: then CLOSE says it all
void Machine::release_advert(AdvertPlace advert)
{
	if (advert->buffer)
		emit(action::Repost{*advert->buffer});
	if (!advert->closed && advert->revoking) {
		advert->status = Status::canceled;
		if (!config_.stream)
			forget_match(*advert);
	}
	if (advert->closed || advert->revoking)
		post({.type = Type::ack,
		      .status = advert->status,
		      .id = advert->id,
		      .length = advert->persistent ? 0 : advert->assigned,
		      .count = advert->notes});
	if (next_advert_ == advert)
		++next_advert_;
	advert_ids_.erase(advert->id);
	adverts_.erase(advert);
}

// What had begun to receive it waits for the next one
void Machine::forget_match(Advert &advert)
{
	advert.assigned = 0;
	if (const auto recv = next_recv(); recv != recvs_.end() && recv->from == advert.id) {
		recv->from = 0;
		recv->assigned = 0;
	}
}

void Machine::send_notes(Advert &advert)
{
	if (note_ != 0 || advert.notes == 0 || (phase_ != Phase::open && phase_ != Phase::draining))
		return;
	note_ = advert.id;
	post({.type = Type::note, .id = advert.id, .count = std::exchange(advert.notes, 0)});
}

void Machine::cancel_recv(RecvPlace recv)
{
	if (recv->canceled)
		return;
	recv->canceled = true;
	if (recv->finished)
		return; // its Reads have only to be answered
	if (recv->id != 0) {
		revokes_.push_back(recv->id);
		return;
	}
	if (config_.stream && recv->assigned != 0)
		return finish_recv(recv);
	const auto advert = advert_ids_.find(recv->from);
	if (advert != advert_ids_.end() && !advert->second->persistent && !advert->second->closed)
		read_again(advert->second);
	finish_recv(recv, ECANCELED);
}

// ---- messages

void Machine::dispatch(const wire::Message &message, uint32_t buffer)
{
	if ((phase_ == Phase::waiting) != (message.type == Type::ready))
		return protocol_error();
	const bool holds_data = message.type == Type::adv_imm && message.length != 0;
	if (!holds_data)
		emit(action::Repost{buffer});
	switch (message.type) {
	case Type::ready:
		return on_ready();
	case Type::adv:
	case Type::adv_imm:
		return on_advert(message, buffer);
	case Type::radv:
		return on_remote_memory(message);
	case Type::ack:
		return on_ack(message);
	case Type::note:
		return on_note(message);
	case Type::note_ack:
		return on_note_ack(message);
	case Type::revoke:
		return on_revoke(message);
	case Type::revoked:
		return on_revoked(message);
	case Type::fin:
		return on_fin();
	case Type::close:
		return on_close(message);
	}
}

void Machine::on_ready()
{
	if (config_.initiator)
		return protocol_error();
	phase_ = Phase::open;
	emit(action::Opened{});
}

// Advertisements are numbered without a gap, and no more than we have credits for
bool Machine::take_id(uint32_t id)
{
	const uint32_t expected = peer_id_ + 1 != 0 ? peer_id_ + 1 : 1;
	if (id != expected || adverts_.size() + (remote_ ? 1 : 0) >= config_.recv_credits) {
		protocol_error();
		return false;
	}
	peer_id_ = id;
	taken_ids_++;
	return true;
}

void Machine::on_advert(const wire::Message &message, uint32_t buffer)
{
	const bool immediate = message.type == Type::adv_imm;
	const bool persistent = (message.flags & wire::flag_persistent) != 0;
	const bool behind_persistent = !adverts_.empty() && adverts_.back().persistent && !adverts_.back().closed;
	if (fin_received_ || behind_persistent || (config_.stream && (persistent || message.length == 0)) ||
	    (immediate && message.length > config_.recv_immediate))
		return protocol_error();
	if (!take_id(message.id))
		return;
	const Advert advert{.id = message.id,
		      .length = message.length,
		      .address = message.address,
		      .key = message.key,
		      .persistent = persistent,
		      .notify = (message.flags & wire::flag_notify) != 0,
		      .buffer = immediate && message.length != 0 ? std::optional(buffer) : std::nullopt,
		      .immediate = immediate};
	adverts_.push_back(advert);
	const auto last = std::prev(adverts_.end());
	advert_ids_.emplace(advert.id, last);
	if (next_advert_ == adverts_.end())
		next_advert_ = last;
}

void Machine::on_remote_memory(const wire::Message &message)
{
	if (remote_ || config_.stream)
		return protocol_error();
	if (!take_id(message.id))
		return;
	if (!sends_.empty() && sends_.back().request.persistent)
		return post({.type = Type::ack, .status = Status::both_persistent, .id = message.id});
	remote_ = RemoteMemory{
		.id = message.id, .length = message.length, .address = message.address, .key = message.key};
}

void Machine::on_ack(const wire::Message &message)
{
	if (const auto send = find_advertised(message.id); send != sends_.end())
		return on_send_ack(send, message);
	if (!is_written_by_peer(message.id))
		return protocol_error();
	on_recv_ack(std::prev(recvs_.end()), message);
}

// The id is that of our advertisement of memory
bool Machine::is_written_by_peer(uint32_t id)
{
	return !recvs_.empty() && recvs_.back().id == id;
}

bool Machine::is_plausible(const Send &send, const wire::Message &ack) const
{
	const SendRequest &request = send.request;
	if (ack.count != 0 && !request.notify)
		return false;
	switch (ack.status) {
	case Status::ok:
		return !request.persistent && (config_.stream ? ack.length == request.memory.length :
								ack.length <= request.memory.length);
	case Status::canceled:
		return revoke_ == send.id && ack.length <= (config_.stream ? request.memory.length : 0);
	case Status::both_persistent:
		return request.persistent && ack.length == 0;
	case Status::too_long:
	case Status::unsupported:
		return !request.persistent && ack.length == 0;
	}
	return false;
}

void Machine::on_send_ack(SendPlace send, const wire::Message &message)
{
	if (!is_plausible(*send, message))
		return protocol_error();
	const OpId op = send->request.op;
	if (message.count != 0)
		emit(action::Noted{.op = op, .count = message.count});
	settle(send, error_of(message.status), message.length);
	outstanding_--;
}

void Machine::on_recv_ack(RecvPlace recv, const wire::Message &message)
{
	const bool expected = message.status == Status::both_persistent ||
			      (message.status == Status::canceled && revoke_ == message.id);
	if (!expected || message.length != 0 || message.count != 0)
		return protocol_error();
	recv->id = 0;
	outstanding_--;
	// what was being read into it is read again, into what comes next
	for (auto advert = next_advert_; advert != adverts_.end(); ++advert)
		if (advert->assigned != 0)
			read_again(advert);
	recv->eof = recv->eof && message.status == Status::canceled;
	finish_recv(recv, recv->eof ? 0 : error_of(message.status));
	if (recv->limit_due && recv->reads != 0)
		emit(action::Limit{recv->request.op});
}

void Machine::on_note(const wire::Message &message)
{
	const auto send = find_advertised(message.id);
	if (send == sends_.end() || !send->request.notify)
		return protocol_error();
	emit(action::Noted{.op = send->request.op, .count = message.count});
	post({.type = Type::note_ack, .id = message.id});
}

void Machine::on_note_ack(const wire::Message &message)
{
	if (note_ != message.id)
		return protocol_error();
	note_ = 0;
	if (!adverts_.empty()) // none is behind a persistent one
		send_notes(adverts_.back());
}

// ---- revoking

bool Machine::was_received(uint32_t id) const
{
	const uint64_t age = uint64_t{peer_id_} - id + (id > peer_id_ ? UINT32_MAX : 0); // 0 is no number
	return age < taken_ids_;
}

void Machine::on_revoke(const wire::Message &message)
{
	if (peer_revoke_ != 0 || !was_received(message.id))
		return protocol_error();
	peer_revoke_ = message.id;
	if (remote_ && remote_->id == message.id)
		remote_->revoking = true;
	if (const auto advert = advert_ids_.find(message.id); advert != advert_ids_.end()) {
		advert->second->revoking = true;
		release_soon(advert->second);
	}
}

// A CLOSE that is to come answers it as well
void Machine::answer_revoke()
{
	if (phase_ != Phase::open || peer_revoke_ == 0 || advert_ids_.contains(peer_revoke_))
		return;
	if (remote_ && remote_->id == peer_revoke_) {
		if (writes_ != 0)
			return;
		if (next_send_ != sends_.end()) { // all before have been written
			next_send_->state = Send::State::queued;
			next_send_->written = 0;
		}
		remote_.reset();
		post({.type = Type::ack, .status = Status::canceled, .id = peer_revoke_});
	}
	post({.type = Type::revoked, .id = std::exchange(peer_revoke_, 0)});
}

bool Machine::is_outstanding(uint32_t id)
{
	return advertised_.contains(id) || is_written_by_peer(id);
}

// One at a time
void Machine::send_revoke()
{
	while (revoke_ == 0 && !revokes_.empty()) {
		const uint32_t id = revokes_.front();
		revokes_.pop_front();
		if (!is_outstanding(id))
			continue;
		revoke_ = id;
		post({.type = Type::revoke, .id = id});
		emit(action::Start{action::Timer::revoke});
	}
}

void Machine::on_revoked(const wire::Message &message)
{
	if (revoke_ != message.id || is_outstanding(message.id))
		return protocol_error();
	revoke_ = 0;
	emit(action::Stop{action::Timer::revoke});
}

// ---- closing

void Machine::on_fin()
{
	if (fin_received_)
		return protocol_error();
	fin_received_ = true;
}

void Machine::on_close(const wire::Message &message)
{
	const bool is_answer = (message.flags & wire::flag_reply) != 0;
	if (is_answer && phase_ != Phase::closed)
		return protocol_error();
	close_received_ = true;
	close_is_answer_ = is_answer;
	dropped_ = std::ranges::any_of(adverts_, [](const Advert &a) { return !a.closed && !a.persistent && !a.revoking; });
	if (phase_ == Phase::open)
		drain();
	else
		drain_sends();
	// the peer has left our persistent memory alone
	for (auto recv = recvs_.begin(); recv != recvs_.end(); ++recv) {
		recv->id = 0;
		if (!recv->finished)
			end_without_data(recv);
	}
	emit(action::Stop{action::Timer::revoke});
	if (phase_ == Phase::closed) {
		reap_recvs();
		finish_close();
	}
}

void Machine::drain()
{
	phase_ = Phase::draining;
	emit(action::Start{action::Timer::close});
	drain_sends();
	drain_recvs();
}

void Machine::drain_sends()
{
	for (auto at = sends_.begin(); at != sends_.end();) {
		const auto send = at++;
		if (send->state == Send::State::writing && send->writes != 0) {
			send->canceled = true;
			continue;
		}
		if (send->state == Send::State::settled || (send->state == Send::State::advertised && !close_received_))
			continue;
		settle(send, close_wanted_ || send->canceled ? ECANCELED : EPIPE);
	}
}

// Pending operations are not started. Memory that the peer may write to stays until the peer's CLOSE.
void Machine::drain_recvs()
{
	for (auto recv = recvs_.begin(); recv != recvs_.end(); ++recv)
		if (!recv->finished && recv->id == 0)
			end_without_data(recv);
}

void Machine::try_close()
{
	if (phase_ != Phase::draining || reads_ != 0 || writes_ != 0)
		return;
	sent_answer_ = close_received_;
	wire::Message message{.type = Type::close};
	if (sent_answer_)
		message.flags = wire::flag_reply;
	post(message);
	phase_ = Phase::closed;
	reap_recvs();
	if (close_received_)
		finish_close();
}

// The end that has received the answer to its CLOSE disconnects. If both closed at once, the initiator disconnects.
void Machine::finish_close()
{
	if (sent_answer_ || (!close_is_answer_ && !config_.initiator))
		return; // the peer does, before our deadline
	phase_ = Phase::disconnecting; // with the same deadline: a peer that reads nothing keeps what was posted from leaving
	emit(action::Disconnect{});
}

// ---- what can be asked

bool Machine::readable() const
{
	if (phase_ == Phase::waiting)
		return false;
	if (phase_ != Phase::open)
		return true;
	return next_advert_ != adverts_.end() ? !next_advert_->revoking && !next_advert_->again : fin_received_;
}

bool Machine::writable() const
{
	return phase_ == Phase::open && !fin_wanted_ && has_credit() && next_send_ == sends_.end();
}

} // namespace libexs
