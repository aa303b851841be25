#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""An SCTP host of its own for the suite sctp, which chooses its chunks freely

  sctpraw.py PLAY SOURCE TARGET MAC PORT INITIATE [STREAMS]

SOURCE is an IPv4 address that no host has: TARGET, whose MAC address is MAC, has ours in its neighbour table. Makes an
association of STREAMS streams (1; OUT,IN if they differ), and a session with the program at PORT by INITIATE (hex).
Prints "TARGET offers OUT IN" streams. "good" and exit status 0 if all goes well. PLAY is

  parts    a Send of 1024 bytes in fragments that fill TARGET's receive buffer before the last ones come, so that SCTP
           delivers a part of the message; then a second Send, "hello". TARGET acknowledges all of that
  missing  two Sends, "first" and "hello", of which the second comes 35 s earlier
  auth     reads the memory that the program exposes, with AUTH (SHA-256) before each DATA chunk: no chunk is a fragment
  range    Initiates on streams that the association does not have, and then a Send, "hello", on stream 0
  reset    an RDMA Write of two segments to that memory. Between them it asks for a reset of the stream (RFC 6525), and
           prints "reset RESULT". Then it reads what it has written
  again    ends the session, which holds 300 chunks after a gap, by a Terminate. When the function that slow_down() of
           lib.sh makes slow has been called, the host starts anew: its association takes the place of the old one, and has
           to be aborted
"""
import socket
import struct
import sys
import time

DATA, INIT, INIT_ACK, SACK, ABORT, SHUTDOWN, COOKIE_ECHO, COOKIE_ACK, AUTH, RE_CONFIG = 0, 1, 2, 3, 6, 7, 10, 11, 15, 130
SHA_256 = 3
# unordered; the middle, end, begin or all of a message
MIDDLE, END, BEGIN, WHOLE = 4, 5, 6, 7
SEGMENT, CONTROL = 16, 17
OUR_PORT, OUR_TAG, FIRST_TSN = 40000, 0x5043, 1000
READS, READ_SIZE = 4, 65536
SEND_SIZE, PER_PACKET, HELD = 1024, 50, 300
PATIENCE = 20
# more than the 30 s that siw waits for a DDP-SSN if SCTP misses nothing
MISSING = 35


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff


def chunk(kind, flags, body):
    return struct.pack('!BBH', kind, flags, 4 + len(body)) + body + bytes(-len(body) % 4)


def ipv4(source, target, payload):
    head = struct.pack('!BBHHHBBH4s4s', 0x45, 0, 20 + len(payload), 0, 0x4000, 64, 132, 0, source, target)
    total = sum(struct.unpack('!10H', head))
    total = (total & 0xffff) + (total >> 16)
    return head[:10] + struct.pack('!H', ~(total + (total >> 16)) & 0xffff) + head[12:] + payload


class Host:
    def __init__(self, source, target, mac, port):
        self.source, self.target, self.port = socket.inet_aton(source), socket.inet_aton(target), port
        self.tag, self.tsn, self.acked, self.got = 0, FIRST_TSN, FIRST_TSN - 1, []
        self.peer_tsn, self.cookie, self.up = 0, None, False
        self.fragments, self.held = 0, {}
        self.room, self.hmacs = None, set()
        self.offers, self.result = None, None
        self.own_tag, self.ends = OUR_TAG, None
        self.sock = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(0x0800))
        self.sock.bind(('eth0', 0x0800))
        self.to = ('eth0', 0x0800, 0, 1, bytes.fromhex(mac.replace(':', '')))

    def send(self, *chunks):
        packet = struct.pack('!HHII', OUR_PORT, self.port, self.tag, 0) + b''.join(chunks)
        packet = packet[:8] + struct.pack('<I', crc32c(packet)) + packet[12:]
        self.sock.sendto(ipv4(self.source, self.target, packet), self.to)

    def data(self, tsn, flags, ppid, payload, stream=0):
        return chunk(DATA, flags, struct.pack('!IHHI', tsn & 0xffffffff, stream, 0, ppid) + payload)

    def whole(self, ppid, payload, stream=0):
        """Sends a message in one chunk, until it is acknowledged"""
        tsn, self.tsn = self.tsn, self.tsn + 1
        self.until(lambda: self.acked >= tsn, lambda: self.send(self.data(tsn, WHOLE, ppid, payload, stream)))

    def reset(self, stream):
        """Asks for the reset of an outgoing stream until there is a result"""
        # the first request has the number of the first TSN
        request = struct.pack('!HHIIIHxx', 13, 18, FIRST_TSN, self.peer_tsn, self.tsn - 1, stream)
        self.until(lambda: self.result is not None, lambda: self.send(chunk(RE_CONFIG, 0, request)))

    def receive(self):
        """Takes a packet, acknowledges its data, returns its kinds of chunks and the last chunk's body"""
        packet = self.sock.recv(65536)
        if packet[9] != 132 or packet[12:20] != self.target + self.source:
            return [], b''
        packet, kinds, body = packet[20:struct.unpack_from('!H', packet, 2)[0]], [], b''
        at = 12
        while at + 4 <= len(packet):
            kind, flags, length = struct.unpack_from('!BBH', packet, at)
            body, at = packet[at + 4:at + length], at + ((length + 3) & ~3)
            kinds.append(kind)
            if kind == SACK:
                acked, self.room = struct.unpack_from('!II', body)
                self.acked = max(self.acked, acked)
            elif kind == AUTH:
                self.hmacs.add(struct.unpack_from('!H', body, 2)[0])
            elif kind == RE_CONFIG:
                self.result = struct.unpack_from('!I', body, 8)[0]
            elif kind == DATA:
                self.fragments += flags & 3 != 3
                self.held[struct.unpack_from('!I', body)[0]] = body[12:]
                while self.peer_tsn in self.held:
                    self.got.append(self.held.pop(self.peer_tsn))
                    self.peer_tsn += 1
                self.send(chunk(SACK, 0, struct.pack('!IIHH', self.peer_tsn - 1, 1 << 20, 0, 0)))
            elif kind in (ABORT, SHUTDOWN) and self.ends is not None:
                self.ends.append(kind)
            elif kind in (ABORT, SHUTDOWN):
                raise SystemExit(f'sctpraw: the peer ends the association, after {self.got}')
        return kinds, body

    def until(self, done, act, every=1.0, patience=PATIENCE):
        """Acts every so many seconds until it is done"""
        latest = time.monotonic() + patience
        while time.monotonic() < latest:
            act()
            end = time.monotonic() + every
            while not done() and (left := end - time.monotonic()) > 0:
                self.sock.settimeout(left)
                try:
                    self.setup(*self.receive())
                except socket.timeout:
                    break
            if done():
                return
        raise SystemExit(f'sctpraw: acknowledged up to {self.acked - FIRST_TSN}, received {self.got}, room for {self.room} bytes')

    def setup(self, kinds, body):
        if INIT_ACK in kinds:
            self.tag, _, *self.offers, self.peer_tsn = struct.unpack_from('!IIHHI', body)
            at = 16
            while at + 4 <= len(body):
                kind, length = struct.unpack_from('!HH', body, at)
                if kind == 7:
                    self.cookie = body[at + 4:at + length]
                at += (length + 3) & ~3
        self.up = self.up or COOKIE_ACK in kinds

    def connect(self, out, into, more):
        # adaptation indication 1
        init = chunk(INIT, 0, struct.pack('!IIHHIHHI', self.own_tag, 1 << 20, out, into, FIRST_TSN, 0xc006, 8, 1) + more)
        self.until(lambda: self.cookie, lambda: self.send(init))
        self.until(lambda: self.up, lambda: self.send(chunk(COOKIE_ECHO, 0, self.cookie)))


def ddp_send(ssn, msn, payload):
    """DDP-SSN; untagged, last, version 1; RDMAP version 1, Send; queue 0"""
    return struct.pack('!HBBIIII', ssn, 0x41, 0x43, 0, 0, msn, 0) + payload


def read_request(ssn, msn, size, rkey, address):
    """Queue 1; the sink is STag 1 at 0"""
    return struct.pack('!HBBIIII', ssn, 0x41, 0x41, 0, 1, msn, 0) + struct.pack('!IQIIQ', 1, 0, size, rkey, address)


def write(ssn, last, rkey, address, payload):
    """DDP-SSN; tagged, version 1; RDMAP version 1, Write"""
    return struct.pack('!HBBIQ', ssn, 0xc1 if last else 0x81, 0x40, rkey, address) + payload


def play_parts(host):
    message = ddp_send(1, 1, bytes(SEND_SIZE))
    first = host.tsn
    parts = [message[:20]] + [message[i:i + 1] for i in range(20, len(message))]
    fragments = [host.data(first + i, BEGIN if not i else END if i == len(parts) - 1 else MIDDLE, SEGMENT, part)
                 for i, part in enumerate(parts)]
    # All but the second and the last ones fill the buffer: each chunk costs a struct sk_buff
    host.send(fragments[0])
    host.room, at = None, 2

    def fill():
        nonlocal at
        host.send(*fragments[at:at + PER_PACKET])
        at = at + PER_PACKET if at + 2 * PER_PACKET < len(fragments) else 2

    # A slow host may acknowledge the last one long after it was sent, and may lose some
    host.until(lambda: host.room == 0, fill, 0.05)
    # SCTP drops some others for the second one, and cannot wait for the end any more
    host.send(fragments[1])

    def again():
        at = max(0, host.acked + 1 - first)
        host.send(*fragments[at:at + PER_PACKET])

    host.tsn += len(fragments)
    host.until(lambda: host.acked >= host.tsn - 1, again, 0.1)
    host.whole(SEGMENT, ddp_send(2, 2, b'hello'))
    time.sleep(1)


def play_missing(host):
    first = host.data(host.tsn, WHOLE, SEGMENT, ddp_send(1, 1, b'first'))
    second = host.data(host.tsn + 1, WHOLE, SEGMENT, ddp_send(2, 2, b'hello'))
    host.tsn += 2
    end = time.monotonic() + MISSING
    # Again and again, as SCTP may drop what it has received after a missing chunk
    host.until(lambda: time.monotonic() > end, lambda: host.send(second), patience=2 * MISSING)
    host.until(lambda: host.acked >= host.tsn - 1, lambda: host.send(first, second))
    time.sleep(1)


def exposed(host):
    """The Accept, and the first Send: ADDRESS RKEY ..."""
    host.until(lambda: len(host.got) > 1, lambda: None)
    return (int(word, 16) for word in host.got[1][20:].split()[:2])


def play_reads(host):
    address, rkey = exposed(host)
    for i in range(READS):
        start = len(host.got)
        host.whole(SEGMENT, read_request(1 + i, 1 + i, READ_SIZE, rkey, address))
        # 16 bytes before the payload of a tagged segment
        host.until(lambda start=start: sum(len(got) - 16 for got in host.got[start:]) >= READ_SIZE, lambda: None)
    if host.fragments:
        raise SystemExit(f'sctpraw: {host.fragments} of {len(host.got)} chunks are fragments')
    # shorter ones fit into the room for control chunks
    if host.hmacs != {SHA_256}:
        raise SystemExit(f'sctpraw: AUTH chunks have the HMACs {host.hmacs}, not SHA-256')


def play_range(host):
    for stream in (min(host.offers), max(host.offers), 65534):
        host.whole(CONTROL, struct.pack('!H', 0) + bytes.fromhex(sys.argv[6]), stream)
    host.whole(SEGMENT, ddp_send(1, 1, b'hello'))
    time.sleep(1)


def play_reset(host):
    address, rkey = exposed(host)
    host.whole(SEGMENT, write(1, False, rkey, address, b'front'))
    host.reset(0)
    print(f'reset {host.result}', flush=True)
    host.whole(SEGMENT, write(2, True, rkey, address + 5, b'back'))
    start = len(host.got)
    host.whole(SEGMENT, read_request(3, 1, 9, rkey, address))
    host.until(lambda: len(host.got) > start, lambda: None)
    # behind DDP-SSN and headers of the Read Response
    if host.got[start][16:] != b'frontback':
        raise SystemExit(f'sctpraw: read {host.got[start][16:]}, wrote frontback')


def is_slow():
    # ip netns exec has a /sys of its own
    with open('/proc/1/root/sys/kernel/tracing/kprobe_profile', encoding='ascii') as file:
        return any(int(line.split()[1]) for line in file if line.split()[0] == 'slow0')


def play_again(host):
    # DDP-SSN 2 is missing, so they are held until the session ends
    first = host.tsn
    held = [host.data(first + i, WHOLE, SEGMENT, ddp_send(3 + i, 1 + i, b'')) for i in range(HELD)]
    host.tsn += HELD

    def fill():
        for at in range(0, HELD, PER_PACKET // 2):
            host.send(*held[at:at + PER_PACKET // 2])

    host.until(lambda: host.acked >= host.tsn - 1, fill)
    terminate = host.data(host.tsn, WHOLE, CONTROL, struct.pack('!HH', 1, 4))
    host.until(is_slow, lambda: host.send(terminate), 0.1)
    host.own_tag, host.tag, host.cookie, host.up, host.ends = OUR_TAG + 1, 0, None, False, []
    host.connect(1, 1, b'')
    host.until(lambda: host.ends, lambda: None)
    if host.ends[0] != ABORT:
        raise SystemExit('sctpraw: the peer shuts down the association of another session')


def main():
    plays = {'parts': play_parts, 'missing': play_missing, 'auth': play_reads, 'range': play_range, 'reset': play_reset,
             'again': play_again}
    if len(sys.argv) not in (7, 8) or sys.argv[1] not in plays:
        print(__doc__)
        sys.exit(0 if sys.argv[1:] in (['-h'], ['--help']) else 2)
    what = sys.argv[1]
    host = Host(sys.argv[2], sys.argv[3], sys.argv[4], int(sys.argv[5]))
    # RANDOM, CHUNKS (DATA), HMAC-ALGO (SHA-256, SHA-1) of RFC 4895; supported extensions (AUTH) of RFC 5061
    auth = struct.pack('!HH32x HHB3x HHHH HHB3x', 0x8002, 36, 0x8003, 5, DATA, 0x8004, 8, SHA_256, 1, 0x8008, 5, AUTH)
    reset = struct.pack('!HHB3x', 0x8008, 5, RE_CONFIG)
    out, _, into = (sys.argv[7] if len(sys.argv) > 7 else '1').partition(',')
    host.connect(int(out), int(into or out), {'auth': auth, 'reset': reset}.get(what, b''))
    print(f'{sys.argv[3]} offers {host.offers[0]} {host.offers[1]}', flush=True)
    host.whole(CONTROL, struct.pack('!H', 0) + bytes.fromhex(sys.argv[6]))
    host.until(lambda: host.got, lambda: None)
    plays[what](host)
    print('good', flush=True)
    host.send(chunk(ABORT, 0, b''))


main()
