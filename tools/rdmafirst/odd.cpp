// SPDX-License-Identifier: GPL-2.0
// What a program may ask of its queue pair although it makes no sense, or little: each work request
// that the kernel takes must complete, one way or another, and all memory must be free afterwards.
#include "endpoint.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <span>
#include <sstream>

#include <fcntl.h>
#include <fmt/format.h>
#include <rdma/siw-abi.h>
#include <sys/mman.h>
#include <unistd.h>

namespace rdmafirst {
namespace {

struct Exposed {
	uint64_t address = 0;
	uint32_t rkey = 0;
	uint32_t local_key = 0; // of other memory, without remote access
	uint32_t same_key = 0; // of the same, likewise
};

Exposed parse(std::string_view text)
{
	Exposed exposed;
	std::istringstream in{std::string(text)};
	in >> std::hex >> exposed.address >> exposed.rkey >> exposed.local_key >> exposed.same_key;
	return exposed;
}

void post_rdma(Endpoint &endpoint, ibv_wr_opcode opcode, uint32_t length, const Exposed &at)
{
	ibv_sge sge{.addr = 0, .length = length, .lkey = 0};
	ibv_send_wr wr = signaled(opcode, {&sge, 1});
	wr.wr.rdma.remote_addr = at.address;
	wr.wr.rdma.rkey = at.rkey;
	endpoint.post(wr);
}

// Ends behind the last address there is.
void write_wrap(Endpoint &endpoint, const Exposed &exposed)
{
	post_rdma(endpoint, IBV_WR_RDMA_WRITE, 32, {UINT64_MAX - 15, exposed.rkey});
}

void read_huge(Endpoint &endpoint, const Exposed &exposed)
{
	post_rdma(endpoint, IBV_WR_RDMA_READ, 0x80000010, exposed);
}

void read_beyond(Endpoint &endpoint, const Exposed &exposed)
{
	post_rdma(endpoint, IBV_WR_RDMA_READ, 100, {exposed.address + (1 << 20), exposed.rkey});
}

void read(Endpoint &endpoint, const Exposed &exposed)
{
	post_rdma(endpoint, IBV_WR_RDMA_READ, 16, exposed);
}

struct QueriedQp {
	ibv_qp_attr attr;
	ibv_qp_init_attr init;
};

QueriedQp query_qp(const Endpoint &endpoint)
{
	QueriedQp qp{};
	if (ibv_query_qp(endpoint.id()->qp, &qp.attr, IBV_QP_STATE, &qp.init) != 0)
		throw SystemError("ibv_query_qp");
	return qp;
}

// One more than the completion queue holds, before any completion is taken out of it
void reads_beyond_cq(Endpoint &endpoint, const Exposed &exposed)
{
	constexpr auto patience = std::chrono::seconds(8);
	const auto end = Clock::now() + patience;
	const int entries = endpoint.id()->send_cq->cqe;
	int posted = 0;
	while (query_qp(endpoint).attr.qp_state != IBV_QPS_ERR) {
		if (Clock::now() >= end) {
			say(fmt::format("{} reads of {} entries, and the connection goes on", posted, entries));
			return;
		}
		try {
			if (posted <= entries) {
				read(endpoint, exposed);
				posted++;
			}
		} catch (const SystemError &) { // the send queue is full
			std::this_thread::yield();
		}
	}
	say(fmt::format("the connection has ended after {} reads of {} entries", posted, entries));
}

// Posts nothing
void query(Endpoint &endpoint, const Exposed &)
{
	const auto [attr, init] = query_qp(endpoint);
	say(fmt::format("state {} max_rd_atomic {} max_dest_rd_atomic {} sq_sig_all {}",
			static_cast<int>(attr.qp_state), attr.max_rd_atomic, attr.max_dest_rd_atomic, init.sq_sig_all));
}

void write(Endpoint &endpoint, const Exposed &exposed)
{
	post_rdma(endpoint, IBV_WR_RDMA_WRITE, 16, exposed);
}

// What it was before it connected. Posts nothing
void reset(Endpoint &endpoint, const Exposed &)
{
	endpoint.modify("reset");
}

void arm(ibv_cq *cq, bool solicited_only)
{
	if (ibv_req_notify_cq(cq, solicited_only ? 1 : 0) != 0)
		throw SystemError("ibv_req_notify_cq");
}

// Takes what has been notified of; whether there was anything
bool take_notification(ibv_comp_channel *channel)
{
	ibv_cq *cq = nullptr;
	void *context = nullptr;
	unsigned taken = 0;
	for (; ibv_get_cq_event(channel, &cq, &context) == 0; taken++)
		ibv_ack_cq_events(cq, 1);
	return taken != 0;
}

bool await_notification(ibv_comp_channel *channel)
{
	constexpr auto patience = std::chrono::seconds(8);
	const auto end = Clock::now() + patience;
	while (!take_notification(channel)) {
		if (Clock::now() >= end)
			return false;
		std::this_thread::sleep_for(std::chrono::milliseconds(5));
	}
	return true;
}

void await_solicited(const Endpoint &endpoint, bool errors)
{
	rdma_cm_id *id = endpoint.id();
	const char *outcome = !await_notification(id->recv_cq_channel)		   ? "no notification of a receive" :
			      errors && !await_notification(id->send_cq_channel) ? "no notification of a request" :
										     "notified of completions";
	say(outcome);
}

// Of two messages, only the second is solicited. What we solicit from the peer is nothing that we are told of.
void solicited(Endpoint &endpoint, const Exposed &)
{
	rdma_cm_id *id = endpoint.id();
	take_notification(id->send_cq_channel);
	take_notification(id->recv_cq_channel);
	arm(id->recv_cq, true);
	arm(id->send_cq, true);
	ibv_sge sge{.addr = 0, .length = 4, .lkey = 0};
	ibv_send_wr wr = signaled(IBV_WR_SEND, {&sge, 1});
	wr.send_flags |= IBV_SEND_SOLICITED;
	endpoint.post(wr);
	await_solicited(endpoint, false);
	say(take_notification(id->send_cq_channel) ? "notified of the unsolicited send" : "not notified of the unsolicited send");
	ibv_wc wc{};
	unsigned received = 0;
	while (ibv_poll_cq(id->recv_cq, 1, &wc) > 0)
		received++;
	endpoint.forget_receives(received);
	say(fmt::format("{} messages received", received));
}

// A read whose answer is no good ends the connection, and everything else
void solicited_errors(Endpoint &endpoint, const Exposed &exposed)
{
	rdma_cm_id *id = endpoint.id();
	take_notification(id->send_cq_channel);
	take_notification(id->recv_cq_channel);
	arm(id->recv_cq, true);
	arm(id->send_cq, true);
	read(endpoint, exposed);
	await_solicited(endpoint, true);
}

// How many of them the program is told of that it has not asked for
void many_events(Endpoint &endpoint, const Exposed &)
{
	ibv_context *device = endpoint.id()->verbs;
	if (fcntl(device->async_fd, F_SETFL, O_NONBLOCK) != 0)
		throw SystemError("fcntl");
	endpoint.spoil_qp();
	// more than there is room for in both queues
	constexpr unsigned posts = 20;
	for (unsigned i = 0; i < posts; i++) {
		ibv_send_wr wr = signaled(IBV_WR_SEND, {});
		ibv_send_wr *bad = nullptr;
		if (ibv_post_send(endpoint.id()->qp, &wr, &bad) == 0)
			endpoint.expect_one_more();
	}
	std::map<ibv_event_type, unsigned> seen;
	for (ibv_async_event event{}; ibv_get_async_event(device, &event) == 0; ibv_ack_async_event(&event))
		seen[event.event_type]++;
	say(fmt::format("SQ_DRAINED {} CQ_ERR {}", seen[IBV_EVENT_SQ_DRAINED], seen[IBV_EVENT_CQ_ERR]));
}

// Its memory would be 128 MiB
void large_cq(Endpoint &endpoint, const Exposed &)
{
	constexpr int entries = 3276800;
	ibv_cq *cq = ibv_create_cq(endpoint.id()->verbs, entries, nullptr, nullptr, 0);
	say(fmt::format("a queue of {} entries: {}", entries, cq ? "created" : std::strerror(errno)));
	if (cq)
		ibv_destroy_cq(cq);
}

void two_reads(Endpoint &endpoint, const Exposed &exposed)
{
	read(endpoint, exposed);
	read(endpoint, exposed);
}

// One after the other
void many_reads(Endpoint &endpoint, const Exposed &exposed)
{
	for (unsigned i = 0; i < 1000; i++) {
		read(endpoint, exposed);
		if (endpoint.never_completed(true) != 0) {
			say(fmt::format("read {} is not answered", i + 1));
			return;
		}
	}
}

constexpr size_t slot_bytes = 1000;
constexpr uint32_t few = 32; // bytes; siw copies as many behind the header

constexpr size_t long_read_pages = 8192; // that the server has to expose

// A read into memory of its own
Mr post_read_into(Endpoint &endpoint, std::span<char> sink, const Exposed &exposed)
{
	Mr mr(ibv_reg_mr(endpoint.id()->pd, sink.data(), sink.size(), IBV_ACCESS_LOCAL_WRITE));
	if (!mr)
		throw SystemError("ibv_reg_mr");
	ibv_sge sge{.addr = reinterpret_cast<uintptr_t>(sink.data()),
		    .length = static_cast<uint32_t>(sink.size()), .lkey = mr->lkey};
	ibv_send_wr wr = signaled(IBV_WR_RDMA_READ, {&sge, 1});
	wr.wr.rdma.remote_addr = exposed.address;
	wr.wr.rdma.rkey = exposed.rkey;
	endpoint.post(wr);
	return mr;
}

// No completion tells of a part of an answer: the byte at @at becomes another one
void await_answer(const volatile char *at, Clock::time_point end)
{
	while (*at == 0 && Clock::now() < end)
		std::this_thread::sleep_for(std::chrono::milliseconds(1));
	say(*at != 0 ? "the response has started" : "no response");
}

constexpr size_t two_pages = 8192; // that the server has exposed

// The server changes its memory before the answer has arrived
void read_changing(Endpoint &endpoint, const Exposed &exposed)
{
	std::vector<char> sink(two_pages);
	const Mr mr = post_read_into(endpoint, sink, exposed);
	say("the read is posted");
	if (endpoint.never_completed(true) != 0)
		return;
	for (size_t i = 0; i < sink.size(); i++) {
		if (sink[i] != Endpoint::letter(i)) {
			say(fmt::format("byte {} is not the server's", i));
			return;
		}
	}
	say("all octets read are the server's");
}

// A later completion says that the memory is ours again
void write_and_change(Endpoint &endpoint, const Exposed &exposed)
{
	std::vector<char> source(two_pages, 'A');
	std::vector<char> sink(two_pages);
	Mr mr(ibv_reg_mr(endpoint.id()->pd, source.data(), source.size(), IBV_ACCESS_LOCAL_WRITE));
	if (!mr)
		throw SystemError("ibv_reg_mr");
	ibv_sge sge{.addr = reinterpret_cast<uintptr_t>(source.data()),
		    .length = static_cast<uint32_t>(source.size()), .lkey = mr->lkey};
	ibv_send_wr wr = signaled(IBV_WR_RDMA_WRITE, {&sge, 1});
	wr.send_flags = 0;
	wr.wr.rdma.remote_addr = exposed.address;
	wr.wr.rdma.rkey = exposed.rkey;
	ibv_send_wr *bad = nullptr;
	errno = ibv_post_send(endpoint.id()->qp, &wr, &bad);
	if (errno != 0)
		throw SystemError("ibv_post_send");
	post_rdma(endpoint, IBV_WR_RDMA_WRITE, 0, exposed);
	if (endpoint.never_completed(true) != 0)
		return;
	mr.reset();
	std::ranges::fill(source, 'Z');
	say("the memory is changed");
	const Mr back = post_read_into(endpoint, sink, exposed);
	if (endpoint.never_completed(true) != 0)
		return;
	const auto count = std::ranges::count(sink, 'A');
	say(fmt::format("{} of {} bytes have the written content", count, sink.size()));
}

// The memory changes all the time while it is being sent
void write_while_changing(Endpoint &endpoint, const Exposed &exposed)
{
	constexpr int times = 400;
	std::vector<char> source(two_pages);
	Mr mr(ibv_reg_mr(endpoint.id()->pd, source.data(), source.size(), IBV_ACCESS_LOCAL_WRITE));
	if (!mr)
		throw SystemError("ibv_reg_mr");
	const std::jthread changes([&source](const std::stop_token &stop) {
		for (unsigned n = 0; !stop.stop_requested(); n++) {
			for (size_t i = 0; i < source.size(); i += sizeof(n))
				*reinterpret_cast<volatile unsigned *>(&source[i]) = n;
		}
	});
	int done = 0;
	for (; done < times; done++) {
		ibv_sge sge{.addr = reinterpret_cast<uintptr_t>(source.data()),
			    .length = static_cast<uint32_t>(source.size()), .lkey = mr->lkey};
		ibv_send_wr wr = signaled(IBV_WR_RDMA_WRITE, {&sge, 1});
		wr.wr.rdma.remote_addr = exposed.address;
		wr.wr.rdma.rkey = exposed.rkey;
		endpoint.post(wr);
		if (endpoint.never_completed(true) != 0)
			break;
	}
	// The answer shows that the peer has taken all of it
	std::vector<char> sink(two_pages);
	const Mr back = post_read_into(endpoint, sink, exposed);
	if (endpoint.never_completed(true) != 0)
		return;
	say(fmt::format("{} of {} writes and a read are done", done, times));
}

// It takes so long that the server can take its memory back meanwhile
void long_read(Endpoint &endpoint, const Exposed &exposed)
{
	constexpr auto patience = std::chrono::seconds(20);
	const auto end = Clock::now() + patience;
	std::vector<char> sink(long_read_pages * static_cast<size_t>(sysconf(_SC_PAGESIZE)));
	const Mr mr = post_read_into(endpoint, sink, exposed);
	await_answer(sink.data(), end);
	while (Clock::now() < end && endpoint.never_completed(true) != 0)
		;
}

// The memory of a read goes when the peer has sent the first eight bytes of the answer, and before it sends the rest
void read_and_forget(Endpoint &endpoint, const Exposed &exposed)
{
	constexpr auto patience = std::chrono::seconds(5);
	static std::array<char, 16> sink;
	Mr mr = post_read_into(endpoint, sink, exposed);
	await_answer(&sink[7], Clock::now() + patience);
	mr.reset();
	say("the memory is deregistered");
}

// What would be registered is not there: all addresses, and more pages than there can be or are. Posts nothing
void register_all(Endpoint &endpoint, const Exposed &)
{
	constexpr size_t some = 512 * 4096;
	void *nobodys = mmap(nullptr, some, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (nobodys == MAP_FAILED)
		throw SystemError("mmap");
	const std::array<std::pair<void *, size_t>, 4> regions{
		{{nullptr, 0xfffffffffffff001}, {nullptr, 1UL << 44}, {nullptr, 1UL << 41}, {nobodys, some}}};
	for (const auto &[address, length] : regions) {
		const Mr mr(ibv_reg_mr(endpoint.id()->pd, address, length, IBV_ACCESS_LOCAL_WRITE));
		say(fmt::format("{:#x} bytes are {}", length, mr ? "registered" : std::strerror(errno)));
	}
	munmap(nobodys, some);
}

// Of the server's pages, where the one ends and the other begins
void read_across(Endpoint &endpoint, const Exposed &exposed)
{
	const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
	for (size_t at = page - few + 1; at < page; at++) {
		post_rdma(endpoint, IBV_WR_RDMA_READ, few, {exposed.address + at, exposed.rkey});
		if (endpoint.never_completed(true) != 0)
			return;
		for (size_t i = 0; i < few; i++) {
			if (endpoint.message()[i] != Endpoint::letter(at + i)) {
				say(fmt::format("at {} of a page: byte {} is not the server's", at, i));
				return;
			}
		}
	}
	say("all octets read are the server's");
}

void send_across(Endpoint &endpoint, const Exposed &)
{
	const ibv_mr *pages = endpoint.expose_pages();
	const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
	ibv_sge sge{.addr = reinterpret_cast<uintptr_t>(pages->addr) + page - 5, .length = few, .lkey = pages->lkey};
	ibv_send_wr wr = signaled(IBV_WR_SEND, {&sge, 1});
	endpoint.post(wr);
}

// Where the ORD is 1 the second one has to wait, also if there is something to be done to the queue pair
void reads_and_modify(Endpoint &endpoint, const Exposed &exposed)
{
	two_reads(endpoint, exposed);
	if (modify_qp(endpoint.id()->qp) != 0)
		throw SystemError("ibv_modify_qp");
}

// A read, and a message that has to wait for its end
void fenced_send(Endpoint &endpoint, const Exposed &exposed)
{
	read(endpoint, exposed);
	ibv_sge sge{.addr = 0, .length = 4, .lkey = 0};
	ibv_send_wr wr = signaled(IBV_WR_SEND, {&sge, 1});
	wr.send_flags |= IBV_SEND_FENCE;
	endpoint.post(wr);
}

// The transmit thread is woken all the time, while the program sends by itself
void restless_sends(Endpoint &endpoint, const Exposed &)
{
	constexpr unsigned messages = 100; // as many as the peer expects
	endpoint.be_restless();
	for (unsigned i = 0; i < messages; i++) {
		endpoint.post_send(std::string(slot_bytes, Endpoint::letter(i)));
		if (endpoint.never_completed(true) != 0)
			return;
	}
}

void send(Endpoint &endpoint, const Exposed &)
{
	endpoint.post_send(std::string(slot_bytes, Endpoint::letter(0)));
}

// The connection is closed before the answer is there
void read_and_close(Endpoint &endpoint, const Exposed &exposed)
{
	read(endpoint, exposed);
	if (rdma_disconnect(endpoint.id()) != 0)
		throw SystemError("rdma_disconnect");
}

// The request must complete once, in the state that rdma_disconnect() leaves, and not again in error
void close_and_send(Endpoint &endpoint, const Exposed &exposed)
{
	if (rdma_disconnect(endpoint.id()) != 0)
		throw SystemError("rdma_disconnect");
	query(endpoint, exposed);
	endpoint.post_send("too late");
	endpoint.never_completed(true);
	endpoint.spoil_qp();
	endpoint.completions();
}

// The queue pair is not what it was before it connected. Posts nothing
void close_and_reset(Endpoint &endpoint, const Exposed &)
{
	if (rdma_disconnect(endpoint.id()) != 0)
		throw SystemError("rdma_disconnect");
	endpoint.modify("reset");
}

// The bytes of the Read Request are where those of the message will be
void read_and_send(Endpoint &endpoint, const Exposed &exposed)
{
	read(endpoint, exposed);
	if (endpoint.never_completed(true) == 0)
		endpoint.post_send("hello");
}

void post_invalidate(Endpoint &endpoint, uint32_t stag)
{
	ibv_sge sge{.addr = 0, .length = 4, .lkey = 0};
	ibv_send_wr wr = signaled(IBV_WR_SEND_WITH_INV, {&sge, 1});
	wr.invalidate_rkey = stag;
	wr.wr.rdma.rkey = stag; // where libsiw looks
	endpoint.post(wr);
}

void invalidate(Endpoint &endpoint, const Exposed &exposed)
{
	post_invalidate(endpoint, exposed.rkey);
	endpoint.never_completed(true);
	post_rdma(endpoint, IBV_WR_RDMA_READ, 16, exposed);
}

void invalidate_wrong_key(Endpoint &endpoint, const Exposed &exposed)
{
	post_invalidate(endpoint, exposed.rkey ^ 1);
}

void invalidate_local(Endpoint &endpoint, const Exposed &exposed)
{
	post_invalidate(endpoint, exposed.local_key);
}

void post_marked_send(Endpoint &endpoint, uint64_t mark)
{
	ibv_sge sge{.addr = 0, .length = 4, .lkey = 0};
	ibv_send_wr wr = signaled(IBV_WR_SEND, {&sge, 1});
	wr.wr_id = mark;
	endpoint.post(wr);
}

// What the server registered for itself alone
void read_local(Endpoint &endpoint, const Exposed &exposed)
{
	post_rdma(endpoint, IBV_WR_RDMA_READ, 16, {exposed.address, exposed.same_key});
}

// What siw shares with us of its queues: where they begin, a page each
std::vector<char *> shared_queues()
{
	std::vector<char *> found;
	std::ifstream maps("/proc/self/maps");
	for (std::string line; std::getline(maps, line);)
		if (line.find("/uverbs") != std::string::npos)
			found.push_back(reinterpret_cast<char *>(std::stoull(line, nullptr, 16)));
	return found;
}

// The place in siw's send queue, which the kernel shares with us, of a Send that has completed
siw_sqe *find_in_queue(uint64_t mark, size_t sqes)
{
	for (char *shared : shared_queues()) {
		auto *queue = reinterpret_cast<siw_sqe *>(shared);
		for (size_t i = 0; i < sqes; i++)
			if (queue[i].id == mark && queue[i].opcode == SIW_OP_SEND && queue[i].num_sge == 1)
				return &queue[i];
	}
	return nullptr;
}

// Behind the next Send stands what only the kernel may post: the address of a structure of its own.
void kernel_pointer(Endpoint &endpoint, const Exposed &exposed)
{
	constexpr uint64_t mark = 0x6d61726b;
	constexpr uint64_t nowhere = 0xdead000000000000; // no address at all
	post_marked_send(endpoint, mark);
	if (endpoint.never_completed(true) != 0)
		return;
	siw_sqe *sqe = find_in_queue(mark, 1); // it is the first
	if (!sqe) {
		say("the send queue is not found");
		return;
	}
	sqe += 2;
	sqe->id = mark;
	sqe->num_sge = 0;
	sqe->opcode = SIW_OP_REG_MR;
	sqe->rkey = exposed.rkey;
	sqe->base_mr = nowhere;
	std::atomic_thread_fence(std::memory_order_seq_cst);
	sqe->flags = SIW_WQE_VALID | SIW_WQE_SIGNALLED;
	endpoint.expect_one_more();
	post_marked_send(endpoint, mark + 1);
}

// Where the completion of a Send is that has been polled already
volatile siw_cqe *find_completions(uint64_t mark, uint32_t qpn)
{
	for (char *queue : shared_queues()) {
		auto *cqe = reinterpret_cast<siw_cqe *>(queue);
		if (cqe->id == mark && cqe->opcode == SIW_OP_SEND && cqe->qp_id == qpn)
			return cqe;
	}
	return nullptr;
}

// The send queue, by the mark of a message that has been sent; nullptr if it is not found
volatile siw_sqe *find_send_queue(Endpoint &endpoint, uint64_t mark)
{
	post_marked_send(endpoint, mark);
	return endpoint.never_completed(true) == 0 ? find_in_queue(mark, 1) : nullptr;
}

// While the queue pair is flushed, a thread posts all of the send queue again and takes all completions.
void refill(Endpoint &endpoint, const Exposed &)
{
	constexpr uint64_t mark = 0x6d61726c;
	constexpr auto enough = std::chrono::seconds(5);
	const size_t entries = endpoint.send_queue_size();
	volatile siw_sqe *sqes = find_send_queue(endpoint, mark);
	volatile siw_cqe *cqes = find_completions(mark, endpoint.id()->qp->qp_num);
	if (!sqes || !cqes) {
		say("the queues are not found");
		return;
	}
	std::atomic<unsigned> flushed = 0;
	std::atomic<bool> at_work = false;
	{
		const std::jthread program([&](const std::stop_token &stop) {
			const auto until = Clock::now() + enough;
			while (!stop.stop_requested() && Clock::now() < until) {
				for (size_t i = 0; i < entries; i++) {
					if (cqes[i].flags != 0) {
						cqes[i].flags = 0;
						flushed++;
					}
					sqes[i].flags = SIW_WQE_VALID | SIW_WQE_SIGNALLED;
				}
				at_work = true;
			}
			for (size_t i = 0; i < entries; i++)
				sqes[i].flags = 0;
		});
		while (!at_work)
			std::this_thread::yield();
		endpoint.spoil_qp();
		std::this_thread::sleep_for(std::chrono::milliseconds(200));
	}
	say(fmt::format("flushed {} of {} entries", flushed.load(), entries));
}

// While a full send queue is flushed, a thread posts in the place of the first request that is completed
void refill_one(Endpoint &endpoint, const Exposed &)
{
	constexpr uint64_t mark = 0x6d61726c;
	constexpr uint16_t valid = SIW_WQE_VALID | SIW_WQE_SIGNALLED;
	const size_t entries = endpoint.send_queue_size();
	volatile siw_sqe *sqes = find_send_queue(endpoint, mark);
	if (!sqes) {
		say("the queue is not found");
		return;
	}
	endpoint.completions(); // wants to be told of the next one
	for (size_t i = 0; i < entries; i++)
		sqes[i].flags = valid;
	std::atomic<size_t> filled = entries;
	std::atomic<bool> at_work = false;
	{
		// It finds one after the flush, too, if it has not run before
		const std::jthread program([&] {
			const auto until = Clock::now() + std::chrono::seconds(2);
			at_work = true;
			for (size_t i = 0; filled == entries && Clock::now() < until; i = (i + 1) % entries) {
				if (sqes[i].flags == 0) {
					sqes[i].flags = valid;
					filled = i;
				}
			}
		});
		while (!at_work)
			std::this_thread::yield();
		endpoint.spoil_qp();
	}
	say(filled == entries ? "nothing was flushed" : sqes[filled].flags == 0 ? "the request is lost" : "the request is kept");
	for (size_t i = 0; i < entries; i++)
		sqes[i].flags = 0;
}

void empty_sge(Endpoint &endpoint, const Exposed &)
{
	std::array<ibv_sge, 2> sges{ibv_sge{.addr = 1, .length = 0, .lkey = 0},
				    ibv_sge{.addr = 0, .length = 8, .lkey = 0}};
	ibv_send_wr wr = signaled(IBV_WR_SEND, sges);
	endpoint.post(wr);
}

void send_in_error(Endpoint &endpoint, const Exposed &)
{
	endpoint.spoil_qp();
	endpoint.post_send("too late");
}

// A page that nobody provides takes the place of the one that was registered.
void replaced_page(Endpoint &endpoint, const Exposed &)
{
	const auto size = static_cast<size_t>(sysconf(_SC_PAGESIZE));
	const int prot = PROT_READ | PROT_WRITE;
	void *page = mmap(nullptr, size, prot, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (page == MAP_FAILED)
		throw SystemError("mmap");
	std::strcpy(static_cast<char *>(page), "pinned");
	static Mr mr; // to the end: the endpoint may still use it
	mr.reset(ibv_reg_mr(endpoint.id()->pd, page, size, IBV_ACCESS_LOCAL_WRITE));
	if (!mr)
		throw SystemError("ibv_reg_mr");
	if (mmap(page, size, prot, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
		throw SystemError("mmap");

	leave_to_nobody(page, size);
	say("the page is replaced");

	ibv_sge sge{.addr = reinterpret_cast<uintptr_t>(page), .length = 6, .lkey = mr->lkey};
	ibv_send_wr wr = signaled(IBV_WR_SEND, {&sge, 1});
	endpoint.post(wr);
}

const std::map<std::string, std::function<void(Endpoint &, const Exposed &)>> things = {
	{"send-in-error", send_in_error}, {"write-wrap", write_wrap}, {"read-huge", read_huge}, {"read-beyond", read_beyond}, {"read", read},
	{"query", query}, {"query-unsignaled", query}, {"two-reads", two_reads}, {"reads-beyond-cq", reads_beyond_cq}, {"empty-sge", empty_sge}, {"replaced-page", replaced_page},
	{"many-reads", many_reads}, {"invalidate", invalidate}, {"invalidate-wrong-key", invalidate_wrong_key},
	{"invalidate-local", invalidate_local}, {"kernel-pointer", kernel_pointer},
	{"read-local", read_local}, {"refill", refill}, {"refill-one", refill_one}, {"read-across", read_across}, {"send-across", send_across},
	{"reads-and-modify", reads_and_modify}, {"fenced-send", fenced_send}, {"read-and-send", read_and_send},
	{"send", send}, {"restless-sends", restless_sends}, {"long-read", long_read}, {"read-and-close", read_and_close},
	{"close-and-send", close_and_send}, {"close-and-reset", close_and_reset},
	{"read-and-forget", read_and_forget}, {"register-all", register_all},
	{"write", write}, {"reset", reset}, {"solicited", solicited}, {"solicited-errors", solicited_errors},
	{"read-changing", read_changing},
	{"write-while-changing", write_while_changing},
	{"write-and-change", write_and_change}, {"many-events", many_events}, {"large-cq", large_cq},
};

} // namespace

std::vector<std::string> odd_things()
{
	std::vector<std::string> names;
	for (const auto &[name, function] : things)
		names.push_back(name);
	return names;
}

size_t send_queue_for(const std::string &odd)
{
	// So large that to flush it takes longer than we may be kept from running
	constexpr size_t large = 32768;
	return odd == "refill" ? large : Endpoint::sends;
}

Exit do_odd(Endpoint &endpoint, const std::string &what, std::string_view exposed)
{
	bool posted = true;
	try {
		things.at(what)(endpoint, parse(exposed));
	} catch (const SystemError &error) {
		posted = false;
		say(error.what());
	}
	say(fmt::format("{} {}", what, posted ? "was posted" : "was rejected"));
	// A refused one that completes makes this one less than there is
	const unsigned pending = endpoint.never_completed();
	say(fmt::format("{} work requests have not completed", static_cast<int>(pending)));
	return Exit::ok;
}

} // namespace rdmafirst
