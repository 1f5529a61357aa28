# SPDX-License-Identifier: Apache-2.0
"""Nodes that will go (CKP-4): what runs there saves in the time that is left, stops, and goes on elsewhere. A stand-in for kubelets runs the
pods as processes here."""

from bed import wait_until
from test_shepherds import attempts_in, goes_on, machines, process_of, steps, submit

MERGE = "application/merge-patch+json"
DEAF = ("--kind", "training", "--checkpoint", "signal", "--checkpoint-path", "/ckpt", "--workdir", "/", "--")


def taint(b, node, *keys):
    status, answer = b.call("PATCH", "/api/v1/nodes/" + node, {"spec": {"taints": [
        {"key": key, "value": "a-value", "effect": "NoSchedule"} for key in keys]}}, MERGE)
    assert status == 200, answer


def node_of(b, s, job):
    return b.get("/api/v1/namespaces/default/pods/" + s.pod(job, 0))["spec"]["nodeName"]


def state_of(s, node):
    return next(n for n in s.ask("nodes") if n["name"] == node)


def went_elsewhere(b, s, job, folder, first, last):
    """From its checkpoint, with no step lost or done twice, and never at two places at once."""
    s.wait_for(job, "succeeded")
    assert node_of(b, s, job) != first
    done = steps(folder)
    assert [step for _, step in done] == list(range(1, last + 1)), "a step was lost or done twice"
    assert attempts_in(done) == [1, 2]
    kinds = [row["kind"] for row in s.ask("job", str(job), "--history")]
    assert kinds.index("attempt-warned") < kinds.index("checkpoint-saved") < kinds.index("attempt-stopped"), kinds


def test_a_job_on_a_spot_node_that_is_taken_back_saves_and_goes_on_elsewhere(tmp_path):
    with machines("n0", "n1") as (b, s, kubelets):
        job = submit(s, tmp_path, "500", flags=["--gpus", "8", "--checkpoint-grace", "10m"])
        goes_on(tmp_path)
        first = node_of(b, s, job)
        taint(b, first, "aws-node-termination-handler/spot-itn")
        went_elsewhere(b, s, job, tmp_path, first, 500)
        told = state_of(s, first)
        assert told["state"] == "draining" and "spot-itn" in told["reason"] and told["drain_ms"] > 0, told
        assert "takes it back" in s.run("job", str(job), "--history").out


def test_one_that_does_not_save_in_time_is_stopped_when_its_node_goes():
    with machines("n0", "n1") as (b, s, kubelets):
        for node in ("n0", "n1"):
            b.call("PATCH", "/api/v1/nodes/" + node, {"metadata": {"labels": {"cloud.google.com/gke-spot": "true"}}}, MERGE)
        wait_until("both are known as spot nodes", lambda: [n["capacity"] for n in s.ask("nodes")] == ["spot", "spot"])
        job = s.submit("--gpus", "8", "--checkpoint-grace", "10m", *DEAF, "sh", "-c", "trap '' USR1; while :; do sleep 1; done")
        s.wait_for(job, "running")
        wait_until("its pod runs", lambda: any(p.process for p in kubelets.pods.values()))
        first, process = node_of(b, s, job), process_of(kubelets, s, job)
        taint(b, first, "cloud.google.com/impending-node-termination")
        s.wait_for(job, "checkpointing")
        wait_until("it goes on elsewhere", lambda: s.ask("job", str(job))["attempt_count"] == 2 and s.state(job) == "running")
        assert process.poll() is not None and node_of(b, s, job) != first
        attempt = s.ask("job", str(job))["attempts"][0]
        assert attempt["ended_ms"] - attempt["warned_ms"] >= 20000, "it had most of the 25 s"


def test_one_without_checkpoints_is_asked_to_end_at_the_notice_and_goes_on_elsewhere(tmp_path):
    """Nothing in its pod hears a warning, so it gets SIGTERM in its place, with the time that is left."""
    ran, go = tmp_path / "ran", tmp_path / "go"
    with machines("n0", "n1") as (b, s, kubelets):
        job = s.submit("--gpus", "8", "--", "sh", "-c", "trap 'echo term >> %s; while ! test -e %s; do sleep 0.1; done; exit 3' TERM; "
                       "echo run >> %s; while :; do sleep 0.1; done" % (ran, go, ran))
        wait_until("it runs", lambda: ran.exists())
        first, name = node_of(b, s, job), s.pod(job, 0)
        taint(b, first, "aws-node-termination-handler/spot-itn")
        wait_until("it hears SIGTERM", lambda: "term" in ran.read_text())
        meta = b.get("/api/v1/namespaces/default/pods/" + name)["metadata"]
        assert 30 < meta["deletionGracePeriodSeconds"] <= 110, "it has the time that is left"
        go.write_text("")
        wait_until("it runs elsewhere", lambda: ran.read_text().split() == ["run", "term", "run"])
        assert node_of(b, s, job) != first
        told = s.ask("job", str(job))
        attempt = told["attempts"][0]
        assert attempt["why"] == "node" and attempt["ended_ms"] < state_of(s, first)["drain_ms"], attempt
        assert attempt["deadline_ms"] <= state_of(s, first)["drain_ms"] and told["retries_left"] == 0, attempt
        kinds = [row["kind"] for row in s.ask("job", str(job), "--history")]
        assert kinds.index("attempt-warned") < kinds.index("attempt-deaf") < kinds.index("attempt-stopped"), kinds


def test_a_notice_that_is_withdrawn_and_a_node_that_a_person_closed():
    with machines("n0") as (b, s, kubelets):
        job = s.submit("--gpus", "8", "--checkpoint-grace", "10m", *DEAF, "sh", "-c", "trap '' USR1; while :; do sleep 1; done")
        s.wait_for(job, "running")
        # A candidate and a recommendation are no notices.
        taint(b, "n0", "DeletionCandidateOfClusterAutoscaler", "aws-node-termination-handler/rebalance-recommendation")
        wait_until("the taints are seen", lambda: "DeletionCandidate" in state_of(s, "n0")["taints"])
        assert (state_of(s, "n0")["state"], s.state(job)) == ("ready", "running")
        taint(b, "n0", "karpenter.sh/disrupted")
        s.wait_for(job, "checkpointing")
        assert state_of(s, "n0")["drain_ms"] == 0, "nobody says when"
        taint(b, "n0", "karpenter.sh/disrupted", "aws-node-termination-handler/spot-itn")
        wait_until("a shorter notice counts", lambda: state_of(s, "n0")["drain_ms"] > 0)
        taint(b, "n0")
        s.wait_for(job, "running")
        assert state_of(s, "n0")["state"] == "ready" and s.ask("job", str(job))["attempt_count"] == 1
        s.run("nodes", "cordon", "n0", "--reason", "smells")
        taint(b, "n0", "aws-node-termination-handler/spot-itn")
        s.wait_for(job, "checkpointing")
        taint(b, "n0")
        s.wait_for(job, "running")
        told = state_of(s, "n0")
        assert told["state"] == "cordoned" and "by a person" in told["reason"], told


def test_a_node_that_a_person_closed_stays_so_though_it_was_down_after_a_notice():
    with machines("n0") as (b, s, kubelets):
        s.run("nodes", "cordon", "n0", "--reason", "smells")
        taint(b, "n0", "aws-node-termination-handler/spot-itn")
        wait_until("the notice counts", lambda: state_of(s, "n0")["state"] == "draining")
        kubelets.ready("n0", "False")
        wait_until("it is down", lambda: state_of(s, "n0")["state"] == "down")
        taint(b, "n0")
        kubelets.ready("n0", "True")
        wait_until("it is back", lambda: state_of(s, "n0")["state"] != "down")
        told = state_of(s, "n0")
        assert told["state"] == "cordoned" and "by a person" in told["reason"], told


def test_what_kubectl_drain_does(tmp_path):
    """It cordons the node and evicts the pods: SIGTERM is all that a task's shepherd hears."""
    with machines("n0", "n1") as (b, s, kubelets):
        job = submit(s, tmp_path, "500", flags=["--gpus", "8"])
        goes_on(tmp_path)
        first, name = node_of(b, s, job), s.pod(job, 0)
        status, answer = b.call("PATCH", "/api/v1/nodes/" + first, {"spec": {"unschedulable": True}}, MERGE)
        assert status == 200, answer
        b.make("/api/v1/namespaces/default/pods/%s/eviction" % name, {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}})
        s.wait_for(job, "succeeded")
        assert node_of(b, s, job) != first and state_of(s, first)["state"] == "cordoned"
        done = steps(tmp_path)
        assert [step for _, step in done] == list(range(1, 501)), "a step was lost or done twice"
        assert attempts_in(done) == [1, 2]


def test_maintenance_that_begins_before_a_grace_is_over(tmp_path):
    with machines("n0", "n1") as (b, s, kubelets):
        job = submit(s, tmp_path, "500", flags=["--gpus", "8", "--checkpoint-grace", "10m"])
        goes_on(tmp_path)
        first = node_of(b, s, job)
        s.run("nodes", "maintenance", first, "--from", "20s", "--for", "1h", "--reason", "new cables")
        went_elsewhere(b, s, job, tmp_path, first, 500)
        wait_until("it has begun", lambda: state_of(s, first)["state"] == "maintenance")
        assert "has maintenance" in s.run("job", str(job), "--history").out


def test_a_drain_by_a_deadline_on_a_cluster(tmp_path):
    with machines("n0", "n1") as (b, s, kubelets):
        job = submit(s, tmp_path, "500", flags=["--gpus", "8", "--checkpoint-grace", "10m"])
        goes_on(tmp_path)
        first = node_of(b, s, job)
        s.run("nodes", "drain", first, "--deadline", "30s")
        went_elsewhere(b, s, job, tmp_path, first, 500)
        # What a person said stays, whatever the taints of the node say afterwards.
        taint(b, first, "karpenter.sh/disrupted")
        taint(b, first)
        b.call("PATCH", "/api/v1/nodes/" + first, {"metadata": {"labels": {"pool": "blue"}}}, MERGE)
        wait_until("it was read again", lambda: "pool=blue" in state_of(s, first)["labels"])
        assert state_of(s, first)["state"] == "draining"
