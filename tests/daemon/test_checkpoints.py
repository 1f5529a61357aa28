# SPDX-License-Identifier: Apache-2.0
"""Checkpoints: the folder that a job is offered, what counts as one, and what is lost when one is torn."""

import os
import sys

import pytest

import harness


# --- the folder ----------------------------------------------------------------------------------------------------


def test_every_job_is_offered_a_checkpoint_folder_which_goes_when_it_stays_empty(daemon):
    empty = daemon.submit("sh", "-c", 'test -w "$FAIRLEAD_CHECKPOINT_DIR" && echo "folder $FAIRLEAD_CHECKPOINT_DIR"')
    full = daemon.submit("sh", "-c", 'echo state >"$FAIRLEAD_CHECKPOINT_DIR/one"; "%s" report --step 1 --checkpoint one' % harness.PROGRAM)
    for number in (empty, full):
        assert daemon.wait(number)["state"] == "succeeded", daemon.logs(number)
    folder = os.path.join(daemon.data, "checkpoints")
    assert daemon.logs(empty) == "folder %s/%d\n" % (folder, empty)
    harness.wait_until("the empty one is removed", lambda: not os.path.exists("%s/%d" % (folder, empty)))
    assert os.listdir("%s/%d" % (folder, full)) == ["one"]
    assert [c["path"] for c in daemon.job(full)["checkpoints"]] == ["%s/%d/one" % (folder, full)]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs two accounts")
def test_where_users_cannot_get_into_the_data_folder_jobs_run_without_one(tmp_path):
    data = tmp_path / "closed"
    data.mkdir(mode=0o700)
    tmp_path.chmod(0o700)
    with harness.Daemon(data=str(data)) as d:
        number = d.submit("sh", "-c", 'echo "folder ${FAIRLEAD_CHECKPOINT_DIR-none}"')
        assert d.wait(number)["state"] == "succeeded" and d.logs(number) == "folder none\n"


# --- what counts as one -----------------------------------------------------------------------------------------------


def test_a_checkpoint_that_was_never_written_is_refused_and_does_not_end_a_victims_grace(tmp_path):
    told, go = tmp_path / "told", tmp_path / "go"
    script = """warned() { "$0" report --step 7 --checkpoint never-written 2>"$1.tmp"; echo "code $?" >>"$1.tmp"; mv "$1.tmp" "$1"; }
trap 'warned "$1"' USR1
until [ -e "$2" ]; do sleep 0.05; done
echo state >"$FAIRLEAD_CHECKPOINT_DIR/one"; "$0" report --step 8 --checkpoint one
while :; do sleep 0.05; done
"""
    with harness.Daemon(nodes="sim:1x1xH100-80GB") as d:
        victim = d.submit("bash", "-c", script, harness.PROGRAM, str(told), str(go),
                          flags=("--gpus", "1", "--checkpoint", "signal", "--checkpoint-grace", "10m"))
        d.wait(victim, "running")
        d.run("nodes", "drain", "node0")
        harness.wait_until("it has answered the warning", told.exists)
        text = told.read_text()
        assert 'there is no checkpoint at "%s/checkpoints/%d/never-written"' % (d.data, victim) in text and "code 0" not in text, text
        job = d.job(victim)
        assert job["state"] == "checkpointing" and job["checkpoints_made"] == 0, job
        go.touch()
        harness.wait_until("it has made room", lambda: d.state(victim) in ("preempted", "queued"))
        assert [(c["step"], c["number"]) for c in d.job(victim)["checkpoints"]] == [(8, 1)]


def test_how_often_a_job_saves_its_work_is_told_to_it_and_it_is_asked(daemon):
    code = ("import os,signal,time\ndone=[]\nsignal.signal(signal.SIGUSR1,lambda *a: done.append(1))\n"
            "while not done: time.sleep(0.02)\nprint('asked, every', os.environ['FAIRLEAD_CHECKPOINT_EVERY_SECONDS'])")
    number = daemon.submit(sys.executable, "-c", code, flags=("--checkpoint", "signal", "--checkpoint-every", "1s"))
    assert daemon.wait(number)["state"] == "succeeded", daemon.logs(number)
    assert daemon.logs(number) == "asked, every 1\n"


def test_a_checkpoint_that_is_not_used_is_shown_with_the_reason(daemon):
    script = 'if [ -n "$FAIRLEAD_RESUME_FROM" ]; then exit 0; fi; cd "$FAIRLEAD_CHECKPOINT_DIR"; for i in one two three; do echo state >$i; ' \
             '"$0" report --step 1 --checkpoint $i; done; : >two; rm three; exit 1'
    job = daemon.wait(daemon.submit("sh", "-c", script, harness.PROGRAM, flags=("--retries", "1", "--checkpoint", "signal")))
    assert [a["resumed_from"] for a in job["attempts"]] == [0, 1], job
    assert [(c["number"], c["void"], c.get("why")) for c in job["checkpoints"]] == [
        (3, True, "it is missing or can't be read"), (2, True, "it is smaller than it was when it was reported complete"), (1, False, None)], job
    text = daemon.run("job", str(job["id"])).out
    assert "  not used: it is smaller than it was when it was reported complete" in text and text.count("not used: ") == 2, text
