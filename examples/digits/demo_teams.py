#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The demonstration behind scripts/quickstart --teams: two teams share eight GPUs.

Each team is guaranteed four. What one leaves idle is lent to the other, taken back when it is wanted, and lent again: an elastic job
narrows and widens for that, a rigid one is stopped after a checkpoint and goes on later, and a short job runs on GPUs that are kept
for one that waits. All of it is real work of real processes; at the end the weights are compared with those of undisturbed runs.

The table at the end is made from the events of the journal alone. Exit status 0 only when all went as it should.
"""

import argparse
import json
import os
import sys

from demo import HERE, Daemon, ask, call, ended, job, say, submit, wait_until

NODES, GPUS, GUARANTEE = "sim:2x4xH100-80GB", 8, 4
ENDED_BY_ITSELF = 0
ROW = "   %6.1fs %7d %9d   %s"


def width(number):
    """How many ranks of it run now."""
    j = job(number)
    return sum(t["state"] == "running" for t in j["attempts"][-1]["tasks"]) if j["state"] == "running" else 0


def show(command, *words):
    say("   $ fairlead %s" % " ".join([command, *words]))
    say("   " + call(command, *words).rstrip().replace("\n", "\n   "))


class Story:
    """Six short acts; self.jobs are the numbers by name."""

    def __init__(self, python, out):
        self.python, self.out, self.jobs = python, out, {}
        self.enough, self.served = os.path.join(out, "enough"), os.path.join(out, "served")

    def training(self, name, *more):
        return [self.python, os.path.join(HERE, "elastic.py"), "--out", os.path.join(self.out, name), *more]

    def add(self, team, name, command, *flags):
        self.jobs[name] = submit(name, command, "--queue", team, "--team", team, *flags)
        return self.jobs[name]

    def wait_running(self, name, ranks):
        wait_until("%d ranks of %s run" % (ranks, name), lambda: width(self.jobs[name]) == ranks)

    def teams(self):
        say("\n1. Two teams, vision and language: four of the eight GPUs are guaranteed to each.")
        for team in ("vision", "language"):
            call("teams", "create", team)
            call("queues", "create", team, "--guarantee", str(GUARANTEE), "--team", team)
        call("policy", "set", "--min-runtime", "1s")
        say("   (A standard job is safe for its first ten minutes by default; here that is set to one second.)")

    def lent(self):
        say("\n2. Only vision has work: digits wants four GPUs, elastic two to four. It gets all eight, four of them lent.")
        until = ["--pace", "40", "--until", self.enough]
        digits = self.add("vision", "digits", self.training("digits", *until), "--tasks", "4", "--checkpoint", "signal",
                          "--checkpoint-grace", "20s")
        self.add("vision", "elastic", self.training("elastic", *until), "--tasks", "2..4", "--checkpoint", "signal",
                 "--checkpoint-grace", "20s", "--restart-cost", "10m")
        self.wait_running("digits", 4)
        self.wait_running("elastic", 4)
        wait_until("a first checkpoint", lambda: job(digits).get("checkpoints"))
        show("queues")

    def narrowed(self):
        say("\n3. Language wants two GPUs of its guarantee. The elastic job gives up two ranks; nobody is stopped.")
        serve = ["sh", "-c", 'until [ -e "$0" ]; do sleep 0.05; done', self.served]
        self.add("language", "tokens-a", serve, "--tasks", "2", "--limit", "5m")
        self.wait_running("tokens-a", 2)
        self.wait_running("elastic", 2)
        show("jobs")

        say("\n4. Language wants its other two. Elastic is as narrow as it may be, so digits is warned, saves its work, and makes room.")
        self.add("language", "tokens-b", serve, "--tasks", "2", "--limit", "10m")
        self.wait_running("tokens-b", 2)

    def backfilled(self):
        say("\n5. Digits waits for four GPUs; two are free, and kept for it. A job that says it ends in time may use them meanwhile.")
        self.add("vision", "short", ["sleep", "1"], "--tasks", "2", "--limit", "1m")
        self.add("vision", "long", ["sleep", "1"], "--tasks", "2", "--limit", "1h")
        wait_until("the short job ends", lambda: ended(self.jobs["short"]))
        say("   short (limit 1m) ran at once. Why does long (limit 1h) wait?")
        show("explain", str(self.jobs["long"]))

    def lent_again(self):
        say("\n6. Language has no more work. Digits goes on from its checkpoint, and the elastic job widens again.")
        open(self.served, "w").close()
        self.wait_running("digits", 4)
        self.wait_running("elastic", 4)
        show("jobs")

    def undisturbed(self):
        say("\n7. Both have trained enough. For comparison the same number of steps, each on one GPU and undisturbed.")
        open(self.enough, "w").close()
        wait_until("all jobs end", lambda: all(ended(n) for n in self.jobs.values()))
        pairs = {}
        for name in ("digits", "elastic"):
            steps = self.result(name)[0]
            pairs[name] = self.add("vision", name + "-alone", self.training(name + "-alone", "--steps", steps), "--checkpoint", "signal")
        wait_until("the runs for comparison end", lambda: all(ended(n) for n in pairs.values()))

    def result(self, name):
        path = os.path.join(self.out, name)
        if not os.path.exists(path):
            sys.exit("%s did not end as it should:\n%s" % (name, call("job", str(self.jobs[name]), check=False)))
        with open(path) as f:
            return f.read().split()


class Told:
    """What the journal says: a line of the table for each change of who holds GPUs, and which of the rules were seen to act."""

    def __init__(self, numbers):
        self.names = {number: name for name, number in numbers.items()}
        self.queue, self.job, self.ranks, self.kept = {}, {}, {}, {}
        self.held = {"vision": 0, "language": 0}
        self.most, self.rows, self.acted, self.began = 0, [], set(), None

    def read(self):
        after = 0
        while True:
            page = ask("events", "--all", "--after", str(after), "--limit", "500")
            for record in page:
                take = getattr(self, record["kind"].replace("-", "_"), None)
                if take:
                    take(record["time_ms"], record["event"])
            if len(page) < 500:
                return self
            after = page[-1]["seq"]

    def name(self, attempt):
        return self.names[self.job[attempt]]

    def row(self, at, text):
        self.began = self.began or at
        self.rows.append(ROW % ((at - self.began) / 1000, self.held["vision"], self.held["language"], text))

    def hold(self, attempt, ranks):
        self.ranks[attempt] = self.ranks.get(attempt, 0) + ranks
        self.held[self.queue[self.job[attempt]]] += ranks
        self.most = max(self.most, sum(self.held.values()))

    def job_submitted(self, at, e):
        self.queue[e["job"]] = e["queue"]

    def attempt_placed(self, at, e):
        self.job[e["attempt"]] = e["job"]
        self.hold(e["attempt"], len(e["nodes"]))
        self.kept.pop(e["job"], None)
        count = len(e["nodes"])
        text = "%s starts on %d GPU%s" % (self.names[e["job"]], count, "s" * (count > 1))
        if e.get("resume_number"):
            self.acted.add("resumed")
            text += ", from its checkpoint number %d" % e["resume_number"]
        for other, (start, place) in self.kept.items():
            if other < e["job"] and place & gpus_of(e):
                self.acted.add("backfilled")
                text += ", kept for %s from %.1f min later on" % (self.names[other], (start - at) / 60000)
        self.row(at, text)

    def attempt_shrunk(self, at, e):
        self.acted.add("narrowed")
        self.row(at, "%s is asked for %d ranks, for %s" % (self.name(e["attempt"]), len(e["ranks"]), self.names[e["for_job"]]))

    def ranks_left(self, at, e):
        self.hold(e["attempt"], -len(e["ranks"]))
        self.row(at, "%s goes on with %d; lost %.2f GPU-s" % (
            self.name(e["attempt"]), self.ranks[e["attempt"]], e.get("lost_gpu_ms", 0) / 1000))

    def attempt_grown(self, at, e):
        self.acted.add("widened")
        self.hold(e["attempt"], len(e["ranks"]))
        self.row(at, "%s is given %d more" % (self.name(e["attempt"]), len(e["ranks"])))

    def attempt_warned(self, at, e):
        queue = self.queue[e["for_job"]]
        if queue != self.queue[self.job[e["attempt"]]]:
            self.acted.add("taken back")
        self.row(at, "%s is warned: %s takes back its guarantee for %s" % (self.name(e["attempt"]), queue, self.names[e["for_job"]]))

    def reservation_set(self, at, e):
        if e["job"] not in self.kept:
            self.row(at, "a place is kept for %s from %.1f min later on" % (self.names[e["job"]], (e["start_ms"] - at) / 60000))
        self.kept[e["job"]] = (e["start_ms"], gpus_of(e))

    def reservation_dropped(self, at, e):
        self.kept.pop(e["job"], None)

    def attempt_ended(self, at, e):
        self.hold(e["attempt"], -self.ranks[e["attempt"]])
        if e.get("why", 0) == ENDED_BY_ITSELF:
            self.row(at, "%s has ended" % self.name(e["attempt"]))
        else:
            self.row(at, "%s has saved its work and is stopped; lost %.2f GPU-s" % (
                self.name(e["attempt"]), e.get("lost_gpu_ms", 0) / 1000))


def gpus_of(e):
    return {(node, gpu) for node, mask in zip(e["nodes"], e["masks"]) for gpu in range(64) if mask >> gpu & 1}


def tell(story):
    told = Told(story.jobs).read()
    say("\n8. What happened, from the journal (GPUs held by each team):\n")
    say("        AT  VISION  LANGUAGE   WHAT")
    say("\n".join(told.rows))
    say("\n   %-14s %-10s %8s %12s %12s" % ("JOB", "STATE", "ATTEMPTS", "USED", "LOST"))
    for name, number in story.jobs.items():
        j = job(number)
        say("   %-14s %-10s %8d %12s %12s" % (name, j["state"], j["attempt_count"], "%.1f GPU-s" % (j["used_gpu_ms"] / 1000),
                                               "%.2f GPU-s" % (j["lost_gpu_ms"] / 1000)))
    say("")
    wrong = ["nothing was " + rule for rule in ("narrowed", "widened", "taken back", "backfilled", "resumed") if rule not in told.acted]
    wrong += [name + " did not succeed" for name, number in story.jobs.items() if job(number)["state"] != "succeeded"]
    wrong += ["more GPUs than there are"] * (told.most > GPUS)
    for name in ("digits", "elastic"):
        (steps, digest), alone = story.result(name), story.result(name + "-alone")
        same = [steps, digest] == alone
        say("   %-8s %5s steps  sha256 %s  %s" % (name, steps, digest[:24], "the same as undisturbed" if same else "NOT THE SAME"))
        wrong += [] if same else ["the weights of " + name + " are others"]
    say("   (the GPUs were simulated; processes, checkpoints and times were real)")
    if wrong:
        sys.exit("the demonstration did not go as it should: " + ", ".join(wrong))


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--python", default=sys.executable)
    p.add_argument("--data", required=True)
    p.add_argument("--keep", action="store_true")
    a = p.parse_args()
    out = os.path.join(a.data, "demo")
    os.makedirs(out, exist_ok=True)
    daemon, story = Daemon(a.data, NODES), Story(a.python, out)
    try:
        say(daemon.up())
        for act in (story.teams, story.lent, story.narrowed, story.backfilled, story.lent_again, story.undisturbed):
            act()
        tell(story)
    except BaseException:
        say("\nWhat the daemon said is in %s." % os.path.join(a.data, "demo-daemon.log"))
        daemon.stop()
        raise
    if not a.keep:
        daemon.stop()


if __name__ == "__main__":
    main()
