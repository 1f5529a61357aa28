# SPDX-License-Identifier: Apache-2.0
"""The nodes on which a pod may run are those that kube-scheduler's own plugins leave: 3,000 generated pods, all predicates. What is known to
differ stands in docs/kubernetes-nodes.md, and the generator makes none of it."""

import json
import os
import random
import subprocess

import generate
import harness
from bed import programs

SEED, PODS, EACH = int(os.environ.get("FAIRLEAD_SEED", "5")), 3000, 30


def answers(program, text):
    done = subprocess.run([program], input=text, stdout=subprocess.PIPE, text=True, check=True)
    return dict(line.split(":", 1) for line in done.stdout.splitlines())


def text_of(seed, pods):
    parts = []
    for first in range(0, pods, EACH):
        rng = random.Random("%d/%d" % (seed, first))
        parts.append("".join(json.dumps(thing) + "\n" for thing in generate.cluster(rng, EACH, first)))
    return "---\n".join(parts)


def test_the_same_nodes_as_the_stock_scheduler():
    text = text_of(SEED, PODS)
    ours, theirs = answers(os.path.join(harness.BUILD, "src/engine/kubernetes_feasible"), text), answers(os.path.join(programs(), "feasible-nodes"), text)
    assert len(ours) == len(theirs) == PODS
    differ = [name for name in ours if ours[name].split("|")[0].split() != theirs[name].split("|")[0].split()]
    for name in differ[:5]:
        print("%s\n  ours  %s\n  stock %s\n  %s" % (name, ours[name], theirs[name], next(line for line in text.splitlines() if '"uid": "%s"' % name in line)))
    assert not differ, "%d of %d pods, seed %d" % (len(differ), PODS, SEED)
    # The comparison says something only where each predicate decides, and where it does not decide everything.
    fits = sum(len(a.split("|")[0].split()) for a in ours.values())
    assert PODS < fits < PODS * generate.NODES - PODS
    for reason in ("taint", "cordoned", "node affinity", "host port", "number of pods", "resources", "volume", "topology spread", "pod affinity", "pod anti-affinity"):
        assert sum("(%s)" % reason in a for a in ours.values()) > PODS // 100, reason
