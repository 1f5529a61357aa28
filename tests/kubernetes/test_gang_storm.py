# SPDX-License-Identifier: Apache-2.0
"""Gangs of mixed sizes, jobs of Fairlead's own and pods of others, while nodes go and others come. None is started in part for longer than a grace
time, all of them run in the end, and no GPU is given twice. scripts/campaign-gangs runs the long form."""

import collections
import json
import os
import random
import threading
import time

import harness
from bed import Bed
from cluster import PODS, Serve
from witness import Api, Witness

HERE = os.path.dirname(os.path.abspath(__file__))
GANGS = int(os.environ.get("FAIRLEAD_GANGS", "60"))
SEED = int(os.environ.get("FAIRLEAD_GANGS_SEED", "1"))
NODES, GPUS, AT_ONCE, GRACE_S = 12, 8, 14, 20
SIZES = (2, 2, 3, 4, 5, 8, 12, 16)


class GangWitness(Witness):
    """Notes how long a gang stands there in part. One of pods that others made may do so once it has been whole: afterwards each is on its own."""

    def __init__(self, b, gpus):
        self.sizes, self.whole, self.lost, self.partly, self.longest = {}, set(), set(), {}, 0.0
        self.lock = threading.Lock()
        super().__init__(b, gpus)

    @staticmethod
    def gang_of(pod):
        labels = pod["metadata"].get("labels", {})
        if "fairlead.dev/gang" in labels:
            return labels["fairlead.dev/gang"]
        if "fairlead.dev/job" in labels:
            return int(labels["fairlead.dev/job"]), int(labels["fairlead.dev/attempt"])
        return None

    def size_of(self, gang):
        return self.sizes.get(gang if isinstance(gang, str) else gang[0])

    def saw(self, kind, pod):
        with self.lock:
            super().saw(kind, pod)
            gang = self.gang_of(pod)
            if isinstance(gang, str) and gang not in self.whole and (kind == "DELETED" or pod["metadata"].get("deletionTimestamp")):
                self.lost.add(gang)
            if gang is not None and not isinstance(gang, str) or gang is not None and gang not in self.whole:
                self.count(gang)

    def count(self, gang):
        size = self.size_of(gang)
        if not size:
            return
        there = [p for p in self.pods.values() if self.gang_of(p) == gang]
        on = sum(self.holds(p) for p in there)
        over = any(p.get("status", {}).get("phase") in ("Succeeded", "Failed") or p["metadata"].get("deletionTimestamp") for p in there)
        if on == size:
            self.whole.add(gang)
        if 0 < on < size and not (isinstance(gang, str) and gang in self.whole) and not (gang in self.whole and not over):
            self.partly.setdefault(gang, time.monotonic())
        elif gang in self.partly:
            self.longest = max(self.longest, time.monotonic() - self.partly.pop(gang))

    def look(self):
        with self.lock:
            for gang, since in self.partly.items():
                if time.monotonic() - since > GRACE_S:
                    there = {p["metadata"]["name"]: (p["spec"].get("nodeName"), p["status"]["phase"], p["metadata"].get("deletionTimestamp"))
                             for p in self.pods.values() if self.gang_of(p) == gang}
                    self.problems.append("gang %s of %s stands there in part for %d s: %s" % (gang, self.size_of(gang), time.monotonic() - since, there))


class Gangs:
    def __init__(self, b, s, witness, dice):
        self.api, self.client, self.witness, self.dice = Api(b), harness.Client(s.data), witness, dice
        self.number, self.alive, self.ran, self.nodes, self.made = 0, {}, 0, ["n%d" % i for i in range(NODES)], NODES
        self.did = collections.Counter()

    def make(self):
        self.number += 1
        size, gpus = self.dice.choice(SIZES), self.dice.choice((1, 1, 2, 4, 8))
        while size * gpus > NODES * GPUS // 2:
            size = self.dice.choice(SIZES)
        if self.dice.random() < 0.5:
            status, answer = self.client.once("POST", "/api/v1/jobs", {
                "name": "j%d" % self.number, "command": ["sleep"], "gpus": gpus, "tasks": size, "image": "none", "retries": 50}, {"Idempotency-Key": "j%d" % self.number})
            assert status == 201, (status, answer)
            self.witness.sizes[answer["id"]] = size
            self.alive[answer["id"]] = None
            return
        gang = "g%d" % self.number
        self.witness.sizes[gang] = size
        self.alive[gang] = None
        for i in range(size):
            status, answer = self.api.call("POST", PODS, {
                "metadata": {"name": "%s-%d" % (gang, i), "labels": {"fairlead.dev/gang": gang}, "annotations": {"fairlead.dev/gang-size": str(size)}},
                "spec": {"schedulerName": "fairlead", "restartPolicy": "Never", "automountServiceAccountToken": False,
                         "containers": [{"name": "main", "image": "none", "command": ["sleep"], "resources": {"limits": {"nvidia.com/gpu": str(gpus)}}}]}})
            assert status == 201, answer

    def started(self, gang):
        if isinstance(gang, str):
            return gang in self.witness.whole
        return self.client.get("/api/v1/jobs/%d" % gang)["state"] in ("running",) + harness.FINAL

    def follow(self):
        """Those that run end after a while. A gang of others that lost some of its pods before it was whole is over: its maker would make others."""
        for gang, since in list(self.alive.items()):
            if since is None and gang in self.witness.lost:
                self.alive[gang] = 0
                self.did["gangs that lost pods at their start"] += 1
            elif since is None and self.started(gang):
                self.alive[gang] = time.monotonic() + self.dice.random() * 4
            elif since is not None and time.monotonic() > since:
                self.ran += 1
                del self.alive[gang]
                if isinstance(gang, str):
                    self.api.call("DELETE", PODS + "?labelSelector=fairlead.dev%%2Fgang%%3D%s" % gang, None)
                else:
                    self.client.once("POST", "/api/v1/jobs/%d/cancel" % gang, {})

    def lose_node(self):
        """A machine is gone for good; another one comes."""
        node = self.nodes.pop(self.dice.randrange(len(self.nodes)))
        self.witness.gone.add(node)
        status, answer = self.api.call("DELETE", "/api/v1/nodes/" + node)
        assert status == 200, answer
        self.witness.bed.node("n%d" % self.made, gpus=GPUS, **LABELS)
        self.nodes.append("n%d" % self.made)
        self.made += 1
        self.did["nodes lost"] += 1

    def collect(self):
        """As Kubernetes' garbage collection: pods of others on nodes that are gone."""
        for p in self.api.call("GET", PODS)[1]["items"]:
            gang = p["metadata"].get("labels", {}).get("fairlead.dev/gang")
            node = p["spec"].get("nodeName")
            if gang and node and node not in self.nodes:
                self.api.call("DELETE", PODS + "/" + p["metadata"]["name"], {"gracePeriodSeconds": 0})


LABELS = {"fairlead.dev/removed-node": "1"}


def test_gangs_are_whole_or_not_there_while_nodes_go():
    b = Bed(("kwok",), os.path.join(HERE, "kubelet.yaml"))
    s = None
    try:
        b.start_all()
        for i in range(NODES):
            b.node("n%d" % i, gpus=GPUS, **LABELS)
        s = Serve(b)
        s.up()
        s.wait_for_nodes(NODES)
        dice = random.Random(SEED)
        witness = GangWitness(b, GPUS)
        gangs = Gangs(b, s, witness, dice)
        turned, moved, before = 0.0, time.monotonic(), 0
        while (gangs.number < GANGS or gangs.alive) and not witness.problems:
            if gangs.number < GANGS and len(gangs.alive) < AT_ONCE:
                gangs.make()
            if gangs.number < GANGS and time.monotonic() - turned > 2:
                turned = time.monotonic()
                gangs.lose_node()
            gangs.follow()
            gangs.collect()
            witness.look()
            if gangs.ran != before:
                before, moved = gangs.ran, time.monotonic()
            if time.monotonic() - moved > 150:
                for gang in gangs.alive:
                    print(gang, s.run("job", str(gang), "--history").out[-1500:] if not isinstance(gang, str) else
                          [(p["metadata"]["name"], p["spec"].get("nodeName"), json.dumps(p["status"])[:300]) for p in witness.pods.values() if witness.gang_of(p) == gang])
                raise AssertionError("nothing moves: %s" % list(gangs.alive))
            time.sleep(0.1)
        witness.look()
        witness.end()
        print("seed %d: %d gangs, %s, %d changes seen; in part for %.1f s at most" % (SEED, gangs.number, dict(gangs.did), witness.seen, witness.longest))
        assert not witness.problems, witness.problems[:3]
    except BaseException:
        if s:
            print("the daemon's log:\n" + s.log())
        raise
    finally:
        if s:
            s.destroy()
        b.stop()
