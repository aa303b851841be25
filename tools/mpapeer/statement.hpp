// SPDX-License-Identifier: GPL-2.0
// The statements of a scenario, one line each.
#pragma once

#include "expectation.hpp"
#include "fpdu.hpp"
#include "text.hpp"

#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace mpapeer {

/// An FPDU that is built when its statement is executed: only then are CRC use and MSN known.
struct FpduToSend {
    enum class Crc { agreed, on, off };

    Ulpdu ulpdu;
    FpduOptions options;
    Crc crc = Crc::agreed;
    bool msn_given = false;
    bool answers_read = false; ///< STag and TO come from the last Read Request received
};

/// How a chunk is sent over SCTP, if not as RFC 5043 wants it.
struct ChunkSettings {
    std::optional<std::uint16_t> ssn;   ///< later chunks count on from this one
    std::optional<std::uint32_t> ppid;
    std::uint16_t stream = 0;
    bool ordered = false;
    bool fragmented = false;
};

/// The lower layer protocol that a statement needs.
enum class Llp { any, tcp, sctp };

/// Send only a part, or a spoilt copy, of the bytes that were built.
struct Cut {
    std::optional<std::size_t> from;
    std::optional<std::size_t> first;
    std::optional<std::size_t> flip_bit; ///< counted from the first byte's highest bit
};

namespace statement {

struct Send {
    std::variant<Bytes, FpduToSend, SessionMessage> what = {}; ///< over SCTP, an FPDU's ULPDU is the segment
    Cut cut = {};
    ChunkSettings chunk = {};
    Llp llp = Llp::any;
};
/// How the next transmission is cut into segments.
struct Split {
    std::vector<std::size_t> at;
    std::size_t every = 0;
    bool urgent = false; ///< its last byte is TCP's urgent data
};
struct Gap {
    Duration length;
};
struct Glue {};
struct Flush {};
struct Wait {
    Duration length;
};
/// Waits until another program has made a file.
struct WaitFor {
    std::string file;
    std::optional<Duration> within;
};
struct Expect {
    std::vector<Pattern> alternatives;
    std::optional<Duration> within;
};
struct ExpectNothing {
    Duration length;
    bool close_allowed = false; ///< "no-data": only bytes break the silence
};
struct ExpectNoConnection {
    Duration length;
};
struct Shutdown {};
struct Reset {};
struct Close {};
struct Within {
    Duration length;
};
struct CrcMode {
    FpduToSend::Crc mode;
};
/// Before the first connection: the adaptation indication in our INIT or INIT-ACK, and the size of
/// our receive window.
struct Association {
    std::optional<std::uint32_t> adaptation = ddp_adaptation;
    std::size_t window = 0; ///< 0: the default
};
/// The peer's adaptation indication.
struct ExpectAdaptation {
    std::optional<std::uint32_t> wanted;
};
/// Whether received data is taken from SCTP; if not, the window shuts.
struct Reading {
    bool on = true;
};
/// From now on nothing is sent, and nothing received, as if our machine were switched off.
struct Vanish {};
/// A further connection.
struct NewConnection {
    bool accept = false;
    bool keep = false; ///< the one before stays open until the end
};
struct AutoReadResponse {
    bool on = true;
};
struct Note {
    std::string text;
};

} // namespace statement

struct Statement {
    std::size_t line = 0;
    std::string text;
    std::variant<statement::Send, statement::Split, statement::Gap, statement::Glue,
                 statement::Flush, statement::Wait, statement::WaitFor, statement::Expect,
                 statement::ExpectNothing, statement::ExpectNoConnection, statement::Shutdown, statement::Reset,
                 statement::Close, statement::Within, statement::CrcMode, statement::NewConnection,
                 statement::AutoReadResponse, statement::Note, statement::Association,
                 statement::ExpectAdaptation, statement::Reading, statement::Vanish>
        action;
};

/// The lower layer protocol that a statement needs.
Llp llp_of(const Statement &statement);

/// Parses the words of one line (at least one); throws TextError.
decltype(Statement::action) parse_statement(std::span<const std::string> words);

/// Parses the words after "send"; throws TextError.
statement::Send parse_send(std::span<const std::string> words);

} // namespace mpapeer
