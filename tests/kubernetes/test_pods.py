# SPDX-License-Identifier: Apache-2.0
"""Pods that others make, with `schedulerName: fairlead`, on a real API server."""

import json
import signal
import time

from bed import wait_until
from cluster import PODS, cluster
from proxy import refusal


def pod(b, name, gpus=1, command="sleep", labels=None, annotations=None, **spec):
    return b.make(PODS, {"metadata": {"name": name, "labels": labels or {}, "annotations": annotations or {}},
                         "spec": {"schedulerName": "fairlead", "restartPolicy": "Never", "automountServiceAccountToken": False, **spec,
                                  "containers": [{"name": "main", "image": "none", "command": [command],
                                                  "resources": {"limits": {"nvidia.com/gpu": str(gpus)}}}]}})


def get(b, name):
    return b.get(PODS + "/" + name)


def phase(b, name):
    return get(b, name)["status"]["phase"]


def node(b, name):
    return get(b, name)["spec"].get("nodeName")


def condition(b, name, kind="PodScheduled"):
    return next((c for c in get(b, name)["status"].get("conditions", []) if c["type"] == kind), {})


def events(b, name):
    return {e["reason"]: e for e in b.get("/api/v1/namespaces/default/events?fieldSelector=involvedObject.name%3D" + name)["items"]}


def jobs(s):
    return s.ask("jobs", "-a")


def test_a_pod_is_placed_runs_and_ends():
    with cluster(nodes=2) as (b, s):
        pod(b, "one", gpus=2, command="true")
        wait_until("the pod has ended", lambda: phase(b, "one") == "Succeeded")
        assert node(b, "one") in ("n0", "n1")
        wait_until("its job has ended", lambda: [j["state"] for j in jobs(s)] == ["succeeded"])
        job = jobs(s)[0]
        assert (job["name"], job["user"], job["queue"]) == ("one", "default", "default")
        assert get(b, "one")["metadata"]["annotations"]["fairlead.dev/job"] == str(job["id"])
        own = s.submit("--", "true")
        s.wait_for(own, "succeeded")
        # Output stays with the nodes: Fairlead says who shows it.
        for number, name in ((job["id"], "one"), (own, s.pod(own, 0))):
            said = s.run("logs", str(number), check=False)
            assert said.code and "kubectl -n default logs %s" % name in " ".join(said.err.split()), said


def batch_job(b, name, parallelism, gpus=1, command="sleep", **spec):
    b.make("/apis/batch/v1/namespaces/default/jobs", {
        "metadata": {"name": name},
        "spec": {"parallelism": parallelism, "completions": parallelism, "backoffLimit": 100, **spec, "template": {
            "spec": {"schedulerName": "fairlead", "restartPolicy": "Never", "automountServiceAccountToken": False,
                     "containers": [{"name": "main", "image": "none", "command": [command],
                                     "resources": {"limits": {"nvidia.com/gpu": str(gpus)}}}]}}}})


def pods_of(b, name):
    return b.get(PODS + "?labelSelector=batch.kubernetes.io%2Fjob-name%3D" + name)["items"]


def bound(pods):
    return sum("nodeName" in p["spec"] for p in pods)


def test_the_pods_of_a_job_start_together_and_a_gang_that_does_not_fit_waits_whole():
    with cluster(nodes=2, parts=("kwok", "controller-manager")) as (b, s):
        batch_job(b, "wide", 4, gpus=4)  # all 16
        wait_until("all run", lambda: sum(p["status"]["phase"] == "Running" for p in pods_of(b, "wide")) == 4)
        batch_job(b, "next", 3, gpus=4)
        wait_until("its pods say why they wait", lambda: len(pods_of(b, "next")) == 3 and all(
            condition(b, p["metadata"]["name"]).get("reason") == "Unschedulable" for p in pods_of(b, "next")))
        name = pods_of(b, "next")[0]["metadata"]["name"]
        assert "GPUs" in condition(b, name)["message"], condition(b, name)
        wait_until("there is an Event", lambda: "FailedScheduling" in events(b, name))
        assert events(b, name)["FailedScheduling"]["type"] == "Warning"
        waiting = [j for j in jobs(s) if j["name"] == "next"]
        assert [(j["state"], j["tasks_min"]) for j in waiting] == [("queued", 3)]
        # Room for two of three: none of them starts.
        for p in pods_of(b, "wide")[:2]:
            b.call("DELETE", PODS + "/" + p["metadata"]["name"])
        b.call("PATCH", "/apis/batch/v1/namespaces/default/jobs/wide", {"spec": {"suspend": True}}, "application/merge-patch+json")
        wait_until("the gang starts whole", lambda: bound(pods_of(b, "next")) == 3)
        assert all("nodeName" in p["spec"] for p in pods_of(b, "next"))


def test_a_pod_makes_room_for_one_of_a_higher_priority_class():
    with cluster(nodes=1) as (b, s):
        b.make("/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": "high"}, "value": 1000})
        pod(b, "low", gpus=8, labels={"fairlead.dev/tier": "best-effort"}, terminationGracePeriodSeconds=7)
        wait_until("it runs", lambda: phase(b, "low") == "Running")
        pod(b, "high", gpus=8, priorityClassName="high")
        wait_until("the other runs", lambda: phase(b, "high") == "Running")
        wait_until("its job is over", lambda: {j["name"]: j["state"] for j in jobs(s)} == {"low": "cancelled", "high": "running"})
        job = next(j for j in jobs(s) if j["name"] == "low")
        assert "made room" in s.run("job", str(job["id"])).out


def test_a_pod_that_is_deleted_by_hand_ends_its_job_waiting_or_running():
    with cluster(nodes=1) as (b, s):
        pod(b, "runs", gpus=8)
        wait_until("it runs", lambda: phase(b, "runs") == "Running")
        pod(b, "waits", gpus=8)
        wait_until("both are jobs", lambda: len(jobs(s)) == 2)
        b.call("DELETE", PODS + "/waits")
        wait_until("the job of the pod that waited is over",
                   lambda: {j["name"]: j["state"] for j in jobs(s)} == {"runs": "running", "waits": "cancelled"})
        b.call("DELETE", PODS + "/runs")
        wait_until("and so is the other", lambda: {j["name"]: j["state"] for j in jobs(s)}["runs"] == "failed")


def nominated(b, name):
    return get(b, name)["status"].get("nominatedNodeName")


def test_a_place_that_could_not_be_shown_is_shown_later():
    with cluster(nodes=1, through=True) as (b, s):
        refused = []

        def rule(method, path, body):
            if "nominatedNodeName" not in body or method != "PATCH" or len(refused) == 2:
                return None
            refused.append(path)
            return refusal(422, "Invalid", "a webhook does not like it")
        s.proxy.rules.append(rule)
        b.make("/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": "high"}, "value": 1000})
        pod(b, "low", gpus=8, command="slow", labels={"fairlead.dev/tier": "best-effort"}, terminationGracePeriodSeconds=90)
        wait_until("it runs", lambda: phase(b, "low") == "Running")
        pod(b, "high", gpus=8, priorityClassName="high")
        wait_until("the place is shown", lambda: nominated(b, "high") == "n0")
        assert len(refused) == 2


def test_who_makes_room_is_told_so_first_and_the_place_is_shown_meanwhile():
    with cluster(nodes=1) as (b, s):
        b.make("/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": "high"}, "value": 1000})

        def one_makes_room(low, high):
            pod(b, low, gpus=8, command="slow", labels={"fairlead.dev/tier": "best-effort"}, terminationGracePeriodSeconds=90)
            wait_until("it runs", lambda: phase(b, low) == "Running")
            pod(b, high, gpus=8, priorityClassName="high")
            wait_until("the place is shown", lambda: nominated(b, high) == "n0")
            wait_until("the victim is being deleted", lambda: "deletionTimestamp" in get(b, low)["metadata"])
            assert node(b, high) is None

        def is_gone(name):
            b.call("DELETE", PODS + "/" + name, {"gracePeriodSeconds": 0})

        one_makes_room("low", "high")
        told = condition(b, "low", "DisruptionTarget")
        assert (told["status"], told["reason"]) == ("True", "PreemptionByScheduler") and "make room" in told["message"], told
        assert get(b, "low")["metadata"]["deletionGracePeriodSeconds"] == 90
        wait_until("there is an Event", lambda: "Preempted" in events(b, "low"))
        # The daemon that comes after knows of the place, and of nothing else does it make one.
        s.kill()
        s.up()
        is_gone("low")
        wait_until("the other runs", lambda: phase(b, "high") == "Running")
        s.run("cancel", str(next(j["id"] for j in jobs(s) if j["name"] == "high")))
        wait_until("it is gone", lambda: b.call("GET", PODS + "/high")[0] == 404)
        # Who is cancelled is promised nothing any more, and its pod is not placed when there is room.
        one_makes_room("second", "waits")
        s.run("cancel", str(next(j["id"] for j in jobs(s) if j["name"] == "waits")))
        wait_until("it is not shown any more", lambda: nominated(b, "waits") is None)
        is_gone("second")
        wait_until("its job is over", lambda: all(j["state"] not in ("running", "queued") for j in jobs(s)))
        wait_until("it is told", lambda: condition(b, "waits").get("reason") == "NotPlaced")
        assert "delete them" in condition(b, "waits")["message"]
        pod(b, "last", gpus=8)
        wait_until("another one runs in its place", lambda: phase(b, "last") == "Running")
        assert node(b, "waits") is None


def test_pods_of_a_gang_that_was_cancelled_are_not_placed_and_new_ones_are_new_work():
    with cluster(nodes=1, gpus=2, parts=("kwok", "controller-manager")) as (b, s):
        pod(b, "fills", gpus=2)
        wait_until("it runs", lambda: phase(b, "fills") == "Running")
        batch_job(b, "gang", 2)
        wait_until("the gang waits", lambda: [j["state"] for j in jobs(s) if j["name"] == "gang"] == ["queued"])
        first = {p["metadata"]["uid"] for p in pods_of(b, "gang")}
        s.run("cancel", str(next(j["id"] for j in jobs(s) if j["name"] == "gang")))
        for again in (False, True):
            wait_until("its pods are told", lambda: all(
                condition(b, p["metadata"]["name"]).get("reason") == "NotPlaced" for p in pods_of(b, "gang")))
            s.kill()
            if not again:
                b.call("DELETE", PODS + "/fills")
            s.up()
        pod(b, "narrow")
        wait_until("other work runs", lambda: phase(b, "narrow") == "Running")
        assert bound(pods_of(b, "gang")) == 0
        b.call("DELETE", PODS + "/narrow")
        for p in pods_of(b, "gang"):
            b.call("DELETE", PODS + "/" + p["metadata"]["name"])
        wait_until("its controller makes new ones, and they run", lambda: bound(pods_of(b, "gang")) == 2
                   and not first & {p["metadata"]["uid"] for p in pods_of(b, "gang")})


def test_what_is_not_supported_is_refused_by_name_and_gates_are_waited_for():
    with cluster(nodes=1) as (b, s):
        pod(b, "odd", labels={"fairlead.dev/gang-size": "many"})
        pod(b, "gated", schedulingGates=[{"name": "example.com/later"}])
        wait_until("it is refused", lambda: "NotPlaced" in events(b, "odd"))
        assert "gang-size \"many\"" in events(b, "odd")["NotPlaced"]["message"]
        wait_until("its condition says so too", lambda: condition(b, "odd").get("reason") == "NotPlaced")
        found = s.run("doctor", "-o", "json").out
        assert "1 pods with schedulerName: fairlead are not taken" in found and "1 nodes with 8 GPUs" in found and "shepherd" not in found, found
        pod(b, "plain")
        wait_until("a plain one runs", lambda: phase(b, "plain") == "Running")
        assert node(b, "gated") is None and node(b, "odd") is None and len(jobs(s)) == 1
        status, answer = b.call("PATCH", PODS + "/gated", {"spec": {"schedulingGates": None}}, "application/merge-patch+json")
        assert status == 200, answer
        wait_until("without gates it runs", lambda: phase(b, "gated") == "Running")


def test_a_queue_that_is_not_there_is_named_and_pods_are_taken_when_it_is_made():
    with cluster(nodes=0) as (b, s):
        wait_until("the nodes are listed", lambda: "the cluster has no nodes" in s.run("nodes").err)
        b.node("n0")
        pod(b, "one", labels={"fairlead.dev/queue": "vision"})
        wait_until("it is refused", lambda: condition(b, "one").get("reason") == "NotPlaced")
        assert "`fairlead queues create vision` makes it" in condition(b, "one")["message"]
        assert condition(b, "one")["message"] in s.run("explain", "default/one", "-v").out
        s.run("queues", "create", "vision")
        wait_until("it runs", lambda: phase(b, "one") == "Running")
        assert jobs(s)[0]["queue"] == "vision"


def test_the_daemon_is_killed_and_nothing_is_bound_twice_or_lost():
    with cluster(nodes=2) as (b, s):
        pod(b, "runs", gpus=8)
        wait_until("it runs", lambda: phase(b, "runs") == "Running")
        pod(b, "fills", gpus=8)
        pod(b, "waits", gpus=8)
        wait_until("the third waits", lambda: [j["state"] for j in jobs(s)].count("queued") == 1)
        wait_until("the second runs", lambda: [j["state"] for j in jobs(s)].count("running") == 2)
        s.kill()
        pod(b, "late", gpus=8)
        b.call("DELETE", PODS + "/fills")
        s.up()
        wait_until("the next in the line has its place", lambda: phase(b, "waits") == "Running")
        assert [j["name"] for j in jobs(s)].count("waits") == 1
        assert node(b, "late") is None and phase(b, "runs") == "Running"
        b.call("DELETE", PODS + "/runs")
        wait_until("and the last one", lambda: phase(b, "late") == "Running")
        wait_until("its job runs", lambda: next(j["state"] for j in jobs(s) if j["name"] == "late") == "running")
        assert {j["name"]: j["state"] for j in jobs(s)} == {"runs": "failed", "fills": "failed", "waits": "running", "late": "running"}


def test_killed_at_any_moment_of_a_binding_a_gang_is_bound_once_and_whole():
    with cluster(nodes=2) as (b, s):
        server = dict(b.running)["kube-apiserver"]
        for n, pause_s in enumerate((0.001, 0.004, 0.01, 0.02, 0.04, 0.08)):
            names = ["g%d-%d" % (n, i) for i in range(2)]
            for name in names:
                pod(b, name, gpus=8, labels={"fairlead.dev/gang": "g%d" % n, "fairlead.dev/gang-size": "2"})
            time.sleep(pause_s)
            server.send_signal(signal.SIGSTOP)  # what the daemon sent is carried out later, or never
            time.sleep(0.2)
            s.kill()
            server.send_signal(signal.SIGCONT)
            s.up()
            wait_until("the gang runs", lambda: [phase(b, name) for name in names] == ["Running"] * 2)
            assert {node(b, name) for name in names} == {"n0", "n1"}
            wait_until("it is one job", lambda: [j["state"] for j in jobs(s) if j["name"] == "g%d" % n] == ["running"])
            for name in names:
                b.call("DELETE", PODS + "/" + name)
            wait_until("its job is over", lambda: all(j["state"] != "running" for j in jobs(s)))


def crd(b, group, version, kind, plural):
    b.make("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", {
        "metadata": {"name": plural + "." + group, "annotations": {"api-approved.kubernetes.io": "unapproved, for a test"}},
        "spec": {"group": group, "scope": "Namespaced", "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
                 "versions": [{"name": version, "served": True, "storage": True, "schema": {
                     "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}}]}})
    path = "/apis/%s/%s/namespaces/default/%s" % (group, version, plural)
    wait_until("its kind is served", lambda: b.call("GET", path)[0] == 200)
    return path


NATIVE = "/apis/scheduling.k8s.io/v1alpha2/namespaces/default/podgroups"


def test_pod_groups_of_kubernetes_itself_are_gangs():
    with cluster(nodes=0, server=("--feature-gates", "GenericWorkload=true,TopologyAwareWorkloadScheduling=true",
                                  "--runtime-config", "scheduling.k8s.io/v1alpha2=true")) as (b, s):
        for i in range(3):
            b.node("n%d" % i, **{"topology.kubernetes.io/zone": "aab"[i]})
        pod(b, "first", gpus=8, schedulingGroup={"podGroupName": "pair"})
        wait_until("its group is waited for", lambda: "PodGroup" in condition(b, "first").get("message", ""))
        pod(b, "fills", gpus=8, nodeSelector={"kubernetes.io/hostname": "n0"})  # each zone has room for one more
        wait_until("it runs", lambda: phase(b, "fills") == "Running")
        b.make(NATIVE, {"metadata": {"name": "pair"}, "spec": {
            "schedulingPolicy": {"gang": {"minCount": 2}}, "schedulingConstraints": {"topology": [{"key": "topology.kubernetes.io/zone"}]}}})
        wait_until("the second is waited for", lambda: "its gang of 2 pods is not complete" in s.run("explain", "default/first", "-v").out)
        pod(b, "second", gpus=8, schedulingGroup={"podGroupName": "pair"})
        wait_until("no zone has room for both", lambda: condition(b, "second").get("reason") == "Unschedulable")
        assert phase(b, "first") == phase(b, "second") == "Pending"
        b.call("DELETE", PODS + "/fills")
        wait_until("both run", lambda: [phase(b, n) for n in ("first", "second")] == ["Running"] * 2)
        assert {node(b, n) for n in ("first", "second")} == {"n0", "n1"}
        assert [j["tasks_min"] for j in jobs(s) if j["name"] == "pair"] == [2]
        # A third comes when its gang has begun: it is placed by itself. So are all of a group that says that they may be.
        b.make(NATIVE, {"metadata": {"name": "loose"}, "spec": {"schedulingPolicy": {"basic": {}}}})
        pod(b, "third", gpus=4, schedulingGroup={"podGroupName": "pair"})
        for name, gpus in (("large", 32), ("one", 2), ("two", 2)):
            pod(b, name, gpus=gpus, schedulingGroup={"podGroupName": "loose"})
        wait_until("they run", lambda: [phase(b, n) for n in ("third", "one", "two")] == ["Running"] * 3)
        assert phase(b, "large") == "Pending" and len(jobs(s)) == 6, jobs(s)


def test_pod_groups_of_others_are_gangs():
    with cluster(nodes=2) as (b, s):
        sigs = crd(b, "scheduling.x-k8s.io", "v1alpha1", "PodGroup", "podgroups")
        volcano = crd(b, "scheduling.volcano.sh", "v1beta1", "PodGroup", "podgroups")
        b.make(sigs, {"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", "metadata": {"name": "pg"}, "spec": {"minMember": 2}})
        b.make(volcano, {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": {"name": "vg"}, "spec": {"minMember": 2}})
        groups = {"pg": {"labels": {"scheduling.x-k8s.io/pod-group": "pg"}},
                  "vg": {"annotations": {"scheduling.k8s.io/group-name": "vg"}},
                  "kg": {"labels": {"kueue.x-k8s.io/pod-group-name": "kg"}, "annotations": {"kueue.x-k8s.io/pod-group-total-count": "2"}}}
        for name, marks in groups.items():
            pod(b, name + "-0", **marks)
        for name in groups:
            wait_until("one of two is told to wait", lambda: condition(b, name + "-0").get("reason") == "GangIncomplete")
            assert "1 of the 2 pods" in condition(b, name + "-0")["message"]
        assert jobs(s) == [] and not any(node(b, name + "-0") for name in groups)
        said = s.run("explain", "default/pg-0", "-v").out
        assert "its gang of 2 pods is not complete" in " ".join(said.split()), said
        for name, marks in groups.items():
            pod(b, name + "-1", gpus=2, **marks)  # unlike the other: a role of its own
            wait_until("both run", lambda: [phase(b, "%s-%d" % (name, i)) for i in range(2)] == ["Running"] * 2)
        assert sorted((j["name"], j["tasks_min"]) for j in jobs(s)) == [("kg", 2), ("pg", 2), ("vg", 2)]
        # The group has begun: one more is placed by itself.
        pod(b, "pg-2", **groups["pg"])
        wait_until("it runs", lambda: phase(b, "pg-2") == "Running")
        # An owner of which nothing is known.
        b.make(PODS, {"metadata": {"name": "owned", "ownerReferences": [
            {"apiVersion": "example.com/v1", "kind": "Trainer", "name": "t", "uid": "1", "controller": True}]},
            "spec": {"schedulerName": "fairlead", "automountServiceAccountToken": False, "containers": [{"name": "main", "image": "none"}]}})
        wait_until("it runs alone", lambda: phase(b, "owned") == "Running")
        wait_until("and a warning says so", lambda: events(b, "owned").get("GangUnknown", {}).get("type") == "Warning")


def test_pods_of_another_scheduler_on_the_same_node_are_counted():
    with cluster(nodes=1, parts=("kwok", "scheduler", "controller-manager")) as (b, s):
        b.pod("other", gpus=6)
        wait_until("the stock scheduler placed it", lambda: phase(b, "other") == "Running")
        pod(b, "wide", gpus=4)
        pod(b, "narrow", gpus=2)
        wait_until("what fits runs", lambda: phase(b, "narrow") == "Running")
        wait_until("what does not says why", lambda: condition(b, "wide").get("reason") == "Unschedulable")
        said = s.run("explain", "default/wide", "-v").out
        assert "job" in said and "GPUs" in said, said
        b.call("DELETE", PODS + "/other")
        wait_until("then it runs too", lambda: phase(b, "wide") == "Running")
        assert s.run("explain", "default/nobody", "-v", check=False).code != 0


def test_a_binding_that_goes_on_being_refused_is_not_asked_without_pause_and_the_place_is_checked_again():
    with cluster(nodes=2, through=True) as (b, s):
        asked = []

        def refuse(method, path, body):
            if method == "POST" and path.endswith("/binding"):
                asked.append(json.loads(body)["target"]["name"])
                return refusal(409, "Conflict")
        s.proxy.rules.append(refuse)
        pod(b, "one")
        wait_until("it is refused", lambda: len(asked) >= 3)
        began, before = time.monotonic(), len(asked)
        time.sleep(3)
        assert len(asked) - before <= 2 + (time.monotonic() - began) / 1.5
        b.call("PATCH", "/api/v1/nodes/" + asked[0], {"spec": {"taints": [{"key": "closed", "value": "", "effect": "NoSchedule"}]}}, "application/merge-patch+json")
        wait_until("the other node is asked for", lambda: asked[-1] != asked[0])
        s.proxy.rules.clear()
        wait_until("it runs", lambda: phase(b, "one") == "Running")
        assert node(b, "one") != asked[0]
