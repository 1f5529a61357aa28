# SPDX-License-Identifier: Apache-2.0
"""Pods of others with rules about where they may run, on a real API server: each kind of rule alone, and many at once. What the stock scheduler
would have allowed is asked of its own plugins (feasible-nodes), with the cluster as it was when the pod was bound."""

import json
import os
import random
import subprocess
import time
import urllib.request

from bed import programs, wait_until
from cluster import PODS, cluster
from test_pods import condition, events, get, jobs, node, phase, pod

ZONES = ["a", "b"]


def zoned(b, count=6, gpus=8, extra=None):
    """n0 ... with zone, rack and host name; more of what a node has to give in `extra`."""
    for i in range(count):
        room = {"cpu": "64", "memory": "512Gi", "pods": "256", "nvidia.com/gpu": str(gpus), **(extra or {})}
        b.make("/api/v1/nodes", {"metadata": {"name": "z%d" % i, "annotations": {"kwok.x-k8s.io/node": "fake"},
                                              "labels": {"kubernetes.io/hostname": "z%d" % i, "topology.kubernetes.io/zone": ZONES[i % 2], "rack": "r%d" % (i // 2)}},
                                 "status": {"capacity": room, "allocatable": room}})


def required(kind, *terms):
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}


def near(app, key):
    return required("podAffinity", {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key})


def apart(app, key):
    return required("podAntiAffinity", {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key})


def in_zone(zone):
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
        {"matchExpressions": [{"key": "topology.kubernetes.io/zone", "operator": "In", "values": [zone]}]}]}}}


def zone_of(name):
    return ZONES[int(name[1:]) % 2]


def runs(b, *names):
    wait_until("%s run, of which some do not: %s" % (names, [condition(b, n) for n in names]), lambda: all(phase(b, n) == "Running" for n in names))
    return [node(b, n) for n in names]


def test_each_rule_alone():
    with cluster(nodes=0) as (b, s):
        zoned(b, extra={"example.com/fpga": "1"})
        s.wait_for_nodes(6)
        pod(b, "affine", affinity=in_zone("b"))
        pod(b, "selects", nodeSelector={"rack": "r1"})
        assert zone_of(runs(b, "affine")[0]) == "b"
        assert runs(b, "selects")[0] in ("z2", "z3")
        # Apart from each other by host, though they would lie together.
        for i in range(6):
            pod(b, "apart%d" % i, labels={"app": "apart"}, affinity=apart("apart", "kubernetes.io/hostname"))
        assert len(set(runs(b, *["apart%d" % i for i in range(6)]))) == 6
        pod(b, "apart6", labels={"app": "apart"}, affinity=apart("apart", "kubernetes.io/hostname"))
        wait_until("one too many waits", lambda: "pod anti-affinity keeps them from 6 of 6 nodes" in condition(b, "apart6").get("message", ""))
        b.call("DELETE", PODS + "/apart3")
        runs(b, "apart6")
        # Near another.
        pod(b, "db", labels={"app": "db"}, affinity=in_zone("a"))
        pod(b, "web", affinity=near("db", "topology.kubernetes.io/zone"))
        assert [zone_of(n) for n in runs(b, "db", "web")] == ["a", "a"]
        pod(b, "lonely", affinity=near("nobody", "topology.kubernetes.io/zone"))
        wait_until("and one that finds nobody waits", lambda: "pod affinity" in condition(b, "lonely").get("message", ""))
        # Spread over zones.
        spread = {"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule",
                                                 "labelSelector": {"matchLabels": {"app": "spread"}}}]}
        for i in range(6):
            pod(b, "spread%d" % i, labels={"app": "spread"}, **spread)
        zones = [zone_of(n) for n in runs(b, *["spread%d" % i for i in range(6)])]
        assert zones.count("a") == zones.count("b") == 3
        # Resources that Fairlead knows nothing of, and host ports.
        for i in range(6):
            b.make(PODS, {"metadata": {"name": "fpga%d" % i}, "spec": {"schedulerName": "fairlead", "automountServiceAccountToken": False, "containers": [
                {"name": "main", "image": "none", "ports": [{"containerPort": 80, "hostPort": 8080}], "resources": {"limits": {"example.com/fpga": "1"}}}]}})
        assert len(set(runs(b, *["fpga%d" % i for i in range(6)]))) == 6
        wait_until("no other has ended", lambda: [j["name"] for j in jobs(s) if j["state"] not in ("running", "queued")] == ["apart3"])


def test_of_a_gang_all_that_its_pods_ask_for_is_named_where_something_lacks():
    with cluster(nodes=0) as (b, s):
        zoned(b, count=2, extra={"rdma/hca": "4", "example.com/x": "1"})
        s.wait_for_nodes(2)

        def asks(name, resource, gang=True):
            b.make(PODS, {"metadata": {"name": name, "labels": {"fairlead.dev/gang": "g", "fairlead.dev/gang-size": "2"} if gang else {}}, "spec": {
                "schedulerName": "fairlead", "automountServiceAccountToken": False, "containers": [{"name": "main", "image": "none", "resources": {"limits": {resource: "1"}}}]}})
        for name in ("one", "two"):
            asks(name, "example.com/x", gang=False)
        runs(b, "one", "two")
        asks("a", "rdma/hca")
        asks("b", "example.com/x")
        wait_until("it is said what may lack", lambda: "a lack of rdma/hca or example.com/x keeps them from 2 of 2 nodes" in condition(b, "a").get("message", ""))


def test_those_that_run_keep_a_plain_pod_away():
    with cluster(nodes=2) as (b, s):
        pod(b, "keeper", labels={"app": "keeper"}, affinity=apart("noisy", "kubernetes.io/hostname"))
        kept = runs(b, "keeper")[0]
        for i in range(3):
            pod(b, "noisy%d" % i, labels={"app": "noisy"})
        assert kept not in runs(b, "noisy0", "noisy1", "noisy2")


def test_volumes_wait_for_their_node():
    with cluster(nodes=0, parts=("kwok", "controller-manager")) as (b, s):
        zoned(b)
        s.wait_for_nodes(6)
        classes, claims, volumes = "/apis/storage.k8s.io/v1/storageclasses", "/api/v1/namespaces/default/persistentvolumeclaims", "/api/v1/persistentvolumes"
        b.make(classes, {"metadata": {"name": "late"}, "provisioner": "p.example.com", "volumeBindingMode": "WaitForFirstConsumer",
                         "allowedTopologies": [{"matchLabelExpressions": [{"key": "topology.kubernetes.io/zone", "values": ["b"]}]}]})

        def claim(name, **spec):
            b.make(claims, {"metadata": {"name": name}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, **spec}})

        def volume(name, zone, to, **spec):
            b.make(volumes, {"metadata": {"name": name}, "spec": {
                "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "csi": {"driver": "d.example.com", "volumeHandle": name},
                "claimRef": {"namespace": "default", "name": to}, "nodeAffinity": {"required": {"nodeSelectorTerms": [
                    {"matchExpressions": [{"key": "topology.kubernetes.io/zone", "operator": "In", "values": [zone]}]}]}}, **spec}})

        def uses(name):
            return [{"name": "data", "persistentVolumeClaim": {"claimName": name}}]

        # Bound beforehand.
        claim("there", storageClassName="", volumeName="there")
        volume("there", "a", "there")
        pod(b, "there", volumes=uses("there"))
        assert zone_of(runs(b, "there")[0]) == "a"
        # Made for the node: the pod is bound when its volume is.
        claim("late", storageClassName="late")
        pod(b, "late", volumes=uses("late"))
        chosen = lambda: b.get(claims + "/late")["metadata"].get("annotations", {}).get("volume.kubernetes.io/selected-node")
        wait_until("the claim bears its node", chosen)
        assert zone_of(chosen()) == "b"
        time.sleep(1)
        assert node(b, "late") is None
        volume("late", zone_of(chosen()), "late", storageClassName="late")
        assert runs(b, "late")[0] == chosen()
        # A claim that is not there.
        pod(b, "lost", volumes=uses("nowhere"))
        wait_until("it waits", lambda: "is not there" in condition(b, "lost").get("message", ""))
        claim("nowhere", storageClassName="", volumeName="nowhere")
        volume("nowhere", "b", "nowhere")
        assert zone_of(runs(b, "lost")[0]) == "b"


def gang(b, name, count, gpus=1, **spec):
    names = ["%s-%d" % (name, i) for i in range(count)]
    for n in names:
        pod(b, n, gpus=gpus, labels={"app": name}, annotations={"fairlead.dev/gang": name, "fairlead.dev/gang-size": str(count)}, **spec)
    return names


def test_pods_of_one_gang_that_repel_and_attract_each_other():
    with cluster(nodes=0) as (b, s):
        zoned(b)
        s.wait_for_nodes(6)
        assert len(set(runs(b, *gang(b, "wide", 4, affinity=apart("wide", "kubernetes.io/hostname"))))) == 4
        assert len({zone_of(n) for n in runs(b, *gang(b, "close", 3, gpus=7, affinity=near("close", "topology.kubernetes.io/zone")))}) == 1
        names = gang(b, "racks", 2, affinity=apart("racks", "rack"))
        wait_until("a key that is no level is refused", lambda: "is no level of the cluster" in condition(b, names[0]).get("message", ""))
        names = gang(b, "even", 2, topologySpreadConstraints=[{"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule",
                                                              "labelSelector": {"matchLabels": {"app": "even"}}}])
        wait_until("and so is spread", lambda: "write podAntiAffinity" in condition(b, names[0]).get("message", ""))
        assert events(b, names[0])["NotPlaced"]["type"] == "Warning"
        assert node(b, names[0]) is None


def test_masks_end_with_those_that_wait_for_them_also_over_a_restart():
    with cluster(nodes=2) as (b, s):
        pod(b, "waits", nodeSelector={"disk": "fast"})
        wait_until("it waits", lambda: "no node has the label disk=fast" in condition(b, "waits").get("message", ""))
        s.kill()
        b.call("PATCH", "/api/v1/nodes/n1", {"metadata": {"labels": {"disk": "fast"}}}, "application/merge-patch+json")
        s.up()
        assert runs(b, "waits") == ["n1"]
        pod(b, "gone", nodeSelector={"disk": "none"})
        wait_until("the other waits", lambda: "no node has the label disk=none" in condition(b, "gone").get("message", ""))
        s.kill()
        b.call("DELETE", PODS + "/gone?gracePeriodSeconds=0")
        s.up()
        wait_until("its job is over", lambda: all(j["state"] != "queued" for j in jobs(s)))
        kinds = {line.split('"name":"')[1].split('"')[0] for line in s.run("journal", "show").out.splitlines() if " node-mask " in line}
        assert len(kinds) == 2
        wait_until("both masks have ended", lambda: {line.split('"name":"')[1].split('"')[0] for line in s.run("journal", "show").out.splitlines()
                                                     if " node-mask " in line and '"ended":1' in line} == kinds)


SEED, COUNT = int(os.environ.get("FAIRLEAD_SEED", "7")), 300


def wishes(rng, app):
    """A template's rules."""
    spec, affinity = {}, {}
    for kind in rng.sample(["zone", "rack", "apart", "near", "spread", "port", "keeps", "not"], rng.choice([1, 1, 2])):
        key = rng.choice(["kubernetes.io/hostname", "topology.kubernetes.io/zone", "rack"])
        if kind == "zone":
            affinity.update(in_zone(rng.choice(ZONES)))
        elif kind == "rack":
            spec["nodeSelector"] = {"rack": "r%d" % rng.randrange(5)}
        elif kind == "apart":
            affinity.update(apart(app, "kubernetes.io/hostname"))
        elif kind == "near":
            affinity.update(near(rng.choice([app, "t%d" % rng.randrange(6)]), key))
        elif kind == "keeps":
            affinity.update(apart("t%d" % rng.randrange(6), rng.choice(["kubernetes.io/hostname", "rack"])))
        elif kind == "spread":
            spec["topologySpreadConstraints"] = [{"maxSkew": rng.choice([1, 2]), "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule",
                                                  "labelSelector": {"matchLabels": {"app": app}}}]
        elif kind == "port":
            spec["port"] = rng.choice([8080, 8081])
        elif kind == "not":
            affinity.setdefault("nodeAffinity", in_zone("a")["nodeAffinity"])
    if affinity:
        spec["affinity"] = affinity
    return spec


def asked_of_stock(b, moments):
    """Of each (pod as it was made, pods bound before it) the nodes that stock kube-scheduler's filters leave."""
    nodes = b.get("/api/v1/nodes")["items"]
    spaces = b.get("/api/v1/namespaces")["items"]
    parts = []
    for asked, bound in moments:
        things = [dict(n, kind="Namespace", apiVersion="v1") for n in spaces] + [dict(n, kind="Node", apiVersion="v1") for n in nodes] + bound + [asked]
        parts.append("".join(json.dumps(thing) + "\n" for thing in things))
    done = subprocess.run([os.path.join(programs(), "feasible-nodes")], input="---\n".join(parts), stdout=subprocess.PIPE, text=True, check=True)
    return [line.split(":", 1)[1].split("|")[0].split() for line in done.stdout.splitlines()]


def told_since(b, version, seconds):
    """(name, node) of each binding in its order; each pod as it is at the end; what was bound at each binding, and the pod as it was before."""
    order, now, moments = [], {}, []
    request = urllib.request.Request(b.url + PODS + "?watch=1&timeoutSeconds=%d&resourceVersion=%s" % (seconds, version), headers={"Authorization": "Bearer " + b.token})
    with urllib.request.urlopen(request, context=b.tls) as answer:
        changes = [json.loads(line) for line in answer]
    for change in changes:
        p = dict(change["object"], kind="Pod", apiVersion="v1")
        name, here = p["metadata"]["name"], p["spec"].get("nodeName")
        before = now.get(name)
        if here and before and not before["spec"].get("nodeName"):
            moments.append((before, [q for q in now.values() if q["spec"].get("nodeName")]))
            order.append((name, here))
        now[name] = p
    return order, now, moments


def test_three_hundred_pods_are_bound_where_the_stock_scheduler_would_have_allowed_them():
    rng = random.Random(SEED)
    with cluster(nodes=0, parts=("kwok", "controller-manager")) as (b, s):
        zoned(b, 10, gpus=16)
        s.wait_for_nodes(10)
        version = b.get(PODS)["metadata"]["resourceVersion"]
        made = 0
        while made < COUNT:
            app = "t%d" % (made % 30 % 6)
            rules = wishes(rng, app)
            port = rules.pop("port", None)
            for _ in range(min(rng.choice([1, 3, 5]), COUNT - made)):
                main = {"name": "main", "image": "none", "command": ["sleep"], "resources": {"requests": {"cpu": "100m"}}}
                if port:
                    main["ports"] = [{"containerPort": 80, "hostPort": port}]
                b.make(PODS, {"metadata": {"name": "p%d" % made, "labels": {"app": app}},
                              "spec": {"schedulerName": "fairlead", "automountServiceAccountToken": False, "containers": [main], **rules}})
                made += 1
        # Until nothing moves any more: those that are left fit nowhere.
        last, since = -1, time.monotonic()
        while time.monotonic() - since < 8:
            bound = sum("nodeName" in p["spec"] for p in b.get(PODS)["items"])
            if bound != last:
                last, since = bound, time.monotonic()
            time.sleep(0.25)
        for seconds in (2, 20, 120):  # all of them come at once, but for a server that has no time
            order, now, moments = told_since(b, version, seconds)
            if len(now) == COUNT and len(order) >= last:
                break
        assert len(now) == COUNT and len(order) >= last > COUNT // 3, (len(now), len(order), last)
        wrong = [(name, here, fine) for (name, here), fine in zip(order, asked_of_stock(b, moments)) if here not in fine]
        for name, here, fine in wrong:
            print(name, here, fine, [n for n, _ in order].index(name), order[max(0, [n for n, _ in order].index(name) - 3):][:7], json.dumps(now[name]["spec"].get("affinity")), now[name]["metadata"]["labels"], now[name]["spec"].get("topologySpreadConstraints"))
        assert not wrong, (len(wrong), wrong[:5])
        # And those that wait fit nowhere by the stock scheduler's word either.
        waiting = [p for p in now.values() if not p["spec"].get("nodeName")]
        there = [q for q in now.values() if q["spec"].get("nodeName")]
        fit = [(p["metadata"]["name"], fine, condition(b, p["metadata"]["name"])) for p, fine in zip(waiting, asked_of_stock(b, [(p, there) for p in waiting])) if fine]
        print("%d bound, %d wait, %d of them fit somewhere" % (len(order), len(waiting), len(fit)))
        assert not fit, fit[:5]
