// SPDX-License-Identifier: GPL-2.0
// Captures in each format that libpcap reads: pcap and pcapng.
#pragma once

#include "bytes.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

struct pcap;

namespace mpapeer {

class PcapError : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

struct PcapPacket {
    std::int64_t time_ns = 0; ///< since 1970
    ByteView data;            ///< as captured; until the next packet is read
};

/// Walks through a capture.
class PcapReader {
public:
    /// A file, "-" for standard input. Throws PcapError if it is not a readable capture.
    explicit PcapReader(const std::string &path);

    /// A capture in memory, which outlives the reader. Throws as above.
    explicit PcapReader(ByteView capture);

    /// A LINKTYPE_ value as in pcap files.
    std::uint32_t link_type() const;

    /// The next packet, nothing at the end; throws PcapError if a record is cut off or invalid.
    std::optional<PcapPacket> next();

private:
    struct Close {
        void operator()(pcap *handle) const;
    };
    std::unique_ptr<pcap, Close> handle_;
};

} // namespace mpapeer
