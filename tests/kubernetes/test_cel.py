# SPDX-License-Identifier: Apache-2.0
"""Expressions about devices have the answer that kube-scheduler gives, or none. The other side is its own compiler (bed/cel.go)."""

import collections
import json
import os
import subprocess

import expressions
import harness
from bed import programs

OURS = os.path.join(harness.BUILD, "tests/kubernetes/cel_answers")
EXPRESSIONS = int(os.environ.get("FAIRLEAD_TEST_EXPRESSIONS", "20000"))  # each about five devices
FIRST = int(os.environ.get("FAIRLEAD_TEST_FIRST_EXPRESSION", "1"))
AT_ONCE = 20000

# Of drivers, their documentation and the examples of Kubernetes.
IN_USE = """
device.driver == "gpu.nvidia.com"
device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'gpu'
device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'mig'
device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'vfio'
device.driver == 'compute-domain.nvidia.com' && device.attributes['compute-domain.nvidia.com'].type == 'channel' && device.attributes['compute-domain.nvidia.com'].id == 0
device.attributes["gpu.nvidia.com"].productName.lowerAscii().matches('^.*a100.*$')
device.attributes['gpu.nvidia.com'].productName == 'NVIDIA A100-SXM4-80GB'
device.attributes['gpu.nvidia.com'].profile == '1g.10gb'
device.attributes['gpu.nvidia.com'].index == 0
device.attributes['gpu.nvidia.com'].index in [0, 1, 2, 3]
device.attributes['gpu.nvidia.com'].uuid == "GPU-8d5e-44"
device.capacity['gpu.nvidia.com'].memory.compareTo(quantity('40Gi')) >= 0
device.capacity['gpu.nvidia.com'].memory.isGreaterThan(quantity('40Gi'))
device.capacity["gpu.nvidia.com"].memory == quantity("80Gi")
device.attributes['gpu.nvidia.com'].cudaComputeCapability.compareTo(semver('9.0.0')) >= 0
device.attributes['gpu.nvidia.com'].driverVersion.isGreaterThan(semver('550.0.0'))
device.attributes['gpu.nvidia.com'].architecture == 'Hopper'
device.attributes['gpu.nvidia.com'].brand in ['Nvidia', 'Tesla']
"resource.kubernetes.io" in device.attributes && "pcieRoot" in device.attributes["resource.kubernetes.io"]
has(device.attributes["resource.kubernetes.io"].pcieRoot) && device.attributes["resource.kubernetes.io"].pcieRoot == "pci0000:01"
device.attributes["gpu.example.com"].?shared.orValue(false)
cel.bind(dra, device.attributes["dra.example.com"], dra.virtual && dra.index < 4)
!device.attributes["gpu.nvidia.com"].virtual
device.allowMultipleAllocations == true
device.attributes["gpu.nvidia.com"].productName.startsWith("NVIDIA H100") || device.attributes["gpu.nvidia.com"].productName.startsWith("NVIDIA A100")
device.attributes["gpu.nvidia.com"].family.split(",").exists(f, f == "b")
device.driver.endsWith(".nvidia.com") && size(device.attributes) > 0
isSemver("1.2.3") && device.attributes["gpu.nvidia.com"].cudaDriverVersion.major() >= 12
"""


def ask(program, questions):
    text = "".join(json.dumps(q) + "\n" for q in questions)
    made = subprocess.run([program], input=text.encode(), stdout=subprocess.PIPE, check=True)
    answers = [json.loads(line) for line in made.stdout.decode().splitlines()]
    assert len(answers) == len(questions)
    return answers


def both(questions):
    return (ask(OURS, questions), ask(os.path.join(programs(), "cel-answers"), questions))


def compared(questions):
    """How many answers of each kind; and the questions that are answered otherwise. Not valid and failed are one: no device is chosen, and the
    user is told; which of the two it is hangs on how much a compiler looks at beforehand."""
    counts, different = collections.Counter(), []
    for question, ours, theirs in zip(questions, *both(questions)):
        for i in range(len(question["devices"])):
            mine, other = ours["answers"][i if len(ours["answers"]) > 1 else 0], theirs["answers"][i if len(theirs["answers"]) > 1 else 0]
            if mine == "refused" or mine == other:
                counts[mine] += 1
            elif {mine, other} == {"failed", "invalid"}:
                counts["both bad"] += 1
            else:
                different.append((question["expression"], question["devices"][i], mine, ours["why"], other, theirs.get("why")))
    return counts, different


def test_generated_expressions_have_the_answer_of_kube_scheduler_or_none():
    counts, different = collections.Counter(), []
    for first in range(FIRST, FIRST + EXPRESSIONS, AT_ONCE):
        n, d = compared([expressions.question(seed) for seed in range(first, min(first + AT_ONCE, FIRST + EXPRESSIONS))])
        counts += n
        different += d
    print(dict(counts))
    assert not different, different[:3]
    assert counts.total() == 5 * EXPRESSIONS
    assert min(counts["yes"], counts["no"], counts["failed"]) > counts.total() / 10, "the generator asks too little"
    assert counts["refused"] < counts.total() / 20


def test_expressions_that_are_in_use_are_answered():
    devices = [expressions.Maker(seed).device() for seed in range(200)]
    questions = [{"expression": line, "devices": devices} for line in IN_USE.split("\n") if line]
    counts, different = compared(questions)
    assert not different, different[:3]
    assert counts["refused"] == counts["invalid"] == 0, counts
    assert min(counts["yes"], counts["no"]) > 300, counts


def test_what_is_not_built_is_refused_by_name():
    for text, word in (("device.attributes['a'].b.format([1]) == ''", "format"), ("ip('1.2.3.4').family() == 4", "ip"), ("1.5 < 2.0", "point"),
                       ("sets.contains([1], [1])", "sets.contains"), ("dyn(1) == 1", "dyn"), ("{'a': 1}.a == 1", "maps"), ("null == null", "null")):
        answer = ask(OURS, [{"expression": text, "devices": []}])[0]
        assert answer["answers"] == ["refused"] and word in answer["why"], (text, answer)
