# SPDX-License-Identifier: Apache-2.0
"""Claims get the devices that kube-scheduler's own allocator gives them. The other side is k8s.io/dynamic-resource-allocation (bed/devices.go)."""

import collections
import os

import devices
import harness
from bed import programs
from test_cel import ask

OURS = os.path.join(harness.BUILD, "src/engine/kubernetes_devices_answers")
QUESTIONS = int(os.environ.get("FAIRLEAD_TEST_DEVICES", "3000"))
FIRST = int(os.environ.get("FAIRLEAD_TEST_FIRST_DEVICES", "1"))


def has_distinct(question):
    return any("distinctAttribute" in c for claim in question["claims"] for c in claim["spec"]["devices"].get("constraints", []))


def all_are_distinct(question, given):
    """Whether what a claim got holds its own distinctAttribute, for all devices that it is about."""
    attributes = {"%s/%s/%s" % (s["spec"]["driver"], s["spec"]["pool"]["name"], d["name"]): (s["spec"]["driver"], d.get("attributes", {}))
                  for s in question["slices"] for d in s["spec"].get("devices", [])}
    for claim in question["claims"]:
        for constraint in claim["spec"]["devices"].get("constraints", []):
            name = constraint.get("distinctAttribute")
            values = []
            for line in given if name else []:
                who, request, device = line.split(" ")
                wanted = constraint.get("requests")
                if who != claim["metadata"]["name"] or (wanted and request not in wanted and request.split("/")[0] not in wanted):
                    continue
                driver, has = attributes[device]
                domain, own = name.split("/")
                values.append(str(has.get(name) or (has.get(own) if domain == driver else None)))
            if len(values) != len(set(values)):
                return False
    return True


def compared(generate, count):
    """How often both said what; no difference is left."""
    questions = [generate(seed) for seed in range(FIRST, FIRST + count)]
    ours, theirs = ask(OURS, questions), ask(os.path.join(programs(), "device-answers"), questions)
    counts, different = collections.Counter(), []
    for seed, (question, mine, other) in enumerate(zip(questions, ours, theirs), FIRST):
        same = mine["given"] == other["given"] if mine["answer"] == "fits" else True
        if mine["answer"] == other["answer"] and same:
            counts[mine["answer"]] += 1
        elif {mine["answer"], other["answer"]} == {"none", "bad"} and not mine["given"]:
            counts["not, for another reason"] += 1
        elif has_distinct(question) and other["answer"] == "fits" and not all_are_distinct(question, other["given"]):
            counts["kube-scheduler forgets a value that must be distinct"] += 1
        else:
            different.append((seed, mine, other))
    print(dict(counts))
    assert not different, (len(different), different[:3])
    return counts


def test_generated_claims_get_the_devices_that_kube_scheduler_gives_them():
    counts = compared(devices.question, QUESTIONS)
    assert min(counts["fits"], counts["none"], counts["bad"]) > QUESTIONS / 20, counts


def test_parts_of_gpus_and_network_cards_are_those_that_kube_scheduler_gives():
    counts = compared(devices.machine, QUESTIONS // 2)
    assert min(counts["fits"], counts["none"]) > QUESTIONS / 10, counts
