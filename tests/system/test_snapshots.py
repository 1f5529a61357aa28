# SPDX-License-Identifier: Apache-2.0
"""The working folder as a snapshot: what a task finds, what is sent, what is left out, what is removed."""

import hashlib
import http.client
import json
import os
import pwd
import shutil
import socket
import tempfile
import time

import pytest

import harness

LIST = "find . -mindepth 1 | sort; cat main.py; readlink latest; test -x run.sh && echo executes"


@pytest.fixture
def code():
    folder = tempfile.mkdtemp(prefix="fairlead-test-code-", dir=harness.TMP)
    os.chmod(folder, 0o755)
    yield folder
    shutil.rmtree(folder)


def put(folder, files):
    for path, text in files.items():
        path = os.path.join(folder, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as f:
            f.write(text)


def fill(folder):
    put(folder, {"main.py": "first\n", "run.sh": "#!/bin/sh\n", "src/a.py": "a\n", "src/deep/b.py": "b\n", "data.bin": "x", "keep.bin": "k",
                 "build/out.o": "o", "src/.gitignore": "*.tmp\n", "src/c.tmp": "t", ".git/config": "g", "venv/lib/x.py": "v",
                 ".gitignore": "*.bin\n!keep.bin\n# nothing\n/build/\n", ".fairleadignore": "**/lib\n"})
    os.chmod(os.path.join(folder, "run.sh"), 0o755)
    os.symlink("main.py", os.path.join(folder, "latest"))


def kept(d, what):
    return sorted(name for _, _, names in os.walk(os.path.join(d.data, "code")) for name in names
                  if os.path.exists(os.path.join(d.data, "code", str(os.getuid()), what, name)))


def run(d, folder, *words, **more):
    return d.run("run", "--snapshot", folder, "-g", "0", *words, **more)


def test_a_task_starts_in_a_copy_of_what_was_submitted(code):
    with harness.Daemon(nodes="sim:1x4xH100-80GB") as d:
        fill(code)
        blocker = d.submit("sleep", "1000", flags=["-g", "4"])
        d.wait(blocker, "running")
        job = d.submit("sh", "-c", LIST, flags=["--snapshot", code, "-g", "4"])
        put(code, {"main.py": "second\n", "src/a.py": "changed\n"})
        d.run("cancel", str(blocker))
        d.wait(job, "succeeded")
        assert d.run("logs", str(job)).out.split("\n")[:-1] == [
            "./.fairleadignore", "./.gitignore", "./keep.bin", "./latest", "./main.py", "./run.sh", "./src", "./src/.gitignore", "./src/a.py",
            "./src/deep", "./src/deep/b.py", "first", "main.py", "executes"]
        # It may write there, and nothing of that comes back or stays.
        out = run(d, code, "--", "sh", "-c", "echo new > main.py && mkdir -p d/e/f/g/h/i/j/k/l && echo x > d/e/f/g/h/i/j/k/l/m && rm -r src && pwd")
        folder = out.out.strip().split("\n")[-1]
        assert folder.endswith("/code"), out
        harness.wait_until("the copy is gone", lambda: not os.path.exists(os.path.dirname(folder)))
        with open(os.path.join(code, "main.py")) as f:
            assert f.read() == "second\n"


def test_only_what_lacks_is_sent_and_equal_folders_are_one(code):
    with harness.Daemon(nodes="sim:1x4xH100-80GB") as d:
        put(code, {"a": "1\n", "b": "2\n", "same": "2\n"})
        assert "1" in run(d, code, "--", "cat", "a").out
        assert len(kept(d, "files")) == 2 and len(kept(d, "trees")) == 1
        first = {name: os.stat(os.path.join(d.data, "code", str(os.getuid()), "files", name)).st_ino for name in kept(d, "files")}
        run(d, code, "--", "true")
        put(code, {"b": "3\n"})
        assert "3" in run(d, code, "--", "cat", "b").out
        assert len(kept(d, "files")) == 3 and len(kept(d, "trees")) == 2
        for name, inode in first.items():
            assert os.stat(os.path.join(d.data, "code", str(os.getuid()), "files", name)).st_ino == inode, "it was sent twice"
        # Nothing of a dry run stays.
        put(code, {"b": "4\n"})
        run(d, code, "--dry-run", "--", "true")
        assert len(kept(d, "files")) == 3


def test_attempts_after_a_restart_of_the_daemon_begin_from_the_snapshot_too(code):
    with harness.Daemon(nodes="sim:1x4xH100-80GB") as d:
        put(code, {"word": "whole\n"})
        blocker = d.submit("sleep", "1000", flags=["-g", "4"])
        d.wait(blocker, "running")
        job = json.loads(d.submit_file("command: [sh, -c, 'cat word; echo mine >> word; exit 3']\ngpus: 1\nretries: 1\nsnapshot: %s\n" % code).out)["id"]
        shutil.rmtree(code)
        os.mkdir(code)
        d.kill()
        d.up()
        d.run("cancel", str(blocker))
        d.wait(job, "failed")
        assert d.run("logs", str(job)).out == "whole\n"
        assert len(d.job(job)["attempts"]) == 2


def test_what_no_job_needs_goes_after_a_day(code):
    with harness.Daemon(nodes="sim:1x4xH100-80GB") as d:
        blocker = d.submit("sleep", "1000", flags=["-g", "4"])
        d.wait(blocker, "running")
        put(code, {"a": "waits\n"})
        waits = d.submit("cat", "a", flags=["--snapshot", code, "-g", "4"])
        put(code, {"a": "over\n"})
        run(d, code, "--", "true")
        assert len(kept(d, "trees")) == 2
        for what in ("trees", "files"):
            for name in kept(d, what):
                os.utime(os.path.join(d.data, "code", str(os.getuid()), what, name), (0, time.time() - 90000))
        d.kill()  # it looks once an hour
        d.up()
        put(code, {"a": "new\n"})
        run(d, code, "--", "true")
        assert len(kept(d, "trees")) == 2 and len(kept(d, "files")) == 2
        d.run("cancel", str(blocker))
        d.wait(waits, "succeeded")
        assert d.run("logs", str(waits)).out == "waits\n"


def test_what_can_not_be_sent_is_named(code):
    with harness.Daemon(nodes="sim:1x4xH100-80GB") as d:
        def refused(words, text, folder=code):
            done = run(d, folder, "--", "true", check=False)
            assert done.code not in (0, 1) and words in done.err, done
        refused("has no files", "")
        refused("can't be found", "", folder=code + "/nowhere")
        with open(os.path.join(code, "large"), "wb") as f:
            f.truncate((8 << 20) + 1)
        refused("more than 8 MiB; name it in .fairleadignore", "")
        put(code, {".fairleadignore": "large\nodd*\n"})
        run(d, code, "--", "true")
        put(code, {"two\nlines": "x"})
        refused("two\\nlines", "")
        os.unlink(os.path.join(code, "two\nlines"))
        done = d.submit_file("command: x\nsnapshot: %s\n" % ("0" * 64), check=False)
        assert "there is no snapshot" in done.err, done


def ask(d, method, path, body):
    connection = http.client.HTTPConnection("localhost")
    connection.sock = socket.socket(socket.AF_UNIX)
    connection.sock.connect(os.path.join(d.data, "fairlead.sock"))
    connection.request(method, path, body)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text


def test_lists_and_files_that_are_not_what_they_say_are_refused():
    digest = hashlib.sha256(b"content").hexdigest()

    def line(path, kind="F", size=7, hex=digest):
        return "%s %s %s %s\n" % (kind, size, hex, path)
    with harness.Daemon(nodes="sim:1x4xH100-80GB") as d:
        head = "fairlead-tree 1\n"
        for text in ("", head, "x\n" + line("a"), head + line("../a"), head + line("/a"), head + line("a//b"), head + line("."), head + line("a/.."),
                     head + line("b") + line("a"), head + line("a") + line("a"), head + line("a") + line("a/b"), head + line("a\x01"),
                     head + "L 4 /etc a\n" + line("a/passwd"), head + line("a", size="07"), head + line("a", size=(8 << 20) + 1), head + line("a", hex="0"),
                     head + line("a")[:-1], head + "L 0  a\n", head + line("/".join("d" * 33)), head + line("a", kind="Z"), head + line("n" * 256)):
            status, answer = ask(d, "POST", "/api/v1/snapshots", text)
            assert status == 400, (text, status, answer)
        status, answer = ask(d, "POST", "/api/v1/snapshots", head + line("a"))
        assert status == 200 and digest in answer and not kept(d, "trees")
        assert ask(d, "PUT", "/api/v1/snapshots/files/" + digest, b"other")[0] == 400
        assert ask(d, "PUT", "/api/v1/snapshots/files/..%2F" + digest, b"content")[0] == 400
        assert ask(d, "PUT", "/api/v1/snapshots/files/" + digest, b"content")[0] == 200
        # Of another length than it is: it is not there.
        assert digest in ask(d, "POST", "/api/v1/snapshots", head + line("a", size=8))[1]
        status, answer = ask(d, "POST", "/api/v1/snapshots", head + line("a"))
        assert status == 200 and '"missing":[]' in answer and len(kept(d, "trees")) == 1


@pytest.mark.skipif(os.getuid() != 0, reason="another account needs root")
def test_a_snapshot_is_of_its_account_and_the_copy_the_users(code):
    with harness.Daemon(nodes="sim:1x4xH100-80GB") as d:
        put(code, {"a": "1\n", "s/b": "2\n"})
        run(d, code, "--", "true")
        name = kept(d, "trees")[0]
        d.run("users", "add", "nobody", "--role", "researcher", "--uid", str(pwd.getpwnam("nobody").pw_uid))
        other = d.run("submit", "-", stdin="command: x\nsnapshot: %s\n" % name, user="nobody", check=False)
        assert "there is no snapshot" in other.err, other
        out = d.run("run", "--snapshot", code, "-g", "0", "--", "sh", "-c", "touch s/new; stat -c %U . s s/b; id -un", user="nobody")
        assert set(out.out.split()) == {"nobody"}, out
