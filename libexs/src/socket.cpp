// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#include "socket.h"

#include "address.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <system_error>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace libexs {
namespace {

constexpr auto handshake_time = std::chrono::seconds(10);
constexpr uint64_t largest_transfer = 1U << 20; // of one Read or Write: a close waits for it
constexpr uint32_t writes_in_flight = 8;
constexpr uint64_t most_buffers = 256U << 20; // octets of one connection
constexpr unsigned most_reserve = 16U << 20;

wire::Kind kind_of(int type)
{
	return type == SOCK_STREAM ? wire::Kind::stream : wire::Kind::seqpacket;
}

size_t poll_place(int events)
{
	return ((events & EXS_POLLIN) != 0 ? 1U : 0U) + ((events & EXS_POLLOUT) != 0 ? 2U : 0U);
}

} // namespace

void Readiness::changed()
{
	if (count_ == 0)
		return;
	const std::lock_guard lock(mutex_);
	for (const int fd : waiters_)
		::eventfd_write(fd, 1);
}

// Also if the thread is cancelled: another file may have the number later
class Readiness::Waiter {
public:
	Waiter(Readiness &all, int event) : all_(all), event_(event) { enroll(true); }
	~Waiter() { enroll(false); }
	Waiter(const Waiter &) = delete;
	Waiter &operator=(const Waiter &) = delete;

private:
	void enroll(bool on)
	{
		const std::lock_guard lock(all_.mutex_);
		if (on)
			all_.waiters_.insert(event_);
		else
			all_.waiters_.erase(event_);
		all_.count_ = all_.waiters_.size();
	}

	Readiness &all_;
	const int event_;
};

bool Readiness::wait(std::optional<Clock::time_point> until, const std::function<bool()> &ready)
{
	if (ready())
		return true;
	const Descriptor event(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
	if (event.get() < 0)
		throw std::system_error(errno, std::generic_category());
	const Waiter waiter(*this, event.get());
	bool is_ready = false;
	int error = 0;
	while (!(is_ready = ready()) && error == 0) {
		int left = -1;
		if (until) {
			const auto rest = std::chrono::ceil<std::chrono::milliseconds>(*until - Clock::now()).count();
			if (rest <= 0)
				break;
			left = static_cast<int>(rest);
		}
		pollfd one{.fd = event.get(), .events = POLLIN, .revents = 0};
		error = ::poll(&one, 1, left) < 0 ? errno : 0;
		eventfd_t changes = 0;
		::eventfd_read(event.get(), &changes);
	}
	if (!is_ready && error != 0)
		throw std::system_error(error, std::generic_category());
	return is_ready;
}

Mapping::Mapping(int file, uint64_t offset, size_t length)
{
	const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
	skip_ = static_cast<size_t>(offset % page);
	struct stat status {};
	if (::fstat(file, &status) != 0)
		throw std::system_error(errno, std::generic_category());
	const auto size = static_cast<uint64_t>(status.st_size);
	if (length == 0 || !S_ISREG(status.st_mode) || offset > size || length > size - offset)
		throw std::system_error(EINVAL, std::generic_category());
	length_ = length + skip_;
	// private: adapters may want to write-protect what they pin
	start_ = ::mmap(nullptr, length_, PROT_READ, MAP_PRIVATE, file, static_cast<off_t>(offset - skip_));
	if (start_ == MAP_FAILED)
		throw std::system_error(errno, std::generic_category());
}

Mapping::~Mapping()
{
	::munmap(start_, length_);
}

Mapping::Mapping(const std::vector<Part> &parts, size_t length) : length_(length), skip_(0)
{
	start_ = ::mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (start_ == MAP_FAILED)
		throw std::system_error(errno, std::generic_category());
	auto *to = static_cast<uint8_t *>(start_);
	for (const Part &part : parts) {
		std::memcpy(to, reinterpret_cast<const void *>(static_cast<uintptr_t>(part.address)), part.length);
		to += part.length;
	}
}

uint64_t Mapping::address() const
{
	return reinterpret_cast<uintptr_t>(start_) + skip_;
}

Socket::Socket(Library &library, int domain, int type, int protocol, const Settings &settings, std::weak_ptr<Socket> parent)
    : library_(library), engine_(&library.engine), domain_(domain), type_(type), protocol_(protocol),
      settings_(settings), parent_(std::move(parent))
{
}

Socket::~Socket()
{
	if (link_)
		link_->abort();
}

// ---- timers

void Socket::start_timer(Timer timer, std::chrono::milliseconds after)
{
	stop_timer(timer);
	timers_[timer] = library_.engine.start_timer(Clock::now() + after, shared_from_this());
}

void Socket::stop_timer(Timer timer)
{
	if (const auto found = timers_.extract(timer))
		library_.engine.stop_timer(found.mapped());
}

void Socket::on_timer(uint64_t token)
{
	Lock lock(mutex_);
	const auto found = std::ranges::find(timers_, token, [](const auto &timer) { return timer.second; });
	if (found == timers_.end()) {
		if (is_deadline(token)) {
			machine_->timeout();
			settle();
		}
		return;
	}
	const Timer timer = found->first;
	timers_.erase(found);
	if (timer == Timer::half_open) {
		lock.unlock();
		return admit();
	}
	if (timer == Timer::keepalive) {
		link_->check_peer();
		start_timer(Timer::keepalive, std::chrono::milliseconds(settings_.keepalive_ms));
	} else if (timer == Timer::idle)
		on_idle();
	else if (timer == Timer::connect)
		fail_connect(ETIMEDOUT);
	else if (machine_)
		machine_->timeout();
	else
		take_down();
	settle();
}

// Over RDMA by Reads
bool Socket::probes() const
{
	return settings_.keepalive_ms != 0 && (link_->protocol() == EXS_PROTO_TCP || in_force_.ord != 0);
}

void Socket::watch_peer()
{
	const std::chrono::milliseconds interval(settings_.keepalive_ms);
	if (probes() && link_->keep_alive(interval))
		start_timer(Timer::keepalive, interval);
	heard_ = Clock::now();
	if (settings_.idle_ms != 0)
		start_timer(Timer::idle, std::chrono::milliseconds(settings_.idle_ms));
}

void Socket::on_idle()
{
	heard_ = std::max(heard_, link_->heard());
	const auto left = heard_ + std::chrono::milliseconds(settings_.idle_ms) - Clock::now();
	if (left > Clock::duration::zero())
		start_timer(Timer::idle, std::chrono::ceil<std::chrono::milliseconds>(left));
	else
		machine_->lost(ETIMEDOUT);
}

// ---- operations

Socket::Operation &Socket::begin(int type, const Report &report)
{
	const OpId op = library_.op++;
	Operation &operation = operations_[op];
	operation.event.type = type;
	operation.event.op = static_cast<exs_op_t>(op);
	operation.event.fd = handle_;
	operation.event.context = report.context;
	try {
		if (report.queue)
			report.queue->enter();
	} catch (const std::bad_alloc &) {
		operations_.erase(op);
		throw;
	}
	operation.report = report;
	return operation;
}

// Lets go of all in any case. False: the link has no memory to go on.
bool Socket::release(Operation &operation)
{
	bool goes_on = true;
	try {
		if (operation.exposure && link_)
			link_->withdraw(*operation.exposure);
	} catch (const std::bad_alloc &) {
		goes_on = false;
	}
	any_region(operation.transfer, [&](Region &region) {
		users_.erase({&region, number_of(operation)});
		region.leave();
		return false;
	});
	operation.transfer.mapping.reset();
	if (operation.deadline != 0)
		library_.engine.stop_timer(operation.deadline);
	return goes_on;
}

void Socket::drop(OpId op)
{
	auto found = operations_.extract(op);
	if (!found)
		return;
	const bool goes_on = release(found.mapped());
	if (found.mapped().report.queue)
		found.mapped().report.queue->leave();
	if (!goes_on)
		throw std::bad_alloc();
}

// The event comes when all that the operation held has been let go. False: nobody gets it.
bool Socket::finish(OpId op, int error, uint64_t length, uint32_t flags)
{
	auto found = operations_.extract(op);
	if (!found)
		return false;
	Operation &operation = found.mapped();
	operation.event.error = error;
	operation.event.length = length;
	operation.event.flags = flags;
	const bool goes_on = release(operation);
	const auto &queue = operation.report.queue;
	bool reported = false;
	if (queue && !quiet_)
		reported = queue->leave(operation.event);
	else if (queue)
		queue->leave();
	if (!goes_on)
		throw std::bad_alloc();
	return reported;
}

void Socket::end_all(int error)
{
	while (!operations_.empty())
		finish(operations_.begin()->first, error);
}

int Socket::check_part(const Part &part, int access)
{
	if (!part.region)
		return part.length == 0 ? 0 : EBADF;
	if (!part.region->has(part.address, part.length))
		return EFAULT;
	return part.region->allows(access) ? 0 : EACCES;
}

int Socket::check(const Transfer &transfer, int type)
{
	const bool is_send = type == EXS_EVENT_SEND;
	const int known = is_send ? EXS_PERSISTENT | EXS_NOTIFY : EXS_PERSISTENT | EXS_WAITALL;
	if ((transfer.flags & ~known) != 0 ||
	    ((transfer.flags & EXS_NOTIFY) != 0 && (transfer.flags & EXS_PERSISTENT) == 0))
		return EINVAL;
	if (transfer.mapping || !transfer.parts.empty())
		return 0; // whose parts have been checked
	return check_part({transfer.region, transfer.address, transfer.length}, is_send ? EXS_MEM_SEND : EXS_MEM_RECV);
}

// With an exposure that all operations with the region share
int Socket::expose_region(const std::shared_ptr<Link> &link, const Region &region, Access access, Exposure &exposure)
{
	const auto key = std::pair(&region, access);
	{
		const Lock lock(mutex_);
		const auto found = exposures_.find(key);
		if (found != exposures_.end()) {
			exposure = found->second;
			return 0;
		}
	}
	decltype(exposures_) one{{key, {}}}; // before: the memory must not stay open if there is none for this
	if (const int error = link->expose(region.address(), region.length(), access, Readers::one, exposure); error != 0)
		return error;
	one.begin()->second = exposure;
	const Lock lock(mutex_);
	if (down_)
		return ENOTCONN; // with the link it has gone
	const auto placed = exposures_.insert(one.extract(one.begin()));
	if (!placed.inserted) {
		link->withdraw(exposure);
		exposure = placed.position->second;
	}
	return 0;
}

// Least right: a send opens exactly its range, until its ACK. Where that costs a registration the program chooses it, but
// persistent memory and files have always one of their own.
bool Socket::has_own_exposure(const Transfer &transfer, Access access, bool is_tcp) const
{
	return transfer.mapping || (transfer.flags & EXS_PERSISTENT) != 0 ||
	       (access == Access::source && (is_tcp || settings_.exact));
}

int Socket::expose(const std::shared_ptr<Link> &link, const Transfer &transfer, Access access, Memory &memory,
		   std::optional<Exposure> &own)
{
	memory = {.address = transfer.address, .length = transfer.length};
	const bool is_tcp = link->protocol() == EXS_PROTO_TCP;
	// over TCP the peer has nothing to read of what travels with the advertisement
	const bool is_hidden = is_tcp && access == Access::source && (transfer.flags & EXS_PERSISTENT) == 0 &&
			       transfer.length <= in_force_.send_immediate;
	if (transfer.length == 0 || is_hidden)
		return 0;
	Exposure exposure;
	int error = 0;
	if (has_own_exposure(transfer, access, is_tcp)) {
		// what is to be read again and again is for many, as a rule
		const bool is_table = access == Access::source && (transfer.flags & EXS_PERSISTENT) != 0;
		error = link->expose(transfer.address, transfer.length, access, is_table ? Readers::all : Readers::one, exposure);
		if (error == 0)
			own = exposure;
	} else {
		error = expose_region(link, *transfer.region, access, exposure);
	}
	memory.local_key = exposure.local_key;
	memory.remote_key = exposure.remote_key;
	return error;
}

int Socket::expose_parts(const std::shared_ptr<Link> &link, const Transfer &transfer, std::vector<Machine::Part> &parts)
{
	uint64_t start = 0;
	for (const Part &part : transfer.parts) {
		Exposure exposure;
		if (const int error = expose_region(link, *part.region, Access::sink, exposure); error != 0)
			return error;
		parts.push_back({start, {.address = part.address, .length = part.length, .local_key = exposure.local_key}});
		start += part.length;
	}
	return 0;
}

int Socket::submit(const Transfer &transfer, int type, OpId op, const Memory &memory, std::vector<Machine::Part> parts)
{
	const bool persistent = (transfer.flags & EXS_PERSISTENT) != 0;
	if (type == EXS_EVENT_SEND)
		return machine_->send({.op = op,
				       .memory = memory,
				       .offset = transfer.offset,
				       .persistent = persistent,
				       .notify = (transfer.flags & EXS_NOTIFY) != 0});
	return machine_->recv({.op = op,
			       .memory = memory,
			       .offset = transfer.offset,
			       .persistent = persistent,
			       .wait_all = (transfer.flags & EXS_WAITALL) != 0,
			       .parts = std::move(parts)});
}

template <typename Predicate> bool Socket::any_region(const Transfer &transfer, const Predicate &predicate)
{
	return (transfer.region && predicate(*transfer.region)) ||
	       std::ranges::any_of(transfer.parts, [&](const Part &part) { return predicate(*part.region); });
}

bool Socket::Uses::enter(const std::shared_ptr<Socket> &socket)
{
	return !any_region(transfer_, [&](Region &region) {
		const bool entered = region.enter(socket);
		count_ += entered;
		return !entered;
	});
}

Socket::Uses::~Uses()
{
	any_region(transfer_, [this](Region &region) {
		if (count_ == 0)
			return true;
		count_--;
		region.leave();
		return false;
	});
}

int Socket::transfer(Transfer &&transfer, const Report &report, int type, exs_op_t &op)
{
	if (const int error = check(transfer, type); error != 0)
		return error;
	std::shared_ptr<Link> link;
	{
		const Lock lock(mutex_);
		if (state_ != State::connected || !machine_)
			return ENOTCONN;
		link = link_;
	}
	Uses uses(transfer);
	if (!uses.enter(shared_from_this()))
		return EBADF;
	const bool persistent = (transfer.flags & EXS_PERSISTENT) != 0;
	const Access access = type == EXS_EVENT_SEND ? Access::source : persistent ? Access::target : Access::sink;
	Memory memory{.length = transfer.length};
	std::vector<Machine::Part> parts;
	std::optional<Exposure> own;
	int error = transfer.parts.empty() ? expose(link, transfer, access, memory, own) : expose_parts(link, transfer, parts);
	const Lock lock(mutex_);
	// of a connection that has ended the machine says what there is to say
	if (error != 0 && !down_)
		return error;
	Operation *begun = nullptr;
	try {
		begun = &begin(type, report);
	} catch (const std::bad_alloc &) {
		if (own)
			link->withdraw(*own);
		throw;
	}
	Operation &operation = *begun;
	const OpId number = number_of(operation);
	operation.transfer = std::move(transfer);
	uses.keep();
	operation.exposure = own;
	bool submitted = false;
	try {
		any_region(operation.transfer, [&](const Region &region) {
			users_.emplace(&region, number);
			return false;
		});
		// a close or the cancel_users() of a revocation meanwhile has not seen this operation
		const bool is_late = closing_ || any_region(operation.transfer, [](Region &region) { return region.is_retired(); });
		submitted = !is_late;
		error = is_late ? EBADF : submit(operation.transfer, type, number, memory, std::move(parts));
	} catch (const std::bad_alloc &) {
		drop(number); // first: the caller wants no event of it
		if (submitted)
			give_up(); // some of the machine's actions may be lost
		throw;
	}
	if (error != 0) {
		drop(number);
		return error;
	}
	op = static_cast<exs_op_t>(number);
	settle(!report.queue || !report.queue->send_later(shared_from_this()));
	return 0;
}

void Socket::send_now()
{
	const Wakes wakes;
	const Lock lock(mutex_);
	settle();
}

int Socket::send(Transfer transfer, const Report &report, exs_op_t &op)
{
	return this->transfer(std::move(transfer), report, EXS_EVENT_SEND, op);
}

int Socket::recv(Transfer transfer, const Report &report, exs_op_t &op)
{
	return this->transfer(std::move(transfer), report, EXS_EVENT_RECV, op);
}

int Socket::cancel(exs_op_t op)
{
	const Lock lock(mutex_);
	const auto number = static_cast<OpId>(op);
	const auto found = operations_.find(number);
	if (found == operations_.end() || number == close_)
		return ENOENT;
	try {
		if (forget_poll(number)) {
			finish(number, ECANCELED);
		} else if (number == connect_) {
			fail_connect(ECANCELED);
		} else if (listening_) {
			std::erase(listening_->accepts, number);
			finish(number, ECANCELED);
		} else {
			cancel_transfer(number);
		}
	} catch (const std::bad_alloc &) {
		give_up(); // which also ends it
	}
	settle();
	return 0;
}

void Socket::cancel_transfer(OpId op)
{
	if (!machine_)
		return;
	machine_->cancel(op);
	act();
}

// Without an answer until then, the connection ends
void Socket::perform(const action::Limit &action)
{
	const auto found = operations_.find(action.op);
	if (found == operations_.end() || found->second.deadline != 0)
		return;
	const auto when = Clock::now() + std::chrono::milliseconds(settings_.close_ms);
	found->second.deadline = library_.engine.start_timer(when, shared_from_this());
}

bool Socket::is_deadline(uint64_t token) const
{
	return machine_ && std::ranges::any_of(operations_, [token](const auto &one) { return one.second.deadline == token; });
}

void Socket::cancel_users(const Region &region) noexcept
{
	const Lock lock(mutex_);
	try {
		const auto next = [&](OpId after) { // cancelling one may end others, too
			const auto at = users_.upper_bound({&region, after});
			return at != users_.end() && at->first == &region ? at->second : 0;
		};
		for (OpId number = next(0); number != 0; number = next(number))
			cancel_transfer(number);
	} catch (const std::bad_alloc &) {
		give_up();
	}
	settle();
}

void Socket::forget(const Region &region) noexcept
{
	const Lock lock(mutex_);
	try {
		for (const Access access : {Access::source, Access::sink})
			if (const auto found = exposures_.extract(std::pair(&region, access)); found && link_)
				link_->withdraw(found.mapped());
	} catch (const std::bad_alloc &) {
		give_up();
	}
	settle();
}

int Socket::shutdown()
{
	const Lock lock(mutex_);
	if (state_ != State::connected || !machine_)
		return ENOTCONN;
	int error = 0;
	try {
		error = machine_->shutdown();
	} catch (const std::bad_alloc &) {
		give_up(); // some of its actions may be lost
		throw;
	}
	settle();
	return error;
}

// ---- connecting

int Socket::bind(const sockaddr *address, socklen_t length)
{
	const auto copy = copy_address(address, length, domain_);
	if (!copy)
		return address != nullptr && length >= sizeof(sa_family_t) && address->sa_family != domain_ ? EAFNOSUPPORT :
													      EINVAL;
	const Lock lock(mutex_);
	if (state_ != State::idle || local_)
		return EINVAL;
	local_ = copy;
	return 0;
}

uint32_t Socket::buffers() const
{
	return Machine::buffers(settings_.send_credits, settings_.recv_credits);
}

int Socket::check_size() const
{
	return uint64_t{buffers()} * (wire::message_size + settings_.small_max) <= most_buffers ? 0 : ENOBUFS;
}

wire::Hello Socket::hello() const
{
	return {.kind = kind_of(type_),
		.credits = static_cast<uint16_t>(settings_.recv_credits),
		.ird = settings_.ird,
		.ord = settings_.ord,
		.port = meant_port_,
		.immediate = settings_.small_max};
}

int Socket::connect(const sockaddr *address, socklen_t length, const Report &report, exs_op_t &op)
{
	const auto to = copy_address(address, length, domain_);
	if (!to)
		return address != nullptr && length >= sizeof(sa_family_t) && address->sa_family != domain_ ? EAFNOSUPPORT :
													      EINVAL;
	const Lock lock(mutex_);
	if (closing_)
		return EBADF;
	if (state_ != State::idle)
		return state_ == State::connecting ? EALREADY : state_ == State::connected ? EISCONN : EINVAL;
	if (port_of(*to) == 0 || is_wildcard(*to))
		return EADDRNOTAVAIL;
	if (const int error = check_size(); error != 0)
		return error;
	peer_ = to;
	if (report.queue)
		engine_ = &report.queue->engine();
	state_ = State::connecting;
	connect_ = number_of(begin(EXS_EVENT_CONNECT, report));
	op = static_cast<exs_op_t>(connect_);
	try {
		start_timer(Timer::connect, std::chrono::milliseconds(settings_.connect_ms));
		const bool any = protocol_ == EXS_PROTO_ANY;
		int error = protocol_ == EXS_PROTO_TCP || (any && is_loopback(*to)) ? EPROTONOSUPPORT : start_verbs();
		if (error != 0 && protocol_ != EXS_PROTO_RDMA)
			error = start_tcp();
		if (error != 0)
			fail_connect(error);
	} catch (const std::bad_alloc &) {
		fail_connect(ENOMEM);
	}
	settle();
	return 0;
}

VerbsLink::Workers Socket::workers()
{
	return {.engine = library_.engine, .data = *engine_, .domains = settings_.shared ? &library_.domains : nullptr};
}

VerbsLink::Sizes Socket::sizes() const
{
	return {.buffers = buffers(),
		.data = settings_.small_max,
		.sends = settings_.send_credits + settings_.recv_credits + settings_.ord + writes_in_flight + 8,
		.reserve = settings_.reserve};
}

int Socket::start_verbs()
{
	const auto until = Clock::now() + std::chrono::milliseconds(settings_.connect_ms);
	int error = 0;
	auto link = std::make_shared<VerbsLink>(workers(), shared_from_this(), *peer_, local_ ? &*local_ : nullptr,
						hello(), sizes(), until, error);
	if (error != 0)
		return error;
	verbs_ = link.get();
	link_ = std::move(link);
	return 0;
}

int Socket::start_tcp()
{
	sockaddr_storage to = *peer_;
	if (protocol_ == EXS_PROTO_ANY && settings_.tcp_port != 0)
		set_port(to, settings_.tcp_port);
	else if (meant_port_ != 0)
		set_port(to, static_cast<uint16_t>(meant_port_ + 1));
	int error = 0;
	auto link = std::make_shared<TcpLink>(*engine_, shared_from_this(), to, local_ ? &*local_ : nullptr, hello(),
					      TcpLink::Buffers{buffers(), settings_.small_max}, error);
	if (error != 0)
		return error;
	verbs_ = nullptr;
	link_ = std::move(link);
	return 0;
}

// RDMA may have the port, as siw has its ports from TCP: then TCP has the next one. A listener there that does not stand for
// this port refuses us.
bool Socket::start_next_port(int error)
{
	const uint16_t port = port_of(*peer_);
	const bool other_there = error == EPROTO || error == ECONNRESET || (error == ECONNREFUSED && is_of_this_host(*peer_));
	if (protocol_ == EXS_PROTO_RDMA || settings_.tcp_port != 0 || meant_port_ != 0 || !other_there || port == UINT16_MAX)
		return false;
	if (first_error_ == 0)
		first_error_ = error;
	meant_port_ = port;
	link_->abort();
	return start_tcp() == 0;
}

void Socket::fail_connect(int error)
{
	stop_timer(Timer::connect);
	if (link_)
		link_->abort();
	state_ = State::failed;
	error_ = error;
	finish(std::exchange(connect_, 0), error);
}

void Socket::on_failed(const LinkEvent &event)
{
	if (state_ != State::connecting)
		return;
	if (verbs_ != nullptr && event.other_way && protocol_ == EXS_PROTO_ANY) {
		first_error_ = event.error;
		link_->abort();
		if (const int error = start_tcp(); error != 0)
			fail_connect(error);
		return;
	}
	if (verbs_ == nullptr && start_next_port(event.error))
		return;
	// what is at the port may be RDMA's, and has said why it does not want us
	const bool misled = meant_port_ != 0 || (verbs_ == nullptr && (event.error == EPROTO || event.error == ECONNRESET));
	fail_connect(misled && first_error_ != 0 ? first_error_ : event.error);
}

void Socket::make_machine(const wire::Hello &peer, const Depths &depths, bool initiator)
{
	in_force_ = {.initiator = initiator,
		     .stream = type_ == SOCK_STREAM,
		     .send_credits = std::min<uint32_t>(settings_.send_credits, peer.credits),
		     .recv_credits = settings_.recv_credits,
		     .send_immediate = std::min(settings_.small_max, peer.immediate),
		     .recv_immediate = settings_.small_max,
		     .ord = std::min({settings_.ord, depths.ord, peer.ird}),
		     .ird = std::min({settings_.ird, depths.ird, peer.ord}),
		     .largest = largest_transfer,
		     .writes = writes_in_flight};
	machine_ = std::make_unique<Machine>(in_force_);
}

void Socket::on_request(const LinkEvent &event)
{
	if (event.hello.kind != kind_of(type_)) {
		const bool other_version = event.hello.reason == wire::Reason::other_version;
		link_->refuse(other_version ? wire::Reason::other_version : wire::Reason::other_kind);
		return;
	}
	if (event.hello.port != 0 && event.hello.port != meant_port_)
		return link_->refuse(wire::Reason::busy); // it is not us that it looks for
	make_machine(event.hello, event.depths, false);
	wire::Hello answer = hello();
	answer.port = 0;
	answer.ird = static_cast<uint16_t>(in_force_.ird);
	answer.ord = static_cast<uint16_t>(in_force_.ord);
	link_->accept(answer);
}

void Socket::save_addresses()
{
	sockaddr_storage address{};
	if (link_->local_address(address) == 0)
		local_ = in_family(address, domain_);
	if (link_->peer_address(address) == 0)
		peer_ = in_family(address, domain_);
}

// ---- the link and the machine

// Until neither has anything to say. A connection that has no memory to go on ends: operations report it.
void Socket::settle(bool sends)
{
	if (settling_)
		return;
	try {
		settle_all(sends);
	} catch (const std::exception &) {
		give_up();
	}
}

void Socket::settle_all(bool sends)
{
	settling_ = true;
	auto events = std::exchange(spare_events_, {});
	for (;;) {
		const bool acted = act();
		const auto link = link_;
		if (link && sends)
			link->flush();
		events.clear();
		if (link)
			events = link->take(std::move(events));
		if (events.empty() && !acted)
			break;
		for (const LinkEvent &event : events) {
			if (link_ != link)
				break;
			on_link(event);
			act();
		}
	}
	spare_events_ = std::move(events);
	settling_ = false;
	ready_changed();
}

void Socket::on_link(const LinkEvent &event)
{
	switch (event.kind) {
	case LinkEvent::Kind::request:
		return on_request(event);
	case LinkEvent::Kind::established:
		if (event.hello.kind != kind_of(type_))
			return fail_connect(EPROTOTYPE);
		make_machine(event.hello, event.depths, true);
		machine_->start();
		return;
	case LinkEvent::Kind::failed:
		return on_failed(event);
	case LinkEvent::Kind::message:
		if (settings_.idle_ms != 0)
			heard_ = Clock::now();
		if (machine_ && !down_)
			machine_->message(link_->buffer(event.buffer).first(wire::message_size), event.length, event.buffer);
		return;
	case LinkEvent::Kind::done:
		if (settings_.idle_ms != 0 && verbs_ != nullptr) // over TCP the kernel has taken it, no more
			heard_ = Clock::now();
		if (machine_ && !down_)
			machine_->done(event.work);
		return;
	case LinkEvent::Kind::lost:
		if (machine_)
			machine_->lost(event.error);
		else
			take_down();
		return;
	}
}

bool Socket::act()
{
	if (!machine_)
		return false;
	bool acted = false;
	auto actions = std::exchange(spare_actions_, {}); // one of its own for each call, as an action can cause another call
	for (; !(actions = machine_->take(std::move(actions))).empty(); actions.clear()) {
		acted = true;
		for (const Action &action : actions)
			std::visit([this](const auto &a) { perform(a); }, action);
	}
	spare_actions_ = std::move(actions);
	return acted;
}

void Socket::perform(const action::Post &action)
{
	link_->post(action);
}

void Socket::perform(const action::Read &action)
{
	link_->read(action);
}

void Socket::perform(const action::Write &action)
{
	link_->write(action);
}

void Socket::perform(const action::Copy &action)
{
	const auto from = link_->buffer(action.buffer).subspan(wire::message_size + action.offset, action.to.length);
	std::memcpy(reinterpret_cast<void *>(static_cast<uintptr_t>(action.to.address)), from.data(), from.size());
}

void Socket::perform(const action::Repost &action)
{
	link_->repost(action.buffer);
}

void Socket::perform(const action::Complete &action)
{
	const uint32_t flags = (action.eof ? EXS_EOF : 0U) | (action.truncated ? EXS_TRUNCATED : 0U);
	finish(action.op, action.error, action.length, flags);
}

void Socket::perform(const action::Noted &action)
{
	const auto found = operations_.find(action.op);
	if (found == operations_.end() || !found->second.report.queue || quiet_)
		return;
	exs_event event = found->second.event;
	event.type = EXS_EVENT_NOTE;
	event.count = action.count;
	found->second.report.queue->push_note(event);
}

void Socket::perform(const action::Start &action)
{
	start_timer(action.timer == action::Timer::revoke ? Timer::revoke : Timer::close,
		    std::chrono::milliseconds(settings_.close_ms));
}

void Socket::perform(const action::Stop &action)
{
	stop_timer(action.timer == action::Timer::revoke ? Timer::revoke : Timer::close);
}

void Socket::perform(const action::Opened & /*action*/)
{
	state_ = State::connected;
	save_addresses();
	stop_timer(Timer::connect);
	stop_timer(Timer::handshake);
	watch_peer();
	finish(std::exchange(connect_, 0), 0);
	if (const auto parent = parent_.lock())
		if (Engine *engine = parent->child_opened(shared_from_this()))
			move_to(*engine);
}

// With the lock. A connection that cannot be watched there stays where it is.
void Socket::move_to(Engine &engine)
{
	if (engine_ == &engine || !link_ || down_)
		return;
	try {
		if (link_->move_to(engine, shared_from_this()))
			engine_ = &engine;
	} catch (const std::bad_alloc &) {
	}
}

void Socket::move_to_engine(Engine &engine)
{
	const Lock lock(mutex_);
	move_to(engine);
}

void Socket::perform(const action::Disconnect & /*action*/)
{
	link_->disconnect();
}

void Socket::perform(const action::Abort & /*action*/)
{
	take_down();
}

// Nothing reaches memory any more
void Socket::take_down()
{
	if (std::exchange(down_, true))
		return;
	const auto self = shared_from_this(); // the link may hold the last other one
	while (!timers_.empty())
		stop_timer(timers_.begin()->first);
	exposures_.clear();
	link_->abort();
	if (machine_) {
		machine_->gone();
		act();
	}
	if (connect_ != 0)
		finish(std::exchange(connect_, 0), ECONNRESET);
	if (const auto parent = parent_.lock())
		parent->child_lost(self);
	end_close();
}

void Socket::end_close()
{
	if (closing_ && close_ != 0)
		finish(std::exchange(close_, 0), 0);
}

int Socket::close(const Report &report, exs_op_t &op)
{
	std::vector<std::shared_ptr<Socket>> children;
	{
		const Lock lock(mutex_);
		if (closing_)
			return EBADF;
		reserve_children(children);
		close_ = number_of(begin(EXS_EVENT_CLOSE, report));
		op = static_cast<exs_op_t>(close_);
		closing_ = true; // the caller has no second try from here on
		try {
			for (auto &polls : polls_)
				finish_polls(polls, ECANCELED, 0);
			if (state_ == State::listening)
				stop_listening(ECANCELED, children);
			else if (state_ == State::connecting)
				fail_connect(ECANCELED);
			if (state_ != State::connected || machine_->ended())
				end_close();
			else if (settings_.close_ms == 0)
				machine_->lost(ECANCELED);
			else
				machine_->close();
		} catch (const std::bad_alloc &) {
			give_up();
		}
		settle();
	}
	for (const auto &child : children)
		child->kill();
	return 0;
}

void Socket::abandon() noexcept
{
	try {
		exs_op_t op = 0;
		close({}, op);
	} catch (const std::bad_alloc &) {
		on_failure();
	}
}

void Socket::kill()
{
	std::vector<std::shared_ptr<Socket>> children;
	{
		const Lock lock(mutex_);
		quiet_ = true;
		polls_ = {};
		reserve_children(children);
		if (listening_)
			stop_listening(ECANCELED, children);
		if (machine_)
			machine_->lost(ECANCELED);
		settle();
		if (link_)
			link_->abort();
		while (!timers_.empty())
			stop_timer(timers_.begin()->first);
		while (!operations_.empty())
			drop(operations_.begin()->first);
	}
	for (const auto &child : children)
		child->kill();
}

void Socket::start_as_child(Descriptor connection, Request *request)
{
	const Lock lock(mutex_);
	start_timer(Timer::handshake, handshake_time);
	if (request == nullptr) {
		link_ = std::make_shared<TcpLink>(*engine_, shared_from_this(), std::move(connection),
						  TcpLink::Buffers{buffers(), settings_.small_max});
	} else {
		auto link = std::make_shared<VerbsLink>(workers(), shared_from_this(), std::move(request->id), request->event, sizes());
		verbs_ = link.get();
		link_ = std::move(link);
	}
	settle();
}

// ---- events of the engine

void Socket::on_ready(uint64_t token, uint32_t events)
{
	const Wakes wakes;
	{
		const Lock lock(mutex_);
		if (!listening_) {
			if (link_ && !down_)
				link_->progress(token, events);
			settle();
			return;
		}
	}
	take_connections();
}

// Some of what the machine wanted may be lost
void Socket::fail(int error)
{
	settling_ = false;
	if (state_ == State::listening)
		return; // it has a connection less
	if (connect_ != 0)
		fail_connect(error);
	else if (machine_)
		machine_->lost(error);
	else if (link_)
		take_down();
	settle_all(true);
	if (machine_)
		take_down(); // requests to the link may be lost, too
	polls_ = {};
	end_all(error);
	close_ = 0;
}

void Socket::on_failure() noexcept
{
	const Lock lock(mutex_);
	give_up();
}

void Socket::give_up() noexcept
{
	try {
		fail(ENOMEM);
	} catch (const std::exception &) {
		// not even for its end: without the machine
		down_ = true;
		exposures_.clear();
		if (link_)
			link_->abort();
		end_all(ENOMEM);
		close_ = connect_ = 0;
	}
}

// ---- what can be asked

int Socket::getsockname(sockaddr_storage &address)
{
	const Lock lock(mutex_);
	if (local_) {
		address = *local_;
	} else {
		address = {};
		address.ss_family = static_cast<sa_family_t>(domain_);
	}
	return 0;
}

int Socket::getpeername(sockaddr_storage &address)
{
	const Lock lock(mutex_);
	if (state_ != State::connected)
		return ENOTCONN;
	address = *peer_;
	return 0;
}

int Socket::poll()
{
	const Lock lock(mutex_);
	return ready();
}

int Socket::start_poll(int events, const Report &report, exs_op_t &op)
{
	const Lock lock(mutex_);
	if (closing_)
		return EBADF;
	const OpId number = number_of(begin(EXS_EVENT_POLL, report));
	op = static_cast<exs_op_t>(number);
	try {
		polls_.at(poll_place(events)).insert(number);
	} catch (const std::bad_alloc &) {
		drop(number);
		throw;
	}
	ready_changed();
	return 0;
}

// Each is taken out first: if finish() throws, its operation is gone
void Socket::finish_polls(std::set<OpId> &polls, int error, uint32_t reported)
{
	while (!polls.empty())
		finish(polls.extract(polls.begin()).value(), error, 0, reported);
}

bool Socket::forget_poll(OpId op)
{
	return std::ranges::any_of(polls_, [op](auto &polls) { return polls.erase(op) != 0; });
}

void Socket::ready_changed()
{
	const bool waited = std::ranges::any_of(polls_, [](const auto &polls) { return !polls.empty(); });
	const int now = waited ? ready() : 0;
	for (const int events : {0, EXS_POLLIN, EXS_POLLOUT, EXS_POLLIN | EXS_POLLOUT})
		if (const int reported = now & (events | EXS_POLLERR | EXS_POLLHUP); reported != 0)
			finish_polls(polls_.at(poll_place(events)), 0, static_cast<uint32_t>(reported));
	library_.readiness.changed();
}

int Socket::ready() const
{
	switch (state_) {
	case State::idle:
	case State::connecting:
		return 0;
	case State::listening:
		return (listening_->complete.empty() ? 0 : EXS_POLLIN) | (error_ != 0 ? EXS_POLLERR : 0);
	case State::failed:
		return EXS_POLLERR | EXS_POLLHUP;
	case State::connected:
		break;
	}
	int ready = (machine_->readable() ? EXS_POLLIN : 0) | (machine_->writable() ? EXS_POLLOUT : 0);
	if (machine_->ended())
		ready |= EXS_POLLHUP | (machine_->error() != 0 ? EXS_POLLERR : 0);
	return ready;
}

namespace {

struct Option {
	unsigned least, most;
};

Option limits_of(int option)
{
	switch (option) {
	case EXS_SEND_CREDITS:
	case EXS_RECV_CREDITS:
		return {1, wire::max_credits};
	case EXS_SMALL_MAX:
		return {0, wire::max_immediate};
	case EXS_IRD:
	case EXS_ORD:
		return {0, wire::max_depth};
	case EXS_CONNECT_MS:
		return {1, 3600000};
	case EXS_CLOSE_MS:
	case EXS_KEEPALIVE_MS:
	case EXS_IDLE_MS:
		return {0, 3600000};
	case EXS_TCP_PORT:
		return {0, 65535};
	case EXS_EXACT:
	case EXS_SHARED:
	case EXS_V6ONLY:
	case EXS_BACKLOG_WAIT:
		return {0, 1};
	case EXS_RESERVE:
		return {0, most_reserve};
	default:
		return {1, 0};
	}
}

} // namespace

int Socket::set_option(int option, unsigned value)
{
	const Option limits = limits_of(option);
	if (value < limits.least || value > limits.most)
		return EINVAL;
	const Lock lock(mutex_);
	if (state_ != State::idle && option != EXS_CLOSE_MS)
		return EISCONN;
	switch (option) {
	case EXS_SEND_CREDITS:
		settings_.send_credits = value;
		break;
	case EXS_RECV_CREDITS:
		settings_.recv_credits = value;
		break;
	case EXS_SMALL_MAX:
		settings_.small_max = value;
		break;
	case EXS_IRD:
		settings_.ird = static_cast<uint16_t>(value);
		break;
	case EXS_ORD:
		settings_.ord = static_cast<uint16_t>(value);
		break;
	case EXS_CONNECT_MS:
		settings_.connect_ms = value;
		break;
	case EXS_CLOSE_MS:
		settings_.close_ms = value;
		break;
	case EXS_TCP_PORT:
		settings_.tcp_port = static_cast<uint16_t>(value);
		break;
	case EXS_EXACT:
		settings_.exact = value != 0;
		break;
	case EXS_SHARED:
		settings_.shared = value != 0;
		break;
	case EXS_V6ONLY:
		settings_.v6_only = value != 0;
		break;
	case EXS_BACKLOG_WAIT:
		settings_.backlog_wait = value != 0;
		break;
	case EXS_RESERVE:
		settings_.reserve = value;
		break;
	case EXS_KEEPALIVE_MS:
		settings_.keepalive_ms = value;
		break;
	case EXS_IDLE_MS:
		settings_.idle_ms = value;
		break;
	default:
		return EINVAL;
	}
	return 0;
}

int Socket::get_option(int option, unsigned &value)
{
	const Lock lock(mutex_);
	const bool connected = state_ == State::connected;
	switch (option) {
	case EXS_SEND_CREDITS:
		value = connected ? in_force_.send_credits : settings_.send_credits;
		break;
	case EXS_RECV_CREDITS:
		value = settings_.recv_credits;
		break;
	case EXS_SMALL_MAX:
		value = connected ? in_force_.send_immediate : settings_.small_max;
		break;
	case EXS_IRD:
		value = connected ? in_force_.ird : settings_.ird;
		break;
	case EXS_ORD:
		value = connected ? in_force_.ord : settings_.ord;
		break;
	case EXS_CONNECT_MS:
		value = settings_.connect_ms;
		break;
	case EXS_CLOSE_MS:
		value = settings_.close_ms;
		break;
	case EXS_TCP_PORT:
		value = listening_ && listening_->tcp ? listening_->tcp->port() : settings_.tcp_port;
		break;
	case EXS_EXACT:
		value = connected && link_->protocol() == EXS_PROTO_TCP ? 1 : settings_.exact;
		break;
	case EXS_SHARED:
		value = connected && link_->protocol() == EXS_PROTO_TCP ? 0 : settings_.shared;
		break;
	case EXS_V6ONLY:
		value = settings_.v6_only;
		break;
	case EXS_BACKLOG_WAIT:
		value = settings_.backlog_wait;
		break;
	case EXS_RESERVE:
		value = connected && link_->protocol() == EXS_PROTO_TCP ? 0 : settings_.reserve;
		break;
	case EXS_KEEPALIVE_MS:
		value = connected && !probes() ? 0 : settings_.keepalive_ms;
		break;
	case EXS_IDLE_MS:
		value = settings_.idle_ms;
		break;
	case EXS_PROTOCOL:
		value = static_cast<unsigned>(connected ? link_->protocol() : protocol_);
		break;
	default:
		return EINVAL;
	}
	return 0;
}

} // namespace libexs
