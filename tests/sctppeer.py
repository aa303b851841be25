#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""A peer of RFC 5043 on a socket of its own, for the suite sctp.

  sctppeer.py call ADDRESS PORT STEP...     connects, as initiator
  sctppeer.py hear ADDRESS PORT STEP...     waits for one association, as responder
  sctppeer.py idle ADDRESS PORT NUMBER MAX  leaves NUMBER associations without a session: MAX of them stay
  sctppeer.py hold ADDRESS PORT NUMBER MAX  answers a session on each of NUMBER ports: MAX of their associations stay
  sctppeer.py fail ADDRESS PORT             aborts each association: at once, or some time after that
  sctppeer.py judge FILE                    checks all SCTP packets of a capture

A step of call and hear is one of

  adapt=N       before the association: its adaptation indication (default 1, 0 = none)
  from=PORT     before the association: the port of a caller, who aborts it at the end
  maxseg=N      before the association: SCTP makes DATA chunks of N bytes at most
  streams=N     before the association: it offers N streams each way (default: as in MPA_DEFAULT, else 1)
  stream=N      the next messages are sent on stream N, and expected on it; DDP-SSNs are counted for each stream
  fresh         a session begins: the next DDP-SSNs on this stream are 0 again, in both directions
  send=HEX      sends a session control message behind the next DDP-SSN
  segment=HEX   sends a DDP segment likewise
  zeros=CODE,N  sends a session control message with N bytes of private data, all 0
  ssn=N         the next DDP-SSN is N
  ppid=N        the next chunk has this payload protocol identifier
  ordered       the next chunk is ordered
  flood=N       sends N segments of 1000 bytes, or as many as the peer takes
  expect=HEX    the next message begins with these bytes, behind its DDP-SSN
  over=SECONDS  within that time the peer shuts the association down or aborts it; segments are passed over
  gone=SECONDS  within that time the association ends, without a message
  quiet=SECONDS nothing comes on any stream for so long, or until SIGHUP; nothing is left that came earlier
  abort         aborts the association

Exit status 0 only if all steps held. judge fails if a DATA chunk is ordered, fragmented or has another
payload protocol identifier than 16 and 17, or if a stream's DDP-SSNs are not 0, 1, 2, ...
"""
import errno
import itertools
import os
import re
import select
import signal
import socket
import struct
import sys
import time

from sctpcapture import chunks, packets

SOL_SCTP = 132
INITMSG, NODELAY, ADAPTATION, MAXSEG, RECVRCVINFO = 2, 3, 7, 13, 32
SNDINFO, RCVINFO = 2, 3
UNORDERED = 1
SEGMENT, CONTROL = 16, 17
PATIENCE = 20
# of the settings of `tests/run --default`
STREAMS = int((re.findall(r'streams (\d+)', os.environ.get('MPA_DEFAULT', '')) or [1])[-1])


class Broken(Exception):
    """A step did not hold."""


class Silent(Broken):
    """Nothing came."""


class Peer:
    def __init__(self, sock):
        self.sock, self.stream = sock, 0
        self.ssns, self.expecteds = {}, {}
        self.waiting = []
        self.ppid, self.flags = None, UNORDERED
        self.reset = False

    @property
    def ssn(self):
        return self.ssns.get(self.stream, 0)

    @ssn.setter
    def ssn(self, number):
        self.ssns[self.stream] = number

    def transmit(self, ppid, data, timeout=PATIENCE):
        self.sock.settimeout(timeout)
        info = struct.pack('=HHIIi', self.stream, self.flags, socket.htonl(self.ppid or ppid), 0, 0)
        self.sock.sendmsg([struct.pack('!H', self.ssn & 0xffff) + data], [(SOL_SCTP, SNDINFO, info)])
        self.ssn += 1
        self.ppid, self.flags = None, UNORDERED

    def receive(self, seconds):
        """The next (ppid, bytes, stream); None at the end of the association."""
        # A receive does not end after an ABORT that a send has reported
        self.sock.settimeout(0.1 if self.reset else seconds)
        try:
            data, control, _, _ = self.sock.recvmsg(65536, 256)
        except socket.timeout as late:
            if self.reset:
                return None
            raise Silent(f'no message was received within {seconds} s') from late
        except OSError as error:
            if error.errno in (errno.ECONNRESET, errno.ENOTCONN, errno.EPIPE):
                return None
            raise
        if not data:
            return None
        for level, kind, info in control:
            if level == SOL_SCTP and kind == RCVINFO:
                stream, flags, ppid = struct.unpack_from('=HxxHxxI', info)
                expected = self.expecteds.get(stream, 0)
                if not flags & UNORDERED:
                    raise Broken('received an ordered chunk')
                if struct.unpack('!H', data[:2])[0] != expected & 0xffff:
                    raise Broken(f'received DDP-SSN {data[:2].hex()} on stream {stream}, expected {expected:#06x}')
                self.expecteds[stream] = expected + 1
                return socket.ntohl(ppid), data[2:], stream
        raise Broken('received a chunk without SCTP_RCVINFO')

    def expect(self, wanted):
        got = next((one for one in self.waiting if one[2] == self.stream), None)
        if got:
            self.waiting.remove(got)
        while not got:
            got = self.receive(PATIENCE)
            if got is None:
                raise Broken(f'the association has ended, expected message {wanted}')
            if got[2] != self.stream:
                self.waiting.append(got)
                got = None
        if got[0] != CONTROL or not got[1].hex().startswith(wanted):
            raise Broken(f'received message {got[1][:40].hex()} with PPID {got[0]}, expected {wanted}')

    def over(self, seconds):
        end = time.monotonic() + seconds
        while (got := self.receive(max(0.1, end - time.monotonic()))) is not None:
            if got[0] == CONTROL and got[1].hex() != '0004':
                raise Broken(f'received message {got[1][:40].hex()}, expected the end of the association')

    def gone(self, seconds):
        if (got := self.receive(seconds)) is not None:
            raise Broken(f'received message {got[1][:40].hex()}, expected the end of the association')

    def quiet(self, seconds):
        def end(_number, _frame):
            # timeout(1) sends it twice
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
            raise Silent

        # of other streams: expect() has put it aside
        if self.waiting:
            raise Broken(f'received {self.waiting[0]} earlier, expected nothing')
        try:
            signal.signal(signal.SIGHUP, end)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGHUP])
            got = self.receive(seconds)
        except Silent:
            return
        raise Broken(f'received {got} within {seconds} s, expected nothing')

    def flood(self, number):
        try:
            for _ in range(number):
                self.transmit(SEGMENT, bytes(1000), 5)
        except OSError as error:
            self.reset = error.errno == errno.ECONNRESET

    def step(self, name, value):
        if name == 'send':
            self.transmit(CONTROL, bytes.fromhex(value))
        elif name == 'zeros':
            code, number = value.split(',')
            self.transmit(CONTROL, struct.pack('!H', int(code)) + bytes(int(number)))
        elif name == 'segment':
            self.transmit(SEGMENT, bytes.fromhex(value))
        elif name == 'stream':
            self.stream = int(value)
        elif name == 'fresh':
            self.ssns[self.stream] = self.expecteds[self.stream] = 0
        elif name == 'ssn':
            self.ssn = int(value)
        elif name == 'ppid':
            self.ppid = int(value)
        elif name == 'ordered':
            self.flags = 0
        elif name == 'flood':
            self.flood(int(value))
        elif name == 'expect':
            self.expect(value)
        elif name == 'over':
            self.over(float(value))
        elif name == 'gone':
            self.gone(float(value))
        elif name == 'quiet':
            self.quiet(float(value))
        elif name == 'abort':
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
            self.sock.close()
        else:
            raise SystemExit(f'sctppeer: no step {name}')


def make_socket(address, options):
    family = socket.AF_INET6 if ':' in address else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_SCTP)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if int(options.get('adapt', 1)):
        sock.setsockopt(SOL_SCTP, ADAPTATION, struct.pack('=I', int(options.get('adapt', 1))))
    streams = int(options.get('streams', STREAMS))
    sock.setsockopt(SOL_SCTP, INITMSG, struct.pack('=HHHH', streams, streams, 0, 0))
    sock.setsockopt(SOL_SCTP, NODELAY, 1)
    sock.setsockopt(SOL_SCTP, RECVRCVINFO, 1)
    if 'maxseg' in options:
        sock.setsockopt(SOL_SCTP, MAXSEG, struct.pack('=iI', 0, int(options['maxseg'])))
    return sock


def play(role, address, port, steps):
    steps = [step.partition('=')[::2] for step in steps]
    options = {name: value for name, value in steps if name in ('adapt', 'from', 'maxseg', 'streams')}
    sock = make_socket(address, options)
    sock.settimeout(PATIENCE)
    if role == 'hear':
        sock.bind((address, port))
        sock.listen(1)
        print('listening', flush=True)
        listener, (sock, _) = sock, sock.accept()
        listener.close()
    else:
        if 'from' in options:
            sock.bind(('', int(options['from'])))
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
        try:
            sock.connect((address, port))
        except ConnectionResetError:
            # refused as soon as it was there
            if [name for name, _ in steps if name not in options] not in (['over'], ['gone']):
                raise
            print('good', flush=True)
            return
    peer = Peer(sock)
    # for the step that waits for it
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGHUP])
    for i, (name, value) in enumerate(steps):
        if name in options:
            continue
        try:
            peer.step(name, value)
        except (Broken, OSError) as why:
            if name != 'send' or isinstance(why, Broken) or [step[0] for step in steps[i + 1:i + 2]] != ['gone']:
                raise SystemExit(f'sctppeer: {name}={value}: {why}') from why
            # it has ended by now
            peer.reset = True
    print('good', flush=True)


# A session from its client-server Enhanced Initiate, with depths of 8, to both Terminates
SESSION = (('send', '000500080008'), ('expect', '0006'), ('send', '0004'), ('expect', '0004'))


def leave_idle(address, port, number, maximum):
    poll, socks = select.poll(), {}
    for _ in range(number):
        sock = make_socket(address, {'streams': 8})
        sock.settimeout(PATIENCE)
        sock.connect((address, port))
        peer = Peer(sock)
        for name, value in SESSION:
            peer.step(name, value)
        poll.register(sock, select.POLLIN)
        socks[sock.fileno()] = sock
    judge_idle(poll, socks, maximum)


def judge_idle(poll, socks, maximum):
    end = time.monotonic() + PATIENCE
    while len(socks) > maximum and time.monotonic() < end:
        for number, _ in poll.poll(1000):
            poll.unregister(number)
            socks.pop(number).close()
    for number, _ in poll.poll(1000):
        socks.pop(number).close()
    print(f'{len(socks)} stay')
    for sock in socks.values():
        Peer(sock).step('abort', '')
    if len(socks) != maximum:
        raise SystemExit(f'sctppeer: {len(socks)} associations stay, should be {maximum}')
    print('good', flush=True)


def hold_each(address, port, number, maximum):
    listeners = []
    for i in range(number):
        listeners.append(make_socket(address, {'streams': 8}))
        listeners[i].bind((address, port + i))
        listeners[i].listen(1)
    print('listening', flush=True)
    poll, socks = select.poll(), {}
    for listener in listeners:
        peer = Peer(listener.accept()[0])
        for name, value in (('expect', '0005'), ('send', '000600080008'), ('expect', '0004'), ('send', '0004')):
            peer.step(name, value)
        poll.register(peer.sock, select.POLLIN)
        socks[peer.sock.fileno()] = peer.sock
    judge_idle(poll, socks, maximum)


# The steps before each ABORT
FAILURES = ((), (('expect', '0005'),), (('expect', '0005'), ('send', '000600080008')),
            (('expect', '0005'), ('send', '000600080008'), ('quiet', '0.3')))


def fail_each(address, port):
    listener = make_socket(address, {'streams': 8})
    listener.bind((address, port))
    listener.listen(64)
    print('listening', flush=True)
    for steps in itertools.cycle(FAILURES):
        peer = Peer(listener.accept()[0])
        try:
            for name, value in steps:
                peer.step(name, value)
        except (Broken, OSError) as why:
            print(f'{name}={value}: {why}')
        peer.step('abort', '')
        print('aborted', flush=True)


# ---- captures

def judge(path):
    seen, wrong = {}, []
    with open(path, 'rb') as file:
        data = file.read()
    for source, target, packet in packets(data):
        tag = packet[4:8]
        for kind, flags, body in chunks(packet):
            if kind:
                continue
            tsn, stream, _, ppid = struct.unpack_from('!IHHI', body)
            ssn = struct.unpack_from('!H', body, 12)[0]
            if flags & 7 != 7:
                wrong.append(f'TSN {tsn}: flags {flags}')
            if ppid not in (SEGMENT, CONTROL):
                wrong.append(f'TSN {tsn}: ppid {ppid}')
            seen.setdefault((source, target, packet[:4], tag, stream), {})[tsn] = (ssn, ppid)
    number = 0
    for key, stream in seen.items():
        # Sent in the order of their TSNs, which wrap as well
        first = min(stream) if max(stream) - min(stream) < 1 << 31 else min(t for t in stream if t >= 1 << 31)
        order = sorted(stream, key=lambda tsn, first=first: (tsn - first) % (1 << 32))
        got = sorted(stream[tsn][0] + 65536 * (i // 65536) for i, tsn in enumerate(order))
        if got != list(range(len(got))):
            wrong.append(f'DDP-SSNs of {key[2].hex()}: {got[:5]}...{got[-5:]}, {len(got)} chunks')
        if stream[order[0]] != (0, CONTROL):
            wrong.append(f'{key[2].hex()} begins with {stream[order[0]]}')
        number += len(stream)
    print(f'{number} DATA chunks in {len(seen)} streams')
    for line in wrong[:10]:
        print(line)
    if wrong or not number:
        raise SystemExit(1)


def main():
    if len(sys.argv) < 2 or sys.argv[1] in ('-h', '--help'):
        print(__doc__)
        sys.exit(0 if len(sys.argv) > 1 else 2)
    if sys.argv[1] == 'judge':
        judge(sys.argv[2])
    elif sys.argv[1] == 'idle':
        leave_idle(sys.argv[2], *map(int, sys.argv[3:]))
    elif sys.argv[1] == 'hold':
        hold_each(sys.argv[2], *map(int, sys.argv[3:]))
    elif sys.argv[1] == 'fail':
        fail_each(sys.argv[2], int(sys.argv[3]))
    else:
        play(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4:])


main()
