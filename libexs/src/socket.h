// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#pragma once

#include "engine.h"
#include "exs.h"
#include "handles.h"
#include "link.h"
#include "queue.h"
#include "region.h"
#include "spare.h"
#include "tcp_link.h"
#include "verbs_link.h"

#include <array>
#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>

namespace libexs {

class Socket;

// Wakes exs_poll()
class Readiness {
public:
	void changed();

	// Calls ready() until it is true or the time is over; false then. ready() may take locks of sockets. Throws EINTR.
	bool wait(std::optional<Clock::time_point> until, const std::function<bool()> &ready);

private:
	class Waiter;
	std::mutex mutex_;
	std::set<int> waiters_; // eventfds
	std::atomic<size_t> count_ = 0;
};

// What all sockets have in common
struct Library {
	Readiness readiness;
	Handles<Queue> queues{1};
	Handles<Region> regions{2};
	Handles<Socket> sockets{3};
	std::atomic<OpId> op = 1;
	Domains domains;
	Engines engines; // of queues
	Engine engine; // has rdma_cm's events and all deadlines, and the sockets of queues without one of their own
};

struct Settings {
	uint32_t send_credits = 16;
	uint32_t recv_credits = 16;
	uint32_t small_max = 1024;
	uint16_t ird = 16;
	uint16_t ord = 16;
	uint32_t connect_ms = 30000;
	uint32_t close_ms = 5000;
	uint16_t tcp_port = 0;
	bool exact = false;
	bool shared = false;
	bool v6_only = false;
	bool backlog_wait = false;
	uint32_t reserve = 0;
	uint32_t keepalive_ms = 0;
	uint32_t idle_ms = 0;
};

// A part of a file in memory
class Mapping {
public:
	Mapping(int file, uint64_t offset, size_t length); // throws std::system_error
	~Mapping();
	Mapping(const Mapping &) = delete;
	Mapping &operator=(const Mapping &) = delete;
	[[nodiscard]] uint64_t address() const; // of offset

	// A copy of these, one behind the other; at least one octet
	struct Part {
		std::shared_ptr<Region> region;
		uint64_t address = 0, length = 0;
	};
	Mapping(const std::vector<Part> &parts, size_t length);

private:
	void *start_;
	size_t length_, skip_;
};

// Where an operation reports to
struct Report {
	std::shared_ptr<Queue> queue;
	void *context = nullptr;
};

// One socket. One lock; the progress thread and the program's threads take it in turns. Functions return an errno value, or
// set op to the operation that they start.
class Socket : public Actor, public Sender, public std::enable_shared_from_this<Socket> {
public:
	Socket(Library &library, int domain, int type, int protocol, const Settings &settings = {},
	       std::weak_ptr<Socket> parent = {});
	~Socket() override;

	// Once, when it has its handle
	void set_handle(exs_fd_t handle) { handle_ = handle; }

	int bind(const sockaddr *address, socklen_t length);
	int listen(int backlog);
	int accept(const Report &report, exs_op_t &op);
	int connect(const sockaddr *address, socklen_t length, const Report &report, exs_op_t &op);
	int close(const Report &report, exs_op_t &op); // EBADF: it is closed already
	void abandon() noexcept;		       // likewise, without an event
	int shutdown();
	int getsockname(sockaddr_storage &address);
	int getpeername(sockaddr_storage &address);
	int get_option(int option, unsigned &value);
	int set_option(int option, unsigned value);

	using Part = Mapping::Part;
	struct Transfer {
		std::shared_ptr<Region> region; // or:
		std::unique_ptr<Mapping> mapping;
		uint64_t address = 0, length = 0;
		int flags = 0;
		std::optional<uint64_t> offset{};
		std::vector<Part> parts{}; // of a receive, in place of region and address; none is empty
	};
	// The part is within its region, which is for that; an errno value
	static int check_part(const Part &part, int access);
	int send(Transfer transfer, const Report &report, exs_op_t &op);
	int recv(Transfer transfer, const Report &report, exs_op_t &op);
	int cancel(exs_op_t op);

	// EXS_POLL…
	int poll();
	int start_poll(int events, const Report &report, exs_op_t &op);

	// What uses the region is given up
	void cancel_users(const Region &region) noexcept;

	// The region is not used; no key to it is left
	void forget(const Region &region) noexcept;

	void send_now() override;

	// A thread handles its data
	void move_to_engine(Engine &engine);

	// At once and without events
	void kill();

	void on_ready(uint64_t token, uint32_t events) override;
	void on_cm(uint64_t token, const CmEvent &event) override;
	void on_timer(uint64_t token) override;
	void on_failure() noexcept override;

private:
	enum class State { idle, listening, connecting, connected, failed };
	enum class Timer { connect, handshake, revoke, close, half_open, keepalive, idle };
	using Lock = std::unique_lock<std::mutex>;

	struct Operation {
		exs_event event{}; // as it will be reported
		Report report;
		Transfer transfer; // if it is one: holds its memory
		std::optional<Exposure> exposure; // of its own
		uint64_t deadline = 0;		  // token of the timer that runs since it was cancelled
	};

	struct HalfOpen {
		std::shared_ptr<Socket> child;
		Clock::time_point since;
	};

	// A connection, and the engine of the queue that has accepted it
	struct Handed {
		std::shared_ptr<Socket> child;
		Engine *engine;
	};

	// Over RDMA: of a peer that waits until it can be half open
	struct Request {
		Verbs<rdma_cm_id> id;
		CmEvent event;
	};

	// The regions of a transfer, in use until it ends or keep() is called
	class Uses {
	public:
		explicit Uses(const Transfer &transfer) : transfer_(transfer) {}
		~Uses();
		Uses(const Uses &) = delete;
		Uses &operator=(const Uses &) = delete;
		bool enter(const std::shared_ptr<Socket> &socket); // false: one is deregistered or about to be
		void keep() { count_ = 0; }

	private:
		const Transfer &transfer_;
		size_t count_ = 0;
	};

	// Of a listener: what has been accepted and not been taken yet
	struct Listening {
		std::unique_ptr<VerbsListener> verbs;
		std::unique_ptr<TcpListener> tcp;
		uint16_t stands_for = 0; // the port of verbs, if that of tcp is another one by our choice
		size_t backlog = 1;
		std::deque<HalfOpen> half_open; // the oldest first
		Clock::time_point opened; // the last of them
		std::deque<Request> requests;
		bool paused = false;   // over TCP they wait in the kernel
		bool admitting = false; // admit() is due
		std::deque<std::shared_ptr<Socket>> complete;
		std::deque<OpId> accepts;
	};

	// operations
	Operation &begin(int type, const Report &report);
	static OpId number_of(const Operation &operation) { return static_cast<OpId>(operation.event.op); }
	bool finish(OpId op, int error, uint64_t length = 0, uint32_t flags = 0);
	void drop(OpId op);
	void cancel_transfer(OpId op);
	bool is_deadline(uint64_t token) const;
	int transfer(Transfer &&transfer, const Report &report, int type, exs_op_t &op);
	static int check(const Transfer &transfer, int type);
	template <typename Predicate> static bool any_region(const Transfer &transfer, const Predicate &predicate);
	int expose(const std::shared_ptr<Link> &link, const Transfer &transfer, Access access, Memory &memory,
		   std::optional<Exposure> &own);
	int expose_parts(const std::shared_ptr<Link> &link, const Transfer &transfer, std::vector<Machine::Part> &parts);
	[[nodiscard]] bool has_own_exposure(const Transfer &transfer, Access access, bool is_tcp) const;
	int submit(const Transfer &transfer, int type, OpId op, const Memory &memory, std::vector<Machine::Part> parts);
	int expose_region(const std::shared_ptr<Link> &link, const Region &region, Access access, Exposure &exposure);

	// links
	[[nodiscard]] wire::Hello hello() const;
	[[nodiscard]] uint32_t buffers() const;
	[[nodiscard]] int check_size() const;
	int start_verbs();
	int start_tcp();
	bool start_next_port(int error);
	void settle(bool sends = true);
	void settle_all(bool sends);
	[[nodiscard]] int ready() const;
	void ready_changed();
	void finish_polls(std::set<OpId> &polls, int error, uint32_t reported);
	bool forget_poll(OpId op);
	void on_link(const LinkEvent &event);
	void on_failed(const LinkEvent &event);
	void on_request(const LinkEvent &event);
	void make_machine(const wire::Hello &peer, const Depths &depths, bool initiator);
	bool act();
	void save_addresses();
	void perform(const action::Post &action);
	void perform(const action::Read &action);
	void perform(const action::Write &action);
	void perform(const action::Copy &action);
	void perform(const action::Repost &action);
	void perform(const action::Complete &action);
	void perform(const action::Noted &action);
	void perform(const action::Limit &action);
	void perform(const action::Start &action);
	void perform(const action::Stop &action);
	void perform(const action::Opened &action);
	void perform(const action::Disconnect &action);
	void perform(const action::Abort &action);
	[[nodiscard]] VerbsLink::Workers workers();
	[[nodiscard]] VerbsLink::Sizes sizes() const;
	void move_to(Engine &engine);
	void take_down();
	void end_close();
	void fail(int error);
	void give_up() noexcept;
	[[nodiscard]] bool release(Operation &operation);
	void end_all(int error);
	void fail_connect(int error);

	// listeners
	int listen_verbs(Listening &listening, sockaddr_storage &address);
	int listen_tcp(Listening &listening, sockaddr_storage address);
	int listen_both(Listening &listening, sockaddr_storage &address);
	// One of both. request: its id goes to the child
	void start_as_child(Descriptor connection, Request *request);
	void start_child(const std::shared_ptr<Socket> &child, Descriptor connection, Request *request);
	void take_connections();
	bool has_room();
	std::shared_ptr<Socket> make_child(std::shared_ptr<Socket> &dropped);
	bool admit_one();
	void on_listener_event(const CmEvent &event);
	void admit();
	void admit_soon();
	Engine *child_opened(const std::shared_ptr<Socket> &child);
	void child_lost(const std::shared_ptr<Socket> &child);
	std::vector<Handed> hand_out();
	void reserve_children(std::vector<std::shared_ptr<Socket>> &children) const;
	void stop_listening(int error, std::vector<std::shared_ptr<Socket>> &children);
	void listener_failed(int error);

	[[nodiscard]] bool probes() const;
	void watch_peer();
	void on_idle();
	void start_timer(Timer timer, std::chrono::milliseconds after);
	void stop_timer(Timer timer);

	Library &library_;
	Engine *engine_; // of the data of its link
	const int domain_, type_, protocol_;
	exs_fd_t handle_ = 0;
	std::mutex mutex_; // of all below
	Settings settings_;
	State state_ = State::idle;
	int error_ = 0; // if failed
	std::optional<sockaddr_storage> local_, peer_; // local_: also what is to be bound
	std::map<Timer, uint64_t> timers_;
	Spare spare_; // of the operations
	HashMap<OpId, Operation> operations_{spare_};
	Set<std::pair<const Region *, OpId>> users_{spare_}; // of each region: a revocation does not walk the others
	OpId connect_ = 0, close_ = 0;
	std::array<std::set<OpId>, 4> polls_; // by what they wait for: no event walks them
	bool closing_ = false;

	std::unique_ptr<Listening> listening_;
	const std::weak_ptr<Socket> parent_; // the listener that it comes from

	std::shared_ptr<Link> link_;
	VerbsLink *verbs_ = nullptr; // the link, if it is one
	std::unique_ptr<Machine> machine_;
	int first_error_ = 0;  // of another way to connect
	uint16_t meant_port_ = 0; // of RDMA: of a client that tries the next one over TCP, or of a listener that has it
	std::vector<LinkEvent> spare_events_; // empty, as the next one
	std::vector<Action> spare_actions_;
	bool settling_ = false, down_ = false;
	Clock::time_point heard_; // of the peer, if EXS_IDLE_MS is set
	bool quiet_ = false; // no events any more
	Machine::Config in_force_;
	std::map<std::pair<const Region *, Access>, Exposure> exposures_; // of regions
};

} // namespace libexs
