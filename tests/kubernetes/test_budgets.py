# SPDX-License-Identifier: Apache-2.0
"""PodDisruptionBudgets: whose pods are stopped for others last."""

import json

from bed import wait_until
from cluster import PODS, cluster
from test_owners import APPS, running, template
from test_pods import jobs, phase, pod

BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"


def budget(b, name, labels, **rule):
    b.make(BUDGETS, {"metadata": {"name": name}, "spec": {"selector": {"matchLabels": labels}, **rule}})
    return lambda: b.get(BUDGETS + "/" + name)["status"]


def best_effort(b, name, app):
    pod(b, name, gpus=8, labels={"fairlead.dev/tier": "best-effort", "app": app}, terminationGracePeriodSeconds=7)
    wait_until(name + " runs", lambda: phase(b, name) == "Running")


def shields(s):
    """How many attempts are shielded, by the journal."""
    now = {}
    for line in s.run("journal", "show", "-o", "json").out.splitlines():
        record = json.loads(line)
        if record["kind"] == "attempt-shielded":
            now[record["record"]["attempt"]] = record["record"].get("shielded", 0)
        elif record["kind"] == "attempt-ended":
            now.pop(record["record"]["attempt"], None)
    return sum(now.values())


def test_who_has_a_budget_is_stopped_last_but_is_stopped():
    with cluster(nodes=2, parts=("kwok", "controller-manager")) as (b, s):
        b.make("/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": "high"}, "value": 1000})
        status = budget(b, "kept", {"app": "kept"}, minAvailable=1)
        best_effort(b, "open", "other")
        best_effort(b, "kept", "kept")  # came later, so it would go first
        wait_until("the budget allows nothing", lambda: (status().get("currentHealthy"), status().get("disruptionsAllowed")) == (1, 0))
        wait_until("Fairlead knows", lambda: "attempt-shielded" in s.run("journal", "show").out)
        pod(b, "first", gpus=8, priorityClassName="high")
        wait_until("it runs", lambda: phase(b, "first") == "Running")
        assert phase(b, "kept") == "Running" and {j["name"]: j["state"] for j in jobs(s)}["open"] == "cancelled"
        pod(b, "second", gpus=8, priorityClassName="high")
        wait_until("it runs too, for nothing else serves", lambda: phase(b, "second") == "Running")
        wait_until("whose budget was broken is over", lambda: {j["name"]: j["state"] for j in jobs(s)}["kept"] == "cancelled")


def refusals(b):
    """Evictions that the API server has refused for a budget."""
    return sum(int(line.split()[-1]) for line in b.get("/metrics").splitlines()
               if line.startswith("apiserver_request_total{") and 'code="429"' in line and 'subresource="eviction"' in line)


def test_a_node_that_is_taken_away_is_left_as_budgets_allow():
    """As whoever takes it away would ask them: what a budget keeps stays until it allows it, and what none keeps goes at the notice."""
    with cluster(nodes=1, parts=("kwok", "controller-manager")) as (b, s):
        status = budget(b, "kept", {"app": "kept"}, minAvailable=1)
        budget(b, "double", {"app": "double"}, minAvailable=0)
        budget(b, "twice", {"app": "double"}, minAvailable=0)
        for name in ("open", "kept", "double"):
            pod(b, name, gpus=2, labels={"app": name})
            b.call("PATCH", PODS + "/" + name, {"metadata": {"finalizers": ["example.com/seen"]}}, "application/merge-patch+json")
            wait_until(name + " runs", lambda: phase(b, name) == "Running")
        wait_until("the budget allows nothing", lambda: (status().get("currentHealthy"), status().get("disruptionsAllowed")) == (1, 0))
        node = b.get(PODS + "/kept")["spec"]["nodeName"]
        answer = b.call("PATCH", "/api/v1/nodes/" + node, {"spec": {"taints": [
            {"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}]}}, "application/merge-patch+json")
        assert answer[0] == 200, answer
        going = lambda name: "deletionTimestamp" in b.get(PODS + "/" + name)["metadata"]
        wait_until("the one without a budget goes", lambda: going("open"))
        told = [c for c in b.get(PODS + "/open")["status"]["conditions"] if c["type"] == "DisruptionTarget"]
        assert [c["reason"] for c in told] == ["EvictionByEvictionAPI"], told
        wait_until("the other one was asked for", lambda: "would violate the pod's disruption budget" in s.log())
        assert not going("kept") and not any(c["type"] == "DisruptionTarget" for c in b.get(PODS + "/kept")["status"]["conditions"])
        wait_until("it is said of the one with two budgets", lambda: "more than one PodDisruptionBudget" in s.log())
        b.call("PATCH", "/api/v1/nodes/" + node, {"spec": {"taints": None}}, "application/merge-patch+json")
        wait_until("the notice is taken back", lambda: s.ask("nodes")[0]["state"] == "ready")
        before = refusals(b)
        wait_until("it is asked for again", lambda: refusals(b) > before + 1 or going("kept"))
        assert not going("kept") and not going("double"), "their budgets are asked all the same"
        b.call("DELETE", BUDGETS + "/twice")
        # Of two budgets of one pod the controller counts either, and the one that is left only once something of it changes.
        b.call("PATCH", BUDGETS + "/double", {"metadata": {"annotations": {"counted": "anew"}}}, "application/merge-patch+json")
        b.call("DELETE", BUDGETS + "/kept")
        wait_until("without the budget it goes, too", lambda: going("kept") and going("double"))
        for name in ("open", "kept", "double"):
            b.call("PATCH", PODS + "/" + name, {"metadata": {"finalizers": None}}, "application/merge-patch+json")
        wait_until("both are over", lambda: {j["state"] for j in jobs(s)} == {"cancelled"})


def test_a_budget_that_allows_one_gives_one_and_holds_the_others_back():
    with cluster(nodes=1, gpus=4, parts=("kwok", "controller-manager")) as (b, s):
        b.make("/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": "high"}, "value": 1000})
        pod(b, "other", labels={"fairlead.dev/tier": "best-effort"})  # has run longest: the last to go, but for budgets
        wait_until("it runs", lambda: phase(b, "other") == "Running")
        status = budget(b, "web", {"app": "web"}, maxUnavailable=1)
        made = template("web")
        made["metadata"]["labels"]["fairlead.dev/tier"] = "best-effort"
        b.make(APPS + "deployments", {"metadata": {"name": "web"}, "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "template": made}})
        wait_until("the budget allows one", lambda: (status().get("currentHealthy"), status().get("disruptionsAllowed")) == (3, 1))
        wait_until("Fairlead knows", lambda: shields(s) == 2)
        pod(b, "first", priorityClassName="high")
        wait_until("it runs", lambda: phase(b, "first") == "Running")
        assert len(running(b, "web")) == 2 and phase(b, "other") == "Running"
        wait_until("the budget allows none", lambda: status().get("disruptionsAllowed") == 0)
        # After a restart the same is known.
        s.kill()
        s.up()
        pod(b, "second", priorityClassName="high")
        wait_until("it runs", lambda: phase(b, "second") == "Running")
        assert len(running(b, "web")) == 2
        wait_until("it went that no budget names", lambda: b.call("GET", PODS + "/other")[0] == 404)
        b.call("DELETE", BUDGETS + "/web")
        wait_until("without the budget nobody is shielded", lambda: shields(s) == 0)
