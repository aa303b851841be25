// SPDX-License-Identifier: GPL-2.0
// Plays a scenario over TCP or SCTP.
#pragma once

#include "scenario.hpp"
#include "session.hpp"

#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

namespace mpapeer {

struct PlayOptions {
    std::optional<HostPort> connect = {}; ///< initiator
    std::optional<HostPort> listen = {};  ///< responder
    std::string bind_address = {};        ///< initiator's own address, empty for any
    Duration retry = Duration::zero();    ///< how long to try again when connecting is refused
    Duration within = std::chrono::seconds(5);         ///< value of "within" at the beginning
    Duration accept_within = std::chrono::seconds(30); ///< for the first connection
    bool fast_open = false; ///< data in SYNs, see Connection and Listener
    bool verbose = false;
    Llp llp = Llp::tcp;
    bool usrsctp = false; ///< SCTP by libusrsctp, not by the kernel
    std::uint16_t streams = 1; ///< of SCTP, offered each way; messages use the first
};

/// Checks that a scenario fits its role; throws ScenarioError.
void check_role(const Scenario &scenario, bool listening);

/// Checks that each statement fits the lower layer protocol; throws ScenarioError.
void check_llp(const Scenario &scenario, Llp llp);

/// One run of one scenario.
class Player {
public:
    /// Starts to listen, if that is the role; throws std::system_error.
    Player(const Scenario &scenario, const PlayOptions &options, std::ostream &out);

    /// True if all expectations were met. The transcript has the details. Closes connections that the
    /// scenario has left open.
    bool play();

    /// The address on which it listens; empty for an initiator.
    std::string listening_on() const { return transport_->listening_on(); }

private:
    bool play_statements();
    bool begins_without_connection() const;
    void open_connection(bool keep, Duration within);
    std::unique_ptr<Session> next_connection(Duration within);
    std::unique_ptr<Session> connect_patiently(Duration within);
    void execute(const Statement &statement);
    Session &session();
    void flush(bool fin_follows = false);
    void pass_time(Deadline until);
    Deadline deadline() const { return Clock::now() + settings_.within; }

    void run(const statement::Send &action);
    void run(const statement::Split &action) { split_ = action; }
    void run(const statement::Gap &action) { settings_.gap = action.length; }
    void run(const statement::Glue &) { glued_ = true; }
    void run(const statement::Flush &) {}
    void run(const statement::Wait &action);
    void run(const statement::WaitFor &action);
    void run(const statement::Expect &action);
    void run(const statement::ExpectNothing &action);
    void run(const statement::ExpectNoConnection &action);
    void run(const statement::Shutdown &) { session().shutdown(); }
    void run(const statement::Reset &) { session().reset(); }
    void run(const statement::Close &) { session().close(); }
    void run(const statement::Within &action) { settings_.within = action.length; }
    void run(const statement::CrcMode &action) { settings_.crc = action.mode; }
    void run(const statement::NewConnection &action);
    void run(const statement::AutoReadResponse &action);
    void run(const statement::Note &action) { transcript_.note(action.text); }
    void run(const statement::Association &) {}
    void run(const statement::ExpectAdaptation &action);
    void run(const statement::Reading &action) { settings_.reading = action.on; }
    void run(const statement::Vanish &) { session().vanish(); }

    bool try_item(const statement::Expect &action);
    bool try_end(const statement::Expect &action);

    const Scenario &scenario_;
    const PlayOptions options_;
    Transcript transcript_;
    Settings settings_;
    std::unique_ptr<Transport> transport_;
    std::unique_ptr<Session> session_;
    std::vector<std::unique_ptr<Session>> kept_;
    statement::Split split_;
    bool glued_ = false;
    bool end_expected_ = false; ///< the end of this connection was expected and has come
    std::size_t expectations_met_ = 0;
};

} // namespace mpapeer
