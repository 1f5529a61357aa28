# SPDX-License-Identifier: Apache-2.0
"""Jobs that ended long ago leave the daemon's memory: they are shown from the history, their numbers do not come again."""

import glob
import os

import pytest

import harness

pytestmark = pytest.mark.skipif(not harness.has_failpoints(), reason="needs a build with -Dfailpoints=true")


def after(d, days):
    """The machine was off for so long."""
    assert d.stop() == 0
    d.env.update(FAIRLEAD_TEST_BOOT_ID="after-%d" % days, FAIRLEAD_TEST_WALL_STEP_MS=str(days * 86400 * 1000))
    d.up()


def test_jobs_that_ended_long_ago_are_shown_from_the_history():
    with harness.Daemon(nodes="sim:1x4xH100-80GB", env={"FAIRLEAD_TEST_BOOT_ID": "first"}) as d:
        done = d.submit("true")
        failed = d.submit("sh", "-c", "echo a word of $FAIRLEAD_ATTEMPT; exit 3", flags=("--retries", "1"))
        array = d.submit("true", flags=("--array", "3"))
        for number in (done, failed, array, array + 1, array + 2):
            d.wait(number)
        held = d.submit("true", flags=("--hold", "--after", str(done)))
        before = {number: d.job(number) for number in (done, failed, array, array + 2)}
        after(d, 8)
        harness.wait_until("they have left", lambda: [j["id"] for j in d.ask("jobs", "--all")] == [held])
        for number, want in before.items():
            assert d.job(number) == want
        page = d.run("job", str(array)).out
        assert "state         3 succeeded\n" in page and page.count("]  succeeded") == 3, page
        told = d.run("explain", str(failed), "-v").out
        assert "it has ended (failed) and waits for nothing: " + before[failed]["reason"] in told, told
        assert before[failed]["attempts"] and "a word of" in d.run("logs", str(failed)).out
        assert d.run("logs", str(done) + "/7", check=False).code != 0
        refused = d.run("run", "--detach", "--after", str(done), "--", "true", check=False)
        assert refused.code != 0 and "ended long ago" in refused.err, refused
        refused = d.run("cancel", "--yes", str(done), check=False)
        assert refused.code != 0 and "not remembered" in refused.err, refused
        assert d.run("job", "99", check=False).code != 0
        d.run("release", str(held))
        assert d.wait(held)["state"] == "succeeded"
        assert d.submit("true") == held + 1
        d.kill()
        d.up()
        assert d.job(failed) == before[failed]


def test_the_policy_says_how_long_a_job_stays_after_its_end():
    with harness.Daemon(nodes="sim:1x4xH100-80GB", env={"FAIRLEAD_TEST_BOOT_ID": "first"}) as d:
        client = harness.Client(d.data)
        d.run("policy", "set", "--keep-ended", "20d")
        job = d.submit("true")
        d.wait(job)
        after(d, 8)
        harness.wait_until("history is there", lambda: client.get("/api/v1/status")["history_seq"] >= client.get("/api/v1/status")["last_seq"])
        assert [j["id"] for j in d.ask("jobs", "--all")] == [job]
        after(d, 25)
        harness.wait_until("it has left", lambda: d.ask("jobs", "--all") == [])
        assert d.job(job)["state"] == "succeeded"


def test_the_history_is_filled_anew_across_a_sealed_segment():
    with harness.Daemon(nodes="sim:1x4xH100-80GB", env={"FAIRLEAD_TEST_BOOT_ID": "first"}) as d:
        old = d.submit("true")
        d.wait(old)
        before = d.job(old)
        client = harness.Client(d.data)
        told = client.get("/api/v1/jobs/%d/history" % old)["events"]
        after(d, 40)  # another month: the segment is sealed
        new = d.submit("true")
        d.wait(new)
        assert len(glob.glob(d.data + "/journal/*.sqlite")) >= 2
        assert d.stop() == 0
        for path in glob.glob(d.data + "/history.sqlite*"):
            os.unlink(path)
        d.up()
        harness.wait_until("history is there again", lambda: client.get("/api/v1/status")["history_seq"] >= client.get("/api/v1/status")["last_seq"])
        assert d.job(old) == before
        assert client.get("/api/v1/jobs/%d/history" % old)["events"] == told
        assert [e["kind"] for e in client.get("/api/v1/jobs/%d/history" % new)["events"]][-1] == "job-ended"
        assert d.run("journal", "verify").code == 0
