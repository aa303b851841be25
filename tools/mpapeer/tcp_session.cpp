// SPDX-License-Identifier: GPL-2.0
#include "tcp_session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <thread>

namespace mpapeer {
namespace {

/// The parts that a split cuts `size` bytes into, as their ends.
std::vector<std::size_t> part_ends(const statement::Split &split, std::size_t size)
{
    std::vector<std::size_t> ends;
    if (split.every > 0) {
        for (std::size_t end = split.every; end < size; end += split.every)
            ends.push_back(end);
    }
    for (std::size_t end : split.at) {
        if (end > 0 && end < size)
            ends.push_back(end);
    }
    ends.push_back(size);
    return ends;
}

} // namespace

TcpSession::TcpSession(Connection connection, const Settings &settings, Transcript &transcript)
    : Session(settings, transcript), connection_(std::move(connection))
{
    transcript_.note(
        fmt::format("connected, {} to {}", connection_.local(), connection_.remote()));
}

CrcUse TcpSession::crc_use() const
{
    const bool on = settings_.crc == FpduToSend::Crc::agreed
                        ? crc_wanted_
                        : settings_.crc == FpduToSend::Crc::on;
    return on ? CrcUse::on : CrcUse::off;
}

void TcpSession::note_frame(const MpaFrame &frame)
{
    crc_wanted_ = crc_wanted_ || frame.has(flag_crc);
}

bool TcpSession::pump(Deadline deadline)
{
    if (end_ == End::rst || !connection_.is_open()) {
        std::this_thread::sleep_until(deadline);
        return false;
    }
    Bytes bytes;
    const Connection::Received event = end_ == End::fin ? connection_.wait_for_reset(deadline)
                                                        : connection_.receive(bytes, deadline);
    handle(event, bytes);
    return event != Connection::Received::nothing;
}

void TcpSession::handle(Connection::Received event, ByteView bytes)
{
    switch (event) {
    case Connection::Received::nothing: return;
    case Connection::Received::data:
        transcript_.bytes("<-", bytes);
        inbound_.feed(bytes);
        while (auto item = inbound_.next())
            handle_item(std::move(*item));
        if (!inbound_.pending().empty())
            transcript_.received(
                fmt::format("{} bytes of an incomplete item", inbound_.pending().size()));
        return;
    case Connection::Received::fin:
        fin_received_ = !reset_while_sending_;
        end_ = fin_received_ ? End::fin : End::rst;
        break;
    case Connection::Received::reset: end_ = End::rst; break;
    }
    transcript_.received(end_ == End::fin ? "FIN" : "RST");
}

void TcpSession::handle_item(StreamItem item)
{
    transcript_.received(describe(item, crc_use()));
    if (item.frame())
        note_frame(*item.frame());
    if (take(std::move(item)))
        answer_read();
}

void TcpSession::answer_read()
{
    // Not through the queue: a "glue" may be holding it.
    const FpduToSend response = make_read_response();
    const Bytes bytes = build(response);
    transcript_.sent(fmt::format("fpdu read-response len={} (auto)", response.ulpdu.payload.size()));
    send_part(bytes, false);
}

FpduOptions TcpSession::options_for(const FpduToSend &fpdu) const
{
    FpduOptions options = fpdu.options;
    switch (fpdu.crc) {
    case FpduToSend::Crc::agreed: options.use_crc = crc_use() == CrcUse::on; break;
    case FpduToSend::Crc::on: options.use_crc = true; break;
    case FpduToSend::Crc::off: options.use_crc = false; break;
    }
    return options;
}

Bytes TcpSession::build(const FpduToSend &fpdu)
{
    return build_fpdu(encode_ulpdu(complete(fpdu)), options_for(fpdu));
}

void TcpSession::send(const statement::Send &action)
{
    const auto *fpdu = std::get_if<FpduToSend>(&action.what);
    Bytes bytes = fpdu ? build(*fpdu) : std::get<Bytes>(action.what);
    append(queued_, ByteView(cut_bytes(std::move(bytes), action.cut)));
}

std::string TcpSession::unfinished() const
{
    if (const auto frame = inbound_.partial_frame())
        return describe_partial(*frame);
    const ByteView rest = inbound_.pending();
    return rest.empty() ? "" : fmt::format("{} bytes {}", rest.size(), to_hex(rest));
}

std::string TcpSession::end_text() const
{
    return end_ == End::fin ? "the peer closed the connection (FIN)"
                            : "the peer reset the connection (RST)";
}

bool TcpSession::send_part(ByteView part, bool more, bool urgent)
{
    transcript_.bytes("->", part);
    switch (connection_.send(part, more, urgent, Clock::now() + settings_.within)) {
    case Connection::Sent::all: return true;
    case Connection::Sent::timed_out:
        throw std::runtime_error(fmt::format("the peer has not acknowledged the bytes sent within {}",
                                             duration_text(settings_.within)));
    case Connection::Sent::broken: break;
    }
    transcript_.note("not sent: the connection is broken");
    if (end_ == End::fin && !write_shut_)
        end_ = End::rst;
    reset_while_sending_ = !write_shut_;
    return false;
}

void TcpSession::log_queued(std::size_t segments)
{
    const std::string suffix = segments > 1 ? fmt::format(" in {} segments", segments) : "";
    const std::size_t before = outbound_.pending().size();
    outbound_.feed(queued_);
    bool any = false;
    while (const auto item = outbound_.next()) {
        if (item->frame())
            note_frame(*item->frame());
        transcript_.sent(describe(*item, crc_use()) + suffix);
        any = true;
    }
    const std::size_t rest = outbound_.pending().size();
    if (rest > 0)
        transcript_.sent(fmt::format("{} bytes of an incomplete item{}",
                                     any ? rest : rest - before, suffix));
}

void TcpSession::flush(const statement::Split &split, bool fin_follows)
{
    if (queued_.empty())
        return;
    const std::vector<std::size_t> ends = part_ends(split, queued_.size());
    log_queued(ends.size());
    const Bytes bytes = std::exchange(queued_, {});
    std::size_t begin = 0;
    for (std::size_t end : ends) {
        const bool last = end == bytes.size();
        if (!send_part(ByteView(bytes).subspan(begin, end - begin), last && fin_follows,
                       split.urgent))
            return;
        if (!last)
            pump_until(Clock::now() + settings_.gap);
        begin = end;
    }
}

void TcpSession::shutdown()
{
    connection_.shutdown_write();
    write_shut_ = true;
    transcript_.sent("FIN");
}

void TcpSession::reset()
{
    connection_.reset();
    transcript_.sent("RST");
}

void TcpSession::close()
{
    connection_.close();
    transcript_.sent("close");
}

TcpTransport::TcpTransport(std::optional<HostPort> connect, const std::optional<HostPort> &listen,
                           std::string bind_address, bool fast_open)
    : connect_(std::move(connect)), bind_address_(std::move(bind_address)), fast_open_(fast_open)
{
    if (listen)
        listener_.emplace(*listen, fast_open);
}

std::unique_ptr<Session> TcpTransport::connect(const Settings &settings, Transcript &transcript,
                                               Deadline deadline)
{
    return std::make_unique<TcpSession>(
        Connection::connect(*connect_, bind_address_, fast_open_, deadline), settings, transcript);
}

std::unique_ptr<Session> TcpTransport::accept(const Settings &settings, Transcript &transcript,
                                              Deadline deadline)
{
    auto connection = listener_->accept(deadline);
    if (!connection)
        return nullptr;
    return std::make_unique<TcpSession>(std::move(*connection), settings, transcript);
}

} // namespace mpapeer
