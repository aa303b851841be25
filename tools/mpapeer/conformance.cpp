// SPDX-License-Identifier: GPL-2.0
#include "conformance.hpp"

#include "scenario.hpp"
#include "tcp_peer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <ostream>
#include <sstream>
#include <stdexcept>
#include <system_error>

namespace mpapeer {

namespace {

namespace fs = std::filesystem;
using Kind = ConformanceResult::Kind;

std::string read_text(const fs::path &path)
{
    std::ifstream file(path);
    if (!file)
        throw std::runtime_error(fmt::format("{} cannot be read", path.string()));
    return {std::istreambuf_iterator<char>(file), {}};
}

/// Line N is what the program on port + N was started with.
std::vector<std::string> read_programs(const fs::path &path)
{
    std::istringstream text(read_text(path));
    std::vector<std::string> programs;
    for (std::string line; std::getline(text, line);)
        if (!line.starts_with('#'))
            programs.push_back(line == "-" ? "" : line);
    return programs;
}

std::vector<std::string> all_names(const fs::path &directory)
{
    std::vector<std::string> names;
    for (const fs::directory_entry &entry : fs::directory_iterator(directory))
        if (entry.path().extension() == ".txt")
            names.push_back(entry.path().stem().string());
    std::ranges::sort(names);
    return names;
}

std::string escaped(std::string_view text)
{
    std::string out;
    for (const char c : text) {
        switch (c) {
        case '&': out += "&amp;"; break;
        case '<': out += "&lt;"; break;
        case '>': out += "&gt;"; break;
        case '"': out += "&quot;"; break;
        default: out += c;
        }
    }
    return out;
}

void write_text_line(std::ostream &out, const ConformanceResult &result)
{
    switch (result.kind) {
    case Kind::passed:
        out << fmt::format("PASS {}: {}\n", result.name, result.claim);
        break;
    case Kind::skipped:
        out << fmt::format("SKIP {}: {}: {}\n", result.name, result.claim, result.why);
        break;
    case Kind::failed:
        out << fmt::format("FAIL {}: {}\n{}", result.name, result.claim, result.transcript);
        break;
    }
    out.flush();
}

class Run {
public:
    explicit Run(const ConformanceOptions &options)
        : options_(options), programs_(read_programs(fs::path(options.directory) / "programs"))
    {
    }

    /// Without this, each scenario would fail for a reason that is not its own.
    void knock() const
    {
        try {
            Connection::connect({options_.host, std::to_string(options_.port)},
                                options_.play.bind_address, false,
                                Clock::now() + options_.play.within);
        } catch (const std::system_error &error) {
            throw std::runtime_error(
                fmt::format("{}: is conformance-target running on the target?", error.what()));
        }
    }

    ConformanceResult play(const std::string &name)
    {
        const fs::path file = fs::path(options_.directory) / "responder" / (name + ".txt");
        const Demands demands = read_demands(read_text(file));
        ConformanceResult result;
        result.name = name;
        result.claim = demands.claim;
        result.why = demands.obstacle;
        const auto program = std::ranges::find(programs_, demands.program);
        if (result.why.empty() && program == programs_.end())
            result.why = fmt::format("needs a program with {}", demands.program);
        if (!result.why.empty()) {
            result.kind = Kind::skipped;
            return result;
        }
        PlayOptions play = options_.play;
        play.connect = HostPort{options_.host, std::to_string(options_.port + static_cast<unsigned>(
                                                  program - programs_.begin()))};
        const auto start = std::chrono::steady_clock::now();
        std::ostringstream transcript;
        // The second: does the target serve an honest initiator afterwards?
        const bool passed =
            play_file(file, play, transcript) &&
            play_file(fs::path(options_.directory) / "../scenarios" / (demands.next + ".txt"), play,
                      transcript);
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
        result.seconds = took.count();
        result.kind = passed ? Kind::passed : Kind::failed;
        if (!passed)
            result.transcript = transcript.str();
        return result;
    }

private:
    /// Nobody looks at the other end while a scenario waits for that: "/" is there.
    static bool play_file(const fs::path &file, const PlayOptions &play, std::ostream &out)
    {
        const Scenario scenario = load_scenario(file.string(), {{"LOOKED", "/"}});
        check_role(scenario, false);
        return Player(scenario, play, out).play();
    }

    const ConformanceOptions &options_;
    std::vector<std::string> programs_;
};

} // namespace

Demands read_demands(const std::string &text)
{
    Demands demands;
    std::istringstream lines(text);
    std::string line;
    std::getline(lines, line);
    demands.claim = line.starts_with("# ") ? line.substr(2) : line;
    while (std::getline(lines, line) && line.starts_with('#')) {
        if (line.starts_with("#: policy "))
            demands.obstacle = "needs a setting of the other end: " + line.substr(10);
        else if (line.starts_with("#: program "))
            demands.program = line.substr(11);
        else if (line.starts_with("#: next "))
            demands.next = line.substr(8);
    }
    if (demands.obstacle.empty() && demands.program.find("--mpa") != std::string::npos)
        demands.obstacle = "needs an option of iw_mpa at the other end: " + demands.program;
    return demands;
}

void write_ktap_line(std::ostream &out, std::size_t number, const ConformanceResult &result)
{
    std::istringstream transcript(result.transcript);
    for (std::string line; std::getline(transcript, line);)
        out << "# " << line << '\n';
    out << fmt::format("{} {} {}: {}{}\n", result.kind == Kind::failed ? "not ok" : "ok", number,
                       result.name, result.claim,
                       result.kind == Kind::skipped ? " # SKIP " + result.why : "");
    out.flush();
}

std::string to_junit(const std::vector<ConformanceResult> &results)
{
    const auto count = [&](Kind kind) { return std::ranges::count(results, kind, &ConformanceResult::kind); };
    std::string out = fmt::format(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
        "<testsuite name=\"mpapeer conformance\" tests=\"{}\" failures=\"{}\" skipped=\"{}\">\n",
        results.size(), count(Kind::failed), count(Kind::skipped));
    for (const ConformanceResult &result : results) {
        out += fmt::format("  <testcase classname=\"responder\" name=\"{}\" time=\"{:.3f}\">\n",
                           escaped(result.name + ": " + result.claim), result.seconds);
        if (result.kind == Kind::skipped)
            out += fmt::format("    <skipped message=\"{}\"/>\n", escaped(result.why));
        else if (result.kind == Kind::failed)
            out += fmt::format("    <failure>{}</failure>\n", escaped(result.transcript));
        out += "  </testcase>\n";
    }
    return out + "</testsuite>\n";
}

bool run_conformance(const ConformanceOptions &options, std::ostream &out)
{
    Run run(options);
    const std::vector<std::string> names =
        options.names.empty() ? all_names(fs::path(options.directory) / "responder")
                              : options.names;
    std::vector<ConformanceResult> results;
    bool failed = false;
    run.knock();
    if (options.ktap)
        out << "KTAP version 1\n1.." << names.size() << '\n';
    for (const std::string &name : names) {
        if (failed && !options.keep_going)
            break;
        results.push_back(run.play(name));
        failed |= results.back().kind == Kind::failed;
        if (options.ktap)
            write_ktap_line(out, results.size(), results.back());
        else
            write_text_line(out, results.back());
    }
    const auto count = [&](Kind kind) { return std::ranges::count(results, kind, &ConformanceResult::kind); };
    out << fmt::format("{}{} passed, {} failed, {} skipped, {} not played\n", options.ktap ? "# " : "",
                       count(Kind::passed), count(Kind::failed), count(Kind::skipped),
                       names.size() - results.size());
    if (!options.junit.empty()) {
        std::ofstream report(options.junit);
        report << to_junit(results);
        if (!report.flush())
            throw std::runtime_error(fmt::format("{} cannot be written", options.junit));
    }
    return !failed;
}

} // namespace mpapeer
