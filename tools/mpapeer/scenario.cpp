// SPDX-License-Identifier: GPL-2.0
#include "scenario.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cerrno>
#include <fstream>
#include <iterator>
#include <system_error>

namespace mpapeer {
namespace {

constexpr std::size_t max_statements = 1000000;

/// A "repeat" whose "end" is still to come.
struct OpenBlock {
    std::size_t line;
    std::uint64_t count;
    std::size_t first_statement;
};

class ScenarioParser {
public:
    ScenarioParser(std::string name, Variables variables)
        : scenario_{std::move(name), {}}, variables_(std::move(variables))
    {
    }

    void parse_line(std::size_t number, std::string_view line);
    Scenario finish();

private:
    std::vector<std::string> words_of(std::string_view line) const;
    std::string substitute(std::string_view word) const;
    void parse_words(std::size_t number, std::span<const std::string> words);
    void set_default(std::span<const std::string> words);
    void begin_block(std::size_t number, std::span<const std::string> words);
    void end_block(std::span<const std::string> words);
    void check_size(std::size_t more) const;

    Scenario scenario_;
    Variables variables_;
    std::vector<OpenBlock> blocks_;
};

std::string ScenarioParser::substitute(std::string_view word) const
{
    std::string result;
    for (;;) {
        const std::size_t begin = word.find("${");
        result += word.substr(0, begin);
        if (begin == std::string_view::npos)
            return result;
        const std::size_t end = word.find('}', begin);
        if (end == std::string_view::npos)
            throw TextError("${ without a closing }");
        const std::string_view name = word.substr(begin + 2, end - begin - 2);
        const auto variable = variables_.find(name);
        if (variable == variables_.end())
            throw TextError(fmt::format("${{{0}}} is not set (--set {0}=VALUE)", name));
        result += variable->second;
        word.remove_prefix(end + 1);
    }
}

/// A variable may stand for several words; comments are left alone.
std::vector<std::string> ScenarioParser::words_of(std::string_view line) const
{
    std::vector<std::string> words;
    for (std::string &word : split_words(line)) {
        if (word.find("${") == std::string::npos) {
            words.push_back(std::move(word));
            continue;
        }
        for (std::string &part : split_words(substitute(word)))
            words.push_back(std::move(part));
    }
    return words;
}

void ScenarioParser::check_size(std::size_t more) const
{
    if (more > max_statements - scenario_.statements.size())
        throw TextError(fmt::format("more than {} statements", max_statements));
}

void ScenarioParser::set_default(std::span<const std::string> words)
{
    const std::size_t at = words.size() >= 2 ? words[1].find('=') : std::string::npos;
    if (at == std::string::npos || at == 0)
        throw TextError("expected: default NAME=VALUE");
    const std::string rest = fmt::format("{}", fmt::join(words.subspan(1), " "));
    variables_.try_emplace(rest.substr(0, at), rest.substr(at + 1));
}

void ScenarioParser::begin_block(std::size_t number, std::span<const std::string> words)
{
    if (words.size() != 2)
        throw TextError("expected: repeat N");
    blocks_.push_back({number, parse_number(words[1], max_statements),
                       scenario_.statements.size()});
}

void ScenarioParser::end_block(std::span<const std::string> words)
{
    if (blocks_.empty())
        throw TextError("'end' without a 'repeat' before it");
    if (words.size() != 1)
        throw TextError("no word may follow 'end'");
    const OpenBlock block = blocks_.back();
    blocks_.pop_back();
    auto &statements = scenario_.statements;
    const auto first = static_cast<std::ptrdiff_t>(block.first_statement);
    const std::vector<Statement> body(statements.begin() + first, statements.end());
    statements.resize(block.first_statement);
    for (std::uint64_t i = 0; i < block.count; i++) {
        check_size(body.size());
        statements.insert(statements.end(), body.begin(), body.end());
    }
}

void ScenarioParser::parse_words(std::size_t number, std::span<const std::string> words)
{
    if (words[0] == "default")
        return set_default(words);
    if (words[0] == "repeat")
        return begin_block(number, words);
    if (words[0] == "end")
        return end_block(words);
    check_size(1);
    scenario_.statements.push_back(
        {number, fmt::format("{}", fmt::join(words, " ")), parse_statement(words)});
}

void ScenarioParser::parse_line(std::size_t number, std::string_view line)
{
    try {
        const std::vector<std::string> words = words_of(line);
        if (!words.empty())
            parse_words(number, words);
    } catch (const TextError &error) {
        throw ScenarioError(scenario_.name, number, error.what());
    }
}

Scenario ScenarioParser::finish()
{
    if (!blocks_.empty())
        throw ScenarioError(scenario_.name, blocks_.back().line, "'repeat' without an 'end' after it");
    return std::move(scenario_);
}

} // namespace

ScenarioError::ScenarioError(std::string_view name, std::size_t line, std::string_view what)
    : std::runtime_error(fmt::format("{}:{}: {}", name, line, what))
{
}

Scenario parse_scenario(std::string name, std::string_view text, const Variables &variables)
{
    ScenarioParser parser(std::move(name), variables);
    for (std::size_t number = 1; !text.empty(); number++) {
        const std::size_t end = text.find('\n');
        parser.parse_line(number, text.substr(0, end));
        text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    }
    return parser.finish();
}

Scenario load_scenario(const std::string &path, const Variables &variables)
{
    std::ifstream file(path, std::ios::binary);
    if (!file)
        throw std::system_error(errno, std::generic_category(), path);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    if (file.bad())
        throw std::system_error(errno, std::generic_category(), path);
    return parse_scenario(path, text, variables);
}

} // namespace mpapeer
