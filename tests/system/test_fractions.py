# SPDX-License-Identifier: Apache-2.0
"""Parts of GPUs with real processes: who lies beside whom, what they are told, what is shown.

Every task enters its part into a file of its GPU when it begins and takes it out when it ends, under a lock, and notes what the
GPU held in all: more than one GPU, or anything beside a task that has it whole, is seen by the task itself.
"""

import os
import random

import pytest

import harness

PROGRAM = r"""
share="${FAIRLEAD_GPU_SHARE:-1}"
file="$NOTES.$FAIRLEAD_NODE.$CUDA_VISIBLE_DEVICES"
exec {lock}>"$file.lock"
flock $lock
echo "$FAIRLEAD_ATTEMPT $RANK $share ${FAIRLEAD_GPU_MEMORY_MIB:-whole} $WHO" >>"$file"
awk '{ sum += $3; mib += $4; if ($5 != who && NR > 1) mixed = 1; who = $5 } END { print NR, sum, mib, mixed + 0 }' "$file" >>"$NOTES"
flock -u $lock
sleep "$1"
until [ -z "$GO" ] || [ -e "$GO" ]; do sleep 0.02; done
flock $lock
sed -i "/^$FAIRLEAD_ATTEMPT $RANK /d" "$file"
"""


@pytest.fixture(scope="module")
def d():
    with harness.Daemon(nodes="sim:2x2xH100-80GB") as daemon:
        yield daemon


def waiting(go):
    return ("bash", "-c", 'until [ -e "$0" ]; do sleep 0.02; done', str(go))


def gpus(d):
    return {(gpu["node"], gpu["index"]): gpu for gpu in d.ask("gpus")}


def test_no_gpu_is_ever_given_out_beyond_what_it_has(d, tmp_path):
    numbers = random.Random(7)
    client = harness.Client(d.data)
    notes = tmp_path / "notes"
    jobs = []
    go = tmp_path / "go"    # the first stay until there are some of them
    for i in range(5):
        job = {"name": "first-%d" % i, "gpus": 0.2, "env": {"NOTES": str(notes), "WHO": "me", "GO": str(go)}, "command": ["bash", "-c", PROGRAM, "part", "0"]}
        jobs.append(client.submit(job, job["name"]))
    harness.wait_until("some lie on one GPU", lambda: notes.exists() and any(line.split()[0] == "4" for line in notes.read_text().splitlines() if line))
    go.touch()
    for i in range(120):
        wish = numbers.choice([1, 0.5, 0.25, 0.1, 0.334, "1/7", "2/3", {"memory": "2000MiB"}, {"memory": "40GiB"}])
        job = {"name": "part-%d" % i, "gpus": wish, "tasks": numbers.choice([1, 1, 2, 3]), "env": {"NOTES": str(notes), "WHO": "me"},
               "command": ["bash", "-c", PROGRAM, "part", "%.2f" % numbers.uniform(0, 0.1)]}
        jobs.append(client.submit(job, job["name"]))
    for job in jobs:
        assert d.wait(job)["state"] == "succeeded", d.logs(job)
    seen = [line.split() for line in notes.read_text().splitlines()]
    memory = d.ask("gpus")[0]["memory_mib"]
    assert len(seen) >= 120
    assert all(float(share) <= 1 and int(mib) <= memory for _, share, mib, _ in seen), seen
    assert any(int(count) >= 4 for count, _, _, _ in seen), "nothing was shared"
    assert all(gpu["state"] == "free" and gpu["open"] == 1 and not gpu["parts"] for gpu in gpus(d).values())


def test_parts_are_shown_where_they_lie_and_what_is_left(d, tmp_path):
    go = tmp_path / "go"
    half = d.submit(*waiting(go), flags=("-g", "0.5"))
    seventh = d.submit(*waiting(go), flags=("-g", "1/7"))
    memory = d.submit(*waiting(go), flags=("-g", "2000MiB"))
    for job in (half, seventh, memory):
        d.wait(job, "running")
    shared = [gpu for gpu in gpus(d).values() if gpu["state"] == "shared"]
    assert len(shared) == 1, shared
    gpu = shared[0]
    assert [(part["job"], part["share"]) for part in gpu["parts"]] == [(half, 0.5), (seventh, 0.143), (memory, 0.024)]
    assert gpu["open"] == 0.333 and gpu["open_mib"] == gpu["memory_mib"] - gpu["memory_mib"] // 2 - gpu["memory_mib"] // 7 - 2000
    table = d.run("gpus").out
    assert "%d,%d,%d" % (half, seventh, memory) in table and "0.333" in table, table
    listed = {job["id"]: job for job in d.ask("jobs", "--all")}
    assert [listed[job]["gpu_part"] for job in (half, seventh, memory)] == ["0.5", "1/7", "2000MiB"]
    assert [listed[job]["gpus"] for job in (half, seventh, memory)] == [0.5, 0.143, 0.024]
    words = d.run("jobs", "-o", "wide").out
    assert " 1/7 " in words and " 2000MiB " in words, words
    shown = d.run("job", str(seventh)).out
    assert "1 task of 1/7 (not enforced) of a GPU" in shown, shown
    task = d.job(seventh)["attempts"][-1]["tasks"][0]
    assert task["gpu_share"] == 0.143 and task["gpu_memory_enforced"] is False, task
    node = {n["name"]: n for n in d.ask("nodes")}[gpu["node"]]
    assert node["gpus"]["shared"] == 1 and node["gpus"]["open"] == 0.333 and node["jobs"] == [half, seventh, memory], node
    assert node["fragment"] == 0.111, node  # of the 0.333 the half has no use, one wish of three
    assert {q["name"]: q for q in d.ask("queues")}["default"]["gpus"] == 0.667
    status, metrics = raw(d, "/metrics")
    assert status == 200 and "fairlead_shared_gpus 1\n" in metrics and "fairlead_shared_gpus_open 0.3" in metrics, metrics
    assert "fairlead_fragment_gpus 0.11" in metrics, metrics
    go.touch()
    for job in (half, seventh, memory):
        assert d.wait(job)["state"] == "succeeded"
    assert d.job(half)["used_gpu_ms"] <= d.job(half)["ran_ms"] * 0.75 + 100


def raw(d, path):
    connection = harness.UnixConnection(os.path.join(d.data, "fairlead.sock"))
    connection.request("GET", path)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text


def test_a_task_is_told_its_part(d):
    job = d.submit("sh", "-c", 'echo "$FAIRLEAD_GPUS $FAIRLEAD_GPU_SHARE $FAIRLEAD_GPU_MEMORY_MIB [$CUDA_VISIBLE_DEVICES]"', flags=("-g", "1/7"))
    assert d.wait(job)["state"] == "succeeded"
    memory = d.ask("gpus")[0]["memory_mib"]
    count, share, mib, devices = d.logs(job).split()
    assert (count, share, int(mib)) == ("1", "0.142857", memory // 7) and devices in ("[0]", "[1]")
    whole = d.submit("sh", "-c", 'echo "[$FAIRLEAD_GPU_SHARE]"')
    assert d.wait(whole)["state"] == "succeeded" and d.logs(whole).split() == ["[]"]


def test_the_policy_says_whose_parts_lie_on_one_gpu(d, tmp_path):
    go = tmp_path / "go"
    assert "share-gpus            team" in d.run("policy").out
    d.run("policy", "set", "--share-gpus", "off")
    jobs = [d.submit(*waiting(go), flags=("-g", "0.1")) for _ in range(5)]
    for job in jobs[:4]:
        d.wait(job, "running")
    harness.wait_until("the fifth is not let in", lambda: harness.Client(d.data).get("/api/v1/jobs/%d/explain" % jobs[4])["reason"] == "sharing")
    assert 'policy share_gpus (now "off")' in d.run("explain", str(jobs[4]), "-v").out
    d.run("policy", "set", "--share-gpus", "team")
    d.wait(jobs[4], "running")
    assert d.run("policy", "set", "--share-gpus", "all", check=False).code == 2
    status, answer = harness.Client(d.data).until_answered("PUT", "/api/v1/policy", {"share_gpus": "all"})
    assert status == 400 and "none of team|any|off" in answer["error"]["message"], answer
    go.touch()
    for job in jobs:
        assert d.wait(job)["state"] == "succeeded"


def test_what_is_no_part_is_refused_with_its_place(d):
    done = d.submit_file("command: x\ngpus: 1.5\n", check=False)
    assert done.code == 2 and ":2:7:" in done.err and "write 2, 0.5 or 1/7" in done.err, done
    done = d.run("run", "-g", "0.1234", "--", "true", check=False)
    assert done.code == 2 and "--gpus" in done.err and "three decimals at most" in done.err, done
