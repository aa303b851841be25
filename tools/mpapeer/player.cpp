// SPDX-License-Identifier: GPL-2.0
#include "player.hpp"

#include "sctp_session.hpp"
#include "tcp_session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>

namespace mpapeer {
namespace {

/// An expectation that was not met: the run is over.
class Failure : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

template <class T>
bool is(const Statement &statement)
{
    return std::holds_alternative<T>(statement.action);
}

/// These statements leave glued bytes in the queue: they send nothing and wait for nothing.
bool keeps_glue(const Statement &statement)
{
    return is<statement::Send>(statement) || is<statement::Split>(statement) ||
           is<statement::Gap>(statement) || is<statement::Glue>(statement) ||
           is<statement::CrcMode>(statement) || is<statement::Note>(statement) ||
           is<statement::Within>(statement) || is<statement::AutoReadResponse>(statement);
}

bool is_about_listening(const Statement &statement)
{
    return is<statement::Association>(statement) || is<statement::Within>(statement) ||
           is<statement::Note>(statement);
}

bool brings_fin(const Statement &statement)
{
    return is<statement::Shutdown>(statement) || is<statement::Close>(statement);
}

std::string leftover_text(const Session &session)
{
    const std::string rest = session.unfinished();
    return rest.empty() ? "" : "; unfinished: " + rest;
}

} // namespace

void check_role(const Scenario &scenario, bool listening)
{
    for (const Statement &statement : scenario.statements) {
        const auto *connection = std::get_if<statement::NewConnection>(&statement.action);
        if (connection && connection->accept != listening)
            throw ScenarioError(scenario.name, statement.line,
                                listening ? "connect needs --connect; use accept with --listen"
                                          : "accept needs --listen; use connect with --connect");
        if (is<statement::ExpectNoConnection>(statement) && !listening)
            throw ScenarioError(scenario.name, statement.line,
                                "expect no-connection needs --listen");
    }
}

void check_llp(const Scenario &scenario, Llp llp)
{
    bool in_front = true;
    for (const Statement &statement : scenario.statements) {
        const Llp needed = llp_of(statement);
        if (needed != Llp::any && needed != llp)
            throw ScenarioError(scenario.name, statement.line,
                                fmt::format("this statement needs --llp {}", needed == Llp::tcp ? "tcp" : "sctp"));
        in_front = in_front && is_about_listening(statement);
        if (is<statement::Association>(statement) && !in_front)
            throw ScenarioError(scenario.name, statement.line,
                                "association must precede all statements that need a connection");
    }
}

/// The socket that listens needs what the scenario says of the associations.
std::unique_ptr<Transport> make_transport(const Scenario &scenario, const PlayOptions &options)
{
    if (options.llp != Llp::sctp)
        return std::make_unique<TcpTransport>(options.connect, options.listen, options.bind_address,
                                              options.fast_open);
    SctpOptions sctp{.streams = options.streams};
    for (const Statement &statement : scenario.statements) {
        if (const auto *association = std::get_if<statement::Association>(&statement.action)) {
            sctp.adaptation = association->adaptation;
            sctp.window = association->window;
        }
    }
    return std::make_unique<SctpTransport>(options.usrsctp ? make_usrsctp_stack(sctp)
                                                           : make_kernel_stack(sctp),
                                           options.connect, options.listen, options.bind_address);
}

Player::Player(const Scenario &scenario, const PlayOptions &options, std::ostream &out)
    : scenario_(scenario), options_(options), transcript_(out, options.verbose),
      transport_(make_transport(scenario, options))
{
    settings_.within = options_.within;
}

Session &Player::session()
{
    if (!session_)
        throw Failure("no connection has been established");
    if (!session_->is_open())
        throw Failure("this scenario has already closed the connection");
    return *session_;
}

/// Tries again only after a refusal: the listener may not have started yet.
std::unique_ptr<Session> Player::connect_patiently(Duration within)
{
    constexpr std::chrono::milliseconds pause(50);
    const Deadline last_try = Clock::now() + options_.retry;
    for (;;) {
        try {
            return transport_->connect(settings_, transcript_, Clock::now() + within);
        } catch (const std::system_error &error) {
            if (error.code() != std::errc::connection_refused || Clock::now() >= last_try)
                throw;
        }
        std::this_thread::sleep_for(pause);
    }
}

std::unique_ptr<Session> Player::next_connection(Duration within)
{
    if (!options_.listen)
        return connect_patiently(within);
    if (auto session = transport_->accept(settings_, transcript_, Clock::now() + within))
        return session;
    throw Failure(fmt::format("expected a connection, none was established within {}", duration_text(within)));
}

void Player::open_connection(bool keep, Duration within)
{
    if (session_ && keep)
        kept_.push_back(std::move(session_));
    session_.reset();
    session_ = next_connection(within);
    end_expected_ = false;
}

bool Player::play()
{
    const bool passed = play_statements();
    session_.reset();
    kept_.clear();
    return passed;
}

/// A scenario that expects no connection must not wait for one first.
bool Player::begins_without_connection() const
{
    const auto first = std::ranges::find_if_not(scenario_.statements, is<statement::Association>);
    return first != scenario_.statements.end() && is<statement::ExpectNoConnection>(*first);
}

bool Player::play_statements()
{
    const Statement *current = nullptr;
    try {
        if (!begins_without_connection())
            open_connection(false, options_.listen ? options_.accept_within : settings_.within);
        for (const Statement &statement : scenario_.statements) {
            current = &statement;
            execute(statement);
        }
        flush();
    } catch (const std::runtime_error &error) { // Failure, std::system_error
        const std::string where =
            current ? fmt::format("{}:{}: {}", scenario_.name, current->line, current->text)
                    : fmt::format("{}: the first connection", scenario_.name);
        transcript_.line("!!", fmt::format("FAIL {}\n            {}", where, error.what()));
        return false;
    }
    transcript_.line("==", fmt::format("PASS {}: {} expectations met", scenario_.name,
                                       expectations_met_));
    return true;
}

void Player::execute(const Statement &statement)
{
    if (!keeps_glue(statement))
        flush(brings_fin(statement));
    std::visit([this](const auto &action) { run(action); }, statement.action);
}

void Player::flush(bool fin_follows)
{
    glued_ = false;
    if (session_ && session_->has_queued())
        session().flush(std::exchange(split_, {}), fin_follows);
}

void Player::run(const statement::Send &action)
{
    session().send(action);
    if (!glued_)
        flush();
}

void Player::pass_time(Deadline until)
{
    if (session_)
        session_->pump_until(until);
    else
        std::this_thread::sleep_until(until);
}

void Player::run(const statement::Wait &action)
{
    pass_time(Clock::now() + action.length);
}

void Player::run(const statement::WaitFor &action)
{
    constexpr std::chrono::milliseconds glance(20);
    const Duration within = action.within.value_or(settings_.within);
    const Deadline until = Clock::now() + within;
    std::error_code no_matter;
    transcript_.note("waiting for " + action.file);
    while (!std::filesystem::exists(action.file, no_matter)) {
        if (Clock::now() >= until)
            throw Failure(fmt::format("{} did not appear within {}", action.file,
                                      duration_text(within)));
        pass_time(std::min(until, Clock::now() + glance));
    }
}

void Player::run(const statement::NewConnection &action)
{
    open_connection(action.keep, settings_.within);
    if (action.accept)
        expectations_met_++;
}

void Player::run(const statement::AutoReadResponse &action)
{
    settings_.auto_read_response = action.on;
}

/// Looks at the oldest item received: true if the expectation is met by it. Throws Failure if it
/// is something else.
bool Player::try_item(const statement::Expect &action)
{
    const StreamItem &item = session().inbox().front();
    std::string reasons;
    for (const Pattern &pattern : action.alternatives) {
        const auto *close = std::get_if<ClosePattern>(&pattern);
        if (close && close->drain) {
            session().inbox().pop_front();
            return false;
        }
        const auto reason = mismatch(pattern, item, session().crc_use());
        if (!reason) {
            session().inbox().pop_front();
            return true;
        }
        reasons += (reasons.empty() ? "" : "; ") + *reason;
    }
    throw Failure(fmt::format("got {}\n            {}", describe(item, session().crc_use()),
                              reasons));
}

/// The same for the end of the peer's stream.
bool Player::try_end(const statement::Expect &action)
{
    const Session::End end = session().end();
    for (const Pattern &pattern : action.alternatives) {
        const auto *close = std::get_if<ClosePattern>(&pattern);
        if (!close)
            continue;
        if (!close->drain && !session().unfinished().empty())
            continue;
        const bool fits = close->how == ClosePattern::How::any ||
                          (close->how == ClosePattern::How::fin && session().fin_received()) ||
                          (close->how == ClosePattern::How::rst && end == Session::End::rst);
        // A RST may still follow a FIN that was expected before.
        if (!fits && end_expected_ && end == Session::End::fin)
            return false;
        if (fits) {
            end_expected_ = true;
            return true;
        }
    }
    throw Failure(session().end_text() + leftover_text(session()));
}

void Player::run(const statement::Expect &action)
{
    const Duration within = action.within.value_or(settings_.within);
    const Deadline until = Clock::now() + within;
    bool met = false;
    bool drained = false;
    while (!met) {
        if (!session().inbox().empty()) {
            met = try_item(action);
            drained = !met;
            continue;
        }
        if (session().end() != Session::End::open)
            met = try_end(action);
        // The deadline also ends a drain: the peer may never stop sending.
        if (!met && (!session().pump(until) || (drained && Clock::now() >= until)))
            throw Failure(fmt::format("{} within {}{}",
                                      drained ? "only data was received" : "nothing was received",
                                      duration_text(within), leftover_text(session())));
    }
    expectations_met_++;
}

void Player::run(const statement::ExpectNothing &action)
{
    const Deadline until = Clock::now() + action.length;
    do {
        if (!session().inbox().empty())
            throw Failure(
                fmt::format("got {}", describe(session().inbox().front(), session().crc_use())));
        if (!session().unfinished().empty())
            throw Failure("got bytes" + leftover_text(session()));
        if (session().end() != Session::End::open && !end_expected_) {
            if (!action.close_allowed)
                throw Failure(session().end_text());
            end_expected_ = true;
        }
    } while (session().pump(until));
    expectations_met_++;
}

void Player::run(const statement::ExpectAdaptation &action)
{
    const auto text = [](std::optional<std::uint32_t> value) {
        return value ? fmt::format("{}", *value) : "none";
    };
    // It has come with the INIT or INIT-ACK, long before any message: only the news of it is awaited
    const Deadline until = Clock::now() + settings_.within;
    while (!session().adaptation() && session().inbox().empty() && session().pump(until)) {
    }
    if (session().adaptation() != action.wanted)
        throw Failure(fmt::format("the peer's adaptation indication is {}, wanted {}",
                                  text(session().adaptation()), text(action.wanted)));
    expectations_met_++;
}

void Player::run(const statement::ExpectNoConnection &action)
{
    if (transport_->has_connection(Clock::now() + action.length))
        throw Failure("an unexpected connection was established");
    expectations_met_++;
}

} // namespace mpapeer
