# SPDX-License-Identifier: Apache-2.0
"""Preemption with real processes: warn, checkpoint, stop, resume, and the edges of each."""

import os
import time

import pytest

import harness

# Saves its step when it is asked to (unless it is deaf), goes on from where it was, and notes what it sees.
VICTIM = r"""
save() {
	step=$((step + 1))
	printf %s "$step" >"$FAIRLEAD_CHECKPOINT_DIR/tmp" && mv "$FAIRLEAD_CHECKPOINT_DIR/tmp" "$FAIRLEAD_CHECKPOINT_DIR/step-$step"
	echo "saved $step" >>"$NOTES"       # before the report: right after it a victim is told to stop
	"$FAIRLEAD" report --step $step --checkpoint step-$step
}
wanted=0
trap 'echo warned >>"$NOTES"; wanted=1' USR1
trap 'echo stopped >>"$NOTES"; exit 0' TERM
step=0
[ -z "$FAIRLEAD_RESUME_FROM" ] || step=$(cat "$FAIRLEAD_RESUME_FROM")
echo "from $step" >>"$NOTES"
while [ ! -e "$NOTES.finish" ]; do
	[ -e "$NOTES.save" ] && rm "$NOTES.save" && save
	[ $wanted = 1 ] && [ ! -e "$NOTES.deaf" ] && wanted=0 && save
	sleep 0.02
done
echo "finished $step" >>"$NOTES"
"""


class Scene:
    """One GPU, a victim on it, and others that want it."""

    def __init__(self, d, checkpoint="signal", grace="100s", **fields):
        self.d, self.client, self.count = d, harness.Client(d.data), 0
        self.notes = os.path.join(d.data, "notes")
        status, answer = self.client.until_answered("PUT", "/api/v1/policy", {"min_runtime": "0s", "grace": "1s"})
        assert status == 200, answer
        job = {"name": "victim", "command": ["bash", "-c", VICTIM], "env": {"NOTES": self.notes, "FAIRLEAD": harness.PROGRAM}}
        if checkpoint:
            job["checkpoint"] = {"how": checkpoint, "grace": grace}
        self.victim = self.client.submit({**job, **fields}, "victim")
        self.wait_note("from 0")

    def told(self):
        try:
            with open(self.notes) as f:
                return f.read().splitlines()
        except FileNotFoundError:
            return []

    def wait_note(self, line, times=1):
        harness.wait_until("the victim notes %r" % line, lambda: self.told().count(line) >= times)

    def want(self, word):
        open("%s.%s" % (self.notes, word), "w").close()

    def save(self, step):
        self.want("save")
        harness.wait_until("checkpoint %d is known" % step, lambda: self.job()["checkpoints_made"] == step)
        known = time.monotonic()  # a checkpoint of the very millisecond of a warning counts as made for it
        harness.wait_until("its millisecond is over", lambda: time.monotonic() - known > 0.002)

    def rival(self, **fields):
        """A higher job, that runs until it is let end."""
        self.count += 1
        name = "rival-%d" % self.count
        script = 'until [ -e "$NOTES.%s" ]; do sleep 0.02; done' % name
        return self.client.submit({"name": name, "priority": 10, "command": ["sh", "-c", script], "env": {"NOTES": self.notes}, **fields}, name)

    def let_end(self, number):
        self.want("rival-%d" % number)

    def job(self, number=None):
        return self.client.get("/api/v1/jobs/%d" % (number or self.victim))

    def attempts(self):
        return self.job()["attempts"]

    def events(self):
        """Names and contents of all that happened to the victim."""
        found, after = [], 0
        while True:
            page = self.client.get("/api/v1/jobs/%d/history?limit=500&after=%d" % (self.victim, after))
            found += page["events"]
            if len(page["events"]) < 500:
                return found
            after = page["next"]


@pytest.fixture
def one_gpu():
    with harness.Daemon(nodes="sim:1x1xH100-80GB") as d:
        yield d


def test_a_victim_saves_its_work_makes_room_and_goes_on_where_it_was(one_gpu):
    s = Scene(one_gpu)
    s.save(1)
    rival = s.rival()
    s.wait_note("saved 2")
    s.wait_note("stopped")
    one_gpu.wait(rival, "running")
    job = s.job()
    assert job["state"] == "preempted", job
    first = job["attempts"][0]
    assert (first["why"], first["for_job"]) == ("evicted", rival)
    assert first["warned_ms"] >= first["released_ms"] > 0
    s.let_end(1)
    s.want("finish")
    job = one_gpu.wait(s.victim)
    assert s.told() == ["from 0", "saved 1", "warned", "saved 2", "stopped", "from 2", "finished 2"]
    assert job["state"] == "succeeded" and [a["why"] for a in job["attempts"]] == ["evicted", "none"]
    assert job["attempts"][1]["resumed_from"] == 2
    # Lost is what came after the checkpoint: much less than what was used.
    assert job["lost_gpu_ms"] < job["used_gpu_ms"]
    assert one_gpu.wait(rival)["state"] == "succeeded"


@pytest.mark.parametrize("damage", ["truncated", "missing"])
def test_a_torn_newest_checkpoint_is_passed_over_for_the_one_before(one_gpu, damage):
    s = Scene(one_gpu)
    s.save(1)
    rival = s.rival()
    s.wait_note("stopped")
    one_gpu.wait(rival, "running")
    newest = os.path.join(one_gpu.data, "checkpoints", str(s.victim), "step-2")
    if damage == "truncated":
        os.truncate(newest, 0)
    else:
        os.unlink(newest)
    s.let_end(1)
    s.want("finish")
    job = one_gpu.wait(s.victim)
    assert s.told()[-2:] == ["from 1", "finished 1"]
    assert job["state"] == "succeeded"
    assert [c["number"] for c in job["checkpoints"] if not c["void"]] == [1], job["checkpoints"]
    void = [e["event"] for e in s.events() if e["kind"] == "checkpoint-void"]
    assert len(void) == 1 and void[0]["number"] == 2 and void[0]["reason"], void
    # What only the torn one had saved is lost besides what was lost at the stop.
    ended = [e["event"] for e in s.events() if e["kind"] == "attempt-ended"]
    assert void[0]["lost_gpu_ms"] == void[0]["lost_ms"] > 0, void
    assert job["lost_gpu_ms"] == ended[0]["lost_gpu_ms"] + void[0]["lost_gpu_ms"]
    assert job["attempts"][1]["resumed_from"] == 1


def test_all_checkpoints_torn_means_from_the_beginning(one_gpu):
    s = Scene(one_gpu)
    rival = s.rival()
    s.wait_note("stopped")
    one_gpu.wait(rival, "running")
    os.truncate(os.path.join(one_gpu.data, "checkpoints", str(s.victim), "step-1"), 0)
    s.let_end(1)
    s.want("finish")
    job = one_gpu.wait(s.victim)
    assert job["state"] == "succeeded"
    assert s.told()[-2:] == ["from 0", "finished 0"]
    # All that the first attempt did is lost, and nobody says that the second went on from anything.
    first, second = job["attempts"]
    assert job["lost_gpu_ms"] == first["ended_ms"] - first["released_ms"] > 0, job
    assert not second["resumed_from"] and "resumed" not in one_gpu.run("job", str(s.victim)).out


def test_when_the_grace_is_over_it_is_stopped_without_its_checkpoint(one_gpu):
    s = Scene(one_gpu, grace="5s")  # time to note that it is warned
    s.save(1)
    s.want("deaf")
    rival = s.rival()
    s.wait_note("warned")
    one_gpu.wait(rival, "running")
    s.let_end(1)
    s.want("finish")
    job = one_gpu.wait(s.victim)
    assert job["state"] == "succeeded" and [a["why"] for a in job["attempts"]] == ["evicted", "none"]
    assert s.told() == ["from 0", "saved 1", "warned", "from 1", "finished 1"]
    first = job["attempts"][0]
    assert first["ended_ms"] >= first["deadline_ms"] >= first["warned_ms"] + 5000


def test_work_without_checkpoints_is_taken_with_a_warning_and_stopped_after_the_policys_grace(one_gpu):
    said = one_gpu.run("run", "--detach", "--dry-run", "--", "true")
    assert "checkpoint" in said.out + said.err, said
    s = Scene(one_gpu, checkpoint=None)
    rival = s.rival()
    one_gpu.wait(rival, "running")
    first = s.attempts()[0]
    assert first["why"] == "evicted" and first["ended_ms"] >= first["warned_ms"] + 1000
    s.let_end(1)
    s.want("finish")
    assert one_gpu.wait(s.victim)["state"] == "succeeded"
    assert [line for line in s.told() if line.startswith("from")] == ["from 0", "from 0"]


def test_best_effort_work_is_stopped_at_once(one_gpu):
    s = Scene(one_gpu, grace="100s", tier="best-effort")
    rival = s.rival(priority=0)
    one_gpu.wait(rival, "running")
    first = s.attempts()[0]
    assert (first["why"], first["warned_ms"]) == ("evicted", 0)
    assert "warned" not in s.told()
    s.let_end(1)
    s.want("finish")
    assert one_gpu.wait(s.victim)["state"] == "succeeded"


def test_a_victim_is_spared_when_its_preemptor_is_cancelled_meanwhile(one_gpu):
    s = Scene(one_gpu)
    s.want("deaf")
    rival = s.rival()
    s.wait_note("warned")
    assert s.attempts()[0]["for_job"] == rival
    one_gpu.run("cancel", str(rival))
    assert one_gpu.wait(rival)["state"] == "cancelled"
    harness.wait_until("it is spared", lambda: s.attempts()[0]["for_job"] == 0)
    assert s.job()["state"] == "running"
    os.unlink(s.notes + ".deaf")
    s.want("finish")
    job = one_gpu.wait(s.victim)
    assert job["state"] == "succeeded" and len(job["attempts"]) == 1 and s.told().count("from 0") == 1


def test_the_signal_waits_for_a_program_that_is_still_loading(one_gpu):
    """Sent to one that does not catch it yet, it would kill it."""
    slow = """until [ -e "$NOTES.loaded" ]; do sleep 0.02; done\n""" + VICTIM
    client = harness.Client(one_gpu.data)
    client.until_answered("PUT", "/api/v1/policy", {"min_runtime": "0s"})
    notes = os.path.join(one_gpu.data, "notes")
    number = client.submit({"name": "slow", "command": ["bash", "-c", slow], "checkpoint": {"how": "signal", "grace": "100s"},
                            "env": {"NOTES": notes, "FAIRLEAD": harness.PROGRAM}}, "slow")
    job = one_gpu.wait(number, "running")
    log = os.path.join(one_gpu.data, "attempts", str(job["attempts"][0]["attempt"]), "0", "shepherd.log")
    rival = client.submit({"name": "rival", "priority": 10, "command": ["true"]}, "rival")
    harness.wait_until("nobody waits for the signal", lambda: "waits for it yet" in open(log).read())
    open(notes + ".loaded", "w").close()
    assert one_gpu.wait(rival)["state"] == "succeeded"
    open(notes + ".finish", "w").close()
    assert one_gpu.wait(number)["state"] == "succeeded"
    with open(notes) as f:
        told = f.read().splitlines()
    # It may be warned between the line that catches the signal and the one that says where it begins.
    assert sorted(told[:2]) == ["from 0", "warned"] and told[2:] == ["saved 1", "stopped", "from 1", "finished 1"], told


def test_two_preemptors_for_one_victim_are_served_in_their_order(one_gpu):
    s = Scene(one_gpu)
    s.want("deaf")
    low = s.rival(priority=5)
    s.wait_note("warned")
    high = s.rival(priority=20)
    os.unlink(s.notes + ".deaf")
    one_gpu.wait(high, "running")
    assert s.job(low)["state"] == "queued" and s.job()["state"] == "preempted"
    s.let_end(2)
    one_gpu.wait(low, "running")
    assert s.job()["state"] == "preempted"
    s.let_end(1)
    s.want("finish")
    assert one_gpu.wait(s.victim)["state"] == "succeeded"
    assert len(s.attempts()) == 2


def test_the_daemon_may_die_while_a_victim_winds_down(one_gpu):
    s = Scene(one_gpu)
    s.want("deaf")
    rival = s.rival()
    s.wait_note("warned")
    one_gpu.kill()
    one_gpu.up()
    # The warning is given again; then it may save its work.
    os.unlink(s.notes + ".deaf")
    s.wait_note("saved 1")
    one_gpu.wait(rival, "running")
    one_gpu.kill()
    one_gpu.up()
    s.let_end(1)
    s.want("finish")
    job = one_gpu.wait(s.victim)
    assert job["state"] == "succeeded" and [a["why"] for a in job["attempts"]] == ["evicted", "none"]
    assert [line for line in s.told() if line.startswith("from")] == ["from 0", "from 1"]


def test_a_gang_makes_room_as_a_whole():
    with harness.Daemon(nodes="sim:2x1xH100-80GB") as d:
        s = Scene(d, tier="best-effort", tasks=2)
        rival = s.rival()
        d.wait(rival, "running")
        gpus = {(g["node"], g["index"]): g["job"] for g in d.ask("gpus")}
        assert sorted(gpus.values()) == [0, rival], gpus
        assert s.job()["state"] == "preempted"
        s.let_end(1)
        s.want("finish")
        assert d.wait(s.victim)["state"] == "succeeded"
