# SPDX-License-Identifier: Apache-2.0
"""Files of the data folder are damaged: each case is reported by the start, /healthz and doctor, and none empties the state."""

import contextlib
import glob
import os
import re
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


def deleted(path):
    os.unlink(path)


def exchanged(path, other):
    """With another file of its kind."""
    shutil.copyfile(path, path + ".x")
    shutil.copyfile(other, path)
    os.replace(path + ".x", other)


def content(path):
    """Where bytes lie that something was written to: flips elsewhere change nothing that is read."""
    with open(path, "rb") as f:
        data = f.read()
    if path.endswith(".sqlite"):
        return [m.start() for m in re.finditer(rb'\{"actor":', data)]
    return [i for i, byte in enumerate(data) if byte]


def flipped_in(part, of):
    def hit(path):
        places = content(path)
        flipped(path, places[len(places) * part // of])
    hit.__name__ = "flipped_%d_of_%d" % (part, of)
    return hit


def cut_to(part, of):
    def hit(path):
        os.truncate(path, os.path.getsize(path) * part // of)
    hit.__name__ = "cut_to_%d_of_%d" % (part, of)
    return hit


PARTS = int(os.environ.get("FAIRLEAD_TEST_DAMAGE_PARTS", "3"))


def both(path):
    """The newest record, in the segment and in its log: what is in the log counts."""
    for part in (path, path + "-wal"):
        with open(part, "rb") as f:
            data = f.read()
        for m in re.finditer(rb'\{"actor":', data):
            flipped(part, m.start() + 3)


def cases(data):
    """(file, hit): every kind of file that the state depends on. Nothing is lost where the next start writes the head, or the next
    snapshot takes the place of a missing one: those are no cases."""
    relative = lambda paths: [os.path.relpath(p, data) for p in paths]
    sealed, snapshots = relative(segments(data)), relative(sorted(glob.glob(data + "/snapshots/*.snap")))
    flips = [flipped_in(i, PARTS + 1) for i in range(PARTS + 1)]
    cuts = [cut_to(i, PARTS + 1) for i in range(PARTS + 1)]
    for path in [sealed[0], sealed[len(sealed) // 2], sealed[-1], "journal/manifest", "journal/head", "keys/body.key", *snapshots]:
        for hit in [*flips, *cuts, zeroed, deleted]:
            made_again = path == "journal/head" and hit in (deleted, cuts[0]) or path in snapshots and hit is deleted
            in_log = path == sealed[-1] and hit in cuts[len(cuts) * 3 // 4:]  # the log has these pages
            if not made_again and not in_log:
                yield path, both if path == sealed[-1] and hit in flips else hit
    others = [(sealed[0], sealed[1]), (sealed[1], sealed[-1]), tuple(snapshots[-2:])]
    for path, other in others:
        def exchange(path, data=data, other=other):
            exchanged(path, os.path.join(data, other))
        yield path, exchange


def silent(d, whole, path, hit):
    """What is wrong with how this case is reported; "" is nothing."""
    said = start(d, expect=False) if False else None
    before = os.path.getsize(d.data + ".log")
    d.up(expect=False)
    with open(d.data + ".log", errors="replace") as log:
        log.seek(before)
        said = log.read()
    if not d.greeting:
        code = d.process.wait()
        doctor = d.run("doctor", check=False)
        return "" if code and len(said) > 40 and doctor.code == 1 and "problem" in doctor.out else "refused: %r %r" % (said, doctor)
    client = harness.Client(d.data)
    harness.wait_until("the journal is verified", lambda: client.get("/api/v1/status")["verified_ms"])
    problems = []
    if names(d) != whole:
        problems.append("the state is another one")
    if health(d)["status"] != "degraded" or not health(d)["problem"]:
        problems.append("/healthz: %s" % health(d))
    with open(d.data + ".log", errors="replace") as log:
        log.seek(before)
        if " damage: " not in log.read():
            problems.append("the log is silent")
    doctor = d.run("doctor", check=False)
    if doctor.code != 1 or "damage" not in doctor.out:
        problems.append("doctor is silent")
    d.kill()
    return "; ".join(problems)


def test_each_damage_of_each_kind_of_file_is_reported_and_none_empties_the_state():
    with harness.Daemon(env=dict(SMALL, FAIRLEAD_TEST_SNAPSHOT_EVERY="60")) as d:
        fill(d, 100)
        whole = names(d)
        d.stop()
        start(d)
        d.stop()
        wrong, count = [], 0
        with Kept(d.data) as kept:
            for path, hit in cases(d.data):
                kept.back()
                hit(os.path.join(d.data, path))
                count += 1
                why = silent(d, whole, path, hit)
                if why:
                    wrong.append("%s %s: %s" % (path, hit.__name__, why))
                if d.process and d.alive():
                    d.kill()
            kept.back()
            start(d)
        print("%d cases" % count)
        assert not wrong, "\n".join(wrong)
