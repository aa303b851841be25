#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Usage: tests/sctpwindow.py ADDRESS PORT SECONDS

Plays rping's client with messages of 60000 bytes and a small receive window (RFC 5043, RFC 5040, RFC 5041).
Reads nothing for SECONDS, or until SIGHUP, while the server writes into its memory: the window is shut then.
Says "shut" before. Exit status 0 only if all that was to be written comes afterwards, in order.
"""
import signal
import socket
import struct
import sys

SOL_SCTP = 132
INITMSG, NODELAY, ADAPTATION = 2, 3, 7
SNDINFO = 2
UNORDERED, SEGMENT, CONTROL = 1, 16, 17
SIZE, STAG, ADDRESS = 60000, 0x1234, 0x10000
# rping's server writes back a string. 23 is a prime, so that data from another place differs
TEXT = bytes(ord('a') + i % 23 for i in range(SIZE - 1)) + b'\0'
# DDP's control byte: tagged, last, version 1; RDMAP's: version 1 and the opcode
TAGGED, LAST, DDP, RDMAP = 0x80, 0x40, 1, 0x40
WRITE, READ_REQUEST, READ_RESPONSE, SEND = range(4)


class Peer:
    def __init__(self, address, port):
        self.sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_SCTP)
        self.sock.setsockopt(SOL_SCTP, ADAPTATION, struct.pack('=I', 1))
        self.sock.setsockopt(SOL_SCTP, INITMSG, struct.pack('=HHHH', 1, 1, 0, 0))
        self.sock.setsockopt(SOL_SCTP, NODELAY, 1)
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
        self.sock.settimeout(40)
        self.sock.connect((address, port))
        self.tx_ssn, self.rx_ssn, self.held, self.msn = 0, 0, {}, 0

    def transmit(self, ppid, data):
        info = struct.pack('=HHIII', 0, UNORDERED, socket.htonl(ppid), 0, 0)
        self.sock.sendmsg([struct.pack('!H', self.tx_ssn & 0xffff), data], [(SOL_SCTP, SNDINFO, info)])
        self.tx_ssn += 1

    def receive(self):
        """The next chunk in the order of the DDP-SSNs"""
        while self.rx_ssn not in self.held:
            data = self.sock.recv(65536)
            if not data:
                raise SystemExit('sctpwindow: the association is over')
            self.held[struct.unpack_from('!H', data)[0]] = data[2:]
        self.rx_ssn += 1
        return self.held.pop(self.rx_ssn - 1)

    def send(self, payload):
        self.msn += 1
        self.transmit(SEGMENT, struct.pack('!BBIIII', LAST | DDP, RDMAP | SEND, 0, 0, self.msn, 0) + payload)

    def expect(self, opcode):
        segment = self.receive()
        if segment[1] & 15 != opcode:
            raise SystemExit(f'sctpwindow: {segment[:20].hex()}, not opcode {opcode}')
        return segment

    def answer_read(self, stag, to):
        for at in range(0, SIZE, 1200):
            size = min(1200, SIZE - at)
            last = LAST if at + size == SIZE else 0
            self.transmit(SEGMENT, struct.pack('!BBIQ', TAGGED | last | DDP, RDMAP | READ_RESPONSE, stag, to + at) +
                          TEXT[at:at + size])

    def take_writes(self):
        done = 0
        while done < SIZE:
            segment = self.expect(WRITE)
            stag, to = struct.unpack_from('!IQ', segment, 2)
            if stag != STAG or to != ADDRESS + done:
                raise SystemExit(f'sctpwindow: a Write to {stag:#x} {to:#x} after {done} bytes')
            data = segment[14:]
            if data != TEXT[done:done + len(data)]:
                raise SystemExit(f'sctpwindow: other data after {done} bytes')
            done += len(data)


def main():
    address, port, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    peer = Peer(address, port)
    peer.transmit(CONTROL, bytes.fromhex('000500080008'))
    if not peer.receive().startswith(b'\x00\x06'):
        raise SystemExit('sctpwindow: not accepted')
    advert = struct.pack('!QII', ADDRESS, STAG, SIZE)
    peer.send(advert)
    stag, to = struct.unpack_from('!IQ', peer.expect(READ_REQUEST), 18)
    peer.answer_read(stag, to)
    peer.expect(SEND)
    peer.send(advert)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGHUP])
    print('shut', flush=True)
    signal.sigtimedwait([signal.SIGHUP], seconds)
    peer.take_writes()
    peer.expect(SEND)
    peer.transmit(CONTROL, b'\x00\x04')
    print('good', flush=True)


if len(sys.argv) != 4:
    print(__doc__)
    sys.exit(0 if sys.argv[1:] in (['-h'], ['--help']) else 2)
main()
