# SPDX-License-Identifier: Apache-2.0
"""Jobs submitted to Fairlead as pods on a real API server."""

import signal

from bed import wait_until
from cluster import PODS, cluster


def test_jobs_run_as_pods_and_their_ends_are_told():
    with cluster(nodes=2) as (b, s):
        good = s.submit("-g", "2", "--cpus", "4", "--memory", "8GiB", "-e", "SECRET_WORD=4711", "--", "true")
        bad = s.submit("-g", "1", "--", "false")
        hungry = s.submit("-g", "1", "--", "oom")
        nowhere = s.submit("-g", "1", "--image", "nowhere/nothing:1", "--", "broken")
        s.wait_for(good, "succeeded")
        for job, text in ((bad, "exited with code 1"), (hungry, "memory"), (nowhere, "ImagePullBackOff")):
            s.wait_for(job, "failed")
            assert text in s.run("job", str(job)).out, text
        pods = s.pods()
        pod = pods[s.pod(good, 0)]
        assert pod["spec"]["containers"][0]["resources"]["limits"] == {"memory": "8Gi", "nvidia.com/gpu": "2"}
        assert "4711" not in str(pod)  # it lies in a Secret
        wait_until("the pods are let go", lambda: not any(p["metadata"].get("finalizers") for p in s.pods().values()))


def test_a_gang_runs_whole_on_several_nodes_and_is_stopped_whole():
    with cluster(nodes=3) as (b, s):
        job = s.submit("-g", "8", "-t", "3", "--", "sleep")
        s.wait_for(job, "running")
        pods = s.pods()
        assert sorted(p["spec"]["nodeName"] for p in pods.values()) == ["n0", "n1", "n2"]
        env = {e["name"]: e.get("value") for e in pods[s.pod(job, 2)]["spec"]["containers"][0]["env"]}
        assert (env["RANK"], env["WORLD_SIZE"], env["MASTER_ADDR"]) == ("2", "3", "rank-0." + s.pod(job, 2)[:-2])
        assert b.get("/api/v1/namespaces/default/services/" + s.pod(job, 2)[:-2])["spec"]["clusterIP"] == "None"
        waits = s.submit("-g", "1", "--", "true")
        assert s.state(waits) == "queued"
        s.run("cancel", str(job))
        s.wait_for(job, "cancelled")
        s.wait_for(waits, "succeeded")


def test_killing_the_daemon_loses_and_repeats_nothing():
    with cluster(nodes=2) as (b, s):
        job = s.submit("-g", "8", "-t", "2", "--", "sleep")
        s.wait_for(job, "running")
        before = {n: p["metadata"]["uid"] for n, p in s.pods().items()}
        s.kill()
        s.up()
        assert s.state(job) == "running"
        other = s.submit("-g", "1", "--", "true")
        assert {n: p["metadata"]["uid"] for n, p in s.pods().items()} == before
        s.kill()
        first = int(sorted(before)[0].split("-")[3])
        for name in before:  # it ends while nobody looks
            b.call("DELETE", PODS + "/" + name)
        s.up()
        wait_until("the job was started anew", lambda: s.attempt(job) != first)
        s.wait_for(job, "running")
        s.run("cancel", str(job))
        s.wait_for(other, "succeeded")
        wait_until("nothing is left", lambda: not any(p["metadata"].get("finalizers") for p in s.pods().values()))


def test_a_pod_deleted_by_hand_costs_the_gang_its_attempt_and_not_the_job():
    with cluster(nodes=2) as (b, s):
        job = s.submit("-g", "4", "-t", "2", "--", "sleep")
        s.wait_for(job, "running")
        first = s.attempt(job)
        b.call("DELETE", PODS + "/" + s.pod(job, 1))
        wait_until("a second attempt runs", lambda: s.attempt(job) != first and s.state(job) == "running")
        assert "deleted in Kubernetes" in s.run("job", str(job), "--history").out


def test_a_node_that_is_removed_takes_its_work_along():
    with cluster(nodes=2) as (b, s):
        job = s.submit("-g", "8", "--", "sleep")
        s.wait_for(job, "running")
        first, node = s.attempt(job), s.pods()[s.pod(job, 0)]["spec"]["nodeName"]
        b.call("DELETE", "/api/v1/nodes/" + node)
        wait_until("it runs anew", lambda: s.attempt(job) != first and s.state(job) == "running")
        assert s.pods()[s.pod(job, 0)]["spec"]["nodeName"] != node


def test_gpus_of_pods_that_others_placed_are_not_given_away():
    with cluster(nodes=1) as (b, s):
        pod = b.pod("other", gpus=6)
        b.make(PODS + "/other/binding", {"metadata": {"name": "other", "uid": pod["metadata"]["uid"]},
                                         "target": {"kind": "Node", "name": "n0"}})
        wait_until("its GPUs are taken", lambda: "taken: pod default/other (default-scheduler)" in s.run("gpus", "-o", "json").out)
        wide = s.submit("-g", "3", "--", "true")
        s.wait_for(s.submit("-g", "2", "--", "true"), "succeeded")
        assert s.state(wide) == "queued"
        b.call("DELETE", PODS + "/other")
        s.wait_for(wide, "succeeded")


def test_cordoned_nodes_take_nothing_new():
    with cluster(nodes=1) as (b, s):
        b.call("PATCH", "/api/v1/nodes/n0", {"spec": {"unschedulable": True}}, "application/merge-patch+json")
        s.wait_for_nodes(0)
        job = s.submit("-g", "1", "--", "true")
        assert s.state(job) == "queued"
        b.call("PATCH", "/api/v1/nodes/n0", {"spec": {"unschedulable": False}}, "application/merge-patch+json")
        s.wait_for(job, "succeeded")


def test_what_pods_can_not_do_is_refused_by_name():
    with cluster(nodes=1) as (b, s):
        for words, text in ((["-g", "0.5"], "parts of GPUs; write a slice"), (["--checkpoint", "signal"], "checkpoint"), (["-t", "1..2"], "resize: restart"),
                            (["--align", "numa"], "align")):
            refused = s.run("run", "-d", *words, "--", "true", check=False)
            assert refused.code == 2 and text in refused.err, refused


def test_a_node_that_is_not_ready_makes_its_jobs_unreachable_and_starts_nothing_anew():
    with cluster(nodes=2) as (b, s):
        job = s.submit("-g", "8", "--", "sleep")
        s.wait_for(job, "running")
        node = s.pods()[s.pod(job, 0)]["spec"]["nodeName"]

        def ready(status):
            code, answer = b.call("PATCH", "/api/v1/nodes/%s/status" % node, {"status": {"conditions": [
                {"type": "Ready", "status": status, "reason": "Test", "message": ""}]}}, "application/strategic-merge-patch+json")
            assert code == 200, answer
        dict(b.running)["kwok"].send_signal(signal.SIGSTOP)  # it would say at once that the node is ready
        ready("Unknown")
        s.wait_for(job, "unreachable")
        s.wait_for_nodes(1)
        assert len(s.pods()) == 1
        ready("True")
        s.wait_for(job, "running")
        assert s.attempt(job) == 1


def test_what_was_asked_while_the_api_server_did_not_answer_is_done_later():
    with cluster(nodes=1) as (b, s):
        server = dict(b.running)["kube-apiserver"]
        server.send_signal(signal.SIGSTOP)
        try:
            job = s.submit("-g", "1", "-t", "4", "--", "true")
            wait_until("it is placed", lambda: s.state(job) == "starting")
        finally:
            server.send_signal(signal.SIGCONT)
        s.wait_for(job, "succeeded")
        assert s.attempt(job) == 1
