#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Figures of the whole system as a table, beside what the machine itself gives. Nothing is asserted; run it on a quiet machine.

    bench/run.py BUILD [--against BUILD] [--rounds N] [--disk FOLDER] [--quick] [--only PART] [--table FILE] [--json FILE]

 submit     durable submissions of about 1 KB over HTTP on the socket: one client, and 64 clients; daemon on one core, load on another
 start      `fairlead run` typed to process running: the whole command included (the process writes the time it began)
 restart    the daemon is killed with many jobs and no snapshot behind the 100,000th record; time until it greets again
            and memory, journal and the core's longest turn of that load
 running    the same with 100,000 waiting and 10,000 running jobs on 1,250 simulated nodes: the journal is made by bench/journal_fill

Each round measures the machine first (fdatasync of 4 KiB written over and appended; a fixed loop), then every part once, so that what else the machine did
falls on all alike; shown are median, least and most of the rounds. With --against a second build is measured in the same rounds,
turn about, and the table has the ratio of each pair. Data folders are made in --disk, which should be a disk: the default is the
system's folder for temporary files. What is in memory there makes every commit look free.
"""

import argparse
import datetime
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))

# key, what it is, unit, goal of DESIGN 8
ROWS = [
    ("floor.fdatasync_median_us", "the machine: fdatasync of 4 KiB written over, median", "us", ""),
    ("floor.fdatasync_p99_us", "... P99", "us", ""),
    ("floor.append_median_us", "the machine: fdatasync of 4 KiB appended, median", "us", ""),
    ("floor.append_p99_us", "... P99", "us", ""),
    ("floor.loop_ms", "the machine: calibration loop", "ms", ""),
    ("one.median_us", "durable submission, 1 client: median", "us", "fdatasync + 300"),
    ("one.beyond_us", "... beyond the fdatasync of its round", "us", "300"),
    ("one.p99_us", "... P99", "us", ""),
    ("many.per_second", "64 clients, daemon on one core: submissions per second", "", "20,000"),
    ("many.median_us", "... median", "us", ""),
    ("many.p99_us", "... P99", "us", ""),
    ("many.p999_us", "... P99.9", "us", "10,000"),
    ("many.cpu_us", "... processor time of the daemon for each", "us", "50"),
    ("many.waited_us", "... its threads ready to run but waiting for the one core, added up", "us", ""),
    ("many.longest_turn_us", "... longest turn of the core", "us", "5,000"),
    ("start.median_ms", "command typed to process running: median", "ms", "50"),
    ("start.most_ms", "... most", "ms", ""),
    ("restart.ready_s", "killed with {jobs:,} jobs and no snapshot behind 100,000: until it greets", "s", "2"),
    ("restart.resident_mib", "memory of the daemon with these jobs", "MiB", ""),
    ("restart.again_mib", "... after the restart", "MiB", ""),
    ("restart.journal_mib", "journal of these submissions, bodies sealed", "MiB", ""),
    ("restart.longest_turn_us", "longest turn of the core while they came", "us", "5,000"),
    ("restart.longest_again_us", "longest turn after the restart", "us", "5,000"),
    ("running.ready_s", "killed with {waiting:,} waiting and {running:,} running jobs, no snapshot behind them: until it greets", "s", "2"),
    ("running.records", "... records that it went through", "", ""),
    ("running.again_mib", "... memory after it", "MiB", ""),
]


class Bench:
    def __init__(self, harness, build, quick):
        self.harness, self.build, self.quick = harness, build, quick
        self.jobs = 10000 if quick else 110000

    def daemon(self, **options):
        # The harness reads these when it starts a program.
        self.harness.PROGRAM = os.path.join(self.build, "src/cli/fairlead")
        self.harness.SHEPHERD = os.path.join(self.build, "src/shepherd/fairlead-shepherd")
        return self.harness.Daemon(**options)

    def load(self, d, clients, requests, prefix):
        words = [os.path.join(self.build, "bench/http_load"), os.path.join(d.data, "fairlead.sock"), str(clients), str(requests), prefix]
        return json.loads(subprocess.run(["taskset", "-c", "1"] + words, capture_output=True, text=True, check=True).stdout)

    def status(self, d):
        words = ["curl", "-s", "--unix-socket", os.path.join(d.data, "fairlead.sock"), "http://localhost/api/v1/status"]
        return json.loads(subprocess.run(words, capture_output=True, text=True, check=True).stdout)

    def submit(self, clients, requests):
        with self.daemon() as d:
            pin(d.process.pid, 0)
            self.load(d, clients, max(clients, 200), "warm")
            before = processor_us(d.process.pid)
            result = self.load(d, clients, requests, "b")
            after = processor_us(d.process.pid)
            result["cpu_us"] = (after[0] - before[0]) / requests
            result["waited_us"] = (after[1] - before[1]) / requests
            result["longest_turn_us"] = self.status(d)["longest_turn_us"]
            discard(d)
            return result

    def one(self):
        return self.submit(1, 300 if self.quick else 2000)

    def many(self):
        return self.submit(64, 6000 if self.quick else 60000)

    def start(self):
        took = []
        with self.daemon() as d:
            for _ in range(10 if self.quick else 30):
                mark = os.path.join(d.data, "mark")
                began = time.time_ns()
                d.run("run", "--wait", "--", "sh", "-c", "date +%%s%%N >%s" % mark)
                with open(mark) as f:
                    took.append((int(f.read()) - began) / 1e6)
        return {"median_ms": statistics.median(took), "most_ms": max(took)}

    def restart(self):
        with self.daemon(nodes="sim:1x1xH100-80GB") as d:
            self.load(d, 64, self.jobs, "r")
            loaded = self.status(d)
            d.kill()
            journal = os.path.join(d.data, "journal")
            size = sum(os.path.getsize(os.path.join(journal, name)) for name in os.listdir(journal))
            began = time.monotonic()
            d.up()
            ready = time.monotonic() - began
            again = self.status(d)
            discard(d)
            return {
                "ready_s": ready,
                "resident_mib": loaded["resident_bytes"] / 2**20,
                "again_mib": again["resident_bytes"] / 2**20,
                "journal_mib": size / 2**20,
                "longest_turn_us": loaded["longest_turn_us"],
                "longest_again_us": again["longest_turn_us"],
            }


    def running(self):
        running, gpus = running_of(self.jobs), 8
        nodes = -(-running // gpus)
        with self.daemon(nodes="sim:%dx%dxH100-80GB" % (nodes, gpus)) as d:
            d.run("run", "--detach", "--hold", "-g", "1", "--limit", "4h", "--", "sleep", "100000")
            d.kill()
            fill = [os.path.join(self.build, "bench/journal_fill"), d.data] + [str(n) for n in (self.jobs, running, nodes, gpus)]
            subprocess.run(fill, check=True)
            began = time.monotonic()
            d.up()
            ready = time.monotonic() - began
            again = self.status(d)
            discard(d)
            return {"ready_s": ready, "records": replayed(d), "again_mib": again["resident_bytes"] / 2**20}


def replayed(d):
    """Records behind the snapshot at the last start, as its log says."""
    return int(re.findall(r"(\d+) records behind it", d.log())[-1])


def running_of(jobs):
    return jobs // 11


def discard(d):
    """Its jobs are held and many: to cancel each would take longer than to measure."""
    d.kill()
    d.process = None


def pin(pid, core):
    subprocess.run(["taskset", "-a", "-p", "-c", str(core), str(pid)], check=True, stdout=subprocess.DEVNULL)


def processor_us(pid):
    """Processor time of all threads so far, and the time they were ready to run and did not."""
    ran = waited = 0
    for task in os.listdir("/proc/%d/task" % pid):
        with open("/proc/%d/task/%s/schedstat" % (pid, task)) as f:
            words = f.read().split()
        ran += int(words[0])
        waited += int(words[1])
    return ran / 1000, waited / 1000


def floor(build, disk):
    out = subprocess.run([os.path.join(build, "bench/fsync_floor"), disk], capture_output=True, text=True, check=True).stdout
    return json.loads(out)


def one_round(bench, disk, parts, tools):
    result = {"floor": floor(tools, disk)}
    for part in parts:
        result[part] = getattr(bench, part)()
        if part == "one":
            result[part]["beyond_us"] = result[part]["median_us"] - result["floor"]["fdatasync_median_us"]
    return result


def value_of(result, key):
    part, name = key.split(".")
    return result.get(part, {}).get(name)


def shown(number):
    return "{:,.0f}".format(number) if abs(number) >= 100 else "{:.3g}".format(number)


def spread(values):
    return "%s (%s to %s)" % (shown(statistics.median(values)), shown(min(values)), shown(max(values)))


def disk_of(folder):
    return subprocess.run(["stat", "-f", "-c", "%T", folder], capture_output=True, text=True, check=True).stdout.strip()


def machine(disk):
    with open("/proc/meminfo") as f:
        memory = int(f.readline().split()[1]) / 2**20
    return "%d processors, %.0f GiB, %s; load %.1f at the end of it" % (os.cpu_count(), memory, disk_of(disk), os.getloadavg()[0])


def table(rounds, others, jobs, disk):
    lines = ["## %s: %s" % (datetime.date.today().isoformat(), machine(disk)), "",
             "Median (least to most) of %d rounds by `bench/run.py`." % len(rounds), ""]
    head = ["what", "measured", "goal"] + (["other build", "ratio of pairs"] if others else [])
    lines += ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for key, what, unit, goal in ROWS:
        values = [value_of(r, key) for r in rounds]
        if not values or values[0] is None:
            continue
        cells = [what.format(jobs=jobs, waiting=jobs - running_of(jobs), running=running_of(jobs)), (spread(values) + " " + unit).strip(), (goal + " " + unit).strip() if goal else ""]
        if others:
            other = [value_of(r, key) for r in others]
            ratios = [a / b for a, b in zip(values, other) if b]
            cells += [(spread(other) + " " + unit).strip(), spread(ratios) if ratios else ""]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def keep(a, results, jobs):
    """After each round: rounds are long, and what was measured stays when a later one is stopped."""
    if a.table:
        with open(a.table, "w") as f:
            f.write(table(results[0], results[1] if a.against else None, jobs, a.disk))
    if a.json:
        with open(a.json, "w") as f:
            json.dump(results, f, indent=1)


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("build")
    p.add_argument("--against")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--disk", default=tempfile.gettempdir())
    p.add_argument("--quick", action="store_true", help="fewer requests, for a look")
    p.add_argument("--only", choices=("one", "many", "start", "restart", "running"))
    p.add_argument("--table")
    p.add_argument("--json")
    return p.parse_args()


def compile_benches(build):
    """They are no part of what `ninja` builds."""
    subprocess.run(["ninja", "-C", build, "src/cli/fairlead", "src/shepherd/fairlead-shepherd", "bench/http_load", "bench/fsync_floor"],
                   check=True, stdout=subprocess.DEVNULL)


def main():
    a = arguments()
    builds = [os.path.abspath(b) for b in (a.build, a.against) if b]
    for build in builds:
        compile_benches(build)
    work = tempfile.mkdtemp(prefix="fairlead-bench-", dir=a.disk)
    os.chmod(work, 0o711)
    os.environ["FAIRLEAD_TEST_TMP"], os.environ["FAIRLEAD_BUILD"] = work, builds[0]
    sys.path.insert(0, os.path.join(HERE, "..", "tests"))
    import harness

    parts = [a.only] if a.only else ["one", "many", "start", "restart", "running"]
    results = [[] for _ in builds]
    try:
        for i in range(a.rounds):
            # Turn about: neither build is always the one behind the other.
            for which in range(len(builds)) if i % 2 == 0 else reversed(range(len(builds))):
                bench = Bench(harness, builds[which], a.quick)
                results[which].append(one_round(bench, work, parts, builds[0]))
                print("round %d of %d, build %d: done" % (i + 1, a.rounds, which + 1), file=sys.stderr, flush=True)
            keep(a, results, bench.jobs)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    print(table(results[0], results[1] if a.against else None, bench.jobs, a.disk), end="")


if __name__ == "__main__":
    main()
