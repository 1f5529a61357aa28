# SPDX-License-Identifier: Apache-2.0
"""Jobs with checkpoints as pods: their shepherds, which report, ask and live by leases. A stand-in for kubelets runs them as processes here."""

import base64
import contextlib
import json
import os
import sys
import time
import urllib.error
import urllib.request

import pytest

import harness
from bed import bed, free_port, wait_until
from cluster import Serve
from stand_in import StandIn

HERE = os.path.dirname(os.path.abspath(__file__))
JOB = os.path.join(HERE, "shepherd_job.py")
LEASE_S = 10


@contextlib.contextmanager
def machines(*nodes, lease="%ds" % LEASE_S, gpus=8, words=()):
    port = free_port()
    with bed() as b, StandIn(b, *nodes, gpus=gpus, daemon="127.0.0.1:%d" % port) as kubelets:
        s = Serve(b, "--pod-listen", "127.0.0.1:%d" % port, "--shepherd-image", "fairlead", "--pod-lease", lease, *words)
        s.pod_port = port
        try:
            s.up()
            s.wait_for_nodes(len(nodes))
            yield b, s, kubelets
        except BaseException:
            print("the daemon's log:\n" + s.log())
            raise
        finally:
            s.destroy()


def submit(s, folder, *words, flags=()):
    """A job that counts: a step each 20 ms, written to FOLDER/steps; saves when it is asked to."""
    os.makedirs(folder, exist_ok=True)
    return s.submit("--checkpoint", "signal", "--checkpoint-path", str(folder), "--workdir", HERE, *flags, "--", sys.executable, JOB, *words)


def steps(folder):
    """(attempt, step) in the order in which they were done."""
    try:
        with open(os.path.join(folder, "steps")) as f:
            return [tuple(map(int, line.split())) for line in f if line.endswith("\n")]
    except FileNotFoundError:
        return []


def attempts_in(done):
    """Each time it changes: an attempt that comes twice ran beside another one."""
    return [attempt for i, (attempt, _) in enumerate(done) if i == 0 or done[i - 1][0] != attempt]


def goes_on(folder, more=20):
    count = len(steps(folder))
    wait_until("it goes on", lambda: len(steps(folder)) >= count + more)


def process_of(kubelets, s, job, attempt=1):
    return next(p.process for p in kubelets.pods.values() if p.labels["fairlead.dev/job"] == str(job)
                and p.labels["fairlead.dev/attempt"] == str(attempt))


def ask(s, token, path, body):
    request = urllib.request.Request("http://127.0.0.1:%d%s" % (s.pod_port, path), json.dumps(body).encode(), method="POST",
                                     headers={"Host": "fairlead-pods.fairlead.svc:7071", **({"Authorization": "Bearer " + token} if token else {})})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as e:
        return e.code, json.load(e)["error"]["message"]


def token_of(b, s, job):
    """That of its newest attempt, which lies in a Secret and not in the pod."""
    pod = b.get("/api/v1/namespaces/default/pods/" + s.pod(job, 0))
    name = pod["metadata"]["name"].rsplit("-", 1)[0]
    token = base64.b64decode(b.get("/api/v1/namespaces/default/secrets/" + name)["data"]["token"]).decode()
    assert token not in json.dumps(pod)
    return token


def test_a_task_in_a_pod_reports_and_saves_before_it_makes_room_and_goes_on_from_there(tmp_path):
    with machines("n0") as (b, s, kubelets):
        s.run("policy", "set", "--min-runtime", "1s")
        job = submit(s, tmp_path, "400", flags=["--gpus", "8", "--checkpoint-grace", "60s"])
        wait_until("it has reported", lambda: (s.ask("job", str(job))["attempts"][-1].get("step") or 0) > 5 or steps(tmp_path))
        wait_until("it has done some steps", lambda: len(steps(tmp_path)) > 60)
        critical = s.submit("--gpus", "8", "--tier", "critical", "--workdir", "/", "--", "true")
        s.wait_for(critical, "succeeded")
        s.wait_for(job, "succeeded")
        told = s.ask("job", str(job))
        assert told["attempt_count"] == 2 and told["checkpoints"], told
        done = steps(tmp_path)
        assert [step for _, step in done] == list(range(1, 401)), "a step was lost or done twice"
        assert len({attempt for attempt, _ in done}) == 2
        kinds = [row["kind"] for row in s.ask("job", str(job), "--history")]
        assert kinds.index("attempt-warned") < kinds.index("checkpoint-saved") < kinds.index("attempt-stopped"), kinds


def test_a_token_is_good_for_its_attempt_alone_and_a_stale_one_is_refused_by_name(tmp_path):
    with machines("n0") as (b, s, kubelets):
        job = submit(s, tmp_path, "100000", flags=["--gpus", "1"])
        s.wait_for(job, "running")
        goes_on(tmp_path)
        token, lease = token_of(b, s, job), "/pods/v1/attempts/1/ranks/0/lease"
        status, answer = ask(s, token, lease, {"wait_ms": 0, "warning": 0})
        assert (status, answer) == (200, {"lease_ms": LEASE_S * 1000})
        assert ask(s, None, lease, {})[0] == 401
        assert ask(s, token[:-1] + ("0" if token[-1] != "0" else "1"), lease, {})[0] == 401
        assert ask(s, token, "/pods/v1/attempts/1/ranks/7/lease", {})[0] == 404
        assert ask(s, token, "/api/v1/jobs", {})[0] == 404
        status, answer = ask(s, token, "/pods/v1/attempts/2/ranks/0/lease", {})
        assert status == 403 and "of attempt 1, and not of attempt 2" in answer
        # What the report socket refuses is refused here, too: who holds the token need not be a shepherd.
        for report in ({"number": 0, "step": 1}, {"number": 999, "step": -1}, {"number": 999, "checkpoint": "relative"},
                       {"number": 999, "checkpoint": "/a/../b"}, {"number": 999}):
            assert ask(s, token, lease.replace("lease", "reports"), {"reports": [report]})[0] == 400, report
        assert ask(s, token, lease.replace("lease", "reports"), {"reports": [{"number": 999, "step": 1}] * 65})[0] == 400
        assert ask(s, token, lease.replace("lease", "ended"), {"code": 256})[0] == ask(s, token, lease.replace("lease", "ended"), {})[0] == 400
        s.run("cancel", str(job))
        s.wait_for(job, "cancelled")
        status, answer = ask(s, token, lease, {"wait_ms": 0, "warning": 0})
        assert status == 409 and "attempt 1 is over" in answer
        assert ask(s, token, lease.replace("lease", "reports"), {"reports": [{"number": 9999, "step": 9999}]})[0] == 409


def test_without_a_word_from_the_daemon_a_task_stops_before_its_lease_ends_and_never_runs_twice(tmp_path):
    with machines("n0", "n1") as (b, s, kubelets):
        job = submit(s, tmp_path, "900", "stubborn", flags=["--gpus", "8"])
        goes_on(tmp_path)
        process = process_of(kubelets, s, job)
        s.kill()
        killed = time.monotonic()
        wait_until("its shepherd has stopped it", lambda: process.poll() is not None)
        # What the daemon waits for before it takes a silent task for stopped.
        assert time.monotonic() - killed < LEASE_S * 1.05 + 2
        before = steps(tmp_path)
        assert before and before[-1][1] < 900, "it had ended by itself"
        s.up()
        s.wait_for(job, "succeeded")
        assert s.ask("job", str(job))["attempt_count"] == 2
        after = steps(tmp_path)
        assert after[:len(before)] == before and attempts_in(after) == [1, 2]
        assert "no word from Fairlead" in s.run("job", str(job), "--history").out


def test_a_daemon_that_is_back_within_the_lease_is_not_noticed(tmp_path):
    with machines("n0", lease="5m") as (b, s, kubelets):
        job = submit(s, tmp_path, "400", flags=["--gpus", "8"])
        goes_on(tmp_path)
        process = process_of(kubelets, s, job)
        s.kill()
        goes_on(tmp_path, 50)
        s.up()
        s.wait_for(job, "succeeded")
        assert process.poll() == 0 and s.ask("job", str(job))["attempt_count"] == 1
        assert [step for _, step in steps(tmp_path)] == list(range(1, 401))
        # What it reported while nobody was there came in all the same.
        assert s.ask("job", str(job))["attempts"][-1]["tasks"][0]["step"] == 400


def test_a_node_that_is_cut_off_loses_its_job_when_the_lease_has_ended_and_not_before(tmp_path):
    with machines("n0", "n1") as (b, s, kubelets):
        job = submit(s, tmp_path, "100000", flags=["--gpus", "8"])
        goes_on(tmp_path)
        pod = b.get("/api/v1/namespaces/default/pods/" + s.pod(job, 0))
        node = pod["spec"]["nodeName"]
        process = process_of(kubelets, s, job)
        kubelets.cut(node)
        s.wait_for(job, "unreachable")
        # Its shepherd is heard all the while: longer than a lease, and it is not started elsewhere.
        goes_on(tmp_path, int((LEASE_S * 1.05 + 4) / 0.02))
        assert process.poll() is None and s.ask("job", str(job))["attempt_count"] == 1
        kubelets.wire(node).cut()
        wait_until("it runs elsewhere", lambda: s.ask("job", str(job))["attempt_count"] == 2)
        assert process.poll() is not None, "it still ran when it was started elsewhere"
        wait_until("it goes on there", lambda: steps(tmp_path)[-1][0] == 2)
        assert attempts_in(steps(tmp_path)) == [1, 2]
        assert "whose lease has ended" in s.run("job", str(job), "--history").out
        second = b.get("/api/v1/namespaces/default/pods/" + s.pod(job, 0))
        assert second["spec"]["nodeName"] != node
        s.run("cancel", str(job))


def test_a_task_that_ends_while_its_kubelet_is_not_heard_has_ended_by_its_shepherds_word(tmp_path):
    with machines("n0", "n1", lease="1h") as (b, s, kubelets):
        jobs = [submit(s, tmp_path / name, "200", *words, flags=["--gpus", "4", "--retries", "0"])
                for name, words in (("well", []), ("badly", ["fail"]))]
        for folder in ("well", "badly"):
            goes_on(tmp_path / folder)
        for node in ("n0", "n1"):
            kubelets.cut(node)
        s.wait_for(jobs[0], "succeeded")
        s.wait_for(jobs[1], "failed")
        assert [s.ask("job", str(job))["attempt_count"] for job in jobs] == [1, 1]
        assert [step for _, step in steps(tmp_path / "well")] == list(range(1, 201))


def test_a_note_of_a_lease_on_a_pod_of_others_proves_nothing(tmp_path):
    with machines("n0") as (b, s, kubelets):
        b.make("/api/v1/namespaces/default/pods", {
            "metadata": {"name": "other", "annotations": {"fairlead.dev/lease-ms": "1000"}},
            "spec": {"schedulerName": "fairlead", "automountServiceAccountToken": False, "restartPolicy": "Never", "containers": [
                {"name": "main", "image": "none", "command": ["sleep", "600"], "resources": {"limits": {"nvidia.com/gpu": "1"}}}]}})
        wait_until("it runs", lambda: [j["state"] for j in s.ask("jobs", "--all")] == ["running"])
        kubelets.cut("n0")
        wait_until("nothing is heard of it", lambda: [j["state"] for j in s.ask("jobs", "--all")] == ["unreachable"])
        time.sleep(5)  # longer than such a lease and its margin
        assert [j["state"] for j in s.ask("jobs", "--all")] == ["unreachable"]


def test_a_job_is_cancelled_where_no_kubelet_hears_of_it(tmp_path):
    with machines("n0", lease="1h") as (b, s, kubelets):
        job = submit(s, tmp_path, "100000", flags=["--gpus", "1"])
        goes_on(tmp_path)
        process = process_of(kubelets, s, job)
        kubelets.cut("n0")
        s.wait_for(job, "unreachable")
        s.run("cancel", str(job))
        s.wait_for(job, "cancelled")
        wait_until("its shepherd has ended, too, which said so before", lambda: process.poll() is not None)


def saves_and_makes_room(s, folder, job):
    """The step of the checkpoint that it saved, and the critical job that has its GPUs now."""
    before = len(s.ask("job", str(job))["checkpoints"])
    goes_on(folder)
    critical = s.submit("--gpus", "8", "--tier", "critical", "--workdir", "/", "--", "sleep", "1000")
    s.wait_for(critical, "running")
    checkpoints = s.ask("job", str(job))["checkpoints"]
    assert len(checkpoints) == before + 1
    return max(c["step"] for c in checkpoints), critical


def begun_at(s, folder, job, which):
    """The first step of the job's attempt number `which`, from 1; None = its task has not begun."""
    attempts = s.ask("job", str(job))["attempts"]
    number = attempts[which - 1]["attempt"] if len(attempts) >= which else 0
    return next((step for attempt, step in steps(folder) if attempt == number), None)


@pytest.mark.parametrize("tasks, damage", [(1, "smaller"), (1, "missing"), (2, "missing")])
def test_a_checkpoint_that_went_bad_is_found_when_the_pod_starts_and_the_one_before_is_taken(tmp_path, tasks, damage):
    with machines("n0") as (b, s, kubelets):
        s.run("policy", "set", "--min-runtime", "1s")
        job = submit(s, tmp_path, "100000", flags=["--gpus", str(8 // tasks), "--tasks", str(tasks), "--checkpoint-grace", "60s"])
        first, critical = saves_and_makes_room(s, tmp_path, job)
        s.run("cancel", str(critical))
        s.wait_for(job, "running")
        wait_until("it has gone on", lambda: begun_at(s, tmp_path, job, 2))
        assert begun_at(s, tmp_path, job, 2) == first + 1
        second, critical = saves_and_makes_room(s, tmp_path, job)
        newest = os.path.join(tmp_path, "at-%d" % second)
        if damage == "smaller":
            os.truncate(newest, 1)
        else:
            os.unlink(newest)
        s.run("cancel", str(critical))
        wait_until("it has gone on from the one before", lambda: begun_at(s, tmp_path, job, 4))
        assert begun_at(s, tmp_path, job, 4) == first + 1
        assert begun_at(s, tmp_path, job, 3) is None, "a task began with a checkpoint that is not good"
        told = s.ask("job", str(job))
        assert [c["number"] for c in told["checkpoints"] if not c["void"]] == [1], told["checkpoints"]
        assert [a["resumed_from"] for a in told["attempts"]] == [0, 1, 2, 1], told["attempts"]
        history = s.ask("job", str(job), "--history")
        assert [row["kind"] for row in history].count("checkpoint-void") == 1
        assert "the checkpoint to resume from is not good any more" in json.dumps(history)
        assert told["lost_gpu_ms"] > 0, told  # what lies between the two
        s.run("cancel", str(job))
        s.wait_for(job, "cancelled")


def test_a_file_server_that_fails_for_some_seconds_costs_no_checkpoint(tmp_path):
    if not harness.has_failpoints():
        pytest.skip("this build has no failpoints")
    with machines("n0") as (b, s, kubelets):
        s.run("policy", "set", "--min-runtime", "1s")
        job = submit(s, tmp_path, "100000", flags=["--gpus", "8", "--checkpoint-grace", "60s"])
        step, critical = saves_and_makes_room(s, tmp_path, job)
        # More than the looks at one that is missing.
        kubelets.more_env["FAIRLEAD_FAILPOINT"] = ",".join("checkpoint-look:error:%d" % i for i in range(1, 8))
        s.run("cancel", str(critical))
        wait_until("it has gone on", lambda: begun_at(s, tmp_path, job, 2))
        assert begun_at(s, tmp_path, job, 2) == step + 1
        told = s.ask("job", str(job))
        assert [c["void"] for c in told["checkpoints"]] == [False] and len(told["attempts"]) == 2, told


def test_what_a_shepherd_says_of_a_checkpoint_is_held_against_the_report(tmp_path):
    with machines("n0") as (b, s, kubelets):
        s.run("policy", "set", "--min-runtime", "1s")
        job = submit(s, tmp_path, "100000", flags=["--gpus", "8", "--checkpoint-grace", "60s"])
        step, critical = saves_and_makes_room(s, tmp_path, job)
        s.run("cancel", str(critical))
        wait_until("it has gone on", lambda: begun_at(s, tmp_path, job, 2))
        token, torn = token_of(b, s, job), "/pods/v1/attempts/3/ranks/0/torn"
        for body in ({"number": 2}, {"number": 0}, {"number": 1, "bytes": len(str(step))}, {"number": 1, "bytes": -2}, {}):
            assert ask(s, token, torn, body)[0] == 400, body
        assert ask(s, None, torn, {"number": 1})[0] == 401
        assert ask(s, token, torn, {"number": 1, "later": []}) == (200, {})
        # It is believed when the next attempt looks for what to begin with: one that runs has taken up what it goes on from.
        goes_on(tmp_path)
        assert s.ask("job", str(job))["checkpoints"][0]["void"] is False
