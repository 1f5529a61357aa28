# SPDX-License-Identifier: Apache-2.0
"""Ports that tests give to servers: no other process of tests is given one, nor any connection by the kernel."""

import socket
import subprocess
import sys

import ports


def test_no_two_processes_are_given_a_port_of_one_block():
    ask = "import sys, ports\nprint(ports.free_port(), ports.free_port(), flush=True)\nsys.stdin.read()"
    asked = [subprocess.Popen([sys.executable, "-c", ask], cwd=ports.__file__.rpartition("/")[0], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
             for _ in range(4)]
    try:
        given = [list(map(int, p.stdout.readline().split())) for p in asked] + [[ports.free_port(), ports.free_port()]]
    finally:
        for p in asked:
            p.communicate("")
    blocks = {port // ports.SIZE for of_one in given for port in of_one}
    assert len({port for of_one in given for port in of_one}) == 10 and len(blocks) == 5, given
    assert not any(port in ports.given_by_kernel() for of_one in given for port in of_one), given


def test_one_that_somebody_listens_on_is_passed_over():
    mine = ports.Ports()
    with socket.socket() as taken:
        port = mine.next()
        taken.bind(("127.0.0.1", port))
        given = {mine.next() for _ in range(2 * ports.SIZE)}
        assert given and port not in given and all(mine.first <= p < mine.first + ports.SIZE for p in given), (port, given)
    mine.lock.close()
