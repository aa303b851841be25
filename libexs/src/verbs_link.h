// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#pragma once

#include "cm_event.h"
#include "domain.h"
#include "engine.h"
#include "link.h"

#include <deque>

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

namespace libexs {

// A connection of rdma_cm's: siw, rxe, an adapter; whatever has the address. A protection domain of its own, so that no
// key is good for any other connection, unless it shares memory.
class VerbsLink : public Link {
public:
	struct Sizes {
		uint32_t buffers = 0;
		uint32_t data = 0;  // octets behind a message in each
		uint32_t sends = 0; // works that may be posted at a time, to begin with
		uint32_t reserve = 0; // octets that can be exposed for a source, and for a sink
	};

	// Who does the work
	struct Workers {
		Engine &engine;		    // of rdma_cm's events
		Engine &data;		    // of completions
		Domains *domains = nullptr; // if it shares memory
	};

	// Connects; established or failed is to come. error: an errno value if it cannot even begin.
	VerbsLink(const Workers &workers, const std::shared_ptr<Actor> &actor, const sockaddr_storage &to,
		  const sockaddr_storage *from, const wire::Hello &hello, const Sizes &sizes, Clock::time_point until,
		  int &error);

	// Takes a request to a listener; request is to come
	VerbsLink(const Workers &workers, const std::shared_ptr<Actor> &actor, Verbs<rdma_cm_id> id, const CmEvent &request,
		  const Sizes &sizes);

	~VerbsLink() override;

	void on_cm(const CmEvent &event);
	[[nodiscard]] bool owns(uint64_t token) const { return token == id_token_; }

	bool move_to(Engine &engine, const std::shared_ptr<Actor> &actor) override;
	void progress(uint64_t token, uint32_t events) override;
	void accept(const wire::Hello &hello) override;
	void refuse(wire::Reason reason) override;
	int expose(uint64_t address, uint64_t length, Access access, Readers readers, Exposure &exposure) override;
	void withdraw(const Exposure &exposure) override;
	void post(const action::Post &post) override;
	void read(const action::Read &read) override;
	void write(const action::Write &write) override;
	void repost(uint32_t buffer) override;
	[[nodiscard]] std::span<const uint8_t> buffer(uint32_t buffer) const override;
	[[nodiscard]] bool keep_alive(std::chrono::milliseconds interval) override;
	void check_peer() override;
	void disconnect() override;
	void abort() override;
	[[nodiscard]] int local_address(sockaddr_storage &address) const override;
	[[nodiscard]] int peer_address(sockaddr_storage &address) const override;
	[[nodiscard]] int protocol() const override;

private:
	enum class State { resolving, connecting, requested, open, ended };
	enum class Kind : uint8_t { message = 1, read = 2, write = 3, receive = 4, probe = 5 };

	// What is to be posted
	struct Work {
		Kind kind;
		wire::Message message{};
		Memory memory{};
		uint64_t work = 0;
		uint64_t remote = 0;
		uint32_t key = 0;
	};

	void resolve();
	void on_resolved();
	void on_route();
	void on_established(const CmEvent &event);
	void on_rejected(const CmEvent &event);
	int make_queues();
	int make_memory();
	[[nodiscard]] int flags_of(Access access) const;
	int make_queue_pair();
	int post_receive(uint32_t buffer);
	[[nodiscard]] Depths device_depths() const;
	void queue(const Work &work);
	void post_queued();
	int post_now(const Work &work);
	void poll();
	void on_completion(const ibv_wc &completion);
	void on_sent(Kind kind, uint64_t number);
	void end_if_sent();
	void fail(int error, bool other_way = false);

	Engine &engine_;
	Engine *data_;
	Domains *const domains_;
	std::shared_ptr<Actor> actor_; // until abort()
	Verbs<rdma_cm_id> id_;
	uint64_t id_token_ = 0;
	sockaddr_storage to_{};
	sockaddr_storage from_{};
	bool has_from_ = false;
	Clock::time_point until_;
	State state_ = State::resolving;
	bool initiator_ = false;
	bool failed_ = false;
	bool disconnecting_ = false;
	wire::Hello own_hello_;
	Sizes sizes_;

	std::shared_ptr<Domain> domain_;
	Verbs<ibv_comp_channel> channel_;
	Verbs<ibv_cq> cq_;
	uint64_t token_ = 0; // of the channel
	bool inline_ = false;

	std::vector<uint8_t> slab_; // buffers, then a place for each message that is being sent
	size_t buffer_size_ = 0;
	Verbs<ibv_mr> slab_mr_;
	std::vector<uint64_t> slot_works_; // of messages being sent: done when they are
	std::vector<uint32_t> free_slots_;
	std::deque<Work> queued_;
	uint32_t queued_messages_ = 0;
	uint32_t in_flight_ = 0; // works posted
	uint32_t reads_ = 0;	 // of these, with those in queued_
	bool heard_ = false;	 // of the peer, since the last check_peer()
	bool awaited_ = false;	 // an answer, since the one before

	bool is_iwarp_ = false; // for expose(), like:
	Exposed exposed_;
};

// A listener of rdma_cm's; connection requests go to the actor's on_cm()
class VerbsListener {
public:
	// error: an errno value; ENODEV: no device has the address; EADDRNOTAVAIL: nor has the host
	VerbsListener(Engine &engine, const std::shared_ptr<Actor> &actor, const sockaddr_storage &address, int backlog,
		      bool v6_only, int &error);
	~VerbsListener();
	VerbsListener(const VerbsListener &) = delete;
	VerbsListener &operator=(const VerbsListener &) = delete;

	[[nodiscard]] uint64_t token() const { return token_; }
	[[nodiscard]] int local_address(sockaddr_storage &address) const;

private:
	int bind(sockaddr_storage address);

	Engine &engine_;
	Verbs<rdma_cm_id> id_;
	uint64_t token_ = 0;
};

// Refuses a request that nobody is going to take
void refuse_request(rdma_cm_id *id, wire::Reason reason);

} // namespace libexs
