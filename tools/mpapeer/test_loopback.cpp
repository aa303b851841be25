// SPDX-License-Identifier: GPL-2.0
// Initiator and responder scenarios played against each other over the loopback interface.
#include "player.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <future>
#include <sstream>
#include <string>
#include <thread>

namespace mpapeer {
namespace {

struct Outcome {
    bool passed = false;
    std::string transcript;
};

struct Outcomes {
    Outcome initiator;
    Outcome responder;
};

Outcome play(Player &player, const std::ostringstream &out)
{
    Outcome outcome;
    outcome.passed = player.play();
    outcome.transcript = out.str();
    return outcome;
}

/// Plays both at once, each in its own thread, like two processes.
Outcomes play_both(std::string_view initiator_text, std::string_view responder_text,
                   const std::string &host = "127.0.0.1")
{
    const Scenario responder_scenario = parse_scenario("responder", responder_text);
    std::ostringstream responder_out;
    Player responder(responder_scenario, {.listen = HostPort{host, "0"}},
                     responder_out);
    auto responder_future =
        std::async(std::launch::async, [&] { return play(responder, responder_out); });

    const std::string address = responder.listening_on();
    const Scenario initiator_scenario = parse_scenario("initiator", initiator_text);
    std::ostringstream initiator_out;
    Player initiator(initiator_scenario, {.connect = parse_host_port(address)},
                     initiator_out);
    Outcomes outcomes;
    outcomes.initiator = play(initiator, initiator_out);
    outcomes.responder = responder_future.get();
    return outcomes;
}

void expect_both_pass(std::string_view initiator, std::string_view responder,
                      const std::string &host = "127.0.0.1")
{
    const Outcomes outcomes = play_both(initiator, responder, host);
    EXPECT_TRUE(outcomes.initiator.passed) << outcomes.initiator.transcript;
    EXPECT_TRUE(outcomes.responder.passed) << outcomes.responder.transcript;
}

/// The initiator's transcript when its expectation has failed.
std::string failure_of(std::string_view initiator, std::string_view responder)
{
    const Outcomes outcomes = play_both(initiator, responder);
    EXPECT_FALSE(outcomes.initiator.passed) << outcomes.initiator.transcript;
    EXPECT_TRUE(outcomes.responder.passed) << outcomes.responder.transcript;
    return outcomes.initiator.transcript;
}

void expect_contains(const std::string &text, std::string_view part)
{
    EXPECT_NE(text.find(part), std::string::npos) << text << "\ndoes not contain: " << part;
}

TEST(Loopback, PeerToPeerWithAWriteRtr)
{
    expect_both_pass("send request crc p2p rtr=write,read ird=8 ord=8 pdata=\"ping\"\n"
                     "expect reply accept p2p rtr=write ird>=8 ord<=8 pdata=\"pong\"\n"
                     "send rtr write stag=0x1234\n"
                     "expect send pdata=\"hello\" msn=1\n"
                     "send fpdu send \"there\"\n"
                     "expect fin\n",
                     "expect request crc p2p rtr>=write ird=8 ord=8 pdata=\"ping\"\n"
                     "send reply crc p2p rtr=write ird=8 ord=8 pdata=\"pong\"\n"
                     "expect write-rtr stag=0x1234 crc=ok\n"
                     "send fpdu send \"hello\"\n"
                     "expect send pdata=\"there\"\n"
                     "shutdown\n"
                     "expect close\n");
}

TEST(Loopback, ConnectsOverIpv6)
{
    expect_both_pass("send request\nexpect reply rev=1 enhanced=0\n",
                     "expect request rev=1 enhanced=0\nsend reply\nexpect close\n", "::1");
}

TEST(Loopback, ReadRtrIsAnsweredOnRequest)
{
    const std::string_view initiator = "send request p2p rtr=read ird=1 ord=1\n"
                                       "expect reply\n"
                                       "send rtr read sink-stag=0x77 sink-to=0x88\n"
                                       "expect read-response stag=0x77 to=0x88 len=0\n";
    expect_both_pass(initiator, "auto read-response\n"
                                "expect request\n"
                                "send reply p2p rtr=read ird=1 ord=1\n"
                                "expect read-rtr\n"
                                "expect close\n");
    expect_both_pass(initiator, "expect request\n"
                                "send reply p2p rtr=read ird=1 ord=1\n"
                                "expect read-rtr\n"
                                "send read-response\n"
                                "expect close\n");
}

TEST(Loopback, SplitAndJoinedBytesAreParsedEqually)
{
    expect_both_pass("gap 1ms\n"
                     "split every 1\n"
                     "send request crc p2p rtr=send ird=1 ord=1 pdata-len=508\n"
                     "expect reply accept\n"
                     "split at 2,21\n"
                     "glue\n"
                     "send rtr send\n"
                     "send fpdu send 01\n"
                     "flush\n"
                     "send rtr null\n"
                     "expect fin\n",
                     "expect request pdata-len=508 bytes=532\n"
                     "glue\n"
                     "send reply crc p2p rtr=send ird=1 ord=1\n"
                     "expect send-rtr msn=1\n"
                     "expect send pdata=01 msn=2\n"
                     "expect null bytes=8\n"
                     "glue\n"
                     "shutdown\n"
                     "expect fin\n");
}

TEST(Loopback, FramesCanBeSentInParts)
{
    expect_both_pass("send request crc first=19\n"
                     "expect nothing for 30ms\n"
                     "send request crc from=19\n"
                     "expect reply\n",
                     "expect request crc bytes=20\nsend reply\nexpect close\n");
}

TEST(Loopback, TermIsAcceptedInPlaceOfTheRtr)
{
    expect_both_pass("send request crc p2p rtr=write ird=8 ord=8\n"
                     "expect reply\n"
                     "send term 2/0/7\n"
                     "reset\n",
                     "expect request\n"
                     "send reply crc p2p rtr=read ird=8 ord=8\n"
                     "expect term 2/0/7 qn=2 msn=1 hdrct=0 bytes=28 or close\n"
                     "expect rst\n");
}

TEST(Loopback, CrcsFollowTheNegotiation)
{
    expect_both_pass("send request\n"
                     "expect reply\n"
                     "send rtr write\n"
                     "send rtr write crc=ok\n"
                     "crc on\n"
                     "send rtr write\n"
                     "send rtr write crc=bad\n",
                     "expect request\n"
                     "send reply\n"
                     "expect write-rtr crc=unused crc-value=0\n"
                     "expect write-rtr crc=ok\n"
                     "expect write-rtr crc=ok\n"
                     "crc on\n"
                     "expect write-rtr crc=bad\n"
                     "expect close\n");
}

TEST(Loopback, AFallbackUsesASecondConnection)
{
    expect_both_pass("send request enhanced ird=1 ord=1\n"
                     "expect close\n"
                     "connect\n"
                     "send request rev=1\n"
                     "expect reply rev=1\n"
                     "expect fin\n",
                     "expect request enhanced\n"
                     "reset\n"
                     "accept\n"
                     "expect request rev=1 enhanced=0\n"
                     "send reply\n"
                     "expect no-connection for 50ms\n");
}

TEST(Loopback, ConnectionsCanBeKeptOpenWhileOthersStart)
{
    expect_both_pass("repeat 5\n"
                     "send request first=10\n"
                     "connect keep\n"
                     "end\n"
                     "send request\n"
                     "expect reply\n",
                     "repeat 5\n"
                     "accept keep\n"
                     "end\n"
                     "expect request\n"
                     "send reply\n"
                     "expect close\n");
}

TEST(Loopback, CloseIsDetectedAfterData)
{
    expect_both_pass("send request\n"
                     "expect close drain\n",
                     "expect request\n"
                     "send reply\n"
                     "send hex 000102\n"
                     "close\n");
}

TEST(Loopback, BrokenConnectionsDoNotStopAScenario)
{
    expect_both_pass("send request\n"
                     "wait 50ms\n"
                     "send rtr write\n"
                     "send rtr write\n"
                     "expect rst\n",
                     "expect request\nreset\n");
}

TEST(Loopback, ARstMayFollowAFin)
{
    expect_both_pass("expect fin\n"
                     "send request\n"
                     "expect rst\n",
                     "close\n");
}

TEST(Loopback, BothEndsOfAStreamAreRecorded)
{
    const std::string_view responder = "glue\nsend reply\nclose\n"; // with the FIN behind it
    expect_both_pass("expect reply\nsend request\nwait 30ms\nexpect fin\nexpect rst\n", responder);
    expect_both_pass("expect reply\nwait 1ms\nsend request\nexpect fin\nexpect rst\n", responder);
}

TEST(Loopback, ScenarioWaitsUntilAFileExists)
{
    const std::string file = testing::TempDir() + "/mpapeer-wait-for";
    std::filesystem::remove(file);
    const std::string responder = "expect request\nwait for " + file + "\nsend reply\n";
    auto both = std::async(std::launch::async, [&] {
        return play_both("send request\nexpect nothing for 100ms\nexpect reply\n", responder);
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    EXPECT_EQ(both.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
    std::ofstream{file};
    const Outcomes outcomes = both.get();
    std::filesystem::remove(file);
    EXPECT_TRUE(outcomes.initiator.passed) << outcomes.initiator.transcript;
    EXPECT_TRUE(outcomes.responder.passed) << outcomes.responder.transcript;
}

TEST(Loopback, EitherEndCanStartFirst)
{
    const Scenario scenario =
        parse_scenario("s", "expect no-connection for 50ms\nwait 10ms\nwait for / within 1s\n"
                            "expect no-connection for 10ms\n");
    std::ostringstream out;
    Player player(scenario, {.listen = HostPort{"127.0.0.1", "0"}}, out);
    EXPECT_TRUE(player.play()) << out.str();
}

TEST(Failure, AWaitForAMissingFileTimesOutAndNamesTheFile)
{
    const std::string transcript =
        failure_of("send request\nwait for /nowhere/at/all within 60ms\n", "expect request\nexpect close\n");
    expect_contains(transcript, "/nowhere/at/all did not appear within 60ms");
}

TEST(Failure, AnUnexpectedConnectionIsReported)
{
    const Outcomes outcomes = play_both("wait 200ms\n", "expect no-connection for 2s\n");
    EXPECT_FALSE(outcomes.responder.passed);
    expect_contains(outcomes.responder.transcript, "an unexpected connection was established");
}

TEST(Failure, SendingWithoutAConnectionIsReported)
{
    const Scenario scenario = parse_scenario("s", "expect no-connection for 10ms\nsend reply\n");
    std::ostringstream out;
    Player player(scenario, {.listen = HostPort{"127.0.0.1", "0"}}, out);
    EXPECT_FALSE(player.play());
    expect_contains(out.str(), "no connection has been established");
}

TEST(Failure, APeerThatSendsWithoutEndIsReportedInsteadOfAClose)
{
    expect_contains(failure_of("send request\nexpect reply\nexpect close drain within 300ms\n",
                               "gap 1ms\nexpect request\nsend reply\n"
                               "repeat 300\nsend rtr write\nwait 2ms\nend\n"),
                    "only data was received within 300ms");
}

TEST(Failure, AnUnexpectedReplyIsReportedWithLineExpectationAndReceivedData)
{
    const std::string transcript = failure_of("# comment\n"
                                              "send request enhanced\n"
                                              "expect reply accept ird>=4\n",
                                              "expect request\n"
                                              "send reply enhanced ird=3\n");
    expect_contains(transcript, "FAIL initiator:3: expect reply accept ird>=4\n");
    expect_contains(transcript, "got reply rev=2");
    expect_contains(transcript, "ird is 3, wanted >=4");
}

TEST(Failure, AnExpiredTimeLimitIsReportedWithTheReceivedBytes)
{
    const std::string transcript = failure_of("send request\n"
                                              "expect reply within 1s\n",
                                              "expect request\n"
                                              "send hex 4d50\n"
                                              "expect close\n");
    expect_contains(transcript, "nothing was received within 1s; unfinished: 2 bytes 4d50");
}

TEST(Failure, ACloseInsteadOfAReplyIsReported)
{
    const std::string transcript =
        failure_of("send request\nexpect reply\n", "expect request\nshutdown\nexpect close\n");
    expect_contains(transcript, "the peer closed the connection (FIN)");
}

TEST(Failure, AFinInsteadOfARstIsReportedAndTheReverse)
{
    expect_contains(failure_of("expect rst\n", "shutdown\nexpect close\n"), "(FIN)");
    expect_contains(failure_of("expect fin\n", "reset\n"), "(RST)");
}

TEST(Failure, DataOrAFinDuringExpectedSilenceIsReported)
{
    expect_contains(failure_of("expect nothing for 1s\n", "shutdown\nexpect close\n"), "(FIN)");
    expect_contains(failure_of("expect nothing for 1s\n", "send hex 00\nexpect close\n"),
                    "got bytes; unfinished: 1 bytes 00");
    expect_contains(failure_of("expect no-data for 1s\n", "send reply\nexpect close\n"),
                    "got reply");
    expect_both_pass("expect no-data for 50ms\n", "shutdown\nexpect close\n");
}

TEST(Failure, BytesBeforeAnExpectedCloseAreReported)
{
    expect_contains(failure_of("expect close\n", "send hex 0001\nshutdown\nexpect close\n"),
                    "unfinished: 2 bytes 0001");
    expect_contains(failure_of("expect close\n", "send reply\nshutdown\nexpect close\n"),
                    "it is not the end of the connection");
}

TEST(Failure, ABadCrcIsReported)
{
    expect_contains(failure_of("send request crc\nexpect write-rtr\n",
                               "expect request\nsend reply\nexpect close\n"),
                    "it is not write-rtr");
    expect_contains(failure_of("send request crc\nexpect reply\nexpect write-rtr\n",
                               "expect request\nsend reply\nsend rtr write crc=bad\n"
                               "expect close\n"),
                    "its CRC is bad");
}

TEST(Failure, AListenerWithoutAConnectionReportsThatNoneWasEstablished)
{
    const Scenario scenario = parse_scenario("alone", "expect request");
    std::ostringstream out;
    Player listener(scenario,
                    {.listen = HostPort{"127.0.0.1", "0"},
                     .accept_within = std::chrono::milliseconds(20)},
                    out);
    EXPECT_FALSE(listener.play());
    expect_contains(out.str(), "none was established within 20ms");
}

TEST(Failure, AStatementAfterTheScenarioHasClosedTheConnectionIsReported)
{
    expect_contains(failure_of("close\nexpect reply\n", "expect close\n"),
                    "this scenario has already closed the connection");
}

} // namespace
} // namespace mpapeer
