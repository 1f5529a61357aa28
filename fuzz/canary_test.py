#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The alarm of the runner rings: the canary's bug is found, the program aborts, and the input that did it is kept and
does it again."""

import os
import signal
import subprocess
import sys
import tempfile

runner, corpus = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])


def run(*args, folder):
    done = subprocess.run([runner, *args], cwd=folder, capture_output=True, timeout=50)
    return done.returncode, done.stderr.decode("utf-8", "replace")


with tempfile.TemporaryDirectory() as folder:
    code, said = run(corpus, "0", folder=folder)
    assert code == 0, "the corpus alone must be clean: %s" % said
    code, said = run(corpus, "4000", folder=folder)
    assert code == -signal.SIGABRT, "4,000 changed inputs did not find the bug: exit %d" % code
    assert "alarm_is_dead" in said, said
    crash = os.path.join(folder, "crash-" + os.path.basename(runner))
    with open(crash, "rb") as f:
        data = f.read()
    assert b"FIRE" in data, data
    again = os.path.join(folder, "again")
    os.mkdir(again)
    os.rename(crash, os.path.join(again, "found"))
    code, said = run(again, "0", folder=folder)
    assert code == -signal.SIGABRT, "the kept input does not do it again"

    code, said = run(folder, "10", folder=folder)
    assert code != 0, "a folder without a corpus must fail"
print("the canary rings")
