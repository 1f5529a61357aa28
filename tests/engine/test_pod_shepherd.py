# SPDX-License-Identifier: Apache-2.0
"""The shepherd of a pod, alone, with a daemon played by the test: what it makes of its answers, and what its task finds and leaves."""

import contextlib
import json
import os
import signal
import socket
import struct
import subprocess
import threading

import harness
import pytest

PROGRAM = os.path.join(os.path.dirname(harness.SHEPHERD), "fairlead-pod-shepherd")
LEASE = {"lease_ms": 3600000}


def received(connection):
    data = connection.recv(65536)
    if not data:
        raise ConnectionResetError("it asks no more")
    return data


class Played:
    """Answers each question with what `answer(path, body)` says: bytes as they are, or a status and JSON."""

    def __init__(self, answer):
        self.answer, self.asked = answer, []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=self.serve, args=(self.listener.accept()[0],), daemon=True).start()

    def serve(self, connection):
        with connection, contextlib.suppress(OSError):
            text = b""
            while b"\r\n\r\n" not in text:
                text += received(connection)
            head, _, body = text.partition(b"\r\n\r\n")
            size = int(next(line for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")).split(b":")[1])
            while len(body) < size:
                body += received(connection)
            path, said = head.split()[1].decode(), json.loads(body)
            self.asked.append((path.rsplit("/", 1)[1], said, head.decode()))
            answer = self.answer(path.rsplit("/", 1)[1], said)
            if not isinstance(answer, bytes):
                status, value = answer
                value = json.dumps(value).encode()
                answer = b"HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n%s" % (status, len(value), value)
            connection.sendall(answer)

    def of(self, what):
        return [said for name, said, _ in self.asked if name == what]


def usual(what, said, lease=LEASE):
    if what == "reports":
        return 200, {"kept": said["reports"][-1]["number"]}
    if what == "lease" and said["wait_ms"]:
        threading.Event().wait(0.2)
    return 200, lease if what == "lease" else {}


@pytest.fixture
def begin(tmp_path):
    started = []

    def run(server, *command, options=(), **env):
        process = subprocess.Popen(
            [PROGRAM, "run", "--home", str(tmp_path), "--server", server.address, "--ended", str(tmp_path / "message"), *options, "--", *command],
            env={"PATH": os.environ["PATH"], "FAIRLEAD_JOB_ID": "3", "FAIRLEAD_ATTEMPT": "5", "FAIRLEAD_RANK": "1",
                 "FAIRLEAD_POD_TOKEN": "fp_5_secret", **env},
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        started.append(process)
        return process

    yield run
    for process in started:
        process.kill()
        process.wait()
        process.stdout.close()


def end(process):
    out, _ = process.communicate(timeout=harness.PATIENCE_S)
    return process.returncode, out


def test_it_needs_nothing_of_the_image_that_it_runs_in(tmp_path):
    with open(PROGRAM, "rb") as f:
        program = f.read()
    if b"__asan_init" in program or b"__tsan_init" in program:
        pytest.skip("sanitizers can't be linked statically")
    at, size, count = (struct.unpack_from(form, program, where)[0] for form, where in (("<Q", 0x20), ("<H", 0x36), ("<H", 0x38)))
    assert 3 not in [struct.unpack_from("<I", program, at + i * size)[0] for i in range(count)], "it names an interpreter (PT_INTERP)"
    copy = tmp_path / "bin"
    subprocess.run([PROGRAM, "install", str(copy)], check=True)
    assert copy.read_bytes() == program and os.access(copy, os.X_OK)


def test_the_task_begins_with_the_first_lease_whatever_is_answered_before(begin, tmp_path):
    nonsense = [b"", b"\0" * 100, b"HTTP/1.1 200 OK\r\n\r\n{}", b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{}", b"x" * 100000,
                (200, {}), (200, {"lease_ms": -1}), (200, {"lease_ms": "long"}), (200, [LEASE]), (401, {}), (404, {}), (503, {}), (500, {}),
                b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", b"HTTP/1.1 999999 OK\r\nContent-Length: 0\r\n\r\n"]
    mark = tmp_path / "mark"

    def answer(what, said):
        if nonsense:
            assert not mark.exists()
            return nonsense.pop(0)
        return usual(what, said)

    server = Played(answer)
    code, out = end(begin(server, "sh", "-c", 'touch %s; env; exit 9' % mark))
    assert code == 9 and mark.exists() and not nonsense
    assert "FAIRLEAD_REPORT_SOCKET=%s/run/report" % tmp_path in out and "secret" not in out
    assert server.of("ended") == [{"code": 9}]
    assert all("Authorization: Bearer fp_5_secret" in head for _, _, head in server.asked)
    assert not (tmp_path / "message").exists()


@pytest.mark.parametrize("status", [403, 409])
def test_a_task_that_may_not_go_on_is_stopped_at_once(begin, tmp_path, status):
    begun = threading.Event()

    def answer(what, said):
        if what == "lease" and begun.is_set():
            return status, {"error": {"code": "x", "message": "attempt 5 is over"}}
        return usual(what, said)

    process = begin(Played(answer), "sh", "-c", "echo begun; sleep 600 & wait")
    assert process.stdout.readline() == "begun\n"
    begun.set()
    code, _ = end(process)
    assert code == 128 + signal.SIGTERM
    assert (tmp_path / "message").read_text() == "fairlead: lost: Fairlead says that it may not go on: attempt 5 is over"


def test_one_that_may_never_begin_does_not(begin, tmp_path):
    code, out = end(begin(Played(lambda what, said: (409, {"error": {"message": "attempt 5 is over"}})), "sh", "-c", "echo begun"))
    assert code == 125 and "begun" not in out and "attempt 5 is over" in (tmp_path / "message").read_text()


def test_what_it_reports_is_sent_until_it_is_kept_and_a_wish_is_told_once(begin, tmp_path):
    refused, wish = [3], {**LEASE, "warning": 1763881200123, "grace_ms": 30000}

    def answer(what, said):
        if what == "reports" and refused[0]:
            refused[0] -= 1
            return (503, {}) if refused[0] else (200, {"kept": 0})
        return usual(what, said, wish if what == "lease" and said["warning"] < wish["warning"] else LEASE)

    job = '''
import os, signal, sys, time
sys.path.insert(0, %r)
asked = []
signal.signal(signal.SIGUSR1, lambda *a: (print("asked", flush=True), asked.append(True)))
import fairlead_job
fairlead_job.report(7)
open(%r, "w").write("12345")
fairlead_job.report(8, checkpoint=%r)
while not asked:
    time.sleep(0.02)
'''
    path = str(tmp_path / "saved")
    server = Played(answer)
    code, out = end(begin(server, "python3", "-c", job % (os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../examples/python"), path, path),
                          options=["--signal", str(int(signal.SIGUSR1))]))
    assert code == 0 and out.count("asked") == 1, out
    last = [r for said in server.of("reports") for r in said["reports"]][-1]
    assert last == {"number": 2, "step": 8, "checkpoint": path, "bytes": 5} and refused == [0]
    assert server.of("lease")[-1]["warning"] == wish["warning"]


def test_what_can_t_be_run_is_told_as_a_shell_would(begin, tmp_path):
    code, out = end(begin(Played(usual), "no-such-program"))
    message = (tmp_path / "message").read_text()
    assert code == 127 and message.startswith('fairlead: start: command not found: "no-such-program", searched in PATH=/'), message
