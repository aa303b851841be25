// SPDX-License-Identifier: GPL-2.0
// A scenario's connection over TCP: MPA frames and FPDUs in a stream of bytes.
#pragma once

#include "session.hpp"
#include "tcp_peer.hpp"

#include <optional>

namespace mpapeer {

class TcpSession : public Session {
public:
    TcpSession(Connection connection, const Settings &settings, Transcript &transcript);

    bool pump(Deadline deadline) override;
    std::string unfinished() const override;
    std::string end_text() const override;

    void send(const statement::Send &action) override;
    bool has_queued() const override { return !queued_.empty(); }

    /// One segment for each part.
    void flush(const statement::Split &split, bool fin_follows) override;

    void shutdown() override;
    void reset() override;
    void close() override;
    bool is_open() const override { return connection_.is_open(); }
    CrcUse crc_use() const override;

private:
    void handle(Connection::Received event, ByteView bytes);
    void handle_item(StreamItem item);
    void note_frame(const MpaFrame &frame);
    Bytes build(const FpduToSend &fpdu);
    bool send_part(ByteView part, bool more, bool urgent = false);
    void answer_read();
    void log_queued(std::size_t segments);
    FpduOptions options_for(const FpduToSend &fpdu) const;

    Connection connection_;
    StreamDecoder inbound_;
    StreamDecoder outbound_;
    Bytes queued_;
    bool reset_while_sending_ = false;
    bool write_shut_ = false;
    bool crc_wanted_ = false; ///< C=1 in either frame
};

/// TCP in one role.
class TcpTransport : public Transport {
public:
    /// Either address may be missing. Starts to listen; throws std::system_error.
    TcpTransport(std::optional<HostPort> connect, const std::optional<HostPort> &listen,
                 std::string bind_address, bool fast_open);

    std::unique_ptr<Session> connect(const Settings &settings, Transcript &transcript,
                                     Deadline deadline) override;
    std::unique_ptr<Session> accept(const Settings &settings, Transcript &transcript,
                                    Deadline deadline) override;
    bool has_connection(Deadline deadline) override { return listener_->has_connection(deadline); }
    std::string listening_on() const override { return listener_ ? listener_->local() : ""; }

private:
    std::optional<HostPort> connect_;
    std::string bind_address_;
    bool fast_open_;
    std::optional<Listener> listener_;
};

} // namespace mpapeer
