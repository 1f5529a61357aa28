# SPDX-License-Identifier: Apache-2.0
"""Slices of simulated GPUs with real processes: who has which, what a task is told, who may cut a GPU and when."""

import os

import pytest

import harness


@pytest.fixture()
def d():
    with harness.Daemon(nodes="sim:1x2xH100-80GB") as daemon:
        yield daemon


def waiting(go):
    return ("bash", "-c", 'until [ -e "$0" ]; do sleep 0.02; done', str(go))


def gpu(d, index):
    return {g["index"]: g for g in d.ask("gpus")}[index]


def metrics(d):
    connection = harness.UnixConnection(os.path.join(d.data, "fairlead.sock"))
    connection.request("GET", "/metrics")
    return connection.getresponse().read().decode()


def node(d):
    return d.ask("nodes")[0]["name"]


def test_slices_are_cut_held_shown_and_told(d, tmp_path):
    go = tmp_path / "go"
    name = node(d)
    d.run("gpus", "cut", name + "/1", "--slices", "3g.40gb,2g.20gb,1g.10gb")
    assert gpu(d, 1)["state"] == "cut" and [s["slice"] for s in gpu(d, 1)["slices"]] == ["3g.40gb", "2g.20gb", "1g.10gb"]
    assert d.ask("nodes")[0]["gpus"]["free"] == 1 and d.ask("nodes")[0]["gpus"]["cut"] == 1
    job = d.submit(*waiting(go), flags=("-g", "2g.20gb", "--kind", "batch"))
    d.wait(job, "running")
    held = {s["slice"]: s["job"] for s in gpu(d, 1)["slices"]}
    assert held == {"3g.40gb": 0, "2g.20gb": job, "1g.10gb": 0}, held
    assert {j["id"]: j for j in d.ask("jobs", "--all")}[job]["gpu_part"] == "2g.20gb"
    assert "1 task of 2g.20gb of a GPU" in d.run("job", str(job)).out
    task = d.job(job)["attempts"][-1]["tasks"][0]
    assert task["gpu_memory_enforced"] is True and task["gpu_memory_mib"] == 20096 and task["gpu_share"] == 0.286, task
    shown = d.ask("nodes")[0]
    assert shown["slices_idle"] == 0.571 and shown["slices_unasked"] == 0.571, shown
    assert "0.571 (0.571 unasked)" in d.run("nodes", "-o", "wide").out
    assert "2g.20gb:%d" % job in d.run("gpus", "-o", "wide").out
    refused = d.run("gpus", "cut", name + "/1", "--slices", "", check=False)
    assert refused.code != 0 and "in use" in refused.err, refused.err
    told = d.submit("sh", "-c", 'echo "$FAIRLEAD_GPU_SLICE $FAIRLEAD_GPU_MEMORY_MIB $CUDA_VISIBLE_DEVICES"', flags=("-g", "3g.40gb", "--kind", "batch"))
    assert d.wait(told)["state"] == "succeeded"
    slice_name, memory, device = d.logs(told).split()
    assert (slice_name, int(memory)) == ("3g.40gb", 40448) and device.startswith("MIG-simulated-%s-1-" % name), d.logs(told)
    go.touch()
    d.wait(job)
    d.run("gpus", "cut", name + "/1", "--slices", "")
    assert gpu(d, 1)["state"] == "free" and not gpu(d, 1)["slices"]


def test_slices_come_back_with_the_daemon(d, tmp_path):
    go = tmp_path / "go"
    name = node(d)
    d.run("gpus", "cut", name + "/0", "--slices", "1g.10gb,1g.10gb")
    job = d.submit(*waiting(go), flags=("-g", "1g.10gb", "--kind", "batch"))
    d.wait(job, "running")
    before = gpu(d, 0)["slices"]
    d.stop()
    d.up()
    assert gpu(d, 0)["slices"] == before and [s["job"] for s in before] == [job, 0]
    shown = metrics(d)
    for slice in {s["slice"] for s in before}:
        for state, count in (("held", sum(s["slice"] == slice and s["job"] > 0 for s in before)),
                             ("free", sum(s["slice"] == slice and s["job"] == 0 for s in before)), ("unusable", 0)):
            assert 'fairlead_slices{model="%s",slice="%s",state="%s"} %d\n' % (gpu(d, 0)["model"], slice, state, count) in shown, shown
    assert 'fairlead_gpus{state="cut"} 0\n' in shown, "it is allocated while a slice of it is held"
    more = [d.submit(*waiting(go), flags=("-g", "1g.10gb", "--kind", "batch")) for _ in range(2)]
    d.wait(more[0], "running")
    words = d.run("explain", str(more[1]), "-v").out
    assert "needs a slice 1g.10gb; none is free" in words, words
    go.touch()
    for each in [job] + more:
        assert d.wait(each)["state"] == "succeeded"


@pytest.mark.parametrize("flags, words", [
    (("-g", "1g.10gb"), "training does not run on a slice"),
    (("-g", "1g.10gb", "--kind", "batch", "-t", "2"), "has no link to another GPU"),
    (("-g", "1g.11gb", "--kind", "batch"), "no model of GPU has slices"),
    (("-g", "1g.10gb", "--kind", "batch", "--gpu-memory", "20GiB"), "has 9984 MiB"),
])
def test_what_may_not_run_on_a_slice_is_refused_by_name(d, flags, words):
    answer = d.run("run", "--detach", *flags, "--", "true", check=False)
    assert answer.code != 0 and words in answer.err, answer.err


@pytest.mark.parametrize("slices, words", [
    ("4g.40gb,4g.40gb", "cannot exist together"),
    ("1g.5gb", "can be cut into 1g.10gb"),
    ("", "already"),
])
def test_what_a_gpu_cannot_be_cut_into_is_refused_by_name(d, slices, words):
    answer = d.run("gpus", "cut", node(d) + "/0", "--slices", slices, check=False)
    assert (answer.code != 0 and words in answer.err) or not slices, answer.err


def test_a_node_says_who_cuts_its_gpus(d):
    name = node(d)
    d.run("nodes", "set", name, "--partitioning", "off")
    assert d.ask("nodes")[0]["partitioning"] == "off"
    answer = d.run("gpus", "cut", name + "/0", "--slices", "1g.10gb", check=False)
    assert answer.code != 0 and "partitioning: off" in answer.err, answer.err
    d.run("nodes", "set", name, "--partitioning", "fixed", "--slices-only", "yes")
    whole = d.submit("true", flags=("-g", "1"))
    assert "there for slices alone" in d.run("explain", str(whole), "-v").out
    d.run("nodes", "set", name, "--slices-only", "no")
    assert d.wait(whole)["state"] == "succeeded"


def test_idle_gpus_are_cut_for_jobs_where_the_node_allows_it(d, tmp_path):
    go = tmp_path / "go"
    d.run("nodes", "set", node(d), "--partitioning", "auto")
    jobs = [d.submit(*waiting(go), flags=("-g", "3g.40gb", "--kind", "batch")) for _ in range(3)]
    for job in jobs:
        d.wait(job, "running")
    assert sorted(s["job"] for g in d.ask("gpus") for s in g["slices"] if s["slice"] == "3g.40gb")[-3:] == jobs
    go.touch()
    for job in jobs:
        assert d.wait(job)["state"] == "succeeded"
    whole = d.submit("true", flags=("-g", "2"))
    assert d.wait(whole)["state"] == "succeeded"
    assert not any(g["slices"] for g in d.ask("gpus"))
