// SPDX-License-Identifier: GPL-2.0
// CRC-32C (Castagnoli), as iSCSI and MPA use it.
#pragma once

#include "bytes.hpp"

namespace mpapeer {

/// CRC-32C of a byte string (RFC 5044 section 4.4). MPA stores it low byte first.
std::uint32_t crc32c(ByteView bytes);

} // namespace mpapeer
