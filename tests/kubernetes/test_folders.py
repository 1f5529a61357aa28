# SPDX-License-Identifier: Apache-2.0
"""Working folders as snapshots for jobs that run as pods: an init container of Fairlead's gets them at the daemon. A stand-in for kubelets runs the
pods' processes here (stand_in.py)."""

import contextlib
import glob
import hashlib
import http.client
import json
import os
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "postgres"))

import pytest

import harness
import server
from bed import wait_until
from cluster import Serve, cluster
from test_shepherds import machines, token_of


def folder_with(path, **files):
    for name, text in files.items():
        with open(os.path.join(path, name.replace("_", ".")), "w") as f:
            f.write(text)
    return str(path)


def submit(s, folder, *words, flags=()):
    return s.submit("--snapshot", folder, *flags, "--", *words)


def outputs(kubelets, job):
    """What its ranks printed, by rank."""
    found = {p.labels["fairlead.dev/rank"]: p.log() for p in kubelets.pods.values() if p.labels["fairlead.dev/job"] == str(job)}
    return [found[rank] for rank in sorted(found)]


def get(s, token, path):
    request = urllib.request.Request("http://127.0.0.1:%d%s" % (s.pod_port, path), headers={"Authorization": "Bearer " + token} if token else {})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as e:
        return e.code, e.read()


class Journal:
    """Where a daemon has it, and what it takes to look there at what is kept of folders."""

    def __init__(self, db=None):
        self.db, self.words = db, ("--store", db.address) if db else ()

    def ask(self, text):
        return subprocess.run([os.path.join(server.PROGRAMS, "psql"), "-XAtq", self.db.address, "-c", text], stdout=subprocess.PIPE, text=True,
                              check=True, timeout=harness.PATIENCE_S).stdout.split()

    def kept(self, s, what):
        if self.db:
            return self.ask("SELECT encode(name, 'hex') FROM fairlead.code WHERE kind = %d" % ("files", "trees").index(what))
        return [os.path.basename(path) for path in glob.glob(os.path.join(s.data, "code", "*", what, "*"))]

    def grow_old(self, s):
        """As if nothing had been named for a day."""
        if self.db:
            self.ask("UPDATE fairlead.code SET named_s = named_s - 90000")
        for path in glob.glob(os.path.join(s.data, "code", "*", "*", "*")):
            os.utime(path, (0, time.time() - 90000))


@contextlib.contextmanager
def journal(kind):
    if kind == "files":
        yield Journal()
    else:
        with server.Server() as db:
            yield Journal(db)


def call(s, token, method, path, body):
    """Of the API, over the socket, by whose token this is."""
    connection = harness.UnixConnection(os.path.join(s.data, "fairlead.sock"))
    connection.request(method, path, body=body, headers={"Authorization": "Bearer " + token, "Content-Type": "text/plain"})
    answer = connection.getresponse()
    return answer.status, json.loads(answer.read())


@pytest.mark.parametrize("kind", ["files", "database"])
def test_each_rank_begins_in_a_copy_of_the_folder_and_a_changed_line_is_in_the_next(tmp_path, kind):
    with journal(kind) as j, machines("n0", "n1", words=j.words) as (b, s, kubelets):
        folder_with(tmp_path, run_sh="echo first; cat data.txt; pwd; echo spoilt > data.txt; mkdir made; env", data_txt="one\n")
        (tmp_path / "deep/er").mkdir(parents=True)
        (tmp_path / "deep/er/tool").write_text("#!/bin/sh\necho a tool\n")
        (tmp_path / "deep/er/tool").chmod(0o755)
        (tmp_path / "link").symlink_to("data.txt")
        first = submit(s, str(tmp_path), "sh", "run.sh", flags=["--tasks", "2", "--gpus", "8"])
        s.wait_for(first, "succeeded")
        outs = outputs(kubelets, first)
        assert len(outs) == 2
        for out in outs:
            assert "first\none\n" in out and "/code\n" in out, out
            # The task has no need of the token, and does not get it.
            assert "FAIRLEAD_POD_TOKEN" not in out
        assert os.path.exists(os.path.join(s.data, "code")) == (kind == "files")
        folder_with(tmp_path, run_sh="cat link; deep/er/tool; ls -ld deep data.txt")
        second = submit(s, str(tmp_path), "sh", "run.sh")
        s.wait_for(second, "succeeded")
        out, = outputs(kubelets, second)
        assert "one\na tool\n" in out and "drwxrwxrwx" in out and "-rw-rw-rw-" in out, out


def test_tasks_in_pods_know_the_commit_that_their_folder_is_of(tmp_path):
    folder = folder_with(tmp_path, main_py="1\n")
    git = ["git", "-C", folder, "-c", "user.name=a", "-c", "user.email=a@example.com"]
    for words in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-q", "-m", "first"]):
        subprocess.run(git + words, check=True)
    commit = subprocess.run(git + ["rev-parse", "HEAD"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    folder_with(tmp_path, main_py="2\n")
    with machines("n0") as (b, s, kubelets):
        s.env.update(FAIRLEAD_GIT="", FAIRLEAD_TEST_GIT_ASK_MS="100000", FAIRLEAD_TEST_GIT_COUNT_MS="100000")
        job = submit(s, folder, "sh", "-c", "echo $FAIRLEAD_GIT_COMMIT $FAIRLEAD_GIT_BRANCH $FAIRLEAD_GIT_CHANGED; ls -A", flags=["--gpus", "1"])
        s.wait_for(job, "succeeded")
        assert outputs(kubelets, job) == ["%s main 1\nmain.py\n" % commit]


def test_only_the_attempts_own_folder_is_answered_and_only_while_it_lives(tmp_path):
    with machines("n0") as (b, s, kubelets):
        job = submit(s, folder_with(tmp_path, a="first", b="second"), "sleep", "600")
        bare = s.submit("--workdir", "/", "--checkpoint", "signal", "--checkpoint-path", "/c", "--", "sleep", "600")
        for one in (job, bare):
            s.wait_for(one, "running")
        token, other, code = token_of(b, s, job), token_of(b, s, bare), "/pods/v1/attempts/1/ranks/0/code"
        status, listed = get(s, token, code)
        assert status == 200 and hashlib.sha256(listed).hexdigest() in json.dumps(s.bed.get("/api/v1/namespaces/default/pods/" + s.pod(job, 0)))
        assert get(s, token, code + "/0") == (200, b"firstsecond")
        assert get(s, token, code + "/1") == (200, b"second")
        assert get(s, None, code)[0] == 401
        for end in ("/2", "/", "/-1", "/0/", "/99999999999", "/x", "x", "/" + hashlib.sha256(b"first").hexdigest()):
            assert get(s, token, code + end)[0] in (400, 404), end
        assert get(s, token, code.replace("/0/", "/7/"))[0] == 404
        assert get(s, other, code)[0] == 403
        status, said = get(s, other, code.replace("/1/", "/2/"))
        assert status == 404 and b"has no snapshot" in said
        s.run("cancel", str(job))
        s.wait_for(job, "cancelled")
        assert get(s, token, code)[0] == get(s, token, code + "/0")[0] == 409


def test_without_a_door_for_pods_a_folder_is_refused_by_name(tmp_path):
    with cluster(nodes=1) as (b, s):
        folder_with(tmp_path, a="a")
        said = s.run("run", "-d", "--snapshot", str(tmp_path), "--", "true", check=False)
        assert said.code and "--pod-listen" in said.err and "--shepherd-image" in said.err and "snapshot" in said.err


@pytest.mark.parametrize("kind", ["files", "database"])
def test_only_what_lacks_is_sent_and_nobody_gets_what_is_another_ones(tmp_path, kind):
    with journal(kind) as j, machines("n0", words=j.words) as (b, s, kubelets):
        s.run("users", "add", "bob", "--team", "default", "--uid", "4242", "--gid", "4242")
        bob = s.run("token", "create", "--user", "bob").out.strip()
        mine = s.run("token", "create").out.strip()
        digests = {name: hashlib.sha256(name.encode()).hexdigest() for name in ("same", "new")}

        def listed(*names):
            return "fairlead-tree 1\n" + "".join("F %d %s %s\n" % (len(name), digests[name], name) for name in sorted(names))
        status, told = call(s, mine, "POST", "/api/v1/snapshots", listed("same"))
        assert status == 200 and told["missing"] == [digests["same"]]
        for _ in range(2):
            assert call(s, mine, "PUT", "/api/v1/snapshots/files/" + digests["same"], "same")[0] == 200
        assert call(s, mine, "PUT", "/api/v1/snapshots/files/" + digests["new"], "other")[0] == 400
        status, told = call(s, mine, "POST", "/api/v1/snapshots", listed("same"))
        assert status == 200 and told["missing"] == []
        assert call(s, mine, "POST", "/api/v1/snapshots", listed("same", "new"))[1]["missing"] == [digests["new"]]
        # He learns nothing of it, and does not get it by its name.
        assert call(s, bob, "POST", "/api/v1/snapshots", listed("same"))[1]["missing"] == [digests["same"]]
        job = "command: 'true'\nimage: none\nsnapshot: '%s'\n" % told["id"]
        status, said = call(s, bob, "POST", "/api/v1/jobs", job)
        assert status == 404 and "of yours" in said["error"]["message"], said
        assert call(s, mine, "POST", "/api/v1/jobs", job)[0] == 201


@pytest.mark.parametrize("kind", ["files", "database"])
def test_a_daemon_that_is_away_while_the_folder_is_asked_for_is_asked_again(tmp_path, kind):
    with journal(kind) as j, machines("n0", words=j.words) as (b, s, kubelets):
        folder_with(tmp_path, run_sh="echo it came")
        with kubelets.lock:
            job = submit(s, str(tmp_path), "sh", "run.sh")
            wait_until("its pod is bound", lambda: any(p["spec"].get("nodeName") for p in s.pods().values()))
            s.kill()
        wait_until("it asks in vain", lambda: any("asks again" in p.log() for p in kubelets.pods.values() if p.place))
        s.up()
        s.wait_for(job, "succeeded")
        assert "it came" in outputs(kubelets, job)[0]
        assert s.ask("job", str(job))["attempt_count"] == 1


def test_what_came_with_other_content_is_never_executed(tmp_path):
    with machines("n0") as (b, s, kubelets):
        folder_with(tmp_path, run_sh="echo right", z="z")
        with kubelets.lock:
            job = submit(s, str(tmp_path), "sh", "run.sh", flags=["--retries", "0"])
            name = hashlib.sha256(b"echo right").hexdigest()
            with open(glob.glob(os.path.join(s.data, "code", "*", "files", name))[0], "w") as f:
                f.write("echo wrong")
        s.wait_for(job, "failed")
        assert "its init container fairlead-code: run.sh of the snapshot came 5 times with other content" in s.run("job", str(job)).out
        assert "wrong" not in outputs(kubelets, job)[0].splitlines()


@pytest.mark.parametrize("kind", ["files", "database"])
def test_what_no_job_needs_goes_after_a_day(tmp_path, kind):
    with journal(kind) as j, machines("n0", words=j.words) as (b, s, kubelets):
        blocker = s.submit("--gpus", "8", "--workdir", "/", "--", "sleep", "1000")
        s.wait_for(blocker, "running")
        waits = submit(s, folder_with(tmp_path, a="waits"), "cat", "a", flags=["--gpus", "8"])
        over = submit(s, folder_with(tmp_path, a="over"), "true", flags=["--gpus", "8"])
        s.run("cancel", str(over))
        s.wait_for(over, "cancelled")
        assert len(j.kept(s, "trees")) == len(j.kept(s, "files")) == 2
        j.grow_old(s)
        s.kill()  # it looks once an hour
        s.up()
        new = submit(s, folder_with(tmp_path, a="new"), "true", flags=["--gpus", "8"])
        names = {hashlib.sha256(text).hexdigest() for text in (b"waits", b"new")}
        assert len(j.kept(s, "trees")) == 2 and set(j.kept(s, "files")) == names
        s.run("cancel", str(blocker))
        s.wait_for(waits, "succeeded")
        s.wait_for(new, "succeeded")
        assert "waits" in outputs(kubelets, waits)[0]


def test_another_replica_has_what_was_told_to_the_first(tmp_path):
    with journal("database") as j, machines("n0", words=j.words) as (b, s, kubelets):
        with kubelets.lock:
            job = submit(s, folder_with(tmp_path, run_sh="echo it came"), "sh", "run.sh")
            wait_until("its pod is bound", lambda: any(p["spec"].get("nodeName") for p in s.pods().values()))
            s.kill()
        other = Serve(b, *s.words, image=None)
        try:
            shutil.copytree(os.path.join(s.data, "keys"), os.path.join(other.data, "keys"))
            other.up()
            other.wait_for(job, "succeeded")
            assert "it came" in outputs(kubelets, job)[0]
        finally:
            other.destroy()


def test_a_file_that_is_damaged_where_it_is_kept_ends_the_attempt_and_says_so(tmp_path):
    with machines("n0") as (b, s, kubelets):
        folder_with(tmp_path, run_sh="echo cut short", z="z")
        with kubelets.lock:
            job = submit(s, str(tmp_path), "sh", "run.sh", flags=["--retries", "0"])
            name = hashlib.sha256(b"echo cut short").hexdigest()
            os.truncate(glob.glob(os.path.join(s.data, "code", "*", "files", name))[0], 4)
        s.wait_for(job, "failed")
        assert name[:20] in s.run("job", str(job)).out and "its init container fairlead-code" in s.run("job", str(job)).out


def test_a_file_that_cannot_be_read_for_a_while_is_asked_for_again(tmp_path):
    with machines("n0") as (b, s, kubelets):
        folder_with(tmp_path, run_sh="echo it came late")
        with kubelets.lock:
            job = submit(s, str(tmp_path), "sh", "run.sh", flags=["--retries", "0"])
            path = glob.glob(os.path.join(s.data, "code", "*", "files", hashlib.sha256(b"echo it came late").hexdigest()))[0]
            os.rename(path, path + ".kept")
            os.symlink(path + ".kept", path)  # which the daemon does not follow
        wait_until("it asks in vain", lambda: any("asks again" in p.log() for p in kubelets.pods.values() if p.place))
        os.rename(path + ".kept", path)
        s.wait_for(job, "succeeded")
        assert "it came late" in outputs(kubelets, job)[0]
