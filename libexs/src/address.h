// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>

#include <sys/socket.h>

namespace libexs {

// Addresses of AF_INET and AF_INET6
socklen_t address_length(const sockaddr_storage &address);

// Nothing if it is not one of this family, or cut short
std::optional<sockaddr_storage> copy_address(const sockaddr *address, socklen_t length, int family);

// Of an IPv4 peer of a listener of AF_INET6, as the kernel has it: mapped
sockaddr_storage in_family(const sockaddr_storage &address, int family);

bool is_loopback(const sockaddr_storage &address);
bool is_of_this_host(const sockaddr_storage &address);
bool is_wildcard(const sockaddr_storage &address);
uint16_t port_of(const sockaddr_storage &address);
void set_port(sockaddr_storage &address, uint16_t port);

} // namespace libexs
