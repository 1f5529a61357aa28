# SPDX-License-Identifier: Apache-2.0
"""Arrays with real processes: a limit on how many run at once, sweeps, and jobs that wait for a whole array."""

import pytest

import harness


@pytest.fixture(scope="module")
def d():
    with harness.Daemon(nodes="sim:1x4xH100-80GB") as daemon:
        yield daemon


def submit(d, name, command, **fields):
    return harness.Client(d.data).submit({"name": name, "command": command, **fields}, name)


def lines(path):
    return path.read_text().splitlines() if path.exists() else []


def test_no_more_jobs_of_an_array_run_at_once_than_its_limit(d, tmp_path):
    # Each holds a folder while it runs: a third at the same time would see two others.
    (tmp_path / "run").mkdir()
    command = 'mkdir "$T/run/$FAIRLEAD_ARRAY_INDEX"; ls "$T/run" | wc -l >>"$T/seen"; sleep 0.05; rmdir "$T/run/$FAIRLEAD_ARRAY_INDEX"'
    number = submit(d, "limited", command, array={"count": 8, "limit": 2}, env={"T": str(tmp_path)})
    for element in range(number, number + 8):
        assert d.wait(element)["state"] == "succeeded"
    seen = [int(line) for line in lines(tmp_path / "seen")]
    assert len(seen) == 8 and max(seen) <= 2, seen


def test_the_others_say_that_the_limit_of_their_array_keeps_them(d, tmp_path):
    go = tmp_path / "go"
    number = submit(d, "kept", 'until [ -e "$GO" ]; do sleep 0.02; done', array="3%1", env={"GO": str(go)})
    d.wait(number, "running")
    why = harness.Client(d.data).get("/api/v1/jobs/%d/explain" % (number + 1))
    assert why["reason"] == "array_limit", why
    assert "at once" in why["summary"] and "job %d" % number in why["remedy"], why
    go.touch()
    for element in range(number, number + 3):
        assert d.wait(element)["state"] == "succeeded"


def test_a_sweep_runs_each_combination_once(d, tmp_path):
    number = submit(d, "sweep", 'echo "$LR $SIZE $FIXED" >>"$M"', sweep={"LR": [0.1, 0.01], "SIZE": [32, 64]},
                    array={"limit": 1}, gpus=0, env={"M": str(tmp_path / "m"), "FIXED": "x"})
    for element in range(number, number + 4):
        assert d.wait(element)["state"] == "succeeded"
    assert lines(tmp_path / "m") == ["0.1 32 x", "0.1 64 x", "0.01 32 x", "0.01 64 x"]


def test_a_job_may_wait_for_a_whole_array_or_for_one_of_its_jobs(d, tmp_path):
    go, seen = tmp_path / "go", tmp_path / "seen"
    wait = 'if [ $FAIRLEAD_ARRAY_INDEX = 2 ]; then until [ -e "$GO" ]; do sleep 0.02; done; fi'
    array = submit(d, "parts", wait, array=3, gpus=0, env={"GO": str(go)})
    one = submit(d, "one", 'echo one >>"$M"', depends_on=["%d_1" % array], gpus=0, env={"M": str(seen)})
    whole = submit(d, "whole", 'echo whole >>"$M"', depends_on=[array], gpus=0, env={"M": str(seen)})
    assert d.wait(one)["state"] == "succeeded"
    assert d.state(whole) == "blocked"
    go.touch()
    job = d.wait(whole)
    assert job["state"] == "succeeded" and lines(seen) == ["one", "whole"]
    assert job["depends_on_arrays"] == [array]


def test_a_number_that_the_array_does_not_have_is_refused(d):
    array = submit(d, "three", "true", array=3, gpus=0)
    for wrong, words in (("%d_3" % array, "numbers 0 to 2"), ("999999_0", "no array 999999")):
        status, answer = harness.Client(d.data).until_answered("POST", "/api/v1/jobs", {"command": "true", "depends_on": wrong})
        assert status == 404 and words in str(answer), answer


def test_the_list_has_one_line_for_an_array(d, tmp_path):
    go = tmp_path / "go"
    number = submit(d, "folded", 'until [ -e "$GO" ]; do sleep 0.02; done', array="5%2", env={"GO": str(go)})
    for element in (number, number + 1):
        d.wait(element, "running")
    folded = [line.split() for line in d.run("jobs", "-n", "folded").out.splitlines()[1:]]
    assert len(folded) == 1 and folded[0][0] == "%d[0-4]" % number, folded
    assert "queued:3,running:2" in folded[0] and folded[0][-1] == "array_limit", folded
    each = d.run("jobs", "-n", "folded", "--expand").out.splitlines()[1:]
    assert [line.split()[0] for line in each] == ["%d[%d]" % (number, i) for i in range(4, -1, -1)]
    assert len(d.run("jobs", "-n", "folded", "-o", "name").out.split()) == 5
    go.touch()
    for element in range(number, number + 5):
        assert d.wait(element)["state"] == "succeeded"


def test_jobs_of_an_array_are_cancelled_as_the_list_shows_them(d):
    number = submit(d, "cut", "exec sleep 100000", array=5, gpus=0, hold=True)
    d.run("cancel", "--yes", "%d_[0-1,3]" % number)
    d.run("release", "%d_4" % number)
    for element in (0, 1, 3):
        assert d.wait(number + element)["state"] == "cancelled"
    assert d.state(number + 2) == "held"
    d.wait(number + 4, "running")
    for wrong, words in (("%d_5" % number, "numbers 0 to 4"), ("%d_0" % (number + 1), "not the first of an array"),
                         ("%d_[x]" % number, "40[0-2,5]")):
        answer = d.run("cancel", "--yes", wrong, check=False)
        assert answer.code and words in answer.err, answer
    d.run("cancel", "--yes", "%d_2" % number, "%d_4" % number)
    assert d.wait(number + 4)["state"] == "cancelled"
