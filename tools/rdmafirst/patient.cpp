// SPDX-License-Identifier: GPL-2.0
// Programs that have time, which others must not have to wait for; and one that waits for nothing
#include "cut.h"
#include "endpoint.h"
#include "foreign.h"

#include <atomic>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace rdmafirst {

void leave_to_nobody(void *page, size_t size)
{
	const auto fd = static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC));
	uffdio_api api{.api = UFFD_API, .features = 0, .ioctls = 0};
	uffdio_register range{.range = {.start = reinterpret_cast<uintptr_t>(page), .len = size},
			      .mode = UFFDIO_REGISTER_MODE_MISSING,
			      .ioctls = 0};
	if (fd < 0 || ioctl(fd, UFFDIO_API, &api) != 0 || ioctl(fd, UFFDIO_REGISTER, &range) != 0)
		throw SystemError("userfaultfd");
}

// The first event is written to memory that nobody provides, and others come meanwhile
Exit run_stuck(const Options &options)
{
	constexpr size_t addresses = 8;
	constexpr int resolve_ms = 2000;
	const auto size = static_cast<size_t>(sysconf(_SC_PAGESIZE));
	void *page = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED)
		throw SystemError("mmap");
	leave_to_nobody(page, size);
	sockaddr_storage address = socket_address(options);
	// to the end of the process: nothing can be destroyed while an event is being read
	rdma_event_channel *channel = make_channel().release();
	std::vector<rdma_cm_id *> ids;
	for (size_t i = 0; i < addresses; i++)
		ids.push_back(make_id(channel).release());
	std::thread reader;
	for (rdma_cm_id *id : ids) {
		if (rdma_resolve_addr(id, nullptr, reinterpret_cast<sockaddr *>(&address), resolve_ms) != 0)
			throw SystemError("rdma_resolve_addr");
		if (!reader.joinable()) {
			const std::vector<int> fds{channel->fd};
			wait_readable(fds, Clock::now() + options.timeout, "the first event");
			reader = std::thread([channel, page] {
				get_event_into(channel->fd, page);
				say("the event was read");
			});
			std::this_thread::sleep_for(std::chrono::milliseconds(500));
		}
	}
	say("reading an event");
	reader.join();
	return Exit::failed;
}

// An id is destroyed as soon as its address is resolved. Others, one of them likely in the memory of the
// first, are destroyed before.
Exit run_resolver(const Options &options)
{
	constexpr int resolve_ms = 2000;
	constexpr size_t others = 64;
	const Channel channel = make_channel();
	const std::vector<int> fds{channel->fd};
	sockaddr_storage address = socket_address(options);
	const auto resolve = [&] {
		Id id = make_id(channel.get());
		if (rdma_resolve_addr(id.get(), nullptr, reinterpret_cast<sockaddr *>(&address), resolve_ms) != 0)
			throw SystemError("rdma_resolve_addr");
		return id;
	};
	for (unsigned i = 0; i < options.times; i++) {
		Id id = resolve();
		wait_readable(fds, Clock::now() + options.timeout, "the address");
		const std::optional<Event> event = next_event(channel.get());
		if (!event || event->type != RDMA_CM_EVENT_ADDR_RESOLVED)
			return Exit::failed;
		id.reset();
		std::vector<Id> unresolved;
		while (unresolved.size() < others)
			unresolved.push_back(resolve());
	}
	return Exit::ok;
}

namespace {

struct Held {
	ibv_context *context = nullptr;
	ibv_pd *pd = nullptr;
	ibv_comp_channel *channel = nullptr;
	ibv_cq *cq = nullptr;
	ibv_srq *srq = nullptr;
	ibv_qp *qp = nullptr;
	ibv_mr *mr = nullptr;
};

alignas(4096) std::array<char, 8 * 4096> held_memory;
constexpr unsigned held_receives = 4;

Held hold(const std::string &device)
{
	Held held;
	held.context = open_device(device);
	if (!held.context)
		throw SystemError("cannot open device " + device);
	held.pd = ibv_alloc_pd(held.context);
	held.channel = ibv_create_comp_channel(held.context);
	held.cq = ibv_create_cq(held.context, 16, nullptr, held.channel, 0);
	ibv_srq_init_attr srq{};
	srq.attr = {.max_wr = 16, .max_sge = 1, .srq_limit = 0};
	held.srq = held.pd ? ibv_create_srq(held.pd, &srq) : nullptr;
	ibv_qp_init_attr qp{};
	qp.send_cq = held.cq;
	qp.recv_cq = held.cq;
	qp.cap = {.max_send_wr = 4, .max_recv_wr = held_receives, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 0};
	qp.qp_type = IBV_QPT_RC;
	held.qp = held.pd && held.cq ? ibv_create_qp(held.pd, &qp) : nullptr;
	held.mr = held.pd ? ibv_reg_mr(held.pd, held_memory.data(), held_memory.size(), IBV_ACCESS_LOCAL_WRITE) : nullptr;
	if (!held.channel || !held.srq || !held.qp || !held.mr || ibv_req_notify_cq(held.cq, 0) != 0)
		throw SystemError("cannot create the queues and the memory region on device " + device);
	ibv_sge sge{.addr = reinterpret_cast<uintptr_t>(held_memory.data()), .length = 1, .lkey = held.mr->lkey};
	ibv_recv_wr wr{.wr_id = 0, .next = nullptr, .sg_list = &sge, .num_sge = 1};
	ibv_recv_wr *bad = nullptr;
	for (unsigned i = 0; i < held_receives; i++)
		if (errno = ibv_post_recv(held.qp, &wr, &bad); errno != 0)
			throw SystemError("ibv_post_recv");
	return held;
}

// Counts the flushed receives; false if the queue cannot be polled
bool take_completion(const Held &held, unsigned &flushed)
{
	ibv_wc wc{};
	const int taken = ibv_poll_cq(held.cq, 1, &wc);
	if (taken > 0 && wc.status == IBV_WC_WR_FLUSH_ERR)
		flushed++;
	return taken >= 0;
}

// The kernel has taken away what it can: most of this fails, and none of it may hurt
void let_go(const Held &held)
{
	ibv_dereg_mr(held.mr);
	ibv_destroy_qp(held.qp);
	ibv_destroy_srq(held.srq);
	ibv_destroy_cq(held.cq);
	ibv_destroy_comp_channel(held.channel);
	ibv_dealloc_pd(held.pd);
	ibv_close_device(held.context);
}

void await_fatal_event(const Held &held, Clock::time_point deadline)
{
	const std::vector<int> fds{held.context->async_fd};
	for (;;) {
		wait_readable(fds, deadline, "an event of the device");
		ibv_async_event event{};
		if (ibv_get_async_event(held.context, &event) != 0)
			throw SystemError("ibv_get_async_event");
		ibv_ack_async_event(&event);
		if (event.event_type == IBV_EVENT_DEVICE_FATAL)
			return say("the device is removed");
		say(fmt::format("event {}", ibv_event_type_str(event.event_type)));
	}
}

} // namespace

Exit run_holder(const Options &options)
{
	constexpr auto patience = std::chrono::seconds(120);
	const auto deadline = Clock::now() + patience;
	const Held held = hold(options.device);
	std::atomic<bool> failed = false;
	unsigned flushed = 0; // of the poller, until it is joined
	std::jthread poller;
	if (options.busy)
		poller = std::jthread([&](const std::stop_token &stop) {
			while (!stop.stop_requested() && !failed)
				failed = !take_completion(held, flushed);
		});
	say("all objects are held");
	try {
		await_fatal_event(held, deadline);
		const ibv_pd *pd = ibv_alloc_pd(held.context);
		say(fmt::format("new object: {}", pd ? "created" : std::strerror(errno)));
		wait_readable({}, deadline, "SIGTERM");
	} catch (const Stopped &) {
		say("stopped");
	}
	poller = {};
	for (unsigned i = 0; i < held_receives && !failed; i++)
		failed = !take_completion(held, flushed);
	say(fmt::format("{} receives were flushed", flushed));
	say(failed ? "the queue cannot be polled" : "the queue is unchanged");
	let_go(held);
	return failed ? Exit::failed : Exit::ok;
}

} // namespace rdmafirst
