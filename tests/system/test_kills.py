# SPDX-License-Identifier: Apache-2.0
"""SIGKILL of daemon and shepherds, at random and at named failpoints, under load.

Each task writes what it does into a ledger and holds a lock of its job and rank, so that the truth comes from the
processes and not from the journal: no job is lost or run twice at a time, none is started again when only the daemon died, a
final state never changes, and no process is left.

FAIRLEAD_TEST_KILLS sets the number (60 in the suite for each of the two forms; scripts/campaign-kills runs 10,000).
"""

import collections
import os
import random
import signal
import subprocess

import pytest

import harness

KILLS = int(os.environ.get("FAIRLEAD_TEST_KILLS", "75"))
SEED = int(os.environ.get("FAIRLEAD_TEST_SEED", "1"))

TASK = r"""
exec 9>"$LEDGER.lock.$FAIRLEAD_JOB_ID.$RANK"
flock -n 9 || echo "overlap $FAIRLEAD_JOB_ID $FAIRLEAD_ATTEMPT $RANK" >>"$LEDGER"
echo "start $FAIRLEAD_JOB_ID $FAIRLEAD_ATTEMPT $RANK" >>"$LEDGER"
sleep "$1" 9>&-
echo "end $FAIRLEAD_JOB_ID $FAIRLEAD_ATTEMPT $RANK" >>"$LEDGER"
"""

DAEMON_POINTS = ["gate-before-commit", "gate-after-commit", "gate-before-replies", "core-before-decide", "effects-before-start",
                 "effects-after-start", "effects-before-release", "effects-after-release", "recover-after-snapshot"]


class Load:
    def __init__(self, d, random_numbers):
        self.d, self.random, self.client = d, random_numbers, harness.Client(d.data)
        self.ledger = os.path.join(d.data, "ledger")
        open(self.ledger, "w").close()
        os.chmod(self.ledger, 0o666)
        self.jobs, self.final = [], {}

    def submit(self, count):
        for _ in range(count):
            key = "load-%d" % len(self.jobs)
            job = {"name": key, "command": ["bash", "-c", TASK, "task", "%.2f" % self.random.uniform(0.02, 0.4)],
                   "tasks": self.random.choice([1, 1, 1, 2, 3]), "gpus": self.random.choice([0, 1, 1, 2]),
                   "env": {"LEDGER": self.ledger}}
            number = self.client.submit(job, key)
            assert number not in self.jobs, "the same id was given twice"
            self.jobs.append(number)

    def look(self):
        """Final states are written once."""
        status, answer = self.client.until_answered("GET", "/api/v1/jobs?limit=500")
        assert status == 200
        for job in answer["jobs"]:
            if job["state"] in harness.FINAL:
                before = self.final.setdefault(job["id"], job["state"])
                assert before == job["state"], "job %d was %s and is %s" % (job["id"], before, job["state"])
        return answer["jobs"]

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
            return all(n in self.final for n in self.jobs)
        harness.wait_until("all %d jobs end; left: %s" % (len(self.jobs), [n for n in self.jobs if n not in self.final]), done, 120)

    def check(self, once):
        lines = self.lines()
        assert not [k for k in lines if k[0] == "overlap"], lines
        assert not [k for k, n in lines.items() if n > 1], "a rank of one attempt ran twice"
        for number in self.jobs:
            job = self.d.job(number)
            assert job["state"] == "succeeded", job
            attempts = {k[2] for k in lines if k[1] == number and k[0] == "start"}
            if once:
                assert len(attempts) == 1, "job %d was started in attempts %s" % (number, attempts)
            last = max(attempts)
            ends = {k[3] for k in lines if k[0] == "end" and k[1] == number and k[2] == last}
            assert ends == set(range(job["tasks"])), "job %d: ranks that ended: %s" % (number, ends)
        left = harness.processes_with(self.ledger)
        assert not left, "processes left over: %s" % left


def test_killing_the_daemon_loses_nothing_repeats_nothing_and_touches_no_running_job():
    numbers = random.Random(SEED)
    with harness.Daemon() as d:
        load = Load(d, numbers)
        load.submit(8)
        kills = 0
        while kills < KILLS:
            point = numbers.choice(DAEMON_POINTS + [None, None, None])
            env = {"FAIRLEAD_FAILPOINT": "%s:kill:%d" % (point, numbers.randint(1, 12))} if point else {}
            d.kill()
            kills += 1
            while True:
                d.up(env, expect=False)
                if d.greeting:
                    break
                d.process.wait()
                kills, env = kills + 1, {}
            load.submit_some = numbers.randint(1, 3)
            try:
                load.submit(load.submit_some) if not env else submit_into_a_dying_daemon(load, d)
            finally:
                if not d.alive():
                    kills += 1
        if not d.alive():
            d.up()
        load.wait_all()
        load.check(once=True)
        check_journal(d)


def submit_into_a_dying_daemon(load, d):
    """The daemon may die at its failpoint in the middle; then it is started again and the same key is sent again."""
    try:
        load.client.once("GET", "/api/v1/jobs?limit=1")
        key = "load-%d" % len(load.jobs)
        job = {"name": key, "command": ["bash", "-c", TASK, "task", "0.1"], "gpus": 1, "env": {"LEDGER": load.ledger}}
        try:
            status, answer = load.client.once("POST", "/api/v1/jobs", job, {"Idempotency-Key": key})
        except (OSError, harness.http.client.HTTPException):
            d.process.wait()
            d.process.stdout.close()
            d.up()
            number = load.client.submit(job, key)
        else:
            assert status in (200, 201), answer
            number = answer["id"]
        assert number not in load.jobs
        load.jobs.append(number)
    except (OSError, harness.http.client.HTTPException):
        d.process.wait()
        d.process.stdout.close()
        d.up()


def test_killing_shepherds_leaves_no_process_and_no_job_behind():
    numbers = random.Random(SEED + 1)
    with harness.Daemon() as d:
        load = Load(d, numbers)
        kills = 0
        while kills < KILLS:
            if len([n for n in load.jobs if n not in load.final]) < 12:
                load.submit(6)
            shepherds = [p for p in subprocess.run(["pgrep", "-f", "fairlead-shepherd.*" + d.data], capture_output=True, text=True).stdout.split()]
            if shepherds:
                try:
                    os.kill(int(numbers.choice(shepherds)), signal.SIGKILL)
                    kills += 1
                except ProcessLookupError:
                    pass
            if kills % 10 == 5 and d.alive():
                d.kill()
                d.up()
            load.look()
        load.wait_all()
        load.check(once=False)
        check_journal(d)


def check_journal(d):
    result = d.run("journal", "verify")
    assert "no damage" in result.out or "intact" in result.out or result.code == 0, result


@pytest.fixture(autouse=True)
def seed_is_said(capsys):
    yield
    print("seed %d" % SEED)
