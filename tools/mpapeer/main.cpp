// SPDX-License-Identifier: GPL-2.0
#include "conformance.hpp"
#include "player.hpp"
#include "trace_output.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <iostream>
#include <string>
#include <system_error>
#include <vector>

#include <fcntl.h>
#include <sched.h>

namespace {

using namespace mpapeer;

enum ExitStatus { exit_ok = 0, exit_failed = 1, exit_usage = 2 };

constexpr const char *description =
    "A peer for iWARP connection setup (MPA, RFC 5044 and RFC 6581) over plain TCP or SCTP, and a\ndecoder "
    "for captures of it. The scenario language and the JSON fields are described in mpapeer(1).";

struct RunArguments {
    std::vector<std::string> scenarios;
    std::string connect;
    std::string listen;
    std::string bind_address;
    std::string llp = "tcp";
    std::string stack = "kernel";
    std::uint16_t streams = 1;
    std::string netns;
    std::string retry = "0s";
    std::string within = "5s";
    std::string accept_within = "30s";
    std::vector<std::string> variables;
    bool fast_open = false;
    bool verbose = false;
    bool check_only = false;
};

struct DecodeArguments {
    std::string file;
    std::uint16_t port = 0;
    bool json = false;
    bool all = false;
};

void add_run(CLI::App &app, RunArguments &arguments)
{
    CLI::App *run = app.add_subcommand("run", "Play a scenario as initiator or responder");
    run->footer("Exit status: 0 all expectations met, 1 an expectation failed (the transcript has its line, "
                "the\nexpected and the received item), 2 wrong usage or scenario.");
    run->add_option("SCENARIO", arguments.scenarios,
                    "Scenario file; several are played one after the other, until one fails")
        ->required();
    CLI::Option *connect =
        run->add_option("--connect", arguments.connect, "Be the initiator: connect to HOST:PORT");
    run->add_option("--listen", arguments.listen,
                    "Be the responder: listen on [HOST:]PORT, and print \"listening on "
                    "ADDR:PORT\"; port 0 selects a free port")
        ->excludes(connect);
    run->add_option("--bind", arguments.bind_address, "Connect from this address")->needs(connect);
    run->add_option("--llp", arguments.llp, "Lower layer protocol: tcp, or sctp (RFC 5043)")
        ->capture_default_str()
        ->check(CLI::IsMember({"tcp", "sctp"}));
    run->add_option("--stack", arguments.stack,
                    "SCTP of the kernel, or of usrsctp for an address that the kernel does not have")
        ->capture_default_str()
        ->check(CLI::IsMember({"kernel", "usrsctp"}));
    run->add_option("--streams", arguments.streams, "SCTP streams to offer each way; the first is used")
        ->capture_default_str()
        ->check(CLI::Range(1, UINT16_MAX));
    run->add_flag("--fast-open", arguments.fast_open,
                  "TCP Fast Open: put the first bytes into the SYN if a cookie of the peer is cached; as\n"
                  "responder issue cookies and accept SYNs with data");
    run->add_option("--netns", arguments.netns, "Run in this network namespace of ip-netns(8)");
    run->add_option("--retry", arguments.retry,
                    "Time limit for --connect to retry a refused connection")
        ->capture_default_str()
        ->needs(connect);
    run->add_option("--within", arguments.within,
                    "Default time limit of expectations")
        ->capture_default_str();
    run->add_option("--accept-within", arguments.accept_within,
                    "Time limit for the first connection to --listen")
        ->capture_default_str();
    run->add_option("--set", arguments.variables, "NAME=VALUE: value of ${NAME} in the scenario")
        ->type_size(1)
        ->allow_extra_args(false);
    run->add_flag("-v,--verbose", arguments.verbose, "Show all bytes in hexadecimal");
    run->add_flag("--check", arguments.check_only,
                  "Only parse the scenario, and count its statements");
}

void add_decode(CLI::App &app, DecodeArguments &arguments)
{
    CLI::App *decode = app.add_subcommand("decode", "Show the MPA frames and FPDUs of a capture");
    decode->footer("Exit status: 0 decoded, 1 the capture is damaged (packets before the damage are "
                   "shown),\n2 wrong usage, or no capture.");
    decode->add_option("FILE", arguments.file, "Capture, pcap or pcapng; - for standard input")->required();
    decode->add_flag("--json", arguments.json, "JSON: an array of connections with their events");
    decode->add_option("--port", arguments.port, "Only connections from or to this TCP port");
    decode->add_flag("--all", arguments.all, "Also connections that do not begin with an MPA key");
}

struct ConformanceArguments {
    ConformanceOptions options;
    std::string target;
    std::string within = "15s";
};

void add_conformance(CLI::App &app, ConformanceArguments &arguments)
{
    CLI::App *conformance = app.add_subcommand(
        "conformance", "Play the packaged scenarios against a responder on another host");
    conformance->footer(
        "The target runs \"conformance-target ADDRESS PORT\", which listens on PORT and the following ports.\n"
        "Scenarios that need control of the target are reported as skipped.\n"
        "Exit status: 0 no scenario failed, 1 a scenario failed, 2 wrong usage or scenario, or no answer.");
    conformance->add_option("SCENARIO", arguments.options.names, "Names of scenarios (default: all)");
    conformance->add_option("--target", arguments.target, "HOST:PORT of the first program")->required();
    conformance->add_flag("--keep-going", arguments.options.keep_going, "Continue after a failure");
    conformance->add_flag("--ktap", arguments.options.ktap, "Print KTAP");
    conformance->add_option("--junit", arguments.options.junit, "Write a report for JUnit to this file");
    conformance->add_option("--scenarios", arguments.options.directory, "Directory of the scenarios")
        ->default_val(MPAPEER_SCENARIOS);
    conformance->add_option("--within", arguments.within, "Time limit of expectations")
        ->capture_default_str();
    conformance->add_option("--bind", arguments.options.play.bind_address, "Connect from this address");
}

int run_conformance(ConformanceArguments &arguments)
{
    if (arguments.target.find(':') == std::string::npos)
        throw TextError("--target needs HOST:PORT");
    const HostPort target = parse_host_port(arguments.target);
    arguments.options.host = target.host;
    arguments.options.port = static_cast<unsigned>(parse_number(target.port, UINT16_MAX));
    arguments.options.play.within = parse_duration(arguments.within);
    return mpapeer::run_conformance(arguments.options, std::cout) ? exit_ok : exit_failed;
}

Variables parse_variables(const std::vector<std::string> &settings)
{
    Variables variables;
    for (const std::string &setting : settings) {
        const std::size_t at = setting.find('=');
        if (at == std::string::npos || at == 0)
            throw TextError(fmt::format("--set {}: expected NAME=VALUE", setting));
        variables.insert_or_assign(setting.substr(0, at), setting.substr(at + 1));
    }
    return variables;
}

PlayOptions play_options(const RunArguments &arguments)
{
    PlayOptions options;
    if (!arguments.connect.empty()) {
        options.connect = parse_host_port(arguments.connect);
        if (options.connect->host.empty())
            throw TextError("--connect needs HOST:PORT");
    }
    if (!arguments.listen.empty())
        options.listen = parse_host_port(arguments.listen);
    options.bind_address = arguments.bind_address;
    options.retry = parse_duration(arguments.retry);
    options.within = parse_duration(arguments.within);
    options.accept_within = parse_duration(arguments.accept_within);
    options.fast_open = arguments.fast_open;
    options.verbose = arguments.verbose;
    options.llp = arguments.llp == "sctp" ? Llp::sctp : Llp::tcp;
    options.usrsctp = arguments.stack == "usrsctp";
    options.streams = arguments.streams;
    return options;
}

void enter_netns(const std::string &name)
{
    const std::string path = "/run/netns/" + name;
    const FileDescriptor netns(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!netns.is_open() || ::setns(netns.get(), CLONE_NEWNET) != 0)
        throw std::system_error(errno, std::generic_category(), path);
}

bool play(const Scenario &scenario, const PlayOptions &options)
{
    Player player(scenario, options, std::cout);
    if (options.listen)
        std::cout << "listening on " << player.listening_on() << std::endl;
    return player.play();
}

int run_scenarios(const RunArguments &arguments)
{
    const PlayOptions options = play_options(arguments);
    std::vector<Scenario> scenarios;
    for (const std::string &file : arguments.scenarios) {
        scenarios.push_back(load_scenario(file, parse_variables(arguments.variables)));
        if (options.connect || options.listen) {
            check_role(scenarios.back(), options.listen.has_value());
            check_llp(scenarios.back(), options.llp);
        }
    }
    if (arguments.check_only) {
        for (const Scenario &scenario : scenarios)
            std::cout << fmt::format("{}: {} statements\n", scenario.name, scenario.statements.size());
        return exit_ok;
    }
    if (!options.connect && !options.listen)
        throw TextError("run needs --connect or --listen");

    if (!arguments.netns.empty())
        enter_netns(arguments.netns);
    const auto plays = [&](const Scenario &scenario) { return play(scenario, options); };
    return std::ranges::all_of(scenarios, plays) ? exit_ok : exit_failed;
}

int decode_capture(const DecodeArguments &arguments)
{
    const auto port = arguments.port == 0 ? std::nullopt : std::optional(arguments.port);
    CaptureTrace capture = trace_capture(PcapReader(arguments.file), port);
    if (!arguments.all)
        std::erase_if(capture.connections, [](const Trace &trace) { return !trace.is_mpa; });
    if (arguments.json)
        std::cout << to_json(capture).dump(2) << '\n';
    else
        write_text(std::cout, capture);
    if (!capture.damage)
        return exit_ok;
    std::cerr << fmt::format("mpapeer: {}: {}\n", arguments.file, *capture.damage);
    return exit_failed;
}

} // namespace

int main(int argc, char **argv)
{
    CLI::App app{description, "mpapeer"};
    app.require_subcommand(1);
    RunArguments run;
    DecodeArguments decode;
    add_run(app, run);
    add_decode(app, decode);
    ConformanceArguments conformance;
    add_conformance(app, conformance);
    app.set_version_flag("--version", "mpapeer " MPAPEER_VERSION);
    try {
        app.parse(argc, argv);
        if (app.got_subcommand("conformance"))
            return run_conformance(conformance);
        return app.got_subcommand("run") ? run_scenarios(run) : decode_capture(decode);
    } catch (const CLI::ParseError &error) {
        return app.exit(error) == 0 ? exit_ok : exit_usage;
    } catch (const std::exception &error) {
        std::cerr << "mpapeer: " << error.what() << '\n';
        return exit_usage;
    }
}
