# SPDX-License-Identifier: Apache-2.0
"""The demonstration of examples/digits as a gang of pods. No kubelet runs here: a stand-in of ours (stand_in.py) runs the pods' processes on
this machine, and says so. Scheduler, API server, shepherds, processes, kills and checkpoints are real; GPUs, containers and nodes are not."""

import os
import re
import subprocess

from bed import TOP, wait_until
from test_shepherds import machines

TRAIN = os.path.join(TOP, "examples/digits/train.py")
STEPS = 4000


def python():
    """The one of scripts/quickstart, which has the digits."""
    made = subprocess.run([os.path.join(TOP, "scripts/python-packages")], stdout=subprocess.PIPE, text=True, check=True)
    return os.path.join(made.stdout.strip(), "bin/python")


def train(s, program, folder):
    os.makedirs(folder)
    return s.submit("--tasks", "4", "--gpus", "1", "--checkpoint", "signal", "--checkpoint-grace", "60s", "--checkpoint-path", str(folder),
                    "--workdir", str(folder), "--", program, TRAIN, "--steps", str(STEPS), "--every", "1000", "--out", str(folder / "digest"))


def output(kubelets, s, job, attempt):
    """What rank 0 of an attempt printed."""
    return next((p.log() for p in kubelets.pods.values() if p.process and p.labels["fairlead.dev/job"] == str(job)
                 and p.labels["fairlead.dev/attempt"] == str(attempt) and p.labels["fairlead.dev/rank"] == "0"), "")


def attempts(s, job):
    return [a["attempt"] for a in s.ask("job", str(job))["attempts"]]


def goes_on(kubelets, s, job, count):
    """Its attempt number `count`, from 1, runs and has saved something of its own."""
    wait_until("attempt %d of job %d has saved" % (count, job), lambda: len(attempts(s, job)) == count and s.state(job) == "running"
               and re.search("step [0-9]+ saved", output(kubelets, s, job, attempts(s, job)[-1])))


def test_a_gang_of_pods_that_makes_room_is_moved_and_loses_its_daemon_has_the_weights_of_an_undisturbed_one(tmp_path):
    print("The pods' processes run on this machine: tests/kubernetes/stand_in.py stands in for kubelets.")
    program = python()
    with machines("n0", "n1", "n2", gpus=2, lease="2m") as (b, s, kubelets):
        s.run("policy", "set", "--min-runtime", "1s")
        reference = train(s, program, tmp_path / "undisturbed")
        s.wait_for(reference, "succeeded")
        job = train(s, program, tmp_path / "disturbed")
        goes_on(kubelets, s, job, 1)
        # The daemon is killed; the ranks go on, and it finds them.
        s.kill()
        s.up()
        # A gang of others needs its place: it is warned, saves, and makes room; no pod of that gang runs before.
        other = s.submit("--tasks", "4", "--gpus", "1", "--tier", "critical", "--workdir", "/", "--", "sleep", "1")
        s.wait_for(other, "succeeded")
        wait_until("it runs again", lambda: len(attempts(s, job)) == 2 and s.state(job) == "running")
        # A node of it is drained: the same way.
        s.run("nodes", "drain", b.get("/api/v1/namespaces/default/pods/" + s.pod(job, 0))["spec"]["nodeName"])
        s.wait_for(job, "succeeded")
        tries, digests = attempts(s, job), [(tmp_path / name / "digest").read_text() for name in ("undisturbed", "disturbed")]
        assert digests[0] == digests[1] and len(tries) == 3, (digests, tries)
        # Each went on from the last step that the one before it had reported.
        for before, after in zip(tries, tries[1:]):
            saved = [row["event"] for row in s.ask("job", str(job), "--history")
                     if row["kind"] == "checkpoint-saved" and row["event"]["attempt"] == before]
            assert re.findall("from step ([0-9]+) of", output(kubelets, s, job, after)) == [str(saved[-1]["step"])], (before, after)
        kinds = [row["kind"] for row in s.ask("job", str(job), "--history") if row["kind"] in ("attempt-warned", "attempt-stopped")]
        assert kinds == ["attempt-warned", "attempt-stopped"] * 2, kinds
