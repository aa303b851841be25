// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#pragma once

#include <array>
#include <cstddef>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <new>
#include <set>
#include <unordered_map>
#include <utility>

#ifndef __has_feature
#define __has_feature(feature) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer) // gcc, clang
#define LIBEXS_ADDRESS_SANITIZER
#endif

namespace libexs {

// Small memory that containers have given back and that their next elements get, so that a message allocates nothing. It keeps
// a limited amount, whatever the containers once held. It has no lock but that of the containers, and outlives them.
class Spare {
public:
	static constexpr size_t most = 65536; // octets: some hundred operations at a time

	Spare() = default;
	Spare(const Spare &) = delete;
	Spare &operator=(const Spare &) = delete;
	~Spare()
	{
		for (Piece *first : pieces_)
			while (first != nullptr)
				::operator delete(std::exchange(first, first->next));
	}

	void *take(size_t size)
	{
		const size_t kind = kind_of(size);
		if (kind >= pieces_.size())
			return ::operator new(size);
		Piece *const first = pieces_[kind];
		if (first == nullptr)
			return ::operator new(kind * step);
		pieces_[kind] = first->next;
		kept_ -= kind * step;
		return first;
	}

	void put(void *memory, size_t size) noexcept
	{
		const size_t kind = kind_of(size);
		if (kind >= pieces_.size() || kept_ + kind * step > most)
			return ::operator delete(memory);
		kept_ += kind * step;
		pieces_[kind] = new (memory) Piece{pieces_[kind]};
	}

	[[nodiscard]] size_t kept() const { return kept_; } // octets

private:
	struct Piece {
		Piece *next;
	};
	static constexpr size_t step = alignof(std::max_align_t);

#ifdef LIBEXS_ADDRESS_SANITIZER
	static constexpr size_t largest = 0; // all of it is freed, so that a late access is found
#else
	static constexpr size_t largest = 512; // a piece of a deque
#endif
	static size_t kind_of(size_t size) { return (size + step - 1) / step; }

	std::array<Piece *, largest / step + 1> pieces_{};
	size_t kept_ = 0;
};

template <typename T> class SpareAllocator {
public:
	using value_type = T;
	SpareAllocator(Spare &spare) : spare_(&spare) {}
	template <typename U> SpareAllocator(const SpareAllocator<U> &other) : spare_(other.spare()) {}
	[[nodiscard]] T *allocate(size_t count) { return static_cast<T *>(spare_->take(count * sizeof(T))); }
	void deallocate(T *memory, size_t count) noexcept { spare_->put(memory, count * sizeof(T)); }
	[[nodiscard]] Spare *spare() const { return spare_; }
	template <typename U> bool operator==(const SpareAllocator<U> &other) const { return spare_ == other.spare(); }

private:
	Spare *spare_;
};

// Constructed with the Spare
template <typename T> using Deque = std::deque<T, SpareAllocator<T>>;
template <typename T> using List = std::list<T, SpareAllocator<T>>;
template <typename T> using Set = std::set<T, std::less<T>, SpareAllocator<T>>;
template <typename K, typename V> using Map = std::map<K, V, std::less<K>, SpareAllocator<std::pair<const K, V>>>;
template <typename K, typename V>
using HashMap = std::unordered_map<K, V, std::hash<K>, std::equal_to<K>, SpareAllocator<std::pair<const K, V>>>;

} // namespace libexs
