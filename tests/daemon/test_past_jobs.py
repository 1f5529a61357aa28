# SPDX-License-Identifier: Apache-2.0
"""Jobs that ended long ago leave the daemon's memory: they are shown from the history, their numbers do not come again."""

import pytest

import harness

pytestmark = pytest.mark.skipif(not harness.has_failpoints(), reason="needs a build with -Dfailpoints=true")
EIGHT_DAYS_MS = str(8 * 86400 * 1000)


def after_eight_days(d):
    """The machine was off for so long."""
    assert d.stop() == 0
    d.env.update(FAIRLEAD_TEST_BOOT_ID="second", FAIRLEAD_TEST_WALL_STEP_MS=EIGHT_DAYS_MS)
    d.up()


def test_jobs_that_ended_long_ago_are_shown_from_the_history():
    with harness.Daemon(nodes="sim:1x4xH100-80GB", env={"FAIRLEAD_TEST_BOOT_ID": "first"}) as d:
        done = d.submit("true")
        failed = d.submit("sh", "-c", "exit 3", flags=("--retries", "1"))
        array = d.submit("true", flags=("--array", "3"))
        for number in (done, failed, array, array + 1, array + 2):
            d.wait(number)
        held = d.submit("true", flags=("--hold", "--after", str(done)))
        before = {number: d.job(number) for number in (done, failed, array, array + 2)}
        after_eight_days(d)
        harness.wait_until("they have left", lambda: [j["id"] for j in d.ask("jobs", "--all")] == [held])
        for number, want in before.items():
            assert d.job(number) == want
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
