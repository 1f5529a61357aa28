# SPDX-License-Identifier: Apache-2.0
"""Words for people (Events, conditions) give way to bindings: a server that has no time for them costs only them."""

import threading

from bed import wait_until
from cluster import PODS, cluster
from proxy import refusal
from test_pods import condition, events, node, pod

LATE_MAX = 16  # KUBE_LATE_MAX


def gang(b, name, size):
    for i in range(size):
        pod(b, "%s%d" % (name, i), gpus=1, labels={"fairlead.dev/gang": name, "fairlead.dev/gang-size": str(size)})


def close(b, name, closed):
    b.call("PATCH", "/api/v1/nodes/" + name, {"spec": {"unschedulable": closed}}, "application/merge-patch+json")


class Traffic:
    """Refuses words as long as `busy` is set, and keeps bindings back until `together` of them are under way."""

    def __init__(self, together):
        self.lock, self.busy, self.go, self.together = threading.Lock(), threading.Event(), threading.Event(), together
        self.refused = self.words = self.words_most = self.bindings = 0

    def __call__(self, method, path, body):
        if method == "POST" and path.endswith("/binding"):
            with self.lock:
                self.bindings += 1
                if self.bindings == self.together:
                    self.go.set()
            self.go.wait(120)
        elif path.endswith("/events") or (method == "PATCH" and path.endswith("/status") and "PodScheduled" in body):
            with self.lock:
                self.words += 1
                self.words_most = max(self.words, self.words_most)
            threading.Event().wait(0.005)  # so that they meet
            with self.lock:
                self.words -= 1
                self.refused += self.busy.is_set()
            if self.busy.is_set():
                return refusal(429, "TooManyRequests")
        return None


def test_words_give_way_to_bindings_and_are_told_when_there_is_time():
    with cluster(nodes=2, through=True) as (b, s):
        traffic = Traffic(together=8)
        traffic.busy.set()
        s.proxy.rules.append(traffic)
        close(b, "n1", True)
        wait_until("n1 is closed", lambda: [n["state"] for n in s.ask("nodes") if n["name"] == "n1"] == ["cordoned"])
        gang(b, "wide", 40)  # never fits
        wait_until("the server has no time for words", lambda: traffic.refused >= 40)
        gang(b, "fits", 8)
        wait_until("its bindings are under way together", traffic.go.is_set)
        wait_until("it is bound", lambda: all(node(b, "fits%d" % i) for i in range(8)))
        gang(b, "later", 8)
        wait_until("it waits", lambda: [j["state"] for j in s.ask("jobs", "-a") if j["name"].startswith("later")] == ["queued"])
        before = traffic.refused
        wait_until("words are tried", lambda: traffic.refused > before)
        close(b, "n1", False)
        wait_until("it is bound as well", lambda: all(node(b, "later%d" % i) for i in range(8)))
        traffic.busy.clear()
        wait_until("all of the wide one are told", lambda: all(condition(b, "wide%d" % i).get("reason") for i in range(40)))
        wait_until("in Events, too", lambda: all(events(b, "wide%d" % i) for i in range(40)))
        assert {condition(b, "later%d" % i)["status"] for i in range(8)} == {"True"}, "nobody is told that he waits once he does not"
        assert 0 < traffic.words_most <= LATE_MAX, traffic.words_most


def test_all_of_a_large_gang_are_told():
    with cluster(nodes=1) as (b, s):
        gang(b, "wide", 300)
        told = lambda: sum(c["type"] == "PodScheduled" and c["reason"] == "Unschedulable" for p in b.get(PODS)["items"] for c in p["status"].get("conditions", []))
        wait_until("all are told", lambda: told() == 300)
        said = b.get("/api/v1/namespaces/default/events")["items"]
        assert len({e["involvedObject"]["name"] for e in said if e["reason"] == "FailedScheduling"}) == 300
