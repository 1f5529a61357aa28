# SPDX-License-Identifier: Apache-2.0
"""The local engine and its shepherds with real processes: the ordinary life of attempts."""

import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
import time

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from drive import Drive, PYTHON, SHEPHERD, is_alive, processes_with, wait_until

ROOT = os.geteuid() == 0
PLAIN = 65534
needs_root = pytest.mark.skipif(not ROOT, reason="needs root")


@pytest.fixture
def engine():
    with Drive() as drive:
        drive.must("adopt")
        yield drive


def variables(text):
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)


# --- start, release, exit ------------------------------------------------------------------------------------------


def test_a_task_runs_and_its_exit_code_is_told(engine):
    end = engine.run(1, "sh", "-c", "echo out; echo err >&2; exit 7")
    assert (end["cause"], end["code"], end["never_ran"]) == ("exit", 7, False)
    assert engine.log(1) == "out\n"
    assert engine.log(1, stream="err") == "err\n"
    assert [fact["kind"] for fact in engine.facts] == ["ready", "started", "exited"]


def test_a_signal_that_killed_a_task_is_told(engine):
    end = engine.run(1, "sh", "-c", "kill -SEGV $$")
    assert (end["cause"], end["signal"]) == ("signal", signal.SIGSEGV)


def test_nothing_runs_before_the_release(engine, tmp_path):
    mark = tmp_path / "ran"
    engine.start(1, "touch", str(mark))
    engine.wait_fact("ready", 1)
    assert not mark.exists()
    engine.must("release", 1)
    engine.wait_fact("exited", 1)
    assert mark.exists()


def test_a_stop_says_again_of_what_an_adoption_found_nothing():
    """Where it may be made again the first word is passed over; a job that is cancelled at that moment would wait for ever."""
    with Drive() as engine:
        engine.must("adopt", "1:2")
        gone = lambda: sorted((fact["attempt"], fact["rank"]) for fact in engine.facts if fact["kind"] == "gone")
        engine.wait_fact("gone", 1, 1)
        assert gone() == [(1, 0), (1, 1)]
        engine.must("stop", 1, 0)
        while len(gone()) < 4:
            assert engine.next_fact() is not None
        assert gone() == [(1, 0), (1, 0), (1, 1), (1, 1)]
        engine.must("forget", 1)


def test_release_is_refused_while_a_rank_is_not_ready_and_for_unknown_attempts(engine):
    engine.start(1, "true", count=4)
    reply = engine.do("release", 1)
    # Either all were ready by now, or the refusal names the rank; never a part of the gang.
    assert reply["ok"] or "is not ready" in reply["error"]
    reply = engine.do("release", 77)
    assert not reply["ok"] and "no attempt 77" in reply["error"]
    for rank in range(4):
        engine.wait_fact("ready", 1, rank)
    engine.must("release", 1)
    for rank in range(4):
        engine.wait_fact("exited", 1, rank)


def test_no_rank_of_a_gang_runs_before_every_rank_is_ready(engine, tmp_path):
    # Seen from the processes: each looks for the ready file of every rank the moment it runs.
    look = "import os,sys; print(all(os.path.exists('%s/attempts/1/%%d/ready' %% r) for r in range(8)))" % engine.folder
    engine.begin(1, PYTHON, "-c", look, count=8, nodes=4)
    for rank in range(8):
        engine.wait_fact("exited", 1, rank)
        assert engine.log(1, rank) == "True\n"


def test_commands_are_idempotent(engine):
    engine.start(1, "sh", "-c", "echo run; sleep 1000")
    engine.start(1, "sh", "-c", "echo run; sleep 1000")
    engine.wait_fact("ready", 1)
    engine.must("release", 1)
    engine.must("release", 1)
    engine.wait_fact("started", 1)
    wait_until("output", lambda: os.path.exists(engine.folder + "/logs/1/1/0.out") and engine.log(1))
    engine.must("release", 1)
    engine.must("stop", 1, 0)
    engine.must("stop", 1, 0)
    engine.wait_fact("exited", 1)
    engine.must("stop", 1, 0)
    engine.must("forget", 1)
    engine.must("forget", 1)
    assert engine.log(1) == "run\n"
    assert [fact["kind"] for fact in engine.facts] == ["ready", "started", "exited"]


def test_forget_removes_the_attempt_and_keeps_the_log(engine):
    engine.run(1, "echo", "kept")
    engine.must("forget", 1)
    wait_until("the folder is gone", lambda: not os.path.exists(engine.folder + "/attempts/1"))
    wait_until("the run folder is gone", lambda: not os.path.exists(engine.folder + "/run/1"))
    assert engine.log(1) == "kept\n"


def test_forget_of_a_running_attempt_waits_for_its_end(engine):
    engine.begin(1, "sleep", "1000")
    engine.wait_fact("started", 1)
    engine.must("forget", 1)
    engine.must("stop", 1, 0)
    engine.wait_fact("exited", 1)
    wait_until("the folder is gone", lambda: not os.path.exists(engine.folder + "/attempts/1"))


def test_a_script_is_run_by_sh_or_by_the_interpreter_it_names(engine):
    engine.run(1, script="echo from $0\nexit 3")
    assert engine.wait_fact("exited", 1)["code"] == 3
    engine.run(2, script="#!%s\nimport sys; print(sys.version_info[0])" % PYTHON)
    assert engine.log(2) == "3\n"


def test_a_program_without_interpreter_line_is_run_by_sh(engine, tmp_path):
    program = tmp_path / "program"
    program.write_text("echo $1")
    program.chmod(0o755)
    engine.run(1, str(program), "word")
    assert engine.log(1) == "word\n"


# --- what a task finds -----------------------------------------------------------------------------------------------


def test_the_environment_is_as_documented(engine, tmp_path):
    engine.begin(1, "env", count=3, nodes=2, gpus=0b1011, cpus=1500, job=9, checkpoint=str(tmp_path / "ck" / "deep"),
                 resume="/old/step-7", sim=1, array=4, env=["MINE=x=y", "RANK=99", "LANG=de_DE.UTF-8"])
    for rank in range(3):
        engine.wait_fact("exited", 1, rank)
    env = variables(engine.log(1, 2, job=9))
    assert env["MINE"] == "x=y" and env["LANG"] == "de_DE.UTF-8"
    assert (env["RANK"], env["WORLD_SIZE"], env["LOCAL_RANK"], env["LOCAL_WORLD_SIZE"], env["NODE_RANK"]) == ("2", "3", "0", "1", "1")
    assert (env["OMPI_COMM_WORLD_RANK"], env["OMPI_COMM_WORLD_SIZE"], env["PMI_RANK"], env["PMI_SIZE"]) == ("2", "3", "2", "3")
    assert (env["FAIRLEAD_JOB_ID"], env["FAIRLEAD_ATTEMPT"], env["FAIRLEAD_NODE"]) == ("9", "1", "node1")
    assert (env["FAIRLEAD_SIMULATED_GPUS"], env["FAIRLEAD_ARRAY_INDEX"], env["FAIRLEAD_ARRAY_SIZE"]) == ("1", "4", "10")
    assert (env["CUDA_VISIBLE_DEVICES"], env["FAIRLEAD_GPUS"]) == ("0,1,3", "3")
    assert env["OMP_NUM_THREADS"] == "2"
    assert env["FAIRLEAD_RESUME_FROM"] == "/old/step-7"
    assert os.path.isdir(env["FAIRLEAD_CHECKPOINT_DIR"])
    assert env["FAIRLEAD_HOSTS"] == "127.0.0.1,127.0.0.1"
    assert (env["MASTER_ADDR"], env["FAIRLEAD_TEAM"], env["FAIRLEAD_QUEUE"]) == ("127.0.0.1", "crew", "default")
    assert all(name in env for name in ("HOME", "USER", "LOGNAME", "SHELL", "PATH"))
    ports = {variables(engine.log(1, rank, job=9))["MASTER_PORT"] for rank in range(3)}
    assert len(ports) == 1
    with open(env["FAIRLEAD_HOSTFILE"]) as file:
        assert file.read() == "127.0.0.1 slots=9\n"  # three tasks with three GPUs each


def test_nothing_of_the_daemons_environment_reaches_a_task():
    with Drive(env={"DAEMON_SECRET": "canary"}) as engine:
        engine.must("adopt")
        engine.begin(1, "sh", "-c", "env; sleep 1000", env=["LD_PRELOAD=/no/such.so", "JOB_SECRET=canary"])
        engine.wait_fact("started", 1)
        wait_until("output", lambda: os.path.exists(engine.folder + "/logs/1/1/0.out") and "JOB_SECRET" in engine.log(1))
        assert "DAEMON_SECRET" not in engine.log(1)


@needs_root  # a shepherd shows its environment to nobody else
def test_nothing_of_the_daemons_environment_nor_of_the_jobs_reaches_the_shepherd():
    with Drive(env={"DAEMON_SECRET": "canary"}) as engine:
        engine.must("adopt")
        engine.begin(1, "sleep", "1000", env=["LD_PRELOAD=/no/such.so", "JOB_SECRET=canary"])
        engine.wait_fact("started", 1)
        with open("/proc/%d/environ" % engine.shepherd(1), "rb") as file:
            text = file.read()
        assert b"canary" not in text and b"LD_PRELOAD" not in text
        with open("/proc/%d/cmdline" % engine.shepherd(1), "rb") as file:
            assert b"canary" not in file.read()


def test_a_task_has_null_as_input_and_no_other_files(engine):
    engine.run(1, "sh", "-c", "ls -l /proc/self/fd; umask; ulimit -c; grep -E 'NoNewPrivs|SigBlk|SigIgn|SigCgt' /proc/self/status")
    text = engine.log(1)
    descriptors = dict(re.findall(r" (\d+) -> (\S+)", text))
    assert descriptors["0"] == "/dev/null"
    assert descriptors["1"].startswith("pipe:") and descriptors["2"].startswith("pipe:")
    assert set(descriptors) <= {"0", "1", "2", "3"} and descriptors.get("3", "/proc/").startswith("/proc/")
    assert "0022" in text and "NoNewPrivs:\t1" in text
    assert "SigBlk:\t0000000000000000" in text and "SigIgn:\t0000000000000000" in text


def test_two_attempts_never_have_the_same_rendezvous_port(engine):
    for attempt in range(1, 6):
        engine.begin(attempt, "sh", "-c", "echo $MASTER_PORT; sleep 1000")
        engine.wait_fact("started", attempt)
    ports = set()
    for attempt in range(1, 6):
        wait_until("output", lambda: os.path.exists(engine.folder + "/logs/1/%d/0.out" % attempt) and engine.log(attempt))
        ports.add(engine.log(attempt))
    assert len(ports) == 5


# --- failures to start -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("argv,options,code,text", [
    (["/no/such/program"], {}, 127, 'command not found: "/no/such/program"'),
    (["no-such-command", "x"], {}, 127, 'command not found: "no-such-command"'),
    (["/etc/passwd"], {}, 126, "command can't be run (permission denied): \"/etc/passwd\""),
    (["/etc/passwd/x"], {}, 126, "command can't be run (a part of the path is not a folder): \"/etc/passwd/x\""),
    (["/etc"], {}, 126, 'command is a folder: "/etc"'),
    (["/dev/null"], {}, 126, "command can't be run (permission denied): \"/dev/null\""),
    (["true"], {"workdir": "/no/such/folder"}, 127, 'working directory not found: "/no/such/folder"'),
    (["true"], {"workdir": "/etc/passwd"}, 126, "working directory can't be entered (a part of the path is not a folder): \"/etc/passwd\""),
    (["true"], {"checkpoint": "/proc/no/such"}, 126, "checkpoint folder can't be used (there is no such file or folder): \"/proc/no/such\""),
    ([], {"script": "#!/no/such/interpreter -x\ntrue"}, 127, 'interpreter not found: "/no/such/interpreter" of '),
    ([], {"script": "#!/bin/sh\r\ntrue"}, 127, 'interpreter not found: "/bin/sh?" of '),
])
def test_what_the_user_got_wrong_ends_the_task_as_a_shell_does_before_the_release(engine, argv, options, code, text):
    engine.start(1, *argv, **options)
    end = engine.wait_fact("exited", 1)
    assert (end["cause"], end["code"], end["never_ran"]) == ("exit", code, True)
    assert end["text"].startswith(text), end["text"]
    assert not [fact for fact in engine.facts if fact["kind"] == "ready"]


def test_what_is_found_wrong_only_by_exec_ends_the_task_the_same_way(engine):
    engine.begin(1, "true", "x" * 200000)  # the system takes 128 KiB at most in one argument
    end = engine.wait_fact("exited", 1)
    assert (end["cause"], end["code"], end["never_ran"]) == ("exit", 126, True), end


@needs_root
def test_the_working_directory_is_entered_as_the_user(engine, tmp_path):
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    engine.start(1, "true", uid=PLAIN, gid=PLAIN, workdir=str(closed))
    end = engine.wait_fact("exited", 1)
    assert (end["cause"], end["code"], end["never_ran"]) == ("exit", 126, True)
    assert "working directory" in end["text"] and "permission denied" in end["text"]


def test_an_attempts_number_is_a_claim_that_only_one_gets(engine):
    os.mkdir(engine.folder + "/attempts/5", 0o700)
    engine.start(5, "true")
    end = engine.wait_fact("exited", 5)
    assert (end["cause"], end["never_ran"]) == ("start", True) and "claim attempt 5" in end["text"]


# --- users ------------------------------------------------------------------------------------------------------------


@needs_root
def test_a_task_runs_as_its_user_with_nothing_more(engine):
    engine.run(1, "sh", "-c", "id -u; id -g; id -G; grep -E '^Cap(Prm|Eff|Inh|Amb)|NoNewPrivs' /proc/self/status; echo $HOME", uid=PLAIN, gid=PLAIN)
    lines = engine.log(1).splitlines()
    assert lines[:3] == [str(PLAIN)] * 3
    assert [line.split()[1] for line in lines[3:7]] == ["0" * 16] * 4
    assert lines[7].split()[1] == "1"


@needs_root
def test_supplementary_groups_are_the_users_own_and_none_of_the_daemons(engine):
    name = "fairleadtest%d" % os.getpid()
    subprocess.run(["useradd", "-M", "-G", "video", name], check=True)
    try:
        uid, gid = int(subprocess.check_output(["id", "-u", name])), int(subprocess.check_output(["id", "-g", name]))
        wanted = set(subprocess.check_output(["id", "-G", name], text=True).split())
        engine.run(1, "sh", "-c", "id -u; id -G; echo $USER $HOME", uid=uid, gid=gid, user=name)
        lines = engine.log(1).splitlines()
        assert lines[0] == str(uid) and set(lines[1].split()) == wanted
        assert lines[2].startswith(name)
    finally:
        subprocess.run(["userdel", name], check=True)


@needs_root
def test_a_daemon_without_root_runs_only_its_own_users_jobs_and_says_so():
    with Drive(user=PLAIN) as engine:
        engine.must("adopt")
        end = engine.run(1, "id", "-u", uid=PLAIN, gid=PLAIN)
        assert end["code"] == 0 and engine.log(1) == "%d\n" % PLAIN
        engine.start(2, "true", uid=12345, gid=12345, user="alice")
        end = engine.wait_fact("exited", 2)
        assert end["cause"] == "start" and "does not run as root" in end["text"] and "alice" in end["text"]


@needs_root
def test_a_users_task_can_read_no_spec_and_no_log(engine):
    engine.run(1, "sh", "-c", "cat %s/spec; cat %s/logs/1/1/0.out; ls %s/attempts; echo $FAIRLEAD_HOSTFILE; cat $FAIRLEAD_HOSTFILE" %
               (engine.place(1), engine.folder, engine.folder), uid=PLAIN, gid=PLAIN, env=["SECRET=canary"])
    assert "canary" not in engine.log(1) and "slots=1" in engine.log(1)
    assert engine.log(1, stream="err").count("Permission denied") == 3
    assert oct(os.stat(engine.place(1) + "/spec").st_mode & 0o777) == "0o600"
    assert oct(os.stat(engine.folder + "/logs/1/1/0.out").st_mode & 0o777) == "0o640"


@needs_root
def test_a_checkpoint_folder_that_leads_into_the_data_folder_ends_the_task_as_a_path_of_no_use(engine):
    """As the launcher says it: 126, and no fault of the machine, which would count against its GPUs."""
    engine.start(1, "true", checkpoint=engine.folder + "/run/7", uid=PLAIN, gid=PLAIN)
    end = engine.wait_fact("exited", 1)
    assert (end["cause"], end["code"], end["never_ran"]) == ("exit", 126, True) and "leads into" in end["text"], end


@needs_root
def test_a_checkpoint_folder_in_the_data_folder_is_made_for_the_user(engine):
    folder = engine.folder + "/checkpoints/1"
    engine.run(1, "sh", "-c", "id -u; touch $FAIRLEAD_CHECKPOINT_DIR/x", uid=PLAIN, gid=PLAIN, checkpoint=folder)
    assert os.stat(folder + "/x").st_uid == PLAIN
    assert os.stat(engine.folder + "/checkpoints").st_uid == 0


@needs_root
def test_nothing_is_made_as_root_where_a_user_can_change_names(engine, tmp_path):
    tmp_path.chmod(0o755)
    engine.run(1, "ln", "-s", str(tmp_path), engine.folder + "/checkpoints/1/link", uid=PLAIN, gid=PLAIN, checkpoint=engine.folder + "/checkpoints/1")
    for attempt, name in ((2, "link/deep"), (3, "link"), (4, "../../attempts/4")):
        engine.start(attempt, "true", uid=PLAIN, gid=PLAIN, checkpoint=engine.folder + "/checkpoints/1/" + name)
        assert engine.wait_fact("exited", attempt)["never_ran"]
    assert os.listdir(tmp_path) == [] and os.stat(tmp_path).st_uid == 0


@needs_root
def test_namespaces_of_its_own_do_not_help_a_task_to_live_on(engine):
    number = str(400000 + os.getpid())
    engine.begin(1, "unshare", "--pid", "--fork", "--mount", "--net", "--ipc", "sh", "-c", "setsid sleep %s & exec sleep %s" % (number, number))
    wait_until("both sleep", lambda: len([pid for pid in processes_with("sleep\0" + number)]) == 2)
    engine.must("stop", 1, 0)
    engine.wait_fact("exited", 1)
    assert not [pid for pid in processes_with("sleep\0" + number) if is_alive(pid)]


# --- stop, and trees that try to escape --------------------------------------------------------------------------------


def test_stop_sends_sigterm_first_and_the_task_may_end_in_its_grace(engine):
    engine.begin(1, "sh", "-c", "trap 'echo bye; exit 5' TERM; echo up; while :; do sleep 0.05; done")
    engine.wait_fact("started", 1)
    wait_until("the trap is set", lambda: os.path.exists(engine.folder + "/logs/1/1/0.out") and "up" in engine.log(1))
    engine.must("stop", 1, 60000)
    end = engine.wait_fact("exited", 1)
    assert (end["cause"], end["code"]) == ("stopped", 5)
    assert engine.log(1) == "up\nbye\n"


def test_stop_kills_what_ignores_sigterm_when_the_grace_is_over(engine):
    engine.begin(1, "sh", "-c", "trap '' TERM; echo up; while :; do sleep 0.05; done")
    wait_until("up", lambda: os.path.exists(engine.folder + "/logs/1/1/0.out") and "up" in engine.log(1))
    engine.must("stop", 1, 100)
    end = engine.wait_fact("exited", 1)
    assert (end["cause"], end["signal"]) == ("stopped", signal.SIGKILL)


def test_a_second_stop_shortens_the_grace(engine):
    engine.begin(1, "sh", "-c", "trap '' TERM; echo up; while :; do sleep 0.05; done")
    wait_until("up", lambda: os.path.exists(engine.folder + "/logs/1/1/0.out") and "up" in engine.log(1))
    engine.must("stop", 1, 3600000)
    engine.must("stop", 1, 0)
    assert engine.wait_fact("exited", 1)["cause"] == "stopped"


def test_stop_before_the_release_takes_the_place_down(engine):
    engine.start(1, "true", count=3)
    for rank in range(3):
        engine.wait_fact("ready", 1, rank)
    engine.must("stop", 1, 30000)
    for rank in range(3):
        end = engine.wait_fact("exited", 1, rank)
        assert (end["cause"], end["never_ran"]) == ("stopped", True)
    assert not engine.do("release", 1)["ok"]


def test_stop_right_after_start_leaves_nothing(engine):
    for attempt in range(1, 21):
        engine.send("start", attempt, "count=2", "--", "sleep", "1000")
        engine.send("stop", attempt, 0)
    for attempt in range(1, 21):
        for rank in range(2):
            end = engine.wait_fact("exited", attempt, rank)
            assert (end["cause"], end["never_ran"]) == ("stopped", True)
    for _ in range(40):
        engine.answer("start and stop")


ESCAPES = {
    "a double fork with a session of its own": "import os,time\nif os.fork()==0:\n os.setsid()\n if os.fork()==0:\n  {mark}\n  time.sleep(1000)\n os._exit(0)\nos.wait()\n",
    "a child that ignores all it can": "import os,signal,time\nif os.fork()==0:\n for s in range(1,65):\n  try: signal.signal(s,signal.SIG_IGN)\n  except (OSError,ValueError): pass\n {mark}\n time.sleep(1000)\nos._exit(0)\n",
    "a stopped grandchild": "import os,signal,time\nif os.fork()==0:\n if os.fork()==0:\n  {mark}\n  os.kill(os.getpid(),signal.SIGSTOP)\n  time.sleep(1000)\n os._exit(0)\nos.wait()\n",
    "a child without environment and without output": "import os,time\nif os.fork()==0:\n os.setsid()\n for f in (0,1,2): os.close(f)\n os.execve('/bin/sleep',['sleep','{number}'],{{}})\nos._exit(0)\n",
    "a family of thirty": "import os,time\nfor i in range(30):\n if os.fork()==0:\n  if i%2: os.setsid()\n  if os.fork()==0:\n   {mark}\n   time.sleep(1000)\n  os._exit(0)\n",
}


def escape_program(name):
    number = str(100000 + os.getpid())
    return [PYTHON, "-c", ESCAPES[name].format(mark="pass", number=number) + "\n# escape-%s" % os.getpid()], number


def leftovers(number):
    return processes_with("escape-%d" % os.getpid()) + processes_with("sleep\0" + number)


@pytest.mark.parametrize("name", list(ESCAPES))
@pytest.mark.parametrize("user", [None, PLAIN] if ROOT else [None])
def test_nothing_survives_the_end_of_a_task(name, user):
    """As root by control groups; without root by the subreaper alone."""
    with Drive(user=user) as engine:
        engine.must("adopt")
        argv, number = escape_program(name)
        uid = user if user is not None else os.geteuid()
        end = engine.run(1, *argv, uid=uid, gid=uid)
        # EXITED means: nothing of it is left. Looked at once, without patience.
        alive = [pid for pid in leftovers(number) if is_alive(pid) and pid != engine.process.pid]
        assert not alive
        assert end["cause"] in ("exit", "signal")


@pytest.mark.parametrize("user", [None, PLAIN] if ROOT else [None])
def test_stop_reaches_a_fork_storm(user):
    storm = "import os,resource,time\nresource.setrlimit(resource.RLIMIT_NPROC,(400,400))\n# escape-%d\nfor i in range(300):\n try:\n  pid=os.fork()\n except OSError: break\n if pid==0 and i%%3==0: os.setsid()\n if pid and i>4: os._exit(0)\nwhile True:\n try:\n  if os.fork(): os._exit(0)\n except OSError: pass\n" % os.getpid()
    with Drive(user=user) as engine:
        engine.must("adopt")
        uid = user if user is not None else os.geteuid()
        engine.begin(1, "sh", "-c", "%s -c \"$0\" & sleep 1000" % PYTHON, storm, uid=uid, gid=uid)
        engine.wait_fact("started", 1)
        wait_until("the storm", lambda: len(leftovers("x")) > 3)
        engine.must("stop", 1, 0)
        engine.wait_fact("exited", 1)
        assert not [pid for pid in leftovers("x") if is_alive(pid) and pid != engine.process.pid]


# --- memory --------------------------------------------------------------------------------------------------------


GROW = "import time\nb=[]\nwhile True:\n b.append(bytearray(4<<20)); time.sleep(0.001)\n"


def test_a_task_over_its_memory_limit_ends_with_that_cause(engine):
    end = engine.run(1, PYTHON, "-c", GROW, memory=64)
    assert end["cause"] == "memory" and "limit" in end["text"], end
    assert end["memory_enforced"] == bool(engine_has_memory_groups())
    assert end["peak_memory_mib"] >= 32


def engine_has_memory_groups():
    return ROOT and (os.path.isdir("/sys/fs/cgroup/memory") or os.path.exists("/sys/fs/cgroup/cgroup.subtree_control"))


@needs_root
def test_without_groups_the_limit_is_sampled_and_marked_not_enforced():
    with Drive(user=PLAIN) as engine:
        engine.must("adopt")
        end = engine.run(1, PYTHON, "-c", GROW.replace("0.001", "0.01"), memory=64, uid=PLAIN, gid=PLAIN)
        assert end["cause"] == "memory" and end["memory_enforced"] is False and "64 MiB" in end["text"]


def test_a_crash_under_a_limit_is_not_called_memory(engine):
    end = engine.run(1, "sh", "-c", "kill -KILL $$", memory=64)
    assert (end["cause"], end["signal"]) == ("signal", signal.SIGKILL)


def test_a_child_killed_for_memory_is_told_when_the_task_fails_of_it(engine):
    if not engine_has_memory_groups():
        pytest.skip("needs a memory group")
    end = engine.run(1, "sh", "-c", "%s -c '%s'; exit 9" % (PYTHON, GROW), memory=64)
    assert (end["cause"], end["code"]) == ("memory", 9)


# --- logs ------------------------------------------------------------------------------------------------------------


def test_a_flood_of_output_stays_in_its_cap_with_beginning_and_end(engine):
    size = int(os.environ.get("FAIRLEAD_TEST_FLOOD_MIB", "300"))
    cap = 4 << 20
    engine.run(1, PYTHON, "-c",
               "import sys\nw=sys.stdout.buffer.write\nend=bytes([10])\nw(b'first'+end)\nblock=b'x'*65535+end\nfor _ in range(%d): w(block)\nw(b'last'+end)" % (size * 16),
               log_cap=cap)
    folder = engine.folder + "/logs/1/1"
    kept = sum(os.stat(os.path.join(folder, name)).st_size for name in os.listdir(folder))
    assert cap // 2 < kept <= cap
    text = engine.log(1)
    assert text.startswith("first\n") and text.endswith("last\n")


def test_output_of_a_stopped_task_is_complete(engine):
    engine.begin(1, "sh", "-c", "trap '' TERM; seq 1 20000; echo end; while :; do sleep 0.05; done")
    wait_until("all output", lambda: os.path.exists(engine.folder + "/logs/1/1/0.out") and engine.log(1).endswith("end\n"))
    engine.must("stop", 1, 0)
    engine.wait_fact("exited", 1)
    assert engine.log(1).splitlines() == [str(i) for i in range(1, 20001)] + ["end"]


@needs_root
def test_a_log_is_never_written_through_a_link(engine, tmp_path):
    target = tmp_path / "target"
    target.write_text("untouched")
    os.makedirs(engine.folder + "/logs/1/1")
    os.symlink(target, engine.folder + "/logs/1/1/0.out")
    engine.run(1, "echo", "hello")
    assert target.read_text() == "untouched"


# --- reports ----------------------------------------------------------------------------------------------------------


class Reporter:
    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(60)
        self.socket.connect(path)
        self.file = self.socket.makefile("rw")

    def say(self, text):
        self.file.write(text + "\n")
        self.file.flush()
        return json.loads(self.file.readline())


@pytest.fixture
def running(engine, tmp_path):
    engine.begin(1, "sleep", "1000", checkpoint=str(tmp_path))
    engine.wait_fact("started", 1)
    return Reporter(engine.folder + "/run/1/0/report")


def test_checkpoints_are_reported_in_order_and_once(engine, running, tmp_path):
    other = tmp_path / "other" / "step-20"
    other.mkdir(parents=True)
    (other / "weights").write_text("x" * 1000)
    (tmp_path / "step-10").write_text("ten")
    assert running.say('{"step": 10, "checkpoint": "step-10"}') == {"ok": True}
    assert running.say('{"step": 20, "checkpoint": "%s"}' % other) == {"ok": True}
    while len([fact for fact in engine.facts if fact["kind"] == "report"]) < 2:
        engine.next_fact()
    first, second = [fact for fact in engine.facts if fact["kind"] == "report"]
    assert (first["number"], first["step"], first["checkpoint"], first["path"]) == (1, 10, True, str(tmp_path) + "/step-10")
    assert (second["number"], second["step"], second["path"]) == (2, 20, str(other))
    assert (first["bytes"], second["bytes"]) == (3, 1000)


def test_a_checkpoint_that_is_not_there_is_refused_and_does_not_count(engine, running, tmp_path):
    reply = running.say('{"step": 10, "checkpoint": "never-written"}')
    assert reply["ok"] is False and "there is no checkpoint at" in reply["error"] and "never-written" in reply["error"]
    assert running.say('{"step": 11}') == {"ok": True}
    (tmp_path / "written").mkdir()
    assert running.say('{"step": 12, "checkpoint": "written"}') == {"ok": True}
    while not engine.facts[-1].get("checkpoint"):
        engine.next_fact()
    reports = [fact for fact in engine.facts if fact["kind"] == "report"]
    assert [fact["step"] for fact in reports if fact["checkpoint"]] == [12]


def test_requests_sent_while_a_checkpoint_is_looked_at_are_answered_in_order(engine, running, tmp_path):
    (tmp_path / "one").write_text("1")
    lines = ['{"step": 1, "checkpoint": "one"}', '{"step": 2, "checkpoint": "none"}', '{"other": 1}', '{"step": 3, "checkpoint": "one"}', '{"step": 4}']
    running.file.write("".join(line + "\n" for line in lines) * 20)
    running.file.flush()
    answers = [json.loads(running.file.readline())["ok"] for _ in range(100)]
    assert answers == [True, False, False, True, True] * 20
    engine.must("stop", 1, 0)
    engine.wait_fact("exited", 1)
    steps = [fact["step"] for fact in engine.facts if fact.get("checkpoint")]
    assert steps == [1, 3] * 20


@pytest.mark.skipif(os.geteuid() != 0, reason="needs two accounts")
def test_a_checkpoint_is_looked_at_as_the_user_and_not_as_root(engine, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("x" * 4711)
    secret.chmod(0o600)
    (tmp_path / "mine").write_text("mine")
    for folder in (tmp_path, *tmp_path.parents[:-2]):
        folder.chmod(0o711)
    engine.begin(1, "sleep", "1000", uid=65534, gid=65534)
    engine.wait_fact("started", 1)
    reporter = Reporter(engine.folder + "/run/1/0/report")
    for path in (secret, "/root"):
        reply = reporter.say('{"step": 1, "checkpoint": "%s"}' % path)
        assert reply["ok"] is False and "can't be read" in reply["error"], reply
    assert reporter.say('{"step": 2, "checkpoint": "%s"}' % (tmp_path / "mine"))["ok"]
    while not engine.facts[-1].get("checkpoint"):
        engine.next_fact()
    assert [(fact["path"], fact["bytes"]) for fact in engine.facts if fact.get("checkpoint")] == [(str(tmp_path / "mine"), 4)]


def test_progress_is_told_and_the_newest_is_never_lost(engine, running):
    for step in range(500):
        assert running.say('{"step": %d}' % step) == {"ok": True}
    engine.must("stop", 1, 0)
    engine.wait_fact("exited", 1)
    steps = [fact["step"] for fact in engine.facts if fact["kind"] == "report"]
    assert steps[0] == 0 and steps[-1] == 499 and len(steps) < 100
    assert engine.facts[-1]["kind"] == "exited"


@pytest.mark.parametrize("line", ["", "{}", "[]", "{\"step\": -1}", "{\"step\": 9007199254740993}", "{\"step\": 1.5}", "{\"step\": \"1\"}",
                                  "{\"step\": 1, \"step\": 2}", "{\"other\": 1}", "{\"checkpoint\": \"\"}", "{\"checkpoint\": \"../x\"}",
                                  "{\"checkpoint\": \"a\\u0000b\"}", "{\"checkpoint\": \"a\\nb\"}", "{\"checkpoint\": \"%s\"}" % ("x" * 500),
                                  "{" * 100, "\xff\xfe", "{\"watch\": 1}"])
def test_bad_reports_are_refused_with_a_reason(running, line):
    reply = running.say(line)
    assert reply["ok"] is False and reply["error"]
    assert running.say('{"step": 1}') == {"ok": True}


def test_a_line_that_is_too_long_is_refused_once_and_passed_over(running):
    reply = running.say('{"step": 1, "checkpoint": "%s"}' % ("x" * 20000))
    assert reply["ok"] is False and "4096" in reply["error"]
    assert running.say('{"step": 2}') == {"ok": True}


def test_more_connections_than_allowed_and_clients_that_do_not_read_do_no_harm(engine, running):
    path = engine.folder + "/run/1/0/report"
    flood = socket.socket(socket.AF_UNIX)
    flood.connect(path)
    flood.setblocking(False)
    try:
        for _ in range(2000):
            flood.send(b'{"bad": 1}\n' * 50)
    except (BlockingIOError, BrokenPipeError, ConnectionResetError):
        pass
    others = []
    for _ in range(60):
        other = socket.socket(socket.AF_UNIX)
        other.connect(path)
        others.append(other)
    for other in others:
        other.close()
    flood.close()
    assert running.say('{"step": 3}') == {"ok": True}


def test_too_many_checkpoints_are_refused_and_the_file_stays_small(engine, running, tmp_path):
    for i in range(150):
        (tmp_path / ("c%d" % i)).write_text("")
    replies = [running.say('{"checkpoint": "c%d"}' % i) for i in range(150)]
    assert all(reply["ok"] for reply in replies[:100]) and not replies[120]["ok"]
    assert "checkpoint reports" in replies[120]["error"]


@needs_root
def test_only_the_jobs_user_may_report(engine):
    engine.begin(1, "sleep", "1000", uid=PLAIN, gid=PLAIN)
    engine.wait_fact("started", 1)
    path = engine.folder + "/run/1/0/report"
    state = os.stat(path)
    assert (state.st_uid, state.st_mode & 0o777) == (PLAIN, 0o600)
    code = "import socket,sys; s=socket.socket(socket.AF_UNIX); s.connect(sys.argv[1])"
    other = subprocess.run([PYTHON, "-c", code, path], user=12345, group=12345, extra_groups=[], capture_output=True, text=True)
    assert "PermissionError" in other.stderr
    assert subprocess.run([PYTHON, "-c", code, path], user=PLAIN, group=PLAIN, extra_groups=[]).returncode == 0


def test_a_warning_reaches_the_watcher_and_the_process_that_waits_for_the_signal(engine):
    # The shell around it would die of the signal: it must not get it.
    inner = "import os,signal,time\ndef f(*a): os.write(1,b'warned')\nsignal.signal(signal.SIGUSR1,f)\nprint('up',flush=True)\nwhile True: time.sleep(0.05)\n"
    engine.begin(1, "sh", "-c", "%s -c \"$0\"; exit 4" % PYTHON, inner, signal=int(signal.SIGUSR1))
    wait_until("up", lambda: os.path.exists(engine.folder + "/logs/1/1/0.out") and "up" in engine.log(1))
    watcher = Reporter(engine.folder + "/run/1/0/report")
    assert watcher.say('{"watch": true}') == {"ok": True}
    engine.must("warn", 1, 30000)
    assert json.loads(watcher.file.readline()) == {"notice": "checkpoint", "grace_ms": 30000}
    wait_until("the signal", lambda: "warned" in engine.log(1))
    engine.must("warn", 1, 20000)
    assert json.loads(watcher.file.readline())["grace_ms"] == 20000
    wait_until("the second signal", lambda: engine.log(1).count("warned") == 2)
    engine.must("stop", 1, 0)
    assert engine.wait_fact("exited", 1)["cause"] == "stopped"


CATCHES = ("import os,signal,time\ndef f(*a): os.write(1,b'asked')\nsignal.signal(signal.SIGUSR1,f)\n"
           "print('up', os.environ.get('FAIRLEAD_CHECKPOINT_EVERY_SECONDS'), flush=True)\nwhile True: time.sleep(0.05)\n")


def test_a_job_that_says_how_often_is_asked_for_a_checkpoint_again_and_again(engine):
    engine.begin(1, PYTHON, "-c", CATCHES, signal=int(signal.SIGUSR1), every=1000)
    wait_until("up", lambda: "up 1\n" in engine.log(1))
    watcher = Reporter(engine.folder + "/run/1/0/report")
    assert watcher.say('{"watch": true}') == {"ok": True}
    for _ in range(2):
        assert json.loads(watcher.file.readline()) == {"notice": "checkpoint"}
    wait_until("the signals", lambda: engine.log(1).count("asked") >= 2)
    engine.must("stop", 1, 0)
    assert engine.wait_fact("exited", 1)["cause"] == "stopped"


def test_a_job_that_does_not_say_how_often_is_not_asked(engine):
    engine.begin(1, PYTHON, "-c", CATCHES, signal=int(signal.SIGUSR1))
    engine.begin(2, PYTHON, "-c", CATCHES, signal=int(signal.SIGUSR1), every=1000)
    wait_until("the other is asked", lambda: engine.log(2).count("asked") >= 2)
    assert engine.log(1) == "up None\n"


def quietly_marked(watcher, mark):
    """Marks a checkpoint again and again for longer than 1 s: what the watcher was told, None when this machine was too busy for it."""
    mark()
    last, told = time.monotonic(), []
    while select.select([watcher.socket], [], [], 0.2)[0]:  # what it was asked before that
        watcher.file.readline()
    for _ in range(12):
        mark()
        now = time.monotonic()
        if now - last > 0.7:
            return None
        last = now
        if select.select([watcher.socket], [], [], 0.2)[0]:
            told.append(watcher.file.readline())
    return told


def test_a_checkpoint_of_one_rank_puts_off_the_asking_of_all(engine, tmp_path):
    (tmp_path / "one").write_text("state")
    engine.begin(1, "sleep", "1000", count=2, every=1000, checkpoint=str(tmp_path))
    for rank in range(2):
        engine.wait_fact("started", 1, rank)
    reporter, watcher = [Reporter(engine.folder + "/run/1/%d/report" % rank) for rank in range(2)]
    assert watcher.say('{"watch": true}') == {"ok": True}
    assert json.loads(watcher.file.readline()) == {"notice": "checkpoint"}
    report = lambda: reporter.say('{"step": 1, "checkpoint": "one"}')
    told = None
    while told is None:
        told = quietly_marked(watcher, report)
    assert told == []
    assert json.loads(watcher.file.readline()) == {"notice": "checkpoint"}


def test_a_signal_that_nobody_waits_for_is_not_sent(engine):
    engine.begin(1, "sleep", "1000", signal=int(signal.SIGUSR1))
    engine.wait_fact("started", 1)
    engine.must("warn", 1, 30000)
    wait_until("the complaint", lambda: "was not sent" in open(engine.place(1) + "/shepherd.log").read())
    engine.must("stop", 1, 0)
    end = engine.wait_fact("exited", 1)
    assert end["signal"] != signal.SIGUSR1


def test_a_signal_does_not_kill_a_program_that_blocks_all_signals_only_while_it_makes_a_process(engine):
    inner = "import subprocess\nprint('up', flush=True)\nwhile True: subprocess.run(['/bin/true'])"
    engine.begin(1, PYTHON, "-c", inner, signal=int(signal.SIGUSR1))
    wait_until("up", lambda: "up" in engine.log(1))
    for _ in range(100):
        engine.must("warn", 1, 30000)
    engine.must("stop", 1, 0)
    assert engine.wait_fact("exited", 1)["cause"] == "stopped"


def test_a_signal_for_which_a_program_waits_with_all_signals_blocked_reaches_it(engine):
    inner = ("import os,signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())\nprint('up', flush=True)\n"
             "import time\nwhile signal.SIGUSR1 not in signal.sigpending(): time.sleep(0.02)\nprint('warned', flush=True)")
    engine.begin(1, PYTHON, "-c", inner, signal=int(signal.SIGUSR1))
    wait_until("up", lambda: "up" in engine.log(1))
    engine.must("warn", 1, 30000)
    assert engine.wait_fact("exited", 1)["cause"] == "exit"
    assert "warned" in engine.log(1)


def test_a_task_whose_place_was_removed_is_ended(engine):
    engine.begin(1, "sh", "-c", "sleep 1000; true")
    pid = engine.wait_fact("started", 1)["pid"]
    shepherd = engine.shepherd(1)
    subprocess.run(["rm", "-r", engine.folder + "/attempts/1"], check=True)
    wait_until("task and shepherd are over", lambda: not is_alive(pid) and not is_alive(shepherd))
    assert not engine.groups()


@pytest.mark.parametrize("name", ["TERM", "INT"])
def test_a_shepherd_that_is_told_to_end_takes_its_task_along_as_lost(engine, name):
    engine.begin(1, "sh", "-c", "trap 'echo saved; exit 0' TERM; echo up; while :; do sleep 0.05; done")
    wait_until("up", lambda: os.path.exists(engine.folder + "/logs/1/1/0.out") and "up" in engine.log(1))
    os.kill(engine.shepherd(1), getattr(signal, "SIG" + name))
    end = engine.wait_fact("exited", 1)
    assert (end["cause"], end["never_ran"]) == ("lost", False) and "going down" in end["text"]
    assert "saved" in engine.log(1)


# --- the program -------------------------------------------------------------------------------------------------------


def test_the_shepherd_needs_no_library_but_the_systems():
    text = subprocess.check_output(["readelf", "-d", SHEPHERD], text=True)
    needed = re.findall(r"NEEDED.*\[(.*)\]", text)
    # Sanitizers bring their own run time.
    assert [name for name in needed if not re.match(r"lib(c|asan|ubsan|tsan|m|gcc_s)\.", name)] == []
