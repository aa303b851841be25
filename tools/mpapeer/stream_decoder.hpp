// SPDX-License-Identifier: GPL-2.0
// One direction of an MPA connection: first a Request or Reply frame, then FPDUs.
#pragma once

#include "fpdu.hpp"
#include "mpa_frame.hpp"
#include "session_message.hpp"

#include <optional>
#include <variant>

namespace mpapeer {

/// One frame or FPDU with the bytes it was made of. Over SCTP it is a session control message, or a DDP
/// segment, which stands in the place of an FPDU's ULPDU.
struct StreamItem {
    using Content = std::variant<MpaFrame, Fpdu, SessionMessage>;

    Content content;
    Bytes raw;                           ///< of a chunk: what is behind the DDP-SSN
    std::optional<ChunkInfo> chunk = {}; ///< over SCTP

    const MpaFrame *frame() const { return std::get_if<MpaFrame>(&content); }
    const Fpdu *fpdu() const { return std::get_if<Fpdu>(&content); }
    const SessionMessage *message() const { return std::get_if<SessionMessage>(&content); }
};

/// Cuts a byte stream into its startup frame and the FPDUs behind it (RFC 5044 section 7.1).
class StreamDecoder {
public:
    void feed(ByteView bytes);

    /// The next complete item, if there is one.
    std::optional<StreamItem> next();

    /// Bytes that do not make a whole item yet.
    ByteView pending() const { return ByteView(buffer_).subspan(taken_); }

    /// The startup frame that pending() begins with, as far as it is there; nothing if its header
    /// is not complete or FPDUs have begun.
    std::optional<MpaFrame> partial_frame() const;

    bool in_startup() const { return in_startup_; }

private:
    StreamItem take(StreamItem::Content content, std::size_t size);

    Bytes buffer_;
    std::size_t taken_ = 0;
    bool in_startup_ = true;
};

} // namespace mpapeer
