# SPDX-License-Identifier: Apache-2.0
"""While the checkpoint of a job can't be read, people are told; the daemon's log is not theirs to read."""

import pytest

import harness
from test_preempt import Scene

needs_failpoints = pytest.mark.skipif(not harness.has_failpoints(), reason="needs a build with -Dfailpoints=true")


def words(text):
    return " ".join(text.split())


@needs_failpoints
def test_why_a_job_does_not_go_on_from_its_checkpoint_yet_is_said():
    # The first look finds no rights, and the second waits until somebody has seen that.
    with harness.Gate() as gate, harness.Daemon(nodes="sim:1x1xH100-80GB", env={
            "FAIRLEAD_FAILPOINT": "checkpoint-forbidden:error:1,resume-before-look:hold:2", "FAIRLEAD_FAILPOINT_GATE": gate.path, "FAIRLEAD_SHEPHERD_FAILPOINT": ""}) as d:
        s = Scene(d)
        s.save(1)
        rival = s.rival()
        s.wait_note("stopped")
        d.wait(rival, "running")
        s.let_end(1)
        why = "checkpoint 2 can't be read now (the job's account may not read it): it is looked at each second for 2 minutes; then it is void, and the one before is taken"
        harness.wait_until("it is explained", lambda: why in words(d.run("explain", str(s.victim), "-v").out))
        job = s.job()
        assert job["state"] == "resuming" and job["reason"] == why, job
        assert why in words(d.run("job", str(s.victim)).out)
        gate.open()
        s.want("finish")
        job = d.wait(s.victim)
        assert job["state"] == "succeeded" and s.told()[-2:] == ["from 2", "finished 2"], (job, s.told())
        assert why not in words(d.run("explain", str(s.victim), "-v").out)


@needs_failpoints
def test_a_checkpoint_is_kept_while_its_file_server_is_away():
    # Neither it nor the folder in which it lies can be read, for as long as that is waited for; the next time they can.
    with harness.Daemon(nodes="sim:1x1xH100-80GB", env={
            "FAIRLEAD_FAILPOINT": "checkpoint-look:error:1,checkpoint-above:error:1,resume-away-over:error:1", "FAIRLEAD_SHEPHERD_FAILPOINT": ""}) as d:
        s = Scene(d, retries=0)
        s.save(1)
        rival = s.rival()
        s.wait_note("stopped")
        d.wait(rival, "running")
        s.let_end(1)
        s.want("finish")
        job = d.wait(s.victim)
        assert job["state"] == "succeeded" and s.told()[-2:] == ["from 2", "finished 2"], (job, s.told())
        assert [a["why"] for a in job["attempts"]] == ["evicted", "lost", "none"], job["attempts"]
        assert not any(c["void"] for c in job["checkpoints"]), job["checkpoints"]
        assert any("checkpoint 2 can't be read, and nor can the folder in which it lies" in str(e) for e in s.events())
