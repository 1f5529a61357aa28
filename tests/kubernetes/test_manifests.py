# SPDX-License-Identifier: Apache-2.0
"""The chart and the manifests in deploy/: a real API server takes them, and the daemon gets along with the rights that they give, and with
no less. Images are not run here, for there is no kubelet: scripts/campaign-image makes one and starts it."""

import contextlib
import json
import os
import re
import subprocess
import sys
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "postgres"))

import pytest
import yaml

import harness
import server
import test_authority
import test_dra
from bed import TOP, Bed, free_port, programs, wait_until
from cluster import Serve

CHART = os.path.join(TOP, "deploy/helm/fairlead")
ACCOUNT = "system:serviceaccount:fairlead:fairlead"
FOLDERS = {"Service": "/api/v1/namespaces/%s/services", "Namespace": "/api/v1/namespaces", "ServiceAccount": "/api/v1/namespaces/%s/serviceaccounts",
           "StatefulSet": "/apis/apps/v1/namespaces/%s/statefulsets",
           "PodDisruptionBudget": "/apis/policy/v1/namespaces/%s/poddisruptionbudgets",
           **{kind: "/apis/rbac.authorization.k8s.io/v1/" + folder for kind, folder in (
               ("ClusterRole", "clusterroles"), ("ClusterRoleBinding", "clusterrolebindings"),
               ("Role", "namespaces/%s/roles"), ("RoleBinding", "namespaces/%s/rolebindings"))}}
# Asked for only when owners of pods are of these kinds, whose definitions the test does not bring; an event that is counted up; a pod of
# which the API server says that it is there already; a claim of a volume that is made for a node; a claim that somebody else changed meanwhile; what Kubernetes asks beside the right to status.
RARE = {("get", "podgroups"), ("patch", "persistentvolumeclaims"), ("patch", "events"), ("get", "pods"), ("get", "resourceclaims"), ("patch", "resourceclaims/binding")} | {("get", kind) for kind in ("pytorchjobs", "mpijobs", "tfjobs", "xgboostjobs", "jaxjobs", "paddlejobs", "rayclusters", "leaderworkersets")}


class AuditedBed(Bed):
    """The API server writes down what the daemon's account asks for."""

    def start(self, name, *words):
        if name == "kube-apiserver":
            with open(self.path("audit.yaml"), "w") as f:
                json.dump({"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["ResponseStarted", "ResponseComplete"],
                           "rules": [{"level": "Metadata", "users": [ACCOUNT]}, {"level": "None"}]}, f)
            words += ("--audit-policy-file", self.path("audit.yaml"), "--audit-log-path", self.path("audit.log"), "--audit-log-mode", "blocking")
        super().start(name, *words)

    def asked(self):
        """{(verb, resource)} that the account asked for."""
        with open(self.path("audit.log")) as f:
            refs = [(e["verb"], e["objectRef"]) for e in map(json.loads, f) if "objectRef" in e]
        return {(verb, "/".join(filter(None, (ref["resource"], ref.get("subresource"))))) for verb, ref in refs}

    def apply(self, manifests):
        for m in manifests:
            path = FOLDERS[m["kind"]]
            self.make((path % m["metadata"]["namespace"] if "%s" in path else path) + "?fieldValidation=Strict", m)

    def account(self):
        """A kubeconfig of the daemon's own account."""
        token = self.make("/api/v1/namespaces/fairlead/serviceaccounts/fairlead/token",
                          {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}})["status"]["token"]
        with open(self.kubeconfig) as f:
            config = json.load(f)
        config["users"][0]["user"] = {"token": token}
        with open(self.path("account"), "w") as f:
            json.dump(config, f)
        return self.path("account")


class Deployed(Serve):
    """The daemon with the words of its manifest, outside the cluster."""

    def __init__(self, b, manifests, store=None):
        super().__init__(b, kubeconfig=b.account())
        pod = next(m for m in manifests if m["kind"] == "StatefulSet")["spec"]["template"]["spec"]
        self.words = [w for w in pod["containers"][0]["command"][1:] if not w.startswith("--store=")]
        assert (store is not None) == (len(self.words) < len(pod["containers"][0]["command"]) - 1)
        # The Service's name and its port are the cluster's: here it is this machine.
        services = [m["metadata"]["name"] for m in manifests if m["kind"] == "Service"]
        address = next(w for w in self.words if w.startswith("--pod-address="))
        assert address == "--pod-address=%s.fairlead.svc:7071" % services[0] and len(services) == 1, (address, services)
        self.words = [w for w in self.words if not w.startswith(("--pod-address=", "--pod-listen="))] + [
            "--pod-listen=127.0.0.1:%d" % free_port()]
        if store:
            self.words.append("--store=" + store)

    def command(self, *more):
        return ["setpriv", "--pdeathsig", "KILL", harness.PROGRAM, *self.words, "--kubeconfig", self.kubeconfig, "--image", "none", *more]


@contextlib.contextmanager
def deployed(name, store=None):
    with open(os.path.join(TOP, "deploy/kubernetes", name + ".yaml")) as f:
        manifests = list(yaml.safe_load_all(f))
    b = AuditedBed(("controller-manager", "kwok"), os.path.join(os.path.dirname(os.path.abspath(__file__)), "kubelet.yaml"))
    try:
        b.start_all()
        b.node("n0")
        b.apply(manifests)
        s = Deployed(b, manifests, store)
        try:
            s.up()
            wait_until("it leads, and knows who asks", lambda: s.run("whoami", check=False).code == 0)
            s.wait_for_nodes(1)
            yield b, s, manifests
        except BaseException:
            print("the daemon's log:\n" + s.log())
            raise
        finally:
            s.destroy()
    finally:
        b.stop()


def helm(*words, check=True):
    done = subprocess.run([os.path.join(programs(), "helm"), *words], capture_output=True, text=True, env={**os.environ, "HOME": "/dev/shm"})
    assert not check or done.returncode == 0, done.stderr
    return done


def given(manifests):
    """{(verb, resource)} of all roles."""
    return {(verb, resource) for m in manifests if m["kind"] in ("Role", "ClusterRole")
            for rule in m["rules"] for verb in rule["verbs"] for resource in rule["resources"]}


def use_everything(b, s):
    """A gang of Fairlead's own that ends, one that is cancelled, and a Job's pods that are told why they wait and stopped."""
    gang = s.submit("-t", "2", "-g", "1", "-e", "A=b", "--", "true")
    wait_until("the gang has ended", lambda: s.state(gang) == "succeeded")
    said = s.run("logs", str(gang), check=False)  # no kubelet answers here
    assert "which keeps its output, does not answer" in " ".join(said.err.split()), said
    long = s.submit("-g", "8", "--", "sleep")
    s.wait_for(long, "running")
    b.make("/apis/batch/v1/namespaces/default/jobs", {
        "metadata": {"name": "theirs"}, "spec": {"template": {"spec": {
            "schedulerName": "fairlead", "restartPolicy": "Never", "automountServiceAccountToken": False,
            "containers": [{"name": "main", "image": "none", "command": ["sleep"], "resources": {"limits": {"nvidia.com/gpu": "1"}}}]}}}})
    path = "/api/v1/namespaces/default/pods?labelSelector=" + urllib.parse.quote("batch.kubernetes.io/job-name=theirs")
    theirs = lambda: b.get(path)["items"]
    wait_until("the Job's pod says why it waits", lambda: any(
        c["type"] == "PodScheduled" and c["status"] == "False" for p in theirs() for c in p["status"].get("conditions", [])))
    s.run("cancel", str(long))
    wait_until("the Job's pod runs", lambda: any(p["status"]["phase"] == "Running" for p in theirs()))
    first = theirs()[0]["metadata"]
    s.run("cancel", first["annotations"]["fairlead.dev/job"])
    wait_until("that pod is gone", lambda: first["uid"] not in [p["metadata"]["uid"] for p in theirs()])
    wait_until("the next one runs", lambda: any(p["status"]["phase"] == "Running" for p in theirs()))
    again = theirs()[0]["metadata"]
    node = "/api/v1/nodes/n0"
    status, answer = b.call("PATCH", node, {"spec": {"taints": [{"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}]}}, "application/merge-patch+json")
    assert status == 200, answer
    wait_until("it is evicted from a node that goes", lambda: again["uid"] not in [p["metadata"]["uid"] for p in theirs()])
    b.call("PATCH", node, {"spec": {"taints": None}}, "application/merge-patch+json")
    b.call("DELETE", "/apis/batch/v1/namespaces/default/jobs/theirs?propagationPolicy=Background")
    use_jobs_of_a_set(b)
    use_events_of_nodes(b, s)
    use_devices(b, s)


def use_jobs_of_a_set(b):
    """One of two Jobs that a JobSet makes of one template: the others are asked for."""
    labels = {"jobset.sigs.k8s.io/" + k: v for k, v in (("jobset-name", "set"), ("replicatedjob-name", "worker"), ("replicatedjob-replicas", "2"))}
    b.make("/apis/batch/v1/namespaces/default/jobs", {"metadata": {"name": "set-worker-0", "labels": labels}, "spec": {"template": {"metadata": {"labels": labels}, "spec": {
        "schedulerName": "fairlead", "restartPolicy": "Never", "automountServiceAccountToken": False, "containers": [{"name": "main", "image": "none"}]}}}})
    wait_until("the Jobs are listed", lambda: ("list", "jobs") in b.asked())
    b.call("DELETE", "/apis/batch/v1/namespaces/default/jobs/set-worker-0?propagationPolicy=Background")


def use_events_of_nodes(b, s):
    """A pod of another scheduler on a node that is declared to be Fairlead's."""
    test_authority.label(b, "n0", authority="fairlead")
    pod = b.pod("stranger")
    b.make("/api/v1/namespaces/default/pods/stranger/binding", {"metadata": {"name": "stranger", "uid": pod["metadata"]["uid"]},
                                                                "target": {"kind": "Node", "name": "n0"}})
    wait_until("the node has an Event", lambda: "AuthorityConflict" in test_authority.events(b, "n0"))
    b.call("DELETE", "/api/v1/namespaces/default/pods/stranger?gracePeriodSeconds=0")
    wait_until("and one when it is over", lambda: "AuthorityConflictOver" in test_authority.events(b, "n0"))


def use_devices(b, s):
    """A job of Fairlead's own and a pod with a claim, on a node whose driver publishes its GPUs."""
    b.node("n1", gpus=0)
    test_dra.device_class(b)
    test_dra.publish(b, "n1", [test_dra.gpu(i) for i in range(16)])
    wait_until("the node has them", lambda: sorted(n["gpus"]["total"] for n in s.ask("nodes")) == [8, 16])
    own = s.submit("-g", "16", "--", "true")
    wait_until("the job has ended", lambda: s.state(own) == "succeeded")
    test_dra.template(b, "gpus", test_dra.request(16))
    test_dra.pod(b, "claims")
    wait_until("the pod runs", lambda: b.get("/api/v1/namespaces/default/pods/claims")["status"]["phase"] == "Running")


def check_rights(b, s, manifests):
    assert not re.search(r"(?<!\d)403(?!\d)", s.log()) and "forbidden" not in s.log().lower(), s.log()
    idle = given(manifests) - b.asked() - RARE
    assert not idle, "rights that nothing uses: %s" % sorted(idle)
    assert b.asked() <= given(manifests), "asked for without a right: %s" % sorted(b.asked() - given(manifests))


def test_one_daemon_gets_along_with_the_rights_of_its_manifest_and_no_less():
    with deployed("trying-out") as (b, s, manifests):
        use_everything(b, s)
        check_rights(b, s, manifests)
        # Its pod may be made where only confined pods may.
        wait_until("the daemon's pod is made", lambda: b.get("/api/v1/namespaces/fairlead/pods")["items"])


def test_two_daemons_get_along_with_theirs():
    with server.Server() as database, deployed("two-replicas", database.address) as (b, s, manifests):
        use_everything(b, s)
        check_rights(b, s, manifests)
        wait_until("the daemons' pods are made", lambda: len(b.get("/api/v1/namespaces/fairlead/pods")["items"]) == 2)
        assert s.ask("whoami")["role"] == "admin"


def test_the_plain_manifests_are_what_the_chart_gives(tmp_path):
    subprocess.run([os.path.join(TOP, "scripts/manifests"), str(tmp_path)], check=True)
    for name in sorted(os.listdir(os.path.join(TOP, "deploy/kubernetes"))):
        if name.endswith(".yaml"):
            with open(os.path.join(TOP, "deploy/kubernetes", name)) as have, open(tmp_path / name) as want:
                assert have.read() == want.read(), name + " is out of date: scripts/manifests writes it"


@pytest.mark.parametrize("words, said", [
    (["replicas=2"], "several daemons need store.address"),
    (["replicas=2", "store.address=postgresql://f@db/f"], "without bodyKeySecret"),
    (["replicas=0"], "minimum"),
    (["replica=1"], "replica"),
    (["store.address=mysql://f@db/f"], "store"),
    (["store.address=postgresql://f:secret@db/f"], "store"),
    (["store.passwordSecret=p"], "no database"),
    (["podNamespaces={*,a}"], "one or the other"),
    (["podNamespaces={Team}"], "podNamespaces"),
    (["jobs.namespace="], "jobs"),
    (["topologyLabels={rack=a.b/rack}"], "topologyLabels"),
])
def test_values_that_do_not_fit_together_are_refused(words, said):
    done = helm("template", "fairlead", CHART, *[w for word in words for w in ("--set", word)], check=False)
    assert done.returncode and said in done.stderr, done.stderr


def test_the_chart_is_well_formed():
    assert "0 chart(s) failed" in helm("lint", "--strict", CHART).stdout
    text = helm("template", "a-name", CHART, "--namespace", "there", "--set", "podNamespaces={one,two},podOwners=null,topologyLabels={leaf=a.b/rack,spine=a.b/block}").stdout
    manifests = list(yaml.safe_load_all(text))
    assert {m["metadata"].get("namespace") for m in manifests} == {None, "there", "fairlead-jobs", "default", "one", "two"}
    assert all(re.match("a-name", m["metadata"]["name"]) for m in manifests)
    (daemon,) = [m for m in manifests if m["kind"] == "StatefulSet"]
    command = daemon["spec"]["template"]["spec"]["containers"][0]["command"]
    assert [w for w in command if "topology" in w] == ["--topology-label=leaf=a.b/rack", "--topology-label=spine=a.b/block"]
