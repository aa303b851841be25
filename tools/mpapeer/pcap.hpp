// SPDX-License-Identifier: GPL-2.0
// Classic pcap files (not pcapng): either byte order, microseconds or nanoseconds.
#pragma once

#include "bytes.hpp"

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>

namespace mpapeer {

class PcapError : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

struct PcapPacket {
    std::int64_t time_ns = 0; ///< since 1970
    ByteView data;            ///< as captured
    std::uint32_t original_size = 0;
};

/// Walks through a capture held in memory.
class PcapReader {
public:
    /// Throws PcapError if the file is not a readable capture.
    explicit PcapReader(ByteView file);

    std::uint32_t link_type() const { return link_type_; }

    /// The next packet, nothing at the end; throws PcapError if a record is cut off or invalid.
    std::optional<PcapPacket> next();

private:
    std::uint32_t read_u32(std::size_t offset) const;

    ByteView rest_;
    bool little_endian_ = false;
    std::int64_t fraction_ns_ = 1000;
    std::uint32_t link_type_ = 0;
};

/// A whole file in memory; throws std::system_error.
Bytes read_file(const std::string &path);

} // namespace mpapeer
