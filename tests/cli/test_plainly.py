# SPDX-License-Identifier: Apache-2.0
"""What a person sees of arrays, elastic jobs, money and promises, and that many jobs are told of in few lines."""

import harness

ONE = "sim:1x4xH100-80GB"


def test_an_array_is_explained_as_one_by_its_reasons():
    with harness.Daemon(nodes=ONE) as d:
        holder = d.submit("sleep", "1000", flags=("-g", "4", "--limit", "1h"))
        d.wait(holder, "running")
        assert "In queue default the first of its 50 jobs would wait: needs 1 GPU" in d.run("run", "--dry-run", "--array", "50", "--", "true").out
        array = d.submit("true", flags=("--array", "50%3"))
        harness.wait_until("all wait", lambda: len([j for j in d.jobs() if j["state"] == "queued"]) == 50)
        shown = d.run("explain", str(array), "-v").out
        assert 'array %d "true": 50 jobs, at most 3 at once: 50 queued' % array in shown
        assert "  3 wait (capacity: %d[0-2]): needs 1 GPU; 0 GPUs are free for it" % array in shown
        assert "  47 wait (array_limit: %d[3-49]): " % array in shown
        assert "others of it have their turn before" in shown
        told = d.ask("explain", str(array))
        assert told["states"] == {"queued": 50} and [(w["reason"], w["count"]) for w in told["waiting"]] == [("capacity", 3), ("array_limit", 47)]
        assert d.run("explain", "%d_0" % array, "-o", "name").out == "capacity\n"
        assert d.run("explain", "%d_49" % array, "-o", "name").out == "array_limit\n"
        d.run("cancel", str(holder))
        harness.wait_until("all have ended", lambda: not d.jobs())
        assert d.run("explain", str(array), "-v").out.endswith("50 succeeded\nNone of them waits.\n")


def test_a_job_of_an_array_goes_by_its_number_everywhere():
    with harness.Daemon(nodes=ONE) as d:
        array = d.submit("sh", "-c", "echo number $FAIRLEAD_ARRAY_INDEX", flags=("--array", "5"))
        d.wait(array + 4)
        assert d.ask("job", "%d_4" % array)["id"] == array + 4
        assert d.run("logs", "%d_3" % array).out == d.run("logs", "%d_3/0" % array).out == "number 3\n"
        for words in (["job"], ["explain"], ["logs"]):
            done = d.run(*words, "%d_5" % array, check=False)
            assert done.code == 3 and "has the numbers 0 to 4" in done.err, done
            done = d.run(*words, "%d_[1-2]" % array, check=False)
            assert done.code == 2 and "names 2 jobs; name one of them" in done.err, done
        held = d.submit("true", flags=("--array", "4", "--hold"))
        assert d.run("priority", "%d_[1-2]" % held, "--to", "7").out.count("has priority 7") == 2
        assert [d.job(held + i)["priority"] for i in range(4)] == [0, 7, 7, 0]


def test_many_jobs_are_cancelled_in_one_line():
    with harness.Daemon(nodes=ONE) as d:
        array = d.submit("true", flags=("--array", "60", "--hold"))
        assert d.run("cancel", "%d_[0-2]" % array, "--yes").out.count("is being cancelled") == 3
        for number in range(array, array + 3):
            d.wait(number)
        done = d.run("cancel", "%d_[0-59]" % array, "--yes", check=False)
        assert done.out == "57 jobs are being cancelled, 3 can't be\n" and done.err.count("has ended as cancelled") == 3, done
        assert done.code == 5


def test_an_elastic_job_shows_what_it_holds_now():
    with harness.Daemon(nodes=ONE) as d:
        d.run("policy", "set", "--min-runtime", "0s")
        elastic = d.submit("sleep", "1000", flags=("-t", "1..4"))
        d.wait(elastic, "running")
        assert "before that it gives up tasks above its least 1" in d.run("run", "--dry-run", "-t", "1..4", "--", "true").out
        urgent = d.submit("sleep", "1000", flags=("-t", "3", "-p", "5"))
        d.wait(urgent, "running")
        row = {j["id"]: j for j in d.ask("jobs")}[elastic]
        assert (row["tasks"], row["gpus"], row["tasks_max"]) == (1, 1, 4)
        line = [words.split() for words in d.run("jobs").out.splitlines() if words.split()[0] == str(elastic)][0]
        assert line[6:8] == ["1..4", "1"], line
        assert [q["gpus"] for q in d.ask("queues") if q["name"] == "default"] == [4]
        page = d.run("job", str(elastic)).out
        assert "has           1 task now\n" in page and page.count("  left  ") == 3, page
        assert [task["from_ms"] > 0 for task in d.job(elastic)["attempts"][0]["tasks"]].count(True) == 1
        assert "it has 1 of the 4 tasks that it could use" in d.run("explain", str(elastic), "-v").out


def test_an_attempt_says_which_of_the_job_it_is():
    with harness.Daemon(nodes=ONE) as d:
        d.wait(d.submit("true"))
        twice = d.submit("false", flags=("--retries", "1"))
        assert d.wait(twice)["attempt_count"] == 2
        assert "\nattempt 2 of 2 is over" in d.run("job", str(twice)).out
        assert "\nattempt 1 is over" in d.run("job", "1").out


def test_an_explanation_knows_what_was_done_just_before():
    with harness.Daemon(nodes="sim:2x4xH100-80GB") as d:
        d.run("hold", str(d.submit("true", flags=("--hold",))))
        wide = d.submit("true", flags=("-t", "9"))
        assert "change with which it would start now: asking for 8 tasks\n" in d.run("explain", str(wide), "-v").out
        d.run("nodes", "drain", "node0")
        assert 'asking for 8 tasks and node "node0" being ready' in d.run("explain", str(wide), "-v").out


def test_amounts_are_short_and_promises_beyond_all_gpus_are_pointed_out():
    with harness.Daemon(nodes=ONE) as d:
        d.run("prices", "set", "H100-80GB", "2")
        d.run("prices", "set", "any", "0.000125")
        assert [line.split() for line in d.run("prices", "--no-headers").out.splitlines()] == [["H100-80GB", "2.00"], ["any", "0.000125"]]
        assert d.run("queues", "create", "vision", "--guarantee", "3").err == ""
        d.run("queues", "budget", "vision", "12.5", "--currency", "EUR")
        assert "12.50_EUR" in d.run("queues", "-o", "wide").out
        done = d.run("queues", "create", "language", "--guarantee", "2")
        assert "all guarantees together are 5 GPUs, and there are 4" in done.err
        assert d.run("queues", "change", "language", "--guarantee", "1").err == ""
