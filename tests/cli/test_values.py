# SPDX-License-Identifier: Apache-2.0
"""What people write who come from elsewhere: short names of models, 64G, 01:00:00."""

import json
import os
import subprocess

import pytest

import harness


@pytest.fixture(scope="module")
def d():
    with harness.Daemon(nodes="sim:1x2xH100-80GB,1x1xA100-40GB,1x1xA100-80GB") as daemon:
        yield daemon


@pytest.mark.parametrize("name", ["H100", "h100", "h100-80gb", "H100-80GB"])
def test_a_short_name_of_a_model_is_the_whole_one(d, name):
    job = d.job(d.submit("true", flags=("-m", name)))
    assert job["models"] == ["H100-80GB"]
    assert d.wait(job["id"])["state"] == "succeeded"
    assert "would start now" in d.run("run", "--dry-run", "-m", name, "--", "true").out


def test_a_short_name_of_several_models_is_refused_with_their_names(d):
    for more in ((), ("--dry-run",)):
        done = d.run("run", *more, "-m", "A100", "--", "true", check=False)
        assert done.code == 2 and '"A100" is the short name of 2 models: A100-40GB, A100-80GB; write one of them' in done.err, done
    done = d.run("run", "-m", "H100", "-m", "H100-80GB", "--", "true", check=False)
    assert done.code == 2 and 'GPU model "H100-80GB" is named twice' in done.err


def test_a_name_that_no_node_bears_is_kept(d):
    for name in ("B200", "80GB", "H10"):
        number = d.submit("true", flags=("-m", name))
        assert d.job(number)["models"] == [name]
        d.run("cancel", str(number))


def test_a_retry_is_the_same_job_whatever_the_short_name_means_by_then(d):
    first = d.submit("true", flags=("-m", "H100", "--key", "twice"))
    assert d.submit("true", flags=("-m", "H100", "--key", "twice")) == first


def test_sizes_and_times_of_other_schedulers_are_read(d):
    number = d.submit("true", flags=("--memory", "64G", "--limit", "01:30:00", "-g", "0", "--hold"))
    job = d.job(number)
    assert (job["memory_mib"], job["limit_ms"]) == (65536, 5400000)
    answer = d.submit_file("command: 'true'\nmemory: 64Gi\nlimit: 2-00:00:10\nestimate: 01:00:00\ngpus: {count: 1, memory: 40G, model: H100}\nhold: true\n")
    job = d.job(json.loads(answer.out)["id"])
    assert (job["memory_mib"], job["limit_ms"], job["estimate_ms"], job["gpu_memory_mib"], job["models"]) == (65536, 172810000, 3600000, 40960, ["H100-80GB"])
    done = d.run("run", "--limit", "01:30", "--", "true", check=False)
    assert done.code == 2 and "--limit: " in done.err and "seconds are missing" in done.err


# --- files of others -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text,kind,names", [
    ("#!/bin/bash\n#SBATCH --gres=gpu:2\n#SBATCH -t 30\nhostname\n", "an sbatch script", ["gpus: 2", "limit: 30m", "script"]),
    ("resources:\n  accelerators: H100:8\nrun: |\n  nvidia-smi\n", "a SkyPilot task", ["gpus: {model: H100, count: 8}", "script"]),
    ("type: task\ncommands:\n  - nvidia-smi\nresources:\n  gpu: 2\n", "a dstack configuration", ["kind", "script", "gpus: 2"]),
    ("apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: &n x\nspec:\n  parallelism: 2\n---\napiVersion: v1\n", "a Kubernetes object", ["tasks: 2"])])
def test_a_file_of_another_scheduler_is_answered_line_by_line(d, tmp_path, text, kind, names):
    path = tmp_path / "file"
    path.write_text(text)
    for done in (d.run("submit", str(path), check=False), d.run("submit", "-", stdin=text, check=False)):
        assert done.code == 2 and done.out == "" and "is %s, not a job file; nothing was submitted" % kind in done.err, done
        assert all(name in done.err for name in names), done.err
    assert d.run("submit", "--dry-run", str(path), check=False).code == 2


def test_a_script_is_said_to_be_one(d):
    done = d.run("submit", "-", stdin="#!/bin/sh\nhostname\n", check=False)
    assert done.code == 2 and "is a script, not a job file" in done.err and "fairlead run -- sh FILE" in done.err


def test_a_job_file_that_is_wrong_is_still_said_to_be_wrong(d):
    done = d.run("submit", "-", stdin="command: x\ngpsu: 2\n", check=False)
    assert done.code == 2 and "standard input:2:1: " in done.err and 'did you mean "gpus"' in done.err, done


# --- what stdin, letters and exit codes do ----------------------------------------------------------------------------------


def test_data_that_the_job_would_not_read_is_reported(d, tmp_path):
    path = tmp_path / "data"
    path.write_text("12345\n6\n")

    def run(stdin, *flags):
        return subprocess.run([harness.PROGRAM, "run", *flags, "-g", "0", "--", "cat"], stdin=stdin, env=d.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    for flags in ((), ("-d",), ("--dry-run",)):
        with open(path) as f:
            done = run(f, *flags)
            assert done.returncode == 0 and "8 bytes on standard input are not passed to the job" in done.stderr, done
            f.seek(6)  # as in a loop of the shell that reads the file line by line
            assert "standard input" not in run(f, *flags).stderr
    ours, theirs = os.pipe()
    os.write(theirs, b"x")
    done = run(ours)
    assert done.stderr.count("1 byte on standard input is not passed to the job") == 1, done
    os.close(theirs)
    os.read(ours, 10)
    assert "standard input" not in run(ours).stderr and "standard input" not in run(subprocess.DEVNULL).stderr
    os.close(ours)


def test_q_is_the_queue(d):
    done = d.run("submit", "-q", "-", stdin="command: x\n", check=False)
    assert done.code == 2 and "submit has no flag -q; write --quiet" in done.err
    assert d.run("submit", "--quiet", "-", stdin="command: 'true'\n").out.strip().isdigit()


def test_free_gpus_are_summed_up_by_model():
    with harness.Daemon(nodes="sim:2x4xH100-80GB,1x2xA100-40GB") as d:
        holder = d.submit("sleep", "1000", flags=("-g", "3", "-m", "H100"))
        d.wait(holder, "running")
        d.run("nodes", "cordon", d.ask("nodes")[2]["name"])
        lines = [line.split() for line in d.run("nodes", "--summary").out.splitlines()]
        assert lines[0] == ["MODEL", "FREE", "MOST-FREE", "ALLOCATED", "UNUSABLE", "GPUS", "NODES", "GPU-MEMORY"]
        assert lines[1:] == [["H100-80GB", "5", "4", "3", "0", "8", "2", "80GiB"], ["A100-40GB", "0", "0", "0", "2", "2", "1:0-ready", "40GiB"]]
        rows = d.ask("nodes", "--summary")
        assert [(r["model"], r["gpus"]["free"], r["most_free"]) for r in rows] == [("H100-80GB", 5, 4), ("A100-40GB", 0, 0)]
        assert d.run("nodes", "--summary", "-o", "name").out == "H100-80GB\nA100-40GB\n"
        assert d.run("nodes", "--summary", "--columns", "model,free", "-o", "csv").out == "model,free\nH100-80GB,5\nA100-40GB,0\n"
        assert d.run("nodes", "list", "--summary").out.splitlines()[0].split()[0] == "MODEL"
        d.run("cancel", str(holder))
        d.wait(holder)
