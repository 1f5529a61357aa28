# SPDX-License-Identifier: Apache-2.0
"""Files of the data folder are damaged: each case is reported by the start, /healthz and doctor, and none empties the state."""

import contextlib
import glob
import os
import shutil
import sqlite3

import harness

SMALL = {"FAIRLEAD_TEST_SEGMENT_BYTES": "20000"}


def health(d):
    return harness.Client(d.data).once("GET", "/healthz")[1]


def segments(data):
    return sorted(glob.glob(data + "/journal/*.sqlite"))


def last_of(path):
    with contextlib.closing(sqlite3.connect(path)) as db:
        return db.execute("SELECT max(seq) FROM record").fetchone()[0] or 0


def start(d, *flags, expect=True):
    """Starts it, and gives what it wrote to its log since."""
    before = os.path.getsize(d.data + ".log")
    d.up(flags=flags, expect=expect)
    if not expect:
        d.process.wait()
    with open(d.data + ".log", errors="replace") as log:
        log.seek(before)
        return log.read()


def fill(d, jobs):
    return [d.submit("true", flags=("--hold", "--name", "job-%d" % i)) for i in range(jobs)]


def names(d):
    return {j["id"]: j["name"] for j in d.jobs("--all")}


class Kept:
    """A folder as a clean stop left it, to begin each case with."""

    def __init__(self, data):
        self.data, self.copy = data, data + ".kept"
        shutil.copytree(data, self.copy, ignore=shutil.ignore_patterns("*.sock"))

    def __enter__(self):
        return self

    def __exit__(self, *reason):
        shutil.rmtree(self.copy)

    def back(self):
        for name in os.listdir(self.data):
            path = os.path.join(self.data, name)
            shutil.rmtree(path) if os.path.isdir(path) else os.unlink(path)
        shutil.copytree(self.copy, self.data, dirs_exist_ok=True)


def emptied(path):
    os.truncate(path, 0)


def halved(path):
    os.truncate(path, os.path.getsize(path) // 2 // 512 * 512)


def zeroed(path):
    size = os.path.getsize(path)
    with open(path, "r+b") as f:
        f.write(bytes(size))


def test_a_damaged_segment_behind_a_newer_snapshot_is_refused_and_named_and_the_loss_can_be_accepted():
    with harness.Daemon(env=SMALL) as d:
        fill(d, 60)
        whole = names(d)
        d.stop()
        sealed = segments(d.data)[0]
        last = last_of(sealed)
        assert len(segments(d.data)) > 1 and last > 10
        with Kept(d.data) as kept:
            for hit in (emptied, halved, zeroed, os.unlink):
                kept.back()
                hit(sealed)
                said = start(d, expect=False)
                assert not d.greeting and d.process.returncode == 10, (hit, said)
                assert "--accept-loss" in said and "000001.sqlite" in said, (hit, said)
                doctor = d.run("doctor", check=False)
                assert doctor.code == 1 and "problem" in doctor.out and "000001.sqlite" in doctor.out, (hit, doctor)
                # Put back, nothing has happened.
                shutil.copy(sealed.replace(d.data, kept.copy), sealed)
                start(d)
                assert names(d) == whole and health(d)["status"] == "ok", (hit, health(d))
                d.stop()
                hit(sealed)
                said = start(d, "--accept-loss")
                assert said.count("records 1 to %d" % last) == 1, (hit, said)
                assert names(d) == whole, hit
                d.stop()
                said = start(d)
                assert names(d) == whole and "records 1 to %d" % last in said, (hit, said)
                assert health(d)["status"] == "ok", (hit, health(d))
                d.stop()
            kept.back()
            start(d)


def key_of(data):
    return data + "/keys/body.key"


def flipped(path, at=5):
    with open(path, "r+b") as f:
        f.seek(at)
        byte = f.read(1)[0]
        f.seek(at)
        f.write(bytes([byte ^ 16]))


def test_a_wrong_or_missing_key_is_refused_and_jobs_sealed_with_it_are_held_until_it_is_back():
    with harness.Daemon(nodes="sim:1x1xH100-80GB") as d:
        waiting = d.submit("true", flags=("--hold",))
        d.stop()
        with open(key_of(d.data), "rb") as f:
            right = f.read()
        for hit in (flipped, halved, emptied, os.unlink):
            hit(key_of(d.data))
            said = start(d, expect=False)
            assert not d.greeting and d.process.returncode != 0 and "body.key" in said and "--accept-loss" in said, (hit, said)
            with open(key_of(d.data), "wb") as f:
                f.write(right)
            os.chmod(key_of(d.data), 0o600)
        start(d)
        assert health(d)["status"] == "ok"
        d.stop()
        flipped(key_of(d.data))
        start(d, "--accept-loss")
        d.run("release", str(waiting))
        harness.wait_until("it is held", lambda: d.state(waiting) == "held")
        assert "body.key" in d.job(waiting)["reason"], d.job(waiting)
        assert d.wait(d.submit("true"))["state"] == "succeeded"
        d.stop()
        start(d)  # the journal has the fingerprint of the key that is there now
        assert d.state(waiting) == "held"
        d.stop()
        with open(key_of(d.data), "wb") as f:
            f.write(right)
        start(d, "--accept-loss")
        d.run("release", str(waiting))
        assert d.wait(waiting)["state"] == "succeeded"
