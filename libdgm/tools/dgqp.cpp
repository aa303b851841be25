// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
// dgqp: a UD queue pair of the verbs for tests, of a device of type siw_dg or of any other
#include <arpa/inet.h>
#include <dlfcn.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <infiniband/verbs.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace {

constexpr size_t grh = 40;

struct Options {
	std::string device, group, provider, target, data = "hello";
	int gid = 0, timeout = 30;
	uint32_t qkey = 0x11111111, count = 1, depth = 16, qpn = 0;
	size_t size = 2048;
	uint16_t port = 0;
	bool use_inline = false, solicited = false, events = false;
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

class Qp {
public:
	explicit Qp(const Options &options);
	void post_receives(uint32_t number);
	void send(const ibv_gid &to, uint32_t qpn, size_t length);
	// The next completion in time, or false
	bool next(ibv_wc &wc, std::chrono::steady_clock::time_point until);
	void modify(ibv_qp_attr attr, int mask) { done(ibv_modify_qp(qp_.get(), &attr, mask), "ibv_modify_qp"); }
	void to_error();
	[[nodiscard]] std::span<uint8_t> buffer(uint64_t index)
	{
		return {memory_.data() + index % options_.depth * stride_, stride_};
	}
	[[nodiscard]] uint32_t number() const { return qp_->qp_num; }
	[[nodiscard]] int drain();

private:
	void open();
	void create(ibv_qp_init_attr &init);
	void make_ready();

	const Options &options_;
	size_t stride_;
	std::vector<uint8_t> memory_;
	uint64_t posted_ = 0;
	Owned<ibv_context, ibv_close_device> context_;
	Owned<ibv_pd, ibv_dealloc_pd> pd_;
	Owned<ibv_mr, ibv_dereg_mr> mr_;
	Owned<ibv_comp_channel, ibv_destroy_comp_channel> channel_;
	Owned<ibv_cq, ibv_destroy_cq> cq_;
	Owned<ibv_qp, ibv_destroy_qp> qp_;
	Owned<ibv_ah, ibv_destroy_ah> ah_;
};

Qp::Qp(const Options &options)
	: options_(options), stride_(options.size + grh), memory_(stride_ * options.depth)
{
	open();
	pd_.reset(made(ibv_alloc_pd(context_.get()), "ibv_alloc_pd"));
	mr_.reset(made(ibv_reg_mr(pd_.get(), memory_.data(), memory_.size(), IBV_ACCESS_LOCAL_WRITE), "ibv_reg_mr"));
	channel_.reset(made(ibv_create_comp_channel(context_.get()), "ibv_create_comp_channel"));
	cq_.reset(made(ibv_create_cq(context_.get(), static_cast<int>(2 * options.depth), nullptr, channel_.get(), 0),
		       "ibv_create_cq"));
	ibv_qp_init_attr init{};
	init.send_cq = init.recv_cq = cq_.get();
	init.cap = {.max_send_wr = options.depth, .max_recv_wr = options.depth, .max_send_sge = 2, .max_recv_sge = 2,
		    .max_inline_data = 64};
	init.qp_type = IBV_QPT_UD;
	create(init);
	make_ready();
}

void Qp::open()
{
	int number = 0;
	Owned<ibv_device *, ibv_free_device_list> list(made(ibv_get_device_list(&number), "ibv_get_device_list"));
	for (ibv_device *device : std::span(list.get(), static_cast<size_t>(number)))
		if (options_.device == ibv_get_device_name(device))
			context_.reset(made(ibv_open_device(device), "ibv_open_device"));
	if (!context_)
		throw std::runtime_error("no device " + options_.device);
}

// A socket with this port, for siwdg_create_qp() of the provider
int bound_socket(uint16_t port)
{
	const int fd = ::socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0), on = 1;
	sockaddr_in6 any{};
	any.sin6_family = AF_INET6;
	any.sin6_port = htons(port);
	if (fd < 0 || ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0 ||
	    ::bind(fd, reinterpret_cast<sockaddr *>(&any), sizeof(any)) != 0)
		fail("socket", errno);
	return fd;
}

void Qp::create(ibv_qp_init_attr &init)
{
	if (options_.port == 0) {
		qp_.reset(made(ibv_create_qp(pd_.get(), &init), "ibv_create_qp"));
		return;
	}
	using Create = ibv_qp *(*)(ibv_pd *, ibv_qp_init_attr *, int);
	void *library = dlopen(options_.provider.c_str(), RTLD_NOW);
	auto create = library ? reinterpret_cast<Create>(dlsym(library, "siwdg_create_qp")) : nullptr;
	if (create == nullptr)
		throw std::runtime_error(dlerror());
	const int fd = bound_socket(options_.port);
	qp_.reset(made(create(pd_.get(), &init, fd), "siwdg_create_qp"));
	::close(fd);
}

void Qp::make_ready()
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

void Qp::send(const ibv_gid &to, uint32_t qpn, size_t length)
{
	if (!ah_) {
		ibv_ah_attr attr{};
		attr.is_global = 1;
		attr.port_num = 1;
		attr.grh.dgid = to;
		attr.grh.sgid_index = static_cast<uint8_t>(options_.gid);
		attr.grh.hop_limit = 64;
		ah_.reset(made(ibv_create_ah(pd_.get(), &attr), "ibv_create_ah"));
	}
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

bool Qp::next(ibv_wc &wc, std::chrono::steady_clock::time_point until)
{
	for (;;) {
		done(ibv_req_notify_cq(cq_.get(), options_.solicited), "ibv_req_notify_cq");
		const int found = ibv_poll_cq(cq_.get(), 1, &wc);
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

auto deadline(const Options &options)
{
	return std::chrono::steady_clock::now() + std::chrono::seconds(options.timeout);
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

int receive(const Options &options)
{
	Qp qp(options);
	fmt::print("ready {}\n", qp.number());
	std::fflush(stdout);
	const auto until = deadline(options);
	for (uint32_t got = 0; got < options.count; got++) {
		ibv_wc wc{};
		if (!qp.next(wc, until))
			return 1;
		print(wc, qp.buffer(wc.wr_id));
		std::fflush(stdout);
		if (wc.status == IBV_WC_SUCCESS)
			qp.post_receives(1);
	}
	return 0;
}

int send(const Options &options)
{
	Qp qp(options);
	const auto memory = qp.buffer(0);
	std::copy_n(options.data.begin(), std::min(options.data.size(), memory.size()), memory.begin());
	const ibv_gid to = parse_gid(options.target);
	const size_t length = std::max(options.data.size(), options.size == Options().size ? 0 : options.size);
	const auto until = deadline(options);
	int status = 0;
	for (uint32_t sent = 0; sent < options.count; sent++) {
		ibv_wc wc{};
		qp.send(to, options.qpn, length);
		do {
			if (!qp.next(wc, until))
				return 1;
		} while (wc.opcode != IBV_WC_SEND);
		if (wc.status != IBV_WC_SUCCESS) {
			fmt::print("status {}\n", ibv_wc_status_str(wc.status));
			status = 2;
		}
	}
	return status;
}

// Requests of both queues complete when the QP enters ERROR
int flush(const Options &options)
{
	Qp qp(options);
	const auto until = deadline(options);
	qp.to_error();
	for (uint32_t got = 0; got < options.depth; got++) {
		ibv_wc wc{};
		if (!qp.next(wc, until) || wc.status != IBV_WC_WR_FLUSH_ERR)
			return 1;
	}
	// A request that is posted now, too
	qp.post_receives(1);
	ibv_wc wc{};
	return qp.next(wc, until) && wc.status == IBV_WC_WR_FLUSH_ERR ? 0 : 1;
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

// Each allocation in the kernel fails once, from the device's opening to a Send
int fault(const Options &options)
{
	const ibv_gid to = parse_gid(options.target);
	uint64_t n = 1, errors = 0;
	for (bool failed = true; failed; n++) {
		fail_allocation(n);
		try {
			Qp qp(options);
			qp.send(to, qp.number(), 100);
		} catch (const std::runtime_error &) {
			errors++;
		}
		failed = has_failed();
	}
	fmt::print("{} allocations, {} errors\n", n - 2, errors);
	return errors > 0 ? 0 : 1;
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
	app.add_option("--size", o.size, "octets of a message")->check(CLI::Range(1U, 1U << 20));
	app.add_option("--timeout", o.timeout, "seconds");
	app.add_option("--group", o.group, "multicast group to join");
	app.add_option("--port", o.port, "UDP port of a socket that the QP is to use");
	app.add_option("--provider", o.provider, "library of the provider, for --port");
	app.add_flag("--solicited", o.solicited, "solicited events");
}

} // namespace

int main(int argc, char **argv)
{
	CLI::App app{"A UD queue pair for tests of datagram iWARP"};
	app.require_subcommand(1);
	Options o;
	CLI::App *in = app.add_subcommand("receive", "receive messages");
	CLI::App *out = app.add_subcommand("send", "send messages; exit status 2 if one completes with an error");
	CLI::App *err = app.add_subcommand("flush", "check that ERROR flushes the receive queue");
	CLI::App *random = app.add_subcommand("fuzz", "write random numbers into the shared queues until --timeout");
	CLI::App *faults = app.add_subcommand("fault", "fail each allocation in the kernel once");
	for (CLI::App *sub : {in, out, err, random, faults})
		add_common(*sub, o);
	for (CLI::App *sub : {out, random, faults}) {
		sub->add_option("target", o.target, "address")->required();
		sub->add_option("qpn", o.qpn, "QP number");
		sub->add_option("--data", o.data, "the message's first octets");
		sub->add_flag("--inline", o.use_inline, "data in the request");
	}
	CLI11_PARSE(app, argc, argv);
	try {
		return in->parsed() ? receive(o) : out->parsed() ? send(o) : err->parsed() ? flush(o) : random->parsed() ? fuzz(o) : fault(o);
	} catch (const std::exception &e) {
		fmt::print(stderr, "dgqp: {}\n", e.what());
		return 3;
	}
}
