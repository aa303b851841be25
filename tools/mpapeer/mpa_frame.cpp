// SPDX-License-Identifier: GPL-2.0
#include "mpa_frame.hpp"

#include <algorithm>

namespace mpapeer {

const MpaKey request_key = {'M', 'P', 'A', ' ', 'I', 'D', ' ', 'R',
                            'e', 'q', ' ', 'F', 'r', 'a', 'm', 'e'};
const MpaKey reply_key = {'M', 'P', 'A', ' ', 'I', 'D', ' ', 'R',
                          'e', 'p', ' ', 'F', 'r', 'a', 'm', 'e'};

namespace {

constexpr std::uint32_t bit_a = 0x80000000;
constexpr std::uint32_t bit_b = 0x40000000;
constexpr std::uint32_t bit_c = 0x00008000;
constexpr std::uint32_t bit_d = 0x00004000;
constexpr unsigned ird_shift = 16;

/// Enhanced data exists from revision 2 on; to revision 1 the S position is a reserved bit.
bool is_enhanced(const MpaFrame &frame)
{
    return frame.has(flag_enhanced) && frame.rev >= 2;
}

} // namespace

std::string_view to_string(FrameKind kind)
{
    switch (kind) {
    case FrameKind::request: return "request";
    case FrameKind::reply: return "reply";
    case FrameKind::unknown: break;
    }
    return "unknown";
}

std::string_view to_string(FrameProblem problem)
{
    switch (problem) {
    case FrameProblem::unknown_key: return "unknown key";
    case FrameProblem::unknown_revision: return "unknown revision";
    case FrameProblem::private_data_too_long: return "private data too long";
    case FrameProblem::enhanced_word_missing: return "enhanced word missing";
    }
    return "?";
}

EnhancedWord EnhancedWord::from_wire(std::uint32_t word)
{
    return {
        .p2p = (word & bit_a) != 0,
        .send_rtr = (word & bit_b) != 0,
        .write_rtr = (word & bit_c) != 0,
        .read_rtr = (word & bit_d) != 0,
        .ird = static_cast<std::uint16_t>(word >> ird_shift & depth_mask),
        .ord = static_cast<std::uint16_t>(word & depth_mask),
    };
}

std::uint32_t EnhancedWord::to_wire() const
{
    return (p2p ? bit_a : 0) | (send_rtr ? bit_b : 0) | (write_rtr ? bit_c : 0) |
           (read_rtr ? bit_d : 0) |
           static_cast<std::uint32_t>(ird & depth_mask) << ird_shift | (ord & depth_mask);
}

FrameKind MpaFrame::kind() const
{
    if (key == request_key)
        return FrameKind::request;
    if (key == reply_key)
        return FrameKind::reply;
    return FrameKind::unknown;
}

std::optional<EnhancedWord> MpaFrame::enhanced_word() const
{
    if (!is_enhanced(*this) || private_data.size() < enhanced_word_size)
        return std::nullopt;
    return EnhancedWord::from_wire(Reader(private_data).read<std::uint32_t>());
}

ByteView MpaFrame::ulp_data() const
{
    return ByteView(private_data).subspan(enhanced_word() ? enhanced_word_size : 0);
}

std::vector<FrameProblem> problems(const MpaFrame &frame)
{
    std::vector<FrameProblem> found;
    if (frame.kind() == FrameKind::unknown)
        found.push_back(FrameProblem::unknown_key);
    if (frame.rev != 1 && frame.rev != 2)
        found.push_back(FrameProblem::unknown_revision);
    if (frame.pd_length > max_private_data)
        found.push_back(FrameProblem::private_data_too_long);
    if (is_enhanced(frame) && frame.pd_length < enhanced_word_size)
        found.push_back(FrameProblem::enhanced_word_missing);
    return found;
}

FrameParse parse_frame(ByteView bytes)
{
    if (bytes.size() < mpa_header_size)
        return {};

    MpaFrame frame;
    std::copy_n(bytes.begin(), mpa_key_size, frame.key.begin());
    Reader reader(bytes.subspan(mpa_key_size));
    frame.flags = reader.read<std::uint8_t>();
    frame.rev = reader.read<std::uint8_t>();
    frame.pd_length = reader.read<std::uint16_t>();

    const std::size_t available = std::min<std::size_t>(frame.pd_length, reader.rest().size());
    const ByteView data = reader.rest().first(available);
    frame.private_data.assign(data.begin(), data.end());

    const bool complete = available == frame.pd_length;
    return {
        .status = complete ? FrameParse::Status::complete : FrameParse::Status::need_private_data,
        .frame = std::move(frame),
        .consumed = complete ? mpa_header_size + available : 0,
    };
}

Bytes build_frame(const MpaFrame &frame)
{
    Bytes bytes;
    bytes.reserve(mpa_header_size + frame.private_data.size());
    append(bytes, ByteView(frame.key));
    append(bytes, frame.flags);
    append(bytes, frame.rev);
    append(bytes, frame.pd_length);
    append(bytes, ByteView(frame.private_data));
    return bytes;
}

} // namespace mpapeer
