// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
// dgqp: a UD queue pair of the verbs for tests, of a device of type siw_dg or of any other
#include <arpa/inet.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <linux/netlink.h>
#include <linux/userfaultfd.h>
#include <netinet/udp.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include <infiniband/verbs.h>
#include <rdma/rdma_netlink.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <siw_dg-abi.h>
#include <siwdg.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace {

constexpr size_t grh = 40;
constexpr size_t margin = 100; // octets of a region before and behind its zone

struct Options {
	std::string device, group, provider, target, output, end, interface, data = "hello";
	std::vector<std::string> from;
	int gid = 0, timeout = 30, linger = 0, pace = 0;
	uint32_t qkey = 0x11111111, count = 1, every = 1, depth = 16, records = 64, qpn = 0;
	size_t size = 2048;
	uint32_t zone = 0, key = 0;
	uint64_t zone_size = 4096, offset = 0;
	uint32_t block = 0;
	std::optional<uint32_t> slots, deadline, gap, segment, flags;
	uint16_t port = 0;
	int socket = -1, socket_segment = 0, socket_tclass = 0, tclass = 0;
	size_t split = 0;
	std::string cork, recverr, interrupt;
	bool elsewhere = false, broadcast = false, use_inline = false, solicited = false, events = false, any = false, no_record = false, partial = false, until_send = false, to_error = false, reopen = false, fold = false, plain = false, guess = false, recover = false;
};

[[noreturn]] void fail(const std::string &what, int error)
{
	throw std::runtime_error(fmt::format("{}: {}", what, std::strerror(error)));
}

template <typename T> T *made(T *object, const char *what)
{
	if (object == nullptr)
		fail(what, errno);
	return object;
}

void done(int error, const char *what)
{
	if (error != 0)
		fail(what, error > 0 ? error : -error);
}

template <auto Free> struct Freer {
	template <typename T> void operator()(T *object) const { Free(object); }
};
template <typename T, auto Free> using Owned = std::unique_ptr<T, Freer<Free>>;

// An IPv4 address in its mapped form
ibv_gid parse_gid(const std::string &text)
{
	ibv_gid gid{};
	if (inet_pton(AF_INET6, text.c_str(), gid.raw) == 1)
		return gid;
	gid.raw[10] = gid.raw[11] = 0xff;
	if (inet_pton(AF_INET, text.c_str(), gid.raw + 12) != 1)
		throw std::runtime_error("not an address: " + text);
	return gid;
}

std::string gid_text(const void *raw)
{
	char buf[INET6_ADDRSTRLEN] = "";
	inet_ntop(AF_INET6, raw, buf, sizeof(buf));
	return buf;
}

class Descriptor {
public:
	explicit Descriptor(int fd) : fd_(fd)
	{
		if (fd < 0)
			fail("a descriptor", errno);
	}
	~Descriptor()
	{
		if (fd_ >= 0)
			::close(fd_);
	}
	Descriptor(Descriptor &&other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
	Descriptor(const Descriptor &) = delete;
	Descriptor &operator=(const Descriptor &) = delete;
	[[nodiscard]] int get() const { return fd_; }

private:
	int fd_;
};

// The provider's own calls; nobody links with it
class Provider {
	void *library_; // before its functions

public:
	explicit Provider(const std::string &file) : library_(dlopen(file.c_str(), RTLD_NOW))
	{
		if (library_ == nullptr)
			throw std::runtime_error(dlerror());
	}
	const decltype(&siwdg_create_qp_ex) create_qp = find<decltype(&siwdg_create_qp_ex)>("siwdg_create_qp_ex");
	const decltype(&siwdg_open_zone) open_zone = find<decltype(&siwdg_open_zone)>("siwdg_open_zone");
	const decltype(&siwdg_close_zone) close_zone = find<decltype(&siwdg_close_zone)>("siwdg_close_zone");
	const decltype(&siwdg_allow) allow = find<decltype(&siwdg_allow)>("siwdg_allow");
	const decltype(&siwdg_allow_any) allow_any = find<decltype(&siwdg_allow_any)>("siwdg_allow_any");
	const decltype(&siwdg_poll_sized) poll = find<decltype(&siwdg_poll_sized)>("siwdg_poll_sized");
	const decltype(&siwdg_zone_valid) zone_valid = find<decltype(&siwdg_zone_valid)>("siwdg_zone_valid");
	const decltype(&siwdg_zone_clear) zone_clear = find<decltype(&siwdg_zone_clear)>("siwdg_zone_clear");
	const decltype(&siwdg_fold) fold = find<decltype(&siwdg_fold)>("siwdg_fold");
	const decltype(&siwdg_post_write) post_write = find<decltype(&siwdg_post_write)>("siwdg_post_write");

private:
	template <typename T> T find(const char *name)
	{
		T function = reinterpret_cast<T>(dlsym(library_, name));
		if (function == nullptr)
			throw std::runtime_error(dlerror());
		return function;
	}
};

auto deadline(const Options &options)
{
	return std::chrono::steady_clock::now() + std::chrono::seconds(options.timeout);
}

class Qp {
public:
	// With another QP: of its PD and its completion queue
	explicit Qp(const Options &options, const Qp *with = nullptr);
	~Qp();
	Qp(const Qp &) = delete;
	Qp &operator=(const Qp &) = delete;
	void post_receives(uint32_t number);
	void send(const ibv_gid &to, uint32_t qpn, size_t length);
	int post_write(siwdg_write write, size_t length);
	// Send or Write-Record, and its completion; nullptr: no completion in time
	const ibv_wc *complete(std::chrono::steady_clock::time_point until);
	// The next completion in time, or false
	bool next(siwdg_wc &wc, std::chrono::steady_clock::time_point until);
	void modify(ibv_qp_attr attr, int mask) { done(ibv_modify_qp(qp_.get(), &attr, mask), "ibv_modify_qp"); }
	void to_error();
	// From RESET to RTS
	void to_rts();
	// By ERROR and RESET to RTS
	void recover();
	// A message to where a message came from; its completion
	[[nodiscard]] ibv_wc_status answer(ibv_wc &received, const std::string &data);
	[[nodiscard]] std::span<uint8_t> buffer(uint64_t index)
	{
		return {memory_.data() + index % options_.depth * stride_, stride_};
	}
	[[nodiscard]] uint32_t number() const { return qp_->qp_num; }
	[[nodiscard]] ibv_qp *get() const { return qp_.get(); }
	[[nodiscard]] const Provider &provider() const { return *provider_; }
	void make_address(const ibv_gid &to);
	[[nodiscard]] ibv_ah *address() const { return ah_.get(); }
	[[nodiscard]] int drain();

private:
	void open();
	void create_cq();
	void create(ibv_qp_init_attr &init);
	void make_ready();

	const Options &options_;
	size_t stride_;
	std::unique_ptr<Provider> provider_;
	siwdg_wc last_{};
	std::vector<uint8_t> memory_;
	uint64_t posted_ = 0;
	std::shared_ptr<ibv_context> context_;
	std::shared_ptr<ibv_pd> pd_;
	Owned<ibv_mr, ibv_dereg_mr> mr_;
	std::shared_ptr<ibv_comp_channel> channel_;
	std::shared_ptr<ibv_cq> cq_;
	Owned<ibv_qp, ibv_destroy_qp> qp_;
	Owned<ibv_ah, ibv_destroy_ah> ah_;
};

Qp::Qp(const Options &options, const Qp *with)
	: options_(options), stride_((options.split ? options.split : options.size) + grh), memory_(stride_ * options.depth)
{
	if (!options.provider.empty())
		provider_ = std::make_unique<Provider>(options.provider);
	if (with != nullptr) {
		context_ = with->context_;
		pd_ = with->pd_;
		channel_ = with->channel_;
		cq_ = with->cq_;
	} else {
		open();
		create_cq();
	}
	mr_.reset(made(ibv_reg_mr(pd_.get(), memory_.data(), memory_.size(), IBV_ACCESS_LOCAL_WRITE), "ibv_reg_mr"));
	ibv_qp_init_attr init{};
	init.send_cq = init.recv_cq = cq_.get();
	init.cap = {.max_send_wr = options.depth, .max_recv_wr = options.depth, .max_send_sge = 2, .max_recv_sge = 2,
		    .max_inline_data = 64};
	init.qp_type = IBV_QPT_UD;
	create(init);
	make_ready();
}

// A QP in a group cannot be destroyed: its queues stay mapped, and keep the device open. fault lets one call fail
Qp::~Qp()
{
	const ibv_gid group = options_.group.empty() ? ibv_gid{} : parse_gid(options_.group);
	for (int tries = 0; tries < 2 && !options_.group.empty(); tries++)
		if (ibv_detach_mcast(qp_.get(), &group, 0) == 0)
			break;
}

void Qp::open()
{
	int number = 0;
	Owned<ibv_device *, ibv_free_device_list> list(made(ibv_get_device_list(&number), "ibv_get_device_list"));
	for (ibv_device *device : std::span(list.get(), static_cast<size_t>(number)))
		if (options_.device == ibv_get_device_name(device))
			context_ = Owned<ibv_context, ibv_close_device>(made(ibv_open_device(device), "ibv_open_device"));
	if (!context_)
		throw std::runtime_error("no device " + options_.device);
}

void Qp::create_cq()
{
	pd_ = Owned<ibv_pd, ibv_dealloc_pd>(made(ibv_alloc_pd(context_.get()), "ibv_alloc_pd"));
	channel_ = Owned<ibv_comp_channel, ibv_destroy_comp_channel>(
		made(ibv_create_comp_channel(context_.get()), "ibv_create_comp_channel"));
	cq_ = Owned<ibv_cq, ibv_destroy_cq>(made(
		ibv_create_cq(context_.get(), static_cast<int>(2 * options_.depth + options_.records), nullptr, channel_.get(), 0),
		"ibv_create_cq"));
}

// A corked socket, or one with the begin of a datagram
void cork(int fd, const std::string &by)
{
	const int on = 1;
	sockaddr_in6 own{};
	socklen_t length = sizeof(own);
	if (by == "option" && ::setsockopt(fd, SOL_UDP, UDP_CORK, &on, sizeof(on)) != 0)
		fail("UDP_CORK", errno);
	if (by != "data")
		return;
	::getsockname(fd, reinterpret_cast<sockaddr *>(&own), &length);
	own.sin6_addr = in6addr_loopback;
	if (::sendto(fd, &own, 1, MSG_MORE, reinterpret_cast<sockaddr *>(&own), sizeof(own)) != 1)
		fail("MSG_MORE", errno);
}

// Errors of ICMP, for IPv4 and IPv6
void set_recverr(int fd)
{
	const int on = 1;
	if (::setsockopt(fd, SOL_IP, IP_RECVERR, &on, sizeof(on)) != 0 || ::setsockopt(fd, SOL_IPV6, IPV6_RECVERR, &on, sizeof(on)) != 0)
		fail("IP_RECVERR", errno);
}

void expect_no_recverr(int fd)
{
	int value4 = 1, value6 = 1;
	socklen_t length = sizeof(int);
	if (::getsockopt(fd, SOL_IP, IP_RECVERR, &value4, &length) != 0 || ::getsockopt(fd, SOL_IPV6, IPV6_RECVERR, &value6, &length) != 0)
		fail("IP_RECVERR", errno);
	if (value4 != 0 || value6 != 0)
		throw std::runtime_error("the QP's socket has IP_RECVERR");
}

// A socket with this port, for siwdg_create_qp() of the provider
Descriptor bound_socket(const Options &options)
{
	Descriptor socket(::socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
	const int fd = socket.get(), on = 1;
	sockaddr_in6 any{};
	any.sin6_family = AF_INET6;
	any.sin6_port = htons(options.port);
	if (::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0 ||
	    ::bind(fd, reinterpret_cast<sockaddr *>(&any), sizeof(any)) != 0)
		fail("socket", errno);
	if (options.socket_segment != 0 &&
	    ::setsockopt(fd, SOL_UDP, UDP_SEGMENT, &options.socket_segment, sizeof(options.socket_segment)) != 0)
		fail("UDP_SEGMENT", errno);
	if (options.socket_tclass != 0 && ::setsockopt(fd, SOL_IPV6, IPV6_TCLASS, &options.socket_tclass, sizeof(int)) != 0)
		fail("IPV6_TCLASS", errno);
	if (options.broadcast && ::setsockopt(fd, SOL_SOCKET, SO_BROADCAST, &on, sizeof(on)) != 0)
		fail("SO_BROADCAST", errno);
	if (options.recverr == "before")
		set_recverr(fd);
	cork(fd, options.cork);
	return socket;
}

// Without a socket
siwdg_qp_attr qp_attr_of(const Options &options)
{
	siwdg_qp_attr attr{};
	const auto set = [&](uint32_t bit, uint32_t siwdg_qp_attr::*member, std::optional<uint32_t> value) {
		if (!value)
			return;
		attr.comp_mask |= bit;
		attr.*member = *value;
	};
	set(SIWDG_QP_SLOTS, &siwdg_qp_attr::slots, options.slots);
	set(SIWDG_QP_DEADLINE, &siwdg_qp_attr::deadline_ms, options.deadline);
	set(SIWDG_QP_GAP, &siwdg_qp_attr::gap_ms, options.gap);
	set(SIWDG_QP_SEGMENT, &siwdg_qp_attr::segment, options.segment);
	set(SIWDG_QP_FLAGS, &siwdg_qp_attr::flags, options.flags);
	return attr;
}

void Qp::create(ibv_qp_init_attr &init)
{
	siwdg_qp_attr attr = qp_attr_of(options_);
	std::optional<Descriptor> own;
	if (options_.port != 0) {
		if (options_.socket < 0)
			own.emplace(bound_socket(options_));
		attr.comp_mask |= SIWDG_QP_SOCKET;
		attr.sockfd = own ? own->get() : options_.socket;
	}
	if (attr.comp_mask == 0)
		qp_.reset(made(ibv_create_qp(pd_.get(), &init), "ibv_create_qp"));
	else
		qp_.reset(made(provider_->create_qp(pd_.get(), &init, &attr), "siwdg_create_qp_ex"));
	if (options_.port == 0)
		return;
	expect_no_recverr(attr.sockfd);
	if (options_.recverr == "after")
		set_recverr(attr.sockfd);
}

void Qp::to_rts()
{
	ibv_qp_attr attr{};
	attr.qp_state = IBV_QPS_INIT;
	attr.port_num = 1;
	attr.qkey = options_.qkey;
	modify(attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
	post_receives(options_.depth);
	attr.qp_state = IBV_QPS_RTR;
	modify(attr, IBV_QP_STATE);
	attr.qp_state = IBV_QPS_RTS;
	modify(attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
}

void Qp::make_ready()
{
	to_rts();
	if (!options_.group.empty()) {
		const ibv_gid group = parse_gid(options_.group);
		done(ibv_attach_mcast(qp_.get(), &group, 0), "ibv_attach_mcast");
	}
}

void Qp::to_error()
{
	ibv_qp_attr attr{};
	attr.qp_state = IBV_QPS_ERR;
	modify(attr, IBV_QP_STATE);
}

void Qp::recover()
{
	ibv_qp_attr attr{};
	to_error();
	for (uint32_t flushed = 0; flushed < options_.depth; flushed++) {
		siwdg_wc wc{};
		if (!next(wc, deadline(options_)) || wc.wc.status != IBV_WC_WR_FLUSH_ERR)
			throw std::runtime_error("a receive is not flushed");
	}
	attr.qp_state = IBV_QPS_RESET;
	modify(attr, IBV_QP_STATE);
	to_rts();
}

ibv_wc_status Qp::answer(ibv_wc &received, const std::string &data)
{
	const auto memory = buffer(received.wr_id);
	ah_.reset(made(ibv_create_ah_from_wc(pd_.get(), &received, reinterpret_cast<ibv_grh *>(memory.data()), 1), "ibv_create_ah_from_wc"));
	std::copy(data.begin(), data.end(), memory_.begin());
	send({}, received.src_qp, data.size());
	return made(complete(deadline(options_)), "a completion")->status;
}

void Qp::post_receives(uint32_t number)
{
	for (; number > 0; number--) {
		ibv_sge sge{.addr = reinterpret_cast<uintptr_t>(buffer(posted_).data()),
			    .length = static_cast<uint32_t>(stride_), .lkey = mr_->lkey};
		ibv_recv_wr wr{}, *bad = nullptr;
		wr.wr_id = posted_++;
		wr.sg_list = &sge;
		wr.num_sge = 1;
		done(ibv_post_recv(qp_.get(), &wr, &bad), "ibv_post_recv");
	}
}

void Qp::make_address(const ibv_gid &to)
{
	if (ah_)
		return;
	ibv_ah_attr attr{};
	attr.is_global = 1;
	attr.port_num = 1;
	attr.grh.dgid = to;
	attr.grh.sgid_index = static_cast<uint8_t>(options_.gid);
	attr.grh.hop_limit = 64;
	attr.grh.traffic_class = static_cast<uint8_t>(options_.tclass);
	ah_.reset(made(ibv_create_ah(pd_.get(), &attr), "ibv_create_ah"));
}

int Qp::post_write(siwdg_write write, size_t length)
{
	ibv_sge sge{.addr = reinterpret_cast<uintptr_t>(memory_.data()), .length = static_cast<uint32_t>(length),
		    .lkey = mr_->lkey};
	write.sg_list = &sge;
	write.num_sge = 1;
	write.send_flags |= IBV_SEND_SIGNALED | (options_.use_inline ? unsigned{IBV_SEND_INLINE} : 0U);
	write.ah = ah_.get();
	return provider_->post_write(qp_.get(), &write);
}

void Qp::send(const ibv_gid &to, uint32_t qpn, size_t length)
{
	make_address(to);
	ibv_sge sge{.addr = reinterpret_cast<uintptr_t>(memory_.data()), .length = static_cast<uint32_t>(length),
		    .lkey = mr_->lkey};
	ibv_send_wr wr{}, *bad = nullptr;
	wr.sg_list = &sge;
	wr.num_sge = 1;
	wr.opcode = IBV_WR_SEND;
	wr.send_flags = IBV_SEND_SIGNALED | (options_.use_inline ? unsigned{IBV_SEND_INLINE} : 0U) |
			(options_.solicited ? unsigned{IBV_SEND_SOLICITED} : 0U);
	wr.wr.ud = {.ah = ah_.get(), .remote_qpn = qpn, .remote_qkey = options_.qkey};
	done(ibv_post_send(qp_.get(), &wr, &bad), "ibv_post_send");
}

int Qp::drain()
{
	ibv_wc wc[16];
	return std::max(ibv_poll_cq(cq_.get(), 16, wc), 0);
}

// Prints the refusals that the target has reported
void print_error(const siwdg_wc &wc)
{
	fmt::print("error {:04x} about {} at {} of {:08x} msn {} of {} at {} from {} port {}\n", wc.bytes, wc.wc.byte_len, wc.wc.wr_id,
		   wc.wc.invalidated_rkey, wc.msn, wc.message_length, wc.message, gid_text(&wc.source), wc.wc.src_qp);
	std::fflush(stdout);
}

const ibv_wc *Qp::complete(std::chrono::steady_clock::time_point until)
{
	do {
		if (!next(last_, until))
			return nullptr;
		if (last_.wc.opcode == IBV_WC_DRIVER2)
			print_error(last_);
	} while (last_.wc.opcode != IBV_WC_SEND && last_.wc.opcode != IBV_WC_RDMA_WRITE);
	return &last_.wc;
}

bool Qp::next(siwdg_wc &wc, std::chrono::steady_clock::time_point until)
{
	for (;;) {
		done(ibv_req_notify_cq(cq_.get(), options_.solicited), "ibv_req_notify_cq");
		const int found = provider_ && !options_.plain ? provider_->poll(cq_.get(), 1, &wc, sizeof(wc)) :
								 ibv_poll_cq(cq_.get(), 1, &wc.wc);
		if (found != 0)
			return found > 0;
		const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
		pollfd wait{.fd = channel_->fd, .events = POLLIN, .revents = 0};
		if (left.count() <= 0 || ::poll(&wait, 1, static_cast<int>(left.count())) < 1)
			return false;
		ibv_cq *cq = nullptr;
		void *unused = nullptr;
		done(ibv_get_cq_event(channel_.get(), &cq, &unused), "ibv_get_cq_event");
		ibv_ack_cq_events(cq, 1);
	}
}

void print(const ibv_wc &wc, std::span<const uint8_t> buffer)
{
	if (wc.status != IBV_WC_SUCCESS) {
		fmt::print("status {}\n", ibv_wc_status_str(wc.status));
		return;
	}
	const auto data = buffer.subspan(grh, std::min<size_t>(wc.byte_len - grh, 32));
	fmt::print("received {} from {} port {}: {}\n", wc.byte_len - grh, gid_text(buffer.data() + 8), wc.src_qp,
		   std::string(data.begin(), data.end()));
}

bool is_message(const ibv_wc &wc, std::span<const uint8_t> buffer, const std::string &text)
{
	return wc.status == IBV_WC_SUCCESS && std::ranges::equal(buffer.subspan(grh, wc.byte_len - grh), text);
}

int receive(const Options &options)
{
	Qp qp(options);
	if (options.recover)
		qp.recover();
	fmt::print("ready {}\n", qp.number());
	std::fflush(stdout);
	const auto until = deadline(options);
	for (uint32_t got = 0; got < options.count; got++) {
		siwdg_wc wc{};
		if (!qp.next(wc, until))
			return 1;
		print(wc.wc, qp.buffer(wc.wc.wr_id));
		std::fflush(stdout);
		if (wc.wc.status == IBV_WC_SUCCESS)
			qp.post_receives(1);
	}
	return 0;
}

// Answers one message to its source
int answer(const Options &options)
{
	Qp qp(options);
	siwdg_wc wc{};
	fmt::print("ready {}\n", qp.number());
	std::fflush(stdout);
	if (!qp.next(wc, deadline(options)) || wc.wc.status != IBV_WC_SUCCESS)
		return 1;
	print(wc.wc, qp.buffer(wc.wc.wr_id));
	const ibv_wc_status status = qp.answer(wc.wc, "answer");
	fmt::print("status {}\n", ibv_wc_status_str(status));
	return status == IBV_WC_SUCCESS ? 0 : 2;
}

// Copies --data into the memory, and returns the length of a message
size_t prepare(Qp &qp, const Options &options)
{
	const auto memory = qp.buffer(0);
	std::copy_n(options.data.begin(), std::min(options.data.size(), memory.size()), memory.begin());
	return std::max(options.data.size(), options.size == Options().size ? 0 : options.size);
}

// Posts --count requests, one after the other
int post_all(Qp &qp, const Options &options, const std::function<void(uint32_t)> &post)
{
	const auto until = deadline(options);
	int status = 0;
	for (uint32_t sent = 0; sent < options.count; sent++) {
		post(sent);
		const ibv_wc *const wc = qp.complete(until);
		if (wc == nullptr)
			return 1;
		if (wc->status != IBV_WC_SUCCESS) {
			fmt::print("status {}\n", ibv_wc_status_str(wc->status));
			status = 2;
		}
	}
	return status;
}

// Sends one message, and prints the answer; both have a completion, in any order
int ask(const Options &options)
{
	Qp qp(options);
	const auto until = deadline(options);
	bool sent = false, received = false;
	qp.send(parse_gid(options.target), options.qpn, prepare(qp, options));
	while (!sent || !received) {
		siwdg_wc wc{};
		if (!qp.next(wc, until) || wc.wc.status != IBV_WC_SUCCESS)
			return 1;
		(wc.wc.opcode == IBV_WC_SEND ? sent : received) = true;
		if (wc.wc.opcode == IBV_WC_RECV)
			print(wc.wc, qp.buffer(wc.wc.wr_id));
	}
	return 0;
}

int send(const Options &options)
{
	Qp qp(options);
	if (options.recover)
		qp.recover();
	const size_t length = prepare(qp, options);
	const ibv_gid to = parse_gid(options.target);
	return post_all(qp, options, [&](uint32_t) { qp.send(to, options.qpn, length); });
}

siwdg_write to_zone(const Options &options)
{
	siwdg_write write{};
	write.remote_qpn = options.qpn;
	write.remote_zone = options.zone;
	write.remote_qkey = options.key;
	write.remote_offset = options.offset;
	return write;
}

// Octet i of message n behind --data: (7 i + 1 + n) mod 251, which differs in each page, and from the message before
void fill_message(std::span<uint8_t> memory, const Options &options, uint32_t number)
{
	for (size_t i = options.data.size(); i < memory.size(); i++)
		memory[i] = static_cast<uint8_t>((7 * i + 1 + number) % 251);
}

// Error messages that come until some milliseconds have passed without any
void print_errors(Qp &qp, const Options &options)
{
	siwdg_wc wc{};
	while (qp.next(wc, std::chrono::steady_clock::now() + std::chrono::milliseconds(options.linger)))
		if (wc.wc.opcode == IBV_WC_DRIVER2)
			print_error(wc);
}

// The QP leaves RTS while a message waits for the socket; --linger later it is there again, or has ended
int interrupt(Qp &qp, const Options &options, const siwdg_write &request, size_t length)
{
	const auto pause = std::chrono::milliseconds(options.linger);
	ibv_qp_attr attr{};
	attr.qp_state = options.interrupt == "sqd" ? IBV_QPS_SQD : options.interrupt == "reset" ? IBV_QPS_RESET : IBV_QPS_ERR;
	fill_message(qp.buffer(0), options, 0);
	done(qp.post_write(request, length), "siwdg_post_write");
	std::this_thread::sleep_for(pause);
	qp.modify(attr, IBV_QP_STATE);
	fmt::print("interrupted\n");
	std::fflush(stdout);
	std::this_thread::sleep_for(pause);
	attr.qp_state = IBV_QPS_RTS;
	if (options.interrupt == "sqd")
		qp.modify(attr, IBV_QP_STATE);
	if (options.interrupt == "reset") {
		qp.to_rts();
		done(qp.post_write(request, length), "siwdg_post_write");
	}
	const ibv_wc *const wc = qp.complete(deadline(options));
	if (wc == nullptr)
		return 1;
	fmt::print("status {}\n", ibv_wc_status_str(wc->status));
	return 0;
}

int write(const Options &options)
{
	Qp qp(options);
	if (options.recover)
		qp.recover();
	const size_t length = prepare(qp, options);
	std::mt19937 random(1);
	siwdg_write request = to_zone(options);
	qp.make_address(parse_gid(options.target));
	if (!options.interrupt.empty())
		return interrupt(qp, options, request, length);
	const int status = post_all(qp, options, [&](uint32_t number) {
		fill_message(qp.buffer(0), options, number);
		if (options.guess) {
			request.remote_qkey = static_cast<uint32_t>(random());
			// half of them guess the zone as well
			request.remote_zone = random() % 2 ? options.zone : static_cast<uint32_t>(random());
		}
		done(qp.post_write(request, length), "siwdg_post_write");
	});
	if (options.linger != 0)
		print_errors(qp, options);
	return status;
}

// ---- zones

// Memory with a zone in its middle
class Region {
public:
	Region(const Qp &qp, size_t size, int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)
		: memory(2 * margin + size), mr_(made(ibv_reg_mr(qp.get()->pd, memory.data(), memory.size(), access), "ibv_reg_mr"))
	{
	}
	[[nodiscard]] ibv_mr *get() const { return mr_.get(); }
	int deregister() { return ibv_dereg_mr(mr_.release()); }
	std::vector<uint8_t> memory;

private:
	Owned<ibv_mr, ibv_dereg_mr> mr_;
};

class Zone {
public:
	Zone(const Qp &qp, const Region &region, const siwdg_zone_attr &wanted)
		: attr(wanted), provider_(qp.provider()), zone_(made(provider_.open_zone(qp.get(), region.get(), &attr), "siwdg_open_zone"))
	{
	}
	~Zone() { provider_.close_zone(zone_); }
	Zone(const Zone &) = delete;
	Zone &operator=(const Zone &) = delete;
	void allow(const std::string &text)
	{
		const size_t comma = text.find(','), slash = text.find('/');
		const std::string host = text.substr(0, std::min(slash, comma));
		const unsigned prefix = slash == std::string::npos ? 0 : static_cast<unsigned>(std::stoul(text.substr(slash + 1)));
		const auto port = static_cast<uint16_t>(comma == std::string::npos ? 0 : std::stoul(text.substr(comma + 1)));
		sockaddr_in v4{};
		sockaddr_in6 v6{};
		v4.sin_family = AF_INET, v6.sin6_family = AF_INET6;
		v4.sin_port = v6.sin6_port = htons(port);
		if (inet_pton(AF_INET, host.c_str(), &v4.sin_addr) == 1)
			done(provider_.allow(zone_, reinterpret_cast<sockaddr *>(&v4), sizeof(v4), prefix ? prefix : 32), "siwdg_allow");
		else if (inet_pton(AF_INET6, host.c_str(), &v6.sin6_addr) == 1)
			done(provider_.allow(zone_, reinterpret_cast<sockaddr *>(&v6), sizeof(v6), prefix ? prefix : 128), "siwdg_allow");
		else
			throw std::runtime_error("not an address: " + text);
	}
	template <typename T> int allow(const T &source, unsigned prefix)
	{
		return provider_.allow(zone_, reinterpret_cast<const sockaddr *>(&source), sizeof(source), prefix);
	}
	int allow_any() { return provider_.allow_any(zone_); }
	using Parts = std::vector<std::pair<uint64_t, uint64_t>>;
	// Up to `most` parts, of offset and length
	int fold(Parts &parts, size_t most)
	{
		const auto add = [](void *map, uint64_t offset, uint64_t length) {
			const auto &[to, limit] = *static_cast<std::pair<Parts *, size_t> *>(map);
			if (to->size() >= limit)
				return 1;
			to->emplace_back(offset, length);
			return 0;
		};
		std::pair map{&parts, most};
		return provider_.fold(zone_, add, &map);
	}
	[[nodiscard]] bool valid(uint64_t block) const { return provider_.zone_valid(zone_, block) != 0; }
	void clear(uint64_t first, uint64_t count) { provider_.zone_clear(zone_, first, count); }
	siwdg_zone_attr attr;

private:
	const Provider &provider_;
	siwdg_zone *zone_;
};

siwdg_zone_attr attr_of(const Options &options)
{
	return {.offset = margin, .length = options.zone_size, .number = options.zone, .qkey = options.key,
		.flags = (options.no_record ? unsigned{SIWDG_ZONE_NO_RECORD} : 0U) |
			 (options.partial ? unsigned{SIWDG_ZONE_PARTIAL} : 0U) |
			 (options.block != 0 ? unsigned{SIWDG_ZONE_MAP} : 0U),
		.block = options.block};
}

void print_record(const siwdg_wc &wc, bool plain)
{
	fmt::print("record {} at {} of {:08x}", wc.wc.byte_len, wc.wc.wr_id, wc.wc.invalidated_rkey);
	if (plain) {
		fmt::print(" from port {}\n", wc.wc.src_qp);
		return;
	}
	fmt::print(" msn {} from {} port {}", wc.msn, gid_text(&wc.source), wc.wc.src_qp);
	// A part of a message; the last one shows how much of it came
	if (wc.wc.byte_len != wc.message_length || wc.message != wc.wc.wr_id)
		fmt::print(" of {} at {}", wc.message_length, wc.message);
	if ((wc.flags & SIWDG_END) == 0)
		fmt::print(" more");
	else if (wc.bytes != wc.wc.byte_len || wc.bytes != wc.message_length)
		fmt::print(" came {}", wc.bytes);
	fmt::print("\n");
}

void print_map(const Zone &zone, const Options &options)
{
	fmt::print("blocks");
	for (uint64_t block = 0; block * options.block < options.zone_size; block++)
		if (zone.valid(block))
			fmt::print(" {}", block);
	fmt::print("\n");
}

// Takes --count records out of the queue, reports them, and then the other completions
int fold(Qp &qp, Zone &zone, const Options &options)
{
	const auto until = deadline(options);
	Zone::Parts parts;
	while (parts.size() < options.count && std::chrono::steady_clock::now() < until) {
		std::this_thread::sleep_for(std::chrono::milliseconds(10));
		// One call takes what another has left
		const size_t before = parts.size();
		const int taken = zone.fold(parts, before + 1);
		if (static_cast<size_t>(taken) != parts.size() - before)
			throw std::runtime_error(fmt::format("{} records were taken, {} reported", parts.size() - before, taken));
	}
	for (const auto &[offset, length] : parts)
		fmt::print("folded {} at {}\n", length, offset);
	siwdg_wc wc{};
	while (qp.next(wc, std::chrono::steady_clock::now() + std::chrono::milliseconds(500))) {
		if (wc.wc.opcode == IBV_WC_DRIVER1)
			print_record(wc, false);
		else
			print(wc.wc, qp.buffer(wc.wc.wr_id));
	}
	return parts.size() == options.count ? 0 : 1;
}

// Opens a zone and reports what comes; then its region is written to --output
int zone(const Options &options)
{
	Qp qp(options);
	Region region(qp, options.zone_size);
	auto zone = std::make_unique<Zone>(qp, region, attr_of(options));
	for (const std::string &source : options.from)
		zone->allow(source);
	if (options.any)
		done(zone->allow_any(), "siwdg_allow_any");
	if (options.recover)
		qp.recover();
	fmt::print("ready {} {:08x} {:08x}\n", qp.number(), zone->attr.number, zone->attr.qkey);
	std::fflush(stdout);
	if (options.fold)
		return fold(qp, *zone, options);
	auto until = deadline(options);
	bool ends = false;
	for (uint32_t got = 0; got < options.count; got++) {
		siwdg_wc wc{};
		if (!qp.next(wc, until)) {
			if (!ends)
				return 1;
			break;
		}
		if (wc.wc.opcode == IBV_WC_DRIVER1 && wc.wc.status == IBV_WC_SUCCESS) {
			print_record(wc, options.plain);
		} else if (wc.wc.status == IBV_WC_WR_FLUSH_ERR) {
			fmt::print("flushed\n");
		} else {
			print(wc.wc, qp.buffer(wc.wc.wr_id));
			if (!options.end.empty() && is_message(wc.wc, qp.buffer(wc.wc.wr_id), options.end))
				break;
			// The deadlines of messages that have begun pass in this time
			if ((options.until_send || options.to_error || options.reopen) && !std::exchange(ends, true))
				until = std::chrono::steady_clock::now() + std::chrono::milliseconds(1000 + options.deadline.value_or(2000));
			if (options.reopen) {
				siwdg_zone_attr attr = zone->attr;
				attr.length /= 2;
				zone.reset();
				zone = std::make_unique<Zone>(qp, region, attr);
				done(zone->allow_any(), "siwdg_allow_any");
				fmt::print("reopened\n");
			}
			if (options.to_error)
				qp.to_error();
			else
				qp.post_receives(1);
		}
		std::fflush(stdout);
	}
	if (options.block != 0) {
		print_map(*zone, options);
		zone->clear(1, ~uint64_t{0});
		print_map(*zone, options);
	}
	if (!options.output.empty())
		std::ofstream(options.output).write(reinterpret_cast<const char *>(region.memory.data()),
						    static_cast<std::streamsize>(region.memory.size()));
	return 0;
}

// Two QPs with one completion queue, and a zone of each, until the message --end comes
int share(const Options &options)
{
	Options of_both = options;
	of_both.records += 2 * options.depth;
	Qp first(of_both), second(options, &first);
	const Region one(first, options.zone_size), two(second, options.zone_size);
	Zone a(first, one, attr_of(options)), b(second, two, attr_of(options));
	done(a.allow_any(), "siwdg_allow_any");
	done(b.allow_any(), "siwdg_allow_any");
	fmt::print("ready {} {}\n", first.number(), second.number());
	std::fflush(stdout);
	const auto until = deadline(options);
	uint64_t records = 0;
	for (bool ends = false; !ends;) {
		siwdg_wc wc{};
		if (!first.next(wc, until))
			return 1;
		if (wc.wc.opcode == IBV_WC_DRIVER1) {
			records++;
			std::this_thread::sleep_for(std::chrono::milliseconds(options.pace));
			continue;
		}
		Qp &of = wc.wc.qp_num == first.number() ? first : second;
		print(wc.wc, of.buffer(wc.wc.wr_id));
		ends = is_message(wc.wc, of.buffer(wc.wc.wr_id), options.end);
		of.post_receives(1);
		std::fflush(stdout);
	}
	fmt::print("{} records\n", records);
	return 0;
}

// KiB of memory of this process and of the kernel's small objects
uint64_t used_memory()
{
	uint64_t kib = 0, value = 0;
	for (const auto &[file, name] : {std::pair{"/proc/self/status", "VmRSS:"}, {"/proc/meminfo", "Slab:"}}) {
		std::ifstream in(file);
		for (std::string word; in >> word;)
			if (word == name && in >> value)
				kib += value;
	}
	return kib;
}

// Prints the memory that --count address handles of a QP take
int handles(const Options &options)
{
	const Qp qp(options);
	std::vector<Owned<ibv_ah, ibv_destroy_ah>> all;
	all.reserve(options.count);
	const uint64_t before = used_memory();
	for (uint32_t i = 0; i < options.count; i++) {
		ibv_ah_attr attr{};
		attr.is_global = 1;
		attr.port_num = 1;
		attr.grh.dgid = parse_gid(fmt::format("10.{}.{}.{}", 100 + (i >> 16), i >> 8 & 255, i & 255));
		all.emplace_back(made(ibv_create_ah(qp.get()->pd, &attr), "ibv_create_ah"));
	}
	fmt::print("{{\"handles\": {}, \"kib\": {}}}\n", options.count, used_memory() - before);
	return 0;
}

// Opens and closes a zone that peers keep writing to: a closed zone does not change. They change each octet each time.
int churn(const Options &options)
{
	Qp qp(options);
	Region region(qp, options.zone_size);
	const auto until = deadline(options);
	uint64_t rounds = 0, records = 0;
	fmt::print("ready {}\n", qp.number());
	std::fflush(stdout);
	for (; std::chrono::steady_clock::now() < until; rounds++) {
		siwdg_zone_attr attr = attr_of(options);
		if (rounds % 2 != 0)
			attr.length /= 2;
		{
			Zone zone(qp, region, attr);
			done(zone.allow_any(), "siwdg_allow_any");
			std::this_thread::sleep_for(std::chrono::milliseconds(rounds % 4));
		}
		const std::vector<uint8_t> closed = region.memory;
		siwdg_wc wc{};
		for (; qp.provider().poll(qp.get()->recv_cq, 1, &wc, sizeof(wc)) == 1; records++)
			if (wc.wc.wr_id + wc.wc.byte_len > attr.length)
				throw std::runtime_error("a record of the zone before");
		std::this_thread::sleep_for(std::chrono::milliseconds(2));
		if (region.memory != closed)
			throw std::runtime_error("a closed zone was written");
	}
	fmt::print("{} rounds, {} records\n", rounds, records);
	return rounds > 0 && records > 0 ? 0 : 1;
}

// Destroys a queue pair with a zone when a record has come, and creates it again on its port: --count times
int renew(const Options &options)
{
	const auto until = deadline(options);
	for (uint32_t rounds = 0; rounds < options.count; rounds++) {
		Qp qp(options);
		const Region region(qp, options.zone_size);
		Zone zone(qp, region, attr_of(options));
		done(zone.allow_any(), "siwdg_allow_any");
		if (rounds == 0) {
			fmt::print("ready {}\n", qp.number());
			std::fflush(stdout);
		}
		siwdg_wc wc{};
		if (!qp.next(wc, until))
			throw std::runtime_error(fmt::format("no record in round {}", rounds));
	}
	return 0;
}

void expect(const std::string &what, int found, int wanted)
{
	if (found != wanted)
		throw std::runtime_error(fmt::format("{}: {}, expected {}", what, std::strerror(found), std::strerror(wanted)));
}

// The error of opening a zone
int opening(const Qp &qp, const Region &region, siwdg_zone_attr attr)
{
	siwdg_zone *const zone = qp.provider().open_zone(qp.get(), region.get(), &attr);
	if (zone == nullptr)
		return errno;
	qp.provider().close_zone(zone);
	return 0;
}

void check_zones(const Qp &qp, const Region &region, siwdg_zone_attr good)
{
	const auto changed = [&](auto siwdg_zone_attr::*member, auto value) {
		siwdg_zone_attr attr = good;
		attr.*member = value;
		return opening(qp, region, attr);
	};
	const size_t size = region.memory.size();
	expect("a good zone", opening(qp, region, good), 0);
	expect("length 0", changed(&siwdg_zone_attr::length, 0U), EINVAL);
	expect("a zone of the whole region less its margin", changed(&siwdg_zone_attr::length, size - margin), 0);
	expect("a zone beyond its region", changed(&siwdg_zone_attr::length, size - margin + 1), EINVAL);
	expect("a zone behind its region", changed(&siwdg_zone_attr::offset, size + 1), EINVAL);
	expect("an offset that wraps around", changed(&siwdg_zone_attr::offset, ~uint64_t{0}), EINVAL);
	expect("a length that wraps around", changed(&siwdg_zone_attr::length, ~uint64_t{0}), EINVAL);
	expect("an unknown flag", changed(&siwdg_zone_attr::flags, 8U), EINVAL);
	const Region readable(qp, good.length, 0), local(qp, good.length, IBV_ACCESS_LOCAL_WRITE);
	expect("a region without write access", opening(qp, readable, good), EACCES);
	expect("a region without remote write access", opening(qp, local, good), EACCES);
}

void check_sources(const Qp &qp, const Region &region, siwdg_zone_attr attr)
{
	Zone zone(qp, region, attr);
	sockaddr_in source{};
	source.sin_family = AF_INET;
	for (const unsigned prefix : {0U, 33U, 0xffffffffU})
		expect(fmt::format("IPv4 prefix {}", prefix), zone.allow(source, prefix), EINVAL);
	for (int number = 0; number < 256; number++)
		expect("a source", zone.allow(source, 32), 0);
	expect("source number 257", zone.allow(source, 32), ENOSPC);
	sockaddr_in6 mapped{};
	mapped.sin6_family = AF_INET6;
	mapped.sin6_addr.s6_addr[10] = mapped.sin6_addr.s6_addr[11] = 0xff;
	for (const unsigned prefix : {1U, 96U})
		expect(fmt::format("prefix {} of a mapped address", prefix), zone.allow(mapped, prefix), EINVAL);
	expect("prefix 97 of a mapped address, with all sources named", zone.allow(mapped, 97), ENOSPC);
	source.sin_family = AF_UNIX;
	expect("a source without an IP address", zone.allow(source, 32), EINVAL);
}

ib_uverbs_attr attr_with(uint16_t id, uint64_t data, size_t length = 0)
{
	ib_uverbs_attr attr{};
	attr.attr_id = id;
	attr.len = static_cast<uint16_t>(length);
	attr.flags = UVERBS_ATTR_F_MANDATORY;
	attr.data = data;
	return attr;
}

template <typename T> ib_uverbs_attr attr_of_memory(uint16_t id, T &memory)
{
	return attr_with(id, reinterpret_cast<uintptr_t>(&memory), sizeof(memory));
}

// A call of the module without the provider; returns an error number, and attributes that the kernel has filled
int call_module(const Qp &qp, uint16_t method, std::span<ib_uverbs_attr> attrs, uint16_t object = SIW_DG_OBJECT_ZONE)
{
	std::vector<uint8_t> command(sizeof(ib_uverbs_ioctl_hdr) + attrs.size_bytes());
	ib_uverbs_ioctl_hdr header{};
	header.length = static_cast<uint16_t>(command.size());
	header.object_id = object;
	header.method_id = method;
	header.num_attrs = static_cast<uint16_t>(attrs.size());
	std::memcpy(command.data(), &header, sizeof(header));
	std::memcpy(command.data() + sizeof(header), attrs.data(), attrs.size_bytes());
	const int error = ::ioctl(qp.get()->context->cmd_fd, RDMA_VERBS_IOCTL, command.data()) == 0 ? 0 : errno;
	std::memcpy(attrs.data(), command.data() + sizeof(header), attrs.size_bytes());
	return error;
}

struct OpenCall {
	uint32_t qp, mr;
	siw_dg_zone_open_req request;
	uint32_t zone = 0;
	uint64_t more = 0; // of a longer request
	int made(const Qp &by)
	{
		struct {
			siw_dg_zone_open_req request;
			uint64_t more;
		} longer{request, more};
		struct {
			siw_dg_zone_open_resp response;
			uint32_t more = 1;
		} response{};
		ib_uverbs_attr attrs[] = {
			attr_with(SIW_DG_ATTR_ZONE_OPEN_HANDLE, 0), attr_with(SIW_DG_ATTR_ZONE_OPEN_QP, qp),
			attr_with(SIW_DG_ATTR_ZONE_OPEN_MR, mr), attr_of_memory(SIW_DG_ATTR_ZONE_OPEN_REQ, longer),
			attr_of_memory(SIW_DG_ATTR_ZONE_OPEN_RESP, response),
		};
		const int error = call_module(by, SIW_DG_METHOD_ZONE_OPEN, attrs);
		zone = static_cast<uint32_t>(attrs[0].data);
		if (error == 0)
			expect("a member of a response that the module lacks", static_cast<int>(response.more), 0);
		return error;
	}
};

int allow_source(const Qp &qp, uint32_t zone, siw_dg_zone_source source)
{
	ib_uverbs_attr attrs[] = {attr_with(SIW_DG_ATTR_ZONE_ALLOW_HANDLE, zone),
				  attr_of_memory(SIW_DG_ATTR_ZONE_ALLOW_SOURCE, source)};
	return call_module(qp, SIW_DG_METHOD_ZONE_ALLOW, attrs);
}

// The module checks the arguments of the calls itself: no provider stands between
void check_module(const Qp &qp, const Region &region, const siwdg_zone_attr &attr)
{
	OpenCall call{.qp = qp.get()->handle, .mr = region.get()->handle, .request = {}};
	call.request.offset = attr.offset;
	call.request.length = attr.length;
	call.qp = 0x7fffffff;
	expect("an unknown queue pair", call.made(qp), ENOENT);
	call.qp = qp.get()->handle;
	call.mr = 0x7fffffff;
	expect("an unknown region", call.made(qp), ENOENT);
	call.mr = region.get()->handle;
	call.request.flags = 4;
	expect("an unknown flag of a zone", call.made(qp), EINVAL);
	call.request.flags = 0;
	call.more = 1;
	expect("a member of a zone that the module lacks", call.made(qp), EOPNOTSUPP);
	call.more = 0;
	expect("a good zone without the provider", call.made(qp), 0);
	siw_dg_zone_source source{};
	source.prefix = 129;
	expect("prefix 129", allow_source(qp, call.zone, source), EINVAL);
	source.prefix = 128;
	source.reserved = 1;
	expect("a reserved member of a source", allow_source(qp, call.zone, source), EINVAL);
	source.reserved = 0;
	expect("a good source", allow_source(qp, call.zone, source), 0);
	expect("a source of an unknown zone", allow_source(qp, 0x7fffffff, source), ENOENT);
	ib_uverbs_attr close[] = {attr_with(SIW_DG_ATTR_ZONE_CLOSE_HANDLE, call.zone)};
	expect("the end of a zone", call_module(qp, SIW_DG_METHOD_ZONE_CLOSE, close), 0);
	expect("the end of no zone", call_module(qp, SIW_DG_METHOD_ZONE_CLOSE, close), ENOENT);
}

using OwnedQp = Owned<ibv_qp, ibv_destroy_qp>;

// A QP with these attributes, or nullptr and errno
OwnedQp create(const Qp &qp, siwdg_qp_attr attr, ibv_qp_type type = IBV_QPT_UD)
{
	ibv_qp_init_attr init{};
	init.send_cq = qp.get()->send_cq;
	init.recv_cq = qp.get()->recv_cq;
	init.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 0};
	init.qp_type = type;
	return OwnedQp(qp.provider().create_qp(qp.get()->pd, &init, &attr));
}

int creating(const Qp &qp, siwdg_qp_attr attr, ibv_qp_type type = IBV_QPT_UD)
{
	return create(qp, attr, type) ? 0 : errno;
}

void check_attributes(const Qp &qp)
{
	const std::tuple<const char *, uint32_t, uint32_t siwdg_qp_attr::*, uint32_t, uint32_t> members[] = {
		{"slots", SIWDG_QP_SLOTS, &siwdg_qp_attr::slots, 1, 4096},
		{"deadline_ms", SIWDG_QP_DEADLINE, &siwdg_qp_attr::deadline_ms, 1, 3600000},
		{"gap_ms", SIWDG_QP_GAP, &siwdg_qp_attr::gap_ms, 0, 3600000},
		{"segment", SIWDG_QP_SEGMENT, &siwdg_qp_attr::segment, 1, 65473},
		{"flags", SIWDG_QP_FLAGS, &siwdg_qp_attr::flags, 0, 7},
	};
	for (const auto &[name, bit, member, least, most] : members) {
		siwdg_qp_attr attr{};
		for (const auto &[value, error] : {std::pair{least, 0}, {most, 0}, {most + 1, EINVAL}, {least - 1, EINVAL}}) {
			attr.comp_mask = bit;
			attr.*member = value;
			expect(fmt::format("{} {}", name, value), creating(qp, attr), error);
		}
		attr.comp_mask = 0;
		expect(fmt::format("{} without its bit", name), creating(qp, attr), 0);
	}
	siwdg_qp_attr attr{};
	attr.comp_mask = 64;
	expect("an unknown attribute of a QP", creating(qp, attr), EOPNOTSUPP);
}

void check_maps(const Qp &qp, siwdg_zone_attr attr)
{
	attr.flags = SIWDG_ZONE_MAP;
	attr.block = 1;
	attr.length = 1U << 26;
	const Region region(qp, attr.length + 1);
	expect("a map of 2^26 blocks", opening(qp, region, attr), 0);
	attr.length++;
	expect("a map of 2^26 + 1 blocks", opening(qp, region, attr), E2BIG);
	attr.block = 0;
	expect("a map of blocks without octets", opening(qp, region, attr), EINVAL);
}

void check_room(Options options, siwdg_zone_attr attr)
{
	options.records = 0;
	const Qp qp(options);
	const Region region(qp, attr.length);
	expect("a completion queue without entries for records", opening(qp, region, attr), ENOBUFS);
	attr.flags = SIWDG_ZONE_NO_RECORD;
	expect("a zone without records", opening(qp, region, attr), 0);
}

// All zones of the device at a time; a limit of its own keeps a program from taking more memory
void check_number(const Options &options, siwdg_zone_attr attr)
{
	const Qp first(options);
	const Region region(first, attr.length);
	std::vector<std::unique_ptr<Qp>> qps;
	std::vector<std::unique_ptr<Region>> regions;
	std::vector<std::unique_ptr<Zone>> zones;
	for (int number = 0; number < 64; number++) {
		qps.push_back(std::make_unique<Qp>(options));
		regions.push_back(std::make_unique<Region>(*qps.back(), attr.length));
		for (attr.number = 1; attr.number <= 1024; attr.number++)
			zones.push_back(std::make_unique<Zone>(*qps.back(), *regions.back(), attr));
	}
	expect("zone number 65,537 of a device", opening(first, region, attr), ENOSPC);
	zones.pop_back();
	expect("zone number 65,536 of a device", opening(first, region, attr), 0);
	zones.clear();
}

// A QP has 1,024 zones, also if it joins a group before and when it has them
int zone_limit(const Options &options)
{
	const Qp qp(options);
	const Region region(qp, options.zone_size);
	const siwdg_zone_attr attr = attr_of(options);
	const ibv_gid first = parse_gid("239.7.7.8"), second = parse_gid("239.7.7.9");
	done(ibv_attach_mcast(qp.get(), &first, 0), "ibv_attach_mcast");
	std::vector<std::unique_ptr<Zone>> zones;
	for (int number = 0; number < 1024; number++)
		zones.push_back(std::make_unique<Zone>(qp, region, attr));
	expect("zone number 1025", opening(qp, region, attr), ENOSPC);
	done(ibv_attach_mcast(qp.get(), &second, 0), "ibv_attach_mcast");
	expect("zone number 1025 behind a group", opening(qp, region, attr), ENOSPC);
	zones.clear();
	done(ibv_detach_mcast(qp.get(), &first, 0), "ibv_detach_mcast");
	done(ibv_detach_mcast(qp.get(), &second, 0), "ibv_detach_mcast");
	return 0;
}

// The errors of the calls for zones
int zone_errors(const Options &options)
{
	Qp qp(options);
	const Qp other(options);
	const siwdg_zone_attr good = attr_of(options);
	Region region(qp, options.zone_size);
	const Region foreign(other, options.zone_size);
	check_zones(qp, region, good);
	check_sources(qp, region, good);
	check_module(qp, region, good);
	check_attributes(qp);
	check_maps(qp, good);
	check_room(options, good);
	check_number(options, good);
	expect("a region of another context", opening(qp, foreign, good), EINVAL);
	ibv_srq_init_attr shared{.srq_context = nullptr, .attr = {.max_wr = 1, .max_sge = 1, .srq_limit = 0}};
	expect("a shared receive queue", ibv_create_srq(qp.get()->pd, &shared) != nullptr ? 0 : errno, EOPNOTSUPP);
	Owned<ibv_pd, ibv_dealloc_pd> pd(made(ibv_alloc_pd(qp.get()->context), "ibv_alloc_pd"));
	Owned<ibv_mr, ibv_dereg_mr> mr(made(ibv_reg_mr(pd.get(), region.memory.data(), region.memory.size(),
						       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE), "ibv_reg_mr"));
	siwdg_zone_attr attr = good;
	expect("a region of another PD", qp.provider().open_zone(qp.get(), mr.get(), &attr) ? 0 : errno, EINVAL);
	std::vector<std::unique_ptr<Zone>> zones;
	for (int number = 0; number < 1024; number++)
		zones.push_back(std::make_unique<Zone>(qp, region, good));
	expect("zone number 1025", opening(qp, region, good), ENOSPC);
	zones.resize(1);
	attr = zones[0]->attr;
	expect("a number in use", opening(qp, region, attr), EEXIST);
	expect("a region with a zone", ibv_dereg_mr(region.get()), EBUSY);
	expect("a queue pair with a zone", ibv_destroy_qp(qp.get()), EBUSY);
	zones.clear();
	expect("a number that is free again", opening(qp, region, attr), 0);
	siwdg_write request = to_zone(options);
	request.send_flags = IBV_SEND_SOLICITED;
	qp.make_address(parse_gid(options.target));
	expect("a Write-Record with a solicited event", qp.post_write(request, 1), EINVAL);
	expect("a region without a zone", region.deregister(), 0);
	return 0;
}

// The queues of this process that it shares with the module
std::vector<std::span<uint32_t>> find_queues()
{
	std::vector<std::span<uint32_t>> queues;
	std::ifstream maps("/proc/self/maps");
	for (std::string line; std::getline(maps, line);) {
		uintptr_t begin = 0, end = 0;
		if (line.find("/dev/infiniband/uverbs") == std::string::npos ||
		    std::sscanf(line.c_str(), "%lx-%lx", &begin, &end) != 2)
			continue;
		queues.emplace_back(reinterpret_cast<uint32_t *>(begin), (end - begin) / sizeof(uint32_t));
	}
	return queues;
}

// ---- the errors of queue pairs, regions and requests

// Of IPv4
class Socket : public Descriptor {
public:
	explicit Socket(int type = SOCK_DGRAM) : Descriptor(::socket(AF_INET, type | SOCK_CLOEXEC, 0)) {}
	// Port 0: any
	Socket &bind(uint32_t address = INADDR_ANY, uint16_t port = 0)
	{
		const sockaddr_in own = make(address, port);
		option(SOL_SOCKET, SO_REUSEPORT, 1);
		if (::bind(get(), reinterpret_cast<const sockaddr *>(&own), sizeof(own)) != 0)
			fail("bind", errno);
		return *this;
	}
	Socket &connect(uint16_t port)
	{
		const sockaddr_in peer = make(INADDR_LOOPBACK, port);
		if (::connect(get(), reinterpret_cast<const sockaddr *>(&peer), sizeof(peer)) != 0)
			fail("connect", errno);
		return *this;
	}
	Socket &option(int level, int name, int value)
	{
		if (::setsockopt(get(), level, name, &value, sizeof(value)) != 0)
			fail("setsockopt", errno);
		return *this;
	}
	[[nodiscard]] uint16_t port() const
	{
		sockaddr_in own{};
		socklen_t length = sizeof(own);
		::getsockname(get(), reinterpret_cast<sockaddr *>(&own), &length);
		return ntohs(own.sin_port);
	}

private:
	static sockaddr_in make(uint32_t address, uint16_t port)
	{
		sockaddr_in made{};
		made.sin_family = AF_INET;
		made.sin_addr.s_addr = htonl(address);
		made.sin_port = htons(port);
		return made;
	}
};

siwdg_qp_attr with_socket(int fd)
{
	siwdg_qp_attr attr{};
	attr.comp_mask = SIWDG_QP_SOCKET;
	attr.sockfd = fd;
	return attr;
}

OwnedQp make_on(const Qp &qp, int socket)
{
	return OwnedQp(made(create(qp, with_socket(socket)).release(), "siwdg_create_qp_ex"));
}

// A thread holds a socket's lock until this ends: the kernel waits for a page of its datagram
class Stall {
public:
	static bool is_possible()
	{
		const auto fd = static_cast<int>(::syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK));
		const int error = errno;
		if (fd >= 0)
			::close(fd);
		return fd >= 0 || error != ENOSYS;
	}
	explicit Stall(int socket) : fault_(static_cast<int>(::syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK)))
	{
		page_ = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		uffdio_api api{.api = UFFD_API, .features = 0, .ioctls = 0};
		uffdio_register range{.range = {reinterpret_cast<uintptr_t>(page_), size_}, .mode = UFFDIO_REGISTER_MODE_MISSING, .ioctls = 0};
		if (::ioctl(fault_.get(), UFFDIO_API, &api) != 0 || ::ioctl(fault_.get(), UFFDIO_REGISTER, &range) != 0)
			fail("userfaultfd", errno);
		sender_ = std::thread([socket, page = page_] {
			sockaddr_in to{};
			to.sin_family = AF_INET;
			to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
			to.sin_port = htons(9);
			::sendto(socket, page, 8, MSG_MORE, reinterpret_cast<const sockaddr *>(&to), sizeof(to));
		});
		pollfd waits{.fd = fault_.get(), .events = POLLIN, .revents = 0};
		if (::poll(&waits, 1, 10000) != 1 || waits.revents != POLLIN) {
			end();
			throw std::runtime_error("the datagram does not wait for its page");
		}
	}
	Stall(const Stall &) = delete;
	Stall &operator=(const Stall &) = delete;
	~Stall() { end(); }

private:
	void end()
	{
		uffdio_zeropage zero{.range = {reinterpret_cast<uintptr_t>(page_), size_}, .mode = 0, .zeropage = 0};
		::ioctl(fault_.get(), UFFDIO_ZEROPAGE, &zero);
		sender_.join();
		::munmap(page_, size_);
	}

	const size_t size_ = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
	Descriptor fault_;
	void *page_;
	std::thread sender_;
};

void wait_for_end(const Options &options)
{
	::alarm(static_cast<unsigned>(options.timeout));
	::pause();
}

// Holds the socket until --timeout
int hold(int socket, const Options &options)
{
	const Stall held(socket);
	fmt::print("stalled {}\n", ::getpid());
	std::fflush(stdout);
	wait_for_end(options);
	return 0;
}

// A QP has a socket that a thread holds, or with --elsewhere a process that has nothing else of the QP, and is in --group
int stall(const Options &options)
{
	Socket socket;
	socket.bind();
	int pipe[2];
	if (::pipe(pipe) != 0)
		fail("pipe", errno);
	const Descriptor out(pipe[0]), in(pipe[1]);
	char joined = 0;
	if (options.elsewhere && ::fork() == 0) {
		::close(in.get());
		return ::read(out.get(), &joined, 1) == 1 ? hold(socket.get(), options) : 3;
	}
	const Qp qp(options);
	const OwnedQp owner = make_on(qp, socket.get());
	const ibv_gid group = parse_gid(options.group);
	done(ibv_attach_mcast(owner.get(), &group, 0), "ibv_attach_mcast");
	if (!options.elsewhere)
		return hold(socket.get(), options);
	if (::write(in.get(), &joined, 1) != 1)
		fail("write", errno);
	wait_for_end(options);
	return 0;
}

// Ends with a QP in --group, which its socket has left
int leave(const Options &options)
{
	const Qp qp(options);
	Socket socket;
	const OwnedQp owner = make_on(qp, socket.bind().get());
	const ibv_gid group = parse_gid(options.group);
	ip_mreqn member{};
	std::memcpy(&member.imr_multiaddr, group.raw + 12, sizeof(member.imr_multiaddr));
	for (int i = 0; i < 2; i++) {
		bool left = false;
		done(ibv_attach_mcast(owner.get(), &group, 0), "ibv_attach_mcast");
		// Only one of the interfaces has joined
		for (member.imr_ifindex = 1; member.imr_ifindex < 1000 && !left; member.imr_ifindex++)
			left = ::setsockopt(socket.get(), SOL_IP, IP_DROP_MEMBERSHIP, &member, sizeof(member)) == 0;
		expect("the socket has left the group", left ? 0 : ENOENT, 0);
		if (i == 0)
			expect("leaving a group that the socket has left", ibv_detach_mcast(owner.get(), &group, 0), 0);
	}
	std::_Exit(0);
}

// The errors of siwdg_create_qp() in siwdg.h
void check_sockets(const Qp &qp)
{
	const auto taking = [&qp](int fd) { return creating(qp, with_socket(fd)); };
	const Descriptor file(::open("/dev/null", O_RDWR | O_CLOEXEC)), local(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
	const int closed = ::dup(file.get());
	::close(closed);
	expect("descriptor -1", taking(-1), EBADF);
	expect("a closed descriptor", taking(closed), EBADF);
	expect("a file", taking(file.get()), ENOTSOCK);
	expect("a UNIX datagram socket", taking(local.get()), EPROTOTYPE);
	expect("a TCP socket", taking(Socket(SOCK_STREAM).bind().get()), EPROTOTYPE);
	expect("a socket that is not bound", taking(Socket().get()), EINVAL);
	expect("a connected socket", taking(Socket().bind().connect(9).get()), EINVAL);
	expect("a socket of L2TP", taking(Socket().bind().option(SOL_UDP, UDP_ENCAP, UDP_ENCAP_L2TPINUDP).get()), EBUSY);
	expect("a socket of an address of another interface", taking(Socket().bind(INADDR_LOOPBACK).get()), 0);

	Socket first, second;
	first.bind();
	second.bind(INADDR_ANY, first.port());
	OwnedQp owner = make_on(qp, first.get());
	expect("the socket of another QP", taking(first.get()), EBUSY);
	expect("a socket with the port of another QP", taking(second.get()), EADDRINUSE);
	owner.reset();
	expect("a socket whose QP is gone", taking(first.get()), 0);

	if (!Stall::is_possible()) {
		fmt::print("this kernel has no userfaultfd: no socket is stalled\n");
		return;
	}
	owner = make_on(qp, first.get());
	const Stall stall(first.get()), other(second.get());
	expect("a socket that a thread holds", taking(second.get()), EBUSY);
	// Does not wait
	owner.reset();
}

// Members that a UD QP does not have tell nothing of the kernel's memory
void check_query(Qp &qp)
{
	ibv_qp_attr attr{};
	ibv_qp_init_attr init{};
	done(ibv_query_qp(qp.get(), &attr, IBV_QP_STATE | IBV_QP_RQ_PSN | IBV_QP_SQ_PSN | IBV_QP_AV, &init), "ibv_query_qp");
	const ibv_ah_attr none{};
	expect("the state", static_cast<int>(attr.qp_state), IBV_QPS_RTS);
	expect("the Q_Key", attr.qkey != 0 ? 0 : 1, 0);
	expect("the largest inline data", static_cast<int>(init.cap.max_inline_data), static_cast<int>(attr.cap.max_inline_data));
	expect("members of connected QPs", static_cast<int>(attr.rq_psn | attr.sq_psn | attr.dest_qp_num | attr.qp_access_flags), 0);
	expect("timeouts of connected QPs", attr.timeout | attr.retry_cnt | attr.rnr_retry | attr.min_rnr_timer, 0);
	expect("address vectors", std::memcmp(&attr.ah_attr, &none, sizeof(none)) | std::memcmp(&attr.alt_ah_attr, &none, sizeof(none)), 0);

	ibv_qp_attr sqd{};
	sqd.qp_state = IBV_QPS_SQD;
	sqd.en_sqd_async_notify = 1;
	expect("IBV_EVENT_SQ_DRAINED", ibv_modify_qp(qp.get(), &sqd, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY), EOPNOTSUPP);
}

// A program, and a socket, of a network namespace that is not the device's
void check_namespaces(const Qp &qp)
{
	std::string error;
	std::thread elsewhere([&] {
		try {
			if (::unshare(CLONE_NEWNET) != 0)
				fail("unshare", errno);
			expect("a socket of another namespace", creating(qp, with_socket(Socket().bind().get())), EADDRNOTAVAIL);
			expect("a QP of a program in another namespace", creating(qp, {}), EADDRNOTAVAIL);
		} catch (const std::exception &e) {
			error = e.what();
		}
	});
	elsewhere.join();
	if (!error.empty())
		throw std::runtime_error(error);
}

// By the module alone: the provider refuses the types of QPs by itself
int create_by_module(const Qp &qp, ib_uverbs_qp_type type)
{
	siw_dg_create_qp_req request{};
	siw_dg_create_qp_resp response{};
	ib_uverbs_qp_cap cap{}, granted{};
	uint32_t number = 0, events = 0;
	cap.max_send_wr = cap.max_recv_wr = cap.max_send_sge = cap.max_recv_sge = 1;
	request.sockfd = -1;
	ib_uverbs_attr attrs[] = {
		attr_with(UVERBS_ATTR_CREATE_QP_HANDLE, 0), attr_with(UVERBS_ATTR_CREATE_QP_PD_HANDLE, qp.get()->pd->handle),
		attr_with(UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE, qp.get()->send_cq->handle),
		attr_with(UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE, qp.get()->recv_cq->handle),
		attr_with(UVERBS_ATTR_CREATE_QP_USER_HANDLE, 1, sizeof(uint64_t)), attr_of_memory(UVERBS_ATTR_CREATE_QP_CAP, cap),
		attr_with(UVERBS_ATTR_CREATE_QP_TYPE, type, sizeof(uint64_t)),
		attr_of_memory(UVERBS_ATTR_CREATE_QP_RESP_CAP, granted), attr_of_memory(UVERBS_ATTR_CREATE_QP_RESP_QP_NUM, number),
		attr_of_memory(UVERBS_ATTR_UHW_IN, request), attr_of_memory(UVERBS_ATTR_UHW_OUT, response),
	};
	const int error = call_module(qp, UVERBS_METHOD_QP_CREATE, attrs, UVERBS_OBJECT_QP);
	if (error != 0)
		return error;
	ib_uverbs_attr destroy[] = {attr_with(UVERBS_ATTR_DESTROY_QP_HANDLE, attrs[0].data), attr_of_memory(UVERBS_ATTR_DESTROY_QP_RESP, events)};
	expect("the end of a QP without the provider", call_module(qp, UVERBS_METHOD_QP_DESTROY, destroy, UVERBS_OBJECT_QP), 0);
	return 0;
}

void check_types(const Qp &qp)
{
	expect("an RC QP", creating(qp, {}, IBV_QPT_RC), EOPNOTSUPP);
	expect("a UC QP", creating(qp, {}, IBV_QPT_UC), EOPNOTSUPP);
	expect("an RC QP without the provider", create_by_module(qp, IB_UVERBS_QPT_RC), EOPNOTSUPP);
	expect("a UC QP without the provider", create_by_module(qp, IB_UVERBS_QPT_UC), EOPNOTSUPP);
	expect("a UD QP without the provider", create_by_module(qp, IB_UVERBS_QPT_UD), 0);
}

// ibv_reg_mr(3), and siw_dg.md
void check_regions(const Qp &qp)
{
	std::vector<uint8_t> memory(4096);
	const auto registering = [&](unsigned access, size_t length) {
		const Owned<ibv_mr, ibv_dereg_mr> mr(ibv_reg_mr(qp.get()->pd, memory.data(), length, access));
		return mr ? 0 : errno;
	};
	constexpr unsigned write = IBV_ACCESS_LOCAL_WRITE;
	expect("a region", registering(write, 4096), 0);
	expect("a region that a peer may read", registering(write | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC, 4096), 0);
	expect("a region of length 0", registering(write, 0), EINVAL);
	expect("remote write access without local", registering(IBV_ACCESS_REMOTE_WRITE, 4096), EINVAL);
	expect("a region with addresses from 0", registering(write | IBV_ACCESS_ZERO_BASED, 4096), EOPNOTSUPP);
	expect("a region of huge pages", registering(write | IBV_ACCESS_HUGETLB, 4096), EOPNOTSUPP);
}

// A request that the provider does not make: changed in the queue, while the QP is in SQD. Returns its status.
ibv_wc_status changed(Qp &qp, const Options &options, const std::function<void(siw_dg_sqe &)> &change)
{
	static uint64_t number = 0x7177657274790000;
	siwdg_write request = to_zone(options);
	ibv_qp_attr attr{};
	siw_dg_sqe *found = nullptr;
	request.wr_id = ++number;
	request.remote_qpn = qp.number();
	attr.qp_state = IBV_QPS_SQD;
	qp.modify(attr, IBV_QP_STATE);
	done(qp.post_write(request, 8), "siwdg_post_write");
	for (const auto &queue : find_queues())
		for (size_t i = sizeof(siw_dg_ring) / 4; i + sizeof(siw_dg_sqe) / 4 <= queue.size() && !found; i += sizeof(siw_dg_sqe) / 4)
			if (std::memcmp(&queue[i], &number, sizeof(number)) == 0)
				found = reinterpret_cast<siw_dg_sqe *>(&queue[i]);
	if (found == nullptr)
		throw std::runtime_error("the request is in no queue");
	change(*found);
	attr.qp_state = IBV_QPS_RTS;
	qp.modify(attr, IBV_QP_STATE);
	const ibv_wc *const wc = qp.complete(deadline(options));
	if (wc == nullptr || wc->wr_id != number)
		throw std::runtime_error("the changed request has no completion");
	return wc->status;
}

void expect_status(const char *what, ibv_wc_status found, ibv_wc_status wanted)
{
	if (found != wanted)
		throw std::runtime_error(fmt::format("{}: {}, expected {}", what, ibv_wc_status_str(found), ibv_wc_status_str(wanted)));
}

// Of the program, and of a region and an address handle
void check_owners(Qp &qp, const Options &options)
{
	Owned<ibv_pd, ibv_dealloc_pd> pd(made(ibv_alloc_pd(qp.get()->context), "ibv_alloc_pd"));
	std::vector<uint8_t> memory(8);
	const Owned<ibv_mr, ibv_dereg_mr> mr(made(ibv_reg_mr(pd.get(), memory.data(), memory.size(), IBV_ACCESS_LOCAL_WRITE), "ibv_reg_mr"));
	ibv_ah_attr attr{};
	attr.is_global = 1;
	attr.port_num = 1;
	attr.grh.dgid = parse_gid(options.target);
	const Owned<ibv_ah, ibv_destroy_ah> ah(made(ibv_create_ah(pd.get(), &attr), "ibv_create_ah"));
	ibv_sge sge{.addr = reinterpret_cast<uintptr_t>(memory.data()), .length = 8, .lkey = mr->lkey};
	const auto sending = [&](ibv_ah *to, ibv_sge *data) {
		ibv_send_wr wr{}, *bad = nullptr;
		wr.sg_list = data;
		wr.num_sge = data != nullptr ? 1 : 0;
		wr.opcode = IBV_WR_SEND;
		wr.send_flags = IBV_SEND_SIGNALED;
		wr.wr.ud = {.ah = to, .remote_qpn = qp.number(), .remote_qkey = options.qkey};
		done(ibv_post_send(qp.get(), &wr, &bad), "ibv_post_send");
		return made(qp.complete(deadline(options)), "a completion")->status;
	};
	expect_status("an address handle of another PD", sending(ah.get(), nullptr), IBV_WC_LOC_QP_OP_ERR);
	expect_status("a region of another PD", sending(qp.address(), &sge), IBV_WC_LOC_PROT_ERR);
	expect_status("a Send without data", sending(qp.address(), nullptr), IBV_WC_SUCCESS);
}

// DGM-23: other requests than Send and Write-Record
void check_requests(Qp &qp, const Options &options)
{
	for (const ibv_wr_opcode opcode : {IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_SEND_WITH_IMM,
					   IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD}) {
		ibv_send_wr wr{}, *bad = nullptr;
		wr.opcode = opcode;
		wr.wr.ud = {.ah = qp.address(), .remote_qpn = qp.number(), .remote_qkey = options.qkey};
		expect(fmt::format("opcode {}", static_cast<int>(opcode)), ibv_post_send(qp.get(), &wr, &bad), EINVAL);
		expect("the bad request", bad == &wr ? 0 : 1, 0);
	}
	const auto status = [&](const char *what, ibv_wc_status wanted, const std::function<void(siw_dg_sqe &)> &change) {
		expect_status(what, changed(qp, options, change), wanted);
	};
	status("a request as the provider makes it", IBV_WC_SUCCESS, [](siw_dg_sqe &) {});
	for (const unsigned opcode : {2U, 3U, 4U, 255U})
		status("an unknown opcode", IBV_WC_LOC_QP_OP_ERR, [&](siw_dg_sqe &sqe) { sqe.opcode = static_cast<uint8_t>(opcode); });
	status("an unknown flag", IBV_WC_LOC_QP_OP_ERR, [](siw_dg_sqe &sqe) { sqe.flags |= 8; });
	status("a Write-Record with a solicited event", IBV_WC_LOC_QP_OP_ERR, [](siw_dg_sqe &sqe) { sqe.flags |= SIW_DG_SOLICITED; });
	status("a reserved member", IBV_WC_LOC_QP_OP_ERR, [](siw_dg_sqe &sqe) { sqe.reserved[5] = 1; });
	status("an address handle that nobody has", IBV_WC_LOC_QP_OP_ERR, [](siw_dg_sqe &sqe) { sqe.ah = 65536; });
	status("port 0", IBV_WC_LOC_QP_OP_ERR, [](siw_dg_sqe &sqe) { sqe.remote_qpn = 0; });
	status("port 65,536", IBV_WC_LOC_QP_OP_ERR, [](siw_dg_sqe &sqe) { sqe.remote_qpn = 65536; });
	status("nine scatter/gather entries", IBV_WC_LOC_QP_OP_ERR, [](siw_dg_sqe &sqe) { sqe.num_sge = SIW_DG_MAX_SGE + 1; });
	status("a region that nobody has", IBV_WC_LOC_PROT_ERR, [](siw_dg_sqe &sqe) { sqe.sge[0].lkey = 65537; });
	status("data beyond its region", IBV_WC_LOC_PROT_ERR, [](siw_dg_sqe &sqe) { sqe.sge[0].addr += 1 << 20; });
	status("129 octets of inline data", IBV_WC_LOC_LEN_ERR, [](siw_dg_sqe &sqe) {
		sqe.flags |= SIW_DG_INLINE;
		sqe.inline_len = SIW_DG_MAX_INLINE + 1;
	});
}

int qp_errors(const Options &options)
{
	Qp qp(options);
	qp.make_address(parse_gid(options.target));
	check_query(qp);
	check_sockets(qp);
	check_namespaces(qp);
	check_types(qp);
	check_regions(qp);
	check_owners(qp, options);
	check_requests(qp, options);
	return 0;
}

// Posts --every writes, and waits for their completions and for the peer's one write, or the other way round
class Player {
public:
	explicit Player(const Options &options) : options_(options), qp_(options), region_(qp_, options.zone_size),
		zone_(qp_, region_, attr_of(options)), request_(to_zone(options)), length_(std::max(options.size, options.data.size()))
	{
		done(zone_.allow_any(), "siwdg_allow_any");
		qp_.make_address(parse_gid(options.target));
		fmt::print("ready {}\n", qp_.number());
		std::fflush(stdout);
	}
	void write(uint32_t number, size_t length)
	{
		for (; number > 0; number--) {
			if (options_.split != 0) {
				send(length);
				continue;
			}
			done(qp_.post_write(request_, length), "siwdg_post_write");
			posted();
		}
	}
	// Of a message: records, or receives
	[[nodiscard]] uint32_t parts(size_t length) const
	{
		return options_.split == 0 ? 1 : static_cast<uint32_t>((length + options_.split - 1) / options_.split);
	}
	// Until so many records or receives have come, and so few requests are open
	void wait(uint32_t records, uint32_t open)
	{
		const auto until = deadline(options_);
		while (records_ < records || open_ > open) {
			siwdg_wc wc{};
			if (!qp_.next(wc, until))
				throw std::runtime_error(fmt::format("{} of {} records came", records_, records));
			if (wc.wc.status != IBV_WC_SUCCESS)
				throw std::runtime_error(ibv_wc_status_str(wc.wc.status));
			if (wc.wc.opcode == IBV_WC_RECV)
				qp_.post_receives(1);
			const bool came = wc.wc.opcode == IBV_WC_DRIVER1 || wc.wc.opcode == IBV_WC_RECV;
			(came ? records_ : open_) += came ? 1 : -1;
		}
		records_ -= records;
	}
	[[nodiscard]] size_t length() const { return length_; }

private:
	void send(size_t length)
	{
		for (size_t left = length, now; left > 0; left -= now) {
			now = std::min(left, options_.split);
			qp_.send({}, options_.qpn, now);
			posted();
		}
	}
	void posted()
	{
		if (++open_ == options_.depth)
			wait(0, 1);
	}

	const Options &options_;
	Qp qp_;
	Region region_;
	Zone zone_;
	siwdg_write request_;
	size_t length_;
	uint32_t records_ = 0, open_ = 0;
};

// Prints the median of --count rounds in ns
int ping(const Options &options)
{
	Player player(options);
	std::vector<int64_t> rounds;
	for (uint32_t round = 0; round < options.count; round++) {
		const auto begin = std::chrono::steady_clock::now();
		player.write(options.every, player.length());
		// A stream is answered by few octets
		player.wait(player.parts(options.every == 1 ? player.length() : 1), 0);
		rounds.push_back(std::chrono::nanoseconds(std::chrono::steady_clock::now() - begin).count());
	}
	std::ranges::sort(rounds);
	fmt::print("{{\"octets\": {}, \"every\": {}, \"ns\": {}}}\n", player.length(), options.every, rounds[rounds.size() / 2]);
	return 0;
}

int pong(const Options &options)
{
	Player player(options);
	for (uint32_t round = 0; round < options.count; round++) {
		player.wait(options.every * player.parts(player.length()), 0);
		player.write(1, options.every == 1 ? player.length() : 1);
	}
	player.wait(0, 0);
	return 0;
}

// Requests of the receive queue complete when the QP enters ERROR
int flush(const Options &options)
{
	Qp qp(options);
	const auto until = deadline(options);
	qp.to_error();
	const auto flushes = [&] {
		siwdg_wc wc{};
		return qp.next(wc, until) && wc.wc.status == IBV_WC_WR_FLUSH_ERR;
	};
	for (uint32_t got = 0; got < options.depth; got++)
		if (!flushes())
			return 1;
	// A receive that is posted now, too
	qp.post_receives(1);
	return flushes() ? 0 : 1;
}

// Lets allocation number n of this thread in the kernel fail, from now on
void fail_allocation(uint64_t n)
{
	std::ofstream("/proc/thread-self/fail-nth") << n << std::flush;
}

// Whether it has failed
bool has_failed()
{
	uint64_t left = 1;
	std::ifstream("/proc/thread-self/fail-nth") >> left;
	fail_allocation(0);
	return left == 0;
}

// A request of `rdma link add`; returns an error number
int add_link(const Descriptor &socket, const std::string &name, const std::string &interface)
{
	std::vector<uint8_t> request(sizeof(nlmsghdr));
	const std::pair<uint16_t, std::string> attrs[] = {{RDMA_NLDEV_ATTR_DEV_NAME, name}, {RDMA_NLDEV_ATTR_LINK_TYPE, "siw_dg"},
							  {RDMA_NLDEV_ATTR_NDEV_NAME, interface}};
	for (const auto &[type, text] : attrs) {
		const nlattr head{.nla_len = static_cast<uint16_t>(NLA_HDRLEN + text.size() + 1), .nla_type = type};
		const auto *const octets = reinterpret_cast<const uint8_t *>(&head);
		request.insert(request.end(), octets, octets + sizeof(head));
		request.insert(request.end(), text.begin(), text.end());
		request.resize(NLMSG_ALIGN(request.size() + 1));
	}
	nlmsghdr header{};
	header.nlmsg_len = static_cast<uint32_t>(request.size());
	header.nlmsg_type = RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_NEWLINK);
	header.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
	std::memcpy(request.data(), &header, sizeof(header));
	if (::send(socket.get(), request.data(), request.size(), 0) < 0)
		return errno;
	struct {
		nlmsghdr header;
		nlmsgerr error;
		uint8_t rest[512];
	} reply{};
	pollfd wait{.fd = socket.get(), .events = POLLIN, .revents = 0};
	// Without memory for the acknowledgement none comes; it is sent before send() returns
	if (::poll(&wait, 1, 0) < 1 || ::recv(socket.get(), &reply, sizeof(reply), 0) < 0)
		return ENOBUFS;
	return -reply.error.error;
}

// Allocations in the kernel fail while a link is added, which can then be added: each of the first ones, then every second, every
// third, and so on, as there are many. Afterwards there is no such link
int link_fault(const Options &options)
{
	const std::string remove = fmt::format("rdma link del {}", options.device), path = "/sys/class/infiniband/" + options.device;
	uint64_t n = 1, rounds = 0, errors = 0;
	for (bool failed = true; failed; n += 1 + n / 50, rounds++) {
		const Descriptor socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA));
		fail_allocation(n);
		const int error = add_link(socket, options.device, options.interface);
		failed = has_failed();
		errors += error != 0 ? 1 : 0;
		if (!failed && error != 0)
			fail("rdma link add without a failed allocation", error);
		// The kernel may have made it, and lack memory for the answer
		if (::access(path.c_str(), F_OK) == 0)
			expect(remove, std::system(remove.c_str()), 0);
		else if (error == 0)
			throw std::runtime_error("no device, and no error");
	}
	fmt::print("{} allocations failed, {} errors\n", rounds - 1, errors);
	return errors > 0 ? 0 : 1;
}

// Each allocation in the kernel fails once, from the device's opening to a Send and a Write-Record
int fault(const Options &options)
{
	const ibv_gid to = parse_gid(options.target);
	uint64_t n = 1, errors = 0;
	Options with = options;
	std::optional<Descriptor> socket;
	// With --port one socket for all QPs: after an error it is free again, as it was
	if (options.port != 0)
		with.socket = socket.emplace(bound_socket(options)).get();
	for (bool failed = true; failed; n++) {
		std::string error;
		fail_allocation(n);
		try {
			Qp qp(with);
			qp.send(to, qp.number(), 100);
			Region region(qp, options.zone_size);
			Zone zone(qp, region, attr_of(options));
			done(zone.allow_any(), "siwdg_allow_any");
			siwdg_write own = to_zone(options);
			own.remote_qpn = qp.number();
			done(qp.post_write(own, 100), "siwdg_post_write");
		} catch (const std::runtime_error &e) {
			error = e.what();
			errors++;
		}
		failed = has_failed();
		// The last time nothing fails
		if (!failed && !error.empty())
			throw std::runtime_error(error);
	}
	fmt::print("{} allocations, {} errors\n", n - 2, errors);
	return errors > 0 ? 0 : 1;
}

// Writes random numbers anywhere into the queues, indices included, and rings the doorbell
int fuzz(const Options &options)
{
	Qp qp(options);
	const auto queues = find_queues();
	if (queues.size() != 3)
		throw std::runtime_error(fmt::format("the queue pair has {} mapped queues, expected 3", queues.size()));
	std::mt19937 random(options.count);
	const ibv_gid to = parse_gid(options.target);
	const auto until = deadline(options);
	uint64_t rounds = 0;
	fmt::print("ready {}\n", qp.number());
	std::fflush(stdout);
	for (; std::chrono::steady_clock::now() < until; rounds++) {
		for (const auto &queue : queues) {
			// mostly a small number, often in an index: these go furthest
			const size_t place = random() % 3 ? random() % 18 : random() % queue.size();
			const uint32_t value = random() % 2 ? random() % 64 : static_cast<uint32_t>(random());
			__atomic_store_n(&queue[place], value, __ATOMIC_RELEASE);
		}
		// the provider may be confused as well: its errors do not matter
		try {
			qp.send(to, options.qpn ? options.qpn : qp.number(), random() % options.size);
			siwdg_write own = to_zone(options);
			own.remote_qpn = qp.number();
			done(qp.post_write(own, random() % options.size), "siwdg_post_write");
			qp.post_receives(1);
		} catch (const std::runtime_error &) {
		}
		static_cast<void>(qp.drain());
	}
	fmt::print("{} rounds\n", rounds);
	return 0;
}

void add_common(CLI::App &app, Options &o)
{
	app.add_option("--device", o.device, "RDMA device")->required();
	app.add_option("--gid", o.gid, "index of the own address");
	app.add_option("--qkey", o.qkey, "Q_Key");
	app.add_option("--count", o.count, "messages");
	app.add_option("--depth", o.depth, "entries of each queue")->check(CLI::Range(1U, 16384U));
	app.add_option("--records", o.records, "entries of the completion queue beyond those of the other queues");
	app.add_option("--size", o.size, "octets of a message")->check(CLI::Range(1U, 1U << 26));
	app.add_option("--timeout", o.timeout, "seconds");
	app.add_option("--group", o.group, "multicast group to join");
	app.add_option("--port", o.port, "UDP port of a socket that the QP is to use");
	app.add_option("--socket-segment", o.socket_segment, "UDP_SEGMENT of that socket");
	app.add_option("--socket-tclass", o.socket_tclass, "IPV6_TCLASS of that socket");
	app.add_flag("--broadcast", o.broadcast, "that socket has SO_BROADCAST");
	app.add_option("--recverr", o.recverr, "that socket has IP_RECVERR, set before or after it is handed over")->check(CLI::IsMember({"before", "after"}));
	app.add_option("--cork", o.cork, "that socket is corked: by its option, or by data that has begun")->check(CLI::IsMember({"option", "data"}));
	app.add_option("--provider", o.provider, "library of the provider, for --port and for Write-Record");
	app.add_option("--zone", o.zone, "number of the zone");
	app.add_option("--key", o.key, "Q_Key of the zone");
	app.add_option("--zone-size", o.zone_size, "octets of the own zone");
	app.add_option("--block", o.block, "octets for each bit of the validity map of the zone");
	app.add_option("--slots", o.slots, "messages of several datagrams in progress");
	app.add_option("--deadline", o.deadline, "milliseconds from the first datagram of a message until it ends");
	app.add_option("--gap", o.gap, "milliseconds from the last datagram of a message with holes until it ends");
	app.add_option("--segment", o.segment, "data octets in a datagram");
	app.add_option("--flags", o.flags, "of siwdg_create_qp_ex(): 1 IP fragments, 2 send error messages, 4 receive them");
	app.add_option("--tclass", o.tclass, "traffic class, TOS")->check(CLI::Range(0, 255));
	app.add_flag("--recover", o.recover, "before anything else ERROR, RESET and RTS again");
	app.add_flag("--partial", o.partial, "incomplete messages are recorded");
	app.add_flag("--solicited", o.solicited, "solicited events");
}

struct Command {
	const char *name, *text;
	int (*run)(const Options &);
};

constexpr Command commands[] = {
	{"receive", "receive messages", receive},
	{"send", "send messages; exit status 2 if one completes with an error", send},
	{"answer", "receive a message, and answer it by the address handle that its completion makes", answer},
	{"ask", "send a message, and receive the answer", ask},
	{"flush", "check that ERROR flushes the receive queue", flush},
	{"fuzz", "write random numbers into the shared queues until --timeout", fuzz},
	{"fault", "fail each allocation in the kernel once", fault},
	{"link-fault", "fail each allocation in the kernel once while a link is added", link_fault},
	{"zone", "open a zone and report what comes", zone},
	{"write", "write to a zone; exit status 2 if a message completes with an error", write},
	{"churn", "open and close a zone until --timeout, and check that nobody writes to a closed one", churn},
	{"renew", "destroy and create a queue pair with a zone after a record, --count times", renew},
	{"zone-errors", "check the errors of the calls for zones", zone_errors},
	{"qp-errors", "check the errors of queue pairs, regions and requests", qp_errors},
	{"zone-limit", "check the number of zones of a queue pair that joins groups", zone_limit},
	{"share", "two QPs with a zone and one completion queue, until the message --end comes", share},
	{"stall", "hold the lock of the socket of a QP until --timeout", stall},
	{"leave", "leave a group by the socket of a QP, and end", leave},
	{"handles", "measure the memory of --count address handles", handles},
	{"ping", "measure rounds of --every writes and the peer's answer", ping},
	{"pong", "answer --every writes by one", pong},
};

void declare_commands(CLI::App &app, Options &o)
{
	app.require_subcommand(1);
	for (const Command &command : commands) {
		CLI::App *sub = app.add_subcommand(command.name, command.text);
		if (command.run != link_fault)
			add_common(*sub, o);
	}
	for (const char *name : {"ping", "pong"}) {
		CLI::App *sub = app.get_subcommand(name);
		sub->add_option("--every", o.every, "writes of a round")->check(CLI::Range(1U, 1U << 20));
		sub->add_option("--split", o.split, "send Sends of this size instead of writes");
	}
	for (const char *name : {"fuzz", "fault", "zone", "write", "churn", "renew", "zone-errors", "qp-errors", "zone-limit", "share", "stall", "leave", "ping", "pong"})
		app.get_subcommand(name)->get_option("--provider")->required();
	CLI::App *open = app.get_subcommand("zone");
	open->add_option("--from", o.from, "source, ADDRESS[/PREFIX][,PORT]");
	open->add_flag("--any", o.any, "everybody who has the Q_Key may write");
	open->add_flag("--no-record", o.no_record, "nothing is recorded");
	open->add_flag("--plain", o.plain, "use ibv_poll_cq()");
	open->add_flag("--fold", o.fold, "take the records by siwdg_fold()");
	for (const char *name : {"zone", "share"})
		app.get_subcommand(name)->add_option("--end", o.end, "end when this message has come");
	app.get_subcommand("share")->add_option("--pace", o.pace, "milliseconds after each record");
	for (const char *name : {"stall", "leave"})
		app.get_subcommand(name)->get_option("--group")->required();
	app.get_subcommand("stall")->add_flag("--elsewhere", o.elsewhere, "another process holds it, and prints its number");
	open->add_flag("--until-send", o.until_send, "end 3 seconds after a Send has come");
	open->add_flag("--to-error", o.to_error, "enter ERROR when a Send has come, and end 3 seconds later");
	open->add_flag("--reopen", o.reopen, "when a Send has come, close the zone, open one of half its length with its number, and end 3 seconds later");
	open->add_option("--output", o.output, "file for the region, of which the zone is the middle");
	CLI::App *put = app.get_subcommand("write");
	put->add_option("--offset", o.offset, "where in the zone");
	put->add_flag("--guess", o.guess, "random keys");
	put->add_option("--interrupt", o.interrupt, "leave RTS while the message waits")->check(CLI::IsMember({"sqd", "reset", "error"}));
	put->add_option("--linger", o.linger, "milliseconds to wait for error messages");
	for (const char *name : {"send", "ask", "fuzz", "fault", "write", "zone-errors", "qp-errors", "ping", "pong"}) {
		CLI::App *sub = app.get_subcommand(name);
		sub->add_option("target", o.target, "address")->required();
		sub->add_option("qpn", o.qpn, "QP number");
		sub->add_option("--data", o.data, "the message's first octets");
		sub->add_flag("--inline", o.use_inline, "data in the request");
	}
	CLI::App *link = app.get_subcommand("link-fault");
	link->add_option("--device", o.device, "RDMA device, which does not exist")->required();
	link->add_option("interface", o.interface, "its interface")->required();
}

} // namespace

int main(int argc, char **argv)
{
	CLI::App app{"A UD queue pair for tests of datagram iWARP"};
	Options o;
	declare_commands(app, o);
	CLI11_PARSE(app, argc, argv);
	try {
		for (const Command &command : commands)
			if (app.got_subcommand(command.name))
				return command.run(o);
		return 3;
	} catch (const std::exception &e) {
		fmt::print(stderr, "dgqp: {}\n", e.what());
		return 3;
	}
}
