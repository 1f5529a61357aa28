# SPDX-License-Identifier: Apache-2.0
"""Generated questions about devices: a node, ResourceSlices, DeviceClasses and ResourceClaims. The same seed gives the same question."""

import random

DRIVERS = ["gpu.nvidia.com", "nic.example.com", "dra.example.com"]
MODELS = ["H100", "A100", "L40S"]


def selector(text):
    return {"cel": {"expression": text}}


CLASSES = [
    ("gpu", ['device.driver == "gpu.nvidia.com" && device.attributes["gpu.nvidia.com"].type == "gpu"']),
    ("mig", ['device.driver == "gpu.nvidia.com" && device.attributes["gpu.nvidia.com"].type == "mig"']),
    ("nic", ['device.driver == "nic.example.com"']),
    ("any", []),
    ("big", ['"memory" in device.capacity[device.driver] && device.capacity[device.driver].memory.compareTo(quantity("40Gi")) >= 0']),
    ("bold", ['device.attributes["dra.example.com"].index < 2']),  # fails on devices that have no such attribute
]
SELECTORS = ['device.attributes[device.driver].model == "H100"', 'device.attributes[device.driver].index in [0, 1, 2]',
             'device.attributes[device.driver].index > 0', 'device.driver.startsWith("gpu.")',
             '"resource.kubernetes.io" in device.attributes && "root" in device.attributes["resource.kubernetes.io"]',
             'device.attributes["gpu.nvidia.com"].profile == "1g.10gb"', 'device.attributes[device.driver].?index.orValue(0) < 3',
             'device.attributes[device.driver].version.compareTo(semver("1.1.0")) >= 0', 'true']
ATTRIBUTES = ["gpu.nvidia.com/model", "resource.kubernetes.io/root", "nic.example.com/index", "dra.example.com/half", "gpu.nvidia.com/version"]


class Maker:
    def __init__(self, seed):
        self.r = random.Random(seed)
        self.node = "n%d" % self.r.randrange(3)
        self.waits = 0  # share of devices that are to be made ready first

    def chance(self, share):
        return self.r.random() < share

    # --- what drivers publish

    def device(self, driver, i, kind):
        attributes = {"type": {"string": kind}, "model": {"string": self.r.choice(MODELS)}, "index": {"int": i},
                      "resource.kubernetes.io/root": {"string": "pci%d" % (i // 2)}, "half": {"bool": i % 2 == 0},
                      "version": {"version": "1.%d.0" % self.r.randrange(3)}}
        for name in list(attributes):
            if name != "type" and self.chance(0.1):
                del attributes[name]
        device = {"name": "%s-%d" % (kind, i), "attributes": attributes, "capacity": {"memory": {"value": self.r.choice(["80Gi", "40Gi", "24Gi"])}}}
        if self.chance(0.1):
            device["taints"] = [{"key": self.r.choice(["a", "b"]), "value": self.r.choice(["", "x"]),
                                 "effect": self.r.choice(["NoSchedule", "NoExecute", "None"])}]
        if self.chance(self.waits):
            device.update(bindingConditions=["Ready"], bindingFailureConditions=["Failed"], bindsToNode=self.chance(0.5))
        return device

    def where(self):
        kind = self.r.randrange(10)
        if kind < 5:
            return {"nodeName": self.node}
        if kind < 6:
            return {"nodeName": "other"}
        if kind < 7:
            return {"allNodes": True}
        key, values = ("zone", self.r.sample(["a", "b"], 1)) if self.chance(0.7) else ("rack", ["1"])
        return {"nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": [{"key": key, "operator": "In", "values": values}]}]}}

    def slice(self, name, driver, pool, generation, count, **spec):
        return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": name},
                "spec": {"driver": driver, "pool": {"name": pool, "generation": generation, "resourceSliceCount": count}, **spec}}

    def partitioned(self, driver, pool):
        """GPUs with their MIG placements, by shared counters in a slice of their own."""
        gpus, sets = [], []
        for i in range(self.r.randrange(1, 3)):
            name = "gpu-%d-counters" % i
            sets.append({"name": name, "counters": {**{"memory-slice-%d" % m: {"value": "1"} for m in range(4)}, "memory": {"value": "40Gi"}}})
            whole = self.device(driver, i, "gpu")
            whole["consumesCounters"] = [{"counterSet": name, "counters": sets[-1]["counters"]}]
            gpus.append(whole)
            for start, size in ((0, 1), (1, 1), (2, 1), (0, 2), (2, 2)):
                part = self.device(driver, i, "mig")
                part["name"] = "gpu-%d-mig-%d-%d" % (i, size, start)
                part["attributes"]["profile"] = {"string": "%dg.10gb" % size}
                part["consumesCounters"] = [{"counterSet": name, "counters": {
                    **{"memory-slice-%d" % m: {"value": "1"} for m in range(start, start + size)}, "memory": {"value": "%dGi" % (10 * size)}}}]
                gpus.append(part)
        if self.chance(0.05):
            gpus[0]["consumesCounters"][0]["counterSet"] = "nowhere"
        where = {"nodeName": self.node}
        return [self.slice(pool + "-devices", driver, pool, 1, 2, devices=gpus, **where),
                self.slice(pool + "-counters", driver, pool, 1, 2, sharedCounters=sets, **where)]

    def by_device(self, driver, pool):
        devices = []
        for i in range(self.r.randrange(1, 6)):
            device = self.device(driver, i, "gpu")
            device.update(self.where())
            devices.append(device)
        return [self.slice(pool, driver, pool, 1, 1, devices=devices, perDeviceNodeSelection=True)]

    def pool(self, number):
        driver = self.r.choice(DRIVERS)
        pool = "pool-%d" % number
        self.waits = self.r.choice([0, 0, 0, 0.3])
        if driver == DRIVERS[0] and self.chance(0.4):
            return self.partitioned(driver, pool)
        if self.chance(0.1):
            return self.by_device(driver, pool)
        kind = {"gpu.nvidia.com": "gpu", "nic.example.com": "nic"}.get(driver, "dev")
        slices, count, first = [], self.r.choice([1, 1, 1, 2]), 0
        generation, said = self.r.randrange(1, 3), count + (self.chance(0.08))
        where = self.where()
        for i in range(count):
            n = self.r.randrange(1, 5)
            slices.append(self.slice("%s-%d" % (pool, i), driver, pool, generation, said,
                                     devices=[self.device(driver, first + j, kind) for j in range(n)], **where))
            first += 0 if self.chance(0.03) else n
        if self.chance(0.1):
            slices.append(self.slice(pool + "-old", driver, pool, generation - 1, 1, devices=[self.device(driver, 9, kind)], **where))
        return slices

    # --- what is asked for

    def ask(self):
        exactly = {"deviceClassName": self.r.choices([c[0] for c in CLASSES] + ["nowhere"], [8, 4, 5, 3, 3, 1, 0.3])[0]}
        if self.chance(0.15):
            exactly["allocationMode"] = "All"
        else:
            exactly["allocationMode"] = "ExactCount"
            exactly["count"] = self.r.choices([1, 2, 3, 4, 8], [8, 5, 2, 1, 0.5])[0]
        if self.chance(0.4):
            exactly["selectors"] = [selector(self.r.choice(SELECTORS)) for _ in range(self.r.choice([1, 1, 2]))]
        if self.chance(0.15):
            exactly["tolerations"] = [self.r.choice([{"operator": "Exists"}, {"key": "a", "operator": "Exists"},
                                                     {"key": "a", "operator": "Equal", "value": "x", "effect": "NoSchedule"}])]
        return exactly

    def claim(self, number):
        requests = []
        for i in range(self.r.choice([1, 1, 1, 2, 3])):
            if self.chance(0.2):
                requests.append({"name": "r%d" % i, "firstAvailable": [{"name": "s%d" % j, **self.ask()} for j in range(self.r.randrange(1, 4))]})
            else:
                requests.append({"name": "r%d" % i, "exactly": self.ask()})
        devices = {"requests": requests}
        if self.chance(0.35):
            devices["constraints"] = [self.constraint(requests) for _ in range(self.r.choice([1, 1, 2]))]
        return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "c%d" % number, "namespace": "default"},
                "spec": {"devices": devices}}

    def constraint(self, requests):
        made = {"distinctAttribute" if self.chance(0.3) else "matchAttribute": self.r.choice(ATTRIBUTES)}
        if self.chance(0.6):
            names = []
            for request in self.r.sample(requests, self.r.randrange(1, len(requests) + 1)):
                choices = request.get("firstAvailable")
                names.append(request["name"] + "/" + choices[0]["name"] if choices and self.chance(0.5) else request["name"])
            made["requests"] = names
        return made

    def question(self):
        slices = [s for i in range(self.r.randrange(1, 4)) for s in self.pool(i)]
        every = ["%s/%s/%s" % (s["spec"]["driver"], s["spec"]["pool"]["name"], d["name"]) for s in slices for d in s["spec"].get("devices", [])]
        share = self.r.choice([0, 0, 0.2, 0.5])
        self.r.shuffle(slices)
        return {"node": {"apiVersion": "v1", "kind": "Node", "metadata": {"name": self.node, "labels": {"zone": self.r.choice(["a", "b"])}}},
                "slices": slices,
                "classes": [{"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": name},
                             "spec": {"selectors": [selector(t) for t in texts]}} for name, texts in CLASSES],
                "claims": [self.claim(i) for i in range(self.r.choice([1, 1, 1, 2, 3]))],
                "taken": [name for name in every if self.chance(share)]}


def question(seed):
    return Maker(seed).question()


# --- machines as they are built: GPUs of eight memory slices with their MIG placements, network cards at the same PCIe roots, and claims that fit

PROFILES = {"1g.10gb": (1, 1, range(7)), "1g.20gb": (1, 2, (0, 2, 4, 6)), "2g.20gb": (2, 2, (0, 2, 4)), "3g.40gb": (3, 4, (0, 4)), "4g.40gb": (4, 4, (0,)),
            "7g.80gb": (7, 8, (0,))}


class Machine(Maker):
    def named(self, name, kind, root, **more):
        return {"name": name, "attributes": {"type": {"string": kind}, "resource.kubernetes.io/pcieRoot": {"string": "pci%d" % root},
                                             **{k: {"string": v} for k, v in more.items()}}}

    def gpu(self, i):
        """The whole of it, and its parts."""
        def uses(memory, compute):
            return [{"counterSet": "gpu-%d" % i, "counters": {"compute": {"value": str(compute)}, **{"memory-%d" % m: {"value": "1"} for m in memory}}}]

        yield {**self.named("gpu-%d" % i, "gpu", i // 2, uuid="GPU-%d" % i), "consumesCounters": uses(range(8), 7)}
        for profile, (compute, size, starts) in PROFILES.items():
            for start in starts:
                yield {**self.named("gpu-%d-mig-%s-%d" % (i, profile.replace(".", "-"), start), "mig", i // 2, profile=profile, parent="GPU-%d" % i),
                       "consumesCounters": uses(range(start, start + size), compute)}

    def published(self, gpus):
        here = {"nodeName": self.node}
        slices = [self.slice("gpus-%d" % i, DRIVERS[0], self.node, 1, gpus + 1, devices=list(self.gpu(i)), **here) for i in range(gpus)]
        slices.append(self.slice("gpus-counters", DRIVERS[0], self.node, 1, gpus + 1, sharedCounters=[
            {"name": "gpu-%d" % i, "counters": {"compute": {"value": "7"}, **{"memory-%d" % m: {"value": "1"} for m in range(8)}}} for i in range(gpus)], **here))
        nics = [self.named("nic-%d" % i, "nic", i // self.r.choice([1, 2])) for i in range(self.r.randrange(1, gpus + 1))]
        if self.chance(0.1):
            for nic in nics:
                nic.update(bindingConditions=["Ready"], bindingFailureConditions=["Failed"], bindsToNode=True)
        return slices + [self.slice("nics", DRIVERS[1], self.node, 1, 1, devices=nics, **here)]

    def given_away(self, slices, share):
        """Devices that can be in use together."""
        left, taken = {}, []
        for s in slices:
            for counters in s["spec"].get("sharedCounters", []):
                left.update({(counters["name"], k): int(v["value"]) for k, v in counters["counters"].items()})
        every = [(s, d) for s in slices for d in s["spec"].get("devices", [])]
        for s, d in self.r.sample(every, int(len(every) * share)):
            uses = {(u["counterSet"], k): int(v["value"]) for u in d.get("consumesCounters", []) for k, v in u["counters"].items()}
            if all(left[k] >= n for k, n in uses.items()):
                left.update({k: left[k] - n for k, n in uses.items()})
                taken.append("%s/%s/%s" % (s["spec"]["driver"], s["spec"]["pool"]["name"], d["name"]))
        return taken

    def part(self):
        profile = self.r.choices(list(PROFILES), [6, 2, 3, 3, 1, 1])[0]
        return {"deviceClassName": "mig", "allocationMode": "ExactCount", "count": self.r.choices([1, 2, 3], [6, 2, 1])[0],
                "selectors": [selector('device.attributes["gpu.nvidia.com"].profile == "%s"' % profile)]}

    def claim(self, number):
        whole = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": self.r.choice([1, 1, 2])}
        nic = {"deviceClassName": "nic", "allocationMode": "ExactCount", "count": 1}
        kind, constraints = self.r.randrange(6), []
        first = {"name": "a", "exactly": whole if kind < 2 else self.part()}
        if kind == 5:
            first = {"name": "a", "firstAvailable": [{"name": "big", **whole}, {"name": "small", **self.part()}]}
        requests = [first]
        if self.chance(0.5):
            requests.append({"name": "b", "exactly": nic if self.chance(0.7) else self.part()})
            if self.chance(0.7):
                constraints.append({"matchAttribute": "resource.kubernetes.io/pcieRoot"})
        if self.chance(0.15):
            constraints.append({self.r.choice(["matchAttribute", "distinctAttribute"]): "gpu.nvidia.com/parent", "requests": ["a"]})
        return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "c%d" % number, "namespace": "default"},
                "spec": {"devices": {"requests": requests, **({"constraints": constraints} if constraints else {})}}}

    def question(self):
        slices = self.published(self.r.randrange(1, 5))
        taken = self.given_away(slices, self.r.choice([0, 0.05, 0.1, 0.3]))
        self.r.shuffle(slices)
        return {"node": {"apiVersion": "v1", "kind": "Node", "metadata": {"name": self.node}}, "slices": slices, "taken": taken,
                "classes": [{"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": name},
                             "spec": {"selectors": [selector(t) for t in texts]}} for name, texts in CLASSES],
                "claims": [self.claim(i) for i in range(self.r.choice([1, 1, 2, 3]))]}


def machine(seed):
    return Machine(seed).question()
