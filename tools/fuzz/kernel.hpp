// SPDX-License-Identifier: GPL-2.0
// The kernel's headers, seen from C++.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>

extern "C" {
#include <rdma/iw_mpa.h>

#include "frame.h"
#include "negotiate.h"
#include "policy.h"
#include "session.h"
}
