// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//
// libexs-preload.so: TCP sockets of unmodified programs over libexs (LD_PRELOAD). exs-preload(1) is the manual.
//
// A socket is the kernel's until it listens or connects. Then its descriptor becomes one end of a socket pair, the relay
// has the other one (relay.h), and only what a socket pair cannot do is done here: names, options, accept.
#include "relay.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>
#include <system_error>

#include <arpa/inet.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

namespace shim {
namespace {

constexpr auto patience_at_exit = std::chrono::seconds(10);
constexpr int most_keepalive = 300; // s

// The function that would be called without us
template <typename Function> Function *next(const char *name)
{
	return reinterpret_cast<Function *>(dlsym(RTLD_NEXT, name));
}

#define NEXT(name) (*[] { static auto *const function = next<decltype(::name)>(#name); return function; }())

// The shim leaves alone the calls that libexs and librdmacm make for themselves
class Ours {
public:
	Ours()
	{
		dl_iterate_phdr(
			[](dl_phdr_info *object, size_t, void *self) {
				const std::string name = object->dlpi_name;
				if (name.find("/libexs.so") != std::string::npos || name.find("/librdmacm.so") != std::string::npos ||
				    name.find("/libibverbs.so") != std::string::npos)
					static_cast<Ours *>(self)->add(*object);
				return 0;
			},
			this);
	}
	[[nodiscard]] bool has(const void *caller) const
	{
		const auto at = reinterpret_cast<uintptr_t>(caller);
		for (const auto &[start, end] : ranges_)
			if (at >= start && at < end)
				return true;
		return false;
	}

private:
	void add(const dl_phdr_info &object)
	{
		for (int i = 0; i < object.dlpi_phnum; i++)
			if (object.dlpi_phdr[i].p_type == PT_LOAD)
				ranges_.emplace_back(object.dlpi_addr + object.dlpi_phdr[i].p_vaddr,
						     object.dlpi_addr + object.dlpi_phdr[i].p_vaddr + object.dlpi_phdr[i].p_memsz);
	}

	std::vector<std::pair<uintptr_t, uintptr_t>> ranges_;
};

bool is_ours(const void *caller)
{
	static const Ours *const ours = new Ours;
	return ours->has(caller);
}

// The settings that a program has made on a socket of the kernel's, by its inode
struct Before {
	std::optional<Address> bound;
	bool any_port = false; // of bound: the kernel has chosen it, and keeps it for this socket
	std::vector<std::pair<int, epoll_event>> polls; // epoll descriptors that it has been added to
};

std::mutex before_mutex;
std::map<ino_t, Before> &befores()
{
	static auto *const all = new std::map<ino_t, Before>;
	return *all;
}

ino_t inode_of(int fd)
{
	struct stat status {};
	return ::fstat(fd, &status) == 0 && S_ISSOCK(status.st_mode) ? status.st_ino : 0;
}

Before copy_before(int fd)
{
	const std::lock_guard lock(before_mutex);
	const auto found = befores().find(inode_of(fd));
	return found != befores().end() ? found->second : Before();
}

// Only when it has succeeded: a program can repeat what has failed
void forget_before(ino_t inode)
{
	const std::lock_guard lock(before_mutex);
	befores().erase(inode);
}

// With the lock. Nothing reports that a socket is closed: those of old ones are looked for when there are many.
Before &before_of(int fd)
{
	static size_t most = 256;
	auto &all = befores();
	if (all.size() > most) {
		if (const auto open = open_sockets())
			std::erase_if(all, [&](const auto &one) { return !open->contains(one.first); });
		most = 2 * all.size() + 256;
	}
	return all[inode_of(fd)];
}

std::mutex start_mutex;
std::atomic<bool> started = false; // the relay
std::atomic<bool> is_child = false; // of a fork(): the relay is the parent's; what it had made can be used

std::shared_ptr<Facts> find(int fd)
{
	return started ? Relay::instance().find(fd) : nullptr;
}

std::optional<Address> copy(const sockaddr *address, socklen_t length)
{
	if (address == nullptr || length < sizeof(sa_family_t) ||
	    (address->sa_family != AF_INET && address->sa_family != AF_INET6))
		return std::nullopt;
	const socklen_t whole = address->sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
	if (length < whole)
		return std::nullopt;
	Address made{.storage = {}, .length = whole};
	std::memcpy(&made.storage, address, whole);
	return made;
}

uint16_t port_of(const Address &address)
{
	if (address.storage.ss_family == AF_INET)
		return ntohs(reinterpret_cast<const sockaddr_in &>(address.storage).sin_port);
	return ntohs(reinterpret_cast<const sockaddr_in6 &>(address.storage).sin6_port);
}

void set_port(Address &address, uint16_t port)
{
	if (address.storage.ss_family == AF_INET)
		reinterpret_cast<sockaddr_in &>(address.storage).sin_port = htons(port);
	else
		reinterpret_cast<sockaddr_in6 &>(address.storage).sin6_port = htons(port);
}

bool is_loopback(const Address &address)
{
	if (address.storage.ss_family == AF_INET)
		return ntohl(reinterpret_cast<const sockaddr_in &>(address.storage).sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
	return IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6 &>(address.storage).sin6_addr) != 0;
}

// EXS_PRELOAD_PORTS: the ports that are meant; all, if it is not set
bool is_port_meant(uint16_t port)
{
	static const auto *const ports = [] {
		auto *const set = new std::set<unsigned long>;
		const char *text = std::getenv("EXS_PRELOAD_PORTS");
		for (char *end = nullptr; text != nullptr && *text != '\0'; text = *end == ',' ? end + 1 : end) {
			set->insert(std::strtoul(text, &end, 10));
			if (end == text)
				break;
		}
		return set;
	}();
	return ports->empty() || ports->contains(port);
}

bool is_meant(const Address &address)
{
	static const bool loopback = std::getenv("EXS_PRELOAD_LOOPBACK") != nullptr;
	return !is_child && is_port_meant(port_of(address)) && (loopback || !is_loopback(address));
}

int option_of(int fd, int name)
{
	int value = 0;
	socklen_t length = sizeof(value);
	return NEXT(getsockopt)(fd, SOL_SOCKET, name, &value, &length) == 0 ? value : -1;
}

// A TCP socket of the kernel's
bool is_tcp(int fd)
{
	const int domain = option_of(fd, SO_DOMAIN);
	return (domain == AF_INET || domain == AF_INET6) && option_of(fd, SO_TYPE) == SOCK_STREAM &&
	       option_of(fd, SO_PROTOCOL) == IPPROTO_TCP;
}

// That may still become one of ours
bool is_unused_tcp(int fd)
{
	tcp_info info{};
	socklen_t length = sizeof(info);
	return is_tcp(fd) && NEXT(getsockopt)(fd, IPPROTO_TCP, TCP_INFO, &info, &length) == 0 && info.tcpi_state == TCP_CLOSE;
}

// The time after which the program wants a silent peer to be probed, in ms; 0: never
unsigned keepalive_of(int fd)
{
	int idle = 0;
	socklen_t length = sizeof(idle);
	if (option_of(fd, SO_KEEPALIVE) != 1 || NEXT(getsockopt)(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, &length) != 0)
		return 0;
	// the kernel's two hours would also be the time for a peer that acknowledges no data
	return 1000U * static_cast<unsigned>(std::min(idle, most_keepalive));
}

// A port of the kernel's choice, which stays with the socket until another one listens there
int bind_any_port(int fd, const Address &wanted, Address &bound)
{
	const int on = 1;
	bound = wanted;
	if (NEXT(setsockopt)(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0 ||
	    NEXT(bind)(fd, wanted.raw(), wanted.length) != 0 ||
	    NEXT(getsockname)(fd, reinterpret_cast<sockaddr *>(&bound.storage), &bound.length) != 0)
		return -1;
	return 0;
}

std::optional<Address> source_of(const Before &before)
{
	std::optional<Address> source = before.bound;
	if (source && before.any_port)
		set_port(*source, 0); // the socket that has the port is in use until ours takes its place
	return source;
}

// The socket stays the kernel's, which has not been told its address yet
int leave_to_kernel(int fd)
{
	const Before before = copy_before(fd);
	if (before.bound && !before.any_port && NEXT(bind)(fd, before.bound->raw(), before.bound->length) != 0)
		return -1;
	forget_before(inode_of(fd));
	return 0;
}

// Options that a socket pair has as well. Accepted sockets have their listener's.
void copy_options(int from, int to)
{
	alignas(timeval) std::array<char, 64> value{};
	for (const int name : {SO_RCVTIMEO, SO_SNDTIMEO, SO_RCVLOWAT, SO_LINGER}) {
		socklen_t length = value.size();
		if (NEXT(getsockopt)(from, SOL_SOCKET, name, value.data(), &length) == 0)
			NEXT(setsockopt)(to, SOL_SOCKET, name, value.data(), length);
	}
}

// The program's descriptor is the end of the pair from now on, with its flags and in the same epolls
int replace(int fd, const End &end, const Before &before)
{
	const ino_t old = inode_of(fd);
	const int status = ::fcntl(fd, F_GETFL), flags = ::fcntl(fd, F_GETFD);
	copy_options(fd, end.get());
	if (::fcntl(end.get(), F_SETFL, status & O_NONBLOCK) != 0 ||
	    ::dup3(end.get(), fd, (flags & FD_CLOEXEC) != 0 ? O_CLOEXEC : 0) < 0)
		return errno;
	forget_before(old);
	for (const auto &[epoll, event] : before.polls) {
		epoll_event copy = event;
		NEXT(epoll_ctl)(epoll, EPOLL_CTL_ADD, fd, &copy);
	}
	find(fd); // the relay learns the descriptor
	return 0;
}

int fail(int error)
{
	errno = error;
	return -1;
}

// function(): what a call of the program returns. Nothing may be thrown into a program in C.
template <typename Function> int guarded(const Function &function)
{
	try {
		return function();
	} catch (const std::system_error &caught) {
		return fail(caught.code().value());
	} catch (const std::bad_alloc &) {
		return fail(ENOMEM);
	}
}

int give(const Address &from, sockaddr *address, socklen_t *length)
{
	if (address == nullptr || length == nullptr)
		return 0;
	std::memcpy(address, &from.storage, std::min(*length, from.length));
	*length = from.length;
	return 0;
}

int give(const void *value, size_t size, void *to, socklen_t *length)
{
	std::memcpy(to, value, std::min<size_t>(*length, size));
	*length = static_cast<socklen_t>(std::min<size_t>(*length, size));
	return 0;
}

int accept_one(int fd, const Address &local, sockaddr *address, socklen_t *length, int flags)
{
	// there must be a place for it: the kernel drops the descriptor otherwise, and TCP's accept() leaves the connection where it is
	if (const Descriptor probe(::fcntl(fd, F_DUPFD_CLOEXEC, 0)); probe.get() < 0)
		return -1;
	Address peer;
	iovec part{.iov_base = &peer.storage, .iov_len = sizeof(peer.storage)};
	alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
	msghdr message{};
	message.msg_iov = &part;
	message.msg_iovlen = 1;
	message.msg_control = control.data();
	message.msg_controllen = control.size();
	const ssize_t got = ::recvmsg(fd, &message, (flags & SOCK_CLOEXEC) != 0 ? MSG_CMSG_CLOEXEC : 0);
	if (got < 0)
		return -1;
	const cmsghdr *header = CMSG_FIRSTHDR(&message);
	if (got == 0 || header == nullptr)
		return fail(ECONNABORTED);
	int accepted = -1;
	std::memcpy(&accepted, CMSG_DATA(header), sizeof(accepted));
	if ((flags & SOCK_NONBLOCK) != 0)
		::fcntl(accepted, F_SETFL, O_NONBLOCK);
	Descriptor owner(accepted);
	copy_options(fd, accepted);
	peer.length = peer.storage.ss_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
	if (!find(accepted))
		Relay::instance().adopt(accepted, local, peer); // the parent's knows it, this process does not
	give(peer, address, length);
	return owner.release();
}

int tcp_option(int name, void *value, socklen_t *length)
{
	if (name == TCP_CONGESTION)
		return give("exs", sizeof("exs"), value, length);
	const int maxseg = 1448;
	if (name == TCP_MAXSEG)
		return give(&maxseg, sizeof(maxseg), value, length);
	std::memset(value, 0, *length); // TCP_INFO and the like
	return 0;
}

// With the lock
int take_error(Facts &facts, int fd)
{
	const int error = std::exchange(facts.error, 0);
	return error == 0 && is_child ? Relay::instance().take_loss(fd) : error;
}

// A socket pair ends without an error, or with one of its own: the connection's, if it has one, comes once behind the last
// octet. got: what a read of so many octets has returned.
ssize_t end_with_error(int fd, size_t wanted, ssize_t got)
{
	if (got > 0 || (got == 0 && wanted == 0) || (got < 0 && errno != ECONNRESET))
		return got;
	const auto facts = find(fd);
	if (!facts)
		return got;
	const std::lock_guard lock(Facts::mutex);
	const int error = take_error(*facts, fd);
	return error != 0 ? fail(error) : got;
}

size_t size_of(const iovec *parts, int count)
{
	size_t size = 0;
	for (int i = 0; i < count; i++)
		size += parts[i].iov_len;
	return size;
}

struct AtExit {
	~AtExit()
	{
		if (started && !is_child)
			Relay::instance().finish(patience_at_exit);
	}
} at_exit;

// Nobody releases in the child a mutex that another thread holds at the fork(). In the order in which they are taken.
struct AtFork {
	AtFork()
	{
		is_ours(nullptr); // while there is memory
		pthread_atfork(
			[] {
				start_mutex.lock();
				before_mutex.lock();
				Facts::mutex.lock();
				Relay::lock();
			},
			release,
			[] {
				// a child has the ends no more, and its own descriptors may have their numbers
				if (started && !is_child) {
					Relay::instance().close_ends();
					is_child = true;
				}
				release();
			});
	}
	static void release()
	{
		Relay::unlock();
		Facts::mutex.unlock();
		before_mutex.unlock();
		start_mutex.unlock();
	}
} at_fork;

Relay &relay()
{
	const std::lock_guard lock(start_mutex);
	Relay &made = Relay::instance();
	started = true;
	return made;
}

// ---- calls of the program that may throw

int bind_to(int fd, const Address &wanted)
{
	if (!is_meant(wanted))
		return NEXT(bind)(fd, wanted.raw(), wanted.length);
	const std::lock_guard lock(before_mutex);
	Before &before = before_of(fd);
	Address bound = wanted;
	const bool any_port = port_of(bound) == 0;
	if (any_port && bind_any_port(fd, wanted, bound) != 0)
		return -1;
	before.bound = bound;
	before.any_port = any_port;
	return 0;
}

int listen_at(int fd, int backlog)
{
	if (const auto facts = find(fd))
		return facts->listening ? 0 : fail(EINVAL); // the backlog again
	const Before before = copy_before(fd);
	if (!before.bound || is_child)
		return leave_to_kernel(fd) == 0 ? NEXT(listen)(fd, backlog) : -1;
	int v6_only = 0;
	socklen_t size = sizeof(v6_only);
	NEXT(getsockopt)(fd, IPPROTO_IPV6, IPV6_V6ONLY, &v6_only, &size);
	End end;
	if (const int error = relay().listen(*before.bound, v6_only != 0, std::max(backlog, 1), keepalive_of(fd), end); error != 0)
		return fail(error);
	const int error = replace(fd, end, before);
	return error == 0 ? 0 : fail(error);
}

int connect_to(int fd, const Address &to)
{
	if (!is_meant(to))
		return leave_to_kernel(fd) == 0 ? NEXT(connect)(fd, to.raw(), to.length) : -1;
	if (const auto facts = find(fd)) {
		const std::lock_guard lock(Facts::mutex);
		if (facts->connected)
			return fail(EISCONN);
		return fail(facts->decided ? (facts->error != 0 ? std::exchange(facts->error, 0) : ECONNABORTED) : EALREADY);
	}
	if (!is_tcp(fd))
		return NEXT(connect)(fd, to.raw(), to.length);
	const Before before = copy_before(fd);
	timeval limit{};
	socklen_t size = sizeof(limit);
	NEXT(getsockopt)(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, &size);
	const bool blocks = (::fcntl(fd, F_GETFL) & O_NONBLOCK) == 0;
	End end;
	const int outcome = relay().connect(to, source_of(before), blocks, limit, keepalive_of(fd), end);
	if (outcome != 0 && outcome != EINPROGRESS && outcome != EINTR)
		return fail(outcome);
	if (const int error = replace(fd, end, before); error != 0)
		return fail(error);
	return outcome == 0 ? 0 : fail(outcome);
}

int note_poll(int epoll, int operation, int fd, const epoll_event *event)
{
	const std::lock_guard lock(before_mutex);
	auto &polls = before_of(fd).polls;
	std::erase_if(polls, [epoll](const auto &one) { return one.first == epoll; });
	if (operation != EPOLL_CTL_DEL)
		polls.emplace_back(epoll, *event);
	return 0;
}

} // namespace
} // namespace shim

#define EXPORT extern "C" __attribute__((visibility("default")))

using namespace shim;

EXPORT int bind(int fd, const sockaddr *address, socklen_t length) noexcept
{
	const auto wanted = copy(address, length);
	if (!wanted || is_ours(__builtin_return_address(0)) || !is_tcp(fd))
		return NEXT(bind)(fd, address, length);
	return guarded([&] { return bind_to(fd, *wanted); });
}

EXPORT int listen(int fd, int backlog) noexcept
{
	if (is_ours(__builtin_return_address(0)))
		return NEXT(listen)(fd, backlog);
	return guarded([&] { return listen_at(fd, backlog); });
}

EXPORT int connect(int fd, const sockaddr *address, socklen_t length)
{
	const auto to = copy(address, length);
	if (!to || is_ours(__builtin_return_address(0)))
		return NEXT(connect)(fd, address, length);
	return guarded([&] { return connect_to(fd, *to); });
}

EXPORT int accept(int fd, sockaddr *address, socklen_t *length)
{
	const auto facts = is_ours(__builtin_return_address(0)) ? nullptr : find(fd);
	return facts ? guarded([&] { return accept_one(fd, facts->local, address, length, 0); }) : NEXT(accept)(fd, address, length);
}

EXPORT int accept4(int fd, sockaddr *address, socklen_t *length, int flags)
{
	const auto facts = is_ours(__builtin_return_address(0)) ? nullptr : find(fd);
	return facts ? guarded([&] { return accept_one(fd, facts->local, address, length, flags); }) :
		       NEXT(accept4)(fd, address, length, flags);
}

EXPORT int getsockname(int fd, sockaddr *address, socklen_t *length) noexcept
{
	if (is_ours(__builtin_return_address(0)))
		return NEXT(getsockname)(fd, address, length);
	if (const auto facts = find(fd)) {
		const std::lock_guard lock(Facts::mutex);
		return give(facts->local, address, length);
	}
	const std::lock_guard lock(before_mutex);
	const auto found = befores().find(inode_of(fd));
	if (found != befores().end() && found->second.bound)
		return give(*found->second.bound, address, length);
	return NEXT(getsockname)(fd, address, length);
}

EXPORT int getpeername(int fd, sockaddr *address, socklen_t *length) noexcept
{
	const auto facts = is_ours(__builtin_return_address(0)) ? nullptr : find(fd);
	if (!facts)
		return NEXT(getpeername)(fd, address, length);
	const std::lock_guard lock(Facts::mutex);
	return facts->connected ? give(facts->peer, address, length) : fail(ENOTCONN);
}

EXPORT int getsockopt(int fd, int level, int name, void *value, socklen_t *length) noexcept
{
	const auto facts = is_ours(__builtin_return_address(0)) ? nullptr : find(fd);
	if (!facts || value == nullptr || length == nullptr)
		return NEXT(getsockopt)(fd, level, name, value, length);
	if (level == IPPROTO_TCP)
		return tcp_option(name, value, length);
	if (level != SOL_SOCKET) {
		std::memset(value, 0, *length);
		return 0;
	}
	const std::lock_guard lock(Facts::mutex);
	int answer = 0;
	switch (name) {
	case SO_ERROR:
		answer = option_of(fd, SO_ERROR); // clears it: that our end is closed is ECONNRESET there
		if (const int error = take_error(*facts, fd); error != 0)
			answer = error;
		break;
	case SO_TYPE:
		answer = SOCK_STREAM;
		break;
	case SO_PROTOCOL:
		answer = IPPROTO_TCP;
		break;
	case SO_DOMAIN:
		answer = facts->local.storage.ss_family;
		break;
	case SO_ACCEPTCONN:
		answer = facts->listening;
		break;
	default:
		return NEXT(getsockopt)(fd, level, name, value, length);
	}
	return give(&answer, sizeof(answer), value, length);
}

EXPORT int setsockopt(int fd, int level, int name, const void *value, socklen_t length) noexcept
{
	const auto facts = is_ours(__builtin_return_address(0)) || level == SOL_SOCKET ? nullptr : find(fd);
	return facts ? 0 : NEXT(setsockopt)(fd, level, name, value, length);
}

EXPORT int epoll_ctl(int epoll, int operation, int fd, epoll_event *event) noexcept
{
	const int result = NEXT(epoll_ctl)(epoll, operation, fd, event);
	if (result != 0 || is_ours(__builtin_return_address(0)) || find(fd) || !is_unused_tcp(fd))
		return result;
	const int noted = guarded([&] { return note_poll(epoll, operation, fd, event); });
	if (noted != 0 && operation == EPOLL_CTL_ADD) {
		NEXT(epoll_ctl)(epoll, EPOLL_CTL_DEL, fd, nullptr);
		errno = ENOMEM;
	}
	return noted;
}

EXPORT ssize_t read(int fd, void *to, size_t size)
{
	return end_with_error(fd, size, NEXT(read)(fd, to, size));
}

EXPORT ssize_t readv(int fd, const iovec *parts, int count)
{
	const ssize_t got = NEXT(readv)(fd, parts, count);
	return got > 0 ? got : end_with_error(fd, got == 0 ? size_of(parts, count) : 0, got);
}

EXPORT ssize_t recv(int fd, void *to, size_t size, int flags)
{
	return end_with_error(fd, size, NEXT(recv)(fd, to, size, flags));
}

EXPORT ssize_t recvfrom(int fd, void *to, size_t size, int flags, sockaddr *address, socklen_t *length)
{
	return end_with_error(fd, size, NEXT(recvfrom)(fd, to, size, flags, address, length));
}

EXPORT ssize_t recvmsg(int fd, msghdr *message, int flags)
{
	const ssize_t got = NEXT(recvmsg)(fd, message, flags);
	return got > 0 ? got : end_with_error(fd, got == 0 ? size_of(message->msg_iov, static_cast<int>(message->msg_iovlen)) : 0, got);
}

// Of programs that are built with _FORTIFY_SOURCE
extern "C" ssize_t __read_chk(int fd, void *to, size_t size, size_t room);
extern "C" ssize_t __recv_chk(int fd, void *to, size_t size, size_t room, int flags);
extern "C" ssize_t __recvfrom_chk(int fd, void *to, size_t size, size_t room, int flags, sockaddr *address, socklen_t *length);

EXPORT ssize_t __read_chk(int fd, void *to, size_t size, size_t room)
{
	return end_with_error(fd, size, NEXT(__read_chk)(fd, to, size, room));
}

EXPORT ssize_t __recv_chk(int fd, void *to, size_t size, size_t room, int flags)
{
	return end_with_error(fd, size, NEXT(__recv_chk)(fd, to, size, room, flags));
}

EXPORT ssize_t __recvfrom_chk(int fd, void *to, size_t size, size_t room, int flags, sockaddr *address, socklen_t *length)
{
	return end_with_error(fd, size, NEXT(__recvfrom_chk)(fd, to, size, room, flags, address, length));
}
