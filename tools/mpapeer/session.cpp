// SPDX-License-Identifier: GPL-2.0
#include "session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace mpapeer {

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

Bytes cut_bytes(Bytes bytes, const Cut &cut)
{
    if (cut.flip_bit) {
        const std::size_t index = *cut.flip_bit / 8;
        if (index >= bytes.size())
            throw std::runtime_error(fmt::format("flip={}: the message has only {} bytes", *cut.flip_bit,
                                      bytes.size()));
        bytes[index] ^= static_cast<std::uint8_t>(0x80U >> *cut.flip_bit % 8);
    }
    const std::size_t from = std::min(cut.from.value_or(0), bytes.size());
    const std::size_t size = std::min(cut.first.value_or(bytes.size()), bytes.size() - from);
    const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(from);
    return Bytes(begin, begin + static_cast<std::ptrdiff_t>(size));
}

void Session::pump_until(Deadline deadline)
{
    while (Clock::now() < deadline)
        pump(deadline);
}

Ulpdu Session::complete(const FpduToSend &fpdu)
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
    return ulpdu;
}

bool Session::take(StreamItem item)
{
    const Fpdu *fpdu = item.fpdu();
    const bool is_read = fpdu && fpdu->ulpdu.kind == UlpduKind::read_request;
    if (is_read)
        last_read_ = fpdu->ulpdu.read;
    inbox_.push_back(std::move(item));
    return is_read && settings_.auto_read_response;
}

FpduToSend Session::make_read_response() const
{
    constexpr std::uint32_t max_answer = 32768;
    if (last_read_.size > max_answer)
        throw std::runtime_error(
            fmt::format("auto read-response: the peer reads more than {} bytes", max_answer));
    FpduToSend response;
    response.ulpdu = make_ulpdu(UlpduKind::read_response);
    response.ulpdu.payload.resize(last_read_.size);
    response.answers_read = true;
    return response;
}

} // namespace mpapeer
