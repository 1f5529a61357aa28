# SPDX-License-Identifier: Apache-2.0
"""Parts of GPUs (time-slices, MPS, MIG devices) that a device plugin publishes: under the name of whole GPUs they are none, under a name of their
own they are counted as what they are. On a real API server, with nodes that have such labels and resources."""

import json

from bed import wait_until
from cluster import PODS, cluster
from test_pods import phase

SHARED = "nvidia.com/gpu.shared"
PRODUCT = "nvidia.com/gpu.product"


def product(b, node, value):
    status, answer = b.call("PATCH", "/api/v1/nodes/" + node, {"metadata": {"labels": {PRODUCT: value}}}, kind="application/merge-patch+json")
    assert status == 200, answer


def shown(s):
    return {n["name"]: (n["gpus"]["total"], n["state"]) for n in s.ask("nodes")}


def test_what_counts_as_whole_gpus_and_is_none_is_not_given():
    with cluster(nodes=0) as (b, s):
        b.node("shared", gpus=16, **{PRODUCT: "H100-80GB-HBM3-SHARED"})
        b.node("mig", gpus=56, **{PRODUCT: "A100-SXM4-40GB-MIG-1g.5gb"})
        b.node("gke", gpus=4, **{"cloud.google.com/gke-gpu-sharing-strategy": "time-sharing"})
        b.pod("other", gpus=3, nodeName="shared")
        b.node("whole", gpus=8, **{PRODUCT: "H100-80GB-HBM3"})
        wait_until("only whole ones count", lambda: shown(s) == {
            "shared": (0, "cordoned"), "mig": (0, "cordoned"), "gke": (0, "cordoned"), "whole": (8, "ready")})
        first = s.submit("-g", "8", "--", "sleep", "1000")
        s.wait_for(first, "running")
        assert b.get(PODS + "/" + s.pod(first, 0))["spec"]["nodeName"] == "whole"
        second = s.submit("-g", "1", "--", "sleep", "1000")
        b.pod("wants", scheduler="fairlead")
        for word in (str(second), "default/wants"):
            wait_until("it is said why not there", lambda: "parts of GPUs" in s.run("explain", word, "-v", check=False).out)
        assert "H100-80GB-HBM3-SHARED" in s.run("nodes").out
        # Somebody shares the GPUs of a node on which a job runs: it goes on there, and nothing new comes, until they are whole again.
        s.run("cancel", str(first))
        s.wait_for(second, "running")
        wait_until("the pod of others runs", lambda: phase(b, "wants") == "Running")
        product(b, "whole", "H100-80GB-HBM3-SHARED")
        wait_until("none is left", lambda: shown(s)["whole"] == (0, "cordoned"))
        third = s.submit("-g", "1", "--", "sleep", "1000")
        wait_until("it waits", lambda: "parts of GPUs" in s.run("explain", str(third), "-v").out)
        assert s.state(second) == "running" and phase(b, "wants") == "Running"
        product(b, "whole", "H100-80GB-HBM3")
        s.wait_for(third, "running")
        assert s.state(second) == "running"


def test_parts_with_a_name_of_their_own_are_counted():
    with cluster(nodes=0) as (b, s):
        room = {"cpu": "64", "memory": "512Gi", "pods": "256", "nvidia.com/gpu": "0", SHARED: "4"}
        b.make("/api/v1/nodes", {"metadata": {"name": "n0", "annotations": {"kwok.x-k8s.io/node": "fake"},
                                              "labels": {"kubernetes.io/hostname": "n0", PRODUCT: "H100-80GB-HBM3", "nvidia.com/gpu.replicas": "4"}},
                                 "spec": {"taints": [{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}]},
                                 "status": {"capacity": room, "allocatable": room}})
        s.wait_for_nodes(1)
        b.make(PODS, {"metadata": {"name": "other"}, "spec": {"schedulerName": "fairlead", "automountServiceAccountToken": False,
                                                              "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}], "containers": [
            {"name": "main", "image": "none", "resources": {"limits": {SHARED: "1"}}}]}})
        wait_until("a pod of others has one", lambda: phase(b, "other") == "Running")
        job = "command: sleep 1000\ngpus: 0\nresources: {%s: 1}\n" % SHARED
        jobs = [json.loads(s.run("submit", "-", "-o", "json", stdin=job).out)["id"] for _ in range(4)]
        wait_until("as many run as there are", lambda: [s.state(j) for j in jobs].count("running") == 3)
        rest = next(j for j in jobs if s.state(j) != "running")
        wait_until("it is said what lacks", lambda: SHARED in s.run("explain", str(rest), "-v").out)
        b.call("DELETE", PODS + "/other")
        s.wait_for(rest, "running")
