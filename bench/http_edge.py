#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long `status` takes while one user asks for many plans at once, at a real daemon (simulated nodes, jobs that wait).

    bench/http_edge.py [--build build] [--nodes 16] [--jobs 5000] [--plans 40] [--asks 300]
"""

import argparse
import http.client
import json
import os
import socket
import statistics
import sys
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tests"))


class Connection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost")
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.connect(self.path)

    def ask(self, method, path, body=None):
        self.request(method, path, body and json.dumps(body), {"Content-Type": "application/json"} if body else {})
        answer = self.getresponse()
        return answer.status, answer.read()


def measure(path, more):
    """Milliseconds of each of some status requests, 10 ms apart, while more(those so far)."""
    connection, taken = Connection(path), []
    while more(taken):
        time.sleep(0.01)
        begun = time.perf_counter()
        status, _ = connection.ask("GET", "/api/v1/status")
        taken.append((time.perf_counter() - begun) * 1000)
        assert status == 200
    return taken


def row(name, taken):
    taken = sorted(taken)
    print("%-24s median %7.2f ms   99 %% %7.2f ms   longest %7.2f ms   (%d)"
          % (name, statistics.median(taken), taken[int(len(taken) * 0.99) - 1], taken[-1], len(taken)), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    for name, standard in (("nodes", 16), ("jobs", 5000), ("plans", 40), ("asks", 300)):
        parser.add_argument("--" + name, type=int, default=standard)
    given = parser.parse_args()
    os.environ["FAIRLEAD_BUILD"] = os.path.abspath(given.build)
    import harness
    daemon = harness.Daemon(nodes="sim:%dx8xH100-80GB" % given.nodes)
    try:
        daemon.up()
        path = os.path.join(daemon.data, "fairlead.sock")
        c = Connection(path)
        for i in range(given.jobs):  # the first ones take all GPUs, the others wait
            status, text = c.ask("POST", "/api/v1/jobs", {"command": ["sleep", "3600"], "tasks": 1, "gpus": 8 if i < given.nodes else 1 + i % 8,
                                                          "limit": "%dm" % (60 + i % 300)})
            assert status == 201, text
        row("status alone", measure(path, lambda taken: len(taken) < given.asks))
        done = []

        def plan():
            done.append(Connection(path).ask("POST", "/api/v1/plan", {"command": ["true"], "gpus": 8, "limit": "1h"})[0])
        threads = [threading.Thread(target=plan) for _ in range(given.plans)]
        begun = time.perf_counter()
        for t in threads:
            t.start()
        row("status beside %d plans" % given.plans, measure(path, lambda taken: len(done) < given.plans))
        for t in threads:
            t.join()
        print("all plans took %.1f s; %d answered 200" % (time.perf_counter() - begun, done.count(200)))
    finally:
        daemon.destroy()


if __name__ == "__main__":
    main()
