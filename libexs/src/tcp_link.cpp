// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#include "tcp_link.h"

#include "address.h"
#include "exs.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/uio.h>

namespace libexs {
namespace {

constexpr size_t at_a_time = 65536; // octets received, as far as frames are not larger
// Sent likewise; a call for every 64 KiB was a tenth of the work for messages of 16 KiB
constexpr size_t sent_at_a_time = 4 * at_a_time;
// Large bodies go where they belong: octets that come ahead are copied. Large ones may take turns with small ones.
constexpr size_t large_body = 4096, ahead_of_large = 512;
constexpr unsigned turns = 64;

void put32(uint8_t *at, uint32_t value)
{
	for (int i = 3; i >= 0; i--, value >>= 8)
		at[i] = static_cast<uint8_t>(value);
}

uint32_t get32(const uint8_t *at)
{
	return static_cast<uint32_t>(at[0]) << 24 | static_cast<uint32_t>(at[1]) << 16 | static_cast<uint32_t>(at[2]) << 8 |
	       at[3];
}

uint8_t *pointer(uint64_t address)
{
	return reinterpret_cast<uint8_t *>(static_cast<uintptr_t>(address));
}

Descriptor make_socket(int family)
{
	return Descriptor(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP));
}

void set_option(int fd, int level, int name, int value)
{
	::setsockopt(fd, level, name, &value, sizeof(value));
}

} // namespace

TcpLink::TcpLink(Engine &engine, const std::shared_ptr<Actor> &actor, const sockaddr_storage &to,
		 const sockaddr_storage *from, const wire::Hello &hello, const Buffers &buffers, int &error)
    : engine_(&engine), fd_(make_socket(to.ss_family)), state_(State::connecting), initiator_(true), own_hello_(hello),
      random_(std::random_device{}())
{
	start(buffers);
	ird_ = hello.ird;
	const auto *address = reinterpret_cast<const sockaddr *>(&to);
	if (fd_.get() < 0 ||
	    (from != nullptr &&
	     ::bind(fd_.get(), reinterpret_cast<const sockaddr *>(from), address_length(*from)) != 0) ||
	    (::connect(fd_.get(), address, address_length(to)) != 0 && errno != EINPROGRESS)) {
		error = errno;
		state_ = State::ended;
		return;
	}
	wants_output_ = true;
	token_ = engine_->watch(fd_.get(), EPOLLOUT, actor);
	error = token_ != 0 ? 0 : errno;
	if (error != 0)
		state_ = State::ended;
}

TcpLink::TcpLink(Engine &engine, const std::shared_ptr<Actor> &actor, Descriptor connection, const Buffers &buffers)
    : engine_(&engine), fd_(std::move(connection)), random_(std::random_device{}())
{
	start(buffers);
	token_ = engine_->watch(fd_.get(), EPOLLIN, actor);
	if (token_ == 0)
		fail(errno);
}

TcpLink::~TcpLink()
{
	abort();
}

void TcpLink::start(const Buffers &buffers)
{
	buffer_size_ = wire::message_size + buffers.data;
	most_messages_ = buffers.count;
	free_buffers_.reserve(buffers.count);
	slab_ = std::make_unique_for_overwrite<uint8_t[]>(buffer_size_ * buffers.count);
	for (uint32_t i = 0; i < buffers.count; i++)
		free_buffers_.push_back(i);
	if (fd_.get() >= 0) {
		set_option(fd_.get(), IPPROTO_TCP, TCP_NODELAY, 1);
		set_option(fd_.get(), SOL_SOCKET, SO_KEEPALIVE, 1);
	}
}

void TcpLink::fail(int error)
{
	if (failed_ || state_ == State::ended)
		return;
	failed_ = true;
	const bool made = state_ == State::open || !initiator_;
	if (made)
		emit_lost(error);
	else
		emit({.kind = LinkEvent::Kind::failed, .error = error});
}

void TcpLink::abort()
{
	if (state_ == State::ended)
		return;
	state_ = State::ended;
	if (token_ != 0)
		engine_->unwatch(token_, fd_.get());
	::shutdown(fd_.get(), SHUT_RDWR); // a child of fork() may have a copy
	fd_ = Descriptor();
	out_.clear();
	answers_.clear();
	reads_.clear();
	in_.reset();
	ahead_.reset();
	ahead_at_ = ahead_end_ = 0;
	const std::lock_guard lock(windows_mutex_);
	windows_.clear();
}

bool TcpLink::move_to(Engine &engine, const std::shared_ptr<Actor> &actor)
{
	if (token_ == 0 || state_ == State::ended)
		return false;
	const uint64_t token = engine.watch(fd_.get(), EPOLLIN | (wants_output_ ? EPOLLOUT : 0U), actor);
	if (token == 0)
		return false;
	engine_->unwatch(token_, fd_.get());
	engine_ = &engine;
	token_ = token;
	return true;
}

// ---- memory

int TcpLink::expose(uint64_t address, uint64_t length, Access access, Readers /*readers*/, Exposure &exposure)
{
	const std::lock_guard lock(windows_mutex_);
	uint32_t key = 0;
	do
		key = random_();
	while (key == 0 || windows_.contains(key));
	windows_.emplace(key, Window{address, length, access});
	exposure = {.local_key = key, .remote_key = key, .registration = nullptr};
	return 0;
}

// What is half way is not to be finished: the peer has no business there any more
void TcpLink::withdraw(const Exposure &exposure)
{
	{
		const std::lock_guard lock(windows_mutex_);
		windows_.erase(exposure.remote_key);
	}
	if (answers_.contains(exposure.remote_key) || (in_ && in_->key == exposure.remote_key)) {
		out_.clear();
		answers_.clear();
		in_.reset();
		fail(EPROTO);
	}
}

std::optional<TcpLink::Window> TcpLink::find_window(uint32_t key, uint64_t address, uint64_t length, Access access)
{
	const std::lock_guard lock(windows_mutex_);
	const auto found = windows_.find(key);
	if (found == windows_.end() || found->second.access != access)
		return std::nullopt;
	const Window &window = found->second;
	if (address < window.address || address - window.address > window.length ||
	    length > window.length - (address - window.address))
		return std::nullopt;
	return window;
}

// ---- sending

TcpLink::Out TcpLink::frame(const Header &header) const
{
	Out out{.kind = header.kind};
	out.head[0] = static_cast<uint8_t>(header.kind);
	put32(&out.head[4], header.length);
	put32(&out.head[8], static_cast<uint32_t>(header.address >> 32));
	put32(&out.head[12], static_cast<uint32_t>(header.address));
	put32(&out.head[16], header.key);
	out.head_size = header_size;
	return out;
}

void TcpLink::queue(Out out)
{
	if (failed_ || state_ == State::ended)
		return;
	// no more can be under way but to a peer that has broken the protocol, and reads nothing
	if (out.kind == Kind::message && ++messages_ > most_messages_)
		return fail(EPROTO);
	out_.push_back(out);
}

void TcpLink::queue_hello(const wire::Hello &hello)
{
	const auto bytes = wire::encode(hello);
	Out out{.kind = Kind::hello};
	std::ranges::copy(bytes, out.head.begin());
	out.head_size = bytes.size();
	queue(out);
}

// As many frames as one call takes. False: no more can be sent now.
bool TcpLink::send_some()
{
	std::array<iovec, 64> parts{};
	size_t count = 0, octets = 0;
	for (auto out = out_.begin(); out != out_.end() && count + 2 <= parts.size() && octets < sent_at_a_time; ++out) {
		if (out->sent < out->head_size)
			parts[count++] = {.iov_base = &out->head[out->sent], .iov_len = out->head_size - out->sent};
		const uint64_t skip = out->sent > out->head_size ? out->sent - out->head_size : 0;
		if (skip < out->length)
			parts[count++] = {.iov_base = pointer(out->address + skip), .iov_len = out->length - skip};
		octets += out->head_size + out->length - out->sent;
	}
	msghdr message{};
	message.msg_iov = parts.data();
	message.msg_iovlen = count;
	ssize_t sent = 0;
	do
		sent = ::sendmsg(fd_.get(), &message, MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	if (sent < 0 && errno != EAGAIN)
		fail(errno == EPIPE ? ECONNRESET : errno);
	for (auto left = static_cast<uint64_t>(std::max<ssize_t>(sent, 0)); left != 0;) {
		Out &out = out_.front();
		const uint64_t taken = std::min(left, out.head_size + out.length - out.sent);
		out.sent += taken;
		left -= taken;
		if (out.sent != out.head_size + out.length)
			break;
		on_sent(out);
		out_.pop_front();
	}
	return sent == static_cast<ssize_t>(octets);
}

void TcpLink::on_sent(const Out &out)
{
	if (out.kind == Kind::read_response) {
		requests_--;
		if (const auto found = answers_.find(out.key); --found->second == 0)
			answers_.erase(found);
	}
	if (out.kind == Kind::message)
		messages_--;
	if (out.work != 0)
		emit_done(out.work);
}

void TcpLink::flush()
{
	if (failed_ || state_ == State::connecting || state_ == State::ended)
		return;
	while (!out_.empty() && send_some())
		;
	if (disconnecting_ && out_.empty()) {
		::shutdown(fd_.get(), SHUT_WR);
		fail(0);
	}
	watch_output();
}

void TcpLink::watch_output()
{
	const bool wants = !out_.empty() && !failed_;
	if (wants == wants_output_ || state_ == State::ended)
		return;
	wants_output_ = wants;
	engine_->rewatch(token_, fd_.get(), EPOLLIN | (wants ? EPOLLOUT : 0U));
}

void TcpLink::post(const action::Post &post)
{
	const auto message = wire::encode(post.message);
	Out out = frame({.kind = Kind::message, .length = static_cast<uint32_t>(message.size() + post.data.length)});
	std::ranges::copy(message, out.head.begin() + header_size);
	out.head_size += message.size();
	out.address = post.data.address;
	out.length = post.data.length;
	out.work = post.work;
	queue(out);
}

void TcpLink::read(const action::Read &read)
{
	reads_.push_back({read.work, read.memory});
	queue(frame({.kind = Kind::read_request,
		     .length = static_cast<uint32_t>(read.memory.length),
		     .address = read.remote,
		     .key = read.key}));
}

void TcpLink::write(const action::Write &write)
{
	Out out = frame({.kind = Kind::write,
			 .length = static_cast<uint32_t>(write.memory.length),
			 .address = write.remote,
			 .key = write.key});
	out.address = write.memory.address;
	out.length = write.memory.length;
	out.work = write.work;
	queue(out);
}

// The kernel's: it probes an idle connection; of data that nobody acknowledges, it waits as long
bool TcpLink::keep_alive(std::chrono::milliseconds interval)
{
	const auto seconds = static_cast<int>(std::chrono::ceil<std::chrono::seconds>(interval).count());
	set_option(fd_.get(), IPPROTO_TCP, TCP_KEEPIDLE, seconds);
	set_option(fd_.get(), IPPROTO_TCP, TCP_KEEPINTVL, seconds);
	set_option(fd_.get(), IPPROTO_TCP, TCP_KEEPCNT, 1);
	set_option(fd_.get(), IPPROTO_TCP, TCP_USER_TIMEOUT, 2000 * seconds);
	tcp_info info{};
	socklen_t length = sizeof(info);
	int left = 0;
	if (::getsockopt(fd_.get(), IPPROTO_TCP, TCP_INFO, &info, &length) != 0 || ::ioctl(fd_.get(), SIOCOUTQ, &left) != 0)
		return false;
	// the set-up's own octets, which have to be acknowledged yet, are no sign of the peer
	acknowledged_ = info.tcpi_bytes_acked + static_cast<uint64_t>(left);
	for (const Out &out : out_)
		acknowledged_ += out.head_size + out.length - out.sent;
	return false;
}

void TcpLink::check_peer() {}

// An answer to a probe acknowledges nothing new
Clock::time_point TcpLink::heard()
{
	tcp_info info{};
	socklen_t length = sizeof(info);
	if (::getsockopt(fd_.get(), IPPROTO_TCP, TCP_INFO, &info, &length) != 0)
		return {};
	uint32_t ago = info.tcpi_last_data_recv;
	if (info.tcpi_bytes_acked > acknowledged_) {
		acknowledged_ = info.tcpi_bytes_acked;
		ago = std::min(ago, info.tcpi_last_ack_recv);
	}
	return Clock::now() - std::chrono::milliseconds(ago);
}

void TcpLink::disconnect()
{
	disconnecting_ = true;
	flush();
}

// ---- receiving

void TcpLink::repost(uint32_t buffer)
{
	free_buffers_.push_back(buffer);
}

std::span<const uint8_t> TcpLink::buffer(uint32_t buffer) const
{
	return {&slab_[buffer * buffer_size_], buffer_size_};
}

// Where nobody listens at a port of this host, the kernel may choose that port for our end
bool TcpLink::is_own_peer() const
{
	sockaddr_storage local{}, peer{};
	return local_address(local) == 0 && peer_address(peer) == 0 && std::memcmp(&local, &peer, address_length(local)) == 0;
}

void TcpLink::on_connected()
{
	int error = 0;
	socklen_t length = sizeof(error);
	::getsockopt(fd_.get(), SOL_SOCKET, SO_ERROR, &error, &length);
	if (error == 0 && is_own_peer())
		error = ECONNREFUSED;
	if (error != 0)
		return fail(error);
	state_ = State::hello;
	queue_hello(own_hello_);
	watch_output();
}

void TcpLink::progress(uint64_t token, uint32_t events)
{
	if (token != token_ || state_ == State::ended || failed_)
		return;
	if (state_ == State::connecting)
		return on_connected();
	if ((events & EPOLLOUT) != 0)
		flush();
	if ((events & ~EPOLLOUT) != 0 && !failed_)
		receive();
}

// Not for ever: there are other connections. But nothing stays in ahead_, for which no event comes.
void TcpLink::receive()
{
	size_t budget = 4U << 20;
	drained_ = false;
	while (!failed_ && (budget != 0 || has_ahead()) && receive_some(budget))
		;
}

size_t TcpLink::take_ahead(uint8_t *to, size_t most)
{
	const size_t taken = std::min(most, ahead_end_ - ahead_at_);
	if (taken != 0)
		std::memcpy(to, &ahead_[ahead_at_], taken);
	ahead_at_ += taken;
	return taken;
}

// True: all that is wanted is there
bool TcpLink::receive_into(uint8_t *to, size_t &have, size_t want, size_t &budget)
{
	have += take_ahead(to + have, want - have);
	if (!ahead_)
		ahead_ = std::make_unique_for_overwrite<uint8_t[]>(at_a_time);
	const size_t most_ahead = small_bodies_ < turns ? ahead_of_large : at_a_time;
	while (have < want && !drained_ && budget != 0) {
		std::array<iovec, 2> parts{{{.iov_base = to + have, .iov_len = want - have}, {.iov_base = ahead_.get(), .iov_len = most_ahead}}};
		const ssize_t got = ::readv(fd_.get(), parts.data(), parts.size());
		if (got > 0) {
			const auto octets = static_cast<size_t>(got), wanted = std::min(octets, want - have);
			drained_ = octets < want - have + most_ahead;
			have += wanted;
			ahead_at_ = 0;
			ahead_end_ = octets - wanted;
			budget -= std::min(budget, octets);
			continue;
		}
		if (got < 0 && errno == EINTR)
			continue;
		if (got == 0 || errno != EAGAIN)
			fail(got == 0 ? ECONNRESET : errno);
		return false;
	}
	return have == want;
}

// False: there is no more now
bool TcpLink::receive_some(size_t &budget)
{
	if (in_) {
		size_t have = 0;
		const bool all = receive_into(in_->to, have, in_->left, budget);
		in_->to += have;
		in_->left -= have;
		return all && on_body();
	}
	const size_t want = state_ == State::hello ? wire::hello_size : header_size;
	if (!receive_into(head_.data(), head_have_, want, budget))
		return false;
	head_have_ = 0;
	if (!(state_ == State::hello ? on_hello() : on_header())) {
		fail(EPROTO);
		return false;
	}
	return true;
}

bool TcpLink::on_hello()
{
	const auto hello = wire::decode_hello(head_);
	if (!hello)
		return false;
	if (initiator_) {
		if (hello->kind == wire::Kind::refused) {
			fail(hello->reason == wire::Reason::busy     ? ECONNREFUSED :
			     hello->reason == wire::Reason::other_kind ? EPROTOTYPE :
									 EPROTO);
			return true;
		}
		state_ = State::open;
		emit({.kind = LinkEvent::Kind::established, .hello = *hello, .depths = {own_hello_.ird, own_hello_.ord}});
		return true;
	}
	state_ = State::open;
	emit({.kind = LinkEvent::Kind::request, .hello = *hello, .depths = {wire::max_depth, wire::max_depth}});
	return true;
}

void TcpLink::accept(const wire::Hello &hello)
{
	own_hello_ = hello;
	ird_ = hello.ird;
	queue_hello(hello);
}

void TcpLink::refuse(wire::Reason reason)
{
	queue_hello({.kind = wire::Kind::refused, .reason = reason, .credits = 0});
	flush();
	fail(ECONNREFUSED);
}

bool TcpLink::on_header()
{
	const Header header{.kind = static_cast<Kind>(head_[0]),
			    .length = get32(&head_[4]),
			    .address = uint64_t{get32(&head_[8])} << 32 | get32(&head_[12]),
			    .key = get32(&head_[16])};
	if (head_[1] != 0 || head_[2] != 0 || head_[3] != 0 || get32(&head_[20]) != 0)
		return false;
	const bool has_place = header.kind == Kind::read_request || header.kind == Kind::write;
	if (!has_place && (header.address != 0 || header.key != 0))
		return false;
	switch (header.kind) {
	case Kind::message:
		return begin_message(header);
	case Kind::read_request:
		return on_read_request(header);
	case Kind::read_response:
		return begin_response(header);
	case Kind::write:
		return begin_write(header);
	default:
		return false;
	}
}

bool TcpLink::begin_message(const Header &header)
{
	if (header.length < wire::message_size || header.length > buffer_size_ || free_buffers_.empty())
		return false;
	const uint32_t buffer = free_buffers_.back();
	free_buffers_.pop_back();
	in_ = In{.header = header, .to = &slab_[buffer * buffer_size_], .left = header.length, .buffer = buffer};
	return true;
}

bool TcpLink::begin_response(const Header &header)
{
	if (reads_.empty() || header.length != reads_.front().memory.length)
		return false;
	in_ = In{.header = header, .to = pointer(reads_.front().memory.address), .left = header.length};
	return true;
}

bool TcpLink::begin_write(const Header &header)
{
	if (header.length == 0 || !find_window(header.key, header.address, header.length, Access::target))
		return false;
	in_ = In{.header = header, .to = pointer(header.address), .left = header.length, .key = header.key};
	return true;
}

bool TcpLink::on_read_request(const Header &header)
{
	if (header.length == 0 || requests_ >= ird_ ||
	    !find_window(header.key, header.address, header.length, Access::source))
		return false;
	requests_++;
	Out out = frame({.kind = Kind::read_response, .length = header.length});
	out.address = header.address;
	out.length = header.length;
	out.key = header.key;
	answers_[header.key]++;
	queue(out);
	return true;
}

bool TcpLink::on_body()
{
	const In in = *in_;
	in_.reset();
	small_bodies_ = in.header.length < large_body ? small_bodies_ + 1 : 0;
	if (in.header.kind == Kind::message) {
		emit({.kind = LinkEvent::Kind::message, .buffer = in.buffer, .length = in.header.length - wire::message_size});
	} else if (in.header.kind == Kind::read_response) {
		emit_done(reads_.front().work);
		reads_.pop_front();
	}
	return true;
}

// ---- addresses

int TcpLink::local_address(sockaddr_storage &address) const
{
	socklen_t length = sizeof(address);
	return ::getsockname(fd_.get(), reinterpret_cast<sockaddr *>(&address), &length) == 0 ? 0 : ENOTCONN;
}

int TcpLink::peer_address(sockaddr_storage &address) const
{
	socklen_t length = sizeof(address);
	return ::getpeername(fd_.get(), reinterpret_cast<sockaddr *>(&address), &length) == 0 ? 0 : ENOTCONN;
}

int TcpLink::protocol() const
{
	return EXS_PROTO_TCP;
}

// ---- listeners

TcpListener::TcpListener(Engine &engine, const std::shared_ptr<Actor> &actor, const sockaddr_storage &address, int backlog,
			 bool v6_only, int &error)
    : engine_(engine), fd_(make_socket(address.ss_family)), spare_(::open("/dev/null", O_RDONLY | O_CLOEXEC))
{
	if (fd_.get() >= 0) {
		set_option(fd_.get(), SOL_SOCKET, SO_REUSEADDR, 1);
		if (address.ss_family == AF_INET6)
			set_option(fd_.get(), IPPROTO_IPV6, IPV6_V6ONLY, v6_only ? 1 : 0);
	}
	const auto *raw = reinterpret_cast<const sockaddr *>(&address);
	if (fd_.get() < 0 || ::bind(fd_.get(), raw, address_length(address)) != 0 || ::listen(fd_.get(), backlog) != 0) {
		error = errno;
		return;
	}
	token_ = engine_.watch(fd_.get(), EPOLLIN, actor);
	error = token_ != 0 ? 0 : errno;
}

TcpListener::~TcpListener()
{
	if (token_ != 0)
		engine_.unwatch(token_, fd_.get());
	::shutdown(fd_.get(), SHUT_RDWR); // likewise: the port would stay in use
}

Descriptor TcpListener::take(bool waits)
{
	const auto accept_one = [this] { return Descriptor(::accept4(fd_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)); };
	Descriptor connection = accept_one();
	while (!waits && connection.get() < 0 && (errno == EMFILE || errno == ENFILE) && spare_.get() >= 0) {
		spare_ = Descriptor();
		const bool dropped = accept_one().get() >= 0;
		spare_ = Descriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC));
		if (!dropped)
			break;
		connection = accept_one();
	}
	return connection;
}

// Connections stay in the kernel meanwhile, and beyond its backlog clients try again
void TcpListener::pause(bool on)
{
	engine_.rewatch(token_, fd_.get(), on ? 0U : EPOLLIN);
}

int TcpListener::local_address(sockaddr_storage &address) const
{
	socklen_t length = sizeof(address);
	return ::getsockname(fd_.get(), reinterpret_cast<sockaddr *>(&address), &length) == 0 ? 0 : errno;
}

uint16_t TcpListener::port() const
{
	sockaddr_storage address{};
	return local_address(address) == 0 ? port_of(address) : 0;
}

} // namespace libexs
