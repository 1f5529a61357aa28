# SPDX-License-Identifier: Apache-2.0
"""Gangs of random sizes on four simulated nodes, with kills: what the processes see themselves.

Every rank takes a lock for each GPU it was given, and its children hold these locks too: a GPU that is given out while
anything of an earlier rank lives is seen by the rank that gets it. Every rank notes, as it begins, how many ranks of its
gang are ready: their shepherds write the file `ready`.
"""

import collections
import json
import os
import random
import re
import signal

import pytest

import harness

GANGS = int(os.environ.get("FAIRLEAD_TEST_GANGS", "500"))
SEED = int(os.environ.get("FAIRLEAD_TEST_SEED", "1"))
needs_failpoints = pytest.mark.skipif(not harness.has_failpoints(), reason="needs a build with -Dfailpoints=true")

RANK_PROGRAM = r"""
me="$FAIRLEAD_JOB_ID $FAIRLEAD_ATTEMPT $RANK"
ready=("$ATTEMPTS/$FAIRLEAD_ATTEMPT"/*/ready)
echo "begin $me $WORLD_SIZE ${#ready[@]} $$" >>"$NOTES"
for gpu in ${CUDA_VISIBLE_DEVICES//,/ }; do
	exec {lock}>"$NOTES.$FAIRLEAD_NODE.$gpu"
	flock -n $lock && echo "gpu $me $FAIRLEAD_NODE.$gpu" >>"$NOTES" || echo "shared $me $FAIRLEAD_NODE.$gpu" >>"$NOTES"
done
sleep "$1"
echo "end $me" >>"$NOTES"
exit "$2"
"""


class Gangs:
    def __init__(self, d, numbers):
        self.d, self.numbers, self.client = d, numbers, harness.Client(d.data)
        self.notes = os.path.join(d.data, "notes")
        open(self.notes, "w").close()
        self.jobs, self.fails, self.cancelled, self.shot, self.kills = {}, set(), set(), set(), collections.Counter()

    def submit(self):
        name = "gang-%d" % len(self.jobs)
        gpus = self.numbers.choice([1, 1, 1, 2, 4])
        tasks = self.numbers.choice([1, 1, 2, 2, 3, 4, 6, 8])
        tasks = min(tasks, 16 // gpus)
        fails = self.numbers.random() < 0.05
        job = {"name": name, "tasks": tasks, "gpus": gpus,
               "command": ["bash", "-c", RANK_PROGRAM, "rank", "%.2f" % self.numbers.uniform(0.0, 0.06), "3" if fails else "0"],
               "env": {"NOTES": self.notes, "ATTEMPTS": self.d.data + "/attempts"}}
        number = self.client.submit(job, name)
        self.jobs[number] = (tasks, gpus)
        if fails:
            self.fails.add(number)

    def cancel(self):
        victim = self.numbers.choice(list(self.jobs))
        self.client.until_answered("POST", "/api/v1/jobs/%d/cancel" % victim, {})
        self.cancelled.add(victim)

    def shoot_a_shepherd(self):
        shepherds = self.d.shepherds()
        if shepherds:
            kill(self.numbers.choice(shepherds))
            self.kills["shepherd"] += 1

    def shoot_a_rank(self):
        """One that has begun: its job fails of that, and is not started again."""
        with open(self.notes, "rb") as f:
            f.seek(max(0, os.path.getsize(self.notes) - 4096))
            lines = [line.split() for line in f.read().decode().splitlines()[1:]]
        over = {tuple(line[1:4]) for line in lines if line[0] == "end"}
        running = [line for line in lines if line[0] == "begin" and tuple(line[1:4]) not in over]
        line = self.numbers.choice(running) if running else None
        if line and "FAIRLEAD_JOB_ID=%s\0" % line[1] in environment(int(line[6])):
            self.shot.add(int(line[1]))
            kill(int(line[6]))
            self.kills["rank"] += 1

    def lines(self):
        with open(self.notes) as f:
            return [line.split() for line in f.read().splitlines()]

    def check(self, states):
        begun, ended, gpus = collections.defaultdict(set), collections.defaultdict(set), collections.Counter()
        for what, job, attempt, rank, *rest in self.lines():
            job, attempt, rank = int(job), int(attempt), int(rank)
            assert what != "shared", "%s was held by another rank when rank %d of job %d got it" % (rest[0], rank, job)
            if what == "begin":
                assert rank not in begun[job, attempt], "rank %d of attempt %d of job %d began twice" % (rank, attempt, job)
                begun[job, attempt].add(rank)
                assert rest[0] == rest[1] == str(self.jobs[job][0]), "a rank began when %s of %s were ready" % (rest[1], rest[0])
            elif what == "end":
                ended[job, attempt].add(rank)
            else:
                gpus[job, attempt, rank] += 1
        for (job, attempt, rank), count in gpus.items():
            wanted = self.jobs[job][1]
            assert count == wanted or count < wanted and rank not in ended[job, attempt], "rank %d of job %d got %d GPUs, not %d" % (rank, job, count, self.jobs[job][1])
        for number, (tasks, _) in self.jobs.items():
            allowed = {"failed" if number in self.fails else "succeeded"}
            allowed |= {"cancelled", "succeeded", "failed"} if number in self.cancelled else set()
            allowed |= {"failed"} if number in self.shot else set()
            assert states[number] in allowed, (number, states[number], self.client.get("/api/v1/jobs/%d" % number))
            if states[number] != "succeeded":
                continue
            whole = sorted(a for (job, a), ranks in ended.items() if job == number and len(ranks) == tasks)
            assert whole and whole[-1] == max(a for job, a in begun if job == number), "job %d: %s" % (number, whole)
            if len(whole) > 1:  # a shepherd was killed when its rank had ended, and nobody could say how
                job = self.client.get("/api/v1/jobs/%d" % number)
                assert all(a["why"] == "lost" for a in job["attempts"] if a["attempt"] in whole[:-1]), job
        return sum(len(ranks) for ranks in begun.values())


def environment(pid):
    try:
        with open("/proc/%d/environ" % pid) as f:
            return f.read()
    except OSError:
        return ""


def kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def test_gangs_start_whole_and_share_no_gpu():
    numbers = random.Random(SEED)
    with harness.Daemon() as d:
        gangs = Gangs(d, numbers)
        # Many of these gangs fail early on purpose; no node is to be set aside for that.
        assert gangs.client.until_answered("PUT", "/api/v1/policy", {"blackhole_failures": 0})[0] == 200
        for i in range(GANGS):
            gangs.submit()
            chance = numbers.random()
            if chance < 0.05:
                gangs.cancel()
            elif chance < 0.15:
                gangs.shoot_a_shepherd()
            elif chance < 0.2:
                gangs.shoot_a_rank()
            elif chance < 0.22:
                d.kill()
                d.up()
                gangs.kills["daemon"] += 1

        def ended():
            states = {j["id"]: j["state"] for j in gangs.client.jobs()}
            if all(states.get(n) in harness.FINAL for n in gangs.jobs):
                return states
            if numbers.random() < 0.1:
                gangs.shoot_a_shepherd()
            return None
        states = harness.wait_until("all gangs end", ended, 4 * harness.PATIENCE_S)
        ranks = gangs.check(states)
        assert not harness.processes_with(gangs.notes)
        assert set(gangs.kills) == {"daemon", "shepherd", "rank"} or GANGS < 200
        print("seed %d: %d ranks, %s, kills: %s" % (SEED, ranks, collections.Counter(states.values()), gangs.kills))


POINTS = ["engine-place", "engine-spawn", "shepherd-cgroup", "shepherd-fork", "shepherd-exec"]


def ends_of(d, number, attempt):
    """Why each rank of the attempt ended, from the history."""
    ends = [e for e in json.loads(d.run("job", str(number), "--history", "-o", "json").out) if e["kind"] == "task-exited" and e["event"]["attempt"] == attempt]
    return {e["event"].get("rank", 0): re.search(r" ended: (\w+)", e["sentence"]).group(1) for e in ends}


@needs_failpoints
@pytest.mark.parametrize("point", POINTS)
def test_a_failure_at_any_rank_ends_the_attempt_whole(point):
    with harness.Daemon(nodes="sim:4x1xH100-80GB") as d:
        client = harness.Client(d.data)
        marks = os.path.join(d.data, "marks")
        for rank in range(4):
            d.kill()
            d.up({"FAIRLEAD_FAILPOINT": "%s@%d:error" % (point, rank)})
            client.until_answered("PUT", "/api/v1/policy", {"blackhole_failures": 0})
            # They would run for ever, had they not to end because another one failed.
            number = client.submit({"name": "gang", "tasks": 4, "env": {"MARKS": marks},
                                    "command": ["sh", "-c", 'echo $FAIRLEAD_ATTEMPT $RANK >>"$MARKS"; exec sleep 100000']}, "%d" % rank)
            machine = point != "shepherd-exec"  # a fault of the machine: it is tried again, at no cost
            if machine:
                harness.wait_until("it waits again", lambda: [a for a in d.job(number)["attempts"][:1] if a["why"] == "start" and a["ended_ms"]])
                assert d.job(number)["retries_left"] == 0
                d.run("cancel", "--yes", str(number))
            job = d.wait(number)
            first = job["attempts"][0]
            causes = ends_of(d, number, first["attempt"])  # the job's page has the tasks of the newest attempt alone
            if not machine:
                assert job["state"] == "failed" and job["cause"] == "start" and job["failed_rank"] == rank and len(job["attempts"]) == 1, job
                assert "could not be started" in job["reason"], job["reason"]
            assert len(causes) == 4 and causes[rank] == ("machine" if machine else "start"), causes
            assert {causes[other] for other in causes if other != rank} == {"stopped"}, causes
            lines = [line.split() for line in open(marks)] if os.path.exists(marks) else []
            ran = [int(line[1]) for line in lines if int(line[0]) == first["attempt"]]
            assert rank not in ran, "the command of the failed rank ran"
            if machine:    # behind exec all were ready, and the others were let go with it
                assert not ran, "ranks %s ran though rank %d was never ready" % (ran, rank)
            if os.path.exists(marks):
                os.unlink(marks)
            assert not harness.processes_with(marks)
            assert {g["job"] for g in d.ask("gpus")} <= {0, None}, "GPUs are still held"
