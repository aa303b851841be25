// SPDX-License-Identifier: GPL-2.0
#include "pcap.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <fstream>
#include <iterator>
#include <system_error>

namespace mpapeer {
namespace {

constexpr std::size_t file_header_size = 24;
constexpr std::size_t record_header_size = 16;
constexpr std::size_t link_type_offset = 20;
constexpr std::uint32_t magic_microseconds = 0xa1b2c3d4;
constexpr std::uint32_t magic_nanoseconds = 0xa1b23c4d;
constexpr std::uint32_t magic_pcapng = 0x0a0d0d0a;
constexpr std::uint32_t link_type_mask = 0x0fffffff; // the high bits are about an FCS
constexpr std::uint32_t max_packet_size = 0x1000000;
constexpr std::int64_t second_ns = 1000000000;

} // namespace

PcapReader::PcapReader(ByteView file) : rest_(file)
{
    if (file.size() < file_header_size)
        throw PcapError("not a capture: shorter than its header");
    bool known = false;
    for (const bool little : {false, true}) {
        little_endian_ = little;
        const std::uint32_t magic = read_u32(0);
        if (magic == magic_pcapng)
            throw PcapError("a pcapng file; convert it: editcap -F pcap IN OUT");
        if (magic == magic_microseconds || magic == magic_nanoseconds) {
            fraction_ns_ = magic == magic_microseconds ? 1000 : 1;
            known = true;
            break;
        }
    }
    if (!known)
        throw PcapError("not a capture: unknown magic number");
    link_type_ = read_u32(link_type_offset) & link_type_mask;
    rest_ = rest_.subspan(file_header_size);
}

std::uint32_t PcapReader::read_u32(std::size_t offset) const
{
    const ByteView field = rest_.subspan(offset, 4);
    const std::uint32_t big = Reader(field).read<std::uint32_t>();
    return little_endian_ ? __builtin_bswap32(big) : big;
}

std::optional<PcapPacket> PcapReader::next()
{
    if (rest_.empty())
        return std::nullopt;
    if (rest_.size() < record_header_size)
        throw PcapError("the capture ends inside a record header");
    const std::int64_t seconds = read_u32(0);
    const std::int64_t fraction = read_u32(4);
    const std::uint32_t size = read_u32(8);
    if (size > max_packet_size)
        throw PcapError(fmt::format("a record of {} bytes: the capture is damaged", size));
    if (size > rest_.size() - record_header_size)
        throw PcapError("the capture ends inside a packet");
    const PcapPacket packet{
        .time_ns = seconds * second_ns + fraction * fraction_ns_,
        .data = rest_.subspan(record_header_size, size),
        .original_size = read_u32(12),
    };
    rest_ = rest_.subspan(record_header_size + size);
    return packet;
}

Bytes read_file(const std::string &path)
{
    std::ifstream file(path, std::ios::binary);
    if (!file)
        throw std::system_error(errno, std::generic_category(), path);
    Bytes bytes{std::istreambuf_iterator<char>(file), {}};
    if (file.bad())
        throw std::system_error(errno, std::generic_category(), path);
    return bytes;
}

} // namespace mpapeer
