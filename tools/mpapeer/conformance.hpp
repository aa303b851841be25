// SPDX-License-Identifier: GPL-2.0
// The scenarios of tests/wire/responder against a responder that nobody here controls.
#pragma once

#include "player.hpp"

#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

namespace mpapeer {

struct ConformanceOptions {
    std::string directory;          ///< responder/*.txt and programs; ../scenarios/next*.txt
    std::string host;               ///< of the target
    unsigned port = 0;              ///< of its first program
    std::vector<std::string> names; ///< scenarios; empty: all
    bool keep_going = false;
    bool ktap = false;
    std::string junit; ///< file for the report
    PlayOptions play;
};

/// What a scenario's first lines ask of the other end.
struct Demands {
    std::string claim;
    std::string program;  ///< options of the target's program
    std::string next = "next";
    std::string obstacle; ///< why it cannot be played without control of the other end
};
Demands read_demands(const std::string &text);

/// One scenario's result.
struct ConformanceResult {
    enum class Kind { passed, failed, skipped };
    Kind kind = Kind::passed;
    std::string name;
    std::string claim;
    std::string why;        ///< of a skip
    std::string transcript; ///< of a failure
    double seconds = 0;
};

void write_ktap_line(std::ostream &out, std::size_t number, const ConformanceResult &result);
std::string to_junit(const std::vector<ConformanceResult> &results);

/// Plays the scenarios and prints a line for each; true if none failed. Throws std::runtime_error.
bool run_conformance(const ConformanceOptions &options, std::ostream &out);

} // namespace mpapeer
