# SPDX-License-Identifier: Apache-2.0
"""What the API server refuses, keeps back or says unclearly, and nodes that go: no rank counts as ended without a proof, and nothing hangs."""

import glob
import signal
import time

from bed import wait_until
from cluster import PODS, cluster
from proxy import path_of, refusal

STRATEGIC = "application/strategic-merge-patch+json"


def gone(s):
    return lambda: not any(p["metadata"].get("finalizers") for p in s.pods().values())


def refuse(method, ending, answer, times=None, query=True):
    """A rule: so often, or until it is taken away."""
    left = [times]

    def rule(m, path, body):
        if m != method or not path_of(path).endswith(ending) or left[0] == 0:
            return None
        if left[0]:
            left[0] -= 1
        return answer
    return rule


def test_refusals_that_may_pass_end_nothing():
    with cluster(nodes=1, through=True) as (b, s):
        rules = s.proxy.rules
        # A pod whose making met another count of a quota; a binding that conflicts; a look at the pod that is forbidden meanwhile.
        rules += [refuse("POST", "/pods", refusal(409, "Conflict"), 2), refuse("POST", "/binding", refusal(409, "Conflict"), 3),
                  lambda m, path, body: refusal(403, "Forbidden") if m == "GET" and "/pods/" in path and s.proxy.count("GET " + path_of(path)) < 3
                  else None]
        job = s.submit("-g", "1", "--", "sleep")
        s.wait_for(job, "running")
        assert s.attempt(job) == 1
        assert s.proxy.count("/binding") == 4, [a for a in s.proxy.asked if "watch" not in a]
        rules.clear()
        rules.append(refuse("DELETE", s.pod(job, 0), refusal(403, "Forbidden"), 2))
        s.run("cancel", str(job))
        s.wait_for(job, "cancelled")
        assert s.proxy.count("DELETE " + PODS) >= 3
        # A server that fails for ever keeps nobody from cancelling.
        rules.append(refuse("POST", "/pods", refusal(500, "InternalError")))
        job = s.submit("-g", "1", "--", "sleep")
        wait_until("it is tried", lambda: s.proxy.count("POST " + PODS) > 5)
        s.run("cancel", str(job))
        s.wait_for(job, "cancelled")
        rules.clear()
        s.wait_for(s.submit("-g", "1", "--", "true"), "succeeded")


def test_a_binding_that_goes_on_being_refused_is_not_asked_without_pause():
    with cluster(nodes=1, through=True) as (b, s):
        s.proxy.rules.append(refuse("POST", "/binding", refusal(409, "Conflict")))
        job = s.submit("-g", "1", "--", "true")
        wait_until("it is refused", lambda: s.proxy.count("/binding") >= 3)
        began, before = time.monotonic(), s.proxy.count("/binding")
        time.sleep(3)
        assert s.proxy.count("/binding") - before <= 2 + (time.monotonic() - began) / 1.5
        s.proxy.rules.clear()
        s.wait_for(job, "succeeded")


def test_a_conflict_at_a_deletion_or_at_letting_go_is_asked_again():
    with cluster(nodes=1, through=True) as (b, s):
        job = s.submit("-g", "1", "-e", "WORD=x", "--", "sleep")
        s.wait_for(job, "running")
        name = s.pod(job, 0)
        s.proxy.rules += [refuse(method, ending, refusal(409, "Conflict"), 2) for method, ending in (
            ("DELETE", "/pods/" + name), ("PATCH", "/pods/" + name), ("DELETE", "/secrets/" + name[:-2]))]
        s.run("cancel", str(job))
        s.wait_for(job, "cancelled")
        wait_until("nothing is held", gone(s))
        wait_until("the Secret is gone", lambda: not b.get("/api/v1/namespaces/default/secrets")["items"])
        assert s.proxy.count("DELETE " + PODS + "/" + name) >= 3 and s.proxy.count("PATCH " + PODS + "/" + name) >= 3


def test_gates_hold_a_pod_back_until_they_are_gone():
    with cluster(nodes=1, through=True) as (b, s):
        def gate(method, path, thing):
            if method == "POST" and path_of(path).endswith("/pods"):
                thing["spec"]["schedulingGates"] = [{"name": "example.com/wait"}]
        s.proxy.edits.append(gate)
        job = s.submit("-g", "1", "--", "true")
        wait_until("its pod is there", lambda: len(s.pods()) == 1)
        wait_until("it is placed", lambda: s.state(job) == "starting")
        time.sleep(1)
        assert s.proxy.count("/binding") <= 1
        name = s.pod(job, 0)
        status, answer = b.call("PATCH", PODS + "/" + name, [{"op": "replace", "path": "/spec/schedulingGates", "value": []}],
                                "application/json-patch+json")
        assert status == 200, answer
        s.wait_for(job, "succeeded")
        assert s.attempt(job) == 1


def test_nothing_runs_before_its_secret_is_there_and_no_secret_outlives_its_job():
    with cluster(nodes=1, through=True) as (b, s):
        secrets = "/api/v1/namespaces/default/secrets"
        s.proxy.rules.append(refuse("POST", "/secrets", refusal(503, "ServiceUnavailable")))
        job = s.submit("-g", "1", "-t", "2", "-e", "WORD=x", "--", "sleep")
        wait_until("its pods are there", lambda: len(s.pods()) == 2)
        s.kill()
        s.up()  # finds pods, and knows nothing of the Secret
        wait_until("the Secret is asked for again", lambda: s.proxy.count("POST " + secrets) > 3)
        assert s.proxy.count("/binding") == 0 and s.state(job) == "starting"
        s.proxy.rules.clear()
        s.wait_for(job, "running")
        names = [x["metadata"]["name"] for x in b.get(secrets)["items"]]
        assert names == [s.pod(job, 0)[:-2]], names
        s.run("cancel", str(job))
        s.wait_for(job, "cancelled")
        wait_until("the Secret is gone", lambda: not b.get(secrets)["items"])
        services = "/api/v1/namespaces/default/services"
        wait_until("so is the Service", lambda: not any("fairlead" in x["metadata"]["name"] for x in b.get(services)["items"]))


def test_what_can_not_be_read_is_unknown_and_not_gone():
    with cluster(nodes=2, through=True) as (b, s):
        job = s.submit("-g", "1", "--", "sleep")
        s.wait_for(job, "running")
        pod = s.pods()[s.pod(job, 0)]
        name, node = pod["metadata"]["name"], pod["spec"]["nodeName"]
        s.kill()
        how = {}

        def damage(path, thing):
            for item in thing.get("items", []):
                if "metadata" not in item or "name" not in item["metadata"]:
                    continue
                if "pods" in path and item["metadata"]["name"] == name and how.get("pod"):
                    how["pod"](item)
                if "nodes" in path and item["metadata"]["name"] == node and how.get("node"):
                    how["node"](item)
        s.proxy.changes.append(damage)
        how["pod"] = lambda item: item.update(status=[])
        s.up()
        s.wait_for(job, "unreachable")
        assert s.attempt(job) == 1 and "can't be read" in s.log()
        s.kill()
        how["pod"], how["node"] = None, lambda item: item.update(spec=7)
        s.up()
        s.wait_for(job, "running")
        wait_until("it is said of the node", lambda: "what the API server says of the node can't be read" in s.run("nodes", "-o", "json").out)
        s.kill()
        how["node"] = None
        s.up()
        s.wait_for(job, "running")
        assert s.attempt(job) == 1 and list(s.pods()) == [name]


def test_a_watch_goes_on_after_what_it_can_not_take():
    with cluster(nodes=1, through=True) as (b, s):
        s.kill()
        b.pod("other", gpus=0)
        state = {"fat": True, "no": True}

        def fat(path, thing):
            if path.startswith("/api/v1/pods?") and state["fat"] and "limit=500" in path:
                thing["items"][0]["metadata"]["annotations"] = {"fat": "x" * (65 << 20)}
        s.proxy.changes.append(fat)
        s.proxy.rules.append(lambda m, path, body: refusal(403, "Forbidden") if m == "GET" and "watch=1" in path and state["no"] else None)
        s.up()
        wait_until("smaller pages are asked for", lambda: s.proxy.count("limit=250") > 0)
        wait_until("it is said", lambda: "watch of /api/v1/pods: not now" in s.log())
        state["no"] = False
        s.wait_for(s.submit("-g", "1", "--", "true"), "succeeded")
        wait_until("it is followed again", lambda: "/api/v1/pods is followed again" in s.log())


def test_a_watch_that_goes_silent_is_asked_for_anew():
    with cluster(nodes=1, through=True) as (b, s):
        s.wait_for(s.submit("-g", "1", "--", "true"), "succeeded")
        silent = {asked.split(" ")[1] for asked in s.proxy.asked if "watch=1" in asked}  # those that are open now stay so, and tell nothing
        s.proxy.rules.append(lambda method, path, body: method == "WATCH" and path in silent)
        s.wait_for(s.submit("-g", "1", "--", "true"), "succeeded")
        assert any("watch=1" in asked and "/api/v1/pods" in asked and asked.split(" ")[1] not in silent for asked in s.proxy.asked)


def test_containers_of_others_do_not_keep_a_job_that_has_ended():
    with cluster(nodes=1, through=True) as (b, s):
        def inject(method, path, thing):
            if method == "POST" and path_of(path).endswith("/pods"):
                thing["spec"]["containers"].insert(0, {"name": "proxy", "image": "none", "command": ["serve"]})
        s.proxy.edits.append(inject)
        job = s.submit("-g", "8", "--", "alone")
        s.wait_for(job, "succeeded")
        s.wait_for(s.submit("-g", "8", "--", "alone"), "succeeded")
        wait_until("nothing is held", gone(s))


def pause_kubelet(b):
    """Until none of its threads goes on: one that still ran could end a pod."""
    kwok = dict(b.running)["kwok"]
    kwok.send_signal(signal.SIGSTOP)

    def stands():
        states = []
        for stat in glob.glob("/proc/%d/task/*/stat" % kwok.pid):
            with open(stat) as f:
                states.append(f.read().rsplit(") ", 1)[1][0])
        return set(states) == {"T"}
    wait_until("no kubelet is heard", stands)


def ready(b, node, status):
    code, answer = b.call("PATCH", "/api/v1/nodes/%s/status" % node, {"status": {"conditions": [
        {"type": "Ready", "status": status, "reason": "Test", "message": ""}]}}, STRATEGIC)
    assert code == 200, answer


def test_a_removed_node_is_no_proof_before_its_kubelet_had_time_to_stop_its_pods():
    with cluster(nodes=2, labels={"fairlead.dev/removed-node": "20"}) as (b, s):
        job = s.submit("-g", "8", "--", "sleep")
        s.wait_for(job, "running")
        name = s.pod(job, 0)
        node = s.pods()[name]["spec"]["nodeName"]
        pause_kubelet(b)
        b.call("DELETE", "/api/v1/nodes/" + node)
        s.wait_for(job, "unreachable")
        assert s.attempt(job) == 1
        assert s.pods()[name]["metadata"]["deletionTimestamp"]  # a kubelet that still hears stops it
        wait_until("the time is over", lambda: s.attempt(job) != 1)
        assert "was removed from Kubernetes" in s.run("job", str(job), "--history").out


def test_a_pod_that_has_a_ranks_name_and_is_another_one_goes_though_the_attempt_still_lives():
    with cluster(nodes=1) as (b, s):
        job = s.submit("-g", "1", "-t", "2", "--", "sleep")
        s.wait_for(job, "running")
        name = s.pod(job, 0)
        pause_kubelet(b)  # so that the other rank can't end
        b.call("PATCH", PODS + "/" + name, {"metadata": {"finalizers": None}}, "application/merge-patch+json")
        b.call("DELETE", PODS + "/" + name, {"gracePeriodSeconds": 0})
        b.pod(name, scheduler="fairlead")
        wait_until("that one is taken away", lambda: b.call("GET", PODS + "/" + name)[0] == 404)
        assert s.attempt(job) == 1 and s.state(job) not in ("queued", "failed"), s.run("job", str(job), "--history").out


def test_where_a_removed_node_is_no_proof_a_person_says_so():
    with cluster(nodes=2, labels={"fairlead.dev/removed-node": "wait"}) as (b, s):
        job = s.submit("-g", "8", "--", "sleep")
        s.wait_for(job, "running")
        name = s.pod(job, 0)
        node = s.pods()[name]["spec"]["nodeName"]
        pause_kubelet(b)
        b.call("DELETE", "/api/v1/nodes/" + node)
        s.wait_for(job, "unreachable")
        # What the garbage collection of Kubernetes does then: it knows no more than that the node is gone.
        b.call("PATCH", PODS + "/" + name + "/status", {"status": {"phase": "Failed", "conditions": [
            {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByPodGC", "message": "x"}]}}, STRATEGIC)
        time.sleep(2)
        assert s.state(job) == "unreachable" and s.attempt(job) == 1
        s.run("cancel", str(job))
        time.sleep(1)
        assert s.state(job) == "unreachable"
        b.call("PATCH", PODS + "/" + name, {"metadata": {"annotations": {"fairlead.dev/stopped": "by ann"}}}, STRATEGIC)
        s.wait_for(job, "cancelled")


def test_deletion_by_force_and_out_of_service_are_a_persons_word():
    with cluster(nodes=3) as (b, s):
        job = s.submit("-g", "8", "--", "sleep")
        s.wait_for(job, "running")
        name = s.pod(job, 0)
        node = s.pods()[name]["spec"]["nodeName"]
        pause_kubelet(b)
        ready(b, node, "Unknown")
        s.wait_for(job, "unreachable")
        s.kill()
        s.up()  # what was said before a restart is said again
        s.wait_for(job, "unreachable")
        b.call("PATCH", "/api/v1/nodes/" + node, {"spec": {"taints": [
            {"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute"}]}}, STRATEGIC)
        wait_until("it is placed anew", lambda: s.attempt(job) != 1)
        assert "out of service" in s.run("job", str(job), "--history").out
        second = s.attempt(job)
        wait_until("its pod is bound", lambda: b.get(PODS + "/" + s.pod(job, 0))["spec"].get("nodeName"))
        b.call("DELETE", PODS + "/" + s.pod(job, 0), {"gracePeriodSeconds": 0})
        wait_until("it is placed anew", lambda: s.attempt(job) != second)
        assert "by force" in s.run("job", str(job), "--history").out


def test_an_attempt_that_was_unreachable_is_reachable_again_after_a_restart():
    with cluster(nodes=1) as (b, s):
        job = s.submit("-g", "8", "--", "sleep")
        s.wait_for(job, "running")
        pause_kubelet(b)
        ready(b, "n0", "Unknown")
        s.wait_for(job, "unreachable")
        s.kill()
        ready(b, "n0", "True")
        s.up()
        s.wait_for(job, "running")
        assert s.attempt(job) == 1
        s.kill()
        ready(b, "n0", "Unknown")
        s.up()
        s.wait_for(job, "unreachable")
