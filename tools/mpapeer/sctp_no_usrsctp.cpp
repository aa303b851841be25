// SPDX-License-Identifier: GPL-2.0
// In the place of sctp_usrsctp.cpp where libusrsctp is missing.
#include "sctp_stack.hpp"

#include <stdexcept>

namespace mpapeer {

std::unique_ptr<SctpStack> make_usrsctp_stack(const SctpOptions &)
{
    throw std::runtime_error("--stack usrsctp: this mpapeer was built without libusrsctp");
}

} // namespace mpapeer
