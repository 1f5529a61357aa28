#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Figures of the whole system, beside the disk's own fsync and a calibration loop. Nothing is asserted; run it on a quiet machine.

    bench/run.py BUILD-FOLDER [--quick] [--json FILE]

 submit     durable submissions over HTTP on the socket: one client, and 64 clients with daemon and load on a core each
 start      `fairlead run` typed to process running, whole command included (the process writes the time it began)
 restart    kill -9 just before the next snapshot with many queued jobs; time until the daemon answers again
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "tests"))


def load(build, data, clients, requests, prefix, core):
    out = subprocess.run(["taskset", "-c", str(core), os.path.join(build, "bench/http_load"), os.path.join(data, "fairlead.sock"),
                          str(clients), str(requests), prefix], capture_output=True, text=True, check=True).stdout
    return json.loads(out)


def spread(values):
    values = sorted(values)
    return {"median": statistics.median(values), "min": values[0], "max": values[-1], "runs": len(values)}


def pin(d, core):
    subprocess.run(["taskset", "-a", "-p", "-c", str(core), str(d.process.pid)], check=True, stdout=subprocess.DEVNULL)


def bench_submit(harness, build, floor, quick):
    result = {}
    for clients, requests in ((1, 300 if quick else 2000), (64, 6000 if quick else 60000)):
        runs = []
        for i in range(3):
            with harness.Daemon() as d:
                pin(d, 0)
                runs.append(load(build, d.data, clients, requests, "b%d" % i, 1))
                d.kill()
                d.process = None
        result["%d clients" % clients] = {k: spread([r[k] for r in runs]) for k in ("per_second", "median_us", "p99_us", "p999_us")}
    one = result["1 clients"]["median_us"]["median"]
    result["1 client beyond one fdatasync, us"] = one - floor["fdatasync_median_us"]
    return result


def bench_start(harness, quick):
    took = []
    with harness.Daemon() as d:
        for _ in range(15 if quick else 60):
            mark = os.path.join(d.data, "mark")
            began = time.time_ns()
            d.run("run", "--wait", "--", "sh", "-c", "date +%%s%%N >%s" % mark)
            with open(mark) as f:
                took.append((int(f.read()) - began) / 1e6)
    return {"typed to running, ms": spread(took)}


def bench_restart(harness, build, queued):
    with harness.Daemon(nodes="sim:1x1xH100-80GB") as d:
        load(build, d.data, 64, queued, "r", 1)
        status = json.loads(subprocess.run(["curl", "-s", "--unix-socket", os.path.join(d.data, "fairlead.sock"), "http://localhost/api/v1/status"],
                                           capture_output=True, text=True).stdout or "{}")
        d.kill()
        began = time.monotonic()
        d.up()
        ready = time.monotonic() - began
        d.kill()
        size = sum(os.path.getsize(os.path.join(f, n)) for f, _, names in os.walk(os.path.join(d.data, "journal")) for n in names)
        d.process = None
        return {"queued": queued, "ready_s": round(ready, 3), "resident_mib": round(status.get("resident_bytes", 0) / 2**20),
                "journal_mib": round(size / 2**20), "longest_turn_us": status.get("longest_turn_us"), "longest_commit_us": status.get("longest_commit_us")}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("build")
    p.add_argument("--quick", action="store_true")
    p.add_argument("--json")
    p.add_argument("--only")
    a = p.parse_args()
    build = os.path.abspath(a.build)
    os.environ["FAIRLEAD_BUILD"] = build
    import harness

    floor = json.loads(subprocess.run([os.path.join(build, "bench/fsync_floor"), tempfile.gettempdir()], capture_output=True, text=True, check=True).stdout)
    result = {"floor": floor}
    parts = {
        "submit": lambda: bench_submit(harness, build, floor, a.quick),
        "start": lambda: bench_start(harness, a.quick),
        "restart": lambda: bench_restart(harness, build, 10000 if a.quick else 110000),
    }
    for name, run in parts.items():
        if not a.only or a.only == name:
            result[name] = run()
            print(json.dumps({name: result[name]}, indent=1), flush=True)
    print(json.dumps({"floor": floor}))
    if a.json:
        with open(a.json, "w") as f:
            json.dump(result, f, indent=1)


if __name__ == "__main__":
    main()
