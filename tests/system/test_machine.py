# SPDX-License-Identifier: Apache-2.0
"""The machine around the daemon: a restart of it, its accounts, a folder that is not ours, nodes that swallow jobs, secrets."""

import base64
import contextlib
import json
import os
import pwd
import re
import signal
import socket
import stat
import subprocess

import pytest

import harness

ROOT = os.geteuid() == 0
PLAIN = 65534
needs_root = pytest.mark.skipif(not ROOT, reason="needs root")
needs_failpoints = pytest.mark.skipif(not harness.has_failpoints(), reason="needs a build with -Dfailpoints=true")


def submit(d, name, command, **fields):
    return harness.Client(d.data).submit({"name": name, "command": command, **fields}, name)


def signal_all(pids, number):
    """How many there were; some may be gone by now."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
    return len(pids)


# --- a restart of the machine --------------------------------------------------------------------------------------

STEPS = r"""
step=$([ -z "$FAIRLEAD_RESUME_FROM" ] && echo 0 || cat "$FAIRLEAD_RESUME_FROM")
echo "from $step" >>"$NOTES"
if [ "$step" = 0 ]; then
	echo 1 >"$FAIRLEAD_CHECKPOINT_DIR/one"
	"$FAIRLEAD" report --step 1 --checkpoint one
	echo waiting >>"$NOTES"
	exec sleep 100000
fi
"""


@needs_failpoints
def test_after_a_restart_of_the_machine_work_goes_on_from_its_checkpoints():
    with harness.Daemon(nodes="sim:1x4xH100-80GB", env={"FAIRLEAD_TEST_BOOT_ID": "first"}) as d:
        notes = os.path.join(d.data, "notes")
        done = submit(d, "done", ["true"])
        assert d.wait(done)["state"] == "succeeded"
        queued = submit(d, "queued", ["true"], gpus=4)
        running = submit(d, "running", ["bash", "-c", STEPS], checkpoint="report", gpus=1, tasks=1, priority=5,
                         env={"NOTES": notes, "FAIRLEAD": harness.PROGRAM})
        gang = submit(d, "gang", ["sh", "-c", 'echo "gang $RANK $FAIRLEAD_ATTEMPT" >>"$NOTES"; [ -e "$NOTES.end" ] || exec sleep 100000'],
                      tasks=2, priority=5, env={"NOTES": notes})
        harness.wait_until("the checkpoint is known", lambda: d.job(running)["checkpoints_made"] == 1)
        harness.wait_until("all run", lambda: {"waiting", "gang 0 %d" % d.job(gang)["attempts"][0]["attempt"]} <= set(open(notes).read().splitlines()))
        # What a power cut does: everything is gone at once, and no record of an end is written.
        d.kill()
        signal_all(d.leftovers(), signal.SIGSTOP)
        harness.wait_until("nothing is left", lambda: signal_all(d.leftovers(), signal.SIGKILL) == 0)
        open(notes + ".end", "w").close()
        d.env["FAIRLEAD_TEST_BOOT_ID"] = "second"
        d.up()
        for number in (running, gang, queued):
            assert d.wait(number)["state"] == "succeeded"
        job = d.job(running)
        assert [a["why"] for a in job["attempts"]] == ["lost", "none"] and job["attempts"][1]["resumed_from"] == 1
        assert "restart" in job["attempts"][0]["reason"], job["attempts"][0]
        assert [line for line in open(notes).read().splitlines() if line.startswith("from")] == ["from 0", "from 1"]
        assert [a["why"] for a in d.job(gang)["attempts"]] == ["lost", "none"]
        assert len(d.job(done)["attempts"]) == 1


# --- black holes ---------------------------------------------------------------------------------------------------


@needs_root
def test_a_node_on_which_jobs_of_two_users_fail_one_after_the_other_is_set_aside_and_taken_back():
    with harness.Daemon(nodes="sim:4x1xH100-80GB") as d:
        broken = "node0"
        d.run("users", "add", "plain", "--uid", str(PLAIN))

        def fails(i):
            command = ["sh", "-c", '[ "$FAIRLEAD_NODE" != %s ]' % broken]
            if i % 2 == 0:
                return submit(d, "j%d" % i, command)
            return json.loads(d.run("run", "-d", "-C", "/", "-o", "json", "--", *command, user=PLAIN, env={"HOME": "/"}).out)["id"]
        states = [d.wait(fails(i))["state"] for i in range(8)]
        nodes = {n["name"]: n for n in d.ask("nodes")}
        assert nodes[broken]["state"] == "quarantined" and "jobs failed" in nodes[broken]["reason"], nodes
        assert {n["state"] for name, n in nodes.items() if name != broken} == {"ready"}
        assert states == 3 * ["failed"] + 5 * ["succeeded"], states
        assert any(text.startswith(broken + ": ") for text in harness.Client(d.data).get("/api/v1/status")["out_of_service"])
        assert "out_of_service" in d.run("doctor", check=False).out
        d.run("nodes", "ready", broken)
        assert not harness.Client(d.data).get("/api/v1/status")["out_of_service"]
        assert d.wait(submit(d, "again", ["true"], tasks=4))["state"] == "succeeded"


def test_the_failed_jobs_of_one_user_take_nothing_out_of_service():
    with harness.Daemon(nodes="sim:2x2xH100-80GB") as d:
        for i in range(6):
            assert d.wait(submit(d, "j%d" % i, ["false"]))["state"] == "failed"
        assert {n["state"] for n in d.ask("nodes")} == {"ready"}
        assert {g["state"] for g in d.ask("gpus")} == {"free"}


# --- accounts ------------------------------------------------------------------------------------------------------


@needs_root
def test_a_job_runs_as_the_one_who_submitted_it_with_nothing_more():
    with harness.account("fairlead-t1") as one, harness.account("fairlead-t2") as two, harness.Daemon(nodes="sim:1x2xH100-80GB") as d:
        def as_user(who, *words, check=True):
            return d.run(*words, check=check, user=who.pw_uid, env={"HOME": who.pw_dir})
        refused = as_user(one, "run", "-d", "-C", one.pw_dir, "--", "true", check=False)
        assert refused.code == 4 and "users add" in refused.err, refused
        for who in (one, two):
            d.run("users", "add", who.pw_name, "--uid", str(who.pw_uid))
        script = 'id -u; id -g; id -G; grep NoNewPrivs /proc/self/status; cd; pwd; echo mine >proof; cat %s/journal/* %s/keys/* 2>&1 | head -c 100' % (d.data, d.data)
        number = int(as_user(one, "run", "-d", "-C", one.pw_dir, "-o", "name", "--", "sh", "-c", script).out)
        assert d.wait(number)["state"] == "succeeded"
        lines = as_user(one, "logs", str(number)).out.splitlines()
        assert lines[:3] == [str(one.pw_uid), str(one.pw_gid), str(one.pw_gid)], lines
        assert lines[3].split() == ["NoNewPrivs:", "1"] and lines[4] == one.pw_dir
        assert "ermission denied" in "\n".join(lines[5:]), lines
        assert os.stat(one.pw_dir + "/proof").st_uid == one.pw_uid
        # Another one may look at the job, but not at what it printed, nor change it.
        long = int(as_user(one, "run", "-d", "-C", one.pw_dir, "-o", "name", "--", "sleep", "100000").out)
        d.wait(long, "running")
        assert as_user(two, "job", str(long)).code == 0
        for words in (("logs", str(number)), ("cancel", str(long))):
            assert as_user(two, *words, check=False).code == 4
        assert d.state(long) == "running"
        as_user(one, "cancel", str(long))
        assert d.wait(long)["state"] == "cancelled"


@needs_root
def test_a_daemon_without_root_runs_its_own_users_jobs():
    with harness.Daemon(nodes="sim:1x1xH100-80GB", user=PLAIN) as d:
        assert "Without root" in d.process.stdout.readline() + d.greeting + d.process.stdout.readline()
        done = d.run("run", "-d", "-C", "/", "-o", "name", "--", "id", "-u", user=PLAIN)
        assert d.wait(int(done.out))["state"] == "succeeded"
        assert d.run("logs", done.out.strip(), user=PLAIN).out == "%d\n" % PLAIN


# --- folders that are not ours -------------------------------------------------------------------------------------


def refused_start(d):
    d.up(expect=False)
    code = d.process.wait(timeout=harness.PATIENCE_S)
    assert not d.greeting
    return code, d.log()


@needs_root
def test_the_folder_of_another_owner_is_refused_by_name():
    with harness.Daemon(nodes="sim:1x1xH100-80GB") as d:
        d.stop()
        for root, folders, files in os.walk(d.data):
            for name in folders + files:
                os.lchown(os.path.join(root, name), PLAIN, PLAIN)
        os.chown(d.data, PLAIN, PLAIN)
        code, log = refused_start(d)
        assert code == 4 and "nobody" in log and "--data" in log, (code, log)
        for root, folders, files in os.walk(d.data):
            for name in folders + files:
                os.lchown(os.path.join(root, name), 0, 0)
        os.chown(d.data, 0, 0)
        d.up()


def test_the_folder_of_a_later_version_is_refused_and_left_as_it_is():
    with harness.Daemon(nodes="sim:1x1xH100-80GB") as d:
        d.stop()
        path = os.path.join(d.data, "journal", "manifest")
        before = open(path).read()
        later = re.sub(r"^fairlead-journal (\d+)", lambda m: "fairlead-journal %d" % (int(m.group(1)) + 1), before)
        assert later != before
        open(path, "w").write(later)
        code, log = refused_start(d)
        assert code == 2 and "format 2" in log and "reads format 1" in log, (code, log)
        assert open(path).read() == later
        open(path, "w").write(before)
        d.up()


def test_a_folder_that_holds_something_else_is_refused(tmp_path):
    journal = tmp_path / "data" / "journal"
    journal.mkdir(parents=True)
    (journal / "manifest").write_text("not ours\n")
    d = harness.Daemon(data=str(tmp_path / "data"), nodes="sim:1x1xH100-80GB")
    try:
        code, log = refused_start(d)
        assert code == 10 and "no usable manifest" in log and str(journal) in log, (code, log)
        assert (journal / "manifest").read_text() == "not ours\n"
    finally:
        d.destroy()


# --- secrets -------------------------------------------------------------------------------------------------------

CANARY = "canary-7Qx9-%d-not-to-be-seen-anywhere" % os.getpid()  # of this run alone


def forms_of(text):
    raw = text.encode()
    # base64 of the middle, whatever stands before it
    middles = {base64.b64encode(b"\0" * pad + raw)[4:-4] for pad in range(3)}
    return {raw, raw.hex().encode(), raw[::-1]} | middles


def files_with(folder, forms):
    found = []
    for root, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(root, name)
            try:
                if not stat.S_ISREG(os.lstat(path).st_mode):
                    continue
                with open(path, "rb") as f:
                    content = f.read()
            except FileNotFoundError:
                continue
            if any(form in content for form in forms):
                found.append(os.path.relpath(path, folder))
    return found


def answers(d, numbers):
    """What the daemon answers to every question it takes: from its own description."""
    client = harness.Client(d.data)
    description = client.get("/api/v1/openapi.json")
    names = {"id": numbers, "name": ["default", "node0", "root"], "rank": [0], "namespace": ["default"], "pod": ["train-0"]}
    for path, methods in description["paths"].items():
        if "get" not in methods:
            continue
        wanted = re.findall(r"\{(\w+)\}", path)
        for value in names[wanted[0]] if wanted else [None]:
            filled = path
            for word in wanted:
                filled = filled.replace("{%s}" % word, str(value if word == wanted[0] else names[word][0]))
            connection = harness.UnixConnection(client.path)
            connection.request("GET", filled)
            yield path, connection.getresponse().read()
            connection.close()


def stream(d, enough):
    """All events from the first on, as a stream client gets them."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as s:
        s.connect(os.path.join(d.data, "fairlead.sock"))
        s.sendall(b"GET /api/v1/events?after=0 HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n")
        s.settimeout(harness.PATIENCE_S)
        text = b""
        while b"id: %d\n" % enough not in re.sub(rb"\r\n[0-9A-Fa-f]+\r\n", b"", text):  # a chunk may end inside the line
            part = s.recv(65536)
            assert part, text
            text += part
        return text


def test_a_secret_is_in_its_sealed_body_and_its_own_process_and_nowhere_else(tmp_path):
    forms = forms_of(CANARY)
    with harness.Daemon(nodes="sim:1x4xH100-80GB") as d:
        secret_file = tmp_path / "secret"
        secret_file.write_text(CANARY)
        script = '[ "$TOKEN" = "$OTHER" ] && [ "$TOKEN" = "$1" ] && { [ -z "$HOLD" ] || exec sleep 100000; }'
        file = {"name": "knows", "command": ["sh", "-c", script, "sh", CANARY], "env": {"TOKEN": CANARY},
                "secrets": {"OTHER": {"file": str(secret_file)}}}
        first = json.loads(d.submit_file(json.dumps(file)).out)["id"]
        assert d.wait(first)["state"] == "succeeded", "the job itself did not see it"
        file["env"]["HOLD"] = "yes"
        running = json.loads(d.submit_file(json.dumps(file)).out)["id"]
        d.wait(running, "running")
        waiting = json.loads(d.submit_file(json.dumps(dict(file, gpus=4))).out)["id"]
        # Refusals speak of the request, and must not repeat it.
        bad = [d.submit_file(json.dumps(dict(file, colour=CANARY)), check=False), d.submit_file(json.dumps(dict(file, env={"A B": CANARY})), check=False),
               d.submit_file("env: {TOKEN: %s\n  x" % CANARY, check=False), d.submit_file(json.dumps(dict(file, tasks=CANARY)), check=False)]
        assert all(b.code == 2 for b in bad), bad
        harness.wait_until("the second runs", lambda: len(harness.processes_with(CANARY, ("environ",))) == 1)
        harness.wait_until("the place of the first is cleared", lambda: len(os.listdir(d.data + "/attempts")) == 1)

        # While it runs: its own process, and the shepherd's order, which only the daemon's user can read.
        with_it = files_with(d.data, forms)
        assert {re.sub(r"\d+", "N", name) for name in with_it} <= {"attempts/N/N/spec"}, with_it
        for name in with_it:
            assert stat.S_IMODE(os.stat(os.path.join(d.data, name)).st_mode) == 0o600
            assert stat.S_IMODE(os.stat(os.path.dirname(os.path.join(d.data, name))).st_mode) == 0o700
        assert files_with("/run/fairlead-" + d.tag(), forms) == []
        holders = harness.processes_with(CANARY, ("environ",))
        task = [int(pid) for pid in holders]
        assert len(task) == 1 and "FAIRLEAD_JOB_ID=%d\0" % running in open("/proc/%d/environ" % task[0]).read()

        # Nobody is told. The command itself is shown, by /spec alone, to those who may see it.
        for path, answer in answers(d, [first, running, waiting]):
            if path != "/api/v1/jobs/{id}/spec":
                assert not [form for form in forms if form in answer], "%s tells it" % path
            else:
                assert b"TOKEN" in answer and answer.count(CANARY.encode()) <= 1, answer
        newest = harness.Client(d.data).get("/api/v1/status")["last_seq"]
        for said in (stream(d, newest), d.run("journal", "show").out.encode(), d.run("journal", "show", "-o", "json").out.encode(),
                     d.run("doctor", check=False).out.encode(), d.run("events", "--limit", "500").out.encode(), d.log().encode()):
            assert not [form for form in forms if form in said]

        d.run("cancel", "--yes", str(running), str(waiting))
        d.wait(running)
        harness.wait_until("its place is cleared", lambda: not os.listdir(d.data + "/attempts"))
        assert d.stop() == 0
        assert files_with(d.data, forms) == []
        d.up()
        assert files_with(d.data, forms) == []


@needs_root
def test_doctor_tells_a_user_of_the_machines_daemon_only_what_concerns_him():
    with harness.Daemon(nodes="sim:1x1xH100-80GB") as d:
        stranger = d.run("doctor", user=PLAIN, env={"HOME": "/"}, check=False)
        assert stranger.code == 1 and "ask an admin" in stranger.out and "cgroups" not in stranger.out
        d.run("users", "add", pwd.getpwuid(PLAIN).pw_name, "--team", "default")
        checks = {row["check"]: row for row in json.loads(d.run("doctor", "-o", "json", user=PLAIN, env={"HOME": "/"}).out)}
        assert "you need no access" in checks["data folder"]["text"] and checks["data folder"]["result"] == "fine"
        assert "fairlead run" in checks["you"]["text"]
        assert not {"cgroups", "nvidia driver", "shepherd", "disk space"} & set(checks)
        assert "cgroups" in {row["check"] for row in json.loads(d.run("doctor", "-o", "json").out)}
