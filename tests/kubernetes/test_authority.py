# SPDX-License-Identifier: Apache-2.0
"""Who places work on which nodes: pods of another scheduler are named with it, nodes declared to be another's are let alone, and two in one pool
is an error that names both. The other one is the stock kube-scheduler."""

import time

from cluster import PODS, cluster, harness, wait_until

LABEL = "fairlead.dev/authority"


def label(b, node, **labels):
    labels = {"fairlead.dev/" + key: value for key, value in labels.items()}
    status, answer = b.call("PATCH", "/api/v1/nodes/" + node, {"metadata": {"labels": labels}}, kind="application/merge-patch+json")
    assert status == 200, answer


def conflict(s):
    return harness.Client(s.data).get("/api/v1/status")["cluster"]["conflict"]


def events(b, node):
    """Those of a node, by reason: there is one of each at most."""
    path = "/api/v1/namespaces/default/events?fieldSelector=involvedObject.kind%%3DNode,involvedObject.uid%%3D%s,involvedObject.name%%3D%s" % (node, node)
    found = b.get(path)["items"]
    assert len({e["reason"] for e in found}) == len(found), found
    return {e["reason"]: e for e in found}


def version(event):
    return event["metadata"]["resourceVersion"]


def test_pods_of_another_scheduler_are_named_and_two_on_one_node_is_an_error():
    with cluster(nodes=1, parts=("kwok", "controller-manager", "scheduler")) as (b, s):
        b.pod("other", gpus=6)
        said = "pod default/other (default-scheduler)"
        wait_until("it is named", lambda: [t["by"] for t in s.ask("nodes")[0]["taken"]] == [said] * 6)
        assert s.ask("nodes")[0]["gpus"]["free"] == 2 and not conflict(s)
        wide = s.submit("-g", "3", "--", "true")
        why = s.run("explain", str(wide), "-v").out
        assert "6 GPUs are taken by what Fairlead did not place" in why and said in why, why
        b.pod("second", gpus=1)
        both = "pods default/other (default-scheduler), default/second (default-scheduler)"
        wait_until("both are named", lambda: [t["by"] for t in s.ask("nodes")[0]["taken"]] == [both] * 7)
        b.call("DELETE", PODS + "/second")
        wait_until("one is named", lambda: [t["by"] for t in s.ask("nodes")[0]["taken"]] == [said] * 6)
        s.run("cancel", str(wide))
        beside = s.submit("-g", "1", "--", "sleep")
        s.wait_for(beside, "running")
        wait_until("there are two", lambda: conflict(s))
        assert "node n0 has two placement authorities: fairlead and default-scheduler, which placed pod default/other" in conflict(s)
        doctor = s.run("doctor", check=False)
        assert doctor.code == 1 and "two placement authorities" in " ".join(doctor.out.split()), doctor
        assert "two placement authorities" in " ".join(s.run("nodes").err.split())
        b.call("DELETE", PODS + "/other")
        wait_until("there is one", lambda: not conflict(s) and not s.ask("nodes")[0]["taken"])
        assert s.state(beside) == "running"


def test_nodes_declared_to_be_anothers_are_let_alone_and_a_pool_has_one_authority():
    with cluster(nodes=2) as (b, s):
        label(b, "n1", authority="volcano")
        state = lambda: {n["name"]: n for n in s.ask("nodes")}["n1"]
        wait_until("n1 takes no work", lambda: state()["state"] == "cordoned")
        assert "its label fairlead.dev/authority says that volcano places work there" in state()["reason"]
        assert not conflict(s), "by themselves the two nodes are two pools"
        wide = s.submit("-t", "2", "-g", "8", "--", "true")
        why = " ".join(s.run("explain", str(wide), "-v").out.split())
        assert "volcano places work there" in why, why
        label(b, "n0", pool="a")
        label(b, "n1", pool="a")
        wait_until("one pool has two", lambda: conflict(s))
        assert "pool a has two placement authorities" in conflict(s)
        assert "fairlead (node n0, which has no label)" in conflict(s) and "volcano (node n1)" in conflict(s)
        label(b, "n0", authority="fairlead")
        wait_until("it has one", lambda: "fairlead (node n0) " in conflict(s))
        label(b, "n1", authority="fairlead")
        wait_until("there is one", lambda: not conflict(s))
        s.wait_for(wide, "succeeded")
        # Where it is declared, no work of its own is needed for two to be one too many.
        pod = b.pod("other", gpus=1)
        b.make(PODS + "/other/binding", {"metadata": {"name": "other", "uid": pod["metadata"]["uid"]}, "target": {"kind": "Node", "name": "n1"}})
        wait_until("a stranger is there", lambda: "pool a has two placement authorities: fairlead and default-scheduler" in conflict(s))


def test_nodes_of_a_pool_with_two_authorities_have_an_event_which_is_not_written_at_each_look():
    with cluster(nodes=2) as (b, s):
        label(b, "n0", pool="a")
        label(b, "n1", pool="a", authority="volcano")
        warning = lambda node: events(b, node).get("AuthorityConflict")
        wait_until("both nodes have one", lambda: warning("n0") and warning("n1"))
        first = {node: warning(node) for node in ("n0", "n1")}
        for event in first.values():
            assert (event["type"], event["count"], event["message"]) == ("Warning", 1, conflict(s)), event
            assert "volcano (node n1)" in event["message"] and event["source"] == {"component": "fairlead"}, event
        b.node("n2")
        time.sleep(6)  # longer than from a change to a look
        b.call("DELETE", "/api/v1/nodes/n2")
        time.sleep(6)
        assert {node: warning(node) for node in first} == first
        s.kill()
        s.up()
        wait_until("the next daemon says it in the same Event", lambda: all(version(warning(node)) != version(first[node]) for node in first))
        assert {warning(node)["message"] for node in first} == {conflict(s)}
        label(b, "n1", authority="fairlead")
        wait_until("it is over", lambda: all("AuthorityConflictOver" in events(b, node) for node in first))
        over = events(b, "n1")["AuthorityConflictOver"]
        assert (over["type"], over["message"]) == ("Normal", "pool a has one placement authority again"), over
