# SPDX-License-Identifier: Apache-2.0
"""Pods of a Fairlead whose journal is lost: they are listed, and those that are over are let go, unless somebody leads."""

import datetime
import os
import shutil
import threading

from bed import wait_until
from cluster import PODS, cluster

LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"


class Leader:
    """Renews the Lease of an instance, as its daemon does."""

    def __init__(self, b, instance):
        self.bed, self.path, self.stop = b, "%s/fairlead-%s" % (LEASES, instance[:12]), threading.Event()
        status, answer = b.call("PATCH", self.path, {"spec": {"holderIdentity": "host_1", "leaseDurationSeconds": 8, "renewTime": self.now()}}, "application/merge-patch+json")
        assert status == 200, answer  # the daemon that was there made it
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        while not self.stop.wait(2):
            self.bed.call("PATCH", self.path, {"spec": {"renewTime": self.now()}}, "application/merge-patch+json")

    @staticmethod
    def now():
        return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")

    def end(self):
        self.stop.set()
        self.thread.join()


def orphans(s):
    return {row["pod"]: row["state"] for row in s.ask("orphans", "--kubeconfig", s.kubeconfig)}


def let_go(s, instance):
    return s.run("orphans", "let-go", instance, "--kubeconfig", s.kubeconfig, check=False)


def test_pods_whose_journal_is_lost_are_let_go_when_they_are_over_and_nobody_leads():
    with cluster(nodes=1) as (b, s):
        first, second = (s.submit("-g", "1", "--", "sleep") for _ in range(2))
        for job in (first, second):
            s.wait_for(job, "running")
        one, two = s.pod(first, 0), s.pod(second, 0)
        instance = b.get(PODS + "/" + one)["metadata"]["labels"]["fairlead.dev/instance"]
        # One that leads alone has a Lease, too, by which it is seen.
        wait_until("it has one", lambda: b.call("GET", "%s/fairlead-%s" % (LEASES, instance[:12]))[0] == 200)
        seen = s.run("orphans", "--kubeconfig", s.kubeconfig)
        assert "2 of 2 belong to a daemon that lives" in " ".join(seen.err.split()), seen
        assert {row["leader"] for row in s.ask("orphans", "--kubeconfig", s.kubeconfig)} == {b.get("%s/fairlead-%s" % (LEASES, instance[:12]))["spec"]["holderIdentity"]}
        done = let_go(s, instance)
        assert done.code != 0 and "leads, and lets its pods go" in " ".join(done.err.split()), done
        s.kill()
        shutil.rmtree(s.data)
        os.mkdir(s.data)
        assert orphans(s) == {one: "bound", two: "bound"}
        done = let_go(s, instance)
        assert done.code == 0 and "0 pods let go" in done.err and "2 are not over" in done.err, done
        b.call("DELETE", PODS + "/" + one)
        wait_until("it has ended, and stays", lambda: b.get(PODS + "/" + one)["status"]["phase"] == "Failed")
        assert orphans(s) == {one: "over", two: "bound"}
        assert let_go(s, "0123456789abcdef").code != 0
        leader = Leader(b, instance)
        done = let_go(s, instance)
        assert done.code != 0 and "host_1" in done.err, done
        assert orphans(s) == {one: "over", two: "bound"}
        leader.end()
        done = let_go(s, instance)
        assert done.code == 0 and "1 pods let go" in done.err and "1 are not over" in done.err, done
        wait_until("it is gone", lambda: b.call("GET", PODS + "/" + one)[0] == 404)
        wait_until("nobody leads them", lambda: [row["leader"] for row in s.ask("orphans", "--kubeconfig", s.kubeconfig)] == [""])
        assert orphans(s) == {two: "bound"} and b.get(PODS + "/" + two)["metadata"]["finalizers"]
        assert "fairlead-" + instance[:8] in s.run("orphans", "--kubeconfig", s.kubeconfig).out
