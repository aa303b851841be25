// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//
// operator new of the tests and of the libraries that they load. It fails if must_fail() says so, which the one file defines that
// includes this.
#ifndef EXS_TESTS_FAILING_NEW_H
#define EXS_TESTS_FAILING_NEW_H

#include <cstdlib>
#include <cstring>
#include <new>

#include <dlfcn.h>

static bool must_fail(const void *caller);

static inline bool is_of(const char *library, const void *caller)
{
	Dl_info info{};
	return ::dladdr(caller, &info) != 0 && std::strstr(info.dli_fname, library) != nullptr;
}

[[gnu::noinline]] void *operator new(size_t size)
{
	if (must_fail(__builtin_return_address(0)))
		throw std::bad_alloc();
	if (void *const memory = std::malloc(size))
		return memory;
	throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void *memory) noexcept
{
	std::free(memory);
}
[[gnu::noinline]] void operator delete(void *memory, size_t /*size*/) noexcept
{
	std::free(memory);
}

#endif
