#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How fast pods are bound on a real API server: by Fairlead, by kube-scheduler, and by a program that binds without thinking (the limit of the
machine). A table of figures; nothing is asserted. Run it on a quiet machine.

    bench/kubernetes.py BUILD [--nodes N] [--gpus N] [--loads PODSxGANG,...] [--rounds N] [--who NAME,...] [--large | --small] [--bare]
                        [--journal FOLDER] [--json FILE] [--table FILE] [--perf FILE] [--verbose]
    bench/kubernetes.py BUILD --cases [NAME,...] [--who NAME,...] ...       reclaim, verdicts, consolidation: bench/kubernetes_cases.py
    bench/kubernetes.py BUILD --whole [--budget SECONDS] [--table FILE]     the four loads on 1,000 nodes, those on 5,000, and the cases, one after the other

Loads: 7500x1 is 7,500 pods of one GPU, 7500x20 the same in gangs of 20. By default the four of 7,500 pods on 1,000 nodes with 8 GPUs; --large the four
of 40,000 (the last of 10,000) on 5,000; --small a minute's worth on 200. Nodes and pods are played by kwok; --bare does without: then nodes do not
beat and pods do not run, and all of the machine is left to API server and scheduler.

In a round each load is bound by each program in turn, the order turned about from round to round. Each time the cluster is what it was when its nodes were
made: etcd gets their data back, and all programs start afresh. Pods are made 32 requests at a time, and a watch notes when each is seen bound. Fairlead's
journal lies in a folder of --journal, which should be a disk. etcd lies in memory.

--budget: a load is not begun when what is left of so many seconds is less than it took last time. Of --whole, the loads on 1,000 nodes have 30 % of it,
those on 5,000 have 55 %, the cases the rest; rounds beyond the first are as many as find time.

per second   pods, from the first request that makes one to the last that is seen bound
P50, P99     ms from when the API server took the pod to when it was seen bound; `gang` counts from its last pod to its last binding
calls        requests of the program's account, for each pod (the API server's own count)
CPU, memory  of the program: ms of processor time for each pod, and the most that it held
of blind, of stock   the median of the ratios of the same round: pods per second

kube-scheduler has its client's limit of requests lifted (50 a second otherwise); it knows no gangs, and places their pods one by one. A gang may have
16,384 pods in Fairlead: where a load's gangs are larger, Fairlead's are cut to that, and the table says so.
"""

import argparse
import contextlib
import json
import os
import re
import signal
import ssl
import statistics
import subprocess
import sys
import tempfile
import shutil
import time
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "tests/kubernetes"))
sys.dont_write_bytecode = True

import kubernetes_cases
from bed import Bed, free_port, wait_until

ACCOUNT = "bench-scheduler"
GANG_MAX = 16384
PODS = "/api/v1/namespaces/default/pods"
DEFAULT = ["7500x1", "7500x20", "7500x500", "7500x7500"]
LARGE = ["40000x1", "40000x20", "40000x500", "10000x10000"]
SMALL = ["1500x1", "1500x20", "1500x500"]


class BenchBed(Bed):
    """With an account for the program that is measured, whose requests the API server counts. audits: it writes down each request about a pod."""

    audits = False

    def write_keys(self):
        super().write_keys()
        with open(self.path("tokens.csv"), "a") as f:
            f.write("%s-s,%s,%s,bench\n" % (self.token, ACCOUNT, ACCOUNT))
        with open(self.kubeconfig) as f:
            config = json.load(f)
        config["users"][0]["user"]["token"] = self.token + "-s"
        self.account = self.path("kubeconfig-scheduler")
        with open(self.account, "w") as f:
            json.dump(config, f)

    def start(self, name, *words):
        if name == "kube-apiserver" and self.audits:
            with open(self.path("audit.yaml"), "w") as f:
                json.dump({"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived", "ResponseStarted"],
                           "rules": [{"level": "Metadata", "verbs": ["create", "delete"], "resources": [{"group": "", "resources": ["pods", "pods/binding"]}]},
                                     {"level": "Metadata", "users": [ACCOUNT], "verbs": ["patch"], "resources": [{"group": "", "resources": ["pods/status"]}]},
                                     {"level": "None"}]}, f)
            words += ("--audit-policy-file", self.path("audit.yaml"), "--audit-log-path", self.path("audit.log"), "--audit-log-mode", "blocking")
        super().start(name, *words)

    def end_all(self, gently=False):
        for _, process in reversed(self.running):
            if gently:
                process.terminate()
            else:
                process.kill()
            process.wait()
        self.running = []

    def keep(self):
        """What is in the cluster now is what renew() goes back to."""
        while self.running[-1][0] != "etcd":
            process = self.running.pop()[1]
            process.kill()
            process.wait()
        self.end_all(gently=True)
        shutil.move(self.path("etcd"), self.path("kept"))

    def renew(self):
        self.end_all()
        shutil.rmtree(self.path("etcd"), ignore_errors=True)
        shutil.copytree(self.path("kept"), self.path("etcd"))
        self.start_all()

    def prepare_cases(self):
        self.call("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": "high"}, "value": 1000})

    def let_in(self):
        self.make("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", {
            "metadata": {"name": ACCOUNT}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"kind": "User", "name": ACCOUNT, "apiGroup": "rbac.authorization.k8s.io"}]})
        self.make("/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas", {
            "metadata": {"name": ACCOUNT}, "spec": {
                "priorityLevelConfiguration": {"name": "exempt"}, "matchingPrecedence": 2,
                "rules": [{"subjects": [{"kind": "User", "user": {"name": ACCOUNT}}],
                           "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"], "clusterScope": True}],
                           "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}]}]}})

    def metrics(self):
        return self.call("GET", "/metrics")[1]

    def calls(self):
        found = re.findall(r'^apiserver_flowcontrol_dispatched_requests_total\{flow_schema="%s",[^}]*\} (\S+)' % ACCOUNT, self.metrics(), re.M)
        return sum(float(x) for x in found)

    def requests(self):
        """By verb and resource, of all accounts."""
        found = {}
        for labels, count in re.findall(r"^apiserver_request_total\{([^}]*)\} (\S+)", self.metrics(), re.M):
            of = dict(re.findall(r'(\w+)="([^"]*)"', labels))
            key = "%s %s%s %s" % (of["verb"], of["resource"], "/" + of["subresource"] if of["subresource"] else "", of["code"])
            found[key] = found.get(key, 0) + float(count)
        return found


class Program:
    """What is measured, as a process of its own."""

    def __init__(self, b, nodes, options):
        self.bed, self.nodes, self.options, self.process, self.folder = b, nodes, options, None, None

    def popen(self, words, **more):
        self.log = open(self.bed.path(self.name + ".log"), "ab")
        self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stderr=self.log, **more)

    def usage(self):
        """CPU seconds until now and the most memory, MiB."""
        with open("/proc/%d/stat" % self.process.pid) as f:
            words = f.read().rsplit(")", 1)[1].split()
        with open("/proc/%d/status" % self.process.pid) as f:
            most = int(re.search(r"VmHWM:\s*(\d+)", f.read()).group(1))
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK"), most / 1024

    def end(self):
        self.process.kill()
        self.process.wait()
        self.log.close()
        if self.folder:
            shutil.rmtree(self.folder)


class Blind(Program):
    name = scheduler = "blind"

    def start(self):
        self.popen([self.options.load, "blind", self.bed.account, "blind", str(self.options.gpus)], stdout=subprocess.PIPE)
        assert self.process.stdout.readline() == b"ready\n"


class Stock(Program):
    name, scheduler = "stock", "default-scheduler"

    def start(self):
        port = free_port()
        with open(self.bed.path("scheduler.yaml"), "w") as f:
            json.dump({"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration", "leaderElection": {"leaderElect": False},
                       "clientConnection": {"kubeconfig": self.bed.account, "qps": 100000, "burst": 100000}}, f)
        self.popen([os.path.join(self.bed.programs, "kube-scheduler"), "--config", self.bed.path("scheduler.yaml"), "--secure-port", str(port),
                    "--bind-address", "127.0.0.1", "--cert-dir", self.bed.path("scheduler-certs")], stdout=self.log_to())

        def is_ready():
            try:
                with urllib.request.urlopen("https://127.0.0.1:%d/readyz" % port, context=ssl._create_unverified_context()) as answer:
                    return answer.status == 200
            except OSError:
                return False
        wait_until("kube-scheduler is ready", is_ready)

    def log_to(self):
        return subprocess.DEVNULL


class Fairlead(Program):
    name = scheduler = "fairlead"

    def start(self):
        self.folder = tempfile.mkdtemp(prefix="fairlead-bench-", dir=self.options.journal)
        program = os.path.join(self.options.build, "src/cli/fairlead")
        env = dict(os.environ, FAIRLEAD_DATA=self.folder, NO_COLOR="1")
        self.program, self.env = program, env
        self.popen([program, "serve", "--engine", "kubernetes", "--kubeconfig", self.bed.account, "--image", "none"], stdout=subprocess.PIPE, env=env)
        assert self.process.stdout.readline(), self.bed.log("fairlead")

        def ready():
            done = subprocess.run([program, "nodes", "-o", "json"], capture_output=True, text=True, env=env)
            return done.returncode == 0 and sum(n["state"] == "ready" for n in json.loads(done.stdout)) == self.nodes
        wait_until("Fairlead knows the nodes", ready)


    def run(self, *words):
        subprocess.run([self.program, *words], check=True, stdout=subprocess.DEVNULL, env=self.env)

    def client(self):
        os.environ.setdefault("FAIRLEAD_BUILD", self.options.build)
        sys.path.insert(0, os.path.join(os.path.dirname(HERE), "tests"))
        import harness
        return harness.Client(self.folder)


KINDS = {kind.name: kind for kind in (Blind, Stock, Fairlead)}


def quantile(values, part):
    return sorted(values)[min(len(values) - 1, int(len(values) * part))] if values else float("nan")


def run_load(b, program, pods, gang, options):
    """One load bound by one program: figures."""
    own = min(gang, GANG_MAX) if program.name == "fairlead" else gang
    pods = pods // own * own if program.name == "fairlead" and own < gang else pods
    b.renew()
    program.start()
    time.sleep(4)  # an API server that has just come up is busy with itself
    calls, kinds, (cpu, _) = b.calls(), b.requests(), program.usage()
    perf = subprocess.Popen(["perf", "record", "-q", "-g", "-s", "-p", str(program.process.pid), "-o", options.perf]) if options.perf else None
    out = subprocess.run([options.load, "pods", b.kubeconfig, program.scheduler, str(pods), str(own)], stdout=subprocess.PIPE, text=True)
    if out.returncode:
        shutil.copy(b.path(program.name + ".log"), tempfile.gettempdir())
        raise SystemExit("the load failed; the program's log is in " + tempfile.gettempdir())
    if perf:
        perf.send_signal(signal.SIGINT)
        perf.wait()
    end, most = program.usage()
    calls, after = b.calls() - calls, b.requests()
    program.end()
    if options.verbose:
        print("  ", {k: int(v - kinds.get(k, 0)) for k, v in after.items() if v - kinds.get(k, 0) > 20}, file=sys.stderr)
    rows = [(int(n), int(made), int(bound), node) for n, made, bound, node in (line.split() for line in out.stdout.splitlines())]
    done = [r for r in rows if r[2]]
    waits = [max(0, r[2] - r[1]) / 1000 for r in done]
    on = {}
    for r in done:
        on[r[3]] = on.get(r[3], 0) + 1
    assert all(count <= options.gpus for count in on.values()), "a node has more pods than GPUs"
    gangs = {}
    for r in rows:
        gangs.setdefault(r[0] // own, []).append(r)
    whole = [max(r[2] for r in g) - max(r[1] for r in g) for g in gangs.values() if all(r[2] for r in g)]
    assert program.name != "fairlead" or all(all(r[2] for r in g) or not any(r[2] for r in g) for g in gangs.values()), "a gang is bound in part"
    return {"pods": pods, "gang": own, "bound": len(done), "per_second": len(done) / max((r[2] for r in done), default=1) * 1e6,
            "made_per_second": pods / max(r[1] for r in rows) * 1e6, "p50_ms": quantile(waits, 0.5), "p99_ms": quantile(waits, 0.99),
            "gang_p50_ms": quantile(whole, 0.5) / 1000, "gang_p99_ms": quantile(whole, 0.99) / 1000,
            "calls": calls / pods, "cpu_ms": (end - cpu) * 1000 / pods, "memory_mib": most}


def table(results, options):
    """Of loads that were measured."""
    lines = ["| load | by | bound | per second | least..most | P50 ms | P99 ms | gang P50, P99 ms | calls/pod | CPU ms/pod | MiB | of blind | of stock |",
             "|---|---|---|---|---|---|---|---|---|---|---|---|---|"]
    for load in results:
        for who in options.who:
            of = results[load][who]
            if not of:
                continue

            def middle(key):
                return statistics.median(r[key] for r in of)

            def ratio(other):
                pairs = [a["per_second"] / z["per_second"] for a, z in zip(of, results[load].get(other, [])) if z["per_second"]]
                return "%.2f" % statistics.median(pairs) if pairs and other != who else ""
            cut = " (gangs of %d)" % of[0]["gang"] if of[0]["gang"] != int(load.split("x")[1]) else ""
            lines.append("| %s%s | %s | %d of %d | %.0f | %.0f..%.0f | %.0f | %.0f | %.0f, %.0f | %.2f | %.2f | %.0f | %s | %s |" % (
                load, cut, who, min(r["bound"] for r in of), of[0]["pods"], middle("per_second"), min(r["per_second"] for r in of),
                max(r["per_second"] for r in of), middle("p50_ms"), middle("p99_ms"), middle("gang_p50_ms"), middle("gang_p99_ms"), middle("calls"),
                middle("cpu_ms"), middle("memory_mib"), ratio("blind"), ratio("stock")))
    return "\n".join(lines)


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("build")
    p.add_argument("--nodes", type=int)
    p.add_argument("--gpus", type=int, default=8)
    p.add_argument("--loads")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--who", default="blind,stock,fairlead")
    p.add_argument("--large", action="store_true")
    p.add_argument("--whole", action="store_true")
    p.add_argument("--cases", nargs="?", const="")
    p.add_argument("--budget", type=float, default=float("inf"), help="seconds")
    p.add_argument("--small", action="store_true")
    p.add_argument("--bare", action="store_true")
    p.add_argument("--journal", default=tempfile.gettempdir())
    p.add_argument("--json")
    p.add_argument("--table")
    p.add_argument("--perf", help="a profile of the last program that is measured goes there, by perf")
    p.add_argument("--verbose", action="store_true", help="requests of each kind")
    options = p.parse_args()
    options.load = os.path.join(os.path.abspath(options.build), "bench/kubernetes_load")
    options.build = os.path.abspath(options.build)
    options.who = options.who.split(",")
    return options


def sets(options):
    """What is measured: nodes, loads, rounds at most, part of the time."""
    if options.whole:
        return [(1000, DEFAULT, 5, 0.3), (5000, LARGE, 3, 0.55)]
    if options.cases is not None:
        return []
    nodes = options.nodes or (5000 if options.large else 200 if options.small else 1000)
    loads = options.loads.split(",") if options.loads else LARGE if options.large else SMALL if options.small else DEFAULT
    return [(nodes, loads, options.rounds, 1)]


@contextlib.contextmanager
def cluster(nodes, options, audits=False):
    """Stopped, with these nodes in it."""
    b = BenchBed(() if options.bare and not audits else ("kwok",), os.path.join(os.path.dirname(HERE), "tests/kubernetes/kubelet.yaml") if audits else None)
    b.audits = audits
    try:
        b.start_all()
        b.let_in()
        subprocess.run([options.load, "nodes", b.kubeconfig, str(nodes), str(options.gpus)], check=True)
        time.sleep(2)  # kwok has played them by then
        b.keep()
        yield b
    finally:
        b.end_all()
        shutil.rmtree(b.folder)


def measure(nodes, loads, rounds, options, left):
    """Rounds of all loads by all programs, as long as time is left: by load and program, figures of each round."""
    results, took = {load: {who: [] for who in options.who} for load in loads}, {}
    with cluster(nodes, options) as b:
        for number, load in ((number, load) for number in range(rounds) for load in loads):
            pods, gang = (int(x) for x in load.split("x"))
            if left() < took.get(load, 0):
                print("no time is left for round %d of %s" % (number + 1, load), file=sys.stderr)
                continue
            began = time.monotonic()
            for who in options.who[number % len(options.who):] + options.who[:number % len(options.who)]:
                figures = run_load(b, KINDS[who](b, nodes, options), pods, gang, options)
                results[load][who].append(figures)
                print("%s %s: %s" % (load, who, {k: round(v, 2) for k, v in figures.items()}), file=sys.stderr)
            took[load] = time.monotonic() - began
    return results


def cases(options, left):
    with cluster(kubernetes_cases.NODES, options, audits=True) as b:
        names = options.cases.split(",") if options.cases else list(kubernetes_cases.CASES)
        return kubernetes_cases.run(b, [KINDS[who] for who in options.who], options, names, left)


def write(options, parts, found):
    text = "\n\n".join(parts) + "\n"
    if options.table:
        with open(options.table, "w") as f:
            f.write(text)
    if options.json:
        with open(options.json, "w") as f:
            json.dump(found, f, indent=1)


def main():
    options = arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # what it started ends with it
    subprocess.run(["ninja", "-C", options.build, "bench/kubernetes_load", "src/cli/fairlead"], check=True, stdout=subprocess.DEVNULL)
    began, parts, found, ends = time.monotonic(), [], {"gpus": options.gpus, "bare": options.bare, "sets": []}, 0
    for nodes, loads, rounds, part in sets(options):
        ends += part * options.budget
        results = measure(nodes, loads, rounds, options, lambda end=ends: began + end - time.monotonic())
        parts.append("%d nodes with %d GPUs%s, %d rounds at most, %d processors\n\n%s" % (
            nodes, options.gpus, ", bare" if options.bare else " played by kwok", rounds, os.cpu_count(), table(results, options)))
        found["sets"].append({"nodes": nodes, "results": results})
        print(parts[-1] + "\n", flush=True)
        write(options, parts, found)
    if options.whole or options.cases is not None:
        rows = cases(options, lambda: began + options.budget - time.monotonic())
        parts.append("cases, %d nodes with %d GPUs, times of the API server\n\n%s" % (kubernetes_cases.NODES, kubernetes_cases.GPUS, kubernetes_cases.table(rows)))
        found["cases"] = rows
        print(parts[-1], flush=True)
        write(options, parts, found)
    print("%.0f s" % (time.monotonic() - began), file=sys.stderr)


if __name__ == "__main__":
    main()
