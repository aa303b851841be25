// SPDX-License-Identifier: GPL-2.0
#include "endpoint.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>

#include <rdma/rdma_mpa.h>
#include <poll.h>
#include <rdma/rdma_verbs.h>
#include <sys/signalfd.h>

namespace rdmafirst {
namespace {

int sigterm_fd = -1; // open to the end

} // namespace

SystemError::SystemError(std::string_view what)
	: std::runtime_error(fmt::format("{}: {}", what, std::strerror(errno)))
{
}

void say(std::string_view line)
{
	fmt::print("{}\n", line);
	std::fflush(stdout);
}

std::string hex(std::span<const uint8_t> bytes)
{
	std::string out;
	for (uint8_t byte : bytes)
		out += fmt::format("{:02x}", byte);
	return out;
}

std::string pinned_memory()
{
	std::ifstream status("/proc/self/status");
	for (std::string line; std::getline(status, line);) {
		if (line.starts_with("VmPin:"))
			return line.substr(line.find_first_not_of(" \t", 6));
	}
	return "unknown";
}

rdma_conn_param conn_param(const Options &options)
{
	rdma_conn_param param{};
	param.private_data = options.pdata.data();
	param.private_data_len = static_cast<uint8_t>(options.pdata.size());
	param.responder_resources = static_cast<uint8_t>(options.responder_resources);
	param.initiator_depth = static_cast<uint8_t>(options.initiator_depth);
	return param;
}

sockaddr_storage socket_address(const Options &options)
{
	return socket_address(options.address, options.port);
}

sockaddr_storage socket_address(const std::string &address, uint16_t port)
{
	sockaddr_storage storage{};
	auto *in4 = reinterpret_cast<sockaddr_in *>(&storage);
	auto *in6 = reinterpret_cast<sockaddr_in6 *>(&storage);
	if (inet_pton(AF_INET, address.c_str(), &in4->sin_addr) == 1) {
		in4->sin_family = AF_INET;
		in4->sin_port = htons(port);
	} else if (inet_pton(AF_INET6, address.c_str(), &in6->sin6_addr) == 1) {
		in6->sin6_family = AF_INET6;
		in6->sin6_port = htons(port);
	} else {
		throw std::runtime_error(fmt::format("not an IP address: {}", address));
	}
	return storage;
}

namespace {

// RDMA_OPTION_IWARP of later kernels' rdma/rdma_user_cm.h
constexpr int option_iwarp = 2;

constexpr std::pair<std::string_view, int> mpa_names[] = {
	{"revision", RDMA_MPA_OPTION_REVISION},
	{"model", RDMA_MPA_OPTION_MODEL},
	{"rtr", RDMA_MPA_OPTION_RTR},
	{"ird", RDMA_MPA_OPTION_IRD},
	{"ord", RDMA_MPA_OPTION_ORD},
	{"connect-ms", RDMA_MPA_OPTION_CONNECT_MS},
	{"request-ms", RDMA_MPA_OPTION_REQUEST_MS},
	{"reply-ms", RDMA_MPA_OPTION_REPLY_MS},
	{"rtr-ms", RDMA_MPA_OPTION_RTR_MS},
	{"decide-ms", RDMA_MPA_OPTION_DECIDE_MS},
	{"short-ird", RDMA_MPA_OPTION_SHORT_IRD},
	{"ird-mode", RDMA_MPA_OPTION_IRD_MODE},
	{"ord-mode", RDMA_MPA_OPTION_ORD_MODE},
	{"segment", RDMA_MPA_OPTION_SEGMENT},
};

int mpa_option_name(std::string_view text)
{
	for (const auto &[name, number] : mpa_names)
		if (name == text)
			return number;
	return std::stoi(std::string(text));
}

} // namespace

// The value is a number of 32 bits or, behind "bytes:", two hexadecimal digits a byte
MpaOption mpa_option(const std::string &text)
{
	constexpr std::string_view raw = "bytes:";
	const size_t equals = text.find('=');
	if (equals == std::string::npos)
		throw std::invalid_argument("expected NAME=VALUE, not " + text);
	const std::string value = text.substr(equals + 1);
	MpaOption option{mpa_option_name(text.substr(0, equals)), {}};
	if (value.starts_with(raw)) {
		for (size_t i = raw.size(); i + 1 < value.size(); i += 2)
			option.value.push_back(static_cast<uint8_t>(std::stoul(value.substr(i, 2), nullptr, 16)));
		return option;
	}
	const auto number = static_cast<uint32_t>(std::stoul(value, nullptr, 0));
	option.value.resize(sizeof(number));
	std::memcpy(option.value.data(), &number, sizeof(number));
	return option;
}

void set_mpa_options(rdma_cm_id *id, std::span<const MpaOption> options)
{
	for (const MpaOption &option : options)
		if (rdma_set_option(id, option_iwarp, option.name, const_cast<uint8_t *>(option.value.data()),
				    option.value.size()) != 0)
			throw SystemError(fmt::format("rdma_set_option {}", option.name));
}

void try_bad_mpa_options(rdma_cm_id *id, std::span<const MpaOption> options)
{
	for (const MpaOption &option : options)
		if (rdma_set_option(id, option_iwarp, option.name, const_cast<uint8_t *>(option.value.data()),
				    option.value.size()) == 0 ||
		    errno != EINVAL)
			throw std::runtime_error(fmt::format("rdma_set_option {}: not refused with EINVAL", option.name));
}

Channel make_channel()
{
	Channel channel(rdma_create_event_channel());
	if (!channel)
		throw SystemError("rdma_create_event_channel");
	if (fcntl(channel->fd, F_SETFL, O_NONBLOCK) != 0)
		throw SystemError("fcntl");
	return channel;
}

Id make_id(rdma_event_channel *channel)
{
	rdma_cm_id *id = nullptr;
	if (rdma_create_id(channel, &id, nullptr, RDMA_PS_TCP) != 0)
		throw SystemError("rdma_create_id");
	return Id(id);
}

std::optional<Event> next_event(rdma_event_channel *channel)
{
	rdma_cm_event *event = nullptr;
	if (rdma_get_cm_event(channel, &event) != 0) {
		if (errno == EAGAIN || errno == EINTR)
			return std::nullopt;
		throw SystemError("rdma_get_cm_event");
	}
	Event copy;
	copy.id = event->id;
	copy.type = event->event;
	copy.status = event->status;
	switch (event->event) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
	case RDMA_CM_EVENT_ESTABLISHED:
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_REJECTED: {
		const rdma_conn_param &conn = event->param.conn;
		const auto *data = static_cast<const uint8_t *>(conn.private_data);
		copy.has_conn = true;
		copy.responder_resources = conn.responder_resources;
		copy.initiator_depth = conn.initiator_depth;
		if (data)
			copy.pdata.assign(data, data + conn.private_data_len);
		break;
	}
	default:
		break;
	}
	rdma_ack_cm_event(event);
	return copy;
}

std::string Event::describe() const
{
	std::string text = fmt::format("event {} status {}", rdma_event_str(type), status);
	if (has_conn)
		text += fmt::format(" responder_resources {} initiator_depth {} pdata {} {}", responder_resources,
				    initiator_depth, pdata.size(), hex(pdata));
	return text;
}

void catch_sigterm()
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	if (sigprocmask(SIG_BLOCK, &set, nullptr) != 0)
		throw SystemError("sigprocmask");
	sigterm_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (sigterm_fd < 0)
		throw SystemError("signalfd");
}

void wait_readable(std::span<const int> fds, Clock::time_point deadline, std::string_view what)
{
	std::vector<pollfd> set;
	for (int fd : fds)
		set.push_back({.fd = fd, .events = POLLIN, .revents = 0});
	set.push_back({.fd = sigterm_fd, .events = POLLIN, .revents = 0});
	for (;;) {
		const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
		if (left.count() <= 0)
			throw DeadlinePassed(fmt::format("deadline passed while waiting for {}", what));
		const int ready = ::poll(set.data(), set.size(), static_cast<int>(left.count()));
		if (ready > 0 && set.back().revents != 0)
			throw Stopped("SIGTERM");
		if (ready > 0)
			return;
		if (ready < 0 && errno != EINTR)
			throw SystemError("poll");
	}
}

std::vector<int> descriptors(const rdma_event_channel *channel, std::span<const Endpoint *const> endpoints)
{
	std::vector<int> fds{channel->fd};
	for (const Endpoint *endpoint : endpoints) {
		if (!endpoint->has_qp())
			continue;
		fds.push_back(endpoint->id()->send_cq_channel->fd);
		fds.push_back(endpoint->id()->recv_cq_channel->fd);
	}
	return fds;
}

Endpoint::Endpoint(Id id) : id_(std::move(id))
{
}

void Endpoint::create_qp(size_t send_queue, bool signal_all)
{
	ibv_qp_init_attr attr{};
	send_queue_size_ = std::bit_ceil(send_queue);
	attr.cap.max_send_wr = static_cast<uint32_t>(send_queue);
	attr.cap.max_recv_wr = receives;
	attr.cap.max_send_sge = 1;
	attr.cap.max_recv_sge = 1;
	attr.qp_type = IBV_QPT_RC;
	attr.sq_sig_all = signal_all ? 1 : 0;
	// without queues of our own, librdmacm creates them and their channels
	if (rdma_create_qp(id_.get(), nullptr, &attr) != 0)
		throw SystemError("rdma_create_qp");
	mr_.reset(rdma_reg_msgs(id_.get(), buffer_.data(), buffer_.size()));
	if (!mr_)
		throw SystemError("rdma_reg_msgs");
	for (ibv_cq *cq : {id_->send_cq, id_->recv_cq}) {
		if (ibv_req_notify_cq(cq, 0) != 0)
			throw SystemError("ibv_req_notify_cq");
	}
	for (const ibv_comp_channel *channel : {id_->send_cq_channel, id_->recv_cq_channel}) {
		if (fcntl(channel->fd, F_SETFL, O_NONBLOCK) != 0)
			throw SystemError("fcntl");
	}
	for (size_t i = 0; i < receives; i++)
		post_receive(&buffer_[i * slot_size]);
}

void Endpoint::post_receive(char *slot)
{
	if (rdma_post_recv(id_.get(), slot, slot, slot_size, mr_.get()) != 0)
		throw SystemError("rdma_post_recv");
	pending_++;
	pending_receives_++;
}

ibv_send_wr signaled(ibv_wr_opcode opcode, std::span<ibv_sge> sges)
{
	ibv_send_wr wr{};
	wr.sg_list = sges.data();
	wr.num_sge = static_cast<int>(sges.size());
	wr.opcode = opcode;
	wr.send_flags = IBV_SEND_SIGNALED;
	return wr;
}

int modify_qp(ibv_qp *qp)
{
	ibv_qp_attr attr{};
	attr.qp_access_flags = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
	return ibv_modify_qp(qp, &attr, IBV_QP_ACCESS_FLAGS);
}

void Endpoint::spoil_qp()
{
	ibv_qp_attr attr{};
	attr.qp_state = IBV_QPS_ERR;
	if (ibv_modify_qp(id_->qp, &attr, IBV_QP_STATE) != 0)
		throw SystemError("ibv_modify_qp");
}

void Endpoint::deny_access()
{
	ibv_qp_attr attr{};
	ibv_qp_init_attr init{};
	if (ibv_modify_qp(id_->qp, &attr, IBV_QP_ACCESS_FLAGS) != 0)
		throw SystemError("ibv_modify_qp");
	if (ibv_query_qp(id_->qp, &attr, IBV_QP_ACCESS_FLAGS, &init) != 0)
		throw SystemError("ibv_query_qp");
	say(fmt::format("access {:#x}", attr.qp_access_flags));
}

void Endpoint::disconnect()
{
	const int rv = rdma_disconnect(id_.get());
	say(fmt::format("rdma_disconnect: {}", rv == 0 ? "done" : std::strerror(errno)));
}

void Endpoint::modify(const std::string &state)
{
	ibv_qp_attr attr{};
	attr.qp_state = state == "sqd"	 ? IBV_QPS_SQD :
			state == "sqe"	 ? IBV_QPS_SQE :
			state == "reset" ? IBV_QPS_RESET :
					   throw std::invalid_argument(state);
	const int error = ibv_modify_qp(id_->qp, &attr, IBV_QP_STATE);
	say(fmt::format("modify to {}: {}", state, error == 0 ? "done" : std::strerror(error)));
}

void Endpoint::post_too_early()
{
	ibv_sge sge{.addr = reinterpret_cast<uintptr_t>(message()), .length = 100, .lkey = ~mr_->lkey};
	ibv_send_wr wr = signaled(IBV_WR_SEND, {&sge, 1});
	ibv_send_wr *bad = nullptr;
	say(ibv_post_send(id_->qp, &wr, &bad) == 0 ? "posted too early" : "rejected, too early");
}

void Endpoint::forget_soon()
{
	forgetful_ = std::jthread([this] {
		std::this_thread::sleep_for(std::chrono::milliseconds(500));
		mr_.reset();
		say("the memory of messages is deregistered");
	});
}

void Endpoint::be_restless()
{
	restless_ = std::jthread([qp = id_->qp](const std::stop_token &stop) {
		// libsiw spins on the queue's lock while the QP is modified: on one processor, the thread that posts
		// gets the lock only if this one lets go of it now and then
		while (!stop.stop_requested() && modify_qp(qp) == 0)
			std::this_thread::yield();
	});
}

void Endpoint::post_send(std::string_view text)
{
	char *slot = &buffer_[(receives + posted_++ % sends) * slot_size];
	text = text.substr(0, slot_size);
	text.copy(slot, text.size());
	if (rdma_post_send(id_.get(), slot, slot, text.size(), mr_.get(), 0) != 0)
		throw SystemError("rdma_post_send");
	pending_++;
}

void Endpoint::post(ibv_send_wr &wr)
{
	for (int i = 0; i < wr.num_sge; i++) {
		if (wr.sg_list[i].addr == 0) {
			wr.sg_list[i].addr = reinterpret_cast<uintptr_t>(&buffer_[receives * slot_size]);
			wr.sg_list[i].lkey = mr_->lkey;
		}
	}
	ibv_send_wr *bad = nullptr;
	errno = ibv_post_send(id_->qp, &wr, &bad);
	if (errno != 0)
		throw SystemError("ibv_post_send");
	pending_++;
}

void Endpoint::take_back_at(const std::string &file)
{
	forgetful_ = std::jthread([this, file](const std::stop_token &stop) {
		while (!stop.stop_requested() && !std::filesystem::exists(file))
			std::this_thread::sleep_for(std::chrono::milliseconds(10));
		const size_t size = exposed_->length;
		exposed_.reset();
		not_exposed_.reset();
		std::fill_n(pages_.get(), size, '!');
		say("the exposed memory is deregistered");
	});
}

void Endpoint::use_other_pd()
{
	other_pd_.reset(ibv_alloc_pd(id_->verbs));
	if (!other_pd_)
		throw SystemError("ibv_alloc_pd");
}

std::string Endpoint::expose(size_t pages)
{
	const ibv_mr *mr = expose_pages(pages);
	not_exposed_.reset(ibv_reg_mr(id_->pd, mr->addr, mr->length, IBV_ACCESS_LOCAL_WRITE));
	if (!not_exposed_)
		throw SystemError("ibv_reg_mr");
	return fmt::format("{:x} {:x} {:x} {:x}", reinterpret_cast<uintptr_t>(mr->addr), mr->rkey, mr_->lkey,
			   not_exposed_->lkey);
}

const ibv_mr *Endpoint::expose_pages(size_t pages)
{
	const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
	pages_.reset(static_cast<char *>(std::aligned_alloc(page, pages * page)));
	if (!pages_)
		throw SystemError("aligned_alloc");
	for (size_t i = 0; i < pages * page; i++)
		pages_.get()[i] = letter(i);
	exposed_.reset(ibv_reg_mr(other_pd_ ? other_pd_.get() : id_->pd, pages_.get(), pages * page,
				  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ));
	if (!exposed_)
		throw SystemError("ibv_reg_mr");
	return exposed_.get();
}

unsigned Endpoint::never_completed(bool only_sends)
{
	const auto deadline = Clock::now() + std::chrono::seconds(3);
	const unsigned rest = only_sends ? pending_receives_ : 0;
	while (pending_ > rest && Clock::now() < deadline) {
		const std::vector<Completion> done = completions();
		for (const Completion &one : done)
			if (!only_sends || one.status != IBV_WC_SUCCESS)
				say(fmt::format("{} completed: {}", one.receive ? "receive" : "request",
						ibv_wc_status_str(one.status)));
		if (done.empty())
			std::this_thread::sleep_for(std::chrono::microseconds(only_sends ? 100 : 10000));
	}
	return pending_ - rest;
}

bool Endpoint::post_read()
{
	constexpr size_t size = 8;
	constexpr uint64_t remote_address = 0;
	constexpr uint32_t remote_key = 0x100;
	char *slot = &buffer_[(receives + posted_++ % sends) * slot_size];
	if (rdma_post_read(id_.get(), slot, slot, size, mr_.get(), 0, remote_address, remote_key) != 0)
		return false;
	pending_++;
	return true;
}

std::string Endpoint::describe_qp() const
{
	ibv_qp_attr attr{};
	ibv_qp_init_attr init{};
	if (ibv_query_qp(id_->qp, &attr, IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MAX_DEST_RD_ATOMIC, &init) != 0)
		throw SystemError("ibv_query_qp");
	return fmt::format("qp {} ird {} ord {}", id_->qp->qp_num, attr.max_dest_rd_atomic, attr.max_rd_atomic);
}

void Endpoint::poll(ibv_cq *cq, std::vector<Completion> &out)
{
	ibv_wc wc{};
	int n;
	while ((n = ibv_poll_cq(cq, 1, &wc)) > 0) {
		pending_--;
		pending_receives_ -= cq == id_->recv_cq;
		Completion done{.receive = cq == id_->recv_cq,
				.read = wc.opcode == IBV_WC_RDMA_READ,
				.status = wc.status,
				.data = {}};
		if (done.receive && wc.status == IBV_WC_SUCCESS)
			done.data.assign(reinterpret_cast<const char *>(wc.wr_id), wc.byte_len);
		if (done.receive && wc.status == IBV_WC_SUCCESS && keep_receiving_)
			post_receive(reinterpret_cast<char *>(wc.wr_id));
		out.push_back(std::move(done));
	}
	if (n < 0)
		throw SystemError("ibv_poll_cq");
}

std::vector<Completion> Endpoint::completions()
{
	std::vector<Completion> out;
	if (!has_qp())
		return out;
	for (ibv_comp_channel *channel : {id_->send_cq_channel, id_->recv_cq_channel}) {
		ibv_cq *cq = nullptr;
		void *context = nullptr;
		while (ibv_get_cq_event(channel, &cq, &context) == 0) {
			ibv_ack_cq_events(cq, 1);
			if (ibv_req_notify_cq(cq, 0) != 0)
				throw SystemError("ibv_req_notify_cq");
		}
	}
	poll(id_->send_cq, out);
	poll(id_->recv_cq, out);
	return out;
}

} // namespace rdmafirst
