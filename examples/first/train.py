#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The smallest training with checkpoints: it fits a line to points, and goes on where it stopped. Needs Python alone.

docs/guide/first-training-job.md goes through it. Outside Fairlead it runs too, from the beginning each time.
"""

import json
import os
import random
import time

import fairlead_job as fairlead  # examples/python/fairlead_job.py, copied beside this file

STEPS = int(os.environ.get("STEPS", "400"))
POINTS = [(x / 100, 3 * x / 100 + 2) for x in range(100)]


def save(step, model):
    """Complete under its name, or not there at all: write, fsync, rename."""
    path = os.path.join(fairlead.checkpoint_dir(), "step-%06d.json" % step)
    with open(path + ".part", "w") as f:
        json.dump({"step": step, "model": model}, f)
        f.flush()
        os.fsync(f.fileno())
    os.rename(path + ".part", path)
    return path


def load():
    """The step to begin with, and the model there."""
    path = fairlead.resume_from()
    if path is None:
        return 0, [0.0, 0.0]
    with open(path) as f:
        saved = json.load(f)
    return saved["step"], saved["model"]


def train(step, model):
    """One step; a real one takes as long on a GPU."""
    x, y = random.Random(step).choice(POINTS)
    error = model[0] * x + model[1] - y
    time.sleep(0.05)
    return [model[0] - 0.2 * error * x, model[1] - 0.2 * error]


fairlead.checkpoint_on_signal()
first, model = load()
print("begins at step %d of %d" % (first, STEPS), flush=True)
for step in range(first, STEPS):
    model = train(step, model)
    if fairlead.checkpoint_wanted() or (step + 1) % 100 == 0:
        fairlead.report(step + 1, checkpoint=save(step + 1, model))
        print("step %d saved" % (step + 1), flush=True)
print("y = %.2f x + %.2f" % tuple(model), flush=True)
