# SPDX-License-Identifier: Apache-2.0
"""The daemon with the account of the manifest, on a real API server, while one of the rights is missing: it says which one and how it is mended,
loses nothing, and goes on when somebody gives it."""

import contextlib
import copy
import json

from bed import wait_until
from test_manifests import deployed

JOBS = "/api/v1/namespaces/fairlead-jobs/pods"
OTHERS = "/api/v1/namespaces/default/pods"
OF_CLUSTER = "/apis/rbac.authorization.k8s.io/v1/clusterroles/fairlead"
ROLES = (*("/apis/rbac.authorization.k8s.io/v1/namespaces/" + place for place in ("fairlead-jobs/roles/fairlead-jobs", "default/roles/fairlead-nodes")),
         OF_CLUSTER + "-pods", OF_CLUSTER)


def said(s):
    with open(s.data + ".log", errors="replace") as f:
        return f.read()


def put(b, path, role):
    role["metadata"].pop("resourceVersion", None)
    status, answer = b.call("PUT", path, role)
    assert status == 200, answer


def may(b, verb, resource, where):
    name, _, behind = resource.partition("/")
    return b.make("/apis/authorization.k8s.io/v1/subjectaccessreviews", {"spec": {
        "user": "system:serviceaccount:fairlead:fairlead", "resourceAttributes": {
            "verb": verb, "resource": name, "subresource": behind, "namespace": where.split('"')[1] if '"' in where else ""}}})["status"]["allowed"]


def less(role, verb, resource):
    rules = []
    for rule in role["rules"]:
        if resource in rule["resources"] and verb in rule["verbs"]:
            others, verbs = [r for r in rule["resources"] if r != resource], [v for v in rule["verbs"] if v != verb]
            rules += [{**rule, "resources": others}] if others else []
            rules += [{**rule, "resources": [resource], "verbs": verbs}] if verbs else []
        else:
            rules.append(rule)
    return {**role, "rules": rules}


@contextlib.contextmanager
def without(b, s, *rights):
    """rights: (verb, resource, where); no role gives them meanwhile."""
    whole, before = {path: b.get(path) for path in ROLES}, len(said(s))
    for path, role in whole.items():
        for verb, resource, _ in rights:
            role = less(role, verb, resource)
        put(b, path, copy.deepcopy(role))
    wait_until("the rights are gone", lambda: not any(may(b, verb, resource, where) for verb, resource, where in rights))

    def is_said(words):
        return words in said(s)[before:]

    def missed():
        for verb, resource, where in rights:
            wait_until("it says that it may not %s %s" % (verb, resource), lambda: is_said("no right to %s %s %s" % (verb, resource, where)))
        news = said(s)[before:]
        assert "deploy/kubernetes" in news and 'User "system:serviceaccount:fairlead:fairlead" cannot %s resource "%s"' % rights[0][:2] in news
        assert news.count("no right to") == len(rights), news  # once each, however often it is asked
        assert s.process.poll() is None
    yield missed
    for path, role in whole.items():
        put(b, path, role)
    for verb, resource, where in rights:
        wait_until("it says that it may %s %s" % (verb, resource), lambda: is_said("the right to %s %s %s is there now" % (verb, resource, where)))


OWN, THEIRS, ALL = 'in namespace "fairlead-jobs"', 'in namespace "default"', "in the whole cluster"


def pod(b, name, command, gpus):
    b.make(OTHERS, {"metadata": {"name": name}, "spec": {
        "schedulerName": "fairlead", "restartPolicy": "Never", "automountServiceAccountToken": False,
        "containers": [{"name": "main", "image": "none", "command": [command], "resources": {"limits": {"nvidia.com/gpu": str(gpus)}}}]}})


def get(b, path):
    status, answer = b.call("GET", path)
    return answer if status == 200 else None


def own_jobs(b, s):
    for verb, resource in (("create", "pods"), ("create", "secrets"), ("create", "pods/binding")):
        with without(b, s, (verb, resource, OWN)) as missed:
            job = s.submit("-g", "1", "-e", "WORD=x", "--", "true")
            missed()
            assert s.state(job) == "starting"
        s.wait_for(job, "succeeded")
        assert len(s.ask("job", str(job))["attempts"]) == 1
    with without(b, s, ("delete", "pods", OWN)) as missed:
        job = s.submit("-g", "8", "--", "sleep")
        s.wait_for(job, "running")
        s.run("cancel", str(job))
        missed()
        assert s.state(job) not in ("cancelled", "failed")
        found = {row["check"]: row for row in json.loads(s.run("doctor", "-o", "json", check=False).out)}
        assert found["cluster"]["result"] == "problem" and 'cannot delete resource "pods"' in found["cluster"]["text"], found
    s.wait_for(job, "cancelled")
    with without(b, s, ("patch", "pods", OWN), ("delete", "secrets", OWN)) as missed:
        job = s.submit("-g", "1", "-e", "WORD=x", "--", "true")
        s.wait_for(job, "succeeded")
        missed()
        assert any(p["metadata"].get("finalizers") for p in b.get(JOBS)["items"])
    wait_until("nothing is held", lambda: not any(p["metadata"].get("finalizers") for p in b.get(JOBS)["items"]))
    wait_until("no secret is left", lambda: not b.get("/api/v1/namespaces/fairlead-jobs/secrets")["items"])


def pods_of_others(b, s):
    with without(b, s, ("create", "pods/binding", THEIRS)) as missed:
        pod(b, "one", "sleep", 8)
        missed()
    wait_until("it runs", lambda: b.get(OTHERS + "/one")["status"]["phase"] == "Running")
    with without(b, s, ("patch", "pods/status", THEIRS), ("create", "events", THEIRS)) as missed:
        pod(b, "two", "true", 8)
        missed()
        assert not b.get(OTHERS + "/two")["status"].get("conditions")
        pod(b, "three", "true", 8)  # what is told of it finds the rights there
    for name in ("two", "three"):
        wait_until("%s says why it waits" % name, lambda: b.get(OTHERS + "/" + name)["status"].get("conditions"))
    with without(b, s, ("delete", "pods", THEIRS)) as missed:
        s.run("cancel", b.get(OTHERS + "/one")["metadata"]["annotations"]["fairlead.dev/job"])
        missed()
        assert b.get(OTHERS + "/one")["status"]["phase"] == "Running"
    wait_until("the others ran", lambda: all(b.get(OTHERS + "/" + n)["status"]["phase"] == "Succeeded" for n in ("two", "three")))


def the_cluster(b, s):
    with without(b, s, ("watch", "nodes", ALL)) as missed:
        b.node("n1")
        missed()
    s.wait_for_nodes(2)
    s.stop()
    with without(b, s, ("list", "nodes", ALL)) as missed:
        s.up()
        missed()
        wait_until("it says what it waits for", lambda: 'could not be looked through: the Kubernetes API server at %s: nodes is forbidden' % b.url in said(s))
    s.wait_for_nodes(2)


def test_what_lacks_a_right_says_which_and_goes_on_when_it_is_given():
    with deployed("trying-out") as (b, s, manifests):
        own_jobs(b, s)
        pods_of_others(b, s)
        the_cluster(b, s)
