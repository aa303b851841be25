// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#include "domain.h"

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
