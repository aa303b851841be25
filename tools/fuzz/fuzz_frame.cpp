// SPDX-License-Identifier: GPL-2.0
// frame.c: arbitrary bytes in, arbitrary structs out. Input: one byte that chooses kind and
// dialect, then the bytes of a stream; the same bytes make a struct to build.
//
// Only the sanitized build and the sample of effort.hpp allocate memory for an input. Only for these
// inputs the harness reads all prefixes of a stream; for the others it reads the prefixes at which
// the result can change, and one more.
#include "check.hpp"
#include "effort.hpp"
#include "exact.hpp"
#include "expected_frame.hpp"
#include "input.hpp"

#include <cstring>
#include <string_view>

#if __has_feature(address_sanitizer)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, size)
#define ASAN_UNPOISON_MEMORY_REGION(address, size)
#endif

using mpapeer::ByteView;

namespace {

constexpr u8 untouched = 0xa5;

/// A stream, and frame.c's parameters for it.
struct Stream {
    iw_mpa_kind kind;
    rdma_mpa_dialect dialect;
    ByteView bytes;
};

bool is_untouched(const void *data, std::size_t size)
{
    static const auto pattern = [] {
        std::array<u8, IW_MPA_FRAME_MAX + 2> bytes;
        bytes.fill(untouched);
        return bytes;
    }();
    CHECK(size <= pattern.size());
    return std::memcmp(data, pattern.data(), size) == 0;
}

void check_decoded(const iw_mpa_frame &frame, const Stream &stream, const u8 *buf,
                   const ExpectedFrame &expected)
{
    CHECK(frame.kind == stream.kind);
    CHECK(frame.rev == expected.rev);
    CHECK(frame.markers == expected.has(mpapeer::flag_markers));
    CHECK(frame.crc == expected.has(mpapeer::flag_crc));
    CHECK(frame.reject ==
          (stream.kind == IW_MPA_REPLY && expected.has(mpapeer::flag_reject)));
    CHECK(frame.enhanced == expected.enhanced());
    CHECK(frame.block_missing == expected.block_missing);
    CHECK_IF(frame.block_missing, frame.reject);
    CHECK(frame.pdata == buf + expected.ulp_offset);
    CHECK(frame.pdata_len == expected.ulp_length);
    const iw_mpa_enh enh = expected.enhanced()
                               ? expect_enh(expected.word->to_wire(), stream.dialect)
                               : iw_mpa_enh{};
    CHECK(frame.enh == enh);
}

/// `buf` holds the first `length` bytes, and the next one must not be touched.
iw_mpa_parse check_prefix(const Stream &stream, const u8 *buf, std::size_t length,
                          const ExpectedFrame &expected)
{
    iw_mpa_frame frame;
    std::size_t need = ~std::size_t{0};

    std::memset(&frame, untouched, sizeof(frame));
    const auto result =
        iw_mpa_frame_parse(stream.kind, stream.dialect, buf, length, &frame, &need);
    CHECK(result == expected.result);
    CHECK(need == expected.need);
    CHECK(need >= IW_MPA_HDR_LEN && need <= IW_MPA_FRAME_MAX);
    CHECK_IF(result == IW_MPA_FRAME_NEED_MORE, need > length);
    CHECK_IF(result == IW_MPA_FRAME_COMPLETE, need == length);
    CHECK_IF(result == IW_MPA_FRAME_TRAILING, need < length);
    if (expected.complete())
        check_decoded(frame, stream, buf, expected);
    else
        CHECK(is_untouched(&frame, sizeof(frame)));
    return result;
}

/// After NEED_MORE a result does not change, except that COMPLETE becomes TRAILING.
class Progress {
public:
    void see(iw_mpa_parse result, bool longer)
    {
        if (before_ == IW_MPA_FRAME_COMPLETE && longer)
            CHECK(result == IW_MPA_FRAME_TRAILING);
        else if (before_ != IW_MPA_FRAME_NEED_MORE)
            CHECK(result == before_);
        before_ = result;
    }

private:
    iw_mpa_parse before_ = IW_MPA_FRAME_NEED_MORE;
};

/// The prefixes at which the result can change, in order: where the key is wrong, where key and header
/// end, where the frame ends; and one at an arbitrary place.
class Turns {
public:
    Turns(const Stream &stream, const ExpectedFrame &whole, std::uint32_t anywhere)
        : size_(stream.bytes.size())
    {
        for (const std::size_t at : {IW_MPA_KEY_LEN - 1, int{IW_MPA_KEY_LEN}, IW_MPA_HDR_LEN - 1,
                                     int{IW_MPA_HDR_LEN}, IW_MPA_HDR_LEN + 1})
            add(static_cast<std::size_t>(at));
        for (const std::size_t at : {whole.need - 1, whole.need, whole.need + 1})
            add(at);
        const auto &key = stream.kind == IW_MPA_REQUEST ? mpapeer::request_key : mpapeer::reply_key;
        const auto wrong = static_cast<std::size_t>(
            std::ranges::mismatch(key, stream.bytes).in1 - key.begin());
        add(wrong);
        add(wrong + 1);
        add(anywhere % (size_ + 1));
        add(size_);
        std::sort(lengths_.begin(), lengths_.begin() + count_);
    }

    std::span<const std::size_t> lengths() const { return std::span(lengths_).first(count_); }

private:
    void add(std::size_t length)
    {
        if (length <= size_)
            lengths_[count_++] = length;
    }

    std::size_t size_;
    std::array<std::size_t, 13> lengths_{}; // 0 comes first
    unsigned count_ = 1;
};

void check_turns(const Stream &stream, std::uint32_t anywhere)
{
    static Exact buffer;
    const Turns turns(stream, expect_frame(stream.kind, stream.bytes), anywhere);
    std::size_t last = 0;
    Progress progress;

    for (const std::size_t length : turns.lengths()) {
        const ByteView prefix = stream.bytes.first(length);
        const ExpectedFrame expected = expect_frame(stream.kind, prefix);
        progress.see(check_prefix(stream, buffer.copy(prefix), length, expected), length > last);
        last = length;
    }
}

void check_every_prefix(const Stream &stream)
{
    static Exact buffer;
    const u8 *buf = buffer.copy(stream.bytes);
    ExpectedFrame expected;
    Progress progress;

    ASAN_POISON_MEMORY_REGION(buf, stream.bytes.size());
    for (std::size_t length = 0; length <= stream.bytes.size(); length++) {
        const ByteView prefix = stream.bytes.first(length);
        if (!sanitized)
            buf = buffer.copy(prefix);
        else if (length > 0)
            ASAN_UNPOISON_MEMORY_REGION(buf + length - 1, 1);
        // The result does not change between the header and the frame's end, nor after the end
        if (length <= IW_MPA_HDR_LEN || length == expected.need || length == expected.need + 1) {
            expected = expect_frame(stream.kind, prefix);
            check_codec(stream.kind, prefix, expected);
        }
        progress.see(check_prefix(stream, buf, length, expected), true);
    }
}

/// The bytes of a frame from a conforming sender: no reserved bits, no ignored ones.
WireFrame canonical(const Stream &stream, const ExpectedFrame &expected)
{
    const int known = mpapeer::flag_markers | mpapeer::flag_crc |
                      (stream.kind == IW_MPA_REPLY ? mpapeer::flag_reject : 0);
    const int enhanced = expected.enhanced() ? mpapeer::flag_enhanced : 0;
    std::optional<std::uint32_t> word;

    if (expected.enhanced())
        word = expect_word(expect_enh(expected.word->to_wire(), stream.dialect), stream.dialect);
    return {stream.kind, static_cast<u8>((expected.flags & known) | enhanced), expected.rev, word,
            stream.bytes.subspan(expected.ulp_offset, expected.ulp_length)};
}

void check_round_trip(const Stream &stream)
{
    static Exact in, out;
    const ExpectedFrame expected = expect_frame(stream.kind, stream.bytes);
    if (!expected.complete())
        return;
    iw_mpa_frame frame, again;
    std::size_t need;
    iw_mpa_frame_parse(stream.kind, stream.dialect, in.copy(stream.bytes), stream.bytes.size(),
                       &frame, &need);

    const WireFrame wire = canonical(stream, expected);
    const ByteView want = wire.bytes();
    u8 *const built = out.room(want.size());
    CHECK(iw_mpa_frame_build(&frame, stream.dialect, built, want.size()) ==
          static_cast<int>(want.size()));
    CHECK(std::memcmp(built, want.data(), want.size()) == 0);
    CHECK(iw_mpa_frame_parse(stream.kind, stream.dialect, built, want.size(), &again, &need) ==
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

void check_built(const iw_mpa_frame &f, rdma_mpa_dialect dialect, const u8 *buf,
                 std::size_t length)
{
    const int flags = (f.markers ? mpapeer::flag_markers : 0) | (f.crc ? mpapeer::flag_crc : 0) |
                      (f.reject ? mpapeer::flag_reject : 0) |
                      (f.enhanced ? mpapeer::flag_enhanced : 0);
    std::optional<std::uint32_t> word;

    if (f.enhanced)
        word = expect_word(f.enh, dialect);
    const WireFrame want(static_cast<iw_mpa_kind>(f.kind), static_cast<u8>(flags), f.rev, word, {f.pdata, f.pdata_len});
    CHECK(length == want.bytes().size());
    CHECK(std::memcmp(buf, want.bytes().data(), length) == 0);
    CHECK(expect_frame(static_cast<iw_mpa_kind>(f.kind), {buf, length}).result == IW_MPA_FRAME_COMPLETE);
}

void check_build(iw_mpa_kind kind, rdma_mpa_dialect dialect, Input input)
{
    static Exact data, room;
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
    // If the private data is longer than a frame can have, none of it may be read
    const std::size_t shown = std::min<std::size_t>(frame.pdata_len, IW_MPA_PDATA_MAX + 4);
    const auto given = input.take(shown);
    u8 *const pdata = data.room(shown);
    std::memset(std::copy(given.begin(), given.end(), pdata), 0, shown - given.size());
    frame.pdata = kinds & 0x20 ? nullptr : pdata;

    const std::size_t length = IW_MPA_HDR_LEN + (frame.enhanced ? 4u : 0u) + frame.pdata_len;
    u8 *const out = room.room(size);
    std::memset(out, untouched, size);
    const int built = iw_mpa_frame_build(&frame, dialect, out, size);
    if (!is_buildable(frame))
        CHECK(built == -EINVAL);
    else if (length > size)
        CHECK(built == -EMSGSIZE);
    else
        CHECK(built == static_cast<int>(length));
    const std::size_t written = built < 0 ? 0 : length;
    CHECK(is_untouched(out + written, size - written));
    if (built >= 0)
        check_built(frame, dialect, out, length);
}

void check_word(std::uint32_t word, rdma_mpa_dialect dialect)
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
    const std::uint32_t number = digest({data, size});
    const unsigned choice = input.u8();
    const Stream stream{
        .kind = choice & 1 ? IW_MPA_REPLY : IW_MPA_REQUEST,
        .dialect = choice & 2 ? RDMA_MPA_DIALECT_EARLY_DRAFT : RDMA_MPA_DIALECT_RFC6581,
        .bytes = input.rest(),
    };

    if (is_thorough(number))
        check_every_prefix(stream);
    else
        check_turns(stream, number / sample);
    check_round_trip(stream);
    check_build(stream.kind, stream.dialect, input);
    check_word(input.u32(), stream.dialect);
    CHECK(!std::string_view(iw_mpa_parse_str(static_cast<iw_mpa_parse>(choice % 8))).empty());
    return 0;
}
