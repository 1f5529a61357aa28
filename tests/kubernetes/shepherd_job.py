# SPDX-License-Identifier: Apache-2.0
"""The job of test_shepherds.py: counts to STEPS, a step each 20 ms and a line for each in `steps`; saves when it is warned, and then waits. Of several
ranks the first one saves.

What comes behind STEPS: `stubborn` = it does not end at SIGTERM; `fail` = it ends with 7.
"""

import os
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../examples/python"))
import fairlead_job as fairlead

fairlead.checkpoint_on_signal()
if "stubborn" in sys.argv:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
assert "FAIRLEAD_POD_TOKEN" not in os.environ
folder = fairlead.checkpoint_dir()
first = 0
if fairlead.resume_from():
    with open(fairlead.resume_from()) as f:
        first = int(f.read())
with open(os.path.join(folder, "steps"), "a", buffering=1) as out:
    for step in range(first + 1, int(sys.argv[1]) + 1):
        print(os.environ["FAIRLEAD_ATTEMPT"], step, file=out)
        time.sleep(0.02)
        if fairlead.checkpoint_wanted() and os.environ["RANK"] == "0":
            path = os.path.join(folder, "at-%d" % step)
            with open(path, "w") as f:
                f.write(str(step))
            fairlead.report(step, checkpoint=path)
            time.sleep(600)
        elif step % 10 == 0:
            fairlead.report(step)
if "fail" in sys.argv:
    sys.exit(7)
