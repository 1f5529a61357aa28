# SPDX-License-Identifier: Apache-2.0
"""GPUs that something uses which Fairlead did not place, by a stand-in driver: found, named, given to nobody, and back when it is gone."""

import os
import pwd
import subprocess

import pytest

import driver
import harness

GIB = 1 << 30
WHO = pwd.getpwuid(os.getuid()).pw_name


@pytest.fixture
def machine():
    told = driver.Driver("gpus 2")
    with harness.Daemon(nodes=None, env=told.env()) as d:
        yield d, told


@pytest.fixture
def stranger():
    process = subprocess.Popen(["sleep", "600"])
    yield process
    process.kill()
    process.wait()


def states(d):
    return [gpu["state"] for gpu in d.ask("gpus")]


def named(process):
    return "process %d (sleep) of %s" % (process.pid, WHO)


def words(done):
    """A cell of a wide table has no spaces."""
    return done.out.replace("_", " ")


def on(gpu, process, size=30 * GIB):
    return "process %d %d %d" % (gpu, process.pid, size)


def running(d, gpus):
    number = d.submit("sleep", "300", flags=("--gpus", str(gpus)))
    d.wait(number, "running")
    return number


def task_of(d, number):
    return d.job(number)["attempts"][-1]["tasks"][0]


def metric(d):
    connection = harness.UnixConnection(os.path.join(d.data, "fairlead.sock"))
    connection.request("GET", "/metrics")
    lines = [line for line in connection.getresponse().read().decode().splitlines() if line.startswith("fairlead_taken_gpus{")]
    return [int(line.split()[-1]) for line in lines]


def test_a_gpu_that_a_stranger_computes_on_is_taken_until_it_is_gone(machine, stranger):
    d, told = machine
    told.say("gpus 2", on(0, stranger))
    harness.wait_until("GPU 0 is taken", lambda: states(d) == ["set-aside", "free"])
    gpu = d.ask("gpus")[0]
    assert gpu["reason"] == "taken: " + named(stranger), gpu
    node = d.ask("nodes")[0]
    assert node["taken"] == [{"index": 0, "by": named(stranger)}]
    assert node["gpus"]["free"] == 1 and node["gpus"]["unusable"] == 1
    assert "GPU 0 taken: " + named(stranger) in words(d.run("nodes", "-o", "wide"))
    assert named(stranger) in words(d.run("gpus", "-o", "wide"))
    assert metric(d) == [1]
    number = d.submit("true", flags=("--gpus", "2"))
    why = d.run("explain", str(number), "-v").out
    assert "1 GPU is taken by what Fairlead did not place" in why and named(stranger) in why, why
    assert "gpus back" not in why, why
    told.say("gpus 2")
    assert d.wait(number)["state"] == "succeeded"
    assert states(d) == ["free", "free"] and not d.ask("nodes")[0]["taken"] and metric(d) == []
    said = [e for e in d.ask("events", "--limit", "1000") if e["kind"] == "gpu-state"]
    assert [e["event"].get("set_aside", 0) for e in said] == [1, 0], said
    assert named(stranger) in said[0]["event"]["reason"]


def test_a_program_that_is_started_again_and_again_is_seen_though_it_is_another_process_each_time(machine):
    """The library names another one at each look. Who is there at a daemon's first look counts at once."""
    d, told = machine
    runs = [subprocess.Popen(["sleep", "600"]) for _ in range(5)]
    try:
        told.say("gpus 2", on(1, runs[0]))
        harness.wait_until("it has looked", lambda: states(d) == ["free", "set-aside"])
        told.say("gpus 2", "turns 0", *(on(0, process) for process in runs))
        harness.wait_until("GPU 0 is taken", lambda: states(d) == ["set-aside", "free"])
        assert "(sleep) of %s" % WHO in d.ask("gpus")[0]["reason"]
    finally:
        for process in runs:
            process.kill()
            process.wait()
    told.say("gpus 2")
    d.stop()  # one that comes back soon is waited for a minute; a daemon that has just started has forgotten that
    d.up()
    harness.wait_until("it is back", lambda: states(d) == ["free", "free"])


def test_a_task_beside_a_stranger_goes_on_and_it_is_said(machine, stranger):
    d, told = machine
    number = running(d, 1)
    gpu = task_of(d, number)["gpus"][0]
    assert task_of(d, number)["gpu_taken_by"] == ""
    told.say("gpus 2", on(gpu, stranger))
    harness.wait_until("it is said", lambda: task_of(d, number)["gpu_taken_by"] == named(stranger))
    assert named(stranger) in d.run("job", str(number)).out
    assert d.state(number) == "running" and states(d)[gpu] == "allocated"
    d.run("cancel", str(number))
    d.wait(number)
    assert states(d)[gpu] == "set-aside", "nobody gets it as long as the stranger is there"
    assert len(d.job(number)["attempts"]) == 1
    told.say("gpus 2")
    harness.wait_until("it is free", lambda: states(d) == ["free", "free"])


def test_what_serves_gpus_and_what_draws_a_little_is_not_counted(machine, stranger, tmp_path):
    d, told = machine
    server = tmp_path / "nvidia-cuda-mps-server"
    server.write_bytes(open("/bin/sleep", "rb").read())
    server.chmod(0o755)
    serving = subprocess.Popen([str(server), "600"])
    try:
        draws = "graphics 1 %d %d" % (stranger.pid, GIB // 4)
        told.say("gpus 2", on(0, serving, GIB // 8), on(1, stranger, GIB // 4), draws, "used 0 %d" % GIB, "used 1 %d" % GIB)
        harness.time.sleep(10)  # two looks
        assert states(d) == ["free", "free"], d.ask("gpus")
        told.say("gpus 2", on(0, serving, GIB // 8), on(1, stranger, 2 * GIB), draws)
        harness.wait_until("that is more than a little", lambda: states(d) == ["free", "set-aside"])
    finally:
        serving.kill()
        serving.wait()


def test_memory_that_no_process_has(machine):
    d, told = machine
    told.say("gpus 2", "used 1 %d" % (5 * GIB))
    harness.wait_until("GPU 1 is taken", lambda: states(d) == ["free", "set-aside"])
    assert d.ask("gpus")[1]["reason"] == "taken: memory that no process has which can be seen from here, 5120 MiB"
    told.say("gpus 2", "used 1 %d" % (GIB // 2))
    harness.wait_until("it is free", lambda: states(d) == ["free", "free"])
    number = running(d, 1)
    gpu = task_of(d, number)["gpus"][0]
    told.say("gpus 2", "used %d %d" % (gpu, 7 * GIB))
    harness.time.sleep(9)  # two looks: the task has it
    assert task_of(d, number)["gpu_taken_by"] == ""
    d.run("cancel", str(number))
    d.wait(number)
    harness.wait_until("what it left is found", lambda: "set-aside" in states(d))
    assert "7168 MiB; job %d had the GPU last" % number in d.ask("gpus")[gpu]["reason"]


def test_a_task_on_a_gpu_that_it_has_not_got_is_named(machine, tmp_path):
    d, told = machine
    told_by, command = tmp_path / "pid", "setsid -f bash -c 'echo $$ >%s.new; mv %s.new %s; exec sleep 300'; exec sleep 300"
    number = d.submit("bash", "-c", command % (told_by, told_by, told_by), flags=("--gpus", "1"))
    harness.wait_until("the pid of its child", told_by.exists)
    d.wait(number, "running")
    gpu, pid = task_of(d, number)["gpus"][0], int(told_by.read_text())
    told.say("gpus 2", "process %d %d %d" % (gpu, pid, 9 * GIB), "process %d %d %d" % (1 - gpu, pid, 9 * GIB))
    harness.wait_until("the other GPU is taken", lambda: states(d)[1 - gpu] == "set-aside")
    assert "process %d (sleep)" % pid in d.ask("gpus")[1 - gpu]["reason"]
    assert "of job %d, which has not got this GPU" % number in d.ask("gpus")[1 - gpu]["reason"]
    assert states(d)[gpu] == "allocated" and task_of(d, number)["gpu_taken_by"] == "", "its own GPU is its own"
    assert d.state(number) == "running"


def test_a_restart_keeps_what_is_taken_and_a_person_comes_first(machine, stranger):
    d, told = machine
    told.say("gpus 2", on(0, stranger))
    harness.wait_until("GPU 0 is taken", lambda: states(d) == ["set-aside", "free"])
    d.kill()
    d.up()
    harness.time.sleep(5)  # a look
    assert states(d) == ["set-aside", "free"]
    assert sum(e["kind"] == "gpu-state" for e in d.ask("events", "--limit", "1000")) == 1, "nothing is said anew"
    node = d.ask("nodes")[0]["name"]
    refused = d.run("gpus", "aside", node + "/1", "--reason", "taken: by me", check=False)
    assert refused.code != 0 and "Fairlead's own" in refused.err
    d.run("gpus", "aside", node + "/0", "--reason", "fan")
    assert d.ask("gpus")[0]["reason"] == "fan", "a reason can be changed"
    told.say("gpus 2")
    harness.time.sleep(10)  # two looks
    assert states(d) == ["set-aside", "free"], "who set it aside takes it back"


def test_what_comes_and_goes_does_not_fill_the_journal(machine, stranger):
    d, told = machine
    told.say("gpus 2", on(0, stranger))
    harness.wait_until("GPU 0 is taken", lambda: states(d) == ["set-aside", "free"])
    told.say("gpus 2")
    harness.wait_until("GPU 0 is free", lambda: states(d) == ["free", "free"])
    told.say("gpus 2", on(0, stranger))
    harness.wait_until("GPU 0 is taken again", lambda: states(d) == ["set-aside", "free"])
    told.say("gpus 2")
    harness.time.sleep(10)  # two looks
    assert states(d) == ["set-aside", "free"], "it came back a moment ago, and will again"
    told.say("gpus 2", on(0, stranger))
    harness.time.sleep(5)  # a look
    assert [e["event"].get("set_aside", 0) for e in d.ask("events", "--limit", "1000") if e["kind"] == "gpu-state"] == [1, 0, 1]
    told.say("gpus 2")
    harness.wait_until("nobody was seen for a minute", lambda: states(d) == ["free", "free"], 180)
