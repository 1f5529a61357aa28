# SPDX-License-Identifier: Apache-2.0
"""A real daemon on an empty folder, and the real command, for system tests."""

import contextlib
import http.client
import json
import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time

BUILD = os.environ.get("FAIRLEAD_BUILD", os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "build-test"))
PROGRAM = os.path.join(BUILD, "src/cli/fairlead")
SHEPHERD = os.path.join(BUILD, "src/shepherd/fairlead-shepherd")
FINAL = ("succeeded", "failed", "cancelled", "timed-out")
PATIENCE_S = float(os.environ.get("FAIRLEAD_TEST_PATIENCE_S", "120"))


def folder_for_tests():
    memory = "/dev/shm"
    if "FAIRLEAD_TEST_TMP" in os.environ:
        return os.environ["FAIRLEAD_TEST_TMP"]
    roomy = os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > 2 << 30
    return memory if roomy else tempfile.gettempdir()


TMP = folder_for_tests()


def wait_until(what, test, patience=None):
    """Polls, because what is waited for happens in other processes; fails loudly, never by a fixed sleep."""
    end = time.monotonic() + (patience or PATIENCE_S)
    while True:
        value = test()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError("waited in vain: " + what)
        time.sleep(0.02)


@contextlib.contextmanager
def account(name):
    """An account that is made for a test and removed at its end. Of this run alone: another run of the tests on this machine has its own."""
    busy = 8  # of userdel: a process of the account is still there
    name = "%s-%d" % (name, os.getpid())
    subprocess.run(["useradd", "-m", "-s", "/bin/sh", name], check=True, capture_output=True)
    try:
        yield pwd.getpwnam(name)
    finally:
        def removed():
            done = subprocess.run(["userdel", "-r", name], capture_output=True, text=True)
            assert done.returncode in (0, busy), done
            return done.returncode == 0
        wait_until("no process of the account is left", removed)


class Gate:
    """Where a failpoint that is told to `hold` waits: `path` is for FAIRLEAD_FAILPOINT_GATE."""

    def __enter__(self):
        self.folder = tempfile.mkdtemp(prefix="fairlead-test-gate-", dir=TMP)
        self.path = os.path.join(self.folder, "gate")
        os.mkfifo(self.path)
        return self

    def __exit__(self, *reason):
        shutil.rmtree(self.folder)

    def wait(self):
        """Until somebody is held there."""
        wait_until("somebody is held at the gate", lambda: os.path.exists(self.path + ".held"))

    def open(self):
        with open(self.path, "wb"):
            pass


class Result:
    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    def __repr__(self):
        return "exit %d\n--- stdout\n%s--- stderr\n%s" % (self.code, self.out, self.err)


class Daemon:
    """`with Daemon() as d:` one daemon; d.kill() and d.up() again as often as a test likes.

    Its folder is made in FAIRLEAD_TEST_TMP, else in memory where there is room: what only power loss can show has tests of
    its own, and on a disk most of a test's time would be waiting for it. At the end nothing of the test is left, also when
    it failed. Folders stay where FAIRLEAD_TEST_KEEP is set, or where the `with` is left by a failure: its name is said then.
    """

    def __init__(self, nodes="sim:4x4xH100-80GB", listen=None, data=None, env=None, user=None, cluster=None, store=None,
                 before=(), flags=()):
        """before: a command that runs the daemon, such as prlimit."""
        self.before = before
        self.nodes, self.listen, self.user = None if cluster else nodes, listen, user
        self.cluster, self.store, self.flags = cluster, store, flags
        self.data = data or tempfile.mkdtemp(prefix="fairlead-test-", dir=TMP)
        self.own_data = data is None
        if user is not None and data is None:
            os.chown(self.data, user, user)
        if data is None:
            os.chmod(self.data, 0o711)
        self.env = dict(os.environ, FAIRLEAD_DATA=self.data, NO_COLOR="1", **dict({"FAIRLEAD_GIT": "no"}, **(env or {})))
        self.env.pop("FAIRLEAD_SERVER", None)
        self.process, self.greeting = None, ""

    def __enter__(self):
        try:
            self.up()
        except BaseException:
            self.destroy()
            raise
        return self

    def __exit__(self, kind, value, trace):
        try:
            if kind is None:
                self.end()
        except BaseException as e:
            kind = e
            raise
        finally:
            self.destroy()
            if kind is None and "FAIRLEAD_TEST_KEEP" not in os.environ:
                os.unlink(self.data + ".log")
                if self.own_data:
                    shutil.rmtree(self.data)
            else:
                print("kept: %s and %s.log, which ends so:\n%s" % (self.data, self.data, self.log()))

    def up(self, env=None, expect=True, flags=()):
        """expect=False: it may end again at once (greeting is then empty)."""
        # Should this test run be killed, its daemons go too.
        words = ["setpriv", "--pdeathsig", "KILL", *self.before, PROGRAM, "up", "--data", self.data]
        if self.nodes:
            words += ["--nodes", self.nodes]
        if self.cluster:
            words += ["--cluster", self.cluster]
        if self.listen:
            words += ["--listen", self.listen]
        if self.store:
            words += ["--store", self.store]
        words += [*self.flags, *flags]
        if self.process and self.process.stdout and not self.process.stdout.closed:
            self.process.wait()
            self.process.stdout.close()
        with open(self.data + ".log", "ab") as log:
            self.process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=log, stdin=subprocess.DEVNULL,
                                            env=dict(self.env, **(env or {})), text=True, user=self.user, group=self.user,
                                            extra_groups=[] if self.user is not None else None, start_new_session=True)
        self.greeting = self.process.stdout.readline()
        if expect:
            assert self.greeting, "the daemon did not start:\n" + self.log()
        return self

    def tcp_port(self):
        """Where it listens; it says so in its greeting, among other things."""
        while True:
            found = re.search(r"127\.0\.0\.1:(\d+)", self.greeting)
            if found:
                return found.group(1)
            line = self.process.stdout.readline()
            assert line, "no port is in the greeting:\n" + self.greeting
            self.greeting += line

    def log(self):
        with open(self.data + ".log", errors="replace") as f:
            return f.read()[-6000:]

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(timeout=PATIENCE_S)
        self.process.stdout.close()
        return code

    def alive(self):
        return self.process.poll() is None

    def end(self):
        """Cancels what runs, so that nothing is left behind, then stops."""
        if self.process is None:
            return
        if not self.alive():
            self.up()
        left = [str(job["id"]) for job in self.jobs("--all")]
        for i in range(0, len(left), 50):
            self.run("cancel", "--yes", *left[i:i + 50], check=False)
        wait_until("jobs end", lambda: not self.jobs("--all"))
        wait_until("places are cleared", lambda: not os.listdir(os.path.join(self.data, "attempts")))
        assert self.stop() == 0
        self.nothing_left()

    # Of this daemon alone: the engine puts the tag of its folder into names outside of it.
    def tag(self):
        value = 0xcbf29ce484222325
        for byte in os.path.realpath(self.data).encode():
            value = (value ^ byte) * 0x100000001b3 % 2**64
        return "%08x" % (value % 2**32)

    def shepherds(self):
        """Not the launchers, which are forks of them until their exec: those belong to the task."""
        found = processes_with(self.data + "/attempts/", ("cmdline",))
        return [pid for pid in found if parent_of(pid) not in found]

    def leftovers(self):
        """Shepherds and tasks: what names this folder, or has the report socket that the engine gave."""
        return sorted(set(processes_with(self.data + "/attempts/", ("cmdline",)) + self.tasks()))

    def tasks(self):
        return processes_with("/run/fairlead-%s/" % self.tag(), ("environ",))

    def nothing_left(self):
        """Of jobs that are over. Their tasks are gone before anybody is told of the end; a shepherd that has told it goes a moment after."""
        tasks = self.tasks()
        assert not tasks, "processes left over: %s" % tasks
        wait_until("no shepherd is left", lambda: not self.leftovers())

    def destroy(self):
        """Without the daemon's help, and whatever state it is in."""
        if self.process and self.alive():
            self.kill()
        for _ in range(50):
            left = self.leftovers()
            for pid in left:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            if not left:
                break
            time.sleep(0.02)
        shutil.rmtree("/run/fairlead-" + self.tag(), ignore_errors=True)

    # --- the command -------------------------------------------------------------------------------------------

    def run(self, *words, check=True, stdin=None, env=None, user=None, timeout=None):
        done = subprocess.run([PROGRAM, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, input=stdin, text=True,
                              errors="replace", env=dict(self.env, **(env or {})), user=self.user if user is None else user,
                              timeout=timeout or PATIENCE_S)
        result = Result(done.returncode, done.stdout, done.stderr)
        assert not check or result.code == 0, "fairlead %s: %r" % (" ".join(words), result)
        return result

    def ask(self, *words):
        return json.loads(self.run(*words, "-o", "json").out)

    def submit(self, *command, flags=()):
        return json.loads(self.run("run", "--detach", *flags, "-o", "json", "--", *command).out)["id"]

    def submit_file(self, text, *flags, check=True):
        return self.run("submit", *flags, "-o", "json", "-", stdin=text, check=check)

    def job(self, number):
        """Of an array its first: the number alone means all of it."""
        answer = self.ask("job", str(number))
        return answer if "id" in answer else self.ask("job", "%s[0]" % number)

    def state(self, number):
        """Not by the command, which costs a process each time that somebody waits for a state; what it shows is job()."""
        if self.user is not None:
            return self.job(number)["state"]
        return state_of_job(self.data, number)

    def jobs(self, *flags):
        """Those that are not over, of everybody."""
        return [j for j in self.ask("jobs", "--all", *flags) if j["state"] not in FINAL]

    def wait(self, number, *states, patience=None):
        states = states or FINAL
        wait_until("job %s is %s; it is %s" % (number, states, "?"), lambda: self.state(number) in states, patience)
        return self.job(number)

    def logs(self, number, *flags):
        return self.run("logs", *flags, str(number)).out


def processes_with(text, where=("environ", "cmdline")):
    """pids whose environment or command line holds the text (zombies have neither)."""
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) == os.getpid():
            continue
        for name in where:
            try:
                with open("/proc/%s/%s" % (entry, name), "rb") as f:
                    if text.encode() in f.read():
                        found.append(int(entry))
                        break
            except OSError:
                pass
    return found


def is_alive(pid):
    try:
        with open("/proc/%d/stat" % pid) as f:
            return f.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def parent_of(pid):
    try:
        with open("/proc/%d/stat" % pid) as f:
            return int(f.read().rsplit(")", 1)[1].split()[1])
    except OSError:
        return 0


def has_failpoints():
    """Whether the build under test has them: their names are in the program then."""
    with open(SHEPHERD, "rb") as f:
        return b"shepherd-go-seen" in f.read()


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=PATIENCE_S)
        self.unix_path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(PATIENCE_S)
        self.sock.connect(self.unix_path)


def state_of_job(data, number):
    return Client(data).get("/api/v1/jobs/%d" % number)["state"]


class Client:
    """HTTP over the daemon's socket; tries again while the daemon is down, as a careful client does, with the same key.

    `revive` is called when there is no answer: a test that kills daemons starts one there."""

    def __init__(self, data, revive=None):
        self.path = os.path.join(data, "fairlead.sock")
        self.connection, self.revive = None, revive

    def once(self, method, path, body=None, headers=None):
        if self.connection is None:
            self.connection = UnixConnection(self.path)
        try:
            self.connection.request(method, path, body=json.dumps(body) if body is not None else None,
                                    headers={"Content-Type": "application/json", **(headers or {})})
            answer = self.connection.getresponse()
            text = answer.read()
        except (OSError, http.client.HTTPException):
            self.connection.close()
            self.connection = None
            raise
        return answer.status, json.loads(text) if text else None

    def until_answered(self, method, path, body=None, headers=None):
        end = time.monotonic() + PATIENCE_S
        while True:
            try:
                status, answer = self.once(method, path, body, headers)
                if status != 503:
                    return status, answer
            except (OSError, http.client.HTTPException):
                pass
            assert time.monotonic() < end, "no answer from the daemon for %s %s" % (method, path)
            if self.revive:
                self.revive()
            time.sleep(0.02)

    def get(self, path):
        status, answer = self.until_answered("GET", path)
        assert status == 200, (path, status, answer)
        return answer

    def submit(self, job, key):
        status, answer = self.until_answered("POST", "/api/v1/jobs", job, {"Idempotency-Key": key})
        assert status in (200, 201), (status, answer)
        return answer["id"]

    def jobs(self, query="", since=0):
        """All of them, page by page."""
        found, after = [], since
        while True:
            page = self.get("/api/v1/jobs?limit=500&active=0&after=%d%s" % (after, query))["jobs"]
            found += page
            if len(page) < 500:
                return found
            after = page[-1]["id"]
