#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""pytest with the arguments given, its own closing line, and behind it one that counts: N passed, M failed. Tests run four at
a time where they share nothing, which is everywhere: each has its daemon on a folder of its own, and mostly waits for it.
Where other accounts can't reach the programs of the build (a checkout in /root), the tests use copies that they can."""

import os
import re
import shutil
import subprocess
import sys
import tempfile

PROGRAMS = ("src/cli/fairlead", "src/shepherd/fairlead-shepherd", "src/shepherd/fairlead-pod-shepherd", "tests/engine/engine_drive", "src/engine/kubernetes_feasible")


def reachable(path):
    """Whether every folder down to it lets others pass."""
    while path != "/":
        path = os.path.dirname(path)
        if not os.stat(path).st_mode & 1:
            return False
    return True


def copy_programs(build, to):
    for name in [name for name in PROGRAMS if os.path.exists(os.path.join(build, name))]:
        os.makedirs(os.path.join(to, os.path.dirname(name)), exist_ok=True)
        shutil.copy(os.path.join(build, name), os.path.join(to, name))
    subprocess.run(["chmod", "-R", "a+rX", to], check=True)
    return to


if sys.argv[1:] in (["--help"], ["-h"]):
    print(__doc__)
    sys.exit(0)
words = ["/usr/bin/python3", "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider"]
if not {"-s", "-n", "--pdb"} & set(sys.argv[1:]):
    words += ["-n", "4"]
folder = tempfile.mkdtemp(prefix="fl-")  # short: the paths of sockets are below it
words += ["--basetemp", folder + "/t"]
build = os.environ.get("FAIRLEAD_BUILD", "")
if os.geteuid() == 0 and build and not reachable(os.path.join(os.path.abspath(build), PROGRAMS[0])):
    os.chmod(folder, 0o711)
    os.environ["FAIRLEAD_BUILD"] = copy_programs(build, folder + "/build")
process = subprocess.Popen(words + sys.argv[1:], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
closing = ""
for line in process.stdout:
    sys.stdout.write(line)
    sys.stdout.flush()
    if re.match(r"(=+ )?(\d+ \w+(, )?)+ in [\d.]+s", line):
        closing = line
status = process.wait()
count = {word: int(number) for number, word in re.findall(r"(\d+) (passed|failed|errors?)\b", closing)}
failed = count.get("failed", 0) + count.get("error", 0) + count.get("errors", 0)
if status != 0 and failed == 0:
    failed = 1
print("%d passed, %d failed" % (count.get("passed", 0), failed))
if status == 0:
    shutil.rmtree(folder, ignore_errors=True)
sys.exit(status)
