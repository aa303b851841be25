// SPDX-License-Identifier: GPL-2.0
#include "stream_decoder.hpp"

#include <utility>

namespace mpapeer {

void StreamDecoder::feed(ByteView bytes)
{
    buffer_.erase(buffer_.begin(), buffer_.begin() + static_cast<std::ptrdiff_t>(taken_));
    taken_ = 0;
    append(buffer_, bytes);
}

StreamItem StreamDecoder::take(StreamItem::Content content, std::size_t size)
{
    const ByteView raw = pending().first(size);
    StreamItem item{std::move(content), Bytes(raw.begin(), raw.end())};
    taken_ += size;
    return item;
}

std::optional<StreamItem> StreamDecoder::next()
{
    if (in_startup_) {
        FrameParse parse = parse_frame(pending());
        if (parse.status != FrameParse::Status::complete)
            return std::nullopt;
        in_startup_ = false;
        return take(std::move(*parse.frame), parse.consumed);
    }
    std::optional<FpduParse> parse = parse_fpdu(pending());
    if (!parse)
        return std::nullopt;
    return take(std::move(parse->fpdu), parse->consumed);
}

std::optional<MpaFrame> StreamDecoder::partial_frame() const
{
    if (!in_startup_)
        return std::nullopt;
    return parse_frame(pending()).frame;
}

} // namespace mpapeer
