// SPDX-License-Identifier: GPL-2.0
// The kernel's header, seen from C++.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>

extern "C" {
#include <rdma/iw_mpa.h>
}
