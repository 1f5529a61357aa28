# SPDX-License-Identifier: Apache-2.0
"""The local engine under faults: every failpoint, killed shepherds, killed daemons, a restarted machine.

`kill()` and `up()` of a Drive are the death and restart of the daemon. What must hold: a command of a rank runs at most
once, its end is told once it is true and the same each time, and after EXITED nothing of it is left.
"""

import contextlib
import os
import queue
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import drive as driving
from drive import Drive, PYTHON, is_alive, processes_with, wait_until

ROOT = os.geteuid() == 0
PLAIN = 65534
SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../src")
USERS = [None, PLAIN] if ROOT else [None]
needs_failpoints = pytest.mark.skipif(not driving.has_failpoints(), reason="needs a build with -Dfailpoints=true")


def listed():
    with open(SOURCE + "/engine/failpoints.txt") as file:
        return {line.split()[0]: "(e" in line for line in file if line.strip() and not line.startswith("#")}


def points(prefix, errors=None):
    return [name for name, is_error in listed().items() if name.startswith(prefix) and errors in (None, is_error)]


# Points at which a shepherd is killed, one after the other.
KILLED = points("shepherd-") + points("exit-")


def sources(root, ends):
    """(path, text) of each file below that ends so."""
    for folder, _, names in os.walk(root):
        for name in names:
            if name.endswith(ends):
                with open(os.path.join(folder, name)) as file:
                    yield os.path.join(folder, name), file.read()


def test_the_list_of_failpoints_is_that_of_the_sources():
    found = set()
    for _, text in sources(SOURCE, ".c"):
        found |= set(re.findall(r'FAILPOINT(?:_RANK)?\("([a-z-]+)"', text))
    steps = {"%s-%s" % (name, step) for name in ("spec", "exit") for step in ("write", "sync", "rename", "folder-sync")}
    assert set(listed()) == found | steps | {"reserve-write"}


def test_every_failpoint_is_used_by_a_test():
    words = set(KILLED)
    for root, ends in ((os.path.join(SOURCE, "../tests"), ".py"), (SOURCE, "_test.c")):
        for _, text in sources(root, ends):
            words |= set(re.findall(r"[\"' ,]([a-z]+(?:-[a-z]+)+)(?:@\d)?(?=[\"':, ])", text))
    assert set(listed()) - words == set()


class Counted:
    """A command that notes each time it runs, and how often it did."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="fairlead-count-")
        os.chmod(self.folder, 0o777)

    def argv(self, after=""):
        return ["sh", "-c", "echo $$ >> %s/$RANK; %s" % (self.folder, after or "true")]

    def times(self, rank):
        try:
            with open("%s/%d" % (self.folder, rank)) as file:
                return len(file.readlines())
        except FileNotFoundError:
            return 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.folder)


# --- errors at each step and rank ------------------------------------------------------------------------------------


@needs_failpoints
@pytest.mark.parametrize("rank", [0, 1, 2])
@pytest.mark.parametrize("point", ["engine-place", "engine-spawn", "shepherd-cgroup", "shepherd-fork"])
def test_a_failure_at_any_rank_is_told_and_no_command_of_the_gang_runs(point, rank):
    with Counted() as count, Drive(env={"FAIRLEAD_FAILPOINT": "%s@%d:error" % (point, rank)}) as engine:
        engine.must("adopt")
        engine.start(1, *count.argv(), count=3)
        end = engine.wait_fact("exited", 1, rank)
        assert (end["cause"], end["never_ran"]) == ("machine", True) and end["text"]
        assert end["fault"] == ("processes" if point in ("engine-spawn", "shepherd-fork") else "disk")
        reply = engine.do("release", 1)
        assert not reply["ok"] and "can't be released" in reply["error"]
        engine.must("stop", 1, 0)
        for other in {0, 1, 2} - {rank}:
            assert engine.wait_fact("exited", 1, other)["cause"] == "stopped"
        assert [count.times(i) for i in range(3)] == [0, 0, 0]
        wait_until("the groups are gone", lambda: not engine.groups())


@needs_failpoints
@pytest.mark.parametrize("point", ["engine-claim", "engine-port", "spec-write", "spec-sync", "spec-rename", "spec-folder-sync",
                                   "reserve-write"])
def test_a_failed_step_of_the_preparation_ends_the_rank_with_its_reason(point):
    with Counted() as count, Drive(env={"FAIRLEAD_FAILPOINT": point + ":error"}) as engine:
        engine.must("adopt")
        engine.start(1, *count.argv())
        end = engine.wait_fact("exited", 1)
        # These two fail as on a full disk, the others as on a broken one; that no port is free is no fault of the machine's.
        cause = "no_space" if point in ("engine-claim", "reserve-write") else "start" if point == "engine-port" else "machine"
        assert (end["cause"], end["never_ran"]) == (cause, True) and end["text"]
        assert count.times(0) == 0


@needs_failpoints
@pytest.mark.parametrize("rank", [0, 1, 2])
def test_a_failed_exec_after_the_release_is_told_for_its_rank(rank):
    with Counted() as count, Drive(env={"FAIRLEAD_FAILPOINT": "shepherd-exec@%d:error" % rank}) as engine:
        engine.must("adopt")
        engine.begin(1, *count.argv(), count=3)
        end = engine.wait_fact("exited", 1, rank)
        assert (end["cause"], end["never_ran"]) == ("start", True) and "could not run" in end["text"]
        for other in {0, 1, 2} - {rank}:
            assert engine.wait_fact("exited", 1, other)["code"] == 0
        assert count.times(rank) == 0


@needs_failpoints
@pytest.mark.parametrize("point", ["exit-write", "exit-sync", "exit-rename", "exit-folder-sync"])
def test_an_exit_record_is_tried_again_until_it_is_written(point):
    with Drive(env={"FAIRLEAD_FAILPOINT": point + ":error"}) as engine:
        engine.must("adopt")
        end = engine.run(1, "sh", "-c", "exit 6")
        assert (end["cause"], end["code"]) == ("exit", 6)
        if point != "exit-folder-sync":
            with open(engine.place(1) + "/shepherd.log") as file:
                assert "trying again" in file.read()


# --- no more files ---------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def blind(engine, left=0):
    """It can open so many files more, and looks at what it has at least twice meanwhile."""
    pid = engine.process.pid
    most, ever = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    taken = {int(name) for name in os.listdir("/proc/%d/fd" % pid)}
    free = sorted(set(range(len(taken) + left + 1)) - taken)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (free[left], ever))

    def looks():
        words = ""
        for thread in os.listdir("/proc/%d/task" % pid):
            with open("/proc/%d/task/%s/status" % (pid, thread)) as file:
                words += file.read()
        return sum(int(n) for n in re.findall(r"^voluntary_ctxt_switches:\s*(\d+)$", words, re.M))
    yield
    before = looks()
    wait_until("it has looked", lambda: looks() >= before + 2)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (most, ever))


def test_without_files_to_open_nothing_that_ended_or_runs_is_told_as_lost():
    """Lost work is started again: what has ended well, or still runs, would run twice."""
    with Counted() as count, Drive() as engine:
        engine.must("adopt")
        for attempt in (1, 2, 3):
            engine.begin(attempt, *count.argv("while [ ! -e %s/end%d ]; do sleep 0.02; done; exit 7" % (count.folder, attempt)))
            engine.wait_fact("started", attempt)
        gone = engine.shepherd(3)
        with blind(engine):
            open(count.folder + "/end1", "w").close()
            wait_until("its shepherd is gone", lambda: not processes_with(engine.place(1) + "\0"))
            os.kill(gone, signal.SIGKILL)
            assert engine.do("forget", 1)["ok"]
        end = engine.wait_fact("exited", 1)
        assert (end["cause"], end["code"]) == ("exit", 7), end
        assert engine.wait_fact("exited", 3)["cause"] == "lost"
        open(count.folder + "/end2", "w").close()
        end = engine.wait_fact("exited", 2)
        assert (end["cause"], end["code"]) == ("exit", 7), end
        wait_until("it is forgotten whole", lambda: not os.path.exists(engine.place(1)) and ".old-1" not in os.listdir(engine.folder + "/attempts"))


@pytest.mark.parametrize("left", [1, 2])
def test_a_restart_without_files_to_open_takes_nothing_for_gone(left):
    """One file more is the list of places, two are a place with nothing in it to be read."""
    with Counted() as count, Drive() as engine:
        engine.must("adopt")
        for attempt in (1, 2, 9):
            engine.begin(attempt, *count.argv("while [ ! -e %s/end%d ]; do sleep 0.02; done; exit 7" % (count.folder, attempt)))
            engine.wait_fact("started", attempt)
        engine.kill()
        open(count.folder + "/end2", "w").close()
        wait_until("the second is over", lambda: not processes_with(engine.place(2) + "\0"))
        engine.up()
        with blind(engine, left):
            engine.must("adopt", "1:1", "2:1")  # and 9 is in no journal
            if left == 1:
                assert not engine.do("stop", 1, 0)["ok"]
        end = engine.wait_fact("exited", 2)
        assert (end["cause"], end["code"]) == ("exit", 7), end
        if left == 1:
            assert os.path.exists(engine.place(9)) and is_alive(engine.shepherd(9))
        open(count.folder + "/end1", "w").close()
        end = engine.wait_fact("exited", 1)
        assert (end["cause"], end["code"]) == ("exit", 7), end


def test_a_restart_clears_run_folders_of_attempts_that_are_over():
    with Counted() as count, Drive() as engine:
        engine.must("adopt")
        engine.begin(1, *count.argv("while [ ! -e %s/end1 ]; do sleep 0.02; done" % count.folder))
        engine.wait_fact("started", 1)
        engine.kill()
        for name in ("77/0/code", "not-a-number"):
            os.makedirs("%s/run/%s" % (engine.folder, name))
        engine.up()
        engine.must("adopt", "1:1")
        assert sorted(os.listdir(engine.folder + "/run")) == ["1", "not-a-number"]
        open(count.folder + "/end1", "w").close()
        assert engine.wait_fact("exited", 1)["code"] == 0


# --- killed shepherds ------------------------------------------------------------------------------------------------


@needs_failpoints
@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("point", KILLED)
def test_a_shepherd_killed_at_any_point_leaves_nothing_and_its_end_is_told_once(point, user):
    wanted_stop = point in ("shepherd-stop-seen", "shepherd-kill")
    with Counted() as count, Drive(env={"FAIRLEAD_SHEPHERD_FAILPOINT": point + ":kill"}, user=user) as engine:
        engine.must("adopt")
        uid = user if user is not None else os.geteuid()
        number = str(200000 + os.getpid())
        engine.start(1, *count.argv("sleep %s & exit 5" % number if not wanted_stop else "sleep %s" % number), uid=uid, gid=uid)
        while not [fact for fact in engine.facts if fact["kind"] in ("ready", "exited")]:
            engine.next_fact()
        if engine.facts[-1]["kind"] == "ready":
            # The shepherd may be killed right behind `ready`; then the release is refused or comes too late.
            engine.do("release", 1)
            if wanted_stop:
                wait_until("the task runs", lambda: count.times(0))
                engine.must("stop", 1, 0)
        end = engine.wait_fact("exited", 1)
        assert not [pid for pid in processes_with("sleep\0" + number) if is_alive(pid)]
        assert count.times(0) <= 1
        if end["cause"] == "exit":
            assert end["code"] == 5 and count.times(0) == 1
        elif point in ("exit-rename", "exit-folder-sync", "shepherd-exit-written"):
            assert False, "the record was written, and its end is %s" % end
        elif point == "shepherd-exec":
            assert end["cause"] in ("start", "signal")
        else:
            assert end["cause"] == "lost"
        if end["never_ran"]:
            assert count.times(0) == 0
        # The same end is told after a restart.
        engine.kill()
        engine.up()
        engine.must("adopt", "1:1")
        again = engine.wait_fact("exited", 1)
        assert {key: again[key] for key in again if key != "at_us"} == {key: end[key] for key in end if key != "at_us"}


ESCAPED = """import os,time
if os.fork()==0:
 os.setsid()
 if os.fork()==0:
  for f in (0,1,2): os.close(f)
  os.execve('/bin/sleep',['sleep','{number}'],{{}})
 os._exit(0)
os.wait()
for i in range(5):
 if os.fork()==0:
  time.sleep(1000)
open('{mark}','w').close()
time.sleep(1000)
# killed-{number}
"""


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("daemon_dead", [False, True])
def test_the_tree_of_a_killed_shepherd_does_not_live_on(user, daemon_dead, tmp_path_factory):
    """Also what left session, environment, parent and output; also when the daemon was dead too."""
    with Counted() as count, Drive(user=user) as engine:
        engine.must("adopt")
        uid = user if user is not None else os.geteuid()
        number, mark = str(300000 + os.getpid()), count.folder + "/mark"
        engine.begin(1, PYTHON, "-c", ESCAPED.format(number=number, mark=mark), uid=uid, gid=uid)
        wait_until("the tree", lambda: os.path.exists(mark))

        def left():
            return [pid for pid in processes_with("sleep\0" + number) + processes_with("killed-" + number)
                    if is_alive(pid) and pid not in (engine.process.pid, shepherd)]
        shepherd = engine.shepherd(1)
        wait_until("all seven", lambda: len(left()) >= 7)
        if daemon_dead:
            engine.kill()
        os.kill(shepherd, signal.SIGKILL)
        if daemon_dead:
            engine.up()
            engine.must("adopt", "1:1")
        end = engine.wait_fact("exited", 1)
        assert (end["cause"], end["never_ran"]) == ("lost", False)
        assert left() == []


@needs_failpoints
@pytest.mark.parametrize("point", ["engine-bury", "engine-buried"])
def test_a_daemon_killed_while_it_buries_a_rank_buries_it_again(point):
    with Counted() as count, Drive(env={"FAIRLEAD_FAILPOINT": point + ":kill", "FAIRLEAD_SHEPHERD_FAILPOINT": ""}) as engine:
        engine.must("adopt")
        number = str(500000 + os.getpid())
        engine.begin(1, *count.argv("setsid sleep %s & exec sleep %s" % (number, number)))
        wait_until("both sleep", lambda: len([pid for pid in processes_with("sleep\0" + number) if is_alive(pid)]) == 2)
        os.kill(engine.shepherd(1), signal.SIGKILL)
        engine.process.wait(timeout=driving.PATIENCE_S)
        engine.kill()
        engine.up()
        engine.must("adopt", "1:1")
        end = engine.wait_fact("exited", 1)
        assert (end["cause"], end["never_ran"]) == ("lost", False) and count.times(0) == 1
        assert not [pid for pid in processes_with("sleep\0" + number) if is_alive(pid)]


def test_a_pid_that_was_given_again_is_not_taken_for_the_task(tmp_path):
    """All that a dead shepherd left names a process that is somebody else's now: the places hold pids, and no kill goes by them."""
    other = subprocess.Popen(["sleep", "1000"])
    try:
        with Drive() as engine:
            engine.must("adopt")
            engine.begin(1, "sleep", "1000")
            task = engine.wait_fact("started", 1)["pid"]
            shepherd = engine.shepherd(1)
            engine.kill()
            os.kill(shepherd, signal.SIGKILL)
            wait_until("the task died with its shepherd", lambda: not is_alive(task))
            for name in ("ready", "started"):
                path = engine.place(1) + "/" + name
                with open(path) as file:
                    text = file.read()
                with open(path, "w") as file:
                    file.write(text.replace('"pid":%d' % task, '"pid":%d' % other.pid))
            engine.up()
            engine.must("adopt", "1:1")
            assert engine.wait_fact("exited", 1)["cause"] == "lost"
            engine.must("stop", 1, 0)
            engine.must("forget", 1)
            wait_until("it is forgotten", lambda: not os.path.exists(engine.place(1)))
            assert other.poll() is None
    finally:
        other.kill()
        other.wait()


def test_a_copy_of_the_data_folder_neither_kills_nor_repeats_what_runs_under_the_first(tmp_path):
    with Counted() as count, Drive() as first:
        first.must("adopt")
        first.begin(1, *count.argv("while [ ! -e %s/end ]; do sleep 0.02; done" % count.folder))
        task = first.wait_fact("started", 1)["pid"]
        wait_until("it has begun", lambda: count.times(0))
        copy = tempfile.mkdtemp(prefix="fairlead-copy-")
        for name in ("attempts", "logs"):
            shutil.copytree(first.folder + "/" + name, copy + "/" + name, ignore=lambda _, names: {"wake", "report"} & set(names))
        with Drive(folder=copy) as second:
            second.must("adopt", "1:1")
            second.wait_fact("started", 1)
            second.must("release", 1)
            second.must("stop", 1, 0)
            # Several passes over the place: each leaves it alone.
            with pytest.raises(queue.Empty):
                second.lines.get(timeout=3)
            assert is_alive(task) and count.times(0) == 1
            open(count.folder + "/end", "w").close()
            assert first.wait_fact("exited", 1)["cause"] == "exit"
            assert second.wait_fact("exited", 1)["cause"] == "lost"
            assert count.times(0) == 1


# --- killed daemons --------------------------------------------------------------------------------------------------


def finish(engine, count, ranks, options=None):
    """What the daemon does after its restart with an attempt that is live in its journal."""
    engine.up()
    engine.must("adopt", "1:%d" % ranks)
    engine.start(1, *count.argv(), count=ranks)
    while True:
        state = {}
        for fact in engine.facts:
            if fact["kind"] != "gone":
                state[fact["rank"]] = fact["kind"]
        if len(state) == ranks:
            break
        assert engine.next_fact() is not None
    engine.must("release", 1)
    for rank in range(ranks):
        end = engine.wait_fact("exited", 1, rank)
        assert (end["cause"], end["code"]) == ("exit", 0), end
    assert [count.times(rank) for rank in range(ranks)] == [1] * ranks


@needs_failpoints
@pytest.mark.parametrize("point", ["engine-claim", "engine-claimed", "engine-folders-synced", "engine-port", "engine-place@1",
                                   "engine-spec-written@1", "engine-spawn@1", "engine-spawned@1", "engine-go@0", "engine-go@1",
                                   "engine-go@2", "engine-exit-seen", "spec-write", "spec-sync", "spec-rename", "spec-folder-sync",
                                   "spec-rename:kill:3", "reserve-write"])
def test_a_daemon_killed_at_any_point_goes_on_where_it_was(point):
    ranks = 3
    with Counted() as count, Drive(env={"FAIRLEAD_FAILPOINT": point if ":kill" in point else point + ":kill"}) as engine:
        # The shepherds get the failpoints too; these are all the engine's.
        engine.send("adopt")
        engine.answer("adopt")
        engine.send("start", 1, "count=%d" % ranks, "--", *count.argv())
        ready = set()
        while len(ready) < ranks:
            fact = engine.next_fact()
            if fact is None:
                break
            ready.add(fact["rank"])
        if len(ready) == ranks:
            with contextlib.suppress(BrokenPipeError):  # it may have been killed just now
                engine.send("release", 1)
        engine.process.wait(timeout=driving.PATIENCE_S)
        engine.kill()
        finish(engine, count, ranks)


@needs_failpoints
@pytest.mark.parametrize("ends", ["before the start", "after the start", "as the shepherd"])
def test_a_child_that_outlives_the_daemon_before_its_exec_only_delays_its_rank(ends, tmp_path):
    """It holds the lock of its place, and of others that were being made just then, and is the shepherd of none yet."""
    gate = str(tmp_path / "gate")
    os.mkfifo(gate)
    with Counted() as count, Drive(env={"FAIRLEAD_FAILPOINT": "engine-child@1:error", "FAIRLEAD_SHEPHERD_FAILPOINT": "",
                                        "FAIRLEAD_FAILPOINT_GATE": gate}) as engine:
        engine.must("adopt")
        engine.start(1, *count.argv(), count=2)
        engine.wait_fact("ready", 1, 0)
        held = wait_until("it is forked", engine.half_started)
        engine.process.kill()
        engine.process.wait()
        engine.facts = []
        engine.up()
        engine.must("adopt", "1:2")
        if ends == "before the start":
            os.kill(held[0], signal.SIGKILL)
            assert engine.wait_fact("gone", 1, 1)
        engine.start(1, *count.argv(), count=2)
        engine.wait_fact("ready", 1, 0)
        assert not engine.do("release", 1)["ok"]
        if ends == "after the start":
            os.kill(held[0], signal.SIGKILL)
        elif ends == "as the shepherd":
            open(gate, "w").close()
        engine.wait_fact("ready", 1, 1)
        engine.must("release", 1)
        for rank in range(2):
            assert engine.wait_fact("exited", 1, rank)["code"] == 0
        assert [count.times(rank) for rank in range(2)] == [1, 1]


def test_running_work_does_not_notice_the_death_of_the_daemon():
    with Counted() as count, Drive() as engine:
        engine.must("adopt")
        engine.begin(1, *count.argv("while [ ! -e %s/end ]; do sleep 0.02; done; echo done; exit 8" % count.folder), count=2)
        pids = [engine.wait_fact("started", 1, rank)["pid"] for rank in range(2)]
        for _ in range(3):
            engine.kill()
            assert all(is_alive(pid) for pid in pids)
            engine.up()
            engine.must("adopt", "1:2")
            assert [engine.wait_fact("started", 1, rank)["pid"] for rank in range(2)] == pids
        # Now it ends while no daemon is there.
        engine.kill()
        open(count.folder + "/end", "w").close()
        wait_until("the records", lambda: all(os.path.exists(engine.place(1, rank) + "/exit") for rank in range(2)))
        engine.up()
        engine.must("adopt", "1:2")
        for rank in range(2):
            assert engine.wait_fact("exited", 1, rank)["code"] == 8
            assert engine.log(1, rank) == "done\n" and count.times(rank) == 1


def test_reports_made_while_the_daemon_was_down_are_told_later(tmp_path):
    from test_engine import Reporter
    with Drive() as engine:
        engine.must("adopt")
        engine.begin(1, "sleep", "1000", checkpoint=str(tmp_path))
        engine.wait_fact("started", 1)
        engine.kill()
        reporter = Reporter(engine.folder + "/run/1/0/report")
        for step in range(5):
            (tmp_path / str(step)).write_text("")
            assert reporter.say('{"step": %d, "checkpoint": "%d"}' % (step, step))["ok"]
        engine.up()
        engine.must("adopt", "1:1")
        while len([fact for fact in engine.facts if fact["kind"] == "report"]) < 5:
            engine.next_fact()
        assert [fact["number"] for fact in engine.facts if fact["kind"] == "report"] == [1, 2, 3, 4, 5]


def test_a_stop_after_a_restart_reaches_the_adopted_task():
    with Drive() as engine:
        engine.must("adopt")
        engine.begin(1, "sh", "-c", "trap '' TERM; echo up; while :; do sleep 0.05; done")
        engine.wait_fact("started", 1)
        engine.must("stop", 1, 3600000)
        engine.kill()
        engine.up()
        engine.must("adopt", "1:1")
        engine.must("stop", 1, 0)
        assert engine.wait_fact("exited", 1)["cause"] == "stopped"


@needs_failpoints
def test_a_daemon_killed_between_the_commands_to_two_ranks_gives_them_again():
    env = {"FAIRLEAD_FAILPOINT": "engine-command@1:kill", "FAIRLEAD_SHEPHERD_FAILPOINT": ""}
    with Counted() as count, Drive(env=env) as engine:
        engine.must("adopt")
        engine.begin(1, *count.argv("exec sleep 1000"), count=3)
        for rank in range(3):
            engine.wait_fact("started", 1, rank)
            wait_until("rank %d has begun" % rank, lambda: count.times(rank))
        engine.send("stop", 1, 60000)
        engine.process.wait(timeout=driving.PATIENCE_S)
        engine.kill()
        engine.up()
        engine.must("adopt", "1:3")
        engine.must("stop", 1, 60000)
        for rank in range(3):
            assert engine.wait_fact("exited", 1, rank)["cause"] == "stopped" and count.times(rank) == 1


@needs_failpoints
def test_a_record_that_a_slow_disk_delays_is_waited_for_by_the_next_daemon_and_never_guessed():
    with Counted() as count, Drive(env={"FAIRLEAD_SHEPHERD_FAILPOINT": "exit-sync:pause"}) as engine:
        engine.must("adopt")
        engine.begin(1, *count.argv("exit 3"))
        wait_until("the pause", lambda: any(is_stopped(pid) for pid in engine.shepherds()))
        shepherd = engine.shepherd(1)
        for _ in range(2):      # the task is over, its record is not durable: no daemon says how it ended
            engine.kill()
            engine.up()
            engine.must("adopt", "1:1")
            engine.must("stop", 1, 0)
            engine.wait_fact("started", 1)
            assert not [fact for fact in engine.facts if fact["kind"] in ("exited", "gone")]
        os.kill(shepherd, signal.SIGCONT)
        end = engine.wait_fact("exited", 1)
        assert (end["cause"], end["code"]) == ("exit", 3) and count.times(0) == 1


@needs_failpoints
@pytest.mark.parametrize("point", ["report-write", "report-sync"])
def test_a_report_that_cannot_be_kept_is_refused_and_the_next_one_is_told(point, tmp_path):
    from test_engine import Reporter
    with Drive(env={"FAIRLEAD_SHEPHERD_FAILPOINT": point + ":error"}) as engine:
        engine.must("adopt")
        engine.begin(1, "sleep", "1000", checkpoint=str(tmp_path))
        engine.wait_fact("started", 1)
        reporter = Reporter(engine.folder + "/run/1/0/report")
        for name in ("one", "two"):
            (tmp_path / name).write_text("")
        answer = reporter.say('{"step": 1, "checkpoint": "one"}')
        assert not answer["ok"] and "could not be kept" in answer["error"]
        assert reporter.say('{"step": 2, "checkpoint": "two"}')["ok"]
        wait_until("the second is told", lambda: engine.next_fact() and engine.facts[-1].get("step") == 2)
        steps = [fact["step"] for fact in engine.facts if fact["kind"] == "report"]
        assert steps == ([2] if point == "report-write" else [1, 2])    # the first line stands there, it may be told
        with open(engine.place(1) + "/reports") as file:
            assert all(line.endswith("}\n") for line in file)


@needs_failpoints
def test_a_checkpoint_on_a_file_server_that_hangs_holds_up_neither_the_task_nor_its_end(tmp_path):
    from test_engine import Reporter
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    (tmp_path / "one").write_text("")
    with Drive(env={"FAIRLEAD_SHEPHERD_FAILPOINT": "report-look:hold", "FAIRLEAD_FAILPOINT_GATE": str(gate)}) as engine:
        engine.must("adopt")
        engine.begin(1, "sh", "-c", "trap 'echo told; exit 3' TERM; while :; do sleep 0.05; done", checkpoint=str(tmp_path))
        engine.wait_fact("started", 1)
        first, second = (Reporter(engine.folder + "/run/1/0/report") for _ in range(2))
        answer = first.say('{"step": 1, "checkpoint": "one"}')
        assert not answer["ok"] and "does its file server answer" in answer["error"]
        assert second.say('{"step": 2, "checkpoint": "one"}')["ok"]     # only the first look is held
        engine.must("stop", 1, 60000)
        assert engine.wait_fact("exited", 1)["code"] == 3
        assert engine.log(1) == "told\n"
        assert [fact["step"] for fact in engine.facts if fact["kind"] == "report"] == [2]


def test_what_the_journal_does_not_know_is_stopped_and_cleared_without_a_word():
    with Drive() as engine:
        engine.must("adopt")
        for attempt in (1, 2):
            engine.begin(attempt, "sleep", "1000", count=2)
        pids = [engine.wait_fact("started", attempt, rank)["pid"] for attempt in (1, 2) for rank in (0, 1)]
        engine.start(3, "true")
        engine.wait_fact("ready", 3)
        engine.kill()
        engine.up()
        engine.must("adopt", "2:2")
        wait_until("stale ones are cleared", lambda: os.listdir(engine.folder + "/attempts") == ["2"])
        assert [is_alive(pid) for pid in pids] == [False, False, True, True]
        for rank in (0, 1):
            engine.wait_fact("started", 2, rank)
        assert {fact["attempt"] for fact in engine.facts} == {2}


def test_an_attempt_without_a_trace_is_told_gone():
    with Drive() as engine:
        engine.must("adopt", "4:2")
        for rank in (0, 1):
            engine.wait_fact("gone", 4, rank)
        reply = engine.do("release", 4)
        assert not reply["ok"]


# --- a restarted machine ---------------------------------------------------------------------------------------------


@needs_failpoints
def test_after_a_restart_of_the_machine_unfinished_work_is_gone_and_finished_work_is_not(tmp_path):
    from test_engine import Reporter
    with Drive(env={"FAIRLEAD_TEST_BOOT_ID": "first"}) as engine:
        engine.must("adopt")
        assert engine.run(1, "sh", "-c", "exit 9")["code"] == 9
        engine.begin(2, "sleep", "1000")
        engine.wait_fact("started", 2)
        path = tmp_path / "5"
        path.write_text("five")
        assert Reporter(engine.folder + "/run/2/0/report").say('{"step": 5, "checkpoint": "%s"}' % path)["ok"]
        shepherd = engine.shepherd(2)
        pid = engine.wait_fact("started", 2)["pid"]
        engine.kill()
        os.kill(shepherd, signal.SIGKILL)
        wait_until("the task died with its shepherd", lambda: not is_alive(pid))
        engine.up(env={"FAIRLEAD_TEST_BOOT_ID": "second"})
        engine.must("adopt", "1:1", "2:1")
        assert engine.wait_fact("exited", 1)["code"] == 9
        gone = engine.wait_fact("gone", 2)
        assert "restarted" in gone["text"]
        assert [fact["path"] for fact in engine.facts if fact["kind"] == "report"] == [str(path)]
        assert not [fact for fact in engine.facts if fact["kind"] == "exited" and fact["attempt"] == 2]


def is_stopped(pid):
    try:
        with open("/proc/%d/stat" % pid) as file:
            return file.read().rsplit(")", 1)[1].split()[0] == "T"
    except OSError:
        return False


# --- pauses and chance -----------------------------------------------------------------------------------------------


@needs_failpoints
@pytest.mark.parametrize("point", ["shepherd-begin", "shepherd-go-seen", "shepherd-task-over", "exit-rename"])
def test_a_shepherd_that_pauses_only_delays(point):
    with Drive(env={"FAIRLEAD_SHEPHERD_FAILPOINT": point + ":pause"}) as engine:
        engine.must("adopt")

        def wake():
            wait_until("the pause", lambda: any(is_stopped(pid) for pid in engine.shepherds()))
            for pid in engine.shepherds():
                if pid != engine.process.pid:
                    try:
                        os.kill(pid, signal.SIGCONT)
                    except ProcessLookupError:
                        pass
        engine.start(1, "sh", "-c", "exit 3")
        if point == "shepherd-begin":
            wake()
        engine.wait_fact("ready", 1)
        engine.must("release", 1)
        if point != "shepherd-begin":
            wake()
        assert engine.wait_fact("exited", 1)["code"] == 3


@needs_failpoints
def test_a_gang_whose_one_rank_is_not_ready_is_not_released_in_part():
    with Counted() as count, Drive(env={"FAIRLEAD_SHEPHERD_FAILPOINT": "shepherd-before-ready@1:pause"}) as engine:
        engine.must("adopt")
        engine.start(1, *count.argv(), count=3)
        wait_until("the pause", lambda: any(is_stopped(pid) for pid in engine.shepherds()))
        for rank in (0, 2):
            engine.wait_fact("ready", 1, rank)
        reply = engine.do("release", 1)
        assert not reply["ok"] and "rank 1 is not ready" in reply["error"]
        assert not [rank for rank in range(3) if os.path.exists(engine.place(1, rank) + "/go")]
        os.kill(engine.shepherd(1, 1), signal.SIGCONT)
        engine.wait_fact("ready", 1, 1)
        engine.must("release", 1)
        for rank in range(3):
            assert engine.wait_fact("exited", 1, rank)["code"] == 0
        assert [count.times(rank) for rank in range(3)] == [1, 1, 1]


@needs_failpoints
@pytest.mark.parametrize("point", ["engine-place", "engine-spec-written", "engine-spawned"])
def test_a_stop_that_comes_while_a_place_is_made_reaches_it(point):
    with Counted() as count:
        gate = count.folder + "/gate"
        os.mkfifo(gate)
        with Drive(env={"FAIRLEAD_FAILPOINT": point + "@1:hold", "FAIRLEAD_SHEPHERD_FAILPOINT": "", "FAIRLEAD_FAILPOINT_GATE": gate}) as engine:
            engine.must("adopt")
            engine.start(1, *count.argv(), count=2)
            opened = open(gate, "w") if point != "engine-spawned" else None  # waits until the worker stands there
            if opened is None:
                wait_until("the spawn", lambda: processes_with(engine.place(1, 1) + "\0"))
                engine.must("stop", 1, 0)
                opened = open(gate, "w")
            else:
                engine.must("stop", 1, 0)
            opened.close()
            for rank in (0, 1):
                end = engine.wait_fact("exited", 1, rank)
                assert (end["cause"], end["never_ran"]) == ("stopped", True)
            assert [count.times(rank) for rank in (0, 1)] == [0, 0]


def test_random_kills_of_daemon_and_shepherds_lose_nothing_and_run_nothing_twice():
    seed = int(os.environ.get("FAIRLEAD_TEST_SEED", str(random.randrange(10**6))))
    rounds = int(os.environ.get("FAIRLEAD_TEST_KILLS", "25"))
    chance = random.Random(seed)
    print("seed", seed)
    with Counted() as count, Drive() as engine:
        engine.must("adopt")
        for attempt in range(1, rounds + 1):
            ranks = chance.randrange(1, 4)
            what = "echo $$ >> %s/%d.$RANK; sleep 0.0%d; exit 5" % (count.folder, attempt, chance.randrange(10))
            engine.start(attempt, "sh", "-c", what, count=ranks)
            killed = set()
            released = False
            ends = {}
            while len(ends) < ranks:
                act = chance.randrange(12)
                if act == 0:
                    engine.kill()
                    engine.up()
                    engine.must("adopt", "%d:%d" % (attempt, ranks))
                    if not released:
                        engine.start(attempt, "sh", "-c", what, count=ranks)
                    else:
                        engine.do("release", attempt)
                elif act == 1:
                    rank = chance.randrange(ranks)
                    for pid in processes_with(engine.place(attempt, rank) + "\0"):
                        if pid != engine.process.pid:
                            try:
                                os.kill(pid, signal.SIGKILL)
                                killed.add(rank)
                            except ProcessLookupError:
                                pass
                fact = None
                try:
                    fact = engine.lines.get(timeout=0.05)
                except Exception:
                    pass
                if fact:
                    engine.facts.append(fact)
                if not released and engine.do("release", attempt)["ok"]:
                    released = True
                for fact in engine.facts:
                    if fact["attempt"] == attempt and fact["kind"] == "exited":
                        if fact["rank"] in ends:
                            assert ends[fact["rank"]]["cause"] == fact["cause"]
                        ends[fact["rank"]] = fact
                if killed and not released and ends and len(ends) < ranks:
                    engine.must("stop", attempt, 0)
            for rank, end in ends.items():
                try:
                    with open("%s/%d.%d" % (count.folder, attempt, rank)) as file:
                        pids = [int(line) for line in file]
                except FileNotFoundError:
                    pids = []
                assert len(pids) <= 1, "seed %d: attempt %d rank %d ran twice" % (seed, attempt, rank)
                assert not [pid for pid in pids if is_alive(pid)], "seed %d: an orphan" % seed
                if end["cause"] == "exit":
                    assert end["code"] == 5 and len(pids) == 1
                elif end["cause"] == "lost":
                    assert rank in killed, "seed %d: attempt %d rank %d lost, but not killed" % (seed, attempt, rank)
                else:
                    # A launcher that was killed before its shepherd reads as a failed start.
                    assert end["cause"] in ("stopped", "start") and killed, (seed, end)
            engine.must("forget", attempt)
        wait_until("all is forgotten", lambda: not os.listdir(engine.folder + "/attempts"))
        assert not engine.groups()

