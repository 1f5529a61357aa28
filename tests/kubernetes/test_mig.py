# SPDX-License-Identifier: Apache-2.0
"""MIG devices that a device plugin counts (nvidia.com/mig-...): on a real API server, with nodes that have some."""

import collections

from bed import wait_until
from cluster import PODS, cluster
from test_pods import node, phase


def mig_node(b, name, **slices):
    room = {"cpu": "64", "memory": "512Gi", "pods": "256", "nvidia.com/gpu": "1", **{"nvidia.com/mig-" + k[1:].replace("_", "."): str(v) for k, v in slices.items()}}
    b.make("/api/v1/nodes", {"metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}, "annotations": {"kwok.x-k8s.io/node": "fake"}},
                             "status": {"capacity": room, "allocatable": room}})


def mig_pod(b, name, profile="1g.10gb", scheduler="fairlead"):
    b.make(PODS, {"metadata": {"name": name}, "spec": {"schedulerName": scheduler, "restartPolicy": "Never", "automountServiceAccountToken": False, "containers": [
        {"name": "main", "image": "none", "command": ["sleep"], "resources": {"limits": {"nvidia.com/mig-" + profile: "1"}}}]}})


def running(b, names):
    return [n for n in names if phase(b, n) == "Running"]


def test_pods_of_others_get_no_more_slices_than_a_node_has():
    with cluster(nodes=0) as (b, s):
        mig_node(b, "m0", _1g_10gb=7)
        mig_node(b, "m1", _1g_10gb=3, _3g_40gb=1)
        s.wait_for_nodes(2)
        pods = ["p%d" % i for i in range(12)]
        for name in pods:
            mig_pod(b, name)
        wait_until("as many as there are run", lambda: len(running(b, pods)) == 10)
        assert collections.Counter(node(b, n) for n in running(b, pods)) == {"m0": 7, "m1": 3}
        mig_pod(b, "wide", "3g.40gb")
        wait_until("another profile is counted by itself", lambda: node(b, "wide") == "m1" and phase(b, "wide") == "Running")
        rest = [n for n in pods if phase(b, n) != "Running"]
        wait_until("it says why", lambda: any("resources" in s.run("explain", "default/" + n, "-v", check=False).out for n in rest))
        b.call("DELETE", PODS + "/" + running(b, pods)[0])
        wait_until("one more runs", lambda: len(running(b, rest)) == 1)


def test_a_job_asks_for_a_slice_by_its_name():
    with cluster(nodes=0) as (b, s):
        mig_node(b, "m0", _1g_10gb=2)
        mig_node(b, "m1", _3g_40gb=1)
        b.node("n0", gpus=8)
        s.wait_for_nodes(3)
        b.call("PATCH", "/api/v1/nodes/m1", {"spec": {"taints": [{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}]}}, "application/merge-patch+json")
        mig_pod(b, "other")
        wait_until("another's pod has one", lambda: phase(b, "other") == "Running")
        jobs = [s.submit("-g", "1g.10gb", "--", "sleep", "1000") for _ in range(2)]
        wide = s.submit("-g", "3g.40gb", "--", "sleep", "1000")
        s.wait_for(jobs[0], "running")
        s.wait_for(wide, "running")
        limits = lambda job: b.get(PODS + "/" + s.pod(job, 0))["spec"]["containers"][0]["resources"]["limits"]
        assert limits(jobs[0])["nvidia.com/mig-1g.10gb"] == "1" and "nvidia.com/gpu" not in limits(jobs[0])
        assert [node(b, s.pod(job, 0)) for job in (jobs[0], wide)] == ["m0", "m1"]
        assert s.state(jobs[1]) == "queued"
        b.call("DELETE", PODS + "/other")
        s.wait_for(jobs[1], "running")
        fit = s.run("submit", "-", check=False, stdin="command: x\ngpus: {slice: fit, memory: 9GiB}\n")
        assert fit.code and "such as 1g.10gb" in fit.err, fit
