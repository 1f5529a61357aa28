#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Days of mixed work on one shared cluster, on three dedicated ones, and under first-come scheduling.

    bench/mixed_days.py BUILD --traces FOLDER [--day N] [--days N] [--training PERCENT] [--nodes N,...]
                         [--policy TEXT] [--network RATIO] [--ranks-of-one] [--table FILE]

FOLDER holds the published files: openb, philly, azure_llm_2023, alibaba_genai_2026 (docs/workload-format.md says where they come from).

The site has 256 GPUs in nodes of 8: 12 nodes serve two endpoints, 16 train, 4 are for trying things out.
- endpoints: pictures (replicas of 1 GPU) follow the requests per second of GenAI over its day, one day like the next; a language model (replicas
  of 4) follows Azure's tokens per minute, its hour repeated, times the hour of GenAI's day. Every 5 minutes there are as many replicas as
  the demand needs; the busiest moment of the day needs all 12 nodes. A replica is critical work; what it waits is what requests wait.
- training: Philly's jobs of 2 GPUs and more from day --day on, none over 48 h, thinned evenly to --training percent of the 16 nodes; they save
  checkpoints and lose a minute with each stop.
- trying out: openb's tasks in the order and at the pace of their arrival, each at most 8 h; they cannot be stopped. Latency-sensitive ones are
  standard, the others best-effort. As many of openb's days go into one as fill half of the 4 nodes.

Nobody says how long anything runs. Three endings stand beside each other: each kind on its own nodes, first come first served; all on one
cluster, first come first served by counting GPUs (strictly, and with skipping); and Fairlead with its defaults, three queues with the nodes
as their guarantees. --nodes names smaller shared clusters to try as well. Everything repeats to the bit.

--network RATIO: the nodes are H100 hosts with 8 cards of 400 Gb/s, four to a leaf, and so many to one between leaves. Then each gang of
training takes as much longer as the core's model of the network says of its place (a quarter of a step is communication), under all
policies alike, and that counts as time that is of no use. --ranks-of-one: training's tasks have one GPU each, as where each rank is a pod of
its own, and not all that a node gives."""

import argparse
import csv
import gzip
import io
import json
import math
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

KINDS = {"serving": 12, "training": 16, "trying": 4}  # nodes of 8
STEP_S, DAY_S = 300, 86400


def read(folder, name):
    path = Path(folder) / name
    if path.exists():
        return path.read_text()
    return gzip.open(str(path) + ".gz", "rt").read()


def rows(text):
    return list(csv.DictReader(io.StringIO(text)))


def day_of_genai(folder):
    """Demand in each step of a day, the busiest 1."""
    packed = tarfile.open(Path(folder) / "alibaba_genai_2026/qps.tar.gz").extractfile("qps.csv").read().decode()
    seen = [(float(r["timestamp_anon"]), float(r["value"])) for r in rows(packed) if r["request_type"] == "Generative Requests"]
    start, sums = min(t for t, _ in seen), [0.0] * (DAY_S // STEP_S)
    for t, value in seen:
        sums[int(t - start) // STEP_S % len(sums)] += value
    return [v / max(sums) for v in sums]


def hour_of_azure(folder):
    tokens = [0.0] * (3600 // STEP_S)
    for r in rows(read(folder, "azure_llm_2023/AzureLLMInferenceTrace_conv.csv")):
        minute = int(r["TIMESTAMP"][14:16])
        tokens[minute * 60 // STEP_S] += int(r["ContextTokens"]) + int(r["GeneratedTokens"])
    return [v / max(tokens) for v in tokens]


def replicas(name, demand, most, gpus, days):
    """One line for each stretch during which at least so many replicas are needed."""
    lines, since = [], [None] * most
    for step in range(days * len(demand) + 1):
        level = math.ceil(demand[step % len(demand)] * most) if step < days * len(demand) else 0
        for i in range(most):
            if i < level and since[i] is None:
                since[i] = step
            if i >= level and since[i] is not None:
                lines.append((since[i] * STEP_S, "%s-%d-%d" % (name, i, since[i]), (step - since[i]) * STEP_S, 1, gpus, "serving", "inference", "critical", ""))
                since[i] = None
    return lines


def serving(folder, days):
    day, hour = day_of_genai(folder), hour_of_azure(folder)
    language = [d * hour[i % len(hour)] for i, d in enumerate(day)]
    language = [v / max(language) for v in language]
    return replicas("picture", day, 48, 1, days) + replicas("language", language, 12, 4, days)


def training(folder, first_day, days, percent, ranks_of_one):
    lines, offered = [], 0
    wanted = [r for r in rows(read(folder, "philly/philly_jobs_sep_oct2017.csv"))
              if int(r["num_gpu"]) >= 2 and first_day * DAY_S <= int(r["submit_s"]) < (first_day + days) * DAY_S]
    work = [min(int(r["duration_s"]), 48 * 3600) * int(r["num_gpu"]) for r in wanted]
    keep = min(1.0, KINDS["training"] * 8 * days * DAY_S * percent / 100 / sum(work))
    for r, w in zip(wanted, work):
        offered += w * keep
        if offered < w / 2:  # so much has gone by since the last one that was taken
            continue
        offered -= w
        gpus = int(r["num_gpu"])
        width = 1 if ranks_of_one else max(d for d in range(1, 9) if gpus % d == 0)
        lines.append((int(r["submit_s"]) - first_day * DAY_S, "philly-" + r["job_id"], max(1, w // gpus), gpus // width, width, "training", "training", "standard", "yes"))
    return lines


def trying(folder, days):
    tasks = [r for r in rows(read(folder, "openb/openb_pod_list_default.csv")) if int(r["num_gpu"]) >= 1]
    tasks = [r for r in tasks if 120 * DAY_S <= int(r["creation_time"]) < 148 * DAY_S and int(r["deletion_time"]) > int(r["creation_time"])]
    work = [min(int(r["deletion_time"]) - int(r["creation_time"]), 8 * 3600) * int(r["num_gpu"]) * int(r["gpu_milli"]) / 1000 for r in tasks]
    quicker = KINDS["trying"] * 8 * 0.5 * 28 * DAY_S / sum(work)
    lines = []
    for r in tasks:
        at = int((int(r["creation_time"]) - 120 * DAY_S) / quicker)
        if at < days * DAY_S:
            gpus = r["num_gpu"] if int(r["num_gpu"]) > 1 else "%g" % (int(r["gpu_milli"]) / 1000)
            lines.append((at, r["name"], min(int(r["deletion_time"]) - int(r["creation_time"]), 8 * 3600), 1, gpus, "trying", "batch",
                          "best-effort" if r["qos"] == "BE" else "standard", ""))
    return lines


def workload(path, lines):
    out = ["#fairlead-workload 1", "submit_s,job,run_s,tasks,gpus,queue,kind,tier,checkpoints,restart_s"]
    out += ["%d,%s,%d,%d,%s,%s,%s,%s,%s,%s" % (*line, "60" if line[-1] else "") for line in sorted(lines)]
    path.write_text("\n".join(out) + "\n")
    return path


LEAF = 4  # nodes


def site(nodes, network):
    if not network:
        return 'cluster:\n  nodes:\n    - {name: "n[0-%d]", gpus: 8}\n' % (nodes - 1)
    text = "cluster:\n  levels: [spine, leaf]\n  fabric: {hosts: {nics: 8, nic: ndr}, levels: {spine: {oversubscription: %g}}}\n  nodes:\n" % network
    for first in range(0, nodes, LEAF):
        last = min(first + LEAF, nodes) - 1
        text += '    - {name: "n[%d-%d]", gpus: 8, model: H100-80GB, spine: s0, leaf: l%d}\n' % (first, last, first // LEAF)
    return text


def cluster(path, nodes, kinds, policy, network):
    """The guarantees are the nodes that each kind would have of its own; on a smaller cluster serving keeps its own."""
    rest = nodes - sum(KINDS[k] for k in kinds if k == "serving")
    others = sum(KINDS[k] for k in kinds if k != "serving")
    text = site(nodes, network) + "queues:\n"
    for k in kinds:
        text += "  - {name: %s, guarantee: %d}\n" % (k, KINDS[k] * 8 if k == "serving" else max(0, rest) * 8 * KINDS[k] // others)
    path.write_text(text + "policy: %s\n" % policy)
    return path


def mean(values):
    return sum(values) / len(values) if values else 0.0


def share(values, part):
    values = sorted(values)
    return values[min(len(values) - 1, int(part * len(values)))] if values else 0.0


class Bench:
    def __init__(self, args, folder, lines):
        self.fairlead, self.folder, self.days, self.policy, self.lines = Path(args.build) / "src/cli/fairlead", Path(folder), args.days, args.policy, lines
        self.network = args.network

    def run(self, nodes, kinds, policy):
        name = "%d-%s" % (nodes, "-".join(kinds))
        lines = [line for k in kinds for line in self.lines[k]]
        words = [self.fairlead, "sim", "replay", "--cluster", cluster(self.folder / (name + ".yaml"), nodes, kinds, self.policy, self.network),
                 "--workload", workload(self.folder / (name + ".csv"), lines), "--policy", policy, "--report", self.folder / name, "-o", "json"]
        subprocess.run(words, check=True, capture_output=True)
        result = json.loads((self.folder / name / "replay.json").read_text())["policies"][0]
        asked = {line[1]: line for line in lines}
        jobs = [(asked[job[0]], *(t / 1000 if t >= 0 else math.inf for t in job[1:4])) for job in result["jobs"]]
        course, used = result["course"], 0.0
        for i, point in enumerate(course["points"]):
            since = course["from_s"] + i * course["piece_s"]
            used += point[0] * nodes * 8 * max(0, min(since + course["piece_s"], self.days * DAY_S) - since)
        return jobs, result["figures"], used / 3600

    def row(self, name, nodes, runs):
        """runs: (jobs, figures) of one cluster or of several side by side."""
        jobs, end = [j for run in runs for j in run[0]], self.days * DAY_S
        of = {k: [j for j in jobs if j[0][5] == k] for k in KINDS}
        done = sum(j[0][2] * j[0][3] * float(j[0][4]) for k in ("training", "trying") for j in of[k] if j[3] <= end) / 3600
        useful = sum(r[2] * (1 - (r[1]["lost_gpu_h"] + r[1].get("network_gpu_h", 0)) / r[1]["used_gpu_h"]) for r in runs)
        used, lost, slowed = sum(r[2] for r in runs), sum(r[1]["lost_gpu_h"] for r in runs), sum(r[1].get("network_gpu_h", 0) for r in runs)
        return [name, nodes * 8, "%.1f" % (100 * used / (nodes * 8 * end / 3600)), "%.0f" % useful, "%.0f" % done,
                "%.0f" % share([j[2] - j[1] for j in of["serving"]], 0.99), "%.0f" % max(j[2] - j[1] for j in of["serving"]),
                "%.0f" % mean([j[2] - j[1] for j in of["trying"]]), "%.0f" % mean([j[2] - j[1] for j in of["training"]]),
                "%.0f" % mean([j[3] - j[1] for j in of["training"]]), "%.0f" % share([j[3] - j[1] for j in of["training"]], 0.99),
                sum(r[1]["evictions"] for r in runs), "%.0f" % lost, "%.0f" % slowed]


HEAD = ["", "GPUs", "in use %", "GPU-hours of use", "of what ended", "endpoint waits P99 s", "at most s", "trying out waits s", "training waits s",
        "training takes s", "P99 s", "stopped", "GPU-hours lost", "to the network"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--traces", required=True)
    parser.add_argument("--day", type=int, default=28, help="Philly's day that is the first; default 28")
    parser.add_argument("--days", type=int, default=7)
    parser.add_argument("--training", type=int, default=60, help="percent of the training nodes' time; default 60")
    parser.add_argument("--nodes", default="28,24,20")
    parser.add_argument("--policy", default="{}", help="what differs from Fairlead's defaults, as in a cluster file")
    parser.add_argument("--network", type=float, default=0, metavar="RATIO")
    parser.add_argument("--ranks-of-one", action="store_true")
    parser.add_argument("--table")
    args = parser.parse_args()
    lines = {"serving": serving(args.traces, args.days), "training": training(args.traces, args.day, args.days, args.training, args.ranks_of_one),
             "trying": trying(args.traces, args.days)}
    for kind, all_of in lines.items():
        asked = sum(line[2] * line[3] * float(line[4]) for line in all_of)
        print("%s: %d jobs, %.1f %% of its %d nodes" % (kind, len(all_of), 100 * asked / (KINDS[kind] * 8 * args.days * DAY_S), KINDS[kind]), file=sys.stderr)
    everything = sum(KINDS.values())
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(args, folder, lines)
        table = []
        for policy, said in (("plain:fifo-skip", "first come"), ("fairlead", "Fairlead")):
            table.append(bench.row("dedicated, " + said, everything, [bench.run(n, [k], policy) for k, n in KINDS.items()]))
        for nodes in [everything] + [int(n) for n in args.nodes.split(",") if n]:
            for policy, said in (("plain:fifo-strict", "first come, strictly"), ("plain:fifo-skip", "first come, skipping"), ("fairlead", "Fairlead")):
                table.append(bench.row("shared, " + said, nodes, [bench.run(nodes, list(KINDS), policy)]))
    text = "\n".join("| " + " | ".join(map(str, row)) + " |" for row in [HEAD, ["---"] * len(HEAD), *table]) + "\n"
    print(text, end="")
    if args.table:
        Path(args.table).write_text(text)


if __name__ == "__main__":
    main()
