# SPDX-License-Identifier: Apache-2.0
"""The local engine on a string (engine_drive.c), for tests: commands go down, facts come up."""

import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

BUILD = os.environ.get("FAIRLEAD_BUILD", os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../build-test"))
DRIVE = os.path.join(BUILD, "tests/engine/engine_drive")
# Every user must be able to run it, which is not so for one in somebody's home.
PYTHON = "/usr/bin/python3" if os.access("/usr/bin/python3", os.X_OK) else sys.executable
SHEPHERD = os.path.join(BUILD, "src/shepherd/fairlead-shepherd")
PATIENCE_S = float(os.environ.get("FAIRLEAD_TEST_PATIENCE_S", "120"))


def wait_until(what, test):
    """For what happens in other processes; never a fixed sleep, loud when it does not come."""
    end = time.monotonic() + PATIENCE_S
    while True:
        value = test()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError("waited in vain: " + what)
        time.sleep(0.01)


def has_failpoints():
    """Whether the build under test has them: their names are in the program then."""
    with open(SHEPHERD, "rb") as file:
        return b"shepherd-go-seen" in file.read()


def processes_with(word):
    """Pids of processes whose command line has the word (zombies have none)."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/cmdline" % pid, "rb") as file:
                if word.encode() in file.read():
                    found.append(int(pid))
        except OSError:
            pass
    return found


def parent_of(pid):
    try:
        with open("/proc/%d/stat" % pid) as file:
            return int(file.read().rsplit(")", 1)[1].split()[1])
    except OSError:
        return 0


def is_alive(pid):
    try:
        with open("/proc/%d/stat" % pid) as file:
            return file.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


class Drive:
    """One engine on one folder. kill() and up() again is a restart of the daemon."""

    def __init__(self, folder=None, env=None, user=None):
        self.folder = folder or tempfile.mkdtemp(prefix="fairlead-engine-")
        os.chmod(self.folder, 0o711)
        if user is not None:
            os.chown(self.folder, user, user)
        self.user, self.process, self.facts = user, None, []
        self.up(env)

    def up(self, env=None):
        self.lines, self.answers = queue.Queue(), queue.Queue()
        environment = dict(os.environ, **(env or {}))
        group = os.environ.get("FAIRLEAD_TEST_GROUP")       # as a service manager does it: each start goes into this control group
        enter = ["sh", "-c", 'echo 0 >"$0/cgroup.procs" && exec "$@"', group] if group and self.user is None else []
        self.process = subprocess.Popen(enter + [DRIVE, self.folder, SHEPHERD], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True, env=environment, user=self.user, group=self.user,
                                        extra_groups=[] if self.user is not None else None)
        threading.Thread(target=self._read, args=(self.process.stdout, self.lines, self.answers), daemon=True).start()
        assert self.answer("open")["ok"]

    @staticmethod
    def _read(stream, lines, answers):
        for line in stream:
            thing = json.loads(line)
            (answers if "did" in thing else lines).put(thing)
        lines.put(None)
        answers.put(None)

    def answer(self, what):
        reply = self.answers.get(timeout=PATIENCE_S)
        assert reply is not None, "engine_drive ended before it answered " + what
        return reply

    def send(self, *words):
        """Without waiting for an answer."""
        self.process.stdin.write("\t".join(str(word).replace("\n", "\\n") for word in words) + "\n")
        self.process.stdin.flush()

    def do(self, *words):
        self.send(*words)
        return self.answer(words[0])

    def must(self, *words):
        reply = self.do(*words)
        assert reply["ok"], (reply, self.facts)

    def start(self, attempt, *argv, **options):
        env = options.pop("env", [])
        words = ["%s=%s" % pair for pair in options.items()] + ["env=" + item for item in env]
        self.must("start", attempt, *words, *(("--",) + argv if argv else ()))

    def next_fact(self):
        fact = self.lines.get(timeout=PATIENCE_S)
        if fact is not None:
            self.facts.append(fact)
        return fact

    def wait_fact(self, kind, attempt, rank=0):
        """The first such fact, among those that came already or come now."""
        seen = 0
        while True:
            for fact in self.facts[seen:]:
                if (fact["kind"], fact["attempt"], fact["rank"]) == (kind, attempt, rank):
                    return fact
                failed = fact["kind"] == "exited" and (fact["attempt"], fact["rank"]) == (attempt, rank)
                assert not failed or kind == "report", fact
            seen = len(self.facts)
            assert self.next_fact() is not None, "engine_drive ended while waiting for %s of %d/%d" % (kind, attempt, rank)

    def run(self, attempt, *argv, **options):
        """Start, release, and the fact of its end (rank 0)."""
        self.begin(attempt, *argv, **options)
        return self.wait_fact("exited", attempt)

    def begin(self, attempt, *argv, **options):
        self.start(attempt, *argv, **options)
        for rank in range(options.get("count", 1)):
            self.wait_fact("ready", attempt, rank)
            failed = [fact for fact in self.facts if fact["kind"] == "exited" and fact["attempt"] == attempt]
            assert not failed, failed
        self.must("release", attempt)

    def place(self, attempt, rank=0):
        return os.path.join(self.folder, "attempts", str(attempt), str(rank))

    def log(self, attempt, rank=0, stream="out", job=1):
        """The whole log as kept: head and parts, in order."""
        folder = os.path.join(self.folder, "logs", str(job), str(attempt))
        if not os.path.isdir(folder):
            return ""
        prefix = "%d.%s" % (rank, stream)
        names = sorted(name for name in os.listdir(folder) if name == prefix or name.startswith(prefix + "."))
        parts = []
        for name in names:
            with open(os.path.join(folder, name), "rb") as file:
                parts.append(file.read())
        return b"".join(parts).decode(errors="replace")

    def shepherds(self):
        return processes_with(self.folder + "/attempts/")

    def shepherd(self, attempt, rank=0):
        """Its launcher has the same command line until it becomes the task; it is the shepherd's child."""
        found = processes_with(self.place(attempt, rank) + "\0")
        found = [pid for pid in found if parent_of(pid) not in found]
        assert len(found) == 1, found
        return found[0]

    def groups(self):
        """Control groups of this folder's tasks that are still there."""
        tag = self.tag()
        found = []
        for root, folders, _ in os.walk("/sys/fs/cgroup"):
            found += [os.path.join(root, name) for name in folders if name.startswith("fairlead.%s." % tag)]
        return found

    def tag(self):
        value = 0xcbf29ce484222325
        for byte in os.path.realpath(self.folder).encode():
            value = (value ^ byte) * 0x100000001b3 % 2**64
        return "%08x" % (value % 2**32)

    def half_started(self):
        """Children of an engine, also of one that was killed, that are not shepherds yet."""
        return [pid for pid in processes_with("%s\0%s\0" % (DRIVE, self.folder)) if pid != self.process.pid]

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.facts = []

    def quit(self):
        if self.process.poll() is None:
            self.send("quit")
            self.process.wait(timeout=PATIENCE_S)

    def clear(self):
        """Ends all that is left of a test, by pids found in its own folder."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for pid in self.shepherds():
            try:
                os.kill(pid, signal.SIGCONT)
            except ProcessLookupError:
                pass
        self.up()
        self.must("adopt")
        wait_until("stale attempts cleared", lambda: not [n for n in os.listdir(self.folder + "/attempts")])
        self.quit()
        assert not self.groups()
        shutil.rmtree(self.folder)

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        if kind is None:
            self.clear()
        else:
            self.process.kill()
