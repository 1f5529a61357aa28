# SPDX-License-Identifier: Apache-2.0
"""ResourceClaims that several pods use: they run where its devices are, and the devices are counted once."""

from bed import wait_until
from cluster import PODS
from test_dra import CLAIMS, claim, devices_of, dra_cluster, nobody_shares, pod, request, template
from test_pods import condition, node, phase

SHARED = [{"name": "gpus", "resourceClaimName": "shared"}]


def free(s):
    return sum(n["gpus"]["free"] for n in s.ask("nodes"))


def all_run(b, names):
    wait_until("%s run" % names, lambda: all(phase(b, n) == "Running" for n in names))
    return {node(b, n) for n in names}


def test_pods_that_share_a_claim_run_where_its_devices_are():
    with dra_cluster(nodes=3, gpus=2) as (b, s):
        claim(b, "shared", request(1))
        pods = ["p%d" % i for i in range(4)]
        for name in pods:
            pod(b, name, claims=SHARED)
        (where,) = all_run(b, pods)
        held = b.get(CLAIMS + "/shared")
        assert len(held["status"]["reservedFor"]) == 4 and [p for p, _ in devices_of(held)] == [where]
        wait_until("its GPU is counted once", lambda: free(s) == 5)
        # The one that it was counted for goes: the others have the GPU all the same, and nobody else gets it.
        s.kill()
        s.up()
        for name in pods[:3]:
            b.call("DELETE", PODS + "/" + name)
        wait_until("one is left", lambda: len(b.get(CLAIMS + "/shared")["status"]["reservedFor"]) == 1)
        others = [s.submit("-g", "1", "--", "sleep", "1000") for _ in range(6)]
        for job in others[:5]:
            s.wait_for(job, "running")
        nobody_shares(b)
        assert s.state(others[5]) == "queued"
        pod(b, "late", claims=SHARED)
        assert all_run(b, ["late"]) == {where}
        for name in (pods[3], "late"):
            b.call("DELETE", PODS + "/" + name)
        s.wait_for(others[5], "running")
        nobody_shares(b)


def test_a_gang_that_shares_a_claim_runs_on_one_node():
    with dra_cluster(nodes=2, gpus=4) as (b, s):
        claim(b, "shared", request(3))
        for i in range(3):
            pod(b, "g-%d" % i, claims=SHARED, labels={"fairlead.dev/gang": "g", "fairlead.dev/gang-size": "3"})
        assert len(all_run(b, ["g-0", "g-1", "g-2"])) == 1
        assert len(devices_of(b.get(CLAIMS + "/shared"))) == 3
        wait_until("its GPUs are counted once", lambda: free(s) == 5)


def test_gpus_that_are_shared_and_others_beside_them_are_refused():
    with dra_cluster(nodes=1) as (b, s):
        claim(b, "shared", request(1))
        template(b, "gpus", request(1))
        pod(b, "first", claims=SHARED)
        all_run(b, ["first"])
        pod(b, "both", claims=SHARED + [{"name": "own", "resourceClaimTemplateName": "gpus"}])
        wait_until("it says what to write", lambda: "write one claim with all of them" in condition(b, "both").get("message", ""))
