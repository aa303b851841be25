#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Usage: tests/sctpwire.py [--port PORT] FILE

Prints the sessions on SCTP associations of a capture of Ethernet as JSON, for the claims of wire_sctp.jq. A
session has an initiator and a responder (ADDRESS:PORT), its stream and the number of its association, a list of
faults in the form and order of its DATA chunks (RFC 5043 sections 5 and 6), and events in the order of the capture:

  frame     a session control message: from, kind (request, reply, terminate), code, and of an
            Enhanced one p2p, rtr, ird, ord; pdata_len
  fpdu      a DDP segment: from, kind, len
  shutdown  the first SHUTDOWN; abort: the first ABORT

A retransmitted chunk counts once.
"""
import argparse
import ipaddress
import json
import struct

from sctpcapture import chunks, packets

DATA, INIT, INIT_ACK, SACK, ABORT, SHUTDOWN = 0, 1, 2, 3, 6, 7
SEGMENT, CONTROL = 16, 17
REQUEST, REPLY, REJECTS, TERMINATE = (1, 5), (2, 3, 6, 7), (3, 7), 4
HALF = 1 << 31
# RFC 5040 section 4.3
OPCODES = ('write', 'read-request', 'read-response', 'send', 'send-invalidate', 'send-se',
           'send-se-invalidate', 'term')


def read_control(message):
    code = struct.unpack_from('!H', message)[0] if len(message) >= 2 else 0
    kind = 'request' if code in REQUEST else 'reply' if code in REPLY else 'terminate' if code == TERMINATE else 'unknown'
    event = {'type': 'frame', 'kind': kind, 'code': code, 'pdata_len': len(message) - 2}
    if code >= 5 and len(message) >= 6:
        word = struct.unpack_from('!I', message, 2)[0]
        event |= {'p2p': bool(word >> 31), 'ird': word >> 16 & 0x3fff, 'ord': word & 0x3fff,
                  'rtr': [name for name, bit in (('send', 30), ('write', 15), ('read', 14)) if word >> bit & 1],
                  'pdata_len': len(message) - 6}
    return event


def read_segment(segment):
    if len(segment) < 2:
        return {'type': 'fpdu', 'kind': 'short', 'len': 0}
    # a tagged header has 14 bytes, an untagged one 18
    header = 14 if segment[0] & 0x80 else 18
    opcode = segment[1] & 15
    event = {'type': 'fpdu', 'kind': OPCODES[opcode] if opcode < len(OPCODES) else str(opcode),
             'len': len(segment) - header, 'last': bool(segment[0] & 0x40)}
    if event['kind'] == 'read-request' and event['len'] >= 16:
        event['size'] = struct.unpack_from('!I', segment, header + 12)[0]
    return event


class Session:
    """On one stream, from an Initiate to a Terminate of each side"""

    def __init__(self, association, side, stream):
        self.association, self.side, self.stream = association, side, stream
        self.events, self.faults = [], []
        # of both directions: the DDP-SSN by the TSN, and the TSN that came first
        self.seen = ({}, {})
        self.first = [None, None]
        self.ended = [False, False]

    def who(self, side):
        return 'initiator' if side == self.side else 'responder'

    def take(self, side, flags, body):
        tsn, _, _, ppid = struct.unpack_from('!IHHI', body)
        if flags & 7 != 7:
            self.faults.append(f"SC-02: the {self.who(side)}'s TSN {tsn} has flags {flags}")
        if ppid not in (SEGMENT, CONTROL) or len(body) < 14:
            self.faults.append(f"SC-02: the {self.who(side)}'s TSN {tsn}: ppid {ppid}, {len(body) - 12} bytes")
            return
        self.seen[side][tsn] = struct.unpack_from('!H', body, 12)[0]
        event = read_control(body[14:]) if ppid == CONTROL else read_segment(body[14:])
        if self.first[side] is None:
            self.first[side] = tsn
        elif event.get('kind') == 'terminate' and not self.association.is_acked(side, self.first[side]):
            self.faults.append(f"SC-07: the {self.who(side)}'s Terminate may overtake its first message")
        if event.get('code') in REJECTS:
            self.ended = [True, True]
        self.ended[side] |= event.get('kind') == 'terminate'
        self.events.append({'from': self.who(side), 'ssn': self.seen[side][tsn]} | event)

    def last(self, side):
        """The last TSN of that side, None without one"""
        first = self.first[side]
        return max(self.seen[side], key=lambda tsn: (tsn - first + HALF) % (2 * HALF), default=None)

    def judge_order(self):
        """The DDP-SSNs count from 0 on in the order in which the chunks were first sent"""
        for side, seen in enumerate(self.seen):
            first = self.first[side] or 0
            for number, tsn in enumerate(sorted(seen, key=lambda tsn, first=first: (tsn - first + HALF) % (2 * HALF))):
                if seen[tsn] != number % 65536:
                    self.faults.append(f"SC-02: the {self.who(side)}'s chunk {number} has DDP-SSN {seen[tsn]}")
                    break

    def result(self, number):
        self.judge_order()
        ends = self.association.ends
        return {'initiator': ends[self.side], 'responder': ends[1 - self.side], 'association': number, 'stream': self.stream,
                'faults': self.faults[:5], 'events': self.events}


class Association:
    def __init__(self, opener, other, tag):
        self.ends, self.tag = (opener, other), tag
        # what each side offers, (out, in), and what the other side has acknowledged of its TSNs
        self.offers, self.acked = [None, None], [None, None]
        self.sessions, self.current, self.taken = [Session(self, 0, 0)], {}, (set(), set())
        self.over = False

    def take(self, side, kind, flags, body):
        if kind in (ABORT, SHUTDOWN) and not self.over:
            self.over = True
            for session in self.sessions:
                if not all(session.ended) or session is self.sessions[-1]:
                    session.events.append({'from': session.who(side), 'type': 'abort' if kind == ABORT else 'shutdown'})
        if kind in (INIT, INIT_ACK):
            self.offers[side] = struct.unpack_from('!HH', body, 8)
            if len(set(self.offers[side])) != 1 or 0 in self.offers[side]:
                self.sessions[0].faults.append(f'SC-04: {self.ends[side]} asks for {self.offers[side]} streams, out and in')
        if kind == SACK:
            self.acked[1 - side] = struct.unpack_from('!I', body)[0]
        if kind != DATA:
            return
        tsn, stream = struct.unpack_from('!IH', body)
        if tsn not in self.taken[side]:
            self.taken[side].add(tsn)
            self.session_of(side, stream, body).take(side, flags, body)

    def session_of(self, side, stream, body):
        session = self.current.get(stream)
        # of one session that is over, or none
        begins = body[8:12] == struct.pack('!I', CONTROL) and read_control(body[14:])['kind'] == 'request'
        if session and not (begins and all(session.ended)):
            return session
        last = session.last(side) if session else None
        session = self.sessions[0] if not self.current else Session(self, side, stream)
        session.side, session.stream = side, stream
        if last is not None and not self.is_acked(side, last):
            session.faults.append(f'SC-04: an Initiate on stream {stream} before the acknowledgment of TSN {last}')
        if self.current:
            self.sessions.append(session)
        self.current[stream] = session
        if stream >= min(min(offer) for offer in self.offers if offer):
            session.faults.append(f'SC-04: stream {stream} of {self.offers}')
        return session

    def is_acked(self, side, first):
        """A capture is in the order of time on either side"""
        return self.acked[side] is not None and (self.acked[side] - first) % (2 * HALF) < HALF


def read(path, port):
    with open(path, 'rb') as file:
        data = file.read()
    found, current = [], {}
    for source, target, packet in packets(data):
        ports = struct.unpack_from('!HH', packet)
        if port and port not in ports:
            continue
        ends = [f'{ipaddress.ip_address(address)}:{number}' for address, number in zip((source, target), ports)]
        for kind, flags, body in chunks(packet):
            if kind == INIT and (ends[0], ends[1], body[:4]) not in current:
                association = Association(*ends, body[:4])
                found.append(association)
                current[(*ends, body[:4])] = association
                current[tuple(ends)] = (association, 0)
                current[(ends[1], ends[0])] = (association, 1)
            if tuple(ends) in current:
                association, side = current[tuple(ends)]
                association.take(side, kind, flags, body)
    return [session.result(number) for number, association in enumerate(found) for session in association.sessions]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--port', type=int)
    parser.add_argument('file')
    options = parser.parse_args()
    print(json.dumps(read(options.file, options.port)))


main()
