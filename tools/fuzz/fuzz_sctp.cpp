// SPDX-License-Identifier: GPL-2.0
// sctp.c: arbitrary messages in, arbitrary structs out; then sessions over SCTP. Input: one byte that
// chooses kind and dialect, then a message; the same bytes make a struct to build, and the steps of a
// session. Expected results come from RFC 5043 section 5.2.3 and RFC 6581 section 7.
#include "check.hpp"
#include "exact.hpp"
#include "expected_frame.hpp"
#include "input.hpp"
#include "observed.h"

#include <cstring>

extern "C" {
#include "sctp.h"
}

using mpapeer::ByteView;

namespace {

constexpr u8 untouched = 0xa5;
constexpr std::size_t longest = 2 + 512;

struct Expected {
    iw_mpa_parse result = IW_MPA_FRAME_BAD_CODE;
    bool reject = false;
    bool enhanced = false;
    bool block_missing = false;
    iw_mpa_enh enh{};
    std::size_t ulp_offset = 2;
};

bool is_initiate(unsigned code) { return code == 1 || code == 5; }
bool is_answer(unsigned code) { return code == 2 || code == 3 || code == 6 || code == 7; }

Expected expect_message(iw_mpa_kind kind, rdma_mpa_dialect dialect, ByteView bytes)
{
    Expected expected;

    if (bytes.size() < 2)
        return expected;
    const unsigned code = static_cast<unsigned>(bytes[0]) << 8 | bytes[1];
    const std::size_t data = bytes.size() - 2;
    if (code == 4) {
        expected.result = data ? IW_MPA_FRAME_PDATA_TOO_LONG : IW_MPA_FRAME_TERMINATE;
        return expected;
    }
    if (!(kind == IW_MPA_REQUEST ? is_initiate(code) : is_answer(code)))
        return expected;
    if (data > 512) {
        expected.result = IW_MPA_FRAME_PDATA_TOO_LONG;
        return expected;
    }
    expected.reject = code == 3 || code == 7;
    expected.block_missing = code == 7 && data == 0; // AMB-20
    expected.enhanced = code >= 5 && !expected.block_missing;
    if (expected.enhanced && data < 4) {
        expected.result = IW_MPA_FRAME_BLOCK_MISSING;
        return expected;
    }
    if (expected.enhanced) {
        const std::uint32_t word = static_cast<std::uint32_t>(bytes[2]) << 24 | bytes[3] << 16 |
                                   bytes[4] << 8 | bytes[5];
        expected.enh = expect_enh(word, dialect);
        expected.ulp_offset = 6;
    }
    expected.result = IW_MPA_FRAME_COMPLETE;
    return expected;
}

void check_parse(iw_mpa_kind kind, rdma_mpa_dialect dialect, ByteView bytes)
{
    static Exact buffer, out;
    const Expected expected = expect_message(kind, dialect, bytes);
    const u8 *const buf = buffer.copy(bytes);
    iw_mpa_frame frame, blank, again;
    std::size_t need;

    std::memset(&frame, untouched, sizeof(frame));
    std::memset(&blank, untouched, sizeof(blank));
    CHECK(iw_mpa_sctp_parse(kind, dialect, buf, bytes.size(), &frame, &need) == expected.result);
    CHECK(need == bytes.size());
    if (expected.result != IW_MPA_FRAME_COMPLETE) {
        CHECK(std::memcmp(&frame, &blank, sizeof(frame)) == 0);
        return;
    }
    CHECK(frame.kind == kind && frame.reject == expected.reject);
    CHECK(frame.enhanced == expected.enhanced && frame.block_missing == expected.block_missing);
    CHECK(frame.enh == expected.enh);
    CHECK(!frame.markers && !frame.crc && frame.rev == (expected.enhanced ? 2 : 1));
    CHECK(frame.pdata == buf + expected.ulp_offset);
    CHECK(frame.pdata_len == bytes.size() - expected.ulp_offset);

    // What was read can be written, and is read again
    const std::size_t length = bytes.size();
    u8 *const built = out.room(length);
    CHECK(iw_mpa_sctp_build(&frame, dialect, built, length) == static_cast<int>(length));
    CHECK(iw_mpa_sctp_parse(kind, dialect, built, length, &again, &need) == IW_MPA_FRAME_COMPLETE);
    CHECK(again.reject == frame.reject && again.enhanced == frame.enhanced);
    CHECK(again.enh == frame.enh && again.pdata_len == frame.pdata_len);
    CHECK(std::memcmp(again.pdata, frame.pdata, frame.pdata_len) == 0);
}

bool is_buildable(const iw_mpa_frame &f)
{
    if (f.rev > 2 || f.markers || f.crc || (f.reject && f.kind == IW_MPA_REQUEST) ||
        (f.pdata_len && !f.pdata))
        return false;
    if (!f.enhanced)
        return f.pdata_len <= 512;
    return f.rev == 2 && f.enh.ird <= 0x3fff && f.enh.ord <= 0x3fff && f.enh.rtr < 8 &&
           (f.enh.p2p || f.enh.rtr == 0) && f.pdata_len <= 508;
}

void check_build(iw_mpa_kind kind, rdma_mpa_dialect dialect, Input input)
{
    static Exact data, room;
    iw_mpa_frame frame{};
    const unsigned flags = input.u8();

    frame.kind = kind;
    frame.rev = static_cast<u8>(flags & 3);
    frame.markers = (flags & 0x0c) == 0x04;
    frame.crc = (flags & 0x0c) == 0x08;
    frame.reject = flags & 0x10;
    frame.enhanced = flags & 0x20;
    frame.enh.ird = input.u16();
    frame.enh.ord = input.u16();
    frame.enh.rtr = input.u8() & 15;
    frame.enh.p2p = flags & 0x40;
    frame.pdata_len = input.u16() % 516;
    const std::size_t size = input.u16() % (longest + 2);
    const auto given = input.take(frame.pdata_len);
    u8 *const pdata = data.room(frame.pdata_len);
    std::memset(std::copy(given.begin(), given.end(), pdata), 0, frame.pdata_len - given.size());
    frame.pdata = flags & 0x80 ? nullptr : pdata;

    const std::size_t head = frame.enhanced ? 6 : 2;
    const std::size_t length = head + frame.pdata_len;
    u8 *const out = room.room(size);
    const int built = iw_mpa_sctp_build(&frame, dialect, out, size);
    if (!is_buildable(frame)) {
        CHECK(built == -EINVAL);
        return;
    }
    if (length > size) {
        CHECK(built == -EMSGSIZE);
        return;
    }
    CHECK(built == static_cast<int>(length));
    const unsigned plain = kind == IW_MPA_REQUEST ? 1 : frame.reject ? 3 : 2;
    CHECK(out[0] == 0 && out[1] == (frame.enhanced ? plain + 4 : plain));
    if (frame.enhanced) {
        const std::uint32_t word = expect_word(frame.enh, dialect);
        for (unsigned i = 0; i < 4; i++)
            CHECK(out[2 + i] == static_cast<u8>(word >> (24 - 8 * i)));
    }
    CHECK(std::memcmp(out + head, pdata, frame.pdata_len) == 0);
}

// ---------------------------------------------------------------- sessions

/// A session, and all that it has called.
struct Play {
    iw_mpa_session session; // first, so that ops find the rest
    unsigned events = 0, requests = 0, sends = 0, enters = 0, ends = 0, terms = 0;
    bool rejected = false, fell_back = false;
    bool fails = false; ///< the QP does not move, the ULP cannot be told

    static Play &of(iw_mpa_session *s) { return *reinterpret_cast<Play *>(s); }
};

const iw_mpa_ops ops = {
    .send =
        [](iw_mpa_session *s, const void *frame, size_t len) {
            Play &play = Play::of(s);
            const u8 *const bytes = static_cast<const u8 *>(frame);
            CHECK(len >= 2 && len <= longest && bytes[0] == 0);
            CHECK(s->responder ? is_answer(bytes[1]) : is_initiate(bytes[1]));
            CHECK(++play.sends <= 1u + play.fell_back && !play.ends);
            play.rejected |= bytes[1] == 3 || bytes[1] == 7;
            return 0;
        },
    .enter_rdma =
        [](iw_mpa_session *s, const iw_mpa_rdma *rdma) {
            Play &play = Play::of(s);
            CHECK(++play.enters == 1 && !play.ends && !play.rejected);
            CHECK(!rdma->fenced && !rdma->crc && !rdma->rtr_unasked && !rdma->tx_markers);
            return play.fails ? -ENOMEM : 0;
        },
    .terminate =
        [](iw_mpa_session *s, const iw_mpa_rdma *, rdma_mpa_ecode) {
            // The session Terminate follows the RDMAP one (SC-07)
            CHECK(++Play::of(s).terms == 1 && !Play::of(s).ends);
            return 0;
        },
    .end =
        [](iw_mpa_session *s) {
            CHECK(++Play::of(s).ends == 1 && !Play::of(s).rejected && !Play::of(s).events);
        },
    .deadline = [](iw_mpa_session *, unsigned) {},
    .event =
        [](iw_mpa_session *s, const iw_mpa_event *ev) {
            Play &play = Play::of(s);
            CHECK(ev->pdata_len <= 512);
            if (ev->type == IW_MPA_EVENT_REQUEST) {
                CHECK(s->responder && ++play.requests == 1 && !play.ends);
                return play.fails ? -ENOMEM : 0;
            }
            CHECK(++play.events == 1);
            CHECK_IF(!ev->status, play.enters == 1 && !play.ends && !play.rejected);
            CHECK_IF(ev->status == -ECONNREFUSED, !play.ends);
            return 0;
        },
    .name = nullptr,
};

void step(Play &play, Input &input, const iw_mpa_ulp &ulp)
{
    static Exact message;
    iw_mpa_session *const s = &play.session;
    std::size_t room;
    iw_mpa_next next = IW_MPA_NEXT_WAIT;

    switch (input.below(10)) {
    case 0:
    case 1:
    case 2:
    case 3: {
        const auto bytes = input.take(input.u16() % (longest + 3));
        next = iw_mpa_rx_message(s, message.copy(bytes), bytes.size());
        CHECK(iw_mpa_rx_room(s, &room) == nullptr && room == 0);
        if (next == IW_MPA_NEXT_FRAME)
            next = iw_mpa_process(s, false);
        CHECK(next != IW_MPA_NEXT_FRAME);
        break;
    }
    case 4: iw_mpa_accept(s, nullptr, &ulp); break;
    case 5: iw_mpa_reject(s, ulp.pdata, ulp.pdata_len); break;
    case 6: next = iw_mpa_timeout(s); break;
    case 7: next = iw_mpa_peer_gone(s, input.u8() & 1 ? -ECONNRESET : -ETIMEDOUT); break;
    case 8: next = iw_mpa_out_of_turn(s); break;
    default: iw_mpa_connected(s); break;
    }
    if (next == IW_MPA_NEXT_RECONNECT) {
        CHECK(!play.fell_back && !play.ends);
        play.fell_back = true;
    }
    // No gate: a responder waits for nothing after its Accept (SCT-14)
    CHECK(s->state != IW_MPA_RTR_WAIT);
    CHECK_IF(next == IW_MPA_NEXT_CLOSE, s->state == IW_MPA_CLOSED && !s->setup);
}

void check_session(unsigned choice, Input input)
{
    iw_mpa_caps caps{};
    caps.llp = RDMA_MPA_LLP_SCTP;
    caps.max_ird = caps.max_ord = 16;
    caps.rtr_send = caps.rtr_recv = static_cast<u8>(choice & 4 ? 7 : 6);
    caps.no_crc = true;
    iw_mpa_policy policy = iw_mpa_default_policy;
    policy.crc = RDMA_MPA_CRC_OFF;
    policy.model = choice & 8 ? RDMA_MPA_MODEL_PEER_TO_PEER : RDMA_MPA_MODEL_CLIENT_SERVER;
    policy.enhanced = !(choice & 16);
    policy.fallback = choice & 32;
    policy.short_ird = (choice & 64) != 0;
    if (!policy.enhanced)
        policy.model = RDMA_MPA_MODEL_CLIENT_SERVER;

    static const u8 pdata[513] = {};
    iw_mpa_ulp ulp{.ird = input.u8() % 18u, .ord = input.u8() % 18u, .pdata = pdata,
                   .pdata_len = choice & 128 ? 505u + input.below(9) : 0};
    iw_mpa_config config;
    Play play{};

    shim_observed = nullptr;
    shim_peer_is_rev1 = false;
    CHECK(iw_mpa_config_init(&config, &ops, &caps, &policy) == 0);
    CHECK(iw_mpa_session_inherit(&play.session, &config) == 0);
    play.fails = input.u8() & 1;
    const bool responder = choice & 1;
    int rv = 0;
    if (responder)
        iw_mpa_respond(&play.session);
    else
        rv = iw_mpa_connect(&play.session, &ulp);
    while (!rv && !input.empty())
        step(play, input, ulp);
    // An initiator's ULP gets its one event
    if (!responder && !rv) {
        iw_mpa_abort(&play.session, -ECONNABORTED);
        CHECK(play.events == 1);
    }
    iw_mpa_session_close(&play.session);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size)
{
    Input input(data, size);
    const unsigned choice = input.u8();
    const auto kind = choice & 1 ? IW_MPA_REPLY : IW_MPA_REQUEST;
    const auto dialect = choice & 2 ? RDMA_MPA_DIALECT_EARLY_DRAFT : RDMA_MPA_DIALECT_RFC6581;

    check_parse(kind, dialect, input.rest());
    check_build(kind, dialect, input);
    check_session(choice, input);
    return 0;
}
