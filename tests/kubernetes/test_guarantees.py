# SPDX-License-Identifier: Apache-2.0
"""A guarantee with real pods: whatever its borrowers submit, who comes within it starts."""

import threading

from bed import wait_until
from cluster import cluster

MIN_RUNTIME_S, GRACE_S = 10, 2


class Stream:
    """Borrowers without limits, one on each GPU and as many that wait. One after the other is cancelled and another one comes, so each of them
    is too young to be stopped when the next GPU comes free."""

    def __init__(self, s, width):
        self.s, self.end, self.turns, self.failure = s, threading.Event(), 0, None
        self.jobs = [self.submit() for _ in range(2 * width)]
        self.thread = threading.Thread(target=self.run)

    def submit(self):
        return self.s.submit("-q", "borrows", "-g", "1", "--", "sleep")

    def run(self):
        try:
            while not self.end.wait(0.5):
                self.s.run("cancel", "--yes", str(self.jobs.pop(0)))
                self.jobs.append(self.submit())
                self.turns += 1
        except BaseException as e:
            self.failure = e

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *reason):
        self.end.set()
        self.thread.join()


def test_a_claim_of_a_whole_guarantee_starts_while_borrowers_come_and_go():
    with cluster(nodes=1, gpus=8) as (b, s):
        s.run("queues", "create", "owns", "--guarantee", "8")
        s.run("queues", "create", "borrows")
        s.run("policy", "set", "--min-runtime", "%ds" % MIN_RUNTIME_S, "--grace", "%ds" % GRACE_S)
        with Stream(s, 8) as stream:
            wait_until("borrowers hold all GPUs, and change", lambda: stream.turns >= 8 and all(g["state"] != "free" for g in s.ask("gpus")))
            claim = s.submit("-q", "owns", "-g", "8", "--", "sleep")
            wait_until("its latest start is told", lambda: "at the latest in" in s.run("explain", str(claim), "-v").out)
            before = stream.turns
            s.wait_for(claim, "running")
            assert not stream.failure, stream.failure
            assert stream.turns > before, "nobody came while it waited"
            shown = s.ask("job", str(claim))
        placed_ms = shown["attempts"][-1]["placed_ms"]
        # By the clock of the daemon. Pods of borrowers go a moment after they were told to, on a busy machine some moments.
        assert placed_ms - shown["submitted_ms"] <= 1000 * (MIN_RUNTIME_S + 2 * GRACE_S + 20), shown
        assert sorted({p["spec"].get("nodeName") for p in s.pods().values() if p["metadata"]["labels"]["fairlead.dev/job"] == str(claim)}) == ["n0"]
