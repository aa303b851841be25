// SPDX-License-Identifier: GPL-2.0
// session.c, initiator.c and responder.c under a driver that only records calls. Input: one byte that
// chooses between an initiator, a responder and two connected sessions, and the dialect; a side of 12
// bytes for each session (see side.hpp); then steps. A step is a byte, whose top bit chooses the
// session, and its arguments.
#include "allocator.h"
#include "check.hpp"
#include "endpoint.hpp"

#include <numeric>

namespace {

enum class Step : unsigned {
    feed,         ///< two bytes of length, then bytes as they are
    frame,        ///< flags, Rev, word, length of private data: a nearly correct frame
    read,         ///< number of bytes, 0: all; then process a whole frame
    read_only,    ///< as read, but the frame waits
    process,
    open,         ///< connect or accept: see UlpParameters
    reject,       ///< as open
    first_fpdu,   ///< kind of the FPDU
    peer_gone,    ///< the reason
    timeout,
    abort,        ///< the reason
    fail,         ///< the ops that fail
    steps,
};

constexpr int errors[] = {0, -ECONNRESET, -EPIPE, -ENOMEM, -ENODEV, -EHOSTUNREACH};
constexpr unsigned max_steps = 200;

int read_error(Input &input)
{
    return errors[input.below(std::size(errors))];
}

mpapeer::Bytes read_frame(Input &input, Role receiver)
{
    mpapeer::MpaFrame frame;
    frame.key = receiver == Role::initiator ? mpapeer::reply_key : mpapeer::request_key;
    frame.flags = input.u8();
    const unsigned style = input.u8();
    frame.rev = static_cast<u8>(style & 3);
    mpapeer::append(frame.private_data, input.u32());
    const std::size_t length = style & 4 ? 500 + input.below(20) : input.u8();
    frame.private_data.resize(length);
    if (length > 4)
        std::iota(frame.private_data.begin() + 4, frame.private_data.end(), u8{0});
    frame.pd_length = style & 8 ? input.u16() : static_cast<u16>(length);
    return mpapeer::build_frame(frame);
}

void take_step(Step step, Input &input, Endpoint &endpoint, const Side &side, bool foreign_peer)
{
    switch (step) {
    case Step::feed: {
        const auto bytes = input.take(input.u16() % 1024);
        if (foreign_peer)
            endpoint.arrive(bytes);
        break;
    }
    case Step::frame: {
        const auto bytes = read_frame(input, endpoint.role());
        if (foreign_peer)
            endpoint.arrive(bytes);
        break;
    }
    case Step::read:
    case Step::read_only: {
        const std::size_t portion = input.u8();
        endpoint.read(portion ? portion : ~std::size_t{0});
        if (step == Step::read)
            endpoint.process();
        break;
    }
    case Step::process: endpoint.process(); break;
    case Step::open: {
        UlpParameters parameters(input, side);
        const bool slow = parameters.slow;
        endpoint.accept(parameters);
        endpoint.connect(std::move(parameters));
        if (!slow)
            endpoint.connected();
        break;
    }
    case Step::reject: endpoint.reject(UlpParameters(input, side)); break;
    case Step::first_fpdu: endpoint.first_fpdu(static_cast<u8>(1u << input.below(4) & 7)); break;
    case Step::peer_gone: endpoint.peer_gone(read_error(input)); break;
    case Step::timeout: endpoint.timeout(); break;
    case Step::abort: {
        const int err = read_error(input);
        endpoint.abort(err ? err : -EINVAL);
        break;
    }
    case Step::fail: {
        const unsigned which = input.u8();
        endpoint.fail_next({.send = which & 1 ? -EPIPE : 0,
                            .enter = which & 2 ? -ENOMEM : 0,
                            .event = which & 4 ? -ENOMEM : 0,
                            .allocation = (which & 8) != 0});
        break;
    }
    case Step::steps: break;
    }
}

Step read_step(unsigned byte)
{
    return static_cast<Step>((byte & 0x7f) % static_cast<unsigned>(Step::steps));
}

void run_one(Role role, Input &input, rdma_mpa_dialect dialect)
{
    const Side side = read_side(input, dialect);
    Endpoint endpoint(role, side);

    for (unsigned n = 0; n < max_steps && !input.empty(); n++)
        take_step(read_step(input.u8()), input, endpoint, side, true);
    endpoint.finish();
}

void run_two(Input &input, rdma_mpa_dialect dialect)
{
    Side a_side = read_side(input, dialect);
    const Side b_side = read_side(input, dialect);
    a_side.policy.fallback = false; // there is but one connection
    Endpoint a(Role::initiator, a_side), b(Role::responder, b_side);
    Endpoint::wire_up(a, b);

    for (unsigned n = 0; n < max_steps && !input.empty(); n++) {
        const unsigned byte = input.u8();
        const Step step = read_step(byte);
        if (step == Step::first_fpdu && byte & 0x80) {
            // There is an FPDU once the initiator has sent one: its RTR, or the ULP's first
            if (a.in_rdma_mode())
                b.first_fpdu(a.sent_rtr());
        } else if (byte & 0x80) {
            take_step(step, input, b, b_side, false);
        } else {
            take_step(step, input, a, a_side, false);
        }
        Endpoint::check_agreement(a, b);
    }
    a.finish();
    b.finish();
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size)
{
    Input input(data, size);
    const unsigned mode = input.u8();
    const auto dialect = mode & 0x80 ? RDMA_MPA_DIALECT_EARLY_DRAFT : RDMA_MPA_DIALECT_RFC6581;

    switch (mode & 0x7f) {
    case 0: run_one(Role::initiator, input, dialect); break;
    case 1: run_one(Role::responder, input, dialect); break;
    default: run_two(input, dialect); break;
    }
    CHECK(shim_allocations() == 0);
    return 0;
}
