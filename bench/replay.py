#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Public traces on the core and under plain policies, beside what is published.

    bench/replay.py BUILD --traces FOLDER [--only muri|lists|slow] [--policy TEXT] [--table FILE]

FOLDER holds the published files, unpacked or as .gz, in folders of their own: muri_philly, philly, helios_venus,
alibaba_pai_2020_sample. docs/workload-format.md says where they come from.

muri: 64 GPUs, mean completion and makespan; Fairlead blind, and with the run times as estimates. lists: N nodes of 8 GPUs, mean delay; Fairlead blind
without eviction, and blind where all jobs save checkpoints and lose 60 s each time they are stopped. The first row of each is a published
or given figure, met by a plain policy: only then do the others mean anything. Everything repeats to the bit. --policy says what differs
from the defaults, as in a cluster file, so that a rule can be left out: `--policy "{take_turns: false}"`. For openb: bench/openb.c.

slow (only with --only slow): trace1 four times, each copy an hour after the one before: 5,976 jobs, of which thousands wait, blind."""

import argparse
import gzip
import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

MURI = {  # SRTF, SRSF as published, bound without sharing: mean completion in s
    "trace1": (1370603, 980141, 810339), "trace3": (193082, 185022, 134707),
    "trace1_pr": (2303544, 1801860, 1777526), "trace3_pr": (844395, 798058, 782425)}
LISTS = {  # nodes, FIFO 50 as given: mean delay, P99
    "philly": (62, "philly/philly_jobs_sep_oct2017.csv", 515925, 967711),
    "helios": (64, "helios_venus/venus_apr_jul2020.csv", 158123, 773113),
    "pai": (58, "alibaba_pai_2020_sample/pai_first_half.csv", 2147, 39861)}


def spent():
    """Processor time of the programs so far, in s: what else the machine does is not in it."""
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime


class Bench:
    def __init__(self, args, folder):
        self.fairlead = str(Path(args.build) / "src/cli/fairlead")
        self.traces, self.folder, self.rows = Path(args.traces), Path(folder), []
        self.policy = args.policy

    def text(self, name):
        plain = self.traces / name
        if plain.exists():
            return plain.read_text()
        return gzip.open(str(plain) + ".gz", "rt").read()

    def convert(self, form, name, *more):
        out = self.folder / (form + Path(name).name)
        subprocess.run([self.fairlead, "sim", "convert", "--from", form, *more, "--out", out, "-"], input=self.text(name), text=True, check=True)
        return out

    def replay(self, cluster, workload, *policies):
        before = spent()
        words = [self.fairlead, "sim", "replay", "--cluster", cluster, "--workload", workload, "-o", "json"]
        for policy in policies:
            words += ["--policy", policy]
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        return [p["figures"] for p in json.loads(done.stdout)["policies"]], spent() - before

    def nodes(self, count):
        path = self.folder / f"{count}.yaml"
        path.write_text(f'cluster:\n  nodes:\n    - {{name: "n[0-{count - 1}]", gpus: 8}}\npolicy: {self.policy}\n')
        return path

    def with_columns(self, workload, more):
        """The same with columns added: `more` makes their values of a job's fields."""
        lines = Path(workload).read_text().splitlines()
        names = lines[1].split(",")
        out = Path(str(workload) + ".more")
        rows = []
        for line in lines[2:]:
            fields = dict(zip(names, line.split(",")))
            rows.append({**fields, **more(fields)})
        columns = list(rows[0])
        out.write_text("\n".join([lines[0], ",".join(columns)] + [",".join(r[c] for c in columns) for r in rows]) + "\n")
        return out

    def row(self, *cells):
        self.rows.append("| " + " | ".join(str(c) for c in cells) + " |")
        print(self.rows[-1], flush=True)


def muri(bench):
    overheads = bench.folder / "overheads.csv"
    overheads.write_text(bench.text("muri_philly/restart_overhead_s.csv"))
    bench.row("muri trace", "SRTF: published", "here", "SRSF: published", "here", "bound", "Fairlead blind: mean, evictions a job, makespan", "with estimates")
    for name, (srtf, srsf, bound) in MURI.items():
        workload = bench.convert("muri", f"muri_philly/{name}.csv", "--overheads", overheads)
        (a, b), _ = bench.replay(bench.nodes(8), workload, "plain:srtf", "plain:srsf")
        told = bench.with_columns(workload, lambda f: {"estimate_s": f["run_s"]})
        (blind,), _ = bench.replay(bench.nodes(8), workload)
        (ours,), _ = bench.replay(bench.nodes(8), told)
        mean = lambda f: f"{f['completion_s']['mean']:,.0f}"
        stopped = lambda f: f"{mean(f)}, {f['evictions'] / f['jobs']:.2f}, {f['makespan_s']:,.0f}"
        bench.row(name, f"{srtf:,}", mean(a), f"{srsf:,}", mean(b), f"{bound:,}", stopped(blind), stopped(ours))


def lists(bench):
    bench.row("list", "nodes", "FIFO 50: given, mean and P99", "here", "Fairlead blind", "with checkpoints: mean, P99, evictions a job",
              "jobs per s of processor time: blind, with checkpoints")
    for name, (nodes, path, mean, p99) in LISTS.items():
        workload = bench.convert(name, path)
        (plain,), _ = bench.replay(bench.nodes(nodes), workload, "plain:fifo-skip")
        (ours,), took = bench.replay(bench.nodes(nodes), workload)
        saves = bench.with_columns(workload, lambda f: {"checkpoints": "yes", "restart_s": "60"})
        (turns,), longer = bench.replay(bench.nodes(nodes), saves)
        pair = lambda f: f"{f['delay_s']['mean']:,.0f}, {f['delay_s']['p99']:,.0f}"
        bench.row(name, nodes, f"{mean:,}, {p99:,}", pair(plain), pair(ours), f"{pair(turns)}, {turns['evictions'] / turns['jobs']:.2f}",
                  f"{ours['jobs'] / took:,.0f}, {turns['jobs'] / longer:,.0f}")


def slow(bench):
    overheads = bench.folder / "overheads.csv"
    overheads.write_text(bench.text("muri_philly/restart_overhead_s.csv"))
    lines = bench.convert("muri", "muri_philly/trace1.csv", "--overheads", overheads).read_text().splitlines()
    names = lines[1].split(",")
    rows = [dict(zip(names, line.split(","))) for line in lines[2:]]
    copies = [{**row, "job": str(int(row["job"]) + 10000 * k), "submit_s": str(int(float(row["submit_s"])) + 3600 * k)} for k in range(4) for row in rows]
    copies.sort(key=lambda row: int(row["submit_s"]))
    out = bench.folder / "slow.csv"
    out.write_text("\n".join([lines[0], lines[1]] + [",".join(row[n] for n in names) for row in copies]) + "\n")
    (ours,), took = bench.replay(bench.nodes(8), out)
    bench.row("trace1 four times", f"{ours['jobs']} jobs", f"{took:.1f} s of processor time", f"{ours['jobs'] / took:,.0f} jobs per s")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--traces", required=True)
    parser.add_argument("--only", choices=["muri", "lists", "slow"])
    parser.add_argument("--policy", default="{}")
    parser.add_argument("--table")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(args, folder)
        for part in (muri, lists):
            if args.only in (None, part.__name__):
                part(bench)
        if args.only == "slow":
            slow(bench)
        if args.table:
            Path(args.table).write_text("\n".join(bench.rows) + "\n")


if __name__ == "__main__":
    sys.exit(main())
