// SPDX-License-Identifier: GPL-2.0
// One connection while a scenario runs on it, with the items sent and received so far.
#pragma once

#include "statement.hpp"
#include "stream_decoder.hpp"
#include "tcp_peer.hpp"

#include <array>
#include <deque>
#include <optional>
#include <ostream>
#include <string_view>

namespace mpapeer {

/// One line for everything that happens, with the time since the start.
class Transcript {
public:
    explicit Transcript(std::ostream &out, bool verbose = false) : out_(out), verbose_(verbose) {}

    void line(std::string_view mark, std::string_view text);
    void sent(std::string_view text) { line("->", text); }
    void received(std::string_view text) { line("<-", text); }
    void note(std::string_view text) { line("--", text); }

    /// The raw bytes, only if the user wants to see them.
    void bytes(std::string_view mark, ByteView bytes);

private:
    std::ostream &out_;
    bool verbose_;
    Clock::time_point start_ = Clock::now();
};

/// Settings that statements such as "crc off" make for all later statements.
struct Settings {
    Duration within = std::chrono::seconds(5);
    Duration gap = std::chrono::milliseconds(20);
    FpduToSend::Crc crc = FpduToSend::Crc::agreed;
    bool auto_read_response = false;
};

class Session {
public:
    Session(Connection connection, const Settings &settings, Transcript &transcript);

    /// How the peer's stream ended.
    enum class End { open, fin, rst };

    /// Receives once; false when the deadline has passed without anything new.
    bool pump(Deadline deadline);

    /// Receives until the deadline has passed.
    void pump_until(Deadline deadline);

    /// Received items that no statement has handled yet, oldest first.
    std::deque<StreamItem> &inbox() { return inbox_; }

    /// Received bytes that do not make a frame or FPDU yet.
    ByteView unfinished() const { return inbound_.pending(); }
    std::optional<MpaFrame> unfinished_frame() const { return inbound_.partial_frame(); }

    End end() const { return end_; }

    /// A FIN has come, with or without a RST behind it.
    bool fin_received() const { return fin_received_; }

    /// Builds an FPDU for the current state of the connection (MSN, CRC use).
    Bytes build(const FpduToSend &fpdu);

    /// Adds bytes to the queue of the next flush().
    void queue(ByteView bytes);
    bool has_queued() const { return !queued_.empty(); }

    /// Sends everything queued, one segment for each part. With `fin_follows` the last one waits
    /// for the FIN, to travel with it. Throws std::runtime_error when the peer takes nothing.
    void flush(const statement::Split &split, bool fin_follows = false);

    void shutdown();
    void reset();
    void close();
    bool is_open() const { return connection_.is_open(); }

    CrcUse crc_use() const;

private:
    void handle(Connection::Received event, ByteView bytes);
    void handle_item(StreamItem item);
    void note_frame(const MpaFrame &frame);
    bool send_part(ByteView part, bool more, bool urgent = false);
    void answer(const ReadRequest &read);
    void log_queued(std::size_t segments);
    FpduOptions options_for(const FpduToSend &fpdu) const;

    Connection connection_;
    const Settings &settings_;
    Transcript &transcript_;
    StreamDecoder inbound_;
    StreamDecoder outbound_;
    std::deque<StreamItem> inbox_;
    Bytes queued_;
    End end_ = End::open;
    bool fin_received_ = false;
    bool reset_while_sending_ = false;
    bool write_shut_ = false;
    bool crc_wanted_ = false; ///< C=1 in either frame
    std::array<std::uint32_t, 3> next_msn_ = {1, 1, 1};
    ReadRequest last_read_;
};

} // namespace mpapeer
