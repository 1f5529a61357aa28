# SPDX-License-Identifier: Apache-2.0
"""Which jobs a list shows, in which order and form; arrays by one number; jobs cancelled by what they are."""

import csv
import io
import subprocess

import pytest

import harness
from test_output import on_terminal

ONE = "sim:1x4xH100-80GB"


@pytest.fixture(scope="module")
def d():
    with harness.Daemon(nodes=ONE) as daemon:
        yield daemon


def sweep(d, name, values, command="true", **fields):
    return harness.Client(d.data).submit({"name": name, "command": command, "sweep": values, **fields}, name)


def rows(d, *words):
    return [line.split() for line in d.run("jobs", *words).out.splitlines()[1:]]


# --- arrays ----------------------------------------------------------------------------------------------------------


def test_the_number_of_an_array_is_the_whole_array(d):
    array = d.submit("true", flags=("--array", "4", "--hold", "-n", "whole"))
    single = d.submit("true", flags=("--hold",))
    assert d.run("priority", str(array), "--to", "5").out.count("has priority 5") == 4
    assert [d.job(array + i)["priority"] for i in range(4)] == [5] * 4 and d.job(single)["priority"] == 0
    assert d.run("cancel", "%d[3]" % array).out == "job %d[3] is being cancelled\n" % array
    d.wait(array + 3)
    done = d.run("release", str(array))  # what has ended is no longer meant
    assert done.out.splitlines() == ["job %d[%d] may start" % (array, i) for i in range(3)]
    for i in range(3):
        assert d.wait(array + i)["state"] == "succeeded"
    done = d.run("hold", str(array), check=False)
    assert done.code == 5 and "all of its 4 jobs have ended" in done.err
    assert d.state(single) == "held"
    d.run("cancel", str(single))


def test_an_array_is_cancelled_whole_and_only_when_that_is_meant(d):
    array = d.submit("true", flags=("--array", "30", "--hold"))
    done = d.run("cancel", str(array), check=False, stdin="")
    assert done.code == 2 and "30 jobs would be cancelled; say --yes" in done.err
    assert d.run("cancel", "%d[0-1,4]" % array, "--yes").out.count("is being cancelled") == 3
    for i in (0, 1, 4):
        d.wait(array + i)
    assert d.run("cancel", str(array), "--yes").out == "27 jobs are being cancelled\n"
    for i in range(30):
        assert d.wait(array + i)["state"] == "cancelled"


@pytest.mark.parametrize("word,message", [("%d[4]", "has the numbers 0 to 1"), ("%d[", "no ] at the end"), ("%d[x]", "40[3] or 40[0-2,5]"),
                                          ("%d_[0", "no ] at the end"), ("%d[0-1]", "names 2 jobs; name one of them")])
def test_a_wrong_number_of_an_array_is_refused(d, word, message):
    array = d.submit("true", flags=("--array", "2"))
    done = d.run("job", word % array, check=False)
    assert done.code in (2, 3) and message in done.err, done


def test_both_forms_of_a_number_are_read(d):
    array = d.submit("true", flags=("--array", "3"))
    for word in ("%d[2]", "%d_2", "%d_[2]"):
        assert d.ask("job", word % array)["id"] == array + 2


def test_the_page_of_an_array_has_all_its_jobs_with_the_values_of_the_sweep(d):
    array = sweep(d, "grid", {"LR": [0.1, 0.01], "SIZE": [32, 64]}, command='exit $((SIZE == 64 && ${#LR} == 4))')
    for i in range(4):
        d.wait(array + i)
    page = d.run("job", str(array)).out
    assert page.startswith("array %d  grid\nstate         3 succeeded, 1 failed\narray         4 jobs\n" % array), page
    lines = [line.split() for line in page.splitlines() if line.startswith("%d[" % array)]
    assert [(words[0], words[1], words[2]) for words in lines] == [
        ("%d[0]" % array, "succeeded", "LR=0.1,SIZE=32"), ("%d[1]" % array, "succeeded", "LR=0.1,SIZE=64"),
        ("%d[2]" % array, "succeeded", "LR=0.01,SIZE=32"), ("%d[3]" % array, "failed", "LR=0.01,SIZE=64")]
    answer = d.ask("job", str(array))
    assert (answer["array"], answer["count"], answer["states"]) == (array, 4, {"succeeded": 3, "failed": 1})
    assert answer["jobs"][3]["sweep"] == ["LR=0.01", "SIZE=64"]
    assert d.run("job", str(array), "-o", "name").out.splitlines() == ["%d[%d]" % (array, i) for i in range(4)]
    one = d.run("job", "%d[2]" % array).out
    assert "sweep         LR=0.01\n              SIZE=32\n" in one, one
    assert d.ask("job", str(array), "--spec")["sweep"] == {"LR": ["0.1", "0.01"], "SIZE": ["32", "64"]}


def test_the_history_is_of_one_job(d):
    array = d.submit("true", flags=("--array", "2"))
    done = d.run("job", str(array), "--history", check=False)
    assert done.code == 2 and "%d[0]" % array in done.err
    assert d.run("job", "%d[1]" % array, "--history").out


def test_the_logs_of_an_array_are_those_of_all_its_jobs(d):
    array = d.submit("sh", "-c", "echo out $FAIRLEAD_ARRAY_INDEX; echo err $FAIRLEAD_ARRAY_INDEX >&2", flags=("--array", "3"))
    for i in range(3):
        d.wait(array + i)
    done = d.run("logs", str(array))
    assert done.out == "[0] out 0\n[1] out 1\n[2] out 2\n" and done.err == "[0] err 0\n[1] err 1\n[2] err 2\n", done
    assert d.run("logs", "%d[1]" % array).out == "out 1\n"
    held = d.submit("true", flags=("--array", "2", "--hold"))
    done = d.run("logs", str(held), check=False)
    assert done.code == 3 and "none of the 2 jobs of array %d has started" % held in done.err
    d.run("cancel", str(held), "--yes")


def test_a_job_file_names_jobs_of_arrays_in_either_form(d):
    array = d.submit("true", flags=("--array", "2", "--hold"))
    waits = d.submit("true", flags=("--after", "%d[1]" % array))
    assert d.job(waits)["depends_on"] == [array + 1]
    d.run("cancel", str(waits), str(array), "--yes")


# --- lists -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def many():
    """Sixty jobs that wait, and some that have ended."""
    with harness.Daemon(nodes=ONE) as daemon:
        for i in range(3):
            daemon.wait(daemon.submit("true", flags=("-n", "ended-%d" % i)))
        for i in range(60):
            daemon.submit("true", flags=("--hold", "-n", "n%02d" % (59 - i), "-g", str(i % 4), "-p", str(i % 3)))
        yield daemon


def test_a_table_has_fifty_rows_and_says_how_many_more(many):
    done = many.run("jobs")
    lines = done.out.splitlines()
    assert len(lines) == 51 and "and 13 more; `--limit all` shows them" in done.err
    assert [line.split()[1] for line in lines[1:4]] == ["n00", "n01", "n02"]  # the newest first
    done = many.run("jobs", "--limit", "all")
    assert len(done.out.splitlines()) == 64 and "more;" not in done.err
    assert [line.split()[1] for line in done.out.splitlines()[-3:]] == ["ended-2", "ended-1", "ended-0"]
    assert len(rows(many, "--limit", "7")) == 7
    assert len(rows(many, "--active", "--limit", "all")) == 60
    assert len(many.run("jobs", "-o", "name").out.split()) == len(many.ask("jobs")) == 63  # for programs: all


def test_rows_come_in_the_order_asked_for(many):
    assert [r[1] for r in rows(many, "--sort", "name", "--limit", "2")] == ["ended-0", "ended-1"]
    assert [r[1] for r in rows(many, "--sort", "-name", "--limit", "2")] == ["n59", "n58"]
    assert [r[7] for r in rows(many, "--sort", "gpus", "--limit", "15")] == ["3"] * 15
    assert [j["priority"] for j in many.ask("jobs", "--sort", "priority")][::30] == [2, 1, 0]
    assert [j["id"] for j in many.ask("jobs")] == sorted(j["id"] for j in many.ask("jobs"))
    done = many.run("jobs", "--sort", "nmae", check=False)
    assert done.code == 2 and 'jobs can\'t be sorted by "nmae"; did you mean "name"' in done.err


def test_columns_are_those_asked_for(many):
    lines = many.run("jobs", "--columns", "name,job,priority", "--sort", "name", "--limit", "4").out.splitlines()
    assert lines[0].split() == ["NAME", "JOB", "PRIORITY"] and lines[4].split() == ["n00", "63", "2"]
    for words in (["jobs"], ["nodes"], ["queues"], ["gpus"], ["users"]):
        done = many.run(*words, "--columns", "state,nonsense", check=False)
        assert done.code == 2 and done.out == "" and "there are" in done.err, done
    assert "did you mean STATE?" in many.run("jobs", "--columns", "sate", check=False).err
    assert many.run("jobs", "--columns", "", check=False).code == 2
    assert many.run("run", "--columns", "job", "--", "true", check=False).code == 2  # no list, no such flag


def test_csv_is_read_back(many):
    many.run("hold", "10", "--reason", 'two words, "quoted"')
    table = list(csv.DictReader(io.StringIO(many.run("jobs", "-o", "csv").out)))
    assert len(table) == 63 and table[0]["name"] == "ended-0" and table[3]["state"] == "held"
    assert {"priority", "team", "submitted", "reason"} <= set(table[0])
    assert many.run("jobs", "-o", "csv", "--columns", "job,state", "--limit", "1").out == "job,state\n1,succeeded\n"
    assert many.run("jobs", "-o", "csv", "--columns", "job,state", "--limit", "1", "--no-headers").out == "1,succeeded\n"
    for words in (["nodes"], ["gpus"], ["queues"], ["users"], ["teams"]):
        table = list(csv.reader(io.StringIO(many.run(*words, "-o", "csv").out)))
        assert len(table) > 1 - (words == ["teams"]) and len({len(row) for row in table}) == 1, words


def test_since_is_about_those_that_have_ended(many):
    assert len(rows(many, "--since", "1h", "--limit", "all")) == 63
    assert len(rows(many, "--since", "0s", "--limit", "all")) == 60
    assert len(rows(many, "--since", "2020-01-01T00:00Z", "--limit", "all")) == 63
    for words, message in ((["--since", "yesterday"], "expected how long ago"), (["--since", "1h", "--active"], "contradict each other"),
                           (["--me", "--user", "x"], "contradict each other"), (["--limit", "none"], "--limit")):
        done = many.run("jobs", *words, check=False)
        assert done.code == 2 and message in done.err, done


def test_a_list_is_of_the_caller_unless_it_says_otherwise(many):
    me = many.ask("whoami")["user"]
    assert len(rows(many, "--me", "--limit", "all")) == len(rows(many, "--user", me, "--limit", "all")) == 63
    assert rows(many, "--user", "other") == []


def test_two_users_see_their_own_and_each_others_when_they_ask():
    with harness.Daemon(nodes=ONE, listen="127.0.0.1:0") as d:
        d.run("users", "add", "rita", "--role", "researcher")
        token = d.run("token", "create", "--user", "rita").out.strip()
        clean = {k: v for k, v in d.env.items() if k != "FAIRLEAD_DATA"}
        env = dict(clean, FAIRLEAD_SERVER="http://127.0.0.1:" + d.tcp_port(), FAIRLEAD_TOKEN=token)

        def rita(*words):
            return subprocess.run([harness.PROGRAM, *words], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)

        first, second = d.submit("true", flags=("--hold",)), d.submit("true", flags=("--hold",))
        assert "no job of yours waits" in rita("jobs").stderr
        for words in (["--all"], ["--queue", "default"], ["--user", d.ask("whoami")["user"]]):
            assert rita("jobs", "-o", "name", *words).stdout == "%d\n%d\n" % (first, second), words
        for words in ([], ["--me"], ["--state", "held"], ["--me", "--all"], ["--me", "--queue", "default"]):
            assert rita("jobs", "-o", "name", *words).stdout == "", words
        done = rita("cancel", "--me", "--yes")
        assert done.returncode == 0 and "no such job waits or runs" in done.stderr
        done = rita("cancel", "--queue", "default", "--yes")  # what is named, and may not be
        assert done.returncode == 4 and d.state(first) == d.state(second) == "held", done.stderr
        d.run("cancel", "--me", "--yes")
        assert d.wait(first)["state"] == d.wait(second)["state"] == "cancelled"


def test_an_empty_list_says_where_to_look(d):
    with harness.Daemon(nodes=ONE) as empty:
        done = empty.run("jobs")
        assert "no job of yours waits, runs or has ended within a day; `fairlead jobs --all` shows everybody's" in done.err
        assert empty.run("jobs", "-o", "json").err == ""
        assert "no such job" in empty.run("jobs", "--user", "somebody").err


# --- cancelling by what they are ----------------------------------------------------------------------------------------


def test_jobs_are_cancelled_by_state_and_owner():
    with harness.Daemon(nodes=ONE) as d:
        running = d.submit("sleep", "1000", flags=("-g", "4"))
        d.wait(running, "running")
        queued = d.submit("true", flags=("-g", "4"))
        held = d.submit("true", flags=("--hold",))
        other = d.submit("true", flags=("--hold", "-n", "other"))
        d.wait(queued, "queued")
        done = d.run("cancel", "--me", "--state", "queued,held,preempted", check=False, stdin="")
        assert done.code == 2 and "3 jobs would be cancelled; say --yes" in done.err
        assert d.run("cancel", "--name", "other").out == "job %d is being cancelled\n" % other
        d.wait(other)
        d.run("cancel", "--me", "--state", "queued,held,preempted", "--yes")
        assert d.wait(queued)["state"] == d.wait(held)["state"] == "cancelled" and d.state(running) == "running"
        done = d.run("cancel", "--state", "queued")
        assert done.out == "" and "no such job waits or runs" in done.err
        for words, message in ((["--me", "3"], "takes numbers, or flags"), (["--state", "qeued"], "did you mean"), ([], "cancel needs ID")):
            done = d.run("cancel", *words, check=False)
            assert done.code == 2 and message in done.err, done
        assert d.run("cancel", "--me").out == "job %d is being cancelled\n" % running
        d.wait(running)


# --- logs ----------------------------------------------------------------------------------------------------------------


def test_the_end_of_a_log_is_counted_in_lines(d, tmp_path):
    go = tmp_path / "go"  # the order of one burst of many lines to both streams is not certain
    number = d.submit("sh", "-c", "seq 1 100000; printf open; until [ -e %s ]; do sleep 0.02; done; seq 1 3 >&2" % go)
    logs = lambda *words: d.run("logs", str(number), *words)
    harness.wait_until("stdout is there", lambda: logs("--tail", "1", "--stdout").out == "open")
    go.touch()
    d.wait(number)
    assert (logs("--tail", "2").out, logs("--tail", "2").err) == ("open", "3\n")  # of both together; what is not ended is the last
    assert logs("--tail", "2", "--stdout").out == "100000\nopen"
    assert logs("--tail", "3", "--stdout").out.split() == ["99999", "100000", "open"] and logs("--tail", "3", "--stdout").err == ""
    assert logs("--tail", "2", "--stderr").out == "2\n3\n" and logs("--stderr").out == "1\n2\n3\n"
    assert logs("--tail", "50001", "--stdout").out.split()[0] == "50001"
    assert len(logs("--tail", "1000000", "--stdout").out.split()) == 100001
    assert logs("-f", "--tail", "1", "--stdout").out == "open"
    assert logs("--tail-bytes", "4", "--stdout").out == "open"
    for words, message in ((["--tail", "0"], "--tail"), (["--tail", "1", "--tail-bytes", "1"], "contradict each other")):
        done = d.run("logs", str(number), *words, check=False)
        assert done.code == 2 and message in done.err
    answer = harness.Client(d.data).until_answered("GET", "/api/v1/jobs/%d/logs/0?lines=1&offset=1" % number)
    assert answer[0] == 400 and "contradict each other" in str(answer)


def test_both_streams_come_each_where_it_belongs(d):
    number = d.submit("sh", "-c", "echo out; echo err >&2")
    d.wait(number)
    done = d.run("logs", str(number))
    assert (done.out, done.err) == ("out\n", "err\n")
    done = d.run("logs", "-f", str(number))
    assert (done.out, done.err) == ("out\n", "err\n")
    silent = d.submit("true")
    d.wait(silent)
    assert "has printed nothing" in d.run("logs", str(silent)).err
    assert "fairlead logs %d/0 --stderr` shows its stderr" % silent in d.run("logs", str(silent), "--stdout").err
