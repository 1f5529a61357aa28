# SPDX-License-Identifier: Apache-2.0
"""System calls that fail: in each thread of the daemon and of what it starts, the K-th call of one kind, made to fail by strace.

Whatever fails, nothing acknowledged is lost, no end is silent, and the next start finds all of it. A failing mmap or clone may end the
daemon (a program without memory cannot go on), with a word why; anything else may not, once the daemon is up.

FAIRLEAD_TEST_SYSCALLS sets how many cases are drawn, "all" for each of them; scripts/campaign-syscalls runs them all.
"""

import os
import random
import re
import signal
import subprocess
import threading
import time

import pytest

import harness

CASES = os.environ.get("FAIRLEAD_TEST_SYSCALLS", "60")
SEED = int(os.environ.get("FAIRLEAD_TEST_SEED", str(time.time_ns() // 1000 % 1000000)))
KTH = range(1, 51)
ERRORS = {
    "write": ("EIO", "ENOSPC"), "pwrite64": ("EIO", "ENOSPC"), "pread64": ("EIO",), "read": ("EIO",),
    "fsync": ("EIO", "ENOSPC"), "fdatasync": ("EIO", "ENOSPC"), "sync_file_range": ("EIO",),
    "rename": ("EIO", "ENOSPC"), "renameat": ("EIO",), "unlink": ("EIO",), "mkdir": ("ENOSPC", "EMFILE"), "mkdirat": ("ENOSPC",),
    "openat": ("EMFILE", "EIO", "ENOSPC"), "ftruncate": ("EIO", "ENOSPC"), "fallocate": ("ENOSPC", "EIO"), "fstat": ("EIO",),
    "newfstatat": ("EIO",), "statfs": ("EIO",), "getdents64": ("EIO",), "flock": ("ENOLCK", "EINTR"), "fcntl": ("ENOLCK", "EINVAL", "EIO"),
    "mmap": ("ENOMEM",), "clone": ("EAGAIN",), "clone3": ("EAGAIN",), "vfork": ("EAGAIN",),
    "epoll_create1": ("EMFILE",), "epoll_ctl": ("ENOMEM", "ENOSPC"), "epoll_wait": ("EINTR",), "poll": ("EINTR", "ENOMEM"),
    "eventfd2": ("EMFILE",), "pipe2": ("EMFILE",), "socket": ("EMFILE",), "bind": ("EADDRINUSE",), "accept4": ("EMFILE", "ECONNABORTED"),
    "sendmsg": ("EPIPE", "ENOBUFS"), "sendto": ("EPIPE", "ENOBUFS"), "recvfrom": ("ECONNRESET",), "inotify_init1": ("EMFILE",),
    "inotify_add_watch": ("ENOSPC",), "sched_getaffinity": ("EINVAL",), "chmod": ("EIO",), "fchown": ("EIO",), "kill": ("EPERM",),
}
# Without memory or threads. And libmicrohttpd ends the program, with a word, when it cannot take a descriptor out of epoll.
MAY_END = ("mmap", "clone", "clone3", "epoll_ctl")


def cases():
    every = [(call, error, k) for call, errors in ERRORS.items() for error in errors for k in KTH]
    every.remove(("mmap", "ENOMEM", 1))     # of the loader, before the program, and that says nothing
    if CASES == "all":
        return every
    return random.Random(SEED).sample(every, int(CASES))


def answers(d):
    """After all that failed it answers, if only with what is wrong."""
    client = harness.Client(d.data)
    try:
        client.connection = harness.UnixConnection(client.path)
        client.connection.connect()
        client.connection.sock.settimeout(3)
        return client.once("GET", "/healthz")[0] in (200, 503)
    except (OSError, harness.http.client.HTTPException):
        return False
    finally:
        if client.connection:
            client.connection.close()


class Traced(harness.Daemon):
    """A daemon whose system calls strace makes fail. strace is the grandchild: the process is the daemon's."""

    def up_failing(self, call, error, k):
        self.before = ["strace", "-D", "-f", "-qq", "--seccomp-bpf", "-o", "/dev/null", "-e", "trace=" + call,
                       "-e", "inject=%s:error=%s:when=%d" % (call, error, k)]
        self.hangs = self.mute = False
        before, known = self.process, threading.Event()
        watch = threading.Thread(target=self.watch, args=(before, known))
        watch.start()
        try:
            return self.up(expect=False)
        finally:
            self.before = []
            known.set()
            watch.join()

    def watch(self, before, known):
        """Whether it came up without a greeting, whose write failed, or neither came up nor ended."""
        end, seen = time.monotonic() + harness.PATIENCE_S / 4, 0
        while not known.wait(0.2):
            seen += self.process is not before and answers(self)
            self.mute, self.hangs = seen > 3, time.monotonic() > end
            if self.mute or self.hangs:
                self.process.kill()
                return


def said(d, mark):
    with open(d.data + ".log", errors="replace") as f:
        f.seek(mark)
        return f.read()


def check_end(d, case, mark):
    """It has ended by itself: with a word, and not by a fault of its own."""
    code, text = d.process.wait(), said(d, mark)
    assert code not in (-signal.SIGSEGV, -signal.SIGBUS), (case, code, text)
    assert re.search(r"fairlead(: | error: )|must be true|error while loading|Fatal error", text), ("a silent end", case, code, text)
    if d.greeting and case[0] not in MAY_END:
        raise AssertionError(("ended while it was up", case, code, text))


def submit(d, key, held, text="x"):
    client = harness.Client(d.data)
    try:
        client.connection = harness.UnixConnection(client.path)
        client.connection.connect()
        client.connection.sock.settimeout(3)    # a write by which one thread wakes another is lost, too
        status, answer = client.once("POST", "/api/v1/jobs", {"name": key, "command": ["true", text], "hold": held}, {"Idempotency-Key": key})
        return answer["id"] if status in (200, 201) else None
    except (OSError, harness.http.client.HTTPException):
        return None
    finally:
        if client.connection:
            client.connection.close()


def traced(pid):
    for task in os.listdir("/proc/%d/task" % pid):
        with open("/proc/%d/task/%s/status" % (pid, task)) as f:
            if "TracerPid:\t0\n" in f.read():
                return False
    return True


def submit_large(d, key, jobs):
    number = submit(d, key, True, "x" * 60000)
    if number:
        jobs[key] = number
    return number


def one_case(d, case, jobs):
    mark = os.path.getsize(d.data + ".log")
    d.up_failing(*case)
    assert not d.hangs, ("neither up nor ended", case, said(d, mark))
    if d.greeting:
        for i in range(6):
            key = "%s-%s-%d-%d" % (*case, i)
            number = submit(d, key, i != 5)
            if not number:
                break
            jobs[key] = number
        harness.wait_until("it answers or has ended: %s" % (case,), lambda: not d.alive() or answers(d))
    if d.alive() and d.greeting:
        d.kill()
    elif not d.mute:
        check_end(d, case, mark)
    d.up()
    found = {job["name"]: job["id"] for job in harness.Client(d.data).jobs()}
    lost = {key: number for key, number in jobs.items() if found.get(key) != number}
    assert not lost, (case, lost, d.log())
    d.kill()


def test_whichever_call_fails_nothing_acknowledged_is_lost_and_no_end_is_silent():
    drawn = cases()
    print("seed %d: %d cases" % (SEED, len(drawn)))
    d, jobs, wrong = None, {}, []
    for number, case in enumerate(drawn):
        if number % 50 == 0:
            if d:
                d.__exit__(None, None, None)
            d, jobs = Traced(nodes="sim:1x2xH100-80GB").__enter__(), {}
            d.kill()
        try:
            one_case(d, case, jobs)
        except AssertionError as e:
            wrong.append(str(e))
            print("wrong: %s" % e, flush=True)
            d.destroy()
            d, jobs = Traced(nodes="sim:1x2xH100-80GB").__enter__(), {}
            d.kill()
    d.__exit__(None, None, None)
    assert not wrong, "\n\n".join(wrong)
    print("all %d cases: nothing lost, no silent end" % len(drawn))


def test_after_lock_errors_the_journal_is_read_back_from_nothing():
    """The file system gives no locks for a time: what is new is refused, or taken; then all is as before, in the same process."""
    with harness.Daemon(nodes="sim:1x2xH100-80GB") as d:
        jobs = {}

        def send(i):
            key = "k%d" % i
            number = submit(d, key, True)
            if number:
                jobs[key] = number
            return number
        for i in range(20):
            assert send(i)
        tracer = subprocess.Popen(["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=fcntl", "-e", "inject=fcntl:error=ENOLCK", "-p", str(d.process.pid)])
        harness.wait_until("it is traced", lambda: traced(d.process.pid))
        # Much at once, so that the log is copied and begins again; and a commit that fails, so that the journal is opened.
        refused = sum(1 for i in range(20, 420) if not submit_large(d, "k%d" % i, jobs))
        tracer.terminate()
        tracer.wait()
        harness.wait_until("it takes work again", lambda: send(1000))
        found = {job["name"]: job["id"] for job in harness.Client(d.data).jobs()}
        assert not {key: number for key, number in jobs.items() if found.get(key) != number}, d.log()
        print("%d refused" % refused)
        assert d.alive()
        assert d.run("journal", "verify").code == 0
