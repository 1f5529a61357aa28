# SPDX-License-Identifier: Apache-2.0
"""Devices that drivers publish, and others have: pods of another scheduler (the stock one), claims that somebody wrote by hand, parts of GPUs. Each GPU
says who has it, and a pod of another scheduler beside work of Fairlead's is two authorities."""

from bed import wait_until
from cluster import PODS, cluster
from test_authority import conflict, label
from test_dra import API, CLAIMS, DRIVER, claim, devices_of_pod, dra_cluster, pod, request, template
from test_dra_kinds import mig_cluster
from test_pods import phase


def taken(s, node=0):
    return {t["index"]: t["by"] for t in s.ask("nodes")[node]["taken"]}


def allocate(b, name, device, **more):
    """By hand, as another scheduler does."""
    c = b.get(CLAIMS + "/" + name)
    c["status"] = {"allocation": {"devices": {"results": [{"request": "gpus", "driver": DRIVER, "pool": "n0", "device": device}]}}, **more}
    status, answer = b.call("PUT", CLAIMS + "/" + name + "/status", c)
    assert status == 200, answer


def test_pods_of_another_scheduler_are_named_with_each_gpu_and_two_on_one_node_is_an_error():
    with dra_cluster(nodes=1, parts=("kwok", "controller-manager", "scheduler")) as (b, s):
        template(b, "gpus", request(3, selector='device.attributes["gpu.nvidia.com"].index in [0, 3, 5]'))
        pod(b, "other", scheduler="default-scheduler")
        wait_until("the stock scheduler placed it", lambda: phase(b, "other") == "Running")
        said = {i: "pod default/other (default-scheduler): gpu-%d" % i for i in (0, 3, 5)}
        wait_until("each GPU names it", lambda: taken(s) == said)
        shown = s.run("nodes").out.replace("_", " ")
        assert "GPU 3 taken: pod default/other (default-scheduler): gpu-3" in shown, shown
        wide = s.submit("-g", "6", "--", "true")
        why = " ".join(s.run("explain", str(wide), "-v").out.split())
        assert "3 GPUs are taken by what Fairlead did not place" in why and said[0] in why, why
        assert not conflict(s)
        beside = s.submit("-g", "1", "--", "sleep")
        s.wait_for(beside, "running")
        wait_until("there are two", lambda: conflict(s))
        assert "node n0 has two placement authorities: fairlead and default-scheduler, which placed pod default/other" in conflict(s)
        s.kill()
        s.up()
        wait_until("the next daemon says the same", lambda: taken(s) == said and conflict(s))
        b.call("DELETE", PODS + "/other")
        wait_until("there is one", lambda: not conflict(s) and not taken(s))
        s.wait_for(wide, "succeeded")


def test_fairleads_work_by_claims_where_another_is_declared_is_an_error():
    with dra_cluster(nodes=1) as (b, s):
        job = s.submit("-g", "1", "--", "sleep")
        s.wait_for(job, "running")
        assert not conflict(s) and not taken(s)
        label(b, "n0", authority="volcano")
        wait_until("its work is seen", lambda: conflict(s))
        assert "fairlead, whose work still runs on node n0" in conflict(s)
        s.run("cancel", str(job))
        wait_until("it is gone", lambda: not conflict(s))


def test_claims_without_pods_taints_and_devices_that_went_are_told_apart():
    with dra_cluster(nodes=1, gpus=4) as (b, s):
        for name in ("nobodys", "anothers"):
            claim(b, name, request(1))
        allocate(b, "nobodys", "gpu-0")
        allocate(b, "anothers", "gpu-1", reservedFor=[{"apiGroup": "example.com", "resource": "builders", "name": "bob", "uid": "u1"}])
        said = {0: "claim default/nobodys of no pod: gpu-0", 1: "builders default/bob: gpu-1"}
        wait_until("both claims are named", lambda: taken(s) == said)
        path = API + "/resourceslices/n0-" + DRIVER
        published = b.get(path)
        published["spec"]["pool"]["generation"] = 2
        published["spec"]["devices"][2]["taints"] = [{"key": "example.com/ecc", "effect": "NoSchedule"}]
        del published["spec"]["devices"][3]
        assert b.call("PUT", path, published)[0] == 200
        said.update({2: "its driver, by the taint example.com/ecc", 3: "its driver, which publishes it no more"})
        wait_until("and the driver's word", lambda: taken(s) == said)
        # What has it now is another claim: said anew.
        b.call("DELETE", CLAIMS + "/nobodys")
        wait_until("it is back", lambda: 0 not in taken(s))
        claim(b, "second", request(1))
        allocate(b, "second", "gpu-1")
        wait_until("both are named", lambda: taken(s)[1] in ("builders default/bob: gpu-1, claim default/second of no pod: gpu-1",
                                                             "claim default/second of no pod: gpu-1, builders default/bob: gpu-1"))


def test_parts_name_the_gpu_that_they_are_of():
    with cluster(nodes=1, gpus=0, parts=("kwok", "controller-manager", "scheduler")) as (b, s):
        mig_cluster(b, s, 1, 2)
        pod(b, "other", scheduler="default-scheduler", claims=[{"name": "gpus", "resourceClaimTemplateName": "large"}])
        wait_until("it has a part", lambda: phase(b, "other") == "Running")
        ((_, part),) = devices_of_pod(b, "other")
        index = int(part.split("-")[1])
        wait_until("its GPU names it", lambda: taken(s) == {index: "pod default/other (default-scheduler): " + part})
        pod(b, "own", claims=[{"name": "gpus", "resourceClaimTemplateName": "small"}])
        wait_until("one of Fairlead's has another part", lambda: phase(b, "own") == "Running")
        ((_, own),) = devices_of_pod(b, "own")
        assert own.startswith("gpu-%d-" % index), own
        wait_until("the GPU names both", lambda: sorted(taken(s).get(index, "").split(", ")) == [
            "pod default/other (default-scheduler): " + part, "pod default/own (fairlead): " + own])
        wait_until("and they are two", lambda: conflict(s))
