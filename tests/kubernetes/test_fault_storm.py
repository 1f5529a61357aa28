# SPDX-License-Identifier: Apache-2.0
"""Jobs of Fairlead's own and pods of others come and go while a proxy makes faults (faults.py). An account of its own watches the API server past the
proxy: no rank has two pods that run, no pod is bound twice, no GPU is given twice; and soon after the last fault the journal and the API server say the same.
scripts/campaign-faults runs the long form."""

import collections
import json
import os
import random
import shutil
import threading
import time

import harness
from bed import Bed
from cluster import PODS, Serve
from faults import FaultProxy
from witness import Api, Witness, holds

HERE = os.path.dirname(os.path.abspath(__file__))
FAULTS = int(os.environ.get("FAIRLEAD_FAULTS", "50000"))
SECONDS = int(os.environ.get("FAIRLEAD_FAULTS_SECONDS", "170"))
SEED = int(os.environ.get("FAIRLEAD_FAULTS_SEED", "1"))
NODES, GPUS, CONVERGE_S, MOST = 16, 8, 30, 8  # MOST: of one kind that one of the churners keeps
LIVE, ENDED = "status.phase!=Succeeded,status.phase!=Failed", "status.phase!=Pending,status.phase!=Running"


class Churn:
    """Makes work and takes it away, by the dice of a seed, until it is told to stop. `name` begins the names of its own."""

    def __init__(self, b, s, seed, name):
        self.bed, self.serve, self.dice, self.stop, self.name = Api(b), s, random.Random("%s %s" % (seed, name)), False, name
        self.client = harness.Client(s.data)
        self.jobs, self.pods, self.number, self.did = [], [], 0, collections.Counter()
        self.problem, self.crowded, self.forced = None, False, collections.Counter()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        try:
            while not self.stop:
                getattr(self, self.dice.choices(("job", "cancel", "pod", "gang", "delete", "replace", "force"), (20, 2, 3, 1, 2, 1, 1))[0])()
                time.sleep(self.dice.random() * 0.05)
        except Exception as e:
            self.problem = repr(e)
            raise

    def count(self, what):
        self.did[what] += 1

    def job(self):
        if len(self.jobs) > MOST:
            return self.cancel()
        self.number += 1
        if self.number % 5 == 0:  # no more than the machines can do: it is to be over soon after the last fault
            self.crowded = sum(j["name"].startswith("j") for j in self.client.get("/api/v1/jobs?limit=500&state=queued")["jobs"]) > 30
        if self.crowded:
            return self.cancel()
        short = self.dice.random() < 0.9
        job = {"name": "j%s%d" % (self.name, self.number), "command": ["true" if short else "sleep"], "gpus": self.dice.choice((1, 1, 1, 2, 4, 8)),
               "tasks": self.dice.choice((1, 2, 3, 4, 8)), "image": "none", "retries": 3}
        if self.dice.random() < 0.3:
            job["env"] = {"WORD": "x"}
        status, answer = self.client.once("POST", "/api/v1/jobs", job, {"Idempotency-Key": job["name"]})
        assert status in (200, 201), (status, answer)
        if not short:
            self.jobs.append(answer["id"])
        self.count("jobs")

    def cancel(self):
        if self.jobs:
            status, answer = self.client.once("POST", "/api/v1/jobs/%d/cancel" % self.jobs.pop(self.dice.randrange(len(self.jobs))), {})
            assert status in (200, 201, 202, 204, 409), (status, answer)
            self.count("cancelled")

    def make(self, name, command, gpus, **meta):
        status, answer = self.bed.call("POST", PODS, {
            "metadata": {"name": name, **meta},
            "spec": {"schedulerName": "fairlead", "restartPolicy": "Never", "automountServiceAccountToken": False,
                     "containers": [{"name": "main", "image": "none", "command": [command],
                                     "resources": {"limits": {"nvidia.com/gpu": str(gpus)}}}]}})
        assert status in (201, 409), (status, answer)

    def pod(self):
        if len(self.pods) > MOST:
            return self.delete()
        self.number += 1
        name = "p%s%d" % (self.name, self.number)
        short = self.dice.random() < 0.8
        self.make(name, "true" if short else "sleep", self.dice.choice((1, 2, 4)))
        self.pods.append(name)
        self.count("pods")

    def gang(self):
        if len(self.pods) > MOST:
            return self.delete()
        self.number += 1
        size, command = self.dice.choice((2, 3, 4)), self.dice.choice(("true", "true", "sleep"))
        for i in range(size):
            gang = "g%s%d" % (self.name, self.number)
            name = "%s-%d" % (gang, i)
            self.make(name, command, 2, labels={"fairlead.dev/gang": gang}, annotations={"fairlead.dev/gang-size": str(size)})
            self.pods.append(name)
        self.count("gangs")

    def delete(self, again=False, **more):
        if not self.pods:
            return
        name = self.pods.pop(self.dice.randrange(len(self.pods)))
        status, answer = self.bed.call("DELETE", PODS + "/" + name, {"gracePeriodSeconds": 0} if again else None)
        assert status in (200, 202, 404), (status, answer)
        if again:
            self.make(name, "sleep", 1)
            self.pods.append(name)
            self.count("replaced")
        else:
            self.count("deleted")

    def replace(self):
        """The same name, another uid."""
        self.delete(again=True)

    def force(self):
        """A pod of a job of Fairlead's goes, and another one of its name comes that is nobody's; it goes soon, too."""
        ours = [p for p in self.bed.call("GET", PODS + "?labelSelector=fairlead.dev%2Fjob&fieldSelector=" + LIVE)[1]["items"] if not p["metadata"].get("deletionTimestamp")]
        if not ours:
            return
        name = self.dice.choice(ours)["metadata"]["name"]
        self.bed.call("PATCH", PODS + "/" + name, {"metadata": {"finalizers": None}}, "application/merge-patch+json")
        self.bed.call("DELETE", PODS + "/" + name, {"gracePeriodSeconds": 0})
        self.make(name, "true", 1, labels={"made": "anew"})
        self.forced[name] += 1
        self.count("forced")

    def end(self):
        self.stop = True
        self.thread.join()
        assert not self.problem, self.problem


class Stir:
    """Notes of no meaning on what is there, as fast as the API server takes them: each is a change that the watches tell, and that the proxy can
    tell wrongly. Pods that the witness knows, nodes, and things beside them."""

    OTHERS = ("/api/v1/namespaces/default", "/api/v1/namespaces/default/persistentvolumeclaims/stirred", "/apis/policy/v1/namespaces/default/poddisruptionbudgets/stirred",
              "/apis/storage.k8s.io/v1/storageclasses/stirred")

    def __init__(self, b, witness, seed, name):
        self.bed, self.witness, self.dice, self.stop, self.count, self.problem = Api(b), witness, random.Random("%s %s" % (seed, name)), False, 0, None
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    @staticmethod
    def prepare(b):
        b.make("/api/v1/namespaces/default/persistentvolumeclaims", {"metadata": {"name": "stirred"}, "spec": {
            "accessModes": ["ReadWriteOnce"], "storageClassName": "stirred", "resources": {"requests": {"storage": "1Gi"}}}})
        b.make("/apis/policy/v1/namespaces/default/poddisruptionbudgets", {"metadata": {"name": "stirred"}, "spec": {
            "maxUnavailable": 1, "selector": {"matchLabels": {"nobody": "has"}}}})
        b.make("/apis/storage.k8s.io/v1/storageclasses", {"metadata": {"name": "stirred"}, "provisioner": "nobody", "volumeBindingMode": "WaitForFirstConsumer"})

    def path(self):
        kind = self.dice.random()
        pods = list(self.witness.pods.values()) if kind < 0.7 else []
        if pods:
            return PODS + "/" + self.dice.choice(pods)["metadata"]["name"]
        return "/api/v1/nodes/n%d" % self.dice.randrange(NODES) if kind < 0.9 else self.dice.choice(self.OTHERS)

    def run(self):
        try:
            while not self.stop:
                self.count += 1
                status, answer = self.bed.call("PATCH", self.path(), {"metadata": {"annotations": {"stirred": str(self.count)}}}, "application/merge-patch+json")
                assert status in (200, 404, 409), (status, answer)
        except Exception as e:
            self.problem = repr(e)
            raise

    def end(self):
        self.stop = True
        self.thread.join()
        assert not self.problem, self.problem


class Sweep:
    """Of the pods that have ended the newest KEPT stay, as a cluster's own collection of them does it: a storm of hours ends as fast as it began."""

    KEPT = 300

    def __init__(self, b):
        self.bed, self.stop, self.gone, self.problem = Api(b), threading.Event(), 0, None
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        try:
            while not self.stop.wait(5):
                ended = self.bed.call("GET", PODS + "?fieldSelector=" + ENDED)[1]["items"]
                ended.sort(key=lambda p: p["metadata"]["creationTimestamp"])
                for pod in ended[:max(0, len(ended) - self.KEPT)]:
                    status, answer = self.bed.call("DELETE", PODS + "/" + pod["metadata"]["name"], {"preconditions": {"uid": pod["metadata"]["uid"]}})
                    assert status in (200, 202, 404, 409), (status, answer)
                    self.gone += 1
        except Exception as e:
            self.problem = repr(e)
            raise

    def end(self):
        self.stop.set()
        self.thread.join()
        assert not self.problem, self.problem


def differences(b, s):
    """Between what the journal says and what there is; [] = none."""
    found = []
    client = harness.Client(s.data)
    pods = b.get(PODS)["items"]
    ours = collections.defaultdict(list)
    for p in pods:
        labels = p["metadata"].get("labels", {})
        if "fairlead.dev/job" in labels and p["metadata"].get("finalizers"):
            ours[int(labels["fairlead.dev/job"])].append(p)
        elif "fairlead.dev/job" in labels and p["status"]["phase"] not in ("Succeeded", "Failed") and p["spec"]["schedulerName"] == "fairlead" \
                and "fairlead.dev/instance" in labels:
            found.append("pod %s is left over" % p["metadata"]["name"])
    uids = {p["metadata"]["uid"]: p for p in pods}
    pods_of = collections.defaultdict(list)
    for job in client.jobs():
        state, mine = job["state"], ours.pop(job["id"], [])
        if state in ("starting", "stopping", "unreachable", "preempting"):
            found.append("job %d is %s, %s" % (job["id"], state, [(p["metadata"]["name"], p["metadata"]["uid"], p["spec"].get("nodeName"), p["status"]["phase"])
                                                                     for p in mine or [p for p in pods if p["metadata"]["name"] == job["name"]]]))
        elif state in harness.FINAL and mine:
            found.append("job %d is %s and has pods: %s" % (job["id"], state, [p["metadata"]["name"] for p in mine]))
        elif not job["name"].startswith("j"):
            pods_of[job["name"]].append(state)
        elif state == "running":
            one = client.get("/api/v1/jobs/%d" % job["id"])
            attempt = one["attempts"][-1]["attempt"]
            names = sorted((int(p["metadata"]["labels"]["fairlead.dev/rank"]), p["status"]["phase"]) for p in mine
                           if int(p["metadata"]["labels"]["fairlead.dev/attempt"]) == attempt)
            if len(mine) != len(names) or [r for r, _ in names] != list(range(one["tasks"])) or any(phase != "Running" for _, phase in names):
                found.append("job %d runs attempt %s, and its pods are %s" % (job["id"], attempt, [(p["metadata"]["name"], p["status"]["phase"]) for p in mine]))
    alone = {p["metadata"]["name"]: p for p in pods if p["metadata"]["name"].startswith("p")}
    for name, p in alone.items():
        runs = pods_of.pop(name, []).count("running")
        if runs != holds(p):
            found.append("pod %s: %s on %s; %d jobs of it run" % (name, p["status"]["phase"], p["spec"].get("nodeName"), runs))
    for name, states in pods_of.items():
        if name.startswith("p") and "running" in states:
            found.append("a job of pod %s runs, which is not there" % name)
    for job, left in ours.items():
        found.append("pods of job %d, which is not known: %s" % (job, [p["metadata"]["name"] for p in left]))
    for p in uids.values():
        if p["spec"]["schedulerName"] == "fairlead" and not p["metadata"].get("labels", {}).get("fairlead.dev/instance") and p["metadata"].get("deletionTimestamp"):
            found.append("pod %s is being deleted" % p["metadata"]["name"])
    return found


def waiting_with_room(b, s):
    """Pods of others that wait while a node has room for them and nothing of Fairlead's waits before them."""
    pods = b.get(PODS)["items"]
    free = {"n%d" % i: GPUS for i in range(NODES)}
    for p in pods:
        if holds(p):
            free[p["spec"]["nodeName"]] -= int(p["spec"]["containers"][0]["resources"].get("limits", {}).get("nvidia.com/gpu", 0))
    waits = [p["metadata"]["name"] for p in pods if p["spec"]["schedulerName"] == "fairlead" and not p["spec"].get("nodeName")
             and not p["metadata"].get("labels", {}).get("fairlead.dev/gang") and not p["metadata"].get("deletionTimestamp")
             and p["status"]["phase"] == "Pending"]
    return ["pod %s waits though nodes have room: %s" % (w, free) for w in waits if min(free.values()) >= 4]


def give_up_waiting(s):
    """What the machines would still have to work off says nothing of faults."""
    client = harness.Client(s.data)
    for job in client.jobs("&state=queued"):
        if job["name"].startswith("j"):
            client.once("POST", "/api/v1/jobs/%d/cancel" % job["id"], {})


class StormBed(Bed):
    """Each request of Fairlead's account that changes something is written down by the API server."""

    def write_keys(self):
        super().write_keys()
        with open(self.path("tokens.csv"), "a") as f:
            f.write('%s-f,fairlead,fairlead,"system:masters"\n' % self.token)
        with open(self.path("audit.yaml"), "w") as f:
            json.dump({"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived", "ResponseStarted"],
                       "rules": [{"level": "Metadata", "users": ["fairlead"], "verbs": ["create"], "resources": [{"group": "", "resources": ["pods", "pods/binding"]}]},
                                 {"level": "None"}]}, f)

    def start(self, name, *words):
        if name == "kube-apiserver":
            words += ("--audit-policy-file", self.path("audit.yaml"), "--audit-log-path", self.path("audit.log"), "--audit-log-mode", "blocking")
        super().start(name, *words)

    def made(self):
        """Of Fairlead's account: how often each pod was made."""
        count = collections.Counter()
        with open(self.path("audit.log")) as f:
            for line in f:
                e = json.loads(line)
                if e["responseStatus"]["code"] == 201 and not e["objectRef"].get("subresource"):
                    count[e["objectRef"].get("name")] += 1
        return count


def within_s():
    """CONVERGE_S where the machine has time for it; as much longer as it has more to do than processors."""
    return CONVERGE_S * max(1.0, os.getloadavg()[0] / os.cpu_count())


def faults(proxy, churns):
    return proxy.total + sum(c.did["replaced"] + c.did["forced"] for c in churns)


def test_faults_duplicate_nothing_and_are_forgotten_soon():
    b = StormBed(("kwok",), os.path.join(HERE, "kubelet.yaml"))
    proxy = s = None
    try:
        b.start_all()
        for i in range(NODES):
            b.node("n%d" % i, gpus=GPUS)
        proxy = FaultProxy(b, SEED, token=b.token + "-f")
        s = Serve(b, kubeconfig=proxy.kubeconfig)
        s.up()
        s.wait_for_nodes(NODES)
        Stir.prepare(b)
        witness, churns = Witness(b, GPUS), [Churn(b, s, SEED, name) for name in "abcdef"]
        stirs, sweep = [Stir(b, witness, SEED, name) for name in "xyz"], Sweep(b)
        proxy.on, end = True, time.monotonic() + SECONDS
        while faults(proxy, churns) < FAULTS and time.monotonic() < end and not witness.problems and not any(c.problem for c in [*churns, *stirs, sweep]):
            assert s.process.poll() is None and not proxy.problem, proxy.problem
            time.sleep(0.5)
        for one in [*churns, *stirs, sweep]:
            one.end()
        proxy.on = False
        took = time.monotonic()
        print("seed %d: %d faults in %.0f s %s; churn %s; %d notes; %d changes of pods seen, %d ended ones swept" % (
            SEED, faults(proxy, churns), SECONDS - (end - time.monotonic()), dict(sorted(proxy.counts.items())), dict(sum((c.did for c in churns), collections.Counter())),
            sum(stir.count for stir in stirs), witness.seen, sweep.gone))
        give_up_waiting(s)
        left = ["not looked yet"]
        while left and time.monotonic() - max(took, proxy.last) < within_s() and not witness.problems:
            time.sleep(0.5)
            left = differences(b, s) + waiting_with_room(b, s)
        for one in left:
            print(one)
            if one.startswith("job "):
                print(s.run("job", one.split()[1], "--history").out[-3000:])
        print("converged %.1f s after the last fault" % (time.monotonic() - max(took, proxy.last)))
        witness.end()
        assert not witness.problems, witness.problems[:5]
        assert not left, left
        # Made, the answer lost, and taken away by force before it was asked again: then it is made a second time, and that is right.
        forced = sum((c.forced for c in churns), collections.Counter())
        twice = {name: n for name, n in b.made().items() if n > 1 + forced[name]}
        assert not twice, twice
        assert "Every record is as it was written." in s.run("journal", "verify").out
    except BaseException:
        if s:
            print("the daemon's log:\n" + s.log())
        raise
    finally:
        if s:
            s.destroy()
        if proxy:
            proxy.stop()
            if "FAIRLEAD_FAULTS_LOG" in os.environ:
                shutil.copy(b.path("faults.log"), os.environ["FAIRLEAD_FAULTS_LOG"])
        b.stop()
