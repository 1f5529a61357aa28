# SPDX-License-Identifier: Apache-2.0
"""SIGKILL of daemon and shepherds, at random and at named failpoints, under load.

Each task writes what it does into a ledger and holds a lock of its job and rank, which its children hold too. So the truth
comes from the processes and not from the journal: no job is lost or run twice at a time, none is started again when only
the daemon died, a final state never changes, and no process is left.

FAIRLEAD_TEST_KILLS sets the number for each of the two forms; scripts/campaign-kills gives more.
"""

import collections
import os
import random
import signal

import pytest

import harness

KILLS = int(os.environ.get("FAIRLEAD_TEST_KILLS", "150"))
SEED = int(os.environ.get("FAIRLEAD_TEST_SEED", "1"))
needs_failpoints = pytest.mark.skipif(not harness.has_failpoints(), reason="needs a build with -Dfailpoints=true")

TASK = r"""
exec 9>"$LEDGER.lock.$FAIRLEAD_JOB_ID.$RANK"
flock -n 9 || echo "overlap $FAIRLEAD_JOB_ID $FAIRLEAD_ATTEMPT $RANK" >>"$LEDGER"
echo "start $FAIRLEAD_JOB_ID $FAIRLEAD_ATTEMPT $RANK" >>"$LEDGER"
sleep "$1"
echo "end $FAIRLEAD_JOB_ID $FAIRLEAD_ATTEMPT $RANK" >>"$LEDGER"
"""

# In the daemon's process, with how often one is reached while a few jobs are submitted.
DAEMON_POINTS = {
    "gate-before-commit": 8, "gate-after-commit": 8, "gate-before-replies": 8, "core-before-decide": 10,
    "effects-before-start": 3, "effects-after-start": 3, "effects-before-release": 3, "effects-after-release": 3,
    "recover-after-snapshot": 1, "engine-claim": 3, "engine-claimed": 3, "engine-folders-synced": 3, "engine-port": 3,
    "engine-place": 4, "engine-spec-written": 4, "engine-spawn": 4, "engine-spawned": 4, "engine-go": 4, "engine-exit-seen": 3,
    "spec-write": 3, "spec-sync": 3, "spec-rename": 3, "spec-folder-sync": 3, "engine-forget-renamed": 2,
}

# In a shepherd's. `shepherd-exec` is the task's own process: that would be a failure of the job.
SHEPHERD_POINTS = [
    "shepherd-begin", "shepherd-place-made", "shepherd-cgroup", "shepherd-fork", "shepherd-launched", "shepherd-before-ready",
    "shepherd-ready", "shepherd-go-seen", "shepherd-released", "shepherd-before-started", "shepherd-started",
    "shepherd-task-over", "shepherd-nothing-left", "shepherd-exit-written", "exit-write", "exit-sync", "exit-rename",
    "exit-folder-sync", "reserve-write", "reserve-sync",
]


class Load:
    """Jobs, and what they and the daemon say of them."""

    def __init__(self, d, numbers):
        self.d, self.numbers = d, numbers
        self.client = harness.Client(d.data, self.revive)
        self.ledger = os.path.join(d.data, "ledger")
        open(self.ledger, "w").close()
        self.jobs, self.final, self.kills = [], {}, collections.Counter()
        self.armed = None

    def arm(self, point):
        """A new daemon, that will die there."""
        self.kill_daemon("at random")
        name = point.split(":")[0]
        self.armed = name
        often = self.numbers.choice(["40", "100000"])
        self.d.up({"FAIRLEAD_FAILPOINT": point, "FAIRLEAD_SHEPHERD_FAILPOINT": "", "FAIRLEAD_TEST_SNAPSHOT_EVERY": often}, expect=False)
        if not self.d.greeting:
            self.revive()

    def kill_daemon(self, why):
        if self.d.alive():
            self.d.kill()
            self.kills[why] += 1
        else:
            self.revive()
            self.kill_daemon(why)

    def revive(self):
        """Called when a request was not answered: perhaps the daemon has died, as it was told to."""
        if self.d.alive():
            return
        assert self.d.process.wait() == -signal.SIGKILL, self.d.log()
        assert self.armed, "the daemon was killed by nobody"
        self.kills[self.armed] += 1
        self.armed = None
        self.d.up()

    def submit(self, count, longest=0.3):
        for _ in range(count):
            key = "load-%d" % len(self.jobs)
            job = {"name": key, "command": ["bash", "-c", TASK, "task", "%.2f" % self.numbers.uniform(0.0, longest)],
                   "tasks": self.numbers.choice([1, 1, 1, 2, 3]), "gpus": self.numbers.choice([0, 1, 1, 2]),
                   "env": {"LEDGER": self.ledger}}
            number = self.client.submit(job, key)
            assert number not in self.jobs, "the same id was given twice"
            self.jobs.append(number)

    def unfinished(self):
        return [n for n in self.jobs if n not in self.final]

    def look(self, whole=False):
        """Final states are written once, and no acknowledged job is missing. Not whole: of those since the oldest unfinished."""
        since = 0 if whole or not self.unfinished() else self.unfinished()[0] - 1
        seen = {job["id"]: job["state"] for job in self.client.jobs(since=since)}
        expected = [number for number in self.jobs if number > since]
        for number in expected:
            assert number in seen, "job %d was acknowledged and is lost" % number
            if seen[number] in harness.FINAL:
                before = self.final.setdefault(number, seen[number])
                assert before == seen[number], "job %d was %s and is %s" % (number, before, seen[number])
            else:
                assert number not in self.final, "job %d was %s and is %s" % (number, self.final[number], seen[number])
        assert set(seen) == set(expected), "jobs that nobody submitted"

    def lines(self):
        out = collections.Counter()
        with open(self.ledger) as f:
            for line in f:
                what, job, attempt, rank = line.split()
                out[what, int(job), int(attempt), int(rank)] += 1
        return out

    def wait_all(self):
        def done():
            self.look()
            return not self.unfinished()
        harness.wait_until("all %d jobs end" % len(self.jobs), done)
        self.look(whole=True)

    def check(self, once):
        lines = self.lines()
        assert not [k for k in lines if k[0] == "overlap"], "a rank ran while an earlier one of it lived"
        assert not [k for k, n in lines.items() if n > 1], "a rank of one attempt ran twice"
        for number in self.jobs:
            job = self.client.get("/api/v1/jobs/%d" % number)
            assert job["state"] == "succeeded" == self.final[number], job
            attempts = {k[2] for k in lines if k[1] == number and k[0] == "start"}
            listed = {a["attempt"] for a in job["attempts"]}    # the newest 100, when there were more
            known = {a for a in attempts if len(listed) == job["attempt_count"] or a >= min(listed)}
            assert known <= listed, "job %d ran in an attempt that the journal lacks" % number
            if once:
                assert len(attempts) == 1, "job %d was started in attempts %s" % (number, attempts)
            ends = {k[3] for k in lines if k[0] == "end" and k[1] == number and k[2] == max(attempts)}
            assert ends == set(range(job["tasks_min"])), "job %d: ranks that ended: %s" % (number, ends)
        left = harness.processes_with(self.ledger)
        assert not left, "processes left over: %s" % left
        assert self.d.run("journal", "verify").code == 0
        before = [(j["id"], j["state"], j["attempt_count"]) for j in self.client.jobs()]
        self.d.stop()
        self.d.up()
        assert before == [(j["id"], j["state"], j["attempt_count"]) for j in self.client.jobs()]


@needs_failpoints
def test_killing_the_daemon_loses_nothing_repeats_nothing_and_touches_no_running_job():
    numbers = random.Random(SEED)
    with harness.Daemon() as d:
        load = Load(d, numbers)
        load.submit(6)
        points = list(DAEMON_POINTS)
        while sum(load.kills.values()) < KILLS or set(DAEMON_POINTS) - set(load.kills):
            if numbers.random() < 0.1:
                # Some starts begin with the snapshot of a clean end; and commits fail, which is no reason to die.
                load.kill_daemon("at random")
                d.up()
                d.stop()
                d.up({"FAIRLEAD_FAILPOINT": ",".join("gate-commit:error:%d" % n for n in (2, 7, 15)), "FAIRLEAD_SHEPHERD_FAILPOINT": ""})
                load.submit(4)
                load.look()
                assert d.alive()
            if not points:
                points = list(DAEMON_POINTS)
                numbers.shuffle(points)
            point = points.pop()
            load.arm("%s:kill:%d" % (point, numbers.randint(1, DAEMON_POINTS[point])))
            for _ in range(4):
                load.submit(1)
                load.look()
                if not load.armed:
                    break
            if len(load.unfinished()) > 30:
                load.wait_all()
        load.wait_all()
        if not d.alive():
            load.revive()
        load.check(once=True)
        print("seed %d, %d jobs, kills: %s" % (SEED, len(load.jobs), dict(load.kills)))


@needs_failpoints
def test_killing_shepherds_leaves_no_process_and_no_job_behind():
    numbers = random.Random(SEED + 1)
    with harness.Daemon() as d:
        load = Load(d, numbers)
        points, killed, marks = list(SHEPHERD_POINTS), 0, 0
        numbers.shuffle(points)
        while killed < KILLS or points:
            if len(load.unfinished()) < 10:
                load.submit(4)
            shepherds = d.shepherds()
            if shepherds:
                try:
                    os.kill(numbers.choice(shepherds), signal.SIGKILL)
                    killed += 1
                except ProcessLookupError:
                    pass
            load.look()
            if killed >= marks:
                # A new daemon, whose shepherds of rank 1 or 2 die there: those of smaller gangs go on.
                marks += max(1, KILLS // (2 * len(SHEPHERD_POINTS)))
                point = points.pop() if points else numbers.choice(SHEPHERD_POINTS)
                d.kill()
                d.up({"FAIRLEAD_SHEPHERD_FAILPOINT": "%s@%d:kill" % (point, numbers.randint(1, 2))})
                killed += see_a_death(load, point)
        d.kill()
        d.up()
        load.wait_all()
        load.check(once=False)


def see_a_death(load, point):
    """Submits a gang of three, waits until the shepherd that is told to die has, and starts a daemon without such orders."""
    key = "doomed-%d" % len(load.jobs)
    number = load.client.submit({"name": key, "command": ["bash", "-c", TASK, "task", "0.05"], "tasks": 3, "gpus": 0,
                                 "env": {"LEDGER": load.ledger}}, key)
    load.jobs.append(number)

    def lost():
        # How the ranks of an attempt ended is forgotten when the next one is placed, which may be at once: that there is one says as much.
        job = load.client.get("/api/v1/jobs/%d" % number)
        return len(job["attempts"]) > 1 or [t for a in job["attempts"] for t in a["tasks"] if t.get("cause") == "lost"] or \
            job["state"] in harness.FINAL
    harness.wait_until("a shepherd dies at %s" % point, lost)
    load.d.kill()
    load.d.up()
    return 1
