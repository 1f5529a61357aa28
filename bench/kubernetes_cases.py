# SPDX-License-Identifier: Apache-2.0
"""Cases on 500 nodes with 8 GPUs, for bench/kubernetes.py --cases: what a scheduler does when there is more to decide than where a pod fits.

Times are the API server's own: it writes down when it answered each request about a pod (audit log, microseconds).

fill           4,000 pods of one GPU, each by itself, onto empty nodes: from the first that was made to the last that was bound
gang           one gang of 512 pods of one GPU onto empty nodes: from its last pod to its last binding
verdict        the 4,000 hold all GPUs, and a gang of 512 comes: from its last pod to the first condition that says why it waits, and to the last
reclaim        the 4,000 are best-effort work of a queue that borrows; 125 gangs of 32 come in the queue that all GPUs are promised to: from their last pod
               to their last binding, 4,000 pods having been stopped for them
consolidation  2,000 best-effort jobs of one GPU hold 4 GPUs of each node; 41 gangs of 6 pods with 8 GPUs come, for which 246 nodes must be free as a
               whole: from the submission of the last to their last binding, and to when the jobs that made room run again, on the other nodes

kube-scheduler knows no gangs and no queues. fill and gang: it binds the same pods, one by one. verdict: it has one for each pod, none for a gang: it would
bind a part of one that fits in part. reclaim: the nearest that it has is a PriorityClass, by which each pod stops one. consolidation: it has none."""

import json
import os
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
NODES, GPUS, STALL_S = 500, 8, 300
FULL, GANG, RECLAIM, FRAGMENTS, WANTED = NODES * GPUS, 512, 32, NODES * GPUS // 2, 41
PODS = "/api/v1/namespaces/default/pods"


def seconds(stamp):
    """Of 2026-11-23T06:17:15.123456Z, within a day and over midnight."""
    hours, minutes, rest = stamp[11:-1].split(":")
    return int(stamp[8:10]) * 86400 + int(hours) * 3600 + int(minutes) * 60 + float(rest)


class Audit:
    """What the API server wrote down of pods since it was asked last: by pod, when it was made, bound, told of, deleted."""

    def __init__(self, path):
        self.path, self.at = path, os.path.getsize(path)
        self.made, self.bound, self.told, self.deleted = {}, {}, {}, {}

    def read(self):
        with open(self.path, "rb") as f:
            f.seek(self.at)
            text = f.read()
        text = text[:text.rfind(b"\n") + 1]
        self.at += len(text)
        for line in text.splitlines():
            self.note(json.loads(line))

    def note(self, e):
        of, code = e["objectRef"], e["responseStatus"]["code"]
        if code >= 300 or "name" not in of:
            return
        kinds = {("create", ""): self.made, ("create", "binding"): self.bound, ("patch", "status"): self.told, ("delete", ""): self.deleted}
        found = kinds.get((e["verb"], of.get("subresource", "")))
        if found is not None:
            found.setdefault(of["name"], seconds(e["stageTimestamp"]))

    def wait(self, what, count):
        """Until count() is reached; what it was at the end, where nothing came any more."""
        moved, before = time.monotonic(), -1
        while True:
            self.read()
            now = len([name for name in count()])
            if now >= what or time.monotonic() - moved > STALL_S:
                return now
            if now != before:
                moved, before = time.monotonic(), now
            time.sleep(0.05)

    def of(self, kind, name):
        return {k: v for k, v in getattr(self, kind).items() if k.startswith(name)}


def make(b, program, options, count, gang, name, labels="-", gpus=1, priority="-"):
    subprocess.run([options.load, "make", b.kubeconfig, program.scheduler, str(count), str(gang), name, str(gpus), labels, priority], check=True)


def fill(b, program, options, audit, labels="-"):
    make(b, program, options, FULL, 1, "full", labels)
    bound = audit.wait(FULL, lambda: audit.of("bound", "full-"))
    made, ends = audit.of("made", "full-"), audit.of("bound", "full-")
    waits = sorted((ends[name] - made[name]) * 1000 for name in ends)
    return {"pods": FULL, "bound": bound, "seconds": max(ends.values()) - min(made.values()), "per_second": bound / (max(ends.values()) - min(made.values())),
            "p50_ms": statistics.median(waits), "p99_ms": waits[int(len(waits) * 0.99)]}


def gang(b, program, options, audit):
    make(b, program, options, GANG, GANG, "gang")
    bound = audit.wait(GANG, lambda: audit.of("bound", "gang-"))
    made, ends = audit.of("made", "gang-"), audit.of("bound", "gang-")
    return {"pods": GANG, "bound": bound, "seconds": max(ends.values()) - max(made.values()), "from_first_pod_s": max(ends.values()) - min(made.values())}


def verdict(b, program, options, audit):
    fill(b, program, options, audit)
    make(b, program, options, GANG, GANG, "gang")
    told = audit.wait(GANG, lambda: audit.of("told", "gang-"))
    last, said = max(audit.of("made", "gang-").values()), audit.of("told", "gang-").values()
    words = [c["message"] for c in b.get(PODS + "/gang-0")["status"].get("conditions", []) if c["type"] == "PodScheduled"]
    # Where each pod has a verdict of its own, the first may come before the last pod.
    return {"pods": GANG, "told": told, "seconds": max(0, min(said) - last), "last_s": max(said) - last, "words": words[0] if words else ""}


def reclaim(b, program, options, audit):
    ours = program.name == "fairlead"
    if ours:
        program.run("queues", "create", "low")
        program.run("queues", "create", "high", "--guarantee", str(FULL))
    fill(b, program, options, audit, "queue=low,tier=best-effort" if ours else "-")
    make(b, program, options, FULL, RECLAIM, "high", "queue=high" if ours else "-", priority="-" if ours else "high")
    bound = audit.wait(FULL, lambda: audit.of("bound", "high-"))
    made, ends = audit.of("made", "high-"), audit.of("bound", "high-")
    return {"pods": FULL, "gangs": FULL // RECLAIM, "bound": bound, "stopped": len(audit.of("deleted", "full-")),
            "seconds": max(ends.values()) - max(made.values()) if ends else None, "from_first_pod_s": max(ends.values()) - min(made.values()) if ends else None}


def jobs_of(b):
    """GPUs that run on each node, and the jobs of one GPU there."""
    on = {}
    for pod in b.get(PODS + "?labelSelector=fairlead.dev%2Fjob")["items"]:
        if pod["spec"].get("nodeName") and pod["status"].get("phase") not in ("Succeeded", "Failed") and not pod["metadata"].get("deletionTimestamp"):
            on.setdefault(pod["spec"]["nodeName"], []).append(int(pod["metadata"]["labels"]["fairlead.dev/job"]))
    return on


def consolidation(b, program, options, audit):
    client = program.client()

    def submit(name, **more):
        status, answer = client.once("POST", "/api/v1/jobs", {"name": name, "command": ["sleep"], "image": "none", **more})
        assert status in (200, 201), (status, answer)
        return answer["id"]

    def running(of):
        on = jobs_of(b)
        return sum(job in of for jobs in on.values() for job in jobs)

    def wait(what, holds):
        end = time.monotonic() + STALL_S
        while not holds():
            assert time.monotonic() < end, "not in %d s: %s" % (STALL_S, what)
            time.sleep(0.2)
    singles = {submit("s%d" % i, gpus=1, tier="best-effort") for i in range(FULL)}
    wait("all jobs run", lambda: running(singles) == FULL)
    for jobs in jobs_of(b).values():
        for job in jobs[:GPUS // 2]:
            singles.remove(job)
            assert client.once("POST", "/api/v1/jobs/%d/cancel" % job, {})[0] < 300
    wait("half of them are gone", lambda: sum(len(jobs) for jobs in jobs_of(b).values()) == FRAGMENTS)
    audit.read()
    before = set(audit.bound)
    gangs = {submit("g%d" % i, gpus=GPUS, tasks=6) for i in range(WANTED)}
    began = time.time() % 86400
    wait("the gangs run", lambda: running(gangs) == WANTED * 6)
    wait("all jobs run again", lambda: running(singles) == FRAGMENTS)
    audit.read()
    job_of = {p["metadata"]["name"]: int(p["metadata"]["labels"]["fairlead.dev/job"]) for p in b.get(PODS + "?labelSelector=fairlead.dev%2Fjob")["items"]}
    after = {name: at % 86400 for name, at in audit.bound.items() if name not in before and name in job_of}
    big = [at for name, at in after.items() if job_of[name] in gangs]
    again = [at for name, at in after.items() if job_of[name] in singles]
    return {"gangs": WANTED, "pods": len(big), "moved": len(again), "seconds": max(big) - began, "all_again_s": max(big + again) - began}


CASES = {"fill": fill, "gang": gang, "verdict": verdict, "reclaim": reclaim, "consolidation": consolidation}
CANNOT = {("stock", "consolidation"): "cannot: it moves nothing", ("blind", "*"): "does not decide"}


def run(b, programs, options, names, left):
    """Each case by each program, as long as time is left: rows."""
    rows = []
    for name in names:
        for kind in programs:
            if (kind.name, name) in CANNOT or kind.name == "blind":
                continue
            if left() < 0:
                print("no time is left for %s by %s" % (name, kind.name), file=sys.stderr)
                continue
            b.renew()
            b.prepare_cases()
            program, audit = kind(b, NODES, options), Audit(b.path("audit.log"))
            program.start()
            try:
                figures = CASES[name](b, program, options, audit)
            finally:
                program.end()
            rows.append((name, kind.name, figures))
            print("%s %s: %s" % (name, kind.name, {k: round(v, 3) if isinstance(v, float) else v for k, v in figures.items()}), file=sys.stderr)
    return rows


def table(rows):
    lines = ["| case | by | seconds | more |", "|---|---|---|---|"]
    for name, who, figures in rows:
        more = ", ".join("%s %s" % (k, ("%.2f" % v) if isinstance(v, float) else v) for k, v in figures.items() if k not in ("seconds", "words"))
        took = figures["seconds"]
        lines.append("| %s | %s | %s | %s |" % (name, who, "none" if took is None else "%.2f" % took, more + (": " + figures["words"] if figures.get("words") else "")))
    return "\n".join(lines)
