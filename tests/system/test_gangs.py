# SPDX-License-Identifier: Apache-2.0
"""500 gangs of random sizes on four simulated nodes, with kills: what the processes see themselves.

Every rank notes when it begins and ends, with its node and GPUs. From these notes alone: a GPU is never given to two
ranks at a time, and no rank of a gang begins before every rank's shepherd was ready (its `ready` file is older).
"""

import json
import os
import random

import harness

GANGS = int(os.environ.get("FAIRLEAD_TEST_GANGS", "500"))
SEED = int(os.environ.get("FAIRLEAD_TEST_SEED", "1"))

RANK = r"""
now() { read -r up _ </proc/uptime; printf '%s' "$EPOCHREALTIME"; }
attempt="$FAIRLEAD_DATA_FOLDER/attempts/$FAIRLEAD_ATTEMPT"
ready=$(ls "$attempt"/*/ready 2>/dev/null | wc -l)
echo "begin $(now) $FAIRLEAD_JOB_ID $FAIRLEAD_ATTEMPT $RANK $WORLD_SIZE $FAIRLEAD_NODE ${CUDA_VISIBLE_DEVICES:-none} $ready" >>"$NOTES"
sleep "$1"
echo "end $(now) $FAIRLEAD_JOB_ID $FAIRLEAD_ATTEMPT $RANK" >>"$NOTES"
exit "$2"
"""


def test_gangs_start_whole_and_share_no_gpu():
    numbers = random.Random(SEED)
    with harness.Daemon() as d:
        client = harness.Client(d.data)
        notes = os.path.join(d.data, "notes")
        jobs, cancelled = {}, set()
        for i in range(GANGS):
            tasks = numbers.choice([1, 1, 2, 2, 3, 4, 6, 8])
            fails = numbers.random() < 0.05
            job = {"name": "gang-%d" % i, "tasks": tasks, "gpus": numbers.choice([1, 1, 1, 2]), "retries": 0,
                   "command": ["bash", "-c", RANK, "rank", "%.2f" % numbers.uniform(0.0, 0.08), "3" if fails else "0"],
                   "env": {"NOTES": notes, "FAIRLEAD_DATA_FOLDER": d.data}}
            number = client.submit(job, "gang-%d" % i)
            jobs[number] = (tasks, fails)
            if numbers.random() < 0.05:
                victim = numbers.choice(list(jobs))
                client.until_answered("POST", "/api/v1/jobs/%d/cancel" % victim, {})
                cancelled.add(victim)
            if i % 125 == 60:
                d.kill()
                d.up()

        def ended():
            states, after = {}, 0
            while True:
                _, page = client.until_answered("GET", "/api/v1/jobs?limit=500&active=0&after=%d" % after)
                if not page["jobs"]:
                    break
                for j in page["jobs"]:
                    states[j["id"]] = j["state"]
                    after = max(after, j["id"])
            return all(states.get(n) in harness.FINAL for n in jobs) and states
        states = harness.wait_until("all gangs end", ended, 180)
        for number, (tasks, fails) in jobs.items():
            if number in cancelled:
                assert states[number] in ("cancelled", "succeeded", "failed"), (number, states[number])
            else:
                assert states[number] == ("failed" if fails else "succeeded"), (number, states[number], json.dumps(d.job(number)))
        check_notes(notes, jobs)


def check_notes(path, jobs):
    begins, ends, held = {}, {}, []
    with open(path) as f:
        for line in f:
            words = line.split()
            key = tuple(int(w) for w in words[2:5])
            if words[0] == "begin":
                assert key not in begins, "rank %s began twice" % (key,)
                begins[key] = float(words[1])
                world, node, gpus, ready = int(words[5]), words[6], words[7], int(words[8])
                assert ready == world, "rank %s began when %d of %d places were ready" % (key, ready, world)
                held.append((key, node, gpus))
            else:
                ends[key] = float(words[1])
    assert begins, "nothing ran"
    spans = {}
    for key, node, gpus in held:
        if gpus == "none" or key not in ends:
            continue
        for gpu in gpus.split(","):
            spans.setdefault((node, gpu), []).append((begins[key], ends[key], key))
    for place, times in spans.items():
        times.sort()
        for (_, end, one), (begin, _, other) in zip(times, times[1:]):
            assert end <= begin, "%s was held by %s and %s at a time" % (place, one, other)
