#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""
Usage: mpirun … python3 tests/mpi.py all|forever|mesh|alltoall

Ranks that compare each octet that they get with the one that it must be. First each exchanges with each other one. Then
`all`: point to point, all to all, reduce and one-sided, once. `forever`: each with each other one until somebody ends it.
`mesh`: nothing more. `alltoall`: measures all to all, and waits until somebody ends it.
"""
import sys
import time

start = time.monotonic()
import mpi4py  # pylint: disable=wrong-import-position

# Open MPI's one-sided transfers over point to point refuse programs with threads
mpi4py.rc.threads = False
from mpi4py import MPI  # pylint: disable=wrong-import-position

WORLD = MPI.COMM_WORLD
RANK, SIZE = WORLD.Get_rank(), WORLD.Get_size()


def pattern(sender, receiver, octets):
    return bytes((sender * 31 + receiver * 7 + i) % 251 for i in range(octets))


def expect(what, got, want):
    if bytes(got) != want:
        print(f'rank {RANK}: {what}: other data', flush=True)
        WORLD.Abort(1)


def pass_around(octets, distance=1):
    """Each to its neighbour at this distance"""
    to, source = (RANK + distance) % SIZE, (RANK - distance) % SIZE
    got = bytearray(octets)
    WORLD.Sendrecv([pattern(RANK, to, octets), MPI.BYTE], to, recvbuf=[got, MPI.BYTE], source=source)
    expect(f'{octets} octets from {source}', got, pattern(source, RANK, octets))


def meet_each(octets):
    """Point to point: an algorithm for all to all of few octets does not connect each with each"""
    for distance in range(1, SIZE):
        pass_around(octets, distance)


def all_to_all(octets):
    sent = b''.join(pattern(RANK, to, octets) for to in range(SIZE))
    got = bytearray(octets * SIZE)
    WORLD.Alltoall([sent, MPI.BYTE], [got, MPI.BYTE])
    expect(f'all to all, {octets}', got, b''.join(pattern(source, RANK, octets) for source in range(SIZE)))


def one_sided(octets):
    window = MPI.Win.Allocate(octets * SIZE, comm=WORLD)
    # Until the second fence MPI may read them
    sent = [pattern(RANK, to, octets) for to in range(SIZE)]
    window.Fence()
    for to in range(SIZE):
        window.Put([sent[to], MPI.BYTE], to, target=[RANK * octets, octets, MPI.BYTE])
    window.Fence()
    expect('put', window.tomemory(), b''.join(pattern(source, RANK, octets) for source in range(SIZE)))
    got = bytearray(octets)
    to = (RANK + 2) % SIZE
    window.Get([got, MPI.BYTE], to, target=[to * octets, octets, MPI.BYTE])
    window.Fence()
    expect('get', got, pattern(to, to, octets))
    window.Free()


WORLD.Barrier()
if RANK == 0:
    print(f'MPI_Init and the first barrier: {time.monotonic() - start:.1f} s', flush=True)
start = time.monotonic()
meet_each(4096)
WORLD.Barrier()
if RANK == 0:
    print(f'Each with each, for the first time: {time.monotonic() - start:.1f} s', flush=True)
if sys.argv[1] == 'alltoall':
    for size in (64, 1000, 10000):
        all_to_all(size)
        octets, times = bytearray(size * SIZE), []
        for _ in range(11):
            WORLD.Barrier()
            start = time.monotonic()
            WORLD.Alltoall([bytes(octets), MPI.BYTE], [octets, MPI.BYTE])
            WORLD.Barrier()
            times.append(time.monotonic() - start)
        if RANK == 0:
            print(f'all to all of {size} octets: {sorted(times)[5] * 1000:.1f} ms', flush=True)
    if RANK == 0:
        print('running', flush=True)
    time.sleep(10000)
if sys.argv[1] == 'forever':
    if RANK == 0:
        print('running', flush=True)
    while True:
        meet_each(4096)
if sys.argv[1] == 'all':
    for size in (1, 100, 4096, 100000):
        pass_around(size)
        all_to_all(size)
    one_sided(10000)
total = WORLD.allreduce(RANK + 1)
assert total == SIZE * (SIZE + 1) // 2, total
WORLD.Barrier()
if RANK == 0:
    print(f'done: {SIZE} ranks', flush=True)
