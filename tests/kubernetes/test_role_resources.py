# SPDX-License-Identifier: Apache-2.0
"""Resources of roles (docs/decisions/0021): each role where its own are, and several on one node only where it has enough for all of them."""

import json

from bed import wait_until
from cluster import cluster
from test_pod_extras import claim, submit, volume

NAMES = {"hca": "rdma/hca", "fpga": "example.com/fpga", "shared": "nvidia.com/gpu.shared"}
HCA = NAMES["hca"]


def give(b, node, **resources):
    room = {NAMES[name]: str(count) for name, count in resources.items()}
    code, answer = b.call("PATCH", "/api/v1/nodes/%s/status" % node, {"status": {"capacity": room, "allocatable": room}},
                          "application/strategic-merge-patch+json")
    assert code == 200, answer


def job_file(*roles, command="[sleep]", **fields):
    lines = ["command: %s" % command, *("%s: %s" % f for f in fields.items()), "roles:", *("  - {%s}" % role for role in roles)]
    return "\n".join(lines) + "\n"


def nodes_of(s, job, ranks):
    pods = s.pods()
    return [pods[s.pod(job, rank)]["spec"].get("nodeName") for rank in ranks]


def explained(s, job, *texts):
    wait_until("it says %s" % (texts,), lambda: all(t in " ".join(s.run("explain", str(job), "-v").out.split()) for t in texts))


def dry(s, text, check=True):
    """{}: it was asked too often."""
    done = s.run("submit", "--dry-run", "-", "-o", "json", stdin=text, check=check)
    return json.loads(done.out) if done.code == 0 else {}


GANG = job_file("name: driver, gpus: 0", "name: worker, tasks: 2, gpus: 1, resources: {rdma/hca: 2}")


def test_workers_lie_where_their_network_cards_are_and_the_driver_needs_none():
    with cluster(nodes=3) as (b, s):
        give(b, "n1", hca=4)
        wait_until("the dry run knows it", lambda: dry(s, GANG, check=False).get("starts_now"))
        places = [p["node"] for p in dry(s, GANG)["places"]]
        assert places[1:] == ["n1", "n1"], places
        job = submit(s, GANG)
        s.wait_for(job, "running")
        assert nodes_of(s, job, (1, 2)) == ["n1", "n1"]
        driver, worker = (s.pods()[s.pod(job, rank)]["spec"]["containers"][0] for rank in (0, 1))
        assert HCA not in driver["resources"].get("limits", {}) and "IPC_LOCK" not in json.dumps(driver)
        assert worker["resources"]["limits"][HCA] == "2" and worker["securityContext"]["capabilities"]["add"] == ["IPC_LOCK"]
        # What they hold is theirs: the next gang's driver would find a place, its workers don't.
        second = submit(s, GANG)
        explained(s, second, 'role "worker" may run on none of the 3 nodes')
        s.run("cancel", str(job))
        s.wait_for(second, "running")
        assert nodes_of(s, second, (1, 2)) == ["n1", "n1"]
        # Nodes whose GPUs are shared have a taint, which pods that ask for a part tolerate.
        give(b, "n2", shared=1)
        parts = submit(s, job_file("name: a, gpus: 0, resources: {nvidia.com/gpu.shared: 1}", "name: b, gpus: 0"))
        s.wait_for(parts, "running")
        tolerate = ["nvidia.com/gpu" in [t.get("key") for t in s.pods()[s.pod(parts, rank)]["spec"]["tolerations"]] for rank in (0, 1)]
        assert tolerate == [True, False] and nodes_of(s, parts, (0,)) == ["n2"]


def test_a_resource_of_a_role_that_no_node_has_is_named_until_one_has():
    with cluster(nodes=2) as (b, s):
        job = submit(s, GANG)
        explained(s, job, 'role "worker" may run on none of the 2 nodes', 'no node has the resource "rdma/hca"')
        other = dry(s, job_file("name: driver", "name: worker, resources: {example.com/fpga: 1}"))
        assert not other["starts_now"] and 'no node has the resource "example.com/fpga"' in other["why"]["summary"], other
        give(b, "n0", hca=3)
        explained(s, job, 'role "worker" may run on none of the 2 nodes')  # it may come to lie there twice
        give(b, "n0", hca=4)
        s.wait_for(job, "running")
        assert nodes_of(s, job, (1, 2)) == ["n0", "n0"]


def test_what_changes_between_two_jobs_that_ask_for_the_same_is_seen():
    with cluster(nodes=1) as (b, s):
        give(b, "n0", hca=3)
        job = submit(s, GANG)
        explained(s, job, 'role "worker" may run on none of the 1 nodes')
        s.run("cancel", str(job))  # its mask is there for five seconds more, and nobody's
        s.wait_for(job, "cancelled")
        give(b, "n0", hca=4)
        wait_until("the engine has seen it", lambda: dry(s, job_file("name: a, resources: {rdma/hca: 4}"), check=False).get("starts_now"))
        again = submit(s, GANG)
        s.wait_for(again, "running")
        assert nodes_of(s, again, (1, 2)) == ["n0", "n0"]


def test_roles_that_fit_only_on_different_nodes_lie_on_them():
    apart = ("name: a, resources: {rdma/hca: 1}", "name: b, resources: {example.com/fpga: 1}")
    with cluster(nodes=3) as (b, s):
        give(b, "n1", hca=1)
        give(b, "n2", fpga=1)
        job = submit(s, job_file(*apart))
        s.wait_for(job, "running")
        assert nodes_of(s, job, (0, 1)) == ["n1", "n2"]
        s.run("cancel", str(job))
        close = submit(s, job_file(*apart, topology="{require: node}"))
        explained(s, close, "waits")
        assert s.state(close) == "queued"
        give(b, "n2", hca=1, fpga=1)
        s.wait_for(close, "running")
        assert nodes_of(s, close, (0, 1)) == ["n2", "n2"]


def test_two_roles_share_a_node_only_where_it_has_enough_for_both():
    pair = job_file("name: a", "name: b", resources="{rdma/hca: 1}")
    with cluster(nodes=2) as (b, s):
        give(b, "n0", hca=1)
        first = submit(s, pair)
        explained(s, first, "has enough of it for both")
        planned = dry(s, job_file("name: c", "name: d", resources="{rdma/hca: 1}", queue="default"))
        assert not planned["starts_now"], planned
        give(b, "n1", hca=1)
        s.wait_for(first, "running")
        assert sorted(nodes_of(s, first, (0, 1))) == ["n0", "n1"]
        s.run("cancel", str(first))
        give(b, "n1", hca=0)
        second = submit(s, pair)
        explained(s, second, "has enough of it for both")
        give(b, "n0", hca=2)
        s.wait_for(second, "running")
        assert nodes_of(s, second, (0, 1)) == ["n0", "n0"]


def test_what_may_be_asked_for_at_once_is_bounded_by_gpus():
    worker = "name: worker, tasks: 7, gpus: 1, resources: {rdma/hca: 1}"
    with cluster(nodes=1) as (b, s):
        give(b, "n0", hca=8)
        # Nine could be asked for if GPUs did not bound it.
        full = submit(s, job_file(worker.replace("7", "8"), "name: cache, gpus: 0, resources: {rdma/hca: 1}"))
        explained(s, full, "has enough of it for both")
        fits = submit(s, job_file(worker, "name: cache, tasks: 1, gpus: 1, resources: {rdma/hca: 1}"))
        s.wait_for(fits, "running")
        assert nodes_of(s, fits, range(8)) == ["n0"] * 8


def test_the_daemon_is_killed_while_its_roles_wait_and_before_they_are_bound():
    with cluster(nodes=2, parts=("kwok", "controller-manager")) as (b, s):
        # Before any node has what they ask for.
        job = submit(s, GANG)
        pair = submit(s, job_file("name: a", "name: b", "name: c, resources: {}", resources="{example.com/fpga: 1}"))
        explained(s, job, 'no node has the resource "rdma/hca"')
        s.kill()
        give(b, "n1", hca=4, fpga=1)
        s.up()
        s.wait_for(job, "running")
        assert nodes_of(s, job, (1, 2)) == ["n1", "n1"]
        explained(s, pair, "has enough of it for both")
        give(b, "n0", fpga=1)
        s.wait_for(pair, "running")
        assert sorted(nodes_of(s, pair, (0, 1))) == ["n0", "n1"]
        s.run("cancel", str(job))
        s.wait_for(job, "cancelled")
        # Between placing and binding: a claim's volume is still to be made.
        b.make("/apis/storage.k8s.io/v1/storageclasses", {
            "metadata": {"name": "late"}, "provisioner": "p.example.com", "volumeBindingMode": "WaitForFirstConsumer"})
        claim(b, "made", storageClassName="late")
        bound = submit(s, GANG + "volumes: {made: /data}\n")
        selected = "volume.kubernetes.io/selected-node"
        wait_until("the claim bears its node", lambda: b.get("/api/v1/namespaces/default/persistentvolumeclaims/made")
                   ["metadata"].get("annotations", {}).get(selected))
        assert nodes_of(s, bound, (1, 2)) == [None, None]
        s.kill()
        volume(b, "made", "any", storageClassName="late", nodeAffinity=None)
        s.up()
        s.wait_for(bound, "running")
        assert nodes_of(s, bound, (1, 2)) == ["n1", "n1"]
        s.run("cancel", str(bound))
        s.run("cancel", str(pair))

        def open_masks():
            lines = [line for line in s.run("journal", "show").out.splitlines() if " node-mask " in line and '"pods-own-' in line]
            names = {line.split('"name":"')[1].split('"')[0] for line in lines}
            return names - {line.split('"name":"')[1].split('"')[0] for line in lines if '"ended":1' in line}
        wait_until("all masks have ended", lambda: not open_masks())
