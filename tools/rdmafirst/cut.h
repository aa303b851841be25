// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <cstdint>

namespace rdmafirst {

// The system call alone, of an id that only librdmacm knows the number of; false if it fails
bool disconnect_by_number(int fd, uint32_t id);

// The next event, which the kernel writes to this address; false if it fails
bool get_event_into(int fd, void *address);

} // namespace rdmafirst
