# SPDX-License-Identifier: Apache-2.0
"""Unlike tasks in one gang, with real processes: who they are told to be, what they run, and how the job ends."""

import json
import os

import harness

# Notes who it is; a server ends when it is told to, a worker by itself when it may.
TASK = r"""
import json, os, signal, sys, time
notes = os.environ["NOTES"]
def note(word):
    names = ("FAIRLEAD_ROLE", "FAIRLEAD_ROLE_RANK", "FAIRLEAD_ROLE_SIZE", "FAIRLEAD_ROLES", "FAIRLEAD_HOSTS_WORKER",
             "FAIRLEAD_HOSTS_SERVER", "FAIRLEAD_GPUS", "FAIRLEAD_RANK", "WORLD_SIZE", "WHO", "ALL")
    with open(notes, "a") as f:
        f.write(json.dumps({"word": word, **{name: os.environ.get(name) for name in names}}) + "\n")
def told(number, frame):
    note("told")
    sys.exit(0)
signal.signal(signal.SIGTERM, told)
note("begin")
while not os.path.exists(notes + ".finish"):
    time.sleep(0.02)
note("end")
while os.environ["FAIRLEAD_ROLE"] == "server":
    time.sleep(0.02)
"""


class Scene:
    def __init__(self, d, **fields):
        self.client = harness.Client(d.data)
        self.notes = os.path.join(d.data, "notes")
        open(self.notes, "w").close()
        os.chmod(self.notes, 0o666)
        job = {"name": "ps", "command": ["python3", "-c", TASK], "env": {"NOTES": self.notes, "ALL": "all", "WHO": "job"},
               "checkpoint": {"grace": "20s"}, **fields}
        self.number = self.client.submit(job, "ps")

    def told(self, word):
        with open(self.notes) as f:
            lines = [json.loads(line) for line in f.read().splitlines() if line.endswith("}")]
        return [line for line in lines if line["word"] == word]

    def job(self):
        return self.client.get("/api/v1/jobs/%d" % self.number)

    def wait(self, what, test):
        harness.wait_until(what, test)

    def finish(self):
        open(self.notes + ".finish", "w").close()


def test_each_task_is_told_its_role_and_the_job_ends_with_the_role_that_says_so():
    with harness.Daemon(nodes="sim:1x4xH100-80GB") as d:
        scene = Scene(d, roles=[{"name": "server", "gpus": 0, "env": {"WHO": "server"}},
                                {"name": "worker", "tasks": 3, "min": 2, "gpus": 1, "ends_job": True}])
        scene.wait("all have begun", lambda: len(scene.told("begin")) == 4)
        begun = sorted(scene.told("begin"), key=lambda line: int(line["FAIRLEAD_RANK"]))
        assert [line["FAIRLEAD_ROLE"] for line in begun] == ["server", "worker", "worker", "worker"]
        assert [line["FAIRLEAD_ROLE_RANK"] for line in begun] == ["0", "0", "1", "2"]
        assert [line["FAIRLEAD_ROLE_SIZE"] for line in begun] == ["1", "3", "3", "3"]
        assert [line["FAIRLEAD_GPUS"] for line in begun] == ["0", "1", "1", "1"]
        assert [line["WHO"] for line in begun] == ["server", "job", "job", "job"]
        assert {line["ALL"] for line in begun} == {"all"}
        assert {line["FAIRLEAD_ROLES"] for line in begun} == {"server:1,worker:3"}
        assert {line["FAIRLEAD_HOSTS_WORKER"] for line in begun} == {"127.0.0.1,127.0.0.1,127.0.0.1"}
        assert {line["FAIRLEAD_HOSTS_SERVER"] for line in begun} == {"127.0.0.1"}
        roles = {role["name"]: role for role in scene.job()["roles"]}
        assert roles["worker"]["tasks"] == 3 and roles["worker"]["ends_job"] and roles["server"]["tasks"] == 1
        scene.finish()
        scene.wait("the job has ended", lambda: scene.job()["state"] == "succeeded")
        assert [line["FAIRLEAD_ROLE"] for line in scene.told("told")] == ["server"]
        assert scene.job()["attempts"][-1]["why"] == "done"


def test_roles_run_what_they_say_and_what_fails_ends_all():
    with harness.Daemon(nodes="sim:1x4xH100-80GB") as d:
        scene = Scene(d, roles=[{"name": "server", "gpus": 0, "ends_job": True},
                                {"name": "worker", "tasks": 2, "gpus": 1, "script": "test -e \"$NOTES.finish\" && exit 3\nsleep 0.3\nexec sh \"$0\""}])
        scene.wait("the server has begun", lambda: len(scene.told("begin")) == 1)
        scene.finish()
        scene.wait("the job has ended", lambda: scene.job()["state"] == "failed")
        assert scene.job()["exit_code"] == 3 and scene.job()["failed_rank"] in (1, 2)


def test_a_waiting_job_says_which_role_has_no_place():
    with harness.Daemon(nodes="sim:1x4xH100-80GB") as d:
        scene = Scene(d, roles=[{"name": "server", "gpus": 0}, {"name": "worker", "tasks": 5, "gpus": 1}])
        scene.wait("it says why", lambda: "worker: 5 of 1 GPU" in scene.job()["reason"])
