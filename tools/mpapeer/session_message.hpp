// SPDX-License-Identifier: GPL-2.0
// iWARP over SCTP: DDP stream session control messages (RFC 5043 section 5.2.3, RFC 6581 section 7),
// and the chunks that carry them and DDP segments.
#pragma once

#include "mpa_frame.hpp"

#include <optional>
#include <string_view>
#include <vector>

namespace mpapeer {

/// Function codes. Codes 5 to 7 have the enhanced word in front of the ULP's private data.
enum class SessionCode : std::uint16_t {
    initiate = 1,
    accept = 2,
    reject = 3,
    terminate = 4,
    enhanced_initiate = 5,
    enhanced_accept = 6,
    enhanced_reject = 7,
};

/// The distance of an enhanced code from its plain one.
inline constexpr std::uint16_t enhanced_code_offset = 4;

/// Payload protocol identifiers and adaptation indication (RFC 5043 sections 5.1 and 5.2).
inline constexpr std::uint32_t ppid_segment = 16;
inline constexpr std::uint32_t ppid_control = 17;
inline constexpr std::uint32_t ddp_adaptation = 1;

/// One session control message, right or wrong, behind its DDP-SSN.
struct SessionMessage {
    std::uint16_t code = 0;
    Bytes private_data; ///< the enhanced word included

    /// "initiate", "accept", "reject" or "terminate", enhanced or not; "control" for other codes.
    std::string_view kind() const;

    bool is_enhanced() const;

    /// The word of an enhanced message that holds one. A Reject may lack it: RFC 6581 section 7 names
    /// it for Initiate and Accept.
    std::optional<EnhancedWord> enhanced_word() const;

    /// Private data that belongs to the ULP: behind the enhanced word, if there is one.
    ByteView ulp_data() const;

    bool operator==(const SessionMessage &) const = default;
};

/// Faults for which a conforming receiver terminates the session.
enum class SessionProblem {
    unknown_code,
    private_data_too_long,
    enhanced_word_missing,
    terminate_with_data,
};

std::string_view to_string(SessionProblem problem);

std::vector<SessionProblem> problems(const SessionMessage &message);

/// Nothing if the function code is not there.
std::optional<SessionMessage> parse_session_message(ByteView bytes);
Bytes build_session_message(const SessionMessage &message);

/// All about a DATA chunk but its content (RFC 5043 sections 5.2 and 10).
struct ChunkInfo {
    std::uint16_t ssn = 0; ///< DDP-SSN
    std::uint32_t ppid = 0;
    std::uint16_t stream = 0;
    bool ordered = false;
};

} // namespace mpapeer
