// SPDX-License-Identifier: GPL-2.0
// A driver and a ULP that only record calls, around one session, and checks of the session.
#pragma once

#include "expected_frame.hpp"
#include "observed.h"
#include "side.hpp"

#include <memory>
#include <optional>
#include <vector>

enum class Role { initiator, responder };

/// The entry point that is being run.
enum class Call {
    none,
    connect,
    connected,
    respond,
    rx,
    process,
    accept,
    reject,
    first_fpdu,
    peer_gone,
    timeout,
    abort,
    fast_opened,
};

/// Parameters of a ULP; the buffer of private data has exactly its length.
struct UlpParameters {
    explicit UlpParameters(Input &input, const Side &side);

    iw_mpa_ulp ulp{};
    std::unique_ptr<u8[]> data;
    bool slow = false; ///< TCP does not connect at once
    bool old = false;  ///< the peer is remembered to know only Rev 1
    bool bare = false; ///< a NULL pointer in place of empty options
    iw_mpa_layer options{};
};

class Endpoint {
public:
    Endpoint(Role role, const Side &side);
    ~Endpoint();
    Endpoint(const Endpoint &) = delete;
    Endpoint &operator=(const Endpoint &) = delete;

    /// Connects two endpoints: each receives the bytes that the other sends.
    static void wire_up(Endpoint &a, Endpoint &b);
    static void check_agreement(const Endpoint &initiator, const Endpoint &responder);

    // Events of the driver. Each does nothing in a state in which a driver could not do it.
    void connect(UlpParameters &&parameters);
    void connected();
    void accept(const UlpParameters &parameters);
    void reject(const UlpParameters &parameters);
    void arrive(mpapeer::ByteView bytes); ///< in the socket's buffer, not yet read
    void read(std::size_t portion);
    void process();
    void first_fpdu(u8 rtr);
    void peer_gone(int err);
    void timeout();
    void abort(int err);

    /// The next call of an op returns this.
    struct Failures {
        int send = 0;
        int enter = 0;
        int event = 0;
        bool allocation = false;
    };
    void fail_next(const Failures &failures) { failures_ = failures; }

    /// Ends the connection; then every promised event must have come.
    void finish();

    Role role() const { return role_; }
    bool in_rdma_mode() const { return in_rdma_mode_; }
    u8 sent_rtr() const { return in_rdma_mode_ ? rdma_.rtr : u8{0}; }
    bool is_closed() const { return state() == IW_MPA_CLOSED; }

private:
    struct Driver {
        iw_mpa_session session; // first: the ops find their driver by it
        Endpoint *endpoint;
    };
    static Endpoint &of(iw_mpa_session *s) { return *reinterpret_cast<Driver *>(s)->endpoint; }
    static const iw_mpa_ops ops_;

    int on_send(mpapeer::ByteView bytes);
    int on_enter_rdma(const iw_mpa_rdma &rdma);
    void on_terminate(const iw_mpa_rdma &rdma, rdma_mpa_ecode ecode);
    void on_deadline(unsigned ms);
    int on_event(const iw_mpa_event &event);
    void on_record(const iw_mpa_record &record);

    /// A frame that was sent, and the ULP's data in it.
    struct Sent {
        ExpectedFrame frame;
        mpapeer::ByteView ulp_data;
    };
    void check_request_sent(const Sent &sent) const;
    void check_reply_sent(const Sent &sent) const;
    void check_ulp_data_sent(const Sent &sent) const;
    void check_rdma(const iw_mpa_rdma &rdma) const;
    void check_private_data(const iw_mpa_event &event) const;
    void check_peer_values(const iw_mpa_event &event) const;
    void check_established(const iw_mpa_event &event) const;
    void check_cause(const iw_mpa_event &event) const;
    void check_end_of_process(const iw_mpa_event &event) const;
    void check_outcome() const;
    void check_memory() const;
    void check_at_rest() const;
    bool is_possible(const UlpParameters &given, bool enhanced) const;
    bool open_with(const iw_mpa_layer &options);

    bool dial();
    void begin(Call call, int err = 0);
    void end(std::optional<iw_mpa_next> next = {});
    iw_mpa_session *session() { return &driver_->session; }
    const iw_mpa_session &look() const { return driver_->session; }
    iw_mpa_state state() const { return static_cast<iw_mpa_state>(look().state); }
    bool asks_enhanced() const { return side_.sends_enhanced() && !fell_back_; }
    bool is_initiator() const { return role_ == Role::initiator; }
    iw_mpa_kind awaited() const { return is_initiator() ? IW_MPA_REPLY : IW_MPA_REQUEST; }

    const Role role_;
    Side side_; ///< with the ULP's options, once it has set them
    const std::uint32_t device_ird_, device_ord_;
    iw_mpa_config config_{};
    std::unique_ptr<Driver> driver_;
    Endpoint *peer_ = nullptr;

    Call call_ = Call::none;
    int call_err_ = 0;
    const iw_mpa_ulp *ulp_ = nullptr;
    std::unique_ptr<u8[]> data_; ///< copy of the private data of an initiator's ULP
    std::size_t data_length_ = 0;
    bool fell_back_ = false;
    std::vector<u8> early_; ///< bytes of the Request that TCP took with the SYN
    bool has_early_ = false;
    Failures failures_;

    iw_mpa_state noted_state_ = IW_MPA_IDLE;
    unsigned deadline_ = 0;
    std::vector<u8> incoming_;
    std::vector<u8> received_; ///< bytes of incoming_ that the session took
    bool frame_pending_ = false;
    bool more_behind_ = false;
    std::optional<ExpectedFrame> peer_frame_; ///< set when the session processes the frame

    int sends_ = 0;
    std::optional<ExpectedFrame> sent_;
    int enters_ = 0;
    int enter_error_ = 0;
    bool in_rdma_mode_ = false;
    iw_mpa_rdma rdma_{};
    int terms_ = 0;
    int request_events_ = 0;
    int outcomes_ = 0;
    int outcome_status_ = 0;
    bool ulp_waits_ = false; ///< the ULP was promised an outcome
    u8 first_fpdu_ = 0;

    std::vector<iw_mpa_state> left_; ///< states that the current entry point left, in order
    bool has_begun_ = false;         ///< for counters
    int ends_ = 0;                   ///< recorded ends, for counters
};
