// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace libexs {

// Handles of one kind: a number for the kind, a generation, a place. An object that was removed is not
// found by its old handle, even if another one has its place now.
template <typename T> class Handles {
public:
	explicit Handles(uint8_t kind) : kind_(kind) {}

	// tell() gets the handle before anybody else can have it
	int64_t add(std::shared_ptr<T> object, const std::function<void(int64_t)> &tell = {})
	{
		const std::lock_guard lock(mutex_);
		uint32_t place = 0;
		if (free_ < reserve) {
			place = static_cast<uint32_t>(slots_.size());
			slots_.emplace_back();
		} else {
			place = first_free_;
			first_free_ = slots_[place].next_free;
			free_--;
		}
		slots_[place].object = std::move(object);
		if (tell)
			tell(handle(place));
		return handle(place);
	}

	std::shared_ptr<T> find(int64_t number) const
	{
		const std::lock_guard lock(mutex_);
		const auto place = static_cast<uint32_t>(number);
		if (place >= slots_.size() || handle(place) != number)
			return nullptr;
		return slots_[place].object;
	}

	// Returns the object to the caller that removes it, and to no other. Cannot fail for want of memory.
	std::shared_ptr<T> remove(int64_t number) noexcept
	{
		const std::lock_guard lock(mutex_);
		const auto place = static_cast<uint32_t>(number);
		if (place >= slots_.size() || handle(place) != number || !slots_[place].object)
			return nullptr;
		auto object = std::move(slots_[place].object);
		slots_[place].object = nullptr;
		slots_[place].generation = (slots_[place].generation + 1) & generations;
		(free_++ == 0 ? first_free_ : slots_[last_free_].next_free) = place;
		last_free_ = place;
		return object;
	}

	std::vector<std::shared_ptr<T>> all() const
	{
		const std::lock_guard lock(mutex_);
		std::vector<std::shared_ptr<T>> objects;
		for (const Slot &slot : slots_)
			if (slot.object)
				objects.push_back(slot.object);
		return objects;
	}

private:
	static constexpr uint32_t generations = (1U << 28) - 1;
	static constexpr size_t reserve = 64; // free places, so that none is used again soon

	struct Slot {
		std::shared_ptr<T> object;
		uint32_t generation = 0;
		uint32_t next_free = 0;
	};

	[[nodiscard]] int64_t handle(uint32_t place) const
	{
		return static_cast<int64_t>(uint64_t{kind_} << 60 | uint64_t{slots_[place].generation} << 32 | place);
	}

	const uint8_t kind_; // 1 to 7
	mutable std::mutex mutex_;
	std::vector<Slot> slots_;
	size_t free_ = 0; // places; the one that was freed first is used first
	uint32_t first_free_ = 0, last_free_ = 0;
};

} // namespace libexs
