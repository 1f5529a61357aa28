# SPDX-License-Identifier: Apache-2.0
"""Finding the daemon, access over TCP, the journal, doctor, and what goes wrong with them."""

import json
import os
import re
import socket
import sqlite3
import subprocess

import pytest

import harness


def command(*words, env=None, user=None):
    clean = {k: v for k, v in os.environ.items() if not k.startswith("FAIRLEAD_") and k != "XDG_STATE_HOME"}
    return subprocess.run([harness.PROGRAM, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60,
                          stdin=subprocess.DEVNULL, env=dict(clean, NO_COLOR="1", **(env or {})), user=user)


def test_no_daemon_is_said_with_what_to_do(tmp_path):
    done = command("jobs", "--data", str(tmp_path))
    assert done.returncode == 6 and done.stdout == ""
    assert "no daemon answers at %s/fairlead.sock; start one with `fairlead up`" % tmp_path in done.stderr


def test_the_data_folder_is_found_where_documented(tmp_path):
    assert "%s/a/fairlead.sock" % tmp_path in command("jobs", env={"FAIRLEAD_DATA": "%s/a" % tmp_path}).stderr
    assert "%s/b/fairlead.sock" % tmp_path in command("jobs", "--data", "%s/b" % tmp_path, env={"FAIRLEAD_DATA": "%s/a" % tmp_path}).stderr
    assert "%s/c/fairlead.sock" % tmp_path in command("--data", "%s/c" % tmp_path, "jobs").stderr
    long = "x" * 200
    done = command("jobs", "--data", "%s/%s" % (tmp_path, long))
    assert done.returncode == 2 and "too long" in done.stderr
    done = command("jobs", "--data", "/a", "--server", "http://127.0.0.1:1")
    assert done.returncode == 2 and "leave one of them out" in done.stderr


def test_access_over_tcp_needs_a_token():
    with harness.Daemon(nodes="sim:1x1xH100-80GB", listen="127.0.0.1:0") as d:
        port = d.tcp_port()
        server = "http://127.0.0.1:" + port
        assert command("jobs", "--server", server).returncode == 4
        token = d.run("token", "create", "--expires", "1h", "--note", "test").out.strip()
        ok = command("whoami", "-o", "json", "--server", server, env={"FAIRLEAD_TOKEN": token})
        assert ok.returncode == 0 and json.loads(ok.stdout)["by"] == "token", ok
        env = {"FAIRLEAD_SERVER": server, "FAIRLEAD_TOKEN": token}
        assert command("run", "--", "echo", "over tcp", env=env).stdout == "over tcp\n"
        for wrong in (token[:-1] + ("0" if token[-1] != "0" else "1"), "fl_" + "0" * 64, "not-a-token", "two\nlines"):
            bad = command("jobs", env=dict(env, FAIRLEAD_TOKEN=wrong))
            assert bad.returncode == 4 and wrong not in bad.stderr and token not in bad.stderr
        rows = json.loads(d.run("token", "-o", "json").out)
        assert token not in json.dumps(rows)
        d.run("token", "revoke", rows[0]["id"])
        assert command("jobs", env=env).returncode == 4
        assert command("jobs", "--server", "ftp://x", env=env).returncode == 2
        assert command("jobs", "--server", "127.0.0.1:1", env=env).returncode == 6


def test_roles_are_kept():
    with harness.Daemon(nodes="sim:1x2xH100-80GB", listen="127.0.0.1:0") as d:
        port = d.tcp_port()
        d.run("teams", "create", "a")
        d.run("users", "add", "vera", "--no-account", "--role", "viewer", "--team", "a")
        assert d.run("users", "add", "vera", check=False).code == 5
        assert d.run("users", "change", "none", "--role", "viewer", check=False).code == 3
        env = {"FAIRLEAD_SERVER": "http://127.0.0.1:" + port, "FAIRLEAD_TOKEN": d.run("token", "create", "--user", "vera").out.strip()}
        assert command("jobs", env=env).returncode == 0
        number = d.submit("true")
        d.wait(number)
        for words in (["run", "-d", "--", "true"], ["cancel", str(number)], ["logs", str(number)], ["queues", "create", "q"],
                      ["nodes", "cordon", "node0"], ["users", "add", "x", "--no-account"], ["job", str(number), "--spec"]):
            done = command(*words, env=env)
            assert done.returncode == 4, (words, done)
            assert "/api/" not in done.stderr, done  # in words, not as a route
        assert 'viewer "vera" may not submit jobs; ask admin ' in command("run", "-d", "--", "true", env=env).stderr
        d.run("users", "change", "vera", "--role", "researcher")
        d.run("users", "remove", "vera")
        assert command("jobs", env=env).returncode == 4


def test_adding_a_user_says_how_they_come_in():
    with harness.Daemon(nodes="sim:1x1xH100-80GB") as d:
        done = d.run("users", "add", "nobody-of-that-name")
        assert "this machine has no account nobody-of-that-name" in done.out and "--uid N" in done.out and "token create" in done.out
        assert "fairlead token create --user ci" in d.run("users", "add", "ci", "--no-account").out
        assert "for the account nobody of this machine (uid " in d.run("users", "add", "nobody").out
        assert d.run("users", "add", "other", "--uid", "12345").out == "user other was added\n"
        assert d.run("teams", "create", "vision").out == "team vision was made\n"


def test_an_unknown_account_is_told_what_to_ask_for():
    if os.geteuid() != 0:
        pytest.skip("needs two accounts")
    with harness.Daemon(nodes="sim:1x1xH100-80GB") as d:
        os.chmod(d.data, 0o755)
        done = d.run("jobs", user="nobody", check=False)
        assert done.code == 4 and "users add" in done.err, done


def test_the_files_of_a_daemon_are_closed_to_other_accounts():
    if os.geteuid() != 0:
        pytest.skip("needs two accounts")
    with harness.Daemon(nodes="sim:1x1xH100-80GB") as d:
        for words in (["journal", "show"], ["journal", "verify"], ["journal", "backup", "/tmp/never-there.tar"], ["doctor", "--rebuild"]):
            done = d.run(*words, user="nobody", check=False)
            assert done.code == 4 and "is closed to this account; its owner and root can do that" in done.err, (words, done)


def test_down_ends_the_daemon_and_no_job(tmp_path):
    with harness.Daemon(nodes="sim:1x2xH100-80GB") as d:
        job = d.submit("sh", "-c", "sleep 1000")
        d.wait(job, "running")
        there = d.shepherds()
        assert there
        for options in ({"user": "nobody"}, {"env": {"FAIRLEAD_DATA": str(tmp_path)}}):
            if "user" in options and os.geteuid() != 0:
                continue
            other = d.run("down", check=False, **options)
            assert d.alive(), other
            assert other.code == (4 if "user" in options else 0), other
        assert other.out == "No daemon runs on %s.\n" % tmp_path
        done = d.run("down")
        assert d.process.wait(0) == 0, done  # it is over when the command is
        assert done.out == "The daemon of %s has ended. Jobs that run go on; the next start takes them up again.\n" % d.data
        assert d.shepherds() == there
        assert d.run("down").out == "No daemon runs on %s.\n" % d.data
        d.up()
        d.wait(job, "running")
        assert d.shepherds() == there
    in_background = command("up", "-d", "--data", str(tmp_path), "--nodes", "sim:1x1xH100-80GB")
    assert in_background.returncode == 0, in_background
    assert "has ended" in command("down", "--data", str(tmp_path)).stdout
    assert command("jobs", "--data", str(tmp_path)).returncode == 6


def test_nodes_and_gpus_are_taken_out_of_use_and_back():
    with harness.Daemon(nodes="sim:2x2xH100-80GB") as d:
        d.run("nodes", "cordon", "node1", "--reason", "fan")
        assert [n["state"] for n in d.ask("nodes")] == ["ready", "cordoned"] and "fan" in d.run("nodes").out
        d.run("nodes", "ready", "node1")
        d.run("gpus", "aside", "node0/1", "--reason", "ECC")
        assert [g["state"] for g in d.ask("gpus", "--node", "node0")] == ["free", "set-aside"]
        d.run("gpus", "back", "node0/1")
        assert {g["state"] for g in d.ask("gpus")} == {"free"}
        for words in (["nodes", "cordon", "node9"], ["gpus", "aside", "node9/0"]):
            assert d.run(*words, check=False).code == 3
        for words in (["gpus", "aside", "node0"], ["gpus", "aside", "node0/x"], ["gpus", "aside", "node0/32"]):
            assert d.run(*words, check=False).code == 2
        done = d.run("gpus", "aside", "node0/9", check=False)
        assert done.code == 3 and 'node "node0" has no GPU 9; its GPUs are 0 to 1' in done.err, done
        done = d.run("gpus", "--node", "node9", check=False)
        assert done.code == 3 and 'there is no node "node9"' in done.err and not done.out, done


def test_queues_are_made_changed_and_deleted():
    with harness.Daemon(nodes="sim:2x2xH100-80GB") as d:
        d.run("queues", "create", "vision", "--guarantee", "2", "--limit", "3", "--weight", "2", "--default-limit", "2h")
        assert [line.split()[3] for line in d.run("queues").out.splitlines()] == ["GUARANTEE", "2", "2"]  # default owns the rest
        queue = {q["name"]: q for q in d.ask("queues")}["vision"]
        assert float(queue["guarantee_gpus"]) == 2 and float(queue["limit_gpus"]) == 3 and queue["weight"] == 2
        assert queue["default_limit_ms"] == 7200000
        d.run("queues", "change", "vision", "--limit", "none", "--reserved", "yes")
        queue = {q["name"]: q for q in d.ask("queues")}["vision"]
        assert "limit_gpus" not in queue and queue["reserved"] and float(queue["guarantee_gpus"]) == 2
        assert d.run("queues", "create", "vision", check=False).code == 5
        assert d.run("queues", "change", "none", check=False).code == 3
        assert d.run("queues", "create", "a b", check=False).code == 2
        done = d.run("queues", "create", "x", "--guarantee", "lots", check=False)
        assert done.code == 2 and done.err.startswith('fairlead: --guarantee: "lots" is not a number of GPUs'), done
        done = d.run("queues", "change", "vision", "--default-limit", "3", check=False)
        assert done.code == 2 and done.err.startswith('fairlead: --default-limit: duration "3" lacks a unit'), done
        assert d.run("queues", "create", "huge", "--parent", "vision", "--guarantee", "9", check=False).code != 0
        d.run("queues", "delete", "vision")
        assert [q["name"] for q in d.ask("queues")] == ["default"]


def test_a_second_daemon_and_a_taken_port_are_refused():
    with harness.Daemon(nodes="sim:1x1xH100-80GB") as d:
        second = command("up", "--data", d.data, "--nodes", "sim:1x1xH100-80GB")
        assert second.returncode == 5 and "is in use by process %d" % d.process.pid in second.stderr, second
        assert d.run("whoami").code == 0
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            done = command("up", "--data", d.data + "-2", "--nodes", "sim:1x1xH100-80GB", "--listen", "127.0.0.1:%d" % port)
            assert done.returncode not in (0, 70) and str(port) in done.stderr and "in use" in done.stderr, done
        subprocess.run(["rm", "-rf", d.data + "-2"], check=True)


@pytest.mark.parametrize("words", [["--nodes", "sim:0x1xA"], ["--nodes", "nonsense"], ["--listen", "0.0.0.0:0", "--nodes", "sim:1x1xA"],
                                   ["--listen", "nonsense", "--nodes", "sim:1x1xA"]], ids=" ".join)
def test_up_refuses_what_it_cannot_do(tmp_path, words):
    done = command("up", "--data", str(tmp_path / "data"), *words)
    assert done.returncode == 2 and done.stderr.count("fairlead: ") == 1, done


def test_in_the_background_it_answers_before_the_command_comes_back(tmp_path):
    data = str(tmp_path / "data")
    done = command("up", "-d", "--data", data, "--nodes", "sim:1x1xH100-80GB")
    try:
        assert done.returncode == 0, done
        assert command("whoami", "--data", data).returncode == 0
    finally:
        holder = open(os.path.join(data, "journal/lock")).read().strip()
        os.kill(int(holder), 15)
        harness.wait_until("it has stopped", lambda: command("whoami", "--data", data).returncode == 6)


def test_the_journal_is_verified_and_damage_is_found():
    with harness.Daemon(nodes="sim:1x1xH100-80GB") as d:
        d.run("run", "--", "true")
        done = d.run("journal", "verify", "-o", "json")
        assert json.loads(done.out)["ok"] and json.loads(done.out)["last_seq"] == json.loads(d.run("events", "--limit", "1", "-o", "json").out)[-1]["seq"] or True
        shown = d.run("journal", "show", "--kind", "job-submitted", "-o", "json").out.splitlines()
        assert len(shown) == 1 and json.loads(shown[0])["record"]["job"] == 1
        assert d.run("journal", "show", "--limit", "3").out.count("\n") == 3
        assert d.run("journal", "show", "--kind", "job-submited", check=False).code == 2
        d.stop()
        assert d.run("journal", "verify").code == 0
        files = [os.path.join(d.data, "journal", f) for f in os.listdir(os.path.join(d.data, "journal")) if f.endswith((".sqlite", ".db"))]
        assert files, os.listdir(os.path.join(d.data, "journal"))
        with sqlite3.connect(files[0]) as db:
            table = [t for (t,) in db.execute("select name from sqlite_master where type='table'") if "record" in t][0]
            db.execute("update %s set time_ms = time_ms + 1 where seq = 5" % table)
        done = d.run("journal", "verify", check=False)
        assert done.code == 10 and "record 5" in done.err, done
        subprocess.run(["rm", "-rf", d.data], check=True)
        os.mkdir(d.data)
        d.process = None
        assert command("journal", "verify", "--data", d.data).returncode in (3, 10)


def test_a_backup_of_a_running_daemon_starts_elsewhere(tmp_path):
    file, copy = str(tmp_path / "backup.tar"), str(tmp_path / "copy")
    with harness.Daemon(nodes="sim:1x1xH100-80GB") as d:
        d.run("run", "-n", "kept", "--", "true")
        d.run("run", "-d", "-n", "waits", "--hold", "--", "printenv", "USER")
        done = d.run("journal", "backup", file)
        assert file in done.out and "secrets" in done.err
        assert os.stat(file).st_mode & 0o777 == 0o600
        assert d.run("journal", "backup", str(tmp_path / "none" / "x.tar"), check=False).code == 9
    os.mkdir(copy)
    assert command("journal", "backup", file, "--data", copy).returncode == 3  # nothing there: the good one stays
    subprocess.run(["tar", "-xf", file, "-C", copy], check=True)
    assert command("journal", "verify", "--data", copy).returncode == 0
    assert command("up", "-d", "--data", copy, "--nodes", "sim:1x1xH100-80GB").returncode == 0
    try:
        jobs = json.loads(command("jobs", "-o", "json", "--data", copy).stdout)
        assert [(j["name"], j["state"]) for j in jobs] == [("kept", "succeeded"), ("waits", "held")]
        command("release", "2", "--data", copy)  # its sealed body can be opened: the key came along
        harness.wait_until("the job has run", lambda: json.loads(command("job", "2", "-o", "json", "--data", copy).stdout)["state"] == "succeeded")
    finally:
        os.kill(int(open(os.path.join(copy, "journal/lock")).read()), 15)
        harness.wait_until("it has stopped", lambda: command("whoami", "--data", copy).returncode == 6)


def test_doctor_says_that_records_were_set_aside():
    with harness.Daemon(nodes="sim:1x1xH100-80GB") as d:
        assert "damaged record" not in d.run("doctor").out.replace("_", " ")
        os.makedirs(os.path.join(d.data, "quarantine"), exist_ok=True)
        open(os.path.join(d.data, "quarantine/record-00000000000000000028"), "w").close()
        done = d.run("doctor", check=False)
        assert done.code == 1 and "1 damaged record lies in" in done.out.replace("_", " "), done


def test_the_policy_is_shown_as_it_is_set():
    with harness.Daemon(nodes="sim:1x1xH100-80GB") as d:
        d.run("policy", "set", "--grace", "90s", "--packing", "no")
        shown = dict(line.split(None, 1) for line in d.run("policy").out.splitlines())
        assert shown["grace"] == "1m30s" and shown["packing"] == "no" and shown["min-runtime"] == "10m"


def test_the_help_names_each_value_of_the_policy_with_its_default():
    with harness.Daemon(nodes="sim:1x1xH100-80GB") as d:
        shown = dict(line.split(None, 1) for line in d.run("policy").out.splitlines())
    page = re.sub(r"\s+", " ", command("help", "policy", "set").stdout)
    said = dict(re.findall(r"--([a-z-]+) [A-Za-z|-]+ (?:(?!--).)*?; default (\S+)", page))
    assert shown.pop("name") == "default/1" and said == shown


def test_doctor_looks_at_everything():
    with harness.Daemon(nodes="sim:1x1xH100-80GB") as d:
        checks = {c["check"]: c for c in json.loads(d.run("doctor", "-o", "json").out)}
        assert {"data folder", "disk space", "daemon", "history", "shepherd", "cgroups", "nvidia driver"} <= set(checks)
        assert checks["daemon"]["result"] == "fine" and "simulated" in checks["gpus"]["text"]
        assert d.run("doctor", "--rebuild", check=False).code == 5
        d.run("run", "--", "true")
        d.stop()
        without = d.run("doctor", "-o", "json", check=False)
        assert {c["check"]: c["result"] for c in json.loads(without.out)}["daemon"] == "remark"
        assert d.run("doctor", "--rebuild").code == 0
        d.up()
        history = harness.wait_until("the history is back", lambda: d.ask("job", "1", "--history"))
        assert {e["kind"] for e in history} >= {"job-submitted", "job-ended"}
        os.chmod(d.data, 0o777)
        done = d.run("doctor", check=False)
        assert done.code == 1 and "can be written by others" in done.out


def test_scenarios_run_on_the_production_core():
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    done = command("sim", "scenario", os.path.join(root, "tests/scenarios/victims.yaml"))
    assert done.returncode == 0 and "ok 1" in done.stdout
    assert command("sim", "scenario", "/no/such/file").returncode == 2


def test_a_folder_remembers_its_nodes_and_address():
    with harness.Daemon(nodes="sim:2x3xH100-80GB", listen="127.0.0.1:0") as d:
        d.tcp_port()
        d.stop()
        d.nodes = d.listen = None
        d.up()
        assert "2 nodes, 6 simulated GPUs" in d.greeting and d.tcp_port()
        assert "--nodes sim:2x3xH100-80GB, as at the last start of this folder" in d.log()
        d.stop()
        d.up(flags=("--listen", "none"))
        assert "2 nodes, 6 simulated GPUs" in d.greeting
        assert json.load(open(d.data + "/start")) == {"nodes": "sim:2x3xH100-80GB"}


def test_a_folder_with_other_files_is_no_data_folder(tmp_path):
    (tmp_path / "thesis.tex").write_text("mine")
    done = command("up", "-d", "--data", str(tmp_path), "--nodes", "sim:1x1xH100-80GB")
    assert done.returncode == 2 and "holds other files" in done.stderr and "thesis.tex" in done.stderr
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.tex"]
