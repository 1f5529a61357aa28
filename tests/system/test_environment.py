# SPDX-License-Identifier: Apache-2.0
"""What of the environment of the shell that submits a job its tasks find."""

import os
import subprocess
import sys

import pytest

import harness


@pytest.fixture(scope="module")
def d():
    with harness.Daemon(nodes="sim:1x4xH100-80GB") as daemon:
        yield daemon


def typed(d, *words, check=True, **variables):
    """The command with these variables in the environment of the shell; None = not set."""
    env = {name: value for name, value in {**d.env, **variables}.items() if value is not None}
    done = subprocess.run([harness.PROGRAM, *words], capture_output=True, text=True, stdin=subprocess.DEVNULL, env=env, timeout=harness.PATIENCE_S)
    assert not check or done.returncode == 0, done
    return done


def printed(d, words, *flags, **variables):
    return typed(d, "run", "-g", "0", *flags, "--", "sh", "-c", "; ".join('echo "$%s"' % word for word in words), **variables).stdout.splitlines()


def test_a_virtual_environment_that_is_active_where_a_job_is_submitted_runs_it(d, tmp_path):
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "venv")], check=True)
    active = {"PATH": "%s:%s" % (tmp_path / "venv/bin", os.environ["PATH"]), "VIRTUAL_ENV": str(tmp_path / "venv")}
    done = typed(d, "run", "-g", "0", "--", "python3", "-c", "import sys; print(sys.prefix)", **active)
    assert done.stdout == "%s\n" % (tmp_path / "venv")
    (tmp_path / "job.yaml").write_text("gpus: 0\ncommand: python3 -c 'import sys; print(sys.prefix)'\n")
    number = int(typed(d, "submit", "--quiet", str(tmp_path / "job.yaml"), **active).stdout)
    assert d.wait(number)["state"] == "succeeded"
    assert d.run("logs", str(number)).out == "%s\n" % (tmp_path / "venv")


def test_only_the_named_variables_pass_unless_all_or_none_are_asked_for(d):
    names = ["CONDA_PREFIX", "LD_LIBRARY_PATH", "PYTHONPATH", "MY_OWN", "RANK"]
    shell = {"CONDA_PREFIX": "/conda", "LD_LIBRARY_PATH": "/lib64", "PYTHONPATH": "/modules", "MY_OWN": "mine", "RANK": "9"}
    assert printed(d, names, **shell) == ["/conda", "/lib64", "/modules", "", "0"]
    assert printed(d, names, "--env-all", **shell) == ["/conda", "/lib64", "/modules", "mine", "0"]
    assert printed(d, names, "--env-none", **shell) == ["", "", "", "", "0"]
    done = typed(d, "run", "--env-all", "--env-none", "--", "true", check=False)
    assert done.returncode == 2 and "contradict" in done.stderr


def test_what_the_job_says_wins_over_the_shell(d, tmp_path):
    assert printed(d, ["PYTHONPATH"], "-e", "PYTHONPATH=/of-job", PYTHONPATH="/of-shell") == ["/of-job"]
    (tmp_path / "job.yaml").write_text("gpus: 0\nshell_env: {}\ncommand: echo \"[$PYTHONPATH]\"\n")
    for flags, wanted in (((), "[]\n"), (("--env-all",), "[/of-shell]\n")):
        number = int(typed(d, "submit", "--quiet", *flags, str(tmp_path / "job.yaml"), PYTHONPATH="/of-shell").stdout)
        assert d.wait(number)["state"] == "succeeded"
        assert d.run("logs", str(number)).out == wanted
    spec = harness.Client(d.data).get("/api/v1/jobs/%d/spec" % number)
    assert "PYTHONPATH" in spec["shell_env"] and "PYTHONPATH" not in spec["env"] and "/of-shell" not in str(spec)


def test_over_tcp_nothing_of_this_shell_passes_by_itself():
    with harness.Daemon(nodes="sim:1x1xH100-80GB", listen="127.0.0.1:0") as d:
        remote = {"FAIRLEAD_SERVER": "http://127.0.0.1:" + d.tcp_port(), "FAIRLEAD_TOKEN": d.run("token", "create").out.strip(),
                  "FAIRLEAD_DATA": None, "PYTHONPATH": "/of-this-machine"}
        assert printed(d, ["PYTHONPATH"], **remote) == [""]
        assert printed(d, ["PYTHONPATH", "FAIRLEAD_TOKEN"], "--env-all", **remote) == ["/of-this-machine", ""]


def test_a_path_that_is_no_text_is_left_out_and_that_is_said(d):
    env = {os.fsencode(name): os.fsencode(value) for name, value in d.env.items()}
    env[b"PYTHONPATH"] = b"/\xff"
    done = subprocess.run([harness.PROGRAM, "run", "-g", "0", "--", "sh", "-c", 'echo "[$PYTHONPATH]"'], capture_output=True, env=env,
                          stdin=subprocess.DEVNULL, timeout=harness.PATIENCE_S)
    assert done.stdout == b"[]\n" and b"PYTHONPATH is not passed" in done.stderr, done


def test_a_script_that_tries_again_from_another_shell_gets_the_same_job(d):
    first, second = (typed(d, "run", "-d", "-g", "0", "-o", "name", "--key", "again", "--", "true", PYTHONPATH=path).stdout for path in ("/a", "/b"))
    assert first == second


def test_a_command_that_is_not_found_says_where_it_was_searched(d, tmp_path):
    done = typed(d, "run", "-g", "0", "--", "no-such-command", check=False, PATH="/opt/first:/opt/second")
    assert done.returncode == 1
    number = int(done.stderr.split("job ")[1].split()[0])
    reason = d.job(number)["reason"]
    assert 'command not found: "no-such-command", searched in PATH=/opt/first:/opt/second' in reason, reason
    done = typed(d, "run", "-g", "0", "-C", str(tmp_path), "--", "./no-such", check=False)
    assert 'command not found: "./no-such" in "%s"' % tmp_path in done.stderr, done
