# SPDX-License-Identifier: Apache-2.0
"""Ranks that come and leave, with the daemon killed, or the job cancelled, in between."""

import contextlib
import os
import signal

import pytest

import harness
from test_resize import RANK, Scene, charged_once, kill

needs_failpoints = pytest.mark.skipif(not harness.has_failpoints(), reason="needs a build with -Dfailpoints=true")

# Each is a place between the record that a rank comes and its first instruction. The daemon is killed there. An attempt's first
# start passes each of them once for rank 1.
COMING = ["engine-place@1:kill:2", "engine-spec-written@1:kill:2", "engine-spawn@1:kill:2", "engine-spawned@1:kill:2", "engine-go@1:kill:2"]


def without_failpoints(d):
    d.env.pop("FAIRLEAD_FAILPOINT", None)
    d.up()


@needs_failpoints
@pytest.mark.parametrize("point", COMING)
def test_a_daemon_killed_while_a_rank_comes_starts_it_once(point):
    with harness.Daemon(nodes="sim:1x4xH100-80GB", env={"FAIRLEAD_FAILPOINT": point, "FAIRLEAD_SHEPHERD_FAILPOINT": ""}) as d:
        s = Scene(d, tasks=3, rejoin=True)
        s.wait_begun(3)
        kill(next(line for line in s.told("begin") if line[0] == "1")[2])
        d.process.wait()
        without_failpoints(d)
        s.wait_begun(4)
        s.finish()
        job = s.job()
        assert len(s.told("begin")) == 4 and len(job["attempts"]) == 1, (s.told("begin"), job)
        assert sorted(line[0] for line in s.told("end")) == ["0", "1", "2"]
        charged_once(s, job)
        d.nothing_left()


@needs_failpoints
def test_a_rank_lost_before_the_gang_was_let_go_is_waited_for_by_all():
    with harness.Daemon(nodes="sim:1x4xH100-80GB", env={"FAIRLEAD_FAILPOINT": "effects-before-release:kill",
                                                        "FAIRLEAD_SHEPHERD_FAILPOINT": ""}) as d:
        s = Scene(d, tasks=3, rejoin=True)
        d.process.wait()
        shepherd = next(pid for pid in d.shepherds() if rank_of(pid) == "1")
        kill(shepherd)
        without_failpoints(d)
        s.wait_begun(3)
        s.finish()
        assert sorted(line[0] for line in s.told("begin")) == ["0", "1", "2"]
        charged_once(s, s.job())
        d.nothing_left()


def rank_of(pid):
    with open("/proc/%s/cmdline" % pid, "rb") as f:
        return os.path.basename(f.read().split(b"\0")[1].decode())


@contextlib.contextmanager
def held_starts(nth):
    """A daemon whose n-th start, and all that is told the engine after it, waits until the gate is opened."""
    with harness.Gate() as gate, harness.Daemon(nodes="sim:1x4xH100-80GB", env={
            "FAIRLEAD_FAILPOINT": "effects-before-start:hold:%d" % nth, "FAIRLEAD_FAILPOINT_GATE": gate.path, "FAIRLEAD_SHEPHERD_FAILPOINT": ""}) as d:
        yield d, gate


def cancelled_while_a_rank_comes(d, gate):
    s = Scene(d, tasks=3, rejoin=True)
    s.wait_begun(3)
    s.held = d.submit("true")
    gate.wait()
    kill(next(line for line in s.told("begin") if line[0] == "1")[2])
    s.wait("the rank is to come", lambda: "attempt-grown" in [e["kind"] for e in s.events()])
    d.run("cancel", "--yes", str(s.number))
    s.wait("it is told to stop", lambda: "attempt-stopped" in [e["kind"] for e in s.events()])
    return s


@needs_failpoints
@pytest.mark.parametrize("restart", [False, True])
def test_a_job_cancelled_before_the_engine_hears_of_the_rank_that_comes_ends(restart):
    with held_starts(2) as (d, gate):
        s = cancelled_while_a_rank_comes(d, gate)
        if restart:
            d.kill()
            without_failpoints(d)
        else:
            gate.open()
        assert d.wait(s.number)["state"] == "cancelled"
        assert len(s.told("begin")) == 3
        charged_once(s, s.job())
        d.wait(s.held)
        d.nothing_left()


def gang_of_two(s):
    return s.client.submit({"name": "gang", "tasks": 2, "priority": 10, "command": ["sh", "-c", 'until [ -e "$NOTES.gang" ]; do sleep 0.02; done'],
                            "env": {"NOTES": s.notes}}, "gang")


def test_who_hears_late_that_it_is_to_leave_has_its_whole_grace():
    # By the time its shepherd looks, the other rank has left, and all is told anew.
    with harness.Daemon(nodes="sim:1x4xH100-80GB") as d:
        s = Scene(d, tasks="2..4")
        s.wait_begun(4)
        shepherd = next(int(pid) for pid in d.shepherds() if rank_of(pid) == "2")
        os.kill(shepherd, signal.SIGSTOP)
        gang = gang_of_two(s)
        s.wait("rank 3 has left", lambda: "ranks-left" in [e["kind"] for e in s.events()])
        assert d.wait(d.submit("true", flags=("--gpus", "0")))["state"] == "succeeded"
        os.kill(shepherd, signal.SIGCONT)
        d.wait(gang, "running")
        assert sorted(line[0] for line in s.told("leave")) == ["2", "3"]
        open(s.notes + ".gang", "w").close()
        s.finish()
        d.nothing_left()


def test_how_a_rank_that_was_told_to_leave_ends_fails_nothing():
    with harness.Daemon(nodes="sim:1x4xH100-80GB") as d:
        s = Scene(d, tasks="2..4", command=["python3", "-c", RANK.replace("sys.exit(0)", "sys.exit(3)")])
        s.wait_begun(4)
        d.wait(gang_of_two(s), "running")
        open(s.notes + ".gang", "w").close()
        s.wait_begun(6)
        s.finish()
        job = s.job()
        assert len(job["attempts"]) == 1
        charged_once(s, job)
