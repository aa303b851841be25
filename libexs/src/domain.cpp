// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#include "domain.h"

#include <cerrno>
#include <utility>

#include <unistd.h>

namespace libexs {

std::shared_ptr<Domain> Domain::make(ibv_context *device)
{
	ibv_pd *pd = ibv_alloc_pd(device);
	if (pd == nullptr)
		return nullptr;
	try {
		return std::shared_ptr<Domain>(new Domain(pd));
	} catch (...) {
		ibv_dealloc_pd(pd);
		throw;
	}
}

Domain::~Domain()
{
	ibv_dealloc_pd(pd_);
}

std::shared_ptr<Registration> Domain::shared(uint64_t address, uint64_t length, int access)
{
	const std::lock_guard lock(mutex_);
	auto &known = shared_[{address, length, access}];
	auto found = known.lock();
	if (!found) {
		found = std::make_shared<Registration>(shared_from_this(), address, length, access);
		known = found;
	}
	return found;
}

// Unless somebody has named it again
void Domain::forget(const Range &range)
{
	const std::lock_guard lock(mutex_);
	if (const auto found = shared_.find(range); found != shared_.end() && found->second.expired())
		shared_.erase(found);
}

Registration::~Registration()
{
	domain_->forget({address_, length_, access_});
	if (mr_ != nullptr)
		ibv_dereg_mr(mr_);
}

ibv_mr *Registration::get()
{
	const std::lock_guard lock(mutex_);
	if (mr_ == nullptr)
		mr_ = ibv_reg_mr(domain_->get(), reinterpret_cast<void *>(static_cast<uintptr_t>(address_)), length_, access_);
	return mr_;
}

// Counts a call of add()
struct Exposed::Pinning {
	explicit Pinning(Exposed &exposed) : all(exposed)
	{
		const std::lock_guard lock(all.mutex_);
		all.pinning_++;
	}
	~Pinning()
	{
		Verbs<rdma_cm_id> id; // not destroyed with the lock held
		const std::lock_guard lock(all.mutex_);
		if (--all.pinning_ == 0)
			id = std::move(all.id_);
	}
	Pinning(const Pinning &) = delete;
	Pinning &operator=(const Pinning &) = delete;
	Exposed &all;
};

void Exposed::open(std::shared_ptr<Domain> domain)
{
	const std::lock_guard lock(mutex_);
	domain_ = std::move(domain);
}

int Exposed::reserve(uint64_t length, int access)
{
	const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
	// one more: the memory itself need not begin with a page
	const uint64_t size = (length + page - 1) / page * page + page;
	Reserve reserve{.memory = std::unique_ptr<void, Free>(std::aligned_alloc(page, size))};
	if (!reserve.memory)
		return ENOMEM;
	const std::lock_guard lock(mutex_);
	const auto address = reinterpret_cast<uintptr_t>(reserve.memory.get());
	// nobody but us: what is in it is not ours to show
	reserve.registration = std::make_unique<Registration>(domain_, address, size, IBV_ACCESS_LOCAL_WRITE);
	if (reserve.registration->get() == nullptr)
		return errno;
	reserves_.insert_or_assign(access, std::move(reserve));
	return 0;
}

int Exposed::add(uint64_t address, uint64_t length, int access, bool shared, Key &key)
{
	const Pinning pinning(*this); // outlives the registration and the domain
	std::unique_lock lock(mutex_);
	const auto domain = domain_;
	auto reserve = reserves_.extract(access);
	lock.unlock();
	if (!domain)
		return ENOTCONN;
	auto registration = shared ? domain->shared(address, length, access) :
				     std::make_shared<Registration>(domain, address, length, access);
	std::unique_lock alone(pin_mutex, std::defer_lock);
	if (reserve) {
		alone.lock();
		reserve = {};
	}
	const ibv_mr *const mr = registration->get();
	if (mr == nullptr)
		return errno;
	lock.lock();
	if (!domain_)
		return ENOTCONN;
	key = {.mr = mr, .local = mr->lkey, .remote = mr->rkey};
	all_.emplace(mr, std::move(registration));
	return 0;
}

void Exposed::remove(const void *mr)
{
	const std::lock_guard lock(mutex_);
	if (const auto found = all_.find(mr); found != all_.end())
		all_.erase(found);
}

void Exposed::close(Verbs<rdma_cm_id> id)
{
	const std::lock_guard lock(mutex_);
	domain_.reset();
	all_.clear();
	reserves_.clear();
	if (pinning_ != 0)
		id_ = std::move(id);
}

std::shared_ptr<Domain> Domains::of(ibv_context *device)
{
	const std::lock_guard lock(mutex_);
	std::erase_if(domains_, [](const auto &one) { return one.second.expired(); });
	auto &known = domains_[device];
	auto found = known.lock();
	if (!found) {
		found = Domain::make(device);
		known = found;
	}
	return found;
}

} // namespace libexs
