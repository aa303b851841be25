// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
// The kernel's side, seen from C++
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {
#include "dg_error.h"
#include "dg_track.h"
#include "dg_wire.h"
}
