# SPDX-License-Identifier: Apache-2.0
"""Real processes on GPUs of a stand-in driver: who takes more memory than its part is stopped, and nobody beside it."""

import os

import pytest

import driver
import harness

GIB = 1 << 30
# The task says its pid and that of a child that has left its session, and goes on for ever.
TASK = r"""
setsid -f bash -c 'echo $$ >"$PIDS.child.new"; mv "$PIDS.child.new" "$PIDS.child"; exec sleep 300'
until [ -e "$PIDS.child" ]; do sleep 0.02; done
env | grep -E '^CUDA' | sort >"$PIDS.env"
echo $$ >"$PIDS.new"; mv "$PIDS.new" "$PIDS"
exec sleep 300
"""


@pytest.fixture
def machine(tmp_path):
    told = driver.Driver("gpus 2")
    with harness.Daemon(nodes=None, env=dict(told.env(), CUDA_MPS_PIPE_DIRECTORY=str(tmp_path / "mps"))) as d:
        yield d, told


def start(d, tmp_path, name, gpus):
    pids = tmp_path / name
    job = {"name": name, "gpus": gpus, "env": {"PIDS": str(pids)}, "command": ["bash", "-c", TASK]}
    number = harness.Client(d.data).submit(job, name)
    d.wait(number, "running")
    harness.wait_until("the pid of " + name, pids.exists)
    return number, int(pids.read_text()), int((tmp_path / (name + ".child")).read_text())


def task_of(d, number):
    return d.job(number)["attempts"][-1]["tasks"][0]


def test_who_takes_too_much_is_stopped_and_nobody_else(machine, tmp_path):
    d, told = machine
    small, pid, child = start(d, tmp_path, "small", {"memory": "10GiB"})
    beside, other, _ = start(d, tmp_path, "beside", {"memory": "40GiB"})
    task = task_of(d, small)
    gpu = task["gpus"][0]
    assert task_of(d, beside)["gpus"] == [gpu], "the two share a GPU"
    assert task["gpu_memory_watched"] is True and task["gpu_memory_enforced"] is False
    assert "(memory watched) of a GPU" in d.run("job", str(small)).out
    # within both parts; a stranger on the GPU is nobody's
    told.say("gpus 2", "process %d %d %d" % (gpu, pid, 4 * GIB), "process %d %d %d" % (gpu, child, 5 * GIB),
             "process %d %d %d" % (gpu, other, 39 * GIB), "process %d %d %d" % (gpu, os.getpid(), 30 * GIB))
    harness.time.sleep(3)  # three looks
    assert d.state(small) == "running" and d.state(beside) == "running"
    # its child takes more: together they are over; the neighbour, with far more, is within its own
    told.say("gpus 2", "process %d %d %d" % (gpu, pid, 4 * GIB), "process %d %d %d" % (gpu, child, 7 * GIB),
             "process %d %d %d" % (gpu, other, 39 * GIB))
    ended = d.wait(small)
    assert ended["state"] == "failed"
    task = task_of(d, small)
    assert task["cause"] == "memory", task
    shown = d.run("job", str(small)).out
    assert "11264 MiB of GPU %d's memory" % gpu in shown and "10240 MiB" in shown, shown
    assert not harness.is_alive(pid) and not harness.is_alive(child)
    assert d.state(beside) == "running" and harness.is_alive(other)


def test_a_restart_of_the_daemon_goes_on_watching(machine, tmp_path):
    d, told = machine
    number, pid, _ = start(d, tmp_path, "kept", 0.5)
    d.kill()
    told.say("gpus 2", "process 0 %d %d" % (pid, 60 * GIB), "process 1 %d %d" % (pid, 60 * GIB))
    d.up()
    assert d.wait(number)["state"] == "failed"
    assert task_of(d, number)["cause"] == "memory"


def test_where_mps_runs_it_is_told_the_bound_and_that_is_said(machine, tmp_path):
    d, told = machine
    (tmp_path / "mps").mkdir()
    (tmp_path / "mps" / "nvidia-cuda-mps-control.pid").write_text("%d\n" % os.getpid())
    number, _, _ = start(d, tmp_path, "bound", {"memory": "10GiB"})
    env = dict(line.split("=", 1) for line in (tmp_path / "bound.env").read_text().split())
    assert env["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"] == "0=10240M"
    assert env["CUDA_MPS_PIPE_DIRECTORY"] == str(tmp_path / "mps")
    assert 1 <= int(env["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"]) <= 100
    assert env["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"
    assert task_of(d, number)["gpu_memory_enforced"] is True
    assert "(memory enforced) of a GPU" in d.run("job", str(number)).out
    whole, _, _ = start(d, tmp_path, "whole", 1)
    assert "CUDA_MPS" not in (tmp_path / "whole.env").read_text(), "whole GPUs have no bound"
    # a control daemon that died leaves its file behind
    (tmp_path / "mps" / "nvidia-cuda-mps-control.pid").write_text("999999999\n")
    late, _, _ = start(d, tmp_path, "late", {"memory": "10GiB"})
    assert "CUDA_MPS" not in (tmp_path / "late.env").read_text()
    assert task_of(d, late)["gpu_memory_enforced"] is False


def test_gpus_of_a_driver_that_fails_are_set_aside_until_it_answers(machine, tmp_path):
    d, told = machine

    def states():
        return [gpu["state"] for gpu in d.ask("gpus")]

    told.say("gpus 2", "lost 1")
    harness.wait_until("GPU 1 is set aside", lambda: states() == ["free", "set-aside"])
    assert "GPU is lost" in d.ask("gpus")[1]["reason"]
    told.say("gpus 2", "broken 18")
    harness.wait_until("both are set aside", lambda: states() == ["set-aside", "set-aside"])
    number = d.submit("true", flags=("--gpus", "1"))
    # the driver was exchanged: it starts again, and what it serves is known before the job is placed
    told.say("gpus 2", "driver 570.1", "cuda 12080")
    assert d.wait(number)["state"] == "succeeded"
    assert states() == ["free", "free"]
    node = d.ask("nodes")[0]
    assert (node["driver"], node["cuda"]) == ("570.1", "12.8")


def test_gpus_that_a_person_set_aside_stay_so(machine):
    d, told = machine
    name = d.ask("nodes")[0]["name"]
    d.run("gpus", "aside", "%s/0" % name, "--reason", "fan")
    told.say("gpus 2", "lost 1")
    harness.wait_until("GPU 1 is set aside too", lambda: d.ask("gpus")[1]["state"] == "set-aside")
    told.say("gpus 2")
    harness.wait_until("GPU 1 is back", lambda: d.ask("gpus")[1]["state"] == "free")
    first = d.ask("gpus")[0]
    assert first["state"] == "set-aside" and first["reason"] == "fan", first
