// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <set>

namespace libexs {

class Socket;

// Memory that the program has registered
class Region {
public:
	Region(uint64_t address, uint64_t length, int access) : address_(address), length_(length), access_(access) {}

	[[nodiscard]] bool has(uint64_t address, uint64_t length) const
	{
		return address >= address_ && address - address_ <= length_ && length <= length_ - (address - address_);
	}
	[[nodiscard]] bool allows(int access) const { return (access_ & access) == access; }
	[[nodiscard]] uint64_t address() const { return address_; }
	[[nodiscard]] uint64_t length() const { return length_; }

	// An operation of the socket uses it from now on; false if it is deregistered or about to be. If it throws, none does.
	bool enter(const std::shared_ptr<Socket> &socket);
	void leave();

	// Nobody can enter any more. False: it is in use, or somebody else retires it.
	bool retire();

	// Likewise, also while it is in use: then() is called when it is not. False: somebody else retires it.
	bool retire(std::function<void()> then);

	[[nodiscard]] bool is_retired();

	// That have used it, without memory of their own: a region that is given up must not fail
	std::shared_ptr<Socket> socket_after(const std::shared_ptr<Socket> &last); // the first one after none; none: that was the last
	std::shared_ptr<Socket> take_socket(); // one of them; none: they have all been taken

private:
	const uint64_t address_, length_;
	const int access_;
	std::mutex mutex_;
	uint64_t users_ = 0;
	bool retired_ = false;
	std::function<void()> then_;
	std::set<std::weak_ptr<Socket>, std::owner_less<>> sockets_;
	size_t sweep_at_ = 16; // so many of them: each new one pays for a constant part of a sweep
};

} // namespace libexs
