// SPDX-License-Identifier: GPL-2.0
#include "endpoint.hpp"

#include "allocator.h"
#include "check.hpp"
#include "exact.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <numeric>
#include <utility>

using mpapeer::ByteView;

namespace {

struct Transition {
    iw_mpa_state from;
    iw_mpa_state to;
    Call call;
};

/// The diagram of Documentation/infiniband/iw_mpa.rst; CLOSED is reached from anywhere.
constexpr Transition initiator_transitions[] = {
    {IW_MPA_IDLE, IW_MPA_CONNECTING, Call::connect},
    {IW_MPA_CONNECTING, IW_MPA_REQ_SENT, Call::connected},
    {IW_MPA_REQ_SENT, IW_MPA_CONNECTING, Call::peer_gone},
    {IW_MPA_REQ_SENT, IW_MPA_REP_RCVD, Call::process},
    {IW_MPA_REP_RCVD, IW_MPA_RDMA, Call::process},
};
constexpr Transition responder_transitions[] = {
    {IW_MPA_IDLE, IW_MPA_REQ_WAIT, Call::respond},
    {IW_MPA_REQ_WAIT, IW_MPA_REQ_RCVD, Call::process},
    {IW_MPA_REQ_RCVD, IW_MPA_REP_SENT, Call::accept},
    {IW_MPA_REP_SENT, IW_MPA_RTR_WAIT, Call::accept},
    {IW_MPA_REP_SENT, IW_MPA_RDMA, Call::accept},
    {IW_MPA_RTR_WAIT, IW_MPA_RDMA, Call::first_fpdu},
};

bool is_drawn(Role role, iw_mpa_state from, iw_mpa_state to, Call call)
{
    const auto drawn = [&](const Transition &t) {
        return t.from == from && t.to == to && t.call == call;
    };
    if (to == IW_MPA_CLOSED)
        return true;
    return role == Role::initiator ? std::ranges::any_of(initiator_transitions, drawn)
                                   : std::ranges::any_of(responder_transitions, drawn);
}

unsigned deadline_of(iw_mpa_state state, const Side &side)
{
    const iw_mpa_policy &policy = side.policy;

    switch (state) {
    case IW_MPA_CONNECTING: return side.caps.no_connect_ms ? 0 : policy.connect_ms;
    case IW_MPA_REQ_SENT: return policy.reply_ms;
    case IW_MPA_REQ_WAIT: return policy.request_ms;
    case IW_MPA_REQ_RCVD: return policy.decide_ms;
    case IW_MPA_RTR_WAIT: return policy.rtr_ms;
    default: return 0;
    }
}

bool fits(const UlpParameters &parameters, bool enhanced)
{
    return parameters.ulp.pdata_len <= (enhanced ? 508u : 512u);
}

} // namespace

/// Options of programs for rdma_set_option(), valid and invalid
static void read_options(Input &input, iw_mpa_layer &layer)
{
    for (unsigned n = 1 + input.below(4); n > 0; n--) {
        const int name = static_cast<int>(input.below(RDMA_MPA_OPTION_ORD_MODE + 2));
        const unsigned raw = input.u16();
        // most options have small values, and 0x3fff has its own meaning
        const std::uint32_t number = raw & 0x8000 ? raw & 0x3fff : raw & 0xf;
        const iw_mpa_layer before = layer;
        const bool cut = (raw & 0x4000) != 0;
        const int rv = iw_mpa_layer_set_option(&layer, name, &number, cut ? raw >> 8 & 3 : sizeof(number));
        CHECK(rv == 0 || rv == -EINVAL);
        CHECK_IF(cut, rv);
        CHECK_IF(rv, std::memcmp(&before, &layer, sizeof(layer)) == 0);
    }
}

UlpParameters::UlpParameters(Input &input, const Side &side)
{
    const unsigned style = input.u8();

    slow = style & 16;
    bare = style & 64;
    old = style & 128;
    ulp.ird = style & 1 ? read_ulp_depth(input, side.caps.max_ird) : side.ird;
    ulp.ord = style & 2 ? read_ulp_depth(input, side.caps.max_ord) : side.ord;
    if (style & 4)
        ulp.pdata_len = style & 8 ? 506 + input.below(9) : input.u8();
    if (style & 32)
        read_options(input, options);
    if (ulp.pdata_len) {
        data = std::make_unique<u8[]>(ulp.pdata_len);
        std::iota(data.get(), data.get() + ulp.pdata_len, style);
    }
    ulp.pdata = data.get();
}

const iw_mpa_ops Endpoint::ops_ = {
    .send =
        [](iw_mpa_session *s, const void *frame, size_t len) {
            return of(s).on_send({static_cast<const u8 *>(frame), len});
        },
    .enter_rdma = [](iw_mpa_session *s,
                     const iw_mpa_rdma *rdma) { return of(s).on_enter_rdma(*rdma); },
    .terminate = [](iw_mpa_session *s, const iw_mpa_rdma *rdma,
                    rdma_mpa_ecode ecode) { of(s).on_terminate(*rdma, ecode); return 0; },
    .deadline = [](iw_mpa_session *s, unsigned int ms) { of(s).on_deadline(ms); },
    .event = [](iw_mpa_session *s, const iw_mpa_event *ev) { return of(s).on_event(*ev); },
    .name = nullptr,
};

Endpoint::Endpoint(Role role, const Side &side)
    : role_(role), side_(side), device_ird_(side.caps.max_ird), device_ord_(side.caps.max_ord),
      driver_(std::make_unique<Driver>())
{
    shim_observed = [](iw_mpa_session *s) { of(s).on_record(s->setup->record); };
    std::memset(&driver_->session, 0xa5, sizeof(driver_->session));
    driver_->endpoint = this;
    CHECK(iw_mpa_config_init(&config_, &ops_, &side_.caps, &side_.policy) == 0);
    shim_fail_next(true);
    CHECK(iw_mpa_session_inherit(session(), &config_) == -ENOMEM && !look().setup);
    CHECK(iw_mpa_session_inherit(session(), &config_) == 0);
    CHECK(state() == IW_MPA_IDLE && look().setup);
    if (is_initiator())
        return;
    begin(Call::respond);
    iw_mpa_respond(session());
    CHECK(state() == IW_MPA_REQ_WAIT);
    end();
}

Endpoint::~Endpoint()
{
    iw_mpa_session_close(session());
    CHECK(!look().setup);
}

void Endpoint::wire_up(Endpoint &a, Endpoint &b)
{
    a.peer_ = &b;
    b.peer_ = &a;
}

// ---------------------------------------------------------------- ops

/// A session sends one frame in its life, of either kind, and two after a fallback.
int Endpoint::on_send(ByteView late)
{
    std::vector<u8> bytes = std::exchange(early_, {});
    bytes.insert(bytes.end(), late.begin(), late.end());
    const ExpectedFrame expected =
        expect_frame(is_initiator() ? IW_MPA_REQUEST : IW_MPA_REPLY, bytes);

    CHECK(++sends_ == (fell_back_ ? 2 : 1));
    CHECK(outcomes_ == 0);
    CHECK(expected.result == IW_MPA_FRAME_COMPLETE && !expected.block_missing);
    CHECK((expected.flags & mpapeer::flag_reserved) == 0);
    CHECK(expected.has(mpapeer::flag_enhanced) == expected.enhanced());
    const Sent frame{expected, ByteView(bytes).subspan(expected.ulp_offset, expected.ulp_length)};
    if (is_initiator())
        check_request_sent(frame);
    else
        check_reply_sent(frame);
    if (failures_.send)
        return std::exchange(failures_.send, 0);
    sent_ = expected;
    if (peer_)
        peer_->arrive(bytes);
    return 0;
}

void Endpoint::check_ulp_data_sent(const Sent &sent) const
{
    CHECK(sent.ulp_data.size() == ulp_->pdata_len);
    CHECK(sent.ulp_data.empty() ||
          std::memcmp(sent.ulp_data.data(), ulp_->pdata, sent.ulp_data.size()) == 0);
}

void Endpoint::check_request_sent(const Sent &sent) const
{
    const ExpectedFrame &frame = sent.frame;

    CHECK(call_ == Call::connected && state() == IW_MPA_CONNECTING);
    CHECK(frame.rev == (fell_back_ ? 1 : side_.policy.rev));
    CHECK(frame.enhanced() == asks_enhanced());
    CHECK(!frame.has(mpapeer::flag_reject));
    CHECK(frame.has(mpapeer::flag_crc) == (side_.policy.crc == RDMA_MPA_CRC_REQUIRED));
    CHECK(frame.has(mpapeer::flag_markers) == side_.caps.rx_markers);
    check_ulp_data_sent(sent);
}

void Endpoint::check_reply_sent(const Sent &sent) const
{
    // Never before a whole valid Request (RSP-01); with Rev and S of the Request
    CHECK(peer_frame_.has_value());
    const ExpectedFrame &request = *peer_frame_, &frame = sent.frame;
    const bool reject = frame.has(mpapeer::flag_reject);
    const auto asked = request.word;
    const auto answer = frame.word;

    CHECK(request.rev != 0 && frame.rev == request.rev);
    CHECK(answer.has_value() == asked.has_value());
    CHECK(frame.has(mpapeer::flag_crc) ==
          (request.has(mpapeer::flag_crc) || side_.policy.crc == RDMA_MPA_CRC_REQUIRED));
    CHECK(frame.has(mpapeer::flag_markers) == (side_.caps.rx_markers && !reject));
    if (answer && side_.policy.dialect == RDMA_MPA_DIALECT_RFC6581) {
        CHECK(answer->p2p == asked->p2p);
        CHECK_IF(!answer->p2p, !answer->send_rtr && !answer->write_rtr && !answer->read_rtr);
    }
    if (reject) {
        CHECK(call_ == Call::process || call_ == Call::accept || call_ == Call::reject);
        CHECK(state() == IW_MPA_REQ_WAIT || state() == IW_MPA_REQ_RCVD);
        CHECK(!in_rdma_mode_);
        if (call_ != Call::reject)
            CHECK(sent.ulp_data.empty());
        else if (ulp_->pdata_len <= (asked ? 508u : 512u))
            check_ulp_data_sent(sent);
        return;
    }
    // The QP is ready first (RFC 5044 section 7.1.2), and as the Reply says (RSP-18)
    CHECK(call_ == Call::accept && state() == IW_MPA_REP_SENT);
    CHECK(in_rdma_mode_);
    CHECK(request_events_ == 1);
    check_ulp_data_sent(sent);
    if (!answer)
        return;
    const auto enh =
        expect_enh(answer->to_wire(), static_cast<rdma_mpa_dialect>(side_.policy.dialect));
    CHECK(enh.ird == (asked->ord == IW_MPA_DEPTH_ULP ? IW_MPA_DEPTH_ULP : rdma_.ird));
    CHECK(enh.ord == (asked->ird == IW_MPA_DEPTH_ULP ? IW_MPA_DEPTH_ULP : rdma_.ord));
    CHECK(enh.rtr == rdma_.rtr);
}

void Endpoint::check_rdma(const iw_mpa_rdma &rdma) const
{
    const ExpectedFrame &peer = *peer_frame_;
    const bool own_crc = side_.policy.crc == RDMA_MPA_CRC_REQUIRED;

    CHECK(rdma.responder == !is_initiator());
    CHECK(rdma.ird <= side_.caps.max_ird && rdma.ird <= IW_MPA_DEPTH_MAX);
    CHECK(rdma.ord <= side_.caps.max_ord && rdma.ord <= IW_MPA_DEPTH_MAX);
    CHECK(rdma.ulp_ord == rdma.ord || (rdma.ulp_ord == 0 && rdma.ord == 1 &&
                                       rdma.rtr == RDMA_MPA_RTR_READ && is_initiator()));
    CHECK(rdma.crc == (own_crc || peer.has(mpapeer::flag_crc)));
    CHECK(rdma.tx_markers == peer.has(mpapeer::flag_markers));
    CHECK(rdma.rx_markers == side_.caps.rx_markers);
    if (is_initiator())
        CHECK(rdma.rtr == 0 ||
              (std::has_single_bit(rdma.rtr) && rdma.rtr & side_.caps.rtr_send));
    else
        CHECK((rdma.rtr & ~side_.accepted()) == 0);
    // An older cxgb4 sends this kind
    CHECK(rdma.rtr_unasked == (!is_initiator() && peer.rev == 1 &&
                                       side_.policy.model != RDMA_MPA_MODEL_CLIENT_SERVER
                                   ? side_.policy.rtr_order[0]
                                   : 0));
}

int Endpoint::on_enter_rdma(const iw_mpa_rdma &rdma)
{
    CHECK(++enters_ == 1);
    CHECK(terms_ == 0 && outcomes_ == 0);
    CHECK(peer_frame_.has_value());
    CHECK(call_ == (is_initiator() ? Call::process : Call::accept));
    CHECK(state() == (is_initiator() ? IW_MPA_REP_RCVD : IW_MPA_REQ_RCVD));
    CHECK(sends_ == (is_initiator() ? 1 + fell_back_ : 0));
    // Not after demands that we cannot meet (IOP-17), nor without an accept
    CHECK_IF(rdma.tx_markers, side_.caps.tx_markers);
    CHECK_IF(side_.policy.crc == RDMA_MPA_CRC_OFF, !rdma.crc);
    CHECK_IF(side_.caps.no_crc, !rdma.crc);
    CHECK(rdma.large == side_.policy.large);
    CHECK(peer_frame_->rev != 0 && !more_behind_);
    CHECK_IF(is_initiator(), !peer_frame_->has(mpapeer::flag_reject));
    CHECK_IF(is_initiator(), peer_frame_->enhanced() == asks_enhanced());
    // IOP-03: with any options of the ULP
    CHECK_IF(!is_initiator() && peer_frame_->enhanced(), side_.policy.enhanced);
    CHECK_IF(is_initiator() && peer_, peer_->in_rdma_mode());
    check_rdma(rdma);
    enter_error_ = std::exchange(failures_.enter, 0);
    if (enter_error_)
        return enter_error_;
    rdma_ = rdma;
    in_rdma_mode_ = true;
    return 0;
}

/// Only an initiator with a valid accept can send a TERM (ERR-12), in place of its RTR.
void Endpoint::on_terminate(const iw_mpa_rdma &rdma, rdma_mpa_ecode ecode)
{
    CHECK(++terms_ == 1);
    CHECK(is_initiator() && call_ == Call::process && state() == IW_MPA_REP_RCVD);
    CHECK(!in_rdma_mode_ && outcomes_ == 0);
    CHECK(!peer_frame_->has(mpapeer::flag_reject) && !more_behind_);
    CHECK(ecode == RDMA_MPA_ECODE_LOCAL || ecode == RDMA_MPA_ECODE_IRD ||
          ecode == RDMA_MPA_ECODE_RTR);
    CHECK((ecode == RDMA_MPA_ECODE_LOCAL) == (enter_error_ != 0));
    check_rdma(rdma);
}

/// The session sets a deadline with each change of its state, so this function checks the changes.
void Endpoint::on_deadline(unsigned ms)
{
    CHECK(call_ != Call::none);
    CHECK(is_drawn(role_, noted_state_, state(), call_));
    CHECK_IF(noted_state_ == IW_MPA_CLOSED, state() == IW_MPA_CLOSED);
    CHECK(ms == deadline_of(state(), side_));
    if (noted_state_ != state())
        left_.push_back(noted_state_);
    noted_state_ = state();
    deadline_ = ms;
}

/// Each event is counted, traced and notified exactly once.
void Endpoint::on_record(const iw_mpa_record &record)
{
    const std::span left(record.left, record.num_left);
    const bool is_end = state() == IW_MPA_CLOSED || state() == IW_MPA_RDMA;

    CHECK(call_ != Call::none);
    CHECK(std::ranges::equal(left, left_));
    if (!left_.empty() && left_[0] == IW_MPA_IDLE && state() != IW_MPA_CLOSED)
        has_begun_ = true;
    ends_ += record.ended;
    // A session that has not begun does not end
    CHECK(record.ended == (has_begun_ && is_end && !left_.empty()));
    CHECK(ends_ <= 1);
    CHECK_IF(record.ended, (record.status == 0) == (state() == IW_MPA_RDMA));
    CHECK_IF(record.ended && ulp_waits_ && outcomes_, record.status == outcome_status_);
    CHECK_IF(record.timed_out, call_ == Call::timeout);
    CHECK_IF(record.fell_back, fell_back_ || call_ == Call::peer_gone);
    CHECK_IF(record.received, call_ == Call::rx);
    CHECK_IF(record.decided, call_ == Call::process || call_ == Call::accept);
    CHECK_IF(record.sent, session()->setup->sent.kind == (is_initiator() ? IW_MPA_REQUEST : IW_MPA_REPLY));
    CHECK_IF(record.terminated, terms_ == 1 && record.ecode != RDMA_MPA_ECODE_NONE);
    CHECK_IF(record.rtr_moved, in_rdma_mode_ && state() == IW_MPA_RDMA);
    CHECK_IF(record.rtr_moved && is_initiator(), record.rtr == rdma_.rtr);
    CHECK_IF(record.bad, state() == IW_MPA_CLOSED);
    CHECK(record.fast_opened == (call_ == Call::fast_opened));
    left_.clear();
}

void Endpoint::check_private_data(const iw_mpa_event &event) const
{
    CHECK(event.pdata_len <= IW_MPA_PDATA_MAX);
    const bool shown = event.type != IW_MPA_EVENT_ESTABLISHED;
    const ExpectedFrame expected = expect_frame(awaited(), received_);
    const std::size_t length = shown && expected.complete() ? expected.ulp_length : 0;

    CHECK(event.pdata_len == length);
    CHECK(length == 0 ||
          std::memcmp(event.pdata, received_.data() + expected.ulp_offset, length) == 0);
}

/// The ULP gets the peer's depths with every outcome (IRD-05, IRD-06, ERR-19).
void Endpoint::check_peer_values(const iw_mpa_event &event) const
{
    const auto word = peer_frame_ ? peer_frame_->word : std::nullopt;

    CHECK(event.peer_known == word.has_value());
    CHECK(event.peer_ird == (word ? word->ird : 0) && event.peer_ord == (word ? word->ord : 0));
}

void Endpoint::check_established(const iw_mpa_event &event) const
{
    CHECK(in_rdma_mode_ && terms_ == 0);
    CHECK(state() == IW_MPA_RDMA && deadline_ == 0);
    CHECK(event.ecode == RDMA_MPA_ECODE_NONE);
    CHECK(event.ird == rdma_.ird && event.ord == rdma_.ulp_ord && event.rtr == rdma_.rtr);
    if (is_initiator())
        return;
    CHECK(sent_.has_value() && !sent_->has(mpapeer::flag_reject));
    CHECK(call_ ==
          (rdma_.rtr && !side_.caps.rtr_offload ? Call::first_fpdu : Call::accept));
}

/// The status fits the cause of the failure.
void Endpoint::check_cause(const iw_mpa_event &event) const
{
    CHECK(event.status < 0);
    CHECK(state() == IW_MPA_CLOSED && deadline_ == 0);
    switch (call_) {
    case Call::peer_gone:
        CHECK(event.status == (call_err_ ? call_err_ : -ECONNRESET));
        CHECK(event.ecode == RDMA_MPA_ECODE_CLOSED);
        break;
    case Call::connected:
        CHECK(failures_.send == 0 && event.ecode == RDMA_MPA_ECODE_LOCAL);
        break;
    case Call::timeout:
        CHECK(event.status == -ETIMEDOUT && event.ecode == RDMA_MPA_ECODE_CLOSED);
        break;
    case Call::abort:
        CHECK(event.status == call_err_ && event.ecode == RDMA_MPA_ECODE_LOCAL);
        break;
    case Call::rx:
        if (shim_failed())
            CHECK(event.status == -ENOMEM && event.ecode == RDMA_MPA_ECODE_LOCAL);
        else
            CHECK(event.status == -EPROTO && event.ecode == RDMA_MPA_ECODE_BAD_FRAME);
        break;
    case Call::process: check_end_of_process(event); break;
    default:
        CHECK(!"an event of this entry point");
    }
}

/// A Reply that has not led to a connection.
void Endpoint::check_end_of_process(const iw_mpa_event &event) const
{
    const bool bad = event.status == -EPROTO && event.ecode == RDMA_MPA_ECODE_BAD_FRAME;

    CHECK(is_initiator());
    if (peer_frame_->rev == 0) // another protocol (AMB-07)
        CHECK(bad);
    else if (peer_frame_->has(mpapeer::flag_reject))
        CHECK(event.status == -ECONNREFUSED && event.ecode == RDMA_MPA_ECODE_NONE);
    else if (more_behind_)
        CHECK(bad);
    else if (enter_error_)
        CHECK(event.status == enter_error_ && event.ecode == RDMA_MPA_ECODE_LOCAL);
    else
        CHECK(event.status == -EPROTO || event.status == -ENOMEM);
    CHECK_IF(event.ecode == RDMA_MPA_ECODE_IRD || event.ecode == RDMA_MPA_ECODE_RTR, terms_ == 1);
}

int Endpoint::on_event(const iw_mpa_event &event)
{
    CHECK(call_ != Call::none);
    CHECK(outcomes_ == 0);
    check_private_data(event);
    check_peer_values(event);
    if (event.type == IW_MPA_EVENT_REQUEST) {
        CHECK(!is_initiator() && call_ == Call::process && state() == IW_MPA_REQ_RCVD);
        CHECK(++request_events_ == 1);
        CHECK(sends_ == 0 && enters_ == 0);
        CHECK(event.status == 0 && peer_frame_->rev != 0 && !more_behind_);
        CHECK(event.ird <= side_.caps.max_ird && event.ord <= side_.caps.max_ord);
        // IOP-03
        CHECK_IF(peer_frame_->enhanced(), side_.policy.enhanced);
        return std::exchange(failures_.event, 0);
    }
    CHECK(event.type == (is_initiator() ? IW_MPA_EVENT_REPLY : IW_MPA_EVENT_ESTABLISHED));
    // accept() may send the event before it returns
    CHECK(ulp_waits_ || call_ == Call::accept);
    outcomes_++;
    outcome_status_ = event.status;
    if (event.status == 0)
        check_established(event);
    else
        check_cause(event);
    return 0;
}

// ---------------------------------------------------------------- entry points

void Endpoint::begin(Call call, int err)
{
    CHECK(call_ == Call::none);
    call_ = call;
    call_err_ = err;
    shim_fail_next(std::exchange(failures_.allocation, false));
}

void Endpoint::end(std::optional<iw_mpa_next> next)
{
    // An established connection has no deadline left to cancel
    if (noted_state_ == IW_MPA_RDMA && is_closed()) {
        CHECK(call_ == Call::peer_gone || call_ == Call::abort);
        noted_state_ = IW_MPA_CLOSED;
    }
    CHECK(left_.empty()); // the record had all states
    call_ = Call::none;
    ulp_ = nullptr;
    shim_fail_next(false);
    check_at_rest();
    if (next)
        CHECK((*next == IW_MPA_NEXT_CLOSE) == is_closed());
    if (is_closed())
        frame_pending_ = false;
}

/// The outcome is valid for the rest of the endpoint's life (RFC 6581 section 9).
void Endpoint::check_outcome() const
{
    const iw_mpa_outcome &outcome = look().outcome;
    const ExpectedFrame &peer = *peer_frame_;

    CHECK(outcome.ird == rdma_.ird && outcome.ord == rdma_.ulp_ord);
    CHECK(outcome.rtr == rdma_.rtr && outcome.crc == rdma_.crc && outcome.large == rdma_.large);
    CHECK(outcome.rtr_seen == first_fpdu_);
    CHECK(outcome.peer_rev == peer.rev && outcome.peer_known == peer.enhanced());
    CHECK(outcome.peer_ird == (peer.word ? peer.word->ird : 0));
    CHECK(outcome.peer_ord == (peer.word ? peer.word->ord : 0));
}

/// A session holds no more memory than it needs at the moment.
void Endpoint::check_memory() const
{
    const iw_mpa_setup *const setup = look().setup;
    const bool over = state() == IW_MPA_CLOSED || state() == IW_MPA_RDMA;

    CHECK((setup == nullptr) == over);
    if (over)
        return;
    CHECK(shim_size(setup->pdata) == data_length_);
    const ExpectedFrame expected = expect_frame(awaited(), received_);
    const bool reading = state() == IW_MPA_REQ_SENT || state() == IW_MPA_REQ_WAIT;
    if (reading && received_.size() >= IW_MPA_HDR_LEN && expected.need > IW_MPA_HDR_LEN)
        CHECK(shim_size(setup->rx) == expected.need);
    else
        CHECK(setup->rx == setup->hdr);
}

void Endpoint::check_at_rest() const
{
    CHECK(state() == noted_state_);
    CHECK(state() != IW_MPA_REP_RCVD && state() != IW_MPA_REP_SENT);
    CHECK(deadline_ == deadline_of(state(), side_));
    CHECK(outcomes_ <= 1);
    CHECK_IF(!ulp_waits_, outcomes_ == 0);
    const bool over = state() == IW_MPA_CLOSED || state() == IW_MPA_RDMA;
    CHECK_IF(ulp_waits_, (outcomes_ == 1) == over);
    CHECK_IF(state() == IW_MPA_RDMA, outcome_status_ == 0 && in_rdma_mode_);
    CHECK(iw_mpa_is_connected(&look()) == (state() == IW_MPA_RDMA));
    CHECK(iw_mpa_is_connecting(&look()) == (state() == IW_MPA_CONNECTING));
    CHECK(iw_mpa_early_pending(&look()) == (has_early_ && look().setup));
    CHECK_IF(look().setup, iw_mpa_prefers_peer_to_peer(&look()) ==
                               (side_.policy.model != RDMA_MPA_MODEL_CLIENT_SERVER));
    check_memory();
    if (state() == IW_MPA_RDMA || state() == IW_MPA_RTR_WAIT)
        check_outcome();

    const bool reads = state() == IW_MPA_REQ_SENT || state() == IW_MPA_REQ_WAIT;
    std::size_t room = ~std::size_t{0};
    CHECK((iw_mpa_rx_room(&driver_->session, &room) != nullptr) == (room != 0));
    CHECK(room == (reads ? expect_frame(awaited(), received_).need - received_.size() : 0));
}

/// False for depths beyond the device or too much private data; a ceiling only lowers depths
bool Endpoint::is_possible(const UlpParameters &given, bool enhanced) const
{
    return given.ulp.ird <= device_ird_ && given.ulp.ord <= device_ord_ && fits(given, enhanced);
}

namespace {

u16 lowered(u16 depth, u16 ceiling, bool pow2)
{
    if (ceiling == IW_MPA_DEPTH_MAX)
        return depth;
    return std::min(depth, pow2 ? std::bit_floor(ceiling) : ceiling);
}

/// A side after a layer has been applied: settings replace, ceilings only get lower.
Side under_options(Side side, const iw_mpa_layer &layer)
{
    const auto has = [&](rdma_mpa_setting setting) { return layer.set >> setting & 1; };
    const auto take = [&](rdma_mpa_setting setting, auto member) {
        if (has(setting))
            side.policy.*member = layer.value.*member;
    };
    take(RDMA_MPA_SETTING_REVISION, &iw_mpa_policy::rev);
    if (has(RDMA_MPA_SETTING_REVISION)) {
        side.policy.enhanced = layer.value.enhanced;
        side.policy.fallback = layer.value.fallback;
    }
    take(RDMA_MPA_SETTING_MODEL, &iw_mpa_policy::model);
    take(RDMA_MPA_SETTING_RTR_OFFER, &iw_mpa_policy::rtr_offer);
    take(RDMA_MPA_SETTING_RTR_ACCEPT, &iw_mpa_policy::rtr_accept);
    if (has(RDMA_MPA_SETTING_RTR_ORDER))
        std::ranges::copy(layer.value.rtr_order, side.policy.rtr_order);
    if (has(RDMA_MPA_SETTING_IRD))
        side.policy.ird_ulp = layer.value.ird_ulp;
    if (has(RDMA_MPA_SETTING_ORD))
        side.policy.ord_ulp = layer.value.ord_ulp;
    if (has(RDMA_MPA_SETTING_IRD))
        side.policy.max_ird = std::min(side.policy.max_ird, layer.value.max_ird);
    if (has(RDMA_MPA_SETTING_ORD))
        side.policy.max_ord = std::min(side.policy.max_ord, layer.value.max_ord);
    take(RDMA_MPA_SETTING_REQUEST_MS, &iw_mpa_policy::request_ms);
    take(RDMA_MPA_SETTING_REPLY_MS, &iw_mpa_policy::reply_ms);
    take(RDMA_MPA_SETTING_RTR_MS, &iw_mpa_policy::rtr_ms);
    take(RDMA_MPA_SETTING_DECIDE_MS, &iw_mpa_policy::decide_ms);
    take(RDMA_MPA_SETTING_CONNECT_MS, &iw_mpa_policy::connect_ms);
    take(RDMA_MPA_SETTING_SHORT_IRD, &iw_mpa_policy::short_ird);
    take(RDMA_MPA_SETTING_FASTOPEN, &iw_mpa_policy::fastopen);
    take(RDMA_MPA_SETTING_STREAMS, &iw_mpa_policy::streams);
    take(RDMA_MPA_SETTING_IDLE, &iw_mpa_policy::idle);
    if (has(RDMA_MPA_SETTING_SEGMENT))
        side.policy.large = layer.value.large;
    side.caps.max_ird = lowered(side.caps.max_ird, side.policy.max_ird, side.caps.pow2_depths);
    side.caps.max_ord = lowered(side.caps.max_ord, side.policy.max_ord, side.caps.pow2_depths);
    return side;
}

bool same(const iw_mpa_policy &a, const iw_mpa_policy &b)
{
    return a.rev == b.rev && a.enhanced == b.enhanced && a.fallback == b.fallback &&
           a.model == b.model && a.rtr_offer == b.rtr_offer && a.rtr_accept == b.rtr_accept &&
           std::ranges::equal(a.rtr_order, b.rtr_order) && a.max_ird == b.max_ird &&
           a.max_ord == b.max_ord && a.ird_ulp == b.ird_ulp && a.ord_ulp == b.ord_ulp &&
           a.short_ird == b.short_ird && a.crc == b.crc && a.markers == b.markers &&
           a.dialect == b.dialect && a.fastopen == b.fastopen && a.large == b.large &&
           a.streams == b.streams && a.idle == b.idle && a.connect_ms == b.connect_ms &&
           a.request_ms == b.request_ms && a.decide_ms == b.decide_ms && a.rtr_ms == b.rtr_ms &&
           a.reply_ms == b.reply_ms;
}

} // namespace

/// Opens a session with the options of the ULP, like a driver. False: the device does not support
/// the options, and the session has not changed.
bool Endpoint::open_with(const iw_mpa_layer &options)
{
    const Side side = under_options(side_, options);
    const iw_mpa_config before = config_;
    const int rv = iw_mpa_config_apply(&config_, &options);

    CHECK(rv == iw_mpa_policy_check(&side.policy, &side.caps));
    CHECK_IF(rv, std::memcmp(&before, &config_, sizeof(before)) == 0);
    if (rv == 0)
        side_ = side;
    CHECK(same(config_.policy, side_.policy));
    CHECK(config_.caps.max_ird == side_.caps.max_ird);
    CHECK(config_.caps.max_ord == side_.caps.max_ord);
    CHECK(config_.device_ird == device_ird_ && config_.device_ord == device_ord_);
    if (rv)
        return false;
    iw_mpa_session_close(session());
    CHECK(iw_mpa_session_inherit(session(), &config_) == 0);
    return true;
}

/// The memory behind @parameters is freed before this returns.
void Endpoint::connect(UlpParameters &&parameters)
{
    const UlpParameters given = std::move(parameters);
    const iw_mpa_state before = state();
    if (!is_initiator())
        return;
    if (before == IW_MPA_IDLE && given.options.set && !open_with(given.options))
        return;
    // IOP-09: like after a refused Request of Rev 2, but without that attempt
    shim_peer_is_rev1 = given.old;
    if (before == IW_MPA_IDLE && given.old && side_.policy.fallback && side_.policy.rev == 2 &&
        side_.policy.model != RDMA_MPA_MODEL_PEER_TO_PEER_REQUIRED) {
        side_.policy.rev = 1;
        side_.policy.enhanced = false;
    }
    const bool possible = is_possible(given, side_.sends_enhanced());
    const bool has_memory = !failures_.allocation || given.ulp.pdata_len == 0;
    begin(Call::connect);
    const int rv = iw_mpa_connect(session(), &given.ulp);
    if (before != IW_MPA_IDLE) {
        CHECK(rv == -EINVAL && state() == before);
    } else {
        CHECK(rv == (!possible ? -EINVAL : has_memory ? 0 : -ENOMEM)); // FRM-14, SEC-11
        CHECK(state() == (rv ? IW_MPA_CLOSED : IW_MPA_CONNECTING));
        ulp_waits_ = rv == 0;
        data_length_ = given.ulp.pdata_len;
        data_ = std::make_unique<u8[]>(data_length_);
        std::copy_n(given.data.get(), data_length_, data_.get());
    }
    CHECK(sends_ == (before == IW_MPA_IDLE ? 0 : sends_));
    end();
}

/// Connects with a part of the Request in the SYN, if allowed. True: the SYN has all of it.
bool Endpoint::dial()
{
    std::array<u8, IW_MPA_FRAME_MAX> frame;
    const std::size_t length = iw_mpa_early_request(session(), frame.data(), frame.size());
    const bool may = side_.policy.fastopen && side_.caps.fastopen;

    CHECK((length != 0) == (may && !fell_back_ && state() == IW_MPA_CONNECTING));
    if (length == 0)
        return false;
    early_.assign(frame.begin(), frame.begin() + std::min<std::size_t>(length, side_.ird & 0x3ff));
    iw_mpa_early_sent(session(), early_.size());
    has_early_ = !early_.empty();
    return early_.size() == length;
}

void Endpoint::connected()
{
    const iw_mpa_ulp given = {.pdata = data_.get(), .pdata_len = data_length_};
    const iw_mpa_state before = state();
    int failure = failures_.send;
    const int sends = sends_;
    if (!is_initiator())
        return;
    const bool all_early = dial();
    if (has_early_ && state() == IW_MPA_CONNECTING) {
        begin(Call::fast_opened);
        iw_mpa_fast_opened(session());
        end();
    }
    begin(Call::connected);
    ulp_ = &given;
    if (all_early) { // nothing is left to send, or to fail
        failures_.send = 0;
        on_send({});
        failures_.send = std::exchange(failure, 0);
    }
    const iw_mpa_next next = iw_mpa_connected(session());
    if (before == IW_MPA_CONNECTING) {
        CHECK(sends_ == sends + 1);
        CHECK(state() == (failure ? IW_MPA_CLOSED : IW_MPA_REQ_SENT));
        CHECK_IF(failure, outcome_status_ == failure);
    } else {
        CHECK(state() == before && sends_ == sends);
        CHECK(next == (is_closed() ? IW_MPA_NEXT_CLOSE : IW_MPA_NEXT_WAIT));
    }
    end(next);
}

void Endpoint::accept(const UlpParameters &parameters)
{
    const iw_mpa_state before = state();
    if (is_initiator() || call_ != Call::none)
        return;
    const bool takes = before == IW_MPA_REQ_RCVD;
    const Side side = under_options(side_, parameters.options);
    const bool can = iw_mpa_policy_check(&side.policy, &side.caps) == 0;
    // IOP-03: with an option for RFC 5044 alone, an enhanced Request is malformed
    const bool understood = !takes || !peer_frame_->enhanced() || side.policy.enhanced;

    if (takes && can)
        side_ = side;
    begin(Call::accept);
    ulp_ = &parameters.ulp;
    const iw_mpa_layer *const options =
        parameters.bare && !parameters.options.set ? nullptr : &parameters.options;
    const int rv = iw_mpa_accept(session(), options, &parameters.ulp);
    if (!takes) {
        CHECK(rv == -ECONNRESET && state() == before);
    } else if (!can) {
        CHECK(rv == -EINVAL && sends_ == 1 && enters_ == 0);
    } else if (!understood) {
        CHECK(rv == -EPROTO && sends_ == 0 && enters_ == 0);
    } else {
        CHECK(rv <= 0 && sends_ == 1);
        CHECK_IF(!is_possible(parameters, peer_frame_->enhanced()), rv == -EINVAL && enters_ == 0);
        CHECK_IF(enter_error_, rv == enter_error_);
        CHECK_IF(rv == 0, state() == (rdma_.rtr && !side_.caps.rtr_offload ? IW_MPA_RTR_WAIT
                                                                           : IW_MPA_RDMA));
        ulp_waits_ = rv == 0;
    }
    CHECK_IF(takes, (rv != 0) == is_closed());
    end();
}

void Endpoint::reject(const UlpParameters &parameters)
{
    const iw_mpa_state before = state();
    if (is_initiator())
        return;
    const int failure = failures_.send;
    begin(Call::reject);
    ulp_ = &parameters.ulp;
    const int rv = iw_mpa_reject(session(), parameters.ulp.pdata, parameters.ulp.pdata_len);
    if (before != IW_MPA_REQ_RCVD) {
        CHECK(rv == -ECONNRESET && state() == before);
    } else {
        CHECK(rv == (fits(parameters, peer_frame_->enhanced()) ? failure : -EINVAL));
        CHECK(sends_ == 1 && is_closed());
    }
    end();
}

void Endpoint::arrive(ByteView bytes)
{
    incoming_.insert(incoming_.end(), bytes.begin(), bytes.end());
}

void Endpoint::read(std::size_t portion)
{
    const std::size_t length = std::min(portion, incoming_.size());
    if (length == 0 || state() == IW_MPA_IDLE)
        return;
    const iw_mpa_state before = state();
    const bool reads = before == IW_MPA_REQ_SENT || before == IW_MPA_REQ_WAIT;
    std::size_t room = 0;
    void *const to = iw_mpa_rx_room(session(), &room);
    const bool whole = to == nullptr;
    const std::size_t used = std::min(length, room);
    if (used != 0)
        std::memcpy(to, incoming_.data(), used);

    begin(Call::rx);
    const iw_mpa_next next = iw_mpa_rx_done(session(), whole ? length : used);
    const auto end_of_used = incoming_.begin() + static_cast<std::ptrdiff_t>(used);
    received_.insert(received_.end(), incoming_.begin(), end_of_used);
    incoming_.erase(incoming_.begin(), end_of_used);

    if (reads && !whole) {
        const iw_mpa_parse result = expect_frame(awaited(), received_).result;
        const bool no_memory = shim_failed();
        CHECK(result != IW_MPA_FRAME_TRAILING); // the session takes no bytes behind the frame
        if (no_memory) {
            CHECK(result == IW_MPA_FRAME_NEED_MORE && next == IW_MPA_NEXT_CLOSE);
            end(next);
            return;
        }
        CHECK_IF(result == IW_MPA_FRAME_NEED_MORE, next == IW_MPA_NEXT_WAIT);
        CHECK((next == IW_MPA_NEXT_FRAME) == (result == IW_MPA_FRAME_COMPLETE));
        frame_pending_ = next == IW_MPA_NEXT_FRAME;
    } else if (before == IW_MPA_RDMA || before == IW_MPA_RTR_WAIT) {
        CHECK(next == IW_MPA_NEXT_DONE && whole && state() == before);
    } else {
        CHECK(next == IW_MPA_NEXT_CLOSE && whole);
    }
    end(next);
}

void Endpoint::process()
{
    if (!frame_pending_)
        return;
    frame_pending_ = false;
    peer_frame_ = expect_frame(awaited(), received_);
    more_behind_ = !incoming_.empty();
    const unsigned remembered = shim_rev1_peers;
    begin(Call::process);
    const iw_mpa_next next = iw_mpa_process(session(), more_behind_);
    // IOP-09: the peer has answered Rev 1, and not Rev 2
    CHECK((shim_rev1_peers != remembered) == (fell_back_ && peer_frame_->rev != 0));
    CHECK(next != IW_MPA_NEXT_FRAME);
    CHECK((next == IW_MPA_NEXT_DONE) == (state() == IW_MPA_RDMA));
    CHECK_IF(next == IW_MPA_NEXT_WAIT, state() == IW_MPA_REQ_RCVD && request_events_ == 1);
    end(next);
}

/// Only a QP in RDMA mode can receive an FPDU, but the driver may report it late.
void Endpoint::first_fpdu(u8 rtr)
{
    if (!in_rdma_mode_)
        return;
    begin(Call::first_fpdu);
    if (state() == IW_MPA_RTR_WAIT)
        first_fpdu_ = rtr;
    const iw_mpa_next next = iw_mpa_first_fpdu(session(), rtr);
    CHECK(next == (is_closed() ? IW_MPA_NEXT_CLOSE : IW_MPA_NEXT_DONE));
    end(next);
}

void Endpoint::peer_gone(int err)
{
    // AMB-23: once, before the first byte of a Reply, and not if the ULP needs more
    const bool again = state() == IW_MPA_REQ_SENT && received_.empty() && !fell_back_ &&
                       side_.policy.fallback && side_.policy.rev == 2 &&
                       side_.policy.model != RDMA_MPA_MODEL_PEER_TO_PEER_REQUIRED &&
                       (err == 0 || err == -ECONNRESET || err == -EPIPE);
    begin(Call::peer_gone, err);
    const iw_mpa_next next = iw_mpa_peer_gone(session(), err);
    CHECK(next == (again ? IW_MPA_NEXT_RECONNECT : IW_MPA_NEXT_CLOSE));
    if (again) {
        CHECK(state() == IW_MPA_CONNECTING && outcomes_ == 0);
        fell_back_ = true;
        has_early_ = false;
        incoming_.clear();
    }
    end(next);
}

/// May also come late, when the session does not wait any more.
void Endpoint::timeout()
{
    const iw_mpa_state before = state();
    begin(Call::timeout);
    const iw_mpa_next next = iw_mpa_timeout(session());
    CHECK(next == (before == IW_MPA_RDMA ? IW_MPA_NEXT_DONE : IW_MPA_NEXT_CLOSE));
    CHECK_IF(before == IW_MPA_RDMA, state() == IW_MPA_RDMA);
    end(next);
}

void Endpoint::abort(int err)
{
    begin(Call::abort, err);
    const iw_mpa_next next = iw_mpa_abort(session(), err);
    CHECK(next == IW_MPA_NEXT_CLOSE);
    end(next);
}

void Endpoint::finish()
{
    std::size_t room;

    peer_gone(0);
    if (!is_closed())
        peer_gone(-ECONNREFUSED);
    CHECK(is_closed() && deadline_ == 0);
    CHECK(outcomes_ == (ulp_waits_ ? 1 : 0));
    // CLOSED is final: late events change nothing
    const int sends = sends_, enters = enters_, terms = terms_;
    timeout();
    first_fpdu(RDMA_MPA_RTR_WRITE);
    abort(-ENODEV);
    begin(Call::rx);
    CHECK(iw_mpa_rx_room(session(), &room) == nullptr && room == 0);
    CHECK(iw_mpa_rx_done(session(), 1) == IW_MPA_NEXT_CLOSE);
    end();
    begin(Call::process);
    CHECK(iw_mpa_process(session(), true) == IW_MPA_NEXT_WAIT);
    end();
    CHECK(is_closed() && outcomes_ == (ulp_waits_ ? 1 : 0));
    // Counters: a session that has begun and not ended counts as half-open
    CHECK(ends_ == (has_begun_ ? 1 : 0));
    CHECK(sends == sends_ && enters == enters_ && terms == terms_);
}

// ---------------------------------------------------------------- two of them

/// When both are in RDMA mode they agree about everything (RFC 6581 section 9).
void Endpoint::check_agreement(const Endpoint &a, const Endpoint &b)
{
    if (!a.in_rdma_mode_ || !b.in_rdma_mode_)
        return;
    CHECK(a.rdma_.crc == b.rdma_.crc);
    CHECK(a.rdma_.tx_markers == b.rdma_.rx_markers);
    CHECK(a.rdma_.rx_markers == b.rdma_.tx_markers);
    CHECK((a.rdma_.rtr != 0) == (b.rdma_.rtr != 0));
    CHECK((a.rdma_.rtr & ~b.rdma_.rtr) == 0);
    CHECK_IF(a.rdma_.rtr == RDMA_MPA_RTR_READ, a.rdma_.ord >= 1 && b.rdma_.ird >= 1);
    const auto asked = a.sent_->word;
    if (!asked)
        return;
    CHECK_IF(asked->ord != IW_MPA_DEPTH_ULP, a.rdma_.ord <= b.rdma_.ird);
    CHECK_IF(asked->ird != IW_MPA_DEPTH_ULP, b.rdma_.ord <= a.rdma_.ird);
}
