# SPDX-License-Identifier: Apache-2.0
"""The life of jobs with real processes: retries, limits, dependencies, arrays, holds, cancelling, memory, logs."""

import os
import signal

import pytest

import harness

ROOT = os.geteuid() == 0
HEAVY = "x = bytearray(%d << 20); import os, time; %s"


@pytest.fixture(scope="module")
def d():
    with harness.Daemon(nodes="sim:2x2xH100-80GB") as daemon:
        status, answer = harness.Client(daemon.data).until_answered("PUT", "/api/v1/policy", {"blackhole_failures": 0})
        assert status == 200, answer
        yield daemon


@pytest.fixture
def client(d):
    return harness.Client(d.data)


def submit(d, name, command, **fields):
    return harness.Client(d.data).submit({"name": name, "command": command, **fields}, name)


def lines(path):
    try:
        with open(path) as f:
            return f.read().split()
    except FileNotFoundError:
        return []


# --- failure, limits -----------------------------------------------------------------------------------------------


def test_a_job_is_started_again_as_often_as_it_may_be(d, tmp_path):
    mark = str(tmp_path / "mark")
    number = submit(d, "fails-twice", ["sh", "-c", 'echo x >>"$M"; [ $(wc -l <"$M") -ge 3 ]'], retries=2, env={"M": mark})
    job = d.wait(number)
    assert job["state"] == "succeeded" and [a["why"] for a in job["attempts"]] == ["failed", "failed", "none"], job
    assert len(lines(mark)) == 3
    number = submit(d, "fails-always", ["sh", "-c", "exit 7"], retries=1)
    job = d.wait(number)
    assert (job["state"], job["exit_code"], len(job["attempts"]), job["retries_left"]) == ("failed", 7, 2, 0)


def test_a_failing_rank_ends_its_gang(d):
    number = submit(d, "one-fails", ["sh", "-c", '[ $RANK != 1 ] || exit 5; exec sleep 100000'], tasks=3)
    job = d.wait(number)
    tasks = {t["rank"]: t for t in job["attempts"][0]["tasks"]}
    assert (job["state"], job["exit_code"], job["failed_rank"]) == ("failed", 5, 1)
    assert [tasks[r]["cause"] for r in range(3)] == ["stopped", "exit", "stopped"]


def test_a_job_that_crashes_tells_the_signal(d):
    job = d.wait(submit(d, "crashes", ["sh", "-c", "kill -SEGV $$"]))
    assert (job["state"], job["cause"], job["signal"]) == ("failed", "signal", signal.SIGSEGV)


def test_the_limit_of_time_ends_a_job_for_good(d):
    number = submit(d, "too-long", ["sleep", "100000"], limit="1s", retries=3)
    job = d.wait(number)
    assert job["state"] == "timed-out" and len(job["attempts"]) == 1 and "limit" in job["reason"]
    assert job["ran_ms"] >= 1000


def test_a_working_folder_that_cannot_be_read_is_said_by_name(d, tmp_path):
    job = d.wait(submit(d, "nowhere", ["true"], workdir=str(tmp_path / "not there")))
    assert (job["state"], job["cause"], job["exit_code"]) == ("failed", "exit", 127)
    assert "working directory not found" in job["reason"], job


def test_a_missing_command_ends_a_job_as_it_ends_a_shell(d, tmp_path):
    job = d.wait(submit(d, "typo", ["no-such-command"], tasks=2))
    assert (job["state"], job["cause"], job["exit_code"]) == ("failed", "exit", 127)
    assert "command not found" in job["reason"], job
    assert {t["cause"] for t in job["attempts"][0]["tasks"]} <= {"exit", "stopped"}


# --- order ---------------------------------------------------------------------------------------------------------


def test_a_job_waits_for_those_it_depends_on(d, tmp_path):
    go, seen = str(tmp_path / "go"), str(tmp_path / "seen")
    first = submit(d, "first", ["sh", "-c", 'until [ -e "$GO" ]; do sleep 0.02; done; echo first >>"$SEEN"'],
                   env={"GO": go, "SEEN": seen})
    second = submit(d, "second", ["sh", "-c", 'echo second >>"$SEEN"'], env={"SEEN": seen}, depends_on=[first])
    d.wait(first, "running")
    assert d.state(second) in ("blocked", "queued")
    open(go, "w").close()
    assert d.wait(second)["state"] == "succeeded" and lines(seen) == ["first", "second"]


def test_what_depends_on_a_failed_job_is_cancelled_with_the_reason(d, tmp_path):
    go = str(tmp_path / "go")
    first = submit(d, "fails", ["sh", "-c", 'until [ -e "$GO" ]; do sleep 0.02; done; exit 1'], env={"GO": go})
    second = submit(d, "never", ["true"], depends_on=[first])
    third = submit(d, "never-either", ["true"], depends_on=[second])
    open(go, "w").close()
    for number, on in ((second, first), (third, second)):
        job = d.wait(number)
        assert (job["state"], job["attempts"]) == ("cancelled", []) and "job %d" % on in job["reason"]


def test_an_array_is_as_many_jobs_each_with_its_number(d, tmp_path):
    number = submit(d, "array", ["sh", "-c", 'echo $FAIRLEAD_ARRAY_INDEX/$FAIRLEAD_ARRAY_SIZE >>"$M"'], array=6, gpus=0,
                    env={"M": str(tmp_path / "m")})
    for element in range(number, number + 6):
        assert d.wait(element)["state"] == "succeeded"
    assert sorted(lines(str(tmp_path / "m"))) == ["%d/6" % i for i in range(6)]


def test_a_held_job_waits_for_its_release_also_over_a_restart(tmp_path):
    with harness.Daemon(nodes="sim:1x1xH100-80GB") as d:
        number = submit(d, "held", ["true"], hold=True)
        after = submit(d, "after", ["true"])
        assert d.wait(after)["state"] == "succeeded" and d.state(number) == "held"
        d.kill()
        d.up()
        assert d.state(number) == "held"
        d.run("release", str(number))
        assert d.wait(number)["state"] == "succeeded"


# --- cancelling ----------------------------------------------------------------------------------------------------

UNRULY = r"""
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
marker = sys.argv[1]
def stay(name):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    open(os.path.join(marker, name), "w").write(str(os.getpid()))
    time.sleep(100000)
if os.fork() == 0:
    stay("child")
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        stay("daemonized")
    os._exit(0)
if os.fork() == 0:
    os.setsid()
    for fd in range(3):
        os.close(fd)
    if os.fork() == 0:
        os.execve(sys.executable, [sys.executable, "-c",
            "import os, signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
            "open(%r, 'w').write(str(os.getpid())); time.sleep(100000)" % os.path.join(marker, "bare")], {})
    os._exit(0)
stay("main")
"""


@pytest.mark.parametrize("how", ["cancel", "limit", "end"])
def test_the_end_of_a_job_reaches_every_process_it_made(d, tmp_path, how):
    names = ["main", "child", "daemonized", "bare"]
    program = UNRULY if how != "end" else UNRULY.replace('stay("main")', 'open(os.path.join(marker, "main"), "w").write(str(os.getpid()))\n'
                                                         'while sum(os.path.getsize(os.path.join(marker, name)) > 0 for name in os.listdir(marker)) < 4: time.sleep(0.02)')
    for limit in ("3s", "20s", "3m") if how == "limit" else ("2h",):  # on a busy machine the first may be over before all have begun
        folder = tmp_path / limit
        folder.mkdir()
        number = submit(d, "unruly-%s-%s" % (how, limit), ["/usr/bin/python3", "-c", program, str(folder)], checkpoint={"how": "report", "grace": "1s"}, limit=limit)

        def begun(folder=folder):
            return [int(path.read_text()) for path in (folder / name for name in names) if path.exists() and path.read_text()]
        harness.wait_until("all run", lambda: len(begun()) == 4 or d.state(number) in harness.FINAL)
        if len(begun()) == 4:
            break
    pids = begun()
    assert len(pids) == 4
    if how == "cancel":
        assert all(harness.is_alive(pid) for pid in pids)
        d.run("cancel", str(number))
    job = d.wait(number)
    assert job["state"] == {"cancel": "cancelled", "limit": "timed-out", "end": "succeeded"}[how], job
    assert not [pid for pid in pids if harness.is_alive(pid)], "a process outlived its job"


def test_cancelling_a_gang_before_it_began_runs_nothing(d, tmp_path):
    for i in range(10):
        number = submit(d, "soon-gone-%d" % i, ["sh", "-c", 'echo $RANK >>"$M"; exec sleep 100000'], tasks=2,
                        env={"M": str(tmp_path / str(i))})
        d.run("cancel", str(number))
        job = d.wait(number)
        assert job["state"] == "cancelled", job
        # All or none of its ranks ran, and if none was let go, none ran.
        if job["attempts"] and not job["attempts"][0]["released_ms"]:
            assert not lines(str(tmp_path / str(i)))
    assert not harness.processes_with(str(tmp_path), ("environ",))


# --- memory, logs --------------------------------------------------------------------------------------------------


def test_too_much_memory_is_told_from_a_crash(d):
    # It stays until it is found: where no group enforces the limit, memory is looked at now and then.
    heavy = d.wait(submit(d, "heavy", ["/usr/bin/python3", "-c", HEAVY % (400, "time.sleep(100000)")], memory="64MiB"))
    crash = d.wait(submit(d, "crash", ["/usr/bin/python3", "-c", HEAVY % (8, "os.kill(os.getpid(), 9)")], memory="256MiB"))
    light = d.wait(submit(d, "light", ["/usr/bin/python3", "-c", HEAVY % (8, "os._exit(0)")], memory="256MiB"))
    assert (heavy["state"], heavy["cause"]) == ("failed", "memory"), heavy
    assert (crash["state"], crash["cause"], crash["signal"]) == ("failed", "signal", 9), crash
    assert light["state"] == "succeeded"
    assert heavy["attempts"][0]["tasks"][0]["memory_enforced"] in (True, False)


def test_what_a_job_prints_is_kept_up_to_a_cap_with_its_beginning_and_end(d):
    """256 MiB per stream; this one prints 600 MiB, in the campaign 10 GB. The folder stays small, and nothing else of the daemon is
    disturbed."""
    script = "echo first; yes %s | head -c %s; echo; echo last" % ("x" * 1023, os.environ.get("FAIRLEAD_TEST_PRINTS", "600M"))
    number = submit(d, "flood", ["bash", "-c", script])
    job = d.wait(number)
    assert job["state"] == "succeeded"
    folder = os.path.join(d.data, "logs", str(number))
    size = sum(os.path.getsize(os.path.join(root, name)) for root, _, names in os.walk(folder) for name in names)
    assert 100 << 20 < size <= 257 << 20, size
    client = harness.UnixConnection(os.path.join(d.data, "fairlead.sock"))
    for query, part in (("offset=0", b"first\n"), ("offset=-5", b"last\n")):
        client.request("GET", "/api/v1/jobs/%d/logs/0?%s" % (number, query))
        answer = client.getresponse()
        assert answer.status == 200 and answer.read(6)[:len(part)] == part
        client.close()
