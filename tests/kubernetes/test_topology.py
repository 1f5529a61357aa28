# SPDX-License-Identifier: Apache-2.0
"""Labels of nodes are levels of the topology: gangs lie as close together as the labels say."""

import os
import subprocess

from bed import wait_until
from cluster import cluster, harness

LEAF, CLIQUE = "network.topology.nvidia.com/leaf", "nvidia.com/gpu.clique"
BLOCK, RACK = "cloud.provider.com/topology-block", "cloud.provider.com/topology-rack"


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


def test_labels_that_a_topology_of_kueue_names_are_levels_where_the_daemon_is_told():
    words = ("--topology-label", "spine=" + BLOCK, "--topology-label", "leaf=" + RACK)
    with cluster(nodes=0, words=words) as (b, s):
        for i in range(4):
            b.node("n%d" % i, **{BLOCK: "b", RACK: "r%d" % (i % 2)})
        s.wait_for_nodes(4)
        wait_until("the nodes have places", lambda: domains(s) == {"n%d" % i: ["b", "r%d" % (i % 2)] for i in range(4)})
        gang = s.submit("-g", "8", "-t", "2", "--", "sleep")
        s.wait_for(gang, "running")
        assert sorted(p["spec"]["nodeName"] for p in s.pods().values()) in (["n0", "n2"], ["n1", "n3"])
        # Pods that others make say the label itself.
        for i in range(2):
            b.make("/api/v1/namespaces/default/pods", {
                "metadata": {"name": "g-%d" % i, "labels": {"fairlead.dev/gang": "g", "fairlead.dev/gang-size": "2"}},
                "spec": {"schedulerName": "fairlead", "restartPolicy": "Never", "automountServiceAccountToken": False,
                         "affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
                             {"topologyKey": RACK, "labelSelector": {"matchLabels": {"fairlead.dev/gang": "g"}}}]}},
                         "containers": [{"name": "main", "image": "none", "command": ["sleep"], "resources": {"limits": {"nvidia.com/gpu": "8"}}}]}})
        ran = lambda: [p["spec"].get("nodeName") for p in b.get("/api/v1/namespaces/default/pods?labelSelector=fairlead.dev%2Fgang%3Dg")["items"]]
        wait_until("they run", lambda: all(ran()))
        assert len({n["domains"][1] for n in s.ask("nodes") if n["name"] in ran()}) == 1, ran()


def test_a_label_that_is_no_level_is_refused_by_name(tmp_path):
    for words, said in (
            (["rack=" + RACK], "expected a level (region, zone, core, spine, leaf, island)"), (["leaf="], "expected a level"), (["leaf"], "expected a level"),
            (["leaf=a,b"], "expected a level"), (["leaf=kubernetes.io/hostname"], "which node it is"),
            (["leaf=" + RACK, "spine=" + RACK], "twice"), (["leaf=l%d" % i for i in range(17)], "more than 16 times")):
        done = subprocess.run([harness.PROGRAM, "serve", "--engine", "kubernetes", *[w for word in words for w in ("--topology-label", word)]],
                              capture_output=True, text=True, env={**os.environ, "FAIRLEAD_DATA": str(tmp_path)}, timeout=harness.PATIENCE_S)
        assert done.returncode == 2 and said in " ".join(done.stderr.split()), (words, done)
