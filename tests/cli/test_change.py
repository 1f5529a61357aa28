# SPDX-License-Identifier: Apache-2.0
"""Jobs that are changed after their submission, and deeds to many jobs in one request."""

import pytest

import harness

ONE = "sim:1x4xH100-80GB"


@pytest.fixture(scope="module")
def d():
    with harness.Daemon(nodes=ONE) as daemon:
        yield daemon


def held(d, *flags):
    return d.submit("true", flags=("--hold", *flags))


def wait_state(d, job, state):
    harness.wait_until("job %d is %s" % (job, state), lambda: d.state(job) == state)


def kinds(d, job):
    return [e["kind"] for e in events(d, job)]


def events(d, job):
    return harness.Client(d.data).once("GET", "/api/v1/jobs/%d/history?limit=500" % job)[1]["events"]


def test_a_waiting_job_asks_for_something_else_and_keeps_its_number(d):
    job = held(d, "-n", "first", "--gpus", "9", "--limit", "1h", "--model", "H100-80GB")
    done = d.run("change", str(job), "--gpus", "2", "--tasks", "2", "--limit", "2h", "-n", "second", "--deadline", "9h", "--retries", "3")
    assert done.out == "job %d is changed\n" % job
    is_now = d.job(job)
    assert (is_now["name"], is_now["gpus_per_task"], is_now["tasks_min"], is_now["limit_ms"]) == ("second", 2, 2, 7200000)
    assert is_now["models"] == ["H100-80GB"], "what was not named stays"
    assert d.run("change", str(job), "--gpus", "2").out == "job %d was so already\n" % job
    record = [e for e in events(d, job) if e["kind"] == "job-changed"]
    assert [e["event"]["what"] for e in record] == ["name,tasks,gpus,limit,deadline,retries"]
    d.run("change", str(job), "--unset", "deadline", "--unset", "gpus.model")
    assert not d.job(job).get("deadline_ms") and not d.job(job)["models"]
    d.run("release", str(job))
    assert d.wait(job)["state"] == "succeeded" and d.job(job)["tasks_min"] == 2


@pytest.mark.parametrize("flags, message", [
    (("--gpus", "33"), "--gpus: gpus.count: 33 is not between 0 and 32"),
    (("--limit", "soon"), "--limit"),
    (("--queue", "nowhere"), "queue \"nowhere\" does not exist"),
    (("--unset", "command"), "command can't be changed: what a job runs stays as it was submitted"),
    (("--unset", "hat"), "a job has no field \"hat\""),
    (("--unset", "team"), "team can't be changed: its use counts for the team that it was submitted for"),
    (("--array-limit", "2"), "is no array: array.limit says nothing about it"),
    (("--checkpoint", "signal"), "checkpoint.how can't be signal: it was submitted without a signal"),
    ((), "change needs what is to be different"),
])
def test_what_can_not_be_changed_is_refused_by_name(d, flags, message):
    job = held(d)
    done = d.run("change", str(job), *flags, check=False)
    assert done.code and message in done.err, done.err
    assert "job-changed" not in kinds(d, job)
    d.run("cancel", str(job))


def test_of_a_running_job_name_limit_and_deadline_change(d):
    job = d.submit("sleep", "1000", flags=("--gpus", "1", "--limit", "1h"))
    wait_state(d, job, "running")
    done = d.run("change", str(job), "--gpus", "2", "--limit", "2h", check=False)
    assert done.code == 5 and "has started, and gpus can't be changed of a job that has its place" in done.err
    d.run("change", str(job), "--limit", "30h", "-n", "long", "--deadline", "40h")
    is_now = d.job(job)
    assert (is_now["name"], is_now["limit_ms"], is_now["state"]) == ("long", 30 * 3600000, "running") and is_now["deadline_ms"]
    d.run("cancel", str(job), check=False)
    d.wait(job)
    done = d.run("change", str(job), "--limit", "2h", check=False)
    assert done.code == 5 and "can't be changed any more" in done.err


def test_a_hold_of_a_running_job_says_when_it_takes_effect(d):
    job = d.submit("sleep", "1000", flags=("--gpus", "1"))
    wait_state(d, job, "running")
    done = d.run("hold", str(job))
    assert done.out == "job %d runs on: the hold takes effect when it would start again. To stop it now: fairlead cancel\n" % job
    assert d.state(job) == "running" and d.job(job)["held"]
    assert "held: it runs on, and does not start again when it has been stopped" in " ".join(d.run("job", str(job)).out.split())
    d.run("cancel", str(job))
    d.wait(job)


def test_an_array_changes_whole_or_one_by_one(d):
    array = held(d, "--array", "5")
    assert d.run("change", str(array), "--gpus", "2", "--array-limit", "2").out == "array %d: 5 jobs are changed\n" % array
    assert [d.job(array + i)["gpus_per_task"] for i in range(5)] == [2] * 5 and d.job(array)["array_limit"] == 2
    assert d.run("change", "%d[3]" % array, "--gpus", "3").out == "job %d[3] is changed\n" % array
    assert [d.job(array + i)["gpus_per_task"] for i in range(5)] == [2, 2, 2, 3, 2]
    done = d.run("change", "%d[3]" % array, "--deadline", "9h", check=False)
    assert done.code == 5 and "is one of array %d, whose jobs have deadline together: change the array" % array in done.err
    d.run("change", str(array), "--deadline", "9h")
    assert "job-changed" in kinds(d, array + 3)
    d.run("cancel", str(array), "--yes")


def test_a_dry_run_names_whom_the_change_delays(d):
    first = d.submit("sleep", "1000", flags=("--gpus", "4", "--limit", "1h"))
    wait_state(d, first, "running")
    wide = d.submit("true", flags=("--gpus", "1", "--limit", "1h", "-n", "wide", "--estimate", "10m"))
    other = d.submit("true", flags=("--gpus", "3", "--limit", "1h", "-n", "other", "--estimate", "10m"))
    done = d.run("change", str(wide), "--gpus", "2", "--dry-run")
    assert "job %d would change: gpus\n" % wide in done.out and "Estimated start: about" in done.out
    assert "1 job would start later:\n" in done.out and "job %d \"other\" of " % other in done.out
    assert "No job would start later.\n" in d.run("change", str(wide), "-n", "thin", "--dry-run").out
    assert d.job(wide)["gpus_per_task"] == 1 and "job-changed" not in kinds(d, wide)
    for job in (first, wide, other):
        d.run("cancel", str(job), check=False)
        d.wait(job)


# --- many at once ----------------------------------------------------------------------------------------------------


def test_ten_thousand_jobs_are_held_and_cancelled_by_one_request_each(d):
    array = held(d, "--array", "10000")
    commits = harness.Client(d.data).get("/api/v1/status")["commits"]
    assert d.run("priority", str(array), "--to", "-3").out == "10000 jobs have priority -3\n"
    assert d.job(array + 9999)["priority"] == -3
    assert d.run("hold", str(array)).out == "0 jobs are held, 10000 were so already\n"
    assert d.run("cancel", "%d[5000-9999]" % array, "--yes").out == "5000 jobs are being cancelled\n"
    assert d.run("cancel", str(array), "--yes").out == "5000 jobs are being cancelled\n"
    assert harness.Client(d.data).get("/api/v1/status")["commits"] - commits < 1000, "a request for each job would commit each time"
    harness.wait_until("all have ended", lambda: d.state(array + 9999) == d.state(array) == "cancelled")


def test_the_queries_of_the_list_say_which_jobs_are_meant(d):
    mine = [held(d, "-n", "together") for _ in range(25)]
    other = held(d, "-n", "apart")
    assert d.run("cancel", "--name", "together", "--me", "--yes").out == "25 jobs are being cancelled\n"
    for job in mine:
        assert d.wait(job)["state"] == "cancelled"
    assert d.state(other) == "held"
    answer = harness.Client(d.data).once("POST", "/api/v1/job-actions", {"action": "cancel"})
    assert answer[0] == 400 and "say which jobs" in str(answer)
    d.run("cancel", str(other))
