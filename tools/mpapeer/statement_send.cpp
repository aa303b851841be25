// SPDX-License-Identifier: GPL-2.0
// "send …": frames and FPDUs with every field settable, impossible combinations included.
#include "statement.hpp"

#include "mpa_frame.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <map>

namespace mpapeer {
namespace {

using Words = std::span<const std::string>;

/// The largest value of the 16-bit length fields of frames and FPDUs.
constexpr std::size_t max_length = std::numeric_limits<std::uint16_t>::max();

/// "name=value", or a bare "name" or "text".
struct Setting {
    std::string_view name;
    std::optional<std::string_view> value;
};

Setting split_setting(std::string_view word)
{
    const std::size_t at = word.find('=');
    if (at == std::string_view::npos || word.starts_with('"'))
        return {word, std::nullopt};
    return {word.substr(0, at), word.substr(at + 1)};
}

std::string_view value_of(const Setting &setting)
{
    if (!setting.value)
        throw TextError(fmt::format("{} needs a value", setting.name));
    return *setting.value;
}

template <std::unsigned_integral T>
T number_of(const Setting &setting, std::uint64_t limit = std::numeric_limits<T>::max())
{
    return static_cast<T>(parse_number(value_of(setting), limit));
}

bool flag_of(const Setting &setting)
{
    return !setting.value || parse_number(*setting.value, 1) == 1;
}

[[noreturn]] void unknown_setting(const Setting &setting, std::string_view what)
{
    throw TextError(fmt::format("'{}' is not a setting of {}", setting.name, what));
}

bool apply_cut(Cut &cut, const Setting &setting)
{
    if (setting.name == "from")
        cut.from = number_of<std::size_t>(setting);
    else if (setting.name == "first")
        cut.first = number_of<std::size_t>(setting);
    else if (setting.name == "flip")
        cut.flip_bit = number_of<std::size_t>(setting);
    else
        return false;
    return true;
}

/// A Request or Reply while its settings are read. The frame gets an enhanced word as soon as one of
/// its fields is named, and then S as well unless a setting says otherwise.
class FrameBuilder {
public:
    explicit FrameBuilder(FrameKind kind)
    {
        frame_.key = kind == FrameKind::request ? request_key : reply_key;
    }

    void apply(const Setting &setting);

    /// A session control message has the same enhanced word and private data.
    void apply_to_message(const Setting &setting);

    MpaFrame build() const;

private:
    using Setter = std::function<void(FrameBuilder &, const Setting &)>;
    static const std::map<std::string_view, Setter> &setters();

    void set_flag(MpaFlag flag, bool on)
    {
        frame_.flags = static_cast<std::uint8_t>(on ? frame_.flags | flag : frame_.flags & ~flag);
    }
    EnhancedWord &word()
    {
        has_word_ = true;
        return word_;
    }
    void set_rtr(std::string_view list);
    void set_key(std::string_view text);

    MpaFrame frame_;
    EnhancedWord word_;
    Bytes ulp_data_;
    bool has_word_ = false;
    bool no_word_ = false;
    std::optional<bool> enhanced_;
    std::optional<std::uint8_t> rev_;
    std::optional<std::uint8_t> flags_;
    std::optional<std::uint32_t> raw_word_;
    std::optional<std::uint16_t> pd_length_;
};

void FrameBuilder::set_rtr(std::string_view list)
{
    word().send_rtr = word_.write_rtr = word_.read_rtr = false;
    for (const std::string &name : split_list(list)) {
        if (name == "send")
            word_.send_rtr = true;
        else if (name == "write")
            word_.write_rtr = true;
        else if (name == "read")
            word_.read_rtr = true;
        else if (name != "none")
            throw TextError(fmt::format("'{}' is not an RTR type (send, write, read or none)", name));
    }
}

void FrameBuilder::set_key(std::string_view text)
{
    const std::map<std::string_view, MpaKey> names = {{"request", request_key},
                                                      {"reply", reply_key}};
    if (const auto known = names.find(text); known != names.end()) {
        frame_.key = known->second;
        return;
    }
    const Bytes bytes = parse_bytes(text);
    if (bytes.size() != frame_.key.size())
        throw TextError(fmt::format("a key has {} bytes, not {}", frame_.key.size(), bytes.size()));
    std::ranges::copy(bytes, frame_.key.begin());
}

const std::map<std::string_view, FrameBuilder::Setter> &FrameBuilder::setters()
{
    using B = FrameBuilder;
    using S = const Setting;
    static const std::map<std::string_view, Setter> map = {
        {"rev", [](B &b, S &s) { b.rev_ = number_of<std::uint8_t>(s); }},
        {"markers", [](B &b, S &s) { b.set_flag(flag_markers, flag_of(s)); }},
        {"crc", [](B &b, S &s) { b.set_flag(flag_crc, flag_of(s)); }},
        {"reject", [](B &b, S &s) { b.set_flag(flag_reject, flag_of(s)); }},
        {"enhanced", [](B &b, S &s) { b.enhanced_ = flag_of(s); }},
        {"res",
         [](B &b, S &s) {
             b.set_flag(flag_reserved, false);
             b.frame_.flags |= number_of<std::uint8_t>(s, flag_reserved);
         }},
        {"flags", [](B &b, S &s) { b.flags_ = number_of<std::uint8_t>(s); }},
        {"p2p", [](B &b, S &s) { b.word().p2p = flag_of(s); }},
        {"rtr", [](B &b, S &s) { b.set_rtr(value_of(s)); }},
        {"ird", [](B &b, S &s) { b.word().ird = number_of<std::uint16_t>(s, depth_mask); }},
        {"ord", [](B &b, S &s) { b.word().ord = number_of<std::uint16_t>(s, depth_mask); }},
        {"word",
         [](B &b, S &s) {
             b.has_word_ = true;
             b.raw_word_ = number_of<std::uint32_t>(s);
         }},
        {"no-word", [](B &b, S &s) { b.no_word_ = flag_of(s); }},
        {"pdata", [](B &b, S &s) { b.ulp_data_ = parse_bytes(value_of(s)); }},
        {"pdata-len",
         [](B &b, S &s) { b.ulp_data_ = counting_bytes(number_of<std::uint16_t>(s)); }},
        {"pd-length", [](B &b, S &s) { b.pd_length_ = number_of<std::uint16_t>(s); }},
        {"key", [](B &b, S &s) { b.set_key(value_of(s)); }},
    };
    return map;
}

void FrameBuilder::apply(const Setting &setting)
{
    const auto setter = setters().find(setting.name);
    if (setter == setters().end())
        unknown_setting(setting, "a frame");
    setter->second(*this, setting);
}

void FrameBuilder::apply_to_message(const Setting &setting)
{
    constexpr std::array<std::string_view, 9> names = {"enhanced", "p2p",     "rtr",   "ird",      "ord",
                                                       "word",     "no-word", "pdata", "pdata-len"};
    if (std::ranges::find(names, setting.name) == names.end())
        unknown_setting(setting, "a session control message");
    apply(setting);
}

MpaFrame FrameBuilder::build() const
{
    MpaFrame frame = frame_;
    const bool with_word = (has_word_ || enhanced_.value_or(false)) && !no_word_;
    const bool enhanced = enhanced_.value_or(with_word);
    if (enhanced)
        frame.flags |= flag_enhanced;
    frame.flags = flags_.value_or(frame.flags);
    frame.rev = rev_.value_or(with_word || enhanced ? 2 : 1);
    if (with_word)
        append(frame.private_data, raw_word_.value_or(word_.to_wire()));
    append(frame.private_data, ByteView(ulp_data_));
    if (frame.private_data.size() > max_length && !pd_length_)
        throw TextError("private data of this length needs a pd-length");
    frame.pd_length = pd_length_.value_or(static_cast<std::uint16_t>(frame.private_data.size()));
    return frame;
}

statement::Send parse_send_frame(FrameKind kind, Words words)
{
    statement::Send send{.llp = Llp::tcp};
    FrameBuilder builder(kind);
    for (const std::string &word : words) {
        const Setting setting = split_setting(word);
        if (!apply_cut(send.cut, setting))
            builder.apply(setting);
    }
    send.what = build_frame(builder.build());
    return send;
}

bool apply_chunk(statement::Send &send, const Setting &setting)
{
    if (setting.name == "ssn")
        send.chunk.ssn = number_of<std::uint16_t>(setting);
    else if (setting.name == "ppid")
        send.chunk.ppid = number_of<std::uint32_t>(setting);
    else if (setting.name == "stream")
        send.chunk.stream = number_of<std::uint16_t>(setting);
    else if (setting.name == "ordered")
        send.chunk.ordered = flag_of(setting);
    else if (setting.name == "fragmented")
        send.chunk.fragmented = flag_of(setting);
    else
        return false;
    send.llp = Llp::sctp;
    return true;
}

/// The enhanced word turns codes 1, 2 and 3 into 5, 6 and 7, as S=1 turns a frame into an enhanced one.
statement::Send parse_send_message(SessionCode code, Words words)
{
    statement::Send send;
    FrameBuilder builder(FrameKind::request);
    std::optional<std::uint16_t> other_code;
    for (const std::string &word : words) {
        const Setting setting = split_setting(word);
        if (setting.name == "code")
            other_code = number_of<std::uint16_t>(setting);
        else if (!apply_cut(send.cut, setting) && !apply_chunk(send, setting))
            builder.apply_to_message(setting);
    }
    const MpaFrame frame = builder.build();
    const auto plain = static_cast<std::uint16_t>(code);
    const auto enhanced = static_cast<std::uint16_t>(plain + enhanced_code_offset);
    send.what = SessionMessage{other_code.value_or(frame.has(flag_enhanced) ? enhanced : plain),
                               frame.private_data};
    send.llp = Llp::sctp;
    return send;
}

statement::Send parse_send_hex(Words words)
{
    statement::Send send;
    Bytes bytes;
    for (const std::string &word : words) {
        const Setting setting = split_setting(word);
        if (!apply_cut(send.cut, setting) && !apply_chunk(send, setting))
            append(bytes, ByteView(parse_bytes(word)));
    }
    if (bytes.empty())
        throw TextError("send hex needs bytes");
    send.what = std::move(bytes);
    return send;
}

void set_crc(FpduToSend &fpdu, std::string_view value)
{
    if (value == "ok")
        fpdu.crc = FpduToSend::Crc::on;
    else if (value == "zero")
        fpdu.crc = FpduToSend::Crc::off;
    else if (value == "bad")
        fpdu.options.spoil_crc = true;
    else
        fpdu.options.crc = static_cast<std::uint32_t>(
            parse_number(value, std::numeric_limits<std::uint32_t>::max()));
}

void set_bit(std::uint8_t &byte, std::uint8_t bit, bool on)
{
    byte = static_cast<std::uint8_t>(on ? byte | bit : byte & ~bit);
}

using FpduSetter = std::function<void(FpduToSend &, const Setting &)>;

const std::map<std::string_view, FpduSetter> &fpdu_setters()
{
    using F = FpduToSend;
    using S = const Setting;
    using u8 = std::uint8_t;
    using u16 = std::uint16_t;
    using u32 = std::uint32_t;
    using u64 = std::uint64_t;
    static const std::map<std::string_view, FpduSetter> map = {
        {"stag",
         [](F &f, S &s) {
             const u32 stag = number_of<u32>(s);
             f.ulpdu.tagged.stag = f.ulpdu.read.sink_stag = f.ulpdu.read.src_stag = stag;
             f.answers_read = false;
         }},
        {"to",
         [](F &f, S &s) {
             f.ulpdu.tagged.to = number_of<u64>(s);
             f.answers_read = false;
         }},
        {"qn", [](F &f, S &s) { f.ulpdu.untagged.qn = number_of<u32>(s); }},
        {"msn",
         [](F &f, S &s) {
             f.ulpdu.untagged.msn = number_of<u32>(s);
             f.msn_given = true;
         }},
        {"mo", [](F &f, S &s) { f.ulpdu.untagged.mo = number_of<u32>(s); }},
        {"inv-stag", [](F &f, S &s) { f.ulpdu.untagged.inv_stag = number_of<u32>(s); }},
        {"size", [](F &f, S &s) { f.ulpdu.read.size = number_of<u32>(s); }},
        {"sink-stag", [](F &f, S &s) { f.ulpdu.read.sink_stag = number_of<u32>(s); }},
        {"sink-to", [](F &f, S &s) { f.ulpdu.read.sink_to = number_of<u64>(s); }},
        {"src-stag", [](F &f, S &s) { f.ulpdu.read.src_stag = number_of<u32>(s); }},
        {"src-to", [](F &f, S &s) { f.ulpdu.read.src_to = number_of<u64>(s); }},
        {"hdrct", [](F &f, S &s) { f.ulpdu.term.hdrct = number_of<u8>(s, 7); }},
        {"reserved", [](F &f, S &s) { f.ulpdu.term.reserved = number_of<u16>(s, 0x1fff); }},
        {"last", [](F &f, S &s) { set_bit(f.ulpdu.ddp_control, ddp_last, flag_of(s)); }},
        {"ddp-control", [](F &f, S &s) { f.ulpdu.ddp_control = number_of<u8>(s); }},
        {"rdmap-control", [](F &f, S &s) { f.ulpdu.rdmap_control = number_of<u8>(s); }},
        {"pdata", [](F &f, S &s) { f.ulpdu.payload = parse_bytes(value_of(s)); }},
        {"data", [](F &f, S &s) { f.ulpdu.payload = parse_bytes(value_of(s)); }},
        {"len", [](F &f, S &s) { f.ulpdu.payload = counting_bytes(number_of<u16>(s)); }},
        {"ulpdu-length", [](F &f, S &s) { f.options.ulpdu_length = number_of<u16>(s); }},
        {"crc", [](F &f, S &s) { set_crc(f, value_of(s)); }},
    };
    return map;
}

UlpduKind parse_kind(std::string_view name)
{
    constexpr std::array kinds = {
        UlpduKind::null,          UlpduKind::write,   UlpduKind::read_request,
        UlpduKind::read_response, UlpduKind::send,    UlpduKind::send_inv,
        UlpduKind::send_se,       UlpduKind::send_se_inv, UlpduKind::term,
    };
    for (UlpduKind kind : kinds) {
        if (to_string(kind) == name)
            return kind;
    }
    if (name == "raw")
        return UlpduKind::unknown;
    throw TextError(fmt::format("'{}' is not a kind of FPDU", name));
}

UlpduKind parse_rtr_kind(std::string_view name)
{
    if (name == "read")
        return UlpduKind::read_request;
    if (name == "write" || name == "send" || name == "null")
        return parse_kind(name);
    throw TextError(fmt::format("'{}' is not an RTR (write, read, send or null)", name));
}

/// Parses settings, and bytes without a name, which are the payload.
statement::Send parse_fpdu_words(FpduToSend fpdu, Words words, Llp llp)
{
    statement::Send send;
    for (const std::string &word : words) {
        const Setting setting = split_setting(word);
        if (llp == Llp::sctp && apply_chunk(send, setting))
            continue;
        if (!setting.value && setting.name != "last") {
            append(fpdu.ulpdu.payload, ByteView(parse_bytes(word)));
        } else if (!apply_cut(send.cut, setting)) {
            const auto setter = fpdu_setters().find(setting.name);
            if (setter == fpdu_setters().end())
                unknown_setting(setting, "an FPDU");
            setter->second(fpdu, setting);
        }
    }
    if (encode_ulpdu(fpdu.ulpdu).size() > max_length)
        throw TextError(fmt::format("an FPDU holds at most {} bytes", max_length));
    send.what = std::move(fpdu);
    send.llp = llp;
    return send;
}

FpduToSend fpdu_of_kind(UlpduKind kind)
{
    FpduToSend fpdu;
    fpdu.ulpdu = make_ulpdu(kind);
    fpdu.answers_read = kind == UlpduKind::read_response;
    return fpdu;
}

Terminate parse_triplet(std::string_view text)
{
    const std::size_t first = text.find('/');
    const std::size_t second = first == std::string_view::npos ? first : text.find('/', first + 1);
    if (second == std::string_view::npos)
        throw TextError(fmt::format("'{}' is not LAYER/TYPE/CODE", text));
    Terminate term;
    term.layer = static_cast<std::uint8_t>(parse_number(text.substr(0, first), 15));
    term.etype =
        static_cast<std::uint8_t>(parse_number(text.substr(first + 1, second - first - 1), 15));
    term.code = static_cast<std::uint8_t>(parse_number(text.substr(second + 1), 255));
    return term;
}

statement::Send parse_send_fpdu(UlpduKind kind, Words words, Llp llp)
{
    FpduToSend fpdu = fpdu_of_kind(kind);
    if (kind == UlpduKind::term) {
        if (words.empty())
            throw TextError("send term needs LAYER/TYPE/CODE");
        fpdu.ulpdu.term = parse_triplet(words[0]);
        words = words.subspan(1);
    }
    return parse_fpdu_words(std::move(fpdu), words, llp);
}

const std::map<std::string_view, SessionCode> message_codes = {
    {"initiate", SessionCode::initiate},
    {"accept", SessionCode::accept},
    {"reject", SessionCode::reject},
    {"terminate", SessionCode::terminate},
};

} // namespace

statement::Send parse_send(Words words)
{
    if (words.empty())
        throw TextError("send needs an item to send");
    const std::string &what = words[0];
    const Words rest = words.subspan(1);
    if (what == "hex")
        return parse_send_hex(rest);
    if (what == "request")
        return parse_send_frame(FrameKind::request, rest);
    if (what == "reply")
        return parse_send_frame(FrameKind::reply, rest);
    if (what == "read-response" || what == "term")
        return parse_send_fpdu(parse_kind(what), rest, Llp::tcp);
    if (const auto code = message_codes.find(what); code != message_codes.end())
        return parse_send_message(code->second, rest);
    if (what == "rtr" || what == "fpdu" || what == "segment") {
        if (rest.empty())
            throw TextError(fmt::format("send {} needs a kind", what));
        const UlpduKind kind = what == "rtr" ? parse_rtr_kind(rest[0]) : parse_kind(rest[0]);
        return parse_send_fpdu(kind, rest.subspan(1), what == "segment" ? Llp::sctp : Llp::tcp);
    }
    throw TextError(fmt::format("'{}' is not an item of send", what));
}

} // namespace mpapeer
