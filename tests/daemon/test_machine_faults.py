# SPDX-License-Identifier: Apache-2.0
"""Faults of the machine that pass: no process can be made, file watches or files are used up, a disk without inodes or over its
quota, one that can only be read. Nobody's job fails for them: it waits at no cost, `nodes` says why, and it goes on afterwards."""

import contextlib
import json
import os
import shutil
import subprocess
import tempfile

import pytest

import harness

ROOT = os.geteuid() == 0
needs_root = pytest.mark.skipif(not ROOT, reason="needs root")
needs_failpoints = pytest.mark.skipif(not harness.has_failpoints(), reason="needs a build with -Dfailpoints=true")

# Makes processes until none can be made any more; ends them with its own end.
PROCESSES = r"""
import os, signal, sys
made = []
try:
    while True:
        pid = os.fork()
        if pid == 0:
            signal.pause()
        made.append(pid)
except BlockingIOError:
    print("full", flush=True)
sys.stdin.read()
for pid in made:
    os.kill(pid, 9)
"""


def wait_for_reason(d, words):
    harness.wait_until("the node says why", lambda: all(n["state"] == "cordoned" and words in n["reason"] for n in d.ask("nodes")))


def health(d):
    return harness.Client(d.data).once("GET", "/healthz")[1]


def check_waits(d, job, words):
    """It waits because of the machine: with the reason, and with all of its retries."""
    wait_for_reason(d, words)
    harness.wait_until("it waits", lambda: d.job(job)["state"] == "queued")
    shown = d.job(job)
    assert shown["retries_left"] == 0 and shown["attempts"][-1]["why"] == "start", shown
    status = health(d)
    assert status["status"] == "degraded" and words in status["problem"], status
    assert words in d.run("explain", str(job), "-v").out
    assert words in d.run("doctor", check=False).out


def check_goes_on(d, job):
    """As without the fault."""
    shown = d.wait(job)
    assert shown["state"] == "succeeded", shown
    assert all(n["state"] == "ready" and not n["reason"] for n in d.ask("nodes"))
    assert health(d)["status"] == "ok"
    assert os.path.isdir(d.data + "/attempts") and "try" not in os.listdir(d.data + "/attempts")


# --- errors of one call -------------------------------------------------------------------------------------------------------

POINTS = {"engine-place": "its disk answers with errors", "engine-spawn": "no process can be made", "engine-claim": "its disk is full",
          "shepherd-fork": "no process can be made", "shepherd-cgroup": "its disk answers with errors"}


@needs_failpoints
@pytest.mark.parametrize("point", POINTS)
def test_one_failed_step_of_a_start_costs_the_job_nothing(point):
    with harness.Daemon(nodes="sim:1x1xH100-80GB", env={"FAIRLEAD_FAILPOINT": point + ":error"}) as d:
        d.env["FAIRLEAD_SHEPHERD_FAILPOINT"] = ""
        job = harness.Client(d.data).submit({"name": "j", "command": ["true"]}, "key")
        harness.wait_until("it is tried again", lambda: len(d.job(job)["attempts"]) >= 2)
        first = d.job(job)["attempts"][0]
        assert first["why"] == "start", first
        # Each new shepherd meets the failpoint anew; the daemon has met it once.
        if point.startswith("engine-"):
            check_goes_on(d, job)
        assert POINTS[point] in d.log()


@needs_failpoints
def test_a_try_that_fails_keeps_the_node_out_and_the_next_one_that_succeeds_takes_it_back():
    with harness.Daemon(nodes="sim:1x1xH100-80GB", env={"FAIRLEAD_FAILPOINT": "engine-spawn:error,engine-try:error:1,engine-try:error:2"}) as d:
        job = harness.Client(d.data).submit({"name": "j", "command": ["true"]}, "key")
        harness.wait_until("what the tries met is told", lambda: "its disk answers with errors" in health(d).get("problem", ""))
        check_goes_on(d, job)
        assert len(d.job(job)["attempts"]) == 2


@needs_failpoints
def test_a_daemon_that_starts_anew_during_a_fault_takes_the_nodes_back_by_itself():
    with harness.Daemon(nodes="sim:1x1xH100-80GB", env={"FAIRLEAD_FAILPOINT": "engine-spawn:error," + ",".join("engine-try:error:%d" % i for i in range(1, 12))}) as d:
        job = harness.Client(d.data).submit({"name": "j", "command": ["true"]}, "key")
        wait_for_reason(d, "no process can be made")
        d.kill()
        d.env["FAIRLEAD_FAILPOINT"] = ""
        d.up()
        check_goes_on(d, job)


@needs_failpoints
@pytest.mark.parametrize("reason", ["broken fan", ""])
def test_a_cordon_of_a_person_during_a_fault_stays_with_its_own_reason(reason):
    tries = ",".join("engine-try:error:%d" % i for i in range(1, 3))
    with harness.Daemon(nodes="sim:2x1xH100-80GB", env={"FAIRLEAD_FAILPOINT": "engine-spawn:error," + tries}) as d:
        job = harness.Client(d.data).submit({"name": "j", "command": ["true"]}, "key")
        wait_for_reason(d, "nothing is started")
        harness.Client(d.data).once("POST", "/api/v1/nodes/node0/state", {"state": "cordoned", "reason": reason})
        node = {n["name"]: n for n in d.ask("nodes")}["node0"]
        assert node["state"] == "cordoned" and node["reason"] == (reason or "cordoned by %s" % d.ask("whoami")["user"]), node
        assert d.wait(job)["state"] == "succeeded"
        nodes = {n["name"]: n for n in d.ask("nodes")}
        assert nodes["node0"] == node and nodes["node1"]["state"] == "ready", nodes


# --- real ones ----------------------------------------------------------------------------------------------------------------


@needs_root
def test_when_no_process_can_be_made_jobs_wait_until_one_can():
    limit = ["prlimit", "--nproc=60"]
    with harness.account("fairlead-np") as who, harness.Daemon(nodes="sim:1x4xH100-80GB", user=who.pw_uid, before=limit) as d:
        hog = subprocess.Popen([*limit, "/usr/bin/python3", "-c", PROCESSES], stdin=subprocess.PIPE, stdout=subprocess.PIPE, user=who.pw_uid,
                               group=who.pw_gid, extra_groups=[], cwd="/")
        try:
            assert hog.stdout.readline() == b"full\n"
            jobs = [d.submit("true", flags=["-C", "/"]) for _ in range(4)]
            check_waits(d, jobs[0], "no process can be made on it")
        finally:
            hog.communicate()
        for job in jobs:
            check_goes_on(d, job)


@needs_root
def test_when_a_user_can_make_no_process_the_node_stays_in_for_others():
    """The limit is of the user's account: that of the daemon, root, is another."""
    with harness.account("fairlead-up") as who, harness.Daemon(nodes="sim:1x4xH100-80GB", before=["prlimit", "--nproc=10"]) as d:
        d.run("users", "add", who.pw_name, "--uid", str(who.pw_uid))
        hog = subprocess.Popen(["prlimit", "--nproc=20", "/usr/bin/python3", "-c", PROCESSES], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               user=who.pw_uid, group=who.pw_gid, extra_groups=[], cwd="/")
        try:
            assert hog.stdout.readline() == b"full\n"
            words = d.run("run", "--detach", "-C", "/", "-o", "json", "--", "true", user=who.pw_uid, env={"HOME": who.pw_dir}).out
            job = json.loads(words)["id"]
            harness.wait_until("it could not be started", lambda: len(d.job(job)["attempts"]) >= 2)
            assert d.job(job)["attempts"][0]["why"] == "start"
            assert [n["state"] for n in d.ask("nodes")] == ["ready"]
            assert d.wait(harness.Client(d.data).submit({"name": "other", "command": ["true"]}, "other"))["state"] == "succeeded"
        finally:
            hog.communicate()
        assert d.wait(job)["state"] == "succeeded"


def users_of_watches(number):
    """`echo` for a user namespace in which so many file watches may be used."""
    return "echo %d >/proc/sys/user/max_inotify_watches" % number


@needs_root
def test_when_file_watches_are_used_up_jobs_wait_until_there_are_some():
    keeper = subprocess.Popen(["unshare", "--user", "--map-root-user", "sh", "-c", users_of_watches(0) + " && echo ready && exec cat"],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    enter = ["nsenter", "--user=/proc/%d/ns/user" % keeper.pid]
    try:
        assert keeper.stdout.readline() == b"ready\n"
        with harness.Daemon(nodes="sim:1x2xH100-80GB", before=[*enter, "unshare", "--user", "--map-user=1000"]) as d:
            job = harness.Client(d.data).submit({"name": "j", "command": ["true"]}, "key")
            check_waits(d, job, "its file watches are used up")
            subprocess.run([*enter, "sh", "-c", users_of_watches(100)], check=True)
            check_goes_on(d, job)
    finally:
        keeper.communicate()


def test_when_no_more_files_can_be_opened_jobs_wait_until_some_have_ended():
    with harness.Daemon(nodes="sim:25x8xH100-80GB", before=["prlimit", "--nofile=256"]) as d:
        client, end = harness.Client(d.data), d.data + "/end"
        count = 200
        jobs = [client.submit({"name": "j%d" % i, "gpus": 1, "command": ["sh", "-c", "until [ -e %s ]; do sleep 0.5; done" % end]}, "key-%d" % i)
                for i in range(count)]
        wait_for_reason(d, "no more files can be opened")
        assert client.get("/api/v1/status")
        open(end, "w").close()
        for job in jobs:
            assert d.wait(job)["state"] == "succeeded"
        harness.wait_until("the nodes are back", lambda: all(n["state"] == "ready" for n in d.ask("nodes")))


@contextlib.contextmanager
def mounted(*words):
    """A file system at a folder of its own; what is between is for `mount`."""
    folder = tempfile.mkdtemp(prefix="fairlead-test-fault-", dir=harness.TMP)
    if subprocess.run(["mount", *words, folder], capture_output=True).returncode != 0:
        os.rmdir(folder)
        pytest.skip("no file system can be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)
        os.rmdir(folder)


def test_when_a_disk_has_no_inodes_left_jobs_wait_until_it_has():
    with mounted("-t", "tmpfs", "-o", "size=512m,nr_inodes=3000", "tmpfs") as top:
        data, ballast = top + "/data", top + "/ballast"
        os.mkdir(data)
        os.mkdir(ballast)
        with harness.Daemon(nodes="sim:1x2xH100-80GB", data=data) as d:
            with contextlib.suppress(OSError):
                for i in range(3000):
                    open("%s/%d" % (ballast, i), "w").close()
            job = harness.Client(d.data).submit({"name": "j", "command": ["true"]}, "key")
            check_waits(d, job, "its disk is full")
            shutil.rmtree(ballast)
            check_goes_on(d, job)


@contextlib.contextmanager
def image(make, mib, *options):
    """A file system in a file: its folder, and what mounts it once more."""
    top = tempfile.mkdtemp(prefix="fairlead-test-fault-", dir=harness.TMP)
    file, folder = top + "/image", top + "/disk"
    os.mkdir(folder)
    with open(file, "wb") as f:
        f.truncate(mib << 20)
    subprocess.run([*make, file], check=True, stdout=subprocess.DEVNULL)

    def mount():
        return subprocess.run(["mount", "-o", ",".join(["loop", *options]), file, folder], capture_output=True).returncode == 0
    if not mount():
        shutil.rmtree(top)
        pytest.skip("no file system can be mounted here")
    try:
        yield folder, mount
    finally:
        subprocess.run(["umount", "-l", folder], check=True)
        shutil.rmtree(top)


def is_refused(d, key):
    try:
        return harness.Client(d.data).once("POST", "/api/v1/jobs", {"name": "n", "command": ["true"]}, {"Idempotency-Key": key})[0] == 503
    except OSError:
        return False


def test_a_disk_that_becomes_read_only_loses_nothing_and_is_used_again_when_it_is_mounted_anew():
    """A file system that found an error in itself. It can be written again only when it is mounted anew, and a socket does not live through that:
    so the daemon is started again."""
    with image(["/sbin/mkfs.ext4", "-q"], 256, "errors=remount-ro") as (folder, mount), harness.Daemon(nodes="sim:1x2xH100-80GB", data=folder + "/data") as d:
        client = harness.Client(d.data)
        held = [client.submit({"name": "held%d" % i, "command": ["true"], "hold": True}, "held-%d" % i) for i in range(20)]
        device = subprocess.run(["findmnt", "-n", "-o", "SOURCE", folder], capture_output=True, text=True, check=True).stdout.strip()
        with open("/sys/fs/ext4/%s/trigger_fs_error" % os.path.basename(device), "w") as f:
            f.write("made by a test")
        harness.wait_until("new work is refused", lambda: is_refused(d, "refused"))
        status = health(d)
        assert status["status"] == "failing" and status["problem"], status
        assert d.stop() == 0
        refused = subprocess.run([harness.PROGRAM, "up", "--data", d.data], capture_output=True, text=True, env=d.env, timeout=harness.PATIENCE_S)
        assert refused.returncode > 0 and "the file system is read-only" in refused.stderr, refused
        subprocess.run(["umount", folder], check=True)
        assert mount()
        d.up()
        assert d.wait(client.submit({"name": "j", "command": ["true"]}, "key"))["state"] == "succeeded"
        assert {j["id"] for j in client.jobs()} >= set(held)


def test_a_share_of_the_disk_that_is_used_up_keeps_jobs_waiting_until_it_is_larger():
    with image(["/sbin/mkfs.btrfs", "-q"], 400) as (folder, _):
        def btrfs(*words):
            subprocess.run(["btrfs", *words], check=True, stdout=subprocess.DEVNULL)
        data = folder + "/data"
        btrfs("subvolume", "create", data)
        btrfs("quota", "enable", folder)
        with harness.Daemon(nodes="sim:1x2xH100-80GB", data=data) as d:
            client = harness.Client(d.data)
            client.submit({"name": "before", "command": ["true"], "hold": True}, "before")
            btrfs("qgroup", "limit", "1M", data)
            harness.wait_until("new work is refused", lambda: is_refused(d, "refused"))
            assert health(d)["status"] != "ok"
            btrfs("quota", "disable", folder)
            job = client.submit({"name": "j", "command": ["true"]}, "key")
            assert d.wait(job)["state"] == "succeeded"
            harness.wait_until("all is well again", lambda: health(d)["status"] == "ok")


@needs_root
@pytest.mark.parametrize("processes", (1, 3, 5))  # the journal's own thread is the first, those of the HTTP server come last
def test_a_daemon_that_can_make_no_thread_says_why(processes):
    with harness.account("fairlead-nt") as who, tempfile.TemporaryDirectory(prefix="fairlead-test-fault-", dir=harness.TMP) as data:
        os.chown(data, who.pw_uid, who.pw_gid)
        done = subprocess.run(["prlimit", "--nproc=%d" % processes, harness.PROGRAM, "up", "--data", data, "--nodes", "sim:1x1xH100-80GB"], capture_output=True, text=True,
                              user=who.pw_uid, group=who.pw_gid, extra_groups=[], cwd="/", timeout=harness.PATIENCE_S)
        assert done.returncode == 6 and "no thread can be started" in done.stderr and "raise the limit of processes" in done.stderr, done
