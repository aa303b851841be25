// SPDX-License-Identifier: GPL-2.0
// One connection while a scenario runs on it, with the items received so far; over TCP or SCTP.
#pragma once

#include "socket.hpp"
#include "statement.hpp"
#include "stream_decoder.hpp"

#include <array>
#include <deque>
#include <memory>
#include <ostream>
#include <string>
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
    bool reading = true;
};

/// The part of `bytes` that `cut` leaves, spoilt if it says so; throws std::runtime_error.
Bytes cut_bytes(Bytes bytes, const Cut &cut);

class Session {
public:
    Session(const Settings &settings, Transcript &transcript)
        : settings_(settings), transcript_(transcript)
    {
    }
    virtual ~Session() = default;

    /// How the peer's stream ended.
    enum class End { open, fin, rst };

    /// Receives once; false when the deadline has passed without anything new.
    virtual bool pump(Deadline deadline) = 0;

    /// Receives until the deadline has passed.
    void pump_until(Deadline deadline);

    /// Received items that no statement has handled yet, oldest first.
    std::deque<StreamItem> &inbox() { return inbox_; }

    /// Describes what was received of something that is not whole; empty if there is nothing.
    virtual std::string unfinished() const = 0;

    End end() const { return end_; }
    virtual std::string end_text() const = 0;

    /// A FIN has come, with or without a RST behind it.
    bool fin_received() const { return fin_received_; }

    /// Adds to the queue of the next flush(), or sends at once what is never glued.
    virtual void send(const statement::Send &action) = 0;
    virtual bool has_queued() const { return false; }

    /// Sends everything queued. With `fin_follows` the last part waits for the FIN, to travel with it.
    /// Throws std::runtime_error when the peer takes nothing.
    virtual void flush(const statement::Split &, bool /*fin_follows*/) {}

    /// The peer's adaptation indication, as far as it has come.
    virtual std::optional<std::uint32_t> adaptation() const { return std::nullopt; }

    virtual void shutdown() = 0;
    virtual void reset() = 0;
    virtual void close() = 0;
    virtual void vanish() {}
    virtual bool is_open() const = 0;

    virtual CrcUse crc_use() const { return CrcUse::off; }

protected:
    /// The DDP segment for the current state of the connection: MSN, and STag of a Read Response.
    Ulpdu complete(const FpduToSend &fpdu);

    /// Puts an item into the inbox; true if it is a Read Request that has to be answered now.
    bool take(StreamItem item);

    /// The answer to the last Read Request; throws std::runtime_error if it is too large.
    FpduToSend make_read_response() const;

    const Settings &settings_;
    Transcript &transcript_;
    std::deque<StreamItem> inbox_;
    End end_ = End::open;
    bool fin_received_ = false;

private:
    std::array<std::uint32_t, 3> next_msn_ = {1, 1, 1};
    ReadRequest last_read_;
};

/// The lower layer protocol in one role: makes the connections of a scenario.
class Transport {
public:
    virtual ~Transport() = default;

    /// Throws std::system_error.
    virtual std::unique_ptr<Session> connect(const Settings &settings, Transcript &transcript,
                                             Deadline deadline) = 0;

    /// The next connection; nothing if none comes.
    virtual std::unique_ptr<Session> accept(const Settings &settings, Transcript &transcript,
                                            Deadline deadline) = 0;

    /// Whether a connection is there to be accepted.
    virtual bool has_connection(Deadline deadline) = 0;

    /// The address on which it listens; empty for an initiator.
    virtual std::string listening_on() const = 0;
};

} // namespace mpapeer
