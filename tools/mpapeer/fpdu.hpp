// SPDX-License-Identifier: GPL-2.0
// FPDUs without markers (RFC 5044 section 4), and the parts of DDP (RFC 5041) and RDMAP (RFC 5040)
// that connection setup and a first message need.
#pragma once

#include "bytes.hpp"

#include <optional>
#include <string_view>

namespace mpapeer {

/// RDMAP opcodes (RFC 5040 section 4.1).
enum class Opcode : std::uint8_t {
    write = 0,
    read_request = 1,
    read_response = 2,
    send = 3,
    send_inv = 4,
    send_se = 5,
    send_se_inv = 6,
    terminate = 7,
};

/// Kinds of ULPDU, from its control bits and length.
enum class UlpduKind {
    null, ///< ULPDU_Length 0: no DDP header at all
    write,
    read_request,
    read_response,
    send,
    send_inv,
    send_se,
    send_se_inv,
    term,
    unknown, ///< too short for its header, or an unknown RDMAP message
};

std::string_view to_string(UlpduKind kind);

/// DDP tagged header (RFC 5041 section 4.2).
struct TaggedHeader {
    std::uint32_t stag = 0;
    std::uint64_t to = 0;
    bool operator==(const TaggedHeader &) const = default;
};

/// DDP untagged header (RFC 5041 section 4.3).
struct UntaggedHeader {
    std::uint32_t inv_stag = 0; ///< Invalidate STag, reserved in most messages
    std::uint32_t qn = 0;
    std::uint32_t msn = 1;
    std::uint32_t mo = 0;
    bool operator==(const UntaggedHeader &) const = default;
};

/// RDMA Read Request header (RFC 5040 section 4.4).
struct ReadRequest {
    std::uint32_t sink_stag = 0;
    std::uint64_t sink_to = 0;
    std::uint32_t size = 0;
    std::uint32_t src_stag = 0;
    std::uint64_t src_to = 0;
    bool operator==(const ReadRequest &) const = default;
};

/// Terminate control word (RFC 5040 section 4.8).
struct Terminate {
    std::uint8_t layer = 0;     ///< 4 bits; 2 = MPA
    std::uint8_t etype = 0;     ///< 4 bits
    std::uint8_t code = 0;
    std::uint8_t hdrct = 0;     ///< M, D, R
    std::uint16_t reserved = 0; ///< 13 bits
    bool operator==(const Terminate &) const = default;
};

inline constexpr std::uint8_t ddp_tagged = 0x80;
inline constexpr std::uint8_t ddp_last = 0x40;
inline constexpr std::uint8_t ddp_version_1 = 0x01;
inline constexpr std::uint8_t rdmap_version_1 = 0x40;

inline constexpr std::uint32_t send_queue = 0;
inline constexpr std::uint32_t read_queue = 1;
inline constexpr std::uint32_t term_queue = 2;

/// One DDP segment. `kind` says which header is valid; the others keep their defaults.
struct Ulpdu {
    UlpduKind kind = UlpduKind::null;
    std::uint8_t ddp_control = 0;
    std::uint8_t rdmap_control = 0;
    TaggedHeader tagged;
    UntaggedHeader untagged;
    ReadRequest read;
    Terminate term;
    Bytes payload; ///< behind the headers

    bool is_tagged() const { return (ddp_control & ddp_tagged) != 0; }
    bool is_last() const { return (ddp_control & ddp_last) != 0; }
    bool operator==(const Ulpdu &) const = default;
};

/// The whole last segment of a message of this kind: control bytes and queue number as
/// RFC 5040 section 4.2 wants them, everything else 0, MSN 1.
Ulpdu make_ulpdu(UlpduKind kind);

/// Zero-length Write, Read Request or Send, or a null FPDU: the shapes of an RTR indication
/// (RFC 6581 section 9.2).
bool is_rtr(const Ulpdu &ulpdu);

/// Never fails: bytes that cannot be decoded become UlpduKind::unknown, all of them in `payload`.
Ulpdu decode_ulpdu(ByteView bytes);
Bytes encode_ulpdu(const Ulpdu &ulpdu);

/// One FPDU as it stands on the wire (RFC 5044 section 4.1).
struct Fpdu {
    Ulpdu ulpdu;
    std::uint16_t ulpdu_length = 0;
    std::uint32_t crc = 0;
    bool crc_matches = false; ///< whether or not CRCs are in use on the connection
    bool pad_is_zero = true;  ///< as RFC 5044 section 4.1 wants it
};

struct FpduParse {
    Fpdu fpdu;
    std::size_t consumed = 0;
};

/// Parses one FPDU from the front of `bytes`; nothing while it is incomplete.
std::optional<FpduParse> parse_fpdu(ByteView bytes);

/// How to finish an FPDU; without a value the field is correct.
struct FpduOptions {
    bool use_crc = true;                            ///< false: the CRC field is sent as 0
    std::optional<std::uint32_t> crc = {};          ///< this CRC instead
    bool spoil_crc = false;                         ///< the right CRC with its last bit flipped
    std::optional<std::uint16_t> ulpdu_length = {}; ///< this length field instead
};

/// Length, ULPDU, pad and CRC (RFC 5044 sections 4.1 and 4.4). The ULPDU has at most 65535 bytes.
Bytes build_fpdu(ByteView ulpdu, const FpduOptions &options = {});

} // namespace mpapeer
