# SPDX-License-Identifier: Apache-2.0
"""Pods of Deployments, StatefulSets and custom resources, made by the real controllers (and, for the custom resource, by the test)."""

import re

from bed import wait_until
from cluster import PODS, cluster
from test_pods import condition, crd, events, jobs, phase, pod

APPS = "/apis/apps/v1/namespaces/default/"
MERGE = "application/merge-patch+json"


def template(app, gpus=1, **spec):
    return {"metadata": {"labels": {"app": app}},
            "spec": {"schedulerName": "fairlead", "automountServiceAccountToken": False, "terminationGracePeriodSeconds": 1, **spec,
                     "containers": [{"name": "main", "image": "none", "command": ["sleep"], "resources": {"limits": {"nvidia.com/gpu": str(gpus)}}}]}}


def owner(b, kind, name, replicas, **spec):
    b.make(APPS + kind, {"metadata": {"name": name}, "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}},
                                                              "template": template(name), **spec}})


def change(b, kind, name, spec):
    status, answer = b.call("PATCH", APPS + kind + "/" + name, {"spec": spec}, MERGE)
    assert status == 200, answer


def pods_of(b, app):
    return [p for p in b.get(PODS + "?labelSelector=app%3D" + app)["items"] if "deletionTimestamp" not in p["metadata"]]


def running(b, app):
    return [p["metadata"]["name"] for p in pods_of(b, app) if p["status"]["phase"] == "Running"]


def live(s, state="running"):
    return [j for j in jobs(s) if j["state"] == state]


def test_a_deployment_grows_shrinks_rolls_and_goes():
    with cluster(nodes=1, gpus=4, parts=("kwok", "controller-manager")) as (b, s):
        owner(b, "deployments", "web", 2)
        wait_until("two run", lambda: len(running(b, "web")) == 2)
        wait_until("each pod is a job of its own", lambda: [(j["tasks_min"], j["user"]) for j in live(s)] == [(1, "default")] * 2)
        change(b, "deployments", "web", {"replicas": 5})  # one more than there is room for
        wait_until("four run", lambda: len(running(b, "web")) == 4)
        waits = next(p["metadata"]["name"] for p in pods_of(b, "web") if p["status"]["phase"] == "Pending")
        wait_until("the fifth says why it waits", lambda: condition(b, waits).get("reason") == "Unschedulable")
        change(b, "deployments", "web", {"replicas": 3})
        wait_until("three are left", lambda: len(pods_of(b, "web")) == 3 and len(running(b, "web")) == 3)
        wait_until("and as many jobs", lambda: (len(live(s)), len(live(s, "queued"))) == (3, 0))
        before = set(running(b, "web"))
        change(b, "deployments", "web", {"template": {"spec": {"terminationGracePeriodSeconds": 2}}})
        wait_until("all pods are of the new template", lambda: len(running(b, "web")) == len(pods_of(b, "web")) == 3
                   and not before & set(running(b, "web")))
        # All rolled: the API server says so, and no old job holds a GPU.
        wait_until("the roll-out is complete", lambda: b.get(APPS + "deployments/web")["status"].get("updatedReplicas") == 3)
        wait_until("three jobs run", lambda: len(live(s)) == 3)
        assert [n["gpus"]["free"] for n in s.ask("nodes")] == [1]
        assert not any("GangUnknown" in events(b, name) for name in running(b, "web"))
        b.call("DELETE", APPS + "deployments/web?propagationPolicy=Background")
        wait_until("nothing is left", lambda: not pods_of(b, "web") and not live(s) and not live(s, "queued"))


def test_a_stateful_set_comes_in_order_and_a_pod_of_it_comes_back():
    with cluster(nodes=2, gpus=2, parts=("kwok", "controller-manager")) as (b, s):
        owner(b, "statefulsets", "db", 3, serviceName="db")
        wait_until("three run", lambda: sorted(running(b, "db")) == ["db-0", "db-1", "db-2"])
        uid = b.get(PODS + "/db-1")["metadata"]["uid"]
        b.call("DELETE", PODS + "/db-1")
        wait_until("it is made anew under its name, and runs", lambda: "db-1" in running(b, "db") and b.get(PODS + "/db-1")["metadata"]["uid"] != uid)
        # Its controller deletes the old one by its name, too, and now and then that meets the new one: then there is a third.
        wait_until("the old one's job is over, the new one's runs", lambda: re.fullmatch(
            "failed (cancelled )?running", " ".join(j["state"] for j in sorted(jobs(s), key=lambda j: j["id"]) if j["name"] == "db-1")))


def worker(b, name, job, uid, gpus=1, **marks):
    return b.make(PODS, {"metadata": {"name": name, **marks, "ownerReferences": [
        {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "name": job, "uid": uid, "controller": True}]},
        "spec": template(job, gpus)["spec"]})


def test_the_replicas_of_a_training_job_are_one_gang():
    with cluster(nodes=2, gpus=4, parts=("kwok", "controller-manager")) as (b, s):
        path = crd(b, "kubeflow.org", "v1", "PyTorchJob", "pytorchjobs")
        made = b.make(path, {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": "train"},
                             "spec": {"pytorchReplicaSpecs": {"Master": {"replicas": 1}, "Worker": {"replicas": 2}}}})
        uid = made["metadata"]["uid"]
        worker(b, "train-master-0", "train", uid, gpus=2)
        worker(b, "train-worker-0", "train", uid, gpus=2)
        wait_until("two of three wait", lambda: condition(b, "train-master-0").get("reason") == "GangIncomplete")
        assert "2 of the 3 pods" in condition(b, "train-master-0")["message"] and not jobs(s)
        worker(b, "train-worker-1", "train", uid, gpus=2)
        names = ["train-master-0", "train-worker-0", "train-worker-1"]
        wait_until("all run", lambda: [phase(b, n) for n in names] == ["Running"] * 3)
        assert [(j["name"], j["tasks_min"]) for j in jobs(s)] == [("train", 3)]
        # The operator's convention beside it: a PodGroup of as many as it says starts, and the owner is not asked.
        groups = crd(b, "scheduling.x-k8s.io", "v1alpha1", "PodGroup", "podgroups")
        b.make(groups, {"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", "metadata": {"name": "pair"}, "spec": {"minMember": 2}})
        other = b.make(path, {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": "pair"},
                              "spec": {"pytorchReplicaSpecs": {"Worker": {"replicas": 4}}}})["metadata"]["uid"]
        for i in range(2):
            worker(b, "pair-worker-%d" % i, "pair", other, labels={"scheduling.x-k8s.io/pod-group": "pair"})
        wait_until("both run", lambda: [phase(b, "pair-worker-%d" % i) for i in range(2)] == ["Running"] * 2)
        assert [j["tasks_min"] for j in jobs(s) if j["name"] == "pair"] == [2]
        # Its owner is deleted: the pods go, and the job with them.
        b.call("DELETE", path + "/train?propagationPolicy=Background")
        wait_until("the pods are gone", lambda: not any(b.call("GET", PODS + "/" + n)[0] == 200 for n in names))
        wait_until("the job is over", lambda: {j["name"]: j["state"] for j in jobs(s)}["train"] == "failed")


def test_a_ray_cluster_is_one_gang_and_what_it_adds_later_is_placed_by_itself():
    with cluster(nodes=2, gpus=4, parts=("kwok", "controller-manager")) as (b, s):
        path = crd(b, "ray.io", "v1", "RayCluster", "rayclusters")
        uid = b.make(path, {"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": {"name": "tune"}, "spec": {
            "headGroupSpec": {}, "workerGroupSpecs": [{"groupName": "a", "replicas": 1, "numOfHosts": 2}, {"groupName": "b", "minReplicas": 1}]}})["metadata"]["uid"]
        names = ["tune-head", "tune-a-0", "tune-a-1", "tune-b-0", "tune-b-1"]

        def come(name, gpus):
            b.make(PODS, {"metadata": {"name": name, "ownerReferences": [
                {"apiVersion": "ray.io/v1", "kind": "RayCluster", "name": "tune", "uid": uid, "controller": True}]}, "spec": template("tune", gpus)["spec"]})
        for name in names[:3]:
            come(name, 1)
        wait_until("one is waited for", lambda: "3 of the 4 pods" in condition(b, "tune-head").get("message", ""))
        come("tune-b-0", 2)
        wait_until("all run", lambda: [phase(b, n) for n in names[:4]] == ["Running"] * 4)
        assert [(j["name"], j["tasks_min"]) for j in jobs(s)] == [("tune", 4)]
        come("tune-b-1", 2)  # its autoscaler wants more
        wait_until("it runs too", lambda: phase(b, "tune-b-1") == "Running")
        assert [j["tasks_min"] for j in jobs(s)] == [4, 1]
        # A step of a workflow has nothing to wait for, and no warning.
        b.make(PODS, {"metadata": {"name": "step", "ownerReferences": [
            {"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "name": "flow", "uid": uid, "controller": True}]}, "spec": template("flow")["spec"]})
        wait_until("it runs", lambda: phase(b, "step") == "Running")
        assert "GangUnknown" not in events(b, "step")


def test_an_owner_that_goes_while_its_pods_wait_leaves_nothing():
    with cluster(nodes=1, gpus=1, parts=("kwok", "controller-manager")) as (b, s):
        pod(b, "fills")
        wait_until("it runs", lambda: phase(b, "fills") == "Running")
        b.make("/apis/batch/v1/namespaces/default/jobs", {"metadata": {"name": "waits"}, "spec": {
            "parallelism": 2, "completions": 2, "template": {**template("waits"), "spec": {**template("waits")["spec"], "restartPolicy": "Never"}}}})
        wait_until("its gang waits", lambda: [(j["name"], j["tasks_min"]) for j in live(s, "queued")] == [("waits", 2)])
        b.call("DELETE", "/apis/batch/v1/namespaces/default/jobs/waits?propagationPolicy=Background")
        wait_until("its job is over", lambda: {j["name"]: j["state"] for j in jobs(s)}["waits"] == "cancelled")
        wait_until("nothing is left", lambda: not pods_of(b, "waits"))
        assert phase(b, "fills") == "Running" and len(jobs(s)) == 2


def job_of_set(b, index, pods):
    """As JobSet makes it, of two of one template."""
    labels = {"jobset.sigs.k8s.io/" + k: v for k, v in (("jobset-name", "set"), ("replicatedjob-name", "worker"), ("replicatedjob-replicas", "2"))}
    spec = template("worker", gpus=2)
    spec["metadata"] = {"labels": {**spec.get("metadata", {}).get("labels", {}), **labels}}
    spec["spec"]["restartPolicy"] = "Never"
    return b.make("/apis/batch/v1/namespaces/default/jobs", {"metadata": {"name": "set-worker-%d" % index, "labels": labels}, "spec": {
        "parallelism": pods, "completions": pods, "template": spec}})


def pods_of_set(b, index=""):
    return [p for p in b.get(PODS)["items"] if p["metadata"]["name"].startswith("set-worker-%s" % index)]


def test_the_jobs_of_one_template_of_a_job_set_are_one_gang():
    with cluster(nodes=2, gpus=4, parts=("kwok", "controller-manager")) as (b, s):
        job_of_set(b, 0, 2)
        wait_until("the second Job is waited for", lambda: len(pods_of_set(b)) == 2 and "2 of the 4 pods" in condition(b, pods_of_set(b)[0]["metadata"]["name"]).get("message", ""))
        job_of_set(b, 1, 2)
        wait_until("all run", lambda: [p["status"]["phase"] for p in pods_of_set(b)] == ["Running"] * 4)
        assert [(j["name"], j["tasks_min"]) for j in jobs(s)] == [("set-worker", 4)]


def test_a_pod_of_a_job_set_that_comes_again_when_the_others_have_ended_waits_for_nobody():
    with cluster(nodes=2, gpus=4, parts=("kwok", "controller-manager")) as (b, s):
        end = lambda p, phase: b.call("PATCH", PODS + "/%s/status" % p["metadata"]["name"], {"status": {"phase": phase}}, "application/merge-patch+json")
        for index in (0, 1):
            job_of_set(b, index, 1)
        wait_until("both run", lambda: [p["status"]["phase"] for p in pods_of_set(b)] == ["Running"] * 2)
        (first,), (second,) = pods_of_set(b, 0), pods_of_set(b, 1)
        end(first, "Succeeded")
        wait_until("one Job is over", lambda: b.get("/apis/batch/v1/namespaces/default/jobs/set-worker-0")["status"].get("succeeded") == 1)
        end(second, "Failed")
        wait_until("the pod of the other runs again", lambda: [p["status"]["phase"] for p in pods_of_set(b, 1) if p["metadata"]["uid"] != second["metadata"]["uid"]] == ["Running"])


def test_a_leader_and_its_workers_start_together_unless_it_is_to_be_ready_first():
    with cluster(nodes=2, gpus=4) as (b, s):
        path = crd(b, "leaderworkerset.x-k8s.io", "v1", "LeaderWorkerSet", "leaderworkersets")
        for name, policy in (("serve", "LeaderCreated"), ("first", "LeaderReady")):
            b.make(path, {"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "metadata": {"name": name}, "spec": {
                "replicas": 2, "startupPolicy": policy, "leaderWorkerTemplate": {"size": 3}}})

        def come(name, group, of="serve"):
            key = "leaderworkerset.sigs.k8s.io/"
            b.make(PODS, {"metadata": {"name": name, "labels": {key + "name": of, key + "group-index": str(group)}, "ownerReferences": [
                {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": of, "uid": "7b0f3c5e-0000-4000-8000-00000000000%d" % (of == "first"), "controller": True}]},
                "spec": template(of, 1)["spec"]})
        names = ["serve-0", "serve-0-1", "serve-0-2"]
        come("serve-0", 0)
        come("serve-1", 1)
        come("serve-0-1", 0)
        wait_until("a worker is waited for", lambda: "2 of the 3 pods" in condition(b, "serve-0").get("message", ""))
        wait_until("that of the other group for two", lambda: "1 of the 3 pods" in condition(b, "serve-1").get("message", ""))
        come("serve-0-2", 0)
        wait_until("the group runs", lambda: [phase(b, n) for n in names] == ["Running"] * 3)
        assert [(j["name"], j["tasks_min"]) for j in jobs(s)] == [("serve-0", 3)] and phase(b, "serve-1") == "Pending"
        come("first-0", 0, of="first")
        wait_until("a leader that is to be ready first runs", lambda: phase(b, "first-0") == "Running")
