// SPDX-License-Identifier: GPL-2.0
// negotiate.c against the rules of RFC 6581 sections 9.1 to 9.3. Input: a dialect, two sides of
// 12 bytes each (see side.hpp), a byte of flags and an enhanced word for a foreign Request, the
// same for a foreign Reply, a wild policy, then settings of five bytes each: number and value.
//
// Nothing is allocated for an input.
#include "check.hpp"
#include "expected_frame.hpp"
#include "side.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>

namespace {

constexpr std::uint32_t ulp_managed = IW_MPA_DEPTH_ULP;

bool same(const iw_mpa_msg &a, const iw_mpa_msg &b)
{
    return a.enhanced == b.enhanced && a.reject == b.reject && a.enh == b.enh;
}

/// A message that the wire can carry: no kinds if A=0, no values if not enhanced.
iw_mpa_msg read_message(Input &input, rdma_mpa_dialect dialect, bool may_reject)
{
    const unsigned flags = input.u8();
    const std::uint32_t word = input.u32();
    iw_mpa_msg msg{};

    msg.enhanced = !(flags & 1);
    msg.reject = may_reject && flags & 2;
    if (msg.enhanced)
        msg.enh = expect_enh(word, dialect);
    return msg;
}

// ---------------------------------------------------------------- decisions in general

void check_decision(const Side &side, const iw_mpa_msg &peer, const iw_mpa_decision &d)
{
    CHECK((d.verdict == IW_MPA_GO) == (d.status == 0));
    CHECK(d.status <= 0);
    CHECK_IF(d.verdict == IW_MPA_GO, d.ecode == RDMA_MPA_ECODE_NONE);
    CHECK_IF(d.verdict == IW_MPA_TERMINATE,
             d.ecode == RDMA_MPA_ECODE_IRD || d.ecode == RDMA_MPA_ECODE_RTR);
    CHECK(d.peer_known == peer.enhanced);
    CHECK(d.peer_ird == (peer.enhanced ? peer.enh.ird : 0));
    CHECK(d.peer_ord == (peer.enhanced ? peer.enh.ord : 0));
    // IRD-25, IRD-27, SEC-02: with every verdict
    CHECK(d.ird <= IW_MPA_DEPTH_MAX && d.ird <= side.caps.max_ird);
    CHECK(d.ord <= IW_MPA_DEPTH_MAX && d.ord <= side.caps.max_ord);
    CHECK(d.read_slots <= IW_MPA_DEPTH_MAX && d.read_slots <= side.caps.max_ord);
    CHECK(d.read_slots == d.ord || (d.ord == 0 && d.read_slots == 1));
}

/// Values that were left alone are the ULP's (IRD-19 to IRD-24).
bool is_left_alone(std::uint32_t depth, std::uint32_t ulp, std::uint32_t cap)
{
    return depth == Side::wire(std::min(ulp, cap));
}

/// At least `want`, and at most `want` as rounded by the device.
bool is_raised(const Side &side, std::uint32_t depth, std::uint32_t want)
{
    const std::uint32_t cap = Side::wire(side.caps.max_ird);
    return depth == std::min(side.installed_ird(std::min(want, cap)), cap);
}

/// At most `want`, also after the device's rounding, and no lower than needed for that.
bool is_lowered(const Side &side, std::uint32_t depth, std::uint32_t want)
{
    if (!side.caps.pow2_depths || want == 0)
        return depth == want;
    return std::has_single_bit(depth) && depth <= want && depth > want / 2 &&
           side.installed_ord(depth) == depth;
}

// ---------------------------------------------------------------- Request

void check_request(const Side &side, int rv, const iw_mpa_msg &request)
{
    CHECK(rv == (side.within_caps() ? 0 : -EINVAL));
    if (rv)
        return;
    CHECK(!request.reject);
    CHECK(request.enhanced == side.sends_enhanced());
    if (!request.enhanced) {
        CHECK(request.enh == iw_mpa_enh{});
        return;
    }
    const bool p2p = side.policy.model != RDMA_MPA_MODEL_CLIENT_SERVER;
    CHECK(request.enh.p2p == p2p);
    CHECK(request.enh.rtr == (p2p ? side.offered() : 0));
    CHECK_IF(p2p, request.enh.rtr != 0);
    CHECK(request.enh.ird == (side.policy.ird_ulp ? ulp_managed : Side::wire(side.ird)));
    CHECK(request.enh.ord == (side.policy.ord_ulp ? ulp_managed : Side::wire(side.ord)));
}

// ---------------------------------------------------------------- responder

struct Responding {
    const Side &side;
    const iw_mpa_msg &request;
    const iw_mpa_decision &d;

    const iw_mpa_enh &asked() const { return request.enh; }
    const iw_mpa_enh &answer() const { return d.reply.enh; }
    bool leaves_ird() const { return asked().ord == ulp_managed || side.policy.ird_ulp; }

    /// The kinds that may be listed: a Read needs an IRD to run against (RTR-24).
    u8 own() const
    {
        const bool no_read = side.caps.max_ird == 0 || (leaves_ird() && side.ird == 0);
        return static_cast<u8>(side.accepted() & (no_read ? ~RDMA_MPA_RTR_READ : ~0));
    }
    bool lacks_model() const
    {
        return side.policy.model == RDMA_MPA_MODEL_PEER_TO_PEER_REQUIRED && !asked().p2p;
    }
    bool lacks_option() const { return request.enhanced && asked().p2p && !own(); }
    bool lacks_peer_ird() const
    {
        return request.enhanced && side.policy.short_ird && asked().ird != ulp_managed &&
               side.ord > asked().ird;
    }
};

/// Sections 9.2 and 10: rules for accept and reject alike.
void check_answers_in_kind(const Side &side, const iw_mpa_msg &request, const iw_mpa_msg &reply)
{
    CHECK(reply.enhanced == request.enhanced);
    if (!reply.enhanced) {
        CHECK(reply.enh == iw_mpa_enh{});
        return;
    }
    CHECK(reply.enh.p2p == request.enh.p2p);
    CHECK_IF(!reply.enh.p2p, reply.enh.rtr == 0);
    CHECK((reply.enh.rtr & ~side.accepted()) == 0);
    CHECK((reply.enh.ird == ulp_managed) == (request.enh.ord == ulp_managed));
    CHECK((reply.enh.ord == ulp_managed) == (request.enh.ird == ulp_managed));
    CHECK(reply.enh.ird == ulp_managed || reply.enh.ird <= side.caps.max_ird);
    CHECK(reply.enh.ord == ulp_managed || reply.enh.ord <= side.caps.max_ord ||
          (reply.reject && reply.enh.ord == Side::wire(side.ord)));
}

void check_refusal(const Responding &r)
{
    CHECK(r.d.reply.reject);
    CHECK(r.d.verdict == IW_MPA_REJECTED);
    if (!r.side.within_caps()) {
        CHECK(r.d.status == -EINVAL && r.d.ecode == RDMA_MPA_ECODE_LOCAL);
    } else if (r.lacks_model() || r.lacks_option()) {
        CHECK(r.d.status == -EPROTO && r.d.ecode == RDMA_MPA_ECODE_RTR);
    } else {
        CHECK(r.lacks_peer_ird());
        CHECK(r.d.status == -ENOMEM && r.d.ecode == RDMA_MPA_ECODE_IRD);
        CHECK(r.answer().ord == Side::wire(r.side.ord)); // IRD-11
    }
}

void check_answered_options(const Responding &r)
{
    CHECK(r.d.rtr == r.answer().rtr);
    if (!r.asked().p2p)
        return;
    const u8 common = r.asked().rtr & r.own();
    const u8 options = common ? common : r.own();
    if (r.side.caps.rtr_recv_one) // RSP-09
        CHECK(std::has_single_bit(r.d.rtr) && r.d.rtr & options);
    else
        CHECK(r.d.rtr == options); // RSP-08, RSP-10, RSP-12
    CHECK_IF(r.d.rtr & RDMA_MPA_RTR_READ, r.d.ird > 0);
}

void check_answered_depths(const Responding &r)
{
    const iw_mpa_enh &asked = r.asked();
    const std::uint32_t rtr_entry = r.answer().rtr & RDMA_MPA_RTR_READ ? 1 : 0;

    // The reply has the installed depths (RSP-18)
    CHECK(r.answer().ird == (asked.ord == ulp_managed ? ulp_managed : r.d.ird));
    CHECK(r.answer().ord == (asked.ird == ulp_managed ? ulp_managed : r.d.ord));
    CHECK(r.d.read_slots == r.d.ord);
    if (r.leaves_ird())
        CHECK(is_left_alone(r.d.ird, r.side.ird, r.side.caps.max_ird));
    else
        CHECK(is_raised(r.side, r.d.ird,
                        std::max({r.side.ird, std::uint32_t{asked.ord}, rtr_entry})));
    if (asked.ird == ulp_managed)
        CHECK(is_left_alone(r.d.ord, r.side.ord, r.side.caps.max_ord));
    else
        CHECK(is_lowered(r.side, r.d.ord,
                         std::min({Side::wire(r.side.ord), std::uint32_t{asked.ird}})));
}

void check_responder(const Side &side, const iw_mpa_msg &request, const iw_mpa_decision &d)
{
    const Responding r{side, request, d};
    const bool refused =
        !side.within_caps() || r.lacks_model() || r.lacks_option() || r.lacks_peer_ird();

    check_decision(side, request, d);
    CHECK(d.verdict == (refused ? IW_MPA_REJECTED : IW_MPA_GO));
    check_answers_in_kind(side, request, d.reply);
    if (refused) {
        check_refusal(r);
        return;
    }
    CHECK(!d.reply.reject);
    if (request.enhanced) {
        check_answered_options(r);
        check_answered_depths(r);
    } else {
        CHECK(d.rtr == 0);
        CHECK(is_left_alone(d.ird, side.ird, side.caps.max_ird));
        CHECK(is_left_alone(d.ord, side.ord, side.caps.max_ord));
    }
}

void check_ulp_reject(const Side &side, const iw_mpa_msg &request)
{
    const iw_mpa_local local = side.local();
    iw_mpa_msg reply;

    std::memset(&reply, 0xa5, sizeof(reply));
    iw_mpa_make_reject(&local, &request, &reply);
    CHECK(reply.reject);
    check_answers_in_kind(side, request, reply);
    CHECK_IF(reply.enhanced && reply.enh.p2p, reply.enh.rtr == side.accepted());
}

// ---------------------------------------------------------------- initiator

struct Initiating {
    const Side &side;
    const iw_mpa_msg &request;
    const iw_mpa_msg &reply;
    const iw_mpa_decision &d;

    bool leaves_ird() const
    {
        return request.enh.ird == ulp_managed || reply.enh.ord == ulp_managed;
    }
    bool leaves_ord() const
    {
        return request.enh.ord == ulp_managed || reply.enh.ird == ulp_managed;
    }
    bool lacks_ird() const { return !leaves_ird() && reply.enh.ord > side.caps.max_ird; }

    bool can_generate(unsigned kind) const
    {
        const bool read_fits = reply.enh.ird != 0 && side.caps.max_ord != 0;
        return side.caps.rtr_send & reply.enh.rtr & kind &&
               (kind != RDMA_MPA_RTR_READ || read_fits);
    }
    /// The first possible kind in order of preference, 0 if there is none (RTR-06, RTR-09, RTR-15).
    unsigned due_rtr() const
    {
        for (const u8 kind : side.policy.rtr_order)
            if (can_generate(kind))
                return kind;
        return 0;
    }
};

void check_accepted_depths(const Initiating &i)
{
    if (i.leaves_ird()) {
        CHECK(is_left_alone(i.d.ird, i.side.ird, i.side.caps.max_ird));
    } else {
        CHECK(i.d.ird >= i.reply.enh.ord); // IRD-13
        CHECK(is_raised(i.side, i.d.ird,
                        std::max(Side::wire(i.side.ird), std::uint32_t{i.reply.enh.ord})));
    }
    if (i.leaves_ord()) {
        CHECK(is_left_alone(i.d.ord, i.side.ord, i.side.caps.max_ord));
    } else {
        CHECK(i.d.ord <= i.reply.enh.ird); // IRD-14
        CHECK(i.d.read_slots <= i.reply.enh.ird);
        CHECK(is_lowered(i.side, i.d.ord,
                         std::min(Side::wire(i.side.ord), std::uint32_t{i.reply.enh.ird})));
    }
    CHECK((i.d.read_slots != i.d.ord) == (i.d.rtr == RDMA_MPA_RTR_READ && i.d.ord == 0));
}

void check_enhanced_accept(const Initiating &i)
{
    const bool p2p = i.request.enh.p2p || i.reply.enh.p2p;
    const unsigned rtr = i.reply.enh.p2p ? i.due_rtr() : 0;

    if (i.lacks_ird()) { // before the RTR: ERR-17
        CHECK(i.d.verdict == IW_MPA_TERMINATE && i.d.ecode == RDMA_MPA_ECODE_IRD);
        CHECK(i.d.status == -ENOMEM && i.d.rtr == 0);
    } else if (p2p && !rtr) {
        CHECK(i.d.verdict == IW_MPA_TERMINATE && i.d.ecode == RDMA_MPA_ECODE_RTR);
        CHECK(i.d.status == -EPROTO && i.d.rtr == 0);
    } else {
        CHECK(i.d.verdict == IW_MPA_GO);
        CHECK(i.d.rtr == rtr);
        CHECK_IF(p2p, std::has_single_bit(i.d.rtr)); // RTR-14
        check_accepted_depths(i);
    }
}

void check_initiator(const Initiating &i)
{
    check_decision(i.side, i.reply, i.d);
    if (i.reply.reject) {
        CHECK(i.d.verdict == IW_MPA_REJECTED && i.d.status == -ECONNREFUSED);
        CHECK(i.d.ecode == RDMA_MPA_ECODE_NONE && i.d.rtr == 0);
    } else if (i.reply.enhanced != i.request.enhanced) {
        CHECK(i.d.verdict == IW_MPA_DROP && i.d.status == -EPROTO);
        CHECK(i.d.ecode == RDMA_MPA_ECODE_BAD_FRAME && i.d.rtr == 0);
    } else if (i.reply.enhanced) {
        check_enhanced_accept(i);
    } else {
        CHECK(i.d.verdict == IW_MPA_GO && i.d.rtr == 0);
        CHECK(is_left_alone(i.d.ird, i.side.ird, i.side.caps.max_ird));
        CHECK(is_left_alone(i.d.ord, i.side.ord, i.side.caps.max_ord));
    }
}

// ---------------------------------------------------------------- the functions under test

/// Calls the function twice, over different bytes: the result must not depend on old contents.
template <typename Result, typename Function>
Result decide(Function function)
{
    Result first, second;
    std::memset(&first, 0xa5, sizeof(first));
    std::memset(&second, 0x5a, sizeof(second));
    function(&first);
    function(&second);
    CHECK(std::memcmp(&first, &second, sizeof(first)) == 0);
    return first;
}

iw_mpa_decision decide_responder(const Side &side, const iw_mpa_msg &request)
{
    const iw_mpa_local local = side.local();
    const auto d = decide<iw_mpa_decision>([&](iw_mpa_decision *decision) {
        iw_mpa_negotiate_responder(&local, &request, decision);
    });
    check_responder(side, request, d);
    return d;
}

iw_mpa_decision decide_initiator(const Side &side, const iw_mpa_msg &request,
                                 const iw_mpa_msg &reply)
{
    const iw_mpa_local local = side.local();
    const auto d = decide<iw_mpa_decision>([&](iw_mpa_decision *decision) {
        iw_mpa_negotiate_initiator(&local, &request, &reply, decision);
    });
    check_initiator({side, request, reply, d});
    return d;
}

/// A message after it has been built and parsed.
iw_mpa_msg carry(const iw_mpa_msg &msg, iw_mpa_kind kind, rdma_mpa_dialect dialect)
{
    u8 bytes[IW_MPA_FRAME_MAX];
    iw_mpa_frame frame{};
    frame.kind = kind;
    frame.rev = 2;
    frame.reject = msg.reject;
    frame.enhanced = msg.enhanced;
    frame.enh = msg.enh;

    const int length = iw_mpa_frame_build(&frame, dialect, bytes, sizeof(bytes));
    CHECK(length > 0);
    std::size_t need;
    CHECK(iw_mpa_frame_parse(kind, dialect, bytes, static_cast<std::size_t>(length), &frame,
                             &need) == IW_MPA_FRAME_COMPLETE);
    iw_mpa_msg carried{};
    carried.enhanced = frame.enhanced;
    carried.reject = frame.reject;
    carried.enh = frame.enh;
    // The early draft has no bit for "peer-to-peer, but by no kind of RTR"
    const bool lossy = dialect == RDMA_MPA_DIALECT_EARLY_DRAFT && msg.enh.p2p && !msg.enh.rtr;
    CHECK(lossy || same(carried, msg));
    return carried;
}

// ---------------------------------------------------------------- end to end

/// Sections 9.1 and 9.2 as rules for both ends together.
void check_agreement(const Side &a, const iw_mpa_msg &request, const iw_mpa_decision &at_a,
                     const Side &b, const iw_mpa_decision &at_b)
{
    const bool p2p = request.enh.p2p;

    CHECK((at_a.rtr != 0) == p2p);
    CHECK((at_b.rtr != 0) == p2p);
    CHECK((at_a.rtr & ~at_b.rtr) == 0);
    CHECK_IF(at_a.rtr == RDMA_MPA_RTR_READ, at_a.read_slots >= 1 && at_b.ird >= 1);
    if (request.enh.ord != ulp_managed) {
        CHECK(at_a.read_slots <= at_b.ird);
        CHECK(a.installed_ord(at_a.read_slots) <= b.installed_ird(at_b.ird));
    }
    if (request.enh.ird != ulp_managed) {
        CHECK(at_b.read_slots <= at_a.ird);
        CHECK(b.installed_ord(at_b.read_slots) <= a.installed_ird(at_a.ird));
    }
}

/// Is there a kind that A offers and can send, and that B can take?
bool have_common_kind(const Side &a, const iw_mpa_msg &request, const Responding &at_b)
{
    unsigned common = request.enh.rtr & at_b.own();
    // B may list only Read, if A offers it; B cannot know that A has no read slot
    if (at_b.side.caps.rtr_recv_one)
        common = at_b.d.rtr & request.enh.rtr;
    if (a.caps.max_ord == 0)
        common &= ~static_cast<unsigned>(RDMA_MPA_RTR_READ);
    return common != 0;
}

void check_meeting(const Side &a, const Side &b, const iw_mpa_msg &request)
{
    const auto dialect = static_cast<rdma_mpa_dialect>(a.policy.dialect);
    const auto at_b = decide_responder(b, carry(request, IW_MPA_REQUEST, dialect));
    const auto reply = carry(at_b.reply, IW_MPA_REPLY, dialect);
    const auto at_a = decide_initiator(a, request, reply);

    CHECK((at_b.verdict == IW_MPA_REJECTED) == (at_a.verdict == IW_MPA_REJECTED));
    if (at_b.verdict != IW_MPA_GO)
        return;
    // Our responder never asks for more IRD than the initiator offered
    CHECK(at_a.verdict == IW_MPA_GO ||
          (at_a.verdict == IW_MPA_TERMINATE && at_a.ecode == RDMA_MPA_ECODE_RTR));
    CHECK_IF(at_a.verdict == IW_MPA_TERMINATE,
             !have_common_kind(a, request, Responding{b, request, at_b}));
    if (at_a.verdict == IW_MPA_GO && request.enhanced)
        check_agreement(a, request, at_a, b, at_b);
}

// ---------------------------------------------------------------- policy

bool each_kind_once(const u8 (&order)[3])
{
    unsigned seen = 0;
    for (const u8 kind : order) {
        if ((kind != 1 && kind != 2 && kind != 4) || seen & kind)
            return false;
        seen |= kind;
    }
    return true;
}

bool is_possible(const iw_mpa_policy &p, const Side &side)
{
    for (const unsigned ms : {p.connect_ms, p.request_ms, p.decide_ms, p.rtr_ms, p.reply_ms})
        if (ms == 0 || ms > 3600000)
            return false;
    if ((p.rev != 1 && p.rev != 2) || (p.enhanced && p.rev == 1))
        return false;
    if (p.model > 2 || p.crc > 2 || p.dialect > 1)
        return false;
    if (p.crc == RDMA_MPA_CRC_REQUIRED && side.caps.no_crc)
        return false;
    if (p.large && !side.caps.large)
        return false;
    if (p.idle < 1 || p.idle > 3600)
        return false;
    if (p.streams < 1 || p.streams > 1024 || (p.streams > 1 && !side.caps.streams))
        return false;
    if (p.rtr_offer > 7 || p.rtr_accept > 7 || !each_kind_once(p.rtr_order))
        return false;
    if (!p.enhanced)
        return p.model != RDMA_MPA_MODEL_PEER_TO_PEER_REQUIRED;
    return (p.rtr_accept & side.caps.rtr_recv) != 0 &&
           (p.model == RDMA_MPA_MODEL_CLIENT_SERVER || (p.rtr_offer & side.sendable()) != 0);
}

// ---------------------------------------------------------------- settings

/// Value of a setting as it is read back; nothing if there is no such setting or value. Written
/// from Documentation/netlink/specs/rdma-mpa.yaml.
std::optional<std::uint32_t> expect_setting(unsigned setting, std::uint32_t value)
{
    const auto between = [value](std::uint32_t min, std::uint32_t max) {
        return value >= min && value <= max ? std::optional(value) : std::nullopt;
    };

    switch (setting) {
    case RDMA_MPA_SETTING_REVISION: return between(1, 3);
    case RDMA_MPA_SETTING_MODEL: return between(0, 2);
    case RDMA_MPA_SETTING_RTR_OFFER:
    case RDMA_MPA_SETTING_RTR_ACCEPT: return between(1, 7);
    case RDMA_MPA_SETTING_RTR_ORDER: break;
    case RDMA_MPA_SETTING_IRD:
    case RDMA_MPA_SETTING_ORD: return between(0, 0x3fff);
    case RDMA_MPA_SETTING_CRC: return between(0, 2);
    case RDMA_MPA_SETTING_DIALECT:
    case RDMA_MPA_SETTING_SHORT_IRD:
    case RDMA_MPA_SETTING_FASTOPEN:
    case RDMA_MPA_SETTING_SEGMENT: return between(0, 1);
    case RDMA_MPA_SETTING_STREAMS: return between(1, 1024);
    case RDMA_MPA_SETTING_IDLE: return between(1, 3600);
    case RDMA_MPA_SETTING_CONNECT_MS:
    case RDMA_MPA_SETTING_REQUEST_MS:
    case RDMA_MPA_SETTING_REPLY_MS:
    case RDMA_MPA_SETTING_RTR_MS:
    case RDMA_MPA_SETTING_DECIDE_MS: return between(1, 3600000);
    default: return {};
    }
    // One to three kinds of four bits, each once, the others behind them: Write, Read, Send
    std::uint32_t order = 0, seen = 0;
    unsigned shift = 0;
    for (; value; value >>= 4, shift += 4) {
        const std::uint32_t kind = value & 0xf;
        if (shift > 8 || (kind != 1 && kind != 2 && kind != 4) || seen & kind)
            return {};
        order |= kind << shift;
        seen |= kind;
    }
    if (!shift)
        return {};
    for (const std::uint32_t kind : {2u, 4u, 1u})
        if (!(seen & kind)) {
            order |= kind << shift;
            shift += 4;
        }
    return order;
}

/// A limit can only get lower. The ULP manages a depth only if the upper layer says so.
bool is_laid_over(unsigned setting, std::uint32_t upper, const iw_mpa_policy &below,
                  const iw_mpa_policy &now)
{
    const std::uint32_t limit = std::min(upper, std::uint32_t{IW_MPA_DEPTH_MAX});

    if (setting == RDMA_MPA_SETTING_IRD)
        return now.ird_ulp == (upper == ulp_managed) &&
               now.max_ird == std::min(limit, std::uint32_t{below.max_ird});
    if (setting == RDMA_MPA_SETTING_ORD)
        return now.ord_ulp == (upper == ulp_managed) &&
               now.max_ord == std::min(limit, std::uint32_t{below.max_ord});
    return iw_mpa_setting_get(&now, static_cast<rdma_mpa_setting>(setting)) == upper;
}

/// Layers: every value within its range is taken and read back, the others change nothing.
void check_settings(Input &input, const Side &side)
{
    std::array<std::uint32_t, IW_MPA_SETTINGS> value{};
    iw_mpa_layer layer;
    std::memset(&layer, 0, sizeof(layer));
    std::uint32_t set = 0;

    for (unsigned n = 0; n < 8 && !input.empty(); n++) {
        const unsigned which = input.u8();
        const std::uint32_t raw = input.u32();
        const std::uint32_t wanted = which & 0x80 ? raw : raw & 0x3fff;
        const unsigned setting = which & 0x40 ? which & 0x3f : which % IW_MPA_SETTINGS;
        const auto expected = expect_setting(setting, wanted);
        const iw_mpa_layer before = layer;
        const int rv = iw_mpa_layer_set(&layer, static_cast<rdma_mpa_setting>(setting), wanted);

        CHECK(rv == (expected ? 0 : -EINVAL));
        CHECK_IF(rv, std::memcmp(&before, &layer, sizeof(layer)) == 0);
        if (!expected)
            continue;
        set |= 1u << setting;
        value[setting] = *expected;
        CHECK(layer.set == set);
        for (unsigned i = 1; i < IW_MPA_SETTINGS; i++)
            CHECK_IF(set >> i & 1,
                     iw_mpa_setting_get(&layer.value, static_cast<rdma_mpa_setting>(i)) ==
                         value[i]);
    }

    iw_mpa_policy policy = side.policy;
    iw_mpa_layer_apply(&layer, ~0u, &policy);
    for (unsigned i = 1; i < IW_MPA_SETTINGS; i++) {
        const auto setting = static_cast<rdma_mpa_setting>(i);
        if (!iw_mpa_is_setting(i))
            continue;
        if (set >> i & 1)
            CHECK(is_laid_over(i, value[i], side.policy, policy));
        else
            CHECK(iw_mpa_setting_get(&policy, setting) ==
                  iw_mpa_setting_get(&side.policy, setting));
    }

    // There is an explanation exactly if the check refuses
    char why[80] = "";
    iw_mpa_caps caps = side.caps;
    iw_mpa_policy_limit(&policy, &caps);
    CHECK(caps.max_ird <= side.caps.max_ird && caps.max_ord <= side.caps.max_ord);
    const int rv = iw_mpa_policy_explain(&policy, &side.caps, why, sizeof(why));
    CHECK(rv == iw_mpa_policy_check(&policy, &caps));
    CHECK((rv != 0) == (why[0] != 0));

    why[0] = 0;
    const std::uint32_t unable = iw_mpa_layer_unable(&layer, &side.caps, why, sizeof(why));
    CHECK((unable & ~set) == 0);
    CHECK((unable != 0) == (why[0] != 0));
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size)
{
    Input input(data, size);
    const auto dialect = input.u8() & 1 ? RDMA_MPA_DIALECT_EARLY_DRAFT : RDMA_MPA_DIALECT_RFC6581;
    const Side a = read_side(input, dialect);
    const Side b = read_side(input, dialect);
    CHECK(iw_mpa_policy_check(&a.policy, &a.caps) == 0);
    CHECK(iw_mpa_policy_check(&b.policy, &b.caps) == 0);

    const iw_mpa_msg foreign_request = read_message(input, dialect, false);
    decide_responder(b, foreign_request);
    check_ulp_reject(b, foreign_request);

    const iw_mpa_local local = a.local();
    iw_mpa_msg request;
    std::memset(&request, 0xa5, sizeof(request));
    const int rv = iw_mpa_make_request(&local, &request);
    check_request(a, rv, request);
    if (rv == 0) {
        decide_initiator(a, request, read_message(input, dialect, true));
        check_meeting(a, b, request);
    }

    const iw_mpa_policy wild = read_wild_policy(input);
    CHECK(iw_mpa_policy_check(&wild, &a.caps) == (is_possible(wild, a) ? 0 : -EINVAL));
    check_settings(input, b);
    return 0;
}
