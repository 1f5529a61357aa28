# SPDX-License-Identifier: Apache-2.0
"""What commands show: tables that awk can split, JSON, YAML, names, colours only where they belong."""

import fcntl
import json
import os
import pwd
import pty
import re
import select
import struct
import subprocess
import termios

import pytest

import harness

LISTS = [["jobs"], ["jobs", "--all"], ["queues"], ["queues", "list"], ["nodes"], ["gpus"], ["users"], ["teams"], ["token"]]


@pytest.fixture(scope="module")
def d():
    with harness.Daemon(nodes="sim:2x2xH100-80GB") as daemon:
        daemon.run("run", "--", "true")
        daemon.run("run", "-n", "fails", "--", "false", check=False)
        daemon.run("run", "-d", "-n", "held", "--hold", "--", "true")
        daemon.run("run", "-d", "-n", "after", "--after", "3", "--", "true")
        daemon.run("hold", "4", "--reason", "two words\x1b[2J\x1b]0;title\x07 and\nlines")
        daemon.run("teams", "create", "vision", "--title", "Computer Vision")
        daemon.run("queues", "create", "vision", "--guarantee", "1.5", "--limit", "3", "--team", "vision")
        daemon.run("token", "create", "--note", "for tests")
        yield daemon


@pytest.mark.parametrize("words", LISTS, ids=" ".join)
def test_awk_can_split_every_table(d, words):
    for form in ("table", "wide"):
        lines = d.run(*words, "-o", form).out.splitlines()
        counts = {len(line.split()) for line in lines}
        assert len(lines) > 1 and len(counts) == 1, lines
        bare = d.run(*words, "-o", form, "--no-headers").out.splitlines()
        assert [line.split()[0] for line in lines[1:]] == [line.split()[0] for line in bare]


@pytest.mark.parametrize("words", LISTS, ids=" ".join)
def test_every_list_has_json_yaml_and_names(d, words):
    rows = json.loads(d.run(*words, "-o", "json").out)
    assert isinstance(rows, list) and rows
    yaml = d.run(*words, "-o", "yaml").out
    assert yaml.count("\n- ") + yaml.startswith("- ") == len(rows)
    names = d.run(*words, "-o", "name").out.split()
    assert len(names) == len(rows) and len(set(names)) == len(names)


def test_yaml_is_read_back_as_the_json(d):
    yaml = pytest.importorskip("yaml")
    for words in LISTS + [["job", "1"], ["policy"], ["whoami"], ["explain", "3"]]:
        read, told = yaml.safe_load(d.run(*words, "-o", "yaml").out), json.loads(d.run(*words, "-o", "json").out)
        if words[0] == "explain":  # each answer is of its own moment
            assert read.pop("at_ms") <= told.pop("at_ms")
        assert read == told


@pytest.mark.parametrize("words", [["job", "1"], ["whoami"], ["policy"], ["explain", "3"], ["doctor"], ["events"], ["job", "1", "--history"],
                                   ["job", "1", "--spec"], ["version"], ["journal", "verify"]], ids=" ".join)
def test_single_things_have_json_too(d, words):
    assert json.loads(d.run(*words, "-o", "json").out)
    assert d.run(*words).out


def test_names_are_what_other_commands_take(d):
    assert d.run("jobs", "-o", "name").out == "1\n2\n3\n4\n"
    assert d.run("gpus", "-o", "name").out == "node0/0\nnode0/1\nnode1/0\nnode1/1\n"


def test_text_of_others_cannot_move_the_cursor(d):
    for words in (["jobs"], ["jobs", "-o", "wide"], ["job", "4"], ["explain", "4"], ["events"], ["job", "4", "--history"], ["jobs", "-o", "yaml"]):
        out = d.run(*words).out
        assert "\x1b" not in out and "\x07" not in out, words
    assert "two words\\x1b[2J" in d.run("job", "4", "--history").out


@pytest.mark.parametrize("words", [["nodes"], ["gpus"], ["jobs"], ["job", "1"], ["queues"], ["job", "3"], ["explain", "3"], ["doctor"], ["nodes", "-o", "json"], ["gpus", "-o", "json"]], ids=" ".join)
def test_every_screen_with_simulated_nodes_says_so(d, words):
    done = d.run(*words)
    assert "simulated" in (done.out + done.err).lower()


def test_filters_reach_the_daemon(d):
    assert d.run("jobs", "-o", "name", "-s", "failed").out == "2\n"
    assert d.run("jobs", "-o", "name", "--name", "held").out == "3\n"
    assert d.run("jobs", "-o", "name", "--user", "nobody-here", check=False).out == ""
    assert d.run("jobs", "-o", "name", "--limit", "1").out == "1\n"


def on_terminal(d, *words, env=None, width=0, height=40):
    """Output and error as a person sees them."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
    process = subprocess.Popen([harness.PROGRAM, *words], stdout=slave, stderr=slave, stdin=subprocess.DEVNULL,
                               env=dict({k: v for k, v in d.env.items() if k != "NO_COLOR"}, **{"TERM": "xterm", **(env or {})}))
    os.close(slave)
    out = b""
    while True:
        try:
            part = os.read(master, 65536)
        except OSError:
            break
        if not part:
            break
        out += part
    process.wait(timeout=60)
    os.close(master)
    return out.decode(errors="replace")


def test_colour_is_for_terminals_that_want_it(d):
    assert "\x1b[31mfailed\x1b[0m" in on_terminal(d, "jobs")
    for env in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        out = on_terminal(d, "jobs", env=env)
        assert "\x1b" not in out and "failed" in out
    assert "\x1b" not in d.run("jobs", env={"TERM": "xterm", "NO_COLOR": ""}).out


def test_colours_of_a_job_pass_to_a_terminal_and_commands_to_it_do_not(d):
    d.run("run", "-n", "colours", "--", "printf", r"\033[32mgreen\033[0m \033]0;title\007 \033[2Jx\n")
    number = d.run("jobs", "--name", "colours", "-o", "name").out.strip()
    seen = on_terminal(d, "logs", number)
    assert "\x1b[32mgreen\x1b[0m" in seen and "\x1b[2J" not in seen and "\x1b]0" not in seen
    assert d.run("logs", number).out == "\x1b[32mgreen\x1b[0m \x1b]0;title\x07 \x1b[2Jx\n"
    assert "\x1b[2J" in on_terminal(d, "logs", "--raw", number)


def test_watching_shows_again_until_interrupted(d):
    process = subprocess.Popen([harness.PROGRAM, "jobs", "--watch", "-o", "name"], stdout=subprocess.PIPE, env=d.env, text=True)
    seen = [process.stdout.readline() for _ in range(2 * 4)]
    process.send_signal(2)
    process.wait(timeout=60)
    process.stdout.close()
    assert seen.count("1\n") == 2 and process.returncode == 0


def watched(d, folder, *words, pictures, height, width=100, resize=None):
    """The pictures that a person sees one after the other."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
    process = subprocess.Popen([harness.PROGRAM, *words, "--watch"], stdout=slave, stderr=slave, stdin=subprocess.DEVNULL,
                               env=dict(d.env, TERM="xterm", XDG_RUNTIME_DIR=str(folder)))
    out = b""
    while out.count(b"\x1b[?7h") < pictures:
        out += os.read(master, 65536)
        if resize and out.count(b"\x1b[?7h") == 1:
            fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", resize, width, 0, 0))
    process.send_signal(2)
    os.close(slave)
    assert process.wait(timeout=60) == 0
    os.close(master)
    return [re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", picture).split("\r\n") for picture in out.decode().split("\x1b[?7h")[:pictures]]


def test_watching_on_a_terminal_keeps_the_titles_and_fits(d, tmp_path):
    first, second = watched(d, tmp_path, "jobs", pictures=2, height=4)
    for picture in first, second:
        assert len(picture) == 4 and picture[0].split()[:2] == ["JOB", "NAME"], picture
        assert re.fullmatch("fairlead: and [0-9]+ more; `--limit all` shows them", picture[2]) and "GPUs are simulated" in picture[3], picture
    first, second = watched(d, tmp_path / "other", "nodes", pictures=2, height=40, resize=3)
    assert len(first) == 4 and len(second) == 3 and first[0].split()[0] == second[0].split()[0] == "NODE", (first, second)
    assert first[-1].startswith("fairlead: GPUs are simulated") == second[-1].startswith("fairlead: GPUs are simulated")


def test_simulated_gpus_are_remarked_once_a_day_on_each_terminal(d, tmp_path):
    master, slave = pty.openpty()

    def nodes(stderr=slave):
        with open(tmp_path / "err", "w+") as err:
            done = subprocess.run([harness.PROGRAM, "nodes"], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True,
                                  stderr=err if stderr is None else stderr, env=dict(d.env, XDG_RUNTIME_DIR=str(tmp_path)))
        assert done.returncode == 0
        if stderr is None:
            return (tmp_path / "err").read_text()
        return os.read(master, 65536).decode() if select.select([master], [], [], 0)[0] else ""

    assert "GPUs are simulated" in nodes() and nodes() == "" and nodes() == ""
    assert "GPUs are simulated" in nodes(None) and "GPUs are simulated" in nodes(None)  # no terminal: a log is read by itself
    (kept,) = (tmp_path / "fairlead").iterdir()
    text = kept.read_text()
    kept.write_text("2001-01-01" + text[10:])  # another day
    assert "GPUs are simulated" in nodes() and nodes() == "" and kept.read_text() == text
    kept.write_text(text[:10] + " 1\n")  # another session on a terminal of this name
    assert "GPUs are simulated" in nodes() and nodes() == ""
    kept.unlink()
    kept.symlink_to(tmp_path / "elsewhere")
    assert "GPUs are simulated" in nodes() and "GPUs are simulated" in nodes() and not (tmp_path / "elsewhere").exists()
    os.close(slave)
    os.close(master)


def test_dates_are_local(d):
    wide = d.run("jobs", "-o", "wide", env={"TZ": "UTC"}).out, d.run("jobs", "-o", "wide", env={"TZ": "XYZ-5"}).out
    first, other = (re.search(r"\d{4}-\d\d-\d\dT(\d\d):\d\d:\d\d", text).group(1) for text in wide)
    assert (int(other) - int(first)) % 24 == 5


def test_a_reader_that_goes_away_is_no_drama(d):
    done = subprocess.run("%s events --limit 1000 | head -1" % harness.PROGRAM, shell=True, env=d.env, stdout=subprocess.PIPE, text=True)
    assert done.stdout.count("\n") == 1


def test_completion_knows_what_the_daemon_has(d):
    def words(*typed):
        return d.run("__words", "--", *typed).out.split()

    assert words("gpus", "aside", "node1/") == ["node1/0", "node1/1"] and words("nodes", "drain", "") == ["node0", "node1"]
    assert words("gpus", "--node", "") == ["node0", "node1"] and "1" in words("explain", "") and "default" in words("run", "-q", "")
    assert words("--data", d.data, "queues", "change", "d") == ["default"] == words("queues", "change", "--data", d.data, "d")


def test_the_specification_names_the_signal(d):
    number = str(d.submit("true", flags=("--checkpoint", "signal")))
    assert "checkpoint_signal: USR1\n" in d.run("job", number, "--spec").out
    assert 'checkpoint_signal: ""\n' in d.run("job", "1", "--spec").out
    d.wait(int(number))


def test_history_is_for_people(d):
    history = d.run("job", "2", "--history").out
    said = [line.split(None, 3)[3] for line in history.splitlines()]  # behind the number and the time
    assert said[0].endswith("submitted job 2 (fails) to queue default"), history
    for wanted in ("job 2 (fails) gets 1 GPU on node0 (attempt 1)", "job 2 (fails) starts (attempt 1)", "rank 0 of job 2 (fails) runs",
                   "attempt 1 of job 2 (fails) ended: failed"):
        assert wanted in said, (wanted, history)
    assert any(line.startswith("rank 0 of job 2 (fails) ended: exit, exit code 1") for line in said), history
    assert said[-1].startswith("job 2 (fails) failed: ") and "=" not in history, history
    number = d.submit("true", flags=("--hold",))
    d.run("priority", str(number), "--to", "3")
    d.run("cancel", str(number), "--reason", "d")  # a text that ends the words before it, and is no repetition
    said = [line.split(None, 3)[3] for line in d.run("job", str(number), "--history").out.splitlines()]
    assert "the priority of job %d (true) is 3 (by %s)" % (number, pwd.getpwuid(os.getuid()).pw_name) in said and said[-1].startswith("job %d (true) cancelled" % number), said
    assert "the end of job %d (true) was requested: d (by %s)" % (number, pwd.getpwuid(os.getuid()).pw_name) in said, said
    rows = json.loads(d.run("job", "2", "--history", "-o", "json").out)
    assert all(row["sentence"] for row in rows) and rows[0]["event"]["queue"] == "default"
    states = [row for row in rows if row["kind"] == "job-state"]
    assert [row["event"]["state"] for row in states] == ["queued", "starting", "running", "failed"] and all(row["derived"] for row in states)


def test_what_the_scheduler_notes_for_itself_is_left_out(d):
    kinds = lambda *words: [row["kind"] for row in json.loads(d.run("events", "-o", "json", *words).out)]
    assert "task-ready" not in kinds() and "task-ready" in kinds("--all")
    assert len([kind for kind in kinds("--limit", "9") if kind != "job-state"]) == 9
    assert "is ready" not in d.run("events").out and "is ready" in d.run("events", "--all").out
    every = json.loads(d.run("events", "-o", "json", "--all", "--limit", "1000").out)
    assert all(" " in row["sentence"] for row in every), "each kind has words"


def test_lines_do_not_wrap_on_a_narrow_terminal(d):
    d.run("run", "-n", "reason", "--", "/no/such/program/whose/name/is/long/enough", check=False)
    for words in (["jobs"], ["nodes"], ["gpus"], ["queues"], ["job", "2"], ["job", "2", "--history"], ["explain", "3"], ["help"], ["help", "run"],
                  ["help", "policy", "set"], ["help", "job-file"], ["run", "--dry-run", "-g", "8", "--", "true"], ["jobs", "-s", "nonsense"]):
        for width in (80, 100):
            for line in on_terminal(d, *words, env={"NO_COLOR": "1"}, width=width).split("\r\n"):
                assert len(line) <= width, line
    assert "TASKS" in d.run("jobs").out  # a pipe gets everything
