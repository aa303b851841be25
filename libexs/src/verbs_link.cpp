// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#include "verbs_link.h"

#include "address.h"
#include "exs.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/epoll.h>

namespace libexs {
namespace {

// How long a single attempt to resolve may take: ib_core may miss the answer, and looks again only then
constexpr int resolve_ms = 1000;

sockaddr *raw(sockaddr_storage &address)
{
	return reinterpret_cast<sockaddr *>(&address);
}

// In tokens that are pointers for rdma_cm
void *context_of(uint64_t token)
{
	return reinterpret_cast<void *>(static_cast<uintptr_t>(token));
}

constexpr uint64_t number_bits = 56;

int error_of(ibv_wc_status status)
{
	switch (status) {
	case IBV_WC_SUCCESS:
		return 0;
	case IBV_WC_WR_FLUSH_ERR:
		return ECONNRESET;
	case IBV_WC_LOC_PROT_ERR:
		return EFAULT;
	case IBV_WC_RETRY_EXC_ERR:
	case IBV_WC_RNR_RETRY_EXC_ERR:
		return ETIMEDOUT;
	case IBV_WC_REM_ACCESS_ERR:
	case IBV_WC_REM_INV_REQ_ERR:
	case IBV_WC_REM_OP_ERR:
		return EPROTO;
	default:
		return EIO;
	}
}

} // namespace

VerbsLink::VerbsLink(const Workers &workers, const std::shared_ptr<Actor> &actor, const sockaddr_storage &to,
		     const sockaddr_storage *from, const wire::Hello &hello, const Sizes &sizes, Clock::time_point until,
		     int &error)
    : engine_(workers.engine), data_(&workers.data), domains_(workers.domains), actor_(actor), to_(to), until_(until),
      initiator_(true), own_hello_(hello), sizes_(sizes)
{
	if (from != nullptr) {
		from_ = *from;
		has_from_ = true;
	}
	id_token_ = engine_.adopt(actor);
	id_.reset(engine_.make_id(id_token_));
	if (!id_) {
		error = errno;
		abort();
		return;
	}
	error = 0;
	resolve();
}

VerbsLink::VerbsLink(const Workers &workers, const std::shared_ptr<Actor> &actor, Verbs<rdma_cm_id> id, const CmEvent &request,
		     const Sizes &sizes)
    : engine_(workers.engine), data_(&workers.data), domains_(workers.domains), actor_(actor), id_(std::move(id)),
      state_(State::requested), sizes_(sizes)
{
	id_token_ = engine_.adopt(actor);
	id_->context = context_of(id_token_);
	const auto hello = wire::decode_hello(request.private_data());
	if (!hello) {
		fail(EPROTO);
		return;
	}
	// of the peer's: its ORD is what we may be asked for, its IRD what we may ask
	const Depths device = device_depths();
	emit({.kind = LinkEvent::Kind::request,
	      .hello = *hello,
	      .depths = {std::min<uint16_t>(device.ird, request.responder_resources),
			 std::min<uint16_t>(device.ord, request.initiator_depth)}});
}

VerbsLink::~VerbsLink()
{
	abort();
}

// What it was made of is taken down in the order that verbs wants
void VerbsLink::abort()
{
	if (state_ == State::ended && !id_)
		return;
	state_ = State::ended;
	if (id_ && id_->qp != nullptr)
		engine_.destroy_queue_pair(id_.get());
	if (token_ != 0)
		data_->unwatch(token_, channel_->fd);
	token_ = 0;
	cq_.reset();
	channel_.reset();
	slab_mr_.reset();
	domain_.reset();
	exposed_.close(std::move(id_));
	if (id_token_ != 0)
		engine_.forget(std::exchange(id_token_, 0));
	queued_.clear();
	actor_.reset();
}

void VerbsLink::fail(int error, bool other_way)
{
	if (failed_ || state_ == State::ended)
		return;
	failed_ = true;
	if (state_ == State::open || !initiator_)
		emit_lost(error);
	else
		emit({.kind = LinkEvent::Kind::failed, .error = error, .other_way = other_way});
}

bool VerbsLink::move_to(Engine &engine, const std::shared_ptr<Actor> &actor)
{
	const uint64_t token = token_ != 0 ? engine.watch(channel_->fd, EPOLLIN, actor) : 0;
	if (token == 0)
		return false;
	data_->unwatch(token_, channel_->fd);
	data_ = &engine;
	token_ = token;
	return true;
}

// ---- connecting

void VerbsLink::resolve()
{
	if (rdma_resolve_addr(id_.get(), has_from_ ? raw(from_) : nullptr, raw(to_), resolve_ms) != 0)
		fail(errno, true);
}

void VerbsLink::on_resolved()
{
	if (rdma_resolve_route(id_.get(), resolve_ms) != 0)
		fail(errno, true);
}

Depths VerbsLink::device_depths() const
{
	ibv_device_attr device{};
	if (ibv_query_device(id_->verbs, &device) != 0)
		return {};
	const auto depth = [](int value) { return static_cast<uint16_t>(std::clamp<int>(value, 0, wire::max_depth)); };
	return {depth(device.max_qp_rd_atom), depth(device.max_qp_init_rd_atom)};
}

int VerbsLink::make_queues()
{
	ibv_device_attr device{};
	if (ibv_query_device(id_->verbs, &device) != 0)
		return errno;
	if (sizes_.buffers > static_cast<uint32_t>(device.max_qp_wr))
		return ENOBUFS;
	sizes_.sends = std::min(sizes_.sends, static_cast<uint32_t>(device.max_qp_wr));
	domain_ = domains_ != nullptr ? domains_->of(id_->verbs) : Domain::make(id_->verbs);
	if (!domain_)
		return errno;
	channel_.reset(ibv_create_comp_channel(id_->verbs));
	if (!channel_ || ::fcntl(channel_->fd, F_SETFL, O_NONBLOCK) != 0)
		return errno;
	cq_.reset(ibv_create_cq(id_->verbs, static_cast<int>(sizes_.buffers + sizes_.sends), nullptr, channel_.get(), 0));
	if (!cq_ || ibv_req_notify_cq(cq_.get(), 0) != 0)
		return errno;
	if (const int error = make_queue_pair(); error != 0)
		return error;
	is_iwarp_ = id_->verbs->device->transport_type == IBV_TRANSPORT_IWARP;
	exposed_.open(domain_);
	if (const int error = make_memory(); error != 0)
		return error;
	token_ = data_->watch(channel_->fd, EPOLLIN, actor_);
	return token_ != 0 ? 0 : errno;
}

int VerbsLink::make_queue_pair()
{
	ibv_qp_init_attr attributes{};
	attributes.send_cq = attributes.recv_cq = cq_.get();
	attributes.qp_type = IBV_QPT_RC;
	attributes.cap = {.max_send_wr = sizes_.sends,
			  .max_recv_wr = sizes_.buffers,
			  .max_send_sge = 2,
			  .max_recv_sge = 1,
			  .max_inline_data = wire::message_size};
	inline_ = rdma_create_qp(id_.get(), domain_->get(), &attributes) == 0;
	if (inline_)
		return 0;
	attributes.cap.max_inline_data = 0;
	return rdma_create_qp(id_.get(), domain_->get(), &attributes) == 0 ? 0 : errno;
}

int VerbsLink::make_memory()
{
	const std::lock_guard alone(pin_mutex);
	for (const Access access : {Access::source, Access::sink}) {
		const int error = sizes_.reserve != 0 ? exposed_.reserve(sizes_.reserve, flags_of(access)) : 0;
		if (error != 0)
			return error;
	}
	buffer_size_ = wire::message_size + sizes_.data;
	slab_.resize(buffer_size_ * sizes_.buffers + wire::message_size * sizes_.sends);
	const int access = IBV_ACCESS_LOCAL_WRITE;
	slab_mr_.reset(ibv_reg_mr(domain_->get(), slab_.data(), slab_.size(), access));
	if (!slab_mr_)
		return errno;
	slot_works_.resize(sizes_.sends);
	for (uint32_t i = 0; i < sizes_.sends; i++)
		free_slots_.push_back(i);
	for (uint32_t i = 0; i < sizes_.buffers; i++)
		if (const int error = post_receive(i); error != 0)
			return error;
	return 0;
}

void VerbsLink::on_route()
{
	state_ = State::connecting;
	if (const int error = make_queues(); error != 0)
		return fail(error, true);
	const Depths device = device_depths();
	own_hello_.ird = std::min(own_hello_.ird, device.ird);
	own_hello_.ord = std::min(own_hello_.ord, device.ord);
	const auto hello = wire::encode(own_hello_);
	rdma_conn_param param{};
	param.private_data = hello.data();
	param.private_data_len = static_cast<uint8_t>(hello.size());
	param.responder_resources = static_cast<uint8_t>(own_hello_.ird);
	param.initiator_depth = static_cast<uint8_t>(own_hello_.ord);
	param.retry_count = 7;
	param.rnr_retry_count = 7;
	if (rdma_connect(id_.get(), &param) != 0)
		fail(errno, true);
}

void VerbsLink::on_established(const CmEvent &event)
{
	if (!initiator_ || state_ != State::connecting)
		return; // a responder is open with the first message
	const auto hello = wire::decode_hello(event.private_data());
	if (!hello || hello->kind == wire::Kind::refused)
		return fail(EPROTO);
	state_ = State::open;
	emit({.kind = LinkEvent::Kind::established,
	      .hello = *hello,
	      .depths = {std::min<uint16_t>(own_hello_.ird, event.responder_resources),
			 std::min<uint16_t>(own_hello_.ord, event.initiator_depth)}});
	poll();
}

void VerbsLink::on_rejected(const CmEvent &event)
{
	const auto hello = wire::decode_hello(event.private_data());
	if (!hello || hello->kind != wire::Kind::refused)
		return fail(ECONNREFUSED, true);
	switch (hello->reason) {
	case wire::Reason::busy:
		return fail(ECONNREFUSED);
	case wire::Reason::other_kind:
		return fail(EPROTOTYPE);
	default:
		return fail(EPROTO);
	}
}

void VerbsLink::on_cm(const CmEvent &event)
{
	if (state_ == State::ended || failed_)
		return;
	// negative errno values, or the transport's reasons
	const int error = event.status < 0 ? -event.status : ECONNREFUSED;
	switch (event.type) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		return on_resolved();
	case RDMA_CM_EVENT_ADDR_ERROR:
		if (error == ETIMEDOUT && Clock::now() < until_)
			return resolve();
		return fail(event.status < 0 ? error : EHOSTUNREACH, true);
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		return on_route();
	case RDMA_CM_EVENT_ROUTE_ERROR:
		return fail(event.status < 0 ? error : EHOSTUNREACH, true);
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
		return fail(error, true);
	case RDMA_CM_EVENT_REJECTED:
		return on_rejected(event);
	case RDMA_CM_EVENT_ESTABLISHED:
		return on_established(event);
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		return fail(ENODEV);
	case RDMA_CM_EVENT_DISCONNECTED:
		poll(); // what came before
		return fail(ECONNRESET);
	default:
		return;
	}
}

void VerbsLink::accept(const wire::Hello &hello)
{
	if (const int error = make_queues(); error != 0)
		return fail(error);
	own_hello_ = hello;
	const auto bytes = wire::encode(hello);
	rdma_conn_param param{};
	param.private_data = bytes.data();
	param.private_data_len = static_cast<uint8_t>(bytes.size());
	param.responder_resources = static_cast<uint8_t>(hello.ird);
	param.initiator_depth = static_cast<uint8_t>(hello.ord);
	param.rnr_retry_count = 7;
	state_ = State::open;
	if (rdma_accept(id_.get(), &param) != 0)
		fail(errno);
}

void VerbsLink::refuse(wire::Reason reason)
{
	refuse_request(id_.get(), reason);
	fail(ECONNREFUSED);
}

void refuse_request(rdma_cm_id *id, wire::Reason reason)
{
	const auto bytes = wire::encode(wire::Hello{.kind = wire::Kind::refused, .reason = reason, .credits = 0});
	rdma_reject(id, bytes.data(), static_cast<uint8_t>(bytes.size()));
}

// ---- memory

int VerbsLink::flags_of(Access access) const
{
	int flags = access == Access::source ? IBV_ACCESS_REMOTE_READ : IBV_ACCESS_LOCAL_WRITE;
	// on iWARP a Read Response is placed like a Write, and adapters check it so; siw does not
	if (access == Access::target || (access == Access::sink && is_iwarp_))
		flags |= IBV_ACCESS_REMOTE_WRITE;
	return flags;
}

int VerbsLink::expose(uint64_t address, uint64_t length, Access access, Readers readers, Exposure &exposure)
{
	Exposed::Key key;
	const int error = exposed_.add(address, length, flags_of(access), readers == Readers::all && domains_ != nullptr, key);
	exposure = {.local_key = key.local, .remote_key = key.remote, .registration = key.mr};
	return error;
}

void VerbsLink::withdraw(const Exposure &exposure)
{
	exposed_.remove(exposure.registration);
}

std::span<const uint8_t> VerbsLink::buffer(uint32_t buffer) const
{
	return std::span(slab_).subspan(buffer * buffer_size_, buffer_size_);
}

// ---- work

int VerbsLink::post_receive(uint32_t buffer)
{
	ibv_sge sge{.addr = reinterpret_cast<uintptr_t>(&slab_[buffer * buffer_size_]),
		    .length = static_cast<uint32_t>(buffer_size_),
		    .lkey = slab_mr_->lkey};
	ibv_recv_wr wr{};
	wr.wr_id = uint64_t{static_cast<uint8_t>(Kind::receive)} << number_bits | buffer;
	wr.sg_list = &sge;
	wr.num_sge = 1;
	ibv_recv_wr *bad = nullptr;
	return ibv_post_recv(id_->qp, &wr, &bad);
}

void VerbsLink::repost(uint32_t buffer)
{
	if (state_ != State::open || failed_)
		return;
	if (const int error = post_receive(buffer); error != 0)
		fail(error);
}

void VerbsLink::queue(const Work &work)
{
	if (state_ != State::open || failed_)
		return;
	// no more can be under way but to a peer that has broken the protocol, and reads nothing
	if (work.kind == Kind::message && ++queued_messages_ > sizes_.buffers)
		return fail(EPROTO);
	if (work.kind == Kind::read || work.kind == Kind::probe)
		reads_++;
	queued_.push_back(work);
	post_queued();
}

void VerbsLink::post_queued()
{
	while (!queued_.empty() && in_flight_ < sizes_.sends && !failed_) {
		if (const int error = post_now(queued_.front()); error != 0)
			return fail(error);
		in_flight_++;
		if (queued_.front().kind == Kind::message)
			queued_messages_--;
		queued_.pop_front();
	}
}

int VerbsLink::post_now(const Work &work)
{
	std::array<ibv_sge, 2> sges{};
	ibv_send_wr wr{};
	wr.sg_list = sges.data();
	wr.num_sge = 1;
	wr.send_flags = IBV_SEND_SIGNALED;
	uint64_t number = work.work;
	const ibv_sge data{.addr = work.memory.address,
			   .length = static_cast<uint32_t>(work.memory.length),
			   .lkey = work.memory.local_key};
	if (work.kind == Kind::message) {
		number = free_slots_.back();
		uint8_t *slot = &slab_[buffer_size_ * sizes_.buffers + wire::message_size * number];
		std::ranges::copy(wire::encode(work.message), slot);
		sges[0] = {.addr = reinterpret_cast<uintptr_t>(slot), .length = wire::message_size, .lkey = slab_mr_->lkey};
		wr.opcode = IBV_WR_SEND;
		if (work.memory.length != 0)
			sges[static_cast<size_t>(wr.num_sge++)] = data;
		else if (inline_)
			wr.send_flags |= IBV_SEND_INLINE;
	} else {
		sges[0] = data;
		wr.opcode = work.kind == Kind::write ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ;
		wr.wr.rdma.remote_addr = work.remote;
		wr.wr.rdma.rkey = work.key;
	}
	wr.wr_id = uint64_t{static_cast<uint8_t>(work.kind)} << number_bits | number;
	ibv_send_wr *bad = nullptr;
	const int error = ibv_post_send(id_->qp, &wr, &bad);
	if (error == 0 && work.kind == Kind::message) {
		free_slots_.pop_back();
		slot_works_[number] = work.work;
	}
	return error;
}

void VerbsLink::post(const action::Post &post)
{
	queue({.kind = Kind::message, .message = post.message, .memory = post.data, .work = post.work});
}

void VerbsLink::read(const action::Read &read)
{
	queue({.kind = Kind::read, .memory = read.memory, .work = read.work, .remote = read.remote, .key = read.key});
}

void VerbsLink::write(const action::Write &write)
{
	queue({.kind = Kind::write, .memory = write.memory, .work = write.work, .remote = write.remote, .key = write.key});
}

// ---- completions

void VerbsLink::progress(uint64_t token, uint32_t /*events*/)
{
	if (token != token_ || state_ == State::ended)
		return;
	ibv_cq *cq = nullptr;
	void *context = nullptr;
	if (ibv_get_cq_event(channel_.get(), &cq, &context) != 0)
		return;
	ibv_ack_cq_events(cq, 1);
	if (ibv_req_notify_cq(cq, 0) != 0)
		return fail(EIO);
	poll();
}

void VerbsLink::poll()
{
	// not before there is a machine: what comes with the Reply stays in the queue
	if (state_ != State::open || !cq_)
		return;
	std::array<ibv_wc, 32> completions{};
	int count = 0;
	while (!failed_ && (count = ibv_poll_cq(cq_.get(), completions.size(), completions.data())) > 0)
		for (int i = 0; i < count && !failed_; i++)
			on_completion(completions[static_cast<size_t>(i)]);
	if (count < 0)
		fail(EIO);
	post_queued();
	end_if_sent();
}

void VerbsLink::on_completion(const ibv_wc &completion)
{
	if (completion.status != IBV_WC_SUCCESS)
		return fail(error_of(completion.status));
	const auto kind = static_cast<Kind>(completion.wr_id >> number_bits);
	const uint64_t number = completion.wr_id & ((uint64_t{1} << number_bits) - 1);
	if (kind != Kind::receive)
		return on_sent(kind, number);
	heard_ = true;
	if (completion.byte_len < wire::message_size)
		return fail(EPROTO);
	emit({.kind = LinkEvent::Kind::message,
	      .buffer = static_cast<uint32_t>(number),
	      .length = completion.byte_len - wire::message_size});
}

void VerbsLink::on_sent(Kind kind, uint64_t number)
{
	in_flight_--;
	if (kind == Kind::read || kind == Kind::probe) {
		reads_--;
		heard_ = true;
	}
	uint64_t work = number;
	if (kind == Kind::message) {
		work = slot_works_[number];
		free_slots_.push_back(static_cast<uint32_t>(number));
	}
	if (work != 0)
		emit_done(work);
}

bool VerbsLink::keep_alive(std::chrono::milliseconds /*interval*/)
{
	return true;
}

// A Read of no octets names no memory, and the peer's device answers it without the program. A Read that is under way does
// as well: the device may queue more of them than may be in flight.
void VerbsLink::check_peer()
{
	if (state_ != State::open || failed_)
		return;
	if (std::exchange(heard_, false)) {
		awaited_ = false;
		return;
	}
	if (std::exchange(awaited_, true))
		return fail(ETIMEDOUT);
	if (reads_ == 0)
		queue({.kind = Kind::probe,
		       .memory = {.address = reinterpret_cast<uintptr_t>(slab_.data()), .local_key = slab_mr_->lkey}});
}

void VerbsLink::disconnect()
{
	disconnecting_ = true;
	end_if_sent();
}

void VerbsLink::end_if_sent()
{
	if (!disconnecting_ || failed_ || in_flight_ != 0 || !queued_.empty())
		return;
	rdma_disconnect(id_.get());
	fail(0);
}

// ---- addresses

int VerbsLink::local_address(sockaddr_storage &address) const
{
	if (!id_)
		return ENOTCONN;
	std::memcpy(&address, rdma_get_local_addr(id_.get()), sizeof(address));
	return 0;
}

int VerbsLink::peer_address(sockaddr_storage &address) const
{
	if (!id_)
		return ENOTCONN;
	std::memcpy(&address, rdma_get_peer_addr(id_.get()), sizeof(address));
	return 0;
}

int VerbsLink::protocol() const
{
	return EXS_PROTO_RDMA;
}

// ---- listeners

VerbsListener::VerbsListener(Engine &engine, const std::shared_ptr<Actor> &actor, const sockaddr_storage &address,
			     int backlog, bool v6_only, int &error)
    : engine_(engine)
{
	token_ = engine_.adopt(actor);
	id_.reset(engine_.make_id(token_));
	int only = v6_only ? 1 : 0;
	if (!id_ || (address.ss_family == AF_INET6 &&
		     rdma_set_option(id_.get(), RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &only, sizeof(only)) != 0)) {
		error = errno;
		return;
	}
	error = bind(address);
	if (error == 0 && rdma_listen(id_.get(), backlog) != 0)
		error = errno;
}

// EADDRNOTAVAIL of rdma_cm: the host has no such address, or somebody has the port at an address that includes this one. The
// latter does not concern another port.
int VerbsListener::bind(sockaddr_storage address)
{
	if (rdma_bind_addr(id_.get(), raw(address)) == 0)
		return 0;
	const int error = errno;
	if (error != EADDRNOTAVAIL || port_of(address) == 0)
		return error;
	set_port(address, 0);
	return rdma_bind_addr(id_.get(), raw(address)) == 0 ? EADDRINUSE : error;
}

VerbsListener::~VerbsListener()
{
	if (token_ != 0)
		engine_.forget(token_);
	id_.reset();
}

int VerbsListener::local_address(sockaddr_storage &address) const
{
	std::memcpy(&address, rdma_get_local_addr(id_.get()), sizeof(address));
	return 0;
}

} // namespace libexs
