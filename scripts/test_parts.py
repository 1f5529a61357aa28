#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the parts of the suite, and says at the end how much passed, failed and was left out; scripts/test calls it.

Everything is compiled first. Then two lanes run at once: one computes, the other mostly waits for processes; a part's
output is shown whole when the part is over. A test that was left out is named with its reason, and one that was left out
for no reason listed here counts as failed."""

import collections
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

ROOT = os.geteuid() == 0
TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TEST = ["build-test", "-Dfailpoints=true", "-Dwerror=true"]
ASAN = ["build-asan", "-Dfailpoints=true", "-Doptimization=1", "-Db_sanitize=address,undefined", "-Db_pie=false"]
BUILDS = {  # in this order; each part names what it needs
    "test": ["scripts/build", *TEST],
    "asan": ["scripts/build", *ASAN],
    "hashes": ["scripts/test-hashes", "--build"],
    "tsan": ["scripts/test-threads", "--build"],
    "kubernetes": ["scripts/kubernetes-bed"],
}
PARTS = {  # lane, title, builds, command
    "check": ("computes", "style, layers, purity, analysers", ["test", "hashes"], ["scripts/check"]),
    "unit": ("computes", "gcc, failpoints", ["test"], ["scripts/test-build", *TEST]),
    "sanitize": ("computes", "address and undefined behaviour", ["asan"],
                 ["scripts/test-build", "--no-suite", "power", "--no-suite", "processes", *ASAN]),
    "builds": ("computes", "no warning from clang; same hashes under gcc -O0, gcc -O2, clang -O2", ["test", "hashes"], ["scripts/test-hashes"]),
    "system": ("waits", "the real daemon and command", ["test"], ["scripts/test-system"]),
    "plain": ("waits", "what differs, as an account made for it", ["test"], ["scripts/test-plain"]),
    "threads": ("waits", "the real daemon and shepherds under ThreadSanitizer", ["tsan"], ["scripts/test-threads"]),
    "kubernetes": ("waits", "a real API server", ["test", "kubernetes"], ["scripts/test-kubernetes"]),
}


def can_mount():
    return ROOT and subprocess.run(["unshare", "--mount", "mount", "-t", "tmpfs", "tmpfs", "/mnt"], capture_output=True).returncode == 0


def has_groups(plain):
    """Control groups that this account may make, as the local engine looks for them."""
    return not plain and any(os.access(path, os.W_OK) for path in ("/sys/fs/cgroup/memory", "/sys/fs/cgroup/cgroup.subtree_control"))


# A test is left out for one of these reasons only, and only where the condition holds: a function of "as a plain account?".
LEFT_OUT = (
    (r"needs root$|needs two accounts$|calls as several accounts$", "only root has other accounts", lambda plain: plain),
    (r"no file system can be mounted here$", "mounting needs root", lambda plain: plain or not can_mount()),
    (r"the kernel has no btrfs$", "there is no such file system here", lambda plain: "btrfs" not in open("/proc/filesystems").read().split()),
    (r"needs a memory group$|a_group_lists_owns_kills_and_goes$", "control groups can't be made here", lambda plain: not has_groups(plain)),
    (r"a_folder_of_another_owner_is_refused$", "only root can give a folder away", lambda plain: plain),
    (r"with_the_rights_of_the_user_and_not_of_root$|through_a_process_of_somebody_else$", "only root takes on another account's rights", lambda plain: plain),
)
pids, pids_lock = set(), threading.Lock()


class Part:
    def __init__(self, name):
        self.name, (self.lane, self.title, self.builds, self.command) = name, PARTS[name]
        self.passed = self.failed = 0
        self.left_out = collections.Counter()

    def plain(self):
        return not ROOT or self.name == "plain"

    def read(self, output, status):
        """Counts and what was left out, from the closing lines of the runners."""
        lines = output.splitlines()
        counts = [re.match(r"(\d+) passed, (\d+) failed$", line) for line in lines]
        self.passed = sum(int(m.group(1)) for m in counts if m)
        self.failed = sum(int(m.group(2)) for m in counts if m)
        for line in lines:
            m = re.match(r"(?:not run here: (?:(\d+) tests of )?|SKIPPED \[(\d+)\] )(.*)$", line)
            if m:
                self.left_out[m.group(3)] += int(m.group(1) or m.group(2) or 1)
        if status != 0 and self.failed == 0 or self.passed == 0:
            self.failed += 1  # it ended before it could count
        self.failed += len(self.unexpected())

    def reason(self, what):
        return next((why for pattern, why, holds in LEFT_OUT if re.search(pattern, what) and holds(self.plain())), None)

    def unexpected(self):
        return [what for what in self.left_out if self.reason(what) is None]


def call(command, output):
    """Its exit status, and the seconds of CPU that it and its children used."""
    with pids_lock:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, start_new_session=True)
        pids.add(process.pid)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    with pids_lock:
        pids.discard(process.pid)
    return process.returncode, used.ru_utime + used.ru_stime


def stop(number, frame):
    for pid in pids:
        try:
            os.killpg(pid, signal.SIGTERM)
        except ProcessLookupError:
            pass
    sys.stdout.flush()
    os._exit(128 + number)


def compile_all(names):
    """Returns what could not be built."""
    print("\n=== building: %s" % ", ".join(names), flush=True)
    broken, began, used = set(), time.monotonic(), 0
    for name in names:
        status, seconds = call(BUILDS[name], None)
        used += seconds
        if status != 0:
            broken.add(name)
    print("=== building: %s in %d s (%d s of CPU)" % ("FAILED" if broken else "done", time.monotonic() - began, used), flush=True)
    return broken


def run_lane(parts, shown):
    for part in parts:
        began = time.monotonic()
        with tempfile.TemporaryFile("w+", errors="replace") as output:
            status, used = call(part.command, output)
            output.seek(0)
            text = output.read()
        with shown:
            print("\n=== %s: %s\n%s" % (part.name, part.title, text), end="")
            part.read(text, status)
            end = "FAILED" if part.failed else "passed"
            print("=== %s: %s in %d s (%d s of CPU)" % (part.name, end, time.monotonic() - began, used), flush=True)


def run(parts):
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, stop)
    began = time.monotonic()
    broken = compile_all([b for b in BUILDS if any(b in part.builds for part in parts)])
    for part in parts:
        part.failed = 1 if broken & set(part.builds) else 0
    middle = time.monotonic()
    shown = threading.Lock()
    able = [part for part in parts if not part.failed]
    lanes = [threading.Thread(target=run_lane, args=([p for p in able if p.lane == lane], shown)) for lane in ("computes", "waits")]
    for lane in lanes:
        lane.start()
    for lane in lanes:
        lane.join()
    print("\nBuilt in %d s, run in %d s." % (middle - began, time.monotonic() - middle))


def main():
    os.chdir(TOP)
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    if sys.argv[1:] in (["--help"], ["-h"]):
        print(__doc__)
        return 0
    wanted = sys.argv[1:] or [name for name in PARTS if name != "plain" or ROOT]
    wrong = [name for name in wanted if name not in PARTS]
    if wrong:
        print("no such part: %s (there are: %s)" % (wrong[0], " ".join(PARTS)), file=sys.stderr)
        return 2
    if not ROOT:
        print("Not root: what needs root or other accounts is not run; it is named at the end.")
    parts = [Part(name) for name in PARTS if name in wanted]
    run(parts)
    for part in parts:
        for what, count in part.left_out.items():
            times = "" if count == 1 else "%d tests of " % count
            print("left out: %s: %s%s (%s)" % (part.name, times, what, part.reason(what) or "NO REASON THAT HOLDS HERE"))
    if not any(part.left_out for part in parts):
        print("Nothing was left out.")
    failed = [part.name for part in parts if part.failed]
    print("Parts that failed: %s" % " ".join(failed) if failed else "All parts passed: %s" % " ".join(p.name for p in parts))
    print("%d passed, %d failed" % (sum(p.passed for p in parts), sum(p.failed for p in parts)))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
