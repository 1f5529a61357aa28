# SPDX-License-Identifier: Apache-2.0
"""Devices that drivers publish (DRA), on a real API server with its controller manager. The test plays the driver."""

import contextlib
import signal
import threading
import time

from bed import wait_until
from cluster import PODS, cluster
from test_pods import condition, jobs, node, phase

API = "/apis/resource.k8s.io/v1"
CLAIMS = API + "/namespaces/default/resourceclaims"
DRIVER = "gpu.nvidia.com"


def gpu(i, **attributes):
    return {"name": "gpu-%d" % i, "attributes": {"type": {"string": "gpu"}, "uuid": {"string": "GPU-%d" % i}, "index": {"int": i},
                                                 "productName": {"string": "NVIDIA H100 80GB HBM3"},
                                                 "resource.kubernetes.io/pcieRoot": {"string": "pci%d" % (i // 2)}, **attributes},
            "capacity": {"memory": {"value": "80Gi"}}}


def publish(b, name, devices, driver=DRIVER, generation=1, count=1, slice_name=None, **more):
    return b.make(API + "/resourceslices", {"metadata": {"name": slice_name or "%s-%s" % (name, driver)}, "spec": {
        "driver": driver, "nodeName": name, "pool": {"name": name, "generation": generation, "resourceSliceCount": count}, "devices": devices, **more}})


def device_class(b, name=DRIVER, text=None, **spec):
    b.make(API + "/deviceclasses", {"metadata": {"name": name}, "spec": {
        "selectors": [{"cel": {"expression": text or 'device.driver == "gpu.nvidia.com" && device.attributes["gpu.nvidia.com"].type == "gpu"'}}], **spec}})


def request(count=1, name="gpus", cls=DRIVER, selector=None, **more):
    exactly = {"deviceClassName": cls, "allocationMode": "ExactCount", "count": count, **more}
    if selector:
        exactly["selectors"] = [{"cel": {"expression": selector}}]
    return {"name": name, "exactly": exactly}


def template(b, name, *requests, **devices):
    b.make(API + "/namespaces/default/resourceclaimtemplates", {"metadata": {"name": name},
                                                                "spec": {"spec": {"devices": {"requests": list(requests), **devices}}}})


def claim(b, name, *requests, **devices):
    b.make(CLAIMS, {"metadata": {"name": name}, "spec": {"devices": {"requests": list(requests), **devices}}})


def pod(b, name, command="sleep", claims=({"name": "gpus", "resourceClaimTemplateName": "gpus"},), labels=None, scheduler="fairlead", **spec):
    b.make(PODS, {"metadata": {"name": name, "labels": labels or {}},
                  "spec": {"schedulerName": scheduler, "restartPolicy": "Never", "automountServiceAccountToken": False, **spec,
                           "resourceClaims": list(claims),
                           "containers": [{"name": "main", "image": "none", "command": [command],
                                           "resources": {"claims": [{"name": c["name"]} for c in claims]}}]}})


def all_claims(b):
    return b.get(CLAIMS)["items"]


def devices_of(c):
    return [(r["pool"], r["device"]) for r in c.get("status", {}).get("allocation", {}).get("devices", {}).get("results", [])]


def claims_of(b, pod_name):
    return [c for c in all_claims(b) if any(r["name"] == pod_name for r in c.get("status", {}).get("reservedFor", []))]


def devices_of_pod(b, name):
    return sorted(d for c in claims_of(b, name) for d in devices_of(c))


def nobody_shares(b):
    given = [d for c in all_claims(b) for d in devices_of(c)]
    assert len(given) == len(set(given)), given


@contextlib.contextmanager
def dra_cluster(nodes=2, gpus=8, parts=("kwok", "controller-manager"), **more):
    with cluster(nodes=nodes, gpus=0, parts=parts, **more) as (b, s):
        device_class(b)
        for i in range(nodes):
            publish(b, "n%d" % i, [gpu(g) for g in range(gpus)])
        wait_until("the nodes have GPUs", lambda: sum(n["gpus"]["total"] for n in s.ask("nodes")) == nodes * gpus)
        yield b, s


def test_a_pod_with_a_claim_from_a_template_gets_the_devices_that_were_chosen():
    with dra_cluster() as (b, s):
        template(b, "gpus", request(2))
        pod(b, "one", command="sleep")
        wait_until("it runs", lambda: phase(b, "one") == "Running")
        (c,) = claims_of(b, "one")
        given = devices_of(c)
        assert len(given) == 2 and {p for p, _ in given} == {node(b, "one")}, c
        assert c["status"]["allocation"]["nodeSelector"]["nodeSelectorTerms"][0]["matchFields"][0]["values"] == [node(b, "one")]
        assert "resource.kubernetes.io/delete-protection" in c["metadata"]["finalizers"]
        wait_until("its job runs", lambda: jobs(s)[0]["state"] == "running")
        b.call("DELETE", PODS + "/one")
        wait_until("what it had is given back", lambda: not all_claims(b))


def test_devices_may_be_published_before_their_node_is_there():
    with cluster(nodes=1, gpus=0) as (b, s):
        device_class(b)
        publish(b, "late", [gpu(g) for g in range(4)])
        publish(b, "n0", [gpu(g) for g in range(2)])
        wait_until("those that came last are known", lambda: [n["gpus"]["total"] for n in s.ask("nodes")] == [2])
        b.node("late", gpus=0)
        wait_until("so are the others", lambda: sorted(n["gpus"]["total"] for n in s.ask("nodes")) == [2, 4])
        b.call("DELETE", "/api/v1/nodes/late")
        wait_until("it is gone", lambda: [n["gpus"]["total"] for n in s.ask("nodes") if n["state"] == "ready"] == [2])
        b.node("late", gpus=0)
        wait_until("and comes back with them", lambda: sorted(n["gpus"]["total"] for n in s.ask("nodes") if n["state"] == "ready") == [2, 4])


def test_a_job_of_fairlead_gets_a_claim_of_its_own():
    with dra_cluster(nodes=1) as (b, s):
        first = s.submit("-g", "8", "--", "sleep", "1000")
        s.wait_for(first, "running")
        name = s.pod(first, 0)
        assert devices_of_pod(b, name) == [("n0", "gpu-%d" % i) for i in range(8)]
        assert "limits" not in b.get(PODS + "/" + name)["spec"]["containers"][0]["resources"]
        second = s.submit("-g", "8", "--", "true")
        s.run("cancel", str(first))
        s.wait_for(second, "succeeded")  # as soon as the controller manager has given back what the first had
        nobody_shares(b)


def test_a_gang_with_claims_starts_whole_and_what_does_not_fit_waits():
    with dra_cluster() as (b, s):
        template(b, "gpus", request(4))
        for i in range(4):
            pod(b, "wide-%d" % i, labels={"fairlead.dev/gang": "wide", "fairlead.dev/gang-size": "4"})
        wait_until("all run", lambda: all(phase(b, "wide-%d" % i) == "Running" for i in range(4)))
        nobody_shares(b)
        pod(b, "more")
        wait_until("it waits", lambda: condition(b, "more").get("reason") == "Unschedulable")
        b.call("DELETE", PODS + "/wide-0")
        wait_until("what comes free is its own", lambda: phase(b, "more") == "Running")
        nobody_shares(b)


def test_devices_of_others_are_not_given_again():
    with dra_cluster(nodes=1, parts=("kwok", "controller-manager", "scheduler")) as (b, s):
        template(b, "gpus", request(3, selector='device.attributes["gpu.nvidia.com"].index in [0, 3, 5]'))
        pod(b, "other", scheduler="default-scheduler")
        wait_until("the stock scheduler placed it", lambda: phase(b, "other") == "Running")
        assert devices_of_pod(b, "other") == [("n0", "gpu-%d" % i) for i in (0, 3, 5)]
        job = s.submit("-g", "5", "--", "sleep", "1000")
        s.wait_for(job, "running")
        assert devices_of_pod(b, s.pod(job, 0)) == [("n0", "gpu-%d" % i) for i in (1, 2, 4, 6, 7)]
        template(b, "one", request(1))
        pod(b, "late", claims=[{"name": "gpus", "resourceClaimTemplateName": "one"}])
        wait_until("no more is there", lambda: condition(b, "late").get("reason") == "Unschedulable")
        b.call("DELETE", PODS + "/other")
        wait_until("then it runs", lambda: phase(b, "late") == "Running")
        assert set(devices_of_pod(b, "late")) < {("n0", "gpu-%d" % i) for i in (0, 3, 5)}
        nobody_shares(b)


def test_what_is_not_honoured_is_said_by_name():
    with dra_cluster(nodes=1) as (b, s):
        template(b, "many", request(9))
        template(b, "admin", request(1, selector="1.5 < 2.0"))
        template(b, "root", request(3), constraints=[{"matchAttribute": "resource.kubernetes.io/pcieRoot"}])
        for name, words in (("many", "no node has the devices"), ("admin", "1.5 < 2.0"), ("root", "no node has the devices")):
            pod(b, name, claims=[{"name": "gpus", "resourceClaimTemplateName": name}])
            wait_until("%s is refused, and why" % name, lambda: words in condition(b, name).get("message", ""))
        pod(b, "nobody", claims=[{"name": "gpus", "resourceClaimName": "absent"}])
        wait_until("a claim is awaited", lambda: "absent is not there yet" in condition(b, "nobody").get("message", ""))
        claim(b, "absent", request(1))
        wait_until("and taken when it comes", lambda: phase(b, "nobody") == "Running")
        assert devices_of_pod(b, "nobody")
        wait_until("its job runs", lambda: jobs(s)[0]["state"] == "running")


def test_configurations_of_class_and_claim_are_handed_over():
    with dra_cluster(nodes=1) as (b, s):
        device_class(b, "fast", config=[{"opaque": {"driver": DRIVER, "parameters": {"kind": "of-class"}}}])
        template(b, "gpus", request(1, name="a", cls="fast"), request(1, name="b"),
                 config=[{"requests": ["b"], "opaque": {"driver": DRIVER, "parameters": {"kind": "of-claim"}}}])
        pod(b, "one")
        wait_until("it runs", lambda: phase(b, "one") == "Running")
        (c,) = claims_of(b, "one")
        got = [(x["source"], x["requests"], x["opaque"]["parameters"]["kind"]) for x in c["status"]["allocation"]["devices"]["config"]]
        assert got == [("FromClass", ["a"], "of-class"), ("FromClaim", ["b"], "of-claim")], got


def test_a_gpu_that_goes_or_is_tainted_takes_no_new_work():
    with dra_cluster(nodes=1, gpus=2) as (b, s):
        path = API + "/resourceslices/n0-" + DRIVER
        published = b.get(path)
        published["spec"]["pool"]["generation"] = 2
        published["spec"]["devices"][0]["taints"] = [{"key": "ecc", "effect": "NoSchedule"}]
        assert b.call("PUT", path, published)[0] == 200
        wait_until("one is set aside", lambda: s.ask("nodes")[0]["gpus"]["free"] == 1)
        job = s.submit("-g", "1", "--", "sleep", "1000")
        s.wait_for(job, "running")
        assert devices_of_pod(b, s.pod(job, 0)) == [("n0", "gpu-1")]


def left_over(b, name):
    """As a daemon leaves it that was killed between allocation and binding."""
    (c,) = [c for c in all_claims(b) if c["metadata"]["ownerReferences"][0]["name"] == name]
    path = CLAIMS + "/" + c["metadata"]["name"]
    c["metadata"]["finalizers"] = ["resource.kubernetes.io/delete-protection"]
    status, c = b.call("PUT", path, c)
    assert status == 200, c
    c["status"] = {"allocation": {"devices": {"results": [{"request": "gpus", "driver": DRIVER, "pool": "n1", "device": "gpu-7"}]},
                                  "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}]}},
                   "reservedFor": [{"resource": "pods", "name": name, "uid": b.get(PODS + "/" + name)["metadata"]["uid"]}]}
    status, c = b.call("PUT", path + "/status", c)
    assert status == 200, c


def test_a_daemon_that_is_killed_leaves_nothing_allocated_in_vain():
    with dra_cluster() as (b, s):
        template(b, "gpus", request(1))
        s.kill()
        pod(b, "one")
        wait_until("its claim is there", lambda: len(all_claims(b)) == 1)
        left_over(b, "one")
        s.up()
        wait_until("it runs, with what is its own", lambda: phase(b, "one") == "Running")
        ((where, _),) = devices_of_pod(b, "one")
        assert where == node(b, "one")


def test_a_daemon_that_is_killed_at_any_moment_binds_each_pod_with_its_devices():
    with dra_cluster(nodes=2) as (b, s):
        template(b, "gpus", request(1))
        for i in range(16):
            pod(b, "p%d" % i)
        for i in range(4):
            time.sleep(0.15 * i)
            s.process.send_signal(signal.SIGKILL)
            s.process.wait()
            s.process.stdout.close()
            s.up()
        wait_until("all run", lambda: all(phase(b, "p%d" % i) == "Running" for i in range(16)))
        nobody_shares(b)
        for i in range(16):
            ((where, _),) = devices_of_pod(b, "p%d" % i)
            assert where == node(b, "p%d" % i)


def test_beside_nodes_with_a_device_plugin_each_pod_goes_where_its_gpus_are_had():
    with cluster(nodes=1, gpus=8, parts=("kwok", "controller-manager")) as (b, s):
        device_class(b)
        b.node("n1", gpus=0)
        publish(b, "n1", [gpu(g) for g in range(8)])
        wait_until("both have GPUs", lambda: [n["gpus"]["total"] for n in s.ask("nodes")] == [8, 8])
        template(b, "gpus", request(4))
        for i in range(2):
            pod(b, "claims-%d" % i)
            b.make(PODS, {"metadata": {"name": "plugin-%d" % i}, "spec": {
                "schedulerName": "fairlead", "restartPolicy": "Never", "automountServiceAccountToken": False,
                "containers": [{"name": "main", "image": "none", "command": ["sleep"], "resources": {"limits": {"nvidia.com/gpu": "4"}}}]}})
        names = ["claims-0", "claims-1", "plugin-0", "plugin-1"]
        wait_until("all run", lambda: all(phase(b, n) == "Running" for n in names))
        assert [node(b, n) for n in names] == ["n1", "n1", "n0", "n0"]
        for n in names:
            b.call("DELETE", PODS + "/" + n)
        own = [s.submit("-g", "8", "--", "sleep", "1000") for _ in range(2)]  # jobs of Fairlead's own take GPUs as they are
        for job in own:
            s.wait_for(job, "running")
        where = {node(b, s.pod(job, 0)): s.pod(job, 0) for job in own}
        assert len(devices_of_pod(b, where["n1"])) == 8 and not devices_of_pod(b, where["n0"])


def test_where_devices_are_chosen_anew_after_the_release_the_place_is_checked_again():
    with dra_cluster(through=True) as (b, s):
        volumes, volume_claims = "/api/v1/persistentvolumes", "/api/v1/namespaces/default/persistentvolumeclaims"
        b.make("/apis/storage.k8s.io/v1/storageclasses", {"metadata": {"name": "late"}, "provisioner": "p.example.com", "volumeBindingMode": "WaitForFirstConsumer"})
        b.make(volume_claims, {"metadata": {"name": "data"}, "spec": {"storageClassName": "late", "accessModes": ["ReadWriteOnce"],
                                                                      "resources": {"requests": {"storage": "1Gi"}}}})
        template(b, "gpus", request(1))
        pod(b, "one", volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}])
        chosen = lambda: b.get(volume_claims + "/data")["metadata"].get("annotations", {}).get("volume.kubernetes.io/selected-node")
        wait_until("it is released, and waits for its volume", chosen)
        first = chosen()
        # Its devices are taken away, so that they are wanted anew; and while that is asked for, its node is closed to it.
        held, go = threading.Event(), threading.Event()

        def hold(method, path, body):
            if method == "PATCH" and "/resourceclaims/" in path and path.endswith("/status"):
                held.set()
                go.wait(300)
        s.proxy.rules.append(hold)
        (c,) = claims_of(b, "one")
        status, answer = b.call("PATCH", "%s/%s/status" % (CLAIMS, c["metadata"]["name"]), {"status": {"allocation": None, "reservedFor": None}},
                                "application/merge-patch+json")
        assert status == 200, answer
        b.make(volumes, {"metadata": {"name": "data"}, "spec": {
            "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "csi": {"driver": "d.example.com", "volumeHandle": "data"},
            "claimRef": {"namespace": "default", "name": "data"}, "storageClassName": "late"}})
        wait_until("devices are asked for", held.is_set)
        b.call("PATCH", "/api/v1/nodes/" + first, {"spec": {"taints": [{"key": "closed", "value": "", "effect": "NoSchedule"}]}}, "application/merge-patch+json")
        wait_until("the daemon knows of it", lambda: any("closed" in str(n) for n in s.ask("nodes")))
        go.set()
        wait_until("it runs", lambda: phase(b, "one") == "Running")
        assert node(b, "one") != first
        assert [pool for pool, _ in devices_of_pod(b, "one")] == [node(b, "one")]
