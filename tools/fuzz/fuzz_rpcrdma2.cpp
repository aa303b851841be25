// SPDX-License-Identifier: GPL-2.0
// rpcrdma2_xdr.c: arbitrary octets in. Input: the octets of a message; its first words are also what is encoded.
// The expectations are a reader of the XDR in draft-cel-nfsv4-rpcrdma-version-two-01, section 4.2, that was not
// written from the kernel's.
#include "check.hpp"
#include "effort.hpp"
#include "exact.hpp"
#include "input.hpp"

#include <array>
#include <cstring>
#include <vector>

extern "C" {
#include "rpcrdma2_xdr.h"
}

namespace {

using Bytes = std::span<const std::uint8_t>;
using Words = std::vector<std::uint32_t>;

constexpr std::size_t prefix = 4; // xid, version, credits, proc

/// The whole words of a message
Words words_of(Bytes message)
{
    Words words;
    for (std::size_t at = 0; at + 4 <= message.size(); at += 4)
        words.push_back(std::uint32_t{message[at]} << 24 | message[at + 1] << 16 | message[at + 2] << 8 | message[at + 3]);
    return words;
}

rpcrdma2_kind expect_error(const Words &words)
{
    if (words.size() == 5 && (words[4] == 2 || words[4] == 3))
        return RPCRDMA2_IS_ERROR;
    if (words.size() == 7 && words[4] == 1 && words[5] <= words[6])
        return RPCRDMA2_IS_ERROR;
    return RPCRDMA2_IS_DROPPED;
}

rpcrdma2_kind expect_option(const Words &words)
{
    const std::uint64_t data = (std::uint64_t{words[6]} + 3) / 4;
    return words[4] <= 1 && data <= words.size() - 7 ? RPCRDMA2_IS_OPTION : RPCRDMA2_IS_BAD;
}

/// What the message is as the XDR has it; the sizes are those of the smallest header of each kind.
rpcrdma2_kind expect(const Words &words)
{
    static const std::array<rpcrdma2_kind, 2> directions{RPCRDMA2_IS_CALL, RPCRDMA2_IS_REPLY};
    switch (words[3]) {
    case 0:
    case 1:
        if (words.size() < 8)
            return RPCRDMA2_IS_DROPPED;
        return words[4] <= 1 ? directions[words[4]] : RPCRDMA2_IS_BAD;
    case 4: return expect_error(words);
    case 5: return words.size() < 7 ? RPCRDMA2_IS_DROPPED : expect_option(words);
    }
    return RPCRDMA2_IS_BAD;
}

/// A stream from this word on, as xdr_init_decode() makes one
xdr_stream stream_over(std::uint8_t *octets, std::size_t size, std::size_t word)
{
    auto *const p = reinterpret_cast<__be32 *>(octets) + word;
    return {p, reinterpret_cast<__be32 *>(octets + size), static_cast<unsigned>((size + 3) / 4 - word)};
}

/// Behind the direction: are there no chunks, and then this message?
void check_plain(std::uint8_t *octets, std::size_t size, const Words &words)
{
    constexpr std::size_t lists = prefix + 1, message = lists + 3;
    const bool plain = words.size() >= message + 2 && !words[lists] && !words[lists + 1] && !words[lists + 2] &&
                       words[message] == words[0];
    for (const auto direction : {RPCRDMA2_CALL, RPCRDMA2_REPLY}) {
        auto xdr = stream_over(octets, size, lists);
        const auto before = xdr.p;
        const bool got = rpcrdma2_is_plain(&xdr, cpu_to_be32(words[0]), direction);
        CHECK(got == (plain && words[message + 1] == static_cast<std::uint32_t>(direction)));
        CHECK(xdr.p == before);
    }
}

void check_decode(Bytes message)
{
    static Exact room;
    std::uint8_t *const octets = room.copy(message);
    const auto words = words_of(message);
    auto xdr = stream_over(octets, message.size(), prefix);
    const auto kind = rpcrdma2_decode(&xdr, cpu_to_be32(words[3]));

    CHECK(kind == expect(words));
    CHECK(xdr.p <= xdr.end);
    // An error is never answered
    CHECK_IF(words[3] == 4, kind == RPCRDMA2_IS_ERROR || kind == RPCRDMA2_IS_DROPPED);
    const auto at = reinterpret_cast<std::uint8_t *>(xdr.p) - octets;
    CHECK_IF(kind == RPCRDMA2_IS_ERROR, at == 16);
    if (kind == RPCRDMA2_IS_CALL || kind == RPCRDMA2_IS_REPLY) {
        CHECK(at == 20);
        check_plain(octets, message.size(), words);
    }
}

/// What is encoded is decoded again, and nothing is written behind it.
void check_encode(const Words &words)
{
    static Exact room;
    const auto direction = static_cast<rpcrdma2_direction>(words[3] & 1);
    auto *p = reinterpret_cast<__be32 *>(room.room(32));
    CHECK(rpcrdma_encode_plain(&rpcrdma_vers_two, p, cpu_to_be32(words[0]), words[2], direction) == p + 8);
    auto *octets = reinterpret_cast<std::uint8_t *>(p);
    CHECK(words_of({octets, 32}) == (Words{words[0], 2, words[2], 0, words[3] & 1, 0, 0, 0}));
    CHECK(expect(words_of({octets, 32})) == (direction == RPCRDMA2_CALL ? RPCRDMA2_IS_CALL : RPCRDMA2_IS_REPLY));

    p = reinterpret_cast<__be32 *>(room.room(28));
    CHECK(rpcrdma_encode_plain(&rpcrdma_vers_one, p, cpu_to_be32(words[0]), words[2], direction) == p + 7);
    CHECK(words_of({reinterpret_cast<std::uint8_t *>(p), 28}) == (Words{words[0], 1, words[2], 0, 0, 0, 0}));

    const auto code = words[1] & 1 ? RDMA2_ERR_BAD_HEADER : RDMA2_ERR_INVALID_OPTION;
    p = reinterpret_cast<__be32 *>(room.room(20));
    CHECK(rpcrdma2_encode_error(p, cpu_to_be32(words[0]), words[2], code) == p + 5);
    CHECK(words_of({reinterpret_cast<std::uint8_t *>(p), 20}) == (Words{words[0], 2, words[2], 4, words[1] & 1 ? 2U : 3U}));
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size)
{
    // Receive buffers are aligned, and so is a buffer that ends at a page if its length is
    const Bytes message{data, sanitized ? size : size / 4 * 4};

    // The callers have read the version
    if (message.size() < 4 * prefix)
        return 0;
    check_decode(message);
    check_encode(words_of(message));
    return 0;
}
