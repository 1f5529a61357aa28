# SPDX-License-Identifier: Apache-2.0
"""Labels of nodes are levels of the topology: gangs lie as close together as the labels say."""

from bed import wait_until
from cluster import cluster

LEAF, CLIQUE = "network.topology.nvidia.com/leaf", "nvidia.com/gpu.clique"


def domains(s):
    return {n["name"]: n["domains"] for n in s.ask("nodes")}


def test_a_gang_lies_under_one_leaf_and_new_labels_add_levels():
    with cluster(nodes=0) as (b, s):
        for i in range(4):  # names in turn: n0 and n1 lie under different leaves
            b.node("n%d" % i, **{LEAF: "l%d" % (i % 2), "topology.kubernetes.io/zone": "z"})
        s.wait_for_nodes(4)
        wait_until("the nodes have places", lambda: domains(s) == {"n%d" % i: ["z", "l%d" % (i % 2)] for i in range(4)})
        gang = s.submit("-g", "8", "-t", "2", "--", "sleep")
        s.wait_for(gang, "running")
        nodes = sorted(p["spec"]["nodeName"] for p in s.pods().values())
        assert nodes in (["n0", "n2"], ["n1", "n3"])
        b.node("n4", **{LEAF: "l0", CLIQUE: "c1", "topology.kubernetes.io/zone": "z"})
        wait_until("there is a third level", lambda: [domains(s).get(n) for n in ("n4", "n0")] == [["z", "l0", "c1"], ["z", "l0", ""]])
        s.kill()
        s.up()
        assert domains(s)["n4"] == ["z", "l0", "c1"] and s.state(gang) == "running"
