#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""pytest with the arguments given, its own closing line, and behind it one that counts: N passed, M failed. Tests run four at
a time where they share nothing, which is everywhere: each has its daemon on a folder of its own, and mostly waits for it."""

import re
import shutil
import subprocess
import sys
import tempfile

words = ["/usr/bin/python3", "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider"]
if not {"-s", "-n", "--pdb"} & set(sys.argv[1:]):
    words += ["-n", "4"]
folder = tempfile.mkdtemp(prefix="fl-")  # short: the paths of sockets are below it
words += ["--basetemp", folder + "/t"]
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
