# SPDX-License-Identifier: Apache-2.0
"""Gangs of pods that others made, when a node of theirs is taken away: as long as enough go on, its pods leave alone."""

import json

from bed import wait_until
from cluster import PODS, cluster
from proxy import refusal
from test_budgets import BUDGETS, budget, refusals
from test_notices import taint
from test_owners import template
from test_pods import condition, crd, jobs, node, phase, pod

BATCH = "/apis/batch/v1/namespaces/default/jobs"
NOTICE = "karpenter.sh/disrupted"


def is_running(b, name):
    status, answer = b.call("GET", PODS + "/" + name)
    return status == 200 and answer["status"].get("phase") == "Running"


def runs(b, *names):
    wait_until("these run: %s" % ", ".join(names), lambda: all(is_running(b, n) for n in names))


def gone(b, *names):
    wait_until("these are gone: %s" % ", ".join(names), lambda: all(b.call("GET", PODS + "/" + n)[0] == 404 for n in names))


def every(s):
    """How many have to go on, of all attempts, each time that it was told."""
    records = map(json.loads, s.run("journal", "show", "-o", "json").out.splitlines())
    return [(r["record"]["attempt"], r["record"].get("least", 0)) for r in records if r["kind"] == "attempt-shielded"]


def told(s):
    """The newest of each attempt."""
    return dict(every(s))


def uids(b, names):
    return [b.get(PODS + "/" + n)["metadata"]["uid"] for n in names]


def member(b, name, least):
    pod(b, name, gpus=8, labels={"fairlead.dev/gang": "flock", "fairlead.dev/gang-size": str(least), "app": "flock"}, terminationGracePeriodSeconds=1)


def test_where_enough_are_left_the_others_stay_and_the_next_pod_is_placed_by_itself():
    with cluster(nodes=5, parts=("kwok", "controller-manager")) as (b, s):
        for name in ("p0", "p1", "p2"):
            member(b, name, 3)
        runs(b, "p0", "p1", "p2")  # the gang; what comes now is placed by itself
        assert told(s) == {}
        # One that has a node and does not begin stands in for nobody.
        pod(b, "stuck", gpus=8, command="broken", labels={"fairlead.dev/gang": "flock", "fairlead.dev/gang-size": "3"}, terminationGracePeriodSeconds=1)
        wait_until("it has a node", lambda: node(b, "stuck"))
        member(b, "p3", 3)
        runs(b, "p3")
        wait_until("the gang may be down to two", lambda: told(s).get(1) == 2)
        b.call("DELETE", PODS + "/stuck")
        gone(b, "stuck")
        assert every(s) == [(1, 2)]
        before = uids(b, ("p1", "p2", "p3"))
        taint(b, node(b, "p0"), NOTICE)
        gone(b, "p0")
        wait_until("its job runs on", lambda: s.ask("job", "1")["state"] == "running")
        assert uids(b, ("p1", "p2", "p3")) == before
        member(b, "p4", 3)  # as its maker would
        runs(b, "p1", "p2", "p3", "p4")
        wait_until("the gang may be down to one", lambda: told(s).get(1) == 1)
        # What is known outlives the daemon.
        s.kill()
        s.up()
        taint(b, node(b, "p1"), NOTICE)
        gone(b, "p1")
        runs(b, "p2", "p3", "p4")
        history = [row["kind"] for row in s.ask("job", "1", "--history")]
        assert history.count("attempt-shrunk") == 2 and "attempt-stopped" not in history, history
        # It ends when all of its pods have.
        for name in ("p2", "p3", "p4"):
            b.call("DELETE", PODS + "/" + name)
        wait_until("all is over", lambda: not [j for j in jobs(s) if j["state"] == "running"])


def test_where_too_few_are_left_a_gang_goes_whole_and_starts_whole():
    with cluster(nodes=4, parts=("kwok", "controller-manager")) as (b, s):
        made = template("train", gpus=8, restartPolicy="Never")
        b.make(BATCH, {"metadata": {"name": "train"}, "spec": {"parallelism": 3, "completions": 3, "completionMode": "Indexed", "template": made}})
        listed = lambda: [p for p in b.get(PODS + "?labelSelector=app%3Dtrain")["items"] if p["status"]["phase"] == "Running" and "deletionTimestamp" not in p["metadata"]]
        wait_until("three run", lambda: len(listed()) == 3)
        first = {p["metadata"]["uid"] for p in listed()}
        taint(b, listed()[0]["spec"]["nodeName"], NOTICE)
        wait_until("three others run", lambda: len(listed()) == 3 and not first & {p["metadata"]["uid"] for p in listed()})
        wait_until("they started as one gang", lambda: [j["tasks_min"] for j in jobs(s) if j["state"] == "running"] == [3])
        assert told(s) == {}, "nobody stands in for one of them"


def test_nodes_that_go_at_the_same_moment_are_looked_at_together():
    with cluster(nodes=5, parts=("kwok", "controller-manager")) as (b, s):
        names = ["p0", "p1", "p2", "p3", "p4"]
        for name in names[:3]:
            member(b, name, 3)
        runs(b, *names[:3])
        for name in names[3:]:
            member(b, name, 3)
        runs(b, *names)
        wait_until("the gang may be down to one", lambda: told(s).get(1) == 1)
        # Each that is told to go takes its time: nobody may be evicted yet.
        status = budget(b, "kept", {"app": "flock"}, minAvailable=5)
        wait_until("the budget allows nothing", lambda: (status().get("currentHealthy"), status().get("disruptionsAllowed")) == (5, 0))
        history = lambda: [row["kind"] for row in s.ask("job", "1", "--history")]
        taint(b, node(b, "p0"), NOTICE)
        wait_until("p0 is to leave alone", lambda: "attempt-shrunk" in history())
        taint(b, node(b, "p3"), NOTICE)
        wait_until("two of the gang have to go on", lambda: told(s).get(1) == 2)
        assert "attempt-stopped" not in history(), "with p4 there are enough"
        taint(b, node(b, "p4"), NOTICE)
        wait_until("too few would be left: the gang goes whole", lambda: "attempt-stopped" in history())
        b.call("DELETE", BUDGETS + "/kept")
        gone(b, *names)
        wait_until("all is over", lambda: not [j for j in jobs(s) if j["state"] == "running"])


def test_a_drain_by_a_person_and_a_group_whose_minimum_another_object_says():
    with cluster(nodes=4, parts=("kwok", "controller-manager")) as (b, s):
        groups = crd(b, "scheduling.x-k8s.io", "v1alpha1", "PodGroup", "podgroups")
        b.make(groups, {"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", "metadata": {"name": "flock"}, "spec": {"minMember": 2}})
        names = ["q0", "q1", "q2"]
        for name in names[:2]:
            pod(b, name, gpus=8, labels={"scheduling.x-k8s.io/pod-group": "flock"}, terminationGracePeriodSeconds=1)
        runs(b, *names[:2])
        pod(b, "q2", gpus=8, labels={"scheduling.x-k8s.io/pod-group": "flock"}, terminationGracePeriodSeconds=1)
        runs(b, *names)
        wait_until("the gang may be down to one", lambda: told(s).get(1) == 1)
        # Whoever made it says another number while it runs: that is seen in time.
        b.call("PATCH", groups + "/flock", {"spec": {"minMember": 3}}, "application/merge-patch+json")
        wait_until("all three have to go on, so it goes whole", lambda: told(s).get(1) == 0)
        b.call("PATCH", groups + "/flock", {"spec": {"minMember": 2}}, "application/merge-patch+json")
        wait_until("the gang may be down to one again", lambda: told(s).get(1) == 1)
        b.call("DELETE", PODS + "/q2")
        wait_until("without the third it goes whole", lambda: told(s).get(1) == 0)
        pod(b, "q3", gpus=8, labels={"scheduling.x-k8s.io/pod-group": "flock"}, terminationGracePeriodSeconds=1)
        runs(b, "q3")
        # After a restart the object is asked for anew: what holds by then is told.
        s.kill()
        b.call("DELETE", PODS + "/q3")
        gone(b, "q3")
        s.up()
        wait_until("without q3 it goes whole", lambda: told(s).get(1) == 0)
        pod(b, "q4", gpus=8, labels={"scheduling.x-k8s.io/pod-group": "flock"}, terminationGracePeriodSeconds=1)
        runs(b, "q4")
        wait_until("with another third it may be down to one", lambda: told(s).get(1) == 1)
        b.call("PATCH", PODS + "/q1", {"metadata": {"finalizers": ["example.com/seen"]}}, "application/merge-patch+json")
        s.run("nodes", "drain", node(b, "q1"))
        wait_until("it goes", lambda: "deletionTimestamp" in b.get(PODS + "/q1")["metadata"])
        assert condition(b, "q1", "DisruptionTarget").get("reason") == "DrainByFairlead"
        b.call("PATCH", PODS + "/q1", {"metadata": {"finalizers": None}}, "application/merge-patch+json")
        gone(b, "q1")
        assert phase(b, "q0") == phase(b, "q4") == "Running"
        wait_until("its job runs on", lambda: len([j for j in jobs(s) if j["state"] == "running"]) == 2)


def test_a_ray_cluster_goes_on_with_fewer_workers_as_its_maker_says():
    with cluster(nodes=4, parts=("kwok", "controller-manager")) as (b, s):
        path = crd(b, "ray.io", "v1", "RayCluster", "rayclusters")
        uid = b.make(path, {"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": {"name": "tune"}, "spec": {
            "headGroupSpec": {}, "workerGroupSpecs": [{"groupName": "a", "replicas": 2, "minReplicas": 1}]}})["metadata"]["uid"]

        def come(name):
            b.make(PODS, {"metadata": {"name": name, "ownerReferences": [
                {"apiVersion": "ray.io/v1", "kind": "RayCluster", "name": "tune", "uid": uid, "controller": True}]}, "spec": template("tune", gpus=8)["spec"]})
        for name in ("head", "w0", "w1"):
            come(name)
        runs(b, "head", "w0", "w1")
        wait_until("it goes on with two", lambda: told(s).get(1) == 2)
        s.kill()
        s.up()  # what its maker says is asked for anew
        before = uids(b, ("head", "w1"))
        taint(b, node(b, "w0"), NOTICE)
        gone(b, "w0")
        come("w2")
        runs(b, "head", "w1", "w2")
        assert uids(b, ("head", "w1")) == before
        wait_until("the new one is by itself", lambda: [(j["name"], j["tasks_min"], j["state"]) for j in jobs(s)] == [("tune", 3, "running"), ("w2", 1, "running")])


def test_a_budget_keeps_what_leaves_alone_and_does_so_after_a_restart():
    with cluster(nodes=3, parts=("kwok", "controller-manager")) as (b, s):
        for name in ("p0", "p1"):
            member(b, name, 2)
        runs(b, "p0", "p1")
        member(b, "p2", 2)
        runs(b, "p2")
        wait_until("the gang may be down to one", lambda: told(s).get(1) == 1)
        status = budget(b, "kept", {"app": "flock"}, minAvailable=3)
        wait_until("the budget allows nothing", lambda: (status().get("currentHealthy"), status().get("disruptionsAllowed")) == (3, 0))
        taint(b, node(b, "p0"), NOTICE)
        wait_until("it is asked for", lambda: refusals(b) > 0)
        s.kill()
        before = refusals(b)
        s.up()
        wait_until("it is asked for again", lambda: refusals(b) > before + 1)
        assert not any("deletionTimestamp" in b.get(PODS + "/" + n)["metadata"] for n in ("p0", "p1", "p2"))
        b.call("DELETE", BUDGETS + "/kept")
        gone(b, "p0")
        wait_until("its job runs on", lambda: s.ask("job", "1")["state"] == "running")
        runs(b, "p1", "p2")


def test_budgets_are_asked_also_where_nodes_are_not_known_for_a_while_after_a_restart():
    with cluster(nodes=3, parts=("kwok", "controller-manager"), through=True) as (b, s):
        for name in ("p0", "p1"):
            member(b, name, 2)
        runs(b, "p0", "p1")
        member(b, "p2", 2)
        runs(b, "p2")
        wait_until("the gang may be down to one", lambda: told(s).get(1) == 1)
        status = budget(b, "kept", {"app": "flock"}, minAvailable=3)
        wait_until("the budget allows nothing", lambda: (status().get("currentHealthy"), status().get("disruptionsAllowed")) == (3, 0))
        taint(b, node(b, "p0"), NOTICE)
        wait_until("it is asked for", lambda: refusals(b) > 0)
        s.kill()
        s.proxy.rules.append(lambda method, path, body: refusal(503, "busy") if method == "GET" and path.startswith("/api/v1/nodes") else None)
        s.up()
        wait_until("the lists have not come", lambda: "could not be looked through" in s.log())
        before = refusals(b)
        s.proxy.rules.clear()
        wait_until("it is asked for again", lambda: refusals(b) > before)
        assert not any("deletionTimestamp" in b.get(PODS + "/" + n)["metadata"] for n in ("p0", "p1", "p2"))
