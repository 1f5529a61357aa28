# SPDX-License-Identifier: Apache-2.0
"""The cluster that other tests stand on is a real one: nodes become ready, the stock scheduler binds pods to GPUs, and claims are served."""

from bed import bed, wait_until


def ready(node):
    return any(c["type"] == "Ready" and c["status"] == "True" for c in node["status"].get("conditions", []))


def test_a_pod_is_bound_to_a_node_that_has_its_gpus_and_runs():
    with bed("controller-manager", "scheduler", "kwok") as b:
        assert b.get("/version")["gitVersion"] == "v1.36.3"
        assert "resourceclaims" in [r["name"] for r in b.get("/apis/resource.k8s.io/v1")["resources"]]
        b.node("few", gpus=2)
        b.node("many", gpus=8)
        wait_until("the nodes are ready", lambda: all(ready(n) for n in b.get("/api/v1/nodes")["items"]))
        b.pod("wide", gpus=8)
        b.pod("wider", gpus=16)
        pods = "/api/v1/namespaces/default/pods/"
        wait_until("the pod runs", lambda: b.get(pods + "wide")["status"]["phase"] == "Running")
        assert b.get(pods + "wide")["spec"]["nodeName"] == "many"
        wait_until("the other is refused", lambda: any(
            c["type"] == "PodScheduled" and c.get("reason") == "Unschedulable" for c in b.get(pods + "wider")["status"].get("conditions", [])))
        assert "nodeName" not in b.get(pods + "wider")["spec"]
