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
        wait_until("it says why", lambda: any("resources" in s.run("explain", "default/" + n, check=False).out for n in rest))
        b.call("DELETE", PODS + "/" + running(b, pods)[0])
        wait_until("one more runs", lambda: len(running(b, rest)) == 1)
