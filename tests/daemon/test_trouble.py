# SPDX-License-Identifier: Apache-2.0
"""The daemon's wiring under trouble: commits that fail, disks that are full, clocks that are set, clients that leave."""

import contextlib
import glob
import json
import os
import re
import shutil
import socket
import sqlite3
import subprocess
import threading
import time

import pytest

import harness

needs_failpoints = pytest.mark.skipif(not harness.has_failpoints(), reason="needs a build with -Dfailpoints=true")
HOUR_MS = 3600 * 1000


class Stream:
    """A client of the event stream, read by a thread of its own: the numbers it has seen, in order."""

    def __init__(self, path, after=None):
        self.seen, self.resyncs = [], 0
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.connect(path)
        query = "" if after is None else "?after=%d" % after
        self.socket.sendall(("GET /api/v1/events%s HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n" % query).encode())
        self.file = self.socket.makefile("rb")
        assert b" 200 " in self.file.readline()
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def read(self):
        rest = b""
        with contextlib.suppress(OSError, ValueError):  # at its end it is no number either
            while self.file.readline().strip():
                pass
            while size := int(self.file.readline(), 16):
                *lines, rest = (rest + self.file.read(size)).split(b"\n")  # a chunk may end inside a line
                self.file.readline()
                for line in lines:
                    if line.startswith(b"id: "):
                        self.seen.append(int(line[4:]))
                    self.resyncs += line.startswith(b"event: resync")

    def close(self):
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.thread.join()
        self.socket.close()


def records(d):
    """(seq, kind) of all that is in the journal."""
    return [(r["seq"], r["kind"]) for r in (json.loads(line) for line in d.run("journal", "show", "-o", "json").out.splitlines())]


def last_seq(client):
    return client.get("/api/v1/status")["last_seq"]


# --- commits that fail ------------------------------------------------------------------------------------------


@needs_failpoints
@pytest.mark.parametrize("which", range(1, 11))
def test_a_failed_commit_loses_no_job_no_end_and_no_event(which):
    """Each commit in the life of two jobs fails once, and is on disk all the same: the hardest reading of "not known"."""
    with harness.Daemon(env={"FAIRLEAD_FAILPOINT": "gate-commit:error:%d" % which, "FAIRLEAD_SHEPHERD_FAILPOINT": ""}) as d:
        client = harness.Client(d.data)
        first = last_seq(client)
        stream = Stream(client.path)

        def submit(i):
            return client.submit({"name": "j", "command": ["sh", "-c", "sleep 0.05"], "tasks": 2, "gpus": 1}, "key-%d" % i)

        def ends(ids):
            for number in ids:
                job = d.wait(number)
                assert job["state"] == "succeeded" and len(job["attempts"]) == 1, job
        ids = [submit(i) for i in range(2)]
        assert ids == [1, 2]
        ends(ids)
        while "a commit failed" not in d.log():  # a busy machine makes fewer commits of the same work
            ids.append(submit(len(ids)))
            ends(ids[-1:])
        last = last_seq(client)
        harness.wait_until("the stream has everything", lambda: stream.seen and stream.seen[-1] >= last)
        assert stream.seen == list(range(first + 1, stream.seen[-1] + 1)) and not stream.resyncs
        assert client.get("/api/v1/status")["accepting"]
        stream.close()
        assert d.run("journal", "verify").code == 0


def change_in_log(data, word):
    """Changes the first byte of the word wherever it stands in the journal's write-ahead log."""
    path = glob.glob(data + "/journal/*.sqlite-wal")[0]
    with open(path, "r+b") as f:
        places = [m.start() for m in re.finditer(re.escape(word), f.read())]
        assert places
        for at in places:
            f.seek(at)
            f.write(b"\0")


@needs_failpoints
def test_numbers_of_records_found_damaged_after_a_failed_commit_are_not_given_again():
    """The disk spoils acknowledged records while the daemon runs, and a failed commit makes it read them back. With the whole
    segment go users, team, queue and nodes: the daemon takes work all the same. Nobody is shown a state without them, not even
    until the next commit, which is held."""
    points = "gate-after-commit:hold:8,gate-commit:error:8,gate-before-commit:hold:9"
    with harness.Gate() as gate, harness.Daemon(env={"FAIRLEAD_FAILPOINT": points, "FAIRLEAD_SHEPHERD_FAILPOINT": "",
                                                     "FAIRLEAD_FAILPOINT_GATE": gate.path}, flags=("--accept-loss",)) as d:
        client = harness.Client(d.data)
        job = {"command": ["true"], "hold": True}
        commits = lambda: client.get("/api/v1/status")["commits"]
        lost = []
        while commits() < 8:  # the start made one, the gate seven
            lost.append(client.submit(dict(job, name="goes-away"), "goes-away-%d" % len(lost)))
        waiting = post_raw(client.path, dict(job, name="goes-away"), b"last")
        gate.wait()
        assert commits() == 9
        change_in_log(d.data, b"goes-away")
        gate.open()
        harness.wait_until("the journal is read back", lambda: client.get("/api/v1/status")["records_lost"] > len(lost))
        opener = threading.Thread(target=gate.open)
        opener.start()
        new = client.submit(dict(job, name="new"), "new")
        opener.join()
        waiting.close()
        assert len(lost) >= 3 and new > max(lost) + 1, (lost, new)
        assert [j["id"] for j in client.jobs()] == [new]
        status = client.get("/api/v1/status")
        assert status["records_lost"] > len(lost) and status["accepting"], status
        assert client.once("GET", "/healthz")[1]["status"] == "degraded"
        assert "records-lost" in [kind for _, kind in records(d)]
        d.run("release", str(new))
        assert d.wait(new)["state"] == "succeeded"
        d.kill()
        d.up(env={"FAIRLEAD_FAILPOINT": ""})
        assert [j["id"] for j in harness.Client(d.data).jobs()] == [new]


# --- a disk that is full ----------------------------------------------------------------------------------------


@contextlib.contextmanager
def small_disk(tmp_path, mib):
    folder = str(tmp_path / "disk")
    os.mkdir(folder)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=%dm" % mib, "tmpfs", folder], capture_output=True).returncode != 0:
        pytest.skip("no file system can be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


def fill(path):
    with open(path, "wb", buffering=0) as f:
        with contextlib.suppress(OSError):
            while f.write(b"x" * 65536):
                pass
        with contextlib.suppress(OSError):
            while f.write(b"x"):
                pass


def test_on_a_full_disk_running_work_ends_and_can_be_cancelled_and_new_work_is_refused(tmp_path):
    with small_disk(tmp_path, 160) as folder:
        data = os.path.join(folder, "data")
        with harness.Daemon(data=data, listen="127.0.0.1:0") as d:
            client = harness.Client(data)
            go = tmp_path / "go"
            ends = d.submit("sh", "-c", "until [ -e %s ]; do sleep 0.02; done" % go)
            stays = d.submit("sleep", "1000")
            d.wait(ends, "running")
            d.wait(stays, "running")
            fill(folder + "/ballast")

            def refused():
                status, answer = client.once("POST", "/api/v1/jobs", {"name": "new", "command": ["true"]})
                return status == 503 and "full" in answer["error"]["message"]
            harness.wait_until("new work is refused", refused)
            status, health = client.once("GET", "/healthz")
            assert status == 503 and health["status"] == "failing" and "full" in health["problem"]
            assert "fairlead_accepting 0" in metrics(client)
            doctor = d.run("doctor", check=False)
            assert doctor.code != 0 and "full" in doctor.out, doctor
            assert "running" in (d.state(stays), d.state(ends))
            go.touch()
            assert d.wait(ends)["state"] == "succeeded"
            assert client.once("POST", "/api/v1/jobs/%d/cancel" % stays, {})[0] == 200
            os.unlink(folder + "/ballast")
            assert d.wait(stays)["state"] == "cancelled"
            harness.wait_until("there is room again", lambda: client.once("GET", "/healthz")[0] == 200)
            after = d.submit("true")
            assert d.wait(after)["state"] == "succeeded"
            # What was not written in the meantime is in the read models too.
            assert [e for e in client.get("/api/v1/jobs/%d/history" % ends)["events"] if e["kind"] == "job-ended"]
            assert client.get("/api/v1/status")["history_seq"] > 0


def test_output_that_a_nearly_full_disk_had_no_room_for_is_missed_aloud(tmp_path):
    with small_disk(tmp_path, 160) as folder:
        with harness.Daemon(data=os.path.join(folder, "data")) as d:
            go = tmp_path / "go"
            number = d.submit("sh", "-c", "until [ -e %s ]; do sleep 0.02; done; echo said on a full disk" % go)
            d.wait(number, "running")
            with open(folder + "/ballast", "wb") as ballast:    # leaves less than what output keeps free
                os.posix_fallocate(ballast.fileno(), 0, shutil.disk_usage(folder).free - (4 << 20))
            go.touch()
            assert d.wait(number)["state"] == "succeeded"
            for flags in ((), ("-f",)):
                logs = d.run("logs", *flags, str(number))
                assert logs.out == "\n[fairlead: 20 bytes of output were not kept]\n" and "nothing" not in logs.err, logs
            os.unlink(folder + "/ballast")


@needs_failpoints
def test_what_is_decided_again_and_again_is_braked_and_said_until_something_happens():
    """A planted defect: while there is one job its reservation is given up again and again. Without a brake that is thousands of records a second."""
    with harness.Daemon(env={"FAIRLEAD_FAILPOINT": "core-loop:error", "FAIRLEAD_SHEPHERD_FAILPOINT": ""}) as d:
        client = harness.Client(d.data)
        d.submit("sleep", "600")
        harness.wait_until("the brake is on", lambda: client.get("/api/v1/status")["loop"])
        loop = client.get("/api/v1/status")["loop"]
        assert '"reservation-dropped" of 1' in loop and "report it" in loop, loop
        assert client.once("GET", "/healthz")[1] == {"status": "degraded", "problem": loop}
        assert "fairlead_decisions_paused 1\n" in metrics(client)
        doctor = d.run("doctor", check=False)
        assert doctor.code != 0 and "again and again" in doctor.out, doctor
        assert d.log().count("again and again") == 1

        def quiet():
            """Fully braked it decides once in a second; each time is two records, and the clock's."""
            before = client.get("/api/v1/status")["last_seq"]
            time.sleep(2)
            return client.get("/api/v1/status")["last_seq"] - before < 20
        harness.wait_until("the pauses have grown", quiet)
        for i in range(20):     # something happens, which ends each pause at once and hides nothing
            assert client.once("POST", "/api/v1/jobs/1/priority", {"priority": i})[0] == 200
        assert client.get("/api/v1/status")["loop"] == loop
        d.submit("true")        # there are two jobs: the circle is broken
        harness.wait_until("the brake is off", lambda: not client.get("/api/v1/status")["loop"])
        assert client.once("GET", "/healthz")[1]["status"] == "ok"
        text = metrics(client)
        assert "fairlead_decisions_paused 0\n" in text and "fairlead_decision_loops_total 0\n" not in text


def metrics(client):
    with contextlib.closing(harness.UnixConnection(client.path)) as connection:
        connection.request("GET", "/metrics")
        return connection.getresponse().read().decode()


@needs_failpoints
def test_health_says_so_while_the_journal_cannot_be_read_back():
    with harness.Daemon(env={"FAIRLEAD_FAILPOINT": "gate-commit:error:1", "FAIRLEAD_SHEPHERD_FAILPOINT": ""}) as d:
        client = harness.Client(d.data)
        manifest = d.data + "/journal/manifest"
        os.rename(manifest, manifest + ".away")
        status, answer = client.once("POST", "/api/v1/jobs", {"name": "new", "command": ["true"]}, {"Idempotency-Key": "k"})
        assert status == 503 and "same client key" in answer["error"]["message"], answer
        harness.wait_until("it says what is wrong", lambda: "journal is missing" in client.once("GET", "/healthz")[1].get("problem", ""))
        assert "fairlead_accepting 0" in metrics(client)
        assert client.once("GET", "/api/v1/jobs")[0] == 200
        doctor = d.run("doctor", check=False)
        assert doctor.code != 0 and "journal is missing" in doctor.out, doctor
        assert d.log().count("can't be read back") == 1
        os.rename(manifest + ".away", manifest)
        harness.wait_until("it works again", lambda: client.once("GET", "/healthz")[0] == 200)
        number = client.submit({"name": "new", "command": ["true"]}, "k")
        assert d.wait(number)["state"] == "succeeded"


@needs_failpoints
def test_a_commit_that_fails_on_a_full_disk_and_a_journal_that_cannot_be_read_back(tmp_path):
    """The gate looks for space while the journal is closed."""
    with small_disk(tmp_path, 160) as folder:
        data = os.path.join(folder, "data")
        with harness.Daemon(data=data) as d:
            client = harness.Client(data)
            d.kill()
            os.unlink(data + "/journal/reserve")    # what is new finds the disk full, and is then written all the same
            fill(folder + "/ballast")
            d.up({"FAIRLEAD_FAILPOINT": "gate-commit:error:1", "FAIRLEAD_SHEPHERD_FAILPOINT": ""})
            os.rename(data + "/journal/manifest", data + "/journal/manifest.away")
            assert client.once("POST", "/api/v1/jobs", {"name": "new", "command": ["true"], "hold": True}, {"Idempotency-Key": "k"})[0] == 503
            harness.wait_until("it says what is wrong", lambda: "journal is missing" in client.once("GET", "/healthz")[1].get("problem", ""))
            for _ in range(15):     # it looks each half second
                assert d.alive(), d.process.wait()
                time.sleep(0.1)
            os.rename(data + "/journal/manifest.away", data + "/journal/manifest")
            os.unlink(folder + "/ballast")
            harness.wait_until("it works again", lambda: client.once("GET", "/healthz")[0] == 200)
            number = client.submit({"name": "new", "command": ["true"]}, "k2")
            assert d.wait(number)["state"] == "succeeded"


# --- effects behind the journal --------------------------------------------------------------------------------


@needs_failpoints
def test_a_job_cancelled_before_its_start_was_carried_out_ends():
    with harness.Gate() as gate, harness.Daemon(env={"FAIRLEAD_FAILPOINT": "effects-before-start:hold", "FAIRLEAD_FAILPOINT_GATE": gate.path,
                                                     "FAIRLEAD_SHEPHERD_FAILPOINT": ""}) as d:
        held = d.submit("sh", "-c", "echo ran", flags=("--tasks", "2"))
        gate.wait()
        assert d.state(held) == "starting"
        d.run("cancel", str(held))
        gate.open()
        job = d.wait(held)
        assert job["state"] == "cancelled" and "ran" not in d.logs(held), job


@needs_failpoints
def test_a_victim_that_winds_down_is_stopped_by_the_next_daemon():
    """The warning was durable and the daemon gone: the grace goes on, by a clock that nobody sets."""
    with harness.Daemon(nodes="sim:1x1xH100-80GB") as d:
        d.run("queues", "change", "default", "--guarantee", "1")
        assert harness.Client(d.data).until_answered("PUT", "/api/v1/policy", {"min_runtime": "0s"})[0] == 200
        victim = d.submit("sh", "-c", "trap '' TERM USR1; while :; do sleep 0.05; done", flags=("--gpus", "1", "--checkpoint", "signal", "--checkpoint-grace", "2s"))
        d.wait(victim, "running")
        critical = d.submit("sleep", "0.1", flags=("--gpus", "1", "--tier", "critical"))
        harness.wait_until("the victim is warned", lambda: "attempt-warned" in [k for _, k in records(d)] or d.state(critical) == "running")
        d.kill()
        d.up({"FAIRLEAD_TEST_WALL_STEP_MS": str(-HOUR_MS)})
        assert d.wait(critical)["state"] == "succeeded"
        d.wait(victim, "running")
        assert len(d.job(victim)["attempts"]) == 2
        d.run("cancel", str(victim))


# --- clocks -----------------------------------------------------------------------------------------------------


@needs_failpoints
@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("step_ms", [HOUR_MS, -HOUR_MS])
def test_a_clock_set_between_two_daemons_moves_no_time_limit(clean, step_ms):
    with harness.Daemon() as d:
        client = harness.Client(d.data)
        job = d.submit("sleep", "1000", flags=("--limit", "20m"))
        d.wait(job, "running")
        before = client.get("/api/v1/status")["now_ms"]
        if clean:
            assert d.stop() == 0
        else:
            d.kill()
        d.up({"FAIRLEAD_TEST_WALL_STEP_MS": str(step_ms)})
        other = d.submit("true")
        d.wait(other)
        after = client.get("/api/v1/status")["now_ms"]
        assert before <= after < before + HOUR_MS / 4
        assert d.state(job) == "running"
        d.stop()
        d.up()


# --- start-up ---------------------------------------------------------------------------------------------------


def state_read(d):
    """Snapshot's sequence and records behind it, of the newest start."""
    return [tuple(map(int, m)) for m in re.findall(r"snapshot at (\d+), (\d+) records behind it", d.log())][-1]


@needs_failpoints
def test_snapshots_are_taken_while_it_runs_and_used_after_a_kill():
    with harness.Daemon(env={"FAIRLEAD_TEST_SNAPSHOT_EVERY": "20"}) as d:
        for _ in range(6):
            d.wait(d.submit("true"))
        harness.wait_until("a snapshot", lambda: glob.glob(d.data + "/snapshots/*.snap"))
        d.kill()
        d.up()
        at, behind = state_read(d)
        assert at > 0 and behind < len(records(d)) - 1
        assert [j["state"] for j in harness.Client(d.data).jobs()] == ["succeeded"] * 6
        d.wait(d.submit("true"))
        assert d.stop() == 0
        d.up()
        assert state_read(d)[1] == 0


def test_a_damaged_last_record_is_set_aside_and_the_daemon_starts():
    with harness.Daemon() as d:
        d.wait(d.submit("true"))
        d.kill()
        shutil.rmtree(d.data + "/snapshots", ignore_errors=True)
        damage_last(d.data + "/journal")
        d.up()
        assert "damaged" in d.log()
        assert d.wait(d.submit("true"))["state"] == "succeeded"
        d.stop()
        d.up()
        assert d.wait(d.submit("true"))["state"] == "succeeded"


def damage_last(folder):
    with contextlib.closing(sqlite3.connect(sorted(glob.glob(folder + "/*.sqlite"))[-1])) as db:
        done = db.execute("UPDATE record SET text = replace(text, '\"', '!') WHERE seq = (SELECT max(seq) FROM record)").rowcount
        db.commit()
        assert done == 1


def test_a_snapshot_of_another_journal_is_not_used():
    with harness.Daemon() as other:
        other.run("users", "add", "stranger", "--team", "default", "--role", "viewer")
        assert other.stop() == 0
        with harness.Daemon() as d:
            for _ in range(4):
                d.wait(d.submit("true"))
            d.kill()
            shutil.rmtree(d.data + "/snapshots", ignore_errors=True)
            shutil.copytree(other.data + "/snapshots", d.data + "/snapshots")
            d.up()
            assert "of another journal" in d.log()
            assert len(harness.Client(d.data).jobs()) == 4 and "stranger" not in d.run("users").out


def test_in_the_background_it_answers_when_it_is_ready_and_says_why_it_is_not():
    data = harness.tempfile.mkdtemp(prefix="fairlead-test-", dir=harness.TMP)
    os.chmod(data, 0o711)
    words = [harness.PROGRAM, "up", "-d", "--data", data, "--nodes"]
    first = subprocess.run(words + ["sim:1x1xH100"], capture_output=True, text=True, timeout=harness.PATIENCE_S)
    d = harness.Daemon(data=data)
    try:
        assert first.returncode == 0 and "is up: 1 node, 1 simulated GPU." in first.stdout and not first.stderr, first
        assert d.wait(d.submit("true"))["state"] == "succeeded"
        second = subprocess.run(words + ["sim:1x1xH100"], capture_output=True, text=True, timeout=harness.PATIENCE_S)
        assert second.returncode != 0 and data in second.stderr and "another" in second.stderr, second
        bad = subprocess.run(words + ["sim:nonsense"], capture_output=True, text=True, timeout=harness.PATIENCE_S)
        assert bad.returncode == 2 or bad.returncode != 0 and "nonsense" in bad.stderr, bad
    finally:
        for pid in harness.processes_with("up\0-d\0--data\0" + data, ("cmdline",)):
            os.kill(pid, 15)
            harness.wait_until("it ends", lambda pid=pid: not harness.is_alive(pid))
        d.destroy()
        shutil.rmtree(data)


# --- clients ----------------------------------------------------------------------------------------------------


def post_raw(path, body, key):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    s.connect(path)
    text = json.dumps(body).encode()
    s.sendall(b"POST /api/v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nIdempotency-Key: %s\r\nContent-Length: %d\r\n\r\n" % (key, len(text)) + text)
    return s


def test_clients_that_leave_before_the_answer_find_their_jobs():
    with harness.Daemon() as d:
        client = harness.Client(d.data)
        job = {"name": "left", "command": ["true"]}
        for i in range(100):
            post_raw(client.path, job, b"left-%d" % i).close()
        ids = [client.submit(job, "left-%d" % i) for i in range(100)]
        assert len(set(ids)) == 100 and sorted(j["id"] for j in client.jobs()) == sorted(ids)


def test_the_end_with_work_in_every_queue_loses_nothing_that_was_acknowledged():
    with harness.Daemon() as d:
        path = os.path.join(d.data, "fairlead.sock")
        streams = [Stream(path, after=0) for _ in range(50)]
        acknowledged, lock = {}, threading.Lock()

        def submit(who):
            client = harness.Client(d.data)
            with contextlib.suppress(OSError, harness.http.client.HTTPException):
                for i in range(1000):
                    key = "%d-%d" % (who, i)
                    status, answer = client.once("POST", "/api/v1/jobs", {"name": key, "command": ["true"]}, {"Idempotency-Key": key})
                    if status not in (200, 201):
                        return
                    with lock:
                        acknowledged[answer["id"]] = key

        threads = [threading.Thread(target=submit, args=(who,)) for who in range(8)]
        for t in threads:
            t.start()
        harness.wait_until("some are acknowledged", lambda: len(acknowledged) > 100)
        assert d.stop() == 0
        for t in threads:
            t.join()
        for s in streams:
            s.close()
        d.up()
        client = harness.Client(d.data)
        names = {j["id"]: j["name"] for j in client.jobs()}
        assert {n: names.get(n) for n in acknowledged} == acknowledged
        number = max(acknowledged)
        kinds = [e["kind"] for e in client.get("/api/v1/jobs/%d/history" % number)["events"]]
        assert kinds[0] == "job-submitted"


def test_two_thousand_stream_clients_hold_up_nobody():
    """One of them reads nothing at all."""
    with harness.Daemon() as d:
        client = harness.Client(d.data)
        streams = []
        for _ in range(2000):
            s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            s.connect(client.path)
            s.sendall(b"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n")
            streams.append(s)
        harness.wait_until("all listen", lambda: client.get("/api/v1/status")["stream_clients"] == 2000)
        ids = [client.submit({"name": "j", "command": ["true"]}, "s-%d" % i) for i in range(20)]
        for number in ids:
            assert d.wait(number)["state"] == "succeeded"
        last = last_seq(client)
        for s in streams[1:]:
            s.settimeout(harness.PATIENCE_S)
            got, end = b"", time.monotonic() + harness.PATIENCE_S  # comments that keep the stream alive come for ever
            while b"id: %d\n" % last not in re.sub(rb"\r\n[0-9A-Fa-f]+\r\n", b"", got):  # a chunk may end inside the line
                assert time.monotonic() < end, "event %d never came" % last
                piece = s.recv(1 << 16)
                assert piece
                got = got[-64:] + piece
        status = client.get("/api/v1/status")
        print("longest commit %d us, longest turn %d us, %d MiB" % (status["longest_commit_us"], status["longest_turn_us"], status["resident_bytes"] >> 20))
        for s in streams:
            s.close()
        harness.wait_until("all have left", lambda: client.get("/api/v1/status")["stream_clients"] == 0)


def test_readers_writers_streams_and_kills_at_the_same_time():
    """Says nothing of its own: it is what ThreadSanitizer watches (docs/testing.md), and nobody may get a 500."""
    with harness.Daemon(env={"FAIRLEAD_TEST_SNAPSHOT_EVERY": "200"}) as d:
        path = os.path.join(d.data, "fairlead.sock")
        stop, wrong = threading.Event(), []

        def keep_on(work):
            client, i = harness.Client(d.data), 0
            while not stop.is_set():
                i += 1
                # ValueError: the metrics are no JSON
                with contextlib.suppress(OSError, ValueError, harness.http.client.HTTPException):
                    status, answer = client.once(*work(i))
                    if status in (500, 501):
                        wrong.append((work(i), status, answer))

        works = [
            lambda i: ("POST", "/api/v1/jobs", {"name": "w", "command": ["sleep", "0.0%d" % (i % 10)], "gpus": i % 3, "tasks": 1 + i % 2}),
            lambda i: ("POST", "/api/v1/jobs/%d/cancel" % (1 + i % 40), {}),
            lambda i: ("GET", "/api/v1/jobs?limit=100"),
            lambda i: ("GET", "/api/v1/jobs/%d" % (1 + i % 40)),
            lambda i: ("GET", "/api/v1/jobs/%d/explain" % (1 + i % 40)),
            lambda i: ("GET", "/api/v1/jobs/%d/history" % (1 + i % 40)),
            lambda i: ("GET", "/metrics") if i % 2 else ("GET", "/api/v1/nodes"),
            lambda i: ("GET", "/api/v1/queues") if i % 2 else ("GET", "/api/v1/status"),
        ]
        threads = [threading.Thread(target=keep_on, args=(work,)) for work in works]
        for t in threads:
            t.start()
        client = harness.Client(d.data)
        try:
            for _ in range(2):
                streams = [Stream(path, after) for after in (None, 0, 0, None, 10)]
                aim = last_seq(client) + 300
                harness.wait_until("300 records more", lambda aim=aim: last_seq(client) > aim)
                for pid in d.shepherds()[:2]:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, 9)
                for s in streams:
                    s.close()
                d.kill()
                d.up()
            d.stop()
        finally:
            stop.set()
            for t in threads:
                t.join()
        d.up()
        assert not wrong, wrong[:3]


# --- the history database ------------------------------------------------------------------------------------------


def test_a_history_database_that_cannot_be_opened_keeps_no_daemon_from_starting():
    with harness.Daemon() as d:
        client = harness.Client(d.data)
        before = d.submit("true")
        d.wait(before)
        d.stop()
        os.rename(d.data + "/history.sqlite", d.data + "/history.away")
        os.mkdir(d.data + "/history.sqlite")
        d.up()
        status, health = client.once("GET", "/healthz")
        assert status == 200 and health["status"] == "degraded" and "history.sqlite" in health["problem"], health
        doctor = d.run("doctor", check=False)
        assert doctor.code == 1 and "history.sqlite" in doctor.out, doctor
        after = d.submit("true")
        assert d.wait(after)["state"] == "succeeded"
        status, answer = client.once("GET", "/api/v1/jobs/%d/history" % after)
        assert status == 503 and "doctor" in answer["error"]["message"], answer
        assert d.log().count("history.sqlite") == 1, d.log()
        os.rmdir(d.data + "/history.sqlite")
        harness.wait_until("it is made again", lambda: client.once("GET", "/healthz")[1]["status"] == "ok")
        for number in (before, after):
            assert [e for e in client.get("/api/v1/jobs/%d/history" % number)["events"] if e["kind"] == "job-ended"]
