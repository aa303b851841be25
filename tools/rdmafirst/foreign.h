// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <cstdint>

#include <infiniband/verbs.h>
#include <sys/types.h>

namespace rdmafirst {

// A queue pair of another process, which does nothing with it
class ForeignQp {
public:
	explicit ForeignQp(ibv_device *device);
	~ForeignQp();
	ForeignQp(const ForeignQp &) = delete;
	ForeignQp &operator=(const ForeignQp &) = delete;

	[[nodiscard]] uint32_t number() const { return number_; }

private:
	pid_t pid_;
	uint32_t number_ = 0;
};

} // namespace rdmafirst
