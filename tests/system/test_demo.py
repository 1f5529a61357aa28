# SPDX-License-Identifier: Apache-2.0
"""The demonstration of scripts/quickstart, whole, as a test."""

import os
import subprocess
import sys

import harness


def test_a_job_preempted_and_a_daemon_killed_twice_give_the_weights_of_an_undisturbed_run(tmp_path):
    python = os.environ.get("FAIRLEAD_PYTHON", sys.executable)
    env = dict(os.environ, PATH=os.path.dirname(harness.PROGRAM) + ":" + os.environ["PATH"], FAIRLEAD_DATA=str(tmp_path))
    done = subprocess.run([python, "examples/digits/demo.py", "--python", python, "--data", str(tmp_path), "--steps", "4000"],
                          cwd=os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."), env=env, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=280)
    assert done.returncode == 0, done.stdout
    assert "the same, after 2 attempts" in done.stdout or "the same, after 3 attempts" in done.stdout, done.stdout
