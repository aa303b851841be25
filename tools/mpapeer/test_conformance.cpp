// SPDX-License-Identifier: GPL-2.0
#include "conformance.hpp"

#include <gtest/gtest.h>

#include <sstream>

namespace mpapeer {
namespace {

using Kind = ConformanceResult::Kind;

TEST(Conformance, ClaimIsSplitFromTheRequirements)
{
    const Demands demands = read_demands("# nothing before: the RTR\n"
                                         "#: covers RSP-06 V08 F1\n#: program --ird 8 --ord 8\n#: told ^conn\n#: next read-next\nsend request\n"
                                         "#: policy crc off\n");
    EXPECT_EQ(demands.claim, "nothing before: the RTR");
    EXPECT_EQ(demands.program, "--ird 8 --ord 8");
    EXPECT_EQ(demands.next, "read-next");
    EXPECT_EQ(demands.obstacle, "") << "the policy is behind the first statement";
}

TEST(Conformance, ScenariosThatNeedSettingsOrOptionsOfTheTargetAreSkipped)
{
    EXPECT_EQ(read_demands("# b\n#: policy crc off\n").obstacle, "needs a setting of the other end: crc off");
    EXPECT_EQ(read_demands("# b\n#: program --mpa model=2\n").obstacle,
              "needs an option of iw_mpa at the other end: --mpa model=2");
}

TEST(Conformance, KtapHasTheTranscriptBeforeAFailureAndTheReasonAfterASkip)
{
    std::ostringstream out;
    write_ktap_line(out, 1, {Kind::passed, "a", "claim", "", "", 0});
    write_ktap_line(out, 2, {Kind::failed, "b", "claim", "", "one\ntwo\n", 0});
    write_ktap_line(out, 3, {Kind::skipped, "c", "claim", "why", "", 0});
    EXPECT_EQ(out.str(), "ok 1 a: claim\n# one\n# two\nnot ok 2 b: claim\nok 3 c: claim # SKIP why\n");
}

TEST(Conformance, JunitReportCountsResultsAndEscapesXml)
{
    const std::string xml = to_junit({{Kind::passed, "a", "1 < 2", "", "", 0.5},
                                      {Kind::failed, "b", "\"&\"", "", "<- reply", 1},
                                      {Kind::skipped, "c", "", "why", "", 0}});
    EXPECT_NE(xml.find("tests=\"3\" failures=\"1\" skipped=\"1\""), std::string::npos);
    EXPECT_NE(xml.find("name=\"a: 1 &lt; 2\" time=\"0.500\""), std::string::npos);
    EXPECT_NE(xml.find("b: &quot;&amp;&quot;"), std::string::npos);
    EXPECT_NE(xml.find("<failure>&lt;- reply</failure>"), std::string::npos);
    EXPECT_NE(xml.find("<skipped message=\"why\"/>"), std::string::npos);
}

} // namespace
} // namespace mpapeer
