// SPDX-License-Identifier: GPL-2.0
// Expectations of a scenario: a frame or FPDU with certain fields, or the end.
#pragma once

#include "fields.hpp"

#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace mpapeer {

enum class Comparison { equal, not_equal, less, less_equal, greater, greater_equal, any_of };

/// A test such as "ird>=4".
struct FieldTest {
    std::string name;
    Comparison comparison = Comparison::equal;
    FieldValue wanted;
};

/// A frame or FPDU of a kind ("reply", "write-rtr", "any"…) whose named fields fit.
struct ItemPattern {
    std::string kind;
    std::vector<FieldTest> tests;
};

/// A frame or FPDU with exactly these bytes.
struct HexPattern {
    Bytes bytes;
};

/// The end of the peer's stream.
struct ClosePattern {
    enum class How { any, fin, rst };
    How how = How::any;
    bool drain = false; ///< bytes before it do not matter
};

using Pattern = std::variant<ItemPattern, HexPattern, ClosePattern>;

/// Parses one alternative of an expectation; throws TextError.
Pattern parse_pattern(std::span<const std::string> words);

/// The reason why an item does not fit; nothing if it does. No item fits a ClosePattern. With CRCs in
/// use an item with a wrong CRC never fits, unless the pattern has its own test of "crc".
std::optional<std::string> mismatch(const Pattern &pattern, const StreamItem &item,
                                    CrcUse crc_use);

} // namespace mpapeer
