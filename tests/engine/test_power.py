# SPDX-License-Identifier: Apache-2.0
"""What engine and shepherds promise is on disk, whatever the machine does next.

A real engine and real shepherds run with recorder.c in front, which writes down every change of files and every sync. That is played
again here on a disk that keeps only what a sync covered: contents by fsync of the file, names by fsync of their folder. Wherever the
programs go on as if something were durable, it must be. Then each kind of sync is left out of the playing: something must be missing.
"""

import os
import stat
import sys
import tempfile

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import drive
from drive import Drive, wait_until
from test_engine import Reporter
from test_faults import needs_failpoints

RECORDER = os.path.join(drive.BUILD, "tests/engine/libengine_recorder.so")
REPORTS_FILE_MAX = 1 << 20   # src/shepherd/report_server.c


class Disk:
    """Two pictures: what programs see, and what a power loss leaves. Names lead to files and folders by number: a folder that is made again
    is another one."""

    def __init__(self, root):
        self.seen, self.kept = {root: -1}, {root: -1}
        self.content, self.kept_content, self.moves = {}, {}, []

    def move(self, gone, come):
        inode = self.seen.pop(gone) if gone else None
        if come:
            self.seen[come] = inode
        self.moves.append((gone, come, inode))

    def create(self, path):
        """A file; a folder is one without content."""
        inode = len(self.content)
        self.content[inode], self.kept_content[inode] = b"", b""
        self.seen[path] = inode
        self.moves.append((None, path, inode))

    def sync_folder(self, folder):
        for move in [m for m in self.moves if os.path.dirname(m[0] or m[1]) == folder]:
            self.moves.remove(move)
            gone, come, inode = move
            if gone:
                self.kept.pop(gone, None)
            if come:
                self.kept[come] = inode

    def newest(self, folder):
        """The name that changed last in a folder: what a sync of it is for."""
        names = [m[1] or m[0] for m in self.moves if os.path.dirname(m[0] or m[1]) == folder]
        return os.path.basename(names[-1]) if names else ""

    def read(self, path):
        return self.content[self.seen[path]] if path in self.seen else None

    def read_kept(self, root, path):
        """What is there after a power loss: None if the name or a folder above it is gone."""
        above = path
        while above != root:
            if self.kept.get(above) != self.seen[above]:
                return None
            above = os.path.dirname(above)
        return self.kept_content[self.kept[path]]


class Play:
    """Goes through a record; `left_out`: the kind of sync that is passed over. Broken promises are in `broken`, kinds in `kinds`."""

    def __init__(self, root, lines, left_out=None):
        self.root, self.left_out, self.kinds, self.broken = root, left_out, set(), []
        self.disk, self.promised = Disk(root), set()
        self.seen = dict.fromkeys(("spawn", "send", "end"), 0)
        for line in lines:
            what, a, b = line.rstrip("\n").split("\t")
            getattr(self, "on_" + what.replace("-", "_"))(a, b)

    def on_mkdir(self, path, _):
        self.disk.create(path)

    def on_create(self, path, _):
        self.disk.create(path)

    def on_content(self, path, text):
        if path not in self.disk.seen:
            self.disk.create(path)   # made by somebody who is not recorded
        self.disk.content[self.disk.seen[path]] = bytes.fromhex(text)

    def on_rename(self, a, b):
        self.disk.move(a, b)

    def on_unlink(self, path, _):
        if path in self.disk.seen:
            self.disk.move(path, None)

    def is_left_out(self, kind):
        self.kinds.add(kind)
        return kind == self.left_out

    def on_sync(self, path, _):
        if not self.is_left_out(os.path.basename(path)):
            self.disk.kept_content[self.disk.seen[path]] = self.disk.content[self.disk.seen[path]]

    def on_sync_folder(self, path, _):
        inside = os.path.relpath(path, self.root)
        depth = 0 if inside == "." else inside.count("/") + 1
        kind = ("folder of all attempts", "folder of an attempt", "folder of ")[depth]
        again = depth == 1 and any(name.startswith(path + "/") for name in self.disk.kept)
        if again:
            kind = "folder of an attempt, made again"
        newest = self.disk.newest(path)
        if newest and not self.is_left_out(kind + (newest if depth == 2 else "")):   # else nothing waits
            self.disk.sync_folder(path)

    def must_keep(self, when, path):
        self.seen[when] += 1
        seen, kept = self.disk.read(path), self.disk.read_kept(self.root, path)
        if kept is None or kept != seen:
            self.broken.append("%s: %s is %s after a power loss" % (when, os.path.relpath(path, self.root), "gone" if kept is None else "not whole"))

    def on_spawn(self, place, _):
        self.must_keep("spawn", place + "/spec")

    def on_end(self, place, _):
        self.must_keep("end", place + "/exit")

    def on_send(self, text, _):
        """Each answer that is yes: checkpoints that are in the file now were reported before it, and stay."""
        if b'"ok": true' not in bytes.fromhex(text):
            return
        self.seen["send"] += 1
        for path in [path for path in self.disk.seen if path.endswith("/reports")]:
            kept = self.disk.read_kept(self.root, path) or b""
            for line in self.disk.read(path).splitlines():
                if b'"checkpoint":true' in line and line not in kept.splitlines():
                    self.broken.append("send: a checkpoint that was acknowledged is gone after a power loss")


@pytest.fixture
def record(tmp_path, monkeypatch):
    """The environment for a Drive whose shepherds are recorded too, and the file."""
    lines, wrapper = tmp_path / "record", tmp_path / "shepherd"
    folder = os.path.realpath(tempfile.mkdtemp(prefix="fairlead-engine-"))   # short: a socket is below it
    below = folder + "/attempts"
    env = {"LD_PRELOAD": RECORDER, "FAIRLEAD_RECORD": str(lines), "FAIRLEAD_RECORD_BELOW": below}
    wrapper.write_text("#!/bin/sh\nexport %s\nexec %s \"$@\"\n" % (" ".join("%s='%s'" % pair for pair in env.items()), drive.SHEPHERD))
    wrapper.chmod(wrapper.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setattr(drive, "SHEPHERD", str(wrapper))
    return folder, env, lines, below


def expect_every_sync_is_needed(lines, below, kinds, without=frozenset()):
    """`without`: kinds that another test shows."""
    text = lines.read_text().splitlines()
    whole = Play(below, text)
    assert not whole.broken, whole.broken
    assert whole.kinds - without == kinds
    for kind in sorted(kinds):
        broken = Play(below, text, left_out=kind).broken
        print("without the sync of %s: %s" % (kind, broken[0] if broken else "nothing"))
        assert broken, "nothing shows that the sync of the %s is missing" % kind
    return whole


def test_specs_reports_and_exit_records_are_on_disk_before_anybody_relies_on_them(record, tmp_path):
    folder, env, lines, below = record
    saved = tmp_path / "saved"
    saved.mkdir()
    (saved / "one").write_text("1")
    with Drive(folder, env) as engine:
        engine.must("adopt")
        engine.begin(1, "sleep", "1000", checkpoint=str(saved))
        engine.wait_fact("started", 1)
        wait_until("that is written down too", lambda: "/1/0/started\n" in lines.read_text())
        # Long enough to be written anew after the next report: what was acknowledged must outlive that too.
        with open(engine.place(1) + "/reports", "w") as file:
            file.write(("x" * 1023 + "\n") * (REPORTS_FILE_MAX // 1024 + 1))
        with open(lines, "a") as file:   # nobody else writes it down
            file.write("create\t%s/reports\t\n" % engine.place(1))
        reporter = Reporter(folder + "/run/1/0/report")
        assert reporter.say('{"step": 1, "checkpoint": "one"}') == {"ok": True}
        assert reporter.say('{"step": 2}') == {"ok": True}
        wait_until("the reports are written anew", lambda: os.path.getsize(engine.place(1) + "/reports") < REPORTS_FILE_MAX)
        assert reporter.say('{"step": 3, "checkpoint": "one"}') == {"ok": True}
        engine.must("stop", 1, 0)
        engine.wait_fact("exited", 1)
        engine.run(2, "true")
        wait_until("shepherds end", lambda: not engine.shepherds())
        done = lines.read_text()
    lines.write_text(done)   # without the clearing away
    whole = expect_every_sync_is_needed(lines, below, {
        "folder of all attempts", "folder of an attempt", "folder of spec", "folder of exit", "folder of reports",
        "spec.tmp", "exit.tmp", "reports", "reports.tmp"})
    assert whole.seen == {"spawn": 2, "send": 3, "end": 2}


def test_a_first_report_makes_its_file_durable(record, tmp_path):
    folder, env, lines, below = record
    saved = tmp_path / "saved"
    saved.mkdir()
    (saved / "one").write_text("1")
    with Drive(folder, env) as engine:
        engine.must("adopt")
        engine.begin(1, "sleep", "1000", checkpoint=str(saved))
        engine.wait_fact("started", 1)
        assert Reporter(folder + "/run/1/0/report").say('{"step": 1, "checkpoint": "one"}') == {"ok": True}
        done = lines.read_text()
    play = [Play(below, done.splitlines(), left_out) for left_out in (None, "folder of reports", "reports")]
    assert [bool(p.broken) for p in play] == [False, True, True]


@needs_failpoints
def test_a_place_that_is_made_again_is_durable_before_its_task_starts(record):
    folder, env, lines, below = record
    with Drive(folder, dict(env, FAIRLEAD_FAILPOINT="engine-folders-synced:kill")) as engine:
        engine.send("adopt")
        engine.answer("adopt")
        engine.send("start", 1, "--", "true")
        engine.process.wait(timeout=drive.PATIENCE_S)
        engine.kill()
        engine.up(env)
        engine.must("adopt", "1:1")
        engine.run(1, "true")
        wait_until("shepherds end", lambda: not engine.shepherds())
        done = lines.read_text()
    lines.write_text(done)
    expect_every_sync_is_needed(lines, below, {
        "folder of all attempts", "folder of an attempt, made again", "folder of spec", "folder of exit", "spec.tmp", "exit.tmp"},
        without={"folder of an attempt"})
