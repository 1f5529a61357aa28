# SPDX-License-Identifier: Apache-2.0
"""Disks that are full while another program goes on writing, on file systems that may refuse a write at any page.

On ext4 with blocks of 1 KiB and on btrfs a file may have the right size and no space for a page that a program has mapped; the
kernel ends the program at the first write to it. On both, the daemon must neither die nor forget what it acknowledged,
whenever it is stopped, killed and started again; a daemon that cannot start says why.

FAIRLEAD_TEST_DISK_RUNS sets the number of runs on each file system; scripts/campaign-full-disk gives more.
"""

import contextlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import pytest

import harness

RUNS = int(os.environ.get("FAIRLEAD_TEST_DISK_RUNS", "5"))
SEED = int(os.environ.get("FAIRLEAD_TEST_SEED", "1"))
MIB = 1 << 20
MAKE = {
    "ext4": (220, ["/sbin/mkfs.ext4", "-q", "-b", "1024", "-m", "0"]),
    "btrfs": (320, ["/sbin/mkfs.btrfs", "-q"]),
}

# A program that shares the disk: takes all of it, gives some back, and takes that again. In its own process: it shall be quick.
WRITER = r"""
import os, random, sys
folder, numbers, files = sys.argv[1], random.Random(int(sys.argv[2])), []
while True:
    name = os.path.join(folder, "ballast-%d" % len(files))
    try:
        with open(name, "wb", buffering=0) as f:
            files.append(name)
            for _ in range(numbers.choice((1, 16, 4096))):
                f.write(b"x" * numbers.choice((100, 1024, 4096, 65536)))
    except OSError:
        for name in numbers.sample(files, min(len(files), numbers.choice((0, 0, 1, 3)))):
            os.truncate(name, 0)
        print("full", flush=True)
"""


@contextlib.contextmanager
def disk(kind):
    """A small file system of that kind, in a file, in memory where there is room; its folder."""
    mib, make = MAKE[kind]
    top = tempfile.mkdtemp(prefix="fairlead-test-disk-", dir=harness.TMP)
    image, folder = os.path.join(top, "image"), os.path.join(top, "disk")
    os.mkdir(folder)
    with open(image, "wb") as f:
        f.truncate(mib * MIB)
    subprocess.run([*make, image], check=True, stdout=subprocess.DEVNULL)
    if subprocess.run(["mount", "-o", "loop", image, folder], capture_output=True).returncode != 0:
        shutil.rmtree(top)
        if kind not in open("/proc/filesystems").read().split():
            pytest.skip("the kernel has no %s" % kind)
        pytest.skip("no file system can be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)
        shutil.rmtree(top)


class Writer:
    """The other program. `with` it the disk is full from the beginning on."""

    def __init__(self, folder, seed):
        self.folder, self.seed = folder, seed

    def __enter__(self):
        self.process = subprocess.Popen([sys.executable, "-c", WRITER, self.folder, str(self.seed)], stdout=subprocess.PIPE)
        assert self.process.stdout.readline() == b"full\n"
        return self

    def __exit__(self, *reason):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        for name in os.listdir(self.folder):
            if name.startswith("ballast-"):
                self.remove(os.path.join(self.folder, name))

    @staticmethod
    def remove(path):
        """A full btrfs may have no room for a removal; what the file had is given back before."""
        os.truncate(path, 0)
        os.unlink(path)


class Submissions:
    """Jobs that were acknowledged, by the key they were sent with."""

    def __init__(self, d):
        self.d, self.jobs, self.sent, self.refused = d, {}, 0, 0

    def send(self):
        """One submission. False: no answer."""
        self.sent += 1
        key = "key-%d" % self.sent
        client = harness.Client(self.d.data)
        try:
            status, answer = client.once("POST", "/api/v1/jobs", {"name": key, "command": ["true", "x" * 60000], "hold": True},
                                         {"Idempotency-Key": key})
        except OSError:
            return False
        finally:
            if client.connection:
                client.connection.close()
        if status in (200, 201):
            self.jobs[key] = answer["id"]
        else:
            assert status == 503, (status, answer)
            self.refused += 1
        return True

    def check(self):
        found = {job["id"]: job["name"] for job in harness.Client(self.d.data).jobs()}
        lost = {key: number for key, number in self.jobs.items() if found.get(number) != key}
        assert not lost, "acknowledged and not there: %s" % lost
        assert len(set(found.values())) == len(found), "a key has two jobs"


def crashed(d):
    """The daemon ended by a signal that nobody sent."""
    code = d.process.poll()
    return code is not None and code not in (0, 1, -signal.SIGKILL) and code < 0


def start(d):
    """True if it is up; a daemon that is not has said why."""
    mark = os.path.getsize(d.data + ".log") if os.path.exists(d.data + ".log") else 0
    d.up(expect=False)
    if d.greeting:
        return True
    code = d.process.wait()
    with open(d.data + ".log", errors="replace") as f:
        f.seek(mark)
        said = f.read()
    assert code > 0, "ended with %d at its start: %s" % (code, said)
    assert re.search(r"fairlead: .*(space|disk|full)", said), said
    return False


def in_time(d):
    """Asked to stop, it does so within 5 s; the machine may be busy, so it gets some more before it counts."""
    began = time.monotonic()
    assert d.stop() == 0, d.log()
    return time.monotonic() - began


def one_run(d, folder, numbers):
    sent = Submissions(d)
    for _ in range(20):
        assert sent.send()
    with Writer(folder, numbers.randrange(1 << 30)):
        for turn in range(3):
            before = sent.refused
            for _ in range(300):
                if not sent.send() or sent.refused - before >= 8:
                    break
            assert not crashed(d), d.log()
            if turn == 2 or numbers.random() < 0.5:
                d.kill()
            else:
                in_time(d)
            for _ in range(3):
                if start(d):
                    break
            if not d.alive():
                break
    if not d.alive():
        d.up()
    harness.wait_until("new work is taken again", lambda: sent.send() and sent.refused == 0 or accepts(sent))
    sent.check()
    return sent


def accepts(sent):
    before = len(sent.jobs)
    return sent.send() and len(sent.jobs) > before


@pytest.mark.parametrize("kind", MAKE)
def test_a_full_disk_with_another_writer_ends_no_daemon_and_loses_nothing(kind):
    for run in range(RUNS):
        numbers = random.Random("%s %d %d" % (kind, SEED, run))
        with disk(kind) as folder:
            with harness.Daemon(nodes="sim:1x1xH100-80GB", data=folder) as d:
                sent = one_run(d, folder, numbers)
                print("%s, run %d: %d acknowledged, %d refused" % (kind, run, len(sent.jobs), sent.refused))
                assert sent.refused > 0
                assert json.loads(d.run("journal", "verify", "-o", "json").out)["ok"]
