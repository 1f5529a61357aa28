# SPDX-License-Identifier: Apache-2.0
"""Submitting and following: run, submit, logs, cancel, hold, release, report."""

import json
import os
import pty
import re
import select
import signal
import subprocess

import pytest

import harness

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


@pytest.fixture(scope="module")
def d():
    with harness.Daemon(nodes="sim:2x4xH100-80GB") as daemon:
        # Many jobs fail here on purpose; which come one after the other depends on how the tests are dealt out.
        assert harness.Client(daemon.data).until_answered("PUT", "/api/v1/policy", {"blackhole_failures": 0})[0] == 200
        yield daemon


def start(d, *words, **more):
    return subprocess.Popen([harness.PROGRAM, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
                            env=d.env, text=True, **more)


def number_of(done_err):
    return int(done_err.split("job ")[1].split()[0])


def test_run_shows_what_the_job_writes_where_it_wrote_it(d):
    done = d.run("run", "--", "sh", "-c", "echo out; echo err >&2")
    assert done.code == 0 and done.out == "out\n"
    assert "err\n" in done.err and "Standard job: " in done.err  # what may happen to it is said


def test_the_exit_status_is_0_or_1_and_with_wait_the_jobs_own(d):
    assert d.run("run", "--", "sh", "-c", "exit 7", check=False).code == 1
    assert d.run("run", "--wait", "--", "sh", "-c", "exit 7", check=False).code == 7
    assert d.run("run", "--wait", "--", "sh", "-c", "kill -9 $$", check=False).code == 137
    assert d.run("run", "--wait", "--", "true").code == 0
    missing = d.run("run", "--wait", "--", "/no/such/program", check=False)
    assert missing.code != 0 and "/no/such/program" in missing.err
    missing = d.run("run", "--", "/no/such/program", check=False)
    assert missing.code != 0 and "starts on node" in missing.err and "runs on" not in missing.err, missing


def test_arguments_are_passed_as_they_are(d):
    words = ["a b", "", "*", "$HOME", "'", '"', "\\", "ü", "--tasks", "-g", "line\nbreak"]
    done = d.run("run", "--", "printf", "<%s>\n", *words)
    assert done.out == "".join("<%s>\n" % w for w in words)


def test_a_job_file_is_not_run_as_a_program(d, tmp_path):
    file = tmp_path / "job.yaml"
    file.write_text("command: [true]\n")
    done = d.run("run", str(file), check=False)
    assert done.code == 2 and "`fairlead submit %s` submits it" % file in done.err
    file.write_text("#!/bin/sh\necho ran\n")
    file.chmod(0o755)
    assert d.run("run", "--", str(file)).out == "ran\n"


def test_each_line_of_a_gang_has_its_rank(d):
    done = d.run("run", "-t", "3", "--", "sh", "-c", "echo I am $RANK of $WORLD_SIZE")
    assert sorted(done.out.splitlines()) == ["[%d] I am %d of 3" % (i, i) for i in range(3)]


def test_the_job_runs_here_with_the_variables_given(d, tmp_path):
    done = d.run("run", "-C", str(tmp_path), "-e", "A=1 2", "-e", "FROM_HERE", "--", "sh", "-c", "pwd; echo $A; echo $FROM_HERE",
                 env={"FROM_HERE": "x"})
    assert done.out == "%s\n1 2\nx\n" % tmp_path


def test_ctrl_c_detaches_and_says_how_to_come_back(d):
    process = start(d, "run", "--limit", "5m", "--", "sh", "-c", "echo begun; exec sleep 300")
    assert process.stdout.readline() == "begun\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    number = number_of(err)
    assert process.returncode == 130
    assert "detached; job %d goes on. `fairlead logs -f %d`" % (number, number) in err
    d.wait(number, "running")  # its first words may come before that it has begun
    d.run("cancel", str(number))
    assert d.wait(number)["state"] == "cancelled"


def test_ctrl_c_while_waiting_for_the_exit_code_gives_130(d):
    process = start(d, "run", "--wait", "--", "sh", "-c", "echo begun; exec sleep 300")
    process.stdout.readline()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    d.run("cancel", str(number_of(err)))


def test_ctrl_c_at_a_terminal_ends_the_looking_alone(d):
    for flags, code in (["--wait"], 130), ([], 130):
        pid, terminal = pty.fork()
        if pid == 0:
            os.execve(harness.PROGRAM, [harness.PROGRAM, "run", *flags, "--", "sh", "-c", "echo begun; exec sleep 300"], dict(d.env))
        out = b""
        while b"begun\r\n" not in out:  # the job's name has the word too
            out += os.read(terminal, 4096)
        os.write(terminal, b"\x03")
        while b"detached" not in out:
            out += os.read(terminal, 4096)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == code
        os.close(terminal)
        number = number_of(out.decode())
        assert d.state(number) == "running"
        d.run("cancel", str(number))


def test_waiting_for_an_array_waits_for_all_of_it(d):
    script = 'test $FAIRLEAD_ARRAY_INDEX != 1 || exit 0; while [ ! -e "$0" ]; do sleep 0.05; done; exit $((FAIRLEAD_ARRAY_INDEX + 3))'
    go = os.path.join(d.data, "array-go")
    process = start(d, "run", "--wait", "--array", "3", "-g", "0", "--", "sh", "-c", script, go)
    first = int(process.stdout.readline().split()[1])
    assert d.wait(first + 1)["state"] == "succeeded" and process.poll() is None
    open(go, "w").close()
    _, err = process.communicate(timeout=60)
    assert process.returncode == 3, err
    assert "2 of the 3 jobs did not succeed" in err
    assert d.run("run", "--wait", "-o", "json", "-g", "0", "--", "sh", "-c", "exit 9", check=False).code == 9


def test_every_attempt_is_shown_even_when_it_is_over_at_once(d):
    process = start(d, "run", "--wait", "--retries", "2", "-g", "0", "--", "sh", "-c", "echo attempt $FAIRLEAD_ATTEMPT; exit 3")
    out, err = process.communicate(timeout=120)
    job = d.job(number_of(err))
    assert process.returncode == 3 and len(job["attempts"]) == 3
    assert out == "".join("attempt %d\n" % a["attempt"] for a in job["attempts"])


def test_nothing_is_shown_twice_when_the_daemon_comes_back():
    with harness.Daemon(nodes="sim:1x1xH100-80GB") as d:
        script = 'for i in 1 2 3; do echo "$i"; until [ -e "$0/go$i" ]; do sleep 0.05; done; done; printf 4'
        process = start(d, "run", "--wait", "--", "sh", "-c", script, d.data)
        for i, end in (1, d.kill), (2, d.stop), (3, None):
            assert process.stdout.readline() == "%d\n" % i
            if end:
                end()
                d.up()
            open("%s/go%d" % (d.data, i), "w").close()
        out, err = process.communicate(timeout=120)
        assert (process.returncode, out) == (0, "4"), err


def test_following_outlives_the_daemon():
    with harness.Daemon(nodes="sim:1x1xH100-80GB") as d:
        process = start(d, "run", "--wait", "--", "sh", "-c", "echo begun; while [ ! -e %s/go ]; do sleep 0.05; done; echo ended; exit 3" % d.data)
        assert process.stdout.readline() == "begun\n"
        d.kill()
        d.up()
        open(os.path.join(d.data, "go"), "w").close()
        out, err = process.communicate(timeout=120)
        assert process.returncode == 3, err
        assert out.endswith("ended\n")


@pytest.fixture
def fresh():
    """Where all GPUs are free, and numbers begin with 1."""
    with harness.Daemon(nodes="sim:2x4xH100-80GB") as daemon:
        yield daemon


def test_a_job_stopped_for_another_is_followed_to_its_end(fresh):
    d = fresh
    first = start(d, "run", "--tier", "best-effort", "-g", "4", "-t", "2", "--", "sh", "-c",
                  "echo attempt; test -e %s/second && exit 0; touch %s/begun$RANK; exec sleep 300" % (d.data, d.data))
    harness.wait_until("both ranks run", lambda: all(os.path.exists(os.path.join(d.data, "begun%d" % r)) for r in (0, 1)))
    open(os.path.join(d.data, "second"), "w").close()
    assert d.run("run", "-g", "1", "--", "true").code == 0
    out, err = first.communicate(timeout=60)
    assert first.returncode == 0
    assert sorted(out.splitlines()) == ["[0] attempt"] * 2 + ["[1] attempt"] * 2, (out, err)


def test_detached_jobs_give_their_number(d):
    done = d.run("run", "-d", "--", "true")
    assert done.out.startswith("job ")
    assert json.loads(d.run("run", "-d", "-o", "json", "--", "true").out)["id"] > 0
    assert d.run("run", "-d", "-o", "name", "--", "true").out.strip().isdigit()
    assert d.run("submit", "--quiet", "-", stdin="command: 'true'\n").out.strip().isdigit()


def test_the_same_key_gives_the_same_job(d):
    first = d.run("run", "-d", "-o", "json", "--key", "k1", "--", "true")
    again = d.run("run", "-d", "-o", "json", "--key", "k1", "--", "true")
    assert json.loads(again.out)["id"] == json.loads(first.out)["id"] and json.loads(again.out)["already"]
    other = d.run("run", "-d", "--key", "k1", "--", "false", check=False)
    assert other.code == 5 and "fairlead: " in other.err


def test_a_dry_run_submits_nothing_and_says_what_would_happen(d):
    before = d.run("jobs", "--all", "-o", "name").out
    now = d.run("submit", "--dry-run", "-", stdin="command: 'true'\ngpus: 2\n").out
    assert "it would start now" in now and "rank 0 on node" in now
    wide = d.run("submit", "--dry-run", "-", stdin="command: 'true'\ngpus: 4\ntasks: 3\n", check=False)
    assert "would wait" in wide.out or "more than" in wide.err or wide.code == 8
    assert json.loads(d.run("run", "--dry-run", "-o", "json", "--", "true").out)["dry_run"] is True
    assert d.run("jobs", "--all", "-o", "name").out == before


@pytest.mark.parametrize("name", ["hello", "gang", "array"])
def test_the_example_runs(d, name):
    answer = json.loads(d.run("submit", "-o", "json", os.path.join(ROOT, "examples", name + ".yaml")).out)
    for number in range(answer["id"], answer["id"] + answer["array_count"]):
        assert d.wait(number)["state"] == "succeeded"
    assert d.run("logs", str(answer["id"])).out


def test_the_checkpoint_example_goes_on_where_it_was(fresh):
    d = fresh
    env = {"PATH": os.path.dirname(harness.PROGRAM) + ":" + os.environ["PATH"]}
    text = open(os.path.join(ROOT, "examples", "checkpoint.yaml")).read().replace("600", "40").replace("gpus: 1", "gpus: 4\ntasks: 1\ntier: standard")
    number = int(d.run("submit", "--quiet", "-", stdin=text + "env: {PATH: '%s'}\n" % env["PATH"]).out)
    harness.wait_until("some steps", lambda: d.run("logs", str(number)).out.count("step") > 3)
    others = [d.submit("sleep", "2", flags=("-g", "4", "--priority", "10")) for _ in range(2)]
    job = d.wait(number)
    assert job["state"] == "succeeded", job
    for other in others:
        d.wait(other)


@pytest.mark.parametrize("text,message", [
    ("command: x\nqueu: y\n", 'standard input:2:1: a job has no field "queu"; did you mean "queue"?\n    2 | queu: y\n      | ^\n'),
    ("command: x\ntasks: two\n", 'standard input:2:8: tasks: "two" is not a whole number\n    2 | tasks: two\n      |        ^\n'),
    ("command: x\nkind: inference\n", "needs a later release"),
    ("name: x\n", "the job has no command"),
    ("command: \xfc\n".encode("latin-1").decode("utf-8", "surrogateescape"), "not valid UTF-8"),
    ("a: &x [1]\ncommand: *x\n", "anchors"),
    ("command: x\nname: \"a\\x1b[2J\"\n", 'standard input:2:7: name "a\\x1b[2J" may only have letters a-z A-Z, digits and . _ -\n'),
    ("command: x\nsecrets: {A: s3cret}\n", "does not stand in the job file"),
    ("command: x\npriority: 99999999999999999999\n", "priority: 99999999999999999999 is not between -1000 and 1000\n"),
    ("command: x\ntasks: -3\n", "tasks: -3 is not between 1 and 16384\n"),
    ("command: x\nlimit: -3h\n", 'limit: duration "-3h" has a sign; write for example 90s, 1h30m or 7d\n'),
    ("command: x\nmemory: 99999999999999999999TiB\n", 'memory: size "99999999999999999999TiB" is too large; write for example'),
    ("", "the job file is empty"),
])
def test_a_bad_job_file_is_shown_at_its_place(d, text, message):
    done = subprocess.run([harness.PROGRAM, "submit", "-"], input=text.encode("utf-8", "surrogateescape"), stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, env=d.env)
    err = done.stderr.decode()
    assert done.returncode == 2 and done.stdout == b""
    assert message in err and "\x1b" not in err and "s3cret" not in err, err


def test_what_only_the_daemon_knows_to_be_wrong_is_shown_at_its_place_too(d):
    for text, message in [
            ("command: x\nqueue: nope\n", 'standard input:2:8: queue "nope" does not exist; `fairlead queues` lists those that do\n    2 | queue: nope\n'),
            ("command: x\nname: a\nteam: nope\n", 'standard input:3:7: there is no team "nope"\n    3 | team: nope\n')]:
        assert message in d.run("submit", "-", stdin=text, check=False).err


def test_a_file_that_is_too_large_or_not_there_is_refused(d, tmp_path):
    done = d.run("submit", "-", stdin="command: " + "x" * (10 << 20) + "\n", check=False)
    assert done.code == 2 and "larger than its limit" in done.err
    done = d.run("submit", str(tmp_path / "none.yaml"), check=False)
    assert done.code == 3 and "there is no such file" in done.err
    done = d.run("submit", str(tmp_path), check=False)
    assert done.code == 9 and "it is a folder" in done.err


def test_a_working_folder_that_cannot_be_used_is_refused(d):
    done = d.run("run", "-C", "/no/such/folder", "--", "true", check=False)
    assert done.code == 3 and done.err == \
        'fairlead: the working folder "/no/such/folder" can\'t be used: there is no such file or folder\n', done


def test_a_working_folder_that_the_user_may_not_enter_is_named(d, tmp_path):
    if os.geteuid() != 0:
        pytest.skip("needs two accounts")
    d.run("users", "add", "nobody")
    os.chmod(d.data, 0o755)
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    done = d.run("run", "-C", str(closed), "--", "true", user="nobody", check=False)
    assert done.code == 4 and 'the working folder "%s" can\'t be used: ' % closed in done.err and "permission" in done.err, done
    # Over HTTP nobody looks beforehand: the attempt ends before anything runs, and says the same.
    done = d.run("submit", "--quiet", "-", stdin="command: 'true'\nworkdir: /\n", user="nobody")
    assert d.wait(int(done.out))["state"] == "succeeded"


def test_jobs_that_can_never_run_are_refused_or_explained(d):
    done = d.run("run", "-d", "-g", "8", "--", "true")
    assert "On this cluster as it is it can't start: it needs 8 GPUs on one node" in done.out, done
    number = done.out.split()[1]
    assert "needs 8 GPUs on one node" in d.run("explain", number, "-v").out
    d.run("cancel", number)
    done = d.run("run", "--dry-run", "-g", "8", "--", "true", check=False)
    dry = done.out
    assert done.code == 1
    done = d.run("submit", "--dry-run", "-o", "json", "-", stdin="command: x\ngpus: 8\n", check=False)
    assert done.code == 1 and json.loads(done.out)["possible"] is False
    assert json.loads(d.run("run", "--dry-run", "-o", "json", "--", "true").out)["possible"] is True
    assert dry.startswith("The job file is good, but the cluster as it is can't run it; nothing was submitted."), dry
    assert dry.count("needs 8 GPUs on one node") == 1  # said once
    done = d.run("run", "-d", "--queue", "no-such", "--", "true", check=False)
    assert done.code == 3 and 'queue "no-such" does not exist; `fairlead queues` lists those that do' in done.err
    done = d.run("run", "-d", "--tier", "critical", "-g", "4", "-t", "4", "--", "true", check=False)
    assert done.code == 8 and 'critical job asks for 16 GPUs, but queue "default" guarantees 8: use tier standard, ' \
        "or ask an admin to raise the guarantee" in done.err, done


def test_a_shell_line_in_one_word_is_told_how_to_ask_for_a_shell(fresh):
    done = fresh.run("run", "-d", "echo a; echo b")
    assert 'fairlead: "echo a; echo b" is taken as the name of one program; for a shell\'s command line write: ' \
        "fairlead run -- sh -c '...'\n" in done.err, done
    assert fresh.wait(1)["state"] == "failed"
    for words in (["sh", "-c", "echo a; echo b"], ["true"], ["echo", "a;"]):
        assert "fairlead run -- sh -c" not in fresh.run("run", "-d", *words).err


def test_a_secret_reaches_the_job_and_nobody_else(d, tmp_path):
    canary = "canary-7d1f8e"
    (tmp_path / "token").write_text(canary + "\n")
    done = d.run("run", "-n", "secretive", "--secret", "TOKEN=%s" % (tmp_path / "token"), "-e", "PLAIN=%s" % canary, "--",
                 "sh", "-c", 'test "$TOKEN" = %s && test "$PLAIN" = "$TOKEN" && echo same' % "canary-7d1f''8e")
    assert done.out == "same\n"
    number = d.run("jobs", "--name", "secretive", "-o", "name").out.split()[-1]
    for words in (["job", number], ["job", number, "--spec"], ["job", number, "--history"], ["jobs", "-o", "json"], ["events", "--limit", "1000"],
                  ["journal", "show"], ["explain", number]):
        assert canary not in d.run(*words).out, words
    assert "TOKEN" in d.run("job", number, "--spec").out
    harness.wait_until("its place is cleared", lambda: not any(os.path.exists("%s/attempts/%d" % (d.data, a["attempt"])) for a in d.job(number)["attempts"]))
    assert subprocess.run(["grep", "-rl", canary, d.data], stdout=subprocess.PIPE, text=True).stdout == ""


def test_logs_of_ranks_streams_attempts_and_ends(d):
    number = d.submit("sh", "-c", "echo out $RANK; echo err $RANK >&2", flags=("-t", "2", "-g", "1"))
    d.wait(number)
    first = d.run("logs", str(number))
    assert first.out == "out 0\n" and "rank 0 of 2" in first.err
    assert d.run("logs", "%d/1" % number).out == "out 1\n"
    assert d.run("logs", "%d/1" % number, "--stderr").out == "err 1\n"
    assert d.run("logs", str(number), "--all-ranks").out == "[0] out 0\n[1] out 1\n"
    assert d.run("logs", str(number), "--tail-bytes", "3").out == " 0\n"
    assert d.run("logs", "-f", str(number)).out == "out 0\n"
    assert d.run("logs", "%d/9" % number, check=False).code == 3
    assert d.run("logs", "%d/x" % number, check=False).code == 2
    assert d.run("logs", "99999", check=False).code == 3


def test_logs_are_followed_while_they_grow(d):
    number = d.submit("sh", "-c", "echo one; while [ ! -e %s/more ]; do sleep 0.02; done; echo two" % d.data)
    process = start(d, "logs", "-f", str(number))
    assert process.stdout.readline() == "one\n"
    open(os.path.join(d.data, "more"), "w").close()
    assert process.communicate(timeout=60)[0] == "two\n"


def test_several_jobs_are_cancelled_only_when_it_is_said(d):
    jobs = [str(d.submit("sleep", "300", flags=("--hold",))) for _ in range(3)]
    done = d.run("cancel", *jobs, check=False)
    assert done.code == 2 and "--yes" in done.err
    done = d.run("cancel", "--yes", *jobs, "99999", check=False)
    assert done.code == 3 and "99999" in done.err
    assert done.out.count("is being cancelled") == 3
    assert {d.wait(int(n))["state"] for n in jobs} == {"cancelled"}


def test_hold_release_and_priority(d):
    number = str(d.submit("true", flags=("--hold",)))
    assert d.state(int(number)) == "held"
    d.run("priority", number, "--to", "-5")
    assert d.job(int(number))["priority"] == -5
    d.run("release", number)
    assert d.wait(int(number))["state"] == "succeeded"


def test_a_job_reports_its_progress_and_checkpoints(d):
    script = '%s report --step 5 && echo x > "$FAIRLEAD_CHECKPOINT_DIR/c5" && %s report --step 7 --checkpoint c5' % (harness.PROGRAM, harness.PROGRAM)
    number = d.submit("sh", "-c", script, flags=("--checkpoint", "report"))
    job = d.wait(number)
    assert job["state"] == "succeeded", d.run("logs", "--stderr", str(number)).out
    assert [c["step"] for c in job["checkpoints"]] == [7]
    none = d.submit("sh", "-c", "%s report --step 1 --checkpoint none" % harness.PROGRAM, flags=("--checkpoint", "report"))
    d.wait(none)
    assert '/none": write it completely, then report it' in d.run("logs", str(none), "--stderr").out
    bad = d.submit("sh", "-c", "%s report --step 1 --checkpoint ../../etc/passwd" % harness.PROGRAM, flags=("--checkpoint", "report"))
    assert d.wait(bad)["exit_code"] == 2
    outside = d.run("report", "--step", "1", check=False)
    assert outside.code == 6 and "no job of Fairlead" in outside.err


def test_events_are_shown_as_they_come(d):
    process = start(d, "events", "-f", "-o", "json")
    after = start(d, "events", "-f", "--after", "0")
    assert "the daemon started" in after.stdout.readline()
    d.submit("true")
    while not select.select([process.stdout], [], [], 0.5)[0]:  # it shows what comes from when it has begun to listen
        d.submit("true")
    last = d.submit("true")
    while True:
        event = json.loads(process.stdout.readline())
        if event["kind"] == "job-ended" and event["event"].get("job") == last:
            break
    for p in (process, after):
        p.send_signal(signal.SIGINT)
        p.communicate(timeout=60)
        assert p.returncode == 0


def test_the_whole_reason_of_a_failed_start_is_said(fresh):
    name = "a-program-with-a-name-so-long-that-facts-do-not-keep-it"
    done = fresh.run("run", "-n", "x", "--", name, check=False)
    for text in (done.err, fresh.run("job", "1").out):
        assert 'rank 0 on node' in text and '"%s"' % name in text and "command not found" in text, text


def test_an_array_is_several_and_a_flag_is_named_once(fresh):
    done = fresh.run("run", "-d", "--array", "2", "-g", "0", "-n", "a", "--", "true")
    assert "array 1 of 2 jobs (a) is in queue" in done.out
    assert "--limit: duration" in fresh.run("run", "--limit", "12", "--", "true", check=False).err


def test_explain_promises_no_end_and_says_what_is_over(fresh):
    fresh.run("run", "-d", "-n", "holder", "-t", "8", "--", "sleep", "300")
    fresh.run("run", "-d", "--hold", "-g", "1", "--", "true")
    fresh.run("run", "-d", "-g", "1", "--", "true")
    waits = fresh.run("explain", "3", "-v").out
    assert "declares no limit or estimate" in waits and "expected" not in waits
    assert "What would let it start: 1 more free GPU" in waits and "needs 1 GPU; 0 GPUs are free for it" in waits
    fresh.run("cancel", "1")
    fresh.wait(1)
    assert fresh.run("explain", "1", "-v").out.startswith("job 1 is over: cancelled\n")
    fresh.run("cancel", "2", "3", "--yes", check=False)


def test_answers_are_of_the_moment_in_which_they_are_asked_for(fresh):
    """Nothing happens between the answers: the sentences name a moment, which stays, and the commands count down to it."""
    fresh.run("run", "-d", "-n", "holder", "-t", "8", "-l", "1h", "--", "sleep", "300")
    fresh.wait(1, "running")
    fresh.run("run", "-d", "-g", "1", "--", "true")
    first, shown = fresh.ask("explain", "2"), fresh.run("explain", "2", "-v").out
    ends = re.search(r'"holder" is expected to end (at \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)', first["remedy"]).group(1)
    assert re.search(r'"holder" is expected to end in (1h|59m)', shown) and ends not in shown, shown
    assert "estimate" in first and "Estimated start: about" in shown and "ask again" not in shown
    harness.wait_until("it is counted down", lambda: fresh.run("explain", "2", "-v").out != shown)
    last = fresh.ask("explain", "2")
    assert last["seq"] == first["seq"] and last["at_ms"] > first["at_ms"] and ends in last["remedy"]

    def starts():
        listed = [row for row in fresh.ask("jobs") if row["id"] == 2][0]
        return {listed["start_ms"], *(fresh.ask(command, "2")["estimate"]["start_ms"] for command in ("job", "explain"))}
    harness.wait_until("each command shows the same start, unless the plan is renewed between them", lambda: len(starts()) == 1)
    fresh.run("cancel", "1", "2", "--yes")


def test_explain_is_reason_holder_time_and_remedy_in_five_lines(fresh):
    fresh.run("prices", "set", "any", "2")
    fresh.run("run", "-d", "-n", "holder", "-t", "8", "-l", "1h", "--", "sleep", "300")
    fresh.wait(1, "running")
    fresh.run("run", "-d", "-g", "1", "-l", "1h", "--", "true")
    short, full = fresh.run("explain", "2").out.splitlines(), fresh.run("explain", "2", "-v").out
    assert short[:2] == ["job 2 is queued (capacity)", "needs 1 GPU; 0 GPUs are free for it"], short
    assert short[2].startswith('  - job 1 "holder" of queue "default" holds 8 GPUs, and is expected to end in '), short
    assert short[3].startswith("Estimated start: about "), short
    assert short[4:] == ['What would let it start now: the end of job 1 "holder"'], short
    # the order, the shares and the cost are for those who ask for them
    for words in ("it is the first that waits in its queue", "of its guarantee of 8 GPUs", "Expected cost: about 1.00, at most 2.00 at its limit (2.00 an hour"):
        assert words in full and words not in " ".join(short), full
    assert all(line["code"] != "none" for line in fresh.ask("explain", "2")["lines"])
    fresh.run("prices", "set", "any", "none")
    fresh.run("cancel", "1", "2", "--yes")


def test_explain_tells_of_gpus_that_are_set_aside(fresh):
    fresh.run("gpus", "aside", "node0/1", "--reason", "fan")
    fresh.run("run", "-d", "-t", "8", "--", "true")
    assert '1 GPU is set aside, the first on node "node0"' in fresh.run("explain", "1", "-v").out
    fresh.run("gpus", "back", "node0/1")
    assert fresh.wait(1)["state"] == "succeeded"


def test_an_empty_log_names_the_other_stream(fresh):
    fresh.run("run", "-g", "0", "--", "sh", "-c", "echo trace >&2")
    done = fresh.run("logs", "1")
    assert done.out == "" and done.err == "trace\n"
    done = fresh.run("logs", "1", "--stdout")
    assert done.out == "" and "`fairlead logs 1/0 --stderr` shows its stderr" in done.err
    assert fresh.run("logs", "1", "--stderr").out == "trace\n"


# --- the order of stdout and stderr ----------------------------------------------------------------------------------


MIXED = ["sh", "-c", "echo o1; echo e1 >&2; echo o2; echo e2 >&2; echo e3 >&2; echo o3"]
WRITTEN = ["o1", "e1", "o2", "e2", "e3", "o3"]


def on_a_terminal(d, *words):
    """What the command shows on a terminal, in lines."""
    main, side = pty.openpty()
    process = subprocess.Popen([harness.PROGRAM, *words], stdout=side, stderr=side, stdin=subprocess.DEVNULL, env=d.env)
    os.close(side)
    text = b""
    while True:
        try:
            part = os.read(main, 65536)
        except OSError:  # nobody has the other end any more
            break
        if not part:
            break
        text += part
    os.close(main)
    assert process.wait(harness.PATIENCE_S) == 0
    return text.decode().replace("\r\n", "\n").splitlines()


def test_logs_show_both_streams_in_the_order_of_the_writes_and_mark_stderr_on_a_terminal(d):
    number = d.submit(*MIXED, flags=("-g", "0"))
    assert d.wait(number)["state"] == "succeeded"
    both = subprocess.run([harness.PROGRAM, "logs", str(number)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=d.env, text=True)
    assert both.stdout.splitlines() == WRITTEN
    apart = d.run("logs", str(number))
    assert (apart.out, apart.err) == ("o1\no2\no3\n", "e1\ne2\ne3\n")
    assert on_a_terminal(d, "logs", str(number)) == ["! " + line if line[0] == "e" else line for line in WRITTEN]
    assert on_a_terminal(d, "logs", str(number), "--stderr") == ["e1", "e2", "e3"]
    assert on_a_terminal(d, "logs", str(number), "--stdout", "--tail", "2") == ["o2", "o3"]


def test_tail_counts_the_lines_of_both_streams(d):
    number = d.submit(*MIXED, flags=("-g", "0"))
    d.wait(number)
    assert on_a_terminal(d, "logs", str(number), "--tail", "4") == ["o2", "! e2", "! e3", "o3"]
    assert on_a_terminal(d, "logs", str(number), "--tail", "1") == ["o3"]


def test_what_is_followed_comes_in_that_order_too(d, tmp_path):
    go = tmp_path / "go"
    number = d.submit("sh", "-c", "echo o1; echo e1 >&2; until [ -e %s ]; do sleep 0.02; done; echo e2 >&2; echo o2" % go, flags=("-g", "0"))
    with subprocess.Popen([harness.PROGRAM, "logs", "-f", str(number)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=d.env, text=True) as process:
        assert [process.stdout.readline() for _ in range(2)] == ["o1\n", "e1\n"]
        go.touch()
        assert process.stdout.read() == "e2\no2\n"
    assert d.wait(number)["state"] == "succeeded"


def test_attempts_count_from_1_within_their_job(d):
    d.wait(d.submit("true", flags=("-g", "0")))  # others' attempts take numbers of the journal
    number = d.submit("sh", "-c", 'if [ -e "$0" ]; then echo second; else touch "$0"; echo first; exit 1; fi', "/tmp/fairlead-test-%d-twice" % os.getpid(),
                      flags=("-g", "0", "--retries", "1"))
    try:
        job = d.wait(number)
    finally:
        os.unlink("/tmp/fairlead-test-%d-twice" % os.getpid())
    assert [attempt["number"] for attempt in job["attempts"]] == [1, 2] and job["attempts"][0]["attempt"] > 1
    assert d.run("logs", str(number), "--attempt", "1").out == "first\n"
    assert d.run("logs", str(number), "--attempt", "2").out == d.run("logs", str(number)).out == "second\n"
    missing = d.run("logs", str(number), "--attempt", "3", check=False)
    assert missing.code == 3 and "no attempt 3; it has had 2" in missing.err
    assert "attempt 2 of 2 is over" in d.run("job", str(number)).out


def test_the_page_of_a_failed_job_has_the_last_lines_of_the_rank_that_failed_first(d, tmp_path):
    go = tmp_path / "go"  # the order of one burst of many lines to both streams is not certain
    script = 'if [ $RANK = 1 ]; then seq 1 20; until [ -e %s ]; do sleep 0.02; done; echo "it broke" >&2; exit 3; fi; echo other; sleep 1000' % go
    number = d.submit("sh", "-c", script, flags=("-t", "2", "-g", "0"))
    harness.wait_until("stdout is there", lambda: d.run("logs", "%d/1" % number, "--stdout", "--tail", "1").out == "20\n")
    go.touch()
    assert d.wait(number)["attempts"][0]["first_failed_rank"] == 1
    page = d.run("job", str(number)).out
    assert page.endswith("last lines of rank 1 (`fairlead logs %d/1` shows all)\n" % number +
                         "".join("  %d\n" % i for i in range(12, 21)) + "  it broke\n"), page
    huge = d.submit("sh", "-c", "head -c 100000 /dev/zero | tr '\\0' x; exit 1", flags=("-g", "0"))
    d.wait(huge)
    page = d.run("job", str(huge)).out
    assert 4000 < page.count("x") < 4200
    good = d.submit("echo", "fine", flags=("-g", "0"))
    d.wait(good)
    assert "last lines" not in d.run("job", str(good)).out
