#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Gavel's continuous traces on GPUs of three models: mean completion against load, beside what is published.

    bench/gavel.py BUILD --traces FOLDER [--kind single|multi] [--rates 4.0,4.8] [--policy TEXT] [--table FILE]

FOLDER holds gavel/continuous_single_seed0.csv, continuous_multi_seed0.csv and throughputs.csv (docs/workload-format.md says where they are
published). 36 GPUs of each of K80, P100 and V100, in servers of one GPU; jobs come at the rate, in an hour; the mean is over the jobs
numbered 4000 to 4999, in hours. Every job can save; a start from a checkpoint costs nothing, as there.

fifo-fastest is the published rule "FIFO, performance-aware": all that waits or runs is placed anew at each event in the order of submission,
each job on the fastest model that is free. It has no rounds here (published: 6 minutes), and its first seed alone (published: mean of three).
Only when it meets what is published do the other columns mean anything. Fairlead is told how fast each model is, as every heterogeneity-aware
policy there is; blind: no run times; estimates: those on a V100."""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

RATES = {"single": [2.0, 4.0, 4.8, 5.2, 5.6], "multi": [1.0, 2.0, 2.4, 2.6]}
FIFO_PERF = {  # as published, by jobs per hour
    "single": {0.4: 15.31, 2.0: 15.45, 3.2: 15.95, 4.0: 17.08, 4.4: 18.19, 4.8: 22.24, 5.2: 56.69, 5.6: 104.12, 6.0: 150.04},
    "multi": {0.2: 16.91, 1.0: 17.34, 1.6: 20.02, 2.0: 27.68, 2.4: 43.94, 2.6: 93.60, 2.8: 204.44, 3.0: 301.75}}
BEST = {  # the best published figure without sharing of GPUs
    "single": {0.4: 15.31, 2.0: 15.45, 3.2: 15.95, 4.0: 16.82, 4.4: 17.48, 4.8: 18.97, 5.2: 21.96, 5.6: 25.32, 6.0: 41.23},
    "multi": {0.2: 16.91, 1.0: 17.34, 1.6: 19.12, 2.0: 21.80, 2.4: 27.93, 2.6: 33.90, 2.8: 41.56, 3.0: 52.19}}
FIRST, END = 4000, 5000  # jobs that count
NODES = "\n".join(f'    - {{name: "{model}-[0-35]", gpus: 1, model: {model}}}' for model in ("k80", "p100", "v100"))


class Gavel:
    def __init__(self, args, folder):
        self.fairlead = str(Path(args.build) / "src/cli/fairlead")
        self.traces, self.folder = Path(args.traces) / "gavel", Path(folder)
        self.cluster = self.folder / "cluster.yaml"
        self.cluster.write_text(f"cluster:\n  nodes:\n{NODES}\npolicy: {args.policy}\n")

    def workload(self, kind, rate):
        out = self.folder / f"{kind}-{rate}.csv"
        subprocess.run([self.fairlead, "sim", "convert", "--from", "gavel", "--rate", str(rate), "--throughputs", self.traces / "throughputs.csv",
                        "--out", out, self.traces / f"continuous_{kind}_seed0.csv"], check=True)
        return out

    def told(self, workload):
        """The same with run times as estimates."""
        lines = workload.read_text().splitlines()
        at = lines[1].split(",").index("run_s")
        out = workload.with_suffix(".told.csv")
        out.write_text("\n".join([lines[0], lines[1] + ",estimate_s"] + [f"{line},{line.split(',')[at]}" for line in lines[2:]]) + "\n")
        return out

    def hours(self, workload, *policy):
        """Mean completion of the jobs that count, and evictions of each."""
        words = [self.fairlead, "sim", "replay", "--cluster", self.cluster, "--workload", workload, "-o", "json", *policy]
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        jobs = [j for j in json.loads(done.stdout)["policies"][0]["jobs"] if FIRST <= int(j[0]) < END]
        ended = [(j[3] - j[1]) / 3.6e6 for j in jobs if j[3] >= 0]
        return sum(ended) / len(ended) if len(ended) == END - FIRST else float("inf"), sum(j[5] for j in jobs) / len(jobs)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--traces", required=True)
    parser.add_argument("--kind", choices=["single", "multi"])
    parser.add_argument("--rates", help="jobs per hour, with commas between")
    parser.add_argument("--policy", default="{}")
    parser.add_argument("--table")
    args = parser.parse_args()
    rows = ["| trace, jobs per hour | FIFO on the fastest: published | here | best published without sharing | Fairlead blind, evictions a job | with estimates |"]
    print(rows[0])
    with tempfile.TemporaryDirectory() as folder:
        gavel = Gavel(args, folder)
        for kind in [args.kind] if args.kind else list(RATES):
            for rate in [float(r) for r in args.rates.split(",")] if args.rates else RATES[kind]:
                workload = gavel.workload(kind, rate)
                fifo, _ = gavel.hours(workload, "--policy", "plain:fifo-fastest")
                blind, evictions = gavel.hours(workload)
                told, more = gavel.hours(gavel.told(workload))
                rows.append(f"| {kind}, {rate} | {FIFO_PERF[kind].get(rate, '-')} | {fifo:.2f} | {BEST[kind].get(rate, '-')} "
                            f"| {blind:.2f}, {evictions:.1f} | {told:.2f}, {more:.1f} |")
                print(rows[-1], flush=True)
    if args.table:
        Path(args.table).write_text("\n".join(rows) + "\n")


if __name__ == "__main__":
    sys.exit(main())
