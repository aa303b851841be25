// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>
#include <deque>
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
		if (free_.size() < reserve) {
			place = static_cast<uint32_t>(slots_.size());
			slots_.emplace_back();
		} else {
			place = free_.front();
			free_.pop_front();
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

	// Returns the object to the caller that removes it, and to no other
	std::shared_ptr<T> remove(int64_t number)
	{
		const std::lock_guard lock(mutex_);
		const auto place = static_cast<uint32_t>(number);
		if (place >= slots_.size() || handle(place) != number || !slots_[place].object)
			return nullptr;
		auto object = std::move(slots_[place].object);
		slots_[place].object = nullptr;
		slots_[place].generation = (slots_[place].generation + 1) & generations;
		free_.push_back(place);
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
	};

	[[nodiscard]] int64_t handle(uint32_t place) const
	{
		return static_cast<int64_t>(uint64_t{kind_} << 60 | uint64_t{slots_[place].generation} << 32 | place);
	}

	const uint8_t kind_; // 1 to 7
	mutable std::mutex mutex_;
	std::vector<Slot> slots_;
	std::deque<uint32_t> free_;
};

} // namespace libexs
