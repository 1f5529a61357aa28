# SPDX-License-Identifier: Apache-2.0
"""Each planted defect is found, and it says how soon: planted.py WHOLE_PLANTED PLANTED.TXT [SEEDS]. What the run says must be about
the defect. Without a defect the same program finds nothing."""

import os
import re
import subprocess
import sys

from plant import names_of, read_bugs


def run(program, number, *arguments):
    done = subprocess.run([program, *arguments], env=dict(os.environ, PLANTED=str(number)), capture_output=True, text=True, errors="replace", check=False)
    return done.returncode, done.stdout


def main():
    program, bugs, seeds = sys.argv[1], read_bugs(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else "300"
    failed = 0
    for number, name in enumerate(names_of(bugs), 1):
        told = next(bug["told"] for bug in bugs if bug["bug"] == name and "told" in bug)
        code, out = run(program, number, "--find", "1", seeds)
        line = out.splitlines()[-1] if out else "it says nothing"
        good = code == 0 and re.search(told, line)
        failed += not good
        print("%s  %s\n      %s" % ("ok    " if good else "NOT OK", name, line), flush=True)
    code, out = run(program, 0, "--as-is", "1", "5")
    print("%s  nothing planted\n      %s" % ("NOT OK" if code else "ok    ", out.splitlines()[-1]))
    sys.exit(1 if failed or code else 0)


if __name__ == "__main__":
    main()
