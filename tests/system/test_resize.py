# SPDX-License-Identifier: Apache-2.0
"""Ranks that are lost and started anew, that leave and come, in running attempts of real processes."""

import json
import os
import signal
import time

import harness

# Notes what it is told, and leaves by itself when it is asked to; ends with 0 when it may.
RANK = r"""
import json, os, select, sys
sys.path.insert(0, os.environ["EXAMPLES"])
import fairlead_job
notes, me = os.environ["NOTES"], os.environ["FAIRLEAD_RANK"]
def note(*words):
    with open(notes, "a") as f:
        f.write(" ".join(map(str, words)) + "\n")
world = fairlead_job.World()
note("begin", me, os.environ["FAIRLEAD_ATTEMPT"], os.getpid(), os.environ["RANK"], os.environ["WORLD_SIZE"], world.generation)
print("hello of", me, world.generation, flush=True)
while not os.path.exists(notes + ".finish"):
    if select.select([world], [], [], 0.05)[0] and world.changed():
        note("told", me, world.generation, world.size, world.rank, json.dumps(world.ranks).replace(" ", ""))
        if world.rank < 0:
            note("leave", me)
            sys.exit(0)
note("end", me)
"""
EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples", "python")


class Scene:
    def __init__(self, d, **fields):
        self.d, self.client = d, harness.Client(d.data)
        self.notes = os.path.join(d.data, "notes")
        open(self.notes, "w").close()
        os.chmod(self.notes, 0o666)
        status, answer = self.client.until_answered("PUT", "/api/v1/policy", {"min_runtime": "0s", "grace": "20s"})
        assert status == 200, answer
        job = {"name": "world", "command": ["python3", "-c", RANK], "env": {"NOTES": self.notes, "EXAMPLES": EXAMPLES}, **fields}
        self.number = self.client.submit(job, "world")

    def told(self, word):
        with open(self.notes) as f:
            return [line.split()[1:] for line in f.read().splitlines() if line.split()[:1] == [word]]

    def wait(self, what, test):
        harness.wait_until(what, test)

    def wait_begun(self, count):
        self.wait("%d ranks have begun" % count, lambda: len(self.told("begin")) >= count)

    def job(self, number=None):
        return self.client.get("/api/v1/jobs/%d" % (number or self.number))

    def events(self):
        return self.client.get("/api/v1/jobs/%d/history?limit=500" % self.number)["events"]

    def finish(self):
        open(self.notes + ".finish", "w").close()
        self.d.wait(self.number, "succeeded")


def kill(pid):
    os.kill(int(pid), signal.SIGKILL)


def test_a_rank_that_is_killed_is_started_anew_and_the_others_are_told():
    with harness.Daemon(nodes="sim:1x4xH100-80GB") as d:
        s = Scene(d, tasks=3, rejoin=True)
        s.wait_begun(3)
        victim = next(line for line in s.told("begin") if line[0] == "1")
        kill(victim[2])
        s.wait_begun(4)
        again = s.told("begin")[3]
        assert again[0] == "1" and again[1] == victim[1] and again[3:5] == ["1", "3"], again
        s.wait("the others are told", lambda: {line[0] for line in s.told("told") if line[2] == "3"} >= {"0", "2"})
        assert all(line[4] == "[0,1,2]" and line[3] == line[0] for line in s.told("told") if line[2] == "3")
        s.finish()
        assert len(s.job()["attempts"]) == 1
        assert sorted(line[0] for line in s.told("end")) == ["0", "1", "2"]
        assert d.logs("%d/1" % s.number).count("hello of 1") == 2
        d.nothing_left()


def test_a_killed_shepherd_and_a_restart_of_the_daemon_lose_no_rank():
    with harness.Daemon(nodes="sim:1x4xH100-80GB") as d:
        s = Scene(d, tasks=3, rejoin=True)
        s.wait_begun(3)
        pids = {line[0]: int(line[2]) for line in s.told("begin")}
        kill(harness.parent_of(pids["2"]))
        s.wait_begun(4)
        d.kill()
        d.up()
        pid = int(s.told("begin")[3][2])
        assert harness.is_alive(pid) and harness.is_alive(pids["0"])
        kill(pids["0"])
        s.wait_begun(5)
        s.finish()
        assert len(s.job()["attempts"]) == 1
        d.nothing_left()


def test_a_gang_that_does_not_take_ranks_back_starts_again_whole():
    with harness.Daemon(nodes="sim:1x4xH100-80GB") as d:
        s = Scene(d, tasks=2)
        s.wait_begun(2)
        kill(harness.parent_of(int(s.told("begin")[0][2])))
        s.wait_begun(4)
        assert {line[1] for line in s.told("begin")} == {"1", "2"}
        s.finish()


def test_an_elastic_job_gives_up_two_of_four_ranks_for_a_gang_and_takes_them_back():
    with harness.Daemon(nodes="sim:1x4xH100-80GB") as d:
        s = Scene(d, tasks="2..4")
        s.wait_begun(4)
        gang = s.client.submit({"name": "gang", "tasks": 2, "priority": 10,
                                "command": ["sh", "-c", 'until [ -e "$NOTES.gang" ]; do sleep 0.02; done'],
                                "env": {"NOTES": s.notes}}, "gang")
        d.wait(gang, "running")
        assert sorted(line[0] for line in s.told("leave")) == ["2", "3"]
        s.wait("who stays is told", lambda: {line[0] for line in s.told("told") if line[2] == "2" and line[3] != "-1"} == {"0", "1"})
        open(s.notes + ".gang", "w").close()
        d.wait(gang, "succeeded")
        s.wait_begun(6)
        assert sorted(line[0] for line in s.told("begin")[4:]) == ["2", "3"]
        s.finish()
        job = s.job()
        assert len(job["attempts"]) == 1 and job["state"] == "succeeded"
        assert sorted(line[0] for line in s.told("end")) == ["0", "1", "2", "3"]
        charged_once(s, job)
        d.nothing_left()


def charged_once(s, job):
    """By the journal: what each rank held its GPU for, from the word that placed it to the one by which it was gone."""
    since, used, told = {}, 0, 0
    for record in s.events():
        at, kind, event = record["time_ms"], record["kind"], record["event"]
        if kind == "attempt-placed":
            since = dict.fromkeys(range(len(event["nodes"])), at)
        elif kind == "attempt-grown":
            since.update(dict.fromkeys(event["ranks"], at))
        elif kind == "ranks-left":
            used += sum(at - since.pop(rank) for rank in event["ranks"])
            told += event["used_gpu_ms"]
        elif kind == "attempt-ended":
            used += sum(at - began for began in since.values())
            told += event["used_gpu_ms"]
    assert used == told == job["used_gpu_ms"] > 0, (used, told, job)
