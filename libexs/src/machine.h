// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#pragma once

#include "spare.h"
#include "wire.h"

#include <cstdint>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

// One connection, from the moment that it is established: events in, actions out. Pure: no clock, no lock, no I/O, no
// memory but its own. Errors are errno values. doc/design.md has the protocol.
namespace libexs {

using OpId = uint64_t; // an operation of the user; the caller's number, never used twice

// Octets of the user's; keys are the link's
struct Memory {
	uint64_t address = 0;
	uint64_t length = 0;
	uint32_t local_key = 0;
	uint32_t remote_key = 0;
};

namespace action {

// A message; data is gathered behind it (ADV_IMM), and done(work) is due then, if work is not 0
struct Post {
	wire::Message message{};
	Memory data{};
	uint64_t work = 0;
};

// memory.address and memory.length say where to or from; done(work) is due
struct Read {
	uint64_t work;
	Memory memory;
	uint64_t remote;
	uint32_t key;
};
struct Write {
	uint64_t work;
	Memory memory;
	uint64_t remote;
	uint32_t key;
};

// From the data of a message that was received into this buffer
struct Copy {
	uint32_t buffer;
	uint64_t offset;
	Memory to;
};

// The buffer may be received into again. Comes before any Post that entitles the peer to fill it.
struct Repost {
	uint32_t buffer;
};

// Exactly once for each operation that was taken; the peer has left its memory alone by then, or cannot reach it
struct Complete {
	OpId op;
	int error = 0;
	uint64_t length = 0;
	bool eof = false;
	bool truncated = false;
};

// The peer has read a persistent send so many times
struct Noted {
	OpId op;
	uint32_t count;
};

// From now on it waits for an answer to its Reads or Writes alone, which the peer may never give. May come twice.
struct Limit {
	OpId op;
};

enum class Timer { revoke, close };

// timeout() is due unless it is stopped in time
struct Start {
	Timer timer;
};
struct Stop {
	Timer timer;
};

// Messages can be exchanged
struct Opened {};

// Both ends have closed: when all that was posted has been sent, take the connection down, then call gone()
struct Disconnect {};

// Take the connection down at once, so that no memory can be reached, then call gone()
struct Abort {
	int error;
};

} // namespace action

using Action = std::variant<action::Post, action::Read, action::Write, action::Copy, action::Repost, action::Complete,
			    action::Noted, action::Limit, action::Start, action::Stop, action::Opened, action::Disconnect, action::Abort>;

class Machine {
public:
	struct Config {
		bool initiator = false;
		bool stream = false;
		uint32_t send_credits = 1; // in force, both
		uint32_t recv_credits = 1;
		uint32_t send_immediate = 0; // in force, both
		uint32_t recv_immediate = 0;
		uint32_t ord = 0;	       // Reads that we may have in flight
		uint32_t ird = 0;	       // that the peer may have in flight
		uint64_t largest = 1ULL << 20; // octets of one Read or Write; at least 1
		uint32_t writes = 8;	       // in flight
	};

	struct SendRequest {
		OpId op = 0;
		Memory memory;
		std::optional<uint64_t> offset{}; // into the peer's persistent memory
		bool persistent = false;
		bool notify = false;
	};

	// Memory of a receive that is in pieces, and where each one begins in it
	struct Part {
		uint64_t start = 0;
		Memory memory;
	};

	struct RecvRequest {
		OpId op = 0;
		Memory memory;
		std::optional<uint64_t> offset{}; // into the peer's persistent memory
		bool persistent = false;
		bool wait_all = false;
		std::vector<Part> parts{}; // if any: memory has their length alone; not persistent
	};

	// Buffers that have to be posted before start()
	static uint32_t buffers(uint32_t send_credits, uint32_t recv_credits) { return send_credits + recv_credits + 8; }

	explicit Machine(const Config &config);
	Machine(const Machine &) = delete;
	Machine &operator=(const Machine &) = delete;

	// ---- events of the user. Errors refuse the call; there is no Complete for it then.

	int send(const SendRequest &request);
	int recv(const RecvRequest &request);

	// The operation completes soon, with ECANCELED unless it was done already. ENOENT: no such operation (any more). The deadline of its
	// REVOKE is action::Timer::revoke, as soon as that of those before it; without one action::Limit comes.
	int cancel(OpId op);

	// Nothing will be sent any more; what was sent before still is
	int shutdown();

	// Nothing is wanted any more
	void close();

	// ---- events of the link

	// The connection is established; the responder is open with the peer's first message
	void start();

	// A message with so many octets of data behind it has come into this buffer. bytes: the message alone.
	void message(std::span<const uint8_t> bytes, uint64_t data, uint32_t buffer);

	// A Read or Write is complete, or a Post with data has been sent
	void done(uint64_t work);

	// The connection has ended or cannot go on
	void lost(int error);

	// After Abort or Disconnect: nothing of the connection is left
	void gone();

	// A timer that was started and not stopped
	void timeout();

	// ---- what came of it

	// next: empty; the next ones go to its memory
	std::vector<Action> take(std::vector<Action> next = {}) { return std::exchange(actions_, std::move(next)); }

	[[nodiscard]] bool readable() const; // a recv would not wait
	[[nodiscard]] bool writable() const; // a send would be advertised at once
	[[nodiscard]] bool open() const { return phase_ == Phase::open; }
	[[nodiscard]] bool ended() const { return phase_ == Phase::dead; }
	[[nodiscard]] int error() const { return error_; } // why it is dead; 0 if in good order

private:
	enum class Phase {
		waiting,      // for start(), or for the peer's READY
		open,
		draining,     // one end wants to close: nothing new is begun
		closed,	      // CLOSE is sent
		disconnecting,
		dead,
	};

	// What we send, or let the peer read
	struct Send {
		SendRequest request;
		enum class State { queued, advertised, writing, settled } state = State::queued;
		uint32_t id = 0;      // of the advertisement
		uint64_t written = 0; // octets posted
		uint32_t writes = 0;  // in flight
		bool posting = false; // its data have not all been sent yet
		bool canceled = false;
		int error = 0; // if settled: with this it completes as soon as it is not posting
		uint64_t length = 0;
	};

	// What we receive, or let the peer write
	struct Recv {
		RecvRequest request;
		uint64_t assigned = 0; // octets of it that come from advertisements
		uint32_t reads = 0;    // in flight
		uint32_t from = 0;     // the advertisement of which this has a part (SEQPACKET)
		uint32_t id = 0;       // of our own advertisement, of persistent memory
		bool canceled = false;
		bool limit_due = false; // action::Limit, after the answer to its REVOKE
		bool finished = false; // complete as soon as no Read is in flight and all before it are
		int error = 0;
		bool eof = false;
		bool truncated = false;
	};

	// What the peer has to be read
	struct Advert {
		uint32_t id = 0;
		uint64_t length = 0;
		uint64_t address = 0;
		uint32_t key = 0;
		bool persistent = false;
		bool notify = false;
		std::optional<uint32_t> buffer; // that holds immediate data
		bool immediate = false;
		uint64_t assigned = 0;
		uint32_t reads = 0; // in flight
		uint32_t notes = 0; // not sent yet
		bool closed = false;   // nothing more will be taken of it
		bool revoking = false; // likewise, and what was begun is given up
		bool again = false;    // what was begun is given up, then it is as new
		bool ending = false;   // is in ending_
		wire::Status status = wire::Status::ok;
	};

	// Memory of the peer's that we may write
	struct RemoteMemory {
		uint32_t id = 0;
		uint64_t length = 0;
		uint64_t address = 0;
		uint32_t key = 0;
		bool revoking = false;
	};

	using SendPlace = List<Send>::iterator;
	using RecvPlace = List<Recv>::iterator;
	using AdvertPlace = List<Advert>::iterator;

	struct ReadWork {
		RecvPlace recv;
		AdvertPlace advert;
		uint64_t local; // into the receive's memory
	};

	template <typename T> void emit(T &&action) { actions_.emplace_back(std::forward<T>(action)); }
	void post(const wire::Message &message);
	void complete(OpId op, int error, uint64_t length = 0, bool eof = false, bool truncated = false);
	void protocol_error();
	void forget_all();
	uint32_t next_id();
	[[nodiscard]] bool has_credit() const { return outstanding_ < config_.send_credits; }
	void pump();

	// sending
	void pump_sends();
	[[nodiscard]] int refuse_write(const SendRequest &request) const;
	bool write(SendPlace send);
	void finish_write(SendPlace send);
	bool advertise(SendPlace send);
	void settle(SendPlace send, int error, uint64_t length = 0);
	void send_fin();
	void cancel_send(SendPlace send);
	SendPlace find_advertised(uint32_t id);
	void remove(SendPlace send);

	// receiving
	void pump_recvs();
	RecvPlace next_recv();
	AdvertPlace next_advert();
	[[nodiscard]] bool all_adverts_closed() const { return next_advert_ == adverts_.end(); }
	bool serve(RecvPlace recv);
	bool serve_persistent(RecvPlace recv);
	bool take_stream(RecvPlace recv, AdvertPlace advert);
	bool take_packet(RecvPlace recv, AdvertPlace advert);
	bool read_persistent(RecvPlace recv, AdvertPlace advert);
	bool fill_persistent(RecvPlace recv, AdvertPlace advert);
	bool read(RecvPlace recv, AdvertPlace advert, uint64_t local, uint64_t remote,
		  uint64_t length);
	static Memory place(const RecvRequest &request, uint64_t at, uint64_t length);
	void copy(Advert &advert, const RecvRequest &to, uint64_t at, uint64_t length);
	[[nodiscard]] uint64_t next_length(RecvPlace recv, uint64_t left) const;
	void finish_recv(RecvPlace recv, int error = 0);
	void end_without_data(RecvPlace recv);
	void close_advert(AdvertPlace advert, wire::Status status = wire::Status::ok);
	void release_soon(AdvertPlace advert);
	void read_again(AdvertPlace advert);
	bool is_written_by_peer(uint32_t id);
	void complete(RecvPlace recv);
	void reap_first_recvs();
	void reap_recvs();
	bool can_release(AdvertPlace advert);
	void reap_adverts();
	void release_advert(AdvertPlace advert);
	void forget_match(Advert &advert);
	void send_notes(Advert &advert);
	void cancel_recv(RecvPlace recv);

	// messages
	void dispatch(const wire::Message &message, uint32_t buffer);
	void on_ready();
	void on_advert(const wire::Message &message, uint32_t buffer);
	void on_remote_memory(const wire::Message &message);
	void on_ack(const wire::Message &message);
	void on_send_ack(SendPlace send, const wire::Message &message);
	void on_recv_ack(RecvPlace recv, const wire::Message &message);
	void on_note(const wire::Message &message);
	void on_note_ack(const wire::Message &message);
	void on_revoke(const wire::Message &message);
	void on_revoked(const wire::Message &message);
	void on_fin();
	void on_close(const wire::Message &message);
	bool take_id(uint32_t id);
	[[nodiscard]] bool was_received(uint32_t id) const;
	[[nodiscard]] bool is_plausible(const Send &send, const wire::Message &ack) const;

	// revoking
	void answer_revoke();
	bool is_outstanding(uint32_t id);
	void send_revoke();

	// closing
	void drain();
	void drain_sends();
	void drain_recvs();
	void try_close();
	void finish_close();

	Config config_;
	Phase phase_ = Phase::waiting;
	std::vector<Action> actions_;
	int error_ = 0;
	Spare spare_; // of all below

	// No event walks a list: its cost must not grow with what is posted
	List<Send> sends_{spare_}; // in the order of the calls
	SendPlace next_send_ = sends_.end(); // the first one that has not been handed over whole; those before have been
	HashMap<uint32_t, SendPlace> advertised_{spare_}; // by id
	HashMap<OpId, SendPlace> send_ops_{spare_};
	uint32_t id_ = 0;	// of our last advertisement
	uint32_t outstanding_ = 0;
	uint32_t writes_ = 0; // in flight
	uint64_t work_ = 0;
	Map<uint64_t, SendPlace> write_works_{spare_}, post_works_{spare_};
	std::optional<RemoteMemory> remote_;
	bool fin_wanted_ = false, fin_sent_ = false;

	List<Recv> recvs_{spare_}; // in the order of the calls; one that the peer writes to is the last
	RecvPlace next_recv_ = recvs_.end(); // those before are finished
	HashMap<OpId, RecvPlace> recv_ops_{spare_};
	std::vector<RecvPlace> overtaking_; // cancelled before they had anything
	List<Advert> adverts_{spare_};
	AdvertPlace next_advert_ = adverts_.end(); // the first one that is not closed; none behind it is
	HashMap<uint32_t, AdvertPlace> advert_ids_{spare_};
	std::vector<AdvertPlace> ending_; // to be released when no Read of them is in flight
	bool reap_due_ = false; // one of these may have none
	uint32_t peer_id_ = 0; // of the peer's last advertisement
	uint64_t taken_ids_ = 0;
	uint32_t reads_ = 0;   // in flight
	Map<uint64_t, ReadWork> read_works_{spare_};
	bool fin_received_ = false;
	bool dropped_ = false; // the peer closed before we had all that it advertised
	uint32_t note_ = 0;    // of which the NOTE_ACK is due

	Deque<uint32_t> revokes_{spare_}; // that have to be sent
	uint32_t revoke_ = 0;	       // of which the REVOKED is due
	uint32_t peer_revoke_ = 0;     // which we have to answer

	bool close_wanted_ = false;	 // by the user
	bool close_received_ = false;
	bool close_is_answer_ = false; // what we received: the peer had ours
	bool sent_answer_ = false;     // likewise, what we sent
};

} // namespace libexs
