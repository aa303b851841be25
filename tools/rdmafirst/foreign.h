// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <cstdint>
#include <string>

#include <infiniband/verbs.h>
#include <sys/types.h>

namespace rdmafirst {

// Null if there is no such device
ibv_context *open_device(const std::string &name);

// A queue pair that another process has made and does nothing with; nothing if WHOSE:DEVICE is empty.
// After "parent" it is a child that goes on; its parent waits for it and ends with its status.
class OthersQp {
public:
	explicit OthersQp(const std::string &whose_and_device);
	~OthersQp();
	OthersQp(const OthersQp &) = delete;
	OthersQp &operator=(const OthersQp &) = delete;

	[[nodiscard]] uint32_t number() const { return number_; }

private:
	void made_by_nobody(const std::string &device);
	void made_by_parent(const std::string &device);
	void made_by_sender(const std::string &device);

	pid_t holder_ = -1;
	int file_ = -1; // of the device
	uint32_t number_ = 0;
};

} // namespace rdmafirst
