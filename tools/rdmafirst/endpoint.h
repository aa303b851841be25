// SPDX-License-Identifier: GPL-2.0
// What client and server share: handles that close themselves, the event channel with a deadline,
// one connection's queue pair with its buffers.
#pragma once

#include <array>
#include <bit>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <netinet/in.h>
#include <rdma/rdma_cma.h>

namespace rdmafirst {

using Clock = std::chrono::steady_clock;

// The exit status; tests/ rely on the numbers.
enum class Exit : int {
	ok = 0,
	failed = 1,   // the connection failed, or did not do what it was to do
	usage = 2,    // bad arguments, or a system call failed before there was a connection
	deadline = 3, // nothing happened for too long
	rejected = 4, // client: the server rejected
	stopped = 5,  // by SIGTERM, after everything was destroyed in order
};

// An option of rdma_set_option() at the level of rdma_mpa.h
struct MpaOption {
	int name;
	std::vector<uint8_t> value;
};

struct Options {
	std::string address;
	uint16_t port = 0;
	std::string source;       // client: bound to before the address of the server is resolved
	uint16_t source_port = 0; // 0: rdma_cm chooses
	std::vector<uint8_t> pdata;        // with connect or accept
	std::vector<std::string> send; // client: once established; server: right after accept
	std::optional<std::string> expect; // client: what is to be received
	std::optional<std::vector<uint8_t>> reject; // server: reject with this private data
	std::chrono::milliseconds timeout{30000};
	std::chrono::milliseconds delay{0}; // server: between request and answer
	unsigned count = 1;                 // server: connections, 0 = no end
	int backlog = 16;
	unsigned listeners = 1; // server: on so many ports, the first and those behind it
	unsigned responder_resources = 4;
	unsigned initiator_depth = 4;
	bool receive = true; // client: wait for a message
	bool hold = false;   // client: stay connected until the peer or the device goes
	bool read = false;   // client: post an RDMA Read once established; server: right after accept
	std::chrono::milliseconds linger{0}; // client: look for further events after the outcome
	unsigned side_by_side = 0; // client: hold so many connections, whatever comes of them
	unsigned times = 1;        // client: number of successive connections
	uint16_t port_step = 0;    // client: each goes to a port that is higher by this
	std::string again;   // server: "accept" or "reject" once more after accept
	std::vector<MpaOption> mpa_early;  // client: set before there is a device
	std::vector<MpaOption> mpa;	   // set before connect or listen
	std::vector<MpaOption> mpa_bad;	   // client: has to be refused after that
	std::vector<MpaOption> mpa_late;   // has to be refused after listen or connect
	std::vector<MpaOption> mpa_accept; // server: set before accept
	bool spoil = false;  // accept or connect with a queue pair that is in error
	std::string qp_of; // connect or accept with a queue pair of somebody else: WHOSE:DEVICE
	uint32_t qpn = 0;  // that has this number; 0: with one of our own
	bool too_early = false; // client: post a request that is no good before it connects
	bool cut = false; // client: disconnect during rdma_connect()
	bool disconnect_early = false; // client: call rdma_disconnect() during rdma_connect()
	bool disconnect_again = false; // call rdma_disconnect() after DISCONNECTED as well
	bool disconnect_first = false; // server: call rdma_disconnect() as soon as a message is received
	bool torn = false; // client: disconnect while another thread destroys the queue pair
	bool other_pd = false; // server: expose memory of another protection domain
	bool deny = false; // server: remove all remote access rights from the queue pair
	std::string modify; // client: ask for this state of the queue pair before it connects
	unsigned tries = 1; // server: number of attempts to listen
	bool forget = false; // server: deregister the memory of its messages when there is a connection
	bool restless = false; // server: modify the queue pair all the time
	bool expose = false; // server: send where the peer may write and read: address and rkey
	size_t pages = 2; // of that
	std::string take_back; // server: deregister the exposed memory when this file appears
	std::string odd;     // client: what odd thing to do once established
	std::string ignore;  // server: leave requests with this private data unanswered
	bool talk = false;   // server: send each message back, or write where it says, without end
	bool flooded = false; // client: ask for these writes
	uint16_t beside = 0; // client: connect side by side to this port as well, and count the answers of both
	std::chrono::seconds measured{30}; // client: for so long
	std::string device; // holder: of this name
	bool busy = false; // holder: poll all the time
};

struct SystemError : std::runtime_error {
	explicit SystemError(std::string_view what); // adds strerror(errno)
};

struct DeadlinePassed : std::runtime_error {
	using std::runtime_error::runtime_error;
};

struct Stopped : std::runtime_error {
	using std::runtime_error::runtime_error;
};

struct ChannelDeleter {
	void operator()(rdma_event_channel *channel) const { rdma_destroy_event_channel(channel); }
};
struct IdDeleter {
	static inline bool leave_qp = false; // to the end of the process
	void operator()(rdma_cm_id *id) const
	{
		if (id->qp && !leave_qp)
			rdma_destroy_qp(id);
		rdma_destroy_id(id);
	}
};
struct MrDeleter {
	void operator()(ibv_mr *mr) const { ibv_dereg_mr(mr); }
};
using Channel = std::unique_ptr<rdma_event_channel, ChannelDeleter>;
using Id = std::unique_ptr<rdma_cm_id, IdDeleter>;
using Mr = std::unique_ptr<ibv_mr, MrDeleter>;
struct PdDeleter {
	void operator()(ibv_pd *pd) const { ibv_dealloc_pd(pd); }
};
using Pd = std::unique_ptr<ibv_pd, PdDeleter>;

// A copy of an rdma_cm event, acknowledged already (else the id could not be destroyed).
struct Event {
	rdma_cm_id *id = nullptr;
	rdma_cm_event_type type{};
	int status = 0;
	uint8_t responder_resources = 0;
	uint8_t initiator_depth = 0;
	bool has_conn = false; // the three others and pdata mean something
	std::vector<uint8_t> pdata;

	[[nodiscard]] std::string describe() const;
};

struct Completion {
	bool receive = false;
	bool read = false;
	ibv_wc_status status{};
	std::string data; // received
};

// The queue pair of an id, with the buffers of a few short messages.
class Endpoint {
public:
	static constexpr size_t sends = 3;

	explicit Endpoint(Id id);

	[[nodiscard]] rdma_cm_id *id() const { return id_.get(); }
	void create_qp(size_t send_queue = sends, bool signal_all = true); // with receives posted
	void spoil_qp();  // no connection can come of it any more
	void disconnect(); // and print the outcome
	void deny_access(); // the peer may neither read nor write
	void modify(const std::string &state); // and tell what came of it
	void post_too_early(); // it stays in the queue, although it is refused; its key is no good
	void forget_soon(); // deregister, half a second later, the memory that messages are received into
	void keep_receiving() { keep_receiving_ = true; } // each receive is posted again
	void be_restless(); // keep modifying the queue pair to its current state, until the end
	void post_send(std::string_view text);
	bool post_read(); // from nowhere in particular; false if it is refused
	[[nodiscard]] std::string describe_qp() const; // the depths installed
	void post(ibv_send_wr &wr); // lkey and an address of the buffer are filled in where there is no address
	std::vector<Completion> completions(); // does not wait
	// How many of the work requests that were posted have not completed, receives not counted if
	// only_sends; waits a little for them.
	unsigned never_completed(bool only_sends = false);
	void expect_one_more() { pending_++; } // that was posted behind our back
	void forget_receives(unsigned n) { pending_ -= n, pending_receives_ -= n; } // polled behind our back
	// "ADDRESS RKEY LKEY OTHER", in hexadecimal; without remote access: LKEY is of the memory of messages,
	// OTHER of the same as RKEY
	std::string expose(size_t pages);
	void use_other_pd(); // a protection domain that is not the queue pair's, for what is exposed
	void take_back_at(const std::string &file);
	// Pages that the peer may read and write, with letters in the order of the alphabet
	static constexpr char letter(size_t at) { return static_cast<char>('a' + at % 26); }
	const ibv_mr *expose_pages(size_t pages = 2);
	[[nodiscard]] char *message() { return &buffer_[receives * slot_size]; } // where post() has its address from
	[[nodiscard]] size_t send_queue_size() const { return send_queue_size_; } // as siw makes it
	[[nodiscard]] bool has_qp() const { return id_->qp != nullptr; }

private:
	static constexpr size_t receives = 2;
	static constexpr size_t slot_size = 1024;

	void poll(ibv_cq *cq, std::vector<Completion> &out);
	void post_receive(char *slot);

	std::array<char, (receives + sends) * slot_size> buffer_{};
	size_t posted_ = 0; // sends and reads
	size_t send_queue_size_ = 0;
	unsigned pending_ = 0; // work requests that have not completed
	unsigned pending_receives_ = 0; // among them
	bool keep_receiving_ = false;
	Id id_;
	Mr mr_; // is released first
	std::unique_ptr<char, decltype(&std::free)> pages_{nullptr, &std::free};
	Pd other_pd_;
	Mr exposed_;
	Mr not_exposed_; // the same pages
	std::jthread restless_;
	std::jthread forgetful_;
};

// A work request of which a completion tells
ibv_send_wr signaled(ibv_wr_opcode opcode, std::span<ibv_sge> sges);
int modify_qp(ibv_qp *qp); // to what it is; an errno

// Prints one line; the reader may be waiting for it.
void say(std::string_view line);
std::string hex(std::span<const uint8_t> bytes);
rdma_conn_param conn_param(const Options &options);
sockaddr_storage socket_address(const Options &options);
sockaddr_storage socket_address(const std::string &address, uint16_t port);
MpaOption mpa_option(const std::string &text); // "NAME=VALUE"; throws std::invalid_argument
void set_mpa_options(rdma_cm_id *id, std::span<const MpaOption> options);
void try_bad_mpa_options(rdma_cm_id *id, std::span<const MpaOption> options); // throws if one is taken
Channel make_channel();
Id make_id(rdma_event_channel *channel);
std::optional<Event> next_event(rdma_event_channel *channel);

// From here on SIGTERM is seen by wait_readable().
void catch_sigterm();

// Waits until one of the descriptors has something to read. Throws DeadlinePassed, Stopped.
void wait_readable(std::span<const int> fds, Clock::time_point deadline, std::string_view what);
std::vector<int> descriptors(const rdma_event_channel *channel, std::span<const Endpoint *const> endpoints);

std::string pinned_memory(); // of this process, as /proc says it

// patient.cpp
void leave_to_nobody(void *page, size_t size); // who looks at it waits for ever
Exit run_stuck(const Options &options);
Exit run_resolver(const Options &options);
Exit run_holder(const Options &options);

// odd.cpp
std::vector<std::string> odd_things();
size_t send_queue_for(const std::string &odd); // how many work requests it needs room for
Exit do_odd(Endpoint &endpoint, const std::string &what, std::string_view exposed);

Exit run_client(const Options &options);
Exit run_server(const Options &options);

} // namespace rdmafirst
