// SPDX-License-Identifier: GPL-2.0
// The MPA Request and Reply frames (RFC 5044 section 7.1.1, RFC 6581 sections 6 and 9).
#pragma once

#include "bytes.hpp"

#include <array>
#include <optional>
#include <string_view>
#include <vector>

namespace mpapeer {

inline constexpr std::size_t mpa_header_size = 20;
inline constexpr std::size_t mpa_key_size = 16;
inline constexpr std::size_t enhanced_word_size = 4;
inline constexpr std::size_t max_private_data = 512;
inline constexpr std::uint16_t depth_mask = 0x3fff;

using MpaKey = std::array<std::uint8_t, mpa_key_size>;

/// "MPA ID Req Frame" and "MPA ID Rep Frame" (RFC 6581 section 6).
extern const MpaKey request_key;
extern const MpaKey reply_key;

/// The bits of byte 16 (RFC 6581 section 6).
enum MpaFlag : std::uint8_t {
    flag_markers = 0x80,
    flag_crc = 0x40,
    flag_reject = 0x20,
    flag_enhanced = 0x10,
    flag_reserved = 0x0f,
};

/// Which of the two keys a frame begins with.
enum class FrameKind { request, reply, unknown };

std::string_view to_string(FrameKind kind);

/// Enhanced RDMA connection establishment data, one big-endian word (RFC 6581 section 9).
struct EnhancedWord {
    bool p2p = false;       ///< A: peer-to-peer connection model
    bool send_rtr = false;  ///< B: zero-length FPDU (Send)
    bool write_rtr = false; ///< C: zero-length RDMA Write
    bool read_rtr = false;  ///< D: zero-length RDMA Read
    std::uint16_t ird = 0;  ///< 14 bits; 0x3fff leaves it to the ULP
    std::uint16_t ord = 0;

    static EnhancedWord from_wire(std::uint32_t word);
    std::uint32_t to_wire() const;

    bool operator==(const EnhancedWord &) const = default;
};

/// One Request or Reply frame as it stands on the wire, right or wrong.
struct MpaFrame {
    MpaKey key = request_key;
    std::uint8_t flags = 0;
    std::uint8_t rev = 1;
    std::uint16_t pd_length = 0; ///< as announced; need not match private_data
    Bytes private_data;          ///< the enhanced word included

    FrameKind kind() const;
    bool has(MpaFlag flag) const { return (flags & flag) != 0; }

    /// The enhanced word if the frame is enhanced (S=1, revision 2 or more) and holds one.
    std::optional<EnhancedWord> enhanced_word() const;

    /// Private data that belongs to the ULP: behind the enhanced word, if there is one.
    ByteView ulp_data() const;

    bool operator==(const MpaFrame &) const = default;
};

/// Faults for which a conforming receiver closes the connection (RFC 5044 section 7.1.1).
enum class FrameProblem {
    unknown_key,
    unknown_revision,
    private_data_too_long,
    enhanced_word_missing, ///< S=1 with PD_Length under 4
};

std::string_view to_string(FrameProblem problem);

std::vector<FrameProblem> problems(const MpaFrame &frame);

/// The result of parsing the front of a byte stream.
struct FrameParse {
    enum class Status {
        need_header,       ///< under 20 bytes; `frame` is empty
        need_private_data, ///< header complete; `frame` holds the part that is there
        complete,
    };
    Status status = Status::need_header;
    std::optional<MpaFrame> frame;
    std::size_t consumed = 0; ///< bytes of the whole frame, 0 unless complete
};

/// Parses one frame from the front of `bytes` (RFC 6581 section 6). Wrong keys, revisions and
/// lengths are parsed like right ones: see problems().
FrameParse parse_frame(ByteView bytes);

/// The frame's bytes: the header as it is (also with a wrong pd_length), then the private data.
Bytes build_frame(const MpaFrame &frame);

} // namespace mpapeer
