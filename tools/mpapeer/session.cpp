// SPDX-License-Identifier: GPL-2.0
#include "session.hpp"

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

void Transcript::line(std::string_view mark, std::string_view text)
{
    const std::chrono::duration<double> elapsed = Clock::now() - start_;
    out_ << fmt::format("{:11.6f} {} {}\n", elapsed.count(), mark, text) << std::flush;
}

void Transcript::bytes(std::string_view mark, ByteView bytes)
{
    if (verbose_)
        line(mark, fmt::format("{} bytes {}", bytes.size(), to_hex(bytes)));
}

Session::Session(Connection connection, const Settings &settings, Transcript &transcript)
    : connection_(std::move(connection)), settings_(settings), transcript_(transcript)
{
    transcript_.note(
        fmt::format("connected, {} to {}", connection_.local(), connection_.remote()));
}

CrcUse Session::crc_use() const
{
    const bool on = settings_.crc == FpduToSend::Crc::agreed
                        ? crc_wanted_
                        : settings_.crc == FpduToSend::Crc::on;
    return on ? CrcUse::on : CrcUse::off;
}

void Session::note_frame(const MpaFrame &frame)
{
    crc_wanted_ = crc_wanted_ || frame.has(flag_crc);
}

bool Session::pump(Deadline deadline)
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

void Session::pump_until(Deadline deadline)
{
    while (Clock::now() < deadline)
        pump(deadline);
}

void Session::handle(Connection::Received event, ByteView bytes)
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
                fmt::format("{} bytes of something unfinished", inbound_.pending().size()));
        return;
    case Connection::Received::fin:
        fin_received_ = !reset_while_sending_;
        end_ = fin_received_ ? End::fin : End::rst;
        break;
    case Connection::Received::reset: end_ = End::rst; break;
    }
    transcript_.received(end_ == End::fin ? "FIN" : "RST");
}

void Session::handle_item(StreamItem item)
{
    transcript_.received(describe(item, crc_use()));
    if (item.frame())
        note_frame(*item.frame());
    const Fpdu *fpdu = item.fpdu();
    if (fpdu && fpdu->ulpdu.kind == UlpduKind::read_request) {
        last_read_ = fpdu->ulpdu.read;
        if (settings_.auto_read_response)
            answer(last_read_);
    }
    inbox_.push_back(std::move(item));
}

void Session::answer(const ReadRequest &read)
{
    constexpr std::uint32_t max_answer = 32768;
    if (read.size > max_answer)
        throw std::runtime_error(
            fmt::format("auto read-response: no more than {} bytes", max_answer));
    FpduToSend response;
    response.ulpdu = make_ulpdu(UlpduKind::read_response);
    response.ulpdu.payload.resize(read.size);
    response.answers_read = true;

    // Not through the queue: a "glue" may be holding it.
    const Bytes bytes = build(response);
    transcript_.sent(fmt::format("fpdu read-response len={} (auto)", read.size));
    send_part(bytes, false);
}

FpduOptions Session::options_for(const FpduToSend &fpdu) const
{
    FpduOptions options = fpdu.options;
    switch (fpdu.crc) {
    case FpduToSend::Crc::agreed: options.use_crc = crc_use() == CrcUse::on; break;
    case FpduToSend::Crc::on: options.use_crc = true; break;
    case FpduToSend::Crc::off: options.use_crc = false; break;
    }
    return options;
}

Bytes Session::build(const FpduToSend &fpdu)
{
    Ulpdu ulpdu = fpdu.ulpdu;
    const bool has_msn = ulpdu.kind != UlpduKind::null && ulpdu.kind != UlpduKind::unknown &&
                         !ulpdu.is_tagged() && ulpdu.untagged.qn < next_msn_.size();
    if (has_msn) {
        std::uint32_t &next = next_msn_[ulpdu.untagged.qn];
        if (!fpdu.msn_given)
            ulpdu.untagged.msn = next;
        if (ulpdu.is_last())
            next = ulpdu.untagged.msn + 1;
    }
    if (fpdu.answers_read)
        ulpdu.tagged = {last_read_.sink_stag, last_read_.sink_to};
    return build_fpdu(encode_ulpdu(ulpdu), options_for(fpdu));
}

void Session::queue(ByteView bytes)
{
    append(queued_, bytes);
}

bool Session::send_part(ByteView part, bool more, bool urgent)
{
    transcript_.bytes("->", part);
    switch (connection_.send(part, more, urgent, Clock::now() + settings_.within)) {
    case Connection::Sent::all: return true;
    case Connection::Sent::timed_out:
        throw std::runtime_error(fmt::format("the peer has not taken the bytes sent within {}",
                                             duration_text(settings_.within)));
    case Connection::Sent::broken: break;
    }
    transcript_.note("not sent: the connection is broken");
    if (end_ == End::fin && !write_shut_)
        end_ = End::rst;
    reset_while_sending_ = !write_shut_;
    return false;
}

void Session::log_queued(std::size_t segments)
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
        transcript_.sent(fmt::format("{} bytes of something unfinished{}",
                                     any ? rest : rest - before, suffix));
}

void Session::flush(const statement::Split &split, bool fin_follows)
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

void Session::shutdown()
{
    connection_.shutdown_write();
    write_shut_ = true;
    transcript_.sent("FIN");
}

void Session::reset()
{
    connection_.reset();
    transcript_.sent("RST");
}

void Session::close()
{
    connection_.close();
    transcript_.sent("close");
}

} // namespace mpapeer
