#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""
Usage: tests/mountd.py ADDRESS PORT

A server of the mount protocol (RFC 1813, appendix I) over TCP that has one export: its file handle is "root". It is for
NFS servers that have no file system (rpcpeer).
"""
import socketserver
import struct
import sys

MOUNTPROC3_MNT = 1
LAST_FRAGMENT = 1 << 31
AUTH_SYS = 1


class Calls(socketserver.StreamRequestHandler):
    def handle(self):
        while mark := self.rfile.read(4):
            length = struct.unpack('>I', mark)[0] & ~LAST_FRAGMENT
            call = struct.unpack('>6I', self.rfile.read(length)[:24])
            # RFC 5531: xid, REPLY, MSG_ACCEPTED, verifier of AUTH_NONE and no length, SUCCESS
            reply = struct.pack('>6I', call[0], 1, 0, 0, 0, 0)
            if call[5] == MOUNTPROC3_MNT:
                reply += struct.pack('>2I4s2I', 0, 4, b'root', 1, AUTH_SYS)
            self.wfile.write(struct.pack('>I', LAST_FRAGMENT | len(reply)) + reply)


socketserver.TCPServer.allow_reuse_address = True
with socketserver.TCPServer((sys.argv[1], int(sys.argv[2])), Calls) as server:
    print('listening', flush=True)
    server.serve_forever()
