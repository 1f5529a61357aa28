# SPDX-License-Identifier: Apache-2.0
"""Ports for servers that can't be asked which one they took. A port that the kernel gives for a moment may be somebody else's before the server binds it:
of another test, or of any connection that goes out. These are outside the range from which the kernel gives, in blocks of which each process of tests
has one to itself: who has it holds an abstract socket, which goes with the process. Ports of a block are given in turn, so that one whose server is
killed and started again is not given meanwhile."""

import errno
import os
import socket
import threading

FIRST, LAST, SIZE = 12000, 28000, 250  # 29500 is what PyTorch takes by itself
LOCK = threading.Lock()


def given_by_kernel():
    with open("/proc/sys/net/ipv4/ip_local_port_range") as f:
        low, high = map(int, f.read().split())
    return range(low, high + 1)


class Ports:
    def __init__(self):
        given = given_by_kernel()
        blocks = list(range(FIRST, LAST, SIZE))
        blocks = [b for b in blocks if b not in given and b + SIZE - 1 not in given] or blocks
        self.process, self.lock, self.turn = os.getpid(), socket.socket(socket.AF_UNIX), 0
        self.first = next((b for b in blocks if self.take(b)), None)
        assert self.first, "%d processes of tests have all ports from %d to %d" % (len(blocks), FIRST, LAST - 1)

    def take(self, block):
        try:
            self.lock.bind("\0fairlead-test-ports-%d" % block)
            return True
        except OSError as e:
            if e.errno != errno.EADDRINUSE:
                raise
            return False

    def next(self):
        for _ in range(SIZE):
            port = self.first + self.turn
            self.turn = (self.turn + 1) % SIZE
            with socket.socket() as s:
                try:
                    s.bind(("127.0.0.1", port))
                    return port
                except OSError as e:
                    if e.errno != errno.EADDRINUSE:
                        raise
        raise AssertionError("something listens on all ports from %d to %d" % (self.first, self.first + SIZE - 1))


PORTS = None


def free_port():
    global PORTS
    with LOCK:
        if not PORTS or PORTS.process != os.getpid():
            PORTS = Ports()
        return PORTS.next()
