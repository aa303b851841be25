// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#pragma once

#include "engine.h"
#include "link.h"
#include "spare.h"

#include <array>
#include <optional>
#include <random>

namespace libexs {

// The operations of RDMA over a TCP stream: each end answers the other's Reads from its memory and puts its Writes there,
// after the checks that an adapter makes. A frame is a header of 24 octets, big-endian:
//
//	0 kind (1 message, 2 Read Request, 3 Read Response, 4 Write), 1-3 zero
//	4 length: of what follows; of a Read Request, of what is to be read
//	8 address, 16 key: of Read Requests and Writes, else zero
//	20 zero
//
// and what follows is the message with its data, the octets read, or those to be written. Responses come in the order of
// the requests. Both ends begin with a hello.
class TcpLink : public Link {
public:
	struct Buffers {
		uint32_t count = 0;
		uint32_t data = 0; // octets behind a message
	};

	// Connects; established or failed is to come. error: an errno value if it cannot even begin.
	TcpLink(Engine &engine, const std::shared_ptr<Actor> &actor, const sockaddr_storage &to, const sockaddr_storage *from,
		const wire::Hello &hello, const Buffers &buffers, int &error);

	// Takes what a listener has accepted; request is to come
	TcpLink(Engine &engine, const std::shared_ptr<Actor> &actor, Descriptor connection, const Buffers &buffers);

	~TcpLink() override;

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
	void flush() override;
	[[nodiscard]] std::span<const uint8_t> buffer(uint32_t buffer) const override;
	[[nodiscard]] bool keep_alive(std::chrono::milliseconds interval) override;
	void check_peer() override;
	[[nodiscard]] Clock::time_point heard() override;
	void disconnect() override;
	void abort() override;
	[[nodiscard]] int local_address(sockaddr_storage &address) const override;
	[[nodiscard]] int peer_address(sockaddr_storage &address) const override;
	[[nodiscard]] int protocol() const override;

private:
	static constexpr size_t header_size = 24;

	enum class State { connecting, hello, open, ended };
	enum class Kind : uint8_t { hello = 0, message = 1, read_request = 2, read_response = 3, write = 4 };

	struct Header {
		Kind kind = Kind::message;
		uint32_t length = 0;
		uint64_t address = 0;
		uint32_t key = 0;
	};

	// A frame that is to be sent
	struct Out {
		Kind kind;
		std::array<uint8_t, header_size + wire::message_size> head{};
		size_t head_size = 0;
		uint64_t address = 0; // of what follows
		uint64_t length = 0;
		uint32_t key = 0;  // of a Read Response: what it reads from
		uint64_t work = 0; // done when it is sent
		uint64_t sent = 0;
	};

	// Where the rest of a frame goes
	struct In {
		Header header;
		uint8_t *to = nullptr;
		uint64_t left = 0;
		uint32_t buffer = 0;
		uint32_t key = 0; // of a Write
	};

	struct PendingRead {
		uint64_t work;
		Memory memory;
	};

	struct Window {
		uint64_t address, length;
		Access access;
	};

	void start(const Buffers &buffers);
	[[nodiscard]] bool is_own_peer() const;
	void on_connected();
	void receive();
	bool receive_some(size_t &budget);
	bool receive_into(uint8_t *to, size_t &have, size_t want, size_t &budget);
	size_t take_ahead(uint8_t *to, size_t most);
	[[nodiscard]] bool has_ahead() const { return ahead_at_ != ahead_end_; }
	bool on_hello();
	bool on_header();
	bool on_body();
	bool begin_message(const Header &header);
	bool begin_response(const Header &header);
	bool begin_write(const Header &header);
	bool on_read_request(const Header &header);
	std::optional<Window> find_window(uint32_t key, uint64_t address, uint64_t length, Access access);
	Out frame(const Header &header) const;
	void queue(Out out);
	void queue_hello(const wire::Hello &hello);
	bool send_some();
	void on_sent(const Out &out);
	void watch_output();
	void fail(int error);

	Engine *engine_;
	Descriptor fd_;
	uint64_t token_ = 0;
	State state_ = State::hello;
	bool initiator_ = false;
	bool failed_ = false; // the event is out
	bool wants_output_ = false;
	uint64_t acknowledged_ = 0; // octets, when heard() was last called, or of the set-up
	bool disconnecting_ = false;
	wire::Hello own_hello_;

	std::unique_ptr<uint8_t[]> slab_; // of the buffers; not touched before something is received
	size_t buffer_size_ = 0;
	std::vector<uint32_t> free_buffers_;

	std::unique_ptr<uint8_t[]> ahead_; // what has come behind that which was wanted
	size_t ahead_at_ = 0, ahead_end_ = 0;
	unsigned small_bodies_ = 0; // since the last large one
	bool drained_ = false; // the socket has no more now
	std::array<uint8_t, wire::hello_size> head_{};
	size_t head_have_ = 0;
	std::optional<In> in_;
	Spare spare_; // of the containers below, but for windows_
	Deque<Out> out_{spare_};
	uint32_t messages_ = 0; // of these
	uint32_t most_messages_ = 0;
	Deque<PendingRead> reads_{spare_}; // ours
	uint32_t requests_ = 0;		// the peer's Reads that are not answered yet
	HashMap<uint32_t, uint32_t> answers_{spare_}; // of these, by key
	uint16_t ird_ = 0;

	std::mutex windows_mutex_;
	Spare spare_windows_;
	HashMap<uint32_t, Window> windows_{spare_windows_}; // by key
	std::mt19937 random_;
};

// Listens; connections are taken with take()
class TcpListener {
public:
	// error: an errno value
	TcpListener(Engine &engine, const std::shared_ptr<Actor> &actor, const sockaddr_storage &address, int backlog,
		    bool v6_only, int &error);
	~TcpListener();
	TcpListener(const TcpListener &) = delete;
	TcpListener &operator=(const TcpListener &) = delete;

	// None: there is none now. One for which there is no descriptor is dropped, or stays where it is: EMFILE or ENFILE then.
	Descriptor take(bool waits);
	void pause(bool on);
	[[nodiscard]] uint64_t token() const { return token_; }
	[[nodiscard]] int local_address(sockaddr_storage &address) const;
	[[nodiscard]] uint16_t port() const;

private:
	Engine &engine_;
	Descriptor fd_;
	Descriptor spare_;
	uint64_t token_ = 0;
};

} // namespace libexs
