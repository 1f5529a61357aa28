# SPDX-License-Identifier: Apache-2.0
"""A journal's jobs run in one namespace of one cluster: a daemon that would look elsewhere does not start, and one that has only the journal
finds them."""

import os
import shutil
import subprocess

import harness
from bed import wait_until
from cluster import PODS, cluster

KUBE_SYSTEM = "/api/v1/namespaces/kube-system"


def uids(s):
    return {name: pod["metadata"]["uid"] for name, pod in s.pods().items()}


def test_jobs_do_not_run_twice_when_the_daemon_is_started_for_another_place():
    with cluster(nodes=1, through=True) as (b, s):
        job = s.submit("-g", "1", "--", "sleep")
        s.wait_for(job, "running")
        before = uids(s)
        s.kill()
        b.make("/api/v1/namespaces", {"metadata": {"name": "other"}})
        said = s.refuses("--namespace", "other")
        assert 'run in namespace "default"' in said and "--namespace default" in said, said
        said = s.refuses(program=[harness.PROGRAM, "up"])
        assert "serve --engine kubernetes --namespace default" in said, said

        def other_cluster(path, thing):
            if path == KUBE_SYSTEM:
                thing["metadata"]["uid"] = "another"
        s.proxy.changes.append(other_cluster)
        said = s.refuses()
        assert "another Kubernetes cluster" in said and "--context" in said, said
        s.proxy.changes.clear()
        s.proxy.rules.append(lambda method, path, body: (403, {"message": "who are you"}) if path == KUBE_SYSTEM else None)
        said = s.refuses()
        assert "kube-system" in said and "Rights" in said, said
        s.proxy.rules.clear()
        s.up()
        assert uids(s) == before and s.attempt(job) == 1
        s.kill()
        s.up("--namespace", "other", "--moved")
        wait_until("it runs anew in the other namespace",
                   lambda: s.state(job) == "running" and s.attempt(job) != 1 and b.get("/api/v1/namespaces/other/pods")["items"])


def test_a_daemon_that_has_only_the_journal_finds_the_running_pods():
    with cluster(nodes=1) as (b, s):
        job = s.submit("-g", "1", "--", "sleep")
        s.wait_for(job, "running")
        before = uids(s)
        # Labels may be changed by anybody who may change pods; names may not.
        b.call("PATCH", PODS + "/" + s.pod(job, 0), {"metadata": {"labels": {"fairlead.dev/attempt": "7", "fairlead.dev/instance": None}}},
               "application/merge-patch+json")
        s.kill()
        for name in os.listdir(s.data):  # what another machine would not have
            if name not in ("journal", "keys"):
                path = os.path.join(s.data, name)
                shutil.rmtree(path) if os.path.isdir(path) else os.unlink(path)
        s.up()
        assert s.state(job) == "running" and s.attempt(job) == 1 and uids(s) == before
        s.run("cancel", str(job))
        s.wait_for(job, "cancelled")


def test_a_folder_of_this_machine_is_not_taken_to_a_cluster_while_jobs_run():
    with cluster(nodes=1) as (b, s):
        s.stop()
        with harness.Daemon() as d:
            d.wait(d.submit("sleep", "1000"), "running")
            d.kill()
            env = dict(os.environ, FAIRLEAD_DATA=d.data)
            done = subprocess.run(s.command(), stdin=subprocess.DEVNULL, capture_output=True, text=True, env=env, timeout=harness.PATIENCE_S)
            assert done.returncode == 5 and "`fairlead up`" in done.stderr, done
            d.up()
