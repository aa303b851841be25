// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//
// What of Socket is for listeners. A child's lock may be held where the listener's is taken, never the other way round.
#include "socket.h"

#include "address.h"

#include <algorithm>
#include <cerrno>

namespace libexs {
namespace {

constexpr size_t most_half_open = 128, at_a_time = 16;
// For which peers keep their places although others wait for one, and none of them goes on
constexpr auto half_open_time = std::chrono::seconds(3);
// After which peers that wait are looked at again, if there was no descriptor
constexpr auto descriptor_time = std::chrono::milliseconds(100);
constexpr int most_backlog = 4096;

} // namespace

int Socket::listen_verbs(Listening &listening, sockaddr_storage &address)
{
	if (protocol_ == EXS_PROTO_TCP || (protocol_ == EXS_PROTO_ANY && is_loopback(address)))
		return EPROTONOSUPPORT;
	int error = 0;
	auto listener = std::make_unique<VerbsListener>(library_.engine, shared_from_this(), address,
							static_cast<int>(listening.backlog), settings_.v6_only, error);
	if (error != 0)
		return error;
	if (error = listener->local_address(address); error != 0)
		return error;
	listening.verbs = std::move(listener);
	return 0;
}

int Socket::listen_tcp(Listening &listening, sockaddr_storage address)
{
	if (protocol_ == EXS_PROTO_ANY && settings_.tcp_port != 0)
		set_port(address, settings_.tcp_port);
	int error = 0;
	const auto make = [&] {
		return std::make_unique<TcpListener>(library_.engine, shared_from_this(), address, static_cast<int>(listening.backlog),
						     settings_.v6_only, error);
	};
	auto listener = make();
	if (error == EADDRINUSE && listening.verbs && settings_.tcp_port == 0 && port_of(address) != UINT16_MAX) {
		// siw has its ports from TCP
		listening.stands_for = port_of(address);
		set_port(address, static_cast<uint16_t>(listening.stands_for + 1));
		listener = make();
	}
	if (error == 0)
		listening.tcp = std::move(listener);
	return error;
}

// With EXS_PROTO_ANY: over RDMA, unless no device has the address, and over TCP
int Socket::listen_both(Listening &listening, sockaddr_storage &address)
{
	const int verbs = listen_verbs(listening, address);
	const bool has_device = verbs != EPROTONOSUPPORT && verbs != ENODEV && verbs != EADDRNOTAVAIL;
	if (verbs != 0 && (protocol_ == EXS_PROTO_RDMA || has_device))
		return verbs;
	if (protocol_ == EXS_PROTO_RDMA)
		return 0;
	if (const int error = listen_tcp(listening, address); error != 0)
		return error;
	return verbs != 0 ? listening.tcp->local_address(address) : 0;
}

int Socket::listen(int backlog)
{
	const Lock lock(mutex_);
	if (closing_)
		return EBADF;
	if (state_ != State::idle)
		return EINVAL;
	if (!local_)
		return EDESTADDRREQ;
	if (const int error = check_size(); error != 0)
		return error;
	auto listening = std::make_unique<Listening>();
	listening->backlog = static_cast<size_t>(std::clamp(backlog, 1, most_backlog));
	sockaddr_storage address = *local_;
	int error = listen_both(*listening, address);
	for (int again = 0; error == EADDRINUSE && port_of(*local_) == 0 && again < 16; again++) {
		listening->verbs.reset(); // the port that it got is not free for both
		listening->tcp.reset();
		address = *local_;
		error = listen_both(*listening, address);
	}
	if (error != 0)
		return error;
	local_ = address;
	listening_ = std::move(listening);
	state_ = State::listening;
	return 0;
}

int Socket::accept(const Report &report, exs_op_t &op)
{
	std::vector<Handed> handed;
	{
		const Lock lock(mutex_);
		if (state_ != State::listening)
			return EINVAL;
		if (error_ != 0)
			return error_;
		const OpId number = number_of(begin(EXS_EVENT_ACCEPT, report));
		op = static_cast<exs_op_t>(number);
		try {
			listening_->accepts.push_back(number);
			handed = hand_out();
		} catch (const std::bad_alloc &) {
			std::erase(listening_->accepts, number);
			drop(number);
			throw;
		}
	}
	for (const Handed &one : handed)
		one.child->move_to_engine(*one.engine);
	return 0;
}

std::vector<Socket::Handed> Socket::hand_out()
{
	std::vector<Handed> handed;
	auto &complete = listening_->complete;
	auto &accepts = listening_->accepts;
	while (!accepts.empty() && !complete.empty()) {
		const auto child = complete.front();
		const OpId op = accepts.front();
		// these alone may fail
		handed.reserve(handed.size() + 1);
		const exs_fd_t handle = library_.sockets.add(child, [&](exs_fd_t number) { child->set_handle(number); });
		accepts.pop_front();
		operations_.at(op).event.accepted = handle;
		const auto queue = operations_.at(op).report.queue;
		if (finish(op, 0) || !queue) {
			complete.pop_front();
			handed.push_back({child, queue ? &queue->engine() : &library_.engine});
		} else {
			library_.sockets.remove(handle); // its queue has been abandoned
		}
	}
	if (handed.empty() || !settings_.backlog_wait)
		return handed;
	try {
		admit_soon();
	} catch (const std::bad_alloc &) {
		// the next exs_accept() tries again
	}
	return handed;
}

// For one more that is half open. Peers that come all at once wait until others are open, or do not go on
bool Socket::has_room()
{
	if (settings_.backlog_wait && listening_->complete.size() >= listening_->backlog)
		return false;
	const auto &half_open = listening_->half_open;
	if (half_open.size() < most_half_open)
		return true;
	const auto left = std::max(half_open.front().since, listening_->opened) + half_open_time - Clock::now();
	if (left > Clock::duration::zero() && !timers_.contains(Timer::half_open))
		start_timer(Timer::half_open, std::chrono::ceil<std::chrono::milliseconds>(left));
	return left <= Clock::duration::zero();
}

// If has_room(). Nothing if too many wait for exs_accept(). dropped: one that was half open too long, to make room.
std::shared_ptr<Socket> Socket::make_child(std::shared_ptr<Socket> &dropped)
{
	if (listening_->complete.size() >= listening_->backlog)
		return nullptr;
	auto child = std::make_shared<Socket>(library_, domain_, type_, protocol_, settings_, weak_from_this());
	child->meant_port_ = listening_->stands_for;
	auto &half_open = listening_->half_open;
	if (half_open.size() >= most_half_open) {
		dropped = std::move(half_open.front().child);
		half_open.pop_front();
	}
	half_open.push_back({child, Clock::now()});
	return child;
}

// In the progress thread: what there is not enough of for one connection must not end the program
void Socket::start_child(const std::shared_ptr<Socket> &child, Descriptor connection, Request *request)
{
	try {
		child->start_as_child(std::move(connection), request);
	} catch (const std::exception &) {
		child->kill();
		child_lost(child);
	}
}

// Not all at once: there are other connections
void Socket::take_connections()
{
	for (size_t taken = 0; taken < at_a_time; taken++) {
		std::shared_ptr<Socket> child, dropped;
		Descriptor connection;
		{
			const Lock lock(mutex_);
			if (!listening_ || !listening_->tcp)
				return;
			if (!has_room()) {
				listening_->paused = true;
				listening_->tcp->pause(true);
				return;
			}
			connection = listening_->tcp->take(settings_.backlog_wait);
			if (connection.get() < 0 && settings_.backlog_wait && (errno == EMFILE || errno == ENFILE)) {
				start_timer(Timer::half_open, descriptor_time);
				listening_->paused = true;
				listening_->tcp->pause(true);
			}
			if (connection.get() < 0)
				return;
			child = make_child(dropped);
		}
		if (dropped)
			dropped->kill();
		if (child)
			start_child(child, std::move(connection), nullptr);
	}
}

void Socket::on_cm(uint64_t token, const CmEvent &event)
{
	Request request{.id = Verbs<rdma_cm_id>(event.is_request() ? event.id : nullptr), .event = event};
	{
		const Lock lock(mutex_);
		if (verbs_ != nullptr) {
			if (verbs_->owns(token))
				verbs_->on_cm(event);
			settle();
			return;
		}
		if (!event.is_request()) {
			if (listening_)
				on_listener_event(event);
			return;
		}
		if (!listening_ || listening_->requests.size() >= listening_->backlog)
			return refuse_request(event.id, wire::Reason::busy);
		listening_->requests.push_back(std::move(request));
	}
	admit();
}

// Of a peer that waits, or of the listener itself
void Socket::on_listener_event(const CmEvent &event)
{
	const bool was_waiting = std::erase_if(listening_->requests, [&](const Request &one) { return one.event.id == event.id; }) != 0;
	if (!was_waiting && event.type == RDMA_CM_EVENT_DEVICE_REMOVAL)
		listener_failed(ENODEV);
}

// False: nobody waits, or there is no room
bool Socket::admit_one()
{
	std::shared_ptr<Socket> child, dropped;
	std::optional<Request> request;
	{
		const Lock lock(mutex_);
		if (!listening_)
			return false;
		listening_->admitting = false;
		auto &requests = listening_->requests;
		if ((requests.empty() && !listening_->paused) || !has_room())
			return false;
		if (requests.empty()) {
			listening_->paused = false;
			listening_->tcp->pause(false);
			return false;
		}
		request = std::move(requests.front());
		requests.pop_front();
		child = make_child(dropped);
	}
	if (dropped)
		dropped->kill();
	if (child) {
		start_child(child, Descriptor(), &*request);
	} else {
		refuse_request(request->event.id, wire::Reason::busy);
	}
	return true;
}

// In the progress thread, without the lock of a child
void Socket::admit()
{
	while (admit_one())
		;
}

void Socket::admit_soon()
{
	if ((listening_->requests.empty() && !listening_->paused) || listening_->admitting)
		return;
	library_.engine.run([weak = weak_from_this()] {
		if (const auto self = weak.lock())
			self->admit();
	});
	listening_->admitting = true;
}

// The device is gone; over TCP it goes on
void Socket::listener_failed(int error)
{
	listening_->verbs.reset();
	listening_->requests.clear();
	if (listening_->tcp)
		return;
	error_ = error;
	while (!listening_->accepts.empty()) {
		const OpId op = listening_->accepts.front();
		listening_->accepts.pop_front();
		finish(op, error);
	}
	ready_changed();
}

// The engine that the child is to have, if it has been accepted
Engine *Socket::child_opened(const std::shared_ptr<Socket> &child)
{
	const Lock lock(mutex_);
	if (!listening_)
		return nullptr; // it is closed by stop_listening()'s caller
	if (std::erase_if(listening_->half_open, [&](const HalfOpen &one) { return one.child == child; }) == 0)
		return nullptr;
	listening_->opened = Clock::now();
	admit_soon();
	listening_->complete.push_back(child);
	const auto handed = hand_out(); // it alone: others have not waited beside an exs_accept()
	ready_changed();
	return handed.empty() ? nullptr : handed.front().engine;
}

void Socket::child_lost(const std::shared_ptr<Socket> &child)
{
	const Lock lock(mutex_);
	if (!listening_)
		return;
	std::erase_if(listening_->half_open, [&](const HalfOpen &one) { return one.child == child; });
	std::erase(listening_->complete, child);
	admit_soon();
}

// So that stop_listening() cannot fail
void Socket::reserve_children(std::vector<std::shared_ptr<Socket>> &children) const
{
	if (listening_)
		children.reserve(listening_->half_open.size() + listening_->complete.size());
}

// The children are to be killed without the lock
void Socket::stop_listening(int error, std::vector<std::shared_ptr<Socket>> &children)
{
	for (const HalfOpen &one : listening_->half_open)
		children.push_back(one.child);
	children.insert(children.end(), listening_->complete.begin(), listening_->complete.end());
	for (const OpId op : listening_->accepts)
		finish(op, error);
	listening_.reset();
	state_ = State::failed;
	error_ = error;
}

} // namespace libexs
