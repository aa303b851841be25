// SPDX-License-Identifier: GPL-2.0
#include "sctp_session.hpp"

#include <fmt/format.h>

#include <stdexcept>
#include <thread>

namespace mpapeer {
namespace {

/// A chunk's content behind its DDP-SSN. Without a function code, a control message is a segment that
/// nobody knows.
StreamItem make_item(ByteView bytes, const ChunkInfo &chunk)
{
    StreamItem item{.content = Fpdu{.ulpdu = decode_ulpdu(bytes)},
                    .raw = Bytes(bytes.begin(), bytes.end()),
                    .chunk = chunk};
    if (chunk.ppid != ppid_control)
        return item;
    if (const auto message = parse_session_message(bytes))
        item.content = *message;
    return item;
}

} // namespace

SctpSession::SctpSession(std::unique_ptr<SctpAssociation> association, const Settings &settings,
                         Transcript &transcript)
    : Session(settings, transcript), association_(std::move(association))
{
    transcript_.note(
        fmt::format("associated, {} to {}", association_->local(), association_->remote()));
}

void SctpSession::end(End end)
{
    end_ = end;
    fin_received_ = end == End::fin;
    transcript_.received(fin_received_ ? "SHUTDOWN" : "ABORT");
}

bool SctpSession::pump(Deadline deadline)
{
    if (!association_->is_open()) {
        std::this_thread::sleep_until(deadline);
        return false;
    }
    if (end_ != End::open || !settings_.reading) {
        association_->idle(deadline);
        return false;
    }
    SctpMessage message;
    switch (association_->receive(message, deadline)) {
    case SctpAssociation::Received::message: take_message(message); return true;
    case SctpAssociation::Received::adaptation:
        transcript_.received(fmt::format("adaptation indication {}", *adaptation()));
        return true;
    case SctpAssociation::Received::shutdown: end(End::fin); return true;
    case SctpAssociation::Received::abort: end(End::rst); return true;
    case SctpAssociation::Received::nothing: break;
    }
    return false;
}

void SctpSession::take_message(const SctpMessage &message)
{
    const ByteView bytes = message.bytes;
    transcript_.bytes("<-", bytes);
    if (bytes.size() < sizeof(expected_ssn_))
        throw std::runtime_error(fmt::format("the peer sent a chunk without a DDP-SSN: {}", to_hex(bytes)));
    Reader reader(bytes);
    const auto ssn = reader.read<std::uint16_t>();
    const StreamItem item = make_item(reader.rest(), {.ssn = ssn,
                                                      .ppid = message.ppid,
                                                      .stream = message.stream,
                                                      .ordered = message.ordered});
    const auto ahead = static_cast<std::uint16_t>(ssn - expected_ssn_);
    // RFC 5043 section 10: at most 32767 chunks are in flight
    if (ahead > 32767 || !early_.emplace(ssn, item).second)
        throw std::runtime_error(fmt::format("the peer sent DDP-SSN {} twice or out of the window, expected {}",
                                             ssn, expected_ssn_));
    for (auto next = early_.find(expected_ssn_); next != early_.end();
         next = early_.find(expected_ssn_)) {
        take_in_order(next->second);
        early_.erase(next);
        expected_ssn_++;
    }
}

void SctpSession::take_in_order(const StreamItem &item)
{
    transcript_.received(describe(item, CrcUse::off));
    if (take(item))
        send({.what = make_read_response()});
}

std::string SctpSession::unfinished() const
{
    if (early_.empty())
        return "";
    return fmt::format("{} chunks, but not DDP-SSN {}", early_.size(), expected_ssn_);
}

std::string SctpSession::end_text() const
{
    return end_ == End::fin ? "the peer shut the association down (SHUTDOWN)"
                            : "the peer aborted the association (ABORT)";
}

void SctpSession::send(const statement::Send &action)
{
    std::uint32_t ppid = ppid_control;
    Bytes bytes;
    if (const auto *fpdu = std::get_if<FpduToSend>(&action.what)) {
        ppid = ppid_segment;
        bytes = encode_ulpdu(complete(*fpdu));
    } else if (const auto *message = std::get_if<SessionMessage>(&action.what)) {
        bytes = build_session_message(*message);
    } else {
        bytes = std::get<Bytes>(action.what);
    }
    const ChunkInfo chunk{.ssn = action.chunk.ssn.value_or(next_ssn_),
                          .ppid = action.chunk.ppid.value_or(ppid),
                          .stream = action.chunk.stream,
                          .ordered = action.chunk.ordered};
    next_ssn_ = static_cast<std::uint16_t>(chunk.ssn + 1);
    send_item(make_item(cut_bytes(std::move(bytes), action.cut), chunk), action.chunk.fragmented);
}

void SctpSession::send_item(StreamItem item, bool fragmented)
{
    SctpMessage message{.ppid = item.chunk->ppid,
                        .stream = item.chunk->stream,
                        .ordered = item.chunk->ordered,
                        .fragmented = fragmented};
    append(message.bytes, item.chunk->ssn);
    append(message.bytes, ByteView(item.raw));
    if (fragmented && message.bytes.size() <= fragment_size)
        throw std::runtime_error(fmt::format("fragmentation requires a message of more than {} bytes",
                                             fragment_size));
    transcript_.bytes("->", message.bytes);
    switch (association_->send(message, Clock::now() + settings_.within)) {
    case SctpAssociation::Sent::all:
        transcript_.sent(describe(item, CrcUse::off) + (fragmented ? " fragmented" : ""));
        return;
    case SctpAssociation::Sent::timed_out:
        throw std::runtime_error(fmt::format("the peer has not acknowledged the bytes sent within {}",
                                             duration_text(settings_.within)));
    case SctpAssociation::Sent::broken: break;
    }
    if (!std::exchange(broken_, true))
        transcript_.note("not sent: the association is over");
}

void SctpSession::shutdown()
{
    association_->shutdown();
    transcript_.sent("SHUTDOWN");
}

void SctpSession::reset()
{
    association_->abort();
    transcript_.sent("ABORT");
}

void SctpSession::close()
{
    association_->close();
    transcript_.sent("close");
}

void SctpSession::vanish()
{
    association_->vanish();
    transcript_.note("vanished");
}

SctpTransport::SctpTransport(std::unique_ptr<SctpStack> stack, std::optional<HostPort> connect,
                             const std::optional<HostPort> &listen, const std::string &bind_address)
    : stack_(std::move(stack)), connect_(std::move(connect)), from_{bind_address, "0"}
{
    if (listen)
        listening_on_ = stack_->listen(*listen);
}

std::unique_ptr<Session> SctpTransport::connect(const Settings &settings, Transcript &transcript,
                                                Deadline deadline)
{
    return std::make_unique<SctpSession>(stack_->connect(*connect_, from_, deadline), settings,
                                         transcript);
}

std::unique_ptr<Session> SctpTransport::accept(const Settings &settings, Transcript &transcript,
                                               Deadline deadline)
{
    auto association = stack_->accept(deadline);
    if (!association)
        return nullptr;
    return std::make_unique<SctpSession>(std::move(association), settings, transcript);
}

} // namespace mpapeer
