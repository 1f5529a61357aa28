# SPDX-License-Identifier: Apache-2.0
"""What pods of own jobs get besides: volumes, resources, accounts, an overlay. On a real API server; kwok plays nodes and pods."""

import json

from bed import wait_until
from cluster import cluster

CLAIMS, VOLUMES = "/api/v1/namespaces/default/persistentvolumeclaims", "/api/v1/persistentvolumes"
ZONE = "topology.kubernetes.io/zone"


def submit(s, text, check=True):
    done = s.run("submit", "-", "-o", "json", stdin=text, check=check)
    return json.loads(done.out)["id"] if check else done


def claim(b, name, **spec):
    b.make(CLAIMS, {"metadata": {"name": name}, "spec": {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}, **spec}})


def volume(b, name, zone, **spec):
    """Of the claim of that name."""
    b.make(VOLUMES, {"metadata": {"name": name}, "spec": {
        "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteMany"], "csi": {"driver": "d.example.com", "volumeHandle": name},
        "claimRef": {"namespace": "default", "name": name}, "nodeAffinity": {"required": {"nodeSelectorTerms": [
            {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}]}}, **spec}})


def zoned(b, s):
    for i in range(4):
        b.node("n%d" % i, **{ZONE: "ab"[i % 2]})
    s.wait_for_nodes(4)


def by_name(items):
    return {i["name"]: i for i in items}


def test_what_a_job_asks_for_is_in_its_pods():
    with cluster(nodes=1, words=("--host-path", "/mnt/models/")) as (b, s):
        b.make("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "reader"}})
        job = submit(s, """
command: ["true"]
gpus: 1
tasks: 2
memory: 8GiB
shm: 3GiB
service_account: reader
pull_secrets: [registry, hub]
volumes:
  scratch: {empty: 10GiB, path: /scratch}
  plain: {empty: true, path: /plain}
  config: {config: settings, path: /settings, read_only: true}
  keys: {secret: ssh-keys, path: /keys}
  models: {host: /mnt/models/llama, path: /models, read_only: true}
  shared: {nfs: "files.example.org:/data", path: /shared}
kubernetes:
  metadata:
    labels: {app: train, version: 1}
    annotations: {example.org/note: "7"}
  spec:
    hostAliases: [{ip: 10.0.0.1, hostnames: [a, b]}]
    securityContext: {fsGroup: 100, runAsUser: 1000}
    volumes: [{name: tokens, projected: {sources: [{downwardAPI: {items: [{path: labels, fieldRef: {fieldPath: metadata.labels}}]}}]}}]
    initContainers: [{name: warm, image: warm:1, command: [warm, up], volumeMounts: [{name: scratch, mountPath: /scratch}]}]
    containers:
    - name: main
      securityContext: {capabilities: {add: [SYS_NICE]}}
      ports: [{containerPort: 8080, name: metrics}]
      volumeMounts: [{name: tokens, mountPath: /tokens}]
""")
        s.wait_for(job, "succeeded")
        pod = s.pods()[s.pod(job, 1)]
        labels, spec = pod["metadata"]["labels"], pod["spec"]
        assert (labels["app"], labels["version"], labels["fairlead.dev/rank"]) == ("train", "1", "1")
        assert pod["metadata"]["annotations"]["example.org/note"] == "7"
        volumes = by_name(spec["volumes"])
        assert volumes["shm"]["emptyDir"] == {"medium": "Memory", "sizeLimit": "3Gi"}
        assert volumes["scratch"]["emptyDir"] == {"sizeLimit": "10Gi"} and volumes["plain"]["emptyDir"] == {}
        assert volumes["config"]["configMap"]["name"] == "settings" and volumes["keys"]["secret"]["secretName"] == "ssh-keys"
        assert volumes["models"]["hostPath"] == {"path": "/mnt/models/llama", "type": "Directory"}
        assert volumes["shared"]["nfs"] == {"server": "files.example.org", "path": "/data"}
        assert volumes["tokens"]["projected"]["sources"][0]["downwardAPI"]["items"][0]["path"] == "labels"
        main, = spec["containers"]
        mounts = {m["mountPath"]: m for m in main["volumeMounts"]}
        assert {"/dev/shm", "/scratch", "/plain", "/settings", "/keys", "/models", "/shared", "/tokens"} <= set(mounts)
        assert mounts["/models"]["readOnly"] and "readOnly" not in mounts["/keys"]
        assert main["ports"][0]["containerPort"] == 8080 and main["securityContext"]["capabilities"]["add"] == ["SYS_NICE"]
        assert main["resources"]["limits"] == {"memory": "8Gi", "nvidia.com/gpu": "1"}
        assert spec["serviceAccountName"] == "reader" and spec["imagePullSecrets"] == [{"name": "registry"}, {"name": "hub"}]
        assert spec["hostAliases"][0]["hostnames"] == ["a", "b"]
        assert (spec["securityContext"]["fsGroup"], spec["securityContext"]["runAsUser"]) == (100, 1000)
        assert spec["initContainers"][0]["command"] == ["warm", "up"]


def test_what_is_fairleads_is_refused_by_name_before_anything_is_made():
    with cluster(nodes=1, words=("--host-path", "/mnt/models")) as (b, s):
        for text, code, words in (("volumes: {x: {host: /etc, path: /x}}", 4, "/etc of nodes is not open to jobs"),
                                  ("volumes: {x: {host: /mnt/models2, path: /x}}", 4, "--host-path"),
                                  ("kubernetes: {spec: {nodeName: n0}}", 2, "spec.nodeName can't be set"),
                                  ("kubernetes: {spec: {volumes: [{name: x, hostPath: {path: /}}]}}", 2, "spec.volumes[].hostPath can't be set")):
            refused = submit(s, 'command: ["true"]\n' + text + '\n', check=False)
            assert refused.code == code and words in refused.err, refused
        assert not s.pods()


def test_a_job_runs_where_the_volume_of_its_claim_is():
    with cluster(nodes=0, parts=("kwok", "controller-manager")) as (b, s):
        zoned(b, s)
        claim(b, "there", storageClassName="", volumeName="there")
        volume(b, "there", "b")
        job = submit(s, "command: [sleep]\ngpus: 8\ntasks: 2\nvolumes: {there: /data}\n")
        s.wait_for(job, "running")
        pods = [s.pods()[s.pod(job, rank)] for rank in range(2)]
        assert sorted(p["spec"]["nodeName"] for p in pods) == ["n1", "n3"]
        assert by_name(pods[0]["spec"]["volumes"])["there"]["persistentVolumeClaim"]["claimName"] == "there"
        # No more nodes of that zone, though there are others: it waits, and says why.
        waits = submit(s, "command: [\"true\"]\ngpus: 1\nvolumes: {data: {claim: there, path: /data}}\n")
        wait_until("it says why", lambda: "2 of the 4 nodes" in s.run("explain", str(waits), "-v").out)
        # As after a restart of the daemon.
        s.kill()
        s.up()
        assert s.state(job) == "running" and s.state(waits) == "queued"
        s.run("cancel", str(job))
        s.wait_for(waits, "succeeded")
        # A claim that comes later than the job.
        late = submit(s, "command: [\"true\"]\ngpus: 1\narray: 3\nvolumes: {late: /data}\n")
        wait_until("it says why", lambda: "is not there" in s.run("explain", str(late), "-v").out)
        claim(b, "late", storageClassName="", volumeName="late")
        volume(b, "late", "a")
        for job in range(late, late + 3):
            s.wait_for(job, "succeeded")
            assert s.pods()[s.pod(job, 0)]["spec"]["nodeName"] in ("n0", "n2")


def test_a_volume_is_made_for_the_node_of_its_job():
    with cluster(nodes=0, parts=("kwok", "controller-manager")) as (b, s):
        zoned(b, s)
        b.make("/apis/storage.k8s.io/v1/storageclasses", {
            "metadata": {"name": "late"}, "provisioner": "p.example.com", "volumeBindingMode": "WaitForFirstConsumer",
            "allowedTopologies": [{"matchLabelExpressions": [{"key": ZONE, "values": ["b"]}]}]})
        claim(b, "made", storageClassName="late")
        job = submit(s, "command: [\"true\"]\ngpus: 1\nvolumes: {made: /data}\n")
        chosen = lambda: b.get(CLAIMS + "/made")["metadata"].get("annotations", {}).get("volume.kubernetes.io/selected-node")
        wait_until("the claim bears its node", chosen)
        assert chosen() in ("n1", "n3")
        assert not s.pods()[s.pod(job, 0)]["spec"].get("nodeName")
        volume(b, "made", "b", storageClassName="late")
        s.wait_for(job, "succeeded")
        assert s.pods()[s.pod(job, 0)]["spec"]["nodeName"] == chosen()


def test_resources_that_fairlead_does_not_count_are_counted_by_node():
    with cluster(nodes=3) as (b, s):
        room = {"rdma/hca": "2"}
        code, answer = b.call("PATCH", "/api/v1/nodes/n1/status", {"status": {"capacity": room, "allocatable": room}},
                              "application/strategic-merge-patch+json")
        assert code == 200, answer
        first = submit(s, "command: [sleep]\ngpus: 1\ntasks: 2\nresources: {rdma/hca: 1}\n")
        s.wait_for(first, "running")
        for rank in range(2):
            pod = s.pods()[s.pod(first, rank)]
            main = pod["spec"]["containers"][0]
            assert pod["spec"]["nodeName"] == "n1" and main["resources"]["limits"]["rdma/hca"] == "1"
            assert main["securityContext"]["capabilities"]["add"] == ["IPC_LOCK"]
        # All of them are taken: GPUs that are free are of no use.
        second = submit(s, "command: [\"true\"]\ngpus: 1\nresources: {rdma/hca: 1}\n")
        wait_until("it says why", lambda: "none of the 3 nodes: a lack of rdma/hca keeps them from 3 of 3 nodes" in s.run("explain", str(second), "-v").out)
        dry = json.loads(s.run("submit", "--dry-run", "-", "-o", "json", stdin="command: sleep\ngpus: 2\nresources: {rdma/hca: 1}\n").out)
        assert not dry["starts_now"] and "none of the 3 nodes" in dry["why"]["summary"], dry
        s.run("cancel", str(first))
        s.wait_for(second, "succeeded")
        assert s.pods()[s.pod(second, 0)]["spec"]["nodeName"] == "n1"
        dry = json.loads(s.run("submit", "--dry-run", "-", "-o", "json", stdin="command: sleep\ngpus: 2\nresources: {rdma/hca: 1}\n").out)
        assert dry["starts_now"] and dry["places"][0]["node"] == "n1", dry
        more = submit(s, "command: [\"true\"]\ngpus: 1\nresources: {rdma/hca: 3}\n")
        wait_until("it is named", lambda: 'no node has as much of the resource "rdma/hca"' in s.run("explain", str(more), "-v").out)
