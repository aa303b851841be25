// SPDX-License-Identifier: GPL-2.0
// frame.c: arbitrary bytes in, arbitrary structs out. Input: one byte that chooses kind and
// dialect, then the bytes of a stream; the same bytes make a struct to build.
#include "check.hpp"
#include "expected_frame.hpp"
#include "input.hpp"

#include <cstring>
#include <memory>
#include <sanitizer/asan_interface.h>
#include <string_view>
#include <vector>

using mpapeer::ByteView;
using mpapeer::MpaFrame;

namespace {

constexpr u8 untouched = 0xa5;

/// Exactly so many bytes, so that AddressSanitizer sees the next one.
std::unique_ptr<u8[]> exact(ByteView bytes)
{
    auto copy = std::make_unique<u8[]>(bytes.size());
    if (!bytes.empty())
        std::memcpy(copy.get(), bytes.data(), bytes.size());
    return copy;
}

bool is_untouched(const iw_mpa_frame &frame)
{
    u8 pattern[sizeof(frame)];
    std::memset(pattern, untouched, sizeof(pattern));
    return std::memcmp(&frame, pattern, sizeof(frame)) == 0;
}

void check_decoded(const iw_mpa_frame &frame, iw_mpa_kind kind, iw_mpa_dialect dialect,
                   const u8 *buf, const ExpectedFrame &expected)
{
    const MpaFrame &wire = *expected.frame;

    CHECK(frame.kind == kind);
    CHECK(frame.rev == wire.rev);
    CHECK(frame.markers == wire.has(mpapeer::flag_markers));
    CHECK(frame.crc == wire.has(mpapeer::flag_crc));
    CHECK(frame.reject == (kind == IW_MPA_REPLY && wire.has(mpapeer::flag_reject)));
    CHECK(frame.enhanced == expected.enhanced);
    CHECK(frame.block_missing == expected.block_missing);
    CHECK_IF(frame.block_missing, frame.reject);
    CHECK(frame.pdata == buf + expected.ulp_offset);
    CHECK(frame.pdata_len == expected.ulp_length);
    const iw_mpa_enh enh =
        expected.enhanced ? expect_enh(wire.enhanced_word()->to_wire(), dialect) : iw_mpa_enh{};
    CHECK(frame.enh == enh);
}

iw_mpa_parse check_prefix(iw_mpa_kind kind, iw_mpa_dialect dialect, const u8 *buf, ByteView prefix,
                          const ExpectedFrame &expected)
{
    iw_mpa_frame frame;
    std::size_t need = ~std::size_t{0};

    std::memset(&frame, untouched, sizeof(frame));
    const auto result = iw_mpa_frame_parse(kind, dialect, buf, prefix.size(), &frame, &need);
    CHECK(result == expected.result);
    CHECK(need == expected.need);
    CHECK(need >= IW_MPA_HDR_LEN && need <= IW_MPA_FRAME_MAX);
    CHECK_IF(result == IW_MPA_FRAME_NEED_MORE, need > prefix.size());
    CHECK_IF(result == IW_MPA_FRAME_COMPLETE, need == prefix.size());
    CHECK_IF(result == IW_MPA_FRAME_TRAILING, need < prefix.size());
    if (expected.complete())
        check_decoded(frame, kind, dialect, buf, expected);
    else
        CHECK(is_untouched(frame));
    return result;
}

/// Once it is no longer NEED_MORE, a result stays, but for COMPLETE, which becomes TRAILING.
void check_every_prefix(iw_mpa_kind kind, iw_mpa_dialect dialect, ByteView bytes)
{
    const auto buf = exact(bytes);
    iw_mpa_parse before = IW_MPA_FRAME_NEED_MORE;
    ExpectedFrame expected;

    ASAN_POISON_MEMORY_REGION(buf.get(), bytes.size());
    for (std::size_t length = 0; length <= bytes.size(); length++) {
        if (length > 0)
            ASAN_UNPOISON_MEMORY_REGION(buf.get() + length - 1, 1);
        const ByteView prefix = bytes.first(length);
        // Nothing new is known between the header and the frame's end, nor behind that
        if (length <= IW_MPA_HDR_LEN || length == expected.need || length == expected.need + 1)
            expected = expect_frame(kind, prefix);
        const auto result = check_prefix(kind, dialect, buf.get(), prefix, expected);
        if (before == IW_MPA_FRAME_COMPLETE)
            CHECK(result == IW_MPA_FRAME_TRAILING);
        else if (before != IW_MPA_FRAME_NEED_MORE)
            CHECK(result == before);
        before = result;
    }
}

/// The bytes that a conforming sender makes of a frame: no reserved bits, no ignored ones.
MpaFrame canonical(const ExpectedFrame &expected, iw_mpa_kind kind, iw_mpa_dialect dialect)
{
    MpaFrame frame = *expected.frame;

    frame.flags &= mpapeer::flag_markers | mpapeer::flag_crc |
                   (kind == IW_MPA_REPLY ? mpapeer::flag_reject : 0);
    if (expected.block_missing) {
        frame.pd_length = 0;
        frame.private_data.clear();
    }
    if (expected.enhanced) {
        const std::uint32_t word =
            expect_word(expect_enh(expected.frame->enhanced_word()->to_wire(), dialect), dialect);
        frame.flags |= mpapeer::flag_enhanced;
        mpapeer::Bytes data;
        mpapeer::append(data, word);
        mpapeer::append(data, expected.frame->ulp_data());
        frame.private_data = std::move(data);
    }
    return frame;
}

void check_round_trip(iw_mpa_kind kind, iw_mpa_dialect dialect, ByteView bytes)
{
    const ExpectedFrame expected = expect_frame(kind, bytes);
    if (!expected.complete())
        return;
    const auto buf = exact(bytes);
    iw_mpa_frame frame, again;
    std::size_t need;
    iw_mpa_frame_parse(kind, dialect, buf.get(), bytes.size(), &frame, &need);

    const auto want = mpapeer::build_frame(canonical(expected, kind, dialect));
    const auto out = std::make_unique<u8[]>(want.size());
    CHECK(iw_mpa_frame_build(&frame, dialect, out.get(), want.size()) ==
          static_cast<int>(want.size()));
    CHECK(std::memcmp(out.get(), want.data(), want.size()) == 0);
    CHECK(iw_mpa_frame_parse(kind, dialect, out.get(), want.size(), &again, &need) ==
          IW_MPA_FRAME_COMPLETE);
    CHECK(again.rev == frame.rev && again.markers == frame.markers && again.crc == frame.crc);
    CHECK(again.reject == frame.reject && again.enhanced == frame.enhanced);
    CHECK(again.enh == frame.enh);
    CHECK(again.pdata_len == frame.pdata_len);
    CHECK(std::memcmp(again.pdata, frame.pdata, frame.pdata_len) == 0);
}

bool is_buildable(const iw_mpa_frame &f)
{
    const bool depths = f.enh.ird <= 0x3fff && f.enh.ord <= 0x3fff;
    const bool kinds = f.enh.rtr < 8 && (f.enh.p2p || f.enh.rtr == 0);

    if (f.rev > 2 || (f.reject && f.kind == IW_MPA_REQUEST) || (f.pdata_len && !f.pdata))
        return false;
    if (!f.enhanced)
        return f.pdata_len <= 512;
    return f.rev == 2 && depths && kinds && f.pdata_len <= 508;
}

void check_built(const iw_mpa_frame &f, iw_mpa_dialect dialect, const u8 *buf, std::size_t length)
{
    const ByteView bytes(buf, length);
    const ExpectedFrame expected = expect_frame(f.kind, bytes);

    CHECK(expected.result == IW_MPA_FRAME_COMPLETE);
    CHECK(!expected.block_missing && expected.enhanced == f.enhanced);
    CHECK(expected.frame->rev == f.rev);
    CHECK(expected.frame->flags == ((f.markers ? mpapeer::flag_markers : 0) |
                                    (f.crc ? mpapeer::flag_crc : 0) |
                                    (f.reject ? mpapeer::flag_reject : 0) |
                                    (f.enhanced ? mpapeer::flag_enhanced : 0)));
    CHECK(expected.ulp_length == f.pdata_len);
    CHECK(f.pdata_len == 0 || std::memcmp(buf + expected.ulp_offset, f.pdata, f.pdata_len) == 0);
    CHECK_IF(f.enhanced,
             expected.frame->enhanced_word()->to_wire() == expect_word(f.enh, dialect));
}

void check_build(iw_mpa_kind kind, iw_mpa_dialect dialect, Input input)
{
    iw_mpa_frame frame;
    std::memset(&frame, 0, sizeof(frame));
    const unsigned flags = input.u8();
    frame.kind = kind;
    frame.rev = flags & 0x40 ? input.u8() : static_cast<u8>(2 - (flags >> 5 & 1));
    frame.markers = flags & 0x01;
    frame.crc = flags & 0x02;
    frame.reject = flags & 0x04;
    frame.enhanced = flags & 0x08;
    frame.block_missing = flags & 0x10;
    frame.enh.ird = input.u16();
    frame.enh.ord = input.u16();
    const unsigned kinds = input.u8();
    frame.enh.rtr = static_cast<u8>(kinds & 0x80 ? kinds : kinds & 7);
    frame.enh.p2p = kinds & 0x40;
    frame.pdata_len = flags & 0x80 ? input.u16() : input.u16() % 516;
    const std::size_t size = input.u16() % (IW_MPA_FRAME_MAX + 2);
    std::vector<u8> data(frame.pdata_len);
    std::ranges::copy(input.take(data.size()), data.begin());
    const auto pdata = exact(data);
    frame.pdata = kinds & 0x20 ? nullptr : pdata.get();

    const std::size_t length = IW_MPA_HDR_LEN + (frame.enhanced ? 4u : 0u) + frame.pdata_len;
    const auto out = std::make_unique<u8[]>(size);
    std::memset(out.get(), untouched, size);
    const int built = iw_mpa_frame_build(&frame, dialect, out.get(), size);
    if (!is_buildable(frame))
        CHECK(built == -EINVAL);
    else if (length > size)
        CHECK(built == -EMSGSIZE);
    else
        CHECK(built == static_cast<int>(length));
    const std::size_t written = built < 0 ? 0 : length;
    for (std::size_t i = written; i < size; i++)
        CHECK(out[i] == untouched);
    if (built >= 0)
        check_built(frame, dialect, out.get(), length);
}

void check_word(std::uint32_t word, iw_mpa_dialect dialect)
{
    iw_mpa_enh enh;
    iw_mpa_enh_unpack(word, dialect, &enh);
    CHECK(enh == expect_enh(word, dialect));
    CHECK(iw_mpa_enh_pack(&enh, dialect) == expect_word(enh, dialect));
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size)
{
    Input input(data, size);
    const unsigned choice = input.u8();
    const auto kind = choice & 1 ? IW_MPA_REPLY : IW_MPA_REQUEST;
    const auto dialect = choice & 2 ? RDMA_MPA_DIALECT_EARLY_DRAFT : RDMA_MPA_DIALECT_RFC6581;

    check_every_prefix(kind, dialect, input.rest());
    check_round_trip(kind, dialect, input.rest());
    check_build(kind, dialect, input);
    check_word(input.u32(), dialect);
    CHECK(!std::string_view(iw_mpa_parse_str(static_cast<iw_mpa_parse>(choice % 8))).empty());
    return 0;
}
