// SPDX-License-Identifier: GPL-2.0
// A decoded capture as text or JSON.
#pragma once

#include "trace.hpp"

#include <nlohmann/json.hpp>

#include <ostream>

namespace mpapeer {

/// One line per event, all connections together in time order, after one line per connection.
void write_text(std::ostream &out, const CaptureTrace &capture);

/// An array of connections. The field names are in mpapeer(1).
nlohmann::ordered_json to_json(const CaptureTrace &capture);

} // namespace mpapeer
