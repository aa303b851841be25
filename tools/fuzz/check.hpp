// SPDX-License-Identifier: GPL-2.0
// Assertions of a harness. A failed check aborts, and libFuzzer keeps the input.
#pragma once

#include <cstdio>
#include <cstdlib>

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) [[unlikely]] {                                                           \
            std::fprintf(stderr, "%s:%d: violated: %s\n", __FILE__, __LINE__, #condition);         \
            std::abort();                                                                          \
        }                                                                                          \
    } while (0)

/// premise implies conclusion
#define CHECK_IF(premise, conclusion) CHECK(!(premise) || (conclusion))
