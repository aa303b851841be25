// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

namespace libexs {

struct VerbsDeleter {
	void operator()(ibv_mr *mr) const { ibv_dereg_mr(mr); }
	void operator()(ibv_cq *cq) const { ibv_destroy_cq(cq); }
	void operator()(ibv_comp_channel *channel) const { ibv_destroy_comp_channel(channel); }
	void operator()(rdma_cm_id *id) const { rdma_destroy_id(id); }
};
template <typename T> using Verbs = std::unique_ptr<T, VerbsDeleter>;

class Registration;

// A protection domain, of one connection or of all that share memory on a device. Each owner has an id of that device, too,
// and keeps it longer.
class Domain : public std::enable_shared_from_this<Domain> {
public:
	// nullptr with errno
	static std::shared_ptr<Domain> make(ibv_context *device);
	~Domain();
	Domain(const Domain &) = delete;
	Domain &operator=(const Domain &) = delete;

	[[nodiscard]] ibv_pd *get() const { return pd_; }

	// The registration of all who name the same memory, as long as one of them has it
	std::shared_ptr<Registration> shared(uint64_t address, uint64_t length, int access);

private:
	friend class Registration;
	using Range = std::tuple<uint64_t, uint64_t, int>;
	explicit Domain(ibv_pd *pd) : pd_(pd) {}
	void forget(const Range &range);

	ibv_pd *const pd_;
	std::mutex mutex_; // of all below
	std::map<Range, std::weak_ptr<Registration>> shared_;
};

// Memory that a device may access, until the last owner leaves
class Registration {
public:
	Registration(std::shared_ptr<Domain> domain, uint64_t address, uint64_t length, int access)
	    : domain_(std::move(domain)), address_(address), length_(length), access_(access)
	{
	}
	~Registration();
	Registration(const Registration &) = delete;
	Registration &operator=(const Registration &) = delete;

	// Once for all owners, who wait for it meanwhile. nullptr with errno.
	ibv_mr *get();

private:
	const std::shared_ptr<Domain> domain_;
	const uint64_t address_, length_;
	const int access_;
	std::mutex mutex_;
	ibv_mr *mr_ = nullptr;
};

// Held while memory is pinned for a new connection, and while memory takes the place of a reserve: nobody else gets that place
inline std::mutex pin_mutex;

// Memory that the peer of one connection may reach. Only the thread that pins it waits for that, which takes long.
class Exposed {
public:
	struct Key {
		const void *mr = nullptr;
		uint32_t local = 0, remote = 0;
	};

	void open(std::shared_ptr<Domain> domain);

	// Pins, between open() and the first add(), as much as memory of this length takes. The first add() with this access gets the place.
	// An errno value.
	int reserve(uint64_t length, int access);

	// An errno value; ENOTCONN: it is closed, or has been closed meanwhile. shared: as by Domain::shared()
	int add(uint64_t address, uint64_t length, int access, bool shared, Key &key);
	void remove(const void *mr); // if it is there

	// Once. All is deregistered when this returns, except memory that another thread is pinning: that one deregisters it, and then
	// destroys the id, which has to outlive the domain.
	void close(Verbs<rdma_cm_id> id);

private:
	struct Pinning;
	struct Free {
		void operator()(void *memory) const { std::free(memory); }
	};
	struct Reserve {
		std::unique_ptr<void, Free> memory;
		std::unique_ptr<Registration> registration{};
	};
	std::mutex mutex_; // of all below
	std::shared_ptr<Domain> domain_; // until close()
	std::multimap<const void *, std::shared_ptr<Registration>> all_;
	std::map<int, Reserve> reserves_; // by access
	unsigned pinning_ = 0; // calls of add()
	Verbs<rdma_cm_id> id_; // from close() until the last of these returns
};

// The domain of a device for connections that share memory
class Domains {
public:
	// nullptr with errno
	std::shared_ptr<Domain> of(ibv_context *device);

private:
	std::mutex mutex_;
	std::map<ibv_context *, std::weak_ptr<Domain>> domains_;
};

} // namespace libexs
