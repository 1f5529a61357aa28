# SPDX-License-Identifier: Apache-2.0
"""A PostgreSQL server for one test, on loopback, in a folder of its own; and a wire to it that can be cut."""

import contextlib
import glob
import os
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time

import harness
from ports import free_port

PROGRAMS = max(glob.glob("/usr/lib/postgresql/*/bin"), default="/usr/lib/postgresql/15/bin")


def lives(pid):
    """Whether it has not ended; one that nobody has waited for yet has."""
    try:
        with open("/proc/%s/stat" % pid) as file:
            return file.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


class Server:
    """`with Server() as s:` s.kill() and s.start() again as often as a test likes. Root has it run by the package's account: the server refuses root."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="fairlead-postgres-", dir=harness.TMP)  # in memory where there is room: no test here cuts the power
        self.as_user = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
        self.port, self.process = free_port(), None
        self.address = "postgresql://fairlead@127.0.0.1:%d/postgres" % self.port
        if self.as_user:
            shutil.chown(self.folder, "postgres")
        self.call("initdb", "-D", self.folder + "/data", "-U", "fairlead", "-A", "trust", "-E", "UTF8", "--no-sync")

    def call(self, program, *words):
        done = subprocess.run([*self.as_user, os.path.join(PROGRAMS, program), *words], capture_output=True, text=True, cwd="/", timeout=120)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def __enter__(self):
        return self.start()

    def __exit__(self, *reason):
        if self.process:
            self.process.send_signal(signal.SIGQUIT)
            self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def start(self, *settings):
        words = [os.path.join(PROGRAMS, "postgres"), "-D", self.folder + "/data", "-k", self.folder, "-c", "listen_addresses=127.0.0.1",
                 "-c", "port=%d" % self.port, "-c", "max_connections=40"]
        for setting in settings:
            words += ["-c", setting]
        if self.as_user:
            words = ["setpriv", "--reuid", "postgres", "--regid", "postgres", "--init-groups", "--pdeathsig", "KILL", *words]
        with open(self.folder + "/log", "ab") as log:
            self.process = subprocess.Popen(words, stdout=log, stderr=log, stdin=subprocess.DEVNULL, cwd="/")
        end = time.monotonic() + harness.PATIENCE_S
        while time.monotonic() < end and self.process.poll() is None:
            if subprocess.run([os.path.join(PROGRAMS, "pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(self.port)]).returncode == 0:
                return self
            time.sleep(0.05)
        raise AssertionError("PostgreSQL did not start: " + open(self.folder + "/log").read()[-2000:])

    def kill(self):
        """As a machine that goes: all its processes at once. The first is held before its children are counted, so that it makes no more of them; and
        the next server does not start while one of them still holds the shared memory."""
        self.process.send_signal(signal.SIGSTOP)
        children = subprocess.run(["pgrep", "-P", str(self.process.pid)], capture_output=True, text=True).stdout.split()
        for pid in [self.process.pid, *map(int, children)]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()
        while any(map(lives, children)):
            time.sleep(0.002)

    def silent(self, silent=True):
        """It takes connections and answers nothing, or goes on."""
        self.process.send_signal(signal.SIGSTOP)
        for pid in subprocess.run(["pgrep", "-P", str(self.process.pid)], capture_output=True, text=True).stdout.split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGSTOP if silent else signal.SIGCONT)
        if not silent:
            self.process.send_signal(signal.SIGCONT)

    def ask(self, text):
        return self.call("psql", "-h", "127.0.0.1", "-p", str(self.port), "-U", "fairlead", "-d", "postgres", "-At", "-c", text).strip()


class Wire:
    """A port that leads to the server. cut(): connections break, some of them with an answer on its way that nobody gets."""

    def __init__(self, port, seed=1):
        self.target, self.random = port, random.Random(seed)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port, self.pairs, self.deaf, self.open = self.listener.getsockname()[1], [], False, True
        self.lock = threading.Lock()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while self.open:
            try:
                client, _ = self.listener.accept()
                server = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                continue
            with self.lock:
                self.pairs.append((client, server))
            threading.Thread(target=self.carry, args=(client, server, False), daemon=True).start()
            threading.Thread(target=self.carry, args=(server, client, True), daemon=True).start()

    def carry(self, source, target, answers):
        try:
            while True:
                data = source.recv(65536)
                if not data:
                    break
                if not (answers and self.deaf):
                    target.sendall(data)
        except OSError:
            pass
        for s in (source, target):
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def cut(self, hold_answers_s=0.0):
        """First answers are lost for so long, so that what was committed meanwhile is not known to be."""
        self.deaf = hold_answers_s > 0
        time.sleep(hold_answers_s)
        with self.lock:
            pairs, self.pairs = self.pairs, []
        for pair in pairs:
            for s in pair:
                try:
                    s.shutdown(socket.SHUT_RDWR)
                    s.close()
                except OSError:
                    pass
        self.deaf = False

    def close(self):
        self.open = False
        self.listener.close()
        self.cut()
