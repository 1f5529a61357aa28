# SPDX-License-Identifier: Apache-2.0
"""Ranks that leave and come in running attempts of pods, with real shepherds and tasks (docs/decisions/0007, 0022)."""

import base64
import json
import os
import signal

from bed import free_port, wait_until
from cluster import PODS, cluster
from proxy import path_of, refusal
from test_dra import all_claims, claims_of, devices_of_pod, dra_cluster, nobody_shares
from test_faults import refuse
from test_pods import phase
from test_replicas import leads, made_once, replicas
from test_shepherds import ask, machines
from test_stand_by import leader_of

EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples", "python")

# Notes what it is told, and leaves by itself when it is asked to; ends with 0 when it may.
RANK = r"""
import json, os, select, sys, time
sys.path.insert(0, os.environ["EXAMPLES"])
import fairlead_job
notes, me = os.environ["NOTES"], os.environ["FAIRLEAD_RANK"]
def note(*words):
    with open(notes, "a") as f:
        f.write(" ".join(map(str, words)) + "\n")
world = fairlead_job.World()
with open(os.environ["FAIRLEAD_WORLD_FILE"]) as f:
    hosts = json.load(f)["hosts"]
note("begin", me, os.environ["FAIRLEAD_ATTEMPT"], os.getpid(), os.environ["RANK"], os.environ["WORLD_SIZE"], world.generation,
     hosts[world.rank].split(".")[0])
assert "FAIRLEAD_POD_LAUNCH" not in os.environ and "FAIRLEAD_POD_TOKEN" not in os.environ
while not os.path.exists(notes + ".finish"):
    note("beat", me, os.getpid(), time.monotonic())
    if select.select([world], [], [], 0.1)[0] and world.changed():
        note("told", me, world.generation, world.size, world.rank, json.dumps(world.ranks).replace(" ", ""))
        if world.rank < 0:
            note("leave", me)
            sys.exit(0)
note("end", me)
"""


class Scene:
    def __init__(self, b, s, folder, **fields):
        self.b, self.s, self.notes = b, s, os.path.join(str(folder), "notes")
        open(self.notes, "w").close()
        s.run("policy", "set", "--min-runtime", "0s", "--grace", "20s")
        job = {"name": "world", "command": ["python3", "-c", RANK], "env": {"NOTES": self.notes, "EXAMPLES": EXAMPLES}, "gpus": 1,
               "workdir": str(folder), "checkpoint": {"path": str(folder)}, **fields}
        self.number = json.loads(s.run("submit", "-", "-o", "json", stdin=json.dumps(job)).out)["id"]

    def told(self, word):
        with open(self.notes) as f:
            return [line.split()[1:] for line in f.read().splitlines() if line.split()[:1] == [word]]

    def wait_begun(self, count):
        wait_until("%d ranks have begun" % count, lambda: len(self.told("begin")) >= count)

    def wait_told(self, generation, size, *ranks):
        wait_until("ranks %s know generation %d" % (ranks, generation), lambda: {line[0] for line in self.told("told")
                   if int(line[1]) >= generation and line[2] == str(size) and line[3] != "-1"} >= set(ranks))

    def pods(self):
        """By what stands behind the attempt: rank, or rank and start."""
        return {name.split("-", 4)[4]: pod for name, pod in self.s.pods().items() if pod["metadata"]["labels"]["fairlead.dev/job"] == str(self.number)}

    def job(self):
        return self.s.ask("job", str(self.number))

    def finish(self):
        open(self.notes + ".finish", "w").close()
        self.s.wait_for(self.number, "succeeded")
        assert self.job()["attempt_count"] == 1
        wait_until("nothing is held", lambda: not any(p["metadata"].get("finalizers") for p in self.pods().values()))
        label = "?labelSelector=fairlead.dev%%2Fjob%%3D%d" % self.number
        for kind in ("secrets", "services"):
            wait_until("no %s are left" % kind, lambda kind=kind: not self.b.get("/api/v1/namespaces/default/" + kind + label)["items"])


def node_of(pod):
    return pod["spec"]["nodeName"]


def kinds(scene):
    return [row["kind"] for row in scene.s.ask("job", str(scene.number), "--history")]


def never_two(scene):
    """Of no rank do two tasks run at a time: each beat is of its newest process."""
    newest = {}
    with open(scene.notes) as f:
        for line in f.read().splitlines():
            words = line.split()
            if words[0] == "begin":
                newest[words[1]] = words[3]
            elif words[0] == "beat":
                assert newest[words[1]] == words[2], "rank %s runs twice" % words[1]


def test_an_elastic_job_gives_up_two_of_four_ranks_for_a_gang_and_takes_them_back(tmp_path):
    with machines("n0", "n1", gpus=2, lease="5m") as (b, s, kubelets):
        scene = Scene(b, s, tmp_path, tasks="2..4")
        scene.wait_begun(4)
        assert {line[6] for line in scene.told("begin")} == {"rank-0", "rank-1", "rank-2", "rank-3"}
        # Its Secret and its Service are nobody's: whichever pod goes, they stay.
        for kind in ("secrets", "services"):
            parts = b.get("/api/v1/namespaces/default/%s?labelSelector=fairlead.dev%%2Fjob" % kind)["items"]
            assert len(parts) == 1 and "ownerReferences" not in parts[0]["metadata"], parts
        gang = s.submit("--gpus", "1", "--tasks", "2", "--priority", "10", "--workdir", "/", "--",
                        "sh", "-c", "until [ -e '%s.gang' ]; do sleep 0.1; done" % scene.notes)
        s.wait_for(gang, "running")
        left = sorted(line[0] for line in scene.told("leave"))
        assert len(left) == 2, left
        stay = sorted(set("0123") - set(left))
        scene.wait_told(1, 2, *stay)
        for rank in left:
            wait_until("its pod is let go", lambda rank=rank: not scene.pods()[rank]["metadata"].get("finalizers"))
        open(scene.notes + ".gang", "w").close()
        s.wait_for(gang, "succeeded")
        scene.wait_begun(6)
        again = scene.told("begin")[4:]
        assert sorted(line[0] for line in again) == left and {line[4] for line in again} <= {"3", "4"}
        assert sorted(line[6] for line in again) == ["rank-%s-1" % rank for rank in left]
        wait_until("all know all", lambda: {line[0] for line in scene.told("told") if line[2] == "4"} >= set(stay))
        never_two(scene)
        scene.finish()


def test_a_node_that_is_cut_off_loses_its_rank_which_comes_again_elsewhere_when_its_lease_has_ended(tmp_path):
    with machines("n0", "n1", "n2", "n3", gpus=2) as (b, s, kubelets):
        # Two ranks a node: their leases end one after the other, and both come again.
        scene = Scene(b, s, tmp_path, tasks=4, rejoin=True)
        scene.wait_begun(4)
        pods = scene.pods()
        node = node_of(pods["0"])
        lost = sorted(rank for rank, pod in pods.items() if node_of(pod) == node)
        stay = sorted(set("0123") - set(lost))
        pids = [int(line[2]) for line in scene.told("begin") if line[0] in lost]
        processes = [kubelets.of(pods[rank]["metadata"]["name"]).process for rank in lost]
        assert lost and stay and len(pids) == len(lost)
        kubelets.cut(node)
        s.wait_for(scene.number, "unreachable")
        kubelets.wire(node).cut()
        scene.wait_begun(4 + len(lost))
        assert all(process.poll() is not None for process in processes), "it still ran when it was started elsewhere"
        again = scene.told("begin")[4:]
        assert sorted(line[0] for line in again) == lost and {line[1] for line in again} == {"1"}
        assert sorted(line[6] for line in again) == ["rank-%s-1" % rank for rank in lost]
        wait_until("those who stayed know of it", lambda: {line[0] for line in scene.told("told") if line[2] == "4"} >= set(stay))
        for rank in lost:
            new = scene.pods()[rank + "-1"]
            assert node_of(new) != node and new["metadata"]["labels"]["fairlead.dev/launch"] == "1"
        # Who still asks for the earlier start may not go on; the later one may.
        token = secret_token(b, scene.number)
        path = "/pods/v1/attempts/1/ranks/%s/lease"
        status, answer = ask(s, token, path % lost[0], {"wait_ms": 0})
        assert status == 409 and "was started anew" in answer
        status, answer = ask(s, token, path % (lost[0] + ".1"), {"wait_ms": 0, "world": -1})
        assert status == 200 and answer["world"]["size"] == 4 and answer["rank"] == int(lost[0]), answer
        status, answer = ask(s, token, path % (lost[0] + ".1"), {"wait_ms": 0})
        assert status == 200 and "world" not in answer, answer
        assert ask(s, token, path % (lost[0] + ".2"), {"wait_ms": 0})[0] == 503
        assert ask(s, token, path % (lost[0] + ".0"), {"wait_ms": 0})[0] == 404
        never_two(scene)
        scene.finish()


def secret_token(b, job):
    secrets = b.get("/api/v1/namespaces/default/secrets?labelSelector=fairlead.dev%%2Fjob%%3D%d" % job)["items"]
    return base64.b64decode(secrets[0]["data"]["token"]).decode()


def test_a_daemon_that_is_killed_while_ranks_leave_and_come_goes_on_with_it(tmp_path):
    with machines("n0", "n1", "n2", gpus=1) as (b, s, kubelets):
        scene = Scene(b, s, tmp_path, tasks=2, rejoin=True)
        scene.wait_begun(2)
        pods = scene.pods()
        # While the lease of the lost one runs: the next daemon counts it anew.
        kubelets.cut(node_of(pods["0"]))
        kubelets.wire(node_of(pods["0"])).cut()
        s.wait_for(scene.number, "unreachable")
        s.kill()
        s.up()
        wait_until("its pod is made", lambda: "0-1" in scene.pods())
        s.kill()  # whatever has become of that pod
        s.up()
        scene.wait_begun(3)
        assert scene.told("begin")[2][6] == "rank-0-1"
        # With the pod of an earlier start on a node that is not heard, nothing is unreachable.
        scene.wait_told(2, 2, "1")
        silent = kinds(scene).count("attempt-unreachable")
        s.kill()
        s.up()
        wait_until("it runs", lambda: s.state(scene.number) == "running")
        assert kinds(scene).count("attempt-unreachable") == silent
        never_two(scene)
        scene.finish()


def test_an_end_that_a_new_daemon_finds_is_told_with_that_of_a_node_that_is_not_heard(tmp_path):
    with machines("n0", "n1", "n2", "n3", gpus=1, lease="20s") as (b, s, kubelets):
        scene = Scene(b, s, tmp_path, tasks=3, rejoin=True)
        scene.wait_begun(3)
        pods = scene.pods()
        kubelets.cut(node_of(pods["0"]))
        kubelets.wire(node_of(pods["0"])).cut()
        s.wait_for(scene.number, "unreachable")
        s.kill()
        name = pods["1"]["metadata"]["name"]
        assert b.call("DELETE", "/api/v1/namespaces/default/pods/" + name, {"gracePeriodSeconds": 0})[0] == 200
        wait_until("it has ended", lambda: scene.pods()["1"]["status"]["phase"] == "Failed")
        s.up()
        scene.wait_begun(5)
        assert sorted(line[:2] for line in scene.told("begin")[3:]) == [["0", "1"], ["1", "1"]], scene.told("begin")
        never_two(scene)
        scene.finish()


def test_a_program_that_is_killed_inside_its_pod_has_failed_and_its_rank_does_not_come_again(tmp_path):
    with machines("n0", gpus=2) as (b, s, kubelets):
        scene = Scene(b, s, tmp_path, tasks=2, rejoin=True)
        scene.wait_begun(2)
        os.kill(next(int(line[2]) for line in scene.told("begin") if line[0] == "1"), signal.SIGKILL)
        s.wait_for(scene.number, "failed")
        assert len(scene.told("begin")) == 2 and "137" in json.dumps(scene.job()), scene.job()


def test_a_rank_is_told_to_leave_and_its_daemon_is_killed(tmp_path):
    with machines("n0", "n1", gpus=1, lease="5m") as (b, s, kubelets):
        deaf = "import os, signal, time\nsignal.signal(signal.SIGTERM, lambda *_: open(os.environ['NOTES'] + '.term', 'w').close())\n" \
               "open(os.environ['NOTES'] + '.' + os.environ['FAIRLEAD_RANK'], 'w').close()\ntime.sleep(1000)"
        scene = Scene(b, s, tmp_path, tasks="1..2", command=["python3", "-c", deaf])
        wait_until("both have begun", lambda: all(os.path.exists("%s.%d" % (scene.notes, rank)) for rank in (0, 1)))
        s.wait_for(scene.number, "running")
        other = s.submit("--gpus", "1", "--priority", "10", "--workdir", "/", "--", "sleep", "1000")
        wait_until("it hears SIGTERM, for nobody listens", lambda: os.path.exists(scene.notes + ".term"))
        assert s.state(other) == "queued", "a place was free before its rank had stopped"
        s.kill()
        s.up()
        s.wait_for(other, "running")
        gone = process_of_rank(kubelets, scene, "1")
        assert gone.poll() is not None, "its GPU was given away while it ran"
        assert scene.job()["attempt_count"] == 1 and s.state(scene.number) == "running"
        s.run("cancel", str(scene.number))
        s.wait_for(scene.number, "cancelled")


def test_a_rank_that_can_not_be_told_to_leave_is_stopped_when_its_time_is_over(tmp_path):
    with machines("n0", "n1", gpus=1, lease="1h") as (b, s, kubelets):
        scene = Scene(b, s, tmp_path, tasks="1..2")
        scene.wait_begun(2)
        s.run("policy", "set", "--grace", "2s")
        pod = scene.pods()["1"]
        process = process_of_rank(kubelets, scene, "1")
        kubelets.wire(node_of(pod)).cut()
        other = s.submit("--gpus", "1", "--priority", "10", "--workdir", "/", "--", "sleep", "1000")
        s.wait_for(other, "running")
        assert process.poll() is not None, "its GPU was given away while it ran"
        assert not [line for line in scene.told("told") if line[0] == "1"]
        scene.wait_told(1, 1, "0")
        s.run("cancel", str(other))
        s.wait_for(other, "cancelled")
        scene.wait_told(2, 2, "0")
        s.run("cancel", str(scene.number))
        s.wait_for(scene.number, "cancelled")


def test_a_pod_that_is_deleted_comes_again_where_its_job_may_run(tmp_path):
    with machines("n0", "n1", "n2", gpus=2, lease="5m") as (b, s, kubelets):
        for node in ("n0", "n1"):
            amounts = {"example.com/nic": "2"}
            status, answer = b.call("PATCH", "/api/v1/nodes/%s/status" % node, {"status": {"capacity": amounts, "allocatable": amounts}},
                                    "application/strategic-merge-patch+json")
            assert status == 200, answer
        scene = Scene(b, s, tmp_path, tasks=3, rejoin=True, resources={"example.com/nic": 1})
        scene.wait_begun(3)
        name = scene.pods()["1"]["metadata"]["name"]
        assert b.call("DELETE", "/api/v1/namespaces/default/pods/" + name)[0] == 200
        scene.wait_begun(4)
        assert scene.told("begin")[3][0] == "1" and scene.told("begin")[3][6] == "rank-1-1"
        assert node_of(scene.pods()["1-1"]) in ("n0", "n1")
        wait_until("its own pod is gone", lambda: "1" not in scene.pods())
        scene.wait_told(2, 3, "0", "2")
        # What the rank prints now is asked of its newest pod.
        assert "%s-1" % name in s.run("logs", "%d/1" % scene.number, check=False).err
        never_two(scene)
        scene.finish()


def test_a_rank_that_comes_again_gets_its_gpus_by_a_claim_of_its_own():
    with dra_cluster(gpus=4, words=("--pod-listen", "127.0.0.1:%d" % free_port(), "--shepherd-image", "fairlead")) as (b, s):
        job = {"name": "j", "command": ["train"], "gpus": 2, "tasks": 3, "rejoin": True, "workdir": "/", "checkpoint": "signal"}
        number = json.loads(s.run("submit", "-", "-o", "json", stdin=json.dumps(job)).out)["id"]
        s.wait_for(number, "running")
        name = s.pod(number, 1)
        wait_until("it runs", lambda: phase(b, name) == "Running")
        b.call("DELETE", PODS + "/" + name)
        wait_until("its next start runs", lambda: name + "-1" in s.pods() and phase(b, name + "-1") == "Running")
        (claim,) = claims_of(b, name + "-1")
        assert claim["metadata"]["name"] == name + "-1" and len(devices_of_pod(b, name + "-1")) == 2
        wait_until("the claim of the first is gone", lambda: len(all_claims(b)) == 3)
        nobody_shares(b)
        s.run("cancel", str(number))
        s.wait_for(number, "cancelled")
        wait_until("all of it is given back", lambda: not all_claims(b))


def test_answers_that_get_lost_and_refusals_while_a_rank_comes_and_at_the_end():
    words = ("--pod-listen", "127.0.0.1:%d" % free_port(), "--shepherd-image", "fairlead")
    with cluster(nodes=2, gpus=4, words=words, through=True) as (b, s):
        job = {"name": "j", "command": ["train"], "gpus": 1, "tasks": 3, "rejoin": True, "workdir": "/", "checkpoint": "signal"}
        number = json.loads(s.run("submit", "-", "-o", "json", stdin=json.dumps(job)).out)["id"]
        s.wait_for(number, "running")
        name = s.pod(number, 1)
        wait_until("it runs", lambda: phase(b, name) == "Running")
        lost = []

        def answer_is_lost(method, path, body):
            if method != "POST" or path_of(path) != PODS or len(lost) > 1:
                return None
            lost.append(b.call("POST", path, json.loads(body))[0])
            return refusal(504, "Timeout")
        s.proxy.rules.append(answer_is_lost)
        b.call("DELETE", PODS + "/" + name)
        wait_until("its next start runs", lambda: name + "-1" in s.pods() and phase(b, name + "-1") == "Running")
        assert lost[0] == 201 and set(lost[1:]) <= {409}, lost
        # It is cancelled while a rank can't come; then its Secret can't be deleted, and the daemon is killed.
        s.proxy.rules[:] = [refuse("POST", "/pods", refusal(503, "ServiceUnavailable"))]
        before = s.proxy.count("POST " + PODS)
        b.call("DELETE", PODS + "/" + s.pod(number, 2))
        wait_until("it is tried", lambda: s.proxy.count("POST " + PODS) > before + 1)
        s.proxy.rules.append(lambda method, path, body: refusal(409, "Conflict") if method == "DELETE" and "/secrets/" in path else None)
        s.run("cancel", str(number))
        s.wait_for(number, "cancelled")
        wait_until("the Secret is to go", lambda: s.proxy.count("DELETE /api/v1/namespaces/default/secrets") > 1)
        held = [pod for pod in s.pods().values() if pod["metadata"].get("finalizers")]
        assert len(held) >= 2, "who comes next would not know of the Secret"
        s.kill()
        s.proxy.rules.clear()
        s.up()
        wait_until("nothing is held", lambda: not any(p["metadata"].get("finalizers") for p in s.pods().values()))
        for kind in ("secrets", "services"):
            assert not b.get("/api/v1/namespaces/default/%s?labelSelector=fairlead.dev%%2Fjob" % kind)["items"]
        assert s.ask("job", str(number))["attempt_count"] == 1


def test_a_stand_by_takes_over_while_ranks_leave_and_come(tmp_path):
    with replicas("n0", "n1") as (b, daemons, service, kubelets):
        leader, other = leader_of(daemons)
        scene = Scene(b, leader, tmp_path, tasks="2..4", gpus=4)
        scene.wait_begun(4)
        gang = leader.submit("--gpus", "4", "--tasks", "2", "--priority", "10", "--workdir", "/", "--",
                             "sh", "-c", "until [ -e '%s.gang' ]; do sleep 0.1; done" % scene.notes)
        leader.kill()
        leads(other)
        scene.s = other
        other.wait_for(gang, "running")
        left = sorted(line[0] for line in scene.told("leave"))
        assert len(left) == 2, left
        leader.up()
        leader, other = leader_of(daemons)
        open(scene.notes + ".gang", "w").close()
        leader.wait_for(gang, "succeeded")
        leader.kill()
        leads(other)
        scene.s = other
        scene.wait_begun(6)
        assert sorted(line[6] for line in scene.told("begin")[4:]) == ["rank-%s-1" % rank for rank in left]
        made_once(b)
        never_two(scene)
        scene.finish()


def process_of_rank(kubelets, scene, rank):
    return kubelets.of(scene.pods()[rank]["metadata"]["name"]).process


def test_ranks_that_leave_and_come_are_refused_without_shepherds_and_it_is_said_how_to_mend_that(tmp_path):
    job = {"name": "j", "command": ["true"], "gpus": 1, "workdir": "/", "image": "none"}

    def refused(s, **fields):
        done = s.run("submit", "-", "--dry-run", stdin=json.dumps({**job, **fields}), check=False)
        assert done.code, done
        return done.err
    with cluster(nodes=1) as (b, s):
        assert "tasks that come and go" in refused(s, tasks="1..2") and "--pod-listen" in refused(s, tasks="1..2")
        assert "resize: restart" in refused(s, tasks="1..2")
        assert "rejoin" in refused(s, tasks=2, rejoin=True) and "--pod-listen" in refused(s, tasks=2, rejoin=True)
    with machines("n0") as (b, s, kubelets):
        assert "write checkpoint" in refused(s, tasks="1..2") and "write checkpoint" in refused(s, tasks=2, rejoin=True)
        assert "1,024 tasks" in refused(s, tasks="1..1025", checkpoint="signal")
        assert "1,024 tasks" in refused(s, tasks=1025, rejoin=True, checkpoint="signal")
