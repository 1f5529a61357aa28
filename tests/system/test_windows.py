# SPDX-License-Identifier: Apache-2.0
"""What is announced for a time: maintenance of nodes. Real processes, a real clock."""

import os
import time

import harness


def node(d, name="node0"):
    return next(n for n in d.ask("nodes") if n["name"] == name)


def test_a_job_makes_way_for_maintenance_and_goes_on_when_the_node_is_back():
    with harness.Daemon("sim:1x1xH100-80GB") as d:
        d.run("policy", "set", "--min-runtime", "0s", "--grace", "1s")
        job = d.submit("sleep", "600")
        d.wait(job, "running")
        d.run("nodes", "maintenance", "node0", "--from", "30m", "--for", "4h", "--reason", "new fan")
        assert node(d)["maintenance_reason"] == "new fan" and "new_fan" in d.run("nodes").out
        late = d.submit("true")
        text = d.run("explain", str(late), "-v").out
        assert 'no maintenance of node "node0"' in text, text
        d.run("nodes", "maintenance", "node0", "--from", "2s", "--for", "4h")
        d.wait(job, "queued", "preempted")
        harness.wait_until("the node is in maintenance", lambda: node(d)["state"] == "maintenance")
        text = d.run("explain", str(late), "-v").out
        assert 'node "node0" has maintenance, which ends in' in text, text
        assert 'has maintenance' in d.run("job", str(job)).out
        d.run("nodes", "maintenance", "node0", "--for", "2s")
        harness.wait_until("the node is back", lambda: node(d)["state"] == "ready")
        assert node(d)["maintenance_to_ms"] == 0
        d.wait(job, "running")
        assert len(d.job(job)["attempts"]) == 2
        d.run("cancel", str(job))
        d.wait(late, "succeeded")


def test_a_job_that_saves_says_until_when_though_the_notice_moves():
    """What was told first is an hour too long by then, or too short; what the node's announcement says now holds."""
    with harness.Daemon("sim:1x1xH100-80GB") as d:
        d.run("policy", "set", "--min-runtime", "0s", "--grace", "1h")
        job = d.submit("sleep", "600")
        d.wait(job, "running")
        told = []
        for begins in ("30m", "50m", "20m"):
            d.run("nodes", "maintenance", "node0", "--from", begins, "--for", "1h")
            d.wait(job, "checkpointing")
            begins_ms = node(d)["maintenance_from_ms"]
            harness.wait_until("its deadline is when that begins", lambda: d.job(job)["attempts"][0]["deadline_ms"] == begins_ms)
            text = d.run("job", str(job)).out
            told += [line for line in text.splitlines() if line.startswith("saves until")]
        assert len(set(told)) == 3, told
        d.run("nodes", "maintenance", "node0", "--off")
        d.wait(job, "running")
        assert "saves until" not in d.run("job", str(job)).out
        d.run("cancel", str(job))


def test_maintenance_that_is_called_off_is_over_and_survives_no_restart():
    with harness.Daemon("sim:2x1xH100-80GB") as d:
        d.run("nodes", "maintenance", "node0", "node1", "--for", "10h")
        harness.wait_until("both are in maintenance",
                           lambda: {n["state"] for n in d.ask("nodes")} == {"maintenance"})
        job = d.submit("true")
        d.stop()
        d.up()
        assert {n["state"] for n in d.ask("nodes")} == {"maintenance"}
        assert "which ends in" in d.run("explain", str(job), "-v").out
        d.run("nodes", "maintenance", "node0", "--off")
        d.wait(job, "succeeded")
        assert node(d)["state"] == "ready" and node(d, "node1")["state"] == "maintenance"


def test_what_is_wrong_with_maintenance_is_said():
    with harness.Daemon("sim:1x1xH100-80GB") as d:
        for words, told in [
            (("node0",), "say when it ends"),
            (("node0", "--to", "soon"), "2h from now"),
            (("node0", "--from", "3h", "--to", "2h"), "it must end after it begins"),
            (("node0", "--to", "2020-01-01T00:00Z"), "it must end after it begins"),
            (("node0", "--from", "2020-01-01T00:00Z", "--to", "2020-01-02 00:00"), "its end is in the past"),
            (("node0", "--to", "1h", "--for", "2h"), "or \"for\""),
            (("node0", "--off", "--for", "2h"), "no other flag"),
            (("nodeX", "--for", "2h"), "there is no node"),
        ]:
            result = d.run("nodes", "maintenance", *words, check=False)
            assert result.code != 0 and told in result.err, result
        assert "was so already" in d.run("nodes", "maintenance", "node0", "--off").out


def test_reserved_gpus_are_for_their_queue_and_work_makes_room_for_them():
    with harness.Daemon("sim:2x2xH100-80GB") as d:
        d.run("policy", "set", "--min-runtime", "0s", "--grace", "1s")
        d.run("queues", "create", "teach")
        jobs = [d.submit("sleep", "600") for _ in range(4)]
        for job in jobs:
            d.wait(job, "running")
        made = d.run("reservations", "create", "course", "--queue", "teach", "--gpus", "2", "--from", "30m", "--for", "1h", "--reason", "lesson")
        assert "is reserved" in made.out and "is stopped after its checkpoint when it begins: job" in made.out, made
        row = d.ask("reservations")[0]
        assert (row["name"], row["queue"], row["gpus"], row["idle"]) == ("course", "teach", 2, "lend") and len(row["moves"]) == 2
        d.run("reservations", "change", "course", "--from", "2s", "--for", "1h")
        for job in row["moves"]:
            d.wait(job, "queued", "preempted")
        text = d.run("explain", str(row["moves"][0]), "-v").out
        assert "(reserved)" in text and 'reserved for queue "teach"' in text and "lesson" in text, text
        pupil = d.submit("sleep", "600", flags=("--queue", "teach"))
        d.wait(pupil, "running")
        d.stop()
        d.up()
        assert d.state(pupil) == "running" and d.ask("reservations")[0]["name"] == "course"
        assert d.state(row["moves"][0]) in ("queued", "preempted")
        d.run("cancel", str(pupil))
        d.run("reservations", "delete", "course")
        for job in jobs:
            d.wait(job, "running")
        assert d.ask("reservations") == []


def test_a_reservation_that_cannot_be_honoured_is_refused():
    with harness.Daemon("sim:2x2xH100-80GB") as d:
        d.run("queues", "create", "teach", "--limit", "3")
        d.run("reservations", "create", "a", "--queue", "teach", "--nodes", "node0", "--from", "1h", "--for", "1h")
        d.run("nodes", "maintenance", "node1", "--from", "5h", "--for", "1h")
        for words, told in [
            (("b", "--gpus", "3", "--from", "90m", "--for", "1h"), 'only 2 of 3 GPUs can be had for all of that time; reservation "a" holds'),
            (("b", "--nodes", "node0", "--from", "90m", "--for", "1h"), 'node "node0" can\'t be had for all of that time: reservation "a" is there'),
            (("b", "--gpus", "3", "--from", "5h", "--for", "1h"), 'node "node1" has maintenance then'),
            (("b", "--gpus", "4", "--queue", "teach", "--from", "7h", "--for", "1h"), 'more than the limit of queue "teach"'),
            (("b", "--gpus", "2", "--nodes", "node0", "--for", "1h"), "either"),
            (("b", "--gpus", "2"), "say when it ends"),
            (("b", "--for", "2h"), "say what to reserve"),
            (("b", "--gpus", "1", "--model", "L4", "--for", "2h"), "only 0 of 1 GPUs"),
            (("b", "--gpus", "1", "--queue", "nobody", "--for", "2h"), "nobody"),
            (("b", "--nodes", "nodeX", "--for", "2h"), "there is no node"),
            (("b", "--gpus", "1", "--for", "2h", "--idle", "rent"), "rent"),
        ]:
            result = d.run("reservations", "create", *words, check=False)
            assert result.code != 0 and told in result.err, result
        d.run("reservations", "create", "b", "--gpus", "3", "--from", "2h", "--for", "1h")
        d.run("reservations", "change", "b", "--idle", "keep", "--for", "2h")
        row = next(r for r in d.ask("reservations") if r["name"] == "b")
        assert row["idle"] == "keep" and row["to_ms"] - row["from_ms"] == 2 * 3600 * 1000 and row["gpus"] == 3
        assert "there is no reservation" in d.run("reservations", "delete", "c", check=False).err
        assert 'has reservation "a"' in d.run("queues", "delete", "teach", check=False).err


def closed_window():
    """An hour of every day that is half a day away."""
    hour = (time.gmtime().tm_hour + 12) % 24
    return "%02d:00-%02d:00" % (hour, (hour + 1) % 24)


def test_a_job_waits_for_its_own_window_and_says_so():
    with harness.Daemon("sim:1x1xH100-80GB") as d:
        window = closed_window()
        job = d.submit("true", flags=("--window", window, "--limit", "10m"))
        said = d.run("explain", str(job), "-v").out
        assert "runs only in its window (%s)" % window in said and "no `window`" in said, said
        assert d.job(job)["window"] == window and d.job(job)["window_end"] == "stop"
        open_now = d.submit("true", flags=("--window", "mon-sun"))
        d.wait(open_now, "succeeded")
        refused = d.run("run", "--detach", "--window", "at night", "--", "true", check=False)
        assert "is not understood" in refused.err, refused.err
        d.stop()
        d.up()
        assert "runs only in its window" in d.run("explain", str(job), "-v").out
        d.run("cancel", str(job))


def test_jobs_keep_away_from_one_another():
    with harness.Daemon("sim:2x2xH100-80GB") as d:
        apart = ("--label", "app=web", "--apart-from", "app=web")
        first, second = d.submit("sleep", "600", flags=apart), d.submit("sleep", "600", flags=apart)
        d.wait(first, "running")
        d.wait(second, "running")
        nodes = {task["node"] for job in (first, second) for task in d.job(job)["attempts"][-1]["tasks"]}
        assert nodes == {"node0", "node1"}
        third = d.submit("true", flags=apart)
        said = d.run("explain", str(third), "-v").out
        assert "keeps away from jobs with app=web, by node" in said, said
        d.run("cancel", str(first))
        d.wait(third, "succeeded")
        d.run("cancel", str(second))


def test_a_reservation_for_a_user_and_what_was_foretold_outlive_a_restart():
    with harness.Daemon("sim:1x1xH100-80GB") as d:
        d.run("users", "add", "vera", "--no-account", "--role", "researcher")
        d.run("reservations", "create", "demo", "--user", "vera", "--gpus", "1", "--for", "2h")
        job = d.submit("true", flags=("--limit", "3h"))
        said = d.run("explain", str(job), "-v").out
        assert 'reserved for user "vera" (reservation "demo")' in said, said
        d.stop()
        d.up()
        row = d.ask("reservations")[0]
        assert row["user"] == "vera" and row["queue"] == ""
        d.run("reservations", "delete", "demo")
        d.wait(job, "succeeded")
        assert os.path.exists(os.path.join(d.data, "forecasts"))
