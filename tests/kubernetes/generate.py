# SPDX-License-Identifier: Apache-2.0
"""Clusters for the comparison with kube-scheduler: few names and values, so that what pods ask for is often there, and often not.

Each cluster has 12 nodes, some 30 pods that run, namespaces and volumes, and pods that ask. A pod that asks uses one to three of the things
that decide where it may run (KINDS), so that each of them decides often."""

ZONES, RACKS, TIERS, APPS = ["a", "b", "c"], ["r1", "r2", "r3", "r4"], ["1", "2", "03", "-4", "x"], ["web", "db", "train", "cache"]
KEYS = ["topology.kubernetes.io/zone", "rack", "kubernetes.io/hostname", "nowhere"]
SPACES = {"red": {"colour": "red", "kind": "team"}, "blue": {"colour": "blue", "kind": "team"}, "grey": {}}
EFFECTS = ["NoSchedule", "NoExecute", "PreferNoSchedule"]
TAINT_KEYS, TAINT_VALUES = ["gpu", "spot", "load"], ["", "yes", "5", "10", "07"]
NODES = 12
KINDS = ["taints", "selector", "node_affinity", "near", "apart", "spread", "ports", "requests", "claims", "name", "cordon"]


def some(rng, part):
    return rng.random() < part


def labels_of_node(rng, name):
    labels = {"kubernetes.io/hostname": name}
    if some(rng, 0.9):
        labels["topology.kubernetes.io/zone"] = rng.choice(ZONES)
    if some(rng, 0.8):
        labels["rack"] = rng.choice(RACKS)
    if some(rng, 0.6):
        labels["tier"] = rng.choice(TIERS)
    if some(rng, 0.3):
        labels["ssd"] = ""
    return labels


def node(rng, index):
    name = "n%d" % index
    taints = [{"key": rng.choice(TAINT_KEYS), "value": rng.choice(TAINT_VALUES), "effect": rng.choice(EFFECTS)} for _ in range(rng.choice([0, 0, 0, 1, 2]))]
    room = {"cpu": rng.choice(["4", "8", "7500m"]), "memory": rng.choice(["8Gi", "16Gi", "8G"]), "pods": rng.choice(["4", "110", "110", "110"])}
    if some(rng, 0.7):
        room["nvidia.com/gpu"] = rng.choice(["2", "4", "8"])
    if some(rng, 0.5):
        room["ephemeral-storage"] = rng.choice(["10Gi", "100Gi"])
    if some(rng, 0.4):
        room["example.com/fpga"] = "2"
    if some(rng, 0.3):
        room["hugepages-2Mi"] = rng.choice(["64Mi", "1Gi"])
    spec = {"taints": taints}
    if some(rng, 0.1):
        spec["unschedulable"] = True
    return {"kind": "Node", "apiVersion": "v1", "metadata": {"name": name, "labels": labels_of_node(rng, name)}, "spec": spec,
            "status": {"allocatable": room, "capacity": room}}


def pod_labels(rng):
    labels = {"app": rng.choice(APPS)}
    if some(rng, 0.5):
        labels["version"] = rng.choice(["1", "2"])
    if some(rng, 0.2):
        labels["canary"] = ""
    return labels


def pod_selector(rng):
    choice = rng.random()
    if choice < 0.05:
        return None
    if choice < 0.1:
        return {}
    selector = {}
    if choice < 0.7:
        selector["matchLabels"] = {"app": rng.choice(APPS)}
    if choice > 0.5:
        selector["matchExpressions"] = [rng.choice([
            {"key": "app", "operator": "In", "values": rng.sample(APPS, 2)}, {"key": "app", "operator": "NotIn", "values": rng.sample(APPS, 2)},
            {"key": "version", "operator": "NotIn", "values": ["1"]}, {"key": "version", "operator": "Exists"},
            {"key": "canary", "operator": "DoesNotExist"}, {"key": "canary", "operator": "In", "values": [""]}])]
    return selector


def pod_term(rng, runs):
    term = {"topologyKey": rng.choice(KEYS if some(rng, 0.3) else KEYS[:3])}
    selector = pod_selector(rng)
    if selector is not None:
        term["labelSelector"] = selector
    choice = rng.random()
    if choice < 0.25:
        term["namespaces"] = rng.sample(sorted(SPACES), rng.choice([1, 2]))
    if 0.15 < choice < 0.45:
        # Of a pod that asks, kube-scheduler takes what a namespace must not have to be true of all namespaces.
        term["namespaceSelector"] = rng.choice([{}, {"matchLabels": {"colour": rng.choice(["red", "blue"])}},
                                                {"matchExpressions": [{"key": "kind", "operator": "DoesNotExist" if runs else "Exists"}]}])
    return term


def amount(rng, name):
    return {"cpu": ["250m", "1", "1500m", "3"], "memory": ["512Mi", "1G", "3Gi", "5000000001"], "nvidia.com/gpu": ["1", "2"],
            "example.com/fpga": ["1", "2"], "ephemeral-storage": ["1Gi", "20Gi"], "hugepages-2Mi": ["32Mi", "512Mi"]}[name][rng.randrange(2 if name[0] in "neh" else 4)]


def requests(rng, wide):
    names = ["cpu", "memory"] + (["nvidia.com/gpu", "example.com/fpga", "ephemeral-storage", "hugepages-2Mi"] if wide else [])
    return {name: amount(rng, name) for name in rng.sample(names, rng.randrange(1, 3))}


def containers(rng, wide):
    spec = {"containers": [{"name": "c%d" % i, "image": "i", "resources": {"requests": requests(rng, wide)}} for i in range(rng.choice([1, 1, 2]))]}
    begins = []
    for i in range(rng.choice([0, 0, 2, 3, 4])):
        begin = {"name": "i%d" % i, "image": "i", "resources": {"requests": requests(rng, wide)}}
        if some(rng, 0.5):
            begin["restartPolicy"] = "Always"
        begins.append(begin)
    if begins:
        spec["initContainers"] = begins
    if some(rng, 0.2):
        spec["overhead"] = {"cpu": "100m", "memory": "64Mi"}
    if some(rng, 0.2):
        spec["resources"] = {"requests": rng.choice([{"cpu": "2"}, {"memory": "4Gi"}, {"cpu": "1", "memory": "1Gi"}])}
    return spec


def ports(rng, spec):
    def some_ports():
        return [{"containerPort": 80, "hostPort": rng.choice([80, 81]), "protocol": rng.choice(["TCP", "UDP"]),
                 **({"hostIP": rng.choice(["0.0.0.0", "10.0.0.1", "10.0.0.2"])} if some(rng, 0.5) else {})}
                for _ in range(rng.choice([1, 1, 2]))]
    rng.choice(spec["containers"])["ports"] = some_ports()
    if "initContainers" in spec and some(rng, 0.5):
        rng.choice(spec["initContainers"])["ports"] = some_ports()


def resize(rng, pod):
    """A change of size that the node has not carried out, or has refused."""
    status = pod["status"]
    status["containerStatuses"] = [
        {"name": c["name"], "resources": {"requests": requests(rng, False)}, "allocatedResources": requests(rng, False)}
        for c in pod["spec"]["containers"] if some(rng, 0.7)]
    if "resources" in pod["spec"] and some(rng, 0.5):
        status["resources"] = {"requests": {"cpu": "3", "memory": "2Gi"}}
        status["allocatedResources"] = {"cpu": "1"}
    if some(rng, 0.3):
        status["conditions"] = [{"type": "PodResizePending", "status": "True", "reason": rng.choice(["Infeasible", "Deferred"])}]


def running(rng, index):
    spec = containers(rng, True)
    spec["nodeName"] = "n%d" % rng.randrange(NODES)
    spec["schedulerName"] = "fairlead"
    if some(rng, 0.2):
        spec["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [pod_term(rng, True) for _ in range(rng.choice([1, 2]))]}}
    if some(rng, 0.3):
        ports(rng, spec)
    if some(rng, 0.2):
        spec["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": "alone"}}]
    pod = {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "run%d" % index, "namespace": rng.choice(sorted(SPACES)), "uid": "run%d" % index,
                                                           "labels": pod_labels(rng)}, "spec": spec, "status": {"phase": "Running"}}
    if some(rng, 0.1):
        pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    if some(rng, 0.1):
        pod["status"]["phase"] = rng.choice(["Succeeded", "Failed"])
    if some(rng, 0.2):
        resize(rng, pod)
    return pod


def toleration(rng):
    op = rng.choice(["Exists", "Equal", None, "Gt", "Lt"])
    t = {"key": rng.choice(TAINT_KEYS)}
    if op:
        t["operator"] = op
    if op in ("Gt", "Lt"):
        t["value"] = rng.choice(["4", "5", "10", "07", "12"])
    elif op != "Exists":
        t["value"] = rng.choice(TAINT_VALUES)
    elif some(rng, 0.2):
        del t["key"]
    if some(rng, 0.5):
        t["effect"] = rng.choice(EFFECTS)
    return t


def node_requirement(rng):
    return rng.choice([
        {"key": "topology.kubernetes.io/zone", "operator": "In", "values": rng.sample(ZONES, 2)},
        {"key": "topology.kubernetes.io/zone", "operator": "NotIn", "values": [rng.choice(ZONES)]},
        {"key": "rack", "operator": "In", "values": [rng.choice(RACKS)]}, {"key": "rack", "operator": "NotIn", "values": rng.sample(RACKS, 2)},
        {"key": "rack", "operator": "NotIn", "values": ["no label!"]}, {"key": "rack", "operator": "In", "values": ["r1", "-r2"]},
        {"key": "ssd", "operator": "Exists"}, {"key": "ssd", "operator": "DoesNotExist"}, {"key": "ssd", "operator": "In", "values": [""]},
        {"key": "tier", "operator": "Gt", "values": [rng.choice(["1", "-5", "2"])]}, {"key": "tier", "operator": "Lt", "values": [rng.choice(["2", "3", "100"])]}])


def node_term(rng):
    term = {}
    if some(rng, 0.85):
        term["matchExpressions"] = [node_requirement(rng) for _ in range(rng.choice([1, 1, 2]))]
    if some(rng, 0.15):
        term["matchFields"] = [{"key": "metadata.name", "operator": rng.choice(["In", "NotIn"]), "values": ["n%d" % rng.randrange(NODES)]}]
    return term


def spread(rng):
    wish = {"topologyKey": rng.choice(KEYS[:3] if some(rng, 0.95) else KEYS), "maxSkew": rng.choice([1, 1, 2, 3]),
            "whenUnsatisfiable": "DoNotSchedule" if some(rng, 0.9) else "ScheduleAnyway"}
    selector = rng.choice([pod_selector(rng), {"matchExpressions": [{"key": "app", "operator": "Exists"}]}])
    if selector is not None:
        wish["labelSelector"] = selector
    if some(rng, 0.3):
        wish["matchLabelKeys"] = rng.choice([["version"], ["app", "version"], ["nothing"]])
    if some(rng, 0.3):
        wish["nodeAffinityPolicy"] = rng.choice(["Honor", "Ignore"])
    if some(rng, 0.3):
        wish["nodeTaintsPolicy"] = rng.choice(["Honor", "Ignore"])
    if some(rng, 0.2) and wish["whenUnsatisfiable"] == "DoNotSchedule":
        wish["minDomains"] = rng.choice([1, 3, 4])
    return wish


def asks(rng, index):
    kinds = set(rng.sample(KINDS, rng.choice([1, 1, 2, 3])) + (rng.choice([["spread"], ["requests"]]) if some(rng, 0.3) else []))
    spec = containers(rng, "requests" in kinds)
    if "requests" not in kinds:  # what decides is something else
        spec = {"containers": [{"name": "c", "image": "i"}]}
    spec["schedulerName"] = "fairlead"
    affinity = {}
    tolerations = [{"operator": "Exists"}] if "taints" not in kinds and "cordon" not in kinds else []
    if "taints" in kinds:
        tolerations += [toleration(rng) for _ in range(rng.choice([0, 1, 2, 3]))]
    if "cordon" in kinds and some(rng, 0.5):
        tolerations.append({"key": "node.kubernetes.io/unschedulable", "operator": "Exists", **({"effect": rng.choice(EFFECTS)} if some(rng, 0.5) else {})})
    if "selector" in kinds:
        spec["nodeSelector"] = rng.choice([{"rack": rng.choice(RACKS)}, {"ssd": ""}, {"topology.kubernetes.io/zone": "a", "rack": rng.choice(RACKS)}])
    if "node_affinity" in kinds:
        affinity["nodeAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [node_term(rng) for _ in range(rng.choice([1, 1, 2]))]}}
    for name, field in ("near", "podAffinity"), ("apart", "podAntiAffinity"):
        if name in kinds:
            affinity[field] = {"requiredDuringSchedulingIgnoredDuringExecution": [pod_term(rng, False) for _ in range(rng.choice([1, 1, 2]))]}
    if "spread" in kinds:
        spec["topologySpreadConstraints"] = [spread(rng) for _ in range(rng.choice([1, 2, 2]))]
    if "ports" in kinds:
        ports(rng, spec)
    if "claims" in kinds:
        spec["volumes"] = [{"name": "v%d" % i, "persistentVolumeClaim": {"claimName": c}}
                           for i, c in enumerate(rng.sample(sorted(CLAIMS) + ["missing"], rng.choice([1, 1, 2])))]
    if "name" in kinds and some(rng, 0.3):  # the generator has no names of nodes that are not there: those pods the API server keeps
        spec["nodeSelector"] = {"kubernetes.io/hostname": "n%d" % rng.randrange(NODES)}
    if tolerations:
        spec["tolerations"] = tolerations
    if affinity:
        spec["affinity"] = affinity
    name = "ask%d" % index
    return {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": name, "namespace": rng.choice(sorted(SPACES)), "uid": name, "labels": pod_labels(rng)}, "spec": spec}


CLAIMS = {"bound-zone": {}, "bound-label": {}, "bound-name": {}, "free": {}, "unmarked": {}, "lost": {}, "dying": {}, "alone": {}, "novolume": {}}


def volumes(rng):
    def volume(name, labels=None, terms=None):
        spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteMany"], "csi": {"driver": "d.example.com", "volumeHandle": name}}
        if terms is not None:
            spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}
        return {"kind": "PersistentVolume", "apiVersion": "v1", "metadata": {"name": name, "labels": labels or {}}, "spec": spec}
    yield {"kind": "StorageClass", "apiVersion": "storage.k8s.io/v1", "metadata": {"name": "now"}, "provisioner": "p", "volumeBindingMode": "Immediate"}
    yield volume("zone", terms=[{"matchExpressions": [{"key": "topology.kubernetes.io/zone", "operator": "In", "values": rng.sample(ZONES, 2)}]},
                                {"matchExpressions": [{"key": "ssd", "operator": "Exists"}]}])
    yield volume("label", labels={rng.choice(["topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"]): rng.choice(["a", "a__b", "b__c", "z"])})
    yield volume("name", terms=[{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["n%d" % i for i in rng.sample(range(NODES), 4)]}]}])
    yield volume("any")
    for space in sorted(SPACES):
        for name in sorted(CLAIMS):
            claim = {"kind": "PersistentVolumeClaim", "apiVersion": "v1", "metadata": {"name": name, "namespace": space, "uid": space + name},
                     "spec": {"accessModes": ["ReadWriteOncePod" if name == "alone" else "ReadWriteMany"], "storageClassName": "now",
                              "resources": {"requests": {"storage": "1Gi"}}}, "status": {"phase": "Bound"}}
            if name != "free":
                claim["spec"]["volumeName"] = {"bound-zone": "zone", "bound-label": "label", "bound-name": "name", "novolume": "gone"}.get(name, "any")
            else:
                claim["status"]["phase"] = "Pending"
            if name not in ("free", "unmarked"):
                claim["metadata"]["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
            if name == "lost":
                claim["status"]["phase"] = "Lost"
            if name == "dying":
                claim["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
                claim["metadata"]["finalizers"] = ["kubernetes.io/pvc-protection"]
            yield claim


def cluster(rng, pods, first):
    """Its objects; the pods that ask come last, numbered from first."""
    for name, labels in sorted(SPACES.items()):
        yield {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": name, "labels": dict(labels, **{"kubernetes.io/metadata.name": name})}}
    for i in range(NODES):
        yield node(rng, i)
    yield from volumes(rng)
    for i in range(rng.choice([10, 30, 60])):
        yield running(rng, i)
    for i in range(pods):
        yield asks(rng, first + i)
