// SPDX-License-Identifier: GPL-2.0
#include "session_message.hpp"

namespace mpapeer {
namespace {

bool is_terminate(const SessionMessage &message)
{
    return message.code == static_cast<std::uint16_t>(SessionCode::terminate);
}

bool may_lack_word(const SessionMessage &message)
{
    return message.code == static_cast<std::uint16_t>(SessionCode::enhanced_reject) &&
           message.private_data.empty();
}

} // namespace

std::string_view SessionMessage::kind() const
{
    switch (static_cast<SessionCode>(code)) {
    case SessionCode::initiate:
    case SessionCode::enhanced_initiate: return "initiate";
    case SessionCode::accept:
    case SessionCode::enhanced_accept: return "accept";
    case SessionCode::reject:
    case SessionCode::enhanced_reject: return "reject";
    case SessionCode::terminate: return "terminate";
    }
    return "control";
}

bool SessionMessage::is_enhanced() const
{
    return code >= static_cast<std::uint16_t>(SessionCode::enhanced_initiate) &&
           code <= static_cast<std::uint16_t>(SessionCode::enhanced_reject);
}

std::optional<EnhancedWord> SessionMessage::enhanced_word() const
{
    if (!is_enhanced() || private_data.size() < enhanced_word_size)
        return std::nullopt;
    return EnhancedWord::from_wire(Reader(private_data).read<std::uint32_t>());
}

ByteView SessionMessage::ulp_data() const
{
    return ByteView(private_data).subspan(enhanced_word() ? enhanced_word_size : 0);
}

std::string_view to_string(SessionProblem problem)
{
    switch (problem) {
    case SessionProblem::unknown_code: return "unknown code";
    case SessionProblem::private_data_too_long: return "private data too long";
    case SessionProblem::enhanced_word_missing: return "enhanced word missing";
    case SessionProblem::terminate_with_data: return "terminate with private data";
    }
    return "?";
}

std::vector<SessionProblem> problems(const SessionMessage &message)
{
    std::vector<SessionProblem> found;
    if (message.kind() == "control")
        found.push_back(SessionProblem::unknown_code);
    if (message.private_data.size() > max_private_data)
        found.push_back(SessionProblem::private_data_too_long);
    if (message.is_enhanced() && !message.enhanced_word() && !may_lack_word(message))
        found.push_back(SessionProblem::enhanced_word_missing);
    if (is_terminate(message) && !message.private_data.empty())
        found.push_back(SessionProblem::terminate_with_data);
    return found;
}

std::optional<SessionMessage> parse_session_message(ByteView bytes)
{
    SessionMessage message;
    if (bytes.size() < sizeof(message.code))
        return std::nullopt;
    Reader reader(bytes);
    message.code = reader.read<std::uint16_t>();
    message.private_data.assign(reader.rest().begin(), reader.rest().end());
    return message;
}

Bytes build_session_message(const SessionMessage &message)
{
    Bytes bytes;
    append(bytes, message.code);
    append(bytes, ByteView(message.private_data));
    return bytes;
}

} // namespace mpapeer
