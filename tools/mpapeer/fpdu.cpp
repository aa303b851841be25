// SPDX-License-Identifier: GPL-2.0
#include "fpdu.hpp"

#include "crc32c.hpp"

#include <algorithm>

namespace mpapeer {
namespace {

constexpr std::size_t length_size = 2;
constexpr std::size_t crc_size = 4;
constexpr std::size_t control_size = 2;
constexpr std::size_t tagged_size = control_size + 12;
constexpr std::size_t untagged_size = control_size + 16;
constexpr std::size_t read_request_size = untagged_size + 28;
constexpr std::size_t terminate_size = untagged_size + 4;
constexpr std::uint8_t opcode_mask = 0x0f;

std::size_t padded(std::size_t size)
{
    return (size + 3) / 4 * 4;
}

/// CRCs travel low byte first, unlike every other field (RFC 5044 section 4.4, as in iSCSI).
std::uint32_t stored_crc(ByteView field)
{
    return static_cast<std::uint32_t>(field[0]) | static_cast<std::uint32_t>(field[1]) << 8 |
           static_cast<std::uint32_t>(field[2]) << 16 | static_cast<std::uint32_t>(field[3]) << 24;
}

void append_crc(Bytes &out, std::uint32_t crc)
{
    for (unsigned shift = 0; shift < 32; shift += 8)
        out.push_back(static_cast<std::uint8_t>(crc >> shift));
}

UlpduKind kind_of(bool tagged, std::uint8_t opcode)
{
    switch (static_cast<Opcode>(opcode)) {
    case Opcode::write: return tagged ? UlpduKind::write : UlpduKind::unknown;
    case Opcode::read_request: return tagged ? UlpduKind::unknown : UlpduKind::read_request;
    case Opcode::read_response: return tagged ? UlpduKind::read_response : UlpduKind::unknown;
    case Opcode::send: return tagged ? UlpduKind::unknown : UlpduKind::send;
    case Opcode::send_inv: return tagged ? UlpduKind::unknown : UlpduKind::send_inv;
    case Opcode::send_se: return tagged ? UlpduKind::unknown : UlpduKind::send_se;
    case Opcode::send_se_inv: return tagged ? UlpduKind::unknown : UlpduKind::send_se_inv;
    case Opcode::terminate: return tagged ? UlpduKind::unknown : UlpduKind::term;
    }
    return UlpduKind::unknown;
}

Opcode opcode_of(UlpduKind kind)
{
    switch (kind) {
    case UlpduKind::read_request: return Opcode::read_request;
    case UlpduKind::read_response: return Opcode::read_response;
    case UlpduKind::send: return Opcode::send;
    case UlpduKind::send_inv: return Opcode::send_inv;
    case UlpduKind::send_se: return Opcode::send_se;
    case UlpduKind::send_se_inv: return Opcode::send_se_inv;
    case UlpduKind::term: return Opcode::terminate;
    case UlpduKind::write:
    case UlpduKind::null:
    case UlpduKind::unknown: break;
    }
    return Opcode::write;
}

std::size_t header_size(UlpduKind kind)
{
    switch (kind) {
    case UlpduKind::write:
    case UlpduKind::read_response: return tagged_size;
    case UlpduKind::send:
    case UlpduKind::send_inv:
    case UlpduKind::send_se:
    case UlpduKind::send_se_inv: return untagged_size;
    case UlpduKind::read_request: return read_request_size;
    case UlpduKind::term: return terminate_size;
    case UlpduKind::null:
    case UlpduKind::unknown: break;
    }
    return 0;
}

Terminate decode_terminate(std::uint32_t word)
{
    return {
        .layer = static_cast<std::uint8_t>(word >> 28),
        .etype = static_cast<std::uint8_t>(word >> 24 & 0xf),
        .code = static_cast<std::uint8_t>(word >> 16 & 0xff),
        .hdrct = static_cast<std::uint8_t>(word >> 13 & 0x7),
        .reserved = static_cast<std::uint16_t>(word & 0x1fff),
    };
}

std::uint32_t encode_terminate(const Terminate &term)
{
    return static_cast<std::uint32_t>(term.layer & 0xf) << 28 |
           static_cast<std::uint32_t>(term.etype & 0xf) << 24 |
           static_cast<std::uint32_t>(term.code) << 16 |
           static_cast<std::uint32_t>(term.hdrct & 0x7) << 13 |
           static_cast<std::uint32_t>(term.reserved & 0x1fff);
}

Ulpdu unknown_ulpdu(ByteView bytes)
{
    Ulpdu ulpdu;
    ulpdu.kind = UlpduKind::unknown;
    ulpdu.payload.assign(bytes.begin(), bytes.end());
    if (bytes.size() >= control_size) {
        ulpdu.ddp_control = bytes[0];
        ulpdu.rdmap_control = bytes[1];
    }
    return ulpdu;
}

} // namespace

std::string_view to_string(UlpduKind kind)
{
    switch (kind) {
    case UlpduKind::null: return "null";
    case UlpduKind::write: return "write";
    case UlpduKind::read_request: return "read-request";
    case UlpduKind::read_response: return "read-response";
    case UlpduKind::send: return "send";
    case UlpduKind::send_inv: return "send-inv";
    case UlpduKind::send_se: return "send-se";
    case UlpduKind::send_se_inv: return "send-se-inv";
    case UlpduKind::term: return "term";
    case UlpduKind::unknown: break;
    }
    return "unknown";
}

Ulpdu make_ulpdu(UlpduKind kind)
{
    Ulpdu ulpdu;
    ulpdu.kind = kind;
    if (kind == UlpduKind::null || kind == UlpduKind::unknown)
        return ulpdu;
    const bool tagged = kind == UlpduKind::write || kind == UlpduKind::read_response;
    ulpdu.ddp_control =
        static_cast<std::uint8_t>((tagged ? ddp_tagged : 0) | ddp_last | ddp_version_1);
    ulpdu.rdmap_control =
        static_cast<std::uint8_t>(rdmap_version_1 | static_cast<std::uint8_t>(opcode_of(kind)));
    if (kind == UlpduKind::read_request)
        ulpdu.untagged.qn = read_queue;
    if (kind == UlpduKind::term)
        ulpdu.untagged.qn = term_queue;
    return ulpdu;
}

bool is_rtr(const Ulpdu &ulpdu)
{
    switch (ulpdu.kind) {
    case UlpduKind::null: return true;
    case UlpduKind::write:
    case UlpduKind::send: return ulpdu.payload.empty();
    case UlpduKind::read_request: return ulpdu.read.size == 0;
    default: return false;
    }
}

Ulpdu decode_ulpdu(ByteView bytes)
{
    if (bytes.empty())
        return {};
    if (bytes.size() < control_size)
        return unknown_ulpdu(bytes);

    Ulpdu ulpdu;
    Reader reader(bytes);
    ulpdu.ddp_control = reader.read<std::uint8_t>();
    ulpdu.rdmap_control = reader.read<std::uint8_t>();
    ulpdu.kind = kind_of(ulpdu.is_tagged(), ulpdu.rdmap_control & opcode_mask);
    if (ulpdu.kind == UlpduKind::unknown || bytes.size() < header_size(ulpdu.kind))
        return unknown_ulpdu(bytes);

    if (ulpdu.is_tagged()) {
        ulpdu.tagged.stag = reader.read<std::uint32_t>();
        ulpdu.tagged.to = reader.read<std::uint64_t>();
    } else {
        ulpdu.untagged.inv_stag = reader.read<std::uint32_t>();
        ulpdu.untagged.qn = reader.read<std::uint32_t>();
        ulpdu.untagged.msn = reader.read<std::uint32_t>();
        ulpdu.untagged.mo = reader.read<std::uint32_t>();
    }
    if (ulpdu.kind == UlpduKind::read_request) {
        ulpdu.read.sink_stag = reader.read<std::uint32_t>();
        ulpdu.read.sink_to = reader.read<std::uint64_t>();
        ulpdu.read.size = reader.read<std::uint32_t>();
        ulpdu.read.src_stag = reader.read<std::uint32_t>();
        ulpdu.read.src_to = reader.read<std::uint64_t>();
    }
    if (ulpdu.kind == UlpduKind::term)
        ulpdu.term = decode_terminate(reader.read<std::uint32_t>());
    const ByteView rest = reader.rest();
    ulpdu.payload.assign(rest.begin(), rest.end());
    return ulpdu;
}

Bytes encode_ulpdu(const Ulpdu &ulpdu)
{
    if (ulpdu.kind == UlpduKind::null)
        return {};
    if (ulpdu.kind == UlpduKind::unknown)
        return ulpdu.payload;

    Bytes out;
    append(out, ulpdu.ddp_control);
    append(out, ulpdu.rdmap_control);
    if (ulpdu.is_tagged()) {
        append(out, ulpdu.tagged.stag);
        append(out, ulpdu.tagged.to);
    } else {
        append(out, ulpdu.untagged.inv_stag);
        append(out, ulpdu.untagged.qn);
        append(out, ulpdu.untagged.msn);
        append(out, ulpdu.untagged.mo);
    }
    if (ulpdu.kind == UlpduKind::read_request) {
        append(out, ulpdu.read.sink_stag);
        append(out, ulpdu.read.sink_to);
        append(out, ulpdu.read.size);
        append(out, ulpdu.read.src_stag);
        append(out, ulpdu.read.src_to);
    }
    if (ulpdu.kind == UlpduKind::term)
        append(out, encode_terminate(ulpdu.term));
    append(out, ByteView(ulpdu.payload));
    return out;
}

std::optional<FpduParse> parse_fpdu(ByteView bytes)
{
    if (bytes.size() < length_size)
        return std::nullopt;
    FpduParse parse;
    parse.fpdu.ulpdu_length = Reader(bytes).read<std::uint16_t>();
    const std::size_t covered = padded(length_size + parse.fpdu.ulpdu_length);
    parse.consumed = covered + crc_size;
    if (bytes.size() < parse.consumed)
        return std::nullopt;

    parse.fpdu.ulpdu = decode_ulpdu(bytes.subspan(length_size, parse.fpdu.ulpdu_length));
    parse.fpdu.crc = stored_crc(bytes.subspan(covered, crc_size));
    parse.fpdu.crc_matches = parse.fpdu.crc == crc32c(bytes.first(covered));
    const ByteView pad = bytes.first(covered).subspan(length_size + parse.fpdu.ulpdu_length);
    parse.fpdu.pad_is_zero = std::ranges::all_of(pad, [](auto byte) { return byte == 0; });
    return parse;
}

Bytes build_fpdu(ByteView ulpdu, const FpduOptions &options)
{
    Bytes out;
    append(out, options.ulpdu_length.value_or(static_cast<std::uint16_t>(ulpdu.size())));
    append(out, ulpdu);
    out.resize(padded(out.size()));
    std::uint32_t crc = options.use_crc ? crc32c(out) : 0;
    if (options.spoil_crc)
        crc = crc32c(out) ^ 1;
    append_crc(out, options.crc.value_or(crc));
    return out;
}

} // namespace mpapeer
