// SPDX-License-Identifier: GPL-2.0
// rpcrdma2_xdr.c: arbitrary octets in, arbitrary structs out. Input: the octets of a message; the same
// octets make an error and an option to encode. The expectations are a reader of the XDR in
// draft-cel-nfsv4-rpcrdma-version-two-01, section 4.2, that was not written from the kernel's.
#include "check.hpp"
#include "effort.hpp"
#include "exact.hpp"
#include "input.hpp"

#include <cerrno>
#include <cstring>
#include <optional>

extern "C" {
#include "rpcrdma2_xdr.h"
}

namespace {

using Bytes = std::span<const std::uint8_t>;

/// Thrown where the message ends too early or has a value that the XDR does not allow.
struct Malformed {};

/// Reads XDR from the front.
class Reader {
public:
    explicit Reader(Bytes bytes) : all_(bytes) {}

    std::uint32_t word()
    {
        if (all_.size() - at_ < 4)
            throw Malformed{};
        std::uint32_t value = 0;
        for (int i = 0; i < 4; i++)
            value = value << 8 | all_[at_++];
        return value;
    }
    bool flag()
    {
        const auto value = word();
        if (value > 1)
            throw Malformed{};
        return value == 1;
    }
    std::uint64_t segment()
    {
        word();
        const std::uint64_t length = word();
        const std::uint64_t high = word();
        const unsigned __int128 offset = high << 32 | word();
        if (offset + length > static_cast<unsigned __int128>(1) << 64)
            throw Malformed{};
        return length;
    }
    Bytes opaque()
    {
        const std::uint64_t length = word();
        const std::uint64_t padded = (length + 3) / 4 * 4;
        if (padded > (all_.size() - at_) / 4 * 4)
            throw Malformed{};
        const Bytes data = all_.subspan(at_, length);
        at_ += padded;
        return data;
    }
    std::size_t at() const { return at_; }
    std::size_t words_left() const { return (all_.size() - at_) / 4; }

private:
    Bytes all_;
    std::size_t at_ = 0;
};

unsigned read_chunk(Reader &reader)
{
    const auto count = reader.word();
    for (std::uint32_t i = 0; i < count; i++)
        reader.segment();
    return count;
}

rpcrdma2_chunks read_chunks(Reader &reader)
{
    rpcrdma2_chunks chunks{};
    chunks.offset = static_cast<unsigned>(reader.at());
    while (reader.flag()) {
        const auto position = reader.word();
        if (position % 4 != 0)
            throw Malformed{};
        if (reader.segment() == 0)
            throw Malformed{};
        chunks.reads++;
        chunks.calls += position == 0;
    }
    while (reader.flag()) {
        chunks.write_segs += read_chunk(reader);
        chunks.writes++;
    }
    chunks.has_reply = reader.flag();
    if (chunks.has_reply)
        chunks.reply_segs = read_chunk(reader);
    return chunks;
}

std::uint32_t read_direction(Reader &reader)
{
    const auto direction = reader.word();
    if (direction > 1)
        throw Malformed{};
    return direction;
}

void read_lists(Reader &reader, rpcrdma2_hdr &hdr)
{
    hdr.direction = read_direction(reader);
    hdr.chunks = read_chunks(reader);
    hdr.len = static_cast<unsigned>(reader.at());
    if (hdr.proc == 0) {
        if (reader.word() != hdr.xid || reader.word() != hdr.direction)
            throw Malformed{};
    } else if (hdr.direction == 0 ? hdr.chunks.calls == 0 : !hdr.chunks.has_reply) {
        throw Malformed{};
    }
}

void read_error(Reader &reader, rpcrdma2_hdr &hdr)
{
    hdr.direction = 1;
    hdr.error = {.code = reader.word(), .low = 0, .high = 0};
    if (hdr.error.code == 1) {
        hdr.error.low = reader.word();
        hdr.error.high = reader.word();
    }
    if (hdr.error.code < 1 || hdr.error.code > 3 || hdr.error.low > hdr.error.high ||
        reader.words_left() != 0)
        throw Malformed{};
    hdr.len = static_cast<unsigned>(reader.at());
}

void read_optional(Reader &reader, rpcrdma2_hdr &hdr)
{
    hdr.direction = read_direction(reader);
    hdr.optional.type = reader.word();
    const Bytes info = reader.opaque();
    hdr.optional.info = info.data();
    hdr.optional.info_len = static_cast<u32>(info.size());
    hdr.len = static_cast<unsigned>(reader.at());
}

/// The header as the XDR has it, or nothing.
std::optional<rpcrdma2_hdr> expect(Bytes message)
{
    Reader reader(message);
    rpcrdma2_hdr hdr;
    std::memset(&hdr, 0, sizeof(hdr));
    try {
        hdr.xid = reader.word();
        if (reader.word() != 2)
            return {};
        hdr.credit = reader.word();
        hdr.proc = reader.word();
        switch (hdr.proc) {
        case 0:
        case 1: read_lists(reader, hdr); break;
        case 4: read_error(reader, hdr); break;
        case 5: read_optional(reader, hdr); break;
        default: return {};
        }
    } catch (Malformed) {
        return {};
    }
    return hdr;
}

void check_same(const rpcrdma2_hdr &got, const rpcrdma2_hdr &want)
{
    CHECK(got.xid == want.xid && got.credit == want.credit && got.proc == want.proc);
    CHECK(got.direction == want.direction && got.len == want.len);
    switch (got.proc) {
    case RDMA2_ERROR:
        CHECK(got.error.code == want.error.code);
        CHECK(got.error.low == want.error.low && got.error.high == want.error.high);
        break;
    case RDMA2_OPTIONAL:
        CHECK(got.optional.type == want.optional.type);
        CHECK(got.optional.info_len == want.optional.info_len);
        break;
    default:
        CHECK(got.chunks.offset == want.chunks.offset && got.chunks.reads == want.chunks.reads);
        CHECK(got.chunks.calls == want.chunks.calls && got.chunks.writes == want.chunks.writes);
        CHECK(got.chunks.write_segs == want.chunks.write_segs);
        CHECK(got.chunks.has_reply == want.chunks.has_reply);
        CHECK(got.chunks.reply_segs == want.chunks.reply_segs);
    }
}

/// What is encoded from a decoded header is that header.
void check_round_trip(const rpcrdma2_hdr &hdr, Bytes message)
{
    static Exact room;
    const bool lists = hdr.proc == RDMA2_MSG || hdr.proc == RDMA2_NOMSG;
    const std::size_t length = lists ? std::size_t{RPCRDMA2_FIXED_LEN} : hdr.len;
    std::uint8_t *const out = room.room(length);
    std::size_t compared = length;

    if (lists) {
        const auto *end = rpcrdma2_encode_fixed(reinterpret_cast<__be32 *>(out), hdr.xid, hdr.credit,
                                                static_cast<rpcrdma2_proc>(hdr.proc),
                                                static_cast<rpcrdma2_direction>(hdr.direction));
        CHECK(reinterpret_cast<const std::uint8_t *>(end) == out + length);
    } else if (hdr.proc == RDMA2_ERROR) {
        CHECK(rpcrdma2_encode_error(&hdr, out, length) == static_cast<int>(length));
    } else {
        CHECK(rpcrdma2_encode_optional(&hdr, out, length) == static_cast<int>(length));
        compared = RPCRDMA2_OPTIONAL_MIN + hdr.optional.info_len;
        for (std::size_t pad = compared; pad < length; pad++)
            CHECK(out[pad] == 0);
    }
    CHECK(std::memcmp(out, message.data(), compared) == 0);
}

void check_decode(Bytes message)
{
    static Exact room;
    const std::uint8_t *const buf = room.copy(message);
    const auto want = expect({buf, message.size()});
    rpcrdma2_hdr got;

    std::memset(&got, 0xa5, sizeof(got));
    const auto result = rpcrdma2_decode(buf, message.size(), &got);
    CHECK(result < RPCRDMA2_RESULTS);
    CHECK((result == RPCRDMA2_GOOD) == want.has_value());
    CHECK_IF(message.size() < 16, result == RPCRDMA2_SHORT);
    // Only BAD_HEADER is an answer, never to a good message, an error, or less than a header
    const auto answer = rpcrdma2_judge(&got, result);
    CHECK(answer == 0 || answer == RDMA2_ERR_BAD_HEADER);
    CHECK_IF(want || message.size() < 16 || got.proc == RDMA2_ERROR, answer == 0);
    if (!want)
        return;
    check_same(got, *want);
    CHECK(got.len <= message.size());
    CHECK_IF(got.proc == RDMA2_OPTIONAL, got.optional.info == want->optional.info);
    check_round_trip(got, {buf, message.size()});
}

/// Arbitrary errors and options are either refused or decoded again.
void check_encode(Input input)
{
    static Exact data, room;
    rpcrdma2_hdr hdr, again;
    std::memset(&hdr, 0, sizeof(hdr));
    hdr.xid = input.u32();
    hdr.credit = input.u32();
    const bool error = input.u8() & 1;
    hdr.proc = error ? RDMA2_ERROR : RDMA2_OPTIONAL;
    hdr.direction = error ? 1 : input.below(3);
    const std::size_t size = input.u8() * 4;
    if (error) {
        hdr.error = {.code = input.below(5), .low = input.below(4), .high = input.below(4)};
        if (hdr.error.code != RDMA2_ERR_VERS)
            hdr.error.low = hdr.error.high = 0;
    } else {
        hdr.optional.type = input.u32();
        // More than the room must not be read
        const std::uint8_t choice = input.u8();
        const auto info = input.take(choice);
        hdr.optional.info = data.copy(info);
        hdr.optional.info_len = choice == 255 ? 0xffffffff : static_cast<u32>(info.size());
    }
    std::uint8_t *const out = room.room(size);
    const int length = error ? rpcrdma2_encode_error(&hdr, out, size)
                             : rpcrdma2_encode_optional(&hdr, out, size);
    CHECK(length == -EINVAL || length == -EMSGSIZE || (length > 0 && length % 4 == 0));
    if (length < 0)
        return;
    hdr.len = static_cast<unsigned>(length);
    CHECK(rpcrdma2_decode(out, static_cast<std::size_t>(length), &again) == RPCRDMA2_GOOD);
    check_same(again, hdr);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size)
{
    const Bytes message{data, size};

    // Receive buffers are aligned, and so is a buffer that ends at a page if its length is
    check_decode(message.first(sanitized ? size : size / 4 * 4));
    check_encode(Input(data, size));
    return 0;
}
