#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How often does the search for gangs of unlike tasks miss a place, or take a wider level than it need? One gang of two or three roles comes to a
small random cluster of nodes with different GPUs, processors and memory free; all ways to spread its tasks are tried beside it.

    tests/optimal/roles.py SCENARIO-PROGRAM [--instances N] [--first SEED] [--check] [--show]

With --check it fails when more than the stated part is missed (README.md).
"""

import argparse
import random
import sys

import optimal

MISSED_MOST, WIDER_MOST = 0.02, 0.02  # of the gangs for which there is a place
LEVELS = ["node", "rack", "zone", "cluster"]


def instance(seed):
    rng = random.Random(seed)
    nodes = []
    for i in range(rng.randint(2, 5)):
        nodes.append({"name": "n%d" % i, "zone": "z%d" % (i // 4), "rack": "r%d" % (i // 2), "gpus": rng.choice([0, 1, 2, 4, 4, 8]),
                      "cpus": rng.choice([4, 8, 8, 16, 24]), "ram": rng.choice([16, 32, 64])})
    roles = []
    for i in range(rng.randint(2, 3)):
        roles.append({"name": "role%d" % i, "tasks": rng.randint(1, 4), "gpus": rng.choice([0, 0, 1, 1, 2, 3]),
                      "cpus": rng.choice([1, 1, 2, 4, 6, 8]), "ram": rng.choice([1, 4, 8, 12, 16])})
    if not any(r["gpus"] for r in roles):
        roles[0]["gpus"] = 1
    return nodes, roles


def fits(nodes, roles, at=0, node=0, left=None):
    """All tasks of the roles from `at` on find room on these nodes; each node is filled with some tasks of a role, then the next."""
    if at == len(roles):
        return True
    role = roles[at]
    left = role["tasks"] if left is None else left
    if left == 0:
        return fits(nodes, roles, at + 1)
    if node == len(nodes):
        return False
    free = nodes[node]
    most = min([left] + [free[what] // role[what] for what in ("gpus", "cpus", "ram") if role[what]])
    for count in range(most, -1, -1):
        for what in ("gpus", "cpus", "ram"):
            free[what] -= count * role[what]
        found = fits(nodes, roles, at, node + 1, left - count)
        for what in ("gpus", "cpus", "ram"):
            free[what] += count * role[what]
        if found:
            return True
    return False


def domains(nodes, level):
    if level == "node":
        return [[n] for n in nodes]
    if level == "cluster":
        return [nodes]
    return [[n for n in nodes if n[level] == d] for d in sorted({n[level] for n in nodes})]


def best_level(nodes, roles):
    """0 node .. 3 cluster; None: there is no place."""
    order = sorted(roles, key=lambda r: -r["tasks"] * (r["gpus"] + r["cpus"]))
    for at, level in enumerate(LEVELS):
        if any(fits(d, order) for d in domains(nodes, level)):
            return at
    return None


def document(seed):
    nodes, roles = instance(seed)
    lines = ["name: s%d" % seed, "cluster:", "  levels: [zone, rack]", "  nodes:"]
    for n in nodes:
        lines.append("    - {name: %s, zone: %s, rack: %s, gpus: %d, cpus: %d, ram: %dGiB}" % (n["name"], n["zone"], n["rack"], n["gpus"], n["cpus"], n["ram"]))
    words = ", ".join("{name: %s, tasks: %d, gpus: %d, cpus: %d, ram: %dGiB}" % (r["name"], r["tasks"], r["gpus"], r["cpus"], r["ram"]) for r in roles)
    return "\n".join(lines + ["policy: {backfill: {depth: 0}}", "jobs:", "  - {name: gang, kind: training, roles: [%s]}" % words, "expect:", "  - {evicted: []}", ""])


def level_of(nodes, names):
    used = [n for n in nodes if n["name"] in names]
    for at, level in enumerate(("name", "rack", "zone")):
        if len({n[level] for n in used}) == 1:
            return at
    return 3


def main():
    words = argparse.ArgumentParser()
    words.add_argument("program")
    words.add_argument("--instances", type=int, default=300)
    words.add_argument("--first", type=int, default=1)
    words.add_argument("--check", action="store_true")
    words.add_argument("--show", action="store_true")
    given = words.parse_args()
    seeds = range(given.first, given.first + given.instances)
    traces = optimal.ask(given.program, {"s%d" % s: document(s) for s in seeds})
    there, missed, wider = 0, [], []
    for seed in seeds:
        nodes, roles = instance(seed)
        least = best_level(nodes, roles)
        placed = traces["s%d" % seed].placed.get("gang")
        assert least is not None or not placed, "seed %d: placed where there is no place" % seed
        there += least is not None
        if least is not None and not placed:
            missed.append(seed)
        elif placed and level_of(nodes, placed) > least:
            wider.append(seed)
    print("%d gangs of unlike tasks, a place for %d: %d of them missed (%.1f %%), %d on a wider level than need be (%.1f %%)" % (
        given.instances, there, len(missed), 100 * len(missed) / there, len(wider), 100 * len(wider) / there))
    if given.show:
        print("missed: %s\nwider: %s" % (missed, wider))
        for seed in (missed + wider)[:3]:
            print(document(seed))
    if given.check and (len(missed) > MISSED_MOST * there or len(wider) > WIDER_MOST * there):
        return "more than %.0f %% missed, or %.0f %% wider" % (100 * MISSED_MOST, 100 * WIDER_MOST)
    return 0


if __name__ == "__main__":
    sys.exit(main())
