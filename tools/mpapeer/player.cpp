// SPDX-License-Identifier: GPL-2.0
#include "player.hpp"

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

bool brings_fin(const Statement &statement)
{
    return is<statement::Shutdown>(statement) || is<statement::Close>(statement);
}

Bytes cut_bytes(Bytes bytes, const Cut &cut)
{
    if (cut.flip_bit) {
        const std::size_t index = *cut.flip_bit / 8;
        if (index >= bytes.size())
            throw Failure(fmt::format("flip={} is behind the end of {} bytes", *cut.flip_bit,
                                      bytes.size()));
        bytes[index] ^= static_cast<std::uint8_t>(0x80U >> *cut.flip_bit % 8);
    }
    const std::size_t from = std::min(cut.from.value_or(0), bytes.size());
    const std::size_t size = std::min(cut.first.value_or(bytes.size()), bytes.size() - from);
    const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(from);
    return Bytes(begin, begin + static_cast<std::ptrdiff_t>(size));
}

std::string end_text(Session::End end)
{
    return end == Session::End::fin ? "the peer closed the connection (FIN)"
                                    : "the peer reset the connection (RST)";
}

/// Describes received bytes that are not part of a whole frame or FPDU.
std::string leftover_text(const Session &session)
{
    std::string text;
    if (const auto frame = session.unfinished_frame())
        text += fmt::format("; unfinished: {}", describe_partial(*frame));
    else if (!session.unfinished().empty())
        text += fmt::format("; unfinished: {} bytes {}", session.unfinished().size(),
                            to_hex(session.unfinished()));
    return text;
}

} // namespace

void check_role(const Scenario &scenario, bool listening)
{
    for (const Statement &statement : scenario.statements) {
        const auto *connection = std::get_if<statement::NewConnection>(&statement.action);
        if (connection && connection->accept != listening)
            throw ScenarioError(scenario.name, statement.line,
                                listening ? "connect is for --connect; with --listen it is accept"
                                          : "accept is for --listen; with --connect it is connect");
        if (is<statement::ExpectNoConnection>(statement) && !listening)
            throw ScenarioError(scenario.name, statement.line,
                                "only --listen can expect no-connection");
    }
}

Player::Player(const Scenario &scenario, const PlayOptions &options, std::ostream &out)
    : scenario_(scenario), options_(options), transcript_(out, options.verbose)
{
    settings_.within = options_.within;
    if (options_.listen)
        listener_.emplace(*options_.listen, options_.fast_open);
}

Session &Player::session()
{
    if (!session_)
        throw Failure("there has been no connection yet");
    if (!session_->is_open())
        throw Failure("this scenario has already closed the connection");
    return *session_;
}

/// Tries again only after a refusal: the listener may not have started yet.
Connection Player::connect_patiently(Duration within) const
{
    constexpr std::chrono::milliseconds pause(50);
    const Deadline last_try = Clock::now() + options_.retry;
    for (;;) {
        try {
            return Connection::connect(*options_.connect, options_.bind_address, options_.fast_open,
                                       Clock::now() + within);
        } catch (const std::system_error &error) {
            if (error.code() != std::errc::connection_refused || Clock::now() >= last_try)
                throw;
        }
        std::this_thread::sleep_for(pause);
    }
}

Connection Player::next_connection(Duration within)
{
    if (!listener_)
        return connect_patiently(within);
    if (auto connection = listener_->accept(Clock::now() + within))
        return std::move(*connection);
    throw Failure(fmt::format("expected a connection, none came within {}", duration_text(within)));
}

void Player::open_connection(bool keep, Duration within)
{
    if (session_ && keep)
        kept_.push_back(std::move(session_));
    session_.reset();
    session_ = std::make_unique<Session>(next_connection(within), settings_, transcript_);
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
    return !scenario_.statements.empty() &&
           is<statement::ExpectNoConnection>(scenario_.statements.front());
}

bool Player::play_statements()
{
    const Statement *current = nullptr;
    try {
        if (!begins_without_connection())
            open_connection(false, listener_ ? options_.accept_within : settings_.within);
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
    const auto *fpdu = std::get_if<FpduToSend>(&action.what);
    Bytes bytes = fpdu ? session().build(*fpdu) : std::get<Bytes>(action.what);
    session().queue(cut_bytes(std::move(bytes), action.cut));
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
            throw Failure(fmt::format("{} has not come within {}", action.file,
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
    throw Failure(end_text(end) + leftover_text(session()));
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
                                      drained ? "only data came" : "nothing came",
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
                throw Failure(end_text(session().end()));
            end_expected_ = true;
        }
    } while (session().pump(until));
    expectations_met_++;
}

void Player::run(const statement::ExpectNoConnection &action)
{
    if (listener_->has_connection(Clock::now() + action.length))
        throw Failure("a connection has come");
    expectations_met_++;
}

} // namespace mpapeer
