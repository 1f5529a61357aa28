#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What each rule of the policy earns on generated load: each is left out in turn, by the policy's own words.

    bench/rules.py BUILD [--seeds N] [--days N] [--load PERCENT] [--spare-saves SECONDS [--save-takes SECONDS]] [--only-whole] [--table FILE]

20 nodes of 8 GPUs in two racks, half H100 and half A100, two queues with a third of the cluster promised to each; `fairlead sim generate`
makes the load. Means over the seeds; beside each the difference from all rules, seed by seed, with its standard error. Rules that are no words of the policy have tables of their own:
choice by fragments (bench/ablation.py), spot nodes (bench/spot FOLDER 100 rules), moves to faster models (bench/gavel.py --policy)."""

import argparse
import json
import statistics
import subprocess
import tempfile
from pathlib import Path

CLUSTER = """cluster:
  levels: [rack]
  nodes:
    - {name: "a[0-9]", rack: left, gpus: 8, model: H100-80GB}
    - {name: "b[0-9]", rack: right, gpus: 8, model: A100-80GB}
queues: [{name: research, guarantee: 53}, {name: product, guarantee: 53}]
"""
RULES = [
    ("nothing", "{}"),
    ("turns among equals", "{take_turns: false}"),
    ("short work goes first for a while", "{patience: 0}"),
    ("both of these", "{take_turns: false, patience: 0}"),
    ("places are kept for blocked jobs", "{backfill: {depth: 0}}"),
    ("packing", "{packing: false}"),
    ("moves on demand", "{defragment: \"off\"}"),
    ("no place is kept for ends that nobody declared", "{reserve_unsure: 0s}"),
    ("what has just begun is not stopped", "{min_runtime: 0s}"),
]
FIGURES = [("wait, mean, min", lambda f: f["wait_s"]["mean"] / 60), ("wait, P99, h", lambda f: f["wait_s"]["p99"] / 3600),
           ("delay, mean, min", lambda f: f["delay_s"]["mean"] / 60), ("delay, P99, h", lambda f: f["delay_s"]["p99"] / 3600),
           ("stopped, a job", lambda f: f["evictions"] / f["jobs"]), ("GPU-hours done twice, %", lambda f: 100 * f["lost_gpu_h"] / f["used_gpu_h"])]


def spare_saves(path, seconds, takes):
    """Best-effort jobs that save do so that often by themselves, as one that is asked to, and run longer by what that takes. They are stopped
    without a warning. Returns the GPU-hours that it takes."""
    lines, spent = [], 0
    for line in path.read_text().splitlines():
        cells = line.split(",")
        if line.startswith("job,"):
            names = cells
            line += ",checkpoint_every_s"
        elif not line.startswith("#"):
            of = dict(zip(names, cells))
            every = ""
            if of["tier"] == "best-effort" and of["checkpoints"]:
                more = int(of["run_s"]) // seconds * takes
                spent += more * int(of["tasks"]) * float(of["gpus"]) / 3600
                cells[names.index("run_s")] = str(int(of["run_s"]) + more)
                every = str(seconds + takes)
            line = ",".join(cells + [every])
        lines.append(line)
    path.write_text("\n".join(lines) + "\n")
    return spent


def cell(values, whole):
    """Mean, and the mean difference with its standard error."""
    differ = [v - w for v, w in zip(values, whole)]
    if not any(differ):
        return "%.2f" % statistics.mean(values)
    return "%.2f (%+.2f ± %.2f)" % (statistics.mean(values), statistics.mean(differ), statistics.stdev(differ) / len(differ) ** 0.5)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--days", type=int, default=14)
    parser.add_argument("--load", type=int, default=85)
    parser.add_argument("--spare-saves", type=int, metavar="SECONDS", help="best-effort jobs that save do so that often; default: only when warned")
    parser.add_argument("--save-takes", type=int, default=0, metavar="SECONDS", help="beside --spare-saves: what each checkpoint takes; default: nothing")
    parser.add_argument("--only-whole", action="store_true", help="leave no rule out")
    parser.add_argument("--table")
    a = parser.parse_args()
    fairlead = str(Path(a.build) / "src/cli/fairlead")
    lines = ["| left out | " + " | ".join(name for name, _ in FIGURES) + " |", "|---" * (1 + len(FIGURES)) + "|"]
    with tempfile.TemporaryDirectory() as folder:
        cluster, whole, spent = Path(folder) / "c.yaml", None, [0] * a.seeds
        cluster.write_text(CLUSTER)
        for seed in range(1, a.seeds + 1):
            subprocess.run([fairlead, "sim", "generate", "--cluster", cluster, "--days", str(a.days), "--load", str(a.load), "--seed", str(seed),
                            "--out", "%s/%d.csv" % (folder, seed)], check=True)
            if a.spare_saves:
                spent[seed - 1] = spare_saves(Path(folder) / ("%d.csv" % seed), a.spare_saves, a.save_takes)
        for name, policy in RULES[:1] if a.only_whole else RULES:
            rules = Path(folder) / "p.yaml"
            rules.write_text("policy: %s\n" % policy)
            of_seeds = []
            for seed in range(1, a.seeds + 1):
                done = subprocess.run([fairlead, "sim", "replay", "--cluster", cluster, "--workload", "%s/%d.csv" % (folder, seed), "--policy", rules, "-o", "json"],
                                      check=True, capture_output=True)
                figures = json.loads(done.stdout)["policies"][0]["figures"]
                figures["lost_gpu_h"] += spent[seed - 1]
                of_seeds.append([of(figures) for _, of in FIGURES])
            whole = whole or of_seeds
            lines.append("| %s | %s |" % (name, " | ".join(cell(of, all_of) for of, all_of in zip(zip(*of_seeds), zip(*whole)))))
            print(lines[-1], flush=True)
    if a.table:
        Path(a.table).write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
