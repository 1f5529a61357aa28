# SPDX-License-Identifier: Apache-2.0
"""PodDisruptionBudgets: whose pods are stopped for others last."""

from bed import wait_until
from cluster import cluster
from test_pods import jobs, phase, pod

BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"


def budget(b, name, labels, **rule):
    b.make(BUDGETS, {"metadata": {"name": name}, "spec": {"selector": {"matchLabels": labels}, **rule}})
    return lambda: b.get(BUDGETS + "/" + name)["status"]


def best_effort(b, name, app):
    pod(b, name, gpus=8, labels={"fairlead.dev/tier": "best-effort", "app": app}, terminationGracePeriodSeconds=7)
    wait_until(name + " runs", lambda: phase(b, name) == "Running")


def test_who_has_a_budget_is_stopped_last_but_is_stopped():
    with cluster(nodes=2, parts=("kwok", "controller-manager")) as (b, s):
        b.make("/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": "high"}, "value": 1000})
        status = budget(b, "kept", {"app": "kept"}, minAvailable=1)
        best_effort(b, "open", "other")
        best_effort(b, "kept", "kept")  # came later, so it would go first
        wait_until("the budget allows nothing", lambda: status().get("currentHealthy") == 1 and status()["disruptionsAllowed"] == 0)
        wait_until("Fairlead knows", lambda: "attempt-shielded" in s.run("journal", "show").out)
        pod(b, "first", gpus=8, priorityClassName="high")
        wait_until("it runs", lambda: phase(b, "first") == "Running")
        assert phase(b, "kept") == "Running" and {j["name"]: j["state"] for j in jobs(s)}["open"] == "cancelled"
        pod(b, "second", gpus=8, priorityClassName="high")
        wait_until("it runs too, for nothing else serves", lambda: phase(b, "second") == "Running")
        wait_until("whose budget was broken is over", lambda: {j["name"]: j["state"] for j in jobs(s)}["kept"] == "cancelled")
