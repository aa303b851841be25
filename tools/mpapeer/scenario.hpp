// SPDX-License-Identifier: GPL-2.0
// A scenario file: statements, variables, repetitions.
#pragma once

#include "statement.hpp"

#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace mpapeer {

using Variables = std::map<std::string, std::string, std::less<>>;

struct Scenario {
    std::string name;
    std::vector<Statement> statements;
};

/// An error with its place: "FILE:12: …".
class ScenarioError : public std::runtime_error {
public:
    ScenarioError(std::string_view name, std::size_t line, std::string_view what);
};

/// Parses a whole scenario; `name` is for messages. Throws ScenarioError.
Scenario parse_scenario(std::string name, std::string_view text, const Variables &variables = {});

/// Reads and parses a file; throws ScenarioError, or std::system_error if it cannot be read.
Scenario load_scenario(const std::string &path, const Variables &variables);

} // namespace mpapeer
