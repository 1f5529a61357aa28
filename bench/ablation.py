#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which rules of the choice by fragments earn their place: each is left out of a copy of the core in turn, and openb runs.

    bench/ablation.py FOLDER [--lists NAME,...] [--seeds N] [--table FILE]

FOLDER has the published lists of openb (see bench/openb.c). All edits are made to one copy, which is built once; a number in the
environment says which rule is out, as in scripts/campaign-mutations, whose parts this uses. Writes a table: percent of the GPUs that stay
open when as much as there is has been asked for, mean of the seeds, and how far that is from the rule in its place."""

import argparse
import importlib.machinery
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LISTS = "default,cpu050,gpushare100,gpuspec10,multigpu40"
RULES = [
    {"rule": "a difference of less than a sixteenth of a GPU is chance", "file": "placement/fragment.c",
     "find": "return choice->search->space->demand.many ? (growth", "put": "return !MUT && choice->search->space->demand.many ? (growth"},
    {"rule": "among equal places the lowest rank", "file": "placement/fragment.c",
     "find": "if (choice->search->space->demand.many && (int32_t)rank != choice->rank)", "put": "if (!MUT && choice->search->space->demand.many && (int32_t)rank != choice->rank)"},
    {"rule": "free GPUs are broken, fuller nodes passed over, where many ask", "file": "placement/fragment.c",
     "find": "free <= max && choice.seen < PLACES && (many || !choice.seen);", "put": "free <= max && choice.seen < PLACES && ((many && !MUT) || !choice.seen);"},
    {"rule": "32 places are weighed (left out: 8)", "file": "placement/fragment.c",
     "find": "enum { PLACES = 32, GROWTH_STEPS = 16 };", "put": "enum { GROWTH_STEPS = 16 };\n#define PLACES (MUT ? 8U : 32U)"},
    {"rule": "nodes that are alike count as one", "file": "placement/fragment.c",
     "find": "if (idle_same(here, &idle[1 - turn]))", "put": "if (!MUT && idle_same(here, &idle[1 - turn]))"},
    {"rule": "shared GPUs are of no use to wishes for whole ones", "file": "placement/fragment.c",
     "find": "+ idle->sum * fits.whole;", "put": "+ (MUT ? 0 : idle->sum * fits.whole);"},
    {"rule": "shared GPUs are of no use to larger parts", "file": "placement/fragment.c",
     "find": "sum += (int64_t)idle->open[g] * fits.small[g];", "put": "sum += MUT ? 0 : (int64_t)idle->open[g] * fits.small[g];"},
    {"rule": "what does not run on the node has no use for it", "file": "placement/fragment.c",
     "find": "sum = all * (demand->all - fits.weight)", "put": "sum = (MUT ? 0 : all) * (demand->all - fits.weight)"},
]


def mutations():
    path = str(ROOT / "scripts/campaign-mutations")
    loader = importlib.machinery.SourceFileLoader("mutations", path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("mutations", loader))
    loader.exec_module(module)
    return module


def build(folder):
    out = folder / "build-ablation"
    subprocess.run(["meson", "setup", str(out), str(folder), "-Dwerror=false"], check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["ninja", "-C", str(out), "-j2", "bench/openb"], check=True, stdout=subprocess.DEVNULL)
    return out / "bench/openb"


def measure(program, folder, name, seeds, number):
    out = subprocess.run([str(program), folder, name, str(seeds), "choice"], env=dict(os.environ, MUTANT=str(number)),
                         capture_output=True, text=True, check=True).stdout
    return float(re.search(r"^fragments +unallocated +([\d.]+) %", out, re.M)[1])


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("folder")
    a.add_argument("--lists", default=LISTS)
    a.add_argument("--seeds", type=int, default=10)
    a.add_argument("--table", help="write the table here too")
    a = a.parse_args()
    m, lists = mutations(), a.lists.split(",")
    copy = Path(tempfile.mkdtemp(prefix="fairlead-ablation-"))
    try:
        m.copy_tree(copy)
        lost = m.edit(copy, RULES)
        if lost:
            sys.exit("\n".join(lost))
        program = build(copy)
        whole = [measure(program, a.folder, name, a.seeds, 0) for name in lists]
        lines = ["| left out | " + " | ".join(lists) + " |", "|---" * (1 + len(lists)) + "|",
                 "| nothing | " + " | ".join("%.2f" % v for v in whole) + " |"]
        print("\n".join(lines), flush=True)
        for number, rule in enumerate(RULES, 1):
            values = [measure(program, a.folder, name, a.seeds, number) for name in lists]
            lines.append("| %s | " % rule["rule"] + " | ".join("%.2f (%+.2f)" % (v, v - w) for v, w in zip(values, whole)) + " |")
            print(lines[-1], flush=True)
        if a.table:
            Path(a.table).write_text("\n".join(lines) + "\n")
    finally:
        shutil.rmtree(copy)


if __name__ == "__main__":
    main()
