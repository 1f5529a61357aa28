# SPDX-License-Identifier: Apache-2.0
"""A real daemon on an empty folder, and the real command, for system tests."""

import http.client
import json
import os
import signal
import socket
import subprocess
import tempfile
import time

BUILD = os.environ.get("FAIRLEAD_BUILD", os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "build-test"))
PROGRAM = os.path.join(BUILD, "src/cli/fairlead")
SHEPHERD = os.path.join(BUILD, "src/shepherd/fairlead-shepherd")
FINAL = ("succeeded", "failed", "cancelled", "timed-out")
PATIENCE_S = float(os.environ.get("FAIRLEAD_TEST_PATIENCE_S", "60"))


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


class Result:
    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    def __repr__(self):
        return "exit %d\n--- stdout\n%s--- stderr\n%s" % (self.code, self.out, self.err)


class Daemon:
    """`with Daemon() as d:` one daemon; d.kill() and d.up() again as often as a test likes."""

    def __init__(self, nodes="sim:4x4xH100-80GB", listen=None, data=None, env=None, user=None):
        self.nodes, self.listen, self.user = nodes, listen, user
        self.data = data or tempfile.mkdtemp(prefix="fairlead-test-")
        self.env = dict(os.environ, FAIRLEAD_DATA=self.data, NO_COLOR="1", **(env or {}))
        self.env.pop("FAIRLEAD_SERVER", None)
        self.process, self.greeting = None, ""

    def __enter__(self):
        self.up()
        return self

    def __exit__(self, kind, value, trace):
        self.end()
        if kind is None:
            subprocess.run(["rm", "-rf", self.data], check=True)

    def up(self, env=None, expect=True):
        words = [PROGRAM, "up", "--data", self.data]
        if self.nodes:
            words += ["--nodes", self.nodes]
        if self.listen:
            words += ["--listen", self.listen]
        log = open(os.path.join(self.data, "test-daemon.log"), "ab")
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=log, stdin=subprocess.DEVNULL,
                                        env=dict(self.env, **(env or {})), text=True, user=self.user,
                                        start_new_session=True)
        self.greeting = self.process.stdout.readline()
        if expect:
            assert self.greeting, "the daemon did not start:\n" + self.log()
        return self

    def log(self):
        with open(os.path.join(self.data, "test-daemon.log"), errors="replace") as f:
            return f.read()[-4000:]

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
        self.run("cancel", "--yes", "--all", check=False)
        try:
            wait_until("jobs end", lambda: not self.jobs(), 30)
        finally:
            self.stop()

    # --- the command -------------------------------------------------------------------------------------------

    def run(self, *words, check=True, stdin=None, env=None, user=None, timeout=None):
        done = subprocess.run([PROGRAM, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, input=stdin, text=True,
                              errors="replace", env=dict(self.env, **(env or {})), user=user, timeout=timeout or PATIENCE_S)
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
        return self.ask("job", str(number))

    def state(self, number):
        return self.job(number)["state"]

    def jobs(self, *flags):
        """Those that are not over."""
        return [j for j in self.ask("jobs", *flags) if j["state"] not in FINAL]

    def wait(self, number, *states, patience=None):
        states = states or FINAL
        wait_until("job %s is %s; it is %s" % (number, states, "?"), lambda: self.state(number) in states, patience)
        return self.job(number)

    def logs(self, number, *flags):
        return self.run("logs", *flags, str(number)).out


def processes_with(text):
    """pids whose environment or command line holds the text."""
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) == os.getpid():
            continue
        for name in ("environ", "cmdline"):
            try:
                with open("/proc/%s/%s" % (entry, name), "rb") as f:
                    if text.encode() in f.read():
                        found.append(int(entry))
                        break
            except OSError:
                pass
    return found


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=PATIENCE_S)
        self.unix_path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(PATIENCE_S)
        self.sock.connect(self.unix_path)


class Client:
    """HTTP over the daemon's socket; retries while the daemon is down, as a careful client does, with the same key."""

    def __init__(self, data):
        self.path = os.path.join(data, "fairlead.sock")
        self.connection = None

    def once(self, method, path, body=None, headers=None):
        if self.connection is None:
            self.connection = UnixConnection(self.path)
        try:
            self.connection.request(method, path, body=json.dumps(body) if body is not None else None,
                                    headers={"Content-Type": "application/json", **(headers or {})})
            answer = self.connection.getresponse()
            text = answer.read()
        except (OSError, http.client.HTTPException):
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
            time.sleep(0.02)

    def submit(self, job, key):
        status, answer = self.until_answered("POST", "/api/v1/jobs", job, {"Idempotency-Key": key})
        assert status in (200, 201), (status, answer)
        return answer["id"]
