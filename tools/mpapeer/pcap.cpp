// SPDX-License-Identifier: GPL-2.0
#include "pcap.hpp"

#include <pcap/pcap.h>

#include <array>
#include <cstdio>

namespace mpapeer {
namespace {

constexpr std::int64_t second_ns = 1000000000;
constexpr std::uint32_t linktype_raw = 101; // DLT_RAW has another number on each system

using Message = std::array<char, PCAP_ERRBUF_SIZE>;

[[noreturn]] void refuse(const Message &why)
{
    throw PcapError(std::string("not a capture file: ") + why.data());
}

} // namespace

void PcapReader::Close::operator()(pcap *handle) const
{
    pcap_close(handle);
}

PcapReader::PcapReader(const std::string &path)
{
    Message why{};
    handle_.reset(
        pcap_open_offline_with_tstamp_precision(path.c_str(), PCAP_TSTAMP_PRECISION_NANO, why.data()));
    if (!handle_)
        refuse(why);
}

PcapReader::PcapReader(ByteView capture)
{
    Message why{"the file is empty"};
    // fmemopen() takes a pointer that is not const; "r" only reads
    std::FILE *file =
        capture.empty() ? nullptr : fmemopen(const_cast<std::uint8_t *>(capture.data()), capture.size(), "rb");
    if (!file)
        refuse(why);
    handle_.reset(pcap_fopen_offline_with_tstamp_precision(file, PCAP_TSTAMP_PRECISION_NANO, why.data()));
    if (!handle_) {
        std::fclose(file);
        refuse(why);
    }
}

std::uint32_t PcapReader::link_type() const
{
    const int type = pcap_datalink(handle_.get());
    return type == DLT_RAW ? linktype_raw : static_cast<std::uint32_t>(type);
}

std::optional<PcapPacket> PcapReader::next()
{
    pcap_pkthdr *header = nullptr;
    const u_char *data = nullptr;
    switch (pcap_next_ex(handle_.get(), &header, &data)) {
    case 1:
        // with the precision asked for, tv_usec has nanoseconds
        return PcapPacket{.time_ns = header->ts.tv_sec * second_ns + header->ts.tv_usec,
                          .data = ByteView(data, header->caplen)};
    case PCAP_ERROR_BREAK:
        return std::nullopt;
    default:
        throw PcapError(pcap_geterr(handle_.get()));
    }
}

} // namespace mpapeer
