#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The demonstration behind scripts/quickstart.

A training job of four ranks is run undisturbed; then again while the queue is flooded, a critical job preempts it, and the
daemon is killed twice with SIGKILL. At the end its weights must have the same SHA-256. Every figure shown is read from the
daemon, which has it from its journal. Exit status 0 only when the weights are equal and nothing was lost.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
LIMIT_S = 240


def call(*words, check=True):
    done = subprocess.run(["fairlead", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if check and done.returncode != 0:
        sys.exit("fairlead %s failed (%d):\n%s%s" % (" ".join(words), done.returncode, done.stdout, done.stderr))
    return done.stdout


def ask(*words):
    return json.loads(call(*words, "-o", "json"))


def say(text):
    print(text, flush=True)


class Daemon:
    def __init__(self, data, nodes="sim:2x2xH100-80GB"):
        self.data, self.nodes, self.process = data, nodes, None

    def up(self):
        """Starts it in the foreground as a child, so that its pid is known; returns when it answers."""
        log = open(os.path.join(self.data, "demo-daemon.log"), "ab")
        self.process = subprocess.Popen(
            ["fairlead", "up", "--nodes", self.nodes], env=dict(os.environ, FAIRLEAD_DATA=self.data),
            stdout=subprocess.PIPE, stderr=log, text=True)
        line = self.process.stdout.readline()
        if not line:
            sys.exit("the daemon did not start: see %s" % log.name)
        return line.strip()

    def kill(self):
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def stop(self):
        """Its jobs would go on without it, so they are cancelled first."""
        if self.process is None or self.process.poll() is not None:
            return
        call("cancel", "--all", "--yes", check=False)
        self.process.terminate()
        self.process.wait(timeout=60)


def submit(name, command, *flags):
    out = call("run", "--detach", "--name", name, *flags, "-o", "json", "--", *command)
    return json.loads(out)["id"]


def job(number):
    return ask("job", str(number))


def wait_until(what, test):
    end = time.monotonic() + LIMIT_S
    while time.monotonic() < end:
        if test():
            return
        time.sleep(0.05)
    sys.exit("waited %d s in vain: %s" % (LIMIT_S, what))


def ended(number):
    return job(number)["state"] in ("succeeded", "failed", "cancelled", "timed-out")


def last_line(number):
    """The last line rank 0 printed; the end of the job may be known before the end of its output is."""
    lines = []

    def there():
        lines[:] = call("logs", str(number)).strip().splitlines()
        return lines and lines[-1].startswith("sha256 of the weights")

    wait_until("the last line of job %d" % number, there)
    return lines[-1]


def weights_hash(path):
    with open(path) as f:
        return f.read().strip()


def waits(number):
    """Time from each moment it began to wait until its commands were let go, from its history in the journal."""
    since, waited, times = None, 0, 0
    for row in ask("job", str(number), "--history"):
        if row["kind"] in ("job-submitted", "job-requeued"):
            since = row["time_ms"]
            times += row["kind"] == "job-requeued"
        elif row["kind"] == "attempt-released" and since is not None:
            waited, since = waited + row["time_ms"] - since, None
    return waited, times


def why_waiting(numbers):
    """The reason each waiting job is given at this moment."""
    waiting = [j["id"] for j in ask("jobs") if j["id"] in numbers and j["state"] in ("queued", "preempted")]
    reasons = {n: ask("explain", str(n))["reason"] for n in waiting}
    return {n: reason for n, reason in reasons.items() if reason != "none"}  # it has begun since


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--python", default=sys.executable)
    p.add_argument("--data", required=True)
    p.add_argument("--steps", type=int, default=6000)
    p.add_argument("--keep", action="store_true")
    a = p.parse_args()
    out = os.path.join(a.data, "demo")
    os.makedirs(out, exist_ok=True)
    train = [a.python, os.path.join(HERE, "train.py"), "--steps", str(a.steps), "--every", "1000"]
    shape = ["--tasks", "4", "--gpus", "1", "--checkpoint", "signal", "--checkpoint-grace", "20s"]

    daemon = Daemon(a.data)
    try:
        demonstrate(daemon, train, shape, out)
    except BaseException:
        say("\nWhat the daemon said is in %s." % os.path.join(a.data, "demo-daemon.log"))
        daemon.stop()
        raise
    if not a.keep:
        daemon.stop()


def demonstrate(daemon, train, shape, out):
    say(daemon.up())

    say("\n1. The training job, undisturbed: 4 ranks on 4 GPUs.")
    reference = submit("digits-reference", [*train, "--out", os.path.join(out, "reference")], *shape)
    wait_until("the reference run ends", lambda: ended(reference))
    if job(reference)["state"] != "succeeded":
        sys.exit("the training job did not succeed:\n%s%s" % (
            call("job", str(reference)), call("logs", str(reference), "--stderr", check=False)))
    say("   " + last_line(reference))

    say("\n2. The same job again, then twelve more that want the same GPUs.")
    digits = submit("digits", [*train, "--out", os.path.join(out, "disturbed")], *shape)
    small = [submit("small-%d" % i, ["sleep", "0.3"], "--gpus", "1") for i in range(12)]
    wait_until("a first checkpoint", lambda: job(digits).get("checkpoints"))
    say(call("jobs").rstrip())
    say("\n   Why does job %d wait?" % small[0])
    say("   " + call("explain", str(small[0])).strip().replace("\n", "\n   "))

    reasons = why_waiting(small)

    say("\n3. The daemon is killed (SIGKILL). The ranks go on; it comes back and finds them.")
    daemon.kill()
    daemon.up()
    found = job(digits)
    say("   job %d is %s, still in attempt %d: nothing was started again" % (
        digits, found["state"], found["attempts"][-1]["attempt"]))

    say("\n4. A critical job needs two GPUs: the training job is warned, saves, and makes room.")
    say("   (A standard job is safe for its first ten minutes by default; here that is set to one second.)")
    call("policy", "set", "--min-runtime", "1s")
    critical = submit("critical", ["sleep", "1"], "--gpus", "1", "--tasks", "2", "--tier", "critical")
    reasons.update(why_waiting([critical]))
    wait_until("the critical job runs", lambda: job(critical)["state"] in ("running", "succeeded"))
    say(call("jobs").rstrip())
    reasons.update(why_waiting([digits]))

    say("\n5. The daemon is killed again.")
    daemon.kill()
    daemon.up()

    everything = [digits, critical, *small]
    wait_until("all jobs end", lambda: all(ended(n) for n in everything))

    say("\n6. What happened, from the journal:\n")
    say("   %-18s %-10s %8s %8s  %-14s %12s %12s" % ("JOB", "STATE", "REQUEUED", "WAITED", "WHY", "USED", "LOST"))
    for number in [reference, digits, critical, *small]:
        j = job(number)
        waited, times = waits(number)
        say("   %-18s %-10s %8d %7.1fs  %-14s %12s %12s" % (j["name"], j["state"], times, waited / 1000, reasons.get(number, "-"),
            "%.1f GPU-s" % (j["used_gpu_ms"] / 1000), "%.1f GPU-s" % (j["lost_gpu_ms"] / 1000)))
    states = {job(n)["state"] for n in everything}
    attempts = job(digits)["attempt_count"]
    same = weights_hash(os.path.join(out, "reference")) == weights_hash(os.path.join(out, "disturbed"))
    say("\n   undisturbed  sha256 %s" % weights_hash(os.path.join(out, "reference")))
    say("   disturbed    sha256 %s   %s, after %d attempts" % (
        weights_hash(os.path.join(out, "disturbed")), "the same" if same else "NOT THE SAME", attempts))
    say("   (the GPUs were simulated; processes, kills, checkpoints and times were real)")
    if not same or attempts < 2 or states != {"succeeded"}:
        sys.exit("the demonstration did not go as it should")


if __name__ == "__main__":
    main()
