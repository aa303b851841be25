// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#pragma once

#include <utility>

#include <unistd.h>

namespace libexs {

// Owns a file descriptor; a negative one is none
class Descriptor {
public:
	Descriptor() = default;
	explicit Descriptor(int fd) : fd_(fd) {}
	Descriptor(Descriptor &&other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
	Descriptor &operator=(Descriptor &&other) noexcept
	{
		std::swap(fd_, other.fd_);
		return *this;
	}
	~Descriptor()
	{
		if (fd_ >= 0)
			::close(fd_);
	}
	[[nodiscard]] int get() const { return fd_; }
	int release() { return std::exchange(fd_, -1); }

private:
	int fd_ = -1;
};

} // namespace libexs
