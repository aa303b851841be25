# SPDX-License-Identifier: GPL-2.0
"""The SCTP packets of a capture of Ethernet, for sctppeer.py and sctpwire.py."""
import struct


def packets(data):
    """(address of the sender, of the receiver, SCTP packet) of each frame"""
    at = 24
    while at + 16 <= len(data):
        length = struct.unpack_from('=I', data, at + 8)[0]
        frame, at = data[at + 16:at + 16 + length], at + 16 + length
        if frame[12:14] == b'\x08\x00' and frame[23] == 132:
            begin, end = 14 + 4 * (frame[14] & 15), 14 + struct.unpack_from('!H', frame, 16)[0]
            yield frame[26:30], frame[30:34], frame[begin:end]
        elif frame[12:14] == b'\x86\xdd' and frame[20] == 132:
            yield frame[22:38], frame[38:54], frame[54:54 + struct.unpack_from('!H', frame, 18)[0]]


def chunks(packet):
    at = 12
    while at + 4 <= len(packet):
        kind, flags, length = struct.unpack_from('!BBH', packet, at)
        if length < 4:
            raise SystemExit('a chunk without length')
        yield kind, flags, packet[at + 4:at + length]
        at += (length + 3) & ~3
