// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//
// The C interface: finds the objects that handles name, and makes errno of errors and of what is thrown.
#include "exs.h"

#include "socket.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdarg>
#include <cstring>
#include <new>
#include <span>
#include <system_error>

#include <sys/mman.h>
#include <unistd.h>

namespace {

using namespace libexs;

constexpr size_t smallest_event = 56; // of version 0.1
static_assert(offsetof(exs_event, context) + sizeof(void *) == smallest_event); // members are only appended

std::mutex library_mutex;
std::atomic<Library *> library_pointer = nullptr;
unsigned library_users = 0; // calls of exs_init() without their exs_exit()

// Whose the library is. The kernel clears the page in a child, by whatever call it is made; threads and queue pairs are
// the parent's.
class Owner {
public:
	void claim()
	{
		if (page_ == nullptr) {
			const auto size = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
			void *page = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
			if (page == MAP_FAILED || ::madvise(page, size, MADV_WIPEONFORK) != 0)
				throw std::system_error(errno, std::generic_category(), "MADV_WIPEONFORK");
			page_ = static_cast<std::atomic<bool> *>(page);
		}
		*page_ = true;
		claimed_ = true;
	}
	void release() { claimed_ = false; }
	[[nodiscard]] bool is_parent() const { return claimed_ && !*page_; }

private:
	std::atomic<bool> *page_ = nullptr;
	std::atomic<bool> claimed_ = false;
} owner;

Library &library()
{
	Library *found = library_pointer;
	if (found == nullptr || owner.is_parent())
		throw std::system_error(EBADF, std::generic_category());
	return *found;
}

// function(): an errno value
template <typename Function> int guarded(const Function &function)
{
	int error = 0;
	try {
		error = function();
	} catch (const std::bad_alloc &) {
		error = ENOMEM;
	} catch (const std::system_error &caught) {
		error = caught.code().value();
	}
	if (error == 0)
		return 0;
	errno = error;
	return -1;
}

std::shared_ptr<Socket> find_socket(exs_fd_t fd)
{
	auto socket = library().sockets.find(fd);
	if (!socket)
		throw std::system_error(EBADF, std::generic_category());
	return socket;
}

// 0: no events are wanted
Report make_report(exs_qh_t queue, void *context)
{
	if (queue == 0)
		return {};
	auto found = library().queues.find(queue);
	if (!found)
		throw std::system_error(EBADF, std::generic_category());
	return {std::move(found), context};
}

template <typename Function> exs_op_t start(const Function &function)
{
	exs_op_t op = 0;
	return guarded([&] { return function(op); }) == 0 ? op : -1;
}

// msync() says if there is nothing
bool is_mapped(const void *address, size_t length)
{
	const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
	const auto start = reinterpret_cast<uintptr_t>(address);
	const uintptr_t first = start / page * page;
	return ::msync(reinterpret_cast<void *>(first), length + (start - first), MS_ASYNC) == 0;
}

exs_op_t transfer(exs_fd_t fd, exs_mh_t memory, const void *address, size_t length, int flags, exs_qh_t queue,
		  void *context, std::optional<uint64_t> offset, int (Socket::*function)(Socket::Transfer, const Report &, exs_op_t &))
{
	return start([&](exs_op_t &op) {
		const auto socket = find_socket(fd);
		Socket::Transfer transfer{.region = library().regions.find(memory),
					  .mapping = nullptr,
					  .address = reinterpret_cast<uintptr_t>(address),
					  .length = length,
					  .flags = flags,
					  .offset = offset};
		if (!transfer.region && memory != 0)
			return EBADF;
		return (socket.get()->*function)(std::move(transfer), make_report(queue, context), op);
	});
}

// Of exs_sendv() and exs_recvv(), without the empty ones; an errno value
int parts_of(const exs_part *from, int count, int access, std::vector<Socket::Part> &parts, size_t &length)
{
	if (count < 0 || count > EXS_PARTS_MAX)
		return EINVAL;
	if (from == nullptr && count != 0)
		return EFAULT;
	length = 0;
	for (const exs_part &one : std::span(from, static_cast<size_t>(count))) {
		const Socket::Part part{library().regions.find(one.memory), reinterpret_cast<uintptr_t>(one.address), one.length};
		if (!part.region && one.memory != 0)
			return EBADF;
		if (const int error = Socket::check_part(part, access); error != 0)
			return error;
		if (length + part.length < length)
			return EINVAL;
		length += part.length;
		if (part.length != 0)
			parts.push_back(part);
	}
	return 0;
}

int copy_out(const sockaddr_storage &from, sockaddr *address, socklen_t *length)
{
	if (address == nullptr || length == nullptr)
		return EFAULT;
	const socklen_t whole = from.ss_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
	std::memcpy(address, &from, std::min(*length, whole));
	*length = whole;
	return 0;
}

int delete_queue(exs_qh_t queue)
{
	const auto found = library().queues.remove(queue);
	if (!found)
		return EBADF;
	found->close();
	while (const exs_fd_t fd = found->take_accepted())
		if (const auto socket = library().sockets.remove(fd))
			socket->abandon();
	found->send();
	return 0;
}

bool poll_once(Library &all, exs_pollfd *fds, size_t count, int &ready)
{
	ready = 0;
	for (size_t i = 0; i < count; i++) {
		exs_pollfd &entry = fds[i];
		entry.revents = 0;
		if (entry.fd < 0)
			continue;
		const auto socket = all.sockets.find(entry.fd);
		const int always = EXS_POLLERR | EXS_POLLHUP;
		entry.revents = static_cast<int16_t>(socket ? socket->poll() & (entry.events | always) : EXS_POLLNVAL);
		ready += entry.revents != 0;
	}
	return ready != 0;
}

} // namespace

extern "C" {

int exs_init(unsigned int version)
{
	return guarded([&] {
		if (version != EXS_VERSION)
			return EINVAL;
		if (owner.is_parent())
			return EOPNOTSUPP;
		const std::lock_guard lock(library_mutex);
		if (library_users == 0) {
			owner.claim();
			library_pointer = new Library;
		}
		library_users++;
		return 0;
	});
}

int exs_exit(void)
{
	if (owner.is_parent())
		return 0;
	const std::lock_guard lock(library_mutex);
	if (library_users == 0 || --library_users != 0)
		return 0;
	const std::unique_ptr<Library> old(library_pointer.exchange(nullptr));
	owner.release();
	std::vector<Engine *> engines = old->engines.all();
	engines.push_back(&old->engine);
	for (Engine *engine : engines)
		engine->stop();
	for (const auto &socket : old->sockets.all())
		socket->kill();
	for (Engine *engine : engines)
		for (const auto &actor : engine->actors())
			if (const auto socket = std::dynamic_pointer_cast<Socket>(actor))
				socket->kill();
	return 0;
}

exs_qh_t exs_qcreate(void)
{
	return start([&](exs_op_t &handle) {
		handle = library().queues.add(std::make_shared<Queue>(library().engine, library().engines));
		return 0;
	});
}

int exs_qdelete(exs_qh_t queue)
{
	return guarded([&] {
		const auto found = library().queues.find(queue);
		if (!found)
			return EBADF;
		if (found->in_use())
			return EBUSY;
		return delete_queue(queue);
	});
}

int exs_qabandon(exs_qh_t queue)
{
	return guarded([&] { return delete_queue(queue); });
}

int exs_qfd(exs_qh_t queue)
{
	int fd = -1;
	return guarded([&] {
		const auto found = library().queues.find(queue);
		fd = found ? found->fd() : -1;
		return !found ? EBADF : fd < 0 ? errno : 0;
	}) == 0 ? fd : -1;
}

int exs_qdequeue_sized(exs_qh_t queue, struct exs_event *events, size_t size, int max, int timeout)
{
	int taken = 0;
	return guarded([&] {
		const auto found = library().queues.find(queue);
		if (!found)
			return EBADF;
		if (events == nullptr || max < 1 || size < smallest_event)
			return EINVAL;
		if (size == sizeof(exs_event)) {
			taken = found->take(events, max, timeout);
			return taken < 0 ? errno : 0;
		}
		std::array<exs_event, 64> some{};
		taken = found->take(some.data(), std::min<int>(max, some.size()), timeout);
		auto *to = reinterpret_cast<uint8_t *>(events);
		for (int i = 0; i < taken; i++, to += size) {
			std::memset(to, 0, size);
			std::memcpy(to, &some[static_cast<size_t>(i)], std::min(size, sizeof(exs_event)));
		}
		return taken < 0 ? errno : 0;
	}) == 0 ? taken : -1;
}

#undef exs_qdequeue
int exs_qdequeue(exs_qh_t queue, struct exs_event *events, int max, int timeout)
{
	return exs_qdequeue_sized(queue, events, smallest_event, max, timeout);
}

int exs_qset(exs_qh_t queue, int option, unsigned int value)
{
	return guarded([&] {
		const auto found = library().queues.find(queue);
		return found ? found->set(option, value) : EBADF;
	});
}

int exs_qpost(exs_qh_t queue, void *context)
{
	return guarded([&] {
		const auto found = library().queues.find(queue);
		exs_event event{};
		event.type = EXS_EVENT_USER;
		event.context = context;
		return found && found->push(event) ? 0 : EBADF;
	});
}

exs_mh_t exs_mregister(void *address, size_t length, int access)
{
	return start([&](exs_op_t &handle) {
		const auto from = reinterpret_cast<uintptr_t>(address);
		if (length == 0 || from + length < from || access == 0 || (access & ~(EXS_MEM_SEND | EXS_MEM_RECV)) != 0)
			return EINVAL;
		if (!is_mapped(address, length))
			return EFAULT;
		handle = library().regions.add(std::make_shared<Region>(from, length, access));
		return 0;
	});
}

int exs_mderegister(exs_mh_t memory)
{
	return guarded([&] {
		const auto region = library().regions.find(memory);
		if (!region)
			return EBADF;
		if (!region->retire())
			return EBUSY;
		library().regions.remove(memory);
		while (const auto socket = region->take_socket())
			socket->forget(*region);
		return 0;
	});
}

exs_op_t exs_mrevoke(exs_mh_t memory, exs_qh_t queue, void *context)
{
	return start([&](exs_op_t &op) {
		Library &all = library();
		const auto region = all.regions.find(memory);
		if (!region)
			return EBADF;
		const Report report = make_report(queue, context);
		op = static_cast<exs_op_t>(all.op++);
		exs_event event{};
		event.type = EXS_EVENT_REVOKE;
		event.op = op;
		event.context = context;
		// in the progress thread: who lets go of the region last has the lock of its socket
		const auto finish = std::make_shared<Engine::Tasks>();
		finish->push_back([region, report, event] {
			while (const auto socket = region->take_socket())
				socket->forget(*region);
			if (report.queue)
				report.queue->leave(event);
		});
		std::function<void()> then = [&all, finish] { all.engine.run(std::move(*finish)); };
		if (report.queue)
			report.queue->enter();
		// nothing may fail behind it: the program frees memory that it could not revoke
		if (!region->retire(std::move(then))) {
			if (report.queue)
				report.queue->leave();
			return EBADF;
		}
		all.regions.remove(memory);
		for (auto socket = region->socket_after(nullptr); socket; socket = region->socket_after(socket))
			socket->cancel_users(*region);
		return 0;
	});
}

exs_fd_t exs_socket(int domain, int type, int protocol)
{
	return start([&](exs_op_t &fd) {
		if (domain != AF_INET && domain != AF_INET6)
			return EAFNOSUPPORT;
		if (type != SOCK_SEQPACKET && type != SOCK_STREAM)
			return ESOCKTNOSUPPORT;
		if (protocol < EXS_PROTO_ANY || protocol > EXS_PROTO_TCP)
			return EPROTONOSUPPORT;
		const auto socket = std::make_shared<Socket>(library(), domain, type, protocol);
		fd = library().sockets.add(socket, [&](exs_fd_t handle) { socket->set_handle(handle); });
		return 0;
	});
}

int exs_bind(exs_fd_t fd, const struct sockaddr *address, socklen_t length)
{
	return guarded([&] { return find_socket(fd)->bind(address, length); });
}

int exs_listen(exs_fd_t fd, int backlog)
{
	return guarded([&] { return find_socket(fd)->listen(backlog); });
}

exs_op_t exs_accept(exs_fd_t fd, exs_qh_t queue, void *context)
{
	return start([&](exs_op_t &op) { return find_socket(fd)->accept(make_report(queue, context), op); });
}

exs_op_t exs_connect(exs_fd_t fd, const struct sockaddr *address, socklen_t length, exs_qh_t queue, void *context)
{
	return start([&](exs_op_t &op) {
		return find_socket(fd)->connect(address, length, make_report(queue, context), op);
	});
}

exs_op_t exs_close(exs_fd_t fd, exs_qh_t queue, void *context)
{
	return start([&](exs_op_t &op) {
		const Report report = make_report(queue, context);
		const auto socket = find_socket(fd);
		const int error = socket->close(report, op);
		if (error == 0)
			library().sockets.remove(fd);
		return error;
	});
}

int exs_shutdown(exs_fd_t fd)
{
	return guarded([&] { return find_socket(fd)->shutdown(); });
}

int exs_getsockname(exs_fd_t fd, struct sockaddr *address, socklen_t *length)
{
	return guarded([&] {
		sockaddr_storage found{};
		const int error = find_socket(fd)->getsockname(found);
		return error != 0 ? error : copy_out(found, address, length);
	});
}

int exs_getpeername(exs_fd_t fd, struct sockaddr *address, socklen_t *length)
{
	return guarded([&] {
		sockaddr_storage found{};
		const int error = find_socket(fd)->getpeername(found);
		return error != 0 ? error : copy_out(found, address, length);
	});
}

int exs_fcntl(exs_fd_t fd, int command, int option, ...)
{
	unsigned value = 0;
	if (command == EXS_SET) {
		va_list arguments;
		va_start(arguments, option);
		value = va_arg(arguments, unsigned);
		va_end(arguments);
	}
	const int result = guarded([&] {
		const auto socket = find_socket(fd);
		switch (command) {
		case EXS_GET:
			return socket->get_option(option, value);
		case EXS_SET:
			return socket->set_option(option, value);
		default:
			return EINVAL;
		}
	});
	if (result != 0)
		return -1;
	return command == EXS_GET ? static_cast<int>(value) : 0;
}

exs_op_t exs_send(exs_fd_t fd, exs_mh_t memory, const void *address, size_t length, int flags, exs_qh_t queue, void *context)
{
	return transfer(fd, memory, address, length, flags, queue, context, std::nullopt, &Socket::send);
}

exs_op_t exs_recv(exs_fd_t fd, exs_mh_t memory, void *address, size_t length, int flags, exs_qh_t queue, void *context)
{
	return transfer(fd, memory, address, length, flags, queue, context, std::nullopt, &Socket::recv);
}

exs_op_t exs_sendv(exs_fd_t fd, const struct exs_part *parts, int count, int flags, exs_qh_t queue, void *context)
{
	return start([&](exs_op_t &op) {
		const auto socket = find_socket(fd);
		std::vector<Socket::Part> all;
		size_t length = 0;
		if (const int error = parts_of(parts, count, EXS_MEM_SEND, all, length); error != 0)
			return error;
		if (flags != 0)
			return EINVAL;
		Socket::Transfer transfer{.region = nullptr, .mapping = nullptr, .length = length, .offset = std::nullopt};
		if (all.size() == 1) {
			transfer.region = all.front().region;
			transfer.address = all.front().address;
		} else if (length != 0) {
			transfer.mapping = std::make_unique<Mapping>(all, length);
			transfer.address = transfer.mapping->address();
		}
		return socket->send(std::move(transfer), make_report(queue, context), op);
	});
}

exs_op_t exs_recvv(exs_fd_t fd, const struct exs_part *parts, int count, int flags, exs_qh_t queue, void *context)
{
	return start([&](exs_op_t &op) {
		const auto socket = find_socket(fd);
		Socket::Transfer transfer{.region = nullptr, .mapping = nullptr, .flags = flags, .offset = std::nullopt};
		if (const int error = parts_of(parts, count, EXS_MEM_RECV, transfer.parts, transfer.length); error != 0)
			return error;
		if ((flags & ~EXS_WAITALL) != 0)
			return EINVAL;
		return socket->recv(std::move(transfer), make_report(queue, context), op);
	});
}

exs_op_t exs_send_offset(exs_fd_t fd, exs_mh_t memory, const void *address, size_t length, int flags, exs_qh_t queue,
			 void *context, uint64_t offset)
{
	return transfer(fd, memory, address, length, flags, queue, context, offset, &Socket::send);
}

exs_op_t exs_recv_offset(exs_fd_t fd, exs_mh_t memory, void *address, size_t length, int flags, exs_qh_t queue,
			 void *context, uint64_t offset)
{
	return transfer(fd, memory, address, length, flags, queue, context, offset, &Socket::recv);
}

exs_op_t exs_sendfile(exs_fd_t fd, int file, uint64_t offset, size_t length, exs_qh_t queue, void *context)
{
	return start([&](exs_op_t &op) {
		const auto socket = find_socket(fd);
		const Report report = make_report(queue, context);
		auto mapping = std::make_unique<Mapping>(file, offset, length);
		const uint64_t address = mapping->address();
		return socket->send({.region = nullptr,
				     .mapping = std::move(mapping),
				     .address = address,
				     .length = length,
				     .flags = 0,
				     .offset = std::nullopt},
				    report, op);
	});
}

int exs_cancel(exs_fd_t fd, exs_op_t operation)
{
	return guarded([&] { return find_socket(fd)->cancel(operation); });
}

int exs_poll(struct exs_pollfd *fds, size_t count, int timeout)
{
	int ready = 0;
	return guarded([&] {
		if (fds == nullptr && count != 0)
			return EFAULT;
		Library &all = library();
		std::optional<Clock::time_point> until;
		if (timeout >= 0)
			until = Clock::now() + std::chrono::milliseconds(timeout);
		all.readiness.wait(until, [&] { return poll_once(all, fds, count, ready); });
		return 0;
	}) == 0 ? ready : -1;
}

exs_op_t exs_qpoll(exs_fd_t fd, int events, exs_qh_t queue, void *context)
{
	return start([&](exs_op_t &op) {
		if ((events & ~(EXS_POLLIN | EXS_POLLOUT)) != 0)
			return EINVAL;
		return find_socket(fd)->start_poll(events, make_report(queue, context), op);
	});
}

} // extern "C"
