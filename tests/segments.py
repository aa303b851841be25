#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Does each TCP segment of a capture begin with an FPDU?

Usage: segments.py judge FILE PORT [LONGEST]   prints one line of numbers for all connections of PORT;
                                               with LONGEST, judges only what follows the last FPDU
                                               of more octets
       segments.py no-offload NETDEV           makes the kernel cut packets before they are captured

A stream of iWARP is an MPA frame of 20 bytes and its private data, then FPDUs: two bytes of length, as
many bytes, a pad to four, and four bytes of CRC (RFC 5044 sections 4.1 and 7.1).
"""
import array
import fcntl
import socket
import struct
import sys
from collections import defaultdict

SIOCETHTOOL = 0x8946
ETHTOOL_STSO = 0x1F
ETHTOOL_SGSO = 0x24


def no_offload(netdev):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        for command in (ETHTOOL_STSO, ETHTOOL_SGSO):
            value = array.array("I", [command, 0])
            address = value.buffer_info()[0]
            fcntl.ioctl(s, SIOCETHTOOL, struct.pack("16sP", netdev.encode(), address))


def packets(path):
    """Yields (flow, flags, sequence number, payload) of TCP over IPv4, or IPv6 without extension headers, over Ethernet."""
    with open(path, "rb") as f:
        data = f.read()
    at = 24
    while at + 16 <= len(data):
        size = struct.unpack_from("<I", data, at + 8)[0]
        frame = data[at + 16 : at + 16 + size]
        at += 16 + size
        if len(frame) >= 54 and frame[12:14] == b"\x08\x00" and frame[23] == 6:
            ip_end = 14 + struct.unpack_from(">H", frame, 16)[0]
            tcp = 14 + (frame[14] & 15) * 4
            addresses = frame[26:34]
        elif len(frame) >= 74 and frame[12:14] == b"\x86\xdd" and frame[20] == 6:
            ip_end = 54 + struct.unpack_from(">H", frame, 18)[0]
            tcp = 54
            addresses = frame[22:54]
        else:
            continue
        source, to, seq = struct.unpack_from(">HHI", frame, tcp)
        payload = frame[tcp + (frame[tcp + 12] >> 4) * 4 : ip_end]
        yield (addresses, source, to), frame[tcp + 13], seq, payload


def fpdus_of(stream):
    """Length of each FPDU by the offset at which it begins."""
    at = 20 + struct.unpack_from(">H", stream, 18)[0]
    fpdus = {}
    while at + 2 <= len(stream):
        ulpdu = 2 + struct.unpack_from(">H", stream, at)[0]
        fpdus[at] = ulpdu + -ulpdu % 4 + 4
        at += fpdus[at]
    return fpdus


def judge(path, port, most):
    start = {}
    segments = defaultdict(list)
    for flow, flags, seq, payload in packets(path):
        if port not in flow[1:]:
            continue
        if flags & 2:
            start[flow] = (seq + 1) & 0xFFFFFFFF
        elif payload and flow in start:
            segments[flow].append(((seq - start[flow]) & 0xFFFFFFFF, payload))
    total = bad = again = longest = number = largest = 0
    for flow, list_of in segments.items():
        stream = bytearray()
        for offset, payload in sorted(list_of, key=lambda s: s[0]):
            if offset > len(stream):
                sys.exit(f"{flow[1]} > {flow[2]}: bytes are missing at {len(stream)}")
            stream[offset : offset + len(payload)] = payload
        fpdus = fpdus_of(stream)
        number += len(fpdus)
        largest = max(largest, *fpdus.values(), 0)
        after = max((at + size for at, size in fpdus.items() if most and size > most), default=0)
        highest = 0
        for offset, payload in list_of:
            again += offset < highest
            highest = max(highest, offset + len(payload))
            if offset < after:
                continue
            total += 1
            longest = max(longest, len(payload))
            bad += offset and offset not in fpdus
    print(
        f"segments {total}, FPDUs {number}, largest {largest}, "
        f"not at an FPDU {bad}, sent again {again}, longest {longest}"
    )


if __name__ == "__main__":
    if sys.argv[1:2] == ["no-offload"]:
        no_offload(sys.argv[2])
    elif sys.argv[1:2] == ["judge"]:
        judge(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]) if len(sys.argv) > 4 else 0)
    else:
        sys.exit(__doc__)
