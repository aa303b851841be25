#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Usage: tests/sctpwire.py [--port PORT] FILE

Prints the SCTP associations of a capture of Ethernet as JSON, for the claims of wire_sctp.jq. An
association has an initiator and a responder (ADDRESS:PORT), a list of faults in the form and order of
its DATA chunks (RFC 5043 sections 5 and 6), and events in the order of the capture:

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
REQUEST, REPLY, TERMINATE = (1, 5), (2, 3, 6, 7), 4
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


class Association:
    def __init__(self, initiator, responder, tag):
        self.ends, self.tag = (initiator, responder), tag
        self.events, self.faults = [], []
        # of both directions: the DDP-SSN by the TSN
        self.seen = ({}, {})
        # each side's first TSN, and what the other side has acknowledged of it
        self.first, self.acked = [None, None], [None, None]
        self.over = False

    def take(self, side, kind, flags, body):
        who = ('initiator', 'responder')[side]
        if kind in (ABORT, SHUTDOWN) and not self.over:
            self.over = True
            self.events.append({'from': who, 'type': 'abort' if kind == ABORT else 'shutdown'})
        if kind in (INIT, INIT_ACK) and body[8:12] != b'\0\1\0\1':
            self.faults.append(f"SC-04: the {who} asks for {body[8:12].hex()} streams, out and in")
        if kind == SACK:
            self.acked[1 - side] = struct.unpack_from('!I', body)[0]
        if kind != DATA:
            return
        tsn, stream, _, ppid = struct.unpack_from('!IHHI', body)
        if tsn in self.seen[side]:
            return
        if flags & 7 != 7:
            self.faults.append(f"SC-02: the {who}'s TSN {tsn} has flags {flags}")
        if ppid not in (SEGMENT, CONTROL) or stream or len(body) < 14:
            self.faults.append(f"SC-02: the {who}'s TSN {tsn}: stream {stream}, ppid {ppid}, {len(body) - 12} bytes")
            return
        self.seen[side][tsn] = struct.unpack_from('!H', body, 12)[0]
        event = read_control(body[14:]) if ppid == CONTROL else read_segment(body[14:])
        if self.first[side] is None:
            self.first[side] = tsn
        elif event.get('kind') == 'terminate' and not self.is_acked(side):
            self.faults.append(f"SC-07: the {who}'s Terminate may overtake its first message")
        self.events.append({'from': who, 'ssn': self.seen[side][tsn]} | event)

    def is_acked(self, side):
        """Has the side's first chunk been acknowledged? A capture is in the order of time on either side"""
        return self.acked[side] is not None and (self.acked[side] - self.first[side]) % (1 << 32) < 1 << 31

    def judge_order(self):
        """The DDP-SSNs count from 0 on in the order in which the chunks were first sent"""
        for who, seen in zip(('initiator', 'responder'), self.seen):
            if not seen:
                continue
            # TSNs wrap, too: the first one is the one before which there is none
            first = next(tsn for tsn in seen if (tsn - 1) % (1 << 32) not in seen)
            for number, tsn in enumerate(sorted(seen, key=lambda tsn, first=first: (tsn - first) % (1 << 32))):
                if seen[tsn] != number % 65536:
                    self.faults.append(f"SC-02: the {who}'s chunk {number} has DDP-SSN {seen[tsn]}")
                    break

    def result(self):
        self.judge_order()
        return {'initiator': self.ends[0], 'responder': self.ends[1], 'faults': self.faults[:5], 'events': self.events}


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
    return [association.result() for association in found]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--port', type=int)
    parser.add_argument('file')
    options = parser.parse_args()
    print(json.dumps(read(options.file, options.port)))


main()
