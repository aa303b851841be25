// SPDX-License-Identifier: GPL-2.0
// A scenario's connection over SCTP: session control messages and DDP segments, each behind a DDP-SSN
// (RFC 5043 section 5.2).
#pragma once

#include "sctp_stack.hpp"
#include "session.hpp"

#include <map>
#include <memory>
#include <optional>
#include <string>

namespace mpapeer {

class SctpSession : public Session {
public:
    SctpSession(std::unique_ptr<SctpAssociation> association, const Settings &settings,
                Transcript &transcript);

    bool pump(Deadline deadline) override;
    std::string unfinished() const override;
    std::string end_text() const override;
    void send(const statement::Send &action) override;
    std::optional<std::uint32_t> adaptation() const override { return association_->adaptation(); }
    void shutdown() override;
    void reset() override;
    void close() override;
    void vanish() override;
    bool is_open() const override { return association_->is_open(); }

private:
    void take_message(const SctpMessage &message);
    void take_in_order(const StreamItem &item);
    void send_item(StreamItem item, bool fragmented);
    void end(End end);

    std::unique_ptr<SctpAssociation> association_;
    std::uint16_t next_ssn_ = 0;     ///< to send
    std::uint16_t expected_ssn_ = 0; ///< to receive
    std::map<std::uint16_t, StreamItem> early_;
    bool broken_ = false; ///< said once
};

/// SCTP in one role.
class SctpTransport : public Transport {
public:
    /// Either address may be missing. Starts to listen; throws std::system_error.
    SctpTransport(std::unique_ptr<SctpStack> stack, std::optional<HostPort> connect,
                  const std::optional<HostPort> &listen, const std::string &bind_address);

    std::unique_ptr<Session> connect(const Settings &settings, Transcript &transcript,
                                     Deadline deadline) override;
    std::unique_ptr<Session> accept(const Settings &settings, Transcript &transcript,
                                    Deadline deadline) override;
    bool has_connection(Deadline deadline) override { return stack_->has_association(deadline); }
    std::string listening_on() const override { return listening_on_; }

private:
    std::unique_ptr<SctpStack> stack_;
    std::optional<HostPort> connect_;
    HostPort from_;
    std::string listening_on_;
};

} // namespace mpapeer
