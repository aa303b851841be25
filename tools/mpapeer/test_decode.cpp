// SPDX-License-Identifier: GPL-2.0
// Tests of the decoder with captures that the tests build packet by packet.
#include "trace.hpp"
#include "trace_output.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <sstream>

namespace mpapeer {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::uint8_t fin = 0x01;
constexpr std::uint8_t syn = 0x02;
constexpr std::uint8_t rst = 0x04;
constexpr std::uint8_t ack = 0x10;

constexpr std::uint16_t client_port = 40000;
constexpr std::uint16_t server_port = 7000;

struct Format {
    std::uint32_t link_type = 1;
    bool v6 = false;
    bool little_endian = true;
    bool nanoseconds = false;
    bool vlan = false;
};

/// Writes a capture of segments between two fixed addresses.
class CaptureBuilder {
public:
    explicit CaptureBuilder(Format format = {}) : format_(format)
    {
        u32(format_.nanoseconds ? 0xa1b23c4d : 0xa1b2c3d4);
        u32(format_.little_endian ? 0x00040002 : 0x00020004); // version 2.4: two fields
        u32(0);
        u32(0);
        u32(65535);
        u32(format_.link_type);
    }

    /// A segment of the client (40000) or the server (7000), a millisecond after the one before.
    void segment(bool from_client, std::uint8_t flags, std::uint32_t seq, ByteView payload = {},
                 std::uint16_t port = client_port)
    {
        Bytes tcp;
        append(tcp, from_client ? port : server_port);
        append(tcp, from_client ? server_port : port);
        append(tcp, seq);
        append(tcp, std::uint32_t{0});
        append(tcp, std::uint8_t{0x60}); // one word of options
        append(tcp, flags);
        append(tcp, std::uint16_t{1000});
        append(tcp, std::uint32_t{0});
        append(tcp, std::uint32_t{0x01010101});
        append(tcp, payload);
        Bytes packet = link_header();
        append(packet, ByteView(format_.v6 ? ipv6(tcp, from_client) : ipv4(tcp, from_client)));
        packet.resize(packet.size() + 3); // padding of the link layer
        record(packet);
    }

    void record(ByteView packet)
    {
        milliseconds_++;
        u32(1700000000);
        u32(milliseconds_ * (format_.nanoseconds ? 1000000 : 1000));
        u32(static_cast<std::uint32_t>(packet.size()));
        u32(static_cast<std::uint32_t>(packet.size()));
        append(file_, packet);
    }

    const Bytes &file() const { return file_; }

private:
    void u32(std::uint32_t value)
    {
        append(file_, format_.little_endian ? __builtin_bswap32(value) : value);
    }

    Bytes link_header() const
    {
        const std::uint16_t type = format_.v6 ? 0x86dd : 0x0800;
        Bytes header;
        if (format_.link_type == 1) {
            header.resize(12, 0xaa);
            if (format_.vlan) {
                append(header, std::uint16_t{0x8100});
                append(header, std::uint16_t{5});
            }
            append(header, type);
        } else if (format_.link_type == 113) {
            header.resize(14);
            append(header, type);
        } else if (format_.link_type == 276) {
            append(header, type);
            header.resize(20);
        }
        return header;
    }

    static Bytes ipv4(ByteView tcp, bool from_client)
    {
        Bytes ip = {0x45, 0};
        append(ip, static_cast<std::uint16_t>(20 + tcp.size()));
        append(ip, std::uint32_t{0x00004000});
        append(ip, std::uint32_t{0x40060000});
        append(ip, from_client ? 0x0a4d0001U : 0x0a4d0002U);
        append(ip, from_client ? 0x0a4d0002U : 0x0a4d0001U);
        append(ip, tcp);
        return ip;
    }

    static Bytes ipv6(ByteView tcp, bool from_client)
    {
        Bytes ip = {0x60, 0, 0, 0};
        append(ip, static_cast<std::uint16_t>(8 + tcp.size()));
        append(ip, std::uint16_t{0x0040}); // a hop-by-hop header follows
        for (const bool client : {from_client, !from_client}) {
            append(ip, std::uint32_t{0xfd000000});
            append(ip, std::uint64_t{0});
            append(ip, client ? 1U : 2U);
        }
        append(ip, std::uint64_t{0x0600010400000000});
        append(ip, tcp);
        return ip;
    }

    Format format_;
    Bytes file_;
    std::uint32_t milliseconds_ = 0;
};

Bytes bytes(std::string_view hex)
{
    return from_hex(hex).value();
}

const Bytes v13 = bytes("4d504120494420526571204672616d6550020008c008c00870696e67");
const Bytes v38 = bytes("4d504120494420526570204672616d6550020008c008c008706f6e67");
const Bytes f1 = bytes("000ec140000000000000000000000000a30572ab");
const Bytes f8 = bytes("0016414700000000000000020000000100000000200700001bd2babe");

/// Counts the bytes of each side, for the sequence numbers.
class Conversation {
public:
    explicit Conversation(CaptureBuilder &capture, std::uint16_t port = client_port,
                          std::uint32_t client_seq = 1000, std::uint32_t server_seq = 0xfffffff0)
        : capture_(capture), port_(port), next_{server_seq, client_seq}
    {
    }

    void open()
    {
        send(true, syn, {});
        send(false, syn | ack, {});
    }
    void send(bool from_client, std::uint8_t flags, ByteView payload)
    {
        capture_.segment(from_client, flags, next_[from_client], payload, port_);
        skip(from_client, payload.size() + ((flags & (syn | fin)) != 0 ? 1 : 0));
    }
    void client(ByteView payload, std::uint8_t flags = ack) { send(true, flags, payload); }
    void server(ByteView payload, std::uint8_t flags = ack) { send(false, flags, payload); }
    void skip(bool from_client, std::size_t size)
    {
        next_[from_client] += static_cast<std::uint32_t>(size);
    }
    std::uint32_t seq(bool from_client) const { return next_[from_client]; }

private:
    CaptureBuilder &capture_;
    std::uint16_t port_;
    std::uint32_t next_[2];
};

void add_example(CaptureBuilder &capture)
{
    Conversation talk(capture);
    talk.open();
    talk.client(v13);
    talk.server(v38);
    talk.client(f1);
    talk.client({}, fin | ack);
    talk.server({}, rst | ack);
}

CaptureTrace trace_of(ByteView file, std::optional<std::uint16_t> port = std::nullopt)
{
    return trace_capture(PcapReader(file), port);
}

Json decode(const Bytes &file)
{
    return to_json(trace_of(file));
}

/// "initiator request", "responder fin"…: the events without details.
std::vector<std::string> summary(const Json &connection)
{
    std::vector<std::string> lines;
    for (const Json &event : connection["events"]) {
        const std::string type = event["type"];
        const bool has_kind = type == "frame" || type == "fpdu";
        lines.push_back(event["from"].get<std::string>() + " " +
                        (has_kind ? event["kind"].get<std::string>() : type));
    }
    return lines;
}

using Lines = std::vector<std::string>;

const Lines example_summary = {"initiator request", "responder reply", "initiator write",
                               "initiator fin", "responder rst"};

class CaptureFormats : public testing::TestWithParam<Format> {};

TEST_P(CaptureFormats, AreParsed)
{
    CaptureBuilder capture(GetParam());
    capture.record(bytes("ffffffffffff0000000000010806"));
    add_example(capture);
    const Json connections = decode(capture.file());
    ASSERT_EQ(connections.size(), 1U);
    EXPECT_EQ(summary(connections[0]), example_summary);
    EXPECT_EQ(connections[0]["initiator"],
              GetParam().v6 ? "[fd00::1]:40000" : "10.77.0.1:40000");
    EXPECT_EQ(connections[0]["responder"], GetParam().v6 ? "[fd00::2]:7000" : "10.77.0.2:7000");
    EXPECT_EQ(connections[0]["mpa"], true);
    EXPECT_EQ(connections[0]["crc_agreed"], true);
    EXPECT_EQ(connections[0]["events"][0]["epoch_ns"], 1700000000004000000);
    EXPECT_NEAR(connections[0]["events"][0]["time"].get<double>(), 0.003, 1e-9);
}

INSTANTIATE_TEST_SUITE_P(
    Captures, CaptureFormats,
    testing::Values(Format{}, Format{.little_endian = false}, Format{.nanoseconds = true},
                    Format{.little_endian = false, .nanoseconds = true}, Format{.v6 = true},
                    Format{.vlan = true}, Format{.link_type = 113},
                    Format{.link_type = 113, .v6 = true}, Format{.link_type = 276},
                    Format{.link_type = 276, .v6 = true}, Format{.link_type = 101},
                    Format{.link_type = 101, .v6 = true}));

TEST(Decode, ReportsAllFields)
{
    CaptureBuilder capture;
    add_example(capture);
    const Json events = decode(capture.file())[0]["events"];

    const Json &request = events[0];
    EXPECT_EQ(request["seq"], 1);
    EXPECT_EQ(request["rev"], 2);
    EXPECT_EQ(request["markers"], false);
    EXPECT_EQ(request["crc"], true);
    EXPECT_EQ(request["enhanced"], true);
    EXPECT_EQ(request["p2p"], true);
    EXPECT_EQ(request["rtr"], (Json{"send", "write", "read"}));
    EXPECT_EQ(request["ird"], 8);
    EXPECT_EQ(request["pdata"], "70696e67");
    EXPECT_EQ(request["pd_length"], 8);
    EXPECT_EQ(request["problems"], Json::array());
    EXPECT_EQ(request["hex"], to_hex(v13));

    const Json &write = events[2];
    EXPECT_EQ(write["seq"], 3);
    EXPECT_EQ(write["is_rtr"], true);
    EXPECT_EQ(write["stag"], 0);
    EXPECT_EQ(write["len"], 0);
    EXPECT_EQ(write["crc"], "ok");
    EXPECT_EQ(write["stream_offset"], v13.size());
    EXPECT_EQ(write["bytes"], 20);
}

TEST(Decode, SortsTcpSegments)
{
    CaptureBuilder capture;
    Conversation talk(capture);
    talk.open();
    const std::uint32_t start = talk.seq(true);
    const ByteView all = v13;
    capture.segment(true, ack, start - 1, all.first(1)); // keep-alive probe
    capture.segment(true, ack, start + 10, all.subspan(10));
    capture.segment(true, ack, start + 10, all.subspan(10, 4));
    capture.segment(true, ack, start, all.first(5));
    capture.segment(true, ack, start, all.first(5));
    capture.segment(true, ack, start + 3, all.subspan(3, 9));
    talk.skip(true, v13.size());
    talk.server(ByteView(v38).first(19)); // its sequence numbers wrap
    talk.server(ByteView(v38).subspan(19));
    Bytes glued = f1;
    append(glued, ByteView(f8));
    talk.client(glued, fin | ack);
    talk.skip(true, std::size_t{0} - glued.size() - 1);
    talk.client(glued, fin | ack);
    const Json connections = decode(capture.file());
    EXPECT_EQ(summary(connections[0]), (Lines{"initiator request", "responder reply",
                                              "initiator write", "initiator term",
                                              "initiator fin"}));
    EXPECT_EQ(connections[0]["events"][3]["code"], 7);
}

TEST(Decode, SeparatesConnections)
{
    CaptureBuilder capture;
    Conversation first(capture);
    Conversation second(capture, 40001);
    first.open();
    second.open();
    first.client(v13);
    second.client(v13);
    second.client({}, rst);
    first.client({}, fin | ack);
    Conversation again(capture, client_port, 5000000);
    again.open();
    again.client(v13);
    const Json connections = decode(capture.file());
    ASSERT_EQ(connections.size(), 3U);
    EXPECT_EQ(summary(connections[0]), (Lines{"initiator request", "initiator fin"}));
    EXPECT_EQ(summary(connections[1]), (Lines{"initiator request", "initiator rst"}));
    EXPECT_EQ(summary(connections[2]), (Lines{"initiator request"}));
    EXPECT_EQ(trace_of(capture.file(), 40001).connections.size(), 1U);
}

TEST(Decode, DetectsTheRolesWithoutASyn)
{
    CaptureBuilder capture;
    Conversation talk(capture);
    talk.server(v38);
    talk.client(v13);
    EXPECT_EQ(summary(decode(capture.file())[0]),
              (Lines{"responder reply", "initiator request"}));
}

TEST(Decode, ShowsIncompleteFramesAndMissingSegments)
{
    CaptureBuilder capture;
    Conversation talk(capture);
    talk.open();
    talk.client(bytes("4d504120494420526571204672616d655002020100080004"));
    talk.client({}, fin | ack);
    talk.server(ByteView(v38).first(10));
    talk.skip(false, 5);
    talk.server(ByteView(v38).subspan(15));
    const Json connection = decode(capture.file())[0];
    EXPECT_EQ(summary(connection), (Lines{"initiator partial", "initiator fin",
                                          "responder partial", "responder gap"}));
    EXPECT_EQ(connection["events"][0]["pd_length"], 513);
    EXPECT_EQ(connection["events"][0]["ird"], 8);
    EXPECT_EQ(connection["events"][0]["problems"], Json{"private data too long"});
    EXPECT_EQ(connection["events"][2]["bytes"], 10);
    EXPECT_EQ(connection["events"][3]["bytes"], 5);
}

TEST(Decode, ChecksCrcsAsNegotiated)
{
    const Bytes spoilt = build_fpdu({}, {.spoil_crc = true});
    for (const bool agreed : {false, true}) {
        CaptureBuilder capture;
        Conversation talk(capture);
        talk.open();
        talk.client(bytes("4d504120494420526571204672616d6500010000"));
        talk.server(bytes(agreed ? "4d504120494420526570204672616d6540010000"
                                 : "4d504120494420526570204672616d6500010000"));
        talk.client(spoilt);
        const Json connection = decode(capture.file())[0];
        EXPECT_EQ(connection["crc_agreed"], agreed);
        EXPECT_EQ(connection["events"][2]["crc"], agreed ? "bad" : "unused");
    }
}

TEST(Decode, DoesNotParseMarkers)
{
    CaptureBuilder capture;
    Conversation talk(capture);
    talk.open();
    talk.client(bytes("4d504120494420526571204672616d65c0010000"));
    talk.server(bytes("4d504120494420526570204672616d6540010000"));
    talk.client(f1);
    talk.server(f1);
    talk.server(f1);
    EXPECT_EQ(summary(decode(capture.file())[0]),
              (Lines{"initiator request", "responder reply", "initiator write",
                     "responder markers"}));
}

TEST(Decode, RecognizesOtherProtocols)
{
    CaptureBuilder capture;
    Conversation talk(capture);
    talk.open();
    talk.client(Bytes(100, 'x'));
    EXPECT_EQ(decode(capture.file())[0]["mpa"], false);
}

TEST(Decode, WritesOneLinePerEvent)
{
    CaptureBuilder capture;
    add_example(capture);
    std::ostringstream out;
    write_text(out, trace_of(capture.file()));
    const std::string text = out.str();
    EXPECT_EQ(std::ranges::count(text, '\n'), 6);
    EXPECT_NE(text.find("connection 1: initiator 10.77.0.1:40000 responder 10.77.0.2:7000\n"),
              std::string::npos);
    EXPECT_NE(text.find("   0.004000 1#3 initiator fpdu write stag=0x0 to=0x0 len=0 crc=ok\n"),
              std::string::npos)
        << text;
    EXPECT_NE(text.find("1#5 responder RST\n"), std::string::npos);
}

/// A block of a pcapng file (draft-ietf-opsawg-pcapng, section 3.1), big-endian
void add_block(Bytes &file, std::uint32_t type, Bytes body)
{
    body.resize((body.size() + 3) / 4 * 4);
    const auto length = static_cast<std::uint32_t>(12 + body.size());
    append(file, type);
    append(file, length);
    append(file, body);
    append(file, length);
}

/// A section, an interface, and the packets of a big-endian capture in microseconds
Bytes as_pcapng(ByteView file)
{
    Bytes result, section, interface;
    append(section, std::uint32_t{0x1a2b3c4d}); // byte-order magic
    append(section, std::uint32_t{0x00010000}); // version 1.0
    append(section, ~std::uint64_t{0});         // of any length
    add_block(result, 0x0a0d0d0a, section);
    append(interface, std::uint16_t{1}); // Ethernet
    append(interface, std::uint16_t{0});
    append(interface, std::uint32_t{65535});
    add_block(result, 1, interface);
    for (file = file.subspan(24); !file.empty();) {
        Reader record(file);
        const std::uint64_t seconds = record.read<std::uint32_t>();
        const std::uint64_t time = seconds * 1000000 + record.read<std::uint32_t>();
        const auto size = record.read<std::uint32_t>();
        Bytes packet;
        append(packet, std::uint32_t{0}); // interface
        append(packet, time);
        append(packet, size);
        append(packet, size);
        append(packet, file.subspan(16, size));
        add_block(result, 6, packet);
        file = file.subspan(16 + size);
    }
    return result;
}

TEST(Decode, ReadsPcapng)
{
    CaptureBuilder capture({.little_endian = false});
    add_example(capture);
    const Bytes file = as_pcapng(capture.file());
    const CaptureTrace trace = trace_of(file);
    EXPECT_FALSE(trace.damage);
    EXPECT_EQ(trace.start_ns, 1700000000001000000);
    EXPECT_EQ(summary(to_json(trace)[0]), example_summary);
    EXPECT_TRUE(trace_of(ByteView(file).first(file.size() - 1)).damage);
}

TEST(Decode, RejectsFilesThatAreNoCapture)
{
    EXPECT_THROW(trace_of({}), PcapError);
    EXPECT_THROW(trace_of(Bytes(23)), PcapError);
    EXPECT_THROW(trace_of(Bytes(100)), PcapError);
    EXPECT_THROW(trace_of(bytes("0a0d0d0a1c0000004d3c2b1a01000000ffffffffffffffff1c000000")),
                 PcapError);
    EXPECT_THROW(trace_of(CaptureBuilder({.link_type = 147}).file()), PcapError);
    EXPECT_TRUE(trace_of(CaptureBuilder().file()).connections.empty());
}

TEST(Decode, ShowsThePacketsBeforeTheDamageOfACapture)
{
    CaptureBuilder capture;
    add_example(capture);
    const Bytes &file = capture.file();
    const CaptureTrace cut = trace_of(ByteView(file).first(file.size() - 1));
    EXPECT_NE(cut.damage.value_or("").find("truncated"), std::string::npos);
    EXPECT_EQ(summary(to_json(cut)[0]),
              Lines(example_summary.begin(), example_summary.end() - 1));

    Bytes damaged = file;
    append(damaged, ByteView(Bytes(16, 0xff)));
    EXPECT_TRUE(trace_of(damaged).damage);
    EXPECT_EQ(summary(decode(damaged)[0]), example_summary);
}

TEST(Decode, SurvivesTruncatedAndDamagedCaptures)
{
    for (const bool v6 : {false, true}) {
        CaptureBuilder capture({.v6 = v6});
        add_example(capture);
        for (std::size_t size = 24; size < capture.file().size(); size++)
            trace_of(ByteView(capture.file()).first(size));

        std::mt19937 random(5044);
        for (int i = 0; i < 1000; i++) {
            Bytes file = capture.file();
            for (unsigned changes = random() % 8; changes > 0; changes--)
                file[24 + random() % (file.size() - 24)] = static_cast<std::uint8_t>(random());
            std::ostringstream out;
            write_text(out, trace_of(file));
            decode(file);
        }
    }
}

} // namespace
} // namespace mpapeer
