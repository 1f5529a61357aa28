# SPDX-License-Identifier: Apache-2.0
"""The least driver, CUDA and compute capability that a job asks for, by what a cluster says of its nodes: labels of NVIDIA's GPU feature discovery,
of its older and newer releases, and attributes of devices that a driver publishes."""

import json

from bed import wait_until
from cluster import PODS, cluster
from test_dra import device_class, gpu, publish

OLD = {"nvidia.com/cuda.driver.major": "535", "nvidia.com/cuda.driver.minor": "183", "nvidia.com/cuda.driver.rev": "01",
       "nvidia.com/cuda.runtime.major": "12", "nvidia.com/cuda.runtime.minor": "2", "nvidia.com/gpu.compute.major": "8", "nvidia.com/gpu.compute.minor": "0"}
NEW = {"nvidia.com/cuda.driver-version.major": "570", "nvidia.com/cuda.driver-version.minor": "86", "nvidia.com/cuda.driver-version.revision": "15",
       "nvidia.com/cuda.runtime-version.major": "12", "nvidia.com/cuda.runtime-version.minor": "8",
       "nvidia.com/gpu.compute.major": "9", "nvidia.com/gpu.compute.minor": "0"}


def wants(s, **versions):
    job = "command: sleep 1000\ngpus: 1\n" + "".join('min_%s: "%s"\n' % one for one in versions.items())
    return json.loads(s.run("submit", "-", "-o", "json", stdin=job).out)["id"]


def where(b, s, job):
    s.wait_for(job, "running")
    return b.get(PODS + "/" + s.pod(job, 0))["spec"]["nodeName"]


def test_jobs_run_where_driver_and_gpus_are_new_enough():
    with cluster(nodes=0) as (b, s):
        b.node("a-none", gpus=8)
        b.node("old", gpus=8, **OLD)
        b.node("young", gpus=8, **NEW)
        device_class(b)
        versions = {"driverVersion": "580.65.6", "cudaDriverVersion": "13.0.0", "cudaComputeCapability": "10.0.0"}
        published = [gpu(i, **{k: {"version": v} for k, v in versions.items()}) for i in range(8)]
        publish(b, "published", published)
        b.node("published", gpus=0)
        wait_until("all GPUs are known", lambda: sum(n["gpus"]["total"] for n in s.ask("nodes")) == 32)
        assert where(b, s, wants(s, cuda="12.2", driver="535.183.1")) in ("old", "young", "published")
        for versions, nodes in (({"cuda": "12.4"}, ("young", "published")), ({"capability": "9.0"}, ("young", "published")),
                                ({"capability": "10.0"}, ("published",)), ({"driver": "580.65"}, ("published",)), ({"cuda": "13.0"}, ("published",))):
            assert where(b, s, wants(s, **versions)) in nodes, versions
        never = wants(s, cuda="13.1")
        wait_until("it is said what lacks", lambda: "13.1" in s.run("explain", str(never), "-v").out)
        # The driver of a node is exchanged.
        status, answer = b.call("PATCH", "/api/v1/nodes/old", {"metadata": {"labels": {"nvidia.com/cuda.runtime.major": "13", "nvidia.com/cuda.runtime.minor": "1"}}},
                                kind="application/merge-patch+json")
        assert status == 200, answer
        assert where(b, s, never) == "old"
