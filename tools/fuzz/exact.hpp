// SPDX-License-Identifier: GPL-2.0
// Buffers of exactly the length that the kernel gets, so that an access to the next byte is found:
// by AddressSanitizer, or by the processor, because an inaccessible page follows the buffer.
#pragma once

#include "effort.hpp"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <new>
#include <span>
#include <sys/mman.h>

class Exact {
public:
    static constexpr std::size_t capacity = 4096;

    Exact()
    {
        if (sanitized)
            return;
        void *const room = mmap(nullptr, 2 * capacity, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (room == MAP_FAILED || mprotect(room, capacity, PROT_READ | PROT_WRITE) != 0)
            throw std::bad_alloc();
        page_ = static_cast<std::uint8_t *>(room);
    }
    Exact(const Exact &) = delete;
    Exact &operator=(const Exact &) = delete;

    /// Room for `length` bytes, valid until the next call. Its contents are undefined.
    std::uint8_t *room(std::size_t length)
    {
        if (length > capacity)
            std::abort();
        if (!sanitized)
            return page_ + capacity - length;
        heap_ = std::make_unique<std::uint8_t[]>(length);
        return heap_.get();
    }

    /// The same room, filled with these bytes.
    std::uint8_t *copy(std::span<const std::uint8_t> bytes)
    {
        std::uint8_t *const to = room(bytes.size());
        std::copy(bytes.begin(), bytes.end(), to);
        return to;
    }

private:
    std::uint8_t *page_ = nullptr; // never freed: the program needs it until its end
    std::unique_ptr<std::uint8_t[]> heap_;
};
