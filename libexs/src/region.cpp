// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#include "region.h"

#include <utility>

namespace libexs {

bool Region::enter(const std::shared_ptr<Socket> &socket)
{
	const std::lock_guard lock(mutex_);
	if (retired_)
		return false;
	if (sockets_.insert(socket).second && sockets_.size() >= sweep_at_) {
		std::erase_if(sockets_, [](const auto &weak) { return weak.expired(); });
		sweep_at_ = 2 * sockets_.size() + 16;
	}
	users_++; // last: nothing may fail behind it
	return true;
}

void Region::leave()
{
	std::function<void()> then;
	{
		const std::lock_guard lock(mutex_);
		if (--users_ == 0)
			then = std::exchange(then_, nullptr);
	}
	if (then)
		then();
}

bool Region::retire()
{
	const std::lock_guard lock(mutex_);
	if (retired_ || users_ != 0)
		return false;
	retired_ = true;
	return true;
}

bool Region::retire(std::function<void()> then)
{
	{
		const std::lock_guard lock(mutex_);
		if (retired_)
			return false;
		retired_ = true;
		if (users_ != 0) {
			then_ = std::move(then);
			return true;
		}
	}
	then();
	return true;
}

bool Region::is_retired()
{
	const std::lock_guard lock(mutex_);
	return retired_;
}

std::shared_ptr<Socket> Region::socket_after(const std::shared_ptr<Socket> &last)
{
	const std::lock_guard lock(mutex_);
	std::shared_ptr<Socket> next;
	for (auto at = sockets_.upper_bound(last); !next && at != sockets_.end(); ++at)
		next = at->lock();
	return next;
}

std::shared_ptr<Socket> Region::take_socket()
{
	const std::lock_guard lock(mutex_);
	std::shared_ptr<Socket> taken;
	while (!taken && !sockets_.empty())
		taken = sockets_.extract(sockets_.begin()).value().lock();
	return taken;
}

} // namespace libexs
