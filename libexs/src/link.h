// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#pragma once

#include "machine.h"

#include <chrono>
#include <memory>

#include <sys/socket.h>

namespace libexs {

class Actor;
class Engine;

// What an owner of a link is to do with memory
enum class Access {
	source, // the peer may read it, we may send it
	sink,	// we may read into it
	target, // the peer may write it
};

// Who reads memory: the peer of one connection, or those of all that share their registrations
enum class Readers { one, all };

// Memory as a link knows it
struct Exposure {
	uint32_t local_key = 0;
	uint32_t remote_key = 0;
	const void *registration = nullptr; // the link's
};

struct Depths {
	uint16_t ird = 0; // Reads of the peer's at a time
	uint16_t ord = 0; // Reads of ours at a time
};

// What has happened on a link
struct LinkEvent {
	enum class Kind {
		request,     // of a peer: hello, depths that are possible. accept() or refuse() is due.
		established, // by us: the peer's hello, depths in force
		failed,	     // to connect: error
		message,     // in buffer, length octets of data behind it
		done,	     // work
		lost,	     // error
	} kind;
	wire::Hello hello{};
	Depths depths{};
	int error = 0;
	bool other_way = false; // failed: there may be another protocol to try
	uint32_t buffer = 0;
	uint64_t length = 0;
	uint64_t work = 0;
};

// Carries out what a connection machine wants. With the lock of its socket, if not said otherwise. Errors in carrying
// out are events, LinkEvent::lost.
class Link {
public:
	Link() = default;
	Link(const Link &) = delete;
	Link &operator=(const Link &) = delete;
	virtual ~Link() = default; // after abort()

	// next: empty; the next ones go to its memory
	std::vector<LinkEvent> take(std::vector<LinkEvent> next = {}) { return std::exchange(events_, std::move(next)); }

	// Another thread handles it from now on. False: that cannot watch its descriptor.
	virtual bool move_to(Engine &engine, const std::shared_ptr<Actor> &actor) = 0;

	// Something is to be had of the descriptor that is watched with this token
	virtual void progress(uint64_t token, uint32_t events) = 0;

	// The answer to a request; hello has our depths
	virtual void accept(const wire::Hello &hello) = 0;
	virtual void refuse(wire::Reason reason) = 0;

	// Without the lock of the socket: it takes long. An errno value.
	virtual int expose(uint64_t address, uint64_t length, Access access, Readers readers, Exposure &exposure) = 0;
	virtual void withdraw(const Exposure &exposure) = 0;

	virtual void post(const action::Post &post) = 0;
	virtual void read(const action::Read &read) = 0;
	virtual void write(const action::Write &write) = 0;
	virtual void repost(uint32_t buffer) = 0;
	[[nodiscard]] virtual std::span<const uint8_t> buffer(uint32_t buffer) const = 0;

	// What was posted since the last time is on its way when this returns, or waits for room
	virtual void flush() {}

	// A peer whose host is gone will be lost from now on. True: check_peer() is due in these intervals.
	[[nodiscard]] virtual bool keep_alive(std::chrono::milliseconds interval) = 0;
	virtual void check_peer() = 0;

	// When the peer's host has sent or acknowledged something, if no event tells that
	[[nodiscard]] virtual std::chrono::steady_clock::time_point heard() { return {}; }

	// When all that was posted has been sent; ends with LinkEvent::lost
	virtual void disconnect() = 0;

	// Nothing reaches memory any more when this returns, and all that was exposed is withdrawn. May come twice.
	virtual void abort() = 0;

	[[nodiscard]] virtual int local_address(sockaddr_storage &address) const = 0;
	[[nodiscard]] virtual int peer_address(sockaddr_storage &address) const = 0;
	[[nodiscard]] virtual int protocol() const = 0; // enum exs_protocol

protected:
	void emit(LinkEvent event) { events_.push_back(event); }
	void emit_lost(int error) { emit({.kind = LinkEvent::Kind::lost, .error = error}); }
	void emit_done(uint64_t work) { emit({.kind = LinkEvent::Kind::done, .work = work}); }
	[[nodiscard]] bool has_events() const { return !events_.empty(); }

private:
	std::vector<LinkEvent> events_;
};

} // namespace libexs
