# SPDX-License-Identifier: Apache-2.0
"""Running jobs that move so that free GPUs come to lie together, with real processes."""

import os

import pytest

import harness


@pytest.fixture(scope="module")
def d():
    with harness.Daemon(nodes="sim:2x2xH100-80GB") as daemon:
        yield daemon


def node_of(d, job):
    return next(gpu["node"] for gpu in d.ask("gpus") if gpu["job"] == job)


def metrics(d):
    connection = harness.UnixConnection(os.path.join(d.data, "fairlead.sock"))
    connection.request("GET", "/metrics")
    text = connection.getresponse().read().decode()
    connection.close()
    return text


def test_a_job_moves_when_a_person_asks_for_it(d):
    d.run("policy", "set", "--defragment", "off", "--min-runtime", "0s", "--grace", "0s")
    client = harness.Client(d.data)
    small = {"gpus": 1, "checkpoint": {"every": "10m"}, "command": ["sleep", "600"]}
    jobs = [client.submit(dict(small, name="small-%d" % i), "small-%d" % i) for i in range(3)]
    for job in jobs:
        d.wait(job, "running")
    d.run("cancel", str(jobs[0]))
    d.wait(jobs[0])
    assert node_of(d, jobs[1]) != node_of(d, jobs[2])
    assert "brought together" in d.run("defrag", "--dry-run").out, "a node could be whole"
    pair = client.submit({"name": "pair", "gpus": 2, "command": ["sleep", "600"]}, "pair")
    plan = d.run("defrag", "--dry-run").out
    assert "2 GPUs for job %d" % pair in plan and "moves from" in plan, plan
    assert d.ask("job", str(pair))["state"] == "queued", "nothing moves by itself"
    said = d.run("defrag").out
    assert "asked for" in said, said
    d.wait(pair, "running")
    for job in jobs[1:]:
        d.wait(job, "running")
    assert node_of(d, jobs[1]) == node_of(d, jobs[2]) != node_of(d, pair)
    assert "fairlead_moved_jobs_total 1\n" in metrics(d)
    assert d.run("defrag").out == "There is nothing to move.\n"
    moved = [d.ask("job", str(job)) for job in jobs[1:]]
    assert sorted(len(job["attempts"]) for job in moved) == [1, 2]
    assert any(attempt["why"] == "moved" for job in moved for attempt in job["attempts"])
