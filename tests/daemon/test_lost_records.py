# SPDX-License-Identifier: Apache-2.0
"""Records of a journal are damaged, one of each kind in turn: the daemon starts, says which one is lost, and every other job is as it was."""

import contextlib
import glob
import json
import os
import shutil
import sqlite3

import harness


def history(d):
    """Jobs of every fate, nodes, people and queues; one job still runs at the end."""
    d.run("teams", "create", "vision")
    d.run("queues", "create", "vision")
    d.run("token", "create")
    d.run("policy", "set", "--min-runtime", "1m")
    first = d.submit("sh", "-c", '"%s" report --step 1 --checkpoint one; exit 1' % harness.PROGRAM,
                     flags=("--retries", "1", "--checkpoint", "signal"))
    array = d.submit("true", flags=("--array", "3", "--queue", "vision"))
    gang = d.submit("true", flags=("--tasks", "3"))
    for number in (first, array, array + 1, array + 2, gang):
        d.wait(number)
    after = d.submit("true", flags=("--after", str(gang)))
    held = d.submit("true", flags=("--hold",))
    d.run("priority", str(held), "--to", "7")
    d.run("release", str(held))
    cancelled = d.submit("sleep", "1000")
    harness.wait_until("it runs", lambda: d.state(cancelled) == "running")
    d.run("cancel", str(cancelled))
    for number in (after, held, cancelled):
        d.wait(number)
    last = d.submit("sleep", "1001")
    harness.wait_until("it runs", lambda: d.state(last) == "running")
    return last


def records(data):
    out = []
    for path in sorted(glob.glob(data + "/journal/*.sqlite")):
        with contextlib.closing(sqlite3.connect(path)) as db:
            out += [(path, row[0]) for row in db.execute("SELECT seq FROM record ORDER BY seq")]
    return out


def damage(path, seq):
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE record SET text = replace(text, '\"', '!') WHERE seq = ?", (seq,))


def shown_records(d):
    shown = map(json.loads, d.run("journal", "show", "-o", "json").out.splitlines())
    return {r["seq"]: {"kind": r["kind"], "event": r["record"]} for r in shown}


def picture(d):
    return {j["id"]: (j["state"], j["name"], j["queue"], j["exit_code"], j["attempt_count"]) for j in d.jobs("--all")}


def job_of(shown, seq):
    """The job that a record is about, by itself or by its attempt, and how many behind it."""
    record = shown[seq]["event"]
    if "job" in record:
        return record["job"], record.get("array_count", 0) or 1
    for r in shown.values():
        if r["kind"] == "attempt-placed" and r["event"]["attempt"] == record.get("attempt"):
            return r["event"]["job"], 1
    return 0, 0


def put_back(data, kept):
    for name in ("journal", "snapshots", "quarantine"):
        shutil.rmtree(os.path.join(data, name), ignore_errors=True)
        if os.path.exists(os.path.join(kept, name)):
            shutil.copytree(os.path.join(kept, name), os.path.join(data, name))
    for path in glob.glob(data + "/history.sqlite*"):
        os.unlink(path)


def without(d, whole, shown, kind, path, seq):
    damage(path, seq)
    d.up()
    client = harness.Client(d.data)
    status = client.get("/api/v1/status")
    assert status["records_lost"] == 1 and status["damage"].endswith(": %d" % seq), (kind, status)
    assert client.once("GET", "/healthz")[1]["status"] == "degraded"
    assert status["damage"] in d.run("doctor", check=False).out
    about, many = job_of(shown, seq)
    now = picture(d)
    for number, want in whole.items():
        if not about <= number < about + many:
            assert now.get(number) == want, (kind, seq, number)
    harness.wait_until("no shepherd but that of the last job is left", lambda: len(d.shepherds()) == 1)
    new = d.submit("true")
    assert new > max(whole) and d.wait(new)["state"] == "succeeded", (kind, new)
    d.kill()


def test_whichever_record_is_lost_every_other_job_is_as_it_was():
    with harness.Daemon(nodes="sim:2x4xH100-80GB") as d:
        last = history(d)
        whole, shown, of_kind = picture(d), shown_records(d), {}
        d.kill()
        for path, seq in records(d.data):
            if job_of(shown, seq)[0] != last:
                of_kind.setdefault(shown[seq]["kind"], []).append((path, seq))
        assert len(of_kind) >= 18, sorted(of_kind)
        kept = d.data + ".kept"
        shutil.copytree(d.data + "/journal", kept + "/journal")
        try:
            for kind, found in sorted(of_kind.items()):
                without(d, whole, shown, kind, *found[len(found) // 2])
                put_back(d.data, kept)
        finally:
            shutil.rmtree(kept, ignore_errors=True)


def test_the_run_of_a_job_whose_placing_is_lost_ends_before_the_job_is_placed_again():
    with harness.Daemon(nodes="sim:1x4xH100-80GB") as d:
        mark = d.data + ".mark"
        number = d.submit("sh", "-c", "exec 9>%s; flock -n 9 || exit 99; while :; do sleep 0.2; done" % mark)
        harness.wait_until("it runs", lambda: d.state(number) == "running" and os.path.exists(mark))
        shown = shown_records(d)
        d.kill()
        path, seq = [(p, s) for p, s in records(d.data) if shown[s]["kind"] == "attempt-placed"][0]
        damage(path, seq)
        d.up()
        harness.wait_until("it runs again", lambda: d.state(number) in harness.FINAL + ("running",))
        job = d.job(number)
        assert job["state"] == "running" and job["attempts"][-1]["attempt"] > 1, job
        harness.wait_until("one runs it", lambda: len(d.shepherds()) == 1)
        d.run("cancel", str(number))
        d.wait(number)
        os.unlink(mark)
