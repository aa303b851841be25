// SPDX-License-Identifier: GPL-2.0
// What the attributes of rdma_mpa.h mean, as JSON and back.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "attributes.hpp"

namespace mpanl {

using Json = nlohmann::ordered_json;

// One message of the kernel
Json decode(std::span<const uint8_t> attributes);

// "setting=value" as a policy attribute; throws std::invalid_argument
void append_setting(Bytes &settings, const std::string &assignment);

// Number of a setting; throws std::invalid_argument
uint16_t setting_of(const std::string &name);

} // namespace mpanl
