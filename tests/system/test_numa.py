# SPDX-License-Identifier: Apache-2.0
"""A task that is aligned runs on the processors of the NUMA node of its GPUs: the truth is read from the process."""

import pytest

import harness


@pytest.fixture(scope="module")
def d():
    with harness.Daemon(nodes="sim:1x4xH100-80GB/2") as daemon:
        yield daemon


def processors(text):
    """"0-2,5" as a set."""
    ends = [part.split("-") for part in text.split(",")]
    return {cpu for end in ends for cpu in range(int(end[0]), int(end[-1]) + 1)}


def submit(d, name, **fields):
    command = '(echo $CUDA_VISIBLE_DEVICES; grep Cpus_allowed_list /proc/self/status) >"$T"; until [ -e "$T.go" ]; do sleep 0.02; done'
    return harness.Client(d.data).submit({"name": name, "command": command, **fields}, name)


def ran_on(d, number, path):
    d.wait(number, "running")
    harness.wait_until("what the task wrote", lambda: path.exists() and path.read_text().endswith("\n"))
    words = path.read_text().split()
    return [int(gpu) for gpu in words[0].split(",")], processors(words[2])


def test_an_aligned_task_is_bound_to_the_processors_beside_its_gpus(d, tmp_path):
    numa = harness.Client(d.data).get("/api/v1/nodes")["nodes"][0]["numa"]
    assert [n["gpus"] for n in numa] == [[0, 1], [2, 3]]
    numbers = [submit(d, name, gpus=2, align="numa", env={"T": str(tmp_path / name)}) for name in ("a", "b")]
    seen = []
    for number, name in zip(numbers, ("a", "b")):
        gpus, cpus = ran_on(d, number, tmp_path / name)
        beside = next(n for n in numa if set(gpus) <= set(n["gpus"]))
        assert cpus == processors(beside["cpus"])
        seen += gpus
    assert sorted(seen) == [0, 1, 2, 3]
    for number, name in zip(numbers, ("a", "b")):
        (tmp_path / (name + ".go")).touch()
        assert d.wait(number)["state"] == "succeeded"


def test_others_run_on_all_processors(d, tmp_path):
    number = submit(d, "free", gpus=2, env={"T": str(tmp_path / "free")})
    cpus = ran_on(d, number, tmp_path / "free")[1]
    assert cpus == processors(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("Cpus_allowed_list")))
    (tmp_path / "free.go").touch()
    assert d.wait(number)["state"] == "succeeded"


def test_three_gpus_are_on_no_numa_node(d):
    number = submit(d, "three", gpus=3, align="numa", env={"T": "/dev/null"})
    why = harness.Client(d.data).get("/api/v1/jobs/%d/explain" % number)
    assert why["reason"] == "alignment" and "NUMA node" in why["summary"], why
    d.run("cancel", str(number))
