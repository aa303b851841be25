// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#include "relay.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <system_error>

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace shim {
namespace {

constexpr uint64_t wake_number = 0, queue_number = 1;
constexpr unsigned small_max = 4096, credits = 8;
// for a Memory in each direction: none waits for memory that other connections have, which may wait themselves
constexpr unsigned reserve = Relay::slots * Relay::slot_size;
constexpr int least_backlog = 1024; // over RDMA more than twice as many are refused
constexpr size_t most_orphans = 256; // each has a quarter of a MiB and two descriptors

// Without an acknowledgement for a connection that the program has closed. The kernel gives such connections up, too.
std::chrono::milliseconds orphan_time()
{
	static const unsigned long set = [] {
		const char *text = std::getenv("EXS_PRELOAD_ORPHAN_MS");
		return text != nullptr ? std::strtoul(text, nullptr, 10) : 0;
	}();
	return std::chrono::milliseconds(set != 0 && set <= 3600000 ? set : 60000);
}

ino_t inode_of(int fd)
{
	struct stat status {};
	return ::fstat(fd, &status) == 0 && S_ISSOCK(status.st_mode) ? status.st_ino : 0;
}

// Until poll() says that it cannot be written
size_t fill_up(int fd)
{
	static const std::array<char, 65536> junk{};
	size_t filled = 0;
	for (;;) {
		const ssize_t sent = ::send(fd, junk.data(), junk.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
		if (sent < 0)
			return filled;
		filled += static_cast<size_t>(sent);
	}
}

// With a descriptor beside the octets
bool send_descriptor(int to, int fd, const Address &peer)
{
	iovec part{.iov_base = const_cast<sockaddr_storage *>(&peer.storage), .iov_len = sizeof(peer.storage)};
	alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
	msghdr message{};
	message.msg_iov = &part;
	message.msg_iovlen = 1;
	message.msg_control = control.data();
	message.msg_controllen = control.size();
	cmsghdr *header = CMSG_FIRSTHDR(&message);
	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(int));
	std::memcpy(CMSG_DATA(header), &fd, sizeof(fd));
	return ::sendmsg(to, &message, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
}

exs_fd_t make_socket(int family, unsigned keepalive_ms)
{
	const exs_fd_t fd = exs_socket(family, SOCK_STREAM, EXS_PROTO_ANY);
	for (const auto &[option, value] : {std::pair(EXS_SMALL_MAX, small_max), std::pair(EXS_SEND_CREDITS, credits),
					    std::pair(EXS_RECV_CREDITS, credits), std::pair(EXS_KEEPALIVE_MS, keepalive_ms),
					    std::pair(EXS_RESERVE, reserve)})
		exs_fcntl(fd, EXS_SET, option, value);
	return fd;
}

Address name_of(exs_fd_t fd, int (*function)(exs_fd_t, sockaddr *, socklen_t *))
{
	Address address;
	address.length = sizeof(address.storage);
	if (function(fd, reinterpret_cast<sockaddr *>(&address.storage), &address.length) != 0)
		address.length = 0;
	return address;
}

} // namespace

std::optional<std::set<ino_t>> open_sockets()
try {
	std::error_code error;
	std::set<ino_t> found;
	for (std::filesystem::directory_iterator at("/proc/self/fd", error), end; !error && at != end; at.increment(error)) {
		std::error_code closed; // meanwhile
		const std::string target = std::filesystem::read_symlink(at->path(), closed).string();
		if (target.starts_with("socket:["))
			found.insert(std::stoul(target.substr(std::strlen("socket:["))));
	}
	return error ? std::nullopt : std::optional(std::move(found));
} catch (const std::bad_alloc &) {
	return std::nullopt;
}

// Not its address: another entry may have that when the event comes
void *Relay::context_of(const Entry &entry)
{
	return reinterpret_cast<void *>(static_cast<uintptr_t>(entry.number));
}

Relay::Memory::Memory(int access) : bytes(slots * slot_size)
{
	handle = exs_mregister(bytes.data(), bytes.size(), access);
	if (handle < 0)
		throw std::bad_alloc();
}

Relay &Relay::instance()
{
	static Relay *const relay = new Relay;
	return *relay;
}

Relay::Relay() : epoll_(::epoll_create1(EPOLL_CLOEXEC)), wake_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC))
{
	if (exs_init(EXS_VERSION) != 0 || (queue_ = exs_qcreate()) < 0 || epoll_.get() < 0 || wake_.get() < 0)
		throw std::system_error(errno, std::generic_category(), "libexs-preload");
	for (const auto &[fd, number] : {std::pair(wake_.get(), wake_number), std::pair(exs_qfd(queue_), queue_number)}) {
		epoll_event event{};
		event.events = EPOLLIN;
		event.data.u64 = number;
		if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0)
			throw std::system_error(errno, std::generic_category(), "libexs-preload");
	}
	// each connection over RDMA pins some
	rlimit locked{};
	if (::getrlimit(RLIMIT_MEMLOCK, &locked) == 0 && locked.rlim_cur != locked.rlim_max) {
		locked.rlim_cur = locked.rlim_max;
		::setrlimit(RLIMIT_MEMLOCK, &locked);
	}
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	try {
		std::thread([this] { loop(); }).detach();
	} catch (const std::system_error &) {
		pthread_sigmask(SIG_SETMASK, &before, nullptr);
		throw;
	}
	pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

// ---- calls of the program's threads

// In a child of fork(). A connection that the parent's thread closes is closed then.
void Relay::close_ends()
{
	for (const int end : ends_)
		::close(end);
}

int Relay::take_loss(int fd)
{
	return losses_.take(inode_of(fd));
}

Losses::Losses()
{
	void *const made = ::mmap(nullptr, places * sizeof(*all_), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (made == MAP_FAILED)
		throw std::system_error(errno, std::generic_category(), "libexs-preload");
	all_ = static_cast<std::atomic<uint64_t> *>(made);
}

void Losses::add(ino_t inode, int error)
{
	place(inode) = uint64_t{inode} << 16 | static_cast<uint16_t>(error);
}

int Losses::take(ino_t inode)
{
	uint64_t found = place(inode);
	return found >> 16 == inode && place(inode).compare_exchange_strong(found, 0) ? static_cast<uint16_t>(found) : 0;
}

End::~End()
{
	if (fd_ < 0)
		return;
	Relay &relay = Relay::instance();
	const std::lock_guard lock(Relay::mutex_);
	relay.ends_.erase(fd_);
	::close(fd_);
}

int Relay::make_pair(int type, End &program, End &own)
{
	std::set<int> numbers{-1, -2}; // before: nothing may fail behind it
	int ends[2];
	{
		const std::lock_guard lock(mutex_); // no fork() before they are known
		if (::socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends) != 0)
			return errno;
		for (const int end : ends) {
			auto number = numbers.extract(numbers.begin());
			number.value() = end;
			ends_.insert(std::move(number));
		}
	}
	program = End(ends[0]);
	own = End(ends[1]);
	return ::fcntl(own.get(), F_SETFL, O_NONBLOCK) == 0 ? 0 : errno;
}

std::shared_ptr<Facts> Relay::find(int fd)
{
	const ino_t inode = inode_of(fd);
	if (inode == 0)
		return nullptr;
	const std::lock_guard lock(mutex_);
	const auto found = facts_.find(inode);
	if (found == facts_.end())
		return nullptr;
	found->second->fd = fd;
	return found->second;
}

void Relay::adopt(int fd, const Address &local, const Address &peer)
{
	auto facts = std::make_shared<Facts>();
	facts->local = local;
	facts->peer = peer;
	facts->connected = true;
	facts->decided = 1;
	const ino_t inode = inode_of(fd);
	const std::lock_guard lock(mutex_);
	facts_[inode] = std::move(facts);
	leave_facts(inode);
}

// With the lock. Nothing reports that the program closes such a descriptor: it is looked for when there are many.
void Relay::leave_facts(ino_t inode)
{
	if (const auto found = facts_.find(inode); found != facts_.end() && !std::exchange(found->second->ownerless, true))
		ownerless_++;
	if (ownerless_ <= most_ownerless_)
		return;
	if (const auto open = open_sockets())
		ownerless_ -= std::erase_if(facts_, [&](const auto &one) { return one.second->ownerless && !open->contains(one.first); });
	most_ownerless_ = 2 * ownerless_ + 256;
}

void Relay::add(const std::shared_ptr<Entry> &entry, int program_end)
{
	entry->number = number_++;
	entry->inode = inode_of(program_end);
	// Here, where an error can be reported, and without the lock, which the program's epoll_ctl() of preload.cpp takes. The thread
	// finds the entry when it has been woken.
	epoll_event event{};
	event.data.u64 = entry->number;
	if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, entry->end.get(), &event) != 0)
		throw std::system_error(errno, std::generic_category());
	{
		const std::lock_guard lock(mutex_);
		if (const auto old = facts_.extract(entry->inode); old && old.mapped()->ownerless)
			ownerless_--;
		try {
			facts_.emplace(entry->inode, entry->facts);
			requests_.emplace(entry->number, entry);
		} catch (const std::bad_alloc &) {
			facts_.erase(entry->inode);
			requests_.erase(entry->number);
			throw;
		}
		idle_ = false;
	}
	::eventfd_write(wake_.get(), 1);
}

int Relay::listen(const Address &local, bool v6_only, int backlog, unsigned keepalive_ms, End &end)
{
	auto listener = std::make_shared<Listener>();
	listener->fd = make_socket(local.storage.ss_family, keepalive_ms);
	exs_fcntl(listener->fd, EXS_SET, EXS_V6ONLY, v6_only ? 1U : 0U);
	exs_fcntl(listener->fd, EXS_SET, EXS_BACKLOG_WAIT, 1U);
	if (exs_bind(listener->fd, local.raw(), local.length) != 0)
		return errno;
	backlog = std::max(backlog, least_backlog);
	if (exs_listen(listener->fd, backlog) != 0) {
		if (errno != EADDRINUSE)
			return errno;
		settle(); // the program may have just closed the listener that has the port
		if (exs_listen(listener->fd, backlog) != 0)
			return errno;
	}
	if (const int error = make_pair(SOCK_SEQPACKET, end, listener->end); error != 0)
		return error;
	listener->facts->listening = true;
	listener->facts->local = name_of(listener->fd, exs_getsockname);
	add(listener, end.get());
	return 0;
}

int Relay::connect(const Address &to, const std::optional<Address> &from, bool blocks, const timeval &limit, unsigned keepalive_ms, End &end)
{
	auto connection = std::make_shared<Connection>();
	connection->fd = make_socket(to.storage.ss_family, keepalive_ms);
	connection->facts->peer = to;
	if (from)
		exs_bind(connection->fd, from->raw(), from->length);
	if (const int error = make_pair(SOCK_STREAM, end, connection->end); error != 0)
		return error;
	// until it is connected the program must not find it writable
	if (!blocks)
		connection->junk = fill_up(end.get());
	add(connection, end.get());
	if (!blocks)
		return EINPROGRESS;
	auto &facts = *connection->facts;
	const int error = facts.wait(limit);
	const std::lock_guard lock(Facts::mutex);
	if (facts.decided != 0)
		return std::exchange(facts.error, 0);
	connection->junk = fill_up(end.get()); // it goes on as one that does not block
	return error == EINTR ? EINTR : EINPROGRESS;
}

int Facts::wait(const timeval &limit)
{
	const timespec time{.tv_sec = limit.tv_sec, .tv_nsec = limit.tv_usec * 1000};
	const bool is_limited = limit.tv_sec != 0 || limit.tv_usec != 0;
	while (decided == 0)
		if (::syscall(SYS_futex, &decided, FUTEX_WAIT_PRIVATE, 0, is_limited ? &time : nullptr, nullptr, 0) != 0 && errno != EAGAIN)
			return errno;
	return 0;
}

void Facts::decide()
{
	decided = 1;
	::syscall(SYS_futex, &decided, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

void Relay::settle()
{
	std::unique_lock lock(mutex_);
	const uint64_t question = ++asked_;
	::eventfd_write(wake_.get(), 1);
	settled_.wait(lock, [&] { return answered_ >= question; });
}

void Relay::finish(std::chrono::seconds patience)
{
	std::unique_lock lock(mutex_);
	finishing_ = true;
	::eventfd_write(wake_.get(), 1);
	empty_.wait_for(lock, patience, [this] { return idle_; });
}

// ---- the thread

void Relay::watch(Entry &entry, uint32_t events)
{
	if (events == entry.watched)
		return;
	epoll_event event{};
	event.events = events;
	event.data.u64 = entry.number;
	::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, entry.end.get(), &event);
	entry.watched = events;
}

void Relay::drop(uint64_t number, bool keep_facts)
{
	const auto entry = entries_.extract(number);
	if (!entry)
		return;
	exs_close(entry.mapped()->fd, 0, nullptr);
	if (auto *const connection = dynamic_cast<Connection *>(entry.mapped().get())) {
		if (Facts &facts = *connection->facts; facts.decided == 0) {
			const std::lock_guard lock(Facts::mutex);
			facts.error = ECONNABORTED; // the program ends: a thread may wait in connect()
			facts.decide();
		}
		orphans_.erase({connection->deadline, number});
		retire(std::move(connection->out));
		retire(std::move(connection->in));
	}
	const ino_t inode = entry.mapped()->inode;
	{
		const End closed = std::move(entry.mapped()->end);
	}
	const std::lock_guard lock(mutex_);
	if (keep_facts)
		leave_facts(inode);
	else
		facts_.erase(inode);
}

void Relay::renew(Connection &orphan)
{
	orphans_.erase({orphan.deadline, orphan.number});
	orphan.deadline = Clock::now() + orphan_time();
	orphans_.emplace(orphan.deadline, orphan.number);
}

// Until the first deadline of an orphan, in ms
int Relay::time_left() const
{
	if (passes_ != 0)
		return 0;
	if (is_starved_)
		return 100;
	if (orphans_.empty())
		return -1;
	const auto left = std::chrono::ceil<std::chrono::milliseconds>(orphans_.begin()->first - Clock::now());
	return static_cast<int>(std::max<int64_t>(left.count(), 0));
}

// Those that are too late, and of more than so many those that are late first. Their peers get ECONNRESET, as they have not got all.
void Relay::drop_orphans(size_t most)
{
	while (!orphans_.empty() && (orphans_.size() > most || orphans_.begin()->first <= Clock::now())) {
		const uint64_t number = orphans_.begin()->second;
		exs_fcntl(entries_.at(number)->fd, EXS_SET, EXS_CLOSE_MS, 0U);
		drop(number);
	}
}

// The kernel gives an end of a pair ECONNRESET, after the octets that came before, if the other end is closed with octets
// that were not read. So the program sends one. Not if it has shut its end down, or has moved it to another descriptor.
void Relay::leave_unread(Connection &connection)
{
	int fd = -1;
	{
		const std::lock_guard lock(mutex_);
		fd = connection.facts->fd;
	}
	// only then: to close a copy of a file's descriptor gives up the program's locks on the file
	if (connection.unread || inode_of(fd) != connection.inode)
		return;
	const Descriptor copy(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
	if (inode_of(copy.get()) == connection.inode)
		connection.unread = ::send(copy.get(), "", 1, MSG_DONTWAIT | MSG_NOSIGNAL) == 1 || errno == EAGAIN;
}

// The program gets the error from each call that reads and from SO_ERROR, after the octets that it has not read yet; if the
// kernel cannot give it, as to a child of the program, then from read() and similar calls. poll() shows it that our end is closed.
void Relay::lose(Connection &connection)
{
	leave_unread(connection);
	if (!connection.unread) {
		const std::lock_guard lock(Facts::mutex);
		connection.facts->error = ECONNRESET;
		losses_.add(connection.inode, ECONNRESET);
	}
	exs_fcntl(connection.fd, EXS_SET, EXS_CLOSE_MS, 0U); // if it is not the peer that has ended it
	drop(connection.number, true);
}

// Operations on it may be under way still, until the peer has answered or its time is over. The thread does not wait: the event
// frees it. Without memory for an event it is never freed.
void Relay::retire(std::unique_ptr<Memory> memory)
{
	if (exs_mderegister(memory->handle) == 0)
		return;
	exs_mrevoke(memory->handle, queue_, memory.get());
	memory.release();
}

// Of the thread: if there is no memory for an entry, the entry ends, and not the program
template <typename Function> void Relay::guarded(Entry &entry, const Function &function)
{
	try {
		function();
	} catch (const std::exception &) {
		auto *const connection = dynamic_cast<Connection *>(&entry);
		exs_event failed{};
		failed.error = ENOMEM;
		if (connection != nullptr && connection->open)
			lose(*connection);
		else if (connection != nullptr)
			on_connected(*connection, failed);
	}
}

void Relay::on_requests()
{
	eventfd_t count = 0;
	::eventfd_read(wake_.get(), &count);
	std::map<uint64_t, std::shared_ptr<Entry>> requests;
	{
		const std::lock_guard lock(mutex_);
		requests.swap(requests_);
		is_ending_ = finishing_;
		if (asked_ != std::exchange(to_answer_, asked_))
			passes_ = 2; // this one may have begun before
	}
	while (!requests.empty()) {
		const auto entry = requests.begin()->second;
		entries_.insert(requests.extract(requests.begin()));
		guarded(*entry, [&] { begin(*entry); });
	}
	if (is_ending_)
		end_all();
}

void Relay::begin(Entry &entry)
{
	if (auto *const listener = dynamic_cast<Listener *>(&entry))
		return pass_on(*listener);
	auto &connection = static_cast<Connection &>(entry);
	if (connection.open)
		return open(connection);
	const Address to = entry.facts->peer;
	connection.connecting = exs_connect(entry.fd, to.raw(), to.length, queue_, context_of(entry));
	if (connection.connecting < 0) {
		exs_event failed{};
		failed.error = errno;
		on_connected(connection, failed);
	}
}

// The program ends: what it has written is all there is
void Relay::end_all()
{
	for (auto at = entries_.begin(); at != entries_.end();) {
		const auto entry = (at++)->second; // which may be dropped
		auto *const connection = dynamic_cast<Connection *>(entry.get());
		if (connection == nullptr || !connection->open) {
			drop(entry->number);
			continue;
		}
		::shutdown(connection->end.get(), SHUT_RD);
		connection->has_left = true;
		guarded(*entry, [&] { advance(*connection); });
	}
}

void Relay::on_connected(Connection &connection, const exs_event &event)
{
	Facts &facts = *connection.facts;
	const Address local = name_of(connection.fd, exs_getsockname), peer = name_of(connection.fd, exs_getpeername);
	{
		const std::lock_guard lock(Facts::mutex); // and none of the library's beside it
		facts.error = event.error;
		facts.connected = event.error == 0;
		facts.local = local;
		if (event.error == 0)
			facts.peer = peer;
		facts.decide();
	}
	connection.connecting = 0;
	take_junk(connection);
	if (event.error != 0)
		return drop(connection.number, true);
	open(connection);
}

// So that the program's end can be written, as that of a socket whose connect has ended
void Relay::take_junk(Connection &connection)
{
	std::array<char, 65536> junk{};
	while (connection.junk != 0) {
		const ssize_t got = ::read(connection.end.get(), junk.data(), std::min(junk.size(), connection.junk));
		if (got <= 0)
			break;
		connection.junk -= static_cast<size_t>(got);
	}
}

void Relay::open(Connection &connection)
{
	connection.open = true;
	for (size_t i = 0; i < slots; i++) {
		connection.sends[i].start = connection.recvs[i].start = i * slot_size;
		receive(connection, i);
	}
	advance(connection);
}

void Relay::on_accepted(Listener &listener, const exs_event &event)
{
	listener.accepting = 0;
	if (event.error != 0)
		return;
	listener.accepted = event.accepted;
	pass_on(listener);
}

// False: there is nothing to make an entry of. The peer waits, as one of TCP in the kernel's queue.
bool Relay::take_accepted(Listener &listener)
try {
	const auto connection = std::make_shared<Connection>();
	connection->open = true;
	Facts &facts = *connection->facts;
	facts.local = name_of(listener.accepted, exs_getsockname);
	facts.peer = listener.peer = name_of(listener.accepted, exs_getpeername);
	facts.connected = true;
	facts.decided = 1;
	End program;
	if (make_pair(SOCK_STREAM, program, connection->end) != 0)
		return false;
	add(connection, program.get());
	connection->fd = std::exchange(listener.accepted, 0);
	listener.waiting = std::move(program);
	return true;
} catch (const std::exception &) {
	return false;
}

// To the program, whose accept() takes it
void Relay::pass_on(Listener &listener)
{
	if (listener.accepted != 0 && listener.waiting.get() < 0 && !take_accepted(listener)) {
		is_starved_ = true;
		return watch(listener, EPOLLRDHUP);
	}
	if (listener.waiting.get() >= 0) {
		const bool is_passed = send_descriptor(listener.end.get(), listener.waiting.get(), listener.peer);
		if (!is_passed && errno == EAGAIN)
			return watch(listener, EPOLLRDHUP | EPOLLOUT);
		if (!is_passed && errno != EPIPE && errno != ECONNRESET) { // ENOBUFS, ETOOMANYREFS
			is_starved_ = true;
			return watch(listener, EPOLLRDHUP);
		}
		const End passed = std::move(listener.waiting);
	}
	watch(listener, EPOLLRDHUP);
	if (listener.accepting <= 0)
		listener.accepting = exs_accept(listener.fd, queue_, context_of(listener));
	is_starved_ |= listener.accepting < 0 && errno == ENOMEM;
}

// Entries that wait, once more
void Relay::feed()
{
	is_starved_ = false;
	for (auto at = entries_.begin(); at != entries_.end();) {
		const auto entry = (at++)->second; // which may be dropped
		if (auto *const listener = dynamic_cast<Listener *>(entry.get())) {
			if (listener->accepting < 0 || listener->accepted != 0 || listener->waiting.get() >= 0)
				pass_on(*listener);
			continue;
		}
		auto &connection = static_cast<Connection &>(*entry);
		if (!is_any_starved(connection.sends) && !is_any_starved(connection.recvs))
			continue;
		guarded(connection, [&] {
			for (size_t i = 0; i < slots; i++)
				if (connection.recvs[i].starved)
					receive(connection, i);
			advance(connection);
		});
	}
}

// An operation that could not begin may begin later: over RDMA the first ones pin the memory of the connection, in place of its
// reserve, which fails only if the limit is lower than it was
bool Relay::is_starved(const Connection &connection, exs_op_t op)
{
	exs_pollfd ended{.fd = connection.fd, .events = 0, .revents = 0};
	const bool starved = op < 0 && errno == ENOMEM && exs_poll(&ended, 1, 0) <= 0;
	is_starved_ |= starved;
	return starved;
}

bool Relay::is_any_starved(const std::array<Slot, slots> &of)
{
	return std::ranges::any_of(of, [](const Slot &slot) { return slot.starved; });
}

bool Relay::is_any_under_way(const std::array<Slot, slots> &of)
{
	return std::ranges::any_of(of, [](const Slot &slot) { return slot.op != 0; });
}

// Nobody wants it
void Relay::refuse_input(Connection &connection)
{
	connection.end_of_input = connection.shut = true;
	leave_unread(connection); // the program cannot send after that
	::shutdown(connection.end.get(), SHUT_RD);
}

// The program is to see an end of file, and no ECONNRESET for octets that nobody wanted
void Relay::read_rest(const Connection &connection)
{
	std::array<char, 4096> rest{};
	while (::read(connection.end.get(), rest.data(), rest.size()) > 0)
		;
}

// As long as there is a free slot
void Relay::take_from_program(Connection &connection)
{
	for (Slot &slot : connection.sends)
		if (slot.starved && !send(connection, slot))
			return; // what comes later is sent later
	for (Slot &slot : connection.sends) {
		if (slot.op != 0 || connection.end_of_input)
			continue;
		ssize_t got = ::read(connection.end.get(), place(*connection.out, slot), slot_size);
		if (got < 0 && errno == ECONNRESET) // once, if the program has closed its end without reading all
			got = ::read(connection.end.get(), place(*connection.out, slot), slot_size);
		if (got < 0)
			return;
		if (got == 0) {
			connection.end_of_input = true;
			return;
		}
		slot.length = static_cast<size_t>(got);
		if (!send(connection, slot))
			return;
	}
}

// False: it waits
bool Relay::send(Connection &connection, Slot &slot)
{
	slot.op = exs_send(connection.fd, connection.out->handle, place(*connection.out, slot), slot.length, 0, queue_,
			   context_of(connection));
	slot.starved = is_starved(connection, slot.op);
	if (slot.op < 0 && !slot.starved)
		refuse_input(connection);
	slot.op = std::max<exs_op_t>(slot.op, 0);
	return !slot.starved;
}

void Relay::on_sent(Connection &connection, Slot &slot, const exs_event &event)
{
	slot.op = 0;
	if (event.error != 0)
		refuse_input(connection);
	else if (connection.has_left)
		renew(connection);
}

void Relay::receive(Connection &connection, size_t index)
{
	Slot &slot = connection.recvs[index];
	slot.starved = false;
	if (connection.end_of_peer)
		return;
	slot.op = exs_recv(connection.fd, connection.in->handle, place(*connection.in, slot), slot_size, 0, queue_,
			   context_of(connection));
	slot.starved = is_starved(connection, slot.op);
	const bool failed = slot.op < 0 && !slot.starved;
	slot.op = std::max<exs_op_t>(slot.op, 0);
	if (failed) {
		connection.end_of_peer = connection.lost = true;
		for (const Slot &other : connection.recvs)
			if (other.op != 0)
				exs_cancel(connection.fd, other.op);
	}
}

void Relay::on_received(Connection &connection, size_t index, const exs_event &event)
{
	Slot &slot = connection.recvs[index];
	slot.op = 0;
	if (event.error != 0 || (event.flags & EXS_EOF) != 0) {
		connection.end_of_peer = true;
		connection.lost |= event.error != 0;
		return;
	}
	slot.length = event.length;
	connection.arrived.push_back(index);
}

// False: the kernel has no memory for octets that the peer takes for received
bool Relay::give_to_program(Connection &connection)
{
	while (!connection.arrived.empty()) {
		const size_t index = connection.arrived.front();
		Slot &slot = connection.recvs[index];
		const ssize_t sent = ::send(connection.end.get(), place(*connection.in, slot), slot.length, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (sent < 0 && errno == EAGAIN)
			return true;
		if (sent < 0 && errno != EPIPE && errno != ECONNRESET)
			return false;
		if (sent < 0) {
			connection.arrived.clear(); // nobody reads it
			connection.end_of_peer = true;
			return true;
		}
		slot.start += static_cast<size_t>(sent);
		slot.length -= static_cast<size_t>(sent);
		if (slot.length != 0)
			continue;
		slot.start = index * slot_size;
		connection.arrived.pop_front();
		receive(connection, index);
	}
	if (connection.end_of_peer && !connection.lost && !connection.told) {
		connection.told = true;
		::shutdown(connection.end.get(), SHUT_WR);
	}
	return true;
}

// All that can be done now; then what there is to wait for
void Relay::advance(Connection &connection)
{
	take_from_program(connection);
	if (!give_to_program(connection))
		return lose(connection);
	// A receive that is under way may have octets
	if (connection.lost && connection.arrived.empty() && !is_any_under_way(connection.recvs))
		return lose(connection);
	const bool starved = is_any_starved(connection.sends);
	const bool sending = starved || is_any_under_way(connection.sends);
	if (connection.end_of_input && !sending && !connection.shut) {
		connection.shut = true;
		exs_shutdown(connection.fd);
	}
	// who has closed does not read any more
	if (connection.end_of_input && !sending && (connection.has_left || connection.told)) {
		read_rest(connection);
		drop(connection.number);
		return;
	}
	const bool has_room = !starved && std::ranges::any_of(connection.sends, [](const Slot &slot) { return slot.op == 0; });
	uint32_t events = 0;
	if (!connection.has_left)
		events = (has_room && !connection.end_of_input ? EPOLLIN | EPOLLRDHUP : 0U) |
			 (connection.arrived.empty() ? 0U : EPOLLOUT);
	if (!connection.has_left)
		return watch(connection, events);
	::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, connection.end.get(), nullptr); // EPOLLHUP cannot be left out
	if (connection.deadline == Clock::time_point())
		renew(connection);
}

void Relay::on_ready(uint64_t number, uint32_t events)
{
	const auto found = entries_.find(number);
	if (found == entries_.end())
		return;
	const auto entry = found->second; // it may drop itself
	if (auto *const listener = dynamic_cast<Listener *>(entry.get())) {
		if ((events & (EPOLLHUP | EPOLLRDHUP)) != 0)
			drop(number);
		else
			pass_on(*listener);
		return;
	}
	auto &connection = static_cast<Connection &>(*entry);
	if ((events & EPOLLHUP) != 0)
		connection.has_left = true;
	if (connection.open)
		guarded(connection, [&] { advance(connection); });
	else if (connection.has_left)
		drop(number); // given up before it was connected, or after it has failed
}

void Relay::on_event(const exs_event &event)
{
	if (event.type == EXS_EVENT_REVOKE) {
		const std::unique_ptr<Memory> memory(static_cast<Memory *>(event.context));
		return;
	}
	const auto found = entries_.find(reinterpret_cast<uintptr_t>(event.context));
	if (found == entries_.end())
		return;
	const auto entry = found->second; // it may drop itself
	if (event.type == EXS_EVENT_ACCEPT)
		return on_accepted(static_cast<Listener &>(*entry), event);
	auto &connection = static_cast<Connection &>(*entry);
	guarded(connection, [&] { on_connection_event(connection, event); });
}

void Relay::on_connection_event(Connection &connection, const exs_event &event)
{
	if (event.type == EXS_EVENT_CONNECT)
		return on_connected(connection, event);
	for (Slot &slot : connection.sends)
		if (event.type == EXS_EVENT_SEND && slot.op == event.op)
			on_sent(connection, slot, event);
	for (size_t i = 0; i < slots; i++)
		if (event.type == EXS_EVENT_RECV && connection.recvs[i].op == event.op)
			on_received(connection, i, event);
	if (connection.open)
		advance(connection);
}

void Relay::loop()
{
	std::array<epoll_event, 64> ready{};
	std::array<exs_event, 64> events{};
	for (;;) {
		const int count = ::epoll_wait(epoll_.get(), ready.data(), ready.size(), time_left());
		for (int i = 0; i < count; i++) {
			const epoll_event &one = ready[static_cast<size_t>(i)];
			if (one.data.u64 == wake_number) {
				on_requests();
			} else if (one.data.u64 == queue_number) {
				const int taken = exs_qdequeue(queue_, events.data(), events.size(), 0);
				for (int j = 0; j < taken; j++)
					on_event(events[static_cast<size_t>(j)]);
			} else {
				on_ready(one.data.u64, one.events);
			}
		}
		if (is_starved_)
			feed();
		drop_orphans(is_ending_ ? SIZE_MAX : most_orphans);
		const std::lock_guard lock(mutex_);
		if (passes_ != 0 && --passes_ == 0) {
			answered_ = to_answer_;
			settled_.notify_all();
		}
		idle_ = entries_.empty() && requests_.empty();
		if (idle_)
			empty_.notify_all();
	}
}

} // namespace shim
