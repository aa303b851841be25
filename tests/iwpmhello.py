#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""
Usage: tests/iwpmhello.py [PID]

Sends the HELLO of a port mapper with this nlmsg_pid (0), and waits for the kernel's HELLO.
"""
import socket
import struct
import sys

NETLINK_RDMA = 20
RDMA_NL_IWCM = 2
RDMA_NL_IWPM_HELLO = 8
HELLO = RDMA_NL_IWCM << 10 | RDMA_NL_IWPM_HELLO
NLM_F_REQUEST = 1
NLMSG_ERROR = 2
IWPM_NLA_HELLO_ABI_VERSION = 1
ABI_VERSION = 4

claimed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_RDMA) as netlink:
    netlink.bind((0, 0))
    netlink.settimeout(10)
    attribute = struct.pack('=HHHxx', 6, IWPM_NLA_HELLO_ABI_VERSION, ABI_VERSION)
    netlink.sendto(struct.pack('=IHHII', 16 + len(attribute), HELLO, NLM_F_REQUEST, 1, claimed) + attribute, (0, 0))
    kind = None
    while kind != HELLO:
        message = netlink.recv(4096)
        kind = struct.unpack_from('=H', message, 4)[0]
        if kind == NLMSG_ERROR:
            raise OSError(-struct.unpack_from('=i', message, 16)[0], 'the kernel rejects the HELLO')
        print('answer of type', kind, flush=True)
