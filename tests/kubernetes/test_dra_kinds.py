# SPDX-License-Identifier: Apache-2.0
"""Claims for which not just any GPUs will do: kinds of GPUs, network cards beside, MIG devices. The test plays the drivers."""

import signal

from bed import wait_until
from cluster import PODS, cluster
from test_dra import API, CLAIMS, DRIVER, all_claims, claims_of, device_class, devices_of_pod, dra_cluster, gpu, nobody_shares, pod, publish, request, template
from test_pods import condition, node, phase

NIC = "nic.example.com"


def nic(i, root):
    return {"name": "nic-%d" % i, "attributes": {"resource.kubernetes.io/pcieRoot": {"string": "pci%d" % root}}}


def nic_class(b):
    device_class(b, "nic", text='device.driver == "%s"' % NIC)


def running(b, names):
    return [n for n in names if phase(b, n) == "Running"]


def reason(b, name):
    return condition(b, name).get("reason")


def test_claims_that_only_some_nodes_can_have_go_there():
    with dra_cluster(nodes=1) as (b, s):
        b.node("n1", gpus=0)
        publish(b, "n1", [gpu(g, productName={"string": "NVIDIA A100-SXM4-80GB"}) for g in range(8)])
        wait_until("both have GPUs", lambda: [n["gpus"]["total"] for n in s.ask("nodes")] == [8, 8])
        template(b, "gpus", request(3, selector='device.attributes["gpu.nvidia.com"].productName.startsWith("NVIDIA A100")'))
        for i in range(3):
            pod(b, "p%d" % i)
        wait_until("two fit", lambda: len(running(b, ["p0", "p1", "p2"])) == 2)
        (rest,) = [n for n in ("p0", "p1", "p2") if phase(b, n) != "Running"]
        wait_until("the third waits, though the other node is empty", lambda: reason(b, rest) == "Unschedulable")
        first = running(b, ["p0", "p1", "p2"])[0]
        b.call("DELETE", PODS + "/" + first)
        wait_until("it gets what is given back", lambda: phase(b, rest) == "Running")
        assert node(b, rest) == "n1"
        nobody_shares(b)


def test_gpus_of_one_model_among_others_of_the_node():
    with cluster(nodes=1, gpus=0, parts=("kwok", "controller-manager")) as (b, s):
        device_class(b)
        publish(b, "n0", [gpu(g, productName={"string": "NVIDIA L40S" if g % 2 else "NVIDIA H100"}) for g in range(4)])
        wait_until("it has GPUs", lambda: [n["gpus"]["total"] for n in s.ask("nodes")] == [4])
        for name, model in (("odd", "L40S"), ("even", "H100")):
            template(b, name, request(1, selector='device.attributes["gpu.nvidia.com"].productName.endsWith("%s")' % model))
        pods = ["odd-0", "odd-1", "odd-2", "even-0"]
        for name in pods:
            pod(b, name, claims=[{"name": "gpus", "resourceClaimTemplateName": name.split("-")[0]}])
        wait_until("those that fit run", lambda: phase(b, "even-0") == "Running" and len(running(b, pods)) == 3)
        assert {d for n in running(b, pods) for _, d in devices_of_pod(b, n) if n.startswith("odd")} == {"gpu-1", "gpu-3"}
        (rest,) = [n for n in pods if phase(b, n) != "Running"]
        wait_until("the other waits", lambda: reason(b, rest) == "Unschedulable")
        job = s.submit("-g", "1", "--", "sleep", "1000")
        s.wait_for(job, "running")  # any GPU does
        b.call("DELETE", PODS + "/" + running(b, ["odd-0", "odd-1", "odd-2"])[0])
        wait_until("then it runs", lambda: phase(b, rest) == "Running")
        nobody_shares(b)


def beside(b, nodes, gpus=1):
    """Nodes of four GPUs at two PCIe roots, with a network card at each."""
    nic_class(b)
    for n in range(nodes):
        publish(b, "n%d" % n, [nic(i, i) for i in range(2)], driver=NIC)
    template(b, "gpus", request(gpus), request(1, name="nic", cls="nic"), constraints=[{"matchAttribute": "resource.kubernetes.io/pcieRoot"}])


def same_root(b, name):
    given = [d for _, d in devices_of_pod(b, name)]
    return len({int(d[4:]) // 2 if d.startswith("gpu") else int(d[4:]) for d in given}) == 1 and len(given) > 1


def test_a_gpu_with_the_network_card_beside_it():
    with dra_cluster(nodes=2, gpus=4) as (b, s):
        beside(b, 2)
        pods = ["p%d" % i for i in range(5)]
        for name in pods:
            pod(b, name)
        wait_until("as many as there are network cards", lambda: len(running(b, pods)) == 4)
        (rest,) = [n for n in pods if phase(b, n) != "Running"]
        wait_until("the fifth waits for one, with GPUs free", lambda: reason(b, rest) == "Unschedulable" and
                   "a ResourceClaim keeps them from 2 of 2 nodes" in s.run("explain", "default/" + rest, "-v").out)
        assert all(same_root(b, n) for n in running(b, pods))
        assert sum(n["gpus"]["free"] for n in s.ask("nodes")) == 4
        b.call("DELETE", PODS + "/" + running(b, pods)[0])
        wait_until("it runs", lambda: phase(b, rest) == "Running")
        assert same_root(b, rest)
        nobody_shares(b)


def test_a_gang_with_network_cards_starts_whole():
    with dra_cluster(nodes=2, gpus=4) as (b, s):
        beside(b, 2, gpus=2)
        for i in range(4):
            pod(b, "g-%d" % i, labels={"fairlead.dev/gang": "g", "fairlead.dev/gang-size": "4"})
        wait_until("all run", lambda: all(phase(b, "g-%d" % i) == "Running" for i in range(4)))
        assert all(same_root(b, "g-%d" % i) for i in range(4))
        nobody_shares(b)


def partitioned(count):
    """GPUs with seven compute slices and eight of memory, whole or in placements of 1g.10gb and 3g.40gb."""
    devices, sets = [], []

    def uses(i, memory, compute):
        return [{"counterSet": "gpu-%d" % i, "counters": {"compute": {"value": str(compute)}, **{"memory-%d" % m: {"value": "1"} for m in memory}}}]

    for i in range(count):
        sets.append({"name": "gpu-%d" % i, "counters": uses(i, range(8), 7)[0]["counters"]})
        devices.append({**gpu(i), "consumesCounters": uses(i, range(8), 7)})
        for profile, size, compute, starts in (("1g.10gb", 1, 1, range(7)), ("3g.40gb", 4, 3, (0, 4))):
            for start in starts:
                devices.append({"name": "gpu-%d-mig-%s-%d" % (i, profile.replace(".", "-"), start),
                                "attributes": {"type": {"string": "mig"}, "profile": {"string": profile}},
                                "consumesCounters": uses(i, range(start, start + size), compute)})
    return devices, sets


def mig_cluster(b, s, nodes, count):
    device_class(b)
    device_class(b, "mig", text='device.driver == "%s" && device.attributes["%s"].type == "mig"' % (DRIVER, DRIVER))
    for n in range(nodes):
        devices, sets = partitioned(count)
        publish(b, "n%d" % n, devices, count=2, slice_name="n%d-devices" % n)
        b.make(API + "/resourceslices", {"metadata": {"name": "n%d-counters" % n}, "spec": {
            "driver": DRIVER, "nodeName": "n%d" % n, "pool": {"name": "n%d" % n, "generation": 1, "resourceSliceCount": 2}, "sharedCounters": sets}})
    wait_until("they have GPUs", lambda: sum(n["gpus"]["total"] for n in s.ask("nodes")) == nodes * count)
    for name, profile in (("small", "1g.10gb"), ("large", "3g.40gb")):
        template(b, name, request(1, cls="mig", selector='device.attributes["gpu.nvidia.com"].profile == "%s"' % profile))
    template(b, "whole", request(1))


def want(b, kind, number, **more):
    names = ["%s-%d" % (kind, i) for i in range(number)]
    for name in names:
        pod(b, name, claims=[{"name": "gpus", "resourceClaimTemplateName": kind}], **more)
    return names


def no_overlap(b):
    """Each GPU whole to one claim, or in placements that do not overlap."""
    devices, _ = partitioned(2)
    used = {}
    for c in all_claims(b):
        for r in c.get("status", {}).get("allocation", {}).get("devices", {}).get("results", []):
            (device,) = [d for d in devices if d["name"] == r["device"]]
            for counter, value in device["consumesCounters"][0]["counters"].items():
                key = (r["pool"], device["consumesCounters"][0]["counterSet"], counter)
                used[key] = used.get(key, 0) + int(value["value"])
    assert all(v <= (7 if k[2] == "compute" else 1) for k, v in used.items()), used


def test_mig_devices_and_whole_gpus_keep_out_of_each_others_way():
    with cluster(nodes=1, gpus=0, parts=("kwok", "controller-manager")) as (b, s):
        mig_cluster(b, s, 1, 2)
        large = want(b, "large", 1)
        wait_until("a part is given", lambda: len(running(b, large)) == 1)
        wait_until("its GPU is not whole any more", lambda: s.ask("nodes")[0]["gpus"]["free"] == 1)
        job = s.submit("-g", "1", "--", "sleep", "1000")
        s.wait_for(job, "running")
        assert devices_of_pod(b, s.pod(job, 0)) == [("n0", "gpu-1")]
        small = want(b, "small", 5)
        wait_until("what is left of the first is filled", lambda: len(running(b, small)) == 3)
        no_overlap(b)
        rest = [n for n in small if phase(b, n) != "Running"]
        wait_until("the next waits for room, and the other for that one", lambda: sorted(str(reason(b, n)) for n in rest) == ["Queued", "Unschedulable"])
        s.run("cancel", str(job))
        wait_until("the other GPU is cut", lambda: len(running(b, small)) == 5)
        no_overlap(b)
        second = s.submit("-g", "1", "--", "sleep", "1000")
        for name in large + small:
            b.call("DELETE", PODS + "/" + name)
        s.wait_for(second, "running")
        no_overlap(b)


def test_a_daemon_that_is_killed_places_mig_devices_without_overlap():
    with cluster(nodes=3, gpus=0, parts=("kwok", "controller-manager")) as (b, s):
        mig_cluster(b, s, 3, 2)
        pods = want(b, "small", 10) + want(b, "large", 2) + want(b, "whole", 1)
        for i in range(3):
            wait_until("it goes on", lambda: len(running(b, pods)) >= 3 * i)
            s.process.send_signal(signal.SIGKILL)
            s.process.wait()
            s.process.stdout.close()
            s.up()
        wait_until("all run", lambda: len(running(b, pods)) == 13)
        no_overlap(b)
        nobody_shares(b)


def attached(i, **more):
    """A device that is brought to its node when it is given away."""
    return {"name": "nic-%d" % i, "bindsToNode": True, "bindingConditions": ["example.com/attached"], "bindingFailureConditions": ["example.com/failed"], **more}


def say(b, name, condition_type):
    """As the device's driver does, of the only device that the pod's claim has."""
    status = 409
    while status == 409:  # somebody else has changed it meanwhile
        (c,) = claims_of(b, name)
        (result,) = c["status"]["allocation"]["devices"]["results"]
        c["status"]["devices"] = [{k: result[k] for k in ("driver", "pool", "device")}]
        c["status"]["devices"][0]["conditions"] = [{"type": condition_type, "status": "True", "reason": "Said", "message": "says the test",
                                                    "lastTransitionTime": "2026-01-01T00:00:00Z"}]
        status, answer = b.call("PUT", CLAIMS + "/" + c["metadata"]["name"] + "/status", c)
    assert status == 200, answer
    return result["device"]


def test_a_pod_is_bound_when_its_devices_have_been_made_ready():
    with cluster(nodes=1, gpus=0, parts=("kwok", "controller-manager")) as (b, s):
        nic_class(b)
        publish(b, "n0", [attached(i) for i in range(3)], driver=NIC)
        template(b, "nic", request(1, name="nic", cls="nic"))
        want_nic = [{"name": "nic", "resourceClaimTemplateName": "nic"}]
        pod(b, "one", claims=want_nic)
        wait_until("it has a device", lambda: claims_of(b, "one"))
        (c,) = claims_of(b, "one")
        assert c["status"]["allocation"]["devices"]["results"][0]["bindingConditions"] == ["example.com/attached"], c
        assert c["status"]["allocation"]["nodeSelector"], c
        s.kill()
        s.up()
        wait_until("the next daemon knows it", lambda: s.ask("jobs", "--all"))
        assert not node(b, "one"), "it is not bound before"
        pod(b, "other", claims=want_nic)
        wait_until("the next of its kind does not wait for it", lambda: claims_of(b, "other"))
        say(b, "other", "example.com/attached")
        wait_until("it runs before", lambda: phase(b, "other") == "Running" and not node(b, "one"))
        say(b, "one", "example.com/failed")
        wait_until("it is given back, and one is given anew", lambda: [bool(c["status"].get("devices")) for c in claims_of(b, "one")] == [False])
        assert not node(b, "one")
        assert any("says the test" in str(a) for a in s.ask("job", "1")["attempts"]), s.ask("job", "1")
        say(b, "one", "example.com/attached")
        wait_until("it runs", lambda: phase(b, "one") == "Running")
        nobody_shares(b)
