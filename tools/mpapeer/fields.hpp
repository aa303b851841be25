// SPDX-License-Identifier: GPL-2.0
// Frames, FPDUs and the messages of SCTP as lists of named values. The transcript, the scenarios' expectations and the
// JSON output all use these names, so that they cannot drift apart.
#pragma once

#include "stream_decoder.hpp"

#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace mpapeer {

using NameList = std::vector<std::string>;
using FieldValue = std::variant<bool, std::uint64_t, std::string, NameList, Bytes>;

/// How a field shows up in one line of text.
enum class FieldStyle {
    plain,
    hex,
    quiet, ///< only in JSON and for expectations
};

struct Field {
    std::string_view name;
    FieldValue value;
    FieldStyle style = FieldStyle::plain;
};

using Fields = std::vector<Field>;

/// Whether the CRCs of a connection's FPDUs mean anything (RFC 5044 section 7.1.1, bit C).
enum class CrcUse { off, on };

/// All fields of a Request or Reply; those of the enhanced word only if there is one.
Fields frame_fields(const MpaFrame &frame);

/// All fields of a session control message; those of the enhanced word only if there is one.
Fields message_fields(const SessionMessage &message);

/// The fields of a DATA chunk itself.
Fields chunk_fields(const ChunkInfo &chunk);

/// All fields of a DDP segment that exist in a message of its kind.
Fields ulpdu_fields(const Ulpdu &ulpdu);

/// All fields of an FPDU that exist in a message of its kind. "crc" is ok, bad or unused.
Fields fpdu_fields(const Fpdu &fpdu, CrcUse crc_use);

Fields item_fields(const StreamItem &item, CrcUse crc_use);

/// "request", "initiate", "write", "term"…
std::string_view item_kind(const StreamItem &item);

const Field *find_field(const Fields &fields, std::string_view name);

/// One value as it is written in a scenario. Long byte strings are cut when `cut` is set.
std::string value_text(const Field &field, bool cut);

/// "reply rev=2 crc=1 …": one line.
std::string describe(const StreamItem &item, CrcUse crc_use);

/// One line for a startup frame of which only the front is there.
std::string describe_partial(const MpaFrame &frame);

} // namespace mpapeer
