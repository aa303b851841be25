// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#pragma once

#include "exs.h"

#include "../src/descriptor.h"

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <vector>

#include <sys/socket.h>
#include <sys/time.h>

// The relay stands between a program's sockets and libexs. The program has one end of a socket pair, an ordinary descriptor
// that can be polled, read, written, passed on and inherited; the relay has the other end, and carries octets between it
// and an exs socket, through memory that it has registered. One thread does it all.
namespace shim {

using libexs::Descriptor;

struct Address {
	sockaddr_storage storage{};
	socklen_t length = 0;

	[[nodiscard]] const sockaddr *raw() const { return reinterpret_cast<const sockaddr *>(&storage); }
};

// The answers to a program that asks about a descriptor that we made
struct Facts {
	inline static std::mutex mutex; // of all of them, so that fork() can take it
	Address local, peer;
	bool listening = false;
	bool connected = false;
	std::atomic<uint32_t> decided = 0; // connected or failed; 1: for wait()
	int error = 0;	      // SO_ERROR, once; also what a read gets, when there are no more octets
	int fd = -1;	      // the program's, when it was seen last
	bool ownerless = false; // of no entry; kept as long as the program has the descriptor

	// Until it is decided. A signal ends it as it ends a system call: EINTR, if its handler is not to restart calls or there is a limit.
	int wait(const timeval &limit); // an errno value; ETIMEDOUT
	void decide();			// wakes those who wait
};

// One end of a socket pair in this process, which a child of fork() closes from the first moment on: by a copy of a program's end it would
// hide that the program has closed it, and by one of ours that the connection is lost.
class End {
public:
	End() = default;
	End(End &&other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
	End &operator=(End &&other) noexcept
	{
		std::swap(fd_, other.fd_);
		return *this;
	}
	~End();
	[[nodiscard]] int get() const { return fd_; }

private:
	friend class Relay;
	explicit End(int fd) : fd_(fd) {}
	int fd_ = -1;
};

// Lost connections, also for children that were forked before. Each has a place by its inode, which a much later one takes from it.
class Losses {
public:
	Losses(); // throws std::system_error
	void add(ino_t inode, int error);
	int take(ino_t inode); // 0: none, or somebody else has it

private:
	static constexpr size_t places = 65536;
	std::atomic<uint64_t> &place(ino_t inode) { return all_[inode % places]; }
	std::atomic<uint64_t> *all_;
};

// The inodes of the sockets that this process has open; nothing if /proc cannot be read
std::optional<std::set<ino_t>> open_sockets();

class Relay {
public:
	static constexpr size_t slots = 2, slot_size = 65536; // of a connection, in each direction

	static Relay &instance(); // starts it

	// The program's end of a new listener or connection; an errno value. keepalive_ms: EXS_KEEPALIVE_MS.
	int listen(const Address &local, bool v6_only, int backlog, unsigned keepalive_ms, End &end);
	// blocks: for limit at most, if it is not 0, then EINPROGRESS
	int connect(const Address &to, const std::optional<Address> &from, bool blocks, const timeval &limit, unsigned keepalive_ms, End &end);

	// Of a descriptor, if it is one of ours
	std::shared_ptr<Facts> find(int fd);

	// In a child: why a connection of its parent's is lost, once; 0: it is not
	int take_loss(int fd);

	// A connection of a listener that this process has inherited
	void adopt(int fd, const Address &local, const Address &peer);

	// Around fork(), after Facts::mutex: find() works in the child then, the rest does not
	static void lock() { mutex_.lock(); }
	static void unlock() { mutex_.unlock(); }
	void close_ends();

	// Waits, for this long at most, until all data that was sent has left
	void finish(std::chrono::seconds patience);

	Relay(const Relay &) = delete;
	Relay &operator=(const Relay &) = delete;

private:
	friend class End;
	using Clock = std::chrono::steady_clock;

	// Octets on their way
	struct Slot {
		size_t start = 0, length = 0; // of what is in it
		exs_op_t op = 0;	      // under way
		bool starved = false;	      // its operation waits for memory
	};

	// For one direction: over RDMA it is pinned for each use that it may have
	struct Memory {
		explicit Memory(int access);
		~Memory() { exs_mderegister(handle); }
		Memory(const Memory &) = delete;
		Memory &operator=(const Memory &) = delete;
		std::vector<uint8_t> bytes;
		exs_mh_t handle;
	};

	struct Entry {
		Entry() = default;
		virtual ~Entry() { exs_close(fd, 0, nullptr); } // if nobody has
		Entry(const Entry &) = delete;
		Entry &operator=(const Entry &) = delete;
		End end; // ours
		uint64_t number = 0;
		exs_fd_t fd = 0;
		uint32_t watched = 0;
		std::shared_ptr<Facts> facts = std::make_shared<Facts>();
		ino_t inode = 0; // of the program's end
	};

	struct Connection : Entry {
		std::unique_ptr<Memory> out = std::make_unique<Memory>(EXS_MEM_SEND), in = std::make_unique<Memory>(EXS_MEM_RECV);
		std::array<Slot, slots> sends, recvs;
		std::deque<size_t> arrived; // receives that have to be written, in order
		size_t junk = 0;	    // that the program's end was filled up with
		bool open = false;	    // connected
		bool end_of_input = false;  // the program has shut down or closed
		bool has_left = false;	    // the program has closed
		bool shut = false;	    // exs_shutdown() is done
		bool end_of_peer = false;   // all has been received
		bool told = false;	    // the program has been told
		bool lost = false;	    // the connection has failed
		bool unread = false;	    // our end has octets that nobody reads
		exs_op_t connecting = 0;
		Clock::time_point deadline; // of an orphan
	};

	struct Listener : Entry {
		exs_op_t accepting = 0;
		~Listener() override { exs_close(accepted, 0, nullptr); }
		Listener() = default;
		exs_fd_t accepted = 0; // waits for descriptors or memory
		End waiting; // for room in the socket pair
		Address peer;
	};

	Relay();
	~Relay() = delete;

	void loop();
	int make_pair(int type, End &program, End &own);
	void add(const std::shared_ptr<Entry> &entry, int program_end);
	template <typename Function> void guarded(Entry &entry, const Function &function);
	void settle(); // waits until the thread has handled all that has happened
	void on_requests();
	void begin(Entry &entry);
	void end_all();
	void on_ready(uint64_t number, uint32_t events);
	void on_event(const exs_event &event);
	void on_connection_event(Connection &connection, const exs_event &event);
	void on_connected(Connection &connection, const exs_event &event);
	static void take_junk(Connection &connection);
	void leave_unread(Connection &connection);
	void refuse_input(Connection &connection);
	static void read_rest(const Connection &connection);
	void lose(Connection &connection);
	void leave_facts(ino_t inode);
	void on_accepted(Listener &listener, const exs_event &event);
	bool take_accepted(Listener &listener);
	void on_sent(Connection &connection, Slot &slot, const exs_event &event);
	void on_received(Connection &connection, size_t slot, const exs_event &event);
	void open(Connection &connection);
	void pass_on(Listener &listener);
	void feed();
	void take_from_program(Connection &connection);
	bool give_to_program(Connection &connection);
	bool send(Connection &connection, Slot &slot);
	void receive(Connection &connection, size_t slot);
	bool is_starved(const Connection &connection, exs_op_t op);
	void advance(Connection &connection);
	void renew(Connection &orphan);
	[[nodiscard]] int time_left() const;
	void drop_orphans(size_t most);
	void drop(uint64_t number, bool keep_facts = false);
	void retire(std::unique_ptr<Memory> memory);
	void watch(Entry &entry, uint32_t events);
	static void *context_of(const Entry &entry);
	static bool is_any_under_way(const std::array<Slot, slots> &of);
	static bool is_any_starved(const std::array<Slot, slots> &of);
	static uint8_t *place(Memory &memory, const Slot &slot) { return &memory.bytes[slot.start]; }

	Descriptor epoll_, wake_;
	Losses losses_;
	exs_qh_t queue_ = 0;
	inline static std::mutex mutex_; // of requests_, facts_ and the fd of each, ends_, finishing_
	std::condition_variable empty_, settled_;
	std::map<uint64_t, std::shared_ptr<Entry>> requests_; // of other threads, to become entries_
	std::map<ino_t, std::shared_ptr<Facts>> facts_;
	size_t ownerless_ = 0, most_ownerless_ = 256; // of facts_
	std::set<int> ends_; // each End
	uint64_t asked_ = 0, answered_ = 0; // by settle()
	bool finishing_ = false;
	bool idle_ = true;
	std::map<uint64_t, std::shared_ptr<Entry>> entries_; // of the thread alone, like:
	std::set<std::pair<Clock::time_point, uint64_t>> orphans_; // closed by the program, by their deadlines
	bool is_ending_ = false;  // finishing_, seen by the thread
	uint64_t to_answer_ = 0;  // asked_, likewise
	int passes_ = 0;	  // before that: what had happened is handled then
	bool is_starved_ = false; // an entry waits for memory or descriptors
	std::atomic<uint64_t> number_ = 2;
};

} // namespace shim
