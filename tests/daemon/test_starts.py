# SPDX-License-Identifier: Apache-2.0
"""Starts that can't be carried out at once: a file server that does not answer, a disk that is full. And other nodes than before."""

import contextlib
import json
import os
import shutil
import subprocess

import pytest

import harness
from test_trouble import fill, small_disk

needs_failpoints = pytest.mark.skipif(not harness.has_failpoints(), reason="needs a build with -Dfailpoints=true")

# Saves once and fails; told where to resume from, it says so and is done.
SAVES = 'if [ -n "$FAIRLEAD_RESUME_FROM" ]; then echo "from $FAIRLEAD_RESUME_FROM"; exit 0; fi; echo state >"$FAIRLEAD_CHECKPOINT_DIR/one"; ' \
        '"%s" report --step 1 --checkpoint one; exit 1' % harness.PROGRAM


@contextlib.contextmanager
def slow_checkpoints(**env):
    """A daemon whose first look at a checkpoint to resume from waits until the gate is opened."""
    with harness.Gate() as gate, harness.Daemon(nodes="sim:1x4xH100-80GB", env=dict({
            "FAIRLEAD_FAILPOINT": "resume-before-look:hold", "FAIRLEAD_FAILPOINT_GATE": gate.path, "FAIRLEAD_SHEPHERD_FAILPOINT": ""}, **env)) as d:
        yield d, gate


def resumes(d, gate):
    """A job that has failed once and is being started again from its checkpoint, which is being looked at."""
    number = d.submit("sh", "-c", SAVES, flags=("--retries", "1", "--checkpoint", "signal"))
    gate.wait()
    assert len(d.job(number)["attempts"]) == 2
    return number


@needs_failpoints
def test_a_checkpoint_that_is_slow_to_look_at_delays_no_other_start():
    with slow_checkpoints() as (d, gate):
        held = resumes(d, gate)
        for _ in range(3):
            assert d.wait(d.submit("true"))["state"] == "succeeded"
        other = d.submit("sh", "-c", SAVES, flags=("--retries", "1", "--checkpoint", "signal"))
        assert d.wait(other)["state"] == "succeeded" and "/one" in d.logs(other)
        assert d.state(held) not in harness.FINAL
        gate.open()
        job = d.wait(held)
        assert job["state"] == "succeeded" and len(job["attempts"]) == 2, job
        assert d.logs(held).strip().endswith("/checkpoints/%d/one" % held)


@needs_failpoints
def test_a_job_whose_checkpoint_is_being_looked_at_can_be_cancelled_and_never_runs():
    with slow_checkpoints() as (d, gate):
        held = resumes(d, gate)
        d.run("cancel", str(held))
        job = d.wait(held)
        assert job["state"] == "cancelled" and "from" not in d.logs(held)
        assert [t["cause"] for t in job["attempts"][1]["tasks"]] == ["stopped"]
        gate.open()
        assert d.wait(d.submit("true"))["state"] == "succeeded"
        assert "from" not in d.logs(held) and d.job(held)["state"] == "cancelled"


@needs_failpoints
def test_a_file_server_that_hangs_keeps_the_daemon_from_neither_ending_nor_going_on():
    with slow_checkpoints() as (d, gate):
        held = resumes(d, gate)
        assert d.stop() == 0
        d.env.pop("FAIRLEAD_FAILPOINT")
        d.up()
        job = d.wait(held)
        assert job["state"] == "succeeded" and len(job["attempts"]) == 2, job
        assert "/one" in d.logs(held)


# --- other nodes than before ---------------------------------------------------------------------------------------------


def test_nodes_that_went_come_back_when_they_are_declared_again():
    with harness.Daemon(nodes="sim:2x1xH100-80GB") as d:
        for nodes, ready in (("sim:1x1xH100-80GB", ["node0"]), ("sim:2x1xH100-80GB", ["node0", "node1"]),
                             ("sim:1x4xA100-40GB", ["node0"]), ("sim:2x4xA100-40GB", ["node0", "node1"])):
            assert d.stop() == 0
            d.nodes = nodes
            d.up()
            found = {n["name"]: n for n in d.ask("nodes")}
            assert sorted(found) == ready and all(n["state"] == "ready" for n in found.values()), (nodes, found)
            assert not any(n.get("reason") for n in found.values()), found
        assert d.wait(d.submit("true", flags=("--tasks", "2", "--gpus", "4")))["state"] == "succeeded"


# --- an upgrade -----------------------------------------------------------------------------------------------------


def install(folder, *built):
    """Puts programs in the place of those that are there."""
    for program in built:
        new = str(folder / (os.path.basename(program) + ".new"))
        shutil.copy(program, new)
        os.rename(new, new[:-len(".new")])


def test_an_upgrade_by_the_manual_is_not_noticed_by_what_runs(tmp_path, monkeypatch):
    go, programs = tmp_path / "go", tmp_path / "programs"
    programs.mkdir()
    built = harness.PROGRAM, harness.SHEPHERD
    monkeypatch.setattr(harness, "PROGRAM", str(programs / "fairlead"))
    install(programs, *built)
    with harness.Daemon() as d:
        number = d.submit("sh", "-c", "until [ -e %s ]; do sleep 0.02; done; echo ran; exit 7" % go)
        d.wait(number, "running")
        waiting = d.submit("true", flags=("--after", str(d.submit("true", flags=("--hold",)))))
        assert d.stop() == 0
        install(programs, *built)
        d.up()
        assert d.job(number)["state"] == "running" and d.job(waiting)["state"] == "blocked"
        go.touch()
        end = d.wait(number)
        assert (end["state"], end["exit_code"], len(end["attempts"])) == ("failed", 7, 1) and "ran" in d.logs(number)
        assert d.run("journal", "verify").code == 0


# --- a restored copy ---------------------------------------------------------------------------------------------------


def test_a_restored_folder_takes_up_its_jobs_without_complaint(tmp_path):
    go, tar, copy = tmp_path / "go", str(tmp_path / "backup.tar"), str(tmp_path / "copy")
    with harness.Daemon() as d:
        number = d.submit("sh", "-c", "until [ -e %s ]; do sleep 0.02; done; echo ran" % go)
        d.wait(number, "running")
        d.run("journal", "backup", tar)
        d.run("cancel", str(number))
        d.wait(number)
    os.mkdir(copy, 0o711)
    subprocess.run(["tar", "xf", tar, "-C", copy], check=True)
    with harness.Daemon(data=copy) as d:
        harness.wait_until("it is started again", lambda: len(d.job(number)["attempts"]) == 2)
        go.touch()
        assert d.wait(number)["state"] == "succeeded" and "ran" in d.logs(number)
        assert " error: " not in d.log() and "can't be released" not in d.log(), d.log()


@pytest.mark.parametrize("first_is_up", [True, False])
def test_a_daemon_on_a_copy_of_the_folder_leaves_alone_what_still_runs_under_the_first(tmp_path, first_is_up):
    go, ran = tmp_path / "go", tmp_path / "ran"
    with harness.Daemon() as first:
        number = first.submit("sh", "-c", "echo ran >>%s; until [ -e %s ]; do sleep 0.02; done; exit 5" % (ran, go))
        first.wait(number, "running")
        harness.wait_until("it has begun", ran.exists)
        client = harness.Client(first.data)     # what is copied while it is being written may be torn
        harness.wait_until("nothing is being written", lambda: client.get("/api/v1/status")["history_seq"] >= client.get("/api/v1/status")["last_seq"])
        if not first_is_up:
            assert first.stop() == 0
        copy = str(tmp_path / "copy")
        subprocess.run(["cp", "-a", first.data, copy], check=True)
        os.unlink(copy + "/journal/lock")
        with harness.Daemon(data=copy) as second:
            harness.wait_until("it has found what runs elsewhere", lambda: "of which this one is a copy" in second.log())
            assert second.state(number) == "running" and ran.read_text() == "ran\n"
            if not first_is_up:
                first.up()
            assert first.state(number) == "running"
            second.run("hold", str(number))     # or it would start here when it has ended there
            go.touch()
            job = first.wait(number)
            assert (job["state"], job["exit_code"], len(job["attempts"])) == ("failed", 5, 1), job
            harness.wait_until("its end is seen", lambda: second.state(number) == "held")
            assert ran.read_text() == "ran\n"


# --- a full disk ---------------------------------------------------------------------------------------------------


def node_states(d):
    return {n["name"]: n["state"] for n in d.ask("nodes")}


def events(d, kind):
    return [r for r in map(json.loads, d.run("journal", "show", "-o", "json").out.splitlines()) if r["kind"] == kind]


@needs_failpoints
@pytest.mark.parametrize("point", ["engine-claim", "reserve-write"])
def test_a_start_that_lacks_space_costs_no_retry_and_is_tried_again_when_there_is_some(point):
    with harness.Daemon(nodes="sim:2x2xH100-80GB", env={"FAIRLEAD_FAILPOINT": point + ":error", "FAIRLEAD_SHEPHERD_FAILPOINT": ""}) as d:
        number = d.submit("echo", "done", flags=("--tasks", "2"))
        job = d.wait(number)
        assert (job["state"], job["retries_left"], len(job["attempts"])) == ("succeeded", 0, 2), job
        assert "no space" in d.run("journal", "show", "-o", "json").out
        assert set(node_states(d).values()) == {"ready"}
        # Between the two no node was to be had: each was cordoned before the job's first attempt ended.
        cordons = events(d, "node-state")
        ended = events(d, "attempt-ended")[0]["seq"]
        placed = [r["seq"] for r in events(d, "attempt-placed")]
        first = [r["seq"] for r in cordons][:2]
        assert len(cordons) >= 4 and max(first) < ended < placed[1], (cordons, ended, placed)
        assert "its disk is full" in d.log() and "can be started on this machine again" in d.log()


def test_on_a_full_disk_waiting_jobs_wait_with_the_reason_and_start_when_there_is_room(tmp_path):
    with small_disk(tmp_path, 160) as folder:
        data = os.path.join(folder, "data")
        go = tmp_path / "go"
        with harness.Daemon(data=data, nodes="sim:1x1xH100-80GB") as d:
            first = d.submit("sh", "-c", "until [ -e %s ]; do sleep 0.02; done" % go, flags=("--gpus", "1"))
            # Larger than what the end of the first sets free.
            waits = d.submit("sh", "-c", "echo at last #" + "x" * 100000, flags=("--gpus", "1"))
            d.wait(first, "running")
            fill(folder + "/ballast")
            go.touch()
            assert d.wait(first)["state"] == "succeeded"
            harness.wait_until("the node is cordoned", lambda: node_states(d) == {"node0": "cordoned"})
            assert "disk is full" in d.ask("nodes")[0]["reason"]
            d.wait(waits, "queued")
            health = harness.Client(d.data).once("GET", "/healthz")
            assert health[1]["status"] == "degraded" and "disk" in health[1]["problem"], health
            assert "disk is full" in d.run("explain", str(waits), "-v").out + d.run("job", str(waits)).out
            tries = len(d.job(waits)["attempts"])
            d.kill()        # and the next daemon knows why nothing may start
            d.up()
            assert d.state(waits) == "queued"
            os.unlink(folder + "/ballast")
            job = d.wait(waits)
            assert (job["state"], job["retries_left"]) == ("succeeded", 0) and "at last" in d.logs(waits)
            assert len(job["attempts"]) <= tries + 2, "it was started over and over: %d" % len(job["attempts"])
            harness.wait_until("the node is back", lambda: node_states(d) == {"node0": "ready"})


# --- memory -----------------------------------------------------------------------------------------------------------


def test_the_kernel_kills_a_task_for_memory_before_the_daemon_and_the_shepherd():
    with harness.Daemon(nodes="sim:1x1xH100-80GB") as d:
        number = d.submit("sh", "-c", "cat /proc/self/oom_score_adj; exec sleep 1000")
        harness.wait_until("the task has told its value", lambda: d.logs(number).strip())
        task = int(d.logs(number))
        with open("/proc/%d/oom_score_adj" % d.process.pid) as f:
            daemon = int(f.read())
        shepherds = [int(open("/proc/%d/oom_score_adj" % pid).read()) for pid in d.shepherds()]
        assert shepherds and max(shepherds) <= daemon < task, (shepherds, daemon, task)
        d.run("cancel", str(number))
