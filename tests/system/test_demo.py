# SPDX-License-Identifier: Apache-2.0
"""The demonstrations of scripts/quickstart, whole, as tests."""

import json
import os
import subprocess
import sys

import harness



def run_demo(program, data, *more):
    python = os.environ.get("FAIRLEAD_PYTHON", sys.executable)
    env = dict(os.environ, PATH=os.path.dirname(harness.PROGRAM) + ":" + os.environ["PATH"], FAIRLEAD_DATA=str(data))
    done = subprocess.run([python, "examples/digits/" + program, "--python", python, "--data", str(data), *more],
                          cwd=os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."), env=env, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=4.5 * harness.PATIENCE_S)
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_a_job_preempted_and_a_daemon_killed_twice_give_the_weights_of_an_undisturbed_run(tmp_path):
    out = run_demo("demo.py", tmp_path, "--steps", "4000")
    assert "the same, after 2 attempts" in out or "the same, after 3 attempts" in out, out


class Journal:
    """The records of a data folder whose daemon has ended."""

    def __init__(self, data):
        done = subprocess.run([harness.PROGRAM, "journal", "show", "-o", "json", "--data", str(data)], stdout=subprocess.PIPE, text=True,
                              timeout=60, check=True)
        self.records = [json.loads(line) for line in done.stdout.splitlines()]
        self.jobs = {e["name"]: e["job"] for _, e in self.of("job-submitted")}

    def of(self, kind, **fields):
        """(time, record) of those of a kind with these fields; a field that is 0 is not written."""
        return [(r["time_ms"], r["record"]) for r in self.records
                if r["kind"] == kind and all(r["record"].get(name, 0) == value for name, value in fields.items())]

    def one(self, kind, **fields):
        found = self.of(kind, **fields)
        assert len(found) == 1, (kind, fields, found)
        return found[0]

    def gpus(self, event):
        return {(node, mask) for node, mask in zip(event["nodes"], event["masks"])}


def test_two_teams_lend_take_back_backfill_and_change_widths_and_the_journal_says_so(tmp_path):
    out = run_demo("demo_teams.py", tmp_path)
    assert out.count("the same as undisturbed") == 2, out
    j = Journal(tmp_path)
    digits, elastic, wants, short, long = (j.jobs[name] for name in ("digits", "elastic", "tokens-b", "short", "long"))

    # Lent: a queue with a guarantee of 4 holds 8.
    assert {e["name"]: e["guarantee_share"] for _, e in j.of("queue-set") if e["name"] != "default"} == {
        "vision": 4 * 63000, "language": 4 * 63000}
    (_, first), (again_at, again) = j.of("attempt-placed", job=digits)
    _, wide = j.one("attempt-placed", job=elastic)
    assert len(first["nodes"]) == len(wide["nodes"]) == 4 and not j.gpus(first) & j.gpus(wide)

    # The elastic job gives up its two highest ranks and keeps its attempt; nobody is warned for that.
    shrunk_at, shrunk = j.one("attempt-shrunk", attempt=wide["attempt"], for_job=j.jobs["tokens-a"])
    assert shrunk["ranks"] == [2, 3]
    left = j.of("ranks-left", attempt=wide["attempt"])
    assert sorted(rank for _, e in left for rank in e["ranks"]) == [2, 3] and all("lost_gpu_ms" not in e for _, e in left)

    # The guarantee is taken back: warned, saved, stopped, ended, requeued, in this order, and all the same work goes on.
    warned_at, _ = j.one("attempt-warned", for_job=wants)
    saved = [(at, e) for at, e in j.of("checkpoint-saved", job=digits, attempt=first["attempt"]) if at >= warned_at]
    stopped_at, _ = j.one("attempt-stopped", attempt=first["attempt"], why=1)
    ended_at, _ = j.one("attempt-ended", attempt=first["attempt"], why=1)
    assert shrunk_at <= warned_at <= saved[0][0] <= stopped_at <= ended_at
    assert j.one("job-requeued", job=digits)[0] == ended_at
    assert again["resume_number"] == saved[-1][1]["number"]
    assert not j.of("attempt-warned", attempt=wide["attempt"]) and len(j.of("attempt-warned")) == 1

    # Backfill: while digits waits, its place is kept; short runs on it and has ended before digits starts, long does not.
    kept_at, kept = j.of("reservation-set", job=digits)[0]
    short_at, meanwhile = j.one("attempt-placed", job=short)
    long_at, _ = j.one("attempt-placed", job=long)
    assert ended_at <= kept_at <= short_at < again_at <= long_at
    assert j.gpus(meanwhile) <= j.gpus(kept)
    assert j.one("attempt-ended", attempt=meanwhile["attempt"])[0] <= again_at < kept["start_ms"]

    # What is idle is lent again: the same ranks come back.
    assert sorted(rank for at, e in j.of("attempt-grown", attempt=wide["attempt"]) for rank in e["ranks"] if at > again_at) == [2, 3]
    assert all(e["state"] == 10 for _, e in j.of("job-ended")) and len(j.of("job-ended")) == len(j.jobs)
